//! Files that are appended to, rotated, compressed and deleted during queries: a line that existed before and after a
//! query is found.

use super::corpus::Random;
use super::peer::{Running, TREE, tamis};
use crate::common::{Sandbox, start};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The existing lines: a line is added once it is written, and removed before its deletion begins.
#[derive(Default)]
struct Truth(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    there: HashSet<String>,
    /// All lines written, or about to be.
    begun: HashSet<String>,
}

impl Truth {
    fn there(&self) -> HashSet<String> {
        self.0.lock().unwrap().there.clone()
    }
}

/// A log and its rotations, kept by one thread: `app.log`, `app.log.1`, `app.log.2.gz`, …
struct Log {
    folder: PathBuf,
    number: u64,
    random: Random,
    truth: Arc<Truth>,
    written: u64,
    open: File,
    /// The lines of each generation, newest first, and whether it is compressed.
    generations: Vec<(Vec<String>, bool)>,
    rotations: Arc<AtomicU64>,
}

const GENERATIONS: usize = 6;

impl Log {
    fn new(dir: &Sandbox, number: u64, truth: &Arc<Truth>, rotations: &Arc<AtomicU64>) -> Self {
        let folder = dir.path(TREE).join(format!("host-{number}"));
        fs::create_dir_all(&folder).unwrap();
        let open = append(&folder.join("app.log"));
        Self {
            folder,
            number,
            random: Random(number),
            truth: truth.clone(),
            written: 0,
            open,
            generations: vec![(Vec::new(), false)],
            rotations: rotations.clone(),
        }
    }

    fn path(&self, generation: usize) -> PathBuf {
        let number = match generation {
            0 => String::new(),
            _ => format!(".{generation}"),
        };
        let packed = if self.generations[generation].1 {
            ".gz"
        } else {
            ""
        };
        self.folder.join(format!("app.log{number}{packed}"))
    }

    fn write_lines(&mut self, count: u64) {
        for _ in 0..count {
            let id = format!("id{}x{:08x}", self.number, self.written);
            self.written += 1;
            let line = format!(
                "2026-10-05T10:00:00Z INFO needle {id} of host-{}\n",
                self.number
            );
            self.truth.0.lock().unwrap().begun.insert(id.clone());
            // Sometimes in two writes, as when a buffer is full.
            let cut = match self.random.below(8) {
                0 => self.random.below(line.len() as u64) as usize,
                _ => line.len(),
            };
            self.open.write_all(&line.as_bytes()[..cut]).unwrap();
            self.open.write_all(&line.as_bytes()[cut..]).unwrap();
            self.truth.0.lock().unwrap().there.insert(id.clone());
            self.generations[0].0.push(id);
        }
    }

    /// Like logrotate: each generation takes the name of the next older one, and `app.log` starts anew.
    fn rotate(&mut self) {
        if self.generations.len() == GENERATIONS {
            self.delete_oldest();
        }
        for generation in (0..self.generations.len()).rev() {
            let from = self.path(generation);
            let packed = if self.generations[generation].1 {
                ".gz"
            } else {
                ""
            };
            let to = self
                .folder
                .join(format!("app.log.{}{packed}", generation + 1));
            fs::rename(from, to).unwrap();
        }
        self.generations.insert(0, (Vec::new(), false));
        self.open = append(&self.path(0));
        self.rotations.fetch_add(1, SeqCst);
    }

    /// logrotate's `copytruncate`, for programs that keep their log open.
    fn rotate_by_copy(&mut self) {
        if self.generations.len() == GENERATIONS {
            self.delete_oldest();
        }
        for generation in (1..self.generations.len()).rev() {
            let from = self.path(generation);
            let packed = if self.generations[generation].1 {
                ".gz"
            } else {
                ""
            };
            let to = self
                .folder
                .join(format!("app.log.{}{packed}", generation + 1));
            fs::rename(from, to).unwrap();
        }
        fs::copy(self.path(0), self.folder.join("app.log.1")).unwrap();
        self.open.set_len(0).unwrap();
        self.generations.insert(0, (Vec::new(), false));
        self.rotations.fetch_add(1, SeqCst);
    }

