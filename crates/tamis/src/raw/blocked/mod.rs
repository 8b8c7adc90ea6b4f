//! The line-blocked Bloom filter: the default kind.
//!
//! A key has bits in one to four 64-byte lines, and in each of them at most
//! one bit in each of its eight 64-bit words. So a line costs one cache miss,
//! and testing it one vector shift; two bits of a key are never the same, and
//! the rate is a closed form.
//!
//! The lines are in as many banks, of equal size, as a key has lines; the key
//! has one line in each. So its lines are never the same, either.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
pub(crate) mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::kind::Kind;
use crate::raw::isa::{Batch, InPlace, Isa, Level, prefetch};
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
    covers: Covers,
    /// And this many banks.
    lines_per_key: u32,
    /// Of this machine: single keys should not have to look.
    isa: Isa,
    /// A key has one line, and it is tested in place.
    in_place: Option<InPlace>,
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
        let isa = Isa::best();
        Ok(Self {
            lines_per_bank: lines / u64::from(lines_per_key),
            covers: covers(hashes_per_line),
            lines_per_key,
            isa,
            in_place: isa.in_place().filter(|_| lines_per_key == 1),
        })
    }

    /// The number of 64-byte lines.
    pub const fn lines(&self) -> u64 {
        self.lines_per_bank * self.lines_per_key as u64
    }

    /// How many bits a key sets in each of its lines: 1 to 8.
    pub const fn hashes_per_line(&self) -> u32 {
        self.covers[0].count_ones()
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
            each(line as u64, scalar::mask(lo, self.cover(lo)));
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
        let share = f64::from(self.hashes_per_line()) / f64::from(LINE_BITS) / lines;
        (-fill).ln_1p() / (-share).ln_1p()
    }

    /// Which words of its line have a bit of the key, one a bit.
    #[inline(always)]
    fn cover(&self, lo: u64) -> u8 {
        self.covers[(lo >> 61) as usize]
    }

    /// The index of the key's line in the bank, whose number is `nth`.
    #[inline(always)]
    fn line_of(&self, nth: u32, hash: Hash) -> usize {
        (u64::from(nth) * self.lines_per_bank + reduce(hash.hi, self.lines_per_bank)) as usize
    }

    /// Asks the memory for the key's only line, of which `words` is the first
    /// word; its index, and what the bits in it come from.
    #[inline(always)]
    fn fetch<T>(&self, words: *const T, hash: Hash) -> (usize, u64) {
        let line = self.line_of(0, hash);
        prefetch(words.wrapping_add(line * LINE_WORDS));
        (line, hash.lo)
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

/// For each word that may be the first with a bit of a key: which words have
/// one, a bit for each.
pub(crate) type Covers = [u8; LINE_WORDS];

/// Words in a row, around the end.
pub(crate) const fn covers(hashes_per_line: u32) -> Covers {
    let mut covers = [((1u32 << hashes_per_line) - 1) as u8; LINE_WORDS];
    let mut first = 1;
    while first < LINE_WORDS {
        covers[first] = covers[first - 1].rotate_left(1);
        first += 1;
    }
    covers
}

/// The words of a line.
#[inline(always)]
pub(crate) fn line<T>(words: &[T], index: usize) -> &Line<T> {
    &words.as_chunks().0[index]
}

/// Which words of a line lack the key's bit.
#[inline(always)]
fn missing<W: Word>(isa: impl Into<Isa>, line: &Line<W>, lo: u64, cover: u8) -> u8 {
    match isa.into().level() {
        Level::Portable => scalar::missing(line, lo, cover),
        // SAFETY: the level was detected, and a line can be read.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::missing_avx512(line, lo, cover) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::missing_avx2(line, lo, cover) },
        // SAFETY: a line can be read.
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => unsafe { aarch64::missing(line, lo, cover) },
    }
}

/// Sets the key's bits in a line; whether one was missing.
#[inline(always)]
fn set(isa: impl Into<Isa>, line: &mut Line<u64>, lo: u64, cover: u8) -> bool {
    match isa.into().level() {
        Level::Portable => scalar::insert(line, lo, cover),
        // SAFETY: the level was detected.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86_64::insert_avx512(line, lo, cover) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { x86_64::insert_avx2(line, lo, cover) },
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => aarch64::insert(line, lo, cover),
    }
}

/// Whether the key has all its bits in the line of one bank.
#[inline(always)]
fn has<W: Word>(
    isa: impl Into<Isa>,
    shape: &BlockedShape,
    words: &[W],
    nth: u32,
    hash: Hash,
) -> bool {
    let line = line(words, shape.line_of(nth, hash));
    missing(isa, line, hash.lo, shape.cover(hash.lo)) == 0
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
fn contains_by_call<W: Word>(shape: &BlockedShape, words: &[W], hash: Hash) -> bool {
    contains(shape.isa, shape, words, hash)
}

#[inline(never)]
fn insert_by_call(shape: &BlockedShape, words: &mut [u64], hash: Hash) -> bool {
    insert(shape.isa, shape, words, hash)
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
fn insert_in(
    isa: impl Into<Isa>,
    shape: &BlockedShape,
    words: &mut [u64],
    nth: u32,
    hash: Hash,
) -> bool {
    let line = &mut words.as_chunks_mut().0[shape.line_of(nth, hash)];
    set(isa, line, hash.lo, shape.cover(hash.lo))
}

/// Sets the key's bits in a line that others access, too; whether one of them
/// was missing until now.
#[inline(always)]
fn insert_shared(isa: Isa, line: &Line<AtomicU64>, lo: u64, cover: u8) -> bool {
    // Words that have the bit are left alone: reading keeps the line shared
    // between the cores.
    let mut missing = missing(isa, line, lo, cover);
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

/// Asks any number of keys.
struct ContainsHashes<'a, W, H> {
    shape: &'a BlockedShape,
    words: &'a [W],
    keys: &'a [H],
    out: &'a mut [bool],
}

impl<W: Word, H: Copy + Into<Hash>> Batch for ContainsHashes<'_, W, H> {
    #[inline(always)]
    fn run(self, isa: Isa) {
        let Self {
            shape,
            words,
            keys,
            out,
        } = self;
        if shape.lines_per_key == 1 {
            let lines = words.as_chunks::<LINE_WORDS>().0;
            let fetch = |key: H| {
                let hash: Hash = key.into();
                let line = &lines[shape.line_of(0, hash)];
                prefetch(line);
                (line, hash.lo)
            };
            let mut ring = [(&lines[0], 0); BLOCK];
            for (slot, key) in ring.iter_mut().zip(keys) {
                *slot = fetch(*key);
            }
            let mut next = keys.get(BLOCK..).unwrap_or_default().iter();
            for out in out.chunks_mut(BLOCK) {
                for (out, slot) in out.iter_mut().zip(&mut ring) {
                    let (line, lo) = *slot;
                    *out = missing(isa, line, lo, shape.cover(lo)) == 0;
                    if let Some(key) = next.next() {
                        *slot = fetch(*key);
                    }
                }
            }
            return;
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
}

/// Adds any number of keys.
struct InsertHashes<'a, H> {
    shape: &'a BlockedShape,
    words: &'a mut [u64],
    keys: &'a [H],
    new: &'a mut [bool],
}

impl<H: Copy + Into<Hash>> Batch for InsertHashes<'_, H> {
    #[inline(always)]
    fn run(self, isa: Isa) {
        let Self {
            shape,
            words,
            keys,
            new,
        } = self;
        let first = words.as_ptr();
        if shape.lines_per_key == 1 {
            let lines = words.as_chunks_mut::<LINE_WORDS>().0;
            let mut ring = [(0, 0); BLOCK];
            for (slot, key) in ring.iter_mut().zip(keys) {
                *slot = shape.fetch(first, (*key).into());
            }
            let mut next = keys.get(BLOCK..).unwrap_or_default().iter();
            for new in new.chunks_mut(BLOCK) {
                for (new, slot) in new.iter_mut().zip(&mut ring) {
                    let (line, lo) = *slot;
                    *new = set(isa, &mut lines[line], lo, shape.cover(lo));
                    if let Some(key) = next.next() {
                        *slot = shape.fetch(first, (*key).into());
                    }
                }
            }
            return;
        }
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = (*key).into();
                shape.prefetch_all(first, *hash);
            }
            for (new, hash) in new.iter_mut().zip(&hashes) {
                *new = insert(isa, shape, words, *hash);
            }
        }
    }
}

