//! Makes files print in order while they are searched concurrently.

use super::{Searched, Tally};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The most output that may wait for earlier files.
const MOST_WAITING: usize = 64 << 20;
/// The size of the pieces in which a file's output is passed on.
const PIECE: usize = 1 << 20;

/// Makes files print in order while they are searched concurrently.
pub(super) struct Turns<'t> {
    state: Mutex<State<'t>>,
    moved: Condvar,
    stop: &'t AtomicBool,
}

struct State<'t> {
    /// The file whose turn it is.
    next: usize,
    /// Output and outcomes of later files.
    finished: BTreeMap<usize, (Vec<u8>, Searched)>,
    /// The size of that output, plus what running searches hold.
    waiting: usize,
    /// The last file that printed something.
    started: Option<usize>,
    /// The separator between the lines of two files.
    between: &'static [u8],
    out: &'t mut (dyn Write + Send),
    outcomes: Vec<(usize, Searched)>,
    tally: &'t mut Tally,
    unwritten: Option<io::Error>,
}

impl State<'_> {
    fn print(&mut self, number: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() || self.unwritten.is_some() {
            return Ok(());
        }
        if self.started.replace(number) != Some(number) && self.tally.printed {
            self.out.write_all(self.between)?;
        }
        self.tally.printed = true;
        self.out.write_all(bytes)
    }
}

impl<'t> Turns<'t> {
    pub(super) fn new(
        between: &'static [u8],
        out: &'t mut (dyn Write + Send),
        tally: &'t mut Tally,
        stop: &'t AtomicBool,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                finished: BTreeMap::new(),
                waiting: 0,
                started: None,
                between,
                out,
                outcomes: Vec::new(),
                tally,
                unwritten: None,
            }),
            moved: Condvar::new(),
            stop,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'t>> {
        self.state.lock().expect("no thread panics while it prints")
    }

    /// Finishes a file, and prints every file whose turn has come.
    pub(super) fn finish(&self, number: usize, waiting: Vec<u8>, searched: Searched) {
        let mut state = self.lock();
        state.waiting += waiting.len();
        state.finished.insert(number, (waiting, searched));
        loop {
            let next = state.next;
            let Some((bytes, searched)) = state.finished.remove(&next) else {
                break;
            };
            state.waiting -= bytes.len();
            if let Err(error) = state.print(next, &bytes) {
                state.unwritten.get_or_insert(error);
                self.stop.store(true, Relaxed);
            }
            state.outcomes.push((next, searched));
            state.next += 1;
        }
        self.moved.notify_all();
    }

    /// The outcomes of all files, by their numbers.
    pub(super) fn into_outcomes(self) -> io::Result<Vec<(usize, Searched)>> {
        let state = self.state.into_inner();
        let state = state.expect("no thread panics while it prints");
        match state.unwritten {
            Some(error) => Err(error),
            None => Ok(state.outcomes),
        }
    }

    /// Prints a piece of a file if it is the file's turn. If too much output waits already, blocks until then.
    fn pass_on(&self, number: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut state = self.lock();
        while state.next != number {
            if state.waiting + bytes.len() < MOST_WAITING || self.stop.load(Relaxed) {
                return Ok(());
            }
            state = self
                .moved
                .wait(state)
                .expect("no thread panics while it prints");
        }
        let printed = state.print(number, bytes);
        bytes.clear();
        printed
    }
}

/// The output of one file.
pub(super) struct Output<'o, 't> {
    pub(super) turns: &'o Turns<'t>,
    pub(super) number: usize,
    pub(super) waiting: Vec<u8>,
}

impl Write for Output<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE {
            self.turns.pass_on(self.number, &mut self.waiting)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
