//! Parquet's split-block filters: those in a file, found through its footer; a
//! filter by itself, as it lies in a file; and filters added to a file that has
//! none, by writing a new footer behind the data.

use crate::fields::Fields;
use crate::thrift::{I32, I64, Struct, Value};
use crate::{Error, Format, Keys};
use std::ops::Range;

const FORMAT: Format = Format::Parquet;
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";
const BLOCK: u64 = 32;
/// Readers refuse larger ones.
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

// Fields of the footer's structs.
const FILE_ROW_GROUPS: i16 = 4;
const ROW_GROUP_COLUMNS: i16 = 1;
const CHUNK_META: i16 = 3;
const META_TYPE: i16 = 1;
const META_PATH: i16 = 3;
const META_FILTER_OFFSET: i16 = 14;
const META_FILTER_LENGTH: i16 = 15;

/// A split-block filter's blocks, within some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks(Range<usize>);

impl Blocks {
    /// Reads the header that stands before the blocks.
    fn read(file: &[u8], at: usize) -> Result<Self, Error> {
        let refuse = |expected: &str, got: &dyn std::fmt::Display| {
            Error::corrupt(FORMAT, "filter's header", expected, got)
        };
        let (header, body) = Struct::read(&file[at..])
            .ok_or_else(|| refuse("a BloomFilterHeader", &"something else"))?;
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
        if len > body.len() as u64 {
            return Err(refuse("a length within the file", &len));
        }
        let start = file.len() - body.len();
        Ok(Self(start..start + len as usize))
    }

    /// Where the key's block begins, and its bit in each word.
    #[inline]
    fn place(&self, key: &[u8]) -> (usize, [u32; 8]) {
        let hash = xxhash_rust::xxh64::xxh64(key, 0);
        let blocks = self.0.len() as u64 / BLOCK;
        let block = ((hash >> 32) * blocks) >> 32;
        let bits = SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27));
        (self.0.start + (block * BLOCK) as usize, bits)
    }

    #[inline]
    pub(crate) fn contains(&self, file: &[u8], key: &[u8]) -> bool {
        let (at, bits) = self.place(key);
        let words = file[at..at + BLOCK as usize].as_chunks::<4>().0;
        words
            .iter()
            .zip(bits)
            .all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0)
    }

    /// Says whether any bit was new.
    pub(crate) fn insert(&self, file: &mut [u8], key: &[u8]) -> bool {
        let (at, bits) = self.place(key);
        let words = file[at..at + BLOCK as usize].as_chunks_mut::<4>().0;
        words.iter_mut().zip(bits).fold(false, |new, (word, bit)| {
            let before = u32::from_le_bytes(*word);
            *word = (before | bit).to_le_bytes();
            new | (before & bit == 0)
        })
    }

    /// Sets all bits of another one of the same size.
    pub(crate) fn union_with(
        &self,
        file: &mut [u8],
        other: &Self,
        more: &[u8],
    ) -> Result<(), Error> {
        if self.0.len() != other.0.len() {
            return Err(Error::Unlike {
                what: "size",
                ours: format!("{} bytes", self.0.len()),
                theirs: format!("{} bytes", other.0.len()),
            });
        }
        for (byte, more) in file[self.0.clone()].iter_mut().zip(&more[other.0.clone()]) {
            *byte |= more;
        }
        Ok(())
    }

    /// How many bits are set.
    fn ones(&self, file: &[u8]) -> u64 {
        file[self.0.clone()]
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum()
    }

    /// From how full each block is.
    fn rate(&self, file: &[u8]) -> f64 {
        let blocks = file[self.0.clone()].chunks(BLOCK as usize);
        let count = blocks.len() as f64;
        let rate = |block: &[u8]| {
            let words = block.as_chunks::<4>().0.iter();
            words
                .map(|word| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0)
                .product::<f64>()
        };
        blocks.map(rate).sum::<f64>() / count
    }

    /// A key sets one bit of each word of its block.
    fn keys(&self, file: &[u8]) -> Option<f64> {
        let bits = self.0.len() as f64 * 8.0;
        let keys = -(-(self.ones(file) as f64 / bits)).ln_1p() * bits / 8.0;
        keys.is_finite().then_some(keys)
    }
}

/// The filters of one column, row group by row group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    keys: &'static [Keys],
    /// A row group without a filter may have any key.
    groups: Vec<Option<Blocks>>,
}

/// What a file says of the filter of one column in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which row group, from 0 on.
    pub row_group: usize,
    /// The column: its path, with dots.
    pub column: String,
    /// How its values become keys; none where a type can't have a filter.
    pub keys: Option<Keys>,
    /// The filter's bytes, its header included; none if there is no filter.
    pub filter: Option<Range<usize>>,
    blocks: Option<Blocks>,
}

