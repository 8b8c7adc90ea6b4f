//! The filters in an ORC file: one per group of rows, in the index of every
//! stripe.
//!
//! The file ends with a description of itself, followed by the lengths of its
//! parts. Reads uncompressed and zlib-compressed files.

use super::MOST_HASHES;
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::filter::{Filter, Opened};
use crate::plain::Plain;
use crate::probe::Probe;
use crate::protobuf::{Message, Value};
use crate::{Error, Format, Keys};
use std::borrow::Cow;
use std::io::Read as _;

const FORMAT: Format = Format::Orc;
const MAGIC: &[u8] = b"ORC";

pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Untyped,
    start: MAGIC,
    read_only: Some("an ORC file is written as a whole"),
    ..About::new(&[Keys::Utf8, Keys::Int64, Keys::Float64], read)
};

/// The kind of the stream with filters, of strings as UTF-8 and of all other
/// types.
const BLOOM_FILTER_UTF8: u64 = 8;
/// The most bytes that a group's filter may unpack to.
const MOST_UNPACKED: u64 = 1 << 30;

/// The filters of one column.
#[derive(Clone, Debug)]
struct Column {
    keys: &'static [Keys],
    /// Filters, with their bits in `bytes`.
    groups: Vec<Plain>,
    bytes: Vec<u8>,
}

fn corrupt(
    what: &'static str,
    expected: impl std::fmt::Display,
    got: impl std::fmt::Display,
) -> Error {
    Error::corrupt(FORMAT, what, expected, got)
}

/// The compression of a file's parts.
#[derive(Clone, Copy, PartialEq)]
enum Packing {
    None,
    Zlib,
}

impl Packing {
    fn unpacked(self, bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Error> {
        if self == Self::None {
            return Ok(bytes);
        }
        let mut out = Vec::new();
        let mut rest = &*bytes;
        // Chunks with three bytes of length, whose lowest bit says that the
        // chunk isn't compressed.
        while let [a, b, c, more @ ..] = rest {
            let header = u32::from_le_bytes([*a, *b, *c, 0]);
            let len = (header >> 1) as usize;
            let chunk = more
                .get(..len)
                .ok_or_else(|| corrupt("chunk", len, more.len()))?;
            if header & 1 == 1 {
                out.extend_from_slice(chunk);
            } else {
                let most = MOST_UNPACKED - out.len() as u64;
                let unpacked = flate2::read::DeflateDecoder::new(chunk)
                    .take(most)
                    .read_to_end(&mut out);
                unpacked.map_err(|e| corrupt("chunk", "zlib", e))?;
            }
            if out.len() as u64 >= MOST_UNPACKED {
                return Err(corrupt("chunk", "less than 1 GiB", "more"));
            }
            rest = &more[len..];
        }
        if !rest.is_empty() {
            return Err(corrupt("chunk", "a length of 3 bytes", rest.len()));
        }
        Ok(out.into())
    }
}

/// The numbers in these fields of a message.
fn numbers<const N: usize>(bytes: &[u8], fields: [u64; N]) -> Result<[u64; N], Error> {
    let mut found = [0; N];
    for field in Message::new(FORMAT, bytes) {
        if let (id, Value::Number(number)) = field?
            && let Some(at) = fields.iter().position(|field| *field == id)
        {
            found[at] = number;
        }
    }
    Ok(found)
}

/// The messages or texts in one field.
fn all(bytes: &[u8], id: u64) -> Result<Vec<&[u8]>, Error> {
    let mut found = Vec::new();
    for field in Message::new(FORMAT, bytes) {
        if let (at, Value::Bytes(bytes)) = field?
            && at == id
        {
            found.push(bytes);
        }
    }
    Ok(found)
}

struct Tail<'a> {
    packing: Packing,
    footer: Cow<'a, [u8]>,
}

