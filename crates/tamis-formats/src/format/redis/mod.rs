//! Filters of RedisBloom: a chain of Bloom layers or a cuckoo filter, from
//! DUMP, from SCANDUMP, or among the keys of an RDB file.

pub(crate) mod chain;
pub(crate) mod cuckoo;
pub(crate) mod rdb;

use crate::about::About;
use crate::bytes::{Bytes, View};
use crate::fields::Fields;
use crate::filter::{Filter, Opened, same};
use crate::plain::Plain;
use crate::{Error, Facts, Format, Keys, Wrap};
use chain::Chain;
use cuckoo::Cuckoo;
use rdb::{Module, Writer};
use std::borrow::Cow;
use std::ops::Range;
use tamis::internals::raw::Explanation;

/// Not guessed, because that would mean reading all checksums and values.
pub(crate) const BLOOM: About = About {
    is_guessed: false,
    ..About::new(&[Keys::Utf8], |file, name| {
        read_as(Format::RedisBloom, file, name)
    })
};
pub(crate) const CUCKOO: About = About {
    is_guessed: false,
    ..About::new(&[Keys::Utf8], |file, name| {
        read_as(Format::RedisCuckoo, file, name)
    })
};

/// The pairs that SCANDUMP returns have no file format. Ours is this magic, and
/// for each pair the iterator, the length of the data (both 64 bits,
/// little-endian) and the data.
const CHUNKS: &[u8; 8] = b"RBCHUNK1";
const RDB: &[u8] = b"REDIS";
/// Larger bit arrays are split, as the server does.
const MOST_CHUNK: usize = 16 << 20;
/// The version that Redis 7.0 writes.
const RDB_VERSION: u16 = 10;

/// A filter as kept by its server, and how its file wraps it.
#[derive(Clone, Debug)]
struct Wrapped<V> {
    value: V,
    wrapping: Wrapping,
}

/// How a value is wrapped.
#[derive(Clone, Debug)]
enum Wrapping {
    Dump {
        version: u16,
    },
    Chunks,
    /// A value in an RDB file, which is kept because of its other keys.
    Rdb {
        value: Range<usize>,
    },
}

impl Wrapping {
    /// The wrapping of a new filter.
    const fn new(chunks: bool) -> Self {
        if chunks {
            Self::Chunks
        } else {
            Self::Dump {
                version: RDB_VERSION,
            }
        }
    }
}

/// The common parts of both types of filters.
trait Value {
    const MODULE: Module;
    fn encode(&self, out: &mut Writer);
    fn chunks(&self) -> (Vec<u8>, Vec<&[u8]>);
}

impl Value for Chain<'_> {
    const MODULE: Module = Module::Bloom;

    fn encode(&self, out: &mut Writer) {
        self.encode(out);
    }

    fn chunks(&self) -> (Vec<u8>, Vec<&[u8]>) {
        (self.dump_header(), self.parts())
    }
}

impl Value for Cuckoo<'_> {
    const MODULE: Module = Module::Cuckoo;

    fn encode(&self, out: &mut Writer) {
        self.encode(out);
    }

    fn chunks(&self) -> (Vec<u8>, Vec<&[u8]>) {
        (self.dump_header(), self.parts())
    }
}

/// Whether bytes begin like one of these files.
pub(crate) fn is_like(file: View<'_>) -> bool {
    let starts: [&[u8]; 3] = [CHUNKS, RDB, &[rdb::MODULE_2, 0x81]];
    starts.iter().any(|start| file.starts_with(start))
}

/// Opens a DUMP, a file of chunks, or the only filter of an RDB file. Copies
/// the value, since it is read completely anyway.
pub(crate) fn read(
    format: Format,
    file: View<'_>,
    name: Option<&[u8]>,
) -> Result<(Format, Opened), Error> {
    if file.starts_with(RDB) {
        let value = find(format, file, name)?;
        let reader = rdb::Reader::new(format, file.slice(value.clone()));
        return decode(reader, Wrapping::Rdb { value });
    }
    let bytes = file.read(0..file.len());
    let (format, mut opened) = if bytes.starts_with(CHUNKS) {
        chunks(format, &bytes)?
    } else {
        let (payload, version) = rdb::check_dump(format, &bytes)?;
        let mut reader = rdb::Reader::new(format, payload);
        let kind = reader.u8("type")?;
        if kind != rdb::MODULE_2 {
            return Err(reader.corrupt("type", "7, a module's value", kind));
        }
        decode(reader, Wrapping::Dump { version })?
    };
    opened.file = Some(Vec::new());
    Ok((format, opened))
}

