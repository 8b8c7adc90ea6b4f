//! Filling the table of a fuse filter.

use super::{BLOCK, FuseShape};
use crate::error::Error;
use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::isa;
use crate::raw::roomy::reserve_roomy;
use crate::raw::sorted::for_each_with;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Seeds to try. Fewer than half fail, so that distinct uniform hashes practically never fail all.
const ATTEMPTS: u64 = 100;

/// Builds from hashes that come shard by shard in ascending order of the
/// shards, in pieces. It holds the table and the hashes of shards that are not
/// yet whole, but never all. The pieces may be cut anywhere, and within a shard
/// hashes may come in any order; the table is the same. It is fastest when
/// their order is nearly ascending.
pub(crate) struct Builder<'a> {
    shape: FuseShape,
    threads: usize,
    /// Hashes of the shard that the next piece may continue.
    pending: Vec<Hash>,
    words: Vec<u64>,
    /// Counts the keys that are done.
    done: &'a AtomicU64,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(shape: FuseShape, threads: usize, done: &'a AtomicU64) -> Self {
        Self {
            shape,
            threads,
            pending: Vec::new(),
            words: vec![0; shape.body_words() as usize],
            done,
        }
    }

    /// Takes the next hashes, without duplicates: their shards ascend, and
    /// follow those that came before.
    pub(crate) fn feed(&mut self, sorted: &[Hash]) -> Result<(), Failed> {
        let Some(&last) = sorted.last() else {
            return Ok(());
        };
        let open = self.shape.shard(last);
        let whole = sorted.partition_point(|&hash| self.shape.shard(hash) < open);
        let (whole, rest) = sorted.split_at(whole);
        if let Some(&first) = self.pending.first() {
            // The pending shard ends where the next begins.
            let shard = self.shape.shard(first);
            let more = sorted.partition_point(|&hash| self.shape.shard(hash) == shard);
            self.pending.extend_from_slice(&sorted[..more]);
            if shard == open {
                return Ok(());
            }
            let pending = std::mem::take(&mut self.pending);
            self.fill_shards(&[&pending, &whole[more..]])?;
        } else {
            self.fill_shards(&[whole])?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(FuseShape, Vec<u64>), Failed> {
        let pending = std::mem::take(&mut self.pending);
        self.fill_shards(&[&pending])?;
        Ok((self.shape, self.words))
    }

    /// Fills the shards of these hashes, each of which lies in one of the
    /// slices as a whole.
    fn fill_shards(&mut self, hashes: &[&[Hash]]) -> Result<(), Failed> {
        match self.shape.arity {
            3 => self.fill_shards_of::<3>(hashes),
            _ => self.fill_shards_of::<4>(hashes),
        }
    }

    fn fill_shards_of<const ARITY: usize>(&mut self, hashes: &[&[Hash]]) -> Result<(), Failed> {
        let shape = self.shape;
        let mut shards = Vec::new();
        for mut rest in hashes.iter().copied() {
            while let Some(&first) = rest.first() {
                let shard = shape.shard(first);
                let size = rest.partition_point(|&hash| shape.shard(hash) == shard);
                let (hashes, others) = rest.split_at(size);
                shards.push((shard as usize, hashes));
                rest = others;
            }
        }
        if shards.is_empty() {
            return Ok(());
        }
        // A shard without keys keeps seed and slots of zero: nobody asks it.
        let (seeds, slots) = self.words.split_at_mut(shape.first_word() as usize);
        let mut places = seeds
            .iter_mut()
            .zip(slots.chunks_mut(shape.shard_words() as usize));
        let mut next = 0;
        let tasks = shards.iter().filter_map(|&(shard, hashes)| {
            let place = places.nth(shard - next)?;
            next = shard + 1;
            Some((hashes, place))
        });
        let failed = Mutex::new(None);
        let threads = self.threads.min(shards.len());
        for_each_with(
            threads,
            tasks,
            Peeling::<ARITY>::default,
            |peeling, (hashes, (seed, words))| {
                if failed.lock().expect(NO_PANIC).is_none() {
                    match peeling.fill(&shape, hashes, words) {
                        Ok(found) => *seed = found.to_le(),
                        Err(error) => *failed.lock().expect(NO_PANIC) = Some(error),
                    }
                    self.done.fetch_add(hashes.len() as u64, Relaxed);
                }
            },
        );
        failed.into_inner().expect(NO_PANIC).map_or(Ok(()), Err)
    }
}

const NO_PANIC: &str = "no panic while locked";

/// Why a shard has no solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// A hash is there twice.
    Duplicates,
    /// No seed solved it: these are not the hashes of a good hash function.
    Unsolvable,
}

impl From<Failed> for Error {
    fn from(_: Failed) -> Self {
        Self::Unsolvable { kind: Kind::Fuse }
    }
}

/// What peeling needs to know of a key.
#[derive(Clone, Copy)]
struct Edge<const ARITY: usize> {
    slots: [u32; ARITY],
    fingerprint: u32,
}

/// The search for an order in which every key, when those before it are gone, has a slot to itself.
#[derive(Default)]
struct Peeling<const ARITY: usize> {
    edges: Vec<Edge<ARITY>>,
    /// The edges in the order found, so that the way back reads them one after the other.
    peeled: Vec<Edge<ARITY>>,
    /// Of each slot: how many unpeeled edges touch it (high half) and the xor of their indices (low half).
    table: Vec<u64>,
    /// The slots that came to have one edge. As far as it is worked off: the own slot of each peeled edge.
    queue: Vec<u32>,
}

