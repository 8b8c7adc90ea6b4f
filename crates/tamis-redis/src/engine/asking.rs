//! Whether keys are present, and how often.

use super::watch::{Seen, Watch};
use super::{Engine, Part};
use crate::Error;
use crate::body::{Body, MOST_COUNTED, Reads};
use crate::chunks::Foot;
use crate::link::Link;
use crate::request::Request;
use crate::wire::{Job, Settled, of_failure};
use redis::Value;
use std::ops::Range;
use tamis::{Hash, Kind};

/// Keys that are looked up together: many, so that one command reads
/// neighbouring lines.
const WINDOW: usize = 1 << 15;

/// A lookup of keys in some bodies.
struct Asking<'a> {
    bodies: &'a [Body],
    /// The range of these bodies.
    range: Range<usize>,
    /// For each body, the generation of its successor if it is closed.
    successors: Vec<Option<u64>>,
    watch: Watch,
    hashes: &'a [Hash],
    replicated: bool,
    asked: Asked,
}

/// The results of a lookup.
#[derive(Default)]
struct Asked {
    /// For each key, the smallest of its cells in the body where that is
    /// largest.
    least: Vec<u8>,
    failed: Option<Error>,
    missing: Option<Part>,
    /// An open chunk of a closed layer.
    reopened: Option<Part>,
    seen: Seen,
}

impl Job for Asking<'_> {
    type Window = (Range<usize>, Reads);

    fn begin(&mut self, range: Range<usize>) -> (Vec<Request>, Self::Window) {
        let mut reads = Reads::default();
        for number in self.range.clone() {
            let keys = (range.start as u32..).zip(&self.hashes[range.clone()]);
            reads.add(number, &self.bodies[number], keys, self.replicated);
        }
        let mut requests = std::mem::take(&mut reads.requests);
        // The watch comes last: it then knows all layers to which keys were
        // added before the lookup.
        requests.extend_from_slice(&self.watch.requests);
        (requests, (range, reads))
    }

    fn finish(&mut self, (range, reads): Self::Window, settled: Vec<Settled>) -> bool {
        // By body and key.
        let mut least = vec![MOST_COUNTED; self.range.len() * range.len()];
        for (i, Settled { outcome, .. }) in settled.into_iter().enumerate() {
            match (outcome, reads.about(i)) {
                (Err(failure), _) => {
                    self.asked.failed = Some(of_failure("asking the filter", failure));
                }
                (Ok(answer), None) => {
                    (self.watch).read(i - reads.own(), &answer, &mut self.asked.seen);
                }
                (Ok(answer), Some(part)) => {
                    let row = (part.0 - self.range.start) * range.len();
                    let row = &mut least[row..][..range.len()];
                    if self.read(&reads, i, &answer, range.start, row).is_none() {
                        self.asked.missing = Some(part);
                    }
                }
            }
        }
        for row in least.chunks(range.len()) {
            for (most, least) in self.asked.least[range.clone()].iter_mut().zip(row) {
                *most = (*most).max(*least);
            }
        }
        let Asked {
            failed,
            missing,
            reopened,
            ..
        } = &self.asked;
        failed.is_none() && missing.is_none() && reopened.is_none()
    }
}

impl Asking<'_> {
    /// Reads the answer to a request, for keys from `first` on; `None` if its
    /// chunk is missing.
    fn read(
        &mut self,
        reads: &Reads,
        request: usize,
        answer: &[Value],
        first: usize,
        row: &mut [u8],
    ) -> Option<()> {
        let (body, chunk) = reads.about(request)?;
        let cells = self.bodies[body].cells();
        let foot = reads.lines(request, answer, |key, line, marks| {
            let least = &mut row[key as usize - first];
            *least = (*least).min(cells.least(line, marks));
        })?;
        if foot == Foot::Open && self.successors[body].is_some() {
            self.asked.reopened = Some((body, chunk));
        }
        // A closed layer has a successor, whatever the hash says.
        let newest = body + 1 == self.bodies.len();
        self.asked.seen.newer_layer |= newest && matches!(foot, Foot::ClosedFor(_));
        Some(())
    }
}

impl<L: Link> Engine<L> {
    /// Looks up keys; `out[i]` is the answer for `hashes[i]`.
    pub(crate) async fn contains_hashes(
        &mut self,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<(), Error> {
        if self.window.is_some() {
            return self.contains_timed(hashes, &None, out).await;
        }
        assert_eq!(hashes.len(), out.len(), "one answer for each key");
        out.fill(false);
        self.check_memory()?;
        self.ask_all(hashes, out).await?;
        self.look_back().await
    }

    /// Looks up keys in all bodies; sets `out[i]` if one of them has
    /// `hashes[i]`.
    pub(super) async fn ask_all(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        let mut from = 0;
        while self
            .ask_bodies(from, usize::MAX, hashes, out, false)
            .await?
        {
            // Other clients have added layers, so look up the keys in those,
            // too.
            from = self.bodies.len();
            self.load_layers().await?;
        }
        Ok(())
    }

    /// Looks up keys in the bodies `from..to`; sets `out[i]` if one of them has
    /// `hashes[i]`, and replicas have it if they must. Returns whether there
    /// are layers that we don't know yet.
    pub(super) async fn ask_bodies(
        &mut self,
        from: usize,
        to: usize,
        hashes: &[Hash],
        out: &mut [bool],
        replicated: bool,
    ) -> Result<bool, Error> {
        let range = from..to.min(self.bodies.len());
        let (least, newer) = self.ask(range, hashes, replicated).await?;
        for (out, least) in out.iter_mut().zip(least) {
            *out |= least > 0;
        }
        Ok(newer)
    }

    /// An upper bound on how often keys were added.
    pub(crate) async fn count_hashes(
        &mut self,
        hashes: &[Hash],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        self.check_counting("asked how often a key was added")?;
        self.check_memory()?;
        let (least, _) = self.ask(0..1, hashes, false).await?;
        for (count, least) in counts.iter_mut().zip(least) {
            *count = least.into();
        }
        Ok(())
    }

    /// The cells of each key in some bodies, and whether there are layers that
    /// we don't know yet.
    async fn ask(
        &mut self,
        range: Range<usize>,
        hashes: &[Hash],
        replicated: bool,
    ) -> Result<(Vec<u8>, bool), Error> {
        let mut asking = Asking {
            watch: self.watch(replicated, 0),
            bodies: &self.bodies,
            successors: (0..self.bodies.len()).map(|i| self.successor(i)).collect(),
            range,
            hashes,
            replicated,
            asked: Asked {
                least: vec![0; hashes.len()],
                ..Asked::default()
            },
        };
        self.wire.run(&mut asking, hashes.len(), WINDOW).await;
        let Asked {
            least,
            failed,
            missing,
            reopened,
            seen,
        } = asking.asked;
        if let Some(missing) = missing {
            return Err(self.chunk_missing(missing).await);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.check_seen(seen).await?;
        if let Some(part) = reopened {
            return Err(self.reopened(part));
        }
        self.compare_marks(seen)?;
        Ok((least, seen.newer_layer))
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
