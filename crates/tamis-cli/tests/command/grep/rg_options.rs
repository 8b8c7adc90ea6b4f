//! Options that people know from rg: the same here, or refused by name.

use super::peer::{TREE, assert_same, rg, tamis};
use super::queries::Syntax;
use crate::common::Sandbox;
use std::fs;

fn small_tree() -> Sandbox {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    dir.write("tree/a.log", "needle -x one\nNeedle\n");
    dir.write("tree/b.json", "{\"needle\":1}\n");
    dir.write("tree/c.txt", "a needle\nother\n");
    dir.ok(&format!("index -q ix {TREE}"));
    dir
}

#[test]
fn a_glob_goes_before_a_type() {
    let dir = small_tree();
    for options in [
        "-t json -g *.log",
        "-t json -g !*.log",
        "-T json -g *.json",
        "-T json -g !*.log",
        "-t json -t txt -g !b*",
        "-g *.log -g !a*",
    ] {
        assert_same(
            &dir,
            "ix",
            &format!("-n {options}"),
            Syntax::Words,
            "needle",
        );
    }
}

#[test]
fn the_last_option_about_case_counts() {
    let dir = small_tree();
    for options in ["-s", "-i -s", "-s -i", "-S -s", "-s -S", "-i -S", "-S -i"] {
        for pattern in ["needle", "Needle"] {
            assert_same(&dir, "ix", &format!("-n {options}"), Syntax::Words, pattern);
        }
    }
}

#[test]
fn what_is_done_anyway_can_be_asked_for() {
    let dir = small_tree();
    let plain = dir.ok("grep -n needle ix");
    for options in [
        "-z",
        "-a",
        "--hidden",
        "-.",
        "--no-ignore",
        "-uuu",
        "-zauu -s",
        "--search-zip --text",
    ] {
        let ran = dir.ok(&format!("grep -n {options} needle ix"));
        assert_eq!(ran.text(), plain.text(), "{options}");
    }
}

#[test]
fn what_cant_be_done_is_refused_by_name() {
    let dir = small_tree();
    for (option, name) in [
        ("-U", "--multiline"),
        ("-P", "--pcre2"),
        ("-r with", "--replace"),
        ("--vimgrep", "--vimgrep"),
        ("--trim", "--trim"),
        ("--passthru", "--passthru"),
        ("--max-depth 1", "--max-depth"),
        ("--follow", "--follow"),
    ] {
        let ran = dir.run(&format!("grep {option} needle ix"));
        assert_eq!((ran.code, ran.text()), (2, ""), "{option}: {}", ran.err);
        let said = format!("{name}, as in ripgrep: ");
        assert!(ran.err.contains(&said), "{option}: {}", ran.err);
    }
}

#[test]
fn what_to_look_for_may_begin_with_a_dash() {
    let dir = small_tree();
    dir.ok(&format!("index -q ix2 {TREE}/c.txt"));
    for args in [
        &["-e", "-x"][..],
        &["-e", "other", "-e", "-x"],
        &["--regexp=one", "-e", "a needle"],
    ] {
        let found = tamis(&dir, [&["grep", "-n"][..], args, &["ix"]].concat());
        let expected = rg(
            &dir,
            [&["-n", "-wF", "--sort=path"][..], args, &[TREE]].concat(),
        );
        assert_eq!(
            (found.code, found.text()),
            (0, expected.text()),
            "{args:?}: {}",
            found.err
        );
    }
    // All further arguments are indexes.
    let found = tamis(&dir, ["grep", "-e", "other", "needle", "ix2"]);
    assert_eq!(found.code, 2);
    assert!(found.err.contains("needle: no such index"), "{}", found.err);
}

