mod candidates;
mod choice;
mod rg;

use crate::index::ask::KeyArgs;
use crate::index::hunt::{Hunt, Order, Tally, TextIndex};
use crate::index::stretches::Times;
use crate::index::watch::Watcher;
use crate::index::{Index, is_index, records};
use crate::{Exit, human, output, stream};
use anyhow::{Result, anyhow, bail};
use candidates::Candidates;
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
/// A PATTERN is text that stands in a line with no word cut at either end, as for
/// `rg -wF`. -F finds text anywhere, as `rg -F`; -E finds regular expressions,
/// as `rg`. What can't be narrowed is searched completely; --stats says how
/// much that was.
///
/// Indexes of other keys are asked for records: `line` finds lines equal to
/// PATTERN, a column finds rows with that value. Choose with -k where an index
/// has several.
///
/// With --candidates, no file is opened: it lists those that may have a match. A
/// file that is not listed certainly has none. Of the files without one, one in a
/// hundred (or the rate of the index) is listed anyway; one that is new, has
/// changed since it was indexed or could not be read is always listed. With several
/// patterns, each line is the pattern, a tab and the file; with -l, the file alone.
/// With -k parquet:COLUMN, INDEX may also be a Parquet file or a folder of them, whose
/// own filters are asked; `tamis parquet` adds such filters.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 something was found, 1 nothing was, 2 an error.

Examples:
  tamis grep 8f14e45fceea167a logs.index
  tamis grep 'GET /cart' logs.index            several words, as they stand
  tamis grep -i -C2 timeout logs.index         whatever the case, with two lines around
  tamis grep -E 'user=\\d+ denied' logs.index   a regular expression
  tamis grep -l -f ids.txt a.index b.index     only the file names, from two indexes
  tamis grep --since 2h error logs.index       lines of the last two hours
  tamis grep -k csv:row,qualifier r1,q1 rows.index
  tamis grep --candidates 8f14e45fceea167a logs.index    the files that may have it
  tamis grep --candidates -k parquet:id 4711 table/      by the filters in Parquet files")]
pub(crate) struct Args {
    /// What to look for, unless -e or -f says it, then the indexes
    #[arg(value_name = "PATTERN|INDEX", required = true)]
    pattern_and_indexes: Vec<OsString>,

    #[command(flatten)]
    keys: KeyArgs,

    /// Look for this, whatever it begins with; may be given several times. All arguments are indexes then
    #[arg(
        short = 'e',
        long = "regexp",
        value_name = "PATTERN",
        allow_hyphen_values = true
    )]
    named: Vec<OsString>,

    /// List the files that may have a match, and open none
    #[arg(long, conflicts_with_all = [
        "extended_regexp", "fixed_strings", "ignore_case", "smart_case", "invert_match", "count", "count_matches",
        "only_matching", "files_without_match", "watch", "quiet", "since", "until", "stats",
    ])]
    candidates: bool,

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
    if args.candidates {
        return args.list_candidates(indexes, &keys);
    }
    let indexes = indexes.iter();
    let indexes = indexes.map(|path| Index::open(Path::new(path), &args.keys.moved));
    let indexes = indexes.collect::<Result<Vec<_>>>()?;
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
             hint: ask them one by one, or choose with -k"
        ),
    }
}

impl Args {
    /// The indexes to query and the keys; the first argument is the key, unless an option gives it.
    fn indexes_and_keys(&self) -> Result<(&[OsString], Vec<OsString>)> {
        let all = &self.pattern_and_indexes[..];
        let is_said = !self.named.is_empty() || self.keys.is_from_file();
        self.check_order(is_said)?;
        match all.split_first() {
            Some((pattern, indexes)) if !is_said => Ok((indexes, vec![pattern.clone()])),
            _ => Ok((all, self.named.clone())),
        }
    }

    fn list_candidates(&self, places: &[OsString], named: &[OsString]) -> Result<Exit> {
        let [place] = places else {
            bail!("--candidates asks one index, got {}", places.len());
        };
        candidates::list(&Candidates {
            place: Path::new(place),
            named,
            keys: &self.keys,
            null: self.null,
            files: self.files_with_matches,
            json: self.json,
        })
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
                // Whole lines never cut a word.
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

impl Args {
    /// An error if no index is given, with a guess at what the arguments were meant to be.
    fn check_order(&self, is_said: bool) -> Result<()> {
        let args = &self.pattern_and_indexes;
        let indexes = if is_said { args } else { &args[1..] };
        if indexes.is_empty() {
            let first = Path::new(&args[0]);
            if is_index(first) {
                bail!(
                    "{}: nothing to look for\nhint: the pattern comes first: tamis grep PATTERN {0}",
                    first.display()
                );
            }
            bail!(
                "no index to search in\nhint: `tamis index X.index FILES` makes one, and `tamis grep PATTERN X.index` asks it"
            );
        }
        let (first, last) = (Path::new(&args[0]), Path::new(&args[args.len() - 1]));
        if !is_said && is_index(first) && !last.exists() {
            bail!(
                "{}: no such index\nhint: the pattern comes first: tamis grep {0} {}; several stand behind -e",
                last.display(),
                first.display()
            );
        }
        let is_other = |arg: &&OsString| Path::new(arg).exists() && !is_index(Path::new(arg));
        if let Some(other) = indexes.iter().find(is_other)
            && !self.candidates
        {
            let other = Path::new(other);
            let is = if other.is_dir() {
                "a folder, not an index"
            } else {
                "not an index"
            };
            let name = other.file_name().unwrap_or("files".as_ref()).display();
            bail!(
                "{}: {is}\nhint: `tamis index {name}.index {0}` makes one, and `tamis grep PATTERN {name}.index` asks it",
                other.display()
            );
        }
        Ok(())
    }
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
