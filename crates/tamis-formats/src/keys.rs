//! Turns a key written as text into the bytes that a filter of another system
//! has hashed.

use crate::error::Error;
use crate::names::Keys;
use std::borrow::Cow;

impl Keys {
    /// Encodes a text as the bytes to query.
    ///
    /// ```
    /// use tamis_formats::Keys;
    /// assert_eq!(&*Keys::Utf8.encode(b"key")?, b"key");
    /// assert_eq!(&*Keys::Int32.encode(b"-1")?, [255; 4]);
    /// assert!(Keys::Int32.encode(b"key").is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn encode(self, text: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
        let refuse = || Error::Key {
            keys: self,
            got: String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned(),
        };
        let words = || std::str::from_utf8(text).map_err(|_| refuse());
        Ok(match self {
            Self::Utf8 => text.into(),
            Self::Upper => text.to_ascii_uppercase().into(),
            Self::Lower => text.to_ascii_lowercase().into(),
            Self::Utf16 => (words()?.encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect(),
            Self::Int32 => parse::<i32>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Int64 => parse::<i64>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Uint64 => parse::<u64>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::PythonPickle => pickled(words()?).into(),
            Self::Kryo5 => kryo5(words()?).into(),
            Self::Json => json(words()?).into(),
            Self::RustStr => [words()?.as_bytes(), &[0xFF]].concat().into(),
            Self::Float32 => parse::<f32>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Float64 => parse::<f64>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::PythonNumber => python_number(words()?.trim())
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
        })
    }
}

/// `pickle.dumps(text, protocol=4)`, the default of Python 3.8 to 3.13.
fn pickled(text: &str) -> Vec<u8> {
    /// Longer values are outside of a frame.
    const FRAME: usize = 64 << 10;
    let mut value = match u8::try_from(text.len()) {
        Ok(len) => vec![0x8C, len],
        Err(_) if text.len() as u64 <= u64::from(u32::MAX) => {
            [b"X", &(text.len() as u32).to_le_bytes()[..]].concat()
        }
        Err(_) => [&[0x8D], &(text.len() as u64).to_le_bytes()[..]].concat(),
    };
    value.extend_from_slice(text.as_bytes());
    value.extend_from_slice(b"\x94.");
    let mut pickle = vec![0x80, 4];
    if text.len() < FRAME {
        pickle.push(0x95);
        pickle.extend_from_slice(&(value.len() as u64).to_le_bytes());
    }
    pickle.extend_from_slice(&value);
    pickle
}

/// Kryo 5's encoding of a String: the number of its class, then short ASCII
/// with its last byte marked, or a length and UTF-8 of each UTF-16 unit.
fn kryo5(text: &str) -> Vec<u8> {
    const STRING: u8 = 3;
    let mut bytes = vec![STRING];
    if text.is_ascii() && (2..=32).contains(&text.len()) {
        bytes.extend_from_slice(text.as_bytes());
        *bytes.last_mut().expect("at least two") |= 0x80;
        return bytes;
    }
    // The first byte has six bits of the number, the others seven each.
    let mut len = text.encode_utf16().count() as u64 + 1;
    let (mut mark, mut more, mut width) = (0x80, 0x40, 6);
    loop {
        let low = (len & ((1 << width) - 1)) as u8;
        len >>= width;
        bytes.push(mark | low | if len > 0 { more } else { 0 });
        if len == 0 {
            break;
        }
        (mark, more, width) = (0, 0x80, 7);
    }
    for unit in text.encode_utf16() {
        match unit {
            0..=0x7F => bytes.push(unit as u8),
            0x80..=0x7FF => bytes.extend([0xC0 | (unit >> 6) as u8, 0x80 | (unit & 0x3F) as u8]),
            _ => bytes.extend([
                0xE0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3F) as u8,
                0x80 | (unit & 0x3F) as u8,
            ]),
        }
    }
    bytes
}

