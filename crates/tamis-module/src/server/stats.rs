//! What INFO tells of the module.

use super::alloc::bytes_in_use;
use super::api::api;
use super::types;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use valkey_module::raw;

#[derive(Clone, Copy)]
pub(super) enum Counter {
    BloomAdds,
    BloomAsked,
    BloomHits,
    CuckooAdds,
    CuckooAsked,
    CuckooHits,
}

const NAMES: [&CStr; 6] = [
    c"bloom_items_offered",
    c"bloom_items_asked",
    c"bloom_items_found",
    c"cuckoo_items_offered",
    c"cuckoo_items_asked",
    c"cuckoo_items_found",
];
static COUNTERS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

pub(super) fn count(counter: Counter, more: u64) {
    COUNTERS[counter as usize].fetch_add(more, Relaxed);
}

pub(super) unsafe extern "C" fn tell(to: *mut raw::RedisModuleInfoCtx, _for_crash: c_int) {
    if api!(RedisModule_InfoAddSection(to, c"filters".as_ptr())) != 0 {
        return;
    }
    let add = |name: &CStr, number: u64| {
        api!(RedisModule_InfoAddFieldULongLong(to, name.as_ptr(), number));
    };
    let (blooms, cuckoos) = types::alive();
    add(c"bloom_keys", blooms.max(0) as u64);
    add(c"cuckoo_keys", cuckoos.max(0) as u64);
    add(c"bytes", bytes_in_use() as u64);
    for (name, counter) in NAMES.iter().zip(&COUNTERS) {
        add(name, counter.load(Relaxed));
    }
}
