//! What a client remembers of a filter, to notice a server that came back with
//! older data.
//!
//! The hash next to the record, `{NAME}:generation`, contains the filter's
//! mark: the number of keys ever sent to be added. Every batch reads it, and
//! those that add keys increment it, in the same pipeline. A mark lower than
//! one seen before means older data. The witness, on another node, gets the
//! mark from time to time, so that opening the filter shows an older record,
//! too.
//!
//! Other clients may have incremented an older mark again before we read it. So
//! a client also remembers its last keys, and looks them up whenever it had to
//! reconnect.

use super::Engine;
use super::reading::{number, read_testimony};
use super::watch::Seen;
use crate::Error;
use crate::body::Cells;
use crate::chunks::slot;
use crate::failure::Failure;
use crate::link::Link;
use crate::record::{Testimony, digits, witness};
use crate::request::Request;
use redis::Value;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tamis::{Hash, Kind};

/// Keys to remember: enough to include some of each node's.
const RECENT: usize = 1 << 10;
/// How often a client records the time of its last write.
const STAMP_EVERY: Duration = Duration::from_secs(1);
/// The witness gets the mark after at least this many keys …
const LEAST_TOLD: u64 = 1 << 10;
/// … and after this share of the filter's capacity.
const TOLD_SHARE: u64 = 256;

/// Standard deviations by which no part differs from the others by chance.
const FAR: f64 = 10.0;

/// Updates a witness's mark. Creates the witness if it is missing (2), and
/// leaves another filter's alone (0).
const TELL: &str = "
local known = redis.call('GETRANGE', KEYS[1], 0, 23)
if known == '' then
  redis.call('SET', KEYS[1], ARGV[2])
  return 2
end
if known ~= ARGV[1] then return 0 end
if ARGV[4] == 'accept' or redis.call('GETRANGE', KEYS[1], 168, -1) < ARGV[3] then
  redis.call('SETRANGE', KEYS[1], 168, ARGV[3])
end
return 1";

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The highest mark that we have seen.
    pub(super) mark: u64,
    /// The mark that was last sent to the witness.
    told: u64,
    /// The last new and confirmed keys; in a window, with their periods.
    recent: VecDeque<(Hash, i64)>,
    /// The number of connections when the recent keys were last checked.
    connections: u64,
    /// The filter's count of clearings when the recent keys were last checked.
    pub(super) cleared: Option<u64>,
    /// New keys that aren't counted in the hash yet.
    pub(super) uncounted: u64,
    /// The evidence that keys are lost.
    lost: Option<String>,
    /// When we last recorded the time.
    stamped: Option<Instant>,
}

impl Memory {
    /// Remembers the last of these keys.
    fn keep_in_mind(&mut self, added: impl DoubleEndedIterator<Item = (Hash, i64)>) {
        let mut last: Vec<_> = added.rev().take(RECENT).collect();
        last.reverse();
        self.recent.extend(last);
        let many = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..many);
    }

    /// Whether to record the time of the last write.
    pub(super) fn stamp_is_due(&self) -> bool {
        self.stamped
            .is_none_or(|stamped| stamped.elapsed() >= STAMP_EVERY)
    }
}

impl<L: Link> Engine<L> {
    /// Compares the mark with the witness's when a filter is opened.
    pub(super) async fn recall(&mut self) -> Result<(), Error> {
        let key = witness(&self.name);
        let testimony = read_testimony(&mut self.wire, &key).await?;
        // Read after the witness, whose mark must not be higher.
        let command = command!("HGET", self.state_key(), "mark");
        let answer = self.ask_home("opening the filter", command).await?;
        let mark = number(&answer);
        self.memory.mark = mark.unwrap_or(0);
        if let Some(Testimony { record, mark: told }) = testimony
            && record.generation == self.record.generation
        {
            self.memory.told = told;
            if told > self.memory.mark {
                return Err(self.lost(format!(
                    "the record knows of {} keys that were sent, its witness {key} of {told}",
                    self.memory.mark
                )));
            }
        }
        self.is_cleared().await?;
        self.fill.is_known(mark.is_some(), self.capacity());
        self.memory.connections = self.stats().connections;
        Ok(())
    }

    pub(super) fn lost(&mut self, reason: String) -> Error {
        self.memory.lost = Some(reason.clone());
        Error::RolledBack {
            name: self.name.clone(),
            reason,
        }
    }

