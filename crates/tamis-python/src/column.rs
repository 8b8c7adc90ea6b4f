//! Keys that lie in memory as a column, readable without the GIL.

use crate::float::{self, Float};
use crate::text::{self, Temporal};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use tamis::{Hash, Hasher, KeyRule};

/// Why what should be keys is none: the class of `tamis.errors`, and what to say.
#[derive(Debug)]
pub(crate) struct NoKeys(pub(crate) &'static str, pub(crate) String);

impl NoKeys {
    /// Objects or columns of a kind that keys are not.
    pub(crate) fn of_type(text: String) -> Self {
        Self("KeyTypeError", text)
    }

    /// A column that contradicts itself.
    #[cold]
    pub(crate) fn damaged(text: impl std::fmt::Display) -> Self {
        Self(
            "CorruptError",
            format!(
                "keys: expected a valid Arrow column, got one {text}; its producer is at fault"
            ),
        )
    }
}

/// A column of keys. What it points to is kept alive by whoever made it, for
/// as long as `'a`.
pub(crate) struct Column<'a> {
    pub(crate) len: usize,
    pub(crate) values: Values<'a>,
    /// Which rows have a key, if some have none.
    pub(crate) valid: Option<Bits<'a>>,
}

pub(crate) enum Values<'a> {
    /// No row has a key.
    Nulls,
    /// Row `i` is the bytes from offset `i` to offset `i + 1`; the offsets are
    /// the machine's numbers, at any address.
    Offsets32(&'a [[u8; 4]], &'a [u8]),
    Offsets64(&'a [[u8; 8]], &'a [u8]),
    /// Arrow's views: a length, then the bytes themselves or where they are.
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    Fixed(Fixed<'a>),
    /// Truth values, a bit each.
    Bools(Bits<'a>),
    /// Row `i` is the value number `index(i)` of a column.
    Dictionary(Fixed<'a>, Box<Dictionary<'a>>),
    /// Texts at addresses of their own, and how long they are.
    Places(Vec<Place<'a>>),
    /// Row `i` is the tuple of the columns' values.
    Tuple(Vec<Column<'a>>),
    /// Columns one after the other, and the row behind the last one of each.
    Parts(Vec<usize>, Vec<Column<'a>>),
    /// Keys to which the filter's rule was applied already: row `i` ends at the
    /// end number `i`, where the next one begins.
    Encoded(Vec<usize>, Vec<u8>),
}

/// What the rows of a column refer to.
pub(crate) struct Dictionary<'a> {
    pub(crate) values: Column<'a>,
    /// The hash of each value that is a key; made once they are asked for.
    pub(crate) hashes: Vec<Option<Hash>>,
}

/// Some bytes that their owner keeps where they are.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) first: *const u8,
    pub(crate) len: usize,
    pub(crate) owner: PhantomData<&'a [u8]>,
}

// SAFETY: only read from, like the slice that it stands for.
unsafe impl Send for Place<'_> {}
// SAFETY: likewise.
unsafe impl Sync for Place<'_> {}

impl Place<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self.len {
            0 => &[],
            // SAFETY: its owner keeps the bytes, for as long as the column.
            len => unsafe { std::slice::from_raw_parts(self.first, len) },
        }
    }
}

/// A key, as bytes.
pub(crate) enum Key<'a> {
    /// Those of text, to which the filter's rule for keys applies.
    Text(&'a [u8]),
    /// Those of a number or of several values.
    Exact(&'a [u8]),
}

/// What keys are written to, one after the other.
#[derive(Default)]
pub(crate) struct Buffer {
    key: Vec<u8>,
    /// For the values of a tuple.
    parts: Option<Box<Buffer>>,
}

/// A missing value among those of a tuple; no text has these bytes, nor an
/// integer.
pub(crate) const NONE: [u8; 2] = [0xff, b'n'];

/// Values of one size, at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    pub(crate) first: *const u8,
    pub(crate) stride: isize,
    pub(crate) width: usize,
    /// Whether numbers are not little-endian.
    pub(crate) swapped: bool,
    pub(crate) encoding: Encoding,
    pub(crate) owner: PhantomData<&'a [u8]>,
}

