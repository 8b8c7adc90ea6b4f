//! Reads small answers: strings, numbers, times.

use crate::Error;
use crate::chunks::slot;
use crate::link::Link;
use crate::record::{LEN, MAGIC, Testimony};
use crate::wire::Wire;
use redis::Value;
use std::time::SystemTime;

/// Seconds since 1970, by our clock.
pub(super) fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Reads a number given as text; `None` if there is none.
pub(super) fn number(answer: &Value) -> Option<u64> {
    match answer {
        Value::BulkString(text) => str::from_utf8(text).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The contents of the witness under a key, if it exists.
pub(super) async fn read_testimony<L: Link>(
    wire: &mut Wire<L>,
    key: &str,
) -> Result<Option<Testimony>, Error> {
    let bytes = read_start(wire, key, 2 * LEN).await?;
    if bytes.starts_with(MAGIC) {
        Testimony::decode(key, &bytes).map(Some)
    } else {
        Ok(None)
    }
}

/// The beginning of a string; empty if the key holds anything else.
pub(super) async fn read_start<L: Link>(
    wire: &mut Wire<L>,
    key: &str,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let command = command!("GETRANGE", key, 0, len - 1);
    match wire
        .ask_one("looking for the filter", slot(key), command)
        .await
    {
        Ok(Value::BulkString(bytes)) => Ok(bytes),
        Ok(_) => Ok(Vec::new()),
        Err(error) if is_wrong_type(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether the key holds something other than a string.
pub(super) fn is_wrong_type(error: &Error) -> bool {
    matches!(error, Error::Server { source, .. } if source.code() == Some("WRONGTYPE"))
}
