//! The strings of a window: created, found, counted and dropped.

use super::parts::TOGETHER;
use super::reading::number;
use super::{Engine, create_chunks};
use crate::Error;
use crate::body::foot;
use crate::chunks::Chunk;
use crate::link::Link;
use crate::request::Request;
use crate::sliding::{Bucket, HEAD, Head, Sliding};
use redis::Value;
use std::collections::BTreeMap;
use tamis::{Kind, window::Generation};

/// Bytes of a large window that are read to count its keys.
const SAMPLE: u64 = 4 << 20;
const SAMPLE_CHUNKS: usize = 64;

/// Deletes the strings of a chunk, or clears the first and deletes the others.
/// Returns the number of strings if some of them weren't passed. The version of
/// a chunk never decreases.
const DROP: &str = r"#!lua flags=allow-oom
local call, whole = redis.call, redis.call('GETRANGE', KEYS[1], -1, -1) == '\165'
if whole then
  local strings = string.byte(call('GETRANGE', KEYS[1], 7, 7)) + 1
  if strings > #KEYS then return strings end
end
for i = 2, #KEYS do call('UNLINK', KEYS[i]) end
if ARGV[1] == 'drop' then
  call('UNLINK', KEYS[1])
elseif whole then
  local version = call('GETRANGE', KEYS[1], 8, 13)
  call('SETRANGE', KEYS[1], 0, string.rep('\0', call('STRLEN', KEYS[1]) - 10))
  call('SETRANGE', KEYS[1], 8, version)
  call('BITFIELD', KEYS[1], 'INCRBY', 'u48', 64, 1)
end
return 0";

/// An estimate of the live keys of a window, from a sample of each string.
#[derive(Default)]
struct Census {
    periods: BTreeMap<i64, f64>,
    /// For each string, the average number of keys per bucket.
    buckets: Vec<f64>,
}

impl<L: Link> Engine<L> {
    /// Creates the first strings of a new window.
    pub(super) async fn create_window(&mut self) -> Result<(), Error> {
        let mut window = Sliding::of(&self.header)?;
        window.extend(window.firsts(&self.name, self.record.generation, 0..u64::MAX));
        let firsts: Vec<Chunk> = window.chunks.concat();
        // Recorded now, so that a failure deletes all parts.
        self.window = Some(window);
        create_chunks(&mut self.wire, &firsts).await
    }

    /// Finds all strings of a window.
    pub(super) async fn find_window(&mut self) -> Result<(), Error> {
        let generation = self.record.generation;
        let window = self.window.insert(Sliding::of(&self.header)?);
        let count = window.count;
        for start in (0..count).step_by(TOGETHER) {
            let Some(window) = &self.window else { break };
            let some = window.firsts(&self.name, generation, start..start + TOGETHER as u64);
            let heads = self.heads(&some).await?;
            if let Some(window) = &mut self.window {
                window.extend(some);
                hear(window, start as usize, &heads);
            }
        }
        Ok(())
    }

    /// Reads the current list of strings.
    pub(super) async fn load_window(&mut self) -> Result<Vec<Head>, Error> {
        let Some(window) = &self.window else {
            return Ok(Vec::new());
        };
        let firsts: Vec<Chunk> = window
            .chunks
            .iter()
            .map(|strings| strings[0].clone())
            .collect();
        let mut heads = Vec::new();
        for some in firsts.chunks(TOGETHER) {
            heads.extend(self.heads(some).await?);
        }
        if let Some(window) = &mut self.window {
            hear(window, 0, &heads);
        }
        Ok(heads)
    }

