//! Whole filters: upload, download, union, clear and count.

use super::periods::not_copied;
use super::{CHUNK_WINDOW, Engine, cells_of, growing, random};
use crate::body::{Body, Cells, foot};
use crate::chunks::{Chunk, Foot, bytes_of};
use crate::link::Link;
use crate::request::Request;
use crate::wire::Wire;
use crate::{Error, Location, Options};
use redis::Value;
use std::time::{Duration, Instant};
use tamis::internals::raw::{BlockedShape, CountingShape, GrowingLayer, Header, Shape, Word};
use tamis::{AnyFilter, KeyCount, Kind, Plan, internals::Draft};

/// Bytes of a large filter that are read to estimate its rate.
const SAMPLE: u64 = 4 << 20;
const SAMPLE_CHUNKS: usize = 64;
/// How long a count is reused while only others add keys.
const COUNT_HOLDS: Duration = Duration::from_secs(1);
/// Clears the lines of a whole chunk, and keeps its foot.
const CLEAR: &str = "
if #redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 10) ~= 10 then return 0 end
redis.call('SETRANGE', KEYS[1], 0, string.rep('\\0', ARGV[1]))
return 1";
/// How long a part of the other filter may stay on the server during a union.
const UNITING_FOR: Duration = Duration::from_secs(600);

impl<L: Link> Engine<L> {
    /// Copies a filter to Redis, where its name must be free.
    pub(crate) async fn upload<B: tamis::body::Body>(
        wire: Wire<L>,
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let header = filter.sealed_header();
        if filter.kind() == Kind::Window {
            return Err(not_copied());
        }
        let mut this = Self::begin(wire, at, header, options).await?;
        // Not the header's count: for a filter that was in Redis, it counts the room that was given
        // out.
        let there = filter.estimated_keys();
        let sent = this.send_bodies(&filter.body(), there).await;
        this.finish_creation(sent).await
    }

    async fn send_bodies<W: Word>(&mut self, parts: &[&[W]], there: u64) -> Result<(), Error> {
        let Shape::Growing(shape) = self.header.shape() else {
            let cells = cells_of(&self.header)?;
            let body = Body::new(cells, &self.name, self.record.generation);
            self.bodies = vec![body];
            self.send_body(parts[0], Foot::Open).await?;
            return self.set_counted(there).await;
        };
        let like = growing::like(&shape)?;
        let mut layers = Vec::new();
        let mut generation = self.record.generation;
        for (nth, part) in parts.iter().enumerate() {
            let mut rest = *part;
            while let Some((about, behind)) = rest.split_first_chunk::<8>() {
                let mut line = [0; 64];
                copy_words(about, &mut line);
                let (layer, keys) = GrowingLayer::decode(&line, &like)?;
                let body = Body::new(Cells::Bits(layer.shape()), &self.name, generation);
                let (words, behind) = behind.split_at(layer.shape().lines() as usize * 8);
                // Recorded now, so that a failure deletes all parts.
                self.bodies.push(body);
                let last = behind.is_empty() && nth + 1 == parts.len();
                let successor = random()?;
                let foot = if last {
                    Foot::Open
                } else {
                    Foot::ClosedFor(successor)
                };
                self.send_body(words, foot).await?;
                layers.push((layer, generation, keys));
                generation = successor;
                rest = behind;
            }
        }
        let keys: u64 = layers.iter().map(|(_, _, keys)| keys).sum();
        self.announce_first(&layers, keys.min(there)).await?;
        self.load_layers().await
    }

    /// Writes the chunks of the body added last.
    async fn send_body<W: Word>(&mut self, words: &[W], foot: Foot) -> Result<(), Error> {
        let send = |i: usize, chunk: &Chunk| {
            let range = bytes_of(i, chunk);
            let mut bytes = vec![0; chunk.stored() as usize];
            copy_words(&words[range.start / 8..range.end / 8], &mut bytes);
            bytes[chunk.len as usize..].copy_from_slice(&foot.encode());
            Request::new(chunk.slot, &[command!("SET", &chunk.key, bytes)]).replicated()
        };
        let newest = self.bodies.len() - 1;
        self.on_chunks("writing the filter", newest, send, |_, _, _| true)
            .await
    }

