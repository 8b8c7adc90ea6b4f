//! The filter in a table of LevelDB or RocksDB: found through the file's
//! footer and the block of blocks that it names.

use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::hash::xxph3::xxph3_64;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::ops::Range;

/// Its keys are bytes: users' keys, without sequence numbers.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

pub(crate) const LEVELDB_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
pub(crate) const ROCKSDB_MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const LEVELDB_FILTER: &[u8] = b"filter.leveldb.BuiltinBloomFilter2";
const ROCKSDB_FILTER: &[u8] = b"fullfilter.";
/// Behind every block: its compression and a sum.
const BLOCK_TRAILER: u64 = 5;
const LINE: u64 = 64;

/// The filters of a table, one for some of its blocks or one for all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Table {
    LevelDb(Vec<Part>),
    RocksDb { lines: Bits, probes: u32 },
}

/// LevelDB's filter of some blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Filter(Plain),
    /// From a newer version: it may have any key.
    Unknown,
}

/// The magic number that a file ends with.
pub(crate) fn magic(file: &[u8]) -> Option<u64> {
    file.last_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Where a block lies.
struct Handle {
    at: u64,
    len: u64,
}

fn varint(fields: &mut Fields<'_>, what: &'static str) -> Result<u64, Error> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = fields.u8(what)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(fields.corrupt(what, "a number of 64 bits", "more"))
}

impl Handle {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            at: varint(fields, "place of a block")?,
            len: varint(fields, "length of a block")?,
        })
    }

    /// The block, which must not be compressed.
    fn block(&self, format: Format, file: &[u8]) -> Result<Range<usize>, Error> {
        let corrupt = |what, expected: &dyn std::fmt::Display, got: u64| {
            Err(Error::corrupt(format, what, expected, got))
        };
        let end = self
            .at
            .checked_add(self.len)
            .and_then(|end| end.checked_add(BLOCK_TRAILER));
        match end.filter(|end| *end <= file.len() as u64) {
            None => corrupt("block", &"one within the file", self.at),
            Some(end) => {
                let end = (end - BLOCK_TRAILER) as usize;
                match file[end] {
                    0 => Ok(self.at as usize..end),
                    kind => corrupt("compression of a block", &"none (0)", kind.into()),
                }
            }
        }
    }
}

pub(crate) fn read_leveldb(file: &[u8]) -> Result<Table, Error> {
    const FOOTER: usize = 48;
    const FORMAT: Format = Format::LevelDb;
    let Some(footer) = file
        .last_chunk::<FOOTER>()
        .filter(|_| magic(file) == Some(LEVELDB_MAGIC))
    else {
        return Err(Error::corrupt(
            FORMAT,
            "end",
            "LevelDB's magic number",
            "another",
        ));
    };
    let blocks = Handle::read(&mut Fields::new(FORMAT, footer))?;
    let filter = find(FORMAT, file, &blocks, |name| name == LEVELDB_FILTER)?;
    let block = filter.block(FORMAT, file)?;
    // Filters, where each begins, where that list begins, and log2 of the
    // bytes of data that share one.
    let body = &file[block.clone()];
    let corrupt = |what, expected: &dyn std::fmt::Display, got: usize| {
        Error::corrupt(FORMAT, what, expected, got)
    };
    let Some((list, end)) = body.split_last_chunk::<5>() else {
        return Err(corrupt("filter block", &"at least 5 bytes", body.len()));
    };
    let starts = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
    let Some(list) = list.get(starts..) else {
        return Err(corrupt("filter block", &"a list within it", starts));
    };
    let mut offsets: Vec<usize> = list
        .as_chunks::<4>()
        .0
        .iter()
        .map(|at| u32::from_le_bytes(*at) as usize)
        .collect();
    offsets.push(starts);
    let mut parts = Vec::new();
    for pair in offsets.windows(2) {
        let Some((hashes, bits)) = body
            .get(pair[0]..pair[1])
            .map(|filter| filter.split_last())
            .ok_or_else(|| corrupt("filter", &"one within its block", pair[0]))?
        else {
            continue; // of blocks without keys
        };
        parts.push(match (*hashes, bits.len()) {
            (31.., _) => Part::Unknown,
            (_, 0) | (0, _) => continue,
            (hashes, bytes) => {
                let bits = Bits {
                    at: block.start + pair[0],
                    len: bytes as u64 * 8,
                    order: Order::Low,
                };
                let hashes = hashes.into();
                Part::Filter(Plain::new(bits, Probe::LevelDb { hashes }))
            }
        });
    }
    Ok(Table::LevelDb(parts))
}

