//! Filters of Bitcoin and npm.

use crate::common::{again, again_for, has, has_by_its_bits, odd_words, sample, words};
use tamis_formats::{Create, Error, Format, Hint, Keys};

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

/// Its other kinds that can be queried: counters aren't kept, and what follows a full filter is unknown.
#[test]
fn other_kinds_of_npm() {
    for (name, keys) in [
        ("counting_n200_p01_key0-99", 100),
        ("partitioned_n1000_p01_key0-499", 500),
        ("scalable_n100_p01_key0-499", 500),
    ] {
        let file = sample(&format!("npm-bloom-filters/{name}.json"));
        let filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::Npm, "{name}");
        // Small slices have few pairs of remainders, so the scalable one exceeds its rate.
        has_by_its_bits(&filter, &words(0..keys), Keys::Utf8);
        assert!(filter.check_writable().is_err(), "{name}");
        assert!(filter.to_bytes() == file, "{name}");
    }
}

/// Built from all its keys; it knows their number.
#[test]
fn xor_filters_of_npm() {
    for bits in [8, 16] {
        let file = sample(&format!("npm-bloom-filters/xor{bits}.json"));
        let filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::Npm);
        has_by_its_bits(&filter, &odd_words(), Keys::Utf8);
        assert_eq!(filter.facts().keys, Some(odd_words().len() as u64));
        assert_eq!(filter.rate_now(), 0.5f64.powi(bits));
        assert!(filter.check_writable().is_err());
        assert!(filter.to_bytes() == file);
    }
    let file = String::from_utf8(sample("npm-bloom-filters/xor16.json")).unwrap();
    for (right, wrong) in [
        ("\"_bits\":16", "\"_bits\":8"),
        ("\"_bits\":16", "\"_bits\":32"),
        ("\"_blockLength\":217", "\"_blockLength\":216"),
        ("\"_filter\":[", "\"_filter\":[\"AAA=\","),
        ("\"_filter\":[", "\"_filter\":[],\"was\":["),
    ] {
        assert!(file.contains(right), "{right}");
        let wrong = file.replacen(right, wrong, 1);
        assert!(tamis_formats::open(wrong.as_bytes(), Format::Npm).is_err());
    }
}

/// A full one denies a quarter of its own keys, so it is refused, with the reason.
#[test]
fn cuckoo_filters_of_npm() {
    let file = sample("npm-bloom-filters/cuckoo_n1000_p01_key0-499.json");
    for hint in [Hint::default(), Format::Npm.into()] {
        let error = tamis_formats::open(&file, hint).unwrap_err().to_string();
        assert!(error.contains("CuckooFilter"), "{error}");
        assert!(error.contains("denies them itself"), "{error}");
    }
    let cut = tamis_formats::open(&file[..100], Hint::default()).unwrap_err();
    assert!(matches!(cut, Error::Unknown), "{cut}");
}

#[test]
fn npm_bloomfilter() {
    let file = sample("npm-bloomfilter/n1000_p01.json");
    let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::NpmBloomfilter);
    assert_eq!(filter.keys(), [Keys::Utf16]);
    has(&filter, &odd_words(), Keys::Utf16);
    // Its own keys set no new bits, and it is written back unchanged.
    for key in odd_words() {
        let key = Keys::Utf16.encode(key.as_bytes()).unwrap();
        assert!(!filter.insert(&key).unwrap());
    }
    assert!(filter.to_bytes() == file);
}
