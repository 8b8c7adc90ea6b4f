//! The keys of a file, segment by segment: one read serves all specs.

mod opened;
mod spec;

pub use self::opened::{Opened, Way};

use self::opened::{read_table, way};
use self::spec::{Maker, Scan, scan_table};
use crate::input::{Entrance, InputError, TextKind, TextReader, text_from};
use crate::key::{KeySpec, KeysOfText, Part, Source};
use crate::line_time::LineTimes;
use crate::progress::Progress;
use crate::records::{Framing, newlines};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::Moment;
use tamis::index::{EntryFilters, EntryKeys, IndexOptions};
use xxhash_rust::xxh3::Xxh3;

/// Longer records aren't lines, rows or words that anyone searches for, and a few bytes of compressed data can unpack
/// to that much.
const LONGEST_RECORD: usize = 64 << 20;

/// Remarks about a file and a spec that aren't errors.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Records without the key.
    pub without_key: u64,
    /// Why the file has no such key.
    pub no_column: Option<String>,
    /// Why not all its keys are known.
    pub unknown: Option<String>,
}

/// The approximate size of a segment's text: large enough that its filters cost little, small enough to be searched in
/// a moment.
pub const SEGMENT: u64 = 16 << 20;

/// A part of a file's text, with its filters.
#[derive(Debug)]
pub struct Segment {
    /// Bytes of unpacked text. A segment ends at the end of a line, unless the file ends without one.
    pub bytes: u64,
    /// Line ends in it.
    pub lines: u64,
    /// XXH3 of the text.
    pub sum: u64,
    /// The first and the last time of its lines.
    pub times: Option<(Moment, Moment)>,
    /// The time of a line after it that has no time.
    pub last_time: Option<Moment>,
    /// The filters of its keys, one per spec.
    pub filters: EntryFilters,
}

/// The result of reading a file.
#[derive(Debug)]
pub struct Scanned {
    /// The remarks for each spec.
    pub remarks: Vec<Remarks>,
    /// Where the last complete line ends in the text that was read.
    pub whole: u64,
    /// Where the text can be entered, if it is compressed.
    pub entrances: Vec<Entrance>,
}

/// The keys to find in files, and how to keep them.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The specs of the keys.
    pub specs: &'a [KeySpec],
    /// The options of the index, which has the same specs.
    pub options: &'a IndexOptions,
    /// Counts the progress.
    pub progress: &'a Arc<Progress>,
}

/// Whether text appended to a file has the same keys alone as with the text before it, so that its meaning doesn't
/// depend on that.
pub fn can_be_continued(specs: &[KeySpec]) -> bool {
    let stands_alone = |spec: &KeySpec| match &spec.rule().part {
        Part::Columns { columns, .. } => {
            !columns.header && !matches!(spec.rule().framing(), Framing::Csv(_))
        }
        _ => !matches!(spec.source(), Source::Parquet(_)),
    };
    specs.iter().all(stands_alone)
}

/// A file to be scanned.
pub struct Text {
    name: String,
    /// The same file, for reading in any order.
    file: File,
    reader: TextReader,
    /// Bytes of text left; later bytes were written since.
    left: u64,
}

impl Text {
    /// All of a file; if it is plain text, the first `size` bytes.
    pub fn of(name: &Path, file: File, size: u64, progress: &Arc<Progress>) -> io::Result<Self> {
        let reader = TextReader::new(file.try_clone()?, progress)?;
        let left = if reader.kind().is_plain() {
            size
        } else {
            u64::MAX
        };
        Ok(Self {
            name: name.display().to_string(),
            file,
            reader,
            left,
        })
    }

    /// The text of a plain file from an offset to byte `size` of the file.
    pub fn from(
        name: &Path,
        file: File,
        kind: TextKind,
        offset: u64,
        size: u64,
    ) -> io::Result<Self> {
        let reader = text_from(file.try_clone()?, kind, None, offset)?;
        Ok(Self {
            name: name.display().to_string(),
            file,
            reader,
            left: size.saturating_sub(kind.offset_in_file(offset)),
        })
    }

    /// The kind of its text.
    pub fn kind(&self) -> TextKind {
        self.reader.kind()
    }

    fn error(&self, cause: io::Error) -> InputError {
        InputError {
            name: self.name.clone(),
            cause,
        }
    }

    /// Reads until the buffer is full, or the text ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        let most = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let filled = self.reader.fill(&mut buffer[..most]);
        let filled = filled.map_err(|cause| self.error(cause))?;
        self.left -= filled as u64;
        Ok(filled)
    }
}

/// Whether the text of a file consists exactly of parts of these lengths with these XXH3 sums.
pub fn has_sums(
    mut text: Text,
    sums: &[(u64, u64)],
    progress: &Progress,
) -> Result<bool, InputError> {
    let mut block = vec![0; BLOCK];
    for &(bytes, expected) in sums {
        let (mut left, mut sum) = (bytes, Xxh3::new());
        while left > 0 {
            if progress.stop.load(Relaxed) {
                return Err(InputError::stopped(&text.name));
            }
            let step = left.min(BLOCK as u64) as usize;
            let filled = text.fill(&mut block[..step])?;
            if filled == 0 {
                return Ok(false);
            }
            sum.update(&block[..filled]);
            left -= filled as u64;
        }
        if sum.digest() != expected {
            return Ok(false);
        }
    }
    Ok(text.fill(&mut block[..1])? == 0)
}

/// Buffers that a thread reuses for many files: allocating them would take longer than reading a small file.
#[derive(Default)]
pub struct Buffers {
    /// One per spec.
    keys: Vec<Option<Box<KeysOfText>>>,
    block: Vec<u8>,
}

