//! Reads the tables of a file according to docs/format.md in the simplest way: from its bytes, bit
//! by bit. Calls nothing in the library.

use std::collections::HashMap;

/// The halves of a hash, the high one first.
pub(crate) type Halves = (u64, u64);

/// How many copies are stored of each fingerprint with its two places, the lower first.
pub(crate) type Entries = HashMap<(u64, [u64; 2]), u64>;

/// A file: the three words of its shape, and its body.
pub(crate) struct Reader<'a> {
    shape: [u64; 3],
    body: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Self {
        Self {
            shape: [56, 64, 72].map(|at| bits(file, at * 8, 64)),
            body: &file[128..],
        }
    }

    /// The lookup of a fuse filter.
    pub(crate) fn fuse(&self, (hi, lo): Halves) -> bool {
        let [blocks, second, _] = self.shape;
        let (window, width, shard_bits) = (second << 32 >> 32, second >> 32 & 255, second >> 40);
        if blocks == 0 {
            return false;
        }
        let shard = if shard_bits == 0 {
            0
        } else {
            hi >> (64 - shard_bits)
        };
        let start = shard * (8 + blocks * width) * 64;
        let near = reduce(hi << shard_bits, 64 * (blocks - 2 * window));
        let m = lo.wrapping_mul(bits(self.body, start, 64));
        let far = near + 64 * window + reduce(m, 64 * window);
        let x = (m.wrapping_mul(64 * window) >> 58 & 63).max(1);
        let y = (m >> 26 & 63).max(1);
        let slots = [near, near ^ x, far, far ^ y];
        let values = slots.map(|slot| bits(self.body, start + 512 + slot * width, width));
        values.iter().fold(0, |sum, value| sum ^ value) == hi % (1 << width)
    }

    /// The lookup of a ribbon filter.
    pub(crate) fn ribbon(&self, (mut hi, mut lo): Halves) -> bool {
        if self.body.is_empty() {
            return false;
        }
        let rehash = |hi: u64, lo: u64, seed: u64| {
            let hi = hi ^ mix(lo ^ seed);
            (hi, lo ^ mix(hi))
        };
        let row = |hi: u64, shards: u64, rows: u64| {
            let rest = hi.wrapping_mul(shards);
            reduce(hi, shards) * rows + reduce(rest, rows - 63)
        };
        let Ribbon {
            layers,
            last_rows,
            width,
            seed,
        } = Ribbon::new(self.shape);
        let bumping: u64 = layers.iter().map(|(shards, rows)| shards * rows).sum();
        let codes_at = (bumping + last_rows) / 64 * width * 64;
        let mut first = 0;
        for (shards, rows) in layers.into_iter().filter(|(shards, _)| *shards > 0) {
            let row = first + row(hi, shards, rows);
            let code = bits(self.body, codes_at + 2 * (row / 192), 2);
            if row % 192 >= [0, 20, 44, 192][code as usize] {
                return self.row_matches(row, width, (hi, lo));
            }
            (hi, lo) = rehash(hi, lo, 0);
            first += shards * rows;
        }
        if last_rows == 0 {
            return false;
        }
        (hi, lo) = rehash(hi, lo, seed);
        self.row_matches(first + row(hi, 1, last_rows), width, (hi, lo))
    }

    fn row_matches(&self, start: u64, width: u64, (hi, lo): Halves) -> bool {
        (0..width).all(|column| {
            let mut sum = 0;
            for row in (0..64)
                .filter(|i| (lo | 1) >> i & 1 == 1)
                .map(|i| start + i)
            {
                sum ^= bits(self.body, (row / 64 * width + column) * 64 + row % 64, 1);
            }
            sum == mix(hi ^ lo) >> column & 1
        })
    }

    /// The lookup of a cascade.
    pub(crate) fn cascade(&self, (hi, lo): Halves) -> bool {
        let shape = |at: u64| [0, 1, 2].map(|i| bits(self.body, (at + i) * 64, 64));
        let (first, second) = (shape(0), shape(3));
        let (one, two) = self.body[64..].split_at(Ribbon::new(first).body_len() as usize);
        assert_eq!(two.len() as u64, Ribbon::new(second).body_len());
        let level = |shape, body| Reader { shape, body };
        level(first, one).ribbon((hi, lo))
            && level(second, two).ribbon((hi, mix(lo ^ 0x243F_6A88_85A3_08D3)))
    }

    /// The lookup of a window, as of the latest moment added.
    pub(crate) fn in_window(&self, (hi, lo): Halves) -> bool {
        const LOADS: [(u64, u64); 6] = [
            (6, 208),
            (8, 218),
            (12, 230),
            (16, 236),
            (24, 245),
            (32, 248),
        ];
        const WIDTHS: [u64; 4] = [16, 21, 32, 64];
        let [mut bins, second, span] = self.shape;
        let [generations, width, mut words, tables] =
            [0, 8, 16, 24].map(|shift| second >> shift & 255);
        let by_keys = second >> 32 & 1 == 1;
        let word = |at: u64| bits(self.body, at * 64, 64);
        let load = |slots| LOADS.iter().find(|(size, _)| *size == slots).unwrap().1;
        let step = span.div_ceil(generations);
        let in_span = span.div_ceil(step);
        let kept = in_span + 2;
        let s = (0..).find(|s| 1 << s >= kept + (kept / 2).max(4)).unwrap();
        let newest = match (by_keys, word(0)) {
            (true, _) => (word(1).min(1 << 57) / step) as i64,
            (false, 0) => return false,
            (false, latest) => ((latest ^ 1 << 63) as i64).div_euclid(step as i64),
        };
        let mut at = 8;
        let first = 64 / WIDTHS[width as usize] * words;
        let room = bins * first * load(first) / 256;
        (0..tables).any(|table| {
            let width = (width + table).min(3);
            let lane = WIDTHS[width as usize];
            if table > 0 {
                words = if width == 3 { 8 } else { 4 };
                let slots = 64 / lane * words;
                bins = ((room << table) * 256).div_ceil(slots * load(slots)).max(2);
            }
            let epochs = at + (1u64 << s).next_multiple_of(8);
            let start = epochs + (bins * words).div_ceil(4096).next_multiple_of(8);
            at = start + (bins * words).next_multiple_of(8);
            let low = lane - s;
            let print = 1 + reduce(lo, (1 << (low - 1)) - 1);
            let home = reduce(hi, bins);
            let next = home + 1 + reduce(print.wrapping_mul(0x9E37_79B9_7F4A_7C15), bins - 1);
            [(home, 0), (next % bins, 1)]
                .into_iter()
                .any(|(bin, place)| {
                    let epoch = word(epochs + bin * words / 4096);
                    (0..words * (64 / lane)).any(|slot| {
                        let place_of = (start + bin * words + slot / (64 / lane)) * 64;
                        let slot = bits(self.body, place_of + slot % (64 / lane) * lane, lane);
                        let (stamp, value) = (slot >> low, slot & ((1 << low) - 1));
                        let epoch = (epoch % (1 << 61)) as i64 - (1 << 60);
                        let generation = epoch - (epoch - stamp as i64).rem_euclid(1 << s);
                        let is_it = value == print | place << (low - 1);
                        (is_it || word(2) != 0 && value == 1 << (low - 1))
                            && generation >= newest - in_span as i64
                    })
                })
        })
    }

    /// The fingerprint and the places of a key in a cuckoo filter.
    pub(crate) fn entry(&self, (hi, lo): Halves) -> (u64, [u64; 2]) {
        let fingerprint = 1 + reduce(mix(lo), self.fingerprints());
        self.pair(fingerprint, reduce(hi, self.places()))
    }

    /// How many fingerprints a cuckoo filter has.
    pub(crate) fn fingerprints(&self) -> u64 {
        ((1 << (self.shape[1] >> 32)) - 1) / self.window()
    }

    /// How many places a cuckoo filter has.
    pub(crate) fn places(&self) -> u64 {
        self.shape[0] - self.window() + 1
    }

    /// The slots of a place of a cuckoo filter.
    pub(crate) fn window(&self) -> u64 {
        self.shape[1] << 32 >> 32
    }

    fn pair(&self, fingerprint: u64, place: u64) -> (u64, [u64; 2]) {
        let places = self.places();
        let sum = reduce(mix(mix(fingerprint)), places);
        let other = (sum + places - place) % places;
        (fingerprint, [place.min(other), place.max(other)])
    }

    /// The entries in the slots of a cuckoo filter. Nothing may follow the last slot.
    pub(crate) fn entries(&self) -> Entries {
        let (slots, width) = (self.shape[0], self.shape[1] >> 32);
        let mut entries = Entries::new();
        for slot in 0..slots {
            let value = bits(self.body, slot * width, width);
            if value > 0 {
                let position = (value - 1) / self.fingerprints();
                assert!(position < self.window(), "slot {slot} holds {value}");
                let fingerprint = value - position * self.fingerprints();
                *entries
                    .entry(self.pair(fingerprint, slot - position))
                    .or_default() += 1;
            }
        }
        let rest = (slots * width..self.body.len() as u64 * 8).map(|bit| bits(self.body, bit, 1));
        assert_eq!(rest.sum::<u64>(), 0, "bits after the last slot");
        entries
    }
}

