//! The patterns, compiled.

use crate::patterns::{Patterns, Syntax};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::fmt;

/// Compiled [`Patterns`]. Cheap to clone; each thread that searches has its own [`Search`](super::Search).
#[derive(Clone, Debug)]
pub struct Matcher(pub(super) RegexMatcher);

impl Matcher {
    /// Compiles all patterns.
    pub fn new(patterns: &Patterns) -> Result<Self, PatternError> {
        Self::of(patterns, &patterns.texts)
    }

    /// Compiles some of the patterns, for a text that can't match the others.
    pub fn of<T: AsRef<str>>(patterns: &Patterns, texts: &[T]) -> Result<Self, PatternError> {
        let builder = builder(patterns);
        builder.build_many(texts).map(Self).map_err(|together| {
            // The picture of one pattern says more than that of all of them, joined.
            let alone = texts
                .iter()
                .find_map(|text| builder.build(text.as_ref()).err());
            PatternError(alone.unwrap_or(together))
        })
    }
}

/// As ripgrep without options builds it.
fn builder(patterns: &Patterns) -> RegexMatcherBuilder {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(patterns.ignores_case())
        .fixed_strings(patterns.syntax != Syntax::Regex)
        .word(patterns.whole_words || patterns.syntax == Syntax::Words)
        .whole_line(patterns.whole_lines);
    builder
}

/// A pattern that can't be compiled.
#[derive(Debug)]
pub struct PatternError(grep_regex::Error);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "can't look for that pattern: {}", self.0)
    }
}

impl std::error::Error for PatternError {}
