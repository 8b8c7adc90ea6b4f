use crate::advice::{self, Advice, Given, Need, Question};
use crate::cmd::create::{BloomArgs, parse_kind, plan_window};
use crate::window::WindowArgs;
use crate::{Exit, human, output};
use anyhow::{Error, Result, bail};
use load::Load;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tamis::internals::plan::classic;
use tamis::internals::raw::Shape;
use tamis::{Kind, Plan};
use tamis_report::server::Ways;
use tamis_report::window;

mod load;

/// Show what a filter would cost, before you create it
///
/// Give two of these: the number of keys (--capacity), the acceptable rate of false
/// "yes" answers (-p), the size of the filter (--size). The third follows, for
/// every kind. With all three, --size is a limit. A kind that can't have these
/// numbers is listed with the reason. Say what else you need (--delete, --grow, --finished) to see
/// which kind to pick.
///
/// In the table, m is the number of bits and k the number of bits that a key
/// sets. fuse, ribbon and cuckoo store a fingerprint instead; its length stands
/// in place of k.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis plan --capacity 10M -p 0.001              how large?
  tamis plan --capacity 10M --size 16MiB          what rate?
  tamis plan -p 1% --size 2GiB                    how many keys?
  tamis plan --capacity 10M --finished            for a list that never changes
  tamis plan --capacity 10M --delete              which kind, if keys must be removed?
  tamis plan --capacity 10M --grow                which kind, if 10M is only a guess?
  tamis plan --capacity 10M --per-day 100M        how many wrong answers a day?
  tamis plan --capacity 10M -p 1e-6 --redis       what does it take in a Redis server?
  tamis plan --capacity 10M --within 24h          what does it take to remember a day?
  tamis plan --kind bloom --bits 16 --hashes 3    a textbook filter of these numbers
  tamis plan --table                              rates by bits per key and hashes")]
pub(crate) struct Args {
    /// How many keys, e.g. 1000000, 1e6, 10M
    #[arg(long = "capacity", value_name = "N", value_parser = human::parse_count, allow_negative_numbers = true)]
    keys: Option<u64>,

    /// The acceptable rate of false "yes" answers, e.g. 0.01, 1%, 1e-6 [default: 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// How large the filter may be, e.g. 500MB, 2GiB
    #[arg(long, value_name = "S", value_parser = human::parse_size)]
    size: Option<u64>,

    #[command(flatten)]
    bloom: BloomArgs,

    /// With --bits or --hashes: bloom; or window
    #[arg(long, value_name = "KIND", value_parser = parse_kind, conflicts_with_all = ["redis", "table", "NeedArgs"])]
    kind: Option<Kind>,

    #[command(flatten)]
    window: WindowArgs,

    #[command(flatten)]
    need: NeedArgs,

    /// How many questions come in a day, e.g. 100M: says how many of them get a wrong answer
    ///
    /// A wrong answer is a "yes" about a key that was never added. All questions
    /// are taken to be about such keys, so this is the worst case: questions
    /// about keys that were added are never answered wrongly.
    #[arg(long, value_name = "N", value_parser = Load::parse, allow_negative_numbers = true, conflicts_with = "table")]
    per_day: Option<Load>,

    /// In Redis: what it takes there, each way to have it, and what a new key costs
    #[arg(long, requires = "keys", conflicts_with_all = ["size", "NeedArgs"])]
    redis: bool,

