//! A rule for keys, and records of lines, CSV, TSV, JSON or URLs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamis_fuzz::exercise_rule(data));
