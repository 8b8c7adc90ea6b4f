//! Files that the real implementations wrote: each opens, has its keys, keeps
//! its rate, and is written again byte for byte from the same keys.

use std::path::PathBuf;
use tamis_formats::{Create, Error, Foreign, Format, Hint, Keys, Optimise, Strategy};

fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn words(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|i| format!("key{i}")).collect()
}

fn numbers() -> Vec<String> {
    (0..500).map(|i| i.to_string()).collect()
}

/// The rate that a sample was made for.
fn own_rate(filter: &Foreign<'_>) -> f64 {
    let of_format = match filter.format() {
        // Two buckets of four slots, with one of 255 fingerprints each; cfkick has two tables.
        Format::RedisCuckoo => 2.0 * 2.0 * 4.0 / 255.0,
        // Two filters of ten bits a key, and any of them may answer.
        Format::LevelDb => 2.0 * 0.01,
        _ => 0.01,
    };
    filter.facts().rate.unwrap_or(of_format)
}

/// All keys are there, and of 100,000 others no more than the rate allows.
fn has(filter: &Foreign<'_>, keys: &[String], encoding: Keys) {
    let format = filter.format();
    let encode = |key: &String| encoding.encode(key.as_bytes()).unwrap().into_owned();
    let present: Vec<_> = keys.iter().map(encode).collect();
    let mut answers = vec![false; present.len()];
    filter.contains_many(&present, &mut answers);
    assert!(
        answers.iter().all(|yes| *yes),
        "{format}: a key is missing from a batch"
    );
    assert!(
        present.iter().all(|key| filter.contains(key)),
        "{format}: a key is missing"
    );

    let absent: Vec<_> = (1_000_000..1_100_000)
        .map(|i| match encoding {
            Keys::Int32 | Keys::Int64 => encode(&i.to_string()),
            _ => encode(&format!("absent{i}")),
        })
        .collect();
    let mut answers = vec![false; absent.len()];
    filter.contains_many(&absent, &mut answers);
    for (key, answer) in absent.iter().zip(&answers).step_by(97) {
        assert_eq!(
            filter.contains(key),
            *answer,
            "{format}: batch and single differ"
        );
    }
    let wrong = answers.iter().filter(|yes| **yes).count() as f64;
    assert!(
        wrong <= 1.1 * own_rate(filter) * absent.len() as f64,
        "{format}: {wrong} wrong, made for {}",
        own_rate(filter)
    );
    // What is computed of it holds, too, within four standard deviations beside
    // the tenth.
    let expected = filter.rate_now() * absent.len() as f64;
    assert!(
        wrong <= 1.1 * expected + 4.0 * expected.sqrt(),
        "{format}: {wrong} wrong, {expected} expected"
    );
    let estimated = filter.keys_now().unwrap() / keys.len() as f64;
    // poppy does not hash keys of up to eight bytes, so that some of their bits coincide.
    let tolerance = if format == Format::Poppy { 0.15 } else { 0.1 };
    assert!(
        (estimated - 1.0).abs() < tolerance,
        "{format}: {estimated} of the keys"
    );
}

/// Made anew from the same keys, it is the same file.
fn again(what: Create, keys: &[String], encoding: Keys, expected: &[u8]) {
    again_for(what, 1_000, 0.01, keys, encoding, expected);
}

fn again_for(what: Create, n: u64, rate: f64, keys: &[String], encoding: Keys, expected: &[u8]) {
    let mut filter = tamis_formats::create(what.clone(), n, rate).unwrap();
    for key in keys {
        filter
            .insert(&encoding.encode(key.as_bytes()).unwrap())
            .unwrap();
    }
    assert!(
        filter.to_bytes() == expected,
        "{what:?} writes another file"
    );
}

