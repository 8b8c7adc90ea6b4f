//! Runs the same query with `tamis grep` and with rg.

use super::corpus::Tree;
use super::queries::{Query, Syntax};
use crate::common::{Ran, Sandbox, start};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The tree's name in its sandbox.
pub(crate) const TREE: &str = "tree";

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Ran {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ran::from(start(command).wait_with_output().unwrap())
}

/// A child that is killed when the test ends, even if it fails.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `tamis` with arguments that may contain spaces.
pub(crate) fn tamis<S: AsRef<OsStr>>(dir: &Sandbox, args: impl IntoIterator<Item = S>) -> Ran {
    finish(dir.command("").args(args))
}

/// Runs rg in the sandbox.
pub(crate) fn rg<S: AsRef<OsStr>>(dir: &Sandbox, args: impl IntoIterator<Item = S>) -> Ran {
    let mut command = Command::new("rg");
    command
        .args(args)
        .current_dir(dir.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let found = command.output();
    let found = found
        .unwrap_or_else(|e| panic!("rg: {e}: these tests need ripgrep, Debian's package ripgrep"));
    Ran::from(found)
}

/// A sandbox with a small tree, and its plan.
pub(crate) fn plant(files: u64, bytes: u64, seed: u64) -> (Sandbox, Tree) {
    let dir = Sandbox::new();
    let tree = Tree::new(files, bytes, seed);
    tree.write(&dir.path(TREE), 2).unwrap();
    (dir, tree)
}

/// Whether both print the same, byte for byte, with the same exit; if not, their output.
pub(crate) fn same(dir: &Sandbox, index: &str, query: &Query) -> Result<(), String> {
    let list = format!("patterns-{index}.txt");
    if query.from_file {
        dir.write(&list, query.patterns.join("\n") + "\n");
    }
    let list = Path::new(&list);
    let mut expected = query.for_rg(TREE, list);
    expected.insert(0, "--sort=path".into());
    let theirs = rg(dir, &expected);
    assert!(theirs.code < 2, "rg {expected:?}: {}", theirs.err);
    let asked = query.for_tamis(&[index], list);
    let ours = tamis(dir, &asked);
    if (ours.code, &ours.out) == (theirs.code, &theirs.out) {
        return Ok(());
    }
    Err(format!(
        "{:?}\ntamis {asked:?}\n{}{}rg {expected:?}\nexit {} and {}{}",
        query.patterns,
        ours.err,
        if ours.code < 2 { "" } else { "an error\n" },
        ours.code,
        theirs.code,
        first_difference(&ours.out, &theirs.out),
    ))
}

/// Asserts that both find a text in the same lines.
pub(crate) fn assert_same(
    dir: &Sandbox,
    index: &str,
    options: &str,
    syntax: Syntax,
    pattern: &str,
) {
    let query = Query::new(options, syntax, vec![pattern.into()]);
    same(dir, index, &query).unwrap_or_else(|difference| panic!("{difference}"));
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> String {
    let show = |line: Option<&[u8]>| match line {
        Some(line) => String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned(),
        None => "(nothing)".into(),
    };
    let (mut our_lines, mut their_lines) =
        (ours.split(|b| *b == b'\n'), theirs.split(|b| *b == b'\n'));
    for number in 1.. {
        let (one, other) = (our_lines.next(), their_lines.next());
        if one != other {
            return format!(
                "\nline {number} of the output:\n  tamis {}\n  rg    {}",
                show(one),
                show(other)
            );
        }
        if one.is_none() {
            break;
        }
    }
    String::new()
}
