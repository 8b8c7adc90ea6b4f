//! Malicious and broken clients get a clear refusal, and nobody else is affected.

use crate::common::Sandbox;
use crate::replaced::Stop;
use crate::service::{Answer, Service, receive, send};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn serving(words: &str) -> (Sandbox, Service) {
    let dir = Sandbox::new();
    dir.write("list", "apple\npear\n");
    dir.ok("build words.tamis list");
    let service = Service::start(&dir, &format!("words.tamis {words}"));
    (dir, service)
}

const CHECK: &str = "POST /v1/filters/words/check";

/// Checks that the service still runs and answers correctly.
fn assert_well(mut service: Service) {
    assert!(service.is_running(), "{}", service.log());
    let (_, answer) = in_time(&service, &request(CHECK, b"apple\nnone"));
    assert_eq!(answer.text(), "yes\nno\n");
    service.end();
}

fn request(line: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    send(&mut bytes, "localhost", line, "", body).unwrap();
    bytes
}

/// The answer to a request, and its connection. On a busy machine the tests' short time limit also cuts off honest
/// clients, and a client just cut off may still occupy a place: so this retries.
fn in_time(service: &Service, request: &[u8]) -> (TcpStream, Answer) {
    let mut answered = None;
    service.until("an answer", || {
        let mut stream = service.connect();
        let sent = stream.write_all(request);
        let answer = sent.and_then(|()| receive(&mut BufReader::new(&stream)));
        let answer = answer.ok().filter(|answer| answer.status != 503);
        answered = answer.map(|answer| (stream, answer));
        answered.is_some()
    });
    answered.unwrap()
}

