//! Windows in Redis through the command: the same answers as with a file, one window for many workers, and refusals.

use crate::at;
use crate::common::{Ran, Sandbox, keys, start};
use crate::servers::{Cluster, Server};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

fn fails(ran: &Ran, said: &str) {
    assert_eq!(ran.code, 2, "{}{}", ran.text(), ran.err);
    assert!(ran.err.contains(said), "{said:?} is not in: {}", ran.err);
}

/// Events with their times: pauses, bursts, and some up to a generation late.
fn events(count: u64) -> String {
    let mut text = String::from("key,at\n");
    let (mut now, mut random) = (1_700_000_000u64, 7u64);
    let mut below = |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for number in 0..count {
        now += match below(500) {
            0 => 5_000,
            step => step / 100,
        };
        let late = if below(8) == 0 { below(450) } else { 0 };
        let (key, at) = (below(400), now - late);
        let _ = match number % 2 {
            0 => writeln!(text, "k{key},{at}"),
            _ => writeln!(text, "k{key},{}", tamis::Moment::from_secs(at as i64)),
        };
    }
    text
}

/// The same records as with a file, for every way of claiming them, in several runs.
fn as_a_file(place: impl Fn(&str) -> String) {
    let dir = Sandbox::new();
    let all = events(6_000);
    let lines: Vec<&str> = all.lines().skip(1).collect();
    for (i, part) in lines.chunks(2_500).enumerate() {
        dir.write(
            &format!("part{i}"),
            format!("key,at\n{}\n", part.join("\n")),
        );
    }
    for window in ["--within 1h", "--within 1h --renew"] {
        let mut printed = Vec::new();
        let name = window.trim_start_matches("--").replace(' ', "-");
        let (before, after) = (
            place(&format!("{name}-before")),
            place(&format!("{name}-after")),
        );
        for filter in [&format!("{name}.tamis"), &before, &after] {
            let claim = if *filter == before {
                "--claim before"
            } else {
                ""
            };
            let mut text = String::new();
            for part in 0..3 {
                let line = format!(
                    "dedup {window} --capacity 10k -k csv:key --time csv:at --filter {filter} {claim} part{part}"
                );
                text += dir.ok(&line).text();
            }
            printed.push(text);
        }
        assert!(
            printed[0].lines().count() > 1_000,
            "{}",
            printed[0].lines().count()
        );
        assert!(printed[0].lines().count() < 5_000);
        assert!(printed[1] == printed[0], "{window}, claimed before");
        assert!(printed[2] == printed[0], "{window}, claimed after");
        let info = dir.ok(&format!("info --json {before}"));
        let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
        assert_eq!(
            (&info["kind"], &info["window"]["span"]),
            (&"window".into(), &3_600.0.into())
        );
        assert!(
            info["window"]["generations"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        );
        // With the same answers as a file.
        dir.write(
            "keys",
            (0..500).map(|key| format!("k{key}\n")).collect::<String>(),
        );
        for latest in ["latest", "2024-01-01"] {
            let there = dir.run(&format!("check --at {latest} {before} keys"));
            let here = dir.run(&format!("check --at {latest} {name}.tamis keys"));
            assert_eq!((there.code, there.text()), (here.code, here.text()));
        }
        fails(
            &dir.run(&format!("copy {before} {name}.copy")),
            "layouts differ",
        );
        for filter in [&before, &after] {
            dir.ok(&format!("drop {filter}"));
        }
    }
}

#[test]
fn a_window_as_a_file_has_it() {
    let server = Server::start(&[]);
    as_a_file(|name| at(&server, name));
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

#[test]
fn a_window_in_a_cluster_as_a_file_has_it() {
    let cluster = Cluster::start(&[]);
    as_a_file(|name| cluster.location(name));
}

/// Runs a command that gets part of its input only after it has printed something.
fn in_two_steps(dir: &Sandbox, line: &str, first: &str, then: &str) -> Ran {
    let mut command = dir.command(line);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = start(&mut command);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(first.as_bytes()).unwrap();
    let mut out = vec![0; first.lines().next().unwrap().len() + 1];
    stdout.read_exact(&mut out).unwrap();
    stdin.write_all(then.as_bytes()).unwrap();
    drop(stdin);
    stdout.read_to_end(&mut out).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        out,
        ..Ran::from(output)
    }
}

/// The first readable time decides when a window begins, however the pipe delivers: earlier records are claimed, and
/// added as of that time.
pub(crate) fn records_before_the_first_time_wait_for_it(place: impl Fn(&str) -> String, how: &str) {
    let dir = Sandbox::new();
    let first = "a,\na,\nb,2099-01-01\n";
    let then = "a,\nc,1600000000\na,1600000001\nb,1600000002\nc,1600000003\nd,\nd,1600000004\n";
    let printed = "a,\nb,2099-01-01\nc,1600000000\nd,\n";
    dir.write("keys", "a\nb\nc\nd\n");
    for by in ["dedup --claim after", "dedup --claim before", "add"] {
        let seen = &place(&by.replace(' ', ""));
        dir.ok(&format!(
            "create {seen} --within 24h --capacity 1k -p 1e-6 {how}"
        ));
        let keys = "-k csv:1 --no-header --time csv:2";
        let line = match by {
            "add" => format!("add --new {keys} {seen}"),
            _ => format!("{by} {keys} --filter {seen}"),
        };
        let ran = in_two_steps(&dir, &line, first, then);
        assert_eq!((ran.code, ran.text()), (0, printed), "{by}: {}", ran.err);
        assert!(!ran.err.contains("older than"), "{by}: {}", ran.err);
        for said in ["from the future: 1 record", "can be read: 4 records"] {
            assert!(ran.err.contains(said), "{by}: {}", ran.err);
        }
        let found = dir.ok(&format!("check -c --at latest {seen} keys"));
        assert_eq!(found.text(), "4\n", "{by}");
        // Without any time, the clock decides at the end.
        let none = &place(&format!("none{}", by.replace(' ', "")));
        dir.ok(&format!(
            "create {none} --within 24h --capacity 1k -p 1e-6 {how}"
        ));
        let ran = in_two_steps(&dir, &line.replace(seen, none), first, "a,\n");
        assert_eq!(ran.text(), "a,\nb,2099-01-01\n", "{by}: {}", ran.err);
        assert_eq!(dir.ok(&format!("check -c {none} keys")).text(), "2\n");
    }
}

#[test]
fn records_without_a_time_wait_for_one() {
    let server = Server::start(&[]);
    records_before_the_first_time_wait_for_it(|name| at(&server, name), "");
}

/// A record without a time, or from the future, gets the latest time before it, even if that record was dropped.
#[test]
fn records_without_a_time_are_as_late_as_the_one_before() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let first = "x,1700000500\nx,1700001100\nc,\nf,9999999999\n";
    let then = "c,1700002050\nf,1700002050\nf,9999999999\n";
    for claim in ["after", "before"] {
        let seen = at(&server, claim);
        dir.ok(&format!(
            "create {seen} --within 1000s --generations 1 --capacity 1k -p 1e-6"
        ));
        let line = format!(
            "dedup --claim {claim} -k csv:1 --no-header --time csv:2 --time-format %s --filter {seen}"
        );
        let ran = in_two_steps(&dir, &line, first, then);
        assert_eq!(
            ran.text(),
            "x,1700000500\nc,\nf,9999999999\n",
            "{claim}: {}",
            ran.err
        );
        let said = "from the future: 2 records";
        assert!(ran.err.contains(said), "{claim}: {}", ran.err);
    }
}

