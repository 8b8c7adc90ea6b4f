//! The command on servers that are full, or that come back empty or with older data, and on overfull filters.

use crate::at;
use crate::common::{Sandbox, keys};
use crate::servers::{Cluster, Server};
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

/// The record's node comes back empty: a restarted worker reports that, and prints nothing.
#[test]
fn the_records_node_comes_back_empty() {
    let mut cluster = Cluster::start(&["cluster-replica-no-failover yes"]);
    let dir = Sandbox::new();
    let seen = cluster.location("seen");
    dir.ok(&format!("create {seen} --capacity 20M"));
    let worker = |dir: &Sandbox| dir.feed(&format!("dedup --filter {seen}"), keys(0..20_000));
    assert_eq!(worker(&dir).code, 0);
    let home = cluster.owner(cluster.slot_of("seen")).port;
    cluster.server_mut(home).kill();
    cluster.server_mut(home).restart();
    cluster.wait();
    let again = worker(&dir);
    assert_eq!((again.code, again.text()), (2, ""), "{}", again.err);
    assert!(again.err.contains("lost with its node"), "{}", again.err);
    let listed = dir.ok(&format!(
        "list {}",
        cluster.location("").trim_end_matches('/')
    ));
    assert!(
        listed.text().contains("its record is gone"),
        "{}",
        listed.text()
    );
    dir.ok(&format!("drop {seen}"));
    assert_eq!(cluster.keys("seen:").len(), 0);
    assert_eq!(worker(&dir).text(), keys(0..20_000));
}

