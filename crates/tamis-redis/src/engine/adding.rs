//! Keys that come, and keys that go.

use super::Engine;
use super::watch::{Seen, Watch};
use crate::Error;
use crate::body::{Body, Cells, Changes};
use crate::link::Link;
use crate::wire::{Settled, Wire};
use std::sync::Arc;
use tamis::{Hash, Kind};

/// Keys that are sent together: few enough for the sockets to hold, so that
/// the next are made while the servers are at these.
const WINDOW: usize = 1 << 12;
/// Keys after which it is decided anew whether to ask before adding.
const STRETCH: usize = 1 << 16;
/// Fewer are not worth a second round trip.
const WORTH_ASKING: usize = 1 << 6;

/// What went wrong with some of a batch's keys.
#[derive(Default)]
pub(super) struct Trouble {
    pub(super) unconfirmed: Vec<usize>,
    pub(super) reason: Option<String>,
    /// A chunk of the body that was changed.
    pub(super) missing: Option<usize>,
    /// New keys whose chunk was closed: not decided here.
    pub(super) undecided: Vec<usize>,
    seen: Seen,
}

impl Trouble {
    const fn is_none(&self) -> bool {
        self.reason.is_none() && self.missing.is_none() && !self.seen.gone
    }
}

impl<L: Link> Engine<L> {
    /// Adds keys; `new[i]` answers for `hashes[i]`.
    pub(crate) async fn insert_hashes(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
    ) -> Result<(), Error> {
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

    /// Adds keys. Where most were seen before, they are asked first, which
    /// costs the servers a third of adding them. Not if replicas must have
    /// them: what another client has just added may be on its way there.
    async fn insert_stretch(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let many = hashes.len() >= WORTH_ASKING;
        let bits = matches!(self.bodies[0].cells(), Cells::Bits(_));
        let trouble = if many && bits && self.mostly_seen && self.wire.wait.is_none() {
            let mut known = vec![false; hashes.len()];
            self.ask_bodies(0, 1, hashes, &mut known, false).await?;
            let unknown: Vec<usize> = (0..hashes.len()).filter(|i| !known[*i]).collect();
            let watch = self.watch(false, unknown.len().min(WINDOW));
            let (wire, body) = (&mut self.wire, &self.bodies[0]);
            add_some(wire, &watch, body, hashes, &unknown, new).await
        } else {
            let watch = self.watch(self.wire.wait.is_some(), hashes.len().min(WINDOW));
            add(&mut self.wire, &watch, &self.bodies[0], hashes, new).await
        };
        if many {
            let seen = new.iter().filter(|new| !**new).count();
            self.mostly_seen = seen > hashes.len() / 2;
        }
        self.conclude(0, trouble, hashes.len()).await
    }

    /// Takes back one adding of each key; `removed[i]` answers for `hashes[i]`.
    pub(crate) async fn remove_hashes(
        &mut self,
        hashes: &[Hash],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        self.check_counting("removed from")?;
        self.counted = None;
        self.check_memory()?;
        let watch = self.watch(self.wire.wait.is_some(), hashes.len().min(WINDOW));
        let Self { wire, bodies, .. } = self;
        let body = &bodies[0];
        if body.cells().lines_per_key() > 1 {
            return Err(Error::Filter(tamis::Error::Unable {
                kind: Kind::Counting,
                what: "removed from in Redis when its keys have several lines",
                instead: "a key could be removed in part; create the filter in Redis, \
                          where its keys have one line, and add the keys again",
            }));
        }
        removed.fill(false);
        let trouble = change(
            wire,
            &watch,
            hashes.len(),
            |range| body.removals((range.start as u32..).zip(&hashes[range])),
            |work, i, _, answer| {
                work.was_removed(i, answer, |key, was| removed[key as usize] = was)
            },
        )
        .await;
        self.conclude(0, trouble, hashes.len()).await
    }

    /// The error, if there was trouble with a body.
    pub(super) async fn conclude(
        &mut self,
        body: usize,
        trouble: Trouble,
        of: usize,
    ) -> Result<(), Error> {
        let Trouble {
            mut unconfirmed,
            reason,
            missing,
            undecided: _,
            seen,
        } = trouble;
        if let Some(chunk) = missing {
            return Err(self.chunk_missing((body, chunk)).await);
        }
        self.check_seen(seen).await?;
        let Some(reason) = reason else {
            return self.compare_marks(seen);
        };
        unconfirmed.sort_unstable();
        unconfirmed.dedup();
        Err(Error::Unconfirmed {
            keys: unconfirmed,
            of,
            reason,
        })
    }
}

/// Adds keys to a body; sets `new[i]` if `hashes[i]` was new.
pub(super) async fn add<L: Link>(
    wire: &mut Wire<L>,
    watch: &Watch,
    body: &Body,
    hashes: &[Hash],
    new: &mut [bool],
) -> Trouble {
    let cells = body.cells();
    let replicated = wire.wait.is_some();
    let mut undecided = Vec::new();
    let counters = Arc::clone(wire.counters());
    let mut trouble = change(
        wire,
        watch,
        hashes.len(),
        |range| body.adds((range.start as u32..).zip(&hashes[range]), replicated),
        |work, i, ambiguous, answer| {
            work.was_new(cells, i, answer, |key, was_new, closed| {
                if closed && was_new && !ambiguous {
                    undecided.push(key as usize);
                } else {
                    // A try whose answer was lost may have added it: better
                    // told twice than never.
                    new[key as usize] |= was_new || ambiguous;
                    counters.ambiguous((ambiguous && !was_new).into());
                }
            })
        },
    )
    .await;
    trouble.undecided = undecided;
    trouble
}

/// [`add`] for those of the keys that are at these places.
pub(super) async fn add_some<L: Link>(
    wire: &mut Wire<L>,
    watch: &Watch,
    body: &Body,
    hashes: &[Hash],
    places: &[usize],
    new: &mut [bool],
) -> Trouble {
    let adding: Vec<Hash> = places.iter().map(|i| hashes[*i]).collect();
    let mut was_new = vec![false; adding.len()];
    let mut trouble = add(wire, watch, body, &adding, &mut was_new).await;
    for (i, was_new) in places.iter().zip(was_new) {
        new[*i] = was_new;
    }
    for key in trouble.unconfirmed.iter_mut().chain(&mut trouble.undecided) {
        *key = places[*key];
    }
    trouble
}

/// The error of a part of a batch, told of the whole batch: what comes behind
/// that part was not sent.
pub(super) fn unconfirmed_of_all(error: Error, start: usize, len: usize, of: usize) -> Error {
    let (keys, reason) = match error {
        Error::Unconfirmed { keys, reason, .. } => (keys, reason),
        Error::Server { source, .. } => ((0..len).collect(), source.to_string()),
        Error::NoRoom { .. } => ((0..len).collect(), error.to_string()),
        other => return other,
    };
    let behind = start + len..of;
    Error::Unconfirmed {
        keys: keys
            .into_iter()
            .map(|key| start + key)
            .chain(behind)
            .collect(),
        of,
        reason,
    }
}

async fn change<L: Link>(
    wire: &mut Wire<L>,
    watch: &Watch,
    total: usize,
    mut make: impl FnMut(std::ops::Range<usize>) -> Changes + Send,
    mut read: impl FnMut(&Changes, usize, bool, &[redis::Value]) -> Option<()> + Send,
) -> Trouble {
    let mut trouble = Trouble::default();
    let make = |range| {
        let mut changes = make(range);
        changes.requests.extend(watch.requests.iter().cloned());
        changes
    };
    let sent = wire
        .run(total, WINDOW, make, |work, settled| {
            for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
                match outcome {
                    Ok(answer) if i >= work.own() => {
                        watch.read(i - work.own(), &answer, &mut trouble.seen);
                    }
                    Ok(answer) => {
                        if read(&work, i, ambiguous, &answer).is_none() {
                            trouble.missing = Some(work.chunk_of(i));
                        }
                    }
                    Err(failure) => {
                        trouble.reason = Some(failure.to_string());
                        let keys = work.keys_of(i).iter().map(|key| *key as usize);
                        trouble.unconfirmed.extend(keys);
                    }
                }
            }
            trouble.is_none()
        })
        .await;
    if trouble.reason.is_some() {
        trouble.unconfirmed.extend(sent..total);
    }
    trouble
}
