//! Whole filters: up to Redis and down from it, united, cleared, counted.

use super::{CHUNK_WINDOW, Engine, cells_of, random};
use crate::body::{Body, Cells, foot};
use crate::chunks::{Chunk, FOOT, Foot, bytes_of};
use crate::link::Link;
use crate::request::Request;
use crate::wire::Wire;
use crate::{Error, Location, Options};
use redis::{Value, cmd};
use std::time::{Duration, Instant};
use tamis::raw::{BlockedShape, CountingShape, GrowingLayer, Header, Shape, Word};
use tamis::{AnyFilter, Draft, KeyCount, Kind, Plan};

/// What is read of a large filter to estimate its rate.
const SAMPLE: u64 = 4 << 20;
const SAMPLE_CHUNKS: usize = 64;
/// How long a count holds while only others add keys.
const COUNT_HOLDS: Duration = Duration::from_secs(1);
/// Clears the lines of a chunk that is whole, and leaves its foot.
const CLEAR: &str = "
if #redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 10) ~= 10 then return 0 end
redis.call('SETRANGE', KEYS[1], 0, string.rep('\\0', ARGV[1]))
return 1";
/// How long a part of another filter may lie on the server to be united.
const UNITING_FOR: Duration = Duration::from_secs(600);

impl<L: Link> Engine<L> {
    /// Copies a filter to Redis, where it must not exist.
    pub(crate) async fn upload<B: tamis::Body>(
        wire: Wire<L>,
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let header = filter.sealed_header();
        let mut this = Self::begin(wire, at, header, options).await?;
        let sent = this.send_bodies(&filter.body()).await;
        this.finish_creation(sent).await
    }

