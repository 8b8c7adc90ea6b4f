//! The options of windows, and the times at which keys were seen.

use crate::stream::Keyed;
use crate::{human, output};
use anyhow::{Result, bail};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use tamis::{
    AnyFilter, Error, Hash, Hasher, KeyRule, Kind, Moment, Window,
    body::Body,
    window::{Renewal, Span, WindowOptions},
};
use tamis_records::batch::Token;
use tamis_records::key::{RecordRule, TimeSpec};
use tamis_records::line_time::{self, TimeFormat};
use tamis_report::window::{describe, remembered};

/// What a window remembers.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    span: SpanArgs,

    /// With --within, every sighting renews a key: it is forgotten this long after it was last seen
    #[arg(long, requires = "within", help_heading = "Windows")]
    renew: bool,

    /// Divide the window into this many generations, 1 to 62 [default: 8]
    ///
    /// A generation is forgotten as a whole, so a key is remembered for up to
    /// one generation longer than the window. More generations forget more
    /// exactly, and take more time.
    #[arg(long, value_name = "G", help_heading = "Windows")]
    generations: Option<u32>,
}

#[derive(clap::Args, Clone, Copy, Debug)]
#[group(multiple = false)]
struct SpanArgs {
    /// Forget keys this long after they were first seen, e.g. 90s, 15m, 24h, 7d, 1d12h
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, help_heading = "Windows")]
    within: Option<Duration>,

    /// Forget keys once this many others were new after them, or at most a quarter more, e.g. 10M
    ///
    /// Keys are forgotten a generation at a time: the last 10M are up to 11.25M.
    /// Up to 8, it is exactly N; fewer --generations forget less exactly.
    #[arg(long, value_name = "N", value_parser = human::parse_count, help_heading = "Windows")]
    last: Option<u64>,
}

impl WindowArgs {
    /// The window that the options describe, if any.
    pub(crate) fn options(&self) -> Result<Option<WindowOptions>> {
        let renewal = if self.renew {
            Renewal::Quiet
        } else {
            Renewal::Within
        };
        let (span, renewal) = match self.span {
            SpanArgs {
                within: Some(time), ..
            } => (Span::Time(time), renewal),
            SpanArgs {
                last: Some(keys), ..
            } => (Span::Keys(keys), Renewal::Within),
            _ if self.generations.is_some() => {
                bail!("--generations is for a window: --within TIME or --last N")
            }
            _ => return Ok(None),
        };
        let options = WindowOptions::new(span).renewal(renewal);
        Ok(Some(match self.generations {
            Some(generations) => options.generations(generations),
            None => options,
        }))
    }

    /// The number of keys to make room for: those it remembers, if that was asked for, else what the user says.
    pub(crate) fn keys(
        options: &WindowOptions,
        said: Option<u64>,
        guess: impl FnOnce() -> Option<u64>,
    ) -> Result<u64> {
        match (options.span(), said) {
            (Span::Keys(keys), None) => Ok(keys),
            (Span::Keys(_), Some(_)) => {
                bail!("--last says how many keys there are: omit --capacity")
            }
            (Span::Time(_), Some(keys)) => Ok(keys),
            (Span::Time(time), None) => match guess() {
                Some(keys) => Ok(keys.max(1)),
                None => bail!(
                    "say how many new keys to expect in {}: --capacity N, e.g. --capacity 10M; a guess will do",
                    human::span(time)
                ),
            },
        }
    }

    /// Refuses a window that differs from the options.
    pub(crate) fn check(&self, name: impl Display, is: &WindowOptions) -> Result<()> {
        let Some(asked) = self.options()? else {
            return Ok(());
        };
        let asked = match self.generations {
            Some(_) => asked,
            None => asked.generations(is.generation_count()),
        };
        let alike = |a: &WindowOptions, b: &WindowOptions| {
            (a.band(), a.generation_count(), a.renewed())
                == (b.band(), b.generation_count(), b.renewed())
        };
        if !alike(&asked, is) {
            bail!(
                "{name} remembers {}, but you asked for {}\n\
                 hint: omit what differs, or use another filter",
                describe(is),
                describe(&asked)
            );
        }
        Ok(())
    }
}

/// Refuses window options for a filter that isn't a window.
pub(crate) fn refuse_without(
    name: impl Display,
    kind: Kind,
    window: &WindowArgs,
    time: &TimeArgs,
) -> Result<()> {
    if let Some(asked) = window.options()? {
        bail!(
            "{name} is a {kind} filter and forgets nothing, but you asked for {}\n\
             hint: use another filter, or omit it",
            remembered(&asked)
        );
    }
    time.refuse(name, kind)
}

/// When records happened.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TimeArgs {
    /// The time of a record, as -k has it: csv:COLUMN, tsv:COLUMN, jsonl:/POINTER, line or now [default: now]
    ///
    /// ISO 8601 or RFC 3339 (2026-11-17T10:30:00.25+01:00; without a zone it is
    /// UTC); as mail, syslog, Apache and nginx write it; or a number since 1970,
    /// whose size tells its unit: below 1e11 seconds, below 1e14 milliseconds,
    /// below 1e17 microseconds, else nanoseconds. A number that looks more like
    /// a date, such as 20261117, is an error: see --time-format.
    ///
    /// With `line`, it is the first time in the record, found as `tamis grep
    /// --since` finds it.
    ///
    /// Records may come out of order: one is compared with those up to a window
    /// before it, and later ones. A record older than the window of the latest
    /// one counts as new and is not remembered. One without a time that can be
    /// read, or with one in the future, gets the latest time so far. Each is
    /// counted in the summary or in a warning.
    #[arg(long, value_name = "SPEC", help_heading = "Windows")]
    time: Option<TimeSpec>,

    /// How times of records are written, e.g. %Y%m%d or '%d.%m.%Y %H:%M:%S' [default: found]
    ///
    /// As in strftime: %Y %y %m %b %B %d %e %j %H %I %p %M %S %f (a fraction) %z
    /// %Z %a %s (seconds since 1970) %F %T %D %R %%. A value of a column or of
    /// JSON is written so as a whole; of a line, the first such time counts.
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "time",
        help_heading = "Windows"
    )]
    time_format: Option<TimeFormat>,
}

impl TimeArgs {
    /// The rule, with the time that was asked for.
    pub(crate) fn rule(&self, rule: RecordRule) -> Result<RecordRule> {
        let time = self.time.clone().unwrap_or(TimeSpec::Now);
        if time == TimeSpec::Now && self.time_format.is_some() {
            bail!("--time-format is for times of records, but --time now takes the clock's");
        }
        rule.with_time(time, self.time_format.clone())
            .map_err(anyhow::Error::msg)
    }

    /// Refuses a time that would have no effect.
    pub(crate) fn check(&self, options: &WindowOptions) -> Result<()> {
        match (options.span(), &self.time) {
            (Span::Keys(_), Some(spec)) if *spec != TimeSpec::Now => {
                bail!("--time: a window of the last keys counts keys and heeds no time")
            }
            _ => Ok(()),
        }
    }

    /// Refuses a time for a filter that isn't a window.
    pub(crate) fn refuse(&self, name: impl Display, kind: impl Display) -> Result<()> {
        match self.time {
            Some(_) => bail!("{name} is no window, but a {kind} filter: --time is for windows"),
            None => Ok(()),
        }
    }

    pub(crate) const fn is_given(&self) -> bool {
        self.time.is_some()
    }
}

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
