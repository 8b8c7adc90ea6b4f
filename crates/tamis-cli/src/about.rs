//! What is known about a filter, for people and for programs.

use crate::{foreign, human, output};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use tamis::raw::{HEADER_LEN, Header, Shape};
use tamis::{AnyFilter, Body, Hasher, KeyCount, Kind};
use tamis_redis::{Layout, Node, RedisFilter, Share};

/// What is known about a filter, wherever it lives.
pub(crate) struct About {
    kind: Kind,
    /// What a module keeps to itself.
    shape: Option<Shape>,
    hasher: Option<Hasher>,
    bytes: u64,
    capacity: u64,
    pub(crate) rate: f64,
    keys: KeyCount,
    pub(crate) rate_now: f64,
    /// Whether a file has a checksum of all its bytes.
    sealed: Option<bool>,
    /// Of a filter in Redis.
    in_redis: Option<InRedis>,
}

/// What is known about a filter in Redis beside.
struct InRedis {
    time_to_live: Option<Duration>,
    generation: Option<u64>,
    module: Option<Layout>,
    shares: Vec<Share>,
    nodes: Vec<Node>,
    last_write: Option<Duration>,
}

impl About {
    pub(crate) fn of<B: Body>(filter: &AnyFilter<B>) -> Self {
        Self {
            kind: filter.kind(),
            shape: Some(filter.shape()),
            hasher: Some(*filter.hasher()),
            bytes: filter.bytes(),
            capacity: filter.capacity(),
            rate: filter.rate(),
            keys: filter.keys(),
            rate_now: filter.rate_now(),
            sealed: None,
            in_redis: None,
        }
    }

    pub(crate) fn in_file<B: Body>(path: &Path, filter: &AnyFilter<B>) -> Self {
        Self {
            sealed: is_sealed(path),
            ..Self::of(filter)
        }
    }

    pub(crate) fn in_redis(filter: &mut RedisFilter) -> Result<Self, tamis_redis::Error> {
        let (keys, rate_now) = (filter.keys()?, filter.rate_now()?);
        Ok(Self {
            kind: filter.kind(),
            shape: filter.shape(),
            hasher: filter.hasher().copied(),
            bytes: filter.bytes(),
            capacity: filter.capacity(),
            rate: filter.rate(),
            keys,
            rate_now,
            sealed: None,
            in_redis: Some(InRedis {
                time_to_live: filter.time_to_live()?,
                generation: filter.generation(),
                module: filter.module_layout(),
                shares: filter.shares()?,
                nodes: filter.nodes()?,
                last_write: filter.last_write()?,
            }),
        })
    }

    /// Says when a filter holds more than it was made for, and what that means.
    pub(crate) fn warn_if_over(&self) {
        let keys = self.keys.get();
        if keys > self.capacity {
            output::warn(format_args!(
                "the filter holds {} but was made for {}: the rate is now {} instead of {}\n\
                 hint: create a larger filter and add the keys again",
                human::counted(keys, "key"),
                human::count(self.capacity),
                human::rate(self.rate_now),
                human::rate(self.rate),
            ));
        }
    }
}

/// Whether a filter's file has a checksum of its body.
pub(crate) fn is_sealed(path: &Path) -> Option<bool> {
    let mut start = [0; HEADER_LEN];
    let mut file = foreign::regular(path).ok()?;
    file.read_exact(&mut start).ok()?;
    Some(Header::decode_without_key(&start).ok()?.is_sealed())
}

