//! `tamis dedup`: counts, key fields and existing filters.

use crate::common::{Sandbox, start};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn lines(count: u32) -> String {
    (0..count).map(|i| format!("line {i}\n")).collect()
}

/// Printed records are saved even if nothing more comes, so that killing the process then loses nothing.
#[cfg(unix)]
#[test]
fn a_silent_stream_is_saved() {
    let dir = Sandbox::new();
    let mut child = start(
        dir.command("dedup -q --save-every 0.1 --filter seen.tamis")
            .stdin(Stdio::piped())
            .stdout(Stdio::null()),
    );
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines(200_000).as_bytes()).unwrap();
    let saved = || {
        let filter = tamis::Open::new().load(dir.path("seen.tamis")).ok()?;
        Some(filter.keys().get())
    };
    // No more input comes, so a timer has to save.
    let begun = Instant::now();
    while saved().is_none_or(|keys| keys < 199_990) {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "{:?} saved",
            saved()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    assert!(saved().is_some_and(|keys| keys >= 199_990));
    dir.write("again", lines(200_000));
    assert_eq!(
        dir.ok("dedup -q --count --filter seen.tamis again").text(),
        "0\n"
    );
}

/// Repeated options must match: a filter has one rate, and room for so many keys.
#[test]
fn what_an_existing_filter_is_not_is_refused() {
    let dir = Sandbox::new();
    dir.write("in", "a\nb\n");
    dir.ok("create blocked --capacity 1000 -p 0.001");
    dir.ok("dedup --filter growing --capacity 100 -p 1e-4 in");
    dir.ok("dedup --filter window --within 1d --capacity 1000 -p 1e-4 in");
    for (line, said) in [
        (
            "--filter blocked -p 1e-6",
            "has a rate of 0.001, but you asked for 1e-6",
        ),
        (
            "--filter blocked --capacity 5000",
            "was made for 1,000 keys, but you expect 5,000",
        ),
        (
            "--filter growing -p 0.01",
            "has a rate of 1e-4, but you asked for 0.01",
        ),
        (
            "--filter window -p 0.01",
            "has a rate of 1e-4, but you asked for 0.01",
        ),
        (
            "--filter window --within 1d --capacity 2000",
            "but you expect 2,000",
        ),
    ] {
        let before: Vec<_> = ["blocked", "growing", "window"]
            .map(|name| dir.read(name))
            .into();
        let ran = dir.run(&format!("dedup {line} in"));
        assert_eq!((ran.code, ran.text()), (2, ""), "{line}: {}", ran.err);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
        let after: Vec<_> = ["blocked", "growing", "window"]
            .map(|name| dir.read(name))
            .into();
        assert!(before == after, "{line}");
    }
    for line in [
        "--filter blocked -p 0.001 --capacity 1000",
        "--filter blocked --capacity 10",
        "--filter blocked",
        // A growing filter takes any number of keys.
        "--filter growing -p 1e-4 --capacity 5000",
        "--filter window --within 1d --capacity 1000 -p 1e-4",
    ] {
        dir.ok(&format!("dedup {line} in"));
    }
}

#[test]
fn records_are_counted_as_uniq_does() {
    let dir = Sandbox::new();
    dir.write("in", "b\na\nb\nc\nb\na\n");
    for threads in [1, 4] {
        let run = |options: &str| dir.ok(&format!("dedup {options} -j {threads} in"));
        assert_eq!(run("--tally").text(), "      3 b\n      2 a\n      1 c\n");
        assert_eq!(run("-u").text(), "c\n");
        assert_eq!(run("--tally -u").text(), "      1 c\n");
        assert_eq!(run("--count -u").text(), "1\n");
        assert_eq!(run("--count").text(), "3\n");
        assert_eq!(run("-i -u").text(), "c\n");
    }
    // With a key, the first record stands for all.
    dir.write("rows.csv", "id,at\n1,x\n2,y\n1,\"z\nz\"\n");
    assert_eq!(
        dir.ok("dedup --tally -k csv:id rows.csv").text(),
        "id,at\n      2 1,x\n      1 2,y\n"
    );
    assert_eq!(dir.ok("dedup -u -k csv:id rows.csv").text(), "id,at\n2,y\n");
    assert_eq!(dir.ok("dedup -q -u in -o once.txt").text(), "");
    assert_eq!(dir.read("once.txt"), b"c\n");
    let ran = dir.ok("dedup -u --report report in");
    assert!(ran.err.contains("occurring once: 1 record"), "{}", ran.err);
    assert_eq!(dir.run("dedup -q -u --exit-code in in").code, 1);
    for line in [
        "--tally -v",
        "--tally --count",
        "-u -v",
        "--tally --filter f",
        "-u --last 5",
    ] {
        assert_eq!(dir.run(&format!("dedup {line} in")).code, 2, "{line}");
    }
    // Like `sort | uniq -c` on a larger input.
    let many: String = (0..20_000u64)
        .map(|i| format!("{}\n", i * i % 7919))
        .collect();
    let mut expected = std::collections::HashMap::new();
    many.lines()
        .for_each(|line| *expected.entry(line).or_insert(0) += 1);
    dir.write("many", &many);
    let counted = dir.ok("dedup --tally many");
    let counted: Vec<_> = counted
        .text()
        .lines()
        .map(|line| line.trim().split_once(' ').unwrap())
        .collect();
    assert_eq!(counted.len(), expected.len());
    for (count, line) in counted {
        assert_eq!(count.parse(), Ok(expected[line]), "{line}");
    }
}

