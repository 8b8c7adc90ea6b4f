//! `tamis dedup` beside the command-line tools for the same job: whole
//! processes, from the page cache to a file in memory.
//!
//! Generates its input, installs the peers from the registry, and checks that
//! all print the same before anything is compared.

use crate::clock::Rounds;
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const PEERS: [&str; 3] = ["huniq", "xuniq", "runiq"];
const DUPLICATES: f64 = 0.3;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let lines = args.take("--lines", "1e7")?;
    let rounds = args.take("--rounds", "5")?;
    args.finish()?;
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tools = bench.join("target/peers");
    install_peers(&tools)?;
    let tamis = build_tamis(bench)?;
    let place = Place::make()?;
    let input = place.0.join("urls.txt");
    generate(&input, number(&lines)?).map_err(|e| format!("{}: {e}", input.display()))?;
    compare(&tamis, &tools, &place.0, &lines, &rounds)
}

/// Removed with all that is in it.
pub struct Place(pub PathBuf);

impl Place {
    /// In memory if the system has such a place, so that no disk is measured.
    pub fn make() -> Result<Self, String> {
        let shared = Path::new("/dev/shm");
        let home = if shared.is_dir() {
            shared.into()
        } else {
            std::env::temp_dir()
        };
        Self::make_in(home)
    }

