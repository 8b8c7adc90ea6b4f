//! A window taken apart: its generations one by one, for storage that keeps
//! each by itself. There a generation is its blocks, row by row, with bits for
//! keys alone: what belongs to whom is said elsewhere.

use super::bits::{TAG, key_bits};
use super::head::Column;
use super::shape::{MAX_BLOCK, RUN, WORD_BITS, WindowShape};
use crate::hash::{Hash, reduce};
use crate::moment::Moment;
use crate::raw::word::Word;

/// A generation by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPart {
    /// The generation's number.
    pub generation: i64,
    /// Keys added to it, new or renewed.
    pub keys: u64,
    /// Its blocks.
    pub blocks: Vec<u8>,
}

impl WindowShape {
    /// Bytes of a generation's blocks.
    #[must_use]
    pub const fn part_len(&self) -> u64 {
        self.rows() * self.block() as u64 * 8
    }

    /// The number of a moment's generation.
    #[must_use]
    pub const fn number_of(&self, at: Moment) -> i64 {
        self.generation_of(at)
    }

    /// A key's row, and its bits in the block of any generation there, word by
    /// word.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::raw::Shape;
    /// use tamis::{Hasher, Plan, Span, WindowOptions};
    /// let hour = WindowOptions::new(Span::Time(Duration::from_secs(3_600)));
    /// let Shape::Window(shape) = Plan::window(&hour, 1_000, 0.01)?.shape() else { panic!() };
    /// let (row, words) = shape.block_of(Hasher::default().hash(b"key"));
    /// let bits: u32 = words.iter().map(|word| word.count_ones()).sum();
    /// assert!(row < shape.rows() && bits == shape.block() as u32 * shape.slices());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn block_of(&self, hash: Hash) -> (u64, [u64; MAX_BLOCK]) {
        let mut words = [0; MAX_BLOCK];
        for (nth, run) in words[..self.block()].chunks_mut(RUN).enumerate() {
            run.copy_from_slice(&key_bits(self, hash.lo, nth));
        }
        (reduce(hash.hi, self.rows()), words)
    }

    /// About how many keys a generation has in which this many bits are set.
    #[must_use]
    pub fn keys_from_ones(&self, ones: u64) -> f64 {
        let bits = self.part_len() as f64 / 64.0 * 8.0 * f64::from(WORD_BITS);
        let slice = f64::from(WORD_BITS / self.slices());
        let unset = (1.0 - ones as f64 / bits).max(1.0 / bits);
        -unset.ln() * slice * self.rows() as f64
    }

    /// The generations that a body has, oldest first: those that it remembers, and
    /// one for keys that are late.
    pub fn parts<W: Word>(&self, words: &[W]) -> Vec<WindowPart> {
        let part = |(c, column): (usize, Column)| {
            let bits = |word: u64| match word & TAG == column.mark() {
                true => word & !TAG,
                false => 0,
            };
            let each = self.words_of(c).map(|at| bits(words[at].get()));
            WindowPart {
                generation: column.generation,
                keys: self.column_keys(words, c),
                blocks: each.flat_map(u64::to_le_bytes).collect(),
            }
        };
        let columns = self.columns() as i64;
        let kept = |generation| (self.newest(words)).is_some_and(|n| generation > n - columns);
        let each = (0..self.columns()).filter_map(|c| Some((c, self.column(words, c)?)));
        let mut each: Vec<_> = each.filter(|(_, it)| kept(it.generation)).collect();
        each.sort_unstable_by_key(|(_, column)| column.generation);
        each.into_iter().map(part).collect()
    }

    /// Writes a generation into a body that has none in its place, and notes that
    /// a key was added at a moment of it.
    ///
    /// # Panics
    /// If the body or the blocks are not as long as they must be.
    pub fn put_part(&self, body: &mut [u8], part: &WindowPart, latest: Moment) {
        let (blocks, rest) = part.blocks.as_chunks::<8>();
        assert_eq!(blocks.len() as u64 * 8, self.part_len(), "all blocks");
        assert!(rest.is_empty());
        let words = body.as_chunks_mut::<8>().0;
        let c = self.column_of(part.generation);
        let mark = self.put_column(words, part.generation, part.keys, latest);
        for (at, block) in self.words_of(c).zip(blocks) {
            let bits = u64::from_le_bytes(*block) & !TAG;
            if bits != 0 {
                words[at] = (bits | mark).to_le_bytes();
            }
        }
    }

    /// Where the words of a column are, in the order of its blocks.
    fn words_of(&self, column: usize) -> impl Iterator<Item = usize> {
        let (head, columns) = (self.head_words(), self.columns());
        let runs = self.rows() as usize * self.block() / RUN;
        (0..runs).flat_map(move |run| {
            let first = head + (run * columns + column) * RUN;
            first..first + RUN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::header::{HEADER_LEN, Header};
    use crate::raw::shape::Shape;
    use crate::{AnyFilter, Draft, Hasher, Plan, Span, WindowOptions};
    use std::time::Duration;

    /// Taken apart and put together again, a window answers the same at every
    /// moment, and its parts have the bits of `block_of`.
    #[test]
    fn apart_and_together() {
        for (keys, rate) in [(300, 0.05), (2_000, 0.01), (2_000, 1e-5)] {
            let options = WindowOptions::new(Span::Time(Duration::from_secs(80)));
            let plan = Plan::window(&options, keys, rate).unwrap();
            let Shape::Window(shape) = plan.shape() else {
                panic!("a window")
            };
            let AnyFilter::Window(window) = AnyFilter::from_plan(&plan, Hasher::default()).unwrap()
            else {
                panic!("a window")
            };
            let at =
                |i: u64| Moment::from_micros(i as i64 * 200_000_000 / keys as i64 - 50_000_000);
            for key in 0..keys {
                window.insert_at(key.to_le_bytes(), at(key));
            }
            let bytes = window.to_bytes();
            let parts = shape.parts(bytes[HEADER_LEN..].as_chunks::<8>().0);
            assert_eq!(parts.len(), 10);
            let mut draft = Draft::new(&Header::decode(&bytes, None).unwrap()).unwrap();
            for part in &parts {
                let latest = Moment::from_micros(part.generation * 10_000_000);
                shape.put_part(draft.body_mut(), part, latest);
                let ones = part.blocks.iter().map(|byte| u64::from(byte.count_ones()));
                let counted = shape.keys_from_ones(ones.sum()) / part.keys as f64;
                assert!(
                    (0.85..1.15).contains(&counted),
                    "{counted} of {}",
                    part.keys
                );
            }
            let AnyFilter::Window(again) = draft.finish().unwrap() else {
                panic!("a window")
            };
            assert_eq!(again.generations(), window.generations());
            for key in 0..2 * keys {
                let hash = Hasher::default().hash(&key.to_le_bytes());
                for seconds in (-50..300).step_by(10) {
                    let at = Moment::from_secs(seconds);
                    let expected = window.contains_hash_at(hash, at);
                    assert_eq!(again.contains_hash_at(hash, at), expected, "{key} at {at}");
                }
            }
            let hash = Hasher::default().hash(&(keys - 1).to_le_bytes());
            let (row, words) = shape.block_of(hash);
            let blocks = parts[9].blocks.as_chunks::<8>().0;
            let first = row as usize * shape.block();
            for (word, block) in words.iter().zip(&blocks[first..first + shape.block()]) {
                assert_eq!(u64::from_le_bytes(*block) & word, *word);
            }
        }
    }
}
