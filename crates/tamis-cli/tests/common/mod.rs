//! Runs the real command in a temporary folder.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::RwLock;
use tempfile::TempDir;

/// Held while writing files, so that no child starts meanwhile: the child would have them open until its program runs,
/// and `tamis index` treats a file that is open for writing as busy.
static FILES: RwLock<()> = RwLock::new(());

/// How many random cases a test draws: `usual`, or `TAMIS_CASES`.
pub(crate) fn cases(usual: u64) -> u64 {
    std::env::var("TAMIS_CASES").map_or(usual, |n| n.parse().expect("TAMIS_CASES is a number"))
}

/// Lines of keys, distinct by number.
pub(crate) fn keys(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("key{i}\n")).collect()
}

pub(crate) struct Sandbox(TempDir);

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let _held = FILES.read().unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names in the folder, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The command, which the caller may change and run.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs `tamis` with these arguments.
    pub(crate) fn run(&self, line: &str) -> Ran {
        let mut command = self.command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ran::from(start(&mut command).wait_with_output().unwrap())
    }

    /// Runs `tamis` with these arguments and this standard input.
    pub(crate) fn feed(&self, line: &str, input: impl AsRef<[u8]>) -> Ran {
        self.feed_to(self.command(line), input)
    }

    /// Runs a command with this standard input.
    pub(crate) fn feed_to(&self, mut command: Command, input: impl AsRef<[u8]>) -> Ran {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = start(&mut command);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || {
            // The command may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::from(output)
    }

    /// Runs `tamis`, which must succeed.
    pub(crate) fn ok(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "tamis {line}: {}", ran.err);
        ran
    }
}

/// Starts a child that doesn't inherit other tests' files.
pub(crate) fn start(command: &mut Command) -> Child {
    let alone = FILES.write().unwrap();
    let child = command.spawn();
    drop(alone);
    child.unwrap()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            // There is no code if a signal killed it.
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }
}
