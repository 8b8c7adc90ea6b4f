//! Dates with a time of day.
//!
//! All formats contain `hh:mm`, so we search for colons and then look for the date before them. Successive lines often
//! have the same date, so the date is first compared with that of the last line.

use memchr::memchr;
use std::ops::Range;
use tamis::{Moment, internals::calendar};

/// The part of a line in which its time is searched.
const SEEN: usize = 256;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// The longest date: `15/Nov/2026:`.
const LONGEST: usize = 12;

/// Finds times, and remembers the last date.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    now: Moment,
    /// The last date as written, including what separates it from the time of day.
    written: [u8; LONGEST],
    date: Date,
}

/// A date in a line.
#[derive(Clone, Copy, Debug)]
struct Date {
    shape: Shape,
    /// Microseconds.
    midnight: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// No date yet.
    None,
    /// `2026-11-15T`, `2026-11-15 `, `2026/11/15 `
    YearFirst,
    /// `15/Nov/2026:`, `15 Nov 2026 `, `15-Nov-2026 `
    DayFirst,
    /// `Nov 15 2026 `
    MonthFirst,
    /// `Nov 15 `
    NoYear,
}

impl Shape {
    /// The length, including what separates it from the time of day.
    fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::NoYear => 7,
            Self::YearFirst => 11,
            Self::DayFirst | Self::MonthFirst => LONGEST,
        }
    }
}

impl Stamps {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            now,
            written: [0; LONGEST],
            date: Date {
                shape: Shape::None,
                midnight: 0,
            },
        }
    }

    pub(super) const fn now(&self) -> Moment {
        self.now
    }

    /// The time at the start of a line that begins with the last date. It is the first time in the line.
    #[inline]
    pub(super) fn at_start_as_before(&self, line: &[u8]) -> Option<i64> {
        let hour = self.date.shape.len();
        if !self.is_before(line, hour) {
            return None;
        }
        let (time, _) = time_of_day(line, hour, self.date.shape)?;
        Some(self.date.midnight + time)
    }

    /// Whether the last date is right before this position.
    #[inline]
    fn is_before(&self, line: &[u8], hour: usize) -> bool {
        // The lengths are constants, so that these comparisons need no loop.
        fn ends<const N: usize>(line: &[u8], with: &[u8; LONGEST]) -> bool {
            line.last_chunk::<N>() == with.first_chunk::<N>()
        }
        let Some(before) = line.get(..hour) else {
            return false;
        };
        match self.date.shape {
            Shape::None => false,
            Shape::NoYear => ends::<7>(before, &self.written),
            Shape::YearFirst => ends::<11>(before, &self.written),
            Shape::DayFirst | Shape::MonthFirst => ends::<LONGEST>(before, &self.written),
        }
    }

    /// The first time in a line, and its position.
    pub(super) fn find(&mut self, line: &[u8]) -> Option<(i64, Range<usize>)> {
        let seen = &line[..line.len().min(SEEN)];
        let mut from = 0;
        while let Some(colon) = memchr(b':', &seen[from..]) {
            let colon = from + colon;
            from = colon + 1;
            if let Some(found) = colon.checked_sub(2).and_then(|hour| self.at(line, hour)) {
                return Some(found);
            }
        }
        None
    }

    /// Parses a date before this position, and a time of day at it.
    fn at(&mut self, line: &[u8], hour: usize) -> Option<(i64, Range<usize>)> {
        // Most colons are ruled out by the characters around them.
        let before = *line.get(hour.checked_sub(1)?)?;
        if !line[hour].is_ascii_digit() || !matches!(before, b' ' | b':' | b'T' | b't' | b'_') {
            return None;
        }
        let date = self.date_before(line, hour)?;
        let (time, end) = time_of_day(line, hour, date.shape)?;
        let start = hour - date.shape.len();
        if date.shape == Shape::NoYear
            && let Some((year, end)) = year_behind(line, start, end)
        {
            let midnight = midnight_of(year, &line[start..hour])?;
            return Some((midnight + time, start - WEEKDAY..end));
        }
        Some((date.midnight + time, start..end))
    }

    fn date_before(&mut self, line: &[u8], hour: usize) -> Option<Date> {
        let shape = self.date.shape;
        // It would begin in the middle of a number.
        let is_cut = |shape: Shape| {
            let start = hour - shape.len();
            start > 0 && line[start].is_ascii_digit() && line[start - 1].is_ascii_digit()
        };
        if self.is_before(line, hour) {
            return (!is_cut(shape)).then_some(self.date);
        }
        let date = new_date(&line[..hour], self.now)?;
        if is_cut(date.shape) {
            return None;
        }
        let written = &line[hour - date.shape.len()..hour];
        self.written[..written.len()].copy_from_slice(written);
        self.date = date;
        Some(date)
    }
}