#[test]
fn guava() {
    for (name, encoding, keys) in [
        ("bytes_n1000_p01_key0-499.mitz64", Keys::Utf8, words(0..500)),
        (
            "string_utf8_n1000_p01_key0-499.mitz64",
            Keys::Utf8,
            words(0..500),
        ),
        (
            "string_utf8_n1000_p01_key0-499.mitz32",
            Keys::Utf8,
            words(0..500),
        ),
        (
            "unencodedchars_n1000_p01_key0-499.mitz64",
            Keys::Utf16,
            words(0..500),
        ),
        ("int_n1000_p01_0-499.mitz64", Keys::Int32, numbers()),
        ("long_n1000_p01_0-499.mitz64", Keys::Int64, numbers()),
    ] {
        let file = sample(&format!("guava/guava_{name}.bin"));
        let filter = tamis_formats::open(&file, Format::Guava).unwrap();
        has(&filter, &keys, encoding);
        assert!(filter.to_bytes() == file);
        let strategy = match name.ends_with("32") {
            true => Strategy::Mitz32,
            false => Strategy::Mitz64,
        };
        for before_33_4 in [false, true] {
            again(
                Create::Guava {
                    strategy,
                    before_33_4,
                },
                &keys,
                encoding,
                &file,
            );
        }
    }
    // From 33.4 on the number of hashes is another for few keys.
    let hashes = |before_33_4| {
        let what = Create::Guava {
            strategy: Strategy::Mitz64,
            before_33_4,
        };
        tamis_formats::create(what, 5, 0.011).unwrap().hashes()
    };
    assert_eq!((hashes(true), hashes(false)), (Some(6), Some(7)));
}

#[test]
fn spark() {
    for (name, encoding) in [("string_key0-499", Keys::Utf8), ("long_0-499", Keys::Int64)] {
        let keys = if encoding == Keys::Utf8 {
            words(0..500)
        } else {
            numbers()
        };
        for (version, bits) in [("v1", "_bits9600"), ("v2", "_bits9600"), ("default", "")] {
            let file = sample(&format!("spark/spark_{version}_{name}{bits}.bin"));
            let filter = tamis_formats::open(&file, Format::Spark).unwrap();
            has(&filter, &keys, encoding);
            let seed =
                (version != "v1").then(|| u32::from_be_bytes(file[8..12].try_into().unwrap()));
            again(Create::Spark { seed }, &keys, encoding, &file);
        }
    }
}

#[test]
fn dcso() {
    let keys = words(0..500);
    let file = sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Dcso);
    has(&filter, &keys, Keys::Utf8);
    let facts = filter.facts();
    assert_eq!(
        (facts.capacity, facts.rate, facts.keys),
        (Some(1_000), Some(0.01), Some(500))
    );
    again(Create::Dcso, &keys, Keys::Utf8, &file);
    assert!(sample("poppy/poppy_v1_n1000_p01_key0-499.bloom") == file);

    // The user's data behind the bits stays, and gzip is seen through.
    let with_data = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom");
    let packed = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom.gz");
    for file in [&with_data, &packed] {
        let mut filter = tamis_formats::open(file, Hint::default()).unwrap();
        has(&filter, &keys, Keys::Utf8);
        assert_eq!(filter.facts().data, 10);
        assert!(filter.insert(b"one more").unwrap());
        let written = filter.to_bytes();
        let again = tamis_formats::open(&written, Hint::default()).unwrap();
        assert_eq!((again.facts().data, again.facts().keys), (10, Some(501)));
        assert!(again.contains(b"one more"));
    }
}

