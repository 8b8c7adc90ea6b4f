//! Where a filter is stored: in memory, in a mapped file, or nowhere once closed.

use crate::buffer::Lent;
use crate::error::{Failure, Result};
use crate::when::{self, When};
use tamis::{AnyFilter, Hash, Kind, body::Map};

/// Where a filter is stored.
pub(crate) enum Backing {
    /// In memory, or in a file mapped for writing.
    Writable(AnyFilter),
    /// In a file mapped for reading.
    ReadOnly(AnyFilter<Map>),
    /// In the bytes of another object. Fields are dropped in order.
    Borrowed {
        filter: AnyFilter<&'static [u8]>,
        _bytes: Lent,
    },
    Closed,
}

/// Queries a filter wherever it is stored.
macro_rules! ask {
    ($state:expr, $filter:ident => $answer:expr) => {
        match $state {
            Backing::Writable($filter) => Ok($answer),
            Backing::ReadOnly($filter) => Ok($answer),
            Backing::Borrowed {
                filter: $filter, ..
            } => Ok($answer),
            Backing::Closed => Err($crate::error::Failure::closed()),
        }
    };
}

impl Backing {
    pub(crate) fn writable(&mut self) -> Result<&mut AnyFilter> {
        match self {
            Self::Writable(filter) => Ok(filter),
            Self::ReadOnly(_) | Self::Borrowed { .. } => Err(Failure::read_only()),
            Self::Closed => Err(Failure::closed()),
        }
    }

    /// Waits until all additions are on disk.
    pub(crate) fn sync(&self) -> Result<()> {
        match self {
            Self::Writable(filter) => Ok(filter.sync()?),
            Self::ReadOnly(_) | Self::Borrowed { .. } => Ok(()),
            Self::Closed => Err(Failure::closed()),
        }
    }

    /// Closes it; the returned rest must be dropped with the GIL.
    pub(crate) fn close(&mut self) -> Result<Self> {
        match std::mem::replace(self, Self::Closed) {
            Self::Writable(filter) => {
                filter.close()?;
                Ok(Self::Closed)
            }
            rest => Ok(rest),
        }
    }

    pub(crate) fn count(&self, hash: Hash) -> Result<u64> {
        let mut counts = [0];
        ask!(self, filter => filter.count_many(&[hash], &mut counts))??;
        Ok(counts[0])
    }

    pub(crate) fn contains(&self, hash: Hash) -> Result<bool> {
        ask!(self, filter => match filter {
            AnyFilter::Window(window) => window.contains(hash, when::now(window)),
            filter => filter.contains(hash),
        })
    }

    pub(crate) fn contains_all(
        &self,
        hashes: &[Hash],
        when: When<'_>,
        found: &mut [bool],
    ) -> Result<()> {
        ask!(self, filter => match when {
            When::Now => filter.contains_many_at(hashes, when::now_of(filter), found),
            When::At(moment) => filter.contains_many_at(hashes, moment, found),
            When::Each(moments) => filter.contains_many_at(hashes, moments, found),
        })
    }

    /// Adds a key as of now.
    pub(crate) fn insert(&mut self, hash: Hash) -> Result<bool> {
        Ok(match self.writable()? {
            AnyFilter::Window(window) => {
                let now = when::now(window);
                window.insert_mut(hash, now)
            }
            filter => filter.insert(hash)?,
        })
    }

    pub(crate) fn insert_all(
        &mut self,
        hashes: &[Hash],
        when: When<'_>,
        new: &mut [bool],
    ) -> Result<()> {
        let filter = self.writable()?;
        Ok(match when {
            When::Now => filter.insert_many_at(hashes, when::now_of(filter), new),
            When::At(moment) => filter.insert_many_at(hashes, moment, new),
            When::Each(moments) => filter.insert_many_at(hashes, moments, new),
        }?)
    }

    pub(crate) fn duplicate(&self) -> Result<AnyFilter> {
        Ok(ask!(self, filter => filter.duplicate())??)
    }

    /// Adds this filter's keys to another.
    pub(crate) fn unite_into(&self, other: &mut AnyFilter) -> Result<()> {
        Ok(ask!(self, ours => other.union_with(ours))??)
    }

    /// Removes from another filter what this one lacks.
    pub(crate) fn intersect_into(&self, other: &mut AnyFilter) -> Result<()> {
        Ok(ask!(self, ours => other.intersect_with(ours))??)
    }

    pub(crate) fn is_subset_of(&self, other: &Self) -> Result<bool> {
        Ok(ask!(self, ours => ask!(other, theirs => ours.is_subset_of(theirs)))???)
    }

    pub(crate) fn same(&self, other: &Self) -> Result<bool> {
        ask!(self, ours => ask!(other, theirs => ours.is_same(theirs)))?
    }
}

/// Adds keys that are mostly absent; returns which were. Adds none if one can't be added: a cuckoo filter may be full.
pub(crate) fn insert_absent(filter: &mut AnyFilter, hashes: &[Hash]) -> Result<Vec<bool>> {
    let mut new = vec![false; hashes.len()];
    if !matches!(filter.kind(), Kind::Cuckoo | Kind::Counting) {
        filter.insert_many_at(hashes, when::now_of(filter), &mut new)?;
        return Ok(new);
    }
    // Adding a key that is present would take a second place.
    for (at, hash) in hashes.iter().enumerate() {
        new[at] = !filter.contains(*hash);
        if !new[at] {
            continue;
        }
        if let Err(error) = filter.insert(*hash) {
            new[at] = false;
            let added = hashes.iter().zip(&new).filter(|(_, new)| **new);
            let added: Vec<Hash> = added.map(|(hash, _)| *hash).collect();
            filter.remove_many(&added, &mut vec![false; added.len()])?;
            return Err(error.into());
        }
    }
    Ok(new)
}

/// [`ask!`] for quick answers, concurrent with other readers. Waits for a thread that changes the filter, unless Ctrl-C
/// interrupts.
macro_rules! get {
    ($this:expr, $py:expr, $filter:ident => $answer:expr) => {{
        $this.state.wait($py, $crate::lock::Access::Ask)?;
        $this
            .state
            .ask($py, |state| ask!(state, $filter => $answer))
    }};
}

/// [`ask!`] for slow answers, such as those that read the whole filter.
macro_rules! read {
    ($slf:expr, $filter:ident => $answer:expr) => {
        Filter::read($slf, |state| ask!(state, $filter => $answer))
    };
}

pub(crate) use {ask, get, read};
