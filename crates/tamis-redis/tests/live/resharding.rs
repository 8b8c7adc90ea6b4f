//! Slots move to other masters under load (MOVED, ASK).

use crate::common::{Cluster, until};
use crate::failover::{large, survives};
use crate::*;

/// Moves every part of a filter, with load during each step.
fn slots_move(name: &str, plan: &Plan) {
    let mut cluster = Cluster::start(&[]);
    survives(&mut cluster, name, plan, &options(), |cluster| {
        let masters = cluster.masters();
        for (key, _) in cluster.keys(name) {
            let slot = cluster.slot_of(&key);
            // Ask for the owner now: another key of this slot may have moved it
            // since they were listed.
            let from = cluster.owner(slot);
            let to = masters.iter().find(|node| node.id != from.id).unwrap();
            let moment = || std::thread::sleep(Duration::from_millis(30));
            cluster.open_move(slot, to);
            moment();
            cluster.move_keys(slot, to);
            moment();
            cluster.close_move(slot, to);
            // The others learn of it gradually.
            until("the cluster to agree", Duration::from_secs(60), || {
                cluster.owner(slot).port == to.port
            });
        }
    });
}

#[test]
fn slots_move_under_load() {
    slots_move("moving", &large());
}

#[test]
fn slots_move_while_the_filter_grows() {
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    slots_move("moving-growing", &plan);
}

#[test]
fn slots_of_a_window_move() {
    slots_move("moving-window", &daily());
}

/// A slot remains half moved: its key is on the new master, which only answers
/// redirected clients (ASK).
#[test]
fn a_slot_is_half_moved() {
    let cluster = Cluster::start(&[]);
    let place = location(&cluster.location("half"));
    let (mut filter, mut local) = pair(&place, &plan(10_000, 0.01));
    let (old, more) = (keys(0..1_000), keys(1_000..2_000));
    insert(&mut filter, &old);
    local.insert_many(&old, &mut vec![false; 1_000]).unwrap();
    // The chunk, and the header.
    for (key, from) in cluster.keys("half") {
        let slot = cluster.slot_of(&key);
        let masters = cluster.masters();
        let to = masters.iter().find(|node| node.id != from.id).unwrap();
        cluster.open_move(slot, to);
        assert!(
            all(&contains(&mut filter, &old)),
            "before the key has moved"
        );
        cluster.move_keys(slot, to);
    }
    let mut expected = vec![false; 1_000];
    local.insert_many(&more, &mut expected).unwrap();
    for mut filter in [filter, RedisFilter::open(&place, &options()).unwrap()] {
        assert!(all(&contains(&mut filter, &old)));
        assert_eq!(insert(&mut filter, &more), expected);
        expected.fill(false);
        filter.verify().unwrap();
        assert_eq!(body(&filter.download().unwrap()), body(&local));
    }
}

/// A window with some strings on the new master and others on the old one:
/// clients wait until they are together again, and lose nothing.
#[test]
fn a_window_is_half_moved() {
    let cluster = Cluster::start(&[]);
    let place = location(&cluster.location("half-window"));
    let options_of_window = WindowOptions::new(Span::Time(Duration::from_secs(3_600)));
    let plan = Plan::window(&options_of_window, 200, 1e-6).unwrap();
    let mut filter = RedisFilter::create(&place, &plan, Hasher::seeded(7), &options()).unwrap();
    // Enough keys for further strings.
    let (old, more) = (keys(0..2_000), keys(2_000..4_000));
    assert!(all(&insert(&mut filter, &old)));
    let parts = cluster.keys("half-window:{");
    let further: Vec<_> = parts.iter().filter(|(key, _)| key.contains(":p")).collect();
    assert!(further.len() > 1, "{parts:?}");
    let (slot, from) = (cluster.slot_of(&further[0].0), &further[0].1);
    let masters = cluster.masters();
    let to = masters.iter().find(|node| node.id != from.id).unwrap();
    cluster.open_move(slot, to);
    let port = to.port.to_string();
    let migrate = ["MIGRATE", "127.0.0.1", &port, &further[0].0, "0", "10000"];
    cluster.server(from.port).cli(&migrate);
    assert!(all(&contains(&mut filter, &old)));
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut filter = RedisFilter::open(&place, &options()).unwrap();
            (insert(&mut filter, &more), filter.stats())
        });
        until("the worker to wait", Duration::from_secs(60), || {
            let info = cluster.server(from.port).cli(&["INFO", "errorstats"]);
            info.contains("errorstat_TRYAGAIN") || adding.is_finished()
        });
        cluster.move_keys(slot, to);
        cluster.close_move(slot, to);
        let (new, stats) = adding.join().unwrap();
        assert!(all(&new) && stats.retries > 0, "{stats:?}");
    });
    assert!(all(&contains(&mut filter, &old)) && all(&contains(&mut filter, &more)));
    filter.verify().unwrap();
}
