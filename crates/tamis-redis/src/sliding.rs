//! Which commands ask and change a window, and what their answers mean.
//!
//! A window's generations are called periods here: a filter's generation is the
//! number that tells it from others of its name. Each period is a body of its
//! own, cut into chunks like any other, and chunk `i` of every period is in the
//! same slot: the strings `NAME:{generation.i.j}:pPERIOD`, which expire by
//! themselves, and next to them their ledger, `NAME:{generation.i.j}`. The ledger
//! has `PERIOD:END ` of each string that was made, the time in milliseconds
//! when it ends, and then a foot like every chunk. What it lists and is not
//! there is lost; what it does not list was never made, or is over.

use crate::chunks::{CHUNK_LINES, Chunk, FOOT, Foot, LINE};
use crate::packed::Packed;
use crate::request::Request;
use redis::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use tamis::raw::WindowShape;
use tamis::{Hash, Moment, Renewal, Span};

/// Asks and adds, in one step on the server.
const SCRIPT: &str = include_str!("window.lua");
/// Blocks that one step reads: enough to share its cost, few enough not to hold
/// up other clients of the server.
const BLOCKS_PER_COMMAND: usize = 512;
/// Strings outlive the window by another window, but by no more than this.
const LONGEST_SLACK: Duration = Duration::from_secs(24 * 3_600);
/// No moment is in a period further from 1970, and no sum of two overflows.
const FURTHEST: i64 = 1 << 60;
/// Arguments before the periods.
const FIXED: usize = 11;

/// A window, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Sliding {
    shape: WindowShape,
    /// What a period lasts, in microseconds.
    step: i64,
    /// One for each chunk of a period, with the key of its ledger.
    pub(crate) chunks: Vec<Chunk>,
    /// For each of them, the periods that have strings, as far as we know.
    known: Vec<BTreeSet<i64>>,
    /// The newest of all periods that we have heard of.
    pub(crate) newest: Option<i64>,
}

/// How keys are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Whether the periods are those of our clock, or of times that were given.
    pub(crate) clock: bool,
    pub(crate) replicated: bool,
}

/// A batch of steps: each request is about some keys in one chunk. Behind them
/// may be others, which the caller has added.
#[derive(Default)]
pub(crate) struct Steps {
    pub(crate) requests: Vec<Request>,
    spans: Vec<About>,
}

/// What a step is about.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) chunk: usize,
    pub(crate) period: i64,
    pub(crate) keys: Vec<u32>,
}

/// What a step is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Answers {
        /// The period that counted.
        period: i64,
        newest: i64,
        new: Vec<bool>,
    },
    /// The window has passed the period: nothing was added.
    Old {
        newest: i64,
    },
    /// There are strings of these periods, too.
    More(Vec<i64>),
    Missing(String),
}

/// Where a key is.
pub(crate) struct Place {
    /// Which of the caller's.
    pub(crate) key: u32,
    pub(crate) chunk: usize,
    pub(crate) period: i64,
    /// Where its block begins.
    pub(crate) start: u64,
    /// Its bits there: of each the byte, and its number as Redis counts, from the
    /// most significant.
    pub(crate) bits: Vec<u8>,
}

impl Place {
    /// Whether a block, and what may be behind it, has the key.
    pub(crate) fn is_in(&self, block: &[u8]) -> bool {
        let bits = self.bits.as_chunks::<2>().0;
        let set = |[byte, bit]: &[u8; 2]| {
            let byte = block.get(usize::from(*byte)).copied().unwrap_or(0);
            byte >> (7 - bit) & 1 == 1
        };
        bits.iter().all(set)
    }
}

impl Sliding {
    /// `None` if the window has no clock.
    pub(crate) fn new(shape: WindowShape, chunks: Vec<Chunk>) -> Option<Self> {
        let Span::Time(step) = shape.options().band() else {
            return None;
        };
        Some(Self {
            shape,
            step: i64::try_from(step.as_micros()).ok()?,
            known: vec![BTreeSet::new(); chunks.len()],
            chunks,
            newest: None,
        })
    }

