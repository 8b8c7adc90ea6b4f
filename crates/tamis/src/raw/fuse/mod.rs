//! Fuse: a finished set in about 1.09 times `width` bits a key, false-positive rate `2^-width`.
//!
//! A table of `width`-bit slots is filled so that, for every key of the set, the xor of its four slots is the key's
//! fingerprint. This is a binary fuse filter: a key's slots are near each other in the table, so even a very full table
//! can be solved by peeling (repeatedly removing a key that is alone in some slot). Here they are two pairs, each in a
//! block of 64 slots: two cache misses per key instead of four. The far pair is anywhere in a window that starts one
//! window length after the near one. Such a sliding window fills tables as well as the fixed segments of other fuse
//! filters, small ones better, and finding a key's pairs costs two multiplications.
//!
//! Large sets are split by the top bits of the hash into shards of 1.5 to 3 million keys. All have the same shape,
//! each has a separate seed, and each is built independently, which allows parallelism and bounds memory. The bytes
//! depend only on the set: peeling looks at the slots, never at the order of the keys. Keys are still grouped by
//! place, so that peeling accesses memory nearly in order.

mod build;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use build::{Builder, Failed};
pub use shape::FuseShape;

use crate::hash::Hash;
use crate::kind::Kind;
use crate::raw::explain::{Cell, Explanation, Look};
use crate::raw::isa::{self, Batch, Isa};
use crate::raw::layout::{Difference, Layout, Sealed, Timeless};
use crate::raw::word::Word;
use shape::{KeySlots, SEED_BYTES};
use std::marker::PhantomData;

/// Not inlined, because it would enlarge callers.
#[inline(never)]
fn contains_by_call<W: Word>(shape: &FuseShape, words: &[W], hash: Hash) -> bool {
    Slots::new(shape, words).is_some_and(|slots| {
        // SAFETY: the probe is of these slots.
        unsafe { slots.matches::<false>(slots.probe(hash)) }
    })
}

/// A body with slots, as long as its shape says, so that reads needn't check bounds.
#[derive(Clone, Copy)]
struct Slots<'a> {
    shape: &'a FuseShape,
    /// `shape.sizes.body` bytes, which nobody writes: the filter is finished, and no finished
    /// filter is ever opened for writing in place.
    body: *const u8,
    lives: PhantomData<&'a [u8]>,
}

/// The bytes to read for a key, and the value to compare with. The default is a probe valid for any
/// slots.
#[derive(Clone, Copy, Default)]
struct Probe {
    /// The byte of the body where the shard begins.
    start: u64,
    slots: KeySlots,
    hi: u64,
}

impl<'a> Slots<'a> {
    /// `None` for the filter of the empty set.
    #[inline(always)]
    fn new<W: Word>(shape: &'a FuseShape, words: &'a [W]) -> Option<Self> {
        let len = 8 * words.len() as u64;
        assert_eq!(len, shape.sizes.body, "a body of the shape");
        // SAFETY: it has the length, and slots.
        (shape.blocks() > 0).then(|| unsafe { Self::of(shape, words) })
    }

    /// # Safety
    /// `shape` has slots, and `words` are as many as its body's.
    #[inline(always)]
    unsafe fn of<W: Word>(shape: &'a FuseShape, words: &'a [W]) -> Self {
        const { assert!(size_of::<W>() == 8) };
        Self {
            shape,
            body: words.as_ptr().cast(),
            lives: PhantomData,
        }
    }

    /// The byte `at` of the shard that begins at `start`.
    ///
    /// # Safety
    /// It is a byte of the body.
    #[inline(always)]
    unsafe fn byte(&self, start: u64, at: u64) -> u8 {
        debug_assert!(start + at < self.shape.sizes.body);
        // SAFETY: the caller's promise; bytes need no alignment.
        unsafe { *self.body.add(start as usize).add(at as usize) }
    }

