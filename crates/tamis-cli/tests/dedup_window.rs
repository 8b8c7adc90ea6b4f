//! Windows through the command: `dedup --within`, `--quiet` and `--last` against an exact oracle, and what else
//! knows them.

#[allow(dead_code)]
mod common;

use common::{Ran, Sandbox, start};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use tamis::Moment;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
/// 2023-11-14, so that no event is in the future.
const START: i64 = 1_700_000_000 * SECOND;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A key, and when it was seen, in microseconds since 1970.
type Event = (u32, i64);

/// What the times of a stream are like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Times {
    InOrder,
    /// Many at once, then nothing, sometimes for longer than the window.
    Bursts,
    /// At the edges of generations and windows.
    Edges,
    /// Late by up to a generation.
    Shuffled,
    /// Back and forth by several windows.
    Jumps,
}

fn events(
    times: Times,
    count: usize,
    span: i64,
    generations: i64,
    random: &mut Random,
) -> Vec<Event> {
    let step = (span as u64).div_ceil(generations as u64) as i64;
    let mut now = START;
    let mean = (span * 20 / count as i64).max(1) as u64;
    let event = |number| {
        let key = random.below(count as u64 / 10) as u32;
        now += random.below(2 * mean) as i64;
        let at = match times {
            Times::InOrder => now,
            Times::Bursts => {
                if number % 5_000 == 0 {
                    now += random.below(2 * span as u64) as i64;
                }
                now - now % (step / 3)
            }
            Times::Edges => {
                // A moment on the grid of generations, or just next to it.
                now - now % step + random.below(3) as i64 - 1
            }
            Times::Shuffled => now - random.below(step as u64) as i64,
            Times::Jumps => {
                if random.below(3_000) == 0 {
                    now += random.below(6 * span as u64) as i64 - 3 * span;
                }
                now
            }
        };
        (key, at)
    };
    (0..count).map(event).collect()
}

/// The time as one of the ways to write it.
fn written(at: i64, way: u64) -> String {
    let moment = Moment::from_micros(at).to_string();
    match way % 5 {
        0 => format!("\"{moment}\""),
        1 => format!("\"{}\"", moment.replace('T', " ").trim_end_matches('Z')),
        2 => {
            let elsewhere = Moment::from_micros(at + 2 * HOUR).to_string();
            format!("\"{}+02:00\"", elsewhere.trim_end_matches('Z'))
        }
        3 => format!("{}.{:06}", at / SECOND, at % SECOND),
        _ => at.to_string(),
    }
}

fn lines(events: &[Event], first: usize) -> String {
    let mut text = String::new();
    for (number, (key, at)) in events.iter().enumerate() {
        let time = written(*at, number as u64);
        let number = first + number;
        let _ = writeln!(text, r#"{{"number":{number},"id":"k{key}","ts":{time}}}"#);
    }
    text
}

/// The numbers of the printed records.
fn printed(ran: &Ran) -> Vec<usize> {
    let number = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["number"].as_u64().unwrap() as usize
    };
    ran.text().lines().map(number).collect()
}

/// What was seen of a window, exactly.
struct Oracle {
    span: i64,
    step: i64,
    generations: i64,
    quiet: bool,
    latest: i64,
    /// When each key was told new, or seen if every sighting counts.
    seen: HashMap<u32, VecDeque<i64>>,
    too_old: u64,
    late: u64,
    /// Records that were wrongly dropped.
    wrong: u64,
    /// Records that had to be printed.
    new: u64,
}

impl Oracle {
    fn new(span: i64, generations: i64, quiet: bool) -> Self {
        let step = (span as u64).div_ceil(generations as u64) as i64;
        Self {
            span,
            step,
            generations,
            quiet,
            latest: i64::MIN,
            seen: HashMap::new(),
            too_old: 0,
            late: 0,
            wrong: 0,
            new: 0,
        }
    }

