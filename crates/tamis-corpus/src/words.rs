//! The words of a text, separated by single blanks, so that an n-gram is a slice.

use crate::fold::Fold;
use unicode_segmentation::UnicodeSegmentation;

/// Words by Unicode's rules (UAX #29): segments that contain a letter or a digit.
///
/// ```
/// use tamis_corpus::fold::Fold;
/// use tamis_corpus::words::Words;
/// let mut words = Words::default();
/// words.take("The fox, it's said, can't count to 3.14!", Fold::default());
/// assert_eq!(words.len(), 8);
/// assert_eq!(words.ngram(2, 3), "it's said can't");
/// ```
#[derive(Debug, Default)]
pub struct Words {
    text: String,
    /// The start of each word, and one more at the end, as if another blank followed.
    starts: Vec<usize>,
}

impl Words {
    /// Replaces the words with those of another text.
    pub fn take(&mut self, text: &str, fold: Fold) {
        self.text.clear();
        self.starts.clear();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] <= b' ' && is_space(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            let mut is_ascii = true;
            while at < bytes.len() && !is_space(bytes[at]) {
                is_ascii &= bytes[at] < 0x80;
                at += 1;
            }
            // ASCII white space is always a word border, so a token has the same words as in the full text.
            if is_ascii {
                self.take_ascii(&text[start..at], fold);
            } else {
                for word in text[start..at].unicode_words() {
                    self.push(word, fold);
                }
            }
        }
        self.starts.push(self.text.len());
    }

    /// The words of a token, which is ASCII without white space.
    #[inline]
    fn take_ascii(&mut self, token: &str, fold: Fold) {
        let bytes = token.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if CLASS[bytes[at] as usize] == OTHER {
                at += 1;
                continue;
            }
            let start = at;
            let mut has_letter_or_digit = false;
            at = loop {
                has_letter_or_digit |= CLASS[bytes[at] as usize] != JOINER;
                let next = at + 1;
                match bytes.get(next) {
                    None => break next,
                    Some(c) if CLASS[*c as usize] != OTHER => at = next,
                    Some(c) if is_between(bytes[at], *c, bytes.get(next + 1)) => at = next + 1,
                    Some(_) => break next,
                }
            };
            if has_letter_or_digit {
                self.push_ascii(&token[start..at], fold);
            }
        }
    }

    #[inline]
    fn push_ascii(&mut self, word: &str, fold: Fold) {
        self.begin();
        let start = self.text.len();
        self.text.push_str(word);
        if fold.case {
            self.text[start..].make_ascii_lowercase();
        }
    }

    fn push(&mut self, word: &str, fold: Fold) {
        self.begin();
        fold.append(word, &mut self.text);
    }

    #[inline]
    fn begin(&mut self) {
        if !self.starts.is_empty() {
            self.text.push(' ');
        }
        self.starts.push(self.text.len());
    }

    /// The number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `n` words from the one with this number; they must exist.
    #[inline]
    pub fn ngram(&self, at: usize, n: usize) -> &str {
        let start = self.starts[at];
        let end = self.starts[at + n];
        // The blank before the next word.
        let end = if at + n < self.len() { end - 1 } else { end };
        &self.text[start..end]
    }
}

#[inline]
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

const OTHER: u8 = 0;
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
/// The underscore: part of a word, but not a word by itself.
const JOINER: u8 = 3;

static CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut c = 0;
    while c < 128 {
        class[c] = match c as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'0'..=b'9' => DIGIT,
            b'_' => JOINER,
            _ => OTHER,
        };
        c += 1;
    }
    class
};

/// Whether a mark belongs to a word: between two letters, or in a number.
#[inline]
fn is_between(before: u8, mark: u8, after: Option<&u8>) -> bool {
    let Some(after) = after else { return false };
    match (CLASS[before as usize], CLASS[*after as usize]) {
        (LETTER, LETTER) => matches!(mark, b'\'' | b'.' | b':'),
        (DIGIT, DIGIT) => matches!(mark, b'\'' | b'.' | b',' | b';'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut words = Words::default();
        words.take(text, Fold::default());
        let ours: Vec<&str> = (0..words.len()).map(|at| words.ngram(at, 1)).collect();
        let expected: Vec<&str> = text.unicode_words().collect();
        assert_eq!(ours, expected, "{text:?}");
        if words.len() > 1 {
            assert_eq!(words.ngram(0, words.len()), expected.join(" "));
        }
    }

    /// Checks every text of up to five characters, one from each class, and random texts in other scripts.
    #[test]
    fn words_are_those_of_the_reference() {
        let classes = ['a', '1', '_', '\'', '.', ':', ',', ';', '"', '-', ' ', '\r'];
        for length in 1..=5u32 {
            for number in 0..classes.len().pow(length) {
                let pick = |at| classes[number / classes.len().pow(at) % classes.len()];
                check(&(0..length).map(pick).collect::<String>());
            }
        }
        let others = [
            'a', 'É', '1', ' ', '\n', '.', '\u{301}', '漢', 'か', 'カ', 'ש', '"', '\u{200d}', '👩',
            '🇩', '١', '\u{a0}', '_', '·', 'ไ',
        ];
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut next = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) as usize
            };
            let length = next() % 12;
            check(
                &(0..length)
                    .map(|_| others[next() % others.len()])
                    .collect::<String>(),
            );
        }
    }

    #[test]
    fn folds_are_those_of_each_word() {
        let mut words = Words::default();
        let fold: Fold = "case,nfkc".parse().unwrap();
        words.take("The ﬁne CAFE\u{301}", fold);
        assert_eq!(words.ngram(0, 3), "the fine café");
        words.take("", fold);
        assert!(words.is_empty());
    }
}
