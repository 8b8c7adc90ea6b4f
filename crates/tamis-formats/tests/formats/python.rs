//! Filters of Python packages.

use crate::common::{has, has_by_its_bits, odd_words, sample, strangers, words};
use tamis_formats::pybloomfilter::{Hash, Key, Probes, Shape};
use tamis_formats::{Create, Error, Format, Hint, Keys};

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

/// The samples of older versions, and their hashes.
const OLD: [(&str, Hash, &[Hash]); 5] = [
    ("0.1.10_djb", Hash::Djb, &[]),
    ("0.2.0_djb", Hash::Djb, &[]),
    ("0.3.2_superfast", Hash::SuperFast, &[Hash::Sha512]),
    ("0.3.11_sha512", Hash::Sha512, &[Hash::SuperFast]),
    ("0.3.14_murmur32", Hash::Murmur32, &[Hash::Murmur]),
];

fn old_words() -> Vec<String> {
    let more = ["ab", "abc", "aé", "日é"].map(str::to_owned);
    odd_words().into_iter().chain(more).collect()
}

/// Written by the C code of those versions. If the numbers leave several hashes possible, all are
/// reported, including the right one.
#[test]
fn pybloomfilter_of_older_versions() {
    for (name, hash, others) in OLD {
        let file = sample(&format!("pybloomfilter/pbfm_{name}.bloom"));
        let asked = Hint {
            hash: Some(hash),
            ..Hint::default()
        };
        let mut filter = tamis_formats::open(&file, asked).unwrap();
        assert_eq!(filter.facts().hash, Some(hash));
        assert!(filter.facts().other_hashes.is_empty());
        has(&filter, &old_words(), Keys::Utf8);
        // Its own keys set no new bits.
        for key in old_words() {
            assert!(!filter.insert(key.as_bytes()).unwrap(), "{name}: {key}");
        }
        assert!(filter.to_bytes() == file);
        if hash != Hash::Djb {
            assert!(filter.contains(&12_345i64.to_le_bytes()), "{name}");
        }

        let facts = tamis_formats::open(&file, Hint::default()).unwrap().facts();
        let mut possible = vec![facts.hash.unwrap()];
        possible.extend(facts.other_hashes);
        let mut expected = [&[hash], others].concat();
        possible.sort_by_key(|hash| hash.name());
        expected.sort_by_key(|hash| hash.name());
        assert_eq!(possible, expected, "{name}");
    }
}

/// Python's numbers, which the oldest versions hash differently.
#[test]
fn numbers_in_pybloomfilter_of_older_versions() {
    for (name, hash, _) in OLD {
        let file = sample(&format!("pybloomfilter/pbfm_{name}.bloom"));
        let (shape, _) = Shape::decode(&file, file.len() as u64, Some(hash)).unwrap();
        let probes = Probes::new(hash, &shape.seeds, shape.bits);
        let has = |number: i64| {
            probes.all(Key::Hash(number), |bits| {
                (bits.iter()).all(|bit| file[1280 + *bit as usize / 8] >> (bit % 8) & 1 != 0)
            })
        };
        for number in [12_345, -7, 0] {
            assert!(has(number), "{name}: {number}");
        }
        assert!((1_000_000..1_001_000).filter(|i| has(*i)).count() < 10);
    }
}

/// The two texts printed in an article of 2010.
#[test]
fn pybloomfilter_of_2010() {
    for (name, keys, hashes) in [
        ("mike", &["MIKE"][..], 17),
        ("fruit", &["apple", "banana", "orange", "pear"], 7),
    ] {
        let text = sample(&format!("pybloomfilter/2010_{name}.base64"));
        let mut filter = tamis_formats::open(&text, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::Pybloomfilter);
        assert_eq!(filter.facts().hash, Some(Hash::Djb));
        assert!(filter.facts().other_hashes.is_empty());
        assert_eq!(filter.hashes(), Some(hashes));
        assert_eq!(filter.keys(), [Keys::Utf8]);
        assert!(keys.iter().all(|key| filter.contains(key.as_bytes())));
        // So few bits are set that no other key should match.
        assert!(filter.rate_now() < 1e-30);
        let others = (0..10_000).map(|i| format!("other{i}"));
        assert_eq!(
            others.filter(|key| filter.contains(key.as_bytes())).count(),
            0
        );
        assert_eq!(filter.keys_now().unwrap().round() as usize, keys.len());

        // The text and the filter in it are read back unchanged.
        assert!(filter.is_packed() && !filter.is_gzipped());
        assert!(filter.insert(b"new").unwrap());
        let again = filter.to_bytes();
        let again = tamis_formats::open(&again, Hint::default()).unwrap();
        assert!(again.contains(b"new") && again.contains(keys[0].as_bytes()));
        filter.unpack();
        let file = filter.to_bytes();
        let file = tamis_formats::open(&file, Hint::default()).unwrap();
        assert!(file.contains(b"new") && !file.is_packed());
        let wrong = Hint {
            hash: Some(Hash::Sha512),
            ..Hint::default()
        };
        let error = tamis_formats::open(&text, wrong).unwrap_err().to_string();
        assert!(error.contains("expected djb"), "{error}");
    }
}

