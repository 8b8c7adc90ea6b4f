//! Filters that forget, as the commands use them.
//!
//! Only additions that change a filter are replicated, and nothing else changes it: so replicas, append-only files and
//! copies stay byte-for-byte identical.

use crate::error::Error;
use std::time::Duration;
use tamis::{
    Hash, Moment, Window,
    window::{Renewal, Span, WindowOptions},
};

/// The result of adding keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Added {
    /// Which were not in the window.
    pub new: Vec<bool>,
    /// Which changed the window: new or renewed keys.
    pub changed: Vec<bool>,
}

/// The length of one generation.
pub fn generation(options: &WindowOptions) -> Duration {
    match options.band() {
        Span::Time(step) => step,
        Span::Keys(_) => Duration::ZERO,
    }
}

/// Refuses windows of a number of keys, which can't use the server's time.
pub fn check(window: &Window) -> Result<(), Error> {
    match window.options().span() {
        Span::Time(_) => Ok(()),
        Span::Keys(_) => Err(Error::bad_data(
            "a window of a number of keys; here are windows of time",
        )),
    }
}

/// The time that a clock stands for. A clock more than a generation behind the latest addition has jumped back, or is
/// another server's. Until it catches up, the time of that addition is used, so that added keys stay for their full
/// time.
pub fn moment(window: &Window, clock: Moment) -> Moment {
    match window.latest() {
        Some(latest) if window.is_late(clock) => latest,
        _ => clock,
    }
}

