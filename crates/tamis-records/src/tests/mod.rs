//! The engine against a naive oracle.

mod common;
mod exact;
mod input;
mod keys;
mod pipeline;
mod quotes;
mod scan;
mod specs;
mod times;
