//! Whether keys are there, and how often.

use super::watch::Seen;
use super::{Engine, Part};
use crate::Error;
use crate::body::{Cells, Reads};
use crate::chunks::Foot;
use crate::link::Link;
use crate::wire::{Settled, of_failure};
use tamis::{Hash, Kind};

/// Keys that are asked together: many, so that neighbouring lines are read by
/// one command.
const WINDOW: usize = 1 << 15;

impl<L: Link> Engine<L> {
    /// Asks keys; `out[i]` answers for `hashes[i]`.
    pub(crate) async fn contains_hashes(
        &mut self,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), out.len(), "one answer for each key");
        out.fill(false);
        self.check_memory()?;
        self.ask_all(hashes, out).await?;
        self.look_back().await
    }

    /// Asks all bodies; sets `out[i]` if one of them has `hashes[i]`.
    pub(super) async fn ask_all(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        let mut from = 0;
        while self
            .ask_bodies(from, usize::MAX, hashes, out, false)
            .await?
        {
            // Other clients have added layers. Those known have been asked.
            from = self.bodies.len();
            self.load_layers().await?;
        }
        Ok(())
    }

    /// Asks the bodies from `from` to before `to`; sets `out[i]` if one of
    /// them has `hashes[i]`, and replicas, too, if they must. Returns whether
    /// there are layers that we don't know yet.
    pub(super) async fn ask_bodies(
        &mut self,
        from: usize,
        to: usize,
        hashes: &[Hash],
        out: &mut [bool],
        replicated: bool,
    ) -> Result<bool, Error> {
        let watch = self.watch(replicated, 0);
        let Self { wire, bodies, .. } = self;
        let asked = &bodies[from..to.min(bodies.len())];
        let mut failed = None;
        let mut missing: Option<Part> = None;
        let mut seen = Seen::default();
        wire.run(
            hashes.len(),
            WINDOW,
            |range| {
                let mut reads = Reads::default();
                for (number, body) in (from..).zip(asked) {
                    let keys = (range.start as u32..).zip(&hashes[range.clone()]);
                    reads.add(number, body, keys, replicated);
                }
                // Whatever was added before we asked is in the layers that
                // there are while we ask.
                reads.requests.extend(watch.requests.iter().cloned());
                (range, reads)
            },
            |(range, work), settled| {
                // By body and key: whether all its lines have it.
                let mut has = vec![true; asked.len() * range.len()];
                for (i, Settled { outcome, .. }) in settled.into_iter().enumerate() {
                    let answer = match outcome {
                        Ok(answer) => answer,
                        Err(failure) => {
                            failed = Some(of_failure("asking the filter", failure));
                            continue;
                        }
                    };
                    let Some((body, chunk)) = work.about(i) else {
                        watch.read(i - work.own(), &answer, &mut seen);
                        continue;
                    };
                    let cells = bodies[body].cells();
                    let row = &mut has[(body - from) * range.len()..][..range.len()];
                    let each = |key: u32, line: &_, marks: &_| {
                        row[key as usize - range.start] &= cells.has(line, marks);
                    };
                    match work.lines(i, &answer, each) {
                        None => missing = Some((body, chunk)),
                        Some(Foot::Open) => {}
                        // Whatever the hash says, it has a successor.
                        Some(Foot::ClosedFor(_)) => {
                            seen.newer_layer |= body + 1 == bodies.len();
                        }
                    }
                }
                for row in has.chunks(range.len()) {
                    for (out, has) in out[range.clone()].iter_mut().zip(row) {
                        *out |= has;
                    }
                }
                failed.is_none() && missing.is_none()
            },
        )
        .await;
        self.check_asked(missing, failed, seen).await?;
        Ok(seen.newer_layer)
    }

    /// The error, if asking showed any.
    async fn check_asked(
        &mut self,
        missing: Option<Part>,
        failed: Option<Error>,
        seen: Seen,
    ) -> Result<(), Error> {
        if let Some(missing) = missing {
            return Err(self.chunk_missing(missing).await);
        }
        match failed {
            Some(error) => Err(error),
            None => {
                self.check_seen(seen).await?;
                self.compare_marks(seen)
            }
        }
    }

    /// How often keys were added, at most.
    pub(crate) async fn count_hashes(
        &mut self,
        hashes: &[Hash],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        self.check_counting("asked how often a key was added")?;
        self.check_memory()?;
        counts.fill(15);
        let watch = self.watch(false, 0);
        let Self { wire, bodies, .. } = self;
        let body = &bodies[0];
        let mut failed = None;
        let mut missing = None;
        let mut seen = Seen::default();
        wire.run(
            hashes.len(),
            WINDOW,
            |range| {
                let mut reads = Reads::default();
                let keys = (range.start as u32..).zip(&hashes[range]);
                reads.add(0, body, keys, false);
                reads.requests.extend(watch.requests.iter().cloned());
                reads
            },
            |work, settled| {
                for (i, Settled { outcome, .. }) in settled.into_iter().enumerate() {
                    let each = |key: u32, line: &_, marks: &_| {
                        let count = &mut counts[key as usize];
                        *count = (*count).min(Cells::least(line, marks));
                    };
                    match (outcome, work.about(i)) {
                        (Ok(answer), Some(about)) => {
                            if work.lines(i, &answer, each).is_none() {
                                missing = Some(about);
                            }
                        }
                        (Ok(answer), None) => watch.read(i - work.own(), &answer, &mut seen),
                        (Err(failure), _) => {
                            failed = Some(of_failure("asking the filter", failure));
                        }
                    }
                }
                failed.is_none() && missing.is_none()
            },
        )
        .await;
        self.check_asked(missing, failed, seen).await
    }

    pub(super) fn check_counting(&self, what: &'static str) -> Result<(), Error> {
        match self.header.shape().kind() {
            Kind::Counting => Ok(()),
            kind => Err(Error::Filter(tamis::Error::Unable {
                kind,
                what,
                instead: "their bits are shared by many keys; use a counting filter",
            })),
        }
    }
}
