//! Looks up one hash in the filters of all entries, or many in each.
//!
//! A probe reads a record, at most one word of bump codes, and two neighbouring groups of a table.
//! Each of these is prefetched for a block of entries before the first is needed. A "no" counts
//! only if the pages it was read from are intact; otherwise the entry is a candidate.

use crate::hash::Hash;
use crate::index::format::{Directory, FilterRecord};
use crate::index::pages::Pages;
use crate::raw::isa;
use crate::raw::ribbon::compact::{Place, Table};
use crate::raw::word::Word;

/// Entries, or keys, that are prefetched together.
const BLOCK: usize = 32;
/// From this many keys on, each filter looks up all of them before the next one.
const MANY: usize = 8;

/// An index, as a query sees it.
pub(super) struct Filters<'a, W> {
    pub(super) directory: &'a Directory,
    pub(super) bodies: &'a [W],
    pub(super) pages: &'a Pages,
}

impl<W> Clone for Filters<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Filters<'_, W> {}

/// The filter of an entry, ready for look-ups.
enum Filter<'a, W> {
    /// Contains no keys.
    Empty,
    /// May hold any key.
    Any,
    Table {
        table: Table,
        words: &'a [W],
        /// Its offset in the bodies.
        at: usize,
    },
}

impl<'a, W: Word> Filter<'a, W> {
    #[inline(always)]
    fn new(index: Filters<'a, W>, record: &FilterRecord) -> Self {
        match index.directory.table(record) {
            Some(table) => {
                let body = Directory::words(record, &table);
                Self::Table {
                    table,
                    at: body.start,
                    words: &index.bodies[body],
                }
            }
            None if record.is_unknown() => Self::Any,
            None => Self::Empty,
        }
    }

    #[inline(always)]
    fn prefetch_code(&self, hash: Hash) {
        if let Self::Table { table, words, .. } = self
            && let Some(word) = table.first_code(hash).and_then(|at| words.get(at))
        {
            isa::prefetch(word);
        }
    }

    #[inline(always)]
    fn locate(&self, hash: Hash) -> Option<Place> {
        let Self::Table { table, words, .. } = self else {
            return None;
        };
        let place = table.locate(words, hash)?;
        table.prefetch(words, &place);
        Some(place)
    }

    #[inline(always)]
    fn may_hold(&self, index: Filters<'_, W>, hash: Hash, place: Option<&Place>) -> bool {
        match (self, place) {
            (Self::Empty, _) => false,
            (Self::Any, _) => true,
            (Self::Table { table, words, .. }, Some(place)) if table.matches(words, place) => true,
            _ => !self.is_sound(index, hash),
        }
    }

    /// Whether everything that the answer for this key depends on is undamaged.
    #[inline(always)]
    fn is_sound(&self, index: Filters<'_, W>, hash: Hash) -> bool {
        let Self::Table { table, words, at } = self else {
            return true;
        };
        let is_sound = |start: usize, end: usize| {
            let range = at + start..at + end;
            index.pages.are_sound(index.directory, index.bodies, range)
        };
        let mut sound = true;
        let place = table.locate_noting(words, hash, |word| sound &= is_sound(word, word + 1));
        let span = place.map(|place| table.span(&place));
        sound && span.is_none_or(|span| is_sound(span.start, span.end))
    }
}

/// Calls `found` with the number of every candidate, in order.
pub(super) fn candidates<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hash: Hash,
    found: impl FnMut(usize),
) {
    #[cfg(target_arch = "x86_64")]
    if isa::Isa::best().has(isa::Level::Avx2) {
        // SAFETY: the processor has popcnt, bmi1 and bmi2: they come with that level.
        return unsafe { candidates_popcnt(index, spec, hash, found) };
    }
    candidates_anywhere(index, spec, hash, found);
}

/// The same code, compiled with the parity instruction that baseline x86_64 lacks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn candidates_popcnt<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hash: Hash,
    found: impl FnMut(usize),
) {
    candidates_anywhere(index, spec, hash, found);
}

