//! Filters that may reject matches.

use super::matcher::Lines;
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use memchr::memrchr;
use std::cell::RefCell;

/// Decides on matched lines, in order; a rejected line doesn't match.
///
/// It sees all text of a stretch, so that it can know the text before a line.
pub trait LineFilter {
    /// Text begins or continues after a gap; this many bytes are before it.
    fn begin(&mut self, offset: u64);

    /// Whole lines that the search skipped.
    fn pass(&mut self, lines: &[u8]);

    /// Whether this line, without its end, is a match.
    fn accept(&mut self, line: &[u8]) -> bool;
}

/// A line matcher that consults a filter. It finds lines, not places in them.
pub(super) struct Filtered<'a> {
    pub(super) lines: &'a Lines,
    /// Whether lines without a match are selected.
    pub(super) invert: bool,
    /// The searcher doesn't call methods recursively, so this is never borrowed twice.
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
        // The searcher doesn't select rejected lines: they don't match or, if inverted, they do.
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
            // With inversion, every line is a candidate.
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
        // There is no line after the last one.
        Ok((line < text.len()).then_some(LineMatchKind::Candidate(place)))
    }
}