    /// Print the textbook table: rates by bits per key (m/n) and hashes (k)
    #[arg(long, conflicts_with_all = ["keys", "rate", "size", "redis", "NeedArgs"])]
    table: bool,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What else is needed of the filter.
#[derive(clap::Args)]
#[group(multiple = false)]
struct NeedArgs {
    /// The list is finished: no key will be added later
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
    if let Some(plan) = args.bloom.plan(args.kind, args.keys, args.size)? {
        output::print(&textbook(&plan, args.per_day, args.json))?;
        return Ok(Exit::Done);
    }
    if let Some(plan) = plan_window(&args.window, args.kind, args.keys, args.rate, args.size)? {
        if args.redis || args.table {
            bail!("--within and --last are for a window in a file, not for --redis or --table");
        }
        output::print(&of_window(&plan, args.per_day, args.json))?;
        return Ok(Exit::Done);
    }
    if args.kind.is_some() {
        bail!("--kind is for --bits, --hashes and windows; without them, every kind is shown");
    }
    let text = match (args.table, args.redis) {
        (true, _) => table(args.json),
        (_, true) => in_redis(
            args.keys.unwrap_or(0),
            args.rate.unwrap_or(advice::USUAL_RATE),
            args.per_day,
            args.json,
        )?,
        _ => {
            let need = args.need.need();
            let given = given(args.keys, args.rate, args.size)?;
            let advice = Question { given, need }.answer().map_err(Error::msg)?;
            if args.json {
                let rows = [advice.json(), advice.left_out_json()].concat();
                printed(rows, args.per_day)
            } else {
                describe(&advice, need, args.per_day)
            }
        }
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn given(keys: Option<u64>, rate: Option<f64>, size: Option<u64>) -> Result<Given> {
    match Given::new(keys, rate, size) {
        Some(given) => Ok(given),
        None => bail!("say how many keys: --capacity N (or a rate and a size: -p P --size S)"),
    }
}

/// Rows for programs.
fn printed(mut rows: Vec<Value>, load: Option<Load>) -> String {
    if let Some(load) = load {
        rows.iter_mut().for_each(|row| load.add_to(row));
    }
    format!("{:#}\n", json!(rows))
}

fn describe(advice: &Advice, need: Need, load: Option<Load>) -> String {
    // A separate column, only if asked for.
    let wrong = |text: &dyn Fn(Load) -> String| match load {
        Some(load) => format!("{:>14}  ", text(load)),
        None => String::new(),
    };
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(format!(
        "{:<9} {:>14} {:>9} {:>9}  {:>12}  {:<9} {}{:>13}  {:>10}  {}",
        "kind",
        "keys",
        "size",
        "bits/key",
        "cache misses",
        "rate",
        wrong(&|_| "wrong a day".into()),
        "bits (m)",
        "hashes (k)",
        "for"
    ));
    for plan in advice.plans() {
        line(format!(
            "{:<9} {:>14} {:>9} {:>9.2}  {:>12}  {:<9} {}{:>13}  {:>10}  {}",
            plan.kind().name(),
            human::count(plan.keys()),
            human::size(plan.bytes()),
            plan.bits_per_key(),
            advice::cache_misses(plan),
            human::rate(plan.rate()),
            wrong(&|load| load.wrong(plan.rate())),
            human::count(advice::bits(plan)),
            advice::hashes(plan),
            advice::purpose(plan.kind()),
        ));
    }
    for (kind, why) in advice.left_out() {
        line(format!("{:<9} {why}", kind.name()));
    }
    line(String::new());
    advice.lines().into_iter().for_each(&mut line);
    if let Some(load) = load {
        load.lines(advice.pick(), need).into_iter().for_each(line);
    }
    out
}

/// Every kind of filter for Redis, with its size there.
fn in_redis(keys: u64, rate: f64, load: Option<Load>, as_json: bool) -> Result<String> {
    let ways = Ways::new(keys, rate);
    if ways.rows.is_empty() {
        let reasons = ways.left_out.iter().map(|(_, why)| why.as_str());
        bail!("{}", { reasons }.next().unwrap_or_default());
    }
    if as_json {
        let rows = [ways.json(), ways.left_out_json()].concat();
        return Ok(printed(rows, load));
    }
    let mut out = format!(
        "{:<10} {:<8} {:>8}  {:>16} {:>9}  {:>10}  {:>11}  {:>13}  {:>9}\n",
        "kept as",
        "kind",
        "size",
        "in the server",
        "bits/key",
        "hashes (k)",
        "server time",
        "time with AOF",
        "AOF bytes"
    );
    for row in &ways.rows {
        let cost = row.cost().map(|cost| {
            let times = [cost.time, cost.time_with_log].map(|time| format!("{time:.1}"));
            let [time, with_log] = times;
            [time, with_log, format!("{:.0}", cost.logged_bytes)]
        });
        let [time, with_log, logged] = cost.unwrap_or_else(|| ["-"; 3].map(String::from));
        let _ = writeln!(
            out,
            "{:<10} {:<8} {:>8}  {:>16} {:>9.2}  {:>10}  {:>11}  {:>13}  {:>9}",
            row.way.name(),
            row.way.kind().name(),
            human::size(row.bytes),
            row.memory_text(),
            row.bits_per_key(),
            row.hashes.map_or("-".into(), |hashes| hashes.to_string()),
            time,
            with_log,
            logged,
        );
    }
    for (way, why) in &ways.left_out {
        let _ = writeln!(out, "{:<10} {:<8} {why}", way.name(), way.kind().name());
    }
    out.push_str(
        "\nIn the server: what MEMORY USAGE says of all its keys, by the blocks of the server's allocator\n\
         (jemalloc). Redisson's string has spare room, how much is up to the order of its bits.\n\
         Times are of a new key in a batch, as multiples of SADD's, roughly. The AOF bytes go to each\n\
         replica, too. A growing filter's keys are also looked for in its older layers.\n",
    );
    if let Some(load) = load {
        let _ = writeln!(out, "{}", load.in_redis(rate));
    }
    Ok(out)
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
            let cell = if k <= ratio {
                short(classic::rate(ratio.into(), k))
            } else {
                String::new()
            };
            let _ = write!(out, " {cell:>9}");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A textbook filter of given numbers.
fn textbook(plan: &Plan, load: Option<Load>, as_json: bool) -> String {
    if as_json {
        let row = json!({
            "kind": plan.kind().name(),
            "keys": plan.keys(),
            "rate": plan.rate(),
            "bytes": plan.bytes(),
            "bits": advice::bits(plan),
            "bits_per_key": plan.bits_per_key(),
            "hashes": plan.hashes(),
        });
        return printed(vec![row], load);
    }
    let line = |name: &str, value: String| format!("{name:<14} {value}\n");
    line("bits (m)", human::count(advice::bits(plan)))
        + &line("hashes (k)", plan.hashes().to_string())
        + &line("keys (n)", human::count(plan.keys()))
        + &line("bits/key (m/n)", format!("{:.2}", plan.bits_per_key()))
        + &line("rate", human::rate(plan.rate()))
        + &line("size", human::size(plan.bytes()))
        + &at_load(plan, load)
}

/// The lines about load, below a single plan.
fn at_load(plan: &Plan, load: Option<Load>) -> String {
    let Some(load) = load else {
        return String::new();
    };
    let wrong = load.wrong(plan.rate());
    let lines = load.lines(plan, Need::Nothing).join("\n");
    format!("{:<14} {wrong}\n\n{lines}\n", "wrong a day")
}

/// The plan of a window.
fn of_window(plan: &Plan, load: Option<Load>, as_json: bool) -> String {
    let Shape::Window(shape) = plan.shape() else {
        return String::new();
    };
    let options = shape.options();
    if as_json {
        let mut row = window::options_json(&options);
        for (name, value) in [
            ("kind", json!(plan.kind().name())),
            ("keys", json!(plan.keys())),
            ("rate", json!(plan.rate())),
            ("bytes", json!(plan.bytes())),
            ("bits_per_key", json!(plan.bits_per_key())),
        ] {
            row[name] = value;
        }
        return printed(vec![row], load);
    }
    let line = |name: &str, value: String| format!("{name:<14} {value}\n");
    line("remembers", window::describe(&options))
        + &line("forgets", window::band(&options))
        + &line("keys (n)", human::count(plan.keys()))
        + &line("bits/key (m/n)", format!("{:.2}", plan.bits_per_key()))
        + &line("rate", human::rate(plan.rate()))
        + &line("size", human::size(plan.bytes()))
        + &at_load(plan, load)
}

/// Three digits, like the published tables.
fn short(rate: f64) -> String {
    match rate {
        r if r >= 0.1 => format!("{r:.3}"),
        r if r >= 0.01 => format!("{r:.4}"),
        r if r >= 0.001 => format!("{r:.5}"),
        r if r >= 0.0001 => format!("{r:.6}"),
        r => format!("{r:.2e}"),
    }
}
