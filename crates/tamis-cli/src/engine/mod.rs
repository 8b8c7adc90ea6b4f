//! From inputs to answers: records, their keys, decisions and output, in
//! parallel and in the order of the input.

pub(crate) mod batch;
pub(crate) mod exact;
pub(crate) mod formats;
pub(crate) mod input;
pub(crate) mod key;
pub(crate) mod ordered;
pub(crate) mod pipeline;
pub(crate) mod progress;
pub(crate) mod reader;
pub(crate) mod records;
mod turn;

#[cfg(test)]
mod tests;
