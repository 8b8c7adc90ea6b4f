//! HTTP as specified: other things that a client may send, and the answers.

use crate::common::Sandbox;
use crate::service::{Service, TOKEN, receive, send};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

const CHECK: &str = "POST /v1/filters/words/check";

fn serving(words: &str) -> (Sandbox, Service) {
    let dir = Sandbox::new();
    dir.write("list", "apple\npear\n");
    dir.ok("build words.tamis list");
    let service = Service::start_writing(&dir, &format!("{words} words.tamis"));
    (dir, service)
}

#[test]
fn a_method_that_is_not_allowed_is_told_which_are() {
    let (_dir, service) = serving("");
    for (line, allowed) in [
        ("DELETE /v1/filters", "GET,HEAD"),
        ("POST /healthz", "GET,HEAD"),
        ("PUT /readyz", "GET,HEAD"),
        ("PUT /v1/filters/words", "GET,HEAD"),
        ("GET /v1/filters/words/check", "POST"),
        ("HEAD /v1/filters/words/add", "POST"),
        ("OPTIONS /v1/playground", "POST"),
        ("POST /v1/plan", "GET,HEAD"),
        ("POST /", "GET,HEAD"),
    ] {
        let mut stream = service.connect();
        send(&mut stream, "localhost", line, "connection: close\r\n", b"").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let text = text.to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 405"), "{line}: {text}");
        let allow = format!("\r\nallow: {}\r\n", allowed.to_ascii_lowercase());
        assert!(text.contains(&allow), "{line}: {text}");
    }
    // A fixed list can't be added to.
    let finished = service.add("words", "fig");
    assert_eq!(finished.status, 405);
    assert_eq!(finished.header("allow"), Some(""));
    service.end();
}

#[test]
fn a_client_may_wait_until_it_is_told_to_go_on() {
    let (_dir, service) = serving("");
    let mut stream = service.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head = |line: &str, len: usize| {
        format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len}\r\n\
             expect: 100-continue\r\n\r\n"
        )
    };
    stream.write_all(head(CHECK, 9).as_bytes()).unwrap();
    assert_eq!(receive(&mut reader).unwrap().status, 100);
    stream.write_all(b"apple\nfig").unwrap();
    assert_eq!(receive(&mut reader).unwrap().text(), "yes\nno\n");
    // A body that will be refused is refused before it is sent.
    for (line, len, status) in [
        (CHECK, 99_999_999, 413),
        ("POST /v1/filters/words/add", 9, 401),
    ] {
        let mut stream = service.connect();
        stream.write_all(head(line, len).as_bytes()).unwrap();
        let refused = receive(&mut BufReader::new(&stream)).unwrap();
        assert_eq!(refused.status, status, "{line}");
    }
    let other = service.ask(CHECK, "expect: miracles\r\n", "apple");
    assert_eq!(other.status, 417);
    assert!(other.error().contains("100-continue"), "{}", other.error());
    service.end();
}

