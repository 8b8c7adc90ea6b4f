//! Differences between texts that don't count.

use std::fmt;
use std::str::FromStr;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Which differences don't count. They are removed in this order: NFKC, case, punctuation, white space.
///
/// ```
/// use tamis_corpus::fold::Fold;
/// let fold: Fold = "case,space,punctuation".parse()?;
/// let mut buffer = String::new();
/// assert_eq!(fold.apply(" Hello,\n World!", &mut buffer), "hello world");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// Maps each character to its full Unicode lower case, without regard to context.
    pub case: bool,
    /// Turns each run of white space into one blank, and trims both ends.
    pub space: bool,
    /// Removes characters of Unicode's general category P.
    pub punctuation: bool,
    /// Normalises to Unicode's form NFKC.
    pub nfkc: bool,
}

impl FromStr for Fold {
    type Err = String;

    /// Parses a list such as `case,space`.
    fn from_str(list: &str) -> Result<Self, String> {
        let mut fold = Self::default();
        for name in list.split(',') {
            match name.trim() {
                "case" => fold.case = true,
                "space" => fold.space = true,
                "punctuation" => fold.punctuation = true,
                "nfkc" => fold.nfkc = true,
                other => {
                    return Err(format!(
                        "expected case, space, punctuation or nfkc, got '{other}'"
                    ));
                }
            }
        }
        Ok(fold)
    }
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut comma = "";
        for (holds, name) in [
            (self.case, "case"),
            (self.space, "space"),
            (self.punctuation, "punctuation"),
            (self.nfkc, "nfkc"),
        ] {
            if holds {
                write!(f, "{comma}{name}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}

impl Fold {
    /// Whether every difference counts.
    #[inline]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The folded text: either the text itself or the buffer, which is overwritten.
    #[inline]
    pub fn apply<'t>(&self, text: &'t str, buffer: &'t mut String) -> &'t str {
        if self.is_none() {
            return text;
        }
        buffer.clear();
        self.append(text, buffer);
        buffer
    }

    /// Appends the folded text.
    pub fn append(&self, text: &str, to: &mut String) {
        let start = to.len();
        if text.is_ascii() {
            self.append_ascii(text, to);
        } else if self.nfkc {
            self.append_chars(text.nfkc(), to);
        } else {
            self.append_chars(text.chars(), to);
        }
        if self.space && to.len() > start && to.ends_with(' ') {
            to.pop();
        }
    }

    fn append_ascii(&self, text: &str, to: &mut String) {
        if !self.space && !self.punctuation {
            let start = to.len();
            to.push_str(text);
            if self.case {
                to[start..].make_ascii_lowercase();
            }
            return;
        }
        self.append_chars(text.chars(), to);
    }

    fn append_chars(&self, chars: impl Iterator<Item = char>, to: &mut String) {
        let start = to.len();
        for c in chars {
            if self.case && !c.is_ascii() {
                c.to_lowercase().for_each(|c| self.push(c, start, to));
            } else if self.case {
                self.push(c.to_ascii_lowercase(), start, to);
            } else {
                self.push(c, start, to);
            }
        }
    }

    fn push(&self, c: char, start: usize, to: &mut String) {
        if self.punctuation && is_punctuation(c) {
            return;
        }
        if self.space && c.is_whitespace() {
            if to.len() > start && !to.ends_with(' ') {
                to.push(' ');
            }
            return;
        }
        to.push(c);
    }
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        // Unicode classifies these ASCII characters as symbols.
        return c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c);
    }
    c.general_category_group() == GeneralCategoryGroup::Punctuation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(list: &str, text: &str) -> String {
        let fold: Fold = list.parse().unwrap();
        assert_eq!(fold.to_string(), list);
        fold.apply(text, &mut String::new()).to_owned()
    }

    #[test]
    fn each_difference_goes_away() {
        assert_eq!(fold("case", "STRASSE Äß"), "strasse äß");
        assert_eq!(fold("space", "\t a \u{a0}\r\n b  "), "a b");
        assert_eq!(fold("space", " \n "), "");
        assert_eq!(fold("punctuation", "«a», b-c: 1+1=2。"), "a bc 1+1=2");
        assert_eq!(fold("nfkc", "ﬁ ① e\u{301}"), "fi 1 é");
        assert_eq!(
            fold("case,space,punctuation,nfkc", "Ｈｅｌｌｏ， － WORLD !"),
            "hello world"
        );
    }

    #[test]
    fn ascii_is_folded_as_other_text_is() {
        for code in 0..128u8 {
            let c = char::from(code);
            assert_eq!(
                is_punctuation(c),
                c.general_category_group() == GeneralCategoryGroup::Punctuation,
                "{c:?}"
            );
        }
    }

    #[test]
    fn an_unknown_fold_is_named() {
        let error = "case,spaces".parse::<Fold>().unwrap_err();
        assert_eq!(
            error,
            "expected case, space, punctuation or nfkc, got 'spaces'"
        );
    }
}
