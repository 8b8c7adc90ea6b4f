//! Every answer matches the oracle, and every bit is where the format says.

use super::oracle::Oracle;
use super::subject::*;
use proptest::prelude::*;
use tamis::internals::raw::{BlockedShape, BloomShape, Shape};
use tamis::{AnyFilter, Hash, Hasher, Plan};

/// The body within the bytes of a filter.
fn body(filter: &AnyFilter) -> Vec<u8> {
    filter.to_bytes().split_off(128)
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn insert_says_new_exactly_when_the_oracle_does(case in cases(), foreign in keys(0..200)) {
        for subject in subjects(Ability::Bits) {
            for way in WAYS {
                let mut filter = subject.empty(case.capacity, case.rate, case.hasher);
                let mut oracle = Oracle::new(filter.shape());
                let hash = |key: &Key| case.hasher.hash(key);
                let expected: Vec<bool> = case.keys.iter().map(|k| oracle.insert(hash(k))).collect();
                let told = way.insert(&mut filter, &case.keys);
                prop_assert_eq!(told, expected, "{}, {:?}", subject.name, way);
                prop_assert_eq!(body(&filter), oracle.body(), "{}, {:?}", subject.name, way);
                for key in &foreign {
                    prop_assert_eq!(
                        (filter.contains(key), contains_hash(&filter, hash(key))),
                        (oracle.contains(hash(key)), oracle.contains(hash(key))),
                        "{}", subject.name
                    );
                }
            }
        }
    }

    /// Any geometry, including those that no plan chooses, and any hash, including those that no
    /// key has: `from_u128` is a bijection, so weak input is the only thing it can't give; `arch`
    /// tests that.
    #[test]
    fn every_shape_is_the_oracles(
        shape in shapes(),
        values in prop::collection::vec(any::<u128>(), 0..usual_or(300, 30)),
        foreign in prop::collection::vec(any::<u128>(), 0..usual_or(300, 30)),
    ) {
        let hashes = |values: &[u128]| -> Vec<Hash> {
            values.iter().map(|v| Hash::from_u128(*v)).collect()
        };
        let mut filter = AnyFilter::from_plan(&Plan::of(shape, 100), Hasher::default()).unwrap();
        let mut oracle = Oracle::new(shape);
        let mut new = vec![false; values.len()];
        filter.insert_many(&hashes(&values), &mut new).unwrap();
        let expected: Vec<bool> = hashes(&values).into_iter().map(|h| oracle.insert(h)).collect();
        prop_assert_eq!(new, expected);
        prop_assert_eq!(body(&filter), oracle.body());
        let asked = hashes(&[values, foreign].concat());
        let mut found = vec![false; asked.len()];
        filter.contains_many(&asked, &mut found);
        let expected: Vec<bool> = asked.iter().map(|h| oracle.contains(*h)).collect();
        prop_assert_eq!(found, expected);
    }

    /// Foreign keys too: `ask` compares each single answer with the batch's.
    #[test]
    fn batch_equals_single(case in cases(), foreign in keys(0..300)) {
        for subject in SUBJECTS {
            let filter = subject.build(&case);
            let asked = [case.keys.clone(), foreign.clone()].concat();
            let in_memory = ask(&filter, &asked);
            let bytes = [vec![0; 5], filter.to_bytes()].concat();
            let in_place = ask(&case.open().view(&bytes[5..]).unwrap(), &asked);
            prop_assert_eq!(in_memory, in_place, "{}", subject.name);
        }
    }

    /// An explanation reads the filter independently, and reaches the same answer.
    #[test]
    fn an_explanation_ends_with_the_answer(case in cases(), foreign in keys(0..300)) {
        for subject in SUBJECTS {
            let filter = subject.build(&case);
            for key in case.keys.iter().chain(&foreign) {
                let hash = filter.hasher().hash(key);
                let why = filter.explain(hash);
                prop_assert_eq!(why.is_maybe(), filter.contains(key), "{}: {:?}", subject.name, why);
            }
        }
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (1u64..5_000, 1u32..=64).prop_map(|(m, k)| BloomShape::new(m, k).unwrap().into()),
        (1u64..10, 1u32..=8, 1u32..=4).prop_map(|(per_bank, k, per_key)| BlockedShape::new(
            per_bank * u64::from(per_key),
            k,
            per_key
        )
        .unwrap()
        .into()),
    ]
}

#[test]
fn a_batch_needs_one_answer_for_each_key() {
    for subject in subjects(Ability::Add) {
        let filter = subject.empty(10, 0.01, Hasher::default());
        let short =
            std::panic::AssertUnwindSafe(|| filter.contains_many(&["a", "b"], &mut [false]));
        assert!(std::panic::catch_unwind(short).is_err(), "{}", subject.name);
    }
}
