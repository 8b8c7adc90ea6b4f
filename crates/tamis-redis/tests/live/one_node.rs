//! All operations on a real server, on a free loopback port, with its own
//! folder.

use std::time::Duration;
use tamis::internals::raw::Shape;
use tamis::{AnyFilter, Growing, Hash, Hasher, KeyCount, Kind, Plan, SecretKey};
use tamis_redis::{Error, Location, Options, RedisFilter, aio};

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
fn a_missing_part_is_an_error_and_never_an_answer() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let name = kind.name();
        let plan = one_line(kind, 1_000, 0.01);
        let mut filter =
            RedisFilter::create(&server.at(name), &plan, Hasher::default(), &options()).unwrap();
        assert!(filter.insert("key").unwrap());
        let chunk = &server.chunks(name)[0];
        server.run::<()>(&format!("DEL {chunk}"));
        let lost = |result: Result<bool, Error>| {
            assert!(
                matches!(result, Err(Error::MissingChunk { .. })),
                "{kind} {result:?}"
            );
        };
        lost(filter.contains("key"));
        lost(filter.insert("key"));
        // The write made the server create a new string: still no answer.
        assert_eq!(server.run::<usize>(&format!("EXISTS {chunk}")), 1);
        lost(filter.contains("key"));
        lost(filter.insert("other"));
        lost(filter.keys().map(|_| true));
        lost(filter.rate_now().map(|_| true));
        lost(filter.verify().map(|()| true));
        lost(filter.download().map(|_| true));
        if kind == Kind::Counting {
            lost(filter.remove("key"));
            lost(filter.count("key").map(|_| true));
        }
        filter.delete().unwrap();
    }
    assert_eq!(server.run::<usize>("DBSIZE"), 0);
}

#[test]
fn a_filter_ends_as_a_whole() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Growing] {
        let at = server.at("short");
        let plan = one_line(kind, 1_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
        assert_eq!(filter.time_to_live().unwrap(), None);
        filter.expire_in(Duration::from_secs(100)).unwrap();
        let left = filter.time_to_live().unwrap().unwrap();
        assert!(left > Duration::from_secs(90) && left <= Duration::from_secs(100));
        if kind == Kind::Growing {
            let keys = hashes(0..5_000);
            filter
                .insert_hashes(&keys, &mut vec![false; keys.len()])
                .unwrap();
        }
        filter.clear().unwrap();
        for key in server.run::<Vec<String>>("KEYS *short*") {
            let left: i64 = server.run(&format!("PTTL {key}"));
            assert!((90_000..=110_000).contains(&left), "{kind} {key}: {left}");
        }
        filter.persist().unwrap();
        for key in server.run::<Vec<String>>("KEYS *short*") {
            assert_eq!(server.run::<i64>(&format!("PTTL {key}")), -1, "{key}");
        }
        filter.insert("key").unwrap();
        filter.expire_in(Duration::ZERO).unwrap();
        assert!(!RedisFilter::exists(&at, &options()).unwrap());
        assert!(matches!(filter.verify(), Err(Error::Gone { .. })));
        assert!(matches!(filter.time_to_live(), Err(Error::Gone { .. })));
        assert!(matches!(filter.keys(), Ok(_) | Err(Error::Gone { .. })));
        server.run::<()>("FLUSHALL");
        assert!(matches!(filter.contains("key"), Err(Error::Gone { .. })));
        assert!(matches!(filter.insert("key"), Err(Error::Gone { .. })));
        // The strings that the insertion had created are gone as well.
        assert_eq!(server.run::<usize>("DBSIZE"), 0, "{kind}");
        assert!(matches!(
            RedisFilter::open(&at, &options()),
            Err(Error::NotFound { .. })
        ));
    }
}

