//! Commands on windows, and what they refuse.

mod refusals;

use crate::common::Sandbox;
use crate::random::Random;
use crate::window_events;
use serde_json::Value;
use std::fmt::Write as _;

#[test]
fn quiet_is_silence_and_renew_a_window() {
    let dir = Sandbox::new();
    dir.write("keys.txt", "a\nb\na\n");
    for line in [
        "dedup --quiet keys.txt",
        "dedup keys.txt --quiet",
        "dedup -q keys.txt",
    ] {
        let ran = dir.ok(line);
        assert_eq!((ran.text(), ran.err.as_str()), ("a\nb\n", ""), "{line}");
    }
    let ran = dir.ok("dedup --within 1h --renew keys.txt --filter seen.tamis");
    assert_eq!(ran.text(), "a\nb\n");
    assert!(ran.err.contains("2 unique"), "{}", ran.err);
    assert!(
        dir.ok("info seen.tamis")
            .text()
            .contains("1h since last seen, in 8 generations")
    );
    assert_eq!(dir.ok("dedup -q --within 1h --renew keys.txt").err, "");
    dir.write("1h", "c\n");
    assert_eq!(dir.ok("dedup --quiet ./1h").text(), "c\n");
    assert_eq!(dir.ok("dedup --quiet -- 1h").text(), "c\n");
}

/// The keys that several threads add; a second run continues with the first one's window.
#[test]
fn the_events_that_every_host_knows() {
    for (meaning, option) in [("within", "--within"), ("quiet", "--renew --within")] {
        let dir = Sandbox::new();
        let mut events = window_events::events(meaning);
        events.retain(|event| !event.is_asked);
        let row = |event: &window_events::Event| {
            let milliseconds = event.at.micros() / 1_000;
            let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
            format!("{},{seconds}.{rest:03}\n", event.key)
        };
        let dedup = format!(
            "dedup -q -j 3 {option} 1h --capacity 1k -p 1e-9 --filter seen.tamis -k csv:1 --no-header --time csv:2"
        );
        for events in events.chunks(events.len() / 2) {
            let new = events.iter().filter(|event| event.answer);
            let rows: String = events.iter().map(row).collect();
            let ran = dir.feed(&dedup, &rows);
            assert_eq!(ran.text(), new.map(row).collect::<String>(), "{}", ran.err);
        }
    }
}

/// However many keys come, and in whatever order, no more are dropped than the rate says.
#[test]
fn a_window_grows_with_its_keys() {
    let dir = Sandbox::new();
    let keys: String = (0..200_000).map(|i| format!("{i}\n")).collect();
    dir.write("keys.txt", keys);
    for (line, most) in [
        // All at once, though an eighth of them was expected per generation.
        ("dedup -q --within 24h --capacity 200k --count keys.txt", 2),
        // A thousand times as many as expected, at a visible rate.
        (
            "dedup -q --within 24h --capacity 200 -p 0.01 --count keys.txt",
            2_100,
        ),
        (
            "dedup -q --within 24h --renew --capacity 1 -p 0.001 --count keys.txt",
            250,
        ),
        (
            "dedup -q --within 1h --capacity 200 -p 1e-9 --generations 62 --count keys.txt",
            0,
        ),
    ] {
        let printed: u64 = dir.ok(line).text().trim().parse().unwrap();
        assert!(200_000 - printed <= most, "{line}: {printed}");
    }
    // Half of a day's records in an eighth of the day.
    let rows: String = (0..100_000i64)
        .map(|i| match i % 2 {
            0 => (i, i * 86_400 / 100_000),
            _ => (i, 64_800 + i * 10_800 / 100_000),
        })
        .map(|(i, second)| format!("{i},{}\n", 1_700_006_400 + second))
        .collect();
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_by_key(|row| row.split(',').nth(1).unwrap().to_owned());
    dir.write("rows.csv", rows.join("\n"));
    let line = "dedup -q --within 24h --capacity 100k -p 0.001 -k csv:1 --no-header --time csv:2 --count rows.csv";
    let printed: u64 = dir.ok(line).text().trim().parse().unwrap();
    assert!(100_000 - printed <= 130, "{printed}");
}

