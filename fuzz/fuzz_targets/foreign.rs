//! Bytes as a file of every format of other systems: asked, added to, written
//! and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_formats::{Format, Hint, open};

fuzz_target!(|data: &[u8]| {
    let _ = open(data, Hint::default());
    for format in Format::ALL {
        for name in [None, Some(&b"s"[..]), Some(b"bfscale")] {
            let hint = Hint {
                format: Some(*format),
                name,
            };
            let Ok(mut filter) = open(data, hint) else {
                continue;
            };
            for key in [&b""[..], b"key7", &[0xFF; 33]] {
                filter.contains(key);
            }
            let _ = (filter.facts(), filter.keys(), filter.rate_now(), filter.keys_now());
            if filter.insert(b"key").is_ok() {
                assert!(filter.contains(b"key"), "{format}");
                let written = filter.to_bytes();
                let again = open(&written, hint).expect("what was written can be read");
                assert!(again.contains(b"key"), "{format}");
            }
        }
    }
});
