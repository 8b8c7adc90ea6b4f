//! The parallel engine: which records are chosen, in the order of the input, whatever the number of threads.
//!
//! Every thread carries one chunk of records through all stages:
//!
//! ```text
//! read (one thread at a time) → hash, ask (freely) → shard 0, shard 1, … (in chunk order) → print (in chunk order)
//! ```
//!
//! A key belongs to one shard by its hash, and a shard sees the chunks in input order. So every answer depends on
//! the input alone, no shard is ever shared, and no queue can grow: there are as many chunks as threads.

use crate::batch::{Batch, Lane, Print, Token};
use crate::input::InputError;
use crate::key::{KeyMaker, RecordRule, Refused};
use crate::progress::Progress;
use crate::reader::{Chunk, Reader};
use crate::turn::{Access, Turn};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use tamis::Moment;

/// Everything one run needs.
pub struct Job<'a, S, K, H, D, E> {
    /// The inputs.
    pub reader: Reader,
    /// What of a record is its key.
    pub rule: &'a RecordRule,
    /// What stands for a key when it is decided; with its time, if the rule asks for that.
    pub hash: H,
    /// Shard `hash.shard(shards.len())` decides a key.
    pub shards: &'a mut [S],
    /// Answers that depend on nothing but the keys: every thread finds them by itself, in no order.
    pub ask: Option<&'a Ask<'a, K, E>>,
    /// Answers for the keys of a shard, in the order of the input. It is given those of `ask`, or else such as print
    /// nothing.
    pub decide: D,
    /// Which records go to the output.
    pub print: Print,
    /// Gets large writes; needs no buffer of its own.
    pub output: &'a mut (dyn Write + Send),
    /// How many threads carry chunks.
    pub threads: usize,
    /// What has been done so far.
    pub progress: &'a Progress,
    /// Saves the shards during the run.
    pub checkpoint: Option<Checkpoint<'a, S, E>>,
}

/// From time to time, between two chunks and while the input is silent: everything decided so far is printed and flushed
/// when `save` runs.
pub struct Checkpoint<'a, S, E> {
    /// Time between two checkpoints.
    pub every: Duration,
    /// Saves all shards.
    pub save: Save<'a, S, E>,
}

/// A function that answers for keys.
pub type Ask<'a, K, E> = dyn Fn(&[K], &mut [bool]) -> Result<(), Halt<E>> + Sync + 'a;

/// A function that saves shards.
pub type Save<'a, S, E> = Box<dyn FnMut(&mut [&mut S]) -> Result<(), E> + Send + 'a>;

/// Why deciding ends before the input does. Chunks that are on their way then are not decided, and nothing of them is
/// printed.
pub enum Halt<E> {
    /// The answers given hold, and no more are wanted.
    Enough,
    /// No answer was given: nothing of the chunk is printed.
    Failed(E),
    /// The answers given hold, but no more can be had.
    FailedAfter(E),
}

impl<E> From<E> for Halt<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

/// How a run ended, apart from its [`Progress`].
#[derive(Debug)]
pub struct Outcome<E> {
    /// Inputs that could not be read, or not to their end. All that was read is decided and printed.
    pub input_errors: Vec<InputError>,
    /// If this failed, the shards hold keys of records that were *not* printed, and must not be saved.
    pub output: io::Result<()>,
    /// Why a decision or a checkpoint failed; the shards may then hold keys of records that were not printed, too.
    pub decided: Result<(), E>,
}

