//! Filters: making, opening, describing, combining and freeing them, and single keys.

use crate::memory::{boxed, given, reply, reply_error};
use crate::wish::{planned, secret_at};
use std::fmt::Write as _;
use tamis::internals::raw::{HEADER_LEN, Header};
use tamis::{AnyFilter, Hash, Hasher, KeyCount, Open, internals::Draft, window::Span};

/// Creates what was wished for; 0 if it can't.
#[unsafe(no_mangle)]
pub extern "C" fn create() -> *mut AnyFilter {
    let filter = planned().and_then(|(plan, hasher)| AnyFilter::from_plan(&plan, hasher));
    boxed(reply_error(filter))
}

/// What JavaScript must know at once: the kind, whether URLs are normalised (bit 8), and how many values
/// a key has (from bit 16 on).
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn facts(filter: *const AnyFilter) -> u32 {
    // SAFETY: the caller's promise.
    let filter = unsafe { &*filter };
    let rule = filter.hasher().rule();
    filter.kind() as u32 | u32::from(rule.normalises_urls()) << 8 | (rule.values() as u32) << 16
}

/// How many bytes a file has, as its header says; -1 if that is none.
///
/// # Safety
/// As for [`draft`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn whole_length(
    header: *const u8,
    given_length: usize,
    secret: *const u8,
) -> f64 {
    // SAFETY: the caller's promise.
    let (header, secret) = unsafe { (given(header, given_length), secret_at(secret)) };
    let header = reply_error(Header::decode(header, secret.as_ref()));
    header.map_or(-1.0, |header| {
        (HEADER_LEN as u64 + header.body_len()) as f64
    })
}

/// Begins to open a filter of `length` bytes, of which the first 128 have come; 0 if it can't be one.
///
/// # Safety
/// - At `header` are `given_length` bytes.
/// - At `secret`, if that is not 0, are 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn draft(
    header: *const u8,
    given_length: usize,
    length: f64,
    secret: *const u8,
    accept_loss: bool,
) -> *mut Draft {
    let mut open = Open::new();
    // SAFETY: the caller's promise.
    let (header, secret) = unsafe { (given(header, given_length), secret_at(secret)) };
    if let Some(secret) = secret {
        open = open.key(secret);
    }
    if accept_loss {
        open = open.accept_loss();
    }
    boxed(reply_error(open.draft(header, length as u64)))
}

/// Where the body goes.
///
/// # Safety
/// `draft` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn draft_body(draft: *mut Draft) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { (*draft).body_mut() }.as_mut_ptr()
}

/// How long it is.
///
/// # Safety
/// `draft` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn draft_body_length(draft: *mut Draft) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*draft).body_mut() }.len()
}

/// The filter whose body has come; 0 if it is another. The draft is gone.
///
/// # Safety
/// `draft` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn draft_finish(draft: *mut Draft) -> *mut AnyFilter {
    // SAFETY: the caller's promise.
    let draft = unsafe { Box::from_raw(draft) };
    boxed(reply_error(draft.verified()))
}

/// Frees a draft that will not be finished.
///
/// # Safety
/// `draft` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn draft_free(draft: *mut Draft) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(draft) });
}

/// Frees a filter.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn filter_free(filter: *mut AnyFilter) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(filter) });
}

/// Whether the key may have been added. `exact` is a number, which no rule changes.
///
/// # Safety
/// - `filter` is one.
/// - At `at` are `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn has(
    filter: *const AnyFilter,
    at: *const u8,
    len: usize,
    exact: bool,
) -> bool {
    // SAFETY: the caller's promise.
    let (filter, key) = unsafe { (&*filter, given(at, len)) };
    filter.contains(hash(filter.hasher(), key, exact))
}

/// Adds a key: 1 if it was new, 0 if not, -1 if it can't be added.
///
/// # Safety
/// As for [`has`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn add(
    filter: *mut AnyFilter,
    at: *const u8,
    len: usize,
    exact: bool,
) -> i32 {
    // SAFETY: the caller's promise.
    let (filter, key) = unsafe { (&mut *filter, given(at, len)) };
    let new = filter.insert(hash(filter.hasher(), key, exact));
    reply_error(new).map_or(-1, i32::from)
}

#[inline]
fn hash(hasher: &Hasher, key: &[u8], exact: bool) -> Hash {
    if exact {
        hasher.hash_exact(key)
    } else {
        hasher.hash(key)
    }
}

/// A copy; 0 if there is no memory for it.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy(filter: *const AnyFilter) -> *mut AnyFilter {
    // SAFETY: the caller's promise.
    boxed(reply_error(unsafe { &*filter }.duplicate()))
}

/// Removes all keys; whether it could.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clear(filter: *mut AnyFilter) -> bool {
    // SAFETY: the caller's promise.
    reply_error(unsafe { &mut *filter }.clear()).is_some()
}

/// Adds all keys of another filter; whether it could.
///
/// # Safety
/// The two are different filters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unite(filter: *mut AnyFilter, other: *const AnyFilter) -> bool {
    // SAFETY: the caller's promise.
    let (filter, other) = unsafe { (&mut *filter, &*other) };
    reply_error(filter.union_with(other)).is_some()
}

/// Leaves the 128 bytes of the header, and behind them where each part of the body lies and its length, as
/// pairs of little-endian 32-bit numbers: JavaScript copies them from there.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parts(filter: *const AnyFilter) {
    // SAFETY: the caller's promise.
    let filter = unsafe { &*filter };
    let mut out = Vec::with_capacity(HEADER_LEN + 64);
    out.extend_from_slice(&filter.sealed_header().encode());
    for part in filter.body() {
        for number in [part.as_ptr() as usize, size_of_val(part)] {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
    }
    reply(out);
}

/// Leaves as JSON what a filter is and holds.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn info(filter: *const AnyFilter) {
    // SAFETY: the caller's promise.
    let filter = unsafe { &*filter };
    let (hasher, keys) = (filter.hasher(), filter.keys());
    let rule = hasher.rule();
    let mut json = format!(
        r#"{{"kind":"{}","keys":{},"counted":{},"capacity":{},"rate":{:e},"rateNow":{:e},"bytes":{},"#,
        filter.kind(),
        keys.get(),
        matches!(keys, KeyCount::Counted(_)),
        filter.capacity(),
        filter.rate(),
        filter.rate_now(),
        filter.bytes(),
    );
    let (seed, keyed, apart) = match hasher {
        Hasher::Fast { seed, .. } => (*seed, false, false),
        Hasher::Keyed { in_file, .. } => (0, true, !in_file),
        _ => (0, false, false),
    };
    // Writing to a String can't fail. The seed is text: not every one is a number of JavaScript.
    let _ = write!(
        json,
        r#""hash":"{}","seed":"{seed}","keyed":{keyed},"apart":{apart},"ignoreCase":{},"url":{},"values":{}"#,
        hasher.name(),
        rule.ignores_case(),
        rule.normalises_urls(),
        rule.values(),
    );
    if let AnyFilter::Window(window) = filter {
        let options = window.options();
        let (unit, span) = match options.span() {
            Span::Time(span) => ("within", span.as_micros() as f64 / 1000.0),
            Span::Keys(keys) => ("last", keys as f64),
        };
        let latest = window.latest().map(|at| at.micros() as f64 / 1000.0);
        let _ = write!(
            json,
            r#","{unit}":{span},"generations":{},"quiet":{},"latest":{}"#,
            options.generation_count(),
            matches!(options.renewed(), tamis::window::Renewal::Quiet),
            latest.map_or("null".to_owned(), |latest| latest.to_string()),
        );
    }
    json.push('}');
    reply(json);
}
