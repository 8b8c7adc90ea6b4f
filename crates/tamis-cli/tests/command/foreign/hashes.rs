//! Filters whose files don't record how their keys were hashed.

use super::{fails, lines, sample_path, samples::words};
use crate::common::Sandbox;

/// The two texts printed in an article on pybloomfiltermmap from 2010.
#[test]
fn texts_of_2010_are_read_by_themselves() {
    for (name, keys, shape) in [
        ("mike", "MIKE\n", "2,411 bits, 17 hashes"),
        (
            "fruit",
            "apple\nbanana\norange\npear\n",
            "95,850,589 bits, 7 hashes",
        ),
    ] {
        let sandbox = Sandbox::new();
        let text = sample_path(&format!("pybloomfilter/2010_{name}.base64"));
        std::fs::copy(text, sandbox.path("text")).unwrap();
        sandbox.ok("copy text copied.bloom");
        sandbox.ok("copy text imported.bloom");
        assert_eq!(sandbox.read("copied.bloom"), sandbox.read("imported.bloom"));
        assert!(sandbox.read("copied.bloom").starts_with(b"MBITARRAY"));
        for file in ["text", "copied.bloom", "imported.bloom"] {
            let asked = sandbox.feed(&format!("check {file}"), keys);
            assert_eq!((asked.text(), &*asked.err), (keys, ""), "{file}");
            let others: Vec<String> = (0..10_000).map(|i| format!("other{i}")).collect();
            let none = sandbox.feed(&format!("check {file}"), lines(&others));
            assert_eq!((none.code, none.text()), (1, ""), "{file}");
            let info = sandbox.ok(&format!("info {file}"));
            for said in [shape, "hashed by      djb\n", "keys are       utf8\n"] {
                assert!(info.text().contains(said), "{said}: {}", info.text());
            }
            assert_eq!(info.err, "");
        }
        // A file can be added to, a text can't.
        sandbox.feed("add copied.bloom", "new\n");
        assert_eq!(sandbox.feed("check copied.bloom", "new\n").text(), "new\n");
        fails(
            &sandbox.feed("add text", "new\n"),
            &["packed", "tamis copy"],
        );
        fails(&sandbox.run("copy text text.tamis"), &["pybloomfilter"]);
        fails(
            &sandbox.run("copy text imported.bloom"),
            &["already exists"],
        );
        // The header can't be overruled, and a number isn't text.
        let wrong = sandbox.feed("check --format pybloomfilter,hash=sha512 text", keys);
        fails(&wrong, &["expected djb"]);
        let number = sandbox.feed("check --format keys=python-number text", "1\n");
        fails(&number, &["python-number", "utf8"]);
    }
}

/// If a file doesn't record the hash, a warning says so, and with the hash named every key is found.
#[test]
fn old_hashes_are_named_or_doubted() {
    for (file, hash, is_sure) in [
        ("0.1.10_djb", "djb", true),
        ("0.2.0_djb", "djb", true),
        ("0.3.2_superfast", "superfast", false),
        ("0.3.11_sha512", "sha512", false),
        ("0.3.14_murmur32", "murmur32", false),
    ] {
        let sandbox = super::with_sample(&format!("pybloomfilter/pbfm_{file}.bloom"));
        let keys = lines(&words());
        let line = format!("check --format pybloomfilter,hash={hash},keys=utf8 f");
        let named = sandbox.feed(&line, keys.clone());
        assert_eq!((named.text(), &*named.err), (&*keys, ""), "{file}");
        let alone = sandbox.feed("check --format keys=utf8 f", keys.clone());
        if is_sure {
            assert_eq!((alone.text(), &*alone.err), (&*keys, ""), "{file}");
            continue;
        }
        for said in ["does not say how its keys were hashed", hash, "hash=HASH"] {
            assert!(alone.err.contains(said), "{file}: {}", alone.err);
        }
        let info = sandbox.ok("info --json f");
        assert!(info.text().contains("\"hash\"\n  ]"), "{}", info.text());
    }
    let sandbox = super::with_sample("guava/guava_bytes_n1000_p01_key0-499.mitz64.bin");
    fails(
        &sandbox.feed(
            "check --format pybloomfilter,hash=djb,keys=utf8 f",
            "key1\n",
        ),
        &["pybloomfilter"],
    );
    sandbox.ok("create --capacity 10 g.tamis");
    fails(
        &sandbox.feed("check --format pybloomfilter,hash=djb g.tamis", "key1\n"),
        &["expected a pybloomfilter filter, got a Tamis filter"],
    );
}
