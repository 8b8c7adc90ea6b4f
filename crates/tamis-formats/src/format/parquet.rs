//! Parquet's split-block filters: those in a file, found through its footer;
//! single filters, in the same form as in a file; and filters added to a file
//! without any, by writing a new footer after the data.

use crate::about::{About, OtherKeys};
use crate::bits::unite;
use crate::bytes::{Bytes, View};
use crate::filter::{Filter, Opened, same};
use crate::plain::keys_by_fill;
use crate::thrift::{I32, I64, Struct, Value};
use crate::{Error, Format, Keys};
use std::borrow::Cow;
use std::ops::Range;
use tamis::internals::raw::{Cell, Explanation, Joined, Look};

const FORMAT: Format = Format::Parquet;
const MAGIC: &[u8; 4] = b"PAR1";
/// How values of all types become keys.
const KEYS: &[Keys] = &[
    Keys::Utf8,
    Keys::Int32,
    Keys::Int64,
    Keys::Float32,
    Keys::Float64,
];

pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Untyped,
    start: MAGIC,
    ..About::new(KEYS, read)
};

const BLOCK: u64 = 32;
/// More than the header of any filter.
const MOST_HEADER: usize = 4096;
/// Readers refuse larger filters.
const MOST_BYTES: u64 = 128 << 20;
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

// Field numbers of the footer's structs.
const FILE_ROW_GROUPS: i16 = 4;
const ROW_GROUP_COLUMNS: i16 = 1;
const CHUNK_META: i16 = 3;
const META_TYPE: i16 = 1;
const META_PATH: i16 = 3;
const META_FILTER_OFFSET: i16 = 14;
const META_FILTER_LENGTH: i16 = 15;

/// The blocks of a split-block filter, as a range of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Blocks(Range<usize>);

impl Blocks {
    /// Reads the header before the blocks.
    fn read(file: View<'_>, at: usize) -> Result<Self, Error> {
        let refuse = |expected: &str, got: &dyn std::fmt::Display| {
            Error::corrupt(FORMAT, "filter's header", expected, got)
        };
        let start = file.read(at..file.len().min(at + MOST_HEADER));
        let (header, rest) =
            Struct::read(&start).ok_or_else(|| refuse("a BloomFilterHeader", &"something else"))?;
        let start = at + start.len() - rest.len();
        let bytes = header
            .integer(1)
            .ok_or_else(|| refuse("a length", &"none"))?;
        // Algorithm, hash and compression are unions with one known member.
        for id in 2..=4 {
            match header.get(id) {
                Some(Value::Struct(union)) if union.get(1).is_some() => {}
                _ => return Err(refuse("split blocks, XXH64, uncompressed", &"others")),
            }
        }
        let len = u64::try_from(bytes)
            .ok()
            .filter(|len| *len >= BLOCK && len % BLOCK == 0);
        let len = len.ok_or_else(|| refuse("whole blocks of 32 bytes", &bytes))?;
        if len > (file.len() - start) as u64 {
            return Err(refuse("a length within the file", &len));
        }
        Ok(Self(start..start + len as usize))
    }

