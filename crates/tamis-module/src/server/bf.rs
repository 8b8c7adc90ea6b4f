//! The commands on Bloom filters.

use super::api::{Call, Key};
use super::counters::{self, Counter};
use super::{both, chunks};
use super::{settings, types, window};
use crate::bloom::{Bloom, NewBloom};
use crate::error::Error;
use crate::filter::{Filter, Room};
use crate::window::contains_many;
use crate::words::{FilterLayout, Wish, moment};
use std::ffi::CStr;
use tamis_formats::valkeybloom;

/// The parameters of a new filter, from the command and the module's options.
fn specified(call: &Call<'_>, wish: &Wish) -> Result<NewBloom, Error> {
    if wish.counting {
        super::refuse_unreadable(call, wish, "COUNTING")?;
    }
    let layout = match (wish.seed, wish.counting || wish.window.is_some()) {
        (Some(_), _) => FilterLayout::Valkey,
        // RedisBloom has no filters that count or forget.
        (None, true) => FilterLayout::Tamis,
        (None, false) => wish.layout.unwrap_or_else(|| super::default_layout(call)),
    };
    let rate = wish.rate.unwrap_or_else(|| settings::BF_RATE.get());
    Ok(NewBloom {
        // The limit of RedisBloom. Its older versions don't apply it, so the limited rate is replicated.
        rate: match layout {
            FilterLayout::RedisBloom => rate.min(0.25),
            _ => rate,
        },
        capacity: wish
            .capacity
            .unwrap_or_else(|| settings::BF_SIZE.get() as u64),
        expansion: match (wish.fixed, wish.expansion) {
            (true, None | Some(1..)) => None,
            (_, times) => Some(times.unwrap_or_else(|| settings::BF_EXPANSION.get() as u32)),
        },
        counting: wish.counting,
        window: wish.window,
        layout,
        hasher: super::hasher(wish, layout)?,
        seed: wish.seed.unwrap_or_default(),
        tightening: wish.tightening.unwrap_or(0.5),
    })
}

/// The arguments that create the same filter on a replica.
fn words(new: &NewBloom) -> (&'static CStr, Vec<Vec<u8>>) {
    let text = |word: &str| word.as_bytes().to_vec();
    let growth = match (new.expansion, new.counting, &new.window) {
        (_, _, Some(options)) => window::words(options),
        (_, true, None) => vec![text("COUNTING")],
        (Some(times), false, None) if times > 0 || new.layout == FilterLayout::RedisBloom => {
            vec![text("EXPANSION"), text(&times.to_string())]
        }
        (_, false, None) => vec![text("NONSCALING")],
    };
    let (rate, capacity) = (text(&new.rate.to_string()), text(&new.capacity.to_string()));
    match new.layout {
        FilterLayout::Tamis | FilterLayout::RedisBloom => {
            (c"BF.RESERVE", [vec![rate, capacity], growth].concat())
        }
        FilterLayout::Valkey => {
            let tightening = text(&new.tightening.to_string());
            let seed = new.seed.to_vec();
            let words = vec![text("CAPACITY"), capacity, text("ERROR"), rate];
            let theirs = vec![text("TIGHTENING"), tightening, text("SEED"), seed];
            (c"BF.INSERT", [words, theirs, growth].concat())
        }
    }
}

/// Creates a filter. It is replicated with all its parameters, because a replica may have other options.
fn create(call: &Call<'_>, key: &mut Key<'_>, wish: &Wish) -> Result<(), Error> {
    let new = specified(call, wish)?;
    match &new.window {
        Some(options) => window::not_ahead(call, options, wish.at)?,
        None if wish.at.is_some() => return Err(Error::NO_WINDOW),
        None => {}
    }
    // Before allocating, checks the memory that any Bloom filter of this size needs.
    let least = |keys: u64| {
        let bits = -new.rate.ln() / std::f64::consts::LN_2.powi(2) * keys as f64;
        (bits / 8.0) as u64
    };
    call.allows(least(new.capacity))?;
    if let Some(keys) = wish.scale_to {
        let text = "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit";
        call.allows(least(keys)).map_err(|_| Error::new(text))?;
    }
    let filter = new.make()?;
    let (command, words) = words(&new);
    both::put(
        call,
        key,
        filter,
        (command, &words),
        (new.layout, &new.hasher),
    )?;
    call.notify(c"bloom.reserve");
    Ok(())
}

pub(super) fn reserve(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=20)?;
    let wish = Wish::bloom_reserve(&call.all_bytes(2))?;
    both::reserve::<Bloom>(call, &wish, create)
}

