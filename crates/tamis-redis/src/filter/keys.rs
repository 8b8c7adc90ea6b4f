//! The methods for single keys and many: adding, looking up, removing, counting.

use crate::Error;
use crate::backend::{Backend, bytes_of, hash_all};
use tamis::{Hash, Moment, window::When};

/// Calls a method with many keys: with their hashes or, for a module, with the
/// keys themselves.
macro_rules! with_keys {
    ($this:ident, $by_hash:ident, $by_key:ident, $keys:expr, $answers:expr) => {
        match &mut $this.backend {
            Backend::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), $keys);
                engine.$by_hash(&hashes, $answers).await
            }
            Backend::Module(module) => module.$by_key(&bytes_of($keys), $answers).await,
        }
    };
}

/// `with_keys` with a moment.
macro_rules! with_keys_at {
    ($this:ident, $by_hash:ident, $by_key:ident, $keys:expr, $at:expr, $answers:expr) => {
        match &mut $this.backend {
            Backend::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), $keys);
                engine.$by_hash(&hashes, $at, $answers).await
            }
            Backend::Module(module) => module.$by_key(&bytes_of($keys), $at, $answers).await,
        }
    };
}

async_methods! {
    /// Adds a key and returns whether it was new. If many workers add a new key
    /// at the same time, exactly one gets `true`. The [crate](crate) docs say
    /// what holds when servers fail.
    async fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut answer = [false];
        with_keys!(self, insert_hashes, insert_many, &[key], &mut answer)?;
        Ok(answer[0])
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. If some were not
    /// confirmed, [`Error::Unconfirmed`] lists them; the answers for the others
    /// hold.
    ///
    /// # Panics
    /// If `new` and `keys` differ in length.
    async fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        with_keys!(self, insert_hashes, insert_many, keys, new)
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` and `hashes` differ in length.
    async fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        self.backend.by_hash()?.insert_hashes(hashes, new).await
    }

    /// [`insert`](Self::insert) at a moment: whether the key is new to the
    /// window that ends then. Filters other than windows ignore the moment.
    /// Without one, a window uses the server's clock.
    ///
    /// A moment more than a generation ahead of the server's clock does not
    /// move the window. A key older than the window is reported as new and not
    /// kept: see [`Stats`](crate::Stats).
    async fn insert_at(&mut self, key: impl AsRef<[u8]>, at: Moment) -> Result<bool, Error> {
        let mut answer = [false];
        with_keys_at!(self, insert_hashes_at, insert_many_at, &[key], at.into(), &mut answer)?;
        Ok(answer[0])
    }

    /// [`insert_many`](Self::insert_many) at a moment, one for all or one for
    /// each ([`When`]). Only windows use it.
    ///
    /// # Panics
    /// If the number of answers or moments differs from that of the keys.
    async fn insert_many_at<'t, K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        at: impl Into<When<'t>> + Send,
        new: &mut [bool],
    ) -> Result<(), Error> {
        with_keys_at!(self, insert_hashes_at, insert_many_at, keys, at.into(), new)
    }

    /// [`insert_many_at`](Self::insert_many_at) for keys that are already hashed.
    ///
    /// # Panics
    /// If the number of answers or moments differs from that of the hashes.
    async fn insert_hashes_at<'t>(
        &mut self,
        hashes: &[Hash],
        at: impl Into<When<'t>> + Send,
        new: &mut [bool],
    ) -> Result<(), Error> {
        self.backend.by_hash()?.insert_hashes_at(hashes, at.into(), new).await
    }

    /// Whether the key may have been added; takes one round trip. "No" is
    /// always right, because a missing part of the filter is an error.
    async fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut answer = [false];
        with_keys!(self, contains_hashes, contains_many, &[key], &mut answer)?;
        Ok(answer[0])
    }

    /// Looks up many keys; `out[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `out` and `keys` differ in length.
    async fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), Error> {
        with_keys!(self, contains_hashes, contains_many, keys, out)
    }

    /// [`contains_many`](Self::contains_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `out` and `hashes` differ in length.
    async fn contains_hashes(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        self.backend.by_hash()?.contains_hashes(hashes, out).await
    }

    /// [`contains`](Self::contains) at a moment, which only windows use.
    async fn contains_at(&mut self, key: impl AsRef<[u8]>, at: Moment) -> Result<bool, Error> {
        let mut answer = [false];
        with_keys_at!(self, contains_hashes_at, contains_many_at, &[key], at.into(), &mut answer)?;
        Ok(answer[0])
    }

    /// [`contains_many`](Self::contains_many) at a moment, one for all or one
    /// for each ([`When`]). Only windows use it.
    ///
    /// # Panics
    /// If the number of answers or moments differs from that of the keys.
    async fn contains_many_at<'t, K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        at: impl Into<When<'t>> + Send,
        out: &mut [bool],
    ) -> Result<(), Error> {
        with_keys_at!(self, contains_hashes_at, contains_many_at, keys, at.into(), out)
    }

    /// [`contains_many_at`](Self::contains_many_at) for keys that are already hashed.
    ///
    /// # Panics
    /// If the number of answers or moments differs from that of the hashes.
    async fn contains_hashes_at<'t>(
        &mut self,
        hashes: &[Hash],
        at: impl Into<When<'t>> + Send,
        out: &mut [bool],
    ) -> Result<(), Error> {
        self.backend.by_hash()?.contains_hashes_at(hashes, at.into(), out).await
    }

    /// Undoes one addition of a key and returns whether it seemed present.
    /// Counting filters only, and only for keys that were added: see
    /// [`Counting::remove`](tamis::Counting::remove).
    async fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut answer = [false];
        with_keys!(self, remove_hashes, remove_many, &[key], &mut answer)?;
        Ok(answer[0])
    }

    /// [`remove`](Self::remove) for many keys; `removed[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    /// If `removed` and `keys` differ in length.
    async fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        with_keys!(self, remove_hashes, remove_many, keys, removed)
    }

    /// [`remove`](Self::remove) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `removed` and `hashes` differ in length.
    async fn remove_hashes(&mut self, hashes: &[Hash], removed: &mut [bool]) -> Result<(), Error> {
        self.backend.by_hash()?.remove_hashes(hashes, removed).await
    }

    /// An upper bound on how often a key was added; 15 means 15 or more.
    /// Counting filters only.
    async fn count(&mut self, key: impl AsRef<[u8]>) -> Result<u64, Error> {
        let mut answer = [0];
        with_keys!(self, count_hashes, count_many, &[key], &mut answer)?;
        Ok(answer[0])
    }

    /// [`count`](Self::count) for many keys; `counts[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `counts` and `keys` differ in length.
    async fn count_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        with_keys!(self, count_hashes, count_many, keys, counts)
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `counts` and `hashes` differ in length.
    async fn count_hashes(&mut self, hashes: &[Hash], counts: &mut [u64]) -> Result<(), Error> {
        self.backend.by_hash()?.count_hashes(hashes, counts).await
    }
}
