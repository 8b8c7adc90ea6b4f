//! Which part of a record is its key.
//!
//! | mode | key |
//! | --- | --- |
//! | whole record | its bytes, without delimiter and CR |
//! | one column, one pointer | the value's bytes: the same key as a line that holds just this value |
//! | several | each value after its length, so that `ab,c` and `a,bc` differ |
//!
//! A record without such a key (a row too short, a line that isn't JSON or has none of the pointers) is its own key,
//! marked so that it equals no other key, and is counted. So malformed records aren't dropped.
//!
//! Values may be given in hexadecimal. Other text is then an error, because as it stands it would be a different key.

mod columns;
mod distinct;
pub(crate) mod folding;
mod hex;
mod json;
mod notation;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
pub mod parquet;
mod refused;
mod spec;
pub(crate) mod text;
mod time;
pub(crate) mod words;

pub use columns::{ColumnName, Columns, Separator};
pub use json::Pointer;
pub use refused::{Refused, Wrong};
pub use spec::{KeySpec, Keys, Missing, Query, Source};
pub use text::{KeysOfText, TextKeys};
pub use time::TimeSpec;

use self::time::{TimePart, TimeRule};
use crate::line_time::{LineTimes, TwoReadings};
use crate::records::Framing;
use serde_json::value::RawValue;
use std::fmt;
use tamis::Moment;

/// The values of the pointers in a line of JSON, as written there.
///
/// ```
/// use tamis_records::key::{Pointer, values};
/// let pointers = Pointer::parse_list("/meta/id,/text")?;
/// let found = values(br#"{"text": "a", "meta": {}}"#, &pointers).unwrap();
/// assert!(found[0].is_none());
/// assert_eq!(found[1].unwrap().get(), r#""a""#);
/// # Ok::<(), String>(())
/// ```
pub fn values<'j>(
    line: &'j [u8],
    pointers: &[Pointer],
) -> serde_json::Result<Vec<Option<&'j RawValue>>> {
    json::search(line, pointers)
}

/// Precedes a record that has no key and stands for it. No UTF-8 text starts with it.
const NO_KEY: u8 = 0xFE;
/// Replaces the length of a missing value.
const ABSENT: u64 = u64::MAX;

/// Which part of a record is the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole(Framing),
    /// Columns of a table.
    Columns {
        /// The separator of the columns.
        separator: Separator,
        /// The key columns.
        columns: Columns,
    },
    /// The values of pointers in a line of JSON.
    Json(Vec<Pointer>),
    /// Values as text: the number 42 and the string "42" are the same key, and a record that lacks any value has no
    /// key.
    JsonText(Vec<Pointer>),
}

impl Part {
    /// The number of values in a key.
    pub fn values(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Columns { columns, .. } => columns.columns.len(),
            Self::Json(pointers) | Self::JsonText(pointers) => pointers.len(),
        }
    }
}

/// How to get the key of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRule {
    /// The part of a record that is its key.
    pub part: Part,
    /// Whether the values are in hexadecimal.
    pub hex: bool,
    /// How the value becomes a key, as recorded in a filter.
    pub made: tamis::KeyRule,
    /// Where the record's time is, if it is needed: see [`with_time`](Self::with_time).
    pub(crate) time: Option<TimeRule>,
}

impl RecordRule {
    /// The whole line.
    pub const LINE: Self = Self {
        part: Part::Whole(Framing::LINES),
        hex: false,
        made: tamis::KeyRule::EXACT,
        time: None,
    };

    /// The rule for keys that are this part of a record.
    pub const fn of(part: Part, hex: bool, made: tamis::KeyRule) -> Self {
        Self {
            part,
            hex,
            made,
            time: None,
        }
    }

    /// How records are separated.
    pub fn framing(&self) -> Framing {
        match self.part {
            Part::Whole(framing) => framing,
            Part::Columns {
                separator: Separator::Quoted(byte),
                ..
            } => Framing::Csv(byte),
            Part::Columns { .. } | Part::Json(_) | Part::JsonText(_) => Framing::LINES,
        }
    }

    /// The rule for querying or changing a filter whose keys are made by `filters`. Settings that the user didn't give
    /// are taken from there. Settings that differ are an error, because the filter would miss keys that it holds.
    pub fn for_filter(mut self, filters: &tamis::KeyRule) -> Result<Self, OtherKeys> {
        let asked = self.made;
        let asked_for = if asked.ignores_case() && !filters.ignores_case() {
            Asked::IgnoreCase
        } else if asked.normalises_urls() && !filters.normalises_urls() {
            Asked::Urls
        } else if asked.values() != filters.values() {
            Asked::Values(asked.values())
        } else {
            self.made = *filters;
            return Ok(self);
        };
        Err(OtherKeys {
            asked: asked_for,
            filters: *filters,
        })
    }

