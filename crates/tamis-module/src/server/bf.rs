//! The commands on Bloom filters.

use super::api::{Call, Key, RawString};
use super::stats::{self, Counter};
use super::{both, chunks};
use super::{settings, types};
use crate::bloom::{Bloom, NewBloom};
use crate::error::Error;
use crate::filter::Filter;
use crate::words::Wish;

/// What a new filter is, from what was said and the module's options.
fn specified(wish: &Wish) -> Result<NewBloom, Error> {
    let layout = wish.layout.unwrap_or(super::default_layout());
    Ok(NewBloom {
        rate: wish.rate.unwrap_or_else(settings::bloom_rate),
        capacity: wish.capacity.unwrap_or_else(settings::bloom_size),
        expansion: wish.expansion.unwrap_or_else(settings::bloom_expansion),
        layout,
        hasher: super::hasher(wish, layout)?,
    })
}

/// A new filter, which is replicated with everything that makes it what it is:
/// a replica may have other options.
fn create(call: &Call<'_>, key: &mut Key<'_>, wish: &Wish) -> Result<(), Error> {
    let new = specified(wish)?;
    let limit = super::limit(call);
    // Before memory is taken: what any Bloom filter needs for this.
    let bits = -new.rate.ln() / std::f64::consts::LN_2.powi(2) * new.capacity as f64;
    if bits / 8.0 > limit as f64 {
        return Err(Error::LIMIT);
    }
    let filter = new.make()?;
    let words = [
        new.rate.to_string(),
        new.capacity.to_string(),
        "EXPANSION".to_owned(),
        new.expansion.to_string(),
    ];
    both::put(
        call,
        key,
        filter,
        ("BF.RESERVE", &words),
        (new.layout, &new.hasher),
    )?;
    call.notify("bloom.reserve");
    Ok(())
}

pub(super) fn reserve(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=16)?;
    let wish = Wish::bloom_reserve(&call.all_bytes(2))?;
    both::reserve::<Bloom>(call, &wish, create)
}

pub(super) fn add(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    let filter = both::filter_for::<Bloom>(call, &mut key, &Wish::default(), create)?;
    let new = filter.insert(call.bytes(2), super::limit(call))?;
    stats::count(Counter::BloomAdds, 1);
    if new {
        call.replicate("BF.ADD", &call.arguments()[1..]);
        call.notify("bloom.add");
    }
    call.reply_bool(new);
    Ok(())
}

pub(super) fn madd(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=usize::MAX)?;
    add_all(call, &Wish::default(), 2)
}

pub(super) fn insert(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=usize::MAX)?;
    let (wish, at) = Wish::bloom_insert(&call.all_bytes(2))?;
    add_all(call, &wish, 2 + at)
}

/// Adds the items from an argument on. Where one can't be added, the answer
/// ends with the error, and what was added before is replicated.
fn add_all(call: &Call<'_>, wish: &Wish, from: usize) -> Result<(), Error> {
    let mut key = call.open(1, true);
    let filter = both::filter_for::<Bloom>(call, &mut key, wish, create)?;
    let items = call.all_bytes(from);
    let mut new = vec![false; items.len()];
    let failed = filter
        .insert_many(&items, &mut new, super::limit(call))
        .err();
    let done = failed.as_ref().map_or(items.len(), |(at, _)| *at);
    stats::count(Counter::BloomAdds, done as u64);
    let names = &call.arguments()[from..];
    let added = names
        .iter()
        .zip(&new)
        .filter(|(_, new)| **new)
        .map(|(name, _)| *name);
    let added: Vec<RawString> = std::iter::once(call.arguments()[1]).chain(added).collect();
    if added.len() > 1 {
        call.replicate("BF.MADD", &added);
        call.notify("bloom.add");
    }
    call.reply_array(done + usize::from(failed.is_some()));
    new[..done].iter().for_each(|new| call.reply_bool(*new));
    if let Some((_, error)) = failed {
        call.reply_error(&error);
    }
    Ok(())
}

pub(super) fn exists(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, false);
    let found = match types::get::<Bloom>(&mut key)? {
        Some(filter) => filter.contains(call.bytes(2))?,
        None => false,
    };
    stats::count(Counter::BloomAsked, 1);
    stats::count(Counter::BloomHits, found.into());
    call.reply_bool(found);
    Ok(())
}

pub(super) fn mexists(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=usize::MAX)?;
    let mut key = call.open(1, false);
    let items = call.all_bytes(2);
    let mut found = vec![false; items.len()];
    if let Some(filter) = types::get::<Bloom>(&mut key)? {
        filter.contains_many(&items, &mut found)?;
    }
    stats::count(Counter::BloomAsked, items.len() as u64);
    stats::count(
        Counter::BloomHits,
        found.iter().filter(|found| **found).count() as u64,
    );
    call.reply_array(found.len());
    found.iter().for_each(|found| call.reply_bool(*found));
    Ok(())
}

pub(super) fn info(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=3)?;
    let mut key = call.open(1, false);
    let info = types::get::<Bloom>(&mut key)?
        .ok_or(Error::NOT_FOUND)?
        .info()?;
    let fields = [
        ("CAPACITY", "Capacity", Some(info.capacity)),
        ("SIZE", "Size", Some(info.bytes)),
        ("FILTERS", "Number of filters", Some(info.layers)),
        ("ITEMS", "Number of items inserted", Some(info.keys)),
        ("EXPANSION", "Expansion rate", info.expansion),
    ];
    let value = |value: Option<u64>| match value {
        Some(number) => call.reply_count(number),
        None => call.reply_null(),
    };
    if call.len() == 2 {
        call.reply_map(fields.len());
        for (_, name, number) in fields {
            call.reply_bytes(name.as_bytes());
            value(number);
        }
        return Ok(());
    }
    let word = call.bytes(2);
    if word.eq_ignore_ascii_case(b"ERROR") {
        both::reply_rate(call, info.rate);
        return Ok(());
    }
    let field = fields
        .iter()
        .find(|(known, ..)| word.eq_ignore_ascii_case(known.as_bytes()));
    let (_, name, number) = field.ok_or(Error::new("Invalid information value"))?;
    both::begin_field(call, name);
    value(*number);
    Ok(())
}

pub(super) fn card(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, false);
    let keys = match types::get::<Bloom>(&mut key)? {
        Some(filter) => filter.info()?.keys,
        None => 0,
    };
    call.reply_count(keys);
    Ok(())
}

pub(super) fn clear(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, true);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    *filter = filter.template()?;
    call.replicate_as_is();
    call.notify("bloom.clear");
    call.reply_ok();
    Ok(())
}

pub(super) fn merge(call: &Call<'_>) -> Result<(), Error> {
    both::merge::<Bloom>(call, "bloom.merge")
}

pub(super) fn scandump(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, false);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    filter.check()?;
    chunks::dump(call, filter, || call.reply_bytes(b""))
}

pub(super) fn loadchunk(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=4)?;
    chunks::load::<Bloom>(call, "bloom.load")
}
