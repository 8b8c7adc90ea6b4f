//! The values behind CF.* commands.

mod tables;

use crate::error::Error;
use crate::filter::{Filter, Room, parts, piece};
use crate::loading::Loading;
use crate::words::FilterLayout;
pub use tables::Tables;
use tamis::Hasher;
use tamis_formats::redisbloom;

/// A cuckoo filter in one of two layouts, or one that is being loaded.
pub enum Cuckoo {
    Tamis(Tables),
    RedisBloom(redisbloom::Cuckoo<'static>),
    Loading(Loading),
}

/// All parameters of a new filter.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCuckoo {
    pub rate: f64,
    pub capacity: u64,
    /// With 0, the filter can't grow.
    pub expansion: u32,
    /// Only for RedisBloom's layout.
    pub bucket_size: u16,
    /// Only for RedisBloom's layout.
    pub most_kicks: u16,
    pub layout: FilterLayout,
    pub hasher: Hasher,
}

/// The answer of CF.INFO.
#[derive(Clone, Debug, PartialEq)]
pub struct CuckooInfo {
    pub layout: FilterLayout,
    /// RedisBloom's layout promises no rate; for it, this is the rate with full tables.
    pub rate: f64,
    pub capacity: u64,
    pub bytes: u64,
    pub buckets: u64,
    pub layers: u64,
    pub keys: u64,
    pub deletes: u64,
    pub bucket_size: u64,
    pub expansion: u64,
    pub most_kicks: u64,
}

impl NewCuckoo {
    /// An empty filter.
    pub fn make(&self) -> Result<Cuckoo, Error> {
        Ok(match self.layout {
            FilterLayout::Tamis => {
                let rate = self.rate.min(0.25);
                Cuckoo::Tamis(Tables::new(
                    self.capacity,
                    rate,
                    self.expansion,
                    self.hasher,
                )?)
            }
            FilterLayout::RedisBloom | FilterLayout::Valkey => {
                Cuckoo::RedisBloom(redisbloom::Cuckoo::new(
                    self.capacity,
                    self.bucket_size,
                    self.most_kicks,
                    self.expansion as u16,
                )?)
            }
        })
    }
}

