//! Blocks of files that have changed, or contain more than expected.

use crate::block::{Block, Blocks, Records};
use crate::input::InputError;
use crate::reader::note;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The first block of a file with these bytes, and the file.
fn first(folder: &Path, bytes: &[u8], size: usize) -> (Block, File) {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    let file = Arc::new(File::open(&path).unwrap());
    let block = Blocks::new(file, 0, 0, b'\n').unwrap().next(size).unwrap();
    (block, File::options().write(true).open(path).unwrap())
}

/// The records that `read` finds, as text, and whether it stops early.
fn read(block: &Block, buffer: &mut Vec<u8>, longest: usize) -> (String, bool) {
    let Records { bytes, stops_early } = block.read(buffer, b'\n', longest).unwrap();
    let text = String::from_utf8(buffer[bytes].to_vec()).unwrap();
    (text, stops_early)
}

#[test]
fn a_file_that_was_cut_ends_with_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    for (left, expected) in [
        (0, ""),
        (5, "aa\nbb\n"),
        (6, "aa\nbb\n"), // no empty record behind it
        (7, "aa\nbb\nc\n"),
        (8, "aa\nbb\ncc\n"),
    ] {
        let (block, file) = first(folder.path(), b"aa\nbb\ncc\ndd\n", 8);
        file.set_len(left).unwrap();
        let got = read(&block, &mut Vec::new(), 100);
        assert_eq!(got, (expected.to_owned(), false), "{left} bytes");
    }
}

#[test]
fn records_before_one_that_is_too_long_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(50_000);
    let text = format!("a\nb\n{long}\nc\n");
    let (block, _) = first(folder.path(), text.as_bytes(), 10);
    let mut buffer = Vec::new();
    assert_eq!(read(&block, &mut buffer, 9_000), ("a\nb\n".into(), true));
    let whole = text.trim_end_matches("c\n").to_owned();
    assert_eq!(read(&block, &mut buffer, 60_000), (whole, false));
}

#[test]
fn a_long_record_does_not_take_memory_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let mut buffer = vec![0; 10_000_000];
    let (block, _) = first(folder.path(), b"a\nb\n", 10);
    assert_eq!(read(&block, &mut buffer, 100), ("a\nb\n".into(), false));
    assert!(buffer.capacity() < 100_000);
}

#[test]
fn an_input_that_fails_everywhere_is_reported_once() {
    let mut errors = Vec::new();
    for name in ["a", "a", "b", "a"] {
        let (name, cause) = (name.to_owned(), io::Error::other("lost"));
        note(&mut errors, InputError { name, cause });
    }
    let names: Vec<_> = errors.iter().map(|error| &error.name[..]).collect();
    assert_eq!(names, ["a", "b"]);
}
