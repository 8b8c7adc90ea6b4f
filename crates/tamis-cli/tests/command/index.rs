//! `tamis index`, `which`, `grep`, and `info` and `verify` of an index.

mod changes;
mod formats;
mod keys;
mod logs;

use crate::common::Sandbox;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// The files that may hold a key.
fn which(dir: &Sandbox, line: &str) -> Vec<String> {
    let ran = dir.run(&format!("grep --candidates {line}"));
    assert!(ran.code < 2, "grep --candidates {line}: {}", ran.err);
    ran.text().lines().map(String::from).collect()
}

#[test]
fn a_rerun_reads_only_what_changed() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("d/sub")).unwrap();
    for name in ["d/a", "d/b", "d/sub/c", "d/.hidden"] {
        dir.write(
            name,
            format!("only-in-{}\n", &name[2..].replace(['/', '.'], "-")),
        );
    }
    let made = dir.ok("index ix -p 1e-6 d");
    assert!(
        made.err.contains("4 files, 4 new or changed, 0 gone"),
        "{}",
        made.err
    );
    let before = dir.read("ix");
    assert!(dir.ok("index ix").err.contains("up to date"));
    assert_eq!(dir.read("ix"), before);

    dir.write("d/b", "replaced\n");
    fs::remove_file(dir.path("d/sub/c")).unwrap();
    dir.write("d/new", "brand new\n");
    // Before the index is updated: changed and new files are candidates, deleted ones aren't.
    let ran = dir.ok("grep --candidates brand ix");
    assert_eq!(ran.text(), "d/b\nd/new\n");
    assert!(ran.err.contains("d/b: changed") && ran.err.contains("d/new: not in the index"));
    let ran = dir.ok("grep --candidates only-in-sub-c ix");
    assert_eq!(ran.text(), "d/b\nd/new\n");
    assert!(ran.err.contains("d/sub/c: gone"), "{}", ran.err);
    assert_eq!(dir.ok("grep -n brand ix").text(), "d/new:1:brand new\n");
    let info = dir.ok("info --json ix");
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    for (state, count) in [
        ("fresh", 2),
        ("stale", 1),
        ("new", 1),
        ("gone", 1),
        ("files", 4),
    ] {
        assert_eq!(info[state], count, "{state}");
    }
    assert_eq!(info["roots"][0], "d");

    let again = dir.ok("index ix");
    assert!(
        again.err.contains("4 files, 2 new or changed, 1 gone"),
        "{}",
        again.err
    );
    assert_eq!(which(&dir, "brand ix"), ["d/new"]);
    assert_eq!(which(&dir, "replaced ix"), ["d/b"]);
    assert_eq!(which(&dir, "only-in--hidden ix"), ["d/.hidden"]);
    // An update gives the same bytes as a new index.
    dir.ok("index fresh -p 1e-6 d");
    assert_eq!(dir.read("ix"), dir.read("fresh"));

    // Another key or rate affects every file.
    let all = dir.ok("index ix -p 1e-3");
    assert!(
        all.err.contains("again: ") && all.err.contains("4 new or changed"),
        "{}",
        all.err
    );
    let all = dir.ok("index ix --key line");
    assert!(all.err.contains("again: "), "{}", all.err);
    assert_eq!(dir.run("grep --candidates brand ix").code, 1);
    assert_eq!(dir.ok("grep -n replaced ix").text(), "d/b:1:replaced\n");
    // Other files replace the previous ones.
    let fewer = dir.ok("index ix d/sub d/a");
    assert!(
        fewer.err.contains("1 file,") && fewer.err.contains("3 gone"),
        "{}",
        fewer.err
    );
}