    /// Whether a record's content is its key, unchanged, and nothing else of the record is used.
    pub fn is_identity(&self) -> bool {
        matches!(self.part, Part::Whole(_))
            && !self.hex
            && self.made == tamis::KeyRule::EXACT
            && self.time.is_none()
    }

    /// Whether some records may be invalid, which ends a run.
    pub(crate) const fn can_refuse(&self) -> bool {
        self.hex || self.has_time()
    }

    /// Whether records have their own times.
    pub const fn has_time(&self) -> bool {
        self.time.is_some()
    }
}

/// The keys of a query are made differently from those of the filter.
#[derive(Clone, Copy, Debug)]
pub struct OtherKeys {
    /// What the user asked for.
    pub asked: Asked,
    /// How the filter's keys are made.
    pub filters: tamis::KeyRule,
}

/// A setting that the user asked for and the filter doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Case is ignored.
    IgnoreCase,
    /// Keys are URLs.
    Urls,
    /// A key consists of this many values.
    Values(usize),
}

impl fmt::Display for OtherKeys {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.asked {
            Asked::IgnoreCase => f.write_str("case was to be ignored"),
            Asked::Urls => f.write_str("keys were to be URLs"),
            Asked::Values(1) => f.write_str("a key here is one value"),
            Asked::Values(values) => write!(f, "a key here is {values} values"),
        }?;
        let filters = &self.filters;
        write!(
            f,
            ", but the filter's keys are made differently ({filters})"
        )
    }
}

impl std::error::Error for OtherKeys {}

/// Makes keys by one rule, with buffers for reuse.
pub struct KeyMaker<'r> {
    rule: &'r RecordRule,
    key: Vec<u8>,
    value: Vec<u8>,
    fields: columns::Fields,
    not_urls: u64,
    /// Reads times, if the rule asks for them.
    times: Option<LineTimes>,
    /// The time of the last record.
    time: Result<Option<Moment>, TwoReadings>,
}

/// Why a record has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// The key's values are missing.
    Absent,
    /// They exist, but aren't hexadecimal.
    NotHex,
}

impl<'r> KeyMaker<'r> {
    /// Makes keys by this rule.
    pub fn new(rule: &'r RecordRule) -> Self {
        Self {
            rule,
            key: Vec::new(),
            value: Vec::new(),
            fields: columns::Fields::default(),
            not_urls: 0,
            times: (rule.time.as_ref())
                .map(|time| LineTimes::new(time.format.as_ref(), Moment::now())),
            time: Ok(None),
        }
    }

    /// Continues with an input that was last changed at this time; `None` if it is still being written. Dates without a
    /// year aren't later than that.
    pub fn set_written(&mut self, at: Option<Moment>) {
        if let Some(times) = &mut self.times {
            times.set_now(at.unwrap_or_else(Moment::now));
        }
    }

    /// The number of values since the last call that should have been URLs but aren't.
    pub fn take_not_urls(&mut self) -> u64 {
        std::mem::take(&mut self.not_urls)
    }

