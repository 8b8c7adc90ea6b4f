//! From file to Redis and back: the same bits either way.

use crate::*;
use tamis::internals::raw::{BlockedShape, CountingShape};
use tamis::{Blocked, Counting, Growing, KeyCount};
use tamis_redis::Error;

/// A filled filter of every kind that Redis supports.
fn filters() -> Vec<(&'static str, AnyFilter)> {
    let blocked = |shape| AnyFilter::from_plan(&Plan::of(shape, 5_000), Hasher::seeded(7)).unwrap();
    let one = blocked(BlockedShape::new(1_000, 6, 1).unwrap().into());
    let two = blocked(BlockedShape::new(1_000, 5, 2).unwrap().into());
    // Two whole chunks and a short one.
    let long = blocked(BlockedShape::new(2 * 65_536 + 1, 5, 1).unwrap().into());
    let counting = |lines_per_key| {
        let shape = CountingShape::new(2_000, 4, lines_per_key).unwrap();
        blocked(tamis::internals::raw::Shape::from(shape))
    };
    let growing = |first, rate| AnyFilter::Growing(Growing::new(first, rate).unwrap());
    let mut all = vec![
        ("one-line", one),
        ("two-lines", two),
        ("three-chunks", long),
        ("counting-one-line", counting(1)),
        ("counting-two-lines", counting(2)),
        ("counting-four-lines", counting(4)),
        ("growing", growing(1_000, 0.001)),
        ("growing-two-lines", growing(1_000, 1e-6)),
    ];
    for (_, filter) in &mut all {
        let keys = keys(0..5_000);
        filter
            .insert_many(&keys, &mut vec![false; keys.len()])
            .unwrap();
    }
    all
}

fn there_and_back(place: impl Fn(&str) -> Location) {
    let (old, absent) = (keys(0..5_000), keys(10_000..20_000));
    for (name, local) in filters() {
        let at = place(&format!("file-{name}"));
        let mut remote = RedisFilter::upload(&at, &local, &options()).unwrap();
        assert!(matches!(
            RedisFilter::upload(&at, &local, &options()),
            Err(Error::Exists { .. })
        ));
        let back = remote.download().unwrap();
        assert_eq!(back.to_bytes(), local.to_bytes(), "{name}");

        let mut opened = RedisFilter::open(&at, &options()).unwrap();
        assert_eq!(
            (opened.kind(), opened.shape()),
            (local.kind(), Some(local.shape())),
            "{name}"
        );
        assert!(all(&contains(&mut opened, &old)), "{name}");
        let mut expected = vec![false; absent.len()];
        local.contains_many(&absent, &mut expected);
        assert_eq!(contains(&mut opened, &absent), expected, "{name}");
        opened.verify().unwrap();

        // After the same additions on both sides, they stay equal.
        let mut local = local;
        let more = keys(20_000..21_000);
        let mut new = vec![false; more.len()];
        local.insert_many(&more, &mut new).unwrap();
        assert_eq!(insert(&mut opened, &more), new, "{name}");
        let back = opened.download().unwrap();
        assert!(uncounted(&back) == uncounted(&local), "{name}");
        assert!(all(&contains(&mut opened, &old)) && all(&contains(&mut opened, &more)));
        opened.delete().unwrap();
    }
}

/// The body without its counts: a growing filter in Redis counts the room that
/// it has given out, including room that keys which look old don't use.
fn uncounted(filter: &AnyFilter) -> Vec<u8> {
    let mut bytes = body(filter);
    if filter.kind() == Kind::Growing {
        // A line before each layer contains its lines, its capacity and its
        // keys.
        let mut at = 0;
        while at < bytes.len() {
            let lines = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            bytes[at + 16..at + 24].fill(0);
            at += 64 * (lines as usize + 1);
        }
    }
    bytes
}

#[test]
fn there_and_back_on_one_node() {
    there_and_back(|name| at(server(), name));
}

#[test]
fn there_and_back_in_a_cluster() {
    there_and_back(|name| location(&cluster().location(name)));
}

/// The strings in Redis are the file's bytes, each followed by a foot.
#[test]
fn strings_are_the_files_bytes() {
    // The bytes after the lines of each chunk.
    const FOOT: usize = 10;
    let at = at(server(), "strings");
    let (mut remote, mut local) = pair(&at, &plan(2_000_000, 0.001));
    let keys = keys(0..20_000);
    let mut new = vec![false; keys.len()];
    local.insert_many(&keys, &mut new).unwrap();
    assert_eq!(insert(&mut remote, &keys), new);

    let listed = server().cli(&["KEYS", "strings:{*.*.*}"]);
    let mut chunks: Vec<&str> = listed.lines().collect();
    // strings:{generation.I.j}
    chunks.sort_by_key(|key| key.split('.').nth(1).unwrap().parse::<usize>().unwrap());
    let strings: Vec<Vec<u8>> = chunks.iter().map(|key| server().get(key)).collect();
    let bytes: Vec<u8> = (strings.iter())
        .flat_map(|string| &string[..string.len() - FOOT])
        .copied()
        .collect();
    assert!(chunks.len() == 1 || bytes.len() > 4 << 20);
    assert_eq!(bytes, body(&local));
    remote.delete().unwrap();
}

