//! RedisBloom's cuckoo filter: tables of buckets of one-byte fingerprints. A
//! fingerprint may be in either of two buckets of any table.

use super::parts;
use super::rdb::{Sink, Source};
use crate::fields::Fields;
use crate::format::with_zeros;
use crate::hash::murmur::murmur2_64a;
use crate::{Error, Format};
use std::borrow::Cow;
use tamis::internals::raw::{Explanation, Joined, Look, Slot};

const FORMAT: Format = Format::RedisCuckoo;
/// The server's counter has 16 bits.
const MOST_TABLES: u64 = 65535;
const MOST_BUCKETS: u64 = 1 << 40;
const EMPTY: u8 = 0;

/// RedisBloom's cuckoo filter, as kept by its server.
///
/// ```
/// use tamis_formats::redisbloom::Cuckoo;
/// let mut seen = Cuckoo::new(1024, 2, 20, 1)?;
/// seen.insert(b"key")?;
/// assert!(seen.contains(b"key") && seen.remove(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cuckoo<'a> {
    numbers: Numbers,
    tables: Vec<Table<'a>>,
}

/// The numbers of the whole filter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbers {
    items: u64,
    /// Buckets of the first table.
    buckets: u64,
    deletes: u64,
    bucket_size: u16,
    most_kicks: u16,
    expansion: u16,
}

#[derive(Clone, Debug)]
struct Table<'a> {
    buckets: u64,
    data: Cow<'a, [u8]>,
}

/// A key's fingerprint, and its two hashes.
#[derive(Clone, Copy)]
struct Slots {
    fingerprint: u8,
    hashes: [u64; 2],
}

impl Slots {
    fn of(key: &[u8]) -> Self {
        let hash = murmur2_64a(key, 0);
        let fingerprint = (hash % 255) as u8 + 1;
        Self {
            fingerprint,
            hashes: [hash, other(fingerprint, hash)],
        }
    }
}

/// The other hash of a fingerprint.
fn other(fingerprint: u8, hash: u64) -> u64 {
    hash ^ u64::from(fingerprint).wrapping_mul(0x5bd1_e995)
}

impl Table<'_> {
    fn zeroed(buckets: u64, bucket_size: u16) -> Result<Table<'static>, Error> {
        let bytes = buckets
            .checked_mul(bucket_size.into())
            .filter(|_| buckets <= MOST_BUCKETS);
        let bytes = bytes.ok_or(Error::Parameter {
            what: "size",
            expected: "no more than the format can number",
            got: buckets.to_string(),
        })?;
        Ok(Table {
            buckets,
            data: with_zeros(&[], bytes)?.into(),
        })
    }

    fn bucket(&self, hash: u64, size: u16) -> std::ops::Range<usize> {
        let start = (hash % self.buckets) as usize * usize::from(size);
        start..start + usize::from(size)
    }

    /// The first slot of either bucket that contains `what`.
    fn find(&self, slots: Slots, size: u16, what: u8) -> Option<usize> {
        slots.hashes.into_iter().find_map(|hash| {
            let bucket = self.bucket(hash, size);
            let slot = self.data[bucket.clone()]
                .iter()
                .position(|slot| *slot == what)?;
            Some(bucket.start + slot)
        })
    }

    /// Makes room by moving fingerprints to their other buckets, or leaves
    /// everything unchanged.
    fn kick(&mut self, slots: Slots, size: u16, most: u16) -> bool {
        let (mut fingerprint, mut victim) = (slots.fingerprint, 0);
        let mut at = slots.hashes[0] % self.buckets;
        let data_len = usize::from(size);
        for _ in 0..most {
            let slot = at as usize * data_len + victim;
            std::mem::swap(&mut self.data.to_mut()[slot], &mut fingerprint);
            at = other(fingerprint, at) % self.buckets;
            let bucket = self.bucket(at, size);
            if let Some(free) = self.data[bucket.clone()]
                .iter()
                .position(|slot| *slot == EMPTY)
            {
                self.data.to_mut()[bucket.start + free] = fingerprint;
                return true;
            }
            victim = (victim + 1) % data_len;
        }
        for _ in 0..most {
            victim = (victim + data_len - 1) % data_len;
            at = other(fingerprint, at) % self.buckets;
            let slot = at as usize * data_len + victim;
            std::mem::swap(&mut self.data.to_mut()[slot], &mut fingerprint);
        }
        false
    }
}

