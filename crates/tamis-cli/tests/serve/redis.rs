//! Filters in Redis, served.

use crate::common::Sandbox;
use crate::servers::Server;
use crate::service::{Service, TOKEN};
use serde_json::json;
use std::time::Duration;
use tamis::{
    Hasher, Moment, Plan,
    window::{Span, WindowOptions},
};
use tamis_redis::{Location, Options, RedisFilter};

#[test]
fn a_filter_in_redis_is_asked_and_added_to() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {seen} --capacity 1000 -p 1e-6"));
    let service = Service::start_writing(&dir, &seen);
    assert_eq!(service.check("seen", "apple"), "no\n");
    assert_eq!(
        service.add("seen", "apple\npear\napple").text(),
        "new\nnew\nknown\n"
    );
    assert_eq!(service.check("seen", "apple\nplum"), "yes\nno\n");
    assert_eq!(dir.feed(&format!("check {seen}"), "pear\n").code, 0);
    let headers = format!("authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n");
    let added = service.ask("POST /v1/filters/seen/add", &headers, r#"["fig"]"#);
    assert_eq!(added.json(), json!({ "new": [true], "saved": true }));

    let about = service.json("/v1/filters/seen");
    assert_eq!(
        (&about["kind"], &about["writable"]),
        (&json!("blocked"), &json!(true))
    );
    let listed = service.json("/v1/filters");
    assert_eq!(listed["filters"].as_array().unwrap().len(), 1);

    // Deleted and created again: the new one answers.
    dir.ok(&format!("drop {seen}"));
    let gone = service.ask("POST /v1/filters/seen/check", "", "apple");
    assert_eq!(gone.status, 503, "{}", gone.text());
    gone.error();
    dir.ok(&format!("create {seen} --capacity 1000 -p 1e-6"));
    assert_eq!(service.check("seen", "apple"), "no\n");
    assert_eq!(service.add("seen", "apple").text(), "new\n");
    service.end();
}

#[test]
fn a_server_that_is_gone_is_told_and_found_again() {
    let mut server = Server::start(&[]);
    let dir = Sandbox::new();
    dir.write("list", "apple\n");
    dir.ok("build words.tamis list");
    let plain = format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {plain} --capacity 1000 -p 1e-6"));
    let service = Service::start(&dir, &format!("{plain}?retry=100ms words.tamis"));
    server.kill();
    let refused = service.ask("POST /v1/filters/seen/check", "", "apple");
    assert_eq!(refused.status, 503);
    refused.error();
    // The other filter is unaffected.
    assert_eq!(service.check("words", "apple"), "yes\n");
    let listed = service.json("/v1/filters");
    let seen = &listed["filters"][0];
    assert_eq!(seen["name"], "seen");
    assert!(seen["fault"].is_string(), "{seen}");
    assert_eq!(service.get("/metrics").status, 200);
    server.restart();
    dir.ok(&format!("create {plain} --capacity 1000 -p 1e-6"));
    service.until("found again", || {
        let answer = service.ask("POST /v1/filters/seen/check", "", "apple");
        answer.status == 200 && answer.text() == "no\n"
    });
    service.end();
}

#[test]
fn a_window_in_redis_is_asked_and_added_to_at_times() {
    let server = Server::start(&[]);
    let dir = Sandbox::new();
    let seen = format!("redis://{}/seen", server.address());
    let at: Location = seen.parse().unwrap();
    let options = WindowOptions::new(Span::Time(Duration::from_secs(3_600)));
    let plan = Plan::window(&options, 1_000, 1e-6).unwrap();
    RedisFilter::create(&at, &plan, Hasher::default(), &Options::default()).unwrap();
    let service = Service::start_writing(&dir, &seen);
    let headers = format!("authorization: Bearer {TOKEN}\r\n");
    let ask = |verb: &str, key: &str, at: Moment| {
        let seconds = at.micros() as f64 / 1e6;
        let line = format!("POST /v1/filters/seen/{verb}?at={seconds}");
        service.ask(&line, &headers, key)
    };
    let then = Moment::now() - Duration::from_secs(7_200);
    assert_eq!(ask("add", "a", then).text(), "new\n");
    let last = then + Duration::from_secs(3_600);
    assert_eq!(ask("add", "a", last).text(), "known\n");
    assert_eq!(ask("check", "a\nb", last).text(), "yes\nno\n");
    assert_eq!(
        ask("check", "a", then + Duration::from_secs(4_051)).text(),
        "no\n"
    );
    // By the clock, it is forgotten.
    assert_eq!(service.check("seen", "a"), "no\n");
    assert_eq!(service.add("seen", "a").text(), "new\n");
    assert_eq!(ask("add", "c", then).text(), "new, too old\n");
    let far = ask("add", "b", Moment::now() + Duration::from_secs(86_400));
    assert_eq!(far.status, 400);
    assert!(far.error().contains("in the future"));
    assert_eq!(service.check("seen", "a\nb"), "yes\nno\n");
    service.end();
}

/// Clients without a token don't learn the servers' addresses, versions and settings.
#[test]
fn strangers_learn_nothing_of_the_servers() {
    let mut server = Server::start(&[]);
    let dir = Sandbox::new();
    let place = format!("redis://{}/seen", server.address());
    dir.ok(&format!("create {place} --capacity 1000 -p 1e-6"));
    let service = Service::start_writing(&dir, &format!("{place}?retry=100ms"));
    let address = server.address().to_string();
    let token = format!("authorization: Bearer {TOKEN}\r\n");
    let lines = ["GET /v1/filters", "GET /v1/filters/seen", "GET /readyz"];
    for line in lines {
        let told = service.ask(line, "", "").text();
        for secret in [&address[..], "policy", "version", "noeviction"] {
            assert!(!told.contains(secret), "{line}: {secret} in {told}");
        }
    }
    let told = service.ask("GET /v1/filters/seen", &token, "").text();
    assert!(told.contains(&address) && told.contains("policy"), "{told}");
    server.kill();
    // A slightly old description may be served again.
    service.until("it is noticed", || {
        service.get("/v1/filters/seen").status == 503
    });
    for line in lines.into_iter().chain(["POST /v1/filters/seen/check"]) {
        let key = if line.starts_with("POST") {
            "apple"
        } else {
            ""
        };
        let told = service.ask(line, "", key).text();
        assert!(!told.contains(&address), "{line}: {told}");
        assert!(told.contains("Redis"), "{line}: {told}");
        // A probe doesn't wait for the reason.
        if line != "GET /readyz" {
            let told = service.ask(line, &token, key).text();
            assert!(told.contains(&address), "{line}: {told}");
        }
    }
    let log = service.end();
    assert!(log.contains(&format!("redis://{address}")), "{log}");
}
