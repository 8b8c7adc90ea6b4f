//! Random command lines of `tamis dedup`: shapes of input, options and faults, against an exact oracle.
//!
//! Each run draws a new seed and prints it. `TAMIS_SEED=N` repeats one, and `TAMIS_CASES=N` draws N lines instead of
//! 100.

use crate::common::{Ran, Sandbox, cases, start};
use crate::random::input::{Input, Record};
use crate::random::{Random, packed};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
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

fn run(case: &mut Case) {
    let options = case.options();
    let seen = case.prepare(&options);
    let line = match case.output {
        Some(output) => format!("{options} -o {output}"),
        None => options.clone(),
    };
    let _ = write!(case.told, ": tamis {line}");
    match case.fault {
        Fault::None => without_fault(case, line, &seen),
        Fault::CutInput | Fault::MissingFile => bad_input(case, &line, &seen),
        Fault::FullDisk => full_disk(case, &line, &options, &seen),
        Fault::ClosedPipe => closed_pipe(case, &line),
        Fault::Signal(signal) => stopped(case, signal, &line, &options, &seen),
    }
}

fn without_fault(case: &mut Case, mut line: String, seen: &HashSet<String>) {
    let is_dry = case.has_filter() && case.random.below(4) == 0;
    if is_dry {
        line += " --dry-run";
    }
    let counts = case.output.is_none() && case.random.below(4) == 0;
    let duplicates = case.random.below(4) == 0;
    for (is_so, word) in [(counts, " --count"), (duplicates, " -v")] {
        if is_so {
            line += word;
        }
    }
    case.told += &line;
    let before = case
        .dir
        .path("seen")
        .exists()
        .then(|| case.dir.read("seen"));
    let (named, stdin) = case.input.write(&case.dir, &mut case.random);
    let ran = case.dir.feed(&format!("{line} {named}"), stdin);
    assert_eq!(ran.code, 0, "{}: {}", case.told, ran.err);
    if is_dry {
        let after = case
            .dir
            .path("seen")
            .exists()
            .then(|| case.dir.read("seen"));
        assert!(before == after, "{}: the filter has changed", case.told);
    }
    let mut known = seen.clone();
    let (new, old): (Vec<&Record>, Vec<&Record>) = case
        .input
        .records()
        .partition(|record| known.insert(record.key.clone()));
    // Wrongly dropped records are among the duplicates.
    let expected = if duplicates { old.len() } else { new.len() };
    if counts {
        let said: usize = ran.text().trim().parse().unwrap();
        let lost = if duplicates {
            said.checked_sub(expected)
        } else {
            expected.checked_sub(said)
        };
        let Some(lost) = lost else {
            panic!("{}: {said}, expected {expected}", case.told);
        };
        case.check_lost(lost, new.len());
        return;
    }
    let out = if case.output.is_some() {
        case.written()
    } else {
        ran.out
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole, "{}", case.told);
    // In input order, and exactly the first occurrence.
    let (more, fewer) = if duplicates {
        (&printed, &old)
    } else {
        (&new, &printed)
    };
    let mut all = more.iter();
    for record in fewer {
        let is_next = all.any(|other| other.text == record.text);
        assert!(
            is_next,
            "{}: {:?} is out of place",
            case.told,
            shown(&record.text)
        );
    }
    case.check_lost(more.len() - fewer.len(), new.len());
}

/// The rest is read; and once the input is complete again, a second run with the filter prints what was missing.
fn bad_input(case: &mut Case, line: &str, seen: &HashSet<String>) {
    let (good, other) = case.input.halves();
    let named = case.input.write_files(&case.dir, good, &mut case.random);
    let text = case.input.text(other.iter());
    let (end, bytes) = packed::pack(&mut case.random, &text);
    let bad = format!("bad.{end}");
    if case.fault == Fault::CutInput {
        let cut = bytes.len() - 1 - case.random.below(bytes.len() as u64 / 2) as usize;
        case.dir.write(&bad, &bytes[..cut]);
    }
    let ran = case.dir.run(&format!("{line} {named} {bad}"));
    assert_eq!(ran.code, 2, "{}: {}", case.told, ran.err);
    assert!(ran.err.contains(&bad), "{}: {}", case.told, ran.err);
    let out = if case.output.is_some() {
        case.written()
    } else {
        ran.out
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole, "{}", case.told);
    let got = case.keys_once(printed.iter().copied(), seen);
    // The good files are complete, whatever happened with the bad one.
    case.check_union(good, &got, seen);
    if case.has_filter() {
        remove_outputs(case);
        case.dir.write(&bad, &bytes);
        let again = case.dir.run(&format!("{line} {named} {bad}"));
        assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
        let out = if case.output.is_some() {
            case.written()
        } else {
            again.out
        };
        let (more, _) = case.parse(&out);
        case.check_complete(printed.into_iter().chain(more), seen);
    }
}

fn remove_outputs(case: &Case) {
    for name in OUTPUTS {
        for name in [name.to_owned(), format!("{name}.partial")] {
            let _ = std::fs::remove_file(case.dir.path(&name));
        }
    }
}

