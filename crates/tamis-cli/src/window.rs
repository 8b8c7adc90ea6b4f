//! The options of windows, and the times at which keys were seen.

mod args;

pub(crate) use self::args::{TimeArgs, WindowArgs, refuse_without};

use crate::stream::Keyed;
use crate::{human, output};
use anyhow::{Result, bail};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use tamis::{
    AnyFilter, Error, Hash, Hasher, KeyRule, Moment, Window,
    body::Body,
    window::{Span, WindowOptions},
};
use tamis_records::batch::Token;
use tamis_records::key::RecordRule;
use tamis_records::line_time;

/// Makes keys with the times of their records.
pub(crate) struct Timed(pub(crate) Hasher);

/// A key and the time of its record. Equality only compares keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedHash {
    hash: Hash,
    at: Option<Moment>,
}

impl PartialEq for TimedHash {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for TimedHash {}

impl PartialOrd for TimedHash {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimedHash {
    fn cmp(&self, other: &Self) -> Ordering {
        self.hash.cmp(&other.hash)
    }
}

impl Token for TimedHash {
    #[inline]
    fn shard(&self, shards: usize) -> usize {
        self.hash.shard(shards)
    }
}

impl Keyed for Timed {
    type Token = TimedHash;

    fn rule(&self) -> &KeyRule {
        self.0.rule()
    }

    #[inline]
    fn token(&self, key: &[u8]) -> TimedHash {
        self.token_at(key, None)
    }

    #[inline]
    fn token_at(&self, key: &[u8], at: Option<Moment>) -> TimedHash {
        let hash = self.0.hash_exact(key);
        TimedHash { hash, at }
    }
}

/// How far ahead of the clock a record may be, beyond one generation: clocks differ.
const AHEAD: Duration = Duration::from_secs(60);
/// How far the clock may be behind the window's latest time before we warn.
const BEHIND: Duration = Duration::from_secs(1);

/// Oddities in the times of records, as numbers of records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Odd {
    /// Too old for the window, compared to the latest record.
    pub(crate) too_old: u64,
    /// So far out of order that records to compare with may be forgotten.
    pub(crate) late: u64,
    /// Later than the clock allows.
    pub(crate) ahead: u64,
}

impl Odd {
    /// Warns about oddities. `without` counts records without a time.
    pub(crate) fn warn(self, without: u64) {
        if without > 0 {
            output::warn(format_args!(
                "without a time that can be read: {}, taken as of the latest time before\n\
                 hint: --time-format says how times are written that are not recognised",
                human::counted(without, "record")
            ));
        }
        if self.ahead > 0 {
            output::warn(format_args!(
                "from the future: {}, taken as of the latest time before",
                human::counted(self.ahead, "record")
            ));
        }
    }
}

/// The latest time that is accepted for a record, by the clock.
pub(crate) fn last_believed(options: &WindowOptions) -> Moment {
    let band = match options.band() {
        Span::Time(band) => band,
        Span::Keys(_) => Duration::ZERO,
    };
    Moment::now() + band + AHEAD
}

/// The times at which a run's keys were seen: from their records or the clock.
pub(crate) struct Times {
    by_record: bool,
    hashes: Vec<Hash>,
    moments: Vec<Moment>,
    odd: Odd,
    /// The most by which the clock was behind.
    behind: Duration,
    /// Keys that came before the first readable time. That time decides when the window begins, so they are added then.
    waiting: HashSet<Hash>,
}

/// The most keys that wait for a time; with more, the clock's is used.
pub(crate) const MOST_WAITING: usize = 1 << 20;

impl Times {
    pub(crate) fn new(rule: &RecordRule) -> Self {
        Self {
            by_record: rule.has_time(),
            hashes: Vec::new(),
            moments: Vec::new(),
            odd: Odd::default(),
            behind: Duration::ZERO,
            waiting: HashSet::new(),
        }
    }

