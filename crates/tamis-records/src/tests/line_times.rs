//! Times of lines: examples, and the shortcuts compared with a reader without
//! them.

use super::common::Random;
use crate::line_time::{LineTimes, TimeFormat, parse};
use tamis::Moment;

fn now() -> Moment {
    "2026-11-17T12:00:00Z".parse().unwrap()
}

/// As text, for comparison.
fn of(line: &str) -> Option<String> {
    let time = LineTimes::new(None, now()).of_line(line.as_bytes());
    time.map(|time| time.to_string())
}

const SECOND: &str = "2026-11-15T05:03:40Z";
const FINE: &str = "2026-11-15T05:03:40.123Z";

/// Lines as programs write them, and their times.
const WRITTEN: [(&str, &str); 59] = [
    ("2026-11-15T05:03:40Z up", SECOND),
    ("2026-11-15T05:03:40 up", SECOND),
    ("2026-11-15 05:03:40", SECOND),
    ("2026-11-15 05:03:40 -", SECOND),
    ("2026-11-15 05:03:40.123 INFO up", FINE),
    ("2026-11-15 05:03:40,123 INFO up", FINE),
    ("2026-11-15 05:03:40, 123 things", SECOND),
    ("2026-11-15 05:03:40.", SECOND),
    (
        "2026-11-15T05:03:40.123456789Z up",
        "2026-11-15T05:03:40.123456Z",
    ),
    ("2026-11-15T06:03:40.123+01:00 up", FINE),
    ("2026-11-15T06:03:40.123+0100 up", FINE),
    ("2026-11-15T06:03:40.123+01 up", FINE),
    ("2026-11-15 06:03:40 +0100 up", SECOND),
    ("2026-11-15 00:03:40 -05:00 up", SECOND),
    ("2026-11-15 05:03:40 -05 up", SECOND), // a number, not a zone
    ("2026-11-15 05:03:40-99:00 up", SECOND),
    ("2026-11-15 05:03:40 UTC [7] LOG:  up", SECOND),
    ("2026-11-15 05:03 up", "2026-11-15T05:03:00Z"),
    ("2026-11-15 05:03: up", "2026-11-15T05:03:00Z"),
    ("[2026-11-15 05:03:40] up", SECOND),
    ("\u{1B}[32m2026-11-15 05:03:40\u{1B}[0m up", SECOND),
    ("level=info time=2026-11-15T05:03:40Z", SECOND),
    ("time=\"2026-11-15T05:03:40Z\" level=info", SECOND),
    ("<34>1 2026-11-15T05:03:40.123Z host su - ID47 - up", FINE),
    ("<34>Nov 15 05:03:40 host su: up", SECOND),
    ("Nov 15 05:03:40 host su: up", SECOND),
    ("nov 15 05:03:40 host su: up", SECOND),
    ("Nov  5 05:03:40 host su: up", "2026-11-05T05:03:40Z"),
    ("Nov 05 05:03:40 host su: up", "2026-11-05T05:03:40Z"),
    (
        "Nov 18 05:03:40 host su: a clock is fast",
        "2026-11-18T05:03:40Z",
    ),
    ("Nov 19 05:03:40 host su: last year", "2025-11-19T05:03:40Z"),
    (
        "Feb 29 05:03:40 host su: a leap day",
        "2024-02-29T05:03:40Z",
    ),
    ("Nov 15 2026 05:03:40: %ASA-6-302013: up", SECOND),
    ("7:M 15 Nov 2026 05:03:40.123 * up", FINE),
    ("7  5 Nov 2026 05:03:40 up", "2026-11-05T05:03:40Z"),
    (
        "10.0.0.1 - - [15/Nov/2026:05:03:40 +0000] \"GET /\" 200",
        SECOND,
    ),
    ("::1 - - [15/Nov/2026:06:03:40 +0100] \"GET /\" 200", SECOND),
    ("2026/11/15 05:03:40 [error] 7#7: *1 open()", SECOND),
    ("[Sun Nov 15 05:03:40.123 2026] [core:error] up", FINE),
    (
        "[Sat Nov 15 05:03:40 2025] [core:error] up",
        "2025-11-15T05:03:40Z",
    ),
    ("Sat Nov 15 05:03:40 CET 2025 up", "2025-11-15T05:03:40Z"),
    ("Nov 15 05:03:40 2025 is a host", SECOND),
    ("1794719020 up", SECOND),
    ("1794719020", SECOND),
    ("1794719020.123    45 10.0.0.1 TCP_MISS/200", FINE),
    ("1794719020123 up", FINE),
    ("1794719020123456,up", "2026-11-15T05:03:40.123456Z"),
    ("1794719020123456789\tup", "2026-11-15T05:03:40.123456Z"),
    (
        "{\"level\":\"info\",\"ts\":1794719020.123,\"msg\":\"up\"}",
        FINE,
    ),
    ("{\"ts\": 1794719020123}", FINE),
    ("{\"ts\":\"1794719020\"}", SECOND),
    (
        "{\"msg\":\"of 2020-01-01 00:00:00\",\"time\":\"2026-11-15T05:03:40Z\"}",
        SECOND,
    ),
    (
        "{\"time\":\"noon\",\"@timestamp\":\"2026-11-15T05:03:40Z\"}",
        SECOND,
    ),
    (
        "{\"@timestamp\" : \"2026-11-15T05:03:40Z\",\"ts\":5}",
        SECOND,
    ),
    ("{\"at\":\"2026-11-15T05:03:40Z\"}", SECOND),
    ("{\"timestamp\":\"15/Nov/2026:05:03:40 +0000\"}", SECOND),
    ("2016-12-31T23:59:60Z leap", "2017-01-01T00:00:00Z"),
    (
        "a 2020-01-01 00:00:00 b 2026-11-15 05:03:40",
        "2020-01-01T00:00:00Z",
    ),
    ("a 2020-13-01 00:00:00 b 2026-11-15 05:03:40", SECOND),
];

