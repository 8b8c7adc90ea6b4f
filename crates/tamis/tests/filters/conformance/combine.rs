//! Only like filters combine; the error names the difference.

use super::subject::*;
use proptest::prelude::*;
use tamis::internals::raw::{BlockedShape, BloomShape, Shape};
use tamis::{AnyFilter, Error, Hasher, Plan, SecretKey};

/// Both combinations fail, name the difference and change nothing.
fn refused(ours: &mut AnyFilter, theirs: &AnyFilter, difference: [&str; 3]) {
    assert!(!same_shape(ours, theirs));
    let before = ours.to_bytes();
    for result in [ours.union_with(theirs), ours.intersect_with(theirs)] {
        let error = result.expect_err("unlike filters were combined");
        assert!(matches!(error, Error::Unlike { .. }), "{error}");
        let text = error.to_string();
        for part in difference {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
    assert_eq!(
        ours.to_bytes(),
        before,
        "a refused combination left a trace"
    );
}

#[test]
fn unlike_hashes_are_named() {
    let keyed = |b: u8| Hasher::keyed(SecretKey::new([b; 16]));
    let table = [
        (
            Hasher::seeded(1),
            Hasher::seeded(2),
            ["the seed", "is 1 in", "2 in the other"],
        ),
        (keyed(1), keyed(2), ["the secret key", "one", "another"]),
        (
            Hasher::seeded(0),
            keyed(0),
            ["the hash", "xxh3-128", "siphash-2-4-128"],
        ),
        (
            keyed(0),
            Hasher::seeded(0),
            ["the hash", "siphash-2-4-128", "xxh3-128"],
        ),
    ];
    for subject in subjects(Ability::Combine) {
        for (ours, theirs, difference) in table {
            let filled = |hasher| {
                let filter = subject.empty(200, 0.01, hasher);
                insert_shared(&filter, "key");
                filter
            };
            refused(&mut filled(ours), &filled(theirs), difference);
        }
    }
}

#[test]
fn unlike_shapes_are_named() {
    let bloom = |m, k| -> Shape { BloomShape::new(m, k).unwrap().into() };
    let blocked = |l, k, per| -> Shape { BlockedShape::new(l, k, per).unwrap().into() };
    for (ours, theirs, difference) in [
        (bloom(1000, 7), bloom(1001, 7), ["bits", "1000", "1001"]),
        (bloom(1000, 7), bloom(1000, 6), ["hashes", "7", "6"]),
        (blocked(10, 7, 1), blocked(11, 7, 1), ["lines", "10", "11"]),
        (
            blocked(10, 7, 1),
            blocked(10, 8, 1),
            ["hashes per line", "7", "8"],
        ),
        (
            blocked(10, 7, 1),
            blocked(10, 7, 2),
            ["lines per key", "1", "2"],
        ),
        (
            bloom(5120, 7),
            blocked(10, 7, 1),
            ["the kind", "bloom", "blocked"],
        ),
        (
            blocked(10, 7, 1),
            bloom(5120, 7),
            ["the kind", "blocked", "bloom"],
        ),
    ] {
        let filled = |shape| {
            let filter = AnyFilter::from_plan(&Plan::of(shape, 100), Hasher::default()).unwrap();
            insert_shared(&filter, "key");
            filter
        };
        refused(&mut filled(ours), &filled(theirs), difference);
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// The union is the filter that all keys would have built, bit for bit.
    #[test]
    fn a_union_is_as_if_all_keys_were_added_to_one(case in cases(), more in keys(0..100)) {
        for subject in subjects(Ability::Combine) {
            let other = subject.build(&Case { keys: more.clone(), ..case.clone() });
            let keys = [case.keys.clone(), more.clone()].concat();
            let all = subject.build(&Case { keys, ..case.clone() });
            let mut union = subject.build(&case);
            union.union_with(&other).unwrap();
            prop_assert_eq!(&union.to_bytes()[128..], &all.to_bytes()[128..], "{}", subject.name);
        }
    }

    /// The place of the secret changes no answer, so such filters combine.
    #[test]
    fn a_secret_in_the_file_or_apart_is_the_same_secret(case in cases(), secret: [u8; 16]) {
        let secret = SecretKey::new(secret);
        for subject in subjects(Ability::Combine) {
            let with = |hasher| subject.build(&Case { hasher, ..case.clone() });
            let (inside, apart) = (with(Hasher::keyed(secret)), with(Hasher::keyed_apart(secret)));
            prop_assert_eq!(&inside.to_bytes()[128..], &apart.to_bytes()[128..]);
            let mut both = inside;
            prop_assert!(both.union_with(&apart).is_ok(), "{}", subject.name);
            prop_assert!(has_all(&both, &case.keys), "{}", subject.name);
        }
    }
}

#[test]
fn a_secret_kept_apart_is_asked_for_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    let (right, wrong) = (SecretKey::new([7; 16]), SecretKey::new([8; 16]));
    for subject in SUBJECTS {
        let case = Case {
            keys: numbered("keyed", 50),
            capacity: 50,
            rate: 0.01,
            hasher: Hasher::keyed_apart(right),
        };
        let filter = subject.build(&case);
        filter.save(&path).unwrap();
        let bytes = filter.to_bytes();
        assert!(
            !bytes.windows(16).any(|w| w == right.as_bytes()),
            "the secret leaked"
        );
        let errors = |open: tamis::Open| {
            [
                open.load(&path).unwrap_err(),
                open.open(&path).unwrap_err(),
                open.share(&path).unwrap_err(),
                open.from_bytes(&bytes).unwrap_err(),
                open.view(&bytes).unwrap_err(),
                open.from_base64(&filter.to_base64()).unwrap_err(),
            ]
        };
        for error in errors(tamis::Open::new()) {
            assert!(matches!(error, Error::KeyNeeded), "{error}");
        }
        for error in errors(tamis::Open::new().key(wrong)) {
            assert!(matches!(error, Error::WrongKey), "{error}");
        }
        assert!(has_all(
            &tamis::Open::new().key(right).load(&path).unwrap(),
            &case.keys
        ));
    }
}