    /// Adds keys to a window in order; `new[i]` tells whether `keys[i]` was new.
    pub(crate) fn insert(
        &mut self,
        window: &mut Window,
        mut keys: &[TimedHash],
        mut new: &mut [bool],
        may_grow: bool,
    ) {
        let now = Moment::now();
        if self.by_record && window.latest().is_none() {
            let last = last_believed(&window.options());
            let first = keys
                .iter()
                .position(|key| key.at.is_some_and(|at| at <= last));
            let waiting = first.unwrap_or(keys.len());
            for (key, new) in keys[..waiting].iter().zip(&mut new[..waiting]) {
                self.odd.ahead += u64::from(key.at.is_some());
                *new = self.waiting.insert(key.hash);
            }
            (keys, new) = (&keys[waiting..], &mut new[waiting..]);
            match keys.first().and_then(|key| key.at) {
                Some(at) => self.begin(window, at),
                None if self.waiting.len() > MOST_WAITING => self.begin(window, now),
                None => {}
            }
        }
        self.hashes.clear();
        self.hashes.extend(keys.iter().map(|key| key.hash));
        if self.by_record {
            self.settle(window, keys, now);
            match may_grow {
                true => window.insert_many_mut(&self.hashes, &self.moments[..], new),
                false => window.insert_many(&self.hashes, &self.moments[..], new),
            }
        } else {
            let latest = window.latest().unwrap_or(now);
            let behind = latest.micros().saturating_sub(now.micros());
            let behind = Duration::from_micros(u64::try_from(behind).unwrap_or(0));
            self.behind = self.behind.max(behind);
            match may_grow {
                true => window.insert_many_mut(&self.hashes, now.max(latest), new),
                false => window.insert_many(&self.hashes, now.max(latest), new),
            }
        }
    }

    /// Adds the keys that waited for a time.
    fn begin(&mut self, window: &mut Window, at: Moment) {
        let waiting: Vec<Hash> = self.waiting.drain().collect();
        window.insert_many_mut(&waiting, at, &mut vec![false; waiting.len()]);
    }

    /// Adds the keys still waiting for a time, as of now.
    pub(crate) fn finish(&mut self, window: &mut Window) {
        self.begin(window, Moment::now());
    }

    /// Determines the time of each key.
    fn settle(&mut self, window: &Window, keys: &[TimedHash], now: Moment) {
        self.moments.clear();
        let options = window.options();
        let Span::Time(band) = options.band() else {
            self.moments.resize(keys.len(), now);
            return;
        };
        let step = i64::try_from(band.as_micros()).unwrap_or(i64::MAX);
        let generation = |at: Moment| at.micros().div_euclid(step);
        let last = now + band + AHEAD;
        let mut latest = window.latest();
        let start = latest.unwrap_or(now);
        for key in keys {
            let at = match key.at {
                Some(at) if at <= last => at,
                at => {
                    self.odd.ahead += u64::from(at.is_some());
                    latest.unwrap_or(start)
                }
            };
            let newest = latest.map_or(at, |latest| latest.max(at));
            let age = generation(newest).saturating_sub(generation(at));
            if age > i64::from(options.generation_count()) {
                self.odd.too_old += 1;
            } else if age > 1 {
                self.odd.late += 1;
            }
            latest = Some(newest);
            self.moments.push(at);
        }
    }

    pub(crate) const fn odd(&self) -> Odd {
        self.odd
    }

    /// Warns about oddities in the times and about the clock.
    pub(crate) fn warn(&self, without: u64) {
        self.odd.warn(without);
        if self.behind > BEHIND {
            output::warn(format_args!(
                "the clock is {} behind the latest time in the window, which was used instead",
                human::duration(self.behind)
            ));
        }
    }
}

/// Checks that keys can be added, before any input is read.
pub(crate) fn check_open(filter: &mut AnyFilter) -> Result<(), Error> {
    filter.insert_many_at::<Hash>(&[], Moment::default(), &mut [])
}

/// The time that a window is queried for, if not now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskedAt {
    /// The time of its latest key.
    Latest,
    Moment(Moment),
}

impl FromStr for AskedAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "latest" => Ok(Self::Latest),
            text => line_time::parse(text, Moment::now()).map(Self::Moment),
        }
    }
}

/// Refuses a time for filters that aren't windows.
pub(crate) fn refuse_at(name: impl Display, at: Option<AskedAt>) -> Result<()> {
    match at {
        Some(_) => bail!("{name} is no window: --at is for windows"),
        None => Ok(()),
    }
}

