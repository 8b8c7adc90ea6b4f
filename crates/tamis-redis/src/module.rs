//! A filter that a module of the server keeps behind BF.* or CF.*: Tamis's own
//! module, RedisBloom or valkey-bloom. The server hashes the keys, so keys are
//! sent as they are.

mod copying;
mod keys;

pub(crate) use copying::takes;

use crate::chunks::slot;
use crate::engine::{dangers, survey};
use crate::link::Link;
use crate::packed::Packed;
use crate::request::Request;
use crate::warning::Warning;
use crate::wire::Wire;
use crate::{Error, Location, Node, Share, Stats};
use redis::{Cmd, FromRedisValue, Value};
use std::collections::HashMap;
use std::time::Duration;
use tamis::{
    KeyCount, Kind, Moment,
    window::{Renewal, Span, WindowOptions},
};

/// The layout of a module's filter, recognised by the type of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Tamis's module: `tamis--bf` and `tamis--cf`.
    Tamis,
    /// RedisBloom, supported by Tamis's module, too: `MBbloom--` and
    /// `MBbloomCF`.
    RedisBloom,
    /// valkey-bloom: `bloomfltr`.
    ValkeyBloom,
}

/// A key type that TYPE reports for a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyType {
    name: &'static str,
    kind: Kind,
    layout: Layout,
}

impl KeyType {
    pub(crate) const fn kind(self) -> Kind {
        self.kind
    }
}

const fn key_type(name: &'static str, kind: Kind, layout: Layout) -> KeyType {
    KeyType { name, kind, layout }
}

const TYPES: [KeyType; 5] = [
    key_type("tamis--bf", Kind::Growing, Layout::Tamis),
    key_type("tamis--cf", Kind::Cuckoo, Layout::Tamis),
    key_type("MBbloom--", Kind::Growing, Layout::RedisBloom),
    key_type("MBbloomCF", Kind::Cuckoo, Layout::RedisBloom),
    key_type("bloomfltr", Kind::Growing, Layout::ValkeyBloom),
];

/// What a key holds.
pub(crate) enum Found {
    Nothing,
    /// Perhaps the record of one of our filters.
    String,
    Module(KeyType),
}

/// Finds out what has the filter's name.
pub(crate) async fn look<L: Link>(wire: &mut Wire<L>, name: &str) -> Result<Found, Error> {
    let command = command!("TYPE", name);
    let answer = wire
        .ask_one("opening the filter", slot(name), command)
        .await?;
    let text = String::from_redis_value(answer).unwrap_or_default();
    match text.as_str() {
        "none" => Ok(Found::Nothing),
        "string" => Ok(Found::String),
        other => match TYPES.iter().find(|known| known.name == other) {
            Some(known) => Ok(Found::Module(*known)),
            None => Err(Error::Corrupt {
                key: name.into(),
                reason: format!("its type is {other}, which is no filter's"),
            }),
        },
    }
}

/// A module's report about a filter.
#[derive(Clone, Copy, Debug, Default)]
struct About {
    capacity: u64,
    bytes: u64,
    keys: u64,
    rate: f64,
    window: Option<Forgets>,
}

/// The window of a filter.
#[derive(Clone, Copy, Debug)]
struct Forgets {
    options: WindowOptions,
    /// The latest moment of all keys that we know of.
    latest: Option<Moment>,
}

impl Forgets {
    /// Reads the answer to BF.INFO key WINDOW.
    fn read(fields: &HashMap<String, Value>) -> Option<Self> {
        let number = |name: &str| match fields.get(name) {
            Some(Value::Int(number)) => Some(*number),
            Some(Value::Boolean(is)) => Some((*is).into()),
            _ => None,
        };
        let seconds = f64::from_redis_value(fields.get("Seconds")?.clone()).ok()?;
        let span = Span::Time(Duration::from_micros((seconds * 1e6).round() as u64));
        let options = WindowOptions::new(span)
            .generations(u32::try_from(number("Generations")?).ok()?)
            .renewal(match number("Quiet")? {
                0 => Renewal::Within,
                _ => Renewal::Quiet,
            });
        let latest = number("Latest").map(Moment::from_micros);
        Some(Self { options, latest })
    }
}