    /// The little-endian number in the eight bytes from byte `at` of the shard
    /// that begins at `start`.
    ///
    /// # Safety
    /// They are bytes of the body.
    #[inline(always)]
    unsafe fn number(&self, start: u64, at: u64) -> u64 {
        debug_assert!(start + at + 8 <= self.shape.sizes.body);
        // SAFETY: the caller's promise; an array of bytes needs no alignment.
        let bytes: [u8; 8] = unsafe { *self.body.add(start as usize).add(at as usize).cast() };
        u64::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn probe(&self, hash: Hash) -> Probe {
        let (shard, first) = self.shape.shard_and_first(hash);
        let start = shard * self.shape.sizes.shard;
        // SAFETY: a shard begins with its seed.
        let seed = unsafe { self.number(start, 0) };
        Probe {
            start,
            slots: self.shape.slots_of(hash, first, seed),
            hi: hash.hi,
        }
    }

    /// Whether the slots of a probe match. Slots that are bytes need no shifts.
    ///
    /// # Safety
    /// The probe is the default, or came from [`probe`](Self::probe) of slots of
    /// the same shape. If `BYTES`, a slot has eight bits.
    #[inline(always)]
    unsafe fn matches<const BYTES: bool>(&self, probe: Probe) -> bool {
        let mut left = probe.hi;
        for slot in probe.slots.numbers() {
            left ^= if BYTES {
                // SAFETY: a slot of the shard, which is a byte behind its seed.
                u64::from(unsafe { self.byte(probe.start, SEED_BYTES + slot) })
            } else {
                let bit = slot * u64::from(self.shape.width());
                // SAFETY: a slot of the shard begins there, and at least a word
                // follows the last one.
                unsafe { self.number(probe.start, SEED_BYTES + bit / 8) >> (bit % 8) }
            };
        }
        if BYTES {
            left as u8 == 0
        } else {
            left & self.shape.mask() == 0
        }
    }

    #[inline(always)]
    fn prefetch<const BYTES: bool>(&self, probe: Probe) {
        let shard = self.body.wrapping_add((probe.start + SEED_BYTES) as usize);
        let fetch = |at: u64| isa::prefetch(shard.wrapping_add(at as usize));
        if BYTES {
            // The other two are on the same lines.
            return probe.slots.firsts().into_iter().for_each(fetch);
        }
        let width = u64::from(self.shape.width());
        let slots = probe.slots.numbers().into_iter();
        slots.for_each(|slot| fetch(slot * width / 8));
    }
}

fn run<H: Copy + Into<Hash>>(isa: Isa, slots: Slots<'_>, keys: &[H], out: &mut [bool]) {
    match slots.shape.width() {
        8 => isa.run(ContainsHashes::<true, H> { slots, keys, out }),
        _ => isa.run(ContainsHashes::<false, H> { slots, keys, out }),
    }
}

/// If `BYTES`, a slot has eight bits: see [`run`].
struct ContainsHashes<'a, const BYTES: bool, H> {
    slots: Slots<'a>,
    keys: &'a [H],
    out: &'a mut [bool],
}

impl<const BYTES: bool, H: Copy + Into<Hash>> Batch for ContainsHashes<'_, BYTES, H> {
    #[inline(always)]
    fn run(self, _: Isa) {
        /// How many keys ahead blocks are fetched.
        const AHEAD: usize = 32;
        let Self { slots, keys, out } = self;
        let fetch = |key: H| {
            let probe = slots.probe(key.into());
            slots.prefetch::<BYTES>(probe);
            probe
        };
        let mut ring = [Probe::default(); AHEAD];
        for (probe, key) in ring.iter_mut().zip(keys) {
            *probe = fetch(*key);
        }
        let mut next = keys.get(AHEAD..).unwrap_or_default().iter();
        for out in out.chunks_mut(AHEAD) {
            for (out, probe) in out.iter_mut().zip(&mut ring) {
                // SAFETY: the probe is the default, or of these slots.
                *out = unsafe { slots.matches::<BYTES>(*probe) };
                if let Some(key) = next.next() {
                    *probe = fetch(*key);
                }
            }
        }
    }
}

impl Sealed for FuseShape {}

impl Timeless for FuseShape {}

impl Layout for FuseShape {
    const KIND: Kind = Kind::Fuse;

    #[inline]
    fn body_len(&self) -> u64 {
        FuseShape::body_len(self)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width(), other.width())
            .or_else(|| Difference::between("size", self.body_len(), other.body_len()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        if words.len() as u64 == self.sizes.words_of_bytes {
            // SAFETY: only a shape with slots has this length, and it is the body's.
            let slots = unsafe { Slots::of(self, words) };
            // SAFETY: the probe is of these slots.
            unsafe { slots.matches::<true>(slots.probe(hash)) }
        } else {
            contains_by_call(self, words, hash)
        }
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let Some(slots) = Slots::new(self, words) else {
            return Explanation::of(Look::NOTHING);
        };
        let (shard, _) = self.shard_and_first(hash);
        let probe = slots.probe(hash);
        let cell = |at: u64| {
            let bit = at * u64::from(self.width());
            // SAFETY: as in `matches`.
            let number = unsafe { slots.number(probe.start, SEED_BYTES + bit / 8) };
            Cell {
                line: (self.shard_bits() > 0).then_some(shard),
                at,
                value: number >> (bit % 8) & self.mask(),
            }
        };
        Explanation::of(Look::Sum {
            fingerprint: hash.hi & self.mask(),
            cells: probe.slots.numbers().map(cell).into(),
        })
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.contains_hashes(words, hashes, out);
    }

    /// All keys in one pass: at every block's end it would wait for memory.
    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        keys: &[H],
        out: &mut [bool],
    ) {
        assert_eq!(keys.len(), out.len(), "one answer for each key");
        match Slots::new(self, words) {
            Some(slots) => run(Isa::best(), slots, keys, out),
            None => out.fill(false),
        }
    }

    /// Nine of ten slots hold a key.
    fn keys_now<W: Word>(&self, _: &[W]) -> f64 {
        (self.shard_slots() << self.shard_bits()) as f64 * 0.9
    }
}
