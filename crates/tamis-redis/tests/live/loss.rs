//! Lost, foreign or changed data on the server is an error, never a "no".

use crate::common::{Server, until};
use crate::*;
use tamis_redis::Error;

/// All keys of a filter except its header.
fn chunks(server: &Server, name: &str) -> Vec<String> {
    let listed = server.cli(&["KEYS", &format!("{name}:{{*.*.*}}")]);
    listed.lines().map(String::from).collect()
}

fn is_loss(error: &Error) -> bool {
    matches!(error, Error::MissingChunk { .. } | Error::Gone { .. })
}

/// Looking up and adding fail, for single keys and batches, and again after
/// adding has tried: a write makes the server create a missing string.
fn refuses(filter: &mut RedisFilter, keys: &[String]) {
    for _ in 0..2 {
        let mut answers = vec![false; keys.len()];
        let error = filter.contains_many(keys, &mut answers).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        let error = filter.insert_many(keys, &mut answers).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        assert_eq!(
            count(&answers),
            0,
            "nothing is called new that was not added"
        );
        let error = filter.insert(&keys[0]).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        let error = filter.contains(&keys[0]).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        assert!(is_loss(&filter.verify().unwrap_err()));
        assert!(is_loss(&filter.download().map(drop).unwrap_err()));
    }
}

#[test]
fn a_deleted_chunk() {
    for (name, plan) in [
        ("deleted-blocked", plan(1_000, 0.01)),
        (
            "deleted-counting",
            Plan::one_line(Kind::Counting, 1_000, 0.01).unwrap(),
        ),
    ] {
        let (mut filter, _) = pair(&at(server(), name), &plan);
        let keys = keys(0..500);
        insert(&mut filter, &keys);
        let chunks = chunks(server(), name);
        assert_eq!(chunks.len(), 1, "{chunks:?}");
        server().cli(&["DEL", &chunks[0]]);
        refuses(&mut filter, &keys);
        let error = filter.contains("x").unwrap_err().to_string();
        assert!(
            error.contains(&chunks[0]) && error.contains("evicted"),
            "{error}"
        );
        if plan.kind() == Kind::Counting {
            assert!(is_loss(&filter.remove(&keys[0]).unwrap_err()));
            assert!(is_loss(&filter.count(&keys[0]).unwrap_err()));
        }
        // It can't be opened any more, either.
        let opened = RedisFilter::open(&at(server(), name), &options());
        assert!(is_loss(&opened.unwrap_err()));
        filter.delete().unwrap();
        assert_eq!(server().cli(&["KEYS", &format!("{name}*")]), "");
    }
}

/// With several chunks, only keys in the lost one get no answer; operations on
/// the whole filter are refused.
#[test]
fn one_of_several_chunks() {
    let (mut filter, mut local) = pair(&at(server(), "several"), &plan(10_000_000, 0.01));
    let old = keys(0..2_000);
    insert(&mut filter, &old);
    local
        .insert_many(&old, &mut vec![false; old.len()])
        .unwrap();
    let chunks = chunks(server(), "several");
    assert!(chunks.len() > 2);
    server().cli(&["DEL", &chunks[1]]);
    let mut answers = vec![false; old.len()];
    let error = filter.contains_many(&old, &mut answers).unwrap_err();
    assert!(
        matches!(&error, Error::MissingChunk { chunk, .. } if *chunk == chunks[1]),
        "{error:?}"
    );
    assert!(is_loss(
        &filter.insert_many(&old, &mut answers).unwrap_err()
    ));
    assert!(is_loss(&filter.verify().unwrap_err()));
    assert!(is_loss(&filter.keys().map(drop).unwrap_err()));
    assert!(is_loss(&filter.download().map(drop).unwrap_err()));
    let (mut found, mut lost) = (0, 0);
    for key in &old[..300] {
        match filter.contains(key) {
            Ok(answer) => {
                assert!(answer, "a false no for {key}");
                found += 1;
            }
            Err(error) => {
                assert!(is_loss(&error), "{error:?}");
                lost += 1;
            }
        }
    }
    assert!(found > 0 && lost > 0, "{found} found, {lost} lost");
    filter.delete().unwrap();
}

/// A server without free memory evicts keys, if it is configured to.
#[test]
fn an_evicted_chunk() {
    let server = Server::start(&["maxmemory 24mb", "maxmemory-policy allkeys-lru"]);
    // A small part of a third chunk.
    let (mut filter, _) = pair(&at(&server, "evicted"), &plan(7_000_000, 0.01));
    let old = keys(0..1_000);
    insert(&mut filter, &old);
    let before = chunks(&server, "evicted").len();
    let mut junk = 0;
    until(
        "the server to evict a chunk",
        Duration::from_secs(60),
        || {
            junk += 1;
            server.cli(&["SETRANGE", &format!("junk{junk}"), "1000000", "x"]);
            chunks(&server, "evicted").len() < before
        },
    );
    assert_ne!(server.info("stats", "evicted_keys").unwrap(), "0");
    let mut answers = vec![false; old.len()];
    let error = filter.contains_many(&old, &mut answers).unwrap_err();
    assert!(is_loss(&error), "{error:?}");
    // Lack of memory is an error, too, and may come first.
    assert!(filter.insert_many(&old, &mut answers).is_err());
    assert!(filter.verify().is_err());
}

