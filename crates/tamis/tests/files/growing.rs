//! Features of growing filters: layers, the compound rate, memory, and files that get longer.

use crate::common::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use tamis::{
    AnyFilter, Error, Growing, Hash, Hasher, KeyCount, Kind, Open, Plan, SecretKey, body::Body,
    internals::Expansion,
};

fn hashes(range: std::ops::Range<u64>) -> Vec<Hash> {
    range.map(Hash::from_u64).collect()
}

/// A filter that holds the hashes of `0..n`.
fn grown(first: u64, rate: f64, n: u64) -> Growing {
    let mut filter = Growing::new(first, rate).unwrap();
    add(&mut filter, 0..n);
    filter
}

/// Adds keys and returns how many were new.
fn add(filter: &mut Growing, range: std::ops::Range<u64>) -> usize {
    let hashes = hashes(range);
    let mut new = vec![false; hashes.len()];
    filter.insert_many(&hashes, &mut new).unwrap();
    new.into_iter().filter(|new| *new).count()
}

fn count<B: Body>(filter: &Growing<B>, range: std::ops::Range<u64>) -> usize {
    let hashes = hashes(range);
    let mut found = vec![false; hashes.len()];
    filter.contains_many(&hashes, &mut found);
    found.into_iter().filter(|found| *found).count()
}

fn has_all<B: Body>(filter: &Growing<B>, n: u64) -> bool {
    count(filter, 0..n) as u64 == n && hashes(0..n).iter().all(|hash| filter.contains(*hash))
}

#[test]
fn no_key_is_lost_between_layers_and_owners() {
    for rate in [0.3, 0.01, 1e-4, 1e-9] {
        let filter = grown(1, rate, 20_000);
        assert!(filter.shape().layers() > 4, "{filter:?}");
        assert!(has_all(&filter, 20_000), "{rate}");

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        filter.save_new(&path).unwrap();
        assert!(has_all(&Growing::load(&path).unwrap(), 20_000));
        assert!(has_all(&Growing::open(&path).unwrap(), 20_000));
        let bytes = filter.to_bytes();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let unaligned = [&[0], &bytes[..]].concat();
        assert!(has_all(&Growing::view(&unaligned[1..]).unwrap(), 20_000));
        let text = filter.to_base64();
        assert!(has_all(&Growing::from_base64(&text).unwrap(), 20_000));
        assert!(AnyFilter::verify(&path, &Open::new()).unwrap());

        // A loaded and a mapped filter grow the same.
        let mut loaded = Growing::from_bytes(&bytes).unwrap();
        add(&mut loaded, 20_000..50_000);
        let mut mapped = Growing::share(&path).unwrap();
        add(&mut mapped, 20_000..50_000);
        assert!(has_all(&loaded, 50_000) && has_all(&mapped, 50_000));
        assert_eq!(loaded.to_bytes(), mapped.to_bytes());
        assert_eq!(loaded.keys(), mapped.keys());
        mapped.sync().unwrap();
        mapped.close().unwrap();
        assert!(has_all(&Growing::open(&path).unwrap(), 50_000));
        let again = Growing::load(&path).unwrap();
        assert_eq!(again.to_bytes(), loaded.to_bytes());
        assert_eq!(again.keys(), loaded.keys());
    }
}

#[test]
fn one_by_one_equals_a_batch() {
    let batch = grown(1, 1e-3, 10_000);
    let mut single = Growing::new(1, 1e-3).unwrap();
    for hash in hashes(0..10_000) {
        single.insert(hash).unwrap();
    }
    // Blocks differ only in their false positives, within the rate.
    let (KeyCount::Counted(a), KeyCount::Counted(b)) = (batch.keys(), single.keys()) else {
        panic!("not counted");
    };
    assert!(a.abs_diff(b) < 10 && a > 9_980, "{a} {b}");
    assert_eq!(batch.shape(), single.shape());
    assert_eq!(batch.to_bytes(), single.to_bytes());
}

#[test]
fn keys_are_bytes_and_may_be_keyed() {
    let hasher = Hasher::keyed_apart(SecretKey::new([7; 16]));
    let mut seen = Growing::with_hasher(1, 1e-6, hasher).unwrap();
    let keys: Vec<String> = (0..3000).map(|i| format!("key {i}")).collect();
    let mut new = vec![false; keys.len()];
    seen.insert_many(&keys, &mut new).unwrap();
    assert!(new.iter().all(|new| *new));
    assert!(!seen.insert(&keys[5]).unwrap() && seen.insert("other").unwrap());
    let mut found = vec![false; keys.len()];
    seen.contains_many(&keys, &mut found);
    assert!(found.iter().all(|found| *found) && !seen.contains("absent"));
    let bytes = seen.to_bytes();
    assert!(matches!(Growing::view(&bytes), Err(Error::KeyNeeded)));
    let open = Open::new().key(SecretKey::new([7; 16]));
    assert!(open.from_bytes(&bytes).unwrap().contains("key 17"));
}

