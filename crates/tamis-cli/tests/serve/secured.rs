//! Names, origins, the token, and encryption.

use crate::common::Sandbox;
use crate::servers::Certificate;
use crate::service::{Service, TOKEN, receive, send};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn words(dir: &Sandbox) {
    dir.write("list", "apple\n");
    dir.ok("build words.tamis list");
}

const CHECK: &str = "POST /v1/filters/words/check";

#[test]
fn other_names_and_other_sites_are_refused() {
    let dir = Sandbox::new();
    words(&dir);
    let service = Service::start(&dir, "--host Filters.Example words.tamis");
    let status = |headers: &str| service.ask(CHECK, headers, "apple").status;
    assert_eq!(status(""), 200);
    assert_eq!(status("host: localhost\r\n"), 200);
    assert_eq!(status("host: filters.example\r\n"), 200);
    assert_eq!(status("host: evil.example\r\n"), 403);
    assert_eq!(
        status("host: localhost\r\norigin: http://evil.example\r\n"),
        403
    );
    assert_eq!(
        status("host: localhost\r\norigin: http://localhost\r\n"),
        200
    );
    assert_eq!(status("host: a\r\nhost: localhost\r\n"), 400);
    // For any path, including the page.
    for line in [
        "GET /",
        "GET /v1/filters",
        "GET /metrics",
        "GET /healthz",
        "GET /none",
    ] {
        assert_eq!(
            service.ask(line, "host: evil.example\r\n", "").status,
            403,
            "{line}"
        );
    }
    // A browser's preflight request gets no permission, and no answer is for other sites.
    let asked_first = "host: localhost\r\norigin: http://localhost\r\n\
                       access-control-request-method: POST\r\n";
    let answer = service.ask("OPTIONS /v1/filters/words/check", asked_first, "");
    assert!(
        answer.header("access-control-allow-origin").is_none(),
        "{}",
        answer.head
    );
    let answer = service.ask(CHECK, "", "apple");
    assert!(
        answer.header("access-control-allow-origin").is_none(),
        "{}",
        answer.head
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(
        answer.header("cross-origin-resource-policy"),
        Some("same-origin")
    );
    service.end();
}

#[test]
fn who_adds_needs_the_token() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000");
    let service = Service::start_writing(&dir, "seen.tamis");
    let add = |headers: &str| service.ask("POST /v1/filters/seen/add", headers, "apple");
    for headers in [
        "",
        "authorization: Bearer\r\n",
        "authorization: Bearer 0123456789abcdef0123456789abcdeF\r\n",
        "authorization: Basic 0123456789abcdef0123456789abcdef\r\n",
        "authorization: Bearer é\r\n",
    ] {
        let refused = add(headers);
        assert!(
            [400, 401].contains(&refused.status),
            "{headers}: {}",
            refused.status
        );
        assert!(!refused.error().contains(TOKEN));
    }
    assert_eq!(add("").header("www-authenticate"), Some("Bearer"));
    // Without a token, clients learn nothing about filters that don't exist.
    assert_eq!(
        service.ask("POST /v1/filters/none/add", "", "apple").status,
        401
    );
    assert_eq!(service.check("seen", "apple"), "no\n");
    assert_eq!(
        add(&format!("authorization: Bearer {TOKEN}\r\n")).text(),
        "new\n"
    );
    // Even a page of another site that knows the token.
    let foreign = format!("authorization: Bearer {TOKEN}\r\norigin: http://evil.example\r\n");
    assert_eq!(add(&foreign).status, 403);
    assert!(!service.end().contains(TOKEN));
}

