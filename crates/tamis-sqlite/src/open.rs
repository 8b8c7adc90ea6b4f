//! Opens filters from files and blobs.

use crate::key::{error, wrong};
use rusqlite::Result;
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tamis::{
    AnyFilter, Hash, Hasher, Open, SecretKey,
    body::{Body, Map},
};

/// A file name.
pub(crate) fn path<'a>(value: ValueRef<'a>, what: &str) -> Result<&'a Path> {
    match value {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map(Path::new).map_err(error),
        other => Err(wrong(what, "the name of a file", other.data_type())),
    }
}

/// Options for opening filters whose secret is in a key file, if an argument names one.
fn options(ctx: &Context<'_>, key_file: usize) -> Result<Open> {
    if ctx.len() <= key_file {
        return Ok(Open::new());
    }
    let key = SecretKey::load(path(ctx.get_raw(key_file), "key file")?).map_err(error)?;
    Ok(Open::new().key(key))
}

/// Queries with a single value would always get "no" if keys have several.
fn check_values<B: Body>(filter: AnyFilter<B>) -> Result<AnyFilter<B>> {
    match filter.hasher().rule().values() {
        1 => Ok(filter),
        values => Err(error(format!(
            "the filter's keys are made of {values} values each, and SQL can ask only for keys of one; \
             use `tamis check`"
        ))),
    }
}

/// The file named by the first argument, mapped.
pub(crate) fn map(ctx: &Context<'_>, key_file: usize) -> Result<AnyFilter<Map>> {
    let path = path(ctx.get_raw(0), "filter")?;
    let filter = options(ctx, key_file)?
        .open(path)
        .map_err(|e| named(path, e))?;
    check_values(filter)
}

/// The library only names the file in system errors.
fn named(path: &Path, e: tamis::Error) -> rusqlite::Error {
    match e {
        tamis::Error::Io { .. } | tamis::Error::Busy { .. } | tamis::Error::Unclean { .. } => {
            error(e)
        }
        e => error(format!("{}: {e}", path.display())),
    }
}

/// The filter in a blob, copied.
pub(crate) fn decode(ctx: &Context<'_>, bytes: &[u8], key_file: usize) -> Result<AnyFilter> {
    check_values(options(ctx, key_file)?.from_bytes(bytes).map_err(error)?)
}

/// How many filters from blobs a connection caches, so that those of a few columns are only copied once.
const KEPT: usize = 4;

/// Filters from blobs, latest first. They are recognised by all their bytes: a truncated or damaged blob has the same
/// header as the complete one.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<VecDeque<Known>>>);

struct Known {
    key: Key,
    filter: Arc<AnyFilter>,
}

/// The length and the hash of a blob, and the key file.
#[derive(Clone, PartialEq)]
struct Key {
    length: usize,
    hash: Hash,
    key_file: Option<Vec<u8>>,
}

impl Kept {
    /// The filter in a blob, copied and checked unless cached.
    pub(crate) fn filter(
        &self,
        ctx: &Context<'_>,
        bytes: &[u8],
        key_file: usize,
    ) -> Result<Arc<AnyFilter>> {
        let key_file_name = match ctx.len() > key_file {
            true => Some(ctx.get_raw(key_file).as_bytes().map_err(error)?.to_vec()),
            false => None,
        };
        let key = Key {
            length: bytes.len(),
            hash: Hasher::default().hash(bytes),
            key_file: key_file_name,
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|known| known.key == key) {
            kept.swap(0, at);
            return Ok(Arc::clone(&kept[0].filter));
        }
        let filter = Arc::new(decode(ctx, bytes, key_file)?);
        kept.truncate(KEPT - 1);
        kept.push_front(Known {
            key,
            filter: Arc::clone(&filter),
        });
        Ok(filter)
    }
}
