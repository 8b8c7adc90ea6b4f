//! The words of a line, and their keys in an index. Everything here is part of the index's format.
//!
//! A word is a longest run of what `\w` matches in regular expressions: letters, marks, digits, `_`, in any script.
//! Bytes of invalid UTF-8 aren't parts of words. So words begin and end here wherever they do for `rg`. Words are
//! compared ignoring case, like `(?i)`.
//!
//! The keys of a line are
//!
//! 1. its words;
//! 2. pairs of neighbours with exactly one of the signs `. - / : @ = & ? # + % ~ * $ ! ^ \` between them, such as
//!    `user=ann`, `shop.example`, `log/app`. Not if both begin with a digit, as in every date and time. Nor if one is
//!    *telling* by itself: 16 bytes long, 8 if it contains a digit, or 5 if it begins with one. Hardly any line has
//!    such a word in another pair;
//! 3. triples of words that begin with digits and have dots between them, as in addresses and versions: `10.0.3.7` has
//!    `10.0.3` and `0.3.7`.
//!
//! Whether a phrase is a key depends only on the phrase, so that a query can tell as well.

use super::folding::folded;

/// The lengths that make words telling.
const TELLING: usize = 16;
const TELLING_WITH_DIGIT: usize = 8;
const TELLING_NUMBER: usize = 5;

// Digits of e, so not chosen for any hidden purpose.
const K0: u64 = 0xB7E1_5162_8AED_2A6B;
const K1: u64 = 0xBF71_5880_9CF4_F3C7;
const K2: u64 = 0x62E7_160F_38B4_DA57;
const K3: u64 = 0x84D9_0452_00A6_D6A1;

/// The bytes that join words into phrases.
pub(crate) const JOINS: [bool; 256] = {
    let mut joins = [false; 256];
    let signs = b".-/:@=&?#+%~*$!^\\";
    let mut at = 0;
    while at < signs.len() {
        joins[signs[at] as usize] = true;
        at += 1;
    }
    joins
};

/// Appends a folded character in the form used for keys: UTF-8, with bit 5 set in ASCII. This lowers letters and keeps
/// digits; `_` becomes a byte that no word has. Other signs may collide, which at worst costs a look at a file.
#[inline]
pub(crate) fn append_form(folded: char, form: &mut Vec<u8>) {
    if folded.is_ascii() {
        form.push(folded as u8 | 0x20);
    } else {
        form.extend_from_slice(folded.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// XOR of the product's halves.
#[inline(always)]
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// A word, reduced to what keys are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The key of the word alone.
    pub(crate) key: u64,
    /// Whether it begins with a digit.
    pub(crate) is_number: bool,
    pub(crate) is_telling: bool,
}

impl Word {
    /// No word.
    pub(crate) const NONE: Self = Self {
        key: 0,
        is_number: false,
        is_telling: false,
    };

    /// The word with this form.
    pub(crate) fn new(form: &[u8]) -> Self {
        let (blocks, rest) = form.as_chunks::<16>();
        let mut padded = [0; 16];
        padded[..rest.len()].copy_from_slice(rest);
        let rest = (!rest.is_empty()).then_some(&padded);
        let mut halves = blocks.iter().chain(rest).map(halves);
        let (low, high) = halves.next().unwrap_or((0, 0));
        let mut word = Self::short(low, high, form.len());
        for (low, high) in halves {
            word.key = mix(low ^ K0, high ^ K1 ^ word.key);
        }
        word
    }

    /// The word with a form of up to 16 bytes, padded with zeros; for a longer form, its first 16 bytes.
    #[inline(always)]
    pub(crate) fn short(low: u64, high: u64, length: usize) -> Self {
        // A digit has bit 4 set and bit 6 clear, unlike letters, and bit 7 clear, unlike other characters.
        let digits = |bytes: u64| bytes << 2 & !(bytes | bytes >> 1) & (0x40 * EACH);
        let has_digit = digits(low) | digits(high) != 0;
        let is_number = (low as u8).is_ascii_digit();
        Self {
            key: mix(low ^ K0, high ^ K1 ^ length as u64),
            is_number,
            is_telling: (length >= TELLING)
                | (length >= TELLING_WITH_DIGIT) & has_digit
                | (length >= TELLING_NUMBER) & is_number,
        }
    }
}

/// A one in each byte.
pub(crate) const EACH: u64 = u64::MAX / 255;

#[inline(always)]
fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*bytes);
    (both as u64, (both >> 64) as u64)
}

/// Whether two words with this sign between them are a key, and that key.
#[inline(always)]
pub(crate) fn pair(first: Word, sign: u8, second: Word) -> (bool, u64) {
    let is_key = !(first.is_number & second.is_number | first.is_telling | second.is_telling);
    (is_key, joined(first.key, sign, second.key))
}

/// Whether three words with dots between them are a key, and that key.
#[inline(always)]
pub(crate) fn triple([first, second, third]: [Word; 3]) -> (bool, u64) {
    let is_key = first.is_number & second.is_number & third.is_number;
    let pair = joined(first.key, b'.', second.key);
    (is_key, joined(pair, b'.', third.key))
}

#[inline(always)]
const fn joined(first: u64, sign: u8, second: u64) -> u64 {
    mix(first ^ K2, second ^ K3 ^ sign as u64)
}

/// Calls `each` with the start, the end and the form of every word.
pub(crate) fn for_each_word(text: &[u8], mut each: impl FnMut(usize, usize, &[u8])) {
    let mut form = Vec::new();
    let (mut start, mut at) = (0, 0);
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            let (folded, is_word) = folded(character);
            if is_word {
                if form.is_empty() {
                    start = at;
                }
                append_form(folded, &mut form);
            } else if !form.is_empty() {
                each(start, at, &form);
                form.clear();
            }
            at += character.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            if !form.is_empty() {
                each(start, at, &form);
                form.clear();
            }
            at += chunk.invalid().len();
        }
    }
    if !form.is_empty() {
        each(start, at, &form);
    }
}

/// Whether a text consists of one word.
pub(crate) fn is_word(text: &[u8]) -> bool {
    let mut is_word = false;
    for_each_word(text, |start, end, _| {
        is_word |= (start, end) == (0, text.len())
    });
    is_word
}

/// Whether a line contains `text` between word borders, as `rg -wF` finds it.
pub(crate) fn has_whole(line: &[u8], text: &[u8]) -> bool {
    let finder = memchr::memmem::Finder::new(text);
    let mut from = 0;
    while let Some(at) = line.get(from..).and_then(|rest| finder.find(rest)) {
        let at = from + at;
        let (before, behind) = (&line[..at], &line[at + text.len()..]);
        let last = (1..=before.len().min(4)).find_map(|n| one(&before[before.len() - n..]));
        let next = (1..=behind.len().min(4)).find_map(|n| one(&behind[..n]));
        let ends = |bytes: &[u8], character: Option<char>| match character {
            // Bytes of invalid UTF-8 may be cut from a character.
            None => bytes.is_empty(),
            Some(character) => !folded(character).1,
        };
        if ends(before, last) && ends(behind, next) {
            return true;
        }
        // Matches may overlap: `a"a` in `aa"a"a`.
        from = at + 1;
    }
    false
}

/// The character that these bytes encode, if they are exactly one.
fn one(bytes: &[u8]) -> Option<char> {
    let mut characters = std::str::from_utf8(bytes).ok()?.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}
