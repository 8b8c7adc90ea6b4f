//! Outputs and files are never destroyed: a result appears complete or not at all, and only regular files are replaced.

mod filters;

use crate::common::{Ran, Sandbox};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("line{i}\n")).collect()
}

fn fifo(dir: &Sandbox, name: &str) {
    let made = Command::new("mkfifo").arg(dir.path(name)).status();
    assert!(made.unwrap().success());
}

/// Runs a script that calls `tamis`.
fn in_shell(dir: &Sandbox, script: &str) -> Ran {
    let tamis = Path::new(env!("CARGO_BIN_EXE_tamis")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", script])
        .env("PATH", format!("{}:{path}", tamis.display()))
        .current_dir(dir.path("."))
        .stdin(Stdio::null())
        .output();
    Ran::from(output.unwrap())
}

#[test]
fn a_failed_run_leaves_the_output_alone_and_says_where_its_part_is() {
    let dir = Sandbox::new();
    dir.write("keep.txt", "kept\n");
    dir.write("a", lines(0..1000));
    // Nothing was readable.
    let typo = dir.run("dedup typo.txt -o keep.txt --force");
    assert_eq!(typo.code, 2);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
    assert_eq!(dir.list(), ["a", "keep.txt"]);
    // One of two files was.
    let half = dir.run("dedup a typo.txt -o keep.txt --force");
    assert_eq!(half.code, 2);
    assert!(half.err.contains("keep.txt.partial"), "{}", half.err);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
    assert_eq!(dir.read("keep.txt.partial"), lines(0..1000).as_bytes());
    // A second failure keeps the first partial output.
    assert_eq!(dir.run("dedup typo.txt a -o keep.txt --force").code, 2);
    assert_eq!(dir.read("keep.txt.partial-2"), lines(0..1000).as_bytes());
    // Also if there was nothing before.
    assert_eq!(dir.run("dedup a typo.txt -o new.txt.gz").code, 2);
    assert!(!dir.path("new.txt.gz").exists());
    assert_eq!(
        dir.ok("dedup new.txt.gz.partial").out,
        lines(0..1000).as_bytes()
    );
    dir.ok("dedup a -o keep.txt --force");
    assert_eq!(dir.read("keep.txt"), lines(0..1000).as_bytes());
    assert_eq!(dir.feed("dedup -o fed.txt", "b\nb\n").code, 0);
    assert_eq!(dir.read("fed.txt"), b"b\n");
}

#[test]
fn a_cut_gzip_is_no_whole_output() {
    let dir = Sandbox::new();
    dir.write("plain", lines(0..100_000));
    dir.ok("dedup plain -o whole.gz");
    let whole = dir.read("whole.gz");
    dir.write("cut.gz", &whole[..whole.len() / 2]);
    dir.write("keep.txt", "kept\n");
    let cut = dir.run("dedup cut.gz -o keep.txt --force");
    assert_eq!(cut.code, 2);
    assert!(cut.err.contains("keep.txt.partial"), "{}", cut.err);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
    assert!(
        lines(0..100_000)
            .as_bytes()
            .starts_with(&dir.read("keep.txt.partial"))
    );
}

#[test]
fn a_full_disk_leaves_the_output_alone() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..100_000));
    dir.write("keep.txt", "kept\n");
    dir.ok("create f.tamis --capacity 1M");
    let before = dir.read("f.tamis");
    // Files are limited to 8 KiB.
    let limited = |line: &str| in_shell(&dir, &format!("ulimit -f 8; {line}"));
    let full = limited("tamis dedup a -o keep.txt --force");
    assert_eq!(full.code, 2, "{}", full.err);
    assert!(full.err.contains("keep.txt.partial"), "{}", full.err);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
    assert_eq!(dir.read("keep.txt.partial").len(), 8 << 10);
    let full = limited("tamis dedup a -o keep.txt.zst");
    assert_eq!(full.code, 2, "{}", full.err);
    assert!(!dir.path("keep.txt.zst").exists());
    let full = limited("tamis add f.tamis a");
    assert_eq!(full.code, 2, "{}", full.err);
    assert_eq!(dir.read("f.tamis"), before);
    let full = limited("tamis build g.tamis a");
    assert_eq!(full.code, 2, "{}", full.err);
    let litter: Vec<_> = dir
        .list()
        .into_iter()
        .filter(|n| n.starts_with('.'))
        .collect();
    assert!(litter.is_empty(), "{litter:?}");
    assert!(!dir.path("g.tamis").exists());
}

