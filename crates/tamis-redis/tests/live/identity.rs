//! Every batch checks that it is still the same filter, and a filter without
//! its record isn't silently replaced by a new one.

use crate::common::{Proxy, Server, When, until};
use crate::*;
use tamis_redis::{Error, Warning, aio};

fn kinds() -> [(&'static str, Plan); 3] {
    [Kind::Blocked, Kind::Counting, Kind::Growing]
        .map(|kind| (kind.name(), Plan::one_line(kind, 1_000, 0.01).unwrap()))
}

fn is_gone<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::Gone { .. }))
}

/// No batch is answered, whatever its size.
fn is_gone_for(filter: &mut RedisFilter, keys: &[String]) {
    let mut answers = vec![false; keys.len()];
    assert!(is_gone(filter.contains_many(keys, &mut answers)));
    assert!(is_gone(filter.insert_many(keys, &mut answers)));
    assert!(is_gone(filter.contains(&keys[0])));
    assert!(is_gone(filter.insert(&keys[0])));
    assert!(is_gone(filter.verify()));
    if filter.kind() == Kind::Counting {
        assert!(is_gone(filter.remove(&keys[0])));
        assert!(is_gone(filter.count(&keys[0])));
    }
}

/// Only the record was deleted.
#[test]
fn a_deleted_record() {
    let server = Server::start(&[]);
    for (name, plan) in kinds() {
        let place = at(&server, name);
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        let keys = keys(0..500);
        insert(&mut filter, &keys);
        server.cli(&["DEL", name]);
        is_gone_for(&mut filter, &keys);
        // The remains are complete, and aren't ignored.
        let opened = RedisFilter::open(&place, &options());
        assert!(matches!(opened, Err(Error::Remains { .. })), "{opened:?}");
        let created = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options());
        assert!(matches!(created, Err(Error::Remains { .. })), "{created:?}");
        let text = created.unwrap_err().to_string();
        assert!(text.contains("delete what is left"), "{text}");
        RedisFilter::delete_at(&place, &options()).unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "", "{name}");
        RedisFilter::create(&place, &plan, Hasher::seeded(7), &options())
            .unwrap()
            .delete()
            .unwrap();
    }
}

/// Renamed, and renamed back: nothing was changed.
#[test]
fn a_renamed_record() {
    let server = Server::start(&[]);
    for (name, plan) in kinds() {
        let place = at(&server, name);
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        let keys = keys(0..500);
        insert(&mut filter, &keys);
        server.cli(&["RENAME", name, "elsewhere"]);
        is_gone_for(&mut filter, &keys);
        server.cli(&["RENAME", "elsewhere", name]);
        assert!(all(&contains(&mut filter, &keys)), "{name}");
        filter.verify().unwrap();
        filter.delete().unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "", "{name}");
    }
}

/// Once a filter has expired it doesn't exist, though its strings live slightly
/// longer; another one can be created at once.
#[test]
fn an_expired_record() {
    let server = Server::start(&[]);
    for (name, plan) in kinds() {
        let place = at(&server, name);
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        let keys = keys(0..500);
        insert(&mut filter, &keys);
        filter.expire_in(Duration::from_millis(50)).unwrap();
        until("the record to expire", Duration::from_secs(60), || {
            server.cli(&["EXISTS", name]) == "0"
        });
        is_gone_for(&mut filter, &keys);
        let opened = RedisFilter::open(&place, &options());
        assert!(matches!(opened, Err(Error::NotFound { .. })), "{opened:?}");
        let mut second = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        assert!(second.insert(&keys[0]).unwrap(), "the old one is over");
        is_gone_for(&mut filter, &keys);
        second.verify().unwrap();
        second.delete().unwrap();
    }
}

