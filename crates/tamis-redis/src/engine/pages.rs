//! Many keys, page by page: lists of them, and one command for each.

use crate::Error;
use crate::chunks::slot;
use crate::link::Link;
use crate::request::Request;
use crate::wire::Wire;
use redis::{Cmd, FromRedisValue, Value};

/// Keys that a server lists at once, and that are queried together.
const PAGE: usize = 1000;
/// The bytes allowed for a page of names, whatever else the database contains.
const PAGE_BYTES: u64 = 1 << 24;

/// A page of a node's keys of this type, and the cursor of the next page.
pub(super) async fn scan_page<L: Link>(
    wire: &mut Wire<L>,
    node: u16,
    kind: &str,
    cursor: &str,
) -> Result<(String, Vec<String>), Error> {
    let scan = command!("SCAN", cursor, "COUNT", PAGE, "TYPE", kind);
    let request = Request::new(node, &[scan]).answered_with(PAGE_BYTES);
    let page = wire.ask_request("looking at all keys", request).await?;
    let (next, keys): (String, Vec<Vec<u8>>) = read("SCAN", page)?;
    // Our keys are text, so skip others.
    let text = keys
        .into_iter()
        .filter_map(|key| String::from_utf8(key).ok());
    Ok((next, text.collect()))
}

/// Collects a node's keys of this type, page by page, up to slightly more than
/// `most`.
pub(super) async fn scan<L: Link>(
    wire: &mut Wire<L>,
    node: u16,
    kind: &str,
    most: usize,
    mut take_in: impl FnMut(Vec<String>) + Send,
) -> Result<(), Error> {
    let mut cursor = String::from("0");
    for _ in 0..most.div_ceil(PAGE) {
        let (next, keys) = scan_page(wire, node, kind, &cursor).await?;
        take_in(keys);
        if next == "0" {
            break;
        }
        cursor = next;
    }
    Ok(())
}

/// The answers to one command for each key.
pub(super) async fn ask_each<L: Link>(
    wire: &mut Wire<L>,
    keys: &[String],
    command: impl Fn(&str) -> Cmd,
) -> Result<Vec<Value>, Error> {
    let mut all = Vec::with_capacity(keys.len());
    for some in keys.chunks(PAGE) {
        let request = |key: &String| Request::new(slot(key), &[command(key)]);
        let requests = some.iter().map(request).collect();
        let answers = wire.ask("looking at keys", requests).await?;
        all.extend(
            answers
                .into_iter()
                .map(|mut answer| answer.pop().unwrap_or(Value::Nil)),
        );
    }
    Ok(all)
}

pub(super) fn read<T: FromRedisValue>(command: &str, value: Value) -> Result<T, Error> {
    redis::from_redis_value(value).map_err(|error| Error::Corrupt {
        key: command.into(),
        reason: error.to_string(),
    })
}