#[test]
fn a_full_device_is_an_error() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    let full = dir.run("dedup a -o /dev/full");
    assert_eq!(full.code, 2);
    assert!(full.err.contains("space"), "{}", full.err);
}

#[test]
fn an_interrupted_run_leaves_the_output_alone() {
    let dir = Sandbox::new();
    dir.write("keep.txt", "kept\n");
    fifo(&dir, "in");
    let child = dir
        .command("dedup -j 1 in -o keep.txt --force")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = fs::OpenOptions::new()
        .write(true)
        .open(dir.path("in"))
        .unwrap();
    // More than the pipe holds: once it is written, some has been read, so signals are handled.
    input.write_all(lines(0..100_000).as_bytes()).unwrap();
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.err.contains("keep.txt.partial"), "{}", ran.err);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
    let partial = dir.read("keep.txt.partial");
    assert!(!partial.is_empty() && lines(0..100_000).as_bytes().starts_with(&partial));
}

#[test]
fn counting_writes_no_output() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..10));
    dir.write("keep.txt", "kept\n");
    assert_eq!(dir.run("dedup --count a -o keep.txt --force").code, 2);
    assert_eq!(dir.read("keep.txt"), b"kept\n");
}

#[test]
fn devices_and_pipes_are_written_to_and_never_replaced() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    fifo(&dir, "pipe");
    for force in ["", "--force"] {
        let child = dir
            .command(&format!("dedup a -o pipe {force}"))
            .spawn()
            .unwrap();
        let mut got = Vec::new();
        fs::File::open(dir.path("pipe"))
            .unwrap()
            .read_to_end(&mut got)
            .unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        assert_eq!(got, lines(0..1000).as_bytes());
        dir.ok(&format!("dedup a -o /dev/null {force}"));
    }
    let ran = dir.ok("dedup a -o /dev/stdout");
    assert_eq!(ran.out, lines(0..1000).as_bytes());
    // Also if it is a file that already has content.
    let ran = in_shell(
        &dir,
        "echo first > out; tamis dedup a -o /dev/stdout >> out",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        dir.read("out"),
        format!("first\n{}", lines(0..1000)).as_bytes()
    );
    assert_eq!(dir.list(), ["a", "out", "pipe"]);
}

#[test]
fn links_are_followed_and_files_keep_owner_and_mode() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    dir.write("real", "old\n");
    fs::set_permissions(dir.path("real"), fs::Permissions::from_mode(0o604)).unwrap();
    // Root can change its owner; for other users the owner stays.
    let _ = std::os::unix::fs::chown(dir.path("real"), Some(4321), Some(4321));
    let identity = || {
        let file = fs::metadata(dir.path("real")).unwrap();
        (file.uid(), file.gid(), file.mode())
    };
    let before = identity();
    symlink("real", dir.path("link")).unwrap();
    dir.ok("dedup a -o link --force");
    assert_eq!(identity(), before);
    assert_eq!(dir.read("real"), lines(0..1000).as_bytes());
    // A filter only replaces filters.
    dir.write("real", "");
    dir.ok("create link --capacity 10 --force");
    dir.ok("create link --capacity 1000 --force");
    dir.ok("add link a");
    assert_eq!(identity(), before);
    assert!(dir.path("link").is_symlink());
    assert_eq!(dir.ok("check -c real a").text(), "1000\n");
}

