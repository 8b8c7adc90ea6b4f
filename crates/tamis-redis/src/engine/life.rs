//! The time to live of a filter, its deletion, and whether it is complete.

use super::growing::Announced;
use super::parts::TOGETHER;
use super::reading::{is_wrong_type, read_start};
use super::remains::{delete_remains, has_parts, read_record};
use super::room::lines_of;
use super::{Engine, random, unlink_chunks};
use crate::chunks::{Chunk, Foot, slot};
use crate::link::Link;
use crate::record::{LEN, Record, Stage, twin, witness};
use crate::request::Request;
use crate::warning::Warning;
use crate::wire::Wire;
use crate::{Error, Location, Options};
use redis::{Cmd, Value};
use std::time::Duration;
use tamis::Kind;
use tamis::internals::raw::Header;

/// All other parts outlive the record by this much. Clocks of nodes differ, and
/// the filter must expire as a whole.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// Starts the deletion. 1: the filter was ours and is now unclaimed; 0: it is
/// another filter. The record may be gone already.
const BEGIN_DELETION: &str = r"#!lua flags=allow-oom
local record = redis.call('EXISTS', KEYS[1]) == 1 and KEYS[1] or KEYS[2]
if redis.call('TYPE', record).ok ~= 'string' then return 0 end
if redis.call('GETRANGE', record, 0, 23) ~= ARGV[1] then return 0 end
redis.call('SETRANGE', record, 24, '\2')
return 1";

/// Deletes a record that begins with these bytes.
const DROP_DAMAGED: &str = "#!lua flags=allow-oom
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) == ARGV[1] then
  return redis.call('UNLINK', KEYS[1])
end
return 0";

/// Deletes the record and its twin, unless the name has been claimed meanwhile.
const END_DELETION: &str = "#!lua flags=allow-oom
for _, record in ipairs(KEYS) do
  if redis.call('GETRANGE', record, 0, 23) == ARGV[1] then redis.call('DEL', record) end
end
return 1";

