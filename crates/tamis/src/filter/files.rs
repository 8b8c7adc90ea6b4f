//! How every filter, whatever its type, is opened and saved.

use super::Filter;
use super::any::AnyFilter;
use super::growing::Growing;
use crate::error::Error;
use crate::raw::header::Header;
use crate::raw::layout::Layout;
use crate::store::body::{Body, Map};
use crate::store::file::FileLock;
use crate::store::{self, Terms};
use std::path::Path;

/// The same methods for [`Filter`], which has a parameter more than the
/// others, [`Growing`] and [`AnyFilter`]. Each of them can be assembled of a
/// header and a body, and taken apart into `header()` and `all_words()`.
macro_rules! files {
    ($filter:ident $(<$kind:ident: $layout:ident>)?) => {
        impl$(<$kind: $layout>)? $filter<$($kind)?> {
            /// Reads a whole file into memory, and checks every byte of one
            /// that is sealed; see [`Open::load`](crate::Open::load).
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
            pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
                Self::assemble(store::load(path.as_ref(), Terms::default())?)
            }

            /// A copy of the filter that [`to_bytes`](Self::to_bytes) wrote.
            ///
            /// ```
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// assert!(Blocked::from_bytes(&seen.to_bytes())?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
                Self::assemble(store::decode(bytes, Terms::default())?)
            }

            /// The filter that [`to_base64`](Self::to_base64) wrote; white
            /// space in the text is ignored.
            ///
            /// ```
            /// use tamis::Blocked;
            /// let seen = Blocked::new(1_000, 0.01)?;
            /// seen.insert("key");
            /// assert!(Blocked::from_base64(&seen.to_base64())?.contains("key"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn from_base64(text: &str) -> Result<Self, Error> {
                Self::from_bytes(&store::from_base64(text)?)
            }
        }

        impl$(<$kind: $layout>)? $filter<$($kind,)? Map> {
            /// Maps a file for reading: costs the same for any size, and reads
            /// only the pages that are asked. The body's checksum is not
            /// checked; see [`AnyFilter::verify`].
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
                Self::assemble(store::map(path.as_ref(), Terms::default())?)
            }
        }

        impl<'a, $($kind: $layout)?> $filter<$($kind,)? &'a [u8]> {
            /// Asks bytes of the caller's in place, of any alignment: a file
            /// embedded in the program, a page of a larger file.
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
                Self::assemble(store::view(bytes, Terms::default())?)
            }
        }

        impl<$($kind: $layout,)? B: Body> $filter<$($kind,)? B> {
            /// Writes the filter to `path`, which is replaced as a whole or
            /// not at all. Fails with [`Error::Busy`] while another writer has
            /// that file; see [`FileLock`] for adding to a filter that others
            /// may be adding to.
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
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
                store::save(path.as_ref(), &self.header(), &self.all_words())
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
            pub fn save_new(&self, path: impl AsRef<Path>) -> Result<(), Error> {
                store::save_new(path.as_ref(), &self.header(), &self.all_words())
            }

            /// Writes the filter over the file that the caller has locked,
            /// which stays locked; see [`FileLock`].
            pub fn save_under(&self, lock: &mut FileLock) -> Result<(), Error> {
                store::save_under(lock, &self.header(), &self.all_words())
            }

            /// Writes what has changed to the file that the caller has locked
            /// and to whose filter keys were added, and nothing else done. Where
            /// that is little of a large file, it is written in place, and a process
            /// that dies meanwhile leaves all keys that were there, and some of the new.
            /// Otherwise like [`save_under`](Self::save_under).
            ///
            /// ```
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let path = dir.path().join("seen.tamis");
            /// use tamis::{Blocked, FileLock};
            /// Blocked::new(1_000_000, 0.01)?.save_new(&path)?;
            /// let mut lock = FileLock::acquire(&path)?;
            /// let seen = Blocked::load(&path)?;
            /// seen.insert("key");
            /// seen.update_under(&mut lock)?; // writes one block
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn update_under(&self, lock: &mut FileLock) -> Result<(), Error> {
                store::update::update_under(lock, &self.header(), &self.all_words())
            }

            /// The same bytes as a file's.
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                store::encode(&self.header(), &self.all_words())
            }

            /// The same bytes as a file's, in base64.
            #[must_use]
            pub fn to_base64(&self) -> String {
                store::to_base64(&self.to_bytes())
            }

            /// Part of the body's bytes, as a file has them: from `at` on, at
            /// most `len`. A large filter is sent in pieces that way.
            #[must_use]
            pub fn read_body(&self, at: u64, len: usize) -> Vec<u8> {
                store::read(&self.all_words(), at, len)
            }

            /// The header as a file of this filter would have it, with the
            /// checksum of the body, which is read to its end for that.
            /// [`Draft`](crate::Draft) takes it, and the body.
            #[must_use]
            pub fn sealed_header(&self) -> Header {
                store::sealed(&self.header(), &self.all_words())
            }
        }
    };
}

/// What servers need that move their memory about.
macro_rules! heap {
    ($type:ident $(<$layout:ident: $bound:ident>)?) => {
        impl$(<$layout: $bound>)? $type$(<$layout>)? {
            /// The addresses of all memory that it holds, and the alignment of
            /// each: for servers that tell how much it is.
            #[must_use]
            pub fn allocations(&self) -> Vec<(*const u8, usize)> {
                let bodies = self.all_words().into_iter();
                let mut all: Vec<_> = bodies.map(|words| (words.as_ptr().cast(), 64)).collect();
                all.extend(self.lists());
                all
            }

            /// Has `mover` move the body's memory: it is given the address and
            /// length of each allocation and returns the new address, or the
            /// same. Needs the feature `plain-heap`; mapped memory stays.
            ///
            /// # Safety
            /// What `mover` returns is memory of the global allocator with the
            /// same length, content and alignment (64 bytes), and the old is
            /// freed if it is another.
            pub unsafe fn relocate(&mut self, mover: &mut dyn FnMut(*mut u8, usize) -> *mut u8) {
                for body in self.bodies_mut() {
                    // SAFETY: as the caller promises.
                    unsafe { body.relocate(mover) };
                }
            }
        }
    };
}

heap!(Filter<L: Layout>);
heap!(Growing);

files!(Filter<L: Layout>);
files!(Growing);
files!(AnyFilter);
