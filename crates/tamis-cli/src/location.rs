//! Filters as they are named on the command line, and the secret of keyed ones.

use anyhow::Result;
use std::path::{Path, PathBuf};
use tamis::{Open, SecretKey};

/// For commands that open a filter.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct KeyFile {
    /// The secret key of a filter that was created with --key-file
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl KeyFile {
    /// How to open a filter with this key.
    pub(crate) fn open(&self) -> Result<Open> {
        Ok(match &self.key_file {
            Some(path) => Open::new().key(SecretKey::load(path)?),
            None => Open::new(),
        })
    }
}

/// Says which filter an error is about, unless it does already.
pub(crate) fn named(path: &Path) -> impl FnOnce(tamis::Error) -> anyhow::Error {
    let path = path.display().to_string();
    move |error| {
        let text = error.to_string();
        let hint = match &error {
            tamis::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "\nhint: `tamis create` makes a filter"
            }
            tamis::Error::KeyNeeded => "\nhint: pass --key-file",
            _ => "",
        };
        match text.contains(&path) {
            true => anyhow::anyhow!("{text}{hint}"),
            false => anyhow::anyhow!("{path}: {text}{hint}"),
        }
    }
}