    /// Compares what was done with a record with what may be done.
    fn judge(&mut self, (key, at): Event, is_printed: bool) {
        self.latest = self.latest.max(at);
        let age = self.latest.div_euclid(self.step) - at.div_euclid(self.step);
        if age > self.generations {
            self.too_old += 1;
            assert!(is_printed, "k{key} at {at} is too old, and was dropped");
            return;
        }
        let is_late = age > 1;
        self.late += u64::from(is_late);
        let seen = self.seen.entry(key).or_default();
        // Times that no question reaches any more.
        let reach = self.latest - self.span - (self.generations + 3) * self.step;
        seen.retain(|t| *t >= reach);
        let is_inside = |t: &i64| at - t <= self.span;
        let may_be = |t: &i64| at - t <= self.span + self.step;
        if is_printed {
            let before = seen.iter().find(|t| is_inside(t));
            if let Some(before) = before.filter(|_| !is_late) {
                panic!(
                    "k{key} at {at} was printed again, {} after {before}",
                    at - before
                );
            }
            self.new += 1;
            seen.push_back(at);
        } else {
            if !seen.iter().any(may_be) {
                self.new += 1;
                self.wrong += 1;
                // From now on it is in the window for all we know.
            }
            if self.quiet {
                seen.push_back(at);
            }
        }
    }

    /// Whether as many were dropped wrongly as the rate allows.
    fn check_rate(&self, rate: f64) {
        let expected = self.new as f64 * rate;
        let most = 1.05 * expected + 5.0 * expected.sqrt() + 3.0;
        assert!(
            self.wrong as f64 <= most,
            "{} wrongly dropped, expected {expected}",
            self.wrong
        );
        assert!(self.new > 0);
    }
}

fn json(dir: &Sandbox, name: &str) -> Value {
    serde_json::from_slice(&dir.read(name)).unwrap()
}

const EVENTS: usize = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// A stream in several runs, each with the filter that the last one left.
fn stream(times: Times, quiet: bool, generations: i64, runs: usize, seed: u64) {
    let span = 24 * HOUR;
    let mut random = Random(seed);
    let events = events(times, EVENTS / 5, span, generations, &mut random);
    let dir = Sandbox::new();
    let mut oracle = Oracle::new(span, generations, quiet);
    let option = if quiet { "--quiet" } else { "--within" };
    let (mut too_old, mut late) = (0, 0);
    let part = events.len().div_ceil(runs);
    for (run, part) in events.chunks(part).enumerate() {
        let first = run * events.len().div_ceil(runs);
        dir.write("events.jsonl", lines(part, first));
        let threads = 1 + run % 3;
        let ran = dir.ok(&format!(
            "dedup {option} 24h --generations {generations} -n {EVENTS} -p 1e-4 --jsonl /id --time jsonl:/ts \
             --filter seen.tamis --json-report report.json -j {threads} events.jsonl"
        ));
        let mut numbers = printed(&ran).into_iter().peekable();
        for (number, event) in (first..).zip(part) {
            oracle.judge(*event, numbers.next_if_eq(&number).is_some());
        }
        assert_eq!(numbers.next(), None, "out of order");
        let report = json(&dir, "report.json");
        too_old += report["too_old"].as_u64().unwrap();
        late += report["late"].as_u64().unwrap();
        assert_eq!(report["without_time"], 0);
        assert_eq!(report["in_the_future"], 0);
    }
    oracle.check_rate(1e-4);
    assert_eq!((too_old, late), (oracle.too_old, oracle.late));
    assert_eq!(
        too_old > 0,
        times == Times::Jumps,
        "{times:?}: {too_old} too old"
    );
}

#[test]
fn records_are_new_again_after_the_window_and_never_within_it() {
    stream(Times::InOrder, false, 8, 1, 1);
    stream(Times::InOrder, true, 8, 3, 2);
}

#[test]
fn bursts_and_pauses() {
    stream(Times::Bursts, false, 8, 2, 3);
    stream(Times::Bursts, true, 5, 1, 4);
}

#[test]
fn times_at_the_edges_of_generations() {
    stream(Times::Edges, false, 8, 2, 5);
    stream(Times::Edges, true, 1, 2, 6);
}

#[test]
fn records_out_of_order() {
    stream(Times::Shuffled, false, 8, 3, 7);
    stream(Times::Shuffled, true, 62, 1, 8);
}

