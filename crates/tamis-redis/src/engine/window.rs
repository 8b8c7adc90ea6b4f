//! Keys of a window: asked in all its periods and added to one, in one step on
//! the server that has them.

use super::Engine;
use super::watch::{Seen, Watch};
use crate::Error;
use crate::failure::Failure;
use crate::link::Link;
use crate::request::Request;
use crate::sliding::{Heard, How, Sliding, Steps};
use crate::warning::Warning;
use crate::wire::{Job, Settled};
use redis::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use tamis::{At, Hash, Kind, Moment};

/// Keys that are sent together.
const WINDOW: usize = 1 << 12;
/// How often others may start periods while we ask for the same keys.
pub(super) const ROUNDS: usize = 100;

/// The periods that keys belong to.
pub(super) struct Times {
    pub(super) periods: Vec<i64>,
    /// Whether they are our clock's.
    pub(super) clock: bool,
}

/// Keys on their way through the periods.
struct Slide<'a> {
    window: &'a Sliding,
    watch: Watch,
    hashes: &'a [Hash],
    periods: &'a [i64],
    /// Which of them are to be sent.
    pending: &'a [usize],
    /// Their periods.
    all: BTreeSet<i64>,
    how: How,
    slid: Slid,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Slid {
    /// For each key, whether it was new.
    pub(super) new: Vec<bool>,
    /// Keys that were not decided: there are periods that we did not know, or
    /// something has changed.
    pub(super) again: Vec<usize>,
    /// Periods that have strings, by chunk.
    more: Vec<(usize, Vec<i64>)>,
    /// What counted: of each key added, its period.
    pub(super) added: Vec<(usize, i64)>,
    newest: Option<i64>,
    /// Keys that the window has passed, that were from the future, and the
    /// furthest that our clock was behind others.
    old: u64,
    future: u64,
    behind: i64,
    pub(super) ambiguous: u64,
    pub(super) unconfirmed: Vec<usize>,
    pub(super) failure: Option<Failure>,
    missing: Option<String>,
    corrupt: bool,
    pub(super) seen: Seen,
}

impl Slid {
    /// Of so many keys.
    pub(super) fn of(keys: usize) -> Self {
        Self {
            new: vec![false; keys],
            ..Self::default()
        }
    }
}

impl Job for Slide<'_> {
    type Window = Steps;

    fn begin(&mut self, range: Range<usize>) -> (Vec<Request>, Steps) {
        let keys = self.pending[range].iter();
        let keys = keys.map(|i| (*i as u32, &self.hashes[*i], self.periods[*i]));
        let mut steps = self.window.steps(keys, &self.all, self.how);
        let mut requests = std::mem::take(&mut steps.requests);
        requests.extend_from_slice(&self.watch.requests);
        (requests, steps)
    }

    fn finish(&mut self, steps: Steps, settled: Vec<Settled>) -> bool {
        for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
            match (outcome, steps.about(i)) {
                (Ok(answer), None) => {
                    (self.watch).read(i - steps.own(), &answer, &mut self.slid.seen);
                }
                (Ok(answer), Some(_)) => self.hear(&steps, i, &answer, ambiguous),
                (Err(failure), about) => {
                    self.slid.failure = Some(failure);
                    let keys = match about {
                        Some(about) => about.keys.clone(),
                        // What leads to the keys was not seen.
                        None => steps.keys().collect(),
                    };
                    let keys = keys.into_iter().map(|key| key as usize);
                    self.slid.unconfirmed.extend(keys);
                }
            }
        }
        let slid = &self.slid;
        slid.failure.is_none() && slid.missing.is_none() && !slid.corrupt && !slid.seen.gone
    }
}

