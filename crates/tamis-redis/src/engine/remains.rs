//! The record of a filter, and what is left of a filter whose record is gone: by
//! a witness on another node, or by parts that lie about.

use super::reading::{is_wrong_type, read_testimony};
use crate::body::foot;
use crate::chunks::{FOOT, slot};
use crate::engine::survey::{Role, scan};
use crate::link::Link;
use crate::record::{LEN, Record, twin, witness};
use crate::request::Request;
use crate::wire::Wire;
use crate::{Error, Location};
use redis::Value;
use std::time::Duration;

/// Keys that are looked at before a filter is created, on each node. The look is
/// for filters without a witness; more would take seconds.
const LOOK_AT: usize = 1_000_000;

/// What has no longer to live is left of a filter that has expired. Parts get
/// their time after the record does, so they may have more than the grace left.
pub(super) const ENDING: Duration = Duration::from_secs(20);

/// Whether a key ends by itself in a moment, as what an expired filter leaves
/// does.
pub(super) fn is_ending(left: i64) -> bool {
    (0..=ENDING.as_millis() as i64).contains(&left)
}

/// Whether a filter of this name has a witness, which outlives it by a moment.
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

/// Whether there are parts of a filter of this name, as far as a short look
/// shows: in a cluster, where its record may go without them.
pub(super) async fn has_parts<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<bool, Error> {
    if !wire.link.is_cluster() {
        return Ok(false);
    }
    Ok(!parts(wire, name, LOOK_AT).await?.is_empty())
}

/// Parts of filters of this name that are whole and don't end by themselves.
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

/// Deletes what is left of a filter that has lost its record and its twin.
pub(super) async fn delete_remains<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<(), Error> {
    let keys = parts(wire, name, usize::MAX).await?;
    let witness = witness(name);
    // The witness last: while it is there, what was interrupted can be repeated.
    for key in keys.iter().chain([&witness]) {
        // Nobody creates a filter meanwhile: it would find these.
        let command = command!("UNLINK", key);
        wire.ask_one("deleting the filter", slot(key), command)
            .await?;
    }
    Ok(())
}

/// Whether neither the record nor its twin is there.
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
        // What is made or deleted meanwhile has a record when its witness comes,
        // and no witness when its record goes.
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

/// Errors if there is no filter of this name, but something is left of one.
pub(super) async fn look_for_remains<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<(), Error> {
    let remains = || {
        Err(Error::Remains {
            name: name.to_owned(),
        })
    };
    // In this order: a filter that is deleted meanwhile loses its record last.
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
        // A byte more than there should be, and no more of what is not ours.
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
