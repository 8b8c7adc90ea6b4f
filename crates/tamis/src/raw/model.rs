//! Models of several threads that add keys to the same words, in every order, for each kind that
//! needs no lock for it. They check the promise of `Filter::insert`: no key is lost, and of several
//! threads that add the same new key at least one gets "new".

use crate::hash::Hash;
use crate::raw::layout::{BitLayout, Layout as _};
use crate::raw::{BlockedShape, BloomShape, CountingShape};
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::collections::BTreeSet;
use std::sync::Mutex;

type Words = Arc<Vec<AtomicU64>>;

fn zeros<L: BitLayout>(shape: L) -> Words {
    let words = (0..shape.body_len() / 8).map(|_| AtomicU64::new(0));
    Arc::new(words.collect())
}

/// Tries every sequence of up to three preemptions.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// In the same words. They share one bit, and each has one that the other lacks.
const KEYS: [Hash; 2] = [Hash { hi: 0, lo: 0x041 }, Hash { hi: 0, lo: 0x081 }];

fn lines() -> BlockedShape {
    BlockedShape::new(1, 2, 1).unwrap()
}

fn two_lines_a_key() -> BlockedShape {
    BlockedShape::new(2, 1, 2).unwrap()
}

fn bits() -> BloomShape {
    BloomShape::new(64, 2).unwrap()
}

fn counters() -> CountingShape {
    CountingShape::new(1, 2, 1).unwrap()
}

/// Both threads find the key after adding it, and so does a later look-up. Returns how many of the
/// two got "new", over all orders.
fn one_key_by_two<L: BitLayout + Send + Sync + 'static>(shape: L) -> Vec<usize> {
    let all_told = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
    let tell = all_told.clone();
    check(move || {
        let words = zeros(shape);
        let add = move |words: Words| {
            let new = shape.insert(&words, KEYS[0]);
            assert!(shape.contains(&words, KEYS[0]), "lost at once");
            new
        };
        let other = loom::thread::spawn({
            let words = words.clone();
            move || add(words)
        });
        let new = [add(words.clone()), other.join().unwrap()];
        assert!(shape.contains(&words, KEYS[0]), "lost");
        let told = new.iter().filter(|new| **new).count();
        assert_ne!(told, 0, "nobody was told that the key was new");
        tell.lock().unwrap().insert(told);
        assert!(!shape.insert(&words, KEYS[0]));
    });
    let all_told = all_told.lock().unwrap();
    all_told.iter().copied().collect()
}

/// Keys that share words don't undo each other, and an added key is found by every thread that
/// knows of it.
fn two_keys_by_two<L: BitLayout + Send + Sync + 'static>(shape: L) {
    check(move || {
        let words = zeros(shape);
        let added = Arc::new(AtomicBool::new(false));
        let other = loom::thread::spawn({
            let (words, added) = (words.clone(), added.clone());
            move || {
                assert!(shape.insert(&words, KEYS[0]));
                added.store(true, Release);
            }
        });
        shape.insert(&words, KEYS[1]);
        if added.load(Acquire) {
            assert!(shape.contains(&words, KEYS[0]), "heard of, and not found");
        }
        other.join().unwrap();
        assert!(KEYS.iter().all(|key| shape.contains(&words, *key)), "lost");
    });
}

#[test]
fn blocked() {
    // Both get "new" if each has set one of the key's bits.
    assert_eq!(one_key_by_two(lines()), [1, 2]);
    assert_eq!(one_key_by_two(two_lines_a_key()), [1, 2]);
    two_keys_by_two(lines());
}

#[test]
fn bloom() {
    assert_eq!(one_key_by_two(bits()), [1, 2]);
    two_keys_by_two(bits());
}

#[test]
fn counting() {
    assert_eq!(one_key_by_two(counters()), [1, 2]);
    two_keys_by_two(counters());
}

/// Each added copy stays until it is removed.
#[test]
fn counted_copies_stay_while_others_go() {
    check(|| {
        let shape = counters();
        let words = zeros(shape);
        shape.insert(&words, KEYS[0]);
        let other = loom::thread::spawn({
            let words = words.clone();
            move || shape.remove(&words, KEYS[0])
        });
        shape.insert(&words, KEYS[0]);
        assert!(
            shape.contains(&words, KEYS[0]),
            "the other copy was removed, too"
        );
        let (found, _) = other.join().unwrap();
        assert!(found);
        assert_eq!(shape.count(&words, KEYS[0]), 1);
    });
}
