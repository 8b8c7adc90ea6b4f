//! Windows: against an exact oracle with times, by many workers at once, and
//! when servers forget what they should not, or do what they should.

use crate::common::{Server, until};
use crate::*;
use std::collections::HashMap;
use tamis::{Hash, Moment, Renewal};
use tamis_redis::{Error, Warning};

const HOUR: Duration = Duration::from_secs(3_600);
/// A generation of an hour's window.
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

/// The beginning of a generation, years ago.
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

/// The strings of a window on a server: those of its generations.
fn strings(server: &Server, name: &str) -> Vec<String> {
    let listed = server.cli(&["KEYS", &format!("{name}:{{*}}:p*")]);
    let keys = listed.lines().filter(|key| !key.is_empty());
    keys.map(String::from).collect()
}

fn is_loss(error: &Error) -> bool {
    matches!(error, Error::MissingChunk { .. })
}

/// Random, bursty and late events against a table of exact times; the filter is
/// opened anew in between.
fn oracle(place: &Location, renewal: Renewal, seed: u64) {
    const EVENTS: u64 = 30_000;
    const BATCH: u64 = 500;
    // So low that no key is old by chance.
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
            // A few come late, by less than the window holds.
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

/// All generations full, and the rate is the promised one.
fn rate_when_full(place: &Location) {
    const KEYS: u64 = 16_000;
    const RATE: f64 = 0.08;
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
    // All that it holds, but for those that were old by chance.
    let counted = filter.keys().unwrap().get() as f64;
    assert!(
        (counted / (KEYS as f64 * 9.0 / 8.0) - 1.0).abs() < 0.03,
        "{counted}"
    );
    let generations = filter.generations().unwrap();
    assert_eq!(generations.len(), 9);
    assert_eq!(generations[0].start, last.micros());
    assert!(generations.iter().all(|each| each.capacity == KEYS / 8));
    assert_eq!(filter.warnings(), []);
    filter.delete().unwrap();
}

#[test]
fn the_rate_when_full() {
    rate_when_full(&at(server(), "window-rate"));
    rate_when_full(&location(&cluster().location("window-rate")));
}

/// Workers whose clocks differ: some are in one generation, some in the next.
/// Of all, one is told "new".
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
                        // Before and after the boundary, over and over.
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
    let plan = hourly(20_000_000, 1e-6);
    assert!(plan.bytes() / 9 > 3 * (4 << 20), "{}", plan.bytes());
    new_to_one(&location(&cluster().location("window-once")), &plan);
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

/// What was told new stays so for the window, and is forgotten a generation
/// after it, to the microsecond.
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
    // What comes a generation late gets the answer that it would have got in time.
    assert!(filter.insert_at("newest", first + HOUR + STEP).unwrap());
    assert!(filter.contains_at("first", last + HOUR).unwrap());
    assert!(!filter.insert_at("first", first + HOUR).unwrap());
    assert_eq!(strings(server(), "window-exact").len(), 3);
    // A pause of years: everything is forgotten, and the strings are not kept.
    let later = start() + 10_000 * HOUR;
    assert!(filter.insert_at("first", later).unwrap());
    assert_eq!(strings(server(), "window-exact").len(), 1);
    assert_eq!(filter.stats().too_old_keys, 0);
    // Older than the window is told new, each time, and counted.
    for counted in 1..3 {
        assert!(filter.insert_at("last", last).unwrap());
        assert_eq!(filter.stats().too_old_keys, counted);
    }
    filter.delete().unwrap();
}

/// Within does not renew, quiet does.
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

/// A time that the server's clock does not know yet moves nothing.
#[test]
fn the_far_future() {
    let place = at(server(), "window-future");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let now = Moment::now();
    assert!(filter.insert_at("now", now).unwrap());
    let typo = now + 100 * 366 * 24 * HOUR;
    assert!(filter.insert_at("typo", typo).unwrap());
    assert!(
        !filter.insert_at("typo", typo).unwrap(),
        "it is remembered all the same"
    );
    assert_eq!(filter.stats().future_keys, 2);
    assert!(filter.contains_at("now", now).unwrap() && filter.contains("now").unwrap());
    assert!(filter.contains("typo").unwrap());
    // Nor does it move one that is years behind, or empty.
    filter.clear().unwrap();
    assert!(!filter.contains("typo").unwrap() && strings(server(), "window-future").is_empty());
    assert!(filter.insert_at("then", start()).unwrap());
    assert!(filter.insert_at("typo", typo).unwrap());
    assert!(filter.contains_at("then", start() + HOUR).unwrap());
    filter.delete().unwrap();
}

