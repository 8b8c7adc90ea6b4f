mod choice;
mod rg;

use crate::index::ask::KeyArgs;
use crate::index::hunt::{Hunt, Order, Tally, TextIndex};
use crate::index::stretches::Times;
use crate::index::watch::Watcher;
use crate::index::{Index, is_index, records};
use crate::{Exit, human, output, stream};
use anyhow::{Result, anyhow, bail};
use choice::{ChoiceArgs, FileChoice};
use clap::ValueEnum;
use rg::RgOptions;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::Moment;
use tamis_records::grep::{Matcher, Options, Print, write_summary};
use tamis_records::line_time::{self, TimeFormat};
use tamis_records::patterns::{Patterns, Syntax};
use tamis_records::progress::Progress;

/// Print the lines that match, reading only what may have them
///
/// Asks indexes made by `tamis index`, opens the files that may have a match,
/// reads in them only the segments that may, and prints the lines as ripgrep
/// does. Text that is newer than the index is searched as it is.
///
/// A KEY is text that stands in a line with no word cut at either end, as for
/// `rg -wF`. -F finds text anywhere, as `rg -F`; -E finds regular expressions,
/// as `rg`. What can't be narrowed is searched completely; --stats says how
/// much that was.
///
/// Indexes of other keys are asked for records: `line` finds lines equal to
/// KEY, a column finds rows with that value. Choose with --key where an index
/// has several.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 something was found, 1 nothing was, 2 an error.

Examples:
  tamis grep logs.index 8f14e45fceea167a
  tamis grep logs.index 'GET /cart'            several words, as they stand
  tamis grep logs.index -i -C2 timeout         whatever the case, with two lines around
  tamis grep logs.index -E 'user=\\d+ denied'   a regular expression
  tamis grep a.index b.index -l -f ids.txt     only the file names, from two indexes
  tamis grep logs.index --since 2h error       lines of the last two hours
  tamis grep rows.index --key csv:row,qualifier r1,q1")]
pub(crate) struct Args {
    /// The indexes, then what to look for
    #[arg(value_name = "INDEX|KEY", required = true)]
    indexes_and_keys: Vec<OsString>,

    #[command(flatten)]
    keys: KeyArgs,

