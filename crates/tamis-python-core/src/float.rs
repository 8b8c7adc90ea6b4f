//! Floats as keys.

use tamis::{Hash, Hasher};

/// The prefix of a float that isn't an integer: UTF-8 never contains this byte, so no text is the same key; and with
/// it, the key is longer than an integer's.
const FLOAT: [u8; 2] = [0xff, b'f'];

/// The key bytes of a float.
pub enum Float {
    /// Equal to this integer, and therefore the same key, as `1.0 == 1` in Python.
    Integer([u8; 8]),
    /// Any other float.
    Other([u8; 10]),
}

impl Float {
    /// The key of a float; `None` for NaN.
    #[inline]
    pub fn of(value: f64) -> Option<Self> {
        const END: f64 = 18_446_744_073_709_551_616.0; // 2**64
        if value.is_nan() {
            return None;
        }
        if value.trunc() == value && (-END / 2.0..END).contains(&value) {
            let bits = if value < 0.0 {
                value as i64 as u64
            } else {
                value as u64
            };
            return Some(Self::Integer(bits.to_le_bytes()));
        }
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&FLOAT);
        bytes[2..].copy_from_slice(&value.to_le_bytes());
        Some(Self::Other(bytes))
    }

    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Integer(bytes) => bytes,
            Self::Other(bytes) => bytes,
        }
    }
}

/// The hash of a float in a column, where NaN means no value.
#[inline]
pub fn hash(hasher: &Hasher, value: f64) -> Option<Hash> {
    Float::of(value).map(|float| hasher.hash_exact(float.bytes()))
}

/// Converts a 16-bit float.
pub fn of_half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    sign * size
}
