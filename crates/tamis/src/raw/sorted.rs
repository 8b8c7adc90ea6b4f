//! Keys in ascending order of their hashes, each once, on all cores: what the
//! static kinds are built from.

use crate::hash::Hash;
use crate::raw::roomy::roomy;
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
    for_each_with(threads, jobs, || (), |(), job| work(job));
}

/// The same, where every thread has something of its own to work with.
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
        // As many as the system gives; this one works, too.
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

/// The keys in ascending order, each once: two scatters, after which hardly a
/// key is out of place.
pub(crate) fn sorted_distinct<K: Key>(mut keys: Vec<K>, threads: usize) -> Vec<K> {
    const FEW: usize = 8192;
    if keys.len() < FEW {
        sort(&mut keys);
    } else {
        let bits = group_bits(keys.len());
        regroup(&mut keys, threads, |pieces, group| {
            let bin_bits = group.len().max(2).next_power_of_two().ilog2();
            let bin = |key: &K| ((key.hash().hi << bits) >> (64 - bin_bits)) as usize;
            let ends = scatter(pieces, group, 1 << bin_bits, bin);
            let mut start = 0;
            for end in ends {
                match &mut group[start..end] {
                    [] | [_] => {}
                    bin => sort(bin),
                }
                start = end;
            }
        });
    }
    keys.dedup();
    keys
}

/// Groups are small enough for a few of them to fit a core's cache, and not
/// too many to write to at once.
pub(crate) fn group_bits(keys: usize) -> u32 {
    (keys / 4096).checked_ilog2().unwrap_or(0).clamp(1, 11)
}

/// Orders the keys by the top [`group_bits`] of their hashes only.
pub(crate) fn group<K: Key>(mut keys: Vec<K>, threads: usize) -> Vec<K> {
    regroup(&mut keys, threads, |pieces, mut group| {
        for piece in pieces {
            let (front, others) = group.split_at_mut(piece.len());
            front.copy_from_slice(piece);
            group = others;
        }
    });
    keys
}

/// Finds the pieces of every group and has `fill` put them in its place.
fn regroup<K: Key>(keys: &mut [K], threads: usize, fill: impl Fn(&[&[K]], &mut [K]) + Sync) {
    let Some(&any) = keys.first() else {
        return;
    };
    let bits = group_bits(keys.len());
    let runs = Mutex::new(Vec::new());
    for_each(
        threads,
        keys.chunks(keys.len().div_ceil(threads.max(1))),
        |chunk| {
            let mut run = roomy(chunk.len());
            run.resize(chunk.len(), any);
            let group = |key: &K| (key.hash().hi >> (64 - bits)) as usize;
            let ends = scatter(&[chunk], &mut run, 1 << bits, group);
            runs.lock().expect(NO_PANIC).push((run, ends));
        },
    );
    let runs = runs.into_inner().expect(NO_PANIC);
    let mut rest = keys;
    let groups = (0..1 << bits).map(|i: usize| {
        let begin = |ends: &[usize]| i.checked_sub(1).map_or(0, |before| ends[before]);
        let pieces = runs.iter().map(|(run, ends)| &run[begin(ends)..ends[i]]);
        let pieces: Vec<&[K]> = pieces.collect();
        let size = pieces.iter().map(|piece| piece.len()).sum();
        let (group, others) = std::mem::take(&mut rest).split_at_mut(size);
        rest = others;
        (pieces, group)
    });
    for_each(threads, groups, |(pieces, group)| fill(&pieces, group));
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
                    let mut grouped = group(keys.clone(), threads);
                    let top = |hash: &Hash| hash.hi >> (64 - group_bits(keys.len()));
                    assert!(grouped.is_sorted_by_key(top));
                    grouped.sort();
                    assert_eq!(grouped, expected);
                }
            }
        }
    }
}
