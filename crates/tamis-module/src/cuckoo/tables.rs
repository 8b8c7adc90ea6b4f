//! A cuckoo filter that grows and keeps its rate, and from which a key can be removed wherever it is.
//!
//! It consists of layers of tables of one shape: one table in the first layer, and `expansion` times as many in each
//! further layer. A key's hash chooses its table in each layer, evenly; the tables of a newer layer split those of
//! older ones. So two keys that a newer layer can't tell apart can't be told apart in an older one, either. That makes
//! removing sound. Suppose the newest layer that seems to have a key really has another key's entry. Then after
//! removing it, the key's own entry in an older layer answers for both. With tables of different shapes that would
//! fail, and give false "no" answers.
//!
//! All layers that may ever exist share the promised rate equally. A table is created for its first key, so that no key
//! waits for a whole layer.

use super::CuckooInfo;
use crate::error::Error;
use crate::filter::{Room, SEALED_TO};
use crate::words::FilterLayout;
use tamis::internals::plan::{FEWEST_CUCKOO_KEYS, cuckoo_layers};
use tamis::internals::raw::HEADER_LEN;
use tamis::{Cuckoo, Hash, Hasher};

const MOST_TABLES: u64 = 1 << 24;
/// For one table; the library refuses lower rates.
const LOWEST_RATE: f64 = 1e-9;

/// The lowest rate that this many layers can share.
fn lowest(layers: u32) -> f64 {
    f64::from(layers) / 1e9
}

/// The first chunk of a dump: this, expansion, most layers, layers (32 bits each), deletes and the number of bytes that
/// follow (64). All little-endian. Then come all tables, each as the bytes of a `.tamis` file.
const MAGIC: &[u8; 8] = b"TAMISCF1";
const DUMP_HEADER: usize = 36;

pub struct Tables {
    /// Oldest first; only tables that were given keys exist.
    layers: Vec<Vec<Option<Box<Cuckoo>>>>,
    expansion: u32,
    most_layers: u32,
    deletes: u64,
}

fn too_low(layers: u32) -> Error {
    let lowest = lowest(layers);
    let shared = match layers {
        1 => String::new(),
        _ => format!(
            " for a filter that grows like this: {layers} layers share it; 1e-9 with EXPANSION 0"
        ),
    };
    Error(
        format!(
            "ERR ERROR must be at least {lowest:e}{shared}. A Bloom filter goes lower, and with COUNTING its items can \
             be removed, too"
        )
        .into(),
    )
}

impl Tables {
    pub fn new(capacity: u64, rate: f64, expansion: u32, hasher: Hasher) -> Result<Self, Error> {
        let capacity = capacity.max(FEWEST_CUCKOO_KEYS);
        let most_layers = cuckoo_layers(capacity, expansion);
        if rate < lowest(most_layers) {
            return Err(too_low(most_layers));
        }
        // Division may round the lowest rate down a little.
        let each = (rate / f64::from(most_layers)).max(LOWEST_RATE);
        let first = Cuckoo::with_hasher(capacity, each, hasher)?;
        Ok(Self {
            layers: vec![vec![Some(Box::new(first))]],
            expansion,
            most_layers,
            deletes: 0,
        })
    }

    fn first(&self) -> &Cuckoo {
        self.layers[0][0].as_deref().expect("made with the filter")
    }

    fn hash(&self, key: &[u8]) -> Hash {
        self.first().hasher().hash(key)
    }

    /// The tables that may hold a key, newest first.
    fn path(&self, hash: Hash) -> impl Iterator<Item = &Cuckoo> {
        self.layers
            .iter()
            .rev()
            .filter_map(move |layer| layer[hash.shard(layer.len())].as_deref())
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.path(hash).any(|table| table.contains(hash))
    }

    pub fn count(&self, key: &[u8]) -> u64 {
        let hash = self.hash(key);
        self.path(hash).map(|table| table.count(hash)).sum()
    }

    /// The number of tables in a layer.
    fn tables_of(&self, layer: u32) -> Option<u64> {
        u64::from(self.expansion.max(1))
            .checked_pow(layer)
            .filter(|tables| *tables <= MOST_TABLES)
    }

    fn table_bytes(&self) -> u64 {
        self.first().bytes()
    }

    pub fn insert(&mut self, key: &[u8], room: &impl Room) -> Result<(), Error> {
        let hash = self.hash(key);
        let mut copies = None;
        // Older layers first, to reuse room freed there.
        for layer in 0..self.layers.len() {
            let table = self.table(layer, hash)?;
            copies = None;
            // Beyond its capacity, the rate would exceed the promise.
            if table.keys().get() < table.capacity() {
                match table.insert(hash) {
                    Ok(_) => return Ok(()),
                    Err(tamis::Error::Full { .. }) => {}
                    Err(error) => copies = Some(error),
                }
            }
        }
        match copies {
            // More copies of the same key are no reason to grow.
            Some(error) => Err(error.into()),
            None => {
                self.grow(room)?;
                self.table(self.layers.len() - 1, hash)?.insert(hash)?;
                Ok(())
            }
        }
    }