    /// Its rule.
    #[inline]
    pub fn rule(&self) -> &'r RecordRule {
        self.rule
    }

    /// Whether the last record ended inside quotes.
    pub(crate) fn ends_in_quotes(&self) -> bool {
        self.fields.unclosed
    }

    /// The key of the last record.
    #[inline]
    pub(crate) fn made(&self) -> &[u8] {
        &self.key
    }

    /// The time of the last record, if the rule asks for it and the record has one.
    #[inline]
    pub const fn time(&self) -> Option<Moment> {
        match self.time {
            Ok(time) => time,
            Err(_) => None,
        }
    }

    /// Why the time of the last record is unknown, if it could be read in two ways.
    pub fn two_readings(&self) -> Option<&TwoReadings> {
        self.time.as_ref().err()
    }

    /// The key of a record with this content, and whether it is a true one. `columns` are the positions of the key
    /// columns in the file, followed by that of the time if it is in a column.
    #[inline]
    pub fn key(&mut self, content: &[u8], columns: &[usize]) -> (&[u8], Result<(), NoKey>) {
        self.key.clear();
        let columns = match &self.rule.time {
            None => columns,
            Some(_) => self.key_columns(content, columns),
        };
        let made = match &self.rule.part {
            Part::Whole(_) if self.rule.hex => {
                self.value.clear();
                self.value.extend_from_slice(content);
                self.append_value(1, self.rule.made)
            }
            Part::Whole(_) => {
                self.not_urls += u64::from(!self.rule.made.append(content, &mut self.key));
                Ok(())
            }
            Part::Columns { separator, .. } => self.append_columns(content, *separator, columns),
            Part::Json(pointers) => self.append_pointed(content, pointers),
            Part::JsonText(pointers) => self.append_pointed_text(content, pointers),
        };
        if made.is_err() {
            self.key.clear();
            self.key.push(NO_KEY);
            self.key.extend_from_slice(content);
        }
        (&self.key, made)
    }

    /// The columns of the key, without the time's. Also reads the time, unless it is read together with the key.
    fn key_columns<'c>(&mut self, content: &[u8], columns: &'c [usize]) -> &'c [usize] {
        self.time = Ok(None);
        match self.rule.time_part() {
            Some(TimePart::Column { separator, .. }) => {
                let Some((time, columns)) = columns.split_last() else {
                    return columns;
                };
                self.fields.split(content, *separator);
                self.value.clear();
                if self.fields.append(content, *time, &mut self.value).is_ok() {
                    self.read_time();
                }
                columns
            }
            Some(TimePart::Line) => {
                self.time = Ok(self.times.as_mut().and_then(|times| times.of_line(content)));
                columns
            }
            Some(TimePart::Json(_)) if matches!(self.rule.part, Part::Whole(_)) => {
                // The key has no pointers, so the result is empty.
                let _ = self.find(content, &[]);
                columns
            }
            _ => columns,
        }
    }

    /// The values of the key's pointers; also reads the time.
    fn find<'j>(
        &mut self,
        content: &'j [u8],
        pointers: &[Pointer],
    ) -> Result<Vec<Option<&'j RawValue>>, NoKey> {
        let Some(TimePart::Json(all)) = self.rule.time_part() else {
            return json::find(content, pointers);
        };
        let mut found = json::search(content, all).map_err(|_| NoKey::Absent)?;
        if let Some(time) = found.pop().flatten() {
            self.value.clear();
            if json::append_as_written(time, &mut self.value).is_ok() {
                self.read_time();
            }
        }
        json::any(found)
    }

    /// Reads the record's time from the value.
    fn read_time(&mut self) {
        if let Some(times) = &mut self.times {
            self.time = times.of_value(&self.value);
        }
    }

    fn append_columns(
        &mut self,
        content: &[u8],
        separator: Separator,
        columns: &[usize],
    ) -> Result<(), NoKey> {
        // If the time is in a column, the fields have been split already.
        if !matches!(self.rule.time_part(), Some(TimePart::Column { .. })) {
            self.fields.split(content, separator);
        }
        for &column in columns {
            self.value.clear();
            self.fields.append(content, column, &mut self.value)?;
            self.append_value(columns.len(), self.rule.made)?;
        }
        Ok(())
    }

    fn append_pointed(&mut self, content: &[u8], pointers: &[Pointer]) -> Result<(), NoKey> {
        let found = self.find(content, pointers)?;
        for value in found {
            self.value.clear();
            match value {
                None => self.key.extend_from_slice(&ABSENT.to_le_bytes()),
                Some(value) => {
                    let is_text = json::append(value, &mut self.value)?;
                    let made = if is_text {
                        self.rule.made
                    } else if self.rule.hex {
                        // The number 10 isn't a text of two digits.
                        return Err(NoKey::NotHex);
                    } else {
                        tamis::KeyRule::EXACT
                    };
                    self.append_value(pointers.len(), made)?;
                }
            }
        }
        Ok(())
    }

    fn append_pointed_text(&mut self, content: &[u8], pointers: &[Pointer]) -> Result<(), NoKey> {
        for value in self.find(content, pointers)? {
            self.value.clear();
            json::append_as_written(value.ok_or(NoKey::Absent)?, &mut self.value)?;
            self.append_value(pointers.len(), self.rule.made)?;
        }
        Ok(())
    }

    /// Appends the value to the key, as one of `of` values.
    fn append_value(&mut self, of: usize, made: tamis::KeyRule) -> Result<(), NoKey> {
        if self.rule.hex {
            hex::decode(&mut self.value)?;
        }
        self.not_urls += u64::from(!append_value(&self.value, of, made, &mut self.key));
        Ok(())
    }
}

/// The key of one or several values.
pub(crate) fn join<V: AsRef<[u8]>>(values: &[V], key: &mut Vec<u8>) {
    for value in values {
        append_value(value.as_ref(), values.len(), tamis::KeyRule::EXACT, key);
    }
}

/// Appends one of `of` values; returns whether it is as the rule expects.
fn append_value(value: &[u8], of: usize, made: tamis::KeyRule, key: &mut Vec<u8>) -> bool {
    match of {
        1 => made.append(value, key),
        _ => made.append_part(value, key),
    }
}
