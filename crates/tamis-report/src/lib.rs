//! Reports of the command and the service about filters, as text and as JSON.

pub mod about;
pub mod advice;
pub mod explain;
#[cfg(feature = "formats")]
pub mod foreign;
pub mod human;
#[cfg(feature = "page")]
pub mod page;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "formats")]
pub mod server;
pub mod window;

/// Compiles the examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
