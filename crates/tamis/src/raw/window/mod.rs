//! Filters that forget: a row of blocks, one for each generation, for each
//! group of keys.
//!
//! A generation is a blocked filter, and the blocks that a key has in all of
//! them lie side by side: asking reads one stretch of memory. A block is two to
//! eight runs of two words; the first runs of all generations come first, so that a
//! key that is absent seldom needs more than these.
//!
//! A word holds 60 bits for keys and a tag of 4. A column whose generation is
//! over is given to a new one by a new tag (`head.rs`): from then on all its
//! words are empty, and each is cleared when it is first written to. Because
//! the tag is in the word, clearing and setting is one atomic step, nobody ever
//! waits for anybody, and whoever dies in between leaves nothing behind. Words that
//! nobody writes to are cleaned before their tag comes again, a few rows with
//! each key.

mod apart;
mod bits;
pub(crate) mod head;
pub(crate) mod shape;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use apart::WindowPart;
pub use shape::{Renewal, Span, WindowOptions, WindowShape};

use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::raw::explain::{Cell, Explanation, Joined, Look};
#[cfg(target_arch = "x86_64")]
use crate::raw::isa::Level;
use crate::raw::isa::{Batch, Isa, prefetch};
use crate::raw::layout::{BLOCK, Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use bits::{TAG, key_bits};
use head::{Column, Marks};
use shape::{MAX_COLUMNS, RUN};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rows that are cleaned with each key.
const CLEANED_AT_ONCE: u64 = 2;

/// The moments of many keys: one for all, or one for each.
///
/// ```
/// use tamis::{Moment, Window};
/// use std::time::Duration;
/// let mut seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
/// let hashes = [1u64, 2].map(tamis::Hash::from);
/// let mut new = [false; 2];
/// seen.insert_hashes_at(&hashes, Moment::from_secs(5), &mut new); // one for all
/// let times = [Moment::from_secs(6), Moment::from_secs(90)];
/// seen.insert_hashes_at(&hashes, &times[..], &mut new); // one for each
/// assert_eq!(new, [false, true]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait At: Copy {
    /// The moment of the key of this number.
    fn of(self, number: usize) -> Moment;
    /// Panics unless there is one for each of so many keys.
    #[doc(hidden)]
    fn check(self, keys: usize);
}

impl At for Moment {
    #[inline(always)]
    fn of(self, _: usize) -> Moment {
        self
    }

    #[inline(always)]
    fn check(self, _: usize) {}
}

impl At for &[Moment] {
    #[inline(always)]
    fn of(self, number: usize) -> Moment {
        self[number]
    }

    #[inline(always)]
    fn check(self, keys: usize) {
        assert_eq!(self.len(), keys, "one moment for each key");
    }
}

/// A generation, and which words count for a question about it: kept from key
/// to key, as most have the same.
struct Question {
    generation: i64,
    marks: Marks,
}

impl Question {
    fn new<W: Word>(shape: &WindowShape, words: &[W], generation: i64) -> Self {
        Self {
            generation,
            marks: shape.marks(words, generation),
        }
    }
}

/// Which columns have the key, of those that count: a bit for each.
#[inline(always)]
fn columns<W: Word>(isa: Isa, shape: &WindowShape, words: &[W], hash: Hash, marks: &Marks) -> u64 {
    let row = row(shape, words, hash);
    match first_columns(isa, shape, row, hash, marks) {
        0 => 0,
        found => other_columns(shape, row, hash, marks, found),
    }
}

#[inline(always)]
fn row<'a, W>(shape: &WindowShape, words: &'a [W], hash: Hash) -> &'a [[W; RUN]] {
    let row = &words[shape.row_of(hash)..][..shape.row_words()];
    row.as_chunks::<RUN>().0
}

/// Which columns have the key's bits in their first run.
#[inline(always)]
fn first_columns<W: Word>(
    isa: Isa,
    shape: &WindowShape,
    row: &[[W; RUN]],
    hash: Hash,
    marks: &Marks,
) -> u64 {
    let columns = shape.columns();
    let bits = key_bits(shape, hash.lo, 0);
    #[cfg(target_arch = "x86_64")]
    match isa.level() {
        // SAFETY: the level was detected.
        Level::Avx512 => return unsafe { x86_64::columns_avx512(row, columns, &bits, marks) },
        // SAFETY: the level was detected.
        Level::Avx2 => return unsafe { x86_64::columns_avx2(row, columns, &bits, marks) },
        Level::Portable => {}
    }
    let _ = isa;
    let each = row[..columns].iter().zip(marks).enumerate();
    each.fold(0, |found, (c, (run, mark))| {
        found | u64::from(bits::has(run, &bits, mark[0])) << c
    })
}

