//! What is looked for in lines of text.

/// How the texts of [`Patterns`] are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// Literal text that cuts no word at either end, as `rg -wF`.
    Words,
    /// Literal text, anywhere in a line, as `rg -F`.
    Literal,
    /// Regular expressions of the crate `regex`, as `rg`.
    #[default]
    Regex,
}

/// Alternatives: a line matches where one of them does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// The alternatives. None of them, and nothing matches.
    pub texts: Vec<String>,
    /// How each of them is read.
    pub syntax: Syntax,
    /// Letters match in both cases.
    pub ignore_case: bool,
    /// Letters match in both cases unless a pattern has a capital as a literal.
    pub smart_case: bool,
    /// No word is cut at either end of a match. Always so with [`Syntax::Words`].
    pub whole_words: bool,
    /// A match is a whole line; goes before `whole_words`.
    pub whole_lines: bool,
}
