//! What the commands that read keys have in common: their arguments, signals,
//! progress, and how a run ends.

use crate::apart::{Apart, Role};
use crate::bar::Bar;
use crate::{Exit, find, human, output};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::{self, Metadata};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tamis::{AnyFilter, Hash, Hasher};
use tamis_records::batch::{Print, Token};
use tamis_records::formats::FileClass;
use tamis_records::input::{Input, InputError, Packing};
use tamis_records::key::{Asked, Columns, Part, Pointer, RecordRule};
use tamis_records::pipeline::{self, Job};
use tamis_records::progress::Progress;
use tamis_records::reader::{CHUNK, Oddities, Oddity, Reader};
use tamis_records::records::Framing;

pub(crate) type Halt = pipeline::Halt<anyhow::Error>;
pub(crate) type Checkpoint<'a, S> = pipeline::Checkpoint<'a, S, anyhow::Error>;

/// The same where each step is to be small: a thousand URLs or so.
const SMALL_CHUNK: usize = 64 << 10;

/// Where keys come from and what of a record is its key.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Files to read; none or `-` is standard input
    ///
    /// gzip, zstd, bzip2 and xz are recognised and unpacked.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    part: PartArgs,

    /// CSV or TSV files have no header row; name columns by number
    #[arg(long)]
    no_header: bool,

    /// Keys are in hexadecimal, two digits per byte; anything else is an error
    #[arg(long)]
    hex: bool,

    #[command(flatten)]
    rule: RuleArgs,

    /// Read the files in folders and in the folders inside them, sorted by name
    ///
    /// Hidden files are read, too. Links to files are followed, links to folders
    /// are not. Files that the command itself uses are left out.
    #[arg(short = 'r', long)]
    recursive: bool,

    /// Also read the files named in LIST, one name per line; `-` is standard input
    #[arg(long, value_name = "LIST", conflicts_with = "files0_from")]
    files_from: Option<PathBuf>,

    /// The same with a NUL after each name, as `find -print0` writes it
    #[arg(long, value_name = "LIST")]
    files0_from: Option<PathBuf>,

    /// Read bytes as they are: unpack nothing, and don't warn of what is not text
    #[arg(long)]
    raw: bool,

    /// Fail, instead of warn, about a CSV quote that is never closed, input that is not text, or
    /// (dedup) a filter over its rate
    #[arg(long)]
    pub(crate) strict: bool,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,

    /// Whether `files` are all that is read.
    #[arg(skip)]
    is_found: bool,

    /// Folders that could not be read, and why.
    #[arg(skip)]
    unlisted: Vec<(PathBuf, String)>,

    #[arg(skip)]
    small_steps: bool,

    #[arg(skip)]
    hides_bar: bool,
}

/// Which differences between keys don't count. A filter remembers it.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct RuleArgs {
    /// Keys are URLs: normalise them by the WHATWG rules and drop the fragment
    #[arg(long)]
    url: bool,

    /// Ignore case when comparing keys
    #[arg(short = 'i', long)]
    ignore_case: bool,
}

impl RuleArgs {
    /// Of keys that are made of this many values.
    pub(crate) fn of_values(self, values: usize) -> Result<tamis::KeyRule> {
        let mut rule = tamis::KeyRule::EXACT
            .of_values(values)
            .with_context(|| format!("a key with {values} values: expected 1 to 255"))?;
        if self.url {
            rule = rule.url();
        }
        if self.ignore_case {
            rule = rule.ignore_case();
        }
        Ok(rule)
    }
}

#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
struct PartArgs {
    /// Records end with NUL instead of a line feed
    #[arg(short = '0', long)]
    null: bool,

    /// Records end with this byte
    #[arg(long, value_name = "C", value_parser = parse_delimiter)]
    delimiter: Option<u8>,

    /// The key is these columns of CSV, by name or number from 1
    #[arg(long, value_name = "COL,...")]
    csv: Option<String>,

    /// The key is these columns of tab-separated values
    #[arg(long, value_name = "COL,...")]
    tsv: Option<String>,

    /// The key is what these JSON pointers find in each line
    #[arg(long, value_name = "/POINTER,...")]
    jsonl: Option<String>,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("\\t", _) => Ok(b'\t'),
        ("\\0", _) => Ok(0),
        ("\\n", _) => Ok(b'\n'),
        (_, [byte]) => Ok(*byte),
        _ => Err("expected one byte (or \\t, \\0, \\n)".into()),
    }
}