/// The filter's key and its type.
#[derive(Clone)]
struct Key {
    name: String,
    home: u16,
    is: KeyType,
}

impl Key {
    fn choose<'c>(&self, bloom: &'c str, cuckoo: &'c str) -> &'c str {
        match self.is.kind {
            Kind::Cuckoo => cuckoo,
            _ => bloom,
        }
    }

    /// Whether TYPE answered that the filter still has its type.
    fn is_same(&self, answer: Option<&Value>) -> bool {
        match answer {
            Some(Value::SimpleString(name)) => name == self.is.name,
            Some(Value::BulkString(name)) => name == self.is.name.as_bytes(),
            _ => false,
        }
    }

    /// Ends commands that must reach replicas with a write. `WAIT` waits for
    /// the connection's last write, and adding an existing key isn't one.
    fn pulse(&self, packed: &mut Packed) {
        packed.begin(5);
        packed.text("SET");
        packed.text(format!("{{{}}}:tamis:pulse", self.name));
        packed.text("");
        packed.text("PX");
        packed.number(60_000);
    }
}

#[derive(Clone)]
pub(crate) struct Module<L> {
    wire: Wire<L>,
    key: Key,
    /// As of the last query.
    about: About,
    pub(crate) warnings: Vec<Warning>,
}

impl<L: Link> Module<L> {
    /// Opens a filter that `look` found.
    pub(crate) async fn open(wire: Wire<L>, at: &Location, is: KeyType) -> Result<Self, Error> {
        let mut this = Self {
            wire,
            key: Key {
                name: at.name().to_owned(),
                home: slot(at.name()),
                is,
            },
            about: About::default(),
            warnings: Vec::new(),
        };
        this.ask_about().await.map_err(|error| match error {
            Error::Gone { name } => Error::NotFound { name },
            error => error,
        })?;
        let expires = this.time_to_live().await?.is_some();
        this.warnings = dangers(&mut this.wire, expires).await;
        Ok(this)
    }

    fn command(&self, bloom: &str, cuckoo: &str) -> Cmd {
        command!(self.key.choose(bloom, cuckoo), &self.key.name)
    }

    /// Sends one command about the filter. Its answer proves that the filter
    /// exists.
    async fn ask<T: FromRedisValue>(
        &mut self,
        action: &'static str,
        command: Cmd,
    ) -> Result<T, Error> {
        let answer = self.one(action, command).await;
        self.read(action, answer).await
    }

    /// Sends a command whose answer may contain the whole filter, which may
    /// have grown since the last query.
    async fn ask_all<T: FromRedisValue>(
        &mut self,
        action: &'static str,
        command: Cmd,
    ) -> Result<T, Error> {
        let most = (self.about.bytes.saturating_mul(16)).saturating_add(1 << 26);
        let request = Request::new(self.key.home, &[command]).answered_with(most);
        let answer = self.wire.ask_request(action, request).await;
        self.read(action, answer).await
    }

    async fn read<T: FromRedisValue>(
        &mut self,
        action: &'static str,
        answer: Result<Value, Error>,
    ) -> Result<T, Error> {
        match answer {
            Ok(value) => T::from_redis_value(value).map_err(|error| Error::Server {
                action,
                node: None,
                source: error.into(),
            }),
            Err(error) => Err(self.or_gone(error).await),
        }
    }

    async fn one(&mut self, action: &'static str, command: Cmd) -> Result<Value, Error> {
        self.wire.ask_one(action, self.key.home, command).await
    }

    /// The error, replaced by `Gone` if the server refused because the filter
    /// no longer exists. A server that didn't answer isn't asked.
    async fn or_gone(&mut self, error: Error) -> Error {
        let refused = match &error {
            Error::Server { source, .. } => !source.is_io_error(),
            _ => false,
        };
        if refused && matches!(self.is_there().await, Ok(false)) {
            self.gone()
        } else {
            error
        }
    }

    fn gone(&self) -> Error {
        let name = self.key.name.clone();
        Error::Gone { name }
    }

