//! One hash against the filters of all entries, and many against each.
//!
//! A probe is a record, at most one word of bump codes, and two neighbouring
//! groups of a table: each is asked of the memory for a block of entries
//! before the first of them is needed.

use super::format::{FilterRecord, Layout};
use crate::hash::Hash;
use crate::raw::isa;
use crate::raw::ribbon::compact::{Place, Table};

/// Entries, or keys, whose misses overlap.
const BLOCK: usize = 32;
/// From so many keys on, each filter is asked all of them before the next one.
const MANY: usize = 8;

/// The filter of an entry, ready to be asked.
#[derive(Clone, Copy)]
enum Filter<'a> {
    /// Of no keys.
    Empty,
    /// Of an entry that may hold any key.
    Any,
    Table(Table, &'a [[u8; 8]]),
}

impl<'a> Filter<'a> {
    #[inline(always)]
    fn new(layout: &Layout, bytes: &'a [u8], number: usize, record: &FilterRecord) -> Self {
        match layout.table(record) {
            Some(table) => Self::Table(table, layout.words(bytes, record, &table)),
            None if layout.is_indexed(bytes, number) => Self::Empty,
            None => Self::Any,
        }
    }

    #[inline(always)]
    fn prefetch_code(&self, hash: Hash) {
        if let Self::Table(table, words) = self
            && let Some(word) = table.first_code(hash).and_then(|at| words.get(at))
        {
            isa::prefetch(word);
        }
    }

    #[inline(always)]
    fn locate(&self, hash: Hash) -> Option<Place> {
        let Self::Table(table, words) = self else {
            return None;
        };
        let place = table.locate(words, hash)?;
        table.prefetch(words, &place);
        Some(place)
    }

    #[inline(always)]
    fn may_hold(&self, place: Option<&Place>) -> bool {
        match (self, place) {
            (Self::Any, _) => true,
            (Self::Table(table, words), Some(place)) => table.matches(words, place),
            _ => false,
        }
    }
}

/// Calls `found` with the number of every candidate, in order.
pub(super) fn candidates(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hash: Hash,
    found: impl FnMut(usize),
) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") && std::is_x86_feature_detected!("bmi2") {
        // SAFETY: the features were just detected.
        return unsafe { candidates_popcnt(layout, bytes, spec, hash, found) };
    }
    candidates_anywhere(layout, bytes, spec, hash, found);
}

/// The same code, compiled with the instruction for parity that baseline
/// x86_64 lacks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn candidates_popcnt(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hash: Hash,
    found: impl FnMut(usize),
) {
    candidates_anywhere(layout, bytes, spec, hash, found);
}

#[inline(always)]
fn candidates_anywhere(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hash: Hash,
    mut found: impl FnMut(usize),
) {
    let mut filters = [Filter::Empty; BLOCK];
    let mut places = [None; BLOCK];
    let mut number = 0;
    for records in layout.filters(bytes, spec).chunks(BLOCK) {
        for (i, (filter, record)) in filters.iter_mut().zip(records).enumerate() {
            let record = FilterRecord::decode(record);
            *filter = Filter::new(layout, bytes, number + i, &record);
            filter.prefetch_code(hash);
        }
        let filters = &filters[..records.len()];
        for (place, filter) in places.iter_mut().zip(filters) {
            *place = filter.locate(hash);
        }
        for (place, filter) in places.iter().zip(filters) {
            if filter.may_hold(place.as_ref()) {
                found(number);
            }
            number += 1;
        }
    }
}

/// Calls `found` with the number of a key and that of a candidate, in order
/// for each key.
pub(super) fn candidates_many(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hashes: &[Hash],
    mut found: impl FnMut(usize, usize),
) {
    if hashes.len() < MANY {
        for (key, hash) in hashes.iter().enumerate() {
            candidates(layout, bytes, spec, *hash, |entry| found(key, entry));
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") && std::is_x86_feature_detected!("bmi2") {
        // SAFETY: the features were just detected.
        return unsafe { candidates_many_popcnt(layout, bytes, spec, hashes, found) };
    }
    candidates_many_anywhere(layout, bytes, spec, hashes, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn candidates_many_popcnt(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hashes: &[Hash],
    found: impl FnMut(usize, usize),
) {
    candidates_many_anywhere(layout, bytes, spec, hashes, found);
}

#[inline(always)]
fn candidates_many_anywhere(
    layout: &Layout,
    bytes: &[u8],
    spec: usize,
    hashes: &[Hash],
    mut found: impl FnMut(usize, usize),
) {
    let mut places = [None; BLOCK];
    for (number, record) in layout.filters(bytes, spec).iter().enumerate() {
        let filter = Filter::new(layout, bytes, number, &FilterRecord::decode(record));
        if matches!(filter, Filter::Empty) {
            continue;
        }
        let mut key = 0;
        for hashes in hashes.chunks(BLOCK) {
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = filter.locate(*hash);
            }
            for place in &places[..hashes.len()] {
                if filter.may_hold(place.as_ref()) {
                    found(key, number);
                }
                key += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{EntryKeys, IndexBuilder, IndexOptions};

    /// What is compiled for some instructions answers as what runs anywhere.
    #[test]
    fn every_path_gives_the_same_candidates() {
        let options = IndexOptions::new(0.2).unwrap();
        let mut builder = IndexBuilder::in_memory(&options);
        for entry in 0..100u64 {
            let mut keys = EntryKeys::new(&options);
            (0..entry * entry).for_each(|i| keys.add_hash(0, Hash::from_u64(entry << 32 | i)));
            builder.add("", None, &keys.build().unwrap()).unwrap();
        }
        builder.add_unindexed("", None, "").unwrap();
        let index = builder.finish().unwrap();
        let (layout, bytes) = (&index.layout, index.bytes.as_ref());
        let hashes: Vec<Hash> = (0..99u64).map(|i| Hash::from_u64(i << 32)).collect();
        let mut many = Vec::new();
        candidates_many(layout, bytes, 0, &hashes, |key, entry| {
            many.push((key, entry))
        });
        let mut anywhere = Vec::new();
        candidates_many_anywhere(layout, bytes, 0, &hashes, |key, entry| {
            anywhere.push((key, entry));
        });
        assert_eq!(many, anywhere);
        many.sort_unstable();
        let (mut alone, mut anywhere) = (Vec::new(), Vec::new());
        for (key, hash) in hashes.iter().enumerate() {
            candidates(layout, bytes, 0, *hash, |entry| alone.push((key, entry)));
            candidates_anywhere(layout, bytes, 0, *hash, |entry| anywhere.push((key, entry)));
        }
        assert_eq!(alone, anywhere);
        assert_eq!(alone, many);
    }
}
