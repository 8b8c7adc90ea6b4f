//! The options of a window, and the places of its tables, bins and slots.

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::moment::Moment;
use crate::raw::isa::Isa;
use crate::raw::window::lanes::Lanes;
use std::time::Duration;

/// The most generations of a window.
pub(crate) const MAX_GENERATIONS: u32 = 62;
/// Generations kept besides those of the span: the one being filled, and one for queries that are
/// up to a generation late.
const MORE: u32 = 2;
/// The shortest generation, in microseconds.
const SHORTEST: u64 = 1_000;
/// The longest: the range of moments.
const LONGEST: u64 = 20_000 * 366 * 86_400 * 1_000_000;
const MAX_BINS: u64 = 1 << 48;
/// Words of the head before the tables; see `head.rs`.
const HEAD: usize = 8;
/// Words that share one epoch: 32 KiB, so that epochs stay in the cache, and removing a page's
/// forgotten keys takes a few microseconds.
pub(crate) const PAGE: usize = 4096;
/// Each table after the first holds twice the keys of the previous one, so this many exceed any
/// memory.
pub(crate) const MAX_TABLES: u32 = 24;

/// What a window spans.
///
/// ```
/// use std::time::Duration;
/// use tamis::window::Span;
/// assert_ne!(Span::Time(Duration::from_secs(60)), Span::Keys(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A time: "seen in the last 24 hours".
    Time(Duration),
    /// A number of new keys: "among the last ten million".
    Keys(u64),
}

/// When a key is reported as new again.
///
/// ```
/// use tamis::window::Renewal;
/// assert_ne!(Renewal::Within, Renewal::Quiet);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// A span after it was reported as new, however often it was seen since.
    Within,
    /// A span after it was last seen: every sighting renews it.
    Quiet,
}

/// The options of a window: what to remember, and how precisely to forget.
///
/// ```
/// use std::time::Duration;
/// use tamis::window::{Renewal, Span, WindowOptions};
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
    /// A window of this span in 8 generations, without renewal.
    pub const fn new(span: Span) -> Self {
        Self {
            span,
            generations: 8,
            renewal: Renewal::Within,
        }
    }

    /// The number of generations in the span, 1 to 62. A key is forgotten within one generation
    /// after the span. More generations forget more precisely, but take more time, because look-ups
    /// read each.
    pub const fn generations(mut self, generations: u32) -> Self {
        self.generations = generations;
        self
    }

    /// When a key is reported as new again.
    pub const fn renewal(mut self, renewal: Renewal) -> Self {
        self.renewal = renewal;
        self
    }

    /// The span it remembers.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The number of generations in the span.
    pub const fn generation_count(&self) -> u32 {
        self.generations
    }

    /// When a key is reported as new again.
    pub const fn renewed(&self) -> Renewal {
        self.renewal
    }

    /// The length of one generation: how much longer than the span a key may be remembered.
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

/// The possible widths of slots: 4 of 16 bits per word, 3 of 21, 2 of 32, or 1 of 64.
const WIDTHS: [u32; 4] = [16, 21, 32, 64];
/// Words of a bin in tables added to a full window, for each width.
const GROWN_BINS: [u32; 4] = [4, 4, 4, 8];

/// The share of a table's slots, in 256ths, that keys may take with this many slots per bin. Up to
/// that, keys that find both bins full can make room by moving others: in simulations of sliding
/// windows fewer than one in ten million failed.
const fn load_of(slots: u32) -> Option<u64> {
    match slots {
        6 => Some(208),
        8 => Some(218),
        12 => Some(230),
        16 => Some(236),
        24 => Some(245),
        32 => Some(248),
        _ => None,
    }
}

/// The geometry of a [`Window`](crate::Window): tables of bins of slots. Nearly always one table;
/// others follow one that became too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowShape {
    /// Of the first table.
    bins: u64,
    /// The first table's slot width, as an index of [`WIDTHS`].
    width: u32,
    /// Words of a bin of the first table: 2, 4 or 8.
    bin_words: u32,
    tables: u32,
    renewal: Renewal,
    /// Whether it counts keys, or microseconds.
    by_keys: bool,
    /// What it remembers.
    span: u64,
    /// The requested number of generations in the span.
    generations: u32,
    /// The length of a generation. This and the rest follow from the above.
    step: u64,
    /// Actual generations in the span: fewer than requested if the span is only a few keys.
    in_span: u32,
    stamp_bits: u32,
    newest: Table,
    /// Words of the body.
    words: u64,
    /// The instructions to use.
    pub(super) isa: Isa,
}

