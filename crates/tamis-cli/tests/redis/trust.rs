//! Which Redis servers the command trusts: over TLS, and as replicas.

use crate::common::Sandbox;
use crate::servers::{Certificate, Server, until};
use std::time::Duration;

#[test]
fn a_replica_without_its_master() {
    let dir = Sandbox::new();
    let master = Server::start(&[]);
    let of = format!("replicaof 127.0.0.1 {}", master.port());
    let replica = Server::start(&[&of]);
    let at = |server: &Server| format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {} --capacity 1000", at(&master)));
    assert_eq!(dir.feed(&format!("add {}", at(&master)), "old\n").code, 0);
    let seen = at(&replica);
    until("the replica to have it", Duration::from_secs(120), || {
        dir.feed(&format!("check {seen}?retry=1ms"), "old\n").code == 0
    });
    replica.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(dir.feed(&format!("add {}", at(&master)), "new\n").code, 0);
    for command in ["check", "info", "list"] {
        let server = format!("redis://{}", replica.address());
        let what = if command == "list" { &server } else { &seen };
        let line = format!("{command} {what}?retry=1ms");
        let ran = dir.feed(&line, "new\n");
        assert_eq!((ran.code, ran.text()), (2, ""), "{line}");
        assert!(ran.err.contains("link down"), "{}", ran.err);
        assert_eq!(ran.err.matches("link down").count(), 1, "{}", ran.err);
        let ran = dir.feed(&format!("{line}&max-lag=any"), "old\n");
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
    }
}

#[test]
fn certificates() {
    let dir = Sandbox::new();
    let certificate = Certificate::new();
    let settings = certificate.settings();
    let settings = settings.iter().map(String::as_str);
    let settings: Vec<_> = settings
        .filter(|line| *line != "tls-auth-clients no")
        .collect();
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let ca = path(certificate.authority());
    let (cert, key) = certificate.client();
    let (cert, key) = (path(cert), path(key));
    let credentials = ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key];
    let server = Server::start_on("tls-port", &settings, &credentials);
    let seen = format!("rediss://{}/seen", server.address());
    let mine = format!("cert={cert}&key={key}");

    let made = dir.ok(&format!("create {seen}?ca={ca}&{mine} --capacity 1000"));
    assert!(!made.err.contains("warning"), "{}", made.err);
    let lax = dir.ok(&format!("info {seen}?tls=insecure&{mine}"));
    assert_eq!(lax.err.matches("any certificate").count(), 1, "{}", lax.err);
    let servers = format!("rediss://{}", server.address());
    let lax = dir.ok(&format!("list {servers}/?tls=insecure&{mine}"));
    assert!(lax.err.contains("any certificate"), "{}", lax.err);

    // Without a client certificate, with half of a pair, and with an invalid one.
    dir.write("empty", "");
    let refused = |line: &str, reason: &str| {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.text()), (2, ""), "{line}");
        assert!(ran.err.contains(reason), "{line}: {}", ran.err);
    };
    let strangers = "it asks clients for certificates";
    refused(&format!("info {seen}?ca={ca}"), strangers);
    // Not one of the system's certificates, if it has any.
    refused(&format!("info {seen}?{mine}"), "certificate");
    refused(&format!("info {seen}?cert={cert}"), "key=FILE");
    refused(&format!("info {seen}?key={key}"), "cert=FILE");
    let none = "expected certificates in PEM format";
    refused(&format!("info {seen}?ca=empty&{mine}"), none);
    refused(&format!("info {seen}?ca={key}&{mine}"), none);
    refused(
        &format!("info {seen}?ca={ca}&cert={cert}&key={cert}"),
        "expected a private key",
    );

    // The environment sets the same for all servers, and the location overrides it.
    let from_env = |line: &str, ca: &str| {
        let mut command = dir.command(line);
        command.env("TAMIS_REDIS_CA", ca);
        command.env("TAMIS_REDIS_CERT", &cert);
        command.env("TAMIS_REDIS_KEY", &key);
        dir.feed_to(command, "")
    };
    let asked = from_env(&format!("info {seen}"), &ca);
    assert_eq!(asked.code, 0, "{}", asked.err);
    let asked = from_env(&format!("info {seen}?ca={ca}"), &key);
    assert_eq!(asked.code, 2, "{}", asked.err);
    assert!(asked.err.contains(none), "{}", asked.err);
}

/// A writable replica would confirm keys that its next sync with the master loses.
#[test]
fn a_writable_replica() {
    let dir = Sandbox::new();
    let master = Server::start(&[]);
    let of = format!("replicaof 127.0.0.1 {}", master.port());
    let replica = Server::start(&[&of, "replica-read-only no"]);
    let at = |server: &Server, name: &str| format!("redis://{}/{name}", server.address());
    dir.ok(&format!("create {} --capacity 1000", at(&master, "seen")));
    let seen = at(&replica, "seen");
    until("the replica to have it", Duration::from_secs(120), || {
        let asked = dir.feed(&format!("check {seen}?retry=1ms"), "new\n");
        asked.code == 1
    });
    for line in [
        format!("add {seen}"),
        format!("dedup --filter {seen}"),
        format!("create {} --capacity 10", at(&replica, "other")),
        format!("create --force {seen} --capacity 10"),
        format!("drop {seen}"),
        format!("drop --after 1h {seen}"),
        format!("add {seen}?max-lag=any"),
    ] {
        let mut command = dir.command(&line);
        command.env("TAMIS_REDIS_RETRY", "1ms");
        let ran = dir.feed_to(command, "new\n");
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(ran.err.contains("write to the master"), "{}", ran.err);
    }
    let asked = dir.feed(&format!("check {seen}"), "new\n");
    assert_eq!(asked.code, 1, "{}", asked.err);
    let added = dir.feed(&format!("add {seen}?write=replica"), "new\n");
    assert_eq!(added.code, 0, "{}", added.err);
    assert_eq!(dir.feed(&format!("check {seen}"), "new\n").code, 0);
}
