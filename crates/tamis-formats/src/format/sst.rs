//! The filter in a table of LevelDB or RocksDB: found through the file's footer
//! and the metaindex block that it names.

use crate::about::{About, Read};
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::{Filter, Opened};
use crate::hash::xxph3::xxph3_64;
use crate::plain::{Plain, keys_by_fill};
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::ops::Range;
use tamis::internals::raw::{Cell, Explanation, Joined, Look};

/// Its keys are user keys, without sequence numbers.
pub(crate) const LEVELDB: About = about(&LEVELDB_MAGIC, read_leveldb);
pub(crate) const ROCKSDB: About = about(&ROCKSDB_MAGIC, read_rocksdb);

const fn about(magic: &'static [u8; 8], read: Read) -> About {
    About {
        end: magic,
        read_only: Some("the store writes a new one with every table"),
        ..About::new(&[Keys::Utf8], read)
    }
}

const LEVELDB_MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();
const ROCKSDB_MAGIC: [u8; 8] = 0x88e2_41b7_85f4_cff7_u64.to_le_bytes();
const LEVELDB_FILTER: &[u8] = b"filter.leveldb.BuiltinBloomFilter2";
const ROCKSDB_FILTER: &[u8] = b"fullfilter.";
/// After every block: its compression and a checksum.
const BLOCK_TRAILER: u64 = 5;
const LINE: u64 = 64;

/// The filters of a LevelDB table, each for some of its blocks.
#[derive(Clone, Debug)]
struct LevelDb {
    parts: Vec<Plain>,
    /// Whether some filters have a newer version: they may have any key.
    has_unknown: bool,
}

/// The filter of a RocksDB table.
#[derive(Clone, Debug)]
struct RocksDb {
    lines: Bits,
    probes: u32,
}

/// The position of a block.
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

    /// The range of the block, which must not be compressed.
    fn block(&self, format: Format, file: View<'_>) -> Result<Range<usize>, Error> {
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
                match file.get(end) {
                    0 => Ok(self.at as usize..end),
                    kind => corrupt("compression of a block", &"none (0)", kind.into()),
                }
            }
        }
    }
}

fn read_leveldb(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    const FOOTER: usize = 48;
    const FORMAT: Format = Format::LevelDb;
    let footer = footer::<FOOTER>(FORMAT, file, &LEVELDB_MAGIC)?;
    let blocks = Handle::read(&mut Fields::new(FORMAT, &footer[..]))?;
    let filter = find(FORMAT, file, &blocks, |name| name == LEVELDB_FILTER)?;
    let block = filter.block(FORMAT, file)?;
    // Filters, the offset of each, the offset of that list, and log2 of the
    // bytes of data that share one.
    let body = file.read(block.clone());
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
    let (mut parts, mut has_unknown) = (Vec::new(), false);
    for pair in offsets.windows(2) {
        let Some((hashes, bits)) = body
            .get(pair[0]..pair[1])
            .map(|filter| filter.split_last())
            .ok_or_else(|| corrupt("filter", &"one within its block", pair[0]))?
        else {
            continue; // for blocks without keys
        };
        match (*hashes, bits.len() as u64) {
            (31.., _) => has_unknown = true,
            (_, 0) | (0, _) => {}
            (hashes, bytes) => {
                let bits = Bits::low(block.start + pair[0], bytes * 8);
                let hashes = hashes.into();
                parts.push(Plain::new(bits, Probe::LevelDb { hashes }));
            }
        }
    }
    Ok(LevelDb { parts, has_unknown }.into())
}

/// The last bytes of a file that ends with this number.
fn footer<const N: usize>(
    format: Format,
    file: View<'_>,
    magic: &[u8; 8],
) -> Result<[u8; N], Error> {
    let footer = file
        .last_array()
        .filter(|end: &[u8; N]| end.ends_with(magic));
    let expected = format_args!("{format}'s magic number");
    footer.ok_or_else(|| Error::corrupt(format, "end", expected, "another"))
}

