//! What is missing, gone, replaced, broken or silent: an error, and never an answer.

use super::{Server, hashes, one_line, options};
use std::time::Duration;
use tamis::{Hasher, Kind, SecretKey};
use tamis_redis::{Error, Location, Options, RedisFilter};

#[test]
fn a_missing_part_is_an_error_and_never_an_answer() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let name = kind.name();
        let plan = one_line(kind, 1_000, 0.01);
        let mut filter =
            RedisFilter::create(&server.at(name), &plan, Hasher::default(), &options()).unwrap();
        assert!(filter.insert("key").unwrap());
        let chunk = &server.chunks(name)[0];
        server.run::<()>(&format!("DEL {chunk}"));
        let lost = |result: Result<bool, Error>| {
            assert!(
                matches!(result, Err(Error::MissingChunk { .. })),
                "{kind} {result:?}"
            );
        };
        lost(filter.contains("key"));
        lost(filter.insert("key"));
        // The write made the server create a new string: still no answer.
        assert_eq!(server.run::<usize>(&format!("EXISTS {chunk}")), 1);
        lost(filter.contains("key"));
        lost(filter.insert("other"));
        lost(filter.keys().map(|_| true));
        lost(filter.rate_now().map(|_| true));
        lost(filter.verify().map(|()| true));
        lost(filter.download().map(|_| true));
        if kind == Kind::Counting {
            lost(filter.remove("key"));
            lost(filter.count("key").map(|_| true));
        }
        filter.delete().unwrap();
    }
    assert_eq!(server.run::<usize>("DBSIZE"), 0);
}

#[test]
fn a_filter_ends_as_a_whole() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Growing] {
        let at = server.at("short");
        let plan = one_line(kind, 1_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
        assert_eq!(filter.time_to_live().unwrap(), None);
        filter.expire_in(Duration::from_secs(100)).unwrap();
        let left = filter.time_to_live().unwrap().unwrap();
        assert!(left > Duration::from_secs(90) && left <= Duration::from_secs(100));
        if kind == Kind::Growing {
            let keys = hashes(0..5_000);
            filter
                .insert_hashes(&keys, &mut vec![false; keys.len()])
                .unwrap();
        }
        filter.clear().unwrap();
        for key in server.run::<Vec<String>>("KEYS *short*") {
            let left: i64 = server.run(&format!("PTTL {key}"));
            assert!((90_000..=110_000).contains(&left), "{kind} {key}: {left}");
        }
        filter.persist().unwrap();
        for key in server.run::<Vec<String>>("KEYS *short*") {
            assert_eq!(server.run::<i64>(&format!("PTTL {key}")), -1, "{key}");
        }
        filter.insert("key").unwrap();
        filter.expire_in(Duration::ZERO).unwrap();
        assert!(!RedisFilter::exists(&at, &options()).unwrap());
        assert!(matches!(filter.verify(), Err(Error::Gone { .. })));
        assert!(matches!(filter.time_to_live(), Err(Error::Gone { .. })));
        assert!(matches!(filter.keys(), Ok(_) | Err(Error::Gone { .. })));
        server.run::<()>("FLUSHALL");
        assert!(matches!(filter.contains("key"), Err(Error::Gone { .. })));
        assert!(matches!(filter.insert("key"), Err(Error::Gone { .. })));
        // The strings that the insertion had created are gone as well.
        assert_eq!(server.run::<usize>("DBSIZE"), 0, "{kind}");
        assert!(matches!(
            RedisFilter::open(&at, &options()),
            Err(Error::NotFound { .. })
        ));
    }
}

#[test]
fn one_that_was_replaced_is_not_taken_for_the_old_one() {
    let server = Server::start();
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    let mut old = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    old.insert("key").unwrap();
    RedisFilter::delete_at(&at, &options()).unwrap();
    let mut new = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    assert!(!new.contains("key").unwrap());
    assert!(matches!(old.contains("key"), Err(Error::Gone { .. })));
    assert!(matches!(old.insert("key"), Err(Error::Gone { .. })));
    assert!(matches!(
        old.expire_in(Duration::ZERO),
        Err(Error::Gone { .. })
    ));
    assert!(matches!(old.delete(), Err(Error::Gone { .. })));
    new.verify().unwrap();
    // Its record, twin, mark, witness and chunk.
    assert_eq!(server.run::<usize>("DBSIZE"), 5);
}