#[test]
fn memory_bounds_a_window() {
    let dir = Sandbox::new();
    let keys: String = (0..100_000).map(|i| format!("{i}\n")).collect();
    dir.write("keys.txt", keys);
    let bound = "dedup --within 1h --capacity 10k -p 0.001 --max-memory 100k keys.txt";
    let ran = dir.run(&format!("{bound} --strict --filter strict.tamis"));
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("more than --max-memory"), "{}", ran.err);
    let ran = dir.ok(bound);
    assert!(ran.err.contains("more than --max-memory"), "{}", ran.err);
    let dropped = 100_000 - ran.text().lines().count();
    let expected = ran.err.split("by chance: ").nth(1).unwrap();
    let expected: f64 = expected
        .split(' ')
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap();
    let ratio = expected / dropped as f64;
    assert!(
        (0.8..1.25).contains(&ratio),
        "{dropped} dropped: {}",
        ran.err
    );
}

/// A window may have forgotten what it knew long before its latest key: then "no" isn't certain, and the answer says
/// so.
#[test]
fn questions_about_the_past_are_answered_with_a_doubt() {
    let dir = Sandbox::new();
    // 800 s after its key was seen, which is inside the window, but 1,300 s later it was forgotten.
    dir.write("rows.csv", "a,1600001200\nb,1600002500\n");
    dir.ok("create seen.tamis --within 1000s --capacity 1k -p 1e-9");
    dir.ok("add -k csv:1 --no-header --time csv:2 seen.tamis rows.csv");
    dir.write("ask.csv", "a,1600002000\nb,1600002500\nb,1600002400\n");
    let ran = dir.ok("check -k csv:1 --no-header --time csv:2 seen.tamis ask.csv");
    let said = "before the latest key: 1 record; ";
    assert!(ran.err.contains(said), "{}", ran.err);
    dir.write("ask", "a\n");
    let ran = dir.run("check --at 1600002000 seen.tamis ask");
    assert_eq!((ran.code, ran.text()), (1, ""));
    assert!(ran.err.contains("\"no\" is not certain"), "{}", ran.err);
    let ran = dir.run("check --at 1600002400 seen.tamis ask");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
}

/// The first readable time decides when a window begins, however the pipe delivers.
#[test]
fn records_before_the_first_time_wait_for_it() {
    let dir = Sandbox::new();
    let rows = "a,\na,\nb,2099-01-01\nc,1600000000\na,1600000001\nb,1600000002\nc,1600000003\n";
    dir.write("rows.csv", rows);
    let line = "dedup --within 24h -k csv:1 --no-header --time csv:2 --filter seen.tamis rows.csv";
    let ran = dir.ok(line);
    assert_eq!(
        ran.text(),
        "a,\nb,2099-01-01\nc,1600000000\n",
        "{}",
        ran.err
    );
    assert!(ran.err.contains("from the future: 1 record"), "{}", ran.err);
    assert!(
        ran.err
            .contains("without a time that can be read: 2 records"),
        "{}",
        ran.err
    );
    // The filter isn't poisoned, either.
    let info = dir.ok("info seen.tamis");
    assert!(info.text().contains("2020-09-13"), "{}", info.text());
}

