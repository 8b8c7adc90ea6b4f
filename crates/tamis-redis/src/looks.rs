//! Looking into a window's strings without a script, which costs the servers a
//! tenth, and setting bits there if nothing has changed since.
//!
//! The foot of each string has its version, which every step that writes to it
//! counts up. It is read before the blocks are: if it is the same later, so are
//! they.

use crate::chunks::{FOOT, Foot};
use crate::packed::Packed;
use crate::request::Request;
use crate::sliding::{Place, Sliding, read_ledger};
use redis::Value;
use std::ops::Range;
use std::time::Duration;
use tamis::Moment;

/// Sets bits unless something has changed.
const SCRIPT: &str = include_str!("window_set.lua");
/// Bits of one step: what one command of a script can have.
const BITS_PER_COMMAND: usize = 1_500;
/// Blocks that are at most this many bytes apart are read by one command.
const GAP: u64 = 256;
/// And no more than this many.
const LONGEST: u64 = 4_096;
/// What a ledger may hold: more than 64 periods with their ends.
pub(crate) const LEDGER: u64 = 1 << 13;
/// A time that is further ahead of the server's than this and a period is wrong.
const AHEAD: Duration = Duration::from_secs(60);

/// A look into one chunk.
pub(crate) struct Look {
    pub(crate) chunk: usize,
    pub(crate) places: Vec<Place>,
    periods: Vec<i64>,
    runs: Vec<Run>,
}

/// Neighbouring blocks, which one command reads.
struct Run {
    first: u64,
    end: u64,
    places: Range<usize>,
}

/// What a look has shown.
pub(crate) struct Sight {
    /// For each place, whether its own period has the key, and whether another has.
    pub(crate) found: Vec<(bool, bool)>,
    pub(crate) newest: Option<i64>,
    ledger: Vec<u8>,
    /// The strings that count, and their feet.
    feet: Vec<(i64, Vec<u8>)>,
}

/// Why a look has shown nothing.
pub(crate) enum Blind {
    /// There are strings of these periods, too.
    More(Vec<i64>),
    Missing(String),
    Corrupt,
}

