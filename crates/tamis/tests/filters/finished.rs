//! The kinds for finished lists: fuse, ribbon, and the cascade of a block and an allow list, with
//! every owner of the bytes.

use tamis::{
    AnyFilter, Cascade, Error, Fuse, Hash, Hasher, KeyCount, Kind, ListBuilder, Open, Ribbon,
    SecretKey,
    internals::{Both, Contradiction},
};

const KINDS: [Kind; 3] = [Kind::Fuse, Kind::Ribbon, Kind::Cascade];

fn hashes(range: std::ops::Range<u64>) -> Vec<Hash> {
    range.map(Hash::from_u64).collect()
}

fn build(kind: Kind, rate: f64, keys: &[Hash]) -> AnyFilter {
    let mut list = ListBuilder::new(kind, rate).unwrap();
    list.add_hashes(keys).unwrap();
    list.build().unwrap()
}

fn count<B: tamis::body::Body>(filter: &AnyFilter<B>, keys: &[Hash]) -> usize {
    let mut found = vec![false; keys.len()];
    filter.contains_many(keys, &mut found);
    let single = keys.iter().map(|hash| filter.contains(*hash));
    assert!(single.eq(found.iter().copied()), "batch and single differ");
    found.into_iter().filter(|found| *found).count()
}

#[test]
fn never_a_false_no_for_any_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for kind in KINDS {
        for keys in [0, 1, 2, 3, 100, 1000, 5999, 6000, 40_000] {
            let keys = hashes(0..keys);
            for rate in [0.5, 0.01, 1e-6] {
                let filter = build(kind, rate, &keys);
                assert_eq!(filter.kind(), kind);
                assert_eq!(filter.keys(), KeyCount::Counted(keys.len() as u64));
                assert_eq!(filter.capacity(), keys.len() as u64);
                assert_eq!(filter.rate(), rate);
                assert_eq!(count(&filter, &keys), keys.len(), "{kind}");
                assert!(filter.rate_now() <= rate);
                assert_eq!(filter.rate_now() == 0.0, keys.is_empty());

                filter.save(&path).unwrap();
                assert_eq!(count(&AnyFilter::load(&path).unwrap(), &keys), keys.len());
                assert_eq!(count(&AnyFilter::open(&path).unwrap(), &keys), keys.len());
                assert!(AnyFilter::verify(&path, &Open::new()).unwrap());
                // A view of any alignment.
                let mut bytes = vec![0];
                bytes.extend(filter.to_bytes());
                assert_eq!(bytes[1..], std::fs::read(&path).unwrap());
                let view = Open::new().view(&bytes[1..]).unwrap();
                assert_eq!(count(&view, &keys), keys.len());
                let text = Open::new().from_base64(&filter.to_base64()).unwrap();
                assert_eq!(count(&text, &keys), keys.len());
            }
        }
    }
}

#[test]
fn only_the_set_matters() {
    let dir = tempfile::tempdir().unwrap();
    for kind in KINDS {
        // Three million keys make two shards of a fuse filter.
        let many = if kind == Kind::Fuse {
            3_100_000
        } else {
            200_000
        };
        for count in [0, 10, 7000, 60_000, many] {
            let keys = hashes(0..count);
            let expected = build(kind, 0.01, &keys).to_bytes();
            for (threads, memory) in [(1, 1 << 40), (3, 0), (2, count * 20)] {
                let mut list = ListBuilder::new(kind, 0.01)
                    .unwrap()
                    .threads(threads)
                    .memory(memory)
                    .temp_dir(dir.path());
                for chunk in keys.chunks(1234).rev().chain(keys.chunks(7777)) {
                    list.add_hashes(chunk).unwrap();
                }
                let done = list.progress();
                let bytes = list.build().unwrap().to_bytes();
                assert!(
                    bytes == expected,
                    "{kind}: {count} keys, {threads} threads, {memory}"
                );
                let done = done.load(std::sync::atomic::Ordering::Relaxed);
                assert!(done >= count, "{kind}: progress {done}");
            }
        }
    }
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "no litter");
}

#[test]
fn the_rate_is_kept() {
    let (keys, others) = (hashes(0..50_000), hashes(1 << 32..(1 << 32) + 1_000_000));
    for kind in KINDS {
        for bits in [2, 4, 7, 10] {
            let rate = 0.5f64.powi(bits);
            let filter = build(kind, rate, &keys);
            assert_eq!(filter.rate_now(), rate, "{kind}");
            let (yes, expected) = (count(&filter, &others) as f64, others.len() as f64 * rate);
            let sigma = expected.sqrt();
            assert!(
                (yes - expected).abs() < 5.0 * sigma,
                "{kind}: {yes} for {expected}"
            );
        }
    }
}

