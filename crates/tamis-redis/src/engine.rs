//! What a filter in Redis does, over any link: written once for the filter
//! that blocks and the one that does not.

use crate::body::{Body, Cells, Changes, Reads};
use crate::chunks::{MARK, slot};
use crate::link::{Link, Request};
use crate::record::Record;
use crate::wire::{Again, Settled, Wire, Work, of_failure};
use crate::{Error, Location, Options};
use redis::{Cmd, Value, cmd};
use tamis::{Hash, Hasher, Header, Kind, Plan};

/// Keys that are sent together: many, so that the servers always have the next
/// ones at hand and neighbouring lines are read at once.
const WINDOW: usize = 1 << 14;
/// Chunks that are created, sent or read together.
const CHUNK_WINDOW: usize = 8;

pub(crate) struct Engine<L> {
    wire: Wire<L>,
    options: Options,
    name: String,
    /// The slot of the name.
    home: u16,
    record: Record,
    body: Body,
}

impl Work for Changes {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.requests
    }
}

impl Work for Reads {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.requests
    }
}

/// What went wrong with some of a batch's keys.
#[derive(Default)]
struct Trouble {
    unconfirmed: Vec<usize>,
    reason: Option<String>,
    missing: Option<usize>,
}

impl<L: Link> Engine<L> {
    pub(crate) async fn exists(link: L, at: &Location, options: &Options) -> Result<bool, Error> {
        let mut wire = Wire::new(link, options).await?;
        let name = at.name();
        let command = cmd("EXISTS").arg(name).take();
        let answer = wire
            .ask_one("looking for the filter", slot(name), command)
            .await?;
        Ok(answer == Value::Int(1))
    }

    pub(crate) async fn create(
        link: L,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let header = Header::of_plan(plan, hasher).sealed_empty();
        let mut this = Self::begin(link, at, header, options).await?;
        let creations = this.body.chunks.iter().map(|chunk| {
            let command = cmd("SETRANGE")
                .arg(&chunk.key)
                .arg(chunk.len)
                .arg(&[MARK][..])
                .take();
            Request::new(chunk.slot, vec![command])
        });
        let creations: Vec<_> = creations.collect();
        for some in creations.chunks(CHUNK_WINDOW) {
            this.wire.ask("creating the filter", some.to_vec()).await?;
        }
        this.finish_creation().await?;
        Ok(this)
    }

    /// Takes the name for a filter that is not there yet.
    async fn begin(
        link: L,
        at: &Location,
        header: Header,
        options: &Options,
    ) -> Result<Self, Error> {
        let cells = cells_of(&header)?;
        let mut generation = [0; 8];
        getrandom::fill(&mut generation).map_err(|e| tamis::Error::Random(e.to_string()))?;
        let record = Record {
            generation: u64::from_le_bytes(generation),
            ready: false,
            header,
        };
        let mut wire = Wire::new(link, options).await?;
        let name = at.name().to_owned();
        let home = slot(&name);
        let bytes = record.encode();
        let command = cmd("SET").arg(&name).arg(&bytes).arg("NX").take();
        if wire.ask_one("creating the filter", home, command).await? == Value::Nil {
            // Perhaps by a try of ours whose answer was lost.
            let command = cmd("GET").arg(&name).take();
            let there = wire.ask_one("creating the filter", home, command).await?;
            if there != Value::BulkString(bytes.to_vec()) {
                return Err(Error::Exists { name });
            }
        }
        Ok(Self {
            wire,
            options: options.clone(),
            body: Body::new(cells, &name, record.generation),
            home,
            name,
            record,
        })
    }

    async fn finish_creation(&mut self) -> Result<(), Error> {
        let script = "if redis.call('GETRANGE', KEYS[1], 0, 23) == ARGV[1] then \
                      redis.call('SETRANGE', KEYS[1], 24, '\\1') return 1 end return 0";
        match self.eval("creating the filter", script).await? {
            Value::Int(1) => {
                self.record.ready = true;
                Ok(())
            }
            _ => Err(self.gone()),
        }
    }

    /// Runs a script on the record, which compares its identity first.
    async fn eval(&mut self, action: &'static str, script: &str) -> Result<Value, Error> {
        let command = cmd("EVAL")
            .arg(script)
            .arg(1)
            .arg(&self.name)
            .arg(&self.record.identity()[..])
            .take();
        self.wire.ask_one(action, self.home, command).await
    }

