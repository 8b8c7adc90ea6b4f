//! Numbers too large for any memory cause an error, not a crash.

use tamis_formats::{Create, Error, Format, Optimise, create, open, redisson};

#[test]
fn what_does_not_fit_into_memory_is_refused() {
    for what in [
        Create::BitsAndBlooms { json: false },
        Create::Dcso,
        Create::guava(),
        Create::Npm { seed: 1 },
        Create::Poppy(Optimise::None),
        Create::Poppy(Optimise::Best),
        Create::Pybloomfilter { seeds: vec![1] },
        Create::RedisBloom {
            growth: None,
            chunks: false,
        },
        Create::RedisCuckoo {
            bucket_size: 255,
            most_kicks: 20,
            expansion: 1,
            chunks: false,
        },
        Create::Redisson,
        Create::Spark { seed: None },
    ] {
        for keys in [20_000_000_000_000, u64::MAX] {
            let made = create(what.clone(), keys, 0.001);
            assert!(matches!(made, Err(Error::Parameter { .. })), "{what:?}");
        }
    }
}

/// The size of a layer, computed from the numbers of the one before, before a
/// key is added.
#[test]
fn a_forged_chain_grows_no_further_than_memory() {
    let what = Create::RedisBloom {
        growth: Some(u32::MAX),
        chunks: true,
    };
    let file = create(what, 100, 0.01).unwrap().to_bytes();
    // In the header, after its iterator and length: 20 bytes, then the layer's
    // bytes, bits, keys, rate, bits per key, hashes, and capacity.
    let layer = 8 + 16 + 20;
    for entries in [u64::MAX, 1 << 44] {
        let mut forged = file.clone();
        // All keys of the chain, and of its layer.
        forged[layer - 20..layer - 12].copy_from_slice(&entries.to_le_bytes());
        forged[layer + 44..layer + 52].copy_from_slice(&entries.to_le_bytes());
        forged[layer + 16..layer + 24].copy_from_slice(&entries.to_le_bytes());
        let mut filter = open(&forged, Format::RedisBloom).unwrap();
        assert!(filter.insert(b"key").is_err());
        assert!(!filter.contains(b"key"));
    }
}

#[test]
fn redissons_size_is_that_of_a_redis_string() {
    assert!(redisson(Vec::new(), (1 << 32) + 1, 7).is_err());
    assert!(redisson(vec![0; 2], 8, 7).is_err());
}
