//! The ledgers of a window and the strings that they list: made, found,
//! counted, copied, and let go.

use super::parts::TOGETHER;
use super::{CHUNK_WINDOW, Engine};
use crate::Error;
use crate::chunks::{Chunk, Foot, bytes_of, chunks, count};
use crate::link::Link;
use crate::looks::LEDGER;
use crate::request::Request;
use crate::sliding::{self, Sliding, lines_of, read_ledger};
use redis::{Cmd, Value};
use tamis::raw::{WindowPart, WindowShape, Word};
use tamis::{Draft, Generation, Kind, Moment};

/// Forgets the strings of a chunk, and the ledger itself unless told to clear
/// it; or returns periods whose strings were not among the keys.
const DROP: &str = "#!lua flags=allow-oom
local ledger = redis.call('GET', KEYS[1])
if not ledger then return {} end
local named, more = {}, {}
for i = 2, #KEYS do named[ARGV[i]] = true end
for number in string.gmatch(string.sub(ledger, 1, -11), '(%-?%d+):%d+ ') do
  if not named[number] then more[#more + 1] = number end
end
if #more > 0 then return more end
for i = 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
if ARGV[1] == 'clear' then
  redis.call('SET', KEYS[1], string.sub(ledger, -10), 'KEEPTTL')
else
  redis.call('UNLINK', KEYS[1])
end
return {}";

/// A string that a ledger lists.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    chunk: usize,
    period: i64,
    /// When it ends by itself, in milliseconds since 1970.
    end: u64,
}

impl<L: Link> Engine<L> {
    /// What can be a window in Redis: one of time.
    fn sliding(&self, shape: WindowShape, chunks: Vec<Chunk>) -> Result<Sliding, Error> {
        Sliding::new(shape, chunks).ok_or_else(by_keys)
    }

    /// Makes the ledgers of a new window, which list these generations.
    pub(super) async fn create_window(
        &mut self,
        shape: WindowShape,
        parts: &[WindowPart],
    ) -> Result<(), Error> {
        let generation = self.record.generation;
        let all = chunks(&self.name, generation, lines_of(&shape), 0..u64::MAX);
        let window = self.sliding(shape, all.collect())?;
        let now = Moment::now();
        let list: String = (parts.iter())
            .map(|part| {
                format!(
                    "{}:{} ",
                    part.generation,
                    window.end_of(part.generation, now)
                )
            })
            .collect();
        let ledger = [list.as_bytes(), &Foot::Open.encode()].concat();
        // Known from now on, so that a failure takes all away.
        let window = self.window.insert(window);
        for page in sliding::pages(window.chunks.len(), TOGETHER) {
            for chunk in page.clone() {
                window.learn(chunk, parts.iter().map(|part| part.generation));
            }
            let make = |chunk: &Chunk| {
                Request::new(chunk.slot, &[command!("SET", &chunk.key, &ledger)]).replicated()
            };
            let requests = window.chunks[page].iter().map(make).collect();
            self.wire.ask("creating the filter", requests).await?;
        }
        for part in parts {
            self.send_part(part, now).await?;
        }
        Ok(())
    }

    /// Writes the strings of a generation.
    async fn send_part(&mut self, part: &WindowPart, now: Moment) -> Result<(), Error> {
        let Some(window) = &self.window else {
            return Ok(());
        };
        let period = part.generation;
        let end = window.end_of(period, now);
        for page in sliding::pages(window.chunks.len(), CHUNK_WINDOW) {
            let send = |i: usize| {
                let chunk = &window.chunks[i];
                let range = bytes_of(i, chunk);
                let blocks = &part.blocks[range.start..range.end.min(part.blocks.len())];
                let mut bytes = vec![0; chunk.stored() as usize];
                bytes[..blocks.len()].copy_from_slice(blocks);
                bytes[chunk.len as usize..].copy_from_slice(&Foot::Open.encode());
                let set = command!("SET", window.string(i, period), bytes, "PXAT", end);
                Request::new(chunk.slot, &[set]).replicated()
            };
            let requests = page.map(send).collect();
            self.wire.ask("writing the filter", requests).await?;
        }
        Ok(())
    }

    /// Finds all ledgers of a window.
    pub(super) async fn find_window(&mut self, shape: WindowShape) -> Result<(), Error> {
        let (lines, generation) = (lines_of(&shape), self.record.generation);
        let mut found = Vec::new();
        let mut listed = Vec::new();
        while (found.len() as u64) < count(lines) {
            let start = found.len() as u64;
            let some = chunks(
                &self.name,
                generation,
                lines,
                start..start + TOGETHER as u64,
            );
            let some: Vec<Chunk> = some.collect();
            listed.extend(self.read_ledgers(&some, found.len()).await?);
            found.extend(some);
        }
        let mut window = self.sliding(shape, found)?;
        window.hear_of(listed.iter().map(|string| (string.chunk, string.period)));
        self.window = Some(window);
        Ok(())
    }