#[test]
fn pybloomfilter() {
    let file = sample("pybloomfilter/pbfm3_0.6.3_cap1000_p01_seeds.bloom");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    let keys = words(0..500);
    has(&filter, &keys, Keys::Utf8);
    for number in [12_345i64, -7] {
        assert!(filter.contains(&number.to_le_bytes()));
    }
    assert!(filter.contains(b"\x00\xff"));
    let seeds = vec![1, 2, 3, 0xdead_beef, 5, 6];
    let mut made = tamis_formats::create(Create::Pybloomfilter { seeds }, 1_000, 0.01).unwrap();
    for key in &keys {
        made.insert(key.as_bytes()).unwrap();
    }
    for key in [
        &12_345i64.to_le_bytes()[..],
        &(-7i64).to_le_bytes(),
        b"\x00\xff",
    ] {
        made.insert(key).unwrap();
    }
    assert!(made.to_bytes() == file);
    let file = sample("pybloomfilter/pbfm3_0.6.3_cap1000_p01_randseeds.bloom");
    has(
        &tamis_formats::open(&file, Hint::default()).unwrap(),
        &keys,
        Keys::Utf8,
    );
}

#[test]
fn bits_and_blooms() {
    let keys = words(0..500);
    for (json, end) in [(false, "bin"), (true, "json")] {
        let file = sample(&format!("bitsandblooms/bb_v3_n1000_p01_key0-499.{end}"));
        let filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::BitsAndBlooms);
        has(&filter, &keys, Keys::Utf8);
        again(Create::BitsAndBlooms { json }, &keys, Keys::Utf8, &file);
    }
}

#[test]
fn bip37() {
    let file = sample("bip37/bip37_n100_p01_tweak0_key0-49.bin");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Bip37);
    has(&filter, &words(0..50), Keys::Utf8);
    let what = Create::Bip37 { tweak: 0, flags: 1 };
    again_for(what, 100, 0.01, &words(0..50), Keys::Utf8, &file);
}

#[test]
fn npm() {
    let file = sample("npm-bloom-filters/bloom_n1000_p01_key0-499.json");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Npm);
    has(&filter, &words(0..500), Keys::Utf8);
    let what = Create::Npm {
        seed: 78_187_493_520,
    };
    again(what, &words(0..500), Keys::Utf8, &file);
}

#[test]
fn redisson() {
    let file = sample("redisson/redisson_stringcodec_n1000_p01_key0-499.bitmap");
    let filter = tamis_formats::redisson(file.clone(), 9_585, 7).unwrap();
    has(&filter, &words(0..500), Keys::Utf8);
    again(Create::Redisson, &words(0..500), Keys::Utf8, &file);
}

#[test]
fn cassandra() {
    let file = sample("cassandra/cassandra4_Filter.db");
    let mut filter = tamis_formats::open(&file, Format::Cassandra).unwrap();
    for key in words(0..500) {
        assert!(filter.contains(key.as_bytes()));
    }
    for i in 500..600u32 {
        assert!(filter.contains(&[0xFF, i as u8, 0x80]), "bytes with a sign");
    }
    let wrong = (0..100_000).filter(|i| filter.contains(format!("absent{i}").as_bytes()));
    assert!(wrong.count() as f64 <= 1.1 * filter.rate_now() * 1e5);
    assert!((filter.keys_now().unwrap() / 600.0 - 1.0).abs() < 0.1);
    assert!(filter.to_bytes() == file);
    assert!(matches!(filter.insert(b"key"), Err(Error::ReadOnly { .. })));
}

#[test]
fn valkey_bloom() {
    let file = sample("valkey-bloom/bloomfilter3_asslice_fixedseed_n1000_p01_key0-499.bin");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Valkey);
    has(&filter, &words(0..500), Keys::Utf8);
}

/// The chunks of a sample as our file of them.
fn chunks(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples/redisbloom");
    let mut pairs: Vec<(u64, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let rest = path
                .file_name()?
                .to_str()?
                .strip_prefix(name)?
                .strip_prefix(".chunk")?;
            let iterator = rest.split_once(".iter")?.1.parse().unwrap();
            Some((iterator, std::fs::read(&path).unwrap()))
        })
        .collect();
    pairs.sort();
    let mut file = b"RBCHUNK1".to_vec();
    for (iterator, data) in pairs {
        file.extend(iterator.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        file.extend(data);
    }
    file
}

