//! The filter that does not block.

use super::{Server, hashes, one_line, options};
use std::time::Duration;
use tamis::{Hasher, Kind};
use tamis_redis::{Error, Options, aio};

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