#[test]
fn times_are_read_as_programs_write_them() {
    for (line, time) in WRITTEN {
        assert_eq!(of(line).as_deref(), Some(time), "{line}");
    }
}

#[test]
fn what_is_no_time_is_none() {
    let far = format!("{}2026-11-15 05:03:40", " ".repeat(256));
    for line in [
        "",
        ":",
        "::",
        "1:",
        "05:03:40",
        "    at main.rs:40:12",
        "fe80::1:22:33:44",
        "2026-11-15",
        "2026-11-15T",
        "2026-11-15 24:03:40",
        "2026-11-15 05:60:40",
        "2026-11-15 05:03:61"[..13].trim_end(),
        "2026-02-29 05:03:40",
        "12026-11-15 05:03:40",
        "2026-1-5 05:03:40",
        "2026-11/15 05:03:40",
        "Nov 31 05:03:40",
        "Now 15 05:03:40",
        "Nov 15 05:03",
        "15/Nov/2026:05:03",
        "15/Now/2026:05:03:40",
        "0000000000 up",
        "9999999999 an order",
        "17947190201 up",
        "1794719020abc",
        "1794719020-1234",
        "1794719020.",
        "1794719020.1.2",
        "id 1794719020",
        "{\"t\":1794719020}",
        "{\"ts\":5}",
        "{\"ts\":",
        "{\"ts\"",
        "{\"ts\":\"",
        "{\"\\\"time\\\":1794719020}",
        &far,
    ] {
        assert_eq!(of(line), None, "{line}");
    }
}