/// Jackson's encoding of a String: characters beyond UTF-16's first plane are
/// escaped.
fn json(text: &str) -> Vec<u8> {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{10000}'.. => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out.into_bytes()
}

/// The modulus of Python's hashes of numbers.
const PYTHON_PRIME: u64 = (1 << 61) - 1;

/// `hash()` of a number in a 64-bit Python. Equal numbers have the same hash,
/// whether integer or float.
fn python_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return python_float(text.parse().ok()?);
    }
    let prime = u128::from(PYTHON_PRIME);
    let next =
        |rest, digit: &u8| ((10 * u128::from(rest) + u128::from(digit - b'0')) % prime) as u64;
    Some(python_hash(negative, digits.iter().fold(0, next)))
}

/// `hash()` of a float; for NaN, it differs from object to object.
fn python_float(number: f64) -> Option<i64> {
    if number.is_nan() {
        return None;
    }
    let negative = number.is_sign_negative();
    if number.is_infinite() {
        return Some(if negative { -314_159 } else { 314_159 });
    }
    // The number is fraction * 2^exponent, and 2^61 has the remainder 1.
    let bits = number.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7FF) as i32);
    let (fraction, exponent) = match biased {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, biased - 1075),
    };
    let shift = exponent.rem_euclid(61);
    let product = (u128::from(fraction) << shift) % u128::from(PYTHON_PRIME);
    Some(python_hash(negative, product as u64))
}

