//! Options for printing.

/// What to print about a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Print {
    /// Its matched lines.
    #[default]
    Lines,
    /// Its matched lines, as JSON messages.
    Json,
    /// The number of its matched lines (`-c`).
    Count,
    /// The number of its matches; of its lines, if inverted (`--count-matches`).
    CountMatches,
    /// Its path if it has a match (`-l`).
    PathWithMatch,
    /// Its path if it has no match (`-L`).
    PathWithoutMatch,
    /// Nothing (`-q`).
    Nothing,
}

/// How to find and print lines. The default is what `rg` prints into a pipe for
/// a single file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What to print.
    pub print: Print,
    /// Lines of context before a match (`-B`).
    pub before: usize,
    /// Lines of context after a match (`-A`).
    pub after: usize,
    /// Selects the lines without a match (`-v`).
    pub invert: bool,
    /// At most this many matched lines of each file (`-m`).
    pub max_count: Option<u64>,
    /// Only the matches, one per line (`-o`).
    pub only_matching: bool,
    /// Prints the number of each line (`-n`).
    pub line_number: bool,
    /// Prints the column of the first match, in bytes from 1 (`--column`).
    pub column: bool,
    /// Prints the offset of each line, or of each match with `only_matching`
    /// (`-b`).
    pub byte_offset: bool,
    /// Prints the path before each line and count (`-H`).
    pub with_path: bool,
    /// Prints the path once, above the lines (`--heading`).
    pub heading: bool,
    /// Prints a NUL after each path (`-0`).
    pub null: bool,
    /// Uses ripgrep's colours.
    pub colour: bool,
    /// Omits lines longer than this many bytes (`-M`).
    pub max_columns: Option<u64>,
    /// Prints the beginning of longer lines (`--max-columns-preview`).
    pub max_columns_preview: bool,
    /// Also prints counts of zero (`--include-zero`).
    pub include_zero: bool,
    /// Counts all matches for statistics, even if printing doesn't need them
    /// (`--stats`).
    pub count_matches: bool,
}

impl Options {
    /// The separator between the output of two files, if both have some.
    pub fn between_files(&self) -> &'static [u8] {
        if self.print != Print::Lines {
            b""
        } else if self.heading {
            b"\n"
        } else if self.context() != (0, 0) {
            b"--\n"
        } else {
            b""
        }
    }

    /// Whether lines are printed.
    pub(super) fn prints_lines(&self) -> bool {
        matches!(self.print, Print::Lines | Print::Json)
    }

    /// How many lines are printed before and after a match.
    pub(super) fn context(&self) -> (usize, usize) {
        if self.prints_lines() {
            (self.before, self.after)
        } else {
            (0, 0)
        }
    }

    /// Whether the places of matches in a line are needed.
    pub(super) fn needs_matches(&self) -> bool {
        match self.print {
            Print::Lines => self.colour || self.column || self.only_matching || self.count_matches,
            Print::Json => true,
            Print::CountMatches => !self.invert,
            _ => self.count_matches,
        }
    }
}