    /// A layer's table for a key, created if needed.
    fn table(&mut self, layer: usize, hash: Hash) -> Result<&mut Cuckoo, Error> {
        let table = hash.shard(self.layers[layer].len());
        if self.layers[layer][table].is_none() {
            let new = Box::new(self.first().template()?);
            self.layers[layer][table] = Some(new);
        }
        let table = self.layers[layer][table].as_deref_mut();
        Ok(table.expect("made above"))
    }

    fn grow(&mut self, room: &impl Room) -> Result<(), Error> {
        if self.expansion == 0 {
            return Err(Error::new("Filter is full"));
        }
        let layers = self.layers.len() as u32;
        let tables = self.tables_of(layers).filter(|_| layers < self.most_layers);
        let tables = tables.ok_or_else(|| {
            Error(
                format!(
                    "Maximum expansions reached: the filter's rate is shared among {} layers, and they are full; \
                     reserve a larger one, or one that grows in larger steps (EXPANSION 2 or more)",
                    self.most_layers
                )
                .into(),
            )
        })?;
        let more = tables.saturating_mul(self.table_bytes());
        room.allows(self.bytes().saturating_add(more))?;
        let mut layer = Vec::new();
        let memory = layer.try_reserve_exact(tables as usize);
        memory.map_err(|_| Error::new("ERR Insufficient memory"))?;
        layer.resize_with(tables as usize, || None);
        self.layers.push(layer);
        Ok(())
    }

    pub fn remove(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let removed = self.layers.iter_mut().rev().any(|layer| {
            let table = hash.shard(layer.len());
            let table = layer[table].as_deref_mut();
            table.is_some_and(|table| table.remove(hash))
        });
        self.deletes = self.deletes.saturating_add(removed.into());
        removed
    }

    /// Moves entries to older layers, and drops layers that become empty.
    pub fn compact(&mut self) -> Result<(), Error> {
        for newer in (1..self.layers.len()).rev() {
            let (older, rest) = self.layers.split_at_mut(newer);
            let layer = &mut rest[0];
            let split = layer.len();
            for (i, place) in layer.iter_mut().enumerate() {
                for older in older.iter_mut() {
                    let parent = i / (split / older.len()).max(1);
                    let Some(table) = &place else { break };
                    let parent = match &mut older[parent] {
                        Some(parent) => parent,
                        empty => empty.insert(Box::new(table.template()?)),
                    };
                    let both = parent.keys().get() + table.keys().get();
                    if both <= parent.capacity() && parent.union_with(table).is_ok() {
                        *place = None;
                    }
                }
            }
        }
        while self.layers.len() > 1
            && self
                .layers
                .last()
                .is_some_and(|layer| layer.iter().flatten().all(|t| t.keys().get() == 0))
        {
            self.layers.pop();
        }
        self.deletes = 0;
        Ok(())
    }