pub(super) fn add(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    let filter = both::filter_for::<Bloom>(call, &mut key, &Wish::default(), create)?;
    if let Bloom::Window(window) = filter {
        let new = window::add(call, window, None, 2)?;
        call.reply_bool(new[0]);
        return Ok(());
    }
    let new = filter.insert(call.bytes(2), call)?;
    counters::count(Counter::BloomAdds, 1);
    if new || filter.counts() {
        call.replicate_as_is();
        call.notify(c"bloom.add");
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
    let (wish, items) = Wish::bloom_insert(&call.all_bytes(2))?;
    add_all(call, &wish, 2 + items)
}

/// Adds the items from an argument on. If one can't be added, the answer ends with the error, and the items before it
/// are replicated.
fn add_all(call: &Call<'_>, wish: &Wish, from: usize) -> Result<(), Error> {
    let mut key = call.open(1, true);
    let filter = both::filter_for::<Bloom>(call, &mut key, wish, create)?;
    if wish.at.is_some() && !matches!(filter, Bloom::Window(_)) {
        return Err(Error::NO_WINDOW);
    }
    if let Bloom::Window(window) = filter {
        let new = window::add(call, window, wish.at, from)?;
        call.reply_array(new.len());
        new.iter().for_each(|new| call.reply_bool(*new));
        return Ok(());
    }
    let items = call.all_bytes(from);
    let mut new = vec![false; items.len()];
    let failed = filter.insert_many(&items, &mut new, call).err();
    let done = failed.as_ref().map_or(items.len(), |(at, _)| *at);
    counters::count(Counter::BloomAdds, done as u64);
    let names = &call.arguments()[from..][..done];
    let all = filter.counts();
    let mut added = vec![call.arguments()[1]];
    let of_replica = names.iter().zip(&new).filter(|(_, new)| all || **new);
    added.extend(of_replica.map(|(name, _)| *name));
    if added.len() == call.len() - 1 {
        // All arguments, so this was BF.MADD.
        call.replicate_as_is();
    } else if added.len() > 1 {
        call.replicate(c"BF.MADD", &added);
    }
    if added.len() > 1 {
        call.notify(c"bloom.add");
    }
    call.reply_array(done + usize::from(failed.is_some()));
    new[..done].iter().for_each(|new| call.reply_bool(*new));
    if let Some((_, error)) = failed {
        call.reply_error(&error);
    }
    Ok(())
}

/// With AT after the item, as of the given time.
pub(super) fn exists(call: &Call<'_>) -> Result<(), Error> {
    let told = match call.len() {
        5 if call.bytes(3).eq_ignore_ascii_case(b"AT") => Some(moment(call.bytes(4))?),
        _ => {
            call.expect(3..=3)?;
            None
        }
    };
    both::exists(call, |filter: &Bloom, item| match (filter, told) {
        (Bloom::Window(window), told) => {
            let at = told.unwrap_or_else(|| window::now(call, window));
            let mut found = [false];
            contains_many(window, &[item], at, &mut found);
            Ok(found[0])
        }
        (_, Some(_)) => Err(Error::NO_WINDOW),
        (filter, None) => filter.contains(item),
    })
}

pub(super) fn mexists(call: &Call<'_>) -> Result<(), Error> {
    both::mexists(call, |filter: &Bloom, items, found| match filter {
        Bloom::Window(window) => {
            contains_many(window, items, window::now(call, window), found);
            Ok(())
        }
        filter => filter.contains_many(items, found),
    })
}

pub(super) fn info(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=3)?;
    let mut key = call.open(1, false);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    let mut info = filter.info()?;
    info.keys = keys_now(call, filter)?;
    let structs = match info.layout {
        // RedisBloom includes its own structures: one per filter, and one per layer.
        FilterLayout::RedisBloom => 32 + 64 * info.layers,
        FilterLayout::Tamis | FilterLayout::Valkey => 0,
    };
    let fields = [
        ("CAPACITY", c"Capacity", Some(info.capacity)),
        ("SIZE", c"Size", Some(info.bytes + structs)),
        ("FILTERS", c"Number of filters", Some(info.layers)),
        ("ITEMS", c"Number of items inserted", Some(info.keys)),
        ("EXPANSION", c"Expansion rate", info.expansion),
    ];
    let value = |value: Option<u64>| match value {
        Some(number) => call.reply_count(number),
        None => call.reply_null(),
    };
    if call.len() == 2 {
        call.reply_map(fields.len());
        for (_, name, number) in fields {
            call.reply_name(name);
            value(number);
        }
        return Ok(());
    }
    let word = call.bytes(2);
    let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
    if is("WINDOW") {
        let Bloom::Window(window) = filter else {
            return Err(Error::NO_WINDOW);
        };
        window::info(call, window);
    } else if is("ERROR") {
        both::reply_rate(call, c"Error rate", Some(info.rate));
    } else if is("TIGHTENING") {
        both::reply_rate(call, c"Tightening ratio", info.tightening);
    } else if is("MAXSCALEDCAPACITY") {
        // Scaling only ends with memory.
        both::begin_field(call, c"Max scaled capacity");
        value((info.expansion.is_none()).then_some(info.capacity));
    } else {
        let field = fields.iter().find(|(known, ..)| is(known));
        let (_, name, number) = field.ok_or(Error::new("Invalid information value"))?;
        both::begin_field(call, name);
        value(*number);
    }
    Ok(())
}

