//! Windows: compared with an exact oracle with times, with many concurrent
//! workers, and when servers forget data, wrongly or rightly.

mod clocks;
mod servers;

use crate::common::Server;
use crate::*;
use std::collections::HashMap;
use tamis::{Hash, Moment, window::Renewal};

const HOUR: Duration = Duration::from_secs(3_600);
/// A generation of a window of an hour.
const STEP: Duration = Duration::from_secs(450);

fn window_plan(span: Duration, keys: u64, rate: f64, renewal: Renewal) -> Plan {
    let options = WindowOptions::new(Span::Time(span)).renewal(renewal);
    Plan::window(&options, keys, rate).unwrap()
}

fn hourly(keys: u64, rate: f64) -> Plan {
    window_plan(HOUR, keys, rate, Renewal::Within)
}

fn create(place: &Location, plan: &Plan) -> RedisFilter {
    RedisFilter::create(place, plan, Hasher::seeded(7), &options()).unwrap()
}

/// The start of a generation, years ago.
fn start() -> Moment {
    Moment::from_secs(450 * 3_000_000)
}

fn insert_at(filter: &mut RedisFilter, keys: &[String], at: Moment) -> Vec<bool> {
    let mut new = vec![false; keys.len()];
    filter.insert_many_at(keys, at, &mut new).unwrap();
    new
}

fn contains_at(filter: &mut RedisFilter, keys: &[String], at: Moment) -> Vec<bool> {
    let mut found = vec![false; keys.len()];
    filter.contains_many_at(keys, at, &mut found).unwrap();
    found
}

fn random(seed: u64, i: u64) -> u64 {
    Hash::from_u128(u128::from(seed) << 64 | u128::from(i)).as_u128() as u64
}

/// The strings of a window on a server.
fn strings(server: &Server, name: &str) -> Vec<String> {
    let listed = server.cli(&["KEYS", &format!("{name}:{{*.*}}*")]);
    let keys = listed.lines().filter(|key| !key.is_empty());
    let mut keys: Vec<String> = (keys.filter(|key| !key.contains("witness")))
        .map(String::from)
        .collect();
    keys.sort();
    keys
}

/// Compares random, bursty and late events with a table of exact times; reopens
/// the filter in between.
fn oracle(place: &Location, renewal: Renewal, seed: u64) {
    const EVENTS: u64 = 30_000;
    const BATCH: u64 = 500;
    // So low that no key looks old by chance.
    let mut filter = create(place, &window_plan(HOUR, 20_000, 1e-7, renewal));
    let (window, band) = (HOUR.as_micros() as i64, STEP.as_micros() as i64);
    let mut told: HashMap<u64, i64> = HashMap::new();
    let mut now = start().micros();
    let (mut old, mut again, mut band_keys) = (0, 0, 0);
    for batch in 0..EVENTS / BATCH {
        let mut keys = Vec::new();
        let mut times = Vec::new();
        for i in batch * BATCH..(batch + 1) * BATCH {
            now += match random(seed, i) % 1_000 {
                0 => window / 2,                               // a pause
                1..500 => 0,                                   // a burst
                _ => (random(seed + 1, i) % 1_000_000) as i64, // up to a second
            };
            // Some are late, by less than the window.
            let late = if random(seed + 2, i).is_multiple_of(10) {
                random(seed + 3, i) as i64 % band
            } else {
                0
            };
            keys.push(random(seed + 4, i) % 4_000);
            times.push(now - late.abs());
        }
        if batch % 20 == 7 {
            filter = RedisFilter::open(place, &options()).unwrap();
        }
        let names: Vec<String> = keys.iter().map(|key| format!("key {key}")).collect();
        let moments: Vec<Moment> = times.iter().map(|t| Moment::from_micros(*t)).collect();
        let mut new = vec![false; names.len()];
        filter
            .insert_many_at(&names, &moments[..], &mut new)
            .unwrap();
        for ((key, at), new) in keys.iter().zip(&times).zip(&new) {
            match told.get(key) {
                None => assert!(*new, "key {key} was never seen"),
                Some(then) if at - then <= window => {
                    assert!(!*new, "a false no: key {key}, {} µs later", at - then);
                    old += 1;
                }
                Some(then) if at - then > window + band => {
                    assert!(*new, "key {key} is remembered after {} µs", at - then);
                    again += 1;
                }
                Some(_) => band_keys += 1,
            }
            let seen = told.get(key).copied().unwrap_or(i64::MIN);
            if *new || renewal == Renewal::Quiet {
                told.insert(*key, seen.max(*at));
            }
        }
    }
    assert!(
        old > 3_000 && again > 3_000 && band_keys > 300,
        "{old} {again} {band_keys}"
    );
    assert_eq!(filter.stats().too_old_keys, 0);
    filter.delete().unwrap();
}