#[test]
fn redisbloom() {
    for (name, growth, n, rate, keys) in [
        ("bfscale", Some(2), 100, 0.01, words(0..1_000)),
        ("bffixed", None, 1_000, 0.001, words(0..500)),
        ("bfdefault", Some(2), 100, 0.01, words(0..300)),
    ] {
        let rdb = sample("redisbloom/all.rdb");
        let hint = Hint {
            format: Some(Format::RedisBloom),
            name: Some(name.as_bytes()),
            ..Hint::default()
        };
        let dump = sample(&format!("redisbloom/{name}.dump"));
        for (file, hint) in [
            (&dump, Hint::default()),
            (&chunks(name), Hint::default()),
            (&rdb, hint),
        ] {
            let filter = tamis_formats::open(file, hint).unwrap();
            assert_eq!(filter.format(), Format::RedisBloom);
            let facts = filter.facts();
            assert!((facts.rate.unwrap() / rate - 1.0).abs() < 1e-9);
            // A key that seemed to be there already was not counted.
            assert!(facts.keys.unwrap() <= keys.len() as u64);
            has(&filter, &keys, Keys::Utf8);
            assert!(filter.to_bytes() == *file, "{name} is written otherwise");
        }
        again_for(
            Create::RedisBloom {
                growth,
                chunks: false,
            },
            n,
            rate,
            &keys,
            Keys::Utf8,
            &dump,
        );
        again_for(
            Create::RedisBloom {
                growth,
                chunks: true,
            },
            n,
            rate,
            &keys,
            Keys::Utf8,
            &chunks(name),
        );
    }
    let rdb = sample("redisbloom/all.rdb");
    let error = tamis_formats::open(&rdb, Hint::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Several { names } if names.len() == 5),
        "{error}"
    );

    let mut full = tamis_formats::create(
        Create::RedisBloom {
            growth: None,
            chunks: false,
        },
        10,
        1e-6,
    )
    .unwrap();
    for key in words(0..10) {
        full.insert(key.as_bytes()).unwrap();
    }
    assert!(matches!(
        full.insert(b"one more"),
        Err(Error::Full { capacity: 10, .. })
    ));
    assert!(!full.insert(b"key3").unwrap());
}

#[test]
fn a_filter_of_an_rdb_file_takes_keys_and_the_others_stay() {
    let rdb = sample("redisbloom/all.rdb");
    let hint = |name: &'static str| Hint {
        format: None,
        name: Some(name.as_bytes()),
        ..Hint::default()
    };
    let bloom = |name| Hint {
        format: Some(Format::RedisBloom),
        ..hint(name)
    };
    let mut filter = tamis_formats::open(&rdb, bloom("bfscale")).unwrap();
    for key in words(5_000..9_000) {
        filter.insert(key.as_bytes()).unwrap();
    }
    let written = filter.to_bytes();
    assert!(written.len() > rdb.len());
    let filter = tamis_formats::open(&written, bloom("bfscale")).unwrap();
    has(
        &filter,
        &[words(0..1_000), words(5_000..9_000)].concat(),
        Keys::Utf8,
    );
    let other = tamis_formats::open(&written, bloom("bfdefault")).unwrap();
    has(&other, &words(0..300), Keys::Utf8);
}

