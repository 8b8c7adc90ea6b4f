//! A tree of logs and exports, reproducible from a seed: the sizes of its files differ a thousandfold, a third of them
//! are compressed, and they have ten styles. Tests search a small one, benchmarks a large one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    Apache,
    Nginx,
    App,
    Logfmt,
    Json,
    Java,
    Syslog,
    Csv,
    /// Messages in other languages than English.
    Abroad,
    /// Times in milliseconds since 1970.
    Epoch,
}

const STYLES: [Style; 10] = [
    Style::Apache,
    Style::Nginx,
    Style::App,
    Style::Logfmt,
    Style::Json,
    Style::Java,
    Style::Syslog,
    Style::Csv,
    Style::Abroad,
    Style::Epoch,
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// A planned file of the tree.
pub(crate) struct Planned {
    /// Relative to the tree.
    pub(crate) path: PathBuf,
    pub(crate) style: Style,
    pub(crate) packing: Packing,
    /// Bytes of text, rounded up to the end of a line.
    bytes: u64,
    /// Compressed in pieces of this much text, like a log to which compressed pieces are appended.
    piece: usize,
    seed: u64,
}

/// The plan of a tree.
pub(crate) struct Tree {
    pub(crate) files: Vec<Planned>,
}

impl Tree {
    pub(crate) fn new(files: u64, bytes: u64, seed: u64) -> Self {
        // One file in 500 has a quarter of all bytes, as do one in 50, one in five, and the rest.
        let weight = |number: u64| match number {
            n if n % 500 == 250 => 550.0,
            n if n % 50 == 25 => 51.0,
            n if n % 5 == 2 => 5.1,
            _ => 1.0,
        };
        let unit = bytes as f64 / (0..files).map(weight).sum::<f64>();
        let plan = |number| {
            let mut random = Random(seed << 32 | number);
            let size = unit * weight(number) * (0.5 + random.below(1000) as f64 / 1000.0);
            Planned::new(number, size as u64, &mut random)
        };
        Self {
            files: (0..files).map(plan).collect(),
        }
    }

    /// Writes all files into a folder, the largest first; returns the bytes of their text.
    pub(crate) fn write(&self, folder: &Path, threads: usize) -> io::Result<u64> {
        let mut order: Vec<&Planned> = self.files.iter().collect();
        order.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut bytes = 0;
            while let Some(file) = order.get(next.fetch_add(1, Relaxed)) {
                bytes += file.write(folder)?;
            }
            Ok(bytes)
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ended = workers.into_iter().map(|worker| worker.join().unwrap());
            ended.sum()
        })
    }

    /// A word of this form from the middle of the nth file with this style and compression.
    pub(crate) fn word(
        &self,
        style: Style,
        packing: Packing,
        nth: usize,
        form: impl Fn(&str) -> bool,
    ) -> String {
        let file = self.nth(style, packing, nth);
        let text = file.text();
        let text = String::from_utf8_lossy(&text);
        let words: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && !"@._-".contains(c))
            .filter(|word| form(word))
            .collect();
        let word = words.get(words.len() / 2);
        word.unwrap_or_else(|| panic!("no such word in {}", file.path.display()))
            .to_string()
    }

    /// A line with this text, from the second half of the nth file with this style and compression, or of a later one.
    pub(crate) fn line(&self, style: Style, packing: Packing, nth: usize, has: &str) -> String {
        for nth in nth..nth + self.files.len() {
            let text = self.nth(style, packing, nth).text();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            let mut later = lines[lines.len() / 2..].iter();
            if let Some(line) = later.find(|line| line.contains(has)) {
                return line.to_string();
            }
        }
        panic!("no line of style {style:?} has {has:?}")
    }

    /// The nth such file. Small trees lack some combinations, so another style or compression may take its place.
    fn nth(&self, style: Style, packing: Packing, nth: usize) -> &Planned {
        let alike = |same: &dyn Fn(&Planned) -> bool| -> Vec<&Planned> {
            (self.files.iter())
                .filter(|file| same(file) && file.bytes < 4 << 20)
                .collect()
        };
        let files = match alike(&|file| file.style == style && file.packing == packing) {
            none if none.is_empty() => alike(&|file| file.style == style),
            some => some,
        };
        assert!(!files.is_empty(), "the tree has no file in style {style:?}");
        files[nth % files.len()]
    }
}