/// Reads a file to its end, and passes on its segments in order. A file that isn't text has one segment of zero bytes.
///
/// Buffers must always be used with the same specs.
pub fn scan(
    mut text: Text,
    task: Task,
    times: &mut LineTimes,
    buffers: &mut Buffers,
    each: impl FnMut(Segment),
) -> Result<Scanned, InputError> {
    buffers.keys.resize_with(task.specs.len(), || None);
    let scans = task.specs.iter().zip(&mut buffers.keys).enumerate();
    let mut scans: Vec<Scan> = scans.map(Scan::new).collect();
    let block = &mut buffers.block;
    block.clear();
    let mut tables = Vec::new();
    let mut is_text = false;
    let (file_kind, is_packed) = (text.reader.file_kind(), text.kind().is_packed());
    for (number, spec) in task.specs.iter().enumerate() {
        match way(&text.name, file_kind, is_packed, spec) {
            Err(error) => scans[number].end(error)?,
            Ok(Way::Parquet(columns)) => tables.push((number, columns)),
            Ok(Way::Text) => is_text = true,
        }
    }
    let mut sink = Sink {
        task,
        keys: EntryKeys::new(task.options),
        each,
    };
    let mut entrances = Vec::new();
    let whole = if is_text {
        scan_text(
            &mut text,
            &mut scans,
            &mut sink,
            times,
            &mut entrances,
            block,
        )?
    } else {
        if !tables.is_empty() {
            read_table(&text.name, text.file, task.progress, |table, stopped| {
                scan_table(table, &mut scans, &tables, &mut sink, stopped)
            })?;
        }
        sink.finish(&mut scans, &mut Counted::default(), &text.name)?;
        0
    };
    let remarks = scans
        .into_iter()
        .zip(&mut buffers.keys)
        .map(|(scan, keys)| {
            if let Maker::Text(used) = scan.way {
                *keys = Some(used);
            }
            scan.remarks
        });
    Ok(Scanned {
        remarks: remarks.collect(),
        whole,
        entrances,
    })
}

/// Collects keys, and makes segments of them.
struct Sink<'a, E> {
    task: Task<'a>,
    keys: EntryKeys,
    each: E,
}

impl<E: FnMut(Segment)> Sink<'_, E> {
    /// Ends a segment.
    fn finish(
        &mut self,
        scans: &mut [Scan],
        counted: &mut Counted,
        name: &str,
    ) -> Result<(), InputError> {
        scans.iter_mut().for_each(|scan| scan.end_segment(self));
        let keys = std::mem::replace(&mut self.keys, EntryKeys::new(self.task.options));
        let filters = keys.build().map_err(|error| InputError {
            name: name.to_owned(),
            cause: io::Error::other(error),
        })?;
        let Counted {
            bytes,
            lines,
            sum,
            times,
            last_time,
        } = std::mem::take(counted);
        (self.each)(Segment {
            bytes,
            lines,
            sum: sum.digest(),
            times,
            last_time,
            filters,
        });
        Ok(())
    }
}

/// Counts of the current segment's text.
#[derive(Default)]
struct Counted {
    bytes: u64,
    lines: u64,
    sum: Xxh3,
    times: Option<(Moment, Moment)>,
    last_time: Option<Moment>,
}

impl Counted {
    fn add(&mut self, lines: &[u8], times: &mut LineTimes) {
        self.bytes += lines.len() as u64;
        self.lines += newlines(lines);
        self.sum.update(lines);
        times.range(lines, &mut self.times);
        self.last_time = times.last();
    }
}

/// Bytes of text processed at once: small enough for the caches.
const BLOCK: usize = 256 << 10;

/// Reads text to its end. Returns where its last complete line ends.
fn scan_text<E: FnMut(Segment)>(
    text: &mut Text,
    scans: &mut [Scan],
    sink: &mut Sink<E>,
    times: &mut LineTimes,
    entrances: &mut Vec<Entrance>,
    block: &mut Vec<u8>,
) -> Result<u64, InputError> {
    let progress = sink.task.progress;
    let mut counted = Counted::default();
    let mut whole = 0;
    let mut any = false;
    loop {
        if progress.stop.load(Relaxed) {
            return Err(InputError::stopped(&text.name));
        }
        let begun = block.len();
        block.resize(begun + BLOCK, 0);
        let filled = text.fill(&mut block[begun..])?;
        block.truncate(begun + filled);
        entrances.append(&mut text.reader.take_entrances());
        let end = match memchr::memrchr(b'\n', &block[begun..]) {
            // The text has ended, so the rest is a line without an end.
            _ if filled == 0 => block.len(),
            Some(at) => begun + at + 1,
            None if block.len() >= LONGEST_RECORD => {
                let why = Framing::LINES.too_long(LONGEST_RECORD);
                return Err(InputError::not_read(&text.name, why));
            }
            None => continue,
        };
        let lines = &block[..end];
        if filled > 0 {
            whole += end as u64;
        }
        scans.iter_mut().for_each(|scan| scan.feed(lines, sink));
        counted.add(lines, times);
        progress.records.fetch_add(newlines(lines), Relaxed);
        block.drain(..end);
        if filled == 0 {
            scans.iter_mut().for_each(|scan| scan.finish(sink));
            if counted.bytes > 0 || !any {
                sink.finish(scans, &mut counted, &text.name)?;
            }
            return Ok(whole);
        }
        if counted.bytes >= SEGMENT {
            sink.finish(scans, &mut counted, &text.name)?;
            any = true;
        }
    }
}
