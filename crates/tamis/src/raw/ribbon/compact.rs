//! Ribbon tables of minimal size, for the thousands of entries in an index.
//!
//! A [`Ribbon`](crate::Ribbon) filter is padded to groups and cache lines, which is negligible for a million keys but
//! most of it for ten. Here the last layer has any number of rows, and its last group is cut to fit. A set of fewer
//! keys than a ribbon's length is a small dense system with as many rows as keys.
//!
//! The rate needn't be a power of two. A group may omit a solved column if look-ups of the keys that start there
//! compare one bit less: no other key's equation has a row of that group before its own first. So the first groups
//! are *narrow*, as many as the rate allows.

use super::build::{Builder, last_layer, too_many};
use super::shape::{BUCKET, BUMP, CODES, LAYERS, LINE_WORDS, Layer, MAX_WIDTH, RIBBON, layers_of};
use super::{Probe, coefficients, fingerprint, matches, parity, prefetch, rehash};
use crate::error::Error;
use crate::hash::Hash;
use crate::raw::word::Word;
use std::sync::atomic::AtomicU64;

/// Bits of a fingerprint: `bits`, or one less for at most a share `narrow / 2^16` of all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    pub(crate) bits: u32,
    pub(crate) narrow: u16,
}

impl Width {
    pub(crate) fn new(bits: u32, narrow: u16) -> Option<Self> {
        // At least one bit must always be compared.
        let sound = (1..=MAX_WIDTH).contains(&bits) && (bits > 1 || narrow == 0);
        sound.then_some(Self { bits, narrow })
    }
}

/// The layers of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactShape {
    layers: [Layer; LAYERS],
    /// With any number of rows.
    last: Layer,
    seed: u32,
}

/// The widths of a shape's fields in its two words, lowest first.
const FIELDS: [[u32; 4]; 2] = [[24, 10, 20, 10], [16, 10, 6, 32]];

impl CompactShape {
    #[inline]
    fn new(shapes: [(u32, u32); LAYERS], last_rows: u32, seed: u32) -> Option<Self> {
        let (layers, first) = layers_of(shapes)?;
        Some(Self {
            layers,
            last: Layer {
                shards: 1,
                rows: last_rows,
                first,
            },
            seed,
        })
    }

    /// Two words; `None` for far more keys than fit in a machine.
    fn encode(&self) -> Option<[u64; 2]> {
        let [a, b, c] = self
            .layers
            .map(|layer| [layer.shards, layer.rows / BUCKET as u32]);
        let [e, f] = [self.seed, self.last.rows];
        let pack = |fields: [u32; 4], widths: [u32; 4]| {
            let mut word = 0;
            let mut at = 0;
            for (field, width) in fields.into_iter().zip(widths) {
                if u64::from(field) >> width != 0 {
                    return None;
                }
                word |= u64::from(field) << at;
                at += width;
            }
            Some(word)
        };
        Some([
            pack([a[0], a[1], b[0], b[1]], FIELDS[0])?,
            pack([c[0], c[1], e, f], FIELDS[1])?,
        ])
    }

    /// The shape that [`encode`](Self::encode) turned into these words; `None` for layers that no build
    /// makes.
    #[inline]
    pub(crate) fn decode(words: [u64; 2]) -> Option<Self> {
        let unpack = |mut word: u64, widths: [u32; 4]| {
            widths.map(|width| {
                let field = word & (u64::MAX >> (64 - width));
                word >>= width;
                field as u32
            })
        };
        let [a, a_buckets, b, b_buckets] = unpack(words[0], FIELDS[0]);
        let [c, c_buckets, seed, last_rows] = unpack(words[1], FIELDS[1]);
        let rows = |buckets| buckets * BUCKET as u32;
        let shapes = [
            (a, rows(a_buckets)),
            (b, rows(b_buckets)),
            (c, rows(c_buckets)),
        ];
        Self::new(shapes, last_rows, seed)
    }

    /// The table of this shape and width.
    #[inline]
    pub(crate) fn table(&self, width: Width) -> Table {
        Table {
            shape: *self,
            bits: width.bits,
            codes: (self.last.first / BUCKET).div_ceil(CODES),
            narrow: self.narrow_groups(width),
        }
    }

