//! The master named by Sentinels.

use crate::common::{Server, until};
use crate::*;
use std::time::Instant;
use tamis_redis::{Error, aio};

/// A master and a replica, watched by a Sentinel.
struct Watched {
    master: Server,
    replica: Server,
    sentinel: Server,
}

impl Watched {
    fn start() -> Self {
        let master = Server::start(&[]);
        let of = format!("replicaof 127.0.0.1 {}", master.port());
        let replica = Server::start(&[&of]);
        let in_step = |server: &Server| {
            server.info("replication", "master_link_status").as_deref() == Some("up")
        };
        until("the replica to be in step", Duration::from_secs(60), || {
            in_step(&replica)
        });
        let sentinel = Server::sentinel("main", &master);
        let watched = Self {
            master,
            replica,
            sentinel,
        };
        until("Sentinel to know both", Duration::from_secs(60), || {
            let replicas = watched.sentinel.try_cli(&["SENTINEL", "REPLICAS", "main"]);
            replicas.is_ok_and(|text| text.contains(&watched.replica.port().to_string()))
        });
        watched
    }

    fn at(&self, name: &str) -> Location {
        // The first Sentinel is down.
        let nobody = "127.0.0.1:1";
        let sentinel = self.sentinel.address();
        location(&format!("redis+sentinel://{nobody},{sentinel}/main/{name}"))
    }
}

/// The master is killed under load: the worker continues with the new one, and
/// keys confirmed by a replica are there.
#[test]
fn a_failover() {
    let mut watched = Watched::start();
    let at = watched.at("seen");
    let patient = options().retry_for(Duration::from_secs(120));
    let plan = plan(100_000, 0.01);
    let wait = patient.clone().wait_replicas(1, Duration::from_secs(30));
    let mut filter = RedisFilter::create(&at, &plan, Hasher::default(), &wait).unwrap();
    insert(&mut filter, &keys(0..20_000));
    drop(filter);

    // The new master has no replica, so don't wait for one from here on.
    let mut filter = RedisFilter::open(&at, &patient).unwrap();
    assert!(all(&contains(&mut filter, &keys(0..1_000))));
    watched.master.kill();
    insert(&mut filter, &keys(20_000..40_000));
    assert!(filter.stats().reconnects + filter.stats().connections > 1);
    assert!(all(&contains(&mut filter, &keys(0..40_000))));
    assert_eq!(
        watched.replica.info("replication", "role").as_deref(),
        Some("master")
    );
    filter.verify().unwrap();

    // The old master comes back as a replica, and clients don't use it.
    watched.master.restart();
    let replica_again = || watched.master.info("replication", "role").as_deref() == Some("slave");
    until(
        "Sentinel to demote it",
        Duration::from_secs(60),
        replica_again,
    );
    let mut opened = RedisFilter::open(&at, &patient).unwrap();
    assert!(all(&contains(&mut opened, &keys(0..40_000))));
}

/// A master that steps down keeps connections of clients that only read, and
/// would answer them from old data.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_on_demand() {
    let watched = Watched::start();
    let at = watched.at("seen");
    let patient = options().retry_for(Duration::from_secs(120));
    let plan = plan(10_000, 0.01);
    let created = aio::RedisFilter::create(&at, &plan, Hasher::default(), &patient);
    let mut filter = created.await.unwrap();
    filter.insert("before").await.unwrap();
    // Keys that a replica lacks when it takes over are lost, but this test
    // isn't about those.
    let offset = |server: &Server, field| server.info("replication", field);
    until("the replica to have it", Duration::from_secs(60), || {
        offset(&watched.master, "master_repl_offset")
            == offset(&watched.replica, "slave_repl_offset")
    });
    // The Sentinel may not know the replica yet.
    let begun = || {
        let command = ["SENTINEL", "FAILOVER", "main"];
        watched.sentinel.try_cli(&command).is_ok()
    };
    until("a failover to begin", Duration::from_secs(90), begun);
    let start = Instant::now();
    while watched.master.info("replication", "role").as_deref() != Some("slave") {
        assert!(start.elapsed() < Duration::from_secs(90), "no failover");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    filter.insert("after").await.unwrap();
    assert!(filter.contains("before").await.unwrap());
    assert!(filter.contains("after").await.unwrap());
    // The new master has the keys, not only the old one.
    assert!(
        RedisFilter::open(&crate::at(&watched.replica, "seen"), &options())
            .unwrap()
            .contains("after")
            .unwrap()
    );
}

#[test]
fn what_sentinels_do_not_know() {
    let watched = Watched::start();
    let text = format!("redis+sentinel://{}/other/seen", watched.sentinel.address());
    let error = RedisFilter::open(&location(&text), &impatient())
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(text.contains(&watched.sentinel.address()), "{text}");
    assert!(text.contains("knows no master called other"), "{text}");
}

/// A Sentinel that requires a password gets that of the servers.
#[test]
fn a_sentinel_with_a_password() {
    let watched = Watched::start();
    let set = ["ACL", "SETUSER", "default", "resetpass", ">sesame"];
    watched.sentinel.cli(&set);
    let refused = RedisFilter::exists(&watched.at("seen"), &impatient());
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Server { .. }), "{error:?}");
    // A server without passwords accepts any password of the default user.
    let sentinel = watched.sentinel.address();
    let text = format!("redis+sentinel://default:sesame@{sentinel}/main/seen");
    assert!(!RedisFilter::exists(&location(&text), &options()).unwrap());
}

/// A master stalls until the Sentinels replace it, and then continues: it still
/// believes it is the master, and would confirm keys that will be lost.
#[test]
fn a_master_that_wakes_up() {
    for blocking in [true, false] {
        let watched = Watched::start();
        let place = watched.at("seen");
        let plan = plan(100_000, 0.01);
        // Clients wait for answers longer than the stall lasts.
        let patient = options()
            .response_timeout(Duration::from_secs(120))
            .retry_for(Duration::from_secs(240));
        let mut filter = RedisFilter::create(&place, &plan, Hasher::default(), &patient).unwrap();
        let mut idle = RedisFilter::open(&place, &patient).unwrap();
        insert(&mut filter, &keys(0..1_000));
        until("the replica to have it", Duration::from_secs(60), || {
            watched.master.info("replication", "master_repl_offset")
                == watched.replica.info("replication", "slave_repl_offset")
        });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut other = runtime
            .block_on(aio::RedisFilter::open(&place, &patient))
            .unwrap();
        assert!(runtime.block_on(other.contains(&keys(0..1)[0])).unwrap());

        watched.master.freeze();
        // One batch is in flight during the stall, and one comes after it.
        let adding = std::thread::spawn(move || {
            let some = keys(1_000..2_000);
            let mut new = vec![false; some.len()];
            match blocking {
                true => filter.insert_many(&some, &mut new).unwrap(),
                false => runtime
                    .block_on(other.insert_many(&some, &mut new))
                    .unwrap(),
            }
        });
        let promoted = || watched.replica.info("replication", "role").as_deref() == Some("master");
        until("a failover", Duration::from_secs(120), promoted);
        watched.master.thaw();
        insert(&mut idle, &keys(2_000..3_000));
        adding.join().unwrap();
        // Confirmed keys are on the remaining master.
        let kept = crate::at(&watched.replica, "seen");
        let mut kept = RedisFilter::open(&kept, &options()).unwrap();
        assert!(all(&contains(&mut kept, &keys(0..3_000))));
    }
}