#[cfg(test)]
impl<E> Outcome<E> {
    /// Whether the reader of the output went away, as in `| head`: an end, not an error.
    pub fn output_closed(&self) -> bool {
        self.output
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Carries every record through the pipeline.
pub fn run<S, K, H, D, E>(job: Job<S, K, H, D, E>) -> Outcome<E>
where
    S: Send,
    E: From<Refused> + Send,
    K: Token,
    H: Fn(&[u8], Option<Moment>) -> K + Sync,
    D: Fn(&mut S, &[K], &mut [bool]) -> Result<(), Halt<E>> + Sync,
{
    let engine = Engine {
        source: Mutex::new(Source {
            reader: job.reader,
            next: 0,
        }),
        saver: job.checkpoint.map(|checkpoint| {
            Mutex::new(Saver {
                checkpoint,
                saved: Instant::now(),
            })
        }),
        shards: job.shards.iter_mut().map(Turn::new).collect(),
        output: Turn::new(Output {
            writer: job.output,
            result: Ok(()),
        }),
        numbers: Turn::new(0),
        rule: job.rule,
        hash: job.hash,
        ask: job.ask,
        decide: job.decide,
        halted: AtomicBool::new(false),
        failure: Mutex::new(None),
        print: job.print,
        progress: job.progress,
    };
    let end = Signal::default();
    std::thread::scope(|scope| {
        scope.spawn(|| engine.save_in_silence(&end));
        std::thread::scope(|scope| {
            for _ in 1..job.threads {
                scope.spawn(|| engine.carry_chunks());
            }
            engine.carry_chunks();
        });
        end.give();
    });
    let mut output = engine.output.into_inner();
    output.flush();
    let source = engine.source.into_inner().expect("threads have ended well");
    let failure = engine
        .failure
        .into_inner()
        .expect("threads have ended well");
    Outcome {
        input_errors: source.reader.into_errors(),
        output: output.result,
        decided: failure.map_or(Ok(()), Err),
    }
}

struct Engine<'a, S, K, H, D, E> {
    source: Mutex<Source>,
    /// Locked after the source, if both are.
    saver: Option<Mutex<Saver<'a, S, E>>>,
    shards: Vec<Turn<&'a mut S>>,
    output: Turn<Output<'a>>,
    /// How many records of the present input came before a chunk, with its header row.
    numbers: Turn<u64>,
    rule: &'a RecordRule,
    hash: H,
    ask: Option<&'a Ask<'a, K, E>>,
    decide: D,
    /// Nothing is decided any more.
    halted: AtomicBool,
    /// The first one counts.
    failure: Mutex<Option<E>>,
    print: Print,
    progress: &'a Progress,
}

struct Source {
    reader: Reader,
    next: u64,
}

struct Saver<'a, S, E> {
    checkpoint: Checkpoint<'a, S, E>,
    saved: Instant,
}

impl<S, E> Saver<'_, S, E> {
    /// How long it is until the next checkpoint.
    fn left(&self) -> Duration {
        self.checkpoint.every.saturating_sub(self.saved.elapsed())
    }
}

/// That a run has ended.
#[derive(Default)]
struct Signal {
    is_given: Mutex<bool>,
    given: Condvar,
}

impl Signal {
    fn give(&self) {
        *self.is_given.lock().expect(NO_PANIC) = true;
        self.given.notify_all();
    }

    /// Waits for it, but no longer than this; whether it is given.
    fn wait(&self, most: Duration) -> bool {
        let is_given = self.is_given.lock().expect(NO_PANIC);
        let waited = self
            .given
            .wait_timeout_while(is_given, most, |given| !*given);
        *waited.expect(NO_PANIC).0
    }
}

const NO_PANIC: &str = "no thread panics while it holds it";
/// Where chunks are on their way when a checkpoint is due, the next look comes after this time.
const SOON: Duration = Duration::from_millis(50);