fn read_rocksdb(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    const FOOTER: usize = 53;
    const FORMAT: Format = Format::RocksDb;
    let footer = footer::<FOOTER>(FORMAT, file, &ROCKSDB_MAGIC)?;
    let version = u32::from_le_bytes([footer[41], footer[42], footer[43], footer[44]]);
    let mut fields = Fields::new(FORMAT, &footer[..]);
    fields.u8("kind of sums")?;
    let blocks = match version {
        1..=5 => Handle::read(&mut fields)?,
        // The metaindex block is right before the footer.
        6.. => {
            fields.skip("footer's sums", 12)?;
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
    let Some([kind, implementation, probes, ..]) = file.slice(block.clone()).last_array::<5>()
    else {
        return corrupt("filter", "at least 5 bytes", block.len() as u8);
    };
    if kind != 0xFF {
        let expected = match kind {
            0xFE => "Bloom's (a Ribbon filter is not read here)",
            _ => "format_version 5 or later (an older Bloom filter is not read here)",
        };
        return corrupt("filter", expected, kind);
    }
    if implementation != 0 || probes >> 5 != 0 {
        return corrupt("filter", "lines of 64 bytes", probes);
    }
    let len = (block.len() - 5) as u64;
    if !len.is_multiple_of(LINE) || len == 0 || !(1..=30).contains(&(probes & 31)) {
        return corrupt("filter", "whole lines and 1 to 30 probes", probes & 31);
    }
    Ok(RocksDb {
        lines: Bits::low(block.start, len * 8),
        probes: (probes & 31).into(),
    }
    .into())
}

/// The entry with this name in the metaindex block.
fn find(
    format: Format,
    file: View<'_>,
    blocks: &Handle,
    is_it: impl Fn(&[u8]) -> bool,
) -> Result<Handle, Error> {
    let block = file.read(blocks.block(format, file)?);
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
    while fields.left() > 0 {
        let shared = varint(&mut fields, "entry")?;
        let own = varint(&mut fields, "entry")?;
        let len = varint(&mut fields, "entry")?;
        if shared > name.len() as u64 {
            return Err(corrupt());
        }
        name.truncate(shared as usize);
        name.extend_from_slice(&fields.take("name", own)?);
        let value = fields.take("value", len)?;
        if is_it(&name) {
            return Handle::read(&mut Fields::new(format, &*value));
        }
    }
    Err(Error::corrupt(
        format,
        "filter",
        "a Bloom filter of the whole table or of its blocks",
        "none",
    ))
}

impl Filter for LevelDb {
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        self.has_unknown || self.parts.iter().any(|plain| plain.contains(file, key))
    }

    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let known = self.parts.iter().flat_map(|plain| plain.looks(file, key));
        let unknown = self.has_unknown.then_some(Look::Unknown);
        Explanation {
            joined: Joined::Layers,
            looks: known.chain(unknown).collect(),
        }
    }

    fn plains<'v>(&'v self, file: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        self.parts.iter().map(|plain| (plain, file)).collect()
    }

    fn rate(&self, file: View<'_>) -> f64 {
        if self.has_unknown {
            return 1.0;
        }
        let no = self.parts.iter().map(|plain| 1.0 - plain.rate(file));
        1.0 - no.product::<f64>()
    }
}

impl RocksDb {
    /// The key's line, and its bits in it.
    fn line_and_bits(&self, key: &[u8]) -> (u64, impl Iterator<Item = u64>) {
        let hash = xxph3_64(key);
        let line = ((hash & 0xFFFF_FFFF) * (self.lines.len / (LINE * 8))) >> 32;
        let mut x = (hash >> 32) as u32;
        let bits = (0..self.probes).map(move |_| {
            let bit = u64::from(x >> 23);
            x = x.wrapping_mul(0x9e37_79b9);
            bit
        });
        (line, bits)
    }
}

impl Filter for RocksDb {
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let (line, mut bits) = self.line_and_bits(key);
        bits.all(|bit| self.lines.get(file, line * LINE * 8 + bit))
    }

    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let (line, bits) = self.line_and_bits(key);
        let cell = |at| Cell {
            line: Some(line),
            at,
            value: self.lines.get(file, line * LINE * 8 + at).into(),
        };
        Explanation::of(Look::Cells {
            cells: bits.map(cell).collect(),
            all: Vec::new(),
        })
    }

    fn hash_name(&self, _: View<'_>) -> &'static str {
        "xxph3-64"
    }

    fn bits(&self, _: View<'_>) -> u64 {
        self.lines.len
    }

    fn hashes(&self, _: View<'_>) -> Option<u64> {
        None
    }

    fn fill(&self, file: View<'_>) -> f64 {
        self.lines.fill(file)
    }

    fn rate(&self, file: View<'_>) -> f64 {
        let lines = self.lines.chunks(LINE * 8);
        let count = lines.len() as f64;
        let rates = lines.map(|line| line.fill(file).powi(self.probes as i32));
        rates.sum::<f64>() / count
    }

    fn key_count(&self, file: View<'_>) -> Option<f64> {
        let bits = self.lines.len as f64;
        keys_by_fill(self.lines.fill(file), bits, self.probes.into())
    }
}
