//! Facts about a filter, as text and as JSON.

use crate::{human, window};
use serde_json::{Value, json};
use std::time::Duration;
use tamis::internals::raw::{Header, Shape};
use tamis::{AnyFilter, Hasher, KeyCount, Kind, body::Body};

/// Facts about a filter, wherever it lives.
pub struct About {
    pub(crate) kind: Kind,
    /// `None` for a module's filter: modules don't reveal it.
    pub(crate) shape: Option<Shape>,
    pub(crate) hasher: Option<Hasher>,
    /// The size of the filter itself.
    pub(crate) bytes: u64,
    /// The size of the file, including its header.
    pub(crate) file_bytes: Option<u64>,
    pub(crate) capacity: u64,
    /// The promised rate.
    pub rate: f64,
    pub(crate) keys: KeyCount,
    /// The estimate from the bits, if the count is too low.
    pub(crate) undercounted: Option<u64>,
    /// The rate to expect now.
    pub rate_now: f64,
    /// Whether the file has a checksum of all its bytes.
    pub(crate) sealed: Option<bool>,
    /// The name of the server module that keeps it.
    pub(crate) module: Option<&'static str>,
    pub(crate) time_to_live: Option<Duration>,
    /// Additional fields of the JSON, and additional lines of the text.
    pub(crate) fields: Vec<(&'static str, Value)>,
    pub(crate) lines: Vec<(String, String)>,
}

impl About {
    /// Facts about a filter in memory.
    pub fn of<B: Body>(filter: &AnyFilter<B>) -> Self {
        let (fields, lines) = match filter {
            AnyFilter::Window(w) => (vec![("window", window::json(w))], window::lines(w)),
            _ => Default::default(),
        };
        Self {
            kind: filter.kind(),
            shape: Some(filter.shape()),
            hasher: Some(*filter.hasher()),
            bytes: filter.bytes(),
            file_bytes: None,
            capacity: filter.capacity(),
            rate: filter.rate(),
            keys: filter.keys(),
            undercounted: filter.undercounted(),
            rate_now: filter.rate_now(),
            sealed: None,
            module: None,
            time_to_live: None,
            fields,
            lines,
        }
    }

    /// Facts about a filter in a file.
    #[cfg(feature = "files")]
    pub fn in_file<B: Body>(path: &std::path::Path, filter: &AnyFilter<B>) -> Self {
        Self {
            sealed: is_sealed(path),
            file_bytes: std::fs::metadata(path).ok().map(|file| file.len()),
            ..Self::of(filter)
        }
    }

    /// Facts about a filter in the bytes of a file.
    pub fn in_bytes<B: Body>(file: &[u8], filter: &AnyFilter<B>) -> Self {
        Self {
            sealed: says_sealed(file),
            file_bytes: Some(file.len() as u64),
            ..Self::of(filter)
        }
    }

    /// A warning for a filter with more keys than its capacity.
    pub fn overfull(&self) -> Option<String> {
        self.is_overfull().then(|| {
            let about = self.undercounted.map_or("", |_| "about ");
            let keys = about.to_owned() + &human::counted(self.best_count(), "key");
            let text = overfull(&keys, self.capacity, self.rate_now, self.rate);
            format!("{text}\nhint: create a larger filter and add the keys again")
        })
    }

    /// A window has one more generation than it was made for, so only its rate counts.
    fn is_overfull(&self) -> bool {
        match self.kind {
            Kind::Window => window::is_over(self.rate_now, self.rate),
            _ => self.best_count() > self.capacity,
        }
    }

