//! Requests that take more than their share of memory, processors or time.

use crate::common::Sandbox;
use crate::replaced::Stop;
use crate::service::{Service, TOKEN, receive, send};
use std::ffi::CString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The service's memory limit, whatever clients do.
const MOST: u64 = 300_000_000;

fn make_pipe(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a plain system call, with a path that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Ends it with a single signal, in time.
fn end_in_time(mut service: Service) {
    service.send_signal(libc::SIGTERM);
    let start = Instant::now();
    while service.is_running() {
        let log = service.log();
        assert!(start.elapsed() < Duration::from_secs(120), "{log}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(service.wait().success(), "{}", service.log());
}

/// Opening a pipe blocks until another process writes to it.
#[test]
fn what_is_no_file_stops_neither_the_filter_nor_the_end() {
    for words in ["list.tamis", "--write --token-file token list.tamis"] {
        let dir = Sandbox::new();
        dir.write("token", TOKEN);
        dir.ok("create list.tamis --capacity 1000 -p 1e-6");
        dir.write("keys", "apple\n");
        dir.ok("add list.tamis keys");
        let whole = dir.read("list.tamis");
        let path = dir.path("list.tamis");
        make_pipe(&dir.path("pipe"));
        let service = Service::start(&dir, words);
        let mut listener = None;
        for what in [
            "a pipe",
            "a link to a pipe",
            "a socket",
            "a device",
            "a folder",
        ] {
            fs::remove_file(&path).unwrap();
            match what {
                "a pipe" => make_pipe(&path),
                "a socket" => listener = Some(UnixListener::bind(&path).unwrap()),
                "a folder" => fs::create_dir(&path).unwrap(),
                "a device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                _ => std::os::unix::fs::symlink("pipe", &path).unwrap(),
            }
            service.until(what, || {
                let fault = service.json("/v1/filters/list")["fault"].clone();
                fault
                    .as_str()
                    .is_some_and(|fault| fault.contains("regular file"))
            });
            assert_eq!(service.check("list", "apple\nfig"), "yes\nno\n", "{what}");
            if words.contains("--write") {
                assert_eq!(service.add("list", "fig").status, 503, "{what}");
                assert_eq!(service.get("/readyz").status, 503, "{what}");
            } else {
                // The filter still answers.
                assert_eq!(service.get("/readyz").status, 200, "{what}");
            }
            let _ = fs::remove_dir(&path);
            let _ = fs::remove_file(&path);
            dir.write("new", &whole);
            fs::rename(dir.path("new"), &path).unwrap();
            service.until("a file again", || {
                service.json("/v1/filters/list")["fault"].is_null()
            });
        }
        drop(listener);
        fs::remove_file(&path).unwrap();
        make_pipe(&path);
        service.until("a pipe at the end", || {
            !service.json("/v1/filters/list")["fault"].is_null()
        });
        end_in_time(service);
    }
}

/// A secret may come through a pipe, which can only be read once.
#[test]
fn a_secret_is_read_once() {
    let dir = Sandbox::new();
    dir.write("keys", "apple\n");
    for name in ["list.tamis", "new.tamis"] {
        dir.ok(&format!(
            "create {name} --capacity 1000 -p 1e-6 --secret-file secret"
        ));
    }
    dir.ok("add new.tamis keys --secret-file secret");
    let service = Service::start(&dir, "--secret-file secret list.tamis");
    assert_eq!(service.check("list", "apple"), "no\n");
    fs::remove_file(dir.path("secret")).unwrap();
    make_pipe(&dir.path("secret"));
    fs::rename(dir.path("new.tamis"), dir.path("list.tamis")).unwrap();
    service.until("the new file answers", || {
        service.check("list", "apple") == "yes\n"
    });
    end_in_time(service);
}

/// Sends a body of keys, and discards the answer; returns its status and length.
fn ask_for_much(service: &Service, headers: &str, body: &[u8]) -> (u16, usize) {
    let mut stream = TcpStream::connect(service.address).unwrap();
    let patience = Some(Duration::from_secs(600));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
    let headers = format!("connection: close\r\n{headers}");
    send(
        &mut stream,
        "localhost",
        "POST /v1/filters/seen/check",
        &headers,
        body,
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let mut len = 0;
    let mut piece = vec![0; 1 << 16];
    loop {
        match reader.read(&mut piece).unwrap() {
            0 => return (status, len),
            more => len += more,
        }
    }
}

/// A line end takes one byte in a body; its key used to take 150 in memory.
#[test]
fn many_small_keys_take_no_more_memory_than_few_large_ones() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000 -p 1e-6");
    // This test isn't about time.
    let service = Service::start(&dir, "--timeout 10m seen.tamis");
    let body = vec![b'\n'; 8_000_000];
    let answered: usize = std::thread::scope(|scope| {
        let ask = || {
            let (status, len) = ask_for_much(&service, "", &body);
            match status {
                200 => assert_eq!(len, "no\n".len() * body.len()),
                _ => assert_eq!(status, 503),
            }
            usize::from(status == 200)
        };
        let clients: Vec<_> = (0..30).map(|_| scope.spawn(ask)).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    assert!(answered > 0);
    let most = service.memory("VmHWM");
    assert!(most < MOST, "{most}");
    // The memory is returned.
    service.until("the memory is free again", || {
        service.memory("VmRSS") < 100_000_000
    });
    assert_eq!(service.check("seen", "apple"), "no\n");
    service.end();
}

#[test]
fn json_takes_no_more_memory_than_lines() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 1000 -p 1e-6");
    let service = Service::start(&dir, "--timeout 10m seen.tamis");
    let most = 7_999_990;
    let array = |item: &str| {
        let items = item.repeat(most / item.len());
        format!("[{}]", items.trim_end_matches(','))
    };
    let strings = array("\"\",");
    let escaped = array("\"\\n\",");
    let nested = format!("[{}]", array("\"\","));
    let one = format!("[\"\\n{}\"]", "k".repeat(most - 10));
    std::thread::scope(|scope| {
        for body in [&strings, &escaped, &nested, &one] {
            for _ in 0..8 {
                let service = &service;
                scope.spawn(move || {
                    let headers = "content-type: application/json\r\n";
                    let (status, _) = ask_for_much(service, headers, body.as_bytes());
                    assert!([200, 400, 503].contains(&status), "{status}");
                });
            }
        }
    });
    let most = service.memory("VmHWM");
    assert!(most < MOST, "{most}");
    service.end();
}

/// Additions waiting for a save take the memory of their keys, not of the buffers that they came in.
#[test]
fn additions_that_wait_take_little_memory() {
    let dir = Sandbox::new();
    dir.ok("create seen.tamis --capacity 100k");
    let service = Service::start_writing(&dir, "--save-every 1h seen.tamis");
    let mut stream = service.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let headers = format!("authorization: Bearer {TOKEN}\r\n");
    let mut add = |range: std::ops::Range<u32>| {
        for n in range {
            let key = format!("key {n}");
            let line = "POST /v1/filters/seen/add";
            send(&mut stream, "localhost", line, &headers, key.as_bytes()).unwrap();
            assert_eq!(receive(&mut reader).unwrap().status, 200);
        }
    };
    add(0..1_000);
    let before = service.memory("VmRSS");
    add(1_000..11_000);
    let more = service.memory("VmRSS").saturating_sub(before);
    assert!(more < 10_000 * 400, "{more} bytes for 10,000 additions");
    assert_eq!(service.json("/v1/filters/seen")["unsaved_keys"], 11_000);
    service.end();
}

/// A hundred clients that request plans without pause get fewer plans than one client gets filter answers: a plan is a
/// thousand times the work.
#[test]
fn plans_leave_room_for_questions() {
    const QUESTIONS: u64 = 2_000;
    let dir = Sandbox::new();
    dir.write("list", "apple\n");
    dir.ok("build seen.tamis list");
    let service = Service::start(&dir, "seen.tamis");
    let (planned, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..100 {
            let (service, planned, is_over) = (&service, &planned, &is_over);
            scope.spawn(move || {
                let mut stream = service.connect();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                for turn in 0.. {
                    if is_over.load(Relaxed) {
                        return;
                    }
                    let line = format!("GET /v1/plan?keys={client}{turn}1000&size=16MB");
                    send(&mut stream, "localhost", &line, "", b"").unwrap();
                    let answer = receive(&mut reader).unwrap();
                    match answer.status {
                        200 => planned.fetch_add(1, Relaxed),
                        // With more keys, they fit worse.
                        400 => continue,
                        503 => {
                            assert!(answer.header("retry-after").is_some());
                            assert!(answer.error().contains("plans"), "{}", answer.error());
                            continue;
                        }
                        other => panic!("{other}: {}", answer.text()),
                    };
                }
            });
        }
        let _stop = Stop(&is_over);
        service.until("the first plan", || planned.load(Relaxed) > 0);
        let before = planned.load(Relaxed);
        let mut stream = service.connect();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for _ in 0..QUESTIONS {
            let line = "POST /v1/filters/seen/check";
            send(&mut stream, "localhost", line, "", b"apple\nfig").unwrap();
            assert_eq!(receive(&mut reader).unwrap().text(), "yes\nno\n");
            let planned = planned.load(Relaxed) - before;
            assert!(planned < QUESTIONS / 2, "{planned} plans");
        }
    });
    let most = service.memory("VmHWM");
    assert!(most < MOST, "{most}");
    service.end();
}

#[test]
fn other_sites_get_no_work_done_and_a_page_may_be_left_out() {
    let dir = Sandbox::new();
    dir.write("list", "apple\n");
    dir.ok("build seen.tamis list");
    let service = Service::start(&dir, "seen.tamis");
    for site in ["cross-site", "same-site"] {
        let headers = format!("sec-fetch-site: {site}\r\nsec-fetch-dest: image\r\n");
        for path in [
            "/v1/plan?keys=1M",
            "/v1/filters",
            "/metrics",
            "/page/app.js",
        ] {
            let refused = service.ask(&format!("GET {path}"), &headers, "");
            assert_eq!(refused.status, 403, "{path} {site}");
        }
        assert_eq!(service.ask("GET /", &headers, "").status, 200, "{site}");
    }
    for headers in [
        "",
        "sec-fetch-site: same-origin\r\n",
        "sec-fetch-site: none\r\n",
    ] {
        assert_eq!(service.ask("GET /v1/plan?keys=1M", headers, "").status, 200);
    }
    service.end();

    let service = Service::start(&dir, "--no-page seen.tamis");
    for line in [
        "GET /",
        "GET /page/app.js",
        "GET /v1/plan?keys=1M",
        "POST /v1/playground",
    ] {
        assert_eq!(service.ask(line, "", "").status, 404, "{line}");
    }
    assert_eq!(service.check("seen", "apple"), "yes\n");
    let described = service.json("/v1/openapi.json");
    let paths = described["paths"].as_object().unwrap();
    assert!(paths.contains_key("/v1/filters") && !paths.contains_key("/v1/plan"));
    for path in paths.keys() {
        let path = path.replace("{name}", "seen");
        assert_eq!(
            service.ask(&format!("DELETE {path}"), "", "").status,
            405,
            "{path}"
        );
    }
    service.end();
}
