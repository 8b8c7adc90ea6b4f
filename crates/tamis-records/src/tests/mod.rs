//! The engine against a naive oracle.

#[cfg(unix)]
mod blocks;
mod common;
mod entrances;
mod exact;
mod input;
mod keys;
mod line_times;
mod model;
mod pipeline;
mod quotes;
mod scan;
mod specs;
mod text_keys;
mod times;
