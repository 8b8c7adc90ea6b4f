//! The layout of a window in strings, and where its keys are.
//!
//! A window's generations are called periods here, because a filter's
//! generation is the number that distinguishes it from others of its name. A
//! key is in one chunk, whose first string is `NAME:{generation.i.j}`. It
//! begins with a head of 16 bytes:
//!
//! | bytes | |
//! | ---: | --- |
//! | 6 | the newest period of a key that was added |
//! | 1 | 1 once there is a newest period |
//! | 1 | the number of further strings: `NAME:{generation.i.j}:p1` and so on |
//! | 6 | the version, which every change increments |
//! | 2 | zero |
//!
//! Then come buckets, and a foot as in every chunk. A bucket has 7 bytes,
//! followed by slots for entries: a fingerprint with a stamp in the lowest
//! bits.
//!
//! | bytes | |
//! | ---: | --- |
//! | 6 | the period of stamp 1 |
//! | 1 | the stamp of the latest key that didn't fit into the bucket, or 0 |
//!
//! All numbers are big-endian. An entry whose period has left the window is
//! free, so periods share the room however unevenly keys arrive. A key whose
//! bucket is full goes to a bucket of the next string, whose entries are a byte
//! longer, so that all strings together keep the rate. Further strings are
//! created when a bucket is full, and dropped when all their entries have
//! expired.

use crate::Error;
use crate::chunks::{CHUNK_LINES, Chunk, LINE, chunks};
use std::ops::Range;
use tamis::internals::raw::{Header, Shape};
use tamis::{
    Hash, Kind, Moment,
    window::{Span, WindowOptions},
};

/// Length of a string's head.
pub(crate) const HEAD: u64 = 16;
/// Length of a bucket's head.
pub(crate) const BUCKET: usize = 7;
/// The largest bucket in bytes: reading more costs the server more.
const LONGEST_BUCKET: u64 = 511;
/// With fewer slots, buckets would fill up too unevenly.
const FEWEST_SLOTS: u64 = 24;
/// The largest entry of a first string, in bytes: scripts compute with 53 bits.
const WIDEST: u64 = 6;
/// How many standard deviations more keys than planned a bucket has room for.
/// The rest, one key in a thousand, goes to the second string.
const SPARE: f64 = 2.3;
/// The second string is a sixteenth of the first, and later ones double in
/// size, up to this many times the first.
const LARGEST: u64 = 16;
/// Periods that are kept beyond the window, for late keys and moments.
pub(crate) const LATE: i64 = 2;
/// The furthest period from 1970; six bytes hold twice as many.
const FURTHEST: i64 = 1 << 46;

/// A window and its strings.
#[derive(Clone, Debug)]
pub(crate) struct Sliding {
    options: WindowOptions,
    /// The length of a period, in microseconds.
    step: i64,
    /// Bits of an entry's stamp.
    stamp_bits: u32,
    slots: u64,
    /// Bytes of an entry in a first string.
    width: u64,
    /// Buckets in each first string.
    buckets: u64,
    /// The number of chunks.
    pub(crate) count: u64,
    /// The known strings of each chunk.
    pub(crate) chunks: Vec<Vec<Chunk>>,
    /// The highest version of each chunk that we have seen.
    pub(crate) versions: Vec<u64>,
    /// The newest period that we know of.
    pub(crate) newest: Option<i64>,
}

/// The geometry of one string of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) number: usize,
    buckets: u64,
    /// Bytes of an entry, and of a bucket.
    pub(crate) entry: usize,
    pub(crate) bucket: u64,
    pub(crate) stamp_bits: u32,
}

/// The position of a key in any string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) chunk: usize,
    /// Chooses the key's buckets.
    number: u32,
    /// The highest bits are its fingerprints.
    bits: u64,
}

impl Level {
    /// The length without the foot.
    pub(crate) const fn len(&self) -> u64 {
        HEAD + self.buckets * self.bucket
    }

    pub(crate) const fn buckets(&self) -> u64 {
        self.buckets
    }

    /// The start of a key's bucket, which differs from string to string.
    pub(crate) const fn start(&self, place: &Place) -> u64 {
        let odd = (2 * self.number as u32 + 1).wrapping_mul(0x9E37_79B1);
        let number = place.number.wrapping_mul(odd) as u64;
        HEAD + ((number * self.buckets) >> 32) * self.bucket
    }

    /// The entry of a key, without its stamp.
    pub(crate) const fn entry(&self, place: &Place) -> u64 {
        (place.bits >> (64 - 8 * self.entry as u32)) >> self.stamp_bits << self.stamp_bits
    }

    /// The probability that an entry matches a random key.
    fn rate(&self) -> f64 {
        (-f64::from(8 * self.entry as u32 - self.stamp_bits)).exp2()
    }
}

