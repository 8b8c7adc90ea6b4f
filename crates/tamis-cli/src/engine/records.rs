//! Where records end.
//!
//! Text is cut at a delimiter byte. CSV is cut at line feeds outside quotes, by the rules of RFC 4180 as lenient
//! readers apply them: a quote opens a quoted field only at the field's start, `""` inside one is a quote,
//! and whatever follows the closing quote belongs to the field.

use memchr::{memchr, memchr2, memrchr};

/// How records follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each record ends with this byte.
    Delimited(u8),
    /// Each record ends with a line feed that is not inside quotes.
    Csv,
}

impl Layout {
    pub(crate) const LINES: Self = Self::Delimited(b'\n');

    pub(crate) fn delimiter(self) -> u8 {
        match self {
            Self::Delimited(byte) => byte,
            Self::Csv => b'\n',
        }
    }

    /// What of a record carries meaning: all but its delimiter and, before a line feed, one carriage return.
    #[inline]
    pub(crate) fn content(self, record: &[u8]) -> &[u8] {
        let delimiter = self.delimiter();
        let content = record.strip_suffix(&[delimiter]).unwrap_or(record);
        match delimiter {
            b'\n' => content.strip_suffix(b"\r").unwrap_or(content),
            _ => content,
        }
    }

    /// The end of the first record, if it is whole.
    pub(crate) fn first_end(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Delimited(delimiter) => memchr(delimiter, bytes).map(|at| at + 1),
            Self::Csv => CsvBorders::default().next(bytes),
        }
    }

    /// Calls `each(start, end)` for every record; `bytes` must hold whole records, the last one ending where they do.
    #[inline]
    pub(crate) fn for_each(self, bytes: &[u8], mut each: impl FnMut(usize, usize)) {
        let mut start = 0;
        match self {
            Self::Delimited(delimiter) => {
                for at in memchr::memchr_iter(delimiter, bytes) {
                    each(start, at + 1);
                    start = at + 1;
                }
            }
            Self::Csv => {
                let mut borders = CsvBorders::default();
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

/// Finds the last record border in a buffer that starts with a record and fills up bit by bit, looking at every
/// byte once.
pub(crate) struct LastBorder {
    layout: Layout,
    searched: usize,
    csv: CsvBorders,
    /// The end of the last whole record so far; 0 while there is none.
    pub(crate) at: usize,
}

impl LastBorder {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            layout,
            searched: 0,
            csv: CsvBorders::default(),
            at: 0,
        }
    }

    /// Takes notice of the bytes added since the last call.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self.layout {
            Layout::Delimited(delimiter) => {
                if let Some(at) = memrchr(delimiter, &bytes[self.searched..]) {
                    self.at = self.searched + at + 1;
                }
                self.searched = bytes.len();
            }
            Layout::Csv => {
                while let Some(end) = self.csv.next(bytes) {
                    self.at = end;
                }
            }
        }
    }
}

/// Walks over the record ends of CSV; may run dry and go on when more bytes have come.
#[derive(Default)]
struct CsvBorders {
    searched: usize,
    record: usize,
    quoted: bool,
    /// One past the quote that closed a quoted field: a quote there reopens it, for the two are an escaped one.
    closed: Option<usize>,
}

impl CsvBorders {
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
            } else if bytes[at] == b'\n' {
                self.record = at + 1;
                return Some(at + 1);
            } else {
                let starts_field = at == self.record || bytes[at - 1] == b',';
                self.quoted = starts_field || self.closed == Some(at);
            }
        }
    }
}
