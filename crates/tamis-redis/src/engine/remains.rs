//! What is left of a filter whose record is gone: by a witness on another node,
//! or by parts that lie about.

use super::life::ENDING;
use super::read_testimony;
use crate::Error;
use crate::body::foot;
use crate::chunks::{FOOT, slot};
use crate::engine::survey::{Role, scan};
use crate::link::Link;
use crate::record::{twin, witness};
use crate::request::Request;
use crate::wire::Wire;
use redis::{Value, cmd};

/// Keys that are looked at before a filter is created, on each node. The look is
/// for filters without a witness; more would take seconds.
const LOOK_AT: usize = 1_000_000;

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
    let command = cmd("PTTL").arg(&key).take();
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
            let end = cmd("GETRANGE").arg(&key).arg(-(FOOT as i64)).arg(-1).take();
            let left = cmd("PTTL").arg(&key).take();
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
        let command = cmd("UNLINK").arg(key).take();
        wire.ask_one("deleting the filter", slot(key), command)
            .await?;
    }
    Ok(())
}

/// Whether neither the record nor its twin is there.
pub(super) async fn home_is_empty<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<bool, Error> {
    let exists = |key: &str| Request::new(slot(name), &[cmd("EXISTS").arg(key).take()]);
    let requests = vec![exists(name), exists(&twin(name))];
    let answers = wire.ask("looking for the filter", requests).await?;
    Ok(answers.iter().all(|answer| answer[..] == [Value::Int(0)]))
}
