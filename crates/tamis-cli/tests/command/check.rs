//! `tamis check` as a grep: counts, files, lines, and keys in hexadecimal.

use crate::common::{Ran, Sandbox};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

/// Every third number is in the filter.
fn is_known(n: u32) -> bool {
    n.is_multiple_of(3)
}

fn lines(range: std::ops::Range<u32>, wanted: impl Fn(u32) -> bool) -> Vec<String> {
    let wanted = range.filter(|n| wanted(*n));
    wanted.map(|n| format!("key {n}\n")).collect()
}

/// A filter of every third of `many` keys, and the file `keys` of all.
fn thirds(many: u32) -> Sandbox {
    let dir = Sandbox::new();
    dir.write("keys", lines(0..many, |_| true).concat());
    dir.ok(&format!("create f.tamis --capacity {many} -p 1e-9"));
    let added = dir.feed("add f.tamis", lines(0..many, is_known).concat());
    assert_eq!(added.code, 0, "{}", added.err);
    dir
}

#[test]
fn check_stops_after_as_many_as_are_wanted() {
    // Many chunks, so that threads run ahead of the one that has found enough.
    let many = 200_000;
    let dir = thirds(many);
    let known = lines(0..many, is_known);
    let others = lines(0..many, |n| !is_known(n));
    for threads in [1, 2, 5] {
        for most in [1, 2, 40_000, known.len() - 1, known.len()] {
            let check = |flags: &str| dir.ok(&format!("check -j {threads} {flags} f.tamis keys"));
            let ran = check(&format!("-m {most}"));
            assert!(ran.text() == known[..most].concat(), "-m {most}");
            let ran = check(&format!("-v --max-count {most}"));
            assert!(ran.text() == others[..most].concat(), "-v -m {most}");
            let ran = check(&format!("-c -m {most}"));
            assert_eq!(ran.text(), format!("{most}\n"));
            let ran = check(&format!("-q -m {most}"));
            assert_eq!(ran.text(), "");
        }
    }
    let all = dir.ok("check -m 1G f.tamis keys");
    assert!(all.text() == known.concat());
    // The limit is for all files together.
    let ran = dir.ok("check -m 4 f.tamis keys keys");
    assert_eq!(ran.text(), known[..4].concat());
    dir.write("one", "key 3\n");
    let ran = dir.ok("check -m 2 f.tamis one keys");
    assert_eq!(ran.text(), "key 3\nkey 0\n");
    // None are wanted, so nothing is found or read.
    for (flags, text) in [("", ""), ("-v", ""), ("-q", ""), ("-c", "0\n")] {
        let ran = dir.run(&format!("check -m 0 {flags} f.tamis keys not-there"));
        assert_eq!((ran.code, ran.text(), &*ran.err), (1, text, ""));
    }
    // Finding fewer than wanted isn't a failure; finding none is.
    assert_eq!(dir.feed("check -m 9 f.tamis", "key 3\nkey 4\n").code, 0);
    assert_eq!(dir.feed("check -m 9 f.tamis", "key 4\n").code, 1);
}

#[test]
fn check_ends_when_it_has_enough_though_the_input_goes_on() {
    let dir = thirds(9);
    let mut child = dir
        .command("check -m 2 f.tamis")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"key 1\nkey 3\nkey 6\nkey 0\n").unwrap();
    // The pipe stays open: waiting for its end would block forever.
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(out, "key 3\nkey 6\n");
    drop(stdin);
}

#[test]
fn check_says_where_a_key_is() {
    // Many chunks: line numbers continue across chunks, and restart in the next file.
    let many = 100_000;
    let dir = thirds(many);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&dir.read("keys")).unwrap();
    dir.write("packed.gz", packed.finish().unwrap());
    let located = |prefix: &dyn Fn(u32) -> String, wanted: &dyn Fn(u32) -> bool| -> String {
        let wanted = (0..many).filter(|n| wanted(*n));
        wanted.map(|n| format!("{}key {n}\n", prefix(n))).collect()
    };
    for threads in [1, 2, 5] {
        let check = |flags: &str| dir.ok(&format!("check -j {threads} {flags}"));
        let numbered = located(&|n| format!("{}:", n + 1), &is_known);
        assert!(check("-n f.tamis keys").text() == numbered);
        assert!(check("-n f.tamis keys packed.gz").text() == numbered.repeat(2));
        let inverted = located(&|n| format!("{}:", n + 1), &|n| !is_known(n));
        assert!(check("-v --line-number f.tamis packed.gz").text() == inverted);
        let in_file = |file: &str| located(&|_| format!("{file}:"), &is_known);
        let both = in_file("keys") + &in_file("packed.gz");
        assert!(check("-H f.tamis keys packed.gz").text() == both);
        assert_eq!(
            check("-Hn -m 2 f.tamis packed.gz keys").text(),
            "packed.gz:1:key 0\npacked.gz:4:key 3\n"
        );
    }
    // Names aren't added just because there are several files.
    let plain = dir.ok("check f.tamis keys packed.gz");
    assert!(plain.text() == lines(0..many, is_known).concat().repeat(2));

    let fed = |flags: &str, input: &str| -> Ran { dir.feed(&format!("check {flags}"), input) };
    assert_eq!(fed("-Hn f.tamis", "x\nkey 3").text(), "stdin:2:key 3\n");
    // The record is printed unchanged, with its own line end.
    assert_eq!(fed("-n f.tamis", "x\r\nkey 3\r\n").text(), "2:key 3\r\n");
    assert_eq!(fed("-n -z f.tamis", "x\0key 3\0").text(), "2:key 3\0");
    assert_eq!(fed("-n -q f.tamis", "key 3\n").text(), "");
    for flags in ["-c -n", "-c -H"] {
        assert_eq!(fed(&format!("{flags} f.tamis"), "key 3\n").code, 2);
    }
}

