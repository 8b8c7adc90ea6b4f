//! `tamis dedup` loses no more records than promised, whatever the input looks like and whatever was guessed about it;
//! and it reports how many.

use crate::common::{Ran, Sandbox};
use crate::servers::Server;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

/// Distinct lines of varying length.
fn lines(range: Range<u32>) -> String {
    range.fold(String::new(), |mut text, i| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{i}");
        text
    })
}

fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn report(dir: &Sandbox) -> serde_json::Value {
    serde_json::from_slice(&dir.read("report")).unwrap()
}

/// A filter that keeps its rate loses more than this in less than one of a million runs: losses are independent and
/// rare, so their number is Poisson distributed; this allows five standard deviations, and a bit more for small means.
fn most_lost(distinct: u64, rate: f64) -> f64 {
    let mean = distinct as f64 * rate;
    mean + 5.0 * mean.sqrt() + 4.0
}

#[test]
fn a_long_first_line_costs_nothing() {
    let dir = Sandbox::new();
    let text = format!("{}\n{}", "h".repeat(300_000), lines(0..1_000_000));
    dir.write("in", &text);
    let ran = dir.ok("dedup in --report report");
    assert!(count(&ran.out) >= 1_000_001 - 10, "{}", ran.err);
    assert!(report(&dir)["expected_wrongly_dropped"].as_f64().unwrap() <= 1.0);
}

#[test]
fn long_records_before_short_ones_cost_nothing() {
    let dir = Sandbox::new();
    let mut text = String::new();
    for i in 0..60 {
        let _ = writeln!(text, "{{\"id\":{i},\"text\":\"{}\"}}", "x".repeat(5000));
    }
    text.push_str(&lines(0..220_000));
    dir.write("in", &text);
    let ran = dir.ok("dedup in");
    assert!(count(&ran.out) >= 220_060 - 5, "{}", ran.err);
}

#[test]
fn too_small_an_n_costs_nothing() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..1_000_000));
    for mode in ["in", "--filter seen.tamis in"] {
        let ran = dir.ok(&format!(
            "dedup --capacity 1000 -p 0.001 --report report {mode}"
        ));
        let lost = 1_000_000 - count(&ran.out);
        assert!(lost as f64 <= most_lost(1_000_000, 0.001), "{lost} lost");
        let said = report(&dir)["expected_wrongly_dropped"].as_f64().unwrap();
        let error = (said - lost as f64).abs();
        assert!(
            error <= 0.1 * said + 5.0 * said.sqrt() + 4.0,
            "{lost} lost, {said} said"
        );
    }
}

/// A guess may cost twice the memory for a pipe, plus 64 MiB.
#[test]
fn a_wrong_guess_is_not_dear() {
    let dir = Sandbox::new();
    let long = format!("{}\n", "y".repeat(400_000));
    let blank = "\n".repeat(300_000);
    for (shape, text) in [
        ("blank lines first", format!("{blank}{}", long.repeat(100))),
        ("blank lines last", format!("{}{blank}", long.repeat(100))),
        ("blank lines only", "\n".repeat(20_000_000)),
    ] {
        dir.write("in", &text);
        for mode in ["", "--exact", "--filter seen.tamis"] {
            let line = format!("dedup --count {mode} --report report");
            let bytes = |ran: Ran| {
                assert_eq!(ran.code, 0, "{}", ran.err);
                let _ = std::fs::remove_file(dir.path("seen.tamis"));
                report(&dir)["filter_bytes"].as_u64().unwrap()
            };
            let file = bytes(dir.run(&format!("{line} in")));
            let pipe = bytes(dir.feed(&line, &text));
            assert!(
                file <= 2 * pipe + (64 << 20),
                "{shape} {mode}: {file} bytes, {pipe} for a pipe"
            );
        }
    }
}

/// The user's number is used, but only up to what the input can hold.
#[test]
fn too_large_an_n_is_not_dear() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..10_000));
    for mode in ["", "--exact"] {
        let ran = dir.ok(&format!("dedup --capacity 10G {mode} --report report in"));
        assert!(count(&ran.out) >= 9_998, "{}", ran.err);
        let bytes = report(&dir)["filter_bytes"].as_u64().unwrap();
        assert!(bytes < 2 << 20, "{mode}: {bytes}");
    }
}

