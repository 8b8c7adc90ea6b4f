//! `tamis plan --per-day`: the number of wrong answers that a rate means.

use crate::common::{Sandbox, keys};
use serde_json::Value;

/// The number is in the table with its assumption, for every kind that can be planned.
#[test]
fn wrong_answers_a_day_are_said() {
    let dir = Sandbox::new();
    let assumed = "Wrong a day: rate × 100,000,000 questions, if each is about a key that was never added; other";
    for (line, said) in [
        (
            "--capacity 10M -p 0.001",
            &["\nblocked ", " 0.001 100,000 ", assumed][..],
        ),
        ("--capacity 10M -p 0.001", &["\nfuse ", " 9.77e-4 97,700 "]),
        // The promised number may be higher than the expected one.
        (
            "--capacity 10M -p 0.001 --grow",
            &[
                " 6.89e-4 68,900 ",
                "The promised rate of 0.001 is at most 100,000 a day, however many keys come.",
            ],
        ),
        (
            "--capacity 10M -p 0.001 --finished",
            &[
                assumed,
                "Keys on the list of `tamis build --allow` are never",
            ],
        ),
        // The size decides the rate, and the rate decides the number.
        ("--capacity 10M --size 16MiB", &[" 0.00235 235,000 "]),
        ("--capacity 10M -p 1e-9", &[" 1e-9 1 in 10 days "]),
        ("--capacity 10M -p 1e-12", &[" 1e-12 1 in 27 years "]),
        (
            "--capacity 10M -p 0.001 --within 24h",
            &[
                "\nwrong a day 35,0",
                "about a key that the window doesn't remember; other",
                "is at most 100,000 a day, however keys come.",
            ],
        ),
        (
            "--capacity 10M -p 1e-6 --redis",
            &[
                "Wrong answers: at most 100 a day, the rate of 1e-6 × 100,000,000 questions, if each",
            ],
        ),
        (
            "--capacity 10M -p 1e-9 --redis",
            &["Wrong answers: at most 1 in 10 days, the rate of 1e-9"],
        ),
        (
            "--capacity 10M -p 1e-12 --grow",
            &["The promised rate of 1e-12 is at most 1 in 27 years, however"],
        ),
        (
            "--kind bloom --bits 16 --hashes 3",
            &["\nwrong a day 16,500,000\n", assumed],
        ),
    ] {
        let ran = dir.ok(&format!("plan {line} --per-day 100M"));
        // Independent of column widths.
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = ran.text().lines().map(|line| words(line) + "\n").collect();
        for part in said {
            assert!(text.contains(part), "{line}: no {part:?} in\n{text}");
        }
        // The assumption takes one line, and occurs once.
        let lines = text.lines().filter(|line| line.starts_with("Wrong a"));
        assert_eq!(lines.count(), 1, "{line}: {text}");
        let without = dir.ok(&format!("plan {line}"));
        assert!(!without.text().to_lowercase().contains("wrong a"), "{line}");
    }
    assert!(dir.ok("plan --help").text().contains("--per-day 100M"));
}

#[test]
fn programs_get_the_number_of_each_row() {
    let dir = Sandbox::new();
    for line in [
        "--capacity 1M -p 1e-9",
        "--capacity 1M --size 1MB",
        "-p 0.01 --size 1MB --delete",
        "--capacity 1M --grow",
        "--capacity 1M --finished",
        "--last 1M",
        "--capacity 1M -p 1e-12 --redis",
        "--capacity 1M --kind bloom --hashes 7 --bits 10M",
    ] {
        let rows = |more: &str| -> Vec<Value> {
            let ran = dir.ok(&format!("plan {line} --json {more}"));
            serde_json::from_slice(&ran.out).unwrap()
        };
        let asked = rows("--per-day 2M");
        assert!(!asked.is_empty(), "{line}");
        for row in &asked {
            let ratio = row["rate"].as_f64().map(|rate| {
                let wrong = row["wrong_per_day"].as_f64().unwrap_or(0.0);
                wrong / (rate * 2e6)
            });
            let is_right = ratio.is_none_or(|ratio| (ratio - 1.0).abs() < 1e-9);
            assert!(is_right, "{line}: {row}");
            assert_eq!(ratio.is_none(), row["left_out"].is_string(), "{row}");
        }
        assert!(rows("").iter().all(|row| row["wrong_per_day"].is_null()));
    }
}

#[test]
fn a_load_is_a_number_of_questions() {
    let dir = Sandbox::new();
    for (line, expected) in [
        (
            "--capacity 10 --per-day 0",
            "at least 1 question a day, got 0",
        ),
        ("--capacity 10 --per-day -3", "got -3"),
        ("--capacity 10 --per-day 5X", "(units K, M, G, T), got '5X'"),
        ("--table --per-day 5", "cannot be used with"),
        ("--per-day 5", "say how many keys"),
    ] {
        let ran = dir.run(&format!("plan {line}"));
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains(expected), "{line}: {}", ran.err);
    }
}

/// A day's queries to a real filter.
#[test]
fn a_day_is_as_planned() {
    let dir = Sandbox::new();
    dir.write("known", keys(0..5_000));
    dir.write("strangers", keys(10_000..210_000));
    let planned: Vec<Value> = serde_json::from_slice(
        &dir.ok("plan --capacity 5000 -p 0.01 --per-day 200k --json")
            .out,
    )
    .unwrap();
    for kind in ["blocked", "bloom", "cuckoo", "fuse"] {
        let row = planned.iter().find(|row| row["kind"] == kind).unwrap();
        let expected = row["wrong_per_day"].as_f64().unwrap();
        if kind == "fuse" {
            dir.ok("build -q fuse.tamis known -p 0.01");
        } else {
            dir.ok(&format!(
                "create {kind}.tamis --capacity 5000 -p 0.01 --kind {kind}"
            ));
            dir.ok(&format!("add -q {kind}.tamis known"));
        }
        let wrong = dir.run(&format!("check -c {kind}.tamis strangers"));
        let wrong: f64 = wrong.text().trim().parse().unwrap();
        // A filter's own rate is a few per cent off, and chance adds to that.
        assert!(
            (0.85..1.15).contains(&(wrong / expected)),
            "{kind}: {wrong} instead of {expected}"
        );
    }
}