/// The shape of a ribbon table.
struct Ribbon {
    /// Shards of each bumping layer, and the rows of a shard.
    layers: [(u64, u64); 3],
    last_rows: u64,
    width: u64,
    seed: u64,
}

impl Ribbon {
    fn new([one, two, three]: [u64; 3]) -> Self {
        let rows = |at: u32| 192 * (three >> at & 0xFFFF);
        Self {
            layers: [
                (one << 32 >> 32, rows(0)),
                (one >> 32, rows(16)),
                (two << 32 >> 32, rows(32)),
            ],
            last_rows: 64 * (two >> 32),
            width: three >> 48 & 255,
            seed: three >> 56,
        }
    }

    fn body_len(&self) -> u64 {
        let bumping: u64 = self.layers.iter().map(|(shards, rows)| shards * rows).sum();
        let solution = (bumping + self.last_rows) / 64 * self.width;
        (solution + (bumping / 192).div_ceil(32)).next_multiple_of(8) * 8
    }
}

/// `len` bits starting at `start`; bit 0 is the lowest of byte 0.
fn bits(bytes: &[u8], start: u64, len: u64) -> u64 {
    (0..len).fold(0, |value, i| {
        let bit = start + i;
        value | u64::from(bytes[(bit / 8) as usize] >> (bit % 8) & 1) << i
    })
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

fn reduce(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}
