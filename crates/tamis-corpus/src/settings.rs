//! What a run is asked to do.

use crate::json::Fields;
use crate::rule::{TextUnit, UnitRule};

/// What is done with what was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It is cut out of the text, or its record is dropped.
    Cleaned,
    /// Each record says in a field of its own where it is.
    Annotated,
    /// A line for each record, with its name, says where it is.
    Attributes,
    /// It is only counted.
    Nothing,
}

/// What is done with the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is asked, and new units are added.
    Judge,
    /// Units are added.
    Learn,
    /// It is only asked.
    Ask,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a unit is.
    pub rule: UnitRule,
    /// What is judged by its n-grams: [`TextUnit::Document`] or [`TextUnit::Paragraph`].
    pub of: TextUnit,
    /// An n-gram begins at every so manyth word.
    pub stride: usize,
    /// What is judged by its n-grams is a repetition if this share of them was seen before.
    pub threshold: f64,
    /// Units with fewer words are kept and not remembered.
    pub min_words: usize,
    /// Units with fewer bytes are kept and not remembered.
    pub min_bytes: usize,
    /// Whether a record is dropped when nothing is left of its text.
    pub drop_empty: bool,
    /// Where records have their text.
    pub fields: Fields,
    /// What is done with repetitions.
    pub output: Output,
    /// What is done with the filter.
    pub use_of_filter: Use,
    /// Whether the most repeated units are looked for.
    pub finds_most_repeated: bool,
}

impl Settings {
    /// The usual ones: text is in `/text`, names are in `/id`, repetitions are cut out.
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

    /// What is judged, and kept or not.
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

    /// Whether places are told in characters.
    pub(crate) const fn wants_chars(&self) -> bool {
        matches!(self.output, Output::Annotated | Output::Attributes)
    }
}
