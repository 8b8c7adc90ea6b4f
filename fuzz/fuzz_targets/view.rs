//! Bytes in place, at any alignment: which one, depends on the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{exercise, mended, open};

fuzz_target!(|data: &[u8]| {
    let shift = data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 64;
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        let moved = [vec![0xff; shift], bytes].concat();
        let bytes = &moved[shift..];
        for open in [open(), open().accept_loss()] {
            if let Ok(filter) = open.view(bytes) {
                exercise(&filter, bytes);
            }
        }
    }
});
