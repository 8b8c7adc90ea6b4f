//! What the command says: help, counts and errors, for people and safe for their terminals.

use crate::common::Sandbox;

#[test]
fn help_is_there_for_everything() {
    let dir = Sandbox::new();
    let help = dir.ok("--help");
    for command in [
        "dedup", "plan", "create", "build", "add", "check", "remove", "info", "verify", "merge",
        "copy", "list", "drop",
    ] {
        assert!(help.text().contains(command));
        assert!(dir.ok(&format!("{command} -h")).text().contains("Usage"));
        let words = |line: &str| dir.ok(line).text().split_whitespace().count();
        // The short help ends with a pointer to the long one.
        let (long, short) = (format!("{command} --help"), format!("{command} -h"));
        assert!(words(&long) + 4 >= words(&short), "{command}");
    }
}

#[test]
fn a_file_that_is_no_filter_is_named_however_short_its_name() {
    let dir = Sandbox::new();
    dir.write("f", "hello");
    for line in [
        "check f",
        "info f",
        "copy f g.tamis",
        "copy f - --as base64",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(
            ran.err.starts_with("tamis: f is text (5 B), not a filter"),
            "{line}: {}",
            ran.err
        );
    }
}

#[test]
fn create_lists_the_kinds_that_it_makes() {
    let dir = Sandbox::new();
    let (short, long) = (dir.ok("create -h"), dir.ok("create --help"));
    let refused = dir.run("create f.tamis --capacity 10 --kind nonsense");
    assert_eq!(refused.code, 2);
    for kind in ["blocked", "bloom", "counting", "cuckoo", "growing"] {
        for text in [short.text(), long.text(), &refused.err] {
            assert!(text.contains(kind), "{kind}: {text}");
        }
        assert!(long.text().contains(&format!("  {kind}  ")), "{kind}");
        dir.ok(&format!("create {kind}.tamis --capacity 10 --kind {kind}"));
    }
}

#[test]
fn one_is_counted_as_one() {
    let dir = Sandbox::new();
    dir.write("one", "key\n");
    dir.write("twice", "key\nkey\n");
    for (line, says) in [
        (
            "create f.tamis --capacity 1 --kind counting",
            "counting for 1 key at a rate",
        ),
        ("add f.tamis one", "f.tamis: 1 key read, 1 new"),
        (
            "add -k csv:2 --no-header f.tamis one",
            "1 record without such a key",
        ),
        ("remove f.tamis one", "f.tamis: 1 key read, 1 removed"),
        ("build b.tamis one", "b.tamis: fuse of 1 key at a rate"),
        (
            "build t.tamis twice",
            "t.tamis: fuse of 1 key (1 record repeated a key) at",
        ),
        ("build --format dcso,keys=utf8 d.bloom twice", "for 1 key, "),
        (
            "index ix one",
            "ix: 1 file, 1 new or changed, 0 gone; 1 key, ",
        ),
    ] {
        let ran = dir.ok(line);
        assert!(ran.err.contains(says), "{line}: {}", ran.err);
    }
    let info = dir.ok("info f.tamis");
    assert!(info.text().contains("1 key\n"), "{}", info.text());
    dir.ok("create g.tamis --capacity 1 --kind counting");
    let merged = dir.ok("merge --union -o m.tamis g.tamis g.tamis --force");
    assert!(merged.err.contains("about 0 keys"), "{}", merged.err);
}

