//! Tamis filters in Redis or Valkey: one filter for many workers on many
//! machines, on the servers you already run, one node or Redis Cluster. No module
//! is needed; if the server has one with BF.* and CF.* commands, its filters can
//! be used as well ([`Options::in_module`] creates them).
//!
//! ```no_run
//! use tamis::{Hasher, Kind, Plan};
//! use tamis_redis::{Location, Options, RedisFilter};
//!
//! let at: Location = "redis+cluster://a.example:6379,b.example:6379/seen".parse()?;
//! let options = Options::new();
//! let plan = Plan::one_line(Kind::Blocked, 1_000_000_000, 0.01)?;
//! let mut seen = RedisFilter::create(&at, &plan, Hasher::default(), &options)?;
//!
//! let urls = ["https://example.org/", "https://example.com/"];
//! let mut new = [false; 2];
//! seen.insert_many(&urls, &mut new)?; // each URL is new to one worker only
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`RedisFilter`] blocks; `aio::RedisFilter` is the same for services on
//!   Tokio (feature `aio`).
//! - [`Location`] says where a filter lives, [`Options`] how to talk to the
//!   servers: timeouts, retries, replicas to wait for, TLS.
//! - Kinds: blocked, counting (keys can be removed), growing (any number of
//!   keys) and windows of time, which forget. Files of these kinds go up ([`RedisFilter::upload`]) and come down
//!   ([`RedisFilter::download`]) with the same bits.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `tls`: locations that begin with `rediss`.
//! - `aio`: the filter for Tokio.
//! - `tracing`: events for connections, retries and redirections.
//!
//! # What is stored on the servers
//!
//! The body is cut into chunks of up to 4 MiB: plain strings with the same bytes
//! as a file's body, plus a foot of 10 bytes. Their names spread them over the
//! slots of a cluster, so a filter can be larger than a node, and larger than
//! the longest string. The key with the filter's name holds its header and a
//! random number, the generation, which is part of every chunk's name: leftovers
//! of a deleted filter can't be mistaken for parts of another.
//!
//! A window's strings have buckets of fingerprints instead, each with the
//! generation that its key was seen in. A chunk whose buckets are full gets further
//! strings in its slot, so that a script changes all of them in one step.
//!
//! # What is promised
//!
//! - **Never a false "no"**, as long as the servers keep what they confirmed. A
//!   missing part (evicted, expired, lost) is [`Error::MissingChunk`], never an
//!   answer: every command checks the mark. Set `maxmemory-policy noeviction`.
//! - **Of many workers that add a new key, exactly one gets the answer "new"**:
//!   all bits of a key are in one line and are set by one atomic command, a
//!   growing filter closes a layer before it starts the next, and a window
//!   changes a slot only if the slot hasn't changed since it was chosen. In
//!   filters that were uploaded with several lines per key, more than one
//!   worker may get "new", but never none.
//! - **Without an answer, a change counts as not made.** When connections
//!   break, nodes go down or slots move, unanswered requests are sent again
//!   until [`Options::retry_for`] has passed. Then [`Error::Unconfirmed`] lists
//!   the unconfirmed keys. A key whose first attempt may have been executed is
//!   reported as new, even if it was not: a crawler fetches a page twice rather
//!   than never. Counters would count twice, so changes to a counting filter
//!   are not repeated when their answer is lost.
//! - **A replica that has lost its master is not asked**, unless
//!   [`Options::allow_stale`] is set: it would answer "no" to every key added
//!   since.
//! - **Replicas are not written to**, not even writable ones, unless
//!   [`Options::allow_replica_writes`] is set: the master would not get the
//!   keys.
//! - **Redis answers before it replicates**: a failover may lose the last
//!   confirmed keys. With [`Options::wait_replicas`], keys are confirmed only
//!   once replicas have them.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod command;

mod address;
#[cfg(feature = "aio")]
pub mod aio;
mod backend;
mod batch;
mod bit_string;
mod blocking;
mod body;
mod chunks;
mod connection;
mod engine;
mod error;
mod failure;
mod filter;
mod finding;
mod hide;
mod info;
mod link;
mod location;
mod looks;
mod module;
#[cfg(feature = "aio")]
mod multiplexed;
mod options;
mod packed;
mod parameters;
mod record;
mod request;
mod role;
mod sliding;
mod stats;
mod survey;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod trust;
mod warning;
mod way;
mod wire;

pub use bit_string::BitString;
pub use error::Error;
pub use filter::RedisFilter;
pub use hide::hide_passwords;
pub use location::{Location, Servers};
pub use module::Layout;
pub use options::Options;
pub use stats::Stats;
pub use survey::{Condition, Found, Node, Orphan, Share, Survey};
/// Estimates of the server memory that filters use.
pub use tamis::internals::plan::server as memory;
pub use warning::Warning;

/// Decodes a record and the layer description behind it, and names their parts.
/// Never panics, and trusts none of the numbers. For the fuzzer.
#[doc(hidden)]
pub fn check_record(bytes: &[u8]) {
    const RECORD: usize = 168;
    let (record, layer) = bytes.split_at_checked(RECORD).unwrap_or((bytes, &[]));
    let decoded = [
        record::Record::decode("name", record, None),
        record::Record::decode_without_key("name", record),
    ];
    for record in decoded.into_iter().flatten() {
        assert_eq!(record.encode()[..24], bytes[..24]);
        engine::name_parts(&record, layer);
    }
}

/// Compiles the examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
