//! The operators' view: surveys, orphans, users with few rights.

use crate::common::Server;
use crate::*;
use tamis_redis::{Condition, Error, Found, Servers, Survey, Warning};

fn survey(servers: &str) -> Survey {
    let servers: Servers = servers.parse().unwrap();
    Survey::of(&servers, &options()).unwrap()
}

fn of_server(server: &Server) -> Survey {
    survey(&format!("redis://{}", server.address()))
}

fn find<'a>(survey: &'a Survey, name: &str) -> &'a Found {
    let mut named = survey.filters.iter().filter(|filter| filter.name == name);
    let found = named
        .next()
        .unwrap_or_else(|| panic!("{name} is not listed"));
    assert!(named.next().is_none(), "{name} is listed twice");
    found
}

fn create(at: &Location, kind: Kind, keys: u64) -> RedisFilter {
    let plan = Plan::one_line(kind, keys, 0.01).unwrap();
    RedisFilter::create(at, &plan, Hasher::default(), &options()).unwrap()
}

fn chunks(server: &Server, name: &str) -> Vec<String> {
    let listed = server.cli(&["KEYS", &format!("{name}:{{*.*.*}}")]);
    listed.lines().map(String::from).collect()
}

/// Deletes everything that identifies a filter, and leaves its parts.
fn forget(server: &Server, name: &str) {
    let witness = server.cli(&["KEYS", &format!("{name}:{{witness.*}}")]);
    assert!(!witness.is_empty());
    server.cli(&["DEL", name, &format!("{{{name}}}:tamis"), &witness]);
}

/// Filters of every kind, among foreign keys, some of which look much like
/// ours.
#[test]
fn all_filters_are_listed() {
    let server = Server::start(&[]);
    for i in 0..3_000 {
        server_set(&server, i);
    }
    server.cli(&["SET", "seen:{user1000}", "x"]);
    server.cli(&["SET", "long", &"x".repeat(168)]);
    server.cli(&["RPUSH", "a list", "x"]);
    server.cli(&["HSET", "{other}:0123456789abcdef", "x", "y"]);
    for (name, kind) in [
        ("a", Kind::Blocked),
        ("b:c/d", Kind::Counting),
        ("e", Kind::Growing),
    ] {
        let mut filter = create(&at(&server, name), kind, 1_000);
        insert(&mut filter, &keys(0..5_000));
        if name == "a" {
            filter.expire_in(Duration::from_secs(500)).unwrap();
        }
    }
    let survey = of_server(&server);
    let names: Vec<_> = survey.filters.iter().map(|f| &f.name[..]).collect();
    assert_eq!(names, ["a", "b:c/d", "e"]);
    for filter in &survey.filters {
        let condition = match filter.kind {
            Some(Kind::Growing) => Condition::Whole,
            _ => Condition::Overfull,
        };
        assert_eq!(filter.condition, condition, "{}", filter.name);
        assert!(filter.last_write.is_some_and(|age| age.as_secs() < 600));
        assert_eq!(filter.shares.len(), 1);
        assert_eq!(filter.shares[0].node, server.address());
        assert!(filter.bytes() > 1_000);
    }
    let a = find(&survey, "a");
    assert_eq!(
        (a.kind, a.capacity, a.rate),
        (Some(Kind::Blocked), 1_000, 0.01)
    );
    let left = a.time_to_live.unwrap().as_secs();
    assert!((400..=500).contains(&left), "{left}");
    let e = find(&survey, "e");
    assert_eq!((e.kind, e.time_to_live), (Some(Kind::Growing), None));
    let held = e.keys.unwrap();
    assert!((4_700..5_300).contains(&held), "{held}");
    // A foreign key whose name looks like ours.
    let orphans: Vec<_> = survey
        .orphans
        .iter()
        .map(|orphan| &orphan.key[..])
        .collect();
    assert_eq!(orphans, ["{other}:0123456789abcdef"]);
    assert_eq!(survey.collectable().count(), 0);
    let [node] = &survey.nodes[..] else {
        panic!("{:?}", survey.nodes);
    };
    assert!(node.version.contains('.') && node.used > 0, "{node:?}");
    assert_eq!(node.policy, "noeviction");
}

