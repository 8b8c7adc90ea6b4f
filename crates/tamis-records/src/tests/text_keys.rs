//! Compares the keys of text with their definition.

use super::common::Random;
use crate::key::folding::folded;
use crate::key::words::{Word, append_form};
use crate::key::{KeysOfText, TextKeys};
use regex::bytes::Regex;
use std::collections::HashSet;
use std::sync::LazyLock;
use tamis::Hash;

/// Uses regular expressions, line by line, and only the text of phrases.
pub(crate) fn naive(text: &[u8], keys: TextKeys) -> HashSet<Hash> {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+").unwrap());
    let mut all = HashSet::new();
    for line in text.split(|byte| *byte == b'\n') {
        match keys {
            TextKeys::Trigrams => all.extend(
                form(line)
                    .windows(3)
                    .map(|b| u64::from_le_bytes([b[0], b[1], b[2], 0, 0, 0, 0, 0])),
            ),
            TextKeys::Words => {
                let words: Vec<_> = WORD.find_iter(line).collect();
                for (at, word) in words.iter().enumerate() {
                    for before in 0..3.min(at + 1) {
                        all.extend(phrase(&line[words[at - before].start()..word.end()]));
                    }
                }
            }
        }
    }
    all.into_iter().map(Hash::from_u64).collect()
}

fn form(text: &[u8]) -> Vec<u8> {
    let mut form = Vec::new();
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            append_form(folded(character).0, &mut form);
        }
        form.extend_from_slice(chunk.invalid());
    }
    form
}

/// The key of a phrase, if it is one.
fn phrase(text: &[u8]) -> Option<u64> {
    static PARTS: LazyLock<Regex> = LazyLock::new(|| {
        let sign = r"[.\-/:@=&?#+%~*$!^\\]";
        Regex::new(&format!(r"^(\w+)(?:({sign})(\w+)(?:({sign})(\w+))?)?$")).unwrap()
    });
    let parts = PARTS.captures(text)?;
    let part = |number: usize| parts.get(number).map(|part| form(part.as_bytes()));
    let is_number = |form: &[u8]| form[0].is_ascii_digit();
    let is_telling = |form: &[u8]| {
        form.len() >= 16
            || form.len() >= 8 && form.iter().any(|byte| byte.is_ascii_digit())
            || form.len() >= 5 && form[0].is_ascii_digit()
    };
    let key = |form: &[u8]| Word::new(form).key;
    let joined = |first: u64, sign: &[u8], second: u64| {
        let product = u128::from(first ^ 0x62E7_160F_38B4_DA57)
            * u128::from(second ^ 0x84D9_0452_00A6_D6A1 ^ u64::from(sign[0]));
        (product ^ product >> 64) as u64
    };
    match (part(1)?, part(2), part(3), part(4), part(5)) {
        (word, None, ..) => Some(key(&word)),
        (first, Some(_), Some(second), None, _) => {
            let sign = parts.get(2)?.as_bytes();
            let is_key = !(is_number(&first) && is_number(&second)
                || is_telling(&first)
                || is_telling(&second));
            is_key.then(|| joined(key(&first), sign, key(&second)))
        }
        (first, _, Some(second), _, Some(third)) => {
            let dots = &parts[2] == b"." && &parts[4] == b".";
            let numbers = is_number(&first) && is_number(&second) && is_number(&third);
            (dots && numbers)
                .then(|| joined(joined(key(&first), b".", key(&second)), b".", key(&third)))
        }
        _ => None,
    }
}

