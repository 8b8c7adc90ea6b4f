//! Bit strings set by Java programs: Redisson's with other codecs, and those of custom classes around SETBIT.

use crate::at;
use crate::common::{Ran, Sandbox};
use crate::servers::Server;
use tamis_formats::{BitmapHash, BitmapShape, Keys, RedissonShape};

const WORDS: &str = "key0\nkey1\né\n日本\n🌾\na\nhttps://example.org/page?id=123456\n";

fn fails(ran: &Ran, said: &[&str]) {
    assert_eq!(ran.code, 2, "{}{}", ran.text(), ran.err);
    for words in said {
        assert!(ran.err.contains(words), "{words:?} is not in: {}", ran.err);
    }
}

fn set(server: &Server, name: &str, bits: &[u64]) {
    for bit in bits {
        server.cli(&["SETBIT", name, &bit.to_string(), "1"]);
    }
}

/// Recognised without a given format, and queried with the given codec.
#[test]
fn a_redisson_filter_is_recognised_and_its_codecs_are_known() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    for keys in [Keys::Kryo5, Keys::Json, Keys::Utf8] {
        let name = keys.name();
        let users = at(&server, name);
        dir.ok(&format!("create --format redisson --capacity 1000 {users}"));
        let shape = RedissonShape::for_keys(1000, 0.01).unwrap();
        for word in WORDS.lines() {
            let key = keys.encode(word.as_bytes()).unwrap();
            set(&server, name, &shape.bits(&key));
        }
        for line in ["check", "info", "add", "check --tally"] {
            let hinted = dir.feed(&format!("{line} {users}"), WORDS);
            fails(&hinted, &["this is a redisson filter", "--format redisson"]);
        }
        for other in ["utf8", "kryo5", "json"] {
            let line = format!("check --format redisson,keys={other} {users}");
            let found = dir.feed(&line, WORDS);
            let expected = if other == name { WORDS } else { "" };
            assert_eq!(found.text(), expected, "{name} by {other}: {}", found.err);
        }
        fails(
            &dir.feed(
                &format!("check --format redisson,keys=python-pickle {users}"),
                WORDS,
            ),
            &["python-pickle", "kryo5"],
        );
    }
    let nothing = at(&server, "nothing");
    fails(&dir.feed(&format!("check {nothing}"), "x\n"), &["nothing"]);
}

/// The same keys, in Redis and in a copy of the string.
#[test]
fn strings_of_setbit_are_asked_and_copied() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    for (name, hash, options, keys) in [
        ("a", "guava", "hashes=7,bits=9585", ",keys=utf8"),
        ("b", "guava32", "hashes=7,bits=9585", ",keys=utf8"),
        ("c", "java-seeds:5,7,11,13,31,37,61", "bits=65536", ""),
        ("d", "java-spread:1,6,16,38", "bits=4096", ",keys=utf16"),
    ] {
        let hashes = options.starts_with("hashes").then_some(7);
        let size = options.split('=').next_back().unwrap().parse().unwrap();
        let parsed: BitmapHash = hash.parse().unwrap();
        let shape = BitmapShape::new(parsed, hashes, size).unwrap();
        let encoding = if keys == ",keys=utf8" {
            Keys::Utf8
        } else {
            Keys::Utf16
        };
        for word in WORDS.lines() {
            let key = encoding.encode(word.as_bytes()).unwrap();
            set(&server, name, &shape.bits(&key).unwrap());
        }
        let string = at(&server, name);
        dir.ok(&format!("copy --format bitmap {string} {name}.bits"));
        assert_eq!(dir.read(&format!("{name}.bits")), server.get(name));
        for place in [string, format!("{name}.bits")] {
            let line = format!("check --format bitmap,hash={hash},{options}{keys} {place}");
            let asked = dir.feed(&line, format!("{WORDS}surely not\nnor this\n"));
            assert_eq!(asked.text(), WORDS, "{line}: {}", asked.err);
        }
    }
}

