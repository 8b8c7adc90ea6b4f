//! Our own filters of every kind.

use super::contender::Contender;
use super::keys::ABSENT;
use super::report::Step;
use super::work::{self, Unfit, Work};
use anyhow::{Context, Result};
use std::time::Instant;
use tamis::{AnyFilter, Error, Growing, Hasher, Kind, ListBuilder, Plan};

/// A growing filter is sized for one in this many keys; sized for all of them, it would never grow.
const GROWTH: u64 = 10;

pub(super) fn build(work: &Work, kind: Kind) -> Result<Step> {
    let (filter, build_seconds) = if kind.is_static() {
        build_list(work, kind)?
    } else {
        add_all(work, kind)?
    };
    let path = work.file(Contender::Filter(kind));
    filter
        .save(&path)
        .with_context(|| format!("writing {}", path.display()))?;
    work::built(&path, build_seconds)
}

fn add_all(work: &Work, kind: Kind) -> Result<(AnyFilter, f64)> {
    let (held, rate) = (work.settings.held, work.settings.rate);
    let start = Instant::now();
    let mut filter = match kind {
        Kind::Growing => Growing::new((held / GROWTH).max(1), rate).map(AnyFilter::Growing),
        _ => Plan::for_rate(kind, held, rate)
            .and_then(|plan| AnyFilter::from_plan(&plan, Hasher::default())),
    }
    .map_err(unfit)?;
    let making = start.elapsed().as_secs_f64();
    let mut new = Vec::new();
    let adding = work.add_held(|keys| {
        new.resize(keys.len(), false);
        Ok(filter.insert_many(keys, &mut new)?)
    })?;
    Ok((filter, making + adding))
}

fn build_list(work: &Work, kind: Kind) -> Result<(AnyFilter, f64)> {
    if kind == Kind::Cascade && !work.settings.absent_is_given {
        return Err(Unfit("it needs an allow list: --absent FILE".into()).into());
    }
    let mut list = ListBuilder::new(kind, work.settings.rate)
        .map_err(unfit)?
        .threads(1);
    let mut seconds = work.add_held(|keys| Ok(list.add_all(keys)?))?;
    if kind == Kind::Cascade {
        seconds += work.add_from(ABSENT, |keys| Ok(list.allow_all(keys)?))?;
    }
    let start = Instant::now();
    let filter = list.build()?;
    Ok((filter, seconds + start.elapsed().as_secs_f64()))
}

/// Marks a kind that can't reach the rate as unfit.
fn unfit(error: Error) -> anyhow::Error {
    Unfit(error.to_string()).into()
}

pub(super) fn ask(work: &Work, kind: Kind) -> Result<Step> {
    let path = work.file(Contender::Filter(kind));
    let filter = AnyFilter::load(&path).with_context(|| path.display().to_string())?;
    // Each kind directly, as programs use it, without dispatching on the kind for every key.
    macro_rules! ask_each {
        ($($kind:ident),*) => {
            match &filter {
                $(AnyFilter::$kind(filter) => {
                    let mut answers = work.ask_singly(|key| Ok(filter.contains(key)))?;
                    work.ask_in_batches(&mut answers, |keys, found| {
                        filter.contains_many(keys, found);
                    })?;
                    answers
                })*
                _ => anyhow::bail!("an unknown kind of filter"),
            }
        };
    }
    let answers = ask_each!(
        Bloom, Blocked, Counting, Cuckoo, Growing, Fuse, Ribbon, Cascade
    );
    work::answered(&path, answers)
}
