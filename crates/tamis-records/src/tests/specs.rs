//! Keys of an index: what a spec reads from a record, and that a query for it finds it.

use crate::key::words::{for_each_phrase, for_each_word, holds, needed};
use crate::key::{KeySpec, Keys};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn phrases(line: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for_each_phrase(line.as_bytes(), |phrase| {
        all.insert(String::from_utf8(phrase.to_vec()).unwrap());
    });
    all
}

fn asks(text: &str) -> Vec<&str> {
    let asks = needed(text.as_bytes()).into_iter();
    asks.map(|phrase| std::str::from_utf8(phrase).unwrap())
        .collect()
}

fn finds(line: &str, text: &str) -> bool {
    let needed = needed(text.as_bytes());
    !needed.is_empty() && holds(line.as_bytes(), text.as_bytes(), &needed)
}

#[test]
fn words_and_what_they_make() {
    let all = phrases("from 10.0.3.7:80, OK");
    let expected = [
        "from", "10", "0", "3", "7", "80", "10.0", "0.3", "3.7", "7:80", "10.0.3", "0.3.7",
        "3.7:80", "OK",
    ];
    assert_eq!(all, expected.map(String::from).into());
    assert_eq!(asks("10.0.3.7"), ["0.3.7", "10.0.3"]);
    assert_eq!(asks("user=7"), ["user=7"]);
    assert_eq!(asks("GET /a b"), ["GET", "a", "b"]);
    assert_eq!(asks("a-b c-d-e-f"), ["a-b", "c-d-e", "d-e-f"]);
    assert!(asks("-- ::").is_empty() && asks("").is_empty());
    let mut words = Vec::new();
    for_each_word(b"a-b c", |word| words.push(word.to_vec()));
    assert_eq!(words, [b"a", b"b", b"c"]);
}

#[test]
fn what_stands_in_logs_is_found_whole_and_in_parts() {
    let line = "2026-11-15T05:03:40.123Z \"GET https://shop.example.org:8443/a/b%20c?id=42&x=#t\" \
                id=3f0c9a52-7c1b-4d7e-9a55-0b5b1d2f6c11 <bob.smith+x@example.org> [2001:db8::ff00:42] \
                /var/log/app-1.log C:\\temp\\x.txt key=value café №5 日本語";
    for text in [
        "15T05:03:40.123Z",
        "https://shop.example.org:8443/a/b%20c?id=42&x=#t",
        "shop.example.org:8443/a",
        "example.org",
        "shop.example.org:8443",
        "id=42",
        "42",
        "3f0c9a52-7c1b-4d7e-9a55-0b5b1d2f6c11",
        "7c1b-4d7e",
        "bob.smith+x@example.org",
        "smith",
        "2001:db8::ff00:42",
        "/var/log/app-1.log",
        "log/app-1",
        "C:\\temp\\x.txt",
        "key=value",
        "value",
        "café",
        "5",
        "日本語",
        "GET https://shop",
    ] {
        assert!(finds(line, text), "{text}");
    }
    for text in [
        "xample.org",
        "3f0c9a5",
        "alue",
        "2026-11-15", // 15T05 is one word
        "caf",
        "get",
        "日本",
        "ET https://shop",
    ] {
        assert!(!finds(line, text), "{text}");
    }
    // The first occurrence is cut, the second is not.
    assert!(finds("ab-cd ab-c", "ab-c") && !finds("ab-cd b-c", "ab-c"));
    // And where the two overlap.
    assert!(finds("aa\"a\"a", "a\"a"));
}

#[test]
fn what_is_no_text_is_bytes() {
    let line = b"\xFF\xFEabc\x00\x80 id-7 \xE2\x82";
    assert!(holds(line, b"id-7", &[b"id-7"]));
    assert!(holds(line, b"\x80", &needed(b"\x80")));
    assert!(!holds(line, b"abc", &needed(b"abc"))); // those before it count as letters
    // Half of a character is asked for: whatever the answer, it must agree with the phrases.
    let euro = "a€b".as_bytes();
    for start in 0..euro.len() {
        for end in start + 1..=euro.len() {
            let text = &euro[start..end];
            if holds(euro, text, &needed(text)) {
                let mut missing = needed(text);
                for_each_phrase(euro, |phrase| missing.retain(|m| *m != phrase));
                assert!(missing.is_empty());
            }
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            "[ab1_]{1,2}",
            "[-./:=@ ,\"]",
            Just("é".to_owned()),
            Just("€".to_owned())
        ],
        0..12,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    /// The promise behind "no false no": whatever stands in a line with no word cut is found, by its phrases, too.
    #[test]
    fn every_uncut_stretch_of_a_line_is_found(line in line()) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let borders: Vec<usize> = (0..=line.len())
            .filter(|at| line.is_char_boundary(*at))
            .filter(|at| {
                let before = line[..*at].chars().next_back().is_some_and(is_word);
                let after = line[*at..].chars().next().is_some_and(is_word);
                !(before && after)
            })
            .collect();
        let all = phrases(&line);
        for start in 0..line.len() {
            for end in start + 1..=line.len() {
                let (true, true) = (line.is_char_boundary(start), line.is_char_boundary(end)) else {
                    continue;
                };
                let text = &line[start..end];
                if !text.chars().any(is_word) {
                    continue;
                }
                let uncut = borders.contains(&start) && borders.contains(&end);
                if uncut {
                    prop_assert!(asks(text).iter().all(|phrase| all.contains(*phrase)), "{text:?}");
                    prop_assert!(finds(&line, text), "{text:?}");
                } else {
                    // Then only where it stands elsewhere, uncut.
                    let elsewhere = line.match_indices(text).any(|(at, _)| {
                        borders.contains(&at) && borders.contains(&(at + text.len()))
                    });
                    let overlapping = (0..line.len()).any(|at| {
                        line.is_char_boundary(at)
                            && line[at..].starts_with(text)
                            && borders.contains(&at)
                            && borders.contains(&(at + text.len()))
                    });
                    if !elsewhere && !overlapping {
                        prop_assert!(!finds(&line, text), "{text:?}");
                    }
                }
            }
        }
    }
}