    /// Look for this, whatever it begins with; may be given several times. All other arguments are indexes then
    #[arg(
        short = 'e',
        long = "regexp",
        value_name = "KEY",
        allow_hyphen_values = true
    )]
    named: Vec<OsString>,

    /// Find the text anywhere, also inside words
    #[arg(short = 'F', long, conflicts_with = "extended_regexp")]
    fixed_strings: bool,

    /// Find regular expressions
    #[arg(short = 'E', long)]
    extended_regexp: bool,

    /// Ignore case
    #[arg(short, long, overrides_with_all = ["smart_case", "case_sensitive"])]
    ignore_case: bool,

    /// Ignore case unless a capital letter is asked for
    #[arg(short = 'S', long, overrides_with_all = ["ignore_case", "case_sensitive"])]
    smart_case: bool,

    /// Heed case, which is the default
    #[arg(short = 's', long, overrides_with_all = ["ignore_case", "smart_case"])]
    case_sensitive: bool,

    /// Cut no word at either end of a match
    #[arg(short, long)]
    word_regexp: bool,

    /// Match whole lines only
    #[arg(short = 'x', long)]
    line_regexp: bool,

    /// Print lines that don't match; everything is read
    #[arg(short = 'v', long)]
    invert_match: bool,

    /// Print N lines after each match
    #[arg(short = 'A', long, value_name = "N")]
    after_context: Option<usize>,

    /// Print N lines before each match
    #[arg(short = 'B', long, value_name = "N")]
    before_context: Option<usize>,

    /// Print N lines around each match
    #[arg(short = 'C', long, value_name = "N")]
    context: Option<usize>,

    /// Print the number of lines that match, for each file that has any
    #[arg(short, long, conflicts_with_all = ["files_with_matches", "files_without_match", "json"])]
    count: bool,

    /// Print the number of matches, for each file that has any
    #[arg(long, conflicts_with_all = ["count", "files_with_matches", "files_without_match", "json"])]
    count_matches: bool,

    /// Print only the names of files with a match
    #[arg(short = 'l', long, conflicts_with_all = ["files_without_match", "json"])]
    files_with_matches: bool,

    /// Print only the names of files without a match
    #[arg(short = 'L', long, conflicts_with = "json")]
    files_without_match: bool,

    /// Print only what matches, each match on a line
    #[arg(short, long)]
    only_matching: bool,

    /// Print line numbers [default: on a terminal]
    #[arg(short = 'n', long, overrides_with = "no_line_number")]
    line_number: bool,

    /// Print no line numbers
    #[arg(short = 'N', long)]
    no_line_number: bool,

    /// Print the column of the first match
    #[arg(long)]
    column: bool,

    /// Print the offset of each line, in bytes
    #[arg(short, long)]
    byte_offset: bool,

    /// Print file names, which is the default
    #[arg(short = 'H', long, overrides_with = "no_filename")]
    with_filename: bool,

    /// Print no file names
    #[arg(short = 'I', long)]
    no_filename: bool,

    /// Print the file name once, above its lines [default: on a terminal]
    #[arg(long, overrides_with = "no_heading")]
    heading: bool,

    /// Print the file name in front of every line
    #[arg(long)]
    no_heading: bool,

    /// End file names with NUL
    #[arg(short = '0', long)]
    null: bool,

    /// Print at most N matching lines of each file
    #[arg(short, long, value_name = "N")]
    max_count: Option<u64>,

    /// Leave out lines of more than N bytes, and say so
    #[arg(short = 'M', long, value_name = "N")]
    max_columns: Option<u64>,

    /// Print the beginning of lines that are too long
    #[arg(long)]
    max_columns_preview: bool,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    rg: RgOptions,

    /// Print JSON, a message for each match, as ripgrep does
    #[arg(long)]
    json: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: Color,

    /// The order of files
    #[arg(long, value_name = "ORDER", default_value = "path")]
    sort: Sort,

    /// The order of files, reversed
    #[arg(long, value_name = "ORDER", overrides_with = "sort")]
    sortr: Option<Sort>,

    /// Only lines of this time or later: a time, a date, or an age such as 2h
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only lines of this time or earlier
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// How times are written in lines, e.g. '%d.%m.%Y %H:%M:%S' [default: found]
    #[arg(long, value_name = "FORMAT")]
    time_format: Option<String>,

    /// Go on, and print what is appended
    #[arg(long, conflicts_with_all = ["count", "count_matches", "files_without_match", "quiet"])]
    watch: bool,

    /// Print nothing; the exit code tells
    #[arg(short, long)]
    quiet: bool,

    /// Say how much was searched and how much was skipped
    #[arg(long)]
    stats: bool,

    /// Exit with 2 if a file could not be read, or not as text
    #[arg(long)]
    strict: bool,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// The order of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Path,
    /// By the time of their last change.
    Modified,
    /// As with ripgrep's, any; the same as path.
    None,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    args.rg.check()?;
    let (indexes, keys) = args.indexes_and_keys()?;
    let keys = args.keys.keys(&keys)?;
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for index in indexes {
        match TextIndex::new(index, args.keys.spec.as_ref())? {
            Ok(text) => texts.push(text),
            Err(other) => others.push(other),
        }
    }
    match (texts.is_empty(), others.is_empty()) {
        (false, true) => args.search(texts, &keys),
        (true, false) => args.search_records(&others, &keys),
        _ => bail!(
            "some of the indexes have words or trigrams, others do not\n\
             hint: ask them one by one, or choose with --key"
        ),
    }
}

impl Args {
    /// Arguments that are index files come first; what follows is looked for.
    fn indexes_and_keys(&self) -> Result<(Vec<Index>, Vec<OsString>)> {
        let all = &self.indexes_and_keys;
        check_order(all)?;
        // The first is always meant to be one, so that its error is told.
        let others = all[1..].iter();
        let others = others.take_while(|arg| !self.named.is_empty() || is_index(Path::new(arg)));
        let count = 1 + others.count();
        let indexes = all[..count]
            .iter()
            .map(|path| Index::open(Path::new(path), &self.keys.moved));
        let keys = [&all[count..], &self.named].concat();
        Ok((indexes.collect::<Result<_>>()?, keys))
    }

