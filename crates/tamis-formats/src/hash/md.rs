//! MD5 and SHA-1, as in RFC 1321 and FIPS 180-4, for filters whose systems use them. They hash keys, so short and plain
//! code is enough. Not used for security.

/// Pads bytes as both do (a one, zeros, and the number of bits), and runs `compress` on blocks of 64.
fn blocks(bytes: &[u8], length: [u8; 8], mut compress: impl FnMut(&[u8; 64])) {
    let (whole, rest) = bytes.as_chunks::<64>();
    whole.iter().for_each(&mut compress);
    let mut end = [0; 128];
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let len = if rest.len() < 56 { 64 } else { 128 };
    end[len - 8..len].copy_from_slice(&length);
    end[..len].as_chunks::<64>().0.iter().for_each(compress);
}

pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    const TURNS: [[u32; 4]; 4] = [
        [7, 12, 17, 22],
        [5, 9, 14, 20],
        [4, 11, 16, 23],
        [6, 10, 15, 21],
    ];
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let length = (8 * bytes.len() as u64).to_le_bytes();
    blocks(bytes, length, |block| {
        let word = |at: usize| u32::from_le_bytes(block.as_chunks::<4>().0[at]);
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mixed, at) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            // The first 32 bits of a sine's fraction; the angle depends on the round.
            let round = ((i + 1) as f64).sin().abs() * 4_294_967_296.0;
            let sum = a.wrapping_add(mixed).wrapping_add(round as u32);
            let turned = sum
                .wrapping_add(word(at % 16))
                .rotate_left(TURNS[i / 16][i % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
        }
        for (word, more) in state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(more);
        }
    });
    let mut out = [0; 16];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    out
}

pub(crate) fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut state = [
        0x6745_2301u32,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let length = (8 * bytes.len() as u64).to_be_bytes();
    blocks(bytes, length, |block| {
        let mut words = [0; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for i in 16..80 {
            words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.into_iter().enumerate() {
            let (mixed, round) = match i / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6u32),
            };
            let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
            let sum = sum.wrapping_add(round).wrapping_add(word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (word, more) in state.iter_mut().zip([a, b, c, d, e]) {
            *word = word.wrapping_add(more);
        }
    });
    let mut out = [0; 20];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(digest: &[u8]) -> u64 {
        u64::from_be_bytes(*digest.first_chunk().unwrap())
    }

    /// The output of `md5sum` and `sha1sum` for this many letters.
    #[test]
    fn digests_are_the_known_ones() {
        for (len, small, large) in [
            (0, 0xd41d8cd98f00b204, 0xda39a3ee5e6b4b0d),
            (1, 0x0cc175b9c0f1b6a8, 0x86f7e437faa5a7fc),
            (3, 0x47bce5c74f589f48, 0x7e240de74fb1ed08),
            (55, 0xef1772b6dff9a122, 0xc1c8bbdc22796e28),
            (56, 0x3b0c8ac703f828b0, 0xc2db330f6083854c),
            (63, 0xb06521f39153d618, 0x03f09f5b158a7a8c),
            (64, 0x014842d480b57149, 0x0098ba824b5c1642),
            (65, 0xc743a45e0d2e6a95, 0x11655326c708d703),
            (119, 0x8a7bd0732ed6a28c, 0xee971065aaa017e0),
            (120, 0x5f61c0ccad4cac44, 0xf34c1488385346a5),
            (128, 0xe510683b3f5ffe40, 0xad5b3fdbcb526778),
            (1000, 0xcabe45dcc9ae5b66, 0x291e9a6c66994949),
        ] {
            let text = vec![b'a'; len];
            assert_eq!(start(&md5(&text)), small, "{len}");
            assert_eq!(start(&sha1(&text)), large, "{len}");
        }
    }
}
