//! The records of one chunk on their way: found, hashed, dealt out to the shards, decided, and picked for printing.

use crate::engine::key::{KeyMaker, NoKey};
use crate::engine::reader::Chunk;
use crate::engine::records::Layout;
use tamis::Hash;

/// Which records are printed. What it means to be chosen is the command's business: new, found, removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Print {
    Chosen,
    Others,
    Nothing,
}

impl Print {
    /// The answer for a record that is not printed.
    pub(crate) fn silent(self) -> bool {
        self == Self::Others
    }
}

/// What stands for a key on its way: a hash, or bytes that another system will hash.
pub(crate) trait Token {
    /// Which of so many shards decides it.
    fn shard(&self, shards: usize) -> usize;
}

impl Token for Hash {
    #[inline]
    fn shard(&self, shards: usize) -> usize {
        Self::shard(*self, shards)
    }
}

/// Keeps its memory from chunk to chunk.
pub(crate) struct Batch<K> {
    /// Where each record ends in the chunk.
    ends: Vec<u32>,
    chosen: Vec<bool>,
    /// One for each shard.
    pub(crate) lanes: Vec<Lane<K>>,
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

    pub(crate) fn decide(&mut self, decide: impl FnOnce(&[K], &mut [bool])) {
        self.chosen.resize(self.hashes.len(), false);
        decide(&self.hashes, &mut self.chosen);
    }
}

impl<K: Token> Batch<K> {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            ends: Vec::new(),
            chosen: Vec::new(),
            lanes: (0..shards).map(|_| Lane::new()).collect(),
        }
    }

    pub(crate) fn records(&self) -> usize {
        self.ends.len()
    }

    /// Finds the records of `chunk` and hashes their keys. Gives the number of records without one.
    pub(crate) fn hash(
        &mut self,
        chunk: &Chunk,
        layout: Layout,
        keys: &mut KeyMaker,
        hash: impl Fn(&[u8]) -> K,
    ) -> u64 {
        self.ends.clear();
        for lane in &mut self.lanes {
            lane.hashes.clear();
            lane.records.clear();
        }
        let bytes = chunk.records();
        if keys.rule().is_identity() {
            layout.for_each(bytes, |start, end| {
                self.push(end, hash(layout.content(&bytes[start..end])))
            });
            return 0;
        }
        let mut without = 0;
        layout.for_each(bytes, |start, end| {
            let (key, made) = keys.key(layout.content(&bytes[start..end]), &chunk.columns);
            without += u64::from(matches!(made, Err(NoKey)));
            self.push(end, hash(key));
        });
        without
    }

    #[inline]
    fn push(&mut self, end: usize, hash: K) {
        // One lane has all records, in order: which they are need not be noted.
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

    /// Collects the shards' decisions; gives the number of chosen records.
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

    /// Moves the records to print together at the chunk's front: they are still in the cache, and one plain write
    /// beats gathering hundreds of short pieces.
    pub(crate) fn select<'c>(&self, chunk: &'c mut Chunk, print: Print) -> &'c [u8] {
        let wanted = match print {
            Print::Chosen => true,
            Print::Others => false,
            Print::Nothing => return &[],
        };
        let first = chunk.header;
        let mut kept = if chunk.prints_header { chunk.header } else { 0 };
        let mut run = 0;
        for (i, &end) in self.ends.iter().enumerate() {
            if self.chosen[i] != wanted {
                let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
                chunk.buffer.copy_within(first + run..first + start, kept);
                kept += start - run;
                run = end as usize;
            }
        }
        let end = self.ends.last().map_or(0, |&end| end as usize);
        chunk.buffer.copy_within(first + run..first + end, kept);
        kept += end - run;
        &chunk.buffer[..kept]
    }
}
