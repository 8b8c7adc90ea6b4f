//! Other systems' files, asked by Tamis and by their own programs and libraries:
//! the same file, the same keys, in turns.

use crate::clock::{self, Rounds};
use crate::dedup::{Place, build_tamis};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use tamis_formats::{Create, Foreign, Optimise};

/// Keys of each list that is asked in a round.
const ASKED: u64 = 1 << 20;
const GUAVA: &str = "/usr/share/java/guava.jar";

pub fn run(mut args: Args) -> Result<Suite, String> {
    let keys = args.take("--keys", "1e7")?;
    let rounds = args.take("--rounds", "9")?;
    let python = args.take("--python", "target/venv-peers/bin/python")?;
    args.finish()?;
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    let n = number(&keys)?;
    let work = Work {
        place: Place::make()?,
        present: (0..ASKED).map(|i| key(i * (n / ASKED).max(1))).collect(),
        absent: (n..n + ASKED).map(key).collect(),
        n,
        rounds: number(&rounds)?,
    };
    work.write_keys().map_err(text)?;
    let mut suite = Suite {
        name: "formats".into(),
        title: format!("Other systems' files of {keys} keys at a rate of 0.01"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- formats --keys {keys} --rounds {rounds}"
        ),
        machine: machine(),
        peers: vec!["Tamis".into(), "its own".into()],
        rows: Vec::new(),
    };
    suite.rows.extend(guava(&work)?);
    suite.rows.extend(poppy(&work, &python, bench)?);
    suite.rows.push(dcso(&work, bench)?);
    suite.rows.extend(redisbloom(&work)?);
    Ok(suite)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// 20 bytes, as an identifier has.
fn key(i: u64) -> String {
    format!("user{:016x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

struct Work {
    place: Place,
    present: Vec<String>,
    absent: Vec<String>,
    n: u64,
    rounds: u64,
}

impl Work {
    fn path(&self, name: &str) -> PathBuf {
        self.place.0.join(name)
    }

    fn write_keys(&self) -> std::io::Result<()> {
        for (name, keys) in [("present", &self.present), ("absent", &self.absent)] {
            fs::write(self.path(name), keys.join("\n") + "\n")?;
        }
        Ok(())
    }

    /// A filter with all keys, and its file.
    fn filter(&self, name: &str, what: Create) -> Result<(Foreign<'static>, PathBuf), String> {
        eprintln!("{name}: adding {} keys", self.n);
        let mut filter = tamis_formats::create(what, self.n, 0.01).map_err(text)?;
        for i in 0..self.n {
            filter.insert(key(i).as_bytes()).map_err(text)?;
        }
        let path = self.path(name);
        fs::write(&path, filter.to_bytes()).map_err(text)?;
        Ok((filter, path))
    }
}

/// The processor time a key takes in a batch, and how many were found.
fn in_batches(filter: &Foreign<'_>, keys: &[String]) -> (f64, usize) {
    let mut found = vec![false; keys.len()];
    let time = clock::time(|| {
        for (keys, found) in keys.chunks(1 << 14).zip(found.chunks_mut(1 << 14)) {
            filter.contains_many(keys, found);
        }
    });
    let count = found.into_iter().filter(|yes| *yes).count();
    (time.as_nanos() as f64 / keys.len() as f64, count)
}

/// A program that answers a line of numbers for each line.
struct Peer {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(mut command: Command) -> Result<Self, String> {
        let name = format!("{:?}", command.get_program());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().map_err(|e| format!("{name}: {e}"))?;
        let questions = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self {
            child,
            questions,
            answers,
        })
    }

    fn round<const N: usize>(&mut self) -> Result<[f64; N], String> {
        writeln!(self.questions, "go").map_err(text)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(text)?;
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|e| format!("{line:?}: {e}"))?;
        <[f64; N]>::try_from(numbers).map_err(|_| format!("a peer said {line:?}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn same(who: &str, ours: usize, theirs: f64) -> Result<(), String> {
    match ours as f64 == theirs {
        true => Ok(()),
        false => Err(format!("{who} found {theirs} keys, Tamis {ours}")),
    }
}

/// Guava in a warm Java machine, one key after the other as its interface has it.
fn guava(work: &Work) -> Result<Vec<Row>, String> {
    let (filter, path) = work.filter("guava", Create::guava())?;
    let classes = work.path("classes");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/java/GuavaBench.java");
    let compiled = Command::new("ecj")
        .args(["-11", "-nowarn", "-proc:none", "-cp", GUAVA, "-d"])
        .args([&classes, Path::new(source)])
        .status();
    if !compiled.map_err(|e| format!("ecj: {e}"))?.success() {
        return Err("GuavaBench.java was not compiled: install ecj and libguava-java".into());
    }
    let mut java = Command::new("java");
    java.arg("-cp")
        .arg(format!("{}:{GUAVA}", classes.display()))
        .arg("GuavaBench")
        .args([&path, &work.path("present"), &work.path("absent")]);
    let mut java = Peer::start(java)?;
    let (mut present, mut absent) = (Rounds::new(), Rounds::new());
    for _ in 0..work.rounds {
        let [theirs, found, theirs_absent, wrong] = java.round()?;
        let (ours, yes) = in_batches(&filter, &work.present);
        same("Guava", yes, found)?;
        present.add([ours, theirs].into_iter());
        let (ours, yes) = in_batches(&filter, &work.absent);
        same("Guava", yes, wrong)?;
        absent.add([ours, theirs_absent].into_iter());
    }
    let group = "Guava 31.1, warm JVM";
    Ok(vec![
        Row::times(group, "present", &present),
        Row::times(group, "absent", &absent),
    ])
}

/// poppy's package for Python and ours, both from Python.
fn poppy(work: &Work, python: &str, bench: &Path) -> Result<Vec<Row>, String> {
    let python = bench.join("..").join(python);
    let mut rows = Vec::new();
    for (group, what) in [
        ("poppy-py, DCSO's file, in Python", Create::Dcso),
        (
            "poppy-py, its own file, in Python",
            Create::Poppy(Optimise::None),
        ),
    ] {
        let (_, path) = work.filter("poppy", what)?;
        let mut command = Command::new(&python);
        command.arg(bench.join("python/formats.py")).args([
            &path,
            &work.path("present"),
            &work.path("absent"),
        ]);
        let mut peer = Peer::start(command)?;
        let (mut present, mut absent) = (Rounds::new(), Rounds::new());
        for _ in 0..work.rounds {
            let [
                theirs,
                found,
                ours,
                yes,
                theirs_absent,
                wrong,
                ours_absent,
                ours_wrong,
            ] = peer.round()?;
            same("poppy", yes as usize, found)?;
            same("poppy", ours_wrong as usize, wrong)?;
            present.add([ours, theirs].into_iter());
            absent.add([ours_absent, theirs_absent].into_iter());
        }
        rows.push(Row::times(group, "present", &present));
        rows.push(Row::times(group, "absent", &absent));
    }
    Ok(rows)
}

/// DCSO's command and ours, whole processes: lines in, those found out.
fn dcso(work: &Work, bench: &Path) -> Result<Row, String> {
    let tamis = build_tamis(bench, "")?;
    let (_, path) = work.filter("dcso", Create::Dcso)?;
    let input = work.path("both");
    fs::write(
        &input,
        [&work.present[..], &work.absent].concat().join("\n") + "\n",
    )
    .map_err(text)?;
    let mut rounds = Rounds::new();
    for _ in 0..work.rounds {
        let mut outputs = Vec::new();
        let mut times = Vec::new();
        for (program, arguments) in [
            (&*tamis, &["check", "--format", "keys=utf8"][..]),
            (Path::new("bloom"), &["check"]),
        ] {
            let out = work.path("out");
            let start = Instant::now();
            let status = Command::new(program)
                .args(arguments)
                .arg(&path)
                .stdin(File::open(&input).map_err(text)?)
                .stdout(File::create(&out).map_err(text)?)
                .status()
                .map_err(|e| format!("{}: {e}", program.display()))?;
            times.push(start.elapsed().as_nanos() as f64 / (2 * ASKED) as f64);
            if !status.success() {
                return Err(format!("{} ended with {status}", program.display()));
            }
            outputs.push(fs::read(&out).map_err(text)?);
        }
        if outputs[0] != outputs[1] {
            return Err("DCSO's command and Tamis print different keys".into());
        }
        rounds.add(times.into_iter());
    }
    Ok(Row::times(
        "DCSO's command 0.2.4, whole process",
        "half present",
        &rounds,
    ))
}

/// The module is in no package registry: beside our batches stands what it does
/// inside the server, one key after the other, without the server.
fn redisbloom(work: &Work) -> Result<Vec<Row>, String> {
    let what = Create::RedisBloom {
        growth: Some(2),
        chunks: false,
    };
    let (filter, _) = work.filter("redisbloom", what)?;
    let group = "RedisBloom's file, our loop without a server";
    let mut rows = Vec::new();
    for (task, keys) in [("present", &work.present), ("absent", &work.absent)] {
        let mut rounds = Rounds::new();
        for _ in 0..work.rounds {
            let (ours, found) = in_batches(&filter, keys);
            let mut count = 0;
            let alone = clock::time(|| {
                count = keys
                    .iter()
                    .filter(|key| filter.contains(key.as_bytes()))
                    .count();
            });
            same("one by one", found, count as f64)?;
            let alone = alone.as_nanos() as f64 / keys.len() as f64;
            rounds.add([ours, alone].into_iter());
        }
        rows.push(Row::times(group, task, &rounds));
    }
    Ok(rows)
}
