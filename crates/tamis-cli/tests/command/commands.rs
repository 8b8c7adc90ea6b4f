//! The command end to end: create, add, check, info, verify, merge, export, import.

use crate::common::{Sandbox, keys};
use std::process::Stdio;

#[test]
fn a_filter_remembers_what_was_added() {
    let dir = Sandbox::new();
    dir.write("present", keys(0..5000));
    dir.write("absent", keys(5000..10_000));
    for kind in ["blocked", "bloom"] {
        for hash in ["", "--seed 7", "--secret"] {
            dir.ok(&format!(
                "create f.tamis --capacity 5000 --kind {kind} {hash} --force"
            ));
            let added = dir.ok("add f.tamis present");
            assert!(added.err.contains("5,000 keys read"), "{}", added.err);
            assert_eq!(dir.ok("check f.tamis present").text(), keys(0..5000));
            let again = dir.run("check -v f.tamis present");
            assert_eq!((again.code, again.text()), (1, ""));
            // 1 % promised; 100 in 5000 would be twice that.
            let wrong: u32 = dir
                .run("check -c f.tamis absent")
                .text()
                .trim()
                .parse()
                .unwrap();
            assert!(wrong < 100, "{kind} {hash}: {wrong} false yes");
        }
    }
}

#[test]
fn check_is_like_grep() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100 -p 1e-9");
    assert_eq!(dir.feed("add f.tamis", "apple\npear\n").code, 0);
    let check = |flags: &str, input: &str| {
        let ran = dir.feed(&format!("check {flags} f.tamis"), input);
        (ran.code, ran.text().to_owned())
    };
    assert_eq!(
        check("", "apple\nplum\npear\n"),
        (0, "apple\npear\n".into())
    );
    assert_eq!(check("-v", "apple\nplum\npear\n"), (0, "plum\n".into()));
    assert_eq!(check("-c", "apple\nplum\npear\n"), (0, "2\n".into()));
    assert_eq!(check("-q", "apple\n"), (0, String::new()));
    assert_eq!(check("-q", "plum\n"), (1, String::new()));
    assert_eq!(check("-c", "plum\n"), (1, "0\n".into()));
    assert_eq!(check("", ""), (1, String::new()));
    let missing = dir.run("check nowhere.tamis");
    assert_eq!(missing.code, 2);
    assert!(
        missing.err.contains("nowhere.tamis") && missing.err.contains("tamis create"),
        "{}",
        missing.err
    );
    let key = dir.run("check f.tamis apple");
    assert_eq!(key.code, 2);
    assert!(key.err.contains("echo KEY | tamis"), "{}", key.err);
}

#[test]
fn keys_are_bytes_of_any_length() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000 -p 1e-9");
    let long = vec![b'x'; 10_000_000];
    let mut input = b"\xff\xfe invalid \x80\nwith\0nul\ncrlf\r\n".to_vec();
    input.extend_from_slice(&long);
    input.extend_from_slice(b"\nno newline at the end");
    assert_eq!(dir.feed("add f.tamis", &input).code, 0);
    for key in [
        &b"\xff\xfe invalid \x80"[..],
        b"with\0nul",
        b"crlf",
        &long,
        b"no newline at the end",
    ] {
        assert_eq!(dir.feed("check -q f.tamis", key).code, 0);
        let mut with_crlf = key.to_vec();
        with_crlf.extend_from_slice(b"\r\n");
        assert_eq!(dir.feed("check -q f.tamis", with_crlf).code, 0);
    }
    assert_eq!(dir.feed("check -q f.tamis", &long[1..]).code, 1);
    // With NUL as separator, a line feed is part of the key.
    assert_eq!(dir.feed("add -z f.tamis", "two\nlines\0other\0").code, 0);
    assert_eq!(
        dir.feed("check -c -z f.tamis", "two\nlines\0other").text(),
        "2\n"
    );
    assert_eq!(dir.feed("check -q f.tamis", "two\n").code, 1);
}

