//! The bitmap of the tutorials: one hash, one bit per key. It is a Bloom filter with k = 1, included to show what more
//! hashes save; it is never recommended.

use super::contender::one_hash_bytes;
use super::report::Step;
use super::work::{Unfit, Work};
use crate::human;
use anyhow::Result;
use tamis::Hasher;

/// A size limit: low rates would need far too much memory.
const MOST_BYTES: f64 = (1_u64 << 30) as f64;

pub(super) fn measure(work: &Work) -> Result<Step> {
    let bytes = one_hash_bytes(work.settings.held as f64, work.settings.rate);
    if bytes > MOST_BYTES {
        return Err(Unfit(format!(
            "at this rate its bits would take {}",
            human::size(bytes as u64)
        ))
        .into());
    }
    let hasher = Hasher::default();
    let mut words = vec![0_u64; bytes as usize / 8];
    let bits = words.len() as u128 * 64;
    let place = |key: &[u8]| {
        let bit = ((hasher.hash(key).as_u128() >> 64) * bits) >> 64;
        ((bit / 64) as usize, bit % 64)
    };
    let build_seconds = work.add_held(|keys| {
        for (word, bit) in keys.iter().map(|key| place(key)) {
            words[word] |= 1 << bit;
        }
        Ok(())
    })?;
    let contains = |key: &[u8]| {
        let (word, bit) = place(key);
        Ok(words[word] >> bit & 1 == 1)
    };
    Ok(Step {
        size: bytes as u64,
        build_seconds,
        answers: Some(work.ask_singly(contains)?),
        memory: None,
    })
}
