//! Growing filters: layers of bodies, shared by many clients.
//!
//! A hash next to the record, `{NAME}:generation`, holds for each layer its
//! description with the generation of its chunks (`layer.i`), and the number of
//! new keys that room has been given out for (`taken.i`). A client takes room
//! before it adds keys, so that all clients together keep the promised rate.
//! Clients also count new keys there (`keys`), because the bits can't tell:
//! keys added while a layer is being closed are in two layers.

use super::adding::unconfirmed_of_all;
use super::{Engine, create_chunks};
use crate::Error;
use crate::body::{Body, Cells};
use crate::chunks::Foot;
use crate::link::Link;
use crate::request::Request;
use redis::Value;
use tamis::Hash;
use tamis::internals::raw::{BlockedShape, GrowingLayer, GrowingShape, Header, Shape};

/// Keys that are looked up together in the older layers.
const WINDOW: usize = 1 << 13;
/// The least room to take, so that not every key costs a command …
const LEAST_ROOM: u64 = 1 << 10;
/// … but no more than this share of a layer, because a client that ends leaves
/// it unused.
const ROOM_SHARE: u64 = 256;
/// The largest share to take at once, however many keys there are: others may
/// be adding the same keys, and find no room while ours is unused.
const MOST_SHARE: u64 = 16;

/// The known layers of a growing filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    pub(super) layers: Vec<GrowingLayer>,
    /// For each layer, the number of keys that room has been given out for.
    pub(super) taken: Vec<u64>,
    /// The newest layer isn't announced yet. It may be queried, but not added
    /// to.
    pub(super) pending: bool,
    /// Layers that clients built in vain and didn't delete: index, lines and
    /// generation.
    pub(super) abandoned: Vec<(usize, u64, u64)>,
    /// The rest of our room in the newest layer.
    room: u64,
}

impl Growth {
    /// Leaves the room to the original that this was copied from.
    pub(super) const fn forget_room(&mut self) {
        self.room = 0;
    }

    /// The number of announced layers.
    pub(super) fn announced(&self) -> usize {
        self.layers.len() - usize::from(self.pending)
    }
}

/// The contents of a growing filter's hash.
#[derive(Default)]
pub(super) struct Announced {
    pub(super) layers: Vec<Layer>,
    /// Layers that are or were being built, with their indices.
    pub(super) building: Vec<(usize, Layer)>,
}

#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) about: GrowingLayer,
    pub(super) generation: u64,
    taken: u64,
}

impl<L: Link> Engine<L> {
    pub(super) fn state_key(&self) -> String {
        format!("{{{}}}:{:016x}", self.name, self.record.generation)
    }

    pub(super) fn builder_key(&self) -> String {
        format!("{}:growing", self.state_key())
    }

    /// Creates the chunks of the first layer and announces it.
    pub(super) async fn begin_growth(&mut self, first: GrowingLayer) -> Result<(), Error> {
        let generation = self.record.generation;
        let body = Body::new(Cells::Bits(first.shape()), &self.name, generation);
        self.bodies = vec![body];
        create_chunks(&mut self.wire, &self.bodies[0].chunks).await?;
        self.announce_first(&[(first, generation, 0)], 0).await?;
        self.load_layers().await
    }

    /// Announces the layers of a new filter, with their generations,
    /// the room already taken in each, and the least number of keys.
    pub(super) async fn announce_first(
        &mut self,
        layers: &[(GrowingLayer, u64, u64)],
        counted: u64,
    ) -> Result<(), Error> {
        let mut command = command!("HSET", self.state_key());
        for (i, (layer, generation, keys)) in layers.iter().enumerate() {
            command
                .arg(format!("layer.{i}"))
                .arg(encode(layer, *generation));
            command.arg(format!("taken.{i}")).arg(keys);
        }
        command.arg("keys").arg(counted);
        let request = Request::new(self.home, &[command]).replicated();
        let announced = self.wire.ask_request("creating the filter", request);
        announced.await.map(drop)
    }

    /// Reads the hash.
    pub(super) async fn announced(&mut self) -> Result<Announced, Error> {
        let Shape::Growing(shape) = self.record.header.shape() else {
            return Ok(Announced::default());
        };
        let like = like(&shape)?;
        let key = self.state_key();
        let command = command!("HGETALL", &key);
        let answer = self.ask_home("opening the filter", command).await?;
        let fields: Vec<(String, Vec<u8>)> =
            redis::from_redis_value(answer).map_err(|e| Error::Corrupt {
                key: key.clone(),
                reason: e.to_string(),
            })?;
        let field = |name: String| Some(&fields.iter().find(|(field, _)| *field == name)?.1);
        let layer = |i: usize, value: &[u8]| {
            let (about, generation) = decode(&key, value, &like)?;
            let taken = field(format!("taken.{i}"));
            let taken = taken.and_then(|text| str::from_utf8(text).ok()?.parse::<u64>().ok());
            Ok::<_, Error>(Layer {
                taken: taken.unwrap_or(0).min(about.capacity()),
                about,
                generation,
            })
        };
        let mut announced = Announced::default();
        while let Some(value) = field(format!("layer.{}", announced.layers.len())) {
            let i = announced.layers.len();
            announced.layers.push(layer(i, value)?);
        }
        for (name, value) in &fields {
            let place = name
                .strip_prefix("building.")
                .and_then(|rest| rest.split_once('.')?.0.parse().ok());
            if let Some(i) = place {
                announced.building.push((i, layer(i, value)?));
            }
        }
        Ok(announced)
    }

