//! A point in time, as windows count it.

pub mod calendar;

use crate::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// A point in time: microseconds since the beginning of 1970, negative before.
///
/// A [`Window`](crate::Window) has no clock. The caller passes the time, so events can carry their
/// own and tests needn't wait.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tamis::Moment;
/// let start = Moment::from(SystemTime::UNIX_EPOCH);
/// assert_eq!(start + Duration::from_secs(1), Moment::from_micros(1_000_000));
/// assert!(Moment::now() > start);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

/// Ten thousand years in either direction: further than any event, and sums of two don't overflow.
const FURTHEST: i64 = 10_000 * 366 * 86_400 * 1_000_000;

impl Moment {
    /// The furthest moment; later ones become this.
    pub const MAX: Self = Self(FURTHEST);
    /// The earliest moment; earlier ones become this.
    pub const MIN: Self = Self(-FURTHEST);

    /// From microseconds since 1970. Moments ten thousand years away or more become
    /// [`MAX`](Self::MAX) or [`MIN`](Self::MIN).
    ///
    /// ```
    /// use tamis::Moment;
    /// assert_eq!(Moment::from_micros(-5).micros(), -5);
    /// assert_eq!(Moment::from_micros(i64::MAX), Moment::MAX);
    /// ```
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros >= FURTHEST {
            Self::MAX
        } else if micros <= -FURTHEST {
            Self::MIN
        } else {
            Self(micros)
        }
    }

    /// From milliseconds since 1970.
    ///
    /// ```
    /// assert_eq!(tamis::Moment::from_millis(2).micros(), 2_000);
    /// ```
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_micros(millis.saturating_mul(1_000))
    }

    /// From seconds since 1970.
    ///
    /// ```
    /// assert_eq!(tamis::Moment::from_secs(2).micros(), 2_000_000);
    /// ```
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_micros(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since 1970.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The system clock's time.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let micros = |d: Duration| i64::try_from(d.as_micros()).unwrap_or(FURTHEST);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self::from_micros(micros(after)),
            Err(before) => Self::from_micros(-micros(before.duration())),
        }
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(FURTHEST);
        Self::from_micros(self.0.saturating_add(micros))
    }
}

impl std::ops::Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(FURTHEST);
        Self::from_micros(self.0.saturating_sub(micros))
    }
}

impl fmt::Display for Moment {
    /// RFC 3339, in UTC, to the second or as precise as the moment is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, secs) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
        let (year, month, day) = calendar::date(days.into());
        let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        match micros {
            0 => {}
            micros if micros % 1_000 == 0 => write!(f, ".{:03}", micros / 1_000)?,
            micros => write!(f, ".{micros:06}")?,
        }
        f.write_str("Z")
    }
}

impl FromStr for Moment {
    type Err = Error;

    /// Reads the formats of [`calendar::parse`](crate::internals::calendar::parse): ISO 8601 and RFC 3339, and numbers
    /// since 1970.
    ///
    /// ```
    /// use tamis::Moment;
    /// assert_eq!("1970-01-01T00:00:02Z".parse::<Moment>()?, Moment::from_secs(2));
    /// assert!("tomorrow".parse::<Moment>().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, Error> {
        let expected = "a date and time like 2026-11-17T10:30:00Z, or a number since 1970";
        calendar::parse(text.as_bytes())
            .ok_or_else(|| Error::parameter("time", expected, format_args!("'{text}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_as_dates() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00Z"),
            (1_709_251_199_500_000, "2024-02-29T23:59:59.500Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(Moment::from_micros(micros).to_string(), text);
        }
    }
}
