//! Runs that are cut short, and what is appended after them: no record is lost, torn, glued or wrongly claimed.

use crate::common::Sandbox;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_signal_saves_what_was_done() {
    use std::os::unix::process::CommandExt;
    for (signal, code) in [
        (libc::SIGINT, 130),
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
    ] {
        let dir = Sandbox::new();
        let mut command = dir.command("dedup --filter seen.tamis");
        // Tests may run under nohup, which leaves SIGHUP ignored.
        // SAFETY: `signal` may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe stays open: the command is waiting for more when the signal comes.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\nb\n").unwrap();
        let mut printed = [0; 4];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut printed)
            .unwrap();
        assert_eq!(&printed, b"a\nb\n");
        // SAFETY: a signal to a child of ours that we have not waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        drop(stdin);
        assert_eq!(
            dir.feed("dedup --filter seen.tamis", "a\nb\nc\n").text(),
            "c\n"
        );
    }
}

/// Killed at any moment, a run loses no record: every key in the filter was printed before.
#[test]
fn sigkill_never_loses_a_record() {
    let lines: Vec<String> = (0..60_000)
        .map(|i| format!("record number {i}\n"))
        .collect();
    let input: String = lines.concat();
    for round in 0..8u64 {
        let dir = Sandbox::new();
        dir.write("in", &input);
        let mut printed = Vec::new();
        let mut kills = 0;
        loop {
            let out = std::fs::File::create(dir.path("out")).unwrap();
            let mut child = dir
                .command("dedup in -j 2 --filter seen.tamis --save-every 0.001")
                .stdout(out)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // The last tries run to the end.
            let patience = Duration::from_micros(3000 + (round * 7919 + kills * 4729) % 40_000);
            if kills < 12 {
                std::thread::sleep(patience);
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            printed.extend_from_slice(&dir.read("out"));
            kills += 1;
            if status.code().is_some() {
                break;
            }
        }
        let found: HashSet<&[u8]> = printed.split_inclusive(|b| *b == b'\n').collect();
        let lost = lines
            .iter()
            .filter(|line| !found.contains(line.as_bytes()))
            .count();
        assert_eq!(lost, 0, "round {round}, {kills} runs");
    }
}

/// Records that reveal tearing or gluing.
fn marked(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|i| format!("<record {i:07}>")).collect()
}

/// Fifty runs on changing inputs are killed, all appending to one file: every key in the filter is in the file,
/// complete.
#[test]
fn sigkill_neither_loses_nor_glues_what_is_appended() {
    const STEP: usize = 20_000;
    const RUNS: usize = 50;
    let dir = Sandbox::new();
    let all = marked(0..((RUNS + 2) * STEP) as u32);
    let append = || {
        let path = dir.path("out");
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path);
        file.unwrap()
    };
    let written = || std::fs::metadata(dir.path("out")).map_or(0, |m| m.len());
    for run in 0..RUNS {
        // Each run gets another part, which overlaps with earlier ones.
        let part = all[run * STEP..][..3 * STEP].join("\n") + "\n";
        let before = written();
        let mut child = dir
            .command("dedup -j 2 -p 1e-12 --filter seen.tamis --save-every 0.001")
            .stdin(Stdio::piped())
            .stdout(append())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The pipe stays open, so that no run ends before it is killed.
        let mut stdin = child.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            // Its reader may be killed.
            let _ = stdin.write_all(part.as_bytes());
            stdin
        });
        // Anywhere between the run's first record and its last new one.
        let moment = before + (run as u64 * 104_729) % (17 * STEP as u64);
        while written() < moment {
            assert!(child.try_wait().unwrap().is_none(), "run {run} ended");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(feeding.join().unwrap());
        // Not every system tears a line when it kills a process, so we tear one.
        if run.is_multiple_of(3) && dir.read("out").ends_with(b"\n") {
            append().write_all(b"<record 0").unwrap();
        }
    }
    dir.write("in", all.join("\n"));
    let last = dir
        .command("dedup in --filter seen.tamis --report report")
        .stdout(append())
        .stderr(Stdio::null())
        .status();
    assert!(last.unwrap().code().unwrap() <= 1);
    let report: serde_json::Value = serde_json::from_slice(&dir.read("report")).unwrap();
    let claimed = report["duplicates"].as_u64().unwrap();
    assert!(claimed as usize > STEP, "killed runs claimed but {claimed}");
    let out = String::from_utf8(dir.read("out")).unwrap();
    let found: HashSet<&str> = out.lines().collect();
    let lost = all.iter().filter(|r| !found.contains(r.as_str()));
    assert_eq!(lost.count(), 0);
    for line in found {
        let torn = "<record 0000000>".len() > line.len() && !line.contains('>');
        let whole = line.len() == "<record 0000000>".len() && line.ends_with('>');
        assert!(torn || whole, "glued: {line}");
    }
}

#[test]
fn what_is_appended_begins_a_line_of_its_own() {
    let dir = Sandbox::new();
    dir.write("in", "a\nb\n");
    let append = |line: &str| {
        let out = std::fs::File::options().append(true).open(dir.path("out"));
        let status = dir.command(line).stdout(out.unwrap()).status();
        assert!(status.unwrap().success());
    };
    for line in ["dedup in", "add --new seen.tamis in"] {
        dir.ok("create seen.tamis --capacity 100 --force");
        dir.write("out", "torn");
        append(line);
        assert_eq!(dir.read("out"), b"torn\na\nb\n", "{line}");
    }
    append("dedup in");
    assert_eq!(dir.read("out"), b"torn\na\nb\na\nb\n");
    dir.write("out", "torn\n");
    append("dedup -z in");
    assert_eq!(dir.read("out"), b"torn\n\0a\nb\n\0");
    // If nothing is printed, an unfinished line isn't ended.
    dir.write("out", "torn");
    append("dedup --count in");
    assert_eq!(dir.read("out"), b"torn2\n");
}

#[cfg(target_os = "linux")]
#[test]
fn what_can_not_be_written_is_not_claimed() {
    let dir = Sandbox::new();
    dir.write("in", "a\nb\n");
    let tamis = env!("CARGO_BIN_EXE_tamis");
    let run = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", &line.replace("tamis", tamis)]);
        let output = shell.current_dir(dir.path("")).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, err) = run("tamis dedup --filter seen in >&-");
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("standard output is closed"), "{err}");
    let (code, err) = run("tamis dedup --filter seen in >/dev/full");
    assert_eq!(code, Some(2), "{err}");
    // Output goes to /dev/null on purpose.
    let (code, _) = run("tamis dedup --filter other in >/dev/null");
    assert_eq!(code, Some(0));
    assert_eq!(dir.ok("dedup --filter seen in").text(), "a\nb\n");
    assert_eq!(dir.run("dedup --filter other in").text(), "");
}
