//! The log, which is stderr.

use std::fmt::Display;
use std::io::Write as _;
use tamis_report::human;

/// Writes a line. Nobody may be reading it.
pub(crate) fn log(text: impl Display) {
    let text = tamis_redis::hide_passwords(&text.to_string());
    let _ = writeln!(std::io::stderr(), "tamis: {}", human::printable(&text));
}
