use crate::location::{KeyFile, named};
use crate::{Exit, human, output};
use anyhow::Result;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use tamis::{AnyFilter, Body, Hasher, KeyCount, Shape};

/// Tell what a filter is and how full, or what an index has
///
/// Reads the whole filter to tell its fill and the rate to expect now. Of an
/// index, tells which files have changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter or index
    filter: PathBuf,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if crate::index::is_index(&args.filter) {
        return crate::index::tell::info(&args.filter, args.json);
    }
    let filter = args
        .key
        .open()?
        .map(&args.filter)
        .map_err(named(&args.filter))?;
    let keys = filter.keys();
    let rate_now = filter.rate_now();
    if args.json {
        let (counted, number) = match keys {
            KeyCount::Counted(n) => (true, n),
            KeyCount::Estimated(n) => (false, n),
        };
        let info = json!({
            "kind": filter.kind().name(),
            "capacity": filter.capacity(),
            "rate": filter.rate(),
            "keys": number,
            "keys_counted": counted,
            "rate_now": rate_now,
            "over_capacity": number > filter.capacity(),
            "bytes": filter.bytes(),
            "hash": filter.hasher().name(),
            "seed": match filter.hasher() { Hasher::Fast { seed } => Some(*seed), _ => None },
            "shape": shape_json(filter.shape()),
        });
        output::print(&format!("{info:#}\n"))?;
    } else {
        output::print(&describe(&filter, keys, rate_now))?;
    }
    warn_if_over(&filter, rate_now);
    Ok(Exit::Done)
}

fn describe<B: Body>(filter: &AnyFilter<B>, keys: KeyCount, rate_now: f64) -> String {
    let shape = match filter.shape() {
        Shape::Bloom(s) => format!("{} bits, {} hashes", human::count(s.bits()), s.hashes()),
        Shape::Blocked(s) => format!(
            "{} lines of 64 bytes, {} per key, {} bits in each",
            human::count(s.lines()),
            s.lines_per_key(),
            s.hashes_per_line()
        ),
        Shape::Fuse(s) => format!(
            "{}-wise, fingerprints of {} bits, {} shards",
            s.arity(),
            s.width(),
            1u64 << s.shard_bits()
        ),
        Shape::Ribbon(s) => format!(
            "{} rows, fingerprints of {} bits",
            human::count(s.rows()),
            s.width()
        ),
        Shape::Cascade(s) => format!(
            "fingerprints of {} bits, of which {} decide between the lists",
            s.width(),
            s.second().width()
        ),
        Shape::Counting(s) => format!(
            "{} lines of 128 counters, {} per key, {} counters in each",
            human::count(s.lines()),
            s.lines_per_key(),
            s.hashes_per_line()
        ),
        Shape::Cuckoo(s) => format!(
            "{} slots of {} bits, places of {}, {:.1} % in use",
            human::count(s.slots()),
            s.width(),
            s.window(),
            keys.get() as f64 / s.slots() as f64 * 100.0
        ),
        Shape::Growing(s) => format!(
            "{} layers, {} lines of 64 bytes in all",
            s.layers(),
            human::count(s.lines())
        ),
        other => format!("{other:?}"),
    };
    let held = match keys {
        KeyCount::Counted(n) => human::count(n),
        KeyCount::Estimated(n) => format!(
            "about {} (estimated: the count is lost after a merge or a crash)",
            human::count(n)
        ),
    };
    let hash = match filter.hasher() {
        Hasher::Fast { seed } => format!("{}, seed {seed}", filter.hasher().name()),
        Hasher::Keyed { in_file: true, .. } => {
            format!("{}, secret in the file", filter.hasher().name())
        }
        Hasher::Keyed { .. } => format!("{}, secret kept apart", filter.hasher().name()),
    };
    let full = keys.get() as f64 / filter.capacity().max(1) as f64 * 100.0;
    let mut out = String::new();
    for (name, value) in [
        ("kind", filter.kind().to_string()),
        ("size", human::size(filter.bytes())),
        ("shape", shape),
        ("hash", hash),
        (
            "capacity",
            format!("{} keys", human::count(filter.capacity())),
        ),
        ("keys", format!("{held}, {full:.1} % of capacity")),
        ("rate promised", human::rate(filter.rate())),
        ("rate now", human::rate(rate_now)),
    ] {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{name:<14} {value}");
    }
    out
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
            "arity": s.arity(),
            "width": s.width(),
            "shards": 1u64 << s.shard_bits(),
            "segments": s.segments(),
            "segment_blocks": s.segment_blocks(),
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

/// Says when a filter holds more than it was made for, and what that means.
pub(crate) fn warn_if_over<B: Body>(filter: &AnyFilter<B>, rate_now: f64) {
    let keys = filter.keys().get();
    if keys > filter.capacity() {
        output::warn(format_args!(
            "the filter holds {} keys but was made for {}: the rate is now {} instead of {}\n\
             hint: create a larger filter and add the keys again",
            human::count(keys),
            human::count(filter.capacity()),
            human::rate(rate_now),
            human::rate(filter.rate()),
        ));
    }
}