#[test]
fn the_events_that_every_host_knows() {
    for (meaning, renewal) in [("within", Renewal::Within), ("quiet", Renewal::Quiet)] {
        let place = at(server(), &format!("events-{meaning}"));
        let mut filter = create(&place, &window_plan(HOUR, 1_000, 1e-9, renewal));
        windows::replay(meaning, |event| match event.is_asked {
            true => filter.contains_at(&event.key, event.at).unwrap(),
            false => filter.insert_at(&event.key, event.at).unwrap(),
        });
        filter.delete().unwrap();
    }
}

#[test]
fn an_oracle_on_one_node() {
    std::thread::scope(|scope| {
        for (i, renewal) in [Renewal::Within, Renewal::Quiet].into_iter().enumerate() {
            let place = at(server(), &format!("oracle-{i}"));
            scope.spawn(move || oracle(&place, renewal, 100 * i as u64));
        }
    });
}

#[test]
fn an_oracle_in_a_cluster() {
    let place = location(&cluster().location("oracle"));
    oracle(&place, Renewal::Within, 7);
}

/// With all generations full, the rate is the promised one.
fn rate_when_full(place: &Location) {
    const KEYS: u64 = 16_000;
    const RATE: f64 = 0.05;
    const ASKED: u64 = 100_000;
    let mut filter = create(place, &hourly(KEYS, RATE));
    let mut at = start();
    for generation in 0..9 {
        let first = generation * KEYS / 8;
        insert_at(&mut filter, &keys(first..first + KEYS / 8), at);
        at = at + STEP;
    }
    let last = at - STEP;
    let foreign = keys(1_000_000..1_000_000 + ASKED);
    let found = count(&contains_at(&mut filter, &foreign, last));
    let rate = found as f64 / ASKED as f64;
    assert!(rate < 1.05 * RATE && rate > 0.7 * RATE, "{rate}");
    let now = filter.rate_now().unwrap();
    assert!((now - rate).abs() < 0.1 * RATE, "{now} for {rate}");
    // All its keys, except those that looked old by chance.
    let counted = filter.keys().unwrap().get() as f64;
    assert!(
        (counted / (KEYS as f64 * 9.0 / 8.0) - 1.0).abs() < 0.03,
        "{counted}"
    );
    let generations = filter.generations().unwrap();
    assert_eq!(generations.len(), 9);
    assert_eq!(generations[0].start, last.micros());
    assert_eq!(filter.warnings(), []);
    filter.delete().unwrap();
}

#[test]
fn the_rate_when_full() {
    rate_when_full(&at(server(), "window-rate"));
    rate_when_full(&location(&cluster().location("window-rate")));
}