#[test]
fn one_that_was_replaced_is_not_taken_for_the_old_one() {
    let server = Server::start();
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    let mut old = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    old.insert("key").unwrap();
    RedisFilter::delete_at(&at, &options()).unwrap();
    let mut new = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    assert!(!new.contains("key").unwrap());
    assert!(matches!(old.contains("key"), Err(Error::Gone { .. })));
    assert!(matches!(old.insert("key"), Err(Error::Gone { .. })));
    assert!(matches!(
        old.expire_in(Duration::ZERO),
        Err(Error::Gone { .. })
    ));
    assert!(matches!(old.delete(), Err(Error::Gone { .. })));
    new.verify().unwrap();
    // Its record, twin, mark, witness and chunk.
    assert_eq!(server.run::<usize>("DBSIZE"), 5);
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

#[test]
fn what_is_not_a_filter_is_said() {
    let server = Server::start();
    let impatient = Options::new().retry_for(Duration::from_millis(100));
    let open = |name: &str| RedisFilter::open(&server.at(name), &impatient).unwrap_err();
    assert!(matches!(open("nothing"), Error::NotFound { .. }));
    server.run::<()>("SET text hello");
    assert!(matches!(open("text"), Error::Corrupt { .. }));
    server.run::<()>("RPUSH list hello");
    assert!(matches!(open("list"), Error::Corrupt { .. }));
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    let create =
        |name: &str, hasher| RedisFilter::create(&server.at(name), &plan, hasher, &impatient);
    assert!(matches!(
        create("text", Hasher::default()),
        Err(Error::Taken { .. })
    ));

    let key = SecretKey::new([7; 16]);
    let mut apart = create("apart", Hasher::keyed_apart(key)).unwrap();
    apart.insert("key").unwrap();
    assert!(matches!(
        open("apart"),
        Error::Filter(tamis::Error::KeyNeeded)
    ));
    let with_key = impatient.clone().key(key);
    let mut opened = RedisFilter::open(&server.at("apart"), &with_key).unwrap();
    assert!(opened.contains("key").unwrap());
    // Its expiry can be set without the secret.
    RedisFilter::expire_at(&server.at("apart"), Duration::from_secs(99), &impatient).unwrap();
    assert!(opened.time_to_live().unwrap().is_some());
    RedisFilter::persist_at(&server.at("apart"), &impatient).unwrap();
    assert!(opened.time_to_live().unwrap().is_none());
    RedisFilter::delete_at(&server.at("apart"), &impatient).unwrap();
    assert!(matches!(open("apart"), Error::NotFound { .. }));
    assert_eq!(server.chunks("apart").len(), 0);

    // Its creator died before all chunks existed.
    create("half", Hasher::default()).unwrap();
    server.run::<()>("SETRANGE half 24 \0");
    assert!(matches!(open("half"), Error::Unfinished { .. }));
    RedisFilter::delete_at(&server.at("half"), &impatient).unwrap();
    assert_eq!(server.chunks("half").len(), 0);

    // A port that no test uses.
    let at: Location = "redis://127.0.0.1:1/seen".parse().unwrap();
    let error = RedisFilter::open(&at, &impatient).unwrap_err();
    assert!(matches!(error, Error::Server { .. }), "{error}");
    // A server that isn't in a cluster.
    let at = format!("redis+cluster://{}/seen", server.0.address());
    let error = RedisFilter::open(&at.parse().unwrap(), &impatient).unwrap_err();
    assert!(error.to_string().contains("cluster"), "{error}");
}

#[test]
fn a_broken_connection_is_replaced() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Growing] {
        let at = server.at(kind.name());
        let plan = one_line(kind, 50_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
        for i in 0..20 {
            if i % 3 == 0 {
                server.run::<()>("CLIENT KILL TYPE normal SKIPME yes");
            }
            let keys = hashes(i * 1_000..(i + 1) * 1_000);
            let mut new = vec![false; 1_000];
            filter.insert_hashes(&keys, &mut new).unwrap();
            assert!(new.iter().filter(|new| **new).count() > 970);
            filter.contains_hashes(&keys, &mut new).unwrap();
            assert!(new.iter().all(|there| *there));
        }
    }
}

/// A server that hangs: unanswered keys are reported, and a late answer is
/// never taken for that of a later request.
#[test]
fn silence_is_not_an_answer() {
    let server = Server::start();
    let hasty = Options::new()
        .response_timeout(Duration::from_secs(2))
        .retry_for(Duration::ZERO);
    for kind in [Kind::Blocked, Kind::Counting] {
        let at = server.at(kind.name());
        let plan = one_line(kind, 10_000, 0.01);
        let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &hasty).unwrap();
        let mut new = vec![false; 4_000];
        filter
            .insert_hashes(&hashes(0..10), &mut new[..10])
            .unwrap();
        server.0.freeze();
        let error = filter
            .insert_hashes(&hashes(10..4_010), &mut new)
            .unwrap_err();
        let Error::Unconfirmed { keys, of, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((keys.len(), *of), (4_000, 4_000));
        assert!(filter.contains_hashes(&hashes(0..1), &mut [false]).is_err());
        server.0.thaw();
        let mut there = vec![false; 10];
        crate::common::until("the server to answer", Duration::from_secs(60), || {
            filter.contains_hashes(&hashes(0..10), &mut there).is_ok()
        });
        assert!(there.iter().all(|there| *there), "{kind}");
        filter
            .contains_hashes(&hashes(50_000..50_010), &mut there)
            .unwrap();
        assert!(there.iter().filter(|there| **there).count() < 3, "{kind}");
    }
    // With patience, the keys are added after all, and reported as new again.
    let patient = hasty.retry_for(Duration::from_secs(60));
    let wire = crate::common::Proxy::start(server.0.port());
    let by_wire = format!("redis://{}/blocked", wire.address());
    let mut filter = RedisFilter::open(&by_wire.parse().unwrap(), &patient).unwrap();
    let mut new = vec![false; 3_000];
    let clients = wire.clients();
    server.0.freeze();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| filter.insert_hashes(&hashes(0..3_000), &mut new));
        let most = Duration::from_secs(60);
        crate::common::until("the first try to be given up", most, || {
            wire.clients() > clients
        });
        server.0.thaw();
        adding.join().unwrap().unwrap();
    });
    assert!(new.iter().all(|new| *new));
    filter.insert_hashes(&hashes(0..3_000), &mut new).unwrap();
    assert!(!new.iter().any(|new| *new));
}

