//! Blocks of a file, read by position, by several threads at once.

use memchr::{memchr, memrchr};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// The last record of a block usually ends within this many bytes after the block.
const BEYOND: usize = 4 << 10;
/// How far from the end of a file its last record is searched for.
const LAST_RECORD: u64 = 64 << 10;

/// The rest of a file, up to the end of a record.
pub(crate) struct Blocks {
    file: Arc<File>,
    next: u64,
    end: u64,
    /// Whether a record starts at the start of the next block.
    at_border: bool,
}

impl Blocks {
    /// From `start`, the start of a record, to the end of the last whole record. Moves the file's cursor behind that.
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

    /// The next block, of about this many bytes.
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

/// The position of a block's records in the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) bytes: Range<usize>,
    /// Whether the next record is too long.
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
    /// Reads the records; a record longer than this is refused.
    pub(crate) fn read(
        &self,
        buffer: &mut Vec<u8>,
        delimiter: u8,
        longest: usize,
    ) -> io::Result<Records> {
        let Range { start, end } = self.bytes;
        // The block starts with a record if the byte before it is a delimiter.
        let from = start - u64::from(!self.at_border);
        let own = (end - from) as usize;
        // Doesn't keep the memory of one long record forever.
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
            // The start of the last record, at most at the block's last byte.
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
                // The file was truncated, so its last record ends here.
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

/// Reads as much as available.
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

/// Other systems have no positional read that leaves the cursor alone, so files are read in one piece there.
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(ErrorKind::Unsupported.into())
}