/// The same for programs.
pub(crate) fn to_json(about: &About) -> serde_json::Value {
    let (counted, keys) = match about.keys {
        KeyCount::Counted(n) => (true, n),
        KeyCount::Estimated(n) => (false, n),
    };
    let mut all = json!({
        "kind": about.kind.name(),
        "capacity": about.capacity,
        "rate": about.rate,
        "keys": keys,
        "keys_counted": counted,
        "rate_now": about.rate_now,
        "over_capacity": keys > about.capacity,
        "fill": keys as f64 / about.capacity.max(1) as f64,
        "bytes": about.bytes,
        "hash": about.hasher.map(|hasher| hasher.name()),
        "seed": match about.hasher { Some(Hasher::Fast { seed, .. }) => Some(seed), _ => None },
        "sealed": about.sealed,
        "key_rule": about.hasher.map(|hasher| json!({
            "ignore_case": hasher.rule().ignores_case(),
            "url": hasher.rule().normalises_urls(),
            "values": hasher.rule().values(),
        })),
        "seconds_to_live": about.in_redis.as_ref().and_then(|redis| {
            Some(redis.time_to_live?.as_secs_f64())
        }),
        "shape": about.shape.map(shape_json),
    });
    if let Some(redis) = &about.in_redis {
        all["generation"] = redis.generation.map(|it| format!("{it:016x}")).into();
        all["module"] = redis.module.map(module_name).into();
        all["nodes"] = shares_json(&redis.shares);
        all["servers"] = nodes_json(&redis.nodes);
        all["seconds_since_write"] = redis.last_write.map(|age| age.as_secs()).into();
    }
    all
}

fn describe_shape(shape: Shape, keys: u64) -> String {
    match shape {
        Shape::Bloom(s) => format!(
            "{}, {}",
            human::counted(s.bits(), "bit"),
            human::counted(s.hashes().into(), "hash")
        ),
        Shape::Blocked(s) => format!(
            "{} of 64 bytes, {} per key, {} in each",
            human::counted(s.lines(), "line"),
            s.lines_per_key(),
            human::counted(s.hashes_per_line().into(), "bit")
        ),
        Shape::Fuse(s) => format!(
            "fingerprints of {}, {}",
            human::counted(s.width().into(), "bit"),
            human::counted(1 << s.shard_bits(), "shard")
        ),
        Shape::Ribbon(s) => format!(
            "{}, fingerprints of {}",
            human::counted(s.rows(), "row"),
            human::counted(s.width().into(), "bit")
        ),
        Shape::Cascade(s) => format!(
            "fingerprints of {}, of which {} decide between the lists",
            human::counted(s.width().into(), "bit"),
            s.second().width()
        ),
        Shape::Counting(s) => format!(
            "{} of 512 counters, {} per key, {} in each",
            human::counted(s.lines(), "line"),
            s.lines_per_key(),
            human::counted(s.hashes_per_line().into(), "counter")
        ),
        Shape::Cuckoo(s) => format!(
            "{} of {}, places of {}, {:.1} % in use",
            human::counted(s.slots(), "slot"),
            human::counted(s.width().into(), "bit"),
            s.window(),
            keys as f64 / s.slots() as f64 * 100.0
        ),
        Shape::Growing(s) => format!(
            "{}, {} of 64 bytes in all",
            human::counted(s.layers().into(), "layer"),
            human::counted(s.lines(), "line")
        ),
        other => format!("{other:?}"),
    }
}

fn describe_hash(hasher: &Hasher) -> String {
    let name = hasher.name();
    match hasher {
        Hasher::Fast { seed, .. } => format!("{name}, seed {seed}"),
        Hasher::Keyed { in_file: true, .. } => format!("{name}, secret in the file"),
        Hasher::Keyed { .. } => format!("{name}, secret kept apart"),
        _ => name.into(),
    }
}

const fn module_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Tamis => "tamis",
        Layout::RedisBloom => "redisbloom",
        Layout::ValkeyBloom => "valkey-bloom",
        _ => "unknown",
    }
}

/// What `tamis info` prints.
pub(crate) fn describe(about: &About) -> String {
    let held = match about.keys {
        KeyCount::Counted(n) => human::count(n),
        KeyCount::Estimated(n) => format!("about {} (estimated)", human::count(n)),
    };
    let full = about.keys.get() as f64 / about.capacity.max(1) as f64 * 100.0;
    let mut out = String::new();
    let module = about.in_redis.as_ref().and_then(|redis| redis.module);
    let mut lines = vec![
        ("kind", about.kind.to_string()),
        ("size", human::size(about.bytes)),
    ];
    if let Some(layout) = module {
        lines.push(("module", format!("{} layout", module_name(layout))));
    }
    if let Some(shape) = about.shape {
        lines.push(("shape", describe_shape(shape, about.keys.get())));
    }
    if let Some(hasher) = &about.hasher {
        lines.push(("hash", describe_hash(hasher)));
        lines.push(("keys are", hasher.rule().to_string()));
    }
    // What a module does not tell, but keeps.
    let now = match module {
        Some(_) => format!("at most {}", human::rate(about.rate_now)),
        None => human::rate(about.rate_now),
    };
    lines.extend([
        ("capacity", human::counted(about.capacity, "key")),
        ("keys", format!("{held}, {full:.1} % of capacity")),
        ("rate promised", human::rate(about.rate)),
        ("rate now", now),
    ]);
    for (name, value) in lines {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{name:<14} {value}");
    }
    if about.sealed == Some(false) {
        let why = "not sealed: it was last written in place (`tamis verify --seal` seals it)";
        let _ = writeln!(out, "{:<14} {why}", "checksum");
    }
    if let Some(redis) = &about.in_redis {
        describe_servers(redis, &mut out);
    }
    out
}