#[inline(always)]
fn candidates_anywhere<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hash: Hash,
    mut found: impl FnMut(usize),
) {
    let mut filters = [const { Filter::Empty }; BLOCK];
    let mut places = [None; BLOCK];
    let mut number = 0;
    for records in index.directory.filters(spec).chunks(BLOCK) {
        for (filter, record) in filters.iter_mut().zip(records) {
            let record = FilterRecord::decode(record);
            *filter = Filter::new(index, &record);
            filter.prefetch_code(hash);
        }
        let filters = &filters[..records.len()];
        for (place, filter) in places.iter_mut().zip(filters) {
            *place = filter.locate(hash);
        }
        for (place, filter) in places.iter().zip(filters) {
            if filter.may_hold(index, hash, place.as_ref()) {
                found(number);
            }
            number += 1;
        }
    }
}

/// Calls `found` with the number of a key and that of a candidate, in order
/// for each key.
pub(super) fn candidates_many<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hashes: &[Hash],
    mut found: impl FnMut(usize, usize),
) {
    if hashes.len() < MANY {
        for (key, hash) in hashes.iter().enumerate() {
            candidates(index, spec, *hash, |entry| found(key, entry));
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if isa::Isa::best().has(isa::Level::Avx2) {
        // SAFETY: the processor has popcnt, bmi1 and bmi2: they come with that level.
        return unsafe { candidates_many_popcnt(index, spec, hashes, found) };
    }
    candidates_many_anywhere(index, spec, hashes, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn candidates_many_popcnt<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hashes: &[Hash],
    found: impl FnMut(usize, usize),
) {
    candidates_many_anywhere(index, spec, hashes, found);
}

#[inline(always)]
fn candidates_many_anywhere<W: Word>(
    index: Filters<'_, W>,
    spec: usize,
    hashes: &[Hash],
    mut found: impl FnMut(usize, usize),
) {
    let mut places = [None; BLOCK];
    for (number, record) in index.directory.filters(spec).iter().enumerate() {
        let filter = Filter::new(index, &FilterRecord::decode(record));
        if matches!(filter, Filter::Empty) {
            continue;
        }
        let mut key = 0;
        for hashes in hashes.chunks(BLOCK) {
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = filter.locate(*hash);
            }
            for (place, hash) in places.iter().zip(hashes) {
                if filter.may_hold(index, *hash, place.as_ref()) {
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

    /// Code compiled for special instructions answers like the portable code.
    #[test]
    fn every_path_gives_the_same_candidates() {
        let options = IndexOptions::new(0.2).unwrap();
        let mut builder = IndexBuilder::in_memory(&options);
        for entry in 0..100u64 {
            let mut keys = EntryKeys::new(&options);
            (0..entry * entry).for_each(|i| keys.add(0, Hash::from_u64(entry << 32 | i)));
            builder.add("", None, &keys.build().unwrap()).unwrap();
        }
        builder.add_unindexed("", None, "").unwrap();
        let index = builder.finish().unwrap();
        let index = index.filters();
        let hashes: Vec<Hash> = (0..99u64).map(|i| Hash::from_u64(i << 32)).collect();
        let mut many = Vec::new();
        candidates_many(index, 0, &hashes, |key, entry| many.push((key, entry)));
        let mut anywhere = Vec::new();
        candidates_many_anywhere(index, 0, &hashes, |key, entry| {
            anywhere.push((key, entry));
        });
        assert_eq!(many, anywhere);
        many.sort_unstable();
        let (mut alone, mut anywhere) = (Vec::new(), Vec::new());
        for (key, hash) in hashes.iter().enumerate() {
            candidates(index, 0, *hash, |entry| alone.push((key, entry)));
            candidates_anywhere(index, 0, *hash, |entry| anywhere.push((key, entry)));
        }
        assert_eq!(alone, anywhere);
        assert_eq!(alone, many);
    }
}