    /// What the ledgers of some chunks list; the first of them has this number.
    async fn read_ledgers(&mut self, chunks: &[Chunk], first: usize) -> Result<Vec<Listed>, Error> {
        let read = |chunk: &Chunk| {
            let command = command!("GETRANGE", &chunk.key, 0, LEDGER);
            Request::new(chunk.slot, &[command]).answered_with(LEDGER)
        };
        let requests = chunks.iter().map(read).collect();
        let answers = self.wire.ask("looking for the filter", requests).await?;
        let mut listed = Vec::new();
        for (i, answer) in answers.iter().enumerate() {
            let ledger = match &answer[..] {
                [Value::BulkString(bytes)] => read_ledger(bytes),
                _ => None,
            };
            let Some(ledger) = ledger else {
                return Err(self.why_missing(chunks[i].key.clone()).await);
            };
            let chunk = first + i;
            listed.extend(
                ledger
                    .into_iter()
                    .map(|(period, end)| Listed { chunk, period, end }),
            );
        }
        Ok(listed)
    }

    /// Reads all ledgers again.
    async fn read_all_ledgers(&mut self) -> Result<Vec<Listed>, Error> {
        let all = match &self.window {
            Some(window) => window.chunks.clone(),
            None => return Ok(Vec::new()),
        };
        let mut listed = Vec::new();
        for page in sliding::pages(all.len(), TOGETHER) {
            listed.extend(self.read_ledgers(&all[page.clone()], page.start).await?);
        }
        if let Some(window) = &mut self.window {
            window.hear_of(listed.iter().map(|string| (string.chunk, string.period)));
        }
        Ok(listed)
    }

    /// Asks about every string of the window that is not over, and the one that is
    /// kept for late keys, some at a time; `read` returns whether one was there.
    async fn on_strings(
        &mut self,
        action: &'static str,
        together: usize,
        request: impl Fn(&Chunk, &str) -> Request,
        mut read: impl FnMut(&Listed, &Chunk, &[Value]) -> bool,
    ) -> Result<(), Error> {
        let listed = self.read_all_ledgers().await?;
        let Some(window) = self.window.clone() else {
            return Ok(());
        };
        let kept = |string: &&Listed| window.oldest().is_none_or(|o| string.period >= o - 1);
        let strings: Vec<&Listed> = listed.iter().filter(kept).collect();
        for some in strings.chunks(together) {
            let key = |string: &Listed| window.string(string.chunk, string.period);
            let ask = |s: &&Listed| request(&window.chunks[s.chunk], &key(s));
            let answers = self
                .wire
                .ask(action, some.iter().map(ask).collect())
                .await?;
            for (string, answer) in some.iter().zip(answers) {
                let there = read(string, &window.chunks[string.chunk], &answer);
                if !there && !string.is_over() {
                    return Err(self.why_missing(key(string)).await);
                }
            }
        }
        Ok(())
    }

    /// Checks that everything the ledgers list is there.
    pub(super) async fn verify_window(&mut self) -> Result<(), Error> {
        let foot = |chunk: &Chunk, key: &str| {
            let command = command!("GETRANGE", key, chunk.len, chunk.stored());
            Request::new(chunk.slot, &[command])
        };
        let read = |_: &Listed, _: &Chunk, answer: &[Value]| {
            answer.first().and_then(crate::body::foot) == Some(Foot::Open)
        };
        self.on_strings("verifying the filter", TOGETHER, foot, read)
            .await
    }

    /// The generations that are remembered, newest first, with their keys by the
    /// bits that are set.
    pub(crate) async fn generations(&mut self) -> Result<Vec<Generation>, Error> {
        self.check_window("asked for generations")?;
        let count = |chunk: &Chunk, key: &str| {
            let ones = command!("BITCOUNT", key, 0, chunk.len - 1);
            let len = command!("STRLEN", key);
            Request::new(chunk.slot, &[ones, len])
        };
        let mut ones = std::collections::BTreeMap::<i64, u64>::new();
        let read = |string: &Listed, chunk: &Chunk, answer: &[Value]| match answer[..] {
            [Value::Int(set), Value::Int(len)] if len as u64 == chunk.stored() => {
                *ones.entry(string.period).or_default() += set as u64;
                true
            }
            _ => false,
        };
        self.on_strings("counting the keys", TOGETHER, count, read)
            .await?;
        let Some(window) = &self.window else {
            return Ok(Vec::new());
        };
        let shape = window.shape();
        let bits = shape.part_len() as f64 * 8.0 * (60.0 / 64.0);
        let capacity = self.capacity_now();
        let generation = |(period, ones): (i64, u64)| Generation {
            number: period,
            start: window.start_of(period).micros(),
            end: window.start_of(period + 1).micros(),
            keys: shape.keys_from_ones(ones).round() as u64,
            capacity,
            fill: ones as f64 / bits,
        };
        let live = |(period, _): &(i64, u64)| window.oldest().is_none_or(|o| *period >= o);
        Ok((ones.into_iter().rev().filter(live))
            .map(generation)
            .collect())
    }