/// The date at the end of these bytes.
fn new_date(bytes: &[u8], now: Moment) -> Option<Date> {
    let day = |shape, day: i64| Date {
        shape,
        midnight: day * DAY,
    };
    if let Some(written) = bytes.last_chunk::<11>() {
        let [y0, y1, y2, y3, a, m0, m1, b, d0, d1, end] = *written;
        let is_date = matches!((a, b), (b'-', b'-') | (b'/', b'/'))
            && matches!(end, b'T' | b't' | b' ' | b'_');
        if is_date && let Some(year) = number(&[y0, y1, y2, y3]) {
            let (month, of_month) = (number(&[m0, m1])?, number(&[d0, d1])?);
            let found = calendar::day(year.into(), month as u8, of_month as u8)?;
            return Some(day(Shape::YearFirst, found));
        }
    }
    if let Some(written) = bytes.last_chunk::<12>() {
        let [d0, d1, a, m0, m1, m2, b, y0, y1, y2, y3, end] = *written;
        let is_date = a == b && matches!(a, b'/' | b' ' | b'-') && matches!(end, b':' | b' ');
        if is_date
            && let Some(of_month) = number_or_space(d0, d1)
            && let Some(month) = month(&[m0, m1, m2])
            && let Some(year) = number(&[y0, y1, y2, y3])
        {
            let found = calendar::day(year.into(), month, of_month)?;
            return Some(day(Shape::DayFirst, found));
        }
        let [m0, m1, m2, a, d0, d1, b, y0, y1, y2, y3, end] = *written;
        if (a, b, end) == (b' ', b' ', b' ')
            && let Some(month) = month(&[m0, m1, m2])
            && let Some(of_month) = number_or_space(d0, d1)
            && let Some(year) = number(&[y0, y1, y2, y3])
        {
            let found = calendar::day(year.into(), month, of_month)?;
            return Some(day(Shape::MonthFirst, found));
        }
    }
    let (month, of_month) = month_and_day(bytes.last_chunk()?)?;
    Some(day(Shape::NoYear, without_year(month, of_month, now)?))
}

/// The day of a date in the last year in which it begins no later than a day after `now`.
pub(super) fn without_year(month: u8, of_month: u8, now: Moment) -> Option<i64> {
    let latest = (now.micros() + DAY).div_euclid(DAY);
    let (year, ..) = calendar::date(latest.into());
    // Eight years are between the leap days of 1896 and 1904.
    let mut days = (year as i64 - 8..=year as i64)
        .rev()
        .filter_map(|year| calendar::day(year, month, of_month));
    days.find(|day| *day <= latest)
}

/// Midnight of `Nov 15 ` in a year, in microseconds.
fn midnight_of(year: u32, written: &[u8]) -> Option<i64> {
    let (month, of_month) = month_and_day(written.first_chunk()?)?;
    calendar::day(year.into(), month, of_month).map(|day| day * DAY)
}

fn month_and_day(written: &[u8; 7]) -> Option<(u8, u8)> {
    let [m0, m1, m2, b' ', d0, d1, b' '] = *written else {
        return None;
    };
    Some((month(&[m0, m1, m2])?, number_or_space(d0, d1)?))
}

/// `Sun `, before a date.
const WEEKDAY: usize = 4;

/// The year after a time of day, and where it ends. Only if a weekday precedes the date: 2026 could be the name of a
/// host.
fn year_behind(line: &[u8], date: usize, time_end: usize) -> Option<(u32, usize)> {
    const DAYS: [&[u8]; 7] = [
        b"Mon ", b"Tue ", b"Wed ", b"Thu ", b"Fri ", b"Sat ", b"Sun ",
    ];
    let weekday = line.get(date.checked_sub(WEEKDAY)?..date)?;
    if !DAYS.contains(&weekday) {
        return None;
    }
    let mut rest = line[time_end..].strip_prefix(b" ")?;
    let zone = rest
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase())
        .count();
    if zone > 0 {
        rest = rest[zone..].strip_prefix(b" ")?;
    }
    let year = number(rest.first_chunk::<4>()?)?;
    let is_cut = rest.get(4).is_some_and(u8::is_ascii_digit);
    (!is_cut).then_some((year, line.len() - rest.len() + 4))
}