    /// Sends a request for each chunk of a body, some at a time; `read` returns
    /// whether the chunk exists.
    async fn on_chunks(
        &mut self,
        action: &'static str,
        number: usize,
        request: impl Fn(usize, &Chunk) -> Request,
        mut read: impl FnMut(usize, &Chunk, &[Value]) -> bool,
    ) -> Result<(), Error> {
        let count = self.bodies[number].chunks.len();
        for start in (0..count).step_by(CHUNK_WINDOW) {
            let some = start..(start + CHUNK_WINDOW).min(count);
            let chunks = &self.bodies[number].chunks;
            let requests = some.clone().map(|i| request(i, &chunks[i])).collect();
            let answers = self.wire.ask(action, requests).await?;
            for (i, answer) in some.zip(answers) {
                if !read(i, &self.bodies[number].chunks[i], &answer) {
                    return Err(self.chunk_missing((number, i)).await);
                }
            }
        }
        Ok(())
    }

    /// Copies the filter to memory.
    pub(crate) async fn download(&mut self) -> Result<AnyFilter, Error> {
        self.load_layers().await?;
        if self.window.is_some() {
            return Err(not_copied());
        }
        let mut draft = Draft::new(&self.header)?;
        let mut start = 0;
        for number in 0..self.bodies.len() {
            if let Some(growth) = &self.growth {
                let line = growth.layers[number].encode(growth.taken[number]);
                draft.body_mut()[start..start + 64].copy_from_slice(&line);
                start += 64;
            }
            let len = self.bodies[number].cells().lines() as usize * 64;
            let to = &mut draft.body_mut()[start..start + len];
            self.receive_body(number, to).await?;
            start += len;
        }
        Ok(draft.finish()?)
    }

    async fn receive_body(&mut self, number: usize, to: &mut [u8]) -> Result<(), Error> {
        let closed = self.successor(number).is_some();
        let mut reopened = None;
        let get = |_, chunk: &Chunk| {
            let get = command!("GETRANGE", &chunk.key, 0, chunk.stored());
            Request::new(chunk.slot, &[get]).answered_with(chunk.stored())
        };
        let read = |i: usize, chunk: &Chunk, answer: &[Value]| {
            let [Value::BulkString(bytes)] = answer else {
                return false;
            };
            let (lines, foot) = bytes.split_at(bytes.len().min(chunk.len as usize));
            let Some(foot) = Foot::decode(foot) else {
                return false;
            };
            to[bytes_of(i, chunk)].copy_from_slice(lines);
            if closed && foot == Foot::Open {
                reopened = Some(i);
            }
            true
        };
        self.on_chunks("reading the filter", number, get, read)
            .await?;
        reopened.map_or(Ok(()), |i| Err(self.reopened((number, i))))
    }

    /// Adds all keys of a filter with the same shape and hash.
    pub(crate) async fn union_with<B: tamis::body::Body>(
        &mut self,
        other: &AnyFilter<B>,
    ) -> Result<(), Error> {
        let instead = match self.kind() {
            Kind::Counting => Some(
                "counters add up, so a try whose answer was lost could not be repeated; \
                 add the keys of one to the other",
            ),
            Kind::Growing => Some(
                "together their layers would exceed the promised rate; \
                 add the keys of one to the other",
            ),
            Kind::Window => Some("add the keys of one to the other, with their times"),
            _ => None,
        };
        if let Some(instead) = instead {
            return Err(Error::Filter(tamis::Error::Unable {
                kind: self.kind(),
                what: "united in Redis",
                instead,
            }));
        }
        self.check_like(other)?;
        self.counted = None;
        let words = other.body()[0];
        let ticket = random()?;
        let expires = self.time_to_live().await?.is_some();
        let chunks = self.bodies[0].chunks.clone();
        for (window, some) in chunks.chunks(CHUNK_WINDOW).enumerate() {
            let unite = |(i, chunk): (usize, &Chunk)| {
                let theirs = format!("{}:{ticket:016x}", chunk.key);
                let range = bytes_of(i, chunk);
                // Without a foot, so that a missing chunk still has none after
                // the OR.
                let mut bytes = vec![0; chunk.len as usize];
                copy_words(&words[range.start / 8..range.end / 8], &mut bytes);
                let ttl = UNITING_FOR.as_millis() as u64;
                let set = command!("SET", &theirs, bytes, "PX", ttl);
                let or = command!("BITOP", "OR", &chunk.key, &chunk.key, &theirs);
                let drop = command!("UNLINK", &theirs);
                let foot = command!("GETRANGE", &chunk.key, chunk.len, chunk.stored());
                Request::new(chunk.slot, &[set, or, drop, foot]).replicated()
            };
            let requests = (window * CHUNK_WINDOW..).zip(some).map(unite).collect();
            let answers = self.wire.ask("uniting the filters", requests).await?;
            for (i, answer) in (window * CHUNK_WINDOW..).zip(answers) {
                if answer.last().and_then(foot) != Some(Foot::Open) {
                    return Err(self.chunk_missing((0, i)).await);
                }
            }
            if expires {
                // OR creates a new string, without an expiry.
                self.expire_like_record(some).await?;
            }
        }
        self.note(other.keys().get(), false).await
    }