fn describe_servers(redis: &InRedis, out: &mut String) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<14} {value}");
    };
    if let Some(time) = redis.time_to_live {
        line("ends in", human::duration(time));
    }
    if let Some(age) = redis.last_write {
        line("last write", format!("{} ago", human::duration(age)));
    }
    if let Some(generation) = redis.generation {
        line("generation", format!("{generation:016x}"));
    }
    let of = |node: &Node| redis.shares.iter().find(|share| share.node == node.address);
    for node in &redis.nodes {
        let Some(Share { keys, bytes, .. }) = of(node) else {
            continue;
        };
        let chunks = match redis.module {
            Some(_) => "the filter".into(),
            None => human::counted(*keys, "chunk"),
        };
        let mut about = format!("{chunks}, {} of its memory", human::size(*bytes));
        if !node.version.is_empty() {
            let most = match node.most {
                0 => "no limit".into(),
                most => human::size(most),
            };
            let _ = write!(
                about,
                "; {}, {} in use of {most}, {}",
                node.version,
                human::size(node.used),
                node.policy
            );
        }
        about.push_str(&describe_role(node));
        line(&node.address, about);
    }
}

/// What a server is to others, and how far behind; nothing of a master alone.
fn describe_role(node: &Node) -> String {
    let lag = node.lag.map_or_else(String::new, |lag| {
        format!(", {} behind", human::duration(lag))
    });
    match node.link_up {
        Some(true) => format!("; a replica{lag}"),
        Some(false) => format!("; a replica without its master{lag}"),
        None if node.replicas > 0 => {
            format!("; {}{lag}", human::counted(node.replicas, "replica"))
        }
        None => String::new(),
    }
}

fn shape_json(shape: Shape) -> serde_json::Value {
    match shape {
        Shape::Bloom(s) => json!({ "bits": s.bits(), "hashes": s.hashes() }),
        Shape::Blocked(s) => json!({
            "lines": s.lines(),
            "lines_per_key": s.lines_per_key(),
            "hashes_per_line": s.hashes_per_line(),
        }),
        Shape::Fuse(s) => json!({
            "width": s.width(),
            "shards": 1u64 << s.shard_bits(),
            "blocks": s.blocks(),
            "window": s.window(),
        }),
        Shape::Ribbon(s) => json!({ "rows": s.rows(), "width": s.width() }),
        Shape::Cascade(s) => json!({ "width": s.width() }),
        Shape::Counting(s) => json!({
            "lines": s.lines(),
            "lines_per_key": s.lines_per_key(),
            "hashes_per_line": s.hashes_per_line(),
        }),
        Shape::Cuckoo(s) => json!({
            "slots": s.slots(),
            "window": s.window(),
            "width": s.width(),
        }),
        Shape::Growing(s) => json!({
            "layers": s.layers(),
            "lines": s.lines(),
            "lines_per_key": s.lines_per_key(),
            "hashes_per_line": s.hashes_per_line(),
        }),
        other => json!(format!("{other:?}")),
    }
}

pub(crate) fn shares_json(shares: &[Share]) -> serde_json::Value {
    let share = |share: &Share| json!({ "node": share.node, "chunks": share.keys, "memory_bytes": share.bytes });
    shares.iter().map(share).collect()
}

pub(crate) fn nodes_json(nodes: &[Node]) -> serde_json::Value {
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
        })
    };
    nodes.iter().map(node).collect()
}
