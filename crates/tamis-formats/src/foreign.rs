//! A filter of another system, whatever its format.

use crate::detect::{Format, detect};
use crate::format::{
    bip37, bits_and_blooms, cassandra, dcso, guava, npm, pybloomfilter, redisson, spark, valkey,
};
use crate::plain::Plain;
use crate::{Error, Strategy};
use std::borrow::Cow;
use std::io::Read as _;

/// A filter of another system, in its own bytes.
#[derive(Clone, Debug)]
pub struct Foreign<'a> {
    format: Format,
    /// The file without its envelope.
    file: Cow<'a, [u8]>,
    envelope: Envelope,
    body: Plain,
    facts: Facts,
}

/// What a file says of itself beside its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// For how many keys it was made.
    pub capacity: Option<u64>,
    /// For which rate.
    pub rate: Option<f64>,
    /// How many keys it says it has.
    pub keys: Option<u64>,
    /// Where that number stands, as 64 bits little-endian.
    pub(crate) count_at: Option<usize>,
    /// Bytes of the user's behind the filter.
    pub data: usize,
}

/// What lies around the file's bytes.
#[derive(Clone, Debug, PartialEq)]
enum Envelope {
    None,
    Gzip,
    /// bits-and-blooms's JSON, of which the file is the binary form.
    GoJson,
    /// npm's JSON, of which the file is the bits alone.
    NpmJson(npm::Json),
}

/// What there is in bytes of one format.
pub(crate) struct Opened<'a> {
    file: Cow<'a, [u8]>,
    envelope: Envelope,
    body: Plain,
    facts: Facts,
}

/// Reads bytes as a file of this format.
pub(crate) fn read(format: Format, bytes: &[u8]) -> Result<Opened<'_>, Error> {
    let plain = |(body, facts)| Opened {
        file: bytes.into(),
        envelope: Envelope::None,
        body,
        facts,
    };
    match format {
        Format::Bip37 => bip37::read(bytes).map(plain),
        Format::BitsAndBlooms if bytes.first() == Some(&b'{') => {
            let file = bits_and_blooms::from_json(bytes)?;
            let (body, facts) = bits_and_blooms::read(&file)?;
            Ok(Opened {
                file: file.into(),
                envelope: Envelope::GoJson,
                body,
                facts,
            })
        }
        Format::BitsAndBlooms => bits_and_blooms::read(bytes).map(plain),
        Format::Cassandra => cassandra::read(bytes).map(plain),
        Format::Dcso => dcso::read(bytes).map(plain),
        Format::Guava => guava::read(bytes).map(plain),
        Format::Npm => {
            let (json, file, body) = npm::read(bytes)?;
            Ok(Opened {
                file: file.into(),
                envelope: Envelope::NpmJson(json),
                body,
                facts: Facts::default(),
            })
        }
        Format::Pybloomfilter => pybloomfilter::read(bytes).map(plain),
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

/// Opens a file, told apart from the other formats unless `format` says what it
/// is. A gzipped one is unpacked, any other is asked in place.
///
/// ```
/// use tamis_formats::{Create, Error, Format};
/// let file = tamis_formats::create(Create::Dcso, 1_000, 0.01)?.to_bytes();
/// assert_eq!(tamis_formats::open(&file, None)?.format(), Format::Dcso);
/// assert!(matches!(tamis_formats::open(b"no filter", None), Err(Error::Unknown)));
/// # Ok::<(), Error>(())
/// ```
pub fn open(bytes: &[u8], format: Option<Format>) -> Result<Foreign<'_>, Error> {
    if bytes.starts_with(&[0x1F, 0x8B]) {
        let mut file = Vec::new();
        let unpacked = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut file);
        if unpacked.is_ok() {
            let mut opened = open(&file, format)?.into_owned();
            opened.envelope = Envelope::Gzip;
            return Ok(opened);
        }
    }
    let format = match format {
        Some(format) => format,
        None => match detect(bytes)[..] {
            [] => return Err(Error::Unknown),
            [format] => format,
            ref fits => {
                return Err(Error::Ambiguous {
                    fits: fits.to_vec(),
                });
            }
        },
    };
    let Opened {
        file,
        envelope,
        body,
        facts,
    } = read(format, bytes)?;
    Ok(Foreign {
        format,
        file,
        envelope,
        body,
        facts,
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
    let body = redisson::read(&mut string, size, hashes)?;
    Ok(Foreign {
        format: Format::Redisson,
        file: string.into(),
        envelope: Envelope::None,
        body,
        facts: Facts::default(),
    })
}

/// An empty filter to be made: its format, and what that leaves open.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Create {
    /// BIP 37.
    Bip37 {
        /// Makes the filter's hashes its own.
        tweak: u32,
        /// Which of the node's transactions update it: 0, 1 or 2.
        flags: u8,
    },
    /// Go's bits-and-blooms.
    BitsAndBlooms {
        /// As JSON instead of binary.
        json: bool,
    },
    /// DCSO's bloom, version 1.
    Dcso,
    /// Guava.
    Guava {
        /// How bits are chosen.
        strategy: Strategy,
        /// As Guava before 33.4 counts hashes, instead of later ones.
        before_33_4: bool,
    },
    /// npm's bloom-filters.
    Npm {
        /// Of its hashes.
        seed: u64,
    },
    /// pybloomfiltermmap3.
    Pybloomfilter {
        /// One a bit; none chooses 1, 2, 3 and so on, as many as the rate asks for.
        seeds: Vec<u32>,
    },
    /// Redisson.
    Redisson,
    /// Spark.
    Spark {
        /// Of version 2; none makes version 1.
        seed: Option<u32>,
    },
}

