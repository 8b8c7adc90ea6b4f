//! SCANDUMP and LOADCHUNK: dumping and loading filters in chunks.

use super::api::Call;
use super::types::{self, Value};
use crate::error::Error;
use crate::filter::Room as _;
use crate::loading::Loading;
use crate::words;
use std::ffi::CStr;

/// The same size as RedisBloom's.
const MOST_CHUNK: usize = 16 << 20;

pub(super) fn iterator(call: &Call<'_>, error: &'static str) -> Result<i64, Error> {
    words::integer(call.bytes(2), error)
}

/// Replies with the next iterator and chunk; at the end with 0 and `nothing`.
pub(super) fn dump<V: Value>(
    call: &Call<'_>,
    value: &V,
    iterator: i64,
    nothing: impl Fn(),
) -> Result<(), Error> {
    let at = u64::try_from(iterator).map_err(|_| Error::new("Second argument must be numeric"))?;
    let (next, chunk) = match at.checked_sub(1) {
        None => (1, value.dump_header()),
        Some(at) => match value.dump(at, MOST_CHUNK) {
            chunk if chunk.is_empty() => (0, chunk),
            chunk => (1 + at + chunk.len() as u64, chunk),
        },
    };
    call.reply_array(2);
    call.reply_count(next);
    match next {
        0 => nothing(),
        _ => call.reply_bytes(&chunk),
    }
    Ok(())
}

/// Takes the next chunk. The last one turns the key into a filter; until then, the key refuses every other command.
pub(super) fn load<V: Value>(call: &Call<'_>, iterator: i64, event: &CStr) -> Result<(), Error> {
    let data = call.bytes(3);
    let mut key = call.open(1, true);
    let mut value = types::get::<V>(&mut key)?;
    let is_whole = (value.as_mut()).is_some_and(|value| value.as_loading().is_none());
    let loading = match (iterator, value) {
        (1, _) if !is_whole => {
            let expected = V::expected(data)?;
            call.allows(expected)?;
            let loading = Loading::new(data, expected);
            if loading.is_whole() {
                // No bytes would follow, so this isn't a filter.
                return Err(Error::BAD_DATA);
            }
            match V::empty(data)? {
                // Zeros may follow, or nothing.
                Some(filter) => types::set(&mut key, filter),
                None => types::set(&mut key, V::loading(loading)),
            }
            call.replicate_as_is();
            call.reply_ok();
            return Ok(());
        }
        (_, None) => return Err(Error::NOT_FOUND),
        // Possibly a repeat of the last chunk, whose answer was lost.
        (end, Some(value)) if is_whole => {
            check_same(value, end, data)?;
            call.reply_ok();
            return Ok(());
        }
        (end, Some(value)) => {
            let loading = value.as_loading_mut().ok_or(Error::BAD_DATA)?;
            let end = u64::try_from(end).map_err(|_| Error::BAD_DATA)?;
            loading.push(end, data)?;
            loading
        }
    };
    if loading.is_whole() {
        match V::arrived(loading) {
            Ok(filter) => {
                types::set(&mut key, filter);
                call.notify(event);
            }
            Err(error) => {
                key.delete();
                call.replicate(c"DEL", &call.arguments()[1..2]);
                return Err(error);
            }
        }
    }
    call.replicate_as_is();
    call.reply_ok();
    Ok(())
}

/// Refuses a chunk for a complete filter, unless the filter has the same bytes there.
fn check_same<V: Value>(value: &V, end: i64, data: &[u8]) -> Result<(), Error> {
    let end = u64::try_from(end).map_err(|_| Error::BAD_DATA)?;
    let start = end.checked_sub(data.len() as u64).ok_or(Error::BAD_DATA)?;
    let held = match start.checked_sub(1) {
        Some(at) => value.dump(at, data.len()),
        None => return Err(Error::NO_LINK),
    };
    match held.len() {
        0 if !data.is_empty() => Err(Error::NO_LINK),
        len if len < data.len() => Err(Error::TOO_BIG),
        _ if held == data => Ok(()),
        _ => Err(Error::BAD_DATA),
    }
}