#[test]
fn an_index_answers_from_any_folder() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("work/logs")).unwrap();
    dir.write("work/logs/a", "needle\n");
    let run = |folder: &str, line: &str| {
        let mut command = dir.command(line);
        let ran = command.current_dir(dir.path(folder)).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    run("work", "index ../ix logs");
    assert_eq!(run("work", "grep --candidates needle ../ix"), "logs/a\n");
    let place = fs::canonicalize(dir.path("work")).unwrap().join("logs/a");
    assert_eq!(
        run(".", "grep --candidates needle ix"),
        format!("{}\n", place.display())
    );
    assert_eq!(run(".", "grep -nI needle ix"), "1:needle\n");
    // An update looks in the first run's places.
    dir.write("work/logs/b", "other\n");
    run(".", "index ix");
    assert_eq!(run("work", "grep --candidates other ../ix"), "logs/b\n");
}

/// Appended to, truncated, replaced with equal size and times: a changed file is never skipped.
#[test]
fn a_changed_file_is_never_skipped() {
    let dir = Sandbox::new();
    for name in ["appended", "cut", "replaced", "in-place", "kept"] {
        dir.write(name, format!("{name} first\n{name} second\n"));
    }
    let names = "appended cut replaced in-place kept";
    dir.ok(&format!("index ix -p 1e-6 {names}"));
    assert_eq!(dir.run("grep --candidates wanted ix").code, 1);

    let open = |name: &str| {
        fs::OpenOptions::new()
            .append(true)
            .open(dir.path(name))
            .unwrap()
    };
    open("appended").write_all(b"wanted\n").unwrap();
    open("cut").set_len(4).unwrap();
    // Another file with the same name, size and modification time.
    let old = fs::metadata(dir.path("replaced")).unwrap();
    dir.write("other", "wanted: 1234567890 1234567890\n\n");
    let other = fs::metadata(dir.path("other")).unwrap();
    assert_eq!(old.len(), other.len());
    let set_times = |name: &str, times: &fs::Metadata| {
        let times = fs::FileTimes::new().set_modified(times.modified().unwrap());
        fs::File::options()
            .write(true)
            .open(dir.path(name))
            .unwrap()
            .set_times(times)
            .unwrap();
    };
    set_times("other", &old);
    fs::rename(dir.path("other"), dir.path("replaced")).unwrap();
    // The same file, overwritten, with its time set back.
    let old = fs::metadata(dir.path("in-place")).unwrap();
    let mut file = fs::File::options()
        .write(true)
        .open(dir.path("in-place"))
        .unwrap();
    file.write_all(b"wanted  ").unwrap();
    drop(file);
    set_times("in-place", &old);

    let ran = dir.ok("grep --candidates wanted ix");
    assert_eq!(ran.text(), "appended\ncut\nin-place\nreplaced\n");
    assert!(ran.err.contains("appended: has grown since it was indexed"));
    assert_eq!(
        ran.err.matches("changed since it was indexed").count(),
        3,
        "{}",
        ran.err
    );
    let json = dir.ok("grep --candidates --json wanted ix");
    assert_eq!(json.text().matches("\"stale\"").count(), 3);
    assert_eq!(json.text().matches("\"grown\"").count(), 1);
    assert_eq!(
        dir.ok("grep -c wanted ix").text(),
        "appended:1\nin-place:1\nreplaced:1\n"
    );
    dir.ok("index ix");
    assert_eq!(
        which(&dir, "wanted ix"),
        ["appended", "in-place", "replaced"]
    );
    assert_eq!(which(&dir, "cut ix"), ["cut"]);
}