/// Another worker's clock is ahead: ours is not believed, and nothing is lost.
#[test]
fn a_clock_that_is_behind() {
    let place = at(server(), "window-behind");
    let span = Duration::from_secs(8);
    let mut filter = create(&place, &window_plan(span, 1_000, 1e-6, Renewal::Within));
    // Less than a generation and a minute, which is many generations here.
    let ahead = Moment::now() + Duration::from_secs(50);
    assert!(filter.insert_at("other", ahead).unwrap());
    assert!(filter.insert("ours").unwrap() && !filter.insert("ours").unwrap());
    assert!(filter.contains_at("ours", ahead + span).unwrap());
    assert!(filter.contains("ours").unwrap());
    let warned = filter
        .warnings()
        .iter()
        .any(|w| matches!(w, Warning::Clock { behind, .. } if behind.as_secs() > 40));
    assert!(warned, "{:?}", filter.warnings());
    filter.delete().unwrap();
}

/// A string that a ledger lists, or a ledger, is missing: no answer, by anyone.
fn refuses(filter: &mut RedisFilter, at: Moment) {
    let keys = keys(0..100);
    for _ in 0..2 {
        let mut answers = vec![false; keys.len()];
        let error = filter
            .contains_many_at(&keys, at, &mut answers)
            .unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        let error = filter.insert_many_at(&keys, at, &mut answers).unwrap_err();
        assert!(is_loss(&error), "{error:?}");
        assert_eq!(count(&answers), 0);
        assert!(is_loss(&filter.insert_at("x", at).unwrap_err()));
        assert!(is_loss(&filter.verify().unwrap_err()));
        assert!(is_loss(&filter.keys().map(drop).unwrap_err()));
        assert!(is_loss(&filter.download().map(drop).unwrap_err()));
    }
}

#[test]
fn a_lost_string_is_noticed() {
    let place = at(server(), "window-lost");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let keys = keys(0..100);
    for generation in 0..3 {
        insert_at(&mut filter, &keys, start() + STEP * generation);
        insert_at(
            &mut filter,
            &super::keys(200 * u64::from(generation + 1)..200 * u64::from(generation + 1) + 50),
            start() + STEP * generation,
        );
    }
    let listed = strings(server(), "window-lost");
    assert_eq!(listed.len(), 3, "{listed:?}");
    filter.verify().unwrap();
    let now = start() + STEP * 2;
    // Overwritten, then gone.
    server().cli(&["SETRANGE", &listed[1], "0", "x"]);
    filter.verify().unwrap();
    server().cli(&["SET", &listed[1], "something else", "KEEPTTL"]);
    refuses(&mut filter, now);
    server().cli(&["DEL", &listed[1]]);
    refuses(&mut filter, now);
    let error = filter.contains_at("x", now).unwrap_err().to_string();
    assert!(error.contains(&listed[1]), "{error}");
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    refuses(&mut other, now);
    // Once the window has passed it, nobody needs it.
    let later = now + HOUR + HOUR;
    assert!(all(&insert_at(&mut other, &keys, later)));
    other.verify().unwrap();

    let ledger = strings(server(), "window-lost")[0]
        .rsplit_once(":p")
        .unwrap()
        .0
        .to_owned();
    server().cli(&["DEL", &ledger]);
    refuses(&mut other, later);
    assert!(is_loss(&RedisFilter::open(&place, &options()).unwrap_err()));
    RedisFilter::delete_at(&place, &options()).unwrap();
    RedisFilter::create(&place, &hourly(1_000, 0.01), Hasher::default(), &options())
        .unwrap()
        .delete()
        .unwrap();
}

