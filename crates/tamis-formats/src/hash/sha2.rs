//! SHA-256, SHA-384 and SHA-512, as in FIPS 180-4. They hash keys, not files, so short and plain
//! code is enough.

/// The first 64 bits of the fractional parts of the primes' square roots;
/// SHA-256 uses the first 32 of each.
const START: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The same for the ninth to sixteenth prime, for SHA-384.
const START_384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];

/// The same for cube roots.
const ROUNDS: [u64; 80] = [
    0x428a_2f98_d728_ae22,
    0x7137_4491_23ef_65cd,
    0xb5c0_fbcf_ec4d_3b2f,
    0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538,
    0x59f1_11f1_b605_d019,
    0x923f_82a4_af19_4f9b,
    0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242,
    0x1283_5b01_4570_6fbe,
    0x2431_85be_4ee4_b28c,
    0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f,
    0x80de_b1fe_3b16_96b1,
    0x9bdc_06a7_25c7_1235,
    0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2,
    0xefbe_4786_384f_25e3,
    0x0fc1_9dc6_8b8c_d5b5,
    0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275,
    0x4a74_84aa_6ea6_e483,
    0x5cb0_a9dc_bd41_fbd4,
    0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab,
    0xa831_c66d_2db4_3210,
    0xb003_27c8_98fb_213f,
    0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2,
    0xd5a7_9147_930a_a725,
    0x06ca_6351_e003_826f,
    0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc,
    0x2e1b_2138_5c26_c926,
    0x4d2c_6dfc_5ac4_2aed,
    0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de,
    0x766a_0abb_3c77_b2a8,
    0x81c2_c92e_47ed_aee6,
    0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364,
    0xa81a_664b_bc42_3001,
    0xc24b_8b70_d0f8_9791,
    0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218,
    0xd699_0624_5565_a910,
    0xf40e_3585_5771_202a,
    0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8,
    0x1e37_6c08_5141_ab53,
    0x2748_774c_df8e_eb99,
    0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63,
    0x4ed8_aa4a_e341_8acb,
    0x5b9c_ca4f_7763_e373,
    0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc,
    0x78a5_636f_4317_2f60,
    0x84c8_7814_a1f0_ab72,
    0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28,
    0xa450_6ceb_de82_bde9,
    0xbef9_a3f7_b2c6_7915,
    0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c,
    0xd186_b8c7_21c0_c207,
    0xeada_7dd6_cde0_eb1e,
    0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba,
    0x0a63_7dc5_a2c8_98a6,
    0x113f_9804_bef9_0dae,
    0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84,
    0x32ca_ab7b_40c7_2493,
    0x3c9e_be0a_15c9_bebc,
    0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6,
    0x597f_299c_fc65_7e2a,
    0x5fcb_6fab_3ad6_faec,
    0x6c44_198c_4a47_5817,
];

