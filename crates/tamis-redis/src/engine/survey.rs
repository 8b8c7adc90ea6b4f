//! A survey of all filters on the servers, and of keys that belong to none.

use super::Engine;
use super::fill::is_overfull;
use super::names::Role;
use super::pages::{ask_each, read, scan_page};
use super::reading::{is_wrong_type, number, read_start, seconds_now};
use crate::chunks::slot;
use crate::link::Link;
use crate::record::{LEN, MAGIC, Record, Stage, twin, witness};
use crate::survey::{Condition, Found, Node, Orphan, Share, Survey};
use crate::wire::Wire;
use crate::{Error, Options, Servers};
use redis::{Cmd, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Deletes a key that has been idle for this many seconds and has no expiry.
const COLLECT: &str = "
if redis.call('PTTL', KEYS[1]) ~= -1 then return 0 end
if redis.call('OBJECT', 'IDLETIME', KEYS[1]) < tonumber(ARGV[1]) then return 0 end
return redis.call('UNLINK', KEYS[1])";

/// The parts that a name accounts for.
enum Claim {
    /// Parts of these generations.
    Of(BTreeSet<u64>),
    /// All parts: the filter is being created or can't be read.
    All,
}

impl Claim {
    fn has(&self, generation: u64) -> bool {
        match self {
            Self::Of(known) => known.contains(&generation),
            Self::All => true,
        }
    }
}

/// A scan of all keys of all nodes.
#[derive(Default)]
struct Walk {
    names: BTreeSet<String>,
    /// By name and generation.
    parts: BTreeMap<(String, u64), BTreeSet<String>>,
}

/// Surveys these servers.
pub(crate) async fn survey<L: Link>(
    link: L,
    servers: &Servers,
    options: &Options,
) -> Result<Survey, Error> {
    let mut wire = Wire::new(link, options).await?;
    let mut nodes = nodes(&mut wire).await?;
    if nodes.iter().any(|node| node.unreachable.is_some()) {
        // The unreachable server has had its retries.
        wire.lose_patience();
    }
    let walk = walk(&mut wire, &mut nodes).await?;
    let mut survey = Survey {
        servers: servers.clone(),
        filters: Vec::new(),
        orphans: Vec::new(),
        nodes,
    };
    let names = walk
        .names
        .iter()
        .chain(walk.parts.keys().map(|(name, _)| name));
    let mut strays = Vec::new();
    for name in names.collect::<BTreeSet<_>>() {
        // Read after the scan: a filter exists before its parts do, so every
        // part that was seen and has a filter finds it now.
        let (again, looked) = look_at(wire, name, options, &walk).await;
        wire = again;
        let (found, claim) = looked.unwrap_or_else(|error| {
            let found = Found::new(name, condition_of(&error));
            (Some(found), Claim::All)
        });
        survey.filters.extend(found);
        let parts = walk
            .parts
            .range((name.clone(), 0)..=(name.clone(), u64::MAX));
        let unclaimed = parts.filter(|((_, generation), _)| !claim.has(*generation));
        strays.extend(unclaimed.flat_map(|(_, keys)| keys.clone()));
    }
    survey.orphans = orphans(&mut wire, &survey.nodes, strays).await?;
    Ok(survey)
}

/// Deletes orphans of sufficient age that are still orphans; returns them.
pub(crate) async fn collect<L: Link>(
    link: L,
    orphans: &[Orphan],
    idle: Duration,
    options: &Options,
) -> Result<Vec<Orphan>, Error> {
    let mut wire = Wire::new(link, options).await?;
    let mut collected = Vec::new();
    for orphan in orphans {
        let Role::Part(name, generation) = Role::of(&orphan.key) else {
            continue;
        };
        let (again, looked) = look_at(wire, &name, options, &Walk::default()).await;
        wire = again;
        // A filter that can't be read may still own the part.
        if looked.map_or(true, |(_, claim)| claim.has(generation)) {
            continue;
        }
        let command = command!("EVAL", COLLECT, 1, &orphan.key, idle.as_secs());
        let home = slot(&orphan.key);
        if wire.ask_one("collecting orphans", home, command).await? == Value::Int(1) {
            collected.push(orphan.clone());
        }
    }
    Ok(collected)
}

/// The condition of a filter that couldn't be read.
fn condition_of(error: &Error) -> Condition {
    let reason = error.to_string();
    match error {
        error if is_io(error) => Condition::Unreachable(reason),
        _ => Condition::Damaged(reason),
    }
}

/// Whether no server answered.
fn is_io(error: &Error) -> bool {
    matches!(error, Error::Server { source, .. } if source.is_io_error())
}

/// The nodes that have slots. Fields that the user isn't allowed to query stay
/// empty. An error if no node answers.
pub(crate) async fn nodes<L: Link>(wire: &mut Wire<L>) -> Result<Vec<Node>, Error> {
    let mut nodes = Vec::new();
    let (masters, mut silent) = (wire.link.masters(), None);
    for (address, slot) in &masters {
        let address = address.to_string();
        nodes.push(match ask_node(wire, *slot).await {
            Ok(info) => Node::of_info(&address, &info),
            Err(error) => {
                let reason = error.to_string();
                silent = Some(error);
                Node::silent(address, reason)
            }
        });
    }
    match silent {
        Some(error) if nodes.iter().all(|node| node.unreachable.is_some()) => Err(error),
        _ => Ok(nodes),
    }
}

async fn ask_node<L: Link>(wire: &mut Wire<L>, slot: u16) -> Result<String, Error> {
    let mut info = String::new();
    for section in ["server", "memory", "replication", "tamis_filters"] {
        let command = command!("INFO", section);
        let answer = wire
            .ask_one("asking about the servers", slot, command)
            .await;
        match answer {
            Err(error) if is_refusal(&error) => {}
            answer => info += &read::<String>("INFO", answer?)?,
        }
    }
    Ok(info)
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Server { source, .. } if source.code() == Some("NOPERM"))
}

