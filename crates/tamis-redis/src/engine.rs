//! The operations of a filter in Redis, written once for both the blocking and
//! the non-blocking link.

mod adding;
mod asking;
mod copying;
mod counted;
mod fill;
mod growing;
mod layers;
mod life;
mod memory;
mod names;
mod pages;
mod parts;
mod periods;
mod reading;
mod remains;
mod room;
pub(crate) mod survey;
mod watch;
mod window;

pub(crate) use life::dangers;
pub(crate) use periods::not_copied;

use crate::body::{Body, Cells};
use crate::chunks::{Chunk, Foot, slot};
use crate::link::Link;
use crate::record::{Record, Stage, twin};
use crate::request::Request;
use crate::sliding::Sliding;
use crate::warning::Warning;
use crate::wire::Wire;
use crate::{Error, Location, Options, Stats};
use fill::Fill;
use growing::Growth;
use memory::Memory;
use redis::{Cmd, Value};
use remains::{ENDING, look_for_remains, read_record};
use std::time::{Duration, Instant};
use tamis::internals::raw::{GrowingLayer, Header, Shape};
use tamis::{Hasher, KeyCount, Kind, Plan};

/// Chunks that are created, sent or read at once.
const CHUNK_WINDOW: usize = 4;
/// The pause between checks whether another client has finished.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Claims a name with a record, its twin and the hash, unless the name is taken: by another filter,
/// maybe a module's (0), by the twin of a filter whose record disappeared (2), or by something else
/// (3).
const CREATE: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then
  local kind = redis.call('TYPE', KEYS[1]).ok
  if kind == 'list' or kind == 'set' or kind == 'zset' or kind == 'hash' or kind == 'stream' then return 3 end
  if kind ~= 'string' then return 0 end
  local there = redis.call('GETRANGE', KEYS[1], 0, #ARGV[1])
  if there == ARGV[1] then return 1 end
  return string.sub(there, 1, 8) == string.sub(ARGV[1], 1, 8) and 0 or 3
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  local left = redis.call('PTTL', KEYS[2])
  if left < 0 or left > tonumber(ARGV[2]) then return 2 end
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[3], 'made', 1, 'mark', 0)
return 1";

#[derive(Clone)]
pub(crate) struct Engine<L> {
    wire: Wire<L>,
    options: Options,
    name: String,
    /// The slot of the name, and of all keys that begin with `{name}`.
    home: u16,
    record: Record,
    /// The current header: a growing filter's changes.
    header: Header,
    /// One body, or one for each layer of a growing filter, oldest first.
    bodies: Vec<Body>,
    growth: Option<Growth>,
    /// A window has this instead of bodies.
    window: Option<Sliding>,
    counted: Option<(Instant, KeyCount)>,
    memory: Memory,
    fill: Fill,
    /// Whether most of the last added keys were old.
    mostly_seen: bool,
    /// For the user.
    pub(crate) warnings: Vec<Warning>,
    /// The process that created this. In another process it is a copy (fork),
    /// which must not use the same room.
    process: u32,
}

/// A part of the filter: the indices of the body and the chunk.
type Part = (usize, usize);

impl<L: Link> Engine<L> {
    pub(crate) async fn exists(link: L, at: &Location, options: &Options) -> Result<bool, Error> {
        let mut wire = Wire::new(link, options).await?;
        let command = command!("EXISTS", at.name());
        let answer = wire.ask_one("looking for the filter", slot(at.name()), command);
        Ok(answer.await? == Value::Int(1))
    }

    pub(crate) async fn create(
        wire: Wire<L>,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let (header, growing) = Self::header_of(plan, hasher)?;
        let mut this = Self::begin(wire, at, header, options).await?;
        let created = this.create_body(growing).await;
        this.finish_creation(created).await
    }