impl Create {
    /// Guava as its newest version makes it.
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

/// An empty filter for `keys` keys at `rate`, sized by its own system's rule.
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
            let file = if json {
                bits_and_blooms::to_json(&file)
            } else {
                file
            };
            (Format::BitsAndBlooms, file)
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
        Create::Pybloomfilter { seeds } => {
            let seeds = match seeds.is_empty() {
                true => (1..=pybloomfilter::hashes_for(rate) as u32).collect(),
                false => seeds,
            };
            let file = pybloomfilter::create(keys, rate, &seeds)?;
            (Format::Pybloomfilter, file)
        }
        Create::Redisson => {
            let (size, hashes) = redisson::shape(keys, rate)?;
            return redisson(Vec::new(), size, hashes);
        }
        Create::Spark { seed } => (Format::Spark, spark::create(keys, rate, seed)?),
    };
    Ok(open(&file, Some(format))?.into_owned())
}

impl<'a> Foreign<'a> {
    /// Its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// What the file says of itself.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The same, with bytes of its own.
    pub fn into_owned(self) -> Foreign<'static> {
        Foreign {
            file: Cow::Owned(self.file.into_owned()),
            format: self.format,
            envelope: self.envelope,
            body: self.body,
            facts: self.facts,
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
        self.body.contains(&self.file, key)
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
        self.body.contains_many(&self.file, keys, out);
    }

    /// Adds a key, as the filter's own system would; says whether it was new.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, Error> {
        if let Some(instead) = self.format.read_only() {
            let format = self.format;
            return Err(Error::ReadOnly { format, instead });
        }
        let file = self.file.to_mut();
        let new = self.body.insert(file, key);
        if let (true, Some(at), Some(keys)) = (new, self.facts.count_at, &mut self.facts.keys) {
            *keys = keys.saturating_add(1);
            file[at..at + 8].copy_from_slice(&keys.to_le_bytes());
        }
        Ok(new)
    }

    /// The file, to be read by its own system.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.envelope {
            Envelope::None => self.file.to_vec(),
            Envelope::GoJson => bits_and_blooms::to_json(&self.file),
            Envelope::NpmJson(json) => npm::write(json, &self.file),
            Envelope::Gzip => {
                let mut packed = Vec::new();
                let level = flate2::Compression::default();
                // Reading from memory and writing to it can't fail.
                let _ = flate2::read::GzEncoder::new(&*self.file, level).read_to_end(&mut packed);
                packed
            }
        }
    }

    /// How many bits a key has.
    pub fn hashes(&self) -> u64 {
        self.body.probe.hashes()
    }

    /// How many bits the filter has.
    pub const fn bits(&self) -> u64 {
        self.body.bits.len
    }

    /// The share of its bits that are set.
    pub fn fill(&self) -> f64 {
        self.body.fill(&self.file)
    }

    /// How often a key that is not in it is taken for one, by how full it is.
    pub fn rate_now(&self) -> f64 {
        self.body.rate(&self.file)
    }

    /// The number of keys, estimated from how full it is; none if every bit is
    /// set.
    pub fn keys_now(&self) -> Option<f64> {
        self.body.keys(&self.file)
    }
}

impl Format {
    /// Why files of it can't be written here.
    const fn read_only(self) -> Option<&'static str> {
        match self {
            Self::Cassandra => Some("Cassandra writes it anew with every SSTable"),
            Self::Valkey => Some("add keys through the server"),
            _ => None,
        }
    }
}
