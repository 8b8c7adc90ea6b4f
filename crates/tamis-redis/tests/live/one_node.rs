//! All operations on a real server, on a free loopback port, with its own
//! folder.

mod asynchronous;
mod faults;

use std::time::Duration;
use tamis::internals::raw::Shape;
use tamis::{AnyFilter, Growing, Hash, Hasher, KeyCount, Kind, Plan};
use tamis_redis::{Error, Location, Options, RedisFilter};

struct Server(crate::common::Server);

impl Server {
    fn start() -> Self {
        Self(crate::common::Server::start(&[]))
    }

    fn at(&self, name: &str) -> Location {
        format!("redis://{}/{name}", self.0.address())
            .parse()
            .unwrap()
    }

    fn run<T: redis::FromRedisValue>(&self, command: &str) -> T {
        let client = redis::Client::open(format!("redis://{}/", self.0.address())).unwrap();
        let mut words = command.split(' ');
        let mut cmd = redis::cmd(words.next().unwrap());
        for word in words {
            cmd.arg(word);
        }
        cmd.query(&mut client.get_connection().unwrap()).unwrap()
    }

    fn chunks(&self, name: &str) -> Vec<String> {
        // Its witness has another tag.
        self.run(&format!("KEYS {name}:{{*.*.*}}"))
    }
}

fn hashes(range: std::ops::Range<u64>) -> Vec<Hash> {
    range.map(Hash::from_u64).collect()
}

fn options() -> Options {
    Options::new().retry_for(Duration::from_secs(30))
}

fn one_line(kind: Kind, keys: u64, rate: f64) -> Plan {
    Plan::one_line(kind, keys, rate).unwrap()
}

/// The body without the header: counts of keys differ.
fn body(filter: &AnyFilter) -> Vec<u8> {
    filter.to_bytes()[128..].to_vec()
}

#[test]
fn bits_and_answers_are_those_of_a_local_filter() {
    let server = Server::start();
    // Several chunks; one; a few lines.
    for (name, keys) in [("large", 8_000_000), ("middle", 100_000), ("small", 50)] {
        let plan = one_line(Kind::Blocked, keys, 0.01);
        let hasher = Hasher::seeded(3);
        let mut local = AnyFilter::from_plan(&plan, hasher).unwrap();
        let mut remote = RedisFilter::create(&server.at(name), &plan, hasher, &options()).unwrap();
        assert_eq!((remote.shape(), remote.rate()), (Some(plan.shape()), 0.01));
        let n = keys.min(60_000);
        // Some keys are repeated, even within one command.
        let words: Vec<String> = (0..n).map(|i| (i - i % 3 / 2).to_string()).collect();
        let mut new = [vec![false; words.len()], vec![true; words.len()]];
        local.insert_many(&words, &mut new[0]).unwrap();
        remote.insert_many(&words, &mut new[1]).unwrap();
        assert!(new[0] == new[1], "{name}");
        let mut other = RedisFilter::open(&server.at(name), &options()).unwrap();
        let asked: Vec<String> = (0..2 * n).map(|i| i.to_string()).collect();
        let mut found = [vec![false; asked.len()], vec![false; asked.len()]];
        local.contains_many(&asked, &mut found[0]);
        other.contains_many(&asked, &mut found[1]).unwrap();
        assert!(found[0] == found[1], "{name}");
        assert!(!other.insert("1").unwrap() && other.contains("1").unwrap());
        let down = other.download().unwrap();
        assert!(body(&down) == body(&local), "{name}");
        assert_eq!(
            other.keys().unwrap(),
            KeyCount::Estimated(local.estimated_keys())
        );
        let (ours, theirs) = (local.rate_now(), other.rate_now().unwrap());
        assert!(
            (ours - theirs).abs() <= 0.2 * ours + 1e-12,
            "{name}: {ours} {theirs}"
        );
        other.verify().unwrap();
        assert!(matches!(other.remove("1"), Err(Error::Filter(_))));
        assert!(matches!(other.count("1"), Err(Error::Filter(_))));
        other.clear().unwrap();
        assert!(!other.contains("1").unwrap());
        assert_eq!(other.download().unwrap().keys(), KeyCount::Counted(0));
    }
}

