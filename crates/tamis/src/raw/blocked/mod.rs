//! The line-blocked Bloom filter: the default kind.
//!
//! A key has bits in one to four 64-byte lines, and in each of them at most
//! one bit in each of its eight 64-bit words. So a line costs one cache miss,
//! and testing it one vector shift; two bits of a key are never the same, and
//! the rate is a closed form.
//!
//! The lines are in as many banks, of equal size, as a key has lines; the key
//! has one line in each. So its lines are never the same, either.

pub(crate) mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::kind::Kind;
use crate::raw::isa::{Isa, Level, prefetch};
use crate::raw::layout::{BLOCK, BitLayout, Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Bits of a line.
pub(crate) const LINE_BITS: u32 = 512;
/// Most bits of a key in a line, one in each word.
pub(crate) const MAX_HASHES_PER_LINE: u32 = LINE_WORDS as u32;
/// Most lines of a key.
pub(crate) const MAX_LINES_PER_KEY: u32 = 4;
/// 2^60 bytes: far beyond any machine, and no product below overflows.
const MAX_LINES: u64 = 1 << 54;

/// The words of a line.
pub(crate) type Line<T> = [T; LINE_WORDS];

/// Lines, and bits per key, of a [`Blocked`](crate::Blocked) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedShape {
    lines_per_bank: u64,
    hashes_per_line: u32,
    /// And so many banks.
    lines_per_key: u32,
}

impl BlockedShape {
    /// A shape of exactly these numbers. `lines` is a multiple of
    /// `lines_per_key`.
    ///
    /// ```
    /// use tamis::raw::BlockedShape;
    /// assert!(BlockedShape::new(1_000, 6, 1).is_ok());
    /// assert!(BlockedShape::new(1_000, 9, 1).is_err()); // a line has eight words
    /// assert!(BlockedShape::new(1_000, 6, 3).is_err()); // no three equal banks
    /// ```
    pub fn new(lines: u64, hashes_per_line: u32, lines_per_key: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| {
            Err(Error::Parameter {
                what,
                expected,
                got: got.to_string(),
            })
        };
        if !(1..=MAX_LINES).contains(&lines) {
            return refuse("lines", "1 to 2^54", lines);
        }
        if !(1..=MAX_HASHES_PER_LINE).contains(&hashes_per_line) {
            return refuse("hashes per line", "1 to 8", hashes_per_line.into());
        }
        if !(1..=MAX_LINES_PER_KEY).contains(&lines_per_key) {
            return refuse("lines per key", "1 to 4", lines_per_key.into());
        }
        if !lines.is_multiple_of(lines_per_key.into()) {
            return refuse("lines", "a multiple of the lines per key", lines);
        }
        Ok(Self {
            lines_per_bank: lines / u64::from(lines_per_key),
            hashes_per_line,
            lines_per_key,
        })
    }

    /// The number of 64-byte lines.
    pub const fn lines(&self) -> u64 {
        self.lines_per_bank * self.lines_per_key as u64
    }

    /// How many bits a key sets in each of its lines: 1 to 8.
    pub const fn hashes_per_line(&self) -> u32 {
        self.hashes_per_line
    }

    /// How many lines hold a key's bits: 1 to 4, the more the lower the rate.
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    pub(crate) const fn lines_per_bank(&self) -> u64 {
        self.lines_per_bank
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines() * 64
    }

    /// Calls `each` with the index of each of the key's lines and its bits in
    /// it, as the line's eight little-endian words: what a filter that lives
    /// elsewhere than in memory needs to be asked and added to.
    ///
    /// ```
    /// use tamis::raw::BlockedShape;
    /// use tamis::Hasher;
    /// let shape = BlockedShape::new(1_000, 6, 1)?;
    /// shape.for_each_line(Hasher::default().hash(b"key"), |line, bits| {
    ///     assert!(line < 1_000);
    ///     assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), 6);
    /// });
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn for_each_line(&self, hash: Hash, mut each: impl FnMut(u64, [u64; 8])) {
        for (line, lo) in self.lines_of(hash) {
            each(line as u64, scalar::mask(lo, self.hashes_per_line));
        }
    }

