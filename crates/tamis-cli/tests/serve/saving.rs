//! Failing saves: everyone can see them, and nothing is confirmed meanwhile.

use crate::common::Sandbox;
use crate::service::{Service, TOKEN, receive, send};
use serde_json::Value;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// A service that may not write more than a few kilobytes per file, as if its disk were full.
fn on_a_full_disk(dir: &Sandbox, words: &str) -> Service {
    dir.write("token", TOKEN);
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -S -f 8; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_tamis"),
        ])
        .args("serve --listen 127.0.0.1:0 --write --token-file token".split(' '))
        .args(words.split(' '))
        .current_dir(dir.path(""));
    Service::run(command)
}

/// The disk has room again.
fn make_room(service: &Service) {
    let unlimited = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a plain system call that reads one value, on a child that was not waited for.
    let status = unsafe {
        libc::prlimit(
            service.pid(),
            libc::RLIMIT_FSIZE,
            &raw const unlimited,
            std::ptr::null_mut(),
        )
    };
    assert_eq!(status, 0);
}

fn sample(service: &Service, name: &str) -> f64 {
    let text = service.get("/metrics").text();
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_full_disk_is_seen_and_nothing_more_is_added() {
    for words in ["seen.tamis", "--save-every 10ms seen.tamis"] {
        let dir = Sandbox::new();
        dir.ok("create seen.tamis --capacity 100k");
        let service = on_a_full_disk(&dir, words);
        let about = || service.json("/v1/filters/seen");
        assert_eq!(about()["unsaved_keys"], 0);
        assert_eq!(about()["last_saved_at"], Value::Null);
        assert_eq!(about()["save_failed"], Value::Null);
        assert_eq!(service.get("/readyz").text(), "ready\n");

        // Only confirmed at once if that was asked for.
        let first = service.add("seen", "apple\npear\n");
        let at_once = !words.contains("--save-every");
        assert_eq!(first.status, if at_once { 503 } else { 200 });
        service.until("the save fails", || !about()["save_failed"].is_null());
        assert_eq!(about()["unsaved_keys"], 2);
        assert_eq!(sample(&service, "tamis_filter_unsaved_keys"), 2.0);
        assert_eq!(sample(&service, "tamis_filter_save_failed"), 1.0);
        let not_ready = service.get("/readyz");
        assert_eq!(not_ready.status, 503);
        assert!(not_ready.error().contains("seen"), "{}", not_ready.error());
        assert_eq!(service.get("/healthz").text(), "ok\n");

        let refused = service.add("seen", "plum\n");
        assert_eq!(refused.status, 503);
        assert!(refused.header("retry-after").is_some());
        assert!(
            refused.error().contains("until a save succeeds"),
            "{}",
            refused.error()
        );
        assert_eq!(service.check("seen", "apple\nplum"), "yes\nno\n");
        assert_eq!(about()["unsaved_keys"], 2);

        make_room(&service);
        service.until("the save succeeds", || about()["save_failed"].is_null());
        assert_eq!(about()["unsaved_keys"], 0);
        assert!(about()["last_saved_at"].as_u64().unwrap() > 1_600_000_000);
        assert_eq!(sample(&service, "tamis_filter_save_failed"), 0.0);
        assert!(sample(&service, "tamis_filter_last_saved_at") > 1.6e9);
        assert_eq!(service.get("/readyz").text(), "ready\n");
        assert_eq!(service.add("seen", "plum\n").text(), "new\n");
        service.end();
        let found = dir.feed("check seen.tamis", "apple\npear\nplum\nfig\n");
        assert_eq!(found.text(), "apple\npear\nplum\n");
    }
}

/// However long the interval is, a failed save is retried soon.
#[test]
fn a_failed_save_does_not_wait_for_its_time() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100k");
    let service = on_a_full_disk(&dir, "--save-every 1h seen.tamis");
    let about = || service.json("/v1/filters/seen");
    // Enough to be saved early.
    for key in ["a", "b", "c"] {
        let added = service.add("seen", key.repeat(7_000_000));
        assert!([200, 503].contains(&added.status), "{}", added.text());
    }
    service.until("the save fails", || !about()["save_failed"].is_null());
    make_room(&service);
    service.until("the save succeeds", || about()["save_failed"].is_null());
    assert_eq!(about()["unsaved_keys"], 0);
    service.end();
}

#[test]
fn what_was_never_saved_is_no_good_end() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100k");
    let mut service = on_a_full_disk(&dir, "--save-every 1h seen.tamis");
    assert_eq!(service.add("seen", "apple\n").status, 200);
    service.send_signal(libc::SIGTERM);
    assert_eq!(service.wait().code(), Some(2));
    assert!(service.log().contains("not saved"), "{}", service.log());
}

/// A service limited to so many open files, which it may raise to `hard`.
fn with_descriptors(dir: &Sandbox, soft: u32, hard: u32, words: &str) -> Service {
    dir.write("token", TOKEN);
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            &format!("ulimit -S -n {soft}; ulimit -H -n {hard}; exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_tamis"),
        ])
        .args("serve --listen 127.0.0.1:0 --write --token-file token".split(' '))
        .args(words.split(' '))
        .current_dir(dir.path(""));
    Service::run(command)
}

