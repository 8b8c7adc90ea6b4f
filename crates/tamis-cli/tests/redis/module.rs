//! The command on filters in a server's module, whose path is in TAMIS_MODULE. `./test --all` builds it and runs these
//! tests, which are ignored otherwise.

use crate::at;
use crate::common::{Sandbox, keys};
use crate::servers::Server;
use std::collections::HashSet;
use std::process::Stdio;

fn server() -> Server {
    let path = std::env::var("TAMIS_MODULE")
        .expect("TAMIS_MODULE is not set: it names libtamis_module.so (crates/tamis-module)");
    Server::start(&[&format!("loadmodule {path}")])
}

#[test]
#[ignore = "needs the module: ./test module"]
fn every_command_works_on_a_bloom_filter() {
    let server = server();
    let seen = &at(&server, "seen");
    let dir = Sandbox::new();
    dir.write("present", keys(0..20_000));
    dir.write("absent", keys(50_000..60_000));
    let made = dir.ok(&format!("create {seen} --capacity 100 -p 0.01 --module"));
    assert!(made.err.contains("growing for 100 keys"), "{}", made.err);
    let added = dir.ok(&format!("add --new {seen} present"));
    assert!(added.text().lines().count() > 19_800, "{}", added.err);
    assert_eq!(dir.ok(&format!("add --new {seen} present")).text(), "");
    assert_eq!(
        dir.ok(&format!("check {seen} present")).text(),
        keys(0..20_000)
    );
    let wrong = dir.run(&format!("check {seen} absent"));
    assert!(wrong.text().lines().count() < 130);
    let info = dir.ok(&format!("info --json {seen}"));
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    assert_eq!(
        (&info["kind"], &info["module"]),
        (&"growing".into(), &"tamis".into())
    );
    assert_eq!(
        (&info["rate"], &info["keys_counted"]),
        (&0.01.into(), &true.into())
    );
    assert!(info["keys"].as_u64().unwrap() > 19_800 && info["hash"].is_null());
    let verified = dir.ok(&format!("verify --probes 20k {seen}"));
    assert!(
        verified.text().contains("the filter: present"),
        "{}",
        verified.text()
    );
    assert!(
        dir.ok(&format!("info {seen}"))
            .text()
            .contains("at most 0.01")
    );

    // To a file and back: equal answers, and the same file again.
    dir.ok(&format!("copy {seen} copy.tamis"));
    assert_eq!(dir.run("check copy.tamis absent").text(), wrong.text());
    let back = at(&server, "back");
    dir.ok(&format!("copy copy.tamis {back} --module"));
    assert_eq!(
        dir.run(&format!("check {back} absent")).text(),
        wrong.text()
    );
    dir.ok(&format!("copy {back} again.tamis"));
    assert_eq!(dir.read("copy.tamis"), dir.read("again.tamis"));
    let clash = dir.run(&format!("copy copy.tamis {back} --module"));
    assert!(clash.err.contains("--force replaces it"), "{}", clash.err);

    // A filter in the module is replaced by one in the module.
    dir.ok(&format!("create {back} --capacity 100 --force"));
    let info = dir.ok(&format!("info {back}"));
    assert!(info.text().contains("tamis layout"), "{}", info.text());
    dir.ok(&format!("drop --after 1h {back}"));
    dir.ok(&format!("drop {back}"));

    // Unsupported operations are reported.
    for (line, text) in [
        (format!("remove {seen} present"), "CF.*"),
        (format!("check --tally {seen} present"), "CF.*"),
        (format!("add --url {seen} present"), "you asked for --url"),
        (
            format!("create {seen} --capacity 5 --module --kind blocked --force"),
            "growing or a cuckoo",
        ),
        (
            format!("create {seen}2 --last 5 --module"),
            "where they count keys",
        ),
        (
            format!("check --at latest {seen} present"),
            "--at is for windows",
        ),
        (
            "create x.tamis --capacity 5 --module".into(),
            "--module is for a filter in Redis",
        ),
        (
            format!("copy {seen} x.tamis --module"),
            "--module is for a filter in Redis",
        ),
    ] {
        let ran = dir.run(&line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains(text), "{line}: {}", ran.err);
    }
}

#[test]
#[ignore = "needs the module: ./test module"]
fn records_without_a_time_wait_for_one() {
    let server = server();
    let place = |name: &str| at(&server, name);
    crate::windows::records_before_the_first_time_wait_for_it(place, "--module");
}

