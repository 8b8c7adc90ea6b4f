use crate::location::{KeyFile, RedisArgs, parse_servers, warn_if_insecure};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::io::{self, BufRead, IsTerminal};
use tamis_redis::{Orphan, Servers, Survey};

/// Delete leftovers of deleted filters on Redis servers
///
/// Parts of a filter stay behind when a worker dies while it deletes the filter,
/// or when someone deletes only its record. `tamis list` shows them. This
/// command deletes parts that nobody has used for an hour and that belong to no
/// filter of that name, including one being created. A server with an LFU
/// eviction policy does not report when a key was last used; nothing is deleted
/// there.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis gc redis://10.0.0.7                  asks before deleting
  tamis gc --yes redis://10.0.0.7/2          does not ask, for cron")]
pub(crate) struct Args {
    /// The servers: redis://HOST:PORT[/DB]
    #[arg(value_parser = parse_servers)]
    servers: Servers,

    /// Don't ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    warn_if_insecure(args.servers.is_insecure());
    let options = args.redis.options(&KeyFile::default())?;
    let named = || args.servers.to_string();
    let survey = Survey::of(&args.servers, &options).with_context(named)?;
    super::list::tell_what_is_broken(&survey);
    // What belongs to a filter that can't be read stays, and is reported.
    let done = if survey.is_whole() {
        Exit::Done
    } else {
        Exit::NoneFound
    };
    let old: Vec<&Orphan> = survey.collectable().collect();
    let younger = survey.orphans.len() - old.len();
    if younger > 0 {
        say!(
            "{} left alone: used within the last hour, of unknown age, or about to expire",
            human::counted(younger as u64, "part")
        );
    }
    if old.is_empty() {
        say!("nothing to delete");
        return Ok(Exit::Done);
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
    say!(
        "{} deleted, {} freed",
        human::counted(gone.len() as u64, "key"),
        human::size(bytes)
    );
    Ok(done)
}

fn confirmed(orphans: &[&Orphan]) -> Result<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        bail!(
            "no terminal to confirm on, so nothing was deleted\nhint: --yes deletes without asking"
        );
    }
    let bytes = orphans.iter().map(|orphan| orphan.bytes).sum();
    eprint!(
        "delete {} ({})? [y/N] ",
        human::counted(orphans.len() as u64, "key"),
        human::size(bytes)
    );
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
