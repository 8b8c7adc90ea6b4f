//! The arrival pattern of keys must not matter: bursts, peaks, pauses, and more than planned.

use super::cells::{Alone, Read};
use super::head::has_full_bins;
use super::shape::{Entry, Renewal, Span, WindowOptions, WindowShape};
use super::table::{Clock, Told};
use crate::hash::Hash;
use crate::moment::Moment;
use crate::plan::Plan;
use crate::raw::isa::Isa;
use crate::raw::usual_or;
use crate::{Hasher, Window};
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const STEP: i64 = 1_000;
const SPAN: i64 = 8 * STEP;

fn window(keys: u64, rate: f64) -> Window {
    Window::within(Duration::from_micros(SPAN as u64), keys, rate).unwrap()
}

fn at(micros: i64) -> Moment {
    Moment::from_micros(micros)
}

/// Adds keys `first..`, each at its moment; returns how many were new.
fn add(window: &mut Window, first: u64, moments: &[Moment]) -> u64 {
    let hashes: Vec<Hash> = (first..first + moments.len() as u64)
        .map(Hash::from)
        .collect();
    let mut new = vec![false; hashes.len()];
    window.insert_many_mut(&hashes, moments, &mut new);
    new.iter().filter(|new| **new).count() as u64
}

/// The arrival times of `n` keys in one span.
fn arrivals(name: &str, n: i64) -> Vec<i64> {
    match name {
        "at once" => vec![0; n as usize],
        "in one generation" => (0..n).map(|i| i * STEP / n).collect(),
        "half in an eighth" => (0..n)
            .map(|i| {
                if i % 2 == 0 {
                    i * SPAN / n
                } else {
                    4 * STEP + i * STEP / n
                }
            })
            .collect(),
        "sawtooth" => (0..n).map(|i| i * 64 / n * (SPAN / 64)).collect(),
        "evenly" => (0..n).map(|i| i * SPAN / n).collect(),
        other => panic!("{other}"),
    }
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn however_keys_come_the_rate_is_kept_and_nothing_is_forgotten() {
    let n = 50_000;
    for (rate, asked) in [(0.01, 200_000), (1e-3, 1_000_000), (1e-4, 5_000_000)] {
        for name in [
            "at once",
            "in one generation",
            "half in an eighth",
            "sawtooth",
            "evenly",
        ] {
            for times in [1, 8] {
                let mut seen = window(n, rate);
                let (mut lost, mut next) = (0.0, 0);
                for span in 0..3 {
                    let mut moments: Vec<Moment> = arrivals(name, (n * times) as i64)
                        .into_iter()
                        .map(|micros| at(span * (SPAN + STEP) + micros))
                        .collect();
                    moments.sort();
                    let new = add(&mut seen, next, &moments);
                    lost += (moments.len() as u64 - new) as f64;
                    next += moments.len() as u64;
                }
                let shown = format!("{name}, {times} times at {rate}");
                let all = 3.0 * (n * times) as f64;
                let allowed = 1.05 * rate * all;
                assert!(
                    lost <= allowed + 4.0 * allowed.sqrt(),
                    "{shown}: {lost} lost"
                );
                let latest = seen.latest().unwrap();
                let mut found = vec![false; asked];
                let strangers: Vec<Hash> = (1 << 40..).map(Hash::from).take(asked).collect();
                seen.contains_many(&strangers, latest, &mut found);
                let wrong = found.iter().filter(|found| **found).count() as f64 / asked as f64;
                assert!(wrong <= 1.05 * rate, "{shown}: {wrong}");
                assert!(
                    (seen.rate_now() - wrong).abs() < 0.1 * rate,
                    "{shown}: {wrong}"
                );
                // All keys of the last span that were new are there.
                let last: Vec<Hash> = (next - n * times..next).map(Hash::from).collect();
                let mut found = vec![false; last.len()];
                seen.contains_many(&last, latest, &mut found);
                let denied = found.iter().filter(|found| !**found).count() as f64;
                assert!(denied <= lost, "{shown}: {denied} denied");
                let is_planned = name == "evenly" && times == 1;
                assert!(!is_planned || seen.shape().table_count() == 1, "{shown}");
            }
        }
    }
}

/// A job that runs occasionally: stamps wrap around, but old keys don't return.
#[test]
#[cfg_attr(miri, ignore = "a flood of keys")]
fn nothing_comes_back_after_any_pause() {
    let pauses = if cfg!(debug_assertions) {
        1 << 14
    } else {
        1 << 20
    };
    let mut seen = window(2_000, 1e-6);
    let (mut now, mut back) = (0, 0u64);
    for run in 0..pauses {
        let keys: Vec<Hash> = (0..4).map(|i| Hash::from(run * 4 + i)).collect();
        let mut new = [false; 4];
        seen.insert_many_mut(&keys, at(now), &mut new);
        let pause = 1 + (run as i64 * 7) % 40;
        let (last, then) = (now, now + SPAN);
        now += pause * STEP;
        for (key, new) in keys.iter().zip(new) {
            assert!(!new || seen.contains(*key, at(then.min(now - 1))));
            back += u64::from(now - last > SPAN + STEP && seen.contains(*key, at(now)));
        }
    }
    assert!(back <= 1 + pauses / 100_000, "{back} keys came back");
}

/// The same few keys, once in several generations: every one is new each time.
#[test]
#[cfg_attr(miri, ignore = "a flood of keys")]
fn a_job_that_runs_every_few_generations_sees_its_keys_anew() {
    for every in 10..60 {
        let mut seen = window(4_000, 1e-6);
        for run in 0..40 {
            let moments = vec![at(run * every * STEP); 200];
            assert_eq!(add(&mut seen, 0, &moments), 200, "every {every}, run {run}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn sizes_are_those_that_were_promised() {
    for (rate, most) in [(0.01, 22.0), (1e-3, 28.0), (1e-4, 34.0)] {
        let day = WindowOptions::new(Span::Time(Duration::from_secs(86_400)));
        let plan = Plan::window(&day, 1_000_000, rate).unwrap();
        println!("{rate}: {:.2} bits, {:e}", plan.bits_per_key(), plan.rate());
        assert!(
            plan.bits_per_key() <= most,
            "{rate}: {}",
            plan.bits_per_key()
        );
    }
}

/// Small windows hold the planned keys without another table.
#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn planned_keys_fit() {
    let sizes = [1, 2, 3, 5, 10, 33, 100, 333, 1_000, 10_000, 100_000];
    for rate in [0.2, 0.01, 1e-3, 1e-4, 1e-6, 1e-9] {
        for keys in sizes {
            for seed in 0..(20_000 / keys).clamp(2, 50) {
                let options = WindowOptions::new(Span::Time(Duration::from_micros(SPAN as u64)));
                let hasher = Hasher::seeded(seed);
                let mut seen = Window::with_options(&options, keys, rate, hasher).unwrap();
                let first = seed * 10 * keys;
                let n = 3 * keys as i64;
                let moments: Vec<Moment> = (0..n).map(|i| at(i * SPAN / keys as i64)).collect();
                add(&mut seen, first, &moments);
                let tables = seen.shape().table_count();
                assert_eq!(tables, 1, "{keys} keys at {rate}, seed {seed}");
            }
        }
    }
}

/// Bins that overflow during concurrent adding say "maybe" to all, and the rate includes that.
#[test]
fn full_next_to_others_is_never_a_false_no() {
    let seen = window(usual_or(200, 20), 0.01);
    let keys = usual_or(4_000, 80);
    for i in 0..keys {
        seen.insert(Hash::from(i), at(i as i64));
        assert!(seen.contains(Hash::from(i), at(i as i64)), "{i}");
    }
    let now = at(4_000);
    assert!((0..keys).all(|i| seen.contains(Hash::from(i), now)));
    let asked = usual_or(100_000u64, 20);
    let strangers = (1 << 40..).take(asked as usize).map(Hash::from);
    let wrong = strangers.filter(|hash| seen.contains(*hash, now)).count() as f64;
    let measured = wrong / asked as f64;
    assert!(
        cfg!(miri) || (seen.rate_now() - measured).abs() < 0.02,
        "{measured}, {}",
        seen.rate_now()
    );
    // It recovers once these keys are forgotten.
    let later = at(4_000 + 2 * SPAN);
    assert!(!(0..keys).any(|i| seen.contains(Hash::from(i), later)));
}

/// A stream of recurring keys, four times as many as there is room for. Neither look-ups nor additions forget a key
/// early because its bin became full.
#[test]
#[cfg_attr(miri, ignore = "a flood of keys")]
fn a_bin_that_becomes_full_forgets_no_key_early() {
    for renewal in [Renewal::Within, Renewal::Quiet] {
        let options = WindowOptions::new(Span::Time(Duration::from_micros(SPAN as u64)));
        let options = options.renewal(renewal);
        let seen = Window::with_options(&options, 200, 1e-6, Hasher::default()).unwrap();
        // When keys were last new, or seen.
        let mut known = vec![None; 1_200];
        let mut random = 1u64;
        for micros in 0..8 * SPAN {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            // Every other generation is quiet, so some bins have room again.
            if micros / STEP % 4 > 1 && random >> 61 > 0 {
                continue;
            }
            let key = (random >> 33) as usize % known.len();
            let hash = Hash::from(key as u64);
            let is_in = known[key].is_some_and(|then| micros - then <= SPAN);
            assert!(
                !is_in || seen.contains(hash, at(micros)),
                "{renewal:?}: {key} denied"
            );
            let is_new = seen.insert(hash, at(micros));
            assert!(!is_in || !is_new, "{renewal:?}: {key} told new again");
            assert!(seen.contains(hash, at(micros)));
            if is_new || renewal == Renewal::Quiet {
                known[key] = Some(micros);
            }
        }
        assert!(has_full_bins(&Read(seen.words())), "{renewal:?}");
    }
}

/// The same for keys of another window, added to a bin that stands for all.
#[test]
#[cfg_attr(miri, ignore = "a flood of keys")]
fn a_bin_that_stands_for_all_takes_newer_keys_of_another_window() {
    let is_full = |seen: &Window| has_full_bins(&Read(seen.words()));
    let others = (1 << 40..).map(Hash::from);
    let fill = |keys: usize| {
        let seen = window(200, 0.01);
        for hash in others.clone().take(keys) {
            seen.insert(hash, at(0));
        }
        seen
    };
    let most = (0..).take_while(|keys| !is_full(&fill(*keys))).count() - 1;
    // Some bins stand for all keys until four generations later, and most of the others are forgotten soon
    // after.
    let mut seen = fill(most);
    for hash in others.clone().skip(most).take(100) {
        seen.insert(hash, at(4 * STEP));
    }
    assert!(is_full(&seen));
    let later = window(200, 0.01);
    let keys: Vec<Hash> = (0..100).map(Hash::from).collect();
    for key in &keys {
        later.insert(*key, at(10 * STEP));
    }
    seen.union_with(&later).unwrap();
    let end = at(10 * STEP + SPAN);
    assert!(keys.iter().all(|key| seen.contains(*key, end)));
}

/// A window's first keys don't wait for memory. Only this system reports which pages it has allocated.
#[test]
#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    feature = "files",
    not(feature = "plain-heap")
))]
#[cfg_attr(miri, ignore = "the system's memory")]
fn a_window_has_its_memory_from_the_start() {
    let day = WindowOptions::new(Span::Time(Duration::from_secs(86_400)));
    let plan = Plan::window(&day, 5_000_000, 0.01).unwrap();
    let seen = Window::from_plan(&plan, Hasher::default()).unwrap();
    let first = seen.words().as_ptr().cast_mut().cast();
    let mut pages = vec![0u8; (plan.bytes() / 4096) as usize];
    // SAFETY: the window's mapping begins at a page and has these pages; there is a byte for each.
    let answer = unsafe { libc::mincore(first, pages.len() * 4096, pages.as_mut_ptr()) };
    assert_eq!(answer, 0);
    let there = pages.iter().filter(|page| **page & 1 == 1).count();
    assert_eq!(there, pages.len());
}

