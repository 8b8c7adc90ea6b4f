//! The promised rate is the measured rate.
//!
//! A measurement fills several filters to their capacity, each with keys of
//! its own, and asks keys that were not added. Its relative standard error has
//! two parts, both computed below: that of counting hits, `sqrt((1-p)/(p·trials))`,
//! and that of the filters themselves, which differ a little in how evenly
//! their keys fell (a filter of 100,000 keys at 1 % by nearly 2 %).
//!
//! Two things are asserted of each, with [`SIGMAS`] standard errors:
//! - measured ≤ 1.05 · promised, plus the sampling error;
//! - measured within 3 % of the plan's prediction where the trials are enough
//!   to tell 3 %, within the sampling error elsewhere.
//!
//! Keys are numbered, so every run measures the same. `TAMIS_LONG=1` runs the
//! whole table of the bar, with up to 10⁹ trials a row; some minutes, so with
//! `--release`. `--nocapture` shows the figures.

use tamis::{AnyFilter, Hash, Hasher, Kind, Plan};

const SIGMAS: f64 = 4.0;
/// The plan's promise to users.
const SLACK: f64 = 1.05;
/// How close a prediction must be.
const CLOSE: f64 = 0.03;

/// What keys are made of.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Numbers through the pre-hashed entry.
    Numbers,
    /// Text through the filter's hash.
    Text(fn(u64) -> Hasher),
}

/// A row: `filters` are filled with `keys`, and asked `trials` in all.
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

const USUAL: &[Row] = &[
    row(100_000, 0.1, 10, 1_000_000),
    row(100_000, 0.01, 24, 5_000_000),
    row(100_000, 1e-3, 20, 10_000_000),
    row(100_000, 1e-4, 8, 10_000_000),
    row(100_000, 1e-6, 4, 10_000_000),
];

const LONG: &[Row] = &[
    row(100_000, 0.1, 40, 20_000_000),
    row(100_000, 0.01, 100, 50_000_000),
    row(100_000, 1e-3, 100, 100_000_000),
    row(100_000, 1e-4, 100, 400_000_000),
    row(100_000, 1e-6, 50, 1_000_000_000),
    row(10_000_000, 0.1, 1, 20_000_000),
    row(10_000_000, 0.01, 1, 50_000_000),
    row(10_000_000, 1e-3, 1, 100_000_000),
    row(10_000_000, 1e-4, 1, 400_000_000),
    row(10_000_000, 1e-6, 1, 1_000_000_000),
];

fn long() -> bool {
    std::env::var("TAMIS_LONG").is_ok_and(|v| v == "1")
}

/// Kinds that hold what was planned for them. Growing filters are tested in
/// `growing.rs`, static ones in `finished.rs`.
const FILLED: [Kind; 4] = [Kind::Bloom, Kind::Blocked, Kind::Counting, Kind::Cuckoo];

#[test]
fn bloom() {
    run(
        Kind::Bloom,
        Keys::Numbers,
        if long() { LONG } else { USUAL },
    );
}

#[test]
fn blocked() {
    run(
        Kind::Blocked,
        Keys::Numbers,
        if long() { LONG } else { USUAL },
    );
}

#[test]
fn counting() {
    run(
        Kind::Counting,
        Keys::Numbers,
        if long() { LONG } else { USUAL },
    );
}

/// Few lines, and few keys in each: what is negligible in a large filter is
/// not in these.
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
        row(1_000, 1e-6, 20, 8_000_000),
    ];
    for kind in FILLED {
        run(kind, Keys::Numbers, &rows);
    }
}

#[test]
fn ten_million_keys() {
    if long() {
        return; // its rows are in the long table
    }
    run(
        Kind::Bloom,
        Keys::Numbers,
        &[row(10_000_000, 0.01, 1, 2_000_000)],
    );
    let rows = [
        row(10_000_000, 0.01, 1, 2_000_000),
        row(10_000_000, 1e-4, 1, 5_000_000),
    ];
    run(Kind::Blocked, Keys::Numbers, &rows);
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

/// A filter filled to half of its capacity, and to the double: the plan tells
/// both, and `rate_now` tells it from the filter itself.
#[test]
fn other_fills_are_predicted_too() {
    for kind in FILLED {
        let plan = Plan::for_rate(kind, 100_000, 0.01).unwrap();
        for keys in [50_000, 200_000] {
            if kind == Kind::Cuckoo && keys > plan.keys() {
                // Refused, not overfull.
                continue;
            }
            let seen = measure(&plan, Keys::Numbers, keys, 10, 4_000_000);
            let predicted = plan.rate_at(keys);
            seen.check_close(predicted, &format!("{kind}, {keys} keys for 100,000"));
        }
    }
}

fn run(kind: Kind, keys: Keys, rows: &[Row]) {
    for row in rows {
        let plan = Plan::for_rate(kind, row.keys, row.rate).unwrap();
        let seen = measure(&plan, keys, row.keys, row.filters, row.trials);
        let name = format!("{kind}, n = {}, p = {}", row.keys, row.rate);
        println!(
            "{name:>36}: {:.2} bits/key, predicted {:.4e}, measured {:.4e} ± {:.1} % \
             ({:+.2} %), {} filters, {:.1e} trials",
            plan.bits_per_key(),
            plan.rate(),
            seen.rate,
            seen.error * 100.0,
            (seen.rate / plan.rate() - 1.0) * 100.0,
            row.filters,
            row.trials as f64,
        );
        let most = SLACK * row.rate * (1.0 + SIGMAS * seen.error);
        assert!(seen.rate <= most, "{name}: {} > {most}", seen.rate);
        seen.check_close(plan.rate(), &name);
    }
}

struct Seen {
    rate: f64,
    /// The relative standard error of `rate`.
    error: f64,
}

impl Seen {
    fn check_close(&self, predicted: f64, name: &str) {
        let tolerance = CLOSE.max(SIGMAS * self.error);
        let off = (self.rate / predicted - 1.0).abs();
        assert!(
            off <= tolerance,
            "{name}: predicted {predicted}, measured {}: {off} off, {tolerance} allowed",
            self.rate
        );
    }
}

fn measure(plan: &Plan, keys: Keys, filled: u64, filters: u64, trials: u64) -> Seen {
    let mut hits = 0;
    let mut expected = Vec::new();
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
            filter.insert_hashes(hashes, flags).unwrap();
        });
        let trials = trials / filters;
        ask.each_block(first + filled..first + filled + trials, |hashes, found| {
            filter.contains_hashes(hashes, found);
            hits += found.iter().filter(|found| **found).count();
        });
        expected.push(filter.rate_now());
    }
    let rate = hits as f64 / (trials / filters * filters) as f64;
    // From the prediction, for a few hits would tell little of themselves.
    let predicted = plan.rate_at(filled);
    let counting = (1.0 - predicted) / (predicted * trials as f64);
    Seen {
        rate,
        error: (counting + spread(&expected)).sqrt(),
    }
}

/// The relative variance of the mean of so many filters; of one alone it is
/// not seen, and small, as only large ones are measured alone.
fn spread(rates: &[f64]) -> f64 {
    let n = rates.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|r| (r / mean - 1.0).powi(2)).sum::<f64>() / (n - 1.0);
    variance / n
}

/// Hashes numbered keys block by block.
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
