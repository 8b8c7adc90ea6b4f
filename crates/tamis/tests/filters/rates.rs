//! The promised rate is the measured rate.
//!
//! A measurement fills several filters to their capacity, each with different keys. A filter's
//! content gives its rate exactly, by a formula that is implemented here again from its bytes
//! ([`exact_rate`]). Then keys that were not added are looked up. Three things are asserted:
//! - the filters' rates are the plan's: their mean is within 3 % of it, or
//!   within [`SIGMAS`] standard errors, since filters differ a little in how
//!   evenly their keys fell (one of 100,000 keys at 1 % by nearly 2 %);
//! - their mean is at most 1.05 times the promise, with the same error;
//! - the wrong answers are as many as these rates say, within [`SIGMAS`]
//!   standard errors of counting. [`FEWEST`] are expected at least, so that
//!   none at all is a failure.
//!
//! So a low rate needs few trials: at 10⁻⁶ the fill tests the keys' places, and twenty-five wrong
//! answers test the look-ups. Keys are numbered, so every run measures the same. `--nocapture`
//! shows the figures.

use crate::common::reader::Reader;
use std::collections::HashSet;
use tamis::{AnyFilter, Hash, Hasher, Kind, Plan};

const SIGMAS: f64 = 4.0;
/// Wrong answers to expect: getting none would be `SIGMAS` standard errors off.
const FEWEST: f64 = 20.0;
/// The plan's promise to users.
const SLACK: f64 = 1.05;
/// How close a prediction must be.
const CLOSE: f64 = 0.03;

/// The form of the keys.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Numbers as prehashed values.
    Numbers,
    /// Text, hashed by the filter.
    Text(fn(u64) -> Hasher),
}

/// A row: `filters` are filled with `keys`, and `trials` keys are looked up in all.
struct Row {
    keys: u64,
    rate: f64,
    filters: u64,
    trials: u64,
}

const fn row(keys: u64, rate: f64, filters: u64, trials: u64) -> Row {
    Row {
        keys,
        rate,
        filters,
        trials,
    }
}

const ROWS: &[Row] = &[
    row(100_000, 0.1, 10, 1_000_000),
    row(100_000, 0.01, 24, 5_000_000),
    row(100_000, 1e-3, 20, 10_000_000),
    row(100_000, 1e-4, 8, 10_000_000),
    row(100_000, 1e-6, 4, 25_000_000),
];

/// Kinds filled to their planned capacity. `growing.rs` tests growing filters, `finished.rs` static
/// ones.
const FILLED: [Kind; 4] = [Kind::Bloom, Kind::Blocked, Kind::Counting, Kind::Cuckoo];

#[test]
fn bloom() {
    run(Kind::Bloom, Keys::Numbers, ROWS);
}

#[test]
fn blocked() {
    run(Kind::Blocked, Keys::Numbers, ROWS);
}

#[test]
fn counting() {
    run(Kind::Counting, Keys::Numbers, ROWS);
}

#[test]
fn cuckoo() {
    run(Kind::Cuckoo, Keys::Numbers, ROWS);
}

/// Few lines, and few keys in each: effects that are negligible in a large filter matter here.
#[test]
fn tiny_filters() {
    let rows = [
        row(1, 0.01, 20_000, 2_000_000),
        row(10, 0.1, 20_000, 2_000_000),
        row(10, 0.01, 20_000, 4_000_000),
        row(10, 1e-4, 2_000, 8_000_000),
        row(100, 0.01, 5_000, 4_000_000),
        row(100, 1e-3, 5_000, 8_000_000),
        row(1_000, 0.01, 1_000, 4_000_000),
        row(1_000, 1e-3, 1_000, 8_000_000),
        row(1_000, 1e-6, 200, 40_000_000),
    ];
    for kind in FILLED {
        run(kind, Keys::Numbers, &rows);
    }
}

#[test]
fn ten_million_keys() {
    let rows = [
        row(10_000_000, 0.1, 1, 1_000_000),
        row(10_000_000, 0.01, 1, 2_000_000),
        row(10_000_000, 1e-4, 1, 5_000_000),
        row(10_000_000, 1e-6, 1, 25_000_000),
    ];
    run(Kind::Bloom, Keys::Numbers, &rows[1..]);
    run(Kind::Blocked, Keys::Numbers, &rows);
    run(Kind::Counting, Keys::Numbers, &rows[1..2]);
}

