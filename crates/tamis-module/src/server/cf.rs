//! The commands on cuckoo filters.

use super::api::{Call, Key};
use super::counters::{self, Counter};
use super::{both, chunks};
use super::{settings, types};
use crate::cuckoo::{Cuckoo, NewCuckoo};
use crate::error::Error;
use crate::filter::{Filter, Room as _};
use crate::words::{FilterLayout, Wish};

fn specified(call: &Call<'_>, wish: &Wish) -> Result<NewCuckoo, Error> {
    if wish.rate.is_some() {
        // Only Tamis's layout can keep a requested rate.
        super::refuse_unreadable(call, wish, "an ERROR rate")?;
    }
    let layout = wish.layout.unwrap_or_else(|| match wish.rate {
        Some(_) => FilterLayout::Tamis,
        None => super::default_layout(call),
    });
    let default_expansion = || {
        u32::try_from(settings::CF_EXPANSION.get()).unwrap_or(match layout {
            FilterLayout::Tamis => 2,
            FilterLayout::RedisBloom | FilterLayout::Valkey => 1,
        })
    };
    Ok(NewCuckoo {
        rate: wish.rate.unwrap_or_else(|| settings::CF_RATE.get()),
        capacity: wish
            .capacity
            .unwrap_or_else(|| settings::CF_SIZE.get() as u64),
        expansion: wish.expansion.unwrap_or_else(default_expansion),
        bucket_size: wish
            .bucket_size
            .unwrap_or_else(|| settings::CF_BUCKET.get() as u16),
        most_kicks: wish
            .most_kicks
            .unwrap_or_else(|| settings::CF_KICKS.get() as u16),
        layout,
        hasher: super::hasher(wish, layout)?,
    })
}

/// Creates a filter, replicated with all its parameters.
fn create(call: &Call<'_>, key: &mut Key<'_>, wish: &Wish) -> Result<(), Error> {
    let new = specified(call, wish)?;
    let fits = new.layout == FilterLayout::Tamis || new.capacity >= 2 * u64::from(new.bucket_size);
    if !fits && !call.must_obey() {
        return Err(Error::new(
            "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]",
        ));
    }
    // Checked before allocating: an item takes at least one byte.
    call.allows(new.capacity)?;
    let filter = new.make()?;
    let mut words = vec![
        new.capacity.to_string(),
        "EXPANSION".to_owned(),
        new.expansion.to_string(),
    ];
    match new.layout {
        FilterLayout::Tamis => words.extend(["ERROR".to_owned(), new.rate.to_string()]),
        FilterLayout::RedisBloom | FilterLayout::Valkey => words.extend([
            "BUCKETSIZE".to_owned(),
            new.bucket_size.to_string(),
            "MAXITERATIONS".to_owned(),
            new.most_kicks.to_string(),
        ]),
    }
    let words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
    both::put(
        call,
        key,
        filter,
        (c"CF.RESERVE", &words),
        (new.layout, &new.hasher),
    )?;
    call.notify(c"cuckoo.reserve");
    Ok(())
}

pub(super) fn reserve(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=20)?;
    let wish = Wish::cuckoo_reserve(&call.all_bytes(2))?;
    both::reserve::<Cuckoo>(call, &wish, create)
}

/// The filter to which a command adds. A command on a filter that already has the most tables is refused as a whole;
/// any other filter may grow as far as the command needs. RedisBloom does the same, and may replay what we write about
/// its layout.
fn filter_for<'k>(
    call: &Call<'_>,
    key: &'k mut Key<'_>,
    wish: &Wish,
) -> Result<&'k mut Cuckoo, Error> {
    let filter = both::filter_for::<Cuckoo>(call, key, wish, create)?;
    match filter {
        Cuckoo::RedisBloom(cuckoo)
            if cuckoo.tables() as i64 >= settings::CF_TABLES.get() && !call.must_obey() =>
        {
            Err(Error::new("Maximum expansions reached"))
        }
        filter => Ok(filter),
    }
}