#[test]
#[ignore = "needs the module: ./test module"]
fn windows_forget_by_the_times_of_records() {
    let server = server();
    let dir = Sandbox::new();
    let mut rows = String::from("id,at\n");
    // In order, some hours apart; then records without a usable time.
    for event in 0..400_u64 {
        let (key, at) = (event * event % 37, 1_700_000_000 + event * 2_500);
        rows += &format!("key-{key},{at}\n");
    }
    rows += "key-1,1600000000\nahead,2999-01-01\nnone,\n";
    dir.write("rows.csv", &rows);
    for (window, name) in [
        ("--within 1d", "first"),
        ("--within 36h --renew --generations 5", "last"),
    ] {
        let local = format!("{name}.tamis");
        dir.ok(&format!("create {local} {window} --capacity 1k -p 1e-6"));
        let options = "-k csv:id --time csv:at --report report";
        let here = dir.ok(&format!("dedup {options} --filter {local} rows.csv"));
        for claim in ["before", "after"] {
            let there = &at(&server, &format!("{name}-{claim}"));
            let made = dir.ok(&format!(
                "create {there} {window} --capacity 1k -p 1e-6 --module"
            ));
            assert!(made.err.contains("window for 1,000 keys"), "{}", made.err);
            let ran = dir.ok(&format!(
                "dedup {options} {window} --filter {there} --claim {claim} rows.csv"
            ));
            assert_eq!(ran.text(), here.text(), "{window} {claim}");
            let report: serde_json::Value = serde_json::from_slice(&dir.read("report")).unwrap();
            for field in ["without_time", "in_the_future", "too_old"] {
                assert_eq!(report[field], 1, "{field}: {report}");
            }
            for ask in [
                "--at latest",
                "--at 2023-11-26T09:00Z",
                "--at 2023-11-27T20:00Z",
                "--time csv:at",
            ] {
                let check = |filter: &str| {
                    dir.run(&format!("check -k csv:id {ask} {filter} rows.csv"))
                        .out
                };
                assert_eq!(check(there), check(&local), "{window} {claim} {ask}");
            }
            let now = dir.run(&format!("check -k csv:id {there} rows.csv"));
            assert!(now.err.contains("by now all are forgotten"), "{}", now.err);
            let info = dir.ok(&format!("info --json {there}"));
            let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
            assert_eq!(
                (&info["kind"], &info["module"]),
                (&"window".into(), &"tamis".into())
            );
            let other = dir.run(&format!("dedup --within 2h --filter {there} rows.csv"));
            assert!(other.err.contains("but you asked for 2h"), "{}", other.err);
        }
    }
    // By the server's clock.
    let hour = &at(&server, "hour");
    dir.ok(&format!("create {hour} --within 1h --capacity 1k --module"));
    dir.write("keys", keys(0..500));
    let added = dir.ok(&format!("add {hour} keys"));
    assert!(added.err.contains("500 keys read"), "{}", added.err);
    assert_eq!(dir.ok(&format!("check {hour} keys")).text(), keys(0..500));
    assert_eq!(dir.ok(&format!("dedup -q --filter {hour} keys")).text(), "");
}

#[test]
#[ignore = "needs the module: ./test module"]
fn keys_are_counted_and_removed() {
    let server = server();
    let online = &at(&server, "online");
    let dir = Sandbox::new();
    dir.write("keys", keys(0..1_000));
    dir.ok(&format!(
        "create {online} --capacity 3000 -p 0.0001 --kind cuckoo --module"
    ));
    let added = dir.ok(&format!("add {online} keys"));
    assert!(added.err.contains("1,000 keys read, "), "{}", added.err);
    let again = dir.ok(&format!("add {online} keys"));
    assert!(
        again.err.contains("1,000 keys read, 0 new"),
        "{}",
        again.err
    );
    let counted = dir.ok(&format!("check --tally {online} keys"));
    assert!(
        counted
            .text()
            .lines()
            .all(|line| line.starts_with("2\tkey"))
    );
    dir.ok(&format!("copy {online} online.tamis"));
    let counted_there = dir.ok("check --tally online.tamis keys");
    assert_eq!(counted_there.text(), counted.text());
    let back = at(&server, "back");
    dir.ok(&format!("copy online.tamis {back} --module"));
    for filter in [online, &back] {
        for left in [1_000, 0] {
            let removed = dir.ok(&format!("remove {filter} keys"));
            assert!(removed.err.contains("1,000 removed"), "{}", removed.err);
            let found = dir.run(&format!("check -c {filter} keys"));
            assert_eq!(found.text().trim(), left.to_string());
        }
    }
}

