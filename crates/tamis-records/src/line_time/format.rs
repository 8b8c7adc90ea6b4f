//! Times in a format given by the user.

use super::stamp;
use memchr::memchr;
use std::str::FromStr;
use tamis::{Moment, internals::calendar};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A time format in the style of `strftime`:
///
/// | | |
/// | --- | --- |
/// | `%Y` `%y` | the year: 2026; 26, from 1970 to 2069. Optional, as in syslog |
/// | `%m` `%b` `%B` | the month: 11, Nov, November |
/// | `%d` `%e` | the day: 05; ` 5` or `5` |
/// | `%j` | the day of the year: 319 |
/// | `%H` `%I` `%p` | the hour: 17; 05, with AM or PM |
/// | `%M` `%S` | minute and second |
/// | `%f` | digits of a fraction |
/// | `%z` `%Z` | the zone: `+01:00`, `+0100`, `Z`; a name, which counts as UTC |
/// | `%a` `%A` | a weekday, which is ignored |
/// | `%s` | seconds since 1970 |
/// | `%F` `%T` `%D` `%R` | `%Y-%m-%d`, `%H:%M:%S`, `%m/%d/%y`, `%H:%M` |
/// | `%%` | a percent sign |
///
/// Numbers have all their digits. Other characters stand for themselves.
///
/// ```
/// use tamis_records::line_time::{LineTimes, TimeFormat};
/// let format: TimeFormat = "%d.%m.%Y %H:%M".parse()?;
/// let mut times = LineTimes::new(Some(&format), tamis::Moment::now());
/// let time = times.of_line(b"<info> 15.11.2026 05:03: up").unwrap();
/// assert_eq!(time.to_string(), "2026-11-15T05:03:00Z");
/// assert!("%H:%M".parse::<TimeFormat>().unwrap_err().contains("a date"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeFormat {
    items: Vec<Item>,
    /// A byte that every such time contains, and its offset from the beginning.
    mark: Option<(u8, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Literal(u8),
    Year,
    ShortYear,
    Month,
    MonthName,
    LongMonthName,
    Day,
    PaddedDay,
    DayOfYear,
    Hour,
    Hour12,
    HalfOfDay,
    Minute,
    Second,
    Fraction,
    Zone,
    ZoneName,
    Weekday,
    Epoch,
}

impl Item {
    /// The length in bytes, if it is fixed.
    fn len(self) -> Option<usize> {
        use Item::*;
        match self {
            Literal(_) => Some(1),
            Year => Some(4),
            MonthName | DayOfYear => Some(3),
            ShortYear | Month | Day | Hour | Hour12 | HalfOfDay | Minute | Second => Some(2),
            LongMonthName | PaddedDay | Fraction | Zone | ZoneName | Weekday | Epoch => None,
        }
    }
}