/// How far a clock is behind the latest addition.
pub fn behind(window: &Window, clock: Moment) -> Duration {
    let micros = window
        .latest()
        .map_or(0, |latest| latest.micros() - clock.micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn hashes(window: &Window, keys: &[&[u8]]) -> Vec<Hash> {
    keys.iter().map(|key| window.hasher().hash(key)).collect()
}

/// Whether each key is in the window that ends at `at`.
pub fn contains_many(window: &Window, keys: &[&[u8]], at: Moment, out: &mut [bool]) {
    window.contains_many(&hashes(window, keys), at, out);
}

/// Adds keys seen at `at`. Keys older than the window count as new and change nothing.
pub fn insert_many(window: &mut Window, keys: &[&[u8]], at: Moment) -> Added {
    let hashes = hashes(window, keys);
    if !window.remembers(at) {
        let (new, changed) = (vec![true; keys.len()], vec![false; keys.len()]);
        return Added { new, changed };
    }
    // Adding a key that is present would still record the time.
    let mut there = vec![false; keys.len()];
    match window.options().renewed() {
        Renewal::Within => window.contains_many(&hashes, at, &mut there),
        Renewal::Quiet => {
            // A span later, the generation of this time is the oldest that counts.
            let options = window.options();
            let later = at + generation(&options) * options.generation_count();
            if later < Moment::MAX {
                window.contains_many(&hashes, later, &mut there);
            }
        }
    }
    let missing: Vec<usize> = (0..keys.len()).filter(|i| !there[*i]).collect();
    let to_add: Vec<Hash> = missing.iter().map(|i| hashes[*i]).collect();
    let mut answers = vec![false; to_add.len()];
    if !to_add.is_empty() {
        window.insert_many_mut(&to_add, at, &mut answers);
    }
    let mut new = vec![false; keys.len()];
    for (i, answer) in missing.iter().zip(&answers) {
        new[*i] = *answer;
    }
    let changed = match window.options().renewed() {
        Renewal::Within => new.clone(),
        Renewal::Quiet => there.iter().map(|there| !there).collect(),
    };
    Added { new, changed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn window(renewal: Renewal) -> Window {
        let options = WindowOptions::new(Span::Time(Duration::from_secs(80)));
        let options = options.renewal(renewal);
        Window::with_options(&options, 2_000, 0.001, tamis::Hasher::default()).unwrap()
    }

    fn seconds(s: i64) -> Moment {
        Moment::from_secs(1_700_000_000 + s)
    }

    /// Numbers that look random.
    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state >> 33
    }

    #[test]
    fn what_is_replicated_is_all_that_changes() {
        for renewal in [Renewal::Within, Renewal::Quiet] {
            let (mut ours, mut replica) = (window(renewal), window(renewal));
            let (mut state, mut clock, mut renewed) = (7, 0, 0);
            let mut told: HashMap<Vec<u8>, i64> = HashMap::new();
            for _ in 0..3_000 {
                clock += (random(&mut state) % 3) as i64;
                let at = clock - (random(&mut state) % 8) as i64;
                let names: Vec<String> = (0..random(&mut state) % 5 + 1)
                    .map(|_| format!("key{}", random(&mut state) % 400))
                    .collect();
                let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
                let added = insert_many(&mut ours, &keys, seconds(at));
                let sent: Vec<&[u8]> = (keys.iter().zip(&added.changed))
                    .filter_map(|(key, changed)| changed.then_some(*key))
                    .collect();
                if !sent.is_empty() {
                    insert_many(&mut replica, &sent, seconds(at));
                }
                assert_eq!(ours.to_bytes(), replica.to_bytes());
                for ((key, new), changed) in keys.iter().zip(&added.new).zip(&added.changed) {
                    let seen = told.get(*key).copied();
                    if *new {
                        assert!(
                            seen.is_none_or(|seen| at - seen > 80),
                            "missed {seen:?} at {at}"
                        );
                    }
                    renewed += usize::from(!new && *changed);
                    if *new || renewal == Renewal::Quiet {
                        let latest = seen.map_or(at, |seen| seen.max(at));
                        told.insert(key.to_vec(), latest);
                    }
                }
            }
            assert_eq!(renewed > 0, renewal == Renewal::Quiet);
        }
    }

    #[test]
    fn what_is_too_old_is_new_and_changes_nothing() {
        let mut window = window(Renewal::Within);
        insert_many(&mut window, &[b"a"], seconds(1_000));
        let before = window.to_bytes();
        let added = insert_many(&mut window, &[b"a", b"b"], seconds(800));
        assert_eq!((added.new, added.changed), (vec![true; 2], vec![false; 2]));
        assert_eq!(window.to_bytes(), before);
    }

    #[test]
    fn a_clock_behind_stands_still() {
        let mut window = window(Renewal::Within);
        assert_eq!(moment(&window, seconds(5)), seconds(5));
        insert_many(&mut window, &[b"a"], seconds(1_000));
        assert_eq!(moment(&window, seconds(995)), seconds(995));
        assert_eq!(moment(&window, seconds(900)), seconds(1_000));
        assert_eq!(behind(&window, seconds(900)), Duration::from_secs(100));
        assert_eq!(behind(&window, seconds(1_100)), Duration::ZERO);
    }

    #[test]
    fn the_furthest_moments_are_renewed() {
        let options = WindowOptions::new(Span::Time(Duration::from_secs(8_000 * 365 * 86_400)));
        let options = options.renewal(Renewal::Quiet);
        let mut window =
            Window::with_options(&options, 100, 0.01, tamis::Hasher::default()).unwrap();
        let year = 365 * 86_400;
        insert_many(&mut window, &[b"a"], Moment::from_secs(0));
        let added = insert_many(&mut window, &[b"a"], Moment::from_secs(3_000 * year));
        assert_eq!((added.new, added.changed), (vec![false], vec![true]));
        let mut found = [false];
        contains_many(
            &window,
            &[b"a"],
            Moment::from_secs(9_990 * year),
            &mut found,
        );
        assert!(found[0]);
    }

    #[test]
    fn keys_are_counted_by_generation() {
        let mut window = window(Renewal::Within);
        assert!(window.generations().is_empty());
        insert_many(&mut window, &[b"a"], seconds(0));
        insert_many(&mut window, &[b"b", b"c"], seconds(30));
        insert_many(&mut window, &[b"d"], seconds(80));
        let each: Vec<u64> = window.generations().iter().map(|g| g.keys).collect();
        assert_eq!(each, [1, 2, 1]);
    }
}
