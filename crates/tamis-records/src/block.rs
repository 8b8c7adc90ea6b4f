//! Parts of a file that are read by position, by several threads at once.

use memchr::{memchr, memrchr};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// The last record of a block mostly ends within so many bytes behind it.
const BEYOND: usize = 4 << 10;
/// Where the last record of a file is looked for.
const LAST_RECORD: u64 = 64 << 10;

/// What is left of a file, up to the end of a record.
pub(crate) struct Blocks {
    file: Arc<File>,
    next: u64,
    end: u64,
    /// Whether a record starts where the next block does.
    at_border: bool,
}

impl Blocks {
    /// From `start`, where a record starts, to the end of the last record that is there whole. Then the file's cursor is
    /// behind it.
    pub(crate) fn new(file: Arc<File>, start: u64, least: u64, delimiter: u8) -> Option<Self> {
        let len = file.metadata().ok()?.len();
        if len.saturating_sub(start) < least {
            return None;
        }
        let mut tail = vec![0; LAST_RECORD.min(len - start) as usize];
        let from = len - tail.len() as u64;
        let filled = read_at(&file, &mut tail, from).ok()?;
        let end = from + memrchr(delimiter, &tail[..filled])? as u64 + 1;
        io::Seek::seek(&mut &*file, io::SeekFrom::Start(end)).ok()?;
        Some(Self {
            file,
            next: start,
            end,
            at_border: true,
        })
    }

    /// The next one, of about so many bytes.
    pub(crate) fn next(&mut self, size: usize) -> Option<Block> {
        let start = self.next;
        self.next = self.end.min(start + size as u64);
        (start < self.end).then(|| Block {
            file: Arc::clone(&self.file),
            bytes: start..self.next,
            at_border: std::mem::take(&mut self.at_border),
        })
    }
}

/// The records that start in a part of a file.
pub(crate) struct Block {
    file: Arc<File>,
    bytes: Range<u64>,
    at_border: bool,
}

/// Where a block's records are in the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) bytes: Range<usize>,
    /// Whether another one follows that is too long.
    pub(crate) stops_early: bool,
}

impl Records {
    const fn all(bytes: Range<usize>) -> Self {
        Self {
            bytes,
            stops_early: false,
        }
    }
}

impl Block {
    /// Reads the records, of which none may be longer than this.
    pub(crate) fn read(
        &self,
        buffer: &mut Vec<u8>,
        delimiter: u8,
        longest: usize,
    ) -> io::Result<Records> {
        let Range { start, end } = self.bytes;
        // A record starts behind a delimiter, which may be the byte before the block.
        let from = start - u64::from(!self.at_border);
        let own = (end - from) as usize;
        // One long record must not take memory for ever.
        if buffer.len() > 4 * (own + BEYOND) {
            buffer.truncate(own + BEYOND);
            buffer.shrink_to_fit();
        }
        if buffer.len() < own + BEYOND {
            buffer.resize(own + BEYOND, 0);
        }
        let mut filled = read_at(&self.file, &mut buffer[..own + BEYOND], from)?;
        let first = match self.at_border {
            true => Some(0),
            false => memchr(delimiter, &buffer[..filled.min(own)]).map(|at| at + 1),
        };
        let Some(first) = first.filter(|first| *first < filled.min(own)) else {
            return Ok(Records::all(0..0)); // all of it belongs to a record that starts before it
        };
        let mut searched = filled.min(own - 1);
        loop {
            if let Some(at) = memchr(delimiter, &buffer[searched..filled]) {
                return Ok(Records::all(first..searched + at + 1));
            }
            searched = filled;
            // Where the last record starts: with the block's last byte, at the latest.
            let last = |buffer: &[u8]| {
                let before = memrchr(delimiter, &buffer[first..filled.min(own)]);
                before.map_or(first, |at| first + at + 1)
            };
            if filled - first >= longest {
                let last = last(buffer);
                if filled - last >= longest {
                    return Ok(Records {
                        bytes: first..last,
                        stops_early: true,
                    });
                }
            }
            buffer.resize(buffer.len().max(filled * 2), 0);
            let to = buffer.len().min(filled + longest);
            match read_at(&self.file, &mut buffer[filled..to], from + filled as u64)? {
                // Somebody has cut the file: its last record ends here.
                0 => {
                    if buffer[filled - 1] != delimiter {
                        buffer[filled] = delimiter;
                        filled += 1;
                    }
                    return Ok(Records::all(first..filled));
                }
                count => filled += count,
            }
        }
    }
}

/// Reads as much as is there.
#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Other systems have no positional read that leaves the cursor alone, so their files are read in one piece.
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(ErrorKind::Unsupported.into())
}
