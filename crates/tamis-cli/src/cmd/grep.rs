use crate::index::ask::{self, QueryArgs};
use crate::index::{Freshness, path_bytes};
use crate::{Exit, output, stream};
use anyhow::Result;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis_records::key::Query;
use tamis_records::ordered::for_each_in_order;
use tamis_records::progress::Progress;
use tamis_records::search::{Match, search};

/// Print the records that contain a key, opening only files that may have it
///
/// Asks an index made by `tamis index`, opens the files that may contain the
/// key and prints the records that do: file, line number, line. Files that are
/// new, or have changed since they were indexed, are searched as they are now.
///
/// The index decides what a key is: `word` finds lines that contain it as whole
/// words, as `grep -wF` does; `line` finds lines equal to it; a column finds
/// rows with that value. For Parquet files, the row number and the key are
/// printed.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 something was found, 1 nothing was, 2 an error.

Examples:
  tamis grep logs.index 8f14e45fceea167a
  tamis grep logs.index 'GET /cart'            several words, as they stand
  tamis grep -l logs.index -f ids.txt          only the file names
  tamis grep rows.index --key csv:row,qualifier r1,q1")]
pub(crate) struct Args {
    #[command(flatten)]
    query: QueryArgs,

    /// Don't print file names
    #[arg(short = 'I', long)]
    no_filename: bool,

    /// Print only the file names
    #[arg(short = 'l', long, conflicts_with_all = ["count", "json"])]
    files_with_matches: bool,

    /// Print only the number of records found in each file
    #[arg(short, long, conflicts_with = "json")]
    count: bool,

    /// Print a line of JSON for each record found
    #[arg(long)]
    json: bool,

    /// Threads [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let question = args.query.open()?;
    let queries = question.queries()?;
    let survey = question.index.survey(Some(question.spec));
    let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, query) in queries.iter().enumerate() {
        for file in question.index.candidates(question.spec, &survey, query) {
            wanted.entry(file).or_default().push(number);
        }
    }
    let candidates = || wanted.keys().map(|file| &survey.files[*file]);
    // The others are searched as they are, so nothing need be said.
    ask::remark(
        &question,
        &survey,
        candidates().filter(|file| file.state == Freshness::Gone),
    );

    let wanted: Vec<_> = wanted
        .iter()
        .filter(|(file, _)| survey.files[**file].state != Freshness::Gone)
        .collect();
    let threads = stream::threads(args.threads);
    // Where files are fewer than threads, several search the same file.
    let threads_of_a_file = threads / wanted.len().clamp(1, threads);
    let progress = Arc::<Progress>::default();
    let mut out = output::stdout()?;
    let mut written: io::Result<()> = Ok(());
    let (mut any, mut failed) = (false, !survey.unlisted.is_empty());
    for_each_in_order(
        wanted.len(),
        threads,
        &progress.stop,
        |number| {
            let (file, numbers) = wanted[number];
            let asked: Vec<&Query> = numbers.iter().map(|number| &queries[*number]).collect();
            let name = path_bytes(&survey.files[*file].shown);
            let mut text = Vec::new();
            let mut count = 0;
            let searched = search(
                &survey.files[*file].place,
                question.spec(),
                &asked,
                threads_of_a_file,
                &progress,
                |found| {
                    count += 1;
                    let key = &question.keys[numbers[found.query]];
                    args.print(&mut text, &name, key, &found);
                },
            );
            args.print_count(&mut text, &name, count);
            (text, count, searched)
        },
        |_, (text, count, searched)| {
            any |= count > 0;
            if written.is_ok() {
                written = out.write_all(&text);
            }
            if written.is_err() {
                progress.stop.store(true, Relaxed);
            }
            if let Err(error) = searched {
                say!("tamis: {error}");
                failed = true;
            }
        },
    );
    written?;
    Ok(match (failed, any) {
        (true, _) => Exit::InputFailed,
        (false, true) => Exit::Done,
        (false, false) => Exit::NoneFound,
    })
}

impl Args {
    fn print(&self, out: &mut Vec<u8>, name: &[u8], key: &[u8], found: &Match) {
        if self.json {
            let found = json!({
                "file": String::from_utf8_lossy(name),
                "line": found.number,
                "text": String::from_utf8_lossy(found.text),
                "key": String::from_utf8_lossy(key),
            });
            out.extend_from_slice(format!("{found}\n").as_bytes());
        } else if !self.count && !self.files_with_matches {
            self.print_name(out, name);
            out.extend_from_slice(format!("{}:", found.number).as_bytes());
            out.extend_from_slice(found.text);
            out.push(b'\n');
        }
    }

    fn print_count(&self, out: &mut Vec<u8>, name: &[u8], count: u64) {
        if count > 0 && self.count {
            self.print_name(out, name);
            out.extend_from_slice(format!("{count}\n").as_bytes());
        } else if count > 0 && self.files_with_matches {
            out.extend_from_slice(name);
            out.push(b'\n');
        }
    }

    fn print_name(&self, out: &mut Vec<u8>, name: &[u8]) {
        if !self.no_filename {
            out.extend_from_slice(name);
            out.push(b':');
        }
    }
}
