//! Bit strings: the bits we look up are those that Java computes.

use std::collections::BTreeMap;
use tamis_formats::{BitmapHash, BitmapShape, Keys, bitmap};

/// Written by Bitmap.java, next to it.
const VECTORS: &str = include_str!("../vectors/bitmap.tsv");

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// Sets a bit like SETBIT, unless it is negative.
fn set(string: &mut Vec<u8>, bit: i64) {
    let byte = bit as usize / 8;
    string.resize(string.len().max(byte + 1), 0);
    string[byte] |= 0x80 >> (bit % 8);
}

#[test]
fn bits_are_those_that_java_sets() {
    let (mut negative, mut ways) = (0, BTreeMap::new());
    for line in VECTORS.lines() {
        let [hash, hashes, size, key, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let parsed: BitmapHash = hash.parse().unwrap();
        let is_java = hash.starts_with("java");
        let size: u64 = size.parse().unwrap();
        let shape = BitmapShape::new(parsed, hashes.parse().ok(), size).unwrap();
        let keys = if is_java { Keys::Utf16 } else { Keys::Utf8 };
        assert!(shape.keys().contains(&keys));
        let key = keys.encode(&bytes(key)).unwrap().into_owned();
        let expected: Vec<i64> = expected.split(',').map(|n| n.parse().unwrap()).collect();
        *ways.entry(hash.split(':').next().unwrap()).or_insert(0) += 1;
        if expected.iter().any(|bit| *bit < 0) {
            negative += 1;
            assert_eq!(shape.bits(&key), None, "{line}");
            continue;
        }
        let got = shape.bits(&key).unwrap();
        assert!(
            got.iter()
                .map(|bit| *bit as i64)
                .eq(expected.iter().copied()),
            "{line}"
        );
        // A string of 512 MB works like a small one, so skip it.
        if expected.iter().max() < Some(&(1 << 26)) {
            let mut string = Vec::new();
            expected.iter().for_each(|bit| set(&mut string, *bit));
            let filter = bitmap(&string, &shape).unwrap();
            assert!(filter.contains(&key), "{line}");
            assert_eq!(filter.keys(), shape.keys());
            // Without its last bit, the key is absent.
            let last = *expected.iter().max().unwrap();
            string[last as usize / 8] &= !(0x80 >> (last % 8));
            assert!(!bitmap(&string, &shape).unwrap().contains(&key), "{line}");
            assert!(!bitmap(&[], &shape).unwrap().contains(&key), "{line}");
        }
    }
    assert!(negative >= 2, "{negative}");
    assert_eq!(ways.len(), 4, "{ways:?}");
}

#[test]
fn what_no_program_has_is_refused() {
    let spread = || BitmapHash::Spread(vec![1, 6]);
    for (hash, hashes, size, said) in [
        (BitmapHash::Guava, None, 100, "hashes"),
        (BitmapHash::Guava, Some(0), 100, "hashes"),
        (BitmapHash::Guava32, Some(2000), 100, "hashes"),
        (BitmapHash::Guava, Some(7), 0, "bits"),
        (BitmapHash::Guava, Some(7), (1 << 32) + 1, "bits"),
        (spread(), Some(2), 100, "hashes"),
        (spread(), None, (1 << 31) + 1, "bits"),
        (BitmapHash::Seeds(vec![]), None, 100, "hashes"),
    ] {
        let error = BitmapShape::new(hash.clone(), hashes, size)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(said), "{hash:?}: {error}");
    }
    for text in [
        "",
        "md5",
        "guava:1",
        "java-seeds",
        "java-seeds:",
        "java-seeds:5,x",
        "java-spread:99999999999",
    ] {
        assert!(text.parse::<BitmapHash>().is_err(), "{text}");
    }
    let shape = BitmapShape::new(BitmapHash::Guava, Some(7), 100).unwrap();
    assert!(bitmap(&[0; 13], &shape).is_ok());
    assert!(bitmap(&[0; 14], &shape).is_err());
    let mut filter = bitmap(&[0; 13], &shape).unwrap();
    assert!(filter.insert(b"key").is_err());
}