    fn patterns(&self, keys: &[Vec<u8>]) -> Result<Patterns> {
        let text = |key: &Vec<u8>| {
            let text = String::from_utf8(key.clone());
            text.map_err(|_| anyhow!("'{}': patterns must be UTF-8", String::from_utf8_lossy(key)))
        };
        Ok(Patterns {
            texts: keys.iter().map(text).collect::<Result<_>>()?,
            syntax: match (self.fixed_strings, self.extended_regexp) {
                (true, _) => Syntax::Literal,
                (_, true) => Syntax::Regex,
                // Whole lines cut no word.
                _ if self.line_regexp => Syntax::Literal,
                _ => Syntax::Words,
            },
            ignore_case: self.ignore_case,
            smart_case: self.smart_case,
            whole_words: self.word_regexp,
            whole_lines: self.line_regexp,
        })
    }

    fn options(&self) -> Options {
        let on_terminal = std::io::stdout().is_terminal();
        let print = if self.quiet && !self.files_without_match {
            Print::Nothing
        } else if self.json {
            Print::Json
        } else if self.count && !self.only_matching {
            Print::Count
        } else if self.count || self.count_matches {
            Print::CountMatches
        } else if self.files_with_matches {
            Print::PathWithMatch
        } else if self.files_without_match {
            Print::PathWithoutMatch
        } else {
            Print::Lines
        };
        let context = self.context.unwrap_or(0);
        Options {
            print,
            before: self.before_context.unwrap_or(context),
            after: self.after_context.unwrap_or(context),
            invert: self.invert_match,
            max_count: self.max_count,
            only_matching: self.only_matching,
            line_number: self.line_number
                || self.column
                || self.json
                || on_terminal && !self.no_line_number,
            column: self.column,
            byte_offset: self.byte_offset,
            with_path: !self.no_filename,
            heading: self.heading || on_terminal && !self.no_heading,
            null: self.null,
            colour: match self.color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => on_terminal && std::env::var_os("NO_COLOR").is_none(),
            },
            max_columns: self.max_columns.filter(|most| *most > 0),
            max_columns_preview: self.max_columns_preview,
            include_zero: false,
            count_matches: self.stats || self.json,
        }
    }

    fn order(&self) -> Order {
        Order {
            by_time: self.sortr.unwrap_or(self.sort) == Sort::Modified,
            reversed: self.sortr.is_some_and(|sort| sort != Sort::None),
        }
    }

    fn times(&self) -> Result<(Times, Option<TimeFormat>)> {
        let now = Moment::now();
        let parse = |text: &Option<String>, option| match text {
            None => Ok(None),
            Some(text) => line_time::parse(text, now)
                .map(Some)
                .map_err(|why| anyhow!("{option} {why}")),
        };
        let format = self.time_format.as_deref().map(str::parse).transpose();
        let format = format.map_err(|why: String| anyhow!("--time-format {why}"))?;
        let times = Times {
            since: parse(&self.since, "--since")?,
            until: parse(&self.until, "--until")?,
        };
        Ok((times, format))
    }

    fn search(&self, indexes: Vec<TextIndex>, keys: &[Vec<u8>]) -> Result<Exit> {
        let started = std::time::Instant::now();
        let patterns = self.patterns(keys)?;
        let matcher = Matcher::new(&patterns).map_err(|error| anyhow!("{error}"))?;
        let options = self.options();
        let (times, time_format) = self.times()?;
        let progress = Arc::<Progress>::default();
        let signal = stream::stop_on_signals(&progress.stop)?;
        let choice = FileChoice::new(&self.choice)?;
        let mut out: Box<dyn Write + Send> = if self.quiet {
            Box::new(std::io::sink())
        } else {
            Box::new(output::stdout()?)
        };
        let mut hunt = Hunt {
            indexes: &indexes,
            patterns: &patterns,
            matcher: &matcher,
            options: &options,
            times,
            time_format: time_format.as_ref(),
            threads: stream::threads(self.threads),
            is_wanted: &|path| choice.is_wanted(path),
            order: self.order(),
            is_strict: self.strict,
            ends: None,
            progress: &progress,
        };
        let mut tally = Tally::default();
        if self.watch {
            Watcher::new(&[])?;
            let ends = hunt.positions()?;
            hunt.ends = Some(&ends);
            hunt.run(&mut tally, &mut out)?;
            hunt.follow(ends.clone(), &mut tally, &mut out)?;
        } else {
            hunt.run(&mut tally, &mut out)?;
        }
        if self.json && !self.quiet {
            write_summary(&mut out, &tally.found, started.elapsed())?;
        }
        out.flush()?;
        if self.stats {
            tell(&tally);
        }
        let found = match options.print {
            Print::PathWithoutMatch => tally.found.files > tally.found.files_with_match,
            _ => tally.found.files_with_match > 0,
        };
        let signal = signal.load(Relaxed);
        let is_incomplete =
            tally.statistics.unlisted > 0 || self.strict && tally.statistics.failed > 0;
        Ok(if signal != 0 {
            Exit::Interrupted(signal as i32)
        } else if is_incomplete {
            Exit::InputFailed
        } else if found {
            Exit::Done
        } else {
            Exit::NoneFound
        })
    }

    fn search_records(&self, indexes: &[Index], keys: &[Vec<u8>]) -> Result<Exit> {
        let text_only = [
            (self.fixed_strings, "-F"),
            (self.extended_regexp, "-E"),
            (self.ignore_case || self.smart_case, "-i"),
            (self.invert_match, "-v"),
            (self.only_matching, "-o"),
            (
                self.after_context
                    .or(self.before_context)
                    .or(self.context)
                    .is_some(),
                "-A, -B and -C",
            ),
            (
                self.since.is_some() || self.until.is_some(),
                "--since and --until",
            ),
            (self.watch, "--watch"),
            (self.files_without_match, "-L"),
            (self.count_matches, "--count-matches"),
        ];
        if let Some((_, option)) = text_only.iter().find(|(given, _)| *given) {
            bail!("{option}: only for indexes of words or trigrams");
        }
        let choice = FileChoice::new(&self.choice)?;
        records::search(
            indexes,
            self.keys.spec.as_ref(),
            keys,
            &records::Form {
                no_filename: self.no_filename,
                line_number: self.line_number
                    || std::io::stdout().is_terminal() && !self.no_line_number,
                files_with_matches: self.files_with_matches || self.quiet,
                count: self.count,
                quiet: self.quiet,
                json: self.json,
                strict: self.strict,
                threads: stream::threads(self.threads),
            },
            &|path| choice.is_wanted(path),
        )
    }
}

