use crate::location::{KeyFile, RedisArgs};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::io::{self, BufRead, IsTerminal};
use tamis_redis::{Orphan, Servers, Survey};

/// Delete what filters that are gone have left on Redis servers
///
/// A worker that dies while it deletes a filter, or a filter whose record
/// someone deleted, leaves parts that belong to nobody: `tamis list` shows
/// them. Deleted is what nobody has used for an hour, and what no filter of
/// that name knows of, also none that is being created. A server whose policy
/// is one of the LFU family does not tell when a key was used; there nothing
/// is deleted.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis gc redis://10.0.0.7                  asks before it deletes
  tamis gc --yes redis://10.0.0.7/2          does not, for cron")]
pub(crate) struct Args {
    /// The servers: redis://HOST:PORT[/DB]
    servers: Servers,

    /// Don't ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let options = args.redis.options(&KeyFile::default())?;
    let named = || args.servers.to_string();
    let survey = Survey::of(&args.servers, &options).with_context(named)?;
    let old: Vec<&Orphan> = survey.collectable().collect();
    let younger = survey.orphans.len() - old.len();
    if younger > 0 {
        eprintln!(
            "{} left alone: used within the last hour, or nobody knows, or they end by themselves",
            human::count(younger as u64)
        );
    }
    if old.is_empty() {
        eprintln!("nothing to delete");
        return Ok(Exit::NoneFound);
    }
    for orphan in &old {
        let idle = orphan.idle.map(human::duration).unwrap_or_default();
        let size = human::size(orphan.bytes);
        output::print(&format!("{}  {size}, idle for {idle}\n", orphan.key))?;
    }
    if !args.yes && !confirmed(&old)? {
        bail!("nothing was deleted");
    }
    let gone = survey.collect(&options).with_context(named)?;
    let bytes = gone.iter().map(|orphan| orphan.bytes).sum();
    eprintln!(
        "{} keys deleted, {} freed",
        human::count(gone.len() as u64),
        human::size(bytes)
    );
    Ok(Exit::Done)
}

fn confirmed(orphans: &[&Orphan]) -> Result<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        bail!("nobody to ask whether to delete these\nhint: --yes does not ask");
    }
    let bytes = orphans.iter().map(|orphan| orphan.bytes).sum();
    eprint!(
        "delete these {} keys, {}? [y/N] ",
        human::count(orphans.len() as u64),
        human::size(bytes)
    );
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