#[test]
fn clocks_that_jump() {
    stream(Times::Jumps, false, 8, 4, 9);
    stream(Times::Jumps, true, 12, 2, 10);
}

#[test]
fn the_last_keys() {
    let (last, generations) = (1_000_u64, 8);
    let mut random = Random(11);
    let dir = Sandbox::new();
    // When each key was told new, in keys told new before it.
    let mut told: HashMap<u64, u64> = HashMap::new();
    let (mut count, mut wrong) = (0, 0);
    for run in 0..2 {
        let keys: Vec<u64> = (0..EVENTS / 4).map(|_| random.below(4_000)).collect();
        let text: String = keys
            .iter()
            .enumerate()
            .map(|(number, key)| format!("{{\"number\":{number},\"id\":{key}}}\n"))
            .collect();
        let line = format!("dedup --last {last} --jsonl /id -p 1e-4 --filter seen.tamis");
        let ran = dir.feed(&line, text);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let mut numbers = printed(&ran).into_iter().peekable();
        for (number, key) in keys.into_iter().enumerate() {
            let since = told.get(&key).map(|at| count - at);
            if numbers.next_if_eq(&number).is_some() {
                assert!(
                    since.is_none_or(|n| n > last),
                    "run {run}: {since:?} since {key}"
                );
                told.insert(key, count);
                count += 1;
            } else if since.is_none_or(|n| n > last + last.div_ceil(generations) + 1) {
                wrong += 1;
            }
        }
    }
    let expected = count as f64 * 1e-4;
    assert!(
        f64::from(wrong) <= 1.05 * expected + 5.0 * expected.sqrt() + 3.0,
        "{wrong}"
    );
    assert!(count > 4_000, "{count}");
}

#[test]
fn the_output_does_not_depend_on_threads_or_where_it_is_kept() {
    let dir = Sandbox::new();
    let events = events(Times::Jumps, 20_000, 24 * HOUR, 8, &mut Random(12));
    dir.write("events.jsonl", lines(&events, 0));
    let line = "dedup --within 24h --jsonl /id --time jsonl:/ts -q events.jsonl";
    let one = dir.ok(&format!("{line} -j 1"));
    assert!(one.text().lines().count() > 1_000);
    assert_eq!(one.out, dir.ok(&format!("{line} -j 4")).out);
    assert_eq!(one.out, dir.ok(&format!("{line} --filter seen.tamis")).out);
    // The duplicates are the others.
    let others = dir.ok(&format!("{line} -d"));
    let all = one.text().lines().count() + others.text().lines().count();
    assert_eq!(all, events.len());
}

