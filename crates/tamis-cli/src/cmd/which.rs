use crate::index::ask::{self, KeyArgs, need};
use crate::index::filters::{self, Asked};
use crate::index::survey::Survey;
use crate::index::table::Choice;
use crate::index::{Index, path_bytes, walk};
use crate::{Exit, output, stream};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tamis_records::grep::json_text;
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
    /// The index
    index: PathBuf,

    /// What to look for; write the values of several columns as a row of CSV
    #[arg(value_name = "KEY", required_unless_present = "file")]
    named: Vec<OsString>,

    #[command(flatten)]
    keys: KeyArgs,

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

/// Writes down which files may contain which key.
struct Listing<'a> {
    args: &'a Args,
    out: BufWriter<File>,
    with_key: bool,
    /// The files that may contain some key.
    named: Vec<bool>,
    any: bool,
}

impl<'a> Listing<'a> {
    fn new(args: &'a Args, keys: usize, files: usize) -> Result<Self> {
        Ok(Self {
            args,
            out: BufWriter::new(output::stdout()?),
            with_key: !args.files && (keys > 1 || args.keys.is_from_file()),
            named: vec![false; files],
            any: false,
        })
    }

    /// The files, by number, that may contain a key.
    fn add<'p>(
        &mut self,
        key: &[u8],
        files: &[usize],
        path: impl Fn(usize) -> &'p Path,
        describe: impl Fn(usize) -> Value,
    ) -> Result<()> {
        self.any |= !files.is_empty();
        files.iter().for_each(|&file| self.named[file] = true);
        if self.args.json {
            let described = files.iter().map(|&file| {
                let mut all = describe(file);
                all["file"] = json_text(&path_bytes(path(file)));
                all
            });
            let described: Vec<_> = described.collect();
            let answer = json!({ "key": json_text(key), "files": described });
            writeln!(self.out, "{answer}")?;
        } else if !self.args.files {
            for &file in files {
                if self.with_key {
                    self.out.write_all(key)?;
                    self.out.write_all(b"\t")?;
                }
                self.name(path(file))?;
            }
        }
        Ok(())
    }

    fn name(&mut self, path: &Path) -> Result<()> {
        let end = if self.args.null { b'\0' } else { b'\n' };
        self.out.write_all(&path_bytes(path))?;
        Ok(self.out.write_all(&[end])?)
    }

    /// Names the files, if they are all that is wanted. `complete` if all could be looked at.
    fn finish<'p>(mut self, files: impl Iterator<Item = &'p Path>, complete: bool) -> Result<Exit> {
        if self.args.files {
            for (path, _) in files.zip(self.named.clone()).filter(|(_, named)| *named) {
                self.name(path)?;
            }
        }
        self.out.flush()?;
        Ok(match (complete, self.any) {
            (false, _) => Exit::InputFailed,
            (true, true) => Exit::Done,
            (true, false) => Exit::NoneFound,
        })
    }
}

/// Asks the files' own filters.
fn which_by_filters(args: &Args) -> Result<Exit> {
    let spec = args.keys.spec.as_ref();
    filters::columns(spec)?;
    let spec = spec.context("a spec, which has just been looked at")?;
    let keys = args.keys.keys(&args.named)?;
    let values = keys
        .iter()
        .map(|key| spec.values(key).map_err(|e| anyhow!(e)));
    let values = values.collect::<Result<Vec<_>>>()?;
    let roots = [args.index.clone()];
    let found = walk::files(&roots, &Choice::default(), Path::new(""))?;
    let files: Vec<PathBuf> = found.files.into_iter().map(|file| file.place).collect();
    let mut asked = Vec::new();
    for_each_in_order(
        files.len(),
        stream::threads(None),
        &AtomicBool::new(false),
        |number| filters::ask(&files[number], spec, &values),
        |_, answer| asked.push(answer),
    );

    let path = |file: usize| files[file].as_path();
    let mut listing = Listing::new(args, keys.len(), asked.len())?;
    for (number, key) in keys.iter().enumerate() {
        let may_hold = |file: &usize| match &asked[*file] {
            Asked::NoColumn => false,
            Asked::Unread(_) => true,
            Asked::Answers(answers, _) => !answers[number].groups.is_empty(),
        };
        let files: Vec<_> = (0..asked.len()).filter(may_hold).collect();
        listing.add(key, &files, path, |file| match &asked[file] {
            Asked::Answers(answers, _) => json!({
                "state": "asked",
                "row_groups": answers[number].groups,
                "of_row_groups": answers[number].of,
            }),
            _ => json!({ "state": "unread" }),
        })?;
    }
    for (_, inside, cause) in &found.errors {
        say!("tamis: {}: {cause}", args.index.join(inside).display());
    }
    let remarks = asked.iter().enumerate();
    let remarks = remarks.filter(|(file, _)| listing.named[*file]);
    ask::remark_each(
        remarks.filter_map(|(file, asked)| match asked {
            Asked::Unread(why) => Some((path(file), format!("{why}; it may hold any value"))),
            Asked::Answers(_, Some(why)) => Some((path(file), (*why).to_owned())),
            _ => None,
        }),
        "files more could not be asked in full",
    );
    let files = files.iter().map(PathBuf::as_path);
    listing.finish(files, found.errors.is_empty())
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if args.parquet_filters {
        return which_by_filters(&args);
    }
    let index = Index::open(&args.index, &args.keys.moved)?;
    let (spec, _) = index.spec(args.keys.spec.as_ref())?;
    let keys = args.keys.keys(&args.named)?;
    let needs = keys.iter().map(|key| need(&index, spec, key));
    let needs = needs.collect::<Result<Vec<_>>>()?;
    let survey = Survey::of(&index)?;
    let files = &survey.files;
    let mut listing = Listing::new(&args, keys.len(), files.len())?;
    let candidates = index.files_that_may(spec, &survey, &needs);
    for (key, candidates) in keys.iter().zip(candidates) {
        listing.add(
            key,
            &candidates,
            |file| files[file].shown.as_path(),
            |file| json!({ "state": index.state(&files[file], Some(spec)).name() }),
        )?;
    }
    let named = files.iter().zip(&listing.named);
    let named: Vec<_> = named
        .filter(|(_, named)| **named)
        .map(|(file, _)| file)
        .collect();
    let shown = files.iter().map(|file| file.shown.as_path());
    let exit = listing.finish(shown, survey.unlisted.is_empty())?;
    // What is gone is not listed, but reported.
    let gone = index.gone_that_may(spec, &survey, &needs);
    ask::remark(&index, spec, &survey, named.into_iter(), &gone);
    Ok(exit)
}
