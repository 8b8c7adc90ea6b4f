//! Compressed bodies, and bodies in another charset. Misread keys would give a false "no", or add unintended keys.

use crate::common::Sandbox;
use crate::service::{Service, TOKEN, receive};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufReader, Write as _};

const CHECK: &str = "POST /v1/filters/seen/check";
const ADD: &str = "POST /v1/filters/seen/add";

fn serving(words: &str) -> (Sandbox, Service) {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 10k -p 1e-9");
    let service = Service::start_writing(&dir, &format!("{words} seen.tamis"));
    assert_eq!(service.add("seen", "apple\npear\n").status, 200);
    (dir, service)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn gzip_is_unpacked() {
    let (_dir, service) = serving("");
    let keys = b"pear\nfig\napple\n";
    for coding in ["gzip", "GZIP", "x-gzip", "identity, gzip"] {
        let headers = format!("content-encoding: {coding}\r\n");
        let answer = service.ask(CHECK, &headers, gzip(keys));
        assert_eq!(answer.text(), "yes\nno\nyes\n", "{coding}");
    }
    let plain = service.ask(CHECK, "content-encoding: identity\r\n", keys);
    assert_eq!(plain.text(), "yes\nno\nyes\n");
    // gzip treats two concatenated files as one.
    let two = [gzip(b"pear\nfi"), gzip(b"g\napple\n")].concat();
    let answer = service.ask(CHECK, "content-encoding: gzip\r\n", two);
    assert_eq!(answer.text(), "yes\nno\nyes\n");
    let json = "content-encoding: gzip\r\ncontent-type: application/json\r\n";
    let answer = service.ask(CHECK, json, gzip(br#"["fig", "pear"]"#));
    assert_eq!(answer.text(), "{\"found\":[false,true]}\n");

    let headers = format!("authorization: Bearer {TOKEN}\r\ncontent-encoding: gzip\r\n");
    let added = service.ask(ADD, &headers, gzip(b"plum\napple\n"));
    assert_eq!(added.text(), "new\nknown\n");
    assert_eq!(service.check("seen", "plum"), "yes\n");
    service.end();
}

#[test]
fn what_can_not_be_unpacked_is_refused_and_adds_nothing() {
    let (_dir, service) = serving("");
    let before = service.json("/v1/filters/seen")["keys"].clone();
    let refused = |coding: &str, body: &[u8]| {
        let headers = format!("authorization: Bearer {TOKEN}\r\ncontent-encoding: {coding}\r\n");
        let checked = service.ask(CHECK, &headers, body);
        let added = service.ask(ADD, &headers, body);
        assert_eq!(added.status, checked.status, "{coding}");
        added.error();
        checked
    };
    let body = gzip(b"apple\npear\n");
    for coding in ["deflate", "zstd", "br", "compress", "gzip, gzip", "none"] {
        let answer = refused(coding, &body);
        assert_eq!(answer.status, 415, "{coding}");
        assert_eq!(answer.header("accept-encoding"), Some("gzip, identity"));
        assert!(answer.error().contains("Content-Encoding"));
    }
    let mut wrong_sum = body.clone();
    let at = wrong_sum.len() - 5;
    wrong_sum[at] ^= 1;
    for bytes in [
        &b"apple\n"[..],
        b"",
        &body[..body.len() - 1],
        &body[..10],
        &wrong_sum,
        &[&body[..], b"and more"].concat(),
    ] {
        let answer = refused("gzip", bytes);
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    assert_eq!(service.json("/v1/filters/seen")["keys"], before);
    service.end();
}

/// The other header in which a client may declare compression.
#[test]
fn packed_chunks_are_refused() {
    let (_dir, service) = serving("");
    let body = gzip(b"apple\npear\n");
    let head = format!(
        "{CHECK} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         transfer-encoding: gzip, chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    let mut stream = service.connect();
    let request = [head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    stream.write_all(&request).unwrap();
    let refused = receive(&mut BufReader::new(stream)).unwrap();
    assert_eq!(refused.status, 501);
    refused.error();
    service.end();
}

/// A few kilobytes that expand to gigabytes.
#[test]
fn a_bomb_is_refused() {
    let (_dir, service) = serving("--max-body 1M");
    let fits = gzip(&b"k\n".repeat(500_000));
    let answer = service.ask(CHECK, "content-encoding: gzip\r\n", fits);
    assert_eq!(answer.text(), "no\n".repeat(500_000));
    for body in [gzip(&vec![b'\n'; 1_000_001]), gzip(&vec![0; 300_000_000])] {
        assert!(body.len() < 1_000_000);
        let refused = service.ask(CHECK, "content-encoding: gzip\r\n", body);
        assert_eq!(refused.status, 413, "{}", refused.text());
        assert!(refused.error().contains("unpacked"), "{}", refused.error());
    }
    let most = service.memory("VmHWM");
    assert!(most < 100_000_000, "{most}");
    service.end();
}

#[test]
fn other_charsets_are_refused() {
    let (_dir, service) = serving("");
    let asked = |kind: &str, body: &[u8]| {
        let headers = format!("content-type: {kind}\r\n");
        service.ask(CHECK, &headers, body)
    };
    for kind in [
        "text/plain; charset=utf-8",
        "text/plain;charset=\"UTF-8\"",
        "TEXT/PLAIN; Charset=US-ASCII",
    ] {
        assert_eq!(asked(kind, b"apple").text(), "yes\n", "{kind}");
    }
    let wide = |text: &str| -> Vec<u8> {
        let marked = format!("\u{feff}{text}");
        marked.encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    for kind in [
        "text/plain; charset=utf-16",
        "text/plain; charset=iso-8859-1",
        "application/json; charset=utf-16le",
        "application/x-www-form-urlencoded; charset=windows-1252",
        "multipart/form-data; boundary=x",
    ] {
        assert_eq!(asked(kind, b"apple").status, 415, "{kind}");
    }
    // Text that a Windows editor saves as Unicode, and curl sends unchanged.
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let refused = asked(kind, &wide("apple\npear\n"));
        assert_eq!(refused.status, 415, "{kind}");
        assert!(refused.error().contains("UTF-16"), "{}", refused.error());
    }
    // A byte order mark isn't part of the first key, here as in every file that the command reads.
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let marked = asked(kind, "\u{feff}apple\n\u{feff}apple\n".as_bytes());
        assert_eq!(marked.text(), "yes\nno\n", "{kind}");
    }
    let marked = asked("application/json", "\u{feff}[\"apple\"]".as_bytes());
    assert_eq!(marked.status, 200, "{}", marked.text());
    // A client that declares keys as bytes may send these bytes.
    for bytes in [wide("apple"), "\u{feff}apple".into()] {
        let answer = asked("application/octet-stream", &bytes);
        assert_eq!(answer.text(), "no\n");
    }
    service.end();
}
