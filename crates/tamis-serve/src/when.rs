//! When keys are seen, for windows of time: now, or when the request says (`?at=`).

use crate::log::log;
use crate::problem::Problem;
use crate::replies::Lateness;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tamis::{Moment, Span, Window};
use tamis_report::human;

/// How much later than the clock here the clock of a client may be, besides a generation.
const AHEAD: Duration = Duration::from_secs(60);
/// A clock that is behind by less is not worth a line in the log: clocks are often put right.
const BEHIND: Duration = Duration::from_secs(1);

/// What a request says of its time, which is that of all its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct When(Option<Moment>);

/// The moment that keys are asked or added at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dated {
    pub(crate) at: Moment,
    pub(crate) lateness: Lateness,
}

/// Whether the log says that the system's clock is behind a window.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    is_behind: AtomicBool,
}

impl When {
    /// Reads the query of a request.
    pub(crate) fn of_query(query: &str) -> Result<Self, Problem> {
        let mut when = Self(None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "at" {
                let text = format!("{name}: expected no other parameter than at");
                return Err(Problem::bad_request(text));
            }
            let moment = parse(&value).ok_or_else(|| {
                Problem::bad_request(format!(
                    "at: expected a time like 1763375400, the seconds since 1970, got '{value}'"
                ))
            })?;
            if when.0.replace(moment).is_some() {
                return Err(Problem::bad_request("at: given twice"));
            }
        }
        Ok(when)
    }

    /// Refuses a time where none can be heeded.
    pub(crate) fn expect_none(self) -> Result<(), Problem> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(Problem::bad_request(
                "at: a filter in Redis is asked and added to as of now; send no time",
            )),
        }
    }

    /// The moment of a request to a window, or to a filter without times. `place` is the filter's,
    /// for the log.
    pub(crate) fn date(
        self,
        window: Option<&Window>,
        clock: &Clock,
        place: impl Display,
    ) -> Result<Dated, Problem> {
        let now = Moment::now();
        let (Some(window), Some(band)) = (window, window.and_then(band)) else {
            let lateness = Lateness::InTime;
            return Ok(Dated { at: now, lateness });
        };
        let latest = window.latest().unwrap_or(Moment::MIN);
        let at = match self.0 {
            // Nothing is lost by a clock that was set back.
            None => {
                clock.compare(now, latest, place);
                now.max(latest)
            }
            // It would make the window forget what is still in it.
            Some(at) if at > latest.max(now + band + AHEAD) => {
                return Err(Problem::bad_request(format!(
                    "at: {at} is in the future: it is {now} here, and a window takes times until {} later, \
                     because later ones would make it forget; send the time of the event, or none",
                    human::duration(band + AHEAD)
                )));
            }
            Some(at) => at,
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

/// How long a generation is; none of a window that counts keys.
fn band(window: &Window) -> Option<Duration> {
    match window.options().band() {
        Span::Time(band) => Some(band),
        Span::Keys(_) => None,
    }
}

/// Seconds since 1970.
fn parse(text: &str) -> Option<Moment> {
    let seconds: f64 = text.parse().ok()?;
    seconds
        .is_finite()
        .then(|| Moment::from_micros((seconds * 1e6) as i64))
}
