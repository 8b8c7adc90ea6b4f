//! The parts of protocol buffers that ORC's indices need.

use crate::{Error, Format};

/// A field's value: a number, or bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order.
pub(crate) struct Message<'a> {
    format: Format,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) const fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self {
            format,
            rest: bytes,
        }
    }

    fn corrupt(&self) -> Error {
        let left = format!("{} bytes that are none", self.rest.len());
        Error::corrupt(self.format, "message", "fields of protocol buffers", left)
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(|| self.corrupt())?;
            self.rest = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if *byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.corrupt())
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Error> {
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.rest.len());
        let (taken, rest) = self.rest.split_at(len.ok_or_else(|| self.corrupt())?);
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), Error> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return Err(self.corrupt()),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Value<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
