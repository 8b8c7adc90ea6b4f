use crate::about::{self, About};
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, in_redis, named};
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use serde_json::json;
use std::path::Path;
use tamis::{AnyFilter, file::FileLock};
use tamis_redis::RedisFilter;

/// Check a filter's checksums and measure its rate
///
/// Reads every byte and compares it with the checksums, then asks for random
/// keys and compares how many seem present with the expected rate. For a filter
/// in Redis, it checks that every part is there; for another system's file, that
/// its numbers agree with its length, and its checksum if it has one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter or index: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    /// Accept the body as it is now: write a new checksum and clear the mark of an unclean shutdown
    ///
    /// For a file that was last written in place, which leaves no checksum, or
    /// that was open for writing when the machine went down; for a filter in
    /// Redis, whose server came back with older data. In the last two cases, keys
    /// that were lost stay lost.
    #[arg(long)]
    seal: bool,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// How many random keys to ask for
    #[arg(long, value_name = "N", default_value = "1M", value_parser = human::parse_count)]
    probes: u64,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let verified = verify(&args);
    if args.json {
        let (checks, filter) = match &verified {
            Ok(verified) => (
                verified.checks.iter().map(Check::to_json).collect(),
                &verified.about,
            ),
            Err(_) => (Vec::new(), &None),
        };
        let all = json!({
            "valid": verified.is_ok(),
            "reason": verified.as_ref().err().map(|error| format!("{error:#}")),
            "checks": checks,
            "filter": filter.as_ref().map(about::to_json),
        });
        output::print(&format!("{all:#}\n"))?;
    }
    let verified = verified?;
    if let Some(about) = &verified.about {
        about.overfull().iter().for_each(output::warn);
    }
    Ok(Exit::Done)
}

/// The checks that passed.
#[derive(Default)]
struct Verified {
    checks: Vec<Check>,
    about: Option<About>,
}

fn verify(args: &Args) -> Result<Verified> {
    match &args.filter {
        Place::File(path) if crate::index::is_index(path) => {
            if args.json {
                bail!(
                    "{}: --json is for filters, not for an index",
                    path.display()
                );
            }
            crate::index::tell::verify(path)?;
            Ok(Verified::default())
        }
        Place::File(path) => match args.foreign.open_all(path)? {
            Some(opened) if args.seal => bail!(
                "{}: --seal is for Tamis filters; a {} file has no such checksum",
                path.display(),
                opened[0].filter.format()
            ),
            Some(opened) => verify_foreign(&opened, args),
            None => verify_file(path, args),
        },
        Place::Redis(at) => {
            args.foreign.refuse_in_redis()?;
            if args.seal {
                let options = args.key.redis_options()?;
                RedisFilter::accept_loss_at(at, &options).map_err(in_redis(at))?;
            }
            let mut filter = args.key.open_redis(at)?;
            filter.verify().map_err(in_redis(at))?;
            let says = match filter.module_layout() {
                Some(_) => "the filter: present",
                None => "header and chunks: all present",
            };
            let check = Check::begin(says.into(), args)?;
            let about = tamis_report::redis::about(&mut filter).map_err(in_redis(at))?;
            let check = check.measure(Rates::from(&about), args, |keys, found| {
                filter.contains_many(keys, found).map_err(in_redis(at))
            })?;
            Ok(Verified {
                checks: vec![check],
                about: Some(about),
            })
        }
    }
}

fn verify_file(path: &Path, args: &Args) -> Result<Verified> {
    let open = args.key.open()?;
    let named = || named(path);
    if args.seal {
        let mut lock = FileLock::try_acquire(path).map_err(named())?;
        let filter = open.clone().accept_loss().load(path).map_err(named())?;
        filter.save_under(&mut lock).map_err(named())?;
    }
    let sealed = AnyFilter::verify(path, &open).map_err(named())?;
    let filter = open.open(path).map_err(named())?;
    let says = if sealed {
        "header and body checksums: valid"
    } else {
        "header checksum: valid; the body has none, because it was last written in place \
             (--seal writes one)"
    };
    let check = Check::begin(says.into(), args)?;
    let about = About::of(&filter);
    let check = check.measure(Rates::from(&about), args, |keys, found| {
        filter.contains_many(keys, found);
        Ok(())
    })?;
    Ok(Verified {
        checks: vec![check],
        about: Some(about),
    })
}