#[test]
fn keys_can_be_removed_and_counted() {
    let dir = Sandbox::new();
    for kind in ["counting", "cuckoo"] {
        dir.ok(&format!(
            "create f.tamis --capacity 1000 -p 1e-6 --kind {kind} --force"
        ));
        assert_eq!(dir.feed("add f.tamis", "a\nb\na\nc\n").code, 0);
        let counted = dir.feed("check --tally f.tamis", "a\nb\nx\n");
        assert_eq!(
            (counted.code, counted.text()),
            (0, "2\ta\n1\tb\n0\tx\n"),
            "{kind}"
        );
        assert_eq!(dir.feed("remove f.tamis", "a\nb\n").code, 0);
        assert_eq!(dir.feed("check f.tamis", "a\nb\nc\n").text(), "a\nc\n");
        let absent = dir.feed("remove --absent f.tamis", "a\nx\n");
        assert_eq!((absent.code, absent.text()), (0, "x\n"));
        assert_eq!(dir.feed("check f.tamis", "a\nb\nc\n").text(), "c\n");
        assert_eq!(dir.feed("check --tally f.tamis", "a\n").code, 1);
        assert!(dir.ok("info f.tamis").text().contains(kind));
    }
    dir.ok("create f.tamis --capacity 1000 --force");
    for line in ["remove f.tamis", "check --tally f.tamis"] {
        let ran = dir.feed(line, "a\n");
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("blocked filters can't be"), "{}", ran.err);
    }
}

#[test]
fn a_full_cuckoo_filter_refuses_and_stays() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000 --kind cuckoo");
    let before = dir.read("f.tamis");
    dir.write("keys", keys(0..3000));
    let ran = dir.run("add f.tamis keys");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("full") && ran.err.contains("% of its slots"),
        "{}",
        ran.err
    );
    assert_eq!(dir.read("f.tamis"), before);
}

#[test]
fn a_growing_filter_takes_any_number() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000 -p 1e-4 --kind growing");
    dir.write("keys", keys(0..50_000));
    let ran = dir.ok("add f.tamis keys");
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    assert_eq!(dir.ok("check -c f.tamis keys").text(), "50000\n");
    assert!(dir.ok("info f.tamis").text().contains("layers"));
    assert!(dir.ok("verify f.tamis").text().contains("valid"));
}

#[test]
fn add_tells_what_was_new() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000 -p 1e-9");
    let ran = dir.feed("add --new f.tamis", "a\nb\na\nc\n");
    assert_eq!((ran.code, ran.text()), (0, "a\nb\nc\n"));
    let again = dir.feed("add --new f.tamis", "c\nd\n");
    assert_eq!((again.code, again.text()), (0, "d\n"));
    let nothing = dir.feed("add f.tamis", "a\n");
    assert_eq!((nothing.code, nothing.text()), (0, ""));
    assert!(nothing.err.contains("1 key read, 0 new"), "{}", nothing.err);
}

#[test]
fn add_in_place_gives_the_same_filter() {
    let dir = Sandbox::new();
    dir.write("keys", keys(0..3000));
    dir.ok("create a.tamis --capacity 3000");
    dir.ok("create b.tamis --capacity 3000");
    dir.ok("add a.tamis keys");
    dir.ok("add --shared b.tamis keys");
    assert_eq!(dir.ok("info a.tamis").text(), dir.ok("info b.tamis").text());
    assert_eq!(dir.read("a.tamis")[128..], dir.read("b.tamis")[128..]);
    // A small filter is sealed like when saved.
    assert_eq!(dir.read("a.tamis"), dir.read("b.tamis"));
    // A large one has no checksum until sealed.
    dir.ok("create c.tamis --capacity 20M");
    dir.ok("add --shared c.tamis keys");
    assert!(dir.ok("info c.tamis").text().contains("not sealed"));
    assert!(dir.ok("verify c.tamis").text().contains("--seal"));
    let sealed = dir.ok("verify --seal c.tamis");
    assert!(sealed.text().contains("checksums: valid"));
    assert!(!dir.ok("info c.tamis").text().contains("not sealed"));
}

