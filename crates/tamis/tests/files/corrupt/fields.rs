//! Header fields with values out of their range, under a correct header checksum.

use super::{blocked, bloom, keyed, keyed_apart, refused};
use crate::common::*;
use std::ops::Range;

/// A name, a sound file, the overwritten field, the new bytes, and the error.
type Damage<'a> = (&'a str, fn() -> Vec<u8>, Range<usize>, &'a [u8], &'a str);

#[test]
fn fields_out_of_their_range() {
    // With a correct header checksum, so that the field itself is checked.
    let table: &[Damage] = &[
        (
            "version 0",
            blocked,
            VERSION,
            &[0, 0],
            "format version: expected 1",
        ),
        (
            "version 2",
            blocked,
            VERSION,
            &[2, 0],
            "format version: expected 1 (a newer tamis may read it), got 2",
        ),
        (
            "version 65535",
            blocked,
            VERSION,
            &[0xff, 0xff],
            "got 65535",
        ),
        (
            "kind 0",
            blocked,
            KIND,
            &[0],
            "kind: expected a known kind, got 0",
        ),
        (
            "kind 200",
            blocked,
            KIND,
            &[200],
            "kind: expected a known kind, got 200",
        ),
        (
            "hash 0",
            blocked,
            HASH,
            &[0],
            "hash: expected 1 (XXH3) or 2 (SipHash), got 0",
        ),
        (
            "hash 3",
            blocked,
            HASH,
            &[3],
            "hash: expected 1 (XXH3) or 2 (SipHash), got 3",
        ),
        (
            "flag of a keyed filter on a fast one",
            blocked,
            FLAGS,
            &1u32.to_le_bytes(),
            "flags: expected known flags, got 0x1",
        ),
        (
            "unknown flag",
            keyed,
            FLAGS,
            &8u32.to_le_bytes(),
            "flags: expected known flags, got 0x8",
        ),
        (
            "a key of one value, said in two ways",
            blocked,
            FLAGS,
            &0x100u32.to_le_bytes(),
            "flags: expected known flags, got 0x100",
        ),
        (
            "more values than there are",
            blocked,
            FLAGS,
            &0x1_0000u32.to_le_bytes(),
            "flags: expected known flags, got 0x10000",
        ),
        (
            "all flags",
            keyed_apart,
            FLAGS,
            &[0xff; 4],
            "flags: expected known flags, got 0xffffffff",
        ),
        (
            "rate 0",
            blocked,
            RATE,
            &0f64.to_le_bytes(),
            "rate: expected between 0 and 1, got 0",
        ),
        (
            "rate 1",
            blocked,
            RATE,
            &1f64.to_le_bytes(),
            "rate: expected between 0 and 1, got 1",
        ),
        (
            "rate below 0",
            blocked,
            RATE,
            &(-0.5f64).to_le_bytes(),
            "rate: expected between 0 and 1, got -0.5",
        ),
        (
            "rate NaN",
            blocked,
            RATE,
            &f64::NAN.to_le_bytes(),
            "rate: expected between 0 and 1, got NaN",
        ),
        (
            "rate infinite",
            blocked,
            RATE,
            &f64::INFINITY.to_le_bytes(),
            "rate: expected between 0 and 1, got inf",
        ),
        (
            "seed of 16 bytes",
            blocked,
            SECRET,
            &[1; 16],
            "bytes after the seed: expected zero",
        ),
        (
            "key check without a key",
            blocked,
            KEY_CHECK,
            &[1; 8],
            "key check without a key: expected zero",
        ),
        (
            "key check beside the key",
            keyed,
            KEY_CHECK,
            &[1; 8],
            "key check beside the key: expected zero",
        ),
        (
            "key in the file and apart",
            keyed_apart,
            SECRET,
            &[1; 16],
            "secret that is kept apart: expected zero",
        ),
        (
            "key check of another key",
            keyed_apart,
            KEY_CHECK,
            &[1; 8],
            "not the secret key",
        ),
        (
            "no lines",
            blocked,
            SHAPE_1,
            &[0; 8],
            "lines: expected 1 to 2^54, got 0",
        ),
        (
            "2^54 + 1 lines",
            blocked,
            SHAPE_1,
            &((1u64 << 54) + 1).to_le_bytes(),
            "lines: expected 1 to 2^54",
        ),
        (
            "all lines",
            blocked,
            SHAPE_1,
            &[0xff; 8],
            "lines: expected 1 to 2^54, got 18446744073709551615",
        ),
        (
            "no hashes per line",
            blocked,
            SHAPE_2A,
            &[0; 4],
            "hashes per line: expected 1 to 8, got 0",
        ),
        (
            "nine hashes per line",
            blocked,
            SHAPE_2A,
            &9u32.to_le_bytes(),
            "hashes per line: expected 1 to 8, got 9",
        ),
        (
            "absurd hashes per line",
            blocked,
            SHAPE_2A,
            &[0xff; 4],
            "hashes per line: expected 1 to 8, got 4294967295",
        ),
        (
            "no lines per key",
            blocked,
            SHAPE_2B,
            &[0; 4],
            "lines per key: expected 1 to 4, got 0",
        ),
        (
            "five lines per key",
            blocked,
            SHAPE_2B,
            &5u32.to_le_bytes(),
            "lines per key: expected 1 to 4, got 5",
        ),
        (
            "lines that are no equal banks",
            blocked,
            SHAPE_2B,
            &3u32.to_le_bytes(),
            "lines: expected a multiple of the lines per key, got 2",
        ),
        (
            "third shape word",
            blocked,
            SHAPE_3,
            &7u64.to_le_bytes(),
            "third shape word: expected 0, got 7",
        ),
        (
            "third shape word of bloom",
            bloom,
            SHAPE_3,
            &[0xff; 8],
            "third shape word: expected 0",
        ),
        (
            "no bits",
            bloom,
            SHAPE_1,
            &[0; 8],
            "bits: expected 1 to 2^63, got 0",
        ),
        (
            "2^63 + 1 bits",
            bloom,
            SHAPE_1,
            &((1u64 << 63) + 1).to_le_bytes(),
            "bits: expected 1 to 2^63",
        ),
        (
            "no hashes",
            bloom,
            SHAPE_2A,
            &[0; 4],
            "hashes: expected 1 to 64, got 0",
        ),
        (
            "65 hashes",
            bloom,
            SHAPE_2A,
            &65u32.to_le_bytes(),
            "hashes: expected 1 to 64, got 65",
        ),
        (
            "absurd hashes",
            bloom,
            SHAPE_2A,
            &[0xff; 4],
            "hashes: expected 1 to 64, got 4294967295",
        ),
        (
            "bloom with lines per key",
            bloom,
            SHAPE_2B,
            &1u32.to_le_bytes(),
            "second half of the second shape word: expected 0, got 1",
        ),
        (
            "bloom as blocked",
            bloom,
            KIND,
            &[2],
            "lines per key: expected 1 to 4, got 0",
        ),
        (
            "blocked as bloom",
            blocked,
            KIND,
            &[1],
            "second half of the second shape word",
        ),
        (
            "body length 0",
            blocked,
            BODY_LEN,
            &[0; 8],
            "body length: expected 128 as the shape needs, got 0",
        ),
        (
            "body length of 2^50",
            blocked,
            BODY_LEN,
            &(1u64 << 50).to_le_bytes(),
            "body length: expected 128",
        ),
        (
            "one line more",
            blocked,
            SHAPE_1,
            &3u64.to_le_bytes(),
            "body length: expected 192 as the shape needs, got 128",
        ),
    ];
    for (name, make, field, value, expected) in table {
        let mut bytes = make();
        bytes[field.clone()].copy_from_slice(value);
        reseal_header(&mut bytes);
        refused(name, &bytes, expected);
    }
}
