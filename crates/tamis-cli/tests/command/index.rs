//! `tamis index`, `which`, `grep`, and `info` and `verify` of an index.

mod changes;
mod formats;

use crate::common::Sandbox;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
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
fn the_examples_of_hbase() {
    let dir = Sandbox::new();
    dir.write("sf1", "row,qualifier,value\nr1,q1,v\nr2,q1,v\n");
    dir.write("sf2", "row,qualifier,value\nr3,q1,v\nr4,q1,v\n");
    dir.ok("index by-row --key csv:row -p 0.0001 sf1 sf2");
    assert_eq!(which(&dir, "r1 by-row"), ["sf1"]);
    assert_eq!(which(&dir, "r4 by-row"), ["sf2"]);
    assert_eq!(dir.run("grep --candidates r9 by-row").code, 1);

    dir.write("sf2", "row,qualifier,value\nr1,q2,v\nr2,q2,v\n");
    dir.ok("index both --key csv:row --key csv:row,qualifier -p 0.0001 sf1 sf2");
    assert_eq!(which(&dir, "--key csv:row r1 both"), ["sf1", "sf2"]);
    assert_eq!(which(&dir, "--key csv:row,qualifier r1,q1 both"), ["sf1"]);
    assert_eq!(which(&dir, "--key csv:row,qualifier r1,q2 both"), ["sf2"]);
    let found = dir.ok("grep -n --key csv:row r1 both");
    assert_eq!(found.text(), "sf1:2:r1,q1,v\nsf2:2:r1,q2,v\n");
    let found = dir.ok("grep -n --key csv:row,qualifier r2,q2 both");
    assert_eq!(found.text(), "sf2:3:r2,q2,v\n");

    // With several key specs, the user has to name one.
    let unsaid = dir.run("grep --candidates r1 both");
    assert_eq!(unsaid.code, 2);
    assert!(unsaid.err.contains("--key") && unsaid.err.contains("csv:row, csv:row,qualifier"));
    let unknown = dir.run("grep --candidates --key word r1 both");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("csv:row,qualifier"), "{}", unknown.err);
}