/// A filter in a file is made for the user's number of keys, whatever this run reads.
#[test]
fn n_reserves_for_later_runs() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..100));
    dir.ok("dedup --capacity 50000 --filter seen.tamis in");
    let info: serde_json::Value =
        serde_json::from_slice(&dir.ok("info --json seen.tamis").out).unwrap();
    assert!(info["capacity"].as_u64().unwrap() >= 50_000, "{info}");
}

/// The length of a stream is unknown, so its filter starts small. It grows in few steps, and keeps its rate.
#[test]
fn a_streams_filter_starts_small() {
    let dir = Sandbox::new();
    assert_eq!(dir.feed("dedup --filter f", lines(0..10)).code, 0);
    let size = dir.read("f").len();
    assert!(size < 64 << 10, "{size} bytes for ten lines");
    let all = dir.feed("dedup --count --filter f", lines(0..200_000));
    assert!((199_985..=199_990).contains(&all.text().trim().parse().unwrap()));
    let info: serde_json::Value = serde_json::from_slice(&dir.ok("info --json f").out).unwrap();
    assert!(info["shape"]["layers"].as_u64().unwrap() <= 3, "{info}");
    assert!(info["rate_now"].as_f64().unwrap() <= 1e-6, "{info}");
    assert!(info["bytes"].as_u64().unwrap() < 8 << 20, "{info}");
}

/// Few keys change few blocks of a large file, which is updated in place.
#[cfg(unix)]
#[test]
fn little_news_is_written_in_place() {
    use std::os::unix::fs::MetadataExt;
    let dir = Sandbox::new();
    dir.write("in", lines(0..10));
    dir.ok("dedup --capacity 1M --filter f in");
    let identity = || std::fs::metadata(dir.path("f")).unwrap().ino();
    let before = identity();
    dir.write("more", lines(10..20));
    let ran = dir.ok("dedup --filter f more");
    assert_eq!((count(&ran.out), identity()), (10, before), "{}", ran.err);
    dir.ok("verify f");
    dir.write("both", lines(0..30));
    assert_eq!(count(&dir.ok("dedup --filter f both").out), 10);
}

/// Asking for more memory than there is, is an error and changes nothing.
#[test]
fn out_of_memory_is_an_error() {
    let dir = Sandbox::new();
    for line in [
        "dedup --capacity 1e15",
        "dedup --exact --capacity 1e15",
        "dedup --filter f --capacity 1e15",
    ] {
        let ran = dir.feed(line, "a\nb\na\n");
        assert_eq!((ran.code, ran.text()), (2, ""), "{line}: {}", ran.err);
        assert!(ran.err.contains("out of memory"), "{line}: {}", ran.err);
    }
    assert!(dir.list().is_empty());
}

/// The same in the middle of a run.
#[cfg(target_os = "linux")]
#[test]
fn out_of_memory_in_the_middle_is_an_error() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..3_000_000));
    for command in [
        "dedup --exact --count -j 1 --capacity 1000",
        "dedup --count -j 1 -p 1e-15 --capacity 1000",
        "build -j 1 list.tamis",
        "build -j 1 --smallest list.tamis",
    ] {
        // With this limit the program starts, but its tables can't grow.
        let line = format!("ulimit -v 60000; exec \"$0\" {command} in");
        let ran = std::process::Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_tamis")])
            .current_dir(dir.path("."))
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{command}: {err}");
        assert!(err.contains("out of memory"), "{command}: {err}");
        assert!(!err.contains("panicked"), "{command}: {err}");
    }
    assert_eq!(dir.list(), ["in"]);
}

