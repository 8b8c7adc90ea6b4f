//! BF.* and CF.* for Redis and Valkey.
//!
//! The filters are plain objects that don't know the server: [`bloom`] and [`cuckoo`], each in Tamis's layout, in
//! RedisBloom's, or being loaded ([`loading`]). `server` puts them behind commands.

pub mod bloom;
pub mod cuckoo;
pub mod error;
pub mod filter;
pub mod loading;
pub mod window;
pub mod words;

#[cfg(feature = "server")]
mod server;
