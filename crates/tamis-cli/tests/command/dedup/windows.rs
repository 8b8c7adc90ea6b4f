//! Windows through the command: `dedup --within`, `--renew` and `--last` against an exact oracle.

use crate::common::{Ran, Sandbox, start};
use crate::random::Random;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};
use tamis::Moment;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
/// 2023-11-14, so that no event is in the future.
const START: i64 = 1_700_000_000 * SECOND;

/// A key, and the time it was seen, in microseconds since 1970.
type Event = (u32, i64);

/// The pattern of times in a stream.
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
                // A time on the grid of generations, or right next to it.
                now - now % step + random.below(3) as i64 - 1
            }
            Times::Shuffled => now - random.below(step as u64) as i64,
            Times::Jumps => {
                if random.below(500) == 0 {
                    now += random.below(6 * span as u64) as i64 - 3 * span;
                }
                now
            }
        };
        (key, at)
    };
    (0..count).map(event).collect()
}

/// The time in one of the supported formats.
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

/// The exact content of a window.
struct Oracle {
    span: i64,
    step: i64,
    generations: i64,
    quiet: bool,
    latest: i64,
    /// When each key was reported new, or seen if every sighting counts.
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

    /// Compares the result for a record with the allowed ones.
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
        // Times that no query can reach any more.
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
                // From now on it may be in the window.
            }
            if self.quiet {
                seen.push_back(at);
            }
        }
    }

    /// Checks that the number of wrongly dropped records is within the rate.
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

