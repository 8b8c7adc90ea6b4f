//! The words of a line, as one searches logs.
//!
//! | bytes | are |
//! | --- | --- |
//! | letters, digits, `_` (also beyond ASCII); bytes that are no UTF-8 | a word |
//! | white space, control characters, quotes, brackets, `,` `;` `\|`, signs beyond ASCII | a break |
//! | all other signs: `- . : / @ = & ? # + % ~ * $ ! ^ \` | what joins words |
//!
//! A line's phrases are its words, and two or three neighbours with what joins them. So `10.0.3.7:8080` holds `10`,
//! `0.3.7` and `7:8080`, and whoever asks for `10.0.3.7` asks for `10.0.3` and `0.3.7`: whatever stands between breaks,
//! and any part of it that ends where words end, is found without a key for each.

/// The most words of a phrase. Three tell addresses, dates and paths apart; each more would cost a key a word.
const LONGEST: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Joins,
    Breaks,
}

const ASCII: [Class; 128] = {
    let mut classes = [Class::Joins; 128];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || b == b'_' {
            classes[byte] = Class::Word;
        } else if b <= b' '
            || matches!(
                b,
                b'"' | b'\''
                    | b'`'
                    | b'('
                    | b')'
                    | b'['
                    | b']'
                    | b'{'
                    | b'}'
                    | b'<'
                    | b'>'
                    | b','
                    | b';'
                    | b'|'
                    | 0x7F
            )
        {
            classes[byte] = Class::Breaks;
        }
        byte += 1;
    }
    classes
};

/// The class and the length of the first character; of a byte that is no UTF-8, its own.
#[inline]
fn first(bytes: &[u8]) -> (Class, usize) {
    match ASCII.get(usize::from(bytes[0])) {
        Some(class) => (*class, 1),
        None => first_beyond_ascii(bytes),
    }
}

fn first_beyond_ascii(bytes: &[u8]) -> (Class, usize) {
    let four = &bytes[..bytes.len().min(4)];
    let character = four
        .utf8_chunks()
        .next()
        .and_then(|chunk| chunk.valid().chars().next());
    match character {
        Some(c) if c.is_alphanumeric() => (Class::Word, c.len_utf8()),
        Some(c) => (Class::Breaks, c.len_utf8()),
        None => (Class::Word, 1),
    }
}

/// Calls `each(starts, end)` for every word, which ends there: where it and up to two words before it start.
#[inline]
fn walk(bytes: &[u8], mut each: impl FnMut(&[usize], usize)) {
    let mut starts = [0; LONGEST];
    let mut held = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (class, length) = first(&bytes[at..]);
        let start = at;
        at += length;
        match class {
            Class::Joins => {}
            Class::Breaks => held = 0,
            Class::Word => {
                while at < bytes.len()
                    && let (Class::Word, length) = first(&bytes[at..])
                {
                    at += length;
                }
                if held == LONGEST {
                    starts.rotate_left(1);
                    held -= 1;
                }
                starts[held] = start;
                held += 1;
                each(&starts[..held], at);
            }
        }
    }
}

/// Calls `each` for every word.
pub(crate) fn for_each_word(line: &[u8], mut each: impl FnMut(&[u8])) {
    walk(line, |starts, end| {
        let start = starts[starts.len() - 1];
        each(&line[start..end]);
    });
}

/// Whether a text is one word and nothing else.
pub(crate) fn is_word(text: &[u8]) -> bool {
    let mut is_word = false;
    for_each_word(text, |word| is_word |= word.len() == text.len());
    is_word
}

/// Calls `each` for every phrase, words included.
#[inline]
pub(crate) fn for_each_phrase(line: &[u8], mut each: impl FnMut(&[u8])) {
    walk(line, |starts, end| {
        starts.iter().for_each(|&start| each(&line[start..end]));
    });
}

/// The phrases that a line with this text in it must have: of each run the longest ones, which imply the others.
pub(crate) fn needed(text: &[u8]) -> Vec<&[u8]> {
    let mut phrases: Vec<&[u8]> = Vec::new();
    let mut short = false;
    walk(text, |starts, end| {
        // A word that makes the phrase before it longer replaces that.
        if short && starts.len() > 1 {
            phrases.pop();
        }
        phrases.push(&text[starts[0]..end]);
        short = starts.len() < LONGEST;
    });
    phrases.sort_unstable();
    phrases.dedup();
    phrases
}

/// Whether a line has `text` in it with no word cut at either end, and all the phrases that [`needed`] gave for it.
pub(crate) fn holds(line: &[u8], text: &[u8], needed: &[impl AsRef<[u8]>]) -> bool {
    if !has_whole(line, text) {
        return false;
    }
    // True already of UTF-8. Where it isn't, a character cut in half may change what is a word, and an answer must
    // not depend on what an index can't know.
    let mut missing: Vec<&[u8]> = needed.iter().map(AsRef::as_ref).collect();
    for_each_phrase(line, |phrase| missing.retain(|needed| *needed != phrase));
    missing.is_empty()
}

/// Whether `text` stands somewhere with no word cut. A place may overlap one where it is cut: `a"a` in `aa"a"a`.
fn has_whole(line: &[u8], text: &[u8]) -> bool {
    let finder = memchr::memmem::Finder::new(text);
    let mut from = 0;
    while let Some(at) = line.get(from..).and_then(|rest| finder.find(rest)) {
        let at = from + at;
        if is_whole(line, at, at + text.len()) {
            return true;
        }
        from = at + 1;
    }
    false
}

fn is_whole(line: &[u8], start: usize, end: usize) -> bool {
    let cut = |at: usize| {
        at > 0
            && at < line.len()
            && last_is_word(&line[..at])
            && first(&line[at..]).0 == Class::Word
    };
    !cut(start) && !cut(end)
}

fn last_is_word(bytes: &[u8]) -> bool {
    let mut start = bytes.len() - 1;
    while start > 0 && bytes.len() - start < 4 && bytes[start] & 0xC0 == 0x80 {
        start -= 1;
    }
    let (class, length) = first(&bytes[start..]);
    // Not one whole character: then the last byte is no UTF-8.
    class == Class::Word || start + length != bytes.len()
}