/// Which of the columns that were found have the key's bits in all runs.
#[inline(always)]
fn other_columns<W: Word>(
    shape: &WindowShape,
    row: &[[W; RUN]],
    hash: Hash,
    marks: &Marks,
    mut found: u64,
) -> u64 {
    for (nth, runs) in row.chunks_exact(shape.columns()).enumerate().skip(1) {
        let bits = key_bits(shape, hash.lo, nth);
        let mut rest = found;
        while rest != 0 {
            let c = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            found &= !(u64::from(!bits::has(&runs[c], &bits, marks[c][0])) << c);
        }
        if found == 0 {
            break;
        }
    }
    found
}

/// Writes to a row: alone, or beside others.
trait Cells {
    type Word: Word;
    fn words(&self) -> &[Self::Word];
    /// The words as the head is written: always beside others.
    fn head(&mut self) -> &[AtomicU64];
    /// Adds bits to a word that belongs to the column: what else is in it is
    /// kept if it has the column's tag. `None` if the column belongs to another generation by now.
    fn add(&mut self, shape: &WindowShape, word: usize, bits: u64, column: Column) -> Option<bool>;
    fn clean(&mut self, word: usize, stale: impl Fn(u64) -> bool);
}

struct Alone<'a>(&'a mut [u64]);

impl Cells for Alone<'_> {
    type Word = u64;

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.0
    }

    #[inline(always)]
    fn head(&mut self) -> &[AtomicU64] {
        // SAFETY: `AtomicU64` has the layout of `u64`, and the exclusive borrow of the words lasts as
        // long as what is made of it.
        unsafe { &*(std::ptr::from_mut::<[u64]>(self.0) as *const [AtomicU64]) }
    }

    #[inline(always)]
    fn add(&mut self, _: &WindowShape, word: usize, bits: u64, column: Column) -> Option<bool> {
        let word = &mut self.0[word];
        let (lacked, new) = with(u64::from_le(*word), bits, column.mark());
        *word = new.to_le();
        Some(lacked)
    }

    #[inline(always)]
    fn clean(&mut self, word: usize, stale: impl Fn(u64) -> bool) {
        let word = &mut self.0[word];
        if stale(u64::from_le(*word)) {
            *word = 0;
        }
    }
}

struct Beside<'a>(&'a [AtomicU64]);

impl Cells for Beside<'_> {
    type Word = AtomicU64;

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        self.0
    }

    #[inline(always)]
    fn head(&mut self) -> &[AtomicU64] {
        self.0
    }

    #[inline(always)]
    fn add(&mut self, shape: &WindowShape, at: usize, bits: u64, column: Column) -> Option<bool> {
        let word = &self.0[at];
        loop {
            // Read before the column is asked for: if that changes later, so does
            // the word as soon as somebody adds to it, and the exchange fails.
            let old = word.load(std::sync::atomic::Ordering::Acquire);
            let (lacked, new) = with(u64::from_le(old), bits, column.mark());
            if !lacked {
                return Some(false);
            }
            if !shape.is_still(self.0, column) {
                return None;
            }
            if word
                .compare_exchange(
                    old,
                    new.to_le(),
                    std::sync::atomic::Ordering::AcqRel,
                    Relaxed,
                )
                .is_ok()
            {
                return Some(true);
            }
        }
    }

    #[inline(always)]
    fn clean(&mut self, word: usize, stale: impl Fn(u64) -> bool) {
        let word = &self.0[word];
        let old = word.load(Relaxed);
        if stale(u64::from_le(old)) {
            // If it has changed, somebody has cleaned it.
            let _ = word.compare_exchange(old, 0, Relaxed, Relaxed);
        }
    }
}

/// A word with these bits under a mark, and whether it lacked one.
#[inline(always)]
const fn with(old: u64, bits: u64, mark: u64) -> (bool, u64) {
    let kept = if old & TAG == mark { old } else { mark };
    (kept & bits != bits, kept | bits)
}