    /// Whether another filter has the same shape and hash.
    fn check_like<B: tamis::body::Body>(&self, other: &AnyFilter<B>) -> Result<(), Error> {
        let unlike = |what, ours: String, theirs: String| {
            Err(Error::Filter(tamis::Error::Unlike { what, ours, theirs }))
        };
        let (ours, theirs) = (self.header.shape(), other.shape());
        if ours.kind() != theirs.kind() {
            let (ours, theirs) = (ours.kind().to_string(), theirs.kind().to_string());
            return unlike("the kind", ours, theirs);
        }
        if ours != theirs {
            return unlike("the shape", format!("{ours:?}"), format!("{theirs:?}"));
        }
        let (ours, theirs) = (self.header.hasher(), other.hasher());
        if ours.agrees_with(theirs) {
            return Ok(());
        }
        let another = format!("another {}", theirs.name());
        unlike("the hash", ours.name().into(), another)
    }

    /// Removes all keys.
    pub(crate) async fn clear(&mut self) -> Result<(), Error> {
        self.check_memory()?;
        // Noted first, so that clients that miss a key know the reason.
        self.note(0, true).await?;
        self.set_counted(0).await?;
        self.load_layers().await?;
        self.counted = None;
        let clear = |_, chunk: &Chunk| {
            let command = command!("EVAL", CLEAR, 1, &chunk.key, chunk.len);
            Request::new(chunk.slot, &[command]).replicated()
        };
        let done = |_, _: &Chunk, answer: &[Value]| *answer == [Value::Int(1)];
        for number in 0..self.bodies.len() {
            self.on_chunks("clearing the filter", number, clear, done)
                .await?;
        }
        if let Some(window) = &self.window {
            let firsts: Vec<Chunk> = window.chunks.iter().map(|s| s[0].clone()).collect();
            self.drop_strings("clearing the filter", &firsts, true)
                .await?;
        }
        if let Some(growth) = &mut self.growth {
            growth.forget_room();
            let taken = growth.taken.len();
            let mut command = command!("HSET", self.state_key());
            for i in 0..taken {
                command.arg(format!("taken.{i}")).arg(0);
            }
            self.ask_home("clearing the filter", command).await?;
        }
        self.set_counted(0).await
    }

    /// The number of distinct keys, estimated from how full the filter is.
    pub(crate) async fn keys(&mut self) -> Result<KeyCount, Error> {
        match self.counted {
            Some((when, count)) if when.elapsed() < COUNT_HOLDS => return Ok(count),
            _ => {}
        }
        self.load_layers().await?;
        let mut keys = 0;
        if self.window.is_some() {
            keys = self.generations().await?.iter().map(|each| each.keys).sum();
        }
        for number in 0..self.bodies.len() {
            let chunks = self.bodies[number].chunks.len();
            keys += match self.bodies[number].cells() {
                Cells::Bits(shape) => {
                    let ones = self.ones(number, chunks).await?;
                    shape.keys_from_ones(ones).round() as u64
                }
                Cells::Counters(_) => self.sampled_keys(number).await?.0.round() as u64,
            };
        }
        // Some keys of a growing filter are in two layers, so bits can't tell.
        if self.growth.is_some()
            && let Some(counted) = self.counted_keys().await?
        {
            keys = keys.min(counted);
        }
        let count = KeyCount::Estimated(keys);
        self.counted = Some((Instant::now(), count));
        Ok(count)
    }

