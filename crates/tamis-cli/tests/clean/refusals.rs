//! Bad input and impossible requests: a clear error, complete outputs, nothing lost.

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
fn a_missing_input_is_named_and_nothing_summed_up() {
    let dir = Sandbox::new();
    for line in ["clean gone", "clean --dry-run gone", "clean gone -o out"] {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.text()), (2, ""), "{line}");
        assert!(ran.err.contains("gone"), "{line}: {}", ran.err);
        assert!(!ran.err.contains("0 records"), "{line}: {}", ran.err);
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

/// Runs on three inputs and an unreadable one, which is then made readable.
fn interrupted(dir: &Sandbox, line: &str) {
    for number in 1..=3 {
        dir.write(
            &format!("{number}.jsonl"),
            records(&[&format!("text {number}")]),
        );
    }
    dir.write("4.jsonl.gz", b"\x1F\x8B\x08no archive");
    assert_eq!(dir.run(line).code, 2);
    dir.write("4.jsonl.gz", records(&["text 4"]));
}

/// The names of the existing outputs.
fn outputs(dir: &Sandbox) -> Vec<String> {
    let names = tree(dir, "out").into_iter().map(|(name, _)| name);
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn outputs_that_are_gone_are_not_taken_for_finished() {
    let dir = Sandbox::new();
    let line = "clean 1.jsonl 2.jsonl 3.jsonl 4.jsonl.gz -o out";
    interrupted(&dir, line);
    // Like a shell's `rm -r out/*`: the hidden folder stays.
    for name in outputs(&dir) {
        fs::remove_file(dir.path("out").join(name)).unwrap();
    }
    let ran = dir.run(line);
    assert!(
        ran.code == 2 && ran.err.contains("its output 1.jsonl is gone"),
        "{}",
        ran.err
    );
    dir.ok(&format!("{line} --force"));
    assert_eq!(
        outputs(&dir),
        ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl.gz"]
    );
}

#[test]
fn as_many_outputs_are_said_to_be_finished_as_there_are() {
    let dir = Sandbox::new();
    let line = "clean 1.jsonl 2.jsonl 3.jsonl 4.jsonl.gz -o out";
    interrupted(&dir, line);
    let ran = dir.run(&line.replace(".gz", ".zst"));
    assert_eq!(ran.code, 2);
    dir.write("4.jsonl.gz", b"\x1F\x8B\x08no archive");
    let said = dir.run(line).err;
    let there = outputs(&dir).len();
    assert!(
        said.contains(&format!("tamis: {there} of 4 outputs are finished")),
        "{there}: {said}"
    );
}

#[test]
fn a_run_that_replaces_outputs_goes_on_as_well() {
    let dir = Sandbox::new();
    let line = "clean 1.jsonl 2.jsonl 3.jsonl 4.jsonl.gz -o out --force";
    interrupted(&dir, line);
    let ran = dir.ok(line);
    assert!(ran.err.contains("tamis: going on behind"), "{}", ran.err);
    // A run that wasn't to replace anything is started anew.
    fs::remove_dir_all(dir.path("out")).unwrap();
    interrupted(&dir, &line.replace(" --force", ""));
    let ran = dir.ok(line);
    assert!(!ran.err.contains("going on"), "{}", ran.err);
    assert_eq!(outputs(&dir).len(), 4);
}

#[test]
fn a_continued_run_has_the_same_outputs() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("in/deep")).unwrap();
    dir.write("in/deep/1.jsonl", records(&["a"]));
    dir.write("in/z.jsonl.gz", b"\x1F\x8B\x08no archive");
    assert_eq!(dir.run("clean in -o out").code, 2);
    // The same inputs, but the first one's output would have another name.
    let ran = dir.run("clean in/deep/1.jsonl in/z.jsonl.gz -o out");
    assert!(
        ran.code == 2 && ran.err.contains("its input number 1 was"),
        "{}",
        ran.err
    );
}

#[test]
fn a_filter_never_lacks_the_units_of_outputs_without_a_word() {
    let dir = Sandbox::new();
    interrupted(&dir, "clean 1.jsonl 4.jsonl.gz -o out --filter seen.tamis");
    let shorter = "clean 1.jsonl -o out --filter seen.tamis -q";
    let ran = dir.run(&shorter.replace("--filter", "--against"));
    assert!(
        ran.code == 2 && ran.err.contains("its options were Judge"),
        "{}",
        ran.err
    );
    dir.ok("clean 2.jsonl --filter seen.tamis -q");
    let ran = dir.run(shorter);
    assert!(
        ran.code == 2 && ran.err.contains("seen.tamis was changed by another run"),
        "{}",
        ran.err
    );
    // The way out named in the error.
    fs::rename(dir.path("out/.tamis-clean"), dir.path("kept")).unwrap();
    dir.ok("clean --learn seen.tamis out");
    let ran = dir.ok("clean 1.jsonl 2.jsonl --filter seen.tamis -q");
    assert!(ran.out.is_empty(), "it has all");
    // If nobody changed the filter, the run completes, even if it was killed after replacing the filter's own file.
    dir.write("seen.tamis", dir.read("kept/seen-1.tamis"));
    fs::rename(dir.path("kept"), dir.path("out/.tamis-clean")).unwrap();
    dir.ok(shorter);
    assert!(!dir.path("out/.tamis-clean").exists());
}

