//! One window's file, many writers: threads of several processes add the same keys across thousands of generations, and
//! some of them are killed. Not a comparison, but a trial that is too long for a test: it fails if a key is denied.
//!
//! Nobody waits for the others at the border of a generation, which would hide what happens there; they only stay within
//! one of the slowest. Each key is added by every thread, so it should be told "new" once. A key that nobody was told is
//! new seemed to be there before it was: it is remembered no longer than the key that it was taken for, and counted.

use memmap2::MmapMut;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::time::{Duration, Instant};
use tamis::{Hash, Moment, Window};

/// The name of a process that adds.
pub const WRITER: &str = "race-writer";
const GENERATION: i64 = 10_000; // microseconds
const SPAN: u64 = 8;

/// Generations whose keys are on the board.
const NOTED: u64 = 32;

/// What all processes see: for each thread its generation and counts, and for each key whether somebody was told that it
/// is new.
struct Board {
    map: MmapMut,
    threads: usize,
    keys: u64,
}

impl Board {
    fn open(path: &str, threads: usize, keys: u64) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path)?;
        file.set_len(threads as u64 * 128 + NOTED * keys * 8)?;
        // SAFETY: only atomics are used, and nobody cuts the file.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self { map, threads, keys })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at * 8 < self.map.len());
        // SAFETY: the mapping is aligned, has this word, and lives as long as it is borrowed.
        unsafe { &*self.map.as_ptr().add(at * 8).cast() }
    }

    fn cell(&self, thread: usize, cell: usize) -> &AtomicU64 {
        self.word(thread * 16 + cell)
    }

    /// One more than the last generation in which this key was told to be new.
    fn note(&self, generation: u64, number: u64) -> &AtomicU64 {
        let at = generation % NOTED * self.keys + number;
        self.word(self.threads * 16 + at as usize)
    }

    fn generation(&self, thread: usize) -> &AtomicU64 {
        self.cell(thread, 0)
    }

    fn told(&self, thread: usize) -> &AtomicU64 {
        self.cell(thread, 1)
    }

    fn twice(&self, thread: usize) -> &AtomicU64 {
        self.cell(thread, 2)
    }

    fn mistaken(&self, thread: usize) -> &AtomicU64 {
        self.cell(thread, 3)
    }

    fn sum<'a>(&'a self, cell: impl Fn(&'a Self, usize) -> &'a AtomicU64) -> u64 {
        (0..self.threads)
            .map(|thread| cell(self, thread).load(Relaxed))
            .sum()
    }

    fn slowest(&self, threads: usize) -> u64 {
        let generations = (0..threads).map(|thread| self.generation(thread).load(Relaxed));
        generations.min().unwrap_or(0)
    }
}

fn key(generation: u64, number: u64) -> Hash {
    Hash::from_u64(generation << 24 | number)
}

fn moment(generation: u64, number: u64, keys: u64) -> Moment {
    let within = number as i64 * GENERATION / keys as i64;
    Moment::from_micros(generation as i64 * GENERATION + within)
}