#[test]
fn damage_is_noticed_by_every_command() {
    let dir = Sandbox::new();
    dir.write("keys", keys(0..3000));
    dir.ok("create f.tamis --capacity 3000 --kind counting");
    dir.ok("add f.tamis keys");
    let mut bytes = dir.read("f.tamis");
    bytes[1024..1088].fill(0);
    dir.write("f.tamis", &bytes);
    for line in [
        "check f.tamis keys",
        "check --tally f.tamis keys",
        "info f.tamis",
        "verify f.tamis",
        "add f.tamis keys",
        "add --shared f.tamis keys",
        "remove f.tamis keys",
        "dedup --filter f.tamis keys",
        "copy f.tamis - --as base64",
        "copy f.tamis g.tamis",
        "merge --union -o g.tamis f.tamis f.tamis",
        "verify --seal f.tamis",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains("checksum"), "{line}: {}", ran.err);
    }
    assert_eq!(dir.read("f.tamis"), bytes);
    assert_eq!(dir.run("check -q --no-verify f.tamis keys").code, 0);
    dir.ok("info --no-verify f.tamis");
}

#[test]
fn overfilling_warns_and_says_the_rate() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100");
    dir.write("keys", keys(0..1000));
    let ran = dir.ok("add f.tamis keys");
    assert!(
        ran.err.contains("made for 100") && ran.err.contains("rate is now"),
        "{}",
        ran.err
    );
    let info = dir.ok("info f.tamis");
    assert!(
        info.err.contains("warning") && info.text().contains("blocked"),
        "{}",
        info.err
    );
    let json: serde_json::Value =
        serde_json::from_slice(&dir.ok("info --json f.tamis").out).unwrap();
    assert_eq!(json["over_capacity"], true);
    assert!(json["rate_now"].as_f64().unwrap() > 0.2);
}

#[test]
fn nothing_is_overwritten_silently() {
    let dir = Sandbox::new();
    dir.ok("create a.tamis --capacity 100");
    dir.ok("create b.tamis --capacity 100");
    dir.write("text", dir.ok("copy a.tamis - --as base64").out);
    let before = dir.read("b.tamis");
    for line in [
        "create b.tamis --capacity 5",
        "merge --union -o b.tamis a.tamis a.tamis",
        "copy text b.tamis",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(
            ran.err.contains("b.tamis already exists") && ran.err.contains("--force"),
            "{}",
            ran.err
        );
        assert_eq!(dir.read("b.tamis"), before);
    }
    for line in [
        "create b.tamis --capacity 5 --force",
        "merge --union -o b.tamis a.tamis a.tamis --force",
        "copy text b.tamis --force",
    ] {
        dir.ok(line);
    }
    assert_eq!(dir.list(), ["a.tamis", "b.tamis", "text"], "litter");
}

#[test]
fn merge_combines_and_refuses_the_unlike() {
    let dir = Sandbox::new();
    for (name, range) in [("a", 0..600), ("b", 400..1000)] {
        dir.ok(&format!("create {name}.tamis --capacity 1000 -p 1e-9"));
        dir.write(name, keys(range));
        dir.ok(&format!("add {name}.tamis {name}"));
    }
    dir.write("all", keys(0..1000));
    dir.ok("merge --union -o u.tamis a.tamis b.tamis");
    assert_eq!(dir.ok("check -c u.tamis all").text(), "1000\n");
    assert!(
        dir.ok("info u.tamis").text().contains("about"),
        "an estimate must say so"
    );
    dir.ok("merge --intersect -o i.tamis a.tamis b.tamis");
    assert_eq!(dir.ok("check i.tamis all").text(), keys(400..600));

    dir.ok("create other.tamis --capacity 1000 -p 1e-9 --seed 5");
    let ran = dir.run("merge --union -o x.tamis a.tamis other.tamis");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("the seed is 0 in one and 5 in the other"),
        "{}",
        ran.err
    );
    assert!(!dir.path("x.tamis").exists());
}

#[test]
fn export_and_import_are_inverse() {
    let dir = Sandbox::new();
    dir.ok("create a.tamis --capacity 100");
    assert_eq!(dir.feed("add a.tamis", "key\n").code, 0);
    let text = dir.ok("copy a.tamis - --as base64").out;
    assert_eq!(dir.feed("copy - b.tamis", &text).code, 0);
    assert_eq!(dir.read("a.tamis"), dir.read("b.tamis"));
    let ran = dir.feed("copy - c.tamis", "no base64 at all!");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("base64"), "{}", ran.err);
}

