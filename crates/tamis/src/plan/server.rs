//! The memory of filters on a Redis server, computed: the sum of `MEMORY USAGE` over all their
//! keys. `tamis-redis` creates the strings.
//!
//! Redis and Valkey use jemalloc, whose blocks have four sizes per doubling. So a string can take
//! up to a quarter more than its length.

use crate::kind::Kind;
use crate::plan::Plan;

/// Lines in one string of a body: 4 MiB minus four lines, so that the four lines of a counting
/// filter's key are never split. With the foot and Redis's own few bytes it fills a 4 MiB block of
/// the allocator; the next size is 5 MiB.
pub const CHUNK_LINES: u64 = (1 << 16) - 4;
/// Bytes of a line.
pub const LINE: u64 = 64;
/// Bytes after the lines of a string.
pub const FOOT: u64 = 10;

/// A server's metadata for a long string, and its terminating byte.
const STRING: u64 = 10;
/// The entry, the object and the name of a chunk.
const ENTRY: u64 = 72;
/// The record, its twin, its witness and the mark.
const RECORDS: u64 = 856;
/// The description of a growing filter's layers.
const LAYERS: u64 = 376;
/// A module's memory for a filter besides its bits.
const MODULE_VALUE: u64 = 544;
/// `SETBIT` doubles a string that it extends, but adds no more than this.
const MOST_SPARE: u64 = 1 << 20;

/// The size of the allocator's block for this many bytes.
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

/// A filter in plain strings, as created by `RedisFilter::create`.
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

/// A filter whose bits a module holds in one block.
///
/// ```
/// assert_eq!(tamis::internals::plan::server::in_module(3_240_000), 3_670_560);
/// ```
pub const fn in_module(bytes: u64) -> u64 {
    allocated(bytes) + MODULE_VALUE
}

/// A string that `SETBIT` extended to this length, as for Redisson's filters: minimum and maximum.
/// The spare part depends on the order of the bits.
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
