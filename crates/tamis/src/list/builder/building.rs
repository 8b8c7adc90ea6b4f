//! From all keys to the filter: fuse, ribbon, or the two levels of a cascade.

use super::ListBuilder;
use crate::error::Error;
use crate::filter::any::AnyFilter;
use crate::hash::Hash;
use crate::kind::Kind;
use crate::list::keyset::{Collector, KeySet, pieces};
use crate::list::lists::{Both, Contradiction, Lists};
use crate::plan;
use crate::raw::cascade::{CascadeShape, second_hash};
use crate::raw::fuse::{self, Failed, FuseShape};
use crate::raw::header::{Header, State};
use crate::raw::layout::Layout as _;
use crate::raw::ribbon;
use crate::raw::shape::Shape;
use crate::raw::sorted::{Decided, Grouped, for_each, sorted_distinct_of};
use crate::store::body::Bytes;

/// The memory for building one shard of a fuse filter.
const FUSE_SHARD_MEMORY: u64 = 200 << 20;
/// Keys that one batch decides for the second level of a cascade.
const DECIDED: usize = 4 << 20;

impl ListBuilder {
    /// The most bytes to read from disk at once.
    const fn piece(&self) -> u64 {
        self.memory / 10
    }

    /// The filter of all keys.
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// let mut list = ListBuilder::new(Kind::Ribbon, 0.01)?;
    /// list.add("apple")?;
    /// assert!(list.build()?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build(self) -> Result<AnyFilter, Error> {
        Ok(self.build_telling()?.0)
    }

    /// [`build`](Self::build) that also reports keys on both lists of a cascade,
    /// unless they are refused.
    #[doc(hidden)]
    pub fn build_telling(mut self) -> Result<(AnyFilter, Option<Contradiction>), Error> {
        let (block, allow) = (self.block.take(), self.allow.take());
        let block = block.unwrap_or_else(|| self.no_keys());
        let allow = allow.unwrap_or_else(|| self.no_keys());
        match self.kind {
            Kind::Fuse => {
                let (shape, words, keys) = self.fuse(block.hashes)?;
                Ok((self.filter(shape.into(), &[&words], keys)?, None))
            }
            Kind::Ribbon => {
                let block = block.hashes.finish()?;
                let keys = block.len();
                let (shape, words) = self.ribbon(self.width, keys, block)?;
                Ok((self.filter(shape.into(), &[&words], keys)?, None))
            }
            _ => {
                let lists = Lists {
                    block: block.hashes.finish()?,
                    allow: allow.hashes.finish()?,
                    both: self.both,
                };
                let contradiction = lists.contradiction(self.piece())?;
                if contradiction.is_some() {
                    let checks = [block.checks.finish()?, allow.checks.finish()?];
                    lists.refuse_collisions(&checks, self.piece())?;
                }
                self.cascade(&lists, contradiction)
            }
        }
    }

    fn fuse(&self, mut list: Collector) -> Result<(FuseShape, Vec<u64>, u64), Error> {
        let set = match list.take_unsorted() {
            Some(hashes) => {
                // Most lists have no duplicates, and those that do are noticed. So skip sorting,
                // which building doesn't need.
                let keys: usize = hashes.iter().map(Vec::len).sum();
                let shard_bits = FuseShape::shard_bits_for(keys as u64);
                let runs = Grouped::new(hashes, shard_bits, self.threads);
                match self.fuse_of_groups(&runs)? {
                    Ok((shape, words)) => return Ok((shape, words, runs.len() as u64)),
                    Err(Failed::Duplicates) => {
                        KeySet::of(sorted_distinct_of(runs.into_keys(), self.threads)?)
                    }
                    Err(failed) => return Err(failed.into()),
                }
            }
            None => list.finish()?,
        };
        let fullest = set.fullest(FuseShape::shard_bits_for(set.len()));
        let mut builder = self.fuse_builder(set.len(), fullest)?;
        for piece in pieces(&[&set], self.piece()) {
            builder.feed(&set.parts(piece)?)?;
        }
        let (shape, words) = builder.finish()?;
        Ok((shape, words, set.len()))
    }

    fn fuse_of_groups(
        &self,
        runs: &Grouped<Hash>,
    ) -> Result<Result<(FuseShape, Vec<u64>), Failed>, Error> {
        let keys = runs.len() as u64;
        let shards = 1 << FuseShape::shard_bits_for(keys);
        let shards = (0..shards).map(|shard| {
            let groups = runs.groups() / shards;
            let groups = shard * groups..(shard + 1) * groups;
            let pieces: Vec<&[Hash]> = groups.flat_map(|i| runs.group(i)).collect();
            (shard, pieces)
        });
        let size =
            |(_, pieces): (usize, Vec<&[Hash]>)| pieces.iter().map(|piece| piece.len()).sum();
        let fullest: usize = shards.clone().map(size).max().unwrap_or(0);
        let mut builder = self.fuse_builder(keys, fullest as u64)?;
        Ok(builder.fill_shards(shards).and_then(|()| builder.finish()))
    }

    fn fuse_builder(&self, keys: u64, fullest: u64) -> Result<fuse::Builder<'_>, Error> {
        let shape = FuseShape::for_keys(keys, fullest, self.width)?;
        let threads = (self.memory / 3 / FUSE_SHARD_MEMORY).clamp(1, self.threads as u64);
        fuse::Builder::new(shape, threads as usize, &self.done)
    }

    fn ribbon(
        &self,
        width: u32,
        keys: u64,
        set: KeySet,
    ) -> Result<(ribbon::RibbonShape, Vec<u64>), Error> {
        let mut builder = ribbon::Builder::new(keys, width, self.threads, &self.done)?;
        for piece in pieces(&[&set], self.piece()) {
            builder.feed(&set.parts(piece)?);
        }
        drop(set);
        builder.finish()
    }

    fn cascade(
        &self,
        lists: &Lists,
        contradiction: Option<Contradiction>,
    ) -> Result<(AnyFilter, Option<Contradiction>), Error> {
        let on_both = contradiction.map_or(0, |c| c.count);
        if let (Both::Refuse, Some(Contradiction { count, example })) = (lists.both, contradiction)
        {
            return Err(Error::Contradiction { count, example });
        }
        let (mut keys, mut allowed) = (lists.block.len(), lists.allow.len());
        match lists.both {
            Both::Allow => keys -= on_both,
            _ => allowed -= on_both,
        }
        if keys == 0 {
            let empty = ribbon::RibbonShape::EMPTY;
            let shape = CascadeShape::of_levels(empty, empty);
            let head = shape.head().map(u64::to_le);
            return Ok((self.filter(shape.into(), &[&head], 0)?, contradiction));
        }

        let width = plan::first_width(keys, allowed, self.width);
        let mut first = ribbon::Builder::new(keys, width, self.threads, &self.done)?;
        for piece in lists.pieces(self.piece()) {
            first.feed(&lists.parts(piece)?.0);
        }
        let (first, first_words) = first.finish()?;

        let alarms = self.false_alarms(lists, first, &first_words)?;
        let (second, second_words) = self.second_level(lists, keys, alarms)?;
        let shape = CascadeShape::of_levels(first, second);
        let head = shape.head().map(u64::to_le);
        let filter = self.filter(shape.into(), &[&head, &first_words, &second_words], keys)?;
        Ok((filter, contradiction))
    }

    /// Keys of the allow list that the first level of a cascade contains.
    fn false_alarms(
        &self,
        lists: &Lists,
        first: ribbon::RibbonShape,
        words: &[u64],
    ) -> Result<Vec<Hash>, Error> {
        let words: Vec<[u8; 8]> = words.iter().map(|word| word.to_ne_bytes()).collect();
        let mut alarms = Vec::new();
        for piece in lists.pieces(self.piece()) {
            let allow = lists.parts(piece)?.1;
            let mut found = vec![false; allow.len()];
            for_each(
                self.threads,
                allow.chunks(1 << 16).zip(found.chunks_mut(1 << 16)),
                |(hashes, found)| first.contains_many(&words, hashes, found),
            );
            let found = allow.iter().zip(found).filter(|(_, found)| *found);
            alarms.extend(found.map(|(hash, _)| *hash));
        }
        Ok(alarms)
    }

    /// The level that separates a cascade's keys from the false alarms.
    fn second_level(
        &self,
        lists: &Lists,
        keys: u64,
        alarms: Vec<Hash>,
    ) -> Result<(ribbon::RibbonShape, Vec<u64>), Error> {
        let both = keys + alarms.len() as u64;
        let mut second = ribbon::Builder::new(both, 1, self.threads, &self.done)?;
        let mut alarms = alarms.into_iter().peekable();
        let mut decided = Vec::new();
        let decide = |hash, denied| Decided {
            hash: second_hash(hash),
            denied,
        };
        for piece in lists.pieces(self.piece()) {
            for &hash in &*lists.parts(piece)?.0 {
                while let Some(alarm) = alarms.next_if(|alarm| *alarm < hash) {
                    decided.push(decide(alarm, true));
                }
                decided.push(decide(hash, false));
                if decided.len() >= DECIDED {
                    second.feed(&decided);
                    decided.clear();
                }
            }
        }
        decided.extend(alarms.map(|alarm| decide(alarm, true)));
        second.feed(&decided);
        drop(decided);
        second.finish()
    }

    /// Joins header and body.
    fn filter(&self, shape: Shape, words: &[&[u64]], keys: u64) -> Result<AnyFilter, Error> {
        let header = Header {
            shape,
            hasher: self.hasher,
            capacity: keys,
            rate: self.rate,
            state: State {
                keys,
                ..State::default()
            },
        };
        let mut body = Bytes::zeroed(header.body_len())?;
        let mut rest = body.exclusive().unwrap_or_default();
        for words in words {
            rest.split_off_mut(..words.len())
                .unwrap_or_default()
                .copy_from_slice(words);
        }
        AnyFilter::assemble((header, body))
    }
}
