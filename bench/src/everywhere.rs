//! The same filter asked from JavaScript, Java, C and SQL: each language's own program prints what its calls and its
//! peers' take, next to the same work in Rust where that is the measure.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tamis::Blocked;

const GUAVA: &str = "/usr/share/java/guava.jar";

pub fn run(mut args: Args) -> Result<Suite, String> {
    let only = args.take("--only", "js,java,c,sqlite")?;
    let rounds = args.take("--rounds", "3")?;
    let java_keys = args.take("--java-keys", "1e6,5e7")?;
    args.finish()?;
    let rounds = number(&rounds)?;
    let bench = Bench {
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
    };
    let mut rows = Vec::new();
    for language in only.split(',') {
        rows.extend(match language {
            "js" => bench.javascript(rounds)?,
            "java" => bench.java(&java_keys, rounds)?,
            "c" => bench.c(rounds)?,
            "sqlite" => bench.sqlite(rounds)?,
            _ => return Err(format!("--only: no language {language:?}")),
        });
    }
    Ok(Suite {
        name: "everywhere".into(),
        title: "One filter, asked from other languages".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- everywhere --only {only} --rounds {rounds}"
        ),
        machine: machine(),
        peers: vec!["Tamis there".into(), "what it is compared with".into()],
        rows,
    })
}

/// Nanoseconds by name, of one run of a program.
type Printed = BTreeMap<String, f64>;

struct Bench {
    root: PathBuf,
}

impl Bench {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// Runs a program of the repository to its end.
    fn done(&self, program: &str, args: &[&str]) -> Result<(), String> {
        let mut command = self.command(program);
        let status = command.args(args).stdout(Stdio::null()).status();
        let status = status.map_err(|e| format!("{program}: {e}"))?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("{program} {args:?}: {status}")),
        }
    }

    /// What a program prints: lines of a name, a tab and nanoseconds.
    fn printed(&self, program: &str, args: &[&str]) -> Result<Printed, String> {
        eprintln!("{program} {}", args.join(" "));
        let mut command = self.command(program);
        let ran = command.args(args).stderr(Stdio::inherit()).output();
        let ran = ran.map_err(|e| format!("{program}: {e}"))?;
        if !ran.status.success() {
            return Err(format!("{program} {args:?}: {}", ran.status));
        }
        let text = String::from_utf8(ran.stdout).map_err(|e| e.to_string())?;
        let line = |line: &str| {
            let (name, ns) = line.split_once('\t')?;
            Some((name.to_owned(), ns.trim().parse().ok()?))
        };
        text.lines()
            .map(|it| line(it).ok_or_else(|| format!("{program} said {it:?}")))
            .collect()
    }

    /// Everything the package has, next to Rust and to npm's `bloom-filters`.
    fn javascript(&self, rounds: u64) -> Result<Vec<Row>, String> {
        self.done("crates/tamis-wasm/build", &[])?;
        let mut pairs = Pairs::default();
        for _ in 0..rounds {
            let mut all = self.printed("node", &["bench/js/bench.mjs"])?;
            all.extend(native().map_err(|e| e.to_string())?);
            for keys in ["strings", "bytes"] {
                for (task, ours, peer) in [
                    ("has, and Rust's contains", "has", "rust contains"),
                    ("has, and bloom-filters'", "has", "bloom-filters has"),
                    (
                        "hasMany, and Rust's contains_many",
                        "hasMany",
                        "rust contains_many",
                    ),
                ] {
                    let peer = match peer.starts_with("rust") {
                        true => peer.to_owned(),
                        false => format!("{peer} {keys}"),
                    };
                    pairs.add(
                        &all,
                        &format!("{keys}: {task}"),
                        &format!("{ours} {keys}"),
                        &peer,
                    )?;
                }
            }
            let what = "packed bytes: hasMany, and Rust's contains_many";
            pairs.add(&all, what, "hasMany packed", "rust contains_many")?;
        }
        Ok(pairs.rows("Node, 1 M keys"))
    }

    /// In one warm Java machine, next to Guava.
    fn java(&self, keys: &str, rounds: u64) -> Result<Vec<Row>, String> {
        self.done("java/build", &["target/bench-java"])?;
        let jar = "target/bench-java/*"; // its only jar
        let path = format!("target/bench-java:{jar}:{GUAVA}");
        let to = [
            "-cp",
            &path,
            "-d",
            "target/bench-java",
            "bench/java/TamisBench.java",
        ];
        self.done("javac", &to)?;
        let mut rows = Vec::new();
        for keys in keys.split(',') {
            let keys = number(keys)?;
            let mut pairs = Pairs::default();
            for _ in 0..rounds {
                let all = self.printed("java", &["-cp", &path, "TamisBench", &keys.to_string()])?;
                for task in ["present", "absent"] {
                    let what = format!("mightContain, {task}, and Guava's");
                    let (ours, peer) = (format!("tamis {task}"), format!("guava {task}"));
                    pairs.add(&all, &what, &ours, &peer)?;
                }
            }
            rows.extend(pairs.rows(&format!("Java, {} M keys", keys as f64 / 1e6)));
        }
        Ok(rows)
    }

    /// Single calls at a filter in the caches, next to the same loops in Rust.
    fn c(&self, rounds: u64) -> Result<Vec<Row>, String> {
        let mut pairs = Pairs::default();
        for _ in 0..rounds {
            let all = self.printed("bench/c/run", &[])?;
            for call in ["contains", "insert", "insert alone"] {
                let what = format!("{call}, and Rust's");
                pairs.add(&all, &what, &format!("c {call}"), &format!("rust {call}"))?;
            }
        }
        Ok(pairs.rows("C, a filter in the caches"))
    }

    /// A million rows against ten million keys.
    fn sqlite(&self, rounds: u64) -> Result<Vec<Row>, String> {
        let manifest = "crates/tamis-sqlite/Cargo.toml";
        self.done(
            "cargo",
            &["build", "--quiet", "--release", "--manifest-path", manifest],
        )?;
        let target = std::env::var("CARGO_TARGET_DIR");
        let extension = match target {
            Ok(target) => format!("{target}/release/libtamis_sqlite.so"),
            Err(_) => "crates/tamis-sqlite/target/release/libtamis_sqlite.so".into(),
        };
        let mut pairs = Pairs::default();
        for _ in 0..rounds {
            // Debian's Python can load extensions.
            let all = self.printed("/usr/bin/python3", &["bench/sqlite/bench.py", &extension])?;
            for share in ["50 %", "1 %"] {
                for (what, peer) in [
                    ("IN, a table WITHOUT ROWID", "sqlite IN, without rowid"),
                    ("IN, a table with an index", "sqlite IN, index"),
                ] {
                    let task = format!("tamis_check, {share} known, and {what}");
                    let ours = format!("sqlite tamis_check {share}");
                    pairs.add(&all, &task, &ours, &format!("{peer} {share}"))?;
                }
            }
        }
        Ok(pairs.rows("SQLite, 1 M rows, 10 M keys"))
    }
}

