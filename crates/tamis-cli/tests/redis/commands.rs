//! The command on filters in Redis, with real servers.

mod redisson;

use crate::at;
use crate::common::{Ran, Sandbox, keys};
use crate::servers::{Cluster, Server};
use std::process::Stdio;

/// All commands on one filter.
fn tour(seen: &str) {
    let dir = Sandbox::new();
    dir.write("present", keys(0..5000));
    dir.write("absent", keys(5000..10_000));
    let made = dir.ok(&format!("create {seen} --capacity 5000 -p 0.01"));
    assert!(made.err.contains("blocked for 5,000 keys"), "{}", made.err);

    let added = dir.ok(&format!("add --new {seen} present"));
    let new = added.text().lines().count();
    assert!(new > 4900, "{}", added.err);
    let again = dir.ok(&format!("add --new {seen} present"));
    assert_eq!(again.text(), "");

    assert_eq!(
        dir.ok(&format!("check {seen} present")).text(),
        keys(0..5000)
    );
    let inverted = dir.run(&format!("check -v {seen} present"));
    assert_eq!((inverted.code, inverted.text()), (1, ""));
    let wrong = dir.run(&format!("check -c {seen} absent"));
    let wrong: u32 = wrong.text().trim().parse().unwrap();
    assert!(wrong < 100, "1 % of 5,000 promised, {wrong} seen");

    let info = dir.ok(&format!("info --json {seen}"));
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    assert_eq!(info["kind"], "blocked");
    let held = info["keys"].as_f64().unwrap();
    assert!((held - 5000.0).abs() < 150.0, "{info}");
    let verified = dir.ok(&format!("verify --probes 20k {seen}"));
    assert!(
        verified.text().contains("all present"),
        "{}",
        verified.text()
    );

    // The same bits in a file as in Redis, and back.
    dir.ok(&format!("copy {seen} copy.tamis"));
    assert_eq!(dir.ok("check copy.tamis present").text(), keys(0..5000));
    dir.ok("verify copy.tamis");
    let clash = dir.run(&format!("copy copy.tamis {seen}"));
    assert_eq!(clash.code, 2);
    assert!(clash.err.contains("--force replaces it"), "{}", clash.err);
    dir.ok(&format!("copy --force copy.tamis {seen}"));
    dir.ok(&format!("copy {seen} again.tamis"));
    assert_eq!(dir.read("copy.tamis"), dir.read("again.tamis"));

    let gone = dir.ok(&format!("drop {seen}"));
    assert_eq!(gone.err, "");
    let missing = dir.run(&format!("check {seen} present"));
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("`tamis create`"), "{}", missing.err);
}

#[test]
fn every_command_works_on_one_node() {
    tour(&at(&Server::start(&[]), "seen"));
}

#[test]
fn every_command_works_on_a_cluster() {
    tour(&Cluster::start(&[]).location("seen"));
}

#[test]
fn a_password_opens_and_is_not_shown() {
    let server = Server::start_on("port", &["requirepass secret"], &["-a", "secret"]);
    let dir = Sandbox::new();
    let refused = dir.run(&format!("create {} --capacity 100", at(&server, "seen")));
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("NOAUTH"), "{}", refused.err);
    let with_password = format!("redis://:secret@{}/0/seen", server.address());
    let made = dir.ok(&format!("create {with_password} --capacity 100"));
    assert!(!made.err.contains("secret"), "{}", made.err);
    let clash = dir.run(&format!("create {with_password} --capacity 100"));
    assert!(
        clash.err.contains("already") && !clash.err.contains("secret"),
        "{}",
        clash.err
    );
}

#[test]
fn keys_are_counted_and_removed() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let online = at(&server, "online");
    dir.ok(&format!("create {online} --capacity 1000 --kind counting"));
    dir.feed(&format!("add {online}"), "ada\nada\nbob\n");
    let counted = dir.feed(&format!("check --tally {online}"), "ada\nbob\neve\n");
    assert_eq!(counted.text(), "2\tada\n1\tbob\n0\teve\n");
    let removed = dir.feed(&format!("remove --absent {online}"), "ada\nbob\neve\n");
    assert_eq!((removed.code, removed.text()), (0, "eve\n"));
    let left = dir.feed(&format!("check {online}"), "ada\nbob\neve\n");
    assert_eq!(left.text(), "ada\n");

    let seen = at(&server, "seen");
    dir.ok(&format!("create {seen} --capacity 1000"));
    let refused = dir.feed(&format!("remove {seen}"), "ada\n");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("counting"), "{}", refused.err);
}

