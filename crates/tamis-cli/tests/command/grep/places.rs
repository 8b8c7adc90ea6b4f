//! Files and indexes in other places than before: renamed, touched, linked, copied, moved.

use super::corpus::Tree;
use super::peer::{TREE, assert_same, finish, plant, rg, tamis};
use super::queries::Syntax;
use crate::common::{Ran, Sandbox};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Larger than what a run reads to find out that nothing is new.
const LARGE: &str = "tree/large.log";
const LARGE_BYTES: u64 = 12 << 20;

fn with_a_large_file() -> (Sandbox, Tree) {
    let (dir, tree) = plant(20, 200_000, 5);
    let mut text = String::new();
    let mut number = 0_u64;
    while (text.len() as u64) < LARGE_BYTES {
        number += 1;
        text += &format!(
            "2026-10-07T12:00:00Z INFO large{number:07} {:016x}\n",
            number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        );
    }
    dir.write(LARGE, text);
    dir.ok(&format!("index -q ix {TREE}"));
    (dir, tree)
}

/// Runs `tamis index`; returns the bytes that it read.
#[cfg(target_os = "linux")]
fn bytes_read(dir: &Sandbox, line: &str) -> u64 {
    use std::process::Stdio;
    let mut command = dir.command(line);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = crate::common::start(&mut command);
    // It has ended, but isn't reaped yet.
    // SAFETY: `info` is a place for the answer, and the child is ours.
    let waited = unsafe {
        let mut info = std::mem::zeroed();
        libc::waitid(
            libc::P_PID,
            child.id(),
            &mut info,
            libc::WEXITED | libc::WNOWAIT,
        )
    };
    assert_eq!(waited, 0);
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{line}: {}", ran.err);
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// The output with paths relative to here: away from the folder where an index was made, it prints absolute ones.
fn relative(dir: &Sandbox, folder: &str, ran: &Ran) -> (i32, String) {
    let start = format!(
        "{}/",
        dir.path(folder).display().to_string().trim_end_matches('/')
    );
    (ran.code, ran.text().replace(&start, ""))
}

fn ask(dir: &Sandbox) {
    assert_same(dir, "ix", "-n", Syntax::Words, "large0123456");
    assert_same(dir, "ix", "-c", Syntax::Words, "INFO");
    assert_same(dir, "ix", "", Syntax::Regex, r"large0{3}\d7\d\d\b");
}

#[cfg(target_os = "linux")]
#[test]
fn what_only_has_another_name_is_not_read_again() {
    let (dir, _) = with_a_large_file();
    let nothing = bytes_read(&dir, "index -q ix");
    assert!(
        nothing < LARGE_BYTES / 4,
        "{nothing} bytes to find that nothing changed"
    );
    type Change = fn(&Sandbox);
    let changes: [(&str, Change); 3] = [
        ("renamed", |dir| {
            fs::rename(dir.path(LARGE), dir.path("tree/large.log.1")).unwrap()
        }),
        ("renamed into another folder", |dir| {
            fs::create_dir(dir.path("tree/old")).unwrap();
            fs::rename(
                dir.path("tree/large.log.1"),
                dir.path("tree/old/large.log.2"),
            )
            .unwrap();
        }),
        ("linked", |dir| {
            fs::hard_link(dir.path("tree/old/large.log.2"), dir.path("tree/linked")).unwrap()
        }),
    ];
    for (what, change) in changes {
        change(&dir);
        ask(&dir);
        let read = bytes_read(&dir, "index -q ix");
        assert!(read < LARGE_BYTES / 2, "{what}: {read} bytes read");
        ask(&dir);
    }
    // Touching a file may mean writing to it.
    let file = fs::File::options()
        .append(true)
        .open(dir.path("tree/linked"))
        .unwrap();
    file.set_modified(SystemTime::now()).unwrap();
    drop(file);
    ask(&dir);
    dir.ok("index -q ix");
    ask(&dir);
    // One of the file's two names is removed.
    fs::remove_file(dir.path("tree/old/large.log.2")).unwrap();
    ask(&dir);
    let read = bytes_read(&dir, "index -q ix");
    assert!(read < LARGE_BYTES / 2, "{read} bytes read");
    ask(&dir);
    // Only the appended text is read.
    let mut file = fs::File::options()
        .append(true)
        .open(dir.path("tree/linked"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"2026-10-08T00:00:00Z INFO appended1\n").unwrap();
    drop(file);
    ask(&dir);
    assert_same(&dir, "ix", "-n", Syntax::Words, "appended1");
    let read = bytes_read(&dir, "index -q ix");
    assert!(read < LARGE_BYTES / 2, "{read} bytes read for a line");
    assert_same(&dir, "ix", "-n", Syntax::Words, "appended1");
    ask(&dir);
}

/// Equal sizes and names, but other contents.
#[test]
fn what_takes_anothers_place_is_not_taken_for_it() {
    let (dir, _) = with_a_large_file();
    dir.write("tree/one", "thimble aaa\n");
    dir.write("tree/two", "anchorx aaa\n");
    dir.ok("index -q ix");
    let swap = |one: &str, two: &str| {
        fs::rename(dir.path(one), dir.path("aside")).unwrap();
        fs::rename(dir.path(two), dir.path(one)).unwrap();
        fs::rename(dir.path("aside"), dir.path(two)).unwrap();
    };
    let asked = || {
        for word in ["thimble", "anchorx", "aaa", "changed", "large0000009"] {
            assert_same(&dir, "ix", "-n", Syntax::Words, word);
        }
    };
    swap("tree/one", "tree/two");
    asked();
    dir.ok("index -q ix");
    asked();
    fs::copy(dir.path(LARGE), dir.path("tree/copy.log")).unwrap();
    asked();
    dir.ok("index -q ix");
    asked();
    // Overwritten in the middle, with the same size.
    let mut text = fs::read(dir.path(LARGE)).unwrap();
    let middle = text.len() / 2;
    text[middle..middle + 9].copy_from_slice(b" changed ");
    dir.write(LARGE, &text);
    asked();
    dir.ok("index -q ix");
    asked();
    // Truncated, then extended beyond its old size.
    dir.write("tree/one", "a");
    asked();
    dir.write(
        "tree/one",
        "a changed thimble with more than there was\n".repeat(3),
    );
    asked();
    dir.ok("index -q ix");
    asked();
}

#[test]
fn an_index_moves_with_its_files() {
    let (dir, _) = with_a_large_file();
    let found = tamis(&dir, ["grep", "-n", "large0000100", "ix"]);
    assert_eq!(found.code, 0, "{}", found.err);
    fs::create_dir(dir.path("attic")).unwrap();
    for name in dir.list() {
        if name != "attic" {
            fs::rename(dir.path(&name), dir.path("attic").join(&name)).unwrap();
        }
    }
    let moved = finish(
        dir.command("grep -n large0000100 ix")
            .current_dir(dir.path("attic")),
    );
    assert_eq!(
        (moved.code, moved.text()),
        (0, found.text()),
        "{}",
        moved.err
    );
    // It ignores the old place.
    fs::create_dir(dir.path(TREE)).unwrap();
    dir.write("tree/large.log", "large0000100 of somebody else\n");
    let moved = finish(
        dir.command("grep -n large0000100 ix")
            .current_dir(dir.path("attic")),
    );
    assert_eq!(
        (moved.code, moved.text()),
        (0, found.text()),
        "{}",
        moved.err
    );
    let again = finish(dir.command("index -q ix").current_dir(dir.path("attic")));
    assert_eq!(again.code, 0, "{}", again.err);
    let moved = finish(
        dir.command("grep -n large0000100 ix")
            .current_dir(dir.path("attic")),
    );
    assert_eq!(
        (moved.code, moved.text()),
        (0, found.text()),
        "{}",
        moved.err
    );
    // Away from there, paths are absolute.
    let elsewhere = tamis(&dir, ["grep", "-n", "large0000100", "attic/ix"]);
    assert_eq!(
        relative(&dir, "attic", &elsewhere),
        (0, found.text().to_string())
    );
}

#[test]
fn a_tree_has_another_root() {
    let (dir, _) = with_a_large_file();
    fs::rename(dir.path(TREE), dir.path("moved")).unwrap();
    let lost = tamis(&dir, ["grep", "large0000100", "ix"]);
    assert_eq!(lost.code, 2, "{}", lost.text());
    let found = tamis(
        &dir,
        ["grep", "-n", "--moved", "tree=moved", "large0000100", "ix"],
    );
    let expected = rg(&dir, ["-n", "-w", "large0000100", "moved"]);
    assert_eq!(
        relative(&dir, "", &found),
        (0, expected.text().to_string()),
        "{}",
        found.err
    );
    // Records the move permanently.
    let updated = tamis(&dir, ["index", "-q", "ix", "--moved", "tree=moved"]);
    assert_eq!(updated.code, 0, "{}", updated.err);
    let found = tamis(&dir, ["grep", "-n", "large0000100", "ix"]);
    assert_eq!(
        relative(&dir, "", &found),
        (0, expected.text().to_string()),
        "{}",
        found.err
    );
}

#[test]
fn several_indexes_are_asked_at_once() {
    let dir = Sandbox::new();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        Tree::new(12, 100_000, number as u64)
            .write(&dir.path(name), 2)
            .unwrap();
        dir.ok(&format!("index -q {name}.ix {name}"));
    }
    let sorted = |ran: Ran| -> Vec<String> {
        assert!(ran.code < 2, "{}", ran.err);
        let mut lines: Vec<String> = ran.text().lines().map(String::from).collect();
        lines.sort();
        lines
    };
    for (options, word) in [
        ("-n", "timeout"),
        ("-c", "200"),
        ("-l", "ERROR"),
        ("-n", "nowhere"),
    ] {
        let found = tamis(&dir, ["grep", options, word, "a.ix", "b.ix", "c.ix"]);
        let expected = rg(&dir, ["-zauu", options, "-w", word, "a", "b", "c"]);
        assert_eq!(sorted(found), sorted(expected), "{options} {word}");
    }
    // A pattern that isn't an index's name is a pattern.
    let found = tamis(
        &dir,
        ["grep", "-c", "-e", "WARN", "-e", "c", "a.ix", "b.ix"],
    );
    assert!(found.code < 2, "{}", found.err);
    assert!(!dir.path("WARN").exists() && Path::new(&dir.path("c")).exists());
}