/// Slots that stand for all keys aren't counted, but look-ups still read their table.
#[test]
fn a_window_that_was_full_and_grows_then_is_never_a_false_no() {
    let mut seen = window(200, 0.01);
    let late = at(SPAN / 8 * 7);
    let is_full = |seen: &Window| has_full_bins(&Read(seen.words()));
    let mut others = (1 << 40..).map(Hash::from);
    while !is_full(&seen) {
        seen.insert(others.next().unwrap(), at(0));
    }
    // A key without a slot.
    let has_none = |key: &Hash| {
        let copy = Window::from_bytes(&seen.to_bytes()).unwrap();
        copy.insert(*key, late) && copy.added() == seen.added()
    };
    let key = (0..1_000u64).map(Hash::from).find(has_none).unwrap();
    assert!(seen.insert(key, late));
    while seen.shape().table_count() == 1 {
        seen.insert_mut(others.next().unwrap(), at(0));
    }
    for later in [late, at(SPAN + SPAN / 4)] {
        let mut found = [false];
        seen.contains_many(&[key], later, &mut found);
        assert!(found[0] && seen.contains(key, later));
    }
}

#[test]
fn an_entry_is_found_from_both_of_its_bins() {
    let options = WindowOptions::new(Span::Keys(100)).renewal(Renewal::Quiet);
    let shape = WindowShape::new(&options, 1_000, 4, 16).unwrap();
    let table = shape.newest_table();
    for i in 0..usual_or(1_000, 50) {
        let entry = table.entry(Hash::from(i));
        let second = table.second(entry);
        assert!(second != entry.home && second < 1_000);
        assert_eq!(table.home_of(second, entry.print), entry.home);
    }
}

