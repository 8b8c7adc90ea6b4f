//! A bit string and the hash that describes it: how other programs keep their
//! filters in Redis.

use crate::blocking::Blocking;
use crate::chunks::slot;
use crate::link::now;
use crate::request::{Again, Request};
use crate::wire::Wire;
use crate::{Error, Location, Options};
use redis::{Cmd, FromRedisValue, Value};

/// Commands that are sent together.
const TOGETHER: usize = 4096;
/// Bytes that are read at once.
const PIECE: usize = 512 << 10;

/// A string of bits in the key `NAME`, and its description in the hash
/// `{NAME}:config`, which a cluster keeps in the same slot. Redisson stores its
/// filters this way.
///
/// ```no_run
/// use tamis_redis::{BitString, Options};
/// let at = "redis://localhost/users".parse()?;
/// let mut bits = BitString::open(&at, &["size", "hashIterations"], &Options::new())?;
/// let was_set = bits.set(&[vec![7, 11]])?; // of one key
/// assert!(bits.get(&[vec![7, 11]])?[0]);
/// # Ok::<(), tamis_redis::Error>(())
/// ```
pub struct BitString {
    wire: Wire<Blocking>,
    name: String,
    /// The fields that must not change during a request, with their values.
    watched: Vec<(String, String)>,
}

impl BitString {
    fn new(at: &Location, options: &Options) -> Result<Self, Error> {
        let options = &at.options(options)?;
        Ok(Self {
            wire: now(Wire::new(Blocking::new(at, options), options))?,
            name: at.name().to_owned(),
            watched: Vec::new(),
        })
    }

    /// Opens a string whose description has all of these fields.
    pub fn open(at: &Location, fields: &[&str], options: &Options) -> Result<Self, Error> {
        let mut this = Self::new(at, options)?;
        let command = command!("HMGET", this.config(), fields);
        let values: Vec<Option<String>> = this.one("reading the description", command)?;
        if values.iter().all(Option::is_none) {
            return Err(Error::NotFound { name: this.name });
        }
        for (field, value) in fields.iter().zip(values) {
            match value {
                Some(value) => this.watched.push(((*field).to_owned(), value)),
                None => {
                    return Err(Error::Corrupt {
                        key: this.config(),
                        reason: format!("it has no field {field}"),
                    });
                }
            }
        }
        Ok(this)
    }

    /// Opens a string without a description, as programs create it with SETBIT.
    pub fn plain(at: &Location, options: &Options) -> Result<Self, Error> {
        let mut this = Self::new(at, options)?;
        let kind: String = this.one("looking for it", command!("TYPE", &this.name))?;
        match &*kind {
            "string" => Ok(this),
            "none" => Err(Error::NotFound { name: this.name }),
            _ => Err(Error::Corrupt {
                key: this.name,
                reason: format!("expected a string, got a {kind}"),
            }),
        }
    }

    /// Reads the whole string in pieces of ordinary size. Bits that are set
    /// meanwhile may or may not be included.
    pub fn read(&mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        loop {
            let (from, to) = (all.len(), all.len() + PIECE - 1);
            let command = command!("GETRANGE", &self.name, from, to);
            let piece: Vec<u8> = self.one("reading", command)?;
            all.extend_from_slice(&piece);
            if piece.len() < PIECE {
                break;
            }
        }
        // SETBIT never shortens a string, so it was deleted or replaced
        // meanwhile.
        if self.bytes()? < all.len() as u64 {
            let name = self.name.clone();
            return Err(Error::Gone { name });
        }
        Ok(all)
    }

    /// Creates an empty one. With `force`, replaces an existing one, but never
    /// a key without a description.
    pub fn create(
        at: &Location,
        fields: &[(&str, String)],
        force: bool,
        options: &Options,
    ) -> Result<(), Error> {
        let mut this = Self::new(at, options)?;
        let exists = |key: &str| command!("EXISTS", key);
        let asked = [exists(&this.name), exists(&this.config())];
        let there = this.ask("looking for what is there", &asked, Again::Harmless)?;
        let is = |at: usize| matches!(there.get(at), Some(Value::Int(1)));
        if is(0) && !is(1) {
            return Err(Error::Corrupt {
                key: this.name,
                reason: "it exists but has no description: it is something else".into(),
            });
        }
        let mut commands = vec![command!("MULTI")];
        if force {
            commands.push(command!("DEL", &this.name, this.config()));
        }
        for (field, value) in fields {
            commands.push(command!("HSETNX", this.config(), field, value));
        }
        commands.push(command!("EXEC"));
        let mut answers = this.ask("creating", &commands, Again::Never)?;
        let done = answers.pop().unwrap_or(Value::Nil);
        let done = Vec::<i64>::from_redis_value(done).unwrap_or_default();
        // The first HSETNX returns 1 only if there was no description.
        match done.get(usize::from(force)) {
            Some(1) => Ok(()),
            _ => Err(Error::Exists { name: this.name }),
        }
    }