/// The algorithm for both word sizes, with different rotations.
macro_rules! sha2 {
    ($name:ident, $start:ident, $word:ty, $rounds:literal,
     $a:literal $b:literal $c:literal, $d:literal $e:literal $f:literal,
     $g:literal $h:literal $i:literal, $j:literal $k:literal $l:literal) => {
        pub(crate) fn $name(bytes: &[u8]) -> [u8; 8 * size_of::<$word>()] {
            const WORD: usize = size_of::<$word>();
            const BLOCK: usize = 16 * WORD;
            let first = |long: u64| (long >> (64 - <$word>::BITS)) as $word;
            let mut state = $start.map(first);
            let mut compress = |block: &[u8; BLOCK]| {
                let mut words = [0; $rounds];
                for (word, bytes) in words.iter_mut().zip(block.as_chunks::<WORD>().0) {
                    *word = <$word>::from_be_bytes(*bytes);
                }
                for i in 16..$rounds {
                    let (x, y): ($word, $word) = (words[i - 15], words[i - 2]);
                    let x = x.rotate_right($a) ^ x.rotate_right($b) ^ x >> $c;
                    let y = y.rotate_right($d) ^ y.rotate_right($e) ^ y >> $f;
                    let sum = words[i - 16].wrapping_add(x).wrapping_add(words[i - 7]);
                    words[i] = sum.wrapping_add(y);
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                for (word, round) in words.into_iter().zip(ROUNDS) {
                    let mixed = e.rotate_right($g) ^ e.rotate_right($h) ^ e.rotate_right($i);
                    let choice = e & f ^ !e & g;
                    let sum = h.wrapping_add(mixed).wrapping_add(choice);
                    let one = sum.wrapping_add(first(round)).wrapping_add(word);
                    let mixed = a.rotate_right($j) ^ a.rotate_right($k) ^ a.rotate_right($l);
                    let two = mixed.wrapping_add(a & b ^ a & c ^ b & c);
                    (h, g, f, e, d) = (g, f, e, d.wrapping_add(one), c);
                    (c, b, a) = (b, a, one.wrapping_add(two));
                }
                for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *word = word.wrapping_add(more);
                }
            };
            let (blocks, rest) = bytes.as_chunks::<BLOCK>();
            blocks.iter().for_each(&mut compress);
            // A one, zeros, and the number of bits in the last two words.
            let mut end = [0; 2 * BLOCK];
            end[..rest.len()].copy_from_slice(rest);
            end[rest.len()] = 0x80;
            let blocks = if rest.len() < BLOCK - 2 * WORD { 1 } else { 2 };
            let len = blocks * BLOCK;
            end[len - 8..len].copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
            end.as_chunks::<BLOCK>().0[..blocks].iter().for_each(&mut compress);
            let mut out = [0; 8 * WORD];
            for (bytes, word) in out.as_chunks_mut::<WORD>().0.iter_mut().zip(state) {
                *bytes = word.to_be_bytes();
            }
            out
        }
    };
}

sha2!(sha256, START, u32, 64, 7 18 3, 17 19 10, 6 11 25, 2 13 22);
sha2!(sha512, START, u64, 80, 1 8 7, 19 61 6, 14 18 41, 28 34 39);
sha2!(sha512_of_384, START_384, u64, 80, 1 8 7, 19 61 6, 14 18 41, 28 34 39);

pub(crate) fn sha384(bytes: &[u8]) -> [u8; 48] {
    let whole = sha512_of_384(bytes);
    std::array::from_fn(|i| whole[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(digest: &[u8]) -> u64 {
        u64::from_be_bytes(*digest.first_chunk().unwrap())
    }

    /// The output of `sha256sum` and `sha512sum` for this many letters.
    #[test]
    fn digests_are_the_known_ones() {
        assert_eq!(start(&sha256(b"abc")), 0xba78_16bf_8f01_cfea);
        assert_eq!(start(&sha512(b"abc")), 0xddaf_35a1_9361_7aba);
        assert_eq!(start(&sha384(b"abc")), 0xcb00753f45a35e8b);
        assert_eq!(start(&sha384(&[b'a'; 200])), 0x0691b6e978614b67);
        for (len, small, large) in [
            (0, 0xe3b0c44298fc1c14, 0xcf83e1357eefb8bd),
            (55, 0x9f4390f8d30c2dd9, 0xb0220c772cbf6c18),
            (56, 0xb35439a4ac6f0948, 0x962b64aae357d2a4),
            (64, 0xffe054fe7ae0cb6d, 0x01d35c10c6c38c2d),
            (111, 0x6374f73208854473, 0xfa9121c7b32b9e01),
            (112, 0xf54353008a255326, 0xc01d080efd492776),
            (127, 0xc57e9278af78fa3c, 0x828613968b501dc0),
            (128, 0x6836cf13bac400e9, 0xb73d1929aa615934),
            (1000, 0x41edece42d63e8d9, 0x67ba5535a46e3f86),
        ] {
            let text = vec![b'a'; len];
            assert_eq!(start(&sha256(&text)), small, "{len}");
            assert_eq!(start(&sha512(&text)), large, "{len}");
        }
    }
}
