//! Filling the table of a ribbon filter.

use super::shape::{
    BUCKET, BUMP, CODES, FEW, LAYERS, LINE_WORDS, Layer, MAX_WIDTH, RIBBON, RibbonShape, last_rows,
};
use super::{coefficients, fingerprint, rehash};
use crate::error::Error;
use crate::kind::Kind;
#[cfg(target_arch = "x86_64")]
use crate::raw::isa;
use crate::raw::roomy::roomy;
use crate::raw::sorted::{Key, for_each, sort, sorted_distinct};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Seeds to try for the last layer, with more and more spare rows.
const ATTEMPTS: u32 = 64;

/// Builds from hashes in ascending order, piece by piece. Holds the table and the bumped keys, about one in
/// 16, but never all keys. Pieces may end anywhere; the table is the same.
pub(crate) struct Builder<'a, K> {
    /// Fewer keys than this go straight to the last layer.
    few: u64,
    width: u32,
    threads: usize,
    layers: Vec<Layer>,
    /// Keys of a shard that the next piece may continue.
    pending: Vec<K>,
    bumped: Vec<K>,
    solution: Vec<u64>,
    codes: Vec<u8>,
    /// Counts finished keys.
    done: &'a AtomicU64,
}

impl<'a, K: Key> Builder<'a, K> {
    /// For `keys` distinct keys, whose number determines the shape.
    pub(crate) fn new(
        keys: u64,
        width: u32,
        threads: usize,
        done: &'a AtomicU64,
    ) -> Result<Self, Error> {
        Self::bumping_from(FEW, keys, width, threads, done)
    }

    /// The same, with bumping layers only from `few` keys on.
    pub(super) fn bumping_from(
        few: u64,
        keys: u64,
        width: u32,
        threads: usize,
        done: &'a AtomicU64,
    ) -> Result<Self, Error> {
        debug_assert!((1..=MAX_WIDTH).contains(&width));
        let (layers, pending, bumped, codes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // Room for all layers, bump codes and padding, because growing would copy the table.
        let rows = keys + keys / 64 + 512;
        let solution =
            roomy((rows / RIBBON * width as u64 + rows / BUCKET / CODES + LINE_WORDS) as usize)?;
        let mut builder = Self {
            few,
            width,
            threads,
            layers,
            pending,
            bumped,
            solution,
            codes,
            done,
        };
        builder.open_layer(keys)?;
        Ok(builder)
    }

    /// Rows so far.
    fn rows(&self) -> u64 {
        self.layers
            .last()
            .map_or(0, |layer| layer.end().expect("fits in memory"))
    }

    /// Starts a bumping layer if there are enough keys for one.
    fn open_layer(&mut self, keys: u64) -> Result<bool, Error> {
        if keys < self.few || self.layers.len() == LAYERS {
            return Ok(false);
        }
        let layer = Layer::for_keys(keys, self.rows()).ok_or_else(|| too_many(keys))?;
        self.layers.push(layer);
        let rows = self.rows();
        self.solution
            .resize((rows / RIBBON) as usize * self.width as usize, 0);
        self.codes.resize((rows / BUCKET) as usize, 0);
        Ok(true)
    }

    /// Takes the next hashes: ascending by `(hi, lo)`, without duplicates, and above all earlier ones.
    pub(crate) fn feed(&mut self, sorted: &[K]) {
        let Some(&layer) = self.layers.last() else {
            return self.bumped.extend_from_slice(sorted);
        };
        let Some(&last) = sorted.last() else { return };
        let open = layer.shard(last.hash());
        let (closed, rest) =
            sorted.split_at(sorted.partition_point(|&hash| layer.shard(hash.hash()) < open));
        let mut pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            self.build_shards(closed);
        } else if layer.shard(pending[0].hash()) < open {
            pending.extend_from_slice(closed);
            self.build_shards(&pending);
            pending.clear();
        }
        pending.extend_from_slice(rest);
        self.pending = pending;
    }

