//! The command line of `tamis clean`.

use crate::human;
use std::path::PathBuf;
use std::str::FromStr;
use tamis_corpus::fold::Fold;
use tamis_corpus::rule::TextUnit;

/// Drop repeated text from a corpus
///
/// Reads records of JSON, one a line, and plain text; cuts out of them what an
/// earlier record had already, and writes them to a folder, in their order.
/// What repeats is a document, paragraph, sentence or line (--by), a share of
/// n-grams (--by ngram:13), or a document that is nearly alike (--near).
///
/// The filter sizes itself and keeps its rate (-p). A run into a folder that was
/// killed goes on behind its finished outputs when it is started again with the
/// same options.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 all is well, 2 an error or an input that could not be read.

Examples:
  tamis clean corpus/ -o cleaned/                         each document once
  tamis clean corpus/ -o cleaned/ --by paragraph --drop-empty --fold case,space
  tamis clean new/ -o cleaned/ --by line --filter seen.tamis    also against earlier runs
  tamis clean corpus/ -o cleaned/ --by ngram:13 --threshold 0.8 --of paragraph
  tamis clean corpus/ -o cleaned/ --near 0.8
  tamis clean --learn eval.tamis --by ngram:13 tests.jsonl
  tamis clean --against eval.tamis --threshold 0.5 corpus/ -o clean/
  tamis clean --dry-run --by paragraph corpus/            only what there is to find")]
pub(crate) struct Args {
    /// Files, and folders of them; none or `-` is standard input
    ///
    /// gzip, zstd, bzip2 and xz are recognised and unpacked. Names that end with
    /// .txt, .text or .md (and .gz and the like) are plain text, others JSON.
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Write a file for each input into this folder, packed as its name says
    ///
    /// Without it, all records go to standard output.
    #[arg(short, long, value_name = "FOLDER")]
    pub(super) output: Option<PathBuf>,

    /// What is compared: document, paragraph, sentence, line, ngram:N or ngram:N:STRIDE
    /// [default: document, or what the filter holds]
    #[arg(long, value_name = "UNIT", conflicts_with = "near")]
    pub(super) by: Option<By>,

    /// Drop documents that share about this much with an earlier one, e.g. 0.8
    #[arg(long, value_name = "LIKENESS", value_parser = parse_likeness)]
    pub(super) near: Option<u8>,

    /// With n-grams: what a repetition is, document or paragraph [default: document]
    #[arg(long, value_name = "UNIT")]
    pub(super) of: Option<Of>,

    /// With n-grams: the share that was seen before which makes a repetition [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(super) threshold: Option<f64>,

    /// Differences that don't count: case, space, punctuation, nfkc. A filter remembers them
    #[arg(long, value_name = "LIST")]
    pub(super) fold: Option<Fold>,

    /// Keep units with fewer words, however often they occur
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) min_words: usize,

    /// Keep units with fewer bytes, however often they occur
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) min_bytes: usize,

    /// Drop records of whose text nothing is left
    #[arg(long)]
    pub(super) drop_empty: bool,

    /// Where the text is in a record, as a JSON pointer
    #[arg(long, value_name = "POINTER", default_value = "/text")]
    pub(super) text: String,

    /// Where a record's name is, for --attributes
    #[arg(long, value_name = "POINTER", default_value = "/id")]
    pub(super) id: String,

    /// What inputs are, whatever their names: json or text
    #[arg(long = "as", value_name = "KIND")]
    pub(super) kind: Option<Kind>,

    /// Remember units in this filter, and what earlier runs have seen; it is made if there is none
    #[arg(long, value_name = "FILTER")]
    pub(super) filter: Option<PathBuf>,

    /// Only add the units of the inputs to this filter; it is made if there is none
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["filter", "output", "near", "annotate", "attributes"])]
    pub(super) learn: Option<PathBuf>,

    /// Drop what this filter holds, such as the texts of a test set; nothing is added
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["filter", "learn", "near"])]
    pub(super) against: Option<PathBuf>,

    /// Change no text: add a field `tamis_repeats` to each record, with [start, end, share] in characters
    ///
    /// One that is there is replaced. Records that are lists stay as they are.
    #[arg(long)]
    pub(super) annotate: bool,

    /// Write no records, but for each one a line with its name and `tamis_repeats` into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["output", "annotate"])]
    pub(super) attributes: Option<PathBuf>,

    /// Write nothing but the report, and print what would be dropped
    #[arg(long, conflicts_with_all = ["output", "annotate", "attributes", "learn"])]
    pub(super) dry_run: bool,

    /// Write the report as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// The rate of units wrongly taken for seen [default: 1e-6, with n-grams 1e-3]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = human::parse_rate)]
    pub(super) rate: Option<f64>,

    /// Replace outputs that exist, and begin anew where an unfinished run was another one
    #[arg(long)]
    pub(super) force: bool,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    pub(super) threads: Option<usize>,

    /// No summary and no progress bar
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// A unit, and the distance between the starts of n-grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct By {
    pub(super) unit: TextUnit,
    pub(super) stride: usize,
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = match text {
            "document" => TextUnit::Document,
            "paragraph" => TextUnit::Paragraph,
            "sentence" => TextUnit::Sentence,
            "line" => TextUnit::Line,
            _ => return Self::ngram(text),
        };
        Ok(Self { unit, stride: 1 })
    }
}

impl By {
    fn ngram(text: &str) -> Result<Self, String> {
        let expected = "expected document, paragraph, sentence, line, ngram:N or ngram:N:STRIDE";
        let numbers = text.strip_prefix("ngram:").ok_or(expected)?;
        let (words, stride) = numbers.split_once(':').unwrap_or((numbers, "1"));
        let words: u8 = words
            .parse()
            .ok()
            .filter(|words| *words > 0)
            .ok_or_else(|| format!("an n-gram has 1 to 255 words, got '{words}'"))?;
        let stride = stride
            .parse()
            .ok()
            .filter(|stride| *stride > 0)
            .ok_or_else(|| format!("a stride is 1 or more words, got '{stride}'"))?;
        Ok(Self {
            unit: TextUnit::Words(words),
            stride,
        })
    }
}

/// What is judged by its n-grams.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Document,
    Paragraph,
}

/// What an input holds.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Text,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
    share.ok_or_else(|| "expected a share above 0 and up to 1, such as 0.8".to_owned())
}

fn parse_likeness(text: &str) -> Result<u8, String> {
    let percent = text.parse::<f64>().ok().map(|likeness| likeness * 100.0);
    // The file stores whole percentages, so any other would be rounded silently.
    let percent = percent.filter(|percent| {
        let is_whole = (percent - percent.round()).abs() < 1e-9;
        is_whole && (1.0..100.0).contains(&percent.round())
    });
    percent.map(|percent| percent.round() as u8).ok_or_else(|| {
        "expected a likeness between 0.01 and 0.99 with two digits at most, such as 0.8".to_owned()
    })
}
