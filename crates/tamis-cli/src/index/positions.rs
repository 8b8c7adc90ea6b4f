//! How far each file has been searched.

use super::identity::Identity;
use super::survey::{Freshness, Surveyed};
use super::table::Known;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use tamis_records::input::{TextReader, text_from};

/// How far the text of each file has been searched, by identity rather than by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(pub(super) HashMap<Identity, Position>);

/// A place in a file's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// In its text.
    pub(super) offset: u64,
    /// Lines before it.
    pub(super) line: u64,
}

impl Positions {
    /// Where a file's text ended when the search began.
    pub(crate) fn end(&self, file: &Surveyed) -> Option<u64> {
        self.0.get(&file.identity()).map(|position| position.offset)
    }
}

/// Where the last whole line of a file ends. `None` if it isn't text.
pub(super) fn end_of(
    file: &Surveyed,
    known: Option<&Known>,
    from: Position,
    count: bool,
) -> io::Result<Option<Position>> {
    let opened = File::open(&file.listed.place)?;
    let reader = TextReader::new(opened.try_clone()?, &Default::default())?;
    if reader.file_kind().is_some() {
        return Ok(None);
    }
    let kind = reader.kind();
    let (mut position, mut text): (Position, Box<dyn Read>) = match known {
        // Indexed text need not be read again.
        Some(known)
            if kind.is_plain() && matches!(file.state, Freshness::Fresh | Freshness::Grown) =>
        {
            let whole = known.whole - kind.offset_in_file(0);
            let position = Position {
                offset: whole,
                line: known.lines(),
            };
            (position, Box::new(text_from(opened, kind, None, whole)?))
        }
        _ if kind.is_plain() && from.offset <= file.listed.metadata.len() => {
            (from, Box::new(text_from(opened, kind, None, from.offset)?))
        }
        _ => (Position { offset: 0, line: 0 }, Box::new(reader)),
    };
    let mut block = vec![0; 256 << 10];
    let mut pending = 0;
    loop {
        match text.read(&mut block) {
            Ok(0) => break,
            Ok(read) => match memchr::memrchr(b'\n', &block[..read]) {
                None => pending += read as u64,
                Some(at) => {
                    position.offset += pending + at as u64 + 1;
                    pending = (read - at - 1) as u64;
                    if count {
                        position.line += memchr::memchr_iter(b'\n', &block[..read]).count() as u64;
                    }
                }
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if !kind.is_plain() {
        // A compressed file isn't appended to, so its last line is complete.
        position.offset += pending;
    }
    Ok(Some(position))
}
