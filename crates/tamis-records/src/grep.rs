//! Finding and printing lines as ripgrep does, with ripgrep's own libraries.
//!
//! A file is searched in parts of its text, [`Stretch`]es. Adjacent stretches are one text; between others, the caller
//! knows that nothing matches. Everything that is printed (line numbers, offsets, context, breaks) is what `rg -a`
//! prints for the whole file.
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
//! Output is that of ripgrep 13 and 15, byte for byte, except where the two differ or are wrong:
//!
//! - Whole words are as in ripgrep 14 and later. Earlier versions miss some that don't begin and end with a letter.
//! - `-m` doesn't count matches in the context of the last one, as in ripgrep 13; and a text without a final newline
//!   has no empty match at its end.
//! - `\A` is the beginning of the file where places of matches are printed, however the file is buffered.
//! - Without any pattern nothing matches, so that with inversion all lines match.
//! - In JSON statistics, bytes searched are those of the stretches.
//!
//! Options don't imply each other as in ripgrep: neither `column` nor JSON turns on `line_number`. A command sets both.

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