/// Everything received until the other side closes.
fn read_to_end(mut stream: &TcpStream) -> String {
    let mut text = Vec::new();
    // A reset is an end, too, but a timeout isn't.
    if let Err(error) = stream.read_to_end(&mut text) {
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "it was not cut off");
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn bodies_have_a_limit() {
    let (_dir, service) = serving("--max-body 100k");
    let fits = "k\n".repeat(50_000);
    assert_eq!(service.check("words", &fits), "no\n".repeat(50_000));
    for len in [100_001, 150_000, 350_000] {
        let refused = service.ask(CHECK, "", vec![b'k'; len]);
        assert_eq!(refused.status, 413);
        assert!(
            refused.error().contains("--max-body"),
            "{}",
            refused.error()
        );
    }
    // The head announces far too much.
    let mut stream = service.connect();
    let head = format!(
        "{CHECK} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 99999999999999\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let refused = receive(&mut BufReader::new(&stream)).unwrap();
    assert_eq!(refused.status, 413);
    // The head doesn't announce it.
    let mut stream = service.connect();
    let head = format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"4000\r\n".to_vec(), vec![b'k'; 0x4000], b"\r\n".to_vec()].concat();
    for _ in 0..20 {
        stream.write_all(&chunk).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let refused = receive(&mut BufReader::new(&stream)).unwrap();
    assert_eq!(refused.status, 413);
    refused.error();
    assert_well(service);
}

/// The limit is 64 KB; half of it is accepted.
#[test]
fn heads_have_a_limit() {
    let (_dir, service) = serving("");
    let answer = |request: String| {
        let mut stream = service.connect();
        // It may close before everything is sent.
        let _ = stream.write_all(request.as_bytes());
        read_to_end(&stream)
    };
    let head = |path: usize, field: usize| {
        let (path, field) = ("x".repeat(path), "x".repeat(field));
        format!(
            "GET /{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: {field}\r\n\r\n"
        )
    };
    let read = answer(head(0, 32 << 10));
    assert!(read.starts_with("HTTP/1.1 200"), "{read}");
    let fields = "a: b\r\n".repeat(2000);
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
    for (request, status) in [(head(70 << 10, 1), "HTTP/1.1 414"), (many, "HTTP/1.1 431")] {
        let refused = answer(request);
        assert!(refused.starts_with(status), "{refused}");
    }
    // With far more, the client may be cut off before it reads the answer. What a single read delivers is accepted, so
    // the limit isn't exact to the byte.
    for (request, status) in [
        (head(2_000_000, 1), "HTTP/1.1 431"),
        (head(0, 300_000), "HTTP/1.1 431"),
        (head(0, 2_000_000), "HTTP/1.1 431"),
    ] {
        let refused = answer(request);
        assert!(
            refused.is_empty() || refused.starts_with(status),
            "{refused}"
        );
    }
    assert_well(service);
}

/// A bare status would help nobody: each refusal has a reason, as JSON.
#[test]
fn heads_that_cannot_be_understood_get_a_reason() {
    let (_dir, service) = serving("");
    let long = "9".repeat(400);
    let length = |length: &str| {
        format!(
            "{CHECK} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let (not_http, unsaid) = (
        "the head of the request can't be understood",
        "(--max-body): send fewer keys",
    );
    for (request, status, reason) in [
        ("GET\r\n\r\n".to_owned(), 400, not_http),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400, not_http),
        ("\x01\x02\x03\r\n\r\n".to_owned(), 400, not_http),
        (
            "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(),
            400,
            not_http,
        ),
        (
            "GET / HTTP/1.1\r\n: nothing\r\n\r\n".to_owned(),
            400,
            not_http,
        ),
        (length("-1"), 400, not_http),
        (length("12x"), 400, not_http),
        (length("99999999999999"), 413, unsaid),
        (length("18446744073709551615"), 413, unsaid),
        (length("18446744073709551616"), 413, unsaid),
        (length(&long), 413, unsaid),
        (
            "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03".to_owned() + &"\0".repeat(100),
            400,
            "this is TLS",
        ),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70 << 10)),
            414,
            "send keys in the body",
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(2000)),
            431,
            "at most 64 KB and 100 fields",
        ),
        // After a valid request, also in the same packet.
        (
            "GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\nGET\r\n\r\n".to_owned(),
            400,
            not_http,
        ),
    ] {
        let mut stream = service.connect();
        let _ = stream.write_all(request.as_bytes());
        let read = read_to_end(&stream);
        // A reason may name the protocol, too.
        let is_answer = |at: &usize| read[at + 9..].starts_with(|c: char| c.is_ascii_digit());
        let start = (read.match_indices("HTTP/1.1 ").map(|(at, _)| at))
            .filter(is_answer)
            .last()
            .unwrap_or_else(|| panic!("{request:.60}: {read}"));
        let (head, body) = read[start..].split_once("\r\n\r\n").expect("a head");
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:.60}: {head}"
        );
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let said: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let said = said["error"].as_str().expect("a reason");
        assert!(said.contains(reason), "{request:.60}: {said}");
    }
    assert_well(service);
}

#[test]
fn who_is_slow_is_cut_off() {
    let (_dir, service) = serving("--timeout 300ms");
    // Nothing at all; half a head; a head and half a body; and nothing more after an answer.
    let silent = service.connect();
    let mut half_head = service.connect();
    half_head
        .write_all(b"GET / HTTP/1.1\r\nhost: local")
        .unwrap();
    let half_body =
        format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nappl");
    let (idle, answer) = in_time(&service, &request(CHECK, b"apple"));
    assert_eq!(answer.text(), "yes\n");

    assert_eq!(read_to_end(&idle), "");
    let text = read_to_end(&silent);
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 408"),
        "{text}"
    );
    let text = read_to_end(&half_head);
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 408"),
        "{text}"
    );
    let (_, refused) = in_time(&service, half_body.as_bytes());
    assert_eq!(refused.status, 408);
    assert!(refused.error().contains("--timeout"), "{}", refused.error());
    assert_well(service);
}

