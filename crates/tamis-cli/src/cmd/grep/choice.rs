//! Chooses the files to search by their paths.

use anyhow::{Context, Result};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::path::{Component, Path, PathBuf};

#[derive(clap::Args)]
pub(super) struct ChoiceArgs {
    /// Search only files whose path fits, or with ! in front does not; may be given several times
    #[arg(short, long, value_name = "GLOB")]
    glob: Vec<String>,

    /// Search only files of this type, as ripgrep knows them, e.g. log, json; -g goes first
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// Leave out files of this type
    #[arg(short = 'T', long = "type-not", value_name = "TYPE")]
    types_not: Vec<String>,
}

/// Which files to search, by path.
pub(super) struct FileChoice {
    globs: Override,
    types: Types,
}

impl FileChoice {
    pub(super) fn new(args: &ChoiceArgs) -> Result<Self> {
        let mut globs = OverrideBuilder::new(Path::new("/"));
        for glob in &args.glob {
            globs.add(glob).with_context(|| format!("--glob {glob}"))?;
        }
        let mut types = TypesBuilder::new();
        types.add_defaults();
        for name in &args.types {
            types.select(name);
        }
        for name in &args.types_not {
            types.negate(name);
        }
        Ok(Self {
            globs: globs.build().context("--glob")?,
            types: types.build().context("--type")?,
        })
    }

    pub(super) fn is_wanted(&self, path: &Path) -> bool {
        // Globs apply to paths below the folder they are given for.
        let inside: PathBuf = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        // As in ripgrep, a matching glob overrides the type.
        match self.globs.matched(&inside, false) {
            Match::Ignore(_) => false,
            Match::Whitelist(_) => true,
            Match::None => !self.types.matched(&inside, false).is_ignore(),
        }
    }
}
