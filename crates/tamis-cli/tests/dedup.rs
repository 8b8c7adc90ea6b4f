//! `tamis dedup` end to end, against a naive oracle.

mod common;

use common::Sandbox;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

/// First occurrences in order; a CR before LF is not part of the key, and a
/// missing last line feed is added.
fn oracle(input: &[u8], duplicates: bool) -> Vec<u8> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    let body = input.strip_suffix(b"\n").unwrap_or(input);
    if input.is_empty() {
        return out;
    }
    for line in body.split(|b| *b == b'\n') {
        let key = line.strip_suffix(b"\r").unwrap_or(line);
        if seen.insert(key) != duplicates {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
    }
    out
}

fn awkward_inputs() -> Vec<(&'static str, Vec<u8>)> {
    let long = |byte| vec![byte; 10_000_000];
    let mut lines_of_10_mb = [long(b'a'), long(b'b'), long(b'a')].join(&b'\n');
    lines_of_10_mb.push(b'\n');
    vec![
        ("empty", vec![]),
        ("one newline", b"\n".to_vec()),
        ("only newlines", b"\n\n\n\n".to_vec()),
        ("one byte lines", b"a\nb\na\nc\nb\n".to_vec()),
        ("no final newline", b"a\nb\na".to_vec()),
        ("final line repeats without newline", b"a\nb".to_vec()),
        ("CRLF mixed", b"a\r\nb\na\nb\r\n\r\n\n\r\r\n".to_vec()),
        ("NUL", b"a\0b\na\0c\na\0b\n\0\n\0\n".to_vec()),
        (
            "invalid UTF-8",
            b"\xff\xfe\n\x80\n\xff\xfe\n\xc3\x28\n".to_vec(),
        ),
        ("long lines", lines_of_10_mb),
        (
            "many",
            (0..50_000u32)
                .map(|i| format!("line {}\n", i.wrapping_mul(2_654_435_761) >> 17))
                .collect::<String>()
                .into_bytes(),
        ),
    ]
}

#[test]
fn every_input_every_thread_count_equals_the_oracle() {
    let dir = Sandbox::new();
    for (name, input) in awkward_inputs() {
        dir.write("in", &input);
        for threads in 1..=4 {
            for mode in ["", "--exact"] {
                let ran = dir.run(&format!("dedup in -j {threads} {mode}"));
                assert!(
                    ran.out == oracle(&input, false),
                    "{name}, -j {threads} {mode}"
                );
                assert_eq!(ran.code, i32::from(ran.out.is_empty()), "{name}");
                let ran = dir.run(&format!("dedup -d in -j {threads} {mode}"));
                assert!(
                    ran.out == oracle(&input, true),
                    "{name}, -d -j {threads} {mode}"
                );
            }
        }
        assert!(
            dir.feed("dedup", &input).out == oracle(&input, false),
            "{name} from stdin"
        );
    }
}

#[test]
fn the_summary_tells_what_happened() {
    let dir = Sandbox::new();
    dir.write("in", "a\nb\na\na\n");
    let ran = dir.ok("dedup in --json-report report.json");
    assert!(
        ran.err.contains("4 records, 2 unique, 2 duplicates"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("wrongly dropped: below 0.001 expected"),
        "{}",
        ran.err
    );
    let report: serde_json::Value = serde_json::from_slice(&dir.read("report.json")).unwrap();
    assert_eq!(
        (&report["records"], &report["unique"], &report["duplicates"]),
        (&4.into(), &2.into(), &2.into())
    );
    assert_eq!(dir.ok("dedup -c in").text(), "2\n");
    assert_eq!(dir.ok("dedup -c -d in").text(), "2\n");
    assert!(
        dir.ok("dedup --exact in")
            .err
            .contains("wrongly dropped: 0 expected")
    );
    assert_eq!(dir.ok("dedup -q in").err, "");
}

#[test]
fn a_filter_remembers_across_runs() {
    let dir = Sandbox::new();
    dir.write("monday", "a\nb\na\n");
    dir.write("tuesday", "b\nc\n");
    assert_eq!(dir.ok("dedup --filter seen.tamis monday").text(), "a\nb\n");
    assert_eq!(dir.ok("dedup --filter seen.tamis tuesday").text(), "c\n");
    let again = dir.run("dedup --filter seen.tamis monday tuesday");
    assert_eq!((again.code, again.text()), (1, ""));
    assert_eq!(
        dir.ok("dedup -d --filter seen.tamis tuesday").text(),
        "b\nc\n"
    );
    // An ordinary filter, made beforehand, does as well.
    dir.ok("create fixed.tamis -n 1000 -p 1e-9");
    assert_eq!(dir.ok("dedup --filter fixed.tamis monday").text(), "a\nb\n");
    assert_eq!(dir.ok("check fixed.tamis monday").text(), "a\nb\na\n");
    assert_eq!(
        dir.list(),
        ["fixed.tamis", "monday", "seen.tamis", "tuesday"]
    );
}

#[test]
fn a_filter_grows_beyond_what_was_expected() {
    let dir = Sandbox::new();
    let lines: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
    let ran = dir.feed("dedup --filter seen.tamis -n 1000", &lines);
    assert!(ran.text() == lines, "{}", ran.err);
    assert_eq!(dir.feed("dedup --filter seen.tamis", &lines).code, 1);
}

#[test]
fn compressed_input_and_output() {
    let dir = Sandbox::new();
    let lines: String = (0..20_000)
        .map(|i| format!("line {}\n", i % 7000))
        .collect();
    dir.write("in", &lines);
    let expected = oracle(lines.as_bytes(), false);
    for extension in ["gz", "zst", "bz2", "xz", "txt"] {
        dir.ok(&format!("dedup in -o out.{extension}"));
        // What we wrote, we read, from a file and from stdin.
        assert!(
            dir.ok(&format!("dedup out.{extension}")).out == expected,
            "{extension}"
        );
        assert!(
            dir.feed("dedup", dir.read(&format!("out.{extension}"))).out == expected,
            "{extension}"
        );
    }
    assert!(dir.read("out.gz").starts_with(&[0x1f, 0x8b]));
    let refused = dir.run("dedup in -o out.gz");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("exists already"), "{}", refused.err);
    dir.ok("dedup in -o out.gz --force");
}