/// The footer as a tree, and where it begins.
fn footer(file: &[u8]) -> Result<(Struct<'_>, usize), Error> {
    let mut fields = Fields::new(FORMAT, file);
    if fields.take("start", 4)? != MAGIC {
        return Err(fields.corrupt("start", "PAR1", "something else"));
    }
    let Some((rest, [a, b, c, d, magic @ ..])) = fields.rest().split_last_chunk::<8>() else {
        return Err(fields.corrupt("length", "at least 12 bytes", file.len()));
    };
    if magic != MAGIC {
        return Err(fields.corrupt(
            "end",
            "PAR1 (an encrypted footer is not read here)",
            "something else",
        ));
    }
    let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    let at = rest.len().checked_sub(len);
    let at = at.ok_or_else(|| fields.corrupt("footer", "one within the file", len))?;
    match Struct::read(&rest[at..]) {
        Some((tree, [])) => Ok((tree, at + MAGIC.len())),
        _ => Err(fields.corrupt("footer", "FileMetaData", "something else")),
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

/// Every column of every row group of a Parquet file, with its filter if it
/// has one.
///
/// ```
/// assert!(tamis_formats::parquet_chunks(b"no Parquet").is_err());
/// ```
pub fn chunks(file: &[u8]) -> Result<Vec<Chunk>, Error> {
    let (tree, _) = footer(file)?;
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

/// The filters of a column, or of the only one that has any.
pub(crate) fn read(file: &[u8], name: Option<&[u8]>) -> Result<Column, Error> {
    // A filter by itself.
    if !file.starts_with(MAGIC) {
        let blocks = Blocks::read(file, 0)?;
        return match blocks.0.end == file.len() {
            true => Ok(Column {
                keys: &[
                    Keys::Utf8,
                    Keys::Int32,
                    Keys::Int64,
                    Keys::Float32,
                    Keys::Float64,
                ],
                groups: vec![Some(blocks)],
            }),
            false => Err(Error::corrupt(
                FORMAT,
                "filter",
                "blocks up to its end",
                "more bytes",
            )),
        };
    }
    let chunks = chunks(file)?;
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
    Ok(Column { keys, groups })
}

impl Column {
    pub(crate) const fn keys(&self) -> &'static [Keys] {
        self.keys
    }

    pub(crate) fn contains(&self, file: &[u8], key: &[u8]) -> bool {
        let in_group = |group: &Option<Blocks>| {
            group
                .as_ref()
                .is_none_or(|blocks| blocks.contains(file, key))
        };
        self.groups.iter().any(in_group)
    }

    pub(crate) fn bits(&self) -> u64 {
        let all = self.groups.iter().flatten();
        all.map(|blocks| blocks.0.len() as u64 * 8).sum()
    }

    /// The one filter of a file that is nothing else.
    pub(crate) fn only(&self, file: &[u8]) -> Option<&Blocks> {
        match &self.groups[..] {
            [Some(blocks)] if !file.starts_with(MAGIC) => Some(blocks),
            _ => None,
        }
    }

    pub(crate) fn fill(&self, file: &[u8]) -> f64 {
        let all = || self.groups.iter().flatten();
        let ones: u64 = all().map(|blocks| blocks.ones(file)).sum();
        ones as f64 / (all().map(|blocks| blocks.0.len()).sum::<usize>() as f64 * 8.0)
    }

    pub(crate) fn rate(&self, file: &[u8]) -> f64 {
        let no = self.groups.iter().map(|group| match group {
            Some(blocks) => 1.0 - blocks.rate(file),
            None => 0.0,
        });
        1.0 - no.product::<f64>()
    }

    pub(crate) fn key_count(&self, file: &[u8]) -> Option<f64> {
        self.groups
            .iter()
            .map(|group| group.as_ref()?.keys(file))
            .sum()
    }
}

/// An empty filter by itself, for this many distinct values: with its header, as
/// it lies in a file. Its size is a power of two, as readers expect.
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

/// What must follow a Parquet file's data so that it has these filters: the
/// filters and a footer that names them. All bytes before `data_end` stay as
/// they are; the old footer, which begins there, is replaced.
pub struct Addition {
    /// Where the data ends, and the new bytes begin.
    pub data_end: usize,
    /// The new bytes.
    pub bytes: Vec<u8>,
}

/// Adds filters to a Parquet file without touching its data. A filter that a
/// column already has in a row group is replaced.
pub fn with_filters(file: &[u8], filters: &[NewFilter<'_>]) -> Result<Addition, Error> {
    let (mut tree, data_end) = footer(file)?;
    let mut bytes = Vec::new();
    for new in filters {
        let at = data_end + bytes.len();
        let nowhere = || Error::Parameter {
            what: "column",
            expected: "one that the row group has",
            got: format!("{} in row group {}", new.column, new.row_group),
        };
        Blocks::read(new.filter, 0)?;
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
