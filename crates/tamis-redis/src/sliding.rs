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

/// Asks, or asks and adds, in one step on the server.
const SCRIPT: &str = include_str!("window.lua");
/// Blocks that one step reads: enough to share its cost, few enough not to hold
/// up other clients of the server.
const BLOCKS_PER_COMMAND: usize = 512;
/// Strings outlive the window by another window, but by no more than this.
const LONGEST_SLACK: Duration = Duration::from_secs(24 * 3_600);
/// Arguments before the periods.
const FIXED: usize = 12;

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

/// How keys are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Whether they are also added.
    pub(crate) add: bool,
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
        newest: Option<i64>,
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

struct Place {
    key: u32,
    chunk: usize,
    period: i64,
    start: u64,
    bits: Vec<u8>,
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

    /// Where a key's block is, and its bits there: of each the byte, and its
    /// number as Redis counts, from the most significant.
    fn place(&self, key: u32, hash: Hash, period: i64) -> Place {
        let (row, words) = self.shape.block_of(hash);
        let at = row * self.shape.block() as u64 * 8;
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

    /// The steps for some keys, each with its period. Keys of one chunk are asked
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
        if how.add {
            // Those that a ledger may list beside this one.
            let near = self.generations();
            periods.extend(all.range(period - 2 * near - 1..=period + near));
        }
        let mut command = Packed::default();
        let arguments = 3 + 1 + periods.len() + FIXED + periods.len() + 2 * places.len();
        command.begin(arguments);
        command.text(if how.add { "EVAL" } else { "EVAL_RO" });
        command.text(SCRIPT);
        command.number(1 + periods.len() as u64);
        command.text(&chunk.key);
        for period in &periods {
            command.text(self.string(index, *period));
        }
        let options = self.shape.options();
        command.text(if how.add { "add" } else { "ask" });
        command.text(period.to_string());
        command.text(if how.clock { "clock" } else { "given" });
        command.text(match options.renewed() {
            Renewal::Quiet => "quiet",
            Renewal::Within => "within",
        });
        command.number((how.add && how.replicated).into());
        command.number(options.generation_count().into());
        command.number(self.step.cast_unsigned());
        command.number(self.life().as_millis() as u64);
        command.number(chunk.len);
        command.number(self.shape.block() as u64 * 8);
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
            replicated: how.add && how.replicated,
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
                    newest: period(newest),
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
    text(value)?.parse().ok()
}

/// The periods that a ledger lists, and when their strings end, in milliseconds;
/// `None` if that is no ledger.
pub(crate) fn read_ledger(ledger: &[u8]) -> Option<Vec<(i64, u64)>> {
    let (list, foot) = ledger.split_at_checked(ledger.len().checked_sub(FOOT as usize)?)?;
    Foot::decode(foot)?;
    let entry = |entry: &str| {
        let (period, end) = entry.split_once(':')?;
        Some((period.parse().ok()?, end.parse().ok()?))
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
