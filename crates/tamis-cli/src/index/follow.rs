//! Lines that are appended while one looks: `tamis grep --follow`.

use super::hunt::{Hunt, Tally, TextIndex};
use super::stretches::Stretches;
use super::survey::{Freshness, Identity, Survey, Surveyed};
use super::table::Known;
use super::watch::Watcher;
use anyhow::Result;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use tamis_records::input::{TextReader, text_from};

/// How far the text of each file has been searched, by what it is, not by its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(HashMap<Identity, Position>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// In its text.
    offset: u64,
    /// Lines before it.
    line: u64,
}

impl Positions {
    /// Where a file's text ended when the search began.
    pub(crate) fn end(&self, file: &Surveyed) -> Option<u64> {
        self.0.get(&file.identity()).map(|position| position.offset)
    }
}

impl Hunt<'_> {
    /// Where the text of every file ends now, with its last whole line.
    pub(crate) fn positions(&self) -> Result<Positions> {
        let mut positions = Positions::default();
        for TextIndex { index, .. } in self.indexes {
            for file in Survey::of(index)?.files {
                let known = file.known.map(|number| &index.table.files[number]);
                if let Ok(Some(end)) = end_of(&file, known, Position { offset: 0, line: 0 }, self.options.line_number) {
                    positions.0.insert(file.identity(), end);
                }
            }
        }
        Ok(positions)
    }

    /// Searches what is appended, and new files, until it is asked to stop.
    pub(crate) fn follow(
        &self,
        mut positions: Positions,
        tally: &mut Tally,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        let places: Vec<PathBuf> = self.indexes.iter().flat_map(|text| text.index.places.clone()).collect();
        let watcher = Watcher::new(&places)?;
        out.flush()?;
        loop {
            for TextIndex { index, .. } in self.indexes {
                for file in Survey::of(index)?.files {
                    if (self.is_wanted)(&file.shown) {
                        self.follow_file(&file, &mut positions, tally, out)?;
                    }
                }
            }
            out.flush()?;
            if !watcher.wait(&self.progress.stop) {
                return Ok(());
            }
        }
    }

    fn follow_file(
        &self,
        file: &Surveyed,
        positions: &mut Positions,
        tally: &mut Tally,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        let known = positions.0.get(&file.identity()).copied();
        let from = known.unwrap_or(Position { offset: 0, line: 0 });
        // One that is being packed is searched when it can be read to its end.
        let Ok(end) = end_of(file, None, from, self.options.line_number) else {
            return Ok(());
        };
        let (Ok(opened), Some(end)) = (File::open(&file.listed.place), end) else {
            return Ok(());
        };
        if end.offset == from.offset {
            return Ok(());
        }
        // It was cut, and begins anew.
        let from = if end.offset < from.offset { Position { offset: 0, line: 0 } } else { from };
        let stretches = Stretches::between(opened, from.offset..end.offset, from.line, self.progress);
        self.search_stretches(file, stretches, tally, out)?;
        positions.0.insert(file.identity(), end);
        Ok(())
    }
}

/// Where the last whole line of a file ends. Nothing for what is no text.
fn end_of(file: &Surveyed, known: Option<&Known>, from: Position, count: bool) -> io::Result<Option<Position>> {
    let opened = File::open(&file.listed.place)?;
    let reader = TextReader::new(opened.try_clone()?, &Default::default())?;
    if reader.file_kind().is_some() {
        return Ok(None);
    }
    let kind = reader.kind();
    let (mut position, mut text): (Position, Box<dyn Read>) = match known {
        // What is known need not be read.
        Some(known) if kind.is_plain() && matches!(file.state, Freshness::Fresh | Freshness::Grown) => {
            let whole = known.whole - kind.offset_in_file(0);
            let position = Position { offset: whole, line: known.lines() };
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
        // Nobody appends to it, so its last line is whole.
        position.offset += pending;
    }
    Ok(Some(position))
}
