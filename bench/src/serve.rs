//! `tamis serve`: what a batch costs beside the library's own call, how long
//! single keys wait beside a server that says hello, and what is left for them
//! while a hundred clients want plans.
//!
//! A batch is measured in processor time of the service's process, which
//! stands still while others have the cores. Waiting can only be measured by
//! the wall clock: the two servers take turns in the same run, a slice of time
//! each, so that a busy moment meets both.

use crate::clock::{self, Rounds};
use crate::dedup::{Place, build_tamis};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tamis::AnyFilter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The hidden suite that is the peer.
pub const HELLO: &str = "hello";
/// Keys of the filter.
const KEYS: u64 = 1_000_000;
/// Keys of a request.
const BATCH: u64 = 10_000;
/// Requests of a round.
const REQUESTS: u32 = 20;
/// How often the servers take turns.
const TURNS: u32 = 10;
/// Clients that want plans, and those that ask beside them.
const PLANNERS: u64 = 100;
const CHECKERS: u64 = 8;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let rounds = args.take("--rounds", "15")?;
    let connections = args.take("--connections", "500")?;
    let seconds = args.take("--seconds", "30")?;
    args.finish()?;
    let tamis = build_tamis(Path::new(env!("CARGO_MANIFEST_DIR")), "serve")?;
    let place = Place::make()?;
    let file = place.0.join("seen.tamis");
    make_filter(&tamis, &file)?;
    let mut rows = Vec::new();
    {
        let mut command = Command::new(&tamis);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(&file);
        let service = Server::start(command)?;
        compare_batches(&mut rows, &service, &file, number(&rounds)?)?;
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.arg(HELLO);
        let hello = Server::start(command)?;
        let time = Duration::from_secs(number(&seconds)?);
        compare_waits(&mut rows, &service, &hello, number(&connections)?, time)?;
        compare_beside_plans(&mut rows, &service, time)?;
    }
    Ok(Suite {
        name: "serve".into(),
        title: "`tamis serve` on the loopback".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- serve --rounds {rounds} \
             --connections {connections} --seconds {seconds}"
        ),
        machine: machine(),
        peers: vec!["tamis serve".into(), "the peer".into()],
        rows,
    })
}

fn key(i: u64) -> String {
    format!(
        "https://www.example.org/some/path/{:016x}/{i}",
        i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    )
}

fn make_filter(tamis: &Path, file: &Path) -> Result<(), String> {
    let list = file.with_extension("txt");
    let keys: String = (0..KEYS).map(|i| key(i) + "\n").collect();
    std::fs::write(&list, keys).map_err(|e| e.to_string())?;
    for words in [&["create", "-n", "1M"][..], &["add"]] {
        let mut command = Command::new(tamis);
        command.args(words).arg(file).stderr(Stdio::null());
        if words == ["add"] {
            command.arg(&list);
        }
        let status = command.status().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err(format!("tamis {words:?} failed"));
        }
    }
    Ok(())
}

/// A server in a process of its own, killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts one that prints `listening on http://ADDRESS`.
    fn start(mut command: Command) -> Result<Self, String> {
        let spawned = command.stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|e| format!("{command:?}: {e}"))?;
        let stderr = child.stderr.take().ok_or("no stderr")?;
        let mut line = String::new();
        BufReader::new(stderr)
            .read_line(&mut line)
            .map_err(|e| e.to_string())?;
        let address = line
            .trim()
            .rsplit('/')
            .next()
            .and_then(|at| at.parse().ok());
        let address = address.ok_or_else(|| format!("{command:?} says {line:?}"))?;
        Ok(Self { child, address })
    }

    /// The processor time of all its threads.
    fn time(&self) -> Duration {
        let mut clock = 0;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: both are valid places for the answers; the process is ours and not waited for.
        let status = unsafe {
            libc::clock_getcpuclockid(self.child.id() as i32, &mut clock)
                | libc::clock_gettime(clock, &mut time)
        };
        assert_eq!(status, 0, "the system has no clock of a process");
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The peer: as little as a server with axum can do.
pub fn hello() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|e| e.to_string())?
        .block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            eprintln!("listening on http://{}", listener.local_addr()?);
            let router = axum::Router::new().route("/", axum::routing::get(async || "hello"));
            axum::serve(listener, router).await
        })
        .map_err(|e| e.to_string())
}

