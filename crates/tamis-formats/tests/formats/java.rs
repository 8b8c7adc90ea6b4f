//! Filters of programs in Java.

use crate::common::{again, has, numbers, sample, words};
use tamis_formats::{Create, Error, Format, Keys, Strategy};

#[test]
fn guava() {
    for (name, encoding, keys) in [
        ("bytes_n1000_p01_key0-499.mitz64", Keys::Utf8, words(0..500)),
        (
            "string_utf8_n1000_p01_key0-499.mitz64",
            Keys::Utf8,
            words(0..500),
        ),
        (
            "string_utf8_n1000_p01_key0-499.mitz32",
            Keys::Utf8,
            words(0..500),
        ),
        (
            "unencodedchars_n1000_p01_key0-499.mitz64",
            Keys::Utf16,
            words(0..500),
        ),
        ("int_n1000_p01_0-499.mitz64", Keys::Int32, numbers()),
        ("long_n1000_p01_0-499.mitz64", Keys::Int64, numbers()),
    ] {
        let file = sample(&format!("guava/guava_{name}.bin"));
        let filter = tamis_formats::open(&file, Format::Guava).unwrap();
        has(&filter, &keys, encoding);
        assert!(filter.to_bytes() == file);
        let strategy = match name.ends_with("32") {
            true => Strategy::Mitz32,
            false => Strategy::Mitz64,
        };
        for before_33_4 in [false, true] {
            again(
                Create::Guava {
                    strategy,
                    before_33_4,
                },
                &keys,
                encoding,
                &file,
            );
        }
    }
    // From 33.4 on, the number of hashes differs for few keys.
    let hashes = |before_33_4| {
        let what = Create::Guava {
            strategy: Strategy::Mitz64,
            before_33_4,
        };
        tamis_formats::create(what, 5, 0.011).unwrap().hashes()
    };
    assert_eq!((hashes(true), hashes(false)), (Some(6), Some(7)));
}

#[test]
fn spark() {
    for (name, encoding) in [("string_key0-499", Keys::Utf8), ("long_0-499", Keys::Int64)] {
        let keys = if encoding == Keys::Utf8 {
            words(0..500)
        } else {
            numbers()
        };
        for (version, bits) in [("v1", "_bits9600"), ("v2", "_bits9600"), ("default", "")] {
            let file = sample(&format!("spark/spark_{version}_{name}{bits}.bin"));
            let filter = tamis_formats::open(&file, Format::Spark).unwrap();
            has(&filter, &keys, encoding);
            let seed =
                (version != "v1").then(|| u32::from_be_bytes(file[8..12].try_into().unwrap()));
            again(Create::Spark { seed }, &keys, encoding, &file);
        }
    }
}

#[test]
fn cassandra() {
    let file = sample("cassandra/cassandra4_Filter.db");
    let mut filter = tamis_formats::open(&file, Format::Cassandra).unwrap();
    for key in words(0..500) {
        assert!(filter.contains(key.as_bytes()));
    }
    for i in 500..600u32 {
        assert!(filter.contains(&[0xFF, i as u8, 0x80]), "bytes with a sign");
    }
    let wrong = (0..100_000).filter(|i| filter.contains(format!("absent{i}").as_bytes()));
    assert!(wrong.count() as f64 <= 1.1 * filter.rate_now() * 1e5);
    assert!((filter.keys_now().unwrap() / 600.0 - 1.0).abs() < 0.1);
    assert!(filter.to_bytes() == file);
    assert!(matches!(filter.insert(b"key"), Err(Error::ReadOnly { .. })));
}
