//! The memory of a filter in Redis or Valkey, for each way to keep it there:
//! for `tamis plan --redis` and the page's calculator.

use crate::human;
use serde_json::{Value, json};
use tamis::internals::plan::server as memory;
use tamis::{Error, Kind, Plan};
use tamis_formats::RedissonShape;
use tamis_formats::redisbloom::Chain;

/// Redisson's own limit.
pub const MOST_REDISSON_BITS: u64 = 2 * i32::MAX as u64;

/// For higher rates, a module uses this one.
const HIGHEST_MODULE_RATE: f64 = 0.25;

/// A way to keep a filter in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In plain strings, without a module.
    Strings(Kind),
    /// In Tamis's module.
    Module(Kind),
    /// In a module with RedisBloom's layout: RedisBloom, or Tamis's with
    /// `COMPATIBLE yes`.
    RedisBloom,
    /// As by Redisson, with `SETBIT`.
    Redisson,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 7] = [
        Self::Strings(Kind::Blocked),
        Self::Strings(Kind::Counting),
        Self::Strings(Kind::Growing),
        Self::Module(Kind::Growing),
        Self::Module(Kind::Cuckoo),
        Self::RedisBloom,
        Self::Redisson,
    ];

    /// The name, in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strings(_) => "strings",
            Self::Module(_) => "module",
            Self::RedisBloom => "redisbloom",
            Self::Redisson => "redisson",
        }
    }

    /// The kind of filter.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Strings(kind) | Self::Module(kind) => kind,
            Self::RedisBloom | Self::Redisson => Kind::Bloom,
        }
    }

    /// How to create it: words after `tamis create redis://… --capacity N -p
    /// P`, or a server's command.
    fn command(self, keys: u64, rate: f64) -> String {
        let words = match self {
            Self::RedisBloom => return format!("BF.RESERVE seen {rate} {keys}"),
            Self::Strings(Kind::Blocked) => String::new(),
            Self::Strings(kind) => format!(" --kind {kind}"),
            Self::Module(Kind::Growing) => " --module".into(),
            Self::Module(kind) => format!(" --module --kind {kind}"),
            Self::Redisson => " --format redisson".into(),
        };
        format!("tamis create redis://127.0.0.1/0/seen --capacity {keys} -p {rate}{words}")
    }

    /// The memory that it needs, or why it isn't possible.
    fn plan(self, keys: u64, rate: f64) -> Result<InServer, String> {
        if keys == 0 {
            // The other systems round up to one key.
            return Err("number of keys: expected at least 1, got 0".into());
        }
        let of_plan = |plan: Result<Plan, Error>, memory: fn(&Plan) -> u64| {
            let plan = plan.map_err(|error| error.to_string())?;
            let memory = memory(&plan);
            Ok::<_, String>((plan.bytes(), (memory, memory), plan.hashes()))
        };
        let module_rate = rate.min(HIGHEST_MODULE_RATE);
        let (bytes, memory, hashes) = match self {
            Self::Strings(kind) => of_plan(Plan::one_line(kind, keys, rate), memory::of_strings)?,
            Self::Module(kind) => of_plan(Plan::in_module(kind, keys, module_rate), |plan| {
                memory::in_module(plan.bytes())
            })?,
            Self::RedisBloom => {
                let shape = Chain::shape_of_new(keys, module_rate, Some(2));
                let (bits, hashes) = shape.map_err(|error| error.to_string())?;
                let memory = memory::in_module(bits / 8);
                (bits / 8, (memory, memory), hashes as u32)
            }
            Self::Redisson => {
                let shape = RedissonShape::for_keys(keys, rate);
                let shape = shape.map_err(|error| error.to_string())?;
                if shape.size() > MOST_REDISSON_BITS {
                    return Err(format!(
                        "redisson has at most {} bits, and this takes {}",
                        human::count(MOST_REDISSON_BITS),
                        human::count(shape.size())
                    ));
                }
                let bytes = shape.size().div_ceil(8);
                (bytes, memory::of_bitmap(bytes), shape.hashes())
            }
        };
        Ok(InServer {
            way: self,
            keys,
            rate,
            bytes,
            memory,
            hashes: Some(hashes).filter(|_| self != Self::Module(Kind::Cuckoo)),
        })
    }
}

/// A full filter in a server.
#[derive(Clone, Copy, Debug)]
pub struct InServer {
    /// How the filter is kept.
    pub way: Way,
    keys: u64,
    rate: f64,
    /// The size of the filter itself.
    pub bytes: u64,
    /// The least and the most that `MEMORY USAGE` reports for all its keys in
    /// Redis.
    pub memory: (u64, u64),
    /// The bits or counters per key.
    pub hashes: Option<u32>,
}

/// All possible ways, and why others aren't possible.
pub struct Ways {
    /// The possible ways.
    pub rows: Vec<InServer>,
    /// The impossible ways, with the reason.
    pub left_out: Vec<(Way, String)>,
}

