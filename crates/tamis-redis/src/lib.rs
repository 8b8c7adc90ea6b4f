//! Tamis filters in Redis.

pub mod aio;
mod blocking;
mod body;
mod chunks;
mod engine;
mod error;
mod filter;
mod link;
mod location;
mod options;
mod record;
mod wire;

pub use error::Error;
pub use filter::RedisFilter;
pub use location::Location;
pub use options::Options;