/// Idle clients leave enough descriptors for saving.
#[test]
fn idle_clients_do_not_stop_saving() {
    for (soft, hard, seats) in [(200, 200, 64), (200, 1000, 400)] {
        let dir = Sandbox::new();
        dir.ok("create seen.tamis --capacity 1000");
        let service = with_descriptors(&dir, soft, hard, "--max-connections 400 seen.tamis");
        assert_eq!(
            service.log().contains("400"),
            hard == 200,
            "{}",
            service.log()
        );
        let mut client = service.connect();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut ask = |line: &str, body: &[u8]| {
            let headers = format!("authorization: Bearer {TOKEN}\r\n");
            send(&mut client, "localhost", line, &headers, body).unwrap();
            receive(&mut reader).unwrap()
        };
        assert_eq!(ask("GET /healthz", b"").status, 200);
        let _idle: Vec<_> = (0..300).map(|_| service.connect()).collect();
        service.until("all have a place, or none is left", || {
            let metrics = ask("GET /metrics", b"").text();
            let line = metrics
                .lines()
                .find(|line| line.starts_with("tamis_connections "));
            line == Some(&format!("tamis_connections {}", seats.min(301)))
        });
        let added = ask("POST /v1/filters/seen/add", b"apple");
        assert_eq!(
            (added.status, added.text()),
            (200, "new\n".into()),
            "{}",
            added.text()
        );
        service.end();
    }
}

/// A save that fails after the file got its name: the keys in it aren't added again.
#[test]
fn a_save_that_fails_late_counts_nothing_twice() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000 --kind counting");
    let service = Service::start_writing(&dir, "seen.tamis");
    let mut client = service.connect();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut ask = |line: &str, body: &[u8]| {
        let headers = format!("authorization: Bearer {TOKEN}\r\n");
        send(&mut client, "localhost", line, &headers, body).unwrap();
        receive(&mut reader).unwrap()
    };
    assert_eq!(ask("POST /v1/filters/seen/add", b"apple").status, 200);
    // Enough for one more file: the new one, but not its folder.
    let open: Vec<u64> = std::fs::read_dir(format!("/proc/{}/fd", service.pid()))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    let free = (0..).filter(|number| !open.contains(number));
    let limit = free.take(2).last().unwrap();
    let before = limit_files(&service, limit);
    let added = ask("POST /v1/filters/seen/add", b"pear");
    assert_eq!(added.status, 503, "{}", added.text());
    assert!(added.error().contains("not on disk"), "{}", added.error());
    limit_files(&service, before);
    service.until("the save succeeds", || {
        ask("GET /v1/filters/seen", b"").json()["save_failed"].is_null()
    });
    service.end();
    let counted = dir.feed("check --tally seen.tamis", "apple\npear\nplum\n");
    assert_eq!(counted.text(), "1\tapple\n1\tpear\n0\tplum\n");
}

/// Sets the limit of open files; returns the previous one.
fn limit_files(service: &Service, limit: u64) -> u64 {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let set = |new: *const libc::rlimit, old: *mut libc::rlimit| {
        // SAFETY: a plain system call with one value to read and one to write, or null, on a child that was not waited
        // for.
        let status = unsafe { libc::prlimit(service.pid(), libc::RLIMIT_NOFILE, new, old) };
        assert_eq!(status, 0);
    };
    set(std::ptr::null(), &raw mut old);
    let new = libc::rlimit {
        rlim_cur: limit,
        ..old
    };
    set(&raw const new, std::ptr::null_mut());
    old.rlim_cur
}

#[test]
fn strangers_are_counted_and_told_of_once() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100");
    let service = Service::start_writing(&dir, "seen.tamis");
    for headers in ["", "authorization: Bearer wrong\r\n", "", ""] {
        let refused = service.ask("POST /v1/filters/seen/add", headers, "apple");
        assert_eq!(refused.status, 401);
    }
    assert_eq!(sample(&service, "tamis_unauthorized_total"), 4.0);
    assert_eq!(service.add("seen", "apple").status, 200);
    assert_eq!(sample(&service, "tamis_unauthorized_total"), 4.0);
    let log = service.end();
    assert_eq!(log.matches("without the token").count(), 1, "{log}");
    assert!(log.contains("from 127.0.0.1"), "{log}");
}

#[test]
fn a_token_that_others_know_or_guess_is_warned_of() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100");
    let log_with = |token: &str, mode: u32| {
        dir.write("token", token);
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path("token"), mode).unwrap();
        Service::start(&dir, "--write --token-file token seen.tamis").end()
    };
    let log = log_with(TOKEN, 0o600);
    assert!(!log.contains("warning"), "{log}");
    let log = log_with(TOKEN, 0o644);
    assert!(
        log.contains("every user") && log.contains("chmod 600"),
        "{log}"
    );
    assert!(!log.contains("guessed"), "{log}");
    for weak in ["password12345678", "abababababababababababababababababab"] {
        let log = log_with(weak, 0o600);
        assert!(log.contains("may be guessed"), "{log}");
        assert!(!log.contains(weak), "{log}");
    }
}
