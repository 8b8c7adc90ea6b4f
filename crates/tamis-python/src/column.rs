//! Keys that lie in memory as a column, readable without the GIL.

use crate::float;
use std::borrow::Cow;
use std::ops::Range;
use tamis::{Hash, Hasher};

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
    /// Row `i` is the value number `index(i)`: its hash, if it is a key.
    Dictionary(Fixed<'a>, Vec<Option<Hash>>),
}

/// Values of one size, at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    pub(crate) first: *const u8,
    pub(crate) stride: isize,
    pub(crate) width: usize,
    pub(crate) encoding: Encoding,
    pub(crate) owner: std::marker::PhantomData<&'a [u8]>,
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
    Ucs4 { swapped: bool },
    /// An integer, whose key are its 8 little-endian bytes.
    Integer { signed: bool, swapped: bool },
    /// A float of 4 or 8 bytes; NaN is no key.
    Float { swapped: bool },
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
        let valid = |row: &usize| self.valid.as_ref().is_none_or(|valid| valid.get(*row));
        if let Values::Dictionary(indices, values) = &self.values {
            for row in range.filter(valid) {
                let index = indices.integer(row);
                match usize::try_from(index).ok().and_then(|i| values.get(i)) {
                    Some(Some(hash)) => {
                        hashes.push(*hash);
                        rows.push(row - start);
                    }
                    Some(None) => {}
                    None => {
                        return Err(NoKeys::damaged(format_args!(
                            "whose row {row} has the dictionary's value {index}, of {}",
                            values.len()
                        )));
                    }
                }
            }
            return Ok(());
        }
        if let Values::Fixed(fixed) = &self.values
            && let Encoding::Float { swapped } = fixed.encoding
        {
            for row in range.filter(valid) {
                if let Some(hash) = float::hash(hasher, fixed.float(row, swapped)) {
                    hashes.push(hash);
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

    /// The hash of every row that is a key, for the values of a dictionary.
    pub(crate) fn hash_all(&self, hasher: &Hasher) -> Result<Vec<Option<Hash>>, NoKeys> {
        let (mut hashes, mut rows) = (Vec::new(), Vec::new());
        self.hash(hasher, 0..self.len, &mut hashes, &mut rows)?;
        if hashes.len() == self.len {
            return Ok(hashes.into_iter().map(Some).collect());
        }
        let mut all = vec![None; self.len];
        for (row, hash) in rows.into_iter().zip(hashes) {
            all[row] = Some(hash);
        }
        Ok(all)
    }

    #[inline]
    fn hash_rows(
        &self,
        hasher: &Hasher,
        rows: impl Iterator<Item = usize>,
        hashes: &mut Vec<Hash>,
    ) -> Result<(), NoKeys> {
        match &self.values {
            Values::Nulls | Values::Dictionary(..) => Ok(()),
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
                let unpadded = rows.map(|row| {
                    let bytes = self.bytes(row);
                    let last = bytes.iter().rposition(|b| *b != 0);
                    &bytes[..last.map_or(0, |last| last + 1)]
                });
                hasher.hash_all(unpadded, hashes);
            }
            Encoding::Ucs4 { swapped } => {
                let mut text = String::new();
                for row in rows {
                    utf8_of(self.bytes(row), swapped, &mut text)?;
                    hashes.push(hasher.hash(text.as_bytes()));
                }
            }
            // Hashed above, since some rows are no keys.
            Encoding::Float { .. } => {}
            Encoding::Integer { .. } => {
                hashes.extend(rows.map(|row| hasher.hash_exact(&self.integer(row).to_le_bytes())));
            }
        }
        Ok(())
    }

    #[inline]
    fn float(&self, row: usize, swapped: bool) -> f64 {
        match *self.bytes(row) {
            [a, b, c, d] => match swapped {
                true => f32::from_be_bytes([a, b, c, d]).into(),
                false => f32::from_le_bytes([a, b, c, d]).into(),
            },
            [a, b, c, d, e, f, g, h] => match swapped {
                true => f64::from_be_bytes([a, b, c, d, e, f, g, h]),
                false => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            },
            _ => f64::NAN,
        }
    }

    /// The integer of a row, extended to 64 bits by its sign if it has one.
    #[inline]
    pub(crate) fn integer(&self, row: usize) -> u64 {
        let Encoding::Integer { signed, swapped } = self.encoding else {
            return 0;
        };
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

/// Writes the UTF-8 of code points to `text`.
fn utf8_of(points: &[u8], swapped: bool, text: &mut String) -> Result<(), NoKeys> {
    text.clear();
    let points = points.as_chunks::<4>().0;
    let len = points
        .iter()
        .rposition(|p| *p != [0; 4])
        .map_or(0, |last| last + 1);
    for point in &points[..len] {
        let point = match swapped {
            true => u32::from_be_bytes(*point),
            false => u32::from_le_bytes(*point),
        };
        text.push(char::from_u32(point).ok_or_else(|| {
            NoKeys(
                "KeyEncodingError",
                format!("key: expected text that has UTF-8, got the surrogate U+{point:04X} in it"),
            )
        })?);
    }
    Ok(())
}
