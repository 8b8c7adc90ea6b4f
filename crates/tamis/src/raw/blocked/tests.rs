//! Every code path on this machine equals the specification, which equals the documentation.

use super::*;
use crate::raw::usual_or;
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;

/// `docs/format.md`, word for word.
fn documented(lo: u64, k: u64) -> Line<u64> {
    let mut line = [0; LINE_WORDS];
    for w in 0..8 {
        if (w + 8 - (lo >> 61)) % 8 < k {
            line[w as usize] |= 1 << ((lo >> (6 * w)) & 63);
        }
    }
    line
}

fn hashes(max: usize) -> impl Strategy<Value = Vec<Hash>> {
    let half = || prop_oneof![8 => any::<u64>(), 1 => 0u64..600, 1 => Just(u64::MAX)];
    prop::collection::vec(
        (half(), half()).prop_map(|(hi, lo)| Hash { hi, lo }),
        0..usual_or(max, max / 20),
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(usual_or(500, 2)))]

    #[test]
    fn the_mask_is_the_documented_one(lo: u64, k in 1u32..=8) {
        let mask = scalar::mask(lo, covers(k)[(lo >> 61) as usize]);
        prop_assert_eq!(mask, documented(lo, k.into()));
        prop_assert_eq!(mask.iter().map(|w| w.count_ones()).sum::<u32>(), k);
    }

    #[test]
    fn every_path_equals_scalar(
        per_bank in 1u64..12,
        k in 1u32..=8,
        per_key in 1u32..=4,
        inserted in hashes(300),
        asked in hashes(300),
        values in prop::collection::vec(any::<u64>(), 0..usual_or(200, 10)),
    ) {
        let shape = BlockedShape::new(per_bank * u64::from(per_key), k, per_key).unwrap();
        let of_values: Vec<Hash> = values.iter().map(|v| Hash::from_u64(*v)).collect();
        let inserted = [inserted, of_values.iter().copied().step_by(2).collect()].concat();
        let asked = [&inserted[..], &asked, &of_values].concat();

        // The specification, one key at a time.
        let mut spec = vec![0u64; shape.lines() as usize * LINE_WORDS];
        let spec_new: Vec<bool> = inserted.iter().map(|hash| {
            let mut new = false;
            shape.for_each_line(*hash, |line, bits| {
                for (word, bit) in spec[line as usize * LINE_WORDS..].iter_mut().zip(bits) {
                    new |= u64::from_le(*word) & bit != bit;
                    *word |= bit.to_le();
                }
            });
            new
        }).collect();
        let bytes: Vec<[u8; 8]> = spec.iter().map(|w| w.to_ne_bytes()).collect();
        let spec_found: Vec<bool> = asked.iter().map(|hash| {
            let mut all = true;
            shape.for_each_line(*hash, |line, bits| {
                let words = &bytes[line as usize * LINE_WORDS..];
                all &= words.iter().zip(bits).all(|(word, bit)| word.get() & bit == bit);
            });
            all
        }).collect();
        prop_assert!(spec_found[..inserted.len()].iter().all(|found| *found));

        for shape in Isa::available().into_iter().map(|isa| shape.on(isa)) {
            let mut words = vec![0; spec.len()];
            let new: Vec<bool> = inserted.iter().map(|hash| shape.insert_alone(&mut words, *hash)).collect();
            prop_assert_eq!((&words, &new), (&spec, &spec_new), "{:?}, one by one", shape);
            let (mut words, mut new) = (vec![0; spec.len()], vec![true; inserted.len()]);
            shape.insert_hashes(&mut words, &inserted, &mut new);
            prop_assert_eq!((&words, &new), (&spec, &spec_new), "{:?}, in a batch", shape);
            // Through the shared path; first one by one, then in a batch.
            let shared: Vec<_> = spec.iter().map(|_| AtomicU64::new(0)).collect();
            let (one_by_one, batch) = inserted.split_at(inserted.len() / 2);
            let mut new: Vec<bool> = one_by_one.iter().map(|hash| shape.insert(&shared, *hash)).collect();
            new.resize(inserted.len(), true);
            shape.insert_many_shared(&shared, batch, &mut new[one_by_one.len()..]);
            let words: Vec<u64> = shared.into_iter().map(AtomicU64::into_inner).collect();
            prop_assert_eq!((&words, &new), (&spec, &spec_new), "{:?}, shared", shape);

            let found: Vec<bool> = asked.iter().map(|hash| shape.contains(&bytes, *hash)).collect();
            prop_assert_eq!(&found, &spec_found, "{:?}, one by one", shape);
            let mut found = vec![true; asked.len()];
            shape.contains_hashes(&bytes, &asked, &mut found);
            prop_assert_eq!(&found, &spec_found, "{:?}, in a batch", shape);
            // Keys that are hashed in the process.
            let mut found = vec![true; values.len()];
            shape.contains_hashes(&bytes, &values, &mut found);
            prop_assert_eq!(&found[..], &spec_found[asked.len() - values.len()..], "{:?}", shape);
        }
    }
}
