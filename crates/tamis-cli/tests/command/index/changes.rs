//! Files, folders and indexes that change in ways that are hard to see.

use super::logs::{id, log};
use super::*;
use memmap2::MmapMut;
use std::path::Path;
use std::time::SystemTime;

fn map(path: &Path) -> MmapMut {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    // SAFETY: the file belongs to this test, and isn't truncated while mapped.
    unsafe { MmapMut::map_mut(&file).unwrap() }
}

fn times(path: &Path) -> (u64, SystemTime, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    let now = fs::metadata(path).unwrap();
    (
        now.len(),
        now.modified().unwrap(),
        now.ctime(),
        now.ctime_nsec(),
    )
}

fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// A page that isn't on disk yet can be written repeatedly without changing the file's times.
#[cfg(target_os = "linux")]
#[test]
fn a_log_written_through_a_mapping_is_a_candidate() {
    // The system flushes pages at any time, and the next change then shows.
    let mut tries = (0..20).map(|_| a_log_is_written_unseen());
    assert!(tries.any(|unseen| unseen), "never this test's case");
}

/// Whether the file's times stayed the same, as needed for this test.
#[cfg(target_os = "linux")]
fn a_log_is_written_unseen() -> bool {
    let dir = Sandbox::new();
    dir.write("other", "nothing\n");
    dir.write("log", " ".repeat(10_000));
    let mut log = map(&dir.path("log"));
    log[..6].copy_from_slice(b"first\n");
    pause();
    let before = times(&dir.path("log"));
    let made = dir.ok("index ix -p 1e-6 log other");
    assert!(made.err.contains("1 file being written"), "{}", made.err);
    log[6..13].copy_from_slice(b"needle\n");
    if times(&dir.path("log")) != before {
        return false;
    }
    let ran = dir.ok("grep --candidates needle ix");
    assert_eq!(ran.text(), "log\n");
    assert!(
        ran.err.contains("log: being written when it was indexed"),
        "{}",
        ran.err
    );
    assert_eq!(dir.ok("grep -n needle ix").text(), "log:2:needle\n");
    // While it is mapped, a new run doesn't help, ...
    dir.ok("index ix");
    log[13..20].copy_from_slice(b"thread\n");
    if times(&dir.path("log")) != before {
        return false;
    }
    assert_eq!(which(&dir, "thread ix"), ["log"]);
    // ... but afterwards it does.
    drop(log);
    let made = dir.ok("index ix");
    assert!(!made.err.contains("being written"), "{}", made.err);
    assert_eq!(which(&dir, "thread ix"), ["log"]);
    assert_eq!(dir.run("grep --candidates nowhere ix").code, 1);
    // A later mapping is noticed at once.
    let mut log = map(&dir.path("log"));
    pause();
    log[20..25].copy_from_slice(b"pins\n");
    assert_eq!(which(&dir, "pins ix"), ["log"]);
    true
}

/// On in-memory file systems, a mapping changes files without a trace.
#[cfg(target_os = "linux")]
#[test]
fn a_mapping_in_memory_is_a_candidate_while_it_lasts() {
    let memory = tempfile::tempdir_in("/dev/shm").expect("Linux has a file system in memory here");
    let path = memory.path().join("log");
    fs::write(&path, " ".repeat(10_000)).unwrap();
    let dir = Sandbox::new();
    // The index is on another file system than the log.
    let made = dir.ok(&format!("index ix -p 1e-6 {}", memory.path().display()));
    assert!(!made.err.contains("being written"), "{}", made.err);
    assert_eq!(dir.run("grep --candidates needle ix").code, 1);
    let mut log = map(&path);
    let before = times(&path);
    assert_eq!(log[0], b' ');
    pause();
    log[..7].copy_from_slice(b"needle\n");
    assert_eq!(times(&path), before, "so that it is this test's case");
    let ran = dir.ok("grep --candidates needle ix");
    assert!(ran.err.contains("being written"), "{}", ran.err);
    let again = dir.ok("index ix");
    assert!(again.err.contains("1 new or changed"), "{}", again.err);
    drop(log);
    dir.ok("index ix");
    assert_eq!(which(&dir, "needle ix").len(), 1);
    assert_eq!(dir.run("grep --candidates thread ix").code, 1);
}