fn tail(file: View<'_>) -> Result<Tail<'_>, Error> {
    let Some([len]) = file.last_array() else {
        return Err(corrupt("length", "at least 1 byte", 0));
    };
    let end = file.len() - 1;
    let short = || {
        corrupt(
            "end",
            "a postscript and a footer",
            format_args!("{} bytes", file.len()),
        )
    };
    let at = end.checked_sub(len.into()).ok_or_else(short)?;
    let postscript = file.read(at..end);
    let [footer_len, compression] = numbers(&postscript, [1, 2])?;
    if all(&postscript, 8000)? != [MAGIC] {
        return Err(corrupt("postscript", "ORC", "something else"));
    }
    let packing = match compression {
        0 => Packing::None,
        1 => Packing::Zlib,
        _ => return Err(corrupt("compression", "none (0) or zlib (1)", compression)),
    };
    let start = at.checked_sub(usize::try_from(footer_len).map_err(|_| short())?);
    let footer = packing.unpacked(file.read(start.ok_or_else(short)?..at))?;
    Ok(Tail { packing, footer })
}

/// The top-level columns with their numbers, names and types.
fn columns(footer: &[u8]) -> Result<Vec<(u64, String, u64)>, Error> {
    let types = all(footer, 4)?;
    let Some(root) = types.first() else {
        return Err(corrupt("types", "at least 1", 0));
    };
    let mut ids = Vec::new();
    for field in Message::new(FORMAT, root) {
        match field? {
            (2, Value::Number(id)) => ids.push(id),
            // Several in one field, as varints.
            (2, Value::Bytes(mut packed)) => {
                while let Some((byte, rest)) = packed.split_first() {
                    let mut id = u64::from(byte & 0x7F);
                    let (mut more, mut shift) = (*byte >= 0x80, 7);
                    packed = rest;
                    while let (true, Some((byte, rest))) =
                        (more && shift < 64, packed.split_first())
                    {
                        id |= u64::from(byte & 0x7F) << shift;
                        (more, shift) = (*byte >= 0x80, shift + 7);
                        packed = rest;
                    }
                    ids.push(id);
                }
            }
            _ => {}
        }
    }
    let names = all(root, 3)?;
    let mut found = Vec::new();
    for (id, name) in ids.into_iter().zip(names) {
        let of = usize::try_from(id).ok().and_then(|id| types.get(id));
        let [kind] = numbers(
            of.ok_or_else(|| corrupt("column", "one of the types", id))?,
            [1],
        )?;
        found.push((id, String::from_utf8_lossy(name).into_owned(), kind));
    }
    Ok(found)
}

/// How values of a type became keys, and whether they are hashed as integers.
fn keys_of(kind: u64) -> Option<(&'static [Keys], bool)> {
    match kind {
        1..=4 => Some((&[Keys::Int64], true)),
        5 | 6 => Some((&[Keys::Float64], true)),
        7 | 8 | 16 | 17 => Some((&[Keys::Utf8], false)),
        _ => None,
    }
}

/// Reads the filters of a column, or of the only one that has filters.
fn read(file: View<'_>, name: Option<&[u8]>) -> Result<Opened, Error> {
    if !file.starts_with(MAGIC) {
        return Err(corrupt("start", "ORC", "something else"));
    }
    let Tail { packing, footer } = tail(file)?;
    let columns = columns(&footer)?;
    let mut found: Vec<Option<Column>> = columns.iter().map(|_| None).collect();
    for stripe in all(&footer, 3)? {
        let [offset, index_len, data_len, footer_len] = numbers(stripe, [1, 2, 3, 4])?;
        let range = |at: u64, len: u64| {
            let end = at.checked_add(len).filter(|end| *end <= file.len() as u64);
            end.map(|end| file.read(at as usize..end as usize))
                .ok_or_else(|| corrupt("stripe", "one within the file", at))
        };
        let end = offset
            .checked_add(index_len)
            .and_then(|at| at.checked_add(data_len));
        let end = end.ok_or_else(|| corrupt("stripe", "one within the file", offset))?;
        let stripe_footer = packing.unpacked(range(end, footer_len)?)?;
        let mut at = offset;
        for stream in all(&stripe_footer, 1)? {
            let [kind, id, len] = numbers(stream, [1, 2, 3])?;
            let column = columns.iter().position(|(column, ..)| *column == id);
            if let (BLOOM_FILTER_UTF8, Some(column)) = (kind, column)
                && let Some((keys, integers)) = keys_of(columns[column].2)
            {
                let index = packing.unpacked(range(at, len)?)?;
                let filters = found[column].get_or_insert_with(|| Column {
                    keys,
                    groups: Vec::new(),
                    bytes: Vec::new(),
                });
                for group in all(&index, 1)? {
                    filters.add(group, integers)?;
                }
            }
            at = at
                .checked_add(len)
                .ok_or_else(|| corrupt("stream", "one within the file", at))?;
        }
    }
    let mut chosen: Vec<(&str, Column)> = columns
        .iter()
        .zip(found)
        .filter_map(|((_, name, _), column)| Some((name.as_str(), column?)))
        .filter(|(column, _)| name.is_none_or(|name| name == column.as_bytes()))
        .collect();
    match chosen.len() {
        1 => Ok(chosen.remove(0).1.into()),
        _ => Err(Error::Several {
            names: chosen.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }),
    }
}

impl Column {
    fn add(&mut self, group: &[u8], integers: bool) -> Result<(), Error> {
        let [hashes] = numbers(group, [1])?;
        if !(1..=MOST_HASHES).contains(&hashes) {
            return Err(corrupt("hashes", "1 to 1024", hashes));
        }
        let at = self.bytes.len();
        for bits in all(group, 3)? {
            self.bytes.extend_from_slice(bits);
        }
        let len = (self.bytes.len() - at) as u64;
        if len == 0 || !len.is_multiple_of(8) {
            return Err(corrupt("bits", "whole words", len));
        }
        let bits = Bits::low(at, len * 8);
        self.groups
            .push(Plain::new(bits, Probe::Orc { hashes, integers }));
        Ok(())
    }
}

impl Filter for Column {
    fn keys(&self) -> Option<&'static [Keys]> {
        Some(self.keys)
    }

    fn contains(&self, _: View<'_>, key: &[u8]) -> bool {
        let bytes = View::Plain(&self.bytes);
        self.groups.iter().any(|plain| plain.contains(bytes, key))
    }

    fn contains_many(&self, _: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        for plain in &self.groups {
            plain.contains_many(View::Plain(&self.bytes), keys, out);
        }
    }

    fn plains<'v>(&'v self, _: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        let bytes = View::Plain(&self.bytes);
        self.groups.iter().map(|plain| (plain, bytes)).collect()
    }
}