#[test]
fn times_that_are_odd_are_counted_and_nothing_is_lost() {
    let dir = Sandbox::new();
    let future = Moment::now() + std::time::Duration::from_secs(30 * 86_400);
    let csv = format!(
        "id,at\n\
         first,\n\
         a,2024-01-01T00:00:00Z\n\
         b,soon\n\
         c,2099-01-01\n\
         d,{future}\n\
         a,2024-01-01T23:59:59Z\n\
         e,1960-01-01\n\
         e,1960-01-01\n\
         short\n\
         c,2024-01-02\n\
         a,2024-01-03T03:00:01\n"
    );
    dir.write("events.csv", csv);
    let ran = dir.ok(
        "dedup --within 1d --csv id --time csv:at --json-report report.json events.csv --filter seen.tamis",
    );
    let expected = "id,at\nfirst,\na,2024-01-01T00:00:00Z\nb,soon\nc,2099-01-01\nd,FUTURE\ne,1960-01-01\n\
                    e,1960-01-01\nshort\na,2024-01-03T03:00:01\n";
    assert_eq!(ran.text(), expected.replace("FUTURE", &future.to_string()));
    let report = json(&dir, "report.json");
    assert_eq!(report["without_time"], 3, "{report}");
    assert_eq!(report["in_the_future"], 2, "{report}");
    assert_eq!(report["too_old"], 2, "{report}");
    for part in [
        "without a time that can be read: 3 records",
        "from the future: 2 records",
        "older than the window of the latest record, and so taken for unique: 2",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    // The far future has not moved the window.
    let info = dir.ok("info --json seen.tamis");
    let info: Value = serde_json::from_slice(&info.out).unwrap();
    assert_eq!(info["window"]["latest"], "2024-01-03T03:00:01Z");
}

#[test]
fn a_clock_that_is_behind_is_said_and_loses_nothing() {
    let dir = Sandbox::new();
    // Half an hour ahead is within a generation.
    let ahead = Moment::now() + std::time::Duration::from_secs(1_800);
    dir.write("first.jsonl", format!("{{\"id\":1,\"ts\":\"{ahead}\"}}\n"));
    dir.ok(
        "dedup -q --within 8h -n 10 --jsonl /id --time jsonl:/ts --filter seen.tamis first.jsonl",
    );
    let ran = dir.feed(
        "dedup --within 8h --jsonl /id --filter seen.tamis",
        "{\"id\":1}\n{\"id\":2}\n",
    );
    assert_eq!(ran.text(), "{\"id\":2}\n");
    assert!(ran.err.contains("the clock is 29 min"), "{}", ran.err);
    let info = dir.ok("info --json seen.tamis");
    let info: Value = serde_json::from_slice(&info.out).unwrap();
    assert_eq!(info["window"]["latest"], ahead.to_string());
}

#[test]
fn a_killed_run_prints_again_but_loses_nothing() {
    let dir = Sandbox::new();
    let all: Vec<String> = (0..40_000)
        .map(|i| format!("{{\"id\":{i},\"ts\":{}}}\n", 1_700_000_000 + i))
        .collect();
    let line = "dedup -q --within 24h -n 100k --jsonl /id --time jsonl:/ts --filter seen.tamis --save-every 0.01";
    let mut command = dir.command(line);
    let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let half = all[..20_000].concat();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(half.as_bytes());
        // Held open: the run waits for more when it is killed.
        stdin
    });
    let mut first = vec![0; 100_000];
    stdout.read_exact(&mut first).unwrap();
    child.kill().unwrap();
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    child.wait().unwrap();
    drop(writer.join().unwrap());
    first.extend(rest);
    let second = dir.feed(line, all.concat());
    assert_eq!(second.code, 0, "{}", second.err);
    let first = String::from_utf8(first).unwrap();
    let seen: std::collections::HashSet<&str> =
        first.lines().chain(second.text().lines()).collect();
    for record in &all {
        assert!(seen.contains(record.trim_end()), "lost {record}");
    }
}

#[test]
fn quiet_is_a_window_with_a_time_and_silence_without() {
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
    let ran = dir.ok("dedup --quiet 1h keys.txt --filter seen.tamis");
    assert_eq!(ran.text(), "a\nb\n");
    assert!(ran.err.contains("2 unique"), "{}", ran.err);
    assert!(
        dir.ok("info seen.tamis")
            .text()
            .contains("1h since last seen, in 8 generations")
    );
    assert_eq!(dir.ok("dedup -q --quiet 1h keys.txt").err, "");
    assert_eq!(dir.ok("dedup --quiet=1h -q keys.txt").err, "");
    dir.write("1h", "c\n");
    assert_eq!(dir.ok("dedup --quiet ./1h").text(), "c\n");
    assert_eq!(dir.ok("dedup --quiet -- 1h").text(), "c\n");
}

