//! A replica behind `redis://` answers only as long as it follows its master.

use crate::common::{Proxy, Server, until};
use crate::*;
use tamis_redis::{Error, Survey, aio};

/// A master, its replica, and the proxy between them.
struct Followed {
    master: Server,
    wire: Proxy,
    replica: Server,
}

impl Followed {
    fn start() -> Self {
        let master = Server::start(&[]);
        let wire = Proxy::start(master.port());
        let of = format!("replicaof 127.0.0.1 {}", wire.port());
        let replica = Server::start(&[&of]);
        let this = Self {
            master,
            wire,
            replica,
        };
        this.until_linked("up");
        this
    }

    fn link(&self) -> String {
        let status = self.replica.info("replication", "master_link_status");
        status.unwrap_or_default()
    }

    fn until_linked(&self, status: &str) {
        let what = format!("the link to be {status}");
        until(&what, Duration::from_secs(120), || self.link() == status);
    }

    fn until_in_step(&self) {
        until(
            "the replica to be in step",
            Duration::from_secs(120),
            || {
                self.link() == "up"
                    && self.master.info("replication", "master_repl_offset")
                        == self.replica.info("replication", "slave_repl_offset")
            },
        );
    }

    /// Cuts the replica off from its master for good.
    fn cut(&self) {
        let nobody = ["REPLICAOF", "127.0.0.1", "1"];
        self.replica.cli(&nobody);
        self.until_linked("down");
    }

    fn at(&self) -> Location {
        at(&self.replica, "seen")
    }
}

fn once() -> Options {
    options()
        .connect_timeout(Duration::from_secs(10))
        .retry_for(Duration::ZERO)
}

fn is_stale(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("replica of") && text.contains("link")
}

/// The replica knows some keys; keys added since it lost its master would all
/// get a "no".
#[test]
fn a_replica_without_its_master() {
    let followed = Followed::start();
    let (mut filter, _) = pair(&at(&followed.master, "seen"), &plan(10_000, 0.01));
    insert(&mut filter, &keys(0..3_000));
    followed.until_in_step();

    // While it follows, it is as good as its master, apart from a short delay.
    let mut reader = RedisFilter::open(&followed.at(), &once()).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..3_000))));

    followed.cut();
    insert(&mut filter, &keys(3_000..6_000));
    // A client that has it open, and one that opens it.
    let mut found = vec![true; 3_000];
    let asked = reader.contains_many(&keys(3_000..6_000), &mut found);
    let error = asked.unwrap_err();
    assert!(is_stale(&error), "{error}");
    assert!(error.to_string().contains(&followed.replica.address()));
    let error = RedisFilter::open(&followed.at(), &once()).err().unwrap();
    assert!(is_stale(&error), "{error}");
    let servers = format!("redis://{}", followed.replica.address());
    let error = Survey::of(&servers.parse().unwrap(), &once()).unwrap_err();
    assert!(is_stale(&error), "{error}");

    // Clients that allow stale answers get them.
    let lenient = once().allow_stale();
    let mut reader = RedisFilter::open(&followed.at(), &lenient).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..3_000))));
    let survey = Survey::of(&servers.parse().unwrap(), &lenient).unwrap();
    assert_eq!(survey.filters[0].name, "seen");

    // When it follows again, its clients work again.
    let back = ["REPLICAOF", "127.0.0.1", &followed.wire.port().to_string()];
    followed.replica.cli(&back);
    followed.until_in_step();
    let patient = options().retry_for(Duration::from_secs(120));
    let mut reader = RedisFilter::open(&followed.at(), &patient).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..6_000))));
}

/// The same for the asynchronous client, repeatedly: if the link is down before
/// the request, there is no answer.
#[test]
fn again_and_again() {
    let followed = Followed::start();
    let (mut filter, _) = pair(&at(&followed.master, "seen"), &plan(100_000, 0.01));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    insert(&mut filter, &keys(0..100));
    followed.until_in_step();
    for round in 0..3 {
        let mut blocking = RedisFilter::open(&followed.at(), &once()).unwrap();
        let mut other = runtime
            .block_on(aio::RedisFilter::open(&followed.at(), &once()))
            .unwrap();
        followed.cut();
        let some = keys(round * 3_000..(round + 1) * 3_000);
        insert(&mut filter, &some);
        let mut found = vec![true; some.len()];
        let error = blocking.contains_many(&some, &mut found).unwrap_err();
        assert!(is_stale(&error), "{error}");
        assert!(is_stale(&blocking.contains("x").unwrap_err()));
        let asked = runtime.block_on(other.contains_many(&some, &mut found));
        let error = asked.unwrap_err();
        assert!(is_stale(&error), "{error}");
        let opened = runtime.block_on(aio::RedisFilter::open(&followed.at(), &once()));
        assert!(is_stale(&opened.err().unwrap()));
        let back = ["REPLICAOF", "127.0.0.1", &followed.wire.port().to_string()];
        followed.replica.cli(&back);
        followed.until_in_step();
        // The same clients continue.
        until("the answers", Duration::from_secs(60), || {
            blocking.contains_many(&some, &mut found).is_ok() && all(&found)
        });
        until("the answers", Duration::from_secs(60), || {
            let asked = runtime.block_on(other.contains_many(&some, &mut found));
            asked.is_ok() && all(&found)
        });
    }
}

