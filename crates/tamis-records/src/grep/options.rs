//! What is printed of a file.

/// What is printed of a file.
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

/// How lines are found and printed. The default is what `rg` prints into a pipe for a single file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What is printed.
    pub print: Print,
    /// Lines of context before a match (`-B`).
    pub before: usize,
    /// Lines of context after a match (`-A`).
    pub after: usize,
    /// Lines without a match are the matched ones (`-v`).
    pub invert: bool,
    /// Only so many matched lines of each file (`-m`).
    pub max_count: Option<u64>,
    /// Only the matches of a line, each on a line of its own (`-o`).
    pub only_matching: bool,
    /// The number of each line (`-n`).
    pub line_number: bool,
    /// The column of the first match, in bytes from 1 (`--column`).
    pub column: bool,
    /// The offset of each line, or of each match with `only_matching` (`-b`).
    pub byte_offset: bool,
    /// The path with each line and count (`-H`).
    pub with_path: bool,
    /// The path once, above the lines (`--heading`).
    pub heading: bool,
    /// A NUL after each path (`-0`).
    pub null: bool,
    /// ripgrep's colours.
    pub colour: bool,
    /// Longer lines are left out, in bytes (`-M`).
    pub max_columns: Option<u64>,
    /// The beginning of longer lines is printed (`--max-columns-preview`).
    pub max_columns_preview: bool,
    /// Counts of zero are printed, too (`--include-zero`).
    pub include_zero: bool,
    /// Each match is counted, for statistics, even if that isn't needed to print (`--stats`).
    pub count_matches: bool,
}

impl Options {
    /// What stands between the output of two files, if both have some.
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

    /// Whether lines themselves are printed.
    pub(super) fn prints_lines(&self) -> bool {
        matches!(self.print, Print::Lines | Print::Json)
    }

    /// The lines before and after a match that are printed with it.
    pub(super) fn context(&self) -> (usize, usize) {
        if self.prints_lines() {
            (self.before, self.after)
        } else {
            (0, 0)
        }
    }

    /// Whether the place of each match in a line is needed.
    pub(super) fn needs_matches(&self) -> bool {
        match self.print {
            Print::Lines => self.colour || self.column || self.only_matching || self.count_matches,
            Print::Json => true,
            Print::CountMatches => !self.invert,
            _ => self.count_matches,
        }
    }
}