/// Adds a key to a column; whether it lacked one of its bits, or `None` if the column is not the
/// generation's any more.
#[inline(always)]
fn add<C: Cells>(shape: &WindowShape, cells: &mut C, hash: Hash, column: Column) -> Option<bool> {
    let row = shape.row_of(hash);
    let at = shape.column_of(column.generation);
    let mut lacked = false;
    for nth in 0..shape.block() / RUN {
        let bits = key_bits(shape, hash.lo, nth);
        let first = row + (nth * shape.columns() + at) * RUN;
        for (w, bits) in bits.into_iter().enumerate() {
            lacked |= cells.add(shape, first + w, bits, column)?;
        }
    }
    Some(lacked)
}

/// Asking many keys.
struct Ask<'a, W, A> {
    shape: &'a WindowShape,
    words: &'a [W],
    hashes: &'a [Hash],
    at: A,
    out: &'a mut [bool],
}

/// Keys whose rows are fetched before the first of them is looked at.
const AHEAD: usize = 24;

impl<W: Word, A: Fn(usize) -> i64> Batch for Ask<'_, W, A> {
    /// Keys that are in doubt after their first runs have the others fetched, and are
    /// looked at again after the block.
    #[inline(always)]
    fn run(self, isa: Isa) {
        let (shape, words, hashes) = (self.shape, self.words, self.hashes);
        for hash in hashes.iter().take(AHEAD) {
            shape.prefetch(words, *hash);
        }
        let mut question: Option<Question> = None;
        let mut doubts = [(0, 0); BLOCK];
        let mut len = 0;
        for i in 0..hashes.len() {
            if let Some(next) = hashes.get(i + AHEAD) {
                shape.prefetch(words, *next);
            }
            let generation = (self.at)(i);
            let is_other = question.as_ref().is_none_or(|q| q.generation != generation);
            if (is_other || len == BLOCK)
                && let Some(question) = &question
            {
                settle(shape, words, hashes, question, &doubts[..len], self.out);
                len = 0;
            }
            if is_other {
                question = Some(Question::new(shape, words, generation));
            }
            let Some(question) = &question else { continue };
            let row = row(shape, words, hashes[i]);
            let found = first_columns(isa, shape, row, hashes[i], &question.marks);
            self.out[i] = false;
            // Without a branch, which nothing could predict: without doubts it is the next word,
            // which is about to be there.
            let second = shape.columns() + found.trailing_zeros() as usize % MAX_COLUMNS;
            prefetch(row.as_ptr().wrapping_add(second));
            doubts[len] = (i, found);
            len += usize::from(found != 0);
        }
        if let Some(question) = &question {
            settle(shape, words, hashes, question, &doubts[..len], self.out);
        }
    }
}

/// Looks at the other runs of keys that are in doubt.
#[inline(always)]
fn settle<W: Word>(
    shape: &WindowShape,
    words: &[W],
    hashes: &[Hash],
    question: &Question,
    doubts: &[(usize, u64)],
    out: &mut [bool],
) {
    for &(i, found) in doubts {
        let row = row(shape, words, hashes[i]);
        out[i] = other_columns(shape, row, hashes[i], &question.marks, found) != 0;
    }
}

/// Adding many keys.
struct Add<'a, C, A> {
    shape: &'a WindowShape,
    cells: C,
    hashes: &'a [Hash],
    at: A,
    new: &'a mut [bool],
}

impl<C: Cells, A: At> Batch for Add<'_, C, A> {
    #[inline(always)]
    fn run(mut self, isa: Isa) {
        for hash in self.hashes.iter().take(AHEAD) {
            self.shape.prefetch(self.cells.words(), *hash);
        }
        let mut state = Adding::default();
        for i in 0..self.hashes.len() {
            if let Some(next) = self.hashes.get(i + AHEAD) {
                self.shape.prefetch(self.cells.words(), *next);
                self.shape
                    .prefetch_own(self.cells.words(), *next, state.own);
            }
            let (hash, at) = (self.hashes[i], self.at.of(i));
            self.new[i] = state.insert(isa, self.shape, &mut self.cells, hash, at);
        }
        state.finish(self.shape, &mut self.cells);
    }
}

