//! A run: several threads read chunks, split them into units, judge and print them, in input order.

use crate::batch::{Batch, Maker};
use crate::chunks::{Chunk, Chunks, Source};
use crate::judge;
use crate::output::{OutputError, Outputs};
use crate::print::print;
use crate::seen::Seen;
use crate::settings::{Settings, Use};
use crate::summary::{Collector, Counts, Summary};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tamis_records::input::InputError;
use tamis_records::pipeline::EndOnPanic;
use tamis_records::progress::Progress;
use tamis_records::turn::Turn;

/// Why a run ended early.
#[derive(Debug)]
pub enum Error {
    /// An input can't be read completely.
    Input(InputError),
    /// An output can't be written.
    Output(OutputError),
    /// The filter refused a unit, most likely because memory ran out.
    Filter(tamis::Error),
    /// The run was asked to stop.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {}

/// The parameters of a run.
pub struct Job<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The inputs, in order.
    pub sources: &'a [Source],
    /// The number of the first input to read.
    pub first: usize,
    /// The filter of seen units.
    pub seen: &'a mut Seen,
    /// Where the results go.
    pub outputs: &'a mut dyn Outputs,
    /// The number of threads.
    pub threads: usize,
    /// Reports progress and carries the request to stop.
    pub progress: &'a Arc<Progress>,
}

/// The results, and the error if the run ended early.
pub struct Outcome {
    /// For the inputs that were read completely.
    pub summary: Summary,
    /// Why the run ended early. The filter then holds units that no finished output has, so it must not be kept.
    pub result: Result<(), Error>,
}

/// Executes a run. Results don't depend on the number of threads.
///
/// An input that can't be read completely, or an output that can't be written, ends the run: otherwise text that only
/// the unfinished output has would be dropped from later ones.
///
/// ```
/// use tamis_corpus::rule::TextUnit;
/// use tamis_corpus::chunks::Source;
/// use tamis_corpus::engine::{Job, run};
/// use tamis_corpus::fold::Fold;
/// use tamis_corpus::output::Stream;
/// use tamis_corpus::rule::UnitRule;
/// use tamis_corpus::seen::Seen;
/// use tamis_corpus::settings::Settings;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("a.jsonl");
/// std::fs::write(&path, "{\"text\": \"One.\\nTwo.\\n\"}\n{\"text\": \"Two.\\nThree.\"}\n").unwrap();
/// let rule = UnitRule::new(TextUnit::Line, Fold::default());
/// let mut cleaned = Vec::new();
/// let outcome = run(Job {
///     settings: &Settings::new(rule),
///     sources: &[Source::by_name(path)],
///     first: 0,
///     seen: &mut Seen::new(rule, 1000, 1e-6)?,
///     outputs: &mut Stream::new(&mut cleaned),
///     threads: 2,
///     progress: &Default::default(),
/// });
/// outcome.result.unwrap();
/// assert_eq!(outcome.summary.total().repeats, 1);
/// assert_eq!(cleaned, b"{\"text\": \"One.\\nTwo.\\n\"}\n{\"text\": \"Three.\"}\n");
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn run(job: Job) -> Outcome {
    let settings = job.settings;
    let seen = match settings.use_of_filter {
        Use::Ask => Memory::Fixed(job.seen),
        Use::Judge | Use::Learn => Memory::Growing(Turn::new(job.seen)),
    };
    let engine = Engine {
        settings,
        reading: Mutex::new(Reading {
            chunks: Chunks::new(job.sources, job.first, settings.judged(), job.progress),
            next: 0,
            awaited: false,
            saves: job.outputs.can_save() && settings.use_of_filter != Use::Learn,
            saved: Instant::now(),
            took: Duration::ZERO,
        }),
        resumed: Condvar::new(),
        seen,
        writing: Turn::new(Writing {
            outputs: job.outputs,
            collector: Collector::default(),
        }),
        has_failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        progress: job.progress,
    };
    std::thread::scope(|scope| {
        for _ in 1..job.threads {
            scope.spawn(|| engine.carry());
        }
        engine.carry();
    });
    let collector = std::mem::take(&mut engine.writing.as_it_is().collector);
    let failure = locked(&engine.failure).take();
    let is_stopped = job.progress.stop.load(Relaxed);
    Outcome {
        summary: collector.finish(),
        result: match failure {
            Some(error) => Err(error),
            None if is_stopped => Err(Error::Stopped),
            None => Ok(()),
        },
    }
}

/// The filter: shared by all threads, or used in turn.
enum Memory<'a> {
    Fixed(&'a Seen),
    Growing(Turn<&'a mut Seen>),
}

struct Engine<'a> {
    settings: &'a Settings,
    reading: Mutex<Reading<'a>>,
    resumed: Condvar,
    seen: Memory<'a>,
    writing: Turn<Writing<'a>>,
    /// After a failure, nothing more is judged or written.
    has_failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    progress: &'a Progress,
}

