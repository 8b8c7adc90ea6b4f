//! Forged records: no code trusts their numbers.

use crate::*;
use tamis::internals::raw::{BlockedShape, CountingShape, GrowingLayer, Header, Shape};
use tamis_redis::Error;
use xxhash_rust::xxh3::xxh3_64;

/// A valid record of a filter with this shape, in generation 7.
fn record(header: &Header) -> Vec<u8> {
    let mut bytes = b"TAMISRED\x02\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    bytes.resize(32, 0);
    bytes.extend_from_slice(&header.encode());
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes[24] = 1;
    bytes
}

fn set(name: &str, bytes: &[u8]) {
    let client = redis::Client::open(format!("redis://{}/", server().address())).unwrap();
    let mut connection = client.get_connection().unwrap();
    redis::cmd("SET")
        .arg(name)
        .arg(bytes)
        .exec(&mut connection)
        .unwrap();
}

/// This once took a minute and 620 MB, or crashed the process.
#[test]
fn more_lines_than_there_are() {
    for lines in [1 << 20, 1 << 40, 1 << 54] {
        let shapes: [Shape; 2] = [
            BlockedShape::new(lines, 6, 1).unwrap().into(),
            CountingShape::new(lines, 6, 1).unwrap().into(),
        ];
        for shape in shapes {
            let header = Header::of_plan(&Plan::of(shape, 1), Hasher::seeded(7));
            let place = at(server(), "forged");
            set("forged", &record(&header));
            let error = RedisFilter::open(&place, &options()).unwrap_err();
            assert!(matches!(error, Error::MissingChunk { .. }), "{error:?}");
            RedisFilter::expire_at(&place, Duration::from_secs(9), &options()).unwrap_err();
            RedisFilter::delete_at(&place, &options()).unwrap();
            assert!(!RedisFilter::exists(&place, &options()).unwrap());
        }
    }
}

/// A layer that claims to be larger than all servers.
#[test]
fn a_larger_layer_than_there_is() {
    let place = at(server(), "forged-layer");
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
    filter.insert("key").unwrap();
    let listed = server().cli(&["KEYS", "{forged-layer}:*"]);
    let hash = listed.lines().find(|key| !key.ends_with(":tamis")).unwrap();
    let first = GrowingLayer::first_of_one_line(1_000, 0.01).unwrap();
    let mut layer = first.encode(0).to_vec();
    // Its description begins with its lines; the generation follows it.
    let lines = first.shape().lines().to_le_bytes();
    let place_of_lines = layer.windows(8).position(|some| some == lines).unwrap();
    layer[place_of_lines..place_of_lines + 8].copy_from_slice(&(1u64 << 50).to_le_bytes());
    layer.extend_from_slice(&9u64.to_le_bytes());
    let client = redis::Client::open(format!("redis://{}/", server().address())).unwrap();
    let mut connection = client.get_connection().unwrap();
    redis::cmd("HSET")
        .arg(hash)
        .arg("layer.1")
        .arg(layer)
        .exec(&mut connection)
        .unwrap();
    let error = filter.contains("key").unwrap_err();
    assert!(
        matches!(error, Error::MissingChunk { .. } | Error::Filter(_)),
        "{error:?}"
    );
    RedisFilter::open(&place, &options()).unwrap_err();
    RedisFilter::delete_at(&place, &options()).unwrap();
    assert_eq!(server().cli(&["KEYS", "*forged-layer*"]), "");
}