pub(crate) fn read_rocksdb(file: &[u8]) -> Result<Table, Error> {
    const FOOTER: usize = 53;
    const FORMAT: Format = Format::RocksDb;
    let Some(footer) = file
        .last_chunk::<FOOTER>()
        .filter(|_| magic(file) == Some(ROCKSDB_MAGIC))
    else {
        return Err(Error::corrupt(
            FORMAT,
            "end",
            "RocksDB's magic number",
            "another",
        ));
    };
    let version = u32::from_le_bytes([footer[41], footer[42], footer[43], footer[44]]);
    let mut fields = Fields::new(FORMAT, footer);
    fields.u8("kind of sums")?;
    let blocks = match version {
        1..=5 => Handle::read(&mut fields)?,
        // The block of blocks lies right before the footer.
        6.. => {
            fields.take("footer's sums", 12)?;
            let len = u64::from(fields.u32_le("length of a block")?);
            let end = (file.len() - FOOTER) as u64;
            let at = end.checked_sub(len + BLOCK_TRAILER);
            let at =
                at.ok_or_else(|| fields.corrupt("length of a block", "less than the file's", len))?;
            Handle { at, len }
        }
        _ => return Err(fields.corrupt("version", "at least 1", version)),
    };
    let filter = find(FORMAT, file, &blocks, |name| {
        name.starts_with(ROCKSDB_FILTER)
    })?;
    let block = filter.block(FORMAT, file)?;
    let corrupt = |what, expected: &str, got: u8| Err(Error::corrupt(FORMAT, what, expected, got));
    let Some((lines, [kind, implementation, probes, ..])) =
        file[block.clone()].split_last_chunk::<5>()
    else {
        return corrupt("filter", "at least 5 bytes", block.len() as u8);
    };
    match kind {
        0xFF => {}
        0xFE => {
            return corrupt(
                "filter",
                "Bloom's (a Ribbon filter is not read here)",
                *kind,
            );
        }
        _ => {
            return corrupt(
                "filter",
                "format_version 5 or later (an older Bloom filter is not read here)",
                *kind,
            );
        }
    }
    if *implementation != 0 || probes >> 5 != 0 {
        return corrupt("filter", "lines of 64 bytes", *probes);
    }
    let len = lines.len() as u64;
    if !len.is_multiple_of(LINE) || len == 0 || !(1..=30).contains(&(probes & 31)) {
        return corrupt("filter", "whole lines and 1 to 30 probes", probes & 31);
    }
    Ok(Table::RocksDb {
        lines: Bits {
            at: block.start,
            len: len * 8,
            order: Order::Low,
        },
        probes: (probes & 31).into(),
    })
}

