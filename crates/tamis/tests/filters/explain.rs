//! An explanation reaches the filter's answer, also in large, grown or damaged tables; filters of a
//! few bits keep their plan's promise.

use tamis::internals::raw::{BloomShape, Joined, Look, sum};
use tamis::{AnyFilter, Hash, Hasher, Kind, ListBuilder, Open, Plan};

/// Looks up members and others; returns how many of the others got a "maybe".
fn compare(filter: &AnyFilter, members: u64) -> u64 {
    let mut maybe = 0;
    for number in 0..members + 2_000 {
        let hash = Hash::from_u64(number);
        let why = filter.explain(hash);
        assert_eq!(why.is_maybe(), filter.contains(hash), "{number}: {why:?}");
        assert!(why.is_maybe() || number >= members, "{number}");
        maybe += u64::from(why.is_maybe() && number >= members);
    }
    maybe
}

fn listed(kind: Kind, keys: u64) -> AnyFilter {
    let mut list = ListBuilder::new(kind, 0.01).unwrap();
    let hashes = |range: std::ops::Range<u64>| range.map(Hash::from_u64).collect::<Vec<_>>();
    list.add_hashes(&hashes(0..keys)).unwrap();
    if kind == Kind::Cascade {
        list.allow_hashes(&hashes(keys..keys + 1_000)).unwrap();
    }
    list.build().unwrap()
}

#[test]
fn explanations_of_large_tables_are_the_answers() {
    // Enough rows for every layer of a ribbon; two shards of a fuse filter.
    for (kind, keys) in [
        (Kind::Ribbon, 50_000),
        (Kind::Cascade, 50_000),
        (Kind::Fuse, 50_000),
    ] {
        let filter = listed(kind, keys);
        let wrong = compare(&filter, keys);
        assert!(wrong < 60, "{kind}: {wrong}");
        let looks = filter.explain(Hash::from_u64(1)).looks;
        for look in &looks {
            let Look::Sum { fingerprint, cells } = look else {
                panic!("{kind}: {look:?}");
            };
            assert_eq!(sum(cells), *fingerprint);
        }
        assert_eq!(looks.len(), if kind == Kind::Cascade { 2 } else { 1 });
    }
    let sharded = listed(Kind::Fuse, 3_100_000);
    let Look::Sum { cells, .. } = &sharded.explain(Hash::from_u64(5)).looks[0] else {
        panic!("a fuse filter");
    };
    assert!(
        cells
            .iter()
            .all(|cell| cell.line < Some(2) && cell.line.is_some())
    );
    for number in (0..6_200_000).step_by(1_000) {
        let hash = Hash::from_u64(number);
        assert_eq!(sharded.explain(hash).is_maybe(), sharded.contains(hash));
    }
}

#[test]
fn every_layer_of_a_grown_filter_is_explained() {
    let plan = Plan::for_rate(Kind::Growing, 1_000, 0.01).unwrap();
    let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    let hashes: Vec<_> = (0..20_000).map(Hash::from_u64).collect();
    filter
        .insert_many(&hashes, &mut vec![false; hashes.len()])
        .unwrap();
    compare(&filter, 20_000);
    let why = filter.explain(hashes[0]);
    assert_eq!(why.joined, Joined::Layers);
    assert!(why.looks.len() > 1 && why.looks[0].is_maybe());
}

/// Both read any body the same way.
#[test]
fn damaged_bodies_are_explained_as_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [
        Kind::Bloom,
        Kind::Blocked,
        Kind::Counting,
        Kind::Cuckoo,
        Kind::Fuse,
        Kind::Ribbon,
    ] {
        let filter = match kind.is_static() {
            true => listed(kind, 300),
            false => {
                let plan = Plan::for_rate(kind, 300, 0.1).unwrap();
                AnyFilter::from_plan(&plan, Hasher::default()).unwrap()
            }
        };
        let mut bytes = filter.to_bytes();
        for (number, byte) in (0..).zip(&mut bytes[128..]) {
            *byte = Hash::from_u64(number).as_u128() as u8;
        }
        let path = folder.path().join("damaged");
        std::fs::write(&path, bytes).unwrap();
        let damaged = Open::new().verify(false).open(path).unwrap();
        let mut maybe = 0;
        for number in 0..20_000 {
            let hash = Hash::from_u64(number);
            let why = damaged.explain(hash);
            assert_eq!(why.is_maybe(), damaged.contains(hash), "{kind}: {why:?}");
            maybe += u32::from(why.is_maybe());
        }
        assert!(maybe > 0, "{kind}: nothing is compared");
    }
}

