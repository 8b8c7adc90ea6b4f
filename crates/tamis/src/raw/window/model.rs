//! Writers and readers of one table in every order that they can take, on a table so small that
//! they meet: two bins on one page, and generations that pass meanwhile.
//!
//! A writer that sleeps between reading a word and exchanging it for as long as stamps take to come
//! round, and finds the very same word again, is beyond any model; `docs/format.md` says how long
//! that is.

use super::cells::{Beside, Cells};
use super::shape::{Entry, Span, Spot, Table, WindowOptions, WindowShape};
use super::table::{Asked, Clock, Told};
use crate::raw::isa::Isa;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
    fence,
};
use std::sync::{OnceLock, atomic};

/// The words of a table as the model sees them.
#[derive(Clone)]
struct Modelled(Arc<Vec<AtomicU64>>);

impl Cells for Modelled {
    const SHARED: bool = true;

    fn load(&self, at: usize) -> u64 {
        self.0[at].load(Acquire)
    }

    fn load_bin<const WORDS: usize>(&self, first: usize) -> [u64; WORDS] {
        std::array::from_fn(|i| self.load(first + i))
    }

    #[cfg(target_arch = "x86_64")]
    fn place(&self) -> Option<(*const u64, usize)> {
        None
    }

    fn exchange(&mut self, at: usize, old: u64, new: u64) -> bool {
        self.0[at]
            .compare_exchange(old, new, AcqRel, Relaxed)
            .is_ok()
    }

    fn alone(&mut self) -> Option<&mut [u64]> {
        None
    }

    fn prefetch(&self, _: &Spot) {}

    fn then(&self) {
        fence(Acquire);
    }
}

/// Three bins of two words: six slots of 21 bits each.
fn shape() -> WindowShape {
    let options = WindowOptions::new(Span::Keys(2)).generations(2);
    WindowShape::new(&options, 3, 2, 21).unwrap()
}

fn table() -> Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    *TABLE.get_or_init(|| *shape().newest_table())
}

fn clock(now: i64, newest: i64) -> Clock {
    Clock::new(&shape(), now, newest, false)
}

fn entry(home: u64, print: u64) -> Entry {
    Entry { home, print }
}

/// Words with these entries, each of its generation.
fn with(entries: &[(Entry, i64)]) -> Modelled {
    let words = (0..shape().body_len() / 8).map(|_| atomic::AtomicU64::new(0));
    let words: Vec<_> = words.collect();
    for (entry, generation) in entries {
        let clock = clock(*generation, *generation);
        let told = add(&mut Beside(&words), *entry, &clock);
        assert_eq!(told, Told::New(None));
    }
    let words = (words.into_iter()).map(|word| AtomicU64::new(u64::from_le(word.into_inner())));
    Modelled(Arc::new(words.collect()))
}

/// Entries that have these two bins.
fn entries(home: u64, second: u64) -> impl Iterator<Item = Entry> {
    let each = (1..).map(move |print| entry(home, print));
    each.filter(move |entry| table().second(*entry) == second)
}

fn has(cells: &Modelled, entry: Entry, now: i64) -> bool {
    let asked = Asked {
        oldest: shape().oldest_for(now),
        full_bins: false,
    };
    table().contains(Isa::best(), cells, &table().spot(entry), &asked)
}

fn add<C: Cells>(cells: &mut C, entry: Entry, clock: &Clock) -> Told {
    table().insert(Isa::best(), cells, &table().spot(entry), clock)
}

/// With at most three switches between threads that have not finished: every pair of steps meets.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);

    builder.check(model);
}

#[test]
fn two_who_add_one_key_are_told_new_once() {
    check(|| {
        let cells = with(&[]);
        let add = |mut cells: Modelled| move || add(&mut cells, entry(0, 7), &clock(5, 5));
        let other = loom::thread::spawn(add(cells.clone()));
        let told = [add(cells.clone())(), other.join().unwrap()];
        let new = told.iter().filter(|told| **told == Told::New(None)).count();
        assert_eq!(new, 1, "{told:?}");
        assert!(has(&cells, entry(0, 7), 5));
    });
}

/// The fault of the first edition: a key is added to a page of which the forgotten ones are
/// being emptied, in a generation that whoever does so has not heard of.
#[test]
fn what_is_added_while_a_page_is_swept_stays() {
    check(|| {
        // Stamps come round after eight generations: the old key has the stamp of the new one.
        let cells = with(&[(entry(0, 3), 1)]);
        let mut sweeping = cells.clone();
        let other = loom::thread::spawn(move || add(&mut sweeping, entry(1, 5), &clock(8, 8)));
        let mut adding = cells.clone();
        let told = add(&mut adding, entry(0, 7), &clock(9, 9));
        assert_eq!(told, Told::New(None));
        assert!(has(&adding, entry(0, 7), 9));
        other.join().unwrap();
        assert!(has(&cells, entry(0, 7), 9), "swept away");
        assert!(!has(&cells, entry(0, 3), 9), "came back");
    });
}

/// Whoever looks for a key while it moves to its second bin finds it in one of the two.
#[test]
fn a_key_that_moves_is_never_missed() {
    check(|| {
        // Both bins of the new key are full, and those in its home bin can move to the third.
        let full = entries(0, 2).take(6).chain(entries(1, 0).take(6));
        let full: Vec<(Entry, i64)> = full.map(|entry| (entry, 5)).collect();
        let added = entries(0, 1).next().unwrap();
        let cells = with(&full);
        let (looking, first) = (cells.clone(), full[0].0);
        let other = loom::thread::spawn(move || has(&looking, first, 5));
        let told = add(&mut cells.clone(), added, &clock(5, 5));
        assert_eq!(told, Told::New(None));
        // The first is the one that moves.
        assert!(other.join().unwrap(), "missed while it moved");
        assert!(full.iter().all(|(entry, _)| has(&cells, *entry, 5)));
        assert!(has(&cells, added, 5));
    });
}

/// The same key again in a later generation, by two: it is told new, and restamped, once.
#[test]
fn a_key_that_was_forgotten_is_told_new_once() {
    check(|| {
        let cells = with(&[(entry(0, 7), 5)]);
        let add = |mut cells: Modelled| move || add(&mut cells, entry(0, 7), &clock(8, 8));
        let other = loom::thread::spawn(add(cells.clone()));
        let told = [add(cells.clone())(), other.join().unwrap()];
        let new = told
            .iter()
            .filter(|told| matches!(told, Told::New(_)))
            .count();
        assert_eq!(new, 1, "{told:?}");
        assert!(has(&cells, entry(0, 7), 10));
    });
}
