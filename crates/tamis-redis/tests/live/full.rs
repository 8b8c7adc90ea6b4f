//! A full server: nothing is begun that can't be finished, and existing filters
//! can be deleted.

use crate::common::Server;
use crate::*;
use tamis_redis::{Error, Servers, Survey};

/// A server with 30 MB of memory, and a user who isn't allowed to ask for it.
fn small() -> Server {
    let server = Server::start(&["maxmemory 30mb", "maxmemory-policy noeviction"]);
    server.cli(&[
        "ACL", "SETUSER", "ada", "on", ">sesame", "~*", "+@all", "-info",
    ]);
    server
}

fn as_ada(server: &Server, name: &str) -> Location {
    location(&format!("redis://ada:sesame@{}/{name}", server.address()))
}

/// Fills all remaining memory.
fn fill(server: &Server) {
    for size in ["1000000", "10000", "100"] {
        let mut number = 0;
        while server
            .try_cli(&["SETRANGE", &format!("junk-{size}-{number}"), size, "x"])
            .is_ok()
        {
            number += 1;
        }
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::NoRoom { .. })
}

/// A filter of 135 MB is refused before anything is created or, for users who
/// can't ask, removed again.
#[test]
fn a_filter_that_does_not_fit() {
    let server = small();
    let large = plan(100_000_000, 0.01);
    let create = |place: &Location| {
        let created = RedisFilter::create(place, &large, Hasher::default(), &options());
        created.map(drop).unwrap_err()
    };
    let error = create(&at(&server, "large"));
    assert!(is_full(&error), "{error:?}");
    assert!(error.to_string().contains("bytes are needed"), "{error}");
    assert_eq!(server.cli(&["KEYS", "*"]), "");
    let error = create(&as_ada(&server, "large"));
    assert!(matches!(error, Error::Server { .. }), "{error:?}");
    assert_eq!(server.cli(&["KEYS", "*"]), "");
    assert_eq!(server.cli(&["SET", "others", "may write"]), "OK");
    let local = AnyFilter::from_plan(&large, Hasher::default()).unwrap();
    let error = RedisFilter::upload(&at(&server, "large"), &local, &options());
    assert!(is_full(&error.map(drop).unwrap_err()));
    assert_eq!(server.cli(&["KEYS", "*"]), "others");
}

/// Anything that fits is created, up to nearly all free memory.
#[test]
fn a_filter_that_fits() {
    let server = small();
    // Some 24 MB.
    let place = at(&server, "fits");
    let (mut filter, _) = pair(&place, &plan(17_500_000, 0.01));
    filter.verify().unwrap();
    // Another one of that size only fits if it replaces this one.
    let error = RedisFilter::create(
        &at(&server, "second"),
        &plan(17_500_000, 0.01),
        Hasher::default(),
        &options(),
    );
    assert!(is_full(&error.map(drop).unwrap_err()));
    let over = RedisFilter::create_over(
        &place,
        &plan(17_400_000, 0.01),
        Hasher::default(),
        &options(),
    );
    over.unwrap().verify().unwrap();
    // A filter that doesn't fit even then leaves the existing one alone.
    let error = RedisFilter::create_over(
        &place,
        &plan(100_000_000, 0.01),
        Hasher::default(),
        &options(),
    );
    assert!(is_full(&error.map(drop).unwrap_err()));
    RedisFilter::open(&place, &options())
        .unwrap()
        .verify()
        .unwrap();
}

