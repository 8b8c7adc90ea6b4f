//! Values that consist of a time.

use super::stamp::Stamps;
use super::{LineTimes, Way};
use std::fmt;
use std::ops::Range;
use tamis::{Moment, internals::calendar};
use tamis_report::human;

impl LineTimes {
    /// The time of a value that consists of one, such as a column or a string of JSON: as [`calendar::parse`] reads it,
    /// or in one of the formats of lines, possibly in brackets or after a weekday. With a
    /// [`TimeFormat`](super::TimeFormat), the whole value must be in that format.
    ///
    /// A number that is far from the present as a time, but has the digits of a date, is an error.
    ///
    /// ```
    /// use tamis::Moment;
    /// use tamis_records::line_time::LineTimes;
    /// let now = "2026-11-17T12:00:00Z".parse()?;
    /// let mut times = LineTimes::new(None, now);
    /// for text in ["[17/Nov/2026:10:30:00 +0000]", "Tue, 17 Nov 2026 10:30:00 GMT", "Nov 17 10:30:00", "1794911400"] {
    ///     assert_eq!(times.of_value(text.as_bytes()), Ok(Some(Moment::from_secs(1_794_911_400))), "{text}");
    /// }
    /// assert_eq!(times.of_value(b"17.11.2026"), Ok(None));
    /// assert!(times.of_value(b"20261117").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn of_value(&mut self, value: &[u8]) -> Result<Option<Moment>, TwoReadings> {
        let value = value.trim_ascii();
        let stamps = match &mut self.way {
            Way::Known(stamps, _) => stamps,
            Way::Given(format, now) => {
                return Ok(format.read(value, *now).map(Moment::from_micros));
            }
        };
        match calendar::parse(value) {
            Some(number) => match TwoReadings::of(value, number, stamps.now()) {
                Some(two) => Err(two),
                None => Ok(Some(number)),
            },
            None => Ok(stamp(stamps, value).map(Moment::from_micros)),
        }
    }
}

/// The date and time of a text in one of the formats of lines; without a time of day, the start of the day.
pub(super) fn stamp(stamps: &mut Stamps, text: &[u8]) -> Option<i64> {
    let in_brackets = text.strip_prefix(b"[").and_then(|t| t.strip_suffix(b"]"));
    let text = in_brackets.unwrap_or(text);
    // In lines, a day of one digit has a space before it.
    whole(stamps, text)
        .or_else(|| whole(stamps, &[b" ", text].concat()))
        .or_else(|| whole(stamps, &[text, b" 00:00:00"].concat()))
}

fn whole(stamps: &mut Stamps, text: &[u8]) -> Option<i64> {
    let (micros, Range { start, end }) = stamps.find(text)?;
    (is_weekday(&text[..start]) && is_utc_or_comment(&text[end..])).then_some(micros)
}

/// Whether this is empty, or a weekday before a date as in mail: `Tue, `.
fn is_weekday(before: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    let before = before.trim_ascii();
    before.is_empty() || DAYS.contains(&before.strip_suffix(b",").unwrap_or(before))
}

/// Whether this is empty, or what mail has after a time: `GMT`, `(CET)`. For other zones, we don't know the offset.
fn is_utc_or_comment(behind: &[u8]) -> bool {
    let behind = behind.trim_ascii();
    matches!(behind, b"" | b"UTC" | b"GMT" | b"UT")
        || behind.starts_with(b"(") && behind.ends_with(b")")
}

/// A number that may be a date or a time since 1970, and is unlikely as the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoReadings {
    /// The number as written.
    pub text: String,
    /// Read as a date.
    pub date: Moment,
    /// Read as a number since 1970.
    pub number: Moment,
    /// The [`TimeFormat`](super::TimeFormat) of the date.
    pub format: &'static str,
}

impl TwoReadings {
    fn of(text: &[u8], number: Moment, now: Moment) -> Option<Self> {
        let format = match text.len() {
            8 => "%Y%m%d",
            10 => "%Y%m%d%H",
            12 => "%Y%m%d%H%M",
            14 => "%Y%m%d%H%M%S",
            _ => return None,
        };
        let is_year = text.starts_with(b"19") || text.starts_with(b"20");
        if !is_year || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // Seconds close to the present are times, whatever date their digits make.
        let likely = LIKELY..=now.micros() + DAY;
        if likely.contains(&number.micros()) {
            return None;
        }
        let hour: &[u8] = if text.len() == 8 { b"00" } else { b"" };
        let date = calendar::parse(&[&text[..8], b"T", &text[8..], hour].concat())?;
        Some(Self {
            text: String::from_utf8_lossy(text).into_owned(),
            date,
            number,
            format,
        })
    }

    /// Whether the number counts seconds; otherwise, milliseconds.
    pub fn is_in_seconds(&self) -> bool {
        self.text.len() <= 10
    }
}

/// Since 2001, seconds have ten digits.
const LIKELY: i64 = 1_000_000_000 * 1_000_000;
const DAY: i64 = 86_400 * 1_000_000;

impl fmt::Display for TwoReadings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let unit = if self.is_in_seconds() {
            "seconds"
        } else {
            "milliseconds"
        };
        write!(
            f,
            "the time '{}' can be read in two ways: as {}, or as {} {unit} since 1970, {}",
            self.text,
            self.date,
            human::count(self.text.parse().unwrap_or_default()),
            self.number,
        )
    }
}

impl std::error::Error for TwoReadings {}
