//! Killed writers, lost machines, and damaged files.

use super::{marked, new_file, printed, start};
use crate::common::{BODY_CHECKSUM, BOOT};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;
use tamis::{AnyFilter, Blocked, Error, KeyCount, Open};

#[test]
fn kill_9_loses_no_key_whose_add_had_returned() {
    // Bodies below and above the size that gets huge pages, killed after more and more keys.
    for (round, stop_after) in [1, 100, 3_000, 20_000, 60_000].into_iter().enumerate() {
        let (_dir, path) = new_file(100_000, 0.001);
        let mut child = start("add for ever", &path, "k");
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut added = Vec::new();
        let mut line = String::new();
        while added.len() < stop_after {
            line.clear();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child ended");
            added.extend(printed(&line).map(str::to_owned));
        }
        // Kill it at an arbitrary point.
        std::thread::sleep(Duration::from_micros(137 * round as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        loop {
            line.clear();
            if out.read_line(&mut line).unwrap() == 0 {
                break;
            }
            added.extend(printed(&line).map(str::to_owned));
        }
        assert!(marked(&path), "killed, so the mark must be there");

        let loaded = AnyFilter::load(&path).unwrap();
        let mapped = AnyFilter::open(&path).unwrap();
        let shared = Blocked::share(&path).unwrap();
        for key in &added {
            assert!(loaded.contains(key), "load: {key} of {}", added.len());
            assert!(mapped.contains(key), "map: {key} of {}", added.len());
            assert!(shared.contains(key), "share: {key} of {}", added.len());
        }
        // The writer may have died between a key and its count.
        for keys in [loaded.keys(), mapped.keys(), shared.keys()] {
            let KeyCount::Estimated(keys) = keys else {
                panic!("{keys:?} after a writer died");
            };
            let error = keys.abs_diff(added.len() as u64);
            assert!(error <= 5 + keys / 20, "{keys} for {}", added.len());
        }
        // Nor do others later take it for exact.
        shared.close().unwrap();
        assert!(!marked(&path));
        let keys = Blocked::load(&path).unwrap().keys();
        assert!(matches!(keys, KeyCount::Estimated(_)), "{keys:?}");
    }
}

/// Marks the file as open for writing by a writer of another boot.
fn mark(path: &Path, boot: [u8; 16]) {
    let mut bytes = fs::read(path).unwrap();
    bytes[BOOT].copy_from_slice(&boot);
    bytes[BODY_CHECKSUM].fill(0);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_of_a_lost_machine_is_refused_with_the_way_out() {
    let (_dir, path) = new_file(1_000, 0.01);
    let seen = Blocked::load(&path).unwrap();
    seen.insert("key");
    seen.save(&path).unwrap();
    for boot in [
        [0xab; 16],
        [0xff; 16],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ] {
        mark(&path, boot);
        let bytes = fs::read(&path).unwrap();
        let (named, nameless) = (true, false);
        for (error, named) in [
            (Open::new().open(&path).unwrap_err(), named),
            (Open::new().load(&path).unwrap_err(), named),
            (Open::new().share(&path).unwrap_err(), named),
            // Its keys may be lost, so it can never be shared.
            (Open::new().accept_loss().share(&path).unwrap_err(), named),
            (Open::new().from_bytes(&bytes).unwrap_err(), nameless),
            (Open::new().view(&bytes).unwrap_err(), nameless),
        ] {
            assert!(matches!(error, Error::Unclean { .. }), "{error}");
            let text = error.to_string();
            for part in ["machine went down", "build it again", "accept"] {
                assert!(text.contains(part), "{part:?} is not in {text:?}");
            }
            assert_eq!(text.contains("seen.tamis"), named, "{text}");
        }
        assert_eq!(
            fs::read(&path).unwrap(),
            bytes,
            "a refused file was changed"
        );

        let accept = Open::new().accept_loss();
        assert!(accept.open(&path).unwrap().contains("key"));
        assert!(accept.from_bytes(&bytes).unwrap().contains("key"));
        let loaded = accept.load(&path).unwrap();
        assert!(loaded.contains("key"));
        // The machine may have lost keys that were counted.
        assert_eq!(loaded.keys(), KeyCount::Estimated(1));
        loaded.save(&path).unwrap();
        assert!(Blocked::share(&path).unwrap().contains("key"));
    }
}

/// Damage is noticed before the checksum that reveals it is dropped.
#[test]
fn a_damaged_file_is_not_shared() {
    for (keys, opt_out) in [(10_000, false), (20_000_000, true)] {
        let (_dir, path) = new_file(keys, 0.01);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        let refused = |open: Open| {
            let error = open.share(&path).expect_err("damaged").to_string();
            assert!(error.contains("checksum"), "{error}");
            assert!(fs::read(&path).unwrap() == bytes, "it is as it was");
        };
        refused(Open::new());
        refused(Open::new().verify(true));
        assert!(Open::new().verify(true).open(&path).is_err());
        assert!(Open::new().open(&path).is_ok());
        assert!(Open::new().load(&path).is_err());
        assert!(Open::new().verify(false).load(&path).is_ok());
        match opt_out {
            // For large files this takes time, so it can be skipped.
            true => drop(Open::new().verify(false).share(&path).unwrap()),
            false => refused(Open::new().verify(false)),
        }
    }
}
