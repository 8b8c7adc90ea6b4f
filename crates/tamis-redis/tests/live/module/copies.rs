//! Whole filters: to files and back, and one replacing another.

use super::*;
use tamis::{AnyFilter, Blocked, Growing, Open, SecretKey};
use tamis_redis::{Error, Layout};

/// The module's filter, grown from 100 keys, its file, and the copies of that
/// file in a module and in strings give the same answers for 200,000 keys.
#[test]
#[ignore = "needs the module: ./test module"]
fn every_copy_answers_alike() {
    let mut filter = create(&at(server(), "original"), Kind::Growing, 100, 0.01);
    let added = keys(0..100_000);
    let new = count(&insert(&mut filter, &added));
    assert!(new > 99_000, "{new}");
    let mut asked = added;
    asked.extend(keys(500_000..600_000));
    let answers = contains(&mut filter, &asked);
    assert!(all(&answers[..100_000]));
    let wrong = count(&answers[100_000..]);
    assert!(wrong <= 1_050, "{wrong} of 100,000 at a rate of 1 %");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.tamis");
    filter.download().unwrap().save(&path).unwrap();
    let file = Open::new().load(&path).unwrap();
    let mut of_file = vec![false; asked.len()];
    file.contains_many(&asked, &mut of_file);
    assert!(of_file == answers, "the file");
    assert_eq!(file.keys().get(), new as u64);

    let back = at(server(), "back");
    let mut back = RedisFilter::upload(&back, &file, &in_module()).unwrap();
    assert_eq!(back.module_layout(), Some(Layout::Tamis));
    assert!(contains(&mut back, &asked) == answers, "back in the module");
    let strings = at(server(), "strings");
    let mut strings = RedisFilter::upload(&strings, &file, &Options::new()).unwrap();
    assert_eq!(strings.module_layout(), None);
    assert!(contains(&mut strings, &asked) == answers, "in strings");

    // The copy grows, and the original doesn't change.
    insert(&mut back, &keys(600_000..700_000));
    assert!(all(&contains(&mut back, &asked[..100_000])));
    assert!(all(&contains(&mut back, &keys(600_000..700_000))));
    assert!(contains(&mut filter, &asked) == answers);
    assert_eq!(
        back.download().unwrap().to_bytes(),
        back.download().unwrap().to_bytes()
    );
    for filter in [filter, back, strings] {
        filter.delete().unwrap();
    }
}

/// More than one chunk of 16 MiB, while another worker adds keys.
#[test]
#[ignore = "needs the module: ./test module"]
fn a_large_filter_under_load() {
    let place = at(server(), "large");
    let mut filter = create(&place, Kind::Growing, 20_000_000, 0.01);
    assert!(filter.bytes() > 20 << 20);
    let before = keys(0..20_000);
    insert(&mut filter, &before);
    let worker = std::thread::spawn({
        let place = place.clone();
        move || {
            let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
            for start in (100_000..200_000).step_by(1_000) {
                insert(&mut filter, &keys(start..start + 1_000));
            }
        }
    });
    let file = filter.download().unwrap();
    worker.join().unwrap();
    let mut found = vec![false; before.len()];
    file.contains_many(&before, &mut found);
    assert!(all(&found));
    // Whether or not it has changed since its first chunk was read, it can be
    // uploaded again.
    let mut back = RedisFilter::upload(&at(server(), "large back"), &file, &in_module()).unwrap();
    assert!(all(&contains(&mut back, &before)));
    back.delete().unwrap();
    filter.delete().unwrap();
}

#[test]
#[ignore = "needs the module: ./test module"]
fn cuckoo_filters_of_one_table() {
    let place = at(server(), "cuckoo");
    let mut filter = create(&place, Kind::Cuckoo, 20_000, 0.01);
    let added = keys(0..10_000);
    insert(&mut filter, &added);
    let mut asked = added.clone();
    asked.extend(keys(500_000..510_000));
    let answers = contains(&mut filter, &asked);
    let file = filter.download().unwrap();
    assert_eq!(file.kind(), Kind::Cuckoo);
    let mut of_file = vec![false; asked.len()];
    file.contains_many(&asked, &mut of_file);
    assert!(of_file == answers);
    let mut back = RedisFilter::upload(&at(server(), "cuckoo back"), &file, &in_module()).unwrap();
    assert!(contains(&mut back, &asked) == answers);
    let mut removed = vec![false; added.len()];
    back.remove_many(&added, &mut removed).unwrap();
    assert!(all(&removed));
    assert!(all(&contains(&mut filter, &added)));
    // Filters with a second table can't be downloaded until they are compacted.
    insert(&mut filter, &keys(10_000..40_000));
    let error = filter.download().unwrap_err().to_string();
    assert!(error.contains("CF.COMPACT"), "{error}");
    let more = keys(10_000..40_000);
    filter
        .remove_many(&more, &mut vec![false; more.len()])
        .unwrap();
    server().cli(&["CF.COMPACT", "cuckoo"]);
    let file = filter.download().unwrap();
    let mut found = vec![false; added.len()];
    file.contains_many(&added, &mut found);
    assert!(all(&found));
    for filter in [filter, back] {
        filter.delete().unwrap();
    }
}