/// A server with an older snapshot: the running worker fails, and its claimed records are printed.
#[test]
fn a_server_comes_back_with_older_data() {
    let mut server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    dir.ok(&format!("create {seen} --capacity 1M"));
    dir.feed(&format!("dedup --filter {seen}"), keys(0..10_000));
    server.cli(&["SAVE"]);
    let mut worker = dir
        .command(&format!("dedup --filter {seen}?retry=60s"))
        .stdin(Stdio::piped())
        .stdout(File::create(dir.path("printed")).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = worker.stdin.take().unwrap();
    let first = keys(10_000..40_000);
    input.write_all(first.as_bytes()).unwrap();
    let held = || {
        let found = dir.run(&format!("check -c {seen} probe"));
        assert_ne!(found.code, 2, "{}", found.err);
        found.text().trim().to_owned()
    };
    dir.write("probe", keys(10_000..20_000));
    crate::servers::until("keys to be claimed", Duration::from_secs(60), || {
        held() == "10000"
    });
    server.kill();
    server.restart();
    let _ = input.write_all(keys(40_000..80_000).as_bytes());
    drop(input);
    let ended = worker.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert!(err.contains("keys that were confirmed are gone"), "{err}");
    // A new one continues with what is left.
    assert_ne!(held(), "10000");
    let resumed = dir.feed(&format!("dedup --filter {seen}"), keys(10_000..40_000));
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(held(), "10000");
    let verified = dir.ok(&format!("verify --seal --json --probes 1000 {seen}"));
    let verified: serde_json::Value = serde_json::from_str(verified.text()).unwrap();
    assert_eq!(verified["valid"], true);
    assert_eq!(verified["checks"][0]["probes"], 1000);
    assert_eq!(verified["filter"]["kind"], "blocked");
}

/// A full server: nothing is started, and existing filters can be deleted.
#[test]
fn a_full_server() {
    let server = Server::start(&["maxmemory 30mb"]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    let full = dir.run(&format!("create {seen} --capacity 100M"));
    assert_eq!(full.code, 2);
    assert!(full.err.contains("no room"), "{}", full.err);
    assert_eq!(server.cli(&["KEYS", "*"]), "");
    dir.ok(&format!("create {seen} --capacity 10k"));
    let mut junk = 0;
    while server
        .try_cli(&["SETRANGE", &format!("junk{junk}"), "100000", "x"])
        .is_ok()
    {
        junk += 1;
    }
    dir.ok(&format!("drop {seen}"));
    assert_eq!(server.cli(&["KEYS", "*seen*"]), "");
    // A key that isn't a filter isn't replaced, and no hint suggests it.
    for junk in 0..10 {
        server.cli(&["DEL", &format!("junk{junk}")]);
    }
    server.cli(&["LPUSH", "list", "x"]);
    for force in ["", "--force"] {
        let taken = dir.run(&format!(
            "create {} --capacity 1k {force}",
            at(&server, "list")
        ));
        assert_eq!(taken.code, 2);
        assert!(!taken.err.contains("--force"), "{}", taken.err);
    }
}

/// An overfull filter is reported as such, for programs, too.
#[test]
fn an_overfull_filter() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    dir.ok(&format!("create {servers}/small --capacity 1000"));
    let added = dir.feed(&format!("add {servers}/small"), keys(0..900));
    assert!(!added.err.contains("made for"), "{}", added.err);
    let added = dir.feed(&format!("add {servers}/small"), keys(0..100_000));
    assert!(added.err.contains("made for 1000"), "{}", added.err);
    let listed = dir.ok(&format!("list {servers}"));
    let row: Vec<&str> = listed
        .text()
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row.last(), Some(&"overfull"), "{row:?}");
    assert!(row[2].len() < 9, "{row:?}");
    assert!(listed.err.contains("instead of 0.01"), "{}", listed.err);

    let json = dir.ok(&format!("list --json {servers}"));
    let json: serde_json::Value = serde_json::from_str(json.text()).unwrap();
    let small = &json["filters"][0];
    assert_eq!(small["state"], "overfull");
    assert!(small["fill"].as_f64().unwrap() > 3.0, "{small}");
    assert!(small["rate_now"].as_f64().unwrap() > 0.5, "{small}");
    assert!(
        small["seconds_since_write"].as_f64().unwrap() < 600.0,
        "{small}"
    );
    assert_eq!(json["nodes"][0]["role"], "master");
    let info = dir.ok(&format!("info --json {servers}/small"));
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    assert_eq!(info["over_capacity"], true);
    assert_eq!(info["servers"][0]["role"], "master");
    assert!(
        info["seconds_since_write"].as_u64().unwrap() < 600,
        "{info}"
    );

    let metrics = dir.ok(&format!("list --metrics {servers}"));
    let address = server.address();
    for line in [
        "# TYPE tamis_filter_keys gauge",
        "tamis_filter_capacity{filter=\"small\"} 1000",
        "tamis_filter_rate_promised{filter=\"small\"} 0.01",
        "tamis_filter_state{filter=\"small\",state=\"overfull\"} 1",
        "tamis_orphans 0",
        &format!("tamis_server_is_master{{server=\"{address}\"}} 1"),
        &format!("tamis_server_replicas{{server=\"{address}\"}} 0"),
    ] {
        assert!(
            metrics.text().lines().any(|found| found == line),
            "{line}\n{}",
            metrics.text()
        );
    }
    for name in ["fill_ratio", "rate_now", "last_write_seconds", "bytes"] {
        assert!(
            metrics.text().contains(&format!("\ntamis_filter_{name}{{")),
            "{name}"
        );
    }
    // A damaged filter is reported as such.
    server.cli(&["DEL", &server.cli(&["KEYS", "small:{*.*.*}"])]);
    let broken = dir.run(&format!("verify --json {servers}/small"));
    assert_eq!(broken.code, 2);
    let broken: serde_json::Value = serde_json::from_str(broken.text()).unwrap();
    assert_eq!(broken["valid"], false);
    assert!(
        broken["reason"].as_str().unwrap().contains("missing"),
        "{broken}"
    );
}

/// A broken filter doesn't hide the others.
#[test]
fn a_broken_filter_among_others() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    for name in ["broken", "cut", "sound"] {
        dir.ok(&format!("create {servers}/{name} --capacity 1000"));
    }
    let chunk = server.cli(&["KEYS", "broken:{*.*.*}"]);
    server.cli(&["DEL", &chunk]);
    server.cli(&["RPUSH", &chunk, "x"]);
    let cut = "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 60))";
    server.cli(&["EVAL", cut, "1", "cut"]);
    server.cli(&["SET", "lost:{00000000000000ab.0.17}", "x"]);
    server.age("lost:{00000000000000ab.0.17}", 7_200);

    let listed = dir.run(&format!("list {servers}"));
    assert_eq!(listed.code, 1, "{}", listed.err);
    for (name, state) in [
        ("broken", "damaged"),
        ("cut", "unreadable"),
        ("sound", "whole"),
    ] {
        let rows = listed.text().lines();
        let row = rows.into_iter().find(|row| row.starts_with(name)).unwrap();
        assert!(row.ends_with(state), "{row}");
    }
    assert!(listed.err.contains(&chunk), "{}", listed.err);
    let listed = dir.run(&format!("list --json {servers}"));
    assert_eq!(listed.code, 1);
    let json: serde_json::Value = serde_json::from_str(listed.text()).unwrap();
    assert_eq!(json["filters"].as_array().unwrap().len(), 3);
    assert_eq!(json["filters"][2]["state"], "whole");
    let listed = dir.run(&format!("list --metrics {servers}"));
    assert_eq!(listed.code, 1);
    let sound = "tamis_filter_state{filter=\"sound\",state=\"whole\"} 1";
    assert!(listed.text().lines().any(|line| line == sound));
    let collected = dir.run(&format!("drop -y --orphans {servers}"));
    assert_eq!(collected.code, 1, "{}", collected.err);
    assert!(collected.err.contains("1 key deleted"), "{}", collected.err);

    // The hints work.
    let again = dir.run(&format!("create {servers}/cut --capacity 1000"));
    assert!(again.err.contains("--force replaces it"), "{}", again.err);
    dir.ok(&format!("create --force {servers}/cut --capacity 1000"));
    server.cli(&["EVAL", cut, "1", "cut"]);
    dir.ok(&format!("drop {servers}/cut"));
    dir.ok(&format!("drop {servers}/broken"));
    dir.ok(&format!("list {servers}"));
}

