//! Keys in ascending order of their hashes, each once, on all cores: what the
//! static kinds are built from.

use crate::hash::Hash;
use std::sync::Mutex;

/// A key on its way into a static filter.
pub(crate) trait Key: Copy + Send + Sync + PartialEq {
    fn hash(self) -> Hash;
    /// The same key under another hash.
    fn with_hash(self, hash: Hash) -> Self;
    /// Whether the filter must answer no.
    fn is_denied(self) -> bool;
}

impl Key for Hash {
    #[inline(always)]
    fn hash(self) -> Hash {
        self
    }

    #[inline(always)]
    fn with_hash(self, hash: Hash) -> Self {
        hash
    }

    #[inline(always)]
    fn is_denied(self) -> bool {
        false
    }
}

/// A key for which a filter must give one answer or the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decided {
    pub(crate) hash: Hash,
    pub(crate) denied: bool,
}

impl Key for Decided {
    #[inline(always)]
    fn hash(self) -> Hash {
        self.hash
    }

    #[inline(always)]
    fn with_hash(self, hash: Hash) -> Self {
        Self { hash, ..self }
    }

    #[inline(always)]
    fn is_denied(self) -> bool {
        self.denied
    }
}

const NO_PANIC: &str = "no thread panics while it takes a job";

/// Does all jobs, each on the next thread that is free.
pub(crate) fn for_each<T: Send>(
    threads: usize,
    jobs: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().expect(NO_PANIC).next();
    let worker = || {
        while let Some(job) = next() {
            work(job);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
}

/// Ascending by hash.
pub(crate) fn sort<K: Key>(keys: &mut [K]) {
    keys.sort_unstable_by_key(|key| key.hash());
}

/// The keys in ascending order, each once: two scatters, after which hardly a
/// key is out of place.
pub(crate) fn sorted_distinct<K: Key>(mut keys: Vec<K>, threads: usize) -> Vec<K> {
    const FEW: usize = 8192;
    let Some(&any) = keys.first().filter(|_| keys.len() >= FEW) else {
        sort(&mut keys);
        keys.dedup();
        return keys;
    };
    // Parts small enough for the second scatter to stay in the cache, but not
    // too many for the first.
    let part_bits = (keys.len() / 4096).ilog2().clamp(1, 10);
    let part = |key: &K| (key.hash().hi >> (64 - part_bits)) as usize;
    let runs = Mutex::new(Vec::new());
    for_each(
        threads,
        keys.chunks(keys.len().div_ceil(threads.max(1))),
        |chunk| {
            let mut run = vec![any; chunk.len()];
            let ends = scatter(&[chunk], &mut run, 1 << part_bits, part);
            runs.lock().expect(NO_PANIC).push((run, ends));
        },
    );
    let runs = runs.into_inner().expect(NO_PANIC);
    let mut rest = &mut keys[..];
    let parts = (0..1 << part_bits).map(|i: usize| {
        let begin = |ends: &[usize]| i.checked_sub(1).map_or(0, |before| ends[before]);
        let pieces: Vec<&[K]> = (runs.iter())
            .map(|(run, ends)| &run[begin(ends)..ends[i]])
            .collect();
        let size = pieces.iter().map(|piece| piece.len()).sum();
        let (part, others) = std::mem::take(&mut rest).split_at_mut(size);
        rest = others;
        (pieces, part)
    });
    for_each(threads, parts, |(pieces, part)| {
        let bin_bits = part.len().max(2).next_power_of_two().ilog2();
        let bin = |key: &K| ((key.hash().hi << part_bits) >> (64 - bin_bits)) as usize;
        let ends = scatter(&pieces, part, 1 << bin_bits, bin);
        let mut start = 0;
        for end in ends {
            match &mut part[start..end] {
                [] | [_] => {}
                bin => sort(bin),
            }
            start = end;
        }
    });
    drop(runs);
    keys.dedup();
    keys
}

/// Copies the pieces to `out`, ordered by bin, and tells where each bin ends.
fn scatter<K: Key>(
    pieces: &[&[K]],
    out: &mut [K],
    bins: usize,
    bin: impl Fn(&K) -> usize,
) -> Vec<usize> {
    let mut next = vec![0; bins + 1];
    for key in pieces.iter().copied().flatten() {
        next[bin(key) + 1] += 1;
    }
    for i in 1..=bins {
        next[i] += next[i - 1];
    }
    for key in pieces.iter().copied().flatten() {
        let at = &mut next[bin(key)];
        out[*at] = *key;
        *at += 1;
    }
    next.truncate(bins);
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn sorts_and_removes_duplicates() {
        let poor: fn(u64) -> Hash = |i| Hash { hi: 7, lo: mix(i) };
        let good: fn(u64) -> Hash = |i| Hash {
            hi: mix(i / 2),
            lo: i % 2,
        };
        for hash in [good, poor] {
            for count in [0u64, 1, 2, 1000, 5000, 100_000] {
                let keys: Vec<Hash> = (0..count).map(hash).collect();
                let doubled: Vec<Hash> = keys.iter().chain(&keys).copied().collect();
                let mut expected = keys.clone();
                expected.sort();
                for threads in [1, 3] {
                    assert_eq!(sorted_distinct(doubled.clone(), threads), expected);
                }
            }
        }
    }
}
