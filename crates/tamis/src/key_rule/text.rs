//! Units of text as keys: the header records the rule, the caller makes the keys.

use std::fmt;

/// How the keys of a filter are made from a text.
///
/// The library records the rule; the caller makes the keys (the crate `tamis-corpus` does). A filter of folded
/// paragraphs that is queried with a raw line would give a false "no". So a filter with such a rule opens only
/// with the feature `text`.
///
/// ```
/// use tamis::KeyRule;
/// use tamis::internals::{TextRule, TextUnit};
/// let rule = KeyRule::EXACT.of_text(TextRule::of(TextUnit::Words(13)).nfkc()).unwrap();
/// assert_eq!(rule.to_string(), "13 words of a text, NFKC");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRule {
    unit: TextUnit,
    nfkc: bool,
    punctuation: bool,
    space: bool,
}

/// Which part of a text is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextUnit {
    /// The whole text.
    Document,
    /// Lines with text in them, up to an empty line.
    Paragraph,
    /// A sentence, by Unicode's rules (UAX #29).
    Sentence,
    /// A line.
    Line,
    /// This many consecutive words, by Unicode's rules (UAX #29).
    Words(u8),
    /// A band of MinHash values, for texts that are this similar, in percent.
    Alike(u8),
}

const IS_TEXT: u32 = 1 << 3;
const UNIT: u32 = 16;
const NFKC: u32 = 1 << 19;
const PUNCTUATION: u32 = 1 << 20;
const SPACE: u32 = 1 << 21;

impl TextRule {
    /// Units unchanged from the text.
    pub const fn of(unit: TextUnit) -> Self {
        Self {
            unit,
            nfkc: false,
            punctuation: false,
            space: false,
        }
    }

    /// Normalises characters to Unicode's form NFKC.
    pub const fn nfkc(self) -> Self {
        Self { nfkc: true, ..self }
    }

    /// Ignores punctuation (Unicode's general category P).
    pub const fn ignore_punctuation(self) -> Self {
        Self {
            punctuation: true,
            ..self
        }
    }

    /// White space becomes one blank, and is trimmed at both ends.
    pub const fn ignore_space(self) -> Self {
        Self {
            space: true,
            ..self
        }
    }

    /// Which part of a text is a key.
    pub const fn unit(&self) -> TextUnit {
        self.unit
    }

    /// Whether characters are normalised.
    pub const fn is_nfkc(&self) -> bool {
        self.nfkc
    }

    /// Whether punctuation is ignored.
    pub const fn ignores_punctuation(&self) -> bool {
        self.punctuation
    }

    /// Whether the amount of white space is ignored.
    pub const fn ignores_space(&self) -> bool {
        self.space
    }

    /// Whether its numbers make sense.
    pub(super) const fn is_sound(&self) -> bool {
        match self.unit {
            TextUnit::Words(words) => words > 0,
            TextUnit::Alike(percent) => percent > 0 && percent < 100,
            _ => true,
        }
    }

    /// Bits 3, 8 to 15 and 16 to 21 of the header's flags.
    pub(super) const fn encode(&self) -> u32 {
        let (unit, number) = match self.unit {
            TextUnit::Document => (1, 0),
            TextUnit::Paragraph => (2, 0),
            TextUnit::Sentence => (3, 0),
            TextUnit::Line => (4, 0),
            TextUnit::Words(words) => (5, words),
            TextUnit::Alike(percent) => (6, percent),
        };
        let mut flags = IS_TEXT | unit << UNIT | (number as u32) << 8;
        if self.nfkc {
            flags |= NFKC;
        }
        if self.punctuation {
            flags |= PUNCTUATION;
        }
        if self.space {
            flags |= SPACE;
        }
        flags
    }

    /// Whether these flags describe units of text.
    pub(super) const fn is_in(flags: u32) -> bool {
        flags & IS_TEXT != 0
    }

    /// The rule in these flags, without the bit for case; `None` if other bits are set.
    pub(super) const fn decode(flags: u32) -> Option<Self> {
        let number = (flags >> 8) as u8;
        let unit = match (flags >> UNIT & 0b111, number) {
            (1, 0) => TextUnit::Document,
            (2, 0) => TextUnit::Paragraph,
            (3, 0) => TextUnit::Sentence,
            (4, 0) => TextUnit::Line,
            (5, words) => TextUnit::Words(words),
            (6, percent) => TextUnit::Alike(percent),
            _ => return None,
        };
        let rule = Self {
            unit,
            nfkc: flags & NFKC != 0,
            punctuation: flags & PUNCTUATION != 0,
            space: flags & SPACE != 0,
        };
        // Reject any other bits.
        if rule.is_sound() && rule.encode() == flags {
            Some(rule)
        } else {
            None
        }
    }
}

impl fmt::Display for TextUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => f.write_str("documents"),
            Self::Paragraph => f.write_str("paragraphs of a text"),
            Self::Sentence => f.write_str("sentences of a text"),
            Self::Line => f.write_str("lines of a text"),
            Self::Words(words) => write!(f, "{words} words of a text"),
            Self::Alike(percent) => write!(f, "documents alike to {percent} %"),
        }
    }
}

impl fmt::Display for TextRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.unit)?;
        for (holds, text) in [
            (self.nfkc, ", NFKC"),
            (self.punctuation, ", punctuation ignored"),
            (self.space, ", white space ignored"),
        ] {
            if holds {
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_flags_of_its_own() {
        let units = [
            TextUnit::Document,
            TextUnit::Paragraph,
            TextUnit::Sentence,
            TextUnit::Line,
            TextUnit::Words(1),
            TextUnit::Words(255),
            TextUnit::Alike(1),
            TextUnit::Alike(99),
        ];
        let mut seen = Vec::new();
        for unit in units {
            for folds in 0..8 {
                let mut rule = TextRule::of(unit);
                rule.nfkc = folds & 1 != 0;
                rule.punctuation = folds & 2 != 0;
                rule.space = folds & 4 != 0;
                assert_eq!(TextRule::decode(rule.encode()), Some(rule));
                assert!(!seen.contains(&rule.encode()), "{rule}");
                seen.push(rule.encode());
            }
        }
    }

    #[test]
    fn flags_that_mean_more_are_refused() {
        let line = TextRule::of(TextUnit::Line).encode();
        for extra in [1, 4, 1 << 4, 7 << 16, 1 << 22, 1 << 31, 1 << 8] {
            assert_eq!(TextRule::decode(line | extra), None, "{extra:#x}");
        }
        assert_eq!(TextRule::decode(IS_TEXT), None);
        assert_eq!(TextRule::decode(IS_TEXT | 5 << UNIT), None);
        assert_eq!(TextRule::decode(IS_TEXT | 6 << UNIT | 100 << 8), None);
    }
}
