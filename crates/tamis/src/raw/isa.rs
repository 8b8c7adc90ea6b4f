//! Which instructions a batch runs on. `scalar` is the specification; every
//! other path sets and reads the same bits.

use crate::hash::Hash;
#[cfg(target_arch = "x86_64")]
use crate::raw::blocked::{BlockedShape, LINE_WORDS, line, scalar, x86_64};
use crate::raw::layout::{BLOCK, hash_block};
use crate::raw::word::Word;

/// A way to run a batch over a blocked filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Path {
    /// Every path, fastest last.
    pub(crate) const ALL: &[Self] = &[
        Self::Scalar,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    /// Whether this machine has it.
    pub(crate) fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
        }
    }

    /// The fastest path of this machine. The detection is cached by the
    /// standard library, so asking once a batch costs a load.
    pub(crate) fn best() -> Self {
        let available = |path: &&Self| path.is_available();
        *Self::ALL.iter().rfind(available).unwrap_or(&Self::Scalar)
    }
}

/// Asks keys that are hashed, or as good as.
pub(crate) fn contains<W: Word, H: Copy + Into<Hash>>(
    path: Path,
    shape: &BlockedShape,
    words: &[W],
    hashes: &[H],
    out: &mut [bool],
) {
    assert_eq!(hashes.len(), out.len());
    assert_eq!(size_of_val(words) as u64, shape.body_len());
    match path {
        Path::Scalar => for_each_hash(shape, words, hashes, out, |hash| {
            scalar::contains(shape, words, hash)
        }),
        // SAFETY: a path is only chosen where it is available.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => unsafe { x86_64::contains_avx2(shape, words, hashes, out) },
        // SAFETY: likewise; the number of words was checked.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { x86_64::contains_avx512(shape, words, hashes, out) },
    }
}

/// Hashes and prefetches keys, a block at a time, and then asks each.
#[inline(always)]
pub(crate) fn for_each_hash<W: Word, H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &[W],
    keys: &[H],
    out: &mut [bool],
    ask: impl Fn(Hash) -> bool,
) {
    let mut hashes = [Hash::default(); BLOCK];
    for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let hashes = hash_block(shape, words, keys, |key| (*key).into(), &mut hashes);
        for (hash, out) in hashes.iter().zip(out) {
            *out = ask(*hash);
        }
    }
}

/// Adds keys that are hashed, or as good as, to words that nobody else accesses.
pub(crate) fn insert<H: Copy + Into<Hash>>(
    path: Path,
    shape: &BlockedShape,
    words: &mut [u64],
    hashes: &[H],
    new: &mut [bool],
) {
    assert_eq!(hashes.len(), new.len());
    assert_eq!(size_of_val(words) as u64, shape.body_len());
    match path {
        // SAFETY: a path is only chosen where it is available; the number of
        // words was checked.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { x86_64::insert_avx512(shape, words, hashes, new) },
        _ => for_each_hash_mut(shape, words, hashes, new, |words, hash| {
            scalar::insert_exclusive(shape, words, hash)
        }),
    }
}

/// Hashes and prefetches keys, a block at a time, and then adds each.
#[inline(always)]
pub(crate) fn for_each_hash_mut<H: Copy + Into<Hash>>(
    shape: &BlockedShape,
    words: &mut [u64],
    keys: &[H],
    new: &mut [bool],
    add: impl Fn(&mut [u64], Hash) -> bool,
) {
    let mut hashes = [Hash::default(); BLOCK];
    for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
        let hashes = hash_block(shape, words, keys, |key| (*key).into(), &mut hashes);
        for (hash, new) in hashes.iter().zip(new) {
            *new = add(words, *hash);
        }
    }
}

/// The bits of a key in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Mask(pub(crate) [u64; LINE_WORDS]);

/// The bits of keys in their first lines (`nth` 0) or their second: of `who`,
/// indices into `hashes` and `masks`.
pub(crate) fn line_masks(
    path: Path,
    hashes_per_line: u32,
    nth: u32,
    who: &[u8],
    hashes: &[Hash],
    masks: &mut [Mask],
) {
    match path {
        // SAFETY: a path is only chosen where it is available.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe {
            x86_64::line_masks_avx512(hashes_per_line, nth, who, hashes, masks);
        },
        _ => {
            for &i in who {
                let i = usize::from(i);
                masks[i] = Mask(scalar::nth_line_mask(hashes[i], nth, hashes_per_line));
            }
        }
    }
}

