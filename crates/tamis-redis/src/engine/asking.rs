//! Whether keys are there, and how often.

use super::{Engine, Missing};
use crate::Error;
use crate::body::{Cells, Reads};
use crate::link::{Link, Request};
use crate::wire::{Again, Settled, of_failure};
use redis::Value;
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
        let mut from = 0;
        while self.ask_bodies(from, usize::MAX, hashes, out).await? {
            // Other clients have added layers. Those known have been asked.
            from = self.bodies.len();
            self.load_layers().await?;
        }
        Ok(())
    }

    /// Asks the bodies from `from` to before `to`; sets `out[i]` if one of
    /// them has `hashes[i]`. Returns whether there are layers that we don't
    /// know yet.
    pub(super) async fn ask_bodies(
        &mut self,
        from: usize,
        to: usize,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<bool, Error> {
        let newer_layer = self.newer_layer();
        let Self {
            wire, bodies, home, ..
        } = self;
        let asked = &bodies[from..to.min(bodies.len())];
        let mut failed = None;
        let mut missing: Option<Missing> = None;
        let mut newer = false;
        wire.run(
            hashes.len(),
            WINDOW,
            Again::Harmless,
            None,
            |range| {
                let mut reads = Reads::default();
                for (number, body) in (from..).zip(asked) {
                    reads.add(
                        number,
                        body,
                        (range.start as u32..).zip(&hashes[range.clone()]),
                    );
                }
                // Whatever was added before we asked is in the layers that
                // there are while we ask.
                if let Some(command) = &newer_layer {
                    reads
                        .requests
                        .push(Request::new(*home, std::slice::from_ref(command)));
                }
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
                        newer |= answer[..] == [Value::Int(1)];
                        continue;
                    };
                    let (cells, about) = (bodies[body].cells(), &bodies[body].chunks[chunk]);
                    let row = &mut has[(body - from) * range.len()..][..range.len()];
                    let each = |key: u32, line: &_, marks: &_| {
                        row[key as usize - range.start] &= cells.has(line, marks);
                    };
                    if work.lines(about, i, &answer, each).is_none() {
                        missing = Some((body, chunk));
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
        match (missing, failed) {
            (Some(missing), _) => Err(self.why_missing(missing).await),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(newer),
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
        counts.fill(15);
        let Self { wire, bodies, .. } = self;
        let body = &bodies[0];
        let mut failed = None;
        let mut missing = None;
        wire.run(
            hashes.len(),
            WINDOW,
            Again::Harmless,
            None,
            |range| {
                let mut reads = Reads::default();
                reads.add(0, body, (range.start as u32..).zip(&hashes[range]));
                reads
            },
            |work, settled| {
                for (i, Settled { outcome, .. }) in settled.into_iter().enumerate() {
                    let each = |key: u32, line: &_, marks: &_| {
                        let count = &mut counts[key as usize];
                        *count = (*count).min(Cells::least(line, marks));
                    };
                    let about = work.about(i).unwrap_or_default();
                    match outcome {
                        Ok(answer) => {
                            if work
                                .lines(&body.chunks[about.1], i, &answer, each)
                                .is_none()
                            {
                                missing = Some(about);
                            }
                        }
                        Err(failure) => failed = Some(of_failure("asking the filter", failure)),
                    }
                }
                failed.is_none() && missing.is_none()
            },
        )
        .await;
        match (missing, failed) {
            (Some(missing), _) => Err(self.why_missing(missing).await),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }

    pub(super) fn check_counting(&self, what: &'static str) -> Result<(), Error> {
        match self.header.shape().kind() {
            Kind::Counting => Ok(()),
            kind => Err(Error::Filter(tamis::Error::Unable {
                kind,
                what,
                instead: "their keys leave no trace of their own; use a counting filter",
            })),
        }
    }
}
