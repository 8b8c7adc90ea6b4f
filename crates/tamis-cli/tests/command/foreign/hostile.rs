//! Damaged files, compressed files, other files, and full disks.

use super::samples::{SAMPLES, Sample, sample_path};
use super::{fails, with_sample};
use crate::common::Sandbox;

#[test]
fn a_wrong_format_is_an_error() {
    let sandbox = with_sample("guava/guava_string_utf8_n1000_p01_key0-499.mitz64.bin");
    let formats = [
        "bip37",
        "bits-and-blooms",
        "bloom-filters",
        "cassandra",
        "dcso",
        "leveldb",
        "orc",
        "parquet",
        "poppy",
        "pybloomfilter",
        "redisbloom",
        "redisbloom-cuckoo",
        "rocksdb",
        "spark",
        "valkey-bloom",
    ];
    for format in formats {
        for (command, keys) in [
            ("check", ",keys=utf8"),
            ("info", ""),
            ("verify", ""),
            ("add", ",keys=utf8"),
        ] {
            let line = format!("{command} --format {format}{keys} f");
            let ran = sandbox.feed(&line, "key1\n");
            fails(&ran, &["f: not a valid", format]);
        }
    }
    fails(
        &sandbox.feed("check --format redisson f", "x\n"),
        &["lives in Redis"],
    );
    fails(&sandbox.run("info --format guave f"), &["guave", "guava"]);
    // One of our filters isn't one of theirs.
    sandbox.ok("create ours.tamis --capacity 100");
    fails(
        &sandbox.run("info --format guava ours.tamis"),
        &["omit --format"],
    );
}

#[test]
fn damaged_files_are_refused_or_answer_but_never_panic() {
    for sample in SAMPLES {
        let Sample {
            file,
            flags,
            format,
            ..
        } = sample;
        let sandbox = with_sample(file);
        let whole = sandbox.read("f");
        // DCSO's bits may be followed by any data, whose end can't be determined.
        let behind = if file.ends_with("dcso_v1_n1000_p01_key0-499.bloom") {
            11
        } else {
            1
        };
        for part in [0, 1, 5, 20, 60, whole.len() / 2, whole.len() - behind] {
            sandbox.write("f", &whole[..part]);
            let ran = sandbox.feed(&format!("check {flags} f"), "key1\n7\n");
            fails(&ran, &["f"]);
            let ran = sandbox.feed(&format!("add {flags} --format {format} f"), "1\n");
            fails(&ran, &["f"]);
            assert_eq!(sandbox.read("f"), &whole[..part], "{file}");
        }
        // Whatever the damage, there is an answer or an error.
        for at in (0..whole.len().min(64)).step_by(5) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xFF;
            sandbox.write("f", &damaged);
            let ran = sandbox.feed(&format!("check {flags} f"), "7\n");
            assert!(
                (0..=2).contains(&ran.code),
                "{file}, byte {at}: {}",
                ran.err
            );
            assert!(
                !ran.err.contains("panicked"),
                "{file}, byte {at}: {}",
                ran.err
            );
        }
    }
}

#[test]
fn garbage_and_other_things_are_no_filters() {
    let sandbox = Sandbox::new();
    sandbox.write("text", "these are\nlines of text\n".repeat(100));
    sandbox.write("zeros", [0; 4096]);
    sandbox.write("empty", "");
    for (name, said) in [
        ("text", "text is text (2.40 kB), not a filter"),
        ("zeros", "--format"),
        ("empty", "empty is empty, not a filter"),
    ] {
        let ran = sandbox.feed(&format!("check {name}"), "x\n");
        fails(&ran, &[name, said]);
    }
    fails(&sandbox.run("info ."), &["directory"]);
    fails(&sandbox.run("info --format guava ."), &["regular file"]);
    fails(&sandbox.run("info --format guava nothing"), &["nothing"]);
}

#[test]
fn gzip_is_seen_through_and_not_added_to() {
    let sandbox = with_sample("dcso/dcso_v1_n1000_p01_key0-499.bloom.gz");
    let before = sandbox.read("f");
    assert!(sandbox.ok("info f").text().contains("gzipped"));
    fails(
        &sandbox.feed("add --format keys=utf8 f", "x\n"),
        &["gzipped", "tamis copy f NEW"],
    );
    assert_eq!(sandbox.read("f"), before);
    sandbox.ok("copy f plain");
    let plain = std::fs::read(sample_path("dcso/dcso_v1_n1000_p01_key0-499.bloom")).unwrap();
    assert_eq!(sandbox.read("plain"), plain);
    assert_eq!(sandbox.feed("add --format keys=utf8 plain", "x\n").code, 0);
    // Gzip is unpacked only once: there is gzip that unpacks to itself.
    sandbox.write("twice", gzip(&before));
    fails(
        &sandbox.feed("check --format keys=utf8 twice", "key1\n"),
        &["twice"],
    );
    // A compressed log isn't unpacked just because it might be a filter.
    sandbox.write(
        "log.gz",
        gzip("a line of a log\n".repeat(1 << 16).as_bytes()),
    );
    fails(
        &sandbox.feed("check log.gz", "key1\n"),
        &["log.gz", "--format"],
    );
    let json = std::fs::read(sample_path("bitsandblooms/bb_v3_n1000_p01_key0-499.json")).unwrap();
    sandbox.write("json.gz", gzip(&json));
    assert_eq!(sandbox.feed("check json.gz", "key1\n").text(), "key1\n");
    // A truncated filter is refused, rather than half of it taken for all.
    sandbox.write("f", &before[..before.len() - 20]);
    fails(
        &sandbox.feed("check --format keys=utf8 f", "key1\n"),
        &["gzip", "unpack"],
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let level = flate2::Compression::default();
    std::io::Read::read_to_end(&mut flate2::read::GzEncoder::new(bytes, level), &mut packed)
        .unwrap();
    packed
}

/// A full disk, simulated by a limit on file sizes.
#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let sandbox = with_sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    sandbox.ok("create --format dcso --capacity 100000 large");
    let before = sandbox.read("large");
    let script = format!(
        "ulimit -f 1; printf 'x\\n' | {} add --format keys=utf8 large",
        env!("CARGO_BIN_EXE_tamis")
    );
    let ran = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("writing") && said.contains("large"), "{said}");
    assert_eq!(sandbox.read("large"), before);
    assert_eq!(sandbox.list(), ["f", "large"]);
}
