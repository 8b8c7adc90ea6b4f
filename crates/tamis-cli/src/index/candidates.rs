//! Which segments of an index may hold the keys.

use super::Index;
use super::table::{At, Known};
use std::collections::BTreeSet;
use tamis::Hash;
use tamis::index::FileIndex;
use tamis_records::needs::Need;

/// For several needs, the segments that may meet them.
pub(crate) struct Candidates {
    /// For each part of the index; `None` if it can't be read, so that all its segments are candidates.
    parts: Vec<Option<Vec<Bits>>>,
    needs: usize,
}

/// One bit for each entry of a part.
type Bits = Vec<u64>;

impl Candidates {
    /// The candidates according to one spec's filters.
    pub(crate) fn of(index: &Index, spec: usize, needs: &[Need]) -> Self {
        let mut keys = BTreeSet::new();
        needs.iter().for_each(|need| collect(need, &mut keys));
        let keys: Vec<Hash> = keys.into_iter().collect();
        let parts = index.parts.all();
        let parts = parts.map(|part| Some(ask(part?, spec, needs, &keys)));
        Self {
            parts: parts.collect(),
            needs: needs.len(),
        }
    }

    /// Whether a segment may meet a need.
    pub(crate) fn may(&self, need: usize, at: At) -> bool {
        let Some(Some(bits)) = self.parts.get(at.part) else {
            return true;
        };
        let bits = &bits[need];
        bits.get(at.entry / 64)
            .is_none_or(|word| word >> (at.entry % 64) & 1 == 1)
    }

    /// Whether a segment may meet any need.
    pub(crate) fn may_any(&self, at: At) -> bool {
        (0..self.needs).any(|need| self.may(need, at))
    }

    /// Whether a file's segments may meet any need.
    pub(crate) fn may_be_in(&self, known: &Known) -> bool {
        let mut segments = known.segments.iter();
        segments.any(|segment| self.may_any(segment.filters))
    }
}

fn collect(need: &Need, keys: &mut BTreeSet<Hash>) {
    match need {
        Need::Anything => {}
        Need::Key(key) => drop(keys.insert(*key)),
        Need::All(needs) | Need::One(needs) => {
            needs.iter().for_each(|need| collect(need, keys));
        }
    }
}

fn ask(part: &FileIndex, spec: usize, needs: &[Need], keys: &[Hash]) -> Vec<Bits> {
    let words = part.len().div_ceil(64);
    let spec = part
        .specs()
        .nth(spec)
        .expect("all parts have the specs of the index");
    let found = spec.candidates_many(keys);
    let has = found.into_iter().map(|entries| {
        let mut bits = vec![0; words];
        for entry in entries {
            bits[entry.number() / 64] |= 1 << (entry.number() % 64);
        }
        bits
    });
    let has: Vec<Bits> = has.collect();
    let bits_of = |key: &Hash| &has[keys.binary_search(key).expect("every key was asked for")];
    needs
        .iter()
        .map(|need| meet(need, words, &bits_of))
        .collect()
}

/// The entries that may meet a need.
fn meet<'b>(need: &Need, words: usize, bits_of: &impl Fn(&Hash) -> &'b Bits) -> Bits {
    let join = |needs: &[Need], mut bits: Bits, combine: fn(&mut u64, u64)| {
        for need in needs {
            let other = meet(need, words, bits_of);
            bits.iter_mut()
                .zip(other)
                .for_each(|(bits, other)| combine(bits, other));
        }
        bits
    };
    match need {
        Need::Anything => vec![u64::MAX; words],
        Need::Key(key) => bits_of(key).clone(),
        Need::All(needs) => join(needs, vec![u64::MAX; words], |bits, other| *bits &= other),
        Need::One(needs) => join(needs, vec![0; words], |bits, other| *bits |= other),
    }
}
