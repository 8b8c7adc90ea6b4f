//! Filters of Bitcoin and npm.

use crate::common::{again, again_for, has, sample, words};
use tamis_formats::{Create, Format, Hint, Keys};

#[test]
fn bip37() {
    let file = sample("bip37/bip37_n100_p01_tweak0_key0-49.bin");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Bip37);
    has(&filter, &words(0..50), Keys::Utf8);
    let what = Create::Bip37 { tweak: 0, flags: 1 };
    again_for(what, 100, 0.01, &words(0..50), Keys::Utf8, &file);
}

#[test]
fn npm() {
    let file = sample("npm-bloom-filters/bloom_n1000_p01_key0-499.json");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Npm);
    has(&filter, &words(0..500), Keys::Utf8);
    let what = Create::Npm {
        seed: 78_187_493_520,
    };
    again(what, &words(0..500), Keys::Utf8, &file);
}
