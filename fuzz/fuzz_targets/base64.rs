//! Text, which may be base64 of a filter; and base64 of anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{mended, open};

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(filter) = open().decode_base64(text)
    {
        let again = filter.to_base64();
        let copy = open()
            .decode_base64(&again)
            .expect("what was written is read");
        assert_eq!(copy.to_base64(), again);
    }
    if let Some(bytes) = mended(data)
        && let Ok(filter) = open().decode(&bytes)
    {
        let mut text = filter.to_base64();
        // As mail would break it.
        text.insert_str(text.len() / 3, "\r\n ");
        let copy = open()
            .decode_base64(&text)
            .expect("what was written is read");
        assert_eq!(copy.to_bytes(), filter.to_bytes());
    }
});