/// A chunk that was overwritten.
#[test]
fn a_changed_chunk() {
    let (mut filter, _) = pair(&at(server(), "changed"), &plan(1_000, 0.01));
    let keys = keys(0..500);
    insert(&mut filter, &keys);
    let chunk = &chunks(server(), "changed")[0];
    server().cli(&["SET", chunk, "something else"]);
    refuses(&mut filter, &keys);
    server().cli(&["DEL", chunk]);
    server().cli(&["LPUSH", chunk, "not even a string"]);
    let mut answers = vec![false; keys.len()];
    assert!(filter.contains_many(&keys, &mut answers).is_err());
    assert!(filter.insert_many(&keys, &mut answers).is_err());
    assert!(filter.verify().is_err());
    filter.delete().unwrap();
}

/// A key with this name that isn't a filter is neither opened nor overwritten.
#[test]
fn a_foreign_key() {
    let at = at(server(), "foreign");
    for set in [&["SET", "foreign", "hello"][..], &["LPUSH", "foreign", "a"]] {
        server().cli(&["DEL", "foreign"]);
        server().cli(set);
        let error = RedisFilter::open(&at, &options()).err().unwrap();
        assert!(error.to_string().contains("foreign"), "{error}");
        assert!(!matches!(error, Error::NotFound { .. }), "{error:?}");
        let plan = plan(1_000, 0.01);
        let error = RedisFilter::create(&at, &plan, Hasher::default(), &options())
            .err()
            .unwrap();
        assert!(matches!(error, Error::Taken { .. }), "{error:?}");
        assert_eq!(
            server().cli(&["TYPE", "foreign"]),
            if set[0] == "SET" { "string" } else { "list" }
        );
        assert_eq!(chunks(server(), "foreign"), Vec::<String>::new());
    }
    server().cli(&["DEL", "foreign"]);
}

/// A changed header.
#[test]
fn a_changed_header() {
    let place = at(server(), "header");
    let (filter, _) = pair(&place, &plan(1_000, 0.01));
    let length: usize = server().cli(&["STRLEN", "header"]).parse().unwrap();
    // Except for a byte that may have any value.
    for offset in (0..length).filter(|offset| *offset != 25) {
        let offset = offset.to_string();
        let before = server().cli(&["BITFIELD", "header", "GET", "u8", &format!("#{offset}")]);
        let changed = ((before.parse::<u8>().unwrap()) ^ 0x10).to_string();
        let set = |to: &str| {
            server().cli(&["BITFIELD", "header", "SET", "u8", &format!("#{offset}"), to]);
        };
        set(&changed);
        let error = RedisFilter::open(&place, &options()).err();
        let error = error.unwrap_or_else(|| panic!("byte {offset} was not missed"));
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::Filter(_)),
            "{error:?}"
        );
        set(&before);
    }
    RedisFilter::open(&place, &options()).unwrap();
    server().cli(&["APPEND", "header", "x"]);
    assert!(RedisFilter::open(&place, &options()).is_err());
    filter.delete().unwrap();
}

/// The filter was deleted and another with its name was created: clients that
/// have the first one open get an error, and don't harm the second.
#[test]
fn a_filter_in_place_of_another() {
    let place = at(server(), "replaced");
    let (mut first, _) = pair(&place, &plan(1_000, 0.01));
    insert(&mut first, &keys(0..500));
    RedisFilter::open(&place, &options())
        .unwrap()
        .delete()
        .unwrap();
    let (mut second, mut local) = pair(&place, &plan(1_000, 0.01));
    let more = keys(1_000..1_500);
    insert(&mut second, &more);
    local
        .insert_many(&more, &mut vec![false; more.len()])
        .unwrap();
    refuses(&mut first, &keys(0..500));
    second.verify().unwrap();
    assert_eq!(body(&second.download().unwrap()), body(&local));
    second.delete().unwrap();
}

#[test]
fn everything_flushed() {
    let server = Server::start(&[]);
    let (mut filter, _) = pair(&at(&server, "flushed"), &plan(1_000, 0.01));
    let keys = keys(0..500);
    insert(&mut filter, &keys);
    server.cli(&["FLUSHALL"]);
    refuses(&mut filter, &keys);
    assert!(!RedisFilter::exists(&at(&server, "flushed"), &options()).unwrap());
}

/// Two clients create the filter at the same time: one succeeds, the other gets
/// an error.
#[test]
fn created_by_one_of_many() {
    let place = at(server(), "raced");
    let plan = plan(100_000, 0.01);
    let created = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| RedisFilter::create(&place, &plan, Hasher::default(), &options()))
            })
            .collect();
        let tries = tries.into_iter().map(|tried| tried.join().unwrap());
        tries
            .filter(|tried| match tried {
                Ok(_) => true,
                Err(Error::Exists { .. }) => false,
                Err(error) => panic!("{error:?}"),
            })
            .count()
    });
    assert_eq!(created, 1);
    let mut filter = RedisFilter::open(&place, &options()).unwrap();
    filter.verify().unwrap();
    assert_eq!(chunks(server(), "raced").len(), 1);
    filter.delete().unwrap();
}