// SAFETY: only read from, like the slice that it stands for.
unsafe impl Send for Fixed<'_> {}
// SAFETY: likewise.
unsafe impl Sync for Fixed<'_> {}

/// What the bytes of a fixed-size value are.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Encoding {
    /// The key.
    Bytes,
    /// The key, filled up with zeros (numpy's `S`).
    Padded,
    /// Code points of 4 bytes, filled up with zeros (numpy's `U`).
    Ucs4,
    /// An integer, whose key are its 8 little-endian bytes.
    Integer { signed: bool },
    /// A float of 2, 4 or 8 bytes.
    Float,
    /// A byte that is 0 for false.
    Bool,
    /// An integer that stands for a date or a time; the smallest one of 8 bytes
    /// for none.
    Temporal(Temporal),
    /// The digits of a decimal number, and how many of them are behind the point.
    Decimal { scale: i32 },
    /// 16 bytes.
    Uuid,
}

/// Bits in Arrow's order.
pub(crate) struct Bits<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) offset: usize,
}

impl Bits<'_> {
    /// Those of rows that are not masked.
    pub(crate) fn unmasked(masked: &[bool]) -> Self {
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

impl<'a> Column<'a> {
    /// Columns one after the other, as one.
    pub(crate) fn joined(mut parts: Vec<Self>) -> Self {
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
}

impl Column<'_> {
    /// Hashes the keys of some rows. If not all of them are keys, `rows` tells
    /// which were, counted from the first. After an error `hashes` has those
    /// before it.
    pub(crate) fn hash(
        &self,
        hasher: &Hasher,
        range: Range<usize>,
        hashes: &mut Vec<Hash>,
        rows: &mut Vec<usize>,
    ) -> Result<(), NoKeys> {
        hashes.clear();
        rows.clear();
        let start = range.start;
        let valid = |row: &usize| self.is_valid(*row);
        if let Values::Dictionary(indices, dictionary) = &self.values
            && !dictionary.hashes.is_empty()
        {
            for row in range.filter(valid) {
                if let Some(hash) = dictionary.hashes[dictionary.place(indices, row)?] {
                    hashes.push(hash);
                    rows.push(row - start);
                }
            }
            return Ok(());
        }
        if let Values::Fixed(fixed) = &self.values
            && fixed.encoding == Encoding::Float
        {
            for row in range.filter(valid) {
                if let Some(hash) = float::hash(hasher, fixed.float(row)) {
                    hashes.push(hash);
                    rows.push(row - start);
                }
            }
            return Ok(());
        }
        if !self.is_plain() {
            let mut buffer = Buffer::default();
            for row in range.filter(valid) {
                if let Some(key) = self.key(hasher.rule(), row, &mut buffer)? {
                    hashes.push(key.hash(hasher));
                    rows.push(row - start);
                }
            }
            return Ok(());
        }
        if matches!(self.values, Values::Nulls) {
            return Ok(());
        }
        if self.valid.is_none() {
            hashes.reserve(range.len());
            return self.hash_rows(hasher, range, hashes);
        }
        rows.extend(range.filter(valid).map(|row| row - start));
        self.hash_rows(hasher, rows.iter().map(|row| row + start), hashes)
    }

    /// Hashes the values of a dictionary, before rows refer to them.
    pub(crate) fn hash_dictionary(&mut self, hasher: &Hasher) -> Result<(), NoKeys> {
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
    fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row))
    }

    /// Whether all rows but the nulls have a key, which lies there as it is
    /// hashed, or nearly.
    fn is_plain(&self) -> bool {
        match &self.values {
            Values::Fixed(fixed) => match fixed.encoding {
                Encoding::Bytes | Encoding::Padded | Encoding::Ucs4 | Encoding::Integer { .. } => {
                    true
                }
                Encoding::Float
                | Encoding::Bool
                | Encoding::Temporal(_)
                | Encoding::Decimal { .. }
                | Encoding::Uuid => false,
            },
            Values::Bools(_)
            | Values::Dictionary(..)
            | Values::Tuple(_)
            | Values::Parts(..)
            | Values::Encoded(..) => false,
            _ => true,
        }
    }

    /// The key of a row; none for a null.
    #[inline]
    pub(crate) fn key<'s>(
        &'s self,
        rule: &KeyRule,
        row: usize,
        buffer: &'s mut Buffer,
    ) -> Result<Option<Key<'s>>, NoKeys> {
        if !self.is_valid(row) {
            return Ok(None);
        }
        let sliced = |data: &'s [u8], start: i64, end: i64| {
            let bytes = data.get(start as usize..end as usize);
            bytes.map(Key::Text).ok_or_else(|| outside(row)).map(Some)
        };
        match &self.values {
            Values::Nulls => Ok(None),
            Values::Offsets32(offsets, data) => {
                let offset = |row: usize| i64::from(native_i32(offsets[row]));
                sliced(data, offset(row), offset(row + 1))
            }
            Values::Offsets64(offsets, data) => {
                sliced(data, native_i64(offsets[row]), native_i64(offsets[row + 1]))
            }
            Values::Views(views, buffers) => match viewed(&views[row], buffers) {
                Some(bytes) => Ok(Some(Key::Text(bytes))),
                None => Err(outside(row)),
            },
            Values::Places(places) => Ok(Some(Key::Text(places[row].bytes()))),
            Values::Bools(bits) => Ok(Some(Key::Text(text::of_bool(bits.get(row))))),
            Values::Fixed(fixed) => fixed.key(row, &mut buffer.key),
            Values::Dictionary(indices, dictionary) => {
                let row = dictionary.place(indices, row)?;
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

    #[inline]
    fn hash_rows(
        &self,
        hasher: &Hasher,
        rows: impl Iterator<Item = usize>,
        hashes: &mut Vec<Hash>,
    ) -> Result<(), NoKeys> {
        match &self.values {
            // Their keys are made one by one, above.
            Values::Nulls
            | Values::Bools(_)
            | Values::Dictionary(..)
            | Values::Tuple(_)
            | Values::Parts(..)
            | Values::Encoded(..) => Ok(()),
            Values::Places(places) => {
                hash_found(hasher, rows, hashes, |row| Some(places[row].bytes()))
            }
            Values::Offsets32(offsets, data) => {
                let offset = |row: usize| i64::from(native_i32(offsets[row]));
                hash_slices(hasher, rows, hashes, data, offset)
            }
            Values::Offsets64(offsets, data) => {
                hash_slices(hasher, rows, hashes, data, |row| native_i64(offsets[row]))
            }
            Values::Views(views, buffers) => {
                hash_found(hasher, rows, hashes, |row| viewed(&views[row], buffers))
            }
            Values::Fixed(fixed) => fixed.hash_rows(hasher, rows, hashes),
        }
    }
}

impl Dictionary<'_> {
    /// Which value a row refers to.
    fn place(&self, indices: &Fixed<'_>, row: usize) -> Result<usize, NoKeys> {
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

impl Key<'_> {
    #[inline]
    pub(crate) fn hash(&self, hasher: &Hasher) -> Hash {
        match self {
            Self::Text(bytes) => hasher.hash(bytes),
            Self::Exact(bytes) => hasher.hash_exact(bytes),
        }
    }
}

#[inline]
fn hash_slices(
    hasher: &Hasher,
    rows: impl Iterator<Item = usize>,
    hashes: &mut Vec<Hash>,
    data: &[u8],
    offset: impl Fn(usize) -> i64,
) -> Result<(), NoKeys> {
    hash_found(hasher, rows, hashes, |row| {
        // A negative one is beyond every end.
        let (start, end) = (offset(row) as usize, offset(row + 1) as usize);
        // A line for each line of the key: the next keys are as long, mostly.
        prefetch_line(data.as_ptr().wrapping_add(start.wrapping_add(AHEAD)));
        if end.wrapping_sub(start) > 96 {
            prefetch_line(data.as_ptr().wrapping_add(start.wrapping_add(AHEAD + 64)));
        }
        data.get(start..end)
    })
}

/// Hashes what `find` finds for each row, up to the first without anything.
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
    match lost {
        Some(row) => Err(outside(row)),
        None => Ok(()),
    }
}

