//! How filters of all types are opened and saved.

use crate::error::Error;
use crate::filter::any::AnyFilter;
#[cfg(feature = "files")]
use crate::filter::any::check_creatable;
use crate::filter::growing::Growing;
use crate::filter::shell::Filter;
use crate::raw::header::Header;
use crate::raw::shape::Shaped;
use crate::store::body::Body;
use crate::store::bytes;
use crate::store::check::{Terms, sealed};
#[cfg(feature = "files")]
use crate::store::{body::Map, disk, lock::FileLock, replace::Existing, update::update_under};
#[cfg(feature = "files")]
use crate::{hasher::Hasher, kind::Kind, plan::Plan};
#[cfg(feature = "files")]
use std::path::Path;

/// The same methods for [`Filter`], which has one more parameter, [`Growing`] and [`AnyFilter`].
/// Each is assembled from a header and a body, and taken apart with `header()` and `all_words()`.
macro_rules! files {
    ($filter:ident $(<$kind:ident: $layout:ident>)?) => {
        impl$(<$kind: $layout>)? $filter<$($kind)?> {
            /// Reads a whole file into memory, and verifies it if it is sealed; see
            /// [`Open::load`](crate::Open::load).
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::{AnyFilter, Blocked};
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// seen.save(&path)?;
            /// assert!(Blocked::load(&path)?.contains("key"));
            /// assert!(AnyFilter::load(&path)?.contains("key")); // of any kind
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "files")]
            pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
                Self::assemble(disk::load(path.as_ref(), Terms::default())?)
            }

            /// A copy of the filter in the bytes of [`to_bytes`](Self::to_bytes).
            ///
            /// ```
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// assert!(Blocked::from_bytes(&seen.to_bytes())?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
                Self::assemble(bytes::decode(bytes, Terms::default())?)
            }

            /// The filter in the text of [`to_base64`](Self::to_base64), ignoring white space.
            ///
            /// ```
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// assert!(Blocked::from_base64(&seen.to_base64())?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[doc(hidden)]
            pub fn from_base64(text: &str) -> Result<Self, Error> {
                Self::from_bytes(&bytes::from_base64(text)?)
            }
        }

        #[cfg(feature = "files")]
        impl$(<$kind: $layout>)? $filter<$($kind,)? Map> {
            /// Maps a file for reading. Costs the same for any size, and reads only the pages that
            /// queries need. The body's checksum isn't checked; see [`AnyFilter::verify`].
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// seen.save(&path)?;
            /// assert!(Blocked::open(&path)?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
                Self::assemble(disk::map(path.as_ref(), Terms::default())?)
            }
        }

        impl<'a, $($kind: $layout)?> $filter<$($kind,)? &'a [u8]> {
            /// A filter in bytes that the caller owns, of any alignment: a file
            /// embedded in the program, or a page of a larger file.
            ///
            /// ```
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// let bytes = seen.to_bytes();
            /// assert!(Blocked::view(&bytes)?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn view(bytes: &'a [u8]) -> Result<Self, Error> {
                Self::assemble(bytes::view(bytes, Terms::default())?)
            }
        }

        impl<$($kind: $layout,)? B: Body> $filter<$($kind,)? B> {
            /// Writes the filter to `path`, which is replaced as a whole or not at all. Fails with
            /// [`Error::Busy`] while another writer has that file; see [`FileLock`] for adding to a
            /// filter that others may be adding to.
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// seen.save(&path)?;
            /// assert!(Blocked::load(&path)?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "files")]
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
                disk::save(path.as_ref(), &self.header(), &self.all_words())
            }

            /// Writes the filter to `path`, which must not exist.
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.save_new(&path)?;
            /// assert!(seen.save_new(&path).is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "files")]
            pub fn save_new(&self, path: impl AsRef<Path>) -> Result<(), Error> {
                disk::save_new(path.as_ref(), &self.header(), &self.all_words())
            }

            /// Writes the filter over the file that the caller has locked, which stays locked; see
            /// [`FileLock`].
            #[cfg(feature = "files")]
            #[doc(hidden)]
            pub fn save_under(&self, lock: &mut FileLock) -> Result<(), Error> {
                disk::save_under(lock, &self.header(), &self.all_words())
            }

            /// [`save_under`](Self::save_under) for a filter that was loaded and then only had keys
            /// added. If few blocks of a large file have changed, they are written in place. A
            /// process that dies meanwhile leaves all old keys and some of the new.
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::{Blocked, file::FileLock};
            /// Blocked::new(1_000_000, 0.01)?.save_new(&path)?;
            /// let mut lock = FileLock::acquire(&path)?;
            /// let seen = Blocked::load(&path)?;
            /// seen.insert("key");
            /// seen.update_under(&mut lock)?; // writes one block
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "files")]
            #[doc(hidden)]
            pub fn update_under(&self, lock: &mut FileLock) -> Result<(), Error> {
                update_under(lock, &self.header(), &self.all_words())
            }

            /// The same bytes as a file's.
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                bytes::encode(&self.header(), &self.all_words())
            }

            /// The same bytes as a file's, in base64.
            #[must_use]
            #[doc(hidden)]
            pub fn to_base64(&self) -> String {
                bytes::to_base64(&self.to_bytes())
            }

            /// At most `len` bytes of the body from `at` on, in the file's order, to send a large
            /// filter in pieces.
            #[must_use]
            #[doc(hidden)]
            pub fn read_body(&self, at: u64, len: usize) -> Vec<u8> {
                bytes::read(&self.all_words(), at, len)
            }

            /// The header of this filter's file, with the body's checksum, which takes reading all
            /// of the body. For [`Draft`](crate::internals::Draft).
            #[must_use]
            #[doc(hidden)]
            pub fn sealed_header(&self) -> Header {
                sealed(&self.header(), &self.all_words())
            }
        }
    };
}

files!(Filter<L: Shaped>);
files!(Growing);
files!(AnyFilter);

#[cfg(feature = "files")]
impl AnyFilter {
    /// Creates the file of an empty filter, which must not exist, without holding the filter in
    /// memory: for filters larger than memory. Allocates the space on disk at once, so that a full
    /// disk fails now.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{AnyFilter, Hasher, Kind, Open, Plan};
    /// let plan = Plan::for_rate(Kind::Blocked, 1_000, 0.01)?;
    /// AnyFilter::create(&path, &plan, Hasher::default())?;
    /// let mut seen = Open::new().share(&path)?; // mapped, not read
    /// assert!(seen.insert("key")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn create(path: impl AsRef<Path>, plan: &Plan, hasher: Hasher) -> Result<(), Error> {
        Self::create_or(path.as_ref(), plan, hasher, Existing::Keep)
    }

    /// Like [`create`](Self::create), but replaces an existing file.
    #[doc(hidden)]
    pub fn create_over(path: impl AsRef<Path>, plan: &Plan, hasher: Hasher) -> Result<(), Error> {
        Self::create_or(path.as_ref(), plan, hasher, Existing::Replace)
    }

    fn create_or(
        path: &Path,
        plan: &Plan,
        hasher: Hasher,
        existing: Existing,
    ) -> Result<(), Error> {
        check_creatable(plan.kind())?;
        if plan.kind() != Kind::Growing {
            return disk::save_empty(path, &Header::of_plan(plan, hasher), existing);
        }
        let growing = Growing::from_plan(plan, hasher)?;
        match existing {
            Existing::Keep => growing.save_new(path),
            Existing::Replace => growing.save(path),
        }
    }
}
