//! Fixed lists end to end: build, and check with an allow list.

use crate::common::{Sandbox, keys};

#[test]
fn a_built_filter_answers() {
    let dir = Sandbox::new();
    dir.write("present", keys(0..20_000));
    dir.write("absent", keys(20_000..40_000));
    for (flags, kind) in [
        ("", "fuse"),
        ("--smallest", "ribbon"),
        ("--smallest -p 1e-3 --seed 5", "ribbon"),
        ("--secret", "fuse"),
        ("--allow absent", "cascade"),
    ] {
        let built = dir.ok(&format!("build --force {flags} f.tamis present present"));
        assert!(
            built.err.contains(&format!(
                "{kind} of 20,000 keys (20,000 records repeated a key"
            )),
            "{flags}: {}",
            built.err
        );
        assert_eq!(dir.ok("check f.tamis present").text(), keys(0..20_000));
        let wrong = dir.run("check -c f.tamis absent");
        let wrong: u32 = wrong.text().trim().parse().unwrap();
        let most = if flags.contains("allow") { 0 } else { 220 };
        assert!(wrong <= most, "{flags}: {wrong} false yes");
        let info = dir.ok("info f.tamis");
        assert!(
            info.text().contains(kind) && info.text().contains("20,000"),
            "{}",
            info.text()
        );
        assert!(dir.ok("info --json f.tamis").text().contains("\"width\""));
        assert!(dir.ok("verify f.tamis").text().contains("valid"));
    }
    assert_eq!(dir.list(), ["absent", "f.tamis", "present"]);
}

#[test]
fn small_lists_build() {
    let dir = Sandbox::new();
    for count in [0, 1, 2, 100] {
        for flags in ["", "--smallest", "--allow few"] {
            dir.write("few", keys(1000..1010));
            let built = dir.feed(
                &format!("build --allow-empty --force {flags} f.tamis"),
                keys(0..count),
            );
            assert_eq!(built.code, 0, "{}", built.err);
            let found = dir.feed("check f.tamis", keys(0..count));
            assert_eq!(found.text(), keys(0..count), "{count} keys, {flags}");
            assert!(dir.ok("verify f.tamis").text().contains("valid"));
        }
    }
}

#[test]
fn memory_and_threads_change_no_byte() {
    let dir = Sandbox::new();
    dir.write("list", keys(0..100_000) + &keys(50_000..60_000));
    dir.write("good", keys(100_000..200_000));
    for flags in ["", "--smallest", "--allow good"] {
        dir.ok(&format!("build {flags} --force a.tamis list"));
        dir.ok(&format!(
            "build {flags} --force --memory 1MB -j 1 b.tamis list"
        ));
        dir.ok(&format!(
            "build {flags} --force --memory 100kB -j 3 --temp-dir . c.tamis list"
        ));
        assert!(dir.read("a.tamis") == dir.read("b.tamis"), "{flags}");
        assert!(dir.read("a.tamis") == dir.read("c.tamis"), "{flags}");
    }
    assert_eq!(
        dir.list(),
        ["a.tamis", "b.tamis", "c.tamis", "good", "list"],
        "no litter"
    );
}

#[test]
fn nothing_is_overwritten_and_no_list_is_half_read() {
    let dir = Sandbox::new();
    dir.write("list", "a\nb\n");
    dir.ok("build f.tamis list");
    let before = dir.read("f.tamis");
    let again = dir.run("build f.tamis list");
    assert_eq!(again.code, 2);
    assert!(again.err.contains("--force"), "{}", again.err);
    for line in [
        "build --force f.tamis list nowhere",
        "build --force --allow nowhere f.tamis list",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("nowhere"), "{}", ran.err);
    }
    assert!(dir.run("build g.tamis list -p 1e-12").err.contains("2^-32"));
    assert_eq!(dir.read("f.tamis"), before);
    assert_eq!(dir.list(), ["f.tamis", "list"]);
}

#[test]
fn static_filters_say_what_to_do_instead() {
    let dir = Sandbox::new();
    dir.write("list", "a\nb\n");
    dir.ok("build f.tamis list");
    for line in ["add f.tamis list", "add --shared f.tamis list"] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("build it again"), "{}", ran.err);
    }
    let created = dir.run("create --kind fuse --capacity 10 g.tamis");
    assert!(created.err.contains("tamis build"), "{}", created.err);
    let merged = dir.run("merge --union -o h.tamis f.tamis f.tamis");
    assert_eq!(merged.code, 2);
    assert!(merged.err.contains("build it again"), "{}", merged.err);
}

/// Different keys with the same XXH3 hash: see `colliding` in tamis's tests/finished.rs.
fn colliding(which: u32) -> Vec<u8> {
    let mut key = vec![b'x'; 256];
    key[..4].copy_from_slice(&[0xB8, 0xFE, 0x6C, 0x39]);
    key[4..8].copy_from_slice(&(0x6141_4141 + which).to_le_bytes());
    key[64..68].copy_from_slice(&[0x7C, 0x01, 0x81, 0x2C]);
    key[68..72].copy_from_slice(&(0x6141_4141 - which).to_le_bytes());
    key.push(b'\n');
    key
}

