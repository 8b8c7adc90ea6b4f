//! Turns the user's inputs into files of keys to hold and keys to query.
//!
//! If there are more keys than wanted, those with the smallest digests are drawn. The sample doesn't depend on the
//! order of the input, and frequent keys have no better chance than rare ones.

use super::key_file::KeyWriter;
use crate::Exit;
use crate::stream::{Keyed, Pass, Run};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tamis::{Hash, Hasher, SecretKey};
use tamis_records::batch::Token;

/// Files in the folder that the steps share.
pub(crate) const HELD: &str = "held";
pub(crate) const PRESENT: &str = "present";
pub(crate) const ABSENT: &str = "absent";

/// Used by no filter: drawing by digest must not favour one.
const DRAWING: SecretKey = SecretKey::new(*b"tamis compare 01");
/// The most keys to query; enough to measure a rate of one in a million.
const MOST_ASKED: usize = 4_000_000;

/// What was read, and how it was divided.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Keys {
    pub(crate) records: u64,
    /// The number of distinct keys; an estimate if only some were drawn.
    pub(crate) distinct: u64,
    /// Whether there were more keys than are compared.
    pub(crate) is_sample: bool,
    pub(crate) held: u64,
    pub(crate) held_bytes: u64,
    /// Keys that are queried but not held.
    pub(crate) absent: u64,
    /// Whether the absent keys come from a separate file rather than from half of the keys.
    pub(crate) absent_is_given: bool,
    /// Records of that file whose keys are held; these aren't queried as absent.
    pub(crate) overlapping: u64,
    /// The least and the greatest, if all held keys are integers.
    #[serde(skip)]
    pub(crate) range: Option<(i128, i128)>,
}

/// How reading ended.
pub(crate) enum Collected {
    Keys(Keys),
    Interrupted(i32),
}

/// Reads the inputs and writes the files of keys into `dir`: at most `most` held keys, and as many to query.
pub(crate) fn collect(
    input: &Run,
    absent: Option<&Run>,
    most: usize,
    dir: &Path,
) -> Result<Collected> {
    let room = match absent {
        Some(_) => most,
        None => most.saturating_mul(2),
    };
    let mut pool = Pool::create(&dir.join("pool"), room)?;
    let records = match pool.fill(input, &HashMap::new())? {
        Filled::All(records) => records,
        Filled::Interrupted(signal) => return Ok(Collected::Interrupted(signal)),
    };
    let distinct = pool.distinct();
    let is_sample = pool.is_sample();
    let mut drawn = pool.in_order();
    let (asked, overlapping, mut others) = match absent {
        None => (hold_back_half(&mut drawn), 0, None),
        Some(input) => {
            let mut others = Pool::create(&dir.join("other-pool"), room)?;
            if let Filled::Interrupted(signal) = others.fill(input, &pool.spans)? {
                return Ok(Collected::Interrupted(signal));
            }
            (others.in_order(), others.overlapping, Some(others))
        }
    };
    let mut range = Range::default();
    let mut held_bytes = 0;
    pool.write(&drawn, &dir.join(HELD), |key| {
        range.add(key);
        held_bytes += key.len() as u64;
    })?;
    pool.write(&shuffled(&drawn), &dir.join(PRESENT), |_| ())?;
    let asked_from = others.as_mut().unwrap_or(&mut pool);
    asked_from.write(&shuffled(&asked), &dir.join(ABSENT), |_| ())?;
    for name in ["pool", "other-pool"] {
        let _ = std::fs::remove_file(dir.join(name));
    }
    Ok(Collected::Keys(Keys {
        records,
        distinct,
        is_sample,
        held: drawn.len() as u64,
        held_bytes,
        absent: asked.len() as u64,
        absent_is_given: absent.is_some(),
        overlapping,
        range: range.get(),
    }))
}

/// Whether everything was read, and how many records.
enum Filled {
    All(u64),
    Interrupted(i32),
}

/// Where a key lies in a pool's file.
#[derive(Clone, Copy)]
struct Span {
    at: u64,
    length: u32,
    digest: u128,
}

