//! The options of windows: what they remember, and where the times of records are.

use crate::human;
use anyhow::{Result, bail};
use std::fmt::Display;
use std::time::Duration;
use tamis::Kind;
use tamis::window::{Renewal, Span, WindowOptions};
use tamis_records::key::{RecordRule, TimeSpec};
use tamis_records::line_time::TimeFormat;
use tamis_report::window::{describe, remembered};

/// What a window remembers.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    span: SpanArgs,

    /// With --within, every sighting renews a key: it is forgotten this long after it was last seen
    #[arg(long, requires = "within", help_heading = "Windows")]
    renew: bool,

    /// Divide the window into this many generations, 1 to 62 [default: 8]
    ///
    /// A generation is forgotten as a whole, so a key is remembered for up to
    /// one generation longer than the window. More generations forget more
    /// exactly, and take more time.
    #[arg(long, value_name = "G", help_heading = "Windows")]
    generations: Option<u32>,
}

#[derive(clap::Args, Clone, Copy, Debug)]
#[group(multiple = false)]
struct SpanArgs {
    /// Forget keys this long after they were first seen, e.g. 90s, 15m, 24h, 7d, 1d12h
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, help_heading = "Windows")]
    within: Option<Duration>,

    /// Forget keys once this many others were new after them, or at most a quarter more, e.g. 10M
    ///
    /// Keys are forgotten a generation at a time: the last 10M are up to 11.25M.
    /// Up to 8, it is exactly N; fewer --generations forget less exactly.
    #[arg(long, value_name = "N", value_parser = human::parse_count, help_heading = "Windows")]
    last: Option<u64>,
}

impl WindowArgs {
    /// The window that the options describe, if any.
    pub(crate) fn options(&self) -> Result<Option<WindowOptions>> {
        let renewal = if self.renew {
            Renewal::Quiet
        } else {
            Renewal::Within
        };
        let (span, renewal) = match self.span {
            SpanArgs {
                within: Some(time), ..
            } => (Span::Time(time), renewal),
            SpanArgs {
                last: Some(keys), ..
            } => (Span::Keys(keys), Renewal::Within),
            _ if self.generations.is_some() => {
                bail!("--generations is for a window: --within TIME or --last N")
            }
            _ => return Ok(None),
        };
        let options = WindowOptions::new(span).renewal(renewal);
        Ok(Some(match self.generations {
            Some(generations) => options.generations(generations),
            None => options,
        }))
    }

    /// The number of keys to make room for: those it remembers, if that was asked for, else what the user says.
    pub(crate) fn keys(
        options: &WindowOptions,
        said: Option<u64>,
        guess: impl FnOnce() -> Option<u64>,
    ) -> Result<u64> {
        match (options.span(), said) {
            (Span::Keys(keys), None) => Ok(keys),
            (Span::Keys(_), Some(_)) => {
                bail!("--last says how many keys there are: omit --capacity")
            }
            (Span::Time(_), Some(keys)) => Ok(keys),
            (Span::Time(time), None) => match guess() {
                Some(keys) => Ok(keys.max(1)),
                None => bail!(
                    "say how many new keys to expect in {}: --capacity N, e.g. --capacity 10M; a guess will do",
                    human::span(time)
                ),
            },
        }
    }

    /// Refuses a window that differs from the options.
    pub(crate) fn check(&self, name: impl Display, is: &WindowOptions) -> Result<()> {
        let Some(asked) = self.options()? else {
            return Ok(());
        };
        let asked = match self.generations {
            Some(_) => asked,
            None => asked.generations(is.generation_count()),
        };
        let alike = |a: &WindowOptions, b: &WindowOptions| {
            (a.band(), a.generation_count(), a.renewed())
                == (b.band(), b.generation_count(), b.renewed())
        };
        if !alike(&asked, is) {
            bail!(
                "{name} remembers {}, but you asked for {}\n\
                 hint: omit what differs, or use another filter",
                describe(is),
                describe(&asked)
            );
        }
        Ok(())
    }
}

/// Refuses window options for a filter that isn't a window.
pub(crate) fn refuse_without(
    name: impl Display,
    kind: Kind,
    window: &WindowArgs,
    time: &TimeArgs,
) -> Result<()> {
    if let Some(asked) = window.options()? {
        bail!(
            "{name} is a {kind} filter and forgets nothing, but you asked for {}\n\
             hint: use another filter, or omit it",
            remembered(&asked)
        );
    }
    time.refuse(name, kind)
}

/// When records happened.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TimeArgs {
    /// The time of a record, as -k has it: csv:COLUMN, tsv:COLUMN, jsonl:/POINTER, line or now [default: now]
    ///
    /// ISO 8601 or RFC 3339 (2026-11-17T10:30:00.25+01:00; without a zone it is
    /// UTC); as mail, syslog, Apache and nginx write it; or a number since 1970,
    /// whose size tells its unit: below 1e11 seconds, below 1e14 milliseconds,
    /// below 1e17 microseconds, else nanoseconds. A number that looks more like
    /// a date, such as 20261117, is an error: see --time-format.
    ///
    /// With `line`, it is the first time in the record, found as `tamis grep
    /// --since` finds it.
    ///
    /// Records may come out of order: one is compared with those up to a window
    /// before it, and later ones. A record older than the window of the latest
    /// one counts as new and is not remembered. One without a time that can be
    /// read, or with one in the future, gets the latest time so far. Each is
    /// counted in the summary or in a warning.
    #[arg(long, value_name = "SPEC", help_heading = "Windows")]
    time: Option<TimeSpec>,

    /// How times of records are written, e.g. %Y%m%d or '%d.%m.%Y %H:%M:%S' [default: found]
    ///
    /// As in strftime: %Y %y %m %b %B %d %e %j %H %I %p %M %S %f (a fraction) %z
    /// %Z %a %s (seconds since 1970) %F %T %D %R %%. A value of a column or of
    /// JSON is written so as a whole; of a line, the first such time counts.
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "time",
        help_heading = "Windows"
    )]
    time_format: Option<TimeFormat>,
}

impl TimeArgs {
    /// The rule, with the time that was asked for.
    pub(crate) fn rule(&self, rule: RecordRule) -> Result<RecordRule> {
        let time = self.time.clone().unwrap_or(TimeSpec::Now);
        if time == TimeSpec::Now && self.time_format.is_some() {
            bail!("--time-format is for times of records, but --time now takes the clock's");
        }
        rule.with_time(time, self.time_format.clone())
            .map_err(anyhow::Error::msg)
    }

    /// Refuses a time that would have no effect.
    pub(crate) fn check(&self, options: &WindowOptions) -> Result<()> {
        match (options.span(), &self.time) {
            (Span::Keys(_), Some(spec)) if *spec != TimeSpec::Now => {
                bail!("--time: a window of the last keys counts keys and heeds no time")
            }
            _ => Ok(()),
        }
    }

    /// Refuses a time for a filter that isn't a window.
    pub(crate) fn refuse(&self, name: impl Display, kind: impl Display) -> Result<()> {
        match self.time {
            Some(_) => bail!("{name} is no window, but a {kind} filter: --time is for windows"),
            None => Ok(()),
        }
    }

    pub(crate) const fn is_given(&self) -> bool {
        self.time.is_some()
    }
}
