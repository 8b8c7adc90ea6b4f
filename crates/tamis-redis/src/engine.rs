//! What a filter in Redis does, over any link: written once for the filter
//! that blocks and the one that does not.

mod adding;
mod asking;
mod copying;
mod growing;
mod life;

use crate::body::{Body, Cells, Changes, Reads};
use crate::chunks::{Chunk, MARK, slot};
use crate::link::{Link, Request};
use crate::record::Record;
use crate::wire::{Wire, Work};
use crate::{Error, Location, Options, Stats};
use growing::Growth;
use redis::{Value, cmd};
use std::time::{Duration, Instant};
use tamis::raw::{GrowingLayer, Header};
use tamis::{Hasher, KeyCount, Kind, Plan};

/// Chunks that are created, sent or read together.
const CHUNK_WINDOW: usize = 4;
/// How often to look whether another client has finished something.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

#[derive(Clone)]
pub(crate) struct Engine<L> {
    wire: Wire<L>,
    options: Options,
    name: String,
    /// The slot of the name, and of all that is called `{name}…`.
    home: u16,
    record: Record,
    /// The header as it is now: a growing filter's changes.
    header: Header,
    /// One, or those of a growing filter's layers, oldest first.
    bodies: Vec<Body>,
    growth: Option<Growth>,
    counted: Option<(Instant, KeyCount)>,
    /// Whether most keys that were added last were not new.
    mostly_seen: bool,
}

impl Work for Changes {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.requests
    }
}

impl Work for (std::ops::Range<usize>, Reads) {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.1.requests
    }
}

impl Work for Reads {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.requests
    }
}

/// A part of the filter that is missing: of which body, which chunk.
type Missing = (usize, usize);

impl<L: Link> Engine<L> {
    pub(crate) async fn exists(link: L, at: &Location, options: &Options) -> Result<bool, Error> {
        let mut wire = Wire::new(link, options).await?;
        let command = cmd("EXISTS").arg(at.name()).take();
        let answer = wire.ask_one("looking for the filter", slot(at.name()), command);
        Ok(answer.await? == Value::Int(1))
    }

    pub(crate) async fn create(
        link: L,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
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
        let mut this = Self::begin(link, at, header, options).await?;
        let created = this.create_body(growing).await;
        this.finish_creation(created).await
    }

    async fn create_body(&mut self, growing: Option<GrowingLayer>) -> Result<(), Error> {
        match growing {
            Some(first) => self.begin_growth(first).await,
            None => {
                self.bodies = vec![self.fixed_body()?];
                create_chunks(&mut self.wire, &self.bodies[0].chunks).await
            }
        }
    }

    /// Takes the name for a filter that is not there yet.
    async fn begin(
        link: L,
        at: &Location,
        header: Header,
        options: &Options,
    ) -> Result<Self, Error> {
        let record = Record {
            generation: random()?,
            ready: false,
            header,
        };
        if header.shape().kind() != Kind::Growing {
            cells_of(&header)?;
        }
        let mut wire = Wire::new(link, options).await?;
        let name = at.name().to_owned();
        let home = slot(&name);
        let bytes = record.encode();
        let command = cmd("SET").arg(&name).arg(&bytes).arg("NX").take();
        if wire.ask_one("creating the filter", home, command).await? == Value::Nil {
            // Perhaps by a try of ours whose answer was lost.
            let command = cmd("GET").arg(&name).take();
            match wire.ask_one("creating the filter", home, command).await {
                Ok(there) if there == Value::BulkString(bytes.to_vec()) => {}
                Err(error) if !is_wrong_type(&error) => return Err(error),
                _ => return Err(Error::Exists { name }),
            }
        }
        Ok(Self::around(wire, options, name, record))
    }

