//! A tree of logs and exports, reproducible from a seed: the sizes of its files differ a thousandfold, a third of them
//! are compressed, and they have ten styles. Tests search a small one, benchmarks a large one.

mod scene;
mod words;

use self::scene::Scene;
use self::words::SERVICES;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The start of October 2026.
pub(crate) const OCTOBER: u64 = 1_790_812_800_000;

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
