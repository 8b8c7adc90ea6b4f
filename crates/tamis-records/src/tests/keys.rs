use super::common::{Random, Trickle, dedup};
use crate::batch::Print;
use crate::key::{Columns, KeyMaker, Part, Pointer, RecordRule};
use crate::records::Framing;

fn csv(list: &str, header: bool) -> RecordRule {
    RecordRule {
        part: Part::Columns {
            separator: crate::key::Separator::COMMA,
            columns: Columns::parse(list, header).unwrap(),
        },
        ..RecordRule::LINE
    }
}

fn tsv(list: &str) -> RecordRule {
    RecordRule {
        part: Part::Columns {
            separator: crate::key::Separator::Tab,
            columns: Columns::parse(list, true).unwrap(),
        },
        ..RecordRule::LINE
    }
}

fn jsonl(list: &str) -> RecordRule {
    RecordRule {
        part: Part::Json(Pointer::parse_list(list).unwrap()),
        ..RecordRule::LINE
    }
}

/// The key of a record; `None` if it has none.
fn key(rule: &RecordRule, content: &[u8], columns: &[usize]) -> Option<Vec<u8>> {
    let mut keys = KeyMaker::new(rule);
    let _ = keys.key(b"something else before", columns); // leaves its buffers filled
    let (key, made) = keys.key(content, columns);
    let key = key.to_vec();
    made.is_ok().then_some(key)
}

fn json_key(list: &str, line: &str) -> Option<Vec<u8>> {
    key(&jsonl(list), line.as_bytes(), &[])
}

fn text_key(url: bool, ignore_case: bool, content: &[u8]) -> Vec<u8> {
    let mut rule = RecordRule::LINE;
    if url {
        rule.made = rule.made.url();
    }
    if ignore_case {
        rule.made = rule.made.ignore_case();
    }
    key(&rule, content, &[]).unwrap()
}

fn lines(printed: &[u8]) -> Vec<&str> {
    std::str::from_utf8(printed).unwrap().lines().collect()
}

fn printed(rule: &RecordRule, files: &[&str]) -> (String, u64, Vec<String>) {
    let mut answers = Vec::new();
    for threads in 1..=4 {
        for chunk in [1, 5, 30, 1 << 16] {
            let sources = files
                .iter()
                .map(|file| Trickle::new(file.as_bytes(), 1 << 16))
                .collect();
            let run = dedup(sources, rule, Print::Chosen, threads, chunk);
            let errors: Vec<_> = run
                .outcome
                .input_errors
                .iter()
                .map(ToString::to_string)
                .collect();
            answers.push((
                String::from_utf8(run.printed).unwrap(),
                run.without_key,
                errors,
            ));
        }
    }
    answers.dedup();
    assert_eq!(
        answers.len(),
        1,
        "the same with every number of threads and chunk size"
    );
    answers.remove(0)
}