#[test]
fn what_is_not_a_filter_is_said() {
    let server = Server::start();
    let impatient = Options::new().retry_for(Duration::from_millis(100));
    let open = |name: &str| RedisFilter::open(&server.at(name), &impatient).unwrap_err();
    assert!(matches!(open("nothing"), Error::NotFound { .. }));
    server.run::<()>("SET text hello");
    assert!(matches!(open("text"), Error::Corrupt { .. }));
    server.run::<()>("RPUSH list hello");
    assert!(matches!(open("list"), Error::Corrupt { .. }));
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    let create =
        |name: &str, hasher| RedisFilter::create(&server.at(name), &plan, hasher, &impatient);
    assert!(matches!(
        create("text", Hasher::default()),
        Err(Error::Taken { .. })
    ));

    let key = SecretKey::new([7; 16]);
    let mut apart = create("apart", Hasher::keyed_apart(key)).unwrap();
    apart.insert("key").unwrap();
    assert!(matches!(
        open("apart"),
        Error::Filter(tamis::Error::KeyNeeded)
    ));
    let with_key = impatient.clone().key(key);
    let mut opened = RedisFilter::open(&server.at("apart"), &with_key).unwrap();
    assert!(opened.contains("key").unwrap());
    // Its expiry can be set without the secret.
    RedisFilter::expire_at(&server.at("apart"), Duration::from_secs(99), &impatient).unwrap();
    assert!(opened.time_to_live().unwrap().is_some());
    RedisFilter::persist_at(&server.at("apart"), &impatient).unwrap();
    assert!(opened.time_to_live().unwrap().is_none());
    RedisFilter::delete_at(&server.at("apart"), &impatient).unwrap();
    assert!(matches!(open("apart"), Error::NotFound { .. }));
    assert_eq!(server.chunks("apart").len(), 0);

    // Its creator died before all chunks existed.
    create("half", Hasher::default()).unwrap();
    server.run::<()>("SETRANGE half 24 \0");
    assert!(matches!(open("half"), Error::Unfinished { .. }));
    RedisFilter::delete_at(&server.at("half"), &impatient).unwrap();
    assert_eq!(server.chunks("half").len(), 0);

    // A port that no test uses.
    let at: Location = "redis://127.0.0.1:1/seen".parse().unwrap();
    let error = RedisFilter::open(&at, &impatient).unwrap_err();
    assert!(matches!(error, Error::Server { .. }), "{error}");
    // A server that isn't in a cluster.
    let at = format!("redis+cluster://{}/seen", server.0.address());
    let error = RedisFilter::open(&at.parse().unwrap(), &impatient).unwrap_err();
    assert!(error.to_string().contains("cluster"), "{error}");
}

#[test]
fn a_broken_connection_is_replaced() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Growing] {
        let at = server.at(kind.name());
        let plan = one_line(kind, 50_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
        for i in 0..20 {
            if i % 3 == 0 {
                server.run::<()>("CLIENT KILL TYPE normal SKIPME yes");
            }
            let keys = hashes(i * 1_000..(i + 1) * 1_000);
            let mut new = vec![false; 1_000];
            filter.insert_hashes(&keys, &mut new).unwrap();
            assert!(new.iter().filter(|new| **new).count() > 970);
            filter.contains_hashes(&keys, &mut new).unwrap();
            assert!(new.iter().all(|there| *there));
        }
    }
}

/// A server that hangs: unanswered keys are reported, and a late answer is
/// never taken for that of a later request.
#[test]
fn silence_is_not_an_answer() {
    let server = Server::start();
    let hasty = Options::new()
        .response_timeout(Duration::from_secs(2))
        .retry_for(Duration::ZERO);
    for kind in [Kind::Blocked, Kind::Counting] {
        let at = server.at(kind.name());
        let plan = one_line(kind, 10_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &hasty).unwrap();
        let mut new = vec![false; 4_000];
        filter
            .insert_hashes(&hashes(0..10), &mut new[..10])
            .unwrap();
        server.0.freeze();
        let error = filter
            .insert_hashes(&hashes(10..4_010), &mut new)
            .unwrap_err();
        let Error::Unconfirmed { keys, of, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((keys.len(), *of), (4_000, 4_000));
        assert!(filter.contains_hashes(&hashes(0..1), &mut [false]).is_err());
        server.0.thaw();
        let mut there = vec![false; 10];
        crate::common::until("the server to answer", Duration::from_secs(60), || {
            filter.contains_hashes(&hashes(0..10), &mut there).is_ok()
        });
        assert!(there.iter().all(|there| *there), "{kind}");
        filter
            .contains_hashes(&hashes(50_000..50_010), &mut there)
            .unwrap();
        assert!(there.iter().filter(|there| **there).count() < 3, "{kind}");
    }
    // With patience, the keys are added after all, and reported as new again.
    let patient = hasty.retry_for(Duration::from_secs(60));
    let wire = crate::common::Proxy::start(server.0.port());
    let by_wire = format!("redis://{}/blocked", wire.address());
    let mut filter = RedisFilter::open(&by_wire.parse().unwrap(), &patient).unwrap();
    let mut new = vec![false; 3_000];
    let clients = wire.clients();
    server.0.freeze();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| filter.insert_hashes(&hashes(0..3_000), &mut new));
        let most = Duration::from_secs(60);
        crate::common::until("the first try to be given up", most, || {
            wire.clients() > clients
        });
        server.0.thaw();
        adding.join().unwrap().unwrap();
    });
    assert!(new.iter().all(|new| *new));
    filter.insert_hashes(&hashes(0..3_000), &mut new).unwrap();
    assert!(!new.iter().any(|new| *new));
}

#[test]
fn too_few_replicas_do_not_confirm() {
    let server = Server::start();
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let careful = options().wait_replicas(1, Duration::from_millis(50));
    let mut filter = RedisFilter::open(&at, &careful).unwrap();
    let error = filter.insert("key").unwrap_err();
    assert!(
        matches!(&error, Error::Unconfirmed { keys, .. } if keys[..] == [0]),
        "{error}"
    );
    assert!(filter.contains("key").unwrap());
}
