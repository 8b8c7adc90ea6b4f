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
use crate::wire::{Job, Settled, of_failure};
use redis::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use tamis::{At, Hash, Kind, Moment};

/// Keys that are sent together.
const WINDOW: usize = 1 << 12;
/// How often others may start periods while we ask for the same keys.
const ROUNDS: usize = 100;

/// The periods that keys belong to.
pub(super) struct Times {
    periods: Vec<i64>,
    /// Whether they are our clock's.
    clock: bool,
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
struct Slid {
    /// For each key, whether it was new.
    new: Vec<bool>,
    /// Keys that were not decided: there are periods that we did not know.
    again: Vec<usize>,
    /// Periods that have strings, by chunk.
    more: Vec<(usize, Vec<i64>)>,
    /// What counted: of each key added, its period.
    added: Vec<(usize, i64)>,
    newest: Option<i64>,
    /// Keys that the window has passed, that were from the future, and the
    /// furthest that our clock was behind others.
    old: u64,
    future: u64,
    behind: i64,
    ambiguous: u64,
    unconfirmed: Vec<usize>,
    failure: Option<Failure>,
    missing: Option<String>,
    corrupt: bool,
    seen: Seen,
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
                    slid.new[key] |= ambiguous && self.how.add;
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
                slid.newest = slid.newest.max(newest);
                if self.how.add {
                    slid.more.push((about.chunk, vec![period]));
                }
                if period < about.period {
                    slid.future += about.keys.len() as u64;
                }
                slid.behind = slid.behind.max(period - about.period);
                for (key, new) in keys.zip(new) {
                    // Better reported twice than never.
                    let unsure = ambiguous && self.how.add && !new;
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
        let added = self.slide(hashes, times, true, new).await?;
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
        self.ask_timed(hashes, times, out).await?;
        self.look_back().await
    }

    async fn ask_timed(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        out: &mut [bool],
    ) -> Result<(), Error> {
        let asked = self.slide(hashes, times, false, out).await;
        for out in out {
            *out = asked.is_ok() && !*out;
        }
        asked.map(drop)
    }

    /// Which keys are new, and, if they are added, to which periods.
    async fn slide(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        add: bool,
        new: &mut [bool],
    ) -> Result<Vec<(usize, i64)>, Error> {
        let how = How {
            add,
            clock: times.clock,
            replicated: self.wire.wait.is_some(),
        };
        let mut pending: Vec<usize> = (0..hashes.len()).collect();
        let mut all_added = Vec::new();
        for _ in 0..ROUNDS {
            let mut slid = self.slide_once(hashes, times, &pending, how).await;
            for (new, told) in new.iter_mut().zip(&slid.new) {
                *new |= *told;
            }
            all_added.append(&mut slid.added);
            pending = std::mem::take(&mut slid.again);
            pending.sort_unstable();
            self.conclude_slide(slid, how, hashes.len()).await?;
            if pending.is_empty() {
                return Ok(all_added);
            }
        }
        Err(Error::Corrupt {
            key: self.name.clone(),
            reason: format!("its ledgers list other generations each of {ROUNDS} times"),
        })
    }

    async fn slide_once(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        pending: &[usize],
        how: How,
    ) -> Slid {
        let adding = if how.add {
            pending.len().min(WINDOW)
        } else {
            0
        };
        let watch = self.watch(how.add && how.replicated, adding);
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
            slid: Slid {
                new: vec![false; hashes.len()],
                ..Slid::default()
            },
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
    async fn conclude_slide(&mut self, slid: Slid, how: How, of: usize) -> Result<(), Error> {
        self.wire.counters().ambiguous(slid.ambiguous);
        self.wire.counters().out_of_window(slid.old, slid.future);
        if let Some(window) = &mut self.window {
            for (chunk, periods) in slid.more {
                window.learn(chunk, periods);
            }
            for (_, period) in &slid.added {
                debug_assert!(slid.newest.is_some_and(|newest| newest >= *period));
            }
            if let Some(newest) = slid.newest {
                window.pass(newest);
            }
            let by = window.step() * u32::try_from(slid.behind).unwrap_or(0);
            if how.add && how.clock && (slid.behind > 1 || slid.future > 0) {
                self.warn_of_clock(by);
            }
        }
        if let Some(key) = slid.missing {
            return Err(self.why_missing(key).await);
        }
        if slid.corrupt {
            return Err(Error::Corrupt {
                key: self.name.clone(),
                reason: "a script answered what it never does".into(),
            });
        }
        self.check_seen(slid.seen).await?;
        match slid.failure {
            None => self.compare_marks(slid.seen),
            Some(failure) if how.add => {
                let mut keys = slid.unconfirmed;
                keys.sort_unstable();
                keys.dedup();
                let reason = failure.to_string();
                Err(Error::Unconfirmed { keys, of, reason })
            }
            Some(failure) => Err(of_failure("asking the filter", failure)),
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
        match self.ask_timed(&hashes, &times, &mut found).await {
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
