//! The line-blocked Bloom filter: the default kind.
//!
//! A key has bits in one to four 64-byte lines, at most one in each of a line's eight 64-bit words.
//! So a line costs one cache miss, and testing it one vector shift. A key's bits are all different,
//! and the rate is a closed form.
//!
//! The lines are divided into equal banks, as many as the lines of a key, which has one line in
//! each. So its lines are all different, too.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
mod ranges;
mod scalar;
mod shape;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(crate) use ranges::Sorted;
pub(crate) use scalar::LINE_WORDS;
pub use shape::BlockedShape;
pub(crate) use shape::{LINE_BITS, MAX_HASHES_PER_LINE, MAX_LINES_PER_KEY, covers};

use crate::hash::Hash;
use crate::kind::Kind;
use crate::raw::explain::{Explanation, Look, all_of, bit};
use crate::raw::isa::{Batch, Isa, Level, prefetch};
use crate::raw::layout::{BLOCK, BitLayout, Creatable, Difference, Layout, Sealed, Timeless};
use crate::raw::word::{SharedWord, Word};
use scalar::Line;

/// Which words of a line lack the key's bit.
#[inline(always)]
fn missing<W: Word>(isa: Isa, line: &Line<W>, lo: u64, cover: u8) -> u8 {
    match isa.level() {
        _ if !W::IS_PLAIN => scalar::missing(line, lo, cover),
        Level::Portable => scalar::missing(line, lo, cover),
        // SAFETY: the level was detected, and a reference to a line is readable.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::missing_avx512(line, lo, cover) },
        // SAFETY: as for AVX-512.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::missing_avx2(line, lo, cover) },
        // SAFETY: a reference to a line is readable.
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => unsafe { aarch64::missing(line, lo, cover) },
    }
}

/// Sets the key's bits in a line and returns whether one was missing.
#[inline(always)]
fn set(isa: Isa, line: &mut Line<u64>, lo: u64, cover: u8) -> bool {
    match isa.level() {
        // SAFETY: the level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::insert_avx512(line, lo, cover) },
        // SAFETY: as for AVX-512.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::insert_avx2(line, lo, cover) },
        // NEON would take as many instructions.
        _ => scalar::insert(line, lo, cover),
    }
}

/// Work on a key's lines, one after the other.
trait Task {
    /// Whether to set bits, or only to look for the first missing one.
    const ADDS: bool;
    /// A line that was looked up, so that it isn't looked up again after prefetching.
    type Found: Copy;
    fn find(&self, line: usize) -> Self::Found;
    fn prefetch(&self, line: Self::Found);
    /// Processes a line and returns whether it lacked a bit of the key.
    fn lacked(&mut self, isa: Isa, line: Self::Found, lo: u64, cover: u8) -> bool;
}

/// Shared lines, and the work on one of them.
struct Beside<'a, W, F, const ADDS: bool>(&'a [Line<W>], F);

impl<'a, W, F, const ADDS: bool> Task for Beside<'a, W, F, ADDS>
where
    F: Fn(Isa, &Line<W>, u64, u8) -> bool,
{
    const ADDS: bool = ADDS;
    type Found = &'a Line<W>;

    #[inline(always)]
    fn find(&self, line: usize) -> Self::Found {
        &self.0[line]
    }

    #[inline(always)]
    fn prefetch(&self, line: Self::Found) {
        prefetch(line);
    }

    #[inline(always)]
    fn lacked(&mut self, isa: Isa, line: Self::Found, lo: u64, cover: u8) -> bool {
        (self.1)(isa, line, lo, cover)
    }
}

/// Looks up the key.
#[inline(always)]
fn ask<W: Word>(words: &[W]) -> impl Task {
    Beside::<_, _, false>(words.as_chunks().0, lacks::<W>)
}

#[inline(always)]
fn lacks<W: Word>(isa: Isa, line: &Line<W>, lo: u64, cover: u8) -> bool {
    missing(isa, line, lo, cover) != 0
}

