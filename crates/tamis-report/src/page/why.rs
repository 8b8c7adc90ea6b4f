//! The numbers behind the textbook's filter. The rates are those of `tamis::internals::plan::classic`, compared with a
//! real filter as it fills up.

use serde_json::{Value, json};
use std::f64::consts::LN_2;
use tamis::internals::plan::classic;
use tamis::internals::raw::{BloomShape, Word as _};
use tamis::{AnyFilter, Hash, Hasher, Plan};

/// Bits per key go from 1 to 32, in halves.
const HALVES: std::ops::RangeInclusive<u32> = 2..=64;
/// The best number of hashes for 32 bits per key is 22.
const HASHES: std::ops::RangeInclusive<u32> = 1..=24;
/// The capacity of the example filter, which gets three times as many keys.
const KEYS: u64 = 1000;
const STEP: u64 = 125;
const STRANGERS: u64 = 10_000;

/// The answer of `GET /v1/why` to a query: the rates of all shapes or, for `bits_per_key=10&hashes=7`, one filter as it
/// fills up.
///
/// ```
/// let told = tamis_report::page::why("bits_per_key=10&hashes=7")?;
/// assert_eq!(told["bits"], 10_000);
/// # Ok::<(), String>(())
/// ```
pub fn why(query: &str) -> Result<Value, String> {
    match shape(query)? {
        None => Ok(rates()),
        Some((bits_per_key, hashes)) => {
            filling(bits_per_key, hashes).map_err(|error| error.to_string())
        }
    }
}

/// `bits_per_key=10&hashes=7`, or neither.
fn shape(query: &str) -> Result<Option<(f64, u32)>, String> {
    let (mut bits_per_key, mut hashes) = (None, None);
    let (least, most) = (*HASHES.start(), *HASHES.end());
    let (low, high) = (half(*HALVES.start()), half(*HALVES.end()));
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "bits_per_key" => {
                let number = value.parse().ok().filter(|n| (low..=high).contains(n));
                let expected = || format!("{name}: expected {low} to {high}, got '{value}'");
                bits_per_key = Some(number.ok_or_else(expected)?);
            }
            "hashes" => {
                let number = value.parse().ok().filter(|n| HASHES.contains(n));
                let expected = || format!("{name}: expected {least} to {most}, got '{value}'");
                hashes = Some(number.ok_or_else(expected)?);
            }
            _ => return Err(format!("{name}: expected bits_per_key or hashes")),
        }
    }
    match (bits_per_key, hashes) {
        (Some(bits_per_key), Some(hashes)) => Ok(Some((bits_per_key, hashes))),
        (None, None) => Ok(None),
        _ => Err("expected both of bits_per_key and hashes, or neither".into()),
    }
}

fn half(halves: u32) -> f64 {
    f64::from(halves) / 2.0
}

/// The share of set bits. With one hash, that is the rate; k hashes set as many bits as k times the keys would.
fn set(bits_per_key: f64, hashes: u32) -> f64 {
    classic::rate(bits_per_key / f64::from(hashes), 1)
}

/// The rates for all m/n and k, and the best k for every m/n.
fn rates() -> Value {
    let row = |halves| {
        let bits_per_key = half(halves);
        let rates: Vec<f64> = HASHES.map(|k| classic::rate(bits_per_key, k)).collect();
        json!({
            "bits_per_key": bits_per_key,
            "exact": LN_2 * bits_per_key,
            "best": best(bits_per_key),
            "set": HASHES.map(|k| set(bits_per_key, k)).collect::<Vec<_>>(),
            "rates": rates,
        })
    };
    json!({
        "hashes": HASHES.collect::<Vec<_>>(),
        "rows": HALVES.map(row).collect::<Vec<_>>(),
    })
}

/// The number of hashes with the lowest rate. If the exact optimum is between two integers, the nearer one isn't always
/// better.
fn best(bits_per_key: f64) -> u32 {
    let by_rate = |a: &u32, b: &u32| {
        let [a, b] = [*a, *b].map(|k| classic::rate(bits_per_key, k));
        a.total_cmp(&b)
    };
    HASHES.min_by(by_rate).unwrap_or(1)
}