/// The link is up, but no data comes over it any more.
#[test]
fn a_silent_master() {
    let followed = Followed::start();
    let (mut filter, _) = pair(&at(&followed.master, "seen"), &plan(10_000, 0.01));
    insert(&mut filter, &keys(0..1_000));
    followed.until_in_step();
    let strict = once().max_lag(Duration::from_secs(8));
    // Data must arrive now and then.
    followed
        .master
        .cli(&["CONFIG", "SET", "repl-ping-replica-period", "1"]);
    let mut reader = RedisFilter::open(&followed.at(), &strict).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..1_000))));
    followed.wire.hold();
    insert(&mut filter, &keys(1_000..2_000));
    let heard = || {
        let ago = followed
            .replica
            .info("replication", "master_last_io_seconds_ago");
        ago.and_then(|ago| ago.parse::<u32>().ok()).unwrap_or(0)
    };
    until("the silence to last", Duration::from_secs(60), || {
        heard() > 8
    });
    let mut found = vec![true; 1_000];
    let asked = reader.contains_many(&keys(1_000..2_000), &mut found);
    assert!(is_stale(&asked.unwrap_err()));
    assert!(is_stale(
        &RedisFilter::open(&followed.at(), &strict).err().unwrap()
    ));
}

/// A master that becomes a replica keeps its clients.
#[test]
fn a_master_that_steps_down() {
    let server = Server::start(&[]);
    let place = at(&server, "seen");
    let (mut filter, _) = pair(&place, &plan(10_000, 0.01));
    insert(&mut filter, &keys(0..1_000));
    let mut reader = RedisFilter::open(&place, &once()).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..1_000))));
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    // A role holds for a second.
    until(
        "the role to be asked for",
        Duration::from_secs(60),
        || matches!(reader.contains("x"), Err(error) if is_stale(&error)),
    );
    let mut found = vec![true; 1_000];
    assert!(reader.contains_many(&keys(0..1_000), &mut found).is_err());
}

/// A user who isn't allowed to ask for the role can still work.
#[test]
fn a_user_who_may_not_ask() {
    let server = Server::start(&[]);
    drop(pair(&at(&server, "seen"), &plan(1_000, 0.01)));
    let rights = "on >sesame %R~seen %R~seen:* %R~{seen}:* +@read +@connection +eval_ro";
    let user = [
        &["ACL", "SETUSER", "ada"],
        &rights.split(' ').collect::<Vec<_>>()[..],
    ]
    .concat();
    server.cli(&user);
    let text = format!("redis://ada:sesame@{}/seen", server.address());
    let mut filter = RedisFilter::open(&location(&text), &once()).unwrap();
    assert!(!filter.contains("x").unwrap());
}

/// A writable replica confirms keys that its master never gets.
#[test]
fn a_writable_replica() {
    let followed = Followed::start();
    let growing = Plan::one_line(Kind::Growing, 10_000, 0.01).unwrap();
    for (name, plan) in [("seen", plan(10_000, 0.01)), ("more", growing)] {
        let (mut filter, _) = pair(&at(&followed.master, name), &plan);
        insert(&mut filter, &keys(0..1_000));
    }
    followed.until_in_step();
    let set = ["CONFIG", "SET", "replica-read-only", "no"];
    followed.replica.cli(&set);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let is_refused = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("replica of"), "{text}");
        assert!(text.contains("write to the master"), "{text}");
    };
    let size = followed.replica.cli(&["DBSIZE"]);
    for name in ["seen", "more"] {
        let place = at(&followed.replica, name);
        for options in [once(), once().allow_stale()] {
            let mut filter = RedisFilter::open(&place, &options).unwrap();
            is_refused(filter.insert("new").unwrap_err());
            is_refused(filter.clear().unwrap_err());
            is_refused(filter.expire_in(Duration::from_secs(9)).unwrap_err());
            is_refused(filter.delete().unwrap_err());
            let opened = runtime.block_on(aio::RedisFilter::open(&place, &options));
            let mut filter = opened.unwrap();
            is_refused(runtime.block_on(filter.insert("new")).unwrap_err());
            assert!(!runtime.block_on(filter.contains("new")).unwrap());
        }
    }
    let elsewhere = at(&followed.replica, "other");
    let made = RedisFilter::create(&elsewhere, &plan(100, 0.01), Hasher::default(), &once());
    is_refused(made.err().unwrap());
    assert_eq!(followed.replica.cli(&["DBSIZE"]), size);

    // Reads work as before, and clients that insist may write.
    let mut filter = RedisFilter::open(&followed.at(), &once()).unwrap();
    assert!(all(&contains(&mut filter, &keys(0..1_000))));
    filter.verify().unwrap();
    filter.download().unwrap();
    let insistent = once().allow_replica_writes();
    let mut filter = RedisFilter::open(&followed.at(), &insistent).unwrap();
    assert!(filter.insert("new").unwrap());
}

/// A master that becomes a writable replica keeps its clients.
#[test]
fn a_master_that_becomes_a_writable_replica() {
    let master = Server::start(&[]);
    let server = Server::start(&["replica-read-only no"]);
    let place = at(&server, "seen");
    let mut filter =
        RedisFilter::create(&place, &plan(10_000, 0.01), Hasher::default(), &once()).unwrap();
    insert(&mut filter, &keys(0..100));
    drop(pair(&at(&master, "seen"), &plan(10_000, 0.01)));
    server.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    // A role holds for a second.
    let mut next = 0;
    until("the role to be asked for", Duration::from_secs(60), || {
        next += 1;
        let text = filter.insert(format!("late {next}"));
        matches!(text, Err(error) if error.to_string().contains("write to the master"))
    });
}