impl Slide<'_> {
    /// Takes in the answer to a step.
    fn hear(&mut self, steps: &Steps, request: usize, answer: &[Value], ambiguous: bool) {
        let slid = &mut self.slid;
        let (Some(about), Some(heard)) = (steps.about(request), steps.hear(request, answer)) else {
            slid.corrupt = true;
            return;
        };
        let keys = about.keys.iter().map(|key| *key as usize);
        match heard {
            Heard::Missing(key) => slid.missing = Some(key),
            Heard::More(periods) => {
                slid.more.push((about.chunk, periods));
                for key in keys {
                    // An earlier try may have added it.
                    slid.new[key] |= ambiguous;
                    slid.again.push(key);
                }
            }
            Heard::Old { newest } => {
                slid.newest = slid.newest.max(Some(newest));
                slid.old += about.keys.len() as u64;
                keys.for_each(|key| slid.new[key] = true);
            }
            Heard::Answers {
                period,
                newest,
                new,
            } => {
                slid.newest = slid.newest.max(Some(newest));
                slid.more.push((about.chunk, vec![period]));
                if period < about.period {
                    slid.future += about.keys.len() as u64;
                }
                slid.behind = slid.behind.max(period - about.period);
                for (key, new) in keys.zip(new) {
                    // Better reported twice than never.
                    let unsure = ambiguous && !new;
                    slid.new[key] |= new || unsure;
                    slid.ambiguous += u64::from(unsure);
                    if new {
                        slid.added.push((key, period));
                    }
                }
            }
        }
    }
}

impl<L: Link> Engine<L> {
    /// The periods of some moments; none of a filter that is no window.
    pub(super) fn times(&self, at: impl At, keys: usize) -> Option<Times> {
        let window = self.window.as_ref()?;
        Some(Times {
            periods: (0..keys).map(|i| window.period_of(at.of(i))).collect(),
            clock: false,
        })
    }

    /// The period of our clock, for all keys.
    pub(super) fn clock(&self, keys: usize) -> Option<Times> {
        let window = self.window.as_ref()?;
        Some(Times {
            periods: vec![window.period_of(Moment::now()); keys],
            clock: true,
        })
    }

    /// Adds keys, each seen at its moment; `new[i]` answers for `hashes[i]`. A
    /// filter that is no window heeds no moments.
    pub(crate) async fn insert_hashes_at(
        &mut self,
        hashes: &[Hash],
        at: impl At + Send,
        new: &mut [bool],
    ) -> Result<(), Error> {
        at.check(hashes.len());
        match self.times(at, hashes.len()) {
            Some(times) => self.insert_timed(hashes, &times, new).await,
            None => self.insert_hashes(hashes, new).await,
        }
    }

    /// Asks keys, each at its moment.
    pub(crate) async fn contains_hashes_at(
        &mut self,
        hashes: &[Hash],
        at: impl At + Send,
        out: &mut [bool],
    ) -> Result<(), Error> {
        at.check(hashes.len());
        match self.times(at, hashes.len()) {
            Some(times) => self.contains_timed(hashes, &times, out).await,
            None => self.contains_hashes(hashes, out).await,
        }
    }

    pub(super) async fn insert_timed(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        new: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        new.fill(false);
        self.check_memory()?;
        self.counted = None;
        let alike = times.periods.windows(2).all(|two| two[0] == two[1]);
        let added = if alike && self.wire.wait.is_none() {
            self.add_unknown(hashes, times, new).await?
        } else {
            let how = How {
                clock: times.clock,
                replicated: self.wire.wait.is_some(),
            };
            let all = (0..hashes.len()).collect();
            self.slide(hashes, times, all, how, new).await?
        };
        self.look_back().await?;
        self.remember_periods(hashes, &added);
        self.remember(&[], &[]).await;
        self.look_at_fill().await;
        Ok(())
    }

