//! `keys()`: a count while it is known, and otherwise marked as an estimate.

use super::oracle::Oracle;
use super::subject::*;
use proptest::prelude::*;
use tamis::{AnyFilter, Hasher, KeyCount, Open};

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn the_count_is_of_keys_that_were_told_new(case in cases(), way in 0..WAYS.len()) {
        for subject in subjects(Ability::Bits) {
            let mut filter = subject.empty(case.capacity, case.rate, case.hasher);
            let mut oracle = Oracle::new(filter.shape());
            let news = case.keys.iter().filter(|k| oracle.insert(case.hasher.hash(k))).count();
            let counted = KeyCount::Counted(news as u64);
            WAYS[way].insert(&mut filter, &case.keys);
            prop_assert_eq!(filter.keys(), counted, "{}", subject.name);
            // Adding them again doesn't count them again.
            WAYS[way].insert(&mut filter, &case.keys);
            prop_assert_eq!(filter.keys(), counted, "{}", subject.name);
            let copy = case.open().from_bytes(&filter.to_bytes()).unwrap();
            prop_assert_eq!(copy.keys(), counted, "{}", subject.name);
        }
    }

    #[test]
    fn a_combination_is_estimated_until_it_is_cleared(case in cases(), union: bool) {
        for subject in subjects(Ability::Combine) {
            let mut filter = subject.build(&case);
            let other = template(&filter);
            prop_assert_eq!(other.keys(), KeyCount::Counted(0));
            if union { filter.union_with(&other).unwrap() } else { filter.intersect_with(&other).unwrap() }
            let estimated = KeyCount::Estimated(filter.estimated_keys());
            prop_assert_eq!(filter.keys(), estimated, "{}", subject.name);
            insert_shared(&filter, "one more");
            prop_assert!(matches!(filter.keys(), KeyCount::Estimated(_)));
            let copy = case.open().from_bytes(&filter.to_bytes()).unwrap();
            prop_assert_eq!(copy.keys(), filter.keys(), "{}", subject.name);
            filter.clear().unwrap();
            prop_assert_eq!(filter.keys(), KeyCount::Counted(0), "{}", subject.name);
        }
    }
}

/// Half full and full, the estimate is within 2 % of the truth: the standard error of the fill by
/// 20,000 keys is below 0.5 %.
#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn the_estimate_is_close() {
    for subject in subjects(Ability::Combine) {
        for rate in [0.1, 0.01, 1e-5] {
            let mut a = subject.empty(20_000, rate, Hasher::default());
            let mut b = template(&a);
            Way::Many.insert(&mut a, &numbered("a", 12_000));
            Way::Many.insert(&mut b, &numbered("b", 8_000));
            let close = |estimate: u64, truth: f64| (estimate as f64 / truth - 1.0).abs() < 0.02;
            assert!(
                close(a.estimated_keys(), 12_000.0),
                "{} {rate}",
                subject.name
            );
            a.union_with(&b).unwrap();
            assert!(close(a.keys().get(), 20_000.0), "{} {rate}", subject.name);
            // Keys in both count once.
            a.union_with(&b).unwrap();
            assert!(close(a.keys().get(), 20_000.0), "{} {rate}", subject.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a flood of keys")]
fn a_full_filter_has_a_count_and_a_rate_too() {
    for subject in subjects(Ability::Overfill) {
        let mut filter = subject.empty(1, 0.5, Hasher::default());
        Way::Many.insert(&mut filter, &numbered("flood", 20_000));
        assert!(filter.contains("anything"), "{}", subject.name);
        assert_eq!(filter.rate_now(), 1.0, "{}", subject.name);
        // A few keys fill such a small filter; beyond that, their number can't be known.
        let estimate = filter.estimated_keys();
        assert!(
            (1..20_000).contains(&estimate),
            "{}: {estimate}",
            subject.name
        );
        // Each set at least one unset bit.
        assert!(matches!(filter.keys(), KeyCount::Counted(n) if n <= filter.bytes() * 8));
    }
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn the_count_survives_files_and_mappings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for subject in subjects(Ability::Share) {
        let mut filter = subject.empty(1_000, 1e-9, Hasher::default());
        Way::Many.insert(&mut filter, &numbered("first", 300));
        filter.save(&path).unwrap();
        let one = Open::new().share(&path).unwrap();
        let mut other = Open::new().share(&path).unwrap();
        assert_eq!(one.keys(), KeyCount::Counted(300), "{}", subject.name);
        Way::Many.insert(&mut other, &numbered("second", 200));
        assert_eq!(one.keys(), KeyCount::Counted(500), "{}", subject.name);
        drop(one);
        other.close().unwrap();
        let loaded = AnyFilter::load(&path).unwrap();
        assert_eq!(loaded.keys(), KeyCount::Counted(500), "{}", subject.name);
        let mapped = AnyFilter::open(&path).unwrap();
        assert_eq!(mapped.keys(), KeyCount::Counted(500), "{}", subject.name);
        // A union in place makes the count as uncertain as on the heap.
        let mut shared = Open::new().share(&path).unwrap();
        shared.union_with(&template(&filter)).unwrap();
        shared.close().unwrap();
        let keys = AnyFilter::open(&path).unwrap().keys();
        assert!(matches!(keys, KeyCount::Estimated(490..510)), "{keys:?}");
        std::fs::remove_file(&path).unwrap();
    }
}