fn compare_batches(
    rows: &mut Vec<Row>,
    service: &Server,
    file: &Path,
    rounds: u64,
) -> Result<(), String> {
    let filter = AnyFilter::load(file).map_err(|e| e.to_string())?;
    // Half of them present.
    let keys: Vec<String> = (0..BATCH).map(|i| key(KEYS - BATCH / 2 + i)).collect();
    let lines = keys
        .iter()
        .map(|key| format!("{key}\n"))
        .collect::<String>();
    let json = serde_json::to_string(&keys).map_err(|e| e.to_string())?;
    let mut expected = vec![false; keys.len()];
    filter.contains_many(&keys, &mut expected);
    let group = format!("{BATCH} keys of 60 bytes");

    type Parse = for<'b> fn(&'b str) -> Vec<&'b [u8]>;
    let ways: [(&str, &str, &str, Parse); 2] = [
        ("lines", "text/plain", &lines, parse_lines),
        ("JSON", "application/json", &json, parse_json),
    ];
    for (name, kind, body, parse) in ways {
        let mut stream = TcpStream::connect(service.address).map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let request = format!(
            "POST /v1/filters/seen/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut reader = BufReader::new(stream.try_clone().map_err(|e| e.to_string())?);
        let answer = exchange(&mut stream, &mut reader, request.as_bytes())?;
        let yes = answer
            .matches(if name == "JSON" { "true" } else { "yes" })
            .count();
        let right = expected.iter().filter(|found| **found).count();
        if yes != right {
            return Err(format!("{name}: {yes} of {right} keys found"));
        }
        let (mut times, mut waits) = (Rounds::new(), Rounds::new());
        for _ in 0..rounds {
            let (start, clock) = (Instant::now(), service.time());
            for _ in 0..REQUESTS {
                exchange(&mut stream, &mut reader, request.as_bytes())?;
            }
            let (served, waited) = (service.time() - clock, start.elapsed());
            let start = Instant::now();
            let called = clock::time(|| {
                for _ in 0..REQUESTS {
                    let keys = parse(body);
                    let mut found = vec![false; keys.len()];
                    filter.contains_many(&keys, &mut found);
                    assert_eq!(found, expected);
                }
            });
            let worked = start.elapsed();
            let each = |time: Duration| time.as_nanos() as f64 / f64::from(REQUESTS) / BATCH as f64;
            times.add([each(served), each(called)].into_iter());
            waits.add([each(waited), each(worked)].into_iter());
        }
        let task = format!("{name}: processor time; the peer is parsing and `contains_many`");
        rows.push(Row::times(&group, &task, &times));
        let task = format!("{name}: until the answer is there; the peer is the same");
        rows.push(Row::times(&group, &task, &waits));
    }
    Ok(())
}

fn parse_lines(text: &str) -> Vec<&[u8]> {
    let bytes = text.as_bytes();
    let mut keys = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        keys.push(&bytes[start..end]);
        start = end + 1;
    }
    keys
}

fn parse_json(text: &str) -> Vec<&[u8]> {
    let keys: Vec<&str> = serde_json::from_str(text).unwrap_or_default();
    keys.into_iter().map(str::as_bytes).collect()
}

/// Sends a request and reads the whole response; its body.
fn exchange(
    stream: &mut TcpStream,
    reader: &mut impl BufRead,
    request: &[u8],
) -> Result<String, String> {
    stream.write_all(request).map_err(|e| e.to_string())?;
    let mut len = 0;
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line).map_err(|e| e.to_string())?;
        match line.trim_end().split_once(": ") {
            Some(("content-length", value)) => len = value.parse().map_err(|_| line.clone())?,
            None if line.trim().is_empty() => break,
            None if !line.starts_with("HTTP/1.1 200") => return Err(line),
            _ => {}
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).map_err(|e| e.to_string())?;
    String::from_utf8(body).map_err(|e| e.to_string())
}

