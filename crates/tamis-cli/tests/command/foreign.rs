//! Other systems' filters through the real command: files written by their own programs, and damaged files.

mod hashes;
mod hostile;
mod made;
pub(crate) mod samples;

use crate::common::{Ran, Sandbox};
use samples::{Can, SAMPLES, Sample, sample_path, words};

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