#[test]
fn repeated_keys_are_not_counted_and_do_not_grow_it() {
    let mut filter = grown(1, 1e-6, 1000);
    let bytes = filter.bytes();
    assert_eq!(add(&mut filter, 0..1000), 0);
    assert_eq!(
        (filter.bytes(), filter.keys()),
        (bytes, KeyCount::Counted(1000))
    );
    // The 1001st key opens a layer.
    let mut new = [false; 4];
    let two = [
        Hash::from_u64(5),
        Hash::from_u64(1_000),
        Hash::from_u64(1_000),
        Hash::from_u64(6),
    ];
    filter.insert_many(&two, &mut new).unwrap();
    assert_eq!(new, [false, true, false, false]);
    assert_eq!(filter.shape().layers(), 2);
    assert_eq!(filter.keys(), KeyCount::Counted(1001));
}

/// Actual memory, and planned memory.
#[test]
fn memory_is_within_bounds_just_after_each_layer() {
    let mut filter = Growing::new(1, 1e-6).unwrap();
    let (mut keys, mut bytes) = (1000, 0);
    add(&mut filter, 0..keys);
    while keys < 1_000_000 {
        if filter.bytes() != bytes {
            bytes = filter.bytes();
            let right = Plan::for_rate(Kind::Blocked, keys, 1e-6).unwrap();
            let ratio = bytes as f64 / right.bytes() as f64;
            assert!(ratio <= 2.5, "{ratio} at {keys}");
            let planned = Plan::for_rate(Kind::Growing, keys, 1e-6).unwrap();
            assert_eq!(planned.bytes(), bytes, "at {keys}");
        }
        let full = filter.capacity();
        add(&mut filter, keys..full + 1);
        let KeyCount::Counted(counted) = filter.keys() else {
            panic!()
        };
        // False positives leave room.
        add(&mut filter, full + 1..full + 1 + (full + 1 - counted));
        keys = full + 1;
    }
}

#[test]
fn the_compound_rate_keeps_the_promise_at_any_size() {
    let long = std::env::var_os("TAMIS_LONG").is_some();
    for promise in [0.01, 1e-3] {
        let mut filter = Growing::new(1, promise).unwrap();
        let mut keys = 0;
        let most = if long { 10_000_000 } else { 1_000_000 };
        for size in [
            1_000, 2_500, 10_000, 40_000, 100_000, 400_000, 1_000_000, 10_000_000,
        ] {
            if size > most {
                break;
            }
            for from in (keys..size).step_by(1 << 16) {
                add(&mut filter, from..size.min(from + (1 << 16)));
            }
            keys = size;
            let asked = 400_000;
            let wrong = count(&filter, 1 << 40..(1 << 40) + asked) as f64;
            let expected = promise * asked as f64;
            let noise = 4.0 * expected.sqrt();
            assert!(
                wrong <= expected + noise,
                "{promise} at {size}: {wrong} of {asked}"
            );
            let now = filter.rate_now();
            assert!(now <= promise, "{promise} at {size}: {now}");
            assert!((wrong - now * asked as f64).abs() <= 5.0 * (now * asked as f64).sqrt() + 1.0);
            let estimated = filter.estimated_keys();
            assert!(
                estimated.abs_diff(size) < size / 50,
                "{estimated} for {size}"
            );
        }
    }
}

#[test]
fn a_file_being_written_belongs_to_one_and_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    grown(1, 1e-4, 900).save_new(&path).unwrap();
    let mut writer = Growing::share(&path).unwrap();
    assert!(matches!(writer.save(&path), Err(Error::Busy { .. })));
    let early = Growing::open(&path).unwrap();
    add(&mut writer, 900..30_000);
    // The reader sees the layers that it opened, and their keys.
    assert!(has_all(&early, 1000));
    let late = Growing::open(&path).unwrap();
    assert!(has_all(&late, 30_000));
    assert!(has_all(&Growing::load(&path).unwrap(), 30_000));
    assert!(matches!(late.keys(), KeyCount::Estimated(_)));
    assert!(matches!(Growing::share(&path), Err(Error::Busy { .. })));
    drop(writer);
    let again = Growing::share(&path).unwrap();
    assert!(matches!(again.keys(), KeyCount::Counted(_)));
}

