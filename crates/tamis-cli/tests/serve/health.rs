//! `tamis serve --health`, as used by images and units.

use crate::common::Sandbox;
use crate::servers::Certificate;
use crate::service::Service;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

#[test]
fn a_service_that_runs_is_healthy_until_it_ends() {
    let dir = Sandbox::new();
    dir.write("list", "apple\n");
    dir.ok("build words.tamis list");
    // Neither tokens nor host names block a probe.
    let words = "--read-token-file reading --host filters.example words.tamis";
    let service = Service::start(&dir, words);
    let probe = format!("serve --health --listen {}", service.address);
    let ran = dir.ok(&probe);
    assert_eq!((ran.text(), ran.err.as_str()), ("", ""));
    // With the same address that the service listens on.
    dir.ok(&format!(
        "serve --health --listen 0.0.0.0:{}",
        service.address.port()
    ));
    service.end();
    let ran = dir.run(&probe);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("for /healthz"), "{}", ran.err);
}

#[test]
fn over_tls_only_the_holder_of_the_certificate_is_healthy() {
    let certificate = Certificate::new();
    let folder = certificate.authority().parent().unwrap().to_owned();
    let file = |name: &str| folder.join(name).display().to_string();
    let dir = Sandbox::new();
    let (cert, key) = (file("server.crt"), file("server.key"));
    let service = Service::start(&dir, &format!("--tls-cert {cert} --tls-key {key}"));
    let probe = format!("serve --health --listen {}", service.address);
    dir.ok(&format!("{probe} --tls-cert {cert}"));
    for other in [
        format!("--tls-cert {}", file("ca.crt")),
        "--tls-cert missing.pem".to_owned(),
        String::new(),
    ] {
        let ran = dir.run(&format!("{probe} {other}"));
        assert_eq!(ran.code, 1, "{other}: {}", ran.err);
    }
}

#[test]
fn what_answers_otherwise_is_not_healthy() {
    let dir = Sandbox::new();
    for answer in [
        "HTTP/1.1 503 Service Unavailable\r\n\r\n",
        "SSH-2.0-server\r\n",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap();
            assert!(request[..read].starts_with(b"GET /healthz HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let ran = dir.run(&format!("serve --health --listen {at}"));
        assert_eq!(ran.code, 1, "{answer:?}: {}", ran.err);
        other.join().unwrap();
    }
    // A probe serves no filters.
    assert_eq!(dir.run("serve --health words.tamis").code, 2);
}