/// What adding keeps from key to key: their generation, and what is not yet
/// written into the head.
#[derive(Default)]
struct Adding {
    question: Option<Question>,
    /// The moments of the question's generation: a comparison is less than a division.
    begins: i64,
    ends: i64,
    /// Where keys of the question's generation go; none if that is too old.
    column: Option<Column>,
    /// Its number.
    own: usize,
    latest: Option<Moment>,
    added: u64,
}

impl Adding {
    /// Adds a key; whether it is new.
    #[inline(always)]
    fn insert<C: Cells>(
        &mut self,
        isa: Isa,
        shape: &WindowShape,
        cells: &mut C,
        hash: Hash,
        at: Moment,
    ) -> bool {
        let moment = match shape.is_by_keys() {
            true => shape.written_and(cells.words(), self.added),
            false => {
                self.latest = self.latest.max(Some(at));
                at.micros()
            }
        };
        if !(self.begins..self.ends).contains(&moment) {
            self.begin(shape, cells, moment);
        }
        let (Some(question), Some(column)) = (&self.question, self.column) else {
            return true; // too old to be remembered
        };
        let found = columns(isa, shape, cells.words(), hash, &question.marks);
        let own = found >> self.own & 1;
        if own != 0 || (found != 0 && !shape.is_renewed()) {
            return false;
        }
        match add(shape, cells, hash, column) {
            Some(lacked) => {
                self.added += 1;
                clean(shape, cells, CLEANED_AT_ONCE);
                found == 0 && lacked
            }
            // A newer generation has taken the column meanwhile.
            None => {
                (self.begins, self.ends) = (0, 0);
                match shape.is_by_keys() {
                    true => self.insert_again(isa, shape, cells, hash, at),
                    false => found == 0,
                }
            }
        }
    }

    #[cold]
    fn insert_again<C: Cells>(
        &mut self,
        isa: Isa,
        shape: &WindowShape,
        cells: &mut C,
        hash: Hash,
        at: Moment,
    ) -> bool {
        self.insert(isa, shape, cells, hash, at)
    }

    #[cold]
    fn begin<C: Cells>(&mut self, shape: &WindowShape, cells: &mut C, moment: i64) {
        self.finish(shape, cells);
        let step = shape.step() as i64;
        let generation = moment.div_euclid(step);
        self.begins = generation * step;
        self.ends = self.begins + step;
        self.own = shape.column_of(generation);
        let head = cells.head();
        let oldest = shape.newest(head).map(|newest| shape.oldest_for(newest));
        let claimed = match oldest {
            Some(oldest) if generation < oldest => None,
            _ => shape.claim(head, generation),
        };
        self.column = claimed;
        self.question = Some(Question::new(shape, head, generation));
    }

    /// Writes into the head what is not there yet.
    fn finish<C: Cells>(&mut self, shape: &WindowShape, cells: &mut C) {
        let head = cells.head();
        if let Some(latest) = self.latest.take() {
            shape.pass(head, latest);
        }
        if let Some(column) = self.column
            && self.added > 0
        {
            shape.count(head, shape.column_of(column.generation), self.added);
            shape.count_written(head, self.added);
            self.added = 0;
        }
    }
}

/// Cleans rows that are owed: at least `few`.
#[inline(always)]
fn clean<C: Cells>(shape: &WindowShape, cells: &mut C, few: u64) {
    let rows = shape.rows_to_clean(cells.head(), few);
    if !rows.is_empty() {
        clean_rows(shape, cells, rows);
    }
}

fn clean_rows<C: Cells>(shape: &WindowShape, cells: &mut C, rows: std::ops::Range<u64>) {
    let marks: [_; MAX_COLUMNS] = std::array::from_fn(|c| match c < shape.columns() {
        true => shape.column(cells.words(), c).map_or(0, Column::mark),
        false => 0,
    });
    let columns = shape.columns();
    for row in rows {
        let first = shape.head_words() + row as usize * shape.row_words();
        for word in 0..shape.row_words() {
            let mark = marks[word / RUN % columns];
            cells.clean(first + word, |word| word != 0 && word & TAG != mark);
        }
    }
}

