//! What the commands that ask an index have in common.

use super::key_spec::parse_key_spec;
use super::{Index, Survey, Surveyed};
use crate::{human, output};
use anyhow::{Result, anyhow};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis_records::input::{Input, Packing};
use tamis_records::key::{KeySpec, Query};
use tamis_records::progress::Progress;
use tamis_records::records::Framing;

/// Remarks on single files, before the rest is only counted.
const REMARKS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct QueryArgs {
    /// The index
    pub(crate) index: PathBuf,

    /// What to look for; write the values of several columns as a row of CSV
    #[arg(value_name = "KEY", required_unless_present = "file")]
    keys: Vec<OsString>,

    /// Look for every line of this file; `-` is standard input
    #[arg(short = 'f', long = "file", value_name = "KEYS")]
    file: Option<PathBuf>,

    /// Which key of the index to ask, if it has several
    #[arg(long = "key", value_name = "SPEC", value_parser = parse_key_spec)]
    pub(crate) spec: Option<KeySpec>,
}

/// An index, and what is asked.
pub(crate) struct Question {
    pub(crate) index: Index,
    pub(crate) spec: usize,
    /// As they were asked.
    pub(crate) keys: Vec<Vec<u8>>,
}

impl QueryArgs {
    pub(crate) fn open(&self) -> Result<Question> {
        let index = Index::open(&self.index)?;
        let (spec, _) = index.spec(self.spec.as_ref())?;
        Ok(Question {
            index,
            spec,
            keys: self.keys()?,
        })
    }

    /// Whether there may be any number of keys.
    pub(crate) const fn is_from_file(&self) -> bool {
        self.file.is_some()
    }

    /// What to look for.
    pub(crate) fn keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<_> = self
            .keys
            .iter()
            .map(|key| super::path_bytes(key.as_ref()))
            .collect();
        if let Some(path) = &self.file {
            let mut input = Input::open(path, Packing::Recognised, &Arc::<Progress>::default())?;
            let mut text = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match input.read(&mut buffer)? {
                    0 => break,
                    count => text.extend_from_slice(&buffer[..count]),
                }
            }
            let lines = Framing::LINES;
            lines.for_each(&text, |start, end| {
                keys.push(lines.content(&text[start..end]).to_vec());
            });
        }
        Ok(keys)
    }
}

impl Question {
    pub(crate) fn spec(&self) -> &KeySpec {
        &self.index.specs[self.spec]
    }

    pub(crate) fn queries(&self) -> Result<Vec<Query<'_>>> {
        let query = |key: &Vec<u8>| self.spec().query(key).map_err(|error| anyhow!(error));
        self.keys.iter().map(query).collect()
    }
}

/// Says what is not as the index has it, of files that matter to the answer.
pub(crate) fn remark<'s>(
    question: &Question,
    survey: &Survey,
    files: impl Iterator<Item = &'s Surveyed>,
) {
    for (path, cause) in &survey.unlisted {
        say!("tamis: {}: {cause}", path.display());
    }
    let remarks =
        files.filter_map(|file| Some((&*file.shown, question.index.state(file).remark()?)));
    let rest = format!(
        "changed, new, gone, unread or damaged\n\
         hint: `tamis index -o {}` updates the index",
        question.index.path.display()
    );
    remark_each(remarks, &rest);
}

/// Warns of some files, and of the rest together.
pub(crate) fn remark_each<'p>(
    remarks: impl Iterator<Item = (&'p Path, impl std::fmt::Display)>,
    rest: &str,
) {
    let mut more = 0;
    for (number, (path, remark)) in remarks.enumerate() {
        if number < REMARKS {
            output::warn(format_args!("{}: {remark}", path.display()))
        } else {
            more += 1
        }
    }
    if more > 0 {
        output::warn(format_args!("{} {rest}", human::counted(more, "more file")));
    }
}
