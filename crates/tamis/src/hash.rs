//! The 128-bit [`struct@Hash`] of a key. A key is hashed once; every position of
//! every filter kind derives from those 128 bits by multiply-shift.

/// The 128-bit hash of one key: two independent, uniform halves.
///
/// The high half chooses the place (line, bucket, segment), the low half the bits or the
/// fingerprint there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(C)] // vector code loads several at once
pub struct Hash {
    pub(crate) hi: u64,
    pub(crate) lo: u64,
}

impl Hash {
    /// For callers that already hold a 64-bit hash, or any 64-bit id.
    ///
    /// The value is remixed, so weak values (0, 1, 2, …, addresses) spread as well as good ones. 64
    /// bits are the limit: among `n` keys, a key shares its value with another with probability
    /// about `n / 2^64`.
    ///
    /// Query keys added this way only this way.
    ///
    /// ```
    /// use tamis::{Blocked, Hash};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert!(seen.insert(Hash::from_u64(0)));
    /// assert!(seen.contains(Hash::from_u64(0)));
    /// assert!(!seen.contains(Hash::from_u64(1)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub const fn from_u64(value: u64) -> Self {
        // Each product is folded, or its halves would have weak bits. One fold isn't enough for
        // consecutive numbers, so both halves get a second.
        let once = fold(value ^ K0, K1);
        let hi = fold(once, K2);
        Self {
            hi,
            lo: once ^ hi.rotate_left(32),
        }
    }

    /// For callers that already hold a 128-bit hash such as a digest's first
    /// 16 bytes. Remixed like [`Hash::from_u64`].
    ///
    /// ```
    /// use tamis::{Blocked, Hash};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// let digest = [7u8; 20]; // of the SHA-1 kind
    /// let (first, _) = digest.split_first_chunk().unwrap();
    /// assert!(seen.insert(Hash::from_u128(u128::from_le_bytes(*first))));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub const fn from_u128(value: u128) -> Self {
        let (high, low) = ((value >> 64) as u64, value as u64);
        // Each half must depend on both, or a caller with entropy in only one half would lose it.
        let lo = mix(mix(low) ^ high);
        Self {
            hi: mix(mix(high).wrapping_add(lo)),
            lo,
        }
    }

    #[inline(always)]
    pub(crate) const fn of_digest(digest: u128) -> Self {
        Self {
            hi: (digest >> 64) as u64,
            lo: digest as u64,
        }
    }

    /// Which of `shards` a key belongs to: even, and independent of its place in a filter. For one
    /// filter per thread, file or node.
    ///
    /// ```
    /// use tamis::Hash;
    /// assert!(Hash::from_u64(7).shard(16) < 16);
    /// ```
    #[inline]
    pub const fn shard(self, shards: usize) -> usize {
        reduce(mix(self.hi ^ self.lo), shards as u64) as usize
    }

    /// The hash as one number, for exact sets of digests.
    ///
    /// ```
    /// use tamis::Hasher;
    /// let hasher = Hasher::default();
    /// assert_ne!(hasher.hash(b"a").as_u128(), hasher.hash(b"b").as_u128());
    /// ```
    #[inline]
    pub const fn as_u128(self) -> u128 {
        ((self.hi as u128) << 64) | self.lo as u128
    }
}

/// [`Hash::from_u64`].
impl From<u64> for Hash {
    #[inline]
    fn from(value: u64) -> Self {
        Self::from_u64(value)
    }
}

// Digits of pi, made odd where used as multipliers: nothing up the sleeve.
const K0: u64 = 0x243F_6A88_85A3_08D3;
const K1: u64 = 0xA409_3822_299F_31D1;
const K2: u64 = 0xC0AC_29B7_C97C_50DD;

/// The two halves of the product, combined.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// A bijective remix of 64 bits: more bits for a key when one word is not
/// enough. The constant keeps 0 from mapping to itself.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// Multiply-shift: maps a uniform `x` onto `0..n`.
#[inline]
pub(crate) const fn reduce(x: u64, n: u64) -> u64 {
    // WebAssembly has no 128-bit product: it would be a call.
    if cfg!(target_arch = "wasm32") && n <= u32::MAX as u64 {
        return reduce_in_halves(x, n);
    }
    ((x as u128 * n as u128) >> 64) as u64
}

