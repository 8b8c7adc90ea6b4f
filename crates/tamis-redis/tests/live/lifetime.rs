//! A filter and all its keys expire or are deleted together.

use crate::common::{Server, until};
use crate::*;
use tamis_redis::Error;

/// When the keys of a filter expire, in milliseconds, with its header first; -1
/// means never.
fn expiries(servers: &[&Server], name: &str) -> Vec<i64> {
    let mut times = Vec::new();
    for server in servers {
        let listed = server.cli(&["KEYS", &format!("*{name}*")]);
        for key in listed.lines() {
            let time = server.cli(&["PEXPIRETIME", key]).parse().unwrap();
            let at = if key == name { 0 } else { times.len() };
            times.insert(at, time);
        }
    }
    times
}

/// All parts expire with the header: not before it, and within ten seconds, by
/// which the nodes' clocks may differ.
fn together(times: &[i64]) -> bool {
    let [header, parts @ ..] = times else {
        return false;
    };
    let with_it = *header..*header + 11_000;
    *header > 0 && !parts.is_empty() && parts.iter().all(|time| with_it.contains(time))
}

fn expires(place: &Location, servers: &[&Server], kind: Kind) {
    let name = place.name();
    let plan = Plan::one_line(kind, 5_000, 0.01).unwrap();
    let (mut filter, _) = pair(place, &plan);
    insert(&mut filter, &keys(0..5_000));
    assert_eq!(filter.time_to_live().unwrap(), None);
    assert!(expiries(servers, name).iter().all(|time| *time == -1));

    filter.expire_in(Duration::from_secs(100)).unwrap();
    let left = filter.time_to_live().unwrap().unwrap();
    assert!(
        left <= Duration::from_secs(100) && left > Duration::from_secs(60),
        "{left:?}"
    );
    let times = expiries(servers, name);
    assert!(together(&times), "{times:?}");

    // Later, and never.
    filter.expire_in(Duration::from_secs(1_000)).unwrap();
    let later = expiries(servers, name);
    assert!(together(&later) && later[0] > times[0], "{later:?}");
    filter.persist().unwrap();
    assert_eq!(filter.time_to_live().unwrap(), None);
    assert!(expiries(servers, name).iter().all(|time| *time == -1));

    // Parts added later expire with the others: another worker adds so many
    // keys that a growing filter grows.
    filter.expire_in(Duration::from_secs(100)).unwrap();
    let before = expiries(servers, name);
    let mut other = RedisFilter::open(place, &options()).unwrap();
    insert(&mut other, &keys(5_000..40_000));
    let after = expiries(servers, name);
    assert!(together(&after) && after[0] == before[0], "{after:?}");
    assert!(
        kind != Kind::Growing || after.len() > before.len(),
        "it has not grown"
    );

    filter.expire_in(Duration::from_millis(300)).unwrap();
    until("the filter to expire", Duration::from_secs(60), || {
        !RedisFilter::exists(place, &options()).unwrap()
    });
    assert!(matches!(
        RedisFilter::open(place, &options()),
        Err(Error::NotFound { .. })
    ));
    // Clients that have it open get right answers or errors.
    let keys = keys(0..1_000);
    let is_over = |error: &Error| matches!(error, Error::Gone { .. } | Error::MissingChunk { .. });
    until("all of it to expire", Duration::from_secs(60), || {
        let mut found = vec![false; keys.len()];
        match filter.contains_many(&keys, &mut found) {
            Ok(()) => assert!(all(&found), "a false no"),
            Err(error) => assert!(is_over(&error), "{error:?}"),
        }
        expiries(servers, name).is_empty()
    });
    let mut answers = vec![true; keys.len()];
    for worker in [&mut filter, &mut other] {
        let error = worker.contains_many(&keys, &mut answers).unwrap_err();
        assert!(is_over(&error), "{error:?}");
        let error = worker.insert_many(&keys, &mut answers).unwrap_err();
        assert!(is_over(&error), "{error:?}");
    }
    // Failed additions don't leave anything behind, either.
    assert_eq!(expiries(servers, name), [], "keys are left");
}

#[test]
fn expires_on_one_node() {
    std::thread::scope(|scope| {
        for (name, kind) in [
            ("expiring-blocked", Kind::Blocked),
            ("expiring-counting", Kind::Counting),
            ("expiring-growing", Kind::Growing),
        ] {
            scope.spawn(move || expires(&at(server(), name), &[server()], kind));
        }
    });
}

#[test]
fn expires_in_a_cluster() {
    let masters = cluster().masters();
    let servers: Vec<_> = masters
        .iter()
        .map(|node| cluster().server(node.port))
        .collect();
    expires(
        &location(&cluster().location("expiring")),
        &servers,
        Kind::Growing,
    );
}

/// Deleted by one worker while another adds keys: that one gets an error.
#[test]
fn deleted_under_the_hands_of_another() {
    let place = location(&cluster().location("deleted"));
    let (filter, _) = pair(&place, &plan(10_000_000, 0.01));
    assert!(cluster().keys("*deleted").len() > 3);
    let (begun, begins) = std::sync::mpsc::channel();
    let other = std::thread::spawn({
        let place = place.clone();
        move || {
            let mut other = RedisFilter::open(&place, &options()).unwrap();
            for first in (0..).step_by(500) {
                let keys = keys(first..first + 500);
                let mut new = vec![false; keys.len()];
                if let Err(error) = other.insert_many(&keys, &mut new) {
                    return error;
                }
                // Only the first message has a receiver.
                let _ = begun.send(());
            }
            unreachable!()
        }
    });
    begins.recv().unwrap();
    filter.delete().unwrap();
    let error = other.join().unwrap();
    assert!(
        matches!(error, Error::Gone { .. } | Error::MissingChunk { .. }),
        "{error:?}"
    );
    assert!(!RedisFilter::exists(&place, &options()).unwrap());
    let left = cluster().keys("*deleted");
    assert!(left.is_empty(), "{left:?}");
}