    /// The number of keys, estimated from how many bits are set in all.
    ///
    /// ```
    /// let shape = tamis::raw::BlockedShape::new(1_000, 6, 1)?;
    /// assert_eq!(shape.keys_from_ones(0), 0.0);
    /// assert!((shape.keys_from_ones(60) - 10.0).abs() < 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn keys_from_ones(&self, ones: u64) -> f64 {
        // A key leaves a bit of its bank unset with probability 1 - k/512/lines,
        // whatever the others do.
        let lines = self.lines_per_bank as f64;
        let fill = ones as f64 / (self.lines() as f64 * f64::from(LINE_BITS));
        let share = f64::from(self.hashes_per_line) / f64::from(LINE_BITS) / lines;
        (-fill).ln_1p() / (-share).ln_1p()
    }

    /// The index of the key's line in the bank, whose number is `nth`.
    #[inline(always)]
    fn line_of(&self, nth: u32, hash: Hash) -> usize {
        (u64::from(nth) * self.lines_per_bank + reduce(hash.hi, self.lines_per_bank)) as usize
    }

    /// Asks the memory for all of the key's lines, of which `words` is the first
    /// word.
    #[inline(always)]
    fn prefetch_all<T>(&self, words: *const T, mut hash: Hash) {
        prefetch(words.wrapping_add(self.line_of(0, hash) * LINE_WORDS));
        for nth in 1..self.lines_per_key {
            hash = scalar::next(hash);
            prefetch(words.wrapping_add(self.line_of(nth, hash) * LINE_WORDS));
        }
    }

    /// The key's lines: the index of each, and what the bits in it come from.
    #[inline(always)]
    pub(crate) fn lines_of(self, mut hash: Hash) -> impl Iterator<Item = (usize, u64)> {
        (0..self.lines_per_key).map(move |nth| {
            let line = (self.line_of(nth, hash), hash.lo);
            hash = scalar::next(hash);
            line
        })
    }
}

/// Which words of its line have a bit of the key, one a bit.
#[inline(always)]
pub(crate) const fn cover(lo: u64, k: u32) -> u8 {
    (((1u32 << k) - 1) as u8).rotate_left((lo >> 61) as u32)
}

/// The words of a line.
#[inline(always)]
pub(crate) fn line<T>(words: &[T], index: usize) -> &Line<T> {
    &words.as_chunks().0[index]
}

/// Which words of a line lack the key's bit.
#[inline(always)]
fn missing<W: Word>(isa: Isa, line: &Line<W>, lo: u64, k: u32) -> u8 {
    match isa.level() {
        Level::Portable => scalar::missing(line, lo, k),
        // SAFETY: the level was detected, and a line can be read.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::missing_avx512(line, lo, k) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::missing_avx2(line, lo, k) },
    }
}

/// Sets the key's bits in a line; whether one was missing.
#[inline(always)]
fn set(isa: Isa, line: &mut Line<u64>, lo: u64, k: u32) -> bool {
    match isa.level() {
        Level::Portable => scalar::insert(line, lo, k),
        // SAFETY: the level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::insert_avx512(line, lo, k) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::insert_avx2(line, lo, k) },
    }
}

/// Whether the key has all its bits in the line of one bank.
#[inline(always)]
fn has<W: Word>(isa: Isa, shape: &BlockedShape, words: &[W], nth: u32, hash: Hash) -> bool {
    let line = line(words, shape.line_of(nth, hash));
    missing(isa, line, hash.lo, shape.hashes_per_line) == 0
}

#[inline(always)]
fn contains<W: Word>(isa: Isa, shape: &BlockedShape, words: &[W], hash: Hash) -> bool {
    // Of one line, the answer is not branched upon here: whether the key is
    // there can't be predicted, and the next key need not wait.
    let first = has(isa, shape, words, 0, hash);
    match shape.lines_per_key {
        1 => first,
        _ => first && has_others(isa, shape, words, hash),
    }
}

