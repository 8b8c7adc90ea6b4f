//! Fuse: a finished set in about 1.13 (3-wise) or 1.09 (4-wise) times `width` bits a key, false-positive rate `2^-width`.
//!
//! A table of `width`-bit slots is filled so that, for every key of the set, the xor of its three or four slots is the
//! key's fingerprint. This is a binary fuse filter: a key's slots lie in neighbouring segments of the table, which
//! lets so full a table be solved by peeling (again and again take away a key that is alone in some slot).
//! Here they also lie in only two blocks of 64 slots, a pair in one and a pair or a single one in the other: two
//! cache misses a key instead of three or four, for hardly more space.
//!
//! Large sets are cut by the top bits of the hash into shards of 1.5 to 3 million keys. All have one shape, each has
//! its own seed, and each is built without the others: that is the parallelism, and the bound on memory.
//! The bytes depend on the set alone: peeling looks at the slots only, never at the order of the keys. They are
//! grouped by place all the same, so that peeling walks through memory instead of jumping about.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod build;
#[cfg(test)]
mod tests;

pub(crate) use build::{Builder, Failed};

use crate::error::Error;
use crate::hash::{Hash, mix};
use crate::kind::Kind;
use crate::raw::isa;
use crate::raw::layout::{Difference, Layout, Sealed};
use crate::raw::word::Word;

/// A shard has at least about this many keys, and at most twice as many, unless it is the only one.
const SHARD_KEYS: u64 = 1_500_000;
/// Slots of a block. A block is `width` words, and with 8-bit slots a cache line.
const BLOCK: u64 = 64;
/// Bits of a slot at most.
const MAX_WIDTH: u32 = 32;

/// Blocks of a shard at most, as building numbers them.
const MAX_BUILT_BLOCKS: u64 = 1 << 23;

/// Width, arity and segments of a [`Fuse`](crate::Fuse) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseShape {
    arity: u32,
    width: u32,
    /// There are `2^shard_bits` shards.
    shard_bits: u32,
    /// Segments of a shard; 0 in the filter of the empty set, which has no
    /// body.
    segments: u32,
    /// Blocks of a segment.
    segment_blocks: u32,
    /// What follows from these numbers, so that asking for one key need not
    /// work it out again.
    sizes: Sizes,
}

/// Sizes of the body's parts, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    /// The seeds, up to a cache line; the slots follow.
    seeds: u64,
    /// The slots of a shard.
    shard: u64,
    /// All.
    body: u64,
}

impl FuseShape {
    /// A shape of exactly these numbers: `2^shard_bits` shards of `segments`
    /// segments of `segment_blocks` blocks of 64 slots; of the empty set, the
    /// last three are 0. With any other a look-up could leave the body.
    pub fn new(
        arity: u32,
        width: u32,
        shard_bits: u32,
        segments: u32,
        segment_blocks: u32,
    ) -> Result<Self, Error> {
        let refuse = |what, expected, got: u32| Err(Error::parameter(what, expected, got));
        if !matches!(arity, 3 | 4) {
            return refuse("arity", "3 or 4", arity);
        }
        if !(1..=MAX_WIDTH).contains(&width) {
            return refuse("fingerprint width", "1 to 32", width);
        }
        // The bounds keep every product below 2^64, and a slot's number in a
        // shard below 2^32.
        match (shard_bits, segments, segment_blocks) {
            (0, 0, 0) | (0..=16, 2..=1024, 1..=65536) => {}
            (17.., ..) => return refuse("shard bits", "0 to 16", shard_bits),
            (_, 2..=1024, _) => return refuse("blocks of a segment", "1 to 65536", segment_blocks),
            _ => return refuse("segments", "2 to 1024", segments),
        }
        let seeds = (1u64 << shard_bits).next_multiple_of(8);
        let shard = u64::from(segments) * u64::from(segment_blocks) * u64::from(width);
        Ok(Self {
            arity,
            width,
            shard_bits,
            segments,
            segment_blocks,
            sizes: Sizes {
                seeds,
                shard,
                // At least one word more, for readers that take a slot for two words; whole lines.
                body: match segments {
                    0 => 0,
                    _ => (seeds + (shard << shard_bits) + 1).next_multiple_of(8),
                },
            },
        })
    }