    /// Reads the list of layers.
    pub(super) async fn load_layers(&mut self) -> Result<(), Error> {
        if self.record.header.shape().kind() != tamis::Kind::Growing {
            return self.load_window().await.map(drop);
        }
        let mut looked_at = 0;
        loop {
            let Announced {
                mut layers,
                building,
            } = self.announced().await?;
            let known = self.growth.as_ref().map_or(1, Growth::announced);
            if layers.len() < known {
                return Err(self.why_missing(self.state_key()).await);
            }
            for (place, layer) in layers.iter().enumerate() {
                self.find_layer(place, layer).await?;
            }
            let announced = layers.len();
            let newest = self.bodies[announced - 1].chunks.clone();
            let feet = self.feet(&newest).await?;
            if let Some(missing) = feet.iter().position(Option::is_none) {
                return Err(self.chunk_missing((announced - 1, missing)).await);
            }
            let successor = feet.iter().find_map(|foot| match foot {
                Some(Foot::ClosedFor(successor)) => Some(*successor),
                _ => None,
            });
            let built = building
                .iter()
                .find(|(i, layer)| *i == announced && Some(layer.generation) == successor);
            match (successor, built) {
                (None, _) => {}
                (Some(_), Some((_, layer))) => layers.push(layer.clone()),
                // The layer has been announced, so the hash has changed since
                // we read it.
                (Some(_), None) if looked_at < announced => {
                    looked_at = announced;
                    continue;
                }
                (Some(_), None) => {
                    let part = format!("{} layer.{announced}", self.state_key());
                    return Err(self.why_missing(part).await);
                }
            }
            self.bodies.truncate(layers.len());
            if let Some(pending) = layers.get(announced) {
                self.find_layer(announced, pending).await?;
            }
            let growth = Growth {
                taken: layers.iter().map(|layer| layer.taken).collect(),
                layers: layers.into_iter().map(|layer| layer.about).collect(),
                pending: successor.is_some(),
                abandoned: (building.iter().filter(|(i, _)| *i < announced))
                    .map(|(i, layer)| (*i, layer.about.shape().lines(), layer.generation))
                    .collect(),
                room: match &self.growth {
                    Some(growth) if growth.layers.len() == announced => growth.room,
                    _ => 0,
                },
            };
            self.header = Header::of_layers(&self.record.header, &growth.layers)?;
            self.growth = Some(growth);
            return Ok(());
        }
    }

    /// Finds the body of layer `place`, unless it is known.
    async fn find_layer(&mut self, place: usize, layer: &Layer) -> Result<(), Error> {
        match self.bodies.get(place) {
            Some(body) if body.generation == layer.generation => {}
            // The server has lost the layer that we know.
            Some(_) => {
                let part = format!("{} layer.{place}", self.state_key());
                return Err(self.why_missing(part).await);
            }
            None => {
                let cells = Cells::Bits(layer.about.shape());
                let body = self.find_body(cells, layer.generation).await?;
                self.bodies.push(body);
            }
        }
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
        // `pending` holds the indices of keys not known to be present; `from`
        // holds for each the layer where its lookup starts. If we were the
        // first to add a key to a closed layer, later layers decide whether it
        // is new, because a lookup in the closed layer would find our own bits.
        let replicated = self.wire.wait.is_some();
        let mut pending: Vec<usize> = (0..hashes.len()).collect();
        let mut from = vec![0; hashes.len()];
        while !pending.is_empty() {
            if self.growth.as_ref().is_some_and(|growth| growth.pending) {
                self.grow().await?;
            }
            let newest = self.bodies.len() - 1;
            let mut known = vec![false; hashes.len()];
            pending.sort_by_key(|i| from[*i]);
            let mut newer = false;
            for alike in pending.chunk_by(|a, b| from[*a] == from[*b]) {
                let asked: Vec<Hash> = alike.iter().map(|i| hashes[*i]).collect();
                let mut there = vec![false; asked.len()];
                let first = from[alike[0]];
                newer |= self
                    .ask_bodies(first, newest, &asked, &mut there, replicated)
                    .await?;
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
            let mut changed = self.add_some(newest, hashes, &now, new).await;
            let unconfirmed = changed.unconfirmed.len();
            let taken = now.iter().filter(|i| new[**i]).count() + unconfirmed;
            if let Some(growth) = &mut self.growth {
                growth.room = growth.room.saturating_sub(taken as u64);
            }
            self.count_new(((taken - unconfirmed) as u64).saturating_sub(changed.ambiguous))
                .await;
            let closed = !changed.undecided.is_empty();
            for i in changed.undecided.drain(..) {
                from[i] = newest + 1;
                pending.push(i);
            }
            if unconfirmed > 0 {
                changed.unconfirmed.append(&mut pending);
            }
            self.conclude(newest, changed, hashes.len()).await?;
            if closed {
                self.grow().await?;
            }
        }
        Ok(())
    }

    /// Takes room for `keys` keys in the newest layer; returns how much there
    /// is.
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
        let Value::Int(taken) = self
            .change_ours("adding keys", take, &[&key], &args)
            .await?
        else {
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
}

/// Encodes the description of a layer and the generation of its chunks.
pub(super) fn encode(layer: &GrowingLayer, generation: u64) -> Vec<u8> {
    let mut value = layer.encode(0).to_vec();
    value.extend_from_slice(&generation.to_le_bytes());
    value
}

/// The shape that all layers of a filter share, apart from their size.
pub(super) fn like(shape: &GrowingShape) -> Result<BlockedShape, Error> {
    // One line in each bank.
    let (hashes, per_key) = (shape.hashes_per_line(), shape.lines_per_key());
    Ok(BlockedShape::new(per_key.into(), hashes, per_key)?)
}

/// Decodes the description of a layer; never panics, whatever the bytes.
pub(super) fn decode(
    key: &str,
    value: &[u8],
    like: &BlockedShape,
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
