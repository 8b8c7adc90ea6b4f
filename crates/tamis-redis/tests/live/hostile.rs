//! Malicious or broken servers: whatever they send, and however slowly, it ends
//! with an error, and takes no more memory than answers need.

use crate::common::{Proxy, Server, until};
use crate::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use tamis_redis::{Error, Survey, aio};

/// A server's answer to any request.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Nothing, forever.
    Silent,
    /// Now and then a byte of an endless answer.
    Drip,
    /// Endless unsolicited messages.
    Push,
    /// An endless string.
    Endless,
    /// An endless array.
    Array,
    /// Nested arrays.
    Nested,
    /// Bytes that aren't the protocol.
    Noise,
}

const HABITS: [Habit; 7] = [
    Habit::Silent,
    Habit::Drip,
    Habit::Push,
    Habit::Endless,
    Habit::Array,
    Habit::Nested,
    Habit::Noise,
];

/// A server with this habit from the `after`th request on; before that, it
/// answers "yes" to everything.
fn server(habit: Habit, after: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || talk(client, habit, after));
        }
    });
    address
}

fn talk(mut client: TcpStream, habit: Habit, after: usize) -> Option<()> {
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..after {
        let read = client.read(&mut buffer).ok().filter(|read| *read > 0)?;
        // A name and a role.
        let commands = buffer[..read].iter().filter(|byte| **byte == b'*').count();
        client.write_all(&b"+OK\r\n".repeat(commands)).ok()?;
    }
    let (begin, again): (&[u8], Vec<u8>) = match habit {
        Habit::Silent => {
            // Until the client gives up.
            while client.read(&mut buffer).ok()? > 0 {}
            return None;
        }
        Habit::Drip => (b"$1000\r\n", b"x".to_vec()),
        Habit::Push => (b"", b">2\r\n+message\r\n+hello\r\n".repeat(1000)),
        Habit::Endless => (b"$100000000000\r\n", vec![b'x'; 1 << 20]),
        Habit::Array => (b"*100000000000\r\n", b":1\r\n".repeat(1 << 18)),
        Habit::Nested => (b"", b"*1000000\r\n".repeat(1 << 10)),
        Habit::Noise => (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    };
    client.write_all(begin).ok()?;
    // No client reads this once it has noticed.
    while client.write_all(&again).is_ok() {
        if matches!(habit, Habit::Drip | Habit::Noise) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    None
}

/// Each answer has a timeout, and nothing is retried.
fn once() -> Options {
    Options::new()
        .connect_timeout(Duration::from_millis(500))
        .response_timeout(Duration::from_millis(500))
        .retry_for(Duration::ZERO)
}

/// Runs code that must end by itself, and fails the test if it hangs.
fn ends<T: Send + 'static>(what: String, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let most = Duration::from_secs(120);
    ended
        .recv_timeout(most)
        .unwrap_or_else(|_| panic!("it hangs, or has panicked: {what}"))
}

/// The peak memory of this process, in kilobytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

#[test]
fn nothing_hangs_and_nothing_grows() {
    let before = peak();
    for habit in HABITS {
        // At the first request, and later.
        for after in [0, 1] {
            let address = server(habit, after);
            for text in [
                format!("redis://{address}/seen"),
                format!("redis://u:p@{address}/1/seen?protocol=resp3"),
                format!("rediss://{address}/seen?tls=insecure"),
                format!("redis+cluster://{address}/seen"),
                format!("redis+sentinel://{address}/main/seen"),
            ] {
                let at = location(&text);
                let what = format!("{habit:?} {after} {text}");
                let error = ends(what.clone(), move || RedisFilter::open(&at, &once()).err());
                let error = error.unwrap_or_else(|| panic!("{what}: opened"));
                let known = matches!(error, Error::Server { .. } | Error::Corrupt { .. });
                let nothing = matches!(error, Error::NotFound { .. });
                assert!(known || nothing && after > 0, "{what}: {error:?}");
            }
            let servers = format!("redis://{address}").parse().unwrap();
            let looked = ends(format!("{habit:?} list"), move || {
                Survey::of(&servers, &once()).is_err()
            });
            assert!(looked, "{habit:?}");
        }
    }
    let grown = peak().saturating_sub(before);
    // Other tests run at the same time.
    assert!(grown < 2_000_000, "{grown} kB more");
}

#[test]
fn nothing_hangs_and_nothing_grows_without_blocking() {
    let before = peak();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for habit in HABITS {
        for after in [0, 1] {
            let address = server(habit, after);
            for text in [
                format!("redis://{address}/seen"),
                format!("redis://u:p@{address}/1/seen?protocol=resp3"),
                format!("rediss://{address}/seen?tls=insecure"),
                format!("redis+cluster://{address}/seen"),
                format!("redis+sentinel://{address}/main/seen"),
            ] {
                let at = location(&text);
                let options = once();
                let opened = runtime.block_on(async {
                    let open = aio::RedisFilter::open(&at, &options);
                    tokio::time::timeout(Duration::from_secs(120), open).await
                });
                let opened = opened.unwrap_or_else(|_| panic!("it hangs: {habit:?} {text}"));
                assert!(opened.is_err(), "{habit:?} {after} {text}");
            }
        }
    }
    let grown = peak().saturating_sub(before);
    // Other tests run at the same time.
    assert!(grown < 2_000_000, "{grown} kB more");
}

/// A server that turns bad while a filter is open.
#[test]
fn a_wire_that_drips() {
    let server = Server::start(&[]);
    let place = crate::at(&server, "dripping");
    drop(pair(&place, &plan(10_000, 0.01)));
    let wire = Proxy::start(server.port());
    let by_wire = location(&format!("redis://{}/dripping", wire.address()));
    let patience = Duration::from_secs(3);
    let options = Options::new()
        .connect_timeout(patience)
        .response_timeout(patience)
        .retry_for(patience);
    let mut filter = RedisFilter::open(&by_wire, &options).unwrap();
    wire.drip();
    let (mut filter, error) = ends("dripping".into(), move || {
        let keys = keys(0..1_000);
        let mut new = vec![false; keys.len()];
        let error = filter.insert_many(&keys, &mut new).unwrap_err();
        assert_eq!(count(&new), 0);
        let mut found = vec![true; keys.len()];
        assert!(filter.contains_many(&keys, &mut found).is_err());
        assert!(filter.download().is_err());
        (filter, error)
    });
    assert_eq!(error.unconfirmed().len(), 1_000);
    let text = error.to_string();
    // The last try may not have connected.
    let told = text.contains("no answer from") || text.contains("no connection to");
    assert!(told && text.contains(" s"), "{text}");
    wire.flow();
    until("the wire to flow", Duration::from_secs(60), || {
        filter.contains("x").is_ok()
    });
}