/// When most keys are old, the filter looks keys up before adding them: this
/// must only show in the commands.
#[test]
fn keys_that_come_again_are_asked_first() {
    let server = Server::start();
    let plan = one_line(Kind::Blocked, 300_000, 0.01);
    let mut local = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    let at = server.at("seen");
    let mut remote = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let mut insert = |range| {
        let keys = hashes(range);
        let mut new = [vec![false; keys.len()], vec![true; keys.len()]];
        local.insert_many(&keys, &mut new[0]).unwrap();
        remote.insert_hashes(&keys, &mut new[1]).unwrap();
        assert!(new[0] == new[1]);
    };
    let commands = || -> u64 {
        let stats: String = server.run("INFO commandstats");
        let line = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_bitfield:"));
        let calls = line.and_then(|line| line.split(['=', ',']).nth(1));
        calls.map_or(0, |calls| calls.parse().unwrap())
    };
    insert(0..70_000);
    insert(0..70_000);
    let before = commands();
    insert(0..70_000);
    assert_eq!(commands(), before);
    insert(60_000..150_000);
    insert(140_000..140_010);
    insert(0..200_000);
    assert!(body(&remote.download().unwrap()) == body(&local));
}

#[test]
fn exactly_one_of_many_workers_is_told_new() {
    let server = Server::start();
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 20_000, 0.01);
    RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let told: usize = std::thread::scope(|s| {
        let workers: Vec<_> = (0..6u64)
            .map(|worker| {
                let at = &at;
                s.spawn(move || {
                    let mut filter = RedisFilter::open(at, &options()).unwrap();
                    let mut keys = hashes(0..20_000);
                    keys.rotate_left(worker as usize * 3_000);
                    let mut new = vec![false; keys.len()];
                    for (keys, new) in keys.chunks(700).zip(new.chunks_mut(700)) {
                        filter.insert_hashes(keys, new).unwrap();
                    }
                    new.iter().filter(|new| **new).count()
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    let mut local = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    let mut new = vec![false; 20_000];
    local.insert_many(&hashes(0..20_000), &mut new).unwrap();
    let expected = new.iter().filter(|new| **new).count();
    // False positives depend slightly on the order.
    assert!(
        told.abs_diff(expected) < 40 && told <= 20_000,
        "{told} {expected}"
    );
    let mut remote = RedisFilter::open(&at, &options()).unwrap();
    assert!(body(&remote.download().unwrap()) == body(&local));
}

#[test]
fn counters_are_those_of_a_local_filter() {
    let server = Server::start();
    let plan = one_line(Kind::Counting, 5_000, 0.01);
    let mut local = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    let at = server.at("online");
    let mut remote = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let keys = hashes(0..5_000);
    let mut answers = [vec![false; 5_000], vec![false; 5_000]];
    // Some counters reach 15.
    for round in 0..17 {
        let some = &keys[..5_000 / (round * round + 1)];
        local
            .insert_many(some, &mut answers[0][..some.len()])
            .unwrap();
        remote
            .insert_hashes(some, &mut answers[1][..some.len()])
            .unwrap();
        assert!(answers[0] == answers[1], "round {round}");
    }
    let count = |local: &AnyFilter, remote: &mut RedisFilter| {
        let mut counts = [vec![0; 5_000], vec![0; 5_000]];
        local.count_many(&keys, &mut counts[0]).unwrap();
        remote.count_hashes(&keys, &mut counts[1]).unwrap();
        assert!(counts[0] == counts[1]);
    };
    count(&local, &mut remote);
    for first in [0, 10, 2_500, 0] {
        local
            .remove_many(&keys[first..], &mut answers[0][first..])
            .unwrap();
        remote
            .remove_hashes(&keys[first..], &mut answers[1][first..])
            .unwrap();
        assert!(answers[0] == answers[1], "from {first}");
    }
    count(&local, &mut remote);
    assert!(body(&remote.download().unwrap()) == body(&local));
    assert_eq!(remote.keys().unwrap().get(), local.estimated_keys());
    // Removing an absent key changes nothing.
    let before = body(&local);
    let mut removed = [true];
    for key in hashes(1_000_000..1_000_100) {
        let mut there = [false];
        local.contains_many(&[key], &mut there);
        if !there[0] {
            remote.remove_hashes(&[key], &mut removed).unwrap();
            assert!(!removed[0]);
        }
    }
    assert!(body(&remote.download().unwrap()) == before);
}

#[test]
fn workers_share_a_filter_that_grows() {
    let server = Server::start();
    let at = server.at("growing");
    let plan = one_line(Kind::Growing, 1_000, 0.01);
    let first = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    assert_eq!(first.kind(), Kind::Growing);
    // A client that only knows the first layer until it queries.
    let mut late = RedisFilter::open(&at, &options()).unwrap();
    let mut lone = RedisFilter::open(&at, &options()).unwrap();
    let told: usize = std::thread::scope(|s| {
        let workers: Vec<_> = (0..4u64)
            .map(|worker| {
                let at = &at;
                s.spawn(move || {
                    let mut filter = RedisFilter::open(at, &options()).unwrap();
                    let keys = hashes(worker * 10_000..worker * 10_000 + 15_000);
                    let mut told = 0;
                    for keys in keys.chunks(900) {
                        let mut new = vec![false; keys.len()];
                        filter.insert_hashes(keys, &mut new).unwrap();
                        told += new.iter().filter(|new| **new).count();
                        // Added keys are found at once, whichever client has
                        // added a layer.
                        let mut there = vec![false; keys.len()];
                        filter.contains_hashes(keys, &mut there).unwrap();
                        assert!(there.iter().all(|there| *there));
                    }
                    told
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    // 45,000 distinct keys; none is reported as new twice, and few look old.
    assert!((44_600..=45_000).contains(&told), "{told}");
    let mut found = vec![false; 45_000];
    late.contains_hashes(&hashes(0..45_000), &mut found)
        .unwrap();
    assert!(found.iter().all(|found| *found));
    // A client that doesn't know that the filter has grown doesn't add to old
    // layers.
    let mut new = [true];
    lone.insert_hashes(&hashes(44_999..45_000), &mut new)
        .unwrap();
    assert!(!new[0]);
    let Some(Shape::Growing(shape)) = late.shape() else {
        panic!("a growing filter");
    };
    assert!(shape.layers() > 3 && late.capacity() >= 44_000);
    assert!(late.rate_now().unwrap() <= 0.01);
    let keys = late.keys().unwrap().get();
    assert!((44_000..46_500).contains(&keys), "{keys}");
    late.verify().unwrap();

    let down = late.download().unwrap();
    let mut there = vec![false; 45_000];
    down.contains_many(&hashes(0..45_000), &mut there);
    assert!(there.iter().all(|there| *there));
    tamis::Open::new().from_bytes(&down.to_bytes()).unwrap();
    late.clear().unwrap();
    late.contains_hashes(&hashes(0..45_000), &mut found)
        .unwrap();
    assert!(!found.iter().any(|found| *found));
    assert!(late.insert("again").unwrap());
    late.delete().unwrap();
    assert_eq!(server.run::<usize>("DBSIZE"), 0);
}

#[test]
fn exactly_one_is_told_new_while_the_filter_grows() {
    let server = Server::start();
    let at = server.at("growing");
    let plan = one_line(Kind::Growing, 1_000, 0.01);
    RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let told: Vec<Vec<bool>> = std::thread::scope(|s| {
        let work = |worker: u64| {
            let mut filter = RedisFilter::open(&at, &options()).unwrap();
            let keys = hashes(0..20_000);
            let mut new = vec![false; keys.len()];
            let size = 300 + 700 * worker as usize;
            for (keys, new) in keys.chunks(size).zip(new.chunks_mut(size)) {
                filter.insert_hashes(keys, new).unwrap();
            }
            new
        };
        let workers: Vec<_> = (0..4).map(|worker| s.spawn(move || work(worker))).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let mut once = 0;
    for key in 0..20_000 {
        let times = told.iter().filter(|new| new[key]).count();
        assert!(times <= 1, "key {key} is new to {times}");
        once += times;
    }
    assert!(once > 19_700, "{once}");
}

#[test]
fn files_go_up_and_come_down_unchanged() {
    let server = Server::start();
    let plans = [
        Plan::for_rate(Kind::Blocked, 200_000, 1e-6).unwrap(), // two lines
        one_line(Kind::Blocked, 5_000_000, 0.01),
        Plan::for_rate(Kind::Counting, 50_000, 1e-6).unwrap(), // four lines
        Plan::for_rate(Kind::Growing, 1, 1e-4).unwrap(),
    ];
    for (i, plan) in plans.iter().enumerate() {
        let mut filter = AnyFilter::from_plan(plan, Hasher::seeded(i as u64)).unwrap();
        let keys: Vec<String> = (0..30_000).map(|i| format!("key {i}")).collect();
        filter
            .insert_many(&keys, &mut vec![false; keys.len()])
            .unwrap();
        let at = server.at(&format!("copy{i}"));
        let mut remote = RedisFilter::upload(&at, &filter, &options()).unwrap();
        remote.verify().unwrap();
        assert!(
            remote.download().unwrap().to_bytes() == filter.to_bytes(),
            "{i}"
        );
        assert!(matches!(
            RedisFilter::upload(&at, &filter, &options()),
            Err(Error::Exists { .. })
        ));
        // It still works as a filter, with several lines or layers.
        let mut remote = RedisFilter::open(&at, &options()).unwrap();
        let mut found = vec![false; keys.len()];
        remote.contains_many(&keys, &mut found).unwrap();
        assert!(found.iter().all(|found| *found), "{i}");
        let more: Vec<String> = (0..9_000).map(|i| format!("more {i}")).collect();
        let mut new = [vec![false; more.len()], vec![false; more.len()]];
        filter.insert_many(&more, &mut new[0]).unwrap();
        remote.insert_many(&more, &mut new[1]).unwrap();
        assert!(new[0] == new[1], "{i}");
        let down = remote.download().unwrap();
        assert!(matches!(down.keys(), KeyCount::Estimated(_)), "{i}");
        match plan.kind() {
            // More room was taken than there are keys.
            Kind::Growing => assert_eq!(down.shape(), filter.shape()),
            _ => assert!(body(&down) == body(&filter), "{i}"),
        }
        if plan.kind() == Kind::Counting {
            assert!(matches!(remote.remove("key 1"), Err(Error::Filter(_))));
        }
    }
    let cuckoo = Plan::for_rate(Kind::Cuckoo, 100, 0.01).unwrap();
    let cuckoo = AnyFilter::from_plan(&cuckoo, Hasher::default()).unwrap();
    let refused = RedisFilter::upload(&server.at("cuckoo"), &cuckoo, &options());
    assert!(matches!(
        refused,
        Err(Error::Filter(tamis::Error::Unable { .. }))
    ));
    assert!(!RedisFilter::exists(&server.at("cuckoo"), &options()).unwrap());
    let two_lines = RedisFilter::create(&server.at("x"), &plans[0], Hasher::default(), &options());
    assert!(two_lines.unwrap_err().to_string().contains("one_line"));
}

#[test]
fn a_growing_file_with_a_file_mapped_goes_up() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    let mut seen = Growing::new(1_000, 0.001).unwrap();
    for i in 0..20_000u64 {
        seen.insert(i.to_le_bytes()).unwrap();
    }
    seen.save(&path).unwrap();
    let mapped = AnyFilter::open(&path).unwrap();
    let mut remote = RedisFilter::upload(&server.at("seen"), &mapped, &options()).unwrap();
    assert!(remote.download().unwrap().to_bytes() == std::fs::read(&path).unwrap());
}

#[test]
fn filters_that_are_alike_unite() {
    let server = Server::start();
    let plan = one_line(Kind::Blocked, 5_000_000, 0.01);
    let at = server.at("seen");
    let mut remote = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let mut local = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    remote.expire_in(Duration::from_secs(1_000)).unwrap();
    let mut new = vec![false; 20_000];
    local.insert_many(&hashes(0..20_000), &mut new).unwrap();
    remote
        .insert_hashes(&hashes(10_000..30_000), &mut new)
        .unwrap();
    remote.union_with(&local).unwrap();
    remote.union_with(&local).unwrap(); // idempotent
    local
        .insert_many(&hashes(10_000..30_000), &mut new)
        .unwrap();
    assert!(body(&remote.download().unwrap()) == body(&local));
    for key in server.run::<Vec<String>>("KEYS *") {
        assert!(server.run::<i64>(&format!("PTTL {key}")) > 900_000, "{key}");
    }
    let unlike = [
        AnyFilter::from_plan(&plan, Hasher::seeded(1)),
        AnyFilter::from_plan(&one_line(Kind::Blocked, 100, 0.01), Hasher::default()),
        AnyFilter::from_plan(&one_line(Kind::Counting, 100, 0.01), Hasher::default()),
    ];
    for other in unlike {
        let error = remote.union_with(&other.unwrap()).unwrap_err();
        assert!(
            matches!(error, Error::Filter(tamis::Error::Unlike { .. })),
            "{error}"
        );
    }
}