/// Adds the key while other threads and processes may add; returns whether it was new.
#[inline(always)]
fn add_shared<W: SharedWord>(words: &[W]) -> impl Task {
    Beside::<_, _, true>(words.as_chunks().0, lacked_until_now::<W>)
}

#[inline(always)]
fn lacked_until_now<W: SharedWord>(isa: Isa, line: &Line<W>, lo: u64, cover: u8) -> bool {
    // Skip words that already have the bit: only reading keeps the line shared between cores.
    let mut missing = missing(isa, line, lo, cover);
    let mut lacked = false;
    while missing != 0 {
        let w = missing.trailing_zeros();
        let bit = 1u64 << (lo >> (6 * w) & 63);
        lacked |= line[w as usize].set(bit) & bit == 0;
        missing &= missing - 1;
    }
    lacked
}

/// Adds the key with exclusive access; returns whether it was new.
struct Add<'a>(&'a mut [Line<u64>]);

impl Task for Add<'_> {
    const ADDS: bool = true;
    type Found = usize;

    #[inline(always)]
    fn find(&self, line: usize) -> Self::Found {
        line
    }

    #[inline(always)]
    fn prefetch(&self, line: Self::Found) {
        prefetch(self.0.as_ptr().wrapping_add(line));
    }

    #[inline(always)]
    fn lacked(&mut self, isa: Isa, line: Self::Found, lo: u64, cover: u8) -> bool {
        set(isa, &mut self.0[line], lo, cover)
    }
}

/// One key.
#[inline(always)]
fn one<K: Task>(shape: &BlockedShape, mut task: K, hash: Hash) -> bool {
    let Some(isa) = shape.in_place else {
        return one_by_call(shape, task, hash);
    };
    let (line, cover) = (task.find(shape.line_of(0, hash)), shape.cover(hash.lo));
    task.lacked(isa.into(), line, hash.lo, cover) == K::ADDS
}

/// Not inlined, because it would enlarge callers.
#[inline(never)]
fn one_by_call<K: Task>(shape: &BlockedShape, mut task: K, hash: Hash) -> bool {
    let mut lacked = false;
    for (line, lo) in shape.lines_of(hash) {
        lacked |= task.lacked(shape.isa, task.find(line), lo, shape.cover(lo));
        if lacked && !K::ADDS {
            break;
        }
    }
    lacked == K::ADDS
}

/// Any number of keys.
struct Many<'a, K, H> {
    shape: &'a BlockedShape,
    task: K,
    keys: &'a [H],
    answers: &'a mut [bool],
}

impl<K: Task, H: Copy + Into<Hash>> Batch for Many<'_, K, H> {
    #[inline(always)]
    fn run(self, isa: Isa) {
        match self.shape.lines_per_key() {
            1 => self.visit_the_line(isa),
            _ => self.visit_line_after_line(isa),
        }
    }
}