/// At any moment the header may be half replaced.
#[test]
fn a_reader_that_opens_while_it_grows_finds_what_was_added() {
    const KEYS: u64 = 400;
    let (dir, each) = (tempfile::tempdir().unwrap(), Expansion::Times(1));
    let path = dir.path().join("f.tamis");
    let first = Growing::reserve(4, 0.01, each, Hasher::default()).unwrap();
    first.save_new(&path).unwrap();
    let mut writer = Growing::share(&path).unwrap();
    writer.set_expansion(each);
    let added = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=KEYS {
                add(&mut writer, n - 1..n);
                added.store(n, Release);
            }
        });
        loop {
            let n = added.load(Acquire);
            assert!(has_all(&Growing::open(&path).unwrap(), n));
            if n == KEYS {
                break;
            }
        }
    });
    assert!(writer.shape().layers() > 50);
}

/// Every state of the file between the steps of adding a layer, as left by a process that dies
/// there.
#[test]
fn death_in_the_middle_of_growing_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    grown(1, 1e-4, 10).save_new(&path).unwrap();
    let mut writer = Growing::share(&path).unwrap();
    add(&mut writer, 10..990);
    let KeyCount::Counted(keys) = writer.keys() else {
        panic!()
    };
    add(&mut writer, 990..990 + 1000 - keys);
    let before = fs::read(&path).unwrap();
    add(&mut writer, 2000..2001);
    let after = fs::read(&path).unwrap();
    assert!(after.len() > before.len());
    assert_eq!(writer.shape().layers(), 2);

    let zeros = vec![0; after.len() - before.len()];
    let states = [
        ("nothing done", before.clone()),
        (
            "some space",
            [&before[..], &zeros[..zeros.len() / 2]].concat(),
        ),
        ("longer", [&before[..], &zeros].concat()),
        ("described", [&before[..], &after[before.len()..]].concat()),
        ("done", after),
    ];
    for (name, bytes) in states {
        let dead = dir.path().join(name);
        fs::write(&dead, &bytes).unwrap();
        assert!(has_all(&Growing::open(&dead).unwrap(), 990), "{name}");
        let mut loaded = Growing::load(&dead).unwrap();
        let mut again = Growing::share(&dead).unwrap();
        assert!(
            matches!(again.keys(), KeyCount::Estimated(900..1100)),
            "{name}"
        );
        add(&mut again, 990..9_000);
        add(&mut loaded, 990..9_000);
        assert!(has_all(&again, 9_000) && has_all(&loaded, 9_000), "{name}");
        assert!(again.rate_now() <= 1e-4);
        again.close().unwrap();
        let sound = Growing::load(&dead).unwrap();
        assert!(has_all(&sound, 9_000), "{name}");
        let len = fs::metadata(&dead).unwrap().len();
        assert_eq!(len, sound.bytes() + BODY as u64, "{name}");
    }
}

#[test]
fn clear_template_and_what_it_cannot() {
    let mut filter = grown(1, 1e-3, 5000);
    let layers = filter.shape().layers();
    filter.clear();
    assert_eq!(
        (filter.keys(), count(&filter, 0..5000)),
        (KeyCount::Counted(0), 0)
    );
    assert_eq!((filter.rate_now(), filter.shape().layers()), (0.0, layers));
    add(&mut filter, 0..9000);
    let copy = Growing::from_bytes(&filter.to_bytes()).unwrap();
    assert!(has_all(&copy, 9000) && filter.rate_now() <= 1e-3);
    assert_eq!(copy.capacity(), filter.capacity());

    let template = filter.template().unwrap();
    assert_eq!((template.shape().layers(), template.rate()), (1, 1e-3));
    let (mut template, filter) = (AnyFilter::from(template), AnyFilter::from(filter));
    template.union_with(&filter).unwrap();
    assert_eq!(template.keys(), filter.keys());
    let error = template.intersect_with(&filter).unwrap_err().to_string();
    assert!(error.contains("can't be intersected: "), "{error}");

    assert!(Growing::new(0, 0.01).is_err());
    for rate in [0.0, 1.0, f64::NAN] {
        assert!(Growing::new(10, rate).is_err());
    }
    assert!(Growing::new(u64::MAX, 0.01).is_err());
}

#[test]
fn any_filter_grows() {
    let plan = Plan::for_rate(Kind::Growing, 3_000, 1e-4).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    AnyFilter::create(&path, &plan, Hasher::default()).unwrap();
    assert!(AnyFilter::create(&path, &plan, Hasher::default()).is_err());
    AnyFilter::create_over(&path, &plan, Hasher::default()).unwrap();
    let mut any = Open::new().share(&path).unwrap();
    assert!(any.capacity() >= 3_000 && any.bytes() <= plan.bytes());
    for i in 0..20_000u64 {
        any.insert(i.to_le_bytes()).unwrap();
    }
    assert_eq!(any.kind(), Kind::Growing);
    // Also of a grown filter.
    let grown: Growing = any.try_into().unwrap();
    assert!(grown.contains(19_999u64.to_le_bytes()));
    grown.close().unwrap();
    assert!(AnyFilter::open(&path).unwrap().contains(1u64.to_le_bytes()));
}

