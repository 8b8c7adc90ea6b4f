use super::lines::{FEWER_HASHES, lines_for};
use super::*;
use crate::raw::bloom::BloomShape;
use std::f64::consts::LN_2;

/// `growing.rs` tests the growing kind.
const FIXED: [Kind; 4] = [Kind::Bloom, Kind::Blocked, Kind::Counting, Kind::Cuckoo];

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b
}

#[test]
fn known_numbers_hold() {
    let plan = Plan::for_rate(Kind::Bloom, 1_000_000, 0.01).unwrap();
    assert_eq!(
        (plan.shape, plan.hashes()),
        (BloomShape::new(9_585_058, 7).unwrap().into(), 7)
    );
    // Published table: m/n, k, rate to three digits.
    for (ratio, k, rate) in [
        (20.0, 10, 8.89e-5),
        (22.0, 17, 2.67e-5),
        (24.0, 17, 9.84e-6),
        (27.0, 19, 2.33e-6),
        (29.0, 20, 8.89e-7),
        (32.0, 22, 2.1e-7),
        (2.0, 1, 0.393),
        (8.0, 6, 0.0216),
    ] {
        let got = classic::rate(ratio, k);
        assert!(
            close(got, rate, 0.005),
            "m/n {ratio} k {k}: {got} not {rate}"
        );
    }
}

#[test]
fn one_line_keeps_the_rate_and_costs_what_it_says() {
    for kind in [Kind::Blocked, Kind::Counting] {
        for rate in [0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9] {
            for keys in [1, 10_000, 10_000_000] {
                let plan = Plan::one_line(kind, keys, rate).unwrap();
                let bits = match plan.shape() {
                    Shape::Blocked(shape) => shape,
                    Shape::Counting(shape) => shape.bits(),
                    other => panic!("{other:?}"),
                };
                assert_eq!(bits.lines_per_key(), 1);
                assert!(plan.rate() <= rate && plan.promise() == rate, "{plan:?}");
                let best = (1..=8)
                    .filter_map(|k| lines_for(keys as f64, rate, k, 1))
                    .min();
                assert!(
                    bits.lines() as f64 <= best.unwrap() as f64 * FEWER_HASHES,
                    "{plan:?}"
                );
                println!(
                    "{kind} {rate:e} {keys}: {:.2} {}",
                    plan.bits_per_key(),
                    plan.hashes()
                );
            }
        }
        assert!(Plan::one_line(kind, 100, 1e-10).is_err());
    }
    assert!(Plan::one_line(Kind::Cuckoo, 100, 0.01).is_err());
    let growing = Plan::one_line(Kind::Growing, 5_000, 0.01).unwrap();
    assert!(matches!(growing.shape(), Shape::Growing(s) if s.lines_per_key() == 1));
}

/// Bits per key at the best number of hashes, by lines per key; for large filters.
#[test]
fn the_size_bars_hold() {
    for (rate, per_key, bits) in [
        (0.01, 1, 9.93),
        (1e-3, 1, 15.72),
        (1e-3, 2, 14.66),
        (1e-4, 2, 19.87),
        (1e-4, 3, 19.54),
        (1e-6, 2, 31.45),
        (1e-6, 3, 29.80),
        (1e-9, 3, 47.17),
        (1e-9, 4, 45.12),
        (1e-12, 4, 62.90),
    ] {
        let keys = 10_000_000.0;
        let best = (1..=8)
            .filter_map(|k| lines_for(keys, rate, k, per_key))
            .min();
        let got = best.unwrap() as f64 * 512.0 / keys;
        assert!(close(got, bits, 0.005), "{rate} in {per_key} lines: {got}");
    }
    // The chosen shape: the fewest lines within 8 % of the smallest size.
    for (rate, per_key, k, most) in [
        (0.01, 1, 6, 9.98),
        (1e-3, 1, 8, 15.8),
        (1e-4, 2, 6, 19.97),
        (1e-6, 2, 8, 31.6),
        (1e-9, 3, 8, 47.4),
        (1e-12, 4, 8, 63.2),
    ] {
        for keys in [100_000, 10_000_000] {
            let plan = Plan::for_rate(Kind::Blocked, keys, rate).unwrap();
            let Shape::Blocked(shape) = plan.shape else {
                unreachable!()
            };
            assert_eq!(
                (shape.lines_per_key(), shape.hashes_per_line()),
                (per_key, k),
                "{rate}"
            );
            assert!(
                plan.bits_per_key() <= most,
                "{rate}: {}",
                plan.bits_per_key()
            );
            assert!(plan.rate() <= rate);
        }
    }
    for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
        let plan = Plan::for_rate(Kind::Bloom, 10_000_000, rate).unwrap();
        let bound = -libm::log2(rate) / LN_2;
        assert!(
            close(plan.bits_per_key(), bound, 0.01),
            "{rate}: {}",
            plan.bits_per_key()
        );
    }
}