/// Missing parameters are requested, and impossible keys are reported.
#[test]
fn strings_of_setbit_say_nothing_of_themselves() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    server.cli(&["SETBIT", "a", "7", "1"]);
    server.cli(&["HSET", "h", "f", "v"]);
    let a = at(&server, "a");
    let guava = ",hash=guava,hashes=7,bits=9585,keys=utf8";
    for (line, said) in [
        (format!("check --format bitmap {a}"), "hash=guava"),
        (format!("check --format bitmap,hash=guava {a}"), "bits=M"),
        (
            format!("check --format bitmap,hash=guava,bits=100 {a}"),
            "hashes: expected",
        ),
        (
            format!("check --format bitmap,hash=djb,bits=9 {a}"),
            "hash=djb",
        ),
        (
            format!("check --format bitmap,hash=guava,hashes=7,bits=9585 {a}"),
            "--format bitmap,keys=HOW",
        ),
        (
            format!("check --format bitmap,hash=java-spread:1,bits=64,keys=utf8 {a}"),
            "utf16",
        ),
        // Java hashes a number differently from its digits.
        (
            format!("check --format bitmap,hash=java-spread:1,bits=64 {a}"),
            "int32",
        ),
        (
            format!("check --format bitmap,hash=java-seeds:5,bits=64,keys=int32 {a}"),
            "utf16",
        ),
        (
            format!("check --format bitmap{guava} {}", at(&server, "nothing")),
            "nothing",
        ),
        (
            format!("check --format bitmap{guava} {}", at(&server, "h")),
            "expected a string",
        ),
        (format!("info --format bitmap {a}"), "only redisson's"),
        (format!("copy --format bitmap {a} x.tamis"), "bitmap"),
        (format!("copy --format bitmap {a} {a}2"), "redis-cli"),
        (
            format!("check --format guava,hash=x {a}"),
            "the parameters keys=",
        ),
    ] {
        let ran = dir.feed(&line, "x\n");
        fails(&ran, &[said]);
    }
    // "polygenelubricants" has the least int for its hashCode.
    let line = format!("check --format bitmap,hash=java-spread:1,6,bits=536870912,keys=utf16 {a}");
    let asked = dir.feed(&line, "polygenelubricants\nkey0\n");
    assert_eq!((asked.code, asked.text()), (1, ""), "{}", asked.err);
    assert!(asked.err.contains("SETBIT refuses"), "{}", asked.err);
}

/// Longer than a single reply may be.
#[test]
fn a_long_string_is_copied_in_pieces() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let bits = 30 << 20;
    let shape = BitmapShape::new("guava".parse().unwrap(), Some(5), bits).unwrap();
    for word in WORDS.lines() {
        set(&server, "long", &shape.bits(word.as_bytes()).unwrap());
    }
    set(&server, "long", &[bits - 1]);
    let long = at(&server, "long");
    dir.ok(&format!("copy --format bitmap {long} copy.bits"));
    assert_eq!(dir.read("copy.bits").len() as u64, bits / 8);
    assert!(dir.read("copy.bits") == server.get("long"));
    // Again, over the earlier copy.
    dir.ok(&format!("copy --format bitmap {long} copy.bits --force"));
    let line = format!("check --format bitmap,hash=guava,hashes=5,bits={bits},keys=utf8");
    for place in ["copy.bits", &long] {
        assert_eq!(dir.feed(&format!("{line} {place}"), WORDS).text(), WORDS);
    }
    // But not over other files.
    dir.write("urls.txt", WORDS);
    let over = dir.run(&format!("copy --format bitmap {long} urls.txt --force"));
    fails(&over, &["urls.txt is text", "not a string of bits"]);
    assert_eq!(dir.read("urls.txt"), WORDS.as_bytes());
}

/// A program's own bit array, and numeric keys.
#[test]
fn bits_may_be_counted_from_the_low_end_and_keys_be_numbers() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let numbers = "0\n7\n-1\n123456789\n";
    // As Java computes them: i * (size - 1) & (h ^ h >>> 16) of Integer.hashCode, which is the number.
    let size = 1i32 << 20;
    let mut array = vec![0u8; 3 * size as usize / 8];
    for number in numbers.lines().map(|line| line.parse::<i32>().unwrap()) {
        let hash = number ^ ((number as u32) >> 16) as i32;
        for factor in [1, 2, 3] {
            let bit = ((factor * (size - 1)) & hash) as usize;
            array[bit / 8] |= 1 << (bit % 8);
        }
    }
    dir.write("low.bits", &array);
    let high: Vec<u8> = array.iter().map(|byte| byte.reverse_bits()).collect();
    dir.write("high.bits", &high);
    for (at, byte) in array.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
            // SETBIT counts from the high end, so a low-first array has its bits elsewhere in the byte.
            set(&server, "low", &[at as u64 * 8 + 7 - bit]);
            set(&server, "high", &[at as u64 * 8 + bit]);
        }
    }
    let hash = format!("--format bitmap,hash=java-spread:1,2,3,bits={size}");
    let (low, high) = (at(&server, "low"), at(&server, "high"));
    for (place, order, found) in [
        ("low.bits", ",order=low-first", true),
        (&low, ",order=low-first", true),
        ("high.bits", ",order=high-first", true),
        ("high.bits", "", true),
        (&high, "", true),
        ("low.bits", "", false),
        (&low, "", false),
    ] {
        let asked = dir.feed(
            &format!("check {hash}{order},keys=int32 {place}"),
            format!("{numbers}8\n99\n"),
        );
        assert_eq!(
            asked.text() == numbers,
            found,
            "{place} {order}: {}{}",
            asked.text(),
            asked.err
        );
    }
    dir.ok("create f.tamis --capacity 10");
    fails(
        &dir.feed("check --format guava,order=low-first f.tamis", "x\n"),
        &["the parameters keys="],
    );
}
