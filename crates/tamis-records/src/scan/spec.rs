//! The keys of one spec, while a file is being read.

use super::{LONGEST_RECORD, Remarks, Sink};
use crate::input::InputError;
use crate::key::parquet::{Failure, Table};
use crate::key::{KeySpec, Keys, KeysOfText, Missing, Part};
use crate::records::{Framing, LastBorder};
use tamis::Hash;

/// The state of one spec.
pub(super) struct Scan<'s> {
    number: usize,
    spec: &'s KeySpec,
    pub(super) way: Maker<'s>,
    framing: Framing,
    recent: Recent,
    /// The positions of the key columns.
    columns: Vec<usize>,
    records: u64,
    /// The current incomplete record and what follows; only if records aren't lines.
    buffer: Vec<u8>,
    border: LastBorder,
    started: bool,
    pub(super) remarks: Remarks,
}

/// How keys are found.
pub(super) enum Maker<'s> {
    /// In the whole text at once.
    Text(Box<KeysOfText>),
    /// Record by record.
    Records(Box<Keys<'s>>),
}

impl<'s> Scan<'s> {
    pub(super) fn new(
        (number, (spec, used)): (usize, (&'s KeySpec, &mut Option<Box<KeysOfText>>)),
    ) -> Self {
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
    pub(super) fn end(&mut self, error: InputError) -> Result<(), InputError> {
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
    pub(super) fn feed<E>(&mut self, lines: &[u8], sink: &mut Sink<E>) {
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
    pub(super) fn finish<E>(&mut self, sink: &mut Sink<E>) {
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
    pub(super) fn end_segment<E>(&mut self, sink: &mut Sink<E>) {
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

pub(super) fn scan_table<E>(
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
