//! Fuse: a finished set in about 1.09 times `width` bits a key, false-positive rate `2^-width`.
//!
//! A table of `width`-bit slots is filled so that, for every key of the set, the xor of its four slots is the key's
//! fingerprint. This is a binary fuse filter: a key's slots lie near each other in the table, which lets so full a table
//! be solved by peeling (again and again take away a key that is alone in some slot).
//! Here they are two pairs, each in a block of 64 slots: two cache misses a key instead of four. The far pair is
//! anywhere in a window that begins a window's length behind the near one. Such a sliding window fills tables as well
//! as the fixed segments of other fuse filters, small ones better, and a key's pairs cost two multiplications.
//!
//! Large sets are cut by the top bits of the hash into shards of 1.5 to 3 million keys. All have one shape, each has
//! its own seed, and each is built without the others: that is the parallelism, and the bound on memory.
//! The bytes depend on the set alone: peeling looks at the slots only, never at the order of the keys. They are
//! grouped by place all the same, so that peeling walks through memory instead of jumping about.

mod build;
#[cfg(test)]
mod tests;

pub(crate) use build::{Builder, Failed};

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::kind::Kind;
use crate::raw::isa::{self, Batch, Isa};
use crate::raw::layout::{Difference, Layout, Sealed};
use crate::raw::word::Word;

/// A shard has at least about this many keys, and at most twice as many, unless it is the only one.
const SHARD_KEYS: u64 = 1_500_000;
/// Slots of a block. A block is `width` words, and with 8-bit slots a cache line.
const BLOCK: u64 = 64;
/// Slots of a key.
const ARITY: usize = 4;
/// Bytes before the slots of a shard: its seed, and as many as keep slots of eight bits on whole lines.
const SEED_BYTES: u64 = 64;
/// Bits of a slot at most.
const MAX_WIDTH: u32 = 32;

/// Blocks of a shard at most: a slot's number in a shard has 32 bits.
const MAX_BLOCKS: u32 = 1 << 26;
/// And as building numbers them.
const MAX_BUILT_BLOCKS: u64 = 1 << 23;

/// Width, blocks and window of a [`Fuse`](crate::Fuse) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseShape {
    width: u32,
    /// There are `2^shard_bits` shards.
    shard_bits: u32,
    /// Blocks of a shard; 0 in the filter of the empty set, which has no body.
    blocks: u32,
    /// The far block is one of this many, and at least this far from the near one.
    window: u32,
    /// What follows from these numbers, so that asking for one key need not
    /// work it out again.
    sizes: Sizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    shards: u64,
    /// How many slots may be a key's first: those of the blocks that may be its near one.
    near: u64,
    /// Slots of the window.
    window: u64,
    /// Bytes of a shard: a line that begins with its seed, and the slots.
    shard: u64,
    /// Bytes of all.
    body: u64,
    /// And words, if there are slots and they are bytes; else no length. So one
    /// comparison finds the common case.
    words_of_bytes: u64,
}

impl FuseShape {
    /// A shape of exactly these numbers: `2^shard_bits` shards of `blocks` blocks of 64 slots; of the empty set, the
    /// last three are 0. With any other a look-up could leave the body.
    pub fn new(width: u32, shard_bits: u32, blocks: u32, window: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got: u32| Err(Error::parameter(what, expected, got));
        if !(1..=MAX_WIDTH).contains(&width) {
            return refuse("fingerprint width", "1 to 32", width);
        }
        match (shard_bits, blocks, window) {
            (0, 0, 0) => {}
            (17.., ..) => return refuse("shard bits", "0 to 16", shard_bits),
            (_, ..3, _) | (_, MAX_BLOCKS.., _) => {
                return refuse("blocks of a shard", "3 to 67108863", blocks);
            }
            (_, _, window) if window == 0 || window >= blocks.div_ceil(2) => {
                return refuse(
                    "window",
                    "at least 1, and less than half of the blocks",
                    window,
                );
            }
            _ => {}
        }
        let shard = SEED_BYTES + u64::from(blocks) * 8 * u64::from(width);
        // At least a word more, since eight bytes are read wherever a slot begins; whole lines.
        let body = match blocks {
            0 => 0,
            _ => ((shard << shard_bits) + 8).next_multiple_of(64),
        };
        Ok(Self {
            width,
            shard_bits,
            blocks,
            window,
            sizes: Sizes {
                shards: 1 << shard_bits,
                near: u64::from(blocks).saturating_sub(2 * u64::from(window)) * BLOCK,
                window: u64::from(window) * BLOCK,
                shard,
                body,
                words_of_bytes: if width == 8 && blocks > 0 {
                    body / 8
                } else {
                    u64::MAX
                },
            },
        })
    }