/// A process: `race-writer FOLDER FIRST THREADS ALL GENERATIONS KEYS`.
pub fn write(args: &[String]) -> Result<(), String> {
    let [folder, numbers @ ..] = args else {
        return Err("no folder".into());
    };
    let numbers: Vec<u64> = numbers.iter().map(|n| n.parse().unwrap_or(0)).collect();
    let [first, threads, all, generations, keys] = numbers[..] else {
        return Err("five numbers".into());
    };
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let window = Window::share(format!("{folder}/window.tamis")).map_err(|e| text(&e))?;
    let board =
        Board::open(&format!("{folder}/board"), all as usize, keys).map_err(|e| text(&e))?;
    std::thread::scope(|scope| {
        for thread in first..first + threads {
            let (window, board) = (&window, &board);
            let (thread, all) = (thread as usize, all as usize);
            scope.spawn(move || {
                let from = board
                    .generation(thread)
                    .load(Relaxed)
                    .max(board.slowest(all));
                for generation in from..generations {
                    board.generation(thread).store(generation, Relaxed);
                    while board.slowest(all) + 1 < generation {
                        std::thread::yield_now();
                    }
                    for number in 0..keys {
                        let at = moment(generation, number, keys);
                        if window.insert(key(generation, number), at) {
                            let before =
                                board.note(generation, number).swap(generation + 1, AcqRel);
                            let counter = match before == generation + 1 {
                                true => board.twice(thread),
                                false => board.told(thread),
                            };
                            counter.fetch_add(1, Relaxed);
                        }
                        // Some key that this thread has added before, and that is in the window.
                        let back = (number * 7 + thread as u64) % SPAN;
                        if back < generation.saturating_sub(from) {
                            let other = (number * 31 + 11) % keys;
                            let added = moment(generation - back, other, keys);
                            let is_in = at.micros() - added.micros() <= SPAN as i64 * GENERATION;
                            if is_in && (back > 0 || other <= number) {
                                let (then, hash) =
                                    (generation - back, key(generation - back, other));
                                if !window.contains(hash, at) {
                                    let told = board.note(then, other).load(Acquire) == then + 1;
                                    assert!(!told, "denied: {other} of {back} generations before");
                                    board.mistaken(thread).fetch_add(1, Relaxed);
                                }
                            }
                        }
                    }
                }
                board.generation(thread).store(u64::MAX, Relaxed);
            });
        }
    });
    Ok(())
}

/// Runs processes of threads until they have made so many additions; kills one of them now and then.
pub fn run(
    additions: u64,
    generations: u64,
    (processes, threads): (u64, u64),
    rate: f64,
    kill_every: Option<Duration>,
) -> Result<(), String> {
    let all = processes * threads;
    let keys = (additions / all / generations).max(1);
    let folder = crate::dedup::Place::make()?;
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let path = folder.0.join("window.tamis");
    let span = Duration::from_micros(SPAN * GENERATION as u64);
    let window = Window::within(span, keys * (SPAN + 2), rate).map_err(|e| text(&e))?;
    window.save(&path).map_err(|e| text(&e))?;
    let board = folder.0.join("board");
    let board = Board::open(&board.to_string_lossy(), all as usize, keys).map_err(|e| text(&e))?;
    let start = Instant::now();
    let spawn = |process: u64| {
        spawn(
            &folder.0,
            process * threads,
            threads,
            all,
            generations,
            keys,
        )
    };
    let mut children: Vec<Option<Child>> = (0..processes)
        .map(|process| spawn(process).map(Some))
        .collect::<Result<_, _>>()?;
    let (mut kills, mut last) = (0, Instant::now());
    while children.iter().any(Option::is_some) {
        std::thread::sleep(Duration::from_millis(2));
        for child in &mut children {
            if let Some(status) = child.as_mut().and_then(|child| child.try_wait().ok()?) {
                *child = None;
                if !status.success() {
                    return Err(format!("a writer ended with {status}"));
                }
            }
        }
        if kill_every.is_some_and(|every| last.elapsed() > every) {
            last = Instant::now();
            let process = kills % processes;
            if let Some(child) = &mut children[process as usize] {
                child
                    .kill()
                    .and_then(|()| child.wait())
                    .map_err(|e| text(&e))?;
                children[process as usize] = Some(spawn(process)?);
                kills += 1;
            }
        }
    }
    println!(
        "{processes} processes of {threads} threads, rate {rate}, {generations} generations of {keys} keys: {} additions in \
         {:.0?}, {kills} kills; {} keys told new of {}, {} told so twice; none of them denied; {} answers \"no\" about keys \
         that nobody was told",
        keys * generations * all,
        start.elapsed(),
        board.sum(Board::told),
        keys * generations,
        board.sum(Board::twice),
        board.sum(Board::mistaken),
    );
    Ok(())
}

fn spawn(
    folder: &Path,
    first: u64,
    threads: u64,
    all: u64,
    generations: u64,
    keys: u64,
) -> Result<Child, String> {
    let program = std::env::current_exe().and_then(fs::canonicalize);
    let numbers = [first, threads, all, generations, keys].map(|number| number.to_string());
    let mut command = Command::new(program.map_err(|e| e.to_string())?);
    command.arg(WRITER).arg(folder).args(numbers);
    command.spawn().map_err(|e| e.to_string())
}
