//! Shared by the commands that query an index.

use super::candidates::Candidates;
use super::key_spec::parse_key_spec;
use super::survey::{Freshness, Survey, Surveyed};
use super::{Index, Moved};
use crate::{human, output};
use anyhow::{Result, anyhow, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis_records::input::{Input, Packing};
use tamis_records::key::KeySpec;
use tamis_records::needs::{Need, needs};
use tamis_records::patterns::{Patterns, Syntax};
use tamis_records::progress::Progress;
use tamis_records::records::Framing;

/// The most remarks about single files; further files are only counted.
const REMARKS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// Look for every line of this file; `-` is standard input
    #[arg(short = 'f', long = "file", value_name = "KEYS")]
    file: Option<PathBuf>,

    /// Which key of the index to ask, if it has several
    #[arg(short = 'k', long = "key", value_name = "KEY", value_parser = parse_key_spec)]
    pub(crate) spec: Option<KeySpec>,

    /// Where a folder is now that was elsewhere when it was indexed
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) moved: Vec<Moved>,
}

impl KeyArgs {
    /// Whether keys come from a file, and so may be many.
    pub(crate) const fn is_from_file(&self) -> bool {
        self.file.is_some()
    }

    /// The keys to look for: named ones and the lines of the file.
    pub(crate) fn keys(&self, named: &[OsString]) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<_> = named
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
        } else if keys.is_empty() {
            bail!("nothing to look for: name a key, or a file of them with -f");
        }
        Ok(keys)
    }
}

/// What a segment must contain to hold a key. Text is searched for as whole words.
pub(crate) fn need(index: &Index, spec: usize, key: &[u8]) -> Result<Need> {
    let spec = &index.specs[spec];
    if let Some(keys) = spec.text_keys() {
        let text = std::str::from_utf8(key);
        let text = text.map_err(|_| anyhow!("'{}': not UTF-8", String::from_utf8_lossy(key)))?;
        let patterns = Patterns {
            texts: vec![text.to_owned()],
            syntax: Syntax::Words,
            ..Patterns::default()
        };
        let need = needs(&patterns, keys).remove(0);
        if need == Need::Anything {
            bail!(
                "'{text}' has nothing in it that {spec} could look for\nhint: `tamis grep -F` searches all text"
            );
        }
        return Ok(need);
    }
    let query = spec.query(key).map_err(|error| anyhow!(error))?;
    let hasher = index.parts.index.hasher();
    Ok(Need::All(
        query.hashes(hasher).into_iter().map(Need::Key).collect(),
    ))
}

impl Index {
    /// For each need, the surveyed files that may meet it.
    pub(crate) fn files_that_may(
        &self,
        spec: usize,
        survey: &Survey,
        needs: &[Need],
    ) -> Vec<Vec<usize>> {
        let candidates = Candidates::of(self, spec, needs);
        let may = |need: usize, file: &Surveyed| match file.known {
            _ if file.state.is_unknown() || file.state == Freshness::Grown => true,
            Some(known) => {
                let mut segments = self.table.files[known].segments.iter();
                segments.any(|segment| candidates.may(need, segment.filters))
            }
            None => true,
        };
        let files = |need: usize| {
            let files = survey.files.iter().enumerate();
            let files = files.filter(|(_, file)| may(need, file));
            files.map(|(number, _)| number).collect()
        };
        (0..needs.len()).map(files).collect()
    }

    /// Deleted files that may have met a need.
    pub(crate) fn gone_that_may(
        &self,
        spec: usize,
        survey: &Survey,
        needs: &[Need],
    ) -> Vec<PathBuf> {
        let candidates = Candidates::of(self, spec, needs);
        let gone = survey.gone.iter().map(|number| &self.table.files[*number]);
        let gone = gone.filter(|known| known.unread.is_some() || candidates.may_be_in(known));
        gone.map(|known| self.shown(known.root, &known.inside))
            .collect()
    }

    /// The state of a candidate for keys of this spec, including whether its filters are damaged, so that it has to be
    /// read, or unknown.
    pub(crate) fn state(&self, file: &Surveyed, spec: Option<usize>) -> Freshness {
        let (Freshness::Fresh, Some(known)) = (&file.state, file.known) else {
            return file.state.clone();
        };
        for segment in &self.table.files[known].segments {
            match self.parts.entry(segment.filters) {
                Some(entry) if entry.unindexed() == Some(super::parts::DAMAGED) => {
                    return Freshness::Damaged;
                }
                Some(entry) => {
                    let unknown = spec.is_none_or(|spec| !entry.is_indexed(spec));
                    if let (Some(why), true) = (entry.unindexed(), unknown) {
                        return Freshness::Unread(why.to_owned());
                    }
                    if entry.verify().is_err() {
                        return Freshness::Damaged;
                    }
                }
                None => return Freshness::Damaged,
            }
        }
        Freshness::Fresh
    }
}

/// Reports differences from the index, for files that matter to the answer.
pub(crate) fn remark<'s>(
    index: &Index,
    spec: usize,
    survey: &Survey,
    files: impl Iterator<Item = &'s Surveyed>,
    gone: &[PathBuf],
) {
    for (path, cause) in &survey.unlisted {
        say!("tamis: {}: {cause}", path.display());
    }
    let files = files.filter_map(|file| {
        let remark = index.state(file, Some(spec)).remark()?;
        Some((file.shown.as_path(), remark))
    });
    let gone = gone
        .iter()
        .map(|path| (path.as_path(), "gone since it was indexed".to_owned()));
    let rest = format!(
        "changed, new, gone, unread or damaged\n\
         hint: `tamis index {}` updates the index",
        index.path.display()
    );
    remark_each(files.chain(gone), &rest);
}

/// Warns about some files, and counts the rest.
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
