//! kill -9 while building, updating and watching. The moments are counts of a run's reads and writes, spread over a
//! whole run.

use super::corpus::{Random, Tree};
use super::peer::{Running, TREE, assert_same, tamis};
use super::queries::Syntax;
use crate::common::{Sandbox, start};
use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const MOMENTS: u64 = 10;
const FILES: u64 = 60;

/// The number of read and write system calls so far; `None` once the process has ended.
fn calls(child: &Child) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).ok()?;
    let field = |name: &str| {
        let line = io.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    Some(field("syscr")? + field("syscw")?)
}

/// Runs `tamis` until it has made this many calls or ends; returns the number of calls seen.
fn run_until(dir: &Sandbox, line: &str, limit: u64) -> u64 {
    let mut command = dir.command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = start(&mut command);
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut seen = 0;
    while child.try_wait().unwrap().is_none() {
        seen = calls(&child).unwrap_or(seen).max(seen);
        if seen >= limit {
            let _ = child.kill();
        }
        assert!(Instant::now() < deadline, "{line}: not done in two minutes");
        std::thread::yield_now();
    }
    seen
}

fn sandbox(seed: u64) -> Sandbox {
    let dir = Sandbox::new();
    let tree = Tree::new(FILES, 4_000_000, seed);
    tree.write(&dir.path(TREE), 2).unwrap();
    dir
}

/// If there is an index, its answers are true; another run completes it, and its answers stay the same.
fn is_true_and_goes_on(dir: &Sandbox, update: &str, moment: u64) {
    for time in ["killed", "completed"] {
        let info = tamis(dir, ["info", "ix"]);
        if dir.path("ix").exists() {
            assert_eq!(info.code, 0, "{time} at {moment}: {}", info.err);
            assert_same(dir, "ix", "-n", Syntax::Words, "FATAL");
            assert_same(dir, "ix", "-c", Syntax::Literal, "imeou");
            assert_same(dir, "ix", "", Syntax::Words, &format!("marked{moment}"));
            assert_same(dir, "ix", "-i", Syntax::Words, "nowhere00at00all");
        } else {
            assert_eq!(time, "killed", "at {moment}: a whole run made no index");
        }
        let ran = dir.run(update);
        assert_eq!(ran.code, 0, "after it was {time} at {moment}: {}", ran.err);
    }
    let verified = tamis(dir, ["verify", "ix"]);
    assert_eq!(verified.code, 0, "{moment}: {}", verified.err);
}

/// Appends to some files, rotates one and deletes one; a word identifies the change.
fn change(dir: &Sandbox, number: u64) {
    let mut random = Random(number);
    let mut plain: Vec<_> = walk(&dir.path(TREE));
    plain.retain(|path| {
        !matches!(
            path.extension().and_then(|e| e.to_str()),
            Some("gz" | "zst")
        )
    });
    plain.sort();
    for _ in 0..6 {
        let path = random.pick(&plain);
        let mut file = fs::File::options().append(true).open(path).unwrap();
        for line in 0..2000 {
            writeln!(
                file,
                "2026-10-30T00:00:00Z WARN marked{number} {line} {:016x} FATAL",
                random.next()
            )
            .unwrap();
        }
    }
    let rotated = random.pick(&plain);
    fs::rename(rotated, format!("{}.{number}", rotated.display())).unwrap();
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

#[test]
fn building() {
    let dir = sandbox(1);
    let build = format!("index -q ix {TREE}");
    let whole = run_until(&dir, &build, u64::MAX);
    for moment in 0..MOMENTS {
        for file in dir.list() {
            if file != TREE {
                remove(&dir, &file);
            }
        }
        run_until(&dir, &build, whole * moment / MOMENTS);
        is_true_and_goes_on(&dir, &build, moment);
    }
}

fn remove(dir: &Sandbox, name: &str) {
    let path = dir.path(name);
    match path.is_dir() {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
}

#[test]
fn updating() {
    let dir = sandbox(2);
    dir.ok(&format!("index -q ix {TREE}"));
    change(&dir, 1000);
    let whole = run_until(&dir, "index -q ix", u64::MAX);
    for moment in 0..MOMENTS {
        change(&dir, moment);
        run_until(&dir, "index -q ix", whole * moment / MOMENTS);
        is_true_and_goes_on(&dir, "index -q ix", moment);
    }
}

#[test]
fn watching() {
    let dir = sandbox(3);
    dir.ok(&format!("index -q ix {TREE}"));
    change(&dir, 1000);
    let whole = run_until(&dir, "index -q ix", u64::MAX);
    for moment in 0..MOMENTS {
        let mut command = dir.command("index -q ix --watch");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut watch = Running(start(&mut command));
        // Changes continue until it has made enough calls, whatever it is doing then.
        let limit = whole / 2 + whole * moment / MOMENTS;
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut number = 0;
        change(&dir, moment);
        while calls(&watch.0).expect("it watches until it is killed") < limit {
            assert!(watch.0.try_wait().unwrap().is_none(), "it ended by itself");
            assert!(Instant::now() < deadline, "{moment}: it does not work");
            number += 1;
            let mut file = fs::File::options()
                .create(true)
                .append(true)
                .open(dir.path(TREE).join("more.log"))
                .unwrap();
            writeln!(file, "2026-10-30T00:00:00Z ERROR more{number}").unwrap();
            // Slows down to spare the disk.
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(watch);
        is_true_and_goes_on(&dir, "index -q ix", moment);
    }
}
