//! `FileIndex`: its promises, against a naive oracle; its size; its bytes.

mod bytes;
mod files;
mod golden;

use proptest::prelude::*;
use std::collections::BTreeSet;
use tamis::index::{EntryFilters, EntryKeys, FileIndex, IndexBuilder, IndexOptions, Stamp};
use tamis::{Error, Hash, Hasher, SecretKey};

fn options(rate: f64) -> IndexOptions {
    IndexOptions::new(rate).unwrap()
}

/// The filters of these keys, one list per spec.
fn filters<K: AsRef<[u8]>>(options: &IndexOptions, specs: &[Vec<K>]) -> EntryFilters {
    let mut keys = EntryKeys::new(options);
    for (spec, list) in specs.iter().enumerate() {
        list.iter().for_each(|key| keys.add(spec, key));
    }
    keys.build().unwrap()
}

/// The filters of this many keys that belong only to this entry.
fn numbered(options: &IndexOptions, entry: u64, keys: u64) -> EntryFilters {
    let mut all = EntryKeys::new(options);
    for key in 0..keys {
        all.add(0, Hash::from_u64(entry << 40 | key));
    }
    all.build().unwrap()
}

/// An index with one entry for each of these numbers of keys.
fn of_sizes(options: &IndexOptions, sizes: &[u64]) -> FileIndex {
    let mut builder = IndexBuilder::in_memory(options);
    for (entry, keys) in sizes.iter().enumerate() {
        let filters = numbered(options, entry as u64, *keys);
        assert_eq!(filters.keys(0), *keys);
        builder.add(entry.to_string(), None, &filters).unwrap();
    }
    builder.finish().unwrap()
}

/// Store files with cells of row and column, indexed by row and by both.
fn store_files(files: &[(&str, &[(&str, &str)])]) -> FileIndex {
    let options = options(0.01).specs(["row", "row,column"]).unwrap();
    let mut builder = IndexBuilder::in_memory(&options);
    for (id, cells) in files {
        let rows = cells.iter().map(|(row, _)| row.to_string()).collect();
        let both = cells.iter().map(|(row, column)| format!("{row}\0{column}"));
        let filters = filters(&options, &[rows, both.collect::<Vec<_>>()]);
        builder.add(id, None, &filters).unwrap();
    }
    builder.finish().unwrap()
}

fn candidates<'a>(index: &'a FileIndex, spec: &str, key: &str) -> Vec<&'a [u8]> {
    let found = index.spec(spec).unwrap().candidates(key);
    found.iter().map(|entry| entry.id()).collect()
}

/// HBase's ROW: only sf1 is read for r1.
#[test]
fn rows_of_one_file_skip_the_other() {
    let index = store_files(&[
        ("sf1", &[("r1", "q1"), ("r2", "q1")]),
        ("sf2", &[("r3", "q1"), ("r4", "q1")]),
    ]);
    assert_eq!(candidates(&index, "row", "r1"), [b"sf1"]);
    assert_eq!(candidates(&index, "row", "r2"), [b"sf1"]);
    assert_eq!(candidates(&index, "row", "r3"), [b"sf2"]);
    assert_eq!(candidates(&index, "row", "r4"), [b"sf2"]);
}

/// HBase's ROWCOL: both files have row r1, and one of them the cell.
#[test]
fn rows_in_both_files_are_told_apart_by_column() {
    let index = store_files(&[
        ("sf1", &[("r1", "q1"), ("r2", "q1")]),
        ("sf2", &[("r1", "q2"), ("r2", "q2")]),
    ]);
    assert_eq!(candidates(&index, "row", "r1"), [b"sf1", b"sf2"]);
    assert_eq!(candidates(&index, "row,column", "r1\0q1"), [b"sf1"]);
    assert_eq!(candidates(&index, "row,column", "r1\0q2"), [b"sf2"]);
    assert_eq!(candidates(&index, "row,column", "r2\0q1"), [b"sf1"]);
}

