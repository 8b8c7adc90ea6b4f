//! Numbers and times in what servers answer.

use redis::Value;
use std::time::SystemTime;

/// Seconds since 1970, by our clock.
pub(super) fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A number that came as text, or not at all.
pub(super) fn number(answer: &Value) -> Option<u64> {
    match answer {
        Value::BulkString(text) => str::from_utf8(text).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
