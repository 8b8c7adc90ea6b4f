//! Filters that are made here as their systems make them: created, built, added to, united and copied.

use super::samples::{kicked, numbers, sample_path, words};
use super::{fails, lines, with_sample};
use crate::common::Sandbox;

#[test]
fn filters_are_created_and_built_as_their_systems_do() {
    let sandbox = Sandbox::new();
    sandbox.write("keys", lines(&words()));
    sandbox.write("numbers", lines(&numbers()));
    let is_sample = |name: &str, file: &str| {
        assert!(
            sandbox.read(name) == std::fs::read(sample_path(file)).unwrap(),
            "{file}"
        );
    };
    for (format, flags, file) in [
        (
            "dcso",
            "--format keys=utf8",
            "dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom",
        ),
        (
            "guava",
            "--format keys=utf8",
            "guava/guava_string_utf8_n1000_p01_key0-499.mitz64.bin",
        ),
        (
            "guava",
            "--format keys=utf16",
            "guava/guava_unencodedchars_n1000_p01_key0-499.mitz64.bin",
        ),
        (
            "bits-and-blooms",
            "",
            "bitsandblooms/bb_v3_n1000_p01_key0-499.bin",
        ),
        (
            "poppy",
            "--format keys=utf8",
            "poppy/poppy_v2_n1000_p01_key0-499.bloom",
        ),
    ] {
        let name = format!("{format}{}", flags.replace(' ', ""));
        sandbox.ok(&format!(
            "create --format {format} --capacity 1000 -p 0.01 {name}"
        ));
        sandbox.ok(&format!("add {flags} {name} keys"));
        is_sample(&name, file);
    }
    for format in [
        "bip37",
        "bits-and-blooms",
        "bloom-filters",
        "dcso",
        "guava",
        "parquet",
        "poppy",
        "pybloomfilter",
        "redisbloom",
        "redisbloom-cuckoo",
        "spark",
    ] {
        let flags = match format {
            "dcso" | "guava" | "parquet" | "poppy" | "pybloomfilter" | "spark" => ",keys=utf8",
            _ => "",
        };
        let built = sandbox.ok(&format!(
            "build --format {format}{flags} keys -o {format}.built"
        ));
        assert!(built.err.contains("500 keys"), "{}", built.err);
        let found = sandbox.ok(&format!(
            "check --format {format}{flags} {format}.built keys"
        ));
        assert_eq!(found.text(), lines(&words()), "{format}");
        sandbox.ok(&format!("verify --probes 100k {format}.built"));
        // Only the set of keys matters, not their order or number.
        let mut mixed = words();
        mixed.reverse();
        mixed.extend(words());
        let line = format!("build --format {format}{flags} - -o {format}.again");
        let again = sandbox.feed(&line, lines(&mixed));
        assert_eq!(again.code, 0, "{}", again.err);
        assert!(
            again.err.contains("500 records repeated a key"),
            "{}",
            again.err
        );
        assert!(
            sandbox.read(&format!("{format}.again")) == sandbox.read(&format!("{format}.built"))
        );
        // Nothing is overwritten without being asked.
        let line = format!("build --format {format}{flags} keys -o {format}.built");
        fails(&sandbox.run(&line), &["already exists", "--force"]);
        sandbox.ok(&format!("{line} --force"));
        fails(
            &sandbox.run(&format!(
                "create --format {format} --capacity 10 {format}.built"
            )),
            &["already exists"],
        );
    }
    sandbox.ok("build --format guava,keys=int64 numbers -o longs");
    assert_eq!(
        sandbox.ok("check --format keys=int64 longs numbers").text(),
        lines(&numbers())
    );
    // Without -o, the first name is the file, as usual.
    sandbox.ok("build --format dcso,keys=utf8 first.bloom keys");
    assert!(sandbox.read("first.bloom") == sandbox.read("dcso.built"));

    for (line, said) in [
        (
            "create --format orc --capacity 10 x",
            "only their own system writes",
        ),
        ("create --format redisson --capacity 10 x", "lives in Redis"),
        (
            "create --format dcso --kind cuckoo --capacity 10 x",
            "--kind",
        ),
        ("create --format dcso --seed 7 --capacity 10 x", "no seed"),
        (
            "create --format redisbloom-cuckoo -p 0.1 --capacity 10 x",
            "8 bits",
        ),
        ("build --format dcso -o x keys", "--format dcso,keys=HOW"),
        (
            "build --format dcso,keys=utf8 --smallest -o x keys",
            "--smallest",
        ),
        ("build --format dcso,keys=int32 -o x keys", "whole number"),
        ("build --format keys=utf8 -o x keys", "--format"),
        (
            "build --format spark,keys=utf8 -o x keys nothing",
            "nothing",
        ),
    ] {
        fails(&sandbox.run(line), &[said]);
        assert!(!sandbox.path("x").exists(), "{line}");
    }
    let small = sandbox.ok("create --format bip37 --capacity 1M -p 0.001 x");
    assert!(
        small.err.contains("will have a rate of 0.969"),
        "{}",
        small.err
    );
    sandbox.ok("create --format spark --seed 7 --capacity 1000 seeded");
}

