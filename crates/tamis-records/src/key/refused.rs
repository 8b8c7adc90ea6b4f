//! Invalid records: they can't be decided, because as they stand they would mean something else.

use crate::line_time::TwoReadings;
use std::fmt;

/// How many bytes of a record an error shows.
const SHOWN: usize = 40;

/// An invalid record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of its input.
    pub input: String,
    /// Its number there, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: Wrong,
}

/// Why a record is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Its key is not in hexadecimal. Contains the beginning, with bytes escaped that aren't printable ASCII.
    NotHex(String),
    /// Its time could be a date or a number.
    Time(TwoReadings),
}

impl Wrong {
    /// The reason for a record with this content, whose key is not in hexadecimal.
    pub fn not_hex(content: &[u8]) -> Self {
        let shown = content[..content.len().min(SHOWN)].escape_ascii();
        let more = if content.len() > SHOWN { "…" } else { "" };
        Self::NotHex(format!("{shown}{more}"))
    }
}

impl Refused {
    /// The record with this number in an input.
    pub fn new(input: &[u8], number: u64, why: Wrong) -> Self {
        Self {
            input: String::from_utf8_lossy(input).into_owned(),
            number,
            why,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: ", self.input, self.number)?;
        match &self.why {
            Wrong::NotHex(start) => {
                write!(
                    f,
                    "expected hexadecimal digits, two per byte, got '{start}'"
                )
            }
            Wrong::Time(two) => two.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}