/// What would make callers large.
#[inline(never)]
fn contains_by_call<W: Word>(isa: Isa, shape: &BlockedShape, words: &[W], hash: Hash) -> bool {
    contains(isa, shape, words, hash)
}

#[inline(never)]
fn insert_by_call(isa: Isa, shape: &BlockedShape, words: &mut [u64], hash: Hash) -> bool {
    insert(isa, shape, words, hash)
}

/// Whether the key has all its bits in its lines behind the first.
#[inline(never)]
fn has_others<W: Word>(isa: Isa, shape: &BlockedShape, words: &[W], mut hash: Hash) -> bool {
    (1..shape.lines_per_key).all(|nth| {
        hash = scalar::next(hash);
        has(isa, shape, words, nth, hash)
    })
}

#[inline(always)]
fn insert(isa: Isa, shape: &BlockedShape, words: &mut [u64], hash: Hash) -> bool {
    let first = insert_in(isa, shape, words, 0, hash);
    match shape.lines_per_key {
        1 => first,
        _ => first | insert_in_others(isa, shape, words, hash),
    }
}

#[inline(always)]
fn insert_in(isa: Isa, shape: &BlockedShape, words: &mut [u64], nth: u32, hash: Hash) -> bool {
    let line = &mut words.as_chunks_mut().0[shape.line_of(nth, hash)];
    set(isa, line, hash.lo, shape.hashes_per_line)
}

/// Sets the key's bits in a line that others access, too; whether one of them
/// was missing until now.
#[inline(always)]
fn insert_shared(isa: Isa, line: &Line<AtomicU64>, lo: u64, k: u32) -> bool {
    // Words that have the bit are left alone: reading keeps the line shared
    // between the cores.
    let mut missing = missing(isa, line, lo, k);
    let mut new = false;
    while missing != 0 {
        let w = missing.trailing_zeros();
        let bit = 1u64 << (lo >> (6 * w) & 63);
        new |= u64::from_le(line[w as usize].fetch_or(bit.to_le(), Relaxed)) & bit == 0;
        missing &= missing - 1;
    }
    new
}

#[inline(never)]
fn insert_in_others(isa: Isa, shape: &BlockedShape, words: &mut [u64], mut hash: Hash) -> bool {
    let mut new = false;
    for nth in 1..shape.lines_per_key {
        hash = scalar::next(hash);
        new |= insert_in(isa, shape, words, nth, hash);
    }
    new
}

/// Keys that are hashed and asked of the memory before they have their turn.
const AHEAD: usize = 64;

/// Calls `work` with what `fetch` made of each key, some time after that.
#[inline(always)]
fn for_each_ahead<H: Copy + Into<Hash>, T: Copy + Default>(
    keys: &[H],
    out: &mut [bool],
    fetch: impl Fn(Hash) -> T,
    mut work: impl FnMut(T) -> bool,
) {
    let mut keys = keys.chunks(AHEAD);
    let mut fill = |fetched: &mut [T; AHEAD]| {
        for (fetched, key) in fetched.iter_mut().zip(keys.next().unwrap_or_default()) {
            *fetched = fetch((*key).into());
        }
    };
    let (now, next) = (&mut [T::default(); AHEAD], &mut [T::default(); AHEAD]);
    let (mut now, mut next) = (now, next);
    fill(now);
    for out in out.chunks_mut(AHEAD) {
        fill(next);
        for (out, fetched) in out.iter_mut().zip(now.iter()) {
            *out = work(*fetched);
        }
        std::mem::swap(&mut now, &mut next);
    }
}

