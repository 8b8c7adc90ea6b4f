//! Bytes that may be an index, in place, as they are and with right checksums.

use crate::filters::secret;
use tamis::Hash;
use tamis::index::{FileIndex, IndexBuilder, IndexOptions};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn index(data: &[u8]) {
    let shift = data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 8;
    for bytes in [Some(data.to_vec()), mended_index(data)]
        .into_iter()
        .flatten()
    {
        let moved = [vec![0xff; shift], bytes].concat();
        exercise_index(&moved[shift..]);
    }
}

/// The bytes of an index with right magic, version, length and checksums.
fn mended_index(data: &[u8]) -> Option<Vec<u8>> {
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
fn exercise_index(bytes: &[u8]) {
    let Ok(index) = FileIndex::view_keyed(bytes, &secret()) else {
        return;
    };
    let hashes: Vec<Hash> = (0..40).map(Hash::from_u64).collect();
    for spec in index.specs() {
        let _ = (spec.text(), spec.keys());
        let many = spec.candidates_many(&hashes);
        for (hash, many) in hashes.iter().zip(&many) {
            let alone = spec.candidates(*hash);
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
            let after = after.candidates(hash);
            for entry in before.candidates(hash) {
                assert!(
                    after.iter().any(|found| found.number() == entry.number()),
                    "a false no"
                );
            }
        }
    }
}