#[test]
fn a_token_is_made_for_its_owner_alone() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000");
    let service = Service::start(&dir, "--write --token-file fresh seen.tamis");
    let token = String::from_utf8(dir.read("fresh")).unwrap();
    assert_eq!(token.trim().len(), 32, "{token}");
    let mode = std::fs::metadata(dir.path("fresh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let headers = format!("authorization: Bearer {}\r\n", token.trim());
    let added = service.ask("POST /v1/filters/seen/add", &headers, "apple");
    assert_eq!(added.text(), "new\n");
    service.end();

    let without = dir.run("serve --listen 127.0.0.1:0 --write seen.tamis");
    assert_eq!(without.code, 2);
    assert!(without.err.contains("--token-file"), "{}", without.err);
    for bad in ["", "short", "0123456789 abcdef0", "0123456789abcdéf"] {
        dir.write("bad", bad);
        let refused = dir.run("serve --listen 127.0.0.1:0 --write --token-file bad seen.tamis");
        assert_eq!(refused.code, 2, "{bad}");
        assert!(refused.err.contains("token"), "{}", refused.err);
    }
}

#[test]
fn connections_can_be_encrypted() {
    let certificate = Certificate::new();
    let folder = certificate.authority().parent().unwrap().to_owned();
    let dir = Sandbox::new();
    words(&dir);
    let file = |name: &str| folder.join(name).display().to_string();
    let tls = format!(
        "--tls-cert {} --tls-key {}",
        file("server.crt"),
        file("server.key")
    );
    let service = Service::start(&dir, &format!("{tls} words.tamis"));
    assert!(service.log().contains("https://"), "{}", service.log());

    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate.authority()).unwrap())
        .unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(client, service.connect()));
    for _ in 0..3 {
        let keys = "apple\nnone\n".repeat(20_000);
        send(stream.get_mut(), "localhost", CHECK, "", keys.as_bytes()).unwrap();
        assert_eq!(
            receive(&mut stream).unwrap().text(),
            "yes\nno\n".repeat(20_000)
        );
    }
    // An unencrypted client gets nothing, and disturbs nobody.
    let mut plain = service.connect();
    send(&mut plain, "localhost", "GET /healthz", "", b"").unwrap();
    assert!(receive(&mut BufReader::new(plain)).is_err());
    send(stream.get_mut(), "localhost", "GET /healthz", "", b"").unwrap();
    assert_eq!(receive(&mut stream).unwrap().text(), "ok\n");
    drop(stream);
    service.end();

    dir.write("empty.pem", "");
    for bad in [
        format!("--tls-cert {} --tls-key empty.pem", file("server.crt")),
        format!("--tls-cert empty.pem --tls-key {}", file("server.key")),
        format!(
            "--tls-cert {} --tls-key {}",
            file("ca.crt"),
            file("server.key")
        ),
        format!("--tls-cert {}", file("server.crt")),
    ] {
        let refused = dir.run(&format!("serve --listen 127.0.0.1:0 {bad} words.tamis"));
        assert_eq!(refused.code, 2, "{bad}");
    }
}

/// If reading needs a token, only probes and the page are open to everyone.
#[test]
fn a_token_for_reading_can_be_asked_for() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000");
    let service = Service::start_writing(&dir, "--read-token-file reading seen.tamis");
    let reading = String::from_utf8(dir.read("reading")).unwrap();
    let reading = format!("authorization: Bearer {}\r\n", reading.trim());
    let writing = format!("authorization: Bearer {TOKEN}\r\n");
    for line in [
        "GET /v1/filters",
        "GET /v1/filters/seen",
        "GET /v1/filters/none",
        "GET /metrics",
        "GET /v1/plan?keys=1M",
        "POST /v1/filters/seen/check",
    ] {
        let status = |headers: &str| service.ask(line, headers, "").status;
        assert_eq!(status(""), 401, "{line}");
        assert_eq!(status("authorization: Bearer 0123456789abcdef\r\n"), 401);
        let expected = if line.contains("none") { 404 } else { 200 };
        assert_eq!(status(&reading), expected, "{line}");
        assert_eq!(status(&writing), expected, "{line}");
    }
    let refused = service.get("/v1/filters");
    assert!(
        refused.error().contains("--read-token-file"),
        "{}",
        refused.text()
    );
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    for path in [
        "/healthz",
        "/readyz",
        "/",
        "/page/app.js",
        "/v1/openapi.json",
    ] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    let add = |headers: &str| {
        service
            .ask("POST /v1/filters/seen/add", headers, "apple")
            .status
    };
    assert_eq!((add(""), add(&reading), add(&writing)), (401, 401, 200));
    service.end();
}

#[test]
fn secrets_on_the_wire_and_in_sight_are_warned_of() {
    let certificate = Certificate::new();
    let folder = certificate.authority().parent().unwrap().to_owned();
    let file = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (file("server.crt"), file("server.key"));
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000");
    let allow = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&key, mode).unwrap();
    };
    let log = |words: &str| {
        let line = format!("serve {words} --token-file token --write seen.tamis");
        Service::run(dir.command(&line)).end()
    };
    allow(0o600);
    let tls = format!("--tls-cert {cert} --tls-key {key}");
    assert!(log("--listen 0.0.0.0:0").contains("sees the token"));
    for words in ["--listen 127.0.0.1:0", &format!("--listen 0.0.0.0:0 {tls}")] {
        let log = log(words);
        assert!(!log.contains("warning"), "{log}");
    }
    allow(0o644);
    let log = log(&format!("--listen 127.0.0.1:0 {tls}"));
    assert!(
        log.contains("every user") && log.contains("server.key"),
        "{log}"
    );
}
