//! Filters as they are named on the command line, and the secret of keyed ones.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
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
            Some(path) => Open::new().key(read_key(path)?),
            None => Open::new(),
        })
    }
}

/// A key file is 32 hexadecimal digits, so that it survives editors and mails.
pub(crate) fn read_key(path: &Path) -> Result<SecretKey> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the key file {}", path.display()))?;
    let digits = text.trim();
    match u128::from_str_radix(digits, 16) {
        Ok(key) if digits.len() == 32 => Ok(SecretKey::new(key.to_be_bytes())),
        _ => bail!(
            "{}: not a key file: expected 32 hexadecimal digits, got {} other characters",
            path.display(),
            digits.len()
        ),
    }
}

/// The key in the file, or a new one put there, for its owner's eyes only.
pub(crate) fn read_or_make_key(path: &Path) -> Result<SecretKey> {
    if path.exists() {
        return read_key(path);
    }
    let key = SecretKey::random()?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| writeln!(file, "{:032x}", u128::from_be_bytes(*key.as_bytes())))
        .with_context(|| format!("writing the key file {}", path.display()))?;
    Ok(key)
}

/// Says which filter an error is about, unless it does already.
pub(crate) fn named(path: &Path) -> impl FnOnce(tamis::Error) -> anyhow::Error {
    let file = path.to_owned();
    move |error| {
        let path = file.display().to_string();
        let text = error.to_string();
        let hint = match &error {
            tamis::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "\nhint: `tamis create` makes a filter"
            }
            tamis::Error::KeyNeeded => "\nhint: pass --key-file",
            tamis::Error::Corrupt { .. } if crate::index::is_index(&file) => {
                "\nhint: `tamis which` and `tamis grep` ask an index of files"
            }
            _ => "",
        };
        match text.contains(&path) {
            true => anyhow::anyhow!("{text}{hint}"),
            false => anyhow::anyhow!("{path}: {text}{hint}"),
        }
    }
}
