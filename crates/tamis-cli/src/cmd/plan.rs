use crate::advice::{self, Advice, Need, Question};
use crate::{Exit, human, output};
use anyhow::Result;
use serde_json::json;
use std::fmt::Write as _;
use tamis::plan::classic;

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
    const fn need(&self) -> Need {
        match self {
            Self { finished: true, .. } => Need::Finished,
            Self { delete: true, .. } => Need::Delete,
            Self { grow: true, .. } => Need::Grow,
            _ => Need::Nothing,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let text = match args.table {
        true => table(args.json),
        false => {
            let advice = Question {
                keys: args.keys,
                rate: args.rate,
                size: args.size,
                need: args.need.need(),
            }
            .answer()?;
            match args.json {
                true => format!("{:#}\n", advice.json()),
                false => describe(&advice),
            }
        }
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn describe(advice: &Advice) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(format!(
        "{:<9} {:>14} {:>9} {:>9}  {:>12}  {:<9} {}",
        "kind", "keys", "size", "bits/key", "cache misses", "rate", "for"
    ));
    for plan in advice.plans() {
        line(format!(
            "{:<9} {:>14} {:>9} {:>9.2}  {:>12}  {:<9} {}",
            plan.kind().name(),
            human::count(plan.keys()),
            human::size(plan.bytes()),
            plan.bits_per_key(),
            advice::cache_misses(plan),
            human::rate(plan.rate()),
            advice::purpose(plan.kind()),
        ));
    }
    line(String::new());
    advice.lines().into_iter().for_each(line);
    out
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
