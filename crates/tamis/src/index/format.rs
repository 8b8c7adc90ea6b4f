//! The bytes of an index file: header, records, text. Only this file of the index knows offsets;
//! `docs/format.md` is the normative description.
//!
//! ```text
//! header | filter bodies | filter records | entry records | page sums | spec ends | text
//! ```
//!
//! The directory is everything after the bodies. Bodies are written as entries come, the directory
//! at the end. Opening reads and checks the directory; pages of bodies are compared with their sums
//! when an answer depends on them.

use crate::error::Error;
use crate::hasher::{Hasher, SecretKey};
use crate::raw::header::{HEADER_LEN, after, decode_hasher, encode_hasher, field};
use crate::raw::ribbon::compact::{CompactShape, Table, Width};
use crate::store::stamp::Stamp;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

// Differs from a filter's magic in the fifth byte.
pub(super) const MAGIC_BYTES: [u8; 8] = *b"TAMIX\r\n\x1a";
const VERSION: u16 = 1;

const MAGIC: Range<usize> = 0..8;
const FORMAT_VERSION: Range<usize> = after(MAGIC, 2);
const RESERVED: Range<usize> = after(FORMAT_VERSION, 1);
// Hash and flags, and the secret, are at the same offsets as in a filter's header.
const HASH_AND_FLAGS: Range<usize> = after(RESERVED, 5);
const ENTRIES: Range<usize> = after(HASH_AND_FLAGS, 8);
const RATE: Range<usize> = after(ENTRIES, 8);
const SECRET_AND_CHECK: Range<usize> = after(RATE, 24);
const SPECS: Range<usize> = after(SECRET_AND_CHECK, 4);
const WIDTH: Range<usize> = after(SPECS, 2);
const NARROW: Range<usize> = after(WIDTH, 2);
const DIRECTORY: Range<usize> = after(NARROW, 8);
const TEXT_LEN: Range<usize> = after(DIRECTORY, 8);
const DIRECTORY_CHECKSUM: Range<usize> = after(TEXT_LEN, 8);
const HEADER_CHECKSUM: Range<usize> = after(DIRECTORY_CHECKSUM, 8);
const RESERVED_END: Range<usize> = after(HEADER_CHECKSUM, 32);
const _: () = assert!(RESERVED_END.end == HEADER_LEN);

/// A filter's record: offset, keys and two words of shape.
pub(super) const FILTER_LEN: usize = 32;
/// An entry's record: end of its text, length of its id, flags, stamp.
pub(super) const ENTRY_LEN: usize = 48;
/// The checksum of a page.
const SUM_LEN: usize = 4;
/// Pages start at multiples of this. It is a quarter of a system's page: a sum costs 0.4 % of the
/// space, and comparing it about as much as the cache misses of the answer.
pub(super) const PAGE: usize = 1024;
/// The most key specs of an index.
pub(super) const MAX_SPECS: usize = 255;

const FLAG_STAMPED: u32 = 1;
const FLAG_RACY: u32 = 2;

/// All data of an index except the bodies of its filters.
#[derive(Clone, PartialEq)]
pub(super) struct Directory {
    pub(super) hasher: Hasher,
    pub(super) rate: f64,
    pub(super) width: Width,
    pub(super) entries: usize,
    pub(super) specs: usize,
    /// The file offset where the bodies end and the directory begins.
    pub(super) at: usize,
    pub(super) text_len: usize,
    /// The directory's bytes in the file.
    pub(super) bytes: Vec<u8>,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("hasher", &self.hasher)
            .field("rate", &self.rate)
            .field("entries", &self.entries)
            .field("specs", &self.specs)
            .finish_non_exhaustive()
    }
}

/// Where the parts of the directory begin, relative to its start.
impl Directory {
    fn entries_at(&self) -> usize {
        self.specs * self.entries * FILTER_LEN
    }

    fn sums_at(&self) -> usize {
        self.entries_at() + self.entries * ENTRY_LEN
    }

    fn ends_at(&self) -> usize {
        self.sums_at() + self.pages() * SUM_LEN
    }

