//! Searches the text of a file.

use super::filter::{Filtered, LineFilter};
use super::found::{Failure, Found};
use super::json::Messages;
use super::matcher::Matcher;
use super::options::{Options, Print};
use super::output::Output;
use super::printer::{Line, Printer};
use super::stretch::{Run, Stretch};
use grep_matcher::{Match, Matcher as _};
use grep_regex::RegexMatcher;
use grep_searcher::{
    Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Searches files one after the other. Each thread has its own, with buffers and caches for the patterns.
pub struct Search<'o> {
    matcher: Matcher,
    options: &'o Options,
    searcher: Searcher,
    buffer: Vec<u8>,
    matches: Vec<Match>,
}

impl<'o> Search<'o> {
    /// A search for these patterns.
    pub fn new(matcher: &Matcher, options: &'o Options) -> Self {
        let mut searcher = SearcherBuilder::new();
        searcher
            .invert_match(options.invert)
            .line_number(options.prints_lines() && options.line_number)
            .before_context(options.context().0)
            .after_context(options.context().1)
            // The file's own mark has been removed, so another one is text.
            .bom_sniffing(false);
        Self {
            // A clone shares the compiled patterns, but not the caches that threads would contend for.
            matcher: matcher.clone(),
            options,
            searcher: searcher.build(),
            buffer: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Searches the stretches of one file, in order. Prints to `out`, in pieces of whole lines, what `rg -a` would
    /// print for the file called `name`.
    ///
    /// Stretches are taken from the iterator when needed, and no more once the result is known.
    pub fn file<'s>(
        &mut self,
        name: &Path,
        mut stretches: impl Iterator<Item = io::Result<Stretch<'s>>>,
        mut filter: Option<&mut dyn LineFilter>,
        out: &mut dyn Write,
    ) -> Result<Found, Failure> {
        let options = self.options;
        if options.max_count == Some(0) {
            return Ok(Found::default());
        }
        let started = Instant::now();
        let done = Cell::new(false);
        let mut report = Report {
            options,
            places: &self.matcher.places,
            matches: &mut self.matches,
            output: Output::new(&mut self.buffer, out),
            form: match options.print {
                Print::Json => Form::Json(Messages::new(name)),
                _ => Form::Lines(Printer::new(options, name)),
            },
            found: Found {
                files: 1,
                ..Found::default()
            },
            offset: 0,
            line: 0,
            after_left: 0,
            gap: false,
            has_lines: false,
            done: &done,
        };
        let mut next = stretches.next().transpose();
        let searched = loop {
            let stretch = match next {
                Ok(Some(stretch)) if !done.get() => stretch,
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            };
            report.offset = stretch.offset;
            report.line = stretch.line;
            let searcher = &mut self.searcher;
            if let Some(filter) = &mut filter {
                filter.begin(stretch.offset);
            }
            let mut after_gap = None;
            let mut run = Run::new(stretch, &mut stretches, &mut after_gap, &done);
            let searched = match &mut filter {
                None => searcher.search_reader(&self.matcher.lines, &mut run, &mut report),
                Some(filter) => {
                    let filtered = Filtered {
                        lines: &self.matcher.lines,
                        invert: options.invert,
                        filter: RefCell::new(&mut **filter),
                    };
                    searcher.search_reader(filtered, &mut run, &mut report)
                }
            };
            report.gap = true;
            next = searched.map(|()| after_gap);
        };
        report.found.elapsed = started.elapsed();
        let ended = searched.and_then(|()| report.end());
        let written = report.output.pass_on();
        report.found.bytes_printed = report.output.printed();
        match (ended, written) {
            (_, Err(error)) => Err(Failure::Writing(error)),
            (Err(error), _) if report.output.failed => Err(Failure::Writing(error)),
            (Err(error), _) => Err(Failure::Reading {
                found: report.found,
                error,
            }),
            (Ok(()), Ok(())) => Ok(report.found),
        }
    }
}

/// The form of the output.
enum Form<'a> {
    Lines(Printer<'a>),
    Json(Messages),
}

/// Receives the lines that the searcher finds in one file.
struct Report<'a> {
    options: &'a Options,
    places: &'a RegexMatcher,
    matches: &'a mut Vec<Match>,
    output: Output<'a>,
    form: Form<'a>,
    found: Found,
    /// The bytes before the searched text.
    offset: u64,
    /// The lines before the searched text.
    line: u64,
    /// Context lines still to come after the last match that counts.
    after_left: usize,
    /// The next line doesn't directly follow the last one.
    gap: bool,
    /// A line has been printed.
    has_lines: bool,
    /// The result is known, so the rest of the file needn't be searched.
    done: &'a Cell<bool>,
}