impl InputArgs {
    pub(crate) fn rule(&self) -> Result<RecordRule> {
        let columns = |list: &str, separator| {
            let columns = Columns::parse(list, !self.no_header).map_err(anyhow::Error::msg)?;
            anyhow::Ok(Part::Columns { separator, columns })
        };
        let part = match &self.part {
            PartArgs {
                csv: Some(list), ..
            } => columns(list, b',')?,
            PartArgs {
                tsv: Some(list), ..
            } => columns(list, b'\t')?,
            PartArgs {
                jsonl: Some(list), ..
            } => Part::Json(Pointer::parse_list(list).map_err(anyhow::Error::msg)?),
            PartArgs { null: true, .. } => Part::Whole(Framing::Delimited(0)),
            PartArgs { delimiter, .. } => {
                Part::Whole(Framing::Delimited(delimiter.unwrap_or(b'\n')))
            }
        };
        let values = match &part {
            Part::Whole(_) => 1,
            Part::Columns { columns, .. } => columns.columns.len(),
            Part::Json(pointers) | Part::JsonText(pointers) => pointers.len(),
        };
        let made = self.rule.of_values(values)?;
        Ok(RecordRule {
            part,
            hex: self.hex,
            made,
        })
    }

    /// The rule for a filter whose keys are made by `filters`.
    pub(crate) fn rule_for(&self, filters: &tamis::KeyRule) -> Result<RecordRule> {
        self.rule()?.for_filter(filters).map_err(|other| {
            let (asked, way_out) = match other.asked {
                Asked::IgnoreCase => (
                    "you asked for --ignore-case",
                    "omit it, or create a filter with --ignore-case",
                ),
                Asked::Urls => (
                    "you asked for --url",
                    "omit it, or create a filter with --url",
                ),
                Asked::Values(_) => {
                    return anyhow!(
                        "{other}\nhint: name as many columns (--csv, --tsv, --jsonl) as the filter was created with"
                    );
                }
            };
            anyhow!("{asked}, but the filter's keys are made differently ({filters})\nhint: {way_out}")
        })
    }

    /// The hash of a new filter whose keys are made as these arguments say.
    pub(crate) fn hasher(&self, hasher: Hasher) -> Result<Hasher> {
        Ok(hasher.with_rule(self.rule()?.made))
    }

    /// The first keys of a filter decide how all of its keys are made, if nobody has said.
    pub(crate) fn settle_rule(&self, filter: &mut AnyFilter) -> Result<()> {
        if filter.counted() == Some(0) && *filter.hasher().rule() == tamis::KeyRule::EXACT {
            filter.set_rule(self.rule()?.made)?;
        }
        Ok(())
    }

    /// Settles which files are read, also those in lists and folders. None may be one of `apart`.
    pub(crate) fn find(&mut self, apart: &mut Apart) -> Result<()> {
        let mut named = std::mem::take(&mut self.files);
        let list = match (self.files_from.take(), self.files0_from.take()) {
            (Some(list), _) => Some((list, b'\n')),
            (None, Some(list)) => Some((list, 0)),
            (None, None) => None,
        };
        if let Some((list, end)) = list {
            let stdin = Path::new("-");
            if list == stdin && named.iter().any(|file| file == stdin) {
                bail!("the list of files and a file can't both be standard input");
            }
            apart.note(Role::FileList, &list)?;
            named.extend(find::names(&list, end)?);
        } else if named.is_empty() && self.recursive {
            bail!("-r: expected the folders to read, got none");
        } else if named.is_empty() {
            named.push(PathBuf::from("-"));
        }
        if self.recursive {
            (self.files, self.unlisted) = find::files(named, apart);
        } else {
            self.files = named;
        }
        self.is_found = true;
        self.files
            .iter()
            .try_for_each(|file| apart.check_input(file))
    }

