//! Adding, growing, dumping, loading and merging, in both layouts.

use super::*;
use tamis::window::WindowOptions;

fn new(capacity: u64, expansion: u32, layout: FilterLayout) -> Bloom {
    NewBloom {
        capacity,
        expansion: Some(expansion),
        layout,
        ..NewBloom::default()
    }
    .make()
    .unwrap()
}

fn keys(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    range.map(|i| format!("key:{i}").into_bytes()).collect()
}

fn add(filter: &mut Bloom, keys: &[Vec<u8>]) -> Vec<bool> {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut new = vec![false; keys.len()];
    for (keys, new) in keys.chunks(7).zip(new.chunks_mut(7)) {
        filter.insert_many(keys, new, &u64::MAX).unwrap();
    }
    new
}

fn dumped(filter: &Bloom, most: usize) -> Loading {
    let header = filter.dump_header();
    let mut loading = Loading::new(&header, Bloom::expected(&header).unwrap());
    let mut at = 0;
    loop {
        let chunk = filter.dump(at, most);
        if chunk.is_empty() {
            return loading;
        }
        at += chunk.len() as u64;
        loading.push(1 + at, &chunk).unwrap();
    }
}

#[test]
fn both_layouts_add_ask_dump_and_load() {
    for layout in [FilterLayout::Tamis, FilterLayout::RedisBloom] {
        for expansion in [1, 2, 4] {
            let mut filter = new(100, expansion, layout);
            let all = keys(0..3_000);
            let new = add(&mut filter, &all);
            assert!(new.iter().filter(|new| **new).count() > 2_940);
            assert!(add(&mut filter, &all).iter().all(|new| !new));
            let info = filter.info().unwrap();
            assert_eq!(info.expansion, Some(expansion.into()));
            assert!(info.layers > 1 && info.capacity >= info.keys);
            for most in [1, 100, 1 << 20] {
                let loading = dumped(&filter, most);
                assert!(loading.is_whole());
                let mut copy = Bloom::arrived(&loading).unwrap();
                assert_eq!(copy.info().unwrap(), info);
                assert!(all.iter().all(|key| copy.contains(key).unwrap()));
                // It also continues to grow in the same way.
                let more = keys(3_000..4_000);
                let mut other = filter.duplicate().unwrap();
                assert_eq!(add(&mut copy, &more), add(&mut other, &more));
                assert_eq!(dumped(&copy, 999).received(), dumped(&other, 99).received());
                if most == 1 {
                    break;
                }
            }
        }
    }
}

#[test]
fn windows_dump_and_load() {
    let day = tamis::window::Span::Time(std::time::Duration::from_secs(86_400));
    let of = |window: Window| {
        let at = tamis::Moment::from_secs(1_700_000_000);
        window.insert("key", at);
        let filter = Bloom::Window(window);
        (dumped(&filter, 100), filter)
    };
    let new = NewBloom {
        window: Some(WindowOptions::new(day)),
        ..NewBloom::default()
    };
    let Bloom::Window(window) = new.make().unwrap() else {
        panic!("a window was asked for");
    };
    let (loading, filter) = of(window);
    let copy = Bloom::arrived(&loading).unwrap();
    assert_eq!(copy.info().unwrap(), filter.info().unwrap());
    assert!(copy.contains(b"key").unwrap() && !copy.contains(b"other").unwrap());
    assert_eq!(dumped(&copy, 1 << 20).received(), loading.received());
    let empty = copy.template().unwrap();
    assert!(!empty.contains(b"key").unwrap());
    // A window by the server's clock isn't a filter of a number of keys.
    let (loading, _) = of(Window::new(100, 0.01).unwrap());
    let refused = Bloom::arrived(&loading).err().unwrap();
    assert!(refused.0.contains("windows of time"), "{refused:?}");
}

#[test]
fn one_that_cannot_grow_says_so_and_keeps_what_it_has() {
    for layout in [FilterLayout::Tamis, FilterLayout::RedisBloom] {
        let mut filter = new(3, 0, layout);
        let all = keys(0..6);
        let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let mut new = [false; 6];
        let (at, error) = filter
            .insert_many(&slices, &mut new, &u64::MAX)
            .unwrap_err();
        assert_eq!((at, error), (3, Error::FULL));
        assert_eq!(new, [true, true, true, false, false, false]);
        assert!(!filter.insert(&all[0], &u64::MAX).unwrap());
    }
}

#[test]
fn a_limit_stops_growth_only() {
    for layout in [FilterLayout::Tamis, FilterLayout::RedisBloom] {
        let mut filter = new(100, 2, layout);
        let all = keys(0..200);
        let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let mut new = [false; 200];
        let (at, error) = filter.insert_many(&slices, &mut new, &300).unwrap_err();
        assert_eq!(error, Error::LIMIT);
        assert!((100..=104).contains(&at), "{at}");
        assert!(!filter.insert(&all[0], &300).unwrap());
    }
}

#[test]
fn merging_needs_room() {
    for layout in [FilterLayout::Tamis, FilterLayout::RedisBloom] {
        let (mut a, mut b) = (new(5_000, 2, layout), new(5_000, 2, layout));
        add(&mut a, &keys(0..2_000));
        add(&mut b, &keys(2_000..4_000));
        a.union_with(&b).unwrap();
        assert!(keys(0..4_000).iter().all(|key| a.contains(key).unwrap()));
        let before = dumped(&a, 1 << 20).received().to_vec();
        assert!(a.union_with(&b).is_err());
        assert!(a.union_with(&new(7_000, 2, layout)).is_err());
        assert_eq!(dumped(&a, 1 << 20).received(), before);
        let empty = a.template().unwrap();
        assert_eq!(empty.info().unwrap().keys, 0);
    }
    let (mut a, b) = (
        new(100, 2, FilterLayout::Tamis),
        new(100, 2, FilterLayout::RedisBloom),
    );
    assert!(a.union_with(&b).is_err());
}

#[test]
fn half_a_filter_answers_nothing() {
    let mut filter = new(1_000, 2, FilterLayout::RedisBloom);
    add(&mut filter, &keys(0..10));
    let header = filter.dump_header();
    let mut loading = Loading::new(&header, Bloom::expected(&header).unwrap());
    loading.push(101, &filter.dump(0, 100)).unwrap();
    let mut half = Bloom::Loading(loading);
    assert!(half.contains(b"key:1").is_err() && half.insert(b"x", &u64::MAX).is_err());
    assert!(half.info().is_err() && half.template().is_err());
    assert!(half.contains_many(&[b"key:1"], &mut [false]).is_err());
}