/// A file that is open for writing may be half written.
#[cfg(target_os = "linux")]
#[test]
fn a_file_open_for_writing_is_a_candidate() {
    let dir = Sandbox::new();
    dir.write("log", "first\n");
    let writer = fs::File::options()
        .append(true)
        .open(dir.path("log"))
        .unwrap();
    let made = dir.ok("index ix -p 1e-6 log");
    assert!(
        made.err.contains("being written, for example log"),
        "{}",
        made.err
    );
    assert_eq!(which(&dir, "needle ix"), ["log"]);
    let json = dir.ok("grep --candidates --json needle ix");
    assert!(json.text().contains("\"stale\""), "{}", json.text());
    drop(writer);
    // Readers don't matter.
    let _reader = fs::File::open(dir.path("log")).unwrap();
    dir.ok("index ix");
    assert_eq!(dir.run("grep --candidates needle ix").code, 1);
    assert!(dir.ok("index ix").err.contains("up to date"));
}

#[test]
fn a_file_that_grows_while_it_is_read_is_a_candidate() {
    let dir = Sandbox::new();
    dir.write("log", "line\n".repeat(1 << 20));
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let path = dir.path("log");
    let mut file = fs::File::options().append(true).open(path).unwrap();
    writeln!(file, "grown-0").unwrap();
    let writer = std::thread::spawn(move || {
        let mut count = 1;
        while stopped.try_recv().is_err() {
            writeln!(file, "grown-{count}").unwrap();
            count += 1;
        }
        count
    });
    for _ in 0..3 {
        dir.ok("index ix -p 1e-6 log");
        assert_eq!(which(&dir, "grown-0 ix"), ["log"]);
        assert_eq!(which(&dir, "nowhere ix"), ["log"]);
    }
    stop.send(()).unwrap();
    let last = writer.join().unwrap() - 1;
    assert_eq!(which(&dir, &format!("grown-{last} ix")), ["log"]);
    dir.ok("index ix");
    assert_eq!(which(&dir, &format!("grown-{last} ix")), ["log"]);
    assert_eq!(dir.run("grep --candidates nowhere ix").code, 1);
}

/// Filters that lost some bytes: nothing is missed, the damage is reported, and the next run repairs it.
#[test]
fn a_damaged_index_misses_nothing() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    let word = |file: u64, i: u64| format!("w{}", id(file << 32 | i));
    for file in 0..4 {
        let words: String = (0..3000).map(|i| word(file, i) + "\n").collect();
        dir.write(&format!("d/{file}"), words);
    }
    dir.ok("index ix d");
    let sound = dir.read("ix");
    let keys: String = (0..4)
        .flat_map(|file| (0..3000).map(move |i| word(file, i) + "\n"))
        .collect();
    // The filters come first; the second one gets a hole.
    let info: serde_json::Value = serde_json::from_str(dir.ok("info --json ix").text()).unwrap();
    let second = 128 + info["filter_bytes"].as_u64().unwrap() as usize * 3 / 8;
    let mut bytes = sound.clone();
    bytes[second..second + 64].fill(0);
    dir.write("ix", &bytes);

    let found = dir.feed("grep --candidates -f - ix", &keys);
    let answers: std::collections::HashSet<&str> = found.text().lines().collect();
    for file in 0..4 {
        for i in 0..3000 {
            let answer = format!("{}\td/{file}", word(file, i));
            assert!(answers.contains(answer.as_str()), "{answer}: a false no");
        }
    }
    assert!(
        found.err.contains("d/1: damaged in the index"),
        "{}",
        found.err
    );
    // Undamaged pages still answer.
    assert!(answers.len() < 12_000 + 3 * 9_000, "{}", answers.len());
    assert!(dir.ok("info ix").text().contains("damaged"));
    assert_eq!(dir.run("verify ix").code, 2);

    let again = dir.ok("index ix");
    assert!(
        again.err.contains("1 damaged filter made again") && !again.err.contains("up to date"),
        "{}",
        again.err
    );
    let keys_now: serde_json::Value =
        serde_json::from_str(dir.ok("info --json ix").text()).unwrap();
    assert_eq!(keys_now["keys"], info["keys"], "as it was");
    assert_eq!(dir.run("verify ix").code, 0);
    assert!(dir.ok("index ix").err.contains("up to date"));

    // Damage anywhere else is an error, with a hint.
    for at in [20, bytes.len() - 3] {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        dir.write("ix", &bytes);
        for line in ["grep --candidates word ix", "index ix", "info ix"] {
            let ran = dir.run(line);
            assert_eq!(ran.code, 2, "{line}");
            assert!(ran.err.contains("hint: remove it"), "{line}: {}", ran.err);
        }
    }
}

