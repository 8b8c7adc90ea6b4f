//! Other systems' filters through the real command: files written by their own programs, and damaged files.

mod hashes;
mod hostile;
pub(crate) mod samples;

use crate::common::{Ran, Sandbox};
use samples::{Can, SAMPLES, Sample, kicked, numbers, sample_path, words};

/// A folder with a copy of this sample as `f`.
fn with_sample(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::copy(sample_path(name), sandbox.path("f"))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    sandbox
}

fn lines(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key}\n")).collect()
}

/// Keys of the same sort that are in no sample.
fn absent(sample: &Sample, count: u32) -> Vec<String> {
    let is_number = (sample.keys)()[0].parse::<i64>().is_ok();
    let key = |i: u32| match is_number {
        true => (1_000_003 + 8 * i).to_string(),
        false => format!("absent key {i}"),
    };
    (0..count).map(key).collect()
}

fn fails(ran: &Ran, said: &[&str]) {
    assert_eq!(ran.code, 2, "{}{}", ran.text(), ran.err);
    for words in said {
        assert!(ran.err.contains(words), "{words:?} is not in: {}", ran.err);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn every_sample_is_opened_asked_told_and_verified() {
    for sample in SAMPLES {
        let Sample { file, flags, .. } = sample;
        let sandbox = with_sample(file);
        let keys = (sample.keys)();
        let ran = sandbox.feed(&format!("check {flags} f"), lines(&keys));
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        assert_eq!(
            ran.text(),
            lines(&keys),
            "{file}: all keys are there, in order"
        );
        // The format may be named, though it is recognised.
        let parameters = flags
            .strip_prefix("--format ")
            .map(|parameters| format!(",{parameters}"));
        let named = format!(
            "check --format {}{} f",
            sample.format,
            parameters.unwrap_or_default()
        );
        assert_eq!(sandbox.feed(&named, lines(&keys)).out, ran.out, "{file}");
        let none = sandbox.feed(&format!("check -v {flags} f"), lines(&keys));
        assert_eq!(
            (none.code, none.text()),
            (1, ""),
            "{file}: none is certainly absent"
        );

        let info = sandbox.ok(&format!("info --json {flags} f"));
        let info: serde_json::Value = serde_json::from_slice(&info.out).unwrap();
        if let Some(filters) = info["filters"].as_array() {
            assert!(!filters.is_empty());
        } else if info["columns"].is_null() {
            assert_eq!(info["format"], sample.format, "{file}");
            let rate = info["rate_now"].as_f64().unwrap();
            let others = absent(sample, 20_000);
            let found = sandbox.feed(&format!("check -c {flags} f"), lines(&others));
            let found: f64 = found.text().trim().parse().unwrap();
            // The formula's rate plus a quarter, four standard errors, and a bit.
            let most = 25_000.0 * rate + 4.0 * (20_000.0 * rate).sqrt() + 3.0;
            assert!(
                found <= most,
                "{file}: {found} of 20,000 at a rate of {rate}"
            );
        }
        let told = sandbox.ok(&format!("info {flags} f"));
        assert!(told.text().contains("rate now"), "{file}: {}", told.text());
        let verified = sandbox.ok(&format!("verify --probes 50k {flags} f"));
        assert!(
            verified.text().contains("valid"),
            "{file}: {}",
            verified.text()
        );
    }
}

#[test]
fn keys_are_added_and_stay_and_the_file_is_replaced_as_a_whole() {
    for sample in SAMPLES {
        let Sample { file, flags, .. } = sample;
        let sandbox = with_sample(file);
        let before = sandbox.read("f");
        let more = absent(sample, 20);
        let ran = sandbox.feed(&format!("add --new {flags} f"), lines(&more));
        if sample.can == Can::Ask {
            fails(&ran, &["f"]);
            assert!(ran.err.contains("read-only here"), "{file}: {}", ran.err);
            assert_eq!(sandbox.read("f"), before, "{file} is as it was");
            continue;
        }
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        assert!(!ran.out.is_empty(), "{file}: some were new");
        let all = [(sample.keys)(), more].concat();
        let found = sandbox.feed(&format!("check {flags} f"), lines(&all));
        assert_eq!(found.text(), lines(&all), "{file}");
        // Present keys aren't new again, and only change a cuckoo filter's copies.
        if sample.can == Can::Add {
            let after = sandbox.read("f");
            let again = sandbox.feed(&format!("add --new {flags} f"), lines(&all));
            assert_eq!((again.code, again.text()), (0, ""), "{file}");
            assert_eq!(sandbox.read("f"), after, "{file}");
        }
        assert_eq!(sandbox.list(), ["f"], "{file}: nothing is left behind");
    }
}

#[test]
fn keys_are_removed_from_cuckoo_filters_alone() {
    for sample in SAMPLES {
        let Sample { file, flags, .. } = sample;
        let sandbox = with_sample(file);
        let before = sandbox.read("f");
        let keys = (sample.keys)();
        let ran = sandbox.feed(&format!("remove {flags} f"), lines(&keys[..30]));
        if sample.can != Can::Remove {
            fails(&ran, &["f"]);
            assert_eq!(sandbox.read("f"), before, "{file} is as it was");
            continue;
        }
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        assert!(ran.err.contains("30 removed"), "{}", ran.err);
        let rest = sandbox.feed(&format!("check {flags} f"), lines(&keys[30..]));
        assert_eq!(rest.text(), lines(&keys[30..]), "{file}");
        let gone = sandbox.feed(&format!("check -c {flags} f"), lines(&keys[..30]));
        let found: u32 = gone.text().trim().parse().unwrap();
        assert!(
            found < 10,
            "{file}: {found} of 30 removed keys are still found"
        );
    }
}

#[test]
fn what_a_file_does_not_say_is_asked_for_with_the_flag() {
    let sandbox = with_sample("guava/guava_string_utf8_n1000_p01_key0-499.mitz64.bin");
    fails(
        &sandbox.feed("check f", "key1\n"),
        &[
            "utf8, utf16, int32, int64",
            "--format guava,keys=HOW",
            "stringFunnel",
        ],
    );
    fails(
        &sandbox.feed("add f", "key1\n"),
        &["--format guava,keys=HOW"],
    );
    let sandbox = with_sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    fails(
        &sandbox.feed("check f", "key1\n"),
        &["utf8, upper, lower", "--format dcso,keys=HOW", "CIRCL"],
    );
    let sandbox = with_sample("parquet/duckdb.parquet");
    fails(
        &sandbox.feed("check f", "key1\n"),
        &["f32, f64, i32, i64, s", "--format name=NAME"],
    );
    fails(
        &sandbox.feed("check --format name=t f", "key1\n"),
        &["no such filter", "tamis info"],
    );
    fails(
        &sandbox.feed("check --format keys=utf8,name=i64 f", "7\n"),
        &["--format keys=utf8", "int64"],
    );
    let sandbox = with_sample("redisbloom/all.rdb");
    fails(
        &sandbox.feed("check f", "key1\n"),
        &["bfscale", "cfkick", "--format name=NAME"],
    );
}

#[test]
fn two_formats_that_fit_are_named() {
    let sandbox = Sandbox::new();
    // Spark 2 with 2 hashes and 1 word has the numbers of Cassandra with 2 hashes and 2 words.
    let numbers = [2u32, 2, 7, 1, 0, 0];
    sandbox.write("f", numbers.map(u32::to_be_bytes).concat());
    for command in [
        "check",
        "info",
        "verify",
        "add --format keys=utf8",
        "remove",
    ] {
        let ran = sandbox.feed(&format!("{command} f"), "key1\n");
        fails(
            &ran,
            &[
                "f: the bytes fit several formats",
                "cassandra, spark",
                "--format",
            ],
        );
    }
    assert!(
        sandbox
            .ok("info --format cassandra f")
            .text()
            .contains("128 bits, 2 hashes")
    );
    assert!(
        sandbox
            .ok("info --format spark f")
            .text()
            .contains("64 bits, 2 hashes")
    );
    assert_eq!(
        sandbox
            .feed("add --format spark,keys=utf8 f", "key1\n")
            .code,
        0
    );
    assert_eq!(
        sandbox
            .feed("check --format spark,keys=utf8 f", "key1\n")
            .text(),
        "key1\n"
    );
    // With one hash less, only one format fits.
    sandbox.write("f", [2u32, 1, 7, 1, 0, 0].map(u32::to_be_bytes).concat());
    assert!(sandbox.ok("info f").text().contains("spark"));
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
fn what_is_said_of_keys_is_not_for_our_own_filters() {
    let sandbox = Sandbox::new();
    sandbox.ok("create ours.tamis --capacity 100");
    for command in ["check", "add", "remove"] {
        let ran = sandbox.feed(&format!("{command} --format keys=upper ours.tamis"), "x\n");
        fails(&ran, &["--format keys= is for other systems' filters"]);
    }
    fails(
        &sandbox.run("info --format name=x ours.tamis"),
        &["--format name= is for other systems' filters"],
    );
    fails(
        &sandbox.feed("check --format keys=upper redis://127.0.0.1:1/x", "x\n"),
        &["--format keys= is for other systems' filters"],
    );
}

#[test]
fn a_key_that_cannot_be_encoded_is_an_error_and_never_absent() {
    let sandbox = with_sample("guava/guava_int_n1000_p01_0-499.mitz64.bin");
    let before = sandbox.read("f");
    for key in ["x", "2147483648", "1.0", ""] {
        for command in ["check", "check -v", "add"] {
            let ran = sandbox.feed(
                &format!("{command} --format keys=int32 f"),
                format!("7\n{key}\n"),
            );
            fails(&ran, &["32 bits", "--format keys=HOW"]);
        }
    }
    assert_eq!(sandbox.read("f"), before);
    let sandbox = with_sample("guava/guava_unencodedchars_n1000_p01_key0-499.mitz64.bin");
    fails(
        &sandbox.feed("check --format keys=utf16 f", b"\xFF\n"),
        &["UTF-8"],
    );
    // Users may choose case and columns, but not rules that only our files record.
    let sandbox = with_sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    assert_eq!(
        sandbox.feed("check --format keys=lower f", "KEY7\n").text(),
        "KEY7\n"
    );
    assert_eq!(
        sandbox.feed("check --format keys=upper f", "key7\n").code,
        1
    );
    let table = "id,name\n1,key7\n2,other\n";
    let ran = sandbox.feed("check --format keys=utf8 -k csv:name f", table);
    assert_eq!(ran.text(), "id,name\n1,key7\n");
    fails(
        &sandbox.feed("check --format keys=utf8 -i f", "key7\n"),
        &["--format keys=lower"],
    );
    fails(
        &sandbox.feed("check --format keys=utf8 --url f", "key7\n"),
        &["--url"],
    );
    fails(
        &sandbox.feed("check --format keys=utf8 -k csv:id,name f", table),
        &["one value"],
    );
}

#[test]
fn the_rest_of_check_works_as_with_our_own() {
    let sandbox = with_sample("bitsandblooms/bb_v3_n1000_p01_key0-499.bin");
    sandbox.write("allow", "key1\n");
    let keys = "key1\nkey2\nsurely absent\n";
    assert_eq!(sandbox.feed("check --allow allow f", keys).text(), "key2\n");
    assert_eq!(sandbox.feed("check -v f", keys).text(), "surely absent\n");
    assert_eq!(sandbox.feed("check -c f", keys).text(), "2\n");
    assert_eq!(sandbox.feed("check -q f", "surely absent\n").code, 1);
    assert_eq!(sandbox.feed("check -q -j 4 f", keys).code, 0);
    let many: String = (0..200_000).map(|i| format!("key{i}\n")).collect();
    let one = sandbox.feed("check -j 1 f", &many);
    assert!(one.out == sandbox.feed("check -j 4 f", &many).out);
}

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

#[test]
fn commands_for_our_own_filters_say_what_it_is() {
    let sandbox = with_sample("guava/guava_string_utf8_n1000_p01_key0-499.mitz64.bin");
    let before = sandbox.read("f");
    for line in ["check --tally f", "copy f - --as base64"] {
        fails(
            &sandbox.feed(line, "x\n"),
            &["f is a guava filter", "check, add, info"],
        );
    }
    fails(
        &sandbox.feed("dedup --filter f", "x\n"),
        &["f is a guava filter", "tamis add --new f"],
    );
    fails(
        &sandbox.run("verify --seal f"),
        &["--seal is for Tamis filters"],
    );
    fails(
        &sandbox.feed("add --format keys=utf8 --shared f", "x\n"),
        &["--shared"],
    );
    assert_eq!(sandbox.read("f"), before);
    // dedup's hint is right: each new record is printed once.
    let ran = sandbox.feed(
        "add --format keys=utf8 --new f",
        "new one\nkey7\nnew one\nother\n",
    );
    assert_eq!(ran.text(), "new one\nother\n");
}

/// In pybloomfiltermmap3's files, a Python number's key is its `hash()`.
#[test]
fn numbers_of_python_are_found() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "f",
        std::fs::read(sample_path("pybloomfilter/pbfm3_0.6.3_numbers.bloom")).unwrap(),
    );
    // The sample has: range(-20, 20), the numbers below, and 0.5, -2.25, inf, -inf.
    let mut numbers: Vec<String> = (-20..20).map(|i| i.to_string()).collect();
    for edge in [(1i128 << 61) - 1, 1 << 61, (1 << 63) - 1, 1 << 63, 1 << 100] {
        numbers.extend([
            edge.to_string(),
            (-edge).to_string(),
            (edge + 1).to_string(),
        ]);
    }
    numbers.extend(["0.5", "-2.25", "inf", "-inf", "-0.0", "1e0"].map(str::to_owned));
    let all = lines(&numbers);
    sandbox.write("numbers", &all);
    assert_eq!(
        sandbox
            .ok("check --format keys=python-number f numbers")
            .text(),
        all
    );
    // Key types that would deny present keys are refused, with a hint.
    for keys in ["int64", "int32", "float64", "float32"] {
        for command in ["check", "add"] {
            let refused = sandbox.run(&format!("{command} --format keys={keys} f numbers"));
            fails(
                &refused,
                &[keys, "python-number", "--format pybloomfilter,keys=HOW"],
            );
        }
        let built = sandbox.run(&format!(
            "build --format pybloomfilter,keys={keys} g numbers"
        ));
        fails(&built, &[keys, "python-number"]);
    }
    let not_a_number = sandbox.feed("check --format keys=python-number f", "nan\n");
    fails(&not_a_number, &["NaN"]);
    let elsewhere = sandbox.run("build --format guava,keys=python-number g numbers");
    fails(&elsewhere, &["python-number"]);
}

/// Gzip that expands beyond the limit is refused within little memory, even if its trailer claims less.
#[cfg(target_os = "linux")]
#[test]
fn unpacking_is_bounded() {
    use std::io::Write as _;
    let sandbox = Sandbox::new();
    let zeros = vec![0; 1 << 20];
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..400 {
        packed.write_all(&zeros).unwrap();
    }
    let mut packed = packed.finish().unwrap();
    sandbox.write("bomb.gz", &packed);
    let end = packed.len();
    packed[end - 4..].fill(0);
    sandbox.write("forged.gz", &packed);
    let run = |kilobytes: u32, line: &str| {
        let command = format!(
            "ulimit -d {kilobytes}; exec {} {line}",
            env!("CARGO_BIN_EXE_tamis")
        );
        let ran = std::process::Command::new("sh")
            .args(["-c", &command])
            .current_dir(sandbox.path("."))
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{line}: {err}");
        assert!(err.contains("--format unpacked=SIZE"), "{line}: {err}");
    };
    run(150_000, "info bomb.gz");
    run(150_000, "info --format unpacked=40MB forged.gz");
    // The default limit is 256 MiB.
    run(900_000, "info forged.gz");
}

/// A file that isn't a filter is refused with the list of known formats.
#[test]
fn the_hint_lists_the_formats() {
    let sandbox = Sandbox::new();
    sandbox.write("f", "no filter at all\0".repeat(100));
    let refused = sandbox.feed("check f", "key\n");
    fails(
        &refused,
        &["--format", "abloom", "fastfilter", "rbloom", "valkey-bloom"],
    );
}

/// rbloom's files don't identify themselves.
#[test]
fn rbloom_must_be_named() {
    let sandbox = with_sample("rbloom/rbloom_1.5.4_sha256_pickle.bin");
    fails(&sandbox.feed("check f", lines(&words())), &["--format"]);
    let unsaid = sandbox.feed("check --format rbloom f", lines(&words()));
    fails(&unsaid, &["python-pickle", "utf8"]);
    let flags = "--format rbloom,keys=python-pickle";
    let found = sandbox.feed(&format!("check {flags} f"), lines(&words()));
    assert_eq!(found.text(), lines(&words()), "{}", found.err);
    fails(
        &sandbox.feed("check --format rbloom,keys=int64 f", "1\n"),
        &["int64"],
    );
}
