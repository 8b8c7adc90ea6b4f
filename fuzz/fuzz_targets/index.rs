//! Bytes that may be an index, in place, as they are and with right checksums.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{exercise_index, mended_index};

fuzz_target!(|data: &[u8]| {
    let shift = data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 8;
    for bytes in [Some(data.to_vec()), mended_index(data)]
        .into_iter()
        .flatten()
    {
        let moved = [vec![0xff; shift], bytes].concat();
        exercise_index(&moved[shift..]);
    }
});
