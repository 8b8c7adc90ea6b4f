//! Times in the lines of logs.
//!
//! | written | where |
//! | --- | --- |
//! | `2026-11-15T05:03:40.123+01:00`, `2026-11-15 05:03:40,123`, `2026-11-15 05:03` | ISO 8601, RFC 3339, RFC 5424 |
//! | `2026/11/15 05:03:40` | nginx's errors, Go |
//! | `15/Nov/2026:05:03:40 +0000` | Apache, nginx |
//! | `15 Nov 2026 05:03:40.123`, `Nov 15 2026 05:03:40` | Redis, mail, routers |
//! | `Sun Nov 15 05:03:40.123 2026` | Apache's errors, `date` |
//! | `Nov 15 05:03:40` | syslog |
//! | a number of 10, 13, 16 or 19 digits | seconds, milliseconds, microseconds or nanoseconds since 1970 |
//!
//! A time without a zone counts as UTC. The time of a line is the first of these that applies:
//!
//! 1. It begins with `{`, and a field `ts`, `time`, `timestamp` or `@timestamp` contains a time: the first such field.
//! 2. It begins with a number since 1970, from 2001 to 2099.
//! 3. A date and a time of day are within its first 256 bytes: the first such.
//!
//! With a [`TimeFormat`], only times in that format count, and the first one applies.
//!
//! A value that consists of a time, such as a column, is read by [`LineTimes::of_value`].
//!
//! A line without a time has the time of the line before it, as in a stack trace.

mod epoch;
mod format;
mod json;
mod stamp;
mod value;

pub use self::format::TimeFormat;
pub use self::value::TwoReadings;

use self::json::Fields;
use self::stamp::Stamps;
use memchr::memchr;
use tamis::{Moment, internals::calendar};
use tamis_report::human;

/// Finds the times of lines.
///
/// ```
/// use tamis::Moment;
/// use tamis_records::line_time::LineTimes;
/// let now = "2026-11-17T12:00:00Z".parse()?;
/// let mut times = LineTimes::new(None, now);
/// let at = |text: &str| text.parse::<Moment>().ok();
/// assert_eq!(times.of_line(b"2026-11-15 05:03:40,5 INFO up"), at("2026-11-15T05:03:40.5Z"));
/// assert_eq!(times.of_line(b"Dec  1 05:03:40 host sshd[7]: up"), at("2025-12-01T05:03:40Z"));
/// assert_eq!(times.of_line(b"    at main.rs:40"), None);
///
/// let mut range = None;
/// times.range(b"1794911400 down\n1794911460 up\n", &mut range);
/// assert_eq!(range, Some((Moment::from_secs(1_794_911_400), Moment::from_secs(1_794_911_460))));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LineTimes {
    way: Way,
    last: Option<Moment>,
}

#[derive(Clone, Debug)]
enum Way {
    Known(Stamps, Box<Fields>),
    Given(TimeFormat, Moment),
}

impl LineTimes {
    /// Finds times in this format, or in any known one. `now` is when the last line was written: the time of a file's
    /// last change. A date without a year gets the last year in which it begins no later than a day after `now`. So
    /// when comparing times of lines with a range computed earlier, pass the same `now`.
    pub fn new(format: Option<&TimeFormat>, now: Moment) -> Self {
        let way = match format {
            Some(format) => Way::Given(format.clone(), now),
            None => Way::Known(Stamps::new(now), Box::new(Fields::new())),
        };
        Self { way, last: None }
    }

    /// Sets when the last line was written, for dates without a year.
    pub fn set_now(&mut self, at: Moment) {
        match &mut self.way {
            Way::Known(stamps, _) => *stamps = Stamps::new(at),
            Way::Given(_, now) => *now = at,
        }
    }

