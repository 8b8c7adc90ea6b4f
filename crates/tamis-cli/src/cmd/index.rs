use crate::bar::Bar;
use crate::index::quiet::{self, FileSystems};
use crate::index::{Index, Roots, bytes_path, changed, parse_key_spec, path_bytes, walk};
use crate::location::named;
use crate::lock::LockArgs;
use crate::stream;
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tamis::index::{Entry, EntryFilters, EntryKeys, FileIndex, IndexBuilder, IndexOptions, Stamp};
use tamis_records::key::KeySpec;
use tamis_records::ordered::for_each_in_order;
use tamis_records::progress::Progress;
use tamis_records::scan::{self, Opened, Remarks};

const DEFAULT_RATE: f64 = 0.01;

/// Index files by their keys, so that searches skip files without them
///
/// Makes one small filter per file, all in one index file. `tamis which` then
/// lists the files that may contain a key, and `tamis grep` opens only those.
///
/// Run it again to update the index: files are identified by path, size, times
/// and inode, so only new and changed files are read, and deleted files are
/// dropped. Without FILE, it visits the files and folders of the last run again.
/// Until the update, a changed file is a candidate for every key, so no key is
/// missed.
///
/// Folders are searched for files, including hidden ones. Links to files are
/// followed, links to folders are not. gzip, zstd, bzip2 and xz are recognised
/// and unpacked.
#[derive(clap::Args)]
#[command(after_long_help = "\
Keys:
  line                  the whole line
  word                  words and compounds of them: ids, addresses, paths, URLs (see docs/index.md)
  csv:COLUMN,...        columns of CSV, by name, or by number from 1 in files without names
  tsv:COLUMN,...        columns of tab-separated values
  jsonl:/POINTER,...    what JSON pointers find in each line
  parquet:COLUMN,...    columns of Parquet, by name
  prefix:N:KEY          the first N bytes of one of these

Examples:
  tamis index -o logs.index logs/           the words of every log
  tamis which logs.index 8f14e45fceea167a   the files that may contain this one
  tamis grep logs.index 8f14e45fceea167a    the lines that contain it
  tamis index -o logs.index                 update: read new and changed files
  tamis index -o rows.index --key csv:row --key csv:row,qualifier tables/")]
pub(crate) struct Args {
    /// The index file, created or updated
    #[arg(short = 'o', long = "output", value_name = "INDEX")]
    index: PathBuf,

    /// What to index [default: what the last run indexed]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// What a key is; may be given several times [default: unchanged, or word]
    #[arg(long = "key", value_name = "KEY", value_parser = parse_key_spec)]
    specs: Vec<KeySpec>,

    /// How often a file without the key may be listed, e.g. 0.01, 1% [default: unchanged, or 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate)]
    rate: Option<f64>,

    #[command(flatten)]
    lock: LockArgs,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if cfg!(not(unix)) {
        bail!(
            "this system does not tell whether a file was replaced, which an index must know\n\
             hint: make it under Linux, or in WSL"
        );
    }
    // Held until the new index is there: of two runs the second one starts with what the first one made.
    let _lock = if args.index.exists() {
        Some(args.lock.acquire(&args.index)?)
    } else {
        None
    };
    let old = if args.index.exists() {
        Some(Index::open(&args.index)?)
    } else {
        None
    };
    let (specs, options) = args.options(old.as_ref())?;
    let roots = match (&old, args.paths.is_empty()) {
        (_, false) => Roots::here(args.paths.clone())?,
        (Some(old), true) => old.roots.clone(),
        (None, true) => bail!("nothing to index: name files or folders"),
    };
    let mut found = walk::files(&roots, &args.index);
    if let Some(old) = &old {
        let emptied = old.emptied(&roots.folder, std::mem::take(&mut found.empty));
        found.errors.extend(emptied);
    }
    for (path, cause) in &found.errors {
        say!("tamis: {}: {cause}", path.display());
    }
    if found
        .errors
        .iter()
        .any(|(path, _)| roots.paths.contains(path))
    {
        // A disk that is not there for the moment must not cost the index of it.
        bail!(
            "some files or folders to index are missing, so nothing was written\n\
             hint: name only what exists; to index an empty folder, delete the old index first"
        );
    }
    let plan = Plan::new(found.files, &roots, old.as_ref(), &options);
    let report = Report {
        new: plan.same.iter().filter(|same| same.is_none()).count(),
        gone: plan.gone,
        remarks: specs.iter().map(|_| Total::default()).collect(),
        unread: found.errors.len(),
        busy: (0, None),
    };
    if plan.damaged > 0 {
        output::warn(format_args!(
            "{}: {} made again",
            args.index.display(),
            human::counted(plan.damaged as u64, "damaged filter")
        ));
    }
    let is_current = old
        .as_ref()
        .is_some_and(|old| old.roots == roots && options.check_like(&old.file).is_ok());
    if is_current && report.new == 0 && report.gone == 0 {
        if !args.quiet {
            say!("{}: up to date", args.index.display());
        }
        return Ok(report.exit());
    }
    write(&args, &roots, &specs, &options, &plan, report)
}