#[test]
fn keys_that_somebody_made_collide_are_refused() {
    let dir = Sandbox::new();
    dir.write("bad", [keys(0..10).as_bytes(), &colliding(1)].concat());
    dir.write("good", [keys(10..20).as_bytes(), &colliding(2)].concat());
    dir.write("one", colliding(1));
    for both in ["", "--both block", "--both allow"] {
        let refused = dir.run(&format!("build {both} --allow good f.tamis bad"));
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains("collision: "), "{}", refused.err);
        assert!(refused.err.contains("--secret"), "{}", refused.err);
        let built = dir.ok(&format!(
            "build --force --secret {both} --allow good k.tamis bad"
        ));
        assert!(built.err.contains("cascade of 11 keys"), "{}", built.err);
        assert_eq!(dir.ok("check -c k.tamis bad").text(), "11\n");
        assert_eq!(dir.run("check -c k.tamis good").text(), "0\n");
    }
    assert!(!dir.list().contains(&"f.tamis".to_owned()));
    // The same key on both lists is a contradiction, not a collision.
    let refused = dir.run("build --allow one f.tamis bad");
    assert!(
        refused.err.contains("1 key is on both lists"),
        "{}",
        refused.err
    );
    dir.ok("build --both allow --allow one f.tamis bad");
}

#[test]
fn a_key_on_both_lists_is_told() {
    let dir = Sandbox::new();
    dir.write("bad", keys(0..1000));
    dir.write("good", keys(998..3000));
    let refused = dir.run("build --allow good f.tamis bad");
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("2 keys are on both lists"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("key998") || refused.err.contains("key999"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("--both"), "{}", refused.err);
    assert_eq!(dir.list(), ["bad", "good"]);

    let ran = dir.ok("build --allow good --both block f.tamis bad");
    assert!(ran.err.contains("the block list wins"), "{}", ran.err);
    assert_eq!(dir.ok("check f.tamis bad").text(), keys(0..1000));
    assert_eq!(dir.ok("check f.tamis good").text(), keys(998..1000));

    dir.ok("build --force --allow good --both allow f.tamis bad");
    assert_eq!(dir.ok("check f.tamis bad").text(), keys(0..998));
    assert_eq!(dir.run("check f.tamis good").text(), "");
}

#[test]
fn allow_lists_are_read_like_the_block_list() {
    let dir = Sandbox::new();
    dir.write("bad.csv", "id,mail\n1,a@x\n2,b@x\n");
    dir.write("good.csv", "id,mail\n7,c@x\n8,b@x\n");
    let refused = dir.run("build -k csv:mail --allow good.csv f.tamis bad.csv");
    assert!(
        refused
            .err
            .contains("1 key is on both lists, for example 8,b@x"),
        "{}",
        refused.err
    );
    dir.ok("build -k csv:mail --allow good.csv --both allow f.tamis bad.csv");
    assert_eq!(dir.feed("check f.tamis", "a@x\nb@x\nc@x\n").text(), "a@x\n");
}

#[test]
fn check_knows_an_allow_list() {
    let dir = Sandbox::new();
    dir.ok("create f.tamis --capacity 10 -p 0.9");
    dir.write("all", keys(0..100));
    dir.ok("add f.tamis all");
    dir.write("good", keys(50..60));
    let expected = keys(0..50) + &keys(60..100);
    assert_eq!(dir.ok("check --allow good f.tamis all").text(), expected);
    assert_eq!(
        dir.ok("check -v --allow good f.tamis all").text(),
        keys(50..60)
    );
    assert_eq!(dir.run("check -q --allow good f.tamis good").code, 1);
    assert_eq!(dir.run("check --allow nowhere f.tamis good").code, 2);
}

#[test]
fn plan_tells_of_finished_lists() {
    let dir = Sandbox::new();
    let plan = dir.ok("plan --capacity 1M");
    let text = plan.text();
    for (kind, purpose) in [("fuse", "finished lists"), ("ribbon", "smallest")] {
        let row = text.lines().find(|line| line.starts_with(kind));
        assert!(row.is_some_and(|row| row.contains(purpose)), "{text}");
    }
    let finished = dir.ok("plan --capacity 1M --finished");
    let text = finished.text();
    assert!(
        text.contains("Pick fuse") && text.contains("tamis build"),
        "{text}"
    );
    assert!(text.contains("Ribbon: "), "{text}");
    assert!(
        !text.contains("cuckoo") && !text.contains("growing"),
        "{text}"
    );
    // Too low for a 32-bit fingerprint; the other kinds are still planned.
    let lower = dir.ok("plan --capacity 1M -p 1e-12");
    assert!(
        lower
            .text()
            .contains("\nfuse      rate: expected at least 2^-32"),
        "{}",
        lower.text()
    );
}
