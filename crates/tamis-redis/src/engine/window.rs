//! Keys of a window: looked up in their buckets, and added unless another
//! client has changed the buckets meanwhile.

use super::Engine;
use super::adding::unconfirmed_of_all;
use super::watch::{Seen, Watch};
use crate::Error;
use crate::failure::Failure;
use crate::link::Link;
use crate::looks::{Blind, Decided, Look, TOGETHER, Timed, changed};
use crate::request::Request;
use crate::wire::{Job, Settled};
use std::collections::BTreeMap;
use std::ops::Range;
use tamis::{Hash, Moment, window::When};

/// Keys that are sent together.
const WINDOW: usize = 1 << 13;
/// How often other clients may come first without one of our keys being
/// decided.
const ROUNDS: usize = 100;

/// The periods of keys; without them, the servers' clocks apply.
pub(super) type Times = Option<Vec<i64>>;

/// A change to chunks.
struct Change {
    requests: Vec<Request>,
    /// For each request, its chunk and the decisions that it applies.
    chunks: Vec<(usize, Decided)>,
    watch: Watch,
    done: Done,
}

/// The results of a change.
#[derive(Default)]
struct Done {
    new: Vec<usize>,
    /// New keys and their periods.
    added: Vec<(usize, i64)>,
    again: Vec<usize>,
    versions: Vec<(usize, u64)>,
    ambiguous: u64,
    unconfirmed: Vec<usize>,
    failure: Option<Failure>,
    seen: Seen,
}

impl Job for Change {
    type Window = ();

    fn begin(&mut self, _: Range<usize>) -> (Vec<Request>, ()) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.extend_from_slice(&self.watch.requests);
        (requests, ())
    }

    fn finish(&mut self, (): (), settled: Vec<Settled>) -> bool {
        let done = &mut self.done;
        for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
            match (outcome, self.chunks.get(i)) {
                (Ok(answer), None) => {
                    self.watch
                        .read(i - self.chunks.len(), &answer, &mut done.seen);
                }
                (Ok(answer), Some((chunk, decided))) => {
                    let answer = changed(&answer);
                    done.versions
                        .extend(answer.iter().map(|(version, _)| (*chunk, *version)));
                    let late = answer.map(|(_, late)| late);
                    done.take(decided, late.as_deref(), ambiguous);
                }
                (Err(failure), about) => {
                    done.failure = Some(failure);
                    let all = || self.chunks.iter().map(|(_, decided)| decided);
                    let some = about.map_or_else(|| all().collect(), |(_, one)| vec![one]);
                    let keys = some.iter().flat_map(|decided| &decided.keys);
                    done.unconfirmed.extend(keys.map(|(key, ..)| *key));
                }
            }
        }
        false
    }
}

impl Done {
    /// Records the decisions: all except changes where another client came
    /// first, or none if another client changed the chunk.
    fn take(&mut self, decided: &Decided, late: Option<&[usize]>, ambiguous: bool) {
        let lost = |change: &usize| late.is_none_or(|late| late.contains(&(change + 1)));
        let mut again: Vec<usize> = (0..decided.changes.len())
            .filter(lost)
            .flat_map(|change| decided.changes[change].iter().copied())
            .collect();
        again.sort_unstable();
        again.dedup();
        for (key, period, found) in &decided.keys {
            let again = again.binary_search(key).is_ok();
            // An earlier try may have added it: better to report it twice than
            // never.
            if !found && (!again || ambiguous) {
                self.new.push(*key);
                self.ambiguous += u64::from(again);
                self.added.extend((!again).then_some((*key, *period)));
            }
        }
        self.again.append(&mut again);
    }
}

impl<L: Link> Engine<L> {
    /// The periods of some moments.
    fn times(&self, at: When<'_>, keys: usize) -> Times {
        let window = self.window.as_ref()?;
        Some((0..keys).map(|i| window.period_of(at.of(i))).collect())
    }