#[test]
fn keys_may_be_columns_pointers_and_urls() {
    let dir = Sandbox::new();
    dir.write(
        "t.csv",
        "id,name,city\n1,\"Ann, B\",X\n2,Bob,Y\n3,\"Ann, B\",Z\n4,\"Bob\",Y\n",
    );
    assert_eq!(
        dir.ok("dedup --csv name t.csv").text(),
        "id,name,city\n1,\"Ann, B\",X\n2,Bob,Y\n"
    );
    assert_eq!(
        dir.ok("dedup --csv 2,city t.csv").text(),
        "id,name,city\n1,\"Ann, B\",X\n2,Bob,Y\n3,\"Ann, B\",Z\n"
    );
    let missing = dir.run("dedup --csv nome t.csv");
    assert_eq!(missing.code, 2);
    assert!(
        missing.err.contains("no column 'nome'") && missing.err.contains("id, name, city"),
        "{}",
        missing.err
    );
    dir.write("t.tsv", "1\ta\n2\tb\n3\ta\n");
    assert_eq!(
        dir.ok("dedup --tsv 2 --no-header t.tsv").text(),
        "1\ta\n2\tb\n"
    );
    dir.write(
        "t.jsonl",
        "{\"id\":1,\"x\":2}\n{\"x\":3,\"id\":1.0}\n{\"id\":\"1\"}\nnot json\n",
    );
    let ran = dir.ok("dedup --jsonl /id t.jsonl");
    assert_eq!(ran.text(), "{\"id\":1,\"x\":2}\n{\"id\":\"1\"}\nnot json\n");
    assert!(
        ran.err.contains("1 records have no such key"),
        "{}",
        ran.err
    );
    dir.write(
        "urls",
        "HTTP://Example.org:80/a/../b#x\nhttp://example.org/b\nhttp://example.org/c\n",
    );
    assert_eq!(
        dir.ok("dedup --url urls").text(),
        "HTTP://Example.org:80/a/../b#x\nhttp://example.org/c\n"
    );
    dir.write("case", "Straße\nSTRASSE\nstraße\nÄ\nä\n");
    assert_eq!(dir.ok("dedup -i case").text(), "Straße\nSTRASSE\nÄ\n");
    assert_eq!(dir.feed("dedup -0", "a\nb\0a\0a\nb\0").out, b"a\nb\0a\0");
    assert_eq!(dir.feed("dedup --delimiter ;", "a;b;a;").out, b"a;b;");
}

#[test]
fn input_that_fails_midway_is_used_as_far_as_it_goes() {
    let dir = Sandbox::new();
    let lines: String = (0..200_000u64)
        .map(|i| format!("line {}\n", i * i))
        .collect();
    dir.write("in", &lines);
    dir.ok("dedup in -o all.gz");
    let all = dir.read("all.gz");
    dir.write("half.gz", &all[..all.len() / 2]);
    let ran = dir.run("dedup --filter seen.tamis half.gz");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("half.gz: the gzip data is cut short"),
        "{}",
        ran.err
    );
    assert!(ran.out.len() > lines.len() / 4 && lines.as_bytes().starts_with(&ran.out));
    // What was read is saved: the next run goes on behind it.
    let rest = dir.ok("dedup --filter seen.tamis in").out;
    assert!([ran.out, rest].concat() == lines.as_bytes());
    // A folder is no input, the file after it is.
    std::fs::create_dir(dir.path("folder")).unwrap();
    dir.write("good", "x\n");
    let ran = dir.run("dedup folder good");
    assert_eq!((ran.code, ran.text()), (2, "x\n"));
    assert!(ran.err.contains("folder"), "{}", ran.err);
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let dir = Sandbox::new();
    let lines: String = (0..300_000).map(|i| format!("line {i}\n")).collect();
    dir.write("in", &lines);
    let mut child = dir
        .command("dedup in --filter seen.tamis")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("writing"));
    // Nobody saw the rest, so it is not remembered.
    let next = dir.ok("dedup in --filter seen.tamis").out;
    assert!(next.len() > lines.len() / 2);
}

#[cfg(unix)]
#[test]
fn a_signal_saves_what_was_done() {
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let dir = Sandbox::new();
        let mut child = dir
            .command("dedup --filter seen.tamis")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe stays open: the command waits for more when the signal comes.
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

/// Killed at any moment, a run loses no record: what the filter claims was
/// printed before.
#[cfg(unix)]
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
            // The last tries are left to finish.
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

#[test]
fn the_sample_shows_something_real() {
    let sample = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../samples/urls.txt"
    ))
    .unwrap();
    let dir = Sandbox::new();
    dir.write("urls.txt", &sample);
    let ran = dir.ok("dedup urls.txt");
    assert!(ran.out == oracle(&sample, false));
    let normalised = dir
        .ok("dedup -c --url urls.txt")
        .text()
        .trim()
        .parse::<usize>()
        .unwrap();
    assert!(normalised < ran.out.split(|b| *b == b'\n').count() - 1);
}