    async fn is_there(&mut self) -> Result<bool, Error> {
        let look = command!("TYPE", &self.key.name);
        let answer = self.one("looking for the filter", look).await?;
        Ok(self.key.is_same(Some(&answer)))
    }

    /// Queries the module about the filter.
    async fn ask_about(&mut self) -> Result<(), Error> {
        const ACTION: &str = "asking about the filter";
        let info = self.command("BF.INFO", "CF.INFO");
        let fields: HashMap<String, Value> = self.ask(ACTION, info).await?;
        let number = |name: &str| match fields.get(name) {
            Some(Value::Int(number)) => *number as u64,
            _ => 0,
        };
        let bytes = number("Size");
        let parts = number("Number of filters");
        let keys = number("Number of items inserted");
        let full = match self.key.is.kind {
            // A slot takes one byte.
            Kind::Cuckoo => bytes,
            _ => number("Capacity"),
        };
        let capacity = match (self.key.is.kind, self.field("CAPACITY").await?) {
            (Kind::Cuckoo, Some(capacity)) => capacity as u64,
            _ => full,
        };
        let rate = match self.field("ERROR").await? {
            Some(rate) => rate,
            None => {
                self.rate_of_redisbloom(number("Bucket size"), parts)
                    .await?
            }
        };
        self.about = About {
            capacity,
            bytes,
            keys,
            rate,
            window: self.ask_window().await?,
        };
        Ok(())
    }

