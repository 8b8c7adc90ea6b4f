//! Tables of fingerprints hold what docs/format.md says, and every answer matches an independent
//! reader.

use super::subject::*;
use crate::common::reader::{Entries, Halves, Reader};
use proptest::prelude::*;
use std::time::Duration;
use tamis::{
    AnyFilter, Error, Hash, Kind, ListBuilder, Moment, Plan, Window,
    window::{Span, WindowOptions},
};

fn halves(hash: Hash) -> Halves {
    ((hash.as_u128() >> 64) as u64, hash.as_u128() as u64)
}

/// The reader's answer for a key.
fn lookup(kind: Kind, reader: &Reader<'_>, hash: Hash) -> bool {
    match kind {
        Kind::Fuse => reader.fuse(halves(hash)),
        Kind::Ribbon => reader.ribbon(halves(hash)),
        Kind::Cascade => reader.cascade(halves(hash)),
        Kind::Window => reader.in_window(halves(hash)),
        other => panic!("{other}: has a model, below"),
    }
}

fn agrees(filter: &AnyFilter, asked: &[Hash]) {
    let (kind, file) = (filter.kind(), filter.to_bytes());
    let reader = Reader::new(&file);
    let mut found = vec![false; asked.len()];
    filter.contains_many(asked, &mut found);
    for (hash, found) in asked.iter().zip(found) {
        let read = lookup(kind, &reader, *hash);
        assert_eq!(
            (found, filter.contains(*hash)),
            (read, read),
            "{kind}: {hash:?}"
        );
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_finished_list_answers_as_the_format_says(case in cases(), foreign in keys(0..100)) {
        for kind in [Kind::Fuse, Kind::Ribbon, Kind::Cascade] {
            let list = ListBuilder::with_hasher(kind, case.rate, case.hasher).unwrap();
            let mut list = list.threads(1);
            list.add_all(&case.keys).unwrap();
            let hash = |key: &Key| case.hasher.hash(key);
            let members: Vec<Hash> = case.keys.iter().map(hash).collect();
            let foreign: Vec<Hash> = foreign.iter().map(hash).collect();
            let allowed = foreign.iter().filter(|hash| !members.contains(hash)).copied();
            let allowed: Vec<Hash> = allowed.step_by(2).collect();
            if kind == Kind::Cascade {
                list.allow_hashes(&allowed).unwrap();
            }
            let filter = list.build().unwrap();
            agrees(&filter, &[&members[..], &foreign].concat());
            let file = filter.to_bytes();
            let reader = Reader::new(&file);
            let said = |hashes: &[Hash], yes| hashes.iter().all(|hash| lookup(kind, &reader, *hash) == yes);
            prop_assert!(said(&members, true), "{}: a false no", kind);
            prop_assert!(kind != Kind::Cascade || said(&allowed, false), "a false yes");
        }
    }

    /// A window of time with keys at any moments, queried at the latest.
    #[test]
    fn a_window_answers_as_the_format_says(
        case in cases(),
        foreign in keys(0..100),
        generations in 1u32..20,
        step in 1i64..5_000,
    ) {
        let options = WindowOptions::new(Span::Time(Duration::from_millis(100))).generations(generations);
        let mut window = Window::with_options(&options, case.capacity, case.rate, case.hasher).unwrap();
        for (i, key) in (0..).zip(&case.keys) {
            let at = Moment::from_micros(-50_000 + i * step - 9_000 * (i % 7));
            window.insert_many_mut(&[key], at, &mut [false]);
        }
        let hash = |key: &Key| case.hasher.hash(key);
        let asked: Vec<Hash> = case.keys.iter().chain(&foreign).map(hash).collect();
        agrees(&AnyFilter::Window(window), &asked);
    }

    /// Adding and removing, against a multiset of the entries that the format specifies.
    #[test]
    fn a_cuckoo_filter_is_a_multiset_of_entries(case in cases(), foreign in keys(0..100)) {
        let plan = Plan::for_rate(Kind::Cuckoo, case.capacity.max(400), case.rate.max(1e-8)).unwrap();
        let mut filter = AnyFilter::from_plan(&plan, case.hasher).unwrap();
        let empty = filter.to_bytes();
        let format = Reader::new(&empty);
        let entry = |key: &Key| format.entry(halves(case.hasher.hash(key)));
        let mut model = Entries::new();
        for key in &case.keys {
            let (fingerprint, [low, high]) = entry(key);
            let copies = model.entry((fingerprint, [low, high])).or_default();
            match filter.insert(key) {
                Ok(new) => {
                    prop_assert_eq!(new, *copies == 0);
                    *copies += 1;
                }
                // As many as there are slots in its two places.
                Err(Error::TooManyCopies { copies: most }) => {
                    prop_assert_eq!(*copies, most);
                    prop_assert_eq!(most, format.window() + format.window().min(high - low));
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        let all = [&case.keys[..], &foreign].concat();
        let check = |filter: &AnyFilter, model: &Entries| {
            prop_assert_eq!(&Reader::new(&filter.to_bytes()).entries(), model);
            for (key, found) in all.iter().zip(ask(filter, &all)) {
                let copies = model.get(&entry(key)).copied().unwrap_or_default();
                prop_assert_eq!((found, filter.count(key).unwrap()), (copies > 0, copies));
            }
            Ok(())
        };
        check(&filter, &model)?;
        for key in case.keys.iter().step_by(2) {
            let copies = model.get_mut(&entry(key));
            prop_assert_eq!(filter.remove(key).unwrap(), copies.is_some());
            if let Some(copies) = copies {
                *copies -= 1;
            }
            model.retain(|_, copies| *copies > 0);
        }
        check(&filter, &model)?;
    }
}

/// Bumping layers, several shards of a ribbon, and two of a fuse filter.
#[test]
#[cfg_attr(miri, ignore = "large tables")]
fn large_lists_answer_as_the_format_says() {
    let hashes = |range: std::ops::Range<u64>| range.map(Hash::from_u64).collect::<Vec<_>>();
    for (kind, keys, rate) in [
        (Kind::Fuse, 20_000, 0.01),
        (Kind::Fuse, 3_100_000, 1e-3),
        (Kind::Ribbon, 7_000, 0.5),
        (Kind::Ribbon, 300_000, 0.01),
        (Kind::Cascade, 100_000, 0.01),
    ] {
        let mut list = ListBuilder::new(kind, rate).unwrap();
        list.add_hashes(&hashes(0..keys)).unwrap();
        if kind == Kind::Cascade {
            list.allow_hashes(&hashes(1 << 40..(1 << 40) + 200_000))
                .unwrap();
        }
        let filter = list.build().unwrap();
        let members = hashes(0..keys)
            .into_iter()
            .step_by(keys as usize / 3_000)
            .collect();
        agrees(
            &filter,
            &[members, hashes(1 << 40..(1 << 40) + 3_000)].concat(),
        );
        let file = filter.to_bytes();
        let reader = Reader::new(&file);
        assert!(
            (0..keys)
                .step_by(97)
                .all(|i| lookup(kind, &reader, Hash::from_u64(i))),
            "{kind}"
        );
    }
}