/// The number of a month by its name.
pub(super) fn month(name: &[u8; 3]) -> Option<u8> {
    Some(
        match name.map(|byte| byte.to_ascii_lowercase()).as_slice() {
            b"jan" => 1,
            b"feb" => 2,
            b"mar" => 3,
            b"apr" => 4,
            b"may" => 5,
            b"jun" => 6,
            b"jul" => 7,
            b"aug" => 8,
            b"sep" => 9,
            b"oct" => 10,
            b"nov" => 11,
            b"dec" => 12,
            _ => return None,
        },
    )
}

fn number_or_space(tens: u8, ones: u8) -> Option<u8> {
    let tens = if tens == b' ' { b'0' } else { tens };
    number(&[tens, ones]).map(|number| number as u8)
}

fn number<const N: usize>(digits: &[u8; N]) -> Option<u32> {
    let mut value = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some(value)
}

/// The time of day with its zone, in microseconds since midnight UTC, and where it ends.
#[inline]
fn time_of_day(line: &[u8], at: usize, shape: Shape) -> Option<(i64, usize)> {
    let rest = line.get(at..)?;
    let [h0, h1, b':', m0, m1] = *rest.first_chunk()? else {
        return None;
    };
    let (hour, minute) = (number(&[h0, h1])?, number(&[m0, m1])?);
    let second = match rest.get(5..8) {
        Some(&[b':', s0, s1]) => number(&[s0, s1]),
        _ => None,
    };
    let mut end = if second.is_some() { 8 } else { 5 };
    // Dates without seconds occur in prose; those with the year first are for programs.
    if second.is_none() && shape != Shape::YearFirst {
        return None;
    }
    let second = second.unwrap_or(0);
    let is_leap = minute == 59 && second == 60;
    if hour > 23 || minute > 59 || second > 59 && !is_leap {
        return None;
    }
    let mut micros = i64::from(hour * 3600 + minute * 60 + second) * SECOND;
    if end == 8 && matches!(rest.get(8), Some(b'.' | b',')) {
        let (fraction, digits) = fraction(&rest[9..]);
        if digits > 0 {
            micros += fraction;
            end = 9 + digits;
        }
    }
    let (zone, zone_len) = zone(&rest[end..]);
    Some((micros - zone, at + end + zone_len))
}

/// The digits after a point in microseconds, and how many there are.
#[inline]
pub(super) fn fraction(bytes: &[u8]) -> (i64, usize) {
    let (mut micros, mut unit, mut digits) = (0, SECOND / 10, 0);
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        micros += i64::from(digit) * unit;
        unit /= 10;
        digits += 1;
    }
    (micros, digits)
}

/// The offset of the zone at the start of these bytes, in microseconds, and its length. Anything else counts as UTC.
#[inline]
pub(super) fn zone(bytes: &[u8]) -> (i64, usize) {
    let (space, sign) = match bytes {
        [b'+' | b'-', ..] => (0, bytes[0]),
        [b' ', b'+' | b'-', ..] => (1, bytes[1]),
        [b'Z' | b'z', ..] => return (0, 1),
        _ => return (0, 0),
    };
    numeric_zone(&bytes[space + 1..], space == 0).map_or((0, 0), |(minutes, len)| {
        let ahead = i64::from(minutes) * 60 * SECOND;
        (if sign == b'-' { -ahead } else { ahead }, space + 1 + len)
    })
}

/// Parses `hh:mm`, `hhmm` or, if `hours_suffice`, `hh`; returns minutes and length.
fn numeric_zone(bytes: &[u8], hours_suffice: bool) -> Option<(u32, usize)> {
    let hours = number(bytes.first_chunk::<2>()?)?;
    let two = |at: usize| {
        bytes
            .get(at..)
            .and_then(<[u8]>::first_chunk::<2>)
            .and_then(number)
    };
    let (minutes, len) = match (bytes.get(2), two(2), two(3)) {
        (Some(b':'), _, Some(minutes)) => (minutes, 5),
        (_, Some(minutes), _) => (minutes, 4),
        _ if hours_suffice => (0, 2),
        _ => return None,
    };
    let is_cut = bytes.get(len).is_some_and(u8::is_ascii_digit);
    (hours < 24 && minutes < 60 && !is_cut).then_some((hours * 60 + minutes, len))
}
