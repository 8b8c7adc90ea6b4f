//! Shared by BF.* and CF.* commands.

use super::api::{Call, Key, NewString, now};
use super::counters;
use super::types::{self, Value};
use crate::error::Error;
use crate::filter::Room as _;
use crate::words::{FilterLayout, Wish};
use std::ffi::CStr;
use tamis::Hasher;

/// Sets a key to a new filter. It is replicated with all its parameters, because a replica may have other options.
pub(super) fn put<V: Value>(
    call: &Call<'_>,
    key: &mut Key<'_>,
    filter: V,
    (command, words): (&CStr, &[Vec<u8>]),
    (layout, hasher): (FilterLayout, &Hasher),
) -> Result<(), Error> {
    call.allows(filter.bytes()?)?;
    types::set(key, filter);
    let words = words.iter().map(|word| call.string(word));
    let words: Vec<NewString> = words.chain(super::made(call, layout, hasher)).collect();
    replicate(call, command, &words);
    Ok(())
}

/// Replicates a command on the key of this call.
fn replicate(call: &Call<'_>, command: &CStr, words: &[NewString]) {
    let mut all = vec![call.arguments()[1]];
    all.extend(words.iter().map(NewString::get));
    call.replicate(command, &all);
}

fn replicate_expiry(call: &Call<'_>, at: i64) {
    let at = call.string(at.to_string().as_bytes());
    replicate(call, c"PEXPIREAT", &[at]);
}

/// Replicates a filter of RedisBloom's layout made by a command that RedisBloom doesn't know, as the chunks that load
/// it. For an empty filter the first chunk is enough.
fn replicate_whole<V: Value>(
    call: &Call<'_>,
    filter: &V,
    expiry: Option<i64>,
) -> Result<(), Error> {
    call.replicate(c"DEL", &call.arguments()[1..2]);
    let send = |iterator: u64, data: &[u8]| {
        let words = [
            call.string(iterator.to_string().as_bytes()),
            call.string(data),
        ];
        replicate(call, V::LOADCHUNK, &words);
    };
    let header = filter.dump_header();
    send(1, &header);
    if V::empty(&header)?.is_none() {
        types::pieces(filter, |end, piece| send(1 + end, piece));
    }
    if let Some(at) = expiry {
        replicate_expiry(call, at);
    }
    Ok(())
}

/// Replicates a command that only Tamis's module knows, or its effect.
pub(super) fn replicate_change<V: Value>(
    call: &Call<'_>,
    filter: &V,
    expiry: Option<i64>,
) -> Result<(), Error> {
    match filter.layout() {
        FilterLayout::RedisBloom => replicate_whole(call, filter, expiry),
        FilterLayout::Tamis | FilterLayout::Valkey => {
            call.replicate_as_is();
            Ok(())
        }
    }
}

/// Creates a filter for the key, unless there is one.
pub(super) fn reserve<V: Value>(
    call: &Call<'_>,
    wish: &Wish,
    create: impl Fn(&Call<'_>, &mut Key<'_>, &Wish) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut key = call.open(1, true);
    match types::get::<V>(&mut key)? {
        Some(_) if wish.if_missing => {}
        Some(_) => return Err(Error::EXISTS),
        None => {
            create(call, &mut key, wish)?;
            if let Some(seconds) = wish.expire {
                let at = now().saturating_add_unsigned(seconds * 1000);
                key.expire_at(at);
                replicate_expiry(call, at);
            }
        }
    }
    call.reply_ok();
    Ok(())
}

/// The filter of a key, created if needed.
pub(super) fn filter_for<'k, V: Value>(
    call: &Call<'_>,
    key: &'k mut Key<'_>,
    wish: &Wish,
    create: impl Fn(&Call<'_>, &mut Key<'_>, &Wish) -> Result<(), Error>,
) -> Result<&'k mut V, Error> {
    // Reads the value first: nearly always there is one.
    let filter = match types::value::<V>(key)? {
        Some(filter) => filter,
        None if wish.no_create => return Err(Error::NOT_FOUND),
        None => {
            create(call, key, wish)?;
            types::value::<V>(key)?.ok_or(Error::NOT_FOUND)?
        }
    };
    // SAFETY: the value of an open key, which nobody else uses.
    let filter = unsafe { &mut *filter.as_ptr() };
    filter.check()?;
    Ok(filter)
}

/// Sets the key to the union of itself, if it exists, and the others.
pub(super) fn merge<V: Value>(call: &Call<'_>, event: &CStr) -> Result<(), Error> {
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
    call.allows(merged.bytes()?)?;
    let mut key = call.open(1, true);
    replicate_change(call, &merged, key.expiry())?;
    match types::get::<V>(&mut key)? {
        Some(filter) => *filter = merged,
        None => types::set(&mut key, merged),
    }
    call.notify(event);
    call.reply_ok();
    Ok(())
}

/// Answers for the first item after the key.
pub(super) fn exists<V: Value>(
    call: &Call<'_>,
    answer: impl FnOnce(&V, &[u8]) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut key = call.open(1, false);
    let found = match types::get::<V>(&mut key)? {
        Some(filter) => answer(filter, call.bytes(2))?,
        None => false,
    };
    counters::count(V::ASKED, 1);
    counters::count(V::HITS, found.into());
    call.reply_bool(found);
    Ok(())
}

/// Answers for all items after the key.
pub(super) fn mexists<V: Value>(
    call: &Call<'_>,
    answer: impl FnOnce(&V, &[&[u8]], &mut [bool]) -> Result<(), Error>,
) -> Result<(), Error> {
    call.expect(3..=usize::MAX)?;
    let items = call.all_bytes(2);
    let mut found = vec![false; items.len()];
    let mut key = call.open(1, false);
    if let Some(filter) = types::get::<V>(&mut key)? {
        answer(filter, &items, &mut found)?;
    }
    let hits = found.iter().filter(|found| **found).count();
    counters::count(V::ASKED, items.len() as u64);
    counters::count(V::HITS, hits as u64);
    call.reply_array(found.len());
    found.iter().for_each(|found| call.reply_bool(*found));
    Ok(())
}

pub(super) fn count<V: Value>(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, false);
    let count = match types::get::<V>(&mut key)? {
        Some(filter) => filter.count(call.bytes(2))?,
        None => 0,
    };
    call.reply_count(count);
    Ok(())
}

pub(super) fn remove<V: Value>(call: &Call<'_>, filter: &mut V, event: &CStr) -> Result<(), Error> {
    let removed = filter.remove(call.bytes(2))?;
    if removed {
        call.replicate_as_is();
        call.notify(event);
    }
    call.reply_bool(removed);
    Ok(())
}

/// Starts the INFO reply for a single field; its value follows.
pub(super) fn begin_field(call: &Call<'_>, name: &CStr) {
    if call.is_resp3() {
        call.reply_map(1);
        call.reply_name(name);
    } else {
        call.reply_array(1);
    }
}

/// A share between 0 and 1, which INFO only reports if asked for.
pub(super) fn reply_rate(call: &Call<'_>, name: &CStr, rate: Option<f64>) {
    begin_field(call, name);
    match rate {
        Some(rate) => call.reply_bytes(rate.to_string().as_bytes()),
        None => call.reply_null(),
    }
}

/// Formats a number like C's `%g`: with six digits.
pub(super) fn shortest(number: f64) -> String {
    let rounded = format!("{number:.5e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    match exponent {
        -4..=5 => rounded.parse::<f64>().unwrap_or(number).to_string(),
        _ => format!(
            "{digits}e{}{:02}",
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        ),
    }
}
