//! What is sent to the servers, and what its answers may take.

use crate::Options;
use crate::address::Address;
use crate::packed::Packed;
use redis::Cmd;
use std::time::Duration;

/// What the answers to any batch may hold, in bytes.
pub(crate) const SMALL: u64 = 1 << 20;
/// What the answer to `CLUSTER SLOTS` may hold: of every slot for itself, some
/// nodes.
pub(crate) const SLOTS_ANSWER: u64 = 1 << 24;
/// The least that a connection must carry: for so many bytes there is a second
/// more.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Commands that only read. Any other is taken for a write.
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

/// Replicas to wait for, and how long.
pub(crate) type Wait = Option<(u32, Duration)>;

/// Commands for one slot, that are asked again together.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) slot: u16,
    pub(crate) packed: Packed,
    /// Whether to send it again when its answer was lost.
    pub(crate) again: Again,
    /// Whether replicas must have what it writes, if we wait for any.
    pub(crate) replicated: bool,
    /// Where to ask for once, while the slot moves there.
    pub(crate) ask: Option<Address>,
    /// How much its answers may be longer than itself, in bytes.
    pub(crate) more: u64,
}

/// Whether a request may be sent again when its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Yes: idempotent.
    Harmless,
    /// No: a second time changes more.
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

    /// The same, whose answers hold so many bytes, or a little more.
    pub(crate) const fn answered_with(mut self, bytes: u64) -> Self {
        self.more = bytes;
        self
    }

    /// What its answers may hold, in bytes, in addition to what every batch may.
    const fn most(&self) -> u64 {
        self.more.saturating_add(self.packed.bytes.len() as u64)
    }

    /// The same, taken as done only when replicas have it. Its last command
    /// must change something: `WAIT` waits for the last write of a connection,
    /// and one that changes nothing is none.
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

/// What the answers to a batch may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

impl Allowance {
    /// Of these requests, behind which replicas are waited for.
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

/// How long so many bytes may be on their way.
pub(crate) const fn transfer(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND)
}
