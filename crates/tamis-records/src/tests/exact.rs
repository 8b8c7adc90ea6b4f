use super::common::Random;
use crate::exact::ExactSet;
use std::collections::HashSet;
use tamis::Hash;

#[test]
fn answers_as_a_hash_set_does_while_it_grows() {
    let mut random = Random(6);
    let (mut set, mut oracle) = (ExactSet::default(), HashSet::new());
    for round in 0..400 {
        let digests: Vec<Hash> = (0..random.below(2000))
            .map(|_| {
                let id = random.below(1 + round * 500) as u64;
                Hash::from_u128(id.into())
            })
            .collect();
        let mut new = vec![false; digests.len()];
        set.insert_many(&digests, &mut new).unwrap();
        for (digest, new) in digests.iter().zip(new) {
            assert_eq!(new, oracle.insert(digest.as_u128()), "{digest:?}");
        }
        assert_eq!(set.len(), oracle.len());
    }
}

#[test]
fn the_digest_that_looks_like_a_free_slot_is_a_digest_too() {
    let mut set = ExactSet::default();
    assert!(set.is_empty());
    let new = [[0, 0], [0, 1], [0, 0]].map(|digest| set.insert(digest));
    assert_eq!((new, set.len()), ([true, true, false], 2));
}

#[test]
fn sixteen_bytes_a_key_at_half_to_four_fifths_load_and_no_growth_if_sized() {
    let mut random = Random(7);
    let mut set = ExactSet::default();
    for keys in (10_000..500_000).step_by(10_000) {
        let digests: Vec<Hash> = (0..10_000).map(|_| Hash::from_u64(random.next())).collect();
        set.insert_many(&digests, &mut vec![false; digests.len()])
            .unwrap();
        assert_eq!(set.len(), keys);
        let within = keys * 20..keys * 31 + (2 << 20); // up to a huge page more
        assert!(
            within.contains(&set.memory()),
            "{} bytes for {keys} keys",
            set.memory()
        );
    }
    let mut sized = ExactSet::with_capacity(100_000).unwrap();
    assert!(ExactSet::with_capacity(usize::MAX / 64).is_err());
    let before = sized.memory();
    let digests: Vec<Hash> = (0..100_000)
        .map(|_| Hash::from_u64(random.next()))
        .collect();
    sized
        .insert_many(&digests, &mut vec![false; digests.len()])
        .unwrap();
    assert_eq!(sized.memory(), before);
}
