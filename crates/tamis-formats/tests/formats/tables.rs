//! Filters in the tables of databases and data lakes.

use crate::common::{has, sample};
use tamis_formats::{Create, Error, Format, Hint, Keys};

#[test]
fn tables_of_leveldb_and_rocksdb() {
    let keys: Vec<String> = (0..500).map(|i| format!("key{i:04}")).collect();
    for (name, format) in [
        ("leveldb/leveldb_bloom10_key0000-0499.ldb", Format::LevelDb),
        (
            "rocksdb/rocksdb_fastlocalbloom10_key0000-0499.sst",
            Format::RocksDb,
        ),
    ] {
        let file = sample(name);
        let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), format);
        has(&filter, &keys, Keys::Utf8);
        assert!(matches!(filter.insert(b"key"), Err(Error::ReadOnly { .. })));
        // Truncated or changed files don't cause panics.
        for at in (0..file.len()).rev().step_by(7) {
            let _ = tamis_formats::open(&file[..at], Hint::default());
            let mut changed = file.clone();
            changed[at] ^= 0xFF;
            if let Ok(filter) = tamis_formats::open(&changed, format) {
                filter.contains(b"key0000");
            }
        }
    }
}

/// RocksDB's hash has no other implementation, so this uses a RocksDB table
/// with keys of all lengths in the vectors of the other hashes.
#[test]
fn rocksdb_with_keys_of_every_length() {
    let vectors = include_str!("../vectors/hashes.tsv").lines().skip(1);
    let keys: Vec<Vec<u8>> = vectors
        .take_while(|line| !line.contains('\t'))
        .map(|hex| match hex {
            "LONG" => (0..5_000u32).map(|i| (131 * i + 7) as u8).collect(),
            hex => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
        })
        .collect();
    assert!(keys.len() > 100);
    let file = sample("rocksdb/rocksdb_fastlocalbloom10_vector_keys.sst");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    for key in &keys {
        assert!(filter.contains(key), "{} bytes: {key:02x?}", key.len());
    }
    let wrong = (0..100_000).filter(|i| filter.contains(format!("absent{i}").as_bytes()));
    assert!(wrong.count() < 1_100);
}

#[test]
fn orc() {
    let of = |i: u64| -> [(&str, String); 5] {
        [
            ("i64", (7 * i).to_string()),
            ("i32", (3 * i).to_string()),
            ("s", format!("key{i}")),
            ("f64", format!("{i}.5")),
            ("f32", format!("{i}.25")),
        ]
    };
    for (name, columns) in [
        ("spark43_orc2.3", &["i64", "i32", "s", "f64", "f32"][..]),
        ("pyarrow26", &["s", "i64"]),
    ] {
        let file = sample(&format!("orc/{name}.orc"));
        let error = tamis_formats::open(&file, Hint::default()).unwrap_err();
        assert!(
            matches!(&error, Error::Several { names } if names.len() == columns.len()),
            "{error}"
        );
        for column in columns {
            let hint = Hint {
                format: None,
                name: Some(column.as_bytes()),
                ..Hint::default()
            };
            let filter = tamis_formats::open(&file, hint).unwrap();
            let [encoding] = *filter.keys() else {
                panic!("{:?}", filter.keys())
            };
            let keys: Vec<String> = (0..500)
                .map(|i| {
                    of(i)
                        .into_iter()
                        .find(|(name, _)| name == column)
                        .unwrap()
                        .1
                })
                .collect();
            for key in &keys {
                assert!(
                    filter.contains(&encoding.encode(key.as_bytes()).unwrap()),
                    "{name} {column}: {key}"
                );
            }
            if encoding == Keys::Utf8 || encoding == Keys::Int64 {
                has(&filter, &keys, encoding);
            }
        }
    }
}

