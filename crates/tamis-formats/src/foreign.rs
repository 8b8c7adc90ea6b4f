//! A filter of another system, whatever its format.

mod create;
mod rewrap;
mod union;

pub use create::{Create, create};
pub use rewrap::Wrap;

use crate::detect::detect;
use crate::format::poppy::Poppy;
use crate::format::redis::{self, Value, Wrapping};
use crate::format::sst::Table;
use crate::format::{
    bip37, bits_and_blooms, cassandra, dcso, guava, npm, orc, parquet, poppy, pybloomfilter,
    redisson, spark, sst, valkey,
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
}

/// What lies around a plain filter's bytes.
#[derive(Clone, Debug, PartialEq)]
enum Envelope {
    None,
    /// bits-and-blooms's JSON, of which the file is the binary form.
    GoJson,
    /// npm's JSON, of which the file is the bits alone.
    NpmJson(npm::Json),
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

/// What is known of bytes before they are opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint<'h> {
    /// Their format.
    pub format: Option<Format>,
    /// The name of the filter, where there may be several: the key in an RDB
    /// file, the column in a Parquet or ORC file.
    pub name: Option<&'h [u8]>,
    /// To how many bytes a gzipped file may unpack: 256 MiB by default.
    pub most_unpacked: Option<u64>,
}

/// What a gzipped file may unpack to, unless a hint allows more.
const MOST_UNPACKED: u64 = 256 << 20;

impl From<Format> for Hint<'_> {
    fn from(format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::default()
        }
    }
}

/// Opens a file, told apart from the other formats unless the hint says what
/// it is. A gzipped one is unpacked, any other is asked in place.
///
/// ```
/// use tamis_formats::{Create, Error, Format, Hint};
/// let file = tamis_formats::create(Create::Dcso, 1_000, 0.01)?.to_bytes();
/// assert_eq!(tamis_formats::open(&file, Hint::default())?.format(), Format::Dcso);
/// assert!(matches!(tamis_formats::open(b"no filter", Hint::default()), Err(Error::Unknown)));
/// # Ok::<(), Error>(())
/// ```
pub fn open<'a, 'h>(bytes: &'a [u8], hint: impl Into<Hint<'h>>) -> Result<Foreign<'a>, Error> {
    let hint = hint.into();
    if !bytes.starts_with(&GZIP) {
        return open_unpacked(bytes, hint);
    }
    match unpack(bytes, hint.most_unpacked.unwrap_or(MOST_UNPACKED)) {
        // Only once: there is gzip that unpacks to itself.
        Ok(file) => {
            let mut opened = open_owned_unpacked(file, hint)?;
            opened.gzipped = true;
            Ok(opened)
        }
        // Bits may begin like gzip.
        Err(error) => open_unpacked(bytes, hint).map_err(|other| match other {
            Error::Unknown | Error::Corrupt { .. } => error,
            other => other,
        }),
    }
}

/// [`open`] of bytes that become the filter's, without a copy of them.
///
/// ```
/// use tamis_formats::{Create, Format};
/// let file = tamis_formats::create(Create::Dcso, 1_000, 0.01)?.to_bytes();
/// let filter = tamis_formats::open_owned(file, Format::Dcso)?;
/// assert_eq!(filter.format(), Format::Dcso);
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn open_owned<'h>(
    bytes: Vec<u8>,
    hint: impl Into<Hint<'h>>,
) -> Result<Foreign<'static>, Error> {
    let hint = hint.into();
    if bytes.starts_with(&GZIP) {
        return Ok(open(&bytes, hint)?.into_owned());
    }
    open_owned_unpacked(bytes, hint)
}

