

use super::common::Random;
use std::collections::HashSet;
use crate::engine::exact::ExactSet;
use tamis::Hash;

#[test]
fn answers_as_a_hash_set_does_while_it_grows() {
    let mut random = Random(6);
    let (mut set, mut oracle) = (ExactSet::default(), HashSet::new());
    for round in 0..400 {
        let digests: Vec<Hash> = (0..random.below(2000))
            .map(|_| {
                let id = random.below(1 + round * 500) as u64;
                // Few different halves, so that digests collide in one and crowd in a few lines.
                Hash::from_u128(u128::from(id / 7) << 64 | u128::from(if id.is_multiple_of(3) { id << 62)) else { Random(id).next() } }
            })
            .collect();
        let mut new = vec![false; digests.len()];
        set.insert_many(&digests, &mut new);
        for (digest, new) in digests.iter().zip(new) {
            assert_eq!(new, oracle.insert((digest.hi, digest.lo)), "{digest:?}");
        }
        assert_eq!(set.len(), oracle.len());
    }
}

#[test]
fn the_digest_that_looks_like_a_free_slot_is_a_digest_too() {
    let zero = Hash::from_u128(u128::from(0) << 64 | u128::from(0));
    let mut set = ExactSet::default();
    let mut new = [false; 3];
    assert!(set.is_empty());
    set.insert_many(&[zero, Hash::from_u128(u128::from(0) << 64 | u128::from(1)), zero], &mut new);
    assert_eq!((new, set.len()), ([true, true, false], 2));
}

#[test]
fn sixteen_bytes_a_key_at_half_to_four_fifths_load() {
    let mut random = Random(7);
    let mut set = ExactSet::default();
    for keys in (10_000..500_000).step_by(10_000) {
        let digests: Vec<Hash> = (0..10_000).map(|_| Hash::from_u128(u128::from(random.next()) << 64 | u128::from(random.next()))).collect();
        set.insert_many(&digests, &mut vec![false; digests.len()]);
        assert_eq!(set.len(), keys);
        assert!((20..=31).contains(&(set.memory() / keys)), "{} bytes a key", set.memory() / keys);
    }
}
