//! Windows with times that are wrong, or given by the server's clock.

use super::{HOUR, contains_at, create, hourly, insert_at, start, window_plan};
use crate::common::until;
use crate::*;
use tamis::{Moment, window::Renewal};

/// A time in the future of the server's clock doesn't move the window.
#[test]
fn the_far_future() {
    let place = at(server(), "window-future");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let now = Moment::now();
    assert!(filter.insert_at("now", now).unwrap());
    let typo = now + 100 * 366 * 24 * HOUR;
    assert!(filter.insert_at("typo", typo).unwrap());
    assert!(
        !filter.insert_at("typo", typo).unwrap(),
        "it is remembered all the same"
    );
    assert_eq!(filter.stats().future_keys, 2);
    assert!(filter.contains_at("now", now).unwrap() && filter.contains("now").unwrap());
    assert!(filter.contains("typo").unwrap());
    // Nor does it move a window that is years behind, or empty.
    filter.clear().unwrap();
    assert!(!filter.contains("typo").unwrap());
    assert!(filter.insert_at("then", start()).unwrap());
    assert!(filter.insert_at("typo", typo).unwrap());
    assert!(filter.contains_at("then", start() + HOUR).unwrap());
    filter.delete().unwrap();
}

/// Without a time, the server's clock decides, not the workers'.
#[test]
fn the_clock_is_the_servers() {
    let place = at(server(), "window-clock");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let time = || {
        let answer = server().cli(&["TIME"]);
        let seconds: i64 = answer.lines().next().unwrap().parse().unwrap();
        seconds / 450 * 450
    };
    let before = time();
    assert!(filter.insert("key").unwrap() && !filter.insert("key").unwrap());
    let latest = filter.latest().unwrap();
    assert!((before..=time()).contains(&(latest.micros() / 1_000_000)));
    filter.delete().unwrap();
}

/// A single time that is slightly or far ahead: the window forgets nothing, and
/// stays usable, however short it is.
#[test]
fn times_that_are_ahead() {
    let place = at(server(), "window-ahead");
    for (span, ahead) in [
        (8, 50),
        (8, 9),
        (8, 10_000),
        (600, 140),
        (600, 900),
        (600, 86_400),
    ] {
        let span = Duration::from_secs(span);
        let mut filter = create(&place, &window_plan(span, 1_000, 1e-6, Renewal::Within));
        let (ours, now) = (keys(0..500), Moment::now());
        let before = std::time::Instant::now();
        insert(&mut filter, &ours);
        let wrong = Moment::now() + Duration::from_secs(ahead);
        for round in 0..20 {
            insert_at(&mut filter, &keys(1_000 + round..1_002 + round), wrong);
        }
        let found = contains_at(&mut filter, &ours, now);
        assert!(
            all(&found) || before.elapsed() > span,
            "{ahead} s ahead of {span:?}"
        );
        let again = insert(&mut filter, &ours);
        let in_time = before.elapsed() < span / 2;
        assert!(
            count(&again) == 0 || !in_time,
            "{ahead} s ahead of {span:?}"
        );
        filter.verify().unwrap();
        filter.delete().unwrap();
    }
}

/// A server whose clock is an hour behind the given times: it uses its own
/// time, and each key is new once.
#[test]
fn a_server_that_is_behind() {
    let place = at(server(), "window-behind");
    let mut filter = create(&place, &window_plan(HOUR / 6, 1_000, 1e-6, Renewal::Within));
    for round in 0..3u32 {
        let times = Moment::now() + HOUR + Duration::from_secs(1) * round;
        let new = insert_at(&mut filter, &keys(0..500), times);
        assert_eq!(count(&new), if round == 0 { 500 } else { 0 });
    }
    assert_eq!(filter.stats().future_keys, 1_500);
    assert!(all(&contains(&mut filter, &keys(0..500))));
    filter.delete().unwrap();
}

/// A wrong time in a log from years ago doesn't move the window, in any chunk.
#[test]
fn one_typo_among_old_times() {
    let place = at(server(), "window-typo");
    let mut filter = create(&place, &hourly(1_000_000, 1e-6));
    let all = keys(0..2_000);
    let typo = Moment::now() + 100 * 366 * 24 * HOUR;
    let times: Vec<Moment> = (0..all.len())
        .map(|i| if i % 7 == 0 { typo } else { start() })
        .collect();
    for expected in [all.len(), 0] {
        let mut new = vec![false; all.len()];
        filter.insert_many_at(&all, &times[..], &mut new).unwrap();
        assert_eq!(count(&new), expected);
    }
    assert_eq!(filter.stats().too_old_keys, 0);
    filter.delete().unwrap();
}

/// Uses the server's clock, and the window moves on.
#[test]
fn the_server_forgets() {
    let place = at(server(), "window-short");
    let span = Duration::from_secs(1);
    let mut filter = create(&place, &window_plan(span, 1_000, 1e-6, Renewal::Within));
    let begun = std::time::Instant::now();
    assert!(filter.insert("key").unwrap());
    // It is found within its time; how long the query took is only known
    // afterwards.
    let found = filter.contains("key").unwrap();
    assert!(found || begun.elapsed() > span);
    until("the key to be forgotten", Duration::from_secs(60), || {
        !filter.contains("key").unwrap()
    });
    assert!(begun.elapsed() > span);
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    assert!(other.insert("key").unwrap());
    other.delete().unwrap();
}
