//! Reads inputs, one after the other, in chunks of whole records.

use crate::block::{Block, Blocks};
use crate::formats::{self, FileClass, FileKind};
use crate::input::{Input, InputError};
use crate::key::{Columns, RecordRule, Separator};
use crate::progress::Progress;
use crate::records::{Framing, LastBorder, newlines};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tamis::Moment;

/// The size of a chunk: large enough to make system calls cheap, small enough for the second-level cache.
pub const CHUNK: usize = 512 << 10;
/// Longer records are refused. Also keeps positions within 32 bits.
const LONGEST_RECORD: usize = 1 << 30;
/// The most bytes, about, of a CSV record with line feeds in a quoted field: beyond that, we assume the quote was never
/// closed.
const LONGEST_QUOTED: usize = 16 << 20;
/// The most small files in one chunk, because stop requests are only checked between chunks.
const MOST_JOINED: usize = 1024;

/// Inputs that open when their turn comes.
pub type Inputs = Box<dyn Iterator<Item = Result<Input, InputError>> + Send>;

/// Whole records of one input, each with its delimiter.
#[derive(Default)]
pub struct Chunk {
    /// Kept at full length while `length` varies, so that it is cleared only once.
    pub buffer: Vec<u8>,
    /// How many bytes of the buffer are header and records.
    pub length: usize,
    /// The bytes before the records: a header row, or records of another chunk.
    pub header: usize,
    /// Whether these are a header row.
    pub has_header: bool,
    /// Whether the header is printed: only the first one is.
    pub prints_header: bool,
    /// How the records follow one another.
    pub framing: Framing,
    /// The positions of the key columns in this input.
    pub columns: Arc<[usize]>,
    /// The input's name as it was given.
    pub input: Arc<[u8]>,
    /// Whether it is the first chunk of its input.
    pub starts_input: bool,
    /// The time of the input's last change, if it is a file.
    pub written: Option<Moment>,
    /// A block from which the records must still be loaded.
    block: Option<Block>,
}

impl Chunk {
    /// Loads the records, if necessary: unlike [`Reader::read`], by several threads at once.
    pub fn load(&mut self, progress: &Progress) -> Result<(), InputError> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let name = || String::from_utf8_lossy(&self.input).into_owned();
        let delimiter = self.framing.delimiter();
        let records = match block.read(&mut self.buffer, delimiter, LONGEST_RECORD) {
            Ok(records) => records,
            Err(cause) => {
                let name = name();
                return Err(InputError { name, cause });
            }
        };
        (self.header, self.length) = (records.bytes.start, records.bytes.end);
        progress
            .consumed
            .fetch_add(records.bytes.len() as u64, Ordering::Relaxed);
        if records.stops_early {
            let why = self.framing.too_long(LONGEST_RECORD);
            return Err(InputError::not_read(&name(), why));
        }
        Ok(())
    }

    /// The records, one after the other.
    #[inline]
    pub fn records(&self) -> &[u8] {
        &self.buffer[self.header..self.length]
    }

    /// The number of rows before the records.
    pub fn header_rows(&self) -> u64 {
        u64::from(self.has_header)
    }

    /// Appends the records of another chunk, if they have the same form and fit.
    fn join(&mut self, other: &Self, most: usize) -> bool {
        let records = other.records();
        let length = self.length + records.len();
        let alike = self.framing == other.framing && self.columns == other.columns;
        if !alike || other.prints_header || other.block.is_some() || length > most {
            return false;
        }
        self.buffer.resize(self.buffer.len().max(length), 0);
        self.buffer[self.length..length].copy_from_slice(records);
        self.length = length;
        true
    }
}

/// Why an input can be read, but probably not as intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// A CSV quote is never closed. From there on, each line is a record.
    OpenQuote {
        /// The line of the quote, from 1.
        line: u64,
        /// The quote may be closed after this many bytes.
        within: Option<usize>,
    },
    /// It has no lines. Its bytes are read as if it had some.
    NoLines(FileKind),
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::OpenQuote { line, within } => {
                write!(f, "the quote in line {line} is ")?;
                match within {
                    Some(bytes) => write!(f, "not closed within {bytes} bytes"),
                    None => f.write_str("never closed"),
                }
            }
            Self::NoLines(kind) => write!(f, "this is {}", kind.name),
        }
    }
}

/// How to treat inputs with an [`Oddity`].
#[derive(Clone, Copy, Debug)]
pub enum Oddities {
    /// Reports them with the input's name, and reads them.
    Warned(fn(&str, &Oddity)),
    /// Treats them as errors.
    Refused,
    /// Reads them; the caller watches for them. An open quote extends to the end.
    Ignored,
}

