//! The record of a filter, stored under its name: its identity and its header.
//!
//! | offset | bytes | |
//! | ---: | ---: | --- |
//! | 0 | 8 | `TAMISRED` |
//! | 8 | 2 | version, 2 |
//! | 10 | 6 | zero |
//! | 16 | 8 | generation: a random number in the names of the chunks |
//! | 24 | 1 | 0 while chunks are being created, 1 when all exist, 2 while they are deleted |
//! | 25 | 1 | the pulse: a number to increment when a write is needed |
//! | 26 | 6 | zero |
//! | 32 | 128 | the header, as in a file |
//! | 160 | 8 | XXH3-64 of all before it, bytes 24 and 25 taken as zero |
//!
//! Numbers are little-endian. A twin in the same slot keeps the record as it
//! was when the filter was created. If only the record disappears (`DEL`,
//! `RENAME`, eviction), the twin shows that the filter has other parts, and
//! where.
//!
//! The witness is a third copy, in a slot on the other side of a cluster, in
//! case the node of the first two is lost. After the record it has an earlier
//! value of the filter's mark, in 20 digits.

use crate::Error;
use crate::chunks::far_tag;
use tamis::SecretKey;
use tamis::internals::raw::{HEADER_LEN, Header};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const MAGIC: &[u8; 8] = b"TAMISRED";
const VERSION: u16 = 2;
/// The bytes that distinguish filters of the same name.
pub(crate) const IDENTITY: usize = 24;
/// The offset of the byte that says whether all chunks exist.
pub(crate) const STATE_AT: usize = 24;
/// The offset of the pulse.
pub(crate) const PULSE_AT: usize = 25;
const HEADER_AT: usize = 32;
const SUM_AT: usize = HEADER_AT + HEADER_LEN;
pub(crate) const LEN: usize = SUM_AT + 8;

/// The record of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) generation: u64,
    pub(crate) state: Stage,
    pub(crate) header: Header,
}

/// Whether all chunks exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Creating,
    Ready,
    Deleting,
}

impl Stage {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Creating => 0,
            Self::Ready => 1,
            Self::Deleting => 2,
        }
    }
}

/// The key of a record's twin.
pub(crate) fn twin(name: &str) -> String {
    format!("{{{name}}}:tamis")
}

/// The key of a filter's witness.
pub(crate) fn witness(name: &str) -> String {
    format!("{name}:{{{}}}", far_tag(name))
}

/// The contents of a witness.
#[derive(Clone, Debug)]
pub(crate) struct Testimony {
    pub(crate) record: Record,
    pub(crate) mark: u64,
}

impl Testimony {
    pub(crate) fn encode(record: &Record, mark: u64) -> Vec<u8> {
        [&record.encode()[..], digits(mark).as_bytes()].concat()
    }

    /// Decodes a witness, even of a filter whose secret we don't have.
    pub(crate) fn decode(key: &str, bytes: &[u8]) -> Result<Self, Error> {
        let (record, mark) = bytes.split_at(bytes.len().min(LEN));
        let record = Record::decode_without_key(key, record)?;
        let mark = str::from_utf8(mark).ok().and_then(|text| text.parse().ok());
        match mark {
            Some(mark) => Ok(Self { record, mark }),
            None => Err(Error::Corrupt {
                key: key.to_owned(),
                reason: "expected a mark of 20 digits behind the record".into(),
            }),
        }
    }
}

/// A mark as text of fixed length, so that texts compare like numbers.
pub(crate) fn digits(mark: u64) -> String {
    format!("{mark:020}")
}

