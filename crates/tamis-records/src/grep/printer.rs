//! Prints lines as ripgrep's printer does.

use super::options::Options;
use bstr::ByteSlice;
use grep_matcher::Match;
use std::io::Write;
use std::path::Path;

const RESET: &[u8] = b"\x1b[0m";
const PATH: &[u8] = b"\x1b[0m\x1b[35m";
const NUMBER: &[u8] = b"\x1b[0m\x1b[32m";
const MATCH: &[u8] = b"\x1b[0m\x1b[1m\x1b[31m";

/// A line to print.
pub(super) struct Line<'a> {
    /// The line with its end, if it has one.
    pub(super) bytes: &'a [u8],
    /// The bytes before it.
    pub(super) offset: u64,
    /// Its number, from 1.
    pub(super) number: Option<u64>,
    /// A context line: it has no match, but a neighbour has.
    pub(super) context: bool,
    /// Its matches, if needed.
    pub(super) matches: &'a [Match],
}

/// Prints the lines and counts of one file.
pub(super) struct Printer<'a> {
    options: &'a Options,
    /// The path, coloured.
    path: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &'a Options, path: &Path) -> Self {
        let mut coloured = Vec::new();
        field(
            &mut coloured,
            options,
            PATH,
            path.as_os_str().as_encoded_bytes(),
        );
        Self {
            options,
            path: coloured,
        }
    }

    /// Prints the path on its own line.
    pub(super) fn path(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.path);
        out.push(if self.options.null { 0 } else { b'\n' });
    }

    /// Prints the heading above the lines of the file.
    pub(super) fn heading(&self, out: &mut Vec<u8>) {
        if self.options.heading && self.options.with_path {
            self.path(out);
        }
    }

    pub(super) fn count(&self, out: &mut Vec<u8>, count: u64) {
        if self.options.with_path {
            self.path_field(out, b':');
        }
        decimal(out, count);
        out.push(b'\n');
    }

    pub(super) fn gap(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"--\n");
    }

    #[inline]
    pub(super) fn line(&self, out: &mut Vec<u8>, line: &Line) {
        let Some(first) = line.matches.first() else {
            self.fields(out, line, 0, None);
            return self.text(out, line, line.bytes);
        };
        if self.options.only_matching {
            for found in line.matches {
                self.fields(out, line, found.start(), Some(found.start()));
                let text = &line.bytes[*found];
                if self.options.colour {
                    self.coloured(out, line, text, &[Match::new(0, text.len())]);
                } else {
                    self.text(out, line, text);
                }
            }
            return;
        }
        self.fields(out, line, 0, Some(first.start()));
        if self.options.colour {
            self.coloured(out, line, line.bytes, line.matches);
        } else {
            self.text(out, line, line.bytes);
        }
    }

    /// Prints the fields before a line: path, number, column and offset.
    #[inline]
    fn fields(&self, out: &mut Vec<u8>, line: &Line, start: usize, column: Option<usize>) {
        let options = self.options;
        let separator = if line.context { b'-' } else { b':' };
        if options.with_path && !options.heading {
            self.path_field(out, separator);
        }
        let mut number = |colour: &[u8], number: u64| {
            if options.colour {
                out.extend_from_slice(colour);
                decimal(out, number);
                out.extend_from_slice(RESET);
            } else {
                decimal(out, number);
            }
            out.push(separator);
        };
        if let Some(line) = line.number {
            number(NUMBER, line);
        }
        if let Some(column) = column.filter(|_| options.column) {
            number(RESET, column as u64 + 1);
        }
        if options.byte_offset {
            number(RESET, line.offset + start as u64);
        }
    }

    fn path_field(&self, out: &mut Vec<u8>, separator: u8) {
        out.extend_from_slice(&self.path);
        out.push(if self.options.null { 0 } else { separator });
    }

    /// Prints a line or match without colours.
    #[inline]
    fn text(&self, out: &mut Vec<u8>, line: &Line, text: &[u8]) {
        if self.is_too_long(text) {
            return self.too_long(out, line, text, line.matches);
        }
        out.extend_from_slice(text);
        if text.last() != Some(&b'\n') {
            out.push(b'\n');
        }
    }

    fn coloured(&self, out: &mut Vec<u8>, line: &Line, text: &[u8], matches: &[Match]) {
        if self.is_too_long(text) {
            return self.too_long(out, line, text, matches);
        }
        self.colour_matches(out, text, matches);
        out.push(b'\n');
    }

    /// Prints text with its matches coloured, without its line end.
    fn colour_matches(&self, out: &mut Vec<u8>, text: &[u8], matches: &[Match]) {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if !self.options.colour {
            return out.extend_from_slice(text);
        }
        let mut done = 0;
        let mut in_colour = false;
        let mut colour = |out: &mut Vec<u8>, on: bool| {
            if in_colour != on {
                out.extend_from_slice(if on { MATCH } else { RESET });
                in_colour = on;
            }
        };
        for found in matches {
            let (start, end) = (found.start().min(text.len()), found.end().min(text.len()));
            if done < start {
                colour(out, false);
                out.extend_from_slice(&text[done..start]);
            }
            if start < end {
                colour(out, true);
                out.extend_from_slice(&text[start..end]);
            }
            done = end.max(done);
        }
        if done < text.len() {
            colour(out, false);
            out.extend_from_slice(&text[done..]);
        }
        colour(out, false);
    }

    fn is_too_long(&self, text: &[u8]) -> bool {
        self.options
            .max_columns
            .is_some_and(|most| text.len() as u64 > most)
    }

    fn too_long(&self, out: &mut Vec<u8>, line: &Line, text: &[u8], matches: &[Match]) {
        if self.options.max_columns_preview {
            let most = self.options.max_columns.unwrap_or(0) as usize;
            let end = text
                .grapheme_indices()
                .take(most)
                .last()
                .map_or(0, |(_, end, _)| end);
            self.colour_matches(out, &text[..end], matches);
            if matches.is_empty() {
                out.extend_from_slice(b" [... omitted end of long line]");
            } else {
                let left = matches
                    .iter()
                    .filter(|found| (end..text.len()).contains(&found.start()))
                    .count();
                let noun = if left == 1 { "match" } else { "matches" };
                let _ = write!(out, " [... {left} more {noun}]");
            }
        } else if line.matches.is_empty() || self.options.only_matching {
            let kind = if line.context { "context" } else { "matching" };
            let _ = write!(out, "[Omitted long {kind} line]");
        } else {
            let _ = write!(
                out,
                "[Omitted long line with {} matches]",
                line.matches.len()
            );
        }
        out.push(b'\n');
    }
}

fn field(out: &mut Vec<u8>, options: &Options, colour: &[u8], text: &[u8]) {
    if options.colour {
        out.extend_from_slice(colour);
        out.extend_from_slice(text);
        out.extend_from_slice(RESET);
    } else {
        out.extend_from_slice(text);
    }
}

/// `write!` takes several times as long, which matters for lines of a common
/// word.
fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[begin..]);
}
