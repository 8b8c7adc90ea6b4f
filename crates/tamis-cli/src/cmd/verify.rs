use crate::location::{KeyFile, named};
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use std::path::PathBuf;
use tamis::{AnyFilter, FileLock, Map};

/// Check a filter's checksums and measure its rate
///
/// Reads every byte and compares it with the checksums, then asks random keys
/// and compares how many seem present with the rate to expect.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter or index
    filter: PathBuf,

    /// Record the body as it is now: a new checksum, and no mark of an unclean end
    ///
    /// For a file that was last written in place, which leaves no checksum, or
    /// that was open for writing when the machine went down. In the second case
    /// keys that were lost stay lost.
    #[arg(long)]
    seal: bool,

    /// How many random keys to ask
    #[arg(long, value_name = "N", default_value = "1M", value_parser = human::parse_count)]
    probes: u64,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if crate::index::is_index(&args.filter) {
        return crate::index::tell::verify(&args.filter);
    }
    let open = args.key.open()?;
    let named = || named(&args.filter);
    if args.seal {
        let mut lock = FileLock::try_acquire(&args.filter).map_err(named())?;
        let filter = open
            .clone()
            .accept_loss()
            .load(&args.filter)
            .map_err(named())?;
        filter.save_under(&mut lock).map_err(named())?;
    }
    let sealed = AnyFilter::verify(&args.filter, &open).map_err(named())?;
    let filter = open.map(&args.filter).map_err(named())?;
    output::print(match sealed {
        true => "header and body checksums: sound\n",
        false => {
            "header checksum: sound; the body has none, because it was last written in place \
             (--seal records one)\n"
        }
    })?;
    measure(&filter, args.probes)
}

/// Random 16-byte keys: that one of them was really added is out of the
/// question.
fn measure(filter: &AnyFilter<Map>, probes: u64) -> Result<Exit> {
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
        filter.contains_many(&keys[..now], &mut found[..now]);
        yes += found[..now].iter().filter(|found| **found).count() as u64;
        asked += now as u64;
    }
    let expected = filter.rate_now();
    let measured = yes as f64 / asked.max(1) as f64;
    // Five standard errors: one honest filter in millions strays further.
    let error = 5.0 * (expected * (1.0 - expected) / asked.max(1) as f64).sqrt();
    output::print(&format!(
        "rate: measured {} ({yes} of {} random keys), expected now {}, promised {}\n",
        human::rate(measured),
        human::count(asked),
        human::rate(expected),
        human::rate(filter.rate()),
    ))?;
    if measured > expected + error + 5.0 / asked.max(1) as f64 {
        bail!("the measured rate is far above the expected one; the body may be damaged");
    }
    super::info::warn_if_over(filter, expected);
    Ok(Exit::Done)
}
