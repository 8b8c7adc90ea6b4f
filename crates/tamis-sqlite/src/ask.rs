//! Functions that query and describe filters.

use crate::key::{self, wrong};
use crate::open::{self, Kept};
use rusqlite::Result;
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tamis::{
    AnyFilter, Hash, Moment,
    body::{Body, Map},
};
use tamis_report::about::{About, to_json};

/// A filter opened for this statement, and its key file.
struct Opened<F> {
    filter: F,
    key_file: Option<Vec<u8>>,
}

impl<F: Send + Sync + 'static> Opened<F> {
    /// The filter in the first argument, opened with `open` if it isn't open yet. SQLite drops it with the statement,
    /// or at once if the argument isn't constant.
    fn of(ctx: &Context<'_>, open: impl FnOnce() -> Result<F>) -> Result<Arc<Self>> {
        let key_file = match ctx.len() {
            3 => Some(ctx.get_raw(2).as_bytes().unwrap_or_default()),
            _ => None,
        };
        let is_same = |opened: &Arc<Self>| opened.key_file.as_deref() == key_file;
        if let Some(opened) = ctx.get_aux::<Self>(0)?.filter(is_same) {
            return Ok(opened);
        }
        let (filter, key_file) = (open()?, key_file.map(<[u8]>::to_vec));
        ctx.set_aux(0, Self { filter, key_file })
    }
}

/// Queries as of now, which only matters for windows: the clock's time, but not before the latest key, so that a clock
/// that was set back loses nothing.
fn contains<B: Body>(filter: &AnyFilter<B>, hash: Hash) -> bool {
    match filter {
        AnyFilter::Window(window) => {
            let now = Moment::now().max(window.latest().unwrap_or(Moment::MIN));
            window.contains(hash, now)
        }
        other => other.contains(hash),
    }
}

/// `tamis_check(file, key [, key file])`: whether the key may have been added.
pub(crate) fn check(ctx: &Context<'_>) -> Result<Option<bool>> {
    if ctx.get_raw(0) == ValueRef::Null {
        return Ok(None);
    }
    let opened: Arc<Opened<AnyFilter<Map>>> = Opened::of(ctx, || open::map(ctx, 2))?;
    let hash = key::hash(ctx, 1, opened.filter.hasher())?;
    Ok(hash.map(|hash| contains(&opened.filter, hash)))
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
        let opened = Opened::of(ctx, || kept.filter(ctx, bytes, 2))?;
        let filter = &opened.filter;
        let hash = key::hash(ctx, 1, filter.hasher())?;
        Ok(hash.map(|hash| contains(filter, hash)))
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
