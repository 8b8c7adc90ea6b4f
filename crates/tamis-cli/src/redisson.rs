//! Redisson's filters in Redis, while Java programs use them.

use crate::foreign::{self, Encoding, ForeignArgs, KeyBytes};
use crate::location::in_redis;
use crate::stream::{Halt, Run};
use crate::{human, output};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::fmt::Write as _;
use tamis_formats::{Format, RedissonShape};
use tamis_redis::{BitString, Location, Options};
use tamis_report::server::MOST_REDISSON_BITS;

const SIZE: &str = "size";
const HASHES: &str = "hashIterations";
const KEYS: &str = "expectedInsertions";
const RATE: &str = "falseProbability";

/// A filter in Redis.
pub(crate) struct Live {
    bits: BitString,
    shape: RedissonShape,
    at: Location,
}

impl ForeignArgs {
    /// Whether the user says that a filter in Redis is Redisson's.
    pub(crate) fn is_redisson(&self) -> Result<bool> {
        match self.format() {
            None => self.refuse_for_ours("in Redis").map(|()| false),
            Some(Format::Redisson) => Ok(true),
            Some(other) => bail!(
                "--format {other}: of the other systems' filters in Redis, only redisson's are supported, \
                 and bitmaps, by check and copy\n\
                 hint: DUMP a redisbloom filter to a file"
            ),
        }
    }

    /// How keys become bytes. That depends on the codec, which Redis doesn't record, so the user has to name it.
    pub(crate) fn codec(&self, input: &Run) -> Result<Encoding> {
        foreign::check_rule(input)?;
        if self.keys().is_none() {
            bail!(
                "a redisson filter does not say which codec turned its keys into bytes\n\
                 hint: use --format redisson,keys=utf8 for StringCodec, kryo5 for text of the default, Kryo5Codec, \
                 json for JsonJacksonCodec"
            );
        }
        Encoding::of(Format::Redisson, Format::Redisson.keys(), self.keys())
    }
}

impl Live {
    pub(crate) fn open(at: &Location, options: &Options) -> Result<Self> {
        let bits = BitString::open(at, &[SIZE, HASHES], options).map_err(in_redis(at))?;
        let number = |name| -> Result<u64> {
            let text = bits.field(name).unwrap_or_default();
            let number = text.parse();
            number.map_err(|_| anyhow!("{at}: {name}: expected a number, got {text:?}"))
        };
        let hashes = u32::try_from(number(HASHES)?).unwrap_or(u32::MAX);
        let shape = RedissonShape::new(number(SIZE)?, hashes);
        Ok(Self {
            shape: shape.with_context(|| at.to_string())?,
            bits,
            at: at.clone(),
        })
    }

    fn positions(&self, keys: &[KeyBytes]) -> Result<Vec<Vec<u64>>> {
        keys.iter()
            .map(|key| Ok(self.shape.bits(key.get()?)))
            .collect()
    }

    pub(crate) fn ask(&mut self, keys: &[KeyBytes], found: &mut [bool]) -> Result<()> {
        let keys = self.positions(keys)?;
        let answers = self.bits.get(&keys).map_err(in_redis(&self.at))?;
        found.copy_from_slice(&answers);
        Ok(())
    }

    /// Adds keys and marks those that were new. If the server fails, keys whose state is unknown count as new: better
    /// twice than never.
    pub(crate) fn add(&mut self, keys: &[KeyBytes], new: &mut [bool]) -> Result<(), Halt> {
        let keys = self.positions(keys)?;
        match self.bits.set(&keys) {
            Ok(had) => {
                new.iter_mut().zip(had).for_each(|(new, had)| *new = !had);
                Ok(())
            }
            Err(error) => {
                new.fill(true);
                Err(Halt::FailedAfter(in_redis(&self.at)(error)))
            }
        }
    }

    /// Prints facts about the filter.
    pub(crate) fn info(&mut self, as_json: bool) -> Result<()> {
        let asked = |error| in_redis(&self.at)(error);
        let ones = self.bits.ones().map_err(asked)?;
        let bytes = self.bits.bytes().map_err(asked)?;
        let capacity = self.bits.more(KEYS).map_err(asked)?;
        let rate = self.bits.more(RATE).map_err(asked)?;
        let estimated = self.shape.keys_now(ones).map(|keys| keys.round() as u64);
        let fill = ones as f64 / self.shape.size() as f64;
        let rate_now = self.shape.rate_now(ones);
        let capacity = capacity.and_then(|text| text.parse::<u64>().ok());
        let rate = rate.and_then(|text| text.parse::<f64>().ok());
        if as_json {
            let answer = json!({
                "format": "redisson",
                "bytes": bytes,
                "bits": self.shape.size(),
                "hashes": self.shape.hashes(),
                "capacity": capacity,
                "rate": rate,
                "keys_estimated": estimated,
                "fill": fill,
                "rate_now": rate_now,
                "not_said": ["keys", "key_encoding"],
            });
            return output::print(&format!("{answer:#}\n"));
        }
        let not_said = || "the configuration does not say".to_owned();
        let bits = human::counted(self.shape.size(), "bit");
        let mut out = String::new();
        for (name, value) in [
            ("format", "redisson".to_owned()),
            ("size", human::size(bytes)),
            (
                "shape",
                format!(
                    "{bits}, {}",
                    human::counted(self.shape.hashes().into(), "hash")
                ),
            ),
            (
                "keys are",
                "the codec's bytes: the server does not say which (--format redisson,keys=HOW)"
                    .into(),
            ),
            (
                "capacity",
                capacity.map_or_else(not_said, |keys| human::counted(keys, "key")),
            ),
            (
                "keys",
                estimated.map_or("unknown: every bit is set".into(), |keys| {
                    format!("about {} (estimated)", human::count(keys))
                }),
            ),
            ("rate promised", rate.map_or_else(not_said, human::rate)),
            ("rate now", format!("{} (computed)", human::rate(rate_now))),
            ("fill", format!("{:.1} % (computed)", fill * 100.0)),
        ] {
            // Writing to a String can't fail.
            let _ = writeln!(out, "{name:<14} {value}");
        }
        output::print(&out)
    }
}

/// Creates an empty filter, like `tryInit`.
pub(crate) fn create(
    at: &Location,
    keys: u64,
    rate: f64,
    force: bool,
    options: &Options,
) -> Result<()> {
    let shape = RedissonShape::for_keys(keys, rate)?;
    if shape.size() > MOST_REDISSON_BITS {
        bail!(
            "{at}: {} at a rate of {} need {} bits; redisson has at most {}",
            human::counted(keys, "key"),
            human::rate(rate),
            human::count(shape.size()),
            human::count(MOST_REDISSON_BITS)
        );
    }
    let fields = [
        (SIZE, shape.size().to_string()),
        (HASHES, shape.hashes().to_string()),
        (KEYS, keys.to_string()),
        (RATE, rate.to_string()),
    ];
    BitString::create(at, &fields, force, options).map_err(in_redis(at))?;
    say!(
        "{at}: redisson for {}, {}, {}",
        human::counted(keys, "key"),
        human::counted(shape.size(), "bit"),
        human::counted(shape.hashes().into(), "hash"),
    );
    Ok(())
}