    /// The shape for `keys` distinct keys, of which the fullest shard has
    /// `fullest`.
    pub(crate) fn for_keys(keys: u64, fullest: u64, arity: u32, width: u32) -> Result<Self, Error> {
        let too_many = || Error::parameter("keys", "no more than a fuse filter can number", keys);
        if keys == 0 {
            return Self::new(arity, width, 0, 0, 0);
        }
        let (segments, blocks) = segments(fullest, arity);
        if u64::from(segments) * u64::from(blocks) > MAX_BUILT_BLOCKS {
            return Err(too_many());
        }
        Self::new(arity, width, Self::shard_bits_for(keys), segments, blocks)
            .map_err(|_| too_many())
    }

    /// About the shape that a build for so many keys ends with: how many keys
    /// the fullest shard has is only known then.
    pub(crate) fn expected(keys: u64, arity: u32, width: u32) -> Result<Self, Error> {
        let bits = Self::shard_bits_for(keys);
        let mean = keys >> bits;
        // The fullest of some tens is about two standard deviations above.
        let fullest = if bits == 0 {
            keys
        } else {
            mean + 2 * mean.isqrt()
        };
        Self::for_keys(keys, fullest, arity, width)
    }

    /// How many bits of the hash choose the shard, of so many distinct keys.
    pub(crate) fn shard_bits_for(keys: u64) -> u32 {
        (keys / SHARD_KEYS).checked_ilog2().unwrap_or(0)
    }

    /// How many slots a key has: 3 or 4.
    pub const fn arity(&self) -> u32 {
        self.arity
    }

    /// Bits of a key's fingerprint: the rate is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// There are two to the power of this many shards.
    pub const fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    /// Segments of a shard; 0 in the filter of the empty set.
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    /// Blocks of 64 slots of a segment.
    pub const fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.sizes.body * 8
    }

    const fn shard_slots(&self) -> u64 {
        self.segments as u64 * self.segment_blocks as u64 * BLOCK
    }

    /// The seed of a hash's shard is this word.
    #[inline(always)]
    fn shard(&self, hash: Hash) -> u64 {
        (hash.hi >> 1) >> (63 - self.shard_bits) // in two steps, since shard_bits may be 0
    }

    /// Where a hash's slots are, within its shard.
    #[inline(always)]
    fn place<const ARITY: usize>(&self, hash: Hash, seed: u64) -> Place<ARITY> {
        let blocks = u64::from(self.segment_blocks);
        // hi alone says where: shard, segment, near block. So the order of hashes is that of near blocks.
        let place = ((hash.hi << self.shard_bits) >> 32) * u64::from(self.segments - 1);
        let segment = (place >> 32) * blocks;
        let near = segment + (((place & 0xFFFF_FFFF) * blocks) >> 32);
        // lo, with the seed, gives the far block in the next segment, and the slots in both.
        let mixed = mix(hash.lo ^ seed);
        let far = segment + blocks + (((mixed >> 32) * blocks) >> 32);
        // Of three, both blocks must hold pairs equally often, or the table could not be as full.
        let swap = match ARITY {
            3 => (near ^ far) & (mixed >> 22 & 1).wrapping_neg(),
            _ => 0,
        };
        let (pair, other) = (pair(mixed), pair(mixed >> 16));
        let within = [pair.0, pair.1, other.0, other.1];
        Place {
            blocks: [near ^ swap, far ^ swap],
            within: std::array::from_fn(|i| within[i]),
        }
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }
}

/// The slots of a key: the first two in one block, the others in the other.
#[derive(Clone, Copy)]
struct Place<const ARITY: usize> {
    blocks: [u64; 2],
    within: [u64; ARITY],
}