/// The distinct keys with the smallest digests.
struct Pool {
    file: BufWriter<File>,
    at: u64,
    spans: HashMap<u128, Span>,
    room: usize,
    /// Larger digests are no longer drawn.
    largest: u128,
    overlapping: u64,
}

impl Pool {
    fn create(path: &Path, room: usize) -> Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path);
        let file = file.with_context(|| format!("creating {}", path.display()))?;
        Ok(Self {
            file: BufWriter::new(file),
            at: 0,
            spans: HashMap::new(),
            room,
            largest: u128::MAX,
            overlapping: 0,
        })
    }

    /// Reads all keys except `held`.
    fn fill(&mut self, input: &Run, held: &HashMap<u128, Span>) -> Result<Filled> {
        let drawing = Drawing {
            hasher: input.hasher(Hasher::keyed(DRAWING)),
            largest: AtomicU64::new(u64::MAX),
        };
        let report = Pass::new(input, &drawing, &mut [&mut *self]).run(
            |pool: &mut &mut Self, keys: &[Drawn], _: &mut [bool]| {
                for key in keys {
                    if held.contains_key(&key.digest.as_u128()) {
                        pool.overlapping += 1;
                    } else {
                        pool.add(key).context("writing temporary files")?;
                    }
                }
                drawing.largest.store((pool.largest >> 64) as u64, Relaxed);
                Ok(())
            },
        )?;
        let records = report.records;
        self.file.flush().context("writing temporary files")?;
        self.prune(self.room);
        match report.finish()? {
            Exit::Interrupted(signal) => Ok(Filled::Interrupted(signal)),
            Exit::InputFailed => bail!("not all keys could be read, so nothing was compared"),
            Exit::Done | Exit::NoneFound => Ok(Filled::All(records)),
        }
    }

    fn add(&mut self, key: &Drawn) -> std::io::Result<()> {
        let digest = key.digest.as_u128();
        let Some(bytes) = key.bytes.as_deref().filter(|_| digest <= self.largest) else {
            return Ok(());
        };
        if self.spans.contains_key(&digest) {
            return Ok(());
        }
        self.file.write_all(bytes)?;
        let span = Span {
            at: self.at,
            length: bytes.len() as u32, // the reader refuses longer records
            digest,
        };
        self.spans.insert(digest, span);
        self.at += bytes.len() as u64;
        // Only now and then, to keep it cheap.
        if self.spans.len() > self.room.saturating_add(self.room / 4) {
            self.prune(self.room);
        }
        Ok(())
    }

    /// Drops all but the `room` smallest digests.
    fn prune(&mut self, room: usize) {
        if self.spans.len() > room {
            let mut digests: Vec<u128> = self.spans.keys().copied().collect();
            let (_, &mut largest, _) = digests.select_nth_unstable(room - 1);
            self.spans.retain(|digest, _| *digest <= largest);
            self.largest = largest;
        }
    }

    fn is_sample(&self) -> bool {
        self.largest != u128::MAX
    }

    /// The number of distinct keys: exact if all were drawn, else estimated from the largest digest drawn.
    fn distinct(&self) -> u64 {
        if !self.is_sample() {
            return self.spans.len() as u64;
        }
        let drawn = (self.spans.len() as f64 - 1.0).max(1.0);
        (drawn / (self.largest as f64 / u128::MAX as f64)) as u64
    }

    /// In input order.
    fn in_order(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = self.spans.values().copied().collect();
        spans.sort_unstable_by_key(|span| (span.at, span.length));
        spans
    }

    /// Writes these keys to a file, and calls `tell` with each.
    fn write(&mut self, spans: &[Span], to: &Path, mut tell: impl FnMut(&[u8])) -> Result<()> {
        let file = self.file.get_mut();
        let mut key = Vec::new();
        let write = || {
            let mut writer = KeyWriter::create(to)?;
            let mut reader = std::io::BufReader::new(file);
            let mut at = reader.stream_position()?;
            for span in spans {
                // Stays within the buffer if it can.
                reader.seek_relative(span.at as i64 - at as i64)?;
                key.resize(span.length as usize, 0);
                reader.read_exact(&mut key)?;
                at = span.at + u64::from(span.length);
                tell(&key);
                writer.write(&key)?;
            }
            writer.finish()?;
            reader.seek(SeekFrom::Start(0))
        };
        write().map_err(|error: std::io::Error| {
            anyhow::Error::from(error).context(format!("writing {}", to.display()))
        })?;
        Ok(())
    }
}