/// Ours and another's times, task by task.
#[derive(Default)]
struct Pairs(Vec<(String, Rounds)>);

impl Pairs {
    fn add(&mut self, all: &Printed, task: &str, ours: &str, peer: &str) -> Result<(), String> {
        let of = |name: &str| {
            let names = || all.keys().cloned().collect::<Vec<_>>().join(", ");
            all.get(name)
                .copied()
                .ok_or_else(|| format!("expected a line {name:?}, got {}", names()))
        };
        let times = [of(ours)?, of(peer)?];
        let at = self.0.iter().position(|(it, _)| it == task);
        let at = at.unwrap_or_else(|| {
            self.0.push((task.into(), Rounds::new()));
            self.0.len() - 1
        });
        self.0[at].1.add(times.into_iter());
        Ok(())
    }

    fn rows(self, group: &str) -> Vec<Row> {
        let row = |(task, rounds): (String, Rounds)| Row::times(group, &task, &rounds);
        self.0.into_iter().map(row).collect()
    }
}

/// The work of bench/js/bench.mjs, in Rust.
fn native() -> Result<Printed, tamis::Error> {
    const KEYS: usize = 1_000_000;
    let key = |i: usize| format!("https://example.org/item/{i}");
    let mut filter = Blocked::new(KEYS as u64, 0.01)?;
    // Half of those that are asked are there.
    let keys: Vec<String> = (0..2 * KEYS).map(key).collect();
    filter.insert_many_mut(&keys[..KEYS], &mut vec![false; KEYS]);
    let asked: Vec<&String> = keys.iter().collect();
    let mut answers = vec![false; asked.len()];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..5 {
        let single = clock::time(|| {
            for (key, answer) in asked.iter().zip(&mut answers) {
                *answer = std::hint::black_box(filter.contains(key));
            }
        });
        let batch = clock::time(|| filter.contains_many(&asked, &mut answers));
        for (best, time) in best.iter_mut().zip([single, batch]) {
            *best = best.min(time.as_nanos() as f64 / asked.len() as f64);
        }
    }
    let names = ["rust contains", "rust contains_many"].map(String::from);
    Ok(names.into_iter().zip(best).collect())
}
