//! Finds the ends of records.
//!
//! Text is split at a delimiter byte. CSV is split at line feeds outside quotes, by the rules of RFC 4180 as lenient
//! readers apply them: a quote opens a quoted field only at the field's start, `""` inside one is a quote, and anything
//! after the closing quote belongs to the field.
//!
//! A quote that is never closed would make one record of all lines up to the next quote, or of the rest of the file.
//! `LastBorder` notices both: if a field spans lines and a value follows its closing quote, that quote was meant to
//! open the value.

use memchr::{memchr, memchr2, memrchr};

/// How records are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each record ends with this byte.
    Delimited(u8),
    /// Each record ends with a line feed outside quotes; quotes begin after this byte.
    Csv(u8),
}

impl Default for Framing {
    fn default() -> Self {
        Self::LINES
    }
}

impl Framing {
    /// Lines of text.
    pub const LINES: Self = Self::Delimited(b'\n');

    /// The byte at the end of a record.
    #[inline]
    pub fn delimiter(self) -> u8 {
        match self {
            Self::Delimited(byte) => byte,
            Self::Csv(_) => b'\n',
        }
    }

    /// The content of a record, without its delimiter and one carriage return before a line feed.
    #[inline]
    pub fn content(self, record: &[u8]) -> &[u8] {
        let delimiter = self.delimiter();
        let content = record.strip_suffix(&[delimiter]).unwrap_or(record);
        match delimiter {
            b'\n' => content.strip_suffix(b"\r").unwrap_or(content),
            _ => content,
        }
    }

    /// The error for a record longer than this.
    pub(crate) fn too_long(self, longest: usize) -> String {
        let hint = match self {
            Self::Csv(_) => "; is a quote never closed?",
            Self::Delimited(_) => "",
        };
        format!("a record is longer than {longest} bytes{hint}")
    }

    /// The end of the first record, if it is whole.
    pub fn first_end(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Delimited(delimiter) => memchr(delimiter, bytes).map(|at| at + 1),
            Self::Csv(separator) => CsvBorders::new(separator).next(bytes),
        }
    }

    /// Calls `each(start, end)` for every record; `bytes` must hold whole records.
    #[inline]
    pub fn for_each(self, bytes: &[u8], mut each: impl FnMut(usize, usize)) {
        let mut start = 0;
        match self {
            Self::Delimited(delimiter) => {
                for at in memchr::memchr_iter(delimiter, bytes) {
                    each(start, at + 1);
                    start = at + 1;
                }
            }
            Self::Csv(separator) => {
                let mut borders = CsvBorders::new(separator);
                while let Some(end) = borders.next(bytes) {
                    each(start, end);
                    start = end;
                }
            }
        }
        if start < bytes.len() {
            each(start, bytes.len()); // CSV that ends inside quotes
        }
    }
}

/// The number of line feeds.
pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Finds the last record border in a buffer that starts with a record and grows, looking at every byte once.
pub(crate) struct LastBorder {
    framing: Framing,
    watches_quotes: bool,
    searched: usize,
    csv: CsvBorders,
    /// The end of the last whole record so far; 0 while there is none.
    pub(crate) at: usize,
    /// A later quote that is never closed, as the next record shows.
    pub(crate) unclosed: Option<usize>,
}

impl LastBorder {
    /// With `watches_quotes`, looks for quotes that are never closed.
    pub(crate) fn new(framing: Framing, watches_quotes: bool) -> Self {
        Self {
            framing,
            watches_quotes,
            searched: 0,
            csv: CsvBorders::new(match framing {
                Framing::Csv(separator) => separator,
                Framing::Delimited(_) => b',',
            }),
            at: 0,
            unclosed: None,
        }
    }

    /// The quote of a field that is still open at the end of the buffer.
    pub(crate) fn open_quote(&self) -> Option<usize> {
        (self.watches_quotes && self.csv.quoted).then_some(self.csv.opened)
    }

    /// Processes the bytes added since the last call.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self.framing {
            Framing::Delimited(delimiter) => {
                if let Some(at) = memrchr(delimiter, &bytes[self.searched..]) {
                    self.at = self.searched + at + 1;
                }
                self.searched = bytes.len();
            }
            Framing::Csv(_) => {
                while self.unclosed.is_none()
                    && let Some(end) = self.csv.next(bytes)
                {
                    match self.csv.suspect.take().filter(|_| self.watches_quotes) {
                        None => self.at = end,
                        suspect => self.unclosed = suspect,
                    }
                }
            }
        }
    }
}

/// Finds the ends of CSV records; can continue when more bytes arrive.
struct CsvBorders {
    separator: u8,
    searched: usize,
    record: usize,
    quoted: bool,
    /// The quote that opened the last quoted field.
    opened: usize,
    /// One past the closing quote: another quote there reopens the field, since two quotes are an escaped one.
    closed: Option<usize>,
    /// The opening quote of a field that spans lines and has a value after its closing quote.
    suspect: Option<usize>,
}

impl CsvBorders {
    const fn new(separator: u8) -> Self {
        Self {
            separator,
            searched: 0,
            record: 0,
            quoted: false,
            opened: 0,
            closed: None,
            suspect: None,
        }
    }

    #[inline]
    fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            let rest = &bytes[self.searched..];
            let found = if self.quoted {
                memchr(b'"', rest)
            } else {
                memchr2(b'\n', b'"', rest)
            };
            let Some(at) = found.map(|at| self.searched + at) else {
                self.searched = bytes.len();
                return None;
            };
            self.searched = at + 1;
            if self.quoted {
                self.quoted = false;
                self.closed = Some(at + 1);
                continue;
            }
            let is_quote = bytes[at] == b'"';
            if is_quote && self.closed == Some(at) {
                self.quoted = true;
                continue;
            }
            if let Some(closed) = self.closed.take()
                && ![self.separator, b'\r', b'\n', b' '].contains(&bytes[closed])
                && memchr(b'\n', &bytes[self.opened..closed]).is_some()
            {
                self.suspect.get_or_insert(self.opened);
            }
            if !is_quote {
                self.record = at + 1;
                return Some(at + 1);
            }
            if at == self.record || bytes[at - 1] == self.separator {
                self.quoted = true;
                self.opened = at;
            }
        }
    }
}
