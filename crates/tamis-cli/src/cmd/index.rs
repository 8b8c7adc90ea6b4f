use crate::index::parts::{Parts, Writer};
use crate::index::survey::Survey;
use crate::index::table::{Choice, Known, Roots, Table};
use crate::index::update::{self, Job, Report, Told};
use crate::index::watch::Watcher;
use crate::index::{Index, Moved, Opened, home_of, parse_key_spec};
use crate::location::named;
use crate::lock::LockArgs;
use crate::{Exit, human, output, stream};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::index::{EntryKeys, IndexBuilder, IndexOptions};
use tamis_records::key::KeySpec;
use tamis_records::progress::Progress;

const DEFAULT_RATE: f64 = 0.01;

/// Approximate memory per indexing thread.
const MEMORY_PER_THREAD: u64 = 64 << 20;

/// Index files by their keys, so that searches skip what can't hold them
///
/// Makes small filters of the segments of every file, all in one index (and
/// parts next to it when it becomes large). `tamis grep` then opens only the files that
/// may have a match, and in them only the segments that may; `tamis grep --candidates`
/// lists the files.
///
/// Run it again to update the index: what was appended to a file is read, and
/// new and changed files; renamed files are not read again, and deleted files
/// are dropped. Without FILE, it visits the files and folders of the last run
/// again. Until the update, what is newer than the index is searched directly,
/// so no key is missed. A run that is interrupted keeps what it has read.
///
/// Folders are searched for files, including hidden ones, except what files
/// called .tamisignore in them name, in the syntax of .gitignore. Links to
/// files are followed, links to folders are not. gzip, zstd, bzip2, xz and
/// UTF-16 are recognised and unpacked.
#[derive(clap::Args)]
#[command(after_long_help = "\
Keys:
  word                  words, whatever their case, and compounds of them: ids, addresses, paths, URLs (see docs/index.md)
  trigram               three bytes in a row, for parts of words and regular expressions
  line                  the whole line
  csv:COLUMN,...        columns of CSV, by name, or by number from 1 in files without names; csv(;): with ; between
  field:N,...           fields between blanks, by number from 1
  tsv:COLUMN,...        columns of tab-separated values
  jsonl:/POINTER,...    what JSON pointers find in each line
  parquet:COLUMN,...    columns of Parquet, by name
  prefix:N:KEY          the first N bytes of one of these

Examples:
  tamis index logs.index logs/                           the words of every log
  tamis grep 8f14e45fceea167a logs.index                 the lines that contain this one
  tamis grep --candidates 8f14e45fceea167a logs.index    the files that may
  tamis index logs.index                                 update: read what is new
  tamis index logs.index --watch                         update whenever a file is written
  tamis index rows.index -k csv:row -k csv:row,qualifier tables/")]
pub(crate) struct Args {
    /// The index file, created or updated
    index: PathBuf,

    /// What to index [default: what the last run indexed]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// What a key is; may be given several times [default: unchanged, or word]
    #[arg(short = 'k', long = "key", value_name = "KEY", value_parser = parse_key_spec)]
    specs: Vec<KeySpec>,

    /// How often a segment without the key may be read, e.g. 0.01, 1% [default: unchanged, or 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Index only files whose path inside the folder fits, or with ! in front leave out files and folders whose
    /// path fits; may be given several times
    #[arg(short, long, value_name = "GLOB")]
    glob: Vec<String>,

    /// Leave out hidden files and what .gitignore and .ignore name
    #[arg(long)]
    gitignore: bool,

    /// Where a folder is now that was elsewhere when it was indexed
    #[arg(long, value_name = "OLD=NEW")]
    moved: Vec<Moved>,

    /// Compare files and filters with their checksums, also where nothing seems to have changed
    #[arg(long)]
    verify: bool,

    /// Go on, and update the index whenever a file changes
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    lock: LockArgs,

    /// Memory to use at most, e.g. 256M: fewer threads where that is little [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size)]
    memory: Option<u64>,

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
    args.choice().check()?;
    if args.watch {
        // Fails early rather than after reading everything.
        Watcher::new(&[])?;
    }
    let progress = Arc::<Progress>::default();
    let signal = stream::stop_on_signals(&progress.stop)?;
    let mut exit = args.update(&progress, true)?;
    if args.watch && !progress.stop.load(Relaxed) {
        exit = args.watch(&progress)?;
    }
    Ok(match signal.load(Relaxed) {
        0 => exit,
        signal => Exit::Interrupted(signal as i32),
    })
}

/// The index to write.
struct Aim {
    table: Table,
    specs: Vec<KeySpec>,
    options: IndexOptions,
    /// Whether the table's data about files was made with the same options.
    reuses: bool,
    /// Whether the existing index covers the same files, chosen by the same rules.
    is_current: bool,
    /// Indexed files that are no longer below any root.
    dropped: usize,
}