#[test]
fn a_header_row_has_a_number_and_a_name_too() {
    let dir = thirds(9);
    dir.write("a.csv", "id,key\n1,key 3\n2,key 4\n3,\"key 6\"\n");
    dir.write("b.csv", "id,key\n4,key 0\n");
    let ran = dir.ok("check -k csv:key -Hn f.tamis a.csv b.csv");
    assert_eq!(
        ran.text(),
        "a.csv:1:id,key\na.csv:2:1,key 3\na.csv:4:3,\"key 6\"\nb.csv:2:4,key 0\n"
    );
    let ran = dir.ok("check -k csv:2 --no-header -n f.tamis a.csv");
    assert_eq!(ran.text(), "2:1,key 3\n4:3,\"key 6\"\n");
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_text_is_printed_as_it_is() {
    use std::os::unix::ffi::OsStrExt;
    let dir = thirds(9);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(dir.path("").join(name), "key 3\n").unwrap();
    let ran = dir.command("check -H f.tamis").arg(name).output().unwrap();
    assert_eq!(ran.stdout, b"caf\xe9:key 3\n");
}

#[test]
fn keys_in_hexadecimal_are_bytes() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100 -p 1e-9");
    let added = dir.feed("add --hex f.tamis", "00ff0A\nDEADbeef\n6b6579\n\n");
    assert!(added.err.contains("4 keys read, 4 new"), "{}", added.err);
    // The raw bytes, whatever they are.
    let raw = dir.feed("check -z -c f.tamis", b"\x00\xff\n\0key\0");
    assert_eq!(
        raw.text(),
        "2\n",
        "NUL ends a record: an empty one, and `key`"
    );
    let raw = dir.feed(
        "check -k line(|) -c f.tamis",
        b"\x00\xff\n|\xde\xad\xbe\xef|key||x|",
    );
    assert_eq!(raw.text(), "4\n");
    // Records are printed as given, in upper or lower case.
    let ran = dir.feed("check --hex -n f.tamis", "00FF0a\r\n00ff\ndeadBEEF\n");
    assert_eq!(ran.text(), "1:00FF0a\r\n3:deadBEEF\n");
    // Without the flag, digits aren't decoded.
    assert_eq!(dir.feed("check f.tamis", "6b6579\n").code, 1);
    // A column, a JSON value, an allow list, and every command that reads keys.
    let ran = dir.feed("check --hex -k csv:k f.tamis", "k,v\n6b6579,1\n6b,2\n");
    assert_eq!(ran.text(), "k,v\n6b6579,1\n");
    let ran = dir.feed("check --hex -k jsonl:/k f.tamis", "{\"k\":\"6B6579\"}\n");
    assert_eq!(ran.text(), "{\"k\":\"6B6579\"}\n");
    dir.write("allow", "6B6579\n");
    let ran = dir.feed("check --hex --allow allow f.tamis", "6b6579\ndeadbeef\n");
    assert_eq!(ran.text(), "deadbeef\n");
    let ran = dir.feed("dedup --hex", "6b\n6B\n6c\n");
    assert_eq!(ran.text(), "6b\n6c\n");
    dir.ok("create n.tamis --capacity 100 -p 1e-9 --kind counting");
    assert_eq!(dir.feed("add --hex n.tamis", "6b\n6B\n").code, 0);
    assert_eq!(
        dir.feed("check --tally --hex n.tamis", "6b\n6c\n").text(),
        "2\t6b\n0\t6c\n"
    );
    assert_eq!(dir.feed("remove --hex n.tamis", "6B\n").code, 0);
    assert_eq!(dir.feed("check --tally n.tamis", "k\n").text(), "1\tk\n");
    dir.write("list", "6b6579\n");
    dir.ok("build --hex b.tamis list");
    assert_eq!(dir.feed("check b.tamis", "key\n").text(), "key\n");
}