/// What is to be done.
struct Plan<'o> {
    files: Vec<PathBuf>,
    /// For each file its entry in the old index, if that is still true, to be copied.
    same: Vec<Option<Entry<'o>>>,
    /// Files of the old index that are not among these.
    gone: usize,
    /// Files whose entry is still true, but damaged.
    damaged: usize,
}

impl<'o> Plan<'o> {
    fn new(
        files: Vec<PathBuf>,
        roots: &Roots,
        old: Option<&'o Index>,
        options: &IndexOptions,
    ) -> Self {
        let is_gone = |entry: &Entry| files.binary_search(&bytes_path(entry.id())).is_err();
        let gone = old.map_or(0, |old| old.files().filter(is_gone).count());
        let kept = old.filter(|old| match options.check_like(&old.file) {
            Ok(()) => true,
            Err(unlike) => {
                output::warn(format_args!("indexing all files again: {unlike}"));
                false
            }
        });
        let known = kept.map(|old| old.file.by_id()).unwrap_or_default();
        let mut systems = FileSystems::default();
        let mut damaged = 0;
        let same = |path: &PathBuf| {
            let old = kept.filter(|old| old.roots.folder == roots.folder || path.is_absolute())?;
            let entry = old.file.entry(*known.get(path_bytes(path).as_slice())?);
            let place = roots.folder.join(path);
            let now = fs::metadata(&place).ok()?;
            if changed(&entry, &place, &now, &mut systems).is_some() {
                return None;
            }
            let sound = entry.verify().is_ok();
            damaged += usize::from(!sound);
            sound.then_some(entry)
        };
        Self {
            same: files.iter().map(same).collect(),
            files,
            gone,
            damaged,
        }
    }
}

fn write(
    args: &Args,
    roots: &Roots,
    specs: &[KeySpec],
    options: &IndexOptions,
    plan: &Plan,
    mut report: Report,
) -> Result<Exit> {
    let progress = Arc::<Progress>::default();
    let signal = stream::stop_on_signals(&progress.stop)?;
    let mut builder = IndexBuilder::create(&args.index, options).map_err(named(&args.index))?;
    crate::index::add_roots(&mut builder, roots, options)?;
    let places = plan.files.iter().map(|path| roots.folder.join(path));
    let places: Vec<_> = places.collect();
    let to_read = places.iter().zip(&plan.same);
    let to_read: Vec<_> = to_read
        .filter(|(_, same)| same.is_none())
        .map(|(place, _)| place.clone())
        .collect();
    let bar = (!args.quiet).then(|| Bar::of_input(&to_read, &progress));
    let mut written = Ok(());
    for_each_in_order(
        plan.files.len(),
        stream::threads(args.threads),
        &progress.stop,
        |number| match plan.same[number] {
            Some(_) => Outcome::Same,
            None => read(&places[number], specs, options, &progress),
        },
        |number, outcome| {
            let (path, same) = (&plan.files[number], plan.same[number]);
            if written.is_ok() {
                written = add(&mut builder, path, same, outcome, &mut report);
            }
            if written.is_err() {
                progress.stop.store(true, Relaxed);
            }
        },
    );
    drop(bar);
    written.map_err(named(&args.index))?;
    let signal = signal.load(Relaxed);
    if signal != 0 {
        say!("tamis: interrupted; {} is unchanged", args.index.display());
        return Ok(Exit::Interrupted(signal as i32));
    }
    let index = builder.finish().map_err(named(&args.index))?;
    report.tell(args, specs, &index);
    Ok(report.exit())
}

impl Args {
    fn options(&self, old: Option<&Index>) -> Result<(Vec<KeySpec>, IndexOptions)> {
        let specs = match (self.specs.is_empty(), old) {
            (false, _) => self.specs.clone(),
            (true, Some(old)) => old.specs.clone(),
            (true, None) => vec!["word".parse().expect("a spec")],
        };
        let rate = self.rate.or(old.map(|old| old.file.rate()));
        let options = IndexOptions::new(rate.unwrap_or(DEFAULT_RATE))
            .and_then(|options| options.specs(specs.iter().map(ToString::to_string)))
            .context("the index")?;
        Ok((specs, options))
    }
}

/// What became of one file.
enum Outcome {
    Same,
    Read {
        stamp: Stamp,
        filters: EntryFilters,
        remarks: Vec<Remarks>,
    },
    Unread(String),
    Stopped,
}

