use crate::{Exit, human, output};
use anyhow::{Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use tamis::{Kind, Plan, Shape, plan::classic};

/// Tell what a filter would cost, before it is made
///
/// Give two of: how many keys (-n), how often a false "yes" is all right (-p),
/// how large the filter may be (--size). The third follows, for every kind.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis plan -n 10M -p 0.001          how large?
  tamis plan -n 10M --size 16MiB      what rate?
  tamis plan -p 1% --size 2GiB        how many keys?
  tamis plan -n 10M --finished        for a list to which nothing is added
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

    /// The list is finished: nothing will be added to it
    #[arg(long, visible_alias = "static", conflicts_with = "table")]
    finished: bool,

    /// Print the textbook's table: rates by bits per key (m/n) and hashes (k)
    #[arg(long, conflicts_with_all = ["keys", "rate", "size"])]
    table: bool,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
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
    // The default kind first.
    let mut plans = [Kind::Blocked, Kind::Bloom]
        .into_iter()
        .map(make)
        .collect::<Result<Vec<_>>>()?;
    // Those that are built from a finished list reach less far.
    plans.extend([Kind::Fuse, Kind::Ribbon].into_iter().flat_map(make));
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
        "{:<9} {:>14} {:>9} {:>9}  {:>6}  {:<12} {:<9}",
        "kind", "keys", "size", "bits/key", "hashes", "cache misses", "rate"
    ));
    for plan in plans {
        line(format!(
            "{:<9} {:>14} {:>9} {:>9.2}  {:>6}  {:<12} {:<9}",
            plan.kind().name(),
            human::count(plan.keys()),
            human::size(plan.bytes()),
            plan.bits_per_key(),
            plan.hashes(),
            cache_misses(plan),
            human::rate(plan.rate()),
        ));
    }
    line(String::new());
    let pick = &plans[0];
    if let [_, _, .., fuse, ribbon] = plans
        && (fuse.kind(), ribbon.kind()) == (Kind::Fuse, Kind::Ribbon)
    {
        finished_list(pick, fuse, ribbon, args.finished).for_each(&mut line);
        if args.finished {
            when_not(fuse).into_iter().for_each(line);
            return out;
        }
    } else if args.finished {
        line("No finished-list kind serves these numbers; blocked does.".into());
    }
    line(format!(
        "Pick {}: a key costs {} instead of up to {}, for {:.1} % more memory than bloom.",
        pick.kind(),
        match cache_misses(pick).as_str() {
            "1" => "one cache miss".into(),
            n => format!("{n} cache misses"),
        },
        plans[1].hashes(),
        (pick.bits_per_key() / plans[1].bits_per_key() - 1.0) * 100.0,
    ));
    for advice in when_not(pick) {
        line(advice);
    }
    if args.keys.is_some() && args.size.is_none() {
        line(format!(
            "Twice the keys in the same filter would raise the rate to {}.",
            human::rate(pick.rate_at(pick.keys().saturating_mul(2)))
        ));
    }
    out
}

/// What the kinds for finished lists save, and which of them to take.
fn finished_list(
    blocked: &Plan,
    fuse: &Plan,
    ribbon: &Plan,
    finished: bool,
) -> impl Iterator<Item = String> {
    let less = |ours: &Plan, theirs: &Plan| {
        (1.0 - ours.bits_per_key() / theirs.bits_per_key()) * 100.0
    };
    let pays = format!(
        "Pick ribbon (--smallest) where the size counts: {:.1} % ({}) less than fuse; asking takes \
         about one and a half times as long.",
        less(ribbon, fuse),
        human::size(fuse.bytes().saturating_sub(ribbon.bytes())),
    );
    let lines = match finished {
        true => vec![
            format!(
                "Pick fuse: `tamis build` makes it from all keys; {:.0} % smaller than blocked at \
                 no more than this rate, and two cache misses a key.",
                less(fuse, blocked),
            ),
            match ribbon.bytes() < fuse.bytes() {
                true => pays,
                false => "Ribbon, the other kind for finished lists, would be no smaller.".into(),
            },
        ],
        false => vec![format!(
            "Is the list finished? `tamis build` then makes a fuse filter, {:.0} % smaller, or a \
             ribbon, {:.0} % smaller; --finished tells more.",
            less(fuse, blocked),
            less(ribbon, blocked),
        )],
    };
    lines.into_iter()
}

/// How many lines of memory a key touches.
fn cache_misses(plan: &Plan) -> String {
    match plan.shape() {
        Shape::Blocked(shape) => shape.lines_per_key().to_string(),
        Shape::Fuse(_) => "2".into(),
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
    if plan.bits_per_key() > 40.0 {
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
    json!({
        "kind": plan.kind().name(),
        "keys": plan.keys(),
        "bytes": plan.bytes(),
        "bits_per_key": plan.bits_per_key(),
        "hashes": plan.hashes(),
        "rate": plan.rate(),
    })
}

/// The classic table, m/n by k.
fn table(as_json: bool) -> String {
    const RATIOS: std::ops::RangeInclusive<u32> = 2..=32;
    const HASHES: std::ops::RangeInclusive<u32> = 1..=24;
    if as_json {
        let rows: Vec<_> = RATIOS
            .map(|ratio| {
                let rates: Vec<_> = HASHES.map(|k| classic::rate(ratio.into(), k)).collect();
                json!({ "bits_per_key": ratio, "best_k": f64::from(ratio) * std::f64::consts::LN_2, "rates_by_k": rates })
            })
            .collect();
        return format!("{:#}\n", json!(rows));
    }
    let mut out = String::from(
        "Rate of a classic Bloom filter by bits per key (m/n) and hashes (k)\n\n m/n  best k",
    );
    let _ = HASHES
        .clone()
        .try_for_each(|k| write!(out, " {:>9}", format!("k={k}")));
    out.push('\n');
    for ratio in RATIOS {
        let _ = write!(
            out,
            "{ratio:>4}  {:>6.2}",
            f64::from(ratio) * std::f64::consts::LN_2
        );
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