    /// Like gzip: writes another file, and deletes this one once the other is complete.
    fn pack(&mut self) {
        let plain = (1..self.generations.len())
            .rev()
            .find(|generation| !self.generations[*generation].1);
        let Some(generation) = plain else { return };
        let path = self.path(generation);
        self.generations[generation].1 = true;
        let mut packed = flate2::write::GzEncoder::new(
            File::create(self.path(generation)).unwrap(),
            flate2::Compression::fast(),
        );
        let mut text = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut text).unwrap();
        packed.write_all(&text).unwrap();
        packed.finish().unwrap();
        fs::remove_file(path).unwrap();
    }

    fn delete_oldest(&mut self) {
        if self.generations.len() < 2 {
            return;
        }
        let path = self.path(self.generations.len() - 1);
        let (ids, _) = self.generations.pop().unwrap();
        let mut lines = self.truth.0.lock().unwrap();
        for id in ids {
            lines.there.remove(&id);
        }
        drop(lines);
        fs::remove_file(path).unwrap();
    }

    /// Does any of the above.
    fn act(&mut self) {
        let few = self.random.below(60);
        self.write_lines(few);
        match self.random.below(8) {
            0 => self.write_lines(400),
            1..=3 => self.rotate(),
            4 => self.rotate_by_copy(),
            5 | 6 => self.pack(),
            _ => self.delete_oldest(),
        }
    }
}