    /// Copies the window to memory: the generations that are remembered.
    pub(super) async fn download_window(&mut self, shape: WindowShape) -> Result<Draft, Error> {
        let mut parts = std::collections::BTreeMap::new();
        let get = |chunk: &Chunk, key: &str| {
            let get = command!("GETRANGE", key, 0, chunk.stored());
            Request::new(chunk.slot, &[get]).answered_with(chunk.stored())
        };
        let len = shape.part_len() as usize;
        let read = |string: &Listed, chunk: &Chunk, answer: &[Value]| {
            let [Value::BulkString(bytes)] = answer else {
                return false;
            };
            let (lines, foot) = bytes.split_at(bytes.len().min(chunk.len as usize));
            if Foot::decode(foot).is_none() {
                return false;
            }
            let blocks = parts.entry(string.period).or_insert_with(|| vec![0; len]);
            let range = bytes_of(string.chunk, chunk);
            let to = &mut blocks[range.start..range.end.min(len)];
            to.copy_from_slice(&lines[..to.len()]);
            true
        };
        self.on_strings("reading the filter", CHUNK_WINDOW, get, read)
            .await?;
        let mut draft = Draft::new(&self.header)?;
        for (generation, blocks) in parts {
            let ones = blocks.iter().map(|byte: &u8| u64::from(byte.count_ones()));
            let part = WindowPart {
                generation,
                keys: shape.keys_from_ones(ones.sum()).round() as u64,
                blocks,
            };
            let start = self.window.as_ref().map(|w| w.start_of(generation));
            shape.put_part(draft.body_mut(), &part, start.unwrap_or_default());
        }
        Ok(draft)
    }

    /// The generations of a window that is copied to Redis.
    pub(super) fn parts_of<W: Word>(
        shape: &WindowShape,
        words: &[W],
    ) -> Result<Vec<WindowPart>, Error> {
        if shape.is_by_keys() {
            return Err(by_keys());
        }
        Ok(shape.parts(words))
    }

    /// Runs commands on every string, given its key and its own end.
    pub(super) async fn on_periods(
        &mut self,
        action: &'static str,
        commands: impl Fn(&str, u64) -> Vec<Cmd>,
    ) -> Result<(), Error> {
        let listed = self.read_all_ledgers().await?;
        let Some(window) = &self.window else {
            return Ok(());
        };
        let run = |string: &Listed| {
            let key = window.string(string.chunk, string.period);
            Request::new(
                window.chunks[string.chunk].slot,
                &commands(&key, string.end),
            )
        };
        let requests = listed.iter().map(run).collect();
        self.wire.ask(action, requests).await.map(drop)
    }

    /// Forgets all strings of some chunks, and their ledgers unless these are to
    /// stay.
    pub(super) async fn drop_periods(
        &mut self,
        action: &'static str,
        chunks: &[Chunk],
        clear: bool,
    ) -> Result<(), Error> {
        let mut pending: Vec<(&Chunk, Vec<i64>)> = chunks.iter().map(|c| (c, Vec::new())).collect();
        while !pending.is_empty() {
            let drop = |(chunk, periods): &(&Chunk, Vec<i64>)| {
                let mut command = command!("EVAL", DROP, 1 + periods.len(), &chunk.key);
                for period in periods {
                    command.arg(format!("{}:p{period}", chunk.key));
                }
                command.arg(if clear { "clear" } else { "drop" });
                for period in periods {
                    command.arg(period);
                }
                Request::new(chunk.slot, &[command]).replicated()
            };
            let requests = pending.iter().map(drop).collect();
            let answers = self.wire.ask(action, requests).await?;
            let mut open = Vec::new();
            for ((chunk, mut periods), answer) in pending.into_iter().zip(answers) {
                let more = answer.into_iter().next().unwrap_or(Value::Nil);
                let more: Vec<i64> = redis::from_redis_value(more).unwrap_or_default();
                if !more.is_empty() {
                    periods.extend(more);
                    open.push((chunk, periods));
                }
            }
            pending = open;
        }
        Ok(())
    }

    /// The keys of all strings and ledgers.
    pub(super) async fn all_period_keys(&mut self) -> Result<Vec<String>, Error> {
        let listed = self.read_all_ledgers().await?;
        let Some(window) = &self.window else {
            return Ok(Vec::new());
        };
        let strings = listed.iter().map(|s| window.string(s.chunk, s.period));
        let ledgers = window.chunks.iter().map(|chunk| chunk.key.clone());
        Ok(ledgers.chain(strings).collect())
    }
}

impl Listed {
    /// Whether it may have expired.
    fn is_over(&self) -> bool {
        let now = Moment::now().micros() / 1_000;
        i64::try_from(self.end).is_ok_and(|end| end <= now)
    }
}

/// A window that counts keys has no clock that servers could share.
pub(super) fn by_keys() -> Error {
    Error::Filter(tamis::Error::Unable {
        kind: Kind::Window,
        what: "kept in Redis if they span a number of keys",
        instead: "strings expire by time, and nodes of a cluster don't count together; \
                  use a window of time there",
    })
}