fn open_owned_unpacked(bytes: Vec<u8>, hint: Hint<'_>) -> Result<Foreign<'static>, Error> {
    let opened = open_unpacked(&bytes, hint)?;
    let (format, gzipped) = (opened.format, opened.gzipped);
    let body = match opened.body {
        Body::Plain {
            envelope: Envelope::None,
            plain,
            facts,
            ..
        } => Body::Plain {
            file: bytes.into(),
            envelope: Envelope::None,
            plain,
            facts,
        },
        Body::Poppy { poppy, facts, .. } => Body::Poppy {
            file: bytes.into(),
            poppy,
            facts,
        },
        body => {
            return Ok(Foreign {
                format,
                body,
                gzipped,
            }
            .into_owned());
        }
    };
    Ok(Foreign {
        format,
        body,
        gzipped,
    })
}

/// Whether a file may be one of a known format, by its first and last bytes and
/// its length: for those who read no more of what is none. Each end has 64 KiB,
/// or all there is.
///
/// ```
/// let file = tamis_formats::create(tamis_formats::Create::guava(), 10_000_000, 0.01)?.to_bytes();
/// let (start, end) = (&file[..1 << 16], &file[file.len() - (1 << 16)..]);
/// assert!(tamis_formats::may_be(start, end, file.len() as u64));
/// assert!(!tamis_formats::may_be(start, end, file.len() as u64 - 1));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn may_be(start: &[u8], end: &[u8], len: u64) -> bool {
    // What lies in between is looked at by these alone.
    if start.starts_with(&GZIP) || redis::is_like(start) || poppy::is_like(start) {
        return true;
    }
    // The memory of zeros is taken when it is touched, and here it is not.
    let zeros = len.saturating_sub(start.len() as u64);
    let Ok(mut file) = crate::format::with_zeros(start, zeros) else {
        return false;
    };
    let end = &end[end.len().saturating_sub(file.len())..];
    let at = file.len() - end.len();
    file[at..].copy_from_slice(end);
    !detect(&file, |format, file| match format {
        Format::Npm => npm::is_like(file),
        Format::BitsAndBlooms if file.first() == Some(&b'{') => bits_and_blooms::is_like(file),
        format => fits(format, file),
    })
    .is_empty()
}

/// How gzip begins.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What is inside of gzip, unless it is plain text or more than `most` bytes:
/// nobody means a log of many gigabytes to be unpacked because it might be a
/// filter.
fn unpack(bytes: &[u8], most: u64) -> Result<Vec<u8>, Error> {
    const BEGINNING: u64 = 64 << 10;
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    let unpacking = |error: std::io::Error| Error::Gzip {
        reason: error.to_string(),
    };
    let mut file = Vec::new();
    let mut inside = flate2::read::MultiGzDecoder::new(bytes);
    let beginning = (&mut inside).take(BEGINNING).read_to_end(&mut file);
    beginning.map_err(unpacking)?;
    let is_json = file.first() == Some(&b'{');
    if file.len() as u64 == BEGINNING && !is_json && file.iter().all(is_text) {
        return Err(Error::Unknown);
    }
    // Its last bytes say how much it is, of whole 4 GiB what is left over.
    let said = bytes
        .last_chunk()
        .map_or(0, |said| u64::from(u32::from_le_bytes(*said)));
    if said <= most {
        // A forged number takes no more than can be inside.
        let room = said
            .min(1100 * bytes.len() as u64)
            .saturating_sub(file.len() as u64);
        // What there is no memory for at once may still not be needed.
        let _ = file.try_reserve_exact(room as usize + 1);
        let left = (most + 1).saturating_sub(file.len() as u64);
        (&mut inside)
            .take(left)
            .read_to_end(&mut file)
            .map_err(unpacking)?;
    }
    match said.max(file.len() as u64) > most {
        true => Err(Error::Unpacked { most }),
        false => Ok(file),
    }
}

fn open_unpacked<'a>(bytes: &'a [u8], hint: Hint<'_>) -> Result<Foreign<'a>, Error> {
    let format = match hint.format {
        Some(format) => format,
        // Which of two formats it is stands in the value, of which there may be several.
        None if redis::is_like(bytes) => {
            let (value, wrapping) = redis::read(Format::RedisBloom, bytes, hint.name)?;
            return Ok(Foreign {
                format: value.format(),
                body: Body::Redis { value, wrapping },
                gzipped: false,
            });
        }
        None => match detect(bytes, fits)[..] {
            [] => return Err(Error::Unknown),
            [format] => format,
            ref fits => {
                return Err(Error::Ambiguous {
                    fits: fits.to_vec(),
                });
            }
        },
    };
    Ok(Foreign {
        format,
        body: read(format, bytes, hint.name)?,
        gzipped: false,
    })
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
            Body::Table { .. } | Body::Orc { .. } | Body::Parquet { .. } => Facts::default(),
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
            Body::Plain { file, plain, .. } => plain.contains_many(file, keys, out),
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
            Body::Table { .. } | Body::Orc { .. } => {
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
            },
            Body::Poppy { file, .. }
            | Body::Table { file, .. }
            | Body::Orc { file, .. }
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
            Self::LevelDb | Self::RocksDb => Some("the store writes a new one with every table"),
            Self::Orc => Some("an ORC file is written as a whole"),
            Self::Valkey => Some("add keys through the server"),
            _ => None,
        }
    }
}
