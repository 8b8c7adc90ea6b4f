//! Ribbon: the smallest static filter, a bumped ribbon retrieval table (BuRR).
//!
//! A key stands for one linear equation over bits: the XOR of the table rows that its 64 coefficients choose, from
//! its start row on, is its fingerprint. Solving all equations at once fills the table almost without a gap:
//! rows are `width` bits, and about 1.003 rows serve one key. A key that is not in the set finds its fingerprint
//! with probability 2^-width, exactly.
//!
//! *Bumping* makes the filling possible. A layer gets about 6 % more keys than rows. Rows are cut into buckets of
//! 192; where a bucket's equations have no solution, the keys that start in its first few rows are bumped: they are
//! rehashed and stored in the next, much smaller layer. Two bits a bucket say how many rows are meant. The few keys
//! that fall through all bumping layers go to the last one, which has spare rows and is tried under several seeds.
//!
//! A layer is cut into shards by the top bits of the hash. No equation crosses a shard, so shards are built
//! independently: by all cores, or one after the other from sorted spill files that never fit in memory together.

mod build;
pub(crate) mod compact;
#[cfg(test)]
mod tests;

pub(crate) use build::Builder;

use crate::error::Error;
use crate::hash::{Hash, mix, reduce};
use crate::kind::Kind;
use crate::raw::isa;
use crate::raw::layout::{Difference, Layout, Sealed};
use crate::raw::word::Word;

/// Coefficients of a key, which is also the number of rows in one group of column words.
const RIBBON: u64 = 64;
/// Rows that share one bump code: three groups.
const BUCKET: u64 = 192;
/// Keys that start in the first `BUMP[code]` rows of a bucket are bumped; the last entry is the whole bucket.
const BUMP: [u64; 4] = [0, 20, 44, BUCKET];
/// Two-bit codes in a word.
const CODES: u64 = 32;
/// Rows of a shard, roughly: the ends of a shard waste some 50 rows, and the work of one must fit in a core's cache.
const SHARD: u64 = 1 << 16;
/// Rows of a bumping layer for 1000 keys: the overload that leaves the fewest rows empty.
const ROWS_PER_1000: u64 = 943;
/// Sets smaller than this go straight to the last layer; for them, the ends of a bumping layer would cost more.
const FEW: u64 = 6000;
/// Bumping layers at most. Each leaves about 6 % of its keys.
const LAYERS: usize = 3;
/// Bits of a fingerprint at most.
const MAX_WIDTH: u32 = 32;
/// The body is a multiple of a cache line.
const LINE_WORDS: u64 = 8;

/// Keys located, and their cache lines asked for, before the first of them is tested.
const BLOCK: usize = 32;

/// One layer: `shards` shards of `rows` rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layer {
    shards: u32,
    rows: u32,
    /// Rows of all layers are numbered through; this is where the layer begins.
    first: u64,
}

impl Layer {
    /// The shape of a bumping layer for this many keys.
    fn for_keys(keys: u64, first: u64) -> Option<Self> {
        let rows = keys / 1000 * ROWS_PER_1000 + keys % 1000 * ROWS_PER_1000 / 1000;
        let shards = ((rows + SHARD / 2) / SHARD).max(1);
        let buckets = ((rows / shards + BUCKET / 2) / BUCKET).max(1);
        Some(Self {
            shards: u32::try_from(shards).ok()?,
            rows: (buckets * BUCKET) as u32,
            first,
        })
    }

    /// Where the next layer begins.
    #[inline]
    fn end(&self) -> Option<u64> {
        self.first
            .checked_add(self.shards as u64 * self.rows as u64)
    }

    #[inline(always)]
    fn shard(&self, hash: Hash) -> u64 {
        reduce(hash.hi, self.shards as u64)
    }

    /// The start row, counted from the start of the shard: what the choice of the shard left of the hash decides.
    /// The whole ribbon lies in the shard.
    #[inline(always)]
    fn row_in_shard(&self, hash: Hash) -> u64 {
        let rest = hash.hi.wrapping_mul(self.shards as u64);
        reduce(rest, self.rows as u64 - (RIBBON - 1))
    }