    /// The shape for `keys` distinct keys, of which the fullest shard has
    /// `fullest`.
    pub(crate) fn for_keys(keys: u64, fullest: u64, width: u32) -> Result<Self, Error> {
        let too_many = || Error::parameter("keys", "no more than a fuse filter can number", keys);
        if keys == 0 {
            return Self::new(width, 0, 0, 0);
        }
        let (blocks, window) = blocks_and_window(fullest);
        if blocks > MAX_BUILT_BLOCKS {
            return Err(too_many());
        }
        Self::new(
            width,
            Self::shard_bits_for(keys),
            blocks as u32,
            window as u32,
        )
        .map_err(|_| too_many())
    }

    /// About the shape that a build for this many keys ends with: how many keys
    /// the fullest shard has is only known then.
    pub(crate) fn expected(keys: u64, width: u32) -> Result<Self, Error> {
        let bits = Self::shard_bits_for(keys);
        let mean = keys >> bits;
        // The fullest of some tens is about two standard deviations above.
        let fullest = if bits == 0 {
            keys
        } else {
            mean + 2 * mean.isqrt()
        };
        Self::for_keys(keys, fullest, width)
    }

    /// How many bits of the hash choose the shard, of this many distinct keys.
    pub(crate) fn shard_bits_for(keys: u64) -> u32 {
        (keys / SHARD_KEYS).checked_ilog2().unwrap_or(0)
    }

    /// Bits of a key's fingerprint: the rate is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// There are two to the power of this many shards.
    pub const fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    /// Blocks of 64 slots of a shard; 0 in the filter of the empty set.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How many blocks the far block of a key is chosen from.
    pub const fn window(&self) -> u32 {
        self.window
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.sizes.body
    }

    const fn shard_slots(&self) -> u64 {
        self.blocks as u64 * BLOCK
    }

    /// The number of a hash's shard.
    #[inline(always)]
    fn shard(&self, hash: Hash) -> u64 {
        self.shard_and_first(hash).0
    }

    /// A hash's shard, and its first slot there. They come from hi alone, so the order of hashes is theirs.
    #[inline(always)]
    fn shard_and_first(&self, hash: Hash) -> (u64, u64) {
        let product = u128::from(hash.hi) * u128::from(self.sizes.shards);
        // The bits of hi below those of the shard.
        let rest = product as u64;
        ((product >> 64) as u64, reduce(rest, self.sizes.near))
    }

    /// Where the slots of a hash are in its shard, of which one is known.
    #[inline(always)]
    fn place(&self, hash: Hash, first: u64, seed: u64) -> Place {
        let window = self.sizes.window;
        // lo is uniform and the seed odd, so the product is as uniform.
        let mixed = hash.lo.wrapping_mul(seed);
        let product = u128::from(mixed) * u128::from(window);
        Place {
            near: first,
            far: first + window + (product >> 64) as u64,
            // Bits of their own: those below the ones that chose the far slot, and those below these.
            apart: [(product as u64) >> 58, (mixed as u32 >> 26).into()],
        }
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }
}

