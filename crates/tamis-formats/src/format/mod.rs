//! One file per format: reads its bytes and creates its empty filters. Other
//! code knows no offsets.

pub(crate) mod abloom;
pub(crate) mod bip37;
pub(crate) mod bitmap;
pub(crate) mod bits_and_blooms;
pub(crate) mod cassandra;
pub(crate) mod dcso;
pub(crate) mod fastbloom;
pub(crate) mod fastbloom_rs;
pub(crate) mod fastfilter;
pub(crate) mod guava;
pub(crate) mod npm;
pub(crate) mod npm_bloomfilter;
pub(crate) mod orc;
pub(crate) mod parquet;
pub(crate) mod poppy;
pub(crate) mod pybloom_live;
pub mod pybloomfilter;
pub(crate) mod pyprobables;
pub(crate) mod rbloom;
pub(crate) mod redis;
pub(crate) mod redisson;
pub(crate) mod spark;
pub(crate) mod sst;
pub(crate) mod valkey;
pub(crate) mod valkey_chain;

use crate::Error;

/// More than any real filter has; keeps a forged number from making look-ups
/// slow.
pub(crate) const MOST_HASHES: u64 = 1024;

/// A computed size as an integer, rounded up.
pub(crate) fn sized(size: f64, most: u64) -> Result<u64, Error> {
    if size.is_finite() && size <= most as f64 {
        return Ok((size.ceil() as u64).max(1));
    }
    Err(Error::Parameter {
        what: "size",
        expected: "no more than the format can number",
        got: format!("{size:e}"),
    })
}

/// A file's first bytes followed by zeros, if there is enough memory. The zeros
/// don't take memory until they are written.
pub(crate) fn with_zeros(start: &[u8], zeros: u64) -> Result<Vec<u8>, Error> {
    let len = usize::try_from(zeros).ok();
    let len = len.and_then(|zeros| start.len().checked_add(zeros));
    let len = len.filter(|len| Vec::<u8>::new().try_reserve_exact(*len).is_ok());
    let len = len.ok_or_else(|| Error::Parameter {
        what: "size",
        expected: "no more than there is memory for",
        got: format!("{zeros} bytes"),
    })?;
    let mut file = vec![0; len];
    file[..start.len()].copy_from_slice(start);
    Ok(file)
}

/// More bits than any format has; sums with it don't overflow.
pub(crate) const MOST_BITS: u64 = 1 << 48;