impl WindowShape {
    /// The second run of a column, which adding needs.
    #[inline(always)]
    fn prefetch_own<T>(&self, words: &[T], hash: Hash, column: usize) {
        let second = self.row_of(hash) + (self.columns() + column) * RUN;
        prefetch(words.as_ptr().wrapping_add(second));
    }

    /// The generation that a question is about.
    fn asked<W: Word>(&self, words: &[W], at: Moment) -> i64 {
        match self.is_by_keys() {
            true => self.counted_generation(words),
            false => self.generation_of(at),
        }
    }

    #[inline]
    pub(crate) fn contains_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> bool {
        let marks = self.marks(words, self.asked(words, at));
        columns(self.isa, self, words, hash, &marks) != 0
    }

    pub(crate) fn contains_many_at<W: Word>(
        &self,
        words: &[W],
        hashes: &[Hash],
        at: impl At,
        out: &mut [bool],
    ) {
        self.isa.run(Ask {
            shape: self,
            words,
            hashes,
            at: |i| self.asked(words, at.of(i)),
            out,
        });
    }

    pub(crate) fn insert_many(
        &self,
        words: &mut [u64],
        hashes: &[Hash],
        at: impl At,
        new: &mut [bool],
    ) {
        self.isa.run(Add {
            shape: self,
            cells: Alone(words),
            hashes,
            at,
            new,
        });
    }

    pub(crate) fn insert_many_shared(
        &self,
        words: &[AtomicU64],
        hashes: &[Hash],
        at: impl At,
        new: &mut [bool],
    ) {
        self.isa.run(Add {
            shape: self,
            cells: Beside(words),
            hashes,
            at,
            new,
        });
    }

    /// Adds what another window of the same shape remembers. What only one of them
    /// still remembers is remembered no longer than by that one.
    pub(crate) fn unite<W: Word>(&self, words: &[AtomicU64], theirs: &[W]) {
        for c in 0..self.columns() {
            let Some(their) = self.column(theirs, c) else {
                continue;
            };
            let Some(ours) = self.claim(words, their.generation) else {
                continue; // a newer generation of ours
            };
            let runs = self.rows() as usize * self.block() / RUN;
            for run in 0..runs {
                let first = self.head_words() + (run * self.columns() + c) * RUN;
                for (at, word) in (first..).zip(&theirs[first..first + RUN]) {
                    let word = word.get();
                    if word & TAG == their.mark() && word & !TAG != 0 {
                        let _ = Beside(words).add(self, at, word & !TAG, ours);
                    }
                }
            }
            self.count(words, c, self.column_keys(theirs, c));
        }
        self.count_written(words, self.written(theirs));
        if let Some(latest) = self.latest(theirs) {
            self.pass(words, latest);
        }
    }

    /// The columns that count for a question now, oldest generation first.
    pub(crate) fn live<W: Word>(&self, words: &[W]) -> Vec<(usize, Column)> {
        let Some(newest) = self.newest(words) else {
            return Vec::new();
        };
        let oldest = self.oldest_for(newest);
        let each = (0..self.columns()).filter_map(|c| Some((c, self.column(words, c)?)));
        let mut live: Vec<_> = each
            .filter(|(_, column)| column.generation >= oldest)
            .collect();
        live.sort_unstable_by_key(|(_, column)| column.generation);
        live
    }

    /// The chance that a foreign key of this row finds its bits in a column's block.
    pub(crate) fn block_rate<W: Word>(
        &self,
        words: &[W],
        row: u64,
        c: usize,
        column: Column,
    ) -> f64 {
        let len = shape::WORD_BITS / self.slices();
        let row = self.head_words() + row as usize * self.row_words();
        let mut rate = 1.0;
        for nth in 0..self.block() / RUN {
            let first = row + (nth * self.columns() + c) * RUN;
            for word in &words[first..first + RUN] {
                let mut word = word.get();
                if word & TAG != column.mark() {
                    return 0.0;
                }
                for _ in 0..self.slices() {
                    let slice = word & ((1 << len) - 1);
                    rate *= f64::from(slice.count_ones()) / f64::from(len);
                    word >>= len;
                }
            }
        }
        rate
    }

