//! Counts items added, queried and found.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Clone, Copy)]
pub(super) enum Counter {
    BloomAdds,
    BloomAsked,
    BloomHits,
    BloomLate,
    CuckooAdds,
    CuckooAsked,
    CuckooHits,
}

const NAMES: [&CStr; 7] = [
    c"bloom_items_offered",
    c"bloom_items_asked",
    c"bloom_items_found",
    c"bloom_items_late",
    c"cuckoo_items_offered",
    c"cuckoo_items_asked",
    c"cuckoo_items_found",
];
static COUNTERS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

pub(super) fn count(counter: Counter, more: u64) {
    // Commands run on one thread, one at a time.
    let counter = &COUNTERS[counter as usize];
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// All counters with their names.
pub(super) fn all() -> impl Iterator<Item = (&'static CStr, u64)> {
    let numbers = COUNTERS.iter().map(|counter| counter.load(Relaxed));
    NAMES.into_iter().zip(numbers)
}
