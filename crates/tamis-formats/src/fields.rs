//! Reading a file's fields in order, never beyond its end.

use crate::{Error, Format};

pub(crate) struct Fields<'a> {
    format: Format,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self {
            format,
            bytes,
            at: 0,
        }
    }

    /// How far it has read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn take(&mut self, what: &'static str, len: u64) -> Result<&'a [u8], Error> {
        let left = self.rest();
        match usize::try_from(len).ok().filter(|len| *len <= left.len()) {
            Some(len) => {
                self.at += len;
                Ok(&left[..len])
            }
            None => Err(self.corrupt(what, format_args!("{len} bytes"), left.len())),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let bytes = self.take(what, N as u64)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn u16_le(&mut self, what: &'static str) -> Result<u16, Error> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32_le(&mut self, what: &'static str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64_le(&mut self, what: &'static str) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn f64_le(&mut self, what: &'static str) -> Result<f64, Error> {
        self.array(what).map(f64::from_le_bytes)
    }

    pub(crate) fn u32_be(&mut self, what: &'static str) -> Result<u32, Error> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(crate) fn u64_be(&mut self, what: &'static str) -> Result<u64, Error> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// A number that must lie in a range.
    pub(crate) fn within<T: PartialOrd + std::fmt::Display + Copy>(
        &self,
        what: &'static str,
        range: std::ops::RangeInclusive<T>,
        got: T,
    ) -> Result<T, Error> {
        match range.contains(&got) {
            true => Ok(got),
            false => {
                let (low, high) = (range.start(), range.end());
                Err(self.corrupt(what, format_args!("{low} to {high}"), got))
            }
        }
    }

    /// Exactly this many bytes must be left.
    pub(crate) fn body(&self, what: &'static str, len: u64) -> Result<usize, Error> {
        match self.rest().len() as u64 == len {
            true => Ok(self.at),
            false => Err(self.corrupt(what, format_args!("{len} bytes"), self.rest().len())),
        }
    }

    pub(crate) fn corrupt(
        &self,
        what: &'static str,
        expected: impl std::fmt::Display,
        got: impl std::fmt::Display,
    ) -> Error {
        Error::corrupt(self.format, what, expected, got)
    }
}
