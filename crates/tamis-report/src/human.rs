//! Formats and parses numbers as people write them, and makes texts safe to
//! show.

use std::borrow::Cow;
use std::time::Duration;

/// Escapes characters that a terminal would interpret: control characters other than line feed and
/// tab, and those that change the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !obeyed(c) => shown.push(c),
            '\r' => shown.push_str("\\r"),
            // As in JSON, so that JSON text stays valid.
            c => shown.push_str(&format!("\\u{:04x}", c as u32)),
        }
    }
    Cow::Owned(shown)
}

/// Parses a count: `1000`, `1_000`, `1e6`, `10M`, `1.5G`. Powers of ten.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (number, suffix) = split(text);
    let factor = match suffix.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" | "b" => 1e9,
        "t" => 1e12,
        _ => {
            return Err(format!(
                "expected a number like 10000, 1e6 or 10M (units K, M, G, T), got '{text}'"
            ));
        }
    };
    scale(number, factor, text)
}

/// Parses a size: `65536`, `500MB`, `2GiB`. `M` and `MB` are powers of ten,
/// `MiB` of two.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, suffix) = split(text);
    let lower = suffix.to_ascii_lowercase();
    let factor = match lower.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024f64.powi(2),
        "gib" => 1024f64.powi(3),
        "tib" => 1024f64.powi(4),
        _ => {
            return Err(format!(
                "expected a size like 500MB or 2GiB (units KB, MB, GB, KiB, MiB, GiB), got '{text}'"
            ));
        }
    };
    scale(number, factor, text)
}

/// Parses a rate: `0.01`, `1e-6`, `1%`, `1/1000`.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let number = |part: &str| {
        part.trim()
            .parse::<f64>()
            .map_err(|_| expected_number(text))
    };
    let rate = if let Some(percent) = text.strip_suffix('%') {
        number(percent)? / 100.0
    } else if let Some((one, many)) = text.split_once('/') {
        number(one)? / number(many)?
    } else {
        number(text)?
    };
    if rate > 0.0 && rate < 1.0 {
        return Ok(rate);
    }
    Err(format!("a rate lies between 0 and 1, got {text}"))
}

/// Parses a time: `500ms`, `5s`, `5`, `10m`, `12h`, `7d`, `2w`, `1d12h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds(text)?) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err(format!(
            "expected a time of a millisecond or more, got {text}"
        )),
    }
}

/// Whether a text is a time with a unit, even if it is too short or too long.
pub fn is_duration(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_alphabetic()) && seconds(text).is_ok()
}

fn seconds(text: &str) -> Result<f64, String> {
    let (mut rest, mut sum) = (text, 0.0);
    loop {
        let (number, units) = split(rest);
        let end = units.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, next) = units.split_at(end.unwrap_or(units.len()));
        let factor = match unit {
            "ms" => 1e-3,
            // Seconds by default.
            "" if rest == text => 1.0,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => {
                return Err(format!(
                    "expected a time like 500ms, 12h or 1d12h (units ms, s, m, h, d, w), got '{text}'"
                ));
            }
        };
        let number = number.parse::<f64>().ok();
        // Only the first number may be negative, and the time is then too
        // short.
        let number = number.filter(|number| *number >= 0.0 || rest == text);
        sum += number.ok_or_else(|| expected_number(text))? * factor;
        rest = next.trim_start();
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}

/// Formats a time for [`parse_duration`]: `1d`, `1d12h`, `90m`, `500ms`.
pub fn span(time: Duration) -> String {
    let millis = time.as_nanos().div_ceil(1_000_000);
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
        (1, "ms"),
    ];
    let (mut text, mut rest) = (String::new(), millis);
    for (unit, name) in units {
        if rest >= unit {
            text += &format!("{}{name}", rest / unit);
            rest %= unit;
        }
    }
    text
}

/// `1 d 3 h`, `12.3 s`: the two largest units.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, _, _) => format!("{d} d {h} h"),
    }
}

fn split(text: &str) -> (&str, &str) {
    // Digits follow the `e` of an exponent, but not the first letter of a unit.
    let bytes = text.as_bytes();
    let is_exponent = |i: usize| {
        matches!(bytes[i], b'e' | b'E')
            && matches!(bytes.get(i + 1), Some(c) if c.is_ascii_digit() || matches!(c, b'+' | b'-'))
    };
    let end = (0..bytes.len()).find(|&i| bytes[i].is_ascii_alphabetic() && !is_exponent(i));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    (number.trim(), suffix.trim())
}

fn scale(number: &str, factor: f64, text: &str) -> Result<u64, String> {
    let digits = without_separators(number).ok_or_else(|| expected_number(text))?;
    // Whole numbers stay exact beyond 2^53.
    if let Ok(whole) = digits.parse::<u64>() {
        return whole
            .checked_mul(factor as u64)
            .ok_or_else(|| format!("{text} is too large"));
    }
    let value = digits.parse::<f64>().map_err(|_| expected_number(text))? * factor;
    match value {
        v if v < 0.0 => Err(format!("expected a number from 0 on, got {text}")),
        v if !(0.0..1.8e19).contains(&v) => Err(format!("{text} is out of range")),
        v => Ok(v.round() as u64),
    }
}

/// The digits of `1_000` or `10,000,000` without separators between groups of three. A comma
/// anywhere else may be meant as a decimal point.
fn without_separators(number: &str) -> Option<String> {
    let (whole, _) = number.split_once(['.', 'e', 'E']).unwrap_or((number, ""));
    let mut groups = whole.split(',');
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let is_first = |first: &str| (1..=3).contains(&first.len());
    let commas = number.matches(',').count();
    let in_groups = commas == whole.matches(',').count()
        && groups.next().is_some_and(is_first)
        && groups.all(is_group);
    (commas == 0 || in_groups).then(|| number.replace(['_', ','], ""))
}