/// [`reduce`] for a 32-bit `n`, from two 64-bit products.
#[inline]
const fn reduce_in_halves(x: u64, n: u64) -> u64 {
    let low = (x & u32::MAX as u64) * n;
    ((x >> 32) * n + (low >> 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Hasher, Kind, Plan};
    use std::collections::HashSet;

    #[test]
    fn halves_reduce_alike() {
        let mut x = 1;
        for n in [1, 2, 3, 63, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1] {
            for _ in 0..1000 {
                x = mix(x);
                assert_eq!(reduce_in_halves(x, n), reduce(x, n), "{x} {n}");
            }
            for x in [0, 1, (1 << 32) - 1, 1 << 32, u64::MAX] {
                assert_eq!(reduce_in_halves(x, n), reduce(x, n), "{x} {n}");
            }
        }
    }

    #[test]
    fn weak_prehashed_values_spread() {
        // Sequential ids: every byte of both halves takes almost every value.
        let hashes: Vec<Hash> = (0..4096).map(Hash::from_u64).collect();
        for shift in (0..64).step_by(8) {
            for half in [|h: &Hash| h.hi, |h: &Hash| h.lo] {
                let seen: HashSet<u8> = hashes.iter().map(|h| (half(h) >> shift) as u8).collect();
                assert!(seen.len() > 250, "shift {shift}: {} values", seen.len());
            }
        }
        assert_ne!(Hash::from_u64(0), Hash::default());
        assert_ne!(Hash::from_u128(0), Hash::default());
        // Entropy in the high half alone reaches both halves.
        let high_only: Vec<Hash> = (0..4096).map(|i| Hash::from_u128(i << 64)).collect();
        let los: HashSet<u64> = high_only.iter().map(|h| h.lo).collect();
        let his: HashSet<u64> = high_only.iter().map(|h| h.hi).collect();
        assert_eq!((los.len(), his.len()), (4096, 4096));
    }

    /// `docs/format.md` lists these: a change would orphan every file.
    #[test]
    fn numbers_have_the_documented_hashes() {
        let documented = [
            (0, "e28307998b03270e346642d99c534a9a"),
            (42, "f5bf5b01680d706d7e8e7eccddc07d11"),
        ];
        for (number, hash) in documented {
            let text = format!("{:032x}", Hash::from_u64(number).as_u128());
            assert_eq!(text, hash, "{number}");
        }
    }

    /// Families of weak values give the planned rate and no more.
    #[test]
    fn weak_prehashed_values_keep_the_rate() {
        type Family = (&'static str, fn(u64) -> u64);
        let families: [Family; 12] = [
            ("sequential", |i| i),
            ("downwards", |i| 0u64.wrapping_sub(i)),
            ("beside the constant", |i| i ^ K0),
            ("pages", |i| i << 12),
            ("high half", |i| i << 32),
            ("top bits", |i| i.reverse_bits()),
            ("gaps", |i| i * i),
            ("times of day", |i| 1_700_000_000_000 + i * 1_000),
            ("steps", |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            ("both ends", |i| i & 0xFFFF | i >> 16 << 48),
            ("floats", |i| (i as f64).to_bits()),
            ("one bit apart", |i| i ^ i >> 1),
        ];
        for kind in [Kind::Bloom, Kind::Blocked, Kind::Cuckoo] {
            let plan = Plan::for_rate(kind, 100_000, 0.01).unwrap();
            for (name, value) in families {
                let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
                let hashes = |range: std::ops::Range<u64>| -> Vec<Hash> {
                    range.map(|i| Hash::from_u64(value(i))).collect()
                };
                let mut flags = vec![false; 100_000];
                filter.insert_many(&hashes(0..100_000), &mut flags).unwrap();
                let mut flags = vec![false; 400_000];
                filter.contains_many(&hashes(100_000..500_000), &mut flags);
                let rate = flags.iter().filter(|f| **f).count() as f64 / 400_000.0;
                // Four standard errors of 400,000 trials are 6 %.
                let off = rate / plan.rate() - 1.0;
                assert!(off.abs() < 0.07, "{kind}, {name}: {rate}");
            }
        }
    }
}
