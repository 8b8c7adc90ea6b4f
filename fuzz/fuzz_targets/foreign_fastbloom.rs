#![no_main]

#[path = "../foreign.rs"]
mod foreign;

use tamis_formats::Format;

libfuzzer_sys::fuzz_target!(|data: &[u8]| foreign::exercise(Format::Fastbloom, data));