/// An unmounted disk: silence would be a false no.
#[test]
fn a_root_that_is_missing_or_empty_is_an_error() {
    let dir = Sandbox::new();
    for name in ["disk", "other", "bare"] {
        fs::create_dir(dir.path(name)).unwrap();
    }
    dir.write("disk/log", "needle\n");
    dir.write("other/log", "thread\n");
    dir.write("file", "pins\n");
    dir.ok("index ix -p 1e-6 disk other bare file");
    assert_eq!(which(&dir, "needle ix"), ["disk/log"]);
    let index = dir.read("ix");
    let is_told = |says: &str| {
        for line in [
            "grep --candidates needle ix",
            "grep --candidates thread ix",
            "grep -n thread ix",
            "info ix",
            "info --json ix",
        ] {
            let ran = dir.run(line);
            assert_eq!(ran.code, 2, "{line}: {}", ran.err);
            assert!(ran.err.contains(says), "{line}: {}", ran.err);
        }
        assert_eq!(dir.run("grep --candidates thread ix").text(), "other/log\n");
        for line in ["index ix", "index ix disk other bare file"] {
            let ran = dir.run(line);
            assert_eq!(ran.code, 2, "{line}: {}", ran.err);
            assert!(
                ran.err.contains(says) && ran.err.contains("nothing was written"),
                "{}",
                ran.err
            );
            assert!(dir.read("ix") == index);
        }
    };
    fs::rename(dir.path("disk"), dir.path("unmounted")).unwrap();
    is_told("disk: No such file");
    fs::create_dir(dir.path("disk")).unwrap();
    is_told("disk: empty, but 1 files of it are in the index");
    fs::remove_dir(dir.path("disk")).unwrap();
    fs::rename(dir.path("unmounted"), dir.path("disk")).unwrap();
    assert_eq!(which(&dir, "needle ix"), ["disk/log"]);
    fs::remove_file(dir.path("file")).unwrap();
    is_told("file: No such file");
    // The way out.
    dir.ok("index ix disk other bare");
    assert_eq!(which(&dir, "needle ix"), ["disk/log"]);
}

#[cfg(unix)]
#[test]
fn folders_and_links_that_change_places_are_seen() {
    let dir = Sandbox::new();
    for name in ["d/a", "d/b"] {
        fs::create_dir_all(dir.path(name)).unwrap();
    }
    // Equal names and sizes, and times as close as possible.
    dir.write("d/a/log", "needle\n");
    dir.write("d/b/log", "thread\n");
    dir.write("one", "pillow\n");
    dir.write("two", "carpet\n");
    let link = |target: &str, name: &str| {
        let _ = fs::remove_file(dir.path(name));
        std::os::unix::fs::symlink(dir.path(target), dir.path(name)).unwrap();
    };
    link("one", "d/link");
    dir.ok("index ix -p 1e-6 d");
    assert_eq!(which(&dir, "needle ix"), ["d/a/log"]);
    fs::rename(dir.path("d/a"), dir.path("d/c")).unwrap();
    fs::rename(dir.path("d/b"), dir.path("d/a")).unwrap();
    fs::rename(dir.path("d/c"), dir.path("d/b")).unwrap();
    link("two", "d/link");
    assert!(which(&dir, "needle ix").contains(&"d/b/log".to_owned()));
    assert!(which(&dir, "thread ix").contains(&"d/a/log".to_owned()));
    assert!(which(&dir, "carpet ix").contains(&"d/link".to_owned()));
    dir.ok("index ix");
    assert_eq!(which(&dir, "needle ix"), ["d/b/log"]);
    assert_eq!(which(&dir, "carpet ix"), ["d/link"]);
    // A renamed folder means new files and deleted ones.
    fs::rename(dir.path("d/b"), dir.path("d/e")).unwrap();
    assert_eq!(which(&dir, "needle ix"), ["d/e/log"]);
    // So does a folder that becomes a file.
    fs::remove_dir_all(dir.path("d/a")).unwrap();
    dir.write("d/a", "thread\n");
    assert!(which(&dir, "thread ix").contains(&"d/a".to_owned()));
}

/// Temporary files of an index, from this run, a concurrent one or one that died.
#[test]
fn temporary_files_are_no_files_of_it() {
    let dir = Sandbox::new();
    dir.write("a", "word\n");
    dir.write(".tamis-abc123.tmp", "word\n");
    dir.ok("index ix .");
    dir.write(".tamis-xyz987.tmp", "word\n");
    assert_eq!(which(&dir, "word ix"), ["./a"]);
    assert_eq!(dir.run("grep --candidates nothing ix").code, 1);
    assert!(dir.ok("index ix .").err.contains("up to date"));
}

