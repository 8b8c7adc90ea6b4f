//! Reads a file's fields in order, never past its end.

use crate::bytes::View;
use crate::{Error, Format};
use std::borrow::Cow;

pub(crate) struct Fields<'a> {
    format: Format,
    file: View<'a>,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(format: Format, file: impl Into<View<'a>>) -> Self {
        let file = file.into();
        Self {
            format,
            file,
            at: 0,
        }
    }

    /// The current position.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// The number of bytes left.
    pub(crate) const fn left(&self) -> usize {
        self.file.len() - self.at
    }

    /// Skips some bytes; returns where they begin.
    pub(crate) fn skip(&mut self, what: &'static str, len: u64) -> Result<usize, Error> {
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.left())
            .ok_or_else(|| self.corrupt(what, format_args!("{len} bytes"), self.left()))?;
        self.at += len;
        Ok(self.at - len)
    }

    pub(crate) fn take(&mut self, what: &'static str, len: u64) -> Result<Cow<'a, [u8]>, Error> {
        let start = self.skip(what, len)?;
        Ok(self.file.read(start..self.at))
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let start = self.skip(what, N as u64)?;
        Ok(std::array::from_fn(|i| self.file.get(start + i)))
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

    /// Reads the next number, which must be in a range.
    pub(crate) fn ranged<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        what: &'static str,
        range: std::ops::RangeInclusive<T>,
        read: impl FnOnce(&mut Self, &'static str) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let got = read(self, what)?;
        self.within(what, range, got)
    }

    /// Checks that a number is in a range.
    pub(crate) fn within<T: PartialOrd + std::fmt::Display + Copy>(
        &self,
        what: &'static str,
        range: std::ops::RangeInclusive<T>,
        got: T,
    ) -> Result<T, Error> {
        if range.contains(&got) {
            return Ok(got);
        }
        let (low, high) = (range.start(), range.end());
        Err(self.corrupt(what, format_args!("{low} to {high}"), got))
    }

    /// Checks that exactly this many bytes are left; returns where they begin.
    pub(crate) fn body(&self, what: &'static str, len: u64) -> Result<usize, Error> {
        if self.left() as u64 != len {
            return Err(self.corrupt(what, format_args!("{len} bytes"), self.left()));
        }
        Ok(self.at)
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