    /// The share of a column's bits that are set.
    pub(crate) fn fill<W: Word>(&self, words: &[W], c: usize, column: Column) -> f64 {
        let runs = self.rows() as usize * self.block() / RUN;
        let mut ones = 0u64;
        for run in 0..runs {
            let first = self.head_words() + (run * self.columns() + c) * RUN;
            for word in &words[first..first + RUN] {
                let word = word.get();
                if word & TAG == column.mark() {
                    ones += u64::from((word & !TAG).count_ones());
                }
            }
        }
        ones as f64 / (runs * RUN) as f64 / f64::from(shape::WORD_BITS)
    }
}

impl Sealed for WindowShape {}

impl Creatable for WindowShape {}

impl Layout for WindowShape {
    const KIND: Kind = Kind::Window;

    fn complete<W: Word>(self, words: &[W]) -> Result<Self, Error> {
        let columns = (0..self.columns()).filter_map(|c| Some((c, self.column(words, c)?)));
        let columns: Vec<_> = columns.collect();
        for &(c, column) in &columns {
            let own = self.column_of(column.generation);
            if own != c {
                let expected = format_args!("in column {own}");
                return Err(Error::corrupt("generation of a window", expected, c));
            }
        }
        // Read after them: writers count before they begin a generation.
        let counted = self.counted_generation(words);
        match columns.iter().map(|(_, column)| column.generation).max() {
            Some(newest) if self.is_by_keys() && newest > counted => {
                let expected = format_args!("at most {counted}, by the keys that were added");
                Err(Error::corrupt("generation of a window", expected, newest))
            }
            _ => Ok(self),
        }
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        let options = |shape: &Self| format!("{:?}", shape.options());
        Difference::between("rows", self.rows(), other.rows())
            .or_else(|| Difference::between("window", options(self), options(other)))
            .or_else(|| Difference::between("words of a block", self.block(), other.block()))
            .or_else(|| Difference::between("bits of a word", self.slices(), other.slices()))
    }

    /// As of the latest moment that was added.
    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        match self.newest(words) {
            None => false,
            Some(newest) => columns(self.isa, self, words, hash, &self.marks(words, newest)) != 0,
        }
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let row = self.row_of(hash);
        let looks = self.live(words).into_iter().map(|(c, column)| {
            let mut cells = Vec::new();
            for nth in 0..self.block() / RUN {
                let first = (nth * self.columns() + c) * RUN;
                for (w, mut bits) in key_bits(self, hash.lo, nth).into_iter().enumerate() {
                    let word = words[row + first + w].get();
                    while bits != 0 {
                        let bit = bits & bits.wrapping_neg();
                        cells.push(Cell {
                            line: Some(((row - self.head_words()) / self.row_words()) as u64),
                            at: (first + w) as u64 * 64 + u64::from(bit.trailing_zeros()),
                            value: u64::from(word & TAG == column.mark() && word & bit != 0),
                        });
                        bits ^= bit;
                    }
                }
            }
            Look::Cells {
                cells,
                all: Vec::new(),
            }
        });
        let mut looks: Vec<Look> = looks.collect();
        if looks.is_empty() {
            looks.push(Look::NOTHING);
        }
        Explanation {
            joined: Joined::Layers,
            looks,
        }
    }

    /// The first run of each block: an absent key seldom needs another.
    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        let row = words.as_ptr().wrapping_add(self.row_of(hash)).cast::<u8>();
        let last = self.columns() * RUN * 8 - 1;
        // Of the usual windows these are all.
        prefetch(row);
        prefetch(row.wrapping_add(last.min(64)));
        prefetch(row.wrapping_add(last.min(128)));
        for byte in (192..=last).step_by(64) {
            prefetch(row.wrapping_add(byte));
        }
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.contains_hashes(words, hashes, out);
    }

    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        keys: &[H],
        out: &mut [bool],
    ) {
        let Some(newest) = self.newest(words) else {
            out.fill(false);
            return;
        };
        let hashes: Vec<Hash> = keys.iter().map(|key| (*key).into()).collect();
        self.isa.run(Ask {
            shape: self,
            words,
            hashes: &hashes,
            at: |_| newest,
            out,
        });
    }

    /// Those counted in the generations that are remembered now.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.counted(words).unwrap_or(0) as f64
    }

    fn counted<W: Word>(&self, words: &[W]) -> Option<u64> {
        let live = self.live(words).into_iter();
        Some(
            live.map(|(c, _)| self.column_keys(words, c))
                .fold(0, u64::saturating_add),
        )
    }
}
