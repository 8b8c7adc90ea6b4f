//! What goes into a filter: a key as bytes, or its hash.

use crate::hash::Hash;
use crate::hasher::Hasher;

/// A key: bytes, which the filter hashes, or a [`struct@Hash`], which it uses unchanged.
///
/// Bytes are anything that is `AsRef<[u8]>`: `&str`, `String`, `&[u8]`,
/// `[u8; 8]`. Integers have no single form in bytes, so they go in as an
/// [`Id`], or as bytes of your choice (`42u64.to_le_bytes()`).
///
/// ```
/// use tamis::{Blocked, Bloom, Id};
/// let (fruit, trees) = (Blocked::new(1_000, 0.01)?, Bloom::new(1_000, 0.01)?);
/// fruit.insert("apple");
/// // Hashed once for both, because their hashers agree.
/// let hash = fruit.hasher().hash(b"apple");
/// assert!(fruit.contains(hash) && !trees.contains(hash));
/// assert!(trees.insert(Id(7)) && trees.contains(Id(7)));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Key {
    /// The hash of the key.
    #[doc(hidden)]
    fn key_hash(&self, hasher: &Hasher) -> Hash;

    /// The keys of a batch, without a copy if they need no hashing.
    #[doc(hidden)]
    #[inline(always)]
    fn batch(_keys: &[Self]) -> KeyBatch<'_>
    where
        Self: Sized,
    {
        KeyBatch::Bytes
    }

    /// Whether keys of this type are already hashed, so that the original bytes are unknown.
    #[doc(hidden)]
    #[inline(always)]
    fn is_hashed() -> bool
    where
        Self: Sized,
    {
        !matches!(Self::batch(&[]), KeyBatch::Bytes)
    }
}