struct Reading<'a> {
    chunks: Chunks<'a>,
    next: u64,
    /// Outputs are being saved; reading continues once that is done.
    awaited: bool,
    /// Whether outputs are saved at all.
    saves: bool,
    /// When they were last saved, and how long that took.
    saved: Instant,
    took: Duration,
}

/// Saving takes at most about this fraction of the time.
const PART: u32 = 20;

impl Reading<'_> {
    fn is_due(&self) -> bool {
        self.saves && self.saved.elapsed() >= self.took.saturating_mul(PART)
    }
}

struct Writing<'a> {
    outputs: &'a mut dyn Outputs,
    collector: Collector,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine<'_> {
    fn carry(&self) {
        let _guard = EndOnPanic;
        let hasher = match &self.seen {
            Memory::Fixed(seen) => *seen.hasher(),
            Memory::Growing(seen) => *seen.as_it_is().hasher(),
        };
        let mut maker = Maker::new(self.settings, &hasher);
        let (mut chunk, mut batch) = (Chunk::default(), Batch::default());
        let mut printed = Vec::new();
        while let Some(number) = self.read(&mut chunk) {
            maker.make(&chunk, &mut batch);
            if let Err(error) = self.judge(number, &mut batch) {
                self.fail(Error::Filter(error));
            }
            printed.clear();
            let counts = print(self.settings, &chunk, &batch, &mut printed);
            self.progress.records.fetch_add(counts.records, Relaxed);
            self.write(number, &mut chunk, &batch, counts, &printed);
        }
    }

    fn read(&self, chunk: &mut Chunk) -> Option<u64> {
        let mut reading = locked(&self.reading);
        while reading.awaited && !self.is_over() {
            reading = self
                .resumed
                .wait(reading)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_over() || !reading.chunks.read(chunk) {
            return None;
        }
        let number = reading.next;
        reading.next += 1;
        chunk.saves = chunk.is_last && chunk.failed.is_none() && reading.is_due();
        if chunk.saves {
            reading.awaited = true;
        }
        Some(number)
    }

    fn is_over(&self) -> bool {
        self.has_failed.load(Relaxed) || self.progress.stop.load(Relaxed)
    }

    fn judge(&self, number: u64, batch: &mut Batch) -> Result<(), tamis::Error> {
        match &self.seen {
            Memory::Fixed(seen) => {
                judge::ask(seen, self.settings, batch);
                Ok(())
            }
            Memory::Growing(seen) => {
                let mut seen = seen.wait(number);
                let judged = match self.settings.use_of_filter {
                    _ if self.has_failed.load(Relaxed) => Ok(()),
                    Use::Learn => judge::learn(&mut seen, batch),
                    _ => judge::judge(&mut seen, self.settings, batch),
                };
                seen.pass();
                judged
            }
        }
    }

    fn write(&self, number: u64, chunk: &mut Chunk, batch: &Batch, counts: Counts, printed: &[u8]) {
        let mut writing = self.writing.wait(number);
        let began = Instant::now();
        if !self.has_failed.load(Relaxed) {
            let written = match chunk.failed.take() {
                Some(error) => Err(Error::Input(error)),
                None => self.write_in_turn(&mut writing, chunk, printed),
            };
            match written {
                Ok(()) => writing.collector.add(self.settings, chunk, batch, counts),
                Err(error) => self.fail(error),
            }
        }
        writing.pass();
        if chunk.saves {
            let mut reading = locked(&self.reading);
            reading.awaited = false;
            (reading.saved, reading.took) = (Instant::now(), began.elapsed());
            drop(reading);
            self.resumed.notify_all();
        }
    }

    fn write_in_turn(
        &self,
        writing: &mut Writing,
        chunk: &Chunk,
        printed: &[u8],
    ) -> Result<(), Error> {
        if chunk.is_first {
            writing.outputs.begin(chunk.input).map_err(Error::Output)?;
        }
        writing.outputs.write(printed).map_err(Error::Output)?;
        if chunk.is_last {
            writing.outputs.end(chunk.input).map_err(Error::Output)?;
        }
        if !chunk.saves {
            return Ok(());
        }
        // No later chunk is in flight.
        let saved = match &self.seen {
            Memory::Growing(seen) => writing.outputs.save(Some(&seen.as_it_is())),
            Memory::Fixed(_) => writing.outputs.save(None),
        };
        saved.map_err(Error::Output)
    }

    /// Keeps only the first failure.
    fn fail(&self, error: Error) {
        self.has_failed.store(true, Relaxed);
        locked(&self.failure).get_or_insert(error);
        self.resumed.notify_all();
    }
}
