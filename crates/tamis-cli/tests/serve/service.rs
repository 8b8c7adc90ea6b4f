//! A service in a temporary folder, and a client that can misbehave.

use crate::common::Sandbox;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// `tamis serve`, killed at the end of the test.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<String>>,
    /// Copies its output to the log, until it ends.
    copying: Option<JoinHandle<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Service {
    /// Runs `tamis serve` with these arguments in addition to `--listen`.
    pub(crate) fn start(dir: &Sandbox, words: &str) -> Self {
        Self::run(dir.command(&format!("serve --listen 127.0.0.1:0 {words}")))
    }

    /// Runs a command that becomes `tamis serve`.
    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let address = loop {
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "it ended: {}", log.lock().unwrap());
            log.lock().unwrap().push_str(&line);
            if let Some((_, address)) = line.trim().split_once("://")
                && line.contains("listening on")
            {
                break address.parse().unwrap();
            }
        };
        let lines = Arc::clone(&log);
        let copying = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = lines.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self {
            child,
            address,
            log,
            copying: Some(copying),
        }
    }

    /// The same with `--write` and a token.
    pub(crate) fn start_writing(dir: &Sandbox, words: &str) -> Self {
        dir.write("token", TOKEN);
        Self::start(dir, &format!("--write --token-file token {words}"))
    }

    /// Its output so far; until it has ended, the copy may be slightly behind.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream.set_write_timeout(patience).unwrap();
        stream
    }

    /// Sends one request on a new connection; headers are lines.
    pub(crate) fn ask(&self, line: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        let headers = format!("connection: close\r\n{headers}");
        send(&mut stream, self.address, line, &headers, body.as_ref()).unwrap();
        receive(&mut BufReader::new(stream)).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "", "")
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// The answers to keys, one per line.
    pub(crate) fn check(&self, name: &str, keys: impl AsRef<[u8]>) -> String {
        let line = format!("POST /v1/filters/{name}/check");
        let answer = self.ask(&line, "content-type: text/plain\r\n", keys);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    }

    /// Adds keys with the token.
    pub(crate) fn add(&self, name: &str, keys: impl AsRef<[u8]>) -> Answer {
        let headers = format!("authorization: Bearer {TOKEN}\r\ncontent-type: text/plain\r\n");
        self.ask(&format!("POST /v1/filters/{name}/add"), &headers, keys)
    }

    pub(crate) fn send_signal(&self, signal: i32) {
        // SAFETY: a plain system call, on a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Waits for its end; after that the log is complete.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        if let Some(copying) = self.copying.take() {
            copying.join().unwrap();
        }
        status
    }

    /// Ends it like an operator would; it must succeed.
    pub(crate) fn end(mut self) -> String {
        self.send_signal(libc::SIGTERM);
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }

    /// A figure of its memory in bytes, from the system: VmRSS is current, VmHWM the peak.
    pub(crate) fn memory(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with(figure))
            .unwrap();
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() << 10
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until a condition holds, or fails after a while.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            let log = self.log();
            assert!(start.elapsed() < Duration::from_secs(120), "{what}: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The text of a refusal, which must be JSON.
    pub(crate) fn error(&self) -> String {
        assert!(self.status >= 400, "{} {}", self.status, self.text());
        let json = self.json();
        json["error"].as_str().expect("an error").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut fields = lines.filter_map(|line| line.split_once(':'));
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }
}

pub(crate) fn send(
    stream: &mut impl Write,
    host: impl std::fmt::Display,
    line: &str,
    headers: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let len = body.len();
    let host = match headers.contains("host:") {
        true => String::new(),
        false => format!("host: {host}\r\n"),
    };
    let mut request =
        format!("{line} HTTP/1.1\r\n{host}{headers}content-length: {len}\r\n\r\n").into_bytes();
    request.extend_from_slice(body);
    stream.write_all(&request)
}

/// Reads one response, whose length is in its head.
pub(crate) fn receive(stream: &mut impl std::io::BufRead) -> std::io::Result<Answer> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap_or(0);
    let mut answer = Answer {
        status,
        head,
        body: Vec::new(),
    };
    let len = answer.header("content-length").unwrap_or("0");
    answer.body = vec![0; len.parse().unwrap()];
    stream.read_exact(&mut answer.body)?;
    Ok(answer)
}
