//! Columns of tables: CSV, TSV, and fields separated by blanks.

use super::NoKey;
use memchr::memchr;
use std::ops::Range;

/// How the values of a row are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// By this byte outside quotes; with a comma, CSV.
    Quoted(u8),
    /// By tabs, without quotes: TSV.
    Tab,
    /// By any number of spaces and tabs, as in awk.
    Blanks,
}

impl Separator {
    /// CSV.
    pub const COMMA: Self = Self::Quoted(b',');
}

/// A column as named by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnName {
    /// Counted from 0; users count from 1.
    Number(usize),
    /// As in the header row.
    Name(String),
}

/// The key columns, in the order of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// One or more.
    pub columns: Vec<ColumnName>,
    /// Whether each file starts with a row of names.
    pub header: bool,
}

impl Columns {
    /// Parses `url,2`: names, and numbers from 1. Quote names that contain a comma or consist of digits.
    ///
    /// ```
    /// use tamis_records::key::{ColumnName, Columns};
    /// let columns = Columns::parse(r#""last, first",2"#, true)?.columns;
    /// assert_eq!(columns, [ColumnName::Name("last, first".into()), ColumnName::Number(1)]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(list: &str, header: bool) -> Result<Self, String> {
        let parse = |(name, is_quoted): (String, bool)| match name.parse::<usize>() {
            Ok(0) if !is_quoted => Err("column 0: columns are numbered from 1".to_owned()),
            Ok(number) if !is_quoted => Ok(ColumnName::Number(number - 1)),
            _ if name.is_empty() => Err(format!("'{list}': a column name is empty")),
            _ if !header => Err(format!(
                "column '{name}': without a header row, columns have only numbers"
            )),
            _ => Ok(ColumnName::Name(name)),
        };
        let columns = names(list)?.into_iter().map(parse);
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
            header,
        })
    }

    /// The same for files that have a header row only if a column is given by name.
    pub(crate) fn parse_any(list: &str) -> Result<Self, String> {
        let mut columns = Self::parse(list, true)?;
        let is_name = |column: &ColumnName| matches!(column, ColumnName::Name(_));
        columns.header = columns.columns.iter().any(is_name);
        Ok(columns)
    }

    /// The positions of the columns in a file with this header row. Without a header, `header` is ignored.
    pub fn positions(&self, header: &[u8], separator: Separator) -> Result<Vec<usize>, String> {
        let names = if self.header {
            values(header, separator)
        } else {
            Vec::new()
        };
        let position =
            |column: &ColumnName| match column {
                ColumnName::Number(at) if self.header && *at >= names.len() => Err(format!(
                    "column {}: the header has {} columns",
                    at + 1,
                    names.len()
                )),
                ColumnName::Number(at) => Ok(*at),
                ColumnName::Name(name) => names
                    .iter()
                    .position(|n| n == name.as_bytes())
                    .ok_or_else(|| {
                        let known: Vec<_> =
                            names.iter().map(|n| String::from_utf8_lossy(n)).collect();
                        format!("no column '{name}', the header has: {}", known.join(", "))
                    }),
            };
        self.columns.iter().map(position).collect()
    }
}

/// The names in a list, and whether each is quoted.
pub(super) fn names(list: &str) -> Result<Vec<(String, bool)>, String> {
    let mut fields = Fields::default();
    fields.split(list.as_bytes(), Separator::COMMA);
    if fields.unclosed {
        return Err(format!("'{list}': a quote is never closed"));
    }
    let mut names = Vec::new();
    for (column, range) in fields.ranges.iter().enumerate() {
        let mut name = Vec::new();
        // The column exists, so this can't fail.
        let _ = fields.append(list.as_bytes(), column, &mut name);
        let name = String::from_utf8_lossy(&name).into_owned();
        names.push((name, list[range.clone()].starts_with('"')));
    }
    Ok(names)
}

/// The values of a row.
pub(super) fn values(row: &[u8], separator: Separator) -> Vec<Vec<u8>> {
    let mut fields = Fields::default();
    fields.split(row, separator);
    let value = |column| {
        let mut value = Vec::new();
        fields.append(row, column, &mut value).ok().map(|()| value)
    };
    (0..).map_while(value).collect()
}

/// The positions of the fields of one row, including quotes.
#[derive(Default)]
pub(crate) struct Fields {
    ranges: Vec<Range<usize>>,
    quotes: bool,
    /// Whether the row ends inside quotes.
    pub(crate) unclosed: bool,
}

impl Fields {
    pub(crate) fn split(&mut self, row: &[u8], separator: Separator) {
        self.ranges.clear();
        self.unclosed = false;
        self.quotes = matches!(separator, Separator::Quoted(_));
        let separator = match separator {
            Separator::Quoted(byte) => byte,
            Separator::Tab => b'\t',
            Separator::Blanks => return self.split_at_blanks(row),
        };
        let mut start = 0;
        loop {
            let unquoted = if self.quotes && row.get(start) == Some(&b'"') {
                let closed = closing_quote(row, start + 1);
                self.unclosed = closed.is_none();
                closed.unwrap_or(row.len())
            } else {
                start
            };
            match memchr(separator, &row[unquoted..]) {
                Some(at) => {
                    self.ranges.push(start..unquoted + at);
                    start = unquoted + at + 1;
                }
                None => return self.ranges.push(start..row.len()),
            }
        }
    }

    fn split_at_blanks(&mut self, row: &[u8]) {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut start = 0;
        for field in row.split(is_blank) {
            if !field.is_empty() {
                self.ranges.push(start..start + field.len());
            }
            start += field.len() + 1;
        }
    }

    /// Appends the value of a field, without its quotes.
    pub(crate) fn append(
        &self,
        row: &[u8],
        column: usize,
        value: &mut Vec<u8>,
    ) -> Result<(), NoKey> {
        let field = &row[self.ranges.get(column).ok_or(NoKey::Absent)?.clone()];
        let Some(mut rest) = field.strip_prefix(b"\"").filter(|_| self.quotes) else {
            value.extend_from_slice(field);
            return Ok(());
        };
        while let Some(quote) = memchr(b'"', rest) {
            value.extend_from_slice(&rest[..quote]);
            rest = &rest[quote + 1..];
            let Some(after) = rest.strip_prefix(b"\"") else {
                break;
            };
            value.push(b'"');
            rest = after;
        }
        value.extend_from_slice(rest);
        Ok(())
    }
}

/// One past the quote that closes the field whose content starts at `from`, if there is one.
fn closing_quote(row: &[u8], mut from: usize) -> Option<usize> {
    while let Some(at) = memchr(b'"', &row[from..]) {
        from += at + 1;
        if row.get(from) != Some(&b'"') {
            return Some(from);
        }
        from += 1;
    }
    None
}
