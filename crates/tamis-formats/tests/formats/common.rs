//! Shared by the tests: samples, keys and checks of filters.

use std::path::PathBuf;
use tamis_formats::{Create, Foreign, Format, Keys};

pub(crate) fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn words(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|i| format!("key{i}")).collect()
}

pub(crate) fn numbers() -> Vec<String> {
    (0..500).map(|i| i.to_string()).collect()
}

/// The rate that a sample was made for.
pub(crate) fn own_rate(filter: &Foreign<'_>) -> f64 {
    let of_format = match filter.format() {
        // Two buckets of four slots, with one of 255 fingerprints each; cfkick has two tables.
        Format::RedisCuckoo => 2.0 * 2.0 * 4.0 / 255.0,
        // Two filters with ten bits per key, either of which may answer "yes".
        Format::LevelDb => 2.0 * 0.01,
        _ => 0.01,
    };
    filter.facts().rate.unwrap_or(of_format)
}

/// Checks that all keys are there, and that of 100,000 others no more than the rate allows are found.
pub(crate) fn has(filter: &Foreign<'_>, keys: &[String], encoding: Keys) {
    let wrong = has_by_its_bits(filter, keys, encoding);
    let own = own_rate(filter);
    let format = filter.format();
    assert!(
        wrong <= 1.1 * own * 100_000.0,
        "{format}: {wrong} wrong, made for {own}"
    );
}

/// The same for a filter that doesn't keep its promised rate: uses the rate computed from its bits. Returns how many
/// are found.
pub(crate) fn has_by_its_bits(filter: &Foreign<'_>, keys: &[String], encoding: Keys) -> f64 {
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
    // Explanations are computed separately, and must agree with the answer.
    for key in present.iter().chain(absent.iter().take(2_000)) {
        let why = filter.explain(key);
        assert_eq!(why.is_maybe(), filter.contains(key), "{format}: {why:?}");
    }
    assert_ne!(filter.hash_name(), "unknown", "{format}");
    for (key, answer) in absent.iter().zip(&answers).step_by(97) {
        assert_eq!(
            filter.contains(key),
            *answer,
            "{format}: batch and single differ"
        );
    }
    let wrong = answers.iter().filter(|yes| **yes).count() as f64;
    // Within four standard deviations, plus a tenth.
    let expected = filter.rate_now() * absent.len() as f64;
    assert!(
        wrong <= 1.1 * expected + 4.0 * expected.sqrt(),
        "{format}: {wrong} wrong, {expected} expected"
    );
    let estimated = filter.keys_now().unwrap() / keys.len() as f64;
    // poppy doesn't hash keys of up to eight bytes, so some of their bits coincide.
    let tolerance = if format == Format::Poppy { 0.15 } else { 0.1 };
    assert!(
        (estimated - 1.0).abs() < tolerance,
        "{format}: {estimated} of the keys"
    );
    wrong
}

/// Creating it again from the same keys gives the same file.
pub(crate) fn again(what: Create, keys: &[String], encoding: Keys, expected: &[u8]) {
    again_for(what, 1_000, 0.01, keys, encoding, expected);
}

pub(crate) fn again_for(
    what: Create,
    n: u64,
    rate: f64,
    keys: &[String],
    encoding: Keys,
    expected: &[u8],
) {
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

/// As many false positives as in the original library.
pub(crate) fn strangers(filter: &Foreign<'_>, keys: Keys) -> usize {
    let absent = (0..20_000).map(|i| format!("absent{i}"));
    let found = |key: &String| filter.contains(&keys.encode(key.as_bytes()).unwrap());
    absent.filter(found).count()
}

/// The 500 words, and keys that have broken implementations.
pub(crate) fn odd_words() -> Vec<String> {
    let odd = ["", "é", "日本", &"x".repeat(300), "🌾"].map(str::to_owned);
    words(0..500).into_iter().chain(odd).collect()
}
