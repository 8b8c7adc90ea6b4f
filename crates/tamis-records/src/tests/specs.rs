//! Keys of an index: the keys that a spec finds in a record, and that a query finds the record.

use crate::key::{KeySpec, Keys, Query};
use std::collections::HashSet;
use tamis::{Hash, Hasher};

/// Whether a line matches, judged by its text; compared with the line's keys.
fn finds(spec: &str, line: &[u8], text: &[u8]) -> bool {
    let spec: KeySpec = spec.parse().unwrap();
    let query = spec.query(text).unwrap();
    let found = query.can_be_in(line) && query.matches(&mut Keys::new(&spec), line, &[]);
    assert!(!found || may_find(&spec, &query, line), "{text:?}");
    found
}

fn may_find(spec: &KeySpec, query: &Query, line: &[u8]) -> bool {
    let hasher = Hasher::default();
    let keys: HashSet<Hash> = match spec.text_keys() {
        Some(keys) => super::text_keys::naive(line, keys),
        None => {
            let mut keys = HashSet::new();
            let add = |key: &[u8]| keys.extend([hasher.hash(key)]);
            Keys::new(spec).each(line, &[], add).unwrap();
            keys
        }
    };
    query.hashes(&hasher).iter().all(|key| keys.contains(key))
}

#[test]
fn what_stands_in_logs_is_found_whole_and_in_parts() {
    let line = "2026-11-15T05:03:40.123Z \"GET https://shop.example.org:8443/a/b%20c?id=42&x=#t\" \
                id=3f0c9a52-7c1b-4d7e-9a55-0b5b1d2f6c11 <bob.smith+x@example.org> [2001:db8::ff00:42] \
                /var/log/app-1.log C:\\temp\\x.txt key=value café №5 日本語";
    let finds = |text: &str| finds("word", line.as_bytes(), text.as_bytes());
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
        assert!(finds(text), "{text}");
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
        "=42", // there is a word before it
    ] {
        assert!(!finds(text), "{text}");
    }
}

#[test]
fn words_are_found_wherever_they_are_whole() {
    let finds = |line: &str, text: &str| finds("word", line.as_bytes(), text.as_bytes());
    // The first occurrence is cut, the second isn't.
    assert!(finds("ab-cd ab-c", "ab-c") && !finds("ab-cd b-c", "ab-c"));
    // Also if the two overlap.
    assert!(finds("aa\"a\"a", "a\"a"));
}

/// As in `rg -w`: next to invalid UTF-8, nothing is a whole word.
#[test]
fn what_is_no_text_is_no_word() {
    assert!(finds("word", b"\xFF abc \xFE", b"abc"));
    assert!(!finds("word", b"\xFF abc\xFE", b"abc"));
    // Half of a character.
    for part in ["é", "éa", "aé"] {
        for line in ["é", "éa", "aé", "aéa", "é a"] {
            let part = part.as_bytes();
            finds("word", line.as_bytes(), &[b"a ", part].concat());
            let asked = &[b"a", &part[part.len() - 1..], b"a"].concat();
            finds("word", line.as_bytes(), asked);
        }
    }
}

#[test]
fn trigrams_find_any_part_of_a_line() {
    let line = "GET /cart/42 café".as_bytes();
    for text in ["GET", "ET /", "t/4", "art/42", "afé", "é"] {
        let spec: KeySpec = "trigram".parse().unwrap();
        match spec.query(text.as_bytes()) {
            Ok(query) => {
                assert!(query.matches(&mut Keys::new(&spec), line, &[]), "{text}");
                assert!(may_find(&spec, &query, line), "{text}");
            }
            Err(error) => assert!(text.len() < 3 && error.contains("3 bytes"), "{error}"),
        }
    }
    assert!(!finds("trigram", line, b"get") && !finds("trigram", line, b"car/"));
}

#[test]
fn prefixes_of_words_are_found() {
    let line = "id=3f0c9a52-7c1b Éclair".as_bytes();
    for text in ["3f0c", "3f0c9a", "7c1b", "Écl", "Éclair"] {
        assert!(finds("prefix:4:word", line, text.as_bytes()), "{text}");
    }
    assert!(!finds("prefix:4:word", line, b"f0c9"));
    assert!(asked("prefix:4:word", "a b-c").is_err() && asked("prefix:4:word", "3f0").is_err());
}

/// The keys of a record, with the columns that a header would give.
fn keys(spec: &str, record: &str, columns: &[usize]) -> Option<Vec<Vec<u8>>> {
    let spec: KeySpec = spec.parse().unwrap();
    let mut keys = Vec::new();
    let made = Keys::new(&spec).each(record.as_bytes(), columns, |key| keys.push(key.to_vec()));
    made.ok().map(|()| keys)
}

fn asked(spec: &str, text: &str) -> Result<Vec<Hash>, String> {
    let spec: KeySpec = spec.parse().unwrap();
    let query = spec.query(text.as_bytes())?;
    Ok(query.hashes(&Hasher::default()))
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
        let keys = keys(spec, record, columns).unwrap();
        let hasher = Hasher::default();
        let hashes: Vec<Hash> = keys.iter().map(|key| hasher.hash(key)).collect();
        assert_eq!(hashes, asked(spec, asked_for).unwrap(), "{spec} {record}");
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
    // Too short for any query.
    assert_eq!(keys("prefix:3:line", "ab", &[]), Some(vec![]));
    assert_eq!(
        keys("prefix:3:word", "ab abcd-abc", &[]),
        Some(vec![b"abc".to_vec(), b"abc".to_vec()])
    );
}

#[test]
fn what_makes_no_sense_is_told() {
    for (spec, says) in [
        ("words", "expected word, trigram, line"),
        ("csv", "expected word, trigram, line"),
        ("csv:", "name is empty"),
        ("csv:0", "numbered from 1"),
        ("jsonl:id", "starts with '/'"),
        ("prefix:word", "prefix:N:SPEC"),
        ("prefix:0:word", "prefix:N:SPEC"),
        ("prefix:3", "expected word, trigram, line"),
        ("prefix:3:csv:a,b", "single column"),
        ("prefix:3:prefix:2:line", "expected word, trigram, line"),
        ("prefix:3:trigram", "no prefixes"),
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
        ("trigram", "ab", "too short for trigrams"),
    ] {
        let error = asked(spec, text).unwrap_err();
        assert!(error.contains(says), "{spec}: {error}");
    }
}
