//! Tamis for C. `include/tamis.h` is made of this crate by cbindgen, in the order of these modules, and says what
//! callers must keep.
//!
//! No panic crosses the border: what a function does runs in [`status::guard`], and what it is given is checked as far as
//! it can be.

#![allow(
    clippy::missing_safety_doc,
    reason = "tamis.h says once, for all functions, what callers must keep"
)]

pub mod status;

pub mod secret;

pub mod options;

pub mod arguments;

pub mod filter;

pub mod ask;

pub mod change;

pub mod bytes;

pub mod info;

pub mod plan;

pub mod list;
