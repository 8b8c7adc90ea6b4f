//! Matches that a caller may refuse.

use super::matcher::Lines;
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use memchr::memrchr;
use std::cell::RefCell;

/// Decides on matched lines, in order: one that is refused is no match.
///
/// All text of a stretch passes by, so that a filter can know what stands before a line.
pub trait LineFilter {
    /// Text begins, or goes on after a gap, with so many bytes before it.
    fn begin(&mut self, offset: u64);

    /// Whole lines that are not asked for.
    fn pass(&mut self, lines: &[u8]);

    /// Whether this line, given without its end, is a match.
    fn accept(&mut self, line: &[u8]) -> bool;
}

/// A matcher of lines that asks a filter. It finds lines, not places in them.
pub(super) struct Filtered<'a> {
    pub(super) lines: &'a Lines,
    /// A matched line is one without a match.
    pub(super) invert: bool,
    /// The searcher calls one method at a time, never from within another.
    pub(super) filter: RefCell<&'a mut dyn LineFilter>,
}

impl Matcher for Filtered<'_> {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        let end = self.shortest_match_at(haystack, at)?;
        Ok(end.map(|end| Match::new(end, end)))
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    /// Called for single lines: all lines of slow expressions, and the candidates of others.
    fn shortest_match_at(&self, line: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        let end = self.lines.shortest_match_at(line, at)?;
        let filter = &mut **self.filter.borrow_mut();
        if end.is_some() == self.invert {
            filter.pass(line);
            return Ok(end);
        }
        // Refused is what the searcher does not select: no match, or a match if inverted.
        let accepted = filter.accept(line);
        Ok((accepted != self.invert).then(|| end.unwrap_or(line.len())))
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.lines.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.lines.line_terminator()
    }

    fn find_candidate_line(&self, text: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        if self.invert {
            // Lines without a match are asked for, so every line is.
            return Ok(Some(LineMatchKind::Candidate(0)));
        }
        let mut filter = self.filter.borrow_mut();
        let Some(LineMatchKind::Candidate(place) | LineMatchKind::Confirmed(place)) =
            self.lines.find_candidate_line(text)?
        else {
            filter.pass(text);
            return Ok(None);
        };
        let line = memrchr(b'\n', &text[..place]).map_or(0, |end| end + 1);
        filter.pass(&text[..line]);
        // Behind the last line there is none.
        Ok((line < text.len()).then_some(LineMatchKind::Candidate(place)))
    }
}
