//! The number of new keys that clients have counted: at least this many must be
//! in the filter. A part that was restored from an older copy looks valid, and
//! this count shows that keys are missing from it.
//!
//! The count is in the hash next to the record (`keys`). It is never too high:
//! a count that may have arrived isn't sent again, and keys that a client
//! hasn't counted before it ends stay uncounted.

use super::Engine;
use super::reading::number;
use crate::Error;
use crate::body::Cells;
use crate::failure::Failure;
use crate::link::Link;
use crate::request::Request;
use redis::Value;
use tamis::Hash;

/// New keys that a client may keep uncounted between its batches …
const UNCOUNTED: u64 = 1 << 6;
/// … or this share of the capacity, of a filter that doesn't grow.
const UNCOUNTED_SHARE: u64 = 256;

/// Standard deviations by which no estimate is off by chance.
const FAR: f64 = 10.0;

/// Counts new keys, unless they were added before the filter was cleared (0).
const COUNT: &str = "
if (redis.call('HGET', KEYS[2], 'cleared') or '') ~= ARGV[2] then return 0 end
redis.call('HINCRBY', KEYS[2], 'keys', ARGV[3])
return 1";

impl<L: Link> Engine<L> {
    /// Adds to the count of new keys, and sends it to the hash from time to
    /// time.
    pub(super) async fn count_new(&mut self, new: u64) {
        self.memory.uncounted += new;
        let share = match self.growth {
            Some(_) => 0,
            None => self.header.capacity() / UNCOUNTED_SHARE,
        };
        if self.memory.uncounted < UNCOUNTED.max(share) {
            return;
        }
        let uncounted = std::mem::take(&mut self.memory.uncounted);
        let cleared = self
            .memory
            .cleared
            .map_or_else(String::new, |n| n.to_string());
        let (key, added) = (self.state_key(), uncounted.to_string());
        let args = [cleared.as_bytes(), added.as_bytes()];
        let request = self.if_ours_request("EVAL", COUNT, &[&key], &args);
        // Sent only once: a retry might count the keys twice.
        let ticket = self.wire.link.send(&[&request], None).await;
        match self.wire.link.receive(ticket).await.pop() {
            Some(Ok(answer)) if answer == [Value::Int(0)] => self.forget_cleared().await,
            Some(Err(Failure::Moved(node))) => {
                self.wire.link.moved(request.slot, node);
                self.memory.uncounted = uncounted;
            }
            Some(Err(Failure::NotNow(_))) => self.memory.uncounted = uncounted,
            _ => {}
        }
    }

    /// Subtracts keys that are about to be removed.
    pub(super) fn uncount(&self, keys: &[Hash]) -> Request {
        let less = -i64::try_from(keys.len()).unwrap_or(i64::MAX);
        let command = command!("HINCRBY", self.state_key(), "keys", less);
        Request::new(self.home, &[command])
    }

    /// The number of new keys that clients have counted; unknown for filters
    /// older than this count.
    pub(super) async fn counted_keys(&mut self) -> Result<Option<u64>, Error> {
        let command = command!("HMGET", self.state_key(), "made", "keys");
        let answer = self.ask_home("counting the keys", command).await?;
        match answer {
            Value::Array(fields) if matches!(fields[..], [Value::BulkString(_), _]) => {
                Ok(fields.get(1).and_then(number))
            }
            _ => Ok(None),
        }
    }

    /// Sets the count after keys were added in another way.
    pub(super) async fn set_counted(&mut self, keys: u64) -> Result<(), Error> {
        let command = command!("HSET", self.state_key(), "keys", keys);
        let request = Request::new(self.home, &[command]).replicated();
        let set = self.wire.ask_request("counting the keys", request);
        set.await.map(drop)
    }

    /// Whether the filter has far fewer keys than were counted.
    pub(super) async fn compare_counted(&mut self) -> Result<(), Error> {
        // A key with several lines may be new to more than one client.
        let several = |cells: Cells| cells.lines_per_key() > 1;
        if self.bodies.is_empty() || self.bodies.iter().any(|body| several(body.cells())) {
            return Ok(());
        }
        let before = self.counted_keys().await?.unwrap_or(0);
        let (there, chance) = self.estimate(before).await?;
        // Some or all keys may have been removed meanwhile.
        let counted = before.min(self.counted_keys().await?.unwrap_or(0));
        if (counted as f64) <= there + FAR * chance {
            return Ok(());
        }
        Err(self.lost(format!(
            "its parts hold about {there:.0} keys, and clients have added {counted} at least: \
             a part may have been restored from an older copy"
        )))
    }

    /// The number of keys in all bodies, and the standard deviation of that
    /// estimate if there are about `keys` of them.
    pub(super) async fn estimate(&mut self, keys: u64) -> Result<(f64, f64), Error> {
        let (mut there, mut variance) = (0.0, 0.0);
        let all: u64 = self.bodies.iter().map(|body| body.cells().lines()).sum();
        for number in 0..self.bodies.len() {
            let cells = self.bodies[number].cells();
            let (held, share) = match cells {
                Cells::Bits(shape) => {
                    let chunks = self.bodies[number].chunks.len();
                    let ones = self.ones(number, chunks).await?;
                    (shape.keys_from_ones(ones), 1.0)
                }
                Cells::Counters(_) => self.sampled_keys(number).await?,
            };
            there += held;
            let size = (cells.lines() / cells.width() * 512) as f64;
            let hashes = cells.hashes_per_line() as f64;
            let keys = keys as f64 * cells.lines() as f64 / all as f64;
            let odds = (keys.max(held) * hashes / size).exp_m1();
            // The errors of estimating from bits, and of choosing a sample.
            variance += (size * odds / hashes.powi(2) + keys * (1.0 - share)) / share;
        }
        Ok((there, variance.sqrt()))
    }
}
