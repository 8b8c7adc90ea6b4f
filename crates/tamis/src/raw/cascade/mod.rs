//! Cascade: a block list with an allow list, never wrong about a key on either.
//!
//! The first level is a ribbon filter of the block list, which wrongly accepts some keys of the
//! allow list. The second level is a one-bit ribbon table that has the right answer for every key
//! of the block list and every one of those false alarms, because a ribbon can also store "no" for
//! a key. So two levels are enough, where a cascade of Bloom filters needs one for the errors of
//! the previous one, and so on.
//!
//! A key on neither list passes the second level with probability 1/2, so the first may be one bit
//! narrower. The whole costs as much as a filter of the block list alone, plus about `2 · rate`
//! bits per key of the allow list: [`cascade_bound`](crate::plan::cascade_bound) is the least that
//! any structure needs.

mod shape;

pub use shape::CascadeShape;

use crate::error::Error;
use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::explain::{Explanation, Joined};
use crate::raw::layout::{BLOCK, Difference, Layout, Sealed, Timeless};
use crate::raw::word::Word;
use shape::HEAD_WORDS;

/// Gives the second level other rows and bits than the first.
const SECOND: u64 = 0x243F_6A88_85A3_08D3;

impl CascadeShape {
    #[inline(always)]
    fn levels<'w, W>(&self, words: &'w [W]) -> (&'w [W], &'w [W]) {
        words[HEAD_WORDS..].split_at((self.first().body_len() / 8) as usize)
    }
}

/// A key's hash in the second level. The keys' order is the same, so that both levels are built
/// from one sorted list.
#[inline(always)]
pub(crate) const fn second_hash(hash: Hash) -> Hash {
    Hash {
        hi: hash.hi,
        lo: mix(hash.lo ^ SECOND),
    }
}

impl Sealed for CascadeShape {}

impl Timeless for CascadeShape {}

impl Layout for CascadeShape {
    const KIND: Kind = Kind::Cascade;

    #[inline]
    fn body_len(&self) -> u64 {
        CascadeShape::body_len(self)
    }

    fn complete<W: Word>(self, words: &[W]) -> Result<Self, Error> {
        self.with_levels_of(words)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width(), other.width())
            .or_else(|| Difference::between("lines", self.lines(), other.lines()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        let (first, second) = self.levels(words);
        self.first().contains(first, hash) && self.second().contains(second, second_hash(hash))
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let (first, second) = self.levels(words);
        Explanation {
            joined: Joined::Levels,
            looks: vec![
                self.first().look(first, hash),
                self.second().look(second, second_hash(hash)),
            ],
        }
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        let (first, second) = self.levels(words);
        for (hashes, out) in hashes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            self.first().contains_many(first, hashes, out);
            // Most keys end here; only the others are looked up again.
            let mut passed = [0; BLOCK];
            let mut again = [Hash::default(); BLOCK];
            let mut count = 0;
            for (i, yes) in out.iter().enumerate() {
                (passed[count], again[count]) = (i, second_hash(hashes[i]));
                count += usize::from(*yes);
            }
            let mut decided = [false; BLOCK];
            let decided = &mut decided[..count];
            self.second()
                .contains_many(second, &again[..count], decided);
            for (&i, decided) in passed.iter().zip(decided) {
                out[i] = *decided;
            }
        }
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.first().keys_now(words)
    }
}
