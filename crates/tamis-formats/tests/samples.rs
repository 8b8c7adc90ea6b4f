//! Files that the real implementations wrote: each opens, has its keys, keeps
//! its rate, and is written again byte for byte from the same keys.

use std::path::PathBuf;
use tamis_formats::{Create, Error, Foreign, Format, Keys, Strategy};

fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn words(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|i| format!("key{i}")).collect()
}

fn numbers() -> Vec<String> {
    (0..500).map(|i| i.to_string()).collect()
}

/// All keys are there, and of 100,000 others no more than the rate allows.
fn has(filter: &Foreign<'_>, keys: &[String], encoding: Keys) {
    let format = filter.format();
    let encode = |key: &String| encoding.encode(key.as_bytes()).unwrap().into_owned();
    let present: Vec<_> = keys.iter().map(encode).collect();
    let mut answers = vec![false; present.len()];
    filter.contains_many(&present, &mut answers);
    assert!(
        answers.iter().all(|yes| *yes),
        "{format}: a key is missing from a batch"
    );
    assert!(
        present.iter().all(|key| filter.contains(key)),
        "{format}: a key is missing"
    );

    let absent: Vec<_> = (1_000_000..1_100_000)
        .map(|i| match encoding {
            Keys::Int32 | Keys::Int64 => encode(&i.to_string()),
            _ => encode(&format!("absent{i}")),
        })
        .collect();
    let mut answers = vec![false; absent.len()];
    filter.contains_many(&absent, &mut answers);
    for (key, answer) in absent.iter().zip(&answers).step_by(97) {
        assert_eq!(
            filter.contains(key),
            *answer,
            "{format}: batch and single differ"
        );
    }
    let wrong = answers.iter().filter(|yes| **yes).count() as f64;
    // Four standard deviations beside the tenth.
    let expected = filter.rate_now() * absent.len() as f64;
    assert!(
        wrong <= 1.1 * expected + 4.0 * expected.sqrt(),
        "{format}: {wrong} wrong, {expected} expected"
    );
    let estimated = filter.keys_now().unwrap();
    assert!(
        (estimated / keys.len() as f64 - 1.0).abs() < 0.1,
        "{format}: {estimated} keys"
    );
}

/// Made anew from the same keys, it is the same file.
fn again(what: Create, keys: &[String], encoding: Keys, expected: &[u8]) {
    again_for(what, 1_000, 0.01, keys, encoding, expected);
}

fn again_for(what: Create, n: u64, rate: f64, keys: &[String], encoding: Keys, expected: &[u8]) {
    let mut filter = tamis_formats::create(what.clone(), n, rate).unwrap();
    for key in keys {
        filter
            .insert(&encoding.encode(key.as_bytes()).unwrap())
            .unwrap();
    }
    assert!(
        filter.to_bytes() == expected,
        "{what:?} writes another file"
    );
}

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
        let filter = tamis_formats::open(&file, Some(Format::Guava)).unwrap();
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
    // From 33.4 on the number of hashes is another for few keys.
    let hashes = |before_33_4| {
        let what = Create::Guava {
            strategy: Strategy::Mitz64,
            before_33_4,
        };
        tamis_formats::create(what, 5, 0.011).unwrap().hashes()
    };
    assert_eq!((hashes(true), hashes(false)), (6, 7));
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
            let filter = tamis_formats::open(&file, Some(Format::Spark)).unwrap();
            has(&filter, &keys, encoding);
            let seed =
                (version != "v1").then(|| u32::from_be_bytes(file[8..12].try_into().unwrap()));
            again(Create::Spark { seed }, &keys, encoding, &file);
        }
    }
}

