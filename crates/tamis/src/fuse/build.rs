//! Filling the table of a fuse filter.

use super::{BLOCK, FuseShape};
use crate::Error;
use crate::hash::{Hash, mix};
use crate::header::Kind;
use crate::sorted::for_each;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Seeds to try. About one in ten fails, so that distinct uniform hashes practically never fail all.
const ATTEMPTS: u64 = 100;

/// Builds from hashes that come in ascending order, piece by piece. It holds
/// the table and the hashes of shards that are not yet whole, but never all.
/// The pieces may be cut anywhere; the table is the same.
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

    /// Takes the next hashes: ascending, without duplicates, and above all
    /// that came before.
    pub(crate) fn feed(&mut self, sorted: &[Hash]) -> Result<(), Error> {
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

    pub(crate) fn finish(mut self) -> Result<(FuseShape, Vec<u64>), Error> {
        let pending = std::mem::take(&mut self.pending);
        self.fill_shards(&[&pending])?;
        Ok((self.shape, self.words))
    }

    /// Fills the shards of these hashes, each of which lies in one of the
    /// slices as a whole.
    fn fill_shards(&mut self, sorted: &[&[Hash]]) -> Result<(), Error> {
        let shape = self.shape;
        let mut shards = Vec::new();
        for mut rest in sorted.iter().copied() {
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
        let failed = AtomicBool::new(false);
        let threads = self.threads.min(shards.len());
        let fill = |(hashes, (seed, words)): (&[Hash], (&mut u64, &mut [u64]))| {
            let found = match shape.arity {
                3 => Peeling::<3>::default().fill(&shape, hashes, words),
                _ => Peeling::<4>::default().fill(&shape, hashes, words),
            };
            match found {
                Some(found) => *seed = found.to_le(),
                None => failed.store(true, Relaxed),
            }
            self.done.fetch_add(hashes.len() as u64, Relaxed);
        };
        for_each(threads, tasks, fill);
        match failed.into_inner() {
            true => Err(Error::Unsolvable { kind: Kind::Fuse }),
            false => Ok(()),
        }
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
    fn fill(&mut self, shape: &FuseShape, hashes: &[Hash], words: &mut [u64]) -> Option<u64> {
        let seed = (0..ATTEMPTS)
            .map(mix)
            .find(|&seed| self.peel(shape, hashes, seed))?;
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
        Some(seed)
    }

    fn peel(&mut self, shape: &FuseShape, hashes: &[Hash], seed: u64) -> bool {
        const ONE: u64 = 1 << 32;
        /// The queue is refilled for this many slots at once: long enough for the processor to work on many of its
        /// entries side by side, short enough for all they touch to stay in the cache.
        const STRETCH: usize = 16384;
        let Self {
            edges,
            peeled,
            table,
            queue,
        } = self;
        let slots = shape.shard_slots() as usize;
        table.clear();
        table.resize(slots, 0);
        queue.resize(slots + ARITY, 0);
        peeled.clear();
        peeled.reserve(hashes.len());
        edges.clear();
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
