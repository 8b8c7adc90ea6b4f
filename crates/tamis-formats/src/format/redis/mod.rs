//! Filters of RedisBloom: a chain of Bloom layers or a cuckoo filter, as DUMP
//! gives them, as SCANDUMP does, or among the keys of an RDB file.

pub(crate) mod chain;
pub(crate) mod cuckoo;
pub(crate) mod rdb;

use crate::fields::Fields;
use crate::{Error, Format, Keys};
use chain::Chain;
use cuckoo::Cuckoo;
use rdb::{Module, Writer};
use std::borrow::Cow;
use std::ops::Range;

/// Its keys are bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

/// The pairs that SCANDUMP gives have no file format of their own. Ours: this,
/// and for each pair the iterator, the length of the data (both 64 bits,
/// little-endian) and the data.
const CHUNKS: &[u8; 8] = b"RBCHUNK1";
const RDB: &[u8] = b"REDIS";
/// Larger bit arrays are cut, as the server does.
const MOST_CHUNK: usize = 16 << 20;
/// What Redis 7.0 writes.
const RDB_VERSION: u16 = 10;

#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Bloom(Chain<'a>),
    Cuckoo(Cuckoo<'a>),
}

/// How a value is wrapped.
#[derive(Clone, Debug)]
pub(crate) enum Wrapping<'a> {
    Dump {
        version: u16,
    },
    Chunks,
    /// A value of an RDB file, which is kept for its other keys.
    Rdb {
        file: Cow<'a, [u8]>,
        value: Range<usize>,
    },
}

impl<'a> Value<'a> {
    const fn module(&self) -> Module {
        match self {
            Self::Bloom(_) => Module::Bloom,
            Self::Cuckoo(_) => Module::Cuckoo,
        }
    }

    pub(crate) const fn format(&self) -> Format {
        match self {
            Self::Bloom(_) => Format::RedisBloom,
            Self::Cuckoo(_) => Format::RedisCuckoo,
        }
    }

    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Bloom(chain) => Value::Bloom(chain.into_owned()),
            Self::Cuckoo(cuckoo) => Value::Cuckoo(cuckoo.into_owned()),
        }
    }

    fn decode(module: Module, reader: &mut rdb::Reader<'a>) -> Result<Self, Error> {
        match module {
            Module::Bloom => Chain::decode(reader).map(Self::Bloom),
            Module::Cuckoo => Cuckoo::decode(reader).map(Self::Cuckoo),
        }
        .and_then(|value| reader.end_of_value().map(|()| value))
    }

    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Bloom(chain) => chain.encode(out),
            Self::Cuckoo(cuckoo) => cuckoo.encode(out),
        }
        out.end_of_value();
    }
}

/// Whether bytes begin as one of these files do.
pub(crate) fn is_like(bytes: &[u8]) -> bool {
    bytes.starts_with(CHUNKS) || bytes.starts_with(RDB) || bytes.starts_with(&[rdb::MODULE_2, 0x81])
}

/// Opens a DUMP, a file of chunks, or the one filter of an RDB file.
pub(crate) fn read<'a>(
    format: Format,
    bytes: &'a [u8],
    name: Option<&[u8]>,
) -> Result<(Value<'a>, Wrapping<'a>), Error> {
    if bytes.starts_with(CHUNKS) {
        return Ok((chunks(format, bytes)?, Wrapping::Chunks));
    }
    if bytes.starts_with(RDB) {
        return of_rdb(format, bytes, name);
    }
    let (payload, version) = rdb::check_dump(format, bytes)?;
    let mut reader = rdb::Reader::new(format, payload);
    let kind = reader.u8("type")?;
    if kind != rdb::MODULE_2 {
        return Err(reader.corrupt("type", "7, a module's value", kind));
    }
    let module = reader.module()?;
    let value = Value::decode(module, &mut reader)?;
    reader.end()?;
    Ok((value, Wrapping::Dump { version }))
}

fn of_rdb<'a>(
    format: Format,
    bytes: &'a [u8],
    name: Option<&[u8]>,
) -> Result<(Value<'a>, Wrapping<'a>), Error> {
    let mut found = rdb::filters(format, bytes)?;
    if let Some(name) = name {
        found.retain(|filter| filter.name == name);
    }
    let [filter] = &found[..] else {
        return Err(Error::Several {
            names: found
                .iter()
                .map(|filter| String::from_utf8_lossy(&filter.name).into_owned())
                .collect(),
        });
    };
    let mut reader = rdb::Reader::new(format, &bytes[filter.value.clone()]);
    let module = reader.module()?;
    let value = Value::decode(module, &mut reader)?;
    let wrapping = Wrapping::Rdb {
        file: bytes.into(),
        value: filter.value.clone(),
    };
    Ok((value, wrapping))
}

/// The pairs of a file of chunks: iterator and data.
fn pairs(format: Format, bytes: &[u8]) -> Result<Vec<(u64, &[u8])>, Error> {
    let mut fields = Fields::new(format, bytes);
    fields.take("magic", CHUNKS.len() as u64)?;
    let mut pairs = Vec::new();
    while !fields.rest().is_empty() {
        let iterator = fields.u64_le("iterator")?;
        let len = fields.u64_le("length of a chunk")?;
        pairs.push((iterator, fields.take("chunk", len)?));
    }
    Ok(pairs)
}

fn chunks(format: Format, bytes: &[u8]) -> Result<Value<'_>, Error> {
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
    match header.len() == cuckoo::HEADER {
        true => Cuckoo::of_chunks(header, &data).map(Value::Cuckoo),
        false => Chain::of_chunks(header, &data).map(Value::Bloom),
    }
}

/// The bit arrays of a filter's parts from the chunks that follow its header:
/// a part lies in one chunk, or in several that are put together.
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

/// The file of a filter.
pub(crate) fn write(value: &Value<'_>, wrapping: &Wrapping<'_>) -> Vec<u8> {
    match wrapping {
        Wrapping::Dump { version } => {
            let mut out = Writer::new();
            out.byte(rdb::MODULE_2);
            out.module(value.module());
            value.encode(&mut out);
            out.into_dump(*version)
        }
        Wrapping::Chunks => {
            let (header, parts) = match value {
                Value::Bloom(chain) => (chain.dump_header(), chain.parts()),
                Value::Cuckoo(cuckoo) => (cuckoo.dump_header(), cuckoo.parts()),
            };
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
        Wrapping::Rdb { file, value: place } => {
            let mut out = Writer::new();
            out.module(value.module());
            value.encode(&mut out);
            rdb::replaced(file, place.clone(), &out.into_bytes())
        }
    }
}

impl Wrapping<'_> {
    pub(crate) fn into_owned(self) -> Wrapping<'static> {
        match self {
            Self::Dump { version } => Wrapping::Dump { version },
            Self::Chunks => Wrapping::Chunks,
            Self::Rdb { file, value } => Wrapping::Rdb {
                file: Cow::Owned(file.into_owned()),
                value,
            },
        }
    }

    /// Of a new filter.
    pub(crate) const fn new(chunks: bool) -> Self {
        match chunks {
            true => Self::Chunks,
            false => Self::Dump {
                version: RDB_VERSION,
            },
        }
    }
}
