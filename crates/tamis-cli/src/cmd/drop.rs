use crate::index::Index;
use crate::index::parts::part_path;
use crate::location::{self, KeyFile, Place, in_redis, parse_servers};
use crate::lock::LockArgs;
use crate::present::{self, Found};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, BufRead, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tamis_redis::{Orphan, RedisFilter, Servers, Survey};

/// Delete a filter or an index, now or later, or what is left of deleted ones
///
/// A file is deleted only if it is a Tamis filter or an index; an index takes the
/// parts next to it along. Workers that still use a filter in Redis get an error,
/// never a wrong answer.
///
/// Parts of a filter stay behind in Redis when a worker dies while it deletes the
/// filter, or when someone deletes only its record; `tamis list` shows them. With
/// --orphans, this command deletes those that nobody has used for an hour and that
/// belong to no filter of that name, including one being created. A server with an
/// LFU eviction policy does not report when a key was last used; nothing is deleted
/// there.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis drop seen.tamis
  tamis drop redis://10.0.0.7/seen
  tamis drop --after 7d redis://10.0.0.7/seen
  tamis drop --never redis://10.0.0.7/seen        cancel --after
  tamis drop --orphans redis://10.0.0.7           asks before deleting
  tamis drop --orphans redis://10.0.0.7/2 -y      does not ask, for cron")]
pub(crate) struct Args {
    /// The filter or index: a file, or redis://HOST:PORT/DB/NAME
    #[arg(required_unless_present = "orphans")]
    filter: Option<Place>,

    /// In Redis, delete the filter after this time, e.g. 90s, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    after: Option<Duration>,

    /// In Redis, keep the filter forever: cancel --after
    #[arg(long, conflicts_with = "after")]
    never: bool,

    /// Delete what is left of deleted filters on these servers: redis://HOST:PORT[/DB]
    #[arg(long, value_name = "SERVERS", value_parser = parse_servers, conflicts_with_all = ["filter", "after", "never"])]
    orphans: Option<Servers>,

    /// Don't ask
    #[arg(short, long, requires = "orphans")]
    yes: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    lock: LockArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    match (&args.orphans, &args.filter) {
        (Some(servers), _) => drop_orphans(servers, args.yes),
        (None, Some(Place::Redis(at))) => {
            let open = || args.key.open_redis(at);
            match (args.after, args.never) {
                (Some(time), _) => open()?.expire_in(time),
                (None, true) => open()?.persist(),
                // Deleted even if it can't be opened.
                (None, false) => RedisFilter::delete_at(at, &args.key.redis_options()?),
            }
            .map_err(in_redis(at))?;
            Ok(Exit::Done)
        }
        (None, Some(Place::File(path))) => {
            if args.after.is_some() || args.never {
                bail!(
                    "{}: --after and --never are for filters in Redis; nobody deletes a file later",
                    path.display()
                );
            }
            drop_file(path, &args.lock)?;
            Ok(Exit::Done)
        }
        (None, None) => bail!("name a filter, or servers with --orphans"),
    }
}

/// Deletes a filter or an index, and nothing else.
fn drop_file(path: &Path, lock: &LockArgs) -> Result<()> {
    let name = path.display();
    if path.is_symlink() {
        bail!("{name} is a link: it stays as it is\nhint: name the file that it leads to");
    }
    let files: Vec<PathBuf> = match present::describe(path) {
        Some((Found::Filter, _)) => vec![path.to_owned()],
        Some((Found::Index, _)) => {
            // Nothing can find parts without their index, so the index goes last.
            let index = Index::open(path, &[])?;
            let numbers = index.table.parts.iter();
            let parts = numbers.map(|number| part_path(path, *number));
            parts.chain([path.to_owned()]).collect()
        }
        Some((_, what)) => bail!(
            "{name} is {what}, neither a Tamis filter nor an index: it stays as it is\n\
             hint: `rm` deletes any file"
        ),
        None if path.exists() => bail!("{name}: expected a file, got a folder, a pipe or a device"),
        None => bail!("{name}: no such file"),
    };
    // Locked, so that no writer silently loses data.
    let _lock = lock.acquire(path)?;
    for file in files {
        match fs::remove_file(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound && file != path => {}
            removed => removed.with_context(|| format!("deleting {}", file.display()))?,
        }
    }
    Ok(())
}

/// Deletes the remains of deleted filters.
fn drop_orphans(servers: &Servers, is_confirmed: bool) -> Result<Exit> {
    let options = location::redis_options()?;
    let named = || servers.to_string();
    let survey = Survey::of(servers, &options).with_context(named)?;
    super::list::tell_what_is_broken(&survey);
    // Parts that may belong to an unreadable filter are kept and reported.
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
    if !is_confirmed && !confirmed(&old)? {
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