    /// The start row among the rows of all layers.
    #[inline(always)]
    fn row(&self, hash: Hash) -> u64 {
        self.first + self.shard(hash) * self.rows as u64 + self.row_in_shard(hash)
    }
}

/// Bumping layers of these `(shards, rows)`, one behind the other, and where the last one begins. Unused ones are zero
/// and come after the others. `None` for layers that no build makes.
#[inline]
fn layers_of(shapes: [(u32, u32); LAYERS]) -> Option<([Layer; LAYERS], u64)> {
    let mut layers = [Layer::default(); LAYERS];
    let mut first = 0;
    let mut ended = false;
    for (layer, (shards, rows)) in layers.iter_mut().zip(shapes) {
        *layer = Layer {
            shards,
            rows,
            first,
        };
        let absent = shards == 0 && rows == 0;
        // No bucket may reach into another shard, and no ribbon out of one.
        let sound = shards > 0 && rows > 0 && (rows as u64).is_multiple_of(BUCKET);
        if !absent && (!sound || ended) {
            return None;
        }
        ended |= absent;
        first = layer.end()?;
    }
    Some((layers, first))
}

/// Width and layers of a [`Ribbon`](crate::Ribbon) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RibbonShape {
    width: u32,
    /// The seed of the last layer.
    seed: u32,
    /// Unused layers are zero and come after the others.
    layers: [Layer; LAYERS],
    last: Layer,
    /// The bump codes follow the solution.
    codes_at: u64,
    body_words: u64,
}

impl RibbonShape {
    /// Of the empty set.
    pub(crate) const EMPTY: Self = Self {
        width: 1,
        seed: 0,
        layers: [Layer {
            shards: 0,
            rows: 0,
            first: 0,
        }; LAYERS],
        last: Layer {
            shards: 1,
            rows: 0,
            first: 0,
        },
        codes_at: 0,
        body_words: 0,
    };

    /// From what a header holds: `(shards, rows)` of each bumping layer and the rows of the last one.
    /// `None` for a shape that no build makes.
    pub(crate) fn new(
        width: u32,
        seed: u32,
        shapes: [(u32, u32); LAYERS],
        last_rows: u32,
    ) -> Option<Self> {
        let (layers, first) = layers_of(shapes)?;
        let last = Layer {
            shards: 1,
            rows: last_rows,
            first,
        };
        if !(1..=MAX_WIDTH).contains(&width) || !(last_rows as u64).is_multiple_of(RIBBON) {
            return None;
        }
        let codes_at = (last.end()? / RIBBON).checked_mul(width as u64)?;
        let code_words = (first / BUCKET).div_ceil(CODES);
        let body_words = codes_at
            .checked_add(code_words)?
            .checked_next_multiple_of(LINE_WORDS)?;
        Some(Self {
            width,
            seed,
            layers,
            last,
            codes_at,
            body_words,
        })
    }

    /// What a header holds of it, in three words: the shards of the bumping
    /// layers and the groups of 64 rows of the last one, 32 bits each, then
    /// the buckets of a shard of each layer, 16 bits each, width and seed.
    pub(crate) fn encode(&self) -> [u64; 3] {
        let [a, b, c] = self.layers;
        let buckets = |layer: Layer| u64::from(layer.rows) / BUCKET;
        [
            u64::from(a.shards) | u64::from(b.shards) << 32,
            u64::from(c.shards) | (u64::from(self.last.rows) / RIBBON) << 32,
            buckets(a)
                | buckets(b) << 16
                | buckets(c) << 32
                | u64::from(self.width) << 48
                | u64::from(self.seed) << 56,
        ]
    }