/// Reads chunks.
///
/// If an input's last record lacks a delimiter, it is added, as `sort` and `awk` do. But if an input fails, the bytes
/// after its last delimiter may be half a record, so they are dropped.
pub struct Reader {
    inputs: Inputs,
    chunk_size: usize,
    longest_record: usize,
    longest_quoted: usize,
    oddities: Oddities,
    /// Whether inputs are checked for files without lines.
    looks_at_kinds: bool,
    joins_files: bool,
    gives_blocks: bool,
    framing: Framing,
    columns: Option<(Columns, Separator)>,
    current: Option<Current>,
    /// The beginning of a record that continues after the last chunk.
    rest: Vec<u8>,
    /// The first input's name and header row, which the others must repeat.
    first_header: Option<(String, Vec<u8>)>,
    errors: Vec<InputError>,
    /// A chunk that was read to be joined, but didn't fit.
    ahead: Option<Chunk>,
    /// A buffer for the next chunk to be joined.
    spare: Chunk,
}

struct Current {
    input: Input,
    started: bool,
    columns: Arc<[usize]>,
    framing: Framing,
    /// Line feeds in the chunks so far, if quotes matter.
    lines: u64,
    /// The blocks still to be read, if the input is read by position.
    blocks: Option<Blocks>,
}

impl Reader {
    /// Reads inputs whose records have keys by this rule, in chunks of about this many bytes.
    pub fn new(inputs: Inputs, rule: &RecordRule, chunk_size: usize) -> Self {
        let columns = rule
            .columns()
            .map(|(columns, separator)| (columns.clone(), separator));
        Self {
            inputs,
            chunk_size: chunk_size.max(1),
            longest_record: LONGEST_RECORD,
            longest_quoted: LONGEST_QUOTED,
            oddities: Oddities::Ignored,
            looks_at_kinds: false,
            joins_files: false,
            gives_blocks: false,
            framing: rule.framing(),
            columns,
            current: None,
            rest: Vec::new(),
            first_header: None,
            errors: Vec::new(),
            ahead: None,
            spare: Chunk::default(),
        }
    }

    /// Sets how to treat quotes that are never closed and, if `looks_at_kinds`, inputs without lines.
    pub fn oddities(mut self, oddities: Oddities, looks_at_kinds: bool) -> Self {
        self.oddities = oddities;
        self.looks_at_kinds = looks_at_kinds;
        self
    }

    /// Joins several small files in one chunk, which then has the name and time of the first. The files must not be
    /// pipes, which may make us wait.
    pub fn joining_files(mut self, joins: bool) -> Self {
        self.joins_files = joins;
        self
    }

    /// Leaves it to the receiver of a chunk to [load](Chunk::load) it, if the input can be read by position.
    pub(crate) fn giving_blocks(mut self) -> Self {
        self.gives_blocks = true;
        self
    }

    #[cfg(test)]
    pub(crate) fn longest_quoted(mut self, bytes: usize) -> Self {
        self.longest_quoted = bytes;
        self
    }

    /// Refuses records longer than about this many bytes.
    pub fn longest_record(mut self, bytes: usize) -> Self {
        self.longest_record = bytes;
        self
    }

    /// The errors. After an error in an input, reading continues with the next input.
    pub fn into_errors(self) -> Vec<InputError> {
        self.errors
    }

    /// Reads the next chunk; `false` when there is none.
    pub fn read(&mut self, chunk: &mut Chunk) -> bool {
        if let Some(ahead) = self.ahead.take() {
            self.spare = std::mem::replace(chunk, ahead);
        } else {
            while !self.step(chunk) {
                if !self.has_more() {
                    return false;
                }
            }
        }
        if self.joins_files && chunk.block.is_none() {
            self.join(chunk);
        }
        true
    }

    /// Appends the next files to a chunk that has room for them.
    fn join(&mut self, chunk: &mut Chunk) {
        for _ in 1..MOST_JOINED {
            let has_room = chunk.length < self.chunk_size / 2;
            if !has_room || !self.has_more() {
                return;
            }
            let mut next = std::mem::take(&mut self.spare);
            if self.step(&mut next) && !chunk.join(&next, self.chunk_size) {
                self.ahead = Some(next);
                return;
            }
            self.spare = next;
        }
    }

    /// Reads the next chunk of the current input; `false` if there was none.
    fn step(&mut self, chunk: &mut Chunk) -> bool {
        self.has_more();
        let Some(mut current) = self.current.take() else {
            return false;
        };
        if self.give_block(&mut current, chunk) {
            self.current = Some(current);
            return true;
        }
        let filled = self.fill(&mut current, chunk);
        let usable = chunk.length > 0 && self.begin(&mut current, chunk);
        match filled {
            Ok(More::Yes) if usable => {
                self.find_blocks(&mut current);
                self.current = Some(current);
            }
            Ok(_) => self.rest.clear(),
            Err(e) => {
                self.rest.clear();
                self.fail(e);
            }
        }
        usable
    }

