//! Reserved filters, their size, growth and unions.

use super::*;
use crate::{KeyRule, SecretKey};

fn key(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

fn filled(reserve: u64, rate: f64, expansion: Expansion, keys: u64) -> Growing {
    let mut seen = Growing::reserve(reserve, rate, expansion, Hasher::default()).unwrap();
    let all: Vec<_> = (0..keys).map(key).collect();
    let mut new = vec![false; all.len()];
    seen.insert_many(&all, &mut new).unwrap();
    let mut found = vec![false; all.len()];
    seen.contains_many(&all, &mut found);
    assert!(found.iter().all(|found| *found));
    seen
}

fn bits_a_key(seen: &Growing, keys: u64) -> f64 {
    seen.bytes() as f64 * 8.0 / keys as f64
}

#[test]
fn a_reservation_costs_little_and_keeps_the_rate() {
    for (rate, most) in [(0.01, 10.48), (0.001, 16.2), (1e-4, 22.0)] {
        let seen = filled(1_000_000, rate, Expansion::Auto, 900_000);
        println!("{rate}: {}", bits_a_key(&seen, 1_000_000));
        assert!(bits_a_key(&seen, 1_000_000) <= most);
        assert_eq!(seen.shape().layers(), 1);
    }
    for expansion in [Expansion::Auto, Expansion::Times(1), Expansion::Times(4)] {
        let seen = filled(20_000, 0.01, expansion, 200_000);
        println!(
            "{expansion:?}: {} layers, {}",
            seen.shape().layers(),
            bits_a_key(&seen, 200_000)
        );
        assert!(
            seen.rate_now() <= 0.01,
            "{expansion:?}: {}",
            seen.rate_now()
        );
    }
}

#[test]
fn from_a_hundred_keys_to_a_million() {
    for keys in [200_000, 1_000_000] {
        let seen = filled(100, 0.01, Expansion::Auto, keys);
        println!(
            "{keys}: {} layers, {}",
            seen.shape().layers(),
            bits_a_key(&seen, keys)
        );
        assert!(
            bits_a_key(&seen, keys) <= 24.0,
            "{}",
            bits_a_key(&seen, keys)
        );
        assert!(seen.rate_now() <= 0.01);
    }
}

#[test]
fn a_body_is_read_in_pieces() {
    let seen = filled(100, 0.01, Expansion::Auto, 5_000);
    let whole = &seen.to_bytes()[crate::raw::HEADER_LEN..];
    for piece in [1, 7, 64, 1000, 1 << 20] {
        let mut got = Vec::new();
        loop {
            let more = seen.read_body(got.len() as u64, piece);
            if more.is_empty() {
                break;
            }
            got.extend(more);
        }
        assert_eq!(got, whole);
    }
}

#[test]
fn a_union_holds_both_or_changes_nothing() {
    let mut a = filled(10_000, 0.01, Expansion::Auto, 4_000);
    let mut b = a.template().unwrap();
    for i in 10_000..14_000 {
        b.insert(key(i)).unwrap();
    }
    a.union_with(&b).unwrap();
    assert!((0..4_000).chain(10_000..14_000).all(|i| a.contains(key(i))));
    assert!(a.rate_now() <= 0.01);
    let before = a.to_bytes();
    assert!(matches!(a.union_with(&b), Err(Error::Full { .. })));
    assert_eq!(a.to_bytes(), before);
    // A filter that has grown brings its layers.
    let mut empty = a.template().unwrap();
    let grown = filled(10_000, 0.01, Expansion::Auto, 30_000);
    empty.union_with(&grown).unwrap();
    assert_eq!(empty.to_bytes(), grown.to_bytes());
    assert!(empty.insert(key(99_999)).unwrap());
    let other = Growing::new(1_000, 0.001).unwrap();
    assert!(matches!(a.union_with(&other), Err(Error::Unlike { .. })));
}

/// Names the difference, and reports none between filters that match.
#[test]
fn what_keeps_two_from_being_united_is_said() {
    let make = |rate, hasher| Growing::reserve(1_000, rate, Expansion::Auto, hasher).unwrap();
    let rule = Hasher::default().with_rule(KeyRule::EXACT.ignore_case());
    let secret = |byte| Hasher::keyed(SecretKey::new([byte; 16]));
    for (other, ours, says) in [
        (
            make(0.001, Hasher::default()),
            Hasher::default(),
            "the rate is 0.01 in one and 0.001",
        ),
        (
            make(0.01, Hasher::seeded(7)),
            Hasher::default(),
            "the seed is 0 in one and 7",
        ),
        (make(0.01, rule), Hasher::default(), "the rule for keys is"),
        (make(0.01, secret(1)), Hasher::default(), "the hash is"),
        (
            make(0.01, secret(1)),
            secret(2),
            "the secret key is one in one and another in the other",
        ),
    ] {
        let mut filter = make(0.01, ours);
        let before = filter.to_bytes();
        let error = filter.union_with(&other).unwrap_err();
        assert!(matches!(error, Error::Unlike { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(filter.to_bytes(), before);
    }
    let (mut filter, mut other) = (make(0.01, rule), make(0.01, rule));
    other.counted = false;
    let error = filter.union_with(&other).unwrap_err();
    assert!(matches!(error, Error::Unable { .. }), "{error}");
    assert!(
        error.to_string().contains("after keys were lost"),
        "{error}"
    );
}

#[test]
fn a_file_of_any_expansion_grows_on() {
    let mut seen = filled(100, 0.01, Expansion::Times(3), 5_000);
    let mut opened = Growing::from_bytes(&seen.to_bytes()).unwrap();
    opened.set_expansion(Expansion::Times(3));
    for i in 5_000..50_000 {
        assert_eq!(seen.insert(key(i)).unwrap(), opened.insert(key(i)).unwrap());
    }
    assert_eq!(seen.to_bytes(), opened.to_bytes());
}

#[test]
fn large_steps_cost_no_more_than_halving_the_rate() {
    for (first, times) in [(1_000, 4), (1_000, 100), (20_000, 4), (20_000, 10)] {
        let seen = filled(first, 0.01, Expansion::Times(times), first + first / 10);
        assert_eq!(seen.shape().layers(), 2);
        let bits = seen.bytes() as f64 * 8.0 / seen.capacity() as f64;
        // Textbook filters at p/2 and p/4 take 12.5.
        assert!(bits < 14.0, "{first}, {times} times: {bits} bits a key");
        assert!(seen.rate_now() <= 0.01);
    }
}
