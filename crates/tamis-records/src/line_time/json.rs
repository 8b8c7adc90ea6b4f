//! Times in lines of JSON, in fields with certain names.

use super::epoch;
use super::stamp::Stamps;
use memchr::memchr;
use memchr::memmem::Finder;

/// The names, each with the quote after it.
const NAMES: [&[u8]; 4] = [b"ts\"", b"time\"", b"timestamp\"", b"@timestamp\""];
/// The longest text of a time.
const LONGEST: usize = 64;

/// Finds fields. The line isn't parsed: a quoted name followed by a colon counts anywhere.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// The beginning of all names but one, and that of the other.
    plain: Finder<'static>,
    special: Finder<'static>,
}

impl Fields {
    pub(super) fn new() -> Self {
        Self {
            plain: Finder::new("\"t"),
            special: Finder::new("\"@t"),
        }
    }

    /// The time of the first field that has one.
    pub(super) fn find(&self, stamps: &mut Stamps, line: &[u8]) -> Option<i64> {
        let mut from = 0;
        loop {
            let plain = self.plain.find(&line[from..]).map(|at| from + at);
            let end = plain.unwrap_or(line.len());
            while let Some(at) = self.special.find(&line[from..end]) {
                from += at + 1;
                if let Some(time) = field_time(stamps, &line[from..]) {
                    return Some(time);
                }
            }
            from = plain? + 1;
            if let Some(time) = field_time(stamps, &line[from..]) {
                return Some(time);
            }
        }
    }
}

/// The time of a field, given what follows the quote before its name.
fn field_time(stamps: &mut Stamps, field: &[u8]) -> Option<i64> {
    let behind = NAMES.iter().find_map(|name| field.strip_prefix(*name))?;
    let value = behind.trim_ascii_start().strip_prefix(b":")?;
    let value = value.trim_ascii_start();
    let Some(text) = value.strip_prefix(b"\"") else {
        return epoch::at_start(value).map(|(micros, _)| micros);
    };
    let text = &text[..text.len().min(LONGEST)];
    let text = &text[..memchr(b'"', text)?];
    if let Some(micros) = stamps.at_start_as_before(text) {
        return Some(micros);
    }
    let number = epoch::at_start(text).map(|(micros, _)| micros);
    number.or_else(|| stamps.find(text).map(|(micros, _)| micros))
}