impl<'a> Cuckoo<'a> {
    /// The length of the header that CF.SCANDUMP returns.
    pub const HEADER: usize = 38;

    fn assembled(numbers: Numbers, tables: Vec<(u64, Cow<'a, [u8]>)>) -> Result<Self, Error> {
        let refuse = |what, expected: &dyn std::fmt::Display, got: u64| {
            Err(Error::corrupt(FORMAT, what, expected, got))
        };
        if !(1..=255).contains(&numbers.bucket_size) {
            return refuse("bucket size", &"1 to 255", numbers.bucket_size.into());
        }
        if numbers.most_kicks == 0 {
            return refuse("iterations", &"at least 1", 0);
        }
        if tables.is_empty() {
            return refuse("tables", &"at least 1", 0);
        }
        for (i, (buckets, data)) in tables.iter().enumerate() {
            if !buckets.is_power_of_two() || *buckets > MOST_BUCKETS {
                return refuse("buckets", &"a power of two up to 2^40", *buckets);
            }
            let bytes = buckets * u64::from(numbers.bucket_size);
            if data.len() as u64 != bytes {
                return refuse("table", &format_args!("{bytes} bytes"), data.len() as u64);
            }
            if numbers.table_buckets(i) != Some(*buckets) {
                return refuse("buckets", &"those that expansion gives", *buckets);
            }
        }
        let table = |(buckets, data)| Table { buckets, data };
        let tables = tables.into_iter().map(table).collect();
        Ok(Self { numbers, tables })
    }

    /// Reads the fields of an RDB value, in order. Never panics, whatever the
    /// fields.
    pub fn decode(reader: &mut impl Source<'a>) -> Result<Self, Error> {
        let count = reader.unsigned("tables")?;
        if !(1..=MOST_TABLES).contains(&count) {
            return Err(Error::corrupt(FORMAT, "tables", "1 to 65535", count));
        }
        let buckets = reader.unsigned("buckets")?;
        let items = reader.unsigned("items")?;
        let deletes = reader.unsigned("deletes")?;
        let mut short = |what| {
            let number = reader.unsigned(what)?;
            u16::try_from(number).map_err(|_| Error::corrupt(FORMAT, what, "16 bits", number))
        };
        let numbers = Numbers {
            items,
            buckets,
            deletes,
            bucket_size: short("bucket size")?,
            most_kicks: short("iterations")?,
            expansion: short("expansion")?,
        };
        let mut tables = Vec::new();
        for _ in 0..count {
            let buckets = reader.unsigned("buckets")?;
            tables.push((buckets, reader.string("table")?));
        }
        Self::assembled(numbers, tables)
    }

    /// Writes the fields of an RDB value.
    pub fn encode(&self, out: &mut impl Sink) {
        let numbers = &self.numbers;
        out.unsigned(self.tables.len() as u64);
        out.unsigned(numbers.buckets);
        out.unsigned(numbers.items);
        out.unsigned(numbers.deletes);
        for short in [numbers.bucket_size, numbers.most_kicks, numbers.expansion] {
            out.unsigned(short.into());
        }
        for table in &self.tables {
            out.unsigned(table.buckets);
            out.string(&table.data);
        }
    }

    /// The number of bytes that follow a header from CF.SCANDUMP.
    pub fn bytes_of(header: &[u8]) -> Result<u64, Error> {
        let (numbers, sizes) = Self::read_header(header)?;
        let lengths = sizes.iter().map(|buckets| numbers.bytes_of_table(*buckets));
        let sum = lengths.into_iter().try_fold(0u64, u64::checked_add);
        sum.ok_or_else(|| Error::corrupt(FORMAT, "bytes", "less than 2^64", "more"))
    }

    /// The lengths of the tables, according to a header.
    pub fn lengths_of(header: &[u8]) -> Result<Vec<u64>, Error> {
        let (numbers, sizes) = Self::read_header(header)?;
        let bytes = |buckets: &u64| numbers.bytes_of_table(*buckets);
        Ok(sizes.iter().map(bytes).collect())
    }

    /// Assembles the results of CF.SCANDUMP: its header, and the data of the
    /// other chunks.
    pub fn of_chunks(header: &[u8], chunks: &[&'a [u8]]) -> Result<Self, Error> {
        let (numbers, sizes) = Self::read_header(header)?;
        let lengths = sizes.iter().map(|buckets| numbers.bytes_of_table(*buckets));
        let parts = parts(FORMAT, lengths, chunks)?;
        Self::assembled(numbers, sizes.iter().copied().zip(parts).collect())
    }

    /// The filter of a header that counts no items, so that all its data is
    /// zeros; `None` if it counts some.
    pub fn empty(header: &[u8]) -> Result<Option<Cuckoo<'static>>, Error> {
        let (numbers, sizes) = Self::read_header(header)?;
        if numbers.items != 0 {
            return Ok(None);
        }
        let zeroed = |buckets: &u64| {
            let table = Table::zeroed(*buckets, numbers.bucket_size)?;
            Ok((*buckets, table.data))
        };
        let tables = sizes.iter().map(zeroed).collect::<Result<_, Error>>()?;
        Cuckoo::assembled(numbers, tables).map(Some)
    }

    /// The numbers of the filter, and of the buckets of each table.
    fn read_header(header: &[u8]) -> Result<(Numbers, Vec<u64>), Error> {
        let mut fields = Fields::new(FORMAT, header);
        let items = fields.u64_le("items")?;
        let buckets = fields.u64_le("buckets")?;
        let deletes = fields.u64_le("deletes")?;
        let count = fields.ranged("tables", 1..=MOST_TABLES, Fields::u64_le)?;
        let numbers = Numbers {
            items,
            buckets,
            deletes,
            bucket_size: fields.u16_le("bucket size")?,
            most_kicks: fields.u16_le("iterations")?,
            expansion: fields.u16_le("expansion")?,
        };
        let sizes: Option<Vec<u64>> = (0..count as usize)
            .map(|i| numbers.table_buckets(i))
            .collect();
        let sizes = sizes.ok_or_else(|| fields.corrupt("buckets", "up to 2^40", buckets))?;
        Ok((numbers, sizes))
    }

    /// The number of tables.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The tables.
    pub fn parts(&self) -> Vec<&[u8]> {
        self.tables.iter().map(|table| &*table.data).collect()
    }

    /// The address and the alignment of the list of tables, for servers that
    /// report how much memory it uses.
    pub fn list(&self) -> (*const u8, usize) {
        (self.tables.as_ptr().cast(), align_of::<Table<'_>>())
    }

    /// The header that CF.SCANDUMP returns.
    pub fn dump_header(&self) -> Vec<u8> {
        let numbers = &self.numbers;
        let longs = [
            numbers.items,
            numbers.buckets,
            numbers.deletes,
            self.tables.len() as u64,
        ];
        let shorts = [numbers.bucket_size, numbers.most_kicks, numbers.expansion];
        (longs.into_iter().flat_map(u64::to_le_bytes))
            .chain(shorts.into_iter().flat_map(u16::to_le_bytes))
            .collect()
    }

    /// An empty one. With `expansion` 0, it doesn't grow.
    pub fn new(
        capacity: u64,
        bucket_size: u16,
        most_kicks: u16,
        expansion: u16,
    ) -> Result<Cuckoo<'static>, Error> {
        let buckets = (capacity / u64::from(bucket_size.max(1)))
            .max(1)
            .next_power_of_two();
        let numbers = Numbers {
            items: 0,
            buckets,
            deletes: 0,
            bucket_size,
            most_kicks,
            expansion: if expansion == 0 {
                0
            } else {
                expansion.next_power_of_two()
            },
        };
        let table = Table::zeroed(buckets, bucket_size)?;
        Cuckoo::assembled(numbers, vec![(buckets, table.data)])
    }

    /// Whether the key may have been added.
    pub fn contains(&self, key: &[u8]) -> bool {
        let slots = Slots::of(key);
        let size = self.numbers.bucket_size;
        self.tables
            .iter()
            .any(|table| table.find(slots, size, slots.fingerprint).is_some())
    }

    /// The slots that [`contains`](Self::contains) reads, table by table.
    pub(super) fn explain(&self, key: &[u8]) -> Explanation {
        let slots = Slots::of(key);
        let look = |table: &Table<'_>| {
            let place = |hash| {
                let slot = |at: usize| Slot {
                    at: at as u64,
                    holds: (table.data[at] != EMPTY).then(|| table.data[at].into()),
                    is_it: table.data[at] == slots.fingerprint,
                };
                table
                    .bucket(hash, self.numbers.bucket_size)
                    .map(slot)
                    .collect()
            };
            Look::Slots {
                fingerprint: slots.fingerprint.into(),
                places: slots.hashes.map(place).into(),
            }
        };
        Explanation {
            joined: Joined::Layers,
            looks: self.tables.iter().map(look).collect(),
        }
    }