    /// The value of a field that was requested when it was opened.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.watched.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads one more field of the description.
    pub fn more(&mut self, name: &str) -> Result<Option<String>, Error> {
        let command = command!("HGET", self.config(), name);
        self.one("reading the description", command)
    }

    /// For each key, given as its bits, whether all of them are set.
    pub fn get(&mut self, keys: &[Vec<u64>]) -> Result<Vec<bool>, Error> {
        let command = |bits: &Vec<u64>| {
            let mut command = command!("BITFIELD_RO", &self.name);
            for bit in bits {
                command.arg("GET").arg("u1").arg(*bit);
            }
            command
        };
        let commands: Vec<Cmd> = keys.iter().map(command).collect();
        self.bits("asking", &commands, Again::Harmless)
    }

    /// Sets the bits of each key at once, and returns for each key whether all
    /// were set before. Nothing is sent again if an answer is lost.
    pub fn set(&mut self, keys: &[Vec<u64>]) -> Result<Vec<bool>, Error> {
        let command = |bits: &Vec<u64>| {
            let mut command = command!("BITFIELD", &self.name);
            for bit in bits {
                command.arg("SET").arg("u1").arg(*bit).arg(1);
            }
            command
        };
        let commands: Vec<Cmd> = keys.iter().map(command).collect();
        self.bits("adding", &commands, Again::Never)
    }

    /// How many bits are set.
    pub fn ones(&mut self) -> Result<u64, Error> {
        let command = command!("BITCOUNT", &self.name);
        self.one("counting bits", command)
    }

    /// The length in bytes, up to the last bit that was ever set.
    pub fn bytes(&mut self) -> Result<u64, Error> {
        let command = command!("STRLEN", &self.name);
        self.one("measuring", command)
    }

    fn config(&self) -> String {
        format!("{{{}}}:config", self.name)
    }

    /// Whether all bits of each command's answer are set. Reads the
    /// description, if any, before and after, so that an answer can't belong to
    /// another filter.
    fn bits(
        &mut self,
        action: &'static str,
        commands: &[Cmd],
        again: Again,
    ) -> Result<Vec<bool>, Error> {
        let mut watch = command!("HMGET", self.config());
        for (field, _) in &self.watched {
            watch.arg(field);
        }
        if self.watched.is_empty() {
            watch = command!("EXISTS", &self.name);
        }
        let mut all = Vec::with_capacity(commands.len());
        for commands in commands.chunks(TOGETHER) {
            let mut sent = vec![watch.clone()];
            sent.extend_from_slice(commands);
            sent.push(watch.clone());
            let mut answers = self.ask(action, &sent, again)?;
            let watched = [answers.pop(), answers.drain(..1).next()];
            let bits = answers.into_iter().map(Vec::<u8>::from_redis_value);
            let same = watched.into_iter().flatten().all(|value| {
                if self.watched.is_empty() {
                    return value == Value::Int(1);
                }
                let now = Vec::<Option<String>>::from_redis_value(value).unwrap_or_default();
                let then = self.watched.iter().map(|(_, value)| Some(value));
                now.iter().map(Option::as_ref).eq(then)
            });
            if !same {
                let name = self.name.clone();
                return Err(Error::Gone { name });
            }
            for bits in bits {
                let bits = bits.map_err(|error| unexpected(action, error))?;
                all.push(bits.iter().all(|bit| *bit == 1));
            }
        }
        Ok(all)
    }

    fn one<T: FromRedisValue>(&mut self, action: &'static str, command: Cmd) -> Result<T, Error> {
        let mut answers = self.ask(action, &[command], Again::Harmless)?;
        let value = answers.pop().unwrap_or(Value::Nil);
        T::from_redis_value(value).map_err(|error| unexpected(action, error))
    }

    fn ask(
        &mut self,
        action: &'static str,
        commands: &[Cmd],
        again: Again,
    ) -> Result<Vec<Value>, Error> {
        let mut request = Request::new(slot(&self.name), commands);
        request.again = again;
        let answers = now(self.wire.ask(action, vec![request]))?;
        Ok(answers.into_iter().flatten().collect())
    }
}

fn unexpected(action: &'static str, error: impl Into<redis::RedisError>) -> Error {
    Error::Server {
        action,
        node: None,
        source: error.into(),
    }
}