    /// An error once lost keys were noticed. Only a client that opens the
    /// filter anew may use the rest.
    pub(super) fn check_memory(&self) -> Result<(), Error> {
        match &self.memory.lost {
            None => Ok(()),
            Some(reason) => Err(Error::RolledBack {
                name: self.name.clone(),
                reason: reason.clone(),
            }),
        }
    }

    /// Compares marks that a batch has read with the one we remember. If we
    /// wait for replicas, only replicated marks count: a replica that takes
    /// over lacks the rest, but the rest was never confirmed.
    pub(super) fn compare_marks(&mut self, seen: Seen) -> Result<(), Error> {
        let Some((lowest, highest)) = seen.marks else {
            return Ok(());
        };
        let known = self.memory.mark;
        if lowest < known {
            return Err(self.lost(format!(
                "the server knows of {lowest} keys that were sent, and knew of {known} before"
            )));
        }
        if seen.firm || self.wire.wait.is_none() {
            self.memory.mark = highest;
        }
        Ok(())
    }

    /// Remembers keys that were added, and updates the witness at times.
    pub(super) async fn remember(&mut self, hashes: &[Hash], new: &[bool]) {
        if self.memory.stamp_is_due() {
            self.memory.stamped = Some(Instant::now());
        }
        // Keys of a counting filter may be removed.
        if self.header.shape().kind() != Kind::Counting {
            let added = hashes.iter().zip(new).filter(|(_, new)| **new);
            self.memory.keep_in_mind(added.map(|(hash, _)| (*hash, 0)));
        }
        let step = (self.header.capacity() / TOLD_SHARE).max(LEAST_TOLD);
        let mark = self.memory.mark;
        if mark >= self.memory.told.saturating_add(step) {
            self.memory.told = mark;
            self.tell_witness(mark).await;
        }
    }

    /// Remembers keys of a window that were added, with their periods.
    pub(super) fn remember_periods(&mut self, hashes: &[Hash], added: &[(usize, i64)]) {
        let added = added.iter().map(|(i, period)| (hashes[*i], *period));
        self.memory.keep_in_mind(added);
    }

    /// Sends the mark to the witness, without retries: a missed update loses
    /// nothing.
    async fn tell_witness(&mut self, mark: u64) {
        let request = self.testify(mark, "");
        let ticket = self.wire.link.send(&[&request], None).await;
        match self.wire.link.receive(ticket).await.pop() {
            Some(Err(Failure::Moved(node))) => self.wire.link.moved(request.slot, node),
            // It is new, and must expire with the other parts.
            Some(Ok(answer)) if answer == [Value::Int(2)] => {
                let _ = self.expire_witness().await;
            }
            _ => {}
        }
    }

    fn testify(&self, mark: u64, how: &str) -> Request {
        let key = witness(&self.name);
        let identity = self.record.identity();
        let anew = Testimony::encode(&self.record, mark);
        let digits = digits(mark);
        let command = command!("EVAL", TELL, 1, &key, &identity[..], anew, digits, how);
        Request::new(slot(&key), &[command])
    }

    /// Creates the witness of a new filter.
    pub(super) async fn call_witness(&mut self) -> Result<(), Error> {
        let key = witness(&self.name);
        let command = command!("SET", &key, Testimony::encode(&self.record, 0));
        let request = Request::new(slot(&key), &[command]).replicated();
        let made = self.wire.ask_request("creating the filter", request);
        made.await.map(drop)
    }

    /// Accepts the filter as it is: lost keys stay lost.
    pub(crate) async fn accept_loss(&mut self) -> Result<(), Error> {
        let command = command!("HGET", self.state_key(), "mark");
        let answer = self.ask_home("accepting the loss", command).await?;
        let request = self.testify(number(&answer).unwrap_or(0), "accept");
        self.wire.ask("accepting the loss", vec![request]).await?;
        self.forget_versions().await?;
        self.expire_witness().await?;
        self.close_layers().await?;
        if let Some(counted) = self.counted_keys().await? {
            let (there, _) = self.estimate(counted).await?;
            self.set_counted(counted.min(there as u64)).await?;
        }
        Ok(())
    }