/// The closed form against the definition: every placement of a few keys.
#[test]
fn the_rate_is_exact() {
    // One key: the foreign key has the same line, start (if it matters) and positions.
    for k in 1..=4 {
        let shape = BlockedShape::new(5, k, 1).unwrap();
        // In one of eight starts, the same; words beyond the first key's are never set.
        let one = 64f64.powi(-(k as i32)) / 8.0 / 5.0;
        assert!(
            close(shape.rate_at(1.0), one, 1e-4),
            "{k}: {}",
            shape.rate_at(1.0)
        );
    }
    // Two keys, one line, k = 8: every word has one bit or two.
    let shape = BlockedShape::new(1, 8, 1).unwrap();
    let two = (1.0 - (63.0f64 / 64.0).powi(2)).powi(8);
    assert!(close(shape.rate_at(2.0), two, 0.05));
    let many = (1.0 - (63.0f64 / 64.0).powi(40)).powi(8);
    assert!(close(shape.rate_at(40.0), many, 1e-9));
    // A measurement: 400 M keys at 10 bits, 0.97281 % of 10 M.
    let large = BlockedShape::new(400_000_000 * 10 / 512, 6, 1).unwrap();
    assert!(close(large.rate_at(4e8), 0.0097268, 1e-4));
    // Banks are independent.
    let (one, two) = (
        BlockedShape::new(50, 5, 1).unwrap(),
        BlockedShape::new(100, 5, 2).unwrap(),
    );
    let squared = one.rate_at(900.0).powi(2);
    assert!(close(two.rate_at(900.0), squared, 1e-9));
}

#[test]
fn counting_is_four_times_blocked() {
    for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
        for keys in [10, 1_000_000, 10_000_000] {
            let plan = |kind| Plan::for_rate(kind, keys, rate).unwrap();
            let (counting, blocked) = (plan(Kind::Counting), plan(Kind::Blocked));
            assert_eq!(counting.bytes(), 4 * blocked.bytes());
            assert_eq!(counting.rate(), blocked.rate());
        }
    }
}

#[test]
fn cuckoo_is_small() {
    for keys in [1_000_003, 10_000_000] {
        let plan = Plan::for_rate(Kind::Cuckoo, keys, 1e-3).unwrap();
        assert!(plan.bits_per_key() <= 13.2, "{}", plan.bits_per_key());
    }
}

#[test]
fn the_promise_holds_for_every_plan() {
    for kind in FIXED {
        for keys in [1, 2, 3, 10, 100, 1000, 54_321] {
            for rate in [
                0.99, 0.75, 0.5, 0.3, 0.1, 0.01, 1e-3, 9e-4, 1e-5, 1e-9, 1e-12, 1e-15,
            ] {
                if kind == Kind::Cuckoo && rate < MIN_CUCKOO_RATE {
                    assert!(Plan::for_rate(kind, keys, rate).is_err());
                    continue;
                }
                let plan = Plan::for_rate(kind, keys, rate).unwrap();
                assert!(plan.rate() <= rate * 1.01, "{kind} {keys} {rate}: {plan:?}");
            }
        }
    }
}

