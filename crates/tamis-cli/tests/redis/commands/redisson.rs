//! Redisson's filters, compared with a sample's bits.

use super::{Ran, Sandbox, Server, at, keys};
use crate::servers::Cluster;

fn sample() -> Vec<u8> {
    let path =
        "../tamis-formats/tests/samples/redisson/redisson_stringcodec_n1000_p01_key0-499.bitmap";
    std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn fails(ran: &Ran, said: &[&str]) {
    assert_eq!(ran.code, 2, "{}", ran.err);
    for words in said {
        assert!(ran.err.contains(words), "{words:?} is not in: {}", ran.err);
    }
}

#[test]
fn a_filter_of_a_java_program_is_asked_and_added_to() {
    let server = Server::start(&[]);
    let users = at(&server, "users");
    let dir = Sandbox::new();
    dir.write("present", keys(0..500));
    dir.write("absent", keys(500..20_500));
    // As Redisson's tryInit and add leave it.
    let config = "{users}:config";
    for (field, value) in [
        ("size", "9585"),
        ("hashIterations", "7"),
        ("expectedInsertions", "1000"),
        ("falseProbability", "0.01"),
    ] {
        server.cli(&["HSET", config, field, value]);
    }
    let from_hex = "return redis.call('SET', KEYS[1], (ARGV[1]:gsub('..', function(digits) \
                    return string.char(tonumber(digits, 16)) end)))";
    let hex: String = sample().iter().map(|byte| format!("{byte:02x}")).collect();
    server.cli(&["EVAL", from_hex, "1", "users", &hex]);

    let check = format!("check --format redisson,keys=utf8 {users}");
    assert_eq!(dir.ok(&format!("{check} present")).text(), keys(0..500));
    let wrong = dir.run(&format!("{check} -c absent"));
    let wrong: u32 = wrong.text().trim().parse().unwrap();
    // A quarter of 1 % by its fill: 2.4e-4.
    assert!(wrong <= 25, "{wrong} of 20,000");
    assert_eq!(
        dir.feed(&format!("{check} -v"), "key1\nsurely not\n")
            .text(),
        "surely not\n"
    );

    let info = dir.ok(&format!("info --json --format redisson {users}"));
    let info: serde_json::Value = serde_json::from_str(info.text()).unwrap();
    assert_eq!((&info["bits"], &info["hashes"]), (&9585.into(), &7.into()));
    assert_eq!(
        (&info["capacity"], &info["rate"]),
        (&1000.into(), &0.01.into())
    );
    let held = info["keys_estimated"].as_f64().unwrap();
    assert!((held - 500.0).abs() < 25.0, "{info}");
    let told = dir.ok(&format!("info --format redisson {users}"));
    assert!(
        told.text()
            .contains("the server does not say which (--format redisson,keys=HOW)")
    );

    // The codec must be named, and the format, too.
    fails(
        &dir.run(&format!("check --format redisson {users} present")),
        &[
            "codec",
            "--format redisson,keys=utf8",
            "StringCodec",
            "Kryo5",
        ],
    );
    fails(
        &dir.run(&format!("check --format guava {users} present")),
        &["only redisson's"],
    );
    fails(&dir.run(&format!("check {users} present")), &["users"]);
    let nothing = at(&server, "nothing");
    fails(
        &dir.run(&format!(
            "check --format redisson,keys=utf8 {nothing} present"
        )),
        &["nothing", "tamis create"],
    );
}

#[test]
fn one_that_is_made_here_has_the_bits_of_the_sample() {
    let server = Server::start(&[]);
    made_here(&at(&server, "users"), || server.get("users"));
    let described = server.cli(&["HGETALL", "{users}:config"]);
    for field in [
        "size",
        "9585",
        "hashIterations",
        "7",
        "expectedInsertions",
        "1000",
        "0.01",
    ] {
        assert!(described.contains(field), "{described}");
    }
}

#[test]
fn a_cluster_has_both_keys_in_one_slot() {
    let cluster = Cluster::start(&[]);
    made_here(&cluster.location("users"), sample);
}

fn made_here(users: &str, string: impl Fn() -> Vec<u8>) {
    let dir = Sandbox::new();
    dir.write("keys", keys(0..500));
    let create = format!("create --format redisson --capacity 1000 -p 0.01 {users}");
    let made = dir.ok(&create);
    assert!(made.err.contains("9,585 bits, 7 hashes"), "{}", made.err);
    let add = format!("add --new --format redisson,keys=utf8 {users} keys");
    let added = dir.ok(&add);
    assert!(added.text().lines().count() >= 495, "{}", added.err);
    // The server's string ends with the last byte set; the sample has all bytes.
    let mut bits = string();
    bits.resize(sample().len(), 0);
    assert!(bits == sample(), "other bits than Redisson's");
    assert_eq!(dir.ok(&add).text(), "", "nothing is new a second time");
    let check = format!("check --format redisson,keys=utf8 {users} keys");
    assert_eq!(dir.ok(&check).text(), keys(0..500));

    fails(&dir.run(&create), &["--force replaces it"]);
    assert_eq!(dir.ok(&check).text(), keys(0..500), "it is as it was");
    dir.ok(&format!("{create} --force"));
    assert_eq!(dir.run(&check).code, 1, "the new one is empty");
}

#[test]
fn what_is_not_redissons_is_left_alone() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let users = at(&server, "users");
    server.cli(&["SET", "users", "somebody's"]);
    for force in ["", "--force"] {
        let create = format!("create --format redisson --capacity 1000 {users} {force}");
        fails(&dir.run(&create), &["users", "it is something else"]);
    }
    assert_eq!(server.cli(&["GET", "users"]), "somebody's");
    let flags = "--format redisson,keys=utf8";
    server.cli(&["DEL", "users"]);
    for (size, hashes, said) in [
        ("x", "7", "expected a number"),
        ("0", "7", "size"),
        ("100", "0", "hashIterations"),
        ("100", "99999999999", "hashIterations"),
        ("99999999999999", "7", "size"),
    ] {
        let set = |field: &str, value: &str| {
            server.cli(&["HSET", "{users}:config", field, value]);
        };
        set("size", size);
        set("hashIterations", hashes);
        fails(&dir.feed(&format!("check {flags} {users}"), "x\n"), &[said]);
        fails(&dir.feed(&format!("add {flags} {users}"), "x\n"), &[said]);
    }
    server.cli(&["HDEL", "{users}:config", "hashIterations"]);
    fails(
        &dir.feed(&format!("check {flags} {users}"), "x\n"),
        &["hashIterations"],
    );
    for line in [
        format!("create --format redisson --capacity 10000M -p 1e-9 {users}2"),
        format!("create --format dcso --capacity 10 {users}2"),
        format!("create --format redisson --kind growing --capacity 10 {users}2"),
        format!("add {flags} {users}?replicas=1"),
        format!("verify --format redisson {users}"),
        format!("copy --format redisson {users} x"),
        format!("remove {flags} {users}"),
    ] {
        let ran = dir.feed(&line, "x\n");
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
    }
    assert_eq!(server.cli(&["EXISTS", "users2", "{users2}:config"]), "0");
}

/// A replacement filter has other bits for the same keys.
#[test]
fn a_filter_that_is_replaced_meanwhile_is_noticed() {
    let server = Server::start(&[]);
    let users = at(&server, "users");
    let dir = Sandbox::new();
    dir.ok(&format!("create --format redisson --capacity 1000 {users}"));
    let line = format!("add --format redisson,keys=utf8 -j 1 {users} -");
    let mut child = dir
        .command(&line)
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    use std::io::Write as _;
    // The first keys are present once the first chunk was sent.
    let chunk = keys(0..60_000);
    stdin.write_all(chunk.as_bytes()).unwrap();
    let patience = std::time::Duration::from_secs(60);
    crate::servers::until("the first keys are added", patience, || {
        server.cli(&["STRLEN", "users"]) != "0"
    });
    dir.ok(&format!(
        "create --force --format redisson --capacity 5000 {users}"
    ));
    // It may end before it has read everything.
    let _ = stdin.write_all(keys(60_000..120_000).as_bytes());
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        said.contains("replaced") || said.contains("deleted"),
        "{said}"
    );
}