/// Scans the keys of all nodes that answer.
async fn walk<L: Link>(wire: &mut Wire<L>, nodes: &mut Vec<Node>) -> Result<Walk, Error> {
    let mut walk = Walk::default();
    for (address, slot) in wire.link.masters() {
        let address = address.to_string();
        let known = nodes.iter().position(|node| node.address == address);
        if known.is_some_and(|known| nodes[known].unreachable.is_some()) {
            continue;
        }
        match walk.visit(wire, slot).await {
            Err(error) if nodes.len() > 1 && is_io(&error) => {
                let silent = Node::silent(address, error.to_string());
                match known {
                    Some(known) => nodes[known] = silent,
                    None => nodes.push(silent),
                }
            }
            visited => visited?,
        }
    }
    Ok(walk)
}

impl Walk {
    /// Collects a node's keys.
    async fn visit<L: Link>(&mut self, wire: &mut Wire<L>, slot: u16) -> Result<(), Error> {
        for kind in ["string", "hash"] {
            let mut cursor = String::from("0");
            loop {
                let (next, keys) = scan_page(wire, slot, kind, &cursor).await?;
                self.take_in(wire, kind, keys).await?;
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
    }

    async fn take_in<L: Link>(
        &mut self,
        wire: &mut Wire<L>,
        kind: &str,
        keys: Vec<String>,
    ) -> Result<(), Error> {
        let mut others = Vec::new();
        for key in keys {
            match Role::of(&key) {
                Role::Part(name, generation) => {
                    self.parts
                        .entry((name, generation))
                        .or_default()
                        .insert(key);
                }
                Role::Twin(name) | Role::Witness(name) => drop(self.names.insert(name)),
                Role::Other if kind == "string" => others.push(key),
                Role::Other | Role::Passing => {}
            }
        }
        let sizes = ask_each(wire, &others, |key| command!("STRLEN", key)).await?;
        for (key, size) in others.into_iter().zip(sizes) {
            if size == Value::Int(crate::record::LEN as i64) {
                self.names.insert(key);
            }
        }
        Ok(())
    }

    fn parts_of(&self, name: &str, generations: &BTreeSet<u64>) -> Vec<String> {
        let keys = generations.iter().filter_map(|generation| {
            let keys = self.parts.get(&(name.to_owned(), *generation))?;
            Some(keys.iter().cloned())
        });
        // The hash next to the record is not a chunk.
        let chunks = keys.flatten().filter(|key| !key.starts_with('{'));
        chunks.collect()
    }
}

/// The filter with a name, and the parts that it accounts for.
type Looked = (Option<Found>, Claim);

/// Looks up the filter with this name.
async fn look_at<L: Link>(
    mut wire: Wire<L>,
    name: &str,
    options: &Options,
    walk: &Walk,
) -> (Wire<L>, Result<Looked, Error>) {
    let (bytes, remains) = match read_copies(&mut wire, name).await {
        Ok(read) => read,
        Err(error) => return (wire, Err(error)),
    };
    if !bytes.starts_with(MAGIC) {
        return (wire, Ok((None, Claim::Of(BTreeSet::new()))));
    }
    let record = match Record::decode_without_key(name, &bytes) {
        Ok(record) => record,
        Err(error) => {
            let found = Found::new(name, Condition::Unreadable(error.to_string()));
            return (wire, Ok((Some(found), Claim::All)));
        }
    };
    let mut engine = Engine::around(wire, options, name.to_owned(), record);
    let looked = engine.describe(remains, walk).await;
    (engine.wire, Ok(looked))
}

/// The record with this name, and whether only a copy of it is left.
async fn read_copies<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<(Vec<u8>, bool), Error> {
    let mut remains = false;
    let mut bytes = read_start(wire, name, LEN + 1).await?;
    // If the record is gone, its twin or witness may still exist.
    for other in [twin(name), witness(name)] {
        if !bytes.starts_with(MAGIC) {
            bytes = read_start(wire, &other, LEN).await?;
            remains = true;
        }
    }
    Ok((bytes, remains))
}

/// A value, or the default if it couldn't be read. The first error becomes the
/// filter's condition.
fn keep<T: Default>(read: Result<T, Error>, found: &mut Found) -> T {
    match read {
        Ok(value) => value,
        // Deleted during the survey.
        Err(Error::Gone { .. }) => T::default(),
        Err(error) => {
            if matches!(found.condition, Condition::Whole | Condition::Overfull) {
                found.condition = condition_of(&error);
            }
            T::default()
        }
    }
}

impl<L: Link> Engine<L> {
    /// Describes this filter. `remains`: only a copy of its record is left.
    async fn describe(&mut self, remains: bool, walk: &Walk) -> Looked {
        let condition = match self.record.state {
            _ if remains => Condition::Remains,
            Stage::Creating => Condition::Creating,
            Stage::Deleting => Condition::Deleting,
            Stage::Ready => Condition::Whole,
        };
        let mut found = Found {
            kind: Some(self.kind()),
            generation: self.record.generation,
            rate: self.rate(),
            ..Found::new(&self.name, condition)
        };
        if found.condition == Condition::Whole
            && let Some((keys, rate)) = keep(self.count().await.map(Some), &mut found)
        {
            (found.keys, found.rate_now) = (Some(keys), Some(rate));
            if is_overfull(keys, self.most_keys()) {
                found.condition = Condition::Overfull;
            }
        }
        found.capacity = self.header.capacity();
        found.last_write = keep(self.last_write().await, &mut found);
        let left = self.ask_home("asking the filter's time to live", pttl(&self.name));
        if let Some(Value::Int(left @ 0..)) = keep(left.await.map(Some), &mut found) {
            found.time_to_live = Some(Duration::from_millis(left as u64));
        }
        let generations = keep(self.all_generations().await.map(Some), &mut found);
        let generations = generations.map(|all| -> BTreeSet<u64> {
            all.into_iter().map(|(_, generation)| generation).collect()
        });
        let keys = walk.parts_of(&self.name, &generations.clone().unwrap_or_default());
        found.shares = keep(shares(&mut self.wire, &keys).await, &mut found);
        let claim = match generations {
            Some(known) if remains || self.record.state != Stage::Creating => Claim::Of(known),
            _ => Claim::All,
        };
        (Some(found), claim)
    }

    async fn count(&mut self) -> Result<(u64, f64), Error> {
        self.find_bodies().await?;
        Ok((self.keys().await?.get(), self.rate_now().await?))
    }

    /// The time since a client last recorded a write. Compares that client's
    /// clock with ours.
    pub(crate) async fn last_write(&mut self) -> Result<Option<Duration>, Error> {
        let command = command!("HGET", self.state_key(), "written");
        let answer = self.ask_home("looking at keys", command);
        let written = match answer.await {
            // A key with that name isn't a hash.
            Err(error) if is_wrong_type(&error) => None,
            answer => number(&answer?),
        };
        let age = written.map(|then| seconds_now().saturating_sub(then));
        Ok(age.map(Duration::from_secs))
    }

    /// The filter's share of each node.
    pub(crate) async fn shares(&mut self) -> Result<Vec<Share>, Error> {
        self.load_layers().await?;
        let keys: Vec<String> = self.all_chunks().map(|chunk| chunk.key.clone()).collect();
        shares(&mut self.wire, &keys).await
    }

    /// The nodes of this filter's servers.
    pub(crate) async fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        nodes(&mut self.wire).await
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.record.generation
    }
}

/// Adds up the keys of each node.
pub(crate) async fn shares<L: Link>(
    wire: &mut Wire<L>,
    keys: &[String],
) -> Result<Vec<Share>, Error> {
    let memory = ask_each(wire, keys, memory_usage).await?;
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for (key, memory) in keys.iter().zip(memory) {
        let Value::Int(bytes) = memory else {
            continue;
        };
        let node = node_of(wire, key);
        let share = shares
            .entry(node.clone())
            .or_insert_with(|| Share::new(node));
        share.keys += 1;
        share.bytes += bytes as u64;
    }
    Ok(shares.into_values().collect())
}

async fn orphans<L: Link>(
    wire: &mut Wire<L>,
    nodes: &[Node],
    keys: Vec<String>,
) -> Result<Vec<Orphan>, Error> {
    let memory = ask_each(wire, &keys, memory_usage).await?;
    let left = ask_each(wire, &keys, pttl).await?;
    // With an LFU policy, a server doesn't know idle times.
    let tells = nodes.iter().all(|node| !node.policy.contains("lfu"));
    let idle_time = |key: &str| command!("OBJECT", "IDLETIME", key);
    let idle = if tells {
        ask_each(wire, &keys, idle_time).await?
    } else {
        vec![Value::Nil; keys.len()]
    };
    let mut orphans = Vec::new();
    for (i, key) in keys.into_iter().enumerate() {
        let Value::Int(bytes) = memory[i] else {
            continue; // it has been deleted
        };
        let seconds = |value: &Value| match value {
            Value::Int(n @ 0..) => Some(*n as u64),
            _ => None,
        };
        orphans.push(Orphan {
            node: node_of(wire, &key),
            bytes: bytes as u64,
            idle: seconds(&idle[i]).map(Duration::from_secs),
            time_to_live: seconds(&left[i]).map(Duration::from_millis),
            key,
        });
    }
    Ok(orphans)
}

fn node_of<L: Link>(wire: &Wire<L>, key: &str) -> String {
    let owner = wire.link.owner(slot(key));
    owner.map_or_else(String::new, |node| node.to_string())
}

fn memory_usage(key: &str) -> Cmd {
    // `SAMPLES 0` measures all of a string, or of a small hash.
    command!("MEMORY", "USAGE", key, "SAMPLES", 0)
}

fn pttl(key: &str) -> Cmd {
    command!("PTTL", key)
}
