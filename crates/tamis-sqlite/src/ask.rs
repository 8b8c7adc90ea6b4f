//! Functions that ask filters, and describe them.

use crate::key::{self, wrong};
use crate::open::{self, Kept};
use rusqlite::Result;
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tamis::{AnyFilter, Map};
use tamis_report::about::{About, to_json};

/// A file that was opened for this statement, and its key file.
struct Opened {
    filter: AnyFilter<Map>,
    key_file: Option<Vec<u8>>,
}

/// `tamis_check(file, key [, key file])`: whether the key may have been added.
pub(crate) fn check(ctx: &Context<'_>) -> Result<Option<bool>> {
    let key_file = match ctx.len() {
        3 => Some(ctx.get_raw(2)),
        _ => None,
    };
    if ctx.get_raw(0) == ValueRef::Null {
        return Ok(None);
    }
    // SQLite forgets it with the statement, or at once if the name is not constant in it.
    let is_same = |opened: &Arc<Opened>| {
        let bytes = key_file.map(|name| name.as_bytes().unwrap_or_default());
        opened.key_file.as_deref() == bytes
    };
    let opened = match ctx.get_aux::<Opened>(0)?.filter(is_same) {
        Some(opened) => opened,
        None => {
            let filter = open::map(ctx, 2)?;
            let key_file = key_file.map(|name| name.as_bytes().unwrap_or_default().to_vec());
            ctx.set_aux(0, Opened { filter, key_file })?
        }
    };
    let hash = key::hash(ctx, 1, opened.filter.hasher())?;
    Ok(hash.map(|hash| opened.filter.contains_hash(hash)))
}

/// `tamis_has(blob, key [, key file])`: whether the key may have been added to a filter in a blob.
pub(crate) fn has(
    kept: Kept,
) -> impl Fn(&Context<'_>) -> Result<Option<bool>> + Send + std::panic::UnwindSafe + 'static {
    move |ctx| {
        let bytes = match ctx.get_raw(0) {
            ValueRef::Null => return Ok(None),
            ValueRef::Blob(bytes) => bytes,
            other => return Err(wrong("filter", "a blob", other.data_type())),
        };
        let filter = kept.filter(ctx, bytes, 2)?;
        let hash = key::hash(ctx, 1, filter.hasher())?;
        Ok(hash.map(|hash| filter.contains_hash(hash)))
    }
}

/// `tamis_info(file or blob [, key file])`: what `tamis info --json` prints.
pub(crate) fn info(ctx: &Context<'_>) -> Result<Option<String>> {
    let about = match ctx.get_raw(0) {
        ValueRef::Null => return Ok(None),
        ValueRef::Blob(bytes) => About::of(&open::decode(ctx, bytes, 1)?),
        file => About::in_file(open::path(file, "filter")?, &open::map(ctx, 1)?),
    };
    Ok(Some(to_json(&about).to_string()))
}
