//! Kinds without methods of their own.

use crate::filter::shell::Filter;
use crate::raw::blocked::BlockedShape;
use crate::raw::bloom::BloomShape;
use crate::raw::cascade::CascadeShape;
use crate::raw::fuse::FuseShape;
use crate::raw::ribbon::RibbonShape;
use crate::store::body::Bytes;

/// A classic Bloom filter; see [`Filter`] for its methods.
///
/// ```
/// use tamis::Bloom;
/// let seen = Bloom::new(1_000_000, 0.01)?;
/// assert_eq!(seen.shape().bits(), 9_585_058);
/// assert_eq!(seen.shape().hashes(), 7);
/// assert!(seen.insert("key") && seen.contains("key"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Bloom<B = Bytes> = Filter<BloomShape, B>;

/// A line-blocked Bloom filter; see [`Filter`] for its methods.
///
/// ```
/// use tamis::Blocked;
/// let seen = Blocked::new(1_000_000, 0.01)?;
/// assert!(seen.insert("key"));
/// assert!(!seen.insert("key")); // not new any more
/// assert!(seen.contains("key"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Blocked<B = Bytes> = Filter<BlockedShape, B>;

/// A finished list that is fast to build and to query; see [`Filter`] for its methods.
///
/// About 1.09 times `log2(1/rate)` bits a key, where Bloom filters need 1.44. It is built from all
/// its keys at once; there is no empty one to add keys to.
///
/// ```compile_fail,E0599
/// tamis::Fuse::new(1_000, 0.01); // nor `template`, `clear`, `share`
/// ```
///
/// ```
/// use tamis::{Fuse, Hasher, KeyCount};
/// let words = Fuse::build(["apple", "pear", "apple"], 0.01, Hasher::default())?;
/// assert!(words.contains("apple") && words.contains("pear"));
/// assert_eq!(words.keys(), KeyCount::Counted(2));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Fuse<B = Bytes> = Filter<FuseShape, B>;

/// The smallest finished list; see [`Filter`] for its methods.
///
/// About 1.003 times `log2(1/rate)` bits a key, where [`Fuse`] needs 1.09 and Bloom filters 1.44. A
/// look-up takes up to one and a half times as long as in fuse.
///
/// ```
/// use tamis::{Hasher, KeyCount, Ribbon};
/// let words = Ribbon::build(["apple", "pear", "apple"], 0.01, Hasher::default())?;
/// assert!(words.contains("apple") && words.contains("pear"));
/// assert_eq!(words.keys(), KeyCount::Counted(2));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Ribbon<B = Bytes> = Filter<RibbonShape, B>;

/// A block list with an allow list in one filter, never wrong about a key on either; see [`Filter`]
/// for its methods.
///
/// ```
/// use tamis::{Cascade, Hasher};
/// let blocked = ["spam.example", "fraud.example"];
/// let allowed: Vec<String> = (0..1000).map(|i| format!("friend{i}.example")).collect();
/// let list = Cascade::build(blocked, &allowed, 0.01, Hasher::default())?;
/// assert!(blocked.iter().all(|key| list.contains(key)));
/// assert!(!allowed.iter().any(|key| list.contains(key))); // not one of them
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Cascade<B = Bytes> = Filter<CascadeShape, B>;
