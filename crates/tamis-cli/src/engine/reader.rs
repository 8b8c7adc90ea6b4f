//! Inputs, one after the other, as chunks of whole records.

use crate::engine::input::{Input, InputError, NoColumn, NotRead};
use crate::engine::key::{Columns, KeyRule, Part};
use crate::engine::records::{LastBorder, Layout};
use std::io;
use std::sync::Arc;

/// A longer record is refused; most likely a CSV quote was never closed. Also keeps positions within 32 bits.
const LONGEST_RECORD: usize = 1 << 30;

/// Inputs that open when their turn comes.
pub(crate) type Inputs = Box<dyn Iterator<Item = Result<Input, InputError>> + Send>;

/// Whole records of one input, each with its delimiter.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Kept at full length while `length` varies, so that it is cleared only once.
    pub(crate) buffer: Vec<u8>,
    pub(crate) length: usize,
    /// The bytes of a header row in front of the records.
    pub(crate) header: usize,
    /// Whether that header belongs into the output: only the first one does.
    pub(crate) prints_header: bool,
    /// Where the key columns are in this input.
    pub(crate) columns: Arc<[usize]>,
    /// The input's name, as it was given.
    pub(crate) input: Arc<[u8]>,
    /// Whether it is the first one of its input.
    pub(crate) starts_input: bool,
}

impl Chunk {
    pub(crate) fn records(&self) -> &[u8] {
        &self.buffer[self.header..self.length]
    }

    /// How many rows are in front of the records.
    pub(crate) fn header_rows(&self) -> u64 {
        u64::from(self.header > 0)
    }
}

/// Reads chunks.
///
/// An input's last record need not be delimited: the delimiter is added, as `sort` and `awk` do. But an input that
/// fails has no last record: what follows its last delimiter may be half of one, and is dropped.
pub(crate) struct Reader {
    inputs: Inputs,
    chunk_size: usize,
    longest_record: usize,
    layout: Layout,
    columns: Option<(Columns, u8)>,
    current: Option<Current>,
    /// The beginning of a record whose end was not in the last chunk.
    rest: Vec<u8>,
    /// The first input's name and header row, which the others must repeat.
    first_header: Option<(String, Vec<u8>)>,
    errors: Vec<InputError>,
}

struct Current {
    input: Input,
    started: bool,
    columns: Arc<[usize]>,
}

impl Reader {
    pub(crate) fn new(inputs: Inputs, rule: &KeyRule, chunk_size: usize) -> Self {
        let columns = match &rule.part {
            Part::Columns { separator, columns } => Some((columns.clone(), *separator)),
            _ => None,
        };
        Self {
            inputs,
            chunk_size: chunk_size.max(1),
            longest_record: LONGEST_RECORD,
            layout: rule.layout(),
            columns,
            current: None,
            rest: Vec::new(),
            first_header: None,
            errors: Vec::new(),
        }
    }

    /// Refuses records of more bytes, about.
    pub(crate) fn longest_record(mut self, bytes: usize) -> Self {
        self.longest_record = bytes;
        self
    }

    /// What went wrong. An input that fails ends there, and the next one follows.
    pub(crate) fn into_errors(self) -> Vec<InputError> {
        self.errors
    }

    /// Reads the next chunk; `false` when there is none.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) -> bool {
        loop {
            let Some(mut current) = self.current.take().or_else(|| self.open()) else {
                return false;
            };
            let filled = self.fill(&mut current, chunk);
            let usable = chunk.length > 0 && self.begin(&mut current, chunk);
            match filled {
                Ok(More::Yes) if usable => self.current = Some(current),
                Ok(_) => self.rest.clear(),
                Err(e) => {
                    self.rest.clear();
                    self.fail(e);
                }
            }
            if usable {
                return true;
            }
        }
    }

    fn open(&mut self) -> Option<Current> {
        loop {
            match self.inputs.next()? {
                Ok(input) => {
                    return Some(Current {
                        input,
                        started: false,
                        columns: Arc::default(),
                    });
                }
                Err(e) => self.fail(e),
            }
        }
    }

    fn fail(&mut self, error: InputError) {
        if !error.is_stop() {
            self.errors.push(error);
        }
    }

    /// Fills the chunk with whole records; leaves what follows them in `rest`.
    fn fill(&mut self, current: &mut Current, chunk: &mut Chunk) -> Result<More, InputError> {
        let mut filled = self.rest.len();
        let buffer = &mut chunk.buffer;
        buffer.resize(buffer.len().max(self.chunk_size).max(filled), 0);
        buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        chunk.length = 0;
        let mut border = LastBorder::new(self.layout);
        loop {
            if filled == buffer.len() {
                if filled >= self.longest_record {
                    return Err(self.too_long(current));
                }
                buffer.resize(filled * 2, 0);
            }
            let count = current.input.read(&mut buffer[filled..])?;
            filled += count;
            if count == 0 {
                chunk.length = self.delimit(buffer, filled);
                return Ok(More::No);
            }
            border.update(&buffer[..filled]);
            chunk.length = border.at;
            let waiting = filled < buffer.len() && current.input.short_reads_mean_waiting();
            if border.at > 0 && (filled == buffer.len() || waiting) {
                self.rest.extend_from_slice(&buffer[border.at..filled]);
                return Ok(More::Yes);
            }
        }
    }

    /// Ends the last record of an input with a delimiter if it has none; gives the new length.
    fn delimit(&self, buffer: &mut Vec<u8>, filled: usize) -> usize {
        let delimiter = self.layout.delimiter();
        if filled == 0 || buffer[filled - 1] == delimiter {
            return filled;
        }
        buffer.truncate(filled);
        buffer.push(delimiter);
        filled + 1
    }

    fn too_long(&self, current: &Current) -> InputError {
        let hint = if self.layout == Layout::Csv {
            "; is a quote never closed?"
        } else {
            ""
        };
        let message = format!(
            "a record is longer than {} bytes{hint}",
            self.longest_record
        );
        InputError {
            name: current.input.name().to_owned(),
            cause: NotRead(message).into(),
        }
    }

    /// Takes the header from an input's first chunk and finds the key columns. `false` if they are not there: then
    /// the input is given up.
    fn begin(&mut self, current: &mut Current, chunk: &mut Chunk) -> bool {
        chunk.header = 0;
        chunk.prints_header = false;
        chunk.starts_input = !current.started;
        chunk.input = current.input.given_name();
        if let Some((columns, separator)) = &self.columns
            && !current.started
        {
            let bytes = &chunk.buffer[..chunk.length];
            let header = self.layout.first_end(bytes).unwrap_or(bytes.len());
            let names = self.layout.content(&bytes[..header]);
            match self.positions(columns, *separator, names) {
                Ok(positions) => current.columns = positions.into(),
                Err(message) => {
                    let cause = io::Error::new(io::ErrorKind::InvalidData, NoColumn(message));
                    self.errors.push(InputError {
                        name: current.input.name().to_owned(),
                        cause,
                    });
                    return false;
                }
            }
            if columns.header {
                chunk.header = header;
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
        separator: u8,
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

/// Whether an input goes on after a chunk.
enum More {
    Yes,
    No,
}