    /// Where the key's block begins, and its bit in each word.
    #[inline]
    fn block_and_bits(&self, key: &[u8]) -> (usize, [u32; 8]) {
        let hash = xxhash_rust::xxh64::xxh64(key, 0);
        let blocks = self.0.len() as u64 / BLOCK;
        let block = ((hash >> 32) * blocks) >> 32;
        let bits = SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27));
        (self.0.start + (block * BLOCK) as usize, bits)
    }

    #[inline]
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let (at, bits) = self.block_and_bits(key);
        let block: [u8; BLOCK as usize] = file.array(at).expect("blocks lie in the file");
        let mut words = block.as_chunks::<4>().0.iter().zip(bits);
        words.all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0)
    }

    /// The bits that [`contains`](Self::contains) reads.
    fn look(&self, file: View<'_>, key: &[u8]) -> Look {
        let (at, bits) = self.block_and_bits(key);
        let block: [u8; BLOCK as usize] = file.array(at).expect("blocks lie in the file");
        let words = (0..).zip(block.as_chunks::<4>().0).zip(bits);
        let cell = |((number, word), bit): ((u64, &[u8; 4]), u32)| Cell {
            line: Some((at - self.0.start) as u64 / BLOCK),
            at: number * 32 + u64::from(bit.trailing_zeros()),
            value: (u32::from_le_bytes(*word) & bit != 0).into(),
        };
        Look::Cells {
            cells: words.map(cell).collect(),
            all: Vec::new(),
        }
    }

    /// Adds a key; returns whether any bit was new.
    fn insert(&self, file: &mut [u8], key: &[u8]) -> bool {
        let (at, bits) = self.block_and_bits(key);
        let words = file[at..at + BLOCK as usize].as_chunks_mut::<4>().0;
        words.iter_mut().zip(bits).fold(false, |new, (word, bit)| {
            let before = u32::from_le_bytes(*word);
            *word = (before | bit).to_le_bytes();
            new | (before & bit == 0)
        })
    }

    /// ORs in another filter of the same size.
    fn union_with(&self, file: &mut [u8], other: &Self, more: View<'_>) -> Result<(), Error> {
        if self.0.len() != other.0.len() {
            return Err(Error::Unlike {
                what: "size",
                ours: format!("{} bytes", self.0.len()),
                theirs: format!("{} bytes", other.0.len()),
            });
        }
        unite(&mut file[self.0.clone()], more.slice(other.0.clone()));
        Ok(())
    }

    const fn bits(&self) -> u64 {
        8 * (self.0.end - self.0.start) as u64
    }

    /// The number of set bits.
    fn ones(&self, file: View<'_>) -> u64 {
        file.slice(self.0.clone()).ones()
    }

    /// The rate, from how full each block is.
    fn rate(&self, file: View<'_>) -> f64 {
        let blocks = file.read(self.0.clone());
        let rate = |block: &[u8]| {
            let words = block.as_chunks::<4>().0.iter();
            words
                .map(|word| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0)
                .product::<f64>()
        };
        let rates = blocks.chunks(BLOCK as usize).map(rate).sum::<f64>();
        rates / (self.0.len() as u64 / BLOCK) as f64
    }

    /// Estimates the keys: each sets one bit in every word of its block.
    fn keys(&self, file: View<'_>) -> Option<f64> {
        let bits = self.bits() as f64;
        keys_by_fill(self.ones(file) as f64 / bits, bits, 8.0)
    }
}

/// The filters of one column, row group by row group.
#[derive(Clone, Debug)]
struct Column {
    keys: &'static [Keys],
    /// The filters; a row group without a filter may have any key.
    groups: Vec<Option<Blocks>>,
}

/// The description of the filter of one column in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The number of the row group, from 0.
    pub row_group: usize,
    /// The column: its path, with dots.
    pub column: String,
    /// How its values become keys; `None` if its type can't have a filter.
    pub keys: Option<Keys>,
    /// The range of the filter, including its header; `None` if there is no
    /// filter.
    pub filter: Option<Range<usize>>,
    blocks: Option<Blocks>,
}

/// The footer of a file, and its position.
struct Footer<'a> {
    bytes: Cow<'a, [u8]>,
    at: usize,
}

impl<'a> Footer<'a> {
    fn read(file: View<'a>) -> Result<Self, Error> {
        let corrupt = |what, expected, got: &dyn std::fmt::Display| {
            Error::corrupt(FORMAT, what, expected, got)
        };
        if !file.starts_with(MAGIC) {
            return Err(corrupt("start", "PAR1", &"something else"));
        }
        let end = file.len().checked_sub(8).filter(|end| *end >= MAGIC.len());
        let (Some(end), Some([a, b, c, d, magic @ ..])) = (end, file.last_array::<8>()) else {
            return Err(corrupt("length", "at least 12 bytes", &file.len()));
        };
        if magic != *MAGIC {
            let expected = "PAR1 (an encrypted footer is not read here)";
            return Err(corrupt("end", expected, &"something else"));
        }
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let at = end.checked_sub(len).filter(|at| *at >= MAGIC.len());
        let at = at.ok_or_else(|| corrupt("footer", "one within the file", &len))?;
        let bytes = file.read(at..end);
        Ok(Self { bytes, at })
    }

    fn tree(&self) -> Result<Struct<'_>, Error> {
        match Struct::read(&self.bytes) {
            Some((tree, [])) => Ok(tree),
            _ => Err(Error::corrupt(
                FORMAT,
                "footer",
                "FileMetaData",
                "something else",
            )),
        }
    }
}

fn path(meta: &Struct<'_>) -> Option<String> {
    let Some(Value::List(_, _, parts)) = meta.get(META_PATH) else {
        return None;
    };
    let name = |part: &Value<'_>| match part {
        Value::Binary(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    };
    Some(
        parts
            .iter()
            .map(name)
            .collect::<Option<Vec<_>>>()?
            .join("."),
    )
}

/// How values of a physical type become keys.
const fn keys_of(physical: i64) -> Option<Keys> {
    match physical {
        1 => Some(Keys::Int32),
        2 => Some(Keys::Int64),
        4 => Some(Keys::Float32),
        5 => Some(Keys::Float64),
        6 | 7 => Some(Keys::Utf8),
        _ => None,
    }
}

/// All columns of all row groups of a Parquet file, with their filters.
///
/// ```
/// assert!(tamis_formats::parquet_chunks(b"no Parquet").is_err());
/// ```
pub fn chunks<'a>(file: impl Into<Bytes<'a>>) -> Result<Vec<Chunk>, Error> {
    chunks_of(file.into().view())
}