    /// Builds the shards of the current layer that these keys belong to. A shard without keys is already all zero.
    fn build_shards(&mut self, sorted: &[K]) {
        let (Some(&layer), Some(&lowest)) = (self.layers.last(), sorted.first()) else {
            return;
        };
        let mut shards = Vec::new();
        let mut rest = sorted;
        let begin = layer.shard(lowest.hash());
        for shard in begin.. {
            let (keys, higher) =
                rest.split_at(rest.partition_point(|&hash| layer.shard(hash.hash()) <= shard));
            shards.push((keys, Vec::new()));
            rest = higher;
            if rest.is_empty() {
                break;
            }
        }
        let width = self.width as usize;
        let (groups, buckets) = (
            layer.rows as usize / RIBBON as usize,
            layer.rows as usize / BUCKET as usize,
        );
        let solutions =
            self.solution[(layer.first / RIBBON) as usize * width..].chunks_mut(groups * width);
        let codes = self.codes[(layer.first / BUCKET) as usize..].chunks_mut(buckets);
        let mut slots: Vec<_> = shards
            .iter_mut()
            .zip(solutions.zip(codes).skip(begin as usize))
            .collect();
        for_each(self.threads, slots.iter_mut(), |slot| {
            let ((keys, bumped), (solution, codes)) = slot;
            fill(&layer, self.width, keys, codes, bumped).solve(width, solution);
            self.done
                .fetch_add((keys.len() - bumped.len()) as u64, Relaxed);
        });
        for (_, bumped) in &shards {
            self.bumped.extend_from_slice(bumped);
        }
    }

    /// Builds the remaining layers from the bumped keys.
    pub(crate) fn finish(mut self) -> Result<(RibbonShape, Vec<u64>), Error> {
        self.finish_layers()?;
        let (last_rows, seed) = self.build_last_layer()?;
        let shape =
            RibbonShape::new(self.width, seed, self.shapes(), last_rows).expect("a sound shape");
        let codes: Vec<u64> = self.code_words().map(u64::to_le).collect();
        let mut words = self.solution;
        words.extend(codes);
        words.resize(shape.body_words as usize, 0);
        Ok((shape, words))
    }

    /// Builds all layers but the last, and leaves the bumped keys for it.
    pub(super) fn finish_layers(&mut self) -> Result<(), Error> {
        while !self.layers.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.build_shards(&pending);
            self.bumped
                .iter_mut()
                .for_each(|key| *key = key.with_hash(rehash(key.hash(), 0)));
            if !self.open_layer(self.bumped.len() as u64)? {
                break;
            }
            let keys = std::mem::take(&mut self.bumped);
            self.feed(&sorted_distinct(keys, self.threads));
        }
        Ok(())
    }

    /// The keys left for the last layer.
    pub(super) fn bumped(&self) -> &[K] {
        &self.bumped
    }

    /// The rows of all layers but the last.
    pub(super) fn solution(&self) -> &[u64] {
        &self.solution
    }

    /// `(shards, rows)` of each layer.
    pub(super) fn shapes(&self) -> [(u32, u32); LAYERS] {
        std::array::from_fn(|i| {
            self.layers
                .get(i)
                .map_or((0, 0), |layer| (layer.shards, layer.rows))
        })
    }

    /// The bump codes, packed.
    pub(super) fn code_words(&self) -> impl Iterator<Item = u64> {
        self.codes.chunks(CODES as usize).map(|codes| {
            codes
                .iter()
                .rev()
                .fold(0u64, |word, &code| word << 2 | code as u64)
        })
    }

    /// Stores all remaining keys. Returns the number of rows and the seed that worked.
    fn build_last_layer(&mut self) -> Result<(u32, u32), Error> {
        let keys = self.bumped.len() as u64;
        if keys == 0 {
            return Ok((0, 0));
        }
        let (band, rows, seed) = last_layer(&self.bumped, self.width, last_rows)?;
        let (begin, width) = (self.solution.len(), self.width as usize);
        let groups = rows as usize / RIBBON as usize;
        self.solution.resize(begin + groups * width, 0);
        band.solve(width, &mut self.solution[begin..]);
        self.done.fetch_add(keys, Relaxed);
        Ok((rows, seed))
    }
}

/// Stores all of these keys in a last layer of `rows(keys, attempt)` rows. Returns the equations, and the number of
/// rows and the seed that worked.
pub(super) fn last_layer<K: Key>(
    keys: &[K],
    width: u32,
    rows: impl Fn(u64, u32) -> Option<u32>,
) -> Result<(Band, u32, u32), Error> {
    let count = keys.len() as u64;
    for seed in 0..ATTEMPTS {
        let rows = rows(count, seed).ok_or_else(|| too_many(count))?;
        let layer = Layer {
            shards: 1,
            rows,
            first: 0,
        };
        let rehashed = |key: &K| key.with_hash(rehash(key.hash(), seed.into()));
        let mut rehashed: Vec<K> = keys.iter().map(rehashed).collect();
        sort(&mut rehashed);
        let equation = |key| {
            if u64::from(rows) < RIBBON {
                Equation::dense(rows, key, width)
            } else {
                Equation::new(&layer, key, width)
            }
        };
        let equations: Vec<Equation> = rehashed.into_iter().map(equation).collect();
        let mut band = Band::new(rows as usize);
        if band.insert_all(&equations, &mut Vec::new()) {
            return Ok((band, rows, seed));
        }
    }
    Err(Error::Unsolvable { kind: Kind::Ribbon })
}