fn read_as(format: Format, file: View<'_>, name: Option<&[u8]>) -> Result<Opened, Error> {
    let (got, opened) = read(format, file, name)?;
    if got != format {
        return Err(Error::corrupt(format, "value", format, got));
    }
    Ok(opened)
}

/// Decodes the value at a reader's position.
fn decode(mut reader: rdb::Reader<'_>, wrapping: Wrapping) -> Result<(Format, Opened), Error> {
    let opened = match reader.module()? {
        Module::Bloom => {
            let value = Chain::decode(&mut reader)?.into_owned();
            (Format::RedisBloom, Wrapped { value, wrapping }.into())
        }
        Module::Cuckoo => {
            let value = Cuckoo::decode(&mut reader)?.into_owned();
            (Format::RedisCuckoo, Wrapped { value, wrapping }.into())
        }
    };
    reader.end_of_value()?;
    reader.end()?;
    Ok(opened)
}

/// The range of the filter with this name in an RDB file, or of the only one.
fn find(format: Format, file: View<'_>, name: Option<&[u8]>) -> Result<Range<usize>, Error> {
    let mut found = rdb::filters(format, file)?;
    if let Some(name) = name {
        found.retain(|filter| filter.name == name);
    }
    if let [filter] = &found[..] {
        return Ok(filter.value.clone());
    }
    let name = |filter: &rdb::Found| String::from_utf8_lossy(&filter.name).into_owned();
    let names = found.iter().map(name).collect();
    Err(Error::Several { names })
}

/// The pairs in a file of chunks: iterator and data.
fn pairs(format: Format, bytes: &[u8]) -> Result<Vec<(u64, &[u8])>, Error> {
    let mut fields = Fields::new(format, bytes);
    fields.skip("magic", CHUNKS.len() as u64)?;
    let mut pairs = Vec::new();
    while fields.left() > 0 {
        let iterator = fields.u64_le("iterator")?;
        let len = fields.u64_le("length of a chunk")?;
        let at = fields.skip("chunk", len)?;
        pairs.push((iterator, &bytes[at..fields.at()]));
    }
    Ok(pairs)
}

fn chunks(format: Format, bytes: &[u8]) -> Result<(Format, Opened), Error> {
    let pairs = pairs(format, bytes)?;
    let Some(((1, header), data)) = pairs.split_first() else {
        return Err(Error::corrupt(
            format,
            "first chunk",
            "a header of iterator 1",
            "none",
        ));
    };
    let data: Vec<&[u8]> = data.iter().map(|(_, data)| *data).collect();
    Ok(if header.len() == Cuckoo::HEADER {
        let cuckoo = Cuckoo::of_chunks(header, &data)?;
        (Format::RedisCuckoo, new_cuckoo(cuckoo.into_owned(), true))
    } else {
        let chain = Chain::of_chunks(header, &data)?;
        (Format::RedisBloom, new_bloom(chain.into_owned(), true))
    })
}

/// A filter's bit arrays, from the chunks that follow its header: each is in
/// one chunk, or in several that are concatenated.
fn parts<'a>(
    format: Format,
    lengths: impl Iterator<Item = u64>,
    chunks: &[&'a [u8]],
) -> Result<Vec<Cow<'a, [u8]>>, Error> {
    let short = |expected: u64, got: usize| {
        Error::corrupt(
            format,
            "chunks",
            format_args!("{expected} bytes of a part"),
            got,
        )
    };
    let mut chunks = chunks.iter().copied();
    let mut parts = Vec::new();
    for len in lengths {
        let first = chunks.next().unwrap_or_default();
        let mut part = Cow::Borrowed(first);
        while (part.len() as u64) < len {
            let more = chunks.next().ok_or_else(|| short(len, part.len()))?;
            part.to_mut().extend_from_slice(more);
        }
        if part.len() as u64 != len {
            return Err(short(len, part.len()));
        }
        parts.push(part);
    }
    match chunks.next() {
        None => Ok(parts),
        Some(more) => Err(short(0, more.len())),
    }
}

/// A Bloom filter without a file, to be written as a DUMP or as chunks.
pub(crate) fn new_bloom(value: Chain<'static>, chunks: bool) -> Opened {
    let wrapping = Wrapping::new(chunks);
    Opened::new(Wrapped { value, wrapping }, Vec::new())
}