/// Opening has already checked every number against the length, and any checksum.
fn verify_foreign(opened: &[foreign::Opened], args: &Args) -> Result<Verified> {
    let mut verified = Verified::default();
    for one in opened {
        let filter = &one.filter;
        let name = one
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}: "));
        let check = Check::begin(format!("{name}{} file: valid", filter.format()), args)?;
        // A column's values may all have one length.
        let len = match filter.keys() {
            [keys] => keys.value_len().unwrap_or(16),
            _ => 16,
        };
        let now = filter.rate_now();
        // Double hashing, which most use, deviates from the formula in small filters: its step may share a divisor with
        // the size and return to the same bits.
        let straying = filter.hashes().unwrap_or(0) as f64 / filter.bits() as f64;
        let rates = Rates {
            now,
            promised: filter.facts().rate,
            tolerance: 0.25 * now + straying,
        };
        let check = check.measure(rates, args, |keys, found| {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..len]).collect();
            filter.contains_many(&keys, found);
            Ok(())
        })?;
        verified.checks.push(check);
        foreign::tell::warn_if_over(one);
    }
    Ok(verified)
}

/// How often absent keys should be found.
#[derive(Clone, Copy)]
struct Rates {
    now: f64,
    promised: Option<f64>,
    /// How far the formula may be off, apart from chance.
    tolerance: f64,
}

impl From<&About> for Rates {
    fn from(about: &About) -> Self {
        Self {
            now: about.rate_now,
            promised: Some(about.rate),
            tolerance: 0.0,
        }
    }
}

/// A check, and the measured rate.
struct Check {
    says: String,
    asked: u64,
    yes: u64,
    rates: Option<Rates>,
}

impl Check {
    /// Starts a list of passed checks.
    fn begin(says: String, args: &Args) -> Result<Self> {
        if !args.json {
            output::print(&format!("{says}\n"))?;
        }
        Ok(Self {
            says,
            asked: 0,
            yes: 0,
            rates: None,
        })
    }

    /// Queries random 16-byte keys; the chance that one was really added is negligible.
    fn measure(
        mut self,
        rates: Rates,
        args: &Args,
        mut ask: impl FnMut(&[[u8; 16]], &mut [bool]) -> Result<()>,
    ) -> Result<Self> {
        const BATCH: usize = 4096;
        let probes = args.probes;
        let mut keys = vec![[0u8; 16]; BATCH];
        let mut found = vec![false; BATCH];
        let random = tamis::Hasher::keyed(tamis::SecretKey::random()?);
        while self.asked < probes {
            let now = BATCH.min((probes - self.asked) as usize);
            for (i, key) in keys[..now].iter_mut().enumerate() {
                *key = random
                    .hash(&(self.asked + i as u64).to_le_bytes())
                    .as_u128()
                    .to_le_bytes();
            }
            ask(&keys[..now], &mut found[..now])?;
            self.yes += found[..now].iter().filter(|found| **found).count() as u64;
            self.asked += now as u64;
        }
        self.rates = Some(rates);
        let (expected, measured) = (rates.now, self.measured());
        // Five standard errors: one good filter in millions deviates further.
        let asked = self.asked.max(1) as f64;
        let error = 5.0 * (expected * (1.0 - expected) / asked).sqrt();
        if !args.json {
            output::print(&format!(
                "rate: measured {} ({} of {}), expected now {}{}\n",
                human::rate(measured),
                self.yes,
                human::counted(self.asked, "random key"),
                human::rate(expected),
                rates.promised.map_or_else(String::new, |rate| format!(
                    ", promised {}",
                    human::rate(rate)
                )),
            ))?;
        }
        if measured > expected + rates.tolerance + error + 5.0 / asked {
            bail!("the measured rate is far above the expected rate; the body may be damaged");
        }
        Ok(self)
    }

    fn measured(&self) -> f64 {
        self.yes as f64 / self.asked.max(1) as f64
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "says": self.says,
            "probes": self.asked,
            "found": self.yes,
            "rate_measured": self.measured(),
            "rate_now": self.rates.map(|rates| rates.now),
            "rate_promised": self.rates.and_then(|rates| rates.promised),
        })
    }
}
