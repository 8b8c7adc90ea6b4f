//! Sorts keys by their hashes and removes duplicates, on all cores, for the static kinds.

use crate::error::Error;
use crate::hash::Hash;
use crate::raw::roomy::roomy;
use std::sync::Mutex;

/// A key for a static filter.
pub(crate) trait Key: Copy + Send + Sync + PartialEq + From<Hash> {
    fn hash(self) -> Hash;
    /// The same key under another hash.
    fn with_hash(self, hash: Hash) -> Self;
    /// Whether the filter must answer "no".
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

/// A key that a filter must accept or deny.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decided {
    pub(crate) hash: Hash,
    pub(crate) denied: bool,
}

impl From<Hash> for Decided {
    fn from(hash: Hash) -> Self {
        Self {
            hash,
            denied: false,
        }
    }
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

/// Runs all jobs, each on the next free thread.
pub(crate) fn for_each<T: Send>(
    threads: usize,
    jobs: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
    for_each_with(threads, jobs, || (), |(), job| work(job));
}

/// The same, with a separate value for each thread.
pub(crate) fn for_each_with<T: Send, S>(
    threads: usize,
    jobs: impl Iterator<Item = T> + Send,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().expect(NO_PANIC).next();
    let worker = || {
        let mut own = start();
        while let Some(job) = next() {
            work(&mut own, job);
        }
    };
    std::thread::scope(|scope| {
        // As many threads as the system allows; this one works, too.
        for _ in 1..threads {
            let other = std::thread::Builder::new().spawn_scoped(scope, worker);
            if other.is_err() {
                break;
            }
        }
        worker();
    });
}

/// Ascending by hash.
pub(crate) fn sort<K: Key>(keys: &mut [K]) {
    keys.sort_unstable_by_key(|key| key.hash());
}

/// The distinct keys in ascending order. Without memory for a copy, it is only slower.
pub(crate) fn sorted_distinct<K: Key>(mut keys: Vec<K>, threads: usize) -> Vec<K> {
    match roomy(keys.len()) {
        Ok(room) => sort_into(room, vec![keys], threads),
        Err(_) => {
            sort(&mut keys);
            keys.dedup();
            keys
        }
    }
}

/// The same for several vectors: two scatters, after which hardly any key is out of place.
pub(crate) fn sorted_distinct_of<K: Key>(
    keys: Vec<Vec<K>>,
    threads: usize,
) -> Result<Vec<K>, Error> {
    let room = roomy(keys.iter().map(Vec::len).sum())?;
    Ok(sort_into(room, keys, threads))
}

/// `sorted` must be empty and have room for all.
fn sort_into<K: Key>(mut sorted: Vec<K>, keys: Vec<Vec<K>>, threads: usize) -> Vec<K> {
    const FEW: usize = 8192;
    if keys.iter().map(Vec::len).sum::<usize>() < FEW {
        for keys in keys {
            sorted.extend_from_slice(&keys);
        }
        sort(&mut sorted);
        sorted.dedup();
        return sorted;
    }
    let runs = Grouped::new(keys, 0, threads);
    sorted.resize(runs.len(), Hash::default().into());
    let mut rest = &mut sorted[..];
    let groups = (0..runs.groups()).map(|i| {
        let pieces: Vec<&[K]> = runs.group(i).collect();
        let size = pieces.iter().map(|piece| piece.len()).sum();
        let (group, others) = std::mem::take(&mut rest).split_at_mut(size);
        rest = others;
        (pieces, group)
    });
    for_each(threads, groups, |(pieces, group)| {
        let bin_bits = group.len().max(2).next_power_of_two().ilog2();
        let bin = |key: &K| ((key.hash().hi << runs.bits) >> (64 - bin_bits)) as usize;
        let ends = scatter(&pieces, group, 1 << bin_bits, bin);
        let mut start = 0;
        for end in ends {
            match &mut group[start..end] {
                [] | [_] => {}
                bin => sort(bin),
            }
            start = end;
        }
    });
    drop(runs);
    sorted.dedup();
    sorted
}

/// Keys in runs, each ordered only by the top bits of the hashes. A run fits in the cache together
/// with its ordered copy.
pub(crate) struct Grouped<K> {
    keys: Vec<Vec<K>>,
    /// For every run, where its groups end.
    ends: Vec<Vec<usize>>,
    /// There are `2^bits` groups.
    bits: u32,
}

impl<K: Key> Grouped<K> {
    /// Keys of a run.
    const RUN: usize = 1 << 17;