#[test]
fn keys_are_fields_as_people_have_them() {
    let dir = Sandbox::new();
    dir.write(
        "log",
        "  10.0.0.1   GET /a 200\n10.0.0.1\tPUT\t/a 404\n10.0.0.2 GET /a\nshort\nshort\n",
    );
    let ran = dir.ok("dedup -k field:1,3 log");
    assert_eq!(
        ran.text(),
        "  10.0.0.1   GET /a 200\n10.0.0.2 GET /a\nshort\n"
    );
    assert!(ran.err.contains("without such a key"), "{}", ran.err);
    assert_eq!(dir.ok("dedup -k field:2 --count log").text(), "3\n");
    // A single field is the same key as a line with only that text.
    dir.write("get", "GET\n");
    dir.ok("build f.tamis get");
    assert_eq!(
        dir.ok("check -k field:2 f.tamis log").text(),
        "  10.0.0.1   GET /a 200\n10.0.0.2 GET /a\n"
    );
    for (field, said) in [
        ("0", "numbered from 1"),
        ("name", "columns have only numbers"),
    ] {
        let ran = dir.run(&format!("dedup -k field:{field} log"));
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    dir.write(
        "semi.csv",
        "\"last, first\";id\n\"a;\nb\";1\n\"c\";2\n\"a;\nb\";3\n",
    );
    let mut command = dir.command("dedup -q semi.csv -k");
    let semi = "\"last, first\";id\n\"a;\nb\";1\n\"c\";2\n";
    assert_eq!(
        dir.feed_to(
            {
                command.arg("csv(;):\"last, first\"");
                command
            },
            ""
        )
        .text(),
        semi
    );
    assert_eq!(dir.ok("dedup -q -k csv(;):1 semi.csv").text(), semi);
    assert_eq!(
        dir.ok("dedup -q -k csv(;):id semi.csv").out,
        dir.read("semi.csv")
    );
    let bar = dir.feed(
        "dedup -q --no-header -k csv(|):2",
        "1|a|x\n2|\"a\"|y\n3|b|z\n",
    );
    assert_eq!(bar.text(), "1|a|x\n3|b|z\n");
    // Times are columns of the same table.
    let timed = "at;id\n2024-01-01;x\n2024-01-01;x\n2024-03-01;x\n";
    let timed = dir.feed(
        "dedup -q -k csv(;):id --within 1d --capacity 10 --time csv:at",
        timed,
    );
    assert_eq!(
        timed.text(),
        "at;id\n2024-01-01;x\n2024-03-01;x\n",
        "{}",
        timed.err
    );
    for line in [
        "dedup -k csv(;) semi.csv",
        "dedup -k csv(ab):1 semi.csv",
        "dedup -k csv(\"):1 semi.csv",
    ] {
        assert_eq!(dir.run(line).code, 2, "{line}");
    }
    let commas = r#"{"a,b": 1, "c": 1}
{"a,b": 1, "c": 2}
"#;
    assert_eq!(
        dir.feed("dedup -q -k jsonl:\"/a,b\"", commas).text(),
        "{\"a,b\": 1, \"c\": 1}\n"
    );
}
