//! Creates, uploads and downloads whole filters in a module.

use super::{Found, KeyType, Layout, Module, look};
use crate::engine::random;
use crate::link::Link;
use crate::record::twin;
use crate::request::{Again, Request};
use crate::wire::Wire;
use crate::{Error, Location};
use redis::{Cmd, Value};
use tamis::internals::raw::{HEADER_LEN, Header, Shape};
use tamis::{
    AnyFilter, Hasher, KeyRule, Kind, Plan,
    internals::Draft,
    window::{Renewal, Span, WindowOptions},
};

/// The largest chunk that a module returns.
const CHUNK: usize = 16 << 20;
/// An unfinished filter expires after this many milliseconds.
const MAKING_FOR: u64 = 600_000;
/// If a filter grows while its chunks are read, they are read again, at most
/// this often.
const READINGS: u32 = 10;

/// The first chunk begins with this, followed by how it grows (32 bits; 2: by
/// itself) …
const BLOOM: &[u8; 8] = b"TAMISBF1";
/// … or with this, followed by how it grows, the layers it may have and the
/// layers it has (32 bits each), and the number of removed keys (64 bits). It
/// ends with the number of bytes that follow (64 bits).
const CUCKOO: &[u8; 8] = b"TAMISCF1";

/// Gives a finished filter its name. Returns 1; 0 if the name is taken and must
/// not be replaced; 2 if remains of another filter exist. If the finished
/// filter is missing, an earlier try has already named it.
const PLACE: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return 1 end
if redis.call('EXISTS', KEYS[3]) == 1 then return 2 end
local left = -1
if redis.call('EXISTS', KEYS[2]) == 1 then
  if ARGV[1] == '0' then return 0 end
  left = redis.call('PTTL', KEYS[2])
end
redis.call('RENAME', KEYS[1], KEYS[2])
if left >= 0 then
  redis.call('PEXPIRE', KEYS[2], left)
else
  redis.call('PERSIST', KEYS[2])
end
return 1";