    /// The filter's window; none if it has none, as in other modules.
    async fn ask_window(&mut self) -> Result<Option<Forgets>, Error> {
        if self.key.is.layout != Layout::Tamis || self.key.is.kind == Kind::Cuckoo {
            return Ok(None);
        }
        let info = command!("BF.INFO", &self.key.name, "WINDOW");
        match self.one("asking about the filter", info).await {
            Ok(answer) => {
                let fields = HashMap::from_redis_value(answer).unwrap_or_default();
                Ok(Forgets::read(&fields))
            }
            Err(Error::Server { source, .. }) if !source.is_io_error() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One field of INFO; none if the module does not report it.
    async fn field(&mut self, name: &str) -> Result<Option<f64>, Error> {
        let mut info = self.command("BF.INFO", "CF.INFO");
        info.arg(name);
        let value = match self.one("asking about the filter", info).await {
            Ok(Value::Array(mut one)) => one.pop(),
            Ok(Value::Map(mut one)) => one.pop().map(|(_, value)| value),
            Ok(other) => Some(other),
            // The module has no such field.
            Err(Error::Server { source, .. }) if !source.is_io_error() => None,
            Err(error) => return Err(error),
        };
        Ok(value.and_then(|value| f64::from_redis_value(value).ok()))
    }

    /// The rate of RedisBloom's filters. For a Bloom filter, only the first
    /// chunk of a dump contains it. For a cuckoo filter, it follows from the
    /// layout: a key is compared with all slots of two buckets per table, by 8
    /// bits, of which one value means empty.
    async fn rate_of_redisbloom(&mut self, bucket_size: u64, tables: u64) -> Result<f64, Error> {
        if self.key.is.kind == Kind::Cuckoo {
            let slots = 2.0 * bucket_size as f64 * tables as f64;
            return Ok(1.0 - (254f64 / 255.0).powf(slots));
        }
        let dump = command!("BF.SCANDUMP", &self.key.name, 0);
        let (_, header): (u64, Vec<u8>) = self.ask("asking about the filter", dump).await?;
        // Keys (64 bits), layers, options, growth (32 each), and of each layer its bytes, bits
        // and keys (64), then its rate.
        const NO_SCALING: u32 = 8;
        const RATE: usize = 20 + 24;
        let options = header.get(12..).and_then(|rest| rest.first_chunk());
        let rate = header.get(RATE..).and_then(|rest| rest.first_chunk());
        let (Some(options), Some(rate)) = (options, rate) else {
            return Err(Error::Corrupt {
                key: self.key.name.clone(),
                reason: "the first chunk of its dump is too short".into(),
            });
        };
        // Each layer has half the rate of the one before.
        let scales = u32::from_le_bytes(*options) & NO_SCALING == 0;
        Ok(f64::from_le_bytes(*rate) * if scales { 2.0 } else { 1.0 })
    }

    pub(crate) const fn kind(&self) -> Kind {
        match self.about.window {
            Some(_) => Kind::Window,
            None => self.key.is.kind,
        }
    }

    /// The options of the window.
    pub(crate) fn window(&self) -> Option<WindowOptions> {
        self.about.window.map(|window| window.options)
    }

    /// The latest moment of the window that we know of.
    pub(crate) fn latest(&self) -> Option<Moment> {
        self.about.window.and_then(|window| window.latest)
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.key.is.layout
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.about.capacity
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.about.bytes
    }

    pub(crate) const fn rate(&self) -> f64 {
        self.about.rate
    }

    pub(crate) fn stats(&self) -> Stats {
        self.wire.counters().stats()
    }

    /// The number of keys that were new to the filter, as counted by the
    /// module.
    pub(crate) async fn keys(&mut self) -> Result<KeyCount, Error> {
        self.ask_about().await?;
        Ok(KeyCount::Counted(self.about.keys))
    }

    /// The promised rate: no module reports the rate at the present size.
    pub(crate) async fn rate_now(&mut self) -> Result<f64, Error> {
        self.ask_about().await?;
        Ok(self.about.rate)
    }

    /// Checks that the filter exists.
    pub(crate) async fn verify(&mut self) -> Result<(), Error> {
        if self.is_there().await? {
            self.ask_about().await
        } else {
            Err(self.gone())
        }
    }

    pub(crate) async fn clear(&mut self) -> Result<(), Error> {
        if self.key.is.kind == Kind::Cuckoo {
            return Err(self.unable("cleared in a module", "create it again in its place"));
        }
        let command = command!("BF.CLEAR", &self.key.name);
        self.ask("clearing the filter", command).await
    }

    /// Lets the filter expire after `time`.
    pub(crate) async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        let most = i64::MAX as u128 / 4;
        let time = time.as_millis().min(most) as u64;
        let command = command!("PEXPIRE", &self.key.name, time);
        match self.ask("expiring the filter", command).await? {
            1 => {}
            _ => return Err(self.gone()),
        }
        self.warnings = dangers(&mut self.wire, true).await;
        Ok(())
    }

    /// Removes the expiry.
    pub(crate) async fn persist(&mut self) -> Result<(), Error> {
        let command = command!("PERSIST", &self.key.name);
        let _: u64 = self.ask("persisting the filter", command).await?;
        if self.is_there().await? {
            Ok(())
        } else {
            Err(self.gone())
        }
    }

    /// The remaining time to live; `None` if the filter doesn't expire.
    pub(crate) async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        let command = command!("PTTL", &self.key.name);
        match self
            .ask("asking the filter's time to live", command)
            .await?
        {
            left @ 0.. => Ok(Some(Duration::from_millis(left as u64))),
            -1 => Ok(None),
            i64::MIN..=-2 => Err(self.gone()),
        }
    }

    /// Deletes the filter, unless a key of another type has replaced it.
    pub(crate) async fn delete(mut self) -> Result<Wire<L>, Error> {
        const DELETE: &str = "if redis.call('TYPE', KEYS[1]).ok ~= ARGV[1] then return 0 end \
                              return redis.call('UNLINK', KEYS[1])";
        let command = command!("EVAL", DELETE, 1, &self.key.name, self.key.is.name);
        match self.one("deleting the filter", command).await? {
            Value::Int(1) => Ok(self.wire),
            _ => Err(self.gone()),
        }
    }

    pub(crate) async fn shares(&mut self) -> Result<Vec<Share>, Error> {
        survey::shares(&mut self.wire, std::slice::from_ref(&self.key.name)).await
    }

    pub(crate) async fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        survey::nodes(&mut self.wire).await
    }

    pub(crate) fn unable(&self, what: &'static str, instead: &'static str) -> Error {
        Error::Filter(tamis::Error::Unable {
            kind: self.key.is.kind,
            what,
            instead,
        })
    }
}
