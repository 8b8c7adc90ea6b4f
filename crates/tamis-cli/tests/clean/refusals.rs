//! Bad input, and what can't be done: a clear end, finished outputs whole, nothing lost.

use crate::common::Sandbox;
use crate::{records, texts, tree};
use std::fs;

#[test]
fn odd_lines_are_kept_and_named() {
    let dir = Sandbox::new();
    let input =
        "{\"text\": \"a\"}\n{\"text\": \"a\"\n{\"id\": 1}\n{\"text\": 7}\n{\"text\": \"a\"}\n";
    dir.write("a.jsonl", input);
    let ran = dir.ok("clean a.jsonl");
    assert_eq!(
        ran.text(),
        "{\"text\": \"a\"}\n{\"text\": \"a\"\n{\"id\": 1}\n{\"text\": 7}\n"
    );
    for named in [
        "a.jsonl:2: no JSON",
        "a.jsonl:3: no text",
        "a.jsonl:4: a text that is no string",
    ] {
        assert!(ran.err.contains(named), "{}", ran.err);
    }
}

#[test]
fn many_odd_lines_are_counted() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", "no record\n".repeat(100));
    let ran = dir.ok("clean a.jsonl");
    assert_eq!(ran.text().lines().count(), 100);
    assert_eq!(ran.err.matches("no JSON").count(), 10);
    assert!(
        ran.err.contains("90 lines more are kept as they are"),
        "{}",
        ran.err
    );
}

#[test]
fn a_truncated_archive_ends_the_run_and_the_rest_can_be_done_later() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("in")).unwrap();
    let many: Vec<String> = (0..5000)
        .map(|number| format!("text {number} {}", number * 7919 % 10_007))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    dir.write("plain", records(&many));
    dir.write("in/1.jsonl", records(&["first", "again"]));
    dir.ok("dedup plain -o in/2.jsonl.gz");
    dir.write("in/3.jsonl", records(&["text 1 7919", "last"]));
    let whole = dir.read("in/2.jsonl.gz");
    dir.write("in/2.jsonl.gz", &whole[..whole.len() / 2]);
    let ran = dir.run("clean in -o out --filter seen.tamis");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .contains("in/2.jsonl.gz: the gzip data is cut short"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("1 of 3 outputs are finished"),
        "{}",
        ran.err
    );
    let names: Vec<String> = tree(&dir, "out")
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(
        names,
        ["1.jsonl"],
        "the finished output is there, and no other"
    );
    dir.write("in/2.jsonl.gz", &whole);
    let ran = dir.ok("clean in -o out --filter seen.tamis");
    assert!(
        ran.err.contains("going on behind 1 finished inputs"),
        "{}",
        ran.err
    );
    assert_eq!(texts(&dir, "out/2.jsonl.gz"), many);
    assert_eq!(texts(&dir, "out/3.jsonl"), ["last"]);
    assert!(!dir.path("out/.tamis-clean").exists());
    let ran = dir.ok("clean in/1.jsonl --filter seen.tamis -q");
    assert!(ran.out.is_empty(), "the filter has what the outputs have");
}

#[test]
fn outputs_have_names_of_their_own() {
    let dir = Sandbox::new();
    for folder in ["x", "y"] {
        fs::create_dir(dir.path(folder)).unwrap();
        dir.write(&format!("{folder}/a.jsonl"), records(&["a"]));
    }
    let ran = dir.run("clean x/a.jsonl y/a.jsonl -o out");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("two inputs would be out/a.jsonl"),
        "{}",
        ran.err
    );
    assert!(tree(&dir, "out").is_empty());
    let ran = dir.run("clean x/a.jsonl -o x");
    assert!(
        ran.code == 2 && ran.err.contains("is both input and output"),
        "{}",
        ran.err
    );
    let ran = dir.run("clean x/a.jsonl -o y/a.jsonl");
    assert!(
        ran.code == 2 && ran.err.contains("is no folder"),
        "{}",
        ran.err
    );
    let ran = dir.run("clean x/a.jsonl -o y");
    assert!(
        ran.code == 2 && ran.err.contains("already exists"),
        "{}",
        ran.err
    );
    dir.ok("clean x/a.jsonl -o y --force");
    assert_eq!(texts(&dir, "y/a.jsonl"), ["a"]);
}

#[test]
fn an_unfinished_run_is_not_continued_as_another_one() {
    let dir = Sandbox::new();
    dir.write("1.jsonl", records(&["a", "b"]));
    dir.write("2.jsonl.gz", b"\x1F\x8B\x08no archive");
    assert_eq!(dir.run("clean 1.jsonl 2.jsonl.gz -o out --by line").code, 2);
    dir.write("2.jsonl.gz", records(&["a"]));
    let ran = dir.run("clean 1.jsonl 2.jsonl.gz -o out --by paragraph");
    assert!(
        ran.code == 2 && ran.err.contains("unfinished run that was another one"),
        "{}",
        ran.err
    );
    let ran = dir.run("clean out -o other");
    assert!(
        ran.code == 2 && ran.err.contains("has an unfinished run"),
        "{}",
        ran.err
    );
    dir.write("1.jsonl", records(&["changed"]));
    let ran = dir.run("clean 1.jsonl 2.jsonl.gz -o out --by line");
    assert!(
        ran.code == 2 && ran.err.contains("its input number 1 was"),
        "{}",
        ran.err
    );
    dir.ok("clean 1.jsonl 2.jsonl.gz -o out --by line --force");
    assert_eq!(texts(&dir, "out/1.jsonl"), ["changed"]);
}

#[test]
fn arguments_that_make_no_sense_are_explained() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["a"]));
    dir.write("a.txt", "a\n");
    dir.ok("create plain.tamis --capacity 1000");
    for (line, says) in [
        (
            "--by word a.jsonl",
            "expected document, paragraph, sentence, line",
        ),
        (
            "--by ngram:0 a.jsonl",
            "an n-gram has 1 to 255 words, got '0'",
        ),
        (
            "--by ngram:3:0 a.jsonl",
            "a stride is 1 or more words, got '0'",
        ),
        (
            "--by line --threshold 0.5 a.jsonl",
            "--threshold and --of are for n-grams",
        ),
        (
            "--by ngram:3 --threshold 2 a.jsonl",
            "expected a share above 0 and up to 1",
        ),
        (
            "--near 1 a.jsonl",
            "expected a likeness between 0.01 and 0.99",
        ),
        ("--fold cases a.jsonl", "got 'cases'"),
        ("--text text a.jsonl", "starts with '/'"),
        ("--annotate a.txt", "plain text has no records to annotate"),
        ("--against plain.tamis a.jsonl", "holds no units of text"),
        ("--against none.tamis a.jsonl", "none.tamis"),
        ("none.jsonl", "none.jsonl"),
        ("--filter redis://h/x a.jsonl", "is a file, not in Redis"),
        ("--filter a.jsonl a.jsonl", "both input and filter"),
    ] {
        let ran = dir.run(&format!("clean {line}"));
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains(says), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}");
    }
}
