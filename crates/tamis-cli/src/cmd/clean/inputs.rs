//! Which files a run reads, and the names of their outputs.

use super::args::{Args, Kind};
use crate::apart::{Apart, Role};
use crate::{find, output};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tamis_corpus::chunks::{self, Source};
use tamis_corpus::output::UNFINISHED;
use tamis_redis::Location;

/// The inputs in order, each with the name of its output.
pub(super) struct Inputs {
    pub(super) sources: Vec<Source>,
    pub(super) names: Vec<PathBuf>,
    /// Their total unpacked size, roughly.
    pub(super) text: u64,
}

/// How much text usually shrinks when compressed.
const PACKED: u64 = 4;

impl Inputs {
    pub(super) fn find(args: &Args) -> Result<Self> {
        let mut apart = Apart::default();
        note_others(args, &mut apart)?;
        let filters = [&args.filter, &args.learn, &args.against];
        for filter in filters.into_iter().flatten() {
            if filter.to_str().is_some_and(Location::looks_like) {
                // The URL isn't repeated: it may contain a password.
                bail!(
                    "the filter of a corpus is a file, not in Redis\n\
                     hint: each machine cleans its own files with a filter of its own; `tamis merge` combines them"
                );
            }
        }
        let folder = args.output.as_deref().or(args.attributes.as_deref());
        let mut inputs = Self {
            sources: Vec::new(),
            names: Vec::new(),
            text: 0,
        };
        let mut roots = args.files.clone();
        if roots.is_empty() {
            roots.push("-".into());
        }
        for root in roots {
            inputs.add(&root, folder, args.kind, &apart)?;
        }
        if inputs.sources.is_empty() {
            bail!("no files in the folders\nhint: hidden ones are read, too; is the path right?");
        }
        inputs.check_apart(args, folder, &mut apart)?;
        Ok(inputs)
    }

    fn add(
        &mut self,
        root: &Path,
        folder: Option<&Path>,
        kind: Option<Kind>,
        apart: &Apart,
    ) -> Result<()> {
        let (files, unlisted) = find::files(vec![root.to_owned()], apart);
        if let Some((path, why)) = unlisted.first() {
            bail!("{}: {why}", path.display());
        }
        let outputs = folder.and_then(|folder| folder.canonicalize().ok());
        // Outputs inside an input folder aren't read as inputs.
        let inner = outputs.filter(|outputs| {
            let root = root.canonicalize();
            root.is_ok_and(|root| root.is_dir() && *outputs != root && outputs.starts_with(root))
        });
        let is_output = |path: &Path| {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let is_inside =
                |inner: &PathBuf| folder.is_some_and(|folder| folder.starts_with(inner));
            inner.as_ref().is_some_and(is_inside)
        };
        for path in files {
            if is_output(&path) {
                continue;
            }
            if path.components().any(|part| part.as_os_str() == UNFINISHED) {
                bail!(
                    "{} has an unfinished run of `tamis clean`\nhint: start that run again to finish it",
                    root.display()
                );
            }
            self.names.push(match path.strip_prefix(root) {
                Ok(inner) if root.is_dir() => inner.to_owned(),
                _ if path == Path::new("-") => "stdin.jsonl".into(),
                _ => path.file_name().unwrap_or_default().into(),
            });
            self.text += size(&path);
            let mut source = Source::by_name(path);
            match kind {
                Some(Kind::Json) => source.kind = chunks::Kind::Json,
                Some(Kind::Text) => source.kind = chunks::Kind::Text,
                None => {}
            }
            self.sources.push(source);
        }
        Ok(())
    }

    /// Refuses inputs that are also outputs, and filters that are also inputs.
    fn check_apart(&self, args: &Args, folder: Option<&Path>, apart: &mut Apart) -> Result<()> {
        if let Some(folder) = folder {
            if output::file(Some(folder)).is_none() || folder.is_file() {
                bail!(
                    "{} is no folder: each input has an output of its own\n\
                     hint: name a folder that is there or not, or omit it to write to standard output",
                    folder.display()
                );
            }
            // The folder didn't exist, so none of its files was noted.
            std::fs::create_dir_all(folder)
                .with_context(|| format!("writing {}", folder.display()))?;
            note_others(args, apart)?;
            for name in &self.names {
                apart.note(Role::Output, &folder.join(name))?;
            }
        }
        for source in &self.sources {
            apart.check_input(&source.path)?;
        }
        Ok(())
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.sources
            .iter()
            .map(|source| source.path.clone())
            .collect()
    }

    /// Whether any input is plain text.
    pub(super) fn has_text(&self) -> bool {
        self.sources
            .iter()
            .any(|source| source.kind == chunks::Kind::Text)
    }
}

/// Notes files that are neither input nor output.
fn note_others(args: &Args, apart: &mut Apart) -> Result<()> {
    let filters = [&args.filter, &args.learn, &args.against];
    for filter in filters.into_iter().flatten() {
        apart.note(Role::Filter, filter)?;
    }
    if let Some(report) = &args.report {
        apart.note(Role::Report, report)?;
    }
    Ok(())
}

fn size(path: &Path) -> u64 {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    match path.extension().and_then(|end| end.to_str()) {
        Some("gz" | "zst" | "bz2" | "xz") => bytes.saturating_mul(PACKED),
        _ => bytes,
    }
}