/// The output is correct, and a second run adds everything missing.
fn full_disk(case: &mut Case, line: &str, options: &str, seen: &HashSet<String>) {
    let (first, second) = case.input.halves();
    let all = [first, second].concat();
    let named = case.input.write_files(&case.dir, &all, &mut case.random);
    let tamis = env!("CARGO_BIN_EXE_tamis");
    let blocks = case.random.pick(&[1, 8, 100, 10_000]);
    let script = format!("ulimit -f {blocks}; exec {tamis} {line} {named} > printed");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(case.dir.path("."));
    let child = start(
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!([0, 2].contains(&ran.code), "{}: {}", case.told, ran.err);
    let out = match case.output {
        // An encoder's incomplete output can't be unpacked.
        Some(name) if name != "out" && ran.code != 0 => Vec::new(),
        Some(_) => case.written(),
        None => case.dir.read("printed"),
    };
    let claims_nothing = out.is_empty() && ran.code != 0;
    let (printed, _) = case.parse(&out);
    rerun(case, &printed, options, &named, seen, claims_nothing);
}

/// The rest of the records, by a second run with the filter, if there is one.
fn rerun(
    case: &Case,
    printed: &[&Record],
    options: &str,
    named: &str,
    seen: &HashSet<String>,
    claims_nothing: bool,
) {
    let mut got = case.keys_once(printed.iter().copied(), seen);
    if !case.has_filter() {
        return;
    }
    let again = case.dir.run(&format!("{options} {named}"));
    assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
    let (more, is_whole) = case.parse(&again.out);
    assert!(is_whole, "{}", case.told);
    if claims_nothing {
        case.check_complete(more.into_iter(), seen);
        return;
    }
    got.extend(more.iter().map(|record| &record.key));
    case.check_union(case.input.records(), &got, seen);
}

/// `| head`: the output is a prefix of the expected one.
fn closed_pipe(case: &Case, line: &str) {
    let text = case.input.text(case.input.records());
    let mut child = piped(case, line);
    let writer = feed(&mut child, text);
    let mut some = vec![0; 1000];
    let mut stdout = child.stdout.take().unwrap();
    let mut filled = 0;
    while filled < some.len() {
        match stdout.read(&mut some[filled..]).unwrap() {
            0 => break,
            count => filled += count,
        }
    }
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().unwrap());
    writer.join().unwrap();
    assert_eq!(ran.code, 0, "{}: {}", case.told, ran.err);
    let (printed, _) = case.parse(&some[..filled]);
    let mut got = HashSet::new();
    assert!(
        printed.iter().all(|record| got.insert(&record.key)),
        "{}",
        case.told
    );
}

fn piped(case: &Case, line: &str) -> Child {
    let mut command = case.dir.command(line);
    // Tests may run under nohup, or in the background, where signals are ignored.
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    start(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
}

fn feed(child: &mut Child, text: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        // The command may end before it has read everything.
        let _ = stdin.write_all(&text);
    })
}

/// Stops a run that has read a part and waits for more; its output may or may not be printed yet. Then a second run
/// does everything.
fn stopped(case: &Case, signal: libc::c_int, line: &str, options: &str, seen: &HashSet<String>) {
    let all: Vec<&Record> = case.input.records().collect();
    let text = case.input.text(all.iter().copied().take(all.len() / 2));
    let mut child = piped(case, line);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (said, hear) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut out = Vec::new();
        let mut some = [0; 1 << 16];
        while let Ok(count @ 1..) = stdout.read(&mut some) {
            out.extend_from_slice(&some[..count]);
            let _ = said.send(());
        }
        out
    });
    // Returns once everything except the pipe's content has been read.
    let _ = stdin.write_all(&text);
    let prints =
        case.output.is_none() && all[..all.len() / 2].iter().any(|r| !seen.contains(&r.key));
    if prints {
        // A filter that is wrong about everything prints nothing: then there is nothing to wait for.
        let _ = hear.recv_timeout(Duration::from_secs(5));
    }
    // SAFETY: a signal to a child of ours that we have not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(stdin);
    let piped = reader.join().unwrap();
    // Before the command handles signals, they end it at once.
    assert!(
        [-1, 128 + signal].contains(&ran.code),
        "{}: {}: {}",
        case.told,
        ran.code,
        ran.err
    );
    let ended_well = ran.code == 128 + signal;
    let out = match (case.output, ended_well) {
        (None, _) => piped,
        (Some(_), true) => case.written(),
        (Some(_), false) => Vec::new(),
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole || !ended_well, "{}", case.told);
    case.dir.write("all", case.input.text(all.iter().copied()));
    if ended_well && case.has_filter() {
        let again = case.dir.run(&format!("{options} all"));
        assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
        let (more, _) = case.parse(&again.out);
        case.check_complete(printed.into_iter().chain(more), seen);
    } else {
        rerun(case, &printed, options, "all", seen, false);
    }
}