    pub(crate) async fn open(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        let mut wire = Wire::new(link, options).await?;
        let name = at.name().to_owned();
        let home = slot(&name);
        let command = cmd("GET").arg(&name).take();
        let record = match wire.ask_one("opening the filter", home, command).await? {
            Value::BulkString(bytes) => Record::decode(&name, &bytes, options.key.as_ref())?,
            _ => return Err(Error::NotFound { name }),
        };
        if !record.ready {
            return Err(Error::Unfinished { name });
        }
        Ok(Self {
            wire,
            options: options.clone(),
            body: Body::new(cells_of(&record.header)?, &name, record.generation),
            home,
            name,
            record,
        })
    }

    pub(crate) const fn header(&self) -> &Header {
        &self.record.header
    }

    fn gone(&self) -> Error {
        Error::Gone {
            name: self.name.clone(),
        }
    }

    /// Adds keys; `new[i]` answers for `hashes[i]`.
    pub(crate) async fn insert_hashes(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        new.fill(false);
        let Self { wire, body, .. } = self;
        let cells = body.cells();
        let again = match cells {
            Cells::Bits(_) => Again::Harmless,
            Cells::Counters(_) => Again::Never,
        };
        let wait = wire.wait;
        let mut trouble = Trouble::default();
        let sent = wire
            .run(
                hashes.len(),
                WINDOW,
                again,
                wait,
                |range| body.adds((range.start as u32..).zip(&hashes[range])),
                |work, settled| {
                    for (i, Settled { outcome, ambiguous }) in settled.into_iter().enumerate() {
                        let each = |key: u32, was_new: bool| {
                            // A try whose answer was lost may have added it:
                            // better told twice than never.
                            new[key as usize] |= was_new || ambiguous;
                        };
                        match outcome {
                            Ok(answer) => {
                                if work.was_new(cells, i, &answer, each).is_none() {
                                    trouble.missing = Some(work.keys_of(i)[0] as usize);
                                }
                            }
                            Err(failure) => {
                                trouble.reason = Some(failure.to_string());
                                let keys = work.keys_of(i).iter().map(|key| *key as usize);
                                trouble.unconfirmed.extend(keys);
                            }
                        }
                    }
                    trouble.missing.is_none() && trouble.reason.is_none()
                },
            )
            .await;
        self.conclude(trouble, sent, hashes.len()).await
    }

    /// The error, if there was trouble.
    async fn conclude(&mut self, trouble: Trouble, sent: usize, of: usize) -> Result<(), Error> {
        let Trouble {
            mut unconfirmed,
            reason,
            missing,
        } = trouble;
        if missing.is_some() {
            return Err(self.missing(0).await);
        }
        let Some(reason) = reason else {
            return Ok(());
        };
        unconfirmed.extend(sent..of);
        unconfirmed.sort_unstable();
        unconfirmed.dedup();
        Err(Error::Unconfirmed {
            keys: unconfirmed,
            of,
            reason,
        })
    }

    /// Why a chunk is missing: the filter is gone, or has lost it.
    async fn missing(&mut self, chunk: usize) -> Error {
        Error::MissingChunk {
            name: self.name.clone(),
            chunk: self.body.chunks[chunk].key.clone(),
        }
    }

    /// Asks keys; `out[i]` answers for `hashes[i]`.
    pub(crate) async fn contains_hashes(
        &mut self,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(hashes.len(), out.len(), "one answer for each key");
        out.fill(true);
        let Self { wire, body, .. } = self;
        let cells = body.cells();
        let mut failed = None;
        let mut missing = None;
        wire.run(
            hashes.len(),
            WINDOW,
            Again::Harmless,
            None,
            |range| body.reads((range.start as u32..).zip(&hashes[range])),
            |work, settled| {
                for (i, Settled { outcome, .. }) in settled.into_iter().enumerate() {
                    let each = |key: u32, line: &_, marks: &_| {
                        out[key as usize] &= cells.has(line, marks);
                    };
                    match outcome {
                        Ok(answer) => {
                            if work.lines(body, i, &answer, each).is_none() {
                                missing = Some(work.chunk_of(i));
                            }
                        }
                        Err(failure) => failed = Some(of_failure("asking the filter", failure)),
                    }
                }
                failed.is_none() && missing.is_none()
            },
        )
        .await;
        match (missing, failed) {
            (Some(chunk), _) => Err(self.missing(chunk).await),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }
}

/// What a filter in Redis can be.
fn cells_of(header: &Header) -> Result<Cells, Error> {
    Cells::of(header.shape()).ok_or_else(|| {
        Error::Filter(tamis::Error::Unable {
            kind: header.shape().kind(),
            what: "kept in Redis",
            instead: "their keys' places are not independent of each other; \
                      use a blocked, a counting or a growing filter",
        })
    })
}