/// A filter that is too small loses records. The warning comes before it happens, and its numbers are right.
#[test]
fn an_overfull_filter_says_what_it_does() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..1_000_000));
    dir.write("few", lines(0..500));
    for kind in ["blocked", "bloom", "counting"] {
        let _ = std::fs::remove_file(dir.path("small"));
        dir.ok(&format!(
            "create small --capacity 1000 -p 0.001 --kind {kind}"
        ));
        let ran = dir.ok("dedup --filter small few");
        assert!(!ran.err.contains("warning"), "{}", ran.err);

        let ran = dir.run("dedup --strict --filter small in");
        assert_eq!(ran.code, 2, "{kind}: {}", ran.err);
        assert!(ran.err.contains("has reached its capacity of 1,000 keys"));
        assert!(count(&ran.out) <= 500);

        let ran = dir.ok("dedup --filter small --report report in");
        let lost = 1_000_000 - 500 - count(&ran.out);
        assert!(lost > 900_000, "{kind}");
        let said = report(&dir)["expected_wrongly_dropped"].as_f64().unwrap();
        assert!(
            (said - lost as f64).abs() < 0.1 * lost as f64,
            "{kind}: {said} said, {lost} lost"
        );
        let warning = ran.err.find("warning").expect("a warning");
        assert!(warning < ran.err.find("records").unwrap(), "{}", ran.err);

        // Overfull from the start.
        let refused = dir.run("dedup --strict --filter small few");
        assert_eq!((refused.code, refused.text()), (2, ""), "{}", refused.err);
        assert!(refused.err.contains("but was made for 1,000"));
        let ran = dir.run("dedup --filter small few");
        assert!(ran.err.contains("but was made for 1,000"), "{}", ran.err);
    }
    // A full cuckoo filter refuses keys.
    dir.ok("create cuckoo --capacity 1000 --kind cuckoo");
    let ran = dir.run("dedup --filter cuckoo in");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("full"), "{}", ran.err);
}

/// The rate rises with every record, so it is checked between records, however few reads deliver them.
#[test]
fn what_an_overfull_filter_loses_is_told_by_its_bits() {
    let dir = Sandbox::new();
    dir.write("in", lines(0..20_000));
    for kind in ["blocked", "bloom", "counting"] {
        for shape in [
            "--capacity 2000 -p 0.001",
            "--capacity 2000 -p 0.05",
            "--capacity 5000 -p 0.01",
            "--capacity 20000 -p 0.01",
        ] {
            let _ = std::fs::remove_file(dir.path("small"));
            dir.ok(&format!("create small {shape} --kind {kind}"));
            let ran = dir.ok("dedup --filter small --report report in");
            let lost = (20_000 - count(&ran.out)) as f64;
            let said = report(&dir)["expected_wrongly_dropped"].as_f64().unwrap();
            assert!(
                (said - lost).abs() <= 0.1 * lost + 5.0 * lost.sqrt() + 3.0,
                "{kind} {shape}: {said} said, {lost} lost"
            );
            // Records that are certainly present aren't lost.
            dir.ok("dedup --filter small --report report in");
            let again = report(&dir)["expected_wrongly_dropped"].as_f64().unwrap();
            assert!(again <= said, "{kind} {shape}: {again} of duplicates");
        }
    }
}

#[test]
fn a_filter_in_redis_says_what_was_lost() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.write("in", lines(0..100_000));
    for (name, create, share) in [
        ("right", "--capacity 100k -p 0.01", 0.5),
        ("small", "--capacity 10k -p 0.01", 0.9),
        ("growing", "--capacity 1000 -p 0.01 --kind growing", 0.5),
    ] {
        let seen = format!("redis://{}/{name}", server.address());
        dir.ok(&format!("create {seen} {create}"));
        let ran = dir.ok(&format!("dedup --filter {seen} --report report in"));
        let lost = (100_000 - count(&ran.out)) as f64;
        let said = report(&dir)["expected_wrongly_dropped"].as_f64().unwrap();
        assert!(
            (said - lost).abs() <= 0.15 * lost + 5.0 * lost.sqrt() + 4.0,
            "{name}: {said} said, {lost} lost"
        );
        assert!(lost < share * 100_000.0);
        assert_eq!(ran.err.contains("warning"), name == "small", "{}", ran.err);
        let again = dir.run(&format!("dedup --strict --filter {seen} in"));
        assert_eq!(again.code, if name == "small" { 2 } else { 0 });
    }
}

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

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Blocks of lines of very different lengths, in any order, with duplicates.
fn shape(random: &mut Random) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for block in 0..1 + random.below(4) {
        let length = random.pick(&[0, 1, 8, 60, 1000, 60_000]);
        let most = (600_000 / (length + 8)).min(12_000);
        let how_many = 1 + random.below(most.max(1));
        let repeats = random.pick(&[1, 1, 3]);
        for i in 0..how_many {
            let padding = "x".repeat(length as usize);
            all.push(format!("{block}.{}{padding}", i / repeats));
        }
    }
    if random.below(3) == 0 {
        // Puts the odd part first, last or anywhere.
        for i in (1..all.len()).rev() {
            all.swap(i, random.below(i as u64 + 1) as usize);
        }
    }
    all
}

