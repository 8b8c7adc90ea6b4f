//! One redis-server process.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A shell between the test and its server. It ends the server when its
/// standard input closes, which happens even if the test is killed, and then
/// removes the server's folder unless told to keep it.
const KEEPER: &str = r#"
trap "" INT
"$2" "$1/redis.conf" $3 >>"$1/log" 2>&1 &
server=$!
echo $server
read -r last
kill -KILL $server
wait $server 2>/dev/null
[ "$last" = keep ] || rm -rf "$1"
"#;

/// The program to start: the one in the path, unless another is named, as
/// `tests/servers` does for newer versions.
fn program(settings: &[String]) -> String {
    // The newer ones are built without TLS.
    let tls = settings.iter().any(|line| line.starts_with("tls-port"));
    let named = std::env::var("TAMIS_REDIS_SERVER").ok();
    named
        .filter(|_| !tls)
        .unwrap_or_else(|| "redis-server".into())
}

/// A redis-server for one test.
pub(crate) struct Server {
    program: String,
    /// `--sentinel` or empty.
    mode: &'static str,
    port: u16,
    folder: PathBuf,
    /// Arguments that redis-cli needs to log in.
    credentials: Vec<String>,
    /// `None` while the server is down.
    running: Option<Running>,
}

struct Running {
    keeper: Child,
    pid: String,
}