/// A key's equation, reduced so far.
#[derive(Clone, Copy)]
struct Equation {
    row: usize,
    coefficients: u64,
    fingerprint: u32,
}

impl Equation {
    #[inline(always)]
    fn new<K: Key>(layer: &Layer, key: K, width: u32) -> Self {
        let hash = key.hash();
        Self {
            row: layer.row_in_shard(hash) as usize,
            coefficients: coefficients(hash),
            // For a key that the filter must deny, anything but its fingerprint.
            fingerprint: fingerprint(hash, width) ^ u32::from(key.is_denied()),
        }
    }

    /// For a system with fewer rows than a ribbon's length, in which an equation may choose any
    /// row.
    fn dense<K: Key>(rows: u32, key: K, width: u32) -> Self {
        Self {
            row: 0,
            coefficients: coefficients(key.hash()) & (u64::MAX >> (RIBBON - u64::from(rows))),
            fingerprint: fingerprint(key.hash(), width) ^ u32::from(key.is_denied()),
        }
    }
}

/// Fills a shard of a bumping layer, bucket by bucket, and adds the bumped keys to `bumped`.
///
/// The previous bucket may have used rows near the start of this one. So if not all keys fit, bumps those that start
/// in the first rows, as few as [`BUMP`] allows. The solution depends on the set of inserted keys, not on their
/// order, so each stretch of a bucket is inserted as a whole, the last one first.
fn fill<K: Key>(
    layer: &Layer,
    width: u32,
    sorted: &[K],
    codes: &mut [u8],
    bumped: &mut Vec<K>,
) -> Band {
    let mut band = Band::new(layer.rows as usize);
    let (mut equations, mut taken) = (Vec::new(), Vec::new());
    let mut rest = sorted;
    for (bucket, code) in codes.iter_mut().enumerate() {
        let first = bucket * BUCKET as usize;
        equations.clear();
        // The number of keys that start before the rows of each `BUMP`.
        let mut ends = [0; BUMP.len()];
        for key in rest {
            let equation = Equation::new(layer, *key, width);
            let row = (equation.row - first) as u64;
            if row >= BUCKET {
                break;
            }
            for (end, border) in ends.iter_mut().zip(BUMP) {
                *end += usize::from(row < border);
            }
            equations.push(equation);
        }
        let (keys, others) = rest.split_at(equations.len());
        rest = others;
        for stretch in (1..BUMP.len()).rev() {
            taken.clear();
            if !band.insert_all(&equations[ends[stretch - 1]..ends[stretch]], &mut taken) {
                band.forget(&taken);
                *code = stretch as u8;
                bumped.extend_from_slice(&keys[..ends[stretch]]);
                break;
            }
        }
    }
    band
}

/// The equations of one shard in echelon form: row `i` holds an equation whose first chosen row is
/// `i`.
pub(super) struct Band {
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Default)]
struct Row {
    /// Zero if there is no equation.
    coefficients: u64,
    fingerprint: u32,
}

/// The result of inserting an equation.
enum Inserted {
    At(usize),
    /// It follows from earlier ones.
    Implied,
    /// It contradicts them.
    Failed,
}

/// Equations that are reduced in turn. Each step waits for the previous one, so a core has time for others.
const LANES: usize = 3;

/// Whether there is another equation for a lane.
enum Next {
    Some,
    None,
    Failed,
}

impl Band {
    fn new(rows: usize) -> Self {
        Self {
            rows: vec![Row::default(); rows],
        }
    }

    /// One step of the elimination; `None` if more are needed.
    #[inline(always)]
    fn step(&mut self, equation: &mut Equation) -> Option<Inserted> {
        let row = &mut self.rows[equation.row];
        if row.coefficients == 0 {
            row.coefficients = equation.coefficients;
            row.fingerprint = equation.fingerprint;
            return Some(Inserted::At(equation.row));
        }
        equation.coefficients ^= row.coefficients;
        equation.fingerprint ^= row.fingerprint;
        if equation.coefficients == 0 {
            return Some(if equation.fingerprint == 0 {
                Inserted::Implied
            } else {
                Inserted::Failed
            });
        }
        let skip = equation.coefficients.trailing_zeros();
        equation.coefficients >>= skip;
        equation.row += skip as usize;
        None
    }