#[test]
fn standard_input_is_never_taken_for_finished() {
    let dir = Sandbox::new();
    dir.write("2.jsonl.gz", b"\x1F\x8B\x08no archive");
    let line = "clean - 2.jsonl.gz -o out";
    assert_eq!(dir.feed(line, records(&["first"])).code, 2);
    dir.write("2.jsonl.gz", records(&["a"]));
    let ran = dir.feed(line, records(&["another"]));
    assert!(
        ran.code == 2 && ran.err.contains("its input number 1 was standard input"),
        "{}",
        ran.err
    );
    assert_eq!(
        dir.feed(&format!("{line} --force"), records(&["another"]))
            .code,
        0
    );
    assert_eq!(texts(&dir, "out/stdin.jsonl"), ["another"]);
}

#[test]
fn folders_of_inputs_and_outputs_may_lie_in_one_another() {
    let dir = Sandbox::new();
    // Outputs inside the input folder, also in a resumed run.
    interrupted(&dir, "clean . -o out");
    let ran = dir.ok("clean . -o out");
    assert!(ran.err.contains("going on behind"), "{}", ran.err);
    assert_eq!(outputs(&dir).len(), 4);
    // Inputs inside the output folder.
    fs::create_dir_all(dir.path("data/raw")).unwrap();
    dir.write("data/raw/x.jsonl", records(&["x", "x"]));
    dir.ok("clean data/raw 1.jsonl -o data");
    assert_eq!(texts(&dir, "data/x.jsonl"), ["x"]);
    assert_eq!(texts(&dir, "data/1.jsonl"), ["text 1"]);
    let ran = dir.run("clean data/raw -o data/raw --force");
    assert!(
        ran.code == 2 && ran.err.contains("both input and output"),
        "{}",
        ran.err
    );
}

#[test]
fn no_output_is_the_folder_of_another_one() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("x/a")).unwrap();
    fs::create_dir(dir.path("y")).unwrap();
    dir.write("x/a/b", records(&["b"]));
    dir.write("y/a", records(&["a"]));
    let ran = dir.run("clean x y -o out");
    assert!(
        ran.code == 2 && ran.err.contains("two inputs would be out/a"),
        "{}",
        ran.err
    );
    assert!(tree(&dir, "out").is_empty());
}

#[test]
fn a_report_is_no_output_and_can_be_made() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["a"]));
    for (other, says) in [
        ("--report", "both output and report"),
        ("--filter", "both filter and output"),
    ] {
        let ran = dir.run(&format!("clean a.jsonl -o out --force {other} out/a.jsonl"));
        assert!(ran.code == 2 && ran.err.contains(says), "{}", ran.err);
        assert!(tree(&dir, "out").is_empty());
    }
    let ran = dir.run("clean a.jsonl -o out --report none/report.json");
    assert!(
        ran.code == 2 && ran.err.contains("writing none/report.json"),
        "{}",
        ran.err
    );
    assert!(tree(&dir, "out").is_empty(), "it is said before the work");
    dir.ok("clean a.jsonl -o out --report out/report.json");
    assert_eq!(tree(&dir, "out").len(), 2);
}

#[test]
fn a_cause_is_named_once() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["a"]));
    dir.write("file", "");
    let ran = dir.run("clean a.jsonl -o file/out");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.err.matches("os error").count(), 1, "{}", ran.err);
}

#[test]
fn arguments_that_make_no_sense_are_explained() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["a"]));
    dir.write("a.txt", "a\n");
    dir.ok("create plain.tamis --capacity 1000");
    dir.ok("clean --learn lines.tamis --by line a.jsonl");
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
        (
            "--near 0.805 a.jsonl",
            "expected a likeness between 0.01 and 0.99 with two digits at most",
        ),
        (
            "--learn new.tamis --attributes out a.jsonl",
            "cannot be used with",
        ),
        (
            "--learn new.tamis --annotate a.jsonl",
            "cannot be used with",
        ),
        (
            "--against lines.tamis -p 0.01 a.jsonl",
            "lines.tamis has a rate of",
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
