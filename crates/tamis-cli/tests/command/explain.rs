//! `tamis explain`, textbook filters of given bits and hashes, and `info` on a filter with more keys than it is made
//! for.

use crate::common::Sandbox;
use crate::foreign::samples::{SAMPLES, sample_path};
use serde_json::Value;
use std::collections::HashSet;

fn json(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The picture from every tutorial, exactly.
#[test]
fn sixteen_bits_are_drawn_with_the_key_s_marked() {
    let dir = Sandbox::new();
    let made = dir.ok("create toy.tamis --kind bloom --bits 16 --hashes 3");
    assert!(
        made.err.contains("bloom for 4 keys at a rate of 0.165"),
        "{}",
        made.err
    );
    dir.feed("add toy.tamis", "apple\npear\n");
    let told = dir.ok("explain toy.tamis apple plum");
    let expected = "\
key            apple
hash           5ac82be78f9167555cf5d97583ab91bb (xxh3-128)
bits           5 is 1, 6 is 1, 14 is 1
from 0         0000011100010010
                    ^^       ^
answer         maybe: all 3 bits are 1; a key that was never added gets this answer with probability 0.0305

key            plum
hash           f21456d5b89850d8642129cf391921f8 (xxh3-128)
bits           6 is 1, 6 is 1, 15 is 0
from 0         0000011100010010
                     ^        ^
answer         no, certainly: bit 15 is 0
";
    assert_eq!(told.text(), expected);
    assert_eq!(dir.run("explain toy.tamis plum").code, 1);
    let told = &json(dir.ok("explain --json toy.tamis apple").text())[0];
    assert_eq!(told["answer"], "maybe");
    assert_eq!(told["kind"], "bloom");
    let bits = told["looks"][0]["bits"].as_array().unwrap();
    let at: Vec<_> = bits.iter().map(|bit| bit["at"].as_u64().unwrap()).collect();
    assert_eq!(at, [5, 6, 14]);
    assert_eq!(told["looks"][0]["all"].as_array().unwrap().len(), 16);
    let info = dir.ok("info toy.tamis");
    assert!(info.text().contains("16 bits, 3 hashes"), "{}", info.text());
}

/// Every kind, with present and absent keys: exactly the answers of `check`.
#[test]
fn the_answer_is_that_of_check() {
    let dir = Sandbox::new();
    let lines =
        |range: std::ops::Range<u32>| range.map(|n| format!("key{n}\n")).collect::<String>();
    dir.write("in", lines(0..120));
    dir.write("all", lines(0..400));
    let mut filters = vec![];
    for kind in ["bloom", "blocked", "counting", "cuckoo", "growing"] {
        dir.ok(&format!(
            "create {kind} --capacity 120 -p 0.2 --kind {kind}"
        ));
        dir.ok(&format!("add {kind} in"));
        filters.push(kind);
    }
    dir.ok("create keyed --capacity 120 -p 0.2 --secret-file secret");
    dir.ok("add keyed in --secret-file secret");
    dir.ok("build ribbon in -p 0.2 --smallest");
    dir.ok("build fuse in -p 0.2");
    dir.write("allowed", lines(120..150));
    dir.ok("build cascade in -p 0.2 --allow allowed");
    filters.extend(["keyed --secret-file secret", "ribbon", "fuse", "cascade"]);
    let asked: Vec<_> = (0..400).map(|n| format!("key{n}")).collect();
    for filter in filters {
        let told = dir.ok(&format!("explain --json {filter} {}", asked.join(" ")));
        let maybe: String = json(told.text())
            .iter()
            .filter(|told| told["answer"] == "maybe")
            .map(|told| format!("{}\n", told["key"].as_str().unwrap()))
            .collect();
        let checked = dir.ok(&format!("check {filter} all"));
        assert_eq!(maybe, checked.text(), "{filter}");
        assert!(checked.text().lines().count() >= 120);
        // The output for people has as many answers.
        let told = dir.ok(&format!("explain {filter} {}", asked.join(" ")));
        let answers = told
            .text()
            .lines()
            .filter(|line| line.starts_with("answer "));
        assert_eq!(answers.count(), 400, "{filter}");
    }
}

#[test]
fn keys_are_made_by_the_filter_s_rule() {
    let dir = Sandbox::new();
    dir.ok("create case.tamis --capacity 10 -i");
    dir.feed("add case.tamis", "Straße\n");
    let told = dir.ok("explain case.tamis STRASSE Straße STRAẞE");
    assert!(
        told.text().contains("asked as       straße"),
        "{}",
        told.text()
    );
    dir.ok("create urls.tamis --capacity 10 --url");
    dir.feed("add urls.tamis", "https://example.org/a#x\n");
    let told = dir.ok("explain urls.tamis HTTPS://example.org/a#y");
    assert!(
        told.text()
            .contains("asked as       https://example.org/a\n"),
        "{}",
        told.text()
    );
    // Two values, as a CSV row.
    dir.ok("create pairs.tamis --capacity 10 --values 2");
    dir.write("rows", "user,day\nada,\"1,5\"\n");
    dir.ok("add pairs.tamis -k csv:user,day rows");
    assert_eq!(dir.ok("explain pairs.tamis ada,\"1,5\"").code, 0);
    assert_eq!(dir.run("explain pairs.tamis ada,2").code, 1);
    let short = dir.run("explain pairs.tamis ada");
    assert_eq!(short.code, 2);
    assert!(short.err.contains("expected 2 values"), "{}", short.err);
    // Bytes that aren't text.
    dir.ok("create hex.tamis --capacity 10");
    dir.write("digests", "ff00\n");
    dir.ok("add hex.tamis --hex digests");
    assert_eq!(dir.ok("explain --hex hex.tamis ff00").code, 0);
    assert_eq!(dir.run("explain --hex hex.tamis xyz").code, 2);
    assert_eq!(dir.run("explain hex.tamis").code, 2);
    assert_eq!(dir.run("explain nowhere.tamis a").code, 2);
}

#[test]
fn numbers_of_a_textbook_filter_are_checked() {
    let dir = Sandbox::new();
    for (options, expected) in [
        ("--bits 16 --hashes 3", "needs --kind bloom"),
        ("--kind cuckoo --bits 16 --hashes 3", "is for --kind bloom"),
        (
            "--kind blocked --size 1MB --hashes 3",
            "is for --kind bloom",
        ),
        ("--kind bloom --hashes 3", "--bits M or --size S"),
        ("--kind bloom --bits 16", "--capacity"),
        (
            "--kind bloom --bits 16 --hashes 3 -p 0.1",
            "cannot be used with",
        ),
        (
            "--kind bloom --hashes 3 --capacity 9 -p 0.1",
            "cannot be used with",
        ),
        (
            "--kind bloom --bits 16 --hashes 3 --size 2",
            "cannot be used with",
        ),
        ("--kind bloom --bits 0 --hashes 3", "expected 1 to 2^63"),
        ("--kind bloom --bits 16 --hashes 0", "expected 1 to 64"),
        ("--kind bloom --bits 16 --hashes 65", "expected 1 to 64"),
        (
            "--kind bloom --bits 16 --hashes 3 --capacity 0",
            "at least 1",
        ),
        (
            "--format dcso --capacity 5 --hashes 3",
            "cannot be used with",
        ),
    ] {
        let ran = dir.run(&format!("create new.tamis {options}"));
        assert!(
            ran.code == 2 && ran.err.contains(expected),
            "{options}: {}",
            ran.err
        );
        assert!(dir.list().is_empty(), "{options}");
    }
    for (options, expected) in [
        (
            "--size 2 --hashes 3",
            "for 4 keys at a rate of 0.165, 192 B",
        ),
        ("--size 1MB --hashes 7", "at a rate of 0.00781, 1.00 MB"),
        ("--bits 16 --capacity 4", "at a rate of 0.165"),
        // Far too few keys, and far too many: reported correctly.
        (
            "--bits 16000 --hashes 3 --capacity 4",
            "at a rate of 4.21e-10",
        ),
        ("--bits 16 --hashes 3 --capacity 4000", "seem present"),
    ] {
        let ran = dir.ok(&format!("create new.tamis --force --kind bloom {options}"));
        assert!(ran.err.contains(expected), "{options}: {}", ran.err);
    }
}

/// The plan of what `create` would make.
#[test]
fn plan_takes_the_numbers_of_a_textbook_filter() {
    let dir = Sandbox::new();
    let plan = dir.ok("plan --kind bloom --bits 16 --hashes 3");
    assert!(
        plan.text().contains("keys (n)       4\n"),
        "{}",
        plan.text()
    );
    assert!(
        plan.text().contains("rate           0.165\n"),
        "{}",
        plan.text()
    );
    // The cell of the textbook's table, by its exact formula.
    let plan = json_of(
        &dir,
        "plan --json --kind bloom --capacity 1M --bits 20M --hashes 10",
    );
    assert!(
        (plan[0]["rate"].as_f64().unwrap() - 8.89e-5).abs() < 5e-8,
        "{plan}"
    );
    assert_eq!(plan[0]["bytes"], 2_500_032);
    let plan = json_of(&dir, "plan --json --kind bloom --size 2 --hashes 3");
    assert_eq!(
        (&plan[0]["bits"], &plan[0]["keys"]),
        (&16.into(), &4.into())
    );
    for (options, expected) in [
        ("--kind bloom", "every kind is shown"),
        ("--bits 16 --hashes 3", "needs --kind bloom"),
        ("--kind cuckoo --bits 16 --hashes 3", "is for --kind bloom"),
        ("--kind bloom --bits 16", "hashes"),
        (
            "--kind bloom --bits 16 --hashes 3 -p 0.1",
            "cannot be used with",
        ),
        (
            "--kind bloom --hashes 3 --redis --capacity 5",
            "cannot be used with",
        ),
    ] {
        let ran = dir.run(&format!("plan {options}"));
        assert!(
            ran.code == 2 && ran.err.contains(expected),
            "{options}: {}",
            ran.err
        );
    }
}

/// A filter of teaching size works like any other.
#[test]
fn a_teaching_size_is_a_filter_like_others() {
    let dir = Sandbox::new();
    for (name, key) in [("a", "apple\n"), ("b", "pear\n")] {
        dir.ok(&format!("create {name} --kind bloom --bits 16 --hashes 3"));
        dir.feed(&format!("add {name}"), key);
    }
    dir.ok("merge --union -o both a b");
    dir.ok("verify both");
    dir.ok("copy both copied");
    assert_eq!(
        dir.feed("check copied", "apple\npear\n").text(),
        "apple\npear\n"
    );
    assert_eq!(dir.ok("explain copied apple pear").code, 0);
    assert_eq!(dir.read("both"), dir.read("copied"));
}

/// Every sample of another system, with present and absent keys: exactly the answers of `check`.
#[test]
fn other_systems_filters_are_explained() {
    let dir = Sandbox::new();
    let mut formats = HashSet::new();
    for sample in SAMPLES {
        let file = sample_path(sample.file);
        let keys = (sample.keys)();
        let strangers = (0..40).map(|n| match keys[0].parse::<i32>() {
            Ok(_) => format!("{}", 1_000_000 + n),
            Err(_) => format!("{}x{n}", keys[0]),
        });
        let asked: Vec<String> = keys.iter().take(40).cloned().chain(strangers).collect();
        let is_plain = |key: &String| !key.contains(char::is_whitespace) && !key.starts_with('-');
        if !asked.iter().all(is_plain) {
            continue;
        }
        formats.insert(sample.format);
        let filter = format!("{} {}", file.display(), sample.flags);
        let lines: String = asked.iter().map(|key| format!("{key}\n")).collect();
        let checked = dir.feed(&format!("check {filter}"), &lines);
        let told = dir.run(&format!("explain --json {filter} {}", asked.join(" ")));
        assert_eq!((checked.code, told.code), (0, 0), "{filter}: {}", told.err);
        let told = json(told.text());
        let maybe: String = (told.iter().filter(|told| told["answer"] == "maybe"))
            .map(|told| format!("{}\n", told["key"].as_str().unwrap()))
            .collect();
        assert_eq!(maybe, checked.text(), "{filter}");
        assert_eq!(told[0]["format"], sample.format, "{filter}");
        assert!(!told[0]["looks"].as_array().unwrap().is_empty());
        dir.ok(&format!("explain {filter} {}", asked.join(" ")));
    }
    let all: HashSet<_> = SAMPLES.iter().map(|sample| sample.format).collect();
    assert_eq!(formats, all);
}

#[test]
fn a_cuckoo_filter_of_redisbloom_shows_its_buckets() {
    let dir = Sandbox::new();
    let file = sample_path("redisbloom/cfbig.dump");
    let told = dir.run(&format!("explain {} key0", file.display()));
    let text = told.text();
    assert!(text.contains("fingerprint    0x"), "{text}{}", told.err);
    assert!(text.contains("place 2        slot "), "{text}");
    assert!(text.contains("holds its fingerprint"), "{text}");
}

/// 5,000 keys in a filter for 1,000: many seemed present, and were not counted.
#[test]
fn info_does_not_call_a_low_count_exact() {
    let dir = Sandbox::new();
    let lines = |n: u32| (0..n).map(|n| format!("key{n}\n")).collect::<String>();
    for kind in ["bloom", "blocked", "counting"] {
        dir.ok(&format!("create f --capacity 1000 --kind {kind} --force"));
        dir.feed("add f", lines(1000));
        let told = json_of(&dir, "info --json f");
        assert_eq!(
            (&told["keys_at_least"], &told["keys_estimated"]),
            (&false.into(), &Value::Null)
        );
        assert!(!dir.ok("info f").text().contains("at least"));

        dir.feed("add f", lines(5000));
        let told = json_of(&dir, "info --json f");
        let (counted, estimated) = (&told["keys"], told["keys_estimated"].as_u64().unwrap());
        assert!(counted.as_u64().unwrap() < 4_500, "{kind}: {told}");
        assert!((4_750..5_250).contains(&estimated), "{kind}: {told}");
        assert_eq!(
            (&told["keys_at_least"], &told["over_capacity"]),
            (&true.into(), &true.into())
        );
        assert!(told["fill"].as_f64().unwrap() > 4.7, "{told}");
        let info = dir.ok("info f");
        let keys = info
            .text()
            .lines()
            .find(|line| line.starts_with("keys  "))
            .unwrap();
        assert!(
            keys.contains("at least 3,") && keys.contains("about "),
            "{keys}"
        );
        assert!(info.err.contains("holds about "), "{}", info.err);
    }
    // A filter that stores its keys counts them.
    dir.ok("create c --capacity 1000 --kind cuckoo");
    dir.feed("add c", lines(1000));
    assert_eq!(json_of(&dir, "info --json c")["keys_at_least"], false);
    // A tiny filter has so high a rate that its count is low much earlier.
    dir.ok("create toy --kind bloom --bits 16 --hashes 3");
    dir.feed("add toy", lines(4));
    assert_eq!(json_of(&dir, "info --json toy")["keys_at_least"], true);
}

fn json_of(dir: &Sandbox, line: &str) -> Value {
    serde_json::from_str(dir.ok(line).text()).unwrap()
}
