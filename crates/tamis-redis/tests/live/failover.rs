//! A master dies under load and its replica takes over: keys confirmed with
//! `WAIT` are still there, and the run completes.

use crate::common::{Cluster, until};
use crate::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tamis_redis::Error;

const WORKERS: u64 = 3;
const BATCH: u64 = 500;

/// Adds batches until told to stop; returns how many keys were confirmed. Sends
/// unconfirmed keys again, as a worker should.
fn load(
    place: &Location,
    options: &Options,
    worker: u64,
    confirmed: &AtomicU64,
    stop: &AtomicBool,
) {
    let mut filter = RedisFilter::open(place, options).unwrap();
    while !stop.load(Relaxed) {
        let first = confirmed.load(Relaxed);
        let mut batch = keys_of(worker, first..first + BATCH);
        while !batch.is_empty() {
            let mut new = vec![false; batch.len()];
            match filter.insert_many(&batch, &mut new) {
                Ok(()) => batch.clear(),
                Err(Error::Unconfirmed { keys, of, .. }) => {
                    assert_eq!(of, batch.len());
                    batch = keys.into_iter().map(|i| batch[i].clone()).collect();
                }
                Err(error) => panic!("worker {worker}: {error}"),
            }
        }
        confirmed.store(first + BATCH, Relaxed);
    }
}

fn keys_of(worker: u64, numbers: std::ops::Range<u64>) -> Vec<String> {
    keys(numbers.map(|i| i * WORKERS + worker))
}

/// Nine chunks, three on each master.
pub(crate) fn large() -> Plan {
    plan(29_000_000, 0.01)
}