/// The slots of a key: in each of two blocks a slot, and another that differs from it in these bits of its number.
#[derive(Clone, Copy, Default)]
struct Place {
    near: u64,
    far: u64,
    /// Six bits for the near block, and six for the far one.
    apart: [u64; 2],
}

impl Place {
    /// The slots' numbers within the shard.
    #[inline(always)]
    fn slots(self) -> [u64; ARITY] {
        let Self { near, far, .. } = self;
        let [x, y] = self.apart();
        [near, near ^ x, far, far ^ y]
    }

    /// Never zero: two slots that are one would cancel each other.
    #[inline(always)]
    fn apart(self) -> [u64; 2] {
        self.apart.map(|apart| apart + u64::from(apart == 0))
    }
}

/// Blocks and window with which most seeds solve a shard of this many keys.
fn blocks_and_window(keys: u64) -> (u64, u64) {
    // Measured. One row a power of two, from 2^10 on: window, slots for 1000 keys (interpolated up to the next row).
    #[rustfmt::skip]
    const ROWS: [(u64, u64); 13] = [
        (1, 1312), (2, 1285), (3, 1255), (5, 1218), (7, 1188), (12, 1167), (20, 1150),
        (30, 1133), (45, 1119), (75, 1107), (130, 1097), (220, 1087), (360, 1083),
    ];
    let row = (keys.max(1024).ilog2() as usize - 10).min(ROWS.len() - 2);
    let ((window, slots), (next_window, next_slots)) = (ROWS[row], ROWS[row + 1]);
    let base = 1024 << row;
    let beyond = keys.saturating_sub(base).min(base);
    let window = window + (((next_window - window) * beyond) >> (row + 10));
    let per_1000 = slots - (((slots - next_slots) * beyond) >> (row + 10));
    let slots = keys * per_1000 / 1000 + 16; // the few that matter to small sets
    (slots.div_ceil(BLOCK).max(3), window)
}

/// Whether the set has the key. `words` are a body of the shape.
#[inline(always)]
fn contains<W: Word>(shape: &FuseShape, words: &[W], hash: Hash) -> bool {
    if words.len() as u64 == shape.sizes.words_of_bytes {
        let slots = Slots {
            shape,
            body: words.as_ptr().cast(),
        };
        slots.matches::<true>(slots.probe(hash))
    } else {
        contains_by_call(shape, words, hash)
    }
}

/// What would make callers large.
#[inline(never)]
fn contains_by_call<W: Word>(shape: &FuseShape, words: &[W], hash: Hash) -> bool {
    Slots::new(shape, words).is_some_and(|slots| slots.matches::<false>(slots.probe(hash)))
}

/// A body of the right length, to read without looking at its end again.
#[derive(Clone, Copy)]
struct Slots<'a> {
    shape: &'a FuseShape,
    /// Eight bytes a word, which nobody writes: the filter is finished.
    body: *const u8,
}

/// What to read for a key, and compare with.
#[derive(Clone, Copy, Default)]
struct Probe {
    /// The byte of the body where the shard begins.
    start: u64,
    place: Place,
    hi: u64,
}

impl<'a> Slots<'a> {
    /// None, if it is the filter of the empty set.
    #[inline(always)]
    fn new<W: Word>(shape: &'a FuseShape, words: &'a [W]) -> Option<Self> {
        const { assert!(size_of::<W>() == 8) };
        assert_eq!(
            8 * words.len() as u64,
            shape.sizes.body,
            "a body of the shape"
        );
        (shape.blocks > 0).then_some(Self {
            shape,
            body: words.as_ptr().cast(),
        })
    }

    /// The number at this byte of the part that begins at `start`.
    ///
    /// SAFETY: it is in the body.
    #[inline(always)]
    unsafe fn read<T: Copy>(&self, start: u64, at: u64) -> T {
        debug_assert!(start + at + size_of::<T>() as u64 <= self.shape.sizes.body);
        // SAFETY: the caller's promise.
        let place = unsafe { self.body.add(start as usize).add(at as usize) };
        // SAFETY: likewise.
        unsafe { place.cast::<T>().read_unaligned() }
    }

