use crate::index::ask::{self, QueryArgs};
use crate::index::filters::{self, Answer, Asked};
use crate::index::{Roots, State, path_bytes, walk};
use crate::{Exit, output, stream};
use anyhow::{Context, Result, anyhow};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tamis_records::ordered::for_each_in_order;

/// List the files that may contain a key
///
/// Asks an index made by `tamis index`. A file that is not listed certainly
/// does not contain the key. Of the files without the key, one in a hundred (or
/// the rate of the index) is listed anyway. A file that is new, has changed
/// since it was indexed, could not be read, or has a damaged filter in the index
/// is always listed, with a warning. It is an error if an indexed file or folder
/// is missing or has become empty.
///
/// With several keys, each line is the key, a tab and the file.
///
/// --parquet-filters uses no index: it asks the filters inside Parquet files.
/// `tamis bloom` adds such filters to files.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 a file may contain a key, 1 none does, 2 an error.

Examples:
  tamis which logs.index 8f14e45fceea167a
  tamis which -0 logs.index 8f14e45fceea167a | xargs -0 zgrep -H 8f14e45fceea167a
  tamis which logs.index -f ids.txt            ID, tab, FILE
  tamis which --files logs.index -f ids.txt    the files, each once
  tamis which rows.index --key csv:row,qualifier r1,q1
  tamis which --parquet-filters --key parquet:id table/ 4711")]
pub(crate) struct Args {
    #[command(flatten)]
    query: QueryArgs,

    /// End names with NUL instead of a line feed
    #[arg(short = '0', long)]
    null: bool,

    /// With several keys, print only the files, each once
    #[arg(long, conflicts_with = "json")]
    files: bool,

    /// Print a line of JSON for each key
    #[arg(long, conflicts_with = "null")]
    json: bool,

    /// Ask the filters inside Parquet files; INDEX is such a file or a folder of them
    ///
    /// Needs --key parquet:COLUMN. A file or row group that has no filter or
    /// can't be read may contain any value and is listed.
    #[arg(long)]
    parquet_filters: bool,
}

/// Asks the files' own filters.
fn which_by_filters(args: &Args) -> Result<Exit> {
    let spec = args.query.spec.as_ref();
    filters::columns(spec)?;
    let spec = spec.context("a spec, which has just been looked at")?;
    let keys = args.query.keys()?;
    let values = keys
        .iter()
        .map(|key| spec.values(key).map_err(|e| anyhow!(e)));
    let values = values.collect::<Result<Vec<_>>>()?;
    let roots = Roots::here(vec![args.query.index.clone()])?;
    let found = walk::files(&roots, Path::new(""));
    let mut asked = Vec::new();
    for_each_in_order(
        found.files.len(),
        stream::threads(None),
        &AtomicBool::new(false),
        |number| filters::ask(&found.files[number], spec, &values),
        |number, answer| asked.push((&found.files[number], answer)),
    );

    let mut out = std::io::BufWriter::new(output::stdout()?);
    let end = if args.null { b'\0' } else { b'\n' };
    let with_key = !args.files && (keys.len() > 1 || args.query.is_from_file());
    let candidate = |asked: &Asked, key: usize| -> Option<Option<Answer>> {
        match asked {
            Asked::NoColumn => None,
            Asked::Unread(_) => Some(None),
            Asked::Answers(answers, _) => {
                let answer = &answers[key];
                (!answer.groups.is_empty()).then(|| Some(answer.clone()))
            }
        }
    };
    let mut named = vec![false; asked.len()];
    for (number, key) in keys.iter().enumerate() {
        let mut listed = Vec::new();
        for (at, (path, asked)) in asked.iter().enumerate() {
            let Some(answer) = candidate(asked, number) else {
                continue;
            };
            let is_first = !std::mem::replace(&mut named[at], true);
            if args.json {
                listed.push(match answer {
                    None => json!({ "file": path.to_string_lossy(), "state": "unread" }),
                    Some(answer) => json!({
                        "file": path.to_string_lossy(),
                        "state": "asked",
                        "row_groups": answer.groups,
                        "of_row_groups": answer.of,
                    }),
                });
            } else if !args.files || is_first {
                if with_key {
                    out.write_all(key)?;
                    out.write_all(b"\t")?;
                }
                out.write_all(&path_bytes(path))?;
                out.write_all(&[end])?;
            }
        }
        if args.json {
            let answer = json!({ "key": String::from_utf8_lossy(key), "files": listed });
            writeln!(out, "{answer}")?;
        }
    }
    out.flush()?;
    for (path, cause) in &found.errors {
        say!("tamis: {}: {cause}", path.display());
    }
    let remarks = asked.iter().zip(&named).filter(|(_, named)| **named);
    ask::remark_each(
        remarks.filter_map(|((path, asked), _)| match asked {
            Asked::Unread(why) => Some((path.as_path(), format!("{why}; it may hold any value"))),
            Asked::Answers(_, Some(why)) => Some((path.as_path(), (*why).to_owned())),
            _ => None,
        }),
        "files more could not be asked in full",
    );
    Ok(match (found.errors.is_empty(), named.contains(&true)) {
        (false, _) => Exit::InputFailed,
        (true, true) => Exit::Done,
        (true, false) => Exit::NoneFound,
    })
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if args.parquet_filters {
        return which_by_filters(&args);
    }
    let question = args.query.open()?;
    let queries = question.queries()?;
    let survey = question.index.survey(Some(question.spec));
    let mut out = std::io::BufWriter::new(output::stdout()?);
    let end = if args.null { b'\0' } else { b'\n' };
    let with_key = !args.files && (question.keys.len() > 1 || question.from_file);
    let mut named = vec![false; survey.files.len()];
    let mut any = false;
    for (key, query) in question.keys.iter().zip(&queries) {
        let candidates = question.index.candidates(question.spec, &survey, query);
        for &file in &candidates {
            named[file] = true;
        }
        let there = candidates.iter().map(|&at| &survey.files[at]);
        let there = there.filter(|file| file.state != State::Gone);
        if args.json {
            let files: Vec<_> = there
                .map(|file| json!({ "file": file.shown.to_string_lossy(), "state": question.index.state(file).name() }))
                .collect();
            any |= !files.is_empty();
            let answer = json!({ "key": String::from_utf8_lossy(key), "files": files });
            writeln!(out, "{answer}")?;
        } else if !args.files {
            for file in there {
                any = true;
                if with_key {
                    out.write_all(key)?;
                    out.write_all(b"\t")?;
                }
                out.write_all(&path_bytes(&file.shown))?;
                out.write_all(&[end])?;
            }
        }
    }
    let files = || {
        survey
            .files
            .iter()
            .zip(&named)
            .filter(|(_, named)| **named)
            .map(|(file, _)| file)
    };
    if args.files {
        for file in files().filter(|file| file.state != State::Gone) {
            any = true;
            out.write_all(&path_bytes(&file.shown))?;
            out.write_all(&[end])?;
        }
    }
    out.flush()?;
    ask::remark(&question, &survey, files());
    Ok(match (survey.unlisted.is_empty(), any) {
        (false, _) => Exit::InputFailed,
        (true, true) => Exit::Done,
        (true, false) => Exit::NoneFound,
    })
}
