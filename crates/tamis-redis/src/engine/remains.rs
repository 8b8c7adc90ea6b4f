//! The record of a filter, and the remains of a filter whose record is gone,
//! found by a witness on another node or by leftover parts.

use super::reading::{is_wrong_type, read_testimony};
use crate::body::foot;
use crate::chunks::{FOOT, slot};
use crate::engine::names::Role;
use crate::engine::pages::scan;
use crate::link::Link;
use crate::record::{LEN, Record, twin, witness};
use crate::request::Request;
use crate::wire::Wire;
use crate::{Error, Location};
use redis::Value;
use std::time::Duration;

/// Keys to scan on each node before a filter is created. The scan finds filters
/// without a witness; scanning more would take seconds.
const LOOK_AT: usize = 1_000_000;

/// Parts that expire within this time belong to an expired filter. Parts get
/// their expiry after the record does, so they may have more than the grace
/// period left.
pub(super) const ENDING: Duration = Duration::from_secs(20);

/// Whether a key is about to expire, as the parts of an expired filter are.
pub(super) fn is_ending(left: i64) -> bool {
    (0..=ENDING.as_millis() as i64).contains(&left)
}

/// Whether a filter with this name has a witness, which briefly outlives the
/// filter.
pub(super) async fn has_witness<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<bool, Error> {
    let key = witness(name);
    if read_testimony(wire, &key).await?.is_none() {
        return Ok(false);
    }
    let command = command!("PTTL", &key);
    let left = wire
        .ask_one("looking for the filter", slot(&key), command)
        .await?;
    Ok(!matches!(left, Value::Int(left) if left == -2 || is_ending(left)))
}

/// Whether a short scan finds parts of a filter with this name. Only in a
/// cluster, where the record may be lost without them.
pub(super) async fn has_parts<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<bool, Error> {
    if !wire.link.is_cluster() {
        return Ok(false);
    }
    Ok(!parts(wire, name, LOOK_AT).await?.is_empty())
}

/// Whole parts of filters with this name that aren't about to expire.
async fn parts<L: Link>(wire: &mut Wire<L>, name: &str, most: usize) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for (_, node) in wire.link.masters() {
        let mut keys = Vec::new();
        scan(wire, node, "string", most, |page| {
            let ours = page
                .into_iter()
                .filter(|key| matches!(Role::of(key), Role::Part(owner, _) if owner == name));
            keys.extend(ours);
        })
        .await?;
        for key in keys {
            let end = command!("GETRANGE", &key, -(FOOT as i64), -1);
            let left = command!("PTTL", &key);
            let request = Request::new(slot(&key), &[end, left]);
            let answers = wire.ask("looking for the filter", vec![request]).await?;
            if let Some([end, Value::Int(left)]) = answers.first().map(Vec::as_slice)
                && foot(end).is_some()
                && !is_ending(*left)
            {
                found.push(key);
            }
        }
    }
    Ok(found)
}

/// Deletes the remains of a filter that has lost its record and its twin.
pub(super) async fn delete_remains<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<(), Error> {
    let keys = parts(wire, name, usize::MAX).await?;
    let witness = witness(name);
    // The witness last: as long as it exists, an interrupted deletion can be
    // repeated.
    for key in keys.iter().chain([&witness]) {
        // No filter with this name can be created meanwhile: its creation would
        // find these parts.
        let command = command!("UNLINK", key);
        wire.ask_one("deleting the filter", slot(key), command)
            .await?;
    }
    Ok(())
}

/// Whether both the record and its twin are missing.
pub(super) async fn home_is_empty<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<bool, Error> {
    let exists = |key: &str| Request::new(slot(name), &[command!("EXISTS", key)]);
    let requests = vec![exists(name), exists(&twin(name))];
    let answers = wire.ask("looking for the filter", requests).await?;
    Ok(answers.iter().all(|answer| answer[..] == [Value::Int(0)]))
}

pub(super) async fn read_record<L: Link>(
    wire: &mut Wire<L>,
    at: &Location,
    decode: impl Fn(&str, &[u8]) -> Result<Record, Error>,
) -> Result<Record, Error> {
    match read_at_home(wire, at.name(), &decode).await {
        // Read again: a filter that is being created has its record before its
        // witness, and one that is being deleted loses its witness before its
        // record.
        Err(Error::NotFound { .. }) if has_witness(wire, at.name()).await? => {
            match read_at_home(wire, at.name(), &decode).await {
                Err(Error::NotFound { name }) => {
                    if has_witness(wire, at.name()).await? {
                        Err(Error::Remains { name })
                    } else {
                        Err(Error::NotFound { name })
                    }
                }
                read => read,
            }
        }
        read => read,
    }
}

/// An error if only remains of a filter have this name.
pub(super) async fn look_for_remains<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<(), Error> {
    let remains = || {
        Err(Error::Remains {
            name: name.to_owned(),
        })
    };
    // In this order, because a filter that is being deleted loses its record
    // last.
    if has_witness(wire, name).await?
        && home_is_empty(wire, name).await?
        && has_witness(wire, name).await?
    {
        return remains();
    }
    if has_parts(wire, name).await? && home_is_empty(wire, name).await? {
        return remains();
    }
    Ok(())
}

async fn read_at_home<L: Link>(
    wire: &mut Wire<L>,
    name: &str,
    decode: impl Fn(&str, &[u8]) -> Result<Record, Error>,
) -> Result<Record, Error> {
    let twin = twin(name);
    let home = slot(name);
    let commands = [
        // Asks for one byte too many, to notice a longer string, but not for
        // all of a foreign one.
        command!("GETRANGE", name, 0, LEN),
        command!("EXISTS", name),
        command!("EXISTS", &twin),
        command!("PTTL", &twin),
    ];
    let requests = commands.map(|command| Request::new(home, &[command]));
    let answers = match wire.ask("opening the filter", requests.into()).await {
        Err(error) if is_wrong_type(&error) => {
            return Err(Error::Corrupt {
                key: name.into(),
                reason: "expected a Redis string, got a list, set, hash or the like".into(),
            });
        }
        answers => answers?,
    };
    let answers: Vec<Value> = answers.into_iter().flatten().collect();
    if let [Value::BulkString(bytes), exists, ..] = &answers[..]
        && (*exists == Value::Int(1) || !bytes.is_empty())
    {
        return decode(name, bytes);
    }
    let name = name.to_owned();
    match answers[..] {
        [.., Value::Int(1), Value::Int(left)] if !is_ending(left) => Err(Error::Remains { name }),
        _ => Err(Error::NotFound { name }),
    }
}