/// Entries that move are found at their new place, as long as any remain.
#[test]
#[cfg_attr(miri, ignore = "a flood of questions")]
fn a_full_table_has_every_key_that_it_took() {
    let options = WindowOptions::new(Span::Keys(100));
    for (bin_words, width) in [(4, 16), (2, 21), (8, 21), (4, 32), (8, 64)] {
        let shape = WindowShape::new(&options, 50, bin_words, width).unwrap();
        let table = shape.newest_table();
        let mut words = vec![0; shape.body_len() as usize / 8];
        let clock = Clock::new(&shape, 5, 5, false);
        let isa = Isa::best();
        let mut taken: Vec<Entry> = Vec::new();
        for i in 0u64.. {
            let entry = table.entry(Hash::from(i));
            match table.insert(isa, &mut Alone(&mut words), &table.spot(entry), &clock) {
                Told::New(_) => taken.push(entry),
                Told::Full => break,
                _ => {}
            }
            let cells = Alone(&mut words);
            let asked = super::table::Asked {
                oldest: 5,
                full_bins: false,
            };
            assert!(taken.iter().all(|entry| table.contains(
                isa,
                &cells,
                &table.spot(*entry),
                &asked
            )));
        }
        let slots = 50 * u64::from(table.slots_of_bin());
        assert!(
            taken.len() as u64 >= table.room(),
            "{width}: {} of {slots}",
            taken.len()
        );
    }
}

