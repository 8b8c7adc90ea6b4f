//! What every filter of bits must do, written from docs/format.md in the
//! plainest way: a `Vec<bool>`, one position at a time, no word, no batch.

use tamis::Hash;
use tamis::raw::Shape;

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

    /// Adds a key; whether any of its bits was not set.
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

    /// The body of a file with these bits: bit 0 is the lowest of byte 0.
    pub(crate) fn body(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| (0..8).map(|i| u8::from(bits[i]) << i).sum();
        self.bits.chunks(8).map(byte).collect()
    }
}

/// The bits of a key, as places in the body.
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
            let mut word = lo;
            let mut places = Vec::new();
            for line in [hi, mix(hi)]
                .into_iter()
                .take(shape.lines_per_key() as usize)
            {
                let line = reduce(line, shape.lines());
                let in_line = line_positions(&mut word, shape.hashes_per_line());
                places.extend(in_line.iter().map(|p| line * 512 + p));
            }
            places
        }
        other => panic!("{}: has no bits of its own", other.kind()),
    }
}

/// `count` distinct places in a line of 512 bits.
fn line_positions(word: &mut u64, count: u32) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let mut fields = *word;
    for i in 0..count {
        if i != 0 && i % 7 == 0 {
            *word = mix(*word);
            fields = *word;
        }
        let mut place = (fields % 512) as usize;
        fields /= 512;
        while places.contains(&place) {
            place = (place + 1) % 512;
        }
        places.push(place);
    }
    *word = mix(*word);
    places
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

fn reduce(x: u64, n: u64) -> usize {
    ((u128::from(x) * u128::from(n)) >> 64) as usize
}
