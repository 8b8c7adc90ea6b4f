//! Servers that don't answer: no call hangs, and unanswered requests never
//! count as done.

use crate::common::{Proxy, Server, until};
use crate::*;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Instant;
use tamis_redis::Error;

/// Runs code that must end by itself, and fails the test if it hangs.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let most = Duration::from_secs(120);
    ended.recv_timeout(most).expect("it hangs, or has panicked")
}

/// The keys that an error lists as unconfirmed.
fn unconfirmed(error: Error) -> Vec<usize> {
    match error {
        Error::Unconfirmed { keys, .. } => keys,
        other => panic!("expected Unconfirmed, got {other:?}"),
    }
}

#[test]
fn a_listener_that_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for text in [
        format!("redis://{address}/seen"),
        format!("redis://:password@{address}/seen"),
        format!("rediss://{address}/seen"),
        format!("redis+cluster://{address}/seen"),
    ] {
        let place = location(&text);
        ends(move || {
            let plan = plan(1_000, 0.01);
            let created = RedisFilter::create(&place, &plan, Hasher::default(), &hasty());
            assert!(
                matches!(created, Err(Error::Server { .. })),
                "{:?}",
                created.err()
            );
            assert!(RedisFilter::open(&place, &hasty()).is_err());
            assert!(RedisFilter::exists(&place, &hasty()).is_err());
        });
    }
}