#[tokio::test]
async fn a_deleted_record_without_blocking() {
    let place = at(server(), "async-deleted");
    let plan = plan(1_000, 0.01);
    let mut filter = aio::RedisFilter::create(&place, &plan, Hasher::seeded(7), &options())
        .await
        .unwrap();
    filter.insert("key").await.unwrap();
    server().cli(&["DEL", "async-deleted"]);
    assert!(is_gone(filter.contains("key").await));
    assert!(is_gone(filter.insert("key").await));
    aio::RedisFilter::delete_at(&place, &options())
        .await
        .unwrap();
}

/// An interrupted deletion: the remains can't be used, and it can be repeated.
#[test]
fn a_deletion_is_repeated() {
    for (name, plan) in kinds() {
        let server = Server::start(&[]);
        let place = at(&server, name);
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        let keys = keys(0..500);
        insert(&mut filter, &keys);
        let wire = Proxy::start(server.port());
        let by_wire = location(&format!("redis://{}/{name}", wire.address()));
        wire.cut(When::Behind, "UNLINK");
        RedisFilter::delete_at(&by_wire, &impatient()).unwrap_err();
        assert!(wire.is_cut());
        is_gone_for(&mut filter, &keys);
        let opened = RedisFilter::open(&place, &options());
        assert!(
            matches!(opened, Err(Error::Unfinished { .. })),
            "{opened:?}"
        );
        RedisFilter::delete_at(&place, &options()).unwrap();
        assert_eq!(server.cli(&["KEYS", "*"]), "", "{name}");
    }
}

/// The server's clock decides about expiry: no command contains our time.
#[test]
fn the_time_is_the_servers() {
    let server = Server::start(&[]);
    for (name, plan) in kinds() {
        let mut filter =
            RedisFilter::create(&at(&server, name), &plan, Hasher::seeded(7), &options()).unwrap();
        filter.expire_in(Duration::from_secs(3600)).unwrap();
        filter.expire_in(Duration::MAX).unwrap();
        filter.persist().unwrap();
    }
    let stats = server.cli(&["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_pexpire:"), "{stats}");
    assert!(!stats.contains("cmdstat_pexpireat:"), "{stats}");
}

/// Warns about a server that may evict parts of the filter.
#[test]
fn servers_that_may_evict() {
    let server = Server::start(&["maxmemory 500mb", "maxmemory-policy allkeys-lru"]);
    let place = at(&server, "evictable");
    let warns = |filter: &RedisFilter, policy: &str| match filter.warnings() {
        [] => false,
        [warning @ Warning::MayEvict { node, policy: of }] => {
            assert_eq!((node, &of[..]), (&server.address(), policy));
            assert!(warning.to_string().contains("noeviction"), "{warning}");
            true
        }
        more => panic!("{more:?}"),
    };
    let (filter, _) = pair(&place, &plan(1_000, 0.01));
    assert!(warns(&filter, "allkeys-lru"));
    let open = || RedisFilter::open(&place, &options()).unwrap();
    assert!(warns(&open(), "allkeys-lru"));
    // Only keys with an expiry.
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lfu"]);
    let mut filter = open();
    assert!(!warns(&filter, "volatile-lfu"));
    filter.expire_in(Duration::from_secs(1_000)).unwrap();
    assert!(warns(&filter, "volatile-lfu") && warns(&open(), "volatile-lfu"));
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert!(!warns(&open(), ""));
    server.cli(&[
        "CONFIG",
        "SET",
        "maxmemory-policy",
        "allkeys-lru",
        "maxmemory",
        "0",
    ]);
    assert!(!warns(&open(), ""));
    // A user who isn't allowed to ask gets no warning, and can work.
    server.cli(&["CONFIG", "SET", "maxmemory", "500mb"]);
    server.cli(&["ACL", "SETUSER", "ada", "on", ">pw", "~*", "+@all", "-info"]);
    let place = location(&format!("redis://ada:pw@{}/evictable", server.address()));
    let mut filter = RedisFilter::open(&place, &options()).unwrap();
    assert!(filter.warnings().is_empty());
    filter.insert("key").unwrap();
}