/// A time for which every answer is no.
const ALL_FORGOTTEN: Moment = Moment::MAX;

/// The time to query a filter for; `None` if time doesn't affect it or its latest key decides.
pub(crate) fn asked_at<B: Body>(
    name: impl Display,
    filter: &AnyFilter<B>,
    at: Option<AskedAt>,
) -> Result<Option<Moment>> {
    let window = match filter {
        AnyFilter::Window(window) => window,
        _ => return refuse_at(name, at).map(|()| None),
    };
    let (Span::Time(_), Some(latest)) = (window.options().span(), window.latest()) else {
        return Ok(None);
    };
    match at {
        Some(AskedAt::Latest) => Ok(None),
        Some(AskedAt::Moment(moment)) => match window.first() {
            Some(first) if moment < first => {
                output::warn(format_args!(
                    "{name}: it knows of no key before {first}, so at {moment} every answer is no"
                ));
                Ok(Some(ALL_FORGOTTEN))
            }
            _ => {
                warn_if_late(name, &window.options(), Some(latest), moment);
                Ok(Some(moment))
            }
        },
        None => {
            warn_if_past(name, &window.options(), Some(latest));
            Ok(Some(Moment::now()))
        }
    }
}

/// Whether a window, as of its latest key, may have forgotten what it knew at `at`.
pub(crate) fn is_late(options: &WindowOptions, latest: Moment, at: Moment) -> bool {
    let Span::Time(band) = options.band() else {
        return false;
    };
    let step = i64::try_from(band.as_micros()).unwrap_or(i64::MAX).max(1);
    let generation = |at: Moment| at.micros().div_euclid(step);
    generation(latest) - generation(at) > 1
}

/// Warns if so, for the time that a window is queried for.
pub(crate) fn warn_if_late(
    name: impl Display,
    options: &WindowOptions,
    latest: Option<Moment>,
    at: Moment,
) {
    if latest.is_some_and(|latest| is_late(options, latest, at)) {
        output::warn(format_args!(
            "{name}: {at} is more than a generation before its latest key, so it may have forgotten keys that it knew then: \
             \"no\" is not certain"
        ));
    }
}

/// The same for the times of records.
pub(crate) fn warn_of_late(records: u64) {
    if records > 0 {
        output::warn(format_args!(
            "asked as of a time more than a generation before the latest key: {}; the window may have forgotten keys that it \
             knew then, so \"no\" is not certain for them",
            human::counted(records, "record")
        ));
    }
}

/// Warns if a window has by now forgotten its latest key, and so all others.
pub(crate) fn warn_if_past(name: impl Display, options: &WindowOptions, latest: Option<Moment>) {
    let (Span::Time(span), Span::Time(band), Some(latest)) =
        (options.span(), options.band(), latest)
    else {
        return;
    };
    if latest + span + band < Moment::now() {
        output::warn(format_args!(
            "{name}: its latest key is from {latest}, so by now all are forgotten\n\
             hint: --at latest asks as of then"
        ));
    }
}

/// The times to query keys for, such that `dedup` would give the same answers: those of their records. A key without a
/// readable time, or from the future, is queried as of the window's latest key.
pub(crate) fn asked_times<B: Body>(window: &Window<B>, keys: &[TimedHash]) -> AskedTimes {
    let last = last_believed(&window.options());
    let latest = window.latest().unwrap_or_default();
    let options = window.options();
    let (mut ahead, mut late) = (0, 0);
    let mut count = |at| late += u64::from(is_late(&options, latest, at));
    let moment = |key: &TimedHash| match key.at {
        Some(at) if at <= last && window.remembers(at) => {
            count(at);
            at
        }
        Some(at) if at <= last => {
            count(at);
            ALL_FORGOTTEN
        }
        at => {
            ahead += u64::from(at.is_some());
            latest
        }
    };
    let moments = keys.iter().map(moment).collect();
    AskedTimes {
        hashes: keys.iter().map(|key| key.hash).collect(),
        moments,
        ahead,
        late,
    }
}

/// Keys and the times to query them for; how many have a time in the future, and how many the window may have
/// forgotten.
pub(crate) struct AskedTimes {
    pub(crate) hashes: Vec<Hash>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) ahead: u64,
    pub(crate) late: u64,
}