impl Report<'_> {
    /// Finds the matches in a line. `text` ends with the line and includes what precedes it.
    fn find_matches(&mut self, text: &[u8], line: usize) {
        let end = text.len();
        // Removes the line end, which an expression could match.
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let matches = &mut *self.matches;
        self.places
            .find_iter_at(text, line, |found| {
                // At the end of a text without a final newline, an empty match doesn't count.
                let is_inside = found.start() < end;
                if is_inside {
                    matches.push(Match::new(found.start() - line, found.end() - line));
                }
                is_inside
            })
            .expect("an expression searches without errors");
    }

    fn print(
        &mut self,
        line: &[u8],
        offset: u64,
        number: Option<u64>,
        context: bool,
    ) -> io::Result<()> {
        let line = Line {
            bytes: line,
            offset: self.offset + offset,
            number: number.map(|number| self.line + number),
            context,
            matches: self.matches,
        };
        let out = &mut *self.output.buffer;
        match &self.form {
            Form::Lines(printer) => {
                if !self.has_lines {
                    printer.heading(out);
                } else if self.gap && self.options.context() != (0, 0) {
                    printer.gap(out);
                }
                printer.line(out, &line);
            }
            Form::Json(messages) => {
                if !self.has_lines {
                    messages.begin(out);
                }
                messages.line(out, &line);
            }
        }
        self.has_lines = true;
        self.gap = false;
        self.output.end_of_line()
    }

    /// Whether `-m` allows more matches.
    fn goes_on(&mut self) -> bool {
        let full = self
            .options
            .max_count
            .is_some_and(|most| self.found.matched_lines >= most);
        self.done.set(full && self.after_left == 0);
        !self.done.get()
    }

    /// Prints the output at the end of a file.
    fn end(&mut self) -> io::Result<()> {
        let found = &mut self.found;
        let matched = found.matched_lines > 0;
        found.files_with_match = matched.into();
        found.bytes_printed = self.output.printed();
        let out = &mut *self.output.buffer;
        match &self.form {
            Form::Json(messages) if self.has_lines => messages.end(out, found),
            Form::Json(_) => {}
            Form::Lines(printer) => {
                let count = match self.options.print {
                    Print::CountMatches if !self.options.invert => found.matches,
                    _ => found.matched_lines,
                };
                match self.options.print {
                    Print::Count | Print::CountMatches if matched || self.options.include_zero => {
                        printer.count(out, count);
                    }
                    Print::PathWithMatch if matched => printer.path(out),
                    Print::PathWithoutMatch if !matched => printer.path(out),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Sink for &mut Report<'_> {
    type Error = io::Error;

    #[inline]
    fn matched(&mut self, _: &Searcher, found: &SinkMatch) -> io::Result<bool> {
        // With inversion, the searcher doesn't stop at once.
        if self.done.get() {
            return Ok(false);
        }
        let limit = self.options.max_count.unwrap_or(u64::MAX);
        self.after_left = if self.found.matched_lines < limit {
            self.options.context().1
        } else {
            // Context of the last match that counts: printed as a match, but not counted.
            self.after_left.saturating_sub(1)
        };
        self.found.matched_lines += 1;
        self.matches.clear();
        // A line without a match has no places to find.
        if self.options.needs_matches() && !self.options.invert {
            let place = found.bytes_range_in_buffer();
            if place.start == 0 && self.offset + found.absolute_byte_offset() > 0 {
                // An expression must not take the beginning of a buffer for the beginning of the file.
                self.find_matches(&[b"\n", found.bytes()].concat(), 1);
            } else {
                self.find_matches(&found.buffer()[..place.end], place.start);
            }
            self.found.matches += self.matches.len() as u64;
        }
        match self.options.print {
            Print::Lines | Print::Json => {
                self.print(
                    found.bytes(),
                    found.absolute_byte_offset(),
                    found.line_number(),
                    false,
                )?;
            }
            Print::Count | Print::CountMatches => {}
            Print::PathWithMatch | Print::PathWithoutMatch | Print::Nothing => {
                if !self.options.count_matches {
                    self.done.set(true);
                    return Ok(false);
                }
            }
        }
        Ok(self.goes_on())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext) -> io::Result<bool> {
        if self.done.get() {
            return Ok(false);
        }
        if *line.kind() == SinkContextKind::After {
            self.after_left = self.after_left.saturating_sub(1);
        }
        self.matches.clear();
        if self.options.invert && self.options.needs_matches() {
            self.find_matches(line.bytes(), 0);
        }
        self.print(
            line.bytes(),
            line.absolute_byte_offset(),
            line.line_number(),
            true,
        )?;
        Ok(self.goes_on())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.found.bytes_searched += end.byte_count();
        Ok(())
    }
}
