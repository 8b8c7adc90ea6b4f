//! One thing is broken and the rest isn't: a filter among filters, a node among
//! nodes, a truncated record. And servers that aren't what they seem.

use crate::common::{Cluster, Server};
use crate::*;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use tamis_redis::{Condition, Error, Survey};

fn survey_of(server: &Server) -> Survey {
    let servers = format!("redis://{}", server.address());
    Survey::of(&servers.parse().unwrap(), &options()).unwrap()
}

fn chunk_of(server: &Server, name: &str) -> String {
    let chunks = server.cli(&["KEYS", &format!("{name}:{{*.*.*}}")]);
    chunks.lines().next().unwrap().to_owned()
}

/// A part has the wrong type: its filter is named, and the others are listed.
#[test]
fn a_part_of_the_wrong_type() {
    let server = Server::start(&[]);
    let growing = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let counting = Plan::one_line(Kind::Counting, 1_000, 0.01).unwrap();
    for (name, plan) in [
        ("bits", plan(1_000, 0.01)),
        ("counts", counting),
        ("grows", growing),
        ("forgets", daily()),
        ("sound", plan(1_000, 0.01)),
    ] {
        let (mut filter, _) = pair(&at(&server, name), &plan);
        insert(&mut filter, &keys(0..100));
        if name != "sound" {
            let chunk = chunk_of(&server, name);
            server.cli(&["DEL", &chunk]);
            server.cli(&["RPUSH", &chunk, "x"]);
        }
    }
    let survey = survey_of(&server);
    assert!(!survey.is_whole());
    assert_eq!(survey.filters.len(), 5);
    for filter in &survey.filters {
        match (&filter.name[..], &filter.condition) {
            ("sound", Condition::Whole) => assert!(filter.keys.is_some()),
            (name, Condition::Damaged(_)) => assert_ne!(name, "sound"),
            (name, condition) => panic!("{name}: {condition:?}"),
        }
    }
    let reason = match &survey.filters[0].condition {
        Condition::Damaged(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason.contains(&chunk_of(&server, "bits")), "{reason}");
    assert!(reason.contains("got a list"), "{reason}");
    survey.collect(&options()).unwrap();
    // Each of them can be deleted or replaced.
    for name in ["bits", "forgets"] {
        RedisFilter::delete_at(&at(&server, name), &options()).unwrap();
    }
    for name in ["counts", "grows"] {
        let plan = plan(1_000, 0.01);
        let place = at(&server, name);
        RedisFilter::create_over(&place, &plan, Hasher::default(), &options()).unwrap();
    }
    let survey = survey_of(&server);
    assert!(survey.is_whole());
    assert_eq!(survey.filters.len(), 3);
}

/// A node is dead and stays dead: filters on the others are listed.
#[test]
fn a_dead_node() {
    let mut cluster = Cluster::start(&[
        "cluster-replica-no-failover yes",
        "cluster-require-full-coverage no",
    ]);
    let masters = cluster.masters();
    // Single-string filters, whose records are spread over the cluster.
    let names: Vec<String> = (0..12).map(|i| format!("filter{i}")).collect();
    for name in &names {
        let place = location(&cluster.location(name));
        drop(pair(&place, &plan(1_000, 0.01)));
    }
    let dead = masters[0].port;
    cluster.server_mut(dead).kill();
    let servers = cluster.location("");
    let servers = servers.trim_end_matches('/').parse().unwrap();
    let survey = Survey::of(&servers, &impatient()).unwrap();
    assert!(!survey.is_whole());
    let silent: Vec<_> = survey
        .nodes
        .iter()
        .filter(|n| n.unreachable.is_some())
        .collect();
    assert_eq!(silent.len(), 1, "{:?}", survey.nodes);
    assert!(silent[0].address.ends_with(&format!(":{dead}")));
    let whole = |found: &&tamis_redis::Found| found.condition == Condition::Whole;
    let unreachable =
        |found: &&tamis_redis::Found| matches!(found.condition, Condition::Unreachable(_));
    let filters = &survey.filters;
    assert!(filters.iter().filter(whole).count() > 0, "{filters:?}");
    assert!(
        filters.iter().filter(unreachable).count() > 0,
        "{filters:?}"
    );
    assert!(
        filters.iter().all(|f| whole(&f) || unreachable(&f)),
        "{filters:?}"
    );
    assert!(survey.orphans.is_empty(), "{:?}", survey.orphans);
    assert!(survey.collect(&impatient()).unwrap().is_empty());
}

/// A truncated or changed record counts as missing: the filter can be deleted
/// and replaced.
#[test]
fn a_damaged_record() {
    let server = Server::start(&[]);
    let growing = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let script = "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, ARGV[1]))";
    let cut = |key: &str, to: usize| server.cli(&["EVAL", script, "1", key, &to.to_string()]);
    for plan in [plan(1_000, 0.01), growing, daily()] {
        for (to, twin) in [
            (8, None),
            (20, None),
            (100, None),
            (100, Some(30)),
            (167, None),
        ] {
            let place = at(&server, "cut");
            let create = || RedisFilter::create(&place, &plan, Hasher::seeded(7), &options());
            let damage = || {
                let mut filter = create().unwrap();
                insert(&mut filter, &keys(0..2_000));
                cut("cut", to);
                if let Some(to) = twin {
                    cut("{cut}:tamis", to);
                }
                drop(filter);
                let opened = RedisFilter::open(&place, &options());
                assert!(matches!(opened, Err(Error::Corrupt { .. })));
                assert!(matches!(create(), Err(Error::Exists { .. })));
            };
            damage();
            RedisFilter::delete_at(&place, &options()).unwrap();
            damage();
            let over =
                RedisFilter::create_over(&place, &plan, Hasher::seeded(7), &options()).unwrap();
            drop(over);
            RedisFilter::delete_at(&place, &options()).unwrap();
            if twin.is_none() {
                assert_eq!(
                    server.cli(&["KEYS", "*"]),
                    "",
                    "{} cut to {to}",
                    plan.kind()
                );
            }
            // Without record and twin, only `gc` finds the hash next to them.
            server.cli(&["FLUSHALL"]);
        }
    }
    // A key that isn't a filter's is never touched.
    server.cli(&["SET", "cut", "TAMIS"]);
    assert!(RedisFilter::delete_at(&at(&server, "cut"), &options()).is_err());
    assert_eq!(server.cli(&["GET", "cut"]), "TAMIS");
}

fn refusal(text: &str) -> String {
    let error = RedisFilter::open(&location(text), &impatient())
        .err()
        .unwrap();
    error.to_string()
}

/// Every kind of server at the other end is recognised at once.
#[test]
fn not_a_redis_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let text = refusal(&format!("redis://{address}/seen"));
    assert!(text.contains("does not answer as a Redis server"), "{text}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let place = location(&format!("redis://{address}/seen"));
    let opened = runtime.block_on(tamis_redis::aio::RedisFilter::open(&place, &impatient()));
    let text = opened.err().unwrap().to_string();
    assert!(text.contains("does not answer as a Redis server"), "{text}");

    let master = Server::start(&[]);
    let sentinel = Server::sentinel("main", &master);
    let text = refusal(&format!("redis://{}/seen", sentinel.address()));
    assert!(
        text.contains("redis+sentinel://HOST:PORT/SERVICE/NAME"),
        "{text}"
    );
    let text = refusal(&format!("redis+sentinel://{}/main/seen", master.address()));
    assert!(text.contains("not a Sentinel"), "{text}");
    let text = refusal(&format!("redis+cluster://{}/seen", master.address()));
    assert!(text.contains("not a node of a cluster"), "{text}");
}

/// All nodes were reset: they have no slots, and don't know who does.
#[test]
fn a_cluster_that_was_reset() {
    let server = Server::start(&["cluster-enabled yes", "cluster-node-timeout 1000"]);
    server.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let text = format!("redis+cluster://{}/seen", server.address());
    crate::common::until("the cluster", Duration::from_secs(60), || {
        server
            .cli(&["CLUSTER", "INFO"])
            .contains("cluster_state:ok")
    });
    let (mut filter, _) = pair(&location(&text), &plan(1_000, 0.01));
    assert!(filter.insert("key").unwrap());
    server.cli(&["FLUSHALL"]);
    server.cli(&["CLUSTER", "RESET"]);
    let error = refusal(&text);
    assert!(error.contains("was reset, or never set up"), "{error}");
    let error = refusal(&text.replace("redis+cluster", "redis"));
    assert!(error.contains("reset or never set up"), "{error}");
}
