//! The time of a record, taken from the record: `--time SPEC`.
//!
//! | spec | a record's time |
//! | --- | --- |
//! | `now` | none: the time of deciding counts |
//! | `csv:COLUMN` `csv(;):COLUMN` `tsv:COLUMN` | a value of its row; names (not numbers from 1) need a header row |
//! | `jsonl:/POINTER` | a string or a number of its line |
//! | `line` | the first time in it, as in a log |
//!
//! See [`LineTimes`](crate::line_time::LineTimes) for the formats of times.

use super::notation::Pieces;
use super::{Columns, Part, Pointer, RecordRule, Separator};
use crate::line_time::TimeFormat;
use crate::records::Framing;
use std::str::FromStr;

/// The source of the records' times, as written by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeSpec {
    /// The clock.
    Now,
    /// A column of CSV or TSV.
    Column {
        /// The separator of columns: any byte for CSV.
        separator: Separator,
        /// Its name, or its number from 1.
        column: String,
    },
    /// The value of a pointer in a line of JSON.
    Json(Pointer),
    /// Anywhere in the record, as in a line of a log.
    Line,
}

impl FromStr for TimeSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let column = |separator, column: &str| match Columns::parse(column, true)?.columns.len() {
            1 => Ok(Self::Column {
                separator,
                column: column.to_owned(),
            }),
            several => Err(format!(
                "a time is in one column, got {several}: '{column}'"
            )),
        };
        let pieces = Pieces::of(text)?;
        match (pieces.name, pieces.byte, pieces.list) {
            ("now", None, None) => Ok(Self::Now),
            ("line", None, None) => Ok(Self::Line),
            ("csv", _, Some(name)) => column(pieces.separator()?, name),
            ("tsv", None, Some(name)) => column(Separator::Tab, name),
            ("jsonl", None, Some(pointer)) => match Pointer::parse_list(pointer)?.as_slice() {
                [pointer] => Ok(Self::Json(pointer.clone())),
                several => Err(format!(
                    "a time is behind one pointer, got {}: '{pointer}'",
                    several.len()
                )),
            },
            _ => Err(format!(
                "unknown time '{text}': expected csv:COLUMN, tsv:COLUMN, jsonl:/POINTER, line or now"
            )),
        }
    }
}

/// Where the time of a record is, and its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeRule {
    pub(crate) part: TimePart,
    /// If there is none, any known format.
    pub(crate) format: Option<TimeFormat>,
}

/// Where the time of a record is, relative to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimePart {
    /// A column of a table, after the key's columns.
    Column {
        separator: Separator,
        columns: Columns,
    },
    /// The value of the last pointer; the others are the key's.
    Json(Vec<Pointer>),
    /// The first time in the record.
    Line,
}

impl RecordRule {
    /// The rule with a time for each record, in this format or any known one. The time must be in the same kind of
    /// record as the key.
    ///
    /// ```
    /// use tamis_records::key::{KeyMaker, Part, Pointer, RecordRule};
    /// let part = Part::Json(Pointer::parse_list("/id")?);
    /// let rule = RecordRule::of(part, false, tamis::KeyRule::EXACT).with_time("jsonl:/at".parse()?, None)?;
    /// let mut keys = KeyMaker::new(&rule);
    /// let (key, _) = keys.key(br#"{"id": "a", "at": "1970-01-01T00:00:02Z"}"#, &[]);
    /// assert_eq!(key, b"a");
    /// assert_eq!(keys.time(), Some(tamis::Moment::from_secs(2)));
    /// # Ok::<(), String>(())
    /// ```
    pub fn with_time(mut self, time: TimeSpec, format: Option<TimeFormat>) -> Result<Self, String> {
        let kind = |separator| match separator {
            Separator::Tab => "TSV",
            _ => "CSV",
        };
        let part = match (time, &self.part) {
            (TimeSpec::Now, _) => None,
            (TimeSpec::Line, _) => Some(TimePart::Line),
            (
                TimeSpec::Column { separator, column },
                Part::Columns {
                    separator: s,
                    columns,
                },
            ) if separator == *s || is_csv(separator) && is_csv(*s) => {
                let (mut columns, separator) = (columns.clone(), *s);
                columns
                    .columns
                    .extend(Columns::parse(&column, columns.header)?.columns);
                Some(TimePart::Column { separator, columns })
            }
            (TimeSpec::Column { separator, column }, Part::Whole(Framing::LINES)) => {
                let columns = Columns::parse_any(&column)?;
                if let Separator::Quoted(byte) = separator {
                    self.part = Part::Whole(Framing::Csv(byte));
                }
                Some(TimePart::Column { separator, columns })
            }
            (TimeSpec::Json(time), Part::Json(keys) | Part::JsonText(keys)) => {
                Some(TimePart::Json(Pointer::join(keys, time)?))
            }
            (TimeSpec::Json(time), Part::Whole(_)) => Some(TimePart::Json(vec![time])),
            (TimeSpec::Column { separator, .. }, part) => {
                return Err(format!(
                    "the time is a column of {}, but the key is {}",
                    kind(separator),
                    described(part)
                ));
            }
            (TimeSpec::Json(_), part) => {
                return Err(format!(
                    "the time is in JSON, but the key is {}",
                    described(part)
                ));
            }
        };
        self.time = part.map(|part| TimeRule { part, format });
        Ok(self)
    }

    pub(crate) fn time_part(&self) -> Option<&TimePart> {
        self.time.as_ref().map(|time| &time.part)
    }

    /// The columns to look up in each file, and their separator: the key's, then the time's.
    pub(crate) fn columns(&self) -> Option<(&Columns, Separator)> {
        match (self.time_part(), &self.part) {
            (Some(TimePart::Column { separator, columns }), _)
            | (_, Part::Columns { separator, columns }) => Some((columns, *separator)),
            _ => None,
        }
    }
}

const fn is_csv(separator: Separator) -> bool {
    matches!(separator, Separator::Quoted(_))
}

fn described(part: &Part) -> &'static str {
    match part {
        Part::Whole(_) => "the whole of a record that ends with another byte than a line feed",
        Part::Columns { separator, .. } => match separator {
            Separator::Quoted(_) => "columns of CSV",
            Separator::Tab => "columns of TSV",
            Separator::Blanks => "fields between blanks",
        },
        Part::Json(_) | Part::JsonText(_) => "in JSON",
    }
}
