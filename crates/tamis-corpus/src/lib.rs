//! Cleans training text for language models: drops repetitions and near-duplicates, and finds text of test sets.
//!
//! ```text
//! inputs → chunks of whole records → units of text → hashes → judged in order → records, changed or dropped
//! ```
//!
//! - [`rule`]: what a unit is, as recorded in filters; [`fold`]: differences that don't count.
//! - [`units`] and [`words`]: find units and words in a text.
//! - [`near`]: MinHash in bands, for near-duplicate documents.
//! - [`json`]: finds a record's text and changes it in place.
//! - [`seen`]: the filter of seen units.
//! - [`engine`]: a run on several threads that keeps the order, as [`settings`] say; [`chunks`] reads, [`output`]
//!   writes, [`summary`] counts.
//!
//! # Example
//!
//! Removing repeated lines from a text:
//!
//! ```
//! use std::collections::HashSet;
//! use tamis_corpus::rule::TextUnit;
//! use tamis_corpus::units::split;
//!
//! let (mut units, mut seen) = (Vec::new(), HashSet::new());
//! let text = "One.\nTwo.\nOne.";
//! split(text, TextUnit::Line, &mut units);
//! let kept: Vec<&str> = units.iter().map(|unit| &text[unit.key()]).filter(|line| seen.insert(*line)).collect();
//! assert_eq!(kept, ["One.", "Two."]);
//! ```

mod batch;
pub mod chunks;
pub mod engine;
mod fault;
pub mod fold;
pub mod json;
mod judge;
pub mod near;
pub mod output;
mod packing;
mod print;
pub mod rule;
pub mod seen;
pub mod settings;
mod state;
pub mod summary;
pub mod units;
pub mod words;

pub use json::ATTRIBUTE;
