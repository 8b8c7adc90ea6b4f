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
        Ok(Self {
            arity,
            width,
            shard_bits,
            segments,
            segment_blocks,
        })
    }

    /// The shape for `keys` distinct keys, of which the fullest shard has
    /// `fullest`.
    pub(crate) fn for_keys(keys: u64, fullest: u64, arity: u32, width: u32) -> Result<Self, Error> {
        let too_many = |_| Error::parameter("keys", "no more than a fuse filter can number", keys);
        match keys {
            0 => Self::new(arity, width, 0, 0, 0),
            _ => {
                let (segments, blocks) = segments(fullest, arity);
                Self::new(arity, width, Self::shard_bits_for(keys), segments, blocks)
                    .map_err(too_many)
            }
        }
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
        self.body_words() * 8
    }

    /// Where the slots begin: after the seeds, at a cache line.
    const fn first_word(&self) -> u64 {
        (1u64 << self.shard_bits).next_multiple_of(8)
    }

    const fn shard_words(&self) -> u64 {
        self.shard_slots() / BLOCK * self.width as u64
    }

    const fn shard_slots(&self) -> u64 {
        self.segments as u64 * self.segment_blocks as u64 * BLOCK
    }

    /// The seeds, the slots, at least one word more (so that any slot may be read as two words), in whole lines.
    const fn body_words(&self) -> u64 {
        match self.segments {
            0 => 0,
            _ => (self.first_word() + (self.shard_words() << self.shard_bits) + 1)
                .next_multiple_of(8),
        }
    }

    /// The seed of a hash's shard is this word.
    #[inline(always)]
    fn shard(&self, hash: Hash) -> u64 {
        (hash.hi >> 1) >> (63 - self.shard_bits) // in two steps, since shard_bits may be 0
    }

    /// The slots of a hash within its shard.
    #[inline(always)]
    fn slots<const ARITY: usize>(&self, hash: Hash, seed: u64) -> [u64; ARITY] {
        let blocks = u64::from(self.segment_blocks);
        // hi alone says where: shard, segment, near block. So the order of hashes is that of near blocks.
        let place = ((hash.hi << self.shard_bits) >> 32) * u64::from(self.segments - 1);
        let segment = (place >> 32) * blocks;
        let near = (segment + (((place & 0xFFFF_FFFF) * blocks) >> 32)) * BLOCK;
        // lo, with the seed, gives the far block in the next segment, and the slots in both.
        let mixed = mix(hash.lo ^ seed);
        let far = (segment + blocks + (((mixed >> 32) * blocks) >> 32)) * BLOCK;
        let (one, other) = pair(mixed);
        if ARITY == 4 {
            let (one_far, other_far) = pair(mixed >> 16);
            let slots = [near + one, near + other, far + one_far, far + other_far];
            return std::array::from_fn(|i| slots[i]);
        }
        // Both blocks must hold pairs equally often, or the table could not be as full.
        let swap = (near ^ far) & (mixed >> 22 & 1).wrapping_neg();
        let slots = [
            (near ^ swap) + one,
            (near ^ swap) + other,
            (far ^ swap) + (mixed >> 16) % BLOCK,
        ];
        std::array::from_fn(|i| slots[i])
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        (1 << self.width) - 1
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

/// Whether the set has the key. `shape` must have passed `validate` for this many words.
#[inline]
fn contains<W: Word>(shape: &FuseShape, words: &[W], hash: Hash) -> bool {
    match (shape.segments, shape.arity) {
        (0, _) => false,
        (_, 3) => matches(shape, words, hash, slot_bits::<3, W>(shape, words, hash)),
        _ => matches(shape, words, hash, slot_bits::<4, W>(shape, words, hash)),
    }
}

/// The first bit of each slot of a hash in the body.
#[inline(always)]
fn slot_bits<const ARITY: usize, W: Word>(
    shape: &FuseShape,
    words: &[W],
    hash: Hash,
) -> [u64; ARITY] {
    let shard = shape.shard(hash);
    let base = (shape.first_word() + shard * shape.shard_words()) * 64;
    shape
        .slots(hash, words[shard as usize].get())
        .map(|slot| base + slot * u64::from(shape.width))
}

#[inline(always)]
fn matches<const ARITY: usize, W: Word>(
    shape: &FuseShape,
    words: &[W],
    hash: Hash,
    bits: [u64; ARITY],
) -> bool {
    let left = bits.iter().fold(hash.hi, |x, &bit| {
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        let [low, high] = &words[word..word + 2] else {
            unreachable!()
        };
        x ^ (low.get() >> shift) ^ (high.get() << 1 << (63 - shift))
    });
    left & shape.mask() == 0
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
    if shape.segments == 0 {
        return out.fill(false);
    }
    #[cfg(target_arch = "x86_64")]
    if isa::Isa::best().has(isa::Level::Avx512) {
        // Unchecked loads follow, so this does not lean on the caller.
        assert_eq!(
            words.len() as u64,
            shape.body_words(),
            "the body of this shape"
        );
        // SAFETY: the CPU has the instructions, and this is a body of the shape.
        return unsafe {
            match shape.arity {
                3 => avx512::contains_hashes::<3, W, H>(shape, words, keys, out),
                _ => avx512::contains_hashes::<4, W, H>(shape, words, keys, out),
            }
        };
    }
    match shape.arity {
        3 => contains_hashes_scalar::<3, W, H>(shape, words, keys, out),
        _ => contains_hashes_scalar::<4, W, H>(shape, words, keys, out),
    }
}

fn contains_hashes_scalar<const ARITY: usize, W: Word, H: Copy + Into<Hash>>(
    shape: &FuseShape,
    words: &[W],
    keys: &[H],
    out: &mut [bool],
) {
    const AHEAD: usize = 32;
    let mut asked = [(Hash::default(), [0; ARITY]); AHEAD];
    for (keys, out) in keys.chunks(AHEAD).zip(out.chunks_mut(AHEAD)) {
        for ((hash, bits), &key) in asked.iter_mut().zip(keys) {
            *hash = key.into();
            *bits = slot_bits(shape, words, *hash);
            bits.iter().for_each(|&bit| prefetch(words, bit));
        }
        for (&(hash, bits), out) in asked.iter().zip(out) {
            *out = matches(shape, words, hash, bits);
        }
    }
}

#[inline(always)]
fn prefetch<W>(words: &[W], bit: u64) {
    if let Some(word) = words.get((bit / 64) as usize) {
        isa::prefetch(word);
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
