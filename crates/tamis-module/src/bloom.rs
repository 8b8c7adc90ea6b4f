//! The values behind BF.* commands.

mod making;

pub use making::NewBloom;

use crate::error::Error;
use crate::filter::{Filter, Room, SEALED_TO, parts, piece};
use crate::loading::Loading;
use crate::window;
use crate::words::FilterLayout;
use tamis::internals::raw::{HEADER_LEN, Header};
use tamis::{Counting, Growing, Kind, Moment, Window, internals::Expansion};
use tamis_formats::redisbloom::Chain;
use tamis_formats::valkeybloom;

/// A Bloom filter in one of the layouts, or one that is being loaded.
pub enum Bloom {
    Tamis(Growing),
    /// Items can be counted and removed; it doesn't grow.
    Counting(Counting),
    /// It forgets. `window` adds to it and queries it, with the time.
    Window(Window),
    RedisBloom(Chain<'static>),
    Valkey(valkeybloom::Chain),
    Loading(Loading),
}

/// The answer of BF.INFO.
#[derive(Clone, Debug, PartialEq)]
pub struct BloomInfo {
    pub layout: FilterLayout,
    pub rate: f64,
    pub capacity: u64,
    pub bytes: u64,
    pub layers: u64,
    pub keys: u64,
    pub expansion: Option<u64>,
    /// The factor from each layer's rate to the next one's, if constant.
    pub tightening: Option<f64>,
}

/// The first chunk of a filter in Tamis's layout: this, the expansion (32 bits) and the number of bytes that follow
/// (64), both little-endian. Then come the bytes of a `.tamis` file.
const MAGIC: &[u8; 8] = b"TAMISBF1";
const DUMP_HEADER: usize = 20;

/// The most layers in Tamis's layout, see docs/format.md.
const MOST_LAYERS: u32 = 1000;

const fn expansion_of(number: u32) -> Expansion {
    match number {
        0 => Expansion::None,
        2 => Expansion::Auto,
        times => Expansion::Times(times),
    }
}

const fn number_of(expansion: Expansion) -> u32 {
    match expansion {
        Expansion::None => 0,
        Expansion::Auto => 2,
        Expansion::Times(times) => times,
    }
}

impl Bloom {
    /// Adds a key, if there is room; returns whether it was new.
    pub fn insert(&mut self, key: &[u8], room: &impl Room) -> Result<bool, Error> {
        match self {
            Self::Tamis(filter) => {
                let hash = filter.hasher().hash(key);
                if filter.room() == 0 {
                    if filter.contains(hash) {
                        return Ok(false);
                    }
                    let layers = filter.shape().layers();
                    if layers >= MOST_LAYERS && filter.expansion() != Expansion::None {
                        return Err(Error::LAYERS);
                    }
                    allow(filter.bytes(), filter.growth_bytes(), room)?;
                }
                Ok(filter.insert(hash)?)
            }
            Self::Counting(filter) => {
                let hash = filter.hasher().hash(key);
                // Beyond its capacity, the rate would exceed the promise.
                let full = filter.keys().get() >= filter.capacity();
                if full && !filter.contains(hash) {
                    return Err(Error::FULL);
                }
                Ok(filter.insert_mut(hash))
            }
            Self::RedisBloom(chain) => {
                let more = chain.growth_bytes();
                if more > 0 && !chain.contains(key) {
                    if more == u64::MAX {
                        // After some 1,060 halvings a layer's rate would be 0.
                        return Err(Error::new("ERR problem inserting into filter"));
                    }
                    allow(bytes_of(&chain.parts()), more, room)?;
                }
                Ok(chain.insert(key)?)
            }
            Self::Valkey(chain) => {
                let more = chain.growth_bytes();
                if more > 0 && !chain.contains(key) {
                    allow(bytes_of(&chain.parts()), more, room)?;
                }
                Ok(chain.insert(key)?)
            }
            Self::Window(_) => Err(Error::new("ERR items of a window have a time")),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    /// Adds keys in order; `new[i]` answers for `keys[i]`. An error names the first key that wasn't added; the keys
    /// before it were.
    pub fn insert_many(
        &mut self,
        keys: &[&[u8]],
        new: &mut [bool],
        room: &impl Room,
    ) -> Result<(), (usize, Error)> {
        if let Self::Tamis(filter) = self
            && filter.room() >= keys.len() as u64
        {
            // It can't grow, so adding all at once can't fail.
            return filter
                .insert_many(keys, new)
                .map_err(|error| (0, error.into()));
        }
        for (i, (key, new)) in keys.iter().zip(new).enumerate() {
            *new = self.insert(key, room).map_err(|error| (i, error))?;
        }
        Ok(())
    }

    /// Whether adding changes something even if the key isn't new.
    pub const fn counts(&self) -> bool {
        matches!(self, Self::Counting(_))
    }

    fn counting(&mut self) -> Result<&mut Counting, Error> {
        match self {
            Self::Counting(filter) => Ok(filter),
            other => {
                other.check()?;
                Err(Error::new(
                    "ERR the filter doesn't count its items: reserve it with COUNTING",
                ))
            }
        }
    }

    /// For a window, as of its latest time.
    pub fn info(&self) -> Result<BloomInfo, Error> {
        let of_one = |rate, capacity, bytes, keys| BloomInfo {
            layout: FilterLayout::Tamis,
            rate,
            capacity,
            bytes,
            layers: 1,
            keys,
            expansion: None,
            tightening: None,
        };
        match self {
            Self::Counting(filter) => {
                let (bytes, keys) = (filter.bytes(), filter.keys().get());
                Ok(of_one(filter.rate(), filter.capacity(), bytes, keys))
            }
            Self::Window(window) => {
                let (bytes, keys) = (window.bytes(), window.keys().get());
                Ok(of_one(window.rate(), window.capacity(), bytes, keys))
            }
            Self::Valkey(chain) => Ok(BloomInfo {
                layout: FilterLayout::Valkey,
                rate: chain.rate(),
                capacity: chain.capacity(),
                bytes: bytes_of(&chain.parts()),
                layers: chain.parts().len() as u64,
                keys: chain.keys(),
                expansion: chain.expansion().map(u64::from),
                tightening: Some(chain.tightening()),
            }),
            Self::Tamis(filter) => Ok(BloomInfo {
                layout: FilterLayout::Tamis,
                tightening: None,
                rate: filter.rate(),
                capacity: filter.capacity(),
                bytes: filter.bytes(),
                layers: filter.shape().layers().into(),
                keys: filter.keys().get(),
                expansion: Some(number_of(filter.expansion()).into()).filter(|times| *times > 0),
            }),
            Self::RedisBloom(chain) => Ok(BloomInfo {
                layout: FilterLayout::RedisBloom,
                tightening: Some(0.5),
                rate: chain.rate(),
                capacity: chain.capacity(),
                bytes: bytes_of(&chain.parts()),
                layers: chain.parts().len() as u64,
                keys: chain.keys(),
                expansion: chain.growth(),
            }),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    /// An empty filter with the same initial parameters.
    pub fn template(&self) -> Result<Self, Error> {
        match self {
            Self::Tamis(filter) => Ok(Self::Tamis(filter.template()?)),
            Self::Counting(filter) => Ok(Self::Counting(filter.template()?)),
            Self::Window(window) => Ok(Self::Window(window.template()?)),
            Self::Valkey(chain) => Ok(Self::Valkey(chain.template()?)),
            Self::RedisBloom(chain) => Ok(Self::RedisBloom(chain.template()?)),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }
}

/// The time for queries that give none.
fn latest(window: &Window) -> Moment {
    window.latest().unwrap_or_default()
}

impl Filter for Bloom {
    fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Tamis(filter) => Ok(filter.contains(key)),
            Self::Counting(filter) => Ok(filter.contains(key)),
            Self::Window(window) => Ok(window.contains(key, latest(window))),
            Self::RedisBloom(chain) => Ok(chain.contains(key)),
            Self::Valkey(chain) => Ok(chain.contains(key)),
            Self::Loading(loading) => Err(loading.refusal()),
        }
    }

    fn contains_many(&self, keys: &[&[u8]], out: &mut [bool]) -> Result<(), Error> {
        match self {
            Self::Tamis(filter) => filter.contains_many(keys, out),
            Self::Counting(filter) => filter.contains_many(keys, out),
            Self::Window(window) => window.contains_many(keys, latest(window), out),
            Self::RedisBloom(chain) => {
                out.fill(false);
                chain.contains_many(keys, out);
            }
            Self::Valkey(chain) => {
                for (key, out) in keys.iter().zip(out) {
                    *out = chain.contains(key);
                }
            }
            Self::Loading(loading) => return Err(loading.refusal()),
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8]) -> Result<u64, Error> {
        Ok(self.counting()?.count(key))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.counting()?.remove(key))
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
            Self::Valkey(_) => FilterLayout::Valkey,
            Self::Tamis(_) | Self::Counting(_) | Self::Window(_) | Self::Loading(_) => {
                FilterLayout::Tamis
            }
        }
    }

    fn bytes(&self) -> Result<u64, Error> {
        Ok(self.info()?.bytes)
    }

    fn duplicate(&self) -> Result<Self, Error> {
        match self {
            Self::Tamis(filter) => {
                let mut copy = Growing::from_bytes(&filter.to_bytes())?;
                copy.set_expansion(filter.expansion());
                Ok(Self::Tamis(copy))
            }
            Self::Counting(filter) => {
                let copy = Counting::from_bytes(&filter.to_bytes())?;
                Ok(Self::Counting(copy))
            }
            Self::Window(window) => Ok(Self::Window(Window::from_bytes(&window.to_bytes())?)),
            Self::Valkey(chain) => Ok(Self::Valkey(chain.clone())),
            Self::RedisBloom(chain) => Ok(Self::RedisBloom(chain.clone())),
            Self::Loading(loading) => Ok(Self::Loading(loading.clone())),
        }
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Error> {
        match (self, other) {
            (Self::Tamis(ours), Self::Tamis(theirs)) => ours.union_with(theirs).map_err(unfit),
            (Self::RedisBloom(ours), Self::RedisBloom(theirs)) => {
                ours.union_within_capacity(theirs).map_err(unfit)
            }
            (Self::Window(ours), Self::Window(theirs)) => ours.union_with(theirs).map_err(unfit),
            (ours, theirs) => {
                ours.check()?;
                theirs.check()?;
                Err(Error::new(
                    "ERR filters of different layouts, counting ones and valkey-bloom's can't be merged",
                ))
            }
        }
    }

    fn dump_header(&self) -> Vec<u8> {
        match self {
            Self::Tamis(filter) => dump_header(filter.expansion(), filter.bytes()),
            Self::Counting(filter) => dump_header(Expansion::None, filter.bytes()),
            Self::Window(window) => dump_header(Expansion::None, window.bytes()),
            Self::RedisBloom(chain) => chain.dump_header(),
            Self::Valkey(chain) => chain.to_load(),
            Self::Loading(loading) => loading.header().to_vec(),
        }
    }

    fn dump(&self, at: u64, most: usize) -> Vec<u8> {
        macro_rules! file {
            ($filter:ident) => {{
                let header = || match $filter.bytes() {
                    ..=SEALED_TO => $filter.sealed_header(),
                    _ => $filter.header(),
                };
                dump_file(at, most, header, |at, most| $filter.read_body(at, most))
            }};
        }
        match self {
            Self::Tamis(filter) => file!(filter),
            Self::Counting(filter) => file!(filter),
            Self::Window(window) => file!(window),
            Self::RedisBloom(chain) => piece(&chain.parts(), at, most),
            // The header holds everything.
            Self::Valkey(_) => Vec::new(),
            Self::Loading(loading) => piece(&[loading.received()], at, most),
        }
    }

    fn expected(header: &[u8]) -> Result<u64, Error> {
        match tamis_header(header) {
            Some((_, bytes)) => Ok(bytes),
            None => Chain::bytes_of(header).map_err(|_| Error::BAD_DATA),
        }
    }

    fn empty(header: &[u8]) -> Result<Option<Self>, Error> {
        if tamis_header(header).is_some() {
            return Ok(None);
        }
        let chain = Chain::empty(header).map_err(|_| Error::BAD_DATA)?;
        Ok(chain.map(Self::RedisBloom))
    }

    fn decode(header: &[u8], bytes: &[u8]) -> Result<Self, Error> {
        let Some((expansion, _)) = tamis_header(header) else {
            let lengths = Chain::lengths_of(header).map_err(|_| Error::BAD_DATA)?;
            let chunks = parts(lengths, bytes)?;
            let chain = Chain::of_chunks(header, &chunks).map_err(|_| Error::BAD_DATA)?;
            return Ok(Self::RedisBloom(chain.into_owned()));
        };
        let file = Header::decode(bytes, None).map_err(Error::bad_data)?;
        if file.shape().kind() == Kind::Counting {
            let filter = Counting::from_bytes(bytes).map_err(Error::bad_data)?;
            return Ok(Self::Counting(filter));
        }
        if file.shape().kind() == Kind::Window {
            let window = Window::from_bytes(bytes).map_err(Error::bad_data)?;
            window::check(&window)?;
            return Ok(Self::Window(window));
        }
        let mut filter = Growing::from_bytes(bytes).map_err(Error::bad_data)?;
        filter.set_expansion(expansion_of(expansion));
        Ok(Self::Tamis(filter))
    }
}

fn unfit(error: impl Into<Error>) -> Error {
    match error.into() {
        full if full == Error::FULL => Error::new(
            "ERR the filters hold more keys together than their layers were made for: reserve larger ones",
        ),
        error => error,
    }
}

fn allow(bytes: u64, more: u64, room: &impl Room) -> Result<(), Error> {
    match more {
        0 => Ok(()),
        more => room.allows(bytes.saturating_add(more)),
    }
}

/// Bytes of a file from `at` on.
fn dump_file(
    at: u64,
    most: usize,
    header: impl Fn() -> Header,
    body: impl Fn(u64, usize) -> Vec<u8>,
) -> Vec<u8> {
    match at.checked_sub(HEADER_LEN as u64) {
        Some(at) => body(at, most),
        None => {
            let mut bytes = header().encode()[at as usize..].to_vec();
            bytes.extend(body(0, most.saturating_sub(bytes.len())));
            bytes
        }
    }
}

fn bytes_of(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

fn dump_header(expansion: Expansion, bytes: u64) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(number_of(expansion).to_le_bytes());
    header.extend((HEADER_LEN as u64 + bytes).to_le_bytes());
    header
}

fn tamis_header(header: &[u8]) -> Option<(u32, u64)> {
    let header: &[u8; DUMP_HEADER] = header.try_into().ok()?;
    let (magic, rest) = header.split_first_chunk::<8>()?;
    let (expansion, bytes) = rest.split_first_chunk::<4>()?;
    let bytes = bytes.try_into().ok()?;
    (magic == MAGIC).then_some((u32::from_le_bytes(*expansion), u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests;
