//! What is known about a filter.

use crate::arguments::{read, write};
use crate::filter::{Filter, each};
use crate::options::{TAMIS_IGNORE_CASE, TAMIS_SECRET_APART, TAMIS_URL};
use crate::status::status;
use std::ffi::c_int;
use tamis::{Hasher, KeyCount};

/// How keys are hashed.
#[repr(C)]
#[allow(non_camel_case_types)]
pub enum HashName {
    /// XXH3-128 under a seed.
    TAMIS_XXH3_128 = 1,
    /// SipHash-2-4-128 under a secret.
    TAMIS_SIPHASH_128 = 2,
}

/// What is known about a filter.
#[repr(C)]
pub struct Info {
    /// One of tamis_kind.
    pub kind: u32,
    /// One of tamis_hash.
    pub hash: u32,
    /// Of TAMIS_XXH3_128.
    pub seed: u64,
    /// TAMIS_SECRET_APART, TAMIS_IGNORE_CASE, TAMIS_URL, as for tamis_options.
    pub flags: u32,
    /// How many values a key is made of.
    pub values: u32,
    /// The number of keys it was made for.
    pub capacity: u64,
    /// The promised rate, kept up to the capacity.
    pub rate: f64,
    /// The number of distinct keys in it.
    pub keys: u64,
    /// 1 if they were counted; 0 if the number is an estimate from how full it is.
    pub keys_counted: u32,
    /// 1 if it can be changed.
    pub writable: u32,
    /// The rate to expect now.
    pub rate_now: f64,
    /// The size of its body.
    pub bytes: u64,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// What is known about a filter. Reads all of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_info(filter: *const Filter, info: *mut Info) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, info) = unsafe { (read(filter, "filter")?, write(info, "info")?) };
        let hasher = filter.hasher();
        let (hash, seed, apart) = match hasher {
            Hasher::Keyed { in_file, .. } => (HashName::TAMIS_SIPHASH_128, 0, !in_file),
            Hasher::Fast { seed, .. } => (HashName::TAMIS_XXH3_128, *seed, false),
            _ => unreachable!("a hash that this version does not know is not opened"),
        };
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let keys = each!(filter, any => any.keys());
        *info = Info {
            kind: each!(filter, any => any.kind()) as u32,
            hash: hash as u32,
            seed,
            flags: flag(apart, TAMIS_SECRET_APART)
                | flag(hasher.rule().ignores_case(), TAMIS_IGNORE_CASE)
                | flag(hasher.rule().normalises_urls(), TAMIS_URL),
            values: hasher.rule().values() as u32,
            capacity: each!(filter, any => any.capacity()),
            rate: each!(filter, any => any.rate()),
            keys: keys.get(),
            keys_counted: matches!(keys, KeyCount::Counted(_)).into(),
            writable: matches!(filter, Filter::Owned(any) if !any.kind().is_static()).into(),
            rate_now: each!(filter, any => any.rate_now()),
            bytes: each!(filter, any => any.bytes()),
            reserved: [0; 4],
        };
        Ok(())
    })
}
