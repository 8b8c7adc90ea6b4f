//! Files that aren't text, or can't be read: the exit code depends on what was found, unless --strict is given.

use super::peer::{TREE, assert_same, tamis};
use super::queries::Syntax;
use crate::common::Sandbox;
use std::fs;
use std::io::Write;

fn tree_of_kinds() -> Sandbox {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    dir.write("tree/app.log", "an ERROR needle\nanother line\n");
    dir.write(
        "tree/table.parquet",
        b"PAR1\x15\x04\x15\x10needle ERROR\x10\x00\x00\x00PAR1",
    );
    dir.write(
        "tree/paper.pdf",
        b"%PDF-1.4\n1 0 obj\n<< /Length 5 >>\nneedle\n%%EOF\n",
    );
    dir.write(
        "tree/archive.zip",
        b"PK\x03\x04\x14\x00\x00\x00\x08\x00needle",
    );
    let mut cut = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    cut.write_all("needle in a cut file\n".repeat(1000).as_bytes())
        .unwrap();
    let whole = cut.finish().unwrap();
    dir.write("tree/cut.gz", &whole[..whole.len() / 2]);
    dir
}

#[test]
fn the_exit_code_is_about_what_was_found() {
    let dir = tree_of_kinds();
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path("tree/fifo"))
            .status();
        assert!(made.unwrap().success());
    }
    let made = tamis(&dir, ["index", "ix", TREE]);
    for said in [
        "tree/cut.gz: ",
        "3 files",
        "tree/archive.zip: a zip archive",
    ] {
        assert!(made.err.contains(said), "{said}: {}", made.err);
    }
    let found = tamis(&dir, ["grep", "-n", "ERROR needle", "ix"]);
    assert_eq!(
        (found.code, found.text()),
        (0, "tree/app.log:1:an ERROR needle\n"),
        "{}",
        found.err
    );
    assert_eq!(tamis(&dir, ["grep", "nowhere", "ix"]).code, 1);
    for word in ["ERROR", "nowhere"] {
        let strict = tamis(&dir, ["grep", "--strict", word, "ix"]);
        assert_eq!(strict.code, 2, "{word}: {}", strict.err);
        for name in ["table.parquet", "paper.pdf", "archive.zip", "cut.gz"] {
            assert!(
                strict.err.contains(name),
                "{name} was not reported: {}",
                strict.err
            );
        }
    }
    // Without them there is nothing left to report.
    let made = tamis(
        &dir,
        [
            "index",
            "ix2",
            "-g",
            "!*.{parquet,pdf,zip}",
            "-g",
            "!cut.gz",
            TREE,
        ],
    );
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(tamis(&dir, ["grep", "--strict", "ERROR", "ix2"]).code, 0);
    assert_eq!(tamis(&dir, ["grep", "--strict", "nowhere", "ix2"]).code, 1);
}

#[test]
fn utf_16_is_text() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    let text = "first line\nGröße ERROR needle\nlast line\n";
    let little = std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes);
    let big = std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_be_bytes);
    dir.write("tree/little.txt", little.collect::<Vec<u8>>());
    dir.write("tree/big.txt", big.collect::<Vec<u8>>());
    dir.ok(&format!("index -q ix {TREE}"));
    assert_same(&dir, "ix", "-n", Syntax::Words, "ERROR");
    assert_same(&dir, "ix", "-n", Syntax::Words, "Größe");
    assert_same(&dir, "ix", "-n -i", Syntax::Literal, "RÖSSE");
    assert_same(&dir, "ix", "-n", Syntax::Regex, "^last line$");
    assert_same(&dir, "ix", "-c", Syntax::Words, "nowhere");
}

/// One byte order mark at the start of a file isn't text. Any other is.
#[test]
fn only_the_first_mark_is_left_out() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    let text = "\u{feff}\u{feff}needle\n\u{feff}needle\n";
    dir.write("tree/narrow.txt", text);
    dir.write(
        "tree/wide.txt",
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>(),
    );
    dir.ok(&format!("index -q ix {TREE}"));
    for options in ["-n", "-b", "-b -o", "--column", "-c"] {
        assert_same(&dir, "ix", options, Syntax::Words, "needle");
    }
    assert_same(&dir, "ix", "-n", Syntax::Regex, "^\u{feff}needle");
    assert_same(&dir, "ix", "-n", Syntax::Regex, "^needle");
}

/// Files that the user may not read.
#[cfg(target_os = "linux")]
#[test]
fn what_may_not_be_read_is_reported_once() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    fs::create_dir(dir.path("out")).unwrap();
    dir.write("tree/open", "needle\n");
    dir.write("tree/closed", "needle\n");
    let mode = |name: &str, mode| {
        fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    mode(".", 0o755);
    mode("tree/closed", 0o000);
    // Root may read everything, so it switches to another user.
    let root = fs::metadata(dir.path(".")).unwrap().uid() == 0;
    if root {
        chown(dir.path("out"), Some(65534), Some(65534)).unwrap();
    }
    let run = |line: &str| {
        let mut command = dir.command(line);
        if root {
            command.uid(65534).gid(65534);
        }
        super::peer::finish(&mut command)
    };
    let made = run("index out/ix tree");
    assert!(made.err.contains("tree/closed"), "{}", made.err);
    let found = run("grep needle out/ix");
    assert_eq!(
        (found.code, found.text()),
        (0, "tree/open:needle\n"),
        "{}",
        found.err
    );
    assert_eq!(run("grep nowhere out/ix").code, 1);
    assert_eq!(run("grep --strict needle out/ix").code, 2);
    mode("tree/closed", 0o644);
    let found = run("grep needle out/ix");
    assert_eq!(
        (found.code, found.text()),
        (0, "tree/closed:needle\ntree/open:needle\n"),
        "{}",
        found.err
    );
    assert_eq!(run("grep --strict needle out/ix").code, 0);
}

#[test]
fn globs_and_ignore_files_choose_what_is_indexed() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("tree/cache")).unwrap();
    fs::create_dir_all(dir.path("tree/.git")).unwrap();
    for name in [
        "app.log",
        "app.tmp",
        "cache/x.log",
        ".hidden.log",
        ".git/config",
        "ignored.log",
    ] {
        dir.write(&format!("tree/{name}"), "needle\n");
    }
    dir.write("tree/.tamisignore", "*.tmp\n");
    dir.write("tree/.gitignore", "ignored.log\n");
    let files = |options: &str| -> Vec<String> {
        let _ = fs::remove_file(dir.path("ix"));
        dir.ok(&format!("index -q ix {options} {TREE}"));
        let found = dir.ok("grep -l needle ix");
        found
            .text()
            .lines()
            .map(|name| name.replace("tree/", ""))
            .collect()
    };
    assert_eq!(
        files(""),
        [
            ".git/config",
            ".hidden.log",
            "app.log",
            "cache/x.log",
            "ignored.log"
        ]
    );
    assert_eq!(files("--gitignore"), ["app.log", "cache/x.log"]);
    assert_eq!(files("-g !cache -g !.*"), ["app.log", "ignored.log"]);
    // A file that a glob names is searched.
    assert_eq!(files("-g app.*"), ["app.log", "app.tmp"]);
    assert_eq!(files("-g app.* -g !*.tmp"), ["app.log"]);
    // New files are chosen by the same rules.
    dir.write("tree/app.2", "needle\n");
    dir.write("tree/other.2", "needle\n");
    dir.write("tree/app.2.tmp", "needle\n");
    assert_eq!(
        dir.ok("grep -l needle ix").text(),
        "tree/app.2\ntree/app.log\n"
    );
}
