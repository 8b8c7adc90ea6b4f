//! Keys of a window without asking all its periods in one step: they are looked
//! for first, and added if nothing has changed in between. It seldom has, as
//! workers add to the newest period; else they are asked again in one step.

use super::Engine;
use super::adding::unconfirmed_of_all;
use super::watch::{Seen, Watch};
use super::window::{ROUNDS, Slid, Times};
use crate::Error;
use crate::link::Link;
use crate::looks::{Blind, Look, Sight, set_new};
use crate::request::Request;
use crate::sliding::How;
use crate::wire::{Job, Settled};
use std::ops::Range;
use tamis::{Hash, Renewal};

/// Keys that are looked for together.
const WINDOW: usize = 1 << 13;

/// Keys whose bits are set.
struct Setting {
    requests: Vec<Request>,
    /// For each request its keys, and whether others than their own period have
    /// them.
    keys: Vec<Vec<(usize, bool)>>,
    period: i64,
    bits: usize,
    watch: Watch,
    slid: Slid,
}

impl Job for Setting {
    type Window = ();

    fn begin(&mut self, _: Range<usize>) -> (Vec<Request>, ()) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.extend_from_slice(&self.watch.requests);
        (requests, ())
    }

    fn finish(&mut self, (): (), settled: Vec<Settled>) -> bool {
        for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
            let slid = &mut self.slid;
            match (outcome, self.keys.get(i)) {
                (Ok(answer), None) => {
                    self.watch
                        .read(i - self.keys.len(), &answer, &mut slid.seen);
                }
                (Ok(answer), Some(keys)) => match set_new(&answer, keys.len(), self.bits) {
                    // Not done now, but perhaps by an earlier try.
                    None => {
                        for (key, _) in keys {
                            slid.new[*key] |= ambiguous;
                            slid.again.push(*key);
                        }
                    }
                    Some(new) => {
                        for ((key, elsewhere), new) in keys.iter().zip(new) {
                            let unsure = ambiguous && !new && !elsewhere;
                            slid.new[*key] |= new && !elsewhere || unsure;
                            slid.ambiguous += u64::from(unsure);
                            if new {
                                slid.added.push((*key, self.period));
                            }
                        }
                    }
                },
                (Err(failure), keys) => {
                    slid.failure = Some(failure);
                    let all = &self.keys;
                    let keys = keys.map_or_else(|| all.concat(), Clone::clone);
                    slid.unconfirmed.extend(keys.iter().map(|(key, _)| *key));
                }
            }
        }
        false
    }
}

impl<L: Link> Engine<L> {
    /// Asks keys; sets `out[i]` if a period that counts has `hashes[i]`.
    pub(super) async fn look_for_all(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        out: &mut [bool],
    ) -> Result<(), Error> {
        let all: Vec<usize> = (0..hashes.len()).collect();
        for some in all.chunks(WINDOW) {
            for (look, sight) in self.look(hashes, times, some).await? {
                for (place, (own, other)) in look.places.iter().zip(sight.found) {
                    out[place.key as usize] = own || other;
                }
            }
        }
        Ok(())
    }

    /// Adds keys of one period; those that were added. Replicas must not be waited
    /// for: what another client has just added may be on its way there.
    pub(super) async fn add_unknown(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        new: &mut [bool],
    ) -> Result<Vec<(usize, i64)>, Error> {
        let all: Vec<usize> = (0..hashes.len()).collect();
        let mut added = Vec::new();
        for some in all.chunks(WINDOW) {
            let start = some[0];
            let outcome = self.add_some_unknown(hashes, times, some, new).await;
            let more = outcome.map_err(|error| match error {
                Error::Unconfirmed {
                    mut keys,
                    of,
                    reason,
                } => {
                    keys.extend(start + some.len()..hashes.len());
                    Error::Unconfirmed { keys, of, reason }
                }
                error => unconfirmed_of_all(error, start, some.len(), hashes.len()),
            });
            added.extend(more?);
        }
        Ok(added)
    }