impl WindowShape {
    /// For a window whose first table has `bins` bins of `bin_words` words (2, 4 or 8), with slots
    /// of `width` bits (16, 21, 32 or 64).
    pub fn new(
        options: &WindowOptions,
        bins: u64,
        bin_words: u32,
        width: u32,
    ) -> Result<Self, Error> {
        options.check()?;
        let (by_keys, span) = match options.span {
            Span::Time(span) => (false, span.as_micros() as u64),
            Span::Keys(keys) => (true, keys),
        };
        let code = WIDTHS.iter().position(|w| *w == width).unwrap_or(4);
        let a = options.generations | (code as u32) << 8 | bin_words << 16 | 1 << 24;
        let quiet = u32::from(options.renewal == Renewal::Quiet) << 1;
        Self::decode(bins, a, u32::from(by_keys) | quiet, span)
    }

    /// Three words of the header.
    pub(crate) fn encode(&self) -> (u64, u32, u32, u64) {
        let a = self.generations | self.width << 8 | self.bin_words << 16 | self.tables << 24;
        let b = u32::from(self.by_keys) | u32::from(self.renewal == Renewal::Quiet) << 1;
        (self.bins, a, b, self.span)
    }

    pub(crate) fn decode(bins: u64, a: u32, b: u32, span: u64) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| Err(Error::parameter(what, expected, got));
        if b >> 2 != 0 {
            return refuse("flags of a window", "at most 3", b.into());
        }
        let [generations, width, bin_words, tables] = a.to_le_bytes().map(u32::from);
        if !(1..=MAX_GENERATIONS).contains(&generations) {
            return refuse("generations", "1 to 62", generations.into());
        }
        let Some(&bits) = WIDTHS.get(width as usize) else {
            return refuse("width of slots", "16, 21, 32 or 64 bits", width.into());
        };
        let slots = 64 / bits * bin_words;
        if !matches!(bin_words, 2 | 4 | 8) || load_of(slots).is_none() {
            return refuse(
                "words of a bin",
                "2, 4 or 8 with 6 slots or more",
                bin_words.into(),
            );
        }
        if !(2..=MAX_BINS).contains(&bins) {
            return refuse("bins", "2 to 2^48", bins);
        }
        if !(1..=MAX_TABLES).contains(&tables) {
            return refuse("tables of a window", "1 to 24", tables.into());
        }
        let by_keys = b & 1 == 1;
        let step = span.div_ceil(generations.into());
        let steps = if by_keys {
            1..=1 << 56
        } else {
            SHORTEST..=LONGEST
        };
        if !steps.contains(&step) {
            let expected = "1 ms to 20,000 years, or 1 to 2^56 keys";
            return refuse("length of a generation", expected, step);
        }
        let in_span = span.div_ceil(step) as u32;
        let stamp_bits = stamp_bits(in_span);
        let mut shape = Self {
            newest: Table::new(HEAD, bins, bin_words, bits, stamp_bits),
            words: 0,
            isa: Isa::best(),
            bins,
            width,
            bin_words,
            tables,
            renewal: if b >> 1 == 1 {
                Renewal::Quiet
            } else {
                Renewal::Within
            },
            by_keys,
            span,
            generations,
            step,
            in_span,
            stamp_bits,
        };
        let words = (0..tables).map(|number| shape.words_of(number));
        let words = HEAD as u128 + words.sum::<u128>();
        if words >= 1 << 57 {
            return refuse("bins", "fewer than fill 2^60 bytes", bins);
        }
        shape.words = words as u64;
        shape.newest = shape.table(tables - 1);
        Ok(shape)
    }

    pub(crate) fn first_table_only(self) -> Self {
        let (bins, a, b, span) = self.encode();
        Self::decode(bins, a & 0xFF_FFFF | 1 << 24, b, span).unwrap_or(self)
    }

    /// The same window with one more table; `None` if there are too many.
    pub(crate) fn grown(self) -> Option<Self> {
        let (bins, a, b, span) = self.encode();
        Self::decode(bins, a.checked_add(1 << 24)?, b, span).ok()
    }

    /// Keys that the first table holds at no more than the planned rate.
    fn room_of_first(&self) -> u64 {
        let slots = 64 / WIDTHS[self.width as usize] * self.bin_words;
        self.bins * u64::from(slots) * load_of(slots).unwrap_or(0) / 256
    }

    /// Bins of a table: those after the first hold twice the keys of the previous one.
    fn bins_of(&self, table: u32) -> u128 {
        if table == 0 {
            return self.bins.into();
        }
        let code = (self.width + table).min(3) as usize;
        let slots = 64 / WIDTHS[code] * GROWN_BINS[code];
        let room = u128::from(self.room_of_first()) << table;
        let each = u128::from(slots) * u128::from(load_of(slots).unwrap_or(1));
        (room * 256).div_ceil(each).max(2)
    }

    /// Words of a table: counts, epochs and bins.
    fn words_of(&self, table: u32) -> u128 {
        let bin_words = match table {
            0 => self.bin_words,
            _ => GROWN_BINS[(self.width + table).min(3) as usize],
        };
        let words = self.bins_of(table) * u128::from(bin_words);
        let epochs = words.div_ceil(PAGE as u128).next_multiple_of(8);
        (1u128 << self.stamp_bits).next_multiple_of(8) + epochs + words.next_multiple_of(8)
    }

    /// The tables, oldest first.
    pub(crate) fn tables(&self) -> impl DoubleEndedIterator<Item = Table> + Clone + use<> {
        let shape = *self;
        (0..self.tables).map(move |table| shape.table(table))
    }

    /// The table for new keys.
    #[inline]
    pub(crate) const fn newest_table(&self) -> &Table {
        &self.newest
    }

    #[inline]
    fn table(&self, number: u32) -> Table {
        let first = self.table_from(0, HEAD);
        (1..=number).fold(first, |last, number| self.table_from(number, last.end))
    }

    #[inline]
    fn table_from(&self, number: u32, ring: usize) -> Table {
        let code = (self.width + number).min(3) as usize;
        let (bins, bin_words) = match number {
            0 => (self.bins, self.bin_words),
            _ => (self.bins_of(number) as u64, GROWN_BINS[code]),
        };
        Table::new(ring, bins, bin_words, WIDTHS[code], self.stamp_bits)
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.words * 8
    }

    /// Bins of the first table.
    pub const fn bins(&self) -> u64 {
        self.bins
    }

    /// Slots of a bin of the first table.
    pub const fn slots_of_bin(&self) -> u32 {
        64 / self.slot_bits() * self.bin_words
    }

    /// Bits of a slot of the first table: 16, 21, 32 or 64.
    pub const fn slot_bits(&self) -> u32 {
        WIDTHS[self.width as usize]
    }

    /// The number of tables: one, unless more keys came than it was made for.
    pub const fn table_count(&self) -> u32 {
        self.tables
    }

    /// Its options: what to remember, and how precisely to forget.
    pub const fn options(&self) -> WindowOptions {
        WindowOptions {
            span: match self.by_keys {
                true => Span::Keys(self.span),
                false => Span::Time(Duration::from_micros(self.span)),
            },
            generations: self.generations,
            renewal: self.renewal,
        }
    }

    /// Whether it counts keys instead of time.
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

    /// Generations whose keys take room: those of the span, the one being filled, and one for late
    /// queries.
    pub(crate) const fn kept(&self) -> u32 {
        self.in_span + MORE
    }

    /// The most slots that `keys` keys in every span take, if they come evenly.
    pub(crate) fn slots_for(&self, keys: u64) -> u128 {
        let (kept, span) = (u128::from(self.kept()), u128::from(self.in_span));
        (u128::from(keys) * kept).div_ceil(span)
    }

    /// The oldest generation that a query at this one covers.
    #[inline]
    pub(crate) const fn oldest_for(&self, generation: i64) -> i64 {
        generation - self.in_span as i64
    }

    /// The number of a moment's generation.
    #[inline]
    pub(crate) const fn generation_of(&self, at: Moment) -> i64 {
        at.micros().div_euclid(self.step as i64)
    }
}