/// Concurrent runs give one complete index, and none of them fails.
#[test]
fn runs_at_once_do_not_disturb_each_other() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    for file in 0..20 {
        dir.write(&format!("d/{file}"), log(file, 20 << 10));
    }
    for round in 0..3 {
        dir.write("d/changing", format!("round-{round}\n"));
        let runs: Vec<_> = (0..4)
            .map(|_| crate::common::start(dir.command("index -q d/ix d").stderr(Stdio::piped())))
            .collect();
        for run in runs {
            let ended = run.wait_with_output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            assert!(ended.status.success(), "{said}");
        }
        dir.ok("verify d/ix");
        assert_eq!(which(&dir, &format!("round-{round} d/ix")), ["d/changing"]);
        assert!(which(&dir, &format!("{} d/ix", id(7 << 32))).contains(&"d/7".to_owned()));
        assert_eq!(fs::read_dir(dir.path("d")).unwrap().count(), 22);
    }
}

/// For another user than the files' owner: unreadable files are candidates, unreadable folders an error, and for
/// recently written files it is unknown whether somebody is still writing.
#[cfg(target_os = "linux")]
#[test]
fn what_may_not_be_read_is_told() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("d/closed")).unwrap();
    dir.write("d/closed/log", "needle\n");
    dir.write("d/secret", "needle\n");
    dir.write("d/open", "thread\n");
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Root may read everything, so it switches to another user.
    let root = fs::metadata(dir.path(".")).unwrap().uid() == 0;
    let run = |line: &str| {
        let mut command = dir.command(line);
        if root {
            command.uid(65534).gid(65534);
        }
        crate::common::Ran::from(command.output().unwrap())
    };
    mode(".", 0o755);
    mode("d/closed", 0o000);
    mode("d/secret", 0o000);
    fs::create_dir(dir.path("out")).unwrap();
    if root {
        chown(dir.path("out"), Some(65534), Some(65534)).unwrap();
    }
    let made = run("index out/ix -p 1e-6 d");
    assert_eq!(made.code, 2, "{}", made.err);
    for name in ["d/closed", "d/secret"] {
        assert!(
            made.err
                .contains(&format!("tamis: {name}: Permission denied")),
            "{}",
            made.err
        );
    }
    let ran = run("grep --candidates needle out/ix");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("d/closed: Permission denied"),
        "{}",
        ran.err
    );
    let found: Vec<&str> = ran.text().lines().collect();
    assert!(found.contains(&"d/secret"), "{found:?}");
    assert_eq!(found.contains(&"d/open"), root, "{found:?}: {}", ran.err);
    mode("d/closed", 0o755);
    mode("d/secret", 0o644);
    let ran = run("grep --candidates needle out/ix");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.text().contains("d/closed/log\n") && ran.text().contains("d/secret\n"));
}

/// Writes a file with a fixed time, like npm's tarballs.
fn write_undated(dir: &Sandbox, name: &str, text: &str) {
    dir.write(name, text);
    set_back(
        dir,
        name,
        SystemTime::UNIX_EPOCH + Duration::from_secs(499_162_500),
    );
}

fn set_back(dir: &Sandbox, name: &str, time: SystemTime) {
    // Not open for writing, so that other users see it as quiet.
    let file = fs::File::open(dir.path(name)).unwrap();
    file.set_modified(time).unwrap();
}

/// ext4 reuses the inode of a deleted file for the next one created.
#[test]
fn a_file_with_the_inode_of_a_deleted_one_is_another() {
    let line = "{\"a\":\"filler\"}\n";
    let in_the_middle = |word: &str| line.repeat(400) + word + "\n" + &line.repeat(400);
    let without_an_end = |word: &str| format!("{{\"name\":\"{word}\",\"main\":\"index\"}}");
    let grown = |word: &str| in_the_middle(word) + if word == "needle" { line } else { "" };
    type Text<'a> = &'a dyn Fn(&str) -> String;
    let texts: [Text; 3] = [&in_the_middle, &without_an_end, &grown];
    for text in texts {
        for name in ["d/new", "d/old"] {
            let dir = Sandbox::new();
            fs::create_dir(dir.path("d")).unwrap();
            dir.write("d/other", "nothing\n");
            write_undated(&dir, "d/old", &text("thread"));
            dir.ok("index ix -p 1e-6 d");
            fs::remove_file(dir.path("d/old")).unwrap();
            write_undated(&dir, name, &text("needle"));
            assert_eq!(which(&dir, "needle ix"), [name]);
            assert_eq!(dir.ok("grep -c needle ix").text(), format!("{name}:1\n"));
            let made = dir.ok("index ix");
            assert!(made.err.contains(" 1 new or changed, "), "{}", made.err);
            assert!(!made.err.contains("renamed"), "{}", made.err);
            assert_eq!(which(&dir, "needle ix"), [name]);
            assert_eq!(dir.run("grep --candidates thread ix").code, 1);
        }
    }
}

