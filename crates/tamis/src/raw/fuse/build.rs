//! Filling the table of a fuse filter.

use super::shape::{ARITY, BLOCK, FuseShape, KeySlots, MAX_BUILT_BLOCKS, SEED_BYTES};
use crate::error::Error;
use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::isa;
use crate::raw::roomy::{reserve_roomy, roomy};
use crate::raw::sorted::for_each_with;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Seeds to try. Fewer than half fail, so distinct uniform hashes practically never fail all.
const ATTEMPTS: u64 = 100;

/// Builds from hashes that come shard by shard in ascending order of the shards, in pieces. Holds
/// the table and the hashes of incomplete shards, but never all hashes. Pieces may end anywhere,
/// and within a shard hashes may come in any order; the table is the same. Fastest if their order
/// is nearly ascending.
pub(crate) struct Builder<'a> {
    shape: FuseShape,
    threads: usize,
    /// Hashes of a shard that the next piece may continue.
    pending: Vec<Hash>,
    words: Vec<u64>,
    /// Counts finished keys.
    done: &'a AtomicU64,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        shape: FuseShape,
        threads: usize,
        done: &'a AtomicU64,
    ) -> Result<Self, Error> {
        let size = shape.sizes.body as usize / 8;
        let mut words = roomy(size)?;
        words.resize(size, 0);
        Ok(Self {
            shape,
            threads,
            pending: Vec::new(),
            words,
            done,
        })
    }

    /// Takes the next hashes, without duplicates, in ascending order of shards that continues the
    /// earlier ones.
    pub(crate) fn feed(&mut self, sorted: &[Hash]) -> Result<(), Failed> {
        let Some(&last) = sorted.last() else {
            return Ok(());
        };
        let shape = self.shape;
        let mut rest = sorted;
        // The shard of the first hashes, and the part of it that came earlier.
        let mut begun = std::mem::take(&mut self.pending);
        let mut shards = Vec::new();
        if let Some(&first) = begun.first() {
            let shard = shape.shard(first);
            let more = rest.partition_point(|&hash| shape.shard(hash) == shard);
            begun.extend_from_slice(&rest[..more]);
            rest = &rest[more..];
            if rest.is_empty() {
                self.pending = begun;
                return Ok(());
            }
            shards.push((shard as usize, vec![&begun[..]]));
        }
        let open = rest.partition_point(|&hash| shape.shard(hash) < shape.shard(last));
        let (mut whole, open) = rest.split_at(open);
        while let Some(&first) = whole.first() {
            let shard = shape.shard(first);
            let size = whole.partition_point(|&hash| shape.shard(hash) == shard);
            let (hashes, others) = whole.split_at(size);
            shards.push((shard as usize, vec![hashes]));
            whole = others;
        }
        self.fill_shards(shards.into_iter())?;
        self.pending.extend_from_slice(open);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(FuseShape, Vec<u64>), Failed> {
        let pending = std::mem::take(&mut self.pending);
        if let Some(&first) = pending.first() {
            let shard = self.shape.shard(first) as usize;
            self.fill_shards([(shard, vec![&pending[..]])].into_iter())?;
        }
        Ok((self.shape, self.words))
    }

    /// Fills these shards, in ascending order, from all their hashes, without duplicates and in any
    /// order.
    pub(crate) fn fill_shards<'h>(
        &mut self,
        shards: impl ExactSizeIterator<Item = (usize, Vec<&'h [Hash]>)> + Send,
    ) -> Result<(), Failed> {
        let shape = self.shape;
        if shape.blocks() == 0 || shards.len() == 0 {
            return Ok(());
        }
        let threads = self.threads.min(shards.len());
        // A shard without keys keeps zeros as seed and slots: no query reads it.
        let mut places = self.words.chunks_mut(shape.sizes.shard as usize / 8);
        let mut next = 0;
        let tasks = shards.filter_map(|(shard, hashes)| {
            let place = places.nth(shard - next)?;
            next = shard + 1;
            Some((hashes, place))
        });
        let failed = Mutex::new(None);
        for_each_with(
            threads,
            tasks,
            Peeling::default,
            |peeling, (hashes, words)| {
                if failed.lock().expect(NO_PANIC).is_none() {
                    let (seed, slots) = words.split_at_mut(SEED_BYTES as usize / 8);
                    match peeling.fill(&shape, &hashes, slots) {
                        Ok(found) => seed[0] = found.to_le(),
                        Err(error) => *failed.lock().expect(NO_PANIC) = Some(error),
                    }
                    self.done.fetch_add(count(&hashes) as u64, Relaxed);
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
    /// A hash occurs twice.
    Duplicates,
    /// No seed worked: these aren't the hashes of a good hash function.
    Unsolvable,
    /// The system has no memory for a table of this many bytes.
    NoMemory(u64),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NoMemory(bytes) => Self::no_memory(bytes),
            Failed::Duplicates | Failed::Unsolvable => Self::Unsolvable { kind: Kind::Fuse },
        }
    }
}

/// The slots of a key, packed so that the exclusive or of many keys takes no more room than one.
#[derive(Clone, Copy)]
pub(super) struct Packed(u64);

impl Packed {
    /// The minimum bits for the distance from the near slot to the far one: 23.
    pub(super) const FAR: u32 = 64 - MAX_BUILT_BLOCKS.ilog2() - 3 * BLOCK.ilog2();
    /// Bits below the near slot's number: the distance, and how each block's second slot differs
    /// from its first.
    const BELOW: u32 = Self::FAR + 2 * BLOCK.ilog2();

    #[inline(always)]
    pub(super) fn new(slots: KeySlots) -> Self {
        let KeySlots { near, far, .. } = slots;
        let [x, y] = slots.apart();
        Self(near << Self::BELOW | x << (Self::FAR + BLOCK.ilog2()) | y << Self::FAR | (far - near))
    }

    #[inline(always)]
    pub(super) fn slots(self) -> [u64; ARITY] {
        let near = self.0 >> Self::BELOW;
        let far = near + self.0 % (1 << Self::FAR);
        let [x, y] = [Self::FAR + BLOCK.ilog2(), Self::FAR].map(|shift| (self.0 >> shift) % BLOCK);
        [near, near ^ x, far, far ^ y]
    }
}

/// A slot of the table while it is solved: how many unpeeled keys use it, and the exclusive or of their fingerprints
/// and of their slots. When a key is peeled by this slot, its own fingerprint and slots stay here; later the slot's
/// value takes the place of the fingerprint.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The number of keys in the high half, the fingerprints in the low half.
    keys: u64,
    packed: u64,
}

impl Slot {
    const ONE: u64 = 1 << 32;

    #[inline(always)]
    fn add(&mut self, fingerprint: u64, packed: u64) {
        self.keys = (self.keys + Self::ONE) ^ fingerprint;
        self.packed ^= packed;
    }

    #[inline(always)]
    fn remove(&mut self, fingerprint: u64, packed: u64) {
        self.keys = (self.keys - Self::ONE) ^ fingerprint;
        self.packed ^= packed;
    }

    #[inline(always)]
    const fn count(self) -> u64 {
        self.keys >> 32
    }
}

/// The search for an order in which every key has a slot to itself once the keys before it are
/// removed.
#[derive(Default)]
struct Peeling {
    /// All zero between searches.
    table: Vec<Slot>,
    /// Slots that came to have one key. The processed part is reused for the slot of each peeled key.
    queue: Vec<u32>,
}

impl Peeling {
    fn fill(
        &mut self,
        shape: &FuseShape,
        hashes: &[&[Hash]],
        words: &mut [u64],
    ) -> Result<u64, Failed> {
        // Only once, because all shards have the same shape.
        if self.table.is_empty() {
            let slots = shape.shard_slots() as usize;
            let bytes = slots * (size_of::<Slot>() + size_of::<u32>());
            let no_memory = |_| Failed::NoMemory(bytes as u64);
            reserve_roomy(&mut self.queue, slots + ARITY).map_err(no_memory)?;
            reserve_roomy(&mut self.table, slots).map_err(no_memory)?;
            self.queue.resize(slots + ARITY, 0);
            self.table.resize(slots, Slot::default());
        }
        let mut seeds = (0..ATTEMPTS).map(|attempt| mix(attempt) | 1);
        let seed = loop {
            let seed = seeds.next().ok_or(Failed::Unsolvable)?;
            if self.peel(shape, hashes, seed) {
                break seed;
            }
            if self.has_duplicates(shape, hashes, seed) {
                return Err(Failed::Duplicates);
            }
            self.table.fill(Slot::default());
        };
        let peeled = &self.queue[..count(hashes)];
        match shape.width() {
            8 => assign::<true>(&mut self.table, peeled, shape, words),
            _ => assign::<false>(&mut self.table, peeled, shape, words),
        }
        Ok(seed)
    }

    /// After peeling has failed: whether equal hashes caused it.
    fn has_duplicates(&self, shape: &FuseShape, hashes: &[&[Hash]], seed: u64) -> bool {
        // A peeled key has emptied its own slot; a stuck key has no empty slot.
        let stuck = |hash: &&Hash| {
            let (_, first) = shape.shard_and_first(**hash);
            let slots = shape.slots_of(**hash, first, seed).numbers();
            slots
                .iter()
                .all(|&slot| self.table[slot as usize].count() != 0)
        };
        let hashes = hashes.iter().copied().flatten();
        let mut stuck: Vec<Hash> = hashes.filter(stuck).copied().collect();
        stuck.sort_unstable();
        stuck.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn peel(&mut self, shape: &FuseShape, hashes: &[&[Hash]], seed: u64) -> bool {
        /// The queue is refilled for this many slots at once: enough that the processor works on many of its
        /// entries in parallel, few enough that all the memory they touch stays in the cache.
        const STRETCH: usize = 16384;
        let (table, queue) = (&mut self.table[..], &mut self.queue[..]);
        let ahead = two_windows(shape);
        for &hash in hashes.iter().copied().flatten() {
            let (_, first) = shape.shard_and_first(hash);
            let slots = shape.slots_of(hash, first, seed);
            let Packed(packed) = Packed::new(slots);
            let fingerprint = hash.hi & shape.mask();
            let slots = slots.numbers();
            fetch(table, slots[0] + ahead);
            for at in slots {
                table[at as usize].add(fingerprint, packed);
            }
        }
        let (mut next, mut end, mut peeled) = (0, 0, 0);
        for start in (0..table.len()).step_by(STRETCH) {
            for (at, slot) in table.iter().enumerate().skip(start).take(STRETCH) {
                // No branch, because it would be unpredictable: always write, and keep it if the
                // count is one.
                queue[end] = at as u32;
                end += usize::from(slot.count() == 1);
            }
            while next < end {
                let own = queue[next];
                next += 1;
                fetch(table, u64::from(own) + ahead);
                let slot = table[own as usize];
                if slot.count() != 1 {
                    continue; // another slot already peeled its key
                }
                let Slot { keys, packed } = slot;
                let fingerprint = keys - Slot::ONE;
                for at in Packed(packed).slots() {
                    let other = &mut table[at as usize];
                    other.remove(fingerprint, packed);
                    queue[end] = at as u32;
                    end += usize::from(other.count() == 1);
                }
                table[own as usize] = Slot {
                    keys: fingerprint,
                    packed,
                };
                queue[peeled] = own;
                peeled += 1;
            }
        }
        peeled == count(hashes)
    }
}

fn count(pieces: &[&[Hash]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// How far ahead to prefetch slots: those of the current blocks and their windows are in the cache.
fn two_windows(shape: &FuseShape) -> u64 {
    2 * u64::from(shape.window()) * BLOCK
}

#[inline(always)]
fn fetch(table: &[Slot], at: u64) {
    isa::prefetch(table.as_ptr().wrapping_add(at as usize));
}

/// Gives the slots their values, and clears the table.
///
/// In reverse order, a key's other slots either have their final values or are unused and zero, so its own slot
/// can complete the exclusive or.
fn assign<const BYTES: bool>(
    table: &mut [Slot],
    peeled: &[u32],
    shape: &FuseShape,
    words: &mut [u64],
) {
    let ahead = two_windows(shape);
    let mut values = Values::<BYTES> {
        words,
        width: shape.width(),
    };
    for &own in peeled.iter().rev() {
        fetch(table, u64::from(own).wrapping_sub(ahead));
        let Slot { keys, packed } = std::mem::take(&mut table[own as usize]);
        // This includes the key's own slot, which is still zero.
        let slots = Packed(packed).slots();
        let value = slots.iter().fold(keys, |x, &slot| x ^ values.get(slot));
        values.set(own.into(), value);
    }
    if !BYTES {
        words.iter_mut().for_each(|word| *word = word.to_le());
    }
}

/// The slots of a shard as packed in the filter: as bytes, or as bits of words.
struct Values<'a, const BYTES: bool> {
    words: &'a mut [u64],
    width: u32,
}

impl<const BYTES: bool> Values<'_, BYTES> {
    /// The bits of a slot, with unrelated bits above.
    #[inline(always)]
    fn get(&mut self, slot: u64) -> u64 {
        if BYTES {
            return self.bytes()[slot as usize].into();
        }
        let (word, shift) = self.bit(slot);
        match self.words.get(word + 1) {
            Some(next) if shift > 0 => self.words[word] >> shift | next << (64 - shift),
            _ => self.words[word] >> shift,
        }
    }

    /// Sets a slot that is zero.
    #[inline(always)]
    fn set(&mut self, slot: u64, value: u64) {
        if BYTES {
            self.bytes()[slot as usize] = value as u8;
            return;
        }
        let value = value & ((1 << self.width) - 1);
        let (word, shift) = self.bit(slot);
        self.words[word] |= value << shift;
        if shift + self.width > 64 {
            self.words[word + 1] |= value >> (64 - shift);
        }
    }

    #[inline(always)]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: any bytes are a word, and any word is bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), size_of_val(self.words))
        }
    }

    /// The position of a slot: a word, and a bit in it.
    #[inline(always)]
    fn bit(&self, slot: u64) -> (usize, u32) {
        let bit = slot * u64::from(self.width);
        ((bit / 64) as usize, (bit % 64) as u32)
    }
}