fn server_set(server: &Server, i: u32) {
    if i.is_multiple_of(1_000) {
        let lua = "for i = 1, 1000 do redis.call('SET', 'foreign:' .. ARGV[1] .. i, i) end";
        server.cli(&["EVAL", lua, "0", &i.to_string()]);
    }
}

#[test]
fn a_cluster_is_listed() {
    let name = "listed-in-a-cluster";
    let text = cluster().location(name);
    let mut filter = create(&location(&text), Kind::Blocked, 20_000_000);
    insert(&mut filter, &keys(0..1_000));
    let servers = text.strip_suffix(&format!("/{name}")).unwrap();
    let survey = survey(servers);
    let found = find(&survey, name);
    assert_eq!(found.condition, Condition::Whole);
    assert_eq!(Some(found.generation), filter.generation());
    assert_eq!(found.shares.len(), 3, "{:?}", found.shares);
    assert_eq!(found.shares, filter.shares().unwrap());
    assert_eq!(survey.nodes.len(), 3);
    assert_eq!(filter.nodes().unwrap().len(), 3);
    filter.delete().unwrap();
}

/// The list describes a filter's problem, and also lists the others.
#[test]
fn what_is_not_whole_is_listed() {
    let server = Server::start(&[]);
    for name in ["whole", "damaged", "headless", "newer"] {
        create(&at(&server, name), Kind::Blocked, 1_000);
    }
    server.cli(&["DEL", &chunks(&server, "damaged")[0]]);
    server.cli(&["DEL", "headless"]);
    server.cli(&["SETRANGE", "newer", "8", "\u{7}"]);
    let survey = of_server(&server);
    let condition = |name: &str| find(&survey, name).condition.clone();
    assert_eq!(condition("whole"), Condition::Whole);
    assert!(matches!(condition("damaged"), Condition::Damaged(_)));
    assert_eq!(condition("headless"), Condition::Remains);
    assert!(matches!(condition("newer"), Condition::Unreadable(_)));
    // None of their parts is an orphan: the filters may still be repaired.
    for chunk in ["headless", "newer"].map(|name| chunks(&server, name)) {
        server.age(&chunk[0], 7_200);
    }
    assert_eq!(of_server(&server).orphans, []);
}

/// Parts of filters that no longer exist are collected after an hour without
/// use; nothing else is.
#[test]
fn orphans_are_collected() {
    let server = Server::start(&[]);
    for name in ["old", "young", "ending", "alive", "growing"] {
        let kind = match name {
            "growing" => Kind::Growing,
            _ => Kind::Blocked,
        };
        let mut filter = create(&at(&server, name), kind, 1_000);
        insert(&mut filter, &keys(0..1_000));
    }
    for name in ["old", "young", "ending", "growing"] {
        forget(&server, name);
        for key in chunks(&server, name) {
            if name != "young" {
                server.age(&key, 7_200);
            }
        }
    }
    let hash = server.cli(&["KEYS", "{growing}:*"]);
    server.age(&hash, 7_200);
    server.cli(&["EXPIRE", &chunks(&server, "ending")[0], "1000"]);
    server.age(&chunks(&server, "alive")[0], 7_200);

    let survey = of_server(&server);
    assert_eq!(survey.filters.len(), 1, "{:?}", survey.filters);
    // A chunk and a hash each; the growing one has layers.
    let layers = chunks(&server, "growing").len();
    assert_eq!(survey.orphans.len(), 3 * 2 + layers + 1);
    let old: Vec<_> = survey
        .collectable()
        .map(|orphan| orphan.key.clone())
        .collect();
    assert_eq!(old.len(), 1 + layers + 1, "{old:?}");
    assert!(old.contains(&hash));

    // One of them is used before it is deleted: it stays.
    let used = chunks(&server, "old")[0].clone();
    server.cli(&["GET", &used]);
    let gone = survey.collect(&options()).unwrap();
    assert_eq!(gone.len(), layers + 1);
    assert_eq!(server.cli(&["EXISTS", &used]), "1");
    assert_eq!(server.cli(&["KEYS", "*growing*"]), "");
    server.age(&used, 7_200);
    assert_eq!(of_server(&server).collect(&options()).unwrap().len(), 1);
    assert_eq!(chunks(&server, "old").len(), 0);
    assert_eq!(
        chunks(&server, "young").len() + chunks(&server, "ending").len(),
        2
    );
    let mut alive = RedisFilter::open(&at(&server, "alive"), &options()).unwrap();
    assert!(all(&contains(&mut alive, &keys(0..1_000))));
    alive.verify().unwrap();
}