    pub(super) fn text_at(&self) -> usize {
        self.ends_at() + self.specs * 8
    }
}

impl Directory {
    /// The length of the bodies in bytes.
    pub(super) const fn body_len(&self) -> u64 {
        (self.at - HEADER_LEN) as u64
    }

    /// How many pages the header and the bodies take; 0 without bodies.
    pub(super) fn pages(&self) -> usize {
        pages(self.at as u64) as usize
    }

    /// The file range of a page, clipped to the bodies.
    pub(super) fn page(&self, page: usize) -> Range<usize> {
        let start = page * PAGE;
        start.max(HEADER_LEN)..(start + PAGE).min(self.at)
    }

    pub(super) fn page_sum(&self, page: usize) -> [u8; SUM_LEN] {
        let at = self.sums_at() + page * SUM_LEN;
        field(&self.bytes, at..at + SUM_LEN)
    }

    /// The records of one spec's filters, one per entry.
    #[inline]
    pub(super) fn filters(&self, spec: usize) -> &[[u8; FILTER_LEN]] {
        let len = self.entries * FILTER_LEN;
        self.bytes[spec * len..][..len].as_chunks().0
    }

    pub(super) fn filter(&self, spec: usize, entry: usize) -> FilterRecord {
        FilterRecord::decode(&self.filters(spec)[entry])
    }

    fn entry_records(&self) -> &[[u8; ENTRY_LEN]] {
        self.bytes[self.entries_at()..self.sums_at()].as_chunks().0
    }

    pub(super) fn entry(&self, entry: usize) -> EntryRecord {
        EntryRecord::decode(&self.entry_records()[entry])
    }

    /// Whether keys of some spec of the entry are unknown.
    pub(super) fn has_unknown(&self, entry: usize) -> bool {
        (0..self.specs).any(|spec| self.filter(spec, entry).is_unknown())
    }

