//! `tamis dedup` beside the command-line tools for the same job: whole
//! processes, from the page cache to a file in memory.
//!
//! Generates its input, installs the peers, and checks what each of them
//! prints before anything is compared. A peer that can't be had is left out,
//! and said to be.

use crate::clock::Rounds;
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Peers that the registry has.
const CRATES: [&str; 3] = ["xuniq", "huniq", "runiq"];
const DUPLICATES: f64 = 0.3;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let lines = args.take("--lines", "1e7")?;
    let rounds = args.take("--rounds", "5")?;
    args.finish()?;
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tools = tools(bench)?;
    let place = Place::make()?;
    let input = place.0.join("urls.txt");
    generate(&input, number(&lines)?).map_err(|e| format!("{}: {e}", input.display()))?;
    compare(&tools, &place.0, &lines, &rounds)
}

/// A program for the job.
struct Tool {
    name: &'static str,
    /// Its arguments come first, and then the input, if it takes that as a file.
    program: PathBuf,
    arguments: Vec<String>,
    takes_file: bool,
    prints: Prints,
}

/// What to expect of a tool's output.
#[derive(Clone, Copy, PartialEq)]
enum Prints {
    /// Every line, as cat does: what reading and writing alone take.
    All,
    /// The distinct lines where they first occur, byte for byte.
    Distinct,
    /// The same, without one in a million.
    Nearly,
    /// The distinct lines in some other order.
    Unordered,
}

impl Tool {
    fn new(name: &'static str, program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        Self {
            name,
            program: program.into(),
            arguments: arguments.iter().map(|&text| text.into()).collect(),
            takes_file: true,
            prints: Prints::Distinct,
        }
    }

    fn prints(self, prints: Prints) -> Self {
        Self { prints, ..self }
    }

    fn from_stdin_alone(self) -> Self {
        Self {
            takes_file: false,
            ..self
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Bytes are compared, not what a language makes of them.
        command.args(&self.arguments).env("LC_ALL", "C");
        command
    }
}

/// All that can be had; the first is what the others are compared with.
fn tools(bench: &Path) -> Result<Vec<Tool>, String> {
    let tamis = build_tamis(bench, "")?;
    let mut tools = vec![
        Tool::new("tamis dedup", &tamis, &["dedup", "--quiet"]).prints(Prints::Nearly),
        Tool::new("-j 1", &tamis, &["dedup", "--quiet", "-j", "1"]).prints(Prints::Nearly),
        Tool::new("--exact", &tamis, &["dedup", "--quiet", "--exact"]),
        Tool::new("cat", "cat", &[]).prints(Prints::All),
    ];
    let peers = bench.join("target/peers");
    for name in CRATES {
        match install(&peers, name) {
            Ok(program) => tools.push(Tool::new(name, program, &[]).from_stdin_alone()),
            Err(why) => eprintln!("left out: {why}"),
        }
    }
    match install_duckdb(bench) {
        Ok(python) => {
            const QUERY: &str = "import duckdb, sys\n\
                duckdb.sql(\"COPY (SELECT DISTINCT line FROM read_csv('\" + (sys.argv[1:] or ['/dev/stdin'])[0] + \"', \
                header=false, auto_detect=false, delim='\\x01', quote='', escape='', columns={'line': 'VARCHAR'})) \
                TO '/dev/stdout' (header false, delim '\\x01', quote '')\")";
            let duckdb = Tool::new("duckdb", python, &["-c", QUERY]);
            tools.push(duckdb.prints(Prints::Unordered));
        }
        Err(why) => eprintln!("left out: {why}"),
    }
    tools.push(Tool::new("sort -u", "sort", &["-u"]).prints(Prints::Unordered));
    tools.push(Tool::new("awk", "awk", &["!s[$0]++"]));
    Ok(tools)
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

fn compare(tools: &[Tool], place: &Path, lines: &str, rounds: &str) -> Result<Suite, String> {
    let input = place.join("urls.txt");
    let expected = output_of_awk(&input, place)?;
    let (mut of_file, mut of_pipe) = (Rounds::new(), Rounds::new());
    let mut memory = vec![0.0; tools.len()];
    for _ in 0..number(rounds)? {
        let (mut files, mut pipes) = (Vec::new(), Vec::new());
        for (tool, memory) in tools.iter().zip(&mut memory) {
            let [file, pipe] = [Source::File, Source::Pipe]
                .map(|from| measure(tool, from, &input, place, &expected));
            let (file, pipe) = (file?, pipe?);
            *memory = file.peak.max(pipe.peak).max(*memory);
            files.push(file.ns / number(lines)? as f64);
            pipes.push(pipe.ns / number(lines)? as f64);
        }
        of_file.add(files.into_iter());
        of_pipe.add(pipes.into_iter());
    }
    let group = match number(lines)? {
        lines if lines >= 1_000_000 => format!("{:.0} M lines", lines as f64 / 1e6),
        lines => format!("{lines} lines"),
    };
    Ok(Suite {
        name: "dedup".into(),
        title: "Distinct lines of URLs, 30 % duplicates".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- dedup --lines {lines} --rounds {rounds}"
        ),
        machine: machine(),
        peers: tools.iter().map(|tool| tool.name.into()).collect(),
        rows: vec![
            Row::times(&group, "a file", &of_file),
            Row::times(&group, "a pipe", &of_pipe),
            Row::memory(&group, "peak memory", memory),
        ],
    })
}

