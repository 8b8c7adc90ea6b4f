//! Which format a file is of.

use crate::Error;
use crate::format::{
    abloom, bip37, bits_and_blooms, cassandra, dcso, fastbloom, fastfilter, guava, npm, orc,
    parquet, poppy, pybloomfilter, pyprobables, rbloom, redis, redisson, spark, sst, valkey,
};
use crate::names::{Format, Keys};

impl Format {
    /// How this format's users make bytes of keys. If there are several ways,
    /// the file does not say which was taken.
    ///
    /// ```
    /// use tamis_formats::{Format, Keys};
    /// assert_eq!(Format::Spark.keys(), [Keys::Utf8, Keys::Int64]);
    /// ```
    pub const fn keys(self) -> &'static [Keys] {
        match self {
            Self::Abloom => abloom::KEYS,
            Self::Bip37 => bip37::KEYS,
            Self::BitsAndBlooms => bits_and_blooms::KEYS,
            Self::Cassandra => cassandra::KEYS,
            Self::Dcso => dcso::KEYS,
            Self::Fastbloom => fastbloom::KEYS,
            Self::FastFilter => fastfilter::KEYS,
            Self::Guava => guava::KEYS,
            Self::LevelDb | Self::RocksDb => sst::KEYS,
            Self::Npm => npm::KEYS,
            Self::Orc => &[Keys::Utf8, Keys::Int64, Keys::Float64],
            Self::Parquet => &[
                Keys::Utf8,
                Keys::Int32,
                Keys::Int64,
                Keys::Float32,
                Keys::Float64,
            ],
            Self::Poppy => poppy::KEYS,
            Self::Pybloomfilter => pybloomfilter::KEYS,
            Self::Pyprobables => pyprobables::KEYS,
            Self::Rbloom => rbloom::KEYS,
            Self::RedisBloom | Self::RedisCuckoo => redis::KEYS,
            Self::Redisson => redisson::KEYS,
            Self::Spark => spark::KEYS,
            Self::Valkey => valkey::KEYS,
        }
    }

    /// How keys become bytes: as `asked`, or the only one of the filter's
    /// `choices`. What would answer "no" for keys that are there is refused.
    ///
    /// ```
    /// use tamis_formats::{Error, Format, Keys};
    /// let choices = Format::Pybloomfilter.keys();
    /// let keys = Format::Pybloomfilter.encoding(choices, Some(Keys::Utf8))?;
    /// assert_eq!(keys, Keys::Utf8);
    /// // Python's numbers are not their bytes.
    /// let refused = Format::Pybloomfilter.encoding(choices, Some(Keys::Int64));
    /// assert!(matches!(refused, Err(Error::KeysUnfit { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn encoding(self, choices: &'static [Keys], asked: Option<Keys>) -> Result<Keys, Error> {
        let Some(asked) = asked else {
            return match choices {
                [only] => Ok(*only),
                _ => Err(Error::KeysNeeded {
                    format: self,
                    choices,
                }),
            };
        };
        let fits = choices.contains(&asked)
            || match self {
                // The type of a column is known, if it is one.
                Self::Parquet | Self::Orc => choices.len() > 1,
                Self::Pybloomfilter | Self::Abloom | Self::Pyprobables | Self::Rbloom => {
                    matches!(asked, Keys::Utf16 | Keys::Upper | Keys::Lower)
                }
                Self::FastFilter => asked == Keys::Int64,
                Self::Fastbloom => false,
                _ => !matches!(
                    asked,
                    Keys::PythonNumber | Keys::PythonPickle | Keys::RustStr
                ),
            };
        match fits {
            true => Ok(asked),
            false => Err(Error::KeysUnfit {
                format: self,
                asked,
                choices,
            }),
        }
    }
}

/// The formats that these bytes, which are not of Redis, can be of. A magic number settles it; without
/// one, all whose numbers agree with the length to the byte.
pub(crate) fn detect(file: &[u8], fits: impl Fn(Format, &[u8]) -> bool) -> Vec<Format> {
    if file.starts_with(pybloomfilter::MAGIC) {
        return vec![Format::Pybloomfilter];
    }
    if file.starts_with(abloom::MAGIC) {
        return vec![Format::Abloom];
    }
    if file.starts_with(parquet::MAGIC) {
        return vec![Format::Parquet];
    }
    if file.starts_with(orc::MAGIC) {
        return vec![Format::Orc];
    }
    match sst::magic(file) {
        Some(sst::LEVELDB_MAGIC) => return vec![Format::LevelDb],
        Some(sst::ROCKSDB_MAGIC) => return vec![Format::RocksDb],
        _ => {}
    }
    let is_json = file.first() == Some(&b'{');
    let fits = |format: &Format| match format {
        // Whose checksums and values would have to be read as a whole.
        Format::RedisBloom | Format::RedisCuckoo => false,
        Format::Npm | Format::Fastbloom => is_like_json(*format, file) && fits(*format, file),
        Format::BitsAndBlooms if is_json => is_like_json(*format, file) && fits(*format, file),
        // Which has nothing but a small number.
        Format::Rbloom => false,
        format => fits(*format, file),
    };
    Format::ALL.iter().copied().filter(fits).collect()
}

/// Whether text begins as the JSON of this format does.
pub(crate) fn is_like_json(format: Format, text: &[u8]) -> bool {
    match format {
        Format::BitsAndBlooms => bits_and_blooms::is_like(text),
        Format::Fastbloom => fastbloom::is_like(text),
        Format::FastFilter => fastfilter::is_like(text),
        Format::Npm => npm::is_like(text),
        _ => false,
    }
}
