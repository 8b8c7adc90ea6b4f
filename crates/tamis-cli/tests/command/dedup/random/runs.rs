//! Runs a case with its fault, and checks what it printed.

use super::{Case, Fault, OUTPUTS, shown};
use crate::common::{Ran, start};
use crate::random::input::Record;
use crate::random::packed;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub(super) fn run(case: &mut Case) {
    let options = case.options();
    let seen = case.prepare(&options);
    let line = match case.output {
        Some(output) => format!("{options} -o {output}"),
        None => options.clone(),
    };
    let _ = write!(case.told, ": tamis {line}");
    match case.fault {
        Fault::None => without_fault(case, line, &seen),
        Fault::CutInput | Fault::MissingFile => bad_input(case, &line, &seen),
        Fault::FullDisk => full_disk(case, &line, &options, &seen),
        Fault::ClosedPipe => closed_pipe(case, &line),
        Fault::Signal(signal) => stopped(case, signal, &line, &options, &seen),
    }
}

fn without_fault(case: &mut Case, mut line: String, seen: &HashSet<String>) {
    let is_dry = case.has_filter() && case.random.below(4) == 0;
    if is_dry {
        line += " --dry-run";
    }
    let counts = case.output.is_none() && case.random.below(4) == 0;
    let duplicates = case.random.below(4) == 0;
    for (is_so, word) in [(counts, " --count"), (duplicates, " -v")] {
        if is_so {
            line += word;
        }
    }
    case.told += &line;
    let before = case
        .dir
        .path("seen")
        .exists()
        .then(|| case.dir.read("seen"));
    let (named, stdin) = case.input.write(&case.dir, &mut case.random);
    let ran = case.dir.feed(&format!("{line} {named}"), stdin);
    assert_eq!(ran.code, 0, "{}: {}", case.told, ran.err);
    if is_dry {
        let after = case
            .dir
            .path("seen")
            .exists()
            .then(|| case.dir.read("seen"));
        assert!(before == after, "{}: the filter has changed", case.told);
    }
    let mut known = seen.clone();
    let (new, old): (Vec<&Record>, Vec<&Record>) = case
        .input
        .records()
        .partition(|record| known.insert(record.key.clone()));
    // Wrongly dropped records are among the duplicates.
    let expected = if duplicates { old.len() } else { new.len() };
    if counts {
        let said: usize = ran.text().trim().parse().unwrap();
        let lost = if duplicates {
            said.checked_sub(expected)
        } else {
            expected.checked_sub(said)
        };
        let Some(lost) = lost else {
            panic!("{}: {said}, expected {expected}", case.told);
        };
        case.check_lost(lost, new.len());
        return;
    }
    let out = if case.output.is_some() {
        case.written()
    } else {
        ran.out
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole, "{}", case.told);
    // In input order, and exactly the first occurrence.
    let (more, fewer) = if duplicates {
        (&printed, &old)
    } else {
        (&new, &printed)
    };
    let mut all = more.iter();
    for record in fewer {
        let is_next = all.any(|other| other.text == record.text);
        assert!(
            is_next,
            "{}: {:?} is out of place",
            case.told,
            shown(&record.text)
        );
    }
    case.check_lost(more.len() - fewer.len(), new.len());
}

/// The rest is read; and once the input is complete again, a second run with the filter prints what was missing.
fn bad_input(case: &mut Case, line: &str, seen: &HashSet<String>) {
    let (good, other) = case.input.halves();
    let named = case.input.write_files(&case.dir, good, &mut case.random);
    let text = case.input.text(other.iter());
    let (end, bytes) = packed::pack(&mut case.random, &text);
    let bad = format!("bad.{end}");
    if case.fault == Fault::CutInput {
        let cut = bytes.len() - 1 - case.random.below(bytes.len() as u64 / 2) as usize;
        case.dir.write(&bad, &bytes[..cut]);
    }
    let ran = case.dir.run(&format!("{line} {named} {bad}"));
    assert_eq!(ran.code, 2, "{}: {}", case.told, ran.err);
    assert!(ran.err.contains(&bad), "{}: {}", case.told, ran.err);
    let out = if case.output.is_some() {
        case.written()
    } else {
        ran.out
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole, "{}", case.told);
    let got = case.keys_once(printed.iter().copied(), seen);
    // The good files are complete, whatever happened with the bad one.
    case.check_union(good, &got, seen);
    if case.has_filter() {
        remove_outputs(case);
        case.dir.write(&bad, &bytes);
        let again = case.dir.run(&format!("{line} {named} {bad}"));
        assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
        let out = if case.output.is_some() {
            case.written()
        } else {
            again.out
        };
        let (more, _) = case.parse(&out);
        case.check_complete(printed.into_iter().chain(more), seen);
    }
}

fn remove_outputs(case: &Case) {
    for name in OUTPUTS {
        for name in [name.to_owned(), format!("{name}.partial")] {
            let _ = std::fs::remove_file(case.dir.path(&name));
        }
    }
}

