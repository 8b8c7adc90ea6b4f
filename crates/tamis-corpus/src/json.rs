//! JSON records: finding their text, and changing it without touching the rest of the line.

use std::borrow::Cow;
use std::ops::Range;
use tamis_records::key::{Pointer, values};

/// The field, and the attribute, that lists repetitions.
pub const ATTRIBUTE: &str = "tamis_repeats";

/// Where records have their text and their name.
#[derive(Clone, Debug)]
pub struct Fields {
    pointers: Vec<Pointer>,
}

/// The content of a line.
#[derive(Debug)]
pub enum Line<'l> {
    /// A text: the range inside the quotes of its string.
    Text(Range<usize>),
    /// Not a JSON object or list.
    Broken,
    /// The field is missing or `null`.
    Missing,
    /// The field isn't a string, or isn't valid Unicode.
    NotText(&'l str),
}

impl Fields {
    /// The JSON pointers (RFC 6901) of the text and the name, such as `/text` and `/meta/id`.
    pub fn new(text: &str, id: &str) -> Result<Self, String> {
        let one = |pointer: &str| {
            let mut found = Pointer::parse_list(pointer)?.into_iter();
            match (found.next(), found.next()) {
                (Some(pointer), None) => Ok(pointer),
                _ => Err(format!("'{pointer}': expected one JSON pointer")),
            }
        };
        Ok(Self {
            pointers: vec![one(text)?, one(id)?, one(&format!("/{}", ATTRIBUTE))?],
        })
    }

    /// `/text` and `/id`.
    pub(crate) fn usual() -> Self {
        Self::new("/text", "/id").expect("both are JSON pointers")
    }

    /// Finds the text.
    pub fn find<'l>(&self, line: &'l [u8]) -> Line<'l> {
        let Ok(found) = values(line, &self.pointers[..1]) else {
            return Line::Broken;
        };
        let Some(value) = found[0].map(serde_json::value::RawValue::get) else {
            return Line::Missing;
        };
        match value.as_bytes() {
            b"null" => Line::Missing,
            [b'"', inner @ .., b'"'] => {
                let start = inner.as_ptr() as usize - line.as_ptr() as usize;
                Line::Text(start..start + inner.len())
            }
            _ => Line::NotText(value),
        }
    }

    /// The range in the line of the record's value named [`ATTRIBUTE`], if it has one.
    pub(crate) fn attribute(&self, line: &[u8]) -> Option<Range<usize>> {
        // Most records have none, so they aren't parsed again.
        memchr::memmem::find(line, ATTRIBUTE.as_bytes())?;
        let value = values(line, &self.pointers[2..]).ok()?[0]?.get();
        let start = value.as_ptr() as usize - line.as_ptr() as usize;
        Some(start..start + value.len())
    }

    /// The record's name, as JSON.
    pub fn id<'l>(&self, line: &'l [u8]) -> Option<&'l str> {
        let found = values(line, &self.pointers[1..2]).ok()?;
        Some(found[0]?.get())
    }
}

/// The position after an escape, in the text and in the line.
pub type Escape = (u32, u32);

/// Unescapes the inside of a string, and notes the position after each escape. `None` if it isn't valid Unicode, for
/// example half a surrogate pair.
pub fn unescape<'l>(raw: &'l [u8], escapes: &mut Vec<Escape>) -> Option<Cow<'l, str>> {
    let Some(first) = memchr::memchr(b'\\', raw) else {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    };
    let mut text = Vec::with_capacity(raw.len());
    let mut done = 0;
    let mut next = Some(first);
    while let Some(at) = next {
        text.extend_from_slice(&raw[done..at]);
        done = at + decode(&raw[at..], &mut text)?;
        escapes.push((text.len() as u32, done as u32));
        next = memchr::memchr(b'\\', &raw[done..]).map(|found| done + found);
    }
    text.extend_from_slice(&raw[done..]);
    String::from_utf8(text).ok().map(Cow::Owned)
}

/// Decodes the escape at the start; returns its length.
fn decode(raw: &[u8], text: &mut Vec<u8>) -> Option<usize> {
    let plain = match raw.get(1)? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'f' => 0x0C,
        b'u' => {
            let (c, length) = decode_unicode(raw)?;
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(length);
        }
        other @ (b'"' | b'\\' | b'/') => *other,
        _ => return None,
    };
    text.push(plain);
    Some(2)
}

fn decode_unicode(raw: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = raw.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let high = unit(0)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some((char::from_u32(high)?, 6));
    }
    let low = unit(6).filter(|low| (0xDC00..0xE000).contains(low))?;
    let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    Some((char::from_u32(code)?, 12))
}

/// Converts a position in the text to one in the raw string. Positions must be passed in order; `next` keeps the state.
pub fn raw_place(escapes: &[Escape], next: &mut usize, at: usize) -> usize {
    while *next < escapes.len() && escapes[*next].0 as usize <= at {
        *next += 1;
    }
    match next.checked_sub(1) {
        None => at,
        Some(last) => escapes[last].1 as usize + at - escapes[last].0 as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_found_wherever_it_is() {
        let fields = Fields::new("/a/text", "/id").unwrap();
        let line = br#" {"id": 7, "a": {"b": [1], "text": "x\ny"}} "#;
        let Line::Text(range) = fields.find(line) else {
            panic!("no text");
        };
        assert_eq!(&line[range], br"x\ny");
        assert_eq!(fields.id(line), Some("7"));
        assert!(matches!(
            fields.find(b"{\"a\": {\"text\": \"x\"}"),
            Line::Broken
        ));
        assert!(matches!(fields.find(b""), Line::Broken));
        assert!(matches!(fields.find(b"{\"a\": {}}"), Line::Missing));
        assert!(matches!(
            fields.find(br#"{"a": {"text": null}}"#),
            Line::Missing
        ));
        assert!(matches!(
            fields.find(br#"{"a": {"text": [1]}}"#),
            Line::NotText("[1]")
        ));
        assert!(Fields::new("text", "/id").is_err());
    }

    #[test]
    fn escapes_are_those_of_json() {
        let raw = br#"a\n\t\r\b\f\"\\\/\u00e9\uD83D\uDE00z"#;
        let mut escapes = Vec::new();
        let text = unescape(raw, &mut escapes).unwrap();
        let quoted = format!("\"{}\"", std::str::from_utf8(raw).unwrap());
        assert_eq!(text, serde_json::from_str::<String>(&quoted).unwrap());
        let mut next = 0;
        assert_eq!(raw_place(&escapes, &mut next, 0), 0);
        assert_eq!(raw_place(&escapes, &mut next, 1), 1);
        assert_eq!(raw_place(&escapes, &mut next, 2), 3);
        assert_eq!(
            raw_place(&escapes, &mut next, text.len() - 1),
            raw.len() - 1
        );
        assert_eq!(raw_place(&escapes, &mut next, text.len()), raw.len());
    }

    #[test]
    fn half_a_pair_and_unknown_escapes_are_no_text() {
        for raw in [
            &br"\uD83D"[..],
            br"\uDE00",
            br"\uD83Dx",
            br"\uD83D\n",
            br"\x",
            br"\u12",
            b"\\",
            b"\xFF",
        ] {
            assert_eq!(unescape(raw, &mut Vec::new()), None, "{raw:?}");
        }
    }
}