impl Look {
    /// Looks for keys of one chunk.
    pub(crate) fn new(window: &Sliding, mut places: Vec<Place>) -> (Self, Request) {
        places.sort_by_key(|place| place.start);
        let chunk = places[0].chunk;
        let oldest = places.iter().map(|place| place.period).min().unwrap_or(0);
        let periods: Vec<i64> = window.known_from(chunk, oldest - window.generations());
        let block = window.block_len();
        let mut runs: Vec<Run> = Vec::new();
        for (at, place) in places.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if place.start <= run.end + GAP && place.start < run.first + LONGEST => {
                    run.end = place.start + block;
                    run.places.end = at + 1;
                }
                _ => runs.push(Run {
                    first: place.start,
                    end: place.start + block,
                    places: at..at + 1,
                }),
            }
        }
        let look = Self {
            chunk,
            places,
            periods,
            runs,
        };
        let request = look.request(window);
        (look, request)
    }

    fn request(&self, window: &Sliding) -> Request {
        let chunk = &window.chunks[self.chunk];
        let mut commands = Packed::default();
        let mut get = |key: &str, first: u64, last: u64| {
            commands.begin(4);
            commands.text("GETRANGE");
            commands.text(key);
            commands.number(first);
            commands.number(last);
        };
        get(&chunk.key, 0, LEDGER);
        let strings: Vec<String> = (self.periods.iter())
            .map(|period| window.string(self.chunk, *period))
            .collect();
        for string in &strings {
            get(string, chunk.len, chunk.stored());
        }
        for string in &strings {
            for run in &self.runs {
                get(string, run.first, run.end - 1);
            }
        }
        commands.begin(1);
        commands.text("TIME");
        let lines: u64 = self.runs.iter().map(|run| run.end - run.first).sum();
        let bytes = LEDGER + (lines + FOOT) * strings.len() as u64;
        Request::packed(chunk.slot, commands).answered_with(bytes)
    }

    /// What the answer shows. A clock that is ahead of the server's is not
    /// believed, if the periods are our clock's.
    pub(crate) fn see(
        &self,
        window: &Sliding,
        answer: &[Value],
        clock: bool,
    ) -> Result<Sight, Blind> {
        let bytes = |value: &Value| match value {
            Value::BulkString(bytes) => Some(bytes.clone()),
            _ => None,
        };
        let missing = |key: &str| Blind::Missing(key.to_owned());
        let Some((Some(ledger), [rest @ .., time])) =
            (answer.split_first()).map(|(ledger, rest)| (bytes(ledger), rest))
        else {
            return Err(Blind::Corrupt);
        };
        let Some(list) = read_ledger(&ledger) else {
            return Err(missing(&window.chunks[self.chunk].key));
        };
        let listed: Vec<i64> = list.into_iter().map(|(period, _)| period).collect();
        let newest = listed.iter().copied().max();
        let belief = Belief::new(window, newest, time).filter(|_| clock);
        let oldest = self.oldest(window, belief, newest);
        let counts = |period: &i64| oldest.is_none_or(|oldest| *period >= oldest);
        let more: Vec<i64> = (listed.iter().copied())
            .filter(|period| counts(period) && !self.periods.contains(period))
            .collect();
        if !more.is_empty() {
            return Err(Blind::More(more));
        }
        let (feet, blocks) = rest
            .split_at_checked(self.periods.len())
            .ok_or(Blind::Corrupt)?;
        let mut sight = Sight {
            found: vec![(false, false); self.places.len()],
            newest,
            ledger,
            feet: Vec::new(),
        };
        for (i, (period, foot)) in self.periods.iter().zip(feet).enumerate() {
            if !listed.contains(period) || !counts(period) {
                continue;
            }
            let runs = blocks.get(i * self.runs.len()..(i + 1) * self.runs.len());
            let foot = bytes(foot).filter(|foot| Foot::decode(foot).is_some());
            let there =
                runs.is_some_and(|runs| self.find(window, *period, runs, belief, &mut sight));
            match foot.filter(|_| there) {
                Some(foot) => sight.feet.push((*period, foot)),
                None => return Err(missing(&window.string(self.chunk, *period))),
            }
        }
        Ok(sight)
    }

    /// The oldest period that counts for any of the keys, if not all do.
    fn oldest(&self, window: &Sliding, belief: Option<Belief>, newest: Option<i64>) -> Option<i64> {
        let asked = self.places.iter().map(|place| asked(place, belief)).min();
        let asked = asked.map(|asked| asked - window.generations());
        // One more is kept than the window holds.
        asked.max(newest.map(|newest| newest - window.generations() - 1))
    }

    /// Notes which keys a period's blocks have; whether all blocks are there.
    fn find(
        &self,
        window: &Sliding,
        period: i64,
        answers: &[Value],
        belief: Option<Belief>,
        sight: &mut Sight,
    ) -> bool {
        for (run, answer) in self.runs.iter().zip(answers) {
            let bytes = match answer {
                Value::BulkString(bytes) if bytes.len() as u64 == run.end - run.first => bytes,
                _ => return false,
            };
            for i in run.places.clone() {
                let place = &self.places[i];
                let asked = asked(place, belief);
                let block = &bytes[(place.start - run.first) as usize..];
                if period >= asked - window.generations() && place.is_in(block) {
                    let (own, other) = &mut sight.found[i];
                    *(if period == place.period { own } else { other }) = true;
                }
            }
        }
        true
    }

    /// The steps that set the bits of these places, if nothing has changed since
    /// the look; each with which of them it is about.
    pub(crate) fn sets(
        &self,
        window: &Sliding,
        sight: &Sight,
        places: &[usize],
    ) -> Vec<(Request, Vec<usize>)> {
        let Some(first) = places.first() else {
            return Vec::new();
        };
        let bits = self.places[*first].bits.len() / 2;
        let some = places.chunks((BITS_PER_COMMAND / bits).max(1));
        some.map(|some| (self.set(window, sight, some), some.to_vec()))
            .collect()
    }

    fn set(&self, window: &Sliding, sight: &Sight, places: &[usize]) -> Request {
        let chunk = &window.chunks[self.chunk];
        let own = self.places[places[0]].period;
        let others = || sight.feet.iter().filter(|(period, _)| *period != own);
        let keys = 2 + others().count();
        let bits: usize = places.iter().map(|i| self.places[*i].bits.len() / 2).sum();
        let mut command = Packed::default();
        command.begin(3 + keys + keys + bits);
        command.text("EVAL");
        command.text(SCRIPT);
        command.number(keys as u64);
        command.text(&chunk.key);
        command.text(window.string(self.chunk, own));
        for (period, _) in others() {
            command.text(window.string(self.chunk, *period));
        }
        command.text(&sight.ledger);
        command.number(chunk.len);
        for (_, foot) in others() {
            command.text(foot);
        }
        for i in places {
            let place = &self.places[*i];
            for [byte, bit] in place.bits.as_chunks::<2>().0 {
                command.number((place.start + u64::from(*byte)) * 8 + u64::from(*bit));
            }
        }
        Request::packed(chunk.slot, command)
    }
}

/// Which of a step's keys were new, each of so many bits; `None` if something has
/// changed.
pub(crate) fn set_new(answer: &[Value], keys: usize, bits: usize) -> Option<Vec<bool>> {
    let [Value::Array(values)] = answer else {
        return None;
    };
    let values = values.get(..keys * bits)?;
    let new = |bits: &[Value]| bits.contains(&Value::Int(0));
    Some(values.chunks(bits).map(new).collect())
}

/// What is believed of a clock.
#[derive(Clone, Copy)]
struct Belief {
    /// The latest period that it may claim by the server's time.
    most: i64,
    /// Which counts instead of a later one.
    instead: i64,
}

impl Belief {
    fn new(window: &Sliding, newest: Option<i64>, time: &Value) -> Option<Self> {
        let (seconds, micros): (i64, i64) = redis::from_redis_value(time.clone()).ok()?;
        let now = Moment::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros));
        let current = window.period_of(now);
        Some(Self {
            most: window.period_of(now + window.step() + AHEAD),
            instead: newest.map_or(current, |newest| newest.max(current)),
        })
    }
}

/// The period that a key is asked for.
fn asked(place: &Place, belief: Option<Belief>) -> i64 {
    match belief {
        Some(Belief { most, instead }) if place.period > most => instead,
        _ => place.period,
    }
}
