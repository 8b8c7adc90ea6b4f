//! A spec of an index, a question, and a file that may have what is asked for.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::exercise_spec(data));