#[test]
fn empty_binary_and_damaged_files() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/empty", "");
    let mut binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    binary.extend_from_slice(b"\0needle-7\0");
    dir.write("d/binary", &binary);
    dir.write("d/whole.gz", gzip(b"packed words\n"));
    let mut cut = gzip(&binary);
    cut.truncate(cut.len() - 20);
    dir.write("d/cut.gz", &cut);
    dir.write("d/empty.gz", gzip(b""));
    let made = dir.run("index ix -p 1e-6 d");
    assert_eq!(made.code, 2);
    assert!(
        made.err.contains("d/cut.gz: the gzip data is cut short"),
        "{}",
        made.err
    );
    assert_eq!(which(&dir, "needle-7 ix"), ["d/binary", "d/cut.gz"]);
    assert_eq!(which(&dir, "packed ix"), ["d/cut.gz", "d/whole.gz"]);
    let ran = dir.ok("grep --candidates nowhere ix");
    assert_eq!(ran.text(), "d/cut.gz\n");
    assert!(ran.err.contains("could not be indexed"), "{}", ran.err);
    // The readable part is searched, and the rest reported.
    let found = dir.run("grep -c needle-7 ix");
    assert_eq!((found.code, found.text()), (0, "d/binary:1\n"));
    assert_eq!(dir.run("grep -c --strict needle-7 ix").code, 2);
    assert!(found.err.contains("cut short"), "{}", found.err);
    assert_eq!(
        dir.run("grep -n packed ix").text(),
        "d/whole.gz:1:packed words\n"
    );
    // Once repaired, it is read.
    dir.write("d/cut.gz", gzip(b"mended\n"));
    dir.ok("index ix");
    assert_eq!(which(&dir, "mended ix"), ["d/cut.gz"]);
    assert_eq!(dir.run("grep --candidates nowhere ix").code, 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A file that even root can't read: its own memory, from address 0.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_read_is_always_a_candidate() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/good", "word\n");
    std::os::unix::fs::symlink("/proc/self/mem", dir.path("d/bad")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path("d/dangling")).unwrap();
    std::os::unix::fs::symlink("..", dir.path("d/up")).unwrap();
    let made = dir.run("index ix -p 1e-6 d");
    assert_eq!(made.code, 2);
    assert!(made.err.contains("tamis: d/bad: "), "{}", made.err);
    assert!(made.err.contains("2 files"), "{}", made.err);
    assert_eq!(which(&dir, "word ix"), ["d/bad", "d/good"]);
    assert_eq!(which(&dir, "other ix"), ["d/bad"]);
    let json = dir.ok("grep --candidates --json other ix");
    assert_eq!(
        json.text(),
        "{\"files\":[{\"file\":\"d/bad\",\"state\":\"unread\"}],\"key\":\"other\"}\n"
    );
    let found = dir.run("grep -n word ix");
    assert_eq!((found.code, found.text()), (0, "d/good:1:word\n"));
    assert_eq!(dir.run("grep --strict word ix").code, 2);
    assert!(found.err.contains("d/bad: "), "{}", found.err);
    // A folder in place of a file.
    fs::remove_file(dir.path("d/good")).unwrap();
    fs::create_dir(dir.path("d/good")).unwrap();
    dir.write("d/good/inner", "word\n");
    assert_eq!(which(&dir, "word ix"), ["d/bad", "d/good/inner"]);

    let missing = dir.run("index other nowhere d/good");
    assert_eq!(missing.code, 2);
    assert!(
        missing.err.contains("nowhere: No such file")
            && missing.err.contains("nothing was written"),
        "{}",
        missing.err
    );
    assert!(!dir.path("other").exists());

    // Everything unreachable: the index is kept.
    fs::rename(dir.path("d"), dir.path("unmounted")).unwrap();
    let before = dir.read("ix");
    let away = dir.run("index ix");
    assert_eq!(away.code, 2);
    assert!(away.err.contains("nothing was written"), "{}", away.err);
    assert_eq!(dir.read("ix"), before);
}

/// An index in the folder that it indexes isn't indexed itself.
#[test]
fn the_index_itself_is_left_out() {
    let dir = Sandbox::new();
    dir.write("a", "word\n");
    dir.ok("index ix .");
    assert!(dir.ok("index ix .").err.contains("up to date"));
    assert_eq!(which(&dir, "word ix"), ["./a"]);
    assert_eq!(dir.run("grep --candidates nothing ix").code, 1);
    // Named along with others, and under another name.
    dir.ok("index ix a ix");
    assert!(dir.ok("index ix").err.contains("up to date"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("ix", dir.path("link")).unwrap();
        dir.ok("index link .");
        assert!(dir.ok("index link").err.contains("up to date"));
        assert_eq!(dir.run("grep --candidates nothing ix").code, 1);
    }
}

/// An interrupted run keeps its results and misses nothing; the next one continues.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/0-small", "word\n");
    // Gigabytes, compressed to little: indexing them takes longer than this test waits.
    let member = gzip("some words of a long log\n".repeat(1 << 20).as_bytes());
    dir.write("d/large.gz", member.repeat(400));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let _ = fs::remove_file(dir.path("ix"));
        let mut child = crate::common::start(dir.command("index -j1 ix d").stderr(Stdio::piped()));
        // Once the index exists, it is at work.
        while !dir.path("ix").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: signals our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(128 + signal));
        assert_eq!(which(&dir, "word ix"), ["d/0-small", "d/large.gz"]);
        assert_eq!(dir.list(), ["d", "ix"]);
    }
    fs::remove_file(dir.path("d/large.gz")).unwrap();
    dir.ok("index ix");
    assert_eq!(which(&dir, "word ix"), ["d/0-small"]);
}