#[test]
fn rows_and_fields_are_those_of_the_csv_crate() {
    let mut random = Random(8);
    let rule = csv("1,2", false);
    for _ in 0..20_000 {
        let mut text = random.bytes(b"a,\"\n", 40);
        text.push(b'\n');
        let mut expected = Vec::new();
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(&text[..]);
        for row in reader.byte_records() {
            let row = row.unwrap();
            expected.push(row.get(1).map(|second| (row[0].to_vec(), second.to_vec())));
        }
        let mut got = Vec::new();
        Framing::Csv(b',').for_each(&text, |start, end| {
            let content = Framing::Csv(b',').content(&text[start..end]);
            if content.is_empty() {
                return; // the csv crate skips empty lines
            }
            got.push(key(&rule, content, &[0, 1]).map(|key| {
                let length = u64::from_le_bytes(key[..8].try_into().unwrap()) as usize;
                (key[8..8 + length].to_vec(), key[16 + length..].to_vec())
            }));
        });
        // With an open quote, the csv crate includes the last line feed; here, it always ends the record.
        let trim = |rows: &mut Vec<Option<(Vec<u8>, Vec<u8>)>>| {
            if let Some(Some((first, second))) = rows.last_mut() {
                for value in [first, second] {
                    while value.pop_if(|byte| *byte == b'\n').is_some() {}
                }
            }
        };
        trim(&mut expected);
        trim(&mut got);
        assert_eq!(got, expected, "{:?}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn csv_columns_by_name_and_number() {
    let file = "id,\"the, url\",note\r\n1,http://a,x\n2,\"http://a\",y\r\n3,\"http://b\nc\",z\n4,\"http://b\nc\",\"q\"\"q\"\n5,http://c";
    let expected = "id,\"the, url\",note\r\n1,http://a,x\n3,\"http://b\nc\",z\n5,http://c\n";
    assert_eq!(
        printed(&csv("2", true), &[file]),
        (expected.to_owned(), 0, vec![])
    );
    let columns = Columns {
        columns: vec![crate::key::ColumnName::Name("the, url".to_owned())],
        header: true,
    };
    let by_name = RecordRule {
        part: Part::Columns {
            separator: crate::key::Separator::COMMA,
            columns,
        },
        ..RecordRule::LINE
    };
    assert_eq!(printed(&by_name, &[file]), (expected.to_owned(), 0, vec![]));
}

#[test]
fn values_of_several_columns_do_not_run_into_each_other() {
    let (got, ..) = printed(
        &csv("a,b", true),
        &["a,b\nx,yz\nxy,z\nx,yz\n,xyz\nxyz,\n\"x\",\"yz\"\n"],
    );
    assert_eq!(
        lines(got.as_bytes()),
        ["a,b", "x,yz", "xy,z", ",xyz", "xyz,"]
    );
    assert_ne!(
        printed(&csv("b,a", true), &["a,b\n1,2\n2,1\n"]).0,
        "a,b\n1,2\n"
    );
}

#[test]
fn one_header_for_all_files_and_short_rows_are_their_own_keys() {
    let rule = csv("b", true);
    let files = [
        "a,b\n1,x\nshort\n2,x\nshort\n",
        "a,b\r\n3,x\n4,y\n\n",
        "a,b\n",
        "",
        "b,a\n9,9\n",
        "c\n",
    ];
    let (got, without_key, errors) = printed(&rule, &files);
    assert_eq!(got, "a,b\n1,x\nshort\n4,y\n\n");
    assert_eq!(without_key, 3);
    assert_eq!(
        errors,
        [
            "input 5: its header differs from that of input 1",
            "input 6: its header differs from that of input 1"
        ]
    );
    assert_eq!(
        printed(&rule, &["c,d\n1,2\n"]).2,
        ["input 1: no column 'b', the header has: c, d"]
    );
    assert_eq!(
        printed(&csv("3", true), &["c,d\n1,2\n"]).2,
        ["input 1: column 3: the header has 2 columns"]
    );
    assert_eq!(
        printed(&csv("2", false), &["1,2\n3,2\n", "4,2\n5,6"]).0,
        "1,2\n5,6\n"
    );
    assert_eq!(
        printed(&csv("b", true), &["\u{FEFF}b,a\n1,2\n1,3\n"]).0,
        "b,a\n1,2\n"
    );
    // Only at the start of a file, and only once; even if only one file has it.
    let marked = "\u{FEFF}\u{FEFF}x,1\n\u{FEFF}x,2\nx,3\n";
    assert_eq!(printed(&csv("1", false), &[marked]).0, "\u{FEFF}x,1\nx,3\n");
    assert_eq!(
        printed(&csv("b", true), &["b,a\n1,2\n", "\u{FEFF}b,a\n1,3\n3,4\n"]).0,
        "b,a\n1,2\n3,4\n"
    );
    assert_eq!(printed(&rule, &["a,b"]).0, "a,b\n");
}

#[test]
fn tsv_knows_no_quotes() {
    let (got, ..) = printed(&tsv("b"), &["a\tb\n1\t\"x\n2\t\"x\n3\tx\"\n4\t\"x\r\n"]);
    assert_eq!(lines(got.as_bytes()), ["a\tb", "1\t\"x", "3\tx\""]);
}

#[test]
fn column_lists_are_checked() {
    assert!(
        Columns::parse("0", true)
            .unwrap_err()
            .contains("numbered from 1")
    );
    assert!(Columns::parse("a,,b", true).unwrap_err().contains("empty"));
    assert!(
        Columns::parse("a", false)
            .unwrap_err()
            .contains("only numbers")
    );
}

#[test]
fn json_strings_are_their_text() {
    for line in [
        r#"{"a":{"b":"é/x"}}"#,
        r#" { "z":[1,{}], "a" : {"c":0, "b":"\u00e9\/x"}} "#,
        r#"{"a":{"b":1},"a":{"b":"é/x"}}"#,
    ] {
        assert_eq!(
            json_key("/a/b", line).as_deref(),
            Some("é/x".as_bytes()),
            "{line}"
        );
    }
    assert_eq!(
        json_key("/a~1b/~0/1", r#"{"a/b":{"~":["x","y"]}}"#).as_deref(),
        Some(&b"y"[..])
    );
    assert_eq!(json_key("/", r#"{"":"x"}"#).as_deref(), Some(&b"x"[..]));
}

#[test]
fn equal_json_values_have_equal_keys_and_others_do_not() {
    let groups: [&[&str]; 15] = [
        &["1", "1.0", "10e-1", "0.1E1", "1e0"],
        &["-1", "-1.00"],
        &["0", "-0", "0.0", "0e5"],
        &["100", "1e2", "1E+2"],
        &["\"1\""],
        &["123456789012345678901234567890"],
        &["123456789012345678901234567891"],
        &["1e999999999999999999999"],
        &["null"],
        &["\"null\""],
        &["true"],
        &["[1,2]", "[ 1.0 , 2 ]"],
        &["[12]"],
        &[
            r#"{"a":1,"b":[{"c":"x"}]}"#,
            r#"{"b":[{"c":"\u0078"}], "a":1}"#,
            r#"{"a":2,"b":[{"c":"x"}],"a":1}"#,
        ],
        &[r#"{"a":1,"b":[{"c":"y"}]}"#],
    ];
    let keys: Vec<Vec<_>> = groups
        .iter()
        .map(|group| {
            group
                .iter()
                .map(|value| json_key("/k", &format!("{{\"k\":{value}}}")).expect(value))
                .collect()
        })
        .collect();
    for (i, group) in keys.iter().enumerate() {
        assert!(group.iter().all(|key| *key == group[0]), "{:?}", groups[i]);
        assert!(
            keys[..i].iter().all(|other| other[0] != group[0]),
            "{:?}",
            groups[i]
        );
    }
}

#[test]
fn several_pointers_missing_ones_and_one_inside_another() {
    let all = [
        "{\"a\":\"x\"}",
        "{\"b\":\"x\"}",
        "{\"a\":\"\",\"b\":\"x\"}",
        "{\"a\":\"x\",\"b\":\"\"}",
        "{\"a\":null,\"b\":\"x\"}",
    ];
    let keys: Vec<_> = all
        .iter()
        .map(|line| json_key("/a,/b", line).expect(line))
        .collect();
    for i in 0..keys.len() {
        assert!(!keys[..i].contains(&keys[i]), "{}", all[i]);
    }
    let inside = |line| json_key("/a/b,/a,/a/c", line).unwrap();
    assert_eq!(
        inside(r#"{"a":{"b":"x","c":1}}"#),
        inside(r#"{"a":{"c":1.0,"b":"\u0078"}}"#)
    );
    assert_ne!(
        inside(r#"{"a":{"b":"x","c":1}}"#),
        inside(r#"{"a":{"b":"x","c":2}}"#)
    );
}

#[test]
fn lines_without_a_json_key_are_their_own() {
    let deep = format!("{{\"k\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let none = [
        "",
        "x",
        "{\"k\":1",
        "{\"k\":1} x",
        "{\"other\":1}",
        "[1]",
        "7",
        "{\"k\":\"\\ud800\"}",
        "{'k':1}",
        &deep,
    ];
    for line in none {
        assert_eq!(
            json_key("/k", line),
            None,
            "{}",
            &line[..line.len().min(40)]
        );
    }
    assert_eq!(key(&jsonl("/k"), b"{\"k\":\"\xFF\"}", &[]), None);
    let (got, without_key, _) = printed(
        &jsonl("/k"),
        &["x\n{\"k\":\"x\"}\nx\n{\"k\" : \"x\"}\n{\"j\":1}\n{\"j\":2}\n{\"j\":1}\r\n"],
    );
    assert_eq!(
        lines(got.as_bytes()),
        ["x", "{\"k\":\"x\"}", "{\"j\":1}", "{\"j\":2}"]
    );
    assert_eq!(without_key, 5);
}

#[test]
fn pointer_lists_are_checked() {
    assert!(
        Pointer::parse_list("a")
            .unwrap_err()
            .contains("starts with '/'")
    );
    assert!(
        Pointer::parse_list(&vec!["/a"; 65].join(","))
            .unwrap_err()
            .contains("at most 64")
    );
    assert!(Pointer::parse_list(&vec!["/a"; 64].join(",")).is_ok());
    assert!(json_key(&vec!["/a"; 64].join(","), "{\"a\":1}").is_some());
}

#[test]
fn urls_are_equal_by_the_whatwg_rules() {
    let same = [
        "http://Example.com:80/a/../b?q=1#top",
        "http://example.com/b?q=1",
        " HTTP://EXAMPLE.com/./b?q=1#",
        "http:\\\\example.com\\b?q=1",
    ];
    for url in same {
        assert_eq!(
            text_key(true, false, url.as_bytes()),
            b"http://example.com/b?q=1",
            "{url}"
        );
    }
    assert_ne!(
        text_key(true, false, b"http://example.com/B?q=1"),
        text_key(true, false, b"http://example.com/b?q=1")
    );
    assert_eq!(
        text_key(true, false, "https://Bücher.example/".as_bytes()),
        b"https://xn--bcher-kva.example/"
    );
    for other in [
        &b"not a url"[..],
        b"/path",
        b"http://\xFF/",
        b"http://a b/",
        b"",
    ] {
        assert_eq!(text_key(true, false, other), other);
    }
    assert_eq!(
        text_key(true, true, b"http://example.com/B#x"),
        b"http://example.com/b"
    );
    let mut rule = csv("url", true);
    rule.made = rule.made.url();
    let (got, ..) = printed(
        &rule,
        &["id,url\n1,http://a.example#x\n2,\"http://A.example/\"\n"],
    );
    assert_eq!(got, "id,url\n1,http://a.example#x\n");
}

#[test]
fn case_is_ignored_in_any_script_and_in_ascii_of_other_bytes() {
    assert_eq!(
        text_key(false, true, "ÄÖ ΑΒ ЖЯ x".as_bytes()),
        "äö αβ жя x".as_bytes()
    );
    assert_eq!(text_key(false, true, b"AbC"), b"abc");
    assert_eq!(text_key(false, true, b"A\xFFB\xC4"), b"a\xFFb\xC4");
}
