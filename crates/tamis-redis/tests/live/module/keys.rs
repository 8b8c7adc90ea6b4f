//! Adding, looking up and removing keys.

use super::*;
use crate::common::{Cluster, Server};
use tamis::KeyCount;
use tamis_redis::{Error, Layout, aio};

/// Workers add the same keys at the same time while the filter grows: each key
/// is new to exactly one, as often as the module counts it.
#[test]
#[ignore = "needs the module: ./test module"]
fn each_key_is_new_once() {
    let place = at(server(), "workers");
    drop(create(&place, Kind::Growing, 100, 0.001));
    let work = |worker: usize| {
        let place = place.clone();
        std::thread::spawn(move || {
            let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
            let mut keys = keys(0..20_000);
            keys.rotate_left(worker * 5_000);
            let new = keys
                .chunks(700)
                .map(|keys| count(&insert(&mut filter, keys)));
            new.sum::<usize>()
        })
    };
    let workers: Vec<_> = (0..4).map(work).collect();
    let new: usize = workers.into_iter().map(|work| work.join().unwrap()).sum();
    let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
    assert_eq!(filter.keys().unwrap(), KeyCount::Counted(new as u64));
    assert!((19_950..=20_000).contains(&new), "{new}");
    assert!(all(&contains(&mut filter, &keys(0..20_000))));
    assert!(filter.capacity() >= 20_000 && filter.bytes() > 0);
    assert!((filter.rate() - 0.001).abs() < 1e-12);
    assert_eq!(filter.stats().retries, 0);
    filter.delete().unwrap();
    assert!(!RedisFilter::exists(&place, &Options::new()).unwrap());
}

/// The same with both protocols, with single keys and batches.
#[test]
#[ignore = "needs the module: ./test module"]
fn every_operation() {
    for protocol in ["resp2", "resp3"] {
        let place = format!("redis://{}/all?protocol={protocol}", server().address());
        let place = location(&place);
        let mut filter = create(&place, Kind::Growing, 1_000, 0.01);
        assert_eq!(filter.module_layout(), Some(Layout::Tamis));
        assert_eq!((filter.kind(), filter.generation()), (Kind::Growing, None));
        assert!(filter.header().is_none() && filter.hasher().is_none());
        assert!(filter.insert("ada").unwrap() && !filter.insert("ada").unwrap());
        assert!(filter.contains("ada").unwrap() && !filter.contains("bob").unwrap());
        let twice = [b"new".to_vec(), b"ada".to_vec(), b"new".to_vec(), vec![]];
        assert_eq!(insert(&mut filter, &twice), [true, false, false, true]);
        assert!(insert(&mut filter, &[]).is_empty());
        filter.verify().unwrap();
        assert_eq!(filter.rate_now().unwrap(), 0.01);
        filter.expire_in(Duration::from_secs(100)).unwrap();
        assert!(filter.time_to_live().unwrap().is_some());
        filter.persist().unwrap();
        assert_eq!(filter.time_to_live().unwrap(), None);
        let shares = filter.shares().unwrap();
        assert_eq!((shares.len(), shares[0].keys), (1, 1));
        assert!(shares[0].bytes >= filter.bytes());
        // Unsupported operations are errors.
        let hash = Hasher::default().hash(b"ada");
        for error in [
            filter.insert_hashes(&[hash], &mut [false]).unwrap_err(),
            filter.remove("ada").unwrap_err(),
            filter.count("ada").unwrap_err(),
        ] {
            assert!(matches!(error, Error::Filter(_)), "{error}");
        }
        filter.clear().unwrap();
        assert!(!filter.contains("ada").unwrap());
        RedisFilter::delete_at(&place, &Options::new()).unwrap();
        let gone = RedisFilter::open(&place, &Options::new()).unwrap_err();
        assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    }
}

/// Each addition adds a copy, as in a file; a key is new if it was absent.
#[test]
#[ignore = "needs the module: ./test module"]
fn cuckoo_filters_count_copies() {
    let place = at(server(), "copies");
    let mut filter = create(&place, Kind::Cuckoo, 5_000, 0.001);
    assert_eq!(filter.kind(), Kind::Cuckoo);
    assert!((filter.rate() - 0.001).abs() < 1e-9 && filter.capacity() >= 5_000);
    let all_keys = keys(0..4_000);
    assert!(count(&insert(&mut filter, &all_keys)) > 3_980);
    assert_eq!(count(&insert(&mut filter, &all_keys)), 0);
    let pair = [b"pair".to_vec(), b"pair".to_vec()];
    assert_eq!(insert(&mut filter, &pair), [true, false]);
    let mut counts = vec![0; all_keys.len()];
    filter.count_many(&all_keys, &mut counts).unwrap();
    assert!(counts.iter().all(|count| *count >= 2));
    let mut removed = vec![false; all_keys.len()];
    filter.remove_many(&all_keys, &mut removed).unwrap();
    assert!(all(&removed) && all(&contains(&mut filter, &all_keys)));
    filter.remove_many(&all_keys, &mut removed).unwrap();
    assert!(all(&removed));
    assert!(count(&contains(&mut filter, &all_keys)) < 40);
    assert!(!filter.remove("never there, I hope").unwrap());
    let unable = filter.clear().unwrap_err();
    assert!(matches!(unable, Error::Filter(_)), "{unable}");
    filter.delete().unwrap();
}