#[test]
fn the_three_ways_to_plan_agree() {
    for kind in FIXED {
        for rate in [0.1, 0.01, 1e-5] {
            let plan = Plan::for_rate(kind, 200_000, rate).unwrap();
            let by_size = Plan::for_size(kind, 200_000, plan.bytes()).unwrap();
            assert!(
                close(by_size.rate(), plan.rate(), 0.02),
                "{by_size:?} {plan:?}"
            );
            let by_rate = Plan::for_rate_in_size(kind, rate, plan.bytes()).unwrap();
            assert!(by_rate.bytes() <= plan.bytes());
            assert!(close(by_rate.keys() as f64, 200_000.0, 0.01), "{by_rate:?}");
        }
    }
}

#[test]
fn nonsense_is_refused() {
    for kind in FIXED {
        for rate in [0.0, -1.0, 1.0, 2.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Plan::for_rate(kind, 10, rate).is_err(), "{rate}");
            assert!(Plan::for_rate_in_size(kind, rate, 1000).is_err(), "{rate}");
        }
        assert!(Plan::for_rate(kind, 0, 0.01).is_err());
        assert!(Plan::for_size(kind, 0, 1000).is_err());
        assert!(Plan::for_rate(kind, u64::MAX, 0.01).is_err());
        for bytes in [
            0,
            63,
            if kind == Kind::Counting { 255 } else { 63 },
            1 << 60,
            u64::MAX,
        ] {
            assert!(Plan::for_size(kind, 10, bytes).is_err());
            assert!(Plan::for_rate_in_size(kind, 0.01, bytes).is_err());
        }
    }
}

#[test]
fn overfull_filters_have_a_rate_too() {
    for kind in FIXED {
        let plan = Plan::for_rate(kind, 1000, 0.01).unwrap();
        let mut last = 0.0;
        for keys in [0, 1, 100, 1000, 2000, 10_000, 1_000_000, 1 << 40, u64::MAX] {
            let rate = plan.rate_at(keys);
            assert!(
                (last..=1.0).contains(&rate),
                "{kind} {keys}: {rate} after {last}"
            );
            last = rate;
        }
        assert_eq!((plan.rate_at(0), last), (0.0, 1.0));
    }
}

#[test]
fn finished_lists_have_plans() {
    for kind in [Kind::Fuse, Kind::Ribbon, Kind::Cascade] {
        for keys in [1, 2, 100, 10_000, 54_321, 10_000_000, 1 << 36] {
            for rate in [0.99, 0.5, 0.1, 0.01, 1e-5, 1.0 / (1u64 << 32) as f64] {
                let plan = Plan::for_rate(kind, keys, rate).unwrap();
                assert!(plan.rate() <= rate && plan.rate() > rate / 4.0, "{plan:?}");
                let by_size = Plan::for_size(kind, keys, plan.bytes()).unwrap();
                assert!(by_size.rate() <= plan.rate() && by_size.bytes() <= plan.bytes());
                let by_rate = Plan::for_rate_in_size(kind, rate, plan.bytes()).unwrap();
                assert!(by_rate.bytes() <= plan.bytes() && by_rate.keys() >= keys / 10 * 9);
            }
        }
        assert!(Plan::for_rate(kind, 1000, 1e-10).is_err());
        assert!(Plan::for_size(kind, 1_000_000, 64_000).is_err());
    }
    for (kind, most) in [
        (Kind::Fuse, 1.09),
        (Kind::Ribbon, 1.005),
        (Kind::Cascade, 1.005),
    ] {
        let plan = Plan::for_rate(kind, 10_000_000, 2f64.powi(-8)).unwrap();
        assert!(plan.bits_per_key() <= 8.0 * most, "{plan:?}");
    }
}

