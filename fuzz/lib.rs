//! What every target does with bytes that may be a filter, an index or records.

mod keys;

pub use keys::{exercise_rule, exercise_spec};

use tamis::index::{FileIndex, IndexBuilder, IndexOptions};
use tamis::{AnyFilter, Body, Hash, Kind, Open, SecretKey};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The secret of the keyed files among the seeds.
fn secret() -> SecretKey {
    SecretKey::new(std::array::from_fn(|i| i as u8))
}

/// Opens every file among the seeds.
pub fn open() -> Open {
    Open::new().key(secret())
}

/// The bytes with right checksums, magic, version and length fields, so that
/// the checks behind those are reached, which chance would hardly do.
pub fn mended(data: &[u8]) -> Option<Vec<u8>> {
    if data.len() < 128 {
        return None;
    }
    let mut bytes = data.to_vec();
    let body_len = (data.len() as u64 - 128).to_le_bytes();
    bytes[..8].copy_from_slice(b"TAMIS\r\n\x1a");
    bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
    bytes[80..88].copy_from_slice(&body_len);
    let header_sum = xxh3_64(&bytes[..88]);
    bytes[88..96].copy_from_slice(&header_sum.to_le_bytes());
    let keys = u64::from_le_bytes(bytes[96..104].try_into().unwrap());
    let body_sum = xxh3_64_with_seed(&bytes[128..], keys);
    bytes[104..112].copy_from_slice(&body_sum.to_le_bytes());
    Some(bytes)
}

/// The bytes of a record in Redis with right magic, versions and checksums, in
/// it and in its header.
pub fn mended_record(data: &[u8]) -> Option<Vec<u8>> {
    if data.len() < 168 {
        return None;
    }
    let mut bytes = data.to_vec();
    bytes[..8].copy_from_slice(b"TAMISRED");
    bytes[8..16].copy_from_slice(&2u64.to_le_bytes());
    bytes[24..32].fill(0);
    let header = &mut bytes[32..160];
    header[..8].copy_from_slice(b"TAMIS\r\n\x1a");
    header[8..10].copy_from_slice(&1u16.to_le_bytes());
    let header_sum = xxh3_64(&header[..88]);
    header[88..96].copy_from_slice(&header_sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..160]);
    bytes[160..168].copy_from_slice(&sum.to_le_bytes());
    bytes[24] = data[24] % 3;
    Some(bytes)
}

/// Asks a decoded filter all there is to ask.
pub fn exercise<B: Body>(filter: &AnyFilter<B>, bytes: &[u8]) {
    let keys = [&bytes[..8], b"", b"key", &bytes[64..]];
    let mut found = [false; 4];
    filter.contains_many(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(filter.contains(key), found);
    }
    let hashes: Vec<Hash> = (0..200).map(Hash::from_u64).collect();
    filter.contains_hashes(&hashes, &mut [false; 200]);
    let _ = (filter.keys(), filter.estimated_keys());
    assert!((0.0..=1.0).contains(&filter.rate_now()));
    reencodes(filter, bytes);
}

/// A filter is written as it was read: to the byte where it had a checksum and
/// no mark, and else but for those.
fn reencodes<B: Body>(filter: &AnyFilter<B>, bytes: &[u8]) {
    let again = filter.to_bytes();
    let copy = open().decode(&again).expect("what was written is read");
    assert_eq!(copy.to_bytes(), again);
    if filter.kind() == Kind::Growing {
        // Its capacity and count are those of its layers, whatever a forged
        // header says, and a tail that was not finished is dropped.
        return;
    }
    assert_eq!(again[..96], bytes[..96], "the fixed part");
    assert_eq!(again[128..], bytes[128..], "the body");
    let marked = bytes[112..128] != [0; 16];
    if !marked {
        assert_eq!(again[96..104], bytes[96..104], "the count");
        if bytes[104..112] != [0; 8] {
            assert_eq!(again, bytes);
        }
    }
}

