//! The keys of a file, segment by segment: one read serves all specs.

use crate::formats::{self, FileClass, FileKind};
use crate::input::{Entrance, Input, InputError, Packing, TextKind, TextReader, text_from};
use crate::key::parquet::{Failure, Table};
use crate::key::{KeySpec, Keys, KeysOfText, Missing, Part, RecordRule, Source};
use crate::line_time::LineTimes;
use crate::pipeline::EndOnPanic;
use crate::progress::Progress;
use crate::reader::{CHUNK, Chunk, Reader};
use crate::records::{Framing, LastBorder, newlines};
use crate::turn::Turn;
use std::fs::{File, Metadata};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tamis::index::{EntryFilters, EntryKeys, IndexOptions};
use tamis::{Hash, Moment};
use xxhash_rust::xxh3::Xxh3;

/// Longer records aren't lines, rows or words that anyone searches for, and a few bytes of compressed data can unpack
/// to that much.
const LONGEST_RECORD: usize = 64 << 20;

/// A file that was opened and inspected once, for all keys that are read from it.
pub struct Opened {
    name: String,
    input: Input,
    /// The same file, for reading in any order.
    file: File,
    is_packed: bool,
    /// The kind of file, if it isn't text.
    kind: Option<FileKind>,
}

/// How to read the keys of a spec from a file.
pub enum Way<'s> {
    /// From lines or rows of text.
    Text,
    /// From these columns of Parquet.
    Parquet(&'s [String]),
}

impl Opened {
    /// Opens a file. Counts bytes read in `progress`.
    pub fn open(path: &Path, progress: &Arc<Progress>) -> Result<Self, InputError> {
        let failed = |cause| InputError {
            name: path.display().to_string(),
            cause,
        };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Self::new(path, file, &metadata, progress)
    }

    /// Inspects an open file.
    pub fn new(
        path: &Path,
        file: File,
        metadata: &Metadata,
        progress: &Arc<Progress>,
    ) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let failed = |cause| InputError {
            name: name.clone(),
            cause,
        };
        // It shares its position with the original, so seek before each read.
        let again = file.try_clone().map_err(failed)?;
        let (input, kind, is_packed) = if metadata.is_file() {
            let text = TextReader::new(file, progress).map_err(failed)?;
            let (kind, is_packed) = (text.file_kind(), text.kind().is_packed());
            // `TextReader` already counts the bytes.
            let input = Input::from_read(&name, text, Packing::Ignored, &Arc::default())?;
            (input, kind, is_packed)
        } else {
            let mut input = Input::from_file(&name, file, Packing::Recognised, progress)?;
            let kind = formats::not_text(input.peek(formats::HEAD));
            let is_packed = input.is_compressed();
            (input, kind, is_packed)
        };
        Ok(Self {
            name,
            input,
            is_packed,
            file: again,
            kind,
        })
    }

    /// How to read the keys of a spec. Columns of CSV aren't searched in Parquet, nor the other way round; files that
    /// are neither text nor Parquet aren't read.
    pub fn way<'s>(&self, spec: &'s KeySpec) -> Result<Way<'s>, InputError> {
        way(&self.name, self.kind, self.is_packed, spec)
    }

    /// The file itself.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Reads the text to its end or the first error, on several threads: they take turns reading, `work` runs in any
    /// order, and `take` gets its results in order.
    pub fn map_chunks<R: Send>(
        self,
        rule: &RecordRule,
        threads: usize,
        progress: &Arc<Progress>,
        work: impl Fn(&Chunk) -> R + Sync,
        take: impl FnMut(R) + Send,
    ) -> Result<(), InputError> {
        let reader = Reader::new(Box::new(std::iter::once(Ok(self.input))), rule, CHUNK);
        let reader = Mutex::new((reader, 0));
        let results = Turn::new(take);
        let run = || {
            let _guard = EndOnPanic;
            let mut chunk = Chunk::default();
            loop {
                let number = {
                    let mut reader = reader.lock().expect("no thread panics while it reads");
                    if progress.stop.load(Relaxed) || !reader.0.read(&mut chunk) {
                        return;
                    }
                    reader.1 += 1;
                    reader.1 - 1
                };
                let made = work(&chunk);
                let mut take = results.wait(number);
                take(made);
                take.pass();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(run);
            }
            run();
        });
        let (reader, _) = reader.into_inner().expect("threads have ended well");
        match reader.into_errors().pop() {
            Some(error) => Err(error),
            None if progress.stop.load(Relaxed) => Err(InputError::stopped(&self.name)),
            None => Ok(()),
        }
    }

    /// Reads the rows of a Parquet file where none of the columns is null.
    pub fn for_each_row(
        self,
        columns: &[String],
        progress: &Arc<Progress>,
        mut each: impl FnMut(u64, &[&[u8]]),
    ) -> Result<(), InputError> {
        read_table(&self.name, self.file, progress, |table, stopped| {
            let columns = columns.iter().map(|name| table.find(name));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            table.for_each_row(&columns, |row, found| {
                let values: Vec<&[u8]> = found.iter().map_while(|value| *value).collect();
                if values.len() == found.len() {
                    each(row, &values);
                }
                !stopped(row)
            })
        })
    }
}