#[test]
fn every_hasher_and_typed_builder() {
    let words = ["apple", "pear", "apple", ""];
    let key = SecretKey::new([7; 16]);
    for hasher in [
        Hasher::seeded(9),
        Hasher::keyed(key),
        Hasher::keyed_apart(key),
    ] {
        let fuse = Fuse::build(words, 1e-6, hasher).unwrap();
        let ribbon = Ribbon::build(words, 1e-6, hasher).unwrap();
        let cascade = Cascade::build(words, ["plum"], 1e-6, hasher).unwrap();
        for bytes in [fuse.to_bytes(), ribbon.to_bytes(), cascade.to_bytes()] {
            let filter = Open::new().key(key).from_bytes(&bytes).unwrap();
            assert!(words.iter().all(|word| filter.contains(word)));
            assert!(!filter.contains("plum"));
            assert_eq!(filter.keys(), KeyCount::Counted(3));
        }
    }
}

#[test]
fn a_cascade_is_wrong_on_no_key_of_either_list() {
    for (block, allow) in [
        (0, 0),
        (0, 100),
        (1, 0),
        (1, 1),
        (100, 100_000),
        (100_000, 300_000),
    ] {
        for rate in [0.6, 0.5, 0.25, 0.01, 1e-4] {
            let (bad, good) = (hashes(0..block), hashes(1 << 32..(1 << 32) + allow));
            let mut list = ListBuilder::new(Kind::Cascade, rate).unwrap();
            list.add_hashes(&bad).unwrap();
            list.allow_hashes(&good).unwrap();
            let filter = list.build().unwrap();
            assert_eq!(count(&filter, &bad), bad.len(), "a false no");
            assert_eq!(count(&filter, &good), 0, "a false yes");
            let others = hashes(1 << 40..(1 << 40) + 200_000);
            let (yes, most) = (count(&filter, &others) as f64, others.len() as f64 * rate);
            assert!(yes <= most + 5.0 * most.sqrt(), "{yes} for {most}");
            // Close to what any structure needs.
            let bound = tamis::internals::plan::cascade_bound(block, allow, filter.rate_now());
            let bits = filter.bytes() as f64 * 8.0;
            if block >= 100_000 {
                assert!(bits < bound * 1.06 + 2e4, "{bits} for {bound}");
            }
        }
    }
}

#[test]
fn keys_on_both_lists() {
    let list = |both| {
        let mut list = ListBuilder::new(Kind::Cascade, 0.01).unwrap().both(both);
        list.add_hashes(&hashes(0..1000)).unwrap();
        list.allow_hashes(&hashes(990..5000)).unwrap();
        list.build_telling()
    };
    let Err(Error::Contradiction { count: 10, example }) = list(Both::Refuse) else {
        panic!("not refused")
    };
    assert!(hashes(990..1000).contains(&example));
    let (filter, told) = list(Both::Block).unwrap();
    assert_eq!(told, Some(Contradiction { count: 10, example }));
    assert_eq!(count(&filter, &hashes(0..1000)), 1000);
    assert_eq!(count(&filter, &hashes(1000..5000)), 0);
    assert_eq!(filter.keys().get(), 1000);
    let (filter, _) = list(Both::Allow).unwrap();
    assert_eq!(count(&filter, &hashes(0..990)), 990);
    assert_eq!(count(&filter, &hashes(990..5000)), 0);
    assert_eq!(filter.keys().get(), 990);
}

/// Different keys with the same XXH3-128 hash under seed 0. For every eight bytes in each 64 bytes
/// of a long key, XXH3 adds to one sum the product of their halves, each XORed with a public
/// number, and to another sum the bytes themselves. If the lower half equals that number, the
/// product is 0, and only the sum of the upper halves matters.
fn colliding(which: u32) -> Vec<u8> {
    let mut key = vec![b'x'; 256];
    for (at, lower, upper) in [
        (0, [0xB8, 0xFE, 0x6C, 0x39], 0x6141_4141 + which),
        (64, [0x7C, 0x01, 0x81, 0x2C], 0x6141_4141 - which),
    ] {
        key[at..at + 4].copy_from_slice(&lower);
        key[at + 4..at + 8].copy_from_slice(&upper.to_le_bytes());
    }
    key
}

