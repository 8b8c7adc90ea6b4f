//! Times in lines of JSON: the values of fields with a telling name.

use super::epoch;
use super::stamp::Stamps;
use memchr::{memchr, memmem};

const NAMES: [&[u8]; 4] = [b"ts", b"time", b"timestamp", b"@timestamp"];
/// No time is written longer.
const LONGEST: usize = 64;

/// The first field's time. The line is not parsed: a name counts wherever it stands in quotes, before a colon.
pub(super) fn find(stamps: &mut Stamps, line: &[u8]) -> Option<i64> {
    let mut plain = Names::new(line, b"\"t");
    let mut other = Names::new(line, b"\"@t");
    loop {
        let at = match (plain.next, other.next) {
            (Some(a), Some(b)) if b < a => other.step(),
            (Some(_), _) => plain.step(),
            (None, Some(_)) => other.step(),
            (None, None) => return None,
        };
        let time = value(&line[at + 1..]).and_then(|value| time(stamps, value));
        if time.is_some() {
            return time;
        }
    }
}

/// The places where a name may begin.
struct Names<'l> {
    line: &'l [u8],
    start: &'static [u8],
    next: Option<usize>,
}

impl<'l> Names<'l> {
    fn new(line: &'l [u8], start: &'static [u8]) -> Self {
        let next = memmem::find(line, start);
        Self { line, start, next }
    }

    /// Gives the next place, and goes on behind it.
    fn step(&mut self) -> usize {
        let at = self.next.unwrap_or(self.line.len());
        let behind = at + self.start.len();
        let next = memmem::find(self.line.get(behind..).unwrap_or_default(), self.start);
        self.next = next.map(|next| behind + next);
        at
    }
}

/// What stands behind a name of a time.
fn value(field: &[u8]) -> Option<&[u8]> {
    let end = memchr(b'"', &field[..field.len().min(16)])?;
    if !NAMES.contains(&&field[..end]) {
        return None;
    }
    let value = field[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some(value.trim_ascii_start())
}

fn time(stamps: &mut Stamps, value: &[u8]) -> Option<i64> {
    let Some(text) = value.strip_prefix(b"\"") else {
        return epoch::at_start(value).map(|(micros, _)| micros);
    };
    let text = &text[..text.len().min(LONGEST)];
    let text = &text[..memchr(b'"', text)?];
    let number = epoch::at_start(text).map(|(micros, _)| micros);
    number.or_else(|| stamps.find(text).map(|(micros, _)| micros))
}