fn way<'s>(
    name: &str,
    kind: Option<FileKind>,
    is_compressed: bool,
    spec: &'s KeySpec,
) -> Result<Way<'s>, InputError> {
    use FileClass::{EncryptedParquet, Parquet};
    let lines = matches!(spec.rule().part, Part::Whole(_));
    match (spec.source(), kind.map(|kind| (kind.class, kind.name))) {
        (Source::Parquet(columns), Some((Parquet, _))) if !is_compressed => {
            Ok(Way::Parquet(columns))
        }
        (Source::Parquet(_), Some((Parquet | EncryptedParquet, what))) => {
            Err(InputError::not_read(name, what))
        }
        (Source::Parquet(_), _) => Err(InputError::no_column(name, "not a Parquet file")),
        (_, Some((Parquet, what))) if !lines => Err(InputError::no_column(name, what)),
        (_, Some((_, what))) => Err(InputError::not_read(name, what)),
        (_, None) => Ok(Way::Text),
    }
}

/// Reads a table. The decoder may panic on a damaged file, which must not end the run; its state isn't used again.
fn read_table(
    name: &str,
    file: File,
    progress: &Progress,
    read: impl FnOnce(&Table, &mut dyn FnMut(u64) -> bool) -> Result<(), Failure>,
) -> Result<(), InputError> {
    let mut is_stopped = false;
    let mut stopped = |row: u64| {
        is_stopped = row.is_multiple_of(1024) && progress.stop.load(Relaxed);
        is_stopped
    };
    let read = || read(&Table::open(file)?, &mut stopped);
    let cause = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(())) if is_stopped => return Err(InputError::stopped(name)),
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Failure::Read(cause))) => cause,
        Ok(Err(Failure::NoColumn(what))) => return Err(InputError::no_column(name, what)),
        Err(_) => io::Error::new(io::ErrorKind::InvalidData, "the Parquet data is damaged"),
    };
    Err(InputError {
        name: name.to_owned(),
        cause,
    })
}

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

/// The state of one spec.
struct Scan<'s> {
    number: usize,
    spec: &'s KeySpec,
    way: Maker<'s>,
    framing: Framing,
    recent: Recent,
    /// The positions of the key columns.
    columns: Vec<usize>,
    records: u64,
    /// The current incomplete record and what follows; only if records aren't lines.
    buffer: Vec<u8>,
    border: LastBorder,
    started: bool,
    remarks: Remarks,
}

/// How keys are found.
enum Maker<'s> {
    /// In the whole text at once.
    Text(Box<KeysOfText>),
    /// Record by record.
    Records(Box<Keys<'s>>),
}

