//! Cascade: a block list with an allow list, wrong on no key of either.
//!
//! The first level is a ribbon filter of the block list. It takes some keys of
//! the allow list for blocked. The second level is a ribbon table of one bit
//! that decides them: for every key of the block list and every one of those
//! false alarms it has the right answer, since nothing stops a ribbon from
//! storing "no" for a key. So two levels are enough, where a cascade of Bloom
//! filters needs one for the errors of the one before, and so on.
//!
//! A key of neither list passes the second level with probability 1/2, so the
//! first may be one bit narrower, and the whole costs what a filter of the
//! block list alone would, and about `2 · rate` bits a key of the allow list:
//! [`cascade_bound`](crate::plan::cascade_bound) tells how near that is to what any structure needs.

use crate::error::Error;
use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::layout::{BLOCK, Difference, Layout, Sealed};
use crate::raw::ribbon::RibbonShape;
use crate::raw::word::Word;

/// The two levels of a [`Cascade`](crate::Cascade).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CascadeShape {
    /// 64-byte lines of the whole body.
    lines: u64,
    first: RibbonShape,
    second: RibbonShape,
}

/// The first line of the body holds the shapes of the levels.
const HEAD_WORDS: usize = 8;
/// 2^60 bytes: far beyond any machine, and no product below overflows.
const MAX_LINES: u64 = 1 << 54;
/// Makes the second level's rows and bits others than the first's.
const SECOND: u64 = 0x243F_6A88_85A3_08D3;

impl CascadeShape {
    /// What the header holds; the body has the rest.
    pub(crate) fn of_lines(lines: u64) -> Result<Self, Error> {
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(Error::corrupt("lines", "1 to 2^54", lines));
        }
        Ok(Self {
            lines,
            first: RibbonShape::EMPTY,
            second: RibbonShape::EMPTY,
        })
    }

    pub(crate) fn of_levels(first: RibbonShape, second: RibbonShape) -> Self {
        Self {
            lines: 1 + (first.body_len() + second.body_len()) / 64,
            first,
            second,
        }
    }

    /// The first line of the body.
    pub(crate) fn head(&self) -> [u64; HEAD_WORDS] {
        let [a, b, c] = self.first.encode();
        let [d, e, f] = self.second.encode();
        [a, b, c, d, e, f, 0, 0]
    }

    pub(crate) const fn lines(&self) -> u64 {
        self.lines
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines * 64
    }

    /// The level that holds the block list.
    pub const fn first(&self) -> &RibbonShape {
        &self.first
    }

    /// The level that decides.
    pub const fn second(&self) -> &RibbonShape {
        &self.second
    }

    /// The bits of a key's fingerprint in both levels: the rate of other keys
    /// is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.first.width() + self.second.width()
    }

    #[inline(always)]
    fn levels<'w, W>(&self, words: &'w [W]) -> (&'w [W], &'w [W]) {
        words[HEAD_WORDS..].split_at((self.first.body_len() / 8) as usize)
    }
}

/// The hash under which the second level knows a key. The order of the keys is
/// the same, so that both levels are built from one sorted list.
#[inline(always)]
pub(crate) const fn second_hash(hash: Hash) -> Hash {
    Hash {
        hi: hash.hi,
        lo: mix(hash.lo ^ SECOND),
    }
}

impl Sealed for CascadeShape {}

impl Layout for CascadeShape {
    const KIND: Kind = Kind::Cascade;

    fn complete<W: Word>(self, words: &[W]) -> Result<Self, Error> {
        let Some(head) = words.first_chunk::<HEAD_WORDS>() else {
            return Err(Error::corrupt("body", "a line of levels", "nothing"));
        };
        let [a, b, c, d, e, f, reserved @ ..] = head.each_ref().map(Word::get);
        let shape = Self {
            lines: self.lines,
            first: RibbonShape::decode([a, b, c])?,
            second: RibbonShape::decode([d, e, f])?,
        };
        if reserved != [0, 0] {
            return Err(Error::corrupt(
                "reserved words of the levels",
                "zero",
                "other",
            ));
        }
        let lines = (shape.first.body_len() / 64)
            .checked_add(shape.second.body_len() / 64 + 1)
            .filter(|lines| *lines == self.lines);
        match lines {
            Some(_) => Ok(shape),
            None => Err(Error::corrupt(
                "levels",
                format_args!("{} lines as the header says", self.lines),
                "others",
            )),
        }
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width(), other.width())
            .or_else(|| Difference::between("lines", self.lines, other.lines))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        let (first, second) = self.levels(words);
        self.first.contains(first, hash) && self.second.contains(second, second_hash(hash))
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        let (first, second) = self.levels(words);
        for (hashes, out) in hashes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            self.first.contains_many(first, hashes, out);
            // Most keys end here: only the others are asked again.
            let mut passed = [0; BLOCK];
            let mut again = [Hash::default(); BLOCK];
            let mut count = 0;
            for (i, yes) in out.iter().enumerate() {
                (passed[count], again[count]) = (i, second_hash(hashes[i]));
                count += usize::from(*yes);
            }
            let mut decided = [false; BLOCK];
            let decided = &mut decided[..count];
            self.second.contains_many(second, &again[..count], decided);
            for (&i, decided) in passed.iter().zip(decided) {
                out[i] = *decided;
            }
        }
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.first.keys_now(words)
    }
}