/// Every string ends by itself, a window and its slack after its generation; the
/// rest stays.
#[test]
fn every_string_expires() {
    let place = at(server(), "window-ends");
    let mut filter = create(&place, &hourly(1_000, 1e-6));
    let time = || {
        server()
            .cli(&["TIME"])
            .lines()
            .next()
            .unwrap()
            .parse::<i64>()
            .unwrap()
            * 1_000
    };
    let before = time();
    let now = Moment::now();
    for generation in 0..3 {
        insert_at(
            &mut filter,
            &keys(0..10),
            now - STEP * 2 + STEP * generation,
        );
        filter
            .insert_at(
                format!("another {generation}"),
                now - STEP * 2 + STEP * generation,
            )
            .unwrap();
    }
    let listed = strings(server(), "window-ends");
    assert_eq!(listed.len(), 3);
    let lasts = |key: &String| server().cli(&["PEXPIRETIME", key]).parse::<i64>().unwrap();
    let life = 2 * HOUR.as_millis() as i64;
    let step = STEP.as_millis() as i64;
    for key in &listed {
        let ends = lasts(key);
        let most = time() + 1_000 + step + life;
        assert!(
            (before + step + life..=most).contains(&ends),
            "{ends} of {key}"
        );
    }
    for key in server().cli(&["KEYS", "*window-ends*"]).lines() {
        let is_string = listed.iter().any(|string| string == key);
        assert!(is_string || lasts(&key.to_owned()) == -1, "{key}");
    }
    // Used, they are given no other end.
    let ends: Vec<i64> = listed.iter().map(lasts).collect();
    insert_at(&mut filter, &keys(100..200), now);
    assert_eq!(listed.iter().map(lasts).collect::<Vec<_>>(), ends);

    // An end of the whole filter comes first, for what is made later, too.
    filter.expire_in(Duration::from_secs(1_000)).unwrap();
    filter.insert_at("more", now - STEP * 3).unwrap();
    let most = time() + 1_000_000 + 11_000;
    let all = strings(server(), "window-ends");
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|key| lasts(key) <= most));
    filter.persist().unwrap();
    assert_eq!(listed.iter().map(lasts).collect::<Vec<_>>(), ends);
    assert!(all.iter().all(|key| lasts(key) > most));
    filter.delete().unwrap();
    assert_eq!(server().cli(&["KEYS", "*window-ends*"]), "");
}

/// The server forgets by itself, and the window goes on.
#[test]
fn the_server_forgets() {
    let place = at(server(), "window-short");
    let span = Duration::from_secs(1);
    let mut filter = create(&place, &window_plan(span, 1_000, 1e-6, Renewal::Within));
    let begun = std::time::Instant::now();
    assert!(filter.insert("key").unwrap());
    // Asked in time, it is found; how long asking took is known only afterwards.
    let found = filter.contains("key").unwrap();
    assert!(found || begun.elapsed() > span);
    until("the string to expire", Duration::from_secs(60), || {
        strings(server(), "window-short").is_empty()
    });
    assert!(begun.elapsed() > span);
    assert!(!filter.contains("key").unwrap());
    filter.verify().unwrap();
    assert_eq!(filter.keys().unwrap().get(), 0);
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    assert!(other.insert("key").unwrap() && strings(server(), "window-short").len() == 1);
    other.delete().unwrap();
}

/// A copy has the same answers at every moment, here and there.
#[test]
fn copied_down_and_up() {
    let place = at(server(), "window-copy");
    let plan = hourly(5_000, 0.01);
    let mut filter = create(&place, &plan);
    let mut local = AnyFilter::from_plan(&plan, Hasher::seeded(7)).unwrap();
    let all = keys(0..5_000);
    let hashes: Vec<Hash> = all
        .iter()
        .map(|key| local.hasher().hash(key.as_bytes()))
        .collect();
    for (generation, some) in all.chunks(500).enumerate() {
        let at = start() + STEP * generation as u32;
        let mut new = vec![false; some.len()];
        let first = generation * 500;
        local
            .insert_hashes_at(&hashes[first..first + some.len()], at, &mut new)
            .unwrap();
        assert_eq!(insert_at(&mut filter, some, at), new, "as a local window");
    }
    let copy = filter.download().unwrap();
    assert_eq!(copy.kind(), Kind::Window);
    let again = at(server(), "window-copy-2");
    let mut uploaded = RedisFilter::upload(&again, &copy, &options()).unwrap();
    let asked: Vec<String> = all
        .iter()
        .cloned()
        .chain(keys(1_000_000..1_002_000))
        .collect();
    let hashes: Vec<Hash> = asked
        .iter()
        .map(|key| local.hasher().hash(key.as_bytes()))
        .collect();
    for generation in (0..20).step_by(3) {
        let at = start() + STEP * generation;
        let mut expected = vec![false; asked.len()];
        local.contains_hashes_at(&hashes, at, &mut expected);
        let mut got = vec![false; asked.len()];
        copy.contains_hashes_at(&hashes, at, &mut got);
        assert!(got == expected, "the file, {generation}");
        // Redis keeps one generation more for clocks that are behind; as of now there is none.
        if generation >= 9 {
            assert!(
                contains_at(&mut filter, &asked, at) == expected,
                "{generation}"
            );
        }
        assert!(
            contains_at(&mut uploaded, &asked, at) == expected,
            "the copy, {generation}"
        );
    }
    assert!(
        strings(server(), "window-copy-2")
            .iter()
            .all(|key| server().cli(&["PTTL", key]) != "-1")
    );
    // It goes on as the local one does.
    let later = start() + STEP * 11;
    let mut new = vec![false; 100];
    local
        .insert_hashes_at(&hashes[..100], later, &mut new)
        .unwrap();
    assert_eq!(insert_at(&mut uploaded, &asked[..100], later), new);
    filter.delete().unwrap();
    uploaded.delete().unwrap();
}