    /// The number of keys of a body, from a sample of its lines, and the
    /// sample's share of the lines.
    pub(super) async fn sampled_keys(&mut self, number: usize) -> Result<(f64, f64), Error> {
        let all = self.bodies[number].cells();
        let (sample, lines) = self.sample(number).await?;
        let share = lines as f64 / (all.lines() / all.width()) as f64;
        Ok((sample.estimated_keys() as f64 / share, share))
    }

    /// How many bits of the first chunks of a body are set.
    pub(super) async fn ones(&mut self, number: usize, some: usize) -> Result<u64, Error> {
        Ok(self.ones_by_chunk(number, some).await?.iter().sum())
    }

    pub(super) async fn ones_by_chunk(
        &mut self,
        number: usize,
        some: usize,
    ) -> Result<Vec<u64>, Error> {
        let count = |chunk: &Chunk| {
            let ones = command!("BITCOUNT", &chunk.key, 0, chunk.len - 1);
            let len = command!("STRLEN", &chunk.key);
            Request::new(chunk.slot, &[ones, len])
        };
        let requests = self.bodies[number].chunks[..some]
            .iter()
            .map(count)
            .collect();
        let answers = self.wire.ask("counting the keys", requests).await?;
        let mut all = Vec::with_capacity(some);
        for (i, answer) in answers.iter().enumerate() {
            let whole = self.bodies[number].chunks[i].stored() as i64;
            match answer[..] {
                [Value::Int(ones), Value::Int(len)] if len == whole => all.push(ones as u64),
                _ => return Err(self.chunk_missing((number, i)).await),
            }
        }
        Ok(all)
    }

    /// The rate to expect now, from all of a small filter or a sample of a
    /// large one.
    pub(crate) async fn rate_now(&mut self) -> Result<f64, Error> {
        self.load_layers().await?;
        if self.window.is_some() {
            return self.window_rate().await;
        }
        let mut misses = 1.0;
        for number in 0..self.bodies.len() {
            misses *= 1.0 - self.sample(number).await?.0.rate_now();
        }
        Ok(1.0 - misses)
    }

    /// Some lines of a body as a separate filter, and their number. Keys are
    /// spread over the lines at random, so any lines will do.
    async fn sample(&mut self, number: usize) -> Result<(AnyFilter, u64), Error> {
        let body = &self.bodies[number];
        let step = body.chunks.len().div_ceil(SAMPLE_CHUNKS);
        let chosen: Vec<usize> = (0..body.chunks.len()).step_by(step).collect();
        let each = SAMPLE / chosen.len() as u64 / 256 * 256;
        let read = |i: &usize| {
            let chunk = &body.chunks[*i];
            let last = chunk.len.min(each) - 1;
            let lines = command!("GETRANGE", &chunk.key, 0, last);
            let len = command!("STRLEN", &chunk.key);
            Request::new(chunk.slot, &[lines, len]).answered_with(last)
        };
        let requests = chosen.iter().map(read).collect();
        let cells = body.cells();
        let answers = self.wire.ask("sampling the filter", requests).await?;
        let mut sampled = Vec::new();
        for (i, answer) in chosen.into_iter().zip(answers) {
            let chunk = &self.bodies[number].chunks[i];
            match &answer[..] {
                [Value::BulkString(bytes), Value::Int(len)]
                    if *len as u64 == chunk.stored()
                        && bytes.len() as u64 == chunk.len.min(each) =>
                {
                    sampled.extend_from_slice(bytes);
                }
                _ => return Err(self.chunk_missing((number, i)).await),
            }
        }
        let per_key = u64::from(cells.lines_per_key());
        let lines = sampled.len() as u64 / 64 / cells.width() / per_key * per_key;
        let shape: Shape = match cells {
            Cells::Bits(s) => {
                BlockedShape::new(lines, s.hashes_per_line(), s.lines_per_key())?.into()
            }
            Cells::Counters(s) => {
                CountingShape::new(lines, s.hashes_per_line(), s.lines_per_key())?.into()
            }
        };
        let header = Header::of_plan(&Plan::of(shape, 1), *self.header.hasher());
        let mut draft = Draft::new(&header)?;
        let len = draft.body_mut().len();
        draft.body_mut().copy_from_slice(&sampled[..len]);
        Ok((draft.finish()?, lines))
    }
}

fn copy_words<W: Word>(words: &[W], to: &mut [u8]) {
    for (to, word) in to.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.get().to_le_bytes();
    }
}