/// The number of keys determines a table's layout: one group or many, a cut last group, bumping
/// layers. All rates, because they determine the columns.
#[test]
fn never_a_false_no_at_any_size() {
    let layered = [2499, 2500, 2501, 6_000, 70_000];
    let sizes: Vec<u64> = (0..=260)
        .chain([511, 512, 513, 1000])
        .chain(layered)
        .collect();
    for rate in [0.5, 0.3, 0.1, 0.01, 0.003, 1e-6, 3e-10] {
        let index = of_sizes(&options(rate), &sizes);
        let spec = index.spec("key").unwrap();
        for (entry, keys) in sizes.iter().enumerate() {
            let asked = |key: &u64| *keys < 300 || key.is_multiple_of(7);
            let hashes: Vec<Hash> = (0..*keys)
                .filter(asked)
                .take(700)
                .map(|key| Hash::from_u64((entry as u64) << 40 | key))
                .collect();
            for (found, hash) in spec.candidates_many(&hashes).iter().zip(&hashes) {
                let holds = |found: &tamis::index::Entry<'_>| found.number() == entry;
                assert!(found.iter().any(holds), "rate {rate}, {keys} keys");
                if *keys % 16 == 3 {
                    let alone = spec.candidates(*hash);
                    let numbers = |found: &[tamis::index::Entry<'_>]| -> Vec<usize> {
                        found.iter().map(|entry| entry.number()).collect()
                    };
                    assert_eq!(numbers(&alone), numbers(found));
                }
            }
        }
    }
}

/// The promise is an upper bound at every size, and from a few thousand keys on, the rate comes
/// within a few percent of it.
#[test]
fn the_promised_rate_is_kept() {
    const PROBES: u64 = 400_000;
    for rate in [0.5, 0.3, 0.1, 0.05, 0.01, 0.003] {
        for keys in [1, 3, 50, 64, 65, 200, 1000, 2400, 6000, 70_000] {
            let index = of_sizes(&options(rate), &[keys]);
            let hashes: Vec<Hash> = (0..PROBES).map(|i| Hash::from_u64(1 << 62 | i)).collect();
            let spec = index.spec("key").unwrap();
            let found = spec.candidates_many(&hashes);
            let yes = found.iter().filter(|found| !found.is_empty()).count() as f64;
            let expected = rate * PROBES as f64;
            // Five standard errors.
            let error = 5.0 * (expected * (1.0 - rate)).sqrt();
            assert!(
                yes < expected + error,
                "{rate}, {keys} keys: {yes} of {expected}"
            );
            if keys >= 1000 {
                let most = expected * 0.92 - error;
                assert!(yes > most, "{rate}, {keys} keys: {yes} of {expected}");
            }
        }
    }
}

/// The bar: 1.2 times what any filter needs, plus the names. The directory has 80 bytes per entry,
/// so it takes a number of keys to reach.
#[test]
fn an_index_is_near_the_least_possible_size() {
    for (rate, keys) in [
        (0.5, 20_000),
        (0.25, 10_000),
        (0.1, 2_000),
        (0.05, 1_500),
        (0.03, 1_000),
        (0.01, 750),
        (0.01, 20_000),
        (0.003, 600),
        (0.003, 20_000),
        (0.001, 450),
        (1e-6, 600),
    ] {
        let sizes = [keys, keys + 1, keys + 2];
        let index = of_sizes(&options(rate), &sizes);
        let info = index.info();
        assert_eq!(info.bytes(), index.to_bytes().len() as u64);
        assert_eq!(info.keys, [sizes.iter().sum::<u64>()]);
        // One header for the thousand entries of a real index.
        let bits = (info.bytes() - info.name_bytes - 128) as f64 * 8.0;
        let bound = info.keys[0] as f64 * libm::log2(1.0 / rate);
        assert!(
            bits < 1.2 * bound,
            "{rate}, {keys} keys: {:.3}",
            bits / bound
        );
        let filters = info.filter_bytes as f64 * 8.0 / bound;
        assert!(filters < 1.1, "{rate}, {keys} keys: filters {filters:.3}");
    }
}