    /// The shape of which [`encode`](Self::encode) made these words, or an
    /// error. Every query on a body of its length stays inside it, whatever
    /// the body holds: rows follow from the hash and the shape alone.
    pub(crate) fn decode([one, two, three]: [u64; 3]) -> Result<Self, Error> {
        let rows = |at: u32| (three >> at & 0xFFFF) as u32 * BUCKET as u32;
        let layers = [
            (one as u32, rows(0)),
            ((one >> 32) as u32, rows(16)),
            (two as u32, rows(32)),
        ];
        let width = (three >> 48 & 0xFF) as u32;
        // Far more than any build makes, and no product overflows.
        let last_rows = ((two >> 32) as u32).checked_mul(RIBBON as u32);
        last_rows
            .and_then(|rows| Self::new(width, (three >> 56) as u32, layers, rows))
            .ok_or_else(|| {
                Error::corrupt(
                    "ribbon layers",
                    "layers, a last one and a width that a build makes",
                    format_args!("{one:x} {two:x} {three:x}"),
                )
            })
    }

    /// About the shape that a build for this many keys ends with: how many keys
    /// are bumped is only known then.
    pub(crate) fn expected(keys: u64, width: u32) -> Option<Self> {
        let mut layers = [(0, 0); LAYERS];
        let mut left = keys;
        for layer in &mut layers {
            if left < FEW {
                break;
            }
            let Layer { shards, rows, .. } = Layer::for_keys(left, 0)?;
            *layer = (shards, rows);
            // Nearly every row takes a key.
            let taken = u64::from(shards) * u64::from(rows - 48) * 999 / 1000;
            left = left.saturating_sub(taken);
        }
        Self::new(width, 0, layers, last_rows(left, 0)?)
    }

    /// Bits of a key's fingerprint: the rate is `2^-width`.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Rows of the table; a row is `width` bits.
    pub fn rows(&self) -> u64 {
        self.last.first + u64::from(self.last.rows)
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.body_words * 8
    }
}

/// Rows of the last layer: 1/64 to spare at first, and as much more after
/// every four attempts.
fn last_rows(keys: u64, attempt: u32) -> Option<u32> {
    let spare = (keys.checked_mul(1 + u64::from(attempt) / 4)?).div_ceil(64);
    u32::try_from((keys + spare).next_multiple_of(RIBBON)).ok()
}

/// Another independent hash of the same key, for the next layer. A bijection, so no two keys meet.
#[inline(always)]
fn rehash(hash: Hash, seed: u64) -> Hash {
    let hi = hash.hi ^ mix(hash.lo ^ seed);
    Hash {
        hi,
        lo: hash.lo ^ mix(hi),
    }
}

/// Bit 0 is the start row, so it is always chosen.
#[inline(always)]
fn coefficients(hash: Hash) -> u64 {
    hash.lo | 1
}

#[inline(always)]
fn fingerprint(hash: Hash, width: u32) -> u32 {
    mix(hash.hi ^ hash.lo) as u32 & (u32::MAX >> (32 - width))
}

/// Where the answer for one key lies, and what it must be.
#[derive(Clone, Copy)]
struct Probe {
    /// First word of the group in which the ribbon starts; the next group follows.
    at: usize,
    /// Row within the group.
    shift: u32,
    fingerprint: u32,
    coefficients: u64,
}

impl Probe {
    /// Chooses no row and asks for a fingerprint other than zero.
    const NEVER: Self = Self {
        at: 0,
        shift: 0,
        fingerprint: 1,
        coefficients: 0,
    };

    #[inline(always)]
    fn new(width: u32, row: u64, hash: Hash) -> Self {
        Self {
            at: (row / RIBBON * width as u64) as usize,
            shift: (row % RIBBON) as u32,
            fingerprint: fingerprint(hash, width),
            coefficients: coefficients(hash),
        }
    }
}

/// Finds the layer that holds the key. If none does, the key is not in the set.
/// Reads only bump codes, which are few enough to stay in the cache.
#[inline(always)]
fn locate<W: Word>(shape: &RibbonShape, words: &[W], mut hash: Hash) -> Probe {
    let codes = &words[shape.codes_at as usize..];
    for layer in shape.layers.iter().take_while(|layer| layer.shards > 0) {
        let row = layer.row(hash);
        let bucket = row / BUCKET;
        let code = codes[(bucket / CODES) as usize].get() >> (bucket % CODES * 2) & 3;
        if row % BUCKET >= BUMP[code as usize] {
            return Probe::new(shape.width, row, hash);
        }
        hash = rehash(hash, 0);
    }
    if shape.last.rows == 0 {
        return Probe::NEVER;
    }
    let hash = rehash(hash, shape.seed as u64);
    Probe::new(shape.width, shape.last.row(hash), hash)
}