pub(super) fn card(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, false);
    let keys = match types::get::<Bloom>(&mut key)? {
        Some(filter) => keys_now(call, filter)?,
        None => 0,
    };
    call.reply_count(keys);
    Ok(())
}

/// The number of items that were new; for a window, of those it remembers.
fn keys_now(call: &Call<'_>, filter: &Bloom) -> Result<u64, Error> {
    match filter {
        Bloom::Window(window) => Ok(window.keys_at(window::now(call, window))),
        other => Ok(other.info()?.keys),
    }
}

pub(super) fn clear(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, true);
    let expiry = key.expiry();
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    let full = std::mem::replace(filter, filter.template()?);
    both::replicate_change(call, filter, expiry)?;
    types::drop_beside(full);
    call.notify(c"bloom.clear");
    call.reply_ok();
    Ok(())
}

pub(super) fn merge(call: &Call<'_>) -> Result<(), Error> {
    both::merge::<Bloom>(call, c"bloom.merge")
}

pub(super) fn remove(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    both::remove(call, filter, c"bloom.remove")
}

pub(super) fn count(call: &Call<'_>) -> Result<(), Error> {
    both::count::<Bloom>(call)
}

/// RedisBloom's report on each layer, in its words.
pub(super) fn debug(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, false);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    let info = filter.info()?;
    if let Bloom::Window(window) = filter {
        let lines = window::debug(call, window);
        call.reply_array(lines.len());
        lines
            .iter()
            .for_each(|line| call.reply_bytes(line.as_bytes()));
        return Ok(());
    }
    let layers = match filter {
        Bloom::RedisBloom(chain) => chain.layer_numbers().collect(),
        _ => vec![(
            [info.bytes, 8 * info.bytes, 0, info.capacity, info.keys],
            info.rate,
        )],
    };
    call.reply_array(1 + layers.len());
    call.reply_bytes(format!("size:{}", info.keys).as_bytes());
    for ([bytes, bits, hashes, capacity, keys], rate) in layers {
        let rate = both::shortest(rate);
        let text = format!(
            "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 \
             capacity:{capacity} size:{keys} ratio:{rate}"
        );
        call.reply_bytes(text.as_bytes());
    }
    Ok(())
}

/// Loads a filter as valkey-bloom writes it to an append-only file.
pub(super) fn load(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    if types::get::<Bloom>(&mut key)?.is_some() {
        return Err(Error::new("BUSYKEY Target key name already exists."));
    }
    let data = call.bytes(2);
    call.allows(data.len() as u64)?;
    let chain = valkeybloom::Chain::of_load(data);
    let chain = chain.map_err(|_| Error::new("ERR bloom object decoding failed"))?;
    types::set(&mut key, Bloom::Valkey(chain));
    call.replicate_as_is();
    call.notify(c"bloom.load");
    call.reply_ok();
    Ok(())
}

pub(super) fn scandump(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, false);
    let filter = types::get::<Bloom>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    filter.check()?;
    if filter.layout() == FilterLayout::Valkey {
        return Err(Error::new(
            "ERR valkey-bloom's filters can't be dumped in chunks: use DUMP",
        ));
    }
    let iterator = chunks::iterator(call, "Second argument must be numeric")?;
    chunks::dump(call, filter, iterator, || call.reply_bytes(b""))
}

pub(super) fn loadchunk(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=4)?;
    let iterator = chunks::iterator(call, "ERR Second argument must be numeric")?;
    chunks::load::<Bloom>(call, iterator, c"bloom.load")
}
