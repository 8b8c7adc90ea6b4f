//! Tamis filters in Redis or Valkey: one filter for many workers on many
//! machines, on servers that people already run, one node or Redis Cluster. No
//! module has to be loaded; where one that answers BF.* and CF.* is, its filters
//! are used as well ([`Options::in_module`] makes them).
//!
//! ```no_run
//! use tamis::{Hasher, Kind, Plan};
//! use tamis_redis::{Location, Options, RedisFilter};
//!
//! let at: Location = "redis-cluster://a.example:6379,b.example:6379/seen".parse()?;
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
//! - [`RedisFilter`] blocks; [`aio::RedisFilter`] is the same for services on
//!   Tokio.
//! - [`Location`] says where a filter lives, [`Options`] how to talk to the
//!   servers: timeouts, retries, replicas to wait for, TLS.
//! - Kinds: blocked, counting (keys can be removed) and growing (any number of
//!   keys). Files of these kinds go up ([`RedisFilter::upload`]) and come down
//!   ([`RedisFilter::download`]) with the same bits.
//!
//! # What lies on the servers
//!
//! The body is cut into chunks of up to 4 MiB, plain strings with the same
//! bytes as a file's body and one byte more, which marks them. Their names
//! spread them over the slots of a cluster, so that a filter may be larger
//! than a node, and than the longest string. The key of the filter's name
//! holds its header and a random number, the generation, which the chunks'
//! names carry: what is left of a deleted filter can't be taken for another's.
//!
//! # What is promised
//!
//! - **Never a false "no"**, as far as the servers keep what they confirmed. A
//!   part that is missing (evicted, expired, lost) is
//!   [`Error::MissingChunk`], never an answer: every command looks for the
//!   mark. Set `maxmemory-policy noeviction`.
//! - **Exactly one of many workers that add a new key is told "new"**, because
//!   all bits of a key lie in one line and are set by one atomic command, and
//!   a growing filter closes a layer before it has another. Filters that were
//!   uploaded with several lines a key may tell more than one; never none.
//! - **What is not answered is not taken as done.** Connections that break,
//!   nodes that are down, slots that move: requests are sent again, only those
//!   that were not answered, until [`Options::retry_for`] is over. Then
//!   [`Error::Unconfirmed`] says which keys are open. A key whose first try
//!   may have been executed is told as new, even if it was not: a crawler
//!   fetches a page twice rather than never. Counters would count twice, so
//!   changes of a counting filter whose answer is lost are not repeated.
//! - **Redis replicates after it has answered**: a failover may lose what was
//!   confirmed last. [`Options::wait_replicas`] confirms only what replicas
//!   have.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod aio;
mod bit_string;
mod blocking;
mod body;
mod chunks;
mod connection;
mod either;
mod engine;
mod error;
mod filter;
mod link;
mod location;
mod module;
mod options;
mod packed;
mod record;
mod stats;
mod survey;
mod warning;
mod wire;

pub use bit_string::BitString;
pub use error::Error;
pub use filter::RedisFilter;
pub use location::{Location, Servers};
pub use module::Layout;
pub use options::Options;
pub use stats::Stats;
pub use survey::{Condition, Found, Node, Orphan, Share, Survey};
pub use warning::Warning;

/// Reads bytes as a record and, behind it, the description of a layer, and
/// names what there would have to be: never panics, whatever the bytes, and
/// makes nothing of their numbers. For the fuzzer.
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

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