#[cold]
fn outside(row: usize) -> NoKeys {
    NoKeys::damaged(format_args!("whose row {row} lies outside its buffers"))
}

// Arrow's numbers are the machine's, and need not be aligned.

#[inline]
pub(crate) fn native_i32(bytes: [u8; 4]) -> i32 {
    match cfg!(target_endian = "big") {
        true => i32::from_be_bytes(bytes),
        false => i32::from_le_bytes(bytes),
    }
}

#[inline]
pub(crate) fn native_i64(bytes: [u8; 8]) -> i64 {
    match cfg!(target_endian = "big") {
        true => i64::from_be_bytes(bytes),
        false => i64::from_le_bytes(bytes),
    }
}

/// How far ahead of the hash the memory is asked for the bytes. The processor
/// does it by itself, too, but not beyond the next page.
const AHEAD: usize = 2048;

/// Asks the memory for two lines; only a hint.
#[inline(always)]
pub(crate) fn prefetch(place: *const u8) {
    prefetch_line(place);
    prefetch_line(place.wrapping_add(64));
}

#[inline(always)]
fn prefetch_line(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The bytes of a view: up to 12 are in the view itself. `None` if they are
/// said to be where nothing is.
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

impl Fixed<'_> {
    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: the row is one of the column's, which has `width` bytes at
        // every multiple of the stride.
        unsafe {
            std::slice::from_raw_parts(self.first.offset(row as isize * self.stride), self.width)
        }
    }

    fn hash_rows(
        &self,
        hasher: &Hasher,
        rows: impl Iterator<Item = usize>,
        hashes: &mut Vec<Hash>,
    ) -> Result<(), NoKeys> {
        match self.encoding {
            Encoding::Bytes => hasher.hash_all(rows.map(|row| self.bytes(row)), hashes),
            Encoding::Padded => {
                hasher.hash_all(rows.map(|row| unpadded(self.bytes(row))), hashes);
            }
            Encoding::Ucs4 => {
                let mut text = Vec::new();
                for row in rows {
                    utf8_of(self.bytes(row), self.swapped, &mut text)?;
                    hashes.push(hasher.hash(&text));
                }
            }
            Encoding::Integer { .. } => {
                hashes.extend(rows.map(|row| hasher.hash_exact(&self.integer(row).to_le_bytes())));
            }
            // Hashed one by one, since some rows are no keys, or are written first.
            Encoding::Float
            | Encoding::Bool
            | Encoding::Temporal(_)
            | Encoding::Decimal { .. }
            | Encoding::Uuid => {}
        }
        Ok(())
    }

    fn key<'s>(&'s self, row: usize, key: &'s mut Vec<u8>) -> Result<Option<Key<'s>>, NoKeys> {
        let bytes = self.bytes(row);
        key.clear();
        match self.encoding {
            Encoding::Bytes => return Ok(Some(Key::Text(bytes))),
            Encoding::Padded => return Ok(Some(Key::Text(unpadded(bytes)))),
            Encoding::Ucs4 => utf8_of(bytes, self.swapped, key)?,
            Encoding::Integer { .. } => {
                key.extend_from_slice(&self.integer(row).to_le_bytes());
                return Ok(Some(Key::Exact(key)));
            }
            Encoding::Float => {
                let Some(float) = Float::of(self.float(row)) else {
                    return Ok(None);
                };
                key.extend_from_slice(float.bytes());
                return Ok(Some(Key::Exact(key)));
            }
            Encoding::Bool => return Ok(Some(Key::Text(text::of_bool(bytes != [0])))),
            Encoding::Temporal(what) => match self.integer(row) as i64 {
                i64::MIN => return Ok(None),
                count if count < 0 && matches!(what, Temporal::Time(_)) => {
                    return Err(NoKeys::damaged(format_args!(
                        "whose row {row} is a time before midnight"
                    )));
                }
                count => what.write(count, key),
            },
            Encoding::Decimal { scale } => {
                // Arrow's, which are the machine's.
                match self.swapped {
                    true => {
                        let bytes: Vec<u8> = bytes.iter().rev().copied().collect();
                        text::write_decimal(&bytes, scale, key);
                    }
                    false => text::write_decimal(bytes, scale, key),
                }
            }
            Encoding::Uuid => text::write_uuid(bytes.try_into().unwrap_or(&[0; 16]), key),
        }
        Ok(Some(Key::Text(key)))
    }

    #[inline]
    fn float(&self, row: usize) -> f64 {
        match *self.bytes(row) {
            [a, b] => float::of_half(match self.swapped {
                true => u16::from_be_bytes([a, b]),
                false => u16::from_le_bytes([a, b]),
            }),
            [a, b, c, d] => match self.swapped {
                true => f32::from_be_bytes([a, b, c, d]).into(),
                false => f32::from_le_bytes([a, b, c, d]).into(),
            },
            [a, b, c, d, e, f, g, h] => match self.swapped {
                true => f64::from_be_bytes([a, b, c, d, e, f, g, h]),
                false => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            },
            _ => f64::NAN,
        }
    }

    /// The integer of a row, extended to 64 bits by its sign if it has one.
    #[inline]
    pub(crate) fn integer(&self, row: usize) -> u64 {
        let signed = self.encoding != Encoding::Integer { signed: false };
        let swapped = self.swapped;
        match *self.bytes(row) {
            [a] => extended([a], signed, swapped),
            [a, b] => extended([a, b], signed, swapped),
            [a, b, c, d] => extended([a, b, c, d], signed, swapped),
            [a, b, c, d, e, f, g, h] => extended([a, b, c, d, e, f, g, h], signed, swapped),
            _ => 0,
        }
    }
}