    async fn add_some_unknown(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        some: &[usize],
        new: &mut [bool],
    ) -> Result<Vec<(usize, i64)>, Error> {
        let period = times.periods[some[0]];
        let looks = self.look(hashes, times, some).await?;
        let (mut setting, mut pending) = self.settings(looks, period, hashes.len());
        let how = How {
            clock: times.clock,
            replicated: false,
        };
        let mut added = Vec::new();
        if !setting.keys.is_empty() {
            self.wire.run(&mut setting, 1, 1).await;
            let mut slid = setting.slid;
            for (new, told) in new.iter_mut().zip(&slid.new) {
                *new |= *told;
            }
            added.append(&mut slid.added);
            pending.append(&mut slid.again);
            if slid.failure.is_some() {
                slid.unconfirmed.append(&mut pending);
            }
            self.conclude_slide(slid, how, hashes.len()).await?;
        }
        pending.sort_unstable();
        added.extend(self.slide(hashes, times, pending, how, new).await?);
        Ok(added)
    }

    /// The steps that set what looks have not found, and the keys that are to be
    /// asked again: their period is not the newest, or has not begun.
    fn settings(&self, looks: Vec<(Look, Sight)>, period: i64, of: usize) -> (Setting, Vec<usize>) {
        let mut setting = Setting {
            requests: Vec::new(),
            keys: Vec::new(),
            period,
            bits: 1,
            watch: self.watch(false, 0),
            slid: Slid::of(of),
        };
        let mut pending = Vec::new();
        let Some(window) = &self.window else {
            return (setting, pending);
        };
        let quiet = window.shape().options().renewed() == Renewal::Quiet;
        for (look, sight) in looks {
            let key = |i: &usize| look.places[*i].key as usize;
            if sight.newest != Some(period) {
                pending.extend((0..look.places.len()).map(|i| key(&i)));
                continue;
            }
            let lacks = |i: &usize| {
                let (own, other) = sight.found[*i];
                !own && (quiet || !other)
            };
            let unknown: Vec<usize> = (0..look.places.len()).filter(lacks).collect();
            setting.bits = look.places[0].bits.len() / 2;
            for (request, about) in look.sets(window, &sight, &unknown) {
                let elsewhere = |i: &usize| (key(i), sight.found[*i].1);
                setting.requests.push(request);
                setting.keys.push(about.iter().map(elsewhere).collect());
            }
        }
        let adding = setting.keys.iter().map(Vec::len).sum();
        setting.watch = self.watch(false, adding);
        (setting, pending)
    }

    /// Looks for some of the keys.
    async fn look(
        &mut self,
        hashes: &[Hash],
        times: &Times,
        some: &[usize],
    ) -> Result<Vec<(Look, Sight)>, Error> {
        let mut shown = Vec::new();
        let mut pending = some.to_vec();
        for _ in 0..ROUNDS {
            let (looks, mut requests) = self.looks(hashes, times, &pending);
            let watch = self.watch(false, 0);
            requests.extend_from_slice(&watch.requests);
            let answers = self.wire.ask("asking the filter", requests).await?;
            let mut seen = Seen::default();
            for (i, answer) in answers[looks.len()..].iter().enumerate() {
                watch.read(i, answer, &mut seen);
            }
            pending.clear();
            for (look, answer) in looks.into_iter().zip(&answers) {
                let Some(window) = &mut self.window else {
                    break;
                };
                match look.see(window, answer, times.clock) {
                    Ok(sight) => {
                        sight.newest.into_iter().for_each(|n| window.pass(n));
                        shown.push((look, sight));
                    }
                    Err(Blind::More(periods)) => {
                        window.learn(look.chunk, periods);
                        pending.extend(look.places.iter().map(|place| place.key as usize));
                    }
                    Err(Blind::Missing(key)) => return Err(self.why_missing(key).await),
                    Err(Blind::Corrupt) => return Err(self.corrupt()),
                }
            }
            self.check_seen(seen).await?;
            self.compare_marks(seen)?;
            if pending.is_empty() {
                return Ok(shown);
            }
            pending.sort_unstable();
        }
        Err(self.restless())
    }

    /// The looks for some keys, one for each chunk.
    fn looks(&self, hashes: &[Hash], times: &Times, some: &[usize]) -> (Vec<Look>, Vec<Request>) {
        let Some(window) = &self.window else {
            return (Vec::new(), Vec::new());
        };
        let place = |i: &usize| window.place(*i as u32, hashes[*i], times.periods[*i]);
        let mut chunks = std::collections::BTreeMap::<usize, Vec<_>>::new();
        for place in some.iter().map(place) {
            chunks.entry(place.chunk).or_default().push(place);
        }
        (chunks.into_values())
            .map(|places| Look::new(window, places))
            .unzip()
    }
}
