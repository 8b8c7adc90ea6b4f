//! Compiles patterns.

use crate::patterns::{Patterns, Syntax};
use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, NoCaptures, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::fmt;

/// Compiled [`Patterns`]. Each searching thread has its own [`Search`](super::Search) with a clone of it.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// Finds matches in lines.
    pub(super) places: RegexMatcher,
    /// Finds lines with a match.
    pub(super) lines: Lines,
}

impl Matcher {
    /// Compiles all patterns.
    pub fn new(patterns: &Patterns) -> Result<Self, PatternError> {
        Self::of(patterns, &patterns.texts)
    }

    /// Compiles some of the patterns, for a text that can't match the others.
    pub fn of<T: AsRef<str>>(patterns: &Patterns, texts: &[T]) -> Result<Self, PatternError> {
        let whole_words = patterns.whole_words || patterns.syntax == Syntax::Words;
        let mut builder = builder(patterns);
        builder.word(whole_words);
        let places = builder.build_many(texts).map_err(|together| {
            // The error of one pattern is clearer than that of all of them joined.
            let alone = texts
                .iter()
                .find_map(|text| builder.build(text.as_ref()).err());
            PatternError(alone.unwrap_or(together))
        })?;
        let text = if !whole_words || patterns.whole_lines {
            places.clone()
        } else {
            builder.word(false);
            let without_assertions = match patterns.syntax {
                Syntax::Words | Syntax::Literal => builder.build_many(texts),
                Syntax::Regex => builder.build(&with_neighbours(texts)),
            };
            without_assertions.map_err(PatternError)?
        };
        let cut = match patterns.syntax {
            Syntax::Words | Syntax::Literal if whole_words && !patterns.whole_lines => Some(Cut {
                alternatives: texts.len(),
                places: places.clone(),
            }),
            _ => None,
        };
        Ok(Self {
            places,
            lines: Lines { text, cut },
        })
    }
}

/// An expression for lines with whole-word matches that avoids word assertions: with those, the fast engines give up at
/// the first character beyond ASCII. Instead, a match includes a neighbour at either end that isn't part of a word.
fn with_neighbours<T: AsRef<str>>(texts: &[T]) -> String {
    let alternatives: Vec<String> = texts
        .iter()
        .map(|text| format!("(?:{})", text.as_ref()))
        .collect();
    format!(r"(?:{BEFORE})(?:{})(?:\W|$)", alternatives.join("|"))
}

/// Matches what may precede a word: see [`is_free_before`], which takes the last character of the four bytes before the
/// word, even if stray bytes follow it.
const BEFORE: &str = r"^|\W|(?-u:[\x00-\x7f&&\W][\x80-\xbf]{1,3})|[\x{80}-\x{7ff}&&\W](?-u:[\x80-\xbf]{1,2})|[\x{800}-\x{ffff}&&\W](?-u:[\x80-\xbf])";

/// The settings of ripgrep without options.
fn builder(patterns: &Patterns) -> RegexMatcherBuilder {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(patterns.ignores_case())
        .fixed_strings(patterns.syntax != Syntax::Regex)
        .whole_line(patterns.whole_lines);
    builder
}

/// Finds lines with a match, but not the places of the matches.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Finds lines in a text.
    text: RegexMatcher,
    /// Whether a match may cut a word, so that lines are only candidates.
    cut: Option<Cut>,
}

/// Literals that must not cut a word. They are found much faster without word assertions.
#[derive(Clone, Debug)]
struct Cut {
    alternatives: usize,
    places: RegexMatcher,
}

impl grep_matcher::Matcher for Lines {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, line: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        let end = self.shortest_match_at(line, at)?;
        Ok(end.map(|end| Match::new(end, end)))
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    #[inline]
    fn shortest_match_at(&self, line: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        let Some(cut) = &self.cut else {
            return self.text.shortest_match_at(line, at);
        };
        let mut from = at;
        while let Some(found) = self.text.find_at(line, from)? {
            if is_free_before(&line[..found.start()]) {
                if is_free_after(&line[found.end()..]) {
                    return Ok(Some(found.end()));
                }
                // A longer or shorter alternative might begin here.
                if cut.alternatives > 1 {
                    return cut.places.shortest_match_at(line, found.start());
                }
            }
            from = found.start() + 1;
            if from > line.len() {
                break;
            }
        }
        Ok(None)
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.text.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.text.line_terminator()
    }

    #[inline]
    fn find_candidate_line(&self, text: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        Ok(match self.text.find_candidate_line(text)? {
            Some(LineMatchKind::Confirmed(place)) if self.cut.is_some() => {
                Some(LineMatchKind::Candidate(place))
            }
            found => found,
        })
    }
}

/// Whether no word ends at the end of this text, like `\b{start-half}`, which also fails after invalid UTF-8.
fn is_free_before(text: &[u8]) -> bool {
    let is_leading = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let last = &text[text.len().saturating_sub(4)..];
    let character = last
        .iter()
        .rposition(is_leading)
        .map_or(last, |start| &last[start..]);
    is_free_after(character)
}

/// Whether no word begins at the start of this text, like `\b{end-half}`.
fn is_free_after(text: &[u8]) -> bool {
    match bstr::decode_utf8(text) {
        (Some(character), _) => !regex_syntax::is_word_character(character),
        (None, length) => length == 0,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use grep_matcher::Matcher as _;

    /// The lines found are those with a match, for whole words next to all possible neighbours.
    #[test]
    fn lines_with_whole_words_are_those_with_a_place() {
        let neighbours: [&[u8]; 14] = [
            b"",
            b" ",
            b"-",
            b"a",
            b"_",
            b"\xff",
            b"\xc3",
            b"\x80",
            b"\x80\x80",
            b"\x80\x80\x80",
            "é".as_bytes(),
            "«".as_bytes(),
            "–".as_bytes(),
            "👩".as_bytes(),
        ];
        let words: [&[u8]; 6] = [b"foo", b"FOO", b"foo_bar", b"- ", "é".as_bytes(), b""];
        let all: [&[&str]; 6] = [
            &["foo"],
            &["foo", "foo_bar"],
            &["foo_bar", "foo"],
            &["", "é"],
            &["- "],
            &["o", "foo", "\u{212a}"],
        ];
        for texts in all {
            for (syntax, ignore_case) in [
                (Syntax::Words, false),
                (Syntax::Words, true),
                (Syntax::Literal, false),
                (Syntax::Regex, false),
                (Syntax::Regex, true),
            ] {
                let patterns = Patterns {
                    texts: texts.iter().map(|text| text.to_string()).collect(),
                    syntax,
                    ignore_case,
                    whole_words: true,
                    ..Patterns::default()
                };
                let matcher = Matcher::new(&patterns).unwrap();
                for before in neighbours
                    .iter()
                    .flat_map(|first| neighbours.map(|second| [first, second].concat()))
                {
                    for after in neighbours {
                        for line in words.map(|word| [&before, word, after].concat()) {
                            let expected = matcher.places.is_match(&line).unwrap();
                            assert_eq!(
                                matcher.lines.is_match(&line).unwrap(),
                                expected,
                                "{patterns:?} {}",
                                line.escape_ascii()
                            );
                            // In a text, among other lines.
                            let text = [b"x\n", &line[..], b"\nx"].concat();
                            let is_candidate =
                                matcher.lines.find_candidate_line(&text).unwrap().is_some();
                            assert!(
                                is_candidate || !expected,
                                "{patterns:?} {}",
                                line.escape_ascii()
                            );
                        }
                    }
                }
            }
        }
    }
}