/// The output is correct, and a second run adds everything missing.
fn full_disk(case: &mut Case, line: &str, options: &str, seen: &HashSet<String>) {
    let (first, second) = case.input.halves();
    let all = [first, second].concat();
    let named = case.input.write_files(&case.dir, &all, &mut case.random);
    let tamis = env!("CARGO_BIN_EXE_tamis");
    let blocks = case.random.pick(&[1, 8, 100, 10_000]);
    let script = format!("ulimit -f {blocks}; exec {tamis} {line} {named} > printed");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(case.dir.path("."));
    let child = start(
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!([0, 2].contains(&ran.code), "{}: {}", case.told, ran.err);
    let out = match case.output {
        // An encoder's incomplete output can't be unpacked.
        Some(name) if name != "out" && ran.code != 0 => Vec::new(),
        Some(_) => case.written(),
        None => case.dir.read("printed"),
    };
    let claims_nothing = out.is_empty() && ran.code != 0;
    let (printed, _) = case.parse(&out);
    rerun(case, &printed, options, &named, seen, claims_nothing);
}

/// The rest of the records, by a second run with the filter, if there is one.
fn rerun(
    case: &Case,
    printed: &[&Record],
    options: &str,
    named: &str,
    seen: &HashSet<String>,
    claims_nothing: bool,
) {
    let mut got = case.keys_once(printed.iter().copied(), seen);
    if !case.has_filter() {
        return;
    }
    let again = case.dir.run(&format!("{options} {named}"));
    assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
    let (more, is_whole) = case.parse(&again.out);
    assert!(is_whole, "{}", case.told);
    if claims_nothing {
        case.check_complete(more.into_iter(), seen);
        return;
    }
    got.extend(more.iter().map(|record| &record.key));
    case.check_union(case.input.records(), &got, seen);
}

/// `| head`: the output is a prefix of the expected one.
fn closed_pipe(case: &Case, line: &str) {
    let text = case.input.text(case.input.records());
    let mut child = piped(case, line);
    let writer = feed(&mut child, text);
    let mut some = vec![0; 1000];
    let mut stdout = child.stdout.take().unwrap();
    let mut filled = 0;
    while filled < some.len() {
        match stdout.read(&mut some[filled..]).unwrap() {
            0 => break,
            count => filled += count,
        }
    }
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().unwrap());
    writer.join().unwrap();
    assert_eq!(ran.code, 0, "{}: {}", case.told, ran.err);
    let (printed, _) = case.parse(&some[..filled]);
    let mut got = HashSet::new();
    assert!(
        printed.iter().all(|record| got.insert(&record.key)),
        "{}",
        case.told
    );
}

fn piped(case: &Case, line: &str) -> Child {
    let mut command = case.dir.command(line);
    // Tests may run under nohup, or in the background, where signals are ignored.
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    start(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
}

fn feed(child: &mut Child, text: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        // The command may end before it has read everything.
        let _ = stdin.write_all(&text);
    })
}

/// Stops a run that has read a part and waits for more; its output may or may not be printed yet. Then a second run
/// does everything.
fn stopped(case: &Case, signal: libc::c_int, line: &str, options: &str, seen: &HashSet<String>) {
    let all: Vec<&Record> = case.input.records().collect();
    let text = case.input.text(all.iter().copied().take(all.len() / 2));
    let mut child = piped(case, line);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (said, hear) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut out = Vec::new();
        let mut some = [0; 1 << 16];
        while let Ok(count @ 1..) = stdout.read(&mut some) {
            out.extend_from_slice(&some[..count]);
            let _ = said.send(());
        }
        out
    });
    // Returns once everything except the pipe's content has been read.
    let _ = stdin.write_all(&text);
    let prints =
        case.output.is_none() && all[..all.len() / 2].iter().any(|r| !seen.contains(&r.key));
    if prints {
        // A filter that is wrong about everything prints nothing: then there is nothing to wait for.
        let _ = hear.recv_timeout(Duration::from_secs(5));
    }
    // SAFETY: a signal to a child of ours that we have not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(stdin);
    let piped = reader.join().unwrap();
    // Before the command handles signals, they end it at once.
    assert!(
        [-1, 128 + signal].contains(&ran.code),
        "{}: {}: {}",
        case.told,
        ran.code,
        ran.err
    );
    let ended_well = ran.code == 128 + signal;
    let out = match (case.output, ended_well) {
        (None, _) => piped,
        (Some(_), true) => case.written(),
        (Some(_), false) => Vec::new(),
    };
    let (printed, is_whole) = case.parse(&out);
    assert!(is_whole || !ended_well, "{}", case.told);
    case.dir.write("all", case.input.text(all.iter().copied()));
    if ended_well && case.has_filter() {
        let again = case.dir.run(&format!("{options} all"));
        assert_eq!(again.code, 0, "{}: {}", case.told, again.err);
        let (more, _) = case.parse(&again.out);
        case.check_complete(printed.into_iter().chain(more), seen);
    } else {
        rerun(case, &printed, options, "all", seen, false);
    }
}
