//! Methods of `AnyFilter` that change it.

use super::{AnyFilter, both, each, on, only_with_counts};
use crate::error::Error;
use crate::filter::window::Window;
use crate::key::Key;
use crate::key_rule::KeyRule;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::raw::window::When;
use crate::store::body::Body;

impl AnyFilter {
    /// Sets how keys are made. Fails for a filter that is shared or holds keys, which it would no
    /// longer find.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked, KeyRule};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// seen.set_rule(KeyRule::EXACT.ignore_case())?;
    /// seen.insert("Key")?;
    /// assert!(seen.contains("KEY"));
    /// assert!(seen.set_rule(KeyRule::EXACT).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn set_rule(&mut self, rule: KeyRule) -> Result<(), Error> {
        let is_shared = each!(self, f => f.is_shared());
        if rule != *self.hasher().rule() && (is_shared || self.counted() != Some(0)) {
            return Err(Error::Parameter {
                what: "rule for keys",
                expected: "the filter's own rule, because it is shared or holds keys",
                got: rule.to_string(),
            });
        }
        each!(self, f => f.set_rule(rule));
        Ok(())
    }

    /// Adds a key and returns whether it was new. Fails for kinds that can't take it; the filter is
    /// then unchanged.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// assert!(seen.insert("key")?);
    /// assert!(!seen.insert("key")?); // not new any more
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        on!(self,
            [Blocked, Bloom, Counting] f => Ok(f.insert_mut(key)),
            [Cuckoo, Growing] f => f.insert(key),
            [Window] f => {
                let at = without_time(f)?;
                Ok(f.insert_mut(key, at))
            },
            else other => Err(Error::finished(other.kind(), "added to"))
        )
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. If a key is refused, those before it
    /// were added.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// let mut new = [false; 3];
    /// seen.insert_many(&["a", "b", "a"], &mut new)?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        on!(self,
            [Bloom, Blocked, Counting] f => {
                f.insert_many_mut(keys, new);
                Ok(())
            },
            [Cuckoo, Growing] f => f.insert_many(keys, new),
            [Window] f => {
                let at = without_time(f)?;
                f.insert_many_mut(keys, at, new);
                Ok(())
            },
            else other => Err(Error::finished(other.kind(), "added to"))
        )
    }

    /// [`insert_many`](Self::insert_many) at a moment, one for all or one for each ([`When`]). Only a
    /// [`Window`] uses it.
    ///
    /// # Panics
    /// If `new`, or the moments of a window, don't match the number of keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{AnyFilter, Moment, Window};
    /// let mut seen = AnyFilter::from(Window::within(Duration::from_secs(60), 1_000, 0.01)?);
    /// seen.insert_many_at(&["key"], Moment::from_secs(0), &mut [false])?;
    /// assert!(seen.contains_at("key", Moment::from_secs(60)));
    /// assert!(!seen.contains_at("key", Moment::from_secs(70)));
    /// assert!(seen.insert("key").is_err()); // when?
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many_at<'t, K: Key>(
        &mut self,
        keys: &[K],
        at: impl Into<When<'t>>,
        new: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Window(window) => {
                window.insert_many_mut(keys, at, new);
                Ok(())
            }
            other => other.insert_many(keys, new),
        }
    }

    /// Undoes one addition of a key and returns whether it seemed present. Only for keys that were
    /// added: see [`Counting::remove`](crate::Counting::remove) and
    /// [`Cuckoo::remove`](crate::Cuckoo::remove). Fails for kinds that can't remove.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut online = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// online.insert("ada")?;
    /// assert_eq!(online.count("ada")?, 1);
    /// assert!(online.remove("ada")?);
    /// assert!(!online.contains("ada"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove(&mut self, key: impl Key) -> Result<bool, Error> {
        on!(self,
            [Counting, Cuckoo] f => Ok(f.remove(key)),
            else other => Err(only_with_counts(other.kind(), "removed from"))
        )
    }

    /// [`remove`](Self::remove) for many keys; `removed[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) -> Result<(), Error> {
        on!(self,
            [Counting, Cuckoo] f => f.remove_many(keys, removed),
            else other => return Err(only_with_counts(other.kind(), "removed from"))
        );
        Ok(())
    }

    /// Removes all keys. Fails for static kinds.
    pub fn clear(&mut self) -> Result<(), Error> {
        on!(self,
            [Bloom, Blocked, Counting, Cuckoo, Growing, Window] f => f.clear(),
            else other => return Err(Error::finished(other.kind(), "cleared"))
        );
        Ok(())
    }

    /// Adds all keys of `other`; see [`Filter::union_with`](crate::Filter::union_with), and
    /// [`Growing::union_with`](crate::Growing::union_with), which needs room for the keys of both.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut a = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// let mut b = a.duplicate()?;
    /// b.insert("key")?;
    /// a.union_with(&b)?;
    /// assert!(a.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &AnyFilter<C>) -> Result<(), Error> {
        both!(
            self, other,
            [Bloom, Blocked, Counting, Cuckoo, Growing, Window] (a, b) => a.union_with(b),
            else |kind| Error::finished(kind, "combined")
        )
    }

    /// Keeps the keys of both; see [`Filter::intersect_with`](crate::Filter::intersect_with).
    pub fn intersect_with<C: Body>(&mut self, other: &AnyFilter<C>) -> Result<(), Error> {
        let refuse = |kind| match kind {
            Kind::Growing => Error::Unable {
                kind,
                what: "intersected",
                instead: "the two have a key in different layers; use blocked filters of the same size",
            },
            Kind::Window => Error::Unable {
                kind,
                what: "intersected",
                instead: "ask both: a key is in both where both say so",
            },
            _ => Error::finished(kind, "combined"),
        };
        both!(
            self, other,
            [Bloom, Blocked, Counting, Cuckoo] (a, b) => a.intersect_with(b),
            else refuse
        )
    }

    /// Waits until a shared file is on disk; see [`Filter::sync`](crate::Filter::sync).
    pub fn sync(&self) -> Result<(), Error> {
        // Other kinds are never shared.
        on!(self, [Bloom, Blocked, Counting, Growing, Window] f => f.sync(), else _other => Ok(()))
    }

    /// Closes a shared file; see [`Filter::close`](crate::Filter::close).
    pub fn close(self) -> Result<(), Error> {
        on!(self, [Bloom, Blocked, Counting, Growing, Window] f => f.close(), else _other => Ok(()))
    }
}

/// The moment of a key that has none: any moment, in a window that counts keys.
fn without_time(window: &Window) -> Result<Moment, Error> {
    if window.shape().is_by_keys() {
        return Ok(Moment::default());
    }
    Err(Error::Unable {
        kind: Kind::Window,
        what: "added to without a time",
        instead: "say when the key was seen, with one of the methods that take a Moment",
    })
}
