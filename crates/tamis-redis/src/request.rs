//! Requests to the servers, and limits on their answers.

use crate::Options;
use crate::address::Address;
use crate::packed::Packed;
use redis::Cmd;
use std::time::Duration;

/// The bytes that the answers to any batch may take.
pub(crate) const SMALL: u64 = 1 << 20;
/// The bytes that the answer to `CLUSTER SLOTS` may take: room for some nodes
/// for each slot.
pub(crate) const SLOTS_ANSWER: u64 = 1 << 24;
/// The slowest connection we allow for: this many bytes get one more second.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Commands that only read. All others count as writes.
const READS: [&str; 25] = [
    "BF.INFO",
    "BF.MEXISTS",
    "BF.SCANDUMP",
    "BITCOUNT",
    "BITFIELD_RO",
    "CF.COUNT",
    "CF.INFO",
    "CF.MEXISTS",
    "DUMP",
    "EVAL_RO",
    "EXISTS",
    "GET",
    "GETRANGE",
    "HGET",
    "HGETALL",
    "HMGET",
    "INFO",
    "MEMORY",
    "OBJECT",
    "PTTL",
    "SCAN",
    "STRLEN",
    "TIME",
    "TOUCH",
    "TYPE",
];

/// The number of replicas to wait for, and how long.
pub(crate) type Wait = Option<(u32, Duration)>;

/// Commands for one slot, retried together.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) slot: u16,
    pub(crate) packed: Packed,
    /// Whether to send it again if its answer is lost.
    pub(crate) again: Again,
    /// Whether replicas must have its changes, if we wait for replicas.
    pub(crate) replicated: bool,
    /// The node to ask once (`ASK`), while the slot moves there.
    pub(crate) ask: Option<Address>,
    /// How many bytes longer than the request its answers may be.
    pub(crate) more: u64,
}

/// Whether a request may be sent again if its answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Yes: idempotent.
    Harmless,
    /// No: it would change more.
    Never,
}

impl Request {
    pub(crate) fn new(slot: u16, commands: &[Cmd]) -> Self {
        Self::packed(slot, commands.into())
    }

    pub(crate) const fn packed(slot: u16, packed: Packed) -> Self {
        Self {
            slot,
            packed,
            again: Again::Harmless,
            replicated: false,
            ask: None,
            more: 0,
        }
    }

    /// The request, with room for about this many bytes of answers.
    pub(crate) const fn answered_with(mut self, bytes: u64) -> Self {
        self.more = bytes;
        self
    }

    /// The most bytes of its answers, in addition to those allowed for every
    /// batch.
    const fn most(&self) -> u64 {
        self.more.saturating_add(self.packed.bytes.len() as u64)
    }

    /// The request, done only once replicas have it. Its last command must
    /// change something, because `WAIT` waits for the connection's last write.
    pub(crate) const fn replicated(mut self) -> Self {
        self.replicated = true;
        self
    }

    /// The name of the first command.
    pub(crate) fn command(&self) -> String {
        let name = self.packed.names().next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// Whether one of the commands may change something.
    pub(crate) fn writes(&self) -> bool {
        let reads = |name: &[u8]| READS.iter().any(|read| read.as_bytes() == name);
        !self.packed.names().all(reads)
    }
}

/// Limits on the answers to a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

impl Allowance {
    /// The limits for these requests, including the wait for replicas.
    pub(crate) fn of<'a>(
        requests: impl Iterator<Item = &'a Request>,
        wait: Wait,
        options: &Options,
    ) -> Self {
        let bytes = requests.fold(0, |sum: u64, request| sum.saturating_add(request.most()));
        let wait = wait.map_or(Duration::ZERO, |(_, time)| time);
        Self {
            time: options.response_timeout + wait + transfer(bytes),
            bytes: bytes.saturating_add(SMALL),
        }
    }
}

/// The time allowed for transferring this many bytes.
pub(crate) const fn transfer(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND)
}