fn chunks_of(file: View<'_>) -> Result<Vec<Chunk>, Error> {
    let footer = Footer::read(file)?;
    let tree = footer.tree()?;
    let mut found = Vec::new();
    for (row_group, group) in tree.structs(FILE_ROW_GROUPS).enumerate() {
        for chunk in group.structs(ROW_GROUP_COLUMNS) {
            let Some(Value::Struct(meta)) = chunk.get(CHUNK_META) else {
                return Err(Error::corrupt(
                    FORMAT,
                    "column",
                    "its description",
                    "none (it is encrypted)",
                ));
            };
            let column = path(meta);
            let column =
                column.ok_or_else(|| Error::corrupt(FORMAT, "column", "a path", "none"))?;
            let blocks = match meta.integer(META_FILTER_OFFSET) {
                None => None,
                Some(at) => {
                    let within = usize::try_from(at).ok().filter(|at| *at < file.len());
                    let at = within.ok_or_else(|| {
                        Error::corrupt(FORMAT, "filter", "one within the file", at)
                    })?;
                    Some((at, Blocks::read(file, at)?))
                }
            };
            found.push(Chunk {
                row_group,
                column,
                keys: meta.integer(META_TYPE).and_then(keys_of),
                filter: blocks.as_ref().map(|(at, blocks)| *at..blocks.0.end),
                blocks: blocks.map(|(_, blocks)| blocks),
            });
        }
    }
    Ok(found)
}

/// Reads the filters of a column, or of the only one that has filters.
fn read(file: View<'_>, name: Option<&[u8]>) -> Result<Opened, Error> {
    // A single filter.
    if !file.starts_with(MAGIC) {
        let blocks = Blocks::read(file, 0)?;
        if blocks.0.end != file.len() {
            let expected = "blocks up to its end";
            return Err(Error::corrupt(FORMAT, "filter", expected, "more bytes"));
        }
        let groups = vec![Some(blocks)];
        return Ok(Column { keys: KEYS, groups }.into());
    }
    let chunks = chunks_of(file)?;
    let mut names: Vec<&str> = (chunks.iter())
        .filter(|chunk| chunk.blocks.is_some())
        .map(|chunk| chunk.column.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    if let Some(name) = name {
        names.retain(|column| column.as_bytes() == name);
    }
    let &[name] = &names[..] else {
        return Err(Error::Several {
            names: names.into_iter().map(str::to_owned).collect(),
        });
    };
    let of_column = || chunks.iter().filter(|chunk| chunk.column == name);
    let keys: &[Keys] = match of_column().find_map(|chunk| chunk.keys) {
        Some(Keys::Int32) => &[Keys::Int32],
        Some(Keys::Int64) => &[Keys::Int64],
        Some(Keys::Float32) => &[Keys::Float32],
        Some(Keys::Float64) => &[Keys::Float64],
        _ => &[Keys::Utf8],
    };
    let groups = of_column().map(|chunk| chunk.blocks.clone()).collect();
    Ok(Column { keys, groups }.into())
}

impl Column {
    fn filters(&self) -> impl Iterator<Item = &Blocks> {
        self.groups.iter().flatten()
    }

    /// The filter, if the file is a single one.
    fn only(&self, file: View<'_>) -> Option<&Blocks> {
        match &self.groups[..] {
            [Some(blocks)] if !file.starts_with(MAGIC) => Some(blocks),
            _ => None,
        }
    }
}

impl Filter for Column {
    fn keys(&self) -> Option<&'static [Keys]> {
        Some(self.keys)
    }

    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let may_have = |blocks: &Blocks| blocks.contains(file, key);
        let mut groups = self.groups.iter();
        groups.any(|group| group.as_ref().is_none_or(may_have))
    }

    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let look = |group: &Option<Blocks>| match group {
            Some(blocks) => blocks.look(file, key),
            None => Look::Unknown,
        };
        Explanation {
            joined: Joined::Layers,
            looks: self.groups.iter().map(look).collect(),
        }
    }

    fn hash_name(&self, _: View<'_>) -> &'static str {
        "xxh64"
    }

    fn read_only(&self, file: View<'_>) -> Option<&'static str> {
        let reason = "a file's filters describe its rows; a filter by itself takes keys";
        self.only(file).is_none().then_some(reason)
    }

    fn insert(&mut self, file: &mut Bytes<'_>, key: &[u8]) -> Result<bool, Error> {
        let blocks = self
            .only(file.view())
            .expect("a file's own filters have been refused");
        Ok(blocks.insert(file.to_mut(), key))
    }

    fn union_with(
        &mut self,
        file: &mut Bytes<'_>,
        other: &dyn Filter,
        more: View<'_>,
    ) -> Result<bool, Error> {
        let theirs = same(self, other).and_then(|other| other.only(more));
        let (Some(ours), Some(theirs)) = (self.only(file.view()), theirs) else {
            return Ok(false);
        };
        ours.union_with(file.to_mut(), theirs, more)?;
        Ok(true)
    }

    fn bits(&self, _: View<'_>) -> u64 {
        self.filters().map(Blocks::bits).sum()
    }

    fn hashes(&self, _: View<'_>) -> Option<u64> {
        Some(8)
    }

    fn fill(&self, file: View<'_>) -> f64 {
        let ones: u64 = self.filters().map(|blocks| blocks.ones(file)).sum();
        ones as f64 / self.bits(file) as f64
    }

    fn rate(&self, file: View<'_>) -> f64 {
        let no = |group: &Option<Blocks>| group.as_ref().map_or(0.0, |g| 1.0 - g.rate(file));
        1.0 - self.groups.iter().map(no).product::<f64>()
    }

    fn key_count(&self, file: View<'_>) -> Option<f64> {
        let keys = |group: &Option<Blocks>| group.as_ref()?.keys(file);
        self.groups.iter().map(keys).sum()
    }
}

/// An empty single filter for this many distinct values, with its header as in
/// a file. Its size is a power of two, as readers expect.
pub(crate) fn create(keys: u64, rate: f64) -> Vec<u8> {
    let bits = -8.0 * keys.max(1) as f64 / (1.0 - rate.powf(1.0 / 8.0)).ln();
    let bytes = (bits / 8.0).clamp(BLOCK as f64, MOST_BYTES as f64).ceil() as u64;
    let bytes = bytes.next_power_of_two();
    let only = |inner: Struct<'static>| Value::Struct(Struct(vec![(1, Value::Struct(inner))]));
    let header = Struct(vec![
        (1, Value::Integer(I32, bytes as i64)),
        (2, only(Struct::default())),
        (3, only(Struct::default())),
        (4, only(Struct::default())),
    ]);
    let mut file = Vec::new();
    header.write(&mut file);
    file.resize(file.len() + bytes as usize, 0);
    file
}

/// A filter for one column of one row group.
#[derive(Clone, Debug)]
pub struct NewFilter<'f> {
    /// The row group's number.
    pub row_group: usize,
    /// The column's path, with dots.
    pub column: &'f str,
    /// The filter, from [`Create::Parquet`](crate::Create::Parquet).
    pub filter: &'f [u8],
}