fn append(path: &std::path::Path) -> File {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

/// Threads that change files when told to, while others search.
struct Writers {
    tell: Vec<Sender<u64>>,
    threads: Vec<JoinHandle<()>>,
    truth: Arc<Truth>,
    rotations: Arc<AtomicU64>,
}

impl Writers {
    fn start(dir: &Sandbox, count: u64) -> Self {
        let (truth, rotations) = (Arc::<Truth>::default(), Arc::<AtomicU64>::default());
        let (mut tell, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut log = Log::new(dir, number, &truth, &rotations);
            // There are generations from the start.
            for _ in 0..4 {
                log.write_lines(200);
                log.rotate();
            }
            log.pack();
            let (sender, told): (_, Receiver<u64>) = channel();
            tell.push(sender);
            threads.push(std::thread::spawn(move || {
                while let Ok(times) = told.recv() {
                    (0..times).for_each(|_| log.act());
                }
            }));
        }
        Self {
            tell,
            threads,
            truth,
            rotations,
        }
    }

    /// Makes each of them act this many times, starting now.
    fn act(&self, times: u64) {
        for writer in &self.tell {
            writer.send(times).unwrap();
        }
    }

    fn rotations(&self) -> u64 {
        self.rotations.load(SeqCst)
    }

    fn end(self) {
        drop(self.tell);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// The ids in the output. A line whose end isn't written yet has none.
fn ids(printed: &[u8]) -> HashSet<String> {
    let text = String::from_utf8_lossy(printed);
    let id = |line: &str| {
        let (id, host) = line.split_once("needle ")?.1.split_once(" of host-")?;
        assert!(
            id.starts_with(&format!("id{host}x")),
            "two lines in one: {line:?}"
        );
        Some(id.to_string())
    };
    text.lines().filter_map(id).collect()
}

/// Searches for all lines, or for one of them; panics if one is missing.
fn ask(dir: &Sandbox, writers: &Writers, round: u64) {
    let before = writers.truth.there();
    // The query's process starts while the writers are active.
    writers.act(1 + round % 3);
    let one = before.iter().nth(round as usize % before.len().max(1));
    let (args, wanted): (Vec<&str>, HashSet<String>) = match (round % 4, one) {
        (0, Some(id)) => (vec!["grep", id, "ix"], HashSet::from([id.clone()])),
        (1, _) => (
            vec!["grep", "-E", r"needle id\d+x[0-9a-f]+ of", "ix"],
            before.clone(),
        ),
        (2, _) => (vec!["grep", "-i", "-F", "NEEDLE ID", "ix"], before.clone()),
        _ => (vec!["grep", "needle", "ix"], before.clone()),
    };
    let ran = tamis(dir, &args);
    let found = ids(&ran.out);
    let lines = writers.truth.0.lock().unwrap();
    let missing: Vec<&String> = (wanted.iter())
        .filter(|id| lines.there.contains(*id) && !found.contains(*id))
        .collect();
    assert!(
        missing.is_empty(),
        "{args:?} missed {} of {} lines, such as {}, after {} rotations\nexit {}: {}",
        missing.len(),
        wanted.len(),
        missing[0],
        writers.rotations(),
        ran.code,
        ran.err
    );
    let invented: Vec<&String> = found
        .iter()
        .filter(|id| !lines.begun.contains(*id))
        .collect();
    assert!(
        invented.is_empty(),
        "{args:?}: {invented:?} was never written"
    );
}

const LOGS: u64 = 4;
const ROUNDS: u64 = 120;

#[test]
fn no_line_is_missed_with_an_index_that_is_not_updated() {
    let dir = Sandbox::new();
    let writers = Writers::start(&dir, LOGS);
    dir.ok(&format!("index -q ix {TREE}"));
    for round in 0..ROUNDS {
        ask(&dir, &writers, round);
    }
    assert!(writers.rotations() > 200, "{}", writers.rotations());
    writers.end();
}

#[test]
fn no_line_is_missed_with_an_index_that_is_updated() {
    let dir = Sandbox::new();
    let writers = Writers::start(&dir, LOGS);
    dir.ok(&format!("index -q ix {TREE}"));
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            writers.act(1);
            // A file that vanishes or is half compressed may be reported, but must not stop the run.
            let ran = tamis(&dir, ["index", "-q", "ix"]);
            assert!(ran.code >= 0, "{}", ran.err);
        }
        ask(&dir, &writers, round);
    }
    assert!(writers.rotations() > 200, "{}", writers.rotations());
    writers.end();
    let quiet = tamis(&dir, ["index", "-q", "ix"]);
    assert_eq!(quiet.code, 0, "{}", quiet.err);
}

/// `--watch` updates the index at its own times.
#[test]
fn no_line_is_missed_while_the_index_is_watched() {
    let dir = Sandbox::new();
    let writers = Writers::start(&dir, LOGS);
    dir.ok(&format!("index -q ix {TREE}"));
    let mut command = dir.command("index -q ix --watch");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut watch = Running(start(&mut command));
    let said = read_in_the_background(watch.0.stderr.take().unwrap());
    for round in 0..ROUNDS {
        ask(&dir, &writers, round);
        assert!(
            watch.0.try_wait().unwrap().is_none(),
            "it ended: {}",
            said.lock().unwrap()
        );
    }
    assert!(writers.rotations() > 200, "{}", writers.rotations());
    writers.act(2);
    writers.end();
    // Once the writers stop, the index becomes complete without another command.
    wait_until("the index knows all", || {
        let info = tamis(&dir, ["info", "--json", "ix"]);
        let info: serde_json::Value = serde_json::from_slice(&info.out).unwrap_or_default();
        info["fresh"] == info["files"] && info["new"] == 0 && info["files"].as_u64() > Some(0)
    });
}

/// A child's output so far.
fn read_in_the_background(mut from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let said = Arc::<Mutex<String>>::default();
    let into = said.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            *into.lock().unwrap() += &String::from_utf8_lossy(&bytes[..len]);
        }
    });
    said
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < end, "not in two minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The same without a pause between changes: matches were really written, and queries end.
#[test]
fn questions_end_while_files_change_without_a_pause() {
    let dir = Sandbox::new();
    let writers = Writers::start(&dir, 2);
    dir.ok(&format!("index -q ix {TREE}"));
    writers.act(400);
    for _ in 0..15 {
        let ran = tamis(&dir, ["grep", "needle", "ix"]);
        let found = ids(&ran.out);
        let lines = writers.truth.0.lock().unwrap();
        assert!(found.is_subset(&lines.begun));
    }
    writers.end();
}