pub(super) fn add(call: &Call<'_>) -> Result<(), Error> {
    add_one(call, false)
}

pub(super) fn addnx(call: &Call<'_>) -> Result<(), Error> {
    add_one(call, true)
}

fn add_one(call: &Call<'_>, only_new: bool) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    let filter = filter_for(call, &mut key, &Wish::default())?;
    let item = call.bytes(2);
    counters::count(Counter::CuckooAdds, 1);
    if only_new && filter.contains(item)? {
        call.reply_bool(false);
        return Ok(());
    }
    filter.insert(item, call)?;
    // An item absent here is absent on replicas, too.
    call.replicate_as_is();
    call.notify(c"cuckoo.add");
    call.reply_bool(true);
    Ok(())
}

pub(super) fn insert(call: &Call<'_>) -> Result<(), Error> {
    insert_all(call, "cf.insert", false)
}

pub(super) fn insertnx(call: &Call<'_>) -> Result<(), Error> {
    insert_all(call, "cf.insertnx", true)
}

/// Answers 1 for an item that was added, 0 for one that was present (NX), -1 for one that could not be added.
fn insert_all(call: &Call<'_>, name: &'static str, only_new: bool) -> Result<(), Error> {
    call.expect(4..=usize::MAX)?;
    let (wish, at) = Wish::cuckoo_insert(name, &call.all_bytes(2))?;
    let least = 2 * settings::CF_BUCKET.get() as u64;
    if settings::COMPATIBLE.is_set() && wish.capacity.is_some_and(|capacity| capacity < least) {
        return Err(Error::new(
            "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
        ));
    }
    let mut key = call.open(1, true);
    let filter = filter_for(call, &mut key, &wish)?;
    let from = 2 + at;
    let mut answers = Vec::with_capacity(call.len() - from);
    let mut added = Vec::new();
    for at in from..call.len() {
        let item = call.bytes(at);
        answers.push(if only_new && filter.contains(item)? {
            0
        } else if filter.insert(item, call).is_ok() {
            added.push(call.arguments()[at]);
            1
        } else {
            -1
        });
    }
    counters::count(Counter::CuckooAdds, answers.len() as u64);
    if !added.is_empty() {
        // Replicas repeat this item by item, in this order.
        let items = call.string(b"ITEMS");
        let first = [call.arguments()[1], items.get()];
        call.replicate(c"CF.INSERT", &[&first[..], &added].concat());
        call.notify(c"cuckoo.add");
    }
    let as_bool = call.is_resp3() && !only_new;
    call.reply_array(answers.len());
    for answer in answers {
        if as_bool {
            call.reply_bool(answer == 1);
        } else {
            call.reply_integer(answer);
        }
    }
    Ok(())
}

pub(super) fn exists(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    both::exists(call, Cuckoo::contains)
}

pub(super) fn mexists(call: &Call<'_>) -> Result<(), Error> {
    both::mexists(call, Cuckoo::contains_many)
}

pub(super) fn count(call: &Call<'_>) -> Result<(), Error> {
    both::count::<Cuckoo>(call)
}

pub(super) fn del(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let mut key = call.open(1, true);
    let filter = filter_of_any(&mut key).ok_or(Error::new("Not found"))?;
    both::remove(call, filter, c"cuckoo.del")
}

/// The filter of a key. Like RedisBloom's commands that change cuckoo filters, treats a key of another type as missing.
fn filter_of_any<'k>(key: &'k mut Key<'_>) -> Option<&'k mut Cuckoo> {
    types::get::<Cuckoo>(key).ok().flatten()
}

pub(super) fn compact(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, true);
    let missing = Error::new("Cuckoo filter was not found");
    filter_of_any(&mut key).ok_or(missing)?.compact()?;
    call.replicate_as_is();
    call.reply_ok();
    Ok(())
}

