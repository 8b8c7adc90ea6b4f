//! Records judged by a filter in Redis that many workers share.

use super::shared::Shared;
use super::{Claim, MadeFor, Memory, Over, Task};
use crate::human;
use crate::location::{Place, in_redis, warn_of};
use crate::output::{self, Sink};
use crate::remote::{Remote, Timely, with_keys};
use crate::stream::{Checkpoint, Keyed, Pass, Report};
use crate::window::refuse_without;
use anyhow::{Context, Result, bail};
use std::time::Duration;
use tamis::{Kind, Plan};
use tamis_redis::{Location, RedisFilter};

pub(super) fn with_redis(at: &Location, task: &Task, sink: &mut Sink) -> Result<(Report, Memory)> {
    if task.args.claim == Claim::Before && sink.appears_at_end() {
        bail!(
            "--claim before prints records as it claims them, but OUT appears at the end\n\
             hint: write to standard output, or use --claim after"
        );
    }
    if task.args.max_memory.is_some() {
        bail!(
            "--max-memory is for windows in memory and in files\n\
             hint: the server bounds what is in Redis, by its own maxmemory"
        );
    }
    let filter = open_or_create(at, task)?;
    task.args.check_made_for(&MadeFor {
        name: &Place::Redis(at.clone()),
        kind: filter.kind(),
        keys: filter.capacity(),
        rate: filter.rate(),
        window: filter.window(),
    })?;
    if let Some(window) = filter.window() {
        task.args.window.check(at, &window)?;
        task.args.time.check(&window)?;
        let by_record = task.input.rule.has_time();
        return with_keys!(filter, keyed => {
            with_shared(at, filter, &Timely { keyed, by_record }, task, sink)
        });
    }
    refuse_without(at, filter.kind(), &task.args.window, &task.args.time)?;
    with_keys!(filter, keyed => with_shared(at, filter, keyed, task, sink))
}

fn with_shared<H: Keyed<Token: Remote>>(
    at: &Location,
    filter: RedisFilter,
    keyed: &H,
    task: &Task,
    sink: &mut Sink,
) -> Result<(Report, Memory)> {
    let place = Place::Redis(at.clone());
    let over = Over {
        filter: &place,
        rate: filter.rate(),
        strict: task.input.strict,
    };
    let mut shared = Shared::new(filter, task.args.claim, &over)?;
    let claims_before = task.args.claim == Claim::Before && !task.args.dry_run;
    let claims_after = task.args.claim == Claim::After && !task.args.dry_run;
    let mut add_printed = |shared: &mut [&mut &mut Shared<H::Token>]| {
        shared
            .iter_mut()
            .try_for_each(|shared| shared.add_printed())?;
        Ok(())
    };
    let checkpoint = (claims_after && !sink.appears_at_end()).then(|| Checkpoint {
        every: Duration::ZERO,
        save: Box::new(&mut add_printed) as _,
    });
    let result = Pass::new(&task.input, keyed, &mut [&mut shared])
        .in_small_steps()
        .print(task.print(), sink)
        .checkpoint(checkpoint)
        .run(|shared, hashes, new| {
            if claims_before {
                shared.claim(hashes, new, &over)
            } else {
                shared.ask(hashes, new, &over)
            }
        });
    // Claimed records are printed even if the server failed.
    sink.finish(result.as_ref().is_ok_and(Report::went_well))
        .context("writing the output")?;
    let report = result.with_context(|| at.to_string())?;
    let without_time = report.without_time;
    if claims_before || claims_after && report.is_printed() {
        shared.finish().map_err(in_redis(at))?;
    }
    if shared.raced() > 0 && !task.args.quiet {
        say!(
            "unique records that another worker printed, too: {}",
            human::count(shared.raced())
        );
    }
    let memory = shared.memory().map_err(in_redis(at))?;
    if let Some(odd) = memory.times {
        odd.warn(without_time);
    }
    Ok((report, memory))
}

/// The plan of a filter to create.
fn plan(task: &Task) -> Result<Plan> {
    if let Some(options) = &task.window {
        return task.window_plan(options);
    }
    let plan = |keys| Plan::one_line(Kind::Growing, keys, task.args.rate());
    let keys = task.first_keys(|keys| Some(plan(keys).ok()?.bytes()));
    Ok(plan(keys)?)
}

fn open_or_create(at: &Location, task: &Task) -> Result<RedisFilter> {
    let options = task.args.key.redis_options()?;
    match RedisFilter::open(at, &options) {
        Err(tamis_redis::Error::NotFound { .. }) if !task.args.dry_run && !task.args.must_exist => {
            let plan = plan(task)?;
            match RedisFilter::create(at, &plan, task.new_hasher()?, &options) {
                // Another worker has just created it, which is fine.
                Err(tamis_redis::Error::Exists { .. }) => RedisFilter::open(at, &options),
                created => created.inspect(|_| {
                    // Printed even with `-q`: from now on every key counts as unseen.
                    output::warn(format_args!(
                        "{at}: not found, so a {} filter was created: every record is new\n\
                         hint: if it was there before, it is lost; with --must-exist that is an error",
                        plan.kind()
                    ));
                }),
            }
        }
        opened => opened,
    }
    .inspect(warn_of)
    .map_err(in_redis(at))
}