#[test]
fn input_and_output_are_two_files() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..10));
    dir.ok("create f.tamis --capacity 1000");
    let filter = dir.read("f.tamis");
    fs::hard_link(dir.path("a"), dir.path("same")).unwrap();
    for line in [
        "tamis dedup a -o a --force",
        "tamis dedup a -o same --force",
        "tamis dedup a -o ./a",
        "tamis dedup - -o a --force < a",
        "tamis dedup a >> a",
        "tamis dedup >> a < same",
        "tamis add --new f.tamis a >> a",
        "tamis check -v f.tamis a >> a",
    ] {
        let ran = in_shell(&dir, line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains("input and output"), "{line}: {}", ran.err);
    }
    assert_eq!(dir.read("a"), lines(0..10).as_bytes());
    assert_eq!(dir.read("f.tamis"), filter);
}

/// Compares files by identity rather than by name, including files yet to be created.
#[test]
fn no_file_is_two_things() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..10));
    dir.ok("create f.tamis --capacity 1000");
    dir.ok("create g.tamis --capacity 1000 --secret-file key");
    fs::create_dir(dir.path("folder")).unwrap();
    symlink("folder", dir.path("other")).unwrap();
    symlink("folder/x", dir.path("dangling")).unwrap();
    symlink("a", dir.path("link")).unwrap();
    fs::hard_link(dir.path("a"), dir.path("same")).unwrap();
    let kept = || ["a", "f.tamis", "g.tamis", "key"].map(|name| dir.read(name));
    let (before, names) = (kept(), dir.list());
    for (line, what) in [
        ("dedup a --filter x -o x --force", "filter and output"),
        ("dedup a --filter ./x -o x", "filter and output"),
        ("dedup a --filter folder/x -o other/x", "filter and output"),
        ("dedup a --filter dangling -o other/x", "filter and output"),
        (
            "dedup a --filter f.tamis -o f.tamis --force",
            "filter and output",
        ),
        (
            "dedup a --filter x.partial -o x",
            "filter and partial output",
        ),
        ("dedup a -o x --report x", "output and report"),
        (
            "dedup a -o x --report x.partial",
            "partial output and report",
        ),
        ("dedup a --report same", "input and report"),
        ("dedup a --report x --filter x", "filter and report"),
        ("dedup a --filter a", "input and filter"),
        ("dedup a --filter x --secret-file x", "filter and key file"),
        (
            "dedup a --filter x --secret-file y -o y --force",
            "key file and output",
        ),
        (
            "dedup --files-from a -o a --force",
            "list of files and output",
        ),
        ("build a a --force", "input and filter"),
        ("build link same --force", "input and filter"),
        ("build -o a a --force", "input and filter"),
        ("build --allow a a f.tamis --force", "allow list and filter"),
        ("build --allow same x a", "input and allow list"),
        ("build x a --secret-file x --force", "filter and key file"),
        ("build x a --secret-file a", "input and key file"),
        (
            "create x --capacity 10 --secret-file x --force",
            "filter and key file",
        ),
        (
            "create key --capacity 10 --secret-file key --force",
            "filter and key file",
        ),
        ("add f.tamis f.tamis", "input and filter"),
        ("remove f.tamis a f.tamis", "input and filter"),
        ("check --tally f.tamis f.tamis", "input and filter"),
        ("check f.tamis f.tamis", "input and filter"),
        ("check f.tamis a --allow f.tamis", "input and filter"),
        ("check --secret-file key g.tamis key", "input and key file"),
        (
            "merge --union -o f.tamis f.tamis f.tamis --force",
            "input and output",
        ),
        (
            "merge --union -o key --secret-file key --force g.tamis g.tamis",
            "key file and output",
        ),
        ("copy f.tamis f.tamis --force", "input and output"),
        (
            "copy --secret-file key g.tamis key --force",
            "key file and output",
        ),
        ("copy a a --force", "input and output"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        let said = format!("is both {what}\n");
        assert!(ran.err.contains(&said), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}");
        assert!(kept() == before && dir.list() == names, "{line}");
    }
    for line in [
        "tamis add f.tamis a >> f.tamis",
        "tamis check f.tamis a >> f.tamis",
        "tamis check f.tamis a --allow key >> key",
        "tamis dedup a --filter f.tamis >> f.tamis",
    ] {
        let ran = in_shell(&dir, line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains("and output"), "{line}: {}", ran.err);
        assert!(kept() == before && dir.list() == names, "{line}");
    }
    // An index skips itself as an input; a file that isn't an index is refused.
    let ran = dir.run("index a a");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(kept() == before);
    // A file may be read twice, and a failed run's partial output can be read into its destination.
    dir.write("x.partial", lines(0..5));
    assert_eq!(dir.ok("dedup -q a same x.partial -o x").text(), "");
    assert_eq!(dir.read("x"), lines(0..10).as_bytes());
}