#[test]
fn redisbloom_cuckoo() {
    let create = |name: &str, chunks| match name {
        "cfbig" => (
            Create::RedisCuckoo {
                bucket_size: 2,
                most_kicks: 20,
                expansion: 1,
                chunks,
            },
            1_024,
        ),
        _ => (
            Create::RedisCuckoo {
                bucket_size: 4,
                most_kicks: 20,
                expansion: 2,
                chunks,
            },
            256,
        ),
    };
    for (name, keys) in [("cfbig", words(0..500)), ("cfkick", words(40..600))] {
        let plain = sample(&format!("redisbloom/{name}.nolzf.dump"));
        let packed = sample(&format!("redisbloom/{name}.dump"));
        let hint = Hint {
            format: Some(Format::RedisCuckoo),
            name: Some(name.as_bytes()),
            ..Hint::default()
        };
        let rdb = sample("redisbloom/all.rdb");
        for (file, hint) in [
            (&plain, Hint::default()),
            (&packed, Hint::default()),
            (&chunks(name), Hint::default()),
            (&rdb, hint),
        ] {
            let filter = tamis_formats::open(file, hint).unwrap();
            assert_eq!(filter.format(), Format::RedisCuckoo);
            assert_eq!(filter.facts().keys, Some(keys.len() as u64));
            has(&filter, &keys, Keys::Utf8);
            if file.starts_with(b"RB") || *file == plain {
                assert!(filter.to_bytes() == *file, "{name} is written otherwise");
            }
        }
        assert!(
            tamis_formats::open(&packed, Hint::default())
                .unwrap()
                .to_bytes()
                == plain
        );
        for (as_chunks, expected) in [(false, plain), (true, chunks(name))] {
            let (what, n) = create(name, as_chunks);
            let mut filter = tamis_formats::create(what, n, 0.01).unwrap();
            for key in words(0..keys.len() as u64 + if name == "cfkick" { 40 } else { 0 }) {
                filter.insert(key.as_bytes()).unwrap();
            }
            if name == "cfkick" {
                for key in words(0..40) {
                    assert!(filter.remove(key.as_bytes()).unwrap());
                }
            }
            assert!(filter.to_bytes() == expected, "{name} becomes another");
        }
    }
}

#[test]
fn poppy() {
    let small = sample("poppy/poppy_v2_n1000_p01_key0-499.bloom");
    let filter = tamis_formats::open(&small, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Poppy);
    assert_eq!(filter.facts().keys, Some(499)); // one seemed to be there already
    has(&filter, &words(0..500), Keys::Utf8);
    again(
        Create::Poppy(Optimise::None),
        &words(0..500),
        Keys::Utf8,
        &small,
    );

    let keys: Vec<String> = (0..5_000)
        .map(|i| {
            if i % 2 == 1 {
                format!("some-long-key-{i}")
            } else {
                format!("k{i}")
            }
        })
        .collect();
    let levels = [
        Optimise::None,
        Optimise::Space,
        Optimise::Speed,
        Optimise::Best,
    ];
    for (i, optimise) in levels.into_iter().enumerate() {
        let file = sample(&format!("poppy/poppy_v2_opt{i}_n20000_p001.bloom"));
        has(
            &tamis_formats::open(&file, Hint::default()).unwrap(),
            &keys,
            Keys::Utf8,
        );
        again_for(
            Create::Poppy(optimise),
            20_000,
            0.001,
            &keys,
            Keys::Utf8,
            &file,
        );
    }

    let mut full = tamis_formats::create(Create::Poppy(Optimise::None), 10, 0.01).unwrap();
    for key in words(0..10) {
        full.insert(key.as_bytes()).unwrap();
    }
    assert!(matches!(
        full.insert(b"one more"),
        Err(Error::Full { capacity: 10, .. })
    ));
    assert!(!full.insert(b"key3").unwrap());
}

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
        // Whatever a cut or changed file is, it is no panic.
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

/// RocksDB's hash has no other implementation: its own table, with the keys of
/// every length that the vectors of the other hashes have.
#[test]
fn rocksdb_with_keys_of_every_length() {
    let vectors = include_str!("vectors/hashes.tsv").lines().skip(1);
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
        // Each filter again, from its values: the same bytes.
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
            // And as we would make it.
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
    // Nothing else has changed: without new filters, the file is the same.
    let same = tamis_formats::parquet_with_filters(&file, &[]).unwrap();
    assert!([&file[..same.data_end], &same.bytes].concat() == file);
    let nowhere = tamis_formats::ParquetFilter {
        row_group: 0,
        column: "t",
        filter: &filter,
    };
    assert!(tamis_formats::parquet_with_filters(&file, &[nowhere]).is_err());
}