/// Lines with all relevant cases: words of all lengths, signs, other scripts, odd cases, invalid UTF-8.
pub(crate) fn line(random: &mut Random) -> Vec<u8> {
    const PIECES: [&[u8]; 62] = [
        b"GET",
        b"error",
        b"Error",
        b"user",
        b"foo",
        b"bar",
        b"a",
        b"b1",
        b"_",
        b"_x",
        b"42",
        b"10",
        b"0",
        b"3",
        b"7f3a",
        b"e1234567",
        b"3f0c9a52",
        b"abcdefgh",
        b"0123456789abcdef",
        b"abcdefghijklmnop",
        b"abcdefghijklmnopq",
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_abcdefghijk",
        b" ",
        b" ",
        b" ",
        b".",
        b".",
        b".",
        b"-",
        b"/",
        b":",
        b"@",
        b"=",
        b"&",
        b"%20",
        b"\\",
        b"\"",
        b"[",
        b",",
        b"::",
        b"\t",
        b"\r",
        "é".as_bytes(),
        "É".as_bytes(),
        "ſ".as_bytes(),
        "\u{212A}".as_bytes(),
        "ß".as_bytes(),
        "ẞ".as_bytes(),
        "Σς".as_bytes(),
        "İı".as_bytes(),
        "日本".as_bytes(),
        "€".as_bytes(),
        "\u{200D}".as_bytes(),
        "e\u{301}".as_bytes(),
        "ǅ".as_bytes(),
        "😀".as_bytes(),
        "\u{A0}".as_bytes(),
        b"\xFF",
        b"\xC3",
        b"\xA9",
        b"\xE2\x82",
        b"\0",
    ];
    let plain = random.below(3) > 0;
    let count = random.below(14);
    let mut line = Vec::new();
    for _ in 0..count {
        let piece = PIECES[random.below(if plain { 42 } else { PIECES.len() })];
        match random.below(6) {
            0 => line.extend(piece.to_ascii_uppercase()),
            _ => line.extend_from_slice(piece),
        }
    }
    line
}

fn sorted(keys: &HashSet<Hash>) -> Vec<Hash> {
    let mut keys: Vec<Hash> = keys.iter().copied().collect();
    keys.sort_unstable();
    keys
}

#[test]
fn keys_are_as_defined() {
    let mut random = Random(1);
    let mut words = KeysOfText::new(TextKeys::Words);
    let mut trigrams = KeysOfText::new(TextKeys::Trigrams);
    for _ in 0..2000 {
        let lines: Vec<Vec<u8>> = (0..random.below(5)).map(|_| line(&mut random)).collect();
        let mut text = lines.join(&b'\n');
        if random.below(2) == 0 {
            text.push(b'\n');
        }
        words.add(&text);
        trigrams.add(&text);
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(
            words.take(),
            sorted(&naive(&text, TextKeys::Words)),
            "{shown}"
        );
        assert_eq!(
            trigrams.take(),
            sorted(&naive(&text, TextKeys::Trigrams)),
            "{shown}"
        );
    }
}

/// Keys depend neither on the text's position in memory nor on how it is split.
#[test]
fn the_place_of_text_does_not_matter() {
    let mut random = Random(2);
    let lines: Vec<Vec<u8>> = (0..200).map(|_| line(&mut random)).collect();
    let text = lines.join(&b'\n');
    for keys in [TextKeys::Words, TextKeys::Trigrams] {
        let mut finder = KeysOfText::new(keys);
        let expected = sorted(&naive(&text, keys));
        for shift in 0..70 {
            let shifted = [vec![b'\n'; shift], text.clone(), vec![b'\n'; shift / 3]].concat();
            finder.add(&shifted);
            assert_eq!(finder.take(), expected, "{shift}");
            finder.add(&shifted[shift..]);
            assert_eq!(finder.take(), expected, "{shift}");
        }
        lines.iter().for_each(|line| finder.add(line));
        assert_eq!(finder.take(), expected);
        assert_eq!(finder.take(), []);
    }
}

/// `docs/index.md` documents these: a change would invalidate every index.
#[test]
fn keys_have_the_documented_values() {
    let texts = ["get", "10.0.3", "shop.example", "0123456789abcdef_ǅ"];
    let keys = texts.map(|text| format!("{:016x}", phrase(text.as_bytes()).unwrap()));
    let expected = [
        "96c680f30d9f8931",
        "135abbda7e96f34e",
        "a42792e43890223e",
        "a395e6d050f2c4d4",
    ];
    assert_eq!(keys, expected);
}

#[test]
fn case_does_not_count() {
    let mut keys = KeysOfText::new(TextKeys::Words);
    for (one, other) in [
        ("Kelvin.ſet", "\u{212A}ELVIN.SET"),
        ("straße=Σίσυφος", "STRAẞE=σίσυφοσ"),
        ("ǄX/Ǆx", "ǆx/ǅX"),
    ] {
        keys.add(one.as_bytes());
        let expected = keys.take();
        keys.add(other.as_bytes());
        assert_eq!(keys.take(), expected, "{one} {other}");
    }
}