/// A request's id, 16 pseudo-random digits.
fn id(number: u64) -> String {
    format!("{:016x}", (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A log of about `bytes`, in which every request leaves three lines.
fn log(file: u64, bytes: usize) -> String {
    let mut text = String::new();
    for request in 0.. {
        if text.len() >= bytes {
            break;
        }
        let id = id(file << 32 | request);
        let (second, ip) = (request / 20 % 60, request.wrapping_mul(2_654_435_761) >> 8);
        for (step, message) in ["accepted", "GET /cart/items?page=2", "done in 12 ms"]
            .iter()
            .enumerate()
        {
            text += &format!(
                "2026-11-15T05:03:{second:02}.{:03}Z INFO [{id}] 10.{}.{}.{}:443 {message}\n",
                request % 20 * 50 + step as u64,
                ip & 255,
                ip >> 8 & 255,
                ip >> 16 & 255,
            );
        }
    }
    text
}

fn compress(tool: &str, path: &Path) -> bool {
    let done = Command::new(tool)
        .arg("-f")
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// 200 logs of 50 KB, or in the long run 1,000 of 2 MB; every fifth is compressed.
#[test]
fn logs_are_found_like_grep_finds_them() {
    let long = std::env::var_os("TAMIS_LONG").is_some();
    let (files, bytes) = if long {
        (1000, 2 << 20)
    } else {
        (200, 50 << 10)
    };
    let dir = Sandbox::new();
    fs::create_dir(dir.path("logs")).unwrap();
    for file in 0..files {
        let name = format!("logs/{file:04}.log");
        dir.write(&name, log(file, bytes));
        if file % 5 == 0 {
            assert!(compress("gzip", &dir.path(&name)));
        }
    }
    // These tools exist on most systems; files that they can't compress stay plain.
    for (tool, file) in [("zstd", 1), ("bzip2", 2), ("xz", 3)] {
        let path = dir.path(&format!("logs/{file:04}.log"));
        if compress(tool, &path) {
            let _ = fs::remove_file(&path);
        }
    }
    dir.ok("index logs.index logs");

    let requests = bytes / 300;
    let asked = 40;
    let mut others = 0;
    for n in 0..asked {
        let file = n * 7919 % files;
        let id = id((file << 32) + n * 31 % requests as u64);
        let candidates = which(&dir, &format!("{id} logs.index"));
        let own = format!("logs/{file:04}.log");
        assert!(candidates.iter().any(|c| c.starts_with(&own)), "{id}");
        others += candidates.len() - 1;
    }
    let share = others as f64 / (asked * (files - 1)) as f64;
    assert!(share <= 0.015, "{share}");

    for n in [0, 1, 5, 6, files - 1] {
        let id = id(n << 32 | 7);
        let found = dir.ok(&format!("grep -n {id} logs.index"));
        // What grep finds in plain files, and zgrep in gzip files.
        let expected = Command::new("sh")
            .arg("-c")
            .arg("{ grep -rnF --include='*.log' \"$1\" logs; zgrep -nHF \"$1\" logs/*.gz; } | sort")
            .args(["sh", &id])
            .current_dir(dir.path("."))
            .output()
            .unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        match n {
            // Compressed in a format that neither of them reads.
            1 => assert_eq!(found.text().lines().count(), 3),
            _ => assert_eq!(found.text(), expected),
        }
        assert_eq!(lines(&expected).len(), if n == 1 { 0 } else { 3 });
    }
    // An address, and a phrase with white space, both of which occur in many files.
    let found = dir.ok("grep -c page=2 logs.index");
    assert_eq!(lines(found.text()).len(), files as usize);
    let naive = log(7, bytes);
    let naive = naive.lines().filter(|line| line.contains("12 ms")).count();
    let found = dir
        .command("grep -c")
        .args(["12 ms", "logs.index"])
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert!(found.contains(&format!("logs/0007.log:{naive}\n")));
    let mut command = dir.command("grep -l");
    let asked = ["GET /cart/items?page=2", "logs.index"];
    let found = command.args(asked).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(lines(&found).len(), files as usize);
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

#[test]
fn every_format_has_its_keys() {
    let dir = Sandbox::new();
    dir.write(
        "t.csv",
        "id,name\n7,\"Smith, \"\"Bob\"\"\"\n8,\"two\nlines\"\n9,end\n",
    );
    dir.write("t.tsv", "id\tname\n7\tSmith, \"Bob\"\n");
    dir.write(
        "t.jsonl",
        "{\"id\":7,\"user\":{\"name\":\"Sm\\u0069th\"}}\n{\"id\":\"8\"}\nnot json\n",
    );
    let ask = |spec: &str, key: &str| {
        let mut command = dir.command("grep -n -k");
        let ran = command.args([spec, key, "ix"]).output().unwrap();
        (
            ran.status.code().unwrap(),
            String::from_utf8(ran.stdout).unwrap(),
        )
    };
    let made = dir.ok(
        "index ix -p 1e-6 --key csv:name --key csv:id --key tsv:2 --key jsonl:/id \
         --key jsonl:/id,/user/name --key prefix:3:csv:name --key csv:1 t.csv t.tsv t.jsonl",
    );
    // The columns aren't in every file, which is reported but isn't an error.
    assert!(
        made.err
            .contains("2 files without a key csv:name, for example t.jsonl: no column"),
        "{}",
        made.err
    );
    assert!(made.err.contains("without a key jsonl:/id"), "{}", made.err);
    let row = "t.csv:2:7,\"Smith, \"\"Bob\"\"\"\n";
    assert_eq!(ask("csv:name", "Smith, \"Bob\""), (0, row.into()));
    assert_eq!(ask("csv:id", "9"), (0, "t.csv:5:9,end\n".into()));
    assert_eq!(ask("csv:id", "id"), (1, String::new()));
    assert_eq!(ask("csv:1", "id"), (0, "t.csv:1:id,name\n".into()));
    assert_eq!(
        ask("tsv:2", "Smith, \"Bob\""),
        (0, "t.tsv:2:7\tSmith, \"Bob\"\n".into())
    );
    assert_eq!(
        ask("jsonl:/id", "8"),
        (0, "t.jsonl:2:{\"id\":\"8\"}\n".into())
    );
    assert_eq!(ask("jsonl:/id,/user/name", "7,Smith").0, 0);
    assert_eq!(ask("jsonl:/id,/user/name", "8,Smith"), (1, String::new()));
    assert_eq!(ask("prefix:3:csv:name", "Smi"), (0, row.into()));
    assert_eq!(ask("prefix:3:csv:name", "Smith, "), (0, row.into()));
    assert_eq!(ask("prefix:3:csv:name", "Smithy"), (1, String::new()));
    assert_eq!(ask("prefix:3:csv:name", "Sm").0, 2);
    let two = dir.ok("grep -n --key csv:name --json end ix");
    assert_eq!(
        two.text(),
        "{\"file\":\"t.csv\",\"key\":\"end\",\"line\":5,\"text\":\"9,end\"}\n"
    );
}

/// A query must find any value as it was indexed.
#[test]
fn values_written_in_odd_ways_are_found() {
    let dir = Sandbox::new();
    dir.write(
        "odd.csv",
        "\u{FEFF}first,b\n\"ab\"cd,\"q\"\"q\"\r\nx,\"un\nclosed",
    );
    dir.write(
        "odd.jsonl",
        "\u{FEFF}{\"id\":\"a\\/b\"}\r\n{ \"id\" : \"c\" , \"id\":1e3}",
    );
    dir.ok("index ix -p 1e-6 --key csv:1 --key csv:2 --key csv:first --key jsonl:/id odd.csv odd.jsonl");
    for (spec, key, line) in [
        ("csv:1", "first", "odd.csv:1:"),
        ("csv:1", "abcd", "odd.csv:2:"),
        ("csv:first", "abcd", "odd.csv:2:"),
        ("csv:2", "q\"q", "odd.csv:2:"),
        ("csv:2", "un\nclosed", "odd.csv:3:"),
        ("jsonl:/id", "a/b", "odd.jsonl:1:"),
        ("jsonl:/id", "1e3", "odd.jsonl:2:"),
    ] {
        let ran = dir
            .command("grep -n -k")
            .args([spec, key, "ix"])
            .output()
            .unwrap();
        let found = String::from_utf8(ran.stdout).unwrap();
        assert!(found.starts_with(line), "{spec} {key}: {found}");
    }
}

#[test]
fn several_keys_are_told_apart() {
    let dir = Sandbox::new();
    dir.write("a", "one two\n");
    dir.write("b", "two three\n");
    dir.ok("index ix -p 1e-6 a b");
    assert_eq!(
        dir.ok("grep --candidates -e one -e two ix").text(),
        "one\ta\ntwo\ta\ntwo\tb\n"
    );
    assert_eq!(
        dir.feed("grep --candidates -f - ix", "three\r\nfour\n")
            .text(),
        "three\tb\n"
    );
    assert_eq!(
        dir.ok("grep --candidates -l -e one -e two ix").text(),
        "a\nb\n"
    );
    assert_eq!(dir.ok("grep --candidates -0 two ix").out, b"a\0b\0");
    assert_eq!(
        dir.ok("grep -n -e one -e three ix").text(),
        "a:1:one two\nb:1:two three\n"
    );
    assert_eq!(dir.ok("grep -l two ix").text(), "a\nb\n");
    assert_eq!(dir.run("grep -n onet ix").code, 1);
    assert_eq!(dir.run("grep --candidates ix").code, 2);
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

/// Two row groups, a column with nulls.
#[cfg(feature = "parquet")]
#[test]
fn parquet_rows_are_found() {
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let dir = Sandbox::new();
    let table = |name: &str, groups: &[[(i64, Option<&str>); 3]]| {
        let schema = "message table { required int64 id; optional binary name (UTF8); }";
        let schema = parse_message_type(schema).unwrap().into();
        let file = fs::File::create(dir.path(name)).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
        for rows in groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let ids = rows.map(|(id, _)| id);
            column
                .typed::<Int64Type>()
                .write_batch(&ids, None, None)
                .unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let names: Vec<_> = rows
                .iter()
                .filter_map(|(_, name)| name.map(ByteArray::from))
                .collect();
            let levels = rows.map(|(_, name)| i16::from(name.is_some()));
            column
                .typed::<ByteArrayType>()
                .write_batch(&names, Some(&levels), None)
                .unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
    };
    table(
        "a",
        &[
            [(1, Some("x")), (2, None), (3, Some("y"))],
            [(4, None), (5, Some("x")), (6, None)],
        ],
    );
    table("b", &[[(-7, Some("z,1")), (8, Some("")), (9, None)]]);
    dir.write("c", "id,name\n1,x\n");
    let made = dir.ok(
        "index ix -p 1e-6 --key parquet:id --key parquet:name --key parquet:id,name --key word a b c",
    );
    assert!(made.err.contains("c: not a Parquet file"), "{}", made.err);
    assert!(
        made.err
            .contains("2 files that may hold any key word, for example a: a Parquet file"),
        "{}",
        made.err
    );
    let ask = |spec: &str, key: &str| {
        let mut command = dir.command("grep -n -k");
        let ran = command.args([spec, "--", key, "ix"]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(ask("parquet:id", "5"), "a:5:5\n");
    assert_eq!(ask("parquet:id", "-7"), "b:1:-7\n");
    assert_eq!(ask("parquet:name", "x"), "a:1:x\na:5:x\n");
    assert_eq!(ask("parquet:name", ""), "b:2:\n");
    assert_eq!(ask("parquet:id,name", "5,x"), "a:5:5,x\n");
    assert_eq!(ask("parquet:id,name", "-7,\"z,1\""), "b:1:-7,\"z,1\"\n");
    assert_eq!(ask("parquet:id,name", "2,"), "");
    assert_eq!(which(&dir, "--key parquet:name z,1 ix"), ["b"]);
    // Its bytes aren't words, but its columns are known.
    assert_eq!(which(&dir, "--key word nowhere ix"), ["a", "b"]);
    assert_eq!(dir.run("grep --candidates --key parquet:id 77 ix").code, 1);
    assert!(dir.ok("index ix").err.contains("up to date"));
    // Inside gzip its columns aren't known.
    dir.write("b", gzip(&dir.read("a")));
    dir.ok("index ix");
    assert_eq!(which(&dir, "--key parquet:id 77 ix"), ["b"]);
}
