//! Runs with any number of threads, compared with the oracle.

mod deciding;
mod ends;
#[cfg(unix)]
mod files;

use super::common::{Random, Run, Trickle, dedup, oracle};
use crate::batch::Print;
use crate::key::{Part, RecordRule};
use crate::records::Framing;

const CHUNKS: [usize; 7] = [1, 2, 3, 7, 64, 1000, 1 << 18];

fn delimited(delimiter: u8) -> RecordRule {
    RecordRule {
        part: Part::Whole(Framing::Delimited(delimiter)),
        ..RecordRule::LINE
    }
}

fn assert_as_oracle(files: &[&[u8]], delimiter: u8, chunks: &[usize], step: usize) {
    for print in [Print::Chosen, Print::Others, Print::Nothing] {
        let (printed, records, new) = oracle(files, delimiter, print);
        for &chunk in chunks {
            for threads in 1..=4 {
                let sources = files.iter().map(|file| Trickle::new(file, step)).collect();
                let got = dedup(sources, &delimited(delimiter), print, threads, chunk);
                let case =
                    format!("{print:?}, {threads} threads, chunks of {chunk}, steps of {step}");
                assert!(
                    got.printed == printed,
                    "{case}: other bytes than the oracle"
                );
                assert_eq!(
                    (got.records, got.new, got.without_key),
                    (records, new, 0),
                    "{case}"
                );
                assert!(
                    got.outcome.output.is_ok() && got.outcome.input_errors.is_empty(),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn awkward_inputs() {
    let cases: [&[u8]; 18] = [
        b"",
        b"\n",
        b"\n\n\n\n",
        b"a",
        b"a\nb\na",
        b"a\nb\na\n",
        b"a\r\na\nb\r\r\nb\r\n\r\n\n\r",
        b"\r",
        b"a\0b\nc\0\na\0b\n\0\n\0",
        b"\xFF\xFE\n\xC3\n\xFF\xFE\n\xC3\x28",
        b"a\nA\na \n a\n",
        b"\xEF\xBB\xBFa\na\n",
        b"\xEF\xBB\xBF\xEF\xBB\xBFa\na\n\xEF\xBB\xBFa\n",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"\xEF\xBBa\n\xEF\n",
        b"x\n\nx\n\ny",
        "é\ne\u{301}\né\n".as_bytes(),
    ];
    for case in cases {
        for step in [1, 3, 1 << 20] {
            assert_as_oracle(&[case], b'\n', &CHUNKS, step);
        }
        assert_as_oracle(&[case], 0, &CHUNKS, 2);
        assert_as_oracle(&[case], b'a', &CHUNKS, 2);
    }
}

#[test]
fn several_files_are_one_stream_of_records() {
    assert_as_oracle(
        &[b"a\nb", b"", b"b\nc", b"\n", b"a\n\n"],
        b'\n',
        &CHUNKS,
        1 << 20,
    );
}

#[test]
fn random_lines() {
    let mut random = Random(1);
    for round in 0..60 {
        let files: Vec<_> = (0..1 + round % 3)
            .map(|_| random.bytes(b"ab\n\r\0\xFF", 400))
            .collect();
        let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
        assert_as_oracle(
            &files,
            [b'\n', 0][round % 2],
            &[1, 5, 100, 1 << 16],
            1 + random.below(50),
        );
    }
}

#[test]
fn many_one_byte_lines() {
    let mut random = Random(2);
    let bytes: Vec<u8> = (0..200_000)
        .flat_map(|_| [random.next() as u8, b'\n'])
        .collect();
    assert_as_oracle(&[&bytes], b'\n', &[4096, 1 << 18], 1 << 20);
}

#[test]
fn lines_far_longer_than_a_chunk() {
    let long = vec![b'x'; 10_000_000];
    let mut other = long.clone();
    other[9_999_999] = b'y';
    let bytes = [
        &long[..],
        b"\nshort\n",
        &other,
        b"\r\n",
        &long,
        b"\n\nshort\n",
        &other,
    ]
    .concat();
    assert_as_oracle(&[&bytes], b'\n', &[1000, 1 << 18], 1 << 16);
}

#[test]
fn many_lines_with_each_number_of_threads() {
    let mut random = Random(3);
    let lines = |random: &mut Random| {
        (0..60_000)
            .map(|_| format!("line {}\n", random.below(40_000)))
            .collect::<String>()
    };
    let (first, second) = (lines(&mut random), lines(&mut random));
    assert_as_oracle(
        &[first.as_bytes(), second.as_bytes()],
        b'\n',
        &[300, 10_000],
        1 << 20,
    );
}

#[test]
fn an_input_that_fails_is_named_and_what_was_read_counts() {
    for threads in 1..=4 {
        for chunk in CHUNKS {
            let mut broken = Trickle::new(b"a\nb\na\nhalf a rec", 2);
            broken.fails = true;
            let sources = vec![Trickle::new(b"a\nx", 5), broken, Trickle::new(b"b\nz\n", 5)];
            let Run {
                printed,
                records,
                outcome,
                ..
            } = dedup(sources, &RecordRule::LINE, Print::Chosen, threads, chunk);
            assert_eq!(printed, b"a\nx\nb\nz\n", "chunks of {chunk}");
            assert_eq!(records, 7);
            assert!(outcome.output.is_ok());
            let errors: Vec<_> = outcome
                .input_errors
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(errors, ["input 2: the disk is on fire"]);
        }
    }
}
