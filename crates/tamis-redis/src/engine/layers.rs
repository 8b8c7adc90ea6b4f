//! Adding a layer to a growing filter.
//!
//! A client that finds no room builds the next layer. If it dies or an answer
//! is lost, any other client can continue from any step:
//!
//! 1. Note the layer in the hash (`building.i.generation`), so that its chunks
//!    are never lost track of, and create the chunks under a new generation.
//!    Other clients wait as long as the builder shows that it is alive.
//! 2. Close the newest layer, chunk by chunk: their feet name the successor.
//!    The first chunk decides which successor it is. From then on, a key added
//!    to a closed chunk is new only to its own client, which sees the mark and
//!    lets the next layer decide. So of many workers exactly one gets "new"
//!    even while the filter grows.
//! 3. Announce the layer (`layer.i`); keys now go there.
//!
//! So a closed layer has a successor in the hash, either announced or being
//! built. If the hash has neither, the server has lost it: that is an error,
//! and never "there is no newer layer".

use super::growing::{Growth, encode};
use super::{CHUNK_WINDOW, Engine, LOOK_AGAIN, Part, create_chunks, random, unlink_chunks};
use crate::Error;
use crate::body::{Body, Cells};
use crate::chunks::{Chunk, Foot};
use crate::link::Link;
use crate::request::Request;
use redis::Value;
use std::time::{Duration, Instant};
use tamis::internals::raw::GrowingLayer;

/// A layer larger than this many times all before it is an error.
const MOST_GROWTH: u64 = 1 << 10;
/// A builder that hasn't been heard of for this long may be dead, so another
/// client begins. If it is alive, one of the two has worked in vain.
const BUILDING_FOR: Duration = Duration::from_secs(2);

/// Whose turn it is to build layer `ARGV[2]`: 0, already built; 1, ours, and
/// our layer is now noted in the hash; 2, another client's.
const BEGIN: &str = "
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 0 end
local builder = redis.call('GET', KEYS[3])
if builder and builder ~= ARGV[5] then return 2 end
redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[6])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1";

/// Gives up building.
const ABANDON: &str = "
if redis.call('GET', KEYS[3]) == ARGV[3] then redis.call('DEL', KEYS[3]) end
return redis.call('HDEL', KEYS[2], ARGV[2])";

/// Announces a layer that was being built. Idempotent.
const ANNOUNCE: &str = "
local there = redis.call('HGET', KEYS[2], ARGV[2])
if there and there ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HDEL', KEYS[2], ARGV[4])
redis.call('DEL', KEYS[3])
return 1";

/// Closes a chunk, if it is whole, and returns the generation of its successor.
const CLOSE: &str = "
local foot = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 10)
if #foot ~= 10 then return '' end
local mark = string.byte(foot, 10)
if mark == 0x5A then
  redis.call('BITFIELD', KEYS[1], 'INCRBY', 'u8', (ARGV[1] + 8) * 8, 1)
  return string.sub(foot, 1, 8)
end
if mark ~= 0xA5 then return '' end
redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2])
return string.sub(ARGV[2], 1, 8)";

impl<L: Link> Engine<L> {
    /// Adds a layer, or waits for the one that another client is adding.
    pub(super) async fn grow(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let known = self.growth.as_ref().map_or(0, Growth::announced);
        loop {
            self.load_layers().await?;
            let Some(growth) = &self.growth else {
                return Ok(());
            };
            if growth.announced() > known {
                self.sweep().await;
                return Ok(());
            }
            if growth.pending {
                self.announce_pending().await?;
                continue;
            }
            if start.elapsed() > BUILDING_FOR + self.options.retry_for {
                return Err(Error::Unfinished {
                    name: self.name.clone(),
                });
            }
            let next = GrowingLayer::next(&growth.layers, self.header.rate())?;
            // A layer is at most a few times as large as those before it,
            // unless the number of keys in the hash was tampered with.
            let there: u64 = self.bodies.iter().map(|body| body.cells().lines()).sum();
            if next.shape().lines() / MOST_GROWTH > there {
                return Err(Error::Corrupt {
                    key: self.state_key(),
                    reason: "its layers claim to hold more keys than they can".into(),
                });
            }
            let generation = random()?;
            match self.begin_layer(known, &next, generation).await? {
                Value::Int(1) => self.build(known, &next, generation).await?,
                Value::Int(2) => self.wire.link.pause(LOOK_AGAIN).await,
                _ => {}
            }
        }
    }

    async fn begin_layer(
        &mut self,
        place: usize,
        next: &GrowingLayer,
        generation: u64,
    ) -> Result<Value, Error> {
        let (state, builder) = (self.state_key(), self.builder_key());
        let args = [
            format!("layer.{place}").into_bytes(),
            building(place, generation).into_bytes(),
            encode(next, generation),
            generation.to_le_bytes().to_vec(),
            BUILDING_FOR.as_millis().to_string().into_bytes(),
        ];
        let args = args.each_ref().map(Vec::as_slice);
        self.change_ours("growing", BEGIN, &[&state, &builder], &args)
            .await
    }

