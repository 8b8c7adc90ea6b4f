//! Where a key's blocks and bits are, and which generation a moment is in.

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::moment::Moment;
use crate::raw::isa::Isa;
use std::time::Duration;

/// The most generations of a window: an answer reads a block of each.
pub(crate) const MAX_GENERATIONS: u32 = 62;
/// Columns: a generation each, [`MORE`] besides. Which of them have a key is a bit
/// for each of a word.
pub(crate) const MAX_COLUMNS: usize = (MAX_GENERATIONS + MORE) as usize;
/// A generation that is being filled, and one that is over for keys in order, but not for those
/// that are late by up to a generation, or whose clock is.
const MORE: u32 = 2;
/// The shortest generation. Its numbers then have room in a word beside a tag.
const SHORTEST: u64 = 1_000;
/// The longest: what moments span.
const LONGEST: u64 = 20_000 * 366 * 86_400 * 1_000_000;
const MAX_ROWS: u64 = 1 << 48;

/// Words of a run: what is looked at first of each generation. With two, an absent key is seldom
/// in doubt in one of them, and with one it mostly is.
pub(crate) const RUN: usize = 2;
/// Words of the head before those of the columns, which are two each; see `head.rs`.
pub(super) const FIXED: usize = 4;
/// Most words of a block.
pub(crate) const MAX_BLOCK: usize = 16;
/// A word has so many bits for keys, and [`TAG_BITS`] that say whose they are.
pub(crate) const WORD_BITS: u32 = 64 - TAG_BITS;
pub(crate) const TAG_BITS: u32 = 4;
/// Divides a word's bits into up to six slices.
pub(crate) const MAX_SLICES: u32 = 6;

/// What a window spans.
///
/// ```
/// use std::time::Duration;
/// use tamis::Span;
/// assert_ne!(Span::Time(Duration::from_secs(60)), Span::Keys(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A time: "seen in the last 24 hours".
    Time(Duration),
    /// A number of keys told new: "among the last ten million".
    Keys(u64),
}

/// When a key is told new again.
///
/// ```
/// use tamis::Renewal;
/// assert_ne!(Renewal::Within, Renewal::Quiet);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// A span after it was told new, however often it was seen since.
    Within,
    /// A span after it was last seen: every sighting renews it.
    Quiet,
}

/// What a window remembers, and how exactly it forgets.
///
/// ```
/// use std::time::Duration;
/// use tamis::{Renewal, Span, WindowOptions};
/// let day = Span::Time(Duration::from_secs(86_400));
/// let options = WindowOptions::new(day).generations(24).renewal(Renewal::Quiet);
/// assert_eq!(options.band(), Span::Time(Duration::from_secs(3_600)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "does nothing by itself"]
pub struct WindowOptions {
    pub(crate) span: Span,
    pub(crate) generations: u32,
    pub(crate) renewal: Renewal,
}

impl WindowOptions {
    /// A window of this span in 8 generations, in which keys are not renewed.
    pub const fn new(span: Span) -> Self {
        Self {
            span,
            generations: 8,
            renewal: Renewal::Within,
        }
    }

    /// In how many generations the span is divided, 1 to 62. A key is forgotten
    /// within one generation after the span. More of them forget more exactly
    /// and cost more time, as each is asked.
    pub const fn generations(mut self, generations: u32) -> Self {
        self.generations = generations;
        self
    }

    /// When a key is told new again.
    pub const fn renewal(mut self, renewal: Renewal) -> Self {
        self.renewal = renewal;
        self
    }

    /// What it remembers.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// In how many generations.
    pub const fn generation_count(&self) -> u32 {
        self.generations
    }

    /// When a key is told new again.
    pub const fn renewed(&self) -> Renewal {
        self.renewal
    }

