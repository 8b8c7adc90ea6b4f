//! A filter from a file, in memory: a private copy, so that changes to the file can't affect running requests.

use crate::keys::Key;
use crate::log::log;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use tamis::{AnyFilter, KeyRule, Moment, Open, Window, file::FileLock};
use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{Error, Foreign, Format, Hint, Keys};
use tamis_report::about::{self, About};
use tamis_report::foreign::Standing;
use tamis_report::page;

/// Options for opening filters. Secrets and certificates are read at startup: their files may be pipes, which are empty
/// afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) ours: Open,
    pub(crate) foreign: ForeignOptions,
    pub(crate) redis: tamis_redis::Options,
}

/// Options for other systems' filters whose files don't record them.
#[derive(Clone, Debug, Default)]
pub struct ForeignOptions {
    /// The format.
    pub format: Option<Format>,
    /// How keys were turned into bytes.
    pub keys: Option<Keys>,
    /// The hash of a pybloomfilter file, which doesn't record it.
    pub hash: Option<Hash>,
    /// The name of the filter, if the file holds several.
    pub name: Option<String>,
    /// The most bytes that a gzipped filter may expand to.
    pub most_unpacked: Option<u64>,
}

/// The filter that answers for a file.
#[expect(
    clippy::large_enum_variant,
    reason = "there are as many as files, on the heap"
)]
pub(crate) enum Loaded {
    Ours(AnyFilter),
    Foreign {
        filter: Foreign<'static>,
        keys: Keys,
        name: Option<String>,
    },
}

/// How every filter and index of ours begins.
const OURS: &[u8] = b"TAMIS\r\n\x1a";
/// The bytes read at each end of a file to see whether it may be another system's filter.
const END: u64 = 64 << 10;

impl Opening {
    /// Reads a whole file and checks it.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded> {
        let at = || path.display().to_string();
        match self.foreign.load(path).with_context(at)? {
            Some(foreign) => Ok(foreign),
            None => {
                let filter = self.ours.load(path).with_context(at)?;
                let rule = filter.hasher().rule();
                if rule.text().is_some() {
                    bail!(
                        "{}: the filter holds units of text ({rule}), which only `tamis clean` makes",
                        at()
                    );
                }
                Ok(Loaded::Ours(filter))
            }
        }
    }
}

impl ForeignOptions {
    /// Reads another system's filter; `None` if the format isn't known.
    fn load(&self, path: &Path) -> Result<Option<Loaded>> {
        let mut file = tamis::internals::file::open_regular(path, false)?;
        let (start, may_be) = look(&mut file)?;
        // The options are for other systems' files, which may be served together with ours.
        if start.starts_with(OURS) || self.format.is_none() && !may_be {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let hint = Hint {
            format: self.format,
            name: self.name.as_ref().map(|name| name.as_bytes()),
            hash: self.hash,
            most_unpacked: self.most_unpacked,
        };
        let filter = match tamis_formats::open_owned(bytes, hint) {
            Err(Error::Unknown) => return Ok(None),
            filter => filter?,
        };
        if let Some(doubt) = filter.facts().doubt() {
            log(format_args!("warning: {}: {doubt}", path.display()));
        }
        let keys = filter.format().encoding(filter.keys(), self.keys)?;
        let name = self.name.clone();
        Ok(Some(Loaded::Foreign { filter, keys, name }))
    }
}

/// What is wrong with a file, without revealing its content: every client may read this, and the file may never have
/// been meant to be served.
pub(crate) fn fault_of(path: &Path, error: &anyhow::Error) -> String {
    let corrupt = error.chain().find_map(|cause| {
        if let Some(tamis::Error::Corrupt { what, .. }) = cause.downcast_ref() {
            return Some(format!("not a valid Tamis filter: its {what} is wrong"));
        }
        match cause.downcast_ref()? {
            Error::Corrupt { format, what, .. } => {
                Some(format!("not a valid {format} filter: its {what} is wrong"))
            }
            _ => None,
        }
    });
    let path = format!("{}: ", path.display());
    let text = corrupt.unwrap_or_else(|| format!("{error:#}"));
    format!("{path}{}", text.strip_prefix(&path).unwrap_or(&text))
}

/// The start of a file, and whether its two ends look like another system's filter. Leaves the file at its start.
fn look(file: &mut File) -> std::io::Result<(Vec<u8>, bool)> {
    let len = file.metadata()?.len();
    let (mut start, mut end) = (Vec::new(), Vec::new());
    file.take(END).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(len.saturating_sub(END)))?;
    file.take(END).read_to_end(&mut end)?;
    file.rewind()?;
    let may_be = tamis_formats::may_be(&start, &end, len);
    Ok((start, may_be))
}