#[test]
fn a_secret_may_be_kept_apart() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100 --secret-file secret");
    assert_eq!(
        dir.feed("add --secret-file secret f.tamis", "key\n").code,
        0
    );
    assert_eq!(
        dir.feed("check -q --secret-file secret f.tamis", "key\n")
            .code,
        0
    );
    let without = dir.feed("check -q f.tamis", "key\n");
    assert_eq!(without.code, 2);
    assert!(without.err.contains("--secret-file"), "{}", without.err);
    dir.write("other", "00112233445566778899aabbccddeeff\n");
    assert_eq!(
        dir.feed("check -q --secret-file other f.tamis", "key\n")
            .code,
        2
    );
    dir.write("broken", "xyz");
    assert!(
        dir.run("info --secret-file broken f.tamis")
            .err
            .contains("32 hexadecimal digits")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(dir.path("secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "others can read the secret");
    }
}

#[test]
fn verify_finds_damage() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 1000");
    dir.write("keys", keys(0..1000));
    dir.ok("add f.tamis keys");
    let sound = dir.ok("verify f.tamis");
    assert!(
        sound.text().contains("valid") && sound.text().contains("measured"),
        "{}",
        sound.text()
    );
    let mut bytes = dir.read("f.tamis");
    bytes[500] ^= 1;
    dir.write("f.tamis", &bytes);
    let damaged = dir.run("verify f.tamis");
    assert_eq!(damaged.code, 2);
    assert!(
        damaged.err.contains("body checksum: expected"),
        "{}",
        damaged.err
    );
    dir.write("f.tamis", &bytes[..300]);
    let short = dir.run("check f.tamis keys");
    assert_eq!(short.code, 2);
    assert!(
        short.err.contains("file length") && short.err.contains("300 bytes"),
        "{}",
        short.err
    );
    dir.write("f.tamis", "something else entirely, long enough to hold a header, if only it were one: it goes on and on for more than one hundred and twenty-eight bytes");
    assert!(dir.run("info f.tamis").err.contains("is text"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100k");
    dir.write("keys", keys(0..200_000));
    dir.ok("add f.tamis keys");
    for line in [
        "check f.tamis keys",
        "plan --table",
        "copy f.tamis - --as base64",
    ] {
        let mut child = dir
            .command(line)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("rror"),
            "{line}"
        );
    }
}

#[test]
fn an_unreadable_input_is_named_and_the_rest_is_done() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100");
    dir.write("good", "a\nb\n");
    let ran = dir.run("add f.tamis missing good");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("missing"), "{}", ran.err);
    assert_eq!(dir.ok("check -c f.tamis good").text(), "2\n");
}

#[test]
fn a_full_disk_loses_nothing() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 100");
    let before = dir.read("f.tamis");
    dir.write("keys", keys(0..50));
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = dir
        .command("add --new f.tamis keys")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("writing the output"));
    // Records that were not printed as new aren't remembered as seen.
    assert_eq!(dir.read("f.tamis"), before);
}

/// A counting filter becomes the blocked filter that its keys would have built.
#[test]
fn copy_as_blocked() {
    let dir = Sandbox::new();
    dir.ok("create counting.tamis --capacity 1000 -p 0.01 --kind counting");
    dir.ok("create blocked.tamis --capacity 1000 -p 0.01 --kind blocked");
    assert_eq!(dir.feed("add counting.tamis", "apple\npear\nfig\n").code, 0);
    assert_eq!(dir.feed("remove counting.tamis", "pear\n").code, 0);
    assert_eq!(dir.feed("add blocked.tamis", "apple\nfig\n").code, 0);
    dir.ok("copy counting.tamis handed-out.tamis --as blocked");
    assert_eq!(dir.read("handed-out.tamis"), dir.read("blocked.tamis"));
    let refused = dir.run("copy blocked.tamis other.tamis --as blocked");
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("only a counting filter"),
        "{}",
        refused.err
    );
}