    pub(super) async fn contains_timed(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        out: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), out.len(), "one answer for each key");
        out.fill(false);
        self.check_memory()?;
        let asked = self.look_for_all(hashes, times, out).await;
        if asked.is_err() {
            out.fill(false);
        }
        asked?;
        self.look_back().await
    }

    /// Which keys are new, and, if they are added, to which periods.
    pub(super) async fn slide(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        mut pending: Vec<usize>,
        how: How,
        new: &mut [bool],
    ) -> Result<Vec<(usize, i64)>, Error> {
        let mut added = Vec::new();
        for _ in 0..ROUNDS {
            if pending.is_empty() {
                return Ok(added);
            }
            let mut slid = self.slide_once(hashes, times, &pending, how).await;
            for (new, told) in new.iter_mut().zip(&slid.new) {
                *new |= *told;
            }
            added.append(&mut slid.added);
            pending = std::mem::take(&mut slid.again);
            pending.sort_unstable();
            self.conclude_slide(slid, how, hashes.len()).await?;
        }
        Err(self.restless())
    }

    pub(super) fn restless(&self) -> Error {
        Error::Corrupt {
            key: self.name.clone(),
            reason: format!("its ledgers list other generations each of {ROUNDS} times"),
        }
    }

    pub(super) fn corrupt(&self) -> Error {
        Error::Corrupt {
            key: self.name.clone(),
            reason: "a script or a string answered what it never does".into(),
        }
    }

    async fn slide_once(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        pending: &[usize],
        how: How,
    ) -> Slid {
        let watch = self.watch(how.replicated, pending.len().min(WINDOW));
        let Some(window) = &self.window else {
            return Slid::default();
        };
        let mut slide = Slide {
            window,
            watch,
            hashes,
            periods: &times.periods,
            pending,
            all: pending.iter().map(|i| times.periods[*i]).collect(),
            how,
            slid: Slid::of(hashes.len()),
        };
        let sent = self.wire.run(&mut slide, pending.len(), WINDOW).await;
        let mut slid = slide.slid;
        if slid.failure.is_some() {
            slid.unconfirmed.extend(&pending[sent..]);
            slid.unconfirmed.append(&mut slid.again);
        }
        slid
    }

    /// Learns from what came of it; the error, if something went wrong.
    pub(super) async fn conclude_slide(
        &mut self,
        slid: Slid,
        how: How,
        of: usize,
    ) -> Result<(), Error> {
        self.wire.counters().ambiguous(slid.ambiguous);
        self.wire.counters().out_of_window(slid.old, slid.future);
        if let Some(window) = &mut self.window {
            for (chunk, periods) in slid.more {
                window.learn(chunk, periods);
            }
            if let Some(newest) = slid.newest {
                window.pass(newest);
            }
            let by = window.step() * u32::try_from(slid.behind).unwrap_or(0);
            if how.clock && (slid.behind > 1 || slid.future > 0) {
                self.warn_of_clock(by);
            }
        }
        if let Some(key) = slid.missing {
            return Err(self.why_missing(key).await);
        }
        if slid.corrupt {
            return Err(self.corrupt());
        }
        self.check_seen(slid.seen).await?;
        match slid.failure {
            None => self.compare_marks(slid.seen),
            Some(failure) => {
                let mut keys = slid.unconfirmed;
                keys.sort_unstable();
                keys.dedup();
                let reason = failure.to_string();
                Err(Error::Unconfirmed { keys, of, reason })
            }
        }
    }

    /// Warns, once, that our clock is not that of the others.
    fn warn_of_clock(&mut self, behind: Duration) {
        let known = |warning: &Warning| matches!(warning, Warning::Clock { .. });
        if !self.warnings.iter().any(known) {
            let name = self.name.clone();
            self.warnings.push(Warning::Clock { name, behind });
        }
    }

    /// Whether keys that were added last are still there; how many are not. A
    /// string that has expired says nothing.
    pub(super) async fn recent_gone(&mut self, recent: &[(Hash, i64)]) -> Result<usize, Error> {
        let (hashes, periods): (Vec<Hash>, Vec<i64>) = recent.iter().copied().unzip();
        let times = Times {
            periods,
            clock: false,
        };
        let mut found = vec![false; hashes.len()];
        match self.look_for_all(&hashes, &times, &mut found).await {
            Err(Error::MissingChunk { .. }) => return Ok(0),
            asked => asked?,
        }
        let oldest = self.window.as_ref().and_then(Sliding::oldest);
        let gone = found
            .iter()
            .zip(&times.periods)
            .filter(|(found, period)| !**found && oldest.is_none_or(|oldest| **period >= oldest));
        Ok(gone.count())
    }

    /// When the newest period begins that we have heard of.
    pub(crate) fn latest(&self) -> Option<Moment> {
        let window = self.window.as_ref()?;
        window.newest.map(|newest| window.start_of(newest))
    }

    pub(super) fn check_window(&self, what: &'static str) -> Result<(), Error> {
        match self.kind() {
            Kind::Window => Ok(()),
            kind => Err(Error::Filter(tamis::Error::Unable {
                kind,
                what,
                instead: "they have no generations; create a window",
            })),
        }
    }
}
