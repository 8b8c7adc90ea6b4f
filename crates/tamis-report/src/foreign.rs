//! Facts about filters of other systems.

use crate::{about, human};
use serde_json::json;
use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{Foreign, Format, Keys};

/// The state of a filter: facts in its file, and those derived from its bits.
pub struct Standing<'f> {
    filter: &'f Foreign<'f>,
    fill: f64,
    rate_now: f64,
    estimated: Option<f64>,
}

impl<'f> Standing<'f> {
    /// Reads the whole filter.
    pub fn of(filter: &'f Foreign<'f>) -> Self {
        Self {
            filter,
            fill: filter.fill(),
            rate_now: filter.rate_now(),
            estimated: filter.keys_now(),
        }
    }

    /// Facts that the file doesn't contain.
    fn not_said(&self) -> Vec<&'static str> {
        let facts = self.filter.facts();
        [
            ("capacity", facts.capacity.is_none()),
            ("rate", facts.rate.is_none()),
            ("keys", facts.keys.is_none()),
            ("key_encoding", self.filter.keys().len() > 1),
            ("hash", !facts.other_hashes.is_empty()),
        ]
        .into_iter()
        .filter_map(|(what, open)| open.then_some(what))
        .collect()
    }

    /// The state as JSON.
    pub fn to_json(&self, name: Option<&str>) -> serde_json::Value {
        let facts = self.filter.facts();
        let names: Vec<&str> = self.filter.keys().iter().map(|keys| keys.name()).collect();
        json!({
            "format": self.filter.format().name(),
            "name": name,
            "gzipped": self.filter.is_gzipped(),
            "bits": self.filter.bits(),
            "hashes": self.filter.hashes(),
            "hash": facts.hash.map(Hash::name),
            "key_encodings": names,
            "capacity": facts.capacity,
            "rate": facts.rate,
            "keys": facts.keys,
            "keys_estimated": self.estimated.map(|keys| keys.round() as u64),
            "fill": self.fill,
            "rate_now": self.rate_now,
            "data_bytes": facts.data,
            "not_said": self.not_said(),
        })
    }

    /// The output of `tamis info` for a filter in a file of this size.
    pub fn describe(&self, name: Option<&str>, size: u64) -> String {
        let filter = self.filter;
        let facts = filter.facts();
        let not_said = || "the file does not say".to_owned();
        let estimated = match self.estimated {
            Some(keys) => format!("about {} (estimated)", human::count(keys.round() as u64)),
            None => "unknown: every bit is set".into(),
        };
        let keys = match facts.keys {
            Some(keys) => format!("{} (the file's count), {estimated}", human::count(keys)),
            None => estimated,
        };
        let packed = match (filter.is_gzipped(), filter.is_packed()) {
            (true, _) => ", gzipped",
            (_, true) => ", as text",
            _ => "",
        };
        let mut out = String::new();
        let mut line = |name: &str, value: String| out += &about::line(name, &value);
        line("format", filter.format().to_string());
        if let Some(name) = name {
            line("name", name.into());
        }
        line("size", format!("{}{packed}", human::size(size)));
        line("shape", shape(filter));
        if let Some(hash) = facts.hash {
            let doubt = if facts.other_hashes.is_empty() {
                ""
            } else {
                " (assumed: the file does not say: hash=)"
            };
            line("hashed by", format!("{hash}{doubt}"));
        }
        line("keys are", key_names(filter));
        line(
            "capacity",
            facts
                .capacity
                .map_or_else(not_said, |keys| human::counted(keys, "key")),
        );
        line("keys", keys);
        line(
            "rate promised",
            facts.rate.map_or_else(not_said, human::rate),
        );
        line(
            "rate now",
            format!("{} (computed)", human::rate(self.rate_now)),
        );
        line("fill", format!("{:.1} % (computed)", self.fill * 100.0));
        if facts.data > 0 {
            line(
                "data",
                format!(
                    "{} behind the filter",
                    human::counted(facts.data as u64, "byte")
                ),
            );
        }
        out
    }
}

fn shape(filter: &Foreign<'_>) -> String {
    let bits = human::counted(filter.bits(), "bit");
    match filter.hashes() {
        Some(hashes) => format!("{bits}, {}", human::counted(hashes, "hash")),
        None if filter.format() == Format::RedisCuckoo => {
            format!("{} of 8 bits", human::counted(filter.bits() / 8, "slot"))
        }
        None => bits,
    }
}

fn key_names(filter: &Foreign<'_>) -> String {
    match filter.keys() {
        [only] => only.to_string(),
        choices => {
            let names: Vec<&str> = choices.iter().copied().map(Keys::name).collect();
            format!(
                "one of {}: the file does not say which (--format keys=HOW)",
                names.join(", ")
            )
        }
    }
}

/// A warning for a filter with more keys than its capacity and a rate above the promised one.
pub fn overfull(filter: &Foreign<'_>) -> Option<String> {
    let facts = filter.facts();
    let keys = facts
        .keys
        .or_else(|| Some(filter.keys_now()?.round() as u64))?;
    let (capacity, rate, rate_now) = (facts.capacity?, facts.rate?, filter.rate_now());
    (keys > capacity && rate_now > rate).then(|| {
        let text = about::overfull(&human::counted(keys, "key"), capacity, rate_now, rate);
        format!("{text}\nhint: build a larger filter from the keys")
    })
}
