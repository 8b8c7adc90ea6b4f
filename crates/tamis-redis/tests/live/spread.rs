//! A filter larger than one node's share is spread evenly over the masters.

use crate::common::Cluster;
use crate::*;

/// The growth of each master's memory.
fn shares(cluster: &Cluster, bytes: u64) -> Vec<u64> {
    let place = location(&cluster.location("spread"));
    let used = || -> Vec<u64> {
        let masters = cluster.masters();
        let servers = masters.iter().map(|node| cluster.server(node.port));
        servers
            .map(|server| {
                server
                    .info("memory", "used_memory")
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect()
    };
    let before = used();
    let plan = Plan::of(
        tamis::internals::raw::BlockedShape::new(bytes / 64, 5, 1).unwrap(),
        bytes * 8 / 10,
    );
    let mut filter = RedisFilter::create(&place, &plan, Hasher::default(), &options()).unwrap();
    assert_eq!(filter.bytes(), bytes);
    let keys = keys(0..10_000);
    assert_eq!(count(&insert(&mut filter, &keys)), keys.len());
    assert!(all(&contains(&mut filter, &keys)));
    filter.verify().unwrap();
    let shares: Vec<u64> = used()
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect();
    // Besides the filter, only connections and replication backlogs take
    // memory.
    let sum: u64 = shares.iter().sum();
    println!("{bytes} bytes take {sum}: {shares:?}");
    assert!(
        sum as f64 > bytes as f64 && (sum as f64) < bytes as f64 * 1.01 + 5e6,
        "{shares:?}"
    );
    filter.delete().unwrap();
    shares
}

fn is_even(shares: &[u64]) {
    let third = shares.iter().sum::<u64>() as f64 / 3.0;
    for share in shares {
        let off = (*share as f64 / third - 1.0).abs();
        assert!(
            off < 0.1,
            "{share} is {:.1} % off a third: {shares:?}",
            off * 100.0
        );
    }
}

/// 192 MB; 2 GB with `TAMIS_LONG`.
#[test]
fn thirds() {
    let cluster = Cluster::start(&[]);
    // 48 whole chunks.
    is_even(&shares(&cluster, 48 * 65_532 * 64));
    if std::env::var_os("TAMIS_LONG").is_some() {
        is_even(&shares(&cluster, 2 << 30));
    }
}