/// Parts of a filter that is being created, or of a layer that is being built,
/// aren't orphans, however long that takes.
#[test]
fn what_is_being_made_is_not_collected() {
    let server = Server::start(&[]);
    // The state while its chunks are being created, set in the state byte.
    create(&at(&server, "new"), Kind::Blocked, 1_000);
    server.cli(&["EVAL", "redis.call('SETRANGE', 'new', 24, '\\0')", "0"]);
    // A layer that is being built is in the hash before its chunks exist.
    let mut growing = create(&at(&server, "growing"), Kind::Growing, 1_000);
    let hash =
        server.cli(&["KEYS", "{growing}:0*"]) + &server.cli(&["KEYS", "{growing}:[1-9a-f]*"]);
    let building = "00000000000000aa";
    let copy = format!(
        "local layer = redis.call('HGET', KEYS[1], 'layer.0') \
         redis.call('HSET', KEYS[1], 'building.1.{building}', \
         string.sub(layer, 1, 64) .. string.char(0xaa, 0, 0, 0, 0, 0, 0, 0))"
    );
    server.cli(&["EVAL", &copy, "1", &hash]);
    server.cli(&["SET", &format!("growing:{{{building}.0.1}}"), "x"]);
    for name in ["new", "growing"] {
        for key in chunks(&server, name) {
            server.age(&key, 7_200);
        }
    }
    server.age(&hash, 7_200);
    let survey = of_server(&server);
    assert_eq!(find(&survey, "new").condition, Condition::Creating);
    assert_eq!(survey.orphans, []);
    assert_eq!(survey.collect(&options()).unwrap(), []);
    assert!(growing.insert("x").unwrap());

    // Between survey and deletion, the filter may have got its record back.
    let record = server.cli(&[
        "EVAL",
        "return redis.call('RENAME', 'growing', 'away')",
        "0",
    ]);
    assert_eq!(record, "OK");
    server.cli(&["RENAME", "{growing}:tamis", "away too"]);
    let witness = server.cli(&["KEYS", "growing:{witness.*}"]);
    server.cli(&["RENAME", &witness, "away as well"]);
    for key in chunks(&server, "growing") {
        server.age(&key, 7_200);
    }
    let survey = of_server(&server);
    assert!(survey.collectable().count() > 0);
    server.cli(&["RENAME", "away", "growing"]);
    server.cli(&["RENAME", "away too", "{growing}:tamis"]);
    server.cli(&["RENAME", "away as well", &witness]);
    assert_eq!(survey.collect(&options()).unwrap(), []);
    assert!(growing.contains("x").unwrap());
}

/// A server with an LFU policy doesn't know idle times.
#[test]
fn age_is_not_guessed() {
    let server = Server::start(&["maxmemory-policy allkeys-lfu"]);
    create(&at(&server, "seen"), Kind::Blocked, 1_000);
    forget(&server, "seen");
    let survey = of_server(&server);
    // A chunk, and the hash next to the record.
    assert_eq!(survey.orphans.len(), 2);
    assert_eq!(survey.orphans[0].idle, None);
    assert_eq!(survey.collectable().count(), 0);
}

