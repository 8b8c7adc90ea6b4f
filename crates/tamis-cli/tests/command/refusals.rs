//! What `--force` may replace, and errors for arguments that can't be meant.

use crate::common::{Ran, Sandbox};

fn list() -> String {
    (0..3000)
        .map(|i| format!("https://example.org/{i}\n"))
        .collect()
}

/// Checks that the run was refused with this message, and nothing has changed.
fn refused(ran: &Ran, line: &str, said: &[&str]) {
    assert_eq!(ran.code, 2, "{line}: {}", ran.err);
    for text in said {
        assert!(ran.err.contains(text), "{line}: {}", ran.err);
    }
}

/// A list of keys, a table, a database: `--force` never replaces files that no command made.
#[test]
fn force_replaces_no_data() {
    let dir = Sandbox::new();
    dir.write("keys", "a\nb\n");
    dir.ok("create f.tamis --capacity 100");
    dir.ok("create --format dcso g.bloom --capacity 100");
    dir.write("base64", dir.ok("copy f.tamis - --as base64").out);
    let others: [(&str, Vec<u8>, &str); 6] = [
        (
            "urls.txt",
            list().into_bytes(),
            "urls.txt is text (73.9 kB), not",
        ),
        (
            "rows.csv",
            b"id,name\n1,a\n".to_vec(),
            "rows.csv is text (12 B), not",
        ),
        (
            "t.parquet",
            b"PAR1\x15\x04\x15\0PAR1".to_vec(),
            "a Parquet file",
        ),
        (
            "dump.rdb",
            b"REDIS0011\xFF\0\0\0\0\0\0\0\0".to_vec(),
            "a database of Redis",
        ),
        ("photo", b"\x89PNG\r\n\x1A\n\0\0".to_vec(), "a PNG image"),
        (
            "key",
            (0..200u8).map(|i| i.wrapping_mul(89) ^ 0xA5).collect(),
            "data of no known format",
        ),
    ];
    for (name, content, is) in &others {
        dir.write(name, content);
        for command in [
            format!("build {name} keys"),
            format!("build --format guava,keys=utf8 keys -o {name}"),
            format!("create {name} --capacity 100"),
            format!("create --format dcso {name} --capacity 100"),
            format!("copy f.tamis {name}"),
            format!("copy g.bloom {name}"),
            format!("merge --union -o {name} f.tamis f.tamis"),
            format!("merge --union -o {name} g.bloom g.bloom"),
            format!("copy base64 {name}"),
        ] {
            for line in [command.clone(), format!("{command} --force")] {
                let ran = dir.run(&line);
                refused(&ran, &line, &[is, "not a filter"]);
                assert!(!ran.err.contains("--force"), "{line}: {}", ran.err);
                assert_eq!(dir.read(name), *content, "{line}");
            }
        }
    }
}

#[test]
fn force_replaces_what_is_ours() {
    let dir = Sandbox::new();
    dir.write("keys", "a\nb\n");
    dir.ok("create f.tamis --capacity 100");
    dir.ok("create --format dcso g.bloom --capacity 100");
    dir.write("base64", dir.ok("copy f.tamis - --as base64").out);
    dir.write("folder.txt", "words\n");
    for (line, out) in [
        ("build x keys", "x"),
        ("create x --capacity 100", "x"),
        ("copy f.tamis x", "x"),
        ("merge --union -o x f.tamis f.tamis", "x"),
        ("copy base64 x", "x"),
        ("build --format guava,keys=utf8 keys -o y", "y"),
        ("build --format bits-and-blooms keys -o y", "y"),
        ("create --format dcso y --capacity 100", "y"),
        ("copy g.bloom y", "y"),
        ("merge --union -o y g.bloom g.bloom", "y"),
    ] {
        // Over a filter, over an index, and over an empty file.
        for before in ["", "create x --capacity 7", "index x folder.txt"] {
            let _ = std::fs::remove_file(dir.path(out));
            match before {
                "" => dir.write(out, ""),
                before => _ = dir.ok(&before.replace(" x", &format!(" {out}"))),
            }
            let there = dir.run(line);
            refused(
                &there,
                line,
                &["already exists", "hint: --force replaces it"],
            );
            dir.ok(&format!("{line} --force"));
            // And over itself.
            dir.ok(&format!("{line} --force"));
        }
    }
    // Another system's filter is replaced by such filters, not by ours.
    dir.ok("create --format dcso y --capacity 100 --force");
    let ours = dir.run("create y --capacity 100 --force");
    refused(
        &ours,
        "create",
        &["y is a dcso filter", "not a Tamis filter"],
    );
}

