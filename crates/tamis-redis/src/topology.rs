//! Which node has which slots, and therefore gets which requests.

use crate::Location;
use crate::address::Address;
use crate::chunks::SLOTS;
use crate::failure::{Failure, Outcome, Reason};
use crate::location::Reach;
use crate::request::Request;
use redis::Value;

/// The indices of the requests for each node.
pub(crate) type ByNode = Vec<(Address, Vec<usize>)>;

/// Which node has which slots.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    cluster: bool,
    /// The nodes that the user named.
    seeds: Vec<Address>,
    nodes: Vec<Address>,
    /// For each slot, an index into `nodes`.
    owners: Vec<u16>,
}

const NOBODY: u16 = u16::MAX;

impl Topology {
    pub(crate) fn new(at: &Location) -> Self {
        let seeds: Vec<_> = at.nodes().iter().filter_map(Address::of).collect();
        Self {
            cluster: at.is_cluster(),
            nodes: match at.reach() {
                // The Sentinels will name it.
                Reach::Sentinel => Vec::new(),
                _ => seeds.clone(),
            },
            seeds,
            owners: if at.is_cluster() {
                vec![NOBODY; SLOTS.into()]
            } else {
                vec![0; SLOTS.into()]
            },
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        self.cluster
    }

    pub(crate) fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from(self.owners[usize::from(slot)]))
    }

    /// Groups requests by node; requests without a node get their outcomes.
    pub(crate) fn by_node(&self, requests: &[&Request]) -> (ByNode, Vec<Option<Outcome>>) {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
        let mut by_node: ByNode = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let Some(node) = request.ask.as_ref().or(self.owner(request.slot)) else {
                let reason = if self.cluster {
                    "no node of the cluster has this slot"
                } else {
                    "no Sentinel knows a master"
                };
                outcomes[place] = Some(Err(Failure::NotNow(Reason::of(reason))));
                continue;
            };
            match by_node.iter_mut().find(|(known, _)| known == node) {
                Some((_, places)) => places.push(place),
                None => by_node.push((node.clone(), vec![place])),
            }
        }
        (by_node, outcomes)
    }

    /// The nodes to ask for the slots: known ones first, then those that the
    /// user named. Or the Sentinels.
    pub(crate) fn informants(&self) -> Vec<Address> {
        if !self.cluster {
            return self.seeds.clone();
        }
        let mut all = self.nodes.clone();
        all.extend(
            self.seeds
                .iter()
                .filter(|seed| !self.nodes.contains(seed))
                .cloned(),
        );
        all
    }

    /// The nodes that have slots, each with its first slot.
    pub(crate) fn masters(&self) -> Vec<(Address, u16)> {
        let mut found: Vec<(Address, u16)> = Vec::new();
        for slot in 0..SLOTS {
            if let Some(owner) = self.owner(slot)
                && !found.iter().any(|(node, _)| node == owner)
            {
                found.push((owner.clone(), slot));
            }
        }
        found
    }

    /// From now on, asks this Sentinel first, because it has answered.
    pub(crate) fn prefer(&mut self, informant: &Address) {
        self.seeds.sort_by_key(|seed| seed != informant);
    }

    /// Sets the master that the Sentinels named.
    pub(crate) fn follow(&mut self, master: Address) {
        self.nodes = vec![master];
    }

    /// Remembers a slot's new node.
    pub(crate) fn moved(&mut self, slot: u16, to: Address) {
        let index = self.nodes.iter().position(|node| *node == to);
        let index = index.unwrap_or_else(|| {
            self.nodes.push(to);
            self.nodes.len() - 1
        });
        self.owners[usize::from(slot)] = index as u16;
    }

    /// Reads the answer of `informant` to `CLUSTER SLOTS`.
    pub(crate) fn learn(&mut self, answer: &Value, informant: &Address) -> Option<()> {
        let Value::Array(ranges) = answer else {
            return None;
        };
        let mut nodes: Vec<Address> = Vec::new();
        let mut owners = vec![NOBODY; SLOTS.into()];
        for range in ranges {
            let Value::Array(range) = range else {
                return None;
            };
            let [
                Value::Int(first),
                Value::Int(last),
                Value::Array(master),
                ..,
            ] = &range[..]
            else {
                return None;
            };
            let [host, Value::Int(port), ..] = &master[..] else {
                return None;
            };
            let host = match host {
                Value::BulkString(host) => str::from_utf8(host).ok()?,
                Value::SimpleString(host) => host,
                _ => "",
            };
            let node = Address::Tcp {
                // If a node doesn't know its own name, use the one under which
                // we reached it.
                host: match (host, informant) {
                    ("" | "?", Address::Tcp { host, .. }) => host.clone(),
                    _ => host.to_owned(),
                },
                port: u16::try_from(*port).ok()?,
            };
            let index = nodes
                .iter()
                .position(|known| *known == node)
                .unwrap_or_else(|| {
                    nodes.push(node);
                    nodes.len() - 1
                });
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            owners.get_mut(slots)?.fill(index as u16);
        }
        if nodes.is_empty() {
            return None;
        }
        (self.nodes, self.owners) = (nodes, owners);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Topology {
        Topology::new(&"redis+cluster://a:1,b:2/x".parse().unwrap())
    }

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let host = Value::BulkString(host.into());
        let master = Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())]);
        let replica = Value::Array(vec![Value::Nil, Value::Int(9)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    #[test]
    fn slots_are_learnt_and_unlearnt() {
        let mut topology = cluster();
        let a = Address::parse("a:1").unwrap();
        assert_eq!(topology.owner(0), None);
        let answer = Value::Array(vec![range(0, 99, "", 7), range(200, 16383, "c", 8)]);
        topology.learn(&answer, &a).unwrap();
        assert_eq!(topology.owner(99).unwrap().to_string(), "a:7");
        assert_eq!(topology.owner(100), None);
        assert_eq!(topology.owner(16383).unwrap().to_string(), "c:8");
        // The user's nodes are asked as well, in case all known nodes are gone.
        assert_eq!(topology.informants().len(), 4);
        topology.moved(100, Address::parse("[::1]:5").unwrap());
        assert_eq!(topology.owner(100).unwrap().to_string(), "[::1]:5");

        let request = |slot, ask: Option<&str>| Request {
            ask: ask.and_then(Address::parse),
            ..Request::new(slot, &[])
        };
        let requests = [
            request(0, None),
            request(150, None),
            request(1, Some("c:8")),
            request(2, None),
        ];
        let (by_node, outcomes) = topology.by_node(&requests.each_ref());
        let places: Vec<_> = by_node.iter().map(|(_, places)| places.clone()).collect();
        assert_eq!(places, [vec![0, 3], vec![2]]);
        assert!(matches!(outcomes[1], Some(Err(Failure::NotNow(_)))) && outcomes[0].is_none());
    }

    #[test]
    fn nonsense_is_not_learnt() {
        for answer in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16384, "a", 1)]),
            Value::Array(vec![range(-1, 5, "a", 1)]),
            Value::Array(vec![range(9, 5, "a", 70_000)]),
        ] {
            let a = Address::parse("a:1").unwrap();
            assert!(cluster().learn(&answer, &a).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn one_server_has_all_slots() {
        let topology = Topology::new(&"redis://a:1/x".parse().unwrap());
        assert_eq!(topology.owner(16383).unwrap().to_string(), "a:1");
    }
}
