//! Numbers since 1970.

/// The seconds that count as times: from 2001, when they get their tenth digit, to the end of 2099.
const TIMES: std::ops::Range<u64> = 1_000_000_000..4_102_444_800;

/// The number at the start of the bytes in microseconds, and where it ends. Its length determines its unit.
pub(super) fn at_start(bytes: &[u8]) -> Option<(i64, usize)> {
    let digits = count(bytes);
    let unit: u64 = match digits {
        10 => 1,
        13 => 1_000,
        16 => 1_000_000,
        19 => 1_000_000_000,
        _ => return None,
    };
    let whole = value(&bytes[..digits]);
    if !TIMES.contains(&(whole / unit)) {
        return None;
    }
    // In microseconds, with the value of a fraction's next digit.
    let (mut micros, mut step) = if unit <= 1_000_000 {
        (whole * (1_000_000 / unit), 1_000_000 / unit)
    } else {
        (whole / 1_000, 0)
    };
    let mut end = digits;
    if bytes.get(end) == Some(&b'.') {
        let fraction = count(&bytes[end + 1..]);
        for digit in &bytes[end + 1..][..fraction] {
            step /= 10;
            micros += u64::from(digit - b'0') * step;
        }
        end += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    // Not part of something else, such as an address or an identifier.
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_alone = !bytes.get(end).is_some_and(goes_on);
    is_alone.then_some((micros as i64, end))
}

/// The number of leading digits.
fn count(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// The value of up to 19 digits.
fn value(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}
