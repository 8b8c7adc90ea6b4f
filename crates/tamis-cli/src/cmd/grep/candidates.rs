//! `tamis grep --candidates`: the files that may match, according to the filters alone.

use crate::index::ask::{self, KeyArgs, need};
use crate::index::filters::{self, Asked};
use crate::index::survey::Survey;
use crate::index::table::Choice;
use crate::index::{Index, is_index, path_bytes, walk};
use crate::{Exit, output, stream};
use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tamis_records::grep::json_text;
use tamis_records::key::{KeySpec, Source};
use tamis_records::ordered::for_each_in_order;

/// Which files may contain the keys. A file that isn't listed certainly doesn't.
pub(super) struct Candidates<'a> {
    /// An index, or a Parquet file or a folder of them, whose own filters are queried.
    pub(super) place: &'a Path,
    pub(super) named: &'a [OsString],
    pub(super) keys: &'a KeyArgs,
    /// End names with NUL instead of a line feed.
    pub(super) null: bool,
    /// With several keys, print only the files, each once.
    pub(super) files: bool,
    pub(super) json: bool,
}

/// Collects which files may contain which key.
struct Listing<'a> {
    args: &'a Candidates<'a>,
    out: BufWriter<File>,
    with_key: bool,
    /// The files that may contain any key.
    named: Vec<bool>,
    any: bool,
}

impl<'a> Listing<'a> {
    fn new(args: &'a Candidates<'a>, keys: usize, files: usize) -> Result<Self> {
        Ok(Self {
            args,
            out: BufWriter::new(output::stdout()?),
            with_key: !args.files && (keys > 1 || args.keys.is_from_file()),
            named: vec![false; files],
            any: false,
        })
    }

    /// Adds the files, by number, that may contain a key.
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

    /// Prints the file names, if only those are wanted. `complete` if every file could be checked.
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

/// Queries the files' own filters.
fn ask_filters(args: &Candidates<'_>, spec: &KeySpec) -> Result<Exit> {
    if spec.is_prefix() {
        bail!("{spec}: a filter has whole values, not prefixes");
    }
    let keys = args.keys.keys(args.named)?;
    let values = keys
        .iter()
        .map(|key| spec.values(key).map_err(|e| anyhow!(e)));
    let values = values.collect::<Result<Vec<_>>>()?;
    let roots = [args.place.to_owned()];
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
        say!("tamis: {}: {cause}", args.place.join(inside).display());
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

/// Lists the candidates.
pub(super) fn list(args: &Candidates<'_>) -> Result<Exit> {
    // Opening reports a missing file.
    if let Some(spec) = &args.keys.spec
        && matches!(spec.source(), Source::Parquet(_))
        && !is_index(args.place)
        && args.place.exists()
    {
        return ask_filters(args, spec);
    }
    let index = Index::open(args.place, &args.keys.moved)?;
    let (spec, _) = index.spec(args.keys.spec.as_ref())?;
    let keys = args.keys.keys(args.named)?;
    let needs = keys.iter().map(|key| need(&index, spec, key));
    let needs = needs.collect::<Result<Vec<_>>>()?;
    let survey = Survey::of(&index)?;
    let files = &survey.files;
    let mut listing = Listing::new(args, keys.len(), files.len())?;
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
    // Missing files are reported instead of listed.
    let gone = index.gone_that_may(spec, &survey, &needs);
    ask::remark(&index, spec, &survey, named.into_iter(), &gone);
    Ok(exit)
}
