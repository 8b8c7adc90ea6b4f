//! Records judged by this process: by digests, by a filter in memory, or by one that a file keeps.

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
use std::time::Instant;
use tamis::{AnyFilter, Error, FileLock, Hasher, SecretKey};
use tamis_records::exact::{ExactSet, OutOfMemory};

/// A digest belongs to one of these by its hash. Their number is fixed, so that
/// no answer depends on the number of threads.
const EXACT_SHARDS: usize = 16;
/// What a digest takes in a set that is as full as it gets.
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
        .print(task.print(), sink)
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
    let mut seen = task.first_filter(hasher)?;
    let report = Pass::new(&task.input, &hasher, &mut [&mut seen])
        .print(task.print(), sink)
        .run(|seen, hashes, new| {
            Ok(seen
                .insert_hashes(hashes, new)
                .map_err(anyhow::Error::from)?)
        })?;
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
            // Another run has just made it, which is as well.
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
    // A finished one says so before any input is read.
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
    let kept = Kept::new(filter, &over)?;
    carry(kept, &hasher, task, lock, sink, |kept, hashes, new| {
        kept.decide(hashes, new, &over, |error| named()(error))
    })
}

/// Carries all records past a judge whose filter is kept in the locked file.
fn carry<J: Judge, H: Keyed>(
    judge: J,
    hasher: &H,
    task: &Task,
    mut lock: Option<FileLock>,
    sink: &mut Sink,
    decide: impl Fn(&mut J, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
) -> Result<(Report, Memory)> {
    let args = task.args;
    let mut judges = [judge];
    let every = args.save_every;
    let mut saved = (Instant::now(), judges[0].added());
    // Whether anything was decided since the filter was saved.
    let changed = AtomicBool::new(false);
    let mut periodic_save = |judges: &mut [&mut J]| {
        for (judge, lock) in judges.iter().zip(&mut lock) {
            if !changed.load(Relaxed) {
                continue;
            }
            let few = judge.added() - saved.1 < FEW_KEYS;
            if few && saved.0.elapsed() < every.saturating_mul(SELDOM) {
                continue;
            }
            saved = (Instant::now(), judge.added());
            match judge.save(lock) {
                Ok(()) => changed.store(false, Relaxed),
                Err(error) => output::warn(format_args!(
                    "saving the filter failed; trying again later: {error}"
                )),
            }
        }
        Ok(())
    };
    // A save needs the output to be where it stays; a file that appears only
    // at the end is not there yet.
    let checkpoint = (!sink.appears_at_end() && !args.dry_run).then(|| Checkpoint {
        every,
        save: Box::new(&mut periodic_save) as _,
    });
    let report = Pass::new(&task.input, hasher, &mut judges)
        .print(task.print(), sink)
        .checkpoint(checkpoint)
        .run(|judge, keys, new| {
            changed.store(true, Relaxed);
            decide(judge, keys, new)
        })?;
    let [mut judge] = judges;
    judge.finish();
    if report.is_printed() {
        sink.finish(report.went_well())
            .context("writing the output")?;
        if let Some(lock) = &mut lock {
            judge.save(lock).map_err(named(lock.path()))?;
        }
    }
    let memory = judge.memory(&report);
    Ok((report, memory))
}
