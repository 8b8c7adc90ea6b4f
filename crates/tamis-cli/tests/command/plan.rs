//! `tamis plan`: what it recommends, the numbers of each kind, and the number of wrong answers that a rate means.

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

#[test]
fn plan_recommends_by_need() {
    let dir = Sandbox::new();
    for (need, kind) in [
        ("", "blocked"),
        ("--delete", "cuckoo"),
        ("--grow", "growing"),
        ("--finished", "fuse"),
    ] {
        let ran = dir.ok(&format!("plan --capacity 10M -p 0.001 {need}"));
        assert!(
            ran.text().contains(&format!("Pick {kind}")),
            "{need}: {}",
            ran.text()
        );
    }
    assert_eq!(dir.run("plan --capacity 10M --delete --grow").code, 2);
}

#[test]
fn plan_tells_the_known_numbers() {
    let dir = Sandbox::new();
    let json =
        |line: &str| -> serde_json::Value { serde_json::from_slice(&dir.ok(line).out).unwrap() };
    let plans = json("plan --capacity 1M -p 0.01 --json");
    let bloom = plans
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["kind"] == "bloom")
        .unwrap();
    assert_eq!(bloom["hashes"], 7);
    assert_eq!(
        (bloom["bits_per_key"].as_f64().unwrap() * 1e6).round(),
        9_585_058.0
    );
    let text = dir.ok("plan --capacity 1e6 -p 1%").out;
    assert!(String::from_utf8(text).unwrap().contains("Pick blocked"));
    let table = dir.ok("plan --table");
    for cell in [
        "2.67e-5", "9.84e-6", "2.33e-6", "8.89e-7", "2.10e-7", "8.89e-5",
    ] {
        assert!(table.text().contains(cell), "{cell}");
    }
    // For few keys, the plan recommends no filter.
    assert!(dir.ok("plan --capacity 1000").text().contains("hash set"));
    for line in [
        "plan",
        "plan --capacity 0",
        "plan --capacity 10 -p 2",
        "plan --capacity 10k -p 0.1 --size 1kB",
        "plan -p 0.1",
        "plan --capacity 1e30",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(!ran.err.is_empty(), "{line}");
    }
}

#[test]
fn plan_shows_bits_and_hashes() {
    let dir = Sandbox::new();
    let numbers = |line: &str| -> serde_json::Value {
        serde_json::from_str(dir.ok(&format!("plan {line} --json")).text()).unwrap()
    };
    for line in [
        "--capacity 1M -p 0.01",
        "--capacity 5M --size 4MiB",
        "-p 1e-5 --size 3MB",
    ] {
        let printed = dir.ok(&format!("plan {line}"));
        let plans = numbers(line);
        let served = |plan: &&serde_json::Value| plan["left_out"].is_null();
        for plan in plans.as_array().unwrap().iter().filter(served) {
            let kind = plan["kind"].as_str().unwrap();
            let row = printed.text().lines().find(|row| row.starts_with(kind));
            let row = row.unwrap().replace(',', "");
            let bits = plan["bits"].as_u64().unwrap();
            let k = match plan["fingerprint_bits"].as_u64() {
                Some(bits) => format!("{bits}-bit"),
                None => plan["hashes"].to_string(),
            };
            assert!(row.contains(&format!("{bits} ")), "{row}");
            assert!(row.split_whitespace().any(|cell| cell == k), "{k}: {row}");
            assert!(bits <= plan["bytes"].as_u64().unwrap() * 8);
            let fingerprints = ["fuse", "ribbon", "cuckoo"].contains(&kind);
            assert_eq!(plan["fingerprint_bits"].is_number(), fingerprints, "{kind}");
        }
    }
    // The numbers match the filter that is then created.
    dir.ok("create f.tamis --capacity 1M -p 0.01 --kind bloom");
    let info: serde_json::Value =
        serde_json::from_str(dir.ok("info --json f.tamis").text()).unwrap();
    let plans = numbers("--capacity 1M -p 0.01");
    let bloom = plans.as_array().unwrap().iter();
    let bloom = { bloom }.find(|plan| plan["kind"] == "bloom").unwrap();
    assert_eq!(bloom["bits"], info["shape"]["bits"]);
    assert_eq!(bloom["hashes"], info["shape"]["hashes"]);
}

/// The lower the rate, the more a key costs the server.
#[test]
fn plan_tells_what_a_key_costs_in_redis() {
    let dir = Sandbox::new();
    let bytes = |rate: &str| {
        let printed = dir.ok(&format!("plan --capacity 1M -p {rate} --redis --json"));
        let rows: serde_json::Value = serde_json::from_str(printed.text()).unwrap();
        assert_eq!(rows[0]["kind"], "blocked");
        let sadd = rows[0]["server_time_in_sadd"].as_f64().unwrap();
        assert!(sadd < rows[0]["server_time_in_sadd_with_aof"].as_f64().unwrap());
        rows[0]["aof_bytes_per_new_key"].as_f64().unwrap()
    };
    assert_eq!((bytes("0.01"), bytes("1e-6")), (159.0, 309.0));
    assert!(
        dir.ok("plan --capacity 1M --redis")
            .text()
            .contains("AOF bytes")
    );
    // Strings can't hold a filter of so low a rate, and the plan says so; a module can.
    let low = dir.ok("plan --capacity 1M -p 1e-12 --redis");
    let row = |way: &str| low.text().lines().find(|line| line.starts_with(way));
    assert!(row("strings").unwrap().contains("at least 1e-9"));
    assert!(row("module").unwrap().contains("7.94 MB"));
    assert_eq!(dir.run("plan --capacity 0 --redis").code, 2);
}

/// If a kind can't have the numbers, the plan says why, for people and for programs.
#[test]
fn plan_says_why_a_kind_is_missing() {
    let dir = Sandbox::new();
    let line = "plan --capacity 1M -p 1e-15";
    let text = dir.ok(line);
    let rows: serde_json::Value =
        serde_json::from_str(dir.ok(&format!("{line} --json")).text()).unwrap();
    let rows = rows.as_array().unwrap();
    for (kind, why) in [
        ("fuse", "at least 2^-32"),
        ("ribbon", "at least 2^-32"),
        ("cuckoo", "at least 1e-9"),
    ] {
        let row = text.text().lines().find(|row| row.starts_with(kind));
        assert!(row.unwrap().contains(why), "{}", text.text());
        let row = rows.iter().find(|row| row["kind"] == kind).unwrap();
        assert!(row["left_out"].as_str().unwrap().contains(why), "{row}");
    }
    let served = |row: &&serde_json::Value| row["left_out"].is_null();
    assert_eq!((rows.len(), rows.iter().filter(served).count()), (7, 4));
    // With all three numbers the size is a limit.
    let text = dir.ok("plan --capacity 1M -p 1% --size 1MB");
    assert!(
        text.text()
            .contains("blocked   takes 1.24 MB at this rate, more than 1.00 MB")
    );
    assert!(
        text.text().contains("Pick fuse: of finished lists only"),
        "{}",
        text.text()
    );
    let none = dir.run("plan --capacity 1M -p 1% --size 100kB");
    assert_eq!(none.code, 2);
    assert!(
        none.err
            .contains("no kind can do it: blocked takes 1.24 MB"),
        "{}",
        none.err
    );
}