impl Sliding {
    /// The window of a header, without its chunks; an error if strings can't keep it.
    pub(crate) fn of(header: &Header) -> Result<Self, Error> {
        let Shape::Window(shape) = header.shape() else {
            return Err(not_a_window(header.shape().kind()));
        };
        let options = shape.options();
        let Span::Time(step) = options.band() else {
            return Err(by_keys());
        };
        let generations = u64::from(options.generation_count());
        let stamp_bits = (generations + 8).next_power_of_two().ilog2();
        // Each further string adds a 256th to the rate.
        let most = |width: u64| {
            let each = (-f64::from(8 * width as u32 - stamp_bits)).exp2();
            (header.rate() / each / 1.05) as u64
        };
        let width = (2..WIDEST).find(|width| most(*width) >= FEWEST_SLOTS);
        let width = width.unwrap_or(WIDEST);
        let slots = most(width).min((LONGEST_BUCKET - BUCKET as u64) / width);
        if slots < 4 {
            return Err(Error::Filter(tamis::Error::Parameter {
                what: "rate of a window in Redis",
                expected: "at least 1e-11",
                got: header.rate().to_string(),
            }));
        }
        // The keys of the span, and of the period that is being filled.
        let keys = header.capacity() as f64 * (1.0 + 1.0 / generations as f64);
        let mean = ((slots as f64 + SPARE * SPARE / 4.0).sqrt() - SPARE / 2.0).powi(2);
        let all = (keys / mean).ceil().max(1.0) as u64;
        let bucket = BUCKET as u64 + slots * width;
        let count = all.div_ceil((CHUNK_LINES * LINE - HEAD) / bucket);
        Ok(Self {
            options,
            step: step.as_micros() as i64,
            stamp_bits,
            slots,
            width,
            buckets: all.div_ceil(count),
            count,
            chunks: Vec::new(),
            versions: Vec::new(),
            newest: None,
        })
    }

    pub(crate) const fn options(&self) -> &WindowOptions {
        &self.options
    }

    pub(crate) fn generations(&self) -> i64 {
        self.options.generation_count().into()
    }

    const fn slots(&self) -> usize {
        self.slots as usize
    }

    pub(crate) fn period_of(&self, at: Moment) -> i64 {
        (at.micros().div_euclid(self.step)).clamp(-FURTHEST, FURTHEST)
    }

    /// The start of a period.
    pub(crate) const fn start_of(&self, period: i64) -> Moment {
        Moment::from_micros(period.saturating_mul(self.step))
    }

    /// The lines of all first strings together.
    pub(crate) fn lines(&self) -> u64 {
        (self.count * self.level(0).len()).div_ceil(LINE)
    }

    pub(crate) fn level(&self, number: usize) -> Level {
        let further = number as u64;
        let entry = self.width as usize + usize::from(number > 0);
        Level {
            number,
            buckets: match further {
                0 => self.buckets,
                1 => self.buckets.div_ceil(16),
                _ => self.buckets * (1u64 << (further - 2).min(60)).min(LARGEST),
            },
            entry,
            bucket: (BUCKET + self.slots() * entry) as u64,
            stamp_bits: self.stamp_bits,
        }
    }

    /// The first strings of some chunks.
    pub(crate) fn firsts(&self, name: &str, generation: u64, which: Range<u64>) -> Vec<Chunk> {
        let len = self.level(0).len();
        chunks(name, generation, self.lines(), which)
            .map(|chunk| Chunk { len, ..chunk })
            .collect()
    }

    /// Adds chunks, given their first strings.
    pub(crate) fn extend(&mut self, firsts: Vec<Chunk>) {
        let count = self.chunks.len() + firsts.len();
        self.chunks
            .extend(firsts.into_iter().map(|first| vec![first]));
        self.versions.resize(count, 0);
    }

    /// A string of a chunk.
    pub(crate) fn string(&self, chunk: usize, level: usize) -> Chunk {
        let first = &self.chunks[chunk][0];
        match level {
            0 => first.clone(),
            _ => Chunk {
                key: format!("{}:p{level}", first.key),
                slot: first.slot,
                len: self.level(level).len(),
            },
        }
    }

    /// Records the number of strings of a chunk.
    pub(crate) fn learn(&mut self, chunk: usize, strings: usize) {
        let known: Vec<Chunk> = (0..strings)
            .map(|level| self.string(chunk, level))
            .collect();
        self.chunks[chunk] = known;
    }

    /// Records a period.
    pub(crate) fn pass(&mut self, newest: Option<i64>) {
        self.newest = self.newest.max(newest);
    }