/// An output of records is like any other text, but a filter, a table or a picture isn't.
#[test]
fn records_replace_records() {
    let dir = Sandbox::new();
    dir.write("keys", "a\nb\na\n");
    dir.ok("create seen.tamis --capacity 100");
    dir.ok("index words.index keys");
    dir.write("t.parquet", b"PAR1\x15\x04\x15\0PAR1");
    for (name, is) in [
        ("seen.tamis", "a Tamis filter"),
        ("words.index", "an index of files"),
        ("t.parquet", "a Parquet file"),
    ] {
        let before = dir.read(name);
        for force in ["", " --force"] {
            let line = format!("dedup keys -o {name}{force}");
            let ran = dir.run(&line);
            refused(&ran, &line, &[is, "not an output of records"]);
            assert!(!ran.err.contains("--force"), "{}", ran.err);
            assert_eq!(dir.read(name), before);
        }
    }
    for name in ["out.txt", "out.gz", "out.zst", "out.xz", "out.bz2"] {
        dir.ok(&format!("dedup keys -o {name}"));
        dir.ok(&format!("dedup keys -o {name} --force"));
    }
    dir.ok("dedup -z keys -o nul");
    dir.ok("dedup -z keys -o nul --force");
}

/// Reports may replace reports and nothing else.
#[test]
fn a_report_replaces_reports() {
    let dir = Sandbox::new();
    dir.write("keys", "a\nb\na\n");
    dir.ok("dedup keys --report report");
    dir.ok("dedup keys --report report");
    for (name, content) in [("urls.txt", list()), ("data.json", "{\"a\": 1}\n".into())] {
        dir.write(name, &content);
        for more in ["", " --force -o out"] {
            let line = format!("dedup keys --report {name}{more}");
            let ran = dir.run(&line);
            refused(&ran, &line, &["is text", "not an earlier report"]);
            assert_eq!(ran.text(), "");
            assert_eq!(dir.read(name), content.as_bytes());
        }
    }
    #[cfg(unix)]
    dir.ok("dedup keys --report /dev/null");
}

#[test]
fn a_filter_of_no_keys_must_be_asked_for() {
    let dir = Sandbox::new();
    dir.write("none", "");
    dir.write("few", "a\n");
    dir.ok("create f.tamis --capacity 100");
    let before = dir.read("f.tamis");
    for line in [
        "build f.tamis --force",
        "build f.tamis none --force",
        "build --smallest f.tamis none --force",
        "build --allow few f.tamis none --force",
        "build new.tamis none",
        "build --format dcso,keys=utf8 none -o new.bloom",
    ] {
        let ran = dir.run(line);
        refused(&ran, line, &["no key was read", "--allow-empty"]);
        assert_eq!(dir.read("f.tamis"), before, "{line}");
    }
    assert_eq!(dir.list(), ["f.tamis", "few", "none"]);
    dir.ok("build --allow-empty new.tamis none");
    dir.ok("build --allow-empty --format dcso,keys=utf8 none -o new.bloom");
    assert_eq!(dir.run("check new.tamis none").code, 1);
}

#[test]
fn text_in_the_place_of_a_filter_is_called_text() {
    let dir = Sandbox::new();
    dir.write("urls.txt", list());
    dir.write("keys", "a\n");
    for line in [
        "check urls.txt keys",
        "add urls.txt keys",
        "remove urls.txt keys",
        "check --tally urls.txt a",
        "explain urls.txt a",
        "info urls.txt",
        "verify urls.txt",
        "copy urls.txt new.tamis",
        "merge --union -o new.tamis urls.txt urls.txt",
        "dedup --filter urls.txt keys",
    ] {
        let ran = dir.run(line);
        refused(
            &ran,
            line,
            &[
                "urls.txt is text (73.9 kB), not a filter",
                "the filter comes first",
            ],
        );
        assert!(
            !ran.err.contains("magic") && !ran.err.contains("rbloom"),
            "{line}: {}",
            ran.err
        );
    }
    assert_eq!(dir.read("urls.txt"), list().as_bytes());
}

#[test]
fn numbers_and_places_that_cannot_be_are_explained() {
    let dir = Sandbox::new();
    for line in [
        "create f --capacity -5",
        "plan --capacity -5",
        "dedup --capacity -5",
    ] {
        refused(
            &dir.run(line),
            line,
            &["expected a number from 0 on, got -5"],
        );
    }
    refused(
        &dir.run("create f --capacity 10 -p -1"),
        "-p",
        &["a rate lies between 0 and 1, got -1"],
    );
    refused(
        &dir.run("--capacity 100"),
        "--capacity",
        &["a command comes first", "tamis --help"],
    );
    let list = dir.run("list localhost");
    refused(&list, "list", &["redis://localhost"]);
    let large = dir.run("create f --capacity 1000T");
    refused(&large, "create", &["take 1.24 PB"]);
    assert!(dir.list().is_empty());
    // Nobody can create files here, not even root.
    #[cfg(target_os = "linux")]
    for line in [
        "create /sys/f.tamis --capacity 10",
        "build --allow-empty /sys/f.tamis",
    ] {
        let ran = dir.run(line);
        refused(
            &ran,
            line,
            &["/sys/f.tamis: no file can be made in its folder"],
        );
        assert!(
            !ran.err.contains(".tmp") && !ran.err.contains("hint"),
            "{}",
            ran.err
        );
    }
}
