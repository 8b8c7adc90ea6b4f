//! Windows on the servers: strings that are lost or old, expiry, rights, surveys, and what is refused.

use super::{HOUR, STEP, create, hourly, insert_at, start, strings};
use crate::common::Server;
use crate::*;
use tamis::Moment;
use tamis_redis::Error;

fn is_loss(error: &Error) -> bool {
    matches!(error, Error::MissingChunk { .. })
}

/// A string is missing: no operation answers.
fn refuses(filter: &mut RedisFilter, at: Moment) {
    let keys = keys(0..100);
    for _ in 0..2 {
        let mut answers = vec![false; keys.len()];
        let error = filter
            .contains_many_at(&keys, at, &mut answers)
            .unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        let error = filter.insert_many_at(&keys, at, &mut answers).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        assert_eq!(count(&answers), 0);
        assert!(is_loss(&filter.insert_at("x", at).unwrap_err()));
        assert!(is_loss(&filter.verify().unwrap_err()));
        assert!(is_loss(&filter.keys().map(drop).unwrap_err()));
    }
}

#[test]
fn a_lost_string_is_noticed() {
    let place = at(server(), "window-lost");
    let mut filter = create(&place, &hourly(100, 1e-6));
    // Enough keys that most buckets need further strings.
    insert_at(&mut filter, &keys(0..1_000), start());
    let listed = strings(server(), "window-lost");
    assert!(listed.len() >= 3, "{listed:?}");
    filter.verify().unwrap();
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    for lost in [2, 0] {
        server().cli(&["COPY", &listed[lost], "backup-lost"]);
        server().cli(&["SETRANGE", &listed[lost], "100", "x"]);
        filter.verify().unwrap();
        for with in ["", "something else"] {
            server().cli(&["SET", &listed[lost], with]);
            refuses(&mut filter, start());
            refuses(&mut other, start());
        }
        server().cli(&["DEL", &listed[lost]]);
        refuses(&mut other, start());
        let error = filter.contains_many_at(&keys(0..100), start(), &mut [false; 100]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&listed[lost]), "{error}");
        server().cli(&["RENAME", "backup-lost", &listed[lost]]);
    }
    server().cli(&["DEL", &listed[0]]);
    assert!(is_loss(&RedisFilter::open(&place, &options()).unwrap_err()));
    RedisFilter::delete_at(&place, &options()).unwrap();
    create(&place, &hourly(1_000, 0.01)).delete().unwrap();
}

/// A part restored from a backup is noticed by clients that have the filter
/// open, and by `verify`.
#[test]
fn an_older_part_is_noticed() {
    let place = at(server(), "window-older");
    let mut filter = create(&place, &hourly(10_000, 1e-6));
    insert(&mut filter, &keys(0..100));
    let part = strings(server(), "window-older").remove(0);
    server().cli(&["COPY", &part, "backup-older"]);
    insert(&mut filter, &keys(100..200));
    insert(&mut filter, &keys(200..300));
    filter.verify().unwrap();
    server().cli(&["RENAME", "backup-older", &part]);
    let is_older = |error: &Error| matches!(error, Error::RolledBack { .. });
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    let error = other.verify().unwrap_err();
    assert!(
        is_older(&error) && error.to_string().contains(&part),
        "{error}"
    );
    assert!(is_older(&filter.contains("key").unwrap_err()));
    RedisFilter::accept_loss_at(&place, &options()).unwrap();
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    other.verify().unwrap();
    assert!(all(&contains(&mut other, &keys(0..100))));
    other.delete().unwrap();
}

/// Strings don't expire, unless the whole filter does; then they all do.
#[test]
fn an_end_is_that_of_all_strings() {
    let place = at(server(), "window-ends");
    let mut filter = create(&place, &hourly(100, 1e-6));
    let left = |key: &String| server().cli(&["PTTL", key]).parse::<i64>().unwrap();
    insert_at(&mut filter, &keys(0..300), start());
    let some = strings(server(), "window-ends");
    assert!(some.iter().all(|key| left(key) == -1), "{some:?}");
    filter.expire_in(Duration::from_secs(1_000)).unwrap();
    insert_at(&mut filter, &keys(300..2_000), start());
    let all = strings(server(), "window-ends");
    assert!(all.len() > some.len(), "{all:?}");
    assert!(all.iter().all(|key| (1..=1_010_000).contains(&left(key))));
    filter.persist().unwrap();
    assert!(all.iter().all(|key| left(key) == -1));
    filter.clear().unwrap();
    assert_eq!(strings(server(), "window-ends").len(), 1);
    assert_eq!(filter.keys().unwrap().get(), 0);
    insert_at(&mut filter, &keys(0..2_000), start());
    filter.delete().unwrap();
    assert_eq!(server().cli(&["KEYS", "*window-ends*"]), "");
}