/// Bits per key of the filters alone; docs/choosing.md lists those at 1 %.
#[test]
fn sizes_are_as_documented() {
    const KEYS: [u64; 8] = [1, 3, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    const TABLE: [(f64, [f64; 8]); 6] = [
        (0.5, [64.0, 21.33, 6.4, 1.28, 1.02, 1.02, 1.01, 1.01]),
        (0.1, [64.0, 21.33, 6.4, 4.48, 3.58, 3.48, 3.45, 3.45]),
        (0.05, [64.0, 21.33, 6.4, 5.12, 4.6, 4.48, 4.45, 4.45]),
        (0.01, [64.0, 21.33, 12.8, 7.39, 6.92, 6.79, 6.76, 6.76]),
        (0.003, [64.0, 21.33, 12.8, 9.6, 8.73, 8.56, 8.52, 8.52]),
        (0.001, [64.0, 21.33, 12.8, 10.24, 10.23, 10.04, 10.0, 10.0]),
    ];
    let long = std::env::var("TAMIS_LONG").is_ok_and(|v| v == "1");
    for (rate, documented) in TABLE {
        let most = if long { 1_000_000 } else { 100_000 };
        for (keys, documented) in KEYS.into_iter().zip(documented) {
            if keys > most {
                continue;
            }
            let entries = (10_000 / keys).clamp(1, 20);
            let info = of_sizes(&options(rate), &vec![keys; entries as usize]).info();
            let bits = info.filter_bytes as f64 * 8.0 / (keys * entries) as f64;
            let shown = (bits * 100.0).round() / 100.0;
            assert_eq!(shown, documented, "{rate}, {keys} keys");
        }
    }
}

/// Few keys take few bytes: `keys * bits`, to the next multiple of 8.
#[test]
fn small_filters_have_no_overhead() {
    for (keys, bytes) in [(0, 0), (1, 8), (3, 8), (9, 8), (10, 16), (50, 48), (63, 56)] {
        let info = of_sizes(&options(0.01), &[keys]).info();
        assert_eq!(info.filter_bytes, bytes, "{keys} keys of 7 bits");
        assert_eq!(
            info.directory_bytes,
            128 + 32 + 48 + 4 * u64::from(keys > 0) + 8 + 3
        );
    }
}

#[test]
fn a_rate_that_no_index_keeps_is_refused() {
    for rate in [0.0, -1.0, 0.500001, 1.0, 1e-11, f64::NAN] {
        let error = IndexOptions::new(rate).unwrap_err();
        assert!(
            matches!(error, Error::Parameter { what: "rate", .. }),
            "{rate}: {error}"
        );
    }
}

#[test]
fn specs_are_one_to_255_different_texts() {
    let none: [&str; 0] = [];
    assert!(options(0.1).specs(none).is_err());
    assert!(options(0.1).specs(["a", "b", "a"]).is_err());
    assert!(options(0.1).specs((0..256).map(|i| i.to_string())).is_err());
    let most = options(0.1).specs((0..255).map(|i| i.to_string())).unwrap();
    let mut builder = IndexBuilder::in_memory(&most);
    let mut keys = EntryKeys::new(&most);
    (0..255).for_each(|spec| keys.add(spec, format!("of {spec}")));
    builder.add("e", None, &keys.build().unwrap()).unwrap();
    let index = FileIndex::from_bytes(builder.finish().unwrap().to_bytes()).unwrap();
    for spec in index.specs() {
        assert_eq!(spec.text(), spec.number().to_string());
        assert_eq!(spec.candidates(format!("of {}", spec.number())).len(), 1);
        assert_eq!(spec.keys(), 1);
    }
    let error = index.spec("300").unwrap_err().to_string();
    assert!(error.contains("300") && error.contains("254"), "{error}");
}

#[test]
fn keys_may_come_again_and_again() {
    let options = options(0.01);
    let mut keys = EntryKeys::new(&options);
    for i in 0..1_000_000u64 {
        keys.add(0, (i % 100_000).to_le_bytes());
    }
    let mut once = EntryKeys::new(&options);
    (0..100_000u64)
        .rev()
        .for_each(|i| once.add(0, i.to_le_bytes()));
    let keys = keys.build().unwrap();
    assert_eq!(keys.keys(0), 100_000);
    assert_eq!(keys, once.build().unwrap(), "only the set matters");
}

/// The expected content of an index, looked up the slow way.
#[derive(Clone, Debug)]
struct Model {
    id: Vec<u8>,
    stamp: Option<Stamp>,
    /// Keys of each spec, or why they are unknown.
    keys: Result<Vec<BTreeSet<u8>>, String>,
}

fn model(specs: usize) -> impl Strategy<Value = Vec<Model>> {
    let times = (any::<u64>(), any::<i64>(), any::<i64>(), any::<u64>());
    let stamp = times
        .prop_map(|(size, modified, changed, inode)| Stamp::new(size, modified, changed, inode));
    let set = prop::collection::btree_set(any::<u8>(), 0..40);
    let keys = prop_oneof![
        4 => prop::collection::vec(set, specs).prop_map(Ok),
        1 => "\\PC{0,12}".prop_map(Err),
    ];
    let id = prop::collection::vec(any::<u8>(), 0..20);
    let entry =
        (id, prop::option::of(stamp), keys).prop_map(|(id, stamp, keys)| Model { id, stamp, keys });
    prop::collection::vec(entry, 0..70)
}

fn build(options: &IndexOptions, model: &[Model], mut builder: IndexBuilder) -> FileIndex {
    for entry in model {
        match &entry.keys {
            Ok(specs) => {
                let specs: Vec<Vec<[u8; 1]>> = specs
                    .iter()
                    .map(|set| set.iter().map(|k| [*k]).collect())
                    .collect();
                let filters = filters(options, &specs);
                builder.add(&entry.id, entry.stamp, &filters).unwrap();
            }
            Err(reason) => builder
                .add_unindexed(&entry.id, entry.stamp, reason)
                .unwrap(),
        }
    }
    builder.finish().unwrap()
}

fn check<B: tamis::body::Body>(index: &FileIndex<B>, model: &[Model], specs: usize) {
    index.verify().unwrap();
    assert_eq!(index.len(), model.len());
    assert_eq!(index.is_empty(), model.is_empty());
    for (entry, model) in index.entries().zip(model) {
        assert_eq!(entry.id(), model.id);
        assert_eq!(entry.stamp(), model.stamp);
        assert_eq!(
            entry.unindexed(),
            model.keys.as_ref().err().map(|r| r.as_str())
        );
        for spec in 0..specs {
            let keys = model
                .keys
                .as_ref()
                .map_or(0, |keys| keys[spec].len() as u64);
            assert_eq!(entry.keys(spec), keys);
        }
    }
    let keys: Vec<[u8; 1]> = (0..=255).map(|key| [key]).collect();
    for spec in index.specs() {
        for (key, found) in keys.iter().zip(spec.candidates_many(&keys)) {
            let found: BTreeSet<usize> = found.iter().map(|entry| entry.number()).collect();
            let alone = spec.candidates(key);
            assert!(
                alone
                    .iter()
                    .map(|entry| entry.number())
                    .eq(found.iter().copied())
            );
            for (number, model) in model.iter().enumerate() {
                match &model.keys {
                    Ok(keys) if keys[spec.number()].contains(&key[0]) => {
                        assert!(found.contains(&number), "a false no");
                    }
                    Ok(keys) if keys[spec.number()].is_empty() => {
                        assert!(!found.contains(&number), "there is nothing in it");
                    }
                    Ok(_) => {}
                    Err(_) => assert!(found.contains(&number), "it may hold anything"),
                }
            }
        }
    }
}

fn hashers() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        any::<u64>().prop_map(Hasher::seeded),
        any::<[u8; 16]>().prop_map(|key| Hasher::keyed(SecretKey::new(key))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// In memory, in a file, from bytes of any alignment, and built from another one, the index is
    /// the same and answers correctly.
    #[test]
    fn agrees_with_the_oracle(
        (specs, model) in (1usize..4).prop_flat_map(|specs| (Just(specs), model(specs))),
        rate in 0.001f64..0.5,
        hasher in hashers(),
        shift in 0usize..8,
    ) {
        let texts = ["word", "csv:id", ""];
        let options = options(rate).hasher(hasher).specs(texts.into_iter().take(specs)).unwrap();
        let index = build(&options, &model, IndexBuilder::in_memory(&options));
        check(&index, &model, specs);
        prop_assert_eq!(IndexOptions::of(&index), options.clone());

        let bytes = index.to_bytes();
        let moved = [vec![0xff; shift], bytes.clone()].concat();
        check(&FileIndex::view(&moved[shift..]).unwrap(), &model, specs);

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        drop(build(&options, &model, IndexBuilder::create(&path, &options).unwrap()));
        let opened = FileIndex::open(&path).unwrap();
        check(&opened, &model, specs);
        prop_assert!(opened.to_bytes() == bytes, "the file is the same bytes");

        // A rerun: every second entry is copied, the others are rebuilt.
        let mut builder = IndexBuilder::create(&path, &options).unwrap();
        for (number, entry) in opened.entries().enumerate() {
            match &model[number].keys {
                Ok(sets) if number % 2 == 0 => {
                    let lists = sets.iter().map(|set| set.iter().map(|k| [*k]).collect());
                    let filters = filters(&options, &lists.collect::<Vec<Vec<_>>>());
                    builder.add(entry.id(), entry.stamp(), &filters).unwrap();
                }
                _ => builder.copy(&entry).unwrap(),
            }
        }
        prop_assert!(builder.finish().unwrap().to_bytes() == bytes, "the rerun is the same");
        check(&opened, &model, specs); // those who have the old one open still read it
    }
}