/// RedisBloom's layout can be copied with DUMP, but not to our files.
#[test]
#[ignore = "needs the module: ./test module"]
fn another_systems_layout() {
    let place = at(server(), "theirs");
    for reserve in [
        [
            "BF.RESERVE",
            "theirs",
            "0.01",
            "100",
            "LAYOUT",
            "redisbloom",
        ],
        ["CF.RESERVE", "theirs", "1000", "NX", "LAYOUT", "redisbloom"],
    ] {
        server().cli(&reserve);
        let mut filter = RedisFilter::open(&place, &Options::new()).unwrap();
        assert_eq!(filter.module_layout(), Some(Layout::RedisBloom));
        let added = keys(0..900);
        insert(&mut filter, &added);
        let error = filter.download().unwrap_err().to_string();
        assert!(error.contains("DUMP"), "{error}");
        assert!(filter.rate() > 0.005 && filter.rate() < 0.1);
        let dump = filter.dump().unwrap();
        let copy = at(server(), "their copy");
        let mut copy = RedisFilter::restore(&copy, &dump, false, &Options::new()).unwrap();
        assert!(contains(&mut copy, &added) == contains(&mut filter, &added));
        assert_eq!(copy.dump().unwrap(), dump);
        let taken = RedisFilter::restore(&place, &dump, false, &Options::new()).unwrap_err();
        assert!(matches!(taken, Error::Exists { .. }), "{taken}");
        copy.delete().unwrap();
        filter.delete().unwrap();
    }
}

/// One filter replaces another and keeps its time to live, and nothing is left
/// of failed attempts.
#[test]
#[ignore = "needs the module: ./test module"]
fn in_place_of_another() {
    let fresh = crate::common::Server::start(&[&load()]);
    let place = at(&fresh, "name");
    let plan = Plan::for_rate(Kind::Growing, 1_000, 0.01).unwrap();
    let blocked = Plan::one_line(Kind::Blocked, 1_000, 0.01).unwrap();
    let hasher = Hasher::default();
    let plain = Options::new();
    let over = |plan: &Plan, options: &Options| {
        RedisFilter::create_over(&place, plan, hasher, options).unwrap()
    };
    let mut filter = create(&place, Kind::Growing, 1_000, 0.01);
    filter.insert("old").unwrap();
    filter.expire_in(Duration::from_secs(1_000)).unwrap();
    for options in [&plain, &in_module()] {
        let taken = RedisFilter::create(&place, &plan, hasher, options).unwrap_err();
        assert!(matches!(taken, Error::Exists { .. }), "{taken}");
    }
    // Kinds that a module supports stay in the module …
    let mut next = over(&plan, &plain);
    assert_eq!(next.module_layout(), Some(Layout::Tamis));
    assert!(next.time_to_live().unwrap().is_some() && !next.contains("old").unwrap());
    let kind = RedisFilter::kind_at(&place, &plain).unwrap();
    assert_eq!(kind, Some(Kind::Growing));
    // … and others don't; and back.
    let mut strings = over(&blocked, &plain);
    assert_eq!(strings.module_layout(), None);
    assert!(strings.time_to_live().unwrap().is_some());
    let gone = next.contains("old").unwrap_err();
    assert!(matches!(gone, Error::Gone { .. }), "{gone}");
    let mut module = over(&plan, &in_module());
    assert_eq!(module.module_layout(), Some(Layout::Tamis));
    assert!(module.time_to_live().unwrap().is_some());
    assert_eq!(fresh.cli(&["KEYS", "*"]).trim(), "name");

    // For kinds that a module doesn't support, it reports an error and leaves
    // the existing filter alone.
    let growing = |hasher| AnyFilter::Growing(Growing::with_hasher(100, 0.01, hasher).unwrap());
    let secret = SecretKey::new([7; 16]);
    for (filter, text) in [
        (Blocked::new(1_000, 0.01).unwrap().into(), "module"),
        (growing(Hasher::keyed_apart(secret)), "secret"),
        (
            growing(hasher.with_rule(tamis::KeyRule::EXACT.ignore_case())),
            "exact",
        ),
    ] {
        let error = RedisFilter::upload_over(&place, &filter, &in_module()).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    let keyed = RedisFilter::create_over(&place, &plan, Hasher::keyed(secret), &in_module());
    assert!(matches!(keyed.unwrap_err(), Error::Filter(_)));
    // A secret stored in the filter is copied with it.
    let mut file = growing(Hasher::keyed(secret));
    file.insert_many(&keys(0..50), &mut [false; 50]).unwrap();
    let mut keyed = RedisFilter::upload_over(&place, &file, &in_module()).unwrap();
    assert!(all(&contains(&mut keyed, &keys(0..50))));
    assert_eq!(fresh.cli(&["KEYS", "*"]).trim(), "name");
}

/// Without a module, there is an error, and nothing is left.
#[test]
#[ignore = "needs the module: ./test module"]
fn without_a_module() {
    let bare = crate::common::Server::start(&[]);
    let place = at(&bare, "seen");
    let plan = Plan::for_rate(Kind::Growing, 1_000, 0.01).unwrap();
    let created = RedisFilter::create(&place, &plan, Hasher::default(), &in_module());
    let error = created.unwrap_err().to_string();
    assert!(
        error.contains("module") && error.contains("BF.RESERVE"),
        "{error}"
    );
    let file = AnyFilter::Growing(Growing::new(100, 0.01).unwrap());
    let uploaded = RedisFilter::upload(&place, &file, &in_module());
    let error = uploaded.unwrap_err().to_string();
    assert!(error.contains("module"), "{error}");
    assert_eq!(bare.cli(&["DBSIZE"]).trim(), "0");
}