    /// How many groups omit the last column, so that a key outside the set starts in them at most with the given
    /// probability.
    #[inline]
    fn narrow_groups(&self, width: Width) -> u64 {
        let layer = match self.layers[0].shards {
            0 => self.last,
            _ => self.layers[0],
        };
        let (shards, rows) = (u64::from(layer.shards), u64::from(layer.rows));
        let Some(starts @ 1..) = rows.checked_sub(RIBBON - 1) else {
            return 0;
        };
        let few = (shards * starts * u64::from(width.narrow)) >> 16;
        (few / starts * rows + few % starts) / RIBBON
    }
}

/// The layout of a table's words: bump codes, narrow groups, full groups, and the rest of the last group, whose columns
/// are packed bit by bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    shape: CompactShape,
    bits: u32,
    /// Words of bump codes.
    codes: u64,
    /// Groups without the last column.
    narrow: u64,
}

/// The place of a key's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    row: u64,
    hash: Hash,
}

impl Table {
    /// Groups of 64 rows.
    #[inline]
    fn full_groups(&self) -> u64 {
        (self.shape.last.first + u64::from(self.shape.last.rows)) / RIBBON
    }

    /// Rows of the incomplete group after them.
    #[inline]
    fn rest_rows(&self) -> u32 {
        self.shape.last.rows % RIBBON as u32
    }

    /// The first word of a group.
    #[inline(always)]
    fn at(&self, group: u64) -> u64 {
        self.codes + group * u64::from(self.bits) - group.min(self.narrow)
    }

    /// Its length in words.
    #[inline]
    pub(crate) fn words(&self) -> u64 {
        let rest = u64::from(self.rest_rows()) * u64::from(self.bits);
        self.at(self.full_groups()) + rest.div_ceil(64)
    }

    /// The word with the key's bump code in the first layer, if that layer exists.
    #[inline(always)]
    pub(crate) fn first_code(&self, hash: Hash) -> Option<usize> {
        let layer = self.shape.layers[0];
        (layer.shards > 0).then(|| (layer.row(hash) / BUCKET / CODES) as usize)
    }

    /// Finds the row where the key's answer starts; `None` means that the key isn't in the set.
    #[inline(always)]
    pub(crate) fn locate<W: Word>(&self, words: &[W], hash: Hash) -> Option<Place> {
        self.locate_noting(words, hash, |_| ())
    }

    /// The same; calls `note` with the index of every word that the result depends on.
    #[inline(always)]
    pub(crate) fn locate_noting<W: Word>(
        &self,
        words: &[W],
        mut hash: Hash,
        mut note: impl FnMut(usize),
    ) -> Option<Place> {
        let shape = &self.shape;
        for layer in shape.layers.iter().take_while(|layer| layer.shards > 0) {
            let row = layer.row(hash);
            let bucket = row / BUCKET;
            let at = (bucket / CODES) as usize;
            note(at);
            let code = words[at].get() >> (bucket % CODES * 2) & 3;
            if row % BUCKET >= BUMP[code as usize] {
                return Some(Place { row, hash });
            }
            hash = rehash(hash, 0);
        }
        let hash = rehash(hash, shape.seed.into());
        let row = match shape.last.rows {
            0 => return None,
            // All keys start in the first row.
            rows if u64::from(rows) < RIBBON => shape.last.first,
            _ => shape.last.row(hash),
        };
        Some(Place { row, hash })
    }

    /// Prefetches the words that [`matches`](Self::matches) will read.
    #[inline(always)]
    pub(crate) fn prefetch<W: Word>(&self, words: &[W], place: &Place) {
        let at = self.at(place.row / RIBBON) as usize;
        let columns = 2 * self.bits as usize;
        for word in (0..columns).step_by(LINE_WORDS as usize) {
            prefetch(words, at + word);
        }
        prefetch(words, at + columns - 1);
    }

    /// The words that [`matches`](Self::matches) reads, and perhaps some after them.
    #[inline(always)]
    pub(crate) fn span(&self, place: &Place) -> std::ops::Range<usize> {
        let at = self.at(place.row / RIBBON);
        let end = self.words().min(at + 2 * u64::from(self.bits));
        at as usize..end as usize
    }

