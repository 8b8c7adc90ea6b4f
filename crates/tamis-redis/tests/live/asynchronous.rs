//! The same filter for asynchronous services.

use crate::common::Server;
use crate::*;
use tamis_redis::{Error, aio};
use tokio::task::JoinSet;

/// Tasks on two threads share one connection per node: they get the same
/// answers and bytes as a local filter, and each key is new once.
async fn shared_by_tasks(place: Location) {
    let plan = plan(20_000, 1e-7);
    let hasher = Hasher::seeded(7);
    let mut created = aio::RedisFilter::create(&place, &plan, hasher, &options())
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let mut filter = created.clone();
        tasks.spawn(async move {
            let mut keys = keys(0..20_000);
            keys.rotate_left(task * 2_500);
            let mut sum = 0;
            for keys in keys.chunks(1_000) {
                let mut new = vec![false; keys.len()];
                filter.insert_many(keys, &mut new).await.unwrap();
                sum += count(&new);
            }
            sum
        });
    }
    let news = tasks.join_all().await;
    assert_eq!(news.iter().sum::<usize>(), 20_000);

    let all_keys = keys(0..20_000);
    let mut local = AnyFilter::from_plan(&plan, hasher).unwrap();
    local
        .insert_many(&all_keys, &mut vec![false; all_keys.len()])
        .unwrap();
    assert!(
        body(&created.download().await.unwrap()) == body(&local),
        "the bytes differ"
    );
    let mut opened = aio::RedisFilter::open(&place, &options()).await.unwrap();
    let mut found = vec![false; all_keys.len()];
    opened.contains_many(&all_keys, &mut found).await.unwrap();
    assert!(all(&found));
    assert!(!opened.contains("absent").await.unwrap());
    assert!(opened.insert("absent").await.unwrap());
    assert!(opened.contains("absent").await.unwrap());
    opened.verify().await.unwrap();
    let keys = opened.keys().await.unwrap().get();
    assert!((19_500..20_500).contains(&keys), "{keys}");
    assert!(opened.rate_now().await.unwrap() < 2e-7);
    opened.expire_in(Duration::from_secs(100)).await.unwrap();
    assert!(opened.time_to_live().await.unwrap().is_some());
    opened.persist().await.unwrap();
    assert_eq!(opened.time_to_live().await.unwrap(), None);
    opened.clear().await.unwrap();
    assert!(!opened.contains("absent").await.unwrap());
    opened.union_with(&local).await.unwrap();
    assert!(
        body(&opened.download().await.unwrap()) == body(&local),
        "the bytes differ"
    );
    opened.delete().await.unwrap();
    assert!(!aio::RedisFilter::exists(&place, &options()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_by_tasks_on_one_node() {
    shared_by_tasks(at(server(), "tasks")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_by_tasks_in_a_cluster() {
    shared_by_tasks(location(&cluster().location("tasks"))).await;
}

#[tokio::test]
async fn counting_and_growing() {
    let place = at(server(), "async-counting");
    let plan = Plan::one_line(Kind::Counting, 1_000, 1e-4).unwrap();
    let hasher = Hasher::seeded(7);
    let mut filter = aio::RedisFilter::create(&place, &plan, hasher, &options())
        .await
        .unwrap();
    filter.insert("ada").await.unwrap();
    filter.insert("ada").await.unwrap();
    assert_eq!(filter.count("ada").await.unwrap(), 2);
    assert!(filter.remove("ada").await.unwrap() && filter.contains("ada").await.unwrap());
    assert!(filter.remove("ada").await.unwrap() && !filter.contains("ada").await.unwrap());
    assert!(!filter.remove("ada").await.unwrap());
    filter.delete().await.unwrap();

    let place = at(server(), "async-growing");
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let mut filter = aio::RedisFilter::create(&place, &plan, hasher, &options())
        .await
        .unwrap();
    let all_keys = keys(0..10_000);
    let mut new = vec![false; all_keys.len()];
    filter.insert_many(&all_keys, &mut new).await.unwrap();
    assert!(count(&new) > 9_900);
    let mut found = vec![false; all_keys.len()];
    filter.contains_many(&all_keys, &mut found).await.unwrap();
    assert!(all(&found));
    let file = filter.download().await.unwrap();
    let mut there = vec![false; all_keys.len()];
    file.contains_many(&all_keys, &mut there);
    assert!(all(&there));
    filter.delete().await.unwrap();
    let copied = aio::RedisFilter::upload(&place, &file, &options())
        .await
        .unwrap();
    copied.delete().await.unwrap();
}

/// Silence and loss are errors here, too, and no call waits forever.
#[tokio::test]
async fn silence_and_loss() {
    let mut server = Server::start(&[]);
    let place = at(&server, "async-silence");
    let plan = plan(1_000, 0.01);
    let hasher = Hasher::default();
    aio::RedisFilter::create(&place, &plan, hasher, &options())
        .await
        .unwrap();
    let mut filter = aio::RedisFilter::open(&place, &impatient()).await.unwrap();
    let all_keys = keys(0..500);
    let mut new = vec![false; all_keys.len()];
    server.freeze();
    let patience = Duration::from_secs(60);
    let added = tokio::time::timeout(patience, filter.insert_many(&all_keys, &mut new)).await;
    let error = added.expect("it hangs").unwrap_err();
    assert!(
        matches!(&error, Error::Unconfirmed { keys, .. } if keys.len() == 500),
        "{error:?}"
    );
    assert_eq!(count(&new), 0);
    let asked = tokio::time::timeout(patience, filter.contains("x")).await;
    assert!(asked.expect("it hangs").is_err());
    server.thaw();
    let mut filter = aio::RedisFilter::open(&place, &options()).await.unwrap();
    filter.insert_many(&all_keys, &mut new).await.unwrap();
    assert!(filter.contains(&all_keys[0]).await.unwrap());

    // Restarted, and empty.
    server.kill();
    let down = tokio::time::timeout(patience, aio::RedisFilter::open(&place, &impatient())).await;
    assert!(down.expect("it hangs").is_err());
    server.restart();
    let lost = tokio::time::timeout(patience, filter.contains(&all_keys[0])).await;
    let error = lost.expect("it hangs").unwrap_err();
    assert!(
        matches!(error, Error::MissingChunk { .. } | Error::Gone { .. }),
        "{error:?}"
    );
}