/// Where a tool reads.
#[derive(Clone, Copy)]
enum Source {
    File,
    Pipe,
}

struct Run {
    ns: f64,
    /// Peak resident memory in bytes.
    peak: f64,
}

/// Runs a tool with its output to a file, and compares that with what awk
/// printed.
fn measure(
    tool: &Tool,
    from: Source,
    input: &Path,
    place: &Path,
    expected: &Path,
) -> Result<Run, String> {
    let name = tool.name;
    let output = place.join("out");
    let fail = |e: std::io::Error| format!("{name}: {e}");
    let mut command = tool.command();
    command
        .stdout(File::create(&output).map_err(fail)?)
        .stderr(Stdio::inherit());
    let start = Instant::now();
    let mut writer = None;
    match from {
        Source::File if tool.takes_file => {
            command.arg(input).stdin(Stdio::null());
        }
        Source::File => {
            command.stdin(File::open(input).map_err(fail)?);
        }
        Source::Pipe => {
            let mut cat = Command::new("cat");
            let mut cat = cat
                .arg(input)
                .stdout(Stdio::piped())
                .spawn()
                .map_err(fail)?;
            command.stdin(cat.stdout.take().ok_or("cat has no output")?);
            writer = Some(cat);
        }
    }
    let child = command.spawn().map_err(fail)?;
    // Or the pipe would stay open here.
    drop(command);
    let (status, peak) = wait(child)?;
    let ns = start.elapsed().as_nanos() as f64;
    if let Some(mut cat) = writer {
        cat.wait().map_err(fail)?;
    }
    if status != 0 {
        return Err(format!("{name} ended with {status}"));
    }
    check(tool, &output, input, expected)?;
    Ok(Run { ns, peak })
}

/// Whether a tool did the job.
fn check(tool: &Tool, output: &Path, input: &Path, expected: &Path) -> Result<(), String> {
    let size = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(e) => Err(format!("{}: {e}", path.display())),
    };
    let (printed, distinct) = (size(output)?, size(expected)?);
    let did = match tool.prints {
        Prints::All => same_bytes(output, input)?,
        Prints::Distinct => same_bytes(output, expected)?,
        // Some 60 bytes of a line in a million, and some more by chance.
        Prints::Nearly => printed <= distinct && distinct - printed <= 2000,
        Prints::Unordered => printed == distinct,
    };
    match did {
        true => Ok(()),
        false => Err(format!(
            "{} printed something else than awk: {printed} bytes, and awk {distinct}",
            tool.name
        )),
    }
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

/// A program of the registry.
fn install(peers: &Path, name: &str) -> Result<PathBuf, String> {
    let program = peers.join("bin").join(name);
    if !program.exists() {
        eprintln!("installing {name}");
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "--root"]);
        done(install.arg(peers).arg(name))?;
    }
    Ok(program)
}

/// The Python that has DuckDB.
fn install_duckdb(bench: &Path) -> Result<PathBuf, String> {
    let venv = bench.join("target/duckdb");
    let python = venv.join("bin/python");
    let mut look = Command::new(&python);
    if done(look.args(["-c", "import duckdb"]).stderr(Stdio::null())).is_err() {
        eprintln!("installing duckdb");
        done(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        done(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb"]))?;
    }
    Ok(python)
}

fn done(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(e) => Err(format!("{command:?}: {e}")),
    }
}

pub fn build_tamis(bench: &Path, features: &str) -> Result<PathBuf, String> {
    let manifest = bench.join("../Cargo.toml");
    let target = bench.join("../target");
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "tamis-cli",
            "--features",
            features,
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
pub fn generate(path: &Path, lines: u64) -> std::io::Result<()> {
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