    /// Groups by at least this many bits.
    pub(crate) fn new(mut keys: Vec<Vec<K>>, least_bits: u32, threads: usize) -> Self {
        let total: usize = keys.iter().map(Vec::len).sum();
        // Groups are small enough that several fit in a core's cache, and few enough to write to
        // all of them at once.
        let bits = (total / 4096).checked_ilog2().unwrap_or(0).clamp(1, 11);
        let bits = bits.max(least_bits);
        let group = |key: &K| (key.hash().hi >> (64 - bits)) as usize;
        let mut ends = Vec::new();
        let runs: Vec<_> = keys
            .iter_mut()
            .flat_map(|keys| keys.chunks_mut(Self::RUN))
            .collect();
        ends.resize(runs.len(), Vec::new());
        for_each_with(
            threads,
            runs.into_iter().zip(&mut ends),
            || Vec::with_capacity(Self::RUN.min(total)),
            |ordered, (run, ends)| {
                ordered.resize(run.len(), Hash::default().into());
                *ends = scatter(&[&*run], ordered, 1 << bits, group);
                run.copy_from_slice(ordered);
            },
        );
        Self { keys, ends, bits }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.iter().map(Vec::len).sum()
    }

    pub(crate) const fn groups(&self) -> usize {
        1 << self.bits
    }

    /// The keys of a group, in pieces.
    pub(crate) fn group(&self, i: usize) -> impl Iterator<Item = &[K]> {
        let runs = self.keys.iter().flat_map(|keys| keys.chunks(Self::RUN));
        runs.zip(&self.ends).map(move |(run, ends)| {
            let begin = i.checked_sub(1).map_or(0, |before| ends[before]);
            &run[begin..ends[i]]
        })
    }

    pub(crate) fn into_keys(self) -> Vec<Vec<K>> {
        self.keys
    }
}

/// Copies the pieces to `out`, ordered by bin; returns where each bin ends.
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
    use crate::raw::usual_or;

    #[test]
    fn sorts_and_removes_duplicates() {
        let poor: fn(u64) -> Hash = |i| Hash { hi: 7, lo: mix(i) };
        let good: fn(u64) -> Hash = |i| Hash {
            hi: mix(i / 2),
            lo: i % 2,
        };
        for hash in [good, poor] {
            let counts = [0u64, 1, 2, 1000, 5000, 100_000, 1_200_000];
            for count in counts.into_iter().take(usual_or(7, 5)) {
                let keys: Vec<Hash> = (0..count).map(hash).collect();
                let doubled: Vec<Hash> = keys.iter().chain(&keys).copied().collect();
                let mut expected = keys.clone();
                expected.sort();
                for threads in [1, 3] {
                    assert_eq!(sorted_distinct(doubled.clone(), threads), expected);
                    let (some, others) = keys.split_at(keys.len() / 3);
                    let pieces = vec![some.to_vec(), Vec::new(), others.to_vec()];
                    let runs = Grouped::new(pieces.clone(), 3, threads);
                    assert_eq!(runs.len(), keys.len());
                    let mut all: Vec<Hash> = Vec::new();
                    for i in 0..runs.groups() {
                        let group = || runs.group(i).flatten();
                        let of_group = |hash: &Hash| hash.hi >> (64 - runs.bits) == i as u64;
                        assert!(group().all(of_group));
                        all.extend(group());
                    }
                    all.sort();
                    assert_eq!(all, expected);
                    assert_eq!(sorted_distinct_of(pieces, threads).unwrap(), expected);
                }
            }
        }
    }
}