/// Workers that don't know a time yet print a record once.
#[test]
fn records_without_a_time_are_claimed_by_one_worker() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = at(&server, "seen");
    dir.ok(&format!("create {seen} --within 24h --capacity 1k -p 1e-6"));
    dir.write("b.csv", "a,\nb,\n");
    let line = format!("dedup --claim before -k csv:1 --no-header --time csv:2 --filter {seen}");
    let mut command = dir.command(&line);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = start(&mut command);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a,\n").unwrap();
    let mut out = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut out).unwrap();
    assert_eq!(dir.ok(&format!("{line} b.csv")).text(), "b,\n");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Workers on the same list, by their clocks: each key is printed once.
#[test]
fn a_window_for_many_workers() {
    let server = Server::start(&[]);
    let seen = at(&server, "events");
    let dir = Sandbox::new();
    dir.write("list", keys(0..3_000));
    dir.ok(&format!(
        "create {seen} --within 1h --capacity 100k -p 1e-7"
    ));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let line = format!("dedup --must-exist --claim before --filter {seen} list");
            let mut command = dir.command(&line);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            start(&mut command)
        })
        .collect();
    let mut printed: Vec<String> = Vec::new();
    for worker in workers {
        let ran = worker.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        let text = String::from_utf8(ran.stdout).unwrap();
        printed.extend(text.lines().map(String::from));
    }
    assert_eq!(printed.len(), 3_000);
    printed.sort();
    printed.dedup();
    assert_eq!(printed.len(), 3_000, "each once");
}