/// Names and keys with control sequences are shown escaped; records are printed unchanged.
#[cfg(unix)]
#[test]
fn no_name_commands_a_terminal() {
    let dir = Sandbox::new();
    let name = "a\u{1b}[31mb\u{9b}2J\u{202e}c\rd";
    let shown = r"a\u001b[31mb\u009b2J\u202ec\rd";
    let powerless = |text: &str| !text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']);
    let run = |words: &[&str], input: &str| {
        let mut command = dir.command("");
        command.args(words);
        let ran = dir.feed_to(command, input);
        assert!(powerless(&ran.err), "{words:?}: {:?}", ran.err);
        ran
    };
    // Messages about files: missing, created, described, already existing.
    for words in [
        &["dedup", name][..],
        &["check", name],
        &["info", name],
        &["serve", name],
        &["index", "ix", name],
        &["grep", "key", name],
        &["dedup", "--filter", "f", "--capacity", name],
    ] {
        let ran = run(words, "");
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        // clap removes the one sequence that it knows.
        let quoted = ran.err.contains(shown) || ran.err.contains(r"b\u009b2J\u202ec\rd");
        assert!(quoted, "{words:?}: {}", ran.err);
    }
    assert_eq!(run(&["create", name, "--capacity", "100"], "").code, 0);
    assert!(
        run(&["create", name, "--capacity", "100"], "")
            .err
            .contains(shown)
    );
    assert!(run(&["add", name], "key\n").err.contains(shown));
    // Messages about columns.
    let ran = run(&["dedup", "-k", &format!("csv:{name}")], "x,y\n1,2\n");
    assert!(ran.err.contains(shown), "{}", ran.err);
    // Tables are for people, so they are escaped; JSON stays JSON.
    std::fs::create_dir(dir.path("logs")).unwrap();
    dir.write(&format!("logs/{name}"), "one two\n");
    assert_eq!(run(&["index", "-q", "ix", "logs"], "").code, 0);
    let info = run(&["info", "ix"], "");
    assert!(powerless(info.text()), "{}", info.text());
    let json = run(&["info", "--json", name], "");
    serde_json::from_slice::<serde_json::Value>(&json.out).unwrap();
    // Output for programs is unchanged.
    assert!(
        run(&["grep", "--candidates", "two", "ix"], "")
            .text()
            .contains(name)
    );
    let record = format!("{name}\n");
    assert_eq!(run(&["dedup", "-q"], &record).text(), record);
}

/// Every text says what to do.
#[test]
fn messages_say_what_to_do() {
    let dir = Sandbox::new();
    dir.write("nothing", "");
    dir.write("in", "x\n");
    dir.ok("create ours.tamis --capacity 10");
    for (line, expected) in [
        ("plan --capacity 10 -p 1e-300", "got 1e-300"),
        (
            "plan --capacity 0 -p 0.1",
            "number of keys: expected at least 1, got 0",
        ),
        (
            "plan --capacity 10X -p 0.1",
            "(units K, M, G, T), got '10X'",
        ),
        ("plan --capacity 1,5 -p 0.1", "expected a number, got '1,5'"),
        ("check nowhere/f.tamis in", "there is no folder nowhere"),
        (
            "create new.tamis",
            "say how many keys to expect: --capacity N",
        ),
        ("create new.tamis --bits 16", "--bits needs --kind bloom"),
        (
            "check --format bitmap,hash=java-spread:1,bits=8,keys=utf16 nothing in",
            "expected a string of bits, got an empty file",
        ),
        ("check f.tamis in", "hint: `tamis create` creates a filter"),
        (
            "build redis://:secret@127.0.0.1:1/0/f in",
            "this command makes a file, not a filter in Redis",
        ),
        (
            "copy ours.tamis redis://:secret@127.0.0.1:1/0/f",
            "no connection to 127.0.0.1:1",
        ),
        (
            "create redis://127.0.0.1:1/0/f --capacity 10 --kind bloom",
            "bloom filters can't be kept in Redis: use a blocked",
        ),
        (
            "dedup --colour in",
            "`tamis dedup --help` lists the options",
        ),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains(expected), "{line}: {}", ran.err);
        assert!(!ran.err.contains("as a value"), "{line}: {}", ran.err);
        assert!(!ran.err.contains("secret"), "{line}: {}", ran.err);
        assert!(ran.err.lines().all(|line| line.len() < 200), "{}", ran.err);
    }
    let help = dir.ok("grep -h").text().to_owned();
    assert!(help.contains("Usage: tamis grep") && help.contains("--files-with-matches"));
    let all = dir.ok("--help").text().to_owned();
    for group in [
        "Drop what repeats:",
        "Filters:",
        "Search in files:",
        "Keep and share:",
    ] {
        assert!(all.contains(group), "{all}");
    }
    let plan = |n| {
        dir.ok(&format!("plan -p 0.01 --capacity {n}"))
            .text()
            .to_owned()
    };
    assert_eq!(plan("10,000,000"), plan("10M"));
    // Nothing was read, so there is nothing to summarise.
    for line in ["dedup missing", "dedup --filter f missing"] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2);
        assert!(!ran.err.contains("records"), "{}", ran.err);
    }
    assert!(dir.ok("dedup in").err.contains("\nfilter "));
    // Equal records without a key count as one.
    let ran = dir.feed("dedup -k jsonl:/id", "\n\n{\"id\": 1}\n");
    assert_eq!(ran.text(), "\n{\"id\": 1}\n");
    assert!(
        ran.err.contains("the whole record was the key"),
        "{}",
        ran.err
    );
}