    /// The heads of strings, all of which must exist and be whole.
    async fn heads(&mut self, strings: &[Chunk]) -> Result<Vec<Head>, Error> {
        let read = |chunk: &Chunk| {
            let head = command!("GETRANGE", &chunk.key, 0, HEAD - 1);
            let foot = command!("GETRANGE", &chunk.key, chunk.len, chunk.stored());
            Request::new(chunk.slot, &[head, foot])
        };
        let requests = strings.iter().map(read).collect();
        let answers = self.wire.ask("looking for the filter", requests).await?;
        let mut heads = Vec::new();
        for (chunk, answer) in strings.iter().zip(answers) {
            let head = match &answer[..] {
                [Value::BulkString(head), end] => foot(end).and_then(|_| Head::decode(head)),
                _ => None,
            };
            match head {
                Some(head) => heads.push(head),
                None => return Err(self.why_missing(chunk.key.clone()).await),
            }
        }
        Ok(heads)
    }

    /// Records the versions of chunks next to the record, so that verifying the
    /// filter finds parts that are older.
    pub(super) fn note_versions(&self, versions: &[(usize, u64)]) -> Request {
        let mut command = command!("HSET", self.state_key());
        for (chunk, version) in versions {
            command.arg(format!("part.{chunk}")).arg(version);
        }
        Request::new(self.home, &[command])
    }

    /// The recorded versions of all chunks.
    async fn noted_versions(&mut self) -> Result<Vec<u64>, Error> {
        let chunks: Vec<usize> = (0..self.window.as_ref().map_or(0, |w| w.chunks.len())).collect();
        let mut noted = Vec::new();
        for some in chunks.chunks(TOGETHER) {
            let fields: Vec<String> = some.iter().map(|chunk| format!("part.{chunk}")).collect();
            let command = command!("HMGET", self.state_key(), &fields[..]);
            let Value::Array(values) = self.ask_home("verifying the filter", command).await? else {
                break;
            };
            noted.extend(values.iter().map(|value| number(value).unwrap_or(0)));
        }
        Ok(noted)
    }

    /// Accepts the parts as they are.
    pub(super) async fn forget_versions(&mut self) -> Result<(), Error> {
        let heads = self.load_window().await?;
        let versions: Vec<_> = heads.iter().map(|head| head.version).enumerate().collect();
        for some in versions.chunks(TOGETHER) {
            let request = self.note_versions(some);
            self.wire.ask("accepting the loss", vec![request]).await?;
        }
        Ok(())
    }

    /// Checks that all strings exist, and that none is older than its recorded
    /// version.
    pub(super) async fn verify_window(&mut self) -> Result<(), Error> {
        let noted = self.noted_versions().await?;
        let heads = self.load_window().await?;
        for (chunk, (head, noted)) in heads.iter().zip(noted).enumerate() {
            if head.version < noted {
                return Err(self.older_part(chunk, head.version, noted));
            }
        }
        let strings: Vec<Chunk> = (self.window.iter())
            .flat_map(|window| window.chunks.concat())
            .collect();
        for some in strings.chunks(TOGETHER) {
            self.heads(some).await?;
        }
        Ok(())
    }