#[test]
fn given_formats_are_read_and_no_others() {
    for (format, line, time) in [
        (
            "%Y-%m-%d %H:%M:%S",
            "at 2026-11-15 05:03:40",
            "2026-11-15T05:03:40Z",
        ),
        (
            "%F %T.%f%z",
            "2026-11-15 05:03:40.5+01:00",
            "2026-11-15T04:03:40.500Z",
        ),
        ("%d.%m.%y %R", "x 15.11.26 05:03 y", "2026-11-15T05:03:00Z"),
        (
            "%D %I:%M:%S %p",
            "11/15/26 05:03:40 PM",
            "2026-11-15T17:03:40Z",
        ),
        (
            "%D %I:%M:%S %p",
            "11/15/26 12:03:40 AM",
            "2026-11-15T00:03:40Z",
        ),
        ("%b %e %T", "Nov  5 05:03:40", "2026-11-05T05:03:40Z"),
        ("%b %e %T", "Nov 15 05:03:40", "2026-11-15T05:03:40Z"),
        (
            "%a %B %e %Y",
            "Sun, Sun november 5 2026",
            "2026-11-05T00:00:00Z",
        ),
        ("%Y%j", "in 2026319", "2026-11-15T00:00:00Z"),
        ("t=%s.%f", "t=x t=1794719020.25", "2026-11-15T05:03:40.250Z"),
        (
            "[%d/%b/%Y:%T %z]",
            "- [15/Nov/2026:05:03:40 +0000]",
            "2026-11-15T05:03:40Z",
        ),
        ("%Y%m%dT%H%M%SZ", "20261115T050340Z", "2026-11-15T05:03:40Z"),
        ("%m%d %T", "I1115 05:03:40.123 klog", "2026-11-15T05:03:40Z"),
        ("100%% %F", "100% 2026-11-15", "2026-11-15T00:00:00Z"),
    ] {
        let format: TimeFormat = format.parse().unwrap();
        let got = LineTimes::new(Some(&format), now()).of_line(line.as_bytes());
        assert_eq!(
            got.map(|time| time.to_string()).as_deref(),
            Some(time),
            "{line}"
        );
    }
    let format: TimeFormat = "%d.%m.%Y".parse().unwrap();
    for line in [
        "2026-11-15 05:03:40",
        "32.11.2026",
        "15.13.2026",
        "15.11.202",
        ".",
        "",
        "15.",
    ] {
        let got = LineTimes::new(Some(&format), now()).of_line(line.as_bytes());
        assert_eq!(got, None, "{line}");
    }
    for wrong in [
        "", "%", "%Q", "%H:%M:%S", "%Y", "%j", "%F %I", "%F %p", "%F %é",
    ] {
        assert!(wrong.parse::<TimeFormat>().is_err(), "{wrong}");
    }
}