#[test]
fn what_is_not_hexadecimal_is_an_error_and_changes_nothing() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000 -p 1e-9 --kind counting");
    assert_eq!(dir.feed("add f.tamis", "k\n").code, 0);
    let before = dir.read("f.tamis");
    for bad in [
        "6", "6b6", "0x6b", " 6b", "6b ", "6g", "g6", "6b 6c", "k", "+6", "-1", "６b", "6b\u{0}",
    ] {
        dir.write("good", "6b\n");
        dir.write("bad", format!("6b\n6b\n{bad}\n6b\n"));
        for command in [
            "check --hex f.tamis",
            "check --hex -v f.tamis",
            "check --hex -c f.tamis",
            "add --hex f.tamis",
            "add --hex --new f.tamis",
            "remove --hex f.tamis",
            "check --tally --hex f.tamis",
            "dedup --hex --filter f.tamis",
            "dedup --hex --exact",
            "build --hex new.tamis",
        ] {
            let ran = dir.run(&format!("{command} good bad"));
            assert_eq!(ran.code, 2, "{command}, {bad:?}");
            assert!(
                ran.err.contains("bad:3: --hex expects"),
                "{command}: {}",
                ran.err
            );
            assert!(dir.read("f.tamis") == before, "{command}, {bad:?}");
        }
        assert!(!dir.path("new.tamis").exists());
    }
    for (flags, input, place) in [
        ("-k csv:k", "k\n6b\nx\n", "stdin:3: "),
        ("-k jsonl:/k", "{\"k\":\"6b\"}\n{\"k\":10}\n", "stdin:2: "),
        ("-z", "6b\0x\0", "stdin:2: "),
    ] {
        let ran = dir.feed(&format!("check --hex {flags} f.tamis"), input);
        assert_eq!(ran.code, 2, "{flags}");
        assert!(ran.err.contains(place), "{flags}: {}", ran.err);
    }
    // The excerpt of a record is short, and can't control the terminal.
    let long = format!("\u{1b}[2J{}\n", "z".repeat(100_000));
    let ran = dir.feed("check --hex f.tamis", long);
    assert!(
        ran.err.len() < 200 && ran.err.contains("\\x1b[2Jzzz"),
        "{}",
        ran.err
    );
}

#[test]
fn a_bad_record_far_in_is_found_whatever_the_threads() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 300k -p 1e-9");
    let keys: String = (0..300_000).map(|n| format!("{n:08x}\n")).collect();
    dir.write("good", &keys);
    let mut bad: Vec<&str> = keys.lines().collect();
    bad[123_456] = "0001e24";
    dir.write("bad", bad.join("\n"));
    let before = dir.read("f.tamis");
    for threads in [1, 2, 5] {
        let ran = dir.run(&format!("add --hex -j {threads} f.tamis good bad"));
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("bad:123457: --hex expects"), "{}", ran.err);
        assert!(dir.read("f.tamis") == before);
    }
    dir.ok("add --hex f.tamis good");
    for threads in [1, 2, 5] {
        // Everything before the bad record's chunk is printed, in order and complete.
        let ran = dir.run(&format!("check --hex -j {threads} f.tamis bad"));
        assert_eq!(ran.code, 2);
        assert!(keys.as_bytes().starts_with(&ran.out) && ran.out.ends_with(b"\n"));
        assert!(ran.out.len() < 123_457 * 9);
        assert!(
            ran.out.len() > 123_456 * 9 - (256 << 10),
            "{}",
            ran.out.len()
        );
    }
    // If enough is found before the bad record, it is never reported, even if it was read ahead.
    for threads in [1, 2, 5] {
        let most = 123_456 - (256 << 10) / 9;
        let ran = dir.ok(&format!(
            "check --hex -j {threads} -c -m {most} f.tamis bad"
        ));
        assert_eq!((ran.text(), &*ran.err), (&*format!("{most}\n"), ""));
    }
}

#[test]
fn a_slow_writer_gets_its_answers_line_by_line() {
    let dir = thirds(9);
    let mut child = dir
        .command("check -n f.tamis")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for (number, n) in [(1, 3), (2, 6), (3, 0)] {
        writeln!(stdin, "key {n}").unwrap();
        assert_eq!(
            answers.next().unwrap().unwrap(),
            format!("{number}:key {n}")
        );
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