    fn spec_end(&self, spec: usize) -> u64 {
        let at = self.ends_at() + spec * 8;
        u64::from_le_bytes(field(&self.bytes, at..at + 8))
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.text_at()..]
    }

    pub(super) fn spec_text(&self, spec: usize) -> &str {
        let start = match spec {
            0 => 0,
            spec => self.spec_end(spec - 1),
        };
        // Already checked to be UTF-8.
        let text = &self.text()[start as usize..self.spec_end(spec) as usize];
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The id of an entry, and the reason why keys of it are unknown.
    pub(super) fn entry_text(&self, entry: usize) -> (&[u8], &str) {
        let start = match entry {
            0 => self.spec_end(self.specs - 1),
            entry => self.entry(entry - 1).text_end,
        } as usize;
        let record = self.entry(entry);
        let text = &self.text()[start..record.text_end as usize];
        let (id, reason) = text.split_at(record.id_len as usize);
        (id, std::str::from_utf8(reason).unwrap_or_default())
    }

    /// The header of a file with this directory.
    pub(super) fn header(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        encode_hasher(&mut out, &self.hasher);
        let mut put = |field: Range<usize>, bytes: &[u8]| out[field].copy_from_slice(bytes);
        put(MAGIC, &MAGIC_BYTES);
        put(FORMAT_VERSION, &VERSION.to_le_bytes());
        put(ENTRIES, &(self.entries as u64).to_le_bytes());
        put(RATE, &self.rate.to_le_bytes());
        put(SPECS, &(self.specs as u32).to_le_bytes());
        put(WIDTH, &(self.width.bits as u16).to_le_bytes());
        put(NARROW, &self.width.narrow.to_le_bytes());
        put(DIRECTORY, &(self.at as u64).to_le_bytes());
        put(TEXT_LEN, &(self.text_len as u64).to_le_bytes());
        put(DIRECTORY_CHECKSUM, &xxh3_64(&self.bytes).to_le_bytes());
        let checksum = xxh3_64(&out[..HEADER_CHECKSUM.start]);
        out[HEADER_CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads with `read` and checks everything but the bodies of an index of `len` bytes. Neither
    /// this nor a later query panics, whatever the bytes. `key` is the secret of a keyed index that
    /// doesn't hold it.
    pub(super) fn decode(
        len: u64,
        key: Option<&SecretKey>,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let h = read(0..len.min(HEADER_LEN as u64))?;
        let Some(h) = h.first_chunk::<HEADER_LEN>() else {
            return Err(corrupt(
                "length",
                "at least 128 bytes of header",
                format_args!("{} bytes", h.len()),
            ));
        };
        let mut this = Self::decode_header(h, key)?;
        let number = |range| u64::from_le_bytes(field(h, range));
        let at = number(DIRECTORY);
        this.locate([number(ENTRIES), at, number(TEXT_LEN)], len)?;
        this.bytes = read(at..len)?;
        compare(
            "directory checksum",
            number(DIRECTORY_CHECKSUM),
            xxh3_64(&this.bytes),
        )?;
        this.check_text()?;
        this.check_filters()?;
        Ok(this)
    }

    /// Everything in the header but the offsets of the parts.
    fn decode_header(h: &[u8; HEADER_LEN], key: Option<&SecretKey>) -> Result<Self, Error> {
        if h[MAGIC] != MAGIC_BYTES {
            let (expected, got) = (MAGIC_BYTES.escape_ascii(), h[MAGIC].escape_ascii());
            return Err(corrupt("magic of an index", expected, got));
        }
        // Checked before the checksum, which another version may compute differently.
        let version = u16::from_le_bytes(field(h, FORMAT_VERSION));
        if version != VERSION {
            let expected = format_args!("{VERSION} (a newer tamis may read it)");
            return Err(corrupt("format version", expected, version));
        }
        let number = |range| u64::from_le_bytes(field(h, range));
        compare(
            "header checksum",
            number(HEADER_CHECKSUM),
            xxh3_64(&h[..HEADER_CHECKSUM.start]),
        )?;
        if [RESERVED, RESERVED_END]
            .iter()
            .any(|range| h[range.clone()].iter().any(|byte| *byte != 0))
        {
            return Err(corrupt("reserved bytes", "zero", "other"));
        }
        let rate = f64::from_le_bytes(field(h, RATE));
        if !(rate > 0.0 && rate < 1.0) {
            return Err(corrupt("rate", "between 0 and 1", rate));
        }
        let bits = u16::from_le_bytes(field(h, WIDTH));
        let narrow = u16::from_le_bytes(field(h, NARROW));
        let width = Width::new(bits.into(), narrow)
            .filter(|width| width.rate() <= rate)
            .ok_or_else(|| {
                let got = format_args!("{bits} bits, {narrow} narrow");
                corrupt("fingerprint width", "one that keeps the rate", got)
            })?;
        let specs = u32::from_le_bytes(field(h, SPECS)) as usize;
        if !(1..=MAX_SPECS).contains(&specs) {
            return Err(corrupt("key specs", "1 to 255", specs));
        }
        let hasher = decode_hasher(h, key).map_err(|e| match e {
            Error::Corrupt {
                what,
                expected,
                got,
            } => corrupt(what, expected, got),
            e => e,
        })?;
        Ok(Self {
            hasher,
            rate,
            width,
            entries: 0,
            specs,
            at: 0,
            text_len: 0,
            bytes: Vec::new(),
        })
    }

    /// Compares the file's length with the header before using any of its numbers.
    fn locate(&mut self, [entries, at, text_len]: [u64; 3], len: u64) -> Result<(), Error> {
        let per_entry = (self.specs * FILTER_LEN + ENTRY_LEN) as u64;
        let expected = entries
            .checked_mul(per_entry)
            .and_then(|len| len.checked_add(pages(at) * SUM_LEN as u64))
            .and_then(|len| len.checked_add(self.specs as u64 * 8))
            .and_then(|len| len.checked_add(at))
            .and_then(|len| len.checked_add(text_len));
        if expected != Some(len) {
            let expected = expected.map_or("less than 2^64 bytes".into(), |len| {
                format!("{len} bytes as the header says")
            });
            let got = format_args!("{len} bytes");
            return Err(corrupt("file length", expected, got));
        }
        if at < HEADER_LEN as u64 || !at.is_multiple_of(8) {
            let expected = "behind the header, at a multiple of 8";
            return Err(corrupt("place of the directory", expected, at));
        }
        let here = |number: u64| usize::try_from(number).map_err(|_| Error::no_memory(len));
        self.entries = here(entries)?;
        self.at = here(at)?;
        self.text_len = here(text_len)?;
        Ok(())
    }

    /// Checks that ends ascend to the end of the text, and that text is UTF-8.
    fn check_text(&self) -> Result<(), Error> {
        let text = self.text();
        let unsound = |what, end: u64| corrupt(what, "ascending, within the text", end);
        let utf8 = |what, range: Range<usize>| match std::str::from_utf8(&text[range]) {
            Ok(_) => Ok(()),
            Err(e) => Err(corrupt(what, "UTF-8", e)),
        };
        let mut start = 0;
        let mut specs = HashSet::new();
        for spec in 0..self.specs {
            let end = self.spec_end(spec);
            if !(start..=self.text_len as u64).contains(&end) {
                return Err(unsound("end of a key spec", end));
            }
            utf8("key spec", start as usize..end as usize)?;
            if !specs.insert(&text[start as usize..end as usize]) {
                return Err(corrupt("key specs", "different ones", "two that are equal"));
            }
            start = end;
        }
        for (number, record) in self.entry_records().iter().enumerate() {
            let record = EntryRecord::decode(record);
            let id_end = start + u64::from(record.id_len);
            if record.text_end > self.text_len as u64 || id_end > record.text_end {
                return Err(unsound("end of an entry's text", record.text_end));
            }
            record.check()?;
            utf8("reason", id_end as usize..record.text_end as usize)?;
            if id_end < record.text_end && !self.has_unknown(number) {
                return Err(corrupt("reason of an indexed entry", "none", "some"));
            }
            start = record.text_end;
        }
        if start == self.text_len as u64 {
            return Ok(());
        }
        Err(corrupt(
            "text",
            format_args!("{start} bytes"),
            self.text_len,
        ))
    }

    /// Checks that bodies are contiguous, entry by entry, from the header to the directory.
    fn check_filters(&self) -> Result<(), Error> {
        let specs: Vec<_> = (0..self.specs).map(|spec| self.filters(spec)).collect();
        let mut at = HEADER_LEN as u64;
        for entry in 0..self.entries {
            for records in &specs {
                let record = FilterRecord::decode(&records[entry]);
                if record == FilterRecord::default() || record == FilterRecord::UNKNOWN {
                    continue;
                }
                let words = self.table(&record).map_or(0, |table| table.words());
                if words == 0 || record.offset != at {
                    return Err(corrupt(
                        "filter record",
                        format_args!("a filter at {at}"),
                        format_args!("{record:?}"),
                    ));
                }
                // A shape counts fewer than 2^50 words, so nothing wraps.
                at += words * 8;
                if at > self.at as u64 {
                    return Err(corrupt("end of a filter", "before the directory", at));
                }
            }
        }
        if at == self.at as u64 {
            return Ok(());
        }
        Err(corrupt("end of the filters", self.at, at))
    }

    /// The shape of a filter's table, if it has keys. The record must have been checked.
    #[inline(always)]
    pub(super) fn table(&self, record: &FilterRecord) -> Option<Table> {
        match record.keys {
            0 | UNKNOWN_KEYS => None,
            _ => Some(CompactShape::decode(record.shape)?.table(self.width)),
        }
    }

    /// The range of a table, in words after the header.
    #[inline(always)]
    pub(super) fn words(record: &FilterRecord, table: &Table) -> Range<usize> {
        let start = (record.offset as usize - HEADER_LEN) / 8;
        start..start + table.words() as usize
    }

    /// The range of a filter's body, in words after the header.
    pub(super) fn body(&self, record: &FilterRecord) -> Range<usize> {
        let table = self.table(record);
        table.map_or(0..0, |table| Self::words(record, &table))
    }
}

fn pages(directory: u64) -> u64 {
    if directory <= HEADER_LEN as u64 {
        return 0;
    }
    directory.div_ceil(PAGE as u64)
}

/// Stands for an unknown number of keys.
const UNKNOWN_KEYS: u64 = u64::MAX;

/// The record of one entry's filter for one spec; all zero if there are no keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilterRecord {
    /// In the file.
    pub(super) offset: u64,
    pub(super) keys: u64,
    pub(super) shape: [u64; 2],
}

impl FilterRecord {
    /// The record for unknown keys.
    pub(super) const UNKNOWN: Self = Self {
        offset: 0,
        keys: UNKNOWN_KEYS,
        shape: [0; 2],
    };

    /// Whether the keys are unknown, so that it may hold any key.
    #[inline(always)]
    pub(super) fn is_unknown(&self) -> bool {
        self.keys == UNKNOWN_KEYS
    }

    /// Distinct keys; 0 if unknown.
    pub(super) fn known_keys(&self) -> u64 {
        if self.is_unknown() { 0 } else { self.keys }
    }

    #[inline(always)]
    pub(super) fn decode(bytes: &[u8; FILTER_LEN]) -> Self {
        let word = |i: usize| u64::from_le_bytes(field(bytes, i * 8..i * 8 + 8));
        Self {
            offset: word(0),
            keys: word(1),
            shape: [word(2), word(3)],
        }
    }

    pub(super) fn encode(&self) -> [u8; FILTER_LEN] {
        let [a, b] = self.shape;
        let mut out = [0; FILTER_LEN];
        let words = [self.offset, self.keys, a, b];
        for (to, word) in out.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        out
    }
}

/// The record of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryRecord {
    /// The end of its text, where that of the next begins.
    pub(super) text_end: u64,
    /// The text is the id, then the reason why keys are unknown.
    id_len: u32,
    flags: u32,
    stamp: [u64; 4],
}

