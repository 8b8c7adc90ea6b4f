//! Layers, shards and rows: the start of a key's equation.

use crate::error::Error;
use crate::hash::{Hash, reduce};

/// Coefficients of a key; also the number of rows in one group of column words.
pub(super) const RIBBON: u64 = 64;
/// Rows that share one bump code: three groups.
pub(super) const BUCKET: u64 = 192;
/// Keys that start in the first `BUMP[code]` rows of a bucket are bumped; the last entry is the whole bucket.
pub(super) const BUMP: [u64; 4] = [0, 20, 44, BUCKET];
/// Two-bit codes in a word.
pub(super) const CODES: u64 = 32;
/// Approximate rows of a shard: a shard's ends waste some 50 rows, and its build must fit in a core's cache.
const SHARD: u64 = 1 << 16;
/// Rows of a bumping layer for 1000 keys: the overload that leaves the fewest rows empty.
const ROWS_PER_1000: u64 = 943;
/// Smaller sets go straight to the last layer; for them, the ends of a bumping layer would cost more.
pub(super) const FEW: u64 = 6000;
/// The most bumping layers. Each leaves about 6 % of its keys.
pub(super) const LAYERS: usize = 3;
/// The most bits of a fingerprint.
pub(super) const MAX_WIDTH: u32 = 32;
/// The body is a multiple of a cache line.
pub(super) const LINE_WORDS: u64 = 8;

/// One layer: `shards` shards of `rows` rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) shards: u32,
    pub(super) rows: u32,
    /// The layer's first row, in the numbering across all layers.
    pub(super) first: u64,
}

impl Layer {
    /// The shape of a bumping layer for this many keys.
    pub(super) fn for_keys(keys: u64, first: u64) -> Option<Self> {
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
    pub(super) fn end(&self) -> Option<u64> {
        self.first
            .checked_add(self.shards as u64 * self.rows as u64)
    }

    #[inline(always)]
    pub(super) fn shard(&self, hash: Hash) -> u64 {
        reduce(hash.hi, self.shards as u64)
    }

    /// The start row within the shard, from the bits of the hash that didn't choose the shard. The whole ribbon
    /// is within the shard.
    #[inline(always)]
    pub(super) fn row_in_shard(&self, hash: Hash) -> u64 {
        let rest = hash.hi.wrapping_mul(self.shards as u64);
        reduce(rest, self.rows as u64 - (RIBBON - 1))
    }

    /// The start row in the numbering across all layers.
    #[inline(always)]
    pub(super) fn row(&self, hash: Hash) -> u64 {
        self.first + self.shard(hash) * self.rows as u64 + self.row_in_shard(hash)
    }
}

/// Consecutive bumping layers of these `(shards, rows)`, and where the last layer starts. Unused ones are zero and
/// come after the others. `None` for layers that no build makes.
#[inline]
pub(super) fn layers_of(shapes: [(u32, u32); LAYERS]) -> Option<([Layer; LAYERS], u64)> {
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
        // No bucket may extend into another shard, and no ribbon out of its shard.
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
    pub(super) width: u32,
    /// The seed of the last layer.
    pub(super) seed: u32,
    /// Unused layers are zero and come after the others.
    pub(super) layers: [Layer; LAYERS],
    pub(super) last: Layer,
    /// The bump codes follow the solution.
    pub(super) codes_at: u64,
    pub(super) body_words: u64,
}

impl RibbonShape {
    /// The shape of the empty set.
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

    /// From the numbers in a header: `(shards, rows)` of each bumping layer and the rows of the last
    /// one. `None` for a shape that no build makes.
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

    /// The header's three words: the shards of the bumping layers and the groups of 64 rows of the
    /// last one, 32 bits each, then the buckets of a shard of each layer, 16 bits each, width and
    /// seed.
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

    /// The shape that [`encode`](Self::encode) turned into these words, or an error. Queries on a
    /// body of its length never leave the body, whatever it holds: rows follow only from the hash
    /// and the shape.
    pub(crate) fn decode([one, two, three]: [u64; 3]) -> Result<Self, Error> {
        let rows = |at: u32| (three >> at & 0xFFFF) as u32 * BUCKET as u32;
        let layers = [
            (one as u32, rows(0)),
            ((one >> 32) as u32, rows(16)),
            (two as u32, rows(32)),
        ];
        let width = (three >> 48 & 0xFF) as u32;
        // Far more than any build makes, and products don't overflow.
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

    /// The approximate shape that building with this many keys gives; the exact one depends on how
    /// many keys are bumped.
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

/// Rows of the last layer: 1/64 to spare at first, and another 1/64 after every four attempts.
pub(super) fn last_rows(keys: u64, attempt: u32) -> Option<u32> {
    let spare = (keys.checked_mul(1 + u64::from(attempt) / 4)?).div_ceil(64);
    u32::try_from((keys + spare).next_multiple_of(RIBBON)).ok()
}
