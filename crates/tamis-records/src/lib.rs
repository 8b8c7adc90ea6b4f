//! Records of text files and tables, their keys, and a pipeline that decides on each record, on all cores and in the
//! order of the input.
//!
//! ```text
//! inputs → chunks of whole records → keys → decisions → output
//! ```
//!
//! - [`input`]: files, standard input or any reader; gzip, zstd, bzip2 and xz are recognised and unpacked, from the
//!   beginning or from an entrance further on.
//! - [`line_time`]: when the lines of a log were written.
//! - [`reader`] and [`records`]: lines, records with another delimiter, and CSV with its quotes.
//! - [`key`]: the part of a record that is its key: all of it, columns, JSON pointers; and the keys of files in an
//!   index.
//! - [`pipeline`]: every thread carries a chunk through all stages. The output does not depend on the number of
//!   threads.
//! - [`scan`] and [`search`]: all keys of a file for an index, and the true matches in it.
//! - [`patterns`] and [`needs`]: patterns to search for, and the keys that a text must have to match them.
//! - [`patterns`] and [`grep`]: finding lines that match patterns, and printing them as ripgrep does.
//! - [`turn`]: a value that threads use in the order of their chunks.
//! - [`exact`]: a set of 128-bit digests, 20 to 30 bytes a key.
//!
//! # Example
//!
//! The first record of each user, with two threads:
//!
//! ```
//! use tamis_records::batch::Print;
//! use tamis_records::exact::ExactSet;
//! use tamis_records::input::{Input, Packing};
//! use tamis_records::key::{Columns, RecordRule, Part, Separator};
//! use tamis_records::pipeline::{Deciding, Halt, Job, Outcome, run};
//! use tamis_records::progress::Progress;
//! use tamis_records::reader::{CHUNK, Reader};
//!
//! let csv = "user,page\nann,/a\nbob,/b\nann,/c\n";
//! let input = Input::from_read("example", csv.as_bytes(), Packing::Recognised, &Default::default());
//! let columns = Columns::parse("user", true)?;
//! let part = Part::Columns { separator: Separator::COMMA, columns };
//! let rule = RecordRule::of(part, false, tamis::KeyRule::EXACT);
//! let mut shards = [ExactSet::default(), ExactSet::default()];
//! let mut output = Vec::new();
//! let outcome: Outcome<Box<dyn std::error::Error + Send + Sync>> = run(Job {
//!     reader: Reader::new(Box::new([input].into_iter()), &rule, CHUNK),
//!     rule: &rule,
//!     hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
//!     shards: &mut shards,
//!     deciding: Deciding::ByShards,
//!     decide: |seen: &mut ExactSet, hashes: &[tamis::Hash], new: &mut [bool]| {
//!         seen.insert_many(hashes, new).map_err(|error| Halt::Failed(error.into()))
//!     },
//!     print: Print::Chosen,
//!     output: &mut output,
//!     output_file: None,
//!     threads: 2,
//!     progress: &Progress::default(),
//!     checkpoint: None,
//! });
//! outcome.decided?;
//! outcome.output?;
//! assert_eq!(output, b"user,page\nann,/a\nbob,/b\n");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # Features
//!
//! `parquet`: keys in the columns of Parquet files.

pub mod batch;
mod block;
pub mod exact;
mod flow;
pub mod formats;
pub mod grep;
pub mod input;
pub mod key;
pub mod line_time;
pub mod needs;
pub mod ordered;
pub mod patterns;
pub mod pipeline;
pub mod progress;
pub mod reader;
pub mod records;
pub mod scan;
pub mod search;
pub mod turn;
mod written;

// Imported as `super::sync` by `flow`, `turn` and `written`.
use std::sync;

#[cfg(test)]
mod tests;