impl EntryRecord {
    pub(super) fn new(text_end: u64, id_len: u32, stamp: Option<Stamp>) -> Self {
        let flag = |on, flag| if on { flag } else { 0 };
        Self {
            text_end,
            id_len,
            flags: flag(stamp.is_some(), FLAG_STAMPED)
                | flag(stamp.is_some_and(|stamp| stamp.is_racy()), FLAG_RACY),
            stamp: stamp.map_or([0; 4], |stamp| stamp.encode()),
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8; ENTRY_LEN]) -> Self {
        let word = |i: usize| u64::from_le_bytes(field(bytes, i * 8..i * 8 + 8));
        Self {
            text_end: word(0),
            id_len: word(1) as u32,
            flags: (word(1) >> 32) as u32,
            stamp: [word(2), word(3), word(4), word(5)],
        }
    }

    pub(super) fn encode(&self) -> [u8; ENTRY_LEN] {
        let [a, b, c, d] = self.stamp;
        let mut out = [0; ENTRY_LEN];
        let lengths = u64::from(self.id_len) | u64::from(self.flags) << 32;
        let words = [self.text_end, lengths, a, b, c, d];
        for (to, word) in out.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        out
    }

    fn check(&self) -> Result<(), Error> {
        let known = FLAG_STAMPED | FLAG_RACY;
        let stamped = self.flags & FLAG_STAMPED != 0;
        let racy = self.flags & FLAG_RACY != 0;
        if self.flags & !known != 0 || !stamped && (racy || self.stamp != [0; 4]) {
            let got = format_args!("{:#x}", self.flags);
            return Err(corrupt("entry flags", "known flags", got));
        }
        Ok(())
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        (self.flags & FLAG_STAMPED != 0)
            .then(|| Stamp::decode(self.stamp, self.flags & FLAG_RACY != 0))
    }
}

fn compare(what: &'static str, expected: u64, got: u64) -> Result<(), Error> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (format_args!("{expected:016x}"), format_args!("{got:016x}"));
    Err(corrupt(what, expected, got))
}

pub(super) fn corrupt(
    what: &'static str,
    expected: impl std::fmt::Display,
    got: impl std::fmt::Display,
) -> Error {
    Error::CorruptIndex {
        what,
        expected: expected.to_string(),
        got: got.to_string(),
    }
}