/// All bits are shown if there are few enough to read.
#[test]
fn few_bits_are_shown_whole() {
    for (bits, shown) in [(1, 1), (16, 16), (512, 512), (513, 0)] {
        let plan = Plan::of(BloomShape::new(bits, 3).unwrap(), 4);
        let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
        filter.insert("apple").unwrap();
        let why = filter.explain(filter.hasher().hash(b"apple"));
        let Look::Cells { cells, all } = &why.looks[0] else {
            panic!("{why:?}");
        };
        assert_eq!((all.len(), cells.len()), (shown, 3));
        if shown > 0 {
            for (number, bit) in (0..).zip(all) {
                let is_set = cells.iter().any(|cell| cell.at == number);
                assert_eq!(*bit == 1, is_set, "{bits} bits, {number}");
            }
        }
    }
}

/// The promise of a filter of a few bits matches the rate measured over many of them.
#[test]
fn the_rates_of_teaching_sizes_are_measured() {
    let seeds = if cfg!(miri) { 1 } else { 4_000 };
    for (bits, hashes, keys) in [
        (16, 3, None),
        (16, 3, Some(1)),
        (16, 3, Some(40)),
        (16, 16, Some(1)),
        (32, 32, Some(2)),
        (64, 32, Some(2)),
        (8, 1, None),
        (3, 8, Some(1)),
        (2, 2, None),
        (1, 1, None),
        (100, 7, None),
        (512, 7, None),
        (600, 7, None),
    ] {
        let plan = Plan::of_bits(bits, Some(hashes), keys).unwrap();
        let (mut yes, mut asked, mut squares) = (0.0, 0.0, 0.0);
        for seed in 0..seeds {
            let mut filter = AnyFilter::from_plan(&plan, Hasher::seeded(seed)).unwrap();
            for key in 0..plan.keys() {
                filter.insert(key.to_le_bytes()).unwrap();
            }
            let found = (0..100u64)
                .filter(|key| filter.contains((key + 1_000_000).to_le_bytes()))
                .count() as f64;
            (yes, asked, squares) = (yes + found, asked + 100.0, squares + found * found);
        }
        // The filters differ, so take the error from their own spread.
        let (mean, filters) = (yes / asked, seeds as f64);
        let variance = (squares / filters / 1e4 - mean * mean).max(0.0);
        let error = (variance / filters).sqrt();
        let off = (mean - plan.rate()).abs();
        assert!(
            cfg!(miri) || off <= 4.0 * error + 1e-9,
            "{bits} bits, {hashes} hashes, {} keys: planned {}, measured {mean} ± {error}",
            plan.keys(),
            plan.rate()
        );
    }
}

#[test]
fn plans_of_bits_follow_from_what_is_given() {
    let plan = |bits, hashes, keys| Plan::of_bits(bits, hashes, keys);
    assert_eq!(plan(16, Some(3), None).unwrap().keys(), 4);
    assert_eq!(plan(1, Some(64), None).unwrap().keys(), 1);
    // A thousand times too many, and too few: the rates are reported as they are.
    assert!(plan(16, Some(3), Some(4_000)).unwrap().rate() > 0.999_999);
    assert!(plan(16_000, Some(3), Some(4)).unwrap().rate() < 1e-9);
    for (bits, hashes, keys) in [
        (0, Some(3), None),
        (16, Some(0), None),
        (16, Some(65), None),
        (16, Some(3), Some(0)),
        (16, None, None),
        (u64::MAX, Some(3), None),
    ] {
        assert!(
            plan(bits, hashes, keys).is_err(),
            "{bits} {hashes:?} {keys:?}"
        );
    }
    // One hash is best.
    for keys in [1, 2, 4, 9, 100] {
        for bits in [1, 5, 16, 64, 500] {
            let best = plan(bits, None, Some(keys)).unwrap();
            let others = (1..=64).map(|k| plan(bits, Some(k), Some(keys)).unwrap().rate());
            let least = others.fold(1.0, f64::min);
            assert!(
                best.rate() <= least * 1.000_001,
                "{bits} bits, {keys} keys: {best:?}, {least}"
            );
        }
    }
}

/// A teaching size is a filter like any other.
#[test]
fn a_teaching_size_is_saved_opened_and_united() {
    let plan = Plan::of_bits(16, Some(3), None).unwrap();
    let mut a = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    let mut b = a.duplicate().unwrap();
    a.insert("apple").unwrap();
    b.insert("pear").unwrap();
    a.union_with(&b).unwrap();
    let opened = AnyFilter::from_bytes(&a.to_bytes()).unwrap();
    assert!(opened.is_same(&a) && opened.contains("apple") && opened.contains("pear"));
    assert_eq!((opened.rate(), opened.capacity()), (plan.promise(), 4));
}
