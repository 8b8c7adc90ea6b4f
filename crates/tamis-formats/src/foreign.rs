//! Filters of other systems, whatever their format.

mod create;
mod open;

pub use create::{Create, create};
pub use open::{Hint, may_be, open, open_owned};

use crate::bytes::Bytes;
use crate::filter::{Filter, Opened};
use crate::format::bitmap::BitmapShape;
use crate::format::{pybloomfilter, redisson};
use crate::plain::BLOCK;
use crate::{Error, Facts, Format, Keys, Wrap};
use std::io::Read as _;

/// A filter of another system, in that system's bytes.
#[derive(Clone, Debug)]
pub struct Foreign<'a> {
    format: Format,
    file: Bytes<'a>,
    filter: Box<dyn Filter>,
    packed: Packed,
}

/// The packing around a filter's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    No,
    Gzip,
    /// pybloomfilter's `to_base64`.
    Text,
}

/// Opens Redisson's filter: its Redis string, with the `size` and
/// `hashIterations` of its configuration, `{name}:config`.
///
/// ```
/// let filter = tamis_formats::redisson(Vec::new(), 9_585, 7)?;
/// assert!(!filter.contains(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn redisson(string: Vec<u8>, size: u64, hashes: u32) -> Result<Foreign<'static>, Error> {
    let opened = redisson::read(string, size, hashes)?;
    Ok(Foreign::new(Format::Redisson, Vec::new().into(), opened))
}

/// Opens a bit string written with SETBIT, given the shape that its program
/// uses.
///
/// ```
/// use tamis_formats::{BitmapHash, BitmapShape};
/// let shape = BitmapShape::new(BitmapHash::Guava32, Some(7), 9_585)?;
/// let filter = tamis_formats::bitmap(b"", &shape)?;
/// assert!(!filter.contains(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn bitmap(string: &[u8], shape: &BitmapShape) -> Result<Foreign<'static>, Error> {
    let opened = shape.read(string)?;
    Ok(Foreign::new(Format::Bitmap, Vec::new().into(), opened))
}

impl<'a> Foreign<'a> {
    fn new(format: Format, file: Bytes<'a>, opened: Opened) -> Self {
        Self {
            format,
            file: opened.file.map_or(file, Bytes::from),
            filter: opened.filter,
            packed: Packed::No,
        }
    }

    /// Its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The facts stored in the file.
    pub fn facts(&self) -> Facts {
        self.filter.facts()
    }

