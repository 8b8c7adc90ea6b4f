//! Options of windows that can't be meant, and bounds that can't be kept.

use crate::common::Sandbox;

#[test]
fn bad_windows_are_refused() {
    let dir = Sandbox::new();
    dir.write("keys.txt", "a\nb\n");
    dir.ok("create plain.tamis --capacity 100");
    dir.ok("create day.tamis --within 24h --capacity 100");
    dir.ok("create keys.tamis --last 100");
    for (line, why) in [
        ("dedup --within 0 keys.txt", "a millisecond or more"),
        ("dedup --within 0s keys.txt", "a millisecond or more"),
        (
            "dedup --within 0s --renew keys.txt",
            "a millisecond or more",
        ),
        ("dedup --within -1h keys.txt", "unexpected argument"),
        ("dedup --within soon keys.txt", "expected a time like"),
        ("dedup --within 5y keys.txt", "units ms, s, m, h, d, w"),
        (
            "dedup --within 1ms keys.txt",
            "a millisecond for each generation",
        ),
        ("dedup --within 99999999d keys.txt", "20,000 years"),
        ("dedup --within 1e300d keys.txt", "a millisecond or more"),
        ("dedup --last 0 keys.txt", "at least 1, got 0"),
        ("dedup --last 18446744073709551615 keys.txt", "tamis: "),
        (
            "dedup --within 1h --generations 0 keys.txt",
            "generations: expected 1 to 62, got 0",
        ),
        (
            "dedup --within 1h --generations 10000 keys.txt",
            "generations: expected 1 to 62, got 10000",
        ),
        (
            "dedup --within 1h --generations -1 keys.txt",
            "unexpected argument",
        ),
        (
            "dedup --generations 8 keys.txt",
            "--generations is for a window",
        ),
        ("dedup --within 1h --last 5 keys.txt", "cannot be used with"),
        ("dedup --within 1h --exact keys.txt", "cannot be used with"),
        ("dedup --last 5 --capacity 5 keys.txt", "omit --capacity"),
        ("dedup --last 5 --time csv:1 keys.txt", "heeds no time"),
        ("dedup --time csv:1 keys.txt", "--time is for a window"),
        ("dedup --within 1h --time at keys.txt", "unknown time 'at'"),
        (
            "dedup --within 1h -k csv:id --time jsonl:/at keys.txt",
            "the key is columns of CSV",
        ),
        (
            "dedup --within 1h -k csv:a --time csv:b keys.txt",
            "no column 'b'",
        ),
        (
            "dedup --within 1h --filter plain.tamis keys.txt",
            "is a blocked filter and forgets nothing",
        ),
        (
            "dedup --time csv:1 --filter plain.tamis keys.txt",
            "--time is for windows",
        ),
        (
            "dedup --within 12h --filter day.tamis keys.txt",
            "remembers 1d since first seen, in 8 generations, but you asked for 12h",
        ),
        (
            "dedup --within 24h --renew --filter day.tamis keys.txt",
            "asked for 1d since last seen",
        ),
        (
            "dedup --within 24h --generations 4 --filter day.tamis keys.txt",
            "in 4 generations",
        ),
        (
            "dedup --last 100 --filter day.tamis keys.txt",
            "asked for the last 100 keys",
        ),
        (
            "dedup --time tsv:1 --filter keys.tamis keys.txt",
            "heeds no time",
        ),
        (
            "add --time tsv:1 plain.tamis keys.txt",
            "--time is for windows",
        ),
        ("add --time tsv:1 keys.tamis keys.txt", "heeds no time"),
        (
            "check --at latest plain.tamis keys.txt",
            "--at is for windows",
        ),
        ("explain --at latest plain.tamis a", "--at is for windows"),
        (
            "check --time csv:1 plain.tamis keys.txt",
            "--time is for windows",
        ),
        ("check --time tsv:1 keys.tamis keys.txt", "heeds no time"),
        (
            "check --time tsv:1 --at now day.tamis keys.txt",
            "cannot be used with",
        ),
        (
            "check --at tomorrow day.tamis keys.txt",
            "expected a time like",
        ),
        (
            "check --at 20240501 day.tamis keys.txt",
            "expected a time like",
        ),
        (
            "dedup --within 1h --time-format %F keys.txt",
            "--time <SPEC>",
        ),
        (
            "dedup --within 1h --time now --time-format %F keys.txt",
            "--time now takes the clock's",
        ),
        (
            "dedup --within 1h --time line --time-format %Q keys.txt",
            "got '%Q'",
        ),
        (
            "create new.tamis --kind window",
            "say what a window remembers",
        ),
        ("create new.tamis --within 1h", "--capacity N"),
        (
            "create new.tamis --within 1h --capacity 5 --kind cuckoo",
            "forgets nothing",
        ),
        (
            "create new.tamis --within 1h --capacity 5 --size 1MB",
            "give the rate",
        ),
        ("create new.tamis --last 5 --capacity 5", "omit --capacity"),
        ("plan --within 1h", "--capacity N"),
        (
            "merge --union -o new.tamis keys.tamis keys.tamis",
            "count keys",
        ),
        (
            "merge --union -o new.tamis day.tamis keys.tamis",
            "day.tamis and keys.tamis",
        ),
        (
            "merge --intersect -o new.tamis day.tamis day.tamis",
            "ask both",
        ),
        ("remove day.tamis keys.txt", "window"),
        ("check --tally day.tamis keys.txt", "window"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains(why), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}");
        assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    }
    assert!(!dir.path("new.tamis").exists());
    // The length of a pipe is unknown, but need not be known: windows grow.
    let ran = dir.feed("dedup -q --within 1h", "a\n");
    assert_eq!((ran.code, ran.text()), (0, "a\n"), "{}", ran.err);
    // Given sizes are kept.
    for (line, text) in [
        ("dedup -q --within 1s keys.txt", "a\nb\n"),
        (
            "dedup -q --within 36525d --generations 1 keys.txt",
            "a\nb\n",
        ),
        (
            "dedup -q --within 1s --renew --generations 62 keys.txt",
            "a\nb\n",
        ),
        ("dedup -q --last 1 keys.txt", "a\nb\n"),
        (
            "dedup -q --within 24h --filter day.tamis keys.txt",
            "a\nb\n",
        ),
        ("dedup -q --filter day.tamis keys.txt", ""),
        ("dedup -q --filter keys.tamis keys.txt", "a\nb\n"),
    ] {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.text()), (0, text), "{line}: {}", ran.err);
    }
}

