//! Exact sets in memory, built in the process that queries them.

use super::keys::integer;
use super::report::Step;
use super::work::{Unfit, Work};
use crate::human;
use anyhow::Result;
use std::collections::HashSet;
use std::time::Instant;
use tamis::Hasher;

/// The most bytes per key for a bitmap.
const MOST_BITMAP_BYTES: u128 = 64;

/// The standard library's hash set.
pub(super) fn hash_set(work: &Work) -> Result<Step> {
    let mut set: HashSet<Box<[u8]>> = HashSet::with_capacity(work.settings.held as usize);
    let build_seconds = work.add_held(|keys| {
        set.extend(keys.iter().map(|key| Box::from(*key)));
        Ok(())
    })?;
    // Slots for a seventh more than the capacity, rounded up to a power of two, each with a control byte. The system's
    // allocator adds 8 bytes per key and rounds up to 16.
    let slots = (set.capacity() as u64 * 8 / 7).next_power_of_two();
    let allocated = |key: &[u8]| match key.len() as u64 {
        0 => 0,
        length => (length + 8).next_multiple_of(16).max(32),
    };
    let size = slots * (size_of::<Box<[u8]>>() as u64 + 1)
        + set.iter().map(|key| allocated(key)).sum::<u64>();
    Ok(Step {
        size,
        build_seconds,
        answers: Some(work.ask_singly(|key| Ok(set.contains(key)))?),
        memory: None,
    })
}

/// The keys' 128-bit hashes, found by binary search.
pub(super) fn digests(work: &Work) -> Result<Step> {
    let hasher = Hasher::default();
    let mut digests: Vec<u128> = Vec::with_capacity(work.settings.held as usize);
    let adding = work.add_held(|keys| {
        digests.extend(keys.iter().map(|key| hasher.hash(key).as_u128()));
        Ok(())
    })?;
    let start = Instant::now();
    digests.sort_unstable();
    let sorting = start.elapsed().as_secs_f64();
    let contains = |key: &[u8]| Ok(digests.binary_search(&hasher.hash(key).as_u128()).is_ok());
    Ok(Step {
        size: size_of_val(&digests[..]) as u64,
        build_seconds: adding + sorting,
        answers: Some(work.ask_singly(contains)?),
        memory: None,
    })
}

/// One bit for each integer of the range.
pub(super) fn bitmap(work: &Work) -> Result<Step> {
    let Some((least, greatest)) = work.settings.range else {
        return Err(Unfit("not all keys are integers".into()).into());
    };
    let bits = greatest.abs_diff(least) + 1;
    let bytes = bits.div_ceil(64) * 8;
    if bytes > MOST_BITMAP_BYTES * u128::from(work.settings.held.max(16)) {
        return Err(Unfit(format!(
            "the integers range from {least} to {greatest}: {} of bits",
            human::size(u64::try_from(bytes).unwrap_or(u64::MAX))
        ))
        .into());
    }
    let mut words = vec![0_u64; (bytes / 8) as usize];
    let place = |key: &[u8]| {
        let bit = integer(key)?.checked_sub(least)?;
        let bit = u64::try_from(bit).ok()?;
        (u128::from(bit) < bits).then_some(((bit / 64) as usize, bit % 64))
    };
    let build_seconds = work.add_held(|keys| {
        for (word, bit) in keys.iter().filter_map(|key| place(key)) {
            words[word] |= 1 << bit;
        }
        Ok(())
    })?;
    let contains =
        |key: &[u8]| Ok(place(key).is_some_and(|(word, bit)| words[word] >> bit & 1 == 1));
    Ok(Step {
        size: bytes as u64,
        build_seconds,
        answers: Some(work.ask_singly(contains)?),
        memory: None,
    })
}