#[test]
fn workers_divide_the_records_among_them() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    dir.write("urls", keys(0..20_000));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            dir.command(&format!("dedup --claim before --filter {seen} urls"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut printed: Vec<String> = Vec::new();
    for worker in workers {
        let ran = Ran::from(worker.wait_with_output().unwrap());
        // 1: other workers were always first.
        assert!(ran.code <= 1, "{}", ran.err);
        printed.extend(ran.text().lines().map(String::from));
    }
    let all = printed.len();
    printed.sort();
    printed.dedup();
    assert_eq!(printed.len(), 20_000, "none is lost");
    assert_eq!(all, 20_000, "none is printed twice");
    // The filter that the first of them created grows, like one in a file.
    let info = dir.ok(&format!("info {seen}"));
    assert!(info.text().contains("growing"), "{}", info.text());
    assert_eq!(dir.ok(&format!("dedup --filter {seen} urls")).text(), "");
}

#[test]
fn what_a_dead_server_has_not_confirmed_is_said() {
    let mut server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    dir.ok(&format!("create {seen} --capacity 1000"));
    server.kill();
    let added = dir.feed(&format!("add {seen}?retry=200ms"), "key\n");
    assert_eq!(added.code, 2);
    assert!(added.err.contains(&server.address()), "{}", added.err);
    let checked = dir.feed(&format!("check -v {seen}?retry=200ms"), "key\n");
    assert_eq!((checked.code, checked.text()), (2, ""));
}

#[test]
fn a_filter_ends_when_it_should() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    dir.ok(&format!("create --ttl 1d {seen} --capacity 1000"));
    assert!(dir.ok(&format!("info {seen}")).text().contains("ends in"));
    dir.ok(&format!("drop --never {seen}"));
    assert!(!dir.ok(&format!("info {seen}")).text().contains("ends in"));
    dir.ok(&format!("drop --after 100ms {seen}"));
    crate::servers::until(
        "all of it to end",
        std::time::Duration::from_secs(60),
        || server.cli(&["KEYS", "*"]).is_empty(),
    );
    assert_eq!(dir.run(&format!("info {seen}")).code, 2);
    let file = dir.run("drop some.tamis");
    assert_eq!(file.code, 2);
    assert!(file.err.contains("no such file"), "{}", file.err);
}

/// `--force` also works if there is no filter. A replacement keeps the expiry and the kind.
#[test]
fn a_filter_takes_the_place_of_another() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    let delete = || dir.ok(&format!("drop {seen}"));
    dir.ok(&format!("create --force {seen} --capacity 1000"));
    delete();
    dir.ok("create a.tamis --capacity 1000");
    dir.ok(&format!("copy --force a.tamis {seen}"));
    delete();
    dir.ok(&format!("merge --union --force -o {seen} a.tamis a.tamis"));
    delete();

    let info = || dir.ok(&format!("info {seen}"));
    dir.ok(&format!(
        "create --kind growing --ttl 1d {seen} --capacity 1000"
    ));
    dir.ok(&format!("create --force {seen} --capacity 5000"));
    let text = info();
    let text = text.text();
    assert!(
        text.contains("growing") && text.contains("ends in"),
        "{text}"
    );
    dir.ok(&format!(
        "create --force --kind counting --ttl 100d {seen} --capacity 5000"
    ));
    let text = info();
    assert!(text.text().contains("counting"), "{}", text.text());
    dir.ok(&format!("copy --force a.tamis {seen}"));
    let text = info();
    assert!(text.text().contains("ends in"), "{}", text.text());

    // A filter that can't be stored doesn't delete the old one.
    dir.ok("create cuckoo.tamis --kind cuckoo --capacity 1000");
    assert_eq!(
        dir.run(&format!("copy --force cuckoo.tamis {seen}")).code,
        2
    );
    info();
}