    /// Adds keys, each seen at its moment; `new[i]` is the answer for
    /// `hashes[i]`. Filters other than windows ignore the moments.
    pub(crate) async fn insert_hashes_at(
        &mut self,
        hashes: &[Hash],
        at: When<'_>,
        new: &mut [bool],
    ) -> Result<(), Error> {
        at.check(hashes.len());
        let times = self.times(at, hashes.len());
        if self.window.is_none() {
            return self.insert_hashes(hashes, new).await;
        }
        self.insert_timed(hashes, &times, new).await
    }

    /// Looks up keys, each at its moment.
    pub(crate) async fn contains_hashes_at(
        &mut self,
        hashes: &[Hash],
        at: When<'_>,
        out: &mut [bool],
    ) -> Result<(), Error> {
        at.check(hashes.len());
        let times = self.times(at, hashes.len());
        if self.window.is_none() {
            return self.contains_hashes(hashes, out).await;
        }
        self.contains_timed(hashes, &times, out).await
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
        let mut added = Vec::new();
        for start in (0..hashes.len()).step_by(WINDOW) {
            let some = start..(start + WINDOW).min(hashes.len());
            let len = some.len();
            let outcome = self
                .add_some_timed(hashes, times, some.collect(), new)
                .await;
            added.extend(outcome.map_err(|error| match error {
                Error::Unconfirmed {
                    mut keys,
                    of,
                    reason,
                } => {
                    keys.extend(start + len..hashes.len());
                    Error::Unconfirmed { keys, of, reason }
                }
                error => unconfirmed_of_all(error, start, len, hashes.len()),
            })?);
        }
        self.look_back().await?;
        self.remember_periods(hashes, &added);
        self.remember(&[], &[]).await;
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

    async fn look_for_all(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        out: &mut [bool],
    ) -> Result<(), Error> {
        let all: Vec<usize> = (0..hashes.len()).collect();
        for some in all.chunks(WINDOW) {
            let looks = self.look(hashes, times, some, false).await?;
            let Some(window) = &self.window else { break };
            for (key, found) in looks.iter().flat_map(|look| look.ask(window)) {
                out[key] = found;
            }
        }
        Ok(())
    }

    /// Adds some of the keys; returns the new ones with their periods.
    async fn add_some_timed(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        mut pending: Vec<usize>,
        new: &mut [bool],
    ) -> Result<Vec<(usize, i64)>, Error> {
        let (mut added, mut in_vain) = (Vec::new(), 0);
        while !pending.is_empty() {
            let before = pending.len();
            let looks = self.look(hashes, times, &pending, true).await?;
            let mut open = vec![true; hashes.len()];
            for timed in looks.iter().flat_map(|look| &look.keys) {
                open[timed.key] = false;
            }
            let done = self.change_window(looks, times).await?;
            done.again.iter().for_each(|key| open[*key] = true);
            done.new.iter().for_each(|key| new[*key] = true);
            added.extend(&done.added);
            pending.retain(|key| open[*key]);
            self.conclude_change(done, &pending, hashes.len()).await?;
            in_vain = if pending.len() < before {
                0
            } else {
                in_vain + 1
            };
            if in_vain == ROUNDS {
                return Err(Error::Corrupt {
                    key: self.name.clone(),
                    reason: format!("others changed it each of {ROUNDS} times"),
                });
            }
        }
        Ok(added)
    }

    /// Decides which keys are new, and applies the decisions.
    async fn change_window(&mut self, looks: Vec<Look>, times: &Times) -> Result<Done, Error> {
        let Some(window) = &self.window else {
            return Ok(Done::default());
        };
        let replicated = self.wire.wait.is_some();
        // The period to use for keys from the future in an empty chunk: the
        // newest we know of, or the first given one that is plausible.
        let now = window.period_of(Moment::now());
        let mut given = times.iter().flatten().copied();
        let instead = window.newest.or_else(|| given.find(|at| *at <= now + 1));
        let (mut done, mut chunks) = (Done::default(), Vec::new());
        let (mut requests, mut growing, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        let (mut old, mut future) = (0, 0);
        for mut look in looks {
            let mut decided = look.decide(window, instead);
            look.request(window, &mut decided, replicated);
            done.again.append(&mut decided.again);
            done.new.extend(&decided.old);
            old += decided.old.len() as u64;
            future += decided.future;
            if decided.made > 0 {
                growing.push((window.chunks[look.chunk][0].slot, decided.made));
            }
            versions.push((look.chunk, look.head.version));
            match decided.request.take() {
                Some(request) => {
                    requests.push(request);
                    chunks.push((look.chunk, decided));
                }
                None => done.take(&decided, Some(&[]), false),
            }
        }
        for (slot, bytes) in growing {
            self.room_at(slot, bytes).await?;
        }
        let adding = chunks
            .iter()
            .map(|(_, decided)| decided.changes.len())
            .sum();
        if requests.is_empty() {
            self.wire.counters().out_of_window(old, future);
            return Ok(done);
        }
        let mut watch = self.watch(replicated, adding);
        if adding > 0 && !replicated {
            watch.requests.push(self.note_versions(&versions));
        }
        let mut change = Change {
            requests,
            chunks,
            watch,
            done,
        };
        self.wire.run(&mut change, 1, 1).await;
        self.wire.counters().out_of_window(old, future);
        Ok(change.done)
    }

    /// Records the results; returns the error if something went wrong.
    async fn conclude_change(
        &mut self,
        done: Done,
        pending: &[usize],
        of: usize,
    ) -> Result<(), Error> {
        self.wire.counters().ambiguous(done.ambiguous);
        if let Some(window) = &mut self.window {
            for (chunk, version) in done.versions {
                window.versions[chunk] = window.versions[chunk].max(version);
            }
            window.pass(done.added.iter().map(|(_, period)| *period).max());
        }
        self.check_seen(done.seen).await?;
        match done.failure {
            None => self.compare_marks(done.seen),
            Some(failure) => {
                let mut keys = [&done.unconfirmed, pending].concat();
                keys.sort_unstable();
                keys.dedup();
                let reason = failure.to_string();
                Err(Error::Unconfirmed { keys, of, reason })
            }
        }
    }

    /// Reads the buckets of some of the keys; if they are to be added, only as
    /// many keys of each chunk as are decided together.
    async fn look(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        some: &[usize],
        adding: bool,
    ) -> Result<Vec<Look>, Error> {
        let Some(window) = &self.window else {
            return Ok(Vec::new());
        };
        let mut chunks = BTreeMap::<usize, Vec<Timed>>::new();
        for key in some {
            let place = window.place(hashes[*key]);
            let keys = chunks.entry(place.chunk).or_default();
            if !adding || keys.len() < TOGETHER {
                let at = times.as_ref().map(|times| times[*key]);
                keys.push(Timed {
                    key: *key,
                    place,
                    at,
                });
            }
        }
        let (mut shown, mut missed) = (Vec::new(), 0);
        while !chunks.is_empty() {
            let Some(window) = &self.window else { break };
            let look = |(chunk, keys)| Look::new(window, chunk, keys, adding);
            let looks = std::mem::take(&mut chunks).into_iter().map(look).collect();
            for (look, outcome) in self.look_once(looks).await? {
                match outcome {
                    Ok(()) => {
                        shown.push(look);
                        continue;
                    }
                    Err(Blind::Strings(strings)) => self.learn_strings(look.chunk, strings),
                    // Another client may have dropped a string meanwhile.
                    Err(Blind::Missing(_)) if missed < 3 => missed += 1,
                    Err(Blind::Missing(key)) => return Err(self.why_missing(key).await),
                    Err(Blind::Corrupt) => return Err(self.corrupt()),
                }
                chunks.insert(look.chunk, look.keys);
            }
        }
        Ok(shown)
    }

    fn learn_strings(&mut self, chunk: usize, strings: usize) {
        if let Some(window) = &mut self.window {
            window.learn(chunk, strings);
        }
    }

    /// The results of each look.
    async fn look_once(
        &mut self,
        looks: Vec<Look>,
    ) -> Result<Vec<(Look, Result<(), Blind>)>, Error> {
        let watch = self.watch(false, 0);
        let mut requests: Vec<Vec<Request>> = looks.iter().map(Look::requests).collect();
        let counts: Vec<usize> = requests.iter().map(Vec::len).collect();
        requests.push(watch.requests.clone());
        let answers = self
            .wire
            .ask("asking the filter", requests.concat())
            .await?;
        let Some(window) = &mut self.window else {
            return Ok(Vec::new());
        };
        let (mut rest, mut shown, mut older) = (&answers[..], Vec::new(), None);
        for (mut look, count) in looks.into_iter().zip(counts) {
            let (own, behind) = rest.split_at(count);
            rest = behind;
            let outcome = look.see(window, own);
            if outcome.is_ok() {
                let (known, version) = (&mut window.versions[look.chunk], look.head.version);
                if version < *known {
                    older = Some((look.chunk, version, *known));
                } else if self.wire.wait.is_none() {
                    *known = version;
                }
                window.pass(look.head.newest);
            }
            shown.push((look, outcome));
        }
        let mut seen = Seen::default();
        for (i, answer) in rest.iter().enumerate() {
            watch.read(i, answer, &mut seen);
        }
        self.check_seen(seen).await?;
        self.compare_marks(seen)?;
        if let Some((chunk, version, known)) = older {
            return Err(self.older_part(chunk, version, known));
        }
        self.look_further(&mut shown).await?;
        Ok(shown)
    }

    /// Reads buckets of further strings that may contain the keys.
    async fn look_further(&mut self, looks: &mut [(Look, Result<(), Blind>)]) -> Result<(), Error> {
        let Some(window) = &self.window else {
            return Ok(());
        };
        for level in 1.. {
            let (mut about, mut requests) = (Vec::new(), Vec::new());
            for (i, (look, outcome)) in looks.iter().enumerate() {
                if let Some(request) = look.next(window, level).filter(|_| outcome.is_ok()) {
                    about.push(i);
                    requests.push(request);
                }
            }
            if requests.is_empty() {
                break;
            }
            let answers = self.wire.ask("asking the filter", requests).await?;
            for (i, answer) in about.into_iter().zip(answers) {
                let (look, outcome) = &mut looks[i];
                *outcome = look.see_next(window, level, &answer);
            }
        }
        Ok(())
    }

    /// The error for a part of the window with a lower version than before.
    pub(super) fn older_part(&mut self, chunk: usize, version: u64, known: u64) -> Error {
        let part = self
            .window
            .as_ref()
            .map(|window| window.string(chunk, 0).key);
        self.lost(format!(
            "the part {} has been changed {version} times, and {known} times before",
            part.unwrap_or_default()
        ))
    }

    fn corrupt(&self) -> Error {
        Error::Corrupt {
            key: self.name.clone(),
            reason: "a string answered what it never does".into(),
        }
    }

    /// Looks up the last added keys; returns how many are missing.
    pub(super) async fn recent_gone(&mut self, recent: &[(Hash, i64)]) -> Result<usize, Error> {
        let (hashes, periods): (Vec<Hash>, Vec<i64>) = recent.iter().copied().unzip();
        let times = Some(periods);
        let mut found = vec![false; hashes.len()];
        self.look_for_all(&hashes, &times, &mut found).await?;
        let Some(window) = &self.window else {
            return Ok(0);
        };
        let oldest = window.newest.map(|newest| newest - window.generations());
        let kept = |period: &i64| oldest.is_none_or(|oldest| *period >= oldest);
        let gone = (found.iter().zip(recent)).filter(|(found, (_, at))| !**found && kept(at));
        Ok(gone.count())
    }

    /// When the newest period begins that we know of.
    pub(crate) fn latest(&self) -> Option<Moment> {
        let window = self.window.as_ref()?;
        window.newest.map(|newest| window.start_of(newest))
    }
}