#[test]
fn text_keys() {
    let rows = [
        row(100_000, 0.01, 10, 1_000_000),
        row(100_000, 1e-4, 4, 2_000_000),
    ];
    for kind in FILLED {
        run(kind, Keys::Text(Hasher::seeded), &rows);
    }
}

#[test]
fn text_keys_under_a_secret() {
    let keyed: fn(u64) -> Hasher = |seed| {
        let key = (u128::from(seed) + 1).wrapping_mul(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
        Hasher::keyed(tamis::SecretKey::new(key.to_le_bytes()))
    };
    for kind in FILLED {
        run(
            kind,
            Keys::Text(keyed),
            &[row(100_000, 0.01, 10, 1_000_000)],
        );
    }
}

/// The plan predicts the rates of filters filled to half and to twice their capacity.
#[test]
fn other_fills_are_predicted_too() {
    for kind in FILLED {
        let plan = Plan::for_rate(kind, 100_000, 0.01).unwrap();
        for keys in [50_000, 200_000] {
            if kind == Kind::Cuckoo && keys > plan.keys() {
                // Refuses keys instead.
                continue;
            }
            let seen = measure(&plan, Keys::Numbers, keys, 10, 4_000_000);
            seen.check(
                plan.rate_at(keys),
                &format!("{kind}, {keys} keys for 100,000"),
            );
        }
    }
}

fn run(kind: Kind, keys: Keys, rows: &[Row]) {
    for row in rows {
        let plan = Plan::for_rate(kind, row.keys, row.rate).unwrap();
        let seen = measure(&plan, keys, row.keys, row.filters, row.trials);
        let name = format!("{kind}, n = {}, p = {}", row.keys, row.rate);
        println!(
            "{name:>36}: {:.2} bits/key, predicted {:.4e}, filled {:.4e} ± {:.1} % ({:+.2} %), \
             {} filters, {} of {:.1} wrong answers",
            plan.bits_per_key(),
            plan.rate(),
            seen.rate,
            seen.error * 100.0,
            (seen.rate / plan.rate() - 1.0) * 100.0,
            row.filters,
            seen.hits,
            seen.expected_hits,
        );
        let most = SLACK * row.rate * (1.0 + SIGMAS * seen.error);
        assert!(seen.rate <= most, "{name}: {} > {most}", seen.rate);
        seen.check(plan.rate(), &name);
    }
}

struct Seen {
    /// The mean of the filters' exact rates.
    rate: f64,
    /// The relative standard error of `rate`.
    error: f64,
    /// Wrong answers, and how many those rates predict.
    hits: usize,
    expected_hits: f64,
}

impl Seen {
    fn check(&self, predicted: f64, name: &str) {
        let tolerance = CLOSE.max(SIGMAS * self.error);
        let off = (self.rate / predicted - 1.0).abs();
        assert!(
            off <= tolerance,
            "{name}: predicted {predicted}, filled {}: {off} off, {tolerance} allowed",
            self.rate
        );
        let (hits, expected) = (self.hits as f64, self.expected_hits);
        assert!(
            expected >= FEWEST,
            "{name}: {expected} wrong answers prove nothing"
        );
        assert!(
            (hits - expected).abs() <= SIGMAS * expected.sqrt(),
            "{name}: {hits} wrong answers for {expected}"
        );
    }
}

fn measure(plan: &Plan, keys: Keys, filled: u64, filters: u64, trials: u64) -> Seen {
    let mut hits = 0;
    let mut rates = Vec::new();
    for seed in 0..filters {
        let hasher = match keys {
            Keys::Numbers => Hasher::default(),
            Keys::Text(hasher) => hasher(seed),
        };
        let mut filter = AnyFilter::from_plan(plan, hasher).unwrap();
        // Numbers that no other filter has.
        let first = seed << 40;
        let mut ask = Asker::new(keys, hasher);
        ask.each_block(first..first + filled, |hashes, flags| {
            filter.insert_many(hashes, flags).unwrap();
        });
        let trials = trials / filters;
        ask.each_block(first + filled..first + filled + trials, |hashes, found| {
            filter.contains_many(hashes, found);
            hits += found.iter().filter(|found| **found).count();
        });
        let rate = exact_rate(&filter);
        if filter.kind() != Kind::Cuckoo {
            let told = filter.rate_now();
            assert!(
                (told / rate - 1.0).abs() < 1e-9,
                "rate_now {told}, {rate} by its bytes"
            );
        }
        rates.push(rate);
    }
    let mean = rates.iter().sum::<f64>() / filters as f64;
    Seen {
        rate: mean,
        error: spread(&rates).sqrt(),
        hits,
        expected_hits: mean * (trials / filters * filters) as f64,
    }
}

/// The probability that a key that wasn't added is found, from the bytes of the filter.
fn exact_rate(filter: &AnyFilter) -> f64 {
    let file = filter.to_bytes();
    let (body, shape) = (
        &file[crate::common::BODY..],
        &file[crate::common::SHAPE_2A.start..],
    );
    let (k, per_key) = (usize::from(shape[0]), usize::from(shape[4]));
    match filter.kind() {
        Kind::Bloom => {
            let bits = u64::from_le_bytes(file[crate::common::SHAPE_1].try_into().unwrap());
            let ones: u64 = body.iter().map(|byte| u64::from(byte.count_ones())).sum();
            (ones as f64 / bits as f64).powi(k as i32)
        }
        Kind::Blocked => by_lines(body, 8, k, per_key, |word| {
            word.iter().map(|byte| byte.count_ones()).sum()
        }),
        Kind::Counting => by_lines(body, 32, k, per_key, |word| {
            let counters = word.iter().flat_map(|byte| [byte & 15, byte >> 4]);
            counters.filter(|counter| *counter > 0).count() as u32
        }),
        // Each stored fingerprint matches in two places, or one.
        Kind::Cuckoo => {
            let reader = Reader::new(&file);
            let entries = reader.entries().into_keys();
            let cells: HashSet<(u64, u64)> = entries
                .flat_map(|(fingerprint, places)| places.map(|place| (fingerprint, place)))
                .collect();
            cells.len() as f64 / (reader.places() as f64 * reader.fingerprints() as f64)
        }
        other => panic!("{other}: is measured elsewhere"),
    }
}

/// For lines of eight words of this many bytes, in which `set` counts the bits: a key has bits in
/// `k` consecutive words, starting at any word, and a line in each bank.
fn by_lines(body: &[u8], word: usize, k: usize, banks: usize, set: fn(&[u8]) -> u32) -> f64 {
    let of_line = |line: &[u8]| {
        let fill: Vec<f64> = line
            .chunks(word)
            .map(|word| f64::from(set(word)) / 64.0)
            .collect();
        let from = |start| {
            (start..start + k)
                .map(|word| fill[word % 8])
                .product::<f64>()
        };
        (0..8).map(from).sum::<f64>() / 8.0
    };
    let of_bank = |bank: &[u8]| {
        let lines = bank.chunks(8 * word);
        let count = lines.len() as f64;
        lines.map(of_line).sum::<f64>() / count
    };
    body.chunks(body.len() / banks).map(of_bank).product()
}

/// The relative variance of the mean of these filters. That of a single one is unknown but small,
/// because only large ones are measured alone.
fn spread(rates: &[f64]) -> f64 {
    let n = rates.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|r| (r / mean - 1.0).powi(2)).sum::<f64>() / (n - 1.0);
    variance / n
}

/// Hashes numbered keys in blocks.
struct Asker {
    keys: Keys,
    hasher: Hasher,
    hashes: Vec<Hash>,
    flags: Vec<bool>,
    text: Vec<u8>,
}

impl Asker {
    fn new(keys: Keys, hasher: Hasher) -> Self {
        Self {
            keys,
            hasher,
            hashes: Vec::new(),
            flags: Vec::new(),
            text: Vec::new(),
        }
    }

    fn each_block(
        &mut self,
        numbers: std::ops::Range<u64>,
        mut each: impl FnMut(&[Hash], &mut [bool]),
    ) {
        let mut from = numbers.start;
        while from < numbers.end {
            let to = numbers.end.min(from + 4096);
            self.hashes.clear();
            match self.keys {
                Keys::Numbers => self.hashes.extend((from..to).map(Hash::from_u64)),
                Keys::Text(_) => {
                    for number in from..to {
                        use std::io::Write;
                        self.text.clear();
                        write!(self.text, "https://example.org/item/{number}").unwrap();
                        self.hashes.push(self.hasher.hash(&self.text));
                    }
                }
            }
            self.flags.resize(self.hashes.len(), false);
            each(&self.hashes, &mut self.flags);
            from = to;
        }
    }
}
