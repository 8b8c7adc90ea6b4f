//! A growing filter's layers: none is lost track of, whichever client dies
//! while it grows and whatever the server loses.

use crate::common::{Proxy, Server, When};
use crate::*;
use tamis_redis::Error;

/// In the script that announces a layer.
const ANNOUNCING: &str = "redis.call('HDEL', KEYS[2], ARGV[4])";
/// In the script that starts building it.
const BEGINNING: &str = "redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])";

fn growing(place: &Location) -> RedisFilter {
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    RedisFilter::create(place, &plan, Hasher::seeded(7), &options()).unwrap()
}

/// The hash of the layers.
fn hash(server: &Server, name: &str) -> String {
    let listed = server.cli(&["KEYS", &format!("{{{name}}}:*")]);
    let mut hashes = listed
        .lines()
        .filter(|key| server.cli(&["TYPE", key]) == "hash");
    hashes.next().unwrap().to_owned()
}

/// All keys, or an error: never a false no.
fn finds_all_or_fails(filter: &mut RedisFilter, keys: &[String]) -> Result<(), Error> {
    let mut found = vec![false; keys.len()];
    filter.contains_many(keys, &mut found)?;
    assert!(all(&found), "{} of {} found", count(&found), keys.len());
    Ok(())
}

/// The home node was lost, and its successor has an older hash or none.
#[test]
fn a_hash_that_is_older_or_lost() {
    let place = at(server(), "forgotten");
    let mut filter = growing(&place);
    let first = keys(0..500);
    insert(&mut filter, &first);
    // A client that only knows the first layer.
    let mut early = RedisFilter::open(&place, &options()).unwrap();
    let hash = hash(server(), "forgotten");
    server().cli(&["COPY", &hash, "older"]);
    let all_keys = keys(0..20_000);
    insert(&mut filter, &all_keys);
    server().cli(&["COPY", &hash, "right"]);
    for forget in [&["COPY", "older", &hash, "REPLACE"][..], &["DEL", &hash]] {
        server().cli(forget);
        let lost = |done: Result<(), Error>| {
            let error = done.expect_err("layers are missing");
            assert!(matches!(error, Error::MissingChunk { .. }), "{error:?}");
        };
        lost(RedisFilter::open(&place, &options()).map(drop));
        for known in [&mut early, &mut filter] {
            lost(finds_all_or_fails(known, &all_keys));
            lost(known.verify());
            lost(known.insert("another").map(drop));
            lost(known.download().map(drop));
        }
        server().cli(&["COPY", "right", &hash, "REPLACE"]);
        for known in [&mut early, &mut filter] {
            finds_all_or_fails(known, &all_keys).unwrap();
            known.verify().unwrap();
        }
    }
    server().cli(&["DEL", "older", "right"]);
    filter.delete().unwrap();
}

/// A worker dies or is cut off while it adds a layer; returns the server and
/// the confirmed keys.
fn a_worker_ends(name: &str, when: When, text: &str) -> (Server, Vec<String>) {
    let server = Server::start(&[]);
    let confirmed = keys(0..500);
    insert(&mut growing(&at(&server, name)), &confirmed);
    let wire = Proxy::start(server.port());
    let place = location(&format!("redis://{}/{name}", wire.address()));
    let mut worker = RedisFilter::open(&place, &impatient()).unwrap();
    wire.cut(when, text);
    let more = keys(500..3_000);
    let mut new = vec![false; more.len()];
    let error = worker.insert_many(&more, &mut new).unwrap_err();
    assert!(wire.is_cut(), "the worker did not come to it: {error}");
    assert!(matches!(error, Error::Unconfirmed { .. }), "{error:?}");
    (server, confirmed)
}

fn ends() -> [(&'static str, When, &'static str); 4] {
    [
        ("nothing-begun", When::Before, BEGINNING),
        ("begun", When::Behind, BEGINNING),
        ("closed", When::Before, ANNOUNCING),
        // The answer is lost, so the outcome is unknown.
        ("announced", When::Behind, ANNOUNCING),
    ]
}

/// The next worker continues, nothing is missing, and nothing is left over.
#[test]
fn another_worker_goes_on() {
    for (name, when, text) in ends() {
        let (server, confirmed) = a_worker_ends(name, when, text);
        let place = at(&server, name);
        // Workers wait for one that builds a layer, but not for long.
        let waited: i64 = server
            .cli(&[
                "EVAL",
                "local longest = 0 for _, key in ipairs(redis.call('KEYS', '*:growing')) do \
                    longest = math.max(longest, redis.call('PTTL', key)) end return longest",
                "0",
            ])
            .parse()
            .unwrap();
        assert!(waited <= 2_000, "{name}: others wait {waited} ms");
        let mut filter = RedisFilter::open(&place, &options()).unwrap();
        finds_all_or_fails(&mut filter, &confirmed).unwrap();
        filter.verify().unwrap();
        let more = keys(0..20_000);
        insert(&mut filter, &more);
        finds_all_or_fails(&mut filter, &more).unwrap();
        filter.verify().unwrap();
        // The dead worker's layer was deleted or used.
        let strings = server.cli(&["KEYS", &format!("{name}:{{*.*.*}}")]);
        let strings = strings.lines().count();
        let tamis::internals::raw::Shape::Growing(shape) = filter.download().unwrap().shape()
        else {
            panic!("it grows")
        };
        assert_eq!(strings as u64, u64::from(shape.layers()), "{name}");
        filter.delete().unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "", "{name}");
    }
}

/// No worker continues: the filter is complete, and deleting it finds all its
/// parts.
#[test]
fn nobody_goes_on() {
    for (name, when, text) in ends() {
        let (server, confirmed) = a_worker_ends(name, when, text);
        let place = at(&server, name);
        let mut filter = RedisFilter::open(&place, &options()).unwrap();
        finds_all_or_fails(&mut filter, &confirmed).unwrap();
        filter.verify().unwrap();
        RedisFilter::delete_at(&place, &options()).unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "", "{name}");
    }
}
