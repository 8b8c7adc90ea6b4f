//! A connection between a client and a server that can be cut or held at a
//! chosen moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Forwards bytes until told to stop.
pub(crate) struct Proxy {
    port: u16,
    rules: Arc<Mutex<Rules>>,
}

#[derive(Default)]
struct Rules {
    /// The server's answers are held back.
    held: bool,
    /// The server's answers are forwarded slowly, byte by byte.
    dripping: bool,
    /// Cuts the connection at the request that contains this text: before it is
    /// forwarded, or after, so that it is executed but not answered.
    cut: Option<(When, String)>,
    /// No bytes are forwarded any more.
    dead: bool,
    /// The number of clients so far.
    clients: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Behind,
}

impl Proxy {
    /// Forwards to the server on this loopback port.
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rules = Arc::new(Mutex::new(Rules::default()));
        let shared = Arc::clone(&rules);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The test has dropped all other references.
                if Arc::strong_count(&shared) == 1 {
                    return;
                }
                {
                    let mut rules = shared.lock().unwrap();
                    rules.clients += 1;
                    if rules.dead {
                        continue;
                    }
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                let both = |a: &TcpStream| a.try_clone().unwrap();
                let (rules, from, to) = (Arc::clone(&shared), both(&client), both(&server));
                std::thread::spawn(move || requests(&rules, from, to));
                let rules = Arc::clone(&shared);
                std::thread::spawn(move || answers(&rules, server, client));
            }
        });
        Self { port, rules }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Holds back the server's answers from now on.
    pub(crate) fn hold(&self) {
        self.rules.lock().unwrap().held = true;
    }

    /// Slows down the server's answers from now on.
    pub(crate) fn drip(&self) {
        self.rules.lock().unwrap().dripping = true;
    }

    /// Ends `hold` and `drip`.
    pub(crate) fn flow(&self) {
        self.rules.lock().unwrap().dripping = false;
    }

    /// Cuts the connection at the first request with this text, for good.
    pub(crate) fn cut(&self, when: When, text: &str) {
        self.rules.lock().unwrap().cut = Some((when, text.to_owned()));
    }

    /// The number of connections so far: a client that has given up on one
    /// opens another.
    pub(crate) fn clients(&self) -> usize {
        self.rules.lock().unwrap().clients
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.rules.lock().unwrap().dead
    }
}

fn requests(rules: &Mutex<Rules>, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    // The text may arrive in two pieces.
    let mut recent: Vec<u8> = Vec::new();
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        recent.drain(..recent.len().saturating_sub(1 << 10));
        recent.extend_from_slice(&buffer[..len]);
        {
            let mut rules = rules.lock().unwrap();
            if let Some((when, text)) = &rules.cut
                && !rules.dead
                && recent
                    .windows(text.len())
                    .any(|some| some == text.as_bytes())
            {
                let when = *when;
                rules.dead = true;
                if when == When::Before {
                    break;
                }
            }
        }
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn answers(rules: &Mutex<Rules>, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        while rules.lock().unwrap().held {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut bytes = &buffer[..len];
        while let [first, rest @ ..] = bytes
            && rules.lock().unwrap().dripping
        {
            std::thread::sleep(Duration::from_millis(20));
            if to.write_all(&[*first]).is_err() {
                break;
            }
            bytes = rest;
        }
        // An answer has come, so the request was executed.
        if rules.lock().unwrap().dead || to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
