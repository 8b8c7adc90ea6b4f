//! A full disk, and kill -9 at many moments: finished outputs are complete, and the same command resumes after them.

use crate::common::{Sandbox, cases, start};
use crate::{records, tree};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

const FILES: usize = 30;

fn corpus(dir: &Sandbox) {
    fs::create_dir(dir.path("in")).unwrap();
    for file in 0..FILES {
        let texts: Vec<String> = (0..200)
            .map(|number| {
                format!(
                    "line {}\nline {}",
                    (number * 37 + file * 11) % 900,
                    number + file * 100
                )
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        dir.write(&format!("in/{file:02}.jsonl"), records(&texts));
    }
}

const CLEAN: &str = "clean in -o out --by line --filter seen.tamis -j 2 -q";

#[test]
fn a_run_that_is_killed_goes_on() {
    let whole = Sandbox::new();
    corpus(&whole);
    let began = Instant::now();
    whole.ok(CLEAN);
    let took = began.elapsed();
    let expected = tree(&whole, "out");
    assert_eq!(expected.len(), FILES);
    let moments = cases(12) as u32;
    for moment in 0..moments {
        let dir = Sandbox::new();
        corpus(&dir);
        // Killed twice, then left to finish.
        for time in 1..=2u32 {
            let mut command = dir.command(CLEAN);
            let mut child = start(command.stdout(Stdio::null()).stderr(Stdio::null()));
            std::thread::sleep(took * moment * time / moments / 2 + Duration::from_micros(500));
            let _ = child.kill();
            child.wait().unwrap();
        }
        // If it finished before it was killed, it reports that its outputs exist.
        let ran = dir.run(CLEAN);
        let was_done = ran.code == 2 && ran.err.contains("already exists");
        assert!(ran.code == 0 || was_done, "{}", ran.err);
        assert!(
            tree(&dir, "out") == expected,
            "killed at {moment} of {moments}"
        );
        let ran = dir.ok("clean in --filter seen.tamis -q --drop-empty");
        assert!(
            ran.out.is_empty(),
            "the filter has all that the outputs have"
        );
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_by_halves() {
    let whole = Sandbox::new();
    corpus(&whole);
    whole.ok("clean in -o out --by line");
    let whole = tree(&whole, "out");
    // Either the outputs don't fit, or the filter doesn't.
    for (limit, what) in [(2_000, "output-"), (20_000, "seen-")] {
        on_a_full_disk(limit, what, &whole);
    }
}

fn on_a_full_disk(limit: u64, what: &str, whole: &[(String, Vec<u8>)]) {
    let dir = Sandbox::new();
    corpus(&dir);
    let mut command = dir.command("clean in -o out --by line");
    // SAFETY: only makes calls that are allowed between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit {
                rlim_cur: limit,
                rlim_max: limit,
            };
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            Ok(())
        })
    };
    let ran = dir.feed_to(command, "");
    assert_eq!(ran.code, 2, "{}", ran.err);
    let said = format!("writing out/.tamis-clean/{what}");
    assert!(ran.err.contains(&said), "{}", ran.err);
    assert_eq!(ran.err.matches("writing").count(), 1, "{}", ran.err);
    let placed = tree(&dir, "out")
        .into_iter()
        .filter(|(name, _)| !name.starts_with('.'));
    assert_eq!(
        placed.count(),
        0,
        "without its filter no output appears, and none by halves"
    );
    dir.ok("clean in -o out --by line");
    assert!(tree(&dir, "out") == whole);
}