#[test]
fn moments_are_given_as_people_write_them() {
    for (text, time) in [
        ("now", "2026-11-17T12:00:00Z"),
        ("2h", "2026-11-17T10:00:00Z"),
        ("30m", "2026-11-17T11:30:00Z"),
        ("3d", "2026-11-14T12:00:00Z"),
        ("1d12h", "2026-11-16T00:00:00Z"),
        ("2026-11-15", "2026-11-15T00:00:00Z"),
        ("2026/11/15", "2026-11-15T00:00:00Z"),
        ("15/Nov/2026", "2026-11-15T00:00:00Z"),
        ("Nov 15", "2026-11-15T00:00:00Z"),
        ("2026-11-15 05:03", "2026-11-15T05:03:00Z"),
        ("2026-11-15T05:03:40.5+01:00", "2026-11-15T04:03:40.500Z"),
        ("20261115T050340Z", "2026-11-15T05:03:40Z"),
        ("Nov 15 05:03:40", "2026-11-15T05:03:40Z"),
        ("[15/Nov/2026:05:03:40 +0000]", "2026-11-15T05:03:40Z"),
        ("Sun Nov 15 05:03:40 2026", "2026-11-15T05:03:40Z"),
        ("1794719020", "2026-11-15T05:03:40Z"),
        ("1794719020123", "2026-11-15T05:03:40.123Z"),
        (" 2026-11-15 ", "2026-11-15T00:00:00Z"),
    ] {
        let got = parse(text, now()).map(|time| time.to_string());
        assert_eq!(got.as_deref(), Ok(time), "{text}");
    }
    for wrong in [
        "",
        "2026",
        "20261115",
        "-5",
        "5",
        "tomorrow",
        "2026-13-01",
        "x 2026-11-15 05:03:40",
        "2026-11-15 05:03:40 x",
        "2x",
        "h",
        "1e9",
        "5e-3",
        "-1T",
    ] {
        let error = parse(wrong, now()).unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}

/// Any sort of line, often almost one with a time.
fn line(random: &mut Random, time: &mut i64) -> Vec<u8> {
    match random.below(8) {
        0 => *time += random.below(100_000_000_000_000) as i64 - 50_000_000_000_000,
        1..=3 => *time += random.below(3_000_000) as i64 - 500_000,
        _ => {}
    }
    *time = (*time).clamp(1_000_000_000_000_000, 2_000_000_000_000_000);
    let moment = Moment::from_micros(*time).to_string();
    let (date, clock) = (&moment[..10], &moment[11..19]);
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months[date[5..7].parse::<usize>().unwrap() - 1];
    let (year, day) = (&date[..4], &date[8..]);
    let padded = format!("{:>2}", day.trim_start_matches('0'));
    let zone = ["", "Z", "+01:00", "-0530", " +0200", "+02", " UTC", "-x"][random.below(8)];
    let fraction = ["", ".5", ",123", ".123456", ".123456789", "."][random.below(6)];
    let written = match random.below(12) {
        0 => format!("{date}T{clock}{fraction}{zone}"),
        1 => format!("{date} {clock}{fraction}{zone}"),
        2 => format!("{}{fraction}", date.replace('-', "/") + " " + clock),
        3 => format!("{day}/{month}/{year}:{clock}{zone}"),
        4 => format!("{padded} {month} {year} {clock}{fraction}"),
        5 => format!("{month} {padded} {clock}{fraction}"),
        6 => format!("{month} {day} {year} {clock}"),
        7 => format!("Sun {month} {padded} {clock}{fraction} {year}"),
        8 => format!("{}", *time / [1_000_000, 1_000, 1][random.below(3)]),
        9 => format!("{{\"ts\":{}}}", *time / 1_000),
        10 => format!("{{\"a\":\"b:c\",\"time\":\"{date}T{clock}{zone}\",\"ts\":1}}"),
        _ => format!("{date} {}", &clock[..5]),
    };
    let before = [
        "",
        "",
        "",
        "",
        "[",
        "host: ",
        "10.0.0.1 - - [",
        "::1 ",
        "<34>1 ",
        "7",
        "\t",
        "2026-11-15 05:03:4 ",
    ];
    let after = [
        "",
        "",
        " up",
        "]",
        "7",
        ": GET /a:b",
        " 12:13:14",
        "\r",
        " 2026-01-02 03:04:05",
    ];
    let mut line = format!(
        "{}{written}{}",
        before[random.below(12)],
        after[random.below(9)]
    )
    .into_bytes();
    match random.below(12) {
        0 => line = random.bytes(b"0123456789:/- TNov{\"ts.\xFF", 40),
        1 if !line.is_empty() => {
            let at = random.below(line.len());
            line[at] = b"0a: -\xC3"[random.below(6)];
        }
        2 => line.truncate(random.below(line.len() + 1)),
        3 => line = b"\tat main.rs:40:12".to_vec(),
        _ => {}
    }
    line.retain(|byte| *byte != b'\n');
    line
}

/// A fresh reader remembers nothing, so it has to search for all times.
#[test]
fn the_range_is_that_of_the_lines_whatever_came_before() {
    let mut random = Random(9);
    let formats = [
        None,
        None,
        None,
        Some("%Y-%m-%d %H:%M:%S"),
        Some("%b %e %T"),
        Some("%s"),
        Some("%F"),
    ];
    let mut with_time = 0;
    for _ in 0..400 {
        let format = formats[random.below(formats.len())];
        let format: Option<TimeFormat> = format.map(|format| format.parse().unwrap());
        let mut times = LineTimes::new(format.as_ref(), now());
        let mut ranged = LineTimes::new(format.as_ref(), now());
        let mut time = 1_794_719_020_123_456;
        let mut last = None;
        for _ in 0..4 {
            let lines: Vec<_> = (0..random.below(40))
                .map(|_| line(&mut random, &mut time))
                .collect();
            let mut expected: Option<(Moment, Moment)> = None;
            for line in &lines {
                let fresh = LineTimes::new(format.as_ref(), now()).of_line(line);
                let text = String::from_utf8_lossy(line);
                assert_eq!(times.of_line(line), fresh, "{text}");
                with_time += usize::from(fresh.is_some());
                last = fresh.or(last);
                assert_eq!(times.of_next_line(line), last, "{text}");
                if let Some(time) = last {
                    let (from, to) = expected.unwrap_or((time, time));
                    expected = Some((from.min(time), to.max(time)));
                }
            }
            let mut block = lines.join(&b'\n');
            if random.below(2) == 0 && !lines.is_empty() {
                block.push(b'\n');
            }
            // An empty last line doesn't count.
            if block.is_empty() && lines.len() == 1 {
                continue;
            }
            let mut range = None;
            ranged.range(&block, &mut range);
            assert_eq!(range, expected, "{}", String::from_utf8_lossy(&block));
            assert_eq!(ranged.last(), last);
        }
    }
    assert!(with_time > 10_000, "{with_time}");
}
