//! Searches the files of indexes for records with given values.

use super::ask::{self, need};
use super::survey::Survey;
use super::{Index, path_bytes};
use crate::{Exit, output};
use anyhow::{Result, anyhow};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis_records::grep::json_text;
use tamis_records::key::{KeySpec, Query};
use tamis_records::ordered::for_each_in_order;
use tamis_records::progress::Progress;
use tamis_records::search::{Match, search as search_file};

/// How to print records.
pub(crate) struct Form {
    pub(crate) no_filename: bool,
    pub(crate) line_number: bool,
    pub(crate) files_with_matches: bool,
    pub(crate) count: bool,
    pub(crate) quiet: bool,
    pub(crate) json: bool,
    /// Whether an unreadable file is an error.
    pub(crate) strict: bool,
    pub(crate) threads: usize,
}

/// Prints the records of all indexes that have any of the keys.
pub(crate) fn search(
    indexes: &[Index],
    asked: Option<&KeySpec>,
    keys: &[Vec<u8>],
    form: &Form,
    is_wanted: &(dyn Fn(&Path) -> bool + Sync),
) -> Result<Exit> {
    let mut out = output::stdout()?;
    let (mut any, mut failed) = (false, false);
    for index in indexes {
        let found = search_index(index, asked, keys, form, is_wanted, &mut out)?;
        any |= found.any;
        failed |= found.failed;
    }
    Ok(match (failed, any) {
        (true, _) => Exit::InputFailed,
        (false, true) => Exit::Done,
        (false, false) => Exit::NoneFound,
    })
}

/// What came of searching in one index.
#[derive(Default)]
struct Searched {
    any: bool,
    failed: bool,
}

fn search_index(
    index: &Index,
    asked: Option<&KeySpec>,
    keys: &[Vec<u8>],
    form: &Form,
    is_wanted: &(dyn Fn(&Path) -> bool + Sync),
    out: &mut (impl Write + Send),
) -> Result<Searched> {
    let mut of_index = Searched::default();
    let (number, spec) = index.spec(asked)?;
    let query = |key: &Vec<u8>| spec.query(key).map_err(|error| anyhow!(error));
    let queries = keys.iter().map(query).collect::<Result<Vec<Query>>>()?;
    let needs = keys.iter().map(|key| need(index, number, key));
    let needs = needs.collect::<Result<Vec<_>>>()?;
    let survey = Survey::of(index)?;
    let mut wanted: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (query, files) in index
        .files_that_may(number, &survey, &needs)
        .into_iter()
        .enumerate()
    {
        for file in files {
            wanted.entry(file).or_default().push(query);
        }
    }
    wanted.retain(|file, _| is_wanted(&survey.files[*file].shown));
    // Other files are searched in their current state, so they need no remark.
    let gone = index.gone_that_may(number, &survey, &needs);
    ask::remark(index, number, &survey, std::iter::empty(), &gone);
    of_index.failed = !survey.unlisted.is_empty();

    let wanted: Vec<_> = wanted.into_iter().collect();
    // With fewer files than threads, several threads share a file.
    let threads_of_a_file = form.threads / wanted.len().clamp(1, form.threads);
    let progress = Arc::<Progress>::default();
    let mut written: io::Result<()> = Ok(());
    for_each_in_order(
        wanted.len(),
        form.threads,
        &progress.stop,
        |number| {
            let (file, numbers) = &wanted[number];
            let file = &survey.files[*file];
            let asked: Vec<&Query> = numbers.iter().map(|number| &queries[*number]).collect();
            let name = path_bytes(&file.shown);
            let mut text = Vec::new();
            let mut count = 0;
            let searched = search_file(
                &file.listed.place,
                spec,
                &asked,
                threads_of_a_file,
                &progress,
                |found| {
                    count += 1;
                    form.print(&mut text, &name, &keys[numbers[found.query]], &found);
                },
            );
            form.print_count(&mut text, &name, count);
            (text, count, searched)
        },
        |_, (text, count, searched)| {
            of_index.any |= count > 0;
            if written.is_ok() {
                written = out.write_all(&text);
            }
            if written.is_err() {
                progress.stop.store(true, Relaxed);
            }
            match searched {
                Err(error) if error.is_not_read() && !form.strict => {}
                Err(error) => {
                    say!("tamis: {error}");
                    of_index.failed = true;
                }
                Ok(()) => {}
            }
        },
    );
    written?;
    Ok(of_index)
}

impl Form {
    fn print(&self, out: &mut Vec<u8>, name: &[u8], key: &[u8], found: &Match) {
        if self.quiet {
        } else if self.json {
            let found = json!({
                "file": json_text(name),
                "line": found.number,
                "text": json_text(found.text),
                "key": json_text(key),
            });
            out.extend_from_slice(format!("{found}\n").as_bytes());
        } else if !self.count && !self.files_with_matches {
            self.print_name(out, name);
            if self.line_number {
                out.extend_from_slice(format!("{}:", found.number).as_bytes());
            }
            out.extend_from_slice(found.text);
            out.push(b'\n');
        }
    }

    fn print_count(&self, out: &mut Vec<u8>, name: &[u8], count: u64) {
        if count == 0 || self.quiet {
        } else if self.count {
            self.print_name(out, name);
            out.extend_from_slice(format!("{count}\n").as_bytes());
        } else if self.files_with_matches {
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
