//! What a file tells of: clients, requests and times, in each of the styles.

use super::words::{AGENTS, CITIES, DOMAINS, EXCEPTIONS, FIRST, LAST, NOUNS, SERVICES};
use super::{OCTOBER, Planned, Random};
use std::io::{self, Write};

const DAY: u64 = 86_400_000;

/// Clients, requests and times: the same in all styles.
pub(super) struct Scene {
    random: Random,
    seed: u64,
    /// The number of clients that come and go.
    clients: u64,
    /// Milliseconds since the beginning of October 2026.
    time: u64,
    /// Average time between two entries.
    pause: u64,
    /// The entry's client.
    client: Client,
    request: u64,
    /// Entries before the next request.
    left: u64,
}

struct Client {
    seed: u64,
    address: [u64; 4],
    first: &'static str,
    last: &'static str,
    number: u64,
    domain: &'static str,
}

impl Client {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        Self {
            seed,
            address: [
                *random.pick(&[10, 10, 172, 192, 203, 81, 91, 34]),
                random.below(256),
                random.below(256),
                1 + random.below(254),
            ],
            first: *random.pick(&FIRST),
            last: *random.pick(&LAST),
            number: random.below(10_000),
            domain: *random.pick(&DOMAINS),
        }
    }

    fn ip(&self) -> String {
        let [a, b, c, d] = self.address;
        format!("{a}.{b}.{c}.{d}")
    }

    fn mail(&self) -> String {
        let Self {
            first,
            last,
            number,
            domain,
            ..
        } = self;
        format!("{first}.{last}{number}@{domain}")
    }
}

impl Scene {
    pub(super) fn new(file: &Planned) -> Self {
        let mut random = Random(file.seed);
        let time = random.below(30) * DAY;
        let entries = file.bytes / 160 + 1;
        Self {
            time,
            seed: file.seed,
            clients: 1 + entries / 40,
            pause: 2 * (DAY / entries).max(1),
            client: Client::new(file.seed),
            request: random.next(),
            left: 0,
            random,
        }
    }

    /// Draws the next entry's time, client and request.
    pub(super) fn advance(&mut self) {
        self.time = (self.time + self.random.below(self.pause)) % (31 * DAY);
        if self.left == 0 {
            // A few clients come often, many seldom.
            let newest = self.random.below(self.clients) + 1;
            let client = self.random.below(newest);
            self.client = Client::new(self.seed ^ client.wrapping_mul(0xD6E8_FEB8_6659_FD93));
            self.request = self.random.next();
            self.left = 1 + self.random.below(5);
        }
        self.left -= 1;
    }

    fn clock(&self) -> (u64, u64, u64, u64, u64) {
        let (day, rest) = (self.time / DAY + 1, self.time % DAY);
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        (day, hour, minute, rest / 1000 % 60, rest % 1000)
    }