#[test]
fn bad_windows_are_refused() {
    let dir = Sandbox::new();
    dir.write("keys.txt", "a\nb\n");
    dir.ok("create plain.tamis -n 100");
    dir.ok("create day.tamis --within 24h -n 100");
    dir.ok("create keys.tamis --last 100");
    for (line, why) in [
        ("dedup --within 0 keys.txt", "a millisecond or more"),
        ("dedup --within 0s keys.txt", "a millisecond or more"),
        ("dedup --quiet 0s keys.txt", "a millisecond or more"),
        ("dedup --within -1h keys.txt", "unexpected argument"),
        ("dedup --within soon keys.txt", "expected a time like"),
        ("dedup --within 5y keys.txt", "units ms, s, m, h, d, w"),
        (
            "dedup --within 1ms keys.txt",
            "a millisecond for each generation",
        ),
        ("dedup --within 9999999d keys.txt", "20,000 years"),
        ("dedup --within 1e300d keys.txt", "a millisecond or more"),
        ("dedup --last 0 keys.txt", "at least 1 key"),
        ("dedup --last 18446744073709551615 keys.txt", "tamis: "),
        (
            "dedup --within 1h --generations 0 keys.txt",
            "generations: expected 1 to 62, got 0",
        ),
        (
            "dedup --within 1h --generations 10000 keys.txt",
            "generations: expected 1 to 62, got 10000",
        ),
        (
            "dedup --within 1h --generations -1 keys.txt",
            "unexpected argument",
        ),
        (
            "dedup --generations 8 keys.txt",
            "--generations is for a window",
        ),
        ("dedup --within 1h --last 5 keys.txt", "cannot be used with"),
        ("dedup --within 1h --exact keys.txt", "cannot be used with"),
        ("dedup --last 5 -n 5 keys.txt", "omit -n"),
        ("dedup --last 5 --time csv:1 keys.txt", "heeds no time"),
        ("dedup --time csv:1 keys.txt", "--time is for a window"),
        ("dedup --within 1h --time at keys.txt", "unknown time 'at'"),
        (
            "dedup --within 1h --csv id --time jsonl:/at keys.txt",
            "the key is columns of CSV",
        ),
        (
            "dedup --within 1h --csv a --time csv:b keys.txt",
            "no column 'b'",
        ),
        (
            "dedup --within 1h --filter plain.tamis keys.txt",
            "is a blocked filter and forgets nothing",
        ),
        (
            "dedup --time csv:1 --filter plain.tamis keys.txt",
            "--time is for windows",
        ),
        (
            "dedup --within 12h --filter day.tamis keys.txt",
            "remembers 1d since first seen, in 8 generations, but you asked for 12h",
        ),
        (
            "dedup --quiet 24h --filter day.tamis keys.txt",
            "asked for 1d since last seen",
        ),
        (
            "dedup --within 24h --generations 4 --filter day.tamis keys.txt",
            "in 4 generations",
        ),
        (
            "dedup --last 100 --filter day.tamis keys.txt",
            "asked for the last 100 keys",
        ),
        (
            "dedup --time tsv:1 --filter keys.tamis keys.txt",
            "heeds no time",
        ),
        (
            "add --time tsv:1 plain.tamis keys.txt",
            "--time is for windows",
        ),
        ("add --time tsv:1 keys.tamis keys.txt", "heeds no time"),
        (
            "check --at latest plain.tamis keys.txt",
            "--at is for windows",
        ),
        (
            "check --at tomorrow day.tamis keys.txt",
            "expected a date and time like",
        ),
        (
            "create new.tamis --kind window",
            "say what a window remembers",
        ),
        ("create new.tamis --within 1h", "-n N"),
        (
            "create new.tamis --within 1h -n 5 --kind cuckoo",
            "forgets nothing",
        ),
        (
            "create new.tamis --within 1h -n 5 --size 1MB",
            "give the rate",
        ),
        ("create new.tamis --last 5 -n 5", "omit -n"),
        ("plan --within 1h", "-n N"),
        (
            "merge --union -o new.tamis keys.tamis keys.tamis",
            "count keys",
        ),
        (
            "merge --union -o new.tamis day.tamis keys.tamis",
            "day.tamis and keys.tamis",
        ),
        (
            "merge --intersect -o new.tamis day.tamis day.tamis",
            "ask both",
        ),
        ("remove day.tamis keys.txt", "window"),
        ("count day.tamis keys.txt", "window"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains(why), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}");
        assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    }
    assert!(!dir.path("new.tamis").exists());
    // A pipe can't be measured.
    let ran = dir.feed("dedup --within 1h", "a\n");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .contains("say how many new keys to expect in 1h: -n N"),
        "{}",
        ran.err
    );
    // What was given is kept.
    for (line, text) in [
        ("dedup -q --within 1s keys.txt", "a\nb\n"),
        (
            "dedup -q --within 36525d --generations 1 keys.txt",
            "a\nb\n",
        ),
        ("dedup -q --quiet 1s --generations 62 keys.txt", "a\nb\n"),
        ("dedup -q --last 1 keys.txt", "a\nb\n"),
        (
            "dedup -q --within 24h --filter day.tamis keys.txt",
            "a\nb\n",
        ),
        ("dedup -q --filter day.tamis keys.txt", ""),
        ("dedup -q --filter keys.tamis keys.txt", "a\nb\n"),
    ] {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.text()), (0, text), "{line}: {}", ran.err);
    }
}