/// A memory limit that can't be enforced is an error, before anything is created.
#[test]
fn memory_bounds_windows_alone_and_from_the_start() {
    let dir = Sandbox::new();
    dir.write("keys.txt", "a\nb\na\n");
    for (line, said) in [
        ("dedup --max-memory 1M", "is for a window"),
        ("dedup --exact --max-memory 1M", "is for a window"),
        (
            "dedup --within 1h --capacity 100M --max-memory 1M",
            "for 100,000,000 keys takes",
        ),
        (
            "dedup --last 1M --max-memory 1M",
            "for 1,000,000 keys takes",
        ),
        ("dedup --within 1h --max-memory 100", "for 1 key takes"),
        (
            "dedup --max-memory 1M --filter seen.tamis",
            "is a growing filter",
        ),
        (
            "dedup --within 1h --max-memory 1M --filter redis://127.0.0.1:1/seen",
            "maxmemory",
        ),
    ] {
        if line.contains("seen.tamis") {
            dir.ok("create seen.tamis --capacity 100 --kind growing");
        }
        let ran = dir.run(&format!("{line} keys.txt"));
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
    // A guessed size is reduced.
    let ran = dir.ok("dedup --within 1h --max-memory 4k keys.txt");
    assert_eq!(ran.text(), "a\nb\n");
}