/// Sending a byte now and then doesn't gain more time.
#[test]
fn dripping_is_slow() {
    let (_dir, service) = serving("--timeout 300ms");
    for start in [
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: ".to_owned(),
        format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n"),
    ] {
        let mut stream = service.connect();
        stream.write_all(start.as_bytes()).unwrap();
        let mut dripping = stream.try_clone().unwrap();
        let drip = std::thread::spawn(move || {
            while dripping.write_all(b"a").is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let text = read_to_end(&stream);
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 408"),
            "{text}"
        );
        drip.join().unwrap();
    }
    assert_well(service);
}

/// A client that doesn't read the answer, or reads a byte now and then, loses its place.
#[test]
fn who_does_not_read_is_cut_off() {
    for drips in [false, true] {
        let (_dir, service) = serving("--timeout 2s --max-body 16M --max-connections 2");
        let body = vec![b'\n'; 16_000_000];
        let mut stuck = None;
        // Sending everything takes time, too, and must not take too long.
        service.until("the keys are sent in time", || {
            let mut stream = service.connect();
            let sent = send(&mut stream, "localhost", CHECK, "", &body);
            stuck = sent.is_ok().then_some(stream);
            stuck.is_some()
        });
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = Stop(&is_over);
            let (mut stream, is_over) = (stuck.as_ref().unwrap(), &is_over);
            if drips {
                scope.spawn(move || {
                    while !is_over.load(Relaxed) && stream.read(&mut [0]).is_ok() {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                    }
                });
            }
            service.until("its place is free", || {
                let (_, answer) = in_time(&service, &request("GET /metrics", b""));
                let metrics = answer.text();
                metrics.lines().any(|line| line == "tamis_connections 1")
            });
        });
        // The system doesn't go on sending data that the service handed over, either.
        if !drips {
            let rest = stuck.unwrap().read_to_end(&mut Vec::new());
            let rest = rest.map_err(|error| error.kind());
            assert_eq!(rest, Err(ErrorKind::ConnectionReset));
        }
        assert_well(service);
    }
}

#[test]
fn connections_have_a_limit() {
    let (_dir, service) = serving("--timeout 2s --max-connections 5");
    let mut slow = Vec::new();
    let mut refused = None;
    // The system may accept connections before the service does, and slow clients may be cut off before we connect.
    service.until("no place is left", || {
        slow.clear();
        slow.extend((0..5).map(|_| service.connect()));
        let mut stream = service.connect();
        let sent = send(
            &mut stream,
            "localhost",
            CHECK,
            "connection: close\r\n",
            b"apple",
        );
        let answer = sent.and_then(|()| receive(&mut BufReader::new(stream)));
        refused = answer.ok().filter(|answer| answer.status == 503);
        refused.is_some()
    });
    let error = refused.unwrap().error();
    assert!(error.contains("--max-connections"), "{error}");
    for stream in &slow {
        read_to_end(stream); // cut off for being slow
    }
    let (_, answer) = in_time(&service, &request("GET /metrics", b""));
    let metrics = answer.text();
    let refused = "tamis_connections_refused_total ";
    let line = metrics
        .lines()
        .find(|line| line.starts_with(refused))
        .unwrap();
    assert_ne!(line, "tamis_connections_refused_total 0");
    assert_well(service);
}

