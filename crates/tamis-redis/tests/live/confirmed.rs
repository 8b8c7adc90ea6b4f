//! Keys confirmed with replicas are on the replica that takes over, whatever
//! the server counts as a write.

use crate::common::{Proxy, Server, until};
use crate::*;
use std::thread::JoinHandle;
use tamis_redis::Error;

/// A master and its replica, with a proxy between them.
struct Pair {
    master: Server,
    replica: Server,
    stream: Proxy,
}

impl Pair {
    fn start() -> Self {
        let master = Server::start(&[]);
        let stream = Proxy::start(master.port());
        let replica = Server::start(&[&format!("replicaof 127.0.0.1 {}", stream.port())]);
        until("the replica to follow", Duration::from_secs(60), || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
                && master.info("replication", "connected_slaves").as_deref() == Some("1")
        });
        Self {
            master,
            replica,
            stream,
        }
    }

    /// Whether a worker is waiting for the replica.
    fn someone_waits(&self) -> bool {
        let blocked = self.master.info("clients", "blocked_clients");
        blocked.is_some_and(|blocked| blocked != "0")
    }

    /// Kills the master and lets the replica take over.
    fn fail_over(&mut self) -> &Server {
        self.master.kill();
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]);
        &self.replica
    }
}

/// Waits long for the replica, but not for the server.
fn careful() -> Options {
    impatient().wait_replicas(1, Duration::from_secs(30))
}

fn add(place: &Location, options: Options) -> JoinHandle<Result<(), Error>> {
    let place = place.clone();
    std::thread::spawn(move || {
        let mut filter = RedisFilter::open(&place, &options)?;
        filter.insert_many(&keys(0..3), &mut [false; 3])
    })
}

/// Checks that the confirmed keys are on the replica.
fn holds(mut pair: Pair, name: &str, added: JoinHandle<Result<(), Error>>) {
    let replica = pair.fail_over();
    let confirmed = match added.join().unwrap() {
        Ok(()) => true,
        Err(Error::Unconfirmed { keys, .. }) if keys.len() == 3 => false,
        Err(error) => panic!("{error}"),
    };
    let mut filter = RedisFilter::open(&at(replica, name), &options()).unwrap();
    let there = contains(&mut filter, &keys(0..3));
    assert!(!confirmed || all(&there), "confirmed, and {there:?}");
    assert!(!confirmed, "there was no replica to confirm them");
}

fn kinds() -> [(&'static str, Plan); 2] {
    let growing = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    [("fixed", plan(1_000, 0.01)), ("growing", growing)]
}

/// The connection breaks while the worker waits for the replica. It adds the
/// keys again, which exist already.
#[test]
fn keys_that_are_sent_again() {
    for (name, plan) in kinds() {
        let pair = Pair::start();
        let place = at(&pair.master, name);
        RedisFilter::create(&place, &plan, Hasher::seeded(7), &careful()).unwrap();
        pair.stream.hold();
        let added = add(&place, careful());
        until("the worker to wait", Duration::from_secs(60), || {
            pair.someone_waits()
        });
        pair.master.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        until(
            "the worker to be told something",
            Duration::from_secs(60),
            || added.is_finished() || pair.someone_waits(),
        );
        holds(pair, name, added);
    }
}

/// A process dies before its keys are confirmed, and another adds the same
/// keys.
#[test]
fn keys_that_another_has_left_unconfirmed() {
    for (name, plan) in kinds() {
        let pair = Pair::start();
        let place = at(&pair.master, name);
        RedisFilter::create(&place, &plan, Hasher::seeded(7), &careful()).unwrap();
        pair.stream.hold();
        let unconfirmed = impatient().wait_replicas(1, Duration::from_millis(100));
        let first = add(&place, unconfirmed).join().unwrap().unwrap_err();
        assert!(matches!(first, Error::Unconfirmed { .. }), "{first:?}");
        let added = add(&place, careful());
        until(
            "the worker to be told something",
            Duration::from_secs(60),
            || added.is_finished() || pair.someone_waits(),
        );
        holds(pair, name, added);
    }
}

/// Keys that a growing filter finds in its older layers.
#[test]
fn keys_in_an_older_layer() {
    let pair = Pair::start();
    let place = at(&pair.master, "older");
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &careful()).unwrap();
    let confirmed = keys(10..900);
    filter
        .insert_many(&confirmed, &mut vec![false; confirmed.len()])
        .unwrap();
    pair.stream.hold();
    // Added by workers that don't wait for the replica.
    let mut hasty = RedisFilter::open(&place, &options()).unwrap();
    insert(&mut hasty, &keys(0..10_000));
    let added = add(&place, careful());
    until(
        "the worker to be told something",
        Duration::from_secs(60),
        || added.is_finished() || pair.someone_waits(),
    );
    holds(pair, "older", added);
}

/// In a cluster, keys are confirmed only when the record and the layers are on
/// the home's replica, too: without these, they would be lost with the home.
#[test]
fn the_way_to_the_keys() {
    let cluster = cluster();
    let careful = impatient().wait_replicas(1, Duration::from_millis(500));
    for kind in [Kind::Blocked, Kind::Growing] {
        // A filter whose string isn't on the node of its record.
        let plan = Plan::one_line(kind, 1_000, 0.01).unwrap();
        let (place, home) = (0..)
            .find_map(|i| {
                let name = format!("way-{kind}-{i}");
                let home = cluster.owner(cluster.slot_of(&name));
                let place = location(&cluster.location(&name));
                RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
                let chunks = cluster.keys(&format!("{name}:"));
                match chunks.iter().all(|(_, node)| node.port != home.port) {
                    true => Some((place, home)),
                    false => {
                        RedisFilter::delete_at(&place, &options()).unwrap();
                        None
                    }
                }
            })
            .unwrap();
        let nodes = cluster.nodes();
        let replica = nodes
            .iter()
            .find(|node| node.replica_of.as_ref() == Some(&home.id))
            .unwrap();
        let mut filter = RedisFilter::open(&place, &careful).unwrap();
        cluster.server(replica.port).freeze();
        let mut new = [false; 100];
        let added = filter.insert_many(&keys(0..100), &mut new);
        cluster.server(replica.port).thaw();
        let error = added.unwrap_err();
        assert!(
            matches!(&error, Error::Unconfirmed { keys, .. } if keys.len() == 100),
            "{kind}: {error:?}"
        );
        cluster.wait();
        let mut sent_again = || filter.insert_many(&keys(0..100), &mut new).is_ok();
        until("the replica to follow", Duration::from_secs(60), || {
            sent_again()
        });
        filter.delete().unwrap();
    }
}