fn expected_number(text: &str) -> String {
    format!("expected a number, got '{text}'")
}

/// `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 record`, `1,234 records`: a number with its noun.
pub fn counted(n: u64, noun: &str) -> String {
    let ending = match n {
        1 => "",
        _ if noun.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(n))
}

/// `1.24 MB`; powers of ten.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.*} {}", decimals(value), UNITS[unit]),
    }
}

const fn decimals(value: f64) -> usize {
    match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    }
}

/// An expected number of rare events: `0`, `0.3`, `12`, `below 0.001`.
pub fn expectation(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 0.001 => "below 0.001".into(),
        v if v < 10.0 => {
            let places = if v < 0.1 { 3 } else { 1 };
            format!("{v:.places$}")
        }
        v => count(v.round() as u64),
    }
}

/// A rate with up to three digits: `0.01`, `0.00998`, `9.98e-7`, `0`.
pub fn rate(rate: f64) -> String {
    if rate == 0.0 {
        return "0".into();
    }
    let scientific = format!("{rate:.2e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    match exponent.parse::<i32>() {
        Ok(exponent @ -3..) => {
            let places = (digits.len().saturating_sub(2) as i32 - exponent).max(0) as usize;
            format!("{rate:.places$}")
        }
        _ => format!("{digits}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_power_over_a_terminal() {
        for (text, shown) in [
            (
                "plain: a\tb\nc \u{e9}\u{1f600}",
                "plain: a\tb\nc \u{e9}\u{1f600}",
            ),
            ("\x1b[31mred\x07", "\\u001b[31mred\\u0007"),
            ("a\rb\x7f\0", "a\\rb\\u007f\\u0000"),
            ("\u{9b}2J", "\\u009b2J"),
            ("\u{202e}txt.exe\u{2069}", "\\u202etxt.exe\\u2069"),
            ("a\u{2028}b\u{200f}", "a\\u2028b\\u200f"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        for (n, noun, text) in [
            (0, "record", "0 records"),
            (1, "record", "1 record"),
            (2, "record", "2 records"),
            (1, "hash", "1 hash"),
            (1_000, "hash", "1,000 hashes"),
        ] {
            assert_eq!(counted(n, noun), text);
        }
    }

    /// Counts as people write them.
    const COUNTS: [(&str, u64); 10] = [
        ("1000", 1000),
        ("1_000", 1000),
        ("10,000,000", 10_000_000),
        ("1,500.5k", 1_500_500),
        ("1e6", 1_000_000),
        ("1E+6", 1_000_000),
        ("10M", 10_000_000),
        ("1.5k", 1500),
        ("2 G", 2_000_000_000),
        ("18446744073709551615", u64::MAX),
    ];

    /// Texts that are no counts.
    const NO_COUNTS: [&str; 14] = [
        "",
        "x",
        "10X",
        "-1",
        "1e30",
        "nan",
        "inf",
        "20000000T",
        "1.2.3",
        "1,5",
        "1000,000",
        ",000",
        "1.000,5",
        "1,,000",
    ];

    /// Durations as people write them.
    const DURATIONS: [(&str, f64); 11] = [
        ("500ms", 0.5),
        ("5", 5.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("12 h", 43_200.0),
        ("7d", 604_800.0),
        ("2w", 1_209_600.0),
        ("1d12h", 129_600.0),
        ("1h 30m", 5_400.0),
        ("1m500ms", 60.5),
        ("1e2s", 100.0),
    ];

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in COUNTS {
            assert_eq!(parse_count(text), Ok(value), "{text}");
        }
        for text in NO_COUNTS {
            assert!(parse_count(text).is_err(), "{text}");
        }
        for (text, value) in [
            ("2GiB", 2 << 30),
            ("500MB", 500_000_000),
            ("64", 64),
            ("1.5KiB", 1536),
        ] {
            assert_eq!(parse_size(text), Ok(value), "{text}");
        }
        for (text, value) in [
            ("0.01", 0.01),
            ("1%", 0.01),
            ("1/1000", 0.001),
            ("1e-6", 1e-6),
        ] {
            assert_eq!(parse_rate(text), Ok(value), "{text}");
        }
        for text in ["0", "1", "-0.1", "nan", "1/0", "100%", "x"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        for (text, seconds) in DURATIONS {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for text in [
            "", "x", "-1s", "0", "0s", "5y", "nan", "1e300d", "1h30", "1h-30m", "h", "1hh", "1d12",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for (text, is) in [("24h", true), ("0s", true), ("1e300d", true), ("24", false)] {
            assert_eq!(is_duration(text), is, "{text}");
        }
        for file in ["3.txt", "x", "", "24h.csv", "logs", "5y", "d", "-"] {
            assert!(!is_duration(file), "{file}");
        }
        for text in [
            "1d", "1d12h", "1h30m", "500ms", "15m", "14d", "36500d", "1s1ms",
        ] {
            assert_eq!(span(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn numbers_are_shown_as_people_read_them() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_240_000), "1.24 MB");
        assert_eq!(size(u64::MAX), "18.4 EB");
        assert_eq!(rate(0.00998), "0.00998");
        assert_eq!(rate(0.5), "0.5");
        assert_eq!(rate(0.009996), "0.01");
        assert_eq!(rate(1.0), "1");
        assert_eq!(rate(1e-6), "1e-6");
        assert_eq!(rate(9.98e-7), "9.98e-7");
        assert_eq!(rate(0.0), "0");
        assert_eq!(duration(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(duration(Duration::from_secs(3 * 86_400 + 7200)), "3 d 2 h");
    }
}