    pub(crate) const fn shape(&self) -> &WindowShape {
        &self.shape
    }

    pub(crate) fn generations(&self) -> i64 {
        self.shape.options().generation_count().into()
    }

    pub(crate) const fn period_of(&self, at: Moment) -> i64 {
        at.micros().div_euclid(self.step)
    }

    /// When a period begins.
    pub(crate) const fn start_of(&self, period: i64) -> Moment {
        Moment::from_micros(period.saturating_mul(self.step))
    }

    /// What a period lasts.
    pub(crate) const fn step(&self) -> Duration {
        Duration::from_micros(self.step.cast_unsigned())
    }

    /// The key of a period's string.
    pub(crate) fn string(&self, chunk: usize, period: i64) -> String {
        format!("{}:p{period}", self.chunks[chunk].key)
    }

    /// The oldest period that counts as of the newest.
    pub(crate) fn oldest(&self) -> Option<i64> {
        self.newest.map(|newest| newest - self.generations())
    }

    /// When a period's string ends that is made now, in milliseconds since 1970.
    pub(crate) fn end_of(&self, period: i64, now: Moment) -> u64 {
        let over = self.start_of(period + 1).max(now + self.step()) + self.life();
        (over.micros() / 1_000).max(1).cast_unsigned()
    }

    /// How many of a window's keys one generation is made for.
    pub(crate) fn share_of(&self, capacity: u64) -> u64 {
        let generations = self.shape.options().generation_count();
        capacity.div_ceil(generations.into())
    }

    /// Learns what ledgers list, by chunk, and forgets what they don't.
    pub(crate) fn hear_of(&mut self, listed: impl Iterator<Item = (usize, i64)>) {
        self.known.iter_mut().for_each(BTreeSet::clear);
        for (chunk, period) in listed {
            self.known[chunk].insert(period);
            self.newest = self.newest.max(Some(period));
        }
    }

    /// The periods from `oldest` on that have a string in this chunk, as far as we
    /// know.
    pub(crate) fn known_from(&self, chunk: usize, oldest: i64) -> Vec<i64> {
        self.known[chunk].range(oldest..).copied().collect()
    }

    /// Bytes of a block.
    pub(crate) const fn block_len(&self) -> u64 {
        self.shape.block() as u64 * 8
    }

    /// Learns of periods of a chunk.
    pub(crate) fn learn(&mut self, chunk: usize, periods: impl IntoIterator<Item = i64>) {
        self.known[chunk].extend(periods);
    }

    /// Hears of a period, and forgets those that are over.
    pub(crate) fn pass(&mut self, newest: i64) {
        if self.newest.is_none_or(|known| known < newest) {
            self.newest = Some(newest);
            let oldest = newest - self.generations() - 1;
            for known in &mut self.known {
                known.retain(|period| *period >= oldest);
            }
        }
    }

    /// How long a string outlives its period: the window, and once more, for
    /// clocks that differ and for times that lag behind them.
    fn life(&self) -> Duration {
        let window = self.step() * self.shape.options().generation_count();
        window + window.min(LONGEST_SLACK)
    }

    pub(crate) fn place(&self, key: u32, hash: Hash, period: i64) -> Place {
        let (row, words) = self.shape.block_of(hash);
        let at = row * self.block_len();
        let mut bits = Vec::with_capacity(64);
        for (first, word) in (0..).step_by(8).zip(words) {
            let mut left = word;
            while left != 0 {
                let bit = left.trailing_zeros() as u8;
                bits.extend([first + bit / 8, 7 - bit % 8]);
                left &= left - 1;
            }
        }
        Place {
            key,
            chunk: (at / (CHUNK_LINES * LINE)) as usize,
            period,
            start: at % (CHUNK_LINES * LINE),
            bits,
        }
    }

