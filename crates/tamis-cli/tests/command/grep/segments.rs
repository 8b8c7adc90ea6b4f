//! Borders between a file's segments: line numbers, offsets and context continue across them.

use super::peer::{TREE, assert_same};
use super::queries::Syntax;
use crate::common::Sandbox;
use std::fs;
use std::io::Write;

/// The approximate text size of a segment.
const SEGMENT: usize = 16 << 20;
const LINE: usize = 128;

fn line(number: usize) -> String {
    let start = format!("line{number:07} of a long file, once in {} ", number % 1000);
    format!("{start:-<width$}\n", width = LINE - 1)
}

fn text(lines: std::ops::Range<usize>) -> String {
    lines.map(line).collect()
}

/// Searches for each of these lines, with its neighbours.
fn ask(dir: &Sandbox, lines: &[usize]) {
    for &number in lines {
        let word = format!("line{number:07}");
        assert_same(dir, "ix", "-n -b -C 5", Syntax::Words, &word);
        assert_same(dir, "ix", "-n -A 9", Syntax::Words, &word);
        assert_same(
            dir,
            "ix",
            "-n -B 12 --column",
            Syntax::Regex,
            &format!(r"\b{word}\b"),
        );
    }
    assert_same(dir, "ix", "-c", Syntax::Words, "once in 77");
    assert_same(dir, "ix", "-n -m 3", Syntax::Words, "once in 999");
    assert_same(dir, "ix", "-n -v -m 2", Syntax::Words, "long");
    assert_same(dir, "ix", "-c", Syntax::Words, "nowhere");
}

#[test]
fn lines_are_counted_and_shown_across_them() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    let first = SEGMENT / LINE;
    // Two whole segments and a few lines.
    let all = 2 * first + 3;
    let long = text(0..all);
    dir.write("tree/plain.log", &long);
    let gzip = |text: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    };
    dir.write("tree/one.log.gz", gzip(long.as_bytes()));
    // Members don't end at line ends.
    let members = long.as_bytes().chunks(3_000_001).flat_map(gzip);
    dir.write("tree/members.log.gz", members.collect::<Vec<u8>>());
    let frames = long.as_bytes().chunks(3_000_001);
    let frames = frames.flat_map(|frame| zstd::encode_all(frame, 1).unwrap());
    dir.write("tree/frames.log.zst", frames.collect::<Vec<u8>>());
    dir.ok(&format!("index -q ix {TREE}"));
    let edges = [
        0,
        first - 2,
        first - 1,
        first,
        first + 1,
        2 * first - 1,
        2 * first,
        all - 1,
    ];
    ask(&dir, &edges);
    for packed in ["one.log.gz", "members.log.gz", "frames.log.zst"] {
        fs::remove_file(dir.path(TREE).join(packed)).unwrap();
    }

    // Appended text has few lines before it in its segment.
    let mut file = fs::File::options()
        .append(true)
        .open(dir.path("tree/plain.log"))
        .unwrap();
    let mut append = |text: &str| file.write_all(text.as_bytes()).unwrap();
    let mut end = all;
    for more in [1, 2, 40] {
        append(&text(end..end + more));
        end += more;
        ask(&dir, &[all - 1, end - more, end - 1]);
        if more > 1 {
            dir.ok("index -q ix");
            ask(&dir, &[all - 1, end - more, end - 1]);
        }
    }
    // First half a line, later the other half.
    let half = line(end);
    append(&half[..40]);
    ask(&dir, &[end - 1, end]);
    dir.ok("index -q ix");
    ask(&dir, &[end - 1, end]);
    append(&half[40..]);
    ask(&dir, &[end - 1, end]);
    assert_same(&dir, "ix", "-n", Syntax::Regex, "-$");
    dir.ok("index -q ix");
    ask(&dir, &[end - 1, end]);
}

/// A word cut off at the end of the file when it was indexed.
#[test]
fn a_half_word_is_completed_later() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    dir.write("tree/log", "first\nsecond thim");
    dir.ok(&format!("index -q ix {TREE}"));
    let mut file = fs::File::options()
        .append(true)
        .open(dir.path("tree/log"))
        .unwrap();
    for (more, word) in [
        ("ble", "thimble"),
        (" and", "thimble and"),
        ("rew\nthird", "andrew"),
        ("\n", "third"),
    ] {
        file.write_all(more.as_bytes()).unwrap();
        for _ in 0..2 {
            assert_same(&dir, "ix", "-n", Syntax::Words, word);
            assert_same(&dir, "ix", "-n", Syntax::Words, "thim");
            assert_same(&dir, "ix", "-n -x", Syntax::Literal, "third");
            dir.ok("index -q ix");
        }
    }
}

#[test]
fn a_line_may_be_longer_than_a_segment() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    let long = format!(
        "before\nstart {} thimble\nafter it\n",
        "word ".repeat(SEGMENT / 4)
    );
    dir.write("tree/log", long);
    dir.ok(&format!("index -q ix {TREE}"));
    for word in ["thimble", "start", "after it", "before", "nowhere"] {
        assert_same(&dir, "ix", "-n -M 100", Syntax::Words, word);
    }
}
