//! What a filter would cost: any two of keys, rate and size give the third.

use crate::arguments::{known_kind, write};
use crate::status::{Failure, status};
use std::ffi::c_int;

/// A filter that could be made, and what to expect of it.
#[repr(C)]
pub struct Plan {
    /// One of tamis_kind.
    pub kind: u32,
    /// How many bits are set for a key.
    pub hashes: u32,
    /// The number of keys it would be made for.
    pub keys: u64,
    /// The expected rate when it holds them.
    pub rate: f64,
    /// The size of its body.
    pub bytes: u64,
    /// Its size for each of them.
    pub bits_per_key: f64,
    /// Zeros.
    pub reserved: [u64; 4],
}

fn give(plan: *mut Plan, of: Result<tamis::Plan, tamis::Error>) -> Result<(), Failure> {
    let of = of?;
    // SAFETY: callers keep what tamis.h says.
    *unsafe { write(plan, "plan")? } = Plan {
        kind: of.kind() as u32,
        hashes: of.hashes(),
        keys: of.keys(),
        rate: of.rate(),
        bytes: of.bytes(),
        bits_per_key: of.bits_per_key(),
        reserved: [0; 4],
    };
    Ok(())
}

/// The smallest filter of a kind (tamis_kind) for so many keys at no more than this rate: its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_plan_size(
    kind: c_int,
    keys: u64,
    rate: f64,
    plan: *mut Plan,
) -> c_int {
    status(|| give(plan, tamis::Plan::for_rate(known_kind(kind)?, keys, rate)))
}

/// The filter of a kind within so many bytes that gives so many keys the best rate: its rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_plan_rate(
    kind: c_int,
    keys: u64,
    bytes: u64,
    plan: *mut Plan,
) -> c_int {
    status(|| give(plan, tamis::Plan::for_size(known_kind(kind)?, keys, bytes)))
}

/// The filter of a kind within so many bytes that holds the most keys at no more than this rate: how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_plan_keys(
    kind: c_int,
    rate: f64,
    bytes: u64,
    plan: *mut Plan,
) -> c_int {
    status(|| {
        give(
            plan,
            tamis::Plan::for_rate_in_size(known_kind(kind)?, rate, bytes),
        )
    })
}