#[test]
fn many_add_at_once_and_no_key_is_lost() {
    let sandbox = Sandbox::new();
    sandbox.ok("create --format dcso --capacity 10000 f");
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for round in 0..5 {
                    let keys: String = (0..50).map(|i| format!("{worker} {round} {i}\n")).collect();
                    assert_eq!(sandbox.feed("add --format keys=utf8 f", keys).code, 0);
                }
            });
        }
    });
    let all = (0..1000).map(|i| format!("{} {} {}\n", i / 250, i / 50 % 5, i % 50));
    let all: String = all.collect();
    assert_eq!(sandbox.feed("check --format keys=utf8 f", &all).text(), all);
}

#[test]
fn filters_of_one_shape_are_united_and_others_are_not() {
    let sandbox = Sandbox::new();
    sandbox.write("a", lines(&words()[..250]));
    sandbox.write("b", lines(&words()[250..]));
    sandbox.write("all", lines(&words()));
    for (format, flags) in [
        ("bip37", ""),
        ("bits-and-blooms", ""),
        ("bloom-filters", ""),
        ("dcso", "--format keys=utf8"),
        ("guava", "--format keys=utf8"),
        ("parquet", "--format keys=utf8"),
        ("poppy", "--format keys=utf8"),
        ("pybloomfilter", "--format keys=utf8"),
        ("redisbloom", ""),
        ("spark", "--format keys=utf8"),
    ] {
        for part in ["a", "b", "all"] {
            sandbox.ok(&format!(
                "create --format {format} --capacity 1000 {format}.{part}"
            ));
            sandbox.ok(&format!("add {flags} {format}.{part} {part}"));
        }
        sandbox.ok(&format!(
            "merge --union -o {format}.ab {format}.a {format}.b"
        ));
        let found = sandbox.ok(&format!("check {flags} {format}.ab all"));
        assert_eq!(found.text(), lines(&words()), "{format}");
        // Without a count, it is identical to the filter of all keys.
        if !matches!(format, "dcso" | "poppy" | "redisbloom") {
            let (united, all) = (format!("{format}.ab"), format!("{format}.all"));
            assert!(sandbox.read(&united) == sandbox.read(&all), "{format}");
        }
        let again = sandbox.run(&format!(
            "merge --union -o {format}.ab {format}.a {format}.b"
        ));
        fails(&again, &["already exists"]);
        fails(
            &sandbox.run(&format!("merge --intersect -o x {format}.a {format}.b")),
            &["but not intersected"],
        );
        let size = if format == "parquet" {
            "50000"
        } else {
            "70000"
        };
        sandbox.ok(&format!(
            "create --format {format} --capacity {size} {format}.large"
        ));
        let unlike = sandbox.run(&format!("merge --union -o x {format}.a {format}.large"));
        fails(&unlike, &["differ in", &format!("{format}.large")]);
    }
    sandbox.ok("create --format redisbloom-cuckoo --capacity 1000 c1");
    sandbox.ok("create --format redisbloom-cuckoo --capacity 1000 c2");
    fails(
        &sandbox.run("merge --union -o x c1 c2"),
        &["can't be united", "add the keys"],
    );
    fails(
        &sandbox.run("merge --union -o x dcso.a poppy.a"),
        &["dcso", "poppy"],
    );
    sandbox.ok("create ours.tamis --capacity 1000");
    let mixed = sandbox.run("merge --union -o x dcso.a ours.tamis");
    fails(
        &mixed,
        &["converted to another layout", "from all the keys"],
    );
    sandbox.ok("create --format spark --seed 1 --capacity 1000 s1");
    fails(&sandbox.run("merge --union -o x spark.a s1"), &["hashes"]);
    assert!(!sandbox.path("x").exists());
}

