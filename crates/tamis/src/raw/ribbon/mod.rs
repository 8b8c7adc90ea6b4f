//! Ribbon: the smallest static filter, a bumped ribbon retrieval table (BuRR).
//!
//! A key stands for one linear equation over bits: the XOR of the table rows that its 64 coefficients choose, from
//! its start row on, is its fingerprint. Solving all equations at once fills the table almost without gaps: rows
//! are `width` bits, and about 1.003 rows serve one key. A key outside the set matches its fingerprint with
//! probability exactly 2^-width.
//!
//! *Bumping* makes the filling possible. A layer gets about 6 % more keys than rows. Rows are grouped into buckets
//! of 192; if a bucket's equations have no solution, the keys that start in its first few rows are bumped: rehashed
//! and stored in the next, much smaller layer. Two bits per bucket encode the number of these rows. The few keys
//! that fall through all bumping layers go to the last one, which has spare rows and is tried under several seeds.
//!
//! A layer is divided into shards by the top bits of the hash. No equation crosses shards, so they are built
//! independently: by all cores, or one after the other from sorted spill files that don't fit in memory together.

mod build;
pub(crate) mod compact;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use build::Builder;
pub use shape::RibbonShape;

use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::explain::{Cell, Explanation, Look};
use crate::raw::isa;
use crate::raw::layout::{Difference, Layout, Sealed, Timeless};
use crate::raw::word::Word;
use shape::{BUCKET, BUMP, CODES, LINE_WORDS, RIBBON};

/// Keys that are located and prefetched before the first of them is tested.
const BLOCK: usize = 32;

/// An independent hash of the same key, for the next layer. A bijection, so different keys stay
/// different.
#[inline(always)]
fn rehash(hash: Hash, seed: u64) -> Hash {
    let hi = hash.hi ^ mix(hash.lo ^ seed);
    Hash {
        hi,
        lo: hash.lo ^ mix(hi),
    }
}

/// Bit 0 is the start row, so it is always chosen.
#[inline(always)]
fn coefficients(hash: Hash) -> u64 {
    hash.lo | 1
}

#[inline(always)]
fn fingerprint(hash: Hash, width: u32) -> u32 {
    mix(hash.hi ^ hash.lo) as u32 & (u32::MAX >> (32 - width))
}

/// The place of a key's answer, and its expected value.
#[derive(Clone, Copy)]
struct Probe {
    /// First word of the group in which the ribbon starts; the next group follows.
    at: usize,
    /// Row within the group.
    shift: u32,
    fingerprint: u32,
    coefficients: u64,
}

impl Probe {
    /// Chooses no row and expects a nonzero fingerprint.
    const NEVER: Self = Self {
        at: 0,
        shift: 0,
        fingerprint: 1,
        coefficients: 0,
    };

    #[inline(always)]
    fn new(width: u32, row: u64, hash: Hash) -> Self {
        Self {
            at: (row / RIBBON * width as u64) as usize,
            shift: (row % RIBBON) as u32,
            fingerprint: fingerprint(hash, width),
            coefficients: coefficients(hash),
        }
    }
}

/// Finds the layer that holds the key. If none does, the key isn't in the set. Reads only bump
/// codes, which are few enough to stay in the cache.
#[inline(always)]
fn locate<W: Word>(shape: &RibbonShape, words: &[W], mut hash: Hash) -> Probe {
    let codes = &words[shape.codes_at as usize..];
    for layer in shape.layers.iter().take_while(|layer| layer.shards > 0) {
        let row = layer.row(hash);
        let bucket = row / BUCKET;
        let code = codes[(bucket / CODES) as usize].get() >> (bucket % CODES * 2) & 3;
        if row % BUCKET >= BUMP[code as usize] {
            return Probe::new(shape.width, row, hash);
        }
        hash = rehash(hash, 0);
    }
    if shape.last.rows == 0 {
        return Probe::NEVER;
    }
    let hash = rehash(hash, shape.seed as u64);
    Probe::new(shape.width, shape.last.row(hash), hash)
}