/// A key's digest, and its bytes if it may be drawn.
struct Drawn {
    digest: Hash,
    bytes: Option<Box<[u8]>>,
}

impl Token for Drawn {
    fn shard(&self, shards: usize) -> usize {
        self.digest.shard(shards)
    }
}

struct Drawing {
    hasher: Hasher,
    /// The high half of the largest digest still drawn.
    largest: AtomicU64,
}

impl Keyed for Drawing {
    type Token = Drawn;

    fn rule(&self) -> &tamis::KeyRule {
        self.hasher.rule()
    }

    fn token(&self, key: &[u8]) -> Drawn {
        let digest = self.hasher.hash_exact(key);
        let is_drawn = (digest.as_u128() >> 64) as u64 <= self.largest.load(Relaxed);
        Drawn {
            digest,
            bytes: is_drawn.then(|| key.into()),
        }
    }
}

/// Removes one of each pair of neighbours at random; with an odd number the last one stays.
fn hold_back_half(keys: &mut Vec<Span>) -> Vec<Span> {
    let pairs = keys.len() / 2;
    let mut back = Vec::with_capacity(pairs);
    let mut held = Vec::with_capacity(keys.len() - pairs);
    for pair in keys.chunks(2) {
        match pair {
            // The low bits haven't decided anything yet.
            [one, other] if one.digest & 1 == 0 => {
                held.push(*one);
                back.push(*other);
            }
            [one, other] => {
                back.push(*one);
                held.push(*other);
            }
            rest => held.extend_from_slice(rest),
        }
    }
    *keys = held;
    back
}

/// Keys to query, in an order that no cache can predict.
fn shuffled(keys: &[Span]) -> Vec<Span> {
    let mut keys = keys.to_vec();
    keys.sort_unstable_by_key(|key| key.digest.rotate_left(64));
    keys.truncate(MOST_ASKED);
    keys
}

/// The range of the keys, while all of them are integers.
#[derive(Default)]
struct Range {
    ends: Option<(i128, i128)>,
    other: bool,
}

impl Range {
    fn add(&mut self, key: &[u8]) {
        match (integer(key), self.ends) {
            (None, _) => self.other = true,
            (Some(one), None) => self.ends = Some((one, one)),
            (Some(one), Some((least, greatest))) => {
                self.ends = Some((least.min(one), greatest.max(one)));
            }
        }
    }

    fn get(self) -> Option<(i128, i128)> {
        self.ends.filter(|_| !self.other)
    }
}

/// The integer, if written canonically: `007` and `7` are two keys.
pub(crate) fn integer(key: &[u8]) -> Option<i128> {
    let digits = key.strip_prefix(b"-").unwrap_or(key);
    let is_plain = match digits {
        [b'0'] => key.len() == 1,
        [b'1'..=b'9', ..] => digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain.then(|| std::str::from_utf8(key).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_one_way_only() {
        for (text, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-12", Some(-12)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("007", None),
            ("-0", None),
            ("+7", None),
            ("", None),
            ("-", None),
            ("1e3", None),
            ("99999999999999999999", Some(99_999_999_999_999_999_999)),
            ("100000000000000000000", None),
            ("7 ", None),
        ] {
            assert_eq!(integer(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn half_is_held_back_and_none_is_lost() {
        for keys in [0, 1, 2, 3, 10, 1001_u64] {
            let all: Vec<Span> = (0..keys)
                .map(|i| Span {
                    at: i,
                    length: 1,
                    digest: Hasher::default().hash(&i.to_le_bytes()).as_u128(),
                })
                .collect();
            let mut held = all.clone();
            let back = hold_back_half(&mut held);
            assert_eq!(held.len() as u64, keys.div_ceil(2));
            assert_eq!(held.len() + back.len(), all.len());
            let mut places: Vec<u64> = held.iter().chain(&back).map(|span| span.at).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..keys));
        }
    }
}
