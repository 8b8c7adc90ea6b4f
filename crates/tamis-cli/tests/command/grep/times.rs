//! `--since` and `--until`: lines by their times, in any format.

use super::corpus::{OCTOBER, Random};
use super::peer::{TREE, tamis};
use crate::common::Sandbox;
use std::fs;

const HOUR: u64 = 3_600_000;

/// A time in October 2026, in milliseconds since its start.
struct Time(u64);

impl Time {
    fn fields(&self) -> (u64, u64, u64, u64, u64) {
        let ms = self.0;
        (
            ms / (24 * HOUR) + 1,
            ms / HOUR % 24,
            ms / 60_000 % 60,
            ms / 1000 % 60,
            ms % 1000,
        )
    }

    fn iso(&self) -> String {
        let (day, hour, minute, second, ms) = self.fields();
        format!("2026-10-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }

    /// In the format of this style of log.
    fn written(&self, style: &str, message: &str) -> String {
        let (day, hour, minute, second, ms) = self.fields();
        match style {
            "iso" => format!("{} INFO {message}", self.iso()),
            "space" => {
                format!("2026-10-{day:02} {hour:02}:{minute:02}:{second:02},{ms:03} INFO {message}")
            }
            "offset" => {
                // Two hours ahead of UTC.
                let Self(ms) = self;
                let (day, hour, minute, second, ms) = Self(ms + 2 * HOUR).fields();
                format!(
                    "2026-10-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}+02:00 {message}"
                )
            }
            "apache" => format!(
                "10.0.0.1 - - [{day:02}/Oct/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET /{message} HTTP/1.1\" 200 12"
            ),
            "json" => format!("{{\"time\":\"{}\",\"message\":\"{message}\"}}", self.iso()),
            "seconds" => format!("{} {message}", (OCTOBER + self.0) / 1000),
            "milliseconds" => format!("{} {message}", OCTOBER + self.0),
            other => panic!("{other}"),
        }
    }
}

const STYLES: [&str; 7] = [
    "iso",
    "space",
    "offset",
    "apache",
    "json",
    "seconds",
    "milliseconds",
];

#[test]
fn lines_of_a_period_are_found() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    let mut random = Random(7);
    // The lines with their times; a line without a time belongs to the one before it.
    let mut lines: Vec<(u64, String)> = Vec::new();
    for style in STYLES {
        for file in 0..4 {
            let mut text = String::new();
            let mut time = Time(24 * HOUR + file * 60 * HOUR);
            let name = format!("tree/{style}-{file}.log");
            for number in 0..200 {
                time.0 += random.below(HOUR / 2) + 1000;
                let line = time.written(style, &format!("event {style} {number}"));
                lines.push((time.0, format!("{name}:{line}")));
                text += &line;
                text += "\n";
                if random.below(5) == 0 {
                    lines.push((time.0, format!("{name}:\tat an event's stack")));
                    text += "\tat an event's stack\n";
                }
            }
            dir.write(&name, text);
        }
    }
    dir.ok(&format!("index -q ix {TREE}"));
    for round in 0..25 {
        let mut moments = [random.below(31 * 24 * HOUR), random.below(31 * 24 * HOUR)];
        moments.sort_unstable();
        let [since, until] = moments;
        // Avoids moments near a written line: times in styles without milliseconds are inexact.
        let near = |moment: u64| lines.iter().any(|(time, _)| time.abs_diff(moment) < 1000);
        if near(since) || near(until) {
            continue;
        }
        let (from, to) = (Time(since).iso(), Time(until).iso());
        let mut args = vec!["grep"];
        if round % 3 != 0 {
            args.extend(["--since", &from]);
        }
        if round % 3 != 1 {
            args.extend(["--until", &to]);
        }
        args.extend(["event", "ix"]);
        let found = tamis(&dir, &args);
        assert!(found.code < 2, "{args:?}: {}", found.err);
        let mut found: Vec<&str> = found.text().lines().collect();
        found.sort_unstable();
        let within =
            |time: u64| (round % 3 == 0 || time >= since) && (round % 3 == 1 || time < until);
        let mut expected: Vec<&str> = (lines.iter())
            .filter(|(time, _)| within(*time))
            .map(|(_, line)| line.as_str())
            .collect();
        expected.sort_unstable();
        assert_eq!(found.len(), expected.len(), "{args:?}");
        assert_eq!(found, expected, "{args:?}");
    }
}

/// Syslog has no year: it is the latest one in which the time is in the past.
#[test]
fn times_without_a_year_and_times_in_words() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path(TREE)).unwrap();
    dir.write(
        "tree/syslog",
        "Jan  1 00:00:01 host sshd[1]: event\nJan  1 00:00:02 host sshd[1]: another event\n",
    );
    dir.write(
        "tree/own",
        "[01~02~2020 10h] event\n[03~02~2020 10h] event\n",
    );
    dir.ok(&format!("index -q ix {TREE}"));
    let count = |args: &[&str]| tamis(&dir, args).text().lines().count();
    assert_eq!(count(&["grep", "--since", "1000d", "sshd", "ix"]), 2);
    assert_eq!(count(&["grep", "--until", "400d", "sshd", "ix"]), 0);
    assert_eq!(
        count(&[
            "grep",
            "--time-format",
            "[%d~%m~%Y %Hh]",
            "--since",
            "2020-02-02",
            "10h",
            "ix"
        ]),
        1
    );
}
