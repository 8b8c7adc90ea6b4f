//! A filter of another system, whatever its format.

mod create;
mod open;
mod rewrap;
mod union;

pub use create::{Create, create};
pub use open::{Hint, may_be, open, open_owned};
pub use rewrap::Wrap;

use crate::format::poppy::Poppy;
use crate::format::redis::{self, Value, Wrapping};
use crate::format::sst::Table;
use crate::format::{
    abloom, bip37, bits_and_blooms, cassandra, dcso, fastbloom, fastfilter, guava, npm, orc,
    parquet, poppy, pybloomfilter, pyprobables, rbloom, redisson, spark, sst, valkey,
};
use crate::plain::Plain;
use crate::{Error, Facts, Format, Keys};
use std::borrow::Cow;
use std::io::Read as _;

/// A filter of another system, in its own bytes.
#[derive(Clone, Debug)]
pub struct Foreign<'a> {
    format: Format,
    body: Body<'a>,
    gzipped: bool,
}

#[derive(Clone, Debug)]
enum Body<'a> {
    Plain {
        file: Cow<'a, [u8]>,
        envelope: Envelope,
        plain: Plain,
        facts: Facts,
    },
    Poppy {
        file: Cow<'a, [u8]>,
        poppy: Poppy,
        facts: Facts,
    },
    Redis {
        value: Value<'a>,
        wrapping: Wrapping<'a>,
    },
    Table {
        file: Cow<'a, [u8]>,
        table: Table,
    },
    Orc {
        file: Cow<'a, [u8]>,
        column: orc::Column,
    },
    Parquet {
        file: Cow<'a, [u8]>,
        column: parquet::Column,
    },
    FastFilter {
        file: Cow<'a, [u8]>,
        table: fastfilter::Table,
    },
}

/// What lies around a plain filter's bytes.
#[derive(Clone, Debug, PartialEq)]
enum Envelope {
    None,
    /// bits-and-blooms's JSON, of which the file is the binary form.
    GoJson,
    /// npm's JSON, of which the file is the bits alone.
    NpmJson(npm::Json),
    /// fastbloom's JSON, of which the file is the bits alone.
    FastbloomJson(fastbloom::Json),
}

/// Whether bytes are a file of this format.
fn fits(format: Format, bytes: &[u8]) -> bool {
    read(format, bytes, None).is_ok()
}

/// Reads bytes as a file of this format.
fn read<'a>(format: Format, bytes: &'a [u8], name: Option<&[u8]>) -> Result<Body<'a>, Error> {
    let plain = |(plain, facts)| Body::Plain {
        file: bytes.into(),
        envelope: Envelope::None,
        plain,
        facts,
    };
    let table = |table| Body::Table {
        file: bytes.into(),
        table,
    };
    match format {
        Format::Abloom => abloom::read(bytes).map(plain),
        Format::Bip37 => bip37::read(bytes).map(plain),
        Format::BitsAndBlooms if bytes.first() == Some(&b'{') => {
            let file = bits_and_blooms::from_json(bytes)?;
            let (plain, facts) = bits_and_blooms::read(&file)?;
            Ok(Body::Plain {
                file: file.into(),
                envelope: Envelope::GoJson,
                plain,
                facts,
            })
        }
        Format::BitsAndBlooms => bits_and_blooms::read(bytes).map(plain),
        Format::Cassandra => cassandra::read(bytes).map(plain),
        Format::Dcso => dcso::read(bytes).map(plain),
        Format::Fastbloom => {
            let (json, file, plain) = fastbloom::read(bytes)?;
            Ok(Body::Plain {
                file: file.into(),
                envelope: Envelope::FastbloomJson(json),
                plain,
                facts: Facts::default(),
            })
        }
        Format::FastFilter => {
            let table = fastfilter::read(bytes)?;
            let file = bytes.into();
            Ok(Body::FastFilter { file, table })
        }
        Format::Guava => guava::read(bytes).map(plain),
        Format::LevelDb => sst::read_leveldb(bytes).map(table),
        Format::RocksDb => sst::read_rocksdb(bytes).map(table),
        Format::Npm => {
            let (json, file, plain) = npm::read(bytes)?;
            Ok(Body::Plain {
                file: file.into(),
                envelope: Envelope::NpmJson(json),
                plain,
                facts: Facts::default(),
            })
        }
        Format::Orc => {
            let column = orc::read(bytes, name)?;
            let file = bytes.into();
            Ok(Body::Orc { file, column })
        }
        Format::Parquet => {
            let column = parquet::read(bytes, name)?;
            let file = bytes.into();
            Ok(Body::Parquet { file, column })
        }
        Format::Poppy => {
            let (poppy, facts) = poppy::read(bytes)?;
            let file = bytes.into();
            Ok(Body::Poppy { file, poppy, facts })
        }
        Format::Pybloomfilter => pybloomfilter::read(bytes).map(plain),
        Format::Pyprobables => pyprobables::read(bytes).map(plain),
        Format::Rbloom => rbloom::read(bytes).map(plain),
        Format::RedisBloom | Format::RedisCuckoo => {
            let (value, wrapping) = redis::read(format, bytes, name)?;
            match value.format() == format {
                true => Ok(Body::Redis { value, wrapping }),
                false => Err(Error::corrupt(format, "value", format, value.format())),
            }
        }
        Format::Redisson => Err(Error::corrupt(
            format,
            "string",
            "its size and hashes, which stand in another key",
            "the string alone",
        )),
        Format::Spark => spark::read(bytes).map(plain),
        Format::Valkey => valkey::read(bytes).map(plain),
    }
}