/// The record of a filter is deleted while a worker uses it, which notices; and the next worker doesn't silently start
/// anew.
#[test]
fn a_filter_is_not_begun_anew_unseen() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    let first = dir.feed(&format!("dedup --quiet --filter {seen}"), keys(0..1000));
    assert_eq!((first.code, first.text()), (0, &keys(0..1000)[..]));
    assert!(
        first.err.contains("so a growing filter was created"),
        "{}",
        first.err
    );
    let again = dir.feed(&format!("dedup --quiet --filter {seen}"), keys(0..1000));
    assert!(
        !again.err.contains("so a growing filter was created"),
        "{}",
        again.err
    );
    let strict = dir.feed(
        &format!("dedup --must-exist --filter {seen}"),
        keys(0..1000),
    );
    assert_eq!((strict.code, strict.text()), (0, ""), "{}", strict.err);
    server.cli(&["DEL", "seen"]);
    let worker = dir.feed(&format!("dedup --filter {seen}"), keys(0..1000));
    assert_eq!((worker.code, worker.text()), (2, ""));
    assert!(
        worker.err.contains("its parts are still there"),
        "{}",
        worker.err
    );
    assert!(worker.err.contains("tamis drop"), "{}", worker.err);
    dir.ok(&format!("drop {seen}"));
    assert_eq!(server.cli(&["KEYS", "*"]), "");
    // With --must-exist, a lost filter isn't created again.
    for place in [&seen[..], "none.tamis"] {
        let strict = dir.feed(
            &format!("dedup --must-exist --filter {place}"),
            keys(0..1000),
        );
        assert_eq!((strict.code, strict.text()), (2, ""), "{}", strict.err);
        assert!(strict.err.contains("no such filter"), "{}", strict.err);
    }
    assert_eq!(server.cli(&["KEYS", "*"]), "");
    assert!(!dir.path("none.tamis").exists());
}

/// Warns about a server that may evict the filter, when it is created and whenever it is used.
#[test]
fn a_server_that_may_evict_is_warned_of() {
    let server = Server::start(&["maxmemory 500mb", "maxmemory-policy allkeys-lfu"]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    for command in ["create --capacity 1000", "info", "verify"] {
        let ran = dir.ok(&format!("{command} {seen}"));
        assert!(
            ran.err.contains("warning: 127.0.0.1"),
            "{command}: {}",
            ran.err
        );
        assert!(ran.err.contains("noeviction"), "{command}: {}", ran.err);
    }
}

#[test]
fn filters_merge_across_places() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let (monday, all) = (at(&server, "monday"), at(&server, "all"));
    dir.ok(&format!("create {monday} --capacity 1000"));
    dir.feed(&format!("add {monday}"), "a\nb\n");
    dir.ok(&format!("copy {monday} tuesday.tamis"));
    dir.feed("add tuesday.tamis", "c\n");
    dir.ok(&format!("merge --union -o {all} {monday} tuesday.tamis"));
    let found = dir.feed(&format!("check {all}"), "a\nb\nc\nd\n");
    assert_eq!(found.text(), "a\nb\nc\n");
}

#[test]
fn addresses_are_checked() {
    let dir = Sandbox::new();
    for (address, why) in [
        ("redis://127.0.0.1:6379", "NAME"),
        ("redis://127.0.0.1:x/seen", "127.0.0.1:***"),
        ("redis+cluster:///seen", "redis+cluster"),
    ] {
        let ran = dir.run(&format!("info {address}"));
        assert_eq!(ran.code, 2, "{address}");
        assert!(ran.err.contains(why), "{address}: {}", ran.err);
    }
}

/// The filters on a server: in a table for people, as JSON for programs.
#[test]
fn filters_are_listed() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    let none = dir.run(&format!("list {servers}"));
    assert_eq!((none.code, none.text()), (1, ""));
    dir.ok(&format!("create {servers}/seen --capacity 1000"));
    dir.feed(&format!("add {servers}/seen"), keys(0..500));
    dir.ok(&format!(
        "create {servers}/users --capacity 1k --kind counting --ttl 1h"
    ));
    dir.ok(&format!("create {servers}/3/elsewhere --capacity 1k"));

    let listed = dir.ok(&format!("list {servers}"));
    let rows: Vec<Vec<&str>> = (listed.text().lines())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 3, "{}", listed.text());
    assert_eq!(rows[1][..2], ["seen", "blocked"]);
    assert_eq!(rows[2][..2], ["users", "counting"]);
    // Numbers of keys are estimates, except zero.
    assert_eq!((rows[1][2], rows[2][2]), ("about", "0"));
    // A filter's answer for a key is also explained from its bits.
    let told = dir.ok(&format!("explain {servers}/seen key7 other"));
    assert!(
        told.text().contains("answer         maybe: all"),
        "{}",
        told.text()
    );
    assert_eq!(rows[1].last(), Some(&"whole"));
    let elsewhere = dir.ok(&format!("list {servers}/3"));
    assert!(elsewhere.text().contains("elsewhere"));

    let json = dir.ok(&format!("list --json {servers}"));
    let json: serde_json::Value = serde_json::from_str(json.text()).unwrap();
    let seen = &json["filters"][0];
    assert_eq!(seen["name"], "seen");
    assert_eq!(seen["state"], "whole");
    let held = seen["keys"].as_u64().unwrap();
    assert!((480..520).contains(&held), "{seen}");
    assert_eq!(seen["nodes"][0]["node"], server.address());
    assert!(json["filters"][1]["seconds_to_live"].as_f64().unwrap() > 3000.0);
    assert!(json["nodes"][0]["version"].as_str().unwrap().contains('.'));

    let info = dir.ok(&format!("info {servers}/seen"));
    let node = info.text().lines().last().unwrap();
    assert!(node.contains(&server.address()), "{}", info.text());
    assert!(
        node.contains("1 chunk,") && node.contains("noeviction"),
        "{node}"
    );
    let info = dir.ok(&format!("info --json {servers}/seen"));
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    assert_eq!(info["generation"], seen["generation"]);
    assert_eq!(info["nodes"][0]["chunks"], 1);

    let named = dir.run(&format!("list {servers}/seen"));
    assert_eq!(named.code, 2);
    assert!(named.err.contains("without the name"), "{}", named.err);
}

