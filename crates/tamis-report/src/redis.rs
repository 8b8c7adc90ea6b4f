//! Facts about filters in Redis, and about their servers.

use crate::about::About;
use crate::{human, window};
use serde_json::{Value, json};
use tamis::internals::raw::Shape;
use tamis_redis::{Error, Layout, Node, RedisFilter, Share};

/// Queries the servers of a filter.
pub fn about(filter: &mut RedisFilter) -> Result<About, Error> {
    let (keys, rate_now) = (filter.keys()?, filter.rate_now()?);
    let module = filter.module_layout().map(module_name);
    let time_to_live = filter.time_to_live()?;
    let (shares, nodes) = (filter.shares()?, filter.nodes()?);
    let last_write = filter.last_write()?;
    let generation = filter.generation().map(|it| format!("{it:016x}"));
    let mut fields = vec![
        ("generation", json!(generation)),
        ("module", json!(module)),
        ("nodes", shares_json(&shares)),
        ("servers", nodes_json(&nodes)),
        (
            "seconds_since_write",
            json!(last_write.map(|age| age.as_secs())),
        ),
    ];
    let mut lines = Vec::new();
    if let Some(Shape::Window(shape)) = filter.shape() {
        let (options, generations) = (shape.options(), filter.generations()?);
        fields.push(("window", window::json_of(&options, &generations)));
        lines = window::lines_of(&options, None, &generations);
    }
    if let Some(time) = time_to_live {
        lines.push(("ends in".into(), human::duration(time)));
    }
    if let Some(age) = last_write {
        lines.push(("last write".into(), format!("{} ago", human::duration(age))));
    }
    if let Some(generation) = generation {
        lines.push(("generation".into(), generation));
    }
    for node in &nodes {
        if let Some(share) = shares.iter().find(|share| share.node == node.address) {
            lines.push((
                node.address.clone(),
                describe_node(node, share, module.is_some()),
            ));
        }
    }
    Ok(About {
        kind: filter.kind(),
        shape: filter.shape(),
        hasher: filter.hasher().copied(),
        bytes: filter.bytes(),
        file_bytes: None,
        capacity: filter.capacity(),
        rate: filter.rate(),
        keys,
        undercounted: None,
        rate_now,
        sealed: None,
        module,
        time_to_live,
        fields,
        lines,
    })
}

const fn module_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Tamis => "tamis",
        Layout::RedisBloom => "redisbloom",
        Layout::ValkeyBloom => "valkey-bloom",
        _ => "unknown",
    }
}

fn describe_node(node: &Node, share: &Share, has_module: bool) -> String {
    let chunks = if has_module {
        "the filter".into()
    } else {
        human::counted(share.keys, "chunk")
    };
    let server = if node.version.is_empty() {
        String::new()
    } else {
        let most = match node.most {
            0 => "no limit".into(),
            most => human::size(most),
        };
        let (version, used) = (&node.version, human::size(node.used));
        format!("; {version}, {used} in use of {most}, {}", node.policy)
    };
    let memory = human::size(share.bytes);
    format!(
        "{chunks}, {memory} of its memory{server}{}",
        describe_role(node)
    )
}

/// The role of a server and its lag; empty for a master without replicas.
fn describe_role(node: &Node) -> String {
    let lag = node
        .lag
        .map(|lag| format!(", {} behind", human::duration(lag)));
    let lag = lag.unwrap_or_default();
    match node.link_up {
        Some(true) => format!("; a replica{lag}"),
        Some(false) => format!("; a replica without its master{lag}"),
        None if node.replicas > 0 => {
            format!("; {}{lag}", human::counted(node.replicas, "replica"))
        }
        None => String::new(),
    }
}

/// A filter's share of each server, as JSON.
pub fn shares_json(shares: &[Share]) -> Value {
    let share = |share: &Share| json!({ "node": share.node, "chunks": share.keys, "memory_bytes": share.bytes });
    shares.iter().map(share).collect()
}

/// The servers of a filter, as JSON.
pub fn nodes_json(nodes: &[Node]) -> Value {
    let node = |node: &Node| {
        json!({
            "node": node.address,
            "version": node.version,
            "used_bytes": node.used,
            "most_bytes": node.most,
            "policy": node.policy,
            "role": node.role,
            "link_up": node.link_up,
            "lag_seconds": node.lag.map(|lag| lag.as_secs()),
            "replicas": node.replicas,
            "unreachable": node.unreachable,
        })
    };
    nodes.iter().map(node).collect()
}
