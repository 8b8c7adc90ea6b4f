//! Filters that are kept: only files hold them, one process at a time changes one, and no save tears one.

use super::{fifo, in_shell, lines};
use crate::common::{Ran, Sandbox};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

/// None of these may wait for the other end of the pipe, or replace the pipe with a file.
#[test]
fn a_pipe_or_a_folder_holds_no_filter() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    dir.ok("create f.tamis --capacity 1000");
    fs::create_dir(dir.path("folder")).unwrap();
    fifo(&dir, "pipe");
    symlink("pipe", dir.path("link")).unwrap();
    for name in ["pipe", "link", "folder", "new/"] {
        for line in [
            "create @ --capacity 100",
            "create @ --capacity 100 --kind growing --force",
            "create @ --capacity 100 --force",
            "build @ a",
            "build @ a --force",
            "add @ a",
            "add --shared @ a",
            "check @ a",
            "remove @ a",
            "check --tally @ a",
            "dedup a --filter @",
            "info @",
            "verify @",
            "verify --seal @",
            "copy @ - --as base64",
            "copy a @",
            "copy --force a @",
            "copy f.tamis @",
            "copy --force f.tamis @",
            "copy @ g.tamis",
            "merge --union -o @ f.tamis f.tamis",
            "merge --union --force -o @ f.tamis f.tamis",
            "merge --union -o g.tamis f.tamis @",
            "grep --candidates x @",
        ] {
            let line = line.replace('@', name);
            let ran = dir.run(&line);
            assert_eq!(ran.code, 2, "{line}: {}", ran.err);
            assert!(ran.err.contains(name), "{line}: {}", ran.err);
        }
    }
    assert_eq!(dir.list(), ["a", "f.tamis", "folder", "link", "pipe"]);
}

#[test]
fn whoever_waits_for_a_filter_says_for_whom() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..10));
    dir.ok("create f.tamis --capacity 1000 --kind counting");
    fifo(&dir, "in");
    // Holds the lock until its input ends.
    let holder = dir
        .command("dedup in --filter f.tamis")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = fs::OpenOptions::new()
        .write(true)
        .open(dir.path("in"))
        .unwrap();
    let process = format!("process {} (tamis)", holder.id());
    for line in [
        "dedup --filter f.tamis a",
        "add f.tamis a",
        "remove f.tamis a",
    ] {
        for timeout in ["0", "100ms"] {
            let ran = dir.run(&format!("{line} --lock-timeout {timeout}"));
            assert_eq!((ran.code, ran.text()), (2, ""), "{line}: {}", ran.err);
            assert!(ran.err.contains(&process), "{line}: {}", ran.err);
            assert_eq!(ran.err.contains("waiting"), timeout != "0", "{}", ran.err);
        }
    }
    let mut waits = dir
        .command("dedup -q --filter f.tamis a")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut err = std::io::BufReader::new(waits.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut err, &mut said).unwrap();
    assert!(
        said.contains("waiting for f.tamis") && said.contains(&process),
        "{said}"
    );
    drop(input);
    let ran = Ran::from(waits.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.text()), (0, &*lines(0..10)));
    assert!(holder.wait_with_output().unwrap().status.success());
    let refused = dir.run("dedup --filter f.tamis --lock-timeout soon a");
    assert_eq!(refused.code, 2);
}

#[test]
fn an_unchanged_filter_is_not_rewritten() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    dir.write("absent", lines(5000..5010));
    let file = |name: &str| {
        let file = fs::metadata(dir.path(name)).unwrap();
        (file.ino(), file.mtime(), file.mtime_nsec())
    };
    for kind in ["blocked", "bloom", "cuckoo", "growing"] {
        dir.ok(&format!(
            "create f.tamis --capacity 1000 -p 1e-9 --kind {kind} --force"
        ));
        dir.ok("add f.tamis a");
        let before = file("f.tamis");
        if kind != "cuckoo" {
            dir.ok("add f.tamis a");
            assert_eq!(dir.ok("dedup --filter f.tamis a").text(), "");
        }
        dir.ok("verify --seal f.tamis");
        assert_eq!(file("f.tamis"), before, "{kind}");
        if kind == "cuckoo" {
            assert_eq!(dir.run("remove f.tamis absent").code, 1);
            assert_eq!(file("f.tamis"), before);
            dir.ok("remove f.tamis a");
        } else {
            dir.ok("add f.tamis absent");
        }
        assert_ne!(file("f.tamis"), before, "{kind}");
    }
    // A counting filter changes even if no key is new.
    dir.ok("create f.tamis --capacity 1000 -p 1e-9 --kind counting --force");
    dir.ok("add f.tamis a");
    dir.ok("add f.tamis a");
    assert!(
        dir.ok("check --tally f.tamis a")
            .text()
            .starts_with("2\tline0\n")
    );
}

#[test]
fn removing_goes_on_when_nobody_reads_what_was_absent() {
    let dir = Sandbox::new();
    // Absent keys fill the pipe, so that writing must fail; present keys follow.
    let present = lines(0..1000);
    dir.write("present", &present);
    dir.write("list", lines(100_000..400_000) + &present);
    dir.ok("create f.tamis --capacity 1000 -p 1e-9 --kind counting");
    dir.ok("add f.tamis present");
    let ran = in_shell(
        &dir,
        "tamis remove --absent f.tamis list | head -2; exit ${PIPESTATUS[0]}",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.text(), lines(100_000..100_002));
    assert!(ran.err.contains("1,000 removed"), "{}", ran.err);
    assert_eq!(dir.run("check f.tamis present").code, 1);
}

/// Kills a save at different points. The times aren't expectations: any outcome but a torn filter is right.
#[test]
fn a_killed_save_leaves_the_old_filter_or_the_new_one() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..20_000));
    dir.write("b", lines(20_000..40_000));
    for kind in ["blocked", "growing"] {
        dir.ok(&format!(
            "create f.tamis --capacity 4M --kind {kind} --force"
        ));
        dir.ok("add f.tamis a");
        for round in 0..40 {
            let mut child = dir
                .command("add f.tamis b")
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_micros(round * 1500));
            child.kill().unwrap();
            child.wait().unwrap();
            dir.ok("verify --probes 1000 f.tamis");
            assert_eq!(dir.ok("check -c f.tamis a").text(), "20000\n");
        }
        dir.ok("add f.tamis b");
        dir.write("c", format!("{kind} is new\n"));
        dir.ok("add f.tamis c");
        assert_eq!(dir.ok("check -c f.tamis b").text(), "20000\n");
        let litter: Vec<_> = dir
            .list()
            .into_iter()
            .filter(|n| n.starts_with('.'))
            .collect();
        assert!(litter.is_empty(), "{litter:?}");
    }
}

#[test]
fn a_file_that_another_process_has_is_not_replaced() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    dir.ok("create f.tamis --capacity 1000");
    fifo(&dir, "in");
    // Holds the lock until its input ends.
    let child = dir
        .command("add f.tamis in")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = fs::OpenOptions::new()
        .write(true)
        .open(dir.path("in"))
        .unwrap();
    for line in [
        "create f.tamis --capacity 10 --force",
        "build f.tamis a --force",
        "verify --seal f.tamis",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains("another process"), "{line}: {}", ran.err);
    }
    input.write_all(lines(0..1000).as_bytes()).unwrap();
    drop(input);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(dir.ok("check -c f.tamis a").text(), "1000\n");
}