/// Other clients of BF.* share it.
#[test]
#[ignore = "needs the module: ./test module"]
fn clients_of_the_commands_share_it() {
    let place = at(server(), "shared");
    let mut filter = create(&place, Kind::Growing, 1_000, 0.001);
    server().cli(&["BF.MADD", "shared", "theirs", "both"]);
    assert_eq!(
        insert(&mut filter, &[b"both".to_vec(), b"ours".to_vec()]),
        [false, true]
    );
    let found = server().cli(&["BF.MEXISTS", "shared", "ours", "theirs", "nobody's"]);
    assert_eq!(
        found.split_whitespace().collect::<Vec<_>>(),
        ["1", "1", "0"]
    );
    filter.delete().unwrap();
}

#[test]
#[ignore = "needs the module: ./test module"]
fn in_a_cluster() {
    let cluster = Cluster::start(&[&load()]);
    let place = location(&cluster.location("seen"));
    let mut filter = create(&place, Kind::Growing, 100, 0.01);
    let all_keys = keys(0..5_000);
    assert!(count(&insert(&mut filter, &all_keys)) > 4_900);
    assert!(all(&contains(&mut filter, &all_keys)));
    let file = filter.download().unwrap();
    let over = RedisFilter::upload_over(&place, &file, &Options::new()).unwrap();
    assert_eq!(over.module_layout(), Some(Layout::Tamis));
    // Asks the new filter, which replaced the old one in one step.
    assert!(all(&contains(&mut filter, &all_keys)));
}

#[tokio::test]
#[ignore = "needs the module: ./test module"]
async fn without_blocking() {
    let place = at(server(), "async");
    let plan = Plan::for_rate(Kind::Growing, 100, 0.01).unwrap();
    let mut filter = aio::RedisFilter::create(&place, &plan, Hasher::default(), &in_module())
        .await
        .unwrap();
    let all_keys = keys(0..10_000);
    let mut new = vec![false; all_keys.len()];
    filter.insert_many(&all_keys, &mut new).await.unwrap();
    assert!(count(&new) > 9_900);
    let mut clone = filter.clone();
    let mut found = vec![false; all_keys.len()];
    clone.contains_many(&all_keys, &mut found).await.unwrap();
    assert!(all(&found) && !clone.insert(&all_keys[0]).await.unwrap());
    let file = clone.download().await.unwrap();
    let over = aio::RedisFilter::upload_over(&place, &file, &Options::new()).await;
    assert_eq!(over.unwrap().module_layout(), Some(Layout::Tamis));
    let dump = clone.dump().await.unwrap();
    let restored = aio::RedisFilter::restore(&place, &dump, true, &Options::new()).await;
    restored.unwrap().delete().await.unwrap();
    let gone = clone.contains("x").await.unwrap_err();
    assert!(matches!(gone, Error::Gone { .. }), "{gone}");
}

/// Waits for replicas, even for old keys.
#[test]
#[ignore = "needs the module: ./test module"]
fn replicas_are_waited_for() {
    let alone = Server::start(&[&load()]);
    let place = at(&alone, "replicated");
    drop(create(&place, Kind::Growing, 1_000, 0.01));
    let careful = Options::new().wait_replicas(1, Duration::from_millis(200));
    let mut filter = RedisFilter::open(&place, &careful).unwrap();
    for _ in 0..2 {
        let error = filter
            .insert_many(&keys(0..3), &mut [false; 3])
            .unwrap_err();
        assert_eq!(error.unconfirmed(), [0, 1, 2], "{error}");
    }
    let replica = Server::start(&[&load(), &format!("replicaof 127.0.0.1 {}", alone.port())]);
    crate::common::until("the replica to follow", Duration::from_secs(60), || {
        replica.info("replication", "master_link_status").as_deref() == Some("up")
            && alone.info("replication", "connected_slaves").as_deref() == Some("1")
    });
    let patient = Options::new().wait_replicas(1, Duration::from_secs(30));
    let mut filter = RedisFilter::open(&place, &patient).unwrap();
    insert(&mut filter, &keys(0..300));
    let found = replica.cli(&["BF.EXISTS", "replicated", "key 1..."]);
    assert_eq!(found.trim(), "1");
}
