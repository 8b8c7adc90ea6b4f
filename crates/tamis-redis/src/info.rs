//! Reads answers to `INFO`.

/// The value of a field.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = info.lines();
    lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
}

/// The value of a numeric field.
pub(crate) fn number(info: &str, name: &str) -> Option<u64> {
    field(info, name)?.parse().ok()
}