/// Asks any number of keys.
#[inline(always)]
fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
    isa: Isa,
    shape: &BlockedShape,
    words: &[W],
    keys: &[H],
    out: &mut [bool],
) {
    if shape.lines_per_key == 1 {
        let (lines, k) = (words.as_chunks::<LINE_WORDS>().0, shape.hashes_per_line);
        let fetch = |hash: Hash| {
            let line = shape.line_of(0, hash);
            prefetch(lines.as_ptr().wrapping_add(line));
            (line, hash.lo)
        };
        let ask = |(line, lo): (usize, u64)| missing(isa, &lines[line], lo, k) == 0;
        return for_each_ahead(keys, out, fetch, ask);
    }
    // A key's next line is fetched only if the last one did not say "no", and
    // while other keys are asked.
    let mut asked = [(0, Hash::default()); BLOCK];
    for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let mut left = keys.len();
        for ((i, key), asked) in keys.iter().enumerate().zip(&mut asked) {
            *asked = (i, (*key).into());
            shape.prefetch(words, asked.1);
        }
        for nth in 0..shape.lines_per_key {
            let mut kept = 0;
            for n in 0..left {
                let (i, hash) = asked[n];
                if has(isa, shape, words, nth, hash) {
                    let next = scalar::next(hash);
                    if nth + 1 < shape.lines_per_key {
                        prefetch(line(words, shape.line_of(nth + 1, next)));
                    }
                    asked[kept] = (i, next);
                    kept += 1;
                }
            }
            left = kept;
        }
        out.fill(false);
        for (i, _) in &asked[..left] {
            out[*i] = true;
        }
    }
}

/// Adds any number of keys.
#[inline(always)]
fn insert_hashes<H: Copy + Into<Hash>>(
    isa: Isa,
    shape: &BlockedShape,
    words: &mut [u64],
    keys: &[H],
    new: &mut [bool],
) {
    let first = words.as_ptr();
    let fetch = |hash| {
        shape.prefetch_all(first, hash);
        hash
    };
    for_each_ahead(keys, new, fetch, |hash| insert(isa, shape, words, hash));
}

impl Sealed for BlockedShape {}

impl Creatable for BlockedShape {}

impl Layout for BlockedShape {
    const KIND: Kind = Kind::Blocked;

    fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.hashes_per_line, other.hashes_per_line);
        Difference::between("lines", self.lines(), other.lines())
            .or_else(|| Difference::between("hashes per line", ours, theirs))
            .or_else(|| {
                Difference::between("lines per key", self.lines_per_key, other.lines_per_key)
            })
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        let isa = Isa::best();
        match isa.is_inlined() {
            true => contains(isa, self, words, hash),
            false => contains_by_call(isa, self, words, hash),
        }
    }

    /// The first line alone: an absent key seldom needs another.
    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        prefetch(
            words
                .as_ptr()
                .wrapping_add(self.line_of(0, hash) * LINE_WORDS),
        );
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.contains_hashes(words, hashes, out);
    }

    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        hashes: &[H],
        out: &mut [bool],
    ) {
        let isa = Isa::best();
        isa.run(|| contains_hashes(isa, self, words, hashes, out));
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.keys_from_ones(crate::raw::bloom::ones(words))
    }
}

impl BitLayout for BlockedShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let isa = Isa::best();
        let mut new = false;
        for (index, lo) in self.lines_of(hash) {
            new |= insert_shared(isa, line(words, index), lo, self.hashes_per_line);
        }
        new
    }

    #[inline]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        let isa = Isa::best();
        match isa.is_inlined() {
            true => insert(isa, self, words, hash),
            false => insert_by_call(isa, self, words, hash),
        }
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
        let fetch = |hash| {
            self.prefetch_all(words.as_ptr(), hash);
            hash
        };
        for_each_ahead(hashes, new, fetch, |hash| self.insert(words, hash));
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.insert_hashes(words, hashes, new);
    }

    fn insert_hashes<H: Copy + Into<Hash>>(
        &self,
        words: &mut [u64],
        hashes: &[H],
        new: &mut [bool],
    ) {
        let isa = Isa::best();
        isa.run(|| insert_hashes(isa, self, words, hashes, new));
    }
}