impl Args {
    /// Updates the index once. A run that changed nothing only reports if `is_first`.
    fn update(&self, progress: &Arc<Progress>, is_first: bool) -> Result<Exit> {
        if !self.index.exists() {
            self.create()?;
        }
        let lock = self.lock.acquire(&self.index)?;
        let (aim, parts) = self.aim()?;
        let Aim {
            table,
            specs,
            options,
            reuses,
            is_current,
            dropped,
        } = aim;
        let index = Index::new(&self.index, table, parts, specs, &[]);
        let survey = Survey::of(&index)?;
        for (path, cause) in &survey.unlisted {
            say!("tamis: {}: {cause}", path.display());
        }
        if survey.root_missing {
            // An unmounted disk must not cost its part of the index.
            bail!(
                "some files or folders to index are missing, so nothing was written\n\
                 hint: name only what exists; to index an empty folder, delete the old index first"
            );
        }
        let Index {
            mut table,
            parts,
            specs,
            ..
        } = index;
        let threads = stream::threads(self.threads);
        let most = self
            .memory
            .map(|memory| (memory / MEMORY_PER_THREAD).max(1) as usize);
        let job = Job {
            specs: &specs,
            options: &options,
            threads: threads.min(most.unwrap_or(threads)),
            verify: self.verify,
            progress,
            with_bar: !self.quiet && is_first,
            buffers: Default::default(),
        };
        let mut writer = Writer::new(&self.index, options.clone(), lock, parts)?;
        let mut report =
            update::update(&mut table, &survey, reuses, is_current, &mut writer, &job)?;
        report.gone += dropped;
        if report.has_more && !report.is_stopped {
            // What was read is written; the next update indexes the lines appended since.
            drop(writer);
            return self.update(progress, is_first);
        }
        self.tell(&report, &specs, &table, &writer, is_first);
        Ok(if report.unread > 0 || !survey.unlisted.is_empty() {
            Exit::InputFailed
        } else {
            Exit::Done
        })
    }

    /// Updates the index on every change, until stopped.
    fn watch(&self, progress: &Arc<Progress>) -> Result<Exit> {
        let index = Index::open(&self.index, &self.moved)?;
        let watcher = Watcher::new(&index.places)?;
        drop(index);
        if !self.quiet {
            say!("{}: watching", self.index.display());
        }
        let mut exit = Exit::Done;
        loop {
            // Once at first, for changes made before watching began.
            match self.update(progress, false) {
                Ok(done) => exit = done,
                // A missing folder may come back.
                Err(error) => say!("tamis: {error:#}"),
            }
            if !watcher.wait(&progress.stop) {
                return Ok(exit);
            }
        }
    }

    /// Creates an empty index, so that it can be locked and a killed run keeps its progress.
    fn create(&self) -> Result<()> {
        if self.paths.is_empty() {
            bail!("nothing to index: name files or folders");
        }
        let roots = Roots::here(self.paths.clone())?;
        for root in &roots.paths {
            let place = roots.folder.join(root);
            if let Err(cause) = place.metadata() {
                bail!("{}: {cause}, so nothing was written", root.display());
            }
        }
        let (_, options) = self.options(None)?;
        let home = std::path::absolute(&self.index).ok();
        let home = home.as_deref().and_then(Path::parent).map(Path::to_owned);
        let table = Table {
            home: home.unwrap_or_default(),
            roots,
            choice: self.choice(),
            ..Table::default()
        };
        let create = || {
            let mut builder = IndexBuilder::create_new(&self.index, &options)?;
            builder.add(table.to_id(), None, &EntryKeys::new(&options).build()?)?;
            builder.finish()
        };
        match create() {
            // Another run was faster.
            Err(_) if self.index.exists() => Ok(()),
            created => created.map(drop).map_err(named(&self.index)),
        }
    }

    fn choice(&self) -> Choice {
        let include = self.glob.iter().filter(|glob| !glob.starts_with('!'));
        let exclude = self.glob.iter().filter_map(|glob| glob.strip_prefix('!'));
        Choice {
            include: include.map(Clone::clone).collect(),
            exclude: exclude.map(str::to_owned).collect(),
            gitignore: self.gitignore,
        }
    }

