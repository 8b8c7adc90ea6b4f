//! The record of a filter in Redis, and behind it the description of a layer.

use tamis_redis::check_record;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn redis_record(data: &[u8]) {
    check_record(data);
    if let Some(bytes) = mended_record(data) {
        check_record(&bytes);
    }
}

/// The bytes of a record in Redis with right magic, versions and checksums, in
/// it and in its header.
fn mended_record(data: &[u8]) -> Option<Vec<u8>> {
    if data.len() < 168 {
        return None;
    }
    let mut bytes = data.to_vec();
    bytes[..8].copy_from_slice(b"TAMISRED");
    bytes[8..16].copy_from_slice(&2u64.to_le_bytes());
    bytes[24..32].fill(0);
    let header = &mut bytes[32..160];
    header[..8].copy_from_slice(b"TAMIS\r\n\x1a");
    header[8..10].copy_from_slice(&1u16.to_le_bytes());
    let header_sum = xxh3_64(&header[..88]);
    header[88..96].copy_from_slice(&header_sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..160]);
    bytes[160..168].copy_from_slice(&sum.to_le_bytes());
    bytes[24] = data[24] % 3;
    Some(bytes)
}