    /// Creates the chunks of a layer and closes the newest layer for it, or
    /// finds that it is closed for another.
    async fn build(
        &mut self,
        place: usize,
        next: &GrowingLayer,
        generation: u64,
    ) -> Result<(), Error> {
        let body = Body::new(Cells::Bits(next.shape()), &self.name, generation);
        let room = (next.shape().lines(), generation);
        let created = match self.room_for(&[room], &[]).await {
            Ok(()) => self.create_layer(&body.chunks).await,
            full => full,
        };
        if created.is_ok() {
            // From here on, any client may finish the layer, so its chunks are
            // kept whatever the outcome.
            let decides = self.bodies[place - 1].chunks[..1].to_vec();
            if self.close(&decides, place - 1, generation).await?[0] == generation {
                return Ok(());
            }
        }
        // No client will use these chunks. If deleting them fails, they are
        // still in the hash, and are deleted with the filter or when it grows
        // again.
        if unlink_chunks(&mut self.wire, &body.chunks).await.is_ok() {
            let _ = self.abandon(place, generation).await;
        }
        created
    }

    async fn create_layer(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        for some in chunks.chunks(CHUNK_WINDOW) {
            create_chunks(&mut self.wire, some).await?;
            // Shows that we are alive.
            let time = BUILDING_FOR.as_millis() as u64;
            let command = command!("PEXPIRE", self.builder_key(), time);
            self.ask_home("growing", command).await?;
        }
        self.expire_like_record(chunks).await
    }

    async fn abandon(&mut self, place: usize, generation: u64) -> Result<(), Error> {
        let (state, builder) = (self.state_key(), self.builder_key());
        let field = building(place, generation);
        let args = [field.as_bytes(), &generation.to_le_bytes()];
        self.if_ours("growing", ABANDON, &[&state, &builder], &args)
            .await
            .map(drop)
    }

    /// Closes chunks of a layer, and returns the successor that each is closed
    /// for.
    async fn close(
        &mut self,
        chunks: &[Chunk],
        layer: usize,
        successor: u64,
    ) -> Result<Vec<u64>, Error> {
        let foot = Foot::ClosedFor(successor).encode();
        let close = |chunk: &Chunk| {
            let command = command!("EVAL", CLOSE, 1, &chunk.key, chunk.len, &foot[..]);
            Request::new(chunk.slot, &[command]).replicated()
        };
        let requests = chunks.iter().map(close).collect();
        let answers = self.wire.ask("growing", requests).await?;
        let mut successors = Vec::with_capacity(chunks.len());
        for (i, answer) in answers.iter().enumerate() {
            let successor = match &answer[..] {
                [Value::BulkString(bytes)] => <[u8; 8]>::try_from(&bytes[..]).ok(),
                _ => None,
            };
            match successor {
                Some(successor) => successors.push(u64::from_le_bytes(successor)),
                None => return Err(self.chunk_missing((layer, i)).await),
            }
        }
        Ok(successors)
    }

    /// The successor of a closed layer; `None` if the layer is open. A
    /// successor is announced after the layer is closed.
    pub(super) fn successor(&self, layer: usize) -> Option<u64> {
        let announced = self.growth.as_ref().map_or(0, Growth::announced);
        let next = self.bodies.get(layer + 1)?;
        (layer + 1 < announced).then_some(next.generation)
    }

    /// The error for an open chunk in a closed layer: keys that were added
    /// before it was closed may be missing from it.
    pub(super) fn reopened(&mut self, (layer, chunk): Part) -> Error {
        let key = &self.bodies[layer].chunks[chunk].key;
        let reason = format!(
            "the part {key} is open, although its layer was closed when it was full: someone \
             has restored an older copy of it"
        );
        self.lost(reason)
    }

    /// Closes all layers that have a successor.
    pub(super) async fn close_layers(&mut self) -> Result<(), Error> {
        for layer in 0..self.bodies.len() {
            if let Some(successor) = self.successor(layer) {
                let chunks = self.bodies[layer].chunks.clone();
                self.close(&chunks, layer, successor).await?;
            }
        }
        Ok(())
    }

    /// Finishes the layer that was built last, whoever built it.
    async fn announce_pending(&mut self) -> Result<(), Error> {
        let place = self.bodies.len() - 1;
        let Body {
            generation: successor,
            chunks,
            ..
        } = self.bodies[place].clone();
        let before = self.bodies[place - 1].chunks.clone();
        let closed = self.close(&before, place - 1, successor).await?;
        let (state, builder) = (self.state_key(), self.builder_key());
        let field = format!("layer.{place}");
        if closed.iter().any(|other| *other != successor) {
            return Err(self.why_missing(format!("{state} {field}")).await);
        }
        let value = match &self.growth {
            Some(growth) => encode(&growth.layers[place], successor),
            None => return Ok(()),
        };
        let building = building(place, successor);
        let args = [field.as_bytes(), &value, building.as_bytes()];
        let announced = self
            .change_ours("growing", ANNOUNCE, &[&state, &builder], &args)
            .await?;
        if announced != Value::Int(1) {
            return Err(self.why_missing(format!("{state} {field}")).await);
        }
        // The filter's time to live may have changed meanwhile.
        self.expire_like_record(&chunks).await
    }

    /// Deletes layers that others built in vain; announced layers aren't built
    /// again.
    async fn sweep(&mut self) {
        let abandoned = match &mut self.growth {
            Some(growth) => std::mem::take(&mut growth.abandoned),
            None => return,
        };
        for (place, lines, generation) in abandoned {
            if let Ok(chunks) = self.remains(lines, generation).await
                && unlink_chunks(&mut self.wire, &chunks).await.is_ok()
            {
                let _ = self.abandon(place, generation).await;
            }
        }
    }
}

/// The field of a layer that is being built.
fn building(place: usize, generation: u64) -> String {
    format!("building.{place}.{generation:016x}")
}