#[test]
fn nobody_listens() {
    for scheme in ["redis", "redis+cluster"] {
        // A port that no test uses.
        let place = location(&format!("{scheme}://127.0.0.1:1/seen"));
        let error = ends(move || RedisFilter::open(&place, &hasty()).err().unwrap());
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

/// A server that stalls in the middle.
#[test]
fn a_frozen_server() {
    let server = Server::start(&[]);
    let place = at(&server, "frozen");
    let (created, _) = pair(&place, &plan(10_000, 0.01));
    drop(created);
    let mut filter = RedisFilter::open(&place, &impatient()).unwrap();
    let (before, during) = (keys(0..1_000), keys(1_000..2_000));
    insert(&mut filter, &before);
    server.freeze();
    let (mut filter, during, error, new) = ends(move || {
        let mut new = vec![false; during.len()];
        let error = filter.insert_many(&during, &mut new).unwrap_err();
        assert!(filter.contains(&during[0]).is_err());
        let mut found = vec![true; during.len()];
        assert!(filter.contains_many(&during, &mut found).is_err());
        assert!(filter.verify().is_err());
        assert!(filter.download().is_err());
        (filter, during, error, new)
    });
    assert_eq!(unconfirmed(error), (0..1_000).collect::<Vec<_>>());
    assert_eq!(count(&new), 0, "nothing unanswered is called new");

    // The same filter continues when the server does. Earlier requests may have
    // arrived, so a key may be old though no caller was told that it was new:
    // that is the meaning of "not confirmed".
    server.thaw();
    insert(&mut filter, &during);
    assert!(all(&contains(&mut filter, &before)) && all(&contains(&mut filter, &during)));
}

/// Adding to counters isn't idempotent, so unanswered requests aren't sent
/// again.
#[test]
fn counters_are_not_added_to_twice() {
    let server = Server::start(&[]);
    let place = at(&server, "frozen-counting");
    let plan = Plan::one_line(Kind::Counting, 10_000, 1e-4).unwrap();
    let (created, _) = pair(&place, &plan);
    drop(created);
    // Long enough for many retries.
    let options = impatient().retry_for(Duration::from_secs(60));
    let wire = Proxy::start(server.port());
    let by_wire = location(&format!("redis://{}/frozen-counting", wire.address()));
    let mut filter = RedisFilter::open(&by_wire, &options).unwrap();
    let clients = wire.clients();
    server.freeze();
    let thread = std::thread::spawn(move || {
        let keys = keys(0..1_000);
        let mut new = vec![false; keys.len()];
        let error = filter.insert_many(&keys, &mut new).unwrap_err();
        (filter, keys, error)
    });
    // It either gives up, as it should, or opens another connection to retry.
    until("an answer to be late", Duration::from_secs(60), || {
        thread.is_finished() || wire.clients() > clients
    });
    server.thaw();
    let (mut filter, keys, error) = thread.join().unwrap();
    let open = unconfirmed(error);
    assert_eq!(open.len(), keys.len());
    let hashes: Vec<_> = keys
        .iter()
        .map(|key| filter.hasher().unwrap().hash(key.as_bytes()))
        .collect();
    let mut counts = vec![0; keys.len()];
    until("the server to be there", Duration::from_secs(60), || {
        filter.count_hashes(&hashes, &mut counts).is_ok()
    });
    let twice = counts.iter().filter(|times| **times > 1).count();
    assert!(
        twice < 3,
        "{twice} keys were added twice (or look so by chance)"
    );
}

/// A pause shorter than the retry limit goes unnoticed.
#[test]
fn a_pause() {
    let server = Server::start(&[]);
    let place = at(&server, "paused");
    let (created, mut local) = pair(&place, &plan(10_000, 0.01));
    drop(created);
    let options = impatient().retry_for(Duration::from_secs(30));
    let mut filter = RedisFilter::open(&place, &options).unwrap();
    let all_keys = keys(0..10_000);
    let start = Instant::now();
    server.cli(&["CLIENT", "PAUSE", "2500", "ALL"]);
    let new = insert(&mut filter, &all_keys);
    assert!(
        start.elapsed() > Duration::from_secs(2),
        "there was no pause"
    );
    let mut expected = vec![false; all_keys.len()];
    local.insert_many(&all_keys, &mut expected).unwrap();
    // A key that was sent more than once may have been added by an unanswered
    // try: it is reported as new, rather than to no one.
    let hidden = new
        .iter()
        .zip(&expected)
        .filter(|(new, expected)| **expected && !**new);
    assert_eq!(hidden.count(), 0, "a new key was called old");
    assert_eq!(body(&filter.download().unwrap()), body(&local));
}

/// Writes stall, but reads work.
#[test]
fn a_pause_of_writes() {
    let server = Server::start(&[]);
    let place = at(&server, "paused-writes");
    let (created, _) = pair(&place, &plan(10_000, 0.01));
    drop(created);
    let mut filter = RedisFilter::open(&place, &impatient()).unwrap();
    let old = keys(0..1_000);
    insert(&mut filter, &old);
    server.cli(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    let more = keys(1_000..2_000);
    let mut new = vec![false; more.len()];
    let error = filter.insert_many(&more, &mut new).unwrap_err();
    assert_eq!(unconfirmed(error).len(), more.len());
    assert_eq!(count(&new), 0);
    assert!(all(&contains(&mut filter, &old)));
    server.cli(&["CLIENT", "UNPAUSE"]);
    insert(&mut filter, &more);
    assert!(all(&contains(&mut filter, &more)));
}

/// With a fully synchronous AOF (`appendfsync always`), a crash loses no
/// confirmed keys, and workers continue when the server is back.
#[test]
fn a_crash_with_aof() {
    let mut server = Server::start(&["appendonly yes", "appendfsync always"]);
    let place = at(&server, "crash");
    let (created, mut local) = pair(&place, &plan(200_000, 0.01));
    drop(created);
    // A worker that is too far ahead waits, so that the load lasts until the
    // crash.
    let (confirmed, told) = mpsc::sync_channel(8);
    let worker = std::thread::spawn(move || {
        let patient = options().retry_for(Duration::from_secs(120));
        let mut filter = RedisFilter::open(&place, &patient).unwrap();
        for first in (0..40_000).step_by(1_000) {
            insert(&mut filter, &keys(first..first + 1_000));
            // After the crash there is no receiver.
            let _ = confirmed.send(first + 1_000);
        }
        filter
    });
    // Under load.
    while told.recv().unwrap() < 10_000 {}
    server.kill();
    drop(told);
    std::thread::sleep(Duration::from_millis(300));
    server.restart();
    let mut filter = worker.join().unwrap();
    assert!(
        all(&contains(&mut filter, &keys(0..40_000))),
        "a confirmed key is lost"
    );
    filter.verify().unwrap();
    let keys = keys(0..40_000);
    local
        .insert_many(&keys, &mut vec![false; keys.len()])
        .unwrap();
    assert!(
        body(&filter.download().unwrap()) == body(&local),
        "the bytes differ"
    );
}

/// A server that was restarted empty has lost the filter: an error, not a "no".
#[test]
fn a_crash_without_aof() {
    let mut server = Server::start(&[]);
    let place = at(&server, "lost");
    let (mut filter, _) = pair(&place, &plan(1_000, 0.01));
    insert(&mut filter, &keys(0..500));
    server.kill();
    server.restart();
    let mut found = vec![true; 500];
    let error = filter.contains_many(&keys(0..500), &mut found).unwrap_err();
    assert!(
        matches!(error, Error::MissingChunk { .. } | Error::Gone { .. }),
        "{error:?}"
    );
    assert!(filter.insert("x").is_err());
    assert!(matches!(
        RedisFilter::open(&place, &options()),
        Err(Error::NotFound { .. })
    ));
}