impl<S, K, H, D, E> Engine<'_, S, K, H, D, E>
where
    S: Send,
    E: From<Refused> + Send,
    K: Token,
    H: Fn(&[u8], Option<Moment>) -> K + Sync,
    D: Fn(&mut S, &[K], &mut [bool]) -> Result<(), Halt<E>> + Sync,
{
    fn carry_chunks(&self) {
        let _guard = EndOnPanic;
        let mut chunk = Chunk::default();
        let mut batch = Batch::<K>::new(self.shards.len());
        let mut keys = KeyMaker::new(self.rule);
        while let Some(number) = self.read(&mut chunk) {
            let bytes = chunk.records().len() as u64;
            let without = batch.hash(&chunk, &mut keys, &self.hash);
            let before = self.number(number, &chunk, batch.records() as u64);
            let mut refusal = batch.refusal(&chunk, before);
            for (shard, lane) in self.shards.iter().zip(&mut batch.lanes) {
                let asked = self.ask(lane);
                let mut shard = shard.wait(number);
                // In turn: the chunks before this one are still decided, and may have been enough.
                if let Some(refusal) = refusal.take()
                    && !self.halted.load(Ordering::Relaxed)
                {
                    self.halt(Some(refusal.into()));
                }
                self.decide(&mut shard, lane, asked);
                shard.pass();
            }
            let chosen = batch.collect();
            let records = batch.records() as u64;
            let printed = batch.select(&mut chunk, self.print, before);
            let mut output = self.output.wait(number);
            if !output.write(printed) {
                self.progress.stop.store(true, Ordering::Relaxed);
            }
            output.pass();
            self.progress.records.fetch_add(records, Ordering::Relaxed);
            self.progress.chosen.fetch_add(chosen, Ordering::Relaxed);
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.progress
                .without_key
                .fetch_add(without.key, Ordering::Relaxed);
            self.progress
                .without_time
                .fetch_add(without.time, Ordering::Relaxed);
            self.progress
                .not_urls
                .fetch_add(keys.take_not_urls(), Ordering::Relaxed);
        }
    }

    /// How many rows of its input come before the chunk's records.
    fn number(&self, number: u64, chunk: &Chunk, records: u64) -> u64 {
        let mut numbers = self.numbers.wait(number);
        if chunk.starts_input {
            *numbers = 0;
        }
        let before = *numbers + chunk.header_rows();
        *numbers = before + records;
        numbers.pass();
        before
    }

    /// Asks, in no order, unless deciding has come to its end.
    fn ask(&self, lane: &mut Lane<K>) -> Result<(), Halt<E>> {
        let (keys, chosen) = lane.undecided(self.print.silent());
        match self.ask {
            Some(ask) if !self.halted.load(Ordering::Relaxed) => ask(keys, chosen),
            _ => Ok(()),
        }
    }

    /// Decides, unless that has come to its end.
    fn decide(&self, shard: &mut S, lane: &mut Lane<K>, asked: Result<(), Halt<E>>) {
        if self.halted.load(Ordering::Relaxed) {
            lane.undecided(self.print.silent());
            return;
        }
        let (keys, chosen) = lane.answers();
        match asked.and_then(|()| (self.decide)(shard, keys, chosen)) {
            Ok(()) => {}
            Err(Halt::Enough) => self.halt(None),
            Err(Halt::FailedAfter(error)) => self.halt(Some(error)),
            Err(Halt::Failed(error)) => {
                self.halt(Some(error));
                lane.undecided(self.print.silent());
            }
        }
    }

    fn halt(&self, failure: Option<E>) {
        self.halted.store(true, Ordering::Relaxed);
        self.progress.stop.store(true, Ordering::Relaxed);
        if let Some(failure) = failure {
            let mut first = self.failure.lock().expect(NO_PANIC);
            first.get_or_insert(failure);
        }
    }

    /// Reads the next chunk and gives its number.
    fn read(&self, chunk: &mut Chunk) -> Option<u64> {
        let mut source = self.source.lock().expect("no thread panics while it reads");
        if let Some(saver) = &self.saver {
            let mut saver = saver.lock().expect(NO_PANIC);
            if saver.left().is_zero() {
                // No chunk starts while the source is held, and those before it are waited for.
                let output = self.output.wait(source.next);
                let shards = self.shards.iter().map(|shard| shard.wait(source.next));
                self.save(&mut saver, output, shards.collect());
            }
        }
        if self.progress.stop.load(Ordering::Relaxed) || !source.reader.read(chunk) {
            return None;
        }
        source.next += 1;
        Some(source.next - 1)
    }

    /// Runs checkpoints while a read keeps the source: the next bytes of a pipe may be hours away, and what was decided
    /// must not wait for them.
    fn save_in_silence(&self, end: &Signal) {
        let Some(saver) = &self.saver else {
            return;
        };
        let _guard = EndOnPanic;
        let every = saver.lock().expect(NO_PANIC).checkpoint.every;
        // Then it is saved before every read.
        if every.is_zero() {
            return;
        }
        let mut pause = every;
        while !end.wait(pause) {
            let mut saver = saver.lock().expect(NO_PANIC);
            pause = saver.left();
            if pause.is_zero() {
                pause = if self.save_if_settled(&mut saver) {
                    every
                } else {
                    SOON.min(every)
                };
            }
        }
    }

    /// Runs the checkpoint, unless a chunk has been decided in part or is not printed yet.
    fn save_if_settled(&self, saver: &mut Saver<S, E>) -> bool {
        let output = self.output.as_it_is();
        let printed = output.number();
        let shards: Vec<_> = self.shards.iter().map(Turn::as_it_is).collect();
        let settled = shards.iter().all(|shard| shard.number() == printed);
        if settled {
            self.save(saver, output, shards);
        }
        settled
    }

    /// Runs the checkpoint. What the shards have decided is printed.
    fn save(
        &self,
        saver: &mut Saver<S, E>,
        mut output: Access<Output>,
        mut shards: Vec<Access<&mut S>>,
    ) {
        output.flush();
        // Where a decision has failed, shards hold keys whose records were not printed.
        if output.result.is_ok() && !self.halted.load(Ordering::Relaxed) {
            let mut shards: Vec<_> = shards.iter_mut().map(|shard| &mut ***shard).collect();
            if let Err(error) = (saver.checkpoint.save)(&mut shards) {
                self.halt(Some(error));
            }
        }
        saver.saved = Instant::now();
    }
}

/// The output and its first error; after that, nothing is written.
struct Output<'a> {
    writer: &'a mut (dyn Write + Send),
    result: io::Result<()>,
}

impl Output<'_> {
    /// Whether it went well, now and before.
    fn write(&mut self, bytes: &[u8]) -> bool {
        if self.result.is_ok() {
            self.result = self.writer.write_all(bytes);
        }
        self.result.is_ok()
    }

    fn flush(&mut self) {
        if self.result.is_ok() {
            self.result = self.writer.flush();
        }
    }
}

/// A thread that panics never passes its turns on, and the others would wait for ever.
pub(crate) struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
