//! A filter of a file, in memory: a private copy, so that whatever becomes of
//! the file, nothing changes under a request.

use super::keys::Key;
use crate::about::{self, About};
use crate::foreign::{self, Encoding, ForeignArgs, Opened};
use crate::location::KeyFile;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use tamis::{AnyFilter, FileLock, KeyRule, Open};

/// How files are opened.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// With the key, which was read at the start: its file may be a pipe that is empty by now.
    pub(super) ours: Open,
    pub(super) key: KeyFile,
    pub(super) foreign: ForeignArgs,
}

/// What answers for a file.
pub(super) enum Loaded {
    Ours(AnyFilter),
    Foreign(Opened, Encoding),
}

impl Opening {
    /// Reads a file as a whole and checks it.
    pub(super) fn load(&self, path: &Path) -> Result<Loaded> {
        // What is said of other systems' filters is not meant for ours, which may lie beside them.
        if !foreign::is_ours(path)
            && let Some(opened) = self.foreign.open_copy(path)?
        {
            let encoding = self.foreign.encoding(&opened.filter)?;
            return Ok(Loaded::Foreign(opened, encoding));
        }
        let filter = self.ours.load(path);
        // Without a look at what else the file may be: it may change under it.
        let filter = filter.with_context(|| path.display().to_string())?;
        Ok(Loaded::Ours(filter))
    }
}

impl Loaded {
    /// How its keys are made.
    pub(super) fn rule(&self) -> KeyRule {
        match self {
            Self::Ours(filter) => *filter.hasher().rule(),
            Self::Foreign(..) => KeyRule::EXACT,
        }
    }

    /// Which keys may be in it.
    pub(super) fn ask(&self, keys: &[Key<'_>], found: &mut [bool]) -> Result<()> {
        match self {
            Self::Ours(filter) => filter.contains_many(keys, found),
            Self::Foreign(opened, Encoding(encoding)) => {
                let keys: Result<Vec<_>, _> = keys.iter().map(|key| encoding.encode(key)).collect();
                // To call such a key absent could be a false "no".
                let keys =
                    keys.with_context(|| format!("this filter's keys are {}", encoding.name()))?;
                opened.filter.contains_many(&keys, found);
            }
        }
        Ok(())
    }

    /// Adds keys; which of them were new.
    pub(super) fn add(&mut self, keys: &[Key<'_>], new: &mut [bool]) -> Result<()> {
        match self {
            Self::Ours(filter) => filter.insert_many(keys, new)?,
            Self::Foreign(opened, _) => bail!("{}: read-only here", opened.path.display()),
        }
        Ok(())
    }

    /// Whether keys can be added: not to finished lists, and to files of other systems only by
    /// `tamis add`.
    pub(super) fn is_writable(&self) -> bool {
        matches!(
            self,
            Self::Ours(
                AnyFilter::Bloom(_)
                    | AnyFilter::Blocked(_)
                    | AnyFilter::Counting(_)
                    | AnyFilter::Cuckoo(_)
                    | AnyFilter::Growing(_)
            )
        )
    }

    /// Puts it in the place of its file, whole or not at all.
    pub(super) fn save(&self, lock: &mut FileLock) -> Result<()> {
        match self {
            Self::Ours(filter) => {
                let path = lock.path().display().to_string();
                filter.save_under(lock).context(path)
            }
            Self::Foreign(opened, _) => bail!("{}: read-only here", opened.path.display()),
        }
    }

    /// What can be told of it.
    pub(super) fn about(&self) -> Value {
        match self {
            Self::Ours(filter) => {
                let mut about = about::to_json(&About::of(filter));
                if let Value::Object(about) = &mut about {
                    about.remove("sealed");
                    about.remove("seconds_to_live");
                    about.insert("lines".into(), super::lines::of(filter));
                }
                about
            }
            Self::Foreign(opened, encoding) => {
                let mut about = foreign::tell::to_json(opened);
                about["kind"] = about["format"].take();
                about["keys_are"] = json!(encoding.0.name());
                about
            }
        }
    }
}