pub(super) fn info(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=3)?;
    let mut key = call.open(1, false);
    let info = types::get::<Cuckoo>(&mut key)?
        .ok_or(Error::NOT_FOUND)?
        .info()?;
    // Fields that INFO doesn't list by default: clients expect its eight fields.
    if call.len() == 3 {
        match call.bytes(2) {
            word if word.eq_ignore_ascii_case(b"ERROR") => {
                both::reply_rate(call, c"Error rate", Some(info.rate));
            }
            word if word.eq_ignore_ascii_case(b"CAPACITY") => {
                both::begin_field(call, c"Capacity");
                call.reply_count(info.capacity);
            }
            _ => return Err(Error::new("Invalid information value")),
        }
        return Ok(());
    }
    let structs = match info.layout {
        // RedisBloom includes its own structures: one per filter, and one per table.
        FilterLayout::RedisBloom => 40 + 16 * info.layers,
        FilterLayout::Tamis | FilterLayout::Valkey => 0,
    };
    let fields = [
        (c"Size", info.bytes + structs),
        (c"Number of buckets", info.buckets),
        (c"Number of filters", info.layers),
        (c"Number of items inserted", info.keys),
        (c"Number of items deleted", info.deletes),
        (c"Bucket size", info.bucket_size),
        (c"Expansion rate", info.expansion),
        (c"Max iterations", info.most_kicks),
    ];
    call.reply_map(fields.len());
    for (name, number) in fields {
        call.reply_name(name);
        call.reply_count(number);
    }
    Ok(())
}

pub(super) fn merge(call: &Call<'_>) -> Result<(), Error> {
    both::merge::<Cuckoo>(call, c"cuckoo.merge")
}

/// RedisBloom's report, in its words.
pub(super) fn debug(call: &Call<'_>) -> Result<(), Error> {
    call.expect(2..=2)?;
    let mut key = call.open(1, false);
    let info = types::get::<Cuckoo>(&mut key)?
        .ok_or(Error::NOT_FOUND)?
        .info()?;
    let text = format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        info.bucket_size,
        info.buckets,
        info.keys,
        info.deletes,
        info.layers,
        info.most_kicks,
        info.expansion
    );
    call.reply_bytes(text.as_bytes());
    Ok(())
}

pub(super) fn scandump(call: &Call<'_>) -> Result<(), Error> {
    call.expect(3..=3)?;
    let iterator = chunks::iterator(call, "Invalid position")?;
    if iterator < 0 {
        return Err(Error::new("Invalid position"));
    }
    let mut key = call.open(1, false);
    let filter = types::get::<Cuckoo>(&mut key)?.ok_or(Error::NOT_FOUND)?;
    filter.check()?;
    // Like RedisBloom, which can't dump an empty filter.
    let empty = matches!(filter, Cuckoo::RedisBloom(cuckoo) if cuckoo.keys() == 0);
    if empty && settings::COMPATIBLE.is_set() {
        call.reply_array(2);
        call.reply_count(0);
        call.reply_null();
        return Ok(());
    }
    chunks::dump(call, filter, iterator, || call.reply_null())
}

pub(super) fn loadchunk(call: &Call<'_>) -> Result<(), Error> {
    call.expect(4..=4)?;
    let iterator = chunks::iterator(call, "Invalid position")?;
    if iterator == 0 {
        return Err(Error::new("Invalid position"));
    }
    let is_whole = |filter: &mut Cuckoo| filter.as_loading().is_none();
    if iterator == 1 && types::get(&mut call.open(1, false))?.is_some_and(is_whole) {
        return Err(Error::EXISTS);
    }
    // RedisBloom has one text for all of these.
    let of_place = [Error::BAD_DATA, Error::NO_LINK, Error::TOO_BIG];
    chunks::load::<Cuckoo>(call, iterator, c"cuckoo.load").map_err(|error| {
        if of_place.contains(&error) {
            Error::new("Couldn't load chunk!")
        } else {
            error
        }
    })
}
