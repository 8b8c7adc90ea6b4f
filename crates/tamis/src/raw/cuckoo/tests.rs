//! Tests of the table's internals. tests/churn.rs has random sequences against an exact multiset.

use super::table::Entry;
use super::*;
use crate::Cuckoo;
use crate::KeyCount;
use crate::hash::{Hash, mix, reduce};
use crate::hasher::Hasher;
use crate::plan::Plan;
use crate::raw::usual_or;
use crate::raw::word::Word as _;

fn hash(key: u64) -> Hash {
    Hasher::default().hash(&key.to_le_bytes())
}

fn shape(slots: u64, window: u32, width: u32) -> CuckooShape {
    CuckooShape::new(slots, window, width).unwrap()
}

fn of_shape(shape: CuckooShape) -> Cuckoo {
    Cuckoo::from_plan(&Plan::of(shape, 1), Hasher::default()).unwrap()
}

fn planned(keys: u64, rate: f64) -> Cuckoo {
    Cuckoo::new(keys, rate).unwrap()
}

fn is_blank(table: &Cuckoo) -> bool {
    table.words().iter().all(|word| word.get() == 0)
}

/// Inserts a key that must be refused without changing the table.
fn refuse(table: &mut Cuckoo, key: u64) -> Error {
    let before = table.to_bytes();
    let error = table.insert(hash(key)).unwrap_err();
    assert_eq!(
        table.to_bytes(),
        before,
        "a refused insert changed the table"
    );
    error
}