    /// The best available number of keys.
    fn best_count(&self) -> u64 {
        self.undercounted.unwrap_or(self.keys.get())
    }
}

pub(crate) fn overfull(keys: &str, capacity: u64, rate_now: f64, rate: f64) -> String {
    format!(
        "the filter holds {keys} but was made for {}: the rate is now {} instead of {}",
        human::count(capacity),
        human::rate(rate_now),
        human::rate(rate),
    )
}

/// Whether a filter's file has a checksum of its body.
#[cfg(feature = "files")]
pub fn is_sealed(path: &std::path::Path) -> Option<bool> {
    use std::io::Read as _;
    let mut start = [0; tamis::internals::raw::HEADER_LEN];
    let mut file = tamis::internals::file::open_regular(path, false).ok()?;
    file.read_exact(&mut start).ok()?;
    says_sealed(&start)
}

/// The same, given the beginning of the file.
fn says_sealed(start: &[u8]) -> Option<bool> {
    Some(Header::decode_without_key(start).ok()?.is_sealed())
}

/// The facts as JSON.
pub fn to_json(about: &About) -> Value {
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
        "keys_at_least": about.undercounted.is_some(),
        "keys_estimated": about.undercounted,
        "rate_now": about.rate_now,
        "over_capacity": about.is_overfull(),
        "fill": about.best_count() as f64 / about.capacity.max(1) as f64,
        "bytes": about.bytes,
        "hash": about.hasher.map(|hasher| hasher.name()),
        "seed": match about.hasher { Some(Hasher::Fast { seed, .. }) => Some(seed), _ => None },
        "sealed": about.sealed,
        "key_rule": about.hasher.map(|hasher| json!({
            "ignore_case": hasher.rule().ignores_case(),
            "url": hasher.rule().normalises_urls(),
            "values": hasher.rule().values(),
        })),
        "seconds_to_live": about.time_to_live.map(|time| time.as_secs_f64()),
        "shape": about.shape.map(shape_json),
    });
    if let Some(bytes) = about.file_bytes {
        all["file_bytes"] = bytes.into();
    }
    for (name, value) in &about.fields {
        all[name] = value.clone();
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
        Shape::Window(s) => format!(
            "{}, the first of {} of {} slots of {} bits",
            human::counted(s.table_count().into(), "table"),
            human::counted(s.bins(), "bin"),
            s.slots_of_bin(),
            s.slot_bits()
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

/// The output of `tamis info`.
pub fn describe(about: &About) -> String {
    let held = match (about.keys, about.undercounted) {
        (KeyCount::Counted(n), None) => human::count(n),
        (KeyCount::Counted(n), Some(more)) if more > n => format!(
            "at least {}, about {} by the bits that are set",
            human::count(n),
            human::count(more)
        ),
        (KeyCount::Counted(n), Some(_)) => format!("at least {}", human::count(n)),
        (KeyCount::Estimated(n), _) => format!("about {} (estimated)", human::count(n)),
    };
    let full = about.best_count() as f64 / about.capacity.max(1) as f64 * 100.0;
    let mut lines = vec![
        ("kind", about.kind.to_string()),
        ("size", human::size(about.file_bytes.unwrap_or(about.bytes))),
    ];
    if let Some(module) = about.module {
        lines.push(("module", format!("{module} layout")));
    }
    if let Some(shape) = about.shape {
        lines.push(("shape", describe_shape(shape, about.keys.get())));
    }
    if let Some(hasher) = &about.hasher {
        lines.push(("hash", describe_hash(hasher)));
        lines.push(("keys are", hasher.rule().to_string()));
    }
    // A module keeps its promise, but doesn't report the current rate.
    let at_most = about.module.map_or("", |_| "at most ");
    lines.extend([
        ("capacity", human::counted(about.capacity, "key")),
        ("keys", format!("{held}, {full:.1} % of capacity")),
        ("rate promised", human::rate(about.rate)),
        (
            "rate now",
            at_most.to_owned() + &human::rate(about.rate_now),
        ),
    ]);
    if about.sealed == Some(false) {
        let why = "not sealed: it was last written in place (`tamis verify --seal` seals it)";
        lines.push(("checksum", why.into()));
    }
    let lines = lines.iter().map(|(name, value)| line(name, value));
    let more = about.lines.iter().map(|(name, value)| line(name, value));
    lines.chain(more).collect()
}

/// A line of a description.
pub(crate) fn line(name: &str, value: &str) -> String {
    format!("{name:<14} {value}\n")
}

/// The lines of a shape, the lines per key, and the bits or counters of a key in each.
pub(crate) fn lines_of(shape: Shape) -> Option<(u64, u32, u32)> {
    Some(match shape {
        Shape::Blocked(s) => (s.lines(), s.lines_per_key(), s.hashes_per_line()),
        Shape::Counting(s) => (s.lines(), s.lines_per_key(), s.hashes_per_line()),
        Shape::Growing(s) => (s.lines(), s.lines_per_key(), s.hashes_per_line()),
        _ => return None,
    })
}

fn shape_json(shape: Shape) -> Value {
    if let Some((lines, per_key, per_line)) = lines_of(shape) {
        let mut all =
            json!({ "lines": lines, "lines_per_key": per_key, "hashes_per_line": per_line });
        if let Shape::Growing(shape) = shape {
            all["layers"] = shape.layers().into();
        }
        return all;
    }
    match shape {
        Shape::Bloom(s) => json!({ "bits": s.bits(), "hashes": s.hashes() }),
        Shape::Fuse(s) => json!({
            "width": s.width(),
            "shards": 1u64 << s.shard_bits(),
            "blocks": s.blocks(),
            "window": s.window(),
        }),
        Shape::Ribbon(s) => json!({ "rows": s.rows(), "width": s.width() }),
        Shape::Cascade(s) => json!({ "width": s.width() }),
        Shape::Cuckoo(s) => {
            json!({ "slots": s.slots(), "window": s.window(), "width": s.width() })
        }
        Shape::Window(s) => json!({
            "tables": s.table_count(),
            "bins": s.bins(),
            "slots_of_bin": s.slots_of_bin(),
            "slot_bits": s.slot_bits(),
        }),
        other => json!(format!("{other:?}")),
    }
}
