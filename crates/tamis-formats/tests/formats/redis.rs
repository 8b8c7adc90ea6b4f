//! Filters in Redis and Valkey.

use crate::common::{again, again_for, has, sample, words};
use std::path::PathBuf;
use tamis_formats::redisbloom::{Chain, Cuckoo};
use tamis_formats::{Create, Error, Format, Hint, Keys};

#[test]
fn redisson() {
    let file = sample("redisson/redisson_stringcodec_n1000_p01_key0-499.bitmap");
    let filter = tamis_formats::redisson(file.clone(), 9_585, 7).unwrap();
    has(&filter, &words(0..500), Keys::Utf8);
    again(Create::Redisson, &words(0..500), Keys::Utf8, &file);
}

#[test]
fn valkey_bloom() {
    let file = sample("valkey-bloom/bloomfilter3_asslice_fixedseed_n1000_p01_key0-499.bin");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Valkey);
    has(&filter, &words(0..500), Keys::Utf8);
}

/// The chunks of a sample in our file format.
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
            // A key that seemed to be present wasn't counted.
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

/// The server's own file, after the same additions and CF.COMPACT.
#[test]
fn compacting_moves_what_it_can_of_every_table() {
    let file = sample("redisbloom/cfcompact.nolzf.dump");
    let mut cuckoo = Cuckoo::new(64, 2, 20, 1).unwrap();
    for key in words(0..400) {
        cuckoo.insert(key.as_bytes()).unwrap();
    }
    cuckoo.compact();
    assert_eq!(cuckoo.tables(), 7);
    for table in cuckoo.parts() {
        assert!(file.windows(table.len()).any(|bytes| bytes == table));
    }
}

/// As many as the server creates in one command.
#[test]
fn a_cuckoo_filter_has_as_many_tables_as_it_needs() {
    let mut cuckoo = Cuckoo::new(4, 2, 20, 1).unwrap();
    for key in words(0..6_000) {
        cuckoo.insert(key.as_bytes()).unwrap();
    }
    assert_eq!(cuckoo.tables(), 1_500);
    let header = cuckoo.dump_header();
    let again = Cuckoo::of_chunks(&header, &cuckoo.parts()).unwrap();
    assert!(again.parts() == cuckoo.parts() && again.dump_header() == header);
}

#[test]
fn a_growth_of_zero_is_written_and_none_is_two() {
    for (growth, written) in [(Some(0), 0), (None, 2), (Some(4), 4)] {
        let mut chain = Chain::new(3, 0.01, growth).unwrap();
        assert_eq!(chain.dump_header()[16..20], u32::to_le_bytes(written));
        let takes_more = words(0..9)
            .iter()
            .all(|key| chain.insert(key.as_bytes()).is_ok());
        assert_eq!(takes_more, growth == Some(4));
        assert!((chain.rate() / 0.01 - 1.0).abs() < 1e-9);
    }
}

/// Until its rate can't be halved further, as in the server.
#[test]
fn a_chain_of_equal_layers_ends_where_the_servers_does() {
    let mut chain = Chain::new(1, 0.01, Some(1)).unwrap();
    let refused = (0..100_000).find(|i| chain.insert(format!("k{i}").as_bytes()).is_err());
    assert_eq!((refused, chain.parts().len()), (Some(2_242), 1_067));
    let header = chain.dump_header();
    let again = Chain::of_chunks(&header, &chain.parts()).unwrap();
    assert_eq!(again.keys(), 1_067);
}