    /// Whether the key may be in the set. "No" is always right.
    #[inline(always)]
    pub(crate) fn matches<W: Word>(&self, words: &[W], place: &Place) -> bool {
        let Place { row, hash } = *place;
        let group = row / RIBBON;
        let width = self.bits - u32::from(group < self.narrow);
        let at = self.at(group);
        let probe = Probe {
            at: at as usize,
            shift: (row % RIBBON) as u32,
            fingerprint: fingerprint(hash, width),
            coefficients: coefficients(hash),
        };
        let full = self.full_groups();
        if group + u64::from(probe.shift > 0) < full {
            return matches(width as usize, words, &probe);
        }
        // The last group may be shorter.
        let rows = self.rest_rows();
        let mask = u64::MAX >> (64 - rows);
        let (low, high, rest_at) = if group < full {
            (
                probe.coefficients << probe.shift,
                probe.coefficients >> 1 >> (63 - probe.shift),
                self.at(full),
            )
        } else {
            (0, probe.coefficients, at)
        };
        let mut found = 0;
        for column in 0..width {
            let first = match low {
                0 => 0,
                _ => words[probe.at + column as usize].get() & low,
            };
            let second = field(words, rest_at * 64 + u64::from(column * rows)) & mask & high;
            found |= parity(first ^ second) << column;
        }
        found == probe.fingerprint
    }
}

/// 64 bits starting at this one, or fewer at the end of the words.
#[inline(always)]
fn field<W: Word>(words: &[W], bit: u64) -> u64 {
    let word = |at: usize| words.get(at).map_or(0, Word::get);
    let (at, shift) = ((bit / 64) as usize, bit % 64);
    word(at) >> shift | word(at + 1) << 1 << (63 - shift)
}

/// A finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compact {
    pub(crate) shape: [u64; 2],
    /// Values, independent of the machine's byte order.
    pub(crate) words: Vec<u64>,
}

/// Smaller sets go straight to the last layer. The limit is lower than in a ribbon filter: the last layer of bumped
/// keys costs less here, because its rows aren't rounded up.
const FEW: u64 = 2500;

/// Rows of the last layer at this attempt. Longer systems need more spare rows, so they start with
/// some.
fn rows_for(keys: u64, attempt: u32) -> Option<u32> {
    let spared = attempt + (keys / RIBBON).checked_ilog2().unwrap_or(0);
    u32::try_from(keys + keys * u64::from(spared) / 256).ok()
}

