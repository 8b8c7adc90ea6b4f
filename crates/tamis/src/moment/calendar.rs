//! The only calendar: days and dates, and moments as text.
//!
//! Years are Gregorian, also before 1582.

use super::Moment;

/// The date of a day, counted from 1970-01-01: year, month and day of the month. The year before 1 is 0.
///
/// ```
/// use tamis::internals::calendar::date;
/// assert_eq!(date(0), (1970, 1, 1));
/// assert_eq!(date(-1), (1969, 12, 31));
/// assert_eq!(date(11_016), (2000, 2, 29));
/// ```
pub const fn date(days: i128) -> (i128, u8, u8) {
    // Years that begin in March have the leap day at the end; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = cycle * 400 + year + (month <= 2) as i128;
    (year, month as u8, day as u8)
}

/// The day of a date, counted from 1970-01-01; `None` if the date doesn't exist.
///
/// ```
/// use tamis::internals::calendar::day;
/// assert_eq!(day(1970, 1, 1), Some(0));
/// assert_eq!(day(2000, 2, 29), Some(11_016));
/// assert_eq!(day(1900, 2, 29), None);
/// ```
pub fn day(year: i64, month: u8, day: u8) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let from_march = (month + 9) % 12;
    let year = year.checked_sub(i64::from(month <= 2))?;
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_cycle = year * 365 + year / 4 - year / 100 + of_year - 719_468;
    cycle.checked_mul(146_097)?.checked_add(of_cycle)
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Reads a moment in ISO 8601 or RFC 3339, or as a number since 1970.
///
/// - A date, then `T` or a space, then a time of day: `2026-11-17T10:30:00.25Z`, `2026-11-17 10:30`,
///   `20261117T103000Z`, `2026-11-17`. Digits beyond microseconds are dropped. `24:00` is the next midnight, and a leap
///   second (`23:59:60`) the second after it.
/// - A zone: `Z`, `UTC`, `+02:00`, `+0200`, `+02`. The default is UTC.
/// - A number, optionally with a fraction or an exponent. Its size determines its unit: below 10¹¹ seconds (until the
///   year 5138), below 10¹⁴ milliseconds, below 10¹⁷ microseconds, below 10²⁰ nanoseconds. So milliseconds from before
///   March 1973 are read as seconds. The same goes for negative numbers.
///
/// Anything else is `None`. Never panics.
///
/// ```
/// use tamis::internals::calendar::parse;
/// let moment = tamis::Moment::from_secs(1_763_375_400);
/// for text in ["2025-11-17T10:30:00Z", "2025-11-17 12:30+02:00", "1763375400", "1763375400000", "1.7633754e9"] {
///     assert_eq!(parse(text.as_bytes()), Some(moment), "{text}");
/// }
/// assert_eq!(parse(b"yesterday"), None);
/// ```
pub fn parse(text: &[u8]) -> Option<Moment> {
    let text = text.trim_ascii();
    // No number starts like this.
    let has_year = text.iter().take_while(|byte| byte.is_ascii_digit()).count() == 4;
    let is_date =
        has_year && text.get(4) == Some(&b'-') || matches!(text.get(8), Some(b'T' | b't'));
    let micros = if is_date {
        stamp(text)?
    } else if let Some(whole) = whole(text) {
        whole
    } else {
        i64::try_from(number(text)?).ok()?
    };
    Some(Moment::from_micros(micros))
}

/// A date, optionally a time of day, optionally a zone.
fn stamp(text: &[u8]) -> Option<i64> {
    let mut rest = Rest(text);
    let year = rest.digits(4)?;
    let dashes = rest.take(b"-");
    let month = rest.digits(2)?;
    if dashes && !rest.take(b"-") {
        return None;
    }
    let midnight = day(year.into(), month as u8, rest.digits(2)? as u8)? * DAY;
    if rest.0.is_empty() {
        return Some(midnight);
    }
    if !(rest.take(b"T") || rest.take(b"t") || rest.take(b" ")) {
        return None;
    }
    let time = time_of_day(&mut rest)?;
    rest.take(b" ");
    let zone = zone(&mut rest)?;
    rest.0.is_empty().then_some(midnight + time - zone)
}

/// Microseconds since midnight.
fn time_of_day(rest: &mut Rest) -> Option<i64> {
    let hour = rest.digits(2)?;
    let colons = rest.take(b":");
    let minute = if colons {
        rest.digits(2)?
    } else {
        rest.digits(2).unwrap_or(0)
    };
    let second = if rest.take(b":") {
        rest.digits(2)?
    } else if colons {
        0
    } else {
        rest.digits(2).unwrap_or(0)
    };
    let mut fraction = 0;
    if rest.take(b".") || rest.take(b",") {
        let digits = rest.0.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        if digits == 0 {
            return None;
        }
        for at in 0..6 {
            let digit = rest.0[..digits].get(at).map_or(0, |byte| byte - b'0');
            fraction = fraction * 10 + i64::from(digit);
        }
        rest.0 = &rest.0[digits..];
    }
    let is_there = match (hour, minute, second) {
        (24, 0, 0) => fraction == 0,
        (_, 59, 60) => hour < 24,
        _ => hour < 24 && minute < 60 && second < 60,
    };
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    is_there.then_some(seconds * SECOND + fraction)
}