impl FromStr for TimeFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use Item::*;
        let mut items = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                items.push(Literal(byte));
                continue;
            }
            let colon = Literal(b':');
            let several: &[Item] = match rest.next() {
                Some(b'Y') => &[Year],
                Some(b'y') => &[ShortYear],
                Some(b'm') => &[Month],
                Some(b'b' | b'h') => &[MonthName],
                Some(b'B') => &[LongMonthName],
                Some(b'd') => &[Day],
                Some(b'e') => &[PaddedDay],
                Some(b'j') => &[DayOfYear],
                Some(b'H') => &[Hour],
                Some(b'I') => &[Hour12],
                Some(b'p') => &[HalfOfDay],
                Some(b'M') => &[Minute],
                Some(b'S') => &[Second],
                Some(b'f') => &[Fraction],
                Some(b'z') => &[Zone],
                Some(b'Z') => &[ZoneName],
                Some(b'a' | b'A') => &[Weekday],
                Some(b's') => &[Epoch],
                Some(b'F') => &[Year, Literal(b'-'), Month, Literal(b'-'), Day],
                Some(b'D') => &[Month, Literal(b'/'), Day, Literal(b'/'), ShortYear],
                Some(b'T') => &[Hour, colon, Minute, colon, Second],
                Some(b'R') => &[Hour, colon, Minute],
                Some(b'%') => &[Literal(b'%')],
                other => {
                    let got = other.map_or(String::new(), |byte| char::from(byte).to_string());
                    return Err(format!(
                        "a time format has %Y %y %m %b %B %d %e %j %H %I %p %M %S %f %z %Z %a %s %F %T %D %R %%, got '%{got}' in '{text}'"
                    ));
                }
            };
            items.extend_from_slice(several);
        }
        let has = |wanted: &[Item]| items.iter().any(|item| wanted.contains(item));
        let is_date = has(&[Month, MonthName, LongMonthName]) && has(&[Day, PaddedDay])
            || has(&[DayOfYear]) && has(&[Year, ShortYear]);
        if !is_date && !has(&[Epoch]) {
            return Err(format!(
                "a time format has a date, as %Y-%m-%d or %b %e, or seconds as %s, got '{text}'"
            ));
        }
        if has(&[Hour12]) != has(&[HalfOfDay]) {
            return Err(format!("%I and %p need each other, got '{text}'"));
        }
        let mut mark = None;
        let mut offset = 0;
        for item in &items {
            if let Literal(byte) = item {
                mark = Some((*byte, offset));
                // Spaces and digits are too common.
                if !byte.is_ascii_alphanumeric() && *byte != b' ' {
                    break;
                }
            }
            match item.len() {
                Some(len) => offset += len,
                None => break,
            }
        }
        Ok(Self { items, mark })
    }
}

/// The parts of a time that have been read.
#[derive(Default)]
struct Parts {
    year: Option<i64>,
    month: u8,
    day: u8,
    day_of_year: Option<u32>,
    hour: u32,
    is_afternoon: Option<bool>,
    minute: u32,
    second: u32,
    fraction: i64,
    zone: i64,
    epoch: Option<i64>,
}

impl TimeFormat {
    /// The first time in this format in a line, in microseconds since 1970.
    pub(super) fn find(&self, line: &[u8], now: Moment) -> Option<i64> {
        let at = |start: usize| self.parts(&line[start..])?.0.micros(now);
        let Some((byte, offset)) = self.mark else {
            return (0..line.len()).find_map(at);
        };
        let mut from = offset;
        while let Some(next) = line.get(from..).and_then(|rest| memchr(byte, rest)) {
            let time = at(from + next - offset);
            if time.is_some() {
                return time;
            }
            from += next + 1;
        }
        None
    }

    /// The time of a text that is entirely in this format.
    pub(super) fn read(&self, text: &[u8], now: Moment) -> Option<i64> {
        match self.parts(text)? {
            (parts, b"") => parts.micros(now),
            _ => None,
        }
    }

    /// Parses a time at the start of bytes; returns its parts and the bytes
    /// after it.
    fn parts<'b>(&self, bytes: &'b [u8]) -> Option<(Parts, &'b [u8])> {
        let mut rest = bytes;
        let mut parts = Parts::default();
        for item in &self.items {
            rest = &rest[parts.read(*item, rest)?..];
        }
        Some((parts, rest))
    }
}

