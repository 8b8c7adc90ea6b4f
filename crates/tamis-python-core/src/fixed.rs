//! Columns of equally sized values at equal distances.

use crate::float::{self, Float};
use crate::keys::{Key, NoKeys};
use crate::text::{self, Temporal};
use std::marker::PhantomData;
use tamis::{Hash, Hasher};

/// Equally sized values at equal distances.
#[derive(Clone, Copy)]
pub struct Fixed<'a> {
    first: *const u8,
    stride: isize,
    rows: usize,
    width: usize,
    /// Whether numbers are big-endian.
    swapped: bool,
    encoding: Encoding,
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: only read, like a slice.
unsafe impl Send for Fixed<'_> {}
// SAFETY: a shared one is also only read.
unsafe impl Sync for Fixed<'_> {}

/// The meaning of a fixed-size value's bytes.
#[derive(Clone, Copy, PartialEq)]
pub enum Encoding {
    /// The key itself.
    Bytes,
    /// The key, padded with zeros (numpy's `S`).
    Padded,
    /// 4-byte code points, padded with zeros (numpy's `U`).
    Ucs4,
    /// An integer, whose key is its 8 little-endian bytes.
    Integer {
        /// Whether it may be negative.
        signed: bool,
    },
    /// A float of 2, 4 or 8 bytes.
    Float,
    /// A byte that is 0 for false.
    Bool,
    /// An integer that stands for a date or a time; the smallest 8-byte integer means none.
    Temporal(Temporal),
    /// A decimal number's digits.
    Decimal {
        /// The number of digits after the point.
        scale: i32,
    },
    /// A UUID: 16 bytes.
    Uuid,
}

impl<'a> Fixed<'a> {
    /// Adjacent values with native-endian numbers, like Arrow's.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn of_slice(bytes: &'a [u8], width: usize, encoding: Encoding) -> Self {
        let (first, rows) = (bytes.as_ptr(), bytes.len() / width);
        let swapped = cfg!(target_endian = "big");
        // SAFETY: the slice has room for this many rows, and is borrowed for `'a`.
        unsafe { Self::new(first, width as isize, rows, width, swapped, encoding) }
    }

    /// Values at any distance from each other; `swapped` if numbers are big-endian.
    ///
    /// # Safety
    /// For every row below `rows`:
    /// - `row * stride` does not overflow, and `first` offset by it is within one allocation, together with the `width`
    ///   bytes from there on;
    /// - these bytes are initialised, and nobody changes or frees them during `'a`.
    pub unsafe fn new(
        first: *const u8,
        stride: isize,
        rows: usize,
        width: usize,
        swapped: bool,
        encoding: Encoding,
    ) -> Self {
        Self {
            first,
            stride,
            rows,
            width,
            swapped,
            encoding,
            owner: PhantomData,
        }
    }

    /// The type of the values.
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    #[inline]
    fn bytes(&self, row: usize) -> &'a [u8] {
        assert!(row < self.rows, "the column has no such row");
        // SAFETY: promised to `new`, for this row.
        unsafe {
            std::slice::from_raw_parts(self.first.offset(row as isize * self.stride), self.width)
        }
    }

    /// Hashes rows whose values are in memory as hashed, or nearly so; does nothing for others.
    pub(crate) fn hash_rows(
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
            _ => {}
        }
        Ok(())
    }

    /// Whether [`hash_rows`](Self::hash_rows) can hash these values, all of which are keys.
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(
            self.encoding,
            Encoding::Bytes | Encoding::Padded | Encoding::Ucs4 | Encoding::Integer { .. }
        )
    }

    pub(crate) fn key<'s>(
        &self,
        row: usize,
        key: &'s mut Vec<u8>,
    ) -> Result<Option<Key<'s>>, NoKeys>
    where
        'a: 's,
    {
        let bytes = self.bytes(row);
        key.clear();
        match self.encoding {
            Encoding::Bytes => return Ok(Some(Key::Text(bytes))),
            Encoding::Padded => return Ok(Some(Key::Text(unpadded(bytes)))),
            Encoding::Bool => return Ok(Some(Key::Text(text::of_bool(bytes != [0])))),
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
            Encoding::Ucs4 => utf8_of(bytes, self.swapped, key)?,
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
                let mut digits = bytes.to_vec();
                if self.swapped {
                    digits.reverse();
                }
                text::write_decimal(&digits, scale, key);
            }
            Encoding::Uuid => text::write_uuid(bytes.try_into().unwrap_or(&[0; 16]), key),
        }
        Ok(Some(Key::Text(key)))
    }

    /// The float of a row; NaN means none.
    #[inline]
    pub(crate) fn float(&self, row: usize) -> f64 {
        let bits = self.bits(row, false);
        match self.width {
            2 => float::of_half(bits as u16),
            4 => f32::from_bits(bits as u32).into(),
            8 => f64::from_bits(bits),
            _ => f64::NAN,
        }
    }

    /// The integer of a row, sign-extended to 64 bits if signed.
    #[inline]
    pub(crate) fn integer(&self, row: usize) -> u64 {
        self.bits(row, self.encoding != Encoding::Integer { signed: false })
    }

    #[inline]
    fn bits(&self, row: usize, signed: bool) -> u64 {
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

/// Extends the bytes of a number to 8 bytes.
#[inline]
fn extended<const N: usize>(mut bytes: [u8; N], signed: bool, swapped: bool) -> u64 {
    if swapped {
        bytes.reverse();
    }
    let negative = signed && bytes[N - 1] >= 128;
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(wide)
}

/// The lowest byte of each code point; returns the OR of all code points.
#[inline(always)] // one copy per byte order, without a branch inside
fn narrow(points: &[[u8; 4]], point: impl Fn([u8; 4]) -> u32, bytes: &mut [u8]) -> u32 {
    let mut all = 0;
    for (byte, code) in bytes.iter_mut().zip(points) {
        let point = point(*code);
        all |= point;
        *byte = point as u8;
    }
    all
}

/// Bytes without the zero padding.
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
    // Mostly ASCII: converted in bulk.
    text.resize(len, 0);
    let all = if swapped {
        narrow(points, u32::from_be_bytes, text)
    } else {
        narrow(points, u32::from_le_bytes, text)
    };
    if all < 0x80 {
        return Ok(());
    }
    text.clear();
    for bytes in points {
        let point = if swapped {
            u32::from_be_bytes(*bytes)
        } else {
            u32::from_le_bytes(*bytes)
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
