//! The arguments of commands that read keys, and how they are applied.

use crate::apart::{Apart, Role};
use crate::{find, output};
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis::{AnyFilter, Hasher};
use tamis_records::formats::FileClass;
use tamis_records::input::{Input, InputError, Packing};
use tamis_records::key::{Asked, Part, RecordRule};
use tamis_records::progress::Progress;
use tamis_records::reader::{Oddities, Oddity, Reader};
use tamis_records::records::Framing;

/// Where keys come from and what of a record is its key.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// Files to read, and folders of them; none or `-` is standard input
    ///
    /// gzip, zstd, bzip2 and xz are recognised and unpacked. Of a folder, all files
    /// are read, also in folders inside it and hidden ones, sorted by name. Links to
    /// files are followed, links to folders are not. Files that the command itself
    /// uses are left out.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What of a record is its key: line, csv:COL,... tsv: jsonl: field: ... [default: line]
    ///
    ///   line             the whole line; line(;) for records that end with ; (see -z)
    ///   csv:COL,...      columns of CSV, by name or number from 1; csv(;):COL,... with ; between them
    ///   tsv:COL,...      columns of tab-separated values
    ///   field:N,...      fields between blanks, by number from 1, as awk has them
    ///   jsonl:/PTR,...   what these JSON pointers find in each line
    ///
    /// A column's name with a comma in it is in quotes: -k 'csv:"last, first",id'.
    /// `tamis help keys` says more.
    #[arg(short = 'k', long = "key", value_name = "KEY", verbatim_doc_comment)]
    key: Option<String>,

    /// Records end with NUL instead of a line feed
    #[arg(short = 'z', long, conflicts_with = "key")]
    null_data: bool,

    /// CSV or TSV files have no header row; name columns by number
    #[arg(long)]
    no_header: bool,

    /// Keys are in hexadecimal, two digits per byte; anything else is an error
    #[arg(long)]
    hex: bool,

    #[command(flatten)]
    rule: RuleArgs,

    /// Also read the files named in LIST, one per line or with a NUL behind each; `-` is standard input
    #[arg(long, value_name = "LIST")]
    files_from: Option<PathBuf>,

    /// Read bytes as they are: unpack nothing, and don't warn of what is not text
    #[arg(long)]
    raw: bool,

    /// Fail, instead of warn, about a CSV quote that is never closed, input that is not text, or
    /// (dedup) a filter over its rate
    #[arg(long)]
    strict: bool,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
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
    /// The rule for keys made of this many values.
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

impl InputArgs {
    fn rule(&self) -> Result<RecordRule> {
        let key = self.key.as_deref().unwrap_or("line");
        let part = if self.null_data {
            Ok(Part::Whole(Framing::Delimited(0)))
        } else {
            Part::parse(key, !self.no_header)
        };
        let part = part.map_err(|why| anyhow!("-k {why}"))?;
        let made = self.rule.of_values(part.values())?;
        Ok(RecordRule::of(part, self.hex, made))
    }

    /// Parses the rule and settles which files to read, including those in lists and folders. None may be in `apart`.
    pub(crate) fn find(&self, apart: &mut Apart) -> Result<Run> {
        let rule = self.rule()?;
        let mut files = self.files.clone();
        if let Some(list) = &self.files_from {
            let stdin = Path::new("-");
            if *list == stdin && files.iter().any(|file| file == stdin) {
                bail!("the list of files and a file can't both be standard input");
            }
            apart.note(Role::FileList, list)?;
            files.extend(find::names(list)?);
        } else if files.is_empty() {
            files.push(PathBuf::from("-"));
        }
        let (files, unlisted) = find::files(files, apart);
        files.iter().try_for_each(|file| apart.check_input(file))?;
        Ok(Run {
            files,
            unlisted,
            rule,
            is_raw: self.raw,
            strict: self.strict,
            threads: threads(self.threads),
            hides_bar: false,
        })
    }

    /// Puts a file before the others.
    pub(crate) fn begin_with(&mut self, file: Option<PathBuf>) {
        self.files.splice(0..0, file);
    }
}

/// The parsed arguments: what a command reads, and how.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) files: Vec<PathBuf>,
    /// Folders that could not be read, with the reason.
    unlisted: Vec<(PathBuf, String)>,
    pub(crate) rule: RecordRule,
    is_raw: bool,
    pub(crate) strict: bool,
    pub(crate) threads: usize,
    pub(crate) hides_bar: bool,
}

impl Run {
    /// The rule for a filter whose keys are made by the rule `filters`.
    pub(crate) fn rule_for(&self, filters: &tamis::KeyRule) -> Result<RecordRule> {
        if filters.text().is_some() {
            bail!(
                "the filter holds units of text ({filters}), which only `tamis clean` makes\n\
                 hint: `tamis clean --filter` or `--against` asks it"
            );
        }
        self.rule.clone().for_filter(filters).map_err(|other| {
            let option = match other.asked {
                Asked::IgnoreCase => "--ignore-case",
                Asked::Urls => "--url",
                Asked::Values(_) => {
                    return anyhow!(
                        "{other}\n\
                         hint: name as many values with -k as the filter was created with"
                    );
                }
            };
            anyhow!(
                "you asked for {option}, but the filter's keys are made differently ({filters})\n\
                 hint: omit it, or create a filter with {option}"
            )
        })
    }

    /// The hash of a new filter whose keys are made by the rule.
    pub(crate) fn hasher(&self, hasher: Hasher) -> Hasher {
        hasher.with_rule(self.rule.made)
    }

    /// An empty filter takes the rule of its first keys, unless one was given.
    pub(crate) fn settle_rule(&self, filter: &mut AnyFilter) -> Result<(), tamis::Error> {
        if filter.counted() == Some(0) && *filter.hasher().rule() == tamis::KeyRule::EXACT {
            filter.set_rule(self.rule.made)?;
        }
        Ok(())
    }

    pub(crate) fn packing(&self) -> Packing {
        if self.is_raw {
            Packing::Ignored
        } else {
            Packing::Recognised
        }
    }

    /// The same settings for other files.
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
        let files = self.files.clone().into_iter();
        let inputs = unlisted.chain(files.map(move |path| Input::open(&path, packing, &progress)));
        let oddities = if self.strict {
            Oddities::Refused
        } else {
            Oddities::Warned(warn_of)
        };
        Reader::new(Box::new(inputs), rule, chunk).oddities(oddities, !self.is_raw)
    }
}

/// Warns about an input that was probably not read as intended.
fn warn_of(input: &str, oddity: &Oddity) {
    let (done, hint) = match oddity {
        Oddity::NoLines(kind) => {
            let advice = match kind.class {
                FileClass::Filter => "`tamis merge` combines filters, `tamis info` describes one",
                FileClass::Index => "`tamis grep --candidates` and `tamis grep` ask an index",
                FileClass::Parquet => {
                    "`tamis index -k parquet:COLUMN` reads its columns, and DuckDB writes them as CSV"
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

/// The number of threads asked for, or of cores.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, |n| n.get());
    asked.unwrap_or_else(all).clamp(1, 256)
}