/// And what may be changed.
pub fn change(filter: &mut AnyFilter) {
    let before = filter.to_bytes();
    let copy = open().decode(&before).expect("what was written is read");
    if matches!(filter.kind(), Kind::Bloom | Kind::Blocked) {
        filter.insert("key").expect("both kinds take every key");
        assert!(filter.contains("key"));
        filter.union_with(&copy).expect("like itself");
        filter.intersect_with(&copy).expect("like itself");
        assert_eq!(filter.to_bytes()[128..], before[128..]);
    } else {
        // Others may refuse, for want of room or at all; they say so.
        if filter.insert("key").is_ok() {
            assert!(filter.contains("key"));
        }
        let _ = filter.remove("key");
        let _ = filter.union_with(&copy);
        let _ = filter.intersect_with(&copy);
    }
    let _ = filter.clear();
}

/// The bytes of an index with right magic, version, length and checksums.
pub fn mended_index(data: &[u8]) -> Option<Vec<u8>> {
    if data.len() < 128 {
        return None;
    }
    let mut bytes = data.to_vec();
    let number =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    bytes[..8].copy_from_slice(b"TAMIX\r\n\x1a");
    bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
    // What the other parts leave is text.
    let specs = u64::from(bytes[56]);
    let entries = number(&bytes, 16) % 64;
    let directory = number(&bytes, 64) % data.len() as u64 / 8 * 8;
    let text = data.len() as u64;
    let pages = if directory > 128 {
        directory.div_ceil(1024)
    } else {
        0
    };
    let sums = directory + entries * (specs * 32 + 48);
    let text = text.checked_sub(sums + pages * 4 + specs * 8)?;
    for page in 0..pages {
        let end = directory.min((page + 1) * 1024) as usize;
        let sum = xxh3_64(&bytes[(page * 1024).max(128) as usize..end]) as u32 ^ page as u32;
        bytes[(sums + page * 4) as usize..][..4].copy_from_slice(&sum.to_le_bytes());
    }
    bytes[16..24].copy_from_slice(&entries.to_le_bytes());
    bytes[64..72].copy_from_slice(&directory.to_le_bytes());
    bytes[72..80].copy_from_slice(&text.to_le_bytes());
    let directory_sum = xxh3_64(&bytes[directory as usize..]);
    bytes[80..88].copy_from_slice(&directory_sum.to_le_bytes());
    let header_sum = xxh3_64(&bytes[..88]);
    bytes[88..96].copy_from_slice(&header_sum.to_le_bytes());
    Some(bytes)
}

/// Asks an index all there is to ask, if it is one. If no filter is damaged,
/// there is one way to write it.
pub fn exercise_index(bytes: &[u8]) {
    let Ok(index) = FileIndex::view_keyed(bytes, &secret()) else {
        return;
    };
    let hashes: Vec<Hash> = (0..40).map(Hash::from_u64).collect();
    for spec in index.specs() {
        let _ = (spec.text(), spec.keys());
        let many = spec.candidates_hashes(&hashes);
        for (hash, many) in hashes.iter().zip(&many) {
            let alone = spec.candidates_hash(*hash);
            let numbers = alone.iter().map(|entry| entry.number());
            assert!(numbers.eq(many.iter().map(|entry| entry.number())));
        }
    }
    let mut builder = IndexBuilder::in_memory(&IndexOptions::of(&index));
    let mut copied = true;
    for entry in index.entries() {
        let _ = (format!("{entry:?}"), entry.keys(0));
        copied &= builder.copy(&entry).is_ok();
    }
    let _ = index.by_id();
    assert_eq!(index.info().bytes(), bytes.len() as u64);
    assert_eq!(index.verify().is_ok(), copied);
    if copied {
        assert_eq!(builder.finish().expect("in memory").to_bytes(), bytes);
        damage_makes_candidates(&index, bytes);
    }
}

/// Bytes of filters that change make entries candidates, and never the other way round.
fn damage_makes_candidates(index: &FileIndex<&[u8]>, bytes: &[u8]) {
    let filters = 128..128 + index.info().filter_bytes as usize;
    let mut damaged = bytes.to_vec();
    damaged[filters]
        .iter_mut()
        .step_by(700)
        .for_each(|byte| *byte ^= 0x5A);
    let damaged = FileIndex::view_keyed(&damaged, &secret()).expect("the directory is as it was");
    for (before, after) in index.specs().zip(damaged.specs()) {
        for hash in (0..10).map(Hash::from_u64) {
            let after = after.candidates_hash(hash);
            for entry in before.candidates_hash(hash) {
                assert!(
                    after.iter().any(|found| found.number() == entry.number()),
                    "a false no"
                );
            }
        }
    }
}