#[test]
fn answers_come_in_the_form_that_is_wanted_most() {
    let (_dir, service) = serving("");
    let asked = |accept: &str| {
        let headers = format!("content-type: application/json\r\naccept: {accept}\r\n");
        service.ask(CHECK, &headers, r#"["apple"]"#)
    };
    assert_eq!(asked("application/json;q=0").text(), "yes\n");
    assert_eq!(asked("application/json;q=0.1, text/plain").text(), "yes\n");
    assert_eq!(asked("text/plain;q=0, */*").text(), "{\"found\":[true]}\n");
    assert_eq!(asked("text/html").text(), "{\"found\":[true]}\n");
    assert_eq!(asked("*/*;q=0").status, 406);
    service.end();
}

#[test]
fn errors_speak_of_what_was_asked_and_not_of_the_command() {
    let dir = Sandbox::new();
    dir.write("list", "1\n");
    dir.ok("create --format guava --capacity 100 -p 0.001 theirs.bloom");
    dir.ok("add --format keys=int64 theirs.bloom list");
    let service = Service::start(&dir, "theirs.bloom --format keys=int64");
    for query in [
        "",
        "keys=1M&rate=1%25&size=100kB",
        "rate=1%25",
        "size=1MB",
        "need=grow",
        "keys=0",
        "keys=x",
        "rate=2&size=1MB",
        "keys=1M&size=1",
        "keys=1M&need=everything",
        "keys=1M&keys=2M",
        "n=1M",
    ] {
        let refused = service.get(&format!("/v1/plan?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        let error = refused.error();
        for option in ["-n", "-p ", "--"] {
            assert!(!error.contains(option), "{query}: {error}");
        }
    }
    let refused = service.ask("POST /v1/filters/theirs/check", "", "no number");
    assert_eq!(refused.status, 400);
    assert!(!refused.error().contains("--"), "{}", refused.error());
    assert!(refused.error().contains("int64"), "{}", refused.error());
    service.end();
}

#[test]
fn requests_may_follow_each_other_without_waiting() {
    let (_dir, service) = serving("");
    let mut stream = service.connect();
    let mut all = Vec::new();
    for turn in 0..200 {
        let key = ["apple", "fig\n", ""][turn % 3];
        send(&mut all, "localhost", CHECK, "", key.as_bytes()).unwrap();
    }
    stream.write_all(&all).unwrap();
    let mut reader = BufReader::new(stream);
    for turn in 0..200 {
        let answer = receive(&mut reader).unwrap();
        assert_eq!(answer.text(), ["yes\n", "no\n", ""][turn % 3]);
    }
    service.end();
}

#[test]
fn a_head_is_a_get_without_its_body() {
    let (_dir, service) = serving("");
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/v1/filters",
        "/v1/openapi.json",
    ] {
        let mut stream = service.connect();
        let line = format!("HEAD {path}");
        send(
            &mut stream,
            "localhost",
            &line,
            "connection: close\r\n",
            b"",
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
        assert!(text.ends_with("\r\n\r\n"), "{path}: {text}");
    }
    service.end();
}

#[test]
fn chunks_may_be_followed_by_headers() {
    let (_dir, service) = serving("");
    let mut stream = service.connect();
    let head = format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    let body = "3\r\nfig\r\n6;note=x\r\n\napple\r\n0\r\ncontent-encoding: gzip\r\nx: y\r\n\r\n";
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    assert_eq!(receive(&mut reader).unwrap().text(), "no\nyes\n");
    // The connection continues after them.
    send(&mut stream, "localhost", CHECK, "", b"pear").unwrap();
    assert_eq!(receive(&mut reader).unwrap().text(), "yes\n");
    service.end();
}

/// Two lengths would let one client's body be taken for another's request.
#[test]
fn lengths_that_disagree_are_refused() {
    let (_dir, service) = serving("--timeout 2s");
    for lengths in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 6\r\n",
        "content-length: +5\r\n",
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: gzip\r\n",
    ] {
        let mut stream = service.connect();
        let head = format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\n{lengths}\r\napple");
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        // It may also simply close.
        let _ = BufReader::new(stream).read_line(&mut line);
        assert!(line.is_empty() || line.starts_with("HTTP/1.1 4"), "{line}");
    }
    service.end();
}

#[test]
fn names_may_be_escaped_and_keys_hold_any_bytes() {
    let (_dir, service) = serving("");
    let escaped = service.ask(
        "POST /v1/filters/%77ord%73/check",
        "",
        "apple\n\0\napple\0\n",
    );
    assert_eq!(escaped.text(), "yes\nno\nno\n");
    assert_eq!(service.ask(CHECK, "", "").text(), "");
    let json = "content-type: application/json\r\n";
    let nul = service.ask(CHECK, json, r#"["apple", "apple\u0000"]"#);
    assert_eq!(nul.text(), "{\"found\":[true,false]}\n");
    service.end();
}

#[test]
fn a_file_that_is_removed_and_made_again_is_taken() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000 -p 1e-6");
    let service = Service::start_writing(&dir, "seen.tamis");
    assert_eq!(service.add("seen", "apple\n").status, 200);
    let fault = || service.json("/v1/filters/seen")["fault"].clone();
    for turn in 0..3 {
        fs::remove_file(dir.path("seen.tamis")).unwrap();
        service.until("it is gone", || !fault().is_null());
        let headers = format!("authorization: Bearer {TOKEN}\r\n");
        let refused = service.ask("POST /v1/filters/seen/add", &headers, "fig");
        assert_eq!(refused.status, 503);
        dir.ok("create seen.tamis --capacity 1000 -p 1e-6");
        service.until("it is taken", || fault().is_null());
        // Another file, without the first one's keys.
        assert_eq!(service.check("seen", "apple"), "no\n");
        let added = service.add("seen", format!("apple\nkey {turn}\n"));
        assert_eq!(added.text(), "new\nnew\n");
    }
    // If truncated in place, it isn't overwritten.
    let file = fs::File::options().write(true).open(dir.path("seen.tamis"));
    file.unwrap().set_len(200).unwrap();
    service.until("it is cut", || !fault().is_null());
    assert_eq!(service.add("seen", "fig").status, 503);
    assert_eq!(dir.read("seen.tamis").len(), 200);
    assert_eq!(service.check("seen", "apple\nfig"), "yes\nno\n");
    service.end();
}