impl Parts {
    /// Parses an item at the start of bytes, and returns its length.
    fn read(&mut self, item: Item, bytes: &[u8]) -> Option<usize> {
        let digits = |count| number(bytes.get(..count)?);
        match item {
            Item::Literal(byte) => return (bytes.first() == Some(&byte)).then_some(1),
            Item::Year => self.year = Some(digits(4)?.into()),
            Item::ShortYear => {
                let year = i64::from(digits(2)?);
                self.year = Some(if year < 70 { 2000 + year } else { 1900 + year });
            }
            Item::Month => self.month = digits(2)? as u8,
            Item::MonthName => self.month = stamp::month(bytes.first_chunk()?)?,
            Item::LongMonthName => {
                let (month, len) = long_month(bytes)?;
                self.month = month;
                return Some(len);
            }
            Item::Day => self.day = digits(2)? as u8,
            Item::PaddedDay => {
                let space = usize::from(bytes.first() == Some(&b' '));
                let len = if space == 1 {
                    1
                } else {
                    letters(bytes, u8::is_ascii_digit).min(2)
                };
                self.day = number(bytes.get(space..space + len)?)? as u8;
                return Some(space + len);
            }
            Item::DayOfYear => self.day_of_year = Some(digits(3)?),
            Item::Hour | Item::Hour12 => self.hour = digits(2)?,
            Item::HalfOfDay => {
                self.is_afternoon = Some(match bytes.get(..2)? {
                    b"AM" | b"am" => false,
                    b"PM" | b"pm" => true,
                    _ => return None,
                });
            }
            Item::Minute => self.minute = digits(2)?,
            Item::Second => self.second = digits(2)?,
            Item::Fraction => {
                let (fraction, len) = stamp::fraction(bytes);
                self.fraction = fraction;
                return (len > 0).then_some(len);
            }
            Item::Zone => {
                let (zone, len) = stamp::zone(bytes);
                self.zone = zone;
                return (len > 0).then_some(len);
            }
            Item::ZoneName | Item::Weekday => {
                let len = letters(bytes, u8::is_ascii_alphabetic);
                return (len > 0).then_some(len);
            }
            Item::Epoch => {
                let len = letters(bytes, u8::is_ascii_digit);
                // Larger values are too far away.
                let seconds = bytes[..len].iter().fold(0_i64, |value, digit| {
                    value
                        .saturating_mul(10)
                        .saturating_add((digit - b'0').into())
                });
                self.epoch = Some(seconds);
                return (len > 0).then_some(len);
            }
        }
        item.len()
    }

    fn micros(&self, now: Moment) -> Option<i64> {
        if let Some(seconds) = self.epoch {
            return Some(
                Moment::from_secs(seconds)
                    .micros()
                    .saturating_add(self.fraction),
            );
        }
        let day = match (self.day_of_year, self.year) {
            (Some(number @ 1..=366), Some(year)) => {
                let day = calendar::day(year, 1, 1)? + i64::from(number) - 1;
                (day < calendar::day(year + 1, 1, 1)?).then_some(day)?
            }
            (Some(_), _) => return None,
            (None, Some(year)) => calendar::day(year, self.month, self.day)?,
            (None, None) => stamp::without_year(self.month, self.day, now)?,
        };
        let hour = match self.is_afternoon {
            None => self.hour,
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let is_leap = self.minute == 59 && self.second == 60;
        if hour > 23 || self.minute > 59 || self.second > 59 && !is_leap {
            return None;
        }
        let seconds = i64::from(hour * 3600 + self.minute * 60 + self.second);
        Some(day * DAY + seconds * SECOND + self.fraction - self.zone)
    }
}

/// The month whose whole name bytes begin with, and the length of that.
fn long_month(bytes: &[u8]) -> Option<(u8, usize)> {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let is_it = |name: &&str| {
        let written = bytes.get(..name.len());
        written.is_some_and(|written| written.eq_ignore_ascii_case(name.as_bytes()))
    };
    let number = NAMES.iter().position(is_it)?;
    Some((number as u8 + 1, NAMES[number].len()))
}

/// The number of leading bytes of this kind.
fn letters(bytes: &[u8], is_one: fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_one(byte)).count()
}

/// The value of a few digits.
fn number(digits: &[u8]) -> Option<u32> {
    let mut value = 0;
    for digit in digits {
        value = value * 10 + (*digit as char).to_digit(10)?;
    }
    (!digits.is_empty()).then_some(value)
}
