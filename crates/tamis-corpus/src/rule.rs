//! What a unit is. Recorded in a filter's key rule, so that later runs use the same.

use crate::fold::Fold;
use tamis::KeyRule;
use tamis::internals::TextRule;

#[doc(inline)]
pub use tamis::internals::TextUnit;

/// Which parts of a text are compared, and which differences between them don't count.
///
/// ```
/// use tamis_corpus::fold::Fold;
/// use tamis_corpus::rule::{TextUnit, UnitRule};
/// let rule = UnitRule::new(TextUnit::Line, "case".parse::<Fold>()?);
/// let recorded = rule.key_rule();
/// assert_eq!(recorded.to_string(), "lines of a text, case ignored");
/// assert_eq!(UnitRule::of(&recorded), Some(rule));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRule {
    unit: TextUnit,
    fold: Fold,
}

impl UnitRule {
    /// Units of this sort. Words never include white space or punctuation at their ends, so with [`TextUnit::Words`]
    /// and [`TextUnit::Alike`] these two folds are left out.
    pub fn new(unit: TextUnit, fold: Fold) -> Self {
        let fold = match unit {
            TextUnit::Words(_) | TextUnit::Alike(_) => Fold {
                space: false,
                punctuation: false,
                ..fold
            },
            _ => fold,
        };
        Self { unit, fold }
    }

    /// The rule of a filter, if it holds units of text.
    pub fn of(rule: &KeyRule) -> Option<Self> {
        let text = rule.text()?;
        let fold = Fold {
            case: rule.ignores_case(),
            space: text.ignores_space(),
            punctuation: text.ignores_punctuation(),
            nfkc: text.is_nfkc(),
        };
        Some(Self::new(text.unit(), fold))
    }

    /// The key rule that a filter records.
    ///
    /// # Panics
    /// If the unit's number makes no sense: zero words, or a likeness that isn't 1 to 99 percent.
    pub fn key_rule(&self) -> KeyRule {
        let mut text = TextRule::of(self.unit);
        if self.fold.nfkc {
            text = text.nfkc();
        }
        if self.fold.punctuation {
            text = text.ignore_punctuation();
        }
        if self.fold.space {
            text = text.ignore_space();
        }
        let rule = if self.fold.case {
            KeyRule::EXACT.ignore_case()
        } else {
            KeyRule::EXACT
        };
        rule.of_text(text).expect("the unit has a sound number")
    }

    /// The unit that is compared.
    pub const fn unit(&self) -> TextUnit {
        self.unit
    }

    /// Which differences don't count.
    pub const fn fold(&self) -> Fold {
        self.fold
    }

    /// Whether keys are made from words.
    pub(crate) const fn takes_words(&self) -> bool {
        matches!(self.unit, TextUnit::Words(_) | TextUnit::Alike(_))
    }

    /// The approximate number of bytes of text per key.
    pub(crate) const fn usual_bytes(&self) -> u64 {
        match self.unit {
            TextUnit::Paragraph => 300,
            TextUnit::Sentence | TextUnit::Line => 100,
            TextUnit::Words(_) => 6,
            TextUnit::Alike(_) => 200,
            _ => 2000,
        }
    }

    /// The default false-positive rate of a new filter. A unit judged by many n-grams tolerates a few wrong ones, so
    /// its rate may be higher.
    pub const fn usual_rate(&self) -> f64 {
        match self.unit {
            TextUnit::Words(_) => 1e-3,
            _ => 1e-6,
        }
    }
}