impl<'s> Scan<'s> {
    fn new((number, (spec, used)): (usize, (&'s KeySpec, &mut Option<Box<KeysOfText>>))) -> Self {
        let framing = spec.rule().framing();
        Self {
            number,
            spec,
            way: match spec.text_keys() {
                Some(keys) => Maker::Text(
                    used.take()
                        .unwrap_or_else(|| Box::new(KeysOfText::new(keys))),
                ),
                None => Maker::Records(Box::new(Keys::new(spec))),
            },
            framing,
            recent: Recent::default(),
            columns: Vec::new(),
            records: 0,
            buffer: Vec::new(),
            border: LastBorder::new(framing, false),
            started: false,
            remarks: Remarks::default(),
        }
    }

    /// Whether the rest of the file no longer matters.
    fn has_ended(&self) -> bool {
        self.remarks.no_column.is_some() || self.remarks.unknown.is_some()
    }

    /// Gives up: not all keys will be known.
    fn leave(&mut self, why: &str) {
        if !self.has_ended() {
            self.remarks.unknown = Some(why.to_owned());
        }
    }

    /// Ends this spec if the error concerns only it; otherwise returns the error.
    fn end(&mut self, error: InputError) -> Result<(), InputError> {
        if error.is_no_column() {
            self.remarks.no_column = Some(error.cause.to_string());
        } else if error.is_not_read() {
            self.leave(&error.cause.to_string());
        } else {
            return Err(error);
        }
        Ok(())
    }

    /// Adds the keys of whole lines.
    fn feed<E>(&mut self, lines: &[u8], sink: &mut Sink<E>) {
        if self.has_ended() {
            return;
        }
        if let Maker::Text(keys) = &mut self.way {
            return keys.add(lines);
        }
        if self.framing == Framing::LINES {
            return self.cut(lines, sink);
        }
        self.buffer.extend_from_slice(lines);
        self.border.update(&self.buffer);
        let end = self.border.at;
        if end > 0 {
            self.cut_buffer(end, sink);
        } else if self.buffer.len() >= LONGEST_RECORD {
            self.leave(&self.framing.too_long(LONGEST_RECORD));
            self.buffer = Vec::new();
        }
    }

    /// Adds the keys of the last record, which may lack its delimiter.
    fn finish<E>(&mut self, sink: &mut Sink<E>) {
        if !self.has_ended() && !self.buffer.is_empty() {
            let delimiter = self.framing.delimiter();
            if self.buffer.last() != Some(&delimiter) {
                self.buffer.push(delimiter);
            }
            self.cut_buffer(self.buffer.len(), sink);
        }
    }

    fn cut_buffer<E>(&mut self, end: usize, sink: &mut Sink<E>) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.cut(&buffer[..end], sink);
        buffer.drain(..end);
        self.buffer = buffer;
        self.border = LastBorder::new(self.framing, false);
    }

    fn cut<E>(&mut self, records: &[u8], sink: &mut Sink<E>) {
        let header = if self.started || records.is_empty() {
            0
        } else {
            self.started = true;
            self.begin(records)
        };
        if !self.has_ended() {
            self.add(&records[header..], sink);
        }
    }

    /// Finds the key columns in the first row; returns the length of a header row.
    fn begin(&mut self, bytes: &[u8]) -> usize {
        let Part::Columns { separator, columns } = &self.spec.rule().part else {
            return 0;
        };
        let header = self.framing.first_end(bytes).unwrap_or(bytes.len());
        match columns.positions(self.framing.content(&bytes[..header]), *separator) {
            Ok(positions) => self.columns = positions,
            Err(what) => self.remarks.no_column = Some(what),
        }
        if columns.header { header } else { 0 }
    }

    /// Adds the keys of whole records.
    fn add<E>(&mut self, records: &[u8], sink: &mut Sink<E>) {
        let Maker::Records(maker) = &mut self.way else {
            return;
        };
        let mut malformed = None;
        let hasher = sink.task.options.key_hasher();
        self.framing.for_each(records, |start, end| {
            self.records += 1;
            let content = self.framing.content(&records[start..end]);
            let add = |key: &[u8]| {
                let hash = hasher.hash(key);
                if self.recent.is_new(hash) {
                    sink.keys.add(self.number, hash);
                }
            };
            match maker.each(content, &self.columns, add) {
                Ok(()) => {}
                Err(Missing::Value) => self.remarks.without_key += 1,
                Err(Missing::Malformed(what)) => {
                    malformed.get_or_insert_with(|| format!("record {}: {what}", self.records));
                }
            }
        });
        if let Some(why) = malformed {
            self.leave(&why);
        }
    }

    /// Passes on the keys of a segment, or marks them as unknown.
    fn end_segment<E>(&mut self, sink: &mut Sink<E>) {
        self.recent = Recent::default();
        if let Maker::Text(keys) = &mut self.way {
            sink.keys.add_all(self.number, keys.take());
        }
        if let Some(why) = &self.remarks.unknown {
            self.remarks.without_key = 0;
            sink.keys.set_unknown(self.number, why);
        }
    }
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

/// Remembers some of the latest keys: most words of a log also occur in the line before, and this avoids sorting them
/// later.
#[derive(Default)]
struct Recent(Vec<Option<Hash>>);

impl Recent {
    const SLOTS: usize = 1 << 13;

    #[inline]
    fn is_new(&mut self, hash: Hash) -> bool {
        if self.0.is_empty() {
            self.0 = vec![None; Self::SLOTS];
        }
        let slot = &mut self.0[hash.as_u128() as usize % Self::SLOTS];
        slot.replace(hash) != Some(hash)
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

fn scan_table<E>(
    table: &Table,
    scans: &mut [Scan],
    tables: &[(usize, &[String])],
    sink: &mut Sink<E>,
    stopped: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failure> {
    // Reads each column once; each spec knows the positions of its own.
    let mut columns = Vec::new();
    let mut asked = Vec::new();
    for (number, names) in tables {
        let scan = &mut scans[*number];
        let found = names.iter().map(|name| table.find(name));
        match found.collect::<Result<Vec<_>, _>>() {
            Err(Failure::NoColumn(what)) => scan.remarks.no_column = Some(what),
            found => {
                for column in found? {
                    let at = columns.iter().position(|known| *known == column);
                    scan.columns.push(at.unwrap_or(columns.len()));
                    if at.is_none() {
                        columns.push(column);
                    }
                }
                asked.push(*number);
            }
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    let hasher = sink.task.options.key_hasher();
    table.for_each_row(&columns, |row, found| {
        for number in &asked {
            let scan = &mut scans[*number];
            let Maker::Records(maker) = &mut scan.way else {
                continue;
            };
            let values = scan.columns.iter().map_while(|at| found[*at]);
            if let Some(key) = maker.of_values(values, scan.columns.len()) {
                let hash = hasher.hash(key);
                if scan.recent.is_new(hash) {
                    sink.keys.add(*number, hash);
                }
            }
        }
        !stopped(row)
    })
}