/// If all files of a tree have one time, a renamed file may also have been changed.
#[test]
fn a_time_that_was_set_proves_nothing() {
    type Change = fn(&Sandbox);
    let changes: [Change; 4] = [
        |dir| {
            let text = fs::read_to_string(dir.path("d/log")).unwrap() + "filler\n";
            write_undated(dir, "d/log", &text);
        },
        |dir| fs::rename(dir.path("d/log"), dir.path("d/renamed")).unwrap(),
        |dir| fs::hard_link(dir.path("d/log"), dir.path("d/linked")).unwrap(),
        |dir| fs::remove_file(dir.path("d/other")).unwrap(),
    ];
    for change in changes {
        let dir = Sandbox::new();
        fs::create_dir(dir.path("d")).unwrap();
        let filler = "filler\n".repeat(1000);
        write_undated(&dir, "d/log", &format!("{filler}thread\n{filler}"));
        fs::hard_link(dir.path("d/log"), dir.path("d/other")).unwrap();
        dir.ok("index ix -p 1e-6 d");
        write_undated(&dir, "d/log", &format!("{filler}needle\n{filler}"));
        change(&dir);
        let all = fs::read_dir(dir.path("d")).unwrap().count();
        assert_eq!(which(&dir, "needle ix").len(), all);
        dir.ok("index ix");
        assert_eq!(which(&dir, "needle ix").len(), all);
        assert_eq!(dir.run("grep --candidates thread ix").code, 1);
    }
}

/// Writing to a file in place changes its change time, whatever other names it has.
#[cfg(unix)]
#[test]
fn a_file_with_two_names_that_is_written_to_is_seen() {
    use std::os::unix::fs::symlink;
    type Link = fn(&Sandbox);
    let links: [Link; 3] = [
        |dir| fs::hard_link(dir.path("d/log"), dir.path("d/link")).unwrap(),
        |dir| symlink("log", dir.path("d/link")).unwrap(),
        |dir| {
            fs::hard_link(dir.path("d/log"), dir.path("d/a")).unwrap();
            symlink("a", dir.path("d/link")).unwrap();
        },
    ];
    for (link, is_removed) in links.iter().flat_map(|link| [(link, false), (link, true)]) {
        let dir = Sandbox::new();
        fs::create_dir(dir.path("d")).unwrap();
        let filler = "filler\n".repeat(1000);
        dir.write("d/log", format!("{filler}thread\n{filler}"));
        link(&dir);
        dir.ok("index ix -p 1e-6 d");
        let before = fs::metadata(dir.path("d/log")).unwrap().modified().unwrap();
        dir.write("d/log", format!("{filler}needle\n{filler}"));
        set_back(&dir, "d/log", before);
        if is_removed && dir.path("d/link").is_symlink() {
            fs::remove_file(dir.path("d/link")).unwrap();
        }
        let all: Vec<String> = fs::read_dir(dir.path("d"))
            .unwrap()
            .map(|file| format!("d/{}", file.unwrap().file_name().display()))
            .collect();
        let found = which(&dir, "needle ix");
        assert!(all.iter().all(|name| found.contains(name)), "{found:?}");
        assert_eq!(lines(dir.ok("grep needle ix").text()).len(), all.len());
        dir.ok("index ix");
        assert_eq!(which(&dir, "needle ix").len(), all.len());
        assert_eq!(dir.run("grep --candidates thread ix").code, 1);
    }
}

/// A file known under a name that still exists got another name.
#[cfg(unix)]
#[test]
fn a_new_link_is_not_a_new_name() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/log", "needle\n");
    dir.ok("index ix -p 1e-6 d");
    std::os::unix::fs::symlink("log", dir.path("d/soft")).unwrap();
    let made = dir.ok("index ix");
    assert!(
        made.err
            .contains("2 files, 0 new or changed, 1 linked, 0 gone"),
        "{}",
        made.err
    );
    fs::hard_link(dir.path("d/log"), dir.path("d/hard")).unwrap();
    let made = dir.ok("index ix");
    assert!(
        made.err
            .contains("3 files, 0 new or changed, 1 linked, 0 gone"),
        "{}",
        made.err
    );
    assert!(dir.ok("index ix").err.contains("up to date"));
    fs::rename(dir.path("d/hard"), dir.path("d/other")).unwrap();
    let made = dir.ok("index ix");
    assert!(
        made.err.contains("3 files, 0 new or changed, 1 renamed, "),
        "{}",
        made.err
    );
    assert_eq!(which(&dir, "needle ix"), ["d/log", "d/other", "d/soft"]);
}