impl Sealed for BlockedShape {}

impl Creatable for BlockedShape {}

impl Layout for BlockedShape {
    const KIND: Kind = Kind::Blocked;

    fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.hashes_per_line(), other.hashes_per_line());
        Difference::between("lines", self.lines(), other.lines())
            .or_else(|| Difference::between("hashes per line", ours, theirs))
            .or_else(|| {
                Difference::between("lines per key", self.lines_per_key, other.lines_per_key)
            })
    }

    #[inline(always)]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        match self.in_place {
            Some(isa) => has(isa, self, words, 0, hash),
            None => contains_by_call(self, words, hash),
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
        keys: &[H],
        out: &mut [bool],
    ) {
        self.isa.run(ContainsHashes {
            shape: self,
            words,
            keys,
            out,
        });
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.keys_from_ones(crate::raw::bloom::ones(words))
    }
}

impl BitLayout for BlockedShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let mut new = false;
        for (index, lo) in self.lines_of(hash) {
            new |= insert_shared(self.isa, line(words, index), lo, self.cover(lo));
        }
        new
    }

    #[inline(always)]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        match self.in_place {
            Some(isa) => insert_in(isa, self, words, 0, hash),
            None => insert_by_call(self, words, hash),
        }
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
        for (hashes, new) in hashes.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            for hash in hashes {
                self.prefetch_all(words.as_ptr(), *hash);
            }
            for (hash, new) in hashes.iter().zip(new) {
                *new = self.insert(words, *hash);
            }
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.insert_hashes(words, hashes, new);
    }

    fn insert_hashes<H: Copy + Into<Hash>>(&self, words: &mut [u64], keys: &[H], new: &mut [bool]) {
        self.isa.run(InsertHashes {
            shape: self,
            words,
            keys,
            new,
        });
    }
}
