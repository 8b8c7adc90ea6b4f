//! Records that can't be decided: taken as they stand, they would be something else.

use crate::line_time::TwoReadings;
use std::fmt;

/// How much of a record an error shows.
const SHOWN: usize = 40;

/// A record that was not as the user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of its input.
    pub input: String,
    /// Its number there, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub why: Wrong,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Its key is not in hexadecimal. It begins so, with bytes that are not printable ASCII escaped.
    NotHex(String),
    /// Its time may be a date or a number.
    Time(TwoReadings),
}

impl Wrong {
    /// That the key of a record with this content is not in hexadecimal.
    pub fn not_hex(content: &[u8]) -> Self {
        let shown = content[..content.len().min(SHOWN)].escape_ascii();
        let more = if content.len() > SHOWN { "…" } else { "" };
        Self::NotHex(format!("{shown}{more}"))
    }
}

impl Refused {
    /// A record of this number in an input.
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
