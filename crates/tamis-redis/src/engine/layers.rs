//! The next layer of a growing filter.
//!
//! Whoever finds no room builds the next layer, in steps that anyone can go on
//! with wherever a client died or an answer was lost:
//!
//! 1. It says so in the hash (`building.i.generation`), so that the chunks are
//!    never lost out of sight, and creates them, under a generation of their
//!    own. Others wait while they hear of it.
//! 2. It closes the newest layer, chunk by chunk: their feet name the
//!    successor. Which that is the first chunk decides, and nobody else can any
//!    more. From then on, what is added to a closed chunk is new to nobody but
//!    its client, which sees the mark and has the next layer decide: so of many
//!    workers exactly one gets "new" even while the filter grows.
//! 3. It announces the layer (`layer.i`), and keys go there.
//!
//! So a layer that is closed has a successor in the hash, as a layer or as one
//! that is being built. If it is in neither, the server has lost it: that is an
//! error, and never "there is no newer layer".

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

/// How many times as large as all before it a layer is, by far.
const MOST_GROWTH: u64 = 1 << 10;
/// A client that builds a layer and is not heard of for so long may be dead:
/// another begins. If it lives, one of the two has worked in vain.
const BUILDING_FOR: Duration = Duration::from_secs(2);

/// Whose turn it is to build layer `ARGV[2]`: nobody's any more (0), ours (1)
/// or another's (2). If ours, what we build is in the hash.
const BEGIN: &str = "
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 0 end
local builder = redis.call('GET', KEYS[3])
if builder and builder ~= ARGV[5] then return 2 end
redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[6])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1";

/// We give up building.
const ABANDON: &str = "
if redis.call('GET', KEYS[3]) == ARGV[3] then redis.call('DEL', KEYS[3]) end
return redis.call('HDEL', KEYS[2], ARGV[2])";

/// What was being built is a layer: as often as anyone likes.
const ANNOUNCE: &str = "
local there = redis.call('HGET', KEYS[2], ARGV[2])
if there and there ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HDEL', KEYS[2], ARGV[4])
redis.call('DEL', KEYS[3])
return 1";

/// Closes a chunk, if it is whole, and returns the layer that it is closed for.
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
            // A layer is a few times as large as those before it, unless
            // someone has written into the hash how many keys they are for.
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

    /// Creates the chunks of a layer and closes the newest one for it, or finds
    /// that it is closed for another.
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
            // From here on anyone may bring it to its end, and whatever the
            // outcome, nothing is taken back.
            let decides = self.bodies[place - 1].chunks[..1].to_vec();
            if self.close(&decides, place - 1, generation).await?[0] == generation {
                return Ok(());
            }
        }
        // Nobody will ever know of them. If this fails they are still in the
        // hash, and go with the filter or when it grows again.
        if unlink_chunks(&mut self.wire, &body.chunks).await.is_ok() {
            let _ = self.abandon(place, generation).await;
        }
        created
    }

    async fn create_layer(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        for some in chunks.chunks(CHUNK_WINDOW) {
            create_chunks(&mut self.wire, some).await?;
            // We are alive.
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

    /// Closes chunks of a layer, and returns for which successor each is closed.
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

    /// The layer that a layer is closed for, if it is closed: its successor was
    /// announced after that.
    pub(super) fn successor(&self, layer: usize) -> Option<u64> {
        let announced = self.growth.as_ref().map_or(0, Growth::announced);
        let next = self.bodies.get(layer + 1)?;
        (layer + 1 < announced).then_some(next.generation)
    }

    /// A chunk of a closed layer is open: keys that were added before the layer was
    /// closed may be missing from it.
    pub(super) fn reopened(&mut self, (layer, chunk): Part) -> Error {
        let key = &self.bodies[layer].chunks[chunk].key;
        let reason = format!(
            "the part {key} is open, although its layer was closed when it was full: someone \
             has restored an older copy of it"
        );
        self.lost(reason)
    }

    /// Closes what was open before.
    pub(super) async fn close_layers(&mut self) -> Result<(), Error> {
        for layer in 0..self.bodies.len() {
            if let Some(successor) = self.successor(layer) {
                let chunks = self.bodies[layer].chunks.clone();
                self.close(&chunks, layer, successor).await?;
            }
        }
        Ok(())
    }

    /// Brings the layer that was built last to its end, whoever built it.
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
        // The filter's time to live may have changed in between.
        self.expire_like_record(&chunks).await
    }

    /// Takes away what others have built in vain: layers that were announced
    /// are not built again.
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