#[test]
fn what_becomes_of_a_plan_with_other_numbers_of_keys() {
    let plan = |kind| Plan::for_rate(kind, 10_000, 0.01).unwrap();
    for kind in [Kind::Bloom, Kind::Blocked, Kind::Counting] {
        for keys in [0, 1, 10_000, 1_000_000] {
            assert_eq!(plan(kind).rate_after(keys), Some(plan(kind).rate_at(keys)));
        }
    }
    for kind in [Kind::Fuse, Kind::Ribbon, Kind::Cascade] {
        let plan = plan(kind);
        assert_eq!(plan.rate_after(10_000), Some(plan.rate()), "{kind}");
        assert_eq!(plan.rate_after(10_001), None, "{kind}");
    }
    let growing = plan(Kind::Growing);
    assert_eq!(growing.rate_after(10_000), Some(growing.rate()));
    for keys in [1, 1000, 1_000_000, 1_000_000_000] {
        let rate = growing.rate_after(keys).unwrap();
        assert!(rate > 0.0 && rate <= 0.01, "{keys}: {rate}");
    }
}

/// The rates end at about the last number of keys that a table takes.
#[test]
fn a_cuckoo_filter_ends_where_its_rates_do() {
    for (window, width) in [(2, 10), (3, 12), (4, 14)] {
        let shape = CuckooShape::new(50_000, window, width).unwrap();
        let plan = Plan::of(shape, 40_000);
        let mut table = crate::Cuckoo::from_plan(&plan, crate::Hasher::default()).unwrap();
        let taken = (0u64..)
            .take_while(|key| table.insert(key.to_le_bytes()).is_ok())
            .count() as u64;
        let most = (0..=50_000)
            .rfind(|&keys| plan.rate_after(keys).is_some())
            .unwrap();
        assert!(
            taken <= most && taken as f64 > most as f64 * 0.95,
            "window {window}: took {taken} of {most}"
        );
    }
}

/// A filter that grows step by step gives the same rates as one for each number of keys.
#[test]
fn rates_of_many_numbers_of_keys_are_those_of_each() {
    for kind in [
        Kind::Blocked,
        Kind::Bloom,
        Kind::Cuckoo,
        Kind::Fuse,
        Kind::Growing,
    ] {
        let plan = Plan::for_rate(kind, 50_000, 1e-3).unwrap();
        // Also descending, and a number that no filter holds.
        let keys = [1, 999, 1_000, 1_001, 50_000, 3_000_000, 7, u64::MAX, 2_000];
        let each: Vec<_> = keys.iter().map(|&keys| plan.rate_after(keys)).collect();
        assert!(plan.rates_after(&keys).eq(each), "{kind}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(96))]

    /// A size is a limit, and so is a rate requested with it: for the smallest filters and for huge ones.
    #[test]
    fn neither_size_nor_rate_is_exceeded(
        keys in 0.0..9.0f64, size in 1.9..9.0f64, rate in -9.0..-0.05f64,
    ) {
        let (keys, size) = (libm::exp10(keys) as u64, libm::exp10(size) as u64);
        let rate = libm::exp10(rate);
        for kind in Kind::ALL {
            if let Ok(plan) = Plan::for_size(kind, keys, size) {
                assert!(plan.bytes() <= size && plan.keys() == keys, "{plan:?}");
            }
            if let Ok(plan) = Plan::for_rate_in_size(kind, rate, size) {
                assert!(plan.bytes() <= size && plan.rate() <= rate, "{rate}: {plan:?}");
                assert!(plan.promise() == rate && plan.keys() > 0, "{plan:?}");
            }
            if let Ok(plan) = Plan::for_rate(kind, keys, rate) {
                // The textbook's numbers cost up to 1 % of the rate.
                let most = if kind == Kind::Bloom { rate * 1.01 } else { rate };
                assert!(plan.rate() <= most, "{rate}: {plan:?}");
            }
        }
    }
}