/// Redisson's filter: the Redis string of its name, with the `size` and
/// `hashIterations` of its configuration, `{name}:config`.
///
/// ```
/// let filter = tamis_formats::redisson(Vec::new(), 9_585, 7)?;
/// assert!(!filter.contains(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn redisson(mut string: Vec<u8>, size: u64, hashes: u32) -> Result<Foreign<'static>, Error> {
    let plain = redisson::read(&mut string, size, hashes)?;
    Ok(Foreign {
        format: Format::Redisson,
        body: Body::Plain {
            file: string.into(),
            envelope: Envelope::None,
            plain,
            facts: Facts::default(),
        },
        gzipped: false,
    })
}

impl Foreign<'static> {
    const fn redis(value: Value<'static>, chunks: bool) -> Self {
        Self {
            format: value.format(),
            body: Body::Redis {
                value,
                wrapping: Wrapping::new(chunks),
            },
            gzipped: false,
        }
    }
}

impl Foreign<'_> {
    /// Its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// What the file says of itself.
    pub fn facts(&self) -> Facts {
        match &self.body {
            Body::Plain { facts, .. } | Body::Poppy { facts, .. } => *facts,
            Body::Table { .. }
            | Body::Orc { .. }
            | Body::Parquet { .. }
            | Body::FastFilter { .. } => Facts::default(),
            Body::Redis { value, .. } => match value {
                Value::Bloom(chain) => Facts {
                    capacity: Some(chain.capacity()),
                    rate: Some(chain.rate()),
                    keys: Some(chain.keys()),
                    ..Facts::default()
                },
                Value::Cuckoo(cuckoo) => Facts {
                    capacity: Some(cuckoo.capacity()),
                    keys: Some(cuckoo.keys()),
                    ..Facts::default()
                },
            },
        }
    }

    /// How its system's users make bytes of keys. If there are several ways, the
    /// file does not say which was taken.
    pub const fn keys(&self) -> &'static [Keys] {
        match &self.body {
            Body::Orc { column, .. } => column.keys(),
            Body::Parquet { column, .. } => column.keys(),
            _ => self.format.keys(),
        }
    }

    /// The same, with bytes of its own.
    pub fn into_owned(self) -> Foreign<'static> {
        let body = match self.body {
            Body::Plain {
                file,
                envelope,
                plain,
                facts,
            } => Body::Plain {
                file: Cow::Owned(file.into_owned()),
                envelope,
                plain,
                facts,
            },
            Body::Poppy { file, poppy, facts } => Body::Poppy {
                file: Cow::Owned(file.into_owned()),
                poppy,
                facts,
            },
            Body::Redis { value, wrapping } => Body::Redis {
                value: value.into_owned(),
                wrapping: wrapping.into_owned(),
            },
            Body::Table { file, table } => Body::Table {
                file: Cow::Owned(file.into_owned()),
                table,
            },
            Body::Orc { file, column } => Body::Orc {
                file: Cow::Owned(file.into_owned()),
                column,
            },
            Body::Parquet { file, column } => Body::Parquet {
                file: Cow::Owned(file.into_owned()),
                column,
            },
            Body::FastFilter { file, table } => Body::FastFilter {
                file: Cow::Owned(file.into_owned()),
                table,
            },
        };
        Foreign {
            format: self.format,
            body,
            gzipped: self.gzipped,
        }
    }

    /// Whether it may have the key, given as the bytes that its system hashes:
    /// see [`Keys::encode`](crate::Keys::encode).
    ///
    /// ```
    /// let filter = tamis_formats::create(tamis_formats::Create::Dcso, 100, 0.01)?;
    /// assert!(!filter.contains(b"key"));
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.body {
            Body::Plain { file, plain, .. } => plain.contains(file, key),
            Body::Poppy { file, poppy, .. } => poppy.contains(file, key),
            Body::Table { file, table } => table.contains(file, key),
            Body::Parquet { file, column } => column.contains(file, key),
            Body::FastFilter { file, table } => table.contains(file, key),
            Body::Orc { column, .. } => column
                .plains()
                .any(|(plain, bytes)| plain.contains(bytes, key)),
            Body::Redis { value, .. } => match value {
                Value::Bloom(chain) => chain.contains(key),
                Value::Cuckoo(cuckoo) => cuckoo.contains(key),
            },
        }
    }

    /// [`contains`](Self::contains) of many: `out[i]` becomes the answer for
    /// `keys[i]`. Faster than one by one, because the waits for the memory
    /// overlap.
    ///
    /// # Panics
    /// If there are not as many answers as keys.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "one answer for each key");
        out.fill(false);
        match &self.body {
            Body::Plain { file, plain, .. } if plain.probe.is_single() => {
                plain.contains_many(file, keys, out);
            }
            Body::Poppy { file, poppy, .. } => poppy.contains_many(file, keys, out),
            Body::Redis {
                value: Value::Bloom(chain),
                ..
            } => chain.contains_many(keys, out),
            Body::Orc { column, .. } => {
                for (plain, bytes) in column.plains() {
                    plain.contains_many(bytes, keys, out);
                }
            }
            _ => {
                for (key, out) in keys.iter().zip(out) {
                    *out = self.contains(key.as_ref());
                }
            }
        }
    }

    /// Whether keys can be added, or why not.
    pub fn check_writable(&self) -> Result<(), Error> {
        let format = self.format;
        let instead = match &self.body {
            Body::Parquet { file, column } if column.only(file).is_none() => {
                Some("a file's filters describe its rows; a filter by itself takes keys")
            }
            _ => format.read_only(),
        };
        instead.map_or(Ok(()), |instead| Err(Error::ReadOnly { format, instead }))
    }

    /// Adds a key, as the filter's own system would; says whether it was new.
    /// A cuckoo filter takes a key as often as it is added.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.check_writable()?;
        match &mut self.body {
            Body::Plain {
                file, plain, facts, ..
            } => {
                let new = plain.insert(file.to_mut(), key);
                facts.count(file.to_mut(), new);
                Ok(new)
            }
            Body::Poppy { file, poppy, facts } => {
                let new = poppy.insert(file.to_mut(), key, facts)?;
                facts.count(file.to_mut(), new);
                Ok(new)
            }
            Body::Redis { value, .. } => match value {
                Value::Bloom(chain) => chain.insert(key),
                Value::Cuckoo(cuckoo) => {
                    let new = !cuckoo.contains(key);
                    cuckoo.insert(key)?;
                    Ok(new)
                }
            },
            Body::Parquet { file, column } => match column.only(file) {
                Some(blocks) => Ok(blocks.insert(file.to_mut(), key)),
                None => unreachable!("a file's own filters have been refused"),
            },
            Body::Table { .. } | Body::Orc { .. } | Body::FastFilter { .. } => {
                unreachable!("read-only formats have been refused")
            }
        }
    }

    /// Whether keys can be removed: only from a cuckoo filter.
    pub const fn check_removable(&self) -> Result<(), Error> {
        match &self.body {
            Body::Redis {
                value: Value::Cuckoo(_),
                ..
            } => Ok(()),
            _ => Err(Error::Unable {
                format: self.format,
                what: "forget keys",
                instead: "a bit may be another key's, too; only redisbloom-cuckoo filters can",
            }),
        }
    }

    /// Removes a key once from a cuckoo filter; says whether it was there.
    /// Remove only what was added: another key may go instead.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.check_removable()?;
        match &mut self.body {
            Body::Redis {
                value: Value::Cuckoo(cuckoo),
                ..
            } => Ok(cuckoo.remove(key)),
            _ => Ok(false),
        }
    }

    /// The file, to be read by its own system.
    pub fn to_bytes(&self) -> Vec<u8> {
        let file = match &self.body {
            Body::Plain { file, envelope, .. } => match envelope {
                Envelope::None => file.to_vec(),
                Envelope::GoJson => bits_and_blooms::to_json(file),
                Envelope::NpmJson(json) => npm::write(json, file),
                Envelope::FastbloomJson(json) => fastbloom::write(json, file),
            },
            Body::Poppy { file, .. }
            | Body::Table { file, .. }
            | Body::Orc { file, .. }
            | Body::FastFilter { file, .. }
            | Body::Parquet { file, .. } => file.to_vec(),
            Body::Redis { value, wrapping } => redis::write(value, wrapping),
        };
        if !self.gzipped {
            return file;
        }
        let mut packed = Vec::new();
        let level = flate2::Compression::default();
        // Reading from memory and writing to it can't fail.
        let _ = flate2::read::GzEncoder::new(&*file, level).read_to_end(&mut packed);
        packed
    }

    /// The filters of one run of bits that it is made of, with their bytes.
    fn plains(&self) -> Vec<(&Plain, &[u8])> {
        match &self.body {
            Body::Plain { file, plain, .. } => vec![(plain, file)],
            Body::Redis {
                value: Value::Bloom(chain),
                ..
            } => chain.layers().collect(),
            Body::Table { file, table } => table.plains().map(|plain| (plain, &**file)).collect(),
            Body::Orc { column, .. } => column.plains().collect(),
            _ => Vec::new(),
        }
    }

    /// The share of its bits, or of its slots, that are set.
    pub fn fill(&self) -> f64 {
        match &self.body {
            Body::Redis {
                value: Value::Cuckoo(cuckoo),
                ..
            } => cuckoo.fill(),
            Body::Poppy { file, poppy, .. } => poppy.fill(file),
            Body::Table { file, table } => table.fill(file),
            Body::Parquet { file, column } => column.fill(file),
            Body::FastFilter { file, table } => table.fill(file),
            _ => {
                let plains = self.plains();
                let ones: u64 = plains
                    .iter()
                    .map(|(plain, file)| plain.bits.ones(file))
                    .sum();
                let bits: u64 = plains.iter().map(|(plain, _)| plain.bits.len).sum();
                ones as f64 / bits as f64
            }
        }
    }

    /// How often a key that is not in it is taken for one, by how full it is.
    pub fn rate_now(&self) -> f64 {
        match &self.body {
            Body::Redis {
                value: Value::Cuckoo(cuckoo),
                ..
            } => cuckoo.rate_now(),
            Body::Poppy { file, poppy, .. } => poppy.rate(file),
            Body::Table { file, table } => table.rate(file),
            Body::Parquet { file, column } => column.rate(file),
            Body::FastFilter { table, .. } => table.rate(),
            _ => {
                let no = self
                    .plains()
                    .into_iter()
                    .map(|(plain, file)| 1.0 - plain.rate(file));
                1.0 - no.product::<f64>()
            }
        }
    }

    /// The number of keys, counted or estimated from how full it is; none if
    /// every bit is set.
    pub fn keys_now(&self) -> Option<f64> {
        match &self.body {
            Body::Redis {
                value: Value::Cuckoo(cuckoo),
                ..
            } => Some(cuckoo.keys() as f64),
            Body::Poppy { file, poppy, .. } => poppy.keys(file),
            Body::Table { file, table } => table.keys(file),
            Body::Parquet { file, column } => column.key_count(file),
            Body::FastFilter { file, table } => Some(table.keys(file)),
            _ => self
                .plains()
                .into_iter()
                .map(|(plain, file)| plain.keys(file))
                .sum(),
        }
    }

    /// How many bits it has; eight a slot in a cuckoo filter.
    pub fn bits(&self) -> u64 {
        match &self.body {
            Body::Redis {
                value: Value::Cuckoo(cuckoo),
                ..
            } => 8 * cuckoo.capacity(),
            Body::Poppy { poppy, .. } => poppy.bits(),
            Body::Table { table, .. } => table.bits(),
            Body::Parquet { column, .. } => column.bits(),
            Body::FastFilter { table, .. } => table.bits(),
            _ => self.plains().iter().map(|(plain, _)| plain.bits.len).sum(),
        }
    }

    /// How many bits a key has, in the newest of its layers; none in a cuckoo
    /// filter.
    pub fn hashes(&self) -> Option<u64> {
        match &self.body {
            Body::Poppy { poppy, .. } => Some(poppy.hashes()),
            Body::Parquet { .. } => Some(8),
            _ => self.plains().last().map(|(plain, _)| plain.probe.hashes()),
        }
    }
}

impl Format {
    /// Why files of it can't be written here.
    const fn read_only(self) -> Option<&'static str> {
        match self {
            Self::Cassandra => Some("Cassandra writes a new one with every SSTable"),
            Self::FastFilter => {
                Some("it is built of all its keys at once, as Tamis's fuse filters are")
            }
            Self::Pyprobables => Some("the file does not say whether its keys are str or bytes"),
            Self::LevelDb | Self::RocksDb => Some("the store writes a new one with every table"),
            Self::Orc => Some("an ORC file is written as a whole"),
            Self::Valkey => Some("add keys through the server"),
            _ => None,
        }
    }
}