    /// Inserts equations and appends the rows that they took; false if they contradict each other or earlier
    /// ones.
    fn insert_all(&mut self, equations: &[Equation], taken: &mut Vec<usize>) -> bool {
        #[cfg(target_arch = "x86_64")]
        if isa::Isa::best().has(isa::Level::Avx2) {
            // SAFETY: bmi1 and bmi2 come with that level.
            return unsafe { self.insert_all_bmi(equations, taken) };
        }
        self.insert_all_anywhere(equations, taken)
    }

    /// With the variable shift instructions that baseline x86_64 lacks.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2")]
    fn insert_all_bmi(&mut self, equations: &[Equation], taken: &mut Vec<usize>) -> bool {
        self.insert_all_anywhere(equations, taken)
    }

    #[inline(always)]
    fn insert_all_anywhere(&mut self, equations: &[Equation], taken: &mut Vec<usize>) -> bool {
        let Some(([a, b, c], mut waiting)) = equations.split_first_chunk::<LANES>() else {
            return self.insert_each(equations, taken);
        };
        // Local copies, so that they stay in registers.
        let (mut a, mut b, mut c) = (*a, *b, *c);
        let mut next = |inserted: Inserted, lane: &mut Equation| {
            match inserted {
                Inserted::At(row) => taken.push(row),
                Inserted::Implied => {}
                Inserted::Failed => return Next::Failed,
            }
            let Some((next, others)) = waiting.split_first() else {
                return Next::None;
            };
            (*lane, waiting) = (*next, others);
            Next::Some
        };
        let left = loop {
            if let Some(inserted) = self.step(&mut a) {
                match next(inserted, &mut a) {
                    Next::Some => {}
                    Next::None => break [b, c],
                    Next::Failed => return false,
                }
            }
            if let Some(inserted) = self.step(&mut b) {
                match next(inserted, &mut b) {
                    Next::Some => {}
                    Next::None => break [a, c],
                    Next::Failed => return false,
                }
            }
            if let Some(inserted) = self.step(&mut c) {
                match next(inserted, &mut c) {
                    Next::Some => {}
                    Next::None => break [a, b],
                    Next::Failed => return false,
                }
            }
        };
        self.insert_each(&left, taken)
    }

    fn insert_each(&mut self, equations: &[Equation], taken: &mut Vec<usize>) -> bool {
        for equation in equations {
            let mut equation = *equation;
            let inserted = loop {
                if let Some(inserted) = self.step(&mut equation) {
                    break inserted;
                }
            };
            match inserted {
                Inserted::At(row) => taken.push(row),
                Inserted::Implied => {}
                Inserted::Failed => return false,
            }
        }
        true
    }

    /// Removes equations. Others are reduced only by earlier ones, so these must be the latest.
    fn forget(&mut self, taken: &[usize]) {
        for row in taken {
            self.rows[*row] = Row::default();
        }
    }

    /// Back substitution, from the last row to the first. Rows without an equation become zero.
    pub(super) fn solve(&self, width: usize, solution: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if isa::Isa::best().has(isa::Level::Avx2) {
            // SAFETY: the instruction comes with that level.
            return unsafe { self.solve_popcnt(width, solution) };
        }
        self.solve_anywhere(width, solution);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn solve_popcnt(&self, width: usize, solution: &mut [u64]) {
        self.solve_anywhere(width, solution);
    }

    #[inline(always)]
    fn solve_anywhere(&self, width: usize, solution: &mut [u64]) {
        // For each column, 64 rows starting at the current one, which is bit 0.
        let mut window = [0u64; 32];
        let window = &mut window[..width];
        let rows = self.rows.chunks(RIBBON as usize);
        for (group, rows) in solution.chunks_mut(width).zip(rows).rev() {
            for row in rows.iter().rev() {
                for (column, window) in window.iter_mut().enumerate() {
                    *window <<= 1;
                    let chosen = (*window & row.coefficients).count_ones();
                    *window |= u64::from((chosen ^ row.fingerprint >> column) & 1);
                }
            }
            for (word, window) in group.iter_mut().zip(&*window) {
                *word = window.to_le();
            }
        }
    }
}

pub(super) fn too_many(keys: u64) -> Error {
    Error::parameter("keys", "no more than a ribbon filter can number", keys)
}