/// A cuckoo filter without a file, to be written as a DUMP or as chunks.
pub(crate) fn new_cuckoo(value: Cuckoo<'static>, chunks: bool) -> Opened {
    let wrapping = Wrapping::new(chunks);
    Opened::new(Wrapped { value, wrapping }, Vec::new())
}

impl<V: Value> Wrapped<V> {
    fn file(&self, file: View<'_>) -> Vec<u8> {
        let mut out = Writer::new();
        match &self.wrapping {
            Wrapping::Chunks => self.chunks(),
            Wrapping::Dump { version } => {
                out.byte(rdb::MODULE_2);
                self.encode(&mut out);
                out.into_dump(*version)
            }
            Wrapping::Rdb { value } => {
                self.encode(&mut out);
                rdb::replaced(file, value.clone(), &out.into_bytes())
            }
        }
    }

    /// From the module's id to the end of the value.
    fn encode(&self, out: &mut Writer) {
        out.module(V::MODULE);
        self.value.encode(out);
        out.end_of_value();
    }

    fn chunks(&self) -> Vec<u8> {
        let (header, parts) = self.value.chunks();
        let mut out = CHUNKS.to_vec();
        let mut put = |iterator: u64, data: &[u8]| {
            out.extend(iterator.to_le_bytes());
            out.extend((data.len() as u64).to_le_bytes());
            out.extend(data);
        };
        put(1, &header);
        let mut so_far = 1;
        for chunk in parts.iter().flat_map(|part| part.chunks(MOST_CHUNK)) {
            so_far += chunk.len() as u64;
            put(so_far, chunk);
        }
        out
    }

    fn wrap_anew(&mut self, wrap: Wrap) -> bool {
        let is_known = matches!(wrap, Wrap::Dump | Wrap::Chunks);
        if is_known {
            self.wrapping = Wrapping::new(wrap == Wrap::Chunks);
        }
        is_known
    }
}

impl Filter for Wrapped<Chain<'static>> {
    fn facts(&self) -> Facts {
        Facts {
            capacity: Some(self.value.capacity()),
            rate: Some(self.value.rate()),
            keys: Some(self.value.keys()),
            ..Facts::NONE
        }
    }

    fn contains(&self, _: View<'_>, key: &[u8]) -> bool {
        self.value.contains(key)
    }

    fn contains_many(&self, _: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        self.value.contains_many(keys, out);
    }

    fn insert(&mut self, _: &mut Bytes<'_>, key: &[u8]) -> Result<bool, Error> {
        self.value.insert(key)
    }

    fn union_with(
        &mut self,
        _: &mut Bytes<'_>,
        other: &dyn Filter,
        _: View<'_>,
    ) -> Result<bool, Error> {
        let Some(other) = same(self, other) else {
            return Ok(false);
        };
        self.value.union_with(&other.value)?;
        Ok(true)
    }

    fn write(&self, file: View<'_>) -> Vec<u8> {
        self.file(file)
    }

    fn rewrap(&mut self, wrap: Wrap) -> bool {
        self.wrap_anew(wrap)
    }

    fn plains<'v>(&'v self, _: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        self.value.layers().collect()
    }
}

impl Filter for Wrapped<Cuckoo<'static>> {
    fn facts(&self) -> Facts {
        Facts {
            capacity: Some(self.value.capacity()),
            keys: Some(self.value.keys()),
            ..Facts::NONE
        }
    }

    fn contains(&self, _: View<'_>, key: &[u8]) -> bool {
        self.value.contains(key)
    }

    fn explain(&self, _: View<'_>, key: &[u8]) -> Explanation {
        self.value.explain(key)
    }

    fn hash_name(&self, _: View<'_>) -> &'static str {
        "murmur2-64a"
    }

    fn insert(&mut self, _: &mut Bytes<'_>, key: &[u8]) -> Result<bool, Error> {
        let new = !self.value.contains(key);
        self.value.insert(key)?;
        Ok(new)
    }

    fn can_remove(&self) -> bool {
        true
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.value.remove(key)
    }

    fn write(&self, file: View<'_>) -> Vec<u8> {
        self.file(file)
    }

    fn rewrap(&mut self, wrap: Wrap) -> bool {
        self.wrap_anew(wrap)
    }

    fn bits(&self, _: View<'_>) -> u64 {
        8 * self.value.capacity()
    }

    fn fill(&self, _: View<'_>) -> f64 {
        self.value.fill()
    }

    fn rate(&self, _: View<'_>) -> f64 {
        self.value.rate_now()
    }

    fn key_count(&self, _: View<'_>) -> Option<f64> {
        Some(self.value.keys() as f64)
    }
}
