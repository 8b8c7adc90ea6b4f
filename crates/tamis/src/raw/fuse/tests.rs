use super::shape::{BLOCK, MAX_BLOCKS, MAX_BUILT_BLOCKS, blocks_and_window};
use super::*;
use crate::error::Error;
use crate::hash::mix;
use crate::raw::sorted::sorted_distinct;
use crate::raw::usual_or;
use std::sync::atomic::AtomicU64;

type Built = (FuseShape, Vec<u64>);

fn build(keys: Vec<Hash>, width: u32, threads: usize) -> Result<Built, Error> {
    let sorted = sorted_distinct(keys, threads);
    let keys = sorted.len() as u64;
    let bits = FuseShape::shard_bits_for(keys);
    let mut sizes = vec![0; 1 << bits];
    for hash in &sorted {
        sizes[((hash.hi >> 1) >> (63 - bits)) as usize] += 1;
    }
    let fullest = sizes.into_iter().max().unwrap();
    let shape = FuseShape::for_keys(keys, fullest, width)?;
    let done = AtomicU64::new(0);
    let mut builder = Builder::new(shape, threads, &done).unwrap();
    builder.feed(&sorted)?;
    let built = builder.finish()?;
    assert_eq!(done.into_inner(), keys, "progress");
    Ok(built)
}

fn hash(i: u64) -> Hash {
    let lo = mix(mix(i));
    Hash {
        hi: mix(lo ^ 0xA076_1D64_78BD_642F),
        lo,
    }
}

fn hashes(range: std::ops::Range<u64>) -> Vec<Hash> {
    range.map(hash).collect()
}

fn bytes(body: &[u64]) -> Vec<[u8; 8]> {
    body.iter().map(|word| word.to_le_bytes()).collect()
}

/// Every key is found, one by one and in bulk by every path, and all paths agree on absent keys; returns how many of
/// those are false positives.
fn check(shape: &FuseShape, words: &[[u8; 8]], keys: &[Hash], absent: &[Hash]) -> usize {
    let one_by_one = |asked: &[Hash]| {
        asked
            .iter()
            .map(|&h| shape.contains(words, h))
            .collect::<Vec<_>>()
    };
    assert!(
        one_by_one(keys).iter().all(|&yes| yes),
        "false no: {shape:?}"
    );
    let mut asked = absent.to_vec();
    asked.extend(keys);
    let expected = one_by_one(&asked);
    let mut found = vec![false; asked.len()];
    shape.contains_hashes(words, &asked, &mut found);
    assert_eq!(found, expected, "{shape:?}");
    if let Some(slots) = Slots::new(shape, words) {
        for isa in Isa::available() {
            found.fill(false);
            run(isa, slots, &asked, &mut found);
            assert_eq!(found, expected, "{shape:?}, {isa:?}");
        }
    }
    expected[..absent.len()].iter().filter(|&&yes| yes).count()
}