impl<const ARITY: usize> Peeling<ARITY> {
    fn fill(
        &mut self,
        shape: &FuseShape,
        hashes: &[Hash],
        words: &mut [u64],
    ) -> Result<u64, Failed> {
        let mut seeds = (0..ATTEMPTS).map(mix);
        let seed = loop {
            let seed = seeds.next().ok_or(Failed::Unsolvable)?;
            if self.peel(shape, hashes, seed) {
                break seed;
            }
            if self.has_duplicates(hashes) {
                return Err(Failed::Duplicates);
            }
        };
        // No edge is left, so the table is all zero, and now takes the values of the slots:
        // on the way back, each edge finds its own slot still zero and makes its xor right.
        let values = &mut self.table[..];
        for (&own, edge) in self.queue[..hashes.len()].iter().zip(&self.peeled).rev() {
            let others = edge
                .slots
                .iter()
                .fold(0, |x, &slot| x ^ values[slot as usize]);
            values[own as usize] = others ^ u64::from(edge.fingerprint);
        }
        pack(values, shape.width, words);
        Ok(seed)
    }

    /// After peeling has failed: whether that was because of equal hashes.
    fn has_duplicates(&self, hashes: &[Hash]) -> bool {
        // A peeled edge has left its own slot empty; one that is stuck has no empty slot.
        let stuck = |edge: &Edge<ARITY>| {
            edge.slots
                .iter()
                .all(|&slot| self.table[slot as usize] != 0)
        };
        let stuck = self
            .edges
            .iter()
            .zip(hashes)
            .filter(|(edge, _)| stuck(edge));
        let mut stuck: Vec<(u64, u64)> = stuck.map(|(_, hash)| (hash.hi, hash.lo)).collect();
        stuck.sort_unstable();
        stuck.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn peel(&mut self, shape: &FuseShape, hashes: &[Hash], seed: u64) -> bool {
        const ONE: u64 = 1 << 32;
        /// The queue is refilled for this many slots at once: long enough for the processor to work on many of its
        /// entries side by side, short enough for all they touch to stay in the cache.
        const STRETCH: usize = 16384;
        /// How far ahead of its use a slot is fetched, and twice as far its edge.
        const AHEAD: usize = 8;
        let Self {
            edges,
            peeled,
            table,
            queue,
        } = self;
        let slots = shape.shard_slots() as usize;
        table.clear();
        reserve_roomy(table, slots);
        table.resize(slots, 0);
        reserve_roomy(queue, (slots + ARITY).saturating_sub(queue.len()));
        queue.resize(slots + ARITY, 0);
        peeled.clear();
        reserve_roomy(peeled, hashes.len());
        edges.clear();
        reserve_roomy(edges, hashes.len());
        let (table, queue) = (&mut table[..], &mut queue[..]);
        edges.extend(hashes.iter().enumerate().map(|(i, &hash)| {
            let slots = shape.slots::<ARITY>(hash, seed).map(|slot| slot as u32);
            for slot in slots {
                let entry = &mut table[slot as usize];
                *entry = (*entry + ONE) ^ i as u64;
            }
            Edge {
                slots,
                fingerprint: (hash.hi & shape.mask()) as u32,
            }
        }));
        let (mut next, mut end) = (0, 0);
        for start in (0..slots).step_by(STRETCH) {
            for (slot, entry) in table.iter().enumerate().skip(start).take(STRETCH) {
                // No branch, as nobody could predict it: write always, keep if it is one.
                queue[end] = slot as u32;
                end += usize::from(entry >> 32 == 1);
            }
            while next < end {
                let own = queue[next];
                next += 1;
                // What the next ones need lies anywhere in two segments.
                let edge_at = |ahead: usize| {
                    let entry = table[queue[(next + ahead).min(end - 1)] as usize];
                    edges.get((entry & (ONE - 1)) as usize)
                };
                if let Some(edge) = edge_at(2 * AHEAD) {
                    isa::prefetch(edge);
                }
                if let Some(edge) = edge_at(AHEAD) {
                    for slot in edge.slots {
                        isa::prefetch(&table[slot as usize]);
                    }
                }
                let entry = table[own as usize];
                if entry >> 32 != 1 {
                    continue; // its edge went by another slot
                }
                let i = entry & (ONE - 1);
                let edge = edges[i as usize];
                for slot in edge.slots {
                    let entry = &mut table[slot as usize];
                    *entry = (*entry - ONE) ^ i;
                    queue[end] = slot;
                    end += usize::from(*entry >> 32 == 1);
                }
                queue[peeled.len()] = own;
                peeled.push(edge);
            }
        }
        peeled.len() == hashes.len()
    }
}

fn pack(values: &[u64], width: u32, words: &mut [u64]) {
    // A block of values is `width` words.
    for (values, words) in values
        .chunks(BLOCK as usize)
        .zip(words.chunks_mut(width as usize))
    {
        let mut bit = 0;
        for &value in values {
            let (word, shift) = (bit / 64, bit % 64);
            words[word] |= value << shift;
            if shift as u32 + width > 64 {
                words[word + 1] |= value >> (64 - shift);
            }
            bit += width as usize;
        }
        words.iter_mut().for_each(|word| *word = word.to_le());
    }
}