    /// Counts keys in all strings of a small window, or in some of a large one.
    async fn census(&mut self) -> Result<Census, Error> {
        self.load_window().await?;
        let Some(window) = self.window.clone() else {
            return Ok(Census::default());
        };
        let oldest = window
            .newest
            .map_or(i64::MIN, |newest| newest - window.generations());
        let step = window.chunks.len().div_ceil(SAMPLE_CHUNKS);
        let chosen: Vec<&Vec<Chunk>> = window.chunks.iter().step_by(step).collect();
        let most = window.chunks.iter().map(Vec::len).max().unwrap_or(1);
        let mut census = Census::default();
        for level in (0..most).map(|number| window.level(number)) {
            let strings = chosen
                .iter()
                .filter_map(|strings| strings.get(level.number));
            let strings: Vec<&Chunk> = strings.collect();
            let each = (SAMPLE / chosen.len() as u64 / level.bucket).clamp(1, level.buckets());
            let read = |chunk: &&Chunk| {
                let last = HEAD + each * level.bucket - 1;
                let command = command!("GETRANGE", &chunk.key, HEAD, last);
                Request::new(chunk.slot, &[command]).answered_with(last)
            };
            let requests = strings.iter().map(read).collect();
            let answers = self.wire.ask("counting the keys", requests).await?;
            // The number of buckets that each sampled bucket stands for.
            let share = window.chunks.len() as f64 / chosen.len() as f64 * level.buckets() as f64
                / each as f64;
            let mut live = 0.0;
            for (chunk, answer) in strings.iter().zip(answers) {
                let bytes = match &answer[..] {
                    [Value::BulkString(bytes)] if bytes.len() as u64 == each * level.bucket => {
                        bytes
                    }
                    _ => return Err(self.why_missing(chunk.key.clone()).await),
                };
                for bytes in bytes.chunks(level.bucket as usize) {
                    let bucket = Bucket::new(level, bytes.to_vec());
                    for period in bucket.entries().filter_map(|entry| bucket.period_of(entry)) {
                        if period >= oldest {
                            *census.periods.entry(period).or_default() += share;
                            live += share;
                        }
                    }
                }
            }
            let all = window.chunks.len() as f64 * level.buckets() as f64;
            census.buckets.push(live / all);
        }
        Ok(census)
    }

    /// The generations in the window, newest first.
    pub(crate) async fn generations(&mut self) -> Result<Vec<Generation>, Error> {
        if self.kind() != Kind::Window {
            Sliding::of(&self.header)?;
        }
        let census = self.census().await?;
        let Some(window) = &self.window else {
            return Ok(Vec::new());
        };
        let generation = |(period, keys): (i64, f64)| Generation {
            number: period,
            start: window.start_of(period).micros(),
            end: window.start_of(period + 1).micros(),
            keys: keys.round() as u64,
        };
        Ok(census.periods.into_iter().rev().map(generation).collect())
    }

    /// The rate to expect now.
    pub(super) async fn window_rate(&mut self) -> Result<f64, Error> {
        let census = self.census().await?;
        let window = self.window.as_ref();
        Ok(window.map_or(0.0, |window| window.rate_of(&census.buckets)))
    }

    /// Deletes or clears all strings of some chunks.
    pub(super) async fn drop_strings(
        &mut self,
        action: &'static str,
        firsts: &[Chunk],
        clear: bool,
    ) -> Result<(), Error> {
        let mut pending: Vec<(&Chunk, usize)> = firsts.iter().map(|first| (first, 1)).collect();
        while !pending.is_empty() {
            let drop = |(first, strings): &(&Chunk, usize)| {
                let mut command = command!("EVAL", DROP, *strings, &first.key);
                for further in 1..*strings {
                    command.arg(format!("{}:p{further}", first.key));
                }
                command.arg(if clear { "clear" } else { "drop" });
                Request::new(first.slot, &[command]).replicated()
            };
            let requests = pending.iter().map(drop).collect();
            let answers = self.wire.ask(action, requests).await?;
            let strings = answers.iter().map(|answer| match answer[..] {
                [Value::Int(strings @ 1..)] => strings as usize,
                _ => 0,
            });
            pending = (pending.iter().zip(strings))
                .filter(|(_, strings)| *strings > 0)
                .map(|((first, _), strings)| (*first, strings))
                .collect();
        }
        Ok(())
    }
}

/// Records the heads of some chunks.
fn hear(window: &mut Sliding, from: usize, heads: &[Head]) {
    for (chunk, head) in (from..).zip(heads) {
        window.learn(chunk, head.further + 1);
        window.pass(head.newest);
    }
}

/// The error for copying between windows in strings and in files, whose layouts
/// differ.
pub(crate) fn not_copied() -> Error {
    Error::Filter(tamis::Error::Unable {
        kind: Kind::Window,
        what: "copied between Redis and files",
        instead: "their layouts differ; add the keys with their times to a new one",
    })
}
