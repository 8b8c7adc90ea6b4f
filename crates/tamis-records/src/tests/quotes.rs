//! Quotes of CSV that are never closed.

use super::common::{Random, Trickle, inputs};
use crate::key::{Columns, Part, RecordRule};
use crate::reader::{Chunk, Oddities, Reader};
use std::cell::RefCell;

thread_local! {
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn reader(text: &[u8], step: usize, chunk: usize, oddities: Oddities) -> Reader {
    let rule = RecordRule {
        part: Part::Columns {
            separator: crate::key::Separator::COMMA,
            columns: Columns::parse("1", false).unwrap(),
        },
        ..RecordRule::LINE
    };
    Reader::new(inputs(vec![Trickle::new(text, step)]), &rule, chunk).oddities(oddities, false)
}

/// All records, and the largest buffer used.
fn records(reader: &mut Reader) -> (Vec<String>, usize) {
    let (mut records, mut largest) = (Vec::new(), 0);
    let mut chunk = Chunk::default();
    while reader.read(&mut chunk) {
        largest = largest.max(chunk.buffer.len());
        let bytes = chunk.records();
        chunk.framing.for_each(bytes, |start, end| {
            records.push(String::from_utf8(bytes[start..end].to_vec()).unwrap());
        });
    }
    (records, largest)
}

/// The records and the line of the first warning, which must not depend on how the text is split.
fn read(text: &str) -> (Vec<String>, Option<u64>) {
    let mut all = Vec::new();
    for step in [1, 3, 1 << 16] {
        for chunk in [1, 7, 1 << 16] {
            WARNINGS.take();
            let warn = Oddities::Warned(|name, what| {
                WARNINGS.with_borrow_mut(|all| all.push(format!("{name}: {what}")))
            });
            let (records, _) = records(&mut reader(text.as_bytes(), step, chunk, warn));
            let warnings = WARNINGS.take();
            assert!(warnings.len() < 2, "{warnings:?}");
            let line = warnings.first().map(|text| {
                let (_, rest) = text.split_once("input 1: the quote in line ").unwrap();
                rest.split(' ').next().unwrap().parse().unwrap()
            });
            all.push((records, line));
        }
    }
    all.dedup();
    assert_eq!(all.len(), 1, "{text:?}");
    all.remove(0)
}

#[test]
fn from_a_quote_that_is_never_closed_on_records_are_lines() {
    for (text, expected, line) in [
        ("1,\"b\n2,c\n", vec!["1,\"b\n", "2,c\n"], Some(1)),
        (
            "1,a\n2,\"b\n3,c\n4,d",
            vec!["1,a\n", "2,\"b\n", "3,c\n", "4,d\n"],
            Some(2),
        ),
        ("1,a\n\"", vec!["1,a\n", "\"\n"], Some(2)),
        ("\"\n\n\n", vec!["\"\n", "\n", "\n"], Some(1)),
        // A quote far below would close it.
        (
            "1,\"b\n2,c\n3,\"d\"\n",
            vec!["1,\"b\n", "2,c\n", "3,\"d\"\n"],
            Some(1),
        ),
        (
            "\"1\",\"b\n\"2\",\"c\"\n",
            vec!["\"1\",\"b\n", "\"2\",\"c\"\n"],
            Some(1),
        ),
        ("1,\"b\n2,\"c", vec!["1,\"b\n", "2,\"c\n"], Some(1)),
        // Counts lines correctly if records span lines.
        (
            "1,\"x\ny\"\n2,\"b\n3,c\n",
            vec!["1,\"x\ny\"\n", "2,\"b\n", "3,c\n"],
            Some(3),
        ),
        // These are valid.
        (
            "1,\"x\ny\",\"z\n\"\n2,\"\"\"\n\"\n",
            vec!["1,\"x\ny\",\"z\n\"\n", "2,\"\"\"\n\"\n"],
            None,
        ),
        (
            "1,\"x\ny\"\r\n2,b\r\n",
            vec!["1,\"x\ny\"\r\n", "2,b\r\n"],
            None,
        ),
        ("1,\"x\ny\"", vec!["1,\"x\ny\"\n"], None),
        ("1,a\"b\n2,\"c\"d\n", vec!["1,a\"b\n", "2,\"c\"d\n"], None),
        ("", vec![], None),
    ] {
        let (records, warned) = read(text);
        assert_eq!(records, expected, "{text:?}");
        assert_eq!(warned, line, "{text:?}");
    }
}

#[test]
fn no_byte_is_lost_and_no_order_changed() {
    let mut random = Random(14);
    for _ in 0..2000 {
        let mut text = random.bytes(b"a,\"\n", 40);
        text.push(b'\n');
        let text = String::from_utf8(text).unwrap();
        assert_eq!(read(&text).0.concat(), text);
    }
}

#[test]
fn strictly_it_is_an_error_and_what_came_before_counts() {
    let text = "1,a\n2,b\n3,\"c\n4,d\n";
    let mut reader = reader(text.as_bytes(), 1 << 16, 1 << 16, Oddities::Refused);
    assert_eq!(records(&mut reader).0, ["1,a\n", "2,b\n"]);
    let errors: Vec<_> = reader
        .into_errors()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, ["input 1: the quote in line 3 is never closed"]);
}

#[test]
fn a_quote_is_not_waited_for_without_end() {
    let line = "2,abcdefghijklmnopqrstuvwxyz\n";
    let text = format!("1,a\n1,\"b\n{}", line.repeat(200_000));
    let mut quoted = reader(
        text.as_bytes(),
        1 << 16,
        1 << 12,
        Oddities::Warned(|_, _| {}),
    )
    .longest_quoted(1 << 16);
    let (all, largest) = records(&mut quoted);
    assert_eq!(all.len(), 200_002);
    assert!(largest <= 1 << 18, "{largest}");
    // A single long line doesn't count as several lines.
    let long = format!("1,\"{}\",x\n2,\"y\nz\"\n", "b".repeat(1 << 18));
    let mut quoted =
        reader(long.as_bytes(), 1 << 16, 1 << 12, Oddities::Refused).longest_quoted(1 << 16);
    assert_eq!(records(&mut quoted).0.len(), 2);
    assert!(quoted.into_errors().is_empty());
    // Nor does a quote that is closed in time count as open.
    let quoted = format!("1,\"{}\"\n2,y\n", "b\n".repeat(1 << 13));
    let mut quoted =
        reader(quoted.as_bytes(), 1 << 16, 1 << 12, Oddities::Refused).longest_quoted(1 << 16);
    assert_eq!(records(&mut quoted).0.len(), 2);
    assert!(quoted.into_errors().is_empty());
}
