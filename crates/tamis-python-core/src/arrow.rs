//! Columns of other libraries through the Arrow C data interface, read in place.
//!
//! The interface doesn't include the lengths of buffers, so we trust the producer that each buffer is as long as the
//! array's lengths and offsets imply. Everything else is checked.

use crate::column::{Bits, Dictionary, KeyColumn, Values, native_i32, native_i64};
use crate::fixed::{Encoding, Fixed};
use crate::keys::NoKeys;
use crate::text::{Temporal, Ticks};
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;

/// The specification's structure, field by field: the type of a column.
#[expect(missing_docs, reason = "the specification documents them")]
#[repr(C)]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub private_data: *mut c_void,
}

/// The specification's structure, field by field: the rows of a column.
#[expect(missing_docs, reason = "the specification documents them")]
#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *const *const c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub private_data: *mut c_void,
}

/// The specification's structure, field by field: a sequence of arrays.
#[expect(missing_docs, reason = "the specification documents them")]
#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    pub private_data: *mut c_void,
}

/// An owned structure, which we have to release.
#[repr(transparent)] // a capsule may carry it as the structure
pub struct Owned<T: Release>(T);

impl<T: Release> Owned<T> {
    /// An empty structure, for a producer to fill.
    pub fn released() -> Self {
        Self(T::released())
    }

    /// Takes ownership of the structure.
    ///
    /// # Safety
    /// - It is released, or a producer has filled it as the specification demands.
    /// - Nobody else releases it, or uses what it points to after that.
    pub const unsafe fn new(structure: T) -> Self {
        Self(structure)
    }

    /// The structure, for a producer's function to fill.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        &raw mut self.0
    }
}

impl<T: Release> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The three structures: a producer fills them and provides the release function.
pub trait Release {
    /// A structure marked as owned by somebody else, as the specification says.
    fn released() -> Self;
    /// Whether it was moved or released.
    fn is_released(&self) -> bool;
    /// Releases it, unless it is released.
    ///
    /// # Safety
    /// Unless it is released, a producer has filled it, and neither it nor what it points to is used any more.
    unsafe fn release(&mut self);
}

macro_rules! release {
    ($name:ident) => {
        impl Release for $name {
            fn released() -> Self {
                // SAFETY: null pointers, zeros and absent functions.
                unsafe { std::mem::zeroed() }
            }

            fn is_released(&self) -> bool {
                self.release.is_none()
            }

            unsafe fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the caller's promise.
                    unsafe { release(self) }
                }
            }
        }
    };
}
release!(ArrowSchema);
release!(ArrowArray);
release!(ArrowArrayStream);

impl<T: Release> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: promised to `new`, or filled by a producer.
        unsafe { self.0.release() };
    }
}

// SAFETY: the specification allows any thread to read and release them.
unsafe impl<T: Release> Send for Owned<T> {}
// SAFETY: shared ones are only read.
unsafe impl<T: Release> Sync for Owned<T> {}

/// The array as a column of keys.
///
/// # Safety
/// Each of the two is released, or was made by a producer that follows the specification in these points:
/// - pointers are null, or point to what the specification says; formats end with a zero byte;
/// - buffers are as long as format, length and offset demand; the last buffer of views has the true lengths of those
///   before it;
/// - all of this exists, and nobody changes it, during `'a`.
pub unsafe fn column<'a>(
    schema: &ArrowSchema,
    array: &'a ArrowArray,
) -> Result<KeyColumn<'a>, NoKeys> {
    if schema.is_released() || array.is_released() {
        return Err(NoKeys::damaged("that was released already"));
    }
    // SAFETY: the caller's promise, for the dictionary, too.
    unsafe {
        match (schema.dictionary.as_ref(), array.dictionary.as_ref()) {
            (None, None) => plain_column(schema, array),
            (Some(values_schema), Some(values)) => {
                if !values_schema.dictionary.is_null() || !values.dictionary.is_null() {
                    return Err(NoKeys::damaged("with a dictionary of dictionaries"));
                }
                let values = plain_column(values_schema, values)?;
                let KeyColumn {
                    len,
                    valid,
                    values: indices,
                } = plain_column(schema, array)?;
                let integer = |encoding| matches!(encoding, Encoding::Integer { .. });
                let values = match (indices, &values.values) {
                    // A column of nulls may have any number of rows.
                    (_, Values::Nulls) => Values::Nulls,
                    (Values::Fixed(indices), _) if integer(indices.encoding()) => {
                        let hashes = Vec::new();
                        Values::Dictionary(indices, Box::new(Dictionary { values, hashes }))
                    }
                    _ => return Err(NoKeys::damaged("with a dictionary but no indices")),
                };
                Ok(KeyColumn { len, values, valid })
            }
            _ => Err(NoKeys::damaged("with one half of a dictionary")),
        }
    }
}