    /// What one generation spans: how much longer than the span a key may be
    /// remembered.
    pub fn band(&self) -> Span {
        let generations = u64::from(self.generations.max(1));
        match self.span {
            Span::Time(span) => {
                let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
                Span::Time(Duration::from_micros(micros.div_ceil(generations)))
            }
            Span::Keys(keys) => Span::Keys(keys.div_ceil(generations)),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if !(1..=MAX_GENERATIONS).contains(&self.generations) {
            return Err(Error::parameter("generations", "1 to 62", self.generations));
        }
        match (self.span, self.band()) {
            (Span::Keys(0), _) => Err(Error::parameter("window", "at least 1 key", 0)),
            (Span::Time(span), Span::Time(step)) => {
                if step < Duration::from_micros(SHORTEST) {
                    let expected = "at least a millisecond for each generation";
                    Err(Error::parameter(
                        "window",
                        expected,
                        format_args!("{span:?}"),
                    ))
                } else if step > Duration::from_micros(LONGEST) {
                    Err(Error::parameter(
                        "window",
                        "at most 20,000 years",
                        format_args!("{span:?}"),
                    ))
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }
}

/// The geometry of a [`Window`](crate::Window): a row of blocks, one for each
/// generation, for each of many groups of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowShape {
    rows: u64,
    columns: u32,
    /// Words of a block, in runs.
    block: u32,
    slices: u32,
    renewal: Renewal,
    /// Whether it counts keys, or microseconds.
    by_keys: bool,
    /// What a generation lasts.
    step: u64,
    /// Words of the head and of a row, which follow from the above.
    head_words: u32,
    row_words: u32,
    pub(super) isa: Isa,
}

impl WindowShape {
    /// For a window of `rows` rows, whose blocks have `block` words (4, 8 or 16)
    /// with `slices` bits of a key in each (1 to 6).
    pub fn new(options: &WindowOptions, rows: u64, block: u32, slices: u32) -> Result<Self, Error> {
        options.check()?;
        let (by_keys, step) = match options.band() {
            Span::Time(step) => (false, step.as_micros() as u64),
            Span::Keys(keys) => (true, keys),
        };
        let columns = options.generations + MORE;
        Self::checked(rows, columns, block, slices, options.renewal, by_keys, step)
    }

    fn checked(
        rows: u64,
        columns: u32,
        block: u32,
        slices: u32,
        renewal: Renewal,
        by_keys: bool,
        step: u64,
    ) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| Err(Error::parameter(what, expected, got));
        if !(1..=MAX_ROWS).contains(&rows) {
            return refuse("rows", "1 to 2^48", rows);
        }
        if !(1 + MORE..=MAX_COLUMNS as u32).contains(&columns) {
            return refuse("columns", "3 to 64", columns.into());
        }
        if !matches!(block, 4 | 8 | 16) {
            return refuse("words of a block", "4, 8 or 16", block.into());
        }
        if !(1..=MAX_SLICES).contains(&slices) {
            return refuse("slices of a word", "1 to 6", slices.into());
        }
        let steps = if by_keys {
            1..=1 << 56
        } else {
            SHORTEST..=LONGEST
        };
        if !steps.contains(&step) {
            return refuse(
                "length of a generation",
                "1 ms to 20,000 years, or 1 to 2^56 keys",
                step,
            );
        }
        Ok(Self {
            rows,
            columns,
            block,
            slices,
            renewal,
            by_keys,
            step,
            head_words: (FIXED as u32 + 2 * columns).next_multiple_of(8),
            row_words: columns * block,
            isa: Isa::best(),
        })
    }

    /// Three words of the header.
    pub(crate) fn encode(&self) -> (u64, u32, u32, u64) {
        let a = self.columns | self.block << 8 | self.slices << 16;
        let b = u32::from(self.by_keys) | u32::from(self.renewal == Renewal::Quiet) << 1;
        (self.rows, a, b, self.step)
    }

    pub(crate) fn decode(rows: u64, a: u32, b: u32, step: u64) -> Result<Self, Error> {
        if a >> 24 != 0 || b >> 2 != 0 {
            return Err(Error::corrupt(
                "shape of a window",
                "known flags",
                format_args!("{a:#x}, {b:#x}"),
            ));
        }
        let renewal = match b >> 1 & 1 {
            0 => Renewal::Within,
            _ => Renewal::Quiet,
        };
        Self::checked(
            rows,
            a & 0xFF,
            a >> 8 & 0xFF,
            a >> 16,
            renewal,
            b & 1 == 1,
            step,
        )
    }

    #[cfg(test)]
    pub(super) fn on(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// The number of rows.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Generations, one that is being filled, and one for keys that are late.
    #[inline]
    pub const fn columns(&self) -> usize {
        self.columns as usize
    }

    /// Words of a block: 4, 8 or 16.
    #[inline]
    pub const fn block(&self) -> usize {
        self.block as usize
    }

    /// Bits of a key in each word of a block.
    #[inline]
    pub const fn slices(&self) -> u32 {
        self.slices
    }

    /// What it remembers, and how exactly it forgets.
    pub const fn options(&self) -> WindowOptions {
        let generations = self.columns - MORE;
        let span = self.step.saturating_mul(generations as u64);
        WindowOptions {
            span: match self.by_keys {
                true => Span::Keys(span),
                false => Span::Time(Duration::from_micros(span)),
            },
            generations,
            renewal: self.renewal,
        }
    }

    /// Whether its clock is the number of keys.
    #[inline]
    pub const fn is_by_keys(&self) -> bool {
        self.by_keys
    }

    #[inline]
    pub(crate) fn is_renewed(&self) -> bool {
        self.renewal == Renewal::Quiet
    }

    /// The length of a generation, in microseconds or keys.
    pub(crate) const fn step(&self) -> u64 {
        self.step
    }

    /// The oldest generation that counts for a question about this one.
    #[inline]
    pub(crate) const fn oldest_for(&self, generation: i64) -> i64 {
        generation - (self.columns - MORE) as i64
    }

    /// The number of a moment's generation.
    #[inline]
    pub(crate) const fn generation_of(&self, at: Moment) -> i64 {
        at.micros().div_euclid(self.step as i64)
    }

    /// The column of a generation.
    #[inline]
    pub(crate) const fn column_of(&self, generation: i64) -> usize {
        generation.rem_euclid(self.columns as i64) as usize
    }

    /// Words of the head: what the generations are, before the rows.
    #[inline]
    pub(crate) const fn head_words(&self) -> usize {
        self.head_words as usize
    }

    /// Words of a row.
    #[inline]
    pub(crate) const fn row_words(&self) -> usize {
        self.row_words as usize
    }

    pub(crate) const fn body_len(&self) -> u64 {
        let words = self.rows * self.row_words() as u64 + self.head_words() as u64;
        words.next_multiple_of(8) * 8
    }

    /// The word where the key's row begins.
    #[inline(always)]
    pub(super) fn row_of(&self, hash: Hash) -> usize {
        self.head_words() + reduce(hash.hi, self.rows) as usize * self.row_words()
    }
}