/// The rights in docs/operating.md suffice for querying, verifying and
/// inspecting, and don't allow changes.
#[test]
fn a_user_who_only_reads() {
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let server = Server::start(&[]);
        let rights = "on >sesame %R~seen %R~seen:* %R~{seen}:* +@read +@connection +eval_ro +info";
        let user = [
            &["ACL", "SETUSER", "ada"],
            &rights.split(' ').collect::<Vec<_>>()[..],
        ]
        .concat();
        server.cli(&user);
        insert(
            &mut create(&at(&server, "seen"), kind, 1_000),
            &keys(0..3_000),
        );
        let place = location(&format!("redis://ada:sesame@{}/seen", server.address()));
        let mut filter = RedisFilter::open(&place, &impatient()).unwrap();
        assert!(all(&contains(&mut filter, &keys(0..3_000))));
        filter.verify().unwrap();
        filter.keys().unwrap();
        filter.rate_now().unwrap();
        filter.time_to_live().unwrap();
        filter.download().unwrap();
        assert_eq!(filter.shares().unwrap().len(), 1);
        assert!(!filter.nodes().unwrap()[0].version.is_empty());
        for refused in [
            filter.insert("x").map(drop),
            filter.clear(),
            filter.expire_in(Duration::from_secs(5)),
            filter.delete(),
        ] {
            let error = refused.unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, Error::Server { .. } | Error::Unconfirmed { .. }),
                "{kind}: {error:?}"
            );
            assert!(
                text.contains("permission") || text.contains("NOPERM"),
                "{text}"
            );
        }
        let mut filter = RedisFilter::open(&at(&server, "seen"), &options()).unwrap();
        assert!(all(&contains(&mut filter, &keys(0..3_000))));
        assert_eq!(filter.time_to_live().unwrap(), None);
    }
}

/// The other two sets of rights: for `list` and for `gc`.
#[test]
fn users_who_list_and_collect() {
    let server = Server::start(&[]);
    let users = [
        ("lister", "%R~* +@read +@connection +eval_ro +info"),
        (
            "sweeper",
            "~* +@read +@connection +eval_ro +info +eval +unlink",
        ),
    ];
    for (name, rights) in users {
        let user = ["ACL", "SETUSER", name, "on", ">sesame"].into_iter();
        server.cli(&user.chain(rights.split(' ')).collect::<Vec<_>>());
    }
    for name in ["whole", "damaged", "gone"] {
        create(&at(&server, name), Kind::Growing, 1_000);
    }
    server.cli(&["DEL", &chunks(&server, "damaged")[0]]);
    forget(&server, "gone");
    let chunk = chunks(&server, "gone")[0].clone();
    server.age(&chunk, 7_200);
    let as_user = |name: &str| survey(&format!("redis://{name}:sesame@{}", server.address()));
    let listed = as_user("lister");
    assert_eq!(find(&listed, "whole").condition, Condition::Whole);
    let damaged = &find(&listed, "damaged").condition;
    assert!(matches!(damaged, Condition::Damaged(_)), "{damaged:?}");
    assert_eq!(listed.collectable().count(), 1);
    assert!(listed.collect(&options()).is_err());
    let gone = as_user("sweeper").collect(&options()).unwrap();
    assert_eq!((gone.len(), &gone[0].key), (1, &chunk));
    let refused = RedisFilter::delete_at(
        &location(&format!("redis://lister:sesame@{}/whole", server.address())),
        &options(),
    );
    assert!(refused.is_err());
}

/// Without `INFO`, its fields are unknown, and everything else is known.
#[test]
fn a_user_who_may_not_ask_the_server() {
    let server = Server::start(&[]);
    server.cli(&[
        "ACL", "SETUSER", "ada", "on", ">sesame", "~*", "+@all", "-info",
    ]);
    let servers = format!("redis://ada:sesame@{}", server.address());
    create(&location(&format!("{servers}/seen")), Kind::Blocked, 1_000);
    let survey = survey(&servers);
    assert_eq!(survey.nodes[0].version, "");
    assert_eq!(find(&survey, "seen").condition, Condition::Whole);
}