    /// The header of a new filter, and the first layer of a growing one.
    pub(crate) fn header_of(
        plan: &Plan,
        hasher: Hasher,
    ) -> Result<(Header, Option<GrowingLayer>), Error> {
        let growing = match plan.kind() {
            Kind::Growing => Some(GrowingLayer::first_of_one_line(
                plan.keys(),
                plan.promise(),
            )?),
            _ => None,
        };
        let header = match &growing {
            Some(first) => Header::of_first_layer(first, plan.promise(), hasher)?,
            None => Header::of_plan(plan, hasher).sealed_empty(),
        };
        if let Some(cells) = Cells::of(header.shape())
            && cells.lines_per_key() > 1
        {
            return Err(Error::Filter(tamis::Error::Parameter {
                what: "lines per key of a filter in Redis",
                expected: "1, so that adding a key is one atomic command (Plan::one_line)",
                got: cells.lines_per_key().to_string(),
            }));
        }
        Ok((header, growing))
    }

    async fn create_body(&mut self, growing: Option<GrowingLayer>) -> Result<(), Error> {
        match (growing, self.header.shape()) {
            (Some(first), _) => self.begin_growth(first).await,
            (None, Shape::Window(_)) => self.create_window().await,
            (None, _) => {
                let cells = cells_of(&self.header)?;
                self.bodies = vec![Body::new(cells, &self.name, self.record.generation)];
                create_chunks(&mut self.wire, &self.bodies[0].chunks).await
            }
        }
    }

    /// Claims the name for a new filter.
    async fn begin(
        mut wire: Wire<L>,
        at: &Location,
        header: Header,
        options: &Options,
    ) -> Result<Self, Error> {
        let record = Record {
            generation: random()?,
            state: Stage::Creating,
            header,
        };
        check_kind(&header)?;
        let name = at.name().to_owned();
        let home = slot(&name);
        look_for_remains(&mut wire, &name).await?;
        let mut this = Self::around(wire, options, name, record);
        this.ask_for_room(&header).await?;
        let keys = [&this.name, &twin(&this.name), &this.state_key()];
        let (record, ending) = (this.record.encode(), ENDING.as_millis() as u64);
        let command = command!("EVAL", CREATE, 3, &keys[..], &record[..], ending);
        let request = Request::new(home, &[command]).replicated();
        let created = this.wire.ask_request("creating the filter", request);
        let name = at.name().to_owned();
        match created.await? {
            Value::Int(1) => {}
            Value::Int(2) => return Err(Error::Remains { name }),
            Value::Int(3) => return Err(Error::Taken { name }),
            _ => return Err(Error::Exists { name }),
        }
        match this.call_witness().await {
            Ok(()) => Ok(this),
            Err(error) => {
                let _ = this.delete().await;
                Err(error)
            }
        }
    }

    /// An engine without bodies.
    fn around(wire: Wire<L>, options: &Options, name: String, record: Record) -> Self {
        Self {
            wire,
            options: options.clone(),
            home: slot(&name),
            name,
            header: record.header,
            record,
            bodies: Vec::new(),
            growth: None,
            window: None,
            counted: None,
            memory: Memory::default(),
            fill: Fill::default(),
            mostly_seen: false,
            warnings: Vec::new(),
            process: std::process::id(),
        }
    }

    /// Marks the filter as complete. If creating a part failed, deletes all
    /// parts, because half a filter would only waste memory.
    async fn finish_creation(mut self, created: Result<(), Error>) -> Result<Self, Error> {
        if let Err(error) = created {
            let _ = self.delete().await;
            return Err(error);
        }
        let done = r"redis.call('SETRANGE', KEYS[1], 24, '\1') return 1";
        self.change_ours("creating the filter", done, &[], &[])
            .await?;
        self.record.state = Stage::Ready;
        self.recall().await?;
        self.look_for_dangers().await?;
        Ok(self)
    }

    /// Sends one command about a key in the slot of the name.
    async fn ask_home(&mut self, action: &'static str, command: Cmd) -> Result<Value, Error> {
        self.wire.ask_one(action, self.home, command).await
    }