impl<K: Task, H: Copy + Into<Hash>> Many<'_, K, H> {
    /// Visits a key's line while the lines of the next keys are fetched.
    #[inline(always)]
    fn visit_the_line(self, isa: Isa) {
        let (shape, mut task) = (self.shape, self.task);
        let fetch = |task: &K, key: H| {
            let hash = key.into();
            let line = task.find(shape.line_of(0, hash));
            task.prefetch(line);
            (line, hash.lo)
        };
        let mut fetched = [(task.find(0), 0); BLOCK];
        for (slot, key) in fetched.iter_mut().zip(self.keys) {
            *slot = fetch(&task, *key);
        }
        let mut keys = self.keys.get(BLOCK..).unwrap_or_default().iter();
        for answers in self.answers.chunks_mut(BLOCK) {
            for (answer, slot) in answers.iter_mut().zip(&mut fetched) {
                let (line, lo) = *slot;
                *answer = task.lacked(isa, line, lo, shape.cover(lo)) == K::ADDS;
                if let Some(key) = keys.next() {
                    *slot = fetch(&task, *key);
                }
            }
        }
    }

    /// Fetches a key's next line only if it matters, while other keys' lines are visited.
    #[inline(always)]
    fn visit_line_after_line(self, isa: Isa) {
        let (shape, mut task) = (self.shape, self.task);
        let mut fetched = [(0, Hash::default()); BLOCK];
        let blocks = self.keys.chunks(BLOCK);
        for (keys, answers) in blocks.zip(self.answers.chunks_mut(BLOCK)) {
            for (i, (slot, key)) in fetched.iter_mut().zip(keys).enumerate() {
                *slot = (i, (*key).into());
                task.prefetch(task.find(shape.line_of(0, slot.1)));
            }
            answers.fill(false);
            let mut len = keys.len();
            for nth in 0..shape.lines_per_key() {
                let mut kept = 0;
                for n in 0..len {
                    let (i, hash) = fetched[n];
                    let line = task.find(shape.line_of(nth, hash));
                    let lacked = task.lacked(isa, line, hash.lo, shape.cover(hash.lo));
                    if K::ADDS {
                        answers[i] |= lacked;
                    } else if lacked {
                        continue;
                    }
                    let next = scalar::next(hash);
                    if nth + 1 < shape.lines_per_key() {
                        task.prefetch(task.find(shape.line_of(nth + 1, next)));
                    }
                    fetched[kept] = (i, next);
                    kept += 1;
                }
                len = kept;
            }
            if !K::ADDS {
                (fetched[..len].iter()).for_each(|(i, _)| answers[*i] = true);
            }
        }
    }
}

impl BlockedShape {
    fn many<H: Copy + Into<Hash>>(&self, task: impl Task, keys: &[H], answers: &mut [bool]) {
        self.isa.run(Many {
            shape: self,
            task,
            keys,
            answers,
        });
    }
}

impl Sealed for BlockedShape {}

impl Timeless for BlockedShape {}

impl Creatable for BlockedShape {}

impl Layout for BlockedShape {
    const KIND: Kind = Kind::Blocked;

    #[inline]
    fn body_len(&self) -> u64 {
        BlockedShape::body_len(self)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.hashes_per_line(), other.hashes_per_line());
        Difference::between("lines", self.lines(), other.lines())
            .or_else(|| Difference::between("hashes per line", ours, theirs))
            .or_else(|| {
                Difference::between("lines per key", self.lines_per_key(), other.lines_per_key())
            })
    }

    #[inline(always)]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        one(self, ask(words), hash)
    }

    /// Only the first line: an absent key seldom needs another.
    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        let lines = words.as_chunks::<LINE_WORDS>().0;
        prefetch(lines.as_ptr().wrapping_add(self.line_of(0, hash)));
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        Explanation::of(Look::Cells {
            cells: self.cells(hash, |at| bit(words, at)),
            all: all_of(self.lines() * LINE_BITS, |at| bit(words, at)),
        })
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.many(ask(words), hashes, out);
    }

    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        keys: &[H],
        out: &mut [bool],
    ) {
        self.many(ask(words), keys, out);
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.keys_from_ones(crate::raw::bloom::ones(words))
    }
}

impl BitLayout for BlockedShape {
    #[inline]
    fn insert<W: SharedWord>(&self, words: &[W], hash: Hash) -> bool {
        one(self, add_shared(words), hash)
    }

    #[inline(always)]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        one(self, Add(words.as_chunks_mut().0), hash)
    }

    fn insert_many_shared<W: SharedWord>(&self, words: &[W], hashes: &[Hash], new: &mut [bool]) {
        self.many(add_shared(words), hashes, new);
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.many(Add(words.as_chunks_mut().0), hashes, new);
    }

    fn insert_hashes<H: Copy + Into<Hash>>(&self, words: &mut [u64], keys: &[H], new: &mut [bool]) {
        self.many(Add(words.as_chunks_mut().0), keys, new);
    }
}