/// An array without its dictionary.
///
/// # Safety
/// As for [`column`].
unsafe fn plain_column<'a>(
    schema: &ArrowSchema,
    array: &'a ArrowArray,
) -> Result<KeyColumn<'a>, NoKeys> {
    if schema.format.is_null() {
        return Err(NoKeys::damaged("without a format"));
    }
    // SAFETY: the format is a string that lives as long as the schema.
    let format = unsafe { CStr::from_ptr(schema.format) };
    let format = format.to_str().unwrap_or("?");
    let buffers = Buffers::of(array)?;
    let len = buffers.len;
    if format == "n" {
        return Ok(KeyColumn {
            len,
            values: Values::Nulls,
            valid: None,
        });
    }
    // SAFETY: the buffers are those that the format prescribes, with the prescribed lengths.
    unsafe {
        let fixed = |width: usize, encoding| {
            let rows = buffers.rows(1, width)?;
            Ok::<_, NoKeys>(Values::Fixed(Fixed::of_slice(rows, width, encoding)))
        };
        let values = match format {
            "b" => Values::Bools(Bits {
                bytes: Cow::Borrowed(buffers.bits(1)?),
                offset: buffers.offset,
            }),
            "e" => fixed(2, Encoding::Float)?,
            "f" => fixed(4, Encoding::Float)?,
            "g" => fixed(8, Encoding::Float)?,
            "c" => fixed(1, Encoding::Integer { signed: true })?,
            "C" => fixed(1, Encoding::Integer { signed: false })?,
            "s" => fixed(2, Encoding::Integer { signed: true })?,
            "S" => fixed(2, Encoding::Integer { signed: false })?,
            "i" => fixed(4, Encoding::Integer { signed: true })?,
            "I" => fixed(4, Encoding::Integer { signed: false })?,
            "l" => fixed(8, Encoding::Integer { signed: true })?,
            "L" => fixed(8, Encoding::Integer { signed: false })?,
            "u" | "z" => {
                let offsets = buffers.offsets::<4>()?;
                let end = offsets.last().map_or(0, |end| native_i32(*end).into());
                Values::Offsets32(offsets, buffers.data(2, end)?)
            }
            "U" | "Z" => {
                let offsets = buffers.offsets::<8>()?;
                let end = offsets.last().map_or(0, |end| native_i64(*end));
                Values::Offsets64(offsets, buffers.data(2, end)?)
            }
            "vu" | "vz" => {
                let views = buffers.rows(1, 16)?.as_chunks().0;
                // After the views come the data buffers, and then their lengths.
                let last = buffers.count.saturating_sub(1);
                let data = 2..last.max(2);
                let lengths = buffers.data(last, 8 * data.len() as i64)?.as_chunks().0;
                let data = data.zip(lengths);
                let data = data.map(|(index, len)| buffers.data(index, native_i64(*len)));
                Values::Views(views, data.collect::<Result<_, _>>()?)
            }
            "w:16" if extension(schema) == Some(b"arrow.uuid") => fixed(16, Encoding::Uuid)?,
            _ => match (temporal(format), decimal(format)) {
                (Some((width, what)), _) => fixed(width, Encoding::Temporal(what))?,
                (None, Some((width, scale))) => fixed(width, Encoding::Decimal { scale })?,
                (None, None) => match format.strip_prefix("w:").map(str::parse) {
                    // With a width of 0 there could be any number of rows.
                    Some(Ok(width @ 1..)) => fixed(width, Encoding::Bytes)?,
                    _ => return Err(unknown(format)),
                },
            },
        };
        let valid = match array.null_count {
            0 => None,
            _ => buffers.validity()?,
        };
        Ok(KeyColumn { len, values, valid })
    }
}