#[test]
fn other_place_of_the_other_place_is_the_place() {
    for slots in [2, 3, 4, 7, 64, 1000, 1_000_003] {
        let shape = shape(slots, 2, 12);
        for entry in (0..usual_or(1000, 20)).map(|key| shape.entry(hash(key))) {
            assert!(entry.other < shape.places);
            assert_eq!(shape.other(entry.other, entry.fingerprint), entry.place);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn slots_are_packed_and_read_back_as_written() {
    for (window, width) in CuckooShape::all_sorts() {
        let shape = shape(100, window, width);
        let mut words = vec![0; shape.body_len() as usize / 8];
        let mut model = [0; 100];
        for i in 0..2000 {
            let (slot, value) = (reduce(mix(mix(i)), 100), mix(mix(!i)) >> (64 - width));
            shape.set(&mut words, slot, value);
            model[slot as usize] = value;
        }
        assert!((0..100).all(|slot| shape.get(&words, slot) == model[slot as usize]));
        for place in 0..shape.places {
            for position in 0..shape.window {
                let (slot, fingerprint) = (place + position, shape.fingerprints);
                shape.write(&mut words, slot, place, fingerprint);
                let entry = shape.resident(slot, shape.get(&words, slot));
                assert_eq!((entry.place, entry.fingerprint), (place, fingerprint));
                let lane_top = 1 << ((position + 1) * shape.width - 1);
                let marks = shape.matches(&words, place, fingerprint);
                assert_eq!(shape.first(place, marks & lane_top), Some(slot));
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn fills_to_95_percent_and_a_refused_insert_changes_nothing() {
    for (window, width) in [
        (2, 12),
        (2, 17),
        (2, 32),
        (3, 13),
        (3, 21),
        (4, 10),
        (4, 16),
    ] {
        let mut table = of_shape(shape(20_011, window, width));
        let refused = (0..).find(|&key| table.insert(hash(key)).is_err());
        let refused = refused.unwrap();
        assert_eq!(table.keys(), KeyCount::Counted(refused));
        assert!(table.load_factor() >= 0.95, "{window} × {width}");
        let error = refuse(&mut table, refused);
        assert!(
            matches!(error, Error::Full { entries, load } if entries == refused && load >= 0.95),
            "{error}"
        );
        assert!((0..refused).all(|key| table.contains(hash(key))));
        assert!((0..refused).all(|key| table.remove(hash(key))));
        assert!(is_blank(&table) && table.keys() == KeyCount::Counted(0));
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn kicks_that_go_in_circles_end() {
    for (window, width) in CuckooShape::all_sorts() {
        // One place, or two that overlap: every entry displaces every other.
        for slots in [u64::from(window), u64::from(window) + 1] {
            let mut table = of_shape(shape(slots, window, width));
            let fits = |key: &u64| table.keys().get() < slots && table.insert(hash(*key)).is_ok();
            let keys: Vec<u64> = (0..200).filter(fits).collect();
            assert_eq!(keys.len() as u64, slots);
            refuse(&mut table, 999);
            assert!(keys.iter().all(|key| table.remove(hash(*key))));
            assert!(is_blank(&table));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn a_repeated_key_is_kept_as_often_as_documented() {
    for (window, width) in CuckooShape::all_sorts() {
        let mut table = of_shape(shape(1000, window, width));
        let others: Vec<u64> = (0..100)
            .filter(|key| table.insert(hash(*key)).is_ok())
            .collect();
        let key = hash(7777);
        let shape = *table.shape();
        let Entry { place, other, .. } = shape.entry(key);
        // Fewer than the slots of two places if they overlap.
        let most = shape.window + shape.window.min(place.abs_diff(other));
        assert!(most <= shape.max_copies());
        let before = table.count(key);
        while table.insert(key).is_ok() {}
        let error = refuse(&mut table, 7777);
        assert!(matches!(error, Error::TooManyCopies { copies } if copies == most));
        assert_eq!(table.count(key), most);
        // Also in a batch, whatever else is in it.
        let batch: Vec<Hash> = (0..64)
            .map(|i| if i < 50 { hash(5000 + i) } else { key })
            .collect();
        let error = table.insert_many(&batch, &mut [false; 64]).unwrap_err();
        assert!(matches!(error, Error::TooManyCopies { .. }), "{error}");
        assert!(batch[..50].iter().all(|hash| table.contains(*hash)));
        assert!(others.iter().all(|key| table.contains(hash(*key))));
        (before..most).for_each(|_| assert!(table.remove(key)));
        assert_eq!(table.count(key), before);
    }
}

#[test]
fn batches_answer_like_single_keys() {
    // Every key twice, sometimes in the same batch, sometimes in another.
    let count = usual_or(40_000, 1_000);
    let hashes: Vec<Hash> = (0..count).map(|i| hash(i / 1000 * 500 + i % 500)).collect();
    let (mut many, mut one) = (planned(count * 9 / 8, 0.01), planned(count * 9 / 8, 0.01));
    let mut new = vec![false; hashes.len()];
    many.insert_many(&hashes, &mut new).unwrap();
    let told: Vec<bool> = hashes.iter().map(|h| one.insert(*h).unwrap()).collect();
    assert_eq!(new, told);
    assert_eq!(many.keys(), one.keys());
    let asked: Vec<Hash> = (0..count).map(hash).collect();
    let mut found = vec![false; asked.len()];
    many.contains_many(&asked, &mut found);
    for (hash, found) in asked.iter().zip(&found) {
        assert_eq!(
            (one.contains(*hash), many.contains(*hash)),
            (*found, *found)
        );
    }
    let (mut from_many, mut from_one) = (vec![false; asked.len()], Vec::new());
    many.remove_many(&asked, &mut from_many);
    from_one.extend(asked.iter().map(|hash| one.remove(*hash)));
    assert_eq!(from_many, from_one);
    assert_eq!(many.keys(), one.keys());
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn a_batch_that_is_refused_is_in_up_to_the_refused_key() {
    let mut table = planned(20_000, 0.01);
    let hashes: Vec<Hash> = (0..30_000).map(hash).collect();
    let error = table
        .insert_many(&hashes, &mut [false; 30_000])
        .unwrap_err();
    let taken = table.keys().get();
    assert!(matches!(error, Error::Full { entries, load } if entries == taken && load > 0.95));
    refuse(&mut table, taken);
    assert!((0..taken).all(|key| table.remove(hash(key))));
    assert!(is_blank(&table));
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn planned_tables_take_their_keys_and_keep_the_rate() {
    for (n, p) in [
        (1, 1e-6),
        (2, 0.01),
        (3, 0.3),
        (10, 0.001),
        (1000, 0.03),
        (100_000, 0.2),
        (200_000, 0.001),
    ] {
        let mut table = planned(n, p);
        assert!((0..n).all(|key| table.insert(hash(key)).is_ok()), "{n} {p}");
        assert!((0..n).all(|key| table.contains(hash(key))));
        const ASKED: u64 = 1_000_000;
        let wrong = (n..n + ASKED).filter(|key| table.contains(hash(*key)));
        let (rate, expected) = (wrong.count() as f64 / ASKED as f64, table.rate_now());
        assert!(expected <= p);
        let error = 4.0 * (expected / ASKED as f64).sqrt() + 0.05 * expected;
        assert!(rate <= expected + error, "{n} {p}: {rate} {expected}");
        // With few keys, one key with only one place makes a difference.
        assert!(
            n < 1000 || rate >= expected - error,
            "{n} {p}: {rate} {expected}"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn unions_move_entries_and_intersections_keep_common_ones() {
    let filled = |keys: std::ops::Range<u64>| {
        let mut table = planned(10_000, 0.001);
        keys.for_each(|key| _ = table.insert(hash(key)).unwrap());
        table
    };
    let mut union = filled(0..5_000);
    union.union_with(&filled(4_000..9_000)).unwrap();
    assert_eq!(union.keys(), KeyCount::Counted(10_000));
    assert!((0..9_000).all(|key| union.contains(hash(key))));
    assert!((4_000..5_000).all(|key| union.count(hash(key)) >= 2));
    let before = union.to_bytes();
    let error = union.union_with(&filled(10_000..14_000)).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(union.to_bytes(), before, "a refused union left a trace");

    let mut common = filled(0..6_000);
    common.intersect_with(&filled(4_000..9_000)).unwrap();
    assert!((4_000..6_000).all(|key| common.contains(hash(key))));
    let keys = common.keys().get();
    assert!((2_000..2_020).contains(&keys), "{keys}");
    assert_eq!(keys, common.estimated_keys());
    assert!((4_000..6_000).all(|key| common.remove(hash(key))));
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and much of it")]
fn damaged_tables_and_impossible_shapes_do_not_panic() {
    for (slots, window, width) in [
        (1, 2, 12),
        (9, 5, 12),
        (9, 1, 8),
        (9, 2, 33),
        (9, 3, 22),
        (9, 2, 3),
        (u64::MAX, 2, 4),
        (0, u32::MAX, u32::MAX),
    ] {
        assert!(CuckooShape::new(slots, window, width).is_err());
    }
    for (window, width) in CuckooShape::all_sorts() {
        let mut table = of_shape(shape(50, window, width));
        for (word, i) in table.exclusive().1.iter_mut().zip(0..) {
            *word = mix(mix(i)) | mix(mix(!i));
        }
        let mut fresh = table.template().unwrap();
        assert!(fresh.union_with(&table).is_err() || fresh.keys().get() == 50);
        for key in (0..5).map(hash) {
            let _ = (table.insert(key), table.remove(key), table.count(key));
        }
        let _ = table.insert_many(&[hash(1); 100], &mut [false; 100]);
        table.intersect_with(&fresh).unwrap();
        let _ = (table.rate_now(), table.keys());
    }
}

#[cfg(feature = "files")]
#[test]
#[cfg_attr(miri, ignore = "files")]
fn writers_cannot_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    planned(100, 0.01).save(&path).unwrap();
    let error = crate::Open::new().share(&path).unwrap_err().to_string();
    assert!(
        error.contains("cuckoo filters can't be shared by writers"),
        "{error}"
    );
    // The attempt left no trace.
    assert!(Cuckoo::load(&path).is_ok());
}
