//! Growing filters, for an unknown number of keys from all workers.

use crate::*;
use tamis::Growing;
use tamis::internals::raw::Shape;

fn growing(first: u64, rate: f64) -> Plan {
    Plan::one_line(Kind::Growing, first, rate).unwrap()
}

/// The share of absent keys that are found.
fn rate(filter: &AnyFilter) -> f64 {
    let absent = keys(10_000_000..10_200_000);
    let mut found = vec![false; absent.len()];
    filter.contains_many(&absent, &mut found);
    count(&found) as f64 / absent.len() as f64
}

/// Workers add different keys; afterwards the filter has all of them, at the
/// promised rate, and its file is an ordinary growing filter.
fn grows(place: &Location, workers: u64, each: u64) {
    const RATE: f64 = 0.01;
    let (created, _) = pair(place, &growing(1_000, RATE));
    drop(created);
    let news: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let mut filter = RedisFilter::open(place, &options()).unwrap();
                    let keys = keys(worker * each..(worker + 1) * each);
                    // Small batches, so that workers meet at every layer.
                    keys.chunks(700)
                        .map(|keys| count(&insert(&mut filter, keys)))
                        .sum()
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let number = workers * each;
    let new: usize = news.iter().sum();
    // All keys are different, so those not reported as new are false positives.
    assert!(
        new as u64 <= number && new as f64 > number as f64 * (1.0 - RATE),
        "{new} of {number}"
    );

    let mut filter = RedisFilter::open(place, &options()).unwrap();
    filter.verify().unwrap();
    assert!(all(&contains(&mut filter, &keys(0..number))), "a false no");
    assert!(filter.rate_now().unwrap() <= RATE);
    let estimate = filter.keys().unwrap().get() as f64 / number as f64;
    assert!(
        (0.97..1.03).contains(&estimate),
        "{estimate} of the keys estimated"
    );

    let file = filter.download().unwrap();
    let measured = rate(&file);
    assert!(measured <= RATE * 1.1, "a rate of {measured}");
    let Shape::Growing(shape) = file.shape() else {
        panic!("{:?}", file.shape())
    };
    assert!(shape.layers() > 2, "it has not grown");
    assert_eq!(filter.bytes(), body(&file).len() as u64);
    // Other clients get the same answers.
    let sample = keys(9_000_000..9_010_000);
    let mut expected = vec![false; sample.len()];
    file.contains_many(&sample, &mut expected);
    assert_eq!(contains(&mut filter, &sample), expected);

    // The file opens, is valid, and can grow.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    file.save(&path).unwrap();
    let mut loaded = Growing::load(&path).unwrap();
    let more = keys(number..3 * number);
    loaded
        .insert_many(&more, &mut vec![false; more.len()])
        .unwrap();
    let mut found = vec![false; more.len()];
    loaded.contains_many(&more, &mut found);
    assert!(all(&found));
    assert!(loaded.rate_now() <= RATE);
    filter.delete().unwrap();
}

#[test]
fn grows_on_one_node() {
    grows(&at(server(), "growing"), 8, 10_000);
}

#[test]
fn grows_in_a_cluster() {
    grows(&location(&cluster().location("growing")), 4, 5_000);
}

/// All workers add the same keys while the filter grows: each is new to one of
/// them, or to none at the filter's rate.
#[test]
fn the_same_keys_by_many() {
    const NUMBER: u64 = 10_000;
    let place = at(server(), "growing-same");
    let (mut filter, _) = pair(&place, &growing(1_000, 1e-4));
    let told: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|worker| {
                let place = &place;
                scope.spawn(move || {
                    let mut filter = RedisFilter::open(place, &options()).unwrap();
                    let mut new = vec![false; NUMBER as usize];
                    // Each starts at a different key.
                    let first = worker * NUMBER as usize / 6;
                    for part in [first..NUMBER as usize, 0..first] {
                        let keys = keys(part.start as u64..part.end as u64);
                        for (keys, new) in keys.chunks(500).zip(new[part].chunks_mut(500)) {
                            filter.insert_many(keys, new).unwrap();
                        }
                    }
                    new
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let times = |i: usize| told.iter().filter(|new| new[i]).count();
    let nobody = (0..NUMBER as usize).filter(|i| times(*i) == 0).count();
    let twice = (0..NUMBER as usize).filter(|i| times(*i) > 1).count();
    // The rate allows one false positive among these keys.
    assert!(nobody <= 8, "{nobody} keys were new to nobody");
    assert_eq!(twice, 0, "keys were new more than once");
    assert!(all(&contains(&mut filter, &keys(0..NUMBER))));
    assert!(filter.rate_now().unwrap() <= 1e-4);
    filter.verify().unwrap();
    filter.delete().unwrap();
}

/// A worker that hasn't looked for a while sees layers added by others.
#[test]
fn layers_of_others_are_seen() {
    let place = at(server(), "growing-late");
    let (mut early, _) = pair(&place, &growing(1_000, 0.01));
    early.insert("first").unwrap();
    let mut other = RedisFilter::open(&place, &options()).unwrap();
    insert(&mut other, &keys(0..20_000));
    assert!(all(&contains(&mut early, &keys(0..20_000))), "a false no");
    assert!(
        count(&insert(&mut early, &keys(0..20_000))) == 0,
        "new to one who is late"
    );
    assert_eq!(
        early.download().unwrap().to_bytes(),
        other.download().unwrap().to_bytes()
    );
    early.delete().unwrap();
}

/// A growing filter that has lost a layer's chunk, or the record of its newest
/// layer.
#[test]
fn a_lost_layer() {
    let place = at(server(), "growing-lost");
    let (mut filter, _) = pair(&place, &growing(1_000, 0.01));
    insert(&mut filter, &keys(0..10_000));
    let listed = server().cli(&["KEYS", "*growing-lost*:*"]);
    // The record's twin and the witness still show that there are others.
    let tells = |part: &str| part.ends_with("}:tamis") || part.contains("{witness.");
    let parts = listed.lines().filter(|part| !tells(part));
    let parts: Vec<&str> = parts.collect();
    assert!(parts.len() > 2);
    for part in parts {
        let kept = server().cli(&["COPY", part, "kept", "REPLACE"]);
        assert_eq!(kept, "1");
        server().cli(&["DEL", part]);
        if let Ok(mut worker) = RedisFilter::open(&place, &options()) {
            let keys = keys(0..10_000);
            let mut found = vec![false; keys.len()];
            let asked = worker.contains_many(&keys, &mut found);
            assert!(asked.is_err(), "answers without {part}");
        }
        server().cli(&["COPY", "kept", part, "REPLACE"]);
    }
    server().cli(&["DEL", "kept"]);
    filter.verify().unwrap();
    filter.delete().unwrap();
}