/// Dates and times: the width of the numbers, and their meaning.
fn temporal(format: &str) -> Option<(usize, Temporal)> {
    let digits = |unit: &u8| match unit {
        b's' => Some(0),
        b'm' => Some(3),
        b'u' => Some(6),
        b'n' => Some(9),
        _ => None,
    };
    Some(match format.as_bytes() {
        b"tdD" => (4, Temporal::Days(1)),
        b"tdm" => (8, Temporal::DayOfMilliseconds),
        [b't', b't', unit] => {
            let digits = digits(unit)?;
            let width = if digits < 6 { 4 } else { 8 };
            (width, Temporal::Time(Ticks::decimal(digits)))
        }
        [b't', b'D', unit] => (8, Temporal::Duration(Ticks::decimal(digits(unit)?))),
        [b't', b's', unit, b':', zone @ ..] => {
            let (ticks, utc) = (Ticks::decimal(digits(unit)?), !zone.is_empty());
            (8, Temporal::Timestamp { ticks, utc })
        }
        _ => return None,
    })
}

/// Decimal numbers, as `d:precision,scale` or `d:precision,scale,bits`: their
/// width and scale.
fn decimal(format: &str) -> Option<(usize, i32)> {
    let mut numbers = format.strip_prefix("d:")?.split(',').skip(1);
    // A larger scale would write more digits than any number has.
    let scale = numbers.next()?.parse().ok()?;
    let width = match numbers.next() {
        None | Some("128") => 16,
        Some("32") => 4,
        Some("64") => 8,
        Some("256") => 32,
        Some(_) => return None,
    };
    (-1000..=1000).contains(&scale).then_some((width, scale))
}

/// The name of a column's extension type, if it has one.
///
/// # Safety
/// The metadata have the specification's format.
unsafe fn extension(schema: &ArrowSchema) -> Option<&[u8]> {
    let mut at = schema.metadata.cast::<u8>();
    if at.is_null() {
        return None;
    }
    // SAFETY: the number of pairs, then for each key and value its length and its bytes.
    unsafe {
        let length = |at: &mut *const u8| {
            let length = native_i32(at.cast::<[u8; 4]>().read_unaligned());
            *at = at.add(4);
            usize::try_from(length).ok()
        };
        for _ in 0..length(&mut at)? {
            let mut texts = [&[][..]; 2];
            for text in &mut texts {
                let len = length(&mut at)?;
                *text = std::slice::from_raw_parts(at, len);
                at = at.add(len);
            }
            if texts[0] == b"ARROW:extension:name" {
                return Some(texts[1]);
            }
        }
    }
    None
}

/// The buffers of an array, and the range of its rows.
struct Buffers<'a> {
    array: &'a ArrowArray,
    count: usize,
    offset: usize,
    len: usize,
}

impl<'a> Buffers<'a> {
    fn of(array: &'a ArrowArray) -> Result<Self, NoKeys> {
        let whole = |number: i64| usize::try_from(number).ok();
        let numbers = (
            whole(array.n_buffers),
            whole(array.offset),
            whole(array.length),
        );
        match numbers {
            (Some(count), Some(offset), Some(len))
                // These ends are multiplied by widths below.
                if offset.checked_add(len).is_some_and(|end| end < 1 << 56)
                    && (count == 0 || !array.buffers.is_null()) =>
            {
                Ok(Self {
                    array,
                    count,
                    offset,
                    len,
                })
            }
            _ => Err(NoKeys::damaged(format_args!(
                "of {} rows from {} on in {} buffers",
                array.length, array.offset, array.n_buffers
            ))),
        }
    }

