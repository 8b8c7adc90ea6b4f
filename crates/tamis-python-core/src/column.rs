//! Columns of keys in memory, readable without the GIL.

use crate::fixed::{Encoding, Fixed};
use crate::float;
use crate::keys::{Key, NoKeys};
use crate::text;
use std::borrow::Cow;
use std::ops::Range;
use tamis::internals::raw::prefetch;
use tamis::{Hash, Hasher, KeyRule};

/// A column of keys, in memory that somebody else owns.
pub struct KeyColumn<'a> {
    /// The number of rows.
    pub len: usize,
    /// The keys of the rows.
    pub values: Values<'a>,
    /// Which rows have a key, if not all do.
    pub valid: Option<Bits<'a>>,
}

/// The memory layout of a column's keys.
pub enum Values<'a> {
    /// No row has a key.
    Nulls,
    /// Row `i` is the bytes from offset `i` to offset `i + 1`. Offsets are native-endian and may be unaligned.
    Offsets32(&'a [[u8; 4]], &'a [u8]),
    /// The same with 64-bit offsets.
    Offsets64(&'a [[u8; 8]], &'a [u8]),
    /// Arrow's views: a length, then the bytes themselves or their position.
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    /// Values of one size.
    Fixed(Fixed<'a>),
    /// Booleans, one bit each.
    Bools(Bits<'a>),
    /// Row `i` is value number `index(i)` of another column.
    Dictionary(Fixed<'a>, Box<Dictionary<'a>>),
    /// Texts at separate addresses.
    Texts(Vec<&'a [u8]>),
    /// Row `i` is the tuple of the columns' values.
    Tuple(Vec<KeyColumn<'a>>),
    /// A sequence of columns, with the row number at which each ends.
    Parts(Vec<usize>, Vec<KeyColumn<'a>>),
    /// Keys to which the filter's rule was already applied: row `i` ends at end number `i`, where the next one begins.
    Encoded(Vec<usize>, Vec<u8>),
}

/// The values that the rows of a column refer to.
pub struct Dictionary<'a> {
    /// The values.
    pub values: KeyColumn<'a>,
    /// The hash of each value that is a key; empty until [computed](KeyColumn::hash_dictionary).
    pub hashes: Vec<Option<Hash>>,
}

/// Memory for encoding keys, one at a time.
#[derive(Default)]
pub struct Buffer {
    key: Vec<u8>,
    /// For the values of a tuple.
    parts: Option<Box<Buffer>>,
}

/// A missing value in a tuple. Neither a text nor an integer has these bytes.
pub const NONE: [u8; 2] = [0xff, b'n'];

/// Bits in Arrow's order.
pub struct Bits<'a> {
    /// Eight bits each, lowest first.
    pub bytes: Cow<'a, [u8]>,
    /// The position of the first row.
    pub offset: usize,
}

impl Bits<'_> {
    /// The bits of rows that aren't masked.
    pub fn unmasked(masked: &[bool]) -> Self {
        let bytes = masked.chunks(8).map(|eight| {
            let bits = eight.iter().enumerate();
            bits.fold(0, |byte, (i, masked)| byte | u8::from(!masked) << i)
        });
        Self {
            bytes: bytes.collect(),
            offset: 0,
        }
    }

    fn get(&self, row: usize) -> bool {
        let at = self.offset + row;
        self.bytes[at / 8] >> (at % 8) & 1 != 0
    }
}

impl<'a> KeyColumn<'a> {
    /// Joins columns into one.
    pub fn joined(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let mut len = 0;
        let ends = parts.iter().map(|part| {
            len += part.len;
            len
        });
        Self {
            values: Values::Parts(ends.collect(), parts),
            len,
            valid: None,
        }
    }

    /// Hashes the keys of some rows. If not all are keys, `rows` lists those that are, counted from the first. After an
    /// error, `hashes` has those before it.
    pub fn hash(
        &self,
        hasher: &Hasher,
        range: Range<usize>,
        hashes: &mut Vec<Hash>,
        rows: &mut Vec<usize>,
    ) -> Result<(), NoKeys> {
        hashes.clear();
        rows.clear();
        self.check_values(hasher.rule())?;
        match &self.values {
            Values::Nulls => return Ok(()),
            Values::Dictionary(indices, dictionary) if !dictionary.hashes.is_empty() => {
                return self.hash_each(range, hashes, rows, |row| {
                    Ok(dictionary.hashes[dictionary.index(indices, row)?])
                });
            }
            Values::Fixed(fixed) if fixed.encoding() == Encoding::Float => {
                return self.hash_each(range, hashes, rows, |row| {
                    Ok(float::hash(hasher, fixed.float(row)))
                });
            }
            values if !values.is_plain() => {
                let mut buffer = Buffer::default();
                return self.hash_each(range, hashes, rows, |row| {
                    let key = self.key(hasher.rule(), row, &mut buffer)?;
                    Ok(key.map(|key| key.hash(hasher)))
                });
            }
            _ => {}
        }
        if self.valid.is_none() {
            hashes.reserve(range.len());
            return self.values.hash_rows(hasher, range, hashes);
        }
        let start = range.start;
        rows.extend(
            range
                .filter(|row| self.is_valid(*row))
                .map(|row| row - start),
        );
        let rows = rows.iter().map(|row| row + start);
        self.values.hash_rows(hasher, rows, hashes)
    }

    /// Refuses rows with a different number of values than the filter's keys: the filter would deny every key.
    fn check_values(&self, rule: &KeyRule) -> Result<(), NoKeys> {
        match (rule.values(), self.values.in_a_row()) {
            (wanted @ 2.., Some(values)) if values != wanted => Err(NoKeys::of_type(format!(
                "keys: expected {wanted} values in a row, as all keys of this filter have, got {values}"
            ))),
            _ => Ok(()),
        }
    }

    /// Hashes rows one by one, since some may have no key.
    fn hash_each(
        &self,
        range: Range<usize>,
        hashes: &mut Vec<Hash>,
        rows: &mut Vec<usize>,
        mut hash: impl FnMut(usize) -> Result<Option<Hash>, NoKeys>,
    ) -> Result<(), NoKeys> {
        let start = range.start;
        for row in range.filter(|row| self.is_valid(*row)) {
            if let Some(hash) = hash(row)? {
                hashes.push(hash);
                rows.push(row - start);
            }
        }
        Ok(())
    }

    /// Hashes the values of a dictionary before rows refer to them.
    pub fn hash_dictionary(&mut self, hasher: &Hasher) -> Result<(), NoKeys> {
        let Values::Dictionary(_, dictionary) = &mut self.values else {
            return Ok(());
        };
        let (mut hashes, mut rows) = (Vec::new(), Vec::new());
        let values = &dictionary.values;
        values.hash(hasher, 0..values.len, &mut hashes, &mut rows)?;
        if hashes.len() == values.len {
            dictionary.hashes = hashes.into_iter().map(Some).collect();
            return Ok(());
        }
        dictionary.hashes = vec![None; values.len];
        for (row, hash) in rows.into_iter().zip(hashes) {
            dictionary.hashes[row] = Some(hash);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row))
    }

    /// The key of a row; `None` for a null.
    #[inline]
    pub fn key<'s>(
        &'s self,
        rule: &KeyRule,
        row: usize,
        buffer: &'s mut Buffer,
    ) -> Result<Option<Key<'s>>, NoKeys> {
        if !self.is_valid(row) {
            return Ok(None);
        }
        let text = |bytes: Option<&'s [u8]>| match bytes {
            Some(bytes) => Ok(Some(Key::Text(bytes))),
            None => Err(outside(row)),
        };
        match &self.values {
            Values::Nulls => Ok(None),
            Values::Offsets32(offsets, data) => text(data.get(between(offsets, row))),
            Values::Offsets64(offsets, data) => text(data.get(between(offsets, row))),
            Values::Views(views, buffers) => text(viewed(&views[row], buffers)),
            Values::Texts(texts) => text(Some(texts[row])),
            Values::Bools(bits) => text(Some(text::of_bool(bits.get(row)))),
            Values::Fixed(fixed) => fixed.key(row, &mut buffer.key),
            Values::Dictionary(indices, dictionary) => {
                let row = dictionary.index(indices, row)?;
                dictionary.values.key(rule, row, buffer)
            }
            Values::Tuple(columns) => {
                let parts = buffer.parts.get_or_insert_default();
                buffer.key.clear();
                let mut some = false;
                for column in columns {
                    let part = column.key(rule, row, parts)?;
                    some |= part.is_some();
                    match part {
                        Some(Key::Text(text)) => rule.append_part(text, &mut buffer.key),
                        Some(Key::Exact(bytes)) => {
                            KeyRule::EXACT.append_part(bytes, &mut buffer.key)
                        }
                        None => KeyRule::EXACT.append_part(&NONE, &mut buffer.key),
                    };
                }
                Ok(some.then_some(Key::Exact(&buffer.key)))
            }
            Values::Parts(ends, parts) => {
                let part = ends.partition_point(|end| *end <= row);
                let start = part.checked_sub(1).map_or(0, |before| ends[before]);
                parts[part].key(rule, row - start, buffer)
            }
            Values::Encoded(ends, bytes) => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                Ok(Some(Key::Exact(&bytes[start..ends[row]])))
            }
        }
    }
}

