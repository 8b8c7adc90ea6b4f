//! Additions: who may add, when they are on disk, and what becomes of them.

use crate::common::Sandbox;
use crate::service::{Service, TOKEN, receive, send};
use serde_json::json;
use std::fs;
use std::io::BufReader;
use std::sync::Mutex;

fn created(flags: &str) -> Sandbox {
    let dir = Sandbox::new();
    dir.ok(&format!(
        "create seen.tamis --capacity 100k -p 1e-9 {flags}"
    ));
    dir
}

/// Which of these keys are in the file, according to the command.
fn in_file(dir: &Sandbox, keys: &str) -> String {
    dir.ok("verify seen.tamis");
    dir.feed("check seen.tamis", keys).text().to_owned()
}

#[test]
fn what_was_confirmed_survives_a_kill() {
    let dir = created("");
    let mut service = Service::start_writing(&dir, "seen.tamis");
    let added = service.add("seen", "apple\npear\napple\n");
    assert_eq!(added.text(), "new\nnew\nknown\n");
    assert_eq!(service.check("seen", "apple\nplum"), "yes\nno\n");
    let headers = format!("authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n");
    let added = service.ask("POST /v1/filters/seen/add", &headers, r#"["plum", "pear"]"#);
    assert_eq!(added.json(), json!({ "new": [true, false], "saved": true }));
    service.send_signal(libc::SIGKILL);
    service.wait();
    assert_eq!(
        in_file(&dir, "apple\nplum\npear\nfig\n"),
        "apple\nplum\npear\n"
    );
}

/// Eight clients add while the service is killed: everything confirmed is in the file, which is complete.
#[test]
fn a_kill_under_load_loses_nothing_that_was_confirmed() {
    let dir = created("");
    let mut service = Service::start_writing(&dir, "seen.tamis");
    let confirmed = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (service, confirmed) = (&service, &confirmed);
            scope.spawn(move || {
                let mut stream = service.connect();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let headers = format!("authorization: Bearer {TOKEN}\r\n");
                for turn in 0.. {
                    let key = format!("key {client} {turn}\n");
                    let line = "POST /v1/filters/seen/add";
                    let sent = send(&mut stream, service.address, line, &headers, key.as_bytes());
                    match sent.and_then(|()| receive(&mut reader)) {
                        Ok(answer) if answer.status == 200 => {
                            assert_eq!(answer.text(), "new\n");
                            confirmed.lock().unwrap().push_str(&key);
                        }
                        Ok(answer) => panic!("{}", answer.text()),
                        Err(_) => return, // killed
                    }
                }
            });
        }
        service.until("some are confirmed", || {
            confirmed.lock().unwrap().lines().count() > 200
        });
        service.send_signal(libc::SIGKILL);
    });
    service.wait();
    let confirmed = confirmed.into_inner().unwrap();
    assert_eq!(in_file(&dir, &confirmed), confirmed);
}

#[test]
fn a_key_is_new_to_one_of_many_clients() {
    let dir = created("");
    let service = Service::start_writing(&dir, "seen.tamis");
    let keys: String = (0..2000).map(|i| format!("key{i}\n")).collect();
    let new: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| service.add("seen", &keys).text().matches("new").count()))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    assert_eq!(new, 2000);
    service.end();
    assert_eq!(in_file(&dir, &keys), keys);
}

#[test]
fn at_intervals_additions_are_saved_later_and_at_the_end() {
    let dir = created("");
    let before = dir.read("seen.tamis");
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    let headers = format!("authorization: Bearer {TOKEN}\r\naccept: application/json\r\n");
    let added = service.ask("POST /v1/filters/seen/add", &headers, "apple");
    assert_eq!(added.json(), json!({ "new": [true], "saved": false }));
    assert_eq!(service.check("seen", "apple"), "yes\n");
    assert_eq!(dir.read("seen.tamis"), before);
    service.end();
    assert_eq!(in_file(&dir, "apple\npear\n"), "apple\n");

    let service = Service::start_writing(&dir, "--save-every 50ms seen.tamis");
    service.add("seen", "pear");
    service.until("saved", || dir.feed("check seen.tamis", "pear\n").code == 0);
    assert_eq!(service.json("/v1/filters/seen")["times_replaced"], 0);
    service.end();
}

#[test]
fn one_writer_has_the_file() {
    let dir = created("");
    let service = Service::start_writing(&dir, "seen.tamis");
    for turn in 0..3 {
        let second = dir.run("serve --listen 127.0.0.1:0 --write --token-file token seen.tamis");
        assert_eq!(second.code, 2, "{}", second.err);
        assert!(second.err.contains("seen.tamis"), "{}", second.err);
        // The lock follows the file, which every save replaces.
        assert_eq!(service.add("seen", format!("key{turn}")).text(), "new\n");
    }
    // Readers need no lock.
    let reader = Service::start(&dir, "seen.tamis");
    assert_eq!(reader.check("seen", "key2"), "yes\n");
    service.add("seen", "key3");
    reader.until("followed", || reader.check("seen", "key3") == "yes\n");
    reader.end();
    service.end();
}