#[test]
fn orders_can_be_reversed() {
    let dir = small_tree();
    for (number, name) in ["b.json", "c.txt", "a.log"].iter().enumerate() {
        let file = fs::File::open(dir.path(TREE).join(name)).unwrap();
        let time =
            std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + number as u64);
        file.set_modified(time).unwrap();
    }
    for order in [
        "--sort path",
        "--sortr path",
        "--sort modified",
        "--sortr modified",
        "--sortr path --sort path",
    ] {
        let words = |line: &'static str| line.split(' ').map(String::from);
        let ours = tamis(
            &dir,
            words("grep -l needle ix").chain(order.split(' ').map(String::from)),
        );
        let theirs = rg(
            &dir,
            words("-l -wF needle tree").chain(order.split(' ').map(String::from)),
        );
        assert_eq!(ours.text(), theirs.text(), "{order}: {}", ours.err);
    }
}

/// Like rg since 15.
#[test]
fn a_quiet_question_has_the_same_answer() {
    let dir = small_tree();
    for (line, code) in [
        ("-q needle ix", 0),
        ("-q nowhere ix", 1),
        ("-q -L other ix", 0),
        ("-q -L needle ix", 1),
    ] {
        let ran = dir.run(&format!("grep {line}"));
        assert_eq!((ran.code, ran.text()), (code, ""), "{line}: {}", ran.err);
    }
}

#[test]
fn the_arguments_of_rg_are_explained() {
    let dir = small_tree();
    for (line, says) in [
        (
            "grep needle tree",
            "tree: a folder, not an index\nhint: `tamis index tree.index tree` makes one",
        ),
        ("grep ix needle", "tamis grep needle ix"),
        ("grep ix", "the pattern comes first"),
        ("grep needle", "no index to search in"),
        (
            "grep -F needle tree/a.log",
            "`tamis index a.log.index tree/a.log` makes one",
        ),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.err.contains(says), "{line}: {}", ran.err);
    }
}

/// rg -z unpacks these with external programs, and so reports nothing.
#[test]
fn what_is_packed_in_other_ways_is_reported() {
    let dir = small_tree();
    for (name, bytes) in [
        ("d.lz4", &b"\x04\x22\x4D\x18\x64\x40\xA7\x01\xFF"[..]),
        ("e.Z", b"\x1F\x9D\x90\x6E\xCA\x94\xFF"),
        ("f.lzma", b"\x5D\0\0\x80\0\xFF\xFF\xFF\xFF"),
        ("g.zip", b"PK\x03\x04\x14\0\0\0\x08\0needle"),
    ] {
        dir.write(&format!("tree/{name}"), bytes);
    }
    dir.ok("index -q ix");
    let ran = dir.ok("grep -l other ix");
    assert_eq!(ran.text(), "tree/c.txt\n");
    for said in ["d.lz4: lz4 data", "e.Z: compress data", "f.lzma: LZMA data"] {
        assert!(
            ran.err
                .contains(&format!("tree/{said}, which is not unpacked")),
            "{}",
            ran.err
        );
    }
    assert!(!ran.err.contains("g.zip"), "{}", ran.err);
    assert_eq!(dir.run("grep --strict -l other ix").code, 2);
}

/// In the format of rg's messages.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_are_kept_in_json() {
    use std::os::unix::ffi::OsStrExt;
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xE9");
    fs::write(dir.path("d").join(name), "id\nneedle\n").unwrap();
    dir.ok("index -q ix d");
    dir.ok("index -q rows --key csv:id d");
    let bytes = r#""file":{"bytes":"ZC9jYWbp"}"#;
    for line in [
        "grep --candidates --json needle ix",
        "grep --candidates --json needle rows",
        "grep --json needle rows",
    ] {
        let ran = dir.ok(line);
        assert!(ran.text().contains(bytes), "{line}: {}", ran.text());
    }
    fs::write(dir.path("d").join(name), "id\nchanged\n").unwrap();
    let info: serde_json::Value = serde_json::from_str(dir.ok("info --json ix").text()).unwrap();
    assert_eq!(info["not_fresh"][0]["file"]["bytes"], "ZC9jYWbp");
}