    /// All existing tables.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Cuckoo> {
        self.layers.iter().flatten().filter_map(Option::as_deref)
    }

    #[cfg(feature = "server")]
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Cuckoo> {
        let tables = self.layers.iter_mut().flatten();
        tables.filter_map(Option::as_deref_mut)
    }

    /// The number of tables in all layers, including those not created yet.
    fn places(&self) -> u64 {
        self.layers.iter().map(|layer| layer.len() as u64).sum()
    }

    /// Addresses and sizes of the lists of tables.
    #[cfg(feature = "server")]
    pub(crate) fn lists(&self) -> Vec<(*const u8, usize)> {
        let lists = self.layers.iter().map(|layer| layer.as_ptr().cast());
        let lists = lists.chain([self.layers.as_ptr().cast()]);
        let lists = lists.map(|list| (list, align_of::<usize>()));
        let tables = self.all().map(|table| std::ptr::from_ref(table).cast());
        let tables = tables.map(|table| (table, align_of::<Cuckoo>()));
        lists.chain(tables).collect()
    }

    /// The bytes of all tables, including those not created yet.
    pub fn bytes(&self) -> u64 {
        self.places() * self.table_bytes()
    }

    pub fn keys(&self) -> u64 {
        self.all().map(|table| table.keys().get()).sum()
    }

    pub fn rate(&self) -> f64 {
        self.first().rate() * f64::from(self.most_layers)
    }

    pub(super) fn info(&self) -> CuckooInfo {
        let shape = self.first().shape();
        CuckooInfo {
            layout: FilterLayout::Tamis,
            rate: self.rate(),
            capacity: self.places() * self.first().capacity(),
            bytes: self.bytes(),
            buckets: shape.slots() / u64::from(shape.window()),
            layers: self.layers.len() as u64,
            keys: self.keys(),
            deletes: self.deletes,
            bucket_size: shape.window().into(),
            expansion: self.expansion.into(),
            most_kicks: 500,
        }
    }

    pub fn duplicate(&self) -> Result<Self, Error> {
        let copy = |table: &Option<Box<Cuckoo>>| {
            let table = table.as_deref();
            let copy = table.map(|table| Cuckoo::from_bytes(&table.to_bytes()).map(Box::new));
            copy.transpose()
        };
        let layers = self.layers.iter();
        let layers = layers.map(|layer| layer.iter().map(copy).collect());
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
            ..*self
        })
    }

    /// Adds all entries of another, table by table, if each has room for both; else changes nothing.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Error> {
        let alike = self.expansion == other.expansion
            && self.most_layers == other.most_layers
            && self.first().same_shape(other.first())
            && self.first().hasher().agrees_with(other.first().hasher());
        if !alike {
            return Err(Error::new(
                "ERR filters of different size, rate, expansion or hash can't be merged",
            ));
        }
        let mut merged = self.duplicate()?;
        while merged.layers.len() < other.layers.len() {
            merged.grow(&u64::MAX)?;
        }
        let full =
            Error::new("ERR the filters hold more items together than their tables were made for");
        let places = merged.layers.iter_mut().flatten();
        for (place, theirs) in places.zip(other.layers.iter().flatten()) {
            let Some(theirs) = theirs else { continue };
            if place.is_none() {
                *place = Some(Box::new(theirs.template()?));
            }
            let Some(ours) = place else { continue };
            if ours.keys().get() + theirs.keys().get() > ours.capacity() {
                return Err(full);
            }
            ours.union_with(theirs).map_err(|_| full.clone())?;
        }
        merged.deletes = merged.deletes.saturating_add(other.deletes);
        *self = merged;
        Ok(())
    }

    fn stride(&self) -> u64 {
        HEADER_LEN as u64 + self.table_bytes()
    }

    pub(super) fn dump_header(&self) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        let layers = self.layers.len() as u32;
        for number in [self.expansion, self.most_layers, layers] {
            header.extend(number.to_le_bytes());
        }
        header.extend(self.deletes.to_le_bytes());
        header.extend((self.places() * self.stride()).to_le_bytes());
        header
    }

    /// At most the rest of one table.
    pub(super) fn dump(&self, at: u64, most: usize) -> Vec<u8> {
        let (table, at) = (at / self.stride(), at % self.stride());
        let mut places = self.layers.iter().flatten();
        let empty;
        let table = match places.nth(table as usize) {
            None => return Vec::new(),
            Some(Some(table)) => &**table,
            // Written as if the table existed.
            Some(None) => match self.first().template() {
                Ok(template) => {
                    empty = template;
                    &empty
                }
                Err(_) => return Vec::new(),
            },
        };
        match at.checked_sub(HEADER_LEN as u64) {
            Some(at) => table.read_body(at, most),
            None => {
                let header = match table.bytes() {
                    ..=SEALED_TO => table.sealed_header(),
                    _ => table.header(),
                };
                let mut bytes = header.encode()[at as usize..].to_vec();
                bytes.extend(table.read_body(0, most.saturating_sub(bytes.len())));
                bytes
            }
        }
    }

    pub(super) fn is_header(header: &[u8]) -> bool {
        header.len() == DUMP_HEADER && header.starts_with(MAGIC)
    }

    pub(super) fn expected(header: &[u8]) -> Result<u64, Error> {
        let bytes = header.last_chunk().ok_or(Error::bad_data("too short"))?;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn decode(header: &[u8], bytes: &[u8]) -> Result<Self, Error> {
        let bad = || Error::bad_data("the tables don't fit together");
        let number = |at: usize| {
            let field = header.get(at..).and_then(<[u8]>::first_chunk);
            field
                .map(|field| u32::from_le_bytes(*field))
                .ok_or_else(bad)
        };
        let (expansion, most, layers) = (number(8)?, number(12)?, number(16)?);
        let deletes = header
            .get(20..)
            .and_then(<[u8]>::first_chunk)
            .ok_or_else(bad)?;
        let first = tamis::internals::raw::Header::decode(bytes, None).map_err(Error::bad_data)?;
        let stride = HEADER_LEN as u64 + first.body_len();
        let expected = cuckoo_layers(first.capacity(), expansion);
        if most != expected || !(1..=most).contains(&layers) {
            return Err(bad());
        }
        let mut this = Self {
            layers: Vec::new(),
            expansion,
            most_layers: most,
            deletes: u64::from_le_bytes(*deletes),
        };
        let mut rest = bytes;
        for layer in 0..layers {
            let tables = this.tables_of(layer).ok_or_else(bad)?;
            // Checked before anything is allocated for the tables.
            if tables.saturating_mul(stride) > rest.len() as u64 {
                return Err(bad());
            }
            let mut decoded = Vec::with_capacity(tables as usize);
            for _ in 0..tables {
                let table = rest.split_off(..stride as usize).ok_or_else(bad)?;
                let table = Cuckoo::from_bytes(table).map_err(Error::bad_data)?;
                let alike = this.layers.is_empty() || {
                    let first = this.first();
                    first.same_shape(&table)
                        && first.hasher().agrees_with(table.hasher())
                        && first.capacity() == table.capacity()
                        && first.rate() == table.rate()
                };
                if !alike {
                    return Err(bad());
                }
                // In further layers, only tables that were given keys.
                let has_keys = layer == 0 || table.keys().get() > 0;
                decoded.push(has_keys.then(|| Box::new(table)));
            }
            this.layers.push(decoded);
        }
        rest.is_empty().then_some(this).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests;
