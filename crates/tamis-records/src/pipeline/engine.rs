//! The threads of a run, and what they share.

use super::output::{Output, write_at};
use super::{Checkpoint, DecideInOrder, Deciding, EndOnPanic, Halt, Job, Outcome};
use crate::batch::{Batch, Lane, Print, Token};
use crate::flow::Flow;
use crate::input::InputError;
use crate::key::{KeyMaker, RecordRule, Refused};
use crate::progress::Progress;
use crate::reader::{Chunk, Reader, note};
use crate::turn::Turn;
use crate::written::InOrder;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tamis::Moment;

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
            reader: job.reader.giving_blocks(),
            next: 0,
        }),
        saver: job.checkpoint.map(|checkpoint| {
            Mutex::new(Saver {
                checkpoint,
                saved: Instant::now(),
            })
        }),
        flow: Flow::default(),
        shards: job.shards.iter_mut().map(Turn::new).collect(),
        order: InOrder::new(job.threads, job.output_file.is_none()),
        output: Mutex::new(Output {
            writer: job.output,
            result: Ok(()),
            whole: u64::MAX,
        }),
        output_file: job.output_file,
        spare: Mutex::default(),
        unread: Mutex::default(),
        numbers: Turn::new(0),
        needs_numbers: matches!(job.print, Print::Located(prefix) if prefix.number)
            || job.rule.can_refuse(),
        rule: job.rule,
        hash: job.hash,
        deciding: job.deciding,
        decide: job.decide,
        halted: AtomicBool::new(false),
        failure: Mutex::new(None),
        print: job.print,
        threads: job.threads,
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
    let mut output = engine.output.into_inner().expect(NO_PANIC);
    output.flush();
    if let Some(file) = engine.output_file {
        output.cut(file);
    }
    let source = engine.source.into_inner().expect(NO_PANIC);
    let failure = engine.failure.into_inner().expect(NO_PANIC);
    let mut input_errors = source.reader.into_errors();
    input_errors.extend(engine.unread.into_inner().expect(NO_PANIC));
    Outcome {
        input_errors,
        output: output.result,
        decided: failure.map_or(Ok(()), Err),
    }
}

struct Engine<'a, S, K, H, D, E> {
    source: Mutex<Source>,
    /// Locked after the source, if both are locked.
    saver: Option<Mutex<Saver<'a, S, E>>>,
    /// Locked after both of these.
    flow: Flow,
    shards: Vec<Turn<&'a mut S>>,
    order: InOrder<Finished>,
    output: Mutex<Output<'a>>,
    output_file: Option<&'a File>,
    /// Buffers for reuse; their bytes have been printed.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Errors of chunks that are read by position.
    unread: Mutex<Vec<InputError>>,
    /// The number of records of the current input before a chunk, including its header row.
    numbers: Turn<u64>,
    needs_numbers: bool,
    rule: &'a RecordRule,
    hash: H,
    deciding: Deciding<'a, K, E>,
    decide: D,
    /// Set when deciding has ended.
    halted: AtomicBool,
    /// The first failure.
    failure: Mutex<Option<E>>,
    print: Print,
    threads: usize,
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
    /// The time until the next checkpoint.
    fn left(&self) -> Duration {
        self.checkpoint.every.saturating_sub(self.saved.elapsed())
    }
}

/// Signals the end of a run.
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

    /// Waits for the signal, at most this long; returns whether it was given.
    fn wait(&self, most: Duration) -> bool {
        let is_given = self.is_given.lock().expect(NO_PANIC);
        let waited = self
            .given
            .wait_timeout_while(is_given, most, |given| !*given);
        *waited.expect(NO_PANIC).0
    }
}

const NO_PANIC: &str = "no thread panics while it holds it";
/// If chunks are in flight when a checkpoint is due, we check again after this time.
const SOON: Duration = Duration::from_millis(50);

