//! What the command and the service report about filters, to people and to programs.

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

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
