//! The module's section of INFO.

use super::alloc::bytes_in_use;
use super::api::api;
use super::{counters, types};
use std::ffi::{CStr, c_int};
use valkey_module::raw;

pub(super) unsafe extern "C" fn report(to: *mut raw::RedisModuleInfoCtx, _for_crash: c_int) {
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
    counters::all().for_each(|(name, number)| add(name, number));
}
