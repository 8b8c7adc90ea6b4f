//! Patterns to find in lines of text.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, ClassSetItem, Visitor};
use std::convert::Infallible;

/// How the texts of [`Patterns`] are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// Literal text that begins and ends at word borders, as with `rg -wF`.
    Words,
    /// Literal text anywhere in a line, as with `rg -F`.
    Literal,
    /// Regular expressions of the crate `regex`, as with `rg`.
    #[default]
    Regex,
}

/// Alternatives: a line matches where one of them does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// The alternatives. If there are none, nothing matches.
    pub texts: Vec<String>,
    /// How each of them is read.
    pub syntax: Syntax,
    /// Letters match in both cases.
    pub ignore_case: bool,
    /// Letters match in both cases unless one of the patterns has a capital; see [`ignores_case`](Self::ignores_case).
    pub smart_case: bool,
    /// Matches begin and end at word borders. Implied by [`Syntax::Words`].
    pub whole_words: bool,
    /// A match must be a whole line; overrides `whole_words`.
    pub whole_lines: bool,
}

impl Patterns {
    /// Whether case is ignored. Resolves `smart_case` as ripgrep does: capitals count in literals and in classes
    /// (`[A-Z]`), not in `\W` or `\p{Lu}`.
    ///
    /// ```
    /// use tamis_records::patterns::Patterns;
    ///
    /// let ignores_case = |text: &str| Patterns { texts: vec![text.into()], smart_case: true, ..Patterns::default() }.ignores_case();
    /// assert!(ignores_case(r"error\W"));
    /// assert!(!ignores_case("Error"));
    /// ```
    pub fn ignores_case(&self) -> bool {
        if self.ignore_case || !self.smart_case {
            return self.ignore_case;
        }
        let mut literals = Literals::default();
        for text in &self.texts {
            if self.syntax != Syntax::Regex {
                text.chars().for_each(|character| literals.add(character));
            } else if let Ok(ast) = Parser::new().parse(text) {
                let Ok(()) = ast::visit(&ast, &mut literals);
            }
        }
        literals.any && !literals.capital
    }
}

/// The literals of a regular expression.
#[derive(Default)]
struct Literals {
    any: bool,
    capital: bool,
}

impl Literals {
    fn add(&mut self, character: char) {
        self.any = true;
        self.capital |= character.is_uppercase();
    }
}

impl Visitor for &mut Literals {
    type Output = ();
    type Err = Infallible;

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        if let Ast::Literal(literal) = ast {
            self.add(literal.c);
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Literal(literal) => self.add(literal.c),
            ClassSetItem::Range(range) => {
                self.add(range.start.c);
                self.add(range.end.c);
            }
            _ => {}
        }
        Ok(())
    }
}
