//! Parts restored from an older copy: each is valid, but lacks keys.

use crate::common::Server;
use crate::*;
use tamis_redis::Error;

fn is_rolled_back<T: std::fmt::Debug>(done: Result<T, Error>) {
    assert!(matches!(done, Err(Error::RolledBack { .. })), "{done:?}");
}

/// Copies of a filter's chunks, to be restored later.
struct Copies<'a> {
    server: &'a Server,
    chunks: Vec<String>,
}

impl<'a> Copies<'a> {
    fn of(server: &'a Server, name: &str) -> Self {
        let chunks = server.cli(&["KEYS", &format!("{name}:{{*.*.*}}")]);
        let chunks: Vec<String> = chunks.lines().map(str::to_owned).collect();
        for chunk in &chunks {
            server.cli(&["COPY", chunk, &format!("copy of {chunk}")]);
        }
        Self { server, chunks }
    }

    fn restore(&self) {
        for chunk in &self.chunks {
            let copy = format!("copy of {chunk}");
            self.server.cli(&["COPY", &copy, chunk, "REPLACE"]);
        }
    }
}

/// A closed layer that is open again lacks keys added before it was closed.
#[test]
fn a_closed_layer() {
    let server = server();
    let place = at(server, "reopened");
    let plan = Plan::one_line(Kind::Growing, 1_000, 0.01).unwrap();
    let (mut filter, _) = pair(&place, &plan);
    insert(&mut filter, &keys(0..500));
    let copies = Copies::of(server, "reopened");
    insert(&mut filter, &keys(500..5_000));
    let mut reader = RedisFilter::open(&place, &options()).unwrap();
    assert!(all(&contains(&mut reader, &keys(0..5_000))));
    copies.restore();
    // For clients that have it open, that open it, that look up and that add.
    let mut found = vec![true; 5_000];
    is_rolled_back(reader.contains_many(&keys(0..5_000), &mut found));
    is_rolled_back(filter.insert_many(&keys(0..5_000), &mut found));
    let open = || RedisFilter::open(&place, &options()).unwrap();
    is_rolled_back(open().contains_many(&keys(0..5_000), &mut found));
    is_rolled_back(open().insert_many(&keys(0..5_000), &mut found));
    is_rolled_back(open().download().map(drop));
    is_rolled_back(open().verify());
    // After accepting the loss, clients can use the rest.
    RedisFilter::accept_loss_at(&place, &options()).unwrap();
    let mut filter = open();
    filter.verify().unwrap();
    assert!(count(&contains(&mut filter, &keys(0..5_000))) > 4_000);
    insert(&mut filter, &keys(0..6_000));
    assert!(all(&contains(&mut filter, &keys(0..6_000))));
    filter.verify().unwrap();
}

/// A single part, without another to compare it with.
#[test]
fn the_only_part() {
    let server = server();
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let name = format!("only-{kind}");
        let place = at(server, &name);
        let (mut filter, _) = pair(&place, &Plan::one_line(kind, 20_000, 0.01).unwrap());
        insert(&mut filter, &keys(0..2_000));
        filter.verify().unwrap();
        let copies = Copies::of(server, &name);
        insert(&mut filter, &keys(2_000..4_000));
        filter.verify().unwrap();
        copies.restore();
        is_rolled_back(filter.verify());
        let open = || RedisFilter::open(&place, &options()).unwrap();
        is_rolled_back(open().verify());
        RedisFilter::accept_loss_at(&place, &options()).unwrap();
        open().verify().unwrap();
    }
}

/// Ordinary operations never leave a count that is too high.
#[test]
fn the_count_is_never_too_high() {
    let server = server();
    for kind in [Kind::Blocked, Kind::Counting, Kind::Growing] {
        let place = at(server, &format!("counted-{kind}"));
        let plan = Plan::one_line(kind, 5_000, 0.01).unwrap();
        let (mut filter, _) = pair(&place, &plan);
        // More keys than it is made for, repeatedly, and one by one.
        for round in 0..3 {
            insert(&mut filter, &keys(0..4_000 * (round + 1)));
            filter.verify().unwrap();
        }
        for key in keys(20_000..20_200) {
            filter.insert(key).unwrap();
        }
        filter.verify().unwrap();
        if kind == Kind::Counting {
            let gone = keys(0..6_000);
            filter
                .remove_many(&gone, &mut vec![false; gone.len()])
                .unwrap();
            filter.verify().unwrap();
        }
        // A client that hasn't yet counted the keys it has added.
        let mut other = RedisFilter::open(&place, &options()).unwrap();
        insert(&mut other, &keys(30_000..30_050));
        filter.clear().unwrap();
        insert(&mut other, &keys(40_000..40_100));
        other.verify().unwrap();
        // Downloaded, and uploaded again.
        insert(&mut filter, &keys(0..3_000));
        let copy = filter.download().unwrap();
        let place = at(server, &format!("copied-{kind}"));
        let mut copied = RedisFilter::upload(&place, &copy, &options()).unwrap();
        copied.verify().unwrap();
        insert(&mut copied, &keys(0..4_000));
        copied.verify().unwrap();
    }
}
