//! The records of one chunk: found, hashed, distributed to the shards, decided, and selected for printing.

use crate::key::{KeyMaker, NoKey, Refused, Wrong};
use crate::reader::Chunk;
use std::io::Write;
use tamis::{Hash, Moment};

/// The records to print. The command decides what "chosen" means: new, found, removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    /// Chosen records.
    Chosen,
    /// Chosen records, each after its origin.
    Located(Prefix),
    /// Chosen records, each after its length in four bytes, little-endian, so that any content can be separated.
    Measured,
    /// Records that were not chosen.
    Others,
    /// No records.
    Nothing,
}

/// The prefix of a printed record, as in `grep`: `FILE:NUMBER:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The name of its input.
    pub name: bool,
    /// Its number in that input, from 1. A header row counts, too, so that the number is that of the line unless fields
    /// span lines.
    pub number: bool,
}

impl Print {
    /// The answer that keeps a record from being printed.
    pub(crate) fn silent(self) -> bool {
        self == Self::Others
    }
}

/// Represents a key in the pipeline: a hash, or bytes that another system will hash.
pub trait Token {
    /// The shard that decides this key, out of this many.
    fn shard(&self, shards: usize) -> usize;
}

impl Token for Hash {
    #[inline]
    fn shard(&self, shards: usize) -> usize {
        Self::shard(*self, shards)
    }
}

impl Token for (Hash, Hash) {
    #[inline]
    fn shard(&self, shards: usize) -> usize {
        self.0.shard(shards)
    }
}

/// The number of records without a key or time.
#[derive(Default)]
pub(crate) struct Without {
    pub(crate) key: u64,
    pub(crate) time: u64,
}

/// A batch, whose memory is reused from chunk to chunk.
pub(crate) struct Batch<K> {
    /// Where each record ends in the chunk.
    ends: Vec<u32>,
    chosen: Vec<bool>,
    /// One lane per shard.
    pub(crate) lanes: Vec<Lane<K>>,
    /// The first invalid record, and the reason.
    refused: Option<(usize, Wrong)>,
    /// The bytes of the last records that were printed with prefixes.
    located: usize,
}

/// The records of a batch that one shard decides, in input order.
pub(crate) struct Lane<K> {
    hashes: Vec<K>,
    records: Vec<u32>,
    chosen: Vec<bool>,
}

impl<K> Lane<K> {
    const fn new() -> Self {
        Self {
            hashes: Vec::new(),
            records: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// Its keys, all with this answer.
    pub(crate) fn undecided(&mut self, answer: bool) -> (&[K], &mut [bool]) {
        self.chosen.clear();
        self.chosen.resize(self.hashes.len(), answer);
        self.answers()
    }

    /// Its keys, with the answers so far.
    pub(crate) fn answers(&mut self) -> (&[K], &mut [bool]) {
        (&self.hashes, &mut self.chosen)
    }
}

impl<K: Token> Batch<K> {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            ends: Vec::new(),
            chosen: Vec::new(),
            lanes: (0..shards).map(|_| Lane::new()).collect(),
            refused: None,
            located: 0,
        }
    }

    pub(crate) fn records(&self) -> usize {
        self.ends.len()
    }

    /// Finds the records of `chunk` and hashes their keys. Counts records without a key or a time.
    pub(crate) fn hash(
        &mut self,
        chunk: &Chunk,
        keys: &mut KeyMaker,
        hash: impl Fn(&[u8], Option<Moment>) -> K,
    ) -> Without {
        self.ends.clear();
        self.refused = None;
        for lane in &mut self.lanes {
            lane.hashes.clear();
            lane.records.clear();
        }
        let framing = chunk.framing;
        let bytes = chunk.records();
        if keys.rule().is_identity() {
            framing.for_each(bytes, |start, end| {
                self.push(end, hash(framing.content(&bytes[start..end]), None))
            });
            return Without::default();
        }
        let has_time = keys.rule().has_time();
        keys.set_written(chunk.written);
        let mut without = Without::default();
        framing.for_each(bytes, |start, end| {
            let content = framing.content(&bytes[start..end]);
            let (_, made) = keys.key(content, &chunk.columns);
            match made {
                Ok(()) => {}
                Err(NoKey::Absent) => without.key += 1,
                Err(NoKey::NotHex) => self.refuse(|| Wrong::not_hex(content)),
            }
            if has_time && keys.time().is_none() {
                match keys.two_readings() {
                    Some(two) => self.refuse(|| Wrong::Time(two.clone())),
                    None => without.time += 1,
                }
            }
            self.push(end, hash(keys.made(), keys.time()));
        });
        without
    }

