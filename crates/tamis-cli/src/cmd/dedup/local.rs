//! Records judged in this process: by digests, by a filter in memory, or by one kept in a file.

use super::grown::Grown;
use super::kept::Kept;
use super::windowed::Windowed;
use super::{Judge, MadeFor, Memory, Over, Task};
use crate::human;
use crate::location::{Place, named};
use crate::output::{self, Sink};
use crate::stream::{Checkpoint, Halt, Keyed, Pass, Report};
use crate::window::{self, Timed};
use anyhow::{Context, Result, anyhow, bail};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tamis::{AnyFilter, Error, Hasher, SecretKey, file::FileLock};
use tamis_records::exact::{ExactSet, OutOfMemory};

/// The hash of a digest picks its shard. Their number is fixed, so that answers don't depend on the number of threads.
const EXACT_SHARDS: usize = 16;
/// Bytes per digest in a set at its fullest.
const DIGEST_BYTES: u64 = 20;
/// While fewer keys than these are new, the filter is saved less often...
const FEW_KEYS: u64 = 1000;
/// ... by this factor.
const SELDOM: u32 = 12;

pub(super) fn with_digests(task: &Task, sink: &mut Sink) -> Result<(Report, Memory)> {
    let keys = task.first_keys(|keys| keys.checked_mul(DIGEST_BYTES));
    let shard = |_| match ExactSet::with_capacity(keys as usize / EXACT_SHARDS) {
        // A guess may be wrong.
        Err(_) if task.args.keys.is_none() => ExactSet::with_capacity(0),
        set => set,
    };
    let mut shards: Vec<ExactSet> = (0..EXACT_SHARDS)
        .map(|at| shard(at).map_err(no_memory))
        .collect::<Result<_>>()?;
    let hasher = task.input.hasher(Hasher::keyed(SecretKey::random()?));
    let report = Pass::new(&task.input, &hasher, &mut shards)
        .print_to(task.print(), sink)
        .run(|set: &mut ExactSet, hashes, new| {
            Ok(set.insert_many(hashes, new).map_err(no_memory)?)
        })?;
    let bytes = shards.iter().map(|set| set.memory() as u64).sum();
    Ok((report, Memory::local(bytes, 0.0)))
}

fn no_memory(error: OutOfMemory) -> anyhow::Error {
    anyhow!(
        "out of memory: a part of the exact set needs {}\n\
         hint: without --exact, a record takes a quarter of that",
        human::size(error.bytes)
    )
}

pub(super) fn with_memory(task: &Task, sink: &mut Sink) -> Result<(Report, Memory)> {
    let hasher = task.input.hasher(Hasher::default());
    let mut seen = AnyFilter::from(task.first_filter(hasher)?);
    let adding = seen.in_order(task.input.threads, |_| ());
    let report = Pass::<(), _>::new(&task.input, &hasher, &mut [])
        .print_to(task.print(), sink)
        .run_in_order(|number, hashes, new, wanted| {
            Ok(adding.insert_hashes(number, hashes, new, wanted)?)
        })?;
    drop(adding);
    let memory = Memory::local(seen.bytes(), seen.expected_wrong());
    Ok((report, memory))
}

pub(super) fn with_file(path: &Path, task: &Task, sink: &mut Sink) -> Result<(Report, Memory)> {
    let (args, named) = (task.args, || named(path));
    let is_new = !path.exists();
    if is_new && args.must_exist {
        bail!("{}: no such filter, and --must-exist", path.display());
    }
    if is_new && !args.dry_run {
        match task.new_filter(task.new_hasher()?)?.save_new(path) {
            // Another run has just created it, which is fine.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            }
            saved => saved.map_err(named())?,
        }
    }
    let mut lock = None;
    if !args.dry_run {
        lock = Some(args.lock.acquire(path)?);
    }
    let mut filter = if is_new && args.dry_run {
        task.new_filter(task.new_hasher()?)?
    } else {
        args.key.open()?.load(path).map_err(named())?
    };
    task.input.settle_rule(&mut filter)?;
    // A finished window is refused before any input is read.
    window::check_open(&mut filter).map_err(named())?;
    let hasher = *filter.hasher();
    let place = Place::File(path.to_owned());
    let over = Over {
        filter: &place,
        rate: filter.rate(),
        strict: task.input.strict,
    };
    let window = match &filter {
        AnyFilter::Window(window) => Some(window.options()),
        _ => None,
    };
    if !is_new {
        args.check_made_for(&MadeFor {
            name: &place,
            kind: filter.kind(),
            keys: filter.capacity(),
            rate: filter.rate(),
            window,
        })?;
    }
    if let AnyFilter::Window(window) = filter {
        args.window.check(&place, &window.options())?;
        args.time.check(&window.options())?;
        let judge = Windowed::new(window, &task.input.rule, args.max_memory, Some(&over))?;
        return carry(
            judge,
            &Timed(hasher),
            task,
            lock,
            sink,
            |judge, keys, new| judge.decide(keys, new, Some(&over)),
        );
    }
    window::refuse_without(&place, filter.kind(), &args.window, &args.time)?;
    if args.max_memory.is_some() {
        bail!(
            "--max-memory is for windows, and {place} is a {} filter",
            filter.kind()
        );
    }
    if let AnyFilter::Growing(_) = &filter {
        return carry_in_order(&mut filter, &hasher, task, lock, sink, |error| {
            named()(error)
        });
    }
    let kept = Kept::new(filter, &over)?;
    carry(kept, &hasher, task, lock, sink, |kept, hashes, new| {
        kept.decide(hashes, new, &over, |error| named()(error))
    })
}