    async fn send_bodies<W: Word>(&mut self, parts: &[&[W]]) -> Result<(), Error> {
        let Shape::Growing(shape) = self.header.shape() else {
            let cells = cells_of(&self.header)?;
            let body = Body::new(cells, &self.name, self.record.generation);
            self.bodies = vec![body.clone()];
            return self.send_body(&body, parts[0], Foot::Open).await;
        };
        let like = BlockedShape::new(
            shape.lines_per_key().into(),
            shape.hashes_per_line(),
            shape.lines_per_key(),
        )?;
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
                // Known from now on, so that a failure takes all away.
                self.bodies.push(body.clone());
                let last = behind.is_empty() && nth + 1 == parts.len();
                let successor = random()?;
                let foot = match last {
                    true => Foot::Open,
                    false => Foot::ClosedFor(successor),
                };
                self.send_body(&body, words, foot).await?;
                layers.push((layer, generation, keys));
                generation = successor;
                rest = behind;
            }
        }
        self.announce_first(&layers).await?;
        self.load_layers().await
    }

    /// Writes the chunks of a new body.
    async fn send_body<W: Word>(
        &mut self,
        body: &Body,
        words: &[W],
        foot: Foot,
    ) -> Result<(), Error> {
        for (window, some) in body.chunks.chunks(CHUNK_WINDOW).enumerate() {
            let send = |(i, chunk): (usize, &Chunk)| {
                let range = bytes_of(i, chunk);
                let mut bytes = vec![0; chunk.stored() as usize];
                copy_words(&words[range.start / 8..range.end / 8], &mut bytes);
                bytes[chunk.len as usize..].copy_from_slice(&foot.encode());
                let command = cmd("SET").arg(&chunk.key).arg(bytes).take();
                Request::new(chunk.slot, &[command]).replicated()
            };
            let requests = (window * CHUNK_WINDOW..).zip(some).map(send).collect();
            self.wire.ask("writing the filter", requests).await?;
        }
        Ok(())
    }

    /// Copies the filter to memory.
    pub(crate) async fn download(&mut self) -> Result<AnyFilter, Error> {
        self.load_layers().await?;
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
        let chunks = self.bodies[number].chunks.clone();
        for (window, some) in chunks.chunks(CHUNK_WINDOW).enumerate() {
            let get = |chunk: &Chunk| {
                let mut get = cmd("GETRANGE");
                get.arg(&chunk.key).arg(0).arg(chunk.stored());
                Request::new(chunk.slot, &[get]).answered_with(chunk.stored())
            };
            let requests = some.iter().map(get).collect();
            let answers = self.wire.ask("reading the filter", requests).await?;
            for (i, answer) in (window * CHUNK_WINDOW..).zip(answers) {
                let range = bytes_of(i, &chunks[i]);
                match &answer[..] {
                    [Value::BulkString(bytes)]
                        if bytes.len() == range.len() + FOOT as usize
                            && Foot::decode(&bytes[range.len()..]).is_some() =>
                    {
                        let len = range.len();
                        to[range].copy_from_slice(&bytes[..len]);
                    }
                    _ => return Err(self.chunk_missing((number, i)).await),
                }
            }
        }
        Ok(())
    }

    /// Adds all keys of a filter that is alike.
    pub(crate) async fn union_with<B: tamis::Body>(
        &mut self,
        other: &AnyFilter<B>,
    ) -> Result<(), Error> {
        let unable = |kind, instead| {
            let what = "united in Redis";
            Err(Error::Filter(tamis::Error::Unable {
                kind,
                what,
                instead,
            }))
        };
        match self.header.shape().kind() {
            Kind::Counting => {
                return unable(
                    Kind::Counting,
                    "counters add up, so a try whose answer was lost could not be repeated; \
                     add the keys of one to the other",
                );
            }
            Kind::Growing => {
                return unable(
                    Kind::Growing,
                    "together their layers would exceed the promised rate; \
                     add the keys of one to the other",
                );
            }
            _ => {}
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
                // Without a foot: if the chunk is missing, so is the foot.
                let mut bytes = vec![0; chunk.len as usize];
                copy_words(&words[range.start / 8..range.end / 8], &mut bytes);
                let ttl = UNITING_FOR.as_millis() as u64;
                let set = cmd("SET").arg(&theirs).arg(bytes).arg("PX").arg(ttl).take();
                let or = cmd("BITOP")
                    .arg("OR")
                    .arg(&chunk.key)
                    .arg(&chunk.key)
                    .arg(&theirs)
                    .take();
                let drop = cmd("UNLINK").arg(&theirs).take();
                let foot = cmd("GETRANGE")
                    .arg(&chunk.key)
                    .arg(chunk.len)
                    .arg(chunk.stored())
                    .take();
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
                // The result of an OR is a new string.
                self.expire_like_record(some).await?;
            }
        }
        self.note(other.keys().get(), false).await
    }

    /// Whether another filter has the same geometry and hashes alike.
    fn check_like<B: tamis::Body>(&self, other: &AnyFilter<B>) -> Result<(), Error> {
        let unlike = |what, ours: String, theirs: String| {
            Err(Error::Filter(tamis::Error::Unlike { what, ours, theirs }))
        };
        let (ours, theirs) = (self.header.shape(), other.shape());
        if ours.kind() != theirs.kind() {
            return unlike(
                "the kind",
                ours.kind().to_string(),
                theirs.kind().to_string(),
            );
        }
        if ours != theirs {
            return unlike("the shape", format!("{ours:?}"), format!("{theirs:?}"));
        }
        let (ours, theirs) = (self.header.hasher(), other.hasher());
        match ours.agrees_with(theirs) {
            true => Ok(()),
            false => unlike(
                "the hash",
                ours.name().into(),
                format!("another {}", theirs.name()),
            ),
        }
    }

    /// Removes all keys.
    pub(crate) async fn clear(&mut self) -> Result<(), Error> {
        self.check_memory()?;
        // Before it is: whoever misses a key then knows why.
        self.note(0, true).await?;
        self.load_layers().await?;
        self.counted = None;
        for number in 0..self.bodies.len() {
            let chunks = self.bodies[number].chunks.clone();
            for (window, some) in chunks.chunks(CHUNK_WINDOW).enumerate() {
                let clear = |chunk: &Chunk| {
                    let mut command = cmd("EVAL");
                    command.arg(CLEAR).arg(1).arg(&chunk.key).arg(chunk.len);
                    Request::new(chunk.slot, &[command]).replicated()
                };
                let requests = some.iter().map(clear).collect();
                let answers = self.wire.ask("clearing the filter", requests).await?;
                let missing = answers
                    .iter()
                    .position(|answer| answer[..] != [Value::Int(1)]);
                if let Some(i) = missing {
                    let part = (number, window * CHUNK_WINDOW + i);
                    return Err(self.chunk_missing(part).await);
                }
            }
        }
        if let Some(growth) = &mut self.growth {
            growth.forget_room();
            let taken = growth.taken.len();
            let mut command = cmd("HSET");
            command.arg(self.state_key());
            for i in 0..taken {
                command.arg(format!("taken.{i}")).arg(0);
            }
            command.arg("keys").arg(0);
            self.wire
                .ask_one("clearing the filter", self.home, command)
                .await?;
        }
        Ok(())
    }

    /// The number of distinct keys, estimated from how full the filter is.
    pub(crate) async fn keys(&mut self) -> Result<KeyCount, Error> {
        match self.counted {
            Some((when, count)) if when.elapsed() < COUNT_HOLDS => return Ok(count),
            _ => {}
        }
        self.load_layers().await?;
        let mut keys = 0;
        for number in 0..self.bodies.len() {
            let chunks = self.bodies[number].chunks.len();
            keys += match self.bodies[number].cells() {
                Cells::Bits(shape) => {
                    let ones = self.ones(number, chunks).await?;
                    shape.keys_from_ones(ones).round() as u64
                }
                Cells::Counters(_) => self.sampled_keys(number).await?,
            };
        }
        // Some keys of a growing filter are in two layers.
        if let Some(counted) = self.counted_keys().await? {
            keys = keys.min(counted);
        }
        let count = KeyCount::Estimated(keys);
        self.counted = Some((Instant::now(), count));
        Ok(count)
    }

    /// The number of keys of a body by a sample of its lines.
    pub(super) async fn sampled_keys(&mut self, number: usize) -> Result<u64, Error> {
        let all = self.bodies[number].cells();
        let (sample, lines) = self.sample(number).await?;
        let all = all.lines() / all.width();
        Ok((sample.estimated_keys() as f64 * all as f64 / lines as f64).round() as u64)
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
            let ones = cmd("BITCOUNT")
                .arg(&chunk.key)
                .arg(0)
                .arg(chunk.len - 1)
                .take();
            let len = cmd("STRLEN").arg(&chunk.key).take();
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

    /// The expected rate now, from what the filter holds: all of it if it is
    /// small, else a sample.
    pub(crate) async fn rate_now(&mut self) -> Result<f64, Error> {
        self.load_layers().await?;
        let mut misses = 1.0;
        for number in 0..self.bodies.len() {
            misses *= 1.0 - self.sample(number).await?.0.rate_now();
        }
        Ok(1.0 - misses)
    }

    /// Some lines of a body as a filter of their own, and their number. Keys
    /// are spread over the lines at random, so any lines will do.
    async fn sample(&mut self, number: usize) -> Result<(AnyFilter, u64), Error> {
        let body = &self.bodies[number];
        let step = body.chunks.len().div_ceil(SAMPLE_CHUNKS);
        let chosen: Vec<usize> = (0..body.chunks.len()).step_by(step).collect();
        let each = SAMPLE / chosen.len() as u64 / 256 * 256;
        let read = |i: &usize| {
            let chunk = &body.chunks[*i];
            let last = chunk.len.min(each) - 1;
            let lines = cmd("GETRANGE").arg(&chunk.key).arg(0).arg(last).take();
            let len = cmd("STRLEN").arg(&chunk.key).take();
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