    /// The steps for some keys, each with its period. Keys of one chunk are added
    /// in their order: of equal keys the first is new. `all` are the periods that
    /// earlier steps may have started.
    pub(crate) fn steps<'a>(
        &self,
        keys: impl Iterator<Item = (u32, &'a Hash, i64)>,
        all: &BTreeSet<i64>,
        how: How,
    ) -> Steps {
        let mut places: Vec<Place> = keys
            .map(|(key, hash, period)| self.place(key, *hash, period))
            .collect();
        places.sort_by_key(|place| place.chunk);
        let mut steps = Steps::default();
        let alike = |a: &Place, b: &Place| a.chunk == b.chunk && a.period == b.period;
        let together = (BLOCKS_PER_COMMAND / self.shape.columns()).max(1);
        for same in places.chunk_by(alike) {
            for some in same.chunks(together) {
                steps.requests.push(self.step_for(some, all, how));
                steps.spans.push(About {
                    chunk: some[0].chunk,
                    period: some[0].period,
                    keys: some.iter().map(|place| place.key).collect(),
                });
            }
        }
        steps
    }

    fn step_for(&self, places: &[Place], all: &BTreeSet<i64>, how: How) -> Request {
        let (index, period) = (places[0].chunk, places[0].period);
        let chunk = &self.chunks[index];
        let mut periods = self.known[index].clone();
        // Those that a ledger may list beside this one.
        let near = self.generations();
        periods.extend(all.range(period - 2 * near - 1..=period + near));
        let mut command = Packed::default();
        let arguments = 3 + 1 + periods.len() + FIXED + periods.len() + 2 * places.len();
        command.begin(arguments);
        command.text("EVAL");
        command.text(SCRIPT);
        command.number(1 + periods.len() as u64);
        command.text(&chunk.key);
        for period in &periods {
            command.text(self.string(index, *period));
        }
        let options = self.shape.options();
        command.text(period.to_string());
        command.text(if how.clock { "clock" } else { "given" });
        command.text(match options.renewed() {
            Renewal::Quiet => "quiet",
            Renewal::Within => "within",
        });
        command.number(how.replicated.into());
        command.number(options.generation_count().into());
        command.number(self.step.cast_unsigned());
        command.number(self.life().as_millis() as u64);
        command.number(chunk.len);
        command.number(self.block_len());
        command.text(Foot::Open.encode());
        command.number(periods.len() as u64);
        for period in &periods {
            command.text(period.to_string());
        }
        for place in places {
            command.number(place.start);
            command.text(&place.bits);
        }
        Request {
            replicated: how.replicated,
            ..Request::packed(chunk.slot, command)
        }
    }
}

impl Steps {
    /// How many requests are about keys.
    pub(crate) const fn own(&self) -> usize {
        self.spans.len()
    }