/// On a server without a free byte, filters of all kinds can be deleted,
/// complete or not, and orphans can be collected.
#[test]
fn deleting_on_a_full_server() {
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let server = small();
        let plan = Plan::one_line(kind, 100_000, 0.01).unwrap();
        for name in ["whole", "half", "orphan", "opened"] {
            let place = at(&server, name);
            let filter = RedisFilter::create(&place, &plan, Hasher::default(), &options());
            insert(&mut filter.unwrap(), &keys(0..3_000));
        }
        let opened = RedisFilter::open(&at(&server, "opened"), &options()).unwrap();
        server.cli(&["EVAL", "redis.call('SETRANGE', 'half', 24, '\\0')", "0"]);
        let parts = server.cli(&["KEYS", "orphan:{*.*.*}"]);
        let hash = server.cli(&["KEYS", "{orphan}:[0-9a-f]*[0-9a-f]"]);
        let witness = server.cli(&["KEYS", "orphan:{witness.*}"]);
        server.cli(&["DEL", "orphan", "{orphan}:tamis", &witness]);
        for key in parts.lines().chain(hash.lines()) {
            server.age(key, 7_200);
        }
        fill(&server);
        opened.delete().unwrap();
        fill(&server);
        for name in ["whole", "half"] {
            RedisFilter::delete_at(&at(&server, name), &options()).unwrap();
            fill(&server);
        }
        let servers: Servers = format!("redis://{}", server.address()).parse().unwrap();
        let survey = Survey::of(&servers, &options()).unwrap();
        let gone = survey.collect(&options()).unwrap();
        assert_eq!(gone.len(), parts.lines().count() + 1, "{kind}");
        let left = server.cli(&["KEYS", "*[^0-9]"]);
        assert_eq!(left, "", "{kind}");
    }
}

/// A growing filter on a full server: its keys aren't confirmed, no part of a
/// layer is left, and it continues when there is memory.
#[test]
fn no_room_for_a_layer() {
    let server = small();
    let place = at(&server, "grows");
    let plan = Plan::one_line(Kind::Growing, 100_000, 0.01).unwrap();
    let mut filter = RedisFilter::create(&place, &plan, Hasher::default(), &options()).unwrap();
    insert(&mut filter, &keys(0..50_000));
    for number in 0..27 {
        server.cli(&["SETRANGE", &format!("junk{number}"), "1000000", "x"]);
    }
    let many = keys(0..1_000_000);
    let mut new = vec![false; many.len()];
    let error = filter.insert_many(&many, &mut new).unwrap_err();
    let Error::Unconfirmed {
        keys: open, reason, ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert!(reason.contains("no room"), "{reason}");
    let confirmed: Vec<String> = many[..open[0]].to_vec();
    assert!(!confirmed.is_empty() && open.len() > 1_000);
    assert!(all(&contains(&mut filter, &confirmed)));
    filter.verify().unwrap();
    for number in 0..27 {
        server.cli(&["DEL", &format!("junk{number}")]);
    }
    insert(&mut filter, &many);
    assert!(all(&contains(&mut filter, &many)));
    filter.delete().unwrap();
    assert_eq!(server.cli(&["KEYS", "*"]), "");
}

/// A server that can't save refuses all writes, including deletions. They are
/// reported as failed, and can be repeated.
#[test]
fn a_server_that_can_not_save() {
    let server = Server::start(&["save 3600 1", "enable-protected-configs yes"]);
    let place = at(&server, "seen");
    let (mut filter, _) = pair(&place, &plan(10_000, 0.01));
    insert(&mut filter, &keys(0..1_000));
    let folder = server.cli(&["CONFIG", "GET", "dir"]);
    let folder = folder.lines().last().unwrap();
    server.cli(&["CONFIG", "SET", "dir", "/proc"]);
    assert!(server.try_cli(&["SAVE"]).is_err());
    let _ = server.try_cli(&["BGSAVE"]);
    common::until("writes to be refused", Duration::from_secs(60), || {
        server.try_cli(&["SET", "x", "y"]).is_err()
    });
    let error = RedisFilter::delete_at(&place, &options()).unwrap_err();
    assert!(error.to_string().contains("MISCONF"), "{error}");
    assert!(all(&contains(&mut filter, &keys(0..1_000))));
    server.cli(&["CONFIG", "SET", "dir", folder]);
    server.cli(&["SAVE"]);
    RedisFilter::delete_at(&place, &options()).unwrap();
    assert_eq!(server.cli(&["KEYS", "*seen*"]), "");
}