    pub(crate) fn place(&self, hash: Hash) -> Place {
        let hash = hash.as_u128();
        let high = (hash >> 64) as u64;
        Place {
            chunk: ((u128::from(high) * u128::from(self.count)) >> 64) as usize,
            number: high as u32,
            bits: hash as u64,
        }
    }

    /// The rate if a bucket of each string has this many live entries on
    /// average.
    pub(crate) fn rate_of(&self, live: &[f64]) -> f64 {
        let rates = (0..)
            .zip(live)
            .map(|(level, live)| live * self.level(level).rate());
        rates.sum::<f64>().min(1.0)
    }
}

/// The head of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) newest: Option<i64>,
    /// The number of strings that follow it.
    pub(crate) further: usize,
    pub(crate) version: u64,
}

impl Head {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let head = bytes.first_chunk::<{ HEAD as usize }>()?;
        Some(Self {
            newest: (head[6] == 1).then(|| signed(&head[..6])),
            further: head[7].into(),
            version: number(&head[8..14]),
        })
    }

    /// The head without the version.
    pub(crate) fn encode(&self) -> [u8; 8] {
        let mut head = [0; 8];
        if let Some(newest) = self.newest {
            head[..6].copy_from_slice(&newest.to_be_bytes()[2..]);
            head[6] = 1;
        }
        head[7] = self.further as u8;
        head
    }
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    (number(bytes) << 16).cast_signed() >> 16
}

/// A bucket of a string.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    level: Level,
    pub(crate) bytes: Vec<u8>,
}

impl Bucket {
    pub(crate) const fn new(level: Level, bytes: Vec<u8>) -> Self {
        Self { level, bytes }
    }

    /// The period of stamp 1.
    pub(crate) fn base(&self) -> i64 {
        signed(&self.bytes[..6])
    }

    pub(crate) fn set_base(&mut self, base: i64) {
        self.bytes[..6].copy_from_slice(&base.to_be_bytes()[2..]);
    }

    /// The stamp of the latest key that didn't fit.
    pub(crate) fn over(&self) -> u8 {
        self.bytes[6]
    }

    /// The period of the latest key that didn't fit.
    pub(crate) fn over_at(&self) -> Option<i64> {
        (self.over() > 0).then(|| self.base() + i64::from(self.over()) - 1)
    }

    pub(crate) fn raise_over(&mut self, stamp: u8) {
        self.bytes[6] = self.bytes[6].max(stamp);
    }

