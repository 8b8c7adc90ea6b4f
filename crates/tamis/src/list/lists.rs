//! The two lists of a cascade, and their common keys.

use crate::error::Error;
use crate::hash::Hash;
use crate::list::keyset::{KeySet, pieces};
use std::borrow::Cow;
use std::ops::Range;

/// How to handle a key on both lists of a cascade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Both {
    /// Report an error.
    #[default]
    Refuse,
    /// Block it: drop it from the allow list.
    Block,
    /// Allow it: drop it from the block list.
    Allow,
}

/// Keys on both lists of a cascade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// How many.
    pub count: u64,
    /// The hash of one of them.
    pub example: Hash,
}

/// A hash and its check in one: 80 bits of the hash, to find it, and 48 bits of the check, to
/// distinguish keys.
pub(crate) const fn checked(hash: Hash, check: Hash) -> Hash {
    const CHECK: u64 = (1 << 48) - 1;
    Hash {
        hi: hash.hi,
        lo: hash.lo & !CHECK | check.lo & CHECK,
    }
}

/// The checks of the keys with this hash, which are adjacent.
fn checks_of(checks: &[Hash], hash: Hash) -> &[Hash] {
    let first = checked(hash, Hash { hi: 0, lo: 0 });
    let last = checked(
        hash,
        Hash {
            hi: 0,
            lo: u64::MAX,
        },
    );
    let start = checks.partition_point(|check| *check < first);
    let end = checks.partition_point(|check| *check <= last);
    &checks[start..end]
}

/// The two lists of a cascade.
pub(crate) struct Lists {
    pub(crate) block: KeySet,
    pub(crate) allow: KeySet,
    pub(crate) both: Both,
}

/// The keys to block and those to allow.
type Parts<'a> = (Cow<'a, [Hash]>, Cow<'a, [Hash]>);

impl Lists {
    pub(crate) fn pieces(&self, memory: u64) -> Vec<Range<usize>> {
        pieces(&[&self.block, &self.allow], memory)
    }

    /// These parts of the lists, without keys on both.
    pub(crate) fn parts(&self, parts: Range<usize>) -> Result<Parts<'_>, Error> {
        let block = self.block.parts(parts.clone())?;
        let allow = self.allow.parts(parts)?;
        if common(&block, &allow).next().is_none() {
            return Ok((block, allow));
        }
        let without = |list: &[Hash], others: &[Hash]| -> Vec<Hash> {
            let mut common = common(list, others).peekable();
            let other = |hash: &&Hash| common.next_if_eq(hash).is_none();
            list.iter().filter(other).copied().collect()
        };
        Ok(match self.both {
            Both::Allow => (Cow::Owned(without(&block, &allow)), allow),
            _ => {
                let allow = without(&allow, &block);
                (block, Cow::Owned(allow))
            }
        })
    }

    pub(crate) fn contradiction(&self, memory: u64) -> Result<Option<Contradiction>, Error> {
        let mut found: Option<Contradiction> = None;
        for piece in self.pieces(memory) {
            let block = self.block.parts(piece.clone())?;
            let allow = self.allow.parts(piece)?;
            for &example in common(&block, &allow) {
                found
                    .get_or_insert(Contradiction { count: 0, example })
                    .count += 1;
            }
        }
        Ok(found)
    }

    /// Reports keys on both lists that are different keys with the same hash.
    pub(crate) fn refuse_collisions(&self, checks: &[KeySet; 2], memory: u64) -> Result<(), Error> {
        let [of_block, of_allow] = checks;
        for piece in pieces(&[&self.block, &self.allow, of_block, of_allow], memory) {
            let block = self.block.parts(piece.clone())?;
            let allow = self.allow.parts(piece.clone())?;
            let mut common = common(&block, &allow).peekable();
            if common.peek().is_none() {
                continue;
            }
            let (of_block, of_allow) = (of_block.parts(piece.clone())?, of_allow.parts(piece)?);
            for &example in common {
                let blocked = checks_of(&of_block, example);
                let allowed = checks_of(&of_allow, example);
                let mut all = blocked.iter().chain(allowed);
                let first = all.next();
                if all.any(|check| Some(check) != first) {
                    return Err(Error::Collision { example });
                }
            }
        }
        Ok(())
    }
}

/// The common hashes of two sorted lists, in order.
fn common<'a>(ours: &'a [Hash], theirs: &'a [Hash]) -> impl Iterator<Item = &'a Hash> {
    let mut theirs = theirs.iter().peekable();
    ours.iter().filter(move |hash| {
        while theirs.next_if(|their| their < hash).is_some() {}
        theirs.next_if_eq(hash).is_some()
    })
}