/// The keys of a batch.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum KeyBatch<'k> {
    /// To be hashed one by one.
    Bytes,
    /// Hashed by the caller.
    Hashes(&'k [Hash]),
    /// Numbers, which become hashes in a few instructions.
    Ids(&'k [Id]),
}

impl<'k> KeyBatch<'k> {
    /// The hashes, if the keys are hashes.
    #[inline(always)]
    pub(crate) const fn hashes(self) -> Option<&'k [Hash]> {
        match self {
            Self::Hashes(hashes) => Some(hashes),
            _ => None,
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> Key for T {
    #[inline(always)]
    fn key_hash(&self, hasher: &Hasher) -> Hash {
        hasher.hash(self.as_ref())
    }
}

impl Key for Hash {
    #[inline(always)]
    fn key_hash(&self, _: &Hasher) -> Hash {
        *self
    }

    #[inline(always)]
    fn batch(keys: &[Self]) -> KeyBatch<'_> {
        KeyBatch::Hashes(keys)
    }
}

impl Key for &Hash {
    #[inline(always)]
    fn key_hash(&self, _: &Hasher) -> Hash {
        **self
    }

    #[inline(always)]
    fn is_hashed() -> bool {
        true
    }
}

/// A 64-bit number as a key: an id, or a hash of your own.
///
/// It is remixed ([`Hash::from_u64`]) so that consecutive numbers spread, but not hashed: the
/// filter's seed or secret doesn't affect it, and `Id(7)` is a different key from the bytes of 7.
///
/// ```
/// use tamis::{Blocked, Id};
/// let mut seen = Blocked::new(1_000, 0.01)?;
/// let numbers = [7u64, 8, 7];
/// let mut new = [false; 3];
/// seen.insert_many_mut(Id::all(&numbers), &mut new); // not copied
/// assert_eq!(new, [true, true, false]);
/// assert!(seen.contains(Id(8)));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Id(pub u64);

impl Id {
    /// The same numbers as keys.
    #[inline]
    pub const fn all(numbers: &[u64]) -> &[Self] {
        // SAFETY: an `Id` is a `u64` in memory.
        unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
    }
}

impl From<Id> for Hash {
    #[inline(always)]
    fn from(id: Id) -> Self {
        Self::from_u64(id.0)
    }
}

impl Key for Id {
    #[inline(always)]
    fn key_hash(&self, _: &Hasher) -> Hash {
        (*self).into()
    }

    #[inline(always)]
    fn batch(keys: &[Self]) -> KeyBatch<'_> {
        KeyBatch::Ids(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Blocked, Bloom, Counting, Cuckoo, Growing, Kind, Moment, Plan, Window};

    fn filters() -> Vec<AnyFilter> {
        let kinds = [Kind::Blocked, Kind::Bloom, Kind::Counting, Kind::Window];
        let plans = kinds.map(|kind| Plan::for_rate(kind, 1_000, 1e-6).unwrap());
        let of_plan = |plan: &Plan| AnyFilter::from_plan(plan, Hasher::seeded(7)).unwrap();
        let mut all: Vec<AnyFilter> = plans.iter().map(of_plan).collect();
        all.push(
            Cuckoo::with_hasher(1_000, 1e-6, Hasher::seeded(7))
                .unwrap()
                .into(),
        );
        all.push(
            Growing::with_hasher(1_000, 1e-6, Hasher::seeded(7))
                .unwrap()
                .into(),
        );
        all
    }

    /// A key gives the same answer as bytes, as a hash and as a reference to a hash, alone and in a
    /// batch; a number is a different key from its bytes.
    #[test]
    fn bytes_hashes_and_numbers_reach_all_kinds() {
        for mut filter in filters() {
            let kind = filter.kind();
            let hasher = *filter.hasher();
            let texts: Vec<String> = (0..200).map(|i| format!("key {i}")).collect();
            let hashes: Vec<Hash> = texts.iter().map(|t| hasher.hash(t.as_bytes())).collect();
            let numbers: Vec<u64> = (0..200).collect();
            let mut answers = [false; 200];
            filter.insert_many(&hashes, &mut answers).unwrap();
            assert!(answers.iter().all(|new| *new), "{kind}");
            filter.contains_many(&texts, &mut answers);
            assert!(answers.iter().all(|found| *found), "{kind}");
            let borrowed: Vec<&Hash> = hashes.iter().collect();
            filter.contains_many(&borrowed, &mut answers);
            assert!(answers.iter().all(|found| *found), "{kind}");
            assert!(
                filter.contains(&texts[3]) && filter.contains(hashes[3]),
                "{kind}"
            );
            assert!(filter.contains(borrowed[4]), "{kind}");

            filter.contains_many(Id::all(&numbers), &mut answers);
            assert!(answers.iter().all(|found| !found), "{kind}");
            filter
                .insert_many(Id::all(&numbers[..100]), &mut answers[..100])
                .unwrap();
            filter.contains_many(Id::all(&numbers), &mut answers);
            assert_eq!(answers, std::array::from_fn(|i| i < 100), "{kind}");
            let of_numbers: Vec<Hash> = numbers.iter().map(|n| Hash::from_u64(*n)).collect();
            let mut again = [false; 200];
            filter.contains_many(&of_numbers, &mut again);
            assert_eq!(answers, again, "{kind}");
            assert!(
                filter.contains(Id(5)) && !filter.contains(5u64.to_le_bytes()),
                "{kind}"
            );
        }
    }

    /// The same while other threads add, with more keys than a block holds.
    #[test]
    fn bytes_hashes_and_numbers_are_the_same_keys_next_to_others() {
        macro_rules! check {
            ($kind:ident $(, $at:expr)?) => {{
                let filter = $kind::with_hasher(1_000, 1e-6, Hasher::seeded(7)).unwrap();
                let mut flags = [false; 300];
                let texts: Vec<String> = (0..300).map(|i| format!("key {i}")).collect();
                let hashes: Vec<Hash> = texts.iter().map(|t| filter.hasher().hash(t.as_bytes())).collect();
                let numbers: Vec<u64> = (0..300).collect();
                filter.insert_many(&hashes $(, $at)?, &mut flags);
                assert!(flags.iter().all(|new| *new));
                filter.insert_many(&texts $(, $at)?, &mut flags);
                assert!(flags.iter().all(|new| !new));
                filter.insert_many(Id::all(&numbers) $(, $at)?, &mut flags);
                assert!(flags.iter().all(|new| *new));
                assert!(!filter.insert(Id(299) $(, $at)?) && !filter.insert(&hashes[299] $(, $at)?));
                filter.contains_many(Id::all(&numbers) $(, $at)?, &mut flags);
                assert!(flags.iter().all(|found| *found));
            }};
        }
        check!(Blocked);
        check!(Bloom);
        check!(Counting);
        check!(Window, Moment::default());
    }
}
