//! A signal is not a lost answer.

use crate::common::{Server, until};
use crate::*;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Environment variables that configure the worker.
const AT: &str = "TAMIS_TEST_SIGNALS_AT";
const FOLDER: &str = "TAMIS_TEST_SIGNALS_FOLDER";

/// When started by the other test of this file, a worker that adds keys. When
/// run by itself, checks that nothing goes wrong undisturbed.
#[test]
fn worker() {
    if let Ok(at) = env::var(AT) {
        let folder = PathBuf::from(env::var(FOLDER).unwrap());
        // However long the signals take.
        let patient = options().response_timeout(Duration::from_secs(120));
        let mut filter = RedisFilter::open(&location(&at), &patient).unwrap();
        fs::write(folder.join("opened"), "").unwrap();
        until("the server to be frozen", Duration::from_secs(60), || {
            folder.join("go").exists()
        });
        let new = count(&insert(&mut filter, &keys(0..1_000)));
        let stats = filter.stats();
        let told = format!("{new} {} {}", stats.retries, stats.ambiguous_keys);
        return fs::write(folder.join("told"), told).unwrap();
    }
    let place = at(server(), "no-signals");
    let (mut filter, _) = pair(&place, &plan(100_000, 1e-6));
    assert_eq!(count(&insert(&mut filter, &keys(0..1_000))), 1_000);
    assert_eq!(filter.stats().retries, 0);
    filter.delete().unwrap();
}

/// A worker is stopped and continued while it waits for an answer: a read with
/// a timeout then ends with "interrupted".
#[test]
fn a_worker_is_stopped_and_goes_on() {
    let server = Server::start(&[]);
    let place = at(&server, "stopped");
    drop(pair(&place, &plan(100_000, 1e-6)));
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Command::new(env::current_exe().unwrap())
        .args(["--exact", "signals::worker"])
        .env(AT, format!("redis://{}/stopped", server.address()))
        .env(FOLDER, folder.path())
        .spawn()
        .unwrap();
    until("the worker to begin", Duration::from_secs(60), || {
        folder.path().join("opened").exists()
    });
    server.freeze();
    fs::write(folder.path().join("go"), "").unwrap();
    let signal = |name: &str| {
        let pid = worker.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    };
    // During most of these it is waiting for the frozen server.
    for _ in 0..20 {
        signal("-STOP");
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.thaw();
    assert!(worker.wait().unwrap().success());
    let told = fs::read_to_string(folder.path().join("told")).unwrap();
    assert_eq!(told, "1000 0 0", "new, sent again, uncertain");
}
