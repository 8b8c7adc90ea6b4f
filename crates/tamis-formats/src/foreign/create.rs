//! Creates filters as their systems do.

use super::{Foreign, open_owned, redisson};
use crate::format::poppy::{self, Optimise};
use crate::format::redis::chain::Chain;
use crate::format::redis::cuckoo::Cuckoo;
use crate::format::redis::{new_bloom, new_cuckoo};
use crate::format::{
    bip37, bits_and_blooms, dcso, guava, npm, parquet, pybloomfilter, redisson as in_redis, spark,
};
use crate::{Error, Format, Strategy, Wrap};

/// An empty filter to create: its format, and the choices that the format
/// leaves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Create {
    /// BIP 37.
    Bip37 {
        /// Makes the filter's hashes different from those of others.
        tweak: u32,
        /// Which of the node's transactions update it: 0, 1 or 2.
        flags: u8,
    },
    /// Go's bits-and-blooms.
    BitsAndBlooms {
        /// JSON instead of binary.
        json: bool,
    },
    /// DCSO's bloom, version 1.
    Dcso,
    /// Guava.
    Guava {
        /// How bits are chosen.
        strategy: Strategy,
        /// Count hashes as Guava before 33.4 does.
        before_33_4: bool,
    },
    /// npm's bloom-filters.
    Npm {
        /// The seed of its hashes.
        seed: u64,
    },
    /// A single split-block filter of Parquet.
    Parquet,
    /// poppy, version 2.
    Poppy(Optimise),
    /// pybloomfiltermmap3.
    Pybloomfilter {
        /// One seed per bit; if empty, 1, 2, 3 and so on, as many as the rate
        /// needs.
        seeds: Vec<u32>,
    },
    /// RedisBloom's Bloom filter, for RESTORE or LOADCHUNK.
    RedisBloom {
        /// How many times larger each layer is than the one before; `None` for
        /// a filter that accepts no more keys than it was made for.
        growth: Option<u32>,
        /// As chunks instead of a DUMP.
        chunks: bool,
    },
    /// RedisBloom's cuckoo filter. Its buckets determine the rate.
    RedisCuckoo {
        /// Slots per bucket.
        bucket_size: u16,
        /// How often a fingerprint is moved before the filter grows.
        most_kicks: u16,
        /// How many times larger each table is than the one before; 0 for a
        /// filter that doesn't grow.
        expansion: u16,
        /// As chunks instead of a DUMP.
        chunks: bool,
    },
    /// Redisson.
    Redisson,
    /// Spark.
    Spark {
        /// The seed of version 2; `None` for version 1.
        seed: Option<u32>,
    },
}

impl Create {
    /// Guava as its newest version creates it.
    ///
    /// ```
    /// use tamis_formats::{Create, Strategy};
    /// assert!(matches!(Create::guava(), Create::Guava { strategy: Strategy::Mitz64, .. }));
    /// ```
    pub const fn guava() -> Self {
        Self::Guava {
            strategy: Strategy::Mitz64,
            before_33_4: false,
        }
    }
}

/// Creates an empty filter for `keys` keys at `rate`, sized by its own system's
/// rule.
///
/// ```
/// use tamis_formats::{Create, create};
/// let mut filter = create(Create::Spark { seed: None }, 1_000, 0.01)?;
/// assert!(filter.insert(b"key")?);
/// assert!(!filter.insert(b"key")?); // not new any more
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn create(what: Create, keys: u64, rate: f64) -> Result<Foreign<'static>, Error> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::Parameter {
            what: "rate",
            expected: "more than 0 and less than 1",
            got: rate.to_string(),
        });
    }
    let (format, file) = match what {
        Create::Bip37 { tweak, flags } => (Format::Bip37, bip37::create(keys, rate, tweak, flags)),
        Create::BitsAndBlooms { json } => {
            let file = bits_and_blooms::create(keys, rate)?;
            let mut filter = open_owned(file, Format::BitsAndBlooms)?;
            filter.rewrap(if json { Wrap::Json } else { Wrap::Binary })?;
            return Ok(filter);
        }
        Create::Dcso => (Format::Dcso, dcso::create(keys, rate)?),
        Create::Guava {
            strategy,
            before_33_4,
        } => (
            Format::Guava,
            guava::create(keys, rate, strategy, before_33_4)?,
        ),
        Create::Npm { seed } => (Format::Npm, npm::create(keys, rate, seed)?),
        Create::Parquet => (Format::Parquet, parquet::create(keys, rate)),
        Create::Poppy(optimise) => (Format::Poppy, poppy::create(keys, rate, optimise)?),
        Create::Pybloomfilter { seeds } => {
            let seeds = if seeds.is_empty() {
                let hashes = pybloomfilter::hashes_for(rate) as u32;
                (1..=hashes.min(pybloomfilter::MOST_HASHES as u32)).collect()
            } else {
                seeds
            };
            let file = pybloomfilter::create(keys, rate, &seeds)?;
            (Format::Pybloomfilter, file)
        }
        Create::RedisBloom { growth, chunks } => {
            let opened = new_bloom(Chain::new(keys, rate, growth)?, chunks);
            return Ok(Foreign::new(Format::RedisBloom, Vec::new().into(), opened));
        }
        Create::RedisCuckoo {
            bucket_size,
            most_kicks,
            expansion,
            chunks,
        } => {
            let cuckoo = Cuckoo::new(keys, bucket_size, most_kicks, expansion)?;
            let opened = new_cuckoo(cuckoo, chunks);
            return Ok(Foreign::new(Format::RedisCuckoo, Vec::new().into(), opened));
        }
        Create::Redisson => {
            let (size, hashes) = in_redis::shape(keys, rate)?;
            return redisson(Vec::new(), size, hashes);
        }
        Create::Spark { seed } => (Format::Spark, spark::create(keys, rate, seed)?),
    };
    open_owned(file, format)
}