/// The bytes to write after a Parquet file's data to give it these filters: the
/// filters and a footer that refers to them. All bytes before `data_end` stay
/// as they are; the old footer, which begins there, is replaced.
pub struct Addition {
    /// The end of the data, where the new bytes begin.
    pub data_end: usize,
    /// The new bytes.
    pub bytes: Vec<u8>,
}

/// Adds filters to a Parquet file without touching its data. Replaces filters
/// that exist for the same column and row group.
pub fn with_filters<'a>(
    file: impl Into<Bytes<'a>>,
    filters: &[NewFilter<'_>],
) -> Result<Addition, Error> {
    let file = file.into();
    let footer = Footer::read(file.view())?;
    let (mut tree, data_end) = (footer.tree()?, footer.at);
    let mut bytes = Vec::new();
    for new in filters {
        let at = data_end + bytes.len();
        let nowhere = || Error::Parameter {
            what: "column",
            expected: "one that the row group has",
            got: format!("{} in row group {}", new.column, new.row_group),
        };
        Blocks::read(new.filter.into(), 0)?;
        let group = tree
            .structs_mut(FILE_ROW_GROUPS)
            .nth(new.row_group)
            .ok_or_else(nowhere)?;
        let meta = group.structs_mut(ROW_GROUP_COLUMNS).find_map(|chunk| {
            match chunk.get_mut(CHUNK_META) {
                Some(Value::Struct(meta)) if path(meta).as_deref() == Some(new.column) => {
                    Some(meta)
                }
                _ => None,
            }
        });
        let meta = meta.ok_or_else(nowhere)?;
        meta.set(META_FILTER_OFFSET, Value::Integer(I64, at as i64));
        meta.set(
            META_FILTER_LENGTH,
            Value::Integer(I32, new.filter.len() as i64),
        );
        bytes.extend_from_slice(new.filter);
    }
    let start = bytes.len();
    tree.write(&mut bytes);
    let len = u32::try_from(bytes.len() - start)
        .map_err(|_| Error::corrupt(FORMAT, "footer", "less than 4 GiB", bytes.len() - start))?;
    bytes.extend(len.to_le_bytes());
    bytes.extend(MAGIC);
    Ok(Addition { data_end, bytes })
}
