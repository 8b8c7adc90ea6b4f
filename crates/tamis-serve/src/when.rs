//! When keys are seen, for windows of time: now, or at the request's time (`?at=`).

use crate::log::log;
use crate::problem::Problem;
use crate::replies::Lateness;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tamis::internals::raw::Shape;
use tamis::{
    Kind, Moment, Window,
    internals::calendar,
    window::{Span, WindowOptions},
};
use tamis_redis::RedisFilter;
use tamis_report::human;

/// How far a client's clock may be ahead of ours, beyond one generation.
const AHEAD: Duration = Duration::from_secs(60);
/// Smaller delays of the clock aren't logged: clocks are often adjusted.
const BEHIND: Duration = Duration::from_secs(1);

/// The time of a request, which applies to all its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct When(Option<Moment>);

/// The time for querying or adding keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dated {
    pub(crate) at: Moment,
    pub(crate) lateness: Lateness,
}

/// Whether we logged that the system's clock is behind a window.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    is_behind: AtomicBool,
}

impl When {
    /// Parses the query of a request.
    pub(crate) fn of_query(query: &str) -> Result<Self, Problem> {
        let mut when = Self(None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "at" {
                let text = format!("{name}: expected no other parameter than at");
                return Err(Problem::bad_request(text));
            }
            let moment = calendar::parse(value.as_bytes()).ok_or_else(|| {
                Problem::bad_request(format!(
                    "at: expected a time like 2025-11-17T10:30:00Z or 1763375400, got '{value}'"
                ))
            })?;
            if when.0.replace(moment).is_some() {
                return Err(Problem::bad_request("at: given twice"));
            }
        }
        Ok(when)
    }

    /// The time for a filter in Redis, if one was given. Only its servers know how late it is.
    pub(crate) fn in_redis(self, filter: &RedisFilter) -> Result<Option<Moment>, Problem> {
        let Some(at) = self.0 else {
            return Ok(None);
        };
        match filter.shape() {
            Some(Shape::Window(shape)) => {
                if let Some(band) = band(&shape.options()) {
                    refuse_future(at, Moment::now(), band, Moment::MIN)?;
                }
            }
            None if filter.kind() == Kind::Window => {
                return Err(Problem::bad_request(
                    "at: a window in a module has the time of its server; send none",
                ));
            }
            _ => {}
        }
        Ok(Some(at))
    }

    /// The time of a request to a window, or to a filter without times. `place` is the filter's, for the log.
    pub(crate) fn date(
        self,
        window: Option<&Window>,
        clock: &Clock,
        place: impl Display,
    ) -> Result<Dated, Problem> {
        let now = Moment::now();
        let (Some(window), Some(band)) =
            (window, window.and_then(|window| band(&window.options())))
        else {
            let lateness = Lateness::InTime;
            return Ok(Dated { at: now, lateness });
        };
        let latest = window.latest().unwrap_or(Moment::MIN);
        let at = match self.0 {
            // A clock that was set back must not lose keys.
            None => {
                clock.compare(now, latest, place);
                now.max(latest)
            }
            Some(at) => {
                refuse_future(at, now, band, latest)?;
                at
            }
        };
        let lateness = if !window.remembers(at) {
            Lateness::TooOld
        } else if window.is_late(at) {
            Lateness::Late
        } else {
            Lateness::InTime
        };
        Ok(Dated { at, lateness })
    }
}

impl Clock {
    /// Logs once that the clock is behind, until it no longer is.
    fn compare(&self, now: Moment, latest: Moment, place: impl Display) {
        let is_behind = now + BEHIND < latest;
        let was_behind = self.is_behind.swap(is_behind, Relaxed);
        if is_behind && !was_behind {
            log(format_args!(
                "{place}: the clock says {now}, but the window has keys of {latest}: until it gets there, keys are taken \
                 as of then"
            ));
        }
    }
}

/// Refuses a time that would make a window forget its current keys, unless the window is already there.
fn refuse_future(at: Moment, now: Moment, band: Duration, latest: Moment) -> Result<(), Problem> {
    if at <= latest.max(now + band + AHEAD) {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "at: {at} is in the future: it is {now} here, and a window takes times until {} later, \
         because later ones would make it forget; send the time of the event, or none",
        human::duration(band + AHEAD)
    )))
}

/// The length of a generation; `None` for a window that counts keys.
fn band(options: &WindowOptions) -> Option<Duration> {
    match options.band() {
        Span::Time(band) => Some(band),
        Span::Keys(_) => None,
    }
}
