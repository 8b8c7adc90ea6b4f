//! Near-duplicates: MinHash values in bands, each of which is a key of a filter (as in LSHBloom, arXiv 2411.04257).
//!
//! A document is the set of its shingles of 5 words. Two documents that share more of them than a threshold are likely
//! to agree in at least one band. No pairs are compared, and no graph is kept.
//! likely to agree in one band at least. No pair is compared and no graph is kept.

use crate::words::Words;
use tamis::{Hash, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// Words per shingle. A shorter document is a single shingle.
const SHINGLE: usize = 5;
/// The most MinHash values of a document.
const VALUES: usize = 128;
/// Steps of numerical integration.
const STEPS: usize = 1000;

/// The number of bands, and of MinHash values in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands {
    bands: usize,
    rows: usize,
}

impl Bands {
    /// The bands with the smallest sum of [error rates](Self::errors), using at most 128 values.
    ///
    /// ```
    /// use tamis_corpus::near::Bands;
    /// let bands = Bands::for_threshold(0.8);
    /// assert_eq!((bands.bands(), bands.rows()), (9, 13));
    /// assert!(bands.chance(0.95) > 0.99);
    /// ```
    pub fn for_threshold(threshold: f64) -> Self {
        let all = (1..=VALUES)
            .flat_map(|bands| (1..=VALUES / bands).map(move |rows| Self { bands, rows }));
        let sum = |bands: &Self| {
            let (wrong, missed) = bands.errors(threshold);
            wrong + missed
        };
        all.min_by(|a, b| sum(a).total_cmp(&sum(b)))
            .expect("there is at least one")
    }

    /// The number of bands per document.
    pub const fn bands(&self) -> usize {
        self.bands
    }

    /// The number of values per band.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The probability that two documents with this share of common shingles agree in a band.
    pub fn chance(&self, likeness: f64) -> f64 {
        1.0 - (1.0 - likeness.powi(self.rows as i32)).powi(self.bands as i32)
    }

    /// For pairs with uniformly distributed likeness: the share that is found though below the threshold, and the share
    /// that is missed though above it.
    pub fn errors(&self, threshold: f64) -> (f64, f64) {
        let below = integral(0.0, threshold, |likeness| self.chance(likeness));
        let above = integral(threshold, 1.0, |likeness| 1.0 - self.chance(likeness));
        (below, above)
    }
}

fn integral(from: f64, to: f64, value: impl Fn(f64) -> f64) -> f64 {
    let width = (to - from) / STEPS as f64;
    let middles = (0..STEPS).map(|step| from + (step as f64 + 0.5) * width);
    middles.map(value).sum::<f64>() * width
}

/// Makes the keys of documents.
#[derive(Debug)]
pub struct MinHash {
    bands: Bands,
    factors: Vec<u64>,
    offsets: Vec<u64>,
    least: Vec<u32>,
    key: Vec<u8>,
}

impl MinHash {
    /// MinHash for these bands. The hash functions are the same in every run, because filters outlive runs.
    pub fn new(bands: Bands) -> Self {
        let values = bands.bands * bands.rows;
        let drawn = |value: usize, part: u8| {
            let mut bytes = (value as u64).to_le_bytes().to_vec();
            bytes.push(part);
            xxh3_64(&bytes)
        };
        Self {
            bands,
            factors: (0..values).map(|at| drawn(at, 0) | 1).collect(),
            offsets: (0..values).map(|at| drawn(at, 1)).collect(),
            least: vec![0; values],
            key: Vec::new(),
        }
    }

    /// Appends one hash per band; none for a text without words.
    ///
    /// ```
    /// use tamis::Hasher;
    /// use tamis_corpus::fold::Fold;
    /// use tamis_corpus::near::{Bands, MinHash};
    /// use tamis_corpus::words::Words;
    /// let mut words = Words::default();
    /// words.take("A text of some more words than five", Fold::default());
    /// let mut keys = Vec::new();
    /// MinHash::new(Bands::for_threshold(0.8)).keys(&words, &Hasher::default(), &mut keys);
    /// assert_eq!(keys.len(), 9);
    /// ```
    pub fn keys(&mut self, words: &Words, hasher: &Hasher, keys: &mut Vec<Hash>) {
        if words.is_empty() {
            return;
        }
        self.least.fill(u32::MAX);
        let length = words.len().min(SHINGLE);
        for at in 0..=words.len() - length {
            self.add(xxh3_64(words.ngram(at, length).as_bytes()));
        }
        for (band, values) in self.least.chunks_exact(self.bands.rows).enumerate() {
            self.key.clear();
            self.key.push(band as u8);
            for value in values {
                self.key.extend_from_slice(&value.to_le_bytes());
            }
            keys.push(hasher.hash_exact(&self.key));
        }
    }

    /// Multiply-shift from 32 to 32 bits with a 64-bit factor, which is strongly universal and which compilers
    /// vectorise.
    fn add(&mut self, shingle: u64) {
        let shingle = shingle >> 32;
        let functions = self.factors.iter().zip(&self.offsets);
        for (least, (factor, offset)) in self.least.iter_mut().zip(functions) {
            let value = factor.wrapping_mul(shingle).wrapping_add(*offset);
            *least = (*least).min((value >> 32) as u32);
        }
    }

    /// The share of values that two documents have in common estimates their share of common shingles.
    #[cfg(test)]
    fn values(&self) -> &[u32] {
        &self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::Fold;

    #[test]
    fn bands_are_those_of_the_least_error() {
        // The values of datasketch's MinHashLSH with 128 permutations and equal weights.
        for (threshold, expected) in [(0.5, (25, 5)), (0.8, (9, 13)), (0.9, (5, 25))] {
            let bands = Bands::for_threshold(threshold);
            assert_eq!((bands.bands, bands.rows), expected, "{threshold}");
        }
        let (wrong, missed) = Bands::for_threshold(0.8).errors(0.8);
        assert!(wrong < 0.06 && missed < 0.06, "{wrong} {missed}");
    }

    fn number_text(range: std::ops::Range<u32>) -> Words {
        let text: Vec<String> = range.map(|word| format!("w{word}")).collect();
        let mut words = Words::default();
        words.take(&text.join(" "), Fold::default());
        words
    }

    /// Over 300 pairs of each likeness, the share of equal values is the likeness, within the limits of chance.
    #[test]
    fn values_agree_as_often_as_shingles_do() {
        let bands = Bands {
            bands: 1,
            rows: 128,
        };
        for overlap in [200u32, 400, 800] {
            let mut equal = 0;
            let mut keys = Vec::new();
            for pair in 0..300u32 {
                let start = pair * 10_000;
                let (mut a, mut b) = (MinHash::new(bands), MinHash::new(bands));
                let first = number_text(start..start + 1000);
                a.keys(&first, &Hasher::default(), &mut keys);
                let shift = 1000 - overlap;
                let second = number_text(start + shift..start + shift + 1000);
                b.keys(&second, &Hasher::default(), &mut keys);
                equal += a
                    .values()
                    .iter()
                    .zip(b.values())
                    .filter(|(a, b)| a == b)
                    .count();
            }
            let common = f64::from(overlap) - (SHINGLE as f64 - 1.0);
            let likeness = common / (2.0 * (1000.0 - SHINGLE as f64 + 1.0) - common);
            let measured = equal as f64 / (300.0 * 128.0);
            let deviation = (likeness * (1.0 - likeness) / 300.0 / 128.0).sqrt();
            assert!(
                (measured - likeness).abs() < 5.0 * deviation + 0.005,
                "{overlap}: {measured} instead of {likeness}"
            );
        }
    }
}