impl Values<'_> {
    /// The number of values per row, if known here.
    fn in_a_row(&self) -> Option<usize> {
        match self {
            Self::Nulls | Self::Encoded(..) => None,
            Self::Tuple(columns) => Some(columns.len()),
            Self::Parts(_, parts) => parts.iter().find_map(|part| part.values.in_a_row()),
            Self::Dictionary(_, dictionary) => dictionary.values.values.in_a_row(),
            _ => Some(1),
        }
    }

    /// Whether all rows except nulls have a key that is in memory as hashed, or nearly so.
    fn is_plain(&self) -> bool {
        match self {
            Self::Offsets32(..) | Self::Offsets64(..) | Self::Views(..) | Self::Texts(_) => true,
            Self::Fixed(fixed) => fixed.is_plain(),
            _ => false,
        }
    }

    /// Hashes some rows of a plain column.
    #[inline]
    fn hash_rows(
        &self,
        hasher: &Hasher,
        rows: impl Iterator<Item = usize>,
        hashes: &mut Vec<Hash>,
    ) -> Result<(), NoKeys> {
        match self {
            Self::Offsets32(offsets, data) => hash_found(hasher, rows, hashes, |row| {
                sliced(data, between(offsets, row))
            }),
            Self::Offsets64(offsets, data) => hash_found(hasher, rows, hashes, |row| {
                sliced(data, between(offsets, row))
            }),
            Self::Views(views, buffers) => {
                hash_found(hasher, rows, hashes, |row| viewed(&views[row], buffers))
            }
            Self::Texts(texts) => hash_found(hasher, rows, hashes, |row| Some(texts[row])),
            Self::Fixed(fixed) => fixed.hash_rows(hasher, rows, hashes),
            _ => Ok(()),
        }
    }
}

