//! A string of Redis, behind the size and the number of hashes that stand beside
//! it.
#![no_main]

#[allow(dead_code, reason = "other formats' files say what they are")]
#[path = "../foreign.rs"]
mod foreign;

use tamis_formats::redisson;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((numbers, string)) = data.split_first_chunk::<6>() else {
        return;
    };
    let [a, b, c, d, hashes, high] = *numbers;
    // Most of a large one would be zeros.
    let size = u64::from(u32::from_le_bytes([a, b, c, d]) >> 12);
    let hashes = u32::from_le_bytes([hashes, high & 7, 0, 0]);
    if let Ok(filter) = redisson(string.to_vec(), size, hashes) {
        foreign::exercise_filter(filter, |bytes| redisson(bytes.to_vec(), size, hashes));
    }
});