/// Large files are recognised by their ends, and what is none is not read.
#[test]
fn ends_are_enough() {
    const END: usize = 64 << 10;
    let may_be = |file: &[u8]| {
        let (start, end) = (file.len().min(END), file.len().saturating_sub(END));
        tamis_formats::may_be(&file[..start], &file[end..], file.len() as u64)
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut known = 0;
    for folder in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let files = std::fs::read_dir(folder.path()).into_iter().flatten();
        for file in files.map(|file| file.unwrap().path()) {
            let bytes = std::fs::read(&file).unwrap();
            let unknown = tamis_formats::open(&bytes, Hint::default());
            if !matches!(unknown, Err(tamis_formats::Error::Unknown)) {
                known += 1;
                assert!(may_be(&bytes), "{}", file.display());
            }
        }
    }
    assert!(known > 40, "{known}");
    for create in [
        Create::BitsAndBlooms { json: false },
        Create::BitsAndBlooms { json: true },
        Create::Dcso,
        Create::guava(),
        Create::Npm { seed: 1 },
        Create::Poppy(tamis_formats::Optimise::None),
        Create::Poppy(tamis_formats::Optimise::Best),
        Create::Pybloomfilter { seeds: Vec::new() },
        Create::RedisBloom {
            growth: Some(2),
            chunks: true,
        },
        Create::Spark { seed: None },
    ] {
        let name = format!("{create:?}");
        let mut filter = tamis_formats::create(create, 1_000_000, 0.01).unwrap();
        filter.insert(b"key").unwrap();
        assert!(may_be(&filter.to_bytes()), "{name}");
    }
    for junk in [
        &b"x"[..],
        b"{\"a\": 1, ",
        &[0xFF],
        b"\0",
        b"log line\n",
        b"",
    ] {
        assert!(!may_be(&junk.repeat(1 << 18)), "{junk:?}");
    }
    // As large as no memory is.
    assert!(!tamis_formats::may_be(b"x", b"x", u64::MAX));
}

#[test]
fn unpacking_is_bounded() {
    use std::io::Write as _;
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let filter = tamis_formats::create(Create::Dcso, 100_000, 0.01).unwrap();
    let file = gzip(&filter.to_bytes());
    let allowing = |most: usize| Hint {
        most_unpacked: Some(most as u64),
        ..Hint::default()
    };
    let len = filter.to_bytes().len();
    assert!(
        tamis_formats::open(&file, allowing(len))
            .unwrap()
            .is_gzipped()
    );
    let forged = {
        // The last bytes say how much is inside; a forger says less.
        let mut forged = file.clone();
        let end = forged.len();
        forged[end - 4..].fill(0);
        forged
    };
    for (file, most) in [(&file, len - 1), (&file, 0), (&forged, len / 2)] {
        let refused = tamis_formats::open(file, allowing(most));
        let Err(tamis_formats::Error::Unpacked { most: told }) = refused else {
            panic!("{most}: {refused:?}");
        };
        assert_eq!(told, most as u64);
    }
}

/// As many of these as their own library said.
fn strangers(filter: &Foreign<'_>, keys: Keys) -> usize {
    let absent = (0..20_000).map(|i| format!("absent{i}"));
    let found = |key: &String| filter.contains(&keys.encode(key.as_bytes()).unwrap());
    absent.filter(found).count()
}

/// The 500 words and what has broken implementations.
fn odd_words() -> Vec<String> {
    let odd = ["", "é", "日本", &"x".repeat(300), "🌾"].map(str::to_owned);
    words(0..500).into_iter().chain(odd).collect()
}