/// Passes all records to a judge whose filter is kept in the locked file.
fn carry<J: Judge, H: Keyed>(
    judge: J,
    hasher: &H,
    task: &Task,
    lock: Option<FileLock>,
    sink: &mut Sink,
    decide: impl Fn(&mut J, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
) -> Result<(Report, Memory)> {
    let saving = Saving::new(task, lock, judge.added());
    let mut judges = [judge];
    let checkpoint = saving.checkpoint(task, sink, |judges: &mut [&mut J]| {
        judges.iter().for_each(|judge| saving.save_if_due(*judge));
    });
    let report = Pass::new(&task.input, hasher, &mut judges)
        .print_to(task.print(), sink)
        .checkpoint(checkpoint)
        .run(|judge, keys, new| {
            saving.changed.store(true, Relaxed);
            decide(judge, keys, new)
        })?;
    let [mut judge] = judges;
    judge.finish();
    saving.finish(judge, report, sink)
}

/// The same for a filter that several threads add to.
fn carry_in_order(
    filter: &mut AnyFilter,
    hasher: &Hasher,
    task: &Task,
    lock: Option<FileLock>,
    sink: &mut Sink,
    name: impl Fn(Error) -> anyhow::Error + Sync,
) -> Result<(Report, Memory)> {
    let grown = Grown::new(filter, task.input.threads);
    let saving = Saving::new(task, lock, grown.added());
    let checkpoint = saving.checkpoint(task, sink, |_| saving.save_if_due(&grown));
    let report = Pass::<(), _>::new(&task.input, hasher, &mut [])
        .print_to(task.print(), sink)
        .checkpoint(checkpoint)
        .run_in_order(|number, hashes, new, wanted| {
            saving.changed.store(true, Relaxed);
            let added = grown.adding.insert_hashes(number, hashes, new, wanted);
            added.map_err(&name)
        })?;
    saving.finish(grown, report, sink)
}

/// When to save the filter to its file.
struct Saving {
    every: Duration,
    /// `None` if nothing needs saving.
    state: Option<Mutex<Saved>>,
    /// Whether anything was decided since the last save.
    changed: AtomicBool,
}

struct Saved {
    lock: FileLock,
    when: Instant,
    added: u64,
}

impl Saving {
    fn new(task: &Task, lock: Option<FileLock>, added: u64) -> Self {
        let state = |lock| {
            Mutex::new(Saved {
                lock,
                when: Instant::now(),
                added,
            })
        };
        Self {
            every: task.args.save_every,
            state: lock.map(state),
            changed: AtomicBool::new(false),
        }
    }

    /// Saving needs the output at its final place. A file that only appears at the end isn't there yet.
    fn checkpoint<'a, S>(
        &self,
        task: &Task,
        sink: &Sink,
        save: impl Fn(&mut [&mut S]) + Send + 'a,
    ) -> Option<Checkpoint<'a, S>> {
        (!sink.appears_at_end() && !task.args.dry_run).then(|| Checkpoint {
            every: self.every,
            save: Box::new(move |judges: &mut [&mut S]| {
                save(judges);
                Ok(())
            }) as _,
        })
    }

    fn save_if_due(&self, judge: &impl Judge) {
        let Some(state) = &self.state else { return };
        let mut saved = state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.changed.load(Relaxed) {
            return;
        }
        let added = judge.added();
        let few = added - saved.added < FEW_KEYS;
        if few && saved.when.elapsed() < self.every.saturating_mul(SELDOM) {
            return;
        }
        (saved.when, saved.added) = (Instant::now(), added);
        match judge.save(&mut saved.lock) {
            Ok(()) => self.changed.store(false, Relaxed),
            Err(error) => output::warn(format_args!(
                "saving the filter failed; trying again later: {error}"
            )),
        }
    }

    fn finish(
        self,
        judge: impl Judge,
        report: Report,
        sink: &mut Sink,
    ) -> Result<(Report, Memory)> {
        if report.is_printed() {
            sink.finish(report.went_well())
                .context("writing the output")?;
            if let Some(state) = self.state {
                let saved = state.into_inner().unwrap_or_else(PoisonError::into_inner);
                let mut lock = saved.lock;
                judge.save(&mut lock).map_err(named(lock.path()))?;
            }
        }
        let memory = judge.memory(&report);
        Ok((report, memory))
    }
}