    /// Without its bodies.
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
            counted: None,
            mostly_seen: false,
        }
    }

    fn fixed_body(&self) -> Result<Body, Error> {
        let cells = cells_of(&self.header)?;
        Ok(Body::new(cells, &self.name, self.record.generation))
    }

    /// Says that all parts are there; or takes them away again, if they are
    /// not all: half a filter would only take memory.
    async fn finish_creation(mut self, created: Result<(), Error>) -> Result<Self, Error> {
        if let Err(error) = created {
            let _ = self.delete().await;
            return Err(error);
        }
        let done = r"redis.call('SETRANGE', KEYS[1], 24, '\1') return 1";
        self.if_ours("creating the filter", done, &[], &[]).await?;
        self.record.ready = true;
        Ok(self)
    }

    /// Runs a script with the record as its first key, if that is still ours.
    async fn if_ours(
        &mut self,
        action: &'static str,
        script: &str,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Value, Error> {
        let script = format!(
            "if redis.call('GETRANGE', KEYS[1], 0, 23) ~= ARGV[1] then return 'gone' end {script}"
        );
        let mut command = cmd("EVAL");
        command
            .arg(script)
            .arg(keys.len() + 1)
            .arg(&self.name)
            .arg(keys);
        command.arg(&self.record.identity()[..]).arg(args);
        match self.wire.ask_one(action, self.home, command).await? {
            Value::BulkString(text) if text == b"gone" => Err(self.gone()),
            value => Ok(value),
        }
    }

    pub(crate) async fn open(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        let start = Instant::now();
        let decode = |name: &str, bytes: &[u8]| Record::decode(name, bytes, options.key.as_ref());
        let mut this = Self::find(link, at, options, decode).await?;
        while !this.record.ready {
            if start.elapsed() >= options.retry_for {
                return Err(Error::Unfinished { name: this.name });
            }
            this.wire.link.pause(LOOK_AGAIN).await;
            this.record = read_record(&mut this.wire, at, decode).await?;
            this.header = this.record.header;
        }
        match this.header.shape().kind() {
            Kind::Growing => this.load_layers().await?,
            _ => this.bodies = vec![this.fixed_body()?],
        }
        Ok(this)
    }

    /// The filter of this name, finished or not, without its bodies.
    async fn find(
        link: L,
        at: &Location,
        options: &Options,
        decode: impl Fn(&str, &[u8]) -> Result<Record, Error>,
    ) -> Result<Self, Error> {
        let mut wire = Wire::new(link, options).await?;
        let record = read_record(&mut wire, at, decode).await?;
        Ok(Self::around(wire, options, at.name().to_owned(), record))
    }

    /// Another client of the same filter.
    pub(crate) fn another(&self) -> Self
    where
        L: Clone,
    {
        let mut another = self.clone();
        if let Some(growth) = &mut another.growth {
            growth.forget_room();
        }
        another
    }

    pub(crate) fn stats(&self) -> Stats {
        self.wire.counters().stats()
    }

    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    fn gone(&self) -> Error {
        Error::Gone {
            name: self.name.clone(),
        }
    }

    /// Why a part is missing: the filter is gone, or has lost it.
    async fn why_missing(&mut self, (body, chunk): Missing) -> Error {
        let key = self.bodies[body].chunks[chunk].key.clone();
        match self
            .if_ours("looking for the filter", "return 1", &[], &[])
            .await
        {
            Ok(_) => Error::MissingChunk {
                name: self.name.clone(),
                chunk: key,
            },
            Err(Error::Gone { name }) => {
                // What our writes have created anew belongs to no filter.
                for body in &self.bodies {
                    let _ = unlink_chunks(&mut self.wire, &body.chunks).await;
                }
                Error::Gone { name }
            }
            Err(other) => other,
        }
    }

    /// All chunks, with the numbers of their bodies and their own.
    fn all_chunks(&self) -> impl Iterator<Item = (Missing, &Chunk)> {
        self.bodies.iter().enumerate().flat_map(|(body, b)| {
            (0..)
                .zip(&b.chunks)
                .map(move |(i, chunk)| ((body, i), chunk))
        })
    }
}

async fn read_record<L: Link>(
    wire: &mut Wire<L>,
    at: &Location,
    decode: impl Fn(&str, &[u8]) -> Result<Record, Error>,
) -> Result<Record, Error> {
    let name = at.name();
    let command = cmd("GET").arg(name).take();
    match wire
        .ask_one("opening the filter", slot(name), command)
        .await
    {
        Ok(Value::BulkString(bytes)) => decode(name, &bytes),
        Ok(_) => Err(Error::NotFound { name: name.into() }),
        Err(error) if is_wrong_type(&error) => Err(Error::Corrupt {
            key: name.into(),
            reason: "it is a Redis list, set, hash or the like, not a string".into(),
        }),
        Err(error) => Err(error),
    }
}

/// Whether the key holds something else than a string.
fn is_wrong_type(error: &Error) -> bool {
    matches!(error, Error::Server { source, .. } if source.code() == Some("WRONGTYPE"))
}

/// Creates chunks of zeros, without sending them.
async fn create_chunks<L: Link>(wire: &mut Wire<L>, chunks: &[Chunk]) -> Result<(), Error> {
    for some in chunks.chunks(CHUNK_WINDOW) {
        let create = |chunk: &Chunk| {
            let mut command = cmd("SETRANGE");
            command.arg(&chunk.key).arg(chunk.len).arg(&[MARK][..]);
            Request::new(chunk.slot, &[command])
        };
        let requests = some.iter().map(create).collect();
        wire.ask("creating the filter", requests).await?;
    }
    Ok(())
}

/// Forgets chunks, in the background of the servers.
async fn unlink_chunks<L: Link>(wire: &mut Wire<L>, chunks: &[Chunk]) -> Result<(), Error> {
    let unlink = |chunk: &Chunk| Request::new(chunk.slot, &[cmd("UNLINK").arg(&chunk.key).take()]);
    let requests = chunks.iter().map(unlink).collect();
    wire.ask("deleting the filter", requests).await.map(drop)
}

fn random() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|e| tamis::Error::Random(e.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// What a filter in Redis can be.
fn cells_of(header: &Header) -> Result<Cells, Error> {
    Cells::of(header.shape()).ok_or_else(|| {
        Error::Filter(tamis::Error::Unable {
            kind: header.shape().kind(),
            what: "kept in Redis",
            instead: "use a blocked, a counting or a growing filter there",
        })
    })
}