#[test]
fn operators_see_it() {
    let server = Server::start(&[]);
    let place = at(&server, "window-seen");
    let mut filter = create(&place, &hourly(8_000, 0.01));
    for generation in 0..3 {
        let first = u64::from(generation) * 500;
        insert_at(
            &mut filter,
            &keys(first..first + 500),
            start() + STEP * generation,
        );
    }
    let survey = tamis_redis::Survey::of(
        &format!("redis://{}", server.address()).parse().unwrap(),
        &options(),
    )
    .unwrap();
    assert!(survey.orphans.is_empty());
    let [found] = &survey.filters[..] else {
        panic!("{:?}", survey.filters)
    };
    assert_eq!(found.kind, Some(Kind::Window));
    assert_eq!(found.condition, tamis_redis::Condition::Whole);
    assert!((1_470..1_530).contains(&found.keys.unwrap()), "{found:?}");
    let shares = filter.shares().unwrap();
    assert_eq!(shares.iter().map(|share| share.keys).sum::<u64>(), 1);
    let string = strings(&server, "window-seen").remove(0);
    let length: u64 = server.cli(&["STRLEN", &string]).parse().unwrap();
    assert_eq!(filter.bytes() + 10, length, "and its foot");
    // More than it was made for: it grows, and keeps its rate.
    insert_at(&mut filter, &keys(10_000..50_000), start() + STEP * 3);
    assert_eq!(filter.warnings(), []);
    assert!(filter.rate_now().unwrap() <= 0.01);
    assert!(filter.shares().unwrap()[0].keys > 2);
    filter.delete().unwrap();
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

/// The rights in docs/operating.md suffice, and queries need no others.
#[test]
fn users_and_their_rights() {
    let server = Server::start(&[]);
    let adds = "+@read +@write +@connection +@scripting +wait +info +time";
    let asks = "+@read +@connection +eval_ro +info +time";
    let keys = ["window", "window:*", "{window}:*"];
    for (user, pattern, rights) in [("adds", "~", adds), ("asks", "%R~", asks)] {
        let patterns = keys.map(|key| format!("{pattern}{key}"));
        let mut command = vec!["ACL", "SETUSER", user, "on", ">sesame"];
        command.extend(patterns.iter().map(String::as_str));
        command.extend(rights.split(' '));
        server.cli(&command);
    }
    let as_user = |user: &str| {
        location(&format!(
            "redis://{user}:sesame@{}/window",
            server.address()
        ))
    };
    let mut filter = create(&as_user("adds"), &hourly(1_000, 1e-6));
    assert!(filter.insert("now").unwrap() && filter.insert_at("then", start()).unwrap());
    let mut reader = RedisFilter::open(&as_user("asks"), &options()).unwrap();
    assert!(reader.contains("now").unwrap());
    reader.verify().unwrap();
    assert_eq!(reader.keys().unwrap().get(), 1);
    assert!(reader.insert("more").is_err());
    filter.delete().unwrap();
}

/// Impossible requests are refused with a reason.
#[test]
fn what_is_refused() {
    let place = at(server(), "window-refused");
    let by_keys = Plan::for_rate(Kind::Window, 1_000, 0.01).unwrap();
    let error = RedisFilter::create(&place, &by_keys, Hasher::default(), &options()).unwrap_err();
    assert!(error.to_string().contains("number of keys"), "{error}");
    assert!(!RedisFilter::exists(&place, &options()).unwrap());
    let mut filter = create(&place, &hourly(1_000, 0.01));
    assert!(filter.remove("key").is_err() && filter.count("key").is_err());
    let other = AnyFilter::from_plan(&hourly(1_000, 0.01), Hasher::seeded(7)).unwrap();
    let error = filter.union_with(&other).unwrap_err();
    assert!(error.to_string().contains("with their times"), "{error}");
    for error in [
        filter.download().map(drop).unwrap_err(),
        RedisFilter::upload(&at(server(), "other"), &other, &options())
            .map(drop)
            .unwrap_err(),
    ] {
        assert!(error.to_string().contains("layouts differ"), "{error}");
    }
    assert!(!RedisFilter::exists(&at(server(), "other"), &options()).unwrap());
    filter.delete().unwrap();
    // Filters other than windows ignore moments.
    let mut plain = create(&place, &plan(1_000, 0.01));
    assert!(plain.insert_at("key", start()).unwrap());
    assert!(plain.contains_at("key", start() + 1_000 * HOUR).unwrap());
    assert!(plain.generations().is_err());
    plain.delete().unwrap();
}