impl<const ARITY: usize> Place<ARITY> {
    #[inline(always)]
    fn slots(self) -> [u64; ARITY] {
        std::array::from_fn(|i| self.blocks[i / 2] * BLOCK + self.within[i])
    }
}

/// Two different slots of a block, from 16 bits.
#[inline(always)]
fn pair(bits: u64) -> (u64, u64) {
    let one = bits % BLOCK;
    (
        one,
        one ^ (1 + ((((bits >> 6) & 0x3FF) * (BLOCK - 1)) >> 10)),
    )
}

/// Which arity makes the smaller filter of so many keys.
pub(crate) fn smaller_arity(keys: u64) -> u32 {
    let slots = |arity| {
        let (segments, blocks) = segments(keys >> FuseShape::shard_bits_for(keys), arity);
        u64::from(segments) * u64::from(blocks)
    };
    if slots(4) < slots(3) { 4 } else { 3 }
}

/// Segments and blocks of a segment with which most seeds solve a shard of this many keys.
fn segments(keys: u64, arity: u32) -> (u32, u32) {
    // Measured. One row a power of two, from 2^10 on: segments, slots for 1000 keys (interpolated up to the next row).
    #[rustfmt::skip]
    const THREE: [(u32, u64); 13] = [
        (2, 1280), (2, 1270), (2, 1255), (2, 1250), (24, 1235), (24, 1215), (24, 1185),
        (32, 1170), (48, 1152), (48, 1142), (64, 1134), (64, 1128), (64, 1124),
    ];
    #[rustfmt::skip]
    const FOUR: [(u32, u64); 13] = [
        (2, 1360), (2, 1350), (8, 1290), (8, 1260), (24, 1220), (24, 1180), (32, 1156),
        (48, 1132), (48, 1116), (64, 1105), (96, 1095), (128, 1086), (128, 1082),
    ];
    let rows = if arity == 3 { &THREE } else { &FOUR };
    let row = (keys.max(1024).ilog2() as usize - 10).min(rows.len() - 2);
    let ((segments, from), (_, to)) = (rows[row], rows[row + 1]);
    let base = 1024 << row;
    let per_1000 = from - (((from - to) * keys.saturating_sub(base).min(base)) >> (row + 10));
    let slots = keys * per_1000 / 1000 + 32; // the few that matter to small sets
    let blocks = slots.div_ceil(BLOCK * u64::from(segments));
    (segments, u32::try_from(blocks).unwrap_or(u32::MAX))
}

/// Whether the set has the key. `words` are a body of the shape.
#[inline]
fn contains<W: Word>(shape: &FuseShape, words: &[W], hash: Hash) -> bool {
    let Some(slots) = Slots::new(shape, words) else {
        return false;
    };
    match shape.arity {
        3 => slots.match_at(hash, slots.spots::<3>(hash)),
        _ => slots.match_at(hash, slots.spots::<4>(hash)),
    }
}

/// A body of the right length, to read without looking at its end again.
#[derive(Clone, Copy)]
struct Slots<'a> {
    shape: &'a FuseShape,
    /// Eight bytes a word, which nobody writes: the filter is finished.
    body: *const u8,
}

impl<'a> Slots<'a> {
    /// None, if it is the filter of the empty set.
    #[inline(always)]
    fn new<W: Word>(shape: &'a FuseShape, words: &'a [W]) -> Option<Self> {
        const { assert!(size_of::<W>() == 8) };
        assert_eq!(words.len() as u64, shape.sizes.body, "a body of the shape");
        (shape.segments > 0).then_some(Self {
            shape,
            body: words.as_ptr().cast(),
        })
    }

    /// The eight bytes from this one on.
    ///
    /// SAFETY: they are in the body.
    #[inline(always)]
    unsafe fn read(&self, at: u64) -> u64 {
        debug_assert!(at + 8 <= self.shape.body_len());
        // SAFETY: the caller's promise.
        let place = unsafe { self.body.add(at as usize) };
        // SAFETY: likewise.
        u64::from_le(unsafe { place.cast::<u64>().read_unaligned() })
    }

