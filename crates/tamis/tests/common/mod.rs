//! The header's fields according to docs/format.md, for tests that write bytes themselves. Not
//! taken from the library, because they check it.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod reader;
pub(crate) mod windows;

use std::ops::Range;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const MAGIC: Range<usize> = 0..8;
pub(crate) const VERSION: Range<usize> = 8..10;
pub(crate) const KIND: Range<usize> = 10..11;
pub(crate) const HASH: Range<usize> = 11..12;
pub(crate) const FLAGS: Range<usize> = 12..16;
pub(crate) const CAPACITY: Range<usize> = 16..24;
pub(crate) const RATE: Range<usize> = 24..32;
pub(crate) const SECRET: Range<usize> = 32..48;
pub(crate) const KEY_CHECK: Range<usize> = 48..56;
pub(crate) const SHAPE_1: Range<usize> = 56..64;
pub(crate) const SHAPE_2A: Range<usize> = 64..68;
pub(crate) const SHAPE_2B: Range<usize> = 68..72;
pub(crate) const SHAPE_3: Range<usize> = 72..80;
pub(crate) const BODY_LEN: Range<usize> = 80..88;
pub(crate) const HEADER_CHECKSUM: Range<usize> = 88..96;
pub(crate) const KEYS: Range<usize> = 96..104;
pub(crate) const BODY_CHECKSUM: Range<usize> = 104..112;
pub(crate) const BOOT: Range<usize> = 112..128;
pub(crate) const BODY: usize = 128;

/// Corrects the header's checksum.
pub(crate) fn reseal_header(bytes: &mut [u8]) {
    let sum = xxh3_64(&bytes[..HEADER_CHECKSUM.start]);
    bytes[HEADER_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}

/// Corrects the body's checksum.
pub(crate) fn reseal_body(bytes: &mut [u8]) {
    let keys = u64::from_le_bytes(bytes[KEYS].try_into().unwrap());
    let sum = xxh3_64_with_seed(&bytes[BODY..], keys);
    bytes[BODY_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}
