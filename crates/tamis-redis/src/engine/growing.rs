//! Filters that grow: layers of bodies, which many clients fill and add to.
//!
//! A hash beside the record, `{NAME}:generation`, holds for each layer its
//! description and the generation of its chunks (`layer.i`), and for how many
//! new keys room has been given out (`taken.i`). A client takes room before it
//! adds keys, so that all clients together keep the promised rate. Whoever
//! finds no room creates the chunks of the next layer, under a generation of
//! their own, closes the newest one, and then announces the new one, which
//! only one can do: all that is in a layer was added after its chunks were
//! there, and whatever an older layer decides was decided before.

use super::adding::{add_some, unconfirmed_of_all};
use super::{Engine, LOOK_AGAIN, create_chunks, random, unlink_chunks};
use crate::Error;
use crate::body::{Body, Cells};
use crate::chunks::{CLOSED, Chunk};
use crate::link::{Link, Request};
use redis::{Cmd, Value, cmd};
use std::time::{Duration, Instant};
use tamis::Hash;
use tamis::raw::{GrowingLayer, Header, Shape};

/// Keys for which the older layers are asked together.
const WINDOW: usize = 1 << 13;
/// Room is taken for so many keys at least, lest every single key cost a
/// command for it …
const LEAST_ROOM: u64 = 1 << 10;
/// … but no more than this share of a layer, which a client that ends
/// leaves unused.
const ROOM_SHARE: u64 = 256;
/// However many keys there are, no more than this share at once: others add
/// the same keys perhaps, and find no room while ours is not used.
const MOST_SHARE: u64 = 16;
/// While a client creates a layer, others wait so long before they do it.
const GROWING_FOR: Duration = Duration::from_secs(30);

/// What a growing filter is made of, as far as we know.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    pub(super) layers: Vec<GrowingLayer>,
    /// Of each layer, the keys that room has been given out for.
    pub(super) taken: Vec<u64>,
    /// What is left of our room in the newest layer.
    room: u64,
}

impl Growth {
    /// Leaves the room to the one this was copied from.
    pub(super) const fn forget_room(&mut self) {
        self.room = 0;
    }
}

impl<L: Link> Engine<L> {
    pub(super) fn state_key(&self) -> String {
        format!("{{{}}}:{:016x}", self.name, self.record.generation)
    }

    /// Whether there is a layer that we don't know: the command that asks.
    pub(super) fn newer_layer(&self) -> Option<Cmd> {
        let growth = self.growth.as_ref()?;
        let field = format!("layer.{}", growth.layers.len());
        Some(cmd("HEXISTS").arg(self.state_key()).arg(field).take())
    }

    /// Creates the chunks of the first layer and announces it.
    pub(super) async fn begin_growth(&mut self, first: GrowingLayer) -> Result<(), Error> {
        let generation = self.record.generation;
        let body = Body::new(Cells::Bits(first.shape()), &self.name, generation);
        self.bodies = vec![body];
        create_chunks(&mut self.wire, &self.bodies[0].chunks).await?;
        self.announce_first(&[(first, generation, 0)]).await?;
        self.load_layers().await
    }

    /// Announces the layers of a new filter, with their generations and keys.
    pub(super) async fn announce_first(
        &mut self,
        layers: &[(GrowingLayer, u64, u64)],
    ) -> Result<(), Error> {
        let mut command = cmd("HSET");
        command.arg(self.state_key());
        for (i, (layer, generation, keys)) in layers.iter().enumerate() {
            command
                .arg(format!("layer.{i}"))
                .arg(encode(layer, *generation));
            command.arg(format!("taken.{i}")).arg(keys);
        }
        self.wire
            .ask_one("creating the filter", self.home, command)
            .await?;
        Ok(())
    }

    /// Learns of all layers.
    pub(super) async fn load_layers(&mut self) -> Result<(), Error> {
        let Shape::Growing(shape) = self.record.header.shape() else {
            return Ok(());
        };
        let key = self.state_key();
        let command = cmd("HGETALL").arg(&key).take();
        let answer = self
            .wire
            .ask_one("opening the filter", self.home, command)
            .await?;
        let fields: Vec<(String, Vec<u8>)> =
            redis::from_redis_value(answer).map_err(|e| Error::Corrupt {
                key: key.clone(),
                reason: e.to_string(),
            })?;
        let field = |name: String| Some(&fields.iter().find(|(field, _)| *field == name)?.1);
        let mut growth = Growth::default();
        while let Some(value) = field(format!("layer.{}", growth.layers.len())) {
            let i = growth.layers.len();
            let like =
                tamis::raw::BlockedShape::new(1, shape.hashes_per_line(), shape.lines_per_key())?;
            let (layer, generation) = decode(&key, value, &like)?;
            if i == self.bodies.len() {
                let cells = Cells::Bits(layer.shape());
                self.bodies.push(Body::new(cells, &self.name, generation));
            }
            let taken = field(format!("taken.{i}"))
                .and_then(|text| str::from_utf8(text).ok()?.parse::<u64>().ok());
            growth.taken.push(taken.unwrap_or(0).min(layer.capacity()));
            growth.layers.push(layer);
        }
        let known = self.growth.as_ref().map_or(1, |known| known.layers.len());
        if growth.layers.len() < known {
            return match self
                .if_ours("opening the filter", "return 1", &[], &[])
                .await
            {
                Ok(_) => Err(Error::MissingChunk {
                    name: self.name.clone(),
                    chunk: key,
                }),
                Err(error) => Err(error),
            };
        }
        if let Some(known) = &self.growth
            && known.layers.len() == growth.layers.len()
        {
            growth.room = known.room;
        }
        self.header = Header::of_layers(&self.record.header, &growth.layers)?;
        self.growth = Some(growth);
        Ok(())
    }

