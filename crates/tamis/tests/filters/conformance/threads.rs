//! Threads, and mappings like those of other processes, racing on the same keys.

use super::oracle::{Oracle, positions};
use super::subject::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Barrier;
use tamis::{AnyFilter, Hasher, KeyCount};

/// Every thread adds all keys, each from a different start; returns their answers.
fn race(filters: &[&AnyFilter], keys: &[Key], batch: bool) -> Vec<Vec<bool>> {
    let start = Barrier::new(filters.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = filters
            .iter()
            .enumerate()
            .map(|(i, filter)| {
                let (start, from) = (&start, i * keys.len() / filters.len() / 8);
                scope.spawn(move || {
                    let mut turned = keys.to_vec();
                    turned.rotate_left(from);
                    let mut told = vec![false; keys.len()];
                    start.wait();
                    if batch {
                        insert_many_shared(filter, &turned, &mut told)
                    } else {
                        {
                            for (key, told) in turned.iter().zip(&mut told) {
                                *told = insert_shared(filter, key);
                            }
                        }
                    }
                    told.rotate_right(from);
                    told
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// A key with a bit that no other key sets was new to the thread that set that bit.
fn somebody_was_told(filter: &AnyFilter, keys: &[Key], told: &[Vec<bool>]) {
    let of_key = |key: &Key| positions(filter.shape(), filter.hasher().hash(key));
    let mut owners: HashMap<usize, Vec<&Key>> = HashMap::new();
    for key in keys {
        for position in of_key(key) {
            owners.entry(position).or_default().push(key);
        }
    }
    for (i, key) in keys.iter().enumerate() {
        let of_its_own = |p: &usize| owners[p].iter().all(|owner| *owner == key);
        if of_key(key).iter().any(of_its_own) {
            assert!(told.iter().any(|t| t[i]), "nobody was told of {key:?}");
        }
    }
}

fn all_bits_are_there(filter: &AnyFilter, keys: &[Key]) {
    let mut oracle = Oracle::new(filter.shape());
    for key in keys {
        oracle.insert(filter.hasher().hash(key));
    }
    assert_eq!(filter.to_bytes()[128..], oracle.body());
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn threads_racing_on_the_same_keys(
        rate_bits in 1.0f64..30.0,
        count in 1usize..usual_or(600, 10),
        threads in 2usize..=4,
        batch: bool,
    ) {
        for subject in subjects(Ability::Threads) {
            let keys = numbered("race", count);
            let filter = subject.empty(count as u64, libm::exp2(-rate_bits), Hasher::default());
            let told = race(&vec![&filter; threads], &keys, batch);
            somebody_was_told(&filter, &keys, &told);
            all_bits_are_there(&filter, &keys);
            let news: usize = told.iter().flatten().filter(|told| **told).count();
            prop_assert_eq!(filter.keys(), KeyCount::Counted(news as u64), "{}", subject.name);
        }
    }
}

/// Large enough that the threads really overlap.
#[test]
fn threads_racing_for_long() {
    for subject in subjects(Ability::Threads) {
        for batch in [false, true] {
            let keys = numbered("long race", usual_or(30_000, 20));
            let filter = subject.empty(keys.len() as u64, 1e-4, Hasher::default());
            let told = race(&[&filter; 4], &keys, batch);
            somebody_was_told(&filter, &keys, &told);
            all_bits_are_there(&filter, &keys);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "mapped files")]
fn mappings_of_one_file_racing_on_the_same_keys() {
    for subject in subjects(Ability::Share) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        let keys = numbered("mapped race", 5_000);
        let empty = subject.empty(5_000, 1e-6, Hasher::default());
        empty.save(&path).unwrap();
        let shares: Vec<AnyFilter> = (0..3)
            .map(|_| tamis::Open::new().share(&path).unwrap())
            .collect();
        let told = race(&shares.iter().collect::<Vec<_>>(), &keys, false);
        somebody_was_told(&empty, &keys, &told);
        for share in shares {
            share.close().unwrap();
        }
        let closed = AnyFilter::load(&path).unwrap();
        all_bits_are_there(&closed, &keys);
        let news: usize = told.iter().flatten().filter(|told| **told).count();
        assert_eq!(closed.keys(), KeyCount::Counted(news as u64));
    }
}