/// 200 shapes, each with a way to read it, a guess, a rate and a number of threads. Losses are compared with the
/// promise, for each and for all together.
#[test]
fn losses_stay_within_the_promise_for_any_shape() {
    let server = Server::start(&[]);
    let mut random = Random(12);
    let (mut all_lost, mut all_expected) = (0.0, 0.0);
    for round in 0..200 {
        let dir = Sandbox::new();
        let records = shape(&mut random);
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        let mut seen = HashSet::new();
        let distinct: Vec<&str> = records
            .iter()
            .map(String::as_str)
            .filter(|record| seen.insert(*record))
            .collect();
        let keys = distinct.len() as u64;

        let rate = random.pick(&[1e-6, 1e-4, 0.001, 0.01, 0.1]);
        let mut line = format!("dedup -p {rate} -j {}", 1 + random.below(4));
        let expected = match random.below(5) {
            0 => Some(keys.div_ceil(1000)),
            1 => Some(keys * random.pick(&[1, 1000])),
            _ => None,
        };
        let judge = random.pick(&["", "", "--exact", "--filter seen", "create", "redis"]);
        // A filter made for fewer keys refuses a larger number.
        if let Some(expected) = expected.filter(|n| judge != "create" || *n <= keys) {
            let _ = write!(line, " --capacity {expected}");
        }
        match judge {
            "create" => {
                dir.ok(&format!("create seen -p {rate} --capacity {keys}"));
                line.push_str(" --filter seen");
            }
            "redis" => {
                let claim = random.pick(&["before", "after"]);
                let at = server.address();
                let _ = write!(line, " --claim {claim} --filter redis://{at}/r{round}");
            }
            judge => {
                line.push(' ');
                line.push_str(judge);
            }
        }
        let ran = match random.below(3) {
            0 => dir.feed(&line, &text),
            1 => {
                dir.write("in", &text);
                dir.run(&format!("{line} in"))
            }
            _ => {
                // Split at line ends.
                let cut = text.len() / 3;
                let cut = text[cut..].find('\n').map_or(text.len(), |at| cut + at + 1);
                dir.write("a", &text[..cut]);
                dir.write("b", &text[cut..]);
                dir.run(&format!("{line} a b"))
            }
        };
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        // The output is correct and in order; missing records were dropped.
        let mut expected = distinct.iter();
        let mut printed = 0;
        for record in ran.text().lines() {
            assert!(
                expected.any(|distinct| *distinct == record),
                "{line}: {record:.40} is out of place"
            );
            printed += 1;
        }
        let lost = (keys - printed) as f64;
        let rate = if judge == "--exact" { 0.0 } else { rate };
        let most = if judge == "--exact" {
            0.0
        } else {
            most_lost(keys, rate)
        };
        assert!(lost <= most, "{line}: {lost} of {keys} lost");
        all_lost += lost;
        all_expected += keys as f64 * rate;
    }
    println!("{all_lost} lost, at most {all_expected:.1} allowed");
    assert!(all_lost <= all_expected + 5.0 * all_expected.sqrt());
    assert!(all_expected > 1000.0, "the test can't see much");
}