/// A text unpacks to no more than allowed, and an invalid one isn't unpacked.
#[test]
fn texts_are_unpacked_with_care() {
    let text = sample("pybloomfilter/2010_fruit.base64");
    let hint = Hint {
        most_unpacked: Some(1 << 20),
        ..Hint::default()
    };
    let large = tamis_formats::open(&text, hint);
    assert!(matches!(large, Err(Error::Unpacked { .. })));
    for cut in [1, 2, 3, 100, text.len() / 2, text.len() - 5] {
        let cut = tamis_formats::open(&text[..cut], Hint::default());
        assert!(matches!(cut, Err(Error::Unknown)));
    }
}

/// The hash assumed for files of each version: the newest one that fits. Other possible ones are
/// listed.
#[test]
fn hashes_follow_from_numbers_where_they_can() {
    let fits = |bits: u64, hashes: u32| {
        let shape = Shape {
            capacity: 1_000,
            error_rate: 0.01,
            bits,
            seeds: (0..hashes).collect(),
            hash: Hash::Murmur,
        };
        let (shape, others) = Shape::decode(&shape.encode(), shape.file_len(), None).unwrap();
        (shape.hash, others.to_vec())
    };
    assert_eq!(fits(9_592, 6), (Hash::Murmur, vec![])); // 0.6.3
    assert_eq!(fits(9_588, 6), (Hash::Murmur, vec![Hash::Murmur32])); // 0.3.12 to 0.6.1
    assert_eq!(fits(9_588, 3), (Hash::Murmur, vec![])); // seeds of one's own, from 0.5.0
    assert_eq!(fits(19_173, 7), (Hash::Sha512, vec![Hash::SuperFast]));
    assert_eq!(fits(47_933, 34), (Hash::Djb, vec![]));
    // Numbers that no version uses leave all hashes possible.
    assert_eq!(fits(12_345, 6), (Hash::Murmur, Hash::ALL[1..].to_vec()));
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
        // Files without the number of hashes: `save_to_file`, and `get_bytes` of a counting filter.
        let error = tamis_formats::open(&file[4..], Format::FastbloomRs).unwrap_err();
        assert!(error.to_string().contains("number of hashes"), "{error}");
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
    // Text by its code points, and "é" also as bytes.
    has(&filter, &odd_words(), Keys::Utf8);
    assert_eq!(strangers(&filter, Keys::Utf8), 6);
    assert!(filter.check_writable().is_err());
    assert!(filter.to_bytes() == file);
}

/// Both classes, and every hash that they choose by size. Up to version 3, small ones use MD5 instead of XXH128, which
/// the file doesn't say: both are checked.
#[test]
fn pybloom_live() {
    let mut words = odd_words();
    words.extend(["12345", "-7", "0.5"].map(str::to_owned));
    for (name, hash) in [
        ("xxh128_n1000_p01", "xxh3-128"),
        ("md5_3.1_n1000_p01", "xxh3-128"),
        ("sha1_n1000_p001", "sha1"),
        ("sha256_n600_p1e-4", "sha256"),
        ("sha384_n23000_p001", "sha384"),
        ("sha512_n600_p1e-10", "sha512"),
        ("scalable_n100_p01", "xxh3-128"),
    ] {
        let file = sample(&format!("pybloom-live/{name}.bloom"));
        let filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::PybloomLive, "{name}");
        assert_eq!(filter.hash_name(), hash, "{name}");
        let keys = filter.facts().keys.unwrap();
        // Some seemed to be present when they were added.
        assert!((495..=508).contains(&keys), "{name}: {keys}");
        // If the hash is unknown, both are checked, which doubles the rate.
        has_by_its_bits(&filter, &words, Keys::Utf8);
        assert!(filter.check_writable().is_err(), "{name}");
        assert!(filter.to_bytes() == file, "{name}");
        for end in [0, 39, 40, file.len() - 1] {
            let cut = tamis_formats::open(&file[..end], Format::PybloomLive);
            assert!(cut.is_err(), "{name}: {end}");
        }
    }
}

#[test]
fn fastbloom_rs() {
    let numbers = crate::common::numbers();
    let words: Vec<String> = odd_words()
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect();
    for (name, keys, encoding) in [
        ("words", words, Keys::Utf8),
        ("numbers", numbers, Keys::Int64),
    ] {
        let file = sample(&format!("fastbloom-rs/{name}_n1000_p01.bloom"));
        // Only its length identifies it.
        assert!(tamis_formats::open(&file, Hint::default()).is_err());
        let mut filter = tamis_formats::open(&file, Format::FastbloomRs).unwrap();
        has(&filter, &keys, encoding);
        for key in &keys {
            assert!(
                !filter
                    .insert(&encoding.encode(key.as_bytes()).unwrap())
                    .unwrap()
            );
        }
        assert!(filter.to_bytes() == file);
        // Files without the number of hashes: `save_to_file`, and `get_bytes` of a counting filter.
        let error = tamis_formats::open(&file[4..], Format::FastbloomRs).unwrap_err();
        assert!(error.to_string().contains("number of hashes"), "{error}");
    }
}