#[test]
fn dcso() {
    let keys = words(0..500);
    let file = sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    let filter = tamis_formats::open(&file, None).unwrap();
    assert_eq!(filter.format(), Format::Dcso);
    has(&filter, &keys, Keys::Utf8);
    let facts = filter.facts();
    assert_eq!(
        (facts.capacity, facts.rate, facts.keys),
        (Some(1_000), Some(0.01), Some(500))
    );
    again(Create::Dcso, &keys, Keys::Utf8, &file);
    assert!(sample("poppy/poppy_v1_n1000_p01_key0-499.bloom") == file);

    // The user's data behind the bits stays, and gzip is seen through.
    let with_data = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom");
    let packed = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom.gz");
    for file in [&with_data, &packed] {
        let mut filter = tamis_formats::open(file, None).unwrap();
        has(&filter, &keys, Keys::Utf8);
        assert_eq!(filter.facts().data, 10);
        assert!(filter.insert(b"one more").unwrap());
        let written = filter.to_bytes();
        let again = tamis_formats::open(&written, None).unwrap();
        assert_eq!((again.facts().data, again.facts().keys), (10, Some(501)));
        assert!(again.contains(b"one more"));
    }
}

#[test]
fn pybloomfilter() {
    let file = sample("pybloomfilter/pbfm3_0.6.3_cap1000_p01_seeds.bloom");
    let filter = tamis_formats::open(&file, None).unwrap();
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
        &tamis_formats::open(&file, None).unwrap(),
        &keys,
        Keys::Utf8,
    );
}

#[test]
fn bits_and_blooms() {
    let keys = words(0..500);
    for (json, end) in [(false, "bin"), (true, "json")] {
        let file = sample(&format!("bitsandblooms/bb_v3_n1000_p01_key0-499.{end}"));
        let filter = tamis_formats::open(&file, None).unwrap();
        assert_eq!(filter.format(), Format::BitsAndBlooms);
        has(&filter, &keys, Keys::Utf8);
        again(Create::BitsAndBlooms { json }, &keys, Keys::Utf8, &file);
    }
}

#[test]
fn bip37() {
    let file = sample("bip37/bip37_n100_p01_tweak0_key0-49.bin");
    let filter = tamis_formats::open(&file, None).unwrap();
    assert_eq!(filter.format(), Format::Bip37);
    has(&filter, &words(0..50), Keys::Utf8);
    let what = Create::Bip37 { tweak: 0, flags: 1 };
    again_for(what, 100, 0.01, &words(0..50), Keys::Utf8, &file);
}

#[test]
fn npm() {
    let file = sample("npm-bloom-filters/bloom_n1000_p01_key0-499.json");
    let filter = tamis_formats::open(&file, None).unwrap();
    assert_eq!(filter.format(), Format::Npm);
    has(&filter, &words(0..500), Keys::Utf8);
    let what = Create::Npm {
        seed: 78_187_493_520,
    };
    again(what, &words(0..500), Keys::Utf8, &file);
}

#[test]
fn redisson() {
    let file = sample("redisson/redisson_stringcodec_n1000_p01_key0-499.bitmap");
    let filter = tamis_formats::redisson(file.clone(), 9_585, 7).unwrap();
    has(&filter, &words(0..500), Keys::Utf8);
    again(Create::Redisson, &words(0..500), Keys::Utf8, &file);
}

#[test]
fn cassandra() {
    let file = sample("cassandra/cassandra4_Filter.db");
    let mut filter = tamis_formats::open(&file, Some(Format::Cassandra)).unwrap();
    for key in words(0..500) {
        assert!(filter.contains(key.as_bytes()));
    }
    for i in 500..600u32 {
        assert!(filter.contains(&[0xFF, i as u8, 0x80]), "bytes with a sign");
    }
    assert!(matches!(filter.insert(b"key"), Err(Error::ReadOnly { .. })));
}

#[test]
fn valkey_bloom() {
    let file = sample("valkey-bloom/bloomfilter3_asslice_fixedseed_n1000_p01_key0-499.bin");
    let filter = tamis_formats::open(&file, None).unwrap();
    assert_eq!(filter.format(), Format::Valkey);
    has(&filter, &words(0..500), Keys::Utf8);
}