    /// Adds keys to a growing filter.
    pub(super) async fn insert_growing(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
    ) -> Result<(), Error> {
        for (window, keys) in hashes.chunks(WINDOW).enumerate() {
            let start = window * WINDOW;
            if let Err(error) = self.insert_window(keys, &mut new[start..]).await {
                return Err(unconfirmed_of_all(error, start, keys.len(), hashes.len()));
            }
        }
        Ok(())
    }

    async fn insert_window(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        // The keys that are not known to be in, by their places, and the layer
        // from which on each is to be looked for: of one that we were the first
        // to bring to a layer which was closed, the layers behind that decide
        // whether it is new, and asking it would find what we have left there.
        let mut pending: Vec<usize> = (0..hashes.len()).collect();
        let mut from = vec![0; hashes.len()];
        while !pending.is_empty() {
            let newest = self.bodies.len() - 1;
            let mut known = vec![false; hashes.len()];
            pending.sort_by_key(|i| from[*i]);
            let mut newer = false;
            for alike in pending.chunk_by(|a, b| from[*a] == from[*b]) {
                let asked: Vec<Hash> = alike.iter().map(|i| hashes[*i]).collect();
                let mut there = vec![false; asked.len()];
                let first = from[alike[0]];
                newer |= self.ask_bodies(first, newest, &asked, &mut there).await?;
                for (i, there) in alike.iter().zip(there) {
                    known[*i] = there;
                }
            }
            if newer {
                self.load_layers().await?;
                continue;
            }
            pending.retain(|i| !known[*i]);
            if pending.is_empty() {
                break;
            }
            let room = self.take_room(pending.len() as u64).await? as usize;
            if room == 0 {
                self.grow().await?;
                continue;
            }
            let now: Vec<usize> = pending.drain(..pending.len().min(room)).collect();
            let body = &self.bodies[newest];
            let mut trouble = add_some(&mut self.wire, body, hashes, &now, new).await;
            let unconfirmed = trouble.unconfirmed.len();
            let taken = now.iter().filter(|i| new[**i]).count() + unconfirmed;
            if let Some(growth) = &mut self.growth {
                growth.room = growth.room.saturating_sub(taken as u64);
            }
            let closed = !trouble.undecided.is_empty();
            for i in trouble.undecided.drain(..) {
                from[i] = newest + 1;
                pending.push(i);
            }
            if unconfirmed > 0 {
                trouble.unconfirmed.append(&mut pending);
            }
            self.conclude(newest, trouble, hashes.len()).await?;
            if closed {
                self.grow().await?;
            }
        }
        Ok(())
    }

    /// Takes room for `keys` keys in the newest layer; how much there is.
    async fn take_room(&mut self, keys: u64) -> Result<u64, Error> {
        let Some(growth) = &self.growth else {
            return Ok(0);
        };
        let newest = growth.layers.len() - 1;
        let capacity = growth.layers[newest].capacity();
        let room = growth.room;
        if room >= keys {
            return Ok(room);
        }
        let most = (capacity / MOST_SHARE).max(1);
        let more = (keys - room)
            .max(LEAST_ROOM.min(capacity / ROOM_SHARE))
            .min(most);
        let key = self.state_key();
        let take = "return redis.call('HINCRBY', KEYS[2], ARGV[2], ARGV[3])";
        let args = [format!("taken.{newest}"), more.to_string()];
        let args = args.each_ref().map(|arg| arg.as_bytes());
        let Value::Int(taken) = self.if_ours("adding keys", take, &[&key], &args).await? else {
            return Ok(room);
        };
        let before = (taken as u64).saturating_sub(more);
        let room = room + capacity.saturating_sub(before).min(more);
        if let Some(growth) = &mut self.growth {
            growth.room = room;
            growth.taken[newest] = (taken as u64).min(capacity);
        }
        Ok(room)
    }