    /// Whether it was never written to.
    pub(crate) fn is_fresh(&self) -> bool {
        self.bytes[6] == 0 && self.entries().all(|entry| entry == 0)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> {
        self.bytes[BUCKET..].chunks(self.level.entry).map(number)
    }

    /// The period of an entry; `None` if the slot is empty.
    pub(crate) fn period_of(&self, entry: u64) -> Option<i64> {
        let stamp = entry & ((1 << self.level.stamp_bits) - 1);
        (stamp > 0).then(|| self.base() + stamp as i64 - 1)
    }

    /// The stamp of a period.
    pub(crate) fn stamp_of(&self, period: i64) -> u64 {
        (period - self.base() + 1) as u64
    }

    /// Whether a period is too late to have a stamp.
    pub(crate) fn is_outgrown(&self, period: i64) -> bool {
        period - self.base() + 1 >= 1 << self.level.stamp_bits
    }

    /// The slot of an entry with this fingerprint, seen in this period or
    /// later.
    pub(crate) fn find(&self, fingerprint: u64, oldest: i64) -> Option<usize> {
        let bits = self.level.stamp_bits;
        self.entries().position(|entry| {
            entry >> bits == fingerprint >> bits
                && self.period_of(entry).is_some_and(|period| period >= oldest)
        })
    }

    /// The first free slot and the number of free slots; entries older than
    /// `kept` count as free.
    pub(crate) fn free(&self, kept: i64) -> (Option<usize>, usize) {
        let is_free = |entry: u64| self.period_of(entry).is_none_or(|period| period < kept);
        let mut free = (0..)
            .zip(self.entries())
            .filter(|(_, entry)| is_free(*entry));
        let first = free.next().map(|(slot, _)| slot);
        (first, usize::from(first.is_some()) + free.count())
    }

    pub(crate) fn entry(&self, slot: usize) -> u64 {
        let at = BUCKET + slot * self.level.entry;
        number(&self.bytes[at..at + self.level.entry])
    }

    pub(crate) fn set(&mut self, slot: usize, entry: u64) {
        let at = BUCKET + slot * self.level.entry;
        let bytes = entry.to_be_bytes();
        self.bytes[at..at + self.level.entry].copy_from_slice(&bytes[8 - self.level.entry..]);
    }

    /// Moves stamp 1 to a later period, and drops older entries.
    pub(crate) fn move_to(&mut self, base: i64) {
        let by = base - self.base();
        let over = i64::from(self.over()) - by;
        for slot in 0..(self.bytes.len() - BUCKET) / self.level.entry {
            let entry = self.entry(slot);
            let kept = self.period_of(entry).is_some_and(|period| period >= base);
            self.set(slot, if kept { entry - by as u64 } else { 0 });
        }
        self.bytes[6] = over.max(0) as u8;
        self.set_base(base);
    }
}

fn not_a_window(kind: Kind) -> Error {
    Error::Filter(tamis::Error::Unable {
        kind,
        what: "asked for generations",
        instead: "they have no generations; create a window",
    })
}

/// Windows that count keys need a clock that servers can't share.
fn by_keys() -> Error {
    Error::Filter(tamis::Error::Unable {
        kind: Kind::Window,
        what: "kept in Redis if they span a number of keys",
        instead: "nodes of a cluster don't count together; use a window of time there",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tamis::{Hasher, Plan};

    fn window(keys: u64, rate: f64, generations: u32) -> Sliding {
        let span = Span::Time(Duration::from_secs(80));
        let options = WindowOptions::new(span).generations(generations);
        let plan = Plan::window(&options, keys, rate).unwrap();
        let mut window = Sliding::of(&Header::of_plan(&plan, Hasher::default())).unwrap();
        window.extend(window.firsts("seen", 9, 0..u64::MAX));
        window
    }

    /// Whatever the rate and the number of generations, a full bucket keeps the
    /// rate, and every key has a bucket.
    #[test]
    fn full_buckets_keep_the_rate() {
        for rate in [0.3, 0.01, 1e-3, 1e-4, 1e-6, 1e-10] {
            for generations in [1, 8, 24, 62] {
                let window = window(1_000_000, rate, generations);
                let full = [window.slots() as f64; 9];
                assert!(window.rate_of(&full) <= rate, "{rate} {generations}");
                let live = i64::from(generations) + LATE + 2;
                assert!(live < 1 << window.stamp_bits, "stamps to spare");
                for level in (0..9).map(|level| window.level(level)) {
                    assert!(level.entry <= 7);
                    for key in 0..200u32 {
                        let place = window.place(Hasher::default().hash(&key.to_le_bytes()));
                        assert!(level.start(&place) + level.bucket <= level.len());
                        let stamp = (1 << level.stamp_bits) - 1;
                        assert_eq!(level.entry(&place) & stamp, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn chunks_are_strings_of_one_size() {
        for keys in [1, 1_000, 3_000_000, 50_000_000] {
            let window = window(keys, 1e-4, 8);
            assert_eq!(window.chunks.len() as u64, window.count);
            let len = window.level(0).len();
            assert!(len <= CHUNK_LINES * LINE);
            assert!(window.chunks.iter().all(|strings| strings[0].len == len));
        }
    }

    #[test]
    fn a_head_is_what_was_written() {
        for newest in [None, Some(0), Some(-FURTHEST), Some(FURTHEST)] {
            let head = Head {
                newest,
                further: 3,
                version: 0,
            };
            let bytes = [head.encode(), [0; 8]].concat();
            assert_eq!(Head::decode(&bytes), Some(head));
        }
        assert_eq!(Head::decode(&[0; 15]), None);
    }

    /// Entries keep their periods when stamps start from a new base, and
    /// expired ones are dropped, however long the pause.
    #[test]
    fn stamps_begin_anew() {
        let window = window(1_000, 0.01, 8);
        let level = window.level(1);
        for pause in 0..40 {
            let empty = vec![0; level.bucket as usize];
            let mut bucket = Bucket::new(level, empty);
            assert!(bucket.is_fresh());
            bucket.set_base(-3);
            for (slot, period) in [-3, 0, 7, 11].into_iter().enumerate() {
                let stamp = bucket.stamp_of(period);
                bucket.set(slot, (slot as u64 + 1) << level.stamp_bits | stamp);
            }
            bucket.raise_over(bucket.stamp_of(7) as u8);
            bucket.move_to(-3 + pause);
            for (slot, period) in [-3, 0, 7, 11].into_iter().enumerate() {
                let entry = bucket.entry(slot);
                let expected = (period >= -3 + pause).then_some(period);
                assert_eq!(bucket.period_of(entry), expected);
                let found = bucket.find((slot as u64 + 1) << level.stamp_bits, period);
                assert_eq!(found, expected.map(|_| slot));
            }
            assert_eq!(bucket.over_at(), (pause <= 10).then_some(7));
            assert_eq!(bucket.is_fresh(), pause > 14);
        }
    }
}