#[test]
fn rbloom() {
    for (file, keys, wrong) in [
        ("rbloom/rbloom_1.5.4_sha256_utf8.bin", Keys::Utf8, 8),
        (
            "rbloom/rbloom_1.5.4_sha256_pickle.bin",
            Keys::PythonPickle,
            12,
        ),
    ] {
        let file = sample(file);
        let unknown = tamis_formats::open(&file, Hint::default());
        assert!(unknown.is_err(), "nothing tells what it is");
        let mut filter = tamis_formats::open(&file, Format::Rbloom).unwrap();
        has(&filter, &odd_words(), keys);
        assert_eq!(strangers(&filter, keys), wrong);
        assert!(!filter.insert(&keys.encode(b"key7").unwrap()).unwrap());
        assert!(filter.to_bytes() == file);
    }
}

#[test]
fn abloom() {
    let file = sample("abloom/abloom_1.1.0_n1000_p01.bin");
    let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Abloom);
    assert_eq!(filter.facts().capacity, Some(1000));
    has(&filter, &odd_words(), Keys::Utf8);
    assert_eq!(strangers(&filter, Keys::Utf8), 4);
    let about = filter.keys_now().unwrap();
    assert!((480.0..530.0).contains(&about), "{about}");
    for key in odd_words() {
        assert!(!filter.insert(key.as_bytes()).unwrap());
    }
    assert!(filter.to_bytes() == file);
}

#[test]
fn pyprobables() {
    let file = sample("pyprobables/pyprobables_0.7.0_n1000_p01.blm");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Pyprobables);
    assert_eq!(filter.facts().keys, Some(506));
    // Text by its code points, and "é" as bytes as well.
    has(&filter, &odd_words(), Keys::Utf8);
    assert_eq!(strangers(&filter, Keys::Utf8), 6);
    assert!(filter.check_writable().is_err());
    assert!(filter.to_bytes() == file);
}

#[test]
fn fastbloom() {
    let file = sample("fastbloom/fastbloom_0.17_n1000_p01.json");
    let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Fastbloom);
    for word in words(0..500) {
        assert!(filter.contains(&Keys::RustStr.encode(word.as_bytes()).unwrap()));
    }
    for number in 0..100u64 {
        assert!(filter.contains(&number.to_le_bytes()));
    }
    assert_eq!(strangers(&filter, Keys::RustStr), 7);
    // The fields may change places.
    let json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(json(&filter.to_bytes()), json(&file));
    let new = Keys::RustStr.encode(b"new").unwrap();
    assert!(filter.insert(&new).unwrap());
    let written = filter.to_bytes();
    let again = tamis_formats::open(&written, Hint::default()).unwrap();
    assert!(again.contains(&new) && written != file);
}

#[test]
fn fastfilter() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/fastfilter");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let file = std::fs::read(&path).unwrap();
        let filter = tamis_formats::open(&file, Hint::default());
        let filter = filter.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(filter.format(), Format::FastFilter, "{name}");
        let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string();
        for i in 0..500 {
            let key = Keys::Uint64.encode(key(i).as_bytes()).unwrap().into_owned();
            assert!(filter.contains(&key), "{name}: {i}");
        }
        // As many strangers as the crate xorf itself found.
        let wrong = (0..20_000u64).filter(|i| {
            let key = i.wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1 << 63;
            filter.contains(&key.to_le_bytes())
        });
        let expected = match &*name {
            name if name.contains("xor8") => 70,
            name if name.contains("fuse8") => 91,
            _ => 0,
        };
        assert_eq!(wrong.count(), expected, "{name}");
        let about = filter.keys_now().unwrap();
        assert!((485.0..545.0).contains(&about), "{name}: {about}");
        assert!(!filter.contains(b"seven b"), "no key of another length");
        assert!(filter.check_writable().is_err());
        assert!(filter.to_bytes() == file, "{name}");
        for end in [0, 7, 8, 15, 16, 20, 24, 28, file.len() - 1] {
            let cut = tamis_formats::open(&file[..end], Format::FastFilter);
            assert!(cut.is_err(), "{name}, {end} bytes");
        }
        seen += 1;
    }
    assert_eq!(seen, 15);
}