impl Record {
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.generation.to_le_bytes());
        out[HEADER_AT..SUM_AT].copy_from_slice(&self.header.encode());
        let sum = xxh3_64(&out[..SUM_AT]);
        out[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        out[STATE_AT] = self.state.byte();
        out
    }

    /// The first bytes of the record, which no other filter's record shares.
    pub(crate) fn identity(&self) -> [u8; IDENTITY] {
        let mut identity = [0; IDENTITY];
        identity.copy_from_slice(&self.encode()[..IDENTITY]);
        identity
    }

    /// Reads and validates a record; never panics, whatever the bytes.
    pub(crate) fn decode(name: &str, bytes: &[u8], key: Option<&SecretKey>) -> Result<Self, Error> {
        Self::decode_with(name, bytes, |header| Header::decode(header, key))
    }

    /// Decodes the record of a filter that won't be queried or changed, so the
    /// secret isn't needed.
    pub(crate) fn decode_without_key(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        Self::decode_with(name, bytes, Header::decode_without_key)
    }

    /// Whether these bytes are a truncated or changed record of this version.
    pub(crate) fn is_damaged(bytes: &[u8]) -> bool {
        let version = bytes.get(8..10);
        let ours = version.is_none_or(|version| version == VERSION.to_le_bytes());
        let decoded = Self::decode_without_key("", bytes);
        bytes.starts_with(MAGIC) && ours && matches!(decoded, Err(Error::Corrupt { .. }))
    }

    fn decode_with(
        name: &str,
        bytes: &[u8],
        header: impl FnOnce(&[u8]) -> Result<Header, tamis::Error>,
    ) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Corrupt {
            key: name.to_owned(),
            reason,
        };
        if !bytes.starts_with(MAGIC) {
            let start = bytes[..bytes.len().min(8)].escape_ascii();
            return Err(refuse(format!(
                "it begins with \"{start}\" instead of \"TAMISRED\""
            )));
        }
        let version = bytes.get(8..10).map(|v| u16::from_le_bytes([v[0], v[1]]));
        if version != Some(VERSION) {
            let got = version.map_or("none".into(), |v| v.to_string());
            return Err(refuse(format!(
                "version: expected {VERSION} (a newer tamis may read it), got {got}"
            )));
        }
        let Ok(mut fixed) = <[u8; LEN]>::try_from(bytes) else {
            return Err(refuse(format!(
                "length: expected {LEN}, got {}",
                bytes.len()
            )));
        };
        let states = [Stage::Creating, Stage::Ready, Stage::Deleting];
        let state = states.into_iter().find(|s| s.byte() == fixed[STATE_AT]);
        (fixed[STATE_AT], fixed[PULSE_AT]) = (0, 0);
        let sum = xxh3_64(&fixed[..SUM_AT]);
        let Some(state) = state.filter(|_| fixed[SUM_AT..] == sum.to_le_bytes()) else {
            return Err(refuse("its checksum does not match".into()));
        };
        let mut generation = [0; 8];
        generation.copy_from_slice(&fixed[16..24]);
        Ok(Self {
            generation: u64::from_le_bytes(generation),
            state,
            header: header(&fixed[HEADER_AT..SUM_AT])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::{Hasher, Kind, Plan};

    fn record() -> Record {
        let plan = Plan::one_line(Kind::Blocked, 1_000, 0.01).unwrap();
        Record {
            generation: 0x0123_4567_89AB_CDEF,
            state: Stage::Ready,
            header: Header::of_plan(&plan, Hasher::seeded(5)),
        }
    }

    #[test]
    fn round_trips() {
        for state in [Stage::Creating, Stage::Ready, Stage::Deleting] {
            let record = Record { state, ..record() };
            let bytes = record.encode();
            assert_eq!(Record::decode("x", &bytes, None).unwrap(), record);
            assert_eq!(record.identity(), bytes[..IDENTITY]);
        }
    }

    #[test]
    fn a_witness_says_what_it_was_told() {
        let said = Testimony::encode(&record(), 12_345);
        let heard = Testimony::decode("x", &said).unwrap();
        assert_eq!((heard.record, heard.mark), (record(), 12_345));
        for len in 0..=LEN {
            assert!(Testimony::decode("x", &said[..len]).is_err(), "{len}");
        }
        assert!(digits(9) < digits(10) && digits(10) < digits(u64::MAX));
    }

    #[test]
    fn every_flipped_bit_and_every_other_length_is_noticed() {
        let sound = record().encode();
        for bit in 0..LEN * 8 {
            // A filter that is being created or deleted is valid, and the pulse
            // may be any number.
            if (STATE_AT * 8..STATE_AT * 8 + 2).contains(&bit) || bit / 8 == PULSE_AT {
                continue;
            }
            let mut bytes = sound;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode("x", &bytes, None).is_err(), "bit {bit}");
        }
        for len in 0..LEN {
            assert!(Record::decode("x", &sound[..len], None).is_err());
            assert_eq!(Record::is_damaged(&sound[..len]), len >= 8, "{len}");
        }
        assert!(!Record::is_damaged(&sound));
        // A newer version of Tamis may read it.
        let mut newer = sound;
        newer[8] += 1;
        assert!(!Record::is_damaged(&newer));
        assert!(Record::decode("x", &[&sound[..], &[0]].concat(), None).is_err());
    }
}
