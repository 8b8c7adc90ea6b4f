use crate::foreign::{ForeignArgs, Opened};
use crate::index::path_bytes;
use crate::location::{KeyFile, Place, named};
use crate::stream::Keyed as _;
use crate::window::{self, AskedAt};
use crate::{Exit, output};
use anyhow::{Context as _, Result, anyhow, bail};
use std::ffi::OsString;
use tamis::{AnyFilter, KeyRule, Kind, body::Body};
use tamis_records::key::{Columns, KeyMaker, NoKey, Part, RecordRule, Separator};
use tamis_records::records::Framing;
use tamis_report::explain::Explained;

/// Show why a filter says "maybe" or "no" of a key
///
/// Shows the key's hash, the bits, counters or slots that it leads to, what the
/// filter holds there, and what follows. A filter of at most 512 bits is drawn.
/// The answer is that of `tamis check`, of a window as of now or `--at` another time.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 a key may be present, 1 none is, 2 an error.

Examples:
  tamis create toy.tamis --kind bloom --bits 16 --hashes 3
  echo apple | tamis add toy.tamis
  tamis explain toy.tamis apple pear
  tamis explain --json seen.tamis https://example.org/
  tamis explain guava.bloom --format keys=utf8 apple         another system's filter
  tamis explain pairs.tamis ada,2026-11-15                a key of two values, as a row of CSV")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    /// The keys to ask for; write the values of several columns as a row of CSV
    #[arg(value_name = "KEY", required = true)]
    asked: Vec<OsString>,

    /// Keys are in hexadecimal, two digits per byte
    #[arg(long)]
    hex: bool,

    /// Print a line of JSON for each key
    #[arg(long)]
    json: bool,

    /// Ask a window as of this time, or of its latest key (latest), instead of now
    #[arg(long, value_name = "TIME", help_heading = "Windows")]
    at: Option<AskedAt>,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    match &args.filter {
        Place::File(path) => {
            if let Some(opened) = args.foreign.open(path)? {
                window::refuse_at(&args.filter, args.at)?;
                return args.explain_foreign(&opened);
            }
            let filter = args.key.open()?.open(path).map_err(named(path))?;
            args.explain(&filter)
        }
        Place::Redis(at) => {
            args.foreign.refuse_in_redis()?;
            if args.key.open_redis(at)?.kind() == Kind::Window {
                bail!(
                    "{at}: answers of a window in Redis can't be explained; `tamis check` asks it"
                );
            }
            args.explain(&args.filter.load(&args.key)?)
        }
    }
}

impl Args {
    fn explain<B: Body>(&self, filter: &AnyFilter<B>) -> Result<Exit> {
        let at = window::asked_at(&self.filter, filter, self.at)?;
        let rate_now = filter.rate_now();
        let hasher = filter.hasher();
        if hasher.rule().text().is_some() {
            bail!(
                "the filter holds units of text ({}), which only `tamis clean` makes",
                hasher.rule()
            );
        }
        self.each_key(hasher.rule(), |shown, key| {
            let hash = hasher.hash_exact(key);
            let explained = Explained::of(filter, shown, hash, rate_now);
            Ok(match at {
                Some(at) => explained.at(filter, hash, at),
                None => explained,
            })
        })
    }

    fn explain_foreign(&self, opened: &Opened) -> Result<Exit> {
        let filter = &opened.filter;
        let encoding = self.foreign.encoding(filter);
        let encoding = encoding.with_context(|| opened.path.display().to_string())?;
        let rate_now = filter.rate_now();
        self.each_key(&KeyRule::EXACT, |shown, key| {
            let bytes = encoding.token(key);
            Ok(Explained::foreign(filter, shown, bytes.get()?, rate_now))
        })
    }

    /// Calls `explain` with every key, as given and as the rule makes it.
    fn each_key(
        &self,
        rule: &KeyRule,
        explain: impl Fn(&[u8], &[u8]) -> Result<Explained>,
    ) -> Result<Exit> {
        let columns: Vec<usize> = (0..rule.values()).collect();
        let rule = RecordRule::of(part(rule.values())?, self.hex, *rule);
        let mut maker = KeyMaker::new(&rule);
        let mut exit = Exit::NoneFound;
        let mut out = String::new();
        for given in &self.asked {
            let given = path_bytes(given.as_ref());
            let text = String::from_utf8_lossy(&given);
            let (key, made) = maker.key(&given, &columns);
            match made {
                Err(NoKey::NotHex) => bail!("'{text}': expected hexadecimal, two digits a byte"),
                Err(NoKey::Absent) => bail!(
                    "'{text}': expected {} values, as a row of CSV: the filter's keys have as many",
                    columns.len()
                ),
                Ok(()) => {}
            }
            let explained = explain(&given, key)?;
            if explained.is_maybe() {
                exit = Exit::Done;
            }
            out += &match self.json {
                true => format!("{}\n", explained.to_json()),
                false if out.is_empty() => explained.describe(),
                false => format!("\n{}", explained.describe()),
            };
        }
        output::print(&out)?;
        Ok(exit)
    }
}

/// How an argument becomes a key of this many values.
fn part(values: usize) -> Result<Part> {
    if values == 1 {
        return Ok(Part::Whole(Framing::LINES));
    }
    let numbers: Vec<_> = (1..=values).map(|number| number.to_string()).collect();
    let columns = Columns::parse(&numbers.join(","), false).map_err(|error| anyhow!(error))?;
    Ok(Part::Columns {
        separator: Separator::COMMA,
        columns,
    })
}
