//! Filters compatible with pybloomfiltermmap3, in memory or in a mapped file.

pub mod bits;
pub mod file;
pub mod filter;