/// An index of an earlier version can't be queried, but records what to index again.
#[test]
fn an_index_of_the_first_edition_is_made_again() {
    let dir = Sandbox::new();
    let table = format!("\0{}\0d", dir.path("").display());
    is_made_again(&dir, table.as_bytes());
}

#[test]
fn an_index_of_the_second_edition_is_made_again() {
    let dir = Sandbox::new();
    let folder = dir.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let length = [folder.len() as u8];
    let folder = [&length[..], folder.as_bytes()].concat();
    // Home, folder, roots, included, excluded, flags, parts, files.
    let rest = b"\x01\x01d\0\x01\x06*.skip\0\0\0";
    is_made_again(&dir, &[b"\x002", &folder[..], &folder, rest].concat());
    dir.write("d/b.skip", "other\n");
    assert!(dir.ok("index ix").err.contains("up to date"));
}

fn is_made_again(dir: &Sandbox, table: &[u8]) {
    use tamis::index::{EntryKeys, IndexBuilder, IndexOptions};
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/a", "word\n");
    let options = IndexOptions::new(0.02).unwrap().specs(["line"]).unwrap();
    let mut builder = IndexBuilder::create(dir.path("ix"), &options).unwrap();
    let keyless = EntryKeys::new(&options).build().unwrap();
    builder.add(table, None, &keyless).unwrap();
    builder.finish().unwrap();
    let asked = dir.run("grep --candidates word ix");
    assert_eq!(asked.code, 2);
    assert!(
        asked.err.contains("`tamis index ix` indexes"),
        "{}",
        asked.err
    );
    let made = dir.ok("index ix");
    assert!(
        made.err.contains("made by an earlier version"),
        "{}",
        made.err
    );
    let info = dir.ok("info --json ix");
    assert!(info.text().contains("\"key\": \"line\""), "{}", info.text());
    assert!(info.text().contains("0.02"), "{}", info.text());
    assert_eq!(dir.ok("grep --candidates word ix").code, 0);
    assert_eq!(dir.run("grep --candidates other ix").code, 1);
}

#[test]
fn what_is_no_index_is_told() {
    let dir = Sandbox::new();
    dir.write("a", "word\n");
    dir.write("text", "no index at all, but long enough to be looked at\n");
    dir.ok("create f.tamis --capacity 10");
    for (line, says) in [
        ("grep --candidates word nowhere", "tamis index nowhere"),
        ("grep --candidates word text", "not an index"),
        ("grep --candidates word f.tamis", "not an index"),
        ("index text a", "not an index"),
        ("index new", "name files or folders"),
        ("index new --key words a", "expected word, trigram, line"),
        ("index new --key word --key word a", "different"),
        ("index new -p 0.9 a", "0.5"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains(says), "{line}: {}", ran.err);
    }
    dir.ok("index ix a");
    assert!(dir.ok("info ix").text().contains("1 of word"));
    assert!(dir.ok("verify ix").text().contains("valid"));
    assert!(dir.run("check ix a").err.contains("tamis grep"));
    let mut bytes = dir.read("ix");
    let at = 130;
    bytes[at] ^= 1;
    dir.write("ix", &bytes);
    let ran = dir.run("verify ix");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("ix: "), "{}", ran.err);
}