    /// Adds a layer, or waits for the one that another client is adding.
    async fn grow(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let known = self.bodies.len();
        let lock = format!("{}:growing", self.state_key());
        let ours = format!("{:016x}", random()?);
        loop {
            let mut command = cmd("SET");
            command.arg(&lock).arg(&ours).arg("NX");
            command.arg("PX").arg(GROWING_FOR.as_millis() as u64);
            let locked = self.wire.ask_one("growing", self.home, command).await? != Value::Nil;
            // Another may have grown it before we had the lock.
            self.load_layers().await?;
            if self.bodies.len() > known || locked {
                let grown = match self.bodies.len() > known {
                    true => Ok(()),
                    false => self.add_layer().await,
                };
                if locked {
                    let unlock = "if redis.call('GET', KEYS[2]) == ARGV[2] then \
                                  return redis.call('DEL', KEYS[2]) end return 0";
                    let _ = self
                        .if_ours("growing", unlock, &[&lock], &[ours.as_bytes()])
                        .await;
                }
                return grown;
            }
            if start.elapsed() > GROWING_FOR + self.options.retry_for {
                return Err(Error::Unfinished {
                    name: self.name.clone(),
                });
            }
            self.wire.link.pause(LOOK_AGAIN).await;
        }
    }

    /// Closes the newest layer, before another is announced. Until a client
    /// knows of that, what it adds here is new to nobody but itself, and the
    /// mark tells it to have the next layer decide: so that of many workers
    /// exactly one is told "new" even while the filter grows.
    async fn close_newest(&mut self) -> Result<(), Error> {
        let newest = self.bodies.len() - 1;
        let close = |chunk: &Chunk| {
            let mut command = cmd("EVAL");
            // A chunk that is missing must not come back.
            command.arg(
                "if redis.call('STRLEN', KEYS[1]) ~= ARGV[1] + 1 then return 0 end \
                 redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2]) return 1",
            );
            command
                .arg(1)
                .arg(&chunk.key)
                .arg(chunk.len)
                .arg(&[CLOSED][..]);
            Request::new(chunk.slot, &[command])
        };
        let requests = self.bodies[newest].chunks.iter().map(close).collect();
        let answers = self.wire.ask("growing", requests).await?;
        match answers
            .iter()
            .position(|answer| answer[..] != [Value::Int(1)])
        {
            Some(chunk) => Err(self.why_missing((newest, chunk)).await),
            None => Ok(()),
        }
    }

    async fn add_layer(&mut self) -> Result<(), Error> {
        let Some(growth) = &self.growth else {
            return Ok(());
        };
        let next = GrowingLayer::next(&growth.layers, self.header.rate())?;
        let field = format!("layer.{}", growth.layers.len());
        let generation = random()?;
        let body = Body::new(Cells::Bits(next.shape()), &self.name, generation);
        let key = self.state_key();
        let mut announced = create_chunks(&mut self.wire, &body.chunks).await;
        if announced.is_ok() {
            announced = self.expire_like_record(&body.chunks).await;
        }
        if announced.is_ok() {
            announced = self.close_newest().await;
        }
        let mut won = false;
        if announced.is_ok() {
            let announce = "if redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3]) == 1 or \
                            redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[3] then return 1 end return 0";
            let value = encode(&next, generation);
            let args = [field.as_bytes(), &value];
            match self.if_ours("growing", announce, &[&key], &args).await {
                Ok(answer) => won = answer == Value::Int(1),
                Err(error) => announced = Err(error),
            }
        }
        if !won {
            // Nobody knows of them.
            let _ = unlink_chunks(&mut self.wire, &body.chunks).await;
        } else {
            // The filter's time to live may have changed in between.
            self.expire_like_record(&body.chunks).await?;
        }
        announced?;
        self.load_layers().await
    }
}

/// The description of a layer, and the generation of its chunks.
fn encode(layer: &GrowingLayer, generation: u64) -> Vec<u8> {
    let mut value = layer.encode(0).to_vec();
    value.extend_from_slice(&generation.to_le_bytes());
    value
}

fn decode(
    key: &str,
    value: &[u8],
    like: &tamis::raw::BlockedShape,
) -> Result<(GrowingLayer, u64), Error> {
    let parts = value.split_first_chunk::<64>();
    let parts = parts.and_then(|(line, rest)| Some((line, <[u8; 8]>::try_from(rest).ok()?)));
    let Some((line, generation)) = parts else {
        return Err(Error::Corrupt {
            key: key.to_owned(),
            reason: format!("length of a layer: expected 72, got {}", value.len()),
        });
    };
    let (layer, _) = GrowingLayer::decode(line, like)?;
    Ok((layer, u64::from_le_bytes(generation)))
}
