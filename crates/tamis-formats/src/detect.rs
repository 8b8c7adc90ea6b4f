//! Recognises a file's format.

use crate::Error;
use crate::about::About;
use crate::bytes::View;
use crate::format::{
    abloom, bip37, bitmap, bits_and_blooms, cassandra, dcso, fastbloom, fastbloom_rs, fastfilter,
    guava, npm, npm_bloomfilter, orc, parquet, poppy, pybloom_live, pybloomfilter, pyprobables,
    rbloom, redis, redisson, spark, sst, valkey,
};
use crate::names::{Format, Keys};

impl Format {
    /// The only list of the formats' own modules.
    pub(crate) const fn about(self) -> &'static About {
        match self {
            Self::Abloom => &abloom::ABOUT,
            Self::Bip37 => &bip37::ABOUT,
            Self::Bitmap => &bitmap::ABOUT,
            Self::BitsAndBlooms => &bits_and_blooms::ABOUT,
            Self::Cassandra => &cassandra::ABOUT,
            Self::Dcso => &dcso::ABOUT,
            Self::Fastbloom => &fastbloom::ABOUT,
            Self::FastbloomRs => &fastbloom_rs::ABOUT,
            Self::FastFilter => &fastfilter::ABOUT,
            Self::Guava => &guava::ABOUT,
            Self::LevelDb => &sst::LEVELDB,
            Self::Npm => &npm::ABOUT,
            Self::NpmBloomfilter => &npm_bloomfilter::ABOUT,
            Self::Orc => &orc::ABOUT,
            Self::Parquet => &parquet::ABOUT,
            Self::Poppy => &poppy::ABOUT,
            Self::PybloomLive => &pybloom_live::ABOUT,
            Self::Pybloomfilter => &pybloomfilter::ABOUT,
            Self::Pyprobables => &pyprobables::ABOUT,
            Self::Rbloom => &rbloom::ABOUT,
            Self::RedisBloom => &redis::BLOOM,
            Self::RedisCuckoo => &redis::CUCKOO,
            Self::Redisson => &redisson::ABOUT,
            Self::RocksDb => &sst::ROCKSDB,
            Self::Spark => &spark::ABOUT,
            Self::Valkey => &valkey::ABOUT,
        }
    }

    /// How this format's users turn keys into bytes. If there are several ways,
    /// the file doesn't say which one was used.
    ///
    /// ```
    /// use tamis_formats::{Format, Keys};
    /// assert_eq!(Format::Spark.keys(), [Keys::Utf8, Keys::Int64]);
    /// ```
    pub const fn keys(self) -> &'static [Keys] {
        self.about().keys
    }

    /// How keys become bytes: as `asked`, or the only one of the filter's
    /// `choices`. Encodings that would give a false "no" are refused.
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
        if self.about().fits(choices, asked) {
            return Ok(asked);
        }
        Err(Error::KeysUnfit {
            format: self,
            asked,
            choices,
        })
    }

    /// Whether bytes are a file of this format.
    pub(crate) fn fits(self, file: View<'_>) -> bool {
        (self.about().read)(file, None).is_ok()
    }
}

/// The formats that these bytes may have, apart from Redis's. A magic number settles it; without
/// one, these are all formats whose numbers agree with the exact length.
pub(crate) fn detect(file: View<'_>, fits: impl Fn(Format, View<'_>) -> bool) -> Vec<Format> {
    let all = || Format::ALL.iter().copied();
    let starts = |format: &Format| {
        let start = format.about().start;
        !start.is_empty() && file.starts_with(start)
    };
    let ends = |format: &Format| {
        let end = format.about().end;
        let at = file.len().checked_sub(end.len());
        !end.is_empty() && at.is_some_and(|at| *file.read(at..file.len()) == *end)
    };
    if let Some(format) = all().find(starts).or_else(|| all().find(ends)) {
        return vec![format];
    }
    let is_json = file.starts_with(b"{");
    let fits = |format: &Format| {
        let about = format.about();
        let is_other_json = is_json && !about.json.is_empty() && !about.is_like_json(file);
        about.is_guessed && !is_other_json && fits(*format, file)
    };
    all().filter(fits).collect()
}
