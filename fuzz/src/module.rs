//! What a client or a server gives the module.

use crate::filters::mended;
use std::borrow::Cow;
use tamis::Moment;
use tamis_formats::Error;
use tamis_formats::redisbloom::{Chain, Cuckoo as RedisCuckoo, Sink, Source};
use tamis_module::bloom::Bloom;
use tamis_module::cuckoo::Cuckoo;
use tamis_module::filter::Filter;
use tamis_module::loading::Loading;
use tamis_module::window::{behind, contains_many, insert_many};

/// The chunks of a filter that a client loads. The input is the kind, the length
/// of the first chunk (16 bits), that chunk, and the rest.
pub(crate) fn loadchunk(data: &[u8]) {
    let Some(([kind, low, high], rest)) = data.split_first_chunk() else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((header, body)) = rest.split_at_checked(len) else {
        return;
    };
    // As LOADCHUNK does: what a header claims is not taken before it comes.
    let claimed = match kind % 2 {
        0 => Bloom::expected(header),
        _ => Cuckoo::expected(header),
    };
    if let Ok(claimed) = claimed {
        let mut loading = Loading::new(header, claimed);
        let _ = loading.push(1 + body.len() as u64, body);
        assert!(loading.bytes() <= header.len() + body.len().max(8) * 2);
    }
    exercise(*kind, header, body);
    if let Some(mended) = mended(body) {
        exercise(*kind, header, &mended);
    }
}

fn exercise(kind: u8, header: &[u8], body: &[u8]) {
    // A forged size must not make it grow beyond reason.
    const MOST: u64 = 1 << 20;
    match kind % 2 {
        0 => {
            let Ok(mut filter) = Bloom::decode(header, body) else {
                return;
            };
            let _ = (filter.info(), filter.dump_header(), filter.dump(0, 100));
            for key in [&b"a"[..], b"", b"key1"] {
                if let Bloom::Window(window) = &mut filter {
                    // Forged heads contradict themselves: it only must not panic.
                    for at in [i64::MIN, 0, 1_700_000_000_000_000, i64::MAX] {
                        let at = Moment::from_micros(at);
                        insert_many(window, &[key], at);
                        contains_many(window, &[key], at, &mut [false]);
                        let _ = (window.keys_at(at), behind(window, at));
                    }
                } else if filter.insert(key, &MOST).is_ok() {
                    assert!(filter.contains(key).unwrap());
                }
            }
            let _ = filter.duplicate().map(|mut copy| copy.union_with(&filter));
        }
        _ => {
            let Ok(mut filter) = Cuckoo::decode(header, body) else {
                return;
            };
            let _ = (filter.info(), filter.dump_header(), filter.dump(0, 100));
            for key in [&b"a"[..], b"", b"key1"] {
                if filter.insert(key, &MOST).is_ok() {
                    assert!(filter.contains(key).unwrap() && filter.count(key).unwrap() > 0);
                    assert!(filter.remove(key).unwrap());
                }
            }
            let _ = filter.compact();
        }
    }
}

/// Numbers are 8 bytes, strings have their length (16 bits) before them.
struct Fields<'a>(&'a [u8]);

fn end() -> Error {
    Error::Parameter {
        what: "field",
        expected: "more bytes",
        got: "the end".into(),
    }
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(end)?;
        self.0 = rest;
        Ok(field)
    }
}

impl<'a> Source<'a> for Fields<'a> {
    fn unsigned(&mut self, _: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(*self.take()?))
    }

    fn double(&mut self, _: &'static str) -> Result<f64, Error> {
        Ok(f64::from_le_bytes(*self.take()?))
    }

    fn string(&mut self, _: &'static str) -> Result<Cow<'a, [u8]>, Error> {
        let len = u16::from_le_bytes(*self.take()?);
        let (string, rest) = self.0.split_at_checked(len.into()).ok_or_else(end)?;
        self.0 = rest;
        Ok(string.into())
    }
}

/// The same fields, written.
struct Written(Vec<u8>);

impl Sink for Written {
    fn unsigned(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn double(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u16).to_le_bytes());
        self.0.extend(bytes);
    }
}

/// Fields of an RDB value of RedisBloom's types, as the server hands them over:
/// any numbers, any strings. The first byte is the kind.
pub(crate) fn rdb(data: &[u8]) {
    let Some((kind, fields)) = data.split_first() else {
        return;
    };
    let mut written = Written(Vec::new());
    let mut reader = Fields(fields);
    match kind % 2 {
        0 => {
            let Ok(chain) = Chain::decode(&mut reader) else {
                return;
            };
            chain.encode(&mut written);
            let mut chain = chain.into_owned();
            if chain.growth_bytes() < 1 << 24 && chain.insert(b"key").is_ok() {
                assert!(chain.contains(b"key"));
            }
        }
        _ => {
            let Ok(cuckoo) = RedisCuckoo::decode(&mut reader) else {
                return;
            };
            cuckoo.encode(&mut written);
            let mut cuckoo = cuckoo.into_owned();
            if cuckoo.insert_within(b"key", false).is_ok() {
                assert!(cuckoo.contains(b"key") && cuckoo.remove(b"key"));
            }
            cuckoo.compact();
        }
    }
    let read = fields.len() - reader.0.len();
    assert_eq!(written.0, fields[..read], "saved as it was loaded");
}
