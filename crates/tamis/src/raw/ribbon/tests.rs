use super::*;
use crate::error::Error;
use crate::raw::sorted::{Decided, sorted_distinct};
use crate::raw::usual_or;
use std::sync::atomic::AtomicU64;

type Built = (RibbonShape, Vec<u64>);

fn build_on(keys: &[Hash], width: u32, threads: usize) -> Built {
    let sorted = sorted_distinct(keys.to_vec(), threads);
    let done = AtomicU64::new(0);
    let mut builder = Builder::new(sorted.len() as u64, width, threads, &done).unwrap();
    builder.feed(&sorted);
    let built = builder.finish().unwrap();
    assert_eq!(done.into_inner(), sorted.len() as u64, "progress");
    built
}

fn build(keys: &[Hash], width: u32) -> Built {
    build_on(keys, width, 2)
}

fn hashes(count: u64, salt: u64) -> Vec<Hash> {
    let hash = |i| {
        let hi = mix(mix(i ^ salt << 40));
        Hash {
            hi,
            lo: mix(mix(hi ^ i)),
        }
    };
    (0..count).map(hash).collect()
}

fn body(words: &[u64]) -> Vec<[u8; 8]> {
    words.iter().map(|word| word.to_ne_bytes()).collect()
}

/// Builds, checks that every key is found singly and in bulk, and returns the table.
fn checked(keys: &[Hash], width: u32) -> (RibbonShape, Vec<[u8; 8]>) {
    let (shape, words) = build(keys, width);
    assert_eq!(words.len() as u64 * 8, shape.body_len());
    assert!((words.len() as u64).is_multiple_of(LINE_WORDS));
    assert_eq!(RibbonShape::decode(shape.encode()).unwrap(), shape);
    let words = body(&words);
    let mut found = vec![false; keys.len()];
    shape.contains_many(&words, keys, &mut found);
    assert!(
        found.iter().all(|&found| found),
        "false no among {} keys",
        keys.len()
    );
    assert!(
        keys.iter().all(|&hash| shape.contains(&words, hash)),
        "false no among {} keys",
        keys.len()
    );
    (shape, words)
}

#[test]
fn never_a_false_no_and_no_waste() {
    let large = [301, 5999, 6000, 6001, 10_000, 100_000, 1_000_000];
    let small = (0..=300).step_by(usual_or(1, 50));
    for count in small.chain(large[..usual_or(7, 1)].iter().copied()) {
        let (_, words) = checked(&hashes(count, 1), 8);
        let bits = words.len() as f64 * 64.0;
        let spare = if count < 10_000 { 1.1 } else { 1.02 };
        assert!(
            bits <= count as f64 * 8.0 * spare + 1024.0,
            "{count} keys take {bits} bits"
        );
    }
}

#[test]
fn the_empty_set_has_no_member() {
    let (shape, words) = checked(&[], 8);
    assert!(words.is_empty() && !shape.contains(&words, Hash { hi: 1, lo: 2 }));
}

#[test]
fn every_width_keeps_its_rate() {
    let keys = hashes(usual_or(20_000, 50), 1);
    let others = hashes(usual_or(1 << 20, 50), 2);
    for width in 1..=32 {
        let (shape, words) = checked(&keys, width);
        let mut found = vec![true; others.len()];
        shape.contains_many(&words, &others, &mut found);
        let single = others.iter().map(|&hash| shape.contains(&words, hash));
        assert!(
            single.eq(found.iter().copied()),
            "batch and single differ at width {width}"
        );
        let (alarms, expected) = (
            found.iter().filter(|&&found| found).count() as f64,
            others.len() as f64 / 2f64.powi(width as i32),
        );
        assert!(
            (alarms - expected).abs() < 5.0 * expected.sqrt() + 1.0,
            "width {width}: {alarms} for {expected}"
        );
    }
}

#[test]
fn only_the_set_matters() {
    for &count in usual_or(&[500, 50_000, 300_000][..], &[600]) {
        let keys = hashes(count, 3);
        let expected = build_on(&keys, 7, 1);
        let mut shuffled: Vec<Hash> = keys
            .iter()
            .chain(&keys[..keys.len() / 2])
            .rev()
            .copied()
            .collect();
        shuffled.sort_unstable_by_key(|hash| mix(hash.lo));
        for &threads in usual_or(&[1, 2, 5][..], &[2]) {
            assert!(
                build_on(&shuffled, 7, threads) == expected,
                "{count} keys, {threads} threads"
            );
        }
    }
}

#[test]
fn pieces_make_the_same_table() {
    let done = AtomicU64::new(0);
    for &count in usual_or(&[100, 7000, 400_000][..], &[100]) {
        let keys = sorted_distinct(hashes(count, 4), 1);
        let expected = build(&keys, 9);
        for piece in [1 + keys.len() / 1000, 70_001] {
            let mut builder = Builder::new(count, 9, 2, &done).unwrap();
            keys.chunks(piece).for_each(|piece| builder.feed(piece));
            assert!(
                builder.finish().unwrap() == expected,
                "{count} keys by {piece}"
            );
        }
    }
}