    /// The error of the first invalid record. `before` is the number of records in the input before this chunk.
    pub(crate) fn refusal(&mut self, chunk: &Chunk, before: u64) -> Option<Refused> {
        let (at, why) = self.refused.take()?;
        Some(Refused::new(&chunk.input, before + at as u64 + 1, why))
    }

    /// Records why the next record is invalid, unless an earlier one is.
    fn refuse(&mut self, why: impl FnOnce() -> Wrong) {
        if self.refused.is_none() {
            self.refused = Some((self.ends.len(), why()));
        }
    }

    /// The start of a record.
    fn start(&self, record: usize) -> usize {
        match record {
            0 => 0,
            _ => self.ends[record - 1] as usize,
        }
    }

    #[inline]
    fn push(&mut self, end: usize, hash: K) {
        // With one lane, which has all records in order, their numbers aren't needed.
        match &mut self.lanes[..] {
            [lane] => lane.hashes.push(hash),
            lanes => {
                let lane = &mut lanes[hash.shard(lanes.len())];
                lane.hashes.push(hash);
                lane.records.push(self.ends.len() as u32);
            }
        }
        self.ends.push(end as u32);
    }

    /// Collects the shards' decisions; returns the number of chosen records.
    pub(crate) fn collect(&mut self) -> u64 {
        if let [lane] = &mut self.lanes[..] {
            std::mem::swap(&mut self.chosen, &mut lane.chosen);
        } else {
            self.chosen.resize(self.ends.len(), false);
            for lane in &self.lanes {
                for (&record, &chosen) in lane.records.iter().zip(&lane.chosen) {
                    self.chosen[record as usize] = chosen;
                }
            }
        }
        self.chosen.iter().map(|&chosen| u64::from(chosen)).sum()
    }

    /// The bytes to print: a buffer, usually the chunk's, and their length. `before` is the number of records in the
    /// input before this chunk.
    pub(crate) fn select(
        &mut self,
        chunk: &mut Chunk,
        print: Print,
        before: u64,
    ) -> (Vec<u8>, usize) {
        match print {
            Print::Chosen => self.gather(chunk, true),
            Print::Others => self.gather(chunk, false),
            Print::Located(prefix) => self.locate(chunk, |out, number, _| {
                if prefix.name {
                    out.extend_from_slice(&chunk.input);
                    out.push(b':');
                }
                if prefix.number {
                    // Writing to a Vec can't fail.
                    let _ = write!(out, "{}:", number.map_or(1, |number| before + number));
                }
            }),
            Print::Measured => self.locate(chunk, |out, _, record| {
                // Longer records are refused, so the length fits.
                out.extend_from_slice(&(record.len() as u32).to_le_bytes());
            }),
            Print::Nothing => (Vec::new(), 0),
        }
    }

    /// Copies the chosen records, each after the output of `prefix`. That gets the record's number in the chunk, from
    /// 1, not counting a header row.
    fn locate(
        &mut self,
        chunk: &Chunk,
        prefix: impl Fn(&mut Vec<u8>, Option<u64>, &[u8]),
    ) -> (Vec<u8>, usize) {
        let mut out = Vec::with_capacity(self.located);
        let mut print = |number, record: &[u8]| {
            prefix(&mut out, number, record);
            out.extend_from_slice(record);
        };
        if chunk.prints_header {
            print(None, &chunk.buffer[..chunk.header]);
        }
        for (i, &end) in self.ends.iter().enumerate() {
            if self.chosen[i] {
                let record = &chunk.records()[self.start(i)..end as usize];
                print(Some(i as u64 + 1), record);
            }
        }
        self.located = out.len();
        let length = out.len();
        (out, length)
    }

    /// Moves the records to print to the front of the chunk: they are still in the cache, and one plain write is faster
    /// than gathering hundreds of short pieces.
    fn gather(&self, chunk: &mut Chunk, wanted: bool) -> (Vec<u8>, usize) {
        let first = chunk.header;
        let mut kept = if chunk.prints_header { chunk.header } else { 0 };
        let mut run = 0;
        for (i, &end) in self.ends.iter().enumerate() {
            if self.chosen[i] != wanted {
                let start = self.start(i);
                chunk.buffer.copy_within(first + run..first + start, kept);
                kept += start - run;
                run = end as usize;
            }
        }
        let end = self.ends.last().map_or(0, |&end| end as usize);
        chunk.buffer.copy_within(first + run..first + end, kept);
        kept += end - run;
        (std::mem::take(&mut chunk.buffer), kept)
    }
}