    /// What a request is about; none for one that the caller has added.
    pub(crate) fn about(&self, request: usize) -> Option<&About> {
        self.spans.get(request)
    }

    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().flat_map(|span| &span.keys).copied()
    }

    /// The answer to a request about keys; `None` if it is none.
    pub(crate) fn hear(&self, request: usize, answer: &[Value]) -> Option<Heard> {
        let [Value::Array(values)] = answer else {
            return None;
        };
        let (first, rest) = values.split_first()?;
        let numbers = || rest.iter().map(period).collect::<Option<Vec<_>>>();
        Some(match (text(first)?, rest) {
            ("missing", [key]) => Heard::Missing(text(key)?.to_owned()),
            ("more", _) => Heard::More(numbers()?),
            ("old", [newest]) => Heard::Old {
                newest: period(newest)?,
            },
            (_, [newest, new @ ..]) if new.len() == self.spans.get(request)?.keys.len() => {
                Heard::Answers {
                    period: period(first)?,
                    newest: period(newest)?,
                    new: new.iter().map(|new| *new == Value::Int(1)).collect(),
                }
            }
            _ => return None,
        })
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn period(value: &Value) -> Option<i64> {
    sound(text(value)?)
}

/// The number of a period, of those that moments have.
fn sound(text: &str) -> Option<i64> {
    let period: i64 = text.parse().ok()?;
    (-FURTHEST..=FURTHEST).contains(&period).then_some(period)
}

/// The periods that a ledger lists, and when their strings end, in milliseconds;
/// `None` if that is no ledger.
pub(crate) fn read_ledger(ledger: &[u8]) -> Option<Vec<(i64, u64)>> {
    let (list, foot) = ledger.split_at_checked(ledger.len().checked_sub(FOOT as usize)?)?;
    Foot::decode(foot)?;
    let entry = |entry: &str| {
        let (period, end) = entry.split_once(':')?;
        Some((sound(period)?, end.parse().ok()?))
    };
    let entries = str::from_utf8(list).ok()?.split_terminator(' ');
    entries.map(entry).collect()
}

/// The lines of a period.
pub(crate) fn lines_of(shape: &WindowShape) -> u64 {
    (shape.rows() * shape.block() as u64 * 8).div_ceil(LINE)
}

/// Chunks whose ledgers, and all strings these list, are asked together.
pub(crate) fn pages(chunks: usize, together: usize) -> impl Iterator<Item = Range<usize>> {
    (0..chunks)
        .step_by(together)
        .map(move |start| start..(start + together).min(chunks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::raw::Shape;
    use tamis::{Hasher, Plan, WindowOptions};

    fn window(keys: u64, rate: f64) -> Sliding {
        let options = WindowOptions::new(Span::Time(Duration::from_secs(80)));
        let Shape::Window(shape) = Plan::window(&options, keys, rate).unwrap().shape() else {
            panic!("a window")
        };
        let chunks = crate::chunks::chunks("seen", 9, lines_of(&shape), 0..u64::MAX);
        Sliding::new(shape, chunks.collect()).unwrap()
    }

    #[test]
    fn a_ledger_is_what_was_written() {
        let foot = Foot::Open.encode();
        let ledger = |list: &str| read_ledger(&[list.as_bytes(), &foot].concat());
        assert_eq!(ledger(""), Some(vec![]));
        let two = vec![(-5, 7), (12, 1_700_000_000_000)];
        assert_eq!(ledger("-5:7 12:1700000000000 "), Some(two));
        for list in [
            "x",
            "5",
            "5:",
            ":5 ",
            "5:6  ",
            "9223372036854775807:1 ",
            "5:-1 ",
        ] {
            assert_eq!(ledger(list), None, "{list:?}");
        }
        for len in 0..foot.len() {
            assert_eq!(read_ledger(&foot[..len]), None);
        }
    }

    /// Every block lies in one chunk, and a key's bits are the shape's.
    #[test]
    fn places_are_blocks_of_a_chunk() {
        for (keys, rate) in [(1_000, 0.05), (10_000_000, 0.01), (2_000_000, 1e-6)] {
            let window = window(keys, rate);
            for key in 0..2_000u32 {
                let hash = Hasher::default().hash(&key.to_le_bytes());
                let place = window.place(key, hash, 3);
                let chunk = &window.chunks[place.chunk];
                assert!(place.start + window.block_len() <= chunk.len);
                let (row, words) = window.shape.block_of(hash);
                let at = place.chunk as u64 * CHUNK_LINES * LINE + place.start;
                assert_eq!(at, row * window.block_len());
                let block: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert!(place.is_in(&block));
                let byte = usize::from(place.bits[0]);
                let mut less = block.clone();
                less[byte] &= !(0x80 >> place.bits[1]);
                assert!(!place.is_in(&less));
            }
        }
    }

    /// A string outlives what may be asked of it, whenever it is made.
    #[test]
    fn strings_outlive_the_window() {
        let window = window(1_000, 0.01);
        let (step, now) = (10_000, Moment::from_secs(1_000));
        assert_eq!(window.period_of(now), 100);
        for (period, from) in [(100, 1_010_000), (105, 1_060_000), (7, 1_000_000 + step)] {
            assert_eq!(window.end_of(period, now), from + 2 * 80_000);
        }
        assert_eq!(window.period_of(Moment::from_micros(-1)), -1);
    }
}