    /// The files, standard input if none is named.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self.files.is_empty() && !self.is_found {
            true => vec![PathBuf::from("-")],
            false => self.files.clone(),
        }
    }

    pub(crate) const fn packing(&self) -> Packing {
        match self.raw {
            true => Packing::Ignored,
            false => Packing::Recognised,
        }
    }

    /// The same reading of other files.
    pub(crate) fn with_files(&self, files: Vec<PathBuf>) -> Self {
        Self {
            files,
            unlisted: Vec::new(),
            ..self.clone()
        }
    }

    /// Reads the files, one after the other.
    pub(crate) fn reader(
        &self,
        rule: &RecordRule,
        chunk: usize,
        progress: &Arc<Progress>,
    ) -> Reader {
        let unlisted = self.unlisted.clone().into_iter().map(|(folder, why)| {
            Err(InputError {
                name: folder.display().to_string(),
                cause: std::io::Error::other(why),
            })
        });
        let (packing, progress) = (self.packing(), Arc::clone(progress));
        let files = self.paths().into_iter();
        let inputs = unlisted.chain(files.map(move |path| Input::open(&path, packing, &progress)));
        let oddities = match self.strict {
            true => Oddities::Refused,
            false => Oddities::Warned(warn_of),
        };
        Reader::new(Box::new(inputs), rule, chunk).oddities(oddities, !self.raw)
    }

    /// The same, a little at a time and by one thread: a step's records are
    /// printed before the next step's are decided.
    pub(crate) fn in_small_steps(&self) -> Self {
        Self {
            small_steps: true,
            threads: Some(1),
            ..self.clone()
        }
    }

    /// The same, without a progress bar if so asked.
    pub(crate) fn hiding_bar_if(&self, so: bool) -> Self {
        Self {
            hides_bar: so,
            ..self.clone()
        }
    }

    pub(crate) fn threads(&self) -> usize {
        threads(self.threads)
    }
}

/// Reports an input that is read, but most likely not as it was meant.
fn warn_of(input: &str, oddity: &Oddity) {
    let (done, hint) = match oddity {
        Oddity::NoLines(kind) => {
            let advice = match kind.class {
                FileClass::Filter => "`tamis merge` combines filters, `tamis info` describes one",
                FileClass::Index => "`tamis which` and `tamis grep` ask an index",
                FileClass::Parquet => {
                    "`tamis index --key parquet:COLUMN` reads its columns, and DuckDB writes them as CSV"
                }
                FileClass::Utf16 => "convert it: iconv -f UTF-16 -t UTF-8",
                FileClass::Utf32 => "convert it: iconv -f UTF-32 -t UTF-8",
                _ => "unpack or convert it first",
            };
            let hint = format!("{advice}; --raw reads bytes as they are, without a warning");
            ("its bytes are read as lines", hint)
        }
        _ => (
            "each line from there on is taken for a record",
            "close the quote; --strict makes this an error".to_owned(),
        ),
    };
    output::warn(format_args!("{input}: {oddity}, and {done}\nhint: {hint}"));
}

/// As many threads as asked for, or as there are cores.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, |n| n.get());
    asked.unwrap_or_else(all).clamp(1, 256)
}

/// How a run over the records went.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) records: u64,
    /// Records for which the answer was yes.
    pub(crate) chosen: u64,
    pub(crate) bytes: u64,
    pub(crate) without_key: u64,
    pub(crate) not_urls: u64,
    pub(crate) elapsed: Duration,
    /// The signal that ended the run early.
    pub(crate) signal: Option<i32>,
    /// Whether the output got all it should. If not, and its reader is still
    /// there, that is the error.
    pub(crate) output: std::io::Result<()>,
    input_errors: usize,
}

impl Report {
    /// Whether what was decided has been printed, so that it may be remembered.
    pub(crate) fn is_printed(&self) -> bool {
        self.output.is_ok()
    }

    /// Whether there is something to sum up: an input that could not be opened is told of already.
    pub(crate) const fn read_something(&self) -> bool {
        self.records > 0 || self.input_errors == 0
    }

    /// Whether all input was read and decided, and printed.
    pub(crate) fn went_well(&self) -> bool {
        self.signal.is_none() && self.input_errors == 0 && self.is_printed()
    }

    /// The command's end, once it has saved what it wanted to.
    pub(crate) fn finish(self) -> Result<Exit> {
        if self.without_key > 0 {
            output::warn(format_args!(
                "{} without such a key: there the whole record was the key",
                human::counted(self.without_key, "record")
            ));
        }
        if self.not_urls > 0 {
            output::warn(format_args!(
                "compared as they are, since they are not URLs: {}",
                human::counted(self.not_urls, "key")
            ));
        }
        self.output.context("writing the output")?;
        Ok(match (self.signal, self.input_errors, self.chosen) {
            (Some(signal), ..) => Exit::Interrupted(signal),
            (None, 1.., _) => Exit::InputFailed,
            (None, 0, 0) => Exit::NoneFound,
            (None, 0, _) => Exit::Done,
        })
    }
}

/// What a filter makes of a key before it is asked.
pub(crate) trait Keyed: Sync {
    type Token: Token;

    /// How keys are made.
    fn rule(&self) -> &tamis::KeyRule;

    fn token(&self, key: &[u8]) -> Self::Token;
}

impl Keyed for Hasher {
    type Token = Hash;

    fn rule(&self) -> &tamis::KeyRule {
        Self::rule(self)
    }

    #[inline]
    fn token(&self, key: &[u8]) -> Hash {
        self.hash_exact(key)
    }
}

