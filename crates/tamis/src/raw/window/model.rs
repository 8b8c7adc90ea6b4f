//! Models of writers and readers of one table, in every order, on a table small enough that they
//! collide: two bins on one page, with passing generations.
//!
//! No model covers a writer that sleeps between reading a word and exchanging it until stamps wrap
//! around, and then finds the very same word; `docs/format.md` says how long that takes.

use super::cells::{Beside, Cells};
use super::shape::{Entry, Span, Spot, Table, WindowOptions, WindowShape};
use super::table::{Asked, Clock, Told};
use crate::raw::isa::Isa;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
};
use std::sync::{OnceLock, atomic};

/// The words of a table in the model.
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

    fn agree(&self) {
        fence(SeqCst);
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

/// Words with these entries and their generations.
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

/// Entries with these two bins.
fn entries(home: u64, second: u64) -> impl Iterator<Item = Entry> {
    let each = (1..).map(move |print| entry(home, print));
    each.filter(move |entry| table().second(*entry) == second)
}

/// Fills two bins with keys in their second bins, which can't move, with these generations.
fn with_immovable(generations: [[i64; 6]; 2]) -> (Modelled, Vec<(Entry, i64)>) {
    let cells = with(&[(entry(2, 500), 5)]);
    let mut all = Vec::new();
    for (bin, generations) in (0..).zip(generations) {
        let entries = entries(2, bin).take(6);
        for ((nth, generation), entry) in generations.into_iter().enumerate().zip(entries) {
            let (at, shift) = (table().bin(bin) + nth / 3, (nth % 3) as u32 * 21);
            let value = table().lanes.value(entry.print, true);
            // No other thread has the words before the model starts.
            let word = cells.load(at);
            let word = table().lanes.with(word, shift, value, generation);
            cells.0[at].store(word, Relaxed);
            all.push((entry, generation));
        }
    }
    (cells, all)
}

/// How many results are "new".
fn new(told: &[Told]) -> usize {
    let is_new = |told: &&Told| matches!(told, Told::New(_) | Told::Marked);
    told.iter().filter(is_new).count()
}

fn has(cells: &Modelled, entry: Entry, now: i64) -> bool {
    let asked = Asked {
        oldest: shape().oldest_for(now),
        full_bins: false,
    };
    table().holds(Isa::best(), cells, &table().spot(entry), &asked)
}

fn add<C: Cells>(cells: &mut C, entry: Entry, clock: &Clock) -> Told {
    table().insert(Isa::best(), cells, &table().spot(entry), clock)
}

/// With at most three preemptions, which covers every pair of steps.
fn check(model: impl Fn() + Sync + Send + 'static) {
    check_with(3, model);
}

fn check_with(switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
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

/// The bug of the first version: a key is added while forgotten keys are removed from its page, in
/// a generation that the remover doesn't know of.
#[test]
fn what_is_added_while_a_page_is_swept_stays() {
    check(|| {
        // Stamps wrap around after eight generations: the old key has the new key's stamp.
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

/// A look-up during a key's move to its second bin finds it in one of the two.
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
        // The first key is the one that moves.
        assert!(other.join().unwrap(), "missed while it moved");
        assert!(full.iter().all(|(entry, _)| has(&cells, *entry, 5)));
        assert!(has(&cells, added, 5));
    });
}

/// Two threads see a forgotten key again, in a later generation: one gets "new", and it is
/// restamped once.
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

/// One thread finds the home bin full, the other removes forgotten keys from it: both add the same key, to
/// different bins.
#[test]
fn a_key_is_told_new_once_while_its_home_bin_is_emptied() {
    check(|| {
        let old = entries(0, 2).take(6).zip([2, 5, 5, 5, 5, 5]);
        let cells = with(&old.collect::<Vec<_>>());
        let key = entries(0, 1).next().unwrap();
        let mut sweeping = cells.clone();
        let other = loom::thread::spawn(move || add(&mut sweeping, key, &clock(6, 6)));
        let told = [
            add(&mut cells.clone(), key, &clock(5, 5)),
            other.join().unwrap(),
        ];
        assert_eq!(new(&told), 1, "{told:?}");
        assert!(has(&cells, key, 7));
    });
}

/// Another key takes an empty slot that one thread saw, and the slot is emptied again; in between, the key went
/// elsewhere.
#[test]
fn a_key_is_told_new_once_though_its_slot_was_taken_meanwhile() {
    check(|| {
        // The second word has a slot that will be forgotten, and an empty one.
        let old = entries(0, 2).take(5).zip([5, 5, 5, 2, 5]);
        let cells = with(&old.collect::<Vec<_>>());
        let another = entries(0, 2).nth(5).unwrap();
        let key = entries(0, 1).next().unwrap();
        let mut adding = cells.clone();
        let other = loom::thread::spawn(move || {
            assert_eq!(add(&mut adding, another, &clock(5, 5)), Told::New(None));
            let told = add(&mut adding, key, &clock(5, 5));
            add(&mut adding, entry(2, 9), &clock(6, 6)); // empties the page
            told
        });
        let told = [
            add(&mut cells.clone(), key, &clock(5, 5)),
            other.join().unwrap(),
        ];
        assert_eq!(new(&told), 1, "{told:?}");
        assert!(has(&cells, key, 7) && has(&cells, another, 7));
    });
}

/// Two threads add one key to bins from which they must first move another key, each thread a
/// different one.
#[test]
fn two_who_make_room_for_one_key_are_told_new_once() {
    check_with(2, || {
        let full = entries(0, 2).take(6).chain(entries(1, 2).take(6));
        let full: Vec<(Entry, i64)> = full.map(|entry| (entry, 5)).collect();
        let key = entries(0, 1).next().unwrap();
        let cells = with(&full);
        let add = |mut cells: Modelled| move || add(&mut cells, key, &clock(5, 5));
        let other = loom::thread::spawn(add(cells.clone()));
        let told = [add(cells.clone())(), other.join().unwrap()];
        assert_eq!(new(&told), 1, "{told:?}");
        assert!(has(&cells, key, 7) && full.iter().all(|(entry, _)| has(&cells, *entry, 7)));
    });
}

/// A moving key is seen again in a later generation, and stays remembered.
#[test]
fn a_key_that_is_seen_again_while_it_moves_stays() {
    check(|| {
        let full = entries(0, 2).take(6).zip([3, 5, 5, 5, 5, 5]);
        let full = full.chain(entries(1, 2).take(6).map(|entry| (entry, 5)));
        let full: Vec<(Entry, i64)> = full.collect();
        let (moves, added) = (full[0].0, entries(0, 1).next().unwrap());
        let cells = with(&full);
        let mut seeing = cells.clone();
        let other = loom::thread::spawn(move || add(&mut seeing, moves, &clock(6, 6)));
        let told = add(&mut cells.clone(), added, &clock(5, 5));
        assert_eq!(new(&[told, other.join().unwrap()]), 2);
        assert!(has(&cells, moves, 8), "forgotten early");
        assert!(has(&cells, added, 7));
    });
}

/// Two threads add one key without room: one of them makes its home bin stand for all.
#[test]
fn two_who_find_no_room_for_one_key_are_told_new_once() {
    check(|| {
        let (cells, there) = with_immovable([[5; 6]; 2]);
        let key = entries(0, 1).next().unwrap();
        let add = |mut cells: Modelled| move || add(&mut cells, key, &clock(5, 5));
        let other = loom::thread::spawn(add(cells.clone()));
        let told = [add(cells.clone())(), other.join().unwrap()];
        assert_eq!(new(&told), 1, "{told:?}");
        assert!(has(&cells, key, 7) && there.iter().all(|(entry, _)| has(&cells, *entry, 7)));
    });
}

/// One thread finds no room and makes the home bin stand for all; the other empties a slot there and adds the
/// same key.
#[test]
fn a_key_is_told_new_once_while_its_bin_comes_to_stand_for_all() {
    for bin in 0..2 {
        check_with(2, move || {
            let mut generations = [[5; 6]; 2];
            generations[bin][4] = 2;
            let (cells, _) = with_immovable(generations);
            let key = entries(0, 1).next().unwrap();
            let mut sweeping = cells.clone();
            let other = loom::thread::spawn(move || add(&mut sweeping, key, &clock(6, 6)));
            let told = [
                add(&mut cells.clone(), key, &clock(5, 5)),
                other.join().unwrap(),
            ];
            assert_eq!(new(&told), 1, "{told:?}");
            assert!(has(&cells, key, 7));
        });
    }
}

/// A look-up finds a key whose slot is being made to stand for all.
#[test]
fn a_key_whose_slot_comes_to_stand_for_all_is_never_missed() {
    check(|| {
        let (cells, there) = with_immovable([[5; 6]; 2]);
        let (looking, replaced) = (cells.clone(), there[0].0);
        let other = loom::thread::spawn(move || has(&looking, replaced, 5));
        let key = entries(0, 1).next().unwrap();
        assert_eq!(add(&mut cells.clone(), key, &clock(5, 5)), Told::Marked);
        assert!(other.join().unwrap(), "missed while its slot was replaced");
    });
}

/// Also, when it is added again, it isn't new.
#[test]
fn a_key_whose_slot_comes_to_stand_for_all_is_not_new() {
    check(|| {
        let (cells, there) = with_immovable([[5; 6]; 2]);
        let (mut adding, replaced) = (cells.clone(), there[0].0);
        let other = loom::thread::spawn(move || add(&mut adding, replaced, &clock(5, 5)));
        let key = entries(0, 1).next().unwrap();
        assert_eq!(add(&mut cells.clone(), key, &clock(5, 5)), Told::Marked);
        assert_eq!(other.join().unwrap(), Told::Seen);
    });
}

/// A key is seen again, in a later generation, while its slot is made to stand for all. That slot must last
/// as long as the key.
#[test]
fn a_bin_stands_for_all_as_long_as_its_newest_key() {
    check(|| {
        let mut generations = [[5; 6]; 2];
        generations[0][0] = 3;
        let (cells, there) = with_immovable(generations);
        let (mut seeing, seen) = (cells.clone(), there[0].0);
        let other = loom::thread::spawn(move || add(&mut seeing, seen, &clock(6, 6)));
        let key = entries(0, 1).next().unwrap();
        assert_eq!(add(&mut cells.clone(), key, &clock(5, 5)), Told::Marked);
        // If that came later, it isn't new, and needn't be remembered longer.
        let is_later = other.join().unwrap() == Told::Seen;
        assert!(is_later || has(&cells, seen, 8), "forgotten early");
    });
}