#[inline]
fn extended<const N: usize>(mut bytes: [u8; N], signed: bool, swapped: bool) -> u64 {
    if swapped {
        bytes.reverse();
    }
    // `swapped` is for bytes that are not little-endian.
    let negative = signed && bytes[N - 1] >= 128;
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(wide)
}

/// The lowest byte of each code point, and all their bits together.
#[inline(always)] // once for each order of bytes, without a branch inside
fn narrow(points: &[[u8; 4]], point: impl Fn([u8; 4]) -> u32, bytes: &mut [u8]) -> u32 {
    let mut all = 0;
    for (byte, code) in bytes.iter_mut().zip(points) {
        let point = point(*code);
        all |= point;
        *byte = point as u8;
    }
    all
}

/// Bytes without the zeros that fill them up.
#[inline]
fn unpadded(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|b| *b != 0);
    &bytes[..last.map_or(0, |last| last + 1)]
}

/// Writes the UTF-8 of code points to `text`.
#[inline]
fn utf8_of(points: &[u8], swapped: bool, text: &mut Vec<u8>) -> Result<(), NoKeys> {
    let points = points.as_chunks::<4>().0;
    let len = points
        .iter()
        .rposition(|p| *p != [0; 4])
        .map_or(0, |last| last + 1);
    let points = &points[..len];
    // ASCII, mostly: many at a time.
    text.resize(len, 0);
    let all = match swapped {
        true => narrow(points, u32::from_be_bytes, text),
        false => narrow(points, u32::from_le_bytes, text),
    };
    if all < 0x80 {
        return Ok(());
    }
    text.clear();
    for bytes in points {
        let point = match swapped {
            true => u32::from_be_bytes(*bytes),
            false => u32::from_le_bytes(*bytes),
        };
        let Some(point) = char::from_u32(point) else {
            return Err(NoKeys(
                "KeyEncodingError",
                format!("key: expected text that has UTF-8, got the surrogate U+{point:04X} in it"),
            ));
        };
        let mut utf8 = [0; 4];
        text.extend_from_slice(point.encode_utf8(&mut utf8).as_bytes());
    }
    Ok(())
}