/// Two hashes of each key, made by one rule.
impl Keyed for (Hasher, Hasher) {
    type Token = (Hash, Hash);

    fn rule(&self) -> &tamis::KeyRule {
        self.0.rule()
    }

    #[inline]
    fn token(&self, key: &[u8]) -> (Hash, Hash) {
        (self.0.hash_exact(key), self.1.hash_exact(key))
    }
}

/// One pass over the records, deciding each by `decide`.
pub(crate) struct Pass<'a, S, H = Hasher> {
    pub(crate) input: &'a InputArgs,
    pub(crate) hasher: &'a H,
    /// The shard that decides a key is chosen by its hash.
    pub(crate) shards: &'a mut [S],
    pub(crate) print: Print,
    pub(crate) output: &'a mut (dyn Write + Send),
    pub(crate) checkpoint: Option<Checkpoint<'a, S>>,
}

impl<S: Send, H: Keyed> Pass<'_, S, H> {
    /// `decide` answers for the keys of one shard, in the order of the input.
    /// Fails as it does; what its answers chose before is then printed.
    pub(crate) fn run(
        self,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        self.carry(None, decide)
    }

    /// The same with answers from every thread at once, by `ask`, which `decide` is given in the order of the input.
    pub(crate) fn run_asking(
        self,
        ask: impl Fn(&[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        self.carry(Some(&ask), decide)
    }

    fn carry(
        self,
        ask: Option<&pipeline::Ask<H::Token, anyhow::Error>>,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        let rule = self.input.rule_for(self.hasher.rule())?;
        let paths = self.input.paths();
        if paths.iter().any(|path| path == Path::new("-")) && std::io::stdin().is_terminal() {
            say!("reading standard input; Ctrl-D ends it, Ctrl-C stops");
        }
        let progress = Arc::new(Progress::default());
        let signal = stop_on_signals(&progress.stop)?;
        let bar = (!self.input.hides_bar).then(|| Bar::of_input(&paths, &progress));
        let start = Instant::now();
        let chunk = match self.input.small_steps {
            true => SMALL_CHUNK,
            false => CHUNK,
        };
        // Where a record comes from is only told in these cases.
        let tells_names = matches!(self.print, Print::Located(_)) || rule.hex;
        let joins_files = !tells_names && !paths.iter().any(|path| is_stream(path));
        let reader = self.input.reader(&rule, chunk, &progress);
        let outcome = pipeline::run(Job {
            reader: reader.joining_files(joins_files),
            rule: &rule,
            hash: |key: &[u8]| self.hasher.token(key),
            shards: self.shards,
            ask,
            decide,
            print: self.print,
            output: self.output,
            threads: self.input.threads(),
            progress: &progress,
            checkpoint: self.checkpoint,
        });
        drop(bar);
        for error in &outcome.input_errors {
            complain(error);
        }
        outcome.decided?;
        Ok(Report {
            records: progress.records.load(Relaxed),
            chosen: progress.chosen.load(Relaxed),
            bytes: progress.bytes.load(Relaxed),
            without_key: progress.without_key.load(Relaxed),
            not_urls: progress.not_urls.load(Relaxed),
            elapsed: start.elapsed(),
            signal: match signal.load(Relaxed) {
                0 => None,
                signal => Some(signal as i32),
            },
            output: outcome.output,
            input_errors: outcome.input_errors.len(),
        })
    }
}

/// Reports an input that failed.
pub(crate) fn complain(error: &InputError) {
    let hint = if error.is_folder() {
        "\nhint: -r reads the files in it"
    } else {
        ""
    };
    output::complain(&format_args!("{error}{hint}"));
}

/// Whether opening or reading it may have to wait for somebody.
fn is_stream(path: &Path) -> bool {
    let is_other = |metadata: Metadata| !metadata.is_file() && !metadata.is_dir();
    path == Path::new("-") || fs::metadata(path).is_ok_and(is_other)
}

/// The first SIGINT, SIGTERM or SIGHUP asks the run to end with what was read;
/// a second one ends it at once. Gives where the signal's number will stand.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<Arc<AtomicUsize>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    #[cfg(unix)]
    if !hangup_is_ignored() {
        signals.push(signal_hook::consts::SIGHUP);
    }
    use signal_hook::flag;
    let got = Arc::new(AtomicUsize::new(0));
    for signal in signals {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&got), signal as usize))
            .context("watching for signals")?;
    }
    Ok(got)
}

/// Whether we run under `nohup`.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    // SAFETY: all-zero is a valid action, and asking for the present one changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
