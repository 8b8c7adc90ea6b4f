//! The log, on stderr.

use std::fmt::Display;
use std::io::Write as _;
use tamis_report::human;

/// Writes a line. Ignores errors: nobody may be reading.
pub(crate) fn log(text: impl Display) {
    let text = tamis_redis::hide_passwords(&text.to_string());
    let _ = writeln!(std::io::stderr(), "tamis: {}", human::printable(&text));
}