    /// Adds a copy of a key, like CF.ADD.
    pub fn insert(&mut self, key: &[u8]) -> Result<(), Error> {
        self.insert_within(key, true)
    }

    /// [`insert`](Self::insert), with `may_grow` false without adding a table.
    pub fn insert_within(&mut self, key: &[u8], may_grow: bool) -> Result<(), Error> {
        let slots = Slots::of(key);
        let size = self.numbers.bucket_size;
        loop {
            let free = |table: &mut Table<'_>| {
                let slot = table.find(slots, size, EMPTY)?;
                table.data.to_mut()[slot] = slots.fingerprint;
                Some(())
            };
            let newest = self.tables.len() - 1;
            if self.tables.iter_mut().rev().find_map(free).is_some()
                || self.tables[newest].kick(slots, size, self.numbers.most_kicks)
            {
                self.numbers.items = self.numbers.items.saturating_add(1);
                return Ok(());
            }
            let next = self.tables.len();
            let buckets = self
                .numbers
                .table_buckets(next)
                .filter(|_| self.numbers.expansion > 0 && may_grow);
            let buckets = buckets.ok_or(Error::Full {
                format: FORMAT,
                capacity: self.capacity(),
            })?;
            self.tables.push(Table::zeroed(buckets, size)?);
        }
    }

    /// Removes a copy of a key, like CF.DEL; returns whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let slots = Slots::of(key);
        let size = self.numbers.bucket_size;
        let gone = self.tables.iter_mut().rev().find_map(|table| {
            let slot = table.find(slots, size, slots.fingerprint)?;
            table.data.to_mut()[slot] = EMPTY;
            Some(())
        });
        if gone.is_none() {
            return false;
        }
        self.numbers.items = self.numbers.items.saturating_sub(1);
        self.numbers.deletes = self.numbers.deletes.saturating_add(1);
        if self.tables.len() > 1 && self.numbers.deletes as f64 > self.numbers.items as f64 * 0.1 {
            // If a table can't be emptied, older ones can't be dropped, either.
            let mut tables = (1..self.tables.len()).rev();
            tables.find(|from| !self.compact_one(*from));
            self.numbers.deletes = 0;
        }
        true
    }

    /// Moves fingerprints of every table to older ones, and drops the newest
    /// tables that become empty, like CF.COMPACT.
    pub fn compact(&mut self) {
        for from in (1..self.tables.len()).rev() {
            self.compact_one(from);
        }
        self.numbers.deletes = 0;
    }

    /// Returns whether all fingerprints of a table fit in older ones.
    fn compact_one(&mut self, from: usize) -> bool {
        let size = self.numbers.bucket_size;
        let mut all = true;
        for slot in 0..self.tables[from].data.len() {
            let fingerprint = self.tables[from].data[slot];
            if fingerprint == EMPTY {
                continue;
            }
            let bucket = (slot / usize::from(size)) as u64;
            let slots = Slots {
                fingerprint,
                hashes: [bucket, other(fingerprint, bucket)],
            };
            let older = self.tables[..from].iter_mut().find_map(|table| {
                let free = table.find(slots, size, EMPTY)?;
                table.data.to_mut()[free] = fingerprint;
                Some(())
            });
            match older {
                Some(()) => self.tables[from].data.to_mut()[slot] = EMPTY,
                None => all = false,
            }
        }
        if all && from == self.tables.len() - 1 {
            self.tables.pop();
        }
        all
    }

    /// An owned copy.
    pub fn into_owned(self) -> Cuckoo<'static> {
        let owned = |table: Table<'a>| Table {
            buckets: table.buckets,
            data: Cow::Owned(table.data.into_owned()),
        };
        Cuckoo {
            numbers: self.numbers,
            tables: self.tables.into_iter().map(owned).collect(),
        }
    }

    /// The number of entries.
    pub const fn keys(&self) -> u64 {
        self.numbers.items
    }

    /// The number of slots in all tables.
    pub fn capacity(&self) -> u64 {
        self.tables
            .iter()
            .map(|table| table.data.len() as u64)
            .sum()
    }

    /// An upper bound on how often the key was added.
    pub fn count(&self, key: &[u8]) -> u64 {
        let slots = Slots::of(key);
        let size = self.numbers.bucket_size;
        let copies = |table: &Table<'_>| {
            let [first, second] = slots.hashes.map(|hash| table.bucket(hash, size));
            let count = |bucket: std::ops::Range<usize>| {
                let all = table.data[bucket].iter();
                all.filter(|slot| **slot == slots.fingerprint).count()
            };
            // If both buckets are the same, it counts twice, like CF.COUNT.
            count(first) + count(second)
        };
        self.tables.iter().map(copies).sum::<usize>() as u64
    }

    /// The number of buckets of the first table.
    pub const fn buckets(&self) -> u64 {
        self.numbers.buckets
    }

    /// The number of removals since the last compaction.
    pub const fn deletes(&self) -> u64 {
        self.numbers.deletes
    }

    /// Bucket size, most moves per insertion, and expansion.
    pub const fn settings(&self) -> [u16; 3] {
        let numbers = &self.numbers;
        [numbers.bucket_size, numbers.most_kicks, numbers.expansion]
    }

    /// The size of the next table in bytes.
    pub fn growth_bytes(&self) -> u64 {
        let next = self.numbers.table_buckets(self.tables.len());
        next.map_or(u64::MAX, |buckets| self.numbers.bytes_of_table(buckets))
    }

    /// The buffers of its parts, for servers that defragment memory.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.tables.iter_mut().map(|part| part.data.to_mut())
    }

    /// An empty filter with the same initial parameters.
    pub fn template(&self) -> Result<Cuckoo<'static>, Error> {
        let numbers = Numbers {
            items: 0,
            deletes: 0,
            ..self.numbers
        };
        let table = Table::zeroed(numbers.buckets, numbers.bucket_size)?;
        Cuckoo::assembled(numbers, vec![(numbers.buckets, table.data)])
    }

    /// The share of used slots.
    pub(crate) fn fill(&self) -> f64 {
        let taken = |table: &Table<'_>| table.data.iter().filter(|slot| **slot != EMPTY).count();
        self.tables.iter().map(taken).sum::<usize>() as f64 / self.capacity() as f64
    }

    /// The false-positive rate now: each used slot of two buckets contains one
    /// of the 255 fingerprints.
    pub(crate) fn rate_now(&self) -> f64 {
        let no = self.tables.iter().map(|table| {
            let taken = table.data.iter().filter(|slot| **slot != EMPTY).count() as f64;
            (254f64 / 255.0).powf(2.0 * taken / table.buckets as f64)
        });
        1.0 - no.product::<f64>()
    }
}

impl Numbers {
    fn bytes_of_table(&self, buckets: u64) -> u64 {
        buckets.saturating_mul(self.bucket_size.into())
    }

    /// The buckets of table number `i`.
    fn table_buckets(&self, i: usize) -> Option<u64> {
        let more = u64::from(self.expansion.max(1)).checked_pow(i as u32)?;
        self.buckets
            .checked_mul(more)
            .filter(|buckets| *buckets <= MOST_BUCKETS && (i as u64) < MOST_TABLES)
    }
}