impl Ways {
    /// Plans each way for this many keys at this rate.
    pub fn new(keys: u64, rate: f64) -> Self {
        let (mut rows, mut left_out) = (Vec::new(), Vec::new());
        for way in Way::ALL {
            match way.plan(keys, rate) {
                Ok(row) => rows.push(row),
                Err(why) => left_out.push((way, why)),
            }
        }
        Self { rows, left_out }
    }

    /// The possible ways as JSON.
    pub fn json(&self) -> Vec<Value> {
        self.rows.iter().map(InServer::json).collect()
    }

    /// The impossible ways as JSON.
    pub fn left_out_json(&self) -> Vec<Value> {
        let one = |(way, why): &(Way, String)| json!({ "way": way.name(), "kind": way.kind().name(), "left_out": why });
        self.left_out.iter().map(one).collect()
    }
}

impl InServer {
    /// The most server memory per key, in bits.
    pub fn bits_per_key(&self) -> f64 {
        self.memory.1 as f64 * 8.0 / self.keys.max(1) as f64
    }

    /// `4.85 MB`, or `3.15 to 4.19 MB`.
    pub fn memory_text(&self) -> String {
        let (least, most) = (human::size(self.memory.0), human::size(self.memory.1));
        if least == most {
            return most;
        }
        match (least.rsplit_once(' '), most.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => {
                format!("{number} to {most}")
            }
            _ => format!("{least} to {most}"),
        }
    }

    /// The cost of a new key, where it was measured: in strings.
    pub fn cost(&self) -> Option<ServerCost> {
        match (self.way, self.hashes) {
            (Way::Strings(kind), Some(hashes)) => Some(ServerCost::of(kind, hashes)),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let cost = self.cost();
        json!({
            "way": self.way.name(),
            "kind": self.way.kind().name(),
            "keys": self.keys,
            "rate": self.rate,
            "bytes": self.bytes,
            "memory_bytes": self.memory.0,
            "memory_bytes_at_most": self.memory.1,
            "size": human::size(self.bytes),
            "memory": self.memory_text(),
            "bits_per_key": self.bits_per_key(),
            "hashes": self.hashes,
            "server_time_in_sadd": cost.as_ref().map(|cost| cost.time),
            "server_time_in_sadd_with_aof": cost.as_ref().map(|cost| cost.time_with_log),
            "aof_bytes_per_new_key": cost.as_ref().map(|cost| cost.logged_bytes),
            "command": self.way.command(self.keys, self.rate),
        })
    }
}

/// The cost of a new key for a Redis server.
pub struct ServerCost {
    /// As a multiple of the time of `SADD` for the same keys, with one command
    /// per key.
    pub time: f64,
    /// The same on a server with an append-only file.
    pub time_with_log: f64,
    /// Bytes written to that file, and sent to each replica.
    pub logged_bytes: f64,
}

impl ServerCost {
    /// Each bit or counter takes four arguments of a command that twelve keys
    /// share; times were measured on Redis 7.0.
    fn of(kind: Kind, hashes: u32) -> Self {
        let cells = f64::from(hashes);
        let argument_bytes = match kind {
            Kind::Counting => 40.0,
            _ => 37.5,
        };
        Self {
            time: 0.25 + 0.2 * cells,
            time_with_log: 0.05 + 0.32 * cells,
            logged_bytes: 9.0 + argument_bytes * cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_t_be_had_says_why() {
        let ways = Ways::new(1_000_000, 1e-5);
        assert_eq!((ways.rows.len(), ways.left_out.len()), (7, 0));
        for row in &ways.rows {
            let (least, most) = row.memory;
            assert!(row.bytes < least && least <= most, "{row:?}");
        }
        // At such a low rate, strings would take more memory than digests.
        let ways = Ways::new(1_000_000, 1e-12);
        let out: Vec<_> = ways.left_out.iter().map(|(way, _)| way.name()).collect();
        assert_eq!(out, ["strings", "strings", "strings", "module"]);
        let why = &ways.left_out[3].1;
        assert!(why.contains("11 layers"), "{why}");
        // A Redis string ends at 512 MiB.
        let ways = Ways::new(10_000_000_000, 0.01);
        assert_eq!(ways.left_out.len(), 1);
        assert_eq!(ways.left_out[0].0, Way::Redisson);
    }

    #[test]
    fn a_range_has_one_unit() {
        let of = |memory| InServer {
            memory,
            ..Way::Redisson.plan(1000, 0.01).unwrap()
        };
        assert_eq!(of((3_145_000, 4_194_000)).memory_text(), "3.15 to 4.19 MB");
        assert_eq!(of((900_000, 1_800_000)).memory_text(), "900 kB to 1.80 MB");
        assert_eq!(of((5_000, 5_001)).memory_text(), "5.00 kB");
    }
}