/// The table of these hashes, which must be ascending and distinct, and at least one.
pub(crate) fn build(sorted: &[Hash], width: Width) -> Result<Compact, Error> {
    let done = AtomicU64::new(0);
    let mut builder = Builder::bumping_from(FEW, sorted.len() as u64, width.bits, 1, &done)?;
    builder.feed(sorted);
    builder.finish_layers()?;
    let (band, rows, seed) = last_layer(builder.bumped(), width.bits, rows_for)?;
    let shape = CompactShape::new(builder.shapes(), rows, seed).expect("a sound shape");
    let code = shape
        .encode()
        .ok_or_else(|| too_many(sorted.len() as u64))?;

    let bits = width.bits as usize;
    let mut last = vec![0; rows.div_ceil(RIBBON as u32) as usize * bits];
    band.solve(bits, &mut last);
    let table = shape.table(width);
    let mut words: Vec<u64> = builder.code_words().collect();
    words.reserve_exact(table.words() as usize - words.len());
    let (last, rest) = last.split_at(rows as usize / RIBBON as usize * bits);
    let groups = builder.solution().chunks(bits).chain(last.chunks(bits));
    for (group, columns) in groups.enumerate() {
        let narrow = usize::from((group as u64) < table.narrow);
        let columns = &columns[..bits - narrow];
        words.extend(columns.iter().map(|word| u64::from_le(*word)));
    }
    let begin = words.len();
    words.resize(table.words() as usize, 0);
    for (column, word) in rest.iter().enumerate() {
        let value = u64::from_le(*word);
        let bit = column * table.rest_rows() as usize;
        let (at, shift) = (begin + bit / 64, bit % 64);
        words[at] |= value << shift;
        if let Some(next) = words.get_mut(at + 1) {
            *next |= value >> 1 >> (63 - shift);
        }
    }
    Ok(Compact { shape: code, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::sorted::sorted_distinct;
    use crate::raw::usual_or;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic only")]
    fn the_width_uses_up_the_rate() {
        for i in 1..=5000 {
            for rate in [
                f64::from(i) / 10_000.0,
                f64::from(i) * 1e-8,
                0.5f64.powi(i % 32 + 1),
            ] {
                let width = Width::for_rate(rate).unwrap();
                assert!(width.rate() <= rate, "{rate}: {width:?}");
                assert!(width.rate() > rate * (1.0 - 1e-4), "{rate}: {width:?}");
            }
        }
        for rate in [0.501, 0.75, 0.999, 0.0, f64::NAN] {
            assert!(Width::for_rate(rate).is_err());
        }
    }

    /// Of all rows where a key may start, the share of narrow ones is no larger than promised.
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic only")]
    fn narrow_groups_are_no_more_than_allowed() {
        let shapes = [
            CompactShape::new([(0, 0); 3], 63, 0),
            CompactShape::new([(0, 0); 3], 64, 0),
            CompactShape::new([(0, 0); 3], 1000, 0),
            CompactShape::new([(1, 192), (0, 0), (0, 0)], 40, 0),
            CompactShape::new([(1, 9600), (0, 0), (0, 0)], 640, 0),
            CompactShape::new([(7, 1920), (1, 384), (0, 0)], 640, 0),
        ];
        for shape in shapes.map(|shape| shape.unwrap()) {
            let first = match shape.layers[0].shards {
                0 => shape.last,
                _ => shape.layers[0],
            };
            let per_shard = u64::from(first.rows).saturating_sub(63);
            let starts = (0..u64::from(first.shards)).flat_map(|shard| {
                (0..per_shard).map(move |row| shard * u64::from(first.rows) + row)
            });
            let starts: Vec<u64> = starts.collect();
            for narrow in [0, 1, 300, 20_000, 32_768, 65_535] {
                let table = shape.table(Width { bits: 5, narrow });
                let few = starts.iter().filter(|row| *row / 64 < table.narrow).count() as u64;
                let allowed = starts.len() as u64 * u64::from(narrow);
                assert!(few << 16 <= allowed, "{shape:?}, {narrow}: {few}");
                // Nor much smaller: within one group, which a shard's end may cut.
                let missed = (allowed >> 16) - few;
                assert!(missed <= 64, "{shape:?}, {narrow}: {missed}");
            }
        }
    }

    #[test]
    fn shapes_round_trip() {
        let shapes = [
            ([(0, 0); 3], 0, 0),
            ([(0, 0); 3], u32::MAX, 63),
            ([((1 << 24) - 1, 1023 * 192), (1, 192), (0, 0)], 1, 1),
            (
                [
                    (1, 192),
                    ((1 << 20) - 1, 1023 * 192),
                    ((1 << 16) - 1, 1023 * 192),
                ],
                77,
                5,
            ),
        ];
        for (layers, last, seed) in shapes {
            let shape = CompactShape::new(layers, last, seed).unwrap();
            assert_eq!(CompactShape::decode(shape.encode().unwrap()), Some(shape));
        }
        let too_large = CompactShape::new([(1 << 24, 192), (0, 0), (0, 0)], 1, 0).unwrap();
        assert_eq!(too_large.encode(), None);
        // A layer after a missing one, shards without rows, rows without shards.
        for words in [
            [1 << 34 | 1 << 54, 0],
            [1, 0],
            [1 << 24, 0],
            [0, 1 | 1 << 16],
        ] {
            assert_eq!(CompactShape::decode(words), None, "{words:x?}");
        }
    }

    /// The search leaves only the seed and number of rows that worked; sets for which many attempts fail are found
    /// as well.
    #[test]
    fn every_small_set_is_solved() {
        let width = Width::for_rate(0.2).unwrap();
        for salt in 0..usual_or(300u64, 1) {
            for keys in [1, 2, 3, 17, 63, 64, 65, 90] {
                let hash = |i| Hash::from_u64(salt << 32 | i);
                let sorted = sorted_distinct((0..keys).map(hash).collect(), 1);
                let Compact { shape, words } = build(&sorted, width).unwrap();
                let table = CompactShape::decode(shape).unwrap().table(width);
                assert_eq!(words.len() as u64, table.words());
                let words: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
                for hash in sorted {
                    let place = table.locate(&words, hash).unwrap();
                    assert!(table.matches(&words, &place), "{keys} keys, {salt}");
                }
            }
        }
    }
}
