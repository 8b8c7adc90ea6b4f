//! Random command lines of `tamis dedup`: shapes of input, options and faults, against an exact oracle.
//!
//! Each run draws a new seed and prints it. `TAMIS_SEED=N` repeats one, and `TAMIS_CASES=N` draws N lines instead of
//! 100.

mod runs;

use self::runs::run;
use crate::common::{Sandbox, cases};
use crate::random::input::{Input, Record};
use crate::random::{Random, packed};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// A compressed file ends too early.
    CutInput,
    MissingFile,
    /// The disk fills up after part of the output.
    FullDisk,
    /// The reader closes the pipe.
    ClosedPipe,
    /// A signal comes while the command waits for input.
    Signal(libc::c_int),
}

/// The memory of seen keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Judge {
    Memory,
    Exact,
    /// A filter that the run creates.
    NewFilter,
    /// An existing filter of this kind.
    Filter(&'static str),
}

struct Case {
    dir: Sandbox,
    random: Random,
    input: Input,
    judge: Judge,
    fault: Fault,
    rate: f64,
    output: Option<&'static str>,
    /// The keys lost, and the expected number, for cases where this is low.
    tally: Cell<(usize, f64)>,
    /// For messages: how to repeat the case, and its command lines.
    told: String,
}

const OUTPUTS: [&str; 5] = ["out", "out.gz", "out.zst", "out.bz2", "out.xz"];

impl Case {
    fn draw(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed, number);
        let judge = match random.below(8) {
            0 => Judge::Memory,
            1 => Judge::Exact,
            2..=4 => Judge::NewFilter,
            _ => Judge::Filter(random.pick(&["blocked", "bloom", "counting", "cuckoo", "growing"])),
        };
        let fault = match random.below(12) {
            0 | 1 => Fault::CutInput,
            2 => Fault::MissingFile,
            3 => Fault::FullDisk,
            4 => Fault::ClosedPipe,
            5 => Fault::Signal(libc::SIGINT),
            6 => Fault::Signal(libc::SIGTERM),
            7 | 8 => Fault::Signal(libc::SIGKILL),
            _ => Fault::None,
        };
        let output = match random.below(2) {
            0 => None,
            _ => Some(random.pick(&OUTPUTS)),
        };
        Self {
            dir: Sandbox::new(),
            input: Input::draw(&mut random),
            judge,
            fault,
            rate: random.pick(&[1e-6, 1e-4, 0.001, 0.01]),
            output: output.filter(|_| fault != Fault::ClosedPipe),
            tally: Cell::default(),
            told: format!("TAMIS_SEED={seed}, line {number}, {judge:?}, {fault:?}"),
            random,
        }
    }

    fn has_filter(&self) -> bool {
        matches!(self.judge, Judge::NewFilter | Judge::Filter(_))
    }

    /// The options that decide how to judge.
    fn options(&mut self) -> String {
        let mut line = format!("dedup -p {} -j {}", self.rate, 1 + self.random.below(4));
        line += self.input.options();
        let keys = self.input.keys().max(1) as u64;
        match self.random.below(6) {
            0 => {}
            1 | 2 => _ = write!(line, " --capacity {}", keys.div_ceil(1000)),
            // Filters of that size are written repeatedly. Unless a filter grows, more keys than it was made for are
            // refused.
            3 | 4 if !matches!(self.judge, Judge::Filter(kind) if kind != "growing") => {
                let _ = write!(line, " --capacity {}", (keys * 1000).min(300_000));
            }
            _ => _ = write!(line, " --capacity {keys}"),
        }
        match self.judge {
            Judge::Memory => {}
            Judge::Exact => line += " --exact",
            Judge::NewFilter | Judge::Filter(_) => {
                line += " --filter seen --save-every 0.001";
                if self.judge == Judge::NewFilter && self.random.below(3) == 0 {
                    line += " --secret";
                }
            }
        }
        line
    }

    /// Creates the filter, and lets an earlier run see some records. Returns the filter's keys.
    fn prepare(&mut self, options: &str) -> HashSet<String> {
        if let Judge::Filter(kind) = self.judge {
            let room = 2 * self.input.keys() + 10;
            let made = format!(
                "create seen -p {} --capacity {room} --kind {kind}",
                self.rate
            );
            let made = made + self.input.rule();
            let ran = self.dir.run(&made);
            assert_eq!(ran.code, 0, "{}: {made}: {}", self.told, ran.err);
        }
        if !self.has_filter() || self.random.below(2) == 0 {
            return HashSet::new();
        }
        let some = self.random.below(self.input.records().count() as u64 + 1) as usize;
        let first = self.input.text(self.input.records().take(some));
        let ran = self.dir.feed(&format!("{options} -q"), first);
        assert_eq!(ran.code, 0, "{}: first run: {}", self.told, ran.err);
        let (seen, _) = self.parse(&ran.out);
        seen.iter().map(|record| record.key.clone()).collect()
    }

    /// The records in an output, and whether it ends with a complete record.
    fn parse(&self, output: &[u8]) -> (Vec<&Record>, bool) {
        let by_text: HashMap<&[u8], &Record> = self
            .input
            .records()
            .map(|record| (&record.text[..], record))
            .collect();
        let mut rest = output;
        if let Some(header) = self.input.header() {
            match rest.strip_prefix(header) {
                Some(after) => rest = after,
                None => return (Vec::new(), rest.is_empty()),
            }
        }
        let (mut records, mut start) = (Vec::new(), 0);
        for (at, byte) in rest.iter().enumerate() {
            if *byte == self.input.delimiter()
                && let Some(record) = by_text.get(&rest[start..=at])
            {
                records.push(*record);
                start = at + 1;
            }
        }
        // The rest is either the beginning of a record, or was never in the input.
        let left = &rest[start..];
        let is_beginning = self
            .input
            .records()
            .any(|record| record.text.starts_with(left));
        assert!(
            left.is_empty() || is_beginning,
            "{}: an odd record: {:?}",
            self.told,
            shown(left)
        );
        (records, left.is_empty())
    }

    /// The expected number of lost keys, of this many.
    fn mean_lost(&self, keys: usize) -> f64 {
        match self.judge {
            Judge::Exact => 0.0,
            _ => keys as f64 * self.rate,
        }
    }

    /// Checks that no more keys are lost than allowed, in this case and in all cases together.
    fn check_lost(&self, lost: usize, keys: usize) {
        let mean = self.mean_lost(keys);
        let most = most_lost(mean);
        assert!(
            lost <= most,
            "{}: {lost} of {keys} keys lost, {most} may be",
            self.told
        );
        // If losses are common, one more isn't noticed.
        if mean < 0.05 {
            let (all_lost, all_mean) = self.tally.get();
            self.tally.set((all_lost + lost, all_mean + mean));
        }
    }

    /// The keys of the printed records: none was seen before, and none occurs twice.
    fn keys_once<'r>(
        &self,
        printed: impl Iterator<Item = &'r Record>,
        seen: &HashSet<String>,
    ) -> HashSet<&'r String> {
        let mut got = HashSet::new();
        for record in printed {
            assert!(
                !seen.contains(&record.key),
                "{}: {} was seen",
                self.told,
                record.key
            );
            assert!(
                got.insert(&record.key),
                "{}: {} printed twice",
                self.told,
                record.key
            );
        }
        got
    }

    /// Checks that each key is printed at most once, and all but a few are.
    fn check_complete<'r>(
        &self,
        printed: impl Iterator<Item = &'r Record>,
        seen: &HashSet<String>,
    ) {
        let got = self.keys_once(printed, seen);
        self.check_union(self.input.records(), &got, seen);
    }

    /// Checks that all but a few keys of these records were printed or seen.
    fn check_union<'r>(
        &self,
        of: impl IntoIterator<Item = &'r Record>,
        got: &HashSet<&String>,
        seen: &HashSet<String>,
    ) {
        let all: HashSet<&String> = of.into_iter().map(|record| &record.key).collect();
        let lost = all
            .iter()
            .filter(|key| !got.contains(*key) && !seen.contains(**key))
            .count();
        self.check_lost(lost, all.len());
    }

    /// The run's output file, whatever its name.
    fn written(&self) -> Vec<u8> {
        let Some(output) = self.output else {
            return Vec::new();
        };
        let partial = format!("{output}.partial");
        for name in [output, &partial] {
            if self.dir.path(name).exists() {
                return packed::unpack(output, &self.dir.read(name));
            }
        }
        Vec::new()
    }
}