    /// The index to write, from the existing index and the options.
    fn aim(&self) -> Result<(Aim, Parts)> {
        let (index, stored) = match Index::open_any(&self.index, &self.moved)? {
            Opened::Index(index) => {
                let stored = index.table.clone();
                (index, Some(stored))
            }
            Opened::Earlier(index) => {
                output::warn(format_args!(
                    "{}: made by an earlier version of tamis, so all files are indexed again",
                    self.index.display()
                ));
                (index, None)
            }
        };
        let mut old = index.as_found();
        let Index {
            parts,
            specs: old_specs,
            ..
        } = *index;
        let rate = parts.index.rate();
        let (specs, options) = self.options(Some((&old_specs, rate)))?;
        let like = options.check_like(&parts.index);
        if let (Err(unlike), false) = (&like, old.files.is_empty()) {
            output::warn(format_args!("indexing all files again: {unlike}"));
        }
        let before = old.clone();
        if !self.paths.is_empty() {
            let roots = Roots::here(self.paths.clone())?;
            old.files = rebased(old.files, &old.roots, &roots);
            old.roots = roots;
            old.choice = self.choice();
        } else if !self.glob.is_empty() || self.gitignore {
            old.choice = self.choice();
        }
        old.home = home_of(&self.index).context("finding the folder of the index")?;
        let is_current = like.is_ok() && Some(&old) == stored.as_ref();
        let dropped = before.files.len() - old.files.len();
        Ok((
            Aim {
                table: old,
                specs,
                options,
                reuses: like.is_ok(),
                is_current,
                dropped,
            },
            parts,
        ))
    }

    fn options(&self, old: Option<(&[KeySpec], f64)>) -> Result<(Vec<KeySpec>, IndexOptions)> {
        let specs = match (self.specs.is_empty(), old) {
            (false, _) => self.specs.clone(),
            (true, Some((specs, _))) => specs.to_vec(),
            (true, None) => vec!["word".parse().expect("a spec")],
        };
        let rate = self.rate.or(old.map(|(_, rate)| rate));
        let options = IndexOptions::new(rate.unwrap_or(DEFAULT_RATE))
            .and_then(|options| options.specs(specs.iter().map(ToString::to_string)))
            .context("the index")?;
        Ok((specs, options))
    }

    fn tell(
        &self,
        report: &Report,
        specs: &[KeySpec],
        table: &Table,
        writer: &Writer,
        is_first: bool,
    ) {
        for (spec, total) in specs.iter().zip(&report.remarks) {
            warn(&total.no_column, format_args!("without a key {spec}"));
            warn(&total.unknown, format_args!("that may hold any key {spec}"));
            if total.without_key > 0 {
                output::warn(format_args!(
                    "{} without a key {spec}",
                    human::counted(total.without_key, "record")
                ));
            }
        }
        if report.damaged > 0 {
            output::warn(format_args!(
                "{}: {} made again",
                self.index.display(),
                human::counted(report.damaged as u64, "damaged filter")
            ));
        }
        if let (files, Some(example)) = &report.busy {
            output::warn(format_args!(
                "{} being written, for example {}: each may hold any key until the next run",
                human::counted(*files as u64, "file"),
                example.display()
            ));
        }
        if report.is_stopped {
            say!(
                "tamis: interrupted; {} has what was read, and the next run goes on",
                self.index.display()
            );
            return;
        }
        if self.quiet {
            return;
        }
        if report.is_idle() {
            if is_first {
                say!("{}: up to date", self.index.display());
            }
            return;
        }
        let (keys, bytes) = writer.parts.size();
        let mut did = format!("{} new or changed", human::count(report.read as u64));
        for (files, what) in [
            (report.grown, "grown"),
            (report.renamed, "renamed"),
            (report.linked, "linked"),
            (report.compared, "unchanged"),
        ] {
            if files > 0 {
                did += &format!(", {} {what}", human::count(files as u64));
            }
        }
        say!(
            "{}: {}, {did}, {} gone; {}, {}",
            self.index.display(),
            human::counted(table.files.len() as u64, "file"),
            human::count(report.gone as u64),
            human::counted(keys, "key"),
            human::size(bytes),
        );
    }
}

/// Rewrites known files relative to new roots. Files below none of them are left out.
fn rebased(files: Vec<Known>, old: &Roots, new: &Roots) -> Vec<Known> {
    let new: Vec<PathBuf> = new.paths.iter().map(|path| new.folder.join(path)).collect();
    let files = files.into_iter().filter_map(|mut known| {
        let root = old.folder.join(&old.paths[known.root]);
        let place = if known.inside.as_os_str().is_empty() {
            root
        } else {
            root.join(&known.inside)
        };
        let found = new.iter().enumerate();
        let mut found =
            found.filter_map(|(root, path)| Some((root, place.strip_prefix(path).ok()?)));
        let (root, inside) = found.next()?;
        known.root = root;
        known.inside = inside.to_owned();
        Some(known)
    });
    files.collect()
}

fn warn(told: &Told, what: impl std::fmt::Display) {
    if let Some((path, why)) = &told.example {
        output::warn(format_args!(
            "{} {what}, for example {}: {why}",
            human::counted(told.files as u64, "file"),
            path.display()
        ));
    }
}
