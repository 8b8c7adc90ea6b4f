//! What filters take of the memory of a Redis server, computed: what `MEMORY USAGE`
//! says of all their keys together. `tamis-redis` makes the strings.
//!
//! Redis and Valkey are built with jemalloc, whose blocks have four sizes per
//! doubling. So a string can take up to a quarter more than it is long.

use crate::kind::Kind;
use crate::plan::Plan;

/// Lines of a string of a body: 4 MiB but four lines, so that the four of a counting
/// filter's key are never apart. With its foot and Redis's own few bytes that
/// is a block of 4 MiB to its allocator, whose next size is 5 MiB.
pub const CHUNK_LINES: u64 = (1 << 16) - 4;
/// Bytes of a line.
pub const LINE: u64 = 64;
/// Bytes behind the lines of a string.
pub const FOOT: u64 = 10;

/// What a server notes of a long string, and the byte that ends it.
const STRING: u64 = 10;
/// The entry, the object and the name of a chunk.
const ENTRY: u64 = 72;
/// The record, its twin, its witness and the mark.
const RECORDS: u64 = 856;
/// What describes the layers of a growing filter.
const LAYERS: u64 = 376;
/// What a module has of a filter beside its bits.
const MODULE_VALUE: u64 = 544;
/// A string that `SETBIT` makes longer gets as much again, but no more than this.
const MOST_SPARE: u64 = 1 << 20;

/// The block that a server's allocator gives for so many bytes.
///
/// ```
/// use tamis::internals::plan::server::allocated;
/// assert_eq!(allocated(100), 112);
/// assert_eq!(allocated(1_400_000), 1_572_864);
/// ```
pub const fn allocated(bytes: u64) -> u64 {
    let step = match bytes {
        0..=128 => 16,
        _ => 1 << (bytes - 1).ilog2().saturating_sub(2),
    };
    bytes.next_multiple_of(step)
}

/// A filter in plain strings, as `RedisFilter::create` makes it.
///
/// ```
/// use tamis::{Kind, Plan};
/// let plan = Plan::one_line(Kind::Blocked, 1_000_000, 1e-5)?;
/// let memory = tamis::internals::plan::server::of_strings(&plan);
/// assert!(plan.bytes() < memory && memory < plan.bytes() * 5 / 4);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn of_strings(plan: &Plan) -> u64 {
    let lines = plan.bytes().div_ceil(LINE);
    let chunk = |lines: u64| allocated(lines * LINE + FOOT + STRING) + ENTRY;
    let full = lines / CHUNK_LINES;
    let last = match lines % CHUNK_LINES {
        0 => 0,
        rest => chunk(rest),
    };
    let layers = match plan.kind() {
        Kind::Growing => LAYERS,
        _ => 0,
    };
    full.saturating_mul(chunk(CHUNK_LINES)) + last + RECORDS + layers
}

/// A filter whose bits a module has in one block.
///
/// ```
/// assert_eq!(tamis::internals::plan::server::in_module(3_240_000), 3_670_560);
/// ```
pub const fn in_module(bytes: u64) -> u64 {
    allocated(bytes) + MODULE_VALUE
}

/// A string that `SETBIT` has made as long as this, as Redisson's filters: at
/// least and at most. How much is spare is up to the order of the bits.
///
/// ```
/// let (least, most) = tamis::internals::plan::server::of_bitmap(3_000_000);
/// assert!(least < 3_150_000 && most < 4_200_000);
/// ```
pub fn of_bitmap(bytes: u64) -> (u64, u64) {
    let spare = bytes.min(MOST_SPARE);
    let of = |bytes| allocated(bytes + STRING) + ENTRY + REDISSON_CONFIG;
    (of(bytes), of(bytes + spare))
}

/// The hash with a Redisson filter's numbers.
const REDISSON_CONFIG: u64 = 152;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that jemalloc documents.
    #[test]
    fn blocks_are_the_allocator_s() {
        for (bytes, block) in [
            (1, 16),
            (16, 16),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (2049, 2560),
            (16 << 10, 16 << 10),
            ((16 << 10) + 1, 20 << 10),
            ((4 << 20) + 1, 5 << 20),
        ] {
            assert_eq!(allocated(bytes), block, "{bytes}");
        }
    }
}