fn compare_waits(
    rows: &mut Vec<Row>,
    service: &Server,
    hello: &Server,
    connections: u64,
    time: Duration,
) -> Result<(), String> {
    let one = key(1);
    let check = format!(
        "POST /v1/filters/seen/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
         content-length: {}\r\n\r\n{one}",
        one.len()
    );
    let get = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    let slice = time / TURNS;
    let (mut middle, mut late) = (Rounds::new(), Rounds::new());
    let mut all = 0;
    for turn in 0..=TURNS {
        let mut quantiles = Vec::new();
        for (server, request, end) in [(service, &check, "yes\n"), (hello, &get, "hello")] {
            let waits = load(server.address, request, end, connections, slice);
            let mut waits = runtime.block_on(waits)?;
            waits.sort_unstable();
            let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize] as f64;
            quantiles.push((at(0.5), at(0.99)));
            all += waits.len();
        }
        // The first turn makes both warm.
        if turn > 0 {
            middle.add(quantiles.iter().map(|q| q.0));
            late.add(quantiles.iter().map(|q| q.1));
        }
    }
    eprintln!("{all} requests on {connections} connections, every one answered");
    let group = format!("one key, {connections} connections");
    rows.push(Row::times(
        &group,
        "wait, median; the peer is axum's hello",
        &middle,
    ));
    rows.push(Row::times(
        &group,
        "wait, p99; the peer is axum's hello",
        &late,
    ));
    Ok(())
}

/// What is left for those who ask while others want plans: the peer is the
/// same service without the others.
fn compare_beside_plans(
    rows: &mut Vec<Row>,
    service: &Server,
    time: Duration,
) -> Result<(), String> {
    let one = key(1);
    let check = format!(
        "POST /v1/filters/seen/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
         content-length: {}\r\n\r\n{one}",
        one.len()
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    let slice = time / TURNS / 2;
    let mut times = Rounds::new();
    for turn in 0..=TURNS {
        let mut each = Vec::new();
        for planners in [PLANNERS, 0] {
            let waits = runtime.block_on(async {
                let planning: Vec<_> = (0..planners)
                    .map(|nth| tokio::spawn(want_plans(service.address, nth)))
                    .collect();
                let waits = load(service.address, &check, "yes\n", CHECKERS, slice).await;
                planning.iter().for_each(tokio::task::JoinHandle::abort);
                waits
            })?;
            each.push(slice.as_nanos() as f64 / waits.len().max(1) as f64);
        }
        if turn > 0 {
            times.add(each.into_iter());
        }
    }
    let group = format!("one key, {CHECKERS} connections");
    let task = format!("time a check beside {PLANNERS} clients on /v1/plan; the peer is without");
    rows.push(Row::times(&group, &task, &times));
    Ok(())
}

/// Asks for one plan after the other, each a different one, until it is stopped.
async fn want_plans(at: SocketAddr, nth: u64) {
    let mut response = Vec::new();
    for turn in 0u64.. {
        let Ok(mut stream) = tokio::net::TcpStream::connect(at).await else {
            continue;
        };
        let keys = 10_000_000 + nth * 1000 + turn;
        let request = format!(
            "GET /v1/plan?keys={keys}&size=16MB HTTP/1.1\r\nhost: localhost\r\n\
             connection: close\r\n\r\n"
        );
        response.clear();
        if stream.write_all(request.as_bytes()).await.is_ok() {
            // A refusal is an answer, too.
            let _ = stream.read_to_end(&mut response).await;
        }
    }
}

/// Asks on so many connections for a while, each as soon as it has its answer:
/// how long they waited, in nanoseconds. A response that is not right is an error.
async fn load(
    at: SocketAddr,
    request: &str,
    end: &'static str,
    connections: u64,
    time: Duration,
) -> Result<Vec<u64>, String> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let stream = tokio::net::TcpStream::connect(at).await;
        clients.push(stream.map_err(|e| format!("connecting: {e}"))?);
    }
    let deadline = Instant::now() + time;
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut stream| {
            let request = request.as_bytes().to_vec();
            tokio::spawn(async move {
                let mut waits = Vec::new();
                let mut response = [0; 2048];
                while Instant::now() < deadline {
                    let start = Instant::now();
                    stream
                        .write_all(&request)
                        .await
                        .map_err(|e| e.to_string())?;
                    let mut len = 0;
                    while !response[..len].ends_with(end.as_bytes()) {
                        match stream.read(&mut response[len..]).await {
                            Ok(0) => {
                                return Err(format!(
                                    "closed: {:?}",
                                    String::from_utf8_lossy(&response[..len])
                                ));
                            }
                            Ok(more) => len += more,
                            Err(error) => return Err(error.to_string()),
                        }
                    }
                    if !response.starts_with(b"HTTP/1.1 200") {
                        return Err(String::from_utf8_lossy(&response[..len]).into_owned());
                    }
                    waits.push(start.elapsed().as_nanos() as u64);
                }
                Ok(waits)
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.map_err(|e| e.to_string())??);
    }
    Ok(all)
}