/// Reads all chunks of a filter at once. A cuckoo filter moves its entries, so
/// chunks of different moments could miss one.
const DUMP_AT_ONCE: &str = "
local all, at = {}, 0
repeat
  local chunk = redis.call('CF.SCANDUMP', KEYS[1], at)
  at = chunk[1]
  if at ~= 0 then all[#all + 1] = chunk[2] end
until at == 0
return all";

/// Whether a filter of this kind can be copied to a module.
pub(crate) const fn takes(kind: Kind) -> bool {
    matches!(kind, Kind::Growing | Kind::Cuckoo)
}

fn unable(kind: Kind) -> Error {
    Error::Filter(tamis::Error::Unable {
        kind,
        what: "kept by the server's module",
        instead: "use a growing or a cuckoo filter there, or plain strings",
    })
}

/// The words of BF.RESERVE for a window.
fn window_words(options: &WindowOptions) -> Result<Vec<String>, Error> {
    let Span::Time(span) = options.span() else {
        return Err(Error::Filter(tamis::Error::Unable {
            kind: Kind::Window,
            what: "kept by the server's module where they count keys",
            instead: "use a window of time there, or plain strings",
        }));
    };
    let seconds = format!("{}.{:06}", span.as_secs(), span.subsec_micros());
    let generations = options.generation_count().to_string();
    let mut words = vec!["WINDOW".into(), seconds, "GENERATIONS".into(), generations];
    if options.renewed() == Renewal::Quiet {
        words.push("QUIET".into());
    }
    Ok(words)
}

/// A filter that is being created under a temporary name.
struct Making<L> {
    wire: Wire<L>,
    name: String,
    /// The temporary name, in the same slot.
    temporary: String,
    home: u16,
}

impl<L: Link> Making<L> {
    fn new(wire: Wire<L>, at: &Location) -> Result<Self, Error> {
        Ok(Self {
            wire,
            name: at.name().to_owned(),
            temporary: format!("{{{}}}:tamis:new:{:016x}", at.name(), random()?),
            home: crate::chunks::slot(at.name()),
        })
    }

    /// Runs one step of the creation.
    async fn make(&mut self, action: &'static str, command: Cmd) -> Result<(), Error> {
        let expire = command!("PEXPIRE", &self.temporary, MAKING_FOR);
        let request = Request {
            again: Again::Never,
            ..Request::new(self.home, &[command, expire])
        };
        self.wire
            .ask(action, vec![request.replicated()])
            .await
            .map(drop)
    }

    /// Gives the filter its name, replacing a module's filter there if
    /// `replace` is set; on an error, deletes it.
    async fn place(mut self, made: Result<(), Error>, replace: bool) -> Result<Wire<L>, Error> {
        let placed = match made {
            Ok(()) => self.try_place(replace).await,
            Err(error) => Err(error),
        };
        if placed.is_err() {
            let unlink = command!("UNLINK", &self.temporary);
            let _ = self.wire.ask_one("cleaning up", self.home, unlink).await;
        }
        placed.map(|()| self.wire)
    }

    async fn try_place(&mut self, replace: bool) -> Result<(), Error> {
        let keys = [&self.temporary, &self.name, &twin(&self.name)];
        let command = command!("EVAL", PLACE, 3, &keys[..], u8::from(replace));
        let request = Request::new(self.home, &[command]).replicated();
        let placed = self.wire.ask_request("creating the filter", request);
        let name = self.name.clone();
        match placed.await? {
            Value::Int(1) => Ok(()),
            Value::Int(2) => Err(Error::Remains { name }),
            _ => Err(Error::Exists { name }),
        }
    }
}

impl<L: Link> Module<L> {
    /// Creates an empty filter.
    pub(crate) async fn create(
        wire: Wire<L>,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        replace: bool,
    ) -> Result<Self, Error> {
        let words = match plan.shape() {
            Shape::Window(shape) => window_words(&shape.options())?,
            _ if takes(plan.kind()) => Vec::new(),
            _ => return Err(unable(plan.kind())),
        };
        if hasher != Hasher::default() {
            return Err(Error::Filter(tamis::Error::Parameter {
                what: "the hash of a filter that a module keeps",
                expected: "none: the server hashes, with a secret if the module's option says so",
                got: hasher.name().into(),
            }));
        }
        let mut making = Making::new(wire, at)?;
        let command = match plan.kind() {
            Kind::Cuckoo => {
                let rate = plan.promise();
                command!("CF.RESERVE", &making.temporary, plan.keys(), "ERROR", rate)
            }
            _ => {
                let mut command =
                    command!("BF.RESERVE", &making.temporary, plan.promise(), plan.keys());
                words.iter().for_each(|word| _ = command.arg(word));
                command
            }
        };
        let mut made = making
            .make("creating the filter in the server's module", command)
            .await;
        if made.is_ok() && plan.kind() == Kind::Cuckoo {
            made = making.check_rate(at).await;
        }
        Self::named(making.place(made, replace).await?, at).await
    }

    /// Opens a filter that has just got its name.
    async fn named(mut wire: Wire<L>, at: &Location) -> Result<Self, Error> {
        match look(&mut wire, at.name()).await? {
            Found::Module(is) => Self::open(wire, at, is).await,
            _ => Err(Error::Gone {
                name: at.name().to_owned(),
            }),
        }
    }

    /// Copies a filter to Tamis's module.
    pub(crate) async fn upload<B: tamis::body::Body>(
        wire: Wire<L>,
        at: &Location,
        filter: &AnyFilter<B>,
        replace: bool,
    ) -> Result<Self, Error> {
        let kind = filter.kind();
        if !takes(kind) {
            return Err(unable(kind));
        }
        if matches!(filter.hasher(), Hasher::Keyed { in_file: false, .. }) {
            return Err(Error::Filter(tamis::Error::Parameter {
                what: "the secret of a filter that a module keeps",
                expected: "one in the filter, because the server hashes",
                got: "one kept apart".into(),
            }));
        }
        if *filter.hasher().rule() != KeyRule::EXACT {
            return Err(Error::Filter(tamis::Error::Parameter {
                what: "how keys of a filter that a module keeps are made",
                expected: "exact, because its clients would not know of another way",
                got: filter.hasher().rule().to_string(),
            }));
        }
        let mut making = Making::new(wire, at)?;
        let made = making.load(filter).await;
        Self::named(making.place(made, replace).await?, at).await
    }

    /// Creates a filter from a `DUMP`.
    pub(crate) async fn restore(
        wire: Wire<L>,
        at: &Location,
        dump: &[u8],
        replace: bool,
    ) -> Result<Self, Error> {
        let mut making = Making::new(wire, at)?;
        let command = command!("RESTORE", &making.temporary, MAKING_FOR, dump);
        let mut made = making.make("restoring the filter", command).await;
        if made.is_ok() {
            // A dump may hold any type.
            made = match look(&mut making.wire, &making.temporary).await {
                Ok(Found::Module(_)) => Ok(()),
                Ok(_) => Err(Error::Corrupt {
                    key: at.name().to_owned(),
                    reason: "the dump is not a filter".into(),
                }),
                Err(error) => Err(error),
            };
        }
        Self::named(making.place(made, replace).await?, at).await
    }

    /// The value as the server would save it (`DUMP`).
    pub(crate) async fn dump(&mut self) -> Result<Vec<u8>, Error> {
        let command = command!("DUMP", &self.key.name);
        let dump: Option<Vec<u8>> = self.ask_all("reading the filter", command).await?;
        dump.ok_or_else(|| self.gone())
    }

    /// Copies the filter to memory.
    pub(crate) async fn download(&mut self) -> Result<AnyFilter, Error> {
        if self.key.is.layout != Layout::Tamis {
            return Err(self.unable(
                "copied to a Tamis filter when they have another system's layout",
                "copy it to a file of that system (DUMP), or add its keys to a new filter",
            ));
        }
        if self.key.is.kind == Kind::Cuckoo {
            return self.download_cuckoo().await;
        }
        for _ in 0..READINGS {
            if let Some(filter) = self.download_bloom().await? {
                return Ok(filter);
            }
        }
        Err(Error::Corrupt {
            key: self.key.name.clone(),
            reason: "it grows faster than it can be read".into(),
        })
    }

    /// Bits are only ever set, so chunks may come from different moments: every
    /// key that was there at the beginning is included. `None` if the filter
    /// has grown.
    async fn download_bloom(&mut self) -> Result<Option<AnyFilter>, Error> {
        let (_, first) = self.chunk(0).await?;
        let len = first.last_chunk().map_or(0, |len| u64::from_le_bytes(*len));
        let (mut next, mut bytes) = self.chunk(1).await?;
        let Some(header) = bytes.get(..HEADER_LEN) else {
            return Err(self.cut_short());
        };
        let header = Header::decode(header, None)?;
        if header.body_len().checked_add(HEADER_LEN as u64) != Some(len) {
            return Ok(None);
        }
        let mut draft = Draft::new(&header)?;
        bytes.drain(..HEADER_LEN);
        let mut at = 0;
        loop {
            let Some(room) = draft.body_mut().get_mut(at..at + bytes.len()) else {
                return Ok(None);
            };
            room.copy_from_slice(&bytes);
            at += bytes.len();
            if at == draft.body_mut().len() {
                return Ok(Some(draft.finish()?));
            }
            if next == 0 || bytes.is_empty() {
                return Err(self.cut_short());
            }
            (next, bytes) = self.chunk(next).await?;
        }
    }

    async fn download_cuckoo(&mut self) -> Result<AnyFilter, Error> {
        let command = command!("EVAL_RO", DUMP_AT_ONCE, 1, &self.key.name);
        let chunks: Vec<Vec<u8>> = self.ask_all("reading the filter", command).await?;
        let Some((first, rest)) = chunks.split_first() else {
            return Err(self.cut_short());
        };
        // After the magic: how it grows, and how many layers it may have.
        let layers = first.get(16..).and_then(|rest| rest.first_chunk());
        if layers.map(|layers| u32::from_le_bytes(*layers)) != Some(1) {
            return Err(self.unable(
                "copied to a file when they have more than one table",
                "CF.COMPACT makes one of them if the keys fit; DUMP copies any number",
            ));
        }
        Ok(AnyFilter::from_bytes(&rest.concat())?)
    }

    async fn chunk(&mut self, at: u64) -> Result<(u64, Vec<u8>), Error> {
        let command = command!("BF.SCANDUMP", &self.key.name, at);
        self.ask_all("reading the filter", command).await
    }

    fn cut_short(&self) -> Error {
        Error::Corrupt {
            key: self.key.name.clone(),
            reason: "its dump ends too early".into(),
        }
    }
}

impl<L: Link> Making<L> {
    /// Checks the rate, because RedisBloom's cuckoo filter ignores it.
    async fn check_rate(&mut self, at: &Location) -> Result<(), Error> {
        let is_tamis = |is: &KeyType| is.layout == Layout::Tamis;
        match look(&mut self.wire, &self.temporary).await? {
            Found::Module(is) if is_tamis(&is) => Ok(()),
            _ => Err(Error::Corrupt {
                key: at.name().to_owned(),
                reason: "the server's module knows no cuckoo filter of a given rate; \
                         load Tamis's module, or choose a growing filter"
                    .into(),
            }),
        }
    }

    async fn load<B: tamis::body::Body>(&mut self, filter: &AnyFilter<B>) -> Result<(), Error> {
        let header = filter.sealed_header();
        let len = HEADER_LEN as u64 + header.body_len();
        let (command, mut first) = match filter.kind() {
            Kind::Cuckoo => {
                let mut first = CUCKOO.to_vec();
                for number in [0u32, 1, 1] {
                    first.extend(number.to_le_bytes());
                }
                first.extend(0u64.to_le_bytes());
                ("CF.LOADCHUNK", first)
            }
            _ => {
                let mut first = BLOOM.to_vec();
                first.extend(2u32.to_le_bytes());
                ("BF.LOADCHUNK", first)
            }
        };
        first.extend(len.to_le_bytes());
        let load = |making: &Self, end: u64, chunk: Vec<u8>| {
            command!(command, &making.temporary, end, chunk)
        };
        let chunk = load(self, 1, first);
        let action = "loading the filter into the server's module, which must be Tamis's";
        self.make(action, chunk).await?;
        let mut bytes = header.encode().to_vec();
        let mut read = 0;
        let mut end = 1;
        loop {
            let more = filter.read_body(read, CHUNK - bytes.len());
            read += more.len() as u64;
            bytes.extend(more);
            if bytes.is_empty() {
                return Ok(());
            }
            end += bytes.len() as u64;
            let chunk = load(self, end, std::mem::take(&mut bytes));
            self.make(action, chunk).await?;
        }
    }
}