#[test]
fn too_many_keys_are_said() {
    let dir = Sandbox::new();
    let keys: String = (0..20_000).map(|i| format!("{i}\n")).collect();
    dir.write("keys.txt", keys);
    let ran = dir.ok("dedup --within 1h -n 100 -p 0.01 keys.txt --filter seen.tamis");
    assert!(
        ran.err.contains("but was made for 100 in its span"),
        "{}",
        ran.err
    );
    let ran = dir.run("dedup --strict --within 1h keys.txt --filter seen.tamis");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(dir.ok("info seen.tamis").err.contains("the rate is now"));
    // As many as it was made for are not too many, in all generations at once.
    let rows: String = (0..1_100)
        .map(|i| format!("{i},{}\n", 1_700_000_000 + i * 36))
        .collect();
    dir.write("rows.csv", rows);
    let ran = dir.ok("dedup --within 10h --generations 10 -n 1000 -p 0.01 --csv 1 --no-header --time csv:2 rows.csv");
    assert!(!ran.err.contains("warning"), "{}", ran.err);
}

#[test]
fn a_window_is_made_filled_asked_and_merged() {
    let dir = Sandbox::new();
    let made = dir.ok("create day.tamis --within 24h -n 1000 -p 0.001 --generations 12");
    assert!(
        made.err
            .contains("window for 1,000 keys at a rate of 0.001"),
        "{}",
        made.err
    );
    dir.ok("create week.tamis --quiet 7d -n 10");
    dir.ok("create keys.tamis --kind window -n 500");
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
    let ran = dir.ok("add --jsonl /id --time jsonl:/t day.tamis a.jsonl");
    assert!(ran.err.contains("2 keys read, 2 new"), "{}", ran.err);
    dir.write("old.jsonl", "{\"id\":\"z\",\"t\":1500000000}\n");
    let ran = dir.ok("add --jsonl /id --time jsonl:/t day.tamis old.jsonl");
    assert!(ran.err.contains("and so not added: 1 key"), "{}", ran.err);
    dir.write("ask.txt", "a\nb\nz\n");
    for (at, found) in [
        ("2023-11-14T22:13:20Z", "a\nb\n"),
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
    // The same shape can be united, and the union is as old as its parts.
    dir.ok("create other.tamis --within 24h -n 1000 -p 0.001 --generations 12");
    dir.write("c.jsonl", "{\"id\":\"c\",\"t\":1700080000}\n");
    dir.ok("add -q --jsonl /id --time jsonl:/t other.tamis c.jsonl");
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
    let explained = dir.ok("explain all.tamis a");
    assert!(
        explained.text().contains("generation 1"),
        "{}",
        explained.text()
    );
    // Without a time it is now.
    dir.write("now.txt", "n\n");
    dir.ok("add week.tamis now.txt");
    assert_eq!(dir.ok("check week.tamis now.txt").text(), "n\n");
    dir.ok("add --shared week.tamis abc.txt");
    assert_eq!(dir.ok("check week.tamis abc.txt").text(), "a\nb\nc\n");
}

#[test]
fn a_plan_says_what_a_window_takes() {
    let dir = Sandbox::new();
    let plan = dir.ok("plan --within 24h -n 10M -p 0.01");
    for part in [
        "remembers      1d since first seen, in 8 generations",
        "forgets        at most 3h later",
        "10,000,000",
    ] {
        assert!(plan.text().contains(part), "{part}: {}", plan.text());
    }
    let plan = dir.ok("plan --kind window -n 10M -p 1e-4 --json");
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
