//! Buffered output.

use std::io::{self, Write};

/// Collects output and passes it on in pieces of whole lines.
pub(super) struct Output<'a> {
    pub(super) buffer: &'a mut Vec<u8>,
    to: &'a mut dyn Write,
    passed_on: u64,
    pub(super) failed: bool,
}

const PIECE: usize = 64 * 1024;

impl<'a> Output<'a> {
    pub(super) fn new(buffer: &'a mut Vec<u8>, to: &'a mut dyn Write) -> Self {
        buffer.clear();
        Self {
            buffer,
            to,
            passed_on: 0,
            failed: false,
        }
    }

    /// The bytes printed so far.
    pub(super) fn printed(&self) -> u64 {
        self.passed_on + self.buffer.len() as u64
    }

    /// Called after each line.
    #[inline]
    pub(super) fn end_of_line(&mut self) -> io::Result<()> {
        if self.buffer.len() < PIECE {
            return Ok(());
        }
        self.pass_on()
    }

    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.to.write_all(self.buffer);
        self.failed = written.is_err();
        self.passed_on += self.buffer.len() as u64;
        self.buffer.clear();
        // Releases the memory of a line of gigabytes.
        self.buffer.shrink_to(16 * PIECE);
        written
    }
}