/// How far a zone is ahead of UTC, in microseconds.
fn zone(rest: &mut Rest) -> Option<i64> {
    let sign = match rest.0.first() {
        None => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => {
            let utc: [&[u8]; 4] = [b"Z", b"z", b"UTC", b"GMT"];
            return utc.iter().any(|name| rest.take(name)).then_some(0);
        }
    };
    rest.0 = &rest.0[1..];
    let hours = rest.digits(2)?;
    let colon = rest.take(b":");
    let minutes = if colon {
        rest.digits(2)?
    } else {
        rest.digits(2).unwrap_or(0)
    };
    let minutes = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
    Some(sign * i64::from(minutes) * 60 * SECOND)
}

/// The text left to read.
struct Rest<'t>(&'t [u8]);

impl Rest<'_> {
    fn take(&mut self, what: &[u8]) -> bool {
        match self.0.strip_prefix(what) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// A number of this many digits.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let mut value = 0;
        for digit in digits {
            value = value * 10 + (*digit as char).to_digit(10)?;
        }
        self.0 = rest;
        Some(value)
    }
}

/// The most digits of a moment's whole part, and the digits after the point that count: together less than 10³⁸.
const WHOLE: usize = 20;
const FRACTION: usize = 18;

/// A number without sign and fraction, as most are. Same result as [`number`], but faster.
fn whole(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut value = 0;
    for digit in text {
        value = value * 10 + i64::from((*digit as char).to_digit(10)?);
    }
    Some(match value {
        0..100_000_000_000 => value * SECOND,
        100_000_000_000..100_000_000_000_000 => value * 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => value,
        _ => value / 1_000,
    })
}