/// Keys with few homes and fingerprints, so that bins fill up and keys recur.
fn keys() -> impl Strategy<Value = Vec<(Hash, Moment)>> {
    let half = || prop_oneof![1 => any::<u64>(), 3 => (0u64..9).prop_map(|n| n << 60)];
    let key = (half(), half(), 0..3 * SPAN).prop_map(|(hi, lo, now)| (Hash { hi, lo }, at(now)));
    prop::collection::vec(key, 0..usual_or(400, 20)).prop_map(|mut keys| {
        // Most streams are in order, except for slightly late keys.
        keys.sort_by_key(|(hash, at)| at.micros() - (hash.lo as i64 & 0xFFF));
        keys
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: usual_or(300, 2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Bits and answers don't depend on the instructions, on batching, or on concurrency. Exclusive
    /// writers fill bins more evenly, which only changes the places of keys.
    #[test]
    fn every_path_equals_scalar(
        bins in 2u64..40,
        (bin_words, width) in prop::sample::select(&[(4, 16), (8, 16), (2, 21), (8, 21), (4, 32), (8, 64)][..]),
        generations in 1u32..20,
        quiet: bool,
        by_keys: bool,
        added in keys(),
        asked in keys(),
    ) {
        let span = if by_keys { Span::Keys(100) } else { Span::Time(Duration::from_micros(SPAN as u64 * 4)) };
        let renewal = if quiet { Renewal::Quiet } else { Renewal::Within };
        let options = WindowOptions::new(span).generations(generations).renewal(renewal);
        let shape = WindowShape::new(&options, bins, bin_words, width);
        prop_assume!(shape.is_ok());
        let shape = shape.unwrap();
        let len = shape.body_len() as usize / 8;
        let (hashes, times): (Vec<Hash>, Vec<Moment>) = added.iter().copied().unzip();
        let (of_asked, at_asked): (Vec<Hash>, Vec<Moment>) = added.iter().chain(&asked).copied().unzip();
        let mut first = None;
        for isa in Isa::available() {
            let mut shape = shape;
            shape.isa = isa;
            let (mut alone, mut new) = (vec![0; len], vec![false; hashes.len()]);
            let done = shape.insert_many(&mut alone, &hashes, &times, &mut new, u64::MAX);
            let (mut by_one, mut new_by_one) = (vec![0; len], vec![false; hashes.len()]);
            for i in 0..done {
                shape.insert_many(&mut by_one, &hashes[i..=i], &times[i..=i], &mut new_by_one[i..=i], u64::MAX);
            }
            // A key without room has moved others, but neither counts it.
            if done == hashes.len() {
                prop_assert_eq!((&alone, &new), (&by_one, &new_by_one), "{:?}", isa);
            }
            let beside: Vec<AtomicU64> = (0..len).map(|_| AtomicU64::new(0)).collect();
            let mut new_beside = vec![false; hashes.len()];
            shape.insert_many_shared(&beside, &hashes, &times, &mut new_beside);
            let mut found = vec![false; of_asked.len()];
            shape.contains_many_at(&beside, &of_asked, &at_asked, &mut found);
            let one = |(hash, at): (&Hash, &Moment)| shape.contains_at(&beside, *hash, *at);
            let by_one: Vec<bool> = of_asked.iter().zip(&at_asked).map(one).collect();
            prop_assert_eq!(&found, &by_one, "{:?}", isa);
            let beside: Vec<u64> = beside.into_iter().map(AtomicU64::into_inner).collect();
            let mut found_alone = vec![false; of_asked.len()];
            shape.contains_many_at(&alone, &of_asked, &at_asked, &mut found_alone);
            // Full bins say yes to more keys.
            if done == hashes.len() && !has_full_bins(&Read(&beside)) {
                prop_assert_eq!((&new, &found_alone), (&new_beside, &found), "{:?}", isa);
            }
            let all = (alone, new, done, beside, new_beside, found, found_alone);
            prop_assert_eq!(&all, first.get_or_insert_with(|| all.clone()), "{:?}", isa);
        }
    }
}
