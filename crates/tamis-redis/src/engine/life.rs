//! How long a filter lives, and whether all of it does.

use super::{Engine, unlink_chunks};
use crate::body::{Body, Cells};
use crate::chunks::{CLOSED, Chunk, MARK};
use crate::link::{Link, Request};
use crate::record::Record;
use crate::{Error, Location, Options};
use redis::{Value, cmd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tamis::Kind;

/// The chunks outlive the record by so much: the clocks of nodes differ, and
/// the filter must end as a whole, not part by part.
const GRACE: Duration = Duration::from_secs(10);

impl<L: Link> Engine<L> {
    /// Lets the whole filter expire after `time`.
    pub(crate) async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        self.load_layers().await?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let at = now.saturating_add(time).as_millis().min(i64::MAX as u128) as u64;
        // The record first: without it the rest is nobody's.
        let expire = "return redis.call('PEXPIREAT', KEYS[1], ARGV[2])";
        let text = at.to_string();
        self.if_ours("expiring the filter", expire, &[], &[text.as_bytes()])
            .await?;
        let later = at.saturating_add(GRACE.as_millis() as u64);
        self.on_all_parts("expiring the filter", |key| {
            cmd("PEXPIREAT").arg(key).arg(later).take()
        })
        .await
    }

    /// Lets the filter live for ever.
    pub(crate) async fn persist(&mut self) -> Result<(), Error> {
        self.load_layers().await?;
        // The record last: until then the filter ends as a whole.
        self.on_all_parts("persisting the filter", |key| {
            cmd("PERSIST").arg(key).take()
        })
        .await?;
        let persist = "redis.call('PERSIST', KEYS[1]) return 1";
        self.if_ours("persisting the filter", persist, &[], &[])
            .await
            .map(drop)
    }

    /// Runs a command on the hash of a growing filter and on every chunk.
    async fn on_all_parts(
        &mut self,
        action: &'static str,
        command: impl Fn(&str) -> redis::Cmd,
    ) -> Result<(), Error> {
        let mut requests: Vec<Request> = self
            .all_chunks()
            .map(|(_, chunk)| Request::new(chunk.slot, &[command(&chunk.key)]))
            .collect();
        if self.growth.is_some() {
            requests.push(Request::new(self.home, &[command(&self.state_key())]));
        }
        self.wire.ask(action, requests).await.map(drop)
    }

    /// Gives chunks the time to live that the record has.
    pub(super) async fn expire_like_record(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        let left = self.time_to_live().await?;
        let expire = |chunk: &Chunk| {
            let command = match left {
                None => cmd("PERSIST").arg(&chunk.key).take(),
                Some(left) => {
                    let left = (left + GRACE).as_millis() as u64;
                    cmd("PEXPIRE").arg(&chunk.key).arg(left).take()
                }
            };
            Request::new(chunk.slot, &[command])
        };
        let requests = chunks.iter().map(expire).collect();
        self.wire
            .ask("expiring the filter", requests)
            .await
            .map(drop)
    }

    /// How long the filter lives, if not for ever.
    pub(crate) async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        let ask = "return redis.call('PTTL', KEYS[1])";
        match self
            .if_ours("asking the filter's time to live", ask, &[], &[])
            .await?
        {
            Value::Int(left @ 0..) => Ok(Some(Duration::from_millis(left as u64))),
            Value::Int(-1) => Ok(None),
            _ => Err(self.gone()),
        }
    }

    /// Checks the record, and that every part is there, of the right length
    /// and marked.
    pub(crate) async fn verify(&mut self) -> Result<(), Error> {
        self.if_ours("verifying the filter", "return 1", &[], &[])
            .await?;
        self.load_layers().await?;
        let look = |(_, chunk): (_, &Chunk)| {
            let mark = cmd("GETRANGE")
                .arg(&chunk.key)
                .arg(chunk.len)
                .arg(chunk.len)
                .take();
            let len = cmd("STRLEN").arg(&chunk.key).take();
            Request::new(chunk.slot, &[mark, len])
        };
        let requests = self.all_chunks().map(look).collect();
        let answers = self.wire.ask("verifying the filter", requests).await?;
        let unsound = self.all_chunks().zip(answers).find(|((_, chunk), answer)| {
            let whole = chunk.len as i64 + 1;
            !matches!(&answer[..], [Value::BulkString(mark), Value::Int(len)]
                if matches!(mark[..], [MARK | CLOSED]) && *len == whole)
        });
        match unsound.map(|((missing, _), _)| missing) {
            Some(missing) => Err(self.why_missing(missing).await),
            None => Ok(()),
        }
    }

    /// Deletes the filter of this name, finished or not.
    pub(crate) async fn delete_at(link: L, at: &Location, options: &Options) -> Result<(), Error> {
        Self::at_hand(link, at, options).await?.delete().await
    }

    /// [`expire_in`](Self::expire_in) without opening the filter.
    pub(crate) async fn expire_at(
        link: L,
        at: &Location,
        time: Duration,
        options: &Options,
    ) -> Result<(), Error> {
        let mut this = Self::at_hand(link, at, options).await?;
        this.expire_in(time).await
    }

    /// [`persist`](Self::persist) without opening the filter.
    pub(crate) async fn persist_at(link: L, at: &Location, options: &Options) -> Result<(), Error> {
        Self::at_hand(link, at, options).await?.persist().await
    }

    /// The filter of this name, finished or not, whose secret we may not have:
    /// not to be asked or added to.
    async fn at_hand(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        let mut this = Self::find(link, at, options, Record::decode_without_key).await?;
        match this.header.shape().kind() {
            // One that was never finished may have no layers yet.
            Kind::Growing => match this.load_layers().await {
                Err(Error::MissingChunk { .. }) => this.bodies = vec![this.first_layer_body()],
                loaded => loaded?,
            },
            _ => this.bodies = vec![this.fixed_body()?],
        }
        Ok(this)
    }

    /// Where the first layer is, or would be.
    fn first_layer_body(&self) -> Body {
        let tamis::raw::Shape::Growing(shape) = self.record.header.shape() else {
            unreachable!("only growing filters have layers");
        };
        let (hashes, per_key) = (shape.hashes_per_line(), shape.lines_per_key());
        let first = tamis::raw::BlockedShape::new(shape.lines() - 1, hashes, per_key);
        let first = first.expect("a growing shape has lines");
        Body::new(Cells::Bits(first), &self.name, self.record.generation)
    }

    /// Deletes the filter.
    pub(crate) async fn delete(mut self) -> Result<(), Error> {
        if self.growth.is_some() {
            match self.load_layers().await {
                // What is left of it is deleted below.
                Ok(()) | Err(Error::MissingChunk { .. } | Error::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // The record first: without it the rest is nobody's. If it is gone,
        // perhaps by a try of ours whose answer was lost, the rest goes, too.
        let delete = "return redis.call('DEL', KEYS[1])";
        let deleted = self.if_ours("deleting the filter", delete, &[], &[]).await;
        if !matches!(deleted, Ok(_) | Err(Error::Gone { .. })) {
            return deleted.map(drop);
        }
        if self.record.header.shape().kind() == Kind::Growing {
            let command = cmd("UNLINK").arg(self.state_key()).take();
            self.wire
                .ask_one("deleting the filter", self.home, command)
                .await?;
        }
        for body in &self.bodies {
            unlink_chunks(&mut self.wire, &body.chunks).await?;
        }
        deleted.map(drop)
    }
}