/// The keys of a record, the columns as a header would give them.
fn keys(spec: &str, record: &str, columns: &[usize]) -> Option<Vec<Vec<u8>>> {
    let spec: KeySpec = spec.parse().unwrap();
    let mut keys = Vec::new();
    let made = Keys::new(&spec).each(record.as_bytes(), columns, |key| keys.push(key.to_vec()));
    made.ok().map(|()| keys)
}

fn asked(spec: &str, text: &str) -> Result<Vec<Vec<u8>>, String> {
    let spec: KeySpec = spec.parse().unwrap();
    spec.query(text.as_bytes()).map(|query| query.keys)
}

#[test]
fn a_query_makes_the_key_that_a_record_has() {
    for (spec, record, columns, asked_for) in [
        ("line", "a line", &[][..], "a line"),
        ("csv:2", "x,\"a,b\"\"c\"", &[1], "a,b\"c"),
        ("csv:r,q", "r1,x,q1", &[0, 2], "r1,q1"),
        ("csv:r,q", "\"r,1\",x,", &[0, 2], "\"r,1\","),
        ("tsv:1,2", "a b\tc", &[0, 1], "a b,c"),
        ("jsonl:/id", "{\"id\": 42}", &[], "42"),
        ("jsonl:/id", "{\"id\": \"42\"}", &[], "42"),
        ("jsonl:/id", "{\"id\": \"\\u00e9\"}", &[], "é"),
        ("jsonl:/a/0,/b", "{\"a\":[\"x\"],\"b\":true}", &[], "x,true"),
        ("prefix:3:csv:1", "abcdef", &[0], "abc"),
        ("prefix:3:csv:1", "abcdef", &[0], "abcde"),
        ("prefix:2:line", "été", &[], "été"),
    ] {
        assert_eq!(
            keys(spec, record, columns),
            Some(asked(spec, asked_for).unwrap()),
            "{spec} {record}"
        );
    }
}

#[test]
fn values_of_several_columns_stay_apart() {
    let one = asked("csv:a,b", "ab,c").unwrap();
    assert_ne!(one, asked("csv:a,b", "a,bc").unwrap());
    assert_ne!(one, asked("csv:a,b", "abc,").unwrap());
    assert_ne!(asked("csv:a,b", "a,b"), asked("csv:a,b", "b,a"));
}

#[test]
fn records_without_the_key_have_none() {
    assert_eq!(keys("csv:3", "a,b", &[2]), None);
    assert_eq!(keys("jsonl:/id", "{\"other\":1}", &[]), None);
    assert_eq!(keys("jsonl:/id", "{\"id\":null}", &[]), None);
    assert_eq!(keys("jsonl:/a,/b", "{\"a\":1}", &[]), None);
    assert_eq!(keys("jsonl:/id", "no json", &[]), None);
    // Too short to be asked for.
    assert_eq!(keys("prefix:3:line", "ab", &[]), Some(vec![]));
    assert_eq!(
        keys("prefix:3:word", "ab abcd-abc", &[]),
        Some(vec![b"abc".to_vec(), b"abc".to_vec()])
    );
}

#[test]
fn what_makes_no_sense_is_told() {
    for (spec, says) in [
        ("words", "expected line, word"),
        ("csv", "expected line, word"),
        ("csv:", "name is empty"),
        ("csv:0", "numbered from 1"),
        ("jsonl:id", "starts with '/'"),
        ("prefix:word", "prefix:N:SPEC"),
        ("prefix:0:word", "prefix:N:SPEC"),
        ("prefix:3", "expected line, word"),
        ("prefix:3:csv:a,b", "single column"),
        ("prefix:3:prefix:2:line", "expected line, word"),
    ] {
        let error = spec.parse::<KeySpec>().unwrap_err();
        assert!(error.contains(says), "{spec}: {error}");
    }
    for (spec, text, says) in [
        ("csv:a,b", "x", "2 values, got 1"),
        ("csv:a,b", "x,y,z", "2 values, got 3"),
        ("prefix:4:line", "abc", "at least 4 bytes, got 3"),
        ("prefix:2:word", "ab-cd", "one word"),
        ("word", "...", "no word"),
    ] {
        let error = asked(spec, text).unwrap_err();
        assert!(error.contains(says), "{spec}: {error}");
    }
}