/// Compares the fingerprint with the parity of the chosen rows, column by column.
#[inline(always)]
fn matches<W: Word>(width: usize, words: &[W], probe: &Probe) -> bool {
    let low = probe.coefficients << probe.shift;
    // In two shifts, so that a ribbon that ends with its group chooses nothing of the next one ...
    let high = probe.coefficients >> 1 >> (63 - probe.shift);
    // ... which may be beyond the table.
    let next = probe.at + width * (probe.shift > 0) as usize;
    let (first, second) = (&words[probe.at..][..width], &words[next..][..width]);
    // Eight columns at a time: no branch inside, and the compiler unrolls it.
    let mut fingerprint = probe.fingerprint;
    let (firsts, seconds) = (first.chunks_exact(8), second.chunks_exact(8));
    let (first_rest, second_rest) = (firsts.remainder(), seconds.remainder());
    for (first, second) in firsts.zip(seconds) {
        let mut found = 0;
        for column in 0..8 {
            found |= parity((first[column].get() & low) ^ (second[column].get() & high)) << column;
        }
        if found != fingerprint & 0xFF {
            return false;
        }
        fingerprint >>= 8;
    }
    let mut found = 0;
    for (column, (first, second)) in first_rest.iter().zip(second_rest).enumerate() {
        found |= parity((first.get() & low) ^ (second.get() & high)) << column;
    }
    found == fingerprint
}

#[inline(always)]
fn parity(bits: u64) -> u32 {
    bits.count_ones() & 1
}

/// Whether the key may be in the set. Never a false no.
#[inline]
fn contains<W: Word>(shape: &RibbonShape, words: &[W], hash: Hash) -> bool {
    !words.is_empty() && matches(shape.width as usize, words, &locate(shape, words, hash))
}

/// `out[i] = contains(hashes[i])`.
fn contains_many<W: Word>(shape: &RibbonShape, words: &[W], hashes: &[Hash], out: &mut [bool]) {
    #[cfg(target_arch = "x86_64")]
    if isa::Isa::best().has(isa::Level::Avx2) {
        // SAFETY: popcnt, bmi1 and bmi2 come with that level.
        return unsafe { contains_many_popcnt(shape, words, hashes, out) };
    }
    contains_many_anywhere(shape, words, hashes, out);
}

/// The same code, compiled with the instruction for parity that baseline x86_64 lacks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn contains_many_popcnt<W: Word>(
    shape: &RibbonShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    contains_many_anywhere(shape, words, hashes, out);
}

#[inline(always)]
fn contains_many_anywhere<W: Word>(
    shape: &RibbonShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    assert_eq!(hashes.len(), out.len(), "one answer for each hash");
    if words.is_empty() {
        return out.fill(false);
    }
    let width = shape.width as usize;
    let mut probes = [Probe::NEVER; BLOCK];
    for (hashes, out) in hashes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        for (probe, &hash) in probes.iter_mut().zip(hashes) {
            *probe = locate(shape, words, hash);
            for word in (0..2 * width).step_by(LINE_WORDS as usize) {
                prefetch(words, probe.at + word);
            }
            prefetch(words, probe.at + 2 * width - 1);
        }
        for (out, probe) in out.iter_mut().zip(&probes) {
            *out = matches(width, words, probe);
        }
    }
}

#[inline(always)]
fn prefetch<W>(words: &[W], at: usize) {
    if let Some(word) = words.get(at) {
        isa::prefetch(word);
    }
}

impl Sealed for RibbonShape {}

impl Layout for RibbonShape {
    const KIND: Kind = Kind::Ribbon;

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("fingerprint width", self.width, other.width)
            .or_else(|| Difference::between("rows", self.rows(), other.rows()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        contains(self, words, hash)
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        contains_many(self, words, hashes, out);
    }

    /// Nearly every row serves a key.
    fn keys_now<W: Word>(&self, _: &[W]) -> f64 {
        self.rows() as f64
    }
}
