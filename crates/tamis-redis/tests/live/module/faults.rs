//! Lost answers, lost filters, and full filters.

use super::*;
use crate::common::{Proxy, Server, When, until};
use tamis_redis::Error;

/// A server is silent for a while: the keys are sent again, and are reported as
/// new, whichever try has added them.
#[test]
#[ignore = "needs the module: ./test module"]
fn what_is_sent_again_is_new() {
    let server = Server::start(&[&load()]);
    let place = at(&server, "silent");
    drop(create(&place, Kind::Growing, 10_000, 0.001));
    let patient = impatient().retry_for(Duration::from_secs(60));
    let wire = Proxy::start(server.port());
    let by_wire = location(&format!("redis://{}/silent", wire.address()));
    let mut filter = RedisFilter::open(&by_wire, &patient).unwrap();
    let clients = wire.clients();
    server.freeze();
    let adding = std::thread::spawn(move || {
        let all_keys = keys(0..3_000);
        let new = insert(&mut filter, &all_keys);
        (new, filter)
    });
    until("a second try", Duration::from_secs(60), || {
        wire.clients() > clients
    });
    server.thaw();
    let (new, mut filter) = adding.join().unwrap();
    assert!(count(&new) > 2_990);
    let stats = filter.stats();
    assert!(stats.retries > 0 && stats.ambiguous_keys > 0, "{stats:?}");
    assert!(all(&contains(&mut filter, &keys(0..3_000))));
}

/// An answer that never comes: the keys are unconfirmed, and in fact added.
#[test]
#[ignore = "needs the module: ./test module"]
fn what_is_not_answered_is_open() {
    let server = Server::start(&[&load()]);
    for (kind, command) in [(Kind::Growing, "BF.INSERT"), (Kind::Cuckoo, "CF.ADD")] {
        let name = kind.name();
        drop(create(&at(&server, name), kind, 10_000, 0.001));
        for when in [When::Before, When::Behind] {
            let proxy = Proxy::start(server.port());
            let place = location(&format!("redis://{}/{name}", proxy.address()));
            let mut filter = RedisFilter::open(&place, &impatient()).unwrap();
            proxy.cut(when, command);
            let some = match when {
                When::Before => keys(0..10),
                When::Behind => keys(100..110),
            };
            let error = filter.insert_many(&some, &mut [false; 10]).unwrap_err();
            assert!(proxy.is_cut());
            assert_eq!(error.unconfirmed(), (0..10).collect::<Vec<_>>(), "{error}");
            let error = filter.contains("x").unwrap_err();
            assert!(matches!(error, Error::Server { .. }), "{error}");
            let mut direct = RedisFilter::open(&at(&server, name), &impatient()).unwrap();
            let expected = when == When::Behind;
            until("what was sent is done", Duration::from_secs(60), || {
                contains(&mut direct, &some) == [expected; 10]
            });
        }
    }
}

/// Changes to a cuckoo filter are sent once: twice would add two copies.
#[test]
#[ignore = "needs the module: ./test module"]
fn copies_are_not_sent_again() {
    let server = Server::start(&[&load()]);
    let place = at(&server, "once");
    drop(create(&place, Kind::Cuckoo, 10_000, 0.001));
    let patient = impatient().retry_for(Duration::from_secs(60));
    let mut filter = RedisFilter::open(&place, &patient).unwrap();
    server.freeze();
    let some = keys(0..10);
    let error = filter.insert_many(&some, &mut [false; 10]).unwrap_err();
    assert_eq!(error.unconfirmed().len(), 10, "{error}");
    server.thaw();
    let mut counts = [0; 10];
    let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
    filter.count_many(&some, &mut counts).unwrap();
    assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
}

/// A filter that no longer exists is an error: lookups don't answer "no", and
/// adding doesn't create an empty one.
#[test]
#[ignore = "needs the module: ./test module"]
fn a_filter_that_has_gone() {
    let mut server = Server::start(&[&load()]);
    for kind in [Kind::Growing, Kind::Cuckoo] {
        let place = at(&server, kind.name());
        let mut filter = create(&place, kind, 1_000, 0.01);
        insert(&mut filter, &keys(0..500));
        let mut check = |server: &Server, replaced: bool| {
            for error in [
                filter.contains("x").unwrap_err(),
                filter
                    .contains_many(&keys(0..500), &mut [false; 500])
                    .unwrap_err(),
                filter.insert("x").unwrap_err(),
                filter
                    .insert_many(&keys(0..500), &mut [false; 500])
                    .unwrap_err(),
                filter.verify().unwrap_err(),
                filter.keys().unwrap_err(),
                filter
                    .time_to_live()
                    .map(drop)
                    .err()
                    .unwrap_or(Error::Gone {
                        name: String::new(),
                    }),
            ] {
                assert!(matches!(error, Error::Gone { .. }), "{kind}: {error}");
            }
            let there = server.cli(&["EXISTS", kind.name()]);
            assert_eq!(there.trim(), if replaced { "1" } else { "0" });
        };
        server.cli(&["DEL", kind.name()]);
        check(&server, false);
        server.cli(&["LPUSH", kind.name(), "x"]);
        check(&server, true);
        server.kill();
        server.restart();
        check(&server, false);
    }
}

/// Something else has the name.
#[test]
#[ignore = "needs the module: ./test module"]
fn what_is_no_filter() {
    let place = at(server(), "a list");
    server().cli(&["LPUSH", "a list", "x"]);
    for error in [
        RedisFilter::open(&place, &Options::new()).unwrap_err(),
        RedisFilter::delete_at(&place, &Options::new()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("its type is list"), "{error}");
    }
    server().cli(&["DEL", "a list"]);
}

/// A filter that can't grow accepts keys while it has room, and lists those it
/// didn't accept.
#[test]
#[ignore = "needs the module: ./test module"]
fn a_full_filter() {
    let place = at(server(), "full");
    for reserve in [
        &["BF.RESERVE", "full", "0.001", "1000", "NONSCALING"][..],
        &["CF.RESERVE", "full", "1024", "EXPANSION", "0"],
    ] {
        server().cli(reserve);
        let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
        let all_keys = keys(0..2_000);
        let mut new = vec![false; all_keys.len()];
        let error = filter.insert_many(&all_keys, &mut new).unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        let open = error.unconfirmed();
        assert!((900..1_100).contains(&open.len()), "{error}");
        assert!(open.contains(&1_999));
        let taken: Vec<Vec<u8>> = (0..all_keys.len())
            .filter(|key| !open.contains(key))
            .map(|key| all_keys[key].clone())
            .collect();
        assert!(all(&contains(&mut filter, &taken)));
        filter.delete().unwrap();
    }
}