    fn iso(&self) -> String {
        let (day, hour, minute, second, ms) = self.clock();
        format!("2026-10-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }

    fn uuid(seed: u64) -> String {
        let mut random = Random(seed);
        let (high, low) = (random.next(), random.next());
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
        let (d, e) = (0x8000 | low >> 48 & 0x3fff, low & 0xffff_ffff_ffff);
        format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
    }

    fn path(&mut self) -> String {
        let random = &mut self.random;
        match random.below(8) {
            0 => "/".into(),
            1 => format!(
                "/static/{}.{:08x}.js",
                random.pick(&NOUNS),
                random.below(40) * 97_003_711
            ),
            2 => format!("/search?q={}+{}", random.pick(&NOUNS), random.pick(&NOUNS)),
            3 => format!("/api/v2/orders/{}", random.below(90_000_000)),
            4 => format!("/api/v2/users/{}/cart", random.below(400_000)),
            5 => format!("/{}/{}", random.pick(&NOUNS), random.below(20_000)),
            6 => format!("/img/{}-{}.webp", random.pick(&NOUNS), random.below(300)),
            _ => format!("/{}", random.pick(&NOUNS)),
        }
    }

    fn status(&mut self) -> u64 {
        *self.random.pick(&[
            200, 200, 200, 200, 200, 200, 200, 200, 200, 204, 301, 302, 304, 304, 404, 500,
        ])
    }

    fn level(&mut self) -> &'static str {
        match self.random.below(1000) {
            0 => "FATAL",
            1..=15 => "ERROR",
            16..=70 => "WARN",
            71..=300 => "DEBUG",
            _ => "INFO",
        }
    }

    fn message(&mut self) -> String {
        let random = &mut self.random;
        match random.below(12) {
            0 => format!("accepted connection, {} open", random.below(500)),
            1 => format!(
                "timeout after {} ms, attempt {}",
                random.below(30_000),
                random.below(5)
            ),
            2 => "connection refused by upstream".into(),
            3 => format!(
                "cache miss for {}:{}",
                random.pick(&NOUNS),
                random.below(100_000)
            ),
            4 => format!(
                "order {} shipped to {}",
                random.below(90_000_000),
                random.pick(&CITIES)
            ),
            5 => format!("user {} logged in", self.client.mail()),
            6 => format!(
                "query took {}.{:03} s, {} rows",
                random.below(9),
                random.below(1000),
                random.below(5000)
            ),
            7 => format!("job {} done", Self::uuid(random.next())),
            8 => format!(
                "retrying {} in {} ms",
                random.pick(&SERVICES),
                random.below(4000)
            ),
            9 => format!("GC pause {}.{} ms", random.below(200), random.below(10)),
            10 => format!(
                "payload of {} bytes from {}",
                random.below(100_000),
                self.client.ip()
            ),
            _ => format!(
                "flushed {} {} to disk",
                random.below(900),
                random.pick(&NOUNS)
            ),
        }
    }

    pub(super) fn apache(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (day, hour, minute, second, _) = self.clock();
        let (path, status, agent) = (self.path(), self.status(), *self.random.pick(&AGENTS));
        let user = if self.random.below(5) == 0 {
            self.client.last
        } else {
            "-"
        };
        writeln!(
            out,
            "{} - {user} [{day:02}/Oct/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" {status} {} \"https://shop.example.org/{}\" \"{agent}\"",
            self.client.ip(),
            self.random.below(80_000),
            self.random.pick(&NOUNS),
        )
    }

    pub(super) fn nginx(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (day, hour, minute, second, _) = self.clock();
        let (path, status, agent) = (self.path(), self.status(), *self.random.pick(&AGENTS));
        let method = *self
            .random
            .pick(&["GET", "GET", "GET", "GET", "POST", "PUT", "HEAD"]);
        writeln!(
            out,
            "{} - - [{day:02}/Oct/2026:{hour:02}:{minute:02}:{second:02} +0000] \"{method} {path} HTTP/2.0\" {status} {} \"-\" \"{agent}\" rt=0.{:03} uct=\"0.00{}\" {:016x}",
            self.client.ip(),
            self.random.below(80_000),
            self.random.below(1000),
            self.random.below(10),
            self.request,
        )
    }

    pub(super) fn app(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (level, message) = (self.level(), self.message());
        writeln!(
            out,
            "{} {level} [{:016x}] worker-{} {}: {message}",
            self.iso(),
            self.request,
            self.random.below(16),
            self.random.pick(&SERVICES),
        )
    }

    pub(super) fn logfmt(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (level, message, path) = (self.level(), self.message(), self.path());
        let status = self.status();
        writeln!(
            out,
            "ts={} level={} caller={}.go:{} trace={:016x} user={} path={path} status={status} msg=\"{message}\"",
            self.iso(),
            level.to_lowercase(),
            self.random.pick(&NOUNS),
            self.random.below(400),
            self.request,
            self.client.mail(),
        )
    }

    pub(super) fn json(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (level, message) = (self.level(), self.message());
        writeln!(
            out,
            r#"{{"time":"{}","level":"{level}","service":"{}","trace_id":"{}","client":{{"ip":"{}","email":"{}"}},"duration_ms":{},"message":"{message}"}}"#,
            self.iso(),
            self.random.pick(&SERVICES),
            Self::uuid(self.request),
            self.client.ip(),
            self.client.mail(),
            self.random.below(3000),
        )
    }

    pub(super) fn java(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (day, hour, minute, second, ms) = self.clock();
        let (level, message) = (self.level(), self.message());
        let service = *self.random.pick(&SERVICES);
        writeln!(
            out,
            "2026-10-{day:02} {hour:02}:{minute:02}:{second:02},{ms:03} {level:5} [http-nio-8080-exec-{}] o.e.shop.{service}.Handler - [{:016x}] {message}",
            self.random.below(32),
            self.request,
        )?;
        if matches!(level, "ERROR" | "FATAL") {
            writeln!(
                out,
                "java.lang.{}: {message}",
                self.random.pick(&EXCEPTIONS)
            )?;
            for depth in 0..4 + self.random.below(12) {
                writeln!(
                    out,
                    "\tat org.example.shop.{service}.{}.{}(Handler.java:{})",
                    self.random.pick(&NOUNS),
                    self.random
                        .pick(&["get", "call", "run", "doFilter", "invoke"]),
                    depth * 37 + self.random.below(30),
                )?;
            }
            writeln!(
                out,
                "Caused by: java.io.IOException: Connection reset by peer\n"
            )?;
        }
        Ok(())
    }

    pub(super) fn syslog(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (day, hour, minute, second, _) = self.clock();
        let program = *self.random.pick(&[
            "sshd",
            "cron",
            "kernel",
            "systemd",
            "postfix/smtpd",
            "dhclient",
        ]);
        write!(
            out,
            "Oct {day:>2} {hour:02}:{minute:02}:{second:02} h{} {program}[{}]: ",
            self.seed % 24,
            300 + self.random.below(32_000),
        )?;
        match self.random.below(4) {
            0 => writeln!(
                out,
                "Failed password for invalid user {} from {} port {} ssh2",
                self.client.last,
                self.client.ip(),
                1024 + self.random.below(60_000)
            ),
            1 => writeln!(
                out,
                "connect from {}[{}]",
                self.client.domain,
                self.client.ip()
            ),
            2 => writeln!(
                out,
                "{:010X}: from=<{}>, size={}",
                self.request >> 24,
                self.client.mail(),
                self.random.below(90_000)
            ),
            _ => writeln!(out, "{}", self.message()),
        }
    }

    pub(super) fn csv(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let (day, hour, minute, second, _) = self.clock();
        let Client { first, last, .. } = self.client;
        writeln!(
            out,
            "{},2026-10-{day:02} {hour:02}:{minute:02}:{second:02},\"{last}, {first}\",{},{},{}.{:02},{},{}",
            Self::uuid(self.random.next()),
            self.client.mail(),
            self.random.pick(&["DE", "FR", "US", "CN", "JP", "BR"]),
            self.random.below(2000),
            self.random.below(100),
            self.random.pick(&["EUR", "USD", "CNY"]),
            self.random.pick(&["paid", "shipped", "returned", "open"]),
        )
    }

    pub(super) fn abroad(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let level = self.level();
        let number = self.random.below(100_000);
        let message = match self.random.below(6) {
            0 => format!(
                "Größe geändert auf {number} Bytes für Straße „{}“",
                self.client.last
            ),
            1 => format!(
                "ошибка соединения с узлом узел-{}: код {number}",
                self.random.below(40)
            ),
            2 => format!("订单 {number} 已发货，客户 {}", self.client.mail()),
            3 => format!("タイムアウト {number} ミリ秒、再試行します"),
            4 => format!("déjà reçu : élément n° {number} 🙂"),
            _ => format!("Ошибка 100 %: файл не найден ({number})"),
        };
        writeln!(
            out,
            "{} {level} [{:016x}] {message}",
            self.iso(),
            self.request
        )
    }

    pub(super) fn epoch(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let message = self.message();
        writeln!(
            out,
            "{} {:x} partition={} offset={} {message}",
            OCTOBER + self.time,
            self.client.seed,
            self.random.below(64),
            self.random.below(1 << 40),
        )
    }
}
