//! The encoding of Redis's DUMP and RDB files.

use crate::bytes::View;
use crate::fields::Fields;
use crate::{Error, Format};
use std::borrow::Cow;
use std::ops::Range;

/// The type of a module's value, second version.
pub(super) const MODULE_2: u8 = 7;

/// Tags of a module's fields.
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// Module types: nine characters and the version of their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    Bloom,
    Cuckoo,
}

impl Module {
    const fn id(self) -> u64 {
        match self {
            Self::Bloom => id(b"MBbloom--", 4),
            Self::Cuckoo => id(b"MBbloomCF", 4),
        }
    }

    fn of(id: u64) -> Option<Self> {
        [Self::Bloom, Self::Cuckoo]
            .into_iter()
            .find(|module| module.id() == id)
    }
}

const fn id(name: &[u8; 9], version: u64) -> u64 {
    const SIXTY_FOUR: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut id, mut i) = (0, 0);
    while i < 9 {
        let mut digit = 0;
        while SIXTY_FOUR[digit] != name[i] {
            digit += 1;
        }
        id = id << 6 | digit as u64;
        i += 1;
    }
    id << 10 | version
}

/// A source of a value's fields: a DUMP, or the server.
pub trait Source<'a> {
    /// Reads a number.
    fn unsigned(&mut self, what: &'static str) -> Result<u64, Error>;
    /// Reads a 64-bit floating-point number.
    fn double(&mut self, what: &'static str) -> Result<f64, Error>;
    /// Reads a string.
    fn string(&mut self, what: &'static str) -> Result<Cow<'a, [u8]>, Error>;
}

/// A sink for a value's fields.
pub trait Sink {
    /// Writes a number.
    fn unsigned(&mut self, number: u64);
    /// Writes a 64-bit floating-point number.
    fn double(&mut self, number: f64);
    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}

/// Reads values in order.
pub(super) struct Reader<'a> {
    format: Format,
    fields: Fields<'a>,
}

/// A length, or the code of another string encoding.
enum Length {
    Plain(u64),
    Special(u8),
}

impl<'a> Reader<'a> {
    pub(super) fn new(format: Format, bytes: impl Into<View<'a>>) -> Self {
        Self {
            format,
            fields: Fields::new(format, bytes),
        }
    }

    pub(super) fn corrupt(
        &self,
        what: &'static str,
        expected: impl std::fmt::Display,
        got: impl std::fmt::Display,
    ) -> Error {
        Error::corrupt(self.format, what, expected, got)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        self.fields.u8(what)
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), Error> {
        self.fields.body("end", 0).map(drop)
    }

    fn length(&mut self, what: &'static str) -> Result<Length, Error> {
        let first = self.fields.u8(what)?;
        Ok(match (first >> 6, first & 63) {
            (0, low) => Length::Plain(low.into()),
            (1, low) => Length::Plain(u64::from(low) << 8 | u64::from(self.fields.u8(what)?)),
            (2, 0) => Length::Plain(self.fields.u32_be(what)?.into()),
            (2, 1) => Length::Plain(self.fields.u64_be(what)?),
            (3, low) => Length::Special(low),
            _ => return Err(self.corrupt(what, "a length", first)),
        })
    }

    fn plain_length(&mut self, what: &'static str) -> Result<u64, Error> {
        match self.length(what)? {
            Length::Plain(len) => Ok(len),
            Length::Special(code) => Err(self.corrupt(what, "a length", code)),
        }
    }

    /// Reads a string: borrowed, unless it is compressed or a number.
    fn string_value(&mut self, what: &'static str) -> Result<Cow<'a, [u8]>, Error> {
        let code = match self.length(what)? {
            Length::Plain(len) => return self.fields.take(what, len),
            Length::Special(code) => code,
        };
        Ok(match code {
            0 => (self.fields.u8(what)? as i8)
                .to_string()
                .into_bytes()
                .into(),
            1 => (self.fields.u16_le(what)? as i16)
                .to_string()
                .into_bytes()
                .into(),
            2 => (self.fields.u32_le(what)? as i32)
                .to_string()
                .into_bytes()
                .into(),
            3 => {
                let packed = self.plain_length(what)?;
                let len = self.plain_length(what)?;
                let packed = self.fields.take(what, packed)?;
                // LZF never compresses better than this, so a forged length
                // stays small.
                if len > packed.len() as u64 * 264 {
                    return Err(self.corrupt(what, "a length that LZF can have", len));
                }
                let text = lzf(&packed, len as usize);
                text.ok_or_else(|| self.corrupt(what, "LZF", "something else"))?
                    .into()
            }
            _ => return Err(self.corrupt(what, "an encoding of 0 to 3", code)),
        })
    }

    fn tag(&mut self, what: &'static str, expected: u64) -> Result<(), Error> {
        match self.plain_length(what)? {
            tag if tag == expected => Ok(()),
            tag => Err(self.corrupt(what, format_args!("a field of tag {expected}"), tag)),
        }
    }

    pub(super) fn end_of_value(&mut self) -> Result<(), Error> {
        self.tag("end of the value", END)
    }

    /// Reads which module's value follows.
    pub(super) fn module(&mut self) -> Result<Module, Error> {
        let id = self.plain_length("module")?;
        Module::of(id).ok_or_else(|| {
            self.corrupt(
                "module",
                "MBbloom-- or MBbloomCF of encoding 4",
                format_args!("{id:016x}"),
            )
        })
    }

    /// Skips a value of any module type.
    fn skip_module(&mut self) -> Result<(), Error> {
        loop {
            match self.plain_length("field")? {
                END => return Ok(()),
                1 | UNSIGNED => drop(self.plain_length("field")?),
                3 => drop(self.fields.skip("field", 4)?),
                DOUBLE => drop(self.fields.skip("field", 8)?),
                STRING => drop(self.string_value("field")?),
                tag => return Err(self.corrupt("field", "a tag of 0 to 5", tag)),
            }
        }
    }

    /// Skips a value of one of Redis's own types.
    fn skip(&mut self, kind: u8) -> Result<(), Error> {
        let mut strings = |each: u64| -> Result<(), Error> {
            for _ in 0..self.plain_length("value")?.saturating_mul(each) {
                self.string_value("value")?;
            }
            Ok(())
        };
        match kind {
            // A string, or a type packed into one.
            0 | 9..=13 | 16 | 17 | 20 => drop(self.string_value("value")?),
            1 | 2 | 14 => strings(1)?,
            4 => strings(2)?,
            3 | 5 => {
                for _ in 0..self.plain_length("value")? {
                    self.string_value("value")?;
                    let score = match kind {
                        5 => 8,
                        // A length, or a code for NaN or infinity.
                        _ => match self.fields.u8("score")? {
                            253.. => 0,
                            len => u64::from(len),
                        },
                    };
                    self.fields.skip("score", score)?;
                }
            }
            18 => {
                for _ in 0..self.plain_length("value")? {
                    self.plain_length("value")?;
                    self.string_value("value")?;
                }
            }
            MODULE_2 => {
                self.plain_length("module")?;
                self.skip_module()?;
            }
            _ => {
                return Err(self.corrupt(
                    "value",
                    "strings, lists, sets, hashes and module values; DUMP the filter's key by itself",
                    format_args!("a value of type {kind}"),
                ));
            }
        }
        Ok(())
    }
}

impl<'a> Source<'a> for Reader<'a> {
    fn unsigned(&mut self, what: &'static str) -> Result<u64, Error> {
        self.tag(what, UNSIGNED)?;
        self.plain_length(what)
    }

    fn double(&mut self, what: &'static str) -> Result<f64, Error> {
        self.tag(what, DOUBLE)?;
        self.fields.f64_le(what)
    }

    fn string(&mut self, what: &'static str) -> Result<Cow<'a, [u8]>, Error> {
        self.tag(what, STRING)?;
        self.string_value(what)
    }
}

/// A filter among the keys of an RDB file.
pub(super) struct Found {
    pub(super) name: Vec<u8>,
    /// From the module's id to the end of the value.
    pub(super) value: Range<usize>,
}

/// All filters of an RDB file.
pub(super) fn filters(format: Format, file: View<'_>) -> Result<Vec<Found>, Error> {
    check_sum(format, file)?;
    let mut reader = Reader::new(format, file);
    reader.fields.skip("magic and version", 9)?;
    let mut found = Vec::new();
    loop {
        match reader.u8("type")? {
            0xFF => return Ok(found),
            0xFE => drop(reader.plain_length("database")?),
            0xFD => drop(reader.fields.skip("expiry", 4)?),
            0xFC => drop(reader.fields.skip("expiry", 8)?),
            0xFB => {
                reader.plain_length("size")?;
                reader.plain_length("size")?;
            }
            0xFA => {
                reader.string_value("property")?;
                reader.string_value("property")?;
            }
            0xF9 => drop(reader.u8("frequency")?),
            0xF8 => drop(reader.plain_length("idle time")?),
            0xF7 => {
                reader.plain_length("module")?;
                reader.skip_module()?;
            }
            0xF5 => drop(reader.string_value("function")?),
            0xF4 => (0..3).try_for_each(|_| reader.plain_length("slot").map(drop))?,
            kind => {
                let name = reader.string_value("key")?.into_owned();
                let start = reader.fields.at();
                let is_filter = kind == MODULE_2 && {
                    let mut value = Reader::new(format, file.slice(start..file.len()));
                    value.module().is_ok()
                };
                reader.skip(kind)?;
                if is_filter {
                    let value = start..reader.fields.at();
                    found.push(Found { name, value });
                }
            }
        }
    }
}

/// The RDB file with another value, and a new checksum.
pub(super) fn replaced(file: View<'_>, place: Range<usize>, value: &[u8]) -> Vec<u8> {
    let mut out = file.slice(0..place.start).to_vec();
    out.extend_from_slice(value);
    out.extend_from_slice(&file.read(place.end..file.len()));
    if let Some(end) = out.len().checked_sub(8) {
        // A server without checksums writes zeros.
        if out[end..] != [0; 8] {
            let sum = crc64(out[..end].into());
            out[end..].copy_from_slice(&sum.to_le_bytes());
        }
    }
    out
}

/// Checks that the last eight bytes are the checksum of the others, or zeros.
/// Returns where they begin.
fn check_sum(format: Format, file: View<'_>) -> Result<usize, Error> {
    let Some(sum) = file.last_array() else {
        let got = file.len();
        return Err(Error::corrupt(format, "length", "at least 8 bytes", got));
    };
    let end = file.len() - 8;
    let (expected, got) = (crc64(file.slice(0..end)), u64::from_le_bytes(sum));
    if got != expected && got != 0 {
        let expected = format_args!("{expected:016x}");
        let got = format_args!("{got:016x}");
        return Err(Error::corrupt(format, "checksum", expected, got));
    }
    Ok(end)
}

/// The contents of a DUMP, and the version of its encoding.
pub(super) fn check_dump(format: Format, bytes: &[u8]) -> Result<(&[u8], u16), Error> {
    let end = check_sum(format, bytes.into())?;
    match bytes[..end].split_last_chunk::<2>() {
        Some((payload, version)) => Ok((payload, u16::from_le_bytes(*version))),
        None => {
            let got = bytes.len();
            Err(Error::corrupt(format, "length", "at least 10 bytes", got))
        }
    }
}

/// Writes values in order.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn length(&mut self, len: u64) {
        match len {
            0..64 => self.0.push(len as u8),
            64..16384 => self.0.extend([0x40 | (len >> 8) as u8, len as u8]),
            _ => match u32::try_from(len) {
                Ok(len) => {
                    self.0.push(0x80);
                    self.0.extend(len.to_be_bytes());
                }
                Err(_) => {
                    self.0.push(0x81);
                    self.0.extend(len.to_be_bytes());
                }
            },
        }
    }

    pub(super) fn module(&mut self, module: Module) {
        self.length(module.id());
    }

    pub(super) fn end_of_value(&mut self) {
        self.length(END);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn into_dump(mut self, version: u16) -> Vec<u8> {
        self.0.extend(version.to_le_bytes());
        let sum = crc64(self.0[..].into());
        self.0.extend(sum.to_le_bytes());
        self.0
    }
}

impl Sink for Writer {
    fn unsigned(&mut self, number: u64) {
        self.length(UNSIGNED);
        self.length(number);
    }

    fn double(&mut self, number: f64) {
        self.length(DOUBLE);
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.length(STRING);
        self.length(bytes.len() as u64);
        self.0.extend(bytes);
    }
}

/// CRC-64 with Jones's polynomial, as in Redis.
fn crc64(bytes: View<'_>) -> u64 {
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u64, 0);
            while bit < 8 {
                crc = crc >> 1 ^ (crc & 1).wrapping_neg() & 0x95ac_9329_ac4b_c9b5;
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    let mut sum = 0;
    let _ = bytes.pieces(|piece| {
        let next = |crc, byte: &u8| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8;
        sum = piece.iter().fold(sum, next);
        Ok::<(), ()>(())
    });
    sum
}

/// Unpacks LZF to exactly `len` bytes.
fn lzf(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(len);
    let mut bytes = packed.iter().copied();
    while let Some(control) = bytes.next() {
        let control = usize::from(control);
        if control < 32 {
            // Literals.
            for _ in 0..=control {
                out.push(bytes.next()?);
            }
        } else {
            let mut copied = control >> 5;
            if copied == 7 {
                copied += usize::from(bytes.next()?);
            }
            let back = (control & 31) << 8 | usize::from(bytes.next()?);
            let start = out.len().checked_sub(back + 1)?;
            // It may copy bytes that it has just written.
            for from in start..start + copied + 2 {
                out.push(out[from]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}