/// With independent losses and this mean, one in a thousand million runs loses more.
fn most_lost(mean: f64) -> usize {
    let mut probability = (-mean).exp();
    let (mut most, mut sum) = (0, probability);
    while 1.0 - sum > 1e-9 {
        most += 1;
        probability *= mean / most as f64;
        sum += probability;
    }
    most
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned()
}

#[test]
fn lines_by_chance() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let new = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64
    };
    let seed = number("TAMIS_SEED").unwrap_or_else(new);
    let cases = cases(100);
    // Not with `println!`, which is silent if the test succeeds.
    let _ = writeln!(std::io::stderr(), "TAMIS_SEED={seed}");
    let (alive, watched) = mpsc::channel();
    let watch = std::thread::spawn(move || {
        let mut last = String::new();
        loop {
            match watched.recv_timeout(Duration::from_secs(600)) {
                Ok(told) => last = told,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let _ = writeln!(std::io::stderr(), "no end of {last}");
                    std::process::abort();
                }
            }
        }
    });
    let (mut lost, mut mean) = (0, 0.0);
    for number in 0..cases {
        let mut case = Case::draw(seed, number);
        alive.send(case.told.clone()).unwrap();
        run(&mut case);
        let (more_lost, more_mean) = case.tally.get();
        lost += more_lost;
        mean += more_mean;
    }
    let most = most_lost(mean);
    assert!(
        lost <= most,
        "TAMIS_SEED={seed}: {lost} keys lost in all, {most} may be"
    );
    drop(alive);
    watch.join().unwrap();
}
