//! A Redis Cluster: three masters with a replica each.

use super::server::{Server, until};
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a node may be silent before the others consider it dead: long
/// enough for a busy machine, short enough to wait for a failover.
const NODE_TIMEOUT: &str = "cluster-node-timeout 3000";

/// Starting a node, agreeing in the cluster and taking over take seconds each,
/// but tests share the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Six servers that agree on the owners of slots.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<Server>,
}

/// A line of `CLUSTER NODES`.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) port: u16,
    pub(crate) failed: bool,
    /// For a replica, the id of its master.
    pub(crate) replica_of: Option<String>,
    pub(crate) slots: Vec<RangeInclusive<u16>>,
}

impl Cluster {
    /// A cluster that is ready for commands, with these lines in each node's
    /// configuration.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let all = [
            &["cluster-enabled yes", NODE_TIMEOUT],
            // A replica takes over however long ago it lost its master.
            &["cluster-replica-validity-factor 0", "appendfsync no"],
            settings,
        ]
        .concat();
        let servers: Vec<_> = (0..6).map(|_| Server::start(&all)).collect();
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(servers.iter().map(Server::address))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli is there (Debian has it in redis-tools)");
        let said = String::from_utf8_lossy(&created.stdout);
        assert!(
            created.status.success(),
            "redis-cli --cluster create: {said}"
        );
        let cluster = Self { servers };
        cluster.wait();
        cluster
    }

    /// The location of a filter with this name. Lists two nodes, so that one of
    /// them may be down.
    pub(crate) fn location(&self, name: &str) -> String {
        let [first, .., last] = &self.servers[..] else {
            unreachable!("a cluster has six servers")
        };
        format!(
            "redis+cluster://{},{}/{name}",
            first.address(),
            last.address()
        )
    }

    fn up(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.is_up())
    }

    pub(crate) fn server(&self, port: u16) -> &Server {
        let found = self.servers.iter().find(|server| server.port() == port);
        found.expect("a node of this cluster")
    }

    pub(crate) fn server_mut(&mut self, port: u16) -> &mut Server {
        let found = self.servers.iter_mut().find(|server| server.port() == port);
        found.expect("a node of this cluster")
    }

    /// All nodes, as seen by one that is up.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let server = self.up().next().expect("a node is up");
        nodes_seen_by(server).expect("a node that is up answers")
    }

    /// The masters that have slots and are up.
    pub(crate) fn masters(&self) -> Vec<Node> {
        let mut nodes = self.nodes();
        nodes.retain(|node| !node.slots.is_empty() && !node.failed);
        nodes
    }

    /// The master that owns a slot.
    pub(crate) fn owner(&self, slot: u16) -> Node {
        let has = |node: &Node| node.slots.iter().any(|range| range.contains(&slot));
        self.masters()
            .into_iter()
            .find(has)
            .expect("every slot has an owner")
    }

    pub(crate) fn slot_of(&self, key: &str) -> u16 {
        let server = self.up().next().expect("a node is up");
        server.cli(&["CLUSTER", "KEYSLOT", key]).parse().unwrap()
    }

    /// All keys of the cluster with this prefix, with their masters.
    pub(crate) fn keys(&self, beginning: &str) -> Vec<(String, Node)> {
        let mut keys = Vec::new();
        for node in self.masters() {
            let listed = self
                .server(node.port)
                .cli(&["KEYS", &format!("{beginning}*")]);
            keys.extend(listed.lines().map(|key| (key.to_string(), node.clone())));
        }
        keys
    }

    /// Waits until all nodes that are up agree: every slot is on a master that
    /// is up, and every replica is in sync.
    pub(crate) fn wait(&self) {
        until("the cluster to agree", PATIENCE, || {
            let mut views = self.up().map(|server| {
                let in_step = server.info("replication", "role").as_deref() == Some("master")
                    || server.info("replication", "master_link_status").as_deref() == Some("up");
                let ok = server
                    .try_cli(&["CLUSTER", "INFO"])
                    .is_ok_and(|info| info.contains("cluster_state:ok"));
                let mut nodes = nodes_seen_by(server)?;
                nodes.retain(|node| !node.failed);
                nodes.sort_by_key(|node| node.port);
                let owners: Vec<_> = nodes
                    .into_iter()
                    .map(|node| (node.port, node.replica_of, node.slots))
                    .collect();
                (in_step && ok && owners.len() == self.up().count()).then_some(owners)
            });
            let first = views.next().flatten();
            first.is_some() && views.all(|view| view == first)
        });
    }

    /// Kills a node, like a crash, and waits until the others agree again.
    pub(crate) fn lose(&mut self, port: u16) {
        self.server_mut(port).kill();
        let lost = move |nodes: Vec<Node>| {
            let mut serving = nodes.iter().filter(|node| !node.slots.is_empty());
            serving.all(|node| node.port != port)
        };
        until("a replica to take over", PATIENCE, || {
            self.up()
                .all(|server| nodes_seen_by(server).is_some_and(lost))
        });
        self.wait();
    }

    /// Starts to move a slot: from now on, its old master redirects clients to
    /// the new one (ASK) for keys that it no longer has.
    pub(crate) fn open_move(&self, slot: u16, to: &Node) {
        let from = self.owner(slot);
        let slot = slot.to_string();
        let set = ["CLUSTER", "SETSLOT", &slot];
        let (old, new) = (self.server(from.port), self.server(to.port));
        new.cli(&[&set[..], &["IMPORTING", &from.id]].concat());
        old.cli(&[&set[..], &["MIGRATING", &to.id]].concat());
    }

    /// Moves its keys.
    pub(crate) fn move_keys(&self, slot: u16, to: &Node) {
        let old = self.server(self.owner(slot).port);
        loop {
            let keys = old.cli(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "16"]);
            let keys: Vec<_> = keys.lines().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() {
                return;
            }
            let port = to.port.to_string();
            let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"];
            old.cli(&[&migrate[..], &keys].concat());
        }
    }

    /// Assigns the slot to the new master. From now on, the old one answers
    /// MOVED.
    pub(crate) fn close_move(&self, slot: u16, to: &Node) {
        let from = self.owner(slot);
        let slot = slot.to_string();
        for port in [to.port, from.port] {
            self.server(port)
                .cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.id]);
        }
    }
}

fn nodes_seen_by(server: &Server) -> Option<Vec<Node>> {
    let text = server.try_cli(&["CLUSTER", "NODES"]).ok()?;
    Some(text.lines().map(parse).collect())
}

/// `ID IP:PORT@BUS FLAGS MASTER PING PONG EPOCH LINK SLOTS…`
fn parse(line: &str) -> Node {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [id, address, flags, master, _, _, _, _, slots @ ..] = &fields[..] else {
        panic!("CLUSTER NODES said {line:?}")
    };
    let (_, port) = address.split_once('@').unwrap().0.rsplit_once(':').unwrap();
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        first.parse().unwrap()..=last.parse().unwrap()
    };
    Node {
        id: id.to_string(),
        port: port.parse().unwrap(),
        failed: flags.split(',').any(|flag| flag == "fail"),
        replica_of: (*master != "-").then(|| master.to_string()),
        // Moving slots are in brackets, next to the ranges that contain them.
        slots: (slots.iter().filter(|text| !text.starts_with('[')))
            .map(|text| range(text))
            .collect(),
    }
}
