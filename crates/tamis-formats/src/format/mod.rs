//! One file a format: how its bytes are read, and how an empty filter of it is
//! made. Nothing else knows an offset.

pub(crate) mod abloom;
pub(crate) mod bip37;
pub(crate) mod bits_and_blooms;
pub(crate) mod cassandra;
pub(crate) mod dcso;
pub(crate) mod fastbloom;
pub(crate) mod fastfilter;
pub(crate) mod guava;
pub(crate) mod npm;
pub(crate) mod orc;
pub(crate) mod parquet;
pub(crate) mod poppy;
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

/// No real filter has more; a forged number must not make a look-up last.
pub(crate) const MOST_HASHES: u64 = 1024;

/// Whether text is JSON that has all these words near its beginning: a document
/// of other people's is not read as a whole to be refused.
pub(crate) fn json_begins(text: &[u8], words: &[&str]) -> bool {
    let start = &text[..text.len().min(512)];
    let has = |word: &&str| start.windows(word.len()).any(|at| at == word.as_bytes());
    start.first() == Some(&b'{') && words.iter().all(has)
}

/// A computed size as a number, rounded up.
pub(crate) fn sized(size: f64, most: u64) -> Result<u64, Error> {
    match size.is_finite() && size <= most as f64 {
        true => Ok((size.ceil() as u64).max(1)),
        false => Err(Error::Parameter {
            what: "size",
            expected: "no more than the format can number",
            got: format!("{size:e}"),
        }),
    }
}

/// A file's first bytes and zeros behind them, if there is memory for them. Of
/// the zeros' memory nothing is taken before they are written.
pub(crate) fn with_zeros(start: &[u8], zeros: u64) -> Result<Vec<u8>, Error> {
    let len = usize::try_from(zeros).ok();
    let len = len.and_then(|zeros| start.len().checked_add(zeros));
    let len = len.filter(|len| Vec::<u8>::new().try_reserve_exact(*len).is_ok());
    let mut file = vec![
        0;
        len.ok_or_else(|| Error::Parameter {
            what: "size",
            expected: "no more than there is memory for",
            got: format!("{zeros} bytes"),
        })?
    ];
    file[..start.len()].copy_from_slice(start);
    Ok(file)
}

/// No format numbers more bits than this, and no sum with it overflows.
pub(crate) const MOST_BITS: u64 = 1 << 48;
