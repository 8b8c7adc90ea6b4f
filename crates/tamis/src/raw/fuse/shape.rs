//! Shards, blocks and windows: the places of a key's slots.

use crate::error::Error;
use crate::hash::{Hash, reduce};

/// A shard has about this many keys at least, and twice as many at most, unless it is the only one.
const SHARD_KEYS: u64 = 1_500_000;
/// Slots of a block. A block is `width` words, and with 8-bit slots a cache line.
pub(super) const BLOCK: u64 = 64;
/// Slots of a key.
pub(super) const ARITY: usize = 4;
/// Bytes before the slots of a shard: its seed, padded so that 8-bit slots are on whole lines.
pub(super) const SEED_BYTES: u64 = 64;
/// The most bits of a slot.
const MAX_WIDTH: u32 = 32;

/// The most blocks of a shard: a slot's number in a shard has 32 bits.
pub(super) const MAX_BLOCKS: u32 = 1 << 26;
/// The most blocks that building can number.
pub(super) const MAX_BUILT_BLOCKS: u64 = 1 << 23;

/// Width, blocks and window of a [`Fuse`](crate::Fuse) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseShape {
    width: u32,
    /// There are `2^shard_bits` shards.
    shard_bits: u32,
    /// Blocks of a shard; 0 in the filter of the empty set, which has no body.
    blocks: u32,
    /// The number of candidates for the far block, and its minimum distance from the near one.
    window: u32,
    /// Derived numbers, so that single look-ups needn't compute them.
    pub(super) sizes: Sizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    shards: u64,
    /// The number of candidates for a key's first slot: the slots of all possible near blocks.
    near: u64,
    /// Slots of the window.
    window: u64,
    /// Bytes of a shard: a line that starts with its seed, and the slots.
    pub(super) shard: u64,
    /// Bytes of the body.
    pub(super) body: u64,
    /// The body's length in words if there are slots and they are bytes; otherwise no possible
    /// length. So one comparison detects the common case.
    pub(super) words_of_bytes: u64,
}

impl FuseShape {
    /// A shape with exactly these numbers: `2^shard_bits` shards of `blocks` blocks of 64 slots; for the empty set,
    /// the last three are 0. Rejects any shape with which a look-up could leave the body.
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
        // At least one more word, because look-ups read eight bytes wherever a slot starts; rounded
        // up to whole lines.
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

    /// The shape for `keys` distinct keys, of which the fullest shard has `fullest`.
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

    /// The approximate shape that building with this many keys gives; the exact one depends on the
    /// fullest shard.
    pub(crate) fn expected(keys: u64, width: u32) -> Result<Self, Error> {
        let bits = Self::shard_bits_for(keys);
        let mean = keys >> bits;
        // The fullest of several dozen is about two standard deviations above the mean.
        let fullest = if bits == 0 {
            keys
        } else {
            mean + 2 * mean.isqrt()
        };
        Self::for_keys(keys, fullest, width)
    }

    /// How many bits of the hash choose the shard, for this many distinct keys.
    pub(crate) fn shard_bits_for(keys: u64) -> u32 {
        (keys / SHARD_KEYS).checked_ilog2().unwrap_or(0)
    }

    /// Bits of a key's fingerprint: the rate is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// There are 2 to the power of this many shards.
    pub const fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    /// Blocks of 64 slots per shard; 0 in the filter of the empty set.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The number of candidates for a key's far block.
    pub const fn window(&self) -> u32 {
        self.window
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.sizes.body
    }

    pub(super) const fn shard_slots(&self) -> u64 {
        self.blocks as u64 * BLOCK
    }

    /// The number of a hash's shard.
    #[inline(always)]
    pub(super) fn shard(&self, hash: Hash) -> u64 {
        self.shard_and_first(hash).0
    }

    /// A hash's shard, and its first slot there. Both come from hi alone, so they ascend with the hashes.
    #[inline(always)]
    pub(super) fn shard_and_first(&self, hash: Hash) -> (u64, u64) {
        let product = u128::from(hash.hi) * u128::from(self.sizes.shards);
        // The bits of hi below those that choose the shard.
        let rest = product as u64;
        ((product >> 64) as u64, reduce(rest, self.sizes.near))
    }

    /// The slots of a hash in its shard, given the first one.
    #[inline(always)]
    pub(super) fn slots_of(&self, hash: Hash, first: u64, seed: u64) -> KeySlots {
        let window = self.sizes.window;
        // lo is uniform and the seed odd, so the product is also uniform.
        let mixed = hash.lo.wrapping_mul(seed);
        let product = u128::from(mixed) * u128::from(window);
        KeySlots {
            near: first,
            far: first + window + (product >> 64) as u64,
            // Slots use disjoint bits of the hash, taken from the top down.
            apart: [(product as u64) >> 58, (mixed as u32 >> 26).into()],
        }
    }

    #[inline(always)]
    pub(super) fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }
}

/// The slots of a key: one in each of two blocks, and one that differs from it in these bits of its number.
#[derive(Clone, Copy, Default)]
pub(super) struct KeySlots {
    pub(super) near: u64,
    pub(super) far: u64,
    /// Six bits for the near block, and six for the far one.
    pub(super) apart: [u64; 2],
}

impl KeySlots {
    /// The first slot in each block.
    #[inline(always)]
    pub(super) fn firsts(self) -> [u64; 2] {
        [self.near, self.far]
    }

    /// The slots' numbers within the shard.
    #[inline(always)]
    pub(super) fn numbers(self) -> [u64; ARITY] {
        let Self { near, far, .. } = self;
        let [x, y] = self.apart();
        [near, near ^ x, far, far ^ y]
    }

    /// Never zero: equal slots would cancel each other.
    #[inline(always)]
    pub(super) fn apart(self) -> [u64; 2] {
        self.apart.map(|apart| apart + u64::from(apart == 0))
    }
}

/// The blocks and window with which most seeds solve a shard of this many keys.
pub(super) fn blocks_and_window(keys: u64) -> (u64, u64) {
    // Measured. One row per power of two, from 2^10 on: window, slots for 1000 keys (interpolated up to the next
    // row).
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
    let slots = keys * per_1000 / 1000 + 16; // these matter only for small sets
    (slots.div_ceil(BLOCK).max(3), window)
}
