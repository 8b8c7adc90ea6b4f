//! The command with different numbers of threads, beside `cat`: whole processes, from the page cache to a file in
//! memory. What is printed must not depend on the number of threads, and is compared.

use crate::clock::Rounds;
use crate::dedup::{Place, build_tamis, generate};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is measured: a shell's words, of which `$TAMIS`, `$J` and the files are set.
const TASKS: [(&str, &str); 9] = [
    ("dedup -o OUT", "exec $TAMIS dedup -q -j $J urls.txt -o out"),
    ("dedup > OUT", "exec $TAMIS dedup -q -j $J urls.txt > out"),
    (
        "dedup --count",
        "exec $TAMIS dedup -q -j $J --count urls.txt > out",
    ),
    (
        "dedup --exact > OUT",
        "exec $TAMIS dedup -q -j $J --exact urls.txt > out",
    ),
    ("from a pipe", "cat urls.txt | $TAMIS dedup -q -j $J > out"),
    ("to a pipe", "$TAMIS dedup -q -j $J urls.txt | cat > out"),
    ("build", "exec $TAMIS build -q -j $J built urls.txt --force"),
    (
        "check --count",
        "exec $TAMIS check -j $J --count known urls.txt > out",
    ),
    (
        "add",
        "cp empty added; exec $TAMIS add -q -j $J added urls.txt",
    ),
];

pub fn run(mut args: Args) -> Result<Suite, String> {
    let lines = args.take("--lines", "6e7")?;
    let threads = args.take("--threads", "1,2,4,8,16")?;
    let rounds = args.take("--rounds", "2")?;
    let only = args.take("--only", "")?;
    let tamis = args.take("--tamis", "")?;
    args.finish()?;
    let tamis = match tamis.as_str() {
        "" => build_tamis(Path::new(env!("CARGO_MANIFEST_DIR")), "")?,
        path => fs::canonicalize(path).map_err(|e| format!("{path}: {e}"))?,
    };
    let place = Place::make()?;
    let input = place.0.join("urls.txt");
    generate(&input, number(&lines)?).map_err(|e| format!("{}: {e}", input.display()))?;
    let bench = Bench {
        tamis,
        folder: place.0.clone(),
    };
    bench.prepare(&lines)?;
    let counts: Vec<&str> = threads.split(',').collect();
    let mut rows = Vec::new();
    let group = format!("{:.0} M lines", number(&lines)? as f64 / 1e6);
    for (name, words) in TASKS.iter().filter(|(name, _)| name.contains(&only)) {
        let mut measured = Rounds::new();
        let mut printed = None;
        for _ in 0..number(&rounds)? {
            let mut times = Vec::new();
            for threads in &counts {
                times.push(bench.time(words, threads)? / number(&lines)? as f64);
                let now = bench.printed(words);
                if printed.get_or_insert(now.clone()) != &now {
                    return Err(format!("{name}: {threads} threads print something else"));
                }
            }
            times.push(bench.time("cat urls.txt > out", "1")? / number(&lines)? as f64);
            eprintln!("{name}: {times:.1?} ns a line");
            measured.add(times.into_iter());
        }
        rows.push(Row::times(&group, name, &measured));
    }
    Ok(Suite {
        name: "scale".into(),
        title: "Threads".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- scale --lines {lines} --threads {threads} --rounds {rounds}"
        ),
        machine: machine(),
        peers: (counts.iter().map(|count| format!("-j {count}")))
            .chain(["cat > OUT".into()])
            .collect(),
        rows,
    })
}

struct Bench {
    tamis: PathBuf,
    folder: PathBuf,
}

impl Bench {
    /// The filters that are asked and added to.
    fn prepare(&self, lines: &str) -> Result<(), String> {
        let words = format!(
            "$TAMIS create empty -n {lines} -p 0.001 > created; cp empty known; awk 'NR % 2' urls.txt | $TAMIS add -q known"
        );
        self.time(&words, "1").map(drop)
    }

    /// Nanoseconds from start to end.
    fn time(&self, words: &str, threads: &str) -> Result<f64, String> {
        // Truncating what a run before has written takes time, too.
        for name in ["out", "built", "added"] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let start = Instant::now();
        let status = Command::new("sh")
            .args(["-c", words])
            .current_dir(&self.folder)
            .env("TAMIS", &self.tamis)
            .env("J", threads)
            .stdin(Stdio::null())
            .status()
            .map_err(|e| format!("sh: {e}"))?;
        match status.success() {
            true => Ok(start.elapsed().as_nanos() as f64),
            false => Err(format!("{words:?} ended with {status}")),
        }
    }

    /// What it left, as a checksum.
    fn printed(&self, words: &str) -> Option<Vec<u8>> {
        let left = ["built", "added", "out"]
            .into_iter()
            .find(|name| words.contains(name))?;
        let file = File::open(self.folder.join(left)).ok()?;
        Some(Command::new("sha1sum").stdin(file).output().ok()?.stdout)
    }
}