/// The entry of the block of blocks whose name is the one.
fn find(
    format: Format,
    file: &[u8],
    blocks: &Handle,
    is_it: impl Fn(&[u8]) -> bool,
) -> Result<Handle, Error> {
    let block = &file[blocks.block(format, file)?];
    let corrupt = || {
        Error::corrupt(
            format,
            "block of blocks",
            "entries and where they begin",
            "something else",
        )
    };
    let (entries, count) = block.split_last_chunk::<4>().ok_or_else(corrupt)?;
    let restarts = (u32::from_le_bytes(*count) as usize).checked_mul(4);
    let end = restarts
        .and_then(|bytes| entries.len().checked_sub(bytes))
        .ok_or_else(corrupt)?;
    let mut fields = Fields::new(format, &entries[..end]);
    let mut name = Vec::new();
    while !fields.rest().is_empty() {
        let shared = varint(&mut fields, "entry")?;
        let own = varint(&mut fields, "entry")?;
        let len = varint(&mut fields, "entry")?;
        if shared > name.len() as u64 {
            return Err(corrupt());
        }
        name.truncate(shared as usize);
        name.extend_from_slice(fields.take("name", own)?);
        let value = fields.take("value", len)?;
        if is_it(&name) {
            return Handle::read(&mut Fields::new(format, value));
        }
    }
    Err(Error::corrupt(
        format,
        "filter",
        "a Bloom filter of the whole table or of its blocks",
        "none",
    ))
}

impl Table {
    pub(crate) fn contains(&self, file: &[u8], key: &[u8]) -> bool {
        match self {
            Self::LevelDb(parts) => parts.iter().any(|part| match part {
                Part::Filter(plain) => plain.contains(file, key),
                Part::Unknown => true,
            }),
            Self::RocksDb { lines, probes } => {
                let hash = xxph3_64(key);
                let line = ((hash & 0xFFFF_FFFF) * (lines.len / (LINE * 8))) >> 32;
                let mut x = (hash >> 32) as u32;
                (0..*probes).all(|_| {
                    let bit = line * LINE * 8 + u64::from(x >> 23);
                    x = x.wrapping_mul(0x9e37_79b9);
                    lines.get(file, bit)
                })
            }
        }
    }
}

impl Table {
    /// The filters that are plain ones.
    pub(crate) fn plains(&self) -> impl Iterator<Item = &Plain> {
        let parts = match self {
            Self::LevelDb(parts) => &parts[..],
            Self::RocksDb { .. } => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Filter(plain) => Some(plain),
            Part::Unknown => None,
        })
    }

    pub(crate) fn bits(&self) -> u64 {
        match self {
            Self::RocksDb { lines, .. } => lines.len,
            Self::LevelDb(_) => self.plains().map(|plain| plain.bits.len).sum(),
        }
    }

    /// The share of bits that are set.
    pub(crate) fn fill(&self, file: &[u8]) -> f64 {
        let ones: u64 = match self {
            Self::RocksDb { lines, .. } => lines.ones(file),
            Self::LevelDb(_) => self.plains().map(|plain| plain.bits.ones(file)).sum(),
        };
        ones as f64 / self.bits().max(1) as f64
    }

    /// How often a key that the table does not have is taken for one.
    pub(crate) fn rate(&self, file: &[u8]) -> f64 {
        match self {
            Self::LevelDb(parts) => {
                let no = parts.iter().map(|part| match part {
                    Part::Filter(plain) => 1.0 - plain.rate(file),
                    Part::Unknown => 0.0,
                });
                1.0 - no.product::<f64>()
            }
            Self::RocksDb { lines, probes } => {
                let count = lines.len / (LINE * 8);
                let rates = (0..count).map(|line| {
                    let line = Bits {
                        at: lines.at + (line * LINE) as usize,
                        len: LINE * 8,
                        ..*lines
                    };
                    (line.ones(file) as f64 / line.len as f64).powi(*probes as i32)
                });
                rates.sum::<f64>() / count as f64
            }
        }
    }

    /// The number of keys, estimated from how many bits are set.
    pub(crate) fn keys(&self, file: &[u8]) -> Option<f64> {
        match self {
            Self::LevelDb(_) => self.plains().map(|plain| plain.keys(file)).sum(),
            Self::RocksDb { lines, probes } => {
                let unset = (-self.fill(file)).ln_1p();
                let keys = -unset * lines.len as f64 / f64::from(*probes);
                keys.is_finite().then_some(keys)
            }
        }
    }
}