#[test]
fn what_is_refused_of_a_window() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.write(
        "list",
        "a,2023-11-14\nb,never\nc,2099-01-01\nd,2023-11-14\ne,2000-01-01\n",
    );
    let seen = at(&server, "seen");
    fails(
        &dir.run(&format!("create {seen} --last 1000")),
        "number of keys",
    );
    dir.ok(&format!("create {seen} --capacity 1000"));
    fails(
        &dir.run(&format!("dedup --within 1h --filter {seen} list")),
        "forgets nothing",
    );
    fails(
        &dir.run(&format!("dedup --time csv:2 --filter {seen} list")),
        "--time is for windows",
    );
    fails(
        &dir.run(&format!("add --time csv:2 {seen} list")),
        "--time is for windows",
    );
    fails(
        &dir.run(&format!("check --at now {seen} list")),
        "--at is for windows",
    );
    let window = at(&server, "window");
    dir.ok(&format!("create {window} --within 1h --capacity 1000"));
    fails(
        &dir.run(&format!("explain {window} a")),
        "a window in Redis can't be explained; `tamis check` asks it",
    );
    fails(
        &dir.run(&format!("dedup --within 2h --filter {window} list")),
        "but you asked for",
    );
    // Odd times are counted, and nothing is lost.
    let line = format!(
        "dedup --no-header -k csv:1 --time csv:2 --report report --filter {window} --claim before list"
    );
    let ran = dir.ok(&line);
    assert_eq!(ran.text().lines().count(), 5, "{}", ran.text());
    let report: serde_json::Value = serde_json::from_slice(&dir.read("report")).unwrap();
    let numbers = ["too_old", "in_the_future", "without_time"].map(|name| report[name].as_u64());
    assert_eq!(numbers, [Some(1); 3], "{report}");
    assert!(
        ran.err.contains("from the future") && ran.err.contains("without a time"),
        "{}",
        ran.err
    );
    let again = dir.ok(&line);
    assert_eq!(again.text(), "e,2000-01-01\n", "{}", again.err);
}

/// Half a day's events in one hour, all at once, and eight times as many as planned: losses stay within the promise.
#[test]
fn a_peak_in_a_window() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let mut text = String::from("key,at\n");
    for i in 0..20_000 {
        let at = 1_700_000_000 + if i % 2 == 0 { 72_000 } else { i * 4 };
        let _ = writeln!(text, "k{i},{at}");
    }
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.sort_by_key(|line| line.split(',').nth(1));
    dir.write("timed", format!("key,at\n{}\n", lines.join("\n")));
    dir.write("now", keys(0..20_000));
    for keys in [20_000, 2_500] {
        let (timed, now) = (at(&server, "timed"), at(&server, "now"));
        for (filter, rest) in [(&timed, "-k csv:key --time csv:at timed"), (&now, "now")] {
            dir.ok(&format!(
                "create {filter} --within 24h --capacity {keys} -p 1e-6"
            ));
            let line = format!("dedup --claim before --count --filter {filter} {rest}");
            assert_eq!(dir.ok(&line).text(), "20000\n", "{line}");
            dir.ok(&format!("drop {filter}"));
        }
    }
}