#[test]
fn a_window_is_made_filled_asked_and_merged() {
    let dir = Sandbox::new();
    let made = dir.ok("create day.tamis --within 24h --capacity 1000 -p 0.001 --generations 12");
    assert!(
        made.err
            .contains("window for 1,000 keys at a rate of 0.001"),
        "{}",
        made.err
    );
    dir.ok("create week.tamis --within 7d --renew --capacity 10");
    dir.ok("create keys.tamis --kind window --capacity 500");
    assert!(
        dir.ok("info keys.tamis")
            .text()
            .contains("the last 500 keys, in 8 generations")
            || dir
                .ok("info keys.tamis")
                .text()
                .contains("the last 504 keys, in 8 generations")
    );
    dir.write(
        "a.jsonl",
        "{\"id\":\"a\",\"t\":1700000000}\n{\"id\":\"b\",\"t\":1700080000000}\n",
    );
    let ran = dir.ok("add -k jsonl:/id --time jsonl:/t day.tamis a.jsonl");
    assert!(ran.err.contains("2 keys read, 2 new"), "{}", ran.err);
    dir.write("old.jsonl", "{\"id\":\"z\",\"t\":1500000000}\n");
    let ran = dir.ok("add -k jsonl:/id --time jsonl:/t day.tamis old.jsonl");
    assert!(ran.err.contains("and so not added: 1 key"), "{}", ran.err);
    dir.write("ask.txt", "a\nb\nz\n");
    for (at, found) in [
        ("2023-11-14T22:13:20Z", "a\nb\n"),
        ("2023-11-14T21:59:59Z", ""),
        ("1700086400", "a\nb\n"),
        ("latest", "a\nb\n"),
        ("1700100000", "b\n"),
        ("1700200000", ""),
    ] {
        let ran = dir.run(&format!("check --at {at} day.tamis ask.txt"));
        assert_eq!(
            (ran.code, ran.text()),
            (i32::from(found.is_empty()), found),
            "{at}"
        );
    }
    let now = dir.run("check day.tamis ask.txt");
    assert_eq!((now.code, now.text()), (1, ""));
    assert!(
        now.err.contains("--at latest asks as of then"),
        "{}",
        now.err
    );
    let info: Value = serde_json::from_slice(&dir.ok("info --json day.tamis").out).unwrap();
    let window = &info["window"];
    assert_eq!(window["renewal"], "within");
    assert_eq!(
        (&window["span"], &window["band"]),
        (&86_400.0.into(), &7_200.0.into())
    );
    assert_eq!(window["generation_count"], 12);
    assert_eq!(window["latest"], "2023-11-15T20:26:40Z");
    let generations = window["generations"].as_array().unwrap();
    assert_eq!(generations[0]["keys"], 1);
    assert_eq!(generations[0]["start"], "2023-11-15T20:00:00Z");
    let text = dir.ok("info day.tamis");
    assert!(
        text.text().contains("24h")
            || text
                .text()
                .contains("1d since first seen, in 12 generations")
    );
    assert!(
        text.text()
            .contains("generation     from 2023-11-15T20:00:00Z: 1 key"),
        "{}",
        text.text()
    );
    // Windows of the same shape can be merged, and the union is as old as its parts.
    dir.ok("create other.tamis --within 24h --capacity 1000 -p 0.001 --generations 12");
    dir.write("c.jsonl", "{\"id\":\"c\",\"t\":1700080000}\n");
    dir.ok("add -q -k jsonl:/id --time jsonl:/t other.tamis c.jsonl");
    dir.ok("merge --union -o all.tamis day.tamis other.tamis");
    dir.write("abc.txt", "a\nb\nc\n");
    assert_eq!(
        dir.ok("check --at latest all.tamis abc.txt").text(),
        "a\nb\nc\n"
    );
    assert_eq!(
        dir.ok("check --at 1700100000 all.tamis abc.txt").text(),
        "b\nc\n"
    );
    assert!(dir.ok("verify all.tamis").text().contains("valid"));
    let explained = dir.ok("explain --at latest all.tamis a");
    assert!(
        explained.text().contains("holds it"),
        "{}",
        explained.text()
    );
    // Without a time, keys are added as of now.
    dir.write("now.txt", "n\n");
    dir.ok("add week.tamis now.txt");
    assert_eq!(dir.ok("check week.tamis now.txt").text(), "n\n");
    dir.ok("add --shared week.tamis abc.txt");
    assert_eq!(dir.ok("check week.tamis abc.txt").text(), "a\nb\nc\n");
}

#[test]
fn a_plan_says_what_a_window_takes() {
    let dir = Sandbox::new();
    let plan = dir.ok("plan --within 24h --capacity 10M -p 0.01");
    for part in [
        "remembers      1d since first seen, in 8 generations",
        "forgets        at most 3h later",
        "10,000,000",
    ] {
        assert!(plan.text().contains(part), "{part}: {}", plan.text());
    }
    let plan = dir.ok("plan --kind window --capacity 10M -p 1e-4 --json");
    let plan: Value = serde_json::from_slice(&plan.out).unwrap();
    assert_eq!(
        (&plan[0]["by"], &plan[0]["span"]),
        (&"keys".into(), &10_000_000.into())
    );
    let bytes = plan[0]["bytes"].as_u64().unwrap();
    dir.ok("create seen.tamis --last 10M -p 1e-4");
    let info: Value = serde_json::from_slice(&dir.ok("info --json seen.tamis").out).unwrap();
    assert_eq!(info["bytes"], bytes);
}

