//! SHA-256, as FIPS 180-4 has it: of keys, not of files, so short and plain.

/// The first 32 bits of the fractional parts of roots of primes, computed once.
const fn root_bits<const N: usize>(cube: bool) -> [u32; N] {
    let mut out = [0; N];
    let (mut prime, mut found) = (2u128, 0);
    while found < N {
        let mut divisor = 2;
        while divisor * divisor <= prime && !prime.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor * divisor > prime {
            // floor(root * 2^32), by bits from the highest.
            let (mut root, mut bit) = (0u128, 1u128 << 40);
            while bit > 0 {
                let next = root | bit;
                let fits = if cube {
                    next * next * next <= prime << 96
                } else {
                    next * next <= prime << 64
                };
                if fits {
                    root = next;
                }
                bit >>= 1;
            }
            out[found] = root as u32;
            found += 1;
        }
        prime += 1;
    }
    out
}

const START: [u32; 8] = root_bits(false);
const ROUNDS: [u32; 64] = root_bits(true);

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut state = START;
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| compress(&mut state, block));
    let mut end = [0; 128];
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let len = if rest.len() < 56 { 64 } else { 128 };
    end[len - 8..len].copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    let (blocks, _) = end[..len].as_chunks::<64>();
    blocks.iter().for_each(|block| compress(&mut state, block));
    let mut out = [0; 32];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let (x, y) = (words[i - 15], words[i - 2]);
        let x = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
        let y = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
        let sum = words[i - 16].wrapping_add(x).wrapping_add(words[i - 7]);
        words[i] = sum.wrapping_add(y);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in words.into_iter().zip(ROUNDS) {
        let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let sum = h.wrapping_add(mixed).wrapping_add(choice);
        let first = sum.wrapping_add(round).wrapping_add(word);
        let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = mixed.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e, d) = (g, f, e, d.wrapping_add(first), c);
        (c, b, a) = (b, a, first.wrapping_add(second));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sha256sum` says.
    #[test]
    fn digests_are_the_known_ones() {
        let start = |bytes: &[u8]| u64::from_be_bytes(*sha256(bytes).first_chunk().unwrap());
        assert_eq!(start(b""), 0xe3b0_c442_98fc_1c14);
        assert_eq!(start(b"abc"), 0xba78_16bf_8f01_cfea);
        for (len, expected) in [
            (55, 0x9f4390f8d30c2dd9),
            (56, 0xb35439a4ac6f0948),
            (64, 0xffe054fe7ae0cb6d),
            (1000, 0x41edece42d63e8d9),
        ] {
            assert_eq!(start(&vec![b'a'; len]), expected, "{len}");
        }
    }
}
