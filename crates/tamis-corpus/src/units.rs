//! Finds the units of a text.
//!
//! A separator between two units is cut together with the first one, and isn't compared. Parts with only white space
//! aren't units.

use crate::rule::TextUnit;
use memchr::memchr;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A unit, in bytes of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its start.
    pub start: usize,
    /// The end of the compared part.
    pub end: usize,
    /// The end of the separator after it.
    pub cut: usize,
}

impl Span {
    /// The compared part.
    pub const fn key(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Appends the units of a text, in order.
///
/// ```
/// use tamis_corpus::rule::TextUnit;
/// use tamis_corpus::units::{Span, split};
/// let mut units = Vec::new();
/// split("One.\nTwo.\n\nThree.", TextUnit::Paragraph, &mut units);
/// assert_eq!(units[0], Span { start: 0, end: 9, cut: 11 });
/// assert_eq!(units.len(), 2);
/// ```
///
/// N-grams and bands are judged by document, so for these the whole text is one unit.
pub fn split(text: &str, unit: TextUnit, units: &mut Vec<Span>) {
    match unit {
        TextUnit::Paragraph => paragraphs(text, units),
        TextUnit::Sentence => sentences(text, units),
        TextUnit::Line => units.extend(lines(text).filter(|line| !is_blank(text, line))),
        _ => {
            let whole = Span {
                start: 0,
                end: text.len(),
                cut: text.len(),
            };
            units.extend(Some(whole).filter(|whole| !is_blank(text, whole)));
        }
    }
}

#[inline]
fn is_blank(text: &str, span: &Span) -> bool {
    let bytes = &text.as_bytes()[span.key()];
    match bytes.first() {
        None => true,
        // Nearly all text begins like this.
        Some(b'!'..=b'~') => false,
        _ => text[span.key()].trim_start().is_empty(),
    }
}

/// All lines. Their ends, LF or CR LF, aren't compared.
fn lines(text: &str) -> impl Iterator<Item = Span> + '_ {
    let bytes = text.as_bytes();
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= bytes.len() {
            return None;
        }
        let (mut end, cut) = match memchr(b'\n', &bytes[start..]) {
            Some(at) => (start + at, start + at + 1),
            None => (bytes.len(), bytes.len()),
        };
        if end < cut && end > start && bytes[end - 1] == b'\r' {
            end -= 1;
        }
        let line = Span { start, end, cut };
        start = cut;
        Some(line)
    })
}

fn paragraphs(text: &str, units: &mut Vec<Span>) {
    let mut open: Option<Span> = None;
    let mut is_over = false;
    for line in lines(text) {
        if is_blank(text, &line) {
            is_over = true;
            if let Some(paragraph) = &mut open {
                paragraph.cut = line.cut;
            }
            continue;
        }
        match &mut open {
            Some(paragraph) if !is_over => {
                (paragraph.end, paragraph.cut) = (line.end, line.cut);
            }
            _ => units.extend(open.replace(line)),
        }
        is_over = false;
    }
    units.extend(open);
}

fn sentences(text: &str, units: &mut Vec<Span>) {
    for (at, sentence) in text.split_sentence_bound_indices() {
        let inner = sentence.trim();
        if inner.is_empty() {
            // An empty line after a sentence separates it from the next one.
            if let Some(last) = units.last_mut().filter(|last| last.cut == at) {
                last.cut = at + sentence.len();
            }
            continue;
        }
        let start = at + sentence.len() - sentence.trim_start().len();
        units.push(Span {
            start,
            end: start + inner.len(),
            cut: at + sentence.len(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, unit: TextUnit) -> Vec<&str> {
        let mut units = Vec::new();
        split(text, unit, &mut units);
        let mut end = 0;
        for unit in &units {
            assert!(end <= unit.start && unit.start < unit.end && unit.end <= unit.cut);
            end = unit.cut;
        }
        units.iter().map(|unit| &text[unit.key()]).collect()
    }

    #[test]
    fn lines_end_with_lf_or_crlf() {
        let text = "a\r\n\r\n  \nb \n\u{3000}\nc";
        assert_eq!(keys(text, TextUnit::Line), ["a", "b ", "c"]);
        assert_eq!(keys("a\r", TextUnit::Line), ["a\r"]);
        assert!(keys("", TextUnit::Line).is_empty());
    }

    #[test]
    fn paragraphs_are_between_empty_lines() {
        let text = "\n\na\nb\r\n \t\r\n\nc\n\n";
        assert_eq!(keys(text, TextUnit::Paragraph), ["a\nb", "c"]);
        let mut units = Vec::new();
        split(text, TextUnit::Paragraph, &mut units);
        assert_eq!(text[units[0].start..units[0].cut], text[2..12]);
        assert_eq!(units[1].cut, text.len());
    }

    #[test]
    fn sentences_are_those_of_unicode() {
        let text = "  Mr. Fox runs. Why?  No idea!\n\nNext.";
        assert_eq!(
            keys(text, TextUnit::Sentence),
            ["Mr.", "Fox runs.", "Why?", "No idea!", "Next."]
        );
    }

    #[test]
    fn a_document_is_all_of_it() {
        assert_eq!(keys(" a ", TextUnit::Document), [" a "]);
        assert!(keys(" \n", TextUnit::Document).is_empty());
    }
}