/// Bits of a stamp: enough to distinguish the kept generations from at least half as many others,
/// so that a writer may be that late without confusion.
const fn stamp_bits(in_span: u32) -> u32 {
    let kept = in_span + MORE;
    let spare = if kept / 2 > 4 { kept / 2 } else { 4 };
    (kept + spare).next_power_of_two().trailing_zeros()
}

/// One table of a window, as word indices in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Where the counts of its generations start.
    pub(crate) ring: usize,
    /// Where the epochs of its pages begin.
    pub(crate) epochs: usize,
    /// Where its bins begin.
    pub(crate) words: usize,
    /// Where it ends.
    pub(crate) end: usize,
    pub(crate) bins: u64,
    pub(crate) bin_words: usize,
    pub(crate) lanes: Lanes,
}

/// A key in a table: its home bin, and the part stored in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) home: u64,
    pub(crate) print: u64,
}

/// The possible places of a key, and the part stored in a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    /// The first words of its home bin and of its second one.
    pub(crate) firsts: [usize; 2],
    /// Its fingerprint in every slot of a word.
    pub(crate) prints: u64,
}

impl Table {
    fn new(ring: usize, bins: u64, bin_words: u32, width: u32, stamp_bits: u32) -> Self {
        let words = bins as usize * bin_words as usize;
        let epochs = ring + (1usize << stamp_bits).next_multiple_of(8);
        let first = epochs + words.div_ceil(PAGE).next_multiple_of(8);
        Self {
            ring,
            epochs,
            words: first,
            end: first + words.next_multiple_of(8),
            bins,
            bin_words: bin_words as usize,
            lanes: Lanes::new(width, stamp_bits),
        }
    }