impl Dictionary<'_> {
    /// The number of the value that a row refers to.
    fn index(&self, indices: &Fixed<'_>, row: usize) -> Result<usize, NoKeys> {
        let index = indices.integer(row);
        match usize::try_from(index) {
            Ok(place) if place < self.values.len => Ok(place),
            _ => Err(NoKeys::damaged(format_args!(
                "whose row {row} has the dictionary's value {index}, of {}",
                self.values.len
            ))),
        }
    }
}

/// Hashes the bytes that `find` returns for each row, up to the first `None`.
#[inline]
fn hash_found<'a>(
    hasher: &Hasher,
    rows: impl Iterator<Item = usize>,
    hashes: &mut Vec<Hash>,
    find: impl Fn(usize) -> Option<&'a [u8]>,
) -> Result<(), NoKeys> {
    let mut lost = None;
    let found = rows.map_while(|row| {
        let bytes = find(row);
        if bytes.is_none() {
            lost = Some(row);
        }
        bytes
    });
    hasher.hash_all(found, hashes);
    lost.map_or(Ok(()), |row| Err(outside(row)))
}

#[cold]
fn outside(row: usize) -> NoKeys {
    NoKeys::damaged(format_args!("whose row {row} lies outside its buffers"))
}

/// An offset of Arrow's: native-endian, unaligned.
trait Offset: Copy {
    /// A negative offset is larger than any length.
    fn offset(self) -> usize;
}

impl Offset for [u8; 4] {
    #[inline]
    fn offset(self) -> usize {
        native_i32(self) as usize
    }
}

impl Offset for [u8; 8] {
    #[inline]
    fn offset(self) -> usize {
        native_i64(self) as usize
    }
}

/// The range of a row.
#[inline]
fn between(offsets: &[impl Offset], row: usize) -> Range<usize> {
    offsets[row].offset()..offsets[row + 1].offset()
}

/// A native-endian number.
#[inline]
pub const fn native_i32(bytes: [u8; 4]) -> i32 {
    if cfg!(target_endian = "big") {
        i32::from_be_bytes(bytes)
    } else {
        i32::from_le_bytes(bytes)
    }
}

/// A native-endian number.
#[inline]
pub const fn native_i64(bytes: [u8; 8]) -> i64 {
    if cfg!(target_endian = "big") {
        i64::from_be_bytes(bytes)
    } else {
        i64::from_le_bytes(bytes)
    }
}

/// The bytes of a key, after prefetching those of later keys: the processor does so by itself, but not beyond the next
/// page.
#[inline]
fn sliced(data: &[u8], place: Range<usize>) -> Option<&[u8]> {
    const AHEAD: usize = 2048;
    // One cache line for each line of the key, since the next keys are mostly as long.
    let ahead = data.as_ptr().wrapping_add(place.start.wrapping_add(AHEAD));
    prefetch(ahead);
    if place.end.wrapping_sub(place.start) > 96 {
        prefetch(ahead.wrapping_add(64));
    }
    data.get(place)
}

/// The bytes of a view: up to 12 are in the view itself. `None` if they are outside the buffers.
#[inline]
fn viewed<'a>(view: &'a [u8; 16], buffers: &[&'a [u8]]) -> Option<&'a [u8]> {
    let field = |at: usize| {
        let bytes = [view[at], view[at + 1], view[at + 2], view[at + 3]];
        usize::try_from(native_i32(bytes)).ok()
    };
    match field(0)? {
        len @ ..=12 => Some(&view[4..4 + len]),
        len => buffers.get(field(8)?)?.get(field(12)?..)?.get(..len),
    }
}