impl Planned {
    fn new(number: u64, bytes: u64, random: &mut Random) -> Self {
        let style = *random.pick(&STYLES);
        let packing = match random.below(6) {
            0 => Packing::Gzip,
            1 => Packing::Zstd,
            _ => Packing::Plain,
        };
        let piece = match random.below(4) {
            0 => 1 << 20,
            _ => usize::MAX,
        };
        let (host, service) = (random.below(24), *random.pick(&SERVICES));
        let mut path = match style {
            Style::Apache => format!("web-{host:02}/access.log.{number}"),
            Style::Nginx => format!("edge-{host:02}/nginx/access-{number}.log"),
            Style::App => format!("app-{host:02}/{service}/{service}.{number}.log"),
            Style::Logfmt => format!("app-{host:02}/{service}/{number}.logfmt"),
            Style::Json => format!("events/{service}/{number}.jsonl"),
            Style::Java => format!("app-{host:02}/catalina.{number}.out"),
            Style::Syslog => format!("hosts/h{host}/syslog.{number}"),
            Style::Csv => format!("exports/orders-{number}.csv"),
            Style::Abroad => format!("intl/{service}/{number}.log"),
            Style::Epoch => format!("queue/{service}-{number}.txt"),
        };
        if number % 97 == 96 {
            path = format!(".old/{path}");
        }
        path += match packing {
            Packing::Plain => "",
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
        };
        Self {
            path: path.into(),
            style,
            packing,
            bytes,
            piece,
            seed: random.next(),
        }
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes as usize + 4096);
        let mut scene = Scene::new(self);
        if self.style == Style::Csv {
            out.extend_from_slice(
                b"order_id,created,customer,email,country,amount,currency,status\n",
            );
        }
        while (out.len() as u64) < self.bytes {
            scene.advance();
            let entry = match self.style {
                Style::Apache => scene.apache(&mut out),
                Style::Nginx => scene.nginx(&mut out),
                Style::App => scene.app(&mut out),
                Style::Logfmt => scene.logfmt(&mut out),
                Style::Json => scene.json(&mut out),
                Style::Java => scene.java(&mut out),
                Style::Syslog => scene.syslog(&mut out),
                Style::Csv => scene.csv(&mut out),
                Style::Abroad => scene.abroad(&mut out),
                Style::Epoch => scene.epoch(&mut out),
            };
            entry.expect("memory takes what is written");
        }
        out
    }

    /// Appends about this many bytes of text to the file, which must not be compressed.
    pub(crate) fn grow(&self, folder: &Path, bytes: u64) -> io::Result<()> {
        let more = Self {
            path: self.path.clone(),
            bytes,
            seed: !self.seed,
            ..*self
        };
        let mut file = File::options().append(true).open(folder.join(&self.path))?;
        file.write_all(&more.text())
    }

    /// Returns the bytes of the text.
    fn write(&self, folder: &Path) -> io::Result<u64> {
        let text = self.text();
        let path = folder.join(&self.path);
        fs::create_dir_all(path.parent().expect("it is in the folder"))?;
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for piece in text.chunks(self.piece) {
            match self.packing {
                Packing::Plain => out.write_all(piece)?,
                Packing::Gzip => {
                    let level = flate2::Compression::new(6);
                    let mut packed = flate2::write::GzEncoder::new(&mut out, level);
                    packed.write_all(piece)?;
                    packed.finish()?;
                }
                Packing::Zstd => zstd::stream::copy_encode(piece, &mut out, 3)?,
            }
        }
        out.flush()?;
        Ok(text.len() as u64)
    }
}

/// Clients, requests and times: the same in all styles.
struct Scene {
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

/// The start of October 2026.
pub(crate) const OCTOBER: u64 = 1_790_812_800_000;
const DAY: u64 = 86_400_000;

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
    fn new(file: &Planned) -> Self {
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
    fn advance(&mut self) {
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

    fn apache(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn nginx(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn app(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn logfmt(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn json(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn java(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn syslog(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn csv(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn abroad(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

    fn epoch(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
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

const SERVICES: [&str; 10] = [
    "billing", "cart", "catalog", "gateway", "identity", "mailer", "orders", "payments", "search",
    "stock",
];
const FIRST: [&str; 20] = [
    "anna", "ben", "carla", "david", "elena", "felix", "greta", "hugo", "ines", "jan", "kira",
    "leo", "mia", "noah", "olga", "paul", "rosa", "sami", "tara", "yuki",
];
const LAST: [&str; 24] = [
    "adams", "bauer", "chen", "dubois", "ek", "fischer", "garcia", "haas", "ito", "jansen",
    "keller", "lopez", "meier", "novak", "okafor", "petrov", "quinn", "rossi", "sato", "tanaka",
    "umar", "vogel", "weber", "zhang",
];
const DOMAINS: [&str; 8] = [
    "example.org",
    "example.com",
    "mail.example.net",
    "post.test",
    "kontor.invalid",
    "shop.example",
    "univ.example.edu",
    "firma.test",
];
const CITIES: [&str; 8] = [
    "Berlin", "Paris", "Osaka", "Lima", "Oslo", "Porto", "Cairo", "Quito",
];
const NOUNS: [&str; 48] = [
    "account",
    "basket",
    "camera",
    "desk",
    "engine",
    "filter",
    "garden",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "lamp",
    "mirror",
    "needle",
    "orange",
    "pillow",
    "quilt",
    "ribbon",
    "saddle",
    "table",
    "umbrella",
    "velvet",
    "window",
    "yarn",
    "zipper",
    "anchor",
    "bottle",
    "carpet",
    "drawer",
    "easel",
    "fabric",
    "glove",
    "handle",
    "inkwell",
    "jigsaw",
    "kennel",
    "ladder",
    "magnet",
    "notebook",
    "oven",
    "pencil",
    "quiver",
    "rocket",
    "shelf",
    "teapot",
    "vase",
    "wagon",
    "xylophone",
];
const EXCEPTIONS: [&str; 5] = [
    "IllegalStateException",
    "NullPointerException",
    "IndexOutOfBoundsException",
    "OutOfMemoryError",
    "UnsupportedOperationException",
];
const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
    "curl/8.9.1",
    "python-requests/2.32.3",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
];