impl<L: Link> Engine<L> {
    /// Lets the whole filter expire after `time`.
    pub(crate) async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        self.load_layers().await?;
        // By the server's clock, not ours. The record goes first, because it
        // identifies the other parts.
        let expire = "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return redis.call('PTTL', KEYS[1])";
        let most = i64::MAX as u128 / 4;
        let time = time.as_millis().min(most).to_string();
        let left = self
            .if_ours("expiring the filter", expire, &[], &[time.as_bytes()])
            .await?;
        // Negative: it has expired.
        let left = match left {
            Value::Int(left @ 0..) => Duration::from_millis(left as u64),
            _ => Duration::ZERO,
        };
        self.on_all_parts("expiring the filter", |key| live_for(key, Some(left)))
            .await?;
        self.look_for_dangers().await
    }

    /// Looks for servers that may evict parts of the filter.
    pub(super) async fn look_for_dangers(&mut self) -> Result<(), Error> {
        let expires = self.expires().await?;
        self.warnings = dangers(&mut self.wire, expires).await;
        Ok(())
    }

    async fn expires(&mut self) -> Result<bool, Error> {
        match self.time_to_live().await {
            // It has just expired or been deleted.
            Err(Error::Gone { .. }) => Ok(true),
            left => Ok(left?.is_some()),
        }
    }

    /// Removes the expiry.
    pub(crate) async fn persist(&mut self) -> Result<(), Error> {
        self.load_layers().await?;
        // The record last: until then, the filter expires as a whole.
        self.on_all_parts("persisting the filter", |key| command!("PERSIST", key))
            .await?;
        let persist = "redis.call('PERSIST', KEYS[1]) return 1";
        self.if_ours("persisting the filter", persist, &[], &[])
            .await
            .map(drop)
    }

    /// Runs a command on every part but the record.
    async fn on_all_parts(
        &mut self,
        action: &'static str,
        command: impl Fn(&str) -> Cmd,
    ) -> Result<(), Error> {
        let mut requests: Vec<Request> = self
            .all_chunks()
            .map(|chunk| Request::new(chunk.slot, &[command(&chunk.key)]))
            .collect();
        for key in [twin(&self.name), self.state_key(), witness(&self.name)] {
            requests.push(Request::new(slot(&key), &[command(&key)]));
        }
        self.wire.ask(action, requests).await.map(drop)
    }

    /// Sets the time to live of chunks to that of the record.
    pub(super) async fn expire_like_record(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        let left = self.time_to_live().await?;
        let expire = |chunk: &Chunk| Request::new(chunk.slot, &[live_for(&chunk.key, left)]);
        let requests = chunks.iter().map(expire).collect();
        self.wire
            .ask("expiring the filter", requests)
            .await
            .map(drop)
    }

    /// Sets the time to live of the witness to that of the record.
    pub(super) async fn expire_witness(&mut self) -> Result<(), Error> {
        let left = self.time_to_live().await?;
        let key = witness(&self.name);
        let command = live_for(&key, left);
        self.wire
            .ask_one("expiring the filter", slot(&key), command)
            .await
            .map(drop)
    }

    /// The remaining time to live; `None` if the filter doesn't expire.
    pub(crate) async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        let ask = "return redis.call('PTTL', KEYS[1])";
        match self
            .ask_ours("asking the filter's time to live", ask, &[])
            .await?
        {
            Value::Int(left @ 0..) => Ok(Some(Duration::from_millis(left as u64))),
            Value::Int(-1) => Ok(None),
            _ => Err(self.gone()),
        }
    }

    /// Checks the record and its twin, that every part exists with the right
    /// length and mark, and that every layer but the newest is closed.
    pub(crate) async fn verify(&mut self) -> Result<(), Error> {
        let same = "return redis.call('GETRANGE', KEYS[2], 0, 23) == ARGV[1] and 1 or 0";
        let twin = twin(&self.name);
        let there = self
            .ask_ours("verifying the filter", same, &[&twin])
            .await?;
        if there != Value::Int(1) {
            return Err(self.why_missing(twin).await);
        }
        self.load_layers().await?;
        for (number, body) in self.bodies.clone().iter().enumerate() {
            let expected = match self.bodies.get(number + 1) {
                None => Foot::Open,
                Some(successor) => Foot::ClosedFor(successor.generation),
            };
            // A layer whose successor is being built is partly closed.
            let pending = self.growth.as_ref().is_some_and(|growth| growth.pending);
            let in_part = pending && number + 2 == self.bodies.len();
            let feet = self.feet(&body.chunks).await?;
            let sound = |foot: &Option<Foot>| {
                *foot == Some(expected) || in_part && *foot == Some(Foot::Open)
            };
            if let Some(i) = feet.iter().position(|foot| !sound(foot)) {
                if feet[i] == Some(Foot::Open) {
                    return Err(self.reopened((number, i)));
                }
                return Err(self.chunk_missing((number, i)).await);
            }
            self.compare_parts(number).await?;
        }
        self.compare_counted().await?;
        self.verify_window().await?;
        self.recall().await
    }

    /// Opens the filter with this name for management only, so its secret may
    /// be missing.
    pub(crate) async fn at_hand(
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut this = Self::find(wire, at, options, Record::decode_without_key).await?;
        this.find_bodies().await?;
        Ok(this)
    }

    /// The kind of the filter of this name, if there is one.
    pub(crate) async fn kind_at(
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<Option<Kind>, Error> {
        match Self::left_at(wire, at, options).await {
            Ok(found) => Ok(Some(found.record.header.shape().kind())),
            Err((_, Error::NotFound { .. } | Error::Remains { .. })) => Ok(None),
            Err((_, error)) => Err(error),
        }
    }

    /// Deletes the filter with this name, if any, to make room for another.
    /// Returns its remaining time to live.
    pub(crate) async fn make_way(
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<(Wire<L>, Option<Duration>), Error> {
        let wire = Self::drop_damaged(wire, at.name()).await?;
        let mut this = match Self::left_at(wire, at, options).await {
            Ok(found) => found,
            Err((wire, Error::NotFound { .. })) => return Ok((wire, None)),
            Err((mut wire, Error::Remains { name })) => {
                delete_remains(&mut wire, &name).await?;
                return Ok((wire, None));
            }
            Err((_, error)) => return Err(error),
        };
        let left = match this.time_to_live().await {
            Err(Error::Gone { .. }) => None,
            left => left?,
        };
        Ok((this.delete().await?, left))
    }

    /// An error if the servers lack the memory to replace the filter with this
    /// name.
    pub(crate) async fn room_instead(
        wire: Wire<L>,
        at: &Location,
        header: &Header,
        options: &Options,
    ) -> Result<Wire<L>, Error> {
        let (mut this, there) = match Self::left_at(wire, at, options).await {
            Ok(mut this) => {
                let there = this.all_generations().await?;
                (this, there)
            }
            Err((wire, Error::NotFound { .. } | Error::Remains { .. })) => {
                let record = Record {
                    generation: random()?,
                    state: Stage::Creating,
                    header: *header,
                };
                let name = at.name().to_owned();
                (Self::around(wire, options, name, record), Vec::new())
            }
            Err((_, error)) => return Err(error),
        };
        let new = this.bodies_of(header)?;
        this.room_for(&new, &there).await?;
        Ok(this.wire)
    }

    /// Deletes the filter with this name, or its remains.
    pub(crate) async fn delete_at(
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<(), Error> {
        let wire = Self::drop_damaged(wire, at.name()).await?;
        match Self::left_at(wire, at, options).await {
            Ok(this) => this.delete().await.map(drop),
            Err((mut wire, Error::Remains { name })) => delete_remains(&mut wire, &name).await,
            Err((_, error)) => Err(error),
        }
    }

    /// Deletes a damaged record and twin, so that the rest of the filter is
    /// found as if they had disappeared.
    async fn drop_damaged(mut wire: Wire<L>, name: &str) -> Result<Wire<L>, Error> {
        for key in [name.to_owned(), twin(name)] {
            let bytes = read_start(&mut wire, &key, LEN + 1).await?;
            if Record::is_damaged(&bytes) {
                let command = command!("EVAL", DROP_DAMAGED, 1, &key, bytes);
                wire.ask_one("deleting the filter", slot(&key), command)
                    .await?;
            }
        }
        Ok(wire)
    }

    /// The filter with this name or its remains, without bodies; an error with
    /// the wire if neither record nor twin is left.
    async fn left_at(
        mut wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<Self, (Wire<L>, Error)> {
        let decode = Record::decode_without_key;
        let name = at.name();
        let mut found = read_record(&mut wire, at, decode).await;
        if let Err(Error::Corrupt { .. }) = found {
            found = match read_start(&mut wire, name, LEN + 1).await {
                Ok(bytes) if Record::is_damaged(&bytes) => {
                    Err(Error::Remains { name: name.into() })
                }
                Ok(_) => found,
                Err(error) => Err(error),
            };
        }
        if let Err(Error::Remains { .. }) = found {
            // The record is gone; the twin may not be.
            found = match read_start(&mut wire, &twin(name), LEN + 1).await {
                Ok(bytes) if bytes.is_empty() || Record::is_damaged(&bytes) => found,
                Ok(bytes) => decode(&twin(name), &bytes),
                Err(error) => Err(error),
            };
        } else if let Err(Error::NotFound { .. }) = found {
            match has_parts(&mut wire, name).await {
                Ok(false) => {}
                Ok(true) => found = Err(Error::Remains { name: name.into() }),
                Err(error) => found = Err(error),
            }
        }
        match found {
            Ok(record) => Ok(Self::around(wire, options, name.to_owned(), record)),
            Err(error) => Err((wire, error)),
        }
    }

    /// Deletes the filter. The record goes last: as long as it exists, an
    /// interrupted deletion can be repeated.
    pub(crate) async fn delete(mut self) -> Result<Wire<L>, Error> {
        const ACTION: &str = "deleting the filter";
        if self.run_on_records(ACTION, BEGIN_DELETION).await? != Value::Int(1) {
            return Err(self.gone());
        }
        for (lines, generation) in self.all_generations().await? {
            let chunks = self.remains(lines, generation).await?;
            for last in chunks.rchunks(TOGETHER) {
                if self.kind() == Kind::Window {
                    match self.drop_strings(ACTION, last, false).await {
                        // The hash has another type; the strings expire by
                        // themselves.
                        Err(error) if is_wrong_type(&error) => {}
                        dropped => {
                            dropped?;
                            continue;
                        }
                    }
                }
                unlink_chunks(&mut self.wire, last).await?;
            }
        }
        // One request each: while a slot moves, its keys are split between two
        // nodes.
        for key in [self.state_key(), self.builder_key(), witness(&self.name)] {
            let command = command!("UNLINK", &key);
            self.wire.ask_one(ACTION, slot(&key), command).await?;
        }
        self.run_on_records(ACTION, END_DELETION).await?;
        Ok(self.wire)
    }

    /// Runs a script on the record and its twin.
    async fn run_on_records(&mut self, action: &'static str, script: &str) -> Result<Value, Error> {
        let (twin, identity) = (twin(&self.name), self.record.identity());
        let command = command!("EVAL", script, 2, &self.name, twin, &identity[..]);
        self.ask_home(action, command).await
    }

    /// The lines and generations of all bodies, including layers that are being
    /// built.
    pub(super) async fn all_generations(&mut self) -> Result<Vec<(u64, u64)>, Error> {
        let first = lines_of(&self.record.header)?;
        let mut all = vec![(first, self.record.generation)];
        if self.record.header.shape().kind() == Kind::Growing {
            // Ignore contents that we didn't write.
            let announced = match self.announced().await {
                Err(Error::Corrupt { .. } | Error::Filter(_)) => Announced::default(),
                Err(error) if is_wrong_type(&error) => Announced::default(),
                announced => announced?,
            };
            let building = announced.building.into_iter().map(|(_, layer)| layer);
            let layers = announced.layers.into_iter().chain(building);
            all.extend(layers.map(|layer| (layer.about.shape().lines(), layer.generation)));
        }
        Ok(all)
    }
}

/// Servers that may evict parts of a filter. `expires`: whether it has an
/// expiry. Servers that don't answer aren't suspected.
pub(crate) async fn dangers<L: Link>(wire: &mut Wire<L>, expires: bool) -> Vec<Warning> {
    let nodes = wire.link.masters();
    let info = |(_, slot): &(_, u16)| Request::new(*slot, &[command!("INFO", "memory")]);
    let requests = nodes.iter().map(info).collect();
    let Ok(answers) = wire.ask("asking about memory", requests).await else {
        return Vec::new();
    };
    (nodes.iter().zip(answers))
        .filter_map(|((node, _), mut answer)| {
            let info: String = redis::from_redis_value(answer.pop()?).ok()?;
            Warning::of_memory(&node.to_string(), &info, expires)
        })
        .collect()
}

/// Lets a part live slightly longer than the record.
fn live_for(key: &str, left: Option<Duration>) -> Cmd {
    match left {
        None => command!("PERSIST", key),
        Some(left) => {
            let left = (left + GRACE).as_millis() as u64;
            command!("PEXPIRE", key, left)
        }
    }
}