impl Server {
    /// A server with these lines in its configuration, ready for commands.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::start_on("port", settings, &[])
    }

    /// A server whose only port is of this kind (`port` or `tls-port`).
    /// redis-cli needs these arguments to connect.
    pub(crate) fn start_on(port_kind: &str, settings: &[&str], credentials: &[&str]) -> Self {
        // Another process may take a free port before we do.
        let found = (0..10).find_map(|_| Self::try_start(port_kind, settings));
        let mut server = found.expect("no redis-server started on any of 10 free ports");
        server.credentials = credentials.iter().map(|arg| arg.to_string()).collect();
        server
    }

    /// A single Sentinel that decides which server is the master called
    /// `service`.
    pub(crate) fn sentinel(service: &str, master: &Self) -> Self {
        let found = (0..10).find_map(|_| {
            let (port, _) = free_ports();
            let lines = vec![
                "bind 127.0.0.1".into(),
                format!("port {port}"),
                format!("sentinel monitor {service} 127.0.0.1 {} 1", master.port),
                format!("sentinel down-after-milliseconds {service} 1500"),
                format!("sentinel failover-timeout {service} 5000"),
            ];
            Self::try_run("--sentinel", port, lines)
        });
        found.expect("no Sentinel started on any of 10 free ports")
    }

    fn try_start(port_kind: &str, settings: &[&str]) -> Option<Self> {
        let (port, bus) = free_ports();
        let mut lines = vec![
            "bind 127.0.0.1".to_string(),
            "save \"\"".into(),
            "enable-debug-command yes".into(),
            // A replica shouldn't wait for further replicas to connect.
            "repl-diskless-sync-delay 0".into(),
        ];
        if port_kind != "port" {
            lines.push("port 0".into());
        }
        lines.push(format!("{port_kind} {port}"));
        if settings.contains(&"cluster-enabled yes") {
            lines.push(format!("cluster-port {bus}"));
        }
        lines.extend(settings.iter().map(|line| line.to_string()));
        Self::try_run("", port, lines)
    }

    fn try_run(mode: &'static str, port: u16, mut lines: Vec<String>) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("tamis-redis-{port}"));
        fs::create_dir(&folder).ok()?;
        lines.push(format!("dir {}", folder.display()));
        fs::write(folder.join("redis.conf"), lines.join("\n") + "\n").unwrap();
        let mut server = Self {
            program: program(&lines),
            mode,
            port,
            folder,
            credentials: Vec::new(),
            running: None,
        };
        server.run().then_some(server)
    }

    /// Starts the server; returns false if its port is taken.
    fn run(&mut self) -> bool {
        let log = self.folder.join("log");
        fs::write(&log, "").unwrap();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .args([self.folder.as_os_str(), self.program.as_ref()])
            .arg(self.mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut pid = String::new();
        let mut lines = BufReader::new(keeper.stdout.take().unwrap());
        lines.read_line(&mut pid).unwrap();
        self.running = Some(Running {
            keeper,
            pid: pid.trim().into(),
        });
        // Its own log is reliable; a connection might reach another test's
        // server.
        let mut up = false;
        until("redis-server to start", Duration::from_secs(60), || {
            let log = fs::read_to_string(&log).unwrap();
            assert!(
                !log.contains("not found") && !log.contains("FATAL CONFIG"),
                "{} did not start (Debian has it in redis-tools and redis-server): {log}",
                self.program
            );
            up = log.contains("Ready to accept connections") || log.contains("+monitor master");
            up || log.contains("aborting") || log.contains("exiting")
        });
        up
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// The reply to one command, as redis-cli prints it.
    pub(crate) fn cli<A: AsRef<OsStr>>(&self, command: &[A]) -> String {
        self.try_cli(command).unwrap_or_else(|error| {
            let command: Vec<_> = command.iter().map(AsRef::as_ref).collect();
            panic!("redis-cli {command:?} to {}: {error}", self.address())
        })
    }

    /// The same for a server that may be down or refuse the command.
    pub(crate) fn try_cli<A: AsRef<OsStr>>(&self, command: &[A]) -> Result<String, String> {
        let bytes = self.ask(command)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().into())
    }

    /// The bytes of a string.
    pub(crate) fn get(&self, key: &str) -> Vec<u8> {
        let mut bytes = self.ask(&["GET", key]).unwrap();
        assert_eq!(bytes.pop(), Some(b'\n'), "redis-cli ends what it prints");
        bytes
    }

    fn ask<A: AsRef<OsStr>>(&self, command: &[A]) -> Result<Vec<u8>, String> {
        let port = self.port.to_string();
        let ran = Command::new("redis-cli")
            // -e: an error reply is an error.
            .args(["-e", "--no-auth-warning", "-p", &port])
            .args(&self.credentials)
            .args(command)
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli is there (Debian has it in redis-tools)");
        match ran.status.success() {
            true => Ok(ran.stdout),
            false => Err(String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into()),
        }
    }

    /// Makes a key look idle for this many seconds.
    pub(crate) fn age(&self, key: &str, seconds: u32) {
        let lua = "local dump = redis.call('DUMP', KEYS[1]) return redis.call('RESTORE', \
                   KEYS[1], 0, dump, 'REPLACE', 'IDLETIME', ARGV[1])";
        self.cli(&["EVAL", lua, "1", key, &seconds.to_string()]);
        let idle = self.cli(&["OBJECT", "IDLETIME", key]);
        assert!(idle.parse::<u32>().unwrap() >= seconds, "{idle}");
    }

    /// A field of `INFO SECTION`.
    pub(crate) fn info(&self, section: &str, field: &str) -> Option<String> {
        let info = self.try_cli(&["INFO", section]).ok()?;
        info.lines()
            .find_map(|line| Some(line.trim().strip_prefix(field)?.strip_prefix(':')?.into()))
    }

    /// Kills the server, like a crash. Written data stays.
    pub(crate) fn kill(&mut self) {
        self.end("keep\n");
    }

    /// Restarts it in the same place, with the data that it had written.
    pub(crate) fn restart(&mut self) {
        assert!(!self.is_up());
        assert!(
            self.run(),
            "redis-server did not come up again on its port {}",
            self.port
        );
    }

    /// Stops the process: connections stay open, but nothing is answered.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = &self.running.as_ref().expect("the server is up").pid;
        let sent = Command::new("kill").args([signal, pid]).status().unwrap();
        assert!(sent.success());
    }

    fn end(&mut self, last: &str) {
        if let Some(Running { mut keeper, .. }) = self.running.take() {
            let mut input = keeper.stdin.take().unwrap();
            // If the keeper is gone, there is nothing to do.
            let _ = input.write_all(last.as_bytes());
            drop(input);
            let _ = keeper.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end("");
        // A server that was down has no keeper.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Two free ports: one for clients, one for the cluster. They are below those that systems assign
/// automatically, so that a restarted server finds its ports free; its folder reserves them among
/// tests.
fn free_ports() -> (u16, u16) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        // Each process starts with different ports.
        let pair = (std::process::id().wrapping_mul(101)).wrapping_add(NEXT.fetch_add(1, Relaxed));
        let port = 10_000 + 2 * (pair % 11_000) as u16;
        if is_free(port) && is_free(port + 1) {
            return (port, port + 1);
        }
    }
}

/// Waits for something that takes a moment, and fails the test if it takes much
/// too long.
pub(crate) fn until(what: &str, most: Duration, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < most, "waited {most:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