#[test]
fn check_and_explain_agree_at_any_time() {
    let dir = Sandbox::new();
    let mut random = Random::new(61, 0);
    let start: u64 = 1_700_000_000;
    let names: Vec<String> = (0..60).map(|key| format!("key-{key}")).collect();
    dir.write("keys.txt", names.join("\n") + "\n");
    for (number, options) in [
        "--within 80s --capacity 10",
        "--within 80s --capacity 1k",
        "--within 80s --renew --capacity 10 --generations 3",
        "--within 80s --renew --capacity 1k",
        "--last 12",
        "--last 500",
    ]
    .into_iter()
    .enumerate()
    {
        let window = format!("{number}.tamis");
        dir.ok(&format!("create {window} {options}"));
        let mut rows = String::from("id,at\n");
        for event in 0..200 {
            let (key, late) = (random.below(50), random.below(30));
            writeln!(rows, "key-{key},{}", start + event - late).unwrap();
        }
        dir.write("rows.csv", &rows);
        let time = if options.starts_with("--last") {
            "now"
        } else {
            "csv:at"
        };
        dir.ok(&format!("add -q -k csv:id --time {time} {window} rows.csv"));
        let mut moments = vec![
            "latest".to_owned(),
            "now".to_owned(),
            "1000000000".to_owned(),
        ];
        moments.extend([0, 50, 110, 199, 250, 400].map(|after| (start - 40 + after).to_string()));
        for at in moments {
            let checked = dir.run(&format!("check --at {at} {window} keys.txt"));
            let line = format!("explain --json --at {at} {window} {}", names.join(" "));
            let explained = dir.run(&line);
            assert_eq!(checked.code, explained.code, "{options} at {at}");
            let lines = explained
                .text()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            let maybe = lines.filter(|line: &Value| line["answer"] == "maybe");
            let maybe: Vec<_> = maybe
                .map(|line| line["key"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(
                checked.text().lines().collect::<Vec<_>>(),
                maybe,
                "{options} at {at}"
            );
        }
        // Without a time, both query as of now.
        let (checked, explained) = (
            dir.run(&format!("check {window} keys.txt")),
            dir.run(&format!("explain {window} {}", names.join(" "))),
        );
        assert_eq!(checked.code, explained.code, "{options}");
        assert_eq!(checked.err, explained.err, "{options}");
    }
}

#[test]
fn records_are_asked_at_their_own_times() {
    let dir = Sandbox::new();
    dir.ok("create day.tamis --within 1d --capacity 100");
    dir.write("seen.csv", "id,at\na,2024-05-01\nb,2024-05-01T22:00:00Z\n");
    dir.ok("add -q -k csv:id --time csv:at day.tamis seen.csv");
    let asked = [
        ("a,2024-05-01T20:00:00Z", true),
        ("a,[02/May/2024:16:00:00 +0000]", false),
        ("b,2024-05-02T13:00:00Z", true),
        ("b,2024-04-30", false),
        ("b,2024-05-04", false),
        // As of the latest key.
        ("b,", true),
        ("b,2999-01-01", true),
        ("c,2024-05-02T13:00:00Z", false),
    ];
    let rows = |wanted: &dyn Fn(bool) -> bool| {
        let rows = asked.iter().filter(|(_, found)| wanted(*found));
        rows.fold(String::from("id,at\n"), |rows, (row, _)| rows + row + "\n")
    };
    dir.write("asked.csv", rows(&|_| true));
    let ran = dir.ok("check -k csv:id --time csv:at day.tamis asked.csv");
    assert_eq!(ran.text(), rows(&|found| found));
    for part in [
        "without a time that can be read: 1 record",
        "from the future: 1 record",
        "before the latest key: 1 record",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.err.contains("by now"), "{}", ran.err);
    dir.write("b.csv", "id,at\nb,x\n");
    let ran = dir.ok("check -k csv:id --time csv:at --allow b.csv -v -c day.tamis asked.csv");
    assert_eq!(ran.text(), "7\n");
}

#[test]
fn how_many_of_the_last_keys_is_said() {
    let dir = Sandbox::new();
    for (options, said, forgets) in [
        ("--last 1", "the last 1 key ", "exactly then"),
        ("--last 8", "the last 8 keys ", "exactly then"),
        (
            "--last 33",
            "the last 33 to 39 keys ",
            "at most 6 keys later",
        ),
        (
            "--last 10 --generations 1",
            "the last 10 to 19 keys ",
            "at most 9 keys later",
        ),
        (
            "--within 1h --capacity 33",
            "33 keys ",
            "at most 7m30s later",
        ),
    ] {
        let made = dir.ok(&format!("create last.tamis --force {options}"));
        assert!(
            made.err.contains(&format!("window for {said}")),
            "{}",
            made.err
        );
        let info = dir.ok("info last.tamis");
        assert!(info.text().contains(forgets), "{options}: {}", info.text());
    }
}
