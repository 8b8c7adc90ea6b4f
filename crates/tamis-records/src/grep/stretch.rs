//! Parts of a file's text, and runs of adjacent ones.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};

/// A part of a file's text that starts at the beginning of a line. Text is what
/// [`TextReader`](crate::input::TextReader) reads: UTF-8 or other bytes, without a byte-order mark.
pub struct Stretch<'a> {
    /// The bytes of text before it.
    pub offset: u64,
    /// The lines before it.
    pub line: u64,
    /// The text of the part.
    pub text: Box<dyn Read + 'a>,
}

/// Adjacent stretches, read as one text.
pub(super) struct Run<'a, 'r, I> {
    stretches: &'r mut I,
    text: Box<dyn Read + 'a>,
    /// The position of the next byte in the file's text.
    position: u64,
    /// The stretch after a gap.
    next: &'r mut Option<Stretch<'a>>,
    ended: bool,
    /// Set when no more is needed.
    done: &'r Cell<bool>,
}

impl<'a, 'r, I: Iterator<Item = io::Result<Stretch<'a>>>> Run<'a, 'r, I> {
    /// A run that begins with `first`; leaves the first stretch of the next run in `next`.
    pub(super) fn new(
        first: Stretch<'a>,
        stretches: &'r mut I,
        next: &'r mut Option<Stretch<'a>>,
        done: &'r Cell<bool>,
    ) -> Self {
        Self {
            stretches,
            text: first.text,
            position: first.offset,
            next,
            ended: false,
            done,
        }
    }
}

impl<'a, I: Iterator<Item = io::Result<Stretch<'a>>>> Read for Run<'a, '_, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !self.done.get() {
            let read = match self.text.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read > 0 {
                self.position += read as u64;
                return Ok(read);
            }
            match self.stretches.next().transpose()? {
                Some(next) if next.offset == self.position => self.text = next.text,
                next => {
                    *self.next = next;
                    self.ended = true;
                }
            }
        }
        Ok(0)
    }
}
