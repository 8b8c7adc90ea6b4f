//! Bursts of keys, and what remains of them.

use super::*;
use std::time::Duration;
use tamis::internals::raw::Header;
use tamis::{
    Hasher, Plan,
    window::{Span, WindowOptions},
};

fn window(keys: u64, rate: f64) -> Sliding {
    let options = WindowOptions::new(Span::Time(Duration::from_secs(80)));
    let plan = Plan::window(&options, keys, rate).unwrap();
    let mut window = Sliding::of(&Header::of_plan(&plan, Hasher::default())).unwrap();
    window.extend(window.firsts("seen", 9, 0..u64::MAX));
    window
}

/// A look into an empty chunk.
fn empty(window: &Sliding, keys: std::ops::Range<u64>, at: i64) -> Look {
    let timed = |key: u64| Timed {
        key: key as usize,
        place: window.place(Hasher::default().hash(&key.to_le_bytes())),
        at: Some(at),
    };
    let mut look = Look::new(window, 0, keys.map(timed).collect(), true);
    look.now = 1 << 40;
    look.strings[0].made = true;
    look
}

/// However many keys come at once, all are found, at the promised rate.
#[test]
fn a_burst_keeps_the_rate() {
    for rate in [0.01] {
        let window = window(2_000, rate);
        for times in [1, 8] {
            let mut look = empty(&window, 0..2_000 * times, 7);
            let decided = look.decide(&window, None);
            let lost = decided.keys.iter().filter(|(.., found)| *found).count();
            let total = 2_000.0 * times as f64;
            assert!(lost as f64 <= rate * total, "{lost} of {total}");
            assert!(
                look.keys
                    .iter()
                    .all(|key| matches!(look.find(&key.place, 7, 0), Some(Some(_))))
            );
            let foreign = empty(&window, 1_000_000..1_100_000, 7).keys;
            let find = |timed: &&Timed| matches!(look.find(&timed.place, 7, 0), Some(Some(_)));
            let found = foreign.iter().filter(find).count();
            assert!((found as f64) < 1.05 * rate * 1e5, "{found} at {times}");
        }
    }
}

/// Expired entries make room again, and strings made for a peak are dropped.
#[test]
fn a_peak_leaves_nothing() {
    let window = window(2_000, 0.01);
    let mut look = empty(&window, 0..16_000, 0);
    look.decide(&window, None);
    assert!(look.strings.len() > 3);
    for period in 1..60u64 {
        let keys = 100_000 + period * 200..100_000 + (period + 1) * 200;
        look.keys = empty(&window, keys, period as i64).keys;
        let decided = look.decide(&window, None);
        assert_eq!(decided.keys.len(), 200);
    }
    assert!(look.strings.len() <= 2, "{}", look.strings.len());
}
