//! The process of one contender. It builds, queries, or only reads the questions, to measure the memory that takes.

use super::contender::Contender;
use super::keys::{ABSENT, HELD, PRESENT};
use super::report::{Memory, Refusal, Step, StepResult};
use super::work::{Unfit, Work};
use super::{exact, filters, one_hash, redb, sqlite};
use anyhow::Result;
use std::hint::black_box;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// Reads all keys, and does nothing with them
    Read,
    /// Builds, into a file where it is one
    Build,
    /// Answers; if it is no file, builds first
    Ask,
}

/// One step, in a separate process.
pub(crate) fn run(dir: &Path, contender: Contender, what: What) -> StepResult {
    let done = Work::open(dir).and_then(|work| match what {
        What::Read => read_all(&work),
        What::Build | What::Ask => build_or_ask(&work, contender, what),
    });
    match done {
        Ok(step) => Ok(Step {
            memory: memory(),
            ..step
        }),
        Err(error) => Err(match error.downcast::<Unfit>() {
            Ok(Unfit(why)) => Refusal::Unfit(why),
            Err(error) => Refusal::Failed(format!("{error:#}")),
        }),
    }
}

fn build_or_ask(work: &Work, contender: Contender, what: What) -> Result<Step> {
    match (contender, what) {
        (Contender::HashSet, _) => exact::hash_set(work),
        (Contender::Digests, _) => exact::digests(work),
        (Contender::Bitmap, _) => exact::bitmap(work),
        (Contender::OneHash, _) => one_hash::measure(work),
        (Contender::Sqlite, What::Build) => sqlite::build(work),
        (Contender::Sqlite, _) => sqlite::ask(work),
        (Contender::Redb, What::Build) => redb::build(work),
        (Contender::Redb, _) => redb::ask(work),
        (Contender::Filter(kind), What::Build) => filters::build(work, kind),
        (Contender::Filter(kind), _) => filters::ask(work, kind),
    }
}

/// Reads all keys and ignores them.
fn read_all(work: &Work) -> Result<Step> {
    for name in [HELD, PRESENT, ABSENT] {
        work.each(name, |keys| {
            black_box(keys);
            Ok(())
        })?;
    }
    Ok(Step::default())
}

/// The peak memory of this process. `getrusage` won't do: it includes the parent's peak from before this program was
/// executed.
#[cfg(target_os = "linux")]
fn memory() -> Option<Memory> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    };
    let peak = field("VmHWM:")?;
    Some(Memory {
        peak,
        own: peak.saturating_sub(field("RssFile:")?),
    })
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<Memory> {
    None
}