/// A program that takes no locks replaces the file while additions wait.
#[test]
fn another_file_gets_what_was_not_saved() {
    let dir = created("");
    dir.write("list", "theirs\n");
    dir.ok("create other.tamis --capacity 5k -p 1e-9 --kind cuckoo");
    dir.ok("add other.tamis list");
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    service.add("seen", "ours\n");
    fs::rename(dir.path("other.tamis"), dir.path("seen.tamis")).unwrap();
    service.until("taken", || service.check("seen", "theirs") == "yes\n");
    assert_eq!(service.check("seen", "ours"), "yes\n");
    service.add("seen", "later\n");
    service.end();
    assert_eq!(
        in_file(&dir, "ours\ntheirs\nlater\nnone\n"),
        "ours\ntheirs\nlater\n"
    );

    // A file that can't be added to is neither loaded nor overwritten.
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    service.add("seen", "in memory\n");
    dir.ok("build list.tamis list");
    let finished = dir.read("list.tamis");
    fs::rename(dir.path("list.tamis"), dir.path("seen.tamis")).unwrap();
    service.until("refused", || {
        !service.json("/v1/filters/seen")["fault"].is_null()
    });
    let refused = service.add("seen", "more\n");
    assert_eq!(refused.status, 503);
    assert!(
        refused.error().contains("can't be added to"),
        "{}",
        refused.error()
    );
    assert_eq!(
        service.check("seen", "in memory\nmore\nours"),
        "yes\nno\nyes\n"
    );
    assert_eq!(dir.read("seen.tamis"), finished);
    let mut service = service;
    service.send_signal(libc::SIGTERM);
    // Losing unsaved keys is a failure.
    assert_eq!(service.wait().code(), Some(2), "{}", service.log());
    assert_eq!(dir.read("seen.tamis"), finished);
}

/// A failing disk: unsaved keys aren't confirmed, and are saved once the disk works again.
#[test]
fn what_can_not_be_saved_is_not_confirmed() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("disk")).unwrap();
    dir.ok("create disk/seen.tamis --capacity 1000");
    let service = Service::start_writing(&dir, "disk/seen.tamis");
    assert_eq!(service.add("seen", "before").text(), "new\n");
    fs::rename(dir.path("disk"), dir.path("gone")).unwrap();
    let refused = service.add("seen", "meanwhile");
    assert_eq!(refused.status, 503);
    refused.error();
    assert_eq!(service.check("seen", "before"), "yes\n");
    fs::rename(dir.path("gone"), dir.path("disk")).unwrap();
    service.until("the disk is back", || {
        service.add("seen", "after").status == 200
    });
    service.end();
    assert_eq!(
        dir.feed("check disk/seen.tamis", "before\nafter\n").text(),
        "before\nafter\n"
    );
}

#[test]
fn every_kind_that_takes_keys_takes_them() {
    let dir = Sandbox::new();
    let keys: String = (0..500).map(|i| format!("key{i}\n")).collect();
    for flags in [
        "--kind blocked",
        "--kind bloom",
        "--kind counting",
        "--kind cuckoo",
        "--kind growing",
    ] {
        dir.ok(&format!(
            "create --force seen.tamis --capacity 500 -p 1e-6 {flags}"
        ));
        let service = Service::start_writing(&dir, "seen.tamis");
        assert_eq!(
            service.json("/v1/filters/seen")["writable"],
            true,
            "{flags}"
        );
        assert_eq!(service.add("seen", &keys).status, 200, "{flags}");
        assert_eq!(service.check("seen", &keys), "yes\n".repeat(500), "{flags}");
        service.end();
        assert_eq!(in_file(&dir, &keys), keys, "{flags}");
    }
}

#[test]
fn a_full_filter_says_so_and_keeps_what_it_has() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100 --kind cuckoo");
    let service = Service::start_writing(&dir, "seen.tamis");
    let few: String = (0..100).map(|i| format!("few{i}\n")).collect();
    assert_eq!(service.add("seen", &few).status, 200);
    let many: String = (0..5000).map(|i| format!("many{i}\n")).collect();
    let refused = service.add("seen", &many);
    assert_eq!(refused.status, 507, "{}", refused.text());
    refused.error();
    assert_eq!(service.check("seen", &few), "yes\n".repeat(100));
    service.end();
    assert_eq!(in_file(&dir, &few), few);
}

#[test]
fn what_can_not_be_added_to_is_told() {
    let dir = created("");
    dir.write("list", "a\n");
    dir.ok("build done.tamis list");
    let service = Service::start_writing(&dir, "seen.tamis done.tamis");
    let finished = service.add("done", "b");
    assert_eq!(finished.status, 405);
    finished.error();
    assert_eq!(service.json("/v1/filters/done")["writable"], false);
    service.end();

    let service = Service::start(&dir, "seen.tamis");
    let reading = service.add("seen", "b");
    assert_eq!(reading.status, 403);
    assert!(reading.error().contains("--write"), "{}", reading.error());
    service.end();
}
