//! `tamis which` and `tamis grep` beside grep: one request's id in a thousand
//! logs, every tenth of them gzipped.
//!
//! Generates the logs, and checks every answer: the file that has the id is
//! named, and the lines found are those of grep.

use crate::clock::Rounds;
use crate::dedup::{Place, Random, build_tamis};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const RATE: f64 = 0.01;
/// Ids asked in one round, of which a round's time is the mean.
const ASKED: u64 = 4;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let files = args.take("--files", "1000")?;
    let size = args.take("--size", "2e6")?;
    let rounds = args.take("--rounds", "5")?;
    args.finish()?;
    let tamis = build_tamis(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    // Where logs live, on a disk; after they are written, they are in the page cache.
    let place = Place::make_in(std::env::temp_dir())?;
    let logs = place.0.join("logs");
    fs::create_dir(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let (count, bytes) = (number(&files)?, number(&size)?);
    for file in 0..count {
        generate(&logs, file, bytes).map_err(|e| format!("{}: {e}", logs.display()))?;
    }
    let suite = Logs {
        tamis: &tamis,
        place: &place.0,
        files: count,
        bytes,
    };
    let rows = suite.compare(number(&rounds)?)?;
    Ok(Suite {
        name: "index".into(),
        title: "One id in a thousand logs".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- index --files {files} --size {size} --rounds {rounds}"
        ),
        machine: machine(),
        peers: vec!["Tamis".into(), "grep".into()],
        rows,
    })
}

struct Logs<'a> {
    tamis: &'a Path,
    place: &'a Path,
    files: u64,
    bytes: u64,
}

impl Logs<'_> {
    fn compare(&self, rounds: u64) -> Result<Vec<Row>, String> {
        let group = format!("{} logs of {:.0} MB", self.files, self.bytes as f64 / 1e6);
        let (mut indexing, mut which, mut grep) = (Rounds::new(), Rounds::new(), Rounds::new());
        // Reading all of it is what indexing has to do at least.
        let (counted, _) = self.run("sh", &["-c", "grep -rc '' logs && zgrep -c '' logs/*.gz"])?;
        let (indexed, _) =
            self.tamis(&["index", "-q", "-o", "ix", "-p", &RATE.to_string(), "logs"])?;
        indexing.add([indexed, counted].into_iter());
        let mut others = 0;
        for round in 0..rounds {
            let (mut ours, mut theirs, mut ours_found, mut theirs_found) = (0.0, 0.0, 0.0, 0.0);
            for asked in 0..ASKED {
                // Of a plain file, which grep finds, too.
                let file = (round * ASKED + asked) * 7919 % self.files / 10 * 10 + 1;
                let id = id(file, (asked * 997 + round) % (self.bytes / 200));
                let (time, candidates) = self.tamis(&["which", "ix", &id])?;
                ours += time;
                let (time, files) = self.run("grep", &["-rlF", &id, "logs"])?;
                theirs += time;
                if !candidates
                    .lines()
                    .any(|candidate| candidate == files.trim())
                {
                    return Err(format!("{id} is in {files}, but which said {candidates}"));
                }
                others += candidates.lines().count() - 1;
                let (time, found) = self.tamis(&["grep", "ix", &id])?;
                ours_found += time;
                let (time, expected) = self.run("grep", &["-rnF", &id, "logs"])?;
                theirs_found += time;
                if found != expected {
                    return Err(format!("{id}: grep found {expected}, tamis {found}"));
                }
            }
            which.add([ours, theirs].into_iter());
            grep.add([ours_found, theirs_found].into_iter());
        }
        let probes = (rounds * ASKED * (self.files - 1)) as f64;
        Ok(vec![
            Row::times(&group, "which file has an id", &which),
            Row::times(&group, "the lines with an id", &grep),
            Row::times(&group, "index (grep: count lines)", &indexing),
            Row::shares(
                &group,
                "other files named",
                vec![others as f64 / probes, 0.0],
            ),
            Row::shares(&group, "index size, of the bound", vec![self.size()?]),
        ])
    }

    /// The size of the index as a share of log2(1/p) bits for each distinct
    /// key of a file, plus the names.
    fn size(&self) -> Result<f64, String> {
        let (_, info) = self.tamis(&["info", "--json", "ix"])?;
        let info: serde_json::Value = serde_json::from_str(&info).map_err(|e| e.to_string())?;
        let field = |name: &str| info[name].as_f64().ok_or(format!("info has no {name}"));
        let bound = field("keys")? * (1.0 / RATE).log2() / 8.0 + field("name_bytes")?;
        println!(
            "{} keys, index {} bytes, bound {bound:.0} bytes",
            field("keys")?,
            field("bytes")?
        );
        Ok(field("bytes")? / bound)
    }

    fn tamis(&self, args: &[&str]) -> Result<(f64, String), String> {
        self.run(&self.tamis.display().to_string(), args)
    }

    /// Nanoseconds, and what was printed.
    fn run(&self, program: &str, args: &[&str]) -> Result<(f64, String), String> {
        let start = Instant::now();
        let output = Command::new(program)
            .args(args)
            .current_dir(self.place)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("{program}: {e}"))?;
        let time = start.elapsed().as_nanos() as f64;
        match output.status.success() {
            true => Ok((time, String::from_utf8_lossy(&output.stdout).into_owned())),
            false => Err(format!("{program} {args:?} ended with {}", output.status)),
        }
    }
}

/// Every line is a request, with an id of its own.
fn id(file: u64, request: u64) -> String {
    format!("{:016x}", Random(file << 32 | request).next())
}

fn generate(logs: &Path, file: u64, bytes: u64) -> std::io::Result<()> {
    const PATHS: [&str; 4] = ["/shop/item", "/cart", "/user/orders", "/search"];
    let path = logs.join(format!("{file:04}.log"));
    let mut random = Random(file);
    let mut out = BufWriter::new(File::create(&path)?);
    let mut written = 0;
    for request in 0.. {
        if written >= bytes {
            break;
        }
        let time = request * 37;
        let line = format!(
            "2026-11-15T{:02}:{:02}:{:02}.{:03}Z INFO web-{} [{}] 10.{}.{}.{}:{} GET {}/{} 200 {} ms\n",
            time / 3_600_000 % 24,
            time / 60_000 % 60,
            time / 1_000 % 60,
            time % 1_000,
            file % 16,
            id(file, request),
            random.below(4),
            random.below(256),
            random.below(256),
            1024 + random.below(60_000),
            PATHS[random.below(4) as usize],
            random.below(20_000),
            random.below(400),
        );
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    out.flush()?;
    if file.is_multiple_of(10) {
        Command::new("gzip").arg(&path).status()?;
    }
    Ok(())
}
