//! Counting filters: workers can remove keys that others have added.

use crate::*;
use tamis_redis::Error;

fn counting(keys: u64, rate: f64) -> Plan {
    Plan::one_line(Kind::Counting, keys, rate).unwrap()
}

fn remove(filter: &mut RedisFilter, keys: &[String]) -> Vec<bool> {
    let hasher = *filter.hasher().unwrap();
    let hashes: Vec<_> = keys.iter().map(|key| hasher.hash(key.as_bytes())).collect();
    let mut removed = vec![false; keys.len()];
    filter.remove_hashes(&hashes, &mut removed).unwrap();
    removed
}

/// Step by step like a local filter: adding, counting up to the maximum,
/// removing, looking up absent keys.
fn like_a_local_one(place: &Location) {
    let (mut remote, mut local) = pair(place, &counting(2_000, 0.01));
    let check = |remote: &mut RedisFilter, local: &mut AnyFilter, step: &str| {
        assert!(body(&remote.download().unwrap()) == body(local), "{step}");
    };
    let all_keys = keys(0..2_000);
    let mut expected = vec![false; all_keys.len()];
    local.insert_many(&all_keys, &mut expected).unwrap();
    assert_eq!(insert(&mut remote, &all_keys), expected);
    check(&mut remote, &mut local, "added");

    // The same key several times in one batch, and more often than counters
    // count.
    let often: Vec<String> = std::iter::repeat_n(keys(0..3), 20).flatten().collect();
    let mut expected = vec![false; often.len()];
    local.insert_many(&often, &mut expected).unwrap();
    assert_eq!(insert(&mut remote, &often), expected);
    check(&mut remote, &mut local, "added often");
    for key in &all_keys[..50] {
        assert_eq!(remote.count(key).unwrap(), local.count(key).unwrap());
    }

    let hasher = *local.hasher();
    let gone: Vec<String> = keys(500..1_500).into_iter().chain(keys(0..3)).collect();
    let hashes: Vec<_> = gone.iter().map(|key| hasher.hash(key.as_bytes())).collect();
    let mut expected = vec![false; gone.len()];
    local.remove_many(&hashes, &mut expected).unwrap();
    assert_eq!(remove(&mut remote, &gone), expected);
    check(&mut remote, &mut local, "removed");

    // Most of them are absent: removing them changes no counter.
    let absent = keys(100_000..101_000);
    let hashes: Vec<_> = absent
        .iter()
        .map(|key| hasher.hash(key.as_bytes()))
        .collect();
    let mut expected = vec![false; absent.len()];
    local.remove_many(&hashes, &mut expected).unwrap();
    assert_eq!(remove(&mut remote, &absent), expected);
    check(&mut remote, &mut local, "removed what was not there");

    assert!(!remote.remove("never there").unwrap());
    remote.insert("once").unwrap();
    assert!(remote.remove("once").unwrap());
    check(&mut remote, &mut local, "one at a time");
    remote.delete().unwrap();
}

#[test]
fn like_a_local_one_on_one_node() {
    like_a_local_one(&at(server(), "counting"));
}

#[test]
fn like_a_local_one_in_a_cluster() {
    like_a_local_one(&location(&cluster().location("counting")));
}

/// Workers add and remove at the same time; in the end, every counter matches
/// the remaining keys.
#[test]
fn added_by_one_removed_by_another() {
    const WORKERS: u64 = 8;
    let place = at(server(), "counting-workers");
    // Large enough that no counter reaches 15, where it would stay.
    let (mut remote, mut local) = pair(&place, &counting(50_000, 1e-4));
    let of = |worker: u64| keys(worker * 2_000..worker * 2_000 + 2_000);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let place = &place;
            scope.spawn(move || {
                let mut filter = RedisFilter::open(place, &options()).unwrap();
                insert(&mut filter, &of(worker));
            });
        }
    });
    // Half of each worker's keys are removed by its neighbour, while all add
    // those of the next worker a second time.
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let place = &place;
            scope.spawn(move || {
                let mut filter = RedisFilter::open(place, &options()).unwrap();
                let theirs = of((worker + 1) % WORKERS);
                let removed = remove(&mut filter, &theirs[..1_000]);
                assert!(all(&removed), "what was added is there to be removed");
                insert(&mut filter, &of((worker + 2) % WORKERS)[1_000..]);
            });
        }
    });
    let stayed: Vec<String> = (0..WORKERS)
        .flat_map(|worker| of(worker).split_off(1_000))
        .collect();
    for _ in 0..2 {
        local
            .insert_many(&stayed, &mut vec![false; stayed.len()])
            .unwrap();
    }
    assert!(all(&contains(&mut remote, &stayed)));
    assert!(
        body(&remote.download().unwrap()) == body(&local),
        "the counters differ"
    );
    remote.delete().unwrap();
}

/// When many workers remove a key that was added once, exactly one succeeds.
#[test]
fn removed_by_one_of_many() {
    let place = at(server(), "counting-race");
    let (mut remote, _) = pair(&place, &counting(10_000, 1e-6));
    let keys = keys(0..2_000);
    insert(&mut remote, &keys);
    let removed: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut filter = RedisFilter::open(&place, &options()).unwrap();
                    remove(&mut filter, &keys)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    for (i, key) in keys.iter().enumerate() {
        let times = removed.iter().filter(|removed| removed[i]).count();
        assert_eq!(times, 1, "{key}");
    }
    assert!(
        body(&remote.download().unwrap())
            .iter()
            .all(|byte| *byte == 0)
    );
    remote.delete().unwrap();
}

#[test]
fn others_cannot_remove() {
    let (mut filter, _) = pair(&at(server(), "not-counting"), &plan(1_000, 0.01));
    filter.insert("ada").unwrap();
    for refused in [
        filter.remove("ada").map(drop),
        filter.count("ada").map(drop),
    ] {
        assert!(
            matches!(refused, Err(Error::Filter(tamis::Error::Unable { .. }))),
            "{refused:?}"
        );
    }
    assert!(filter.contains("ada").unwrap());
    filter.delete().unwrap();
}