/// Runs workers while `unrest` happens, and looks up every confirmed key
/// afterwards. The filter has the same bytes as a local one, except for growing
/// filters, whose layers depend on the workers' order, and windows.
pub(crate) fn survives(
    cluster: &mut Cluster,
    name: &str,
    plan: &Plan,
    options: &Options,
    unrest: impl FnOnce(&mut Cluster),
) {
    let place = location(&cluster.location(name));
    let hasher = Hasher::seeded(7);
    RedisFilter::create(&place, plan, hasher, options).unwrap();
    let mut local = AnyFilter::from_plan(plan, hasher).unwrap();
    let confirmed: Vec<AtomicU64> = (0..WORKERS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let total = || {
        confirmed
            .iter()
            .map(|keys| keys.load(Relaxed))
            .collect::<Vec<_>>()
    };
    // Waits until each worker has added at least this many keys.
    let progress = |what: &str| {
        let before = total();
        until(what, Duration::from_secs(100), || {
            total()
                .iter()
                .zip(&before)
                .all(|(now, before)| *now >= before + 4 * BATCH)
        });
    };
    std::thread::scope(|scope| {
        // The workers must end even after a panic here.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let stopping = Stop(&stop);
        for (worker, confirmed) in (0..).zip(&confirmed) {
            let (place, stop) = (&place, &stop);
            scope.spawn(move || load(place, options, worker, confirmed, stop));
        }
        progress("the workers to begin");
        unrest(cluster);
        progress("the workers to go on afterwards");
        drop(stopping);
    });

    let mut filter = RedisFilter::open(&place, options).unwrap();
    filter.verify().unwrap();
    for (worker, confirmed) in (0..).zip(total()) {
        let keys = keys_of(worker, 0..confirmed);
        let found = contains(&mut filter, &keys);
        assert!(
            all(&found),
            "{} confirmed keys are lost",
            keys.len() - count(&found)
        );
        if plan.kind() != Kind::Window {
            local
                .insert_many(&keys, &mut vec![false; keys.len()])
                .unwrap();
        }
    }
    let unlike = matches!(plan.kind(), Kind::Growing | Kind::Window);
    assert!(
        unlike || body(&filter.download().unwrap()) == body(&local),
        "the bytes differ"
    );
    filter.delete().unwrap();
}

/// The master of the filter's first chunk.
fn a_master(cluster: &Cluster, name: &str) -> u16 {
    let chunks = cluster.keys(&format!("{name}:"));
    chunks.first().expect("the filter has chunks").1.port
}

/// Once each in an ordinary run; more often on request.
#[test]
fn a_master_is_killed() {
    let rounds = std::env::var("TAMIS_FAILOVERS").map_or(1, |rounds| rounds.parse().unwrap());
    let mut cluster = Cluster::start(&[]);
    let options = options()
        .response_timeout(Duration::from_secs(2))
        .wait_replicas(1, Duration::from_secs(2));
    let growing = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    for round in 0..rounds {
        let kinds = [
            ("fixed", large()),
            ("growing", growing),
            ("window", daily()),
        ];
        for (kind, plan) in kinds {
            let name = format!("killed-{kind}-{round}");
            survives(&mut cluster, &name, &plan, &options, |cluster| {
                // The home node, and another one.
                let home = cluster.owner(cluster.slot_of(&name)).port;
                let port = match round % 2 {
                    0 => home,
                    _ => a_master(cluster, &name),
                };
                cluster.lose(port);
                // The old master must become a replica, otherwise nothing is
                // confirmed there.
                cluster.server_mut(port).restart();
                cluster.wait();
            });
        }
    }
}

/// The operator swaps the roles, which loses nothing even without `WAIT`.
#[test]
fn roles_are_changed_by_hand() {
    let mut cluster = Cluster::start(&[]);
    survives(
        &mut cluster,
        "changed-roles",
        &large(),
        &options(),
        |cluster| {
            for node in cluster
                .nodes()
                .iter()
                .filter(|node| node.replica_of.is_some())
            {
                cluster.server(node.port).cli(&["CLUSTER", "FAILOVER"]);
                until("the replica to be master", Duration::from_secs(60), || {
                    cluster
                        .masters()
                        .iter()
                        .any(|master| master.port == node.port)
                });
                cluster.wait();
            }
        },
    );
}

/// Replicas don't keep up: the keys are on the master, but that isn't enough.
#[test]
fn too_few_replicas() {
    let place = at(server(), "no-replicas");
    let (created, _) = pair(&place, &plan(1_000, 0.01));
    drop(created);
    let options = options().wait_replicas(1, Duration::from_millis(100));
    let mut filter = RedisFilter::open(&place, &options).unwrap();
    let keys = keys(0..100);
    let mut new = vec![false; keys.len()];
    let error = filter.insert_many(&keys, &mut new).unwrap_err();
    let text = error.to_string();
    match error {
        Error::Unconfirmed { keys, of, .. } => assert_eq!((keys.len(), of), (100, 100)),
        other => panic!("{other:?}"),
    }
    assert!(text.contains("replica"), "{text}");
    assert!(
        all(&contains(&mut filter, &keys)),
        "asking needs no replicas"
    );
    filter.delete().unwrap();
}

/// One of three masters is silent: its keys aren't confirmed, the others' are.
#[test]
fn a_silent_master() {
    let mut cluster = Cluster::start(&[]);
    let place = location(&cluster.location("silent"));
    let (created, _) = pair(&place, &plan(29_000_000, 0.01));
    drop(created);
    // Asks only once, otherwise a replica that takes over might answer.
    let once = impatient().retry_for(Duration::ZERO);
    let mut filter = RedisFilter::open(&place, &once).unwrap();
    // Without the record, nothing is confirmed.
    let home = cluster.owner(cluster.slot_of("silent")).port;
    let chunks = cluster.keys("silent:");
    let mut ports = chunks.iter().map(|(_, node)| node.port);
    let port = ports.find(|port| *port != home).unwrap();
    cluster.server(port).freeze();
    let batch = keys(0..3_000);
    let mut new = vec![false; batch.len()];
    let error = filter.insert_many(&batch, &mut new).unwrap_err();
    let Error::Unconfirmed { keys: open, of, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(of, batch.len());
    assert!(
        open.len() > 300 && open.len() < 2_700,
        "{} of {of} open",
        open.len()
    );
    assert!(
        open.iter().all(|i| !new[*i]),
        "an unanswered key is called new"
    );
    // Keys that aren't listed were added, and reported as new.
    let done: Vec<_> = (0..batch.len())
        .filter(|i| open.binary_search(i).is_err())
        .collect();
    assert!(done.iter().all(|i| new[*i]));
    cluster.server_mut(port).thaw();
    cluster.wait();
    let mut filter = RedisFilter::open(&place, &options()).unwrap();
    let done: Vec<_> = done.into_iter().map(|i| batch[i].clone()).collect();
    assert!(
        all(&contains(&mut filter, &done)),
        "a confirmed key is lost"
    );
}