    /// Switches to reading by position, if possible. Not in CSV, where record borders depend on all quotes before them.
    fn find_blocks(&mut self, current: &mut Current) {
        if let Framing::Delimited(delimiter) = current.framing
            && self.gives_blocks
            && let Some((file, at)) = current.input.position()
        {
            let start = at - self.rest.len() as u64;
            current.blocks = Blocks::new(file, start, 4 * self.chunk_size as u64, delimiter);
            if current.blocks.is_some() {
                self.rest.clear();
            }
        }
    }

    /// Turns the next block into a chunk that is still to be loaded.
    fn give_block(&mut self, current: &mut Current, chunk: &mut Chunk) -> bool {
        let next = current.blocks.as_mut().map(|it| it.next(self.chunk_size));
        if let Some(None) = next {
            current.blocks = None;
        }
        let Some(Some(block)) = next else {
            return false;
        };
        chunk.length = 0;
        chunk.framing = current.framing;
        self.begin(current, chunk);
        chunk.block = Some(block);
        true
    }

    /// Opens the next input if none is open; returns whether there is one.
    fn has_more(&mut self) -> bool {
        while self.current.is_none() {
            match self.inputs.next() {
                None => return false,
                Some(Err(e)) => self.fail(e),
                Some(Ok(input)) => {
                    self.current = Some(Current {
                        input,
                        started: false,
                        columns: Arc::default(),
                        framing: self.framing,
                        lines: 0,
                        blocks: None,
                    });
                }
            }
        }
        true
    }

    fn fail(&mut self, error: InputError) {
        if !error.is_stop() {
            self.errors.push(error);
        }
    }

    /// Fills the chunk with whole records; leaves the rest in `rest`.
    fn fill(&mut self, current: &mut Current, chunk: &mut Chunk) -> Result<More, InputError> {
        let mut filled = self.start_with_rest(&mut chunk.buffer);
        chunk.length = 0;
        chunk.framing = current.framing;
        let watches_quotes = !matches!(self.oddities, Oddities::Ignored);
        let mut border = LastBorder::new(current.framing, watches_quotes);
        loop {
            let buffer = &mut chunk.buffer;
            if filled == buffer.len() {
                if let Some(quote) = border.open_quote()
                    && filled >= self.longest_quoted
                    && buffer[quote..].contains(&b'\n')
                {
                    return self.give_up_quotes(current, chunk, filled, quote);
                }
                if filled >= self.longest_record {
                    return Err(self.too_long(current));
                }
                buffer.resize(filled * 2, 0);
            }
            let count = self.read_some(current, &mut buffer[filled..])?;
            filled = match count {
                0 => self.delimit(buffer, filled),
                _ => filled + count,
            };
            border.update(&buffer[..filled]);
            chunk.length = border.at;
            let left_open = border.open_quote().filter(|_| count == 0);
            if let Some(quote) = border.unclosed.or(left_open) {
                return self.give_up_quotes(current, chunk, filled, quote);
            }
            if count == 0 {
                chunk.length = filled;
                return Ok(More::No);
            }
            let waiting = filled < buffer.len() && current.input.short_reads_mean_waiting();
            if border.at > 0 && (filled == buffer.len() || waiting) {
                self.rest.extend_from_slice(&buffer[border.at..filled]);
                if matches!(current.framing, Framing::Csv(_)) {
                    current.lines += newlines(&buffer[..border.at]);
                }
                return Ok(More::Yes);
            }
        }
    }

    /// Returns the number of bytes already in the buffer.
    fn start_with_rest(&mut self, buffer: &mut Vec<u8>) -> usize {
        let filled = self.rest.len();
        let size = self.chunk_size.max(filled);
        // Doesn't keep the memory of one long record forever.
        if buffer.len() > 4 * size {
            buffer.truncate(size);
            buffer.shrink_to_fit();
        }
        buffer.resize(buffer.len().max(size), 0);
        buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        self.rest.shrink_to(self.chunk_size);
        filled
    }

    /// Reads some bytes; 0 at the end. Bytes after compressed data are an error, but the data before them is complete.
    fn read_some(&mut self, current: &mut Current, into: &mut [u8]) -> Result<usize, InputError> {
        match current.input.read(into) {
            Err(error) if error.is_trailing() => {
                self.fail(error);
                Ok(0)
            }
            read => read,
        }
    }