    /// Runs a script with the record as its first key, if the record is still
    /// ours.
    async fn if_ours(
        &mut self,
        action: &'static str,
        script: &str,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Value, Error> {
        let request = self.if_ours_request("EVAL", script, keys, args);
        self.answer_if_ours(action, request).await
    }

    /// `if_ours` for scripts that write; replicas must have the change if we
    /// wait for any.
    async fn change_ours(
        &mut self,
        action: &'static str,
        script: &str,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Value, Error> {
        let request = self.if_ours_request("EVAL", script, keys, args);
        self.answer_if_ours(action, request.replicated()).await
    }

    /// `if_ours` for scripts that only read, for users without the right to
    /// write.
    async fn ask_ours(
        &mut self,
        action: &'static str,
        script: &str,
        keys: &[&str],
    ) -> Result<Value, Error> {
        let request = self.if_ours_request("EVAL_RO", script, keys, &[]);
        self.answer_if_ours(action, request).await
    }

    fn if_ours_request(&self, eval: &str, script: &str, keys: &[&str], args: &[&[u8]]) -> Request {
        // A filter that is being deleted isn't ours any more.
        let script = format!(
            "local record = redis.call('GETRANGE', KEYS[1], 0, 24) \
             if string.sub(record, 1, 24) ~= ARGV[1] or string.byte(record, 25) == 2 \
             then return 'gone' end {script}"
        );
        let (count, identity) = (keys.len() + 1, self.record.identity());
        let command = command!(eval, script, count, &self.name, keys, &identity[..], args);
        Request::new(self.home, &[command])
    }

    async fn answer_if_ours(
        &mut self,
        action: &'static str,
        request: Request,
    ) -> Result<Value, Error> {
        match self.wire.ask_request(action, request).await? {
            Value::BulkString(text) if text == b"gone" => Err(self.gone()),
            value => Ok(value),
        }
    }

    pub(crate) async fn open(
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let decode = |name: &str, bytes: &[u8]| Record::decode(name, bytes, options.key.as_ref());
        let mut this = Self::find(wire, at, options, decode).await?;
        while this.record.state != Stage::Ready {
            let deleted = this.record.state == Stage::Deleting;
            if deleted || start.elapsed() >= options.retry_for {
                return Err(Error::Unfinished { name: this.name });
            }
            this.wire.link.pause(LOOK_AGAIN).await;
            this.record = read_record(&mut this.wire, at, decode).await?;
            this.header = this.record.header;
        }
        this.find_bodies().await?;
        this.recall().await?;
        this.look_for_dangers().await?;
        Ok(this)
    }

    /// Finds the filter with this name, finished or not, without its bodies.
    async fn find(
        mut wire: Wire<L>,
        at: &Location,
        options: &Options,
        decode: impl Fn(&str, &[u8]) -> Result<Record, Error>,
    ) -> Result<Self, Error> {
        let record = read_record(&mut wire, at, decode).await?;
        Ok(Self::around(wire, options, at.name().to_owned(), record))
    }

    /// Another client of the same filter.
    #[cfg(feature = "aio")]
    pub(crate) fn another(&self) -> Self
    where
        L: Clone,
    {
        let mut another = self.clone();
        another.forget_room();
        another
    }

    pub(crate) fn stats(&self) -> Stats {
        self.wire.counters().stats()
    }

    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn kind(&self) -> Kind {
        self.header.shape().kind()
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.header.capacity()
    }

    pub(crate) const fn rate(&self) -> f64 {
        self.header.rate()
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self.window {
            Some(_) => self.all_chunks().map(|chunk| chunk.len).sum(),
            None => self.header.body_len(),
        }
    }

    fn gone(&self) -> Error {
        Error::Gone {
            name: self.name.clone(),
        }
    }

    /// Why a part is missing: the filter no longer exists, or has lost it.
    async fn why_missing(&mut self, part: String) -> Error {
        let look = self.ask_ours("looking for the filter", "return 1", &[]);
        match look.await {
            Ok(_) => Error::MissingChunk {
                name: self.name.clone(),
                chunk: part,
            },
            Err(Error::Gone { .. }) => self.clean_up_gone().await,
            Err(other) => other,
        }
    }

    async fn chunk_missing(&mut self, (body, chunk): Part) -> Error {
        let key = self.bodies[body].chunks[chunk].key.clone();
        self.why_missing(key).await
    }

    /// Cleans up after a filter that no longer exists: deletes strings that our
    /// late writes created. Whole chunks stay, because someone may have renamed
    /// the record, and may rename it back.
    async fn clean_up_gone(&mut self) -> Error {
        const UNLINK_CUT: &str = "if redis.call('STRLEN', KEYS[1]) < tonumber(ARGV[1]) then \
                                  return redis.call('UNLINK', KEYS[1]) end return 0";
        const UNLINK_STATE: &str = "if redis.call('HEXISTS', KEYS[1], 'made') == 0 and \
                                    redis.call('HEXISTS', KEYS[1], 'layer.0') == 0 then \
                                    return redis.call('UNLINK', KEYS[1]) end return 0";
        let unlink = |chunk: &Chunk| {
            let command = command!("EVAL", UNLINK_CUT, 1, &chunk.key, chunk.stored());
            Request::new(chunk.slot, &[command])
        };
        let mut requests: Vec<Request> = self.all_chunks().map(unlink).collect();
        let command = command!("EVAL", UNLINK_STATE, 1, self.state_key());
        requests.push(Request::new(self.home, &[command]));
        let _ = self.wire.ask("cleaning up", requests).await;
        self.gone()
    }

    /// The chunks of all bodies, or the strings of a window.
    fn all_chunks(&self) -> impl Iterator<Item = &Chunk> {
        let strings = self.window.iter().flat_map(|window| &window.chunks);
        self.bodies
            .iter()
            .flat_map(|body| &body.chunks)
            .chain(strings.flatten())
    }
}

/// Creates chunks of zeros, without sending them.
async fn create_chunks<L: Link>(wire: &mut Wire<L>, chunks: &[Chunk]) -> Result<(), Error> {
    for some in chunks.chunks(CHUNK_WINDOW) {
        let create = |chunk: &Chunk| {
            let mut command = command!("SETRANGE");
            let foot = Foot::Open.encode();
            command.arg(&chunk.key).arg(chunk.len).arg(&foot[..]);
            Request::new(chunk.slot, &[command]).replicated()
        };
        let requests = some.iter().map(create).collect();
        wire.ask("creating the filter", requests).await?;
    }
    Ok(())
}

/// Deletes chunks in the background of the servers.
async fn unlink_chunks<L: Link>(wire: &mut Wire<L>, chunks: &[Chunk]) -> Result<(), Error> {
    let unlink = |chunk: &Chunk| Request::new(chunk.slot, &[command!("UNLINK", &chunk.key)]);
    let requests = chunks.iter().map(unlink).collect();
    wire.ask("deleting the filter", requests).await.map(drop)
}

pub(crate) fn random() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|e| tamis::Error::Random(e.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The names of the first parts that a record or a layer refers to.
pub(crate) fn name_parts(record: &Record, layer: &[u8]) -> Vec<Chunk> {
    const SOME: std::ops::Range<u64> = 0..3;
    let some = |lines| crate::chunks::chunks("name", record.generation, lines, SOME);
    match record.header.shape() {
        Shape::Growing(shape) => {
            let like = growing::like(&shape);
            let layer = like.and_then(|like| growing::decode("name", layer, &like));
            let first = shape.lines().saturating_sub(1);
            some(first)
                .chain(
                    layer
                        .into_iter()
                        .flat_map(|(layer, _)| some(layer.shape().lines())),
                )
                .collect()
        }
        _ => match room::lines_of(&record.header) {
            Ok(lines) => some(lines).collect(),
            Err(_) => Vec::new(),
        },
    }
}

/// An error if this kind of filter can't be stored in Redis.
pub(crate) fn check_kind(header: &Header) -> Result<(), Error> {
    match header.shape().kind() {
        Kind::Growing => Ok(()),
        _ => room::lines_of(header).map(drop),
    }
}

/// The cells of a filter that can be stored in Redis.
fn cells_of(header: &Header) -> Result<Cells, Error> {
    Cells::of(header.shape()).ok_or_else(|| {
        Error::Filter(tamis::Error::Unable {
            kind: header.shape().kind(),
            what: "kept in Redis",
            instead: "use a blocked, a counting or a growing filter or a window there",
        })
    })
}
