//! The node with a filter's record comes back empty: parts on other nodes keep
//! clients from silently creating a new filter.

use crate::common::Cluster;
use crate::failover::large;
use crate::*;
use tamis_redis::Error;

/// A cluster whose replicas don't take over, so that a node can come back
/// empty.
pub(crate) fn cluster() -> Cluster {
    Cluster::start(&["cluster-replica-no-failover yes"])
}

/// Restarts the node of a key with the data that it has saved.
pub(crate) fn restart_owner(cluster: &mut Cluster, key: &str) {
    let port = cluster.owner(cluster.slot_of(key)).port;
    cluster.server_mut(port).kill();
    cluster.server_mut(port).restart();
    cluster.wait();
}

fn is_remains<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::Remains { .. }))
}

fn plans() -> [Plan; 2] {
    [large(), Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap()]
}

/// The number in the variable `TAMIS_TIMES`; once by default.
pub(crate) fn times() -> usize {
    let times = std::env::var("TAMIS_TIMES").ok();
    times.and_then(|times| times.parse().ok()).unwrap_or(1)
}

#[test]
fn the_home_node_comes_back_empty() {
    let mut cluster = cluster();
    for (time, plan) in (0..times()).flat_map(|time| plans().map(|plan| (time, plan))) {
        let name = format!("homeless-{}-{time}", plan.kind());
        let place = location(&cluster.location(&name));
        let mut worker = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        let old = keys(0..20_000);
        insert(&mut worker, &old);
        restart_owner(&mut cluster, &name);
        let left = cluster.keys(&format!("{name}:"));
        assert!(left.len() > 3, "{left:?}");

        // Neither the worker nor a new one treats the filter as empty.
        let mut found = vec![false; old.len()];
        let asked = worker.contains_many(&old, &mut found);
        assert!(matches!(asked, Err(Error::Gone { .. })), "{asked:?}");
        let opened = RedisFilter::open(&place, &options());
        assert!(is_remains(opened), "{name}");
        let created = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options());
        assert!(is_remains(created), "{name}");
        RedisFilter::delete_at(&place, &options()).unwrap();
        assert_eq!(cluster.keys(&format!("{name}:")).len(), 0, "{name}");
        let opened = RedisFilter::open(&place, &options());
        assert!(matches!(opened, Err(Error::NotFound { .. })), "{opened:?}");
        RedisFilter::create(&place, &plan, Hasher::seeded(7), &options())
            .unwrap()
            .delete()
            .unwrap();
    }
}

/// A filter from before witnesses: its parts are searched for before another is
/// created.
#[test]
fn without_a_witness() {
    let mut cluster = cluster();
    for plan in plans() {
        let name = format!("unseen-{}", plan.kind());
        let place = location(&cluster.location(&name));
        let create = || RedisFilter::create(&place, &plan, Hasher::seeded(7), &options());
        insert(&mut create().unwrap(), &keys(0..20_000));
        for (witness, node) in cluster.keys(&format!("{name}:{{witness.")) {
            cluster.server(node.port).cli(&["DEL", &witness]);
        }
        restart_owner(&mut cluster, &name);
        assert!(is_remains(create()), "{name}");
        // Replacing it explicitly is allowed.
        let over = RedisFilter::create_over(&place, &plan, Hasher::seeded(7), &options());
        let mut over = over.unwrap();
        over.verify().unwrap();
        assert_eq!(count(&contains(&mut over, &keys(0..100))), 0);
        over.delete().unwrap();
        assert_eq!(cluster.keys(&format!("{name}:")).len(), 0, "{name}");
    }
}

/// Remains of an expired filter don't keep a new one from being created.
#[test]
fn an_expired_filter_in_a_cluster() {
    let cluster = cluster();
    let place = location(&cluster.location("expired"));
    for plan in plans() {
        let create = || RedisFilter::create(&place, &plan, Hasher::seeded(7), &options());
        let mut filter = create().unwrap();
        filter.expire_in(Duration::from_millis(50)).unwrap();
        let owner = cluster.owner(cluster.slot_of("expired")).port;
        common::until("the record to expire", Duration::from_secs(60), || {
            cluster.server(owner).cli(&["EXISTS", "expired"]) == "0"
        });
        create().unwrap().delete().unwrap();
    }
}

/// The next writer creates the missing witness of an older filter.
#[test]
fn a_witness_comes_later() {
    let place = at(server(), "later");
    for kind in [Kind::Blocked, Kind::Growing] {
        let plan = Plan::one_line(kind, 1_000, 0.01).unwrap();
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        filter.expire_in(Duration::from_secs(500)).unwrap();
        let witness = server().cli(&["KEYS", "later:{witness.*}"]);
        let hash = server().cli(&["KEYS", "{later}:[0-9a-f]*[0-9a-f]"]);
        server().cli(&["DEL", &witness]);
        server().cli(&["HDEL", &hash, "made", "mark", "keys", "written"]);
        let mut worker = RedisFilter::open(&place, &options()).unwrap();
        insert(&mut worker, &keys(0..3_000));
        assert_eq!(server().cli(&["EXISTS", &witness]), "1");
        let left: i64 = server().cli(&["TTL", &witness]).parse().unwrap();
        assert!((1..=510).contains(&left), "{left}");
        assert!(all(&contains(&mut worker, &keys(0..3_000))));
        worker.verify().unwrap();
        worker.delete().unwrap();
        assert_eq!(server().cli(&["KEYS", "*later*"]), "");
    }
}