/// Compares the fingerprint with the parity of the chosen rows, column by column.
#[inline(always)]
fn matches<W: Word>(width: usize, words: &[W], probe: &Probe) -> bool {
    let low = probe.coefficients << probe.shift;
    // Two shifts, so that a ribbon that ends with its group chooses nothing of the next one ...
    let high = probe.coefficients >> 1 >> (63 - probe.shift);
    // ... which may be past the end of the table.
    let next = probe.at + width * (probe.shift > 0) as usize;
    let (first, second) = (&words[probe.at..][..width], &words[next..][..width]);
    // Eight columns at a time: branchless, and the compiler unrolls it.
    let mut fingerprint = probe.fingerprint;
    let (firsts, seconds) = (first.chunks_exact(8), second.chunks_exact(8));
    let (first_rest, second_rest) = (firsts.remainder(), seconds.remainder());
    for (first, second) in firsts.zip(seconds) {
        let mut found = 0;
        for column in 0..8 {
            found |= parity((first[column].get() & low) ^ (second[column].get() & high)) << column;
        }
        if found != fingerprint & 0xFF {
            return false;
        }
        fingerprint >>= 8;
    }
    let mut found = 0;
    for (column, (first, second)) in first_rest.iter().zip(second_rest).enumerate() {
        found |= parity((first.get() & low) ^ (second.get() & high)) << column;
    }
    found == fingerprint
}

#[inline(always)]
fn parity(bits: u64) -> u32 {
    bits.count_ones() & 1
}

/// Compiled with the parity instruction that baseline x86_64 lacks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn contains_many_popcnt<W: Word>(
    shape: &RibbonShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    contains_many_anywhere(shape, words, hashes, out);
}

#[inline(always)]
fn contains_many_anywhere<W: Word>(
    shape: &RibbonShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    assert_eq!(hashes.len(), out.len(), "one answer for each hash");
    if words.is_empty() {
        return out.fill(false);
    }
    let width = shape.width as usize;
    let mut probes = [Probe::NEVER; BLOCK];
    for (hashes, out) in hashes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        for (probe, &hash) in probes.iter_mut().zip(hashes) {
            *probe = locate(shape, words, hash);
            for word in (0..2 * width).step_by(LINE_WORDS as usize) {
                prefetch(words, probe.at + word);
            }
            prefetch(words, probe.at + 2 * width - 1);
        }
        for (out, probe) in out.iter_mut().zip(&probes) {
            *out = matches(width, words, probe);
        }
    }
}

#[inline(always)]
fn prefetch<W>(words: &[W], at: usize) {
    if let Some(word) = words.get(at) {
        isa::prefetch(word);
    }
}

impl Sealed for RibbonShape {}

impl Timeless for RibbonShape {}

impl RibbonShape {
    /// What [`contains`](Layout::contains) reads.
    pub(crate) fn look<W: Word>(&self, words: &[W], hash: Hash) -> Look {
        if words.is_empty() {
            return Look::NOTHING;
        }
        let probe = locate(self, words, hash);
        let width = self.width as usize;
        let first = (probe.at / width) as u64 * RIBBON + u64::from(probe.shift);
        let cell = |nth: u64| {
            let at = first + nth;
            let group = &words[(at / RIBBON) as usize * width..][..width];
            let bit = |value: u64, (column, word): (usize, &W)| {
                value | (word.get() >> (at % RIBBON) & 1) << column
            };
            Cell {
                line: None,
                at,
                value: group.iter().enumerate().fold(0, bit),
            }
        };
        let chosen = (0..RIBBON).filter(|nth| probe.coefficients >> nth & 1 == 1);
        Look::Sum {
            fingerprint: probe.fingerprint.into(),
            cells: chosen.map(cell).collect(),
        }
    }
}

impl Layout for RibbonShape {
    const KIND: Kind = Kind::Ribbon;

    #[inline]
    fn body_len(&self) -> u64 {
        RibbonShape::body_len(self)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width, other.width)
            .or_else(|| Difference::between("rows", self.rows(), other.rows()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        !words.is_empty() && matches(self.width as usize, words, &locate(self, words, hash))
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        Explanation::of(self.look(words, hash))
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        #[cfg(target_arch = "x86_64")]
        if isa::Isa::best().has(isa::Level::Avx2) {
            // SAFETY: popcnt, bmi1 and bmi2 come with that level.
            return unsafe { contains_many_popcnt(self, words, hashes, out) };
        }
        contains_many_anywhere(self, words, hashes, out);
    }

    /// Nearly every row holds a key.
    fn keys_now<W: Word>(&self, _: &[W]) -> f64 {
        self.rows() as f64
    }
}