/// Remains of a filter are only deleted if they are old and the user confirms.
#[test]
fn what_is_left_of_filters_is_deleted() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let servers = format!("redis://{}", server.address());
    dir.ok(&format!("create {servers}/seen --capacity 1000"));
    dir.ok(&format!("create {servers}/other --capacity 1000"));
    let chunk = server.cli(&["KEYS", "seen:{*.*.*}"]);
    let witness = server.cli(&["KEYS", "seen:{witness.*}"]);
    server.cli(&["DEL", "seen", "{seen}:tamis", &witness]);
    let listed = dir.ok(&format!("list {servers}"));
    assert!(
        listed.err.contains("tamis drop --orphans"),
        "{}",
        listed.err
    );
    let young = dir.ok(&format!("drop -y --orphans {servers}"));
    assert!(young.err.contains("nothing to delete"), "{}", young.err);
    assert_eq!(server.cli(&["EXISTS", &chunk]), "1");

    server.age(&chunk, 7200);
    let asked = dir.feed(&format!("drop --orphans {servers}"), "y\n");
    assert_eq!(asked.code, 2, "a pipe is nobody to ask");
    assert!(asked.err.contains("--yes"), "{}", asked.err);
    assert!(asked.text().contains(&chunk), "{}", asked.text());
    assert_eq!(server.cli(&["EXISTS", &chunk]), "1");
    let done = dir.ok(&format!("drop -y --orphans {servers}"));
    assert!(done.err.contains("1 key deleted"), "{}", done.err);
    assert_eq!(server.cli(&["EXISTS", &chunk]), "0");
    dir.ok(&format!("verify --probes 100 {servers}/other"));
}

/// The documented permissions for read-only users are enough for these commands.
#[test]
fn a_user_who_only_reads() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.ok(&format!("create {} --capacity 1000", at(&server, "seen")));
    dir.feed(&format!("add {}", at(&server, "seen")), "ada\n");
    let rights = "on >sesame %R~seen %R~seen:* %R~{seen}:* +@read +@connection +eval_ro +info";
    let user = ["ACL", "SETUSER", "eve"]
        .into_iter()
        .chain(rights.split(' '));
    server.cli(&user.collect::<Vec<_>>());
    let seen = format!("redis://eve:sesame@{}/seen", server.address());
    assert_eq!(
        dir.feed(&format!("check {seen}"), "ada\nbob\n").text(),
        "ada\n"
    );
    dir.ok(&format!("info {seen}"));
    dir.ok(&format!("verify --probes 100 {seen}"));
    dir.ok(&format!("copy {seen} seen.tamis"));
    let refused = dir.feed(&format!("add {seen}"), "bob\n");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("permission"), "{}", refused.err);
}

/// The report includes reconnections.
#[test]
fn the_report_counts_reconnections() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.write("urls", keys(0..20_000));
    let seen = at(&server, "seen");
    let report = |name: &str| {
        dir.ok(&format!("dedup --filter {seen} urls --report {name}"));
        let text = String::from_utf8(dir.read(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let calm = report("calm");
    assert_eq!(calm["redis"]["connections"], 1);
    for quiet in ["reconnects", "retries", "ambiguous_keys"] {
        assert_eq!(calm["redis"][quiet], 0, "{calm}");
    }
    dir.ok("dedup urls --report local --force -o out");
    let local = String::from_utf8(dir.read("local")).unwrap();
    let local: serde_json::Value = serde_json::from_str(&local).unwrap();
    assert!(local["redis"].is_null());
}