/// Another program takes the name while we work.
#[test]
fn an_output_that_appears_meanwhile_costs_nothing() {
    let dir = Sandbox::new();
    fifo(&dir, "in");
    let child = dir
        .command("dedup in -o out --filter seen.tamis")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command opens its input after checking the output.
    let mut input = fs::OpenOptions::new()
        .write(true)
        .open(dir.path("in"))
        .unwrap();
    dir.write("out", "theirs\n");
    input.write_all(lines(0..100).as_bytes()).unwrap();
    drop(input);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("out already exists"), "{}", ran.err);
    assert!(ran.err.contains("out.partial"), "{}", ran.err);
    assert_eq!(dir.read("out"), b"theirs\n");
    assert_eq!(dir.read("out.partial"), lines(0..100).as_bytes());
    // Records that aren't at their destination aren't remembered.
    dir.write("again", lines(0..100));
    let ran = dir.ok("dedup -q again --filter seen.tamis");
    assert_eq!(ran.text(), lines(0..100));
}

#[test]
fn names_may_be_long_and_need_not_be_text() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    let long = "n".repeat(255);
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\xfe\n name");
    for name in [std::ffi::OsStr::new(&long), odd] {
        let run = |words: &[&str]| {
            let mut command = dir.command(words[0]);
            command.arg(name).args(&words[1..]);
            let ran = Ran::from(command.output().unwrap());
            assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        };
        run(&["create", "--capacity", "1000"]);
        run(&["add", "a"]);
        run(&["check", "a"]);
        run(&["verify"]);
        run(&["build", "a", "--force"]);
        std::fs::remove_file(dir.path(".").join(name)).unwrap();
        for force in ["", "--force"] {
            let mut dedup = dir.command(&format!("dedup a {force} -o"));
            assert!(dedup.arg(name).output().unwrap().status.success());
        }
    }
}

#[test]
fn a_folder_that_can_not_be_written_is_an_error_and_nothing_else() {
    let dir = Sandbox::new();
    dir.write("a", lines(0..1000));
    let nowhere = dir.run("dedup a -o /proc/out.txt");
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.err.contains("/proc/out.txt"), "{}", nowhere.err);
    let missing = dir.run("dedup a -o none/out.txt");
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("none/out.txt"), "{}", missing.err);
    assert_eq!(dir.run("create none/f.tamis --capacity 10").code, 2);
    assert_eq!(dir.list(), ["a"]);
}

/// Both the library's error and its cause contain it.
#[test]
fn a_reason_is_told_once() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "key\n");
    let ran = sandbox.run("dedup in -o nowhere/out");
    assert_eq!(ran.err.matches("os error 2").count(), 1, "{}", ran.err);
}

/// Messages printed without `say!` would reach the terminal unescaped.
#[test]
fn all_messages_go_one_way() {
    let call = concat!("eprint", "ln!(");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = ["cli", "records", "report", "serve"]
        .map(|name| crates.join(format!("tamis-{name}/src")))
        .into();
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains(call), "{}: use say!", path.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 80, "{looked_at} files");
}