    /// After a reconnect, checks whether our last keys are still there.
    pub(super) async fn look_back(&mut self) -> Result<(), Error> {
        let connections = self.stats().connections;
        if connections == self.memory.connections {
            return Ok(());
        }
        let recent = Vec::from(self.memory.recent.clone());
        let gone = if recent.is_empty() {
            0
        } else if self.window.is_some() {
            self.recent_gone(&recent).await?
        } else {
            let hashes: Vec<Hash> = recent.iter().map(|(hash, _)| *hash).collect();
            let mut found = vec![false; recent.len()];
            self.ask_all(&hashes, &mut found).await?;
            found.iter().filter(|found| !**found).count()
        };
        if gone > 0 && self.is_cleared().await? {
            self.memory.recent.clear();
        } else if gone > 0 {
            return Err(self.lost(format!(
                "{gone} of the last {} that this client has added",
                recent.len()
            )));
        }
        self.memory.connections = connections;
        Ok(())
    }

    /// After someone has cleared the filter, drops what we remember from
    /// before.
    pub(super) async fn forget_cleared(&mut self) {
        self.memory.recent.clear();
        // If it can't be read now, the next check will try again.
        let _ = self.is_cleared().await;
    }

    /// Leaves our counts and room to the original that this was copied from.
    pub(super) const fn forget_room(&mut self) {
        self.memory.uncounted = 0;
        if let Some(growth) = &mut self.growth {
            growth.forget_room();
        }
    }

    /// Whether someone has cleared the filter since we last looked.
    async fn is_cleared(&mut self) -> Result<bool, Error> {
        let command = command!("HGET", self.state_key(), "cleared");
        let answer = self.ask_home("asking the filter", command).await?;
        let before = std::mem::replace(&mut self.memory.cleared, number(&answer));
        Ok(before != self.memory.cleared)
    }

    /// Counts keys that were sent in another way than by adding them. With
    /// `cleared`, lets other clients know that all earlier keys are gone.
    pub(super) async fn note(&mut self, sent: u64, cleared: bool) -> Result<(), Error> {
        let key = self.state_key();
        let count = "redis.call('HINCRBY', KEYS[2], 'cleared', ARGV[3]) \
                     return redis.call('HINCRBY', KEYS[2], 'mark', ARGV[2])";
        let args = [sent.to_string(), u64::from(cleared).to_string()];
        let args = args.each_ref().map(|arg| arg.as_bytes());
        let mark = self
            .change_ours("changing the filter", count, &[&key], &args)
            .await?;
        if let Some(mark) = number(&mark) {
            self.memory.mark = self.memory.mark.max(mark);
        }
        if cleared {
            self.memory.recent.clear();
            self.memory.uncounted = 0;
            self.is_cleared().await?;
        }
        Ok(())
    }
}

impl<L: Link> Engine<L> {
    /// Whether a part of a body has far fewer bits than the others. Keys are
    /// spread evenly, so its server then has older data than the others.
    pub(super) async fn compare_parts(&mut self, number: usize) -> Result<(), Error> {
        let Cells::Bits(shape) = self.bodies[number].cells() else {
            return Ok(());
        };
        let chunks = self.bodies[number].chunks.clone();
        let ones = self.ones_by_chunk(number, chunks.len()).await?;
        let all_ones: u64 = ones.iter().sum();
        let all_bits: u64 = chunks.iter().map(|chunk| chunk.len * 8).sum();
        let hashes = f64::from(shape.hashes_per_line());
        for (chunk, ones) in chunks.iter().zip(ones) {
            let bits = chunk.len * 8;
            if bits == all_bits {
                break;
            }
            let fill = ones as f64 / bits as f64;
            let expected = (all_ones - ones) as f64 / (all_bits - bits) as f64;
            let keys = |fill: f64| -(-fill).ln_1p() * bits as f64 / hashes;
            // The variance of the number of keys, and of the estimate from the
            // bits.
            let chance =
                keys(expected) + bits as f64 * expected / (1.0 - expected) / hashes.powi(2);
            if expected < 1.0 && keys(fill) < keys(expected) - FAR * chance.sqrt() {
                return Err(self.lost(format!(
                    "the part {} holds about {:.0} keys, and the others about {:.0} each",
                    chunk.key,
                    keys(fill),
                    keys(expected)
                )));
            }
        }
        Ok(())
    }
}