#[test]
fn poor_hashes_still_build() {
    let good = hashes(usual_or(10_000, 100), 5);
    checked(
        &good
            .iter()
            .map(|hash| Hash { hi: 7, ..*hash })
            .collect::<Vec<_>>(),
        8,
    );
    checked(
        &good
            .iter()
            .map(|hash| Hash { lo: 7, ..*hash })
            .collect::<Vec<_>>(),
        8,
    );
    checked(
        &(0..usual_or(10_000, 100))
            .map(|i| Hash { hi: i, lo: 0 })
            .collect::<Vec<_>>(),
        8,
    );
    checked(&[good[0]; 5000], 8);
}

#[test]
fn bad_shapes_are_refused() {
    let good = [(3, 384), (1, 192), (0, 0)];
    let shape = RibbonShape::new(8, 0, good, 64).unwrap();
    let words = shape.encode();
    for words in [
        [0, words[1], words[2]],                        // rows without shards
        [words[0], words[1], words[2] & !0xFFFF],       // shards without rows
        [words[0], words[1], words[2] & !(0xFF << 48)], // no width
        [words[0], words[1], words[2] | 0xFF << 48],    // too wide
        [words[0], u64::MAX, words[2]],
        [u64::MAX; 3],
    ] {
        assert!(
            matches!(RibbonShape::decode(words), Err(Error::Corrupt { .. })),
            "{words:x?}"
        );
    }
    for shapes in [
        [(3, 384), (0, 0), (1, 192)],
        [(3, 0), (0, 0), (0, 0)],
        [(0, 192), (0, 0), (0, 0)],
        [(1, 64), (0, 0), (0, 0)],
        [(u32::MAX, 4_294_967_232), (u32::MAX, 4_294_967_232), (0, 0)],
    ] {
        assert_eq!(RibbonShape::new(8, 0, shapes, 64), None, "{shapes:?}");
    }
    assert_eq!(RibbonShape::new(8, 0, good, 65), None);
    assert_eq!(RibbonShape::new(0, 0, good, 64), None);
    assert_eq!(RibbonShape::new(33, 0, good, 64), None);
}

#[test]
fn any_body_is_harmless() {
    for &count in usual_or(&[1, 100, 7000, 200_000][..], &[1, 100]) {
        let (shape, words) = build(&hashes(count, 6), 5);
        let others = hashes(usual_or(20_000, 50), 7);
        let edges = [0, 1, u64::MAX]
            .into_iter()
            .flat_map(|hi| [0, 1, u64::MAX].map(|lo| Hash { hi, lo }));
        let asked: Vec<Hash> = others.into_iter().chain(edges).collect();
        let noise: Vec<u64> = (0..words.len() as u64).map(mix).collect();
        for words in [vec![0; words.len()], vec![u64::MAX; words.len()], noise] {
            let mut found = vec![false; asked.len()];
            shape.contains_many(&body(&words), &asked, &mut found);
        }
    }
    // Codes that bump every key of a table without a last layer.
    let shape = RibbonShape::new(8, 0, [(1, 192), (0, 0), (0, 0)], 0).unwrap();
    let words = vec![[0xFF; 8]; shape.body_words as usize];
    assert!(
        hashes(usual_or(1000, 50), 8)
            .into_iter()
            .all(|hash| !shape.contains(&words, hash))
    );
}

/// A second level, with keys that must be found and others that must not.
#[test]
fn denied_keys_are_denied() {
    let sizes = [(1, 0), (0, 1), (50, 70), (5000, 100_000), (100_000, 5000)];
    for &(count, denied) in &sizes[..usual_or(5, 3)] {
        let keys = hashes(count, 9).into_iter().map(|hash| Decided {
            hash,
            denied: false,
        });
        let others = hashes(denied, 10)
            .into_iter()
            .map(|hash| Decided { hash, denied: true });
        let all = sorted_distinct(keys.chain(others).collect(), 2);
        let done = AtomicU64::new(0);
        let mut builder = Builder::new(all.len() as u64, 1, 2, &done).unwrap();
        builder.feed(&all);
        let (shape, words) = builder.finish().unwrap();
        let words = body(&words);
        for key in all {
            assert_eq!(shape.contains(&words, key.hash), !key.denied);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn the_plan_is_near_the_build() {
    for count in [1, 100, 5999, 6001, 50_000, 1_000_000] {
        let (shape, _) = build(&hashes(count, 11), 8);
        let expected = RibbonShape::expected(count, 8).unwrap();
        let ratio = shape.body_len() as f64 / expected.body_len() as f64;
        assert!((ratio - 1.0).abs() < 0.03, "{count}: {ratio}");
    }
}
