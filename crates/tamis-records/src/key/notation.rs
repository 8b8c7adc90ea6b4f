//! The notation for keys in all commands: `-k KEY`.
//!
//! | key | of each record |
//! | --- | --- |
//! | `line` | the whole line; `line(;)` for records that end with this byte instead of a line feed |
//! | `csv:A,B` `csv(;):A,B` `tsv:A,B` | columns by name or number; `(;)` replaces the comma |
//! | `field:1,3` | fields separated by blanks, as in awk |
//! | `jsonl:/a,/b` | values at JSON pointers |
//!
//! [`KeySpec`](super::KeySpec) adds the forms for indexes.

use super::{Columns, Part, Pointer, Separator};
use crate::records::Framing;

/// All forms, for errors.
pub(super) const FORMS: &str = "line, line(BYTE), csv:COLUMN,..., csv(BYTE):COLUMN,..., tsv:COLUMN,..., \
                                field:N,..., jsonl:/POINTER,...";

/// The parts of a key: `csv(;):a,b` is `csv`, `;` and `a,b`.
pub(super) struct Pieces<'t> {
    pub(super) name: &'t str,
    pub(super) byte: Option<u8>,
    pub(super) list: Option<&'t str>,
}

impl<'t> Pieces<'t> {
    pub(super) fn of(text: &'t str) -> Result<Self, String> {
        let end = text.find(['(', ':']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if let Some(list) = rest.strip_prefix(':') {
            return Ok(Self {
                name,
                byte: None,
                list: Some(list),
            });
        }
        let Some(rest) = rest.strip_prefix('(') else {
            return Ok(Self {
                name,
                byte: None,
                list: None,
            });
        };
        // The byte may itself be a parenthesis or a colon.
        let (byte, list) = match rest.split_once("):") {
            Some((byte, list)) => (byte, Some(list)),
            None => (
                rest.strip_suffix(')')
                    .ok_or_else(|| format!("'{text}': expected ) behind the byte"))?,
                None,
            ),
        };
        let byte = parse_byte(byte).map_err(|why| format!("'{text}': {why}"))?;
        Ok(Self {
            name,
            byte: Some(byte),
            list,
        })
    }

    /// The separator of CSV columns.
    pub(super) fn separator(&self) -> Result<Separator, String> {
        match self.byte {
            None => Ok(Separator::COMMA),
            Some(b'"' | b'\n' | b'\r') => {
                Err("quotes and line ends have their own meaning in CSV".into())
            }
            Some(byte) => Ok(Separator::Quoted(byte)),
        }
    }
}

/// Parses a byte as people write it.
fn parse_byte(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("\\t", _) => Ok(b'\t'),
        ("\\0", _) => Ok(0),
        ("\\n", _) => Ok(b'\n'),
        (_, [byte]) => Ok(*byte),
        _ => Err("expected one byte (or \\t, \\0, \\n) in the parentheses".into()),
    }
}

impl Part {
    /// Parses the key of a record. With `header`, tables begin with a row of names.
    ///
    /// ```
    /// use tamis_records::key::{Part, Separator};
    /// let part = Part::parse("csv(;):id,day", true)?;
    /// assert!(matches!(part, Part::Columns { separator: Separator::Quoted(b';'), .. }));
    /// assert!(Part::parse("trigram", true).is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str, header: bool) -> Result<Self, String> {
        let pieces = Pieces::of(text)?;
        let columns = |list: &str, separator, header| {
            let columns = Columns::parse(list, header)?;
            Ok(Self::Columns { separator, columns })
        };
        match (pieces.name, pieces.byte, pieces.list) {
            ("line", byte, None) => {
                let end = byte.unwrap_or(b'\n');
                Ok(Self::Whole(Framing::Delimited(end)))
            }
            ("csv", _, Some(list)) => columns(list, pieces.separator()?, header),
            ("tsv", None, Some(list)) => columns(list, Separator::Tab, header),
            ("field", None, Some(list)) => columns(list, Separator::Blanks, false),
            ("jsonl", None, Some(list)) => Pointer::parse_list(list).map(Self::Json),
            ("word" | "trigram", None, None) | ("parquet" | "prefix", None, Some(_)) => Err(
                format!("'{text}' is a key of an index (`tamis index`); expected here {FORMS}"),
            ),
            _ => Err(format!("unknown key '{text}': expected {FORMS}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(byte: u8) -> Part {
        Part::Whole(Framing::Delimited(byte))
    }

    #[test]
    fn bytes_stand_in_parentheses() {
        for (text, byte) in [
            ("line", b'\n'),
            ("line(;)", b';'),
            ("line(\\0)", 0),
            ("line())", b')'),
            ("line(()", b'('),
            ("line(:)", b':'),
        ] {
            assert_eq!(Part::parse(text, true), Ok(whole(byte)), "{text}");
        }
        for (text, byte) in [("csv(|):1", b'|'), ("csv(:):1", b':'), ("csv()):1", b')')] {
            let part = Part::parse(text, false).unwrap();
            let Part::Columns { separator, .. } = part else {
                panic!("{text}");
            };
            assert_eq!(separator, Separator::Quoted(byte), "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for (text, said) in [
            ("", "expected line"),
            ("lines", "expected line"),
            ("line:", "expected line"),
            ("line(ab)", "one byte"),
            ("line(", "expected )"),
            ("csv", "expected line"),
            ("csv(\"):1", "quotes"),
            ("csv(ab):1", "one byte"),
            ("tsv(;):1", "expected line"),
            ("field:name", "only numbers"),
            ("word", "key of an index"),
            ("prefix:8:line", "key of an index"),
        ] {
            let error = Part::parse(text, true).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