/// A filter with more keys than it was made for is listed as overfull, clients
/// that add to it get a warning, and counts of keys are numbers.
#[test]
fn an_overfull_filter() {
    for kind in [Kind::Blocked, Kind::Counting] {
        let server = Server::start(&[]);
        let place = at(&server, "small");
        let mut filter = create(&place, kind, 1_000);
        insert(&mut filter, &keys(0..900));
        assert_eq!(filter.warnings(), []);
        assert_eq!(
            find(&of_server(&server), "small").condition,
            Condition::Whole
        );
        insert(&mut filter, &keys(900..1_500));
        let warned = |filter: &RedisFilter| match filter.warnings() {
            [Warning::Overfull { keys, capacity }] => (*keys, *capacity),
            others => panic!("{kind}: {others:?}"),
        };
        let (held, capacity) = warned(&filter);
        assert!((1_400..1_600).contains(&held), "{held}");
        assert_eq!(capacity, 1_000);
        // A worker that starts later is warned with its first keys.
        let mut late = RedisFilter::open(&place, &options()).unwrap();
        insert(&mut late, &keys(0..10));
        warned(&late);
        // Until every bit is set.
        insert(&mut filter, &keys(0..100_000));
        let survey = of_server(&server);
        let found = find(&survey, "small");
        assert_eq!(found.condition, Condition::Overfull, "{kind}");
        assert_eq!(found.condition.to_string(), "overfull");
        let held = found.keys.unwrap();
        assert!((3_000..1_000_000).contains(&held), "{kind}: {held}");
        assert!(found.rate_now.unwrap() > 0.9);
        assert!(found.fill().unwrap() > 3.0);
        assert_eq!(filter.keys().unwrap().get(), held);
    }
}

/// Keys added while a layer is being closed are in two layers, and count once.
#[test]
fn keys_of_many_growing_workers_are_counted_once() {
    const WORKERS: u64 = 12;
    const EACH: u64 = 20_000;
    let server = Server::start(&[]);
    let place = at(&server, "counted");
    create(&place, Kind::Growing, 1_000);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let place = &place;
            scope.spawn(move || {
                let mut filter = RedisFilter::open(place, &options()).unwrap();
                let all = keys(worker * EACH..(worker + 1) * EACH);
                for some in all.chunks(3_000) {
                    insert(&mut filter, some);
                }
            });
        }
    });
    let held = find(&of_server(&server), "counted").keys.unwrap();
    let true_count = WORKERS * EACH;
    // At a rate of 1 %, some weren't new.
    let counted = true_count * 98 / 100..=true_count * 101 / 100;
    assert!(counted.contains(&held), "{held} of {true_count}");
    let mut filter = RedisFilter::open(&place, &options()).unwrap();
    filter.clear().unwrap();
    assert_eq!(filter.keys().unwrap().get(), 0);
}

/// A foreign value under the name isn't read completely.
#[test]
fn a_long_foreign_string() {
    let server = Server::start(&[]);
    server.cli(&["SETRANGE", "foreign", "200000000", "x"]);
    let before: u64 = server
        .info("stats", "total_net_output_bytes")
        .unwrap()
        .parse()
        .unwrap();
    let opened = RedisFilter::open(&at(&server, "foreign"), &options());
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    of_server(&server);
    assert!(RedisFilter::delete_at(&at(&server, "foreign"), &options()).is_err());
    let plan = plan(1_000, 0.01);
    let created = RedisFilter::create(
        &at(&server, "foreign"),
        &plan,
        Hasher::default(),
        &options(),
    );
    assert!(matches!(created, Err(Error::Taken { .. })), "{created:?}");
    let after: u64 = server
        .info("stats", "total_net_output_bytes")
        .unwrap()
        .parse()
        .unwrap();
    assert!(after - before < 1_000_000, "{} bytes", after - before);
}