#[test]
fn parquet() {
    let value = |column: &str, i: u64| match column {
        "i64" => (7 * i).to_string(),
        "i32" => (3 * i).to_string(),
        "f64" => format!("{i}.5"),
        "f32" => format!("{i}.25"),
        "b" => format!("{i:04}"),
        _ => format!("key{i}"),
    };
    for name in ["duckdb", "pyarrow", "parquet-mr-1.17"] {
        let file = sample(&format!("parquet/{name}.parquet"));
        let chunks = tamis_formats::parquet_chunks(&file).unwrap();
        let filtered = chunks.iter().filter(|chunk| chunk.filter.is_some());
        let columns: std::collections::BTreeSet<&str> =
            filtered.clone().map(|chunk| &*chunk.column).collect();
        assert!(columns.len() >= 5, "{name}: {columns:?}");
        for column in columns {
            let hint = Hint {
                format: None,
                name: Some(column.as_bytes()),
                ..Hint::default()
            };
            let filter = tamis_formats::open(&file, hint).unwrap();
            let [encoding] = *filter.keys() else {
                panic!("{:?}", filter.keys())
            };
            let keys: Vec<Vec<u8>> = (0..500)
                .map(|i| {
                    encoding
                        .encode(value(column, i).as_bytes())
                        .unwrap()
                        .into_owned()
                })
                .collect();
            assert!(
                keys.iter().all(|key| filter.contains(key)),
                "{name} {column}"
            );
            let absent = (0..100_000u64)
                .filter(|i| filter.contains(&(i << 20 | 0xFF00_0000_0000_0001).to_le_bytes()))
                .count();
            let expected = filter.rate_now() * 1e5;
            assert!(
                absent as f64 <= 1.1 * expected + 4.0 * expected.sqrt() + 1.0,
                "{name} {column}: {absent}, {expected}"
            );
        }
        // Building each filter again from its values gives the same bytes.
        for chunk in filtered {
            let filter = &file[chunk.filter.clone().unwrap()];
            let mut blank = filter.to_vec();
            let header = blank.len() - blank.len() / 32 * 32;
            blank[header..].fill(0);
            let mut again = tamis_formats::open(&blank, Format::Parquet).unwrap();
            for i in 0..500 {
                let key = chunk
                    .keys
                    .unwrap()
                    .encode(value(&chunk.column, i).as_bytes())
                    .unwrap()
                    .into_owned();
                again.insert(&key).unwrap();
            }
            assert!(again.to_bytes() == filter, "{name} {}", chunk.column);
            // And created by us.
            let made = tamis_formats::create(Create::Parquet, 500, 0.01)
                .unwrap()
                .to_bytes();
            assert_eq!(made[..1], filter[..1]);
            assert_eq!(made[3..16], filter[3..16], "the header is everybody's");
        }
    }
}

#[test]
fn filters_are_added_to_a_parquet_file() {
    let file = sample("parquet/pyarrow.parquet");
    let mut filter = tamis_formats::create(Create::Parquet, 500, 0.001).unwrap();
    filter.insert(b"only this").unwrap();
    let filter = filter.to_bytes();
    let new = tamis_formats::ParquetFilter {
        row_group: 0,
        column: "s",
        filter: &filter,
    };
    let added = tamis_formats::parquet_with_filters(&file, &[new]).unwrap();
    let written = [&file[..added.data_end], &added.bytes].concat();
    let hint = Hint {
        format: None,
        name: Some(b"s"),
        ..Hint::default()
    };
    let opened = tamis_formats::open(&written, hint).unwrap();
    assert!(opened.contains(b"only this") && !opened.contains(b"key7"));
    // Nothing else changes: without new filters, the file is the same.
    let same = tamis_formats::parquet_with_filters(&file, &[]).unwrap();
    assert!([&file[..same.data_end], &same.bytes].concat() == file);
    let nowhere = tamis_formats::ParquetFilter {
        row_group: 0,
        column: "t",
        filter: &filter,
    };
    assert!(tamis_formats::parquet_with_filters(&file, &[nowhere]).is_err());
}
