//! The record of a filter in Redis, and behind it the description of a layer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::mended_record;
use tamis_redis::check_record;

fuzz_target!(|data: &[u8]| {
    check_record(data);
    if let Some(bytes) = mended_record(data) {
        check_record(&bytes);
    }
});
