//! Dates, times, durations, decimals, UUIDs and booleans as keys: their text, as DuckDB casts them to VARCHAR and as
//! CSV files contain them.

/// The meaning of an integer in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Temporal {
    /// A multiple of days since 1970-01-01.
    Days(i64),
    /// A multiple of months since January 1970; stands for the month's first day.
    Months(i64),
    /// Milliseconds since 1970-01-01, of which only the day counts.
    DayOfMilliseconds,
    /// Time since 1970.
    Timestamp {
        /// The unit.
        ticks: Ticks,
        /// Whether it is UTC rather than a local time without a zone.
        utc: bool,
    },
    /// Time since midnight.
    Time(Ticks),
    /// A length of time.
    Duration(Ticks),
}

/// The length of a clock tick: whole seconds divided by a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticks {
    /// Whole seconds.
    pub seconds: i64,
    /// The power of ten.
    pub digits: u32,
}

impl Ticks {
    /// A second, divided by a power of ten.
    pub const fn decimal(digits: u32) -> Self {
        Self { seconds: 1, digits }
    }

    /// Whole seconds, and the rest in units of the last digit.
    fn split(self, count: i128) -> (i128, u64) {
        let ticks = count * i128::from(self.seconds);
        let second = 10i128.pow(self.digits);
        (ticks.div_euclid(second), ticks.rem_euclid(second) as u64)
    }
}

const DAY: i128 = 86_400;

impl Temporal {
    /// Writes the text for the number.
    pub fn write(self, count: i64, text: &mut Vec<u8>) {
        let wide = i128::from(count);
        match self {
            Self::Days(days) => write_date(wide * i128::from(days), text),
            Self::DayOfMilliseconds => write_date(wide.div_euclid(1000 * DAY), text),
            Self::Months(months) => {
                let month = wide * i128::from(months);
                let year = month.div_euclid(12) + 1970;
                write_year_month_day(year, month.rem_euclid(12) as u8 + 1, 1, text);
            }
            Self::Timestamp { ticks, utc } => {
                let (seconds, rest) = ticks.split(wide);
                write_date(seconds.div_euclid(DAY), text);
                text.push(b' ');
                write_clock(seconds.rem_euclid(DAY) as u128, rest, ticks.digits, text);
                if utc {
                    text.extend_from_slice(b"+00");
                }
            }
            Self::Time(ticks) | Self::Duration(ticks) => write_span(ticks, wide, text),
        }
    }
}

/// Hours, without limit, minutes and seconds.
pub fn write_span(ticks: Ticks, count: i128, text: &mut Vec<u8>) {
    let (mut seconds, mut rest) = ticks.split(count);
    if seconds < 0 {
        text.push(b'-');
        // The magnitude of a negative number: -1.5 s is split into -2 s and half a second.
        seconds = -seconds;
        if rest > 0 {
            seconds -= 1;
            rest = 10u64.pow(ticks.digits) - rest;
        }
    }
    write_clock(seconds as u128, rest, ticks.digits, text);
}

/// `HH:MM:SS`, and the fraction, if any, without trailing zeros.
fn write_clock(seconds: u128, rest: u64, digits: u32, text: &mut Vec<u8>) {
    write_padded(seconds / 3600, 2, text);
    text.push(b':');
    write_two((seconds / 60 % 60) as u8, text);
    text.push(b':');
    write_two((seconds % 60) as u8, text);
    if rest > 0 {
        text.push(b'.');
        write_padded(rest.into(), digits as usize, text);
        while text.last() == Some(&b'0') {
            text.pop();
        }
    }
}

fn write_date(days: i128, text: &mut Vec<u8>) {
    let (year, month, day) = tamis::internals::calendar::date(days);
    write_year_month_day(year, month, day, text);
}

/// There is no year 0: the year before 1 is 1 BC.
fn write_year_month_day(year: i128, month: u8, day: u8, text: &mut Vec<u8>) {
    let before = year < 1;
    write_padded(if before { 1 - year } else { year } as u128, 4, text);
    text.push(b'-');
    write_two(month, text);
    text.push(b'-');
    write_two(day, text);
    if before {
        text.extend_from_slice(b" (BC)");
    }
}

/// A decimal number with this many digits after the point; its digits are a little-endian integer in two's complement.
pub fn write_decimal(bytes: &[u8], scale: i32, text: &mut Vec<u8>) {
    let negative = bytes.last().is_some_and(|byte| *byte >= 128);
    let mut limbs = [if negative { u64::MAX } else { 0 }; 4];
    for (limb, part) in limbs.iter_mut().zip(bytes.chunks(8)) {
        let mut wide = limb.to_le_bytes();
        wide[..part.len()].copy_from_slice(part);
        *limb = u64::from_le_bytes(wide);
    }
    if negative {
        text.push(b'-');
        let mut carry = true;
        for limb in &mut limbs {
            (*limb, carry) = (!*limb).overflowing_add(carry.into());
        }
    }
    let start = text.len();
    write_wide(limbs, text);
    let zero = text[start..] == *b"0";
    match usize::try_from(scale) {
        Ok(0) => {}
        Ok(scale) => {
            // At least one digit before the point.
            let missing = (scale + 1).saturating_sub(text.len() - start);
            text.splice(start..start, std::iter::repeat_n(b'0', missing));
            text.insert(text.len() - scale, b'.');
        }
        Err(_) if zero => {}
        Err(_) => text.extend(std::iter::repeat_n(b'0', scale.unsigned_abs() as usize)),
    }
}

/// An integer of four limbs, lowest first.
fn write_wide(mut limbs: [u64; 4], text: &mut Vec<u8>) {
    const CHUNK: u128 = 10_000_000_000_000_000_000;
    let mut chunks = Vec::with_capacity(5);
    while limbs[1..] != [0; 3] {
        let mut rest = 0u128;
        for limb in limbs.iter_mut().rev() {
            let value = rest << 64 | u128::from(*limb);
            *limb = (value / CHUNK) as u64;
            rest = value % CHUNK;
        }
        chunks.push(rest);
    }
    write_padded(limbs[0].into(), 1, text);
    for chunk in chunks.iter().rev() {
        write_padded(*chunk, 19, text);
    }
}

/// Like `2d931510-d99f-494a-8c67-87feb05e1594`.
pub fn write_uuid(bytes: &[u8; 16], text: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push(b'-');
        }
        text.push(HEX[usize::from(byte >> 4)]);
        text.push(HEX[usize::from(byte & 15)]);
    }
}

/// `true` or `false`.
pub const fn of_bool(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

fn write_two(number: u8, text: &mut Vec<u8>) {
    text.extend_from_slice(&[b'0' + number / 10, b'0' + number % 10]);
}

/// A number with leading zeros up to a width.
fn write_padded(number: u128, width: usize, text: &mut Vec<u8>) {
    let mut digits = [b'0'; 39];
    let mut at = digits.len();
    let mut rest = number;
    // Once it fits, 64-bit division is faster.
    while rest > u128::from(u64::MAX) {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut rest = rest as u64;
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}