impl<'a, S, K, H, D, E> Engine<'a, S, K, H, D, E>
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
        let mut batch = Batch::<K>::new(self.shards.len().max(1));
        let mut keys = KeyMaker::new(self.rule);
        while let Some(number) = self.read(&mut chunk) {
            if let Err(error) = chunk.load(self.progress) {
                note(&mut self.unread.lock().expect(NO_PANIC), error);
            }
            let bytes = chunk.records().len() as u64;
            let without = batch.hash(&chunk, &mut keys, &self.hash);
            let before = self.number(number, &chunk, batch.records() as u64);
            let refusal = batch.refusal(&chunk, before);
            match self.deciding {
                Deciding::InOrder(decide) => {
                    self.decide_in_order(number, &mut batch.lanes[0], refusal, decide);
                }
                _ => self.decide_by_shards(number, &mut batch.lanes, refusal),
            }
            let chosen = batch.collect();
            let records = batch.records() as u64;
            let printed = batch.select(&mut chunk, self.print, before);
            let progress = self.progress;
            progress.records.fetch_add(records, Ordering::Relaxed);
            progress.chosen.fetch_add(chosen, Ordering::Relaxed);
            progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            progress
                .without_key
                .fetch_add(without.key, Ordering::Relaxed);
            progress
                .without_time
                .fetch_add(without.time, Ordering::Relaxed);
            progress
                .not_urls
                .fetch_add(keys.take_not_urls(), Ordering::Relaxed);
            let length = printed.1 as u64;
            self.order.write(number, printed, length, |printed, at| {
                self.write(printed, at);
            });
        }
    }

    /// Prints a chunk, when it is its turn or its position is known.
    fn write(&self, (buffer, length): Finished, at: u64) {
        let bytes = &buffer[..length];
        let well = match self.output_file {
            Some(file) => {
                let mut written = 0;
                match write_at(file, bytes, at, &mut written) {
                    Ok(()) => true,
                    Err(error) => self.output().fail(error, at + written as u64),
                }
            }
            None => self.output().write(bytes),
        };
        if !well {
            self.progress.stop.store(true, Ordering::Relaxed);
        }
        let mut spare = self.spare.lock().expect(NO_PANIC);
        if !buffer.is_empty() && spare.len() < self.threads {
            spare.push(buffer);
        }
        drop(spare);
        self.flow.leave();
    }

    fn output(&self) -> MutexGuard<'_, Output<'a>> {
        self.output.lock().expect(NO_PANIC)
    }

    /// The number of rows in its input before the chunk's records, if needed.
    fn number(&self, number: u64, chunk: &Chunk, records: u64) -> u64 {
        if !self.needs_numbers {
            return 0;
        }
        let mut numbers = self.numbers.wait(number);
        if chunk.starts_input {
            *numbers = 0;
        }
        let before = *numbers + chunk.header_rows();
        *numbers = before + records;
        numbers.pass();
        before
    }

    fn decide_by_shards(&self, number: u64, lanes: &mut [Lane<K>], mut refusal: Option<Refused>) {
        if self.shards.is_empty() {
            return self.ask_alone(&mut lanes[0], refusal);
        }
        for (shard, lane) in self.shards.iter().zip(lanes) {
            let asked = self.ask(lane);
            let mut shard = shard.wait(number);
            // In turn, because earlier chunks are still being decided, and may end the run.
            if let Some(refusal) = refusal.take()
                && !self.halted.load(Ordering::Relaxed)
            {
                self.halt(Some(refusal.into()));
            }
            self.decide(&mut shard, lane, asked);
            shard.pass();
        }
    }

    /// Asks, in any order, unless deciding has ended.
    fn ask(&self, lane: &mut Lane<K>) -> Result<(), Halt<E>> {
        let (keys, chosen) = lane.undecided(self.print.silent());
        match self.deciding {
            Deciding::Asking(ask) if !self.halted.load(Ordering::Relaxed) => ask(keys, chosen),
            _ => Ok(()),
        }
    }

    /// Uses the answers from asking as they are: nothing needs to be decided in order.
    fn ask_alone(&self, lane: &mut Lane<K>, refusal: Option<Refused>) {
        let asked = match refusal {
            Some(refusal) => Err(Halt::Failed(refusal.into())),
            None => self.ask(lane),
        };
        if let Err(Halt::Failed(error) | Halt::FailedAfter(error)) = asked {
            self.halt(Some(error));
            lane.undecided(self.print.silent());
        }
    }

    /// Decides, unless deciding has ended.
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

    fn decide_in_order(
        &self,
        number: u64,
        lane: &mut Lane<K>,
        refusal: Option<Refused>,
        decide: &DecideInOrder<K, E>,
    ) {
        let refusal = Mutex::new(refusal);
        let wanted = || {
            let refusal = refusal.lock().expect(NO_PANIC).take();
            if let Some(refusal) = refusal
                && !self.halted.load(Ordering::Relaxed)
            {
                self.halt(Some(refusal.into()));
            }
            !self.halted.load(Ordering::Relaxed)
        };
        let (keys, chosen) = lane.undecided(self.print.silent());
        let decided = decide(number, keys, chosen, &wanted).unwrap_or_else(|error| {
            self.halt(Some(error));
            false
        });
        if !decided {
            lane.undecided(self.print.silent());
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

    /// Reads the next chunk and returns its number.
    fn read(&self, chunk: &mut Chunk) -> Option<u64> {
        if chunk.buffer.is_empty()
            && let Some(buffer) = self.spare.lock().expect(NO_PANIC).pop()
        {
            chunk.buffer = buffer;
        }
        let mut source = self.source.lock().expect(NO_PANIC);
        if let Some(saver) = &self.saver {
            let mut saver = saver.lock().expect(NO_PANIC);
            if saver.left().is_zero() {
                // No chunk starts while we hold the source, and we wait for all earlier ones.
                let ebb = self.flow.wait_for_ebb();
                self.save(&mut saver);
                drop(ebb);
            }
        }
        if self.progress.stop.load(Ordering::Relaxed) || !source.reader.read(chunk) {
            return None;
        }
        self.flow.enter();
        source.next += 1;
        Some(source.next - 1)
    }

    /// Runs checkpoints while a read holds the source: the next bytes of a pipe may be hours away, and decided records
    /// must be saved before.
    fn save_in_silence(&self, end: &Signal) {
        let Some(saver) = &self.saver else {
            return;
        };
        let _guard = EndOnPanic;
        let every = saver.lock().expect(NO_PANIC).checkpoint.every;
        // `read` then saves before every chunk.
        if every.is_zero() {
            return;
        }
        let mut pause = every;
        while !end.wait(pause) {
            let mut saver = saver.lock().expect(NO_PANIC);
            pause = saver.left();
            if pause.is_zero() {
                pause = match self.flow.ebb() {
                    Some(_ebb) => {
                        self.save(&mut saver);
                        every
                    }
                    None => SOON.min(every),
                };
            }
        }
    }

    /// Runs the checkpoint. No chunk is in flight, so everything that the shards have decided is printed.
    fn save(&self, saver: &mut Saver<S, E>) {
        let mut output = self.output();
        output.flush();
        // After a failed decision, shards hold keys whose records were not printed.
        if output.result.is_ok() && !self.halted.load(Ordering::Relaxed) {
            let mut shards: Vec<_> = self.shards.iter().map(Turn::as_it_is).collect();
            let mut shards: Vec<_> = shards.iter_mut().map(|shard| &mut ***shard).collect();
            if let Err(error) = (saver.checkpoint.save)(&mut shards) {
                self.halt(Some(error));
            }
        }
        saver.saved = Instant::now();
    }
}

/// A chunk's bytes to print: a buffer, and how many of its bytes.
type Finished = (Vec<u8>, usize);
