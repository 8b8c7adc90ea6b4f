//! Options for opening a filter.

use crate::error::Error;
use crate::filter::any::AnyFilter;
use crate::filter::draft::Draft;
use crate::hasher::SecretKey;
use crate::store::bytes;
use crate::store::check::Terms;
#[cfg(feature = "files")]
use crate::store::{body::Map, disk};
#[cfg(feature = "files")]
use std::path::Path;

/// Options for opening a filter.
///
/// ```
/// use tamis::{Blocked, Error, Hasher, Open, SecretKey};
/// let key = SecretKey::random()?;
/// let seen = Blocked::with_hasher(1_000, 0.01, Hasher::keyed_apart(key))?;
/// seen.insert("key");
/// let bytes = seen.to_bytes(); // without the secret
///
/// assert!(matches!(Open::new().from_bytes(&bytes), Err(Error::KeyNeeded)));
/// assert!(Open::new().key(key).from_bytes(&bytes)?.contains("key"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "does nothing by itself"]
pub struct Open {
    key: Option<SecretKey>,
    accept_loss: bool,
    #[cfg(feature = "files")]
    verify: Option<bool>,
}

impl Open {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The secret of a keyed filter that is kept apart from its file.
    pub fn key(mut self, key: SecretKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Opens a file that was open for writing when its machine crashed. The keys added last may be
    /// missing from it: the one case in which a filter can give a false "no", so callers must opt
    /// in.
    pub fn accept_loss(mut self) -> Self {
        self.accept_loss = true;
        self
    }

    /// Whether to compare a file's body with its checksum, if it has one. By default
    /// [`load`](Self::load) does, and so does [`share`](Self::share), which drops the checksum;
    /// [`open`](Self::open) doesn't, so it costs the same for any size.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Blocked, Open};
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let mut bytes = std::fs::read(&path).unwrap();
    /// bytes[200] ^= 1;
    /// std::fs::write(&path, bytes).unwrap();
    /// assert!(Open::new().open(&path).is_ok());
    /// assert!(Open::new().verify(true).open(&path).is_err());
    /// assert!(Open::new().share(&path).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = Some(verify);
        self
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            key: self.key.as_ref(),
            accept_loss: self.accept_loss,
            #[cfg(feature = "files")]
            verify: self.verify,
        }
    }

    /// Reads a whole file into memory, and verifies it if it is sealed; see [`AnyFilter::verify`]
    /// for unsealed files.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Blocked, Open};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("key");
    /// seen.save(&path)?;
    /// assert!(Open::new().load(&path)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(disk::load(path.as_ref(), self.terms())?)
    }

    /// Maps a file for reading; see [`Filter::open`](crate::Filter::open).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Blocked, Open};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("key");
    /// seen.save(&path)?;
    /// assert!(Open::new().open(&path)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<AnyFilter<Map>, Error> {
        AnyFilter::assemble(disk::map(path.as_ref(), self.terms())?)
    }

    /// Maps a file for writing, together with other processes; see
    /// [`Filter::share`](crate::Filter::share). Files that may have lost keys can't be shared: load
    /// and save them first.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Blocked, Open};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("key");
    /// seen.save(&path)?;
    /// let mut shared = Open::new().share(&path)?;
    /// assert!(!shared.insert("key")? && shared.insert("another")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn share(&self, path: impl AsRef<Path>) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(disk::share(path.as_ref(), self.terms())?)
    }

    /// Copies a filter out of bytes.
    ///
    /// ```
    /// use tamis::{Blocked, Open};
    /// let bytes = Blocked::new(1_000, 0.01)?.to_bytes();
    /// assert!(!Open::new().from_bytes(&bytes)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(bytes::decode(bytes, self.terms())?)
    }

    /// For a filter that arrives in pieces: checks its header and its total length, header included,
    /// then allocates room for the body, which the caller fills.
    ///
    /// ```
    /// use tamis::internals::raw::HEADER_LEN;
    /// use tamis::{Blocked, Open};
    /// let bytes = Blocked::new(1_000, 0.01)?.to_bytes();
    /// let (header, body) = bytes.split_at(HEADER_LEN);
    /// let mut draft = Open::new().draft(header, bytes.len() as u64)?;
    /// draft.body_mut().copy_from_slice(body);
    /// assert_eq!(draft.verified()?.to_bytes(), bytes);
    /// assert!(Open::new().draft(header, 200).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn draft(&self, header: &[u8], len: u64) -> Result<Draft, Error> {
        Draft::of_file(header, len, self.terms())
    }

    /// Copies a filter from base64 text, ignoring white space.
    #[doc(hidden)]
    pub fn from_base64(&self, text: &str) -> Result<AnyFilter, Error> {
        self.from_bytes(&bytes::from_base64(text)?)
    }

    /// A filter in bytes that the caller owns.
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Result<AnyFilter<&'a [u8]>, Error> {
        AnyFilter::assemble(bytes::view(bytes, self.terms())?)
    }
}

#[cfg(feature = "files")]
impl AnyFilter<Map> {
    /// Reads the whole body of a mapped file and compares it with the checksum in its header.
    /// `false` if there is none because the file was last written in place.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{AnyFilter, Blocked, Open};
    /// Blocked::new(1_000, 0.01)?.save(&path)?;
    /// assert!(AnyFilter::verify(&path, &Open::new())?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn verify(path: impl AsRef<Path>, open: &Open) -> Result<bool, Error> {
        let open = open.clone().verify(true);
        let (header, map) = disk::map(path.as_ref(), open.terms())?;
        // The bodies of some kinds describe themselves.
        Self::assemble((header, map))?;
        Ok(header.is_sealed())
    }
}