/// Fills a filter beyond its capacity: the formula's expectation, the bits really set, and the answers to keys that
/// weren't added.
fn filling(bits_per_key: f64, hashes: u32) -> Result<Value, tamis::Error> {
    let bits = (bits_per_key * KEYS as f64).round() as u64;
    let shape = BloomShape::new(bits, hashes)?;
    let hasher = Hasher::default();
    let mut filter = AnyFilter::from_plan(&Plan::of(shape, KEYS), hasher)?;
    let hash = |what: &str, n: u64| hasher.hash(format!("{what} {n}").as_bytes());
    let strangers: Vec<Hash> = (0..STRANGERS).map(|n| hash("stranger", n)).collect();
    let mut steps = Vec::new();
    for step in 0..=KEYS * 3 / STEP {
        let keys = step * STEP;
        for n in keys.saturating_sub(STEP)..keys {
            filter.insert(hash("key", n))?;
        }
        // Without keys, the bits per key would be infinite.
        let now = bits_per_key * KEYS as f64 / keys as f64;
        let yes = strangers.iter().filter(|hash| filter.contains(**hash));
        steps.push(json!({
            "keys": keys,
            "set": set(now, hashes),
            "rate": classic::rate(now, hashes),
            "bits_set": bits_set(&filter),
            "false_yes": yes.count(),
        }));
    }
    Ok(json!({
        "bits_per_key": bits_per_key,
        "hashes": hashes,
        "bits": bits,
        "keys": KEYS,
        "strangers": STRANGERS,
        "steps": steps,
    }))
}

/// Bits beyond the last are never set.
fn bits_set(filter: &AnyFilter) -> u32 {
    let body = filter.body();
    let words = body.first().copied().unwrap_or_default();
    words.iter().map(|word| word.get().count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cell_of_every_textbook_is_in_the_table() {
        let told = rates();
        let rows = told["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["bits_per_key"] == 20.0).unwrap();
        let rate = row["rates"][9].as_f64().unwrap();
        assert!((rate - 8.89e-5).abs() < 5e-8, "{rate}");
        assert_eq!(row["best"], 14);
        // At the minimum, half of the bits are set, as nearly as an integer k allows.
        for row in rows.iter().filter(|row| row["best"].as_u64() > Some(3)) {
            let k = row["best"].as_u64().unwrap() as usize;
            let set = row["set"][k - 1].as_f64().unwrap();
            assert!((set - 0.5).abs() < 0.05, "{row}");
            let exact = row["exact"].as_f64().unwrap();
            assert!((exact - k as f64).abs() < 0.6, "{row}");
        }
    }

    /// A real filter follows the formula, even with three times the keys.
    #[test]
    fn a_filter_fills_as_the_formula_says() {
        for (bits_per_key, hashes) in [(10.0, 7), (10.0, 1), (9.5, 2), (4.0, 3), (1.0, 24)] {
            let told = filling(bits_per_key, hashes).unwrap();
            let bits = told["bits"].as_f64().unwrap();
            let steps = told["steps"].as_array().unwrap();
            assert_eq!(steps.last().unwrap()["keys"], 3000);
            for step in steps {
                let set = step["bits_set"].as_f64().unwrap() / bits;
                assert!((set - step["set"].as_f64().unwrap()).abs() < 0.02, "{step}");
                let rate = step["rate"].as_f64().unwrap();
                let measured = step["false_yes"].as_f64().unwrap() / STRANGERS as f64;
                let noise = (rate * (1.0 - rate) / STRANGERS as f64).sqrt() * 4.0;
                // The filter's share of set bits varies, too.
                let own = f64::from(hashes) * rate * 0.03;
                assert!((measured - rate).abs() <= noise + own + 1e-4, "{step}");
            }
        }
    }

    #[test]
    fn other_questions_are_refused() {
        assert_eq!(shape(""), Ok(None));
        assert_eq!(shape("bits_per_key=9.5&hashes=7"), Ok(Some((9.5, 7))));
        for query in [
            "bits_per_key=10",
            "hashes=7",
            "bits_per_key=0&hashes=7",
            "bits_per_key=NaN&hashes=7",
            "bits_per_key=inf&hashes=7",
            "bits_per_key=33&hashes=7",
            "bits_per_key=10&hashes=0",
            "bits_per_key=10&hashes=25",
            "bits_per_key=10&hashes=7.5",
            "keys=7",
        ] {
            assert!(shape(query).is_err(), "{query}");
        }
    }
}
