//! Successful runs.

use crate::common::Sandbox;
use crate::{records, texts, tree};
use serde_json::Value;
use std::fs;

#[test]
fn outputs_are_where_the_inputs_are_and_packed_alike() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("in/deep")).unwrap();
    dir.write("one", records(&["a", "b\nc"]));
    dir.write("two", records(&["x", "b\nc", "a"]));
    for (name, from) in [
        ("in/1.jsonl.gz", "one"),
        ("in/2.jsonl.zst", "two"),
        ("in/deep/3.jsonl.xz", "one"),
        ("in/deep/4.jsonl.bz2", "two"),
        ("in/z.jsonl", "two"),
    ] {
        dir.ok(&format!("dedup {from} -o {name}"));
    }
    let ran = dir.ok("clean in -o out -j 2");
    assert!(ran.out.is_empty());
    assert!(
        ran.err.contains("13 records: 10 dropped, 0 changed"),
        "{}",
        ran.err
    );
    let names: Vec<String> = tree(&dir, "out")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "1.jsonl.gz",
            "2.jsonl.zst",
            "deep/3.jsonl.xz",
            "deep/4.jsonl.bz2",
            "z.jsonl"
        ]
    );
    let magic = |name: &str| dir.read(&format!("out/{name}"))[..2].to_vec();
    assert_eq!(magic("1.jsonl.gz"), b"\x1F\x8B");
    assert_eq!(magic("2.jsonl.zst"), b"\x28\xB5");
    assert_eq!(magic("deep/3.jsonl.xz"), b"\xFD7");
    assert_eq!(magic("deep/4.jsonl.bz2"), b"BZ");
    assert_eq!(texts(&dir, "out/1.jsonl.gz"), ["a", "b\nc"]);
    assert_eq!(texts(&dir, "out/2.jsonl.zst"), ["x"]);
    assert!(texts(&dir, "out/deep/3.jsonl.xz").is_empty());
    assert!(dir.read("out/z.jsonl").is_empty());
}

#[test]
fn paragraphs_are_cut_and_what_is_empty_goes_on_demand() {
    let dir = Sandbox::new();
    dir.write(
        "a.jsonl",
        records(&["One.\n\nTwo words.", "ONE. ", "Two   words.\n\nThree."]),
    );
    let ran = dir.ok("clean a.jsonl --by paragraph --fold case,space -q");
    assert_eq!(ran.text(), records(&["One.\n\nTwo words.", "", "Three."]));
    let ran = dir.ok("clean a.jsonl --by paragraph --fold case,space --drop-empty");
    assert_eq!(ran.text().lines().count(), 2);
    assert!(
        ran.err
            .contains("3 records: 1 dropped, 1 changed; 2 of 5 paragraphs repeated (40.0 %)"),
        "{}",
        ran.err
    );
    let ran = dir.ok("clean a.jsonl --by paragraph --fold case,space --min-words 2");
    assert_eq!(
        ran.text(),
        records(&["One.\n\nTwo words.", "ONE. ", "Three."])
    );
    assert!(
        ran.err.contains("too short to be judged: 3 paragraphs"),
        "{}",
        ran.err
    );
    let ran = dir.ok("clean a.jsonl --by paragraph --fold case,space --min-bytes 6 -q");
    assert_eq!(
        ran.text(),
        records(&["One.\n\nTwo words.", "ONE. ", "Three."])
    );
}

#[test]
fn a_filter_remembers_units_and_what_they_are() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["A line\nanother"]));
    dir.write("b.jsonl", records(&["a LINE\nnew"]));
    dir.ok("clean a.jsonl -o out --by line --fold case --filter seen.tamis");
    let info = dir.ok("info seen.tamis");
    assert!(
        info.text().contains("lines of a text, case ignored"),
        "{}",
        info.text()
    );
    // The filter records what it holds.
    let ran = dir.ok("clean b.jsonl --filter seen.tamis -q");
    assert_eq!(ran.text(), records(&["new"]));
    let ran = dir.ok("clean b.jsonl --filter seen.tamis -q");
    assert_eq!(ran.text(), records(&[""]));
    for other in [
        "--by paragraph",
        "--by line --fold case,space",
        "--fold space",
        "--near 0.8",
        "--by ngram:3",
    ] {
        let ran = dir.run(&format!("clean b.jsonl --filter seen.tamis {other}"));
        assert_eq!(ran.code, 2, "{other}");
        assert!(
            ran.err
                .contains("seen.tamis holds lines of a text, case ignored, but you ask for"),
            "{}",
            ran.err
        );
    }
    for refused in [
        "check seen.tamis b.jsonl",
        "add seen.tamis b.jsonl",
        "dedup --filter seen.tamis b.jsonl",
        "explain seen.tamis x",
        "check --tally seen.tamis b.jsonl",
    ] {
        let ran = dir.run(refused);
        assert_eq!(ran.code, 2, "{refused}");
        assert!(
            ran.err.contains("units of text") || refused.contains("--tally"),
            "{refused}: {}",
            ran.err
        );
    }
}