/// Of the keys `who`, those with all bits of `masks` set in the lines `at`;
/// they are written to the front of `hits`, and their number is returned.
pub(crate) fn matching<W: Word>(
    path: Path,
    words: &[W],
    who: &[u8],
    at: &[usize],
    masks: &[Mask],
    hits: &mut [u8],
) -> usize {
    match path {
        // SAFETY: a path is only chosen where it is available.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { x86_64::matching_avx512(words, who, at, masks, hits) },
        _ => {
            let mut found = 0;
            for &i in who {
                let bits = &masks[usize::from(i)].0;
                let line = line(words, at[usize::from(i)]);
                hits[found] = i;
                let all = line
                    .iter()
                    .zip(bits)
                    .all(|(w, bits)| w.get() & bits == *bits);
                found += usize::from(all);
            }
            found
        }
    }
}

/// Asks the memory for the cache line of `place`; only a hint.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: as above; the instruction changes no register or memory.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{place}]",
                place = in(reg) place,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words whose positions are close together, so that many repeat.
    fn crowded() -> impl Strategy<Value = u64> {
        (0u64..512, prop::collection::vec(0u64..3, 7)).prop_map(|(start, steps)| {
            steps
                .iter()
                .fold(start, |word, step| (word << 9) | ((word + step) % 512))
        })
    }

    fn hashes(max: usize) -> impl Strategy<Value = Vec<Hash>> {
        let lo = prop_oneof![4 => any::<u64>(), 1 => crowded(), 1 => 0u64..600];
        prop::collection::vec(
            (any::<u64>(), lo).prop_map(|(hi, lo)| Hash { hi, lo }),
            0..max,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Every path of this machine equals the specification, bit for bit.
        #[test]
        fn every_path_equals_scalar(
            lines in 1u64..12,
            hashes_per_line in prop_oneof![1u32..=7, 1u32..=32],
            lines_per_key in prop_oneof![3 => Just(1u32), 1 => Just(2)],
            inserted in hashes(300),
            asked in hashes(300),
            values in prop::collection::vec(any::<u64>(), 0..200),
        ) {
            let shape = BlockedShape::new(lines, hashes_per_line, lines_per_key).unwrap();
            let of_values: Vec<Hash> = values.iter().map(|v| Hash::from_u64(*v)).collect();
            let inserted = [inserted, of_values.iter().copied().step_by(2).collect()].concat();
            let asked = [&inserted[..], &asked, &of_values].concat();

            // The specification, a key at a time.
            let mut spec = vec![0u64; lines as usize * 8];
            let add = |hash: &Hash| scalar::insert_exclusive(&shape, &mut spec, *hash);
            let spec_new: Vec<bool> = inserted.iter().map(add).collect();
            let bytes: Vec<[u8; 8]> = spec.iter().map(|w| w.to_le_bytes()).collect();
            let ask = |hash: &Hash| scalar::contains(&shape, &bytes, *hash);
            let spec_found: Vec<bool> = asked.iter().map(ask).collect();
            prop_assert!(spec_found[..inserted.len()].iter().all(|found| *found));

            for &path in Path::ALL.iter().filter(|path| path.is_available()) {
                let mut words = vec![0; spec.len()];
                let mut new = vec![false; inserted.len()];
                insert(path, &shape, &mut words, &inserted, &mut new);
                prop_assert_eq!(&words, &spec, "{:?} set other bits", path);
                prop_assert_eq!(&new, &spec_new, "{:?} said new otherwise", path);
                let mut found = vec![false; asked.len()];
                contains(path, &shape, &bytes, &asked, &mut found);
                prop_assert_eq!(&found, &spec_found, "{:?} read otherwise", path);

                for asked in asked.chunks(100) {
                    let who: Vec<u8> = (0..asked.len() as u8).collect();
                    let mut masks = [Mask([0; LINE_WORDS]); 100];
                    let mut hits = vec![0; who.len()];
                    line_masks(path, hashes_per_line, 0, &who, asked, &mut masks);
                    let at: Vec<usize> = asked.iter().map(|h| shape.first_line(*h)).collect();
                    let n = matching(path, &bytes, &who, &at, &masks, &mut hits);
                    hits.truncate(n);
                    if lines_per_key == 2 {
                        let first = hits.clone();
                        line_masks(path, hashes_per_line, 1, &first, asked, &mut masks);
                        let at: Vec<usize> = asked.iter().map(|h| shape.second_line(*h)).collect();
                        let n = matching(path, &bytes, &first, &at, &masks, &mut hits);
                        hits.truncate(n);
                    }
                    let spec: Vec<u8> = (who.iter().copied())
                        .filter(|i| scalar::contains(&shape, &bytes, asked[usize::from(*i)]))
                        .collect();
                    prop_assert_eq!(hits, spec, "{:?} matched otherwise", path);
                }
                // Keys that it hashes on its way.
                let mut found = vec![false; values.len()];
                contains(path, &shape, &bytes, &values, &mut found);
                prop_assert_eq!(&found[..], &spec_found[asked.len() - values.len()..]);
            }
        }
    }
}