#[test]
fn keys_that_somebody_made_collide_are_noticed() {
    let hasher = Hasher::default();
    let [one, other, third] = [colliding(1), colliding(2), colliding(3)];
    assert!(one != other && hasher.hash(&one) == hasher.hash(&other));
    let many = |from: u64| (from..from + 20_000).map(|i| i.to_le_bytes().to_vec());
    for memory in [u64::MAX, 1] {
        for both in [Both::Refuse, Both::Block, Both::Allow] {
            let list = |hasher, block: &[&[u8]], allow: &[&[u8]]| {
                let list = ListBuilder::with_hasher(Kind::Cascade, 0.01, hasher).unwrap();
                let mut list = list.both(both).memory(memory);
                list.add_all(many(0)).unwrap();
                list.add_all(block).unwrap();
                list.allow_all(allow).unwrap();
                list.allow_all(many(1 << 40)).unwrap();
                list.build()
            };
            for (block, allow) in [
                (&[&one[..]][..], &[&other[..]][..]),
                (&[&one, &other], &[&other]),
                (&[&one], &[&one, &third]),
            ] {
                let collided = list(hasher, block, allow);
                assert!(matches!(collided, Err(Error::Collision { .. })), "{both:?}");
            }
            // The same key on both lists, in any number of copies, isn't a collision.
            let same = list(hasher, &[&one, &one], &[&one, &one, &one]);
            match both {
                Both::Refuse => assert!(matches!(same, Err(Error::Contradiction { count: 1, .. }))),
                _ => assert_eq!(same.unwrap().contains(&one), both == Both::Block),
            }
            // On a single list it does no harm: both are there.
            let filter = list(hasher, &[&one, &other], &[]).unwrap();
            assert!(filter.contains(&one) && filter.contains(&other));
            // With a secret, nobody can construct them.
            let keyed = Hasher::keyed(SecretKey::new([7; 16]));
            let filter = list(keyed, &[&one], &[&other]).unwrap();
            assert!(filter.contains(&one) && !filter.contains(&other));
        }
    }
    for kind in [Kind::Fuse, Kind::Ribbon] {
        let mut list = ListBuilder::new(kind, 0.01).unwrap();
        assert_eq!(list.checker(), None);
        list.add_all([&one, &other]).unwrap();
        let filter = list.build().unwrap();
        assert!(filter.contains(&one) && filter.contains(&other));
    }
}

/// A key hashed on one list and in bytes on the other is one key: a hash doesn't identify the key behind it.
#[test]
fn a_hash_collides_with_no_key() {
    let (key, hash) = ("key", Hasher::default().hash(b"key"));
    let list = || ListBuilder::new(Kind::Cascade, 0.01).unwrap().allow_wins();
    let [mut one, mut other, mut third] = [list(), list(), list()];
    one.add(hash).unwrap();
    other.add_all([hash].iter()).unwrap();
    third.add(key).unwrap();
    one.allow(key).unwrap();
    other.allow(key).unwrap();
    third.allow_all([&hash]).unwrap();
    for list in [one, other, third] {
        assert!(!list.build().unwrap().contains(key));
    }
}

#[test]
fn what_they_cannot_do_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for kind in KINDS {
        let mut filter = build(kind, 0.01, &hashes(0..1000));
        let refused = filter.insert("key").unwrap_err().to_string();
        assert!(refused.contains("build it again"), "{refused}");
        let other = build(kind, 0.01, &hashes(0..1000));
        assert!(matches!(
            filter.union_with(&other),
            Err(Error::Unable { .. })
        ));
        filter.save(&path).unwrap();
        assert!(matches!(
            Open::new().share(&path),
            Err(Error::Unable { .. })
        ));
        assert!(
            AnyFilter::verify(&path, &Open::new()).unwrap(),
            "still sealed"
        );
        let plan = tamis::Plan::for_rate(kind, 1000, 0.01).unwrap();
        let created = AnyFilter::from_plan(&plan, Hasher::default());
        assert!(matches!(created, Err(Error::Unable { .. })));
        assert!(AnyFilter::create(dir.path().join("g"), &plan, Hasher::default()).is_err());
        assert!(matches!(filter.clear(), Err(Error::Unable { .. })));
        assert_eq!(count(&filter, &hashes(0..1000)), 1000);
        assert!(ListBuilder::new(kind, 1e-12).is_err());
    }
    assert!(ListBuilder::new(Kind::Blocked, 0.01).is_err());
    assert!(
        ListBuilder::new(Kind::Fuse, 0.01)
            .unwrap()
            .allow("key")
            .is_err()
    );
}

/// Corrects the header's checksum, so that the shape itself is checked.
fn reseal(bytes: &mut [u8]) {
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..88]);
    bytes[88..96].copy_from_slice(&sum.to_le_bytes());
    let keys = u64::from_le_bytes(bytes[96..104].try_into().unwrap());
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[128..], keys);
    bytes[104..112].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn corrupt_shapes_never_panic() {
    let asked = hashes(0..300);
    for kind in KINDS {
        for keys in [0, 50, 20_000] {
            let sound = build(kind, 0.01, &hashes(0..keys)).to_bytes();
            let mut resealed = sound.clone();
            reseal(&mut resealed);
            assert!(resealed == sound, "the offsets of this test");
            // The shape, the body's length, and the body's first line.
            for byte in (56..88).chain(128..192.min(sound.len())) {
                for flip in [1, 0x80, 0xFF] {
                    let mut bytes = sound.clone();
                    bytes[byte] ^= flip;
                    reseal(&mut bytes);
                    if let Ok(filter) = Open::new().from_bytes(&bytes) {
                        count(&filter, &asked);
                    }
                }
            }
        }
    }
}
