//! Never a false no: every added key is found, by every owner, after every operation on a filter.

use super::subject::*;
use proptest::prelude::*;
use tamis::{AnyFilter, Hasher, body::Body};

/// All owners of the same filter.
fn found_by_every_owner(filter: AnyFilter, case: &Case, may_share: bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    let (open, keys) = (case.open(), &case.keys);

    assert!(has_all(&filter, keys), "heap");
    filter.save(&path).unwrap();
    assert!(has_all(&open.load(&path).unwrap(), keys), "load");
    assert!(has_all(&open.open(&path).unwrap(), keys), "map");

    let bytes = filter.to_bytes();
    assert_eq!(bytes, std::fs::read(&path).unwrap(), "file and bytes");
    assert!(has_all(&open.from_bytes(&bytes).unwrap(), keys), "decode");
    for shift in [0, 1, 3, 4, 7, 8, 33] {
        let moved = [vec![0xff; shift], bytes.clone()].concat();
        let view = open.view(&moved[shift..]).unwrap();
        assert!(has_all(&view, keys), "view at {shift}");
        assert_eq!(view.to_bytes(), bytes, "view at {shift}");
    }

    let mut text = filter.to_base64();
    assert!(has_all(&open.from_base64(&text).unwrap(), keys), "base64");
    text.insert_str(text.len() / 2, "\r\n\t ");
    let lines = open.from_base64(&text).unwrap();
    assert!(has_all(&lines, keys), "base64 in lines");

    if may_share {
        let shared = open.share(&path).unwrap();
        assert!(has_all(&shared, keys), "shared");
        // A concurrent reader sees keys that are added from now on.
        let beside = open.open(&path).unwrap();
        let more = numbered("added in place", 20);
        for key in &more {
            insert_shared(&shared, key);
        }
        assert!(has_all(&beside, &more), "map beside a writer");
        assert!(has_all(&shared, keys), "shared, after adding");
        shared.close().unwrap();
        let closed = open.load(&path).unwrap();
        assert!(has_all(&closed, keys) && has_all(&closed, &more), "closed");
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn a_key_is_found_however_it_was_added(case in cases(), way in 0..WAYS.len()) {
        for subject in SUBJECTS.iter().filter(|subject| subject.takes(WAYS[way])) {
            let mut filter = subject.empty(case.capacity, case.rate, case.hasher);
            WAYS[way].insert(&mut filter, &case.keys);
            prop_assert!(has_all(&filter, &case.keys), "{}", subject.name);
        }
    }

    #[test]
    fn a_key_added_by_any_thread_is_found(case in cases(), threads in 1usize..=4, batch: bool) {
        for subject in subjects(Ability::Threads) {
            let filter = subject.empty(case.capacity, case.rate, case.hasher);
            let share = case.keys.len().div_ceil(threads).max(1);
            std::thread::scope(|scope| {
                for keys in case.keys.chunks(share) {
                    let filter = &filter;
                    scope.spawn(move || if batch { insert_many_shared(filter, keys, &mut vec![false; keys.len()]) } else { {
                            for key in keys {
                                insert_shared(filter, key);
                            } }
                    });
                }
            });
            prop_assert!(has_all(&filter, &case.keys), "{}", subject.name);
        }
    }

    #[test]
    fn a_union_has_the_keys_of_both(case in cases(), more in keys(0..100)) {
        for subject in subjects(Ability::Combine) {
            let ours = subject.build(&case);
            let theirs = subject.build(&Case { keys: more.clone(), ..case.clone() });
            for_every_owner(&theirs, &case, |theirs| {
                let mut both = case.open().from_bytes(&ours.to_bytes()).unwrap();
                theirs.union_into(&mut both);
                assert!(has_all(&both, &case.keys), "{}", subject.name);
                assert!(has_all(&both, &more), "{}", subject.name);
            });
        }
    }

    #[test]
    fn an_intersection_has_the_common_keys(case in cases(), ours in keys(0..50), theirs in keys(0..50)) {
        for subject in subjects(Ability::Combine) {
            let with = |more: &[Key]| {
                let keys = [&case.keys[..], more].concat();
                subject.build(&Case { keys, ..case.clone() })
            };
            let (ours, theirs) = (with(&ours), with(&theirs));
            for_every_owner(&theirs, &case, |theirs| {
                let mut common = case.open().from_bytes(&ours.to_bytes()).unwrap();
                theirs.intersect_into(&mut common);
                assert!(has_all(&common, &case.keys), "{}", subject.name);
            });
        }
    }

    #[test]
    fn an_emptied_filter_has_nothing_and_takes_keys_again(case in cases()) {
        for subject in subjects(Ability::Add) {
            let full = subject.build(&case);
            let mut cleared = case.open().from_bytes(&full.to_bytes()).unwrap();
            cleared.clear().unwrap();
            for mut filter in [template(&full), cleared] {
                prop_assert!(same_shape(&filter, &full), "{}", subject.name);
                let (now, planned) = (filter.rate(), full.rate());
                prop_assert_eq!((filter.capacity(), now), (full.capacity(), planned));
                prop_assert!(ask(&filter, &case.keys).iter().all(|found| !found));
                Way::Many.insert(&mut filter, &case.keys);
                prop_assert_eq!(filter.to_bytes(), full.to_bytes(), "{}", subject.name);
            }
        }
    }
}

proptest! {
    // Syncing files to disk is slow.
    #![proptest_config(config(16))]

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn every_owner_finds_every_key(case in cases()) {
        for subject in SUBJECTS {
            found_by_every_owner(subject.build(&case), &case, subject.can(Ability::Share));
        }
    }
}

/// Large heaps are mapped with huge pages, and written piece by piece.
#[test]
#[cfg_attr(miri, ignore = "files")]
fn every_owner_finds_every_key_of_a_large_filter() {
    for subject in SUBJECTS {
        let case = Case {
            keys: numbered("large", 2_000),
            capacity: 4_000_000,
            rate: 0.01,
            hasher: Hasher::seeded(5),
        };
        let filter = subject.build(&case);
        // A finished list's size depends on its keys.
        assert!(filter.bytes() > 4 << 20 || filter.kind().is_static());
        found_by_every_owner(filter, &case, subject.can(Ability::Share));
    }
}

/// The right side of a combination, with any owner.
trait Other {
    fn union_into(&self, ours: &mut AnyFilter);
    fn intersect_into(&self, ours: &mut AnyFilter);
}

impl<B: Body> Other for AnyFilter<B> {
    fn union_into(&self, ours: &mut AnyFilter) {
        ours.union_with(self).unwrap();
    }
    fn intersect_into(&self, ours: &mut AnyFilter) {
        ours.intersect_with(self).unwrap();
    }
}

fn for_every_owner(filter: &AnyFilter, case: &Case, mut each: impl FnMut(&dyn Other)) {
    each(filter);
    let bytes = [vec![0], filter.to_bytes()].concat();
    each(&case.open().view(&bytes[1..]).unwrap());
}
