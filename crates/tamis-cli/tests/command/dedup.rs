//! `tamis dedup` end to end, against a naive oracle.

#[cfg(unix)]
mod cut_short;
mod losses;
mod options;
#[cfg(unix)]
mod random;
mod windows;

use crate::common::Sandbox;
use std::collections::HashSet;
use std::io::Read;
use std::process::Stdio;

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
                assert_eq!(ran.code, 0, "{name}");
                let ran = dir.run(&format!("dedup -v in -j {threads} {mode}"));
                assert!(
                    ran.out == oracle(&input, true),
                    "{name}, -v -j {threads} {mode}"
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
    let ran = dir.ok("dedup in --report report.json");
    assert!(
        ran.err.contains("4 records, 2 unique, 2 duplicates"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("wrongly dropped by chance: below 0.001 expected"),
        "{}",
        ran.err
    );
    let report: serde_json::Value = serde_json::from_slice(&dir.read("report.json")).unwrap();
    assert_eq!(
        (&report["records"], &report["unique"], &report["duplicates"]),
        (&4.into(), &2.into(), &2.into())
    );
    assert_eq!(dir.ok("dedup --count in").text(), "2\n");
    assert_eq!(dir.ok("dedup --count -v in").text(), "2\n");
    assert!(
        dir.ok("dedup --exact in")
            .err
            .contains("wrongly dropped by chance: 0 expected")
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
    assert_eq!((again.code, again.text()), (0, ""));
    assert_eq!(
        dir.ok("dedup -v --filter seen.tamis tuesday").text(),
        "b\nc\n"
    );
    // An ordinary filter created beforehand works as well.
    dir.ok("create fixed.tamis --capacity 1000 -p 1e-9");
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
    let ran = dir.feed("dedup --filter seen.tamis --capacity 1000", &lines);
    assert!(ran.text() == lines, "{}", ran.err);
    assert_eq!(dir.feed("dedup --filter seen.tamis", &lines).text(), "");
}

#[test]
fn nothing_new_is_a_failure_only_if_asked() {
    let dir = Sandbox::new();
    dir.write("empty", "");
    dir.write("keys", "a\nb\n");
    dir.ok("dedup --filter seen.tamis keys");
    for (line, status) in [
        ("empty", 1),
        ("keys", 0),
        ("-v keys", 1),
        ("-v keys keys", 0),
        ("--count empty", 1),
        ("--count keys", 0),
        ("--count -v keys", 1),
        ("--tally empty", 1),
        ("--tally keys", 0),
        ("-u keys keys", 1),
        ("--exact empty", 1),
        ("--exact keys", 0),
        ("--filter seen.tamis keys", 1),
        ("--filter seen.tamis -v keys", 0),
        ("--filter seen.tamis --dry-run keys", 1),
    ] {
        assert_eq!(dir.run(&format!("dedup {line}")).code, 0, "{line}");
        let strict = dir.run(&format!("dedup --exit-code {line}"));
        assert_eq!(strict.code, status, "{line}: {}", strict.err);
    }
    // Unreadable input is an error either way.
    for line in ["dedup gone", "dedup --exit-code gone keys"] {
        assert_eq!(dir.run(line).code, 2, "{line}");
    }
}

#[test]
fn the_summary_counts_right() {
    let dir = Sandbox::new();
    for (input, summary) in [
        ("", "0 records, 0 unique, 0 duplicates, "),
        ("a\n", "1 record, 1 unique, 0 duplicates, "),
        ("a\na\n", "2 records, 1 unique, 1 duplicate, "),
        ("a\na\na\n", "3 records, 1 unique, 2 duplicates, "),
    ] {
        let ran = dir.feed("dedup", input);
        assert!(ran.err.starts_with(summary), "{}", ran.err);
        assert_eq!(dir.feed("dedup -q", input).err, "");
    }
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
        // We can read our own output, from a file and from stdin.
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
    assert!(refused.err.contains("already exists"), "{}", refused.err);
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
        dir.ok("dedup -k csv:name t.csv").text(),
        "id,name,city\n1,\"Ann, B\",X\n2,Bob,Y\n"
    );
    assert_eq!(
        dir.ok("dedup -k csv:2,city t.csv").text(),
        "id,name,city\n1,\"Ann, B\",X\n2,Bob,Y\n3,\"Ann, B\",Z\n"
    );
    let missing = dir.run("dedup -k csv:nome t.csv");
    assert_eq!(missing.code, 2);
    assert!(
        missing.err.contains("no column 'nome'") && missing.err.contains("id, name, city"),
        "{}",
        missing.err
    );
    dir.write("t.tsv", "1\ta\n2\tb\n3\ta\n");
    assert_eq!(
        dir.ok("dedup -k tsv:2 --no-header t.tsv").text(),
        "1\ta\n2\tb\n"
    );
    dir.write(
        "t.jsonl",
        "{\"id\":1,\"x\":2}\n{\"x\":3,\"id\":1.0}\n{\"id\":\"1\"}\nnot json\n",
    );
    let ran = dir.ok("dedup -k jsonl:/id t.jsonl");
    assert_eq!(ran.text(), "{\"id\":1,\"x\":2}\n{\"id\":\"1\"}\nnot json\n");
    assert!(
        ran.err.contains("1 record without such a key"),
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
    // A key that isn't a URL is kept unchanged, and counted.
    let ran = dir.feed(
        "dedup --url",
        "http://a\nno url\nNO URL\nhttp://[\nhttp://A/\n",
    );
    assert_eq!(ran.text(), "http://a\nno url\nNO URL\nhttp://[\n");
    assert!(ran.err.contains("not URLs: 3 keys"), "{}", ran.err);
    assert!(!dir.ok("dedup --url urls").err.contains("not URLs"));
    dir.write("case", "Straße\nSTRASSE\nstraße\nÄ\nä\n");
    assert_eq!(dir.ok("dedup -i case").text(), "Straße\nSTRASSE\nÄ\n");
    assert_eq!(dir.feed("dedup -z", "a\nb\0a\0a\nb\0").out, b"a\nb\0a\0");
    assert_eq!(dir.feed("dedup -k line(;)", "a;b;a;").out, b"a;b;");
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
    // What was read is saved: the next run continues after it.
    let rest = dir.ok("dedup --filter seen.tamis in").out;
    assert!([ran.out, rest].concat() == lines.as_bytes());
    // A missing file doesn't keep the next one from being read.
    dir.write("good", "x\n");
    let ran = dir.run("dedup gone good");
    assert_eq!((ran.code, ran.text()), (2, "x\n"));
    assert!(ran.err.contains("gone"), "{}", ran.err);
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
    // Nobody saw the rest, so it isn't remembered.
    let next = dir.ok("dedup in --filter seen.tamis").out;
    assert!(next.len() > lines.len() / 2);
}

#[test]
fn a_dry_run_changes_nothing() {
    let dir = Sandbox::new();
    dir.write("in", "a\nb\na\n");
    assert_eq!(dir.ok("dedup --filter seen --dry-run in").text(), "a\nb\n");
    assert_eq!(dir.list(), ["in"]);
    dir.feed("dedup --filter seen", "a\n");
    let before = dir.read("seen");
    for _ in 0..2 {
        assert_eq!(dir.ok("dedup --filter seen --dry-run in").text(), "b\n");
        assert_eq!(
            dir.ok("dedup --count --filter seen --dry-run in").text(),
            "1\n"
        );
        assert_eq!(
            dir.ok("dedup -v --filter seen --dry-run in").text(),
            "a\na\n"
        );
    }
    assert_eq!(dir.read("seen"), before);
    // Without it, --count and -v record the keys they see.
    assert_eq!(dir.ok("dedup --count --filter seen in").text(), "1\n");
    assert_eq!(dir.run("dedup --count --filter seen in").text(), "0\n");
    assert_eq!(dir.run("dedup --dry-run in").code, 2);
}

#[test]
fn filters_that_count_get_a_key_once() {
    let dir = Sandbox::new();
    let equal = "a\n".repeat(20);
    for kind in ["cuckoo", "counting"] {
        dir.ok(&format!(
            "create --force seen --capacity 1000 --kind {kind}"
        ));
        for _ in 0..20 {
            let ran = dir.feed("dedup --filter seen", format!("{equal}b\n"));
            assert!(ran.code <= 1, "{kind}: {}", ran.err);
        }
        assert_eq!(
            dir.feed("check --tally seen", "a\nb\n").text(),
            "1\ta\n1\tb\n"
        );
        dir.feed("remove seen", "a\n");
        assert_eq!(dir.feed("dedup --filter seen", &equal).text(), "a\n");
    }
}

#[test]
fn claiming_before_is_for_redis() {
    let dir = Sandbox::new();
    let ran = dir.run("dedup --filter seen --claim before");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("in Redis"), "{}", ran.err);
    assert_eq!(dir.run("dedup --claim before").code, 2);
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
        .ok("dedup --count --url urls.txt")
        .text()
        .trim()
        .parse::<usize>()
        .unwrap();
    assert!(normalised < ran.out.split(|b| *b == b'\n').count() - 1);
}
