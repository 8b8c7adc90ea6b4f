use crate::{Exit, human, output};
use anyhow::{Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use tamis::raw::Shape;
use tamis::{Kind, Plan, plan::classic};

/// Tell what a filter would cost, before it is made
///
/// Give two of: how many keys (-n), how often a false "yes" is all right (-p),
/// how large the filter may be (--size). The third follows, for every kind.
/// Say what else you need (--delete, --grow, --finished), and it tells which
/// kind to pick.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis plan -n 10M -p 0.001          how large?
  tamis plan -n 10M --size 16MiB      what rate?
  tamis plan -p 1% --size 2GiB        how many keys?
  tamis plan -n 10M --finished        for a list to which nothing is added
  tamis plan -n 10M --delete          which kind, if keys must go again?
  tamis plan -n 10M --grow            which kind, if 10M is only a guess?
  tamis plan --table                  rates by bits per key and hashes")]
pub(crate) struct Args {
    /// How many keys, e.g. 1000000, 1e6, 10M
    #[arg(short = 'n', long = "keys", value_name = "N", value_parser = human::parse_count)]
    keys: Option<u64>,

    /// How often a false "yes" is all right, e.g. 0.01, 1%, 1e-6 [default: 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate)]
    rate: Option<f64>,

    /// How large the filter may be, e.g. 500MB, 2GiB
    #[arg(long, value_name = "S", value_parser = human::parse_size)]
    size: Option<u64>,

    #[command(flatten)]
    need: NeedArgs,

    /// Print the textbook's table: rates by bits per key (m/n) and hashes (k)
    #[arg(long, conflicts_with_all = ["keys", "rate", "size", "NeedArgs"])]
    table: bool,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What else is needed of the filter.
#[derive(clap::Args)]
#[group(multiple = false)]
struct NeedArgs {
    /// The list is finished: nothing will be added to it
    #[arg(long, visible_alias = "static")]
    finished: bool,

    /// Keys must be removable
    #[arg(long)]
    delete: bool,

    /// The number of keys is not known
    #[arg(long)]
    grow: bool,
}

impl NeedArgs {
    /// The kinds that serve, the one to pick first where sizes are equal.
    const fn kinds(&self) -> &'static [Kind] {
        match self {
            Self { finished: true, .. } => &[Kind::Fuse, Kind::Ribbon, Kind::Blocked],
            Self { delete: true, .. } => &[Kind::Cuckoo, Kind::Counting],
            Self { grow: true, .. } => &[Kind::Growing, Kind::Blocked],
            _ => &[
                Kind::Blocked,
                Kind::Bloom,
                Kind::Fuse,
                Kind::Ribbon,
                Kind::Cuckoo,
                Kind::Counting,
                Kind::Growing,
            ],
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let text = match args.table {
        true => table(args.json),
        false => plans(&args)?,
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn plans(args: &Args) -> Result<String> {
    let make = |kind| match (args.keys, args.rate, args.size) {
        (Some(_), Some(_), Some(_)) => bail!("two of -n, -p and --size say it all; give only two"),
        (Some(keys), rate, None) => Ok(Plan::for_rate(kind, keys, rate.unwrap_or(0.01))?),
        (Some(keys), None, Some(size)) => Ok(Plan::for_size(kind, keys, size)?),
        (None, Some(rate), Some(size)) => Ok(Plan::for_rate_in_size(kind, rate, size)?),
        (None, ..) => bail!("say how many keys: -n N (or a rate and a size: -p P --size S)"),
    };
    let mut plans = Vec::new();
    let mut refusals = Vec::new();
    for &kind in args.need.kinds() {
        match make(kind) {
            Ok(plan) => plans.push(plan),
            // A kind that can't serve these numbers is left out, unless none can.
            Err(refusal) => refusals.push(refusal),
        }
    }
    if plans.is_empty() {
        return Err(refusals.swap_remove(0));
    }
    Ok(match args.json {
        true => format!(
            "{:#}\n",
            json!(plans.iter().map(plan_json).collect::<Vec<_>>())
        ),
        false => describe(&plans, args),
    })
}

fn describe(plans: &[Plan], args: &Args) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(format!(
        "{:<9} {:>14} {:>9} {:>9}  {:>12}  {:<9} {}",
        "kind", "keys", "size", "bits/key", "cache misses", "rate", "for"
    ));
    for plan in plans {
        line(format!(
            "{:<9} {:>14} {:>9} {:>9.2}  {:>12}  {:<9} {}",
            plan.kind().name(),
            human::count(plan.keys()),
            human::size(plan.bytes()),
            plan.bits_per_key(),
            cache_misses(plan),
            human::rate(plan.rate()),
            purpose(plan.kind()),
        ));
    }
    line(String::new());
    let (pick, why) = pick(plans, &args.need);
    line(format!("Pick {}: {why}", pick.kind()));
    when_not(pick).into_iter().for_each(&mut line);
    let may_overfill = !pick.kind().is_static() && pick.kind() != Kind::Growing;
    if args.keys.is_some() && args.size.is_none() && may_overfill {
        line(match pick.kind() {
            Kind::Cuckoo => "It takes few more keys than that; then adding is refused.".into(),
            _ => format!(
                "Twice the keys in the same filter would raise the rate to {}.",
                human::rate(pick.rate_at(pick.keys().saturating_mul(2)))
            ),
        });
    }
    out
}

/// The kind to take, and why.
fn pick<'a>(plans: &'a [Plan], need: &NeedArgs) -> (&'a Plan, String) {
    let of = |kind| plans.iter().find(|plan| plan.kind() == kind);
    let first = &plans[0];
    match need {
        NeedArgs { finished: true, .. } => {
            let saved = |plan: &Plan| (1.0 - plan.bytes() as f64 / first.bytes() as f64) * 100.0;
            let ribbon = of(Kind::Ribbon).map(|ribbon| {
                format!(
                    " Ribbon saves {:.0} % of it and is slower to build and to ask: it pays where \
                     memory or transfer is dear.",
                    saved(ribbon)
                )
            });
            let why = "built by `tamis build`; two cache misses a key.".to_string();
            (first, why + &ribbon.unwrap_or_default())
        }
        NeedArgs { delete: true, .. } => match plans {
            // Below some rate a cuckoo filter's widest slots are not enough.
            [cuckoo, counting] if counting.bytes() < cuckoo.bytes() => {
                (counting, "at this rate it is the smaller one.".into())
            }
            _ => (
                first,
                "it is the smaller one. Take counting if one key is added more than a few times, \
                 or if several processes write the filter at once.\n\
                 Remove only keys that were added: any other may take a key along that was."
                    .into(),
            ),
        },
        NeedArgs { grow: true, .. } => (
            first,
            "it keeps the rate at any number of keys. A right guess saves memory and time: \
             each time it grows, a key costs one probe more."
                .into(),
        ),
        _ => {
            let misses = match cache_misses(first).as_str() {
                "1" => "one cache miss".into(),
                n => format!("{n} cache misses"),
            };
            let more = of(Kind::Bloom).map(|bloom| {
                format!(
                    " instead of up to {}, for {:.1} % more memory than bloom",
                    bloom.hashes(),
                    (first.bits_per_key() / bloom.bits_per_key() - 1.0) * 100.0
                )
            });
            let layout = match first.shape() {
                Shape::Blocked(shape) => format!(
                    " It is {} of 64 bytes for each key, and {} in each.",
                    number(shape.lines_per_key(), "line"),
                    number(shape.hashes_per_line(), "bit")
                ),
                _ => String::new(),
            };
            (
                first,
                format!("a key costs {misses}{}.{layout}", more.unwrap_or_default()),
            )
        }
    }
}

fn number(n: u32, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

const fn purpose(kind: Kind) -> &'static str {
    match kind {
        Kind::Blocked => "the default",
        Kind::Bloom => "the textbook",
        Kind::Fuse => "finished lists",
        Kind::Ribbon => "finished lists, smallest",
        Kind::Cuckoo => "removing keys",
        Kind::Counting => "removing, repeated keys",
        Kind::Growing => "an unknown number of keys",
        _ => "",
    }
}

/// How many lines of memory a key touches.
fn cache_misses(plan: &Plan) -> String {
    match plan.shape() {
        Shape::Blocked(shape) => shape.lines_per_key().to_string(),
        // A line is four of the memory's, with the counters of two words in each.
        Shape::Counting(shape) => {
            let of_a_line = (shape.hashes_per_line() / 2 + 1).min(4);
            format!("up to {}", shape.lines_per_key() * of_a_line)
        }
        Shape::Growing(shape) => format!("{} layers", shape.layers()),
        Shape::Fuse(_) | Shape::Cuckoo(_) => "2".into(),
        // Two groups of words, one after the other.
        Shape::Ribbon(shape) => match shape.width() {
            ..=4 => "1 to 2".into(),
            width => format!("{} in a row", (width * 16).div_ceil(64) + 1),
        },
        _ => format!("up to {}", plan.hashes()),
    }
}

/// Where something simpler does the job, and does it exactly.
fn when_not(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    if plan.keys() <= 100_000 {
        out.push(format!(
            "Not at all? {} keys fit in an exact hash set of about {}; a filter pays when that hurts.",
            human::count(plan.keys()),
            human::size(plan.keys().saturating_mul(64)),
        ));
    }
    if plan.bits_per_key() > 60.0 {
        out.push(
            "Not at all? At this rate 128-bit digests of the keys cost about 160 bits a key and \
             are exact in practice."
                .into(),
        );
    }
    out.push(format!(
        "Integers below {}? A plain bitmap is no larger, and exact.",
        human::count(plan.bytes().saturating_mul(8)),
    ));
    out
}

fn plan_json(plan: &Plan) -> serde_json::Value {
    let lines = match plan.shape() {
        Shape::Blocked(s) => Some((s.lines_per_key(), s.hashes_per_line())),
        Shape::Counting(s) => Some((s.lines_per_key(), s.hashes_per_line())),
        Shape::Growing(s) => Some((s.lines_per_key(), s.hashes_per_line())),
        _ => None,
    };
    json!({
        "kind": plan.kind().name(),
        "keys": plan.keys(),
        "bytes": plan.bytes(),
        "bits_per_key": plan.bits_per_key(),
        "hashes": plan.hashes(),
        "lines_per_key": lines.map(|(lines, _)| lines),
        "hashes_per_line": lines.map(|(_, hashes)| hashes),
        "rate": plan.rate(),
    })
}

/// The classic table, m/n by k.
fn table(as_json: bool) -> String {
    const RATIOS: std::ops::RangeInclusive<u32> = 2..=32;
    const HASHES: std::ops::RangeInclusive<u32> = 1..=24;
    let best = |ratio: u32| f64::from(ratio) * std::f64::consts::LN_2;
    if as_json {
        let rows: Vec<_> = RATIOS
            .map(|ratio| {
                let rates: Vec<_> = HASHES.map(|k| classic::rate(ratio.into(), k)).collect();
                json!({ "bits_per_key": ratio, "best_k": best(ratio), "rates_by_k": rates })
            })
            .collect();
        return format!("{:#}\n", json!(rows));
    }
    let mut out = String::from(
        "Rate of a classic Bloom filter by bits per key (m/n) and hashes (k)\n\n m/n  best k",
    );
    for k in HASHES {
        // Writing to a String can't fail.
        let _ = write!(out, " {:>9}", format!("k={k}"));
    }
    out.push('\n');
    for ratio in RATIOS {
        let _ = write!(out, "{ratio:>4}  {:>6.2}", best(ratio));
        for k in HASHES {
            let cell = match k <= ratio {
                true => short(classic::rate(ratio.into(), k)),
                false => String::new(),
            };
            let _ = write!(out, " {cell:>9}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Three digits, as the published tables have them.
fn short(rate: f64) -> String {
    match rate {
        r if r >= 0.1 => format!("{r:.3}"),
        r if r >= 0.01 => format!("{r:.4}"),
        r if r >= 0.001 => format!("{r:.5}"),
        r if r >= 0.0001 => format!("{r:.6}"),
        r => format!("{r:.2e}"),
    }
}
