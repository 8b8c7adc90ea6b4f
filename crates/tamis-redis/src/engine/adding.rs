//! Adding and removing keys.

use super::Engine;
use super::watch::{Seen, Watch};
use crate::Error;
use crate::body::{Body, Cells, Changes};
use crate::link::Link;
use crate::request::Request;
use crate::wire::{Job, Settled};
use redis::Value;
use std::ops::Range;
use tamis::{Hash, Kind};

/// Keys that are sent together: few enough for the sockets' buffers, so that
/// the next ones are prepared while the servers work on these.
const WINDOW: usize = 1 << 12;
/// After this many keys, we decide anew whether to look keys up before adding
/// them.
const STRETCH: usize = 1 << 16;
/// For fewer keys, a second round trip doesn't pay.
const WORTH_ASKING: usize = 1 << 6;

/// Keys to be added to a body, or removed from it.
struct Change<'a> {
    body: &'a Body,
    watch: Watch,
    /// Sent once, with the first keys.
    once: Option<Request>,
    hashes: &'a [Hash],
    removing: bool,
    replicated: bool,
    changed: Changed,
}

/// The result of a change.
#[derive(Default)]
pub(super) struct Changed {
    /// For each key, whether it was new or was removed.
    answers: Vec<bool>,
    pub(super) unconfirmed: Vec<usize>,
    /// New keys whose chunk was closed: a later layer decides about them.
    pub(super) undecided: Vec<usize>,
    /// Old keys reported as new because an earlier try may have added them.
    pub(super) ambiguous: u64,
    reason: Option<String>,
    /// A missing chunk of the body.
    missing: Option<usize>,
    seen: Seen,
}

impl Job for Change<'_> {
    type Window = Changes;

    fn begin(&mut self, range: Range<usize>) -> (Vec<Request>, Changes) {
        let keys = (range.start as u32..).zip(&self.hashes[range]);
        let mut changes = if self.removing {
            self.body.removals(keys)
        } else {
            self.body.adds(keys, self.replicated)
        };
        let mut requests = std::mem::take(&mut changes.requests);
        requests.extend_from_slice(&self.watch.requests);
        requests.extend(self.once.take());
        (requests, changes)
    }

    fn finish(&mut self, changes: Changes, settled: Vec<Settled>) -> bool {
        let own = changes.own();
        for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
            match outcome {
                Ok(answer) if i >= own => {
                    self.watch.read(i - own, &answer, &mut self.changed.seen);
                }
                Ok(answer) => {
                    if self.read(&changes, i, &answer, ambiguous).is_none() {
                        self.changed.missing = Some(changes.chunk_of(i));
                    }
                }
                Err(failure) => {
                    self.changed.reason = Some(failure.to_string());
                    let keys = changes.keys_of(i).iter().map(|key| *key as usize);
                    self.changed.unconfirmed.extend(keys);
                }
            }
        }
        let Changed {
            reason,
            missing,
            seen,
            ..
        } = &self.changed;
        reason.is_none() && missing.is_none() && !seen.gone
    }
}

impl Change<'_> {
    /// Reads the answer to a request; `None` if its chunk is missing.
    fn read(
        &mut self,
        changes: &Changes,
        request: usize,
        answer: &[Value],
        ambiguous: bool,
    ) -> Option<()> {
        let changed = &mut self.changed;
        if self.removing {
            for (key, was) in changes.removed(request, answer)? {
                changed.answers[key] = was;
            }
            return Some(());
        }
        let (closed, added) = changes.added(self.body.cells(), request, answer)?;
        for (key, was_new) in added {
            if closed && was_new && !ambiguous {
                changed.undecided.push(key);
            } else {
                // An unanswered try may have added the key: better to report it
                // twice than never.
                changed.answers[key] |= was_new || ambiguous;
                changed.ambiguous += u64::from(ambiguous && !was_new);
            }
        }
        Some(())
    }
}

impl<L: Link> Engine<L> {
    /// Adds keys; `new[i]` is the answer for `hashes[i]`.
    pub(crate) async fn insert_hashes(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
    ) -> Result<(), Error> {
        if self.window.is_some() {
            return self.insert_timed(hashes, &None, new).await;
        }
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        new.fill(false);
        self.check_memory()?;
        self.insert_all(hashes, new).await?;
        self.look_back().await?;
        self.remember(hashes, new).await;
        self.look_at_fill().await;
        Ok(())
    }

    async fn insert_all(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        self.counted = None;
        if self.process != std::process::id() {
            self.process = std::process::id();
            self.forget_room();
        }
        if self.header.shape().kind() == Kind::Growing {
            return self.insert_growing(hashes, new).await;
        }
        for (i, keys) in hashes.chunks(STRETCH).enumerate() {
            let start = i * STRETCH;
            let new = &mut new[start..start + keys.len()];
            if let Err(error) = self.insert_stretch(keys, new).await {
                return Err(unconfirmed_of_all(error, start, keys.len(), hashes.len()));
            }
        }
        Ok(())
    }