/// Parses one line of metrics in Prometheus's text format, and returns the values of its labels.
fn labels(line: &str) -> Option<Vec<String>> {
    let is_name = |name: &str| {
        let first = name.chars().next();
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':')
            && (name.chars()).all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
    };
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut values = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"")?;
            let (mut text, mut chars) = (String::new(), value.char_indices());
            let end = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => text.push(match chars.next()?.1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        _ => return None,
                    }),
                    (_, c) if c.is_control() && c != '\t' => return None,
                    (_, c) => text.push(c),
                }
            };
            values.push(text);
            is_name(label).then_some(())?;
            rest = &value[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        rest = &rest[1..];
    }
    rest.strip_prefix(' ')?.parse::<f64>().ok()?;
    is_name(name).then_some(values)
}

/// Redis keys may contain anything; a page of metrics may not.
#[test]
fn metrics_of_odd_names() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    dir.ok(&format!("create {servers}/plain --capacity 1000"));
    let odd = [
        "back\\slash",
        "quo\"te",
        "new\nline",
        "re\rturn",
        "es\x1b[31mcape",
        "tab\tbed",
        "del\x7f",
        "right\u{202e}left",
        "a b",
        "é=\",x=\"",
        "3",
        "3/x",
    ];
    for name in odd {
        for (from, to) in [
            ("plain", name.to_owned()),
            ("{plain}:tamis", format!("{{{name}}}:tamis")),
        ] {
            server.cli(&["COPY", from, &to]);
        }
    }
    let listed = dir.run(&format!("list --metrics {servers}"));
    let samples = listed.text().lines().filter(|line| !line.starts_with('#'));
    let mut seen = Vec::new();
    for line in samples {
        let values = labels(line);
        let values = values.unwrap_or_else(|| panic!("{line:?}"));
        if line.starts_with("tamis_filter_state{") {
            seen.push(values[0].clone());
        }
    }
    assert_eq!(seen.len(), odd.len() + 1, "{seen:?}");
    for name in odd
        .iter()
        .filter(|name| !name.contains(['\r', '\x1b', '\x7f', '\u{202e}']))
    {
        assert!(seen.iter().any(|seen| seen == name), "{name:?}: {seen:?}");
    }
    assert!(
        seen.iter().any(|seen| seen == "es\\u001b[31mcape"),
        "{seen:?}"
    );
    // One row per filter.
    let listed = dir.run(&format!("list {servers}"));
    assert_eq!(
        listed.text().lines().count(),
        odd.len() + 2,
        "{}",
        listed.text()
    );
}

/// In every command, a number after the server is a database.
#[test]
fn a_number_is_the_database() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    for line in ["create --capacity 10", "info", "drop", "check", "verify"] {
        let ran = dir.run(&format!("{line} {servers}/3"));
        assert_eq!(ran.code, 2, "{line}");
        assert!(
            ran.err.contains("redis://HOST/3/NAME"),
            "{line}: {}",
            ran.err
        );
    }
    dir.ok(&format!("create --capacity 10 {servers}/3/seen"));
    let listed = dir.ok(&format!("list {servers}/3"));
    assert!(listed.text().contains("seen"), "{}", listed.text());
    assert_eq!(dir.run(&format!("list {servers}")).code, 1);
    dir.ok(&format!("create --capacity 10 {servers}/0/3"));
    let shown = dir.ok(&format!("info {servers}/0/3"));
    assert!(
        shown.text().contains("capacity       10 keys"),
        "{}",
        shown.text()
    );
    assert!(dir.ok(&format!("list {servers}")).text().contains('3'));
}
