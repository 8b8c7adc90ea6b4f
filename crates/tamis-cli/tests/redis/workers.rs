//! `tamis dedup` by several workers with one filter in Redis: what is lost, and what is printed again, when workers are
//! killed.

use crate::common::Sandbox;
use crate::servers::Server;
use std::collections::HashMap;
use std::fs::File;
use std::process::{Child, Stdio};

fn records() -> Vec<String> {
    (0..60_000).map(|i| format!("<record {i:06}>")).collect()
}

/// A worker that appends to a separate file.
fn worker(dir: &Sandbox, line: &str, number: usize) -> Child {
    let out = File::options()
        .append(true)
        .create(true)
        .open(dir.path(&format!("out.{number}")))
        .unwrap();
    dir.command(line)
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Three workers read the same records, and are killed and restarted; then they run to the end. Returns how often each
/// record was printed, and how many workers were killed.
fn killed_workers(claim: &str) -> (HashMap<String, u32>, u32) {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.write("in", records().join("\n"));
    let seen = format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {seen} --capacity 100k -p 1e-9"));
    let line = format!("dedup in --claim {claim} --filter {seen}");
    let written = |i: usize| {
        let metadata = std::fs::metadata(dir.path(&format!("out.{i}")));
        metadata.map_or(0, |m| m.len())
    };
    let mut kills = 0;
    for round in 0..6u64 {
        // Each is killed once it has printed enough, or has nothing to print.
        let mut workers: Vec<(Child, u64)> = (0..3)
            .map(|i| {
                let more = (round * 3 + i as u64) * 104_729 % 300_000;
                let moment = written(i) + more;
                (worker(&dir, &line, i), moment)
            })
            .collect();
        let mut alive = 3;
        while alive > 0 {
            alive = 0;
            for (i, (worker, moment)) in workers.iter_mut().enumerate() {
                match worker.try_wait().unwrap() {
                    Some(_) => {}
                    None if written(i) >= *moment => worker.kill().unwrap(),
                    None => alive += 1,
                }
            }
            std::thread::yield_now();
        }
        for (worker, _) in &mut workers {
            kills += u32::from(worker.wait().unwrap().code().is_none());
        }
    }
    for mut worker in (0..3).map(|i| worker(&dir, &line, i)).collect::<Vec<_>>() {
        assert!(worker.wait().unwrap().code().unwrap() <= 1);
    }
    let mut times = HashMap::new();
    for i in 0..3 {
        let out = String::from_utf8(dir.read(&format!("out.{i}"))).unwrap();
        for line in out.lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
    }
    (times, kills)
}

#[test]
fn claimed_after_printing_nothing_is_lost() {
    let (times, kills) = killed_workers("after");
    assert!(kills > 0, "no worker was killed in time");
    let lost = records().iter().filter(|r| !times.contains_key(*r)).count();
    assert_eq!(lost, 0, "after {kills} kills");
}

#[test]
fn claimed_before_printing_nothing_comes_twice() {
    let (times, kills) = killed_workers("before");
    assert!(kills > 0, "no worker was killed in time");
    let all = records();
    let twice = all.iter().filter(|r| times.get(*r).is_some_and(|n| *n > 1));
    assert_eq!(twice.count(), 0);
    // A killed worker loses what it had claimed but not printed: at most a step of 64 KiB.
    let step = (64 << 10) / (all[0].len() + 1) + 1;
    let lost = all.iter().filter(|r| !times.contains_key(*r)).count();
    assert!(
        lost <= kills as usize * step,
        "{lost} lost by {kills} kills"
    );
}

#[test]
fn the_default_loses_nothing_and_a_dry_run_claims_nothing() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = format!("redis://{}/seen", server.address());
    dir.write("in", "a\nb\na\n");
    // A dry run creates nothing.
    assert_eq!(
        dir.run(&format!("dedup --dry-run --filter {seen} in")).code,
        2
    );
    dir.feed(&format!("dedup --filter {seen}"), "a\n");
    for _ in 0..2 {
        let ran = dir.ok(&format!("dedup --dry-run --filter {seen} in"));
        assert_eq!(ran.text(), "b\n");
    }
    // Records that can't be printed aren't claimed.
    let full = File::options().write(true).open("/dev/full");
    if let Ok(full) = full {
        let status = dir
            .command(&format!("dedup --filter {seen} in"))
            .stdout(full)
            .stderr(Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(2));
    }
    let refused = dir.run(&format!("dedup --claim before --filter {seen} in -o out"));
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("OUT appears at the end"));
    dir.ok(&format!("dedup --filter {seen} in -o out"));
    assert_eq!(dir.read("out"), b"b\n");
    let none = dir.ok(&format!("dedup --filter {seen} in"));
    assert_eq!(none.text(), "");
}

#[test]
fn a_counting_filter_gets_a_key_once() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {seen} --kind counting --capacity 1000"));
    for claim in ["before", "after", "before"] {
        let line = format!("dedup --claim {claim} --filter {seen}");
        dir.feed(&line, format!("b\n{}", "a\n".repeat(20)));
    }
    let counted = dir.feed(&format!("check --tally {seen}"), "a\nb\n");
    assert_eq!(counted.text(), "1\ta\n1\tb\n");
}

#[test]
fn workers_share_a_window_which_forgets() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = format!("redis://{}/seen", server.address());
    for claim in ["after", "before"] {
        let line =
            format!("dedup -q --within 4s --capacity 1000 --claim {claim} --filter {seen}-{claim}");
        let first = dir.feed(&line, "a\nb\na\n");
        assert_eq!((first.code, first.text()), (0, "a\nb\n"), "{}", first.err);
        assert!(
            first.err.contains("so a window filter was created"),
            "{}",
            first.err
        );
        assert_eq!(dir.feed(&line, "a\nc\n").text(), "c\n");
        std::thread::sleep(std::time::Duration::from_secs(5));
        assert_eq!(dir.feed(&line, "a\nb\nc\n").text(), "a\nb\nc\n");
        // The options must match the window.
        let other = dir.feed(&line.replace("4s", "8s"), "a\n");
        assert_eq!((other.code, other.text()), (2, ""));
        assert!(
            other.err.contains("remembers 4s since first seen"),
            "{}",
            other.err
        );
    }
}
