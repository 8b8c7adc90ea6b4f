//! How to open a filter, when more than its place must be said.

use super::any::AnyFilter;
use crate::error::Error;
use crate::hasher::SecretKey;
use crate::store::body::Map;
use crate::store::{self, Terms};
use std::path::Path;

/// How to open a filter when more than its place must be said.
///
/// ```
/// use tamis::{Blocked, Error, Hasher, Open, SecretKey};
/// let key = SecretKey::random()?;
/// let seen = Blocked::with_hasher(1_000, 0.01, Hasher::keyed_apart(key))?;
/// seen.insert("key");
/// let bytes = seen.to_bytes(); // without the secret
///
/// assert!(matches!(Open::new().decode(&bytes), Err(Error::KeyNeeded)));
/// assert!(Open::new().key(key).decode(&bytes)?.contains("key"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "says how, and does nothing by itself"]
pub struct Open {
    key: Option<SecretKey>,
    accept_loss: bool,
    verify: Option<bool>,
}

impl Open {
    /// Nothing special.
    pub fn new() -> Self {
        Self::default()
    }

    /// The secret of a keyed filter that is kept apart from its file.
    pub fn key(mut self, key: SecretKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Opens a file that was open for writing when its machine went down. Keys
    /// that were added last may be missing from it: the one case in which a
    /// filter can answer a false "no", so it must be asked for.
    pub fn accept_loss(mut self) -> Self {
        self.accept_loss = true;
        self
    }

    /// Whether a file's body is compared with its checksum, where it has one. If nothing is said,
    /// [`load`](Self::load) does so, and [`share`](Self::share), which ends the checksum;
    /// [`map`](Self::map) does not, so that it costs the same for any size.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Blocked, Open};
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let mut bytes = std::fs::read(&path).unwrap();
    /// bytes[200] ^= 1;
    /// std::fs::write(&path, bytes).unwrap();
    /// assert!(Open::new().map(&path).is_ok());
    /// assert!(Open::new().verify(true).map(&path).is_err());
    /// assert!(Open::new().share(&path).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = Some(verify);
        self
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            key: self.key.as_ref(),
            accept_loss: self.accept_loss,
            verify: self.verify,
        }
    }

    /// Reads a whole file into memory, and checks every byte of one that is
    /// sealed; see [`AnyFilter::verify`] for those that are not.
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
    pub fn load(&self, path: impl AsRef<Path>) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(store::load(path.as_ref(), self.terms())?)
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
    /// assert!(Open::new().map(&path)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn map(&self, path: impl AsRef<Path>) -> Result<AnyFilter<Map>, Error> {
        AnyFilter::assemble(store::map(path.as_ref(), self.terms())?)
    }

    /// Maps a file for writing beside other processes; see [`Filter::share`](crate::Filter::share).
    /// A file that may have lost keys is never shared: load and save it first.
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
    pub fn share(&self, path: impl AsRef<Path>) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(store::share(path.as_ref(), self.terms())?)
    }

    /// Copies a filter out of bytes.
    ///
    /// ```
    /// use tamis::{Blocked, Open};
    /// let bytes = Blocked::new(1_000, 0.01)?.to_bytes();
    /// assert!(!Open::new().decode(&bytes)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn decode(&self, bytes: &[u8]) -> Result<AnyFilter, Error> {
        AnyFilter::assemble(store::decode(bytes, self.terms())?)
    }

    /// Copies a filter out of base64 text; white space in it is ignored.
    pub fn decode_base64(&self, text: &str) -> Result<AnyFilter, Error> {
        self.decode(&store::from_base64(text)?)
    }

    /// Asks a filter in bytes of the caller's in place.
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Result<AnyFilter<&'a [u8]>, Error> {
        AnyFilter::assemble(store::view(bytes, self.terms())?)
    }
}
