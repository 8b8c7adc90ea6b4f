//! Where a key's bits are.

use crate::error::Error;
use crate::hash::{Hash, reduce};

/// Bits and hashes of a [`Bloom`](crate::Bloom) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomShape {
    bits: u64,
    hashes: u32,
}

/// No sensible rate needs more.
const MAX_HASHES: u32 = 64;
/// 2^60 bytes: far beyond any machine, and products below don't overflow.
const MAX_BITS: u64 = 1 << 63;

/// Step of the generator for a key's positions; any odd number with well-spread bits works.
const STEP: u64 = 0xD6E8_FEB8_6659_FD93;

impl BloomShape {
    /// A shape of exactly this many bits and hashes.
    pub fn new(bits: u64, hashes: u32) -> Result<Self, Error> {
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::parameter("bits", "1 to 2^63", bits));
        }
        if !(1..=MAX_HASHES).contains(&hashes) {
            return Err(Error::parameter("hashes", "1 to 64", hashes));
        }
        Ok(Self { bits, hashes })
    }

    /// The bits of the largest filter of this many bytes: whole 64-byte lines. Below one line, for
    /// illustrations, exactly these bits, though a file takes a whole line.
    ///
    /// ```
    /// use tamis::internals::raw::BloomShape;
    /// assert_eq!(BloomShape::bits_within(2), 16);
    /// assert_eq!(BloomShape::bits_within(100), 512);
    /// ```
    pub const fn bits_within(bytes: u64) -> u64 {
        match bytes {
            ..64 => bytes * 8,
            _ => (bytes / 64).saturating_mul(512),
        }
    }

    /// The number of bits, *m* in the literature.
    #[inline]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of hashes, *k* in the literature.
    #[inline]
    pub const fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Rounded up to whole lines of 64 bytes.
    pub(crate) const fn body_len(&self) -> u64 {
        self.bits.div_ceil(512) * 64
    }

    /// The key's bits, by number; they may repeat.
    ///
    /// ```
    /// use tamis::internals::raw::BloomShape;
    /// use tamis::Hasher;
    /// let shape = BloomShape::new(64, 3)?;
    /// let positions: Vec<u64> = shape.positions(Hasher::default().hash(b"key")).collect();
    /// assert!(positions.len() == 3 && positions.iter().all(|bit| *bit < 64));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn positions(self, hash: Hash) -> impl Iterator<Item = u64> {
        // The top of a linear congruential sequence whose start and increment are the two halves of
        // the hash. Unlike with double hashing, two keys share all positions only if they share the
        // hash.
        let mut x = hash.lo;
        (0..self.hashes).map(move |_| {
            let position = reduce(x, self.bits);
            x = x.wrapping_mul(STEP).wrapping_add(hash.hi);
            position
        })
    }
}