impl Loaded {
    /// The rule for its keys.
    pub(crate) fn rule(&self) -> KeyRule {
        match self {
            Self::Ours(filter) => *filter.hasher().rule(),
            Self::Foreign { .. } => KeyRule::EXACT,
        }
    }

    /// The window, if it is one.
    pub(crate) const fn window(&self) -> Option<&Window> {
        match self {
            Self::Ours(AnyFilter::Window(window)) => Some(window),
            _ => None,
        }
    }

    /// Which keys may be in it, at a time that only windows use.
    pub(crate) fn ask(&self, keys: &[Key<'_>], at: Moment, found: &mut [bool]) -> Result<()> {
        match self {
            Self::Ours(filter) => filter.contains_many_at(keys, at, found),
            Self::Foreign {
                filter, keys: how, ..
            } => {
                let keys: Result<Vec<_>, _> = keys.iter().map(|key| how.encode(key)).collect();
                // Calling such a key absent could be a false "no".
                let keys = keys.with_context(|| format!("this filter's keys are {how}"))?;
                filter.contains_many(&keys, found);
            }
        }
        Ok(())
    }

    /// Adds keys seen at a time that only windows use; marks which were new.
    pub(crate) fn add(&mut self, keys: &[Key<'_>], at: Moment, new: &mut [bool]) -> Result<()> {
        match self {
            Self::Ours(filter) => filter.insert_many_at(keys, at, new)?,
            Self::Foreign { .. } => bail!("another system's filter is read-only here"),
        }
        Ok(())
    }

    /// Whether keys can be added: not to fixed lists, and to other systems' files only with `tamis add`.
    pub(crate) fn is_writable(&self) -> bool {
        matches!(
            self,
            Self::Ours(
                AnyFilter::Bloom(_)
                    | AnyFilter::Blocked(_)
                    | AnyFilter::Counting(_)
                    | AnyFilter::Cuckoo(_)
                    | AnyFilter::Growing(_)
                    | AnyFilter::Window(_)
            )
        )
    }

    /// Replaces its file atomically.
    pub(crate) fn save(&self, lock: &mut FileLock) -> Result<()> {
        match self {
            Self::Ours(filter) => {
                let path = lock.path().display().to_string();
                filter.save_under(lock).context(path)
            }
            Self::Foreign { .. } => bail!("another system's filter is read-only here"),
        }
    }

    /// Its description.
    pub(crate) fn about(&self) -> Value {
        match self {
            Self::Ours(filter) => {
                let mut about = about::to_json(&About::of(filter));
                if let Value::Object(about) = &mut about {
                    about.remove("sealed");
                    about.remove("seconds_to_live");
                    about.insert("lines".into(), page::lines(filter));
                }
                if let Some(window) = self.window() {
                    let now = Moment::now();
                    page::bring_up_to_date(&mut about["window"], window, now);
                }
                about
            }
            Self::Foreign { filter, keys, name } => {
                let mut about = Standing::of(filter).to_json(name.as_deref());
                about["kind"] = about["format"].take();
                about["keys_are"] = json!(keys.name());
                about
            }
        }
    }
}
