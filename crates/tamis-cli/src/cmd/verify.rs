use crate::about::About;
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, RedisArgs, in_redis, named};
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use std::path::Path;
use tamis::{AnyFilter, FileLock};

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
    /// that was open for writing when the machine went down. In the second case,
    /// keys that were lost stay lost.
    #[arg(long)]
    seal: bool,

    /// How many random keys to ask for
    #[arg(long, value_name = "N", default_value = "1M", value_parser = human::parse_count)]
    probes: u64,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    match &args.filter {
        Place::File(path) if crate::index::is_index(path) => crate::index::tell::verify(path),
        Place::File(path) => match args.foreign.open_all(path)? {
            Some(opened) if args.seal => bail!(
                "{}: --seal is for Tamis filters; a {} file has no such checksum",
                path.display(),
                opened[0].filter.format()
            ),
            Some(opened) => verify_foreign(&opened, args.probes),
            None => verify_file(path, &args),
        },
        Place::Redis(at) if args.seal => {
            bail!("{at}: --seal is for files, not for filters in Redis")
        }
        Place::Redis(at) => {
            args.foreign.refuse_in_redis()?;
            let mut filter = args.redis.open(at, &args.key)?;
            filter.verify().map_err(in_redis(at))?;
            output::print(match filter.module_layout() {
                Some(_) => "the filter: present\n",
                None => "header and chunks: all present\n",
            })?;
            let about = About::in_redis(&mut filter).map_err(in_redis(at))?;
            measure(about.rates(), args.probes, |keys, found| {
                filter.contains_many(keys, found).map_err(in_redis(at))
            })?;
            about.warn_if_over();
            Ok(Exit::Done)
        }
    }
}

fn verify_file(path: &Path, args: &Args) -> Result<Exit> {
    let open = args.key.open()?;
    let named = || named(path);
    if args.seal {
        let mut lock = FileLock::try_acquire(path).map_err(named())?;
        let filter = open.clone().accept_loss().load(path).map_err(named())?;
        filter.save_under(&mut lock).map_err(named())?;
    }
    let sealed = AnyFilter::verify(path, &open).map_err(named())?;
    let filter = open.map(path).map_err(named())?;
    output::print(match sealed {
        true => "header and body checksums: valid\n",
        false => {
            "header checksum: valid; the body has none, because it was last written in place \
             (--seal writes one)\n"
        }
    })?;
    let about = About::of(&filter);
    measure(about.rates(), args.probes, |keys, found| {
        filter.contains_many(keys, found);
        Ok(())
    })?;
    about.warn_if_over();
    Ok(Exit::Done)
}

/// Opening has checked every number against the length, and a checksum.
fn verify_foreign(opened: &[foreign::Opened], probes: u64) -> Result<Exit> {
    for one in opened {
        let filter = &one.filter;
        let name = one
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}: "));
        output::print(&format!("{name}{} file: valid\n", filter.format()))?;
        // A column's values may all be of one length.
        let len = match filter.keys() {
            [keys] => keys.value_len().unwrap_or(16),
            _ => 16,
        };
        let now = filter.rate_now();
        // Double hashing, which most have, strays from the formula in small filters: its steps
        // may have a divisor in common with the size, and meet the same bits again.
        let straying = filter.hashes().unwrap_or(0) as f64 / filter.bits() as f64;
        let rates = Rates {
            now,
            promised: filter.facts().rate,
            tolerance: 0.25 * now + straying,
        };
        measure(rates, probes, |keys, found| {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..len]).collect();
            filter.contains_many(&keys, found);
            Ok(())
        })?;
        foreign::tell::warn_if_over(one);
    }
    Ok(Exit::Done)
}

/// How often a key that is not there should be found.
#[derive(Clone, Copy)]
struct Rates {
    now: f64,
    promised: Option<f64>,
    /// How far the formula may be from the truth, beside chance.
    tolerance: f64,
}

impl About {
    const fn rates(&self) -> Rates {
        Rates {
            now: self.rate_now,
            promised: Some(self.rate),
            tolerance: 0.0,
        }
    }
}

/// Random 16-byte keys: that one of them was really added is out of the
/// question.
fn measure(
    rates: Rates,
    probes: u64,
    mut ask: impl FnMut(&[[u8; 16]], &mut [bool]) -> Result<()>,
) -> Result<()> {
    const BATCH: usize = 4096;
    let mut keys = vec![[0u8; 16]; BATCH];
    let mut found = vec![false; BATCH];
    let (mut asked, mut yes) = (0, 0);
    let random = tamis::Hasher::keyed(tamis::SecretKey::random()?);
    while asked < probes {
        let now = BATCH.min((probes - asked) as usize);
        for (i, key) in keys[..now].iter_mut().enumerate() {
            *key = random
                .hash(&(asked + i as u64).to_le_bytes())
                .as_u128()
                .to_le_bytes();
        }
        ask(&keys[..now], &mut found[..now])?;
        yes += found[..now].iter().filter(|found| **found).count() as u64;
        asked += now as u64;
    }
    let expected = rates.now;
    let measured = yes as f64 / asked.max(1) as f64;
    // Five standard errors: one honest filter in millions strays further.
    let error = 5.0 * (expected * (1.0 - expected) / asked.max(1) as f64).sqrt();
    output::print(&format!(
        "rate: measured {} ({yes} of {}), expected now {}{}\n",
        human::rate(measured),
        human::counted(asked, "random key"),
        human::rate(expected),
        rates.promised.map_or_else(String::new, |rate| format!(
            ", promised {}",
            human::rate(rate)
        )),
    ))?;
    if measured > expected + rates.tolerance + error + 5.0 / asked.max(1) as f64 {
        bail!("the measured rate is far above the expected rate; the body may be damaged");
    }
    Ok(())
}