    /// Where to read each slot of a hash.
    #[inline(always)]
    fn spots<const ARITY: usize>(&self, hash: Hash) -> [u64; ARITY] {
        let shape = self.shape;
        let shard = shape.shard(hash);
        // SAFETY: the body begins with a seed for every shard.
        let seed = unsafe { self.read(shard * 8) };
        let Place { blocks, within } = shape.place::<ARITY>(hash, seed);
        let base = shape.sizes.seeds + shard * shape.sizes.shard;
        // A block is `width` words.
        let blocks = blocks.map(|block| (base + block * u64::from(shape.width)) * 8 * 64);
        let spots = &SPOTS[shape.width as usize];
        std::array::from_fn(|i| blocks[i / 2] + u64::from(spots[within[i] as usize]))
    }

    /// Whether the slots at these spots, which [`spots`](Self::spots) gave, say yes.
    #[inline(always)]
    fn match_at<const ARITY: usize>(&self, hash: Hash, spots: [u64; ARITY]) -> bool {
        let left = spots.iter().fold(hash.hi, |x, &spot| {
            // SAFETY: these are eight bytes of a block.
            x ^ (unsafe { self.read(spot / 64) } >> (spot % 64))
        });
        left & self.shape.mask() == 0
    }

    #[inline(always)]
    fn prefetch(&self, spot: u64) {
        isa::prefetch(self.body.wrapping_add((spot / 64) as usize));
    }
}

/// For every width and slot, the slot's spot in a block: 64 times the byte from which to read eight, which are all in
/// the block, and by how many bits to shift them. A read that left the block would wait for one more line.
static SPOTS: [[u16; BLOCK as usize]; MAX_WIDTH as usize + 1] = {
    let mut spots = [[0; BLOCK as usize]; MAX_WIDTH as usize + 1];
    let mut at = 0;
    while at < spots.len() * BLOCK as usize {
        let (width, slot) = (at / BLOCK as usize, at % BLOCK as usize);
        let (bit, last) = (slot * width, (8 * width).saturating_sub(8));
        let byte = if bit / 8 < last { bit / 8 } else { last };
        spots[width][slot] = (64 * byte + bit - 8 * byte) as u16;
        at += 1;
    }
    spots
};

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
    #[cfg(target_arch = "x86_64")]
    if isa::Isa::best().has(isa::Level::Avx512) {
        // SAFETY: the CPU has the instructions.
        return unsafe {
            match shape.arity {
                3 => avx512::contains_hashes::<3, H>(slots, keys, out),
                _ => avx512::contains_hashes::<4, H>(slots, keys, out),
            }
        };
    }
    match shape.arity {
        3 => contains_hashes_scalar::<3, H>(slots, keys, out),
        _ => contains_hashes_scalar::<4, H>(slots, keys, out),
    }
}

fn contains_hashes_scalar<const ARITY: usize, H: Copy + Into<Hash>>(
    slots: Slots<'_>,
    keys: &[H],
    out: &mut [bool],
) {
    const AHEAD: usize = 32;
    let mut asked = [(Hash::default(), [0; ARITY]); AHEAD];
    for (keys, out) in keys.chunks(AHEAD).zip(out.chunks_mut(AHEAD)) {
        for ((hash, spots), &key) in asked.iter_mut().zip(keys) {
            *hash = key.into();
            *spots = slots.spots(*hash);
            spots.iter().for_each(|&spot| slots.prefetch(spot));
        }
        for (&(hash, spots), out) in asked.iter().zip(out) {
            *out = slots.match_at(hash, spots);
        }
    }
}

impl Sealed for FuseShape {}

impl Layout for FuseShape {
    const KIND: Kind = Kind::Fuse;

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("arity", self.arity, other.arity)
            .or_else(|| Difference::between("fingerprint width", self.width, other.width))
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
