//! What BF.* and CF.* do alike.

use super::api::{Call, Key, NewString, RawString};
use super::types::{self, Value};
use crate::error::Error;
use crate::words::{Layout, Wish};
use tamis::Hasher;

/// Makes a key a new filter, which is replicated with everything that makes it
/// what it is: a replica may have other options.
pub(super) fn put<V: Value>(
    call: &Call<'_>,
    key: &mut Key<'_>,
    filter: V,
    (command, words): (&str, &[String]),
    (layout, hasher): (Layout, &Hasher),
) -> Result<(), Error> {
    if filter.bytes()? > super::limit(call) {
        return Err(Error::LIMIT);
    }
    types::set(key, filter);
    let words = words.iter().map(|word| call.string(word.as_bytes()));
    let words: Vec<NewString> = words.chain(super::made(call, layout, hasher)).collect();
    let key_name = call.arguments()[1];
    let all: Vec<RawString> = std::iter::once(key_name)
        .chain(words.iter().map(|word| word.0))
        .collect();
    call.replicate(command, &all);
    Ok(())
}

/// A filter of that key is made, unless there is one.
pub(super) fn reserve<V: Value>(
    call: &Call<'_>,
    wish: &Wish,
    create: impl Fn(&Call<'_>, &mut Key<'_>, &Wish) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut key = call.open(1, true);
    match types::get::<V>(&mut key)? {
        Some(_) if wish.if_missing => {}
        Some(_) => return Err(Error::EXISTS),
        None => create(call, &mut key, wish)?,
    }
    call.reply_ok();
    Ok(())
}

/// The filter of a key that is created if need be.
pub(super) fn filter_for<'k, V: Value>(
    call: &Call<'_>,
    key: &'k mut Key<'_>,
    wish: &Wish,
    create: impl Fn(&Call<'_>, &mut Key<'_>, &Wish) -> Result<(), Error>,
) -> Result<&'k mut V, Error> {
    if types::get::<V>(key)?.is_none() {
        if wish.no_create {
            return Err(Error::NOT_FOUND);
        }
        create(call, key, wish)?;
    }
    let filter = types::get::<V>(key)?.ok_or(Error::NOT_FOUND)?;
    filter.check()?;
    Ok(filter)
}

/// The key becomes the union of itself, if it is there, and the others.
pub(super) fn merge<V: Value>(call: &Call<'_>, event: &str) -> Result<(), Error> {
    call.expect(3..=usize::MAX)?;
    let mut merged = {
        let mut key = call.open(1, false);
        types::get::<V>(&mut key)?
            .map(|filter| filter.duplicate())
            .transpose()?
    };
    for source in 2..call.len() {
        if call.bytes(source) == call.bytes(1) {
            continue;
        }
        let mut key = call.open(source, false);
        let filter = types::get::<V>(&mut key)?.ok_or(Error::NOT_FOUND)?;
        filter.check()?;
        match &mut merged {
            Some(merged) => merged.union_with(filter)?,
            None => merged = Some(filter.duplicate()?),
        }
    }
    let merged = merged.ok_or(Error::NOT_FOUND)?;
    merged.check()?;
    if merged.bytes()? > super::limit(call) {
        return Err(Error::LIMIT);
    }
    let mut key = call.open(1, true);
    match types::get::<V>(&mut key)? {
        Some(filter) => *filter = merged,
        None => types::set(&mut key, merged),
    }
    call.replicate_as_is();
    call.notify(event);
    call.reply_ok();
    Ok(())
}

/// Begins the answer to INFO of a single field; its value follows.
pub(super) fn begin_field(call: &Call<'_>, name: &str) {
    match call.is_resp3() {
        true => {
            call.reply_map(1);
            call.reply_bytes(name.as_bytes());
        }
        false => call.reply_array(1),
    }
}

/// The promised rate, which INFO tells when it is asked for.
pub(super) fn reply_rate(call: &Call<'_>, rate: f64) {
    begin_field(call, "Error rate");
    call.reply_bytes(rate.to_string().as_bytes());
}
