//! Thrift's compact protocol, as a tree that is written back as it was read,
//! including unknown fields. Parquet's footer uses it.

/// A value of any type. Numbers are kept as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Bool(bool),
    Byte(u8),
    /// 16, 32 or 64 bits, with the code of the type.
    Integer(u8, i64),
    Double([u8; 8]),
    Binary(&'a [u8]),
    /// A list or a set, by the code, with the type of its elements.
    List(u8, u8, Vec<Value<'a>>),
    /// The types of keys and values.
    Map(u8, u8, Vec<(Value<'a>, Value<'a>)>),
    Struct(Struct<'a>),
}

/// Fields with their numbers, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Struct<'a>(pub(crate) Vec<(i16, Value<'a>)>);

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
pub(crate) const I32: u8 = 5;
pub(crate) const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
/// Deeper than any footer, but not too deep for the stack.
const MOST_DEPTH: u32 = 64;

impl<'a> Struct<'a> {
    pub(crate) fn get(&self, id: i16) -> Option<&Value<'a>> {
        self.0
            .iter()
            .find(|(field, _)| *field == id)
            .map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: i16) -> Option<&mut Value<'a>> {
        self.0
            .iter_mut()
            .find(|(field, _)| *field == id)
            .map(|(_, value)| value)
    }

    /// Sets a field, keeping the order of numbers.
    pub(crate) fn set(&mut self, id: i16, value: Value<'a>) {
        self.0.retain(|(field, _)| *field != id);
        let at = self
            .0
            .iter()
            .position(|(field, _)| *field > id)
            .unwrap_or(self.0.len());
        self.0.insert(at, (id, value));
    }

    pub(crate) fn integer(&self, id: i16) -> Option<i64> {
        match self.get(id)? {
            Value::Integer(_, number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn structs(&self, id: i16) -> impl Iterator<Item = &Self> {
        let list = match self.get(id) {
            Some(Value::List(_, _, list)) => &list[..],
            _ => &[],
        };
        list.iter().filter_map(|value| match value {
            Value::Struct(fields) => Some(fields),
            _ => None,
        })
    }

    pub(crate) fn structs_mut(&mut self, id: i16) -> impl Iterator<Item = &mut Self> {
        let list = match self.get_mut(id) {
            Some(Value::List(_, _, list)) => &mut list[..],
            _ => &mut [],
        };
        list.iter_mut().filter_map(|value| match value {
            Value::Struct(fields) => Some(fields),
            _ => None,
        })
    }

    /// Reads a struct; returns the bytes after it.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut reader = Reader { rest: bytes };
        let fields = reader.fields(0)?;
        Some((fields, reader.rest))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut last = 0;
        for (id, value) in &self.0 {
            let kind = match value {
                Value::Bool(true) => TRUE,
                Value::Bool(false) => FALSE,
                value => value.kind(),
            };
            match id.checked_sub(last) {
                Some(delta @ 1..=15) => out.push((delta as u8) << 4 | kind),
                _ => {
                    out.push(kind);
                    varint(out, zigzag((*id).into()));
                }
            }
            last = *id;
            if !matches!(value, Value::Bool(_)) {
                value.write(out);
            }
        }
        out.push(0);
    }
}

impl Value<'_> {
    const fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => TRUE,
            Self::Byte(_) => BYTE,
            Self::Integer(kind, _) | Self::List(kind, ..) => *kind,
            Self::Double(_) => DOUBLE,
            Self::Binary(_) => BINARY,
            Self::Map(..) => MAP,
            Self::Struct(_) => STRUCT,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            // In a list; as a field, the value is in the type.
            Self::Bool(yes) => out.push(if *yes { TRUE } else { FALSE }),
            Self::Byte(byte) => out.push(*byte),
            Self::Integer(_, number) => varint(out, zigzag(*number)),
            Self::Double(bytes) => out.extend(bytes),
            Self::Binary(bytes) => {
                varint(out, bytes.len() as u64);
                out.extend(*bytes);
            }
            Self::List(_, element, list) => {
                match list.len() {
                    short @ 0..15 => out.push((short as u8) << 4 | element),
                    long => {
                        out.push(0xF0 | element);
                        varint(out, long as u64);
                    }
                }
                list.iter().for_each(|value| value.write(out));
            }
            Self::Map(key, value, entries) => {
                varint(out, entries.len() as u64);
                if !entries.is_empty() {
                    out.push(key << 4 | value);
                }
                for (key, value) in entries {
                    key.write(out);
                    value.write(out);
                }
            }
            Self::Struct(fields) => fields.write(out),
        }
    }
}

const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn fields(&mut self, depth: u32) -> Option<Struct<'a>> {
        if depth > MOST_DEPTH {
            return None;
        }
        let mut fields = Vec::new();
        let mut id = 0i16;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(Struct(fields));
            }
            id = match header >> 4 {
                0 => self.integer()?.try_into().ok()?,
                delta => id.checked_add(delta.into())?,
            };
            let value = match header & 15 {
                TRUE => Value::Bool(true),
                FALSE => Value::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.push((id, value));
        }
    }

    /// A count of elements, each of which takes at least one byte.
    fn count(&self, count: u64) -> Option<usize> {
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.rest.len())
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<Value<'a>> {
        Some(match kind {
            TRUE | FALSE => Value::Bool(self.byte()? == TRUE),
            BYTE => Value::Byte(self.byte()?),
            I16 | I32 | I64 => Value::Integer(kind, self.integer()?),
            DOUBLE => Value::Double(*self.take(8)?.first_chunk()?),
            BINARY => {
                let len = self.varint()?;
                Value::Binary(self.take(usize::try_from(len).ok()?)?)
            }
            LIST | SET => {
                let header = self.byte()?;
                let count = match header >> 4 {
                    15 => self.varint()?,
                    short => short.into(),
                };
                let count = self.count(count)?;
                let mut list = Vec::new();
                for _ in 0..count {
                    list.push(self.nested(header & 15, depth)?);
                }
                Value::List(kind, header & 15, list)
            }
            MAP => {
                let count = self.varint()?;
                let count = self.count(count)?;
                let types = if count > 0 { self.byte()? } else { 0 };
                let mut entries = Vec::new();
                for _ in 0..count {
                    let key = self.nested(types >> 4, depth)?;
                    entries.push((key, self.nested(types & 15, depth)?));
                }
                Value::Map(types >> 4, types & 15, entries)
            }
            STRUCT => Value::Struct(self.fields(depth + 1)?),
            _ => return None,
        })
    }

    fn nested(&mut self, kind: u8, depth: u32) -> Option<Value<'a>> {
        (depth < MOST_DEPTH).then(|| self.value(kind, depth + 1))?
    }
}