#[test]
fn a_test_set_is_found_in_a_corpus() {
    let dir = Sandbox::new();
    let question = "What is the name of the sieve that a cook presses flour through in a kitchen";
    dir.write("tests.jsonl", records(&[question]));
    let long = format!("An essay. {question}");
    let mixed = format!(
        "{question} {}",
        "and many other words follow here ".repeat(9)
    );
    dir.write(
        "corpus.jsonl",
        records(&[
            "Nothing of it is in this text, which has some words",
            &long,
            &mixed,
        ]),
    );
    let ran = dir.ok("clean --learn eval.tamis --by ngram:8 --fold case tests.jsonl");
    assert!(ran.err.contains("the filter holds 9 units"), "{}", ran.err);
    let before = dir.read("eval.tamis");
    let ran = dir.ok("clean --against eval.tamis --threshold 0.5 corpus.jsonl");
    assert_eq!(ran.text().lines().count(), 2);
    assert!(!ran.text().contains("essay"));
    let ran = dir.ok("clean --against eval.tamis --threshold 0.5 corpus.jsonl --annotate -q");
    let second: Value = serde_json::from_str(ran.text().lines().nth(1).unwrap()).unwrap();
    let spans = second["tamis_repeats"].as_array().unwrap();
    assert_eq!(spans[0][0], 0);
    assert_eq!(spans[0][1], long.chars().count());
    assert!(spans[0][2].as_f64().unwrap() > 0.5);
    dir.ok("clean --against eval.tamis --threshold 0.5 corpus.jsonl --attributes found -q");
    let lines = String::from_utf8(dir.read("found/corpus.jsonl")).unwrap();
    assert_eq!(
        lines.lines().next(),
        Some(r#"{"id": 0, "attributes": {"tamis_repeats": []}}"#)
    );
    assert!(
        lines
            .lines()
            .nth(1)
            .unwrap()
            .starts_with(r#"{"id": 1, "attributes": {"tamis_repeats": [[0, "#)
    );
    assert!(
        dir.read("eval.tamis") == before,
        "a filter that is only asked stays as it is"
    );
}

#[test]
fn a_dry_run_reports_and_writes_nothing() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", records(&["often\nrare", "often\noften"]));
    dir.write("b.jsonl", records(&["often"]));
    let before = dir.list();
    let ran = dir.ok("clean --dry-run --by line a.jsonl b.jsonl --filter none.tamis");
    assert_eq!(dir.list(), before);
    assert!(
        ran.err
            .contains("3 records: 0 to drop, 2 to change; 3 of 5 lines repeated"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("17 B of 85 B to cut"), "{}", ran.err);
    let lines: Vec<String> = ran
        .text()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "input records lines repeated share",
            "a.jsonl 2 4 2 50.0 %",
            "b.jsonl 1 1 1 100.0 %",
            "all 3 5 3 60.0 %",
            "",
            "repeated most",
            "3 times often"
        ]
    );
    dir.ok("clean --by line a.jsonl b.jsonl -o out --report report.json -q");
    let report: Value = serde_json::from_slice(&dir.read("report.json")).unwrap();
    assert_eq!(report["total"]["repeats"], 3);
    assert_eq!(report["inputs"][1]["input"], "b.jsonl");
    assert_eq!(report["most_repeated"][0]["times"], 3);
    assert!(report["expected_wrongly_dropped"].as_f64().unwrap() < 1e-3);
}

#[test]
fn a_record_that_is_annotated_again_has_one_note() {
    let dir = Sandbox::new();
    dir.write("a.jsonl", "{\"text\": \"a\\nb\"}\n{\"text\": \"b\"} \r\n");
    let ran = dir.ok("clean a.jsonl --by line --annotate -q");
    let once = "{\"text\": \"a\\nb\", \"tamis_repeats\": []}\n{\"text\": \"b\", \"tamis_repeats\": [[0, 1, 1.0]]} \r\n";
    assert_eq!(ran.text(), once);
    dir.write("b.jsonl", once);
    assert_eq!(dir.ok("clean b.jsonl --by line --annotate -q").text(), once);
    let ran = dir.ok("clean b.jsonl --annotate -q");
    assert_eq!(ran.text(), once.replace("[[0, 1, 1.0]]", "[]"));
}

#[test]
fn near_duplicates_go_and_the_rates_of_errors_are_said() {
    let dir = Sandbox::new();
    let words = |from: usize| {
        (from..from + 200)
            .map(|word| format!("w{word}"))
            .collect::<Vec<_>>()
    };
    let (first, other) = (words(0), words(1000));
    let mut near = first.clone();
    near[100] = "changed".to_owned();
    dir.write(
        "a.jsonl",
        records(&[&first.join(" "), &other.join(" "), &near.join(" ")]),
    );
    let ran = dir.ok("clean a.jsonl --near 0.8");
    assert_eq!(ran.text(), records(&[&first.join(" "), &other.join(" ")]));
    assert!(ran.err.contains("9 bands of 13 values"), "{}", ran.err);
    assert!(ran.err.contains("at 0.8,"), "{}", ran.err);
}

#[test]
fn plain_text_and_pipes_are_read() {
    let dir = Sandbox::new();
    dir.write("a.txt", "One\nTwo\nOne\n");
    assert_eq!(dir.ok("clean a.txt --by line -q").text(), "One\nTwo\n");
    let ran = dir.feed("clean --as text --by line -q", "x\ny\nx\n");
    assert_eq!((ran.code, ran.text()), (0, "x\ny\n"));
    let ran = dir.feed("clean -o out", records(&["a", "a"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(texts(&dir, "out/stdin.jsonl"), ["a"]);
}