#[test]
fn too_few_replicas_do_not_confirm() {
    let server = Server::start();
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 1_000, 0.01);
    RedisFilter::create(&at, &plan, Hasher::default(), &options()).unwrap();
    let careful = options().wait_replicas(1, Duration::from_millis(50));
    let mut filter = RedisFilter::open(&at, &careful).unwrap();
    let error = filter.insert("key").unwrap_err();
    assert!(
        matches!(&error, Error::Unconfirmed { keys, .. } if keys[..] == [0]),
        "{error}"
    );
    assert!(filter.contains("key").unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_without_blocking() {
    let server = Server::start();
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let at = server.at(kind.name());
        let plan = one_line(kind, 10_000, 0.01);
        let filter = aio::RedisFilter::create(&at, &plan, Hasher::default(), &options())
            .await
            .unwrap();
        let tasks: Vec<_> = (0..4u64)
            .map(|task| {
                let mut filter = filter.clone();
                tokio::spawn(async move {
                    let mut told = 0;
                    for i in 0..5 {
                        let start = (i + task) % 5 * 3_000;
                        let keys = hashes(start..start + 3_000);
                        let mut new = vec![false; keys.len()];
                        filter.insert_hashes(&keys, &mut new).await.unwrap();
                        told += new.iter().filter(|new| **new).count();
                        filter.contains_hashes(&keys, &mut new).await.unwrap();
                        assert!(new.iter().all(|there| *there));
                    }
                    told
                })
            })
            .collect();
        let mut told = 0;
        for task in tasks {
            told += task.await.unwrap();
        }
        assert!((14_500..15_500).contains(&told), "{kind} {told}");
        let mut mine = filter.clone();
        assert!(mine.insert("key").await.unwrap());
        assert!(mine.contains("key").await.unwrap());
        mine.verify().await.unwrap();
        let down = mine.download().await.unwrap();
        assert!(down.contains("key"));
        let copy = server.at("copy");
        let other = aio::RedisFilter::upload(&copy, &down, &options())
            .await
            .unwrap();
        other.delete().await.unwrap();
        if kind == Kind::Counting {
            assert_eq!(mine.count("key").await.unwrap(), 1);
            assert!(mine.remove("key").await.unwrap());
            assert!(!mine.contains("key").await.unwrap());
        }
        if kind == Kind::Blocked {
            mine.union_with(&down).await.unwrap();
        }
        let keys = mine.keys().await.unwrap().get();
        assert!((14_000..16_500).contains(&keys), "{kind} {keys}");
        assert!(mine.rate_now().await.unwrap() < 0.1);
        mine.expire_in(Duration::from_secs(60)).await.unwrap();
        assert!(mine.time_to_live().await.unwrap().is_some());
        mine.persist().await.unwrap();
        server.run::<()>("CLIENT KILL TYPE normal SKIPME yes");
        match (kind, mine.insert("after").await) {
            // Adding to counters isn't repeated if it may have been executed.
            (Kind::Counting, result) => assert!(matches!(result, Err(Error::Unconfirmed { .. }))),
            (_, result) => assert!(result.unwrap()),
        }
        mine.clear().await.unwrap();
        assert!(!mine.contains("after").await.unwrap());
        assert!(aio::RedisFilter::exists(&at, &options()).await.unwrap());
        mine.delete().await.unwrap();
        assert!(matches!(
            filter.clone().insert("key").await,
            Err(Error::Gone { .. })
        ));
    }
    assert_eq!(server.run::<usize>("DBSIZE"), 0);
}

#[tokio::test]
async fn silence_is_not_an_answer_without_blocking() {
    let server = Server::start();
    let hasty = Options::new()
        .response_timeout(Duration::from_secs(2))
        .retry_for(Duration::ZERO);
    let at = server.at("seen");
    let plan = one_line(Kind::Blocked, 10_000, 0.01);
    let mut filter = aio::RedisFilter::create(&at, &plan, Hasher::default(), &hasty)
        .await
        .unwrap();
    filter.insert("here").await.unwrap();
    server.0.freeze();
    let error = filter.insert("there").await.unwrap_err();
    assert!(
        matches!(&error, Error::Unconfirmed { keys, .. } if keys[..] == [0]),
        "{error}"
    );
    server.0.thaw();
    let start = std::time::Instant::now();
    let here = loop {
        match filter.contains("here").await {
            Ok(here) => break here,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
        }
    };
    assert!(here);
    assert!(!filter.contains("nowhere").await.unwrap());
}