    /// Continues by lines, from the record with the quote that was never closed.
    fn give_up_quotes(
        &mut self,
        current: &mut Current,
        chunk: &mut Chunk,
        filled: usize,
        quote: usize,
    ) -> Result<More, InputError> {
        let line = current.lines + newlines(&chunk.buffer[..quote]) + 1;
        let within = (filled >= self.longest_quoted).then_some(self.longest_quoted);
        self.object(current, &Oddity::OpenQuote { line, within })?;
        current.framing = Framing::LINES;
        self.rest
            .extend_from_slice(&chunk.buffer[chunk.length..filled]);
        match chunk.length {
            0 => self.fill(current, chunk),
            _ => Ok(More::Yes),
        }
    }

    /// Reports an oddity, or makes it an error.
    fn object(&self, current: &Current, oddity: &Oddity) -> Result<(), InputError> {
        let name = current.input.name();
        match self.oddities {
            Oddities::Ignored => {}
            Oddities::Warned(warn) => warn(name, oddity),
            Oddities::Refused => return Err(InputError::not_read(name, oddity.to_string())),
        }
        Ok(())
    }

    /// Adds a delimiter to the last record of an input if it lacks one; returns the new length.
    fn delimit(&self, buffer: &mut Vec<u8>, filled: usize) -> usize {
        let delimiter = self.framing.delimiter();
        if filled == 0 || buffer[filled - 1] == delimiter {
            return filled;
        }
        buffer.truncate(filled);
        buffer.push(delimiter);
        filled + 1
    }

    fn too_long(&self, current: &Current) -> InputError {
        let why = current.framing.too_long(self.longest_record);
        InputError::not_read(current.input.name(), why)
    }

    /// Checks whether an input has lines.
    fn look_at_kind(&self, current: &Current, chunk: &Chunk) -> Result<(), InputError> {
        if !self.looks_at_kinds {
            return Ok(());
        }
        let records = &chunk.buffer[..chunk.length];
        let head = records.iter().chain(&self.rest).take(formats::HEAD);
        let head: Vec<u8> = head.copied().collect();
        match formats::not_lines(&head) {
            // Short records separated by NUL look like UTF-16.
            Some(kind)
                if matches!(kind.class, FileClass::Utf16 | FileClass::Utf32)
                    && self.framing.delimiter() != b'\n' =>
            {
                Ok(())
            }
            Some(kind) => self.object(current, &Oddity::NoLines(kind)),
            None => Ok(()),
        }
    }

    /// Takes the header from an input's first chunk and finds the key columns. Returns `false` if they are missing:
    /// then the input is given up.
    fn begin(&mut self, current: &mut Current, chunk: &mut Chunk) -> bool {
        chunk.header = 0;
        chunk.has_header = false;
        chunk.prints_header = false;
        chunk.starts_input = !current.started;
        chunk.input = current.input.given_name();
        chunk.written = current.input.written();
        if !current.started
            && let Err(error) = self.look_at_kind(current, chunk)
        {
            self.errors.push(error);
            return false;
        }
        if let Some((columns, separator)) = &self.columns
            && !current.started
        {
            let bytes = &chunk.buffer[..chunk.length];
            let header = chunk.framing.first_end(bytes).unwrap_or(bytes.len());
            let names = chunk.framing.content(&bytes[..header]);
            match self.positions(columns, *separator, names) {
                Ok(positions) => current.columns = positions.into(),
                Err(message) => {
                    let error = InputError::no_column(current.input.name(), message);
                    self.errors.push(error);
                    return false;
                }
            }
            if columns.header {
                chunk.header = header;
                chunk.has_header = header > 0;
                chunk.prints_header = self.first_header.is_none();
                let name = current.input.name().to_owned();
                self.first_header
                    .get_or_insert_with(|| (name, names.to_vec()));
            }
        }
        current.started = true;
        chunk.columns = Arc::clone(&current.columns);
        true
    }

    fn positions(
        &self,
        columns: &Columns,
        separator: Separator,
        names: &[u8],
    ) -> Result<Vec<usize>, String> {
        match &self.first_header {
            Some((first, header)) if columns.header && header != names => {
                Err(format!("its header differs from that of {first}"))
            }
            _ => columns.positions(names, separator),
        }
    }
}

/// Records only the first error of each input: with a lost disk, all blocks of a file fail, perhaps millions.
pub(crate) fn note(errors: &mut Vec<InputError>, error: InputError) {
    if errors.iter().all(|other| other.name != error.name) {
        errors.push(error);
    }
}

/// Whether an input continues after a chunk.
enum More {
    Yes,
    No,
}
