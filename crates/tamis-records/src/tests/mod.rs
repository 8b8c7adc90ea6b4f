//! The engine against a naive oracle.

mod common;
mod exact;
mod input;
mod keys;
mod needs;
mod pipeline;
mod quotes;
mod scan;
mod specs;
mod text_keys;
mod times;
