//! Columns of times as moments: timestamps, dates, and seconds since 1970.

use crate::column::{KeyColumn, Values};
use crate::fixed::{Encoding, Fixed};
use crate::text::Temporal;
use tamis::Moment;

/// Why a row has no time.
#[derive(Debug, PartialEq, Eq)]
pub enum NoMoment {
    /// The column has no times.
    Type,
    /// The row has none.
    Missing(usize),
    /// The row's number of microseconds is outside the calendar.
    Range(usize, i128),
}

/// The years 1 to 9999, as in Python's calendar. Milliseconds mistaken for seconds are outside.
const RANGE: std::ops::RangeInclusive<i128> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// The moment this many microseconds after 1970, if it is in the calendar.
pub fn moment(micros: i128) -> Option<Moment> {
    let within = RANGE.contains(&micros);
    within.then(|| Moment::from_micros(micros as i64))
}

/// Seconds since 1970 as microseconds; `None` for NaN.
pub fn of_seconds(seconds: f64) -> Option<i128> {
    (!seconds.is_nan()).then(|| (seconds * 1e6).round() as i128)
}

impl KeyColumn<'_> {
    /// Appends the moment of each row; row numbers in errors count from those already there.
    pub fn moments(&self, moments: &mut Vec<Moment>) -> Result<(), NoMoment> {
        moments.reserve(self.len);
        for row in 0..self.len {
            let number = moments.len();
            let micros = match &self.values {
                Values::Nulls => None,
                _ if !self.is_valid(row) => None,
                Values::Fixed(fixed) => fixed.micros(row)?,
                _ => return Err(NoMoment::Type),
            };
            let micros = micros.ok_or(NoMoment::Missing(number))?;
            moments.push(moment(micros).ok_or(NoMoment::Range(number, micros))?);
        }
        Ok(())
    }
}

impl Fixed<'_> {
    /// Microseconds since 1970 for any type of time; plain numbers are seconds.
    fn micros(&self, row: usize) -> Result<Option<i128>, NoMoment> {
        let (ticks, digits) = match self.encoding() {
            Encoding::Float => return Ok(of_seconds(self.float(row))),
            Encoding::Integer { signed: false } => {
                return Ok(Some(i128::from(self.integer(row)) * 1_000_000));
            }
            Encoding::Integer { signed: true } => (1, 0),
            Encoding::Temporal(Temporal::Timestamp { ticks, .. }) => (ticks.seconds, ticks.digits),
            Encoding::Temporal(Temporal::Days(days)) => (days.saturating_mul(86_400), 0),
            Encoding::Temporal(Temporal::DayOfMilliseconds) => (1, 3),
            _ => return Err(NoMoment::Type),
        };
        let count = self.integer(row) as i64;
        // The smallest number means none, as in columns of keys.
        if count == i64::MIN {
            return Ok(None);
        }
        let all = i128::from(count).saturating_mul(i128::from(ticks) * 1_000_000);
        Ok(Some(all.div_euclid(10i128.pow(digits))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Bits;
    use crate::text::Ticks;

    /// In native byte order, like Arrow.
    fn native(number: i64) -> [u8; 8] {
        if cfg!(target_endian = "big") {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    fn column(numbers: &[u8], encoding: Encoding) -> KeyColumn<'_> {
        KeyColumn {
            len: numbers.len() / 8,
            values: Values::Fixed(Fixed::of_slice(numbers, 8, encoding)),
            valid: None,
        }
    }

    fn moments(number: i64, encoding: Encoding) -> Result<Vec<Moment>, NoMoment> {
        let (bytes, mut moments) = (native(number), Vec::new());
        column(&bytes, encoding)
            .moments(&mut moments)
            .map(|()| moments)
    }

    fn stamp(digits: u32) -> Encoding {
        let ticks = Ticks::decimal(digits);
        Encoding::Temporal(Temporal::Timestamp { ticks, utc: true })
    }

    #[test]
    fn units_are_those_of_the_column() {
        let micros = |number, encoding| moments(number, encoding).unwrap()[0].micros();
        assert_eq!(micros(7, Encoding::Integer { signed: true }), 7_000_000);
        assert_eq!(micros(7, Encoding::Integer { signed: false }), 7_000_000);
        assert_eq!(micros(1.5f64.to_bits() as i64, Encoding::Float), 1_500_000);
        assert_eq!(
            micros(2, Encoding::Temporal(Temporal::Days(1))),
            172_800_000_000
        );
        assert_eq!(
            micros(5, Encoding::Temporal(Temporal::DayOfMilliseconds)),
            5_000
        );
        assert_eq!(micros(-1, stamp(0)), -1_000_000);
        assert_eq!(micros(-1, stamp(3)), -1_000);
        assert_eq!(micros(-1, stamp(6)), -1);
        // Finer times are rounded down to their microsecond.
        assert_eq!(micros(-1, stamp(9)), -1);
        assert_eq!(micros(1_999, stamp(9)), 1);
        assert_eq!(micros(1_999_999, stamp(12)), 1);
    }

    #[test]
    fn what_is_no_moment_is_said_with_its_row() {
        let signed = Encoding::Integer { signed: true };
        assert_eq!(moments(i64::MIN, stamp(6)), Err(NoMoment::Missing(0)));
        assert_eq!(
            moments(f64::NAN.to_bits() as i64, Encoding::Float),
            Err(NoMoment::Missing(0))
        );
        // Present-day times in milliseconds.
        let wrong = NoMoment::Range(0, 1_700_000_000_000_000_000);
        assert_eq!(moments(1_700_000_000_000, signed), Err(wrong));
        assert!(matches!(
            moments(-1, Encoding::Integer { signed: false }),
            Err(NoMoment::Range(0, _))
        ));
        assert!(matches!(
            moments(i64::MAX, stamp(0)),
            Err(NoMoment::Range(..))
        ));
        assert!(matches!(
            moments(f64::INFINITY.to_bits() as i64, Encoding::Float),
            Err(NoMoment::Range(..))
        ));
        let duration = Encoding::Temporal(Temporal::Duration(Ticks::decimal(0)));
        for other in [duration, Encoding::Bytes, Encoding::Bool] {
            assert_eq!(moments(1, other), Err(NoMoment::Type));
        }
        let bytes: Vec<u8> = [1i64, 2, 3].iter().flat_map(|n| native(*n)).collect();
        let mut nulls = column(&bytes, signed);
        nulls.valid = Some(Bits::unmasked(&[false, false, true]));
        let mut some = vec![Moment::default(); 4];
        assert_eq!(nulls.moments(&mut some), Err(NoMoment::Missing(6)));
    }
}