    /// The first bytes of a buffer, which may be missing if it is empty.
    ///
    /// # Safety
    /// The buffer, if present, has this many bytes.
    unsafe fn data(&self, index: usize, len: i64) -> Result<&'a [u8], NoKeys> {
        let len = usize::try_from(len)
            .ok()
            .filter(|len| isize::try_from(*len).is_ok());
        match (len, self.pointer(index)) {
            (Some(0), _) => Ok(&[]),
            // SAFETY: the caller's promise; the array keeps the buffer alive for `'a`.
            (Some(len), Some(first)) => Ok(unsafe { std::slice::from_raw_parts(first, len) }),
            _ => Err(NoKeys::damaged(format_args!(
                "whose buffer {index} is missing, or has a length that none has"
            ))),
        }
    }

    /// The rows of a buffer with `width` bytes per row.
    ///
    /// # Safety
    /// As for [`data`](Self::data).
    unsafe fn rows(&self, index: usize, width: usize) -> Result<&'a [u8], NoKeys> {
        let end = (self.offset + self.len).checked_mul(width);
        let end = end.and_then(|end| i64::try_from(end).ok()).unwrap_or(-1);
        if self.len == 0 {
            return Ok(&[]);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.data(index, end)? };
        Ok(&bytes[self.offset * width..])
    }

    /// The start of each row, and the end of the last.
    ///
    /// # Safety
    /// As for [`data`](Self::data).
    unsafe fn offsets<const N: usize>(&self) -> Result<&'a [[u8; N]], NoKeys> {
        if self.len == 0 {
            return Ok(&[]);
        }
        let end = (self.offset + self.len + 1) * N;
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.data(1, end as i64)? };
        Ok(bytes[self.offset * N..].as_chunks().0)
    }

    /// The bits of a buffer with one bit per row, including rows before the offset.
    ///
    /// # Safety
    /// As for [`data`](Self::data).
    unsafe fn bits(&self, index: usize) -> Result<&'a [u8], NoKeys> {
        if self.len == 0 {
            return Ok(&[]);
        }
        let end = (self.offset + self.len).div_ceil(8) as i64;
        // SAFETY: the caller's promise.
        unsafe { self.data(index, end) }
    }

    /// Which rows are valid; `None` if all are.
    ///
    /// # Safety
    /// As for [`data`](Self::data).
    unsafe fn validity(&self) -> Result<Option<Bits<'a>>, NoKeys> {
        if self.pointer(0).is_none() {
            return Ok(None);
        }
        Ok(Some(Bits {
            // SAFETY: the caller's promise.
            bytes: Cow::Borrowed(unsafe { self.bits(0)? }),
            offset: self.offset,
        }))
    }

    fn pointer(&self, index: usize) -> Option<*const u8> {
        // SAFETY: there are this many pointers.
        let pointer = (index < self.count).then(|| unsafe { *self.array.buffers.add(index) });
        pointer.filter(|p| !p.is_null()).map(|p| p.cast())
    }
}

fn unknown(format: &str) -> NoKeys {
    let (what, hint) = match format.as_bytes() {
        [b'+', b's', ..] => (
            "a table".into(),
            "pass one of its columns, e.g. table[\"url\"]",
        ),
        [b't', b'i', ..] => (
            "intervals of months and days".into(),
            "cast them to a duration or to string first",
        ),
        [b'+', ..] => ("lists or maps".into(), "cast them to string first"),
        _ => (
            format!("the Arrow type {format:?}"),
            "cast it to string, binary or a type of numbers first",
        ),
    };
    NoKeys::of_type(format!(
        "keys: expected a column of strings, bytes, numbers, dates or times, got {what}; {hint}"
    ))
}