#[test]
fn what_is_no_list_of_keys_is_refused() {
    let (_dir, service) = serving("");
    let json = "content-type: application/json\r\n";
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [
        &b""[..],
        b"[",
        b"[\"a\"",
        b"[\"a\",]",
        b"[\"a\"] x",
        b"\"a\"",
        b"{\"keys\": [\"a\"]}",
        b"null",
        b"[null]",
        b"[1]",
        b"[1.5]",
        b"[true]",
        b"[{}]",
        b"[[\"a\"]]",
        b"[\"\\ud800\"]",
        b"[\"\xff\xfe\"]",
        b"\xff",
        b"[\"a\nb\"]",
        b"\0",
        deep.as_bytes(),
    ] {
        let refused = service.ask(CHECK, json, body);
        assert_eq!(
            refused.status,
            400,
            "{:?}",
            String::from_utf8_lossy(body).get(..40)
        );
        refused.error();
    }
    for kind in [
        "text/html",
        "multipart/form-data",
        "application/xml",
        ";",
        "\u{7f}",
    ] {
        let headers = format!("content-type: {kind}\r\n");
        let mut stream = service.connect();
        send(&mut stream, "localhost", CHECK, &headers, b"apple").unwrap();
        let refused = receive(&mut BufReader::new(stream)).unwrap();
        assert!(
            [400, 415].contains(&refused.status),
            "{kind}: {}",
            refused.status
        );
    }
    assert_well(service);
}

#[test]
fn paths_lead_nowhere_else() {
    let (dir, service) = serving("");
    dir.write("secret", "must not be served");
    let long = "a".repeat(50_000);
    for path in [
        "/v1/filters/none",
        "/v1/filters/none/check",
        "/v1/filters/..",
        "/v1/filters/%2e%2e",
        "/v1/filters/%2e%2e/check",
        "/v1/filters/%2e%2e%2fsecret",
        "/v1/filters/../secret",
        "/v1/filters/%00",
        "/v1/filters/words%00",
        "/v1/filters/words%00/check",
        "/v1/filters/%ff",
        "/v1/filters/%",
        "/v1/filters/%zz",
        "/v1/filters/words/",
        "/v1/filters//check",
        "/v1/filters/words/check/",
        "/v1/filters/words/%63heck",
        "/v1//filters",
        "//v1/filters",
        "/secret",
        "/../secret",
        "/%2e%2e/secret",
        "/page/none.html",
        "/src/serve/page/index.html",
        "/..\\secret",
        "*",
        &format!("/v1/filters/{long}"),
        &format!("/v1/filters/{long}/check"),
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let answer = service.ask(&format!("{method} {path}"), "", "");
            let start: String = path.chars().take(60).collect();
            assert!(
                (400..500).contains(&answer.status),
                "{method} {start}: {}",
                answer.status
            );
            assert!(!answer.text().contains("must not be served"));
        }
    }
    assert!(service.get("/v1/filters/none").error().contains("none"));
    assert_well(service);
}

#[test]
fn what_is_no_http_ends_the_connection() {
    let (_dir, service) = serving("--timeout 2s");
    let noise: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for bytes in [
        &noise[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"POST /v1/filters/words/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/filters/words/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\napple",
        b"POST /v1/filters/words/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\napple",
        b"POST /v1/filters/words/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
    ] {
        let mut stream = service.connect();
        let _ = stream.write_all(bytes);
        let text = read_to_end(&stream);
        assert!(!text.starts_with("HTTP/1.1 2") && !text.starts_with("HTTP/1.1 5"), "{text}");
    }
    // A body that ends early because the client is gone.
    let mut stream = service.connect();
    let head = format!("{CHECK} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\napple");
    stream.write_all(head.as_bytes()).unwrap();
    drop(stream);
    assert_well(service);
}

#[test]
fn a_log_that_nobody_reads_ends_nothing() {
    let dir = Sandbox::new();
    dir.write("list", "apple\n");
    dir.ok("build words.tamis list");
    // On an address that no other test uses: elsewhere, another program might take the port meanwhile.
    let free = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut child = dir
        .command(&format!("serve --listen {address} words.tamis"))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let mut stream = loop {
        if let Ok(stream) = TcpStream::connect(address) {
            break stream;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended");
    };
    std::fs::write(dir.path("words.tamis"), "noise, of which the log tells").unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut info = || {
        send(&mut stream, "localhost", "GET /v1/filters/words", "", b"").unwrap();
        receive(&mut reader).unwrap().json()
    };
    while info()["fault"].is_null() {}
    // SAFETY: a plain system call on a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
}