    #[inline(always)]
    fn probe(&self, hash: Hash) -> Probe {
        let (shard, first) = self.shape.shard_and_first(hash);
        let start = shard * self.shape.sizes.shard;
        // SAFETY: a shard begins with its seed.
        let seed = u64::from_le(unsafe { self.read(start, 0) });
        Probe {
            start,
            place: self.shape.place(hash, first, seed),
            hi: hash.hi,
        }
    }

    /// Whether the slots of a probe say yes. Slots that are bytes need no shifts.
    #[inline(always)]
    fn matches<const BYTES: bool>(&self, Probe { start, place, hi }: Probe) -> bool {
        let mut left = hi;
        for slot in place.slots() {
            left ^= if BYTES {
                // SAFETY: a byte of a block.
                u64::from(unsafe { self.read::<u8>(start, SEED_BYTES + slot) })
            } else {
                let bit = slot * u64::from(self.shape.width);
                // SAFETY: a word follows the last block.
                u64::from_le(unsafe { self.read(start, SEED_BYTES + bit / 8) }) >> (bit % 8)
            };
        }
        if BYTES {
            left as u8 == 0
        } else {
            left & self.shape.mask() == 0
        }
    }

    #[inline(always)]
    fn prefetch<const BYTES: bool>(&self, Probe { start, place, .. }: Probe) {
        let slots = self.body.wrapping_add((start + SEED_BYTES) as usize);
        let fetch = |at: u64| isa::prefetch(slots.wrapping_add(at as usize));
        if BYTES {
            // The other two are on the same lines.
            return [place.near, place.far].into_iter().for_each(fetch);
        }
        let width = u64::from(self.shape.width);
        place
            .slots()
            .into_iter()
            .for_each(|slot| fetch(slot * width / 8));
    }
}

/// `contains` of many: `out[i]` becomes the answer for `keys[i]`, which is
/// hashed, or as good as.
fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
    shape: &FuseShape,
    words: &[W],
    keys: &[H],
    out: &mut [bool],
) {
    assert_eq!(keys.len(), out.len(), "one answer for each key");
    let Some(slots) = Slots::new(shape, words) else {
        return out.fill(false);
    };
    match shape.width {
        8 => Isa::best().run(ContainsHashes::<true, H> { slots, keys, out }),
        _ => Isa::best().run(ContainsHashes::<false, H> { slots, keys, out }),
    }
}

struct ContainsHashes<'a, const BYTES: bool, H> {
    slots: Slots<'a>,
    keys: &'a [H],
    out: &'a mut [bool],
}

impl<const BYTES: bool, H: Copy + Into<Hash>> Batch for ContainsHashes<'_, BYTES, H> {
    #[inline(always)]
    fn run(self, _: Isa) {
        /// Blocks are fetched this many keys before they are read.
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
                *out = slots.matches::<BYTES>(*probe);
                if let Some(key) = next.next() {
                    *probe = fetch(*key);
                }
            }
        }
    }
}

impl Sealed for FuseShape {}

impl Layout for FuseShape {
    const KIND: Kind = Kind::Fuse;

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width, other.width)
            .or_else(|| Difference::between("size", self.body_len(), other.body_len()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        contains(self, words, hash)
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        contains_hashes(self, words, hashes, out);
    }

    /// In one go: every end of a block would wait for the memory.
    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        keys: &[H],
        out: &mut [bool],
    ) {
        contains_hashes(self, words, keys, out);
    }

    /// Nine of ten slots serve a key.
    fn keys_now<W: Word>(&self, _: &[W]) -> f64 {
        (self.shard_slots() << self.shard_bits) as f64 * 0.9
    }
}
