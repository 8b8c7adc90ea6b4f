//! Bytes, copied to the heap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{change, exercise, mended, open};

fuzz_target!(|data: &[u8]| {
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        for open in [open(), open().accept_loss()] {
            if let Ok(mut filter) = open.decode(&bytes) {
                exercise(&filter, &bytes);
                change(&mut filter);
            }
        }
    }
});
