//! The settings of a run.

use crate::json::Fields;
use crate::rule::{TextUnit, UnitRule};

/// What to do with repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Cut them out of the text, or drop the record.
    Cleaned,
    /// Mark their positions in a separate field of each record.
    Annotated,
    /// Print one line per record, with its name and the positions.
    Attributes,
    /// Only count them.
    Nothing,
}

/// How to use the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Query it, and add new units.
    Judge,
    /// Only add units.
    Learn,
    /// Only query it.
    Ask,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a unit is.
    pub rule: UnitRule,
    /// What is judged by its n-grams: [`TextUnit::Document`] or [`TextUnit::Paragraph`].
    pub of: TextUnit,
    /// The distance between the starts of n-grams, in words.
    pub stride: usize,
    /// The share of n-grams seen before that makes a repetition.
    pub threshold: f64,
    /// Units with fewer words are kept and not remembered.
    pub min_words: usize,
    /// Units with fewer bytes are kept and not remembered.
    pub min_bytes: usize,
    /// Whether to drop a record when nothing is left of its text.
    pub drop_empty: bool,
    /// Where records have their text.
    pub fields: Fields,
    /// What to do with repetitions.
    pub output: Output,
    /// How to use the filter.
    pub use_of_filter: Use,
    /// Whether to find the most repeated units.
    pub finds_most_repeated: bool,
}

impl Settings {
    /// The defaults: text is in `/text`, names are in `/id`, repetitions are cut out.
    ///
    /// ```
    /// use tamis_corpus::rule::TextUnit;
    /// use tamis_corpus::fold::Fold;
    /// use tamis_corpus::rule::UnitRule;
    /// use tamis_corpus::settings::Settings;
    /// let rule = UnitRule::new(TextUnit::Words(13), Fold::default());
    /// assert_eq!(Settings::new(rule).judged(), TextUnit::Document);
    /// ```
    pub fn new(rule: UnitRule) -> Self {
        Self {
            rule,
            of: TextUnit::Document,
            stride: 1,
            threshold: 0.8,
            min_words: 0,
            min_bytes: 0,
            drop_empty: false,
            fields: Fields::usual(),
            output: Output::Cleaned,
            use_of_filter: Use::Judge,
            finds_most_repeated: false,
        }
    }

    /// The unit that is judged, and kept or dropped.
    pub const fn judged(&self) -> TextUnit {
        match self.rule.unit() {
            TextUnit::Words(_) => self.of,
            TextUnit::Alike(_) => TextUnit::Document,
            unit => unit,
        }
    }

    /// Whether a repetition is a whole document.
    pub(crate) fn judges_documents(&self) -> bool {
        self.judged() == TextUnit::Document
    }

    /// Whether positions are reported in characters.
    pub(crate) const fn wants_chars(&self) -> bool {
        matches!(self.output, Output::Annotated | Output::Attributes)
    }
}
