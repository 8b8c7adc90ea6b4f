//! Finding and printing lines as ripgrep does, with ripgrep's own libraries.
//!
//! A file is searched by parts of its text, [`Stretch`]es. Those that follow each other are one text; between others,
//! the caller knows that there is no match. Everything that is printed (numbers of lines, offsets, context, breaks) is
//! what `rg -a` prints for the whole file.
//!
//! ```
//! use std::path::Path;
//! use tamis_records::grep::{Matcher, Options, Search, Stretch};
//! use tamis_records::patterns::Patterns;
//!
//! let patterns = Patterns { texts: vec!["er+or".into()], ..Patterns::default() };
//! let options = Options { line_number: true, with_path: true, ..Options::default() };
//! let mut search = Search::new(&Matcher::new(&patterns)?, &options);
//!
//! let stretch = Stretch { offset: 4096, line: 71, text: Box::new(&b"fine\nan error\n"[..]) };
//! let mut out = Vec::new();
//! let found = search.file(Path::new("app.log"), [Ok(stretch)].into_iter(), None, &mut out)?;
//! assert_eq!(out, b"app.log:73:an error\n");
//! assert_eq!(found.matched_lines, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What differs from ripgrep
//!
//! Output is that of ripgrep 13 and 15, byte for byte, except where they differ from each other or err:
//!
//! - Whole words are ripgrep's since 14. Before, it misses some that don't begin and end with a letter.
//! - `-m` counts no match in the context of the last one, as ripgrep 13; and at the end of a text without a newline there
//!   is no empty match to count.
//! - `\A` is the beginning of the file where places of matches are printed, whatever buffers it is read in.
//! - No pattern at all matches nothing, so that all lines are inverted matches.
//! - In the statistics of JSON, bytes searched are those of the stretches.
//!
//! Options are what they say, without ripgrep's implications: `column` doesn't turn on `line_number`, and neither does
//! JSON. A command sets both.

mod filter;
mod found;
mod json;
mod matcher;
mod options;
mod output;
mod printer;
mod search;
mod stretch;

pub use filter::LineFilter;
pub use found::{Failure, Found};
pub use json::{json_text, write_summary};
pub use matcher::{Matcher, PatternError};
pub use options::{Options, Print};
pub use search::Search;
pub use stretch::Stretch;