/// Every number in a layer's description, out of range.
#[test]
fn corrupt_layers_are_refused() {
    let sound = grown(1, 1e-4, 4000).to_bytes();
    let filter = Growing::view(&sound).unwrap();
    assert_eq!(filter.shape().layers(), 4);
    let first_lines = u64::from_le_bytes(sound[BODY..BODY + 8].try_into().unwrap());
    let second = BODY + 64 * (1 + first_lines as usize);
    let cases: &[(&str, usize, u64, &str)] = &[
        ("no lines", BODY, 0, "lines of a layer"),
        ("too many lines", BODY, u64::MAX, "lines of a layer"),
        (
            "all lines",
            BODY,
            filter.shape().lines() - 1,
            "of the lines per key",
        ),
        ("a line less", BODY, first_lines - 1, "not a valid"),
        (
            "the end passed",
            second,
            filter.shape().lines(),
            "lines of a layer",
        ),
        ("no capacity", BODY + 8, 0, "capacity of a layer"),
        (
            "capacities overflow",
            second + 8,
            u64::MAX,
            "capacity of a layer",
        ),
        ("overfull", BODY + 16, 1001, "keys of a layer"),
        ("rate 0", BODY + 24, 0, "rate of a layer"),
        ("rate NaN", BODY + 24, f64::NAN.to_bits(), "rate of a layer"),
        ("rate 1", second + 24, 1f64.to_bits(), "rate of a layer"),
        (
            "negative rate",
            second + 24,
            (-1f64).to_bits(),
            "rate of a layer",
        ),
        ("reserved", BODY + 32, 1, "reserved words"),
        ("reserved, last", second + 56, 1 << 63, "reserved words"),
        ("more layers", SHAPE_3.start, 6, "layers"),
        ("fewer layers", SHAPE_3.start, 2, "layers"),
        (
            "no equal banks",
            SHAPE_3.start,
            5,
            "a multiple of the lines per key",
        ),
        ("no layers", SHAPE_3.start, 0, "layers"),
        ("absurd layers", SHAPE_3.start, u64::MAX, "layers"),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, at, value, expected) in cases {
        let mut bytes = sound.clone();
        bytes[*at..*at + 8].copy_from_slice(&value.to_le_bytes());
        reseal_header(&mut bytes);
        reseal_body(&mut bytes);
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        for error in [
            Open::new().view(&bytes).err(),
            Open::new().from_bytes(&bytes).err(),
            Open::new().load(&path).err(),
            Open::new().open(&path).err(),
            Open::new().share(&path).err(),
        ] {
            let error = error
                .unwrap_or_else(|| panic!("{name}: opened"))
                .to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}: changed");
    }
    // Shorter than it claims, also by whole layers: keys would be missing.
    for len in [BODY, second, sound.len() - 64, sound.len() - 1] {
        fs::write(dir.path().join("short"), &sound[..len]).unwrap();
        let error = Growing::open(dir.path().join("short")).unwrap_err();
        assert!(error.to_string().contains("file length"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Against a set: adding, repeating, saving, loading, mapping, clearing.
    #[test]
    fn it_behaves_like_a_set(
        steps in prop::collection::vec((0u8..8, 0u64..4000, 1u64..1500), 1..20),
        bits in 1.0f64..40.0,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        let mut filter = Growing::new(1, libm::exp2(-bits)).unwrap();
        let mut model = HashSet::new();
        for (what, from, len) in steps {
            match what {
                0 => filter = Growing::from_bytes(&filter.to_bytes()).unwrap(),
                1 => {
                    // Close a mapped filter's file first.
                    let bytes = filter.to_bytes();
                    drop(filter);
                    fs::write(&path, &bytes).unwrap();
                    filter = Growing::share(&path).unwrap();
                }
                2 if len < 100 => {
                    filter.clear();
                    model.clear();
                }
                3 => {
                    for i in from..from + len / 10 {
                        let new = filter.insert(Hash::from_u64(i)).unwrap();
                        prop_assert!(!new || !model.contains(&i));
                        model.insert(i);
                    }
                }
                _ => {
                    let hashes = hashes(from..from + len);
                    let mut new = vec![false; hashes.len()];
                    filter.insert_many(&hashes, &mut new).unwrap();
                    for (i, new) in (from..).zip(new) {
                        prop_assert!(!new || !model.contains(&i), "a false new");
                        model.insert(i);
                    }
                }
            }
            for i in &model {
                prop_assert!(filter.contains(Hash::from_u64(*i)), "a false no");
            }
            prop_assert!(filter.keys().get() <= model.len() as u64);
        }
        let all: Vec<Hash> = model.iter().map(|i| Hash::from_u64(*i)).collect();
        let mut found = vec![false; all.len()];
        filter.contains_many(&all, &mut found);
        prop_assert!(found.iter().all(|found| *found), "a false no in a batch");
    }
}
