//! Creates filters for other systems.

use super::{Encoding, KeyBytes};
use crate::stream::{Pass, Report, Run};
use crate::{human, output};
use anyhow::{Result, bail};
use std::path::Path;
use tamis_formats::{Create, Foreign, Format, Optimise};

/// A new, empty filter of this format, with its own system's defaults.
pub(crate) fn create(format: Format, keys: u64, rate: f64, seed: u64) -> Result<Foreign<'static>> {
    let seeded = matches!(format, Format::Bip37 | Format::Npm | Format::Spark);
    if seed != 0 && !seeded {
        bail!("--seed is for bip37 (its tweak), bloom-filters and spark; {format} has no seed");
    }
    let small_seed = || match u32::try_from(seed) {
        Ok(seed) => Ok(seed),
        Err(_) => bail!("--seed {seed}: {format} has seeds of 32 bits"),
    };
    let what = match format {
        Format::Bip37 => Create::Bip37 {
            tweak: small_seed()?,
            flags: 0,
        },
        Format::BitsAndBlooms => Create::BitsAndBlooms { json: false },
        Format::Dcso => Create::Dcso,
        Format::Guava => Create::guava(),
        Format::Npm => Create::Npm { seed },
        Format::Parquet => Create::Parquet,
        Format::Poppy => Create::Poppy(Optimise::None),
        Format::Pybloomfilter => Create::Pybloomfilter { seeds: Vec::new() },
        Format::RedisBloom => Create::RedisBloom {
            growth: Some(2),
            chunks: false,
        },
        // The server's own defaults.
        Format::RedisCuckoo => Create::RedisCuckoo {
            bucket_size: 2,
            most_kicks: 20,
            expansion: 1,
            chunks: false,
        },
        Format::Redisson => bail!(
            "a redisson filter lives in Redis\n\
             hint: `tamis create --format redisson redis://HOST:PORT/NAME --capacity N`"
        ),
        Format::Spark => Create::Spark {
            seed: Some(small_seed()?),
        },
        other => bail!("{other} filters are parts of files that only their own system writes"),
    };
    Ok(tamis_formats::create(what, keys, rate)?)
}

/// One line about a new filter.
pub(crate) fn summary(path: &Path, filter: &Foreign<'_>, keys: u64, bytes: usize) -> String {
    format!(
        "{}: {} for {}, {}{}",
        path.display(),
        filter.format(),
        human::counted(keys, "key"),
        human::size(bytes as u64),
        match keys {
            0 => String::new(),
            keys => format!(" ({:.2} bits a key)", bytes as f64 * 8.0 / keys as f64),
        },
    )
}

/// Warns if the format's own sizing rule can't keep the rate: sizes have limits, and numbers of hashes are rounded.
pub(crate) fn warn_if_wanting(filter: &Foreign<'_>, keys: u64, rate: f64) {
    // These store keys in blocks; their rate is only known once they are full.
    if matches!(filter.format(), Format::Parquet | Format::Poppy) {
        return;
    }
    let Some(hashes) = filter.hashes() else {
        return;
    };
    let hashes = hashes as f64;
    let fill = 1.0 - (-hashes * keys as f64 / filter.bits() as f64).exp();
    let full = fill.powf(hashes);
    if full > 1.1 * rate {
        output::warn(format_args!(
            "sized by the rules of {}, the filter will have a rate of {} when full, not {}",
            filter.format(),
            human::rate(full),
            human::rate(rate),
        ));
    }
}

/// All keys that a command reads, concatenated.
#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

/// The keys of the input in memory, sorted and without duplicates.
pub(crate) struct Distinct {
    collected: Collected,
    order: Vec<usize>,
}

impl Collected {
    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

impl Distinct {
    /// Reads all keys.
    pub(crate) fn read(input: &Run, encoding: &Encoding) -> Result<(Self, Report)> {
        let mut shards = [Collected::default()];
        let report = Pass::new(input, encoding, &mut shards).run(
            |all: &mut Collected, keys: &[KeyBytes], _: &mut [bool]| {
                for key in keys {
                    all.bytes.extend_from_slice(key.get()?);
                    all.ends.push(all.bytes.len());
                }
                Ok(())
            },
        )?;
        let [collected] = shards;
        let mut order: Vec<usize> = (0..collected.ends.len()).collect();
        order.sort_unstable_by_key(|i| collected.key(*i));
        order.dedup_by_key(|i| collected.key(*i));
        Ok((Self { collected, order }, report))
    }

    pub(crate) fn len(&self) -> u64 {
        self.order.len() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.order.iter().map(|i| self.collected.key(*i))
    }
}
