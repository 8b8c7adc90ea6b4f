//! `tamis grep --watch`: searches lines as they are appended.

use super::hunt::{Hunt, Tally, TextIndex};
use super::positions::{Position, Positions, end_of};
use super::stretches::Stretches;
use super::survey::{Survey, Surveyed};
use super::watch::Watcher;
use anyhow::Result;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

impl Hunt<'_> {
    /// The current end of each file's text, after its last whole line.
    pub(crate) fn positions(&self) -> Result<Positions> {
        let mut positions = Positions::default();
        for TextIndex { index, .. } in self.indexes {
            for file in Survey::of(index)?.files {
                let known = file.known.map(|number| &index.table.files[number]);
                if let Ok(Some(end)) = end_of(
                    &file,
                    known,
                    Position { offset: 0, line: 0 },
                    self.options.line_number,
                ) {
                    positions.0.insert(file.identity(), end);
                }
            }
        }
        Ok(positions)
    }

    /// Searches appended text and new files until stopped.
    pub(crate) fn follow(
        &self,
        mut positions: Positions,
        tally: &mut Tally,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        let places: Vec<PathBuf> = self
            .indexes
            .iter()
            .flat_map(|text| text.index.places.clone())
            .collect();
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
        // A file still being compressed is searched once it can be read to its end.
        let Ok(end) = end_of(file, None, from, self.options.line_number) else {
            return Ok(());
        };
        let (Ok(opened), Some(end)) = (File::open(&file.listed.place), end) else {
            return Ok(());
        };
        if end.offset == from.offset {
            return Ok(());
        }
        // The file was truncated, so start over.
        let from = if end.offset < from.offset {
            Position { offset: 0, line: 0 }
        } else {
            from
        };
        let stretches =
            Stretches::between(opened, from.offset..end.offset, from.line, self.progress);
        self.search_stretches(file, stretches, tally, out)?;
        positions.0.insert(file.identity(), end);
        Ok(())
    }
}