#[test]
fn copies_are_of_the_same_format() {
    let sandbox = with_sample("poppy/poppy_v2_n1000_p01_key0-499.bloom");
    sandbox.ok("copy f g");
    assert!(sandbox.read("f") == sandbox.read("g"));
    let layouts = "a filter can't be converted to another layout; build it from the keys";
    fails(&sandbox.run("copy f x.tamis"), &[layouts]);
    fails(&sandbox.run("copy f x --as blocked"), &[layouts]);
    fails(&sandbox.run("copy f x --as guava"), &[layouts]);
    fails(&sandbox.run("copy f x --as cuckoo"), &[layouts]);
    fails(&sandbox.run("copy f redis://127.0.0.1:1/x"), &[layouts]);
    fails(&sandbox.run("copy f x --as dump"), &["can't be written so"]);
    fails(&sandbox.run("copy f g"), &["already exists", "--force"]);
    sandbox.ok("create ours.tamis --capacity 100");
    fails(&sandbox.run("copy ours.tamis x --as dump"), &[layouts]);
    fails(&sandbox.run("copy ours.tamis x --as dcso"), &[layouts]);
    assert!(!sandbox.path("x").exists() && !sandbox.path("x.tamis").exists());

    for (name, dump) in [("bfscale", "bfscale.dump"), ("cfkick", "cfkick.nolzf.dump")] {
        let dump = std::fs::read(sample_path(&format!("redisbloom/{dump}"))).unwrap();
        let sandbox = with_sample("redisbloom/all.rdb");
        sandbox.ok(&format!(
            "copy --format name={name} f {name}.dump --as dump"
        ));
        assert!(sandbox.read(&format!("{name}.dump")) == dump, "{name}");
        sandbox.ok(&format!("copy {name}.dump {name}.chunks --as chunks"));
        sandbox.ok(&format!("copy {name}.chunks again --as dump"));
        assert!(sandbox.read("again") == dump, "{name}");
        let keys = lines(&kicked());
        let kept = sandbox.feed(&format!("check {name}.chunks"), &keys);
        assert_eq!(kept.text(), keys);
    }
    let sandbox = with_sample("bitsandblooms/bb_v3_n1000_p01_key0-499.bin");
    sandbox.ok("copy f json --as json");
    let json = std::fs::read(sample_path("bitsandblooms/bb_v3_n1000_p01_key0-499.json")).unwrap();
    assert!(sandbox.read("json") == json);
    sandbox.ok("copy json binary --as binary");
    assert!(sandbox.read("binary") == sandbox.read("f"));
}

#[test]
fn a_filter_that_is_full_by_its_own_rule_says_so_and_stays_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("keys", lines(&words()));
    sandbox.ok("create --format poppy --capacity 100 full");
    let before = sandbox.read("full");
    let ran = sandbox.run("add --format keys=utf8 full keys");
    fails(&ran, &["made for 100 keys", "unchanged"]);
    assert_eq!(sandbox.read("full"), before);
    // A format that accepts more keys reports its rate.
    sandbox.ok("create --format dcso --capacity 100 over");
    let ran = sandbox.ok("add --format keys=utf8 over keys");
    assert!(ran.err.contains("was made for 100"), "{}", ran.err);
    assert!(sandbox.ok("info over").err.contains("was made for 100"));
}

/// poppy hashes keys of up to eight bytes as themselves, so different keys' bits may coincide, but a key is always
/// found.
#[test]
fn poppys_short_keys_are_found() {
    let sandbox = Sandbox::new();
    let short: Vec<String> = (0..3000).map(|i| format!("{i:x}")).collect();
    sandbox.write("short", lines(&short));
    sandbox.ok("build --format poppy,keys=utf8 short -o f");
    assert_eq!(
        sandbox.ok("check --format keys=utf8 f short").text(),
        lines(&short)
    );
    // An empty key is eight zeros, like a key of eight NULs: poppy can't distinguish them.
    sandbox.ok("create --format poppy --capacity 10 g");
    assert_eq!(sandbox.feed("add --format keys=utf8 g", "\n").code, 0);
    let nuls = sandbox.feed("check --format keys=utf8 g", "\0\0\0\0\0\0\0\0\n");
    assert_eq!(nuls.code, 0);
}
