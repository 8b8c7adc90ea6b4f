//! How servers are reached, what is reported about it, and the texts of errors.

use crate::common::{Server, until};
use crate::*;
use std::net::TcpListener;
use tamis_redis::{Error, Stats, aio};

fn created(at: &Location, options: &Options) -> RedisFilter {
    RedisFilter::create(at, &plan(10_000, 0.01), Hasher::default(), options).unwrap()
}

/// Errors name the server, the command and the time, not the number of a system
/// call.
#[test]
fn errors_name_the_node_the_command_and_the_time() {
    let server = Server::start(&[]);
    let place = at(&server, "silent");
    drop(created(&place, &options()));
    let hasty = options()
        .response_timeout(Duration::from_millis(3_500))
        .retry_for(Duration::ZERO);
    let mut filter = RedisFilter::open(&place, &hasty).unwrap();
    server.freeze();
    let added = filter.insert("x").unwrap_err().to_string();
    let beginning = format!("no answer from {} in ", server.address());
    let told = added.split_once(&beginning).expect(&added).1;
    let seconds = told.split_once(" s to ").expect(&added).0;
    // The time it took, which may be longer.
    assert!(seconds.parse::<f64>().expect(&added) >= 3.5, "{added}");
    assert!(!added.contains("os error"), "{added}");
    server.thaw();

    // Connecting as well. The listener's queue accepts us, but no answer comes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let place = location(&format!("redis://{address}/seen"));
    let hasty = hasty.connect_timeout(Duration::from_millis(400));
    let error = RedisFilter::open(&place, &hasty).err().unwrap();
    let text = error.to_string();
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(text.contains(" in "), "{text}");
    assert!(!text.contains("os error 11)"), "{text}");
    let Error::Server { node, .. } = error else {
        panic!("{text}");
    };
    assert_eq!(node, Some(address.to_string()));
}

/// A server's refusal is reported with its address and its own words.
#[test]
fn refusals_name_the_node() {
    let server = Server::start(&[]);
    server.cli(&[
        "ACL",
        "SETUSER",
        "ada",
        "on",
        ">sesame",
        "~*",
        "+@connection",
    ]);
    let text = format!("redis://ada:sesame@{}/seen", server.address());
    let error = RedisFilter::open(&location(&text), &impatient())
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(text.contains(&server.address()), "{text}");
    assert!(
        text.contains("no permissions") || text.contains("NOPERM"),
        "{text}"
    );
}

#[test]
fn connections_have_names() {
    let server = Server::start(&[]);
    let filter = created(&at(&server, "seen/by us"), &options());
    let list = server.cli(&["CLIENT", "LIST"]);
    assert!(list.contains("name=tamis:seen/by_us "), "{list}");
    drop(filter);
}

#[test]
fn what_happened_is_counted() {
    let server = Server::start(&[]);
    let place = at(&server, "counted");
    let mut filter = created(&place, &options());
    insert(&mut filter, &keys(0..1_000));
    let calm = filter.stats();
    assert_eq!(calm.connections, 1);
    assert_eq!(
        (calm.reconnects, calm.retries, calm.ambiguous_keys),
        (0, 0, 0)
    );

    server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    insert(&mut filter, &keys(0..1_000));
    let Stats {
        reconnects,
        retries,
        ambiguous_keys,
        ..
    } = filter.stats();
    assert_eq!(reconnects, 1);
    assert!(retries > 0);
    // Old keys whose first answer was lost are reported as new.
    assert!(ambiguous_keys > 900, "{ambiguous_keys}");
}

/// Without failures, no client reconnects.
#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_cluster() {
    let place = location(&cluster().location("healthy"));
    let mut filter = created(&place, &options());
    insert(&mut filter, &keys(0..1_000));
    assert!(all(&contains(&mut filter, &keys(0..1_000))));
    let calm = filter.stats();
    assert_eq!((calm.reconnects, calm.retries, calm.redirects), (0, 0, 0));
    let mut other = aio::RedisFilter::open(&place, &options()).await.unwrap();
    assert!(other.contains("https://example.org/page/1").await.unwrap());
    assert_eq!(other.stats().reconnects, 0);
    filter.delete().unwrap();
}

/// An error is reported once.
#[test]
fn a_cause_is_told_once() {
    let place = location("redis://[::1]:1/seen");
    let error = RedisFilter::open(&place, &hasty()).err().unwrap();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    assert_eq!(text.matches("os error").count(), 1, "{text}");
    assert!(text.contains("[::1]:1"), "{text}");
}

/// However many tasks lose a connection, only one of them opens the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clones_reconnect_once() {
    let server = Server::start(&[]);
    let place = at(&server, "shared");
    drop(created(&place, &options()));
    let filter = aio::RedisFilter::open(&place, &options()).await.unwrap();
    assert_eq!(filter.stats().connections, 1);
    for round in 1..=5 {
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        let mut tasks = Vec::new();
        for i in 0..50 {
            let mut mine = filter.clone();
            let key = format!("{round} {i}");
            tasks.push(tokio::spawn(async move { mine.insert(key).await.unwrap() }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(filter.stats().reconnects, round);
    }
    assert_eq!(filter.stats().connections, 6);
}

/// RESP3, on one server and in a cluster.
#[test]
fn resp3() {
    let one = format!("redis://{}/resp3?protocol=resp3", server().address());
    let cluster = cluster().location("resp3") + "?protocol=resp3";
    for (text, kind) in [&one, &cluster]
        .into_iter()
        .flat_map(|text| [Kind::Blocked, Kind::Counting, Kind::Growing].map(|kind| (text, kind)))
    {
        let at = location(text);
        assert_eq!(at.name(), "resp3");
        let plan = Plan::one_line(kind, 1_000, 0.01).unwrap();
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
        let keys = keys(0..3_000);
        insert(&mut filter, &keys);
        assert!(all(&contains(&mut filter, &keys)), "{text} {kind}");
        filter.verify().unwrap();
        filter.keys().unwrap();
        assert_eq!(filter.time_to_live().unwrap(), None);
        assert_eq!(filter.download().unwrap().kind(), kind);
        if kind == Kind::Counting {
            assert!(filter.remove(&keys[0]).unwrap());
        }
        filter.delete().unwrap();
    }
    let name = "resp3";
    let mut filter = created(&location(&one), &options());
    assert!(filter.insert(name).unwrap());
    let list = server().cli(&["CLIENT", "LIST"]);
    let ours = list.lines().find(|line| line.contains("name=tamis:resp3 "));
    assert!(ours.unwrap().contains("resp=3"), "{list}");
    filter.delete().unwrap();
}

#[test]
fn a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redis.sock");
    let setting = format!("unixsocket {}", path.display());
    let server = Server::start(&[&setting, "requirepass sesame"]);
    let text = format!("redis+unix://{}?name=seen&db=2&pass=sesame", path.display());
    let place = location(&text);
    let mut filter = created(&place, &options());
    assert!(filter.insert("x").unwrap());
    let plain = location(&format!("redis://:sesame@{}/2/seen", server.address()));
    let mut same = RedisFilter::open(&plain, &options()).unwrap();
    assert!(same.contains("x").unwrap());
    drop((filter, server));
    until("the socket to close", Duration::from_secs(60), || {
        RedisFilter::open(&place, &hasty()).is_err()
    });
    let error = RedisFilter::open(&place, &hasty())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("redis.sock"), "{error}");
    assert!(!error.contains("sesame"), "{error}");
}