#[test]
#[cfg_attr(miri, ignore = "many filters")]
fn every_small_size() {
    let absent = hashes(1 << 40..(1 << 40) + usual_or(100, 10));
    for n in (0..=300).step_by(usual_or(1, 37)) {
        for offset in [0, 1 << 20, 2 << 20] {
            let keys = hashes(offset..offset + n);
            let (shape, body) = build(keys.clone(), 8, 2).unwrap();
            assert!(shape.sizes.body <= 320 + 2 * n, "{shape:?}");
            check(&shape, &bytes(&body), &keys, &absent);
        }
    }
    let (shape, body) = build(Vec::new(), 8, 1).unwrap();
    assert_eq!(check(&shape, &bytes(&body), &[], &absent), 0);
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn sizes_and_rates() {
    let absent = hashes(1 << 40..(1 << 40) + 1_000_000);
    for (n, bound) in [
        (1_000, 1.49),
        (10_000, 1.24),
        (100_000, 1.15),
        (1_000_000, 1.10),
    ] {
        let (shape, body) = build(hashes(0..n), 8, 2).unwrap();
        let yes = check(&shape, &bytes(&body), &hashes(0..n), &absent) as f64;
        let expected = absent.len() as f64 / 256.0;
        assert!(
            (yes - expected).abs() < 5.0 * expected.sqrt(),
            "{yes} of {expected}"
        );
        let size = body.len() as f64 * 64.0 / (8.0 * n as f64);
        assert!(size <= bound, "{size} > {bound}: {shape:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many filters")]
fn every_width() {
    let keys = hashes(0..usual_or(3_000, 40));
    let absent = hashes(1 << 40..(1 << 40) + usual_or(60_000, 40));
    for width in 1..=32 {
        let (shape, body) = build(keys.clone(), width, 2).unwrap();
        let yes = check(&shape, &bytes(&body), &keys, &absent) as f64;
        let expected = absent.len() as f64 / libm::exp2(f64::from(width));
        assert!(
            (yes - expected).abs() <= 6.0 * expected.sqrt() + 2.0,
            "width {width}: {yes} of {expected}"
        );
    }
    for width in [0, 33] {
        assert!(matches!(
            build(keys.clone(), width, 1),
            Err(Error::Parameter { .. })
        ));
    }
}

#[test]
fn the_set_alone_decides_the_bytes() {
    for n in usual_or(&[0, 1, 777, 50_000, 3_100_000][..], &[0, 1, 300]) {
        let n = *n;
        let keys = hashes(0..n);
        let expected = build(keys.clone(), 9, 1).unwrap();
        let twice = keys
            .iter()
            .rev()
            .flat_map(|&h| [h, h])
            .chain(keys.iter().copied().skip(5))
            .collect();
        assert!(build(twice, 9, 3).unwrap() == expected, "{n} keys");
        // Piece by piece, like a caller with too little memory for all keys at once.
        let shape = expected.0;
        let sorted = sorted_distinct(keys, 2);
        let done = AtomicU64::new(0);
        for piece in [1 + sorted.len() / 100, 1_600_000] {
            let mut builder = Builder::new(shape, 2, &done).unwrap();
            for piece in sorted.chunks(piece) {
                builder.feed(piece).unwrap();
            }
            assert!(builder.finish().unwrap() == expected, "{n} keys by {piece}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs many keys")]
fn many_of_one_key_and_hopeless_hashes() {
    let (shape, body) = build(vec![hash(7); 100_000], 12, 2).unwrap();
    check(&shape, &bytes(&body), &[hash(7)], &[]);
    // All keys are in one place: no seed can help, so it ends with an error.
    let hopeless = (0..2_000).map(|i| Hash { hi: 5, lo: mix(i) }).collect();
    assert!(matches!(
        build(hopeless, 8, 2),
        Err(Error::Unsolvable { .. })
    ));
}

#[test]
fn a_place_is_packed_without_loss_up_to_the_largest_shard() {
    let last = MAX_BUILT_BLOCKS * BLOCK - 1;
    let furthest = (1 << build::Packed::FAR) - 1;
    for distance in [64, 1000, furthest] {
        for near in [0, 77, last - distance] {
            for apart in [[0, 0], [63, 63], [1, 62], [40, 0]] {
                let far = near + distance;
                let slots = KeySlots { near, far, apart };
                assert_eq!(build::Packed::new(slots).slots(), slots.numbers());
            }
        }
    }
    let (_, window) = blocks_and_window(u64::MAX / 2000);
    assert!(2 * window * BLOCK <= furthest, "{window}");
    let too_many = FuseShape::for_keys(1 << 36, 600_000_000, 8);
    assert!(matches!(too_many, Err(Error::Parameter { .. })));
    assert!(FuseShape::for_keys(1 << 36, 400_000_000, 8).is_ok());
}

/// Otherwise a key's two slots in a block would cancel out.
#[test]
fn a_pair_is_never_one_slot_twice() {
    for (x, y) in (0..BLOCK).flat_map(|x| (0..BLOCK).map(move |y| (x, y))) {
        let (near, far, apart) = (y, 3 * BLOCK + x, [x, y]);
        let [a, b, c, d] = KeySlots { near, far, apart }.numbers();
        assert!(a != b && a / BLOCK == b / BLOCK, "{x}, {y}");
        assert!(c != d && c / BLOCK == d / BLOCK, "{x}, {y}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn few_seeds_are_enough() {
    let mut tried = 0;
    for n in (1..3_000).step_by(7) {
        let (_, body) = build(hashes(n << 20..(n << 20) + n), 1, 1).unwrap();
        let attempt = (0..100)
            .position(|i| mix(i) | 1 == u64::from_le(body[0]))
            .unwrap();
        assert!(attempt < 40, "{n} keys took {attempt} attempts");
        tried += attempt + 1;
    }
    println!("seeds tried for 429 sets: {tried}");
    assert!(tried < 2 * 429, "{tried}");
}

#[test]
fn corrupt_shapes_are_refused() {
    for (width, bits, blocks, window) in [
        (0, 0, 9, 2),
        (33, 0, 9, 2),
        (8, 17, 9, 2),
        (8, 64, 9, 2),
        (8, 1, 0, 0),
        (8, 0, 0, 1),
        (8, 0, 1, 1),
        (8, 0, 2, 1),
        (8, 0, 8, 4),
        (8, 0, 9, 0),
        (8, 0, 9, 5),
        (8, 0, 9, u32::MAX),
        (8, 0, MAX_BLOCKS, 2),
        (8, 0, u32::MAX, 2),
    ] {
        assert!(FuseShape::new(width, bits, blocks, window).is_err());
    }
    // Any accepted shape, with any body of its length, answers without a panic.
    for i in 0..usual_or(20_000, 8) {
        let [a, b, c] = [mix(i), mix(i + (1 << 32)), mix(i + (1 << 33))];
        let Ok(shape) = FuseShape::new(
            (a >> 8) as u32 % 34,
            (a >> 16) as u32 % 5,
            (a >> 24) as u32 % 40,
            (a >> 32) as u32 % 20,
        ) else {
            continue;
        };
        let words: Vec<[u8; 8]> = (0..shape.sizes.body / 8)
            .map(|i| mix(i ^ b).to_le_bytes())
            .collect();
        let mut asked: Vec<Hash> = (0..20).map(|i| hash(c ^ i)).collect();
        asked.extend([
            Hash {
                hi: u64::MAX,
                lo: c,
            },
            Hash { hi: 0, lo: c },
        ]);
        check(&shape, &words, &[], &asked);
    }
}