/// Python reserves -1 for errors, so it becomes -2.
const fn python_hash(negative: bool, rest: u64) -> i64 {
    match (negative, rest as i64) {
        (true, 1) => -2,
        (true, rest) => -rest,
        (false, rest) => rest,
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of Python's `encode` and `struct.pack`.
    #[test]
    fn bytes_are_those_that_other_languages_make() {
        for (keys, text, expected) in [
            (Keys::Utf8, "", &b""[..]),
            (Keys::Utf8, "\0\u{80}", b"\0\xc2\x80"),
            (Keys::Utf16, "", b""),
            (Keys::Utf16, "a\0é", b"a\0\0\0\xe9\0"),
            (Keys::Utf16, "🌾", b"\x3c\xd8\x3e\xdf"),
            (Keys::Int32, "-2147483648", b"\0\0\0\x80"),
            (Keys::Int32, "+7", b"\x07\0\0\0"),
            (Keys::Int64, "-1", &[0xFF; 8]),
            (
                Keys::Int64,
                "9223372036854775807",
                b"\xff\xff\xff\xff\xff\xff\xff\x7f",
            ),
            (Keys::Float32, "1.25", b"\0\0\xa0\x3f"),
            (Keys::Float64, "-0.5", b"\0\0\0\0\0\0\xe0\xbf"),
            (Keys::Uint64, "18446744073709551615", &[0xFF; 8]),
            (Keys::RustStr, "é", b"\xc3\xa9\xff"),
            (
                Keys::PythonPickle,
                "a",
                b"\x80\x04\x95\x05\0\0\0\0\0\0\0\x8c\x01a\x94.",
            ),
            (Keys::Upper, "a9fé", "A9Fé".as_bytes()),
            (Keys::Lower, "A9FÉ", "a9fÉ".as_bytes()),
        ] {
            assert_eq!(&*keys.encode(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    /// The results of `hash(...)` in CPython 3.11.
    #[test]
    fn numbers_hash_as_in_python() {
        let prime = PYTHON_PRIME as i64;
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("1", 1),
            ("True", i64::MIN), // refused
            ("-1", -2),
            ("-1.0", -2),
            ("-2", -2),
            ("+7", 7),
            ("007", 7),
            ("2305843009213693950", prime - 1),
            ("2305843009213693951", 0),
            ("-2305843009213693951", 0),
            ("2305843009213693952", 1),
            ("-2305843009213693952", -2),
            ("9223372036854775807", 3),
            ("-9223372036854775808", -4),
            ("18446744073709551615", 7),
            ("1267650600228229401496703205376", 549755813888),
            ("1e22", 1_864_712_049_423_028_464),
            ("0.5", 1 << 60),
            ("-0.5", -(1 << 60)),
            ("1.5", (1 << 60) + 1),
            ("3.14", 322_818_021_289_917_443),
            ("2e-324", 0), // rounds to nothing
            ("5e-324", 16_777_216),
            ("inf", 314_159),
            ("-inf", -314_159),
            ("1e400", 314_159),
            ("nan", i64::MIN),
            ("1_000", i64::MIN),
            ("0x10", i64::MIN),
            ("-", i64::MIN),
            ("", i64::MIN),
        ] {
            let got = Keys::PythonNumber.encode(text.as_bytes());
            match expected {
                i64::MIN => assert!(matches!(got, Err(Error::Key { .. })), "{text}"),
                _ => assert_eq!(*got.unwrap(), expected.to_le_bytes(), "{text}"),
            }
        }
    }

    /// The results of Kryo 5.6.2 (`setReferences(false)`) and Jackson 2 in hex; for long ones, the
    /// beginning.
    #[test]
    fn redissons_codecs_write_what_theirs_do() {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let (x, e) = ("x", "é");
        for (text, kryo, len, json) in [
            ("", "0381", 2, "2222"),
            ("a", "038261", 3, "226122"),
            ("ab", "0361e2", 3, "22616222"),
            ("key0", "036b6579b0", 5, "226b65793022"),
            (&x.repeat(32), "03787878", 33, "227878"),
            (&x.repeat(33), "03a27878", 35, "227878"),
            (&x.repeat(63), "03c00178", 66, "227878"),
            (&x.repeat(64), "03c10178", 67, "227878"),
            (&x.repeat(200), "03c90378", 203, "227878"),
            (&x.repeat(9000), "03e98c0178", 9004, "227878"),
            ("é", "0382c3a9", 4, "22c3a922"),
            ("aé", "038361c3a9", 5, "2261c3a922"),
            ("日本", "0383e697a5e69cac", 8, "22e697a5e69cac22"),
            ("🌾", "0383eda0bcedbcbe", 8, "225c75443833435c754446334522"),
            (
                "a🌾b",
                "038561eda0bcedbcbe62",
                10,
                "22615c75443833435c75444633456222",
            ),
            (&e.repeat(40), "03a9c3a9", 82, "22c3a9"),
            (&e.repeat(9000), "03e98c01c3a9", 18004, "22c3a9"),
            ("\0", "038200", 3, "225c753030303022"),
            ("\u{7f}", "03827f", 3, "227f22"),
            ("\"q\\/", "0322715caf", 5, "225c22715c5c2f22"),
            (
                "\t\n\u{1}\u{2028}",
                "0385090a01e280a8",
                8,
                "225c745c6e5c7530303031e280a822",
            ),
        ] {
            let got = Keys::Kryo5.encode(text.as_bytes()).unwrap();
            assert!(hex(&got).starts_with(kryo), "{text:.9}: {}", hex(&got));
            assert_eq!(got.len(), len, "{text:.9}");
            let got = hex(&Keys::Json.encode(text.as_bytes()).unwrap());
            assert!(
                got.starts_with(json) && got.ends_with("22"),
                "{text:.9}: {got}"
            );
        }
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for (keys, text) in [
            (Keys::Int32, &b"2147483648"[..]),
            (Keys::Int64, b"9223372036854775808"),
            (Keys::Int64, b""),
            (Keys::Int64, b"1.0"),
            (Keys::Uint64, b"-1"),
            (Keys::Float64, b"one"),
            (Keys::Utf16, b"\xff"),
        ] {
            assert!(
                matches!(keys.encode(text), Err(Error::Key { .. })),
                "{text:?}"
            );
        }
    }
}
