//! The Rust of the pages that need this crate alone is tested like any other
//! example.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/guides/backend.md")]
struct Backend;