    /// Adds keys. If most were seen before, looks them up first, which costs
    /// the servers a third of adding them. Not if replicas must have the keys:
    /// a key that another client has just added may still be on its way to the
    /// replicas.
    async fn insert_stretch(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let many = hashes.len() >= WORTH_ASKING;
        let bits = matches!(self.bodies[0].cells(), Cells::Bits(_));
        let changed = if many && bits && self.mostly_seen && self.wire.wait.is_none() {
            let mut known = vec![false; hashes.len()];
            self.ask_bodies(0, 1, hashes, &mut known, false).await?;
            let unknown: Vec<usize> = (0..hashes.len()).filter(|i| !known[*i]).collect();
            self.add_some(0, hashes, &unknown, new).await
        } else {
            let changed = self.change(0, hashes, false).await;
            new.copy_from_slice(&changed.answers);
            changed
        };
        let fresh = new.iter().filter(|new| **new).count() as u64;
        self.count_new(fresh.saturating_sub(changed.ambiguous))
            .await;
        if many {
            let seen = new.iter().filter(|new| !**new).count();
            self.mostly_seen = seen > hashes.len() / 2;
        }
        self.conclude(0, changed, hashes.len()).await
    }

    /// Undoes one addition of each key; `removed[i]` is the answer for
    /// `hashes[i]`.
    pub(crate) async fn remove_hashes(
        &mut self,
        hashes: &[Hash],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        self.check_counting("removed from")?;
        self.counted = None;
        self.check_memory()?;
        if self.bodies[0].cells().lines_per_key() > 1 {
            return Err(Error::Filter(tamis::Error::Unable {
                kind: Kind::Counting,
                what: "removed from in Redis when its keys have several lines",
                instead: "a key could be removed in part; create the filter in Redis, \
                          where its keys have one line, and add the keys again",
            }));
        }
        let changed = self.change(0, hashes, true).await;
        removed.copy_from_slice(&changed.answers);
        self.conclude(0, changed, hashes.len()).await
    }

    /// Adds keys to a body, or removes them.
    async fn change(&mut self, body: usize, hashes: &[Hash], removing: bool) -> Changed {
        let replicated = self.wire.wait.is_some();
        let mut change = Change {
            watch: self.watch(replicated, hashes.len().min(WINDOW)),
            once: removing.then(|| self.uncount(hashes)),
            body: &self.bodies[body],
            hashes,
            removing,
            replicated,
            changed: Changed {
                answers: vec![false; hashes.len()],
                ..Changed::default()
            },
        };
        let sent = self.wire.run(&mut change, hashes.len(), WINDOW).await;
        let mut changed = change.changed;
        if changed.reason.is_some() {
            changed.unconfirmed.extend(sent..hashes.len());
        }
        self.wire.counters().ambiguous(changed.ambiguous);
        changed
    }

    /// Adds the keys at these indices; sets `new` there.
    pub(super) async fn add_some(
        &mut self,
        body: usize,
        hashes: &[Hash],
        places: &[usize],
        new: &mut [bool],
    ) -> Changed {
        let adding: Vec<Hash> = places.iter().map(|i| hashes[*i]).collect();
        let mut changed = self.change(body, &adding, false).await;
        for (i, was_new) in places.iter().zip(&changed.answers) {
            new[*i] = *was_new;
        }
        for key in changed.unconfirmed.iter_mut().chain(&mut changed.undecided) {
            *key = places[*key];
        }
        changed
    }

    /// The error, if something went wrong with a body.
    pub(super) async fn conclude(
        &mut self,
        body: usize,
        changed: Changed,
        of: usize,
    ) -> Result<(), Error> {
        if let Some(chunk) = changed.missing {
            return Err(self.chunk_missing((body, chunk)).await);
        }
        self.check_seen(changed.seen).await?;
        let Some(reason) = changed.reason else {
            return self.compare_marks(changed.seen);
        };
        let mut keys = changed.unconfirmed;
        keys.sort_unstable();
        keys.dedup();
        Err(Error::Unconfirmed { keys, of, reason })
    }
}

/// Extends the error of a part of a batch to the whole batch: keys after that
/// part were not sent.
pub(super) fn unconfirmed_of_all(error: Error, start: usize, len: usize, of: usize) -> Error {
    let (keys, reason) = match error {
        Error::Unconfirmed { keys, reason, .. } => (keys, reason),
        Error::Server { source, .. } => ((0..len).collect(), source.to_string()),
        Error::NoRoom { .. } => ((0..len).collect(), error.to_string()),
        other => return other,
    };
    let keys = keys.into_iter().map(|key| start + key);
    Error::Unconfirmed {
        keys: keys.chain(start + len..of).collect(),
        of,
        reason,
    }
}
