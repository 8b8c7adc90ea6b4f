//! A server restarts with an older snapshot: confirmed keys are lost, and
//! clients that can know it report it.

use crate::common::Server;
use crate::failover::large;
use crate::homeless::{cluster, restart_owner, times};
use crate::*;
use tamis_redis::Error;

fn is_rolled_back<T: std::fmt::Debug>(done: Result<T, Error>) {
    assert!(matches!(done, Err(Error::RolledBack { .. })), "{done:?}");
}

fn kinds() -> [Plan; 4] {
    let of = |kind| Plan::one_line(kind, 100_000, 0.01).unwrap();
    [
        of(Kind::Blocked),
        of(Kind::Counting),
        of(Kind::Growing),
        daily(),
    ]
}

fn try_insert(filter: &mut RedisFilter, keys: &[String]) -> Result<(), Error> {
    filter.insert_many(keys, &mut vec![false; keys.len()])
}

fn try_contains(filter: &mut RedisFilter, keys: &[String]) -> Result<(), Error> {
    filter.contains_many(keys, &mut vec![false; keys.len()])
}

/// With one server, everything is older. Running workers notice, both those
/// that add and those that look up; a new one can't.
#[test]
fn an_older_snapshot() {
    for (time, plan) in (0..times()).flat_map(|time| kinds().map(|plan| (time, plan))) {
        let mut server = Server::start(&[]);
        let name = format!("older-{}-{time}", plan.kind());
        let place = at(&server, &name);
        let open = || RedisFilter::open(&place, &options()).unwrap();
        let mut adds = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        insert(&mut adds, &keys(0..10_000));
        server.cli(&["SAVE"]);
        insert(&mut adds, &keys(10_000..20_000));
        let mut asks = open();
        assert!(all(&contains(&mut asks, &keys(0..20_000))));
        let mut also_adds = open();
        insert(&mut also_adds, &keys(20_000..20_001));
        server.kill();
        server.restart();
        if plan.kind() == Kind::Counting {
            // Keys in flight when the connection broke are never sent twice.
            let lost = try_insert(&mut adds, &keys(30_000..30_100));
            assert!(matches!(lost, Err(Error::Unconfirmed { .. })), "{lost:?}");
        }
        is_rolled_back(try_insert(&mut adds, &keys(30_000..30_100)));
        is_rolled_back(try_contains(&mut asks, &keys(0..20_000)));
        is_rolled_back(try_contains(&mut also_adds, &keys(0..1)));
        // Once noticed, the error stays.
        is_rolled_back(try_insert(&mut adds, &keys(0..1)));
        is_rolled_back(try_contains(&mut adds, &keys(0..1)));
        is_rolled_back(try_insert(&mut asks, &keys(0..1)));
        let mut new = open();
        assert!(all(&contains(&mut new, &keys(0..10_000))));
        insert(&mut new, &keys(10_000..20_000));
        assert!(all(&contains(&mut new, &keys(0..20_000))));
        new.verify().unwrap();
    }
}

/// Other workers have added more keys than were lost before a worker looks: its
/// own last keys show the loss.
#[test]
fn others_were_faster() {
    for plan in [&kinds()[0], &kinds()[2]] {
        let mut server = Server::start(&[]);
        let place = at(&server, "faster");
        let mut adds = RedisFilter::create(&place, plan, Hasher::seeded(7), &options()).unwrap();
        insert(&mut adds, &keys(0..1_000));
        server.cli(&["SAVE"]);
        insert(&mut adds, &keys(1_000..1_100));
        server.kill();
        server.restart();
        let mut other = RedisFilter::open(&place, &options()).unwrap();
        insert(&mut other, &keys(50_000..60_000));
        is_rolled_back(try_insert(&mut adds, &keys(70_000..70_010)));
        insert(&mut other, &keys(60_000..60_010));
    }
}

/// Someone has cleared the filter: this isn't a loss.
#[test]
fn a_filter_that_was_cleared() {
    for plan in [&kinds()[0], &kinds()[2]] {
        let mut server = Server::start(&["appendonly yes", "appendfsync always"]);
        let place = at(&server, "cleared");
        let mut adds = RedisFilter::create(&place, plan, Hasher::seeded(7), &options()).unwrap();
        insert(&mut adds, &keys(0..1_000));
        RedisFilter::open(&place, &options())
            .unwrap()
            .clear()
            .unwrap();
        server.kill();
        server.restart();
        insert(&mut adds, &keys(1_000..2_000));
        assert_eq!(count(&contains(&mut adds, &keys(1_000..2_000))), 1_000);
        adds.verify().unwrap();
    }
}

/// The snapshot is current and nothing was lost: no errors.
#[test]
fn a_snapshot_of_everything() {
    for plan in kinds() {
        let mut server = Server::start(&[]);
        let place = at(&server, "same");
        let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        insert(&mut filter, &keys(0..10_000));
        server.cli(&["SAVE"]);
        server.kill();
        server.restart();
        assert!(all(&contains(&mut filter, &keys(0..10_000))));
        insert(&mut filter, &keys(10_000..20_000));
        filter.verify().unwrap();
    }
}

/// In a cluster, only the record's node is older: clients that open the filter
/// notice by its witness, until the loss is accepted.
#[test]
fn the_record_alone_is_older() {
    let mut cluster = cluster();
    for time in 0..times() {
        let name = format!("record-{time}");
        let place = location(&cluster.location(&name));
        let plan = plan(1_000_000, 0.01);
        let mut adds = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
        insert(&mut adds, &keys(0..10_000));
        let home = cluster.owner(cluster.slot_of(&name)).port;
        cluster.server(home).cli(&["SAVE"]);
        insert(&mut adds, &keys(10_000..30_000));
        restart_owner(&mut cluster, &name);
        is_rolled_back(try_insert(&mut adds, &keys(0..100)));
        is_rolled_back(RedisFilter::open(&place, &options()));
        RedisFilter::accept_loss_at(&place, &options()).unwrap();
        let mut new = RedisFilter::open(&place, &options()).unwrap();
        insert(&mut new, &keys(0..30_000));
        assert!(all(&contains(&mut new, &keys(0..30_000))));
        new.delete().unwrap();
    }
}

/// In a cluster, some parts are older: a worker that has added to them notices,
/// and `verify` sees how few keys they have.
#[test]
fn parts_alone_are_older() {
    let mut cluster = cluster();
    let place = location(&cluster.location("parts"));
    let mut adds = RedisFilter::create(&place, &large(), Hasher::seeded(7), &options()).unwrap();
    insert(&mut adds, &keys(0..20_000));
    let home = cluster.owner(cluster.slot_of("parts")).port;
    let witness = cluster.keys("parts:{witness.")[0].1.port;
    let is_third = |port: u16| port != home && port != witness;
    let parts = cluster.keys("parts:{");
    let (part, node) = parts.iter().find(|(_, node)| is_third(node.port)).unwrap();
    cluster.server(node.port).cli(&["SAVE"]);
    insert(&mut adds, &keys(20_000..60_000));
    adds.verify().unwrap();
    restart_owner(&mut cluster, part);
    is_rolled_back(try_insert(&mut adds, &keys(0..3_000)));
    let mut new = RedisFilter::open(&place, &options()).unwrap();
    is_rolled_back(new.verify());
    new.delete().unwrap();
}