/// Workers whose clocks differ: some are in one generation, some in the next.
/// Exactly one gets "new".
fn new_to_one(place: &Location, plan: &Plan) {
    const WORKERS: u64 = 8;
    const KEYS: u64 = 4_000;
    let filter = create(place, plan);
    let all = keys(0..KEYS);
    let boundary = start() + STEP;
    let told: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let all = &all;
                scope.spawn(move || {
                    let mut filter = RedisFilter::open(place, &options()).unwrap();
                    let mut order: Vec<usize> = (0..all.len()).collect();
                    order.sort_by_key(|i| random(worker, *i as u64));
                    let mut told = vec![false; all.len()];
                    for (n, batch) in order.chunks(100 + 30 * worker as usize).enumerate() {
                        // Before and after the boundary, repeatedly.
                        let ahead = (worker + n as u64).is_multiple_of(2);
                        let second = Duration::from_secs(1);
                        let at = if ahead {
                            boundary + second
                        } else {
                            boundary - second
                        };
                        let keys: Vec<&str> = batch.iter().map(|i| all[*i].as_str()).collect();
                        let mut new = vec![false; keys.len()];
                        filter.insert_many_at(&keys, at, &mut new).unwrap();
                        for (i, new) in batch.iter().zip(new) {
                            told[*i] = new;
                        }
                    }
                    told
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    for i in 0..all.len() {
        let times = told.iter().filter(|told| told[i]).count();
        assert_eq!(times, 1, "{} was new to {times}", all[i]);
    }
    filter.delete().unwrap();
}

#[test]
fn new_to_one_worker() {
    for renewal in [Renewal::Within, Renewal::Quiet] {
        let plan = window_plan(HOUR, 10_000, 1e-7, renewal);
        new_to_one(&at(server(), "window-once"), &plan);
    }
}

#[test]
fn new_to_one_worker_in_a_cluster() {
    // Several chunks, on all masters.
    let plan = hourly(5_000_000, 1e-6);
    let place = location(&cluster().location("window-once"));
    new_to_one(&place, &plan);
    let mut filter = create(&place, &plan);
    assert_eq!(filter.shares().unwrap().len(), 3);
    filter.delete().unwrap();
}

/// Workers add more keys than a window was made for: it grows, and still each
/// key is new to one of them, and found by all.
#[test]
fn new_to_one_worker_when_it_grows() {
    let place = at(server(), "window-grows");
    new_to_one(&place, &hourly(200, 1e-7));
    new_to_one(&place, &window_plan(HOUR, 200, 1e-7, Renewal::Quiet));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_to_one_task() {
    use tamis_redis::aio;
    let place = at(server(), "window-tasks");
    let plan = hourly(10_000, 1e-7);
    let options = options();
    let filter = aio::RedisFilter::create(&place, &plan, Hasher::default(), &options);
    let mut filter = filter.await.unwrap();
    let all = keys(0..2_000);
    let mut tasks = Vec::new();
    for task in 0..6u32 {
        let (mut filter, all) = (filter.clone(), all.clone());
        tasks.push(tokio::spawn(async move {
            let mut new = vec![false; all.len()];
            let at = start() + STEP / 2 * task;
            filter.insert_many_at(&all, at, &mut new).await.unwrap();
            new
        }));
    }
    let mut times = vec![0; all.len()];
    for task in tasks {
        for (times, new) in times.iter_mut().zip(task.await.unwrap()) {
            *times += u32::from(new);
        }
    }
    assert!(times.iter().all(|times| *times == 1));
    let mut found = vec![false; all.len()];
    filter
        .contains_many_at(&all, start() + HOUR, &mut found)
        .await
        .unwrap();
    assert!(super::all(&found));
    filter.delete().await.unwrap();
}

/// A new key stays for the window, and is forgotten a generation later, to the
/// microsecond.
#[test]
fn to_the_microsecond() {
    let place = at(server(), "window-exact");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let micro = Duration::from_micros(1);
    let (first, last) = (start(), start() + STEP - micro);
    assert!(filter.insert_at("first", first).unwrap());
    assert!(filter.insert_at("last", last).unwrap());
    assert!(filter.contains_at("last", last + HOUR).unwrap());
    assert!(filter.contains_at("first", first + HOUR).unwrap());
    assert!(
        filter.contains_at("first", last + HOUR).unwrap(),
        "the band"
    );
    assert!(!filter.contains_at("first", first + HOUR + STEP).unwrap());
    assert!(!filter.contains_at("last", last + HOUR + micro).unwrap());
    // A key that arrives a generation late gets the answer that it would have
    // got in time.
    assert!(filter.insert_at("newest", first + HOUR + STEP).unwrap());
    assert!(filter.contains_at("first", last + HOUR).unwrap());
    assert!(!filter.insert_at("first", first + HOUR).unwrap());
    // After a pause of years, everything is forgotten.
    let later = start() + 10_000 * HOUR;
    assert!(filter.insert_at("first", later).unwrap());
    assert_eq!(filter.stats().too_old_keys, 0);
    // Keys older than the window are reported as new each time, and counted.
    for counted in 1..3 {
        assert!(filter.insert_at("last", last).unwrap());
        assert_eq!(filter.stats().too_old_keys, counted);
    }
    filter.delete().unwrap();
}

/// `Within` doesn't renew, `Quiet` does.
#[test]
fn the_two_meanings() {
    for (renewal, seen) in [(Renewal::Within, false), (Renewal::Quiet, true)] {
        let place = at(server(), "window-meanings");
        let mut filter = create(&place, &window_plan(HOUR, 1_000, 1e-6, renewal));
        assert!(filter.insert_at("key", start()).unwrap());
        assert!(!filter.insert_at("key", start() + HOUR).unwrap());
        assert_eq!(
            filter.contains_at("key", start() + HOUR + HOUR).unwrap(),
            seen
        );
        filter.delete().unwrap();
    }
}

/// However keys arrive, losses and false positives stay within the promise: all
/// at once, half of them in one generation, and eight times as many as planned.
#[test]
fn any_arrival_keeps_the_rate() {
    const KEYS: u64 = 2_000;
    const ASKED: u64 = 40_000;
    let place = at(server(), "window-burst");
    let peak = |i: u64| if i.is_multiple_of(2) { 5 } else { i * 8 / KEYS };
    let even = |i: u64| i * 8 / KEYS;
    type Arrival<'a> = (&'a str, u64, &'a dyn Fn(u64) -> u64);
    let arrivals: [Arrival<'_>; 4] = [
        ("at once", KEYS, &|_| 3),
        ("in a peak", KEYS, &peak),
        ("eight times as many", 8 * KEYS, &|i| even(i / 8)),
        ("eight times as many at once", 8 * KEYS, &|_| 3),
    ];
    for rate in [0.01] {
        for (name, number, generation) in arrivals {
            let mut filter = create(&place, &hourly(KEYS, rate));
            let mut all: Vec<u64> = (0..number).collect();
            all.sort_by_key(|i| generation(*i));
            let times: Vec<Moment> = (all.iter())
                .map(|i| start() + STEP * generation(*i) as u32)
                .collect();
            let names = keys(all.into_iter());
            let mut new = vec![false; names.len()];
            filter.insert_many_at(&names, &times[..], &mut new).unwrap();
            let lost = names.len() - count(&new);
            let most = rate * number as f64;
            assert!(
                lost as f64 <= most + 5.0 * most.sqrt(),
                "{name}: {lost} lost"
            );
            let now = start() + STEP * 7;
            assert!(super::all(&contains_at(&mut filter, &names, now)), "{name}");
            let foreign = keys(1_000_000..1_000_000 + ASKED);
            let found = count(&contains_at(&mut filter, &foreign, now));
            let measured = found as f64 / ASKED as f64;
            assert!(measured <= 1.05 * rate, "{name}: {measured}");
            let expected = filter.rate_now().unwrap();
            assert!(
                (measured - expected).abs() < 0.2 * rate,
                "{name}: {measured}, {expected}"
            );
            // Strings created for a peak are dropped.
            for later in 0..12 {
                insert_at(
                    &mut filter,
                    &keys(later..later + 1),
                    now + STEP * (later as u32 + 9),
                );
            }
            assert!(strings(server(), "window-burst").len() <= 2, "{name}");
            filter.delete().unwrap();
        }
    }
}
