//! Cleaning text that models are trained on: what was seen before is dropped, near-duplicates too, and the texts of a
//! test set are found.
//!
//! ```text
//! inputs → chunks of whole records → units of text → hashes → judged in order → records, changed or dropped
//! ```
//!
//! - [`rule`]: what a unit is, as a filter records it; [`fold`]: differences that don't count.
//! - [`units`] and [`words`]: where units and words are in a text.
//! - [`near`]: MinHash in bands, for documents that are nearly alike.
//! - [`json`]: where a record's text is, and how it is changed in place.
//! - [`seen`]: the filter that remembers units.
//! - [`engine`]: a run, by several threads and in order, as [`settings`] say; [`chunks`] reads, [`output`] writes,
//!   [`summary`] counts.
//!
//! # Example
//!
//! The lines of one text that another one doesn't have:
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

pub use print::ATTRIBUTE;
