//! Compares every hash with a second implementation, listed in
//! tests/vectors/make.py.

use super::murmur::{self, Tail};
use super::{crates, small};
use std::collections::BTreeMap;

const FILE: &str = include_str!("../../tests/vectors/hashes.tsv");

fn long() -> Vec<u8> {
    (0..100_000u32).map(|i| (131 * i + 7) as u8).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    if hex == "LONG" {
        return long();
    }
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn both((low, high): (u64, u64)) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// This crate's hash of a key.
fn ours(hash: &str, seed: u64, key: &[u8]) -> u128 {
    match hash {
        "murmur3-x64-128" => both(murmur::x64_128(key, seed, Tail::Plain)),
        "murmur3-x64-128-signed" => both(murmur::x64_128(key, seed, Tail::Signed)),
        "murmur3-x86-32" => murmur::x86_32(key, seed as u32).into(),
        "murmur3-spark" => murmur::spark_32(key, seed as u32).into(),
        "murmur3-orc" => murmur::orc_64(key, seed).into(),
        "murmur2-64a" => murmur::murmur2_64a(key, seed).into(),
        "fnv1" => small::fnv1_64(key).into(),
        "wang" => small::wang_64(i64::from_le_bytes(key.try_into().unwrap())).into(),
        "leveldb" => small::leveldb_32(key).into(),
        "highway-128" => both(crates::redisson_128(key)),
        "siphash-1-3" => {
            let secret = both((seed, seed)).to_le_bytes();
            crates::siphash_1_3(&secret, &[key]).into()
        }
        "wyhash-2" => crates::poppy_64(key).into(),
        "xxh64" => xxhash_rust::xxh64::xxh64(key, seed).into(),
        _ => panic!("{hash} is not tested"),
    }
}

/// Hashing with several seeds at once equals hashing with each.
#[test]
fn lanes_are_hashes_by_themselves() {
    let seeds = [0, 1, 0xDEAD_BEEF, u32::MAX];
    for length in (0..70).chain([100_000]) {
        let key = &long()[..length];
        let one = |seed: u32| {
            let (low, high) = murmur::x64_128(key, seed.into(), Tail::Plain);
            low ^ high
        };
        let folded = murmur::x64_128_folded(key, &seeds, |hash| hash);
        assert_eq!(folded, seeds.map(one), "{length} bytes");
        assert_eq!(murmur::x64_128_folded(key, &[7], |hash| hash), [one(7)]);
    }
}

#[test]
fn every_hash_is_that_of_another_implementation() {
    let (keys, rows): (Vec<&str>, Vec<&str>) =
        (FILE.lines().skip(1)).partition(|line| !line.contains('\t'));
    let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes).collect();
    // Includes the lengths that have broken implementations.
    for length in [0, 1, 7, 8, 9, 15, 16, 17, 33, 100_000] {
        assert!(keys.iter().any(|key| key.len() == length), "{length} bytes");
    }
    let mut tested = BTreeMap::new();
    for row in rows {
        let [hash, seed, number, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let key = &keys[number.parse::<usize>().unwrap()];
        let seed = u64::from_str_radix(seed, 16).unwrap();
        let expected = u128::from_str_radix(expected, 16).unwrap();
        let got = ours(hash, seed, key);
        assert_eq!(
            got,
            expected,
            "{hash} of {:02x?}",
            &key[..key.len().min(33)]
        );
        *tested.entry(hash).or_insert(0) += 1;
    }
    assert_eq!(tested.len(), 13, "{tested:?}");
    assert!(tested.values().all(|count| *count >= 4), "{tested:?}");
}
