//! The geometry of a cascade: two ribbons, described in the first line of the body.

use crate::error::Error;
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
pub(super) const HEAD_WORDS: usize = 8;
/// 2^60 bytes: far beyond any machine, and products below don't overflow.
const MAX_LINES: u64 = 1 << 54;

impl CascadeShape {
    /// The part in the header; the body has the rest.
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

    /// The level that denies false alarms.
    pub const fn second(&self) -> &RibbonShape {
        &self.second
    }

    /// The bits of a key's fingerprint in both levels: the rate for other keys is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.first.width() + self.second.width()
    }

    /// Adds the levels that the body describes, and checks them.
    pub(super) fn with_levels_of<W: Word>(self, words: &[W]) -> Result<Self, Error> {
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
        let lines = (shape.first.body_len() / 64).checked_add(shape.second.body_len() / 64 + 1);
        if lines != Some(self.lines) {
            return Err(Error::corrupt(
                "levels",
                format_args!("{} lines as the header says", self.lines),
                "others",
            ));
        }
        Ok(shape)
    }
}