    /// How its system's users turn keys into bytes. If there are several ways,
    /// the file doesn't say which one was used.
    pub fn keys(&self) -> &'static [Keys] {
        self.filter.keys().unwrap_or(self.format.keys())
    }

    /// The same filter with owned bytes, or those of the mapped file.
    pub fn into_owned(self) -> Foreign<'static> {
        Foreign {
            format: self.format,
            file: self.file.into_owned(),
            filter: self.filter,
            packed: self.packed,
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
        self.filter.contains(self.file.view(), key)
    }

    /// [`contains`](Self::contains) for many keys: `out[i]` becomes the answer
    /// for `keys[i]`. Faster than single calls, because memory latencies
    /// overlap.
    ///
    /// # Panics
    /// If `keys` and `out` differ in length.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "one answer for each key");
        out.fill(false);
        let mut block: [&[u8]; BLOCK] = [&[]; BLOCK];
        for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            for (slot, key) in block.iter_mut().zip(keys) {
                *slot = key.as_ref();
            }
            let file = self.file.view();
            self.filter.contains_many(file, &block[..keys.len()], out);
        }
    }

    /// Explains the answer of [`contains`](Self::contains): the bits or slots of the key, and their
    /// values. The verdict is that of `contains`.
    ///
    /// ```
    /// let mut filter = tamis_formats::create(tamis_formats::Create::Dcso, 100, 0.01)?;
    /// filter.insert(b"key")?;
    /// assert!(filter.explain(b"key").is_maybe());
    /// assert!(!filter.explain(b"other").is_maybe());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn explain(&self, key: &[u8]) -> tamis::internals::raw::Explanation {
        self.filter.explain(self.file.view(), key)
    }

    /// The name of the hash that its system computes from keys, such as
    /// `murmur3-128`.
    pub fn hash_name(&self) -> &'static str {
        self.filter.hash_name(self.file.view())
    }

    /// An error if keys can't be added, with the reason.
    pub fn check_writable(&self) -> Result<(), Error> {
        let format = self.format;
        let here = || self.filter.read_only(self.file.view());
        let instead = format.about().read_only.or_else(here);
        instead.map_or(Ok(()), |instead| Err(Error::ReadOnly { format, instead }))
    }

    /// Adds a key, as the filter's own system would; returns whether it was
    /// new. A cuckoo filter stores a key as often as it is added.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.check_writable()?;
        self.filter.insert(&mut self.file, key)
    }

    /// An error if keys can't be removed. They can only be removed from cuckoo
    /// filters.
    pub fn check_removable(&self) -> Result<(), Error> {
        if self.filter.can_remove() {
            return Ok(());
        }
        Err(Error::Unable {
            format: self.format,
            what: "forget keys",
            instead: "a bit may be another key's, too; only redisbloom-cuckoo filters can",
        })
    }

    /// Removes one copy of a key from a cuckoo filter; returns whether it was
    /// there. Only remove keys that were added: otherwise another key may be
    /// removed instead.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.check_removable()?;
        Ok(self.filter.remove(key))
    }

    /// Adds all keys of another filter with the same format, size and hashes.
    /// If the file has a count, it becomes the sum of both, since we can't know
    /// how many keys both have; for poppy, it becomes poppy's own estimate.
    ///
    /// ```
    /// use tamis_formats::{Create, create};
    /// let mut all = create(Create::Dcso, 1_000, 0.01)?;
    /// let mut more = create(Create::Dcso, 1_000, 0.01)?;
    /// more.insert(b"key")?;
    /// all.union_with(&more)?;
    /// assert!(all.contains(b"key"));
    /// assert!(all.union_with(&create(Create::Dcso, 2_000, 0.01)?).is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn union_with(&mut self, other: &Foreign<'_>) -> Result<(), Error> {
        let format = self.format;
        if format != other.format {
            return Err(Error::Unlike {
                what: "format",
                ours: format.to_string(),
                theirs: other.format.to_string(),
            });
        }
        self.check_writable()?;
        other.check_writable()?;
        let (theirs, more) = (&*other.filter, other.file.view());
        if self.filter.union_with(&mut self.file, theirs, more)? {
            return Ok(());
        }
        Err(Error::Unable {
            format,
            what: "be united",
            instead: "where a fingerprint may lie depends on its key; add the keys of one to the other",
        })
    }

    /// The file, in its own system's format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let file = self.filter.write(self.file.view());
        match self.packed {
            Packed::No => file,
            Packed::Text => pybloomfilter::to_base64(&file),
            Packed::Gzip => {
                let mut packed = Vec::new();
                let level = flate2::Compression::default();
                // Reading from and writing to memory can't fail.
                let _ = flate2::read::GzEncoder::new(&*file, level).read_to_end(&mut packed);
                packed
            }
        }
    }

    /// Makes [`to_bytes`](Self::to_bytes) return another of its format's files.
    /// Its keys and bits don't change.
    ///
    /// ```
    /// use tamis_formats::{Create, Format, Wrap, create, open};
    /// let mut filter = create(Create::BitsAndBlooms { json: false }, 100, 0.01)?;
    /// filter.insert(b"key")?;
    /// filter.rewrap(Wrap::Json)?;
    /// assert!(filter.to_bytes().starts_with(b"{"));
    /// assert!(filter.rewrap(Wrap::Dump).is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn rewrap(&mut self, wrap: Wrap) -> Result<(), Error> {
        if self.filter.rewrap(wrap) {
            return Ok(());
        }
        Err(Error::Unable {
            format: self.format,
            what: "be written so",
            instead: "only redisbloom's have dump and chunks, bits-and-blooms's json and binary",
        })
    }

    /// Whether it was gzipped; if so, it is gzipped again when written.
    pub fn is_gzipped(&self) -> bool {
        self.packed == Packed::Gzip
    }

    /// Whether it was gzipped, or text of pybloomfilter's `to_base64`; if so,
    /// it is packed again when written.
    pub fn is_packed(&self) -> bool {
        self.packed != Packed::No
    }

    /// Makes [`to_bytes`](Self::to_bytes) return the file without gzip or
    /// base64.
    pub const fn unpack(&mut self) {
        self.packed = Packed::No;
    }

    /// The share of set bits or of used slots.
    pub fn fill(&self) -> f64 {
        self.filter.fill(self.file.view())
    }

    /// The false-positive rate now, from how full it is.
    pub fn rate_now(&self) -> f64 {
        self.filter.rate(self.file.view())
    }

    /// The number of keys, counted or estimated from how full it is; `None` if
    /// every bit is set.
    pub fn keys_now(&self) -> Option<f64> {
        self.filter.key_count(self.file.view())
    }

    /// The number of bits; eight per slot in a cuckoo filter.
    pub fn bits(&self) -> u64 {
        self.filter.bits(self.file.view())
    }

    /// The number of bits per key, in the newest of its layers; `None` for a
    /// cuckoo filter.
    pub fn hashes(&self) -> Option<u64> {
        self.filter.hashes(self.file.view())
    }
}