#[test]
fn operators_see_it() {
    let server = Server::start(&[]);
    let place = at(&server, "window-seen");
    let mut filter = create(&place, &hourly(8_000, 0.01));
    for generation in 0..3 {
        let first = u64::from(generation) * 500;
        insert_at(
            &mut filter,
            &keys(first..first + 500),
            start() + STEP * generation,
        );
    }
    let survey = tamis_redis::Survey::of(
        &format!("redis://{}", server.address()).parse().unwrap(),
        &options(),
    )
    .unwrap();
    assert!(survey.orphans.is_empty());
    let [found] = &survey.filters[..] else {
        panic!("{:?}", survey.filters)
    };
    assert_eq!(found.kind, Some(Kind::Window));
    assert_eq!(found.condition, tamis_redis::Condition::Whole);
    assert!((1_470..1_530).contains(&found.keys.unwrap()), "{found:?}");
    let shares = filter.shares().unwrap();
    // Three strings and their ledger.
    assert_eq!(shares.iter().map(|share| share.keys).sum::<u64>(), 4);
    // More than a generation is made for.
    insert_at(&mut filter, &keys(10_000..13_000), start() + STEP * 3);
    let warned = |w: &Warning| {
        matches!(
            w,
            Warning::OverfullGeneration {
                capacity: 1_000,
                ..
            }
        )
    };
    assert!(
        filter.warnings().iter().any(warned),
        "{:?}",
        filter.warnings()
    );
    assert!(filter.rate_now().unwrap() > 0.01);
    filter.delete().unwrap();
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

/// The rights of the table in docs/sharing.md are enough, and those who ask need
/// no others.
#[test]
fn users_and_their_rights() {
    let server = Server::start(&[]);
    let adds = "+@read +@write +@connection +@scripting +wait +info +time";
    let asks = "+@read +@connection +eval_ro +info +time";
    let keys = ["window", "window:*", "{window}:*"];
    for (user, pattern, rights) in [("adds", "~", adds), ("asks", "%R~", asks)] {
        let patterns = keys.map(|key| format!("{pattern}{key}"));
        let mut command = vec!["ACL", "SETUSER", user, "on", ">sesame"];
        command.extend(patterns.iter().map(String::as_str));
        command.extend(rights.split(' '));
        server.cli(&command);
    }
    let as_user = |user: &str| {
        location(&format!(
            "redis://{user}:sesame@{}/window",
            server.address()
        ))
    };
    let mut filter = create(&as_user("adds"), &hourly(1_000, 1e-6));
    assert!(filter.insert("now").unwrap() && filter.insert_at("then", start()).unwrap());
    let mut reader = RedisFilter::open(&as_user("asks"), &options()).unwrap();
    assert!(reader.contains("now").unwrap());
    reader.verify().unwrap();
    assert_eq!(reader.keys().unwrap().get(), 1);
    reader.download().unwrap();
    assert!(reader.insert("more").is_err());
    filter.delete().unwrap();
}

/// What can't be is refused, and says so.
#[test]
fn what_is_refused() {
    let place = at(server(), "window-refused");
    let by_keys = Plan::for_rate(Kind::Window, 1_000, 0.01).unwrap();
    let error = RedisFilter::create(&place, &by_keys, Hasher::default(), &options()).unwrap_err();
    assert!(error.to_string().contains("number of keys"), "{error}");
    assert!(!RedisFilter::exists(&place, &options()).unwrap());
    let mut filter = create(&place, &hourly(1_000, 0.01));
    assert!(filter.remove("key").is_err() && filter.count("key").is_err());
    let other = AnyFilter::from_plan(&hourly(1_000, 0.01), Hasher::seeded(7)).unwrap();
    let error = filter.union_with(&other).unwrap_err();
    assert!(error.to_string().contains("copy both"), "{error}");
    filter.delete().unwrap();
    // A filter that is no window heeds no moments.
    let mut plain = create(&place, &plan(1_000, 0.01));
    assert!(plain.insert_at("key", start()).unwrap());
    assert!(plain.contains_at("key", start() + 1_000 * HOUR).unwrap());
    assert!(plain.generations().is_err());
    plain.delete().unwrap();
}
