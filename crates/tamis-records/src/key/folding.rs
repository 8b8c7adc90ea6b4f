//! Which characters are parts of words, and which differ only in case, by the rules of regular expressions: any match
//! of an expression must have keys in an index.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::sync::OnceLock;

/// Characters of a page.
const PAGE: usize = 256;
const IS_WORD: u32 = 1 << 31;

/// Properties of all characters, by pages. A page is computed when a text first needs it: most texts need few.
static PAGES: [OnceLock<Box<[u32; PAGE]>>; 0x11_0000 / PAGE] =
    [const { OnceLock::new() }; 0x11_0000 / PAGE];

/// The character that represents all those that differ from it only in case, and whether it is part of a word (`\w`).
pub(crate) fn folded(character: char) -> (char, bool) {
    let number = character as usize;
    let page = PAGES[number / PAGE].get_or_init(|| page(number / PAGE));
    let found = page[number % PAGE];
    let folded = char::from_u32(found & !IS_WORD).unwrap_or(character);
    (folded, found & IS_WORD != 0)
}

fn page(number: usize) -> Box<[u32; PAGE]> {
    let entry = |at: usize| {
        let character = char::from_u32((number * PAGE + at) as u32);
        // Text never contains surrogates.
        character.map_or(0, |character| {
            let is_word = regex_syntax::is_word_character(character);
            fold(character) as u32 | if is_word { IS_WORD } else { 0 }
        })
    };
    Box::new(std::array::from_fn(entry))
}

/// The first of all characters that differ only in case; for ASCII letters, the lower-case one.
fn fold(character: char) -> char {
    let mut all = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    all.case_fold_simple();
    let first = all
        .ranges()
        .first()
        .map_or(character, |range| range.start());
    first.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that are equal under `(?i)` have the same keys.
    #[test]
    fn characters_that_match_each_other_fold_alike() {
        let mut folding = 0;
        for character in '\0'..=char::MAX {
            let mut all = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
            all.case_fold_simple();
            let expected = folded(character);
            assert_eq!(expected.1, regex_syntax::is_word_character(character));
            assert_eq!(folded(expected.0), expected, "{character:?}");
            for range in all.ranges() {
                for other in range.start()..=range.end() {
                    assert_eq!(folded(other), expected, "{character:?} {other:?}");
                    folding += usize::from(other != character);
                }
            }
        }
        assert!(folding > 2000);
        assert_eq!(folded('\u{212A}'), ('k', true));
        assert_eq!(folded('ſ'), ('s', true));
        assert_eq!(folded('ς'), folded('Σ'));
        assert_eq!(folded('€'), ('€', false));
    }
}
