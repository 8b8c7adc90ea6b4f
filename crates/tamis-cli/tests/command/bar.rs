//! The progress bar: on a terminal, unless it would mix with records or `-q` forbids it.

use crate::common::Sandbox;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Stdio};

/// Both ends of a terminal: one for us to read, one for the command to write to.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 120,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let none = std::ptr::null_mut();
    // SAFETY: the two numbers are written to, the size is read, and the other arguments are null.
    let opened = unsafe {
        let (ours, theirs) = (&raw mut ours, &raw mut theirs);
        libc::openpty(
            ours,
            theirs,
            none,
            none.cast(),
            (&raw const size).cast_mut(),
        )
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both are open, and nobody else uses them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Reads until the text appears.
fn wait_for(ours: &mut File, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let shown = String::from_utf8_lossy(&seen).into_owned();
        if shown.contains(text) {
            return shown;
        }
        let mut wait = libc::pollfd {
            fd: ours.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: `wait` is one valid entry.
        let ready = unsafe { libc::poll(&raw mut wait, 1, 60_000) };
        assert_eq!(ready, 1, "nothing more came after {shown:?}");
        let mut piece = [0; 4096];
        let count = ours.read(&mut piece).unwrap();
        seen.extend_from_slice(&piece[..count]);
    }
}

/// Everything written to a terminal whose writers are gone.
fn rest(mut ours: File) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    // On Linux, its end is an error.
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        bytes.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Starts a command with its standard error on a terminal.
fn start(dir: &Sandbox, line: &str, stdout: Stdio) -> (Child, File) {
    let (ours, theirs) = terminal();
    let mut command = dir.command(line);
    command.stdin(Stdio::piped()).stdout(stdout).stderr(theirs);
    command.env("TERM", "xterm");
    (command.spawn().unwrap(), ours)
}

fn sandbox() -> Sandbox {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100 -p 1e-9 --kind counting");
    assert_eq!(dir.feed("add f.tamis", "a\n").code, 0);
    dir
}

#[test]
fn a_bar_shows_where_records_go_elsewhere() {
    let dir = sandbox();
    for line in [
        "dedup",
        "dedup -o out --force",
        "check f.tamis",
        "check -c f.tamis",
        "add --new f.tamis",
        "add f.tamis",
    ] {
        let (mut child, mut ours) = start(&dir, line, Stdio::null());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\n").unwrap();
        // While the input is open, nothing else is written.
        wait_for(&mut ours, "1 record");
        drop(stdin);
        // The bar is removed before any message.
        let said = rest(ours);
        child.wait().unwrap();
        assert!(!said.ends_with("record"), "{line}: {said:?}");
    }
}

#[test]
fn no_bar_mixes_with_records_on_a_terminal() {
    let dir = sandbox();
    for line in [
        "dedup",
        "check f.tamis",
        "remove --absent f.tamis",
        "add --new f.tamis",
    ] {
        let (mut out, theirs) = terminal();
        let (mut child, err) = start(&dir, line, theirs.into());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\nnew\na\n").unwrap();
        // The run is in progress, and would show a bar.
        wait_for(&mut out, "\n");
        drop(stdin);
        let err = rest(err);
        child.wait().unwrap();
        // A bar moves the cursor; messages don't.
        assert!(!err.contains('\u{1b}'), "{line}: {err:?}");
    }
}

#[test]
fn quiet_is_quiet_on_a_terminal() {
    let dir = sandbox();
    for line in [
        "dedup -q",
        "check -q f.tamis",
        "add -q f.tamis",
        "remove -q f.tamis",
        "build -q new.tamis",
    ] {
        let (mut child, err) = start(&dir, line, Stdio::null());
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\n").unwrap();
        drop(stdin);
        assert_eq!(rest(err), "", "{line}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line}");
    }
}

/// Users who start the command without a file may wait for it while it waits for them.
#[test]
fn a_terminal_is_told_that_it_is_read() {
    use std::io::BufRead;
    let dir = sandbox();
    for line in ["dedup", "dedup -", "check f.tamis"] {
        let (mut ours, theirs) = terminal();
        let mut command = dir.command(line);
        command.stdin(Stdio::from(theirs));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let err = child.stderr.take().unwrap();
        std::io::BufReader::new(err).read_line(&mut said).unwrap();
        assert!(said.contains("reading standard input"), "{line}: {said}");
        // Ctrl-D.
        ours.write_all(b"\x04").unwrap();
        child.wait().unwrap();
    }
}
