//! Bytes of no known format: told apart by what they say and by their length.
#![no_main]

#[allow(dead_code, reason = "other targets name the format")]
#[path = "../foreign.rs"]
mod foreign;

use libfuzzer_sys::fuzz_target;
use tamis_formats::{Error, Format, Hint, open};

fuzz_target!(|data: &[u8]| match open(data, Hint::default()) {
    Ok(filter) => {
        let format = filter.format();
        foreign::exercise_filter(filter, |bytes| open(bytes, format));
    }
    Err(Error::Ambiguous { fits }) => {
        assert!(
            fits.len() > 1
                && fits
                    .iter()
                    .all(|format: &Format| open(data, *format).is_ok())
        );
    }
    Err(_) => {}
});