/// An error if the arguments are those of rg: a pattern, and what to search.
fn check_order(args: &[OsString]) -> Result<()> {
    let first = Path::new(&args[0]);
    let is_other = |arg: &&OsString| Path::new(arg).exists() && !is_index(Path::new(arg));
    let (what, searched) = if first.is_dir() {
        ("a folder, not an index", first)
    } else if let (false, Some(searched)) = (first.exists(), args[1..].iter().find(is_other)) {
        ("no such index", Path::new(searched))
    } else {
        return Ok(());
    };
    let name = searched.file_name().unwrap_or("files".as_ref()).display();
    bail!(
        "{}: {what}\nhint: `tamis index -o {name}.index {}` makes one, and `tamis grep {name}.index PATTERN` asks it",
        first.display(),
        searched.display()
    )
}

fn tell(tally: &Tally) {
    let Tally {
        found, statistics, ..
    } = tally;
    let count = |number: usize| human::count(number as u64);
    say!(
        "{} of {} files searched ({} of them newer than the index), {} of {} segments; {} of text",
        count(statistics.files_searched),
        count(statistics.files),
        count(statistics.not_indexed),
        count(statistics.segments_searched),
        count(statistics.segments),
        human::size(found.bytes_searched),
    );
    say!(
        "{} matched in {}, {}",
        human::counted(found.matched_lines, "line"),
        human::counted(found.files_with_match, "file"),
        human::counted(found.matches, "match"),
    );
}
