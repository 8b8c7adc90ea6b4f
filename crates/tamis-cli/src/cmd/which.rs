use crate::index::ask::{self, QueryArgs};
use crate::index::{State, path_bytes};
use crate::{Exit, output};
use anyhow::Result;
use serde_json::json;
use std::io::Write;

/// Tell which files may hold a key
///
/// Asks an index made by `tamis index`. A file that is not named certainly
/// does not hold the key; of those that don't, one in a hundred (or what the
/// index was made for) is named all the same. A file that has changed since it
/// was indexed, is new, could not be read, or whose filter in the index is
/// damaged is named in any case, with a warning. That a file or folder which
/// was indexed is missing, or has become empty, is an error.
///
/// With several keys, each line is the key, a tab and the file.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 some file may hold a key, 1 none does, 2 an error.

Examples:
  tamis which logs.index 8f14e45fceea167a
  tamis which -0 logs.index 8f14e45fceea167a | xargs -0 zgrep -H 8f14e45fceea167a
  tamis which logs.index -f ids.txt            ID, tab, FILE
  tamis which --files logs.index -f ids.txt    the files, each once
  tamis which rows.index --key csv:row,qualifier r1,q1")]
pub(crate) struct Args {
    #[command(flatten)]
    query: QueryArgs,

    /// End names with NUL instead of a line feed
    #[arg(short = '0', long)]
    null: bool,

    /// Of several keys, print the files alone, each once
    #[arg(long, conflicts_with = "json")]
    files: bool,

    /// Print a line of JSON for each key
    #[arg(long, conflicts_with = "null")]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
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
