//! Filters of Python packages.

use crate::common::{has, odd_words, sample, strangers, words};
use tamis_formats::{Create, Format, Hint, Keys};

#[test]
fn pybloomfilter() {
    let file = sample("pybloomfilter/pbfm3_0.6.3_cap1000_p01_seeds.bloom");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    let keys = words(0..500);
    has(&filter, &keys, Keys::Utf8);
    for number in [12_345i64, -7] {
        assert!(filter.contains(&number.to_le_bytes()));
    }
    assert!(filter.contains(b"\x00\xff"));
    let seeds = vec![1, 2, 3, 0xdead_beef, 5, 6];
    let mut made = tamis_formats::create(Create::Pybloomfilter { seeds }, 1_000, 0.01).unwrap();
    for key in &keys {
        made.insert(key.as_bytes()).unwrap();
    }
    for key in [
        &12_345i64.to_le_bytes()[..],
        &(-7i64).to_le_bytes(),
        b"\x00\xff",
    ] {
        made.insert(key).unwrap();
    }
    assert!(made.to_bytes() == file);
    let file = sample("pybloomfilter/pbfm3_0.6.3_cap1000_p01_randseeds.bloom");
    has(
        &tamis_formats::open(&file, Hint::default()).unwrap(),
        &keys,
        Keys::Utf8,
    );
}

#[test]
fn rbloom() {
    for (file, keys, wrong) in [
        ("rbloom/rbloom_1.5.4_sha256_utf8.bin", Keys::Utf8, 8),
        (
            "rbloom/rbloom_1.5.4_sha256_pickle.bin",
            Keys::PythonPickle,
            12,
        ),
    ] {
        let file = sample(file);
        let unknown = tamis_formats::open(&file, Hint::default());
        assert!(unknown.is_err(), "nothing tells what it is");
        let mut filter = tamis_formats::open(&file, Format::Rbloom).unwrap();
        has(&filter, &odd_words(), keys);
        assert_eq!(strangers(&filter, keys), wrong);
        assert!(!filter.insert(&keys.encode(b"key7").unwrap()).unwrap());
        assert!(filter.to_bytes() == file);
    }
}

#[test]
fn abloom() {
    let file = sample("abloom/abloom_1.1.0_n1000_p01.bin");
    let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Abloom);
    assert_eq!(filter.facts().capacity, Some(1000));
    has(&filter, &odd_words(), Keys::Utf8);
    assert_eq!(strangers(&filter, Keys::Utf8), 4);
    let about = filter.keys_now().unwrap();
    assert!((480.0..530.0).contains(&about), "{about}");
    for key in odd_words() {
        assert!(!filter.insert(key.as_bytes()).unwrap());
    }
    assert!(filter.to_bytes() == file);
}

#[test]
fn pyprobables() {
    let file = sample("pyprobables/pyprobables_0.7.0_n1000_p01.blm");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Pyprobables);
    assert_eq!(filter.facts().keys, Some(506));
    // Text by its code points, and "é" as bytes as well.
    has(&filter, &odd_words(), Keys::Utf8);
    assert_eq!(strangers(&filter, Keys::Utf8), 6);
    assert!(filter.check_writable().is_err());
    assert!(filter.to_bytes() == file);
}