impl Cuckoo {
    /// Adds a copy of the key, if there is room.
    pub fn insert(&mut self, key: &[u8], room: &impl Room) -> Result<(), Error> {
        match self {
            Self::Tamis(tables) => tables.insert(key, room),
            Self::RedisBloom(cuckoo) => {
                // Only inserting shows whether it must grow; if so, it is left unchanged.
                match cuckoo.insert_within(key, false) {
                    Err(tamis_formats::Error::Full { .. }) => {}
                    done => return Ok(done?),
                }
                if cuckoo.settings()[2] == 0 {
                    return Err(Error::new("Filter is full"));
                }
                room.allows(cuckoo.capacity().saturating_add(cuckoo.growth_bytes()))?;
                let grown = cuckoo.insert_within(key, true);
                grown.map_err(|_| Error::new("ERR Insufficient memory"))
            }
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    pub fn compact(&mut self) -> Result<(), Error> {
        match self {
            Self::Tamis(tables) => tables.compact(),
            Self::RedisBloom(cuckoo) => {
                cuckoo.compact();
                Ok(())
            }
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    pub fn info(&self) -> Result<CuckooInfo, Error> {
        match self {
            Self::Tamis(tables) => Ok(tables.info()),
            Self::RedisBloom(cuckoo) => {
                let [bucket_size, most_kicks, expansion] = cuckoo.settings().map(u64::from);
                let tables = cuckoo.tables() as f64;
                Ok(CuckooInfo {
                    layout: FilterLayout::RedisBloom,
                    // A key is compared with all slots of two buckets per table.
                    rate: 1.0 - (254f64 / 255.0).powf(2.0 * bucket_size as f64 * tables),
                    capacity: cuckoo.capacity(),
                    bytes: cuckoo.capacity(),
                    buckets: cuckoo.buckets(),
                    layers: cuckoo.tables() as u64,
                    keys: cuckoo.keys(),
                    deletes: cuckoo.deletes(),
                    bucket_size,
                    expansion,
                    most_kicks,
                })
            }
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }
}

impl Filter for Cuckoo {
    fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Tamis(tables) => Ok(tables.contains(key)),
            Self::RedisBloom(cuckoo) => Ok(cuckoo.contains(key)),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    fn count(&mut self, key: &[u8]) -> Result<u64, Error> {
        match self {
            Self::Tamis(tables) => Ok(tables.count(key)),
            Self::RedisBloom(cuckoo) => Ok(cuckoo.count(key)),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Tamis(tables) => Ok(tables.remove(key)),
            Self::RedisBloom(cuckoo) => Ok(cuckoo.remove(key)),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    fn loading(loading: Loading) -> Self {
        Self::Loading(loading)
    }

    fn as_loading(&self) -> Option<&Loading> {
        match self {
            Self::Loading(loading) => Some(loading),
            _ => None,
        }
    }

    fn as_loading_mut(&mut self) -> Option<&mut Loading> {
        match self {
            Self::Loading(loading) => Some(loading),
            _ => None,
        }
    }

    fn layout(&self) -> FilterLayout {
        match self {
            Self::RedisBloom(_) => FilterLayout::RedisBloom,
            Self::Tamis(_) | Self::Loading(_) => FilterLayout::Tamis,
        }
    }

    fn bytes(&self) -> Result<u64, Error> {
        Ok(self.info()?.bytes)
    }

    fn duplicate(&self) -> Result<Self, Error> {
        match self {
            Self::Tamis(tables) => Ok(Self::Tamis(tables.duplicate()?)),
            Self::RedisBloom(cuckoo) => Ok(Self::RedisBloom(cuckoo.clone())),
            Self::Loading(loading) => Ok(Self::Loading(loading.clone())),
        }
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Error> {
        match (self, other) {
            (Self::Tamis(ours), Self::Tamis(theirs)) => ours.union_with(theirs),
            (ours, theirs) => {
                ours.check()?;
                theirs.check()?;
                Err(Error::new(
                    "ERR only filters of Tamis's layout can be merged",
                ))
            }
        }
    }

    fn dump_header(&self) -> Vec<u8> {
        match self {
            Self::Tamis(tables) => tables.dump_header(),
            Self::RedisBloom(cuckoo) => cuckoo.dump_header(),
            Self::Loading(loading) => loading.header().to_vec(),
        }
    }

    fn dump(&self, at: u64, most: usize) -> Vec<u8> {
        match self {
            Self::Tamis(tables) => tables.dump(at, most),
            Self::RedisBloom(cuckoo) => piece(&cuckoo.parts(), at, most),
            Self::Loading(loading) => piece(&[loading.received()], at, most),
        }
    }

    fn expected(header: &[u8]) -> Result<u64, Error> {
        if Tables::is_header(header) {
            return Tables::expected(header);
        }
        redisbloom::Cuckoo::bytes_of(header).map_err(|_| match header.len() {
            redisbloom::Cuckoo::HEADER => Error::new("Couldn't create filter!"),
            _ => Error::new("Invalid header"),
        })
    }

    fn empty(header: &[u8]) -> Result<Option<Self>, Error> {
        if Tables::is_header(header) {
            return Ok(None);
        }
        let empty = redisbloom::Cuckoo::empty(header);
        let empty = empty.map_err(|_| Error::new("Couldn't create filter!"))?;
        Ok(empty.map(Self::RedisBloom))
    }

    fn decode(header: &[u8], bytes: &[u8]) -> Result<Self, Error> {
        if Tables::is_header(header) {
            return Tables::decode(header, bytes).map(Self::Tamis);
        }
        let bad = |_| Error::new("Couldn't create filter!");
        let lengths = redisbloom::Cuckoo::lengths_of(header).map_err(bad)?;
        let chunks = parts(lengths, bytes)?;
        let cuckoo = redisbloom::Cuckoo::of_chunks(header, &chunks).map_err(bad)?;
        Ok(Self::RedisBloom(cuckoo.into_owned()))
    }
}