/// Of workers that share a filter, Bloom or cuckoo, exactly one prints each record; and seen records aren't printed
/// again.
#[test]
#[ignore = "needs the module: ./test module"]
fn workers_divide_the_records_among_them() {
    let server = server();
    let dir = Sandbox::new();
    for kind in ["growing", "cuckoo"] {
        let seen = at(&server, kind);
        dir.ok(&format!(
            "create {seen} --capacity 100 -p 1e-6 --kind {kind} --module"
        ));
        let workers: Vec<_> = (0..3)
            .map(|i| {
                let name = format!("part{i}");
                dir.write(&name, keys(i * 5_000..i * 5_000 + 10_000));
                dir.command(&format!("dedup --claim before --filter {seen} {name}"))
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut printed = Vec::new();
        for worker in workers {
            let done = worker.wait_with_output().unwrap();
            // A worker that comes late finds nothing new.
            assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
            let text = String::from_utf8(done.stdout).unwrap();
            printed.extend(text.lines().map(str::to_owned));
        }
        let distinct: HashSet<&String> = printed.iter().collect();
        assert_eq!(distinct.len(), 20_000, "{kind}: all, but for the rate");
        assert_eq!(printed.len(), 20_000, "{kind}: each once");
        dir.write("more", keys(19_000..21_000));
        let more = dir.ok(&format!("dedup --filter {seen} more"));
        assert_eq!(more.text(), keys(20_000..21_000), "{kind}");
    }
}

/// RedisBloom's layout can be copied to its own file format and back, but not to our files.
#[test]
#[ignore = "needs the module: ./test module"]
fn another_systems_layout() {
    let server = server();
    let theirs = &at(&server, "theirs");
    server.cli(&["CONFIG", "SET", "tamis.compatible", "yes"]);
    server.cli(&["BF.RESERVE", "theirs", "0.01", "100"]);
    let dir = Sandbox::new();
    dir.write("keys", keys(0..2_000));
    dir.ok(&format!("add {theirs} keys"));
    let info = dir.ok(&format!("info {theirs}"));
    assert!(info.text().contains("redisbloom layout"), "{}", info.text());
    let refused = dir.run(&format!("copy {theirs} ours.tamis"));
    assert!(refused.err.contains("redisbloom filter"), "{}", refused.err);
    dir.ok(&format!("copy {theirs} their.dump"));
    dir.ok(&format!("copy {theirs} their.chunks --as chunks"));
    for file in ["their.dump", "their.chunks"] {
        let found = dir.ok(&format!("check -c --format redisbloom {file} keys"));
        assert_eq!(found.text().trim(), "2000", "{file}");
        let copy = at(&server, "copy");
        dir.ok(&format!("copy --format redisbloom {file} {copy} --force"));
        let found = dir.ok(&format!("check -c {copy} keys"));
        assert_eq!(found.text().trim(), "2000", "{file}");
    }
    server.cli(&["LPUSH", "list", "x"]);
    let list = dir.run(&format!("info {}", at(&server, "list")));
    assert!(list.err.contains("its type is list"), "{}", list.err);
}

/// For each way, `plan --redis` reports the size that the server reports for such a filter with all its keys.
#[test]
#[ignore = "needs the module: ./test module"]
fn a_plan_for_redis_is_what_the_server_takes() {
    let path = std::env::var("TAMIS_MODULE").unwrap();
    let compatible = Server::start(&[&format!("loadmodule {path} COMPATIBLE yes")]);
    let (server, dir) = (server(), Sandbox::new());
    let allocator = server.info("memory", "mem_allocator").unwrap();
    let is_jemalloc = allocator.starts_with("jemalloc");
    let usage = |server: &Server| -> u64 {
        let all = server.cli(&["KEYS", "*"]);
        let of = |key: &str| server.cli(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
        all.lines()
            .map(|key| of(key).trim().parse::<u64>().unwrap())
            .sum()
    };
    for (n, rate) in [
        (1_000, "0.01"),
        (30_000, "0.01"),
        (30_000, "1e-5"),
        (300_000, "0.3"),
    ] {
        let printed = dir.ok(&format!("plan --capacity {n} -p {rate} --redis --json"));
        let rows: serde_json::Value = serde_json::from_str(printed.text()).unwrap();
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 7);
        for row in rows {
            let number = |name: &str| row[name].as_u64().unwrap();
            let command = row["command"].as_str().unwrap();
            let way = row["way"].as_str().unwrap();
            let server = if way == "redisbloom" {
                &compatible
            } else {
                &server
            };
            server.cli(&["FLUSHALL", "SYNC"]);
            if let Some(words) = command.strip_prefix("tamis ") {
                dir.ok(&words.replace("127.0.0.1", &server.address()));
            } else {
                let words: Vec<&str> = command.split(' ').collect();
                assert_eq!(server.cli(&words).trim(), "OK", "{command}");
            }
            if way == "redisson" {
                // Its string ends with the last bit set.
                dir.write("keys", keys(0..n));
                dir.ok(&format!(
                    "add --format redisson,keys=utf8 {} keys",
                    at(server, "seen")
                ));
            }
            let used = usage(server);
            let (least, most) = (number("memory_bytes"), number("memory_bytes_at_most"));
            // Tolerates a longer name, or a newer server's extra data.
            let slack = 1024;
            assert!(used <= most + slack, "{way} {command}: {used} of {most}");
            if is_jemalloc {
                assert!(used + slack >= least, "{way} {command}: {used} of {least}");
            }
            assert!(used >= number("bytes"), "{way} {command}: {used}");
        }
    }
}
