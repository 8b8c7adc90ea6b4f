//! Tests the Rust examples on pages that need only this crate.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/guides/backend.md")]
struct Backend;
