//! The behaviour of every filter of bits, written from docs/format.md in the simplest way: a
//! `Vec<bool>`, one position at a time, no words, no batches.

use tamis::Hash;
use tamis::internals::raw::Shape;

pub(crate) struct Oracle {
    shape: Shape,
    bits: Vec<bool>,
}

impl Oracle {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            bits: vec![false; shape.body_len() as usize * 8],
        }
    }

    /// Adds a key and returns whether any of its bits was unset.
    pub(crate) fn insert(&mut self, hash: Hash) -> bool {
        let mut new = false;
        for position in positions(self.shape, hash) {
            new |= !self.bits[position];
            self.bits[position] = true;
        }
        new
    }

    pub(crate) fn contains(&self, hash: Hash) -> bool {
        positions(self.shape, hash).iter().all(|&p| self.bits[p])
    }

    /// The file body with these bits: bit 0 is the lowest of byte 0.
    pub(crate) fn body(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| (0..8).map(|i| u8::from(bits[i]) << i).sum();
        self.bits.chunks(8).map(byte).collect()
    }
}

/// The bits of a key, as positions in the body.
pub(crate) fn positions(shape: Shape, hash: Hash) -> Vec<usize> {
    let (hi, lo) = ((hash.as_u128() >> 64) as u64, hash.as_u128() as u64);
    match shape {
        Shape::Bloom(shape) => {
            let mut x = lo;
            let mut places = Vec::new();
            for _ in 0..shape.hashes() {
                places.push(reduce(x, shape.bits()));
                x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(hi);
            }
            places
        }
        Shape::Blocked(shape) => {
            let banks = u64::from(shape.lines_per_key());
            let per_bank = shape.lines() / banks;
            let (mut hi, mut lo) = (hi, lo);
            let mut places = Vec::new();
            for bank in 0..banks {
                let line = (bank * per_bank) as usize + reduce(hi, per_bank);
                for word in 0..8 {
                    if (8 + word - (lo >> 61)) % 8 < u64::from(shape.hashes_per_line()) {
                        let position = 64 * word + (lo >> (6 * word)) % 64;
                        places.push(line * 512 + position as usize);
                    }
                }
                (hi, lo) = (mix(hi), mix(lo));
            }
            places
        }
        other => panic!("{}: has no bits of its own", other.kind()),
    }
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

fn reduce(x: u64, n: u64) -> usize {
    ((u128::from(x) * u128::from(n)) >> 64) as usize
}