/// A number since 1970, in the unit that its size implies.
fn number(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let (decimal, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, size) = match decimal.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, decimal.strip_prefix('+').unwrap_or(decimal)),
    };
    let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() > WHOLE {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(FRACTION)];
    let digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    // In billionths of the unit.
    let power = power
        .parse::<i32>()
        .ok()?
        .checked_sub(fraction.len() as i32)?;
    let size = match power.checked_add(9)? {
        power @ 0.. => digits.checked_mul(10_u128.checked_pow(power as u32)?)?,
        power => {
            digits
                / 10_u128
                    .checked_pow(power.unsigned_abs())
                    .unwrap_or(u128::MAX)
        }
    };
    const BILLION: u128 = 1_000_000_000;
    let unit = match size / BILLION {
        0..100_000_000_000 => 1_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000_000_000,
        100_000_000_000_000_000..100_000_000_000_000_000_000 => 1_000_000_000_000,
        _ => return None,
    };
    Some((sign * i128::try_from(size).ok()?).div_euclid(unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-17, 10:30 UTC.
    const MOMENT: Moment = Moment::from_secs(1_794_911_400);

    #[test]
    fn moments_are_read_as_people_and_programs_write_them() {
        for text in [
            "2026-11-17T10:30:00Z",
            "2026-11-17t10:30:00z",
            "2026-11-17 10:30:00",
            "2026-11-17 10:30",
            "2026-11-17T10:30Z",
            "2026-11-17T12:30:00+02:00",
            "2026-11-17 12:30:00+0200",
            "2026-11-17 12:30:00 +0200",
            "2026-11-17T12:30+02",
            "2026-11-17T05:00:00-05:30",
            "2026-11-18T10:29:00+23:59",
            "2026-11-17 10:30:00 UTC",
            "2026-11-17 10:30:00 GMT",
            "20261117T103000Z",
            "20261117T1030",
            "20261117T123000+0200",
            "2026-11-17T10:30:00.0",
            "2026-11-17T10:30:00.000000999Z",
            "2026-11-17T10:30:00,000000000000000000000001Z",
            "  2026-11-17T10:30:00Z\t",
            "1794911400",
            "+1794911400",
            "001794911400",
            "1794911400.0000001",
            "1794911400000",
            "1794911400000.0",
            "1794911400000000",
            "1794911400000000000",
            "1794911400000000999",
            "1.7949114e9",
            "17949114E+2",
            "1.7949114e12",
            "17949114000e-1",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(MOMENT), "{text}");
        }
    }

    #[test]
    fn odd_moments_are_what_they_say() {
        for (text, written) in [
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"), // a leap second
            ("2017-01-01T00:59:60+01:00", "2017-01-01T00:00:00Z"),
            ("2026-11-17T24:00:00Z", "2026-11-18T00:00:00Z"),
            ("2026-11-17T23", "2026-11-17T23:00:00Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("1960-06-01", "1960-06-01T00:00:00Z"),
            ("-1", "1969-12-31T23:59:59Z"),
            ("-0.0000001", "1969-12-31T23:59:59.999999Z"),
            ("-302400000000", "1960-06-02T00:00:00Z"), // milliseconds
            ("0", "1970-01-01T00:00:00Z"),
            ("-0", "1970-01-01T00:00:00Z"),
            ("1e-400", "1970-01-01T00:00:00Z"),
            ("1.5e-3", "1970-01-01T00:00:00.001500Z"),
            ("20261117", "1970-08-23T12:05:17Z"), // a number, not a date
            ("2026", "1970-01-01T00:33:46Z"),
            ("99999999999", "5138-11-16T09:46:39Z"),
            ("100000000000", "1973-03-03T09:46:40Z"),
            ("99999999999999", "5138-11-16T09:46:39.999Z"),
            ("100000000000000", "1973-03-03T09:46:40Z"),
            ("99999999999999999", "5138-11-16T09:46:39.999999Z"),
            ("100000000000000000", "1973-03-03T09:46:40Z"),
            ("99999999999999999999", "5138-11-16T09:46:39.999999Z"),
        ] {
            let moment = parse(text.as_bytes());
            assert_eq!(
                moment.map(|m| m.to_string()).as_deref(),
                Some(written),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        let huge = "9".repeat(1000);
        for text in [
            "",
            " ",
            "-",
            "+",
            ".",
            "e",
            "e5",
            ".5",
            "1e",
            "1e+",
            "--1",
            "+-1",
            "1.2.3",
            "0x10",
            "1_000",
            "nan",
            "inf",
            "Infinity",
            "null",
            "true",
            "{}",
            "yesterday",
            "now",
            "2026-13-01",
            "2026-00-10",
            "2026-11-00",
            "2026-11-31",
            "2026-02-29",
            "1900-02-29",
            "2026-11-17T",
            "2026-11-17T1",
            "2026-11-17T24:00:01",
            "2026-11-17T24:00:00.1",
            "2026-11-17T25:00",
            "2026-11-17T10:60",
            "2026-11-17T10:30:60",
            "2026-11-17T10:30:61",
            "2026-11-17T23:59:61",
            "2026-11-17T10:30:",
            "2026-11-17T10:30:00.",
            "2026-11-17T10:30:0",
            "2026-11-17T10:30:00+",
            "2026-11-17T10:30:00+2",
            "2026-11-17T10:30:00+24:00",
            "2026-11-17T10:30:00+02:60",
            "2026-11-17T10:30:00+02:",
            "2026-11-17T10:30:00 CET",
            "2026-11-17T10:30:00Zz",
            "2026-11-17Z",
            "2026-11-17T10:30:00Z Z",
            "2026-11",
            "2026-1-1",
            "2026-W47-2",
            "2026-321",
            "26-11-17",
            "17.11.2026",
            "11/17/2026",
            "10000-01-01",
            "+10000-01-01",
            "-0001-01-01",
            "\u{0662}026-11-17",
            "2026\u{2212}11\u{2212}17",
            "100000000000000000000",
            "1e99",
            "1e2147483648",
            "1e99999999999",
            "-9223372036854775808000",
            &huge,
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"\xff\xfe"), None);
    }

    proptest! {
        #[test]
        fn every_day_has_one_date(days in -10_000_000_i64..10_000_000) {
            let (year, month, of_month) = date(days.into());
            prop_assert_eq!(day(year as i64, month, of_month), Some(days));
            prop_assert!(date((days + 1).into()) > (year, month, of_month));
        }

        #[test]
        fn what_is_written_is_read(micros in -62_167_219_200_000_000_i64..253_402_300_800_000_000) {
            let text = Moment::from_micros(micros).to_string();
            prop_assert_eq!(parse(text.as_bytes()), Some(Moment::from_micros(micros)), "{}", text);
            let elsewhere = format!("{}+00:00", text.trim_end_matches('Z').replace('T', " "));
            prop_assert_eq!(parse(elsewhere.as_bytes()), Some(Moment::from_micros(micros)), "{}", elsewhere);
        }

        #[test]
        fn numbers_are_read_exactly(micros in -99_999_999_999_999_999_i64..=99_999_999_999_999_999) {
            let (sign, size) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
            let seconds = format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000);
            prop_assert_eq!(parse(seconds.as_bytes()), Some(Moment::from_micros(micros)));
            if size >= 100_000_000_000_000 {
                prop_assert_eq!(parse(micros.to_string().as_bytes()), Some(Moment::from_micros(micros)));
                let millis = format!("{sign}{}.{:03}", size / 1_000, size % 1_000);
                prop_assert_eq!(parse(millis.as_bytes()), Some(Moment::from_micros(micros)));
                prop_assert_eq!(parse(format!("{micros}000").as_bytes()), Some(Moment::from_micros(micros)));
            }
        }

        #[test]
        fn whole_numbers_are_numbers(value in 0_u64..1_000_000_000_000_000_000, digits in 1_u32..=18) {
            let value = value % 10_u64.pow(digits);
            let text = value.to_string();
            let slow = number(text.as_bytes()).map(|micros| micros as i64);
            prop_assert_eq!(whole(text.as_bytes()), slow);
        }

        #[test]
        fn nothing_makes_it_panic(text in "[0-9eE+.,:TZ \\-]{0,40}", bytes in any::<Vec<u8>>()) {
            parse(text.as_bytes());
            parse(&bytes);
        }
    }
}