fn read(
    path: &Path,
    specs: &[KeySpec],
    options: &IndexOptions,
    progress: &Arc<Progress>,
) -> Outcome {
    let read = || {
        let file = File::open(path)?;
        let mut began = SystemTime::now();
        let mut metadata = file.metadata()?;
        if wait_until_settled(&Stamp::of(&metadata), began) {
            began = SystemTime::now();
            metadata = file.metadata()?;
        }
        let before = Stamp::of(&metadata);
        // Asked behind the stamp and before the reading: what was written unseen until now is read, and what is written
        // from now on is seen.
        let quiet = quiet::is_quiet(&file, age(&before, began).unwrap_or_default());
        let mut keys = EntryKeys::new(options);
        let scanned = Opened::new(path, file, &metadata, progress)
            .and_then(|file| scan::scan(file, specs, options.key_hasher(), &mut keys, progress));
        let remarks = match scanned {
            Ok(remarks) => remarks,
            Err(error) if error.is_stop() => return Ok(Outcome::Stopped),
            Err(error) => return Err(error.cause),
        };
        // Of the path: another file may have taken its place.
        let after = Stamp::of(&fs::metadata(path)?);
        let stamp = match before.after_reading(&after, began) {
            stamp if quiet => stamp,
            stamp => stamp.racy(),
        };
        let filters = keys.build().map_err(std::io::Error::other)?;
        Ok(Outcome::Read {
            stamp,
            filters,
            remarks,
        })
    };
    read().unwrap_or_else(|cause| Outcome::Unread(cause.to_string()))
}

/// A file written this very moment could be written again without its times telling, and would be called stale for
/// that. It is read a moment later instead. Reports whether it had to wait.
fn wait_until_settled(stamp: &Stamp, now: SystemTime) -> bool {
    const MOMENT: Duration = Duration::from_millis(25);
    let left = age(stamp, now).map_or(Duration::ZERO, |age| MOMENT.saturating_sub(age));
    std::thread::sleep(left);
    !left.is_zero()
}

/// How long ago a file last changed; `None` if in the future.
fn age(stamp: &Stamp, now: SystemTime) -> Option<Duration> {
    let changed = UNIX_EPOCH + Duration::from_nanos(u64::try_from(stamp.changed()).unwrap_or(0));
    now.duration_since(changed).ok()
}

fn add(
    builder: &mut IndexBuilder,
    path: &Path,
    same: Option<Entry>,
    outcome: Outcome,
    report: &mut Report,
) -> Result<(), tamis::Error> {
    let id = path_bytes(path);
    match (outcome, same) {
        (Outcome::Stopped, _) => Ok(()),
        (Outcome::Same, Some(entry)) => builder.copy(&entry),
        (Outcome::Same, None) => unreachable!("what is the same was there before"),
        (Outcome::Unread(reason), _) => {
            say!("tamis: {}: {reason}", path.display());
            report.unread += 1;
            builder.add_unindexed(id, None, &reason)
        }
        (
            Outcome::Read {
                stamp,
                filters,
                remarks,
            },
            _,
        ) => {
            for (total, remarks) in report.remarks.iter_mut().zip(remarks) {
                total.without_key += remarks.without_key;
                if let Some(why) = remarks.no_column {
                    total.no_column.tell(path, why);
                }
                if let Some(why) = remarks.unknown {
                    total.unknown.tell(path, why);
                }
            }
            if stamp.is_racy() {
                report.busy.0 += 1;
                report.busy.1.get_or_insert_with(|| path.to_owned());
            }
            builder.add(id, Some(stamp), &filters)
        }
    }
}

struct Report {
    /// Files that are new or changed.
    new: usize,
    gone: usize,
    unread: usize,
    /// Files that were being written, and one of them.
    busy: (usize, Option<PathBuf>),
    /// One for each spec.
    remarks: Vec<Total>,
}

/// Remarks of all files on one spec.
#[derive(Default)]
struct Total {
    without_key: u64,
    no_column: Told,
    unknown: Told,
}

/// How many files there is something to say of, and of one of them what.
#[derive(Default)]
struct Told {
    files: usize,
    example: Option<(PathBuf, String)>,
}

impl Told {
    fn tell(&mut self, path: &Path, why: String) {
        self.files += 1;
        self.example.get_or_insert((path.to_owned(), why));
    }

    fn warn(&self, what: impl std::fmt::Display) {
        if let Some((path, why)) = &self.example {
            output::warn(format_args!(
                "{} {what}, for example {}: {why}",
                human::counted(self.files as u64, "file"),
                path.display()
            ));
        }
    }
}

impl Report {
    fn exit(&self) -> Exit {
        match self.unread {
            0 => Exit::Done,
            _ => Exit::InputFailed,
        }
    }

    fn tell(&self, args: &Args, specs: &[KeySpec], index: &FileIndex) {
        for (spec, total) in specs.iter().zip(&self.remarks) {
            total.no_column.warn(format_args!("without a key {spec}"));
            total
                .unknown
                .warn(format_args!("that may hold any key {spec}"));
            if total.without_key > 0 {
                output::warn(format_args!(
                    "{} without a key {spec}",
                    human::counted(total.without_key, "record")
                ));
            }
        }
        if let (files, Some(example)) = &self.busy {
            output::warn(format_args!(
                "{} being written, for example {}: each may hold any key until the next run",
                human::counted(*files as u64, "file"),
                example.display()
            ));
        }
        if args.quiet {
            return;
        }
        let keys: u64 = index.specs().map(|spec| spec.keys()).sum();
        say!(
            "{}: {}, {} new or changed, {} gone; {}, {}",
            args.index.display(),
            human::counted(crate::index::files(index).count() as u64, "file"),
            human::count(self.new as u64),
            human::count(self.gone as u64),
            human::counted(keys, "key"),
            human::size(index.info().bytes()),
        );
    }
}