/// A stream in several runs, each with the filter left by the previous one.
fn stream(times: Times, quiet: bool, generations: i64, runs: usize, seed: u64) {
    let span = 24 * HOUR;
    let mut random = Random::new(28, seed);
    let events = events(times, EVENTS / 5, span, generations, &mut random);
    let dir = Sandbox::new();
    let mut oracle = Oracle::new(span, generations, quiet);
    let option = if quiet {
        "--renew --within"
    } else {
        "--within"
    };
    let (mut too_old, mut late) = (0, 0);
    let part = events.len().div_ceil(runs);
    for (run, part) in events.chunks(part).enumerate() {
        let first = run * events.len().div_ceil(runs);
        dir.write("events.jsonl", lines(part, first));
        let threads = 1 + run % 3;
        let ran = dir.ok(&format!(
            "dedup {option} 24h --generations {generations} --capacity {EVENTS} -p 1e-4 -k jsonl:/id --time jsonl:/ts \
             --filter seen.tamis --report report.json -j {threads} events.jsonl"
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
    let mut random = Random::new(28, 11);
    let dir = Sandbox::new();
    // When each key was reported new, counted in keys reported new before it.
    let mut told: HashMap<u64, u64> = HashMap::new();
    let (mut count, mut wrong) = (0, 0);
    for run in 0..2 {
        let keys: Vec<u64> = (0..EVENTS / 4).map(|_| random.below(4_000)).collect();
        let text: String = keys
            .iter()
            .enumerate()
            .map(|(number, key)| format!("{{\"number\":{number},\"id\":{key}}}\n"))
            .collect();
        let line = format!("dedup --last {last} -k jsonl:/id -p 1e-4 --filter seen.tamis");
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
    let events = events(Times::Jumps, 20_000, 24 * HOUR, 8, &mut Random::new(28, 12));
    dir.write("events.jsonl", lines(&events, 0));
    let line = "dedup --within 24h -k jsonl:/id --time jsonl:/ts -q events.jsonl";
    let one = dir.ok(&format!("{line} -j 1"));
    assert!(one.text().lines().count() > 1_000);
    assert_eq!(one.out, dir.ok(&format!("{line} -j 4")).out);
    assert_eq!(one.out, dir.ok(&format!("{line} --filter seen.tamis")).out);
    // The duplicates are the rest.
    let others = dir.ok(&format!("{line} -v"));
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
        "dedup --within 1d -k csv:id --time csv:at --report report.json events.csv --filter seen.tamis",
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
    // A time in the far future has not moved the window.
    let info = dir.ok("info --json seen.tamis");
    let info: Value = serde_json::from_slice(&info.out).unwrap();
    assert_eq!(info["window"]["latest"], "2024-01-03T03:00:01Z");
}

#[test]
fn times_are_read_as_logs_write_them_and_never_guessed() {
    let dir = Sandbox::new();
    let apache = |day, key| format!("{key} - - [{day}/Oct/2000:13:55:36 -0700] \"GET /\" 200\n");
    let access = apache("10", "a") + &apache("11", "a") + &apache("16", "a");
    dir.write("access.log", &access);
    let log = dir.ok("dedup -q --within 5d --capacity 10 -k field:1 --time line access.log");
    assert_eq!(log.text(), apache("10", "a") + &apache("16", "a"));
    for (first, second, third, format) in [
        (
            "10/Oct/2000:13:55:36 -0700",
            "11/Oct/2000:13:55:36 -0700",
            "16/Oct/2000:13:55:36 -0700",
            "",
        ),
        (
            "Tue, 10 Oct 2000 13:55:36 -0700",
            "Wed, 11 Oct 2000 01:00:00 GMT",
            "Mon, 16 Oct 2000 13:55:36 -0700",
            "",
        ),
        ("Oct 10 22:14:15", "Oct 11 22:14:15", "Oct 16 22:14:15", ""),
        ("20001010", "20001011", "20001016", "--time-format %Y%m%d"),
    ] {
        dir.write(
            "times.tsv",
            format!("{first}\ta\n{second}\ta\n{third}\ta\n"),
        );
        // Dates without a year are in the last year before the file's time.
        let file = File::options().write(true).open(dir.path("times.tsv"));
        let in_december = UNIX_EPOCH + Duration::from_secs(1_733_000_000);
        file.unwrap().set_modified(in_december).unwrap();
        let line = format!(
            "dedup -q --within 5d --capacity 10 --no-header -k tsv:2 --time tsv:1 {format} times.tsv"
        );
        let ran = dir.ok(&line);
        assert_eq!(
            (ran.text(), ran.err.as_str()),
            (format!("{first}\ta\n{third}\ta\n").as_str(), ""),
            "{first}"
        );
    }
    dir.write("dates.csv", "at,id\n2024-05-01,a\n20240501,b\n");
    dir.ok("create week.tamis --within 7d --capacity 10");
    for command in [
        "dedup --within 7d --capacity 10",
        "add week.tamis",
        "dedup --filter week.tamis",
    ] {
        let ran = dir.run(&format!("{command} -k csv:id --time csv:at dates.csv"));
        assert_eq!(ran.code, 2, "{command}");
        for part in [
            "dates.csv:3: the time '20240501' can be read in two ways: as 2024-05-01T00:00:00Z, or as 20,240,501 seconds",
            "hint: --time-format %Y%m%d reads dates, --time-format %s seconds since 1970",
        ] {
            assert!(ran.err.contains(part), "{command}: {}", ran.err);
        }
    }
}

#[test]
fn a_clock_that_is_behind_is_said_and_loses_nothing() {
    let dir = Sandbox::new();
    // Half an hour ahead is within a generation.
    let ahead = Moment::now() + std::time::Duration::from_secs(1_800);
    dir.write("first.jsonl", format!("{{\"id\":1,\"ts\":\"{ahead}\"}}\n"));
    dir.ok(
        "dedup -q --within 8h --capacity 10 -k jsonl:/id --time jsonl:/ts --filter seen.tamis first.jsonl",
    );
    let ran = dir.feed(
        "dedup --within 8h -k jsonl:/id --filter seen.tamis",
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
    let line = "dedup -q --within 24h --capacity 100k -k jsonl:/id --time jsonl:/ts --filter seen.tamis --save-every 0.01";
    let mut command = dir.command(line);
    let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let half = all[..20_000].concat();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(half.as_bytes());
        // Kept open: the run is waiting for more when it is killed.
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