    /// The planned number of slots for keys.
    pub(crate) fn room(&self) -> u64 {
        let slots = self.slots_of_bin();
        self.bins * u64::from(slots) * load_of(slots).unwrap_or(0) / 256
    }

    /// The number of slots that keys may take before another table is needed: half of the rest is
    /// reserved, because streams are never quite even and bins differ.
    pub(crate) fn most(&self) -> u64 {
        let slots = self.bins * u64::from(self.slots_of_bin());
        slots - (slots - self.room()) / 2
    }

    pub(crate) const fn slots_of_bin(&self) -> u32 {
        self.lanes.per_word() * self.bin_words as u32
    }

    /// The number of distinguishable pairs of home and fingerprint.
    pub(crate) fn different(&self) -> f64 {
        self.bins as f64 * self.lanes.prints as f64
    }

    #[inline(always)]
    pub(crate) fn entry(&self, hash: Hash) -> Entry {
        Entry {
            home: reduce(hash.hi, self.bins),
            print: 1 + reduce(hash.lo, self.lanes.prints),
        }
    }

    /// The possible places of an entry.
    #[inline(always)]
    pub(crate) fn spot(&self, entry: Entry) -> Spot {
        debug_assert!(entry.home < self.bins);
        Spot {
            firsts: [entry.home, self.second(entry)].map(|bin| self.bin(bin)),
            prints: self.lanes.all(entry.print),
        }
    }

    /// The possible places of a key.
    #[inline(always)]
    pub(crate) fn spot_of(&self, hash: Hash) -> Spot {
        self.spot(self.entry(hash))
    }

    /// The second bin of an entry.
    #[inline(always)]
    pub(crate) fn second(&self, entry: Entry) -> u64 {
        let spread = entry.print.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bin = entry.home + 1 + reduce(spread, self.bins - 1);
        if bin >= self.bins {
            bin - self.bins
        } else {
            bin
        }
    }

    /// The home of an entry found in its second bin.
    pub(crate) fn home_of(&self, second: u64, print: u64) -> u64 {
        let ahead = self.second(Entry { home: 0, print });
        if second >= ahead {
            second - ahead
        } else {
            second + self.bins - ahead
        }
    }

    /// The index of a bin's first word.
    #[inline(always)]
    pub(crate) fn bin(&self, bin: u64) -> usize {
        self.words + bin as usize * self.bin_words
    }

    /// The index of the epoch for the page of a bin's word.
    #[inline(always)]
    pub(crate) fn epoch_of(&self, word: usize) -> usize {
        self.epochs + (word - self.words) / PAGE
    }

    /// The words of the page that this epoch is for.
    pub(crate) fn page_of(&self, epoch: usize) -> std::ops::Range<usize> {
        let first = self.words + (epoch - self.epochs) * PAGE;
        first..(first + PAGE).min(self.words + self.bins as usize * self.bin_words)
    }
}
