//! The engine against a naive oracle.


mod exact;
mod input;
mod keys;
mod pipeline;