/// A downloaded file is a file like any other.
#[test]
fn a_download_is_a_usable_file() {
    let at = at(server(), "usable");
    let (mut remote, mut local) = pair(&at, &plan(1_000, 0.01));
    let keys = keys(0..1_000);
    insert(&mut remote, &keys);
    local
        .insert_many(&keys, &mut vec![false; keys.len()])
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    remote.download().unwrap().save(&path).unwrap();
    let opened = Blocked::open(&path).unwrap();
    let mut found = vec![false; keys.len()];
    opened.contains_many(&keys, &mut found);
    assert!(all(&found));
    assert!(
        AnyFilter::verify(&path, &tamis::Open::new()).unwrap(),
        "sealed"
    );
    // Keys weren't counted, so the file doesn't claim a count.
    assert!(
        matches!(opened.keys(), KeyCount::Estimated(_)),
        "{:?}",
        opened.keys()
    );
    remote.delete().unwrap();
}

#[test]
fn union_adds_all_keys_of_a_file() {
    let at = at(server(), "union");
    let plan = plan(10_000, 0.001);
    let (mut remote, mut local) = pair(&at, &plan);
    insert(&mut remote, &keys(0..3_000));
    let mut other = AnyFilter::from_plan(&plan, Hasher::seeded(7)).unwrap();
    for (filter, numbers) in [(&mut local, 0..3_000), (&mut other, 2_000..6_000)] {
        let keys = keys(numbers);
        filter
            .insert_many(&keys, &mut vec![false; keys.len()])
            .unwrap();
    }
    // Idempotent.
    remote.union_with(&other).unwrap();
    remote.union_with(&other).unwrap();
    local.union_with(&other).unwrap();
    assert_eq!(body(&remote.download().unwrap()), body(&local));
    assert!(all(&contains(&mut remote, &keys(0..6_000))));

    let unlike = AnyFilter::from_plan(&plan, Hasher::seeded(8)).unwrap();
    assert!(matches!(
        remote.union_with(&unlike),
        Err(Error::Filter(tamis::Error::Unlike { .. }))
    ));
    let unlike = AnyFilter::Counting(Counting::new(10_000, 0.001).unwrap());
    assert!(remote.union_with(&unlike).is_err());
    assert_eq!(body(&remote.download().unwrap()), body(&local));
    remote.delete().unwrap();
}

/// Kinds whose keys have no fixed positions can't be stored in Redis.
#[test]
fn other_kinds_are_refused() {
    for kind in [Kind::Bloom, Kind::Cuckoo] {
        let at = at(server(), "refused");
        let plan = Plan::for_rate(kind, 1_000, 0.01).unwrap();
        let filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
        let refused = RedisFilter::upload(&at, &filter, &options()).err().unwrap();
        assert!(
            matches!(refused, Error::Filter(tamis::Error::Unable { .. })),
            "{refused:?}"
        );
        assert!(RedisFilter::create(&at, &plan, Hasher::default(), &options()).is_err());
        assert!(
            !RedisFilter::exists(&at, &options()).unwrap(),
            "nothing is left behind"
        );
    }
}

/// The secret of a keyed filter needn't be uploaded.
#[test]
fn keyed_filters_need_their_key() {
    let at = at(server(), "keyed");
    let key = tamis::SecretKey::new(*b"sixteen bytes ok");
    let hasher = Hasher::keyed_apart(key);
    let mut created = RedisFilter::create(&at, &plan(1_000, 0.01), hasher, &options()).unwrap();
    created.insert("ada").unwrap();
    let refused = RedisFilter::open(&at, &options()).err().unwrap();
    assert!(
        matches!(refused, Error::Filter(tamis::Error::KeyNeeded)),
        "{refused:?}"
    );
    let wrong = options().key(tamis::SecretKey::new(*b"another 16 bytes"));
    let refused = RedisFilter::open(&at, &wrong).err().unwrap();
    assert!(
        matches!(refused, Error::Filter(tamis::Error::WrongKey)),
        "{refused:?}"
    );
    let mut opened = RedisFilter::open(&at, &options().key(key)).unwrap();
    assert!(opened.contains("ada").unwrap());
    opened.delete().unwrap();
}