    pub fn make_in(home: PathBuf) -> Result<Self, String> {
        let place = home.join(format!("tamis-bench-{}", std::process::id()));
        fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        Ok(Self(place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn compare(
    tamis: &Path,
    tools: &Path,
    place: &Path,
    lines: &str,
    rounds: &str,
) -> Result<Suite, String> {
    let input = place.join("urls.txt");
    let expected = output_of_awk(&input, place)?;
    let mut all_cores = Rounds::new();
    let mut one_core = Rounds::new();
    let mut exact = Rounds::new();
    let mut memory = Vec::new();
    for _ in 0..number(rounds)? {
        let ours = |flags: &[&str]| {
            let mut command = Command::new(tamis);
            command.arg("dedup").arg("--quiet").args(flags).arg(&input);
            measure(command, place, None, &expected, flags.contains(&"--exact"))
        };
        let (all, one, exactly) = (ours(&[])?, ours(&["-j", "1"])?, ours(&["--exact"])?);
        let mut peers = Vec::new();
        for peer in PEERS {
            let command = Command::new(tools.join("bin").join(peer));
            peers.push(measure(command, place, Some(&input), &expected, true)?);
        }
        let times = |ours: &Run| {
            let all = std::iter::once(ours).chain(&peers);
            all.map(|run| run.ns / number(lines).unwrap_or(1) as f64)
                .collect::<Vec<_>>()
        };
        all_cores.add(times(&all).into_iter());
        one_core.add(times(&one).into_iter());
        exact.add(times(&exactly).into_iter());
        memory = std::iter::once(&all)
            .chain(&peers)
            .map(|run| run.peak)
            .collect();
    }
    let group = format!("{:.0} M lines", number(lines)? as f64 / 1e6);
    Ok(Suite {
        name: "dedup".into(),
        title: "Distinct lines of URLs, 30 % duplicates".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- dedup --lines {lines} --rounds {rounds}"
        ),
        machine: machine(),
        peers: std::iter::once("Tamis")
            .chain(PEERS)
            .map(String::from)
            .collect(),
        rows: vec![
            Row::times(&group, "all cores", &all_cores),
            Row::times(&group, "-j 1", &one_core),
            Row::times(&group, "--exact", &exact),
            Row::memory(&group, "peak memory", memory),
        ],
    })
}

struct Run {
    ns: f64,
    /// Peak resident memory in bytes.
    peak: f64,
}

/// Runs a command with its output to a file, and compares that with what awk
/// printed: the same lines, up to the few that a filter may drop.
fn measure(
    mut command: Command,
    place: &Path,
    stdin: Option<&Path>,
    expected: &Path,
    exact: bool,
) -> Result<Run, String> {
    let name = format!("{:?}", command.get_program());
    let output = place.join("out");
    let fail = |e: std::io::Error| format!("{name}: {e}");
    command
        .stdout(File::create(&output).map_err(fail)?)
        .stderr(Stdio::null());
    match stdin {
        Some(path) => command.stdin(File::open(path).map_err(fail)?),
        None => command.stdin(Stdio::null()),
    };
    let start = Instant::now();
    let child = command.spawn().map_err(fail)?;
    let (status, peak) = wait(child)?;
    let ns = start.elapsed().as_nanos() as f64;
    if status != 0 {
        return Err(format!("{name} ended with {status}"));
    }
    if exact {
        return match same_bytes(&output, expected)? {
            true => Ok(Run { ns, peak }),
            false => Err(format!("{name} printed something else than awk")),
        };
    }
    // One line in a million may be missing; none may be there twice.
    let printed = fs::metadata(&output).map_err(fail)?.len();
    let expected = fs::metadata(expected).map_err(fail)?.len();
    if printed > expected || expected - printed > 2000 {
        return Err(format!(
            "{name} printed {printed} bytes instead of {expected}"
        ));
    }
    Ok(Run { ns, peak })
}

/// The exit status and the peak resident memory of a child.
fn wait(child: std::process::Child) -> Result<(i32, f64), String> {
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, which the call fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are valid, and the child is ours and not waited for.
    let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    match pid {
        -1 => Err(std::io::Error::last_os_error().to_string()),
        _ => Ok((status, usage.ru_maxrss as f64 * 1024.0)),
    }
}

/// What awk prints, in a file: held in our memory it would count as that of
/// every child.
fn output_of_awk(input: &Path, place: &Path) -> Result<PathBuf, String> {
    let path = place.join("expected");
    let fail = |e: std::io::Error| format!("awk: {e}");
    let status = Command::new("awk")
        .arg("!s[$0]++")
        .arg(input)
        .stdout(File::create(&path).map_err(fail)?)
        .status()
        .map_err(fail)?;
    match status.success() {
        true => Ok(path),
        false => Err("awk failed".into()),
    }
}

fn same_bytes(a: &Path, b: &Path) -> Result<bool, String> {
    let status = Command::new("cmp").arg("-s").arg(a).arg(b).status();
    Ok(status.map_err(|e| format!("cmp: {e}"))?.success())
}

fn install_peers(tools: &Path) -> Result<(), String> {
    for peer in PEERS {
        if tools.join("bin").join(peer).exists() {
            continue;
        }
        eprintln!("installing {peer}");
        let status = Command::new("cargo")
            .args(["install", "--quiet", "--locked", "--root"])
            .arg(tools)
            .arg(peer)
            .status()
            .map_err(|e| format!("cargo: {e}"))?;
        if !status.success() {
            return Err(format!("cargo install {peer} failed"));
        }
    }
    Ok(())
}

pub fn build_tamis(bench: &Path) -> Result<PathBuf, String> {
    let manifest = bench.join("../Cargo.toml");
    let target = bench.join("../target");
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "tamis-cli",
            "--manifest-path",
        ])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    match status.success() {
        true => Ok(target.join("release/tamis")),
        false => Err("building tamis failed".into()),
    }
}

/// URL lines of about 60 bytes. A line is a function of its id; a duplicate
/// repeats an id drawn evenly from those already used.
fn generate(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut random = Random(1);
    let mut used = 0;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for _ in 0..lines {
        let repeat = used > 0 && (random.next() >> 11) as f64 * 0.5f64.powi(53) < DUPLICATES;
        let id = match repeat {
            true => random.below(used),
            false => {
                used += 1;
                used - 1
            }
        };
        write_url(&mut out, id)?;
    }
    out.flush()
}

fn write_url(out: &mut impl Write, id: u64) -> std::io::Result<()> {
    const HOSTS: [&str; 8] = ["www", "shop", "blog", "cdn", "api", "news", "docs", "forum"];
    const SECTIONS: [&str; 8] = [
        "article", "products", "category", "user", "archive", "item", "images", "search",
    ];
    let mut random = Random(id.wrapping_mul(0xA076_1D64_78BD_642F));
    let host = HOSTS[random.below(8) as usize];
    let site = random.below(50_000);
    let section = SECTIONS[random.below(8) as usize];
    writeln!(
        out,
        "https://{host}.site{site}.example.com/{section}/{:010x}?id={id}",
        random.next() >> 24
    )
}

/// SplitMix64: small, seeded, good enough for test data.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}