    /// The time in the line itself. Depends only on the line, the format and `now`.
    #[inline]
    pub fn of_line(&mut self, line: &[u8]) -> Option<Moment> {
        let micros = match &mut self.way {
            Way::Known(stamps, fields) => known(stamps, fields, line),
            Way::Given(format, now) => format.find(line, *now),
        };
        micros.map(Moment::from_micros)
    }

    /// The time of a line: its own, or that of the last line before it that has one.
    pub fn of_next_line(&mut self, line: &[u8]) -> Option<Moment> {
        self.last = self.of_line(line).or(self.last);
        self.last
    }

    /// The time that a line without its own time would get now.
    pub fn last(&self) -> Option<Moment> {
        self.last
    }

    /// Continues elsewhere, after a line with this time.
    pub fn set_last(&mut self, last: Option<Moment>) {
        self.last = last;
    }

    /// Widens a range by the times of these whole lines, as [`of_next_line`](Self::of_next_line) returns them. The last
    /// one may lack its line feed.
    pub fn range(&mut self, lines: &[u8], into: &mut Option<(Moment, Moment)>) {
        let mut rest = lines;
        let mut is_first = true;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            let own = self.of_line(line);
            self.last = own.or(self.last);
            // Later lines without a time repeat one that is already included.
            if let Some(time) = if is_first { self.last } else { own } {
                *into = Some(match *into {
                    None => (time, time),
                    Some((first, last)) => (first.min(time), last.max(time)),
                });
            }
            is_first = false;
        }
    }
}

/// The time of a line in one of the known formats, in microseconds since 1970.
#[inline]
fn known(stamps: &mut Stamps, fields: &Fields, line: &[u8]) -> Option<i64> {
    if let Some(micros) = stamps.at_start_as_before(line) {
        return Some(micros);
    }
    let special = match line.first()? {
        b'{' => fields.find(stamps, line),
        b'0'..=b'9' => epoch::at_start(line).map(|(micros, _)| micros),
        _ => None,
    };
    special.or_else(|| stamps.find(line).map(|(micros, _)| micros))
}

/// Reads a moment as people give it: a time in one of the formats of lines or of [`tamis::internals::calendar`], a date, a number of
/// 10, 13, 16 or 19 digits since 1970, or an age: `30m`, `2h`, `1d12h` before `now`.
///
/// ```
/// use tamis::Moment;
/// use tamis_records::line_time::parse;
/// let now: Moment = "2026-11-17T12:00:00Z".parse()?;
/// for text in ["2026-11-15", "2026-11-15T00:00Z", "Nov 15", "[15/Nov/2026:00:00:00 +0000]", "1794700800", "2d12h"] {
///     assert_eq!(parse(text, now).unwrap().to_string(), "2026-11-15T00:00:00Z", "{text}");
/// }
/// assert!(parse("2026", now).is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn parse(text: &str, now: Moment) -> Result<Moment, String> {
    let trimmed = text.trim().trim_start_matches('[').trim_end_matches(']');
    let bytes = trimmed.as_bytes();
    if trimmed == "now" {
        return Ok(now);
    }
    if human::is_duration(trimmed) {
        return human::parse_duration(trimmed).map(|age| now - age);
    }
    let is_number = bytes.iter().all(u8::is_ascii_digit);
    // The other texts that the calendar reads are numbers of any size.
    let is_date =
        bytes.get(4) == Some(&b'-') || bytes.get(8).is_some_and(|byte| b"Tt".contains(byte));
    let number = || {
        let (micros, end) = epoch::at_start(bytes)?;
        (end == bytes.len()).then(|| Moment::from_micros(micros))
    };
    let stamp = || value::stamp(&mut Stamps::new(now), bytes).map(Moment::from_micros);
    let moment = if is_number {
        number()
    } else {
        number()
            .or_else(|| calendar::parse(bytes).filter(|_| is_date))
            .or_else(stamp)
    };
    moment.ok_or_else(|| {
        format!("expected a time like 2026-11-15T05:03:40Z, a date, or an age like 2h or 3d, got '{text}'")
    })
}
