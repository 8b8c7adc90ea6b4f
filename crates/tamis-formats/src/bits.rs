//! Runs of bits in a file's bytes, in the order of its format.

use crate::bytes::View;
use std::ops::Range;

/// Where bit number `i` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Byte `i / 8`, lowest bit first. Equivalent to little-endian words.
    Low,
    /// Byte `i / 8`, highest bit first, as in SETBIT.
    High,
    /// Big-endian 64-bit words, each with the lowest bit first.
    BigWords,
}

/// The position, number and order of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) at: usize,
    pub(crate) len: u64,
    pub(crate) order: Order,
}

impl Bits {
    pub(crate) const fn new(at: usize, len: u64, order: Order) -> Self {
        Self { at, len, order }
    }

    /// Bits of bytes with the lowest bit first.
    pub(crate) const fn low(at: usize, len: u64) -> Self {
        Self::new(at, len, Order::Low)
    }

    /// The number of bytes that contain them.
    pub(crate) const fn bytes(&self) -> u64 {
        match self.order {
            Order::Low | Order::High => self.len.div_ceil(8),
            Order::BigWords => self.len.div_ceil(64) * 8,
        }
    }

    /// The byte that contains a bit, and the bit's mask.
    #[inline(always)]
    const fn byte_and_mask(&self, bit: u64) -> (usize, u8) {
        let (byte, mask) = match self.order {
            Order::Low => (bit >> 3, 1 << (bit & 7)),
            Order::High => (bit >> 3, 0x80 >> (bit & 7)),
            Order::BigWords => ((bit >> 3) ^ 7, 1 << (bit & 7)),
        };
        (self.at + byte as usize, mask)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, file: View<'_>, bit: u64) {
        file.prefetch(self.byte_and_mask(bit).0);
    }

    #[inline(always)]
    pub(crate) fn get(&self, file: View<'_>, bit: u64) -> bool {
        let (byte, mask) = self.byte_and_mask(bit);
        file.get(byte) & mask != 0
    }

    /// Sets a bit; returns whether it was clear.
    #[inline(always)]
    pub(crate) fn set(&self, file: &mut [u8], bit: u64) -> bool {
        let (byte, mask) = self.byte_and_mask(bit);
        let new = file[byte] & mask == 0;
        file[byte] |= mask;
        new
    }

    /// Their range in the file.
    pub(crate) const fn range(&self) -> Range<usize> {
        self.at..self.at + self.bytes() as usize
    }

    /// ORs in the same number of other bits.
    pub(crate) fn union_with(&self, file: &mut [u8], others: &Self, more: View<'_>) {
        unite(&mut file[self.range()], more.slice(others.range()));
    }

    /// The number of set bits.
    pub(crate) fn ones(&self, file: View<'_>) -> u64 {
        let all = file.slice(self.range()).ones();
        // The last byte or word may have bits beyond the filter's.
        let others = (self.len..8 * self.bytes()).filter(|bit| self.get(file, *bit));
        all - others.count() as u64
    }

    /// The share of set bits.
    pub(crate) fn fill(&self, file: View<'_>) -> f64 {
        self.ones(file) as f64 / self.len as f64
    }

    /// Splits them into runs of `len` bits.
    pub(crate) fn chunks(self, len: u64) -> impl ExactSizeIterator<Item = Self> {
        let at = move |i: usize| self.at + i * (len / 8) as usize;
        (0..(self.len / len) as usize).map(move |i| Self {
            at: at(i),
            len,
            ..self
        })
    }
}

/// ORs in other bytes.
pub(crate) fn unite(ours: &mut [u8], others: View<'_>) {
    let others = others.read(0..ours.len());
    for (byte, other) in ours.iter_mut().zip(&*others) {
        *byte |= other;
    }
}

/// Computes remainders by a fixed divisor without division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulus {
    divisor: u64,
    /// floor((2^64 - 1) / divisor)
    reciprocal: u64,
}

impl Modulus {
    /// `divisor` must not be zero.
    pub(crate) const fn new(divisor: u64) -> Self {
        Self {
            divisor,
            reciprocal: u64::MAX / divisor,
        }
    }

    pub(crate) const fn divisor(&self) -> u64 {
        self.divisor
    }

    pub(crate) const fn get(&self) -> u64 {
        self.divisor
    }

    /// `x % divisor`. The estimated quotient is the true one or one less: the
    /// reciprocal is less than 1 too small, so the product is less than
    /// x / 2^64 < 1 too small.
    #[inline(always)]
    pub(crate) const fn of(&self, x: u64) -> u64 {
        let quotient = ((x as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = x - quotient * self.divisor;
        if rest >= self.divisor {
            rest - self.divisor
        } else {
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_behind_the_last_are_not_counted() {
        for order in [Order::Low, Order::High, Order::BigWords] {
            for len in [1, 7, 8, 9, 63, 64, 65, 100] {
                let bits = Bits { at: 3, len, order };
                let file = vec![0xFF; 3 + bits.bytes() as usize];
                assert_eq!(bits.ones(View::Plain(&file)), len, "{order:?}");
            }
        }
    }

    #[test]
    fn remainders_are_those_of_division() {
        let numbers = [0, 1, 2, 63, 64, 9586, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for divisor in numbers.into_iter().filter(|d| *d > 0) {
            let modulus = Modulus::new(divisor);
            for x in numbers
                .into_iter()
                .chain((0..1_000).map(|i| u64::wrapping_mul(i, 0x9E37_79B9_7F4A_7C15) >> (i % 5)))
            {
                assert_eq!(modulus.of(x), x % divisor, "{x} % {divisor}");
            }
        }
    }
}
