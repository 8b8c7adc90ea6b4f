//! Finds the keys of text, fast.

use super::distinct::Distinct;
use super::folding::folded;
use super::words::{EACH, JOINS, Word, append_form, for_each_word, pair, triple};
use tamis::Hash;

/// The kinds of keys of text in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKeys {
    /// Words, and phrases of two or three.
    Words,
    /// Every three consecutive bytes.
    Trigrams,
}

/// Finds the keys of text, with buffers for one thread.
///
/// ```
/// use tamis_records::key::{KeysOfText, TextKeys};
/// let mut keys = KeysOfText::new(TextKeys::Words);
/// keys.add(b"GET /cart\nGET /Cart\n");
/// assert_eq!(keys.take().len(), 2);
/// keys.add(b"GET /cart id=7");
/// assert_eq!(keys.take().len(), 5); // get, cart, id, 7, id=7
/// ```
pub struct KeysOfText(Finder);

enum Finder {
    Words { keys: Distinct, form: Vec<u8> },
    Trigrams(Trigrams),
}

impl KeysOfText {
    /// Finds keys of this kind.
    pub fn new(keys: TextKeys) -> Self {
        Self(match keys {
            TextKeys::Words => Finder::Words {
                keys: Distinct::new(),
                form: Vec::new(),
            },
            TextKeys::Trigrams => Finder::Trigrams(Trigrams::new()),
        })
    }

    /// Adds the keys of whole lines; the last may lack its line feed.
    pub fn add(&mut self, lines: &[u8]) {
        match &mut self.0 {
            Finder::Words { keys, form } => add_words(lines, keys, form),
            Finder::Trigrams(trigrams) => trigrams.add(lines),
        }
    }

    /// The distinct keys of the text added since the last call, sorted.
    pub fn take(&mut self) -> Vec<Hash> {
        match &mut self.0 {
            Finder::Words { keys, .. } => keys.take(),
            Finder::Trigrams(trigrams) => trigrams.take(),
        }
    }
}

/// Bytes processed at once.
const BLOCK: usize = 64;
/// The most keys of the words that end in a block: every other byte is a word, and each may end three phrases.
const MOST_FOUND: usize = 128;
const _: () = assert!(MOST_FOUND >= (BLOCK / 2 + 1) * 3);

fn add_words(text: &[u8], keys: &mut Distinct, form: &mut Vec<u8>) {
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let mut padded = [0; BLOCK];
    padded[..rest.len()].copy_from_slice(rest);
    let mut found = [0; MOST_FOUND];
    let mut last = Last::NONE;
    let (mut start, mut before) = (0, 0);
    for (number, block) in blocks.iter().chain([&padded]).enumerate() {
        let at = |bits: u64| number * BLOCK + bits.trailing_zeros() as usize;
        let parts = parts_of_words(block);
        let shifted = parts << 1 | before;
        before = parts >> 63;
        let (mut starts, mut ends) = (parts & !shifted, shifted & !parts);
        if shifted & 1 == 0 && starts != 0 {
            start = at(starts);
            starts &= starts - 1;
        }
        let mut count = 0;
        while ends != 0 {
            let end = at(ends);
            ends &= ends - 1;
            match short_word(text, start, end) {
                Some(word) => count = last.then(text, word, start, end, &mut found, count),
                None => last = add_slowly(text, start, end, last, keys, form),
            }
            if starts != 0 {
                start = at(starts);
                starts &= starts - 1;
            }
        }
        keys.add_all(&found[..count]);
    }
    if before != 0 {
        add_slowly(text, start, text.len(), last, keys, form);
    }
}

/// The word of a run, if it is short, ASCII, and not at the very end of the text.
#[inline(always)]
fn short_word(text: &[u8], start: usize, end: usize) -> Option<Word> {
    let mask = MASKS.get(end - start)?;
    let (low, high) = text.get(start..)?.first_chunk::<16>()?.split_at(8);
    let [low, high] = [low, high].map(|half| u64::from_le_bytes(half.try_into().unwrap_or([0; 8])));
    let (low, high) = (low & mask.0, high & mask.1);
    if (low | high) & (0x80 * EACH) != 0 {
        return None;
    }
    let lowered = 0x20 * EACH;
    let (low, high) = (low | lowered & mask.0, high | lowered & mask.1);
    Some(Word::short(low, high, end - start))
}

/// Masks for the first n of 16 bytes.
const MASKS: [(u64, u64); 17] = {
    let mut masks = [(u64::MAX, u64::MAX); 17];
    let mut length = 0;
    while length < 16 {
        let mask = (1u128 << (8 * length)) - 1;
        masks[length] = (mask as u64, (mask >> 64) as u64);
        length += 1;
    }
    masks
};

/// Handles runs of any length, with characters beyond ASCII, some of which may end words.
#[cold]
fn add_slowly(
    text: &[u8],
    start: usize,
    end: usize,
    mut last: Last,
    keys: &mut Distinct,
    form: &mut Vec<u8>,
) -> Last {
    let mut found = [0; 3];
    let mut add = |word: Word, start: usize, end: usize| {
        let count = last.then(text, word, start, end, &mut found, 0);
        keys.add_all(&found[..count]);
    };
    let run = &text[start..end];
    if run.is_ascii() {
        form.clear();
        form.extend(run.iter().map(|byte| byte | 0x20));
        add(Word::new(form), start, end);
    } else {
        for_each_word(run, |from, to, form| {
            add(Word::new(form), start + from, start + to)
        });
    }
    last
}

/// The last word passed in a text.
#[derive(Clone, Copy)]
struct Last {
    word: Word,
    end: usize,
    /// The word before it, and whether only a dot is between them.
    before: Word,
    is_dotted: bool,
}

impl Last {
    const NONE: Self = Self {
        word: Word::NONE,
        end: usize::MAX,
        before: Word::NONE,
        is_dotted: false,
    };

    /// Appends the keys of a word, and of the phrases that end with it, to `found`; returns how many there are then.
    #[inline(always)]
    fn then<const N: usize>(
        &mut self,
        text: &[u8],
        word: Word,
        start: usize,
        end: usize,
        found: &mut [u64; N],
        mut count: usize,
    ) -> usize {
        let mut add = |is_key: bool, key: u64| {
            found[count % N] = key;
            count += usize::from(is_key);
        };
        add(true, word.key);
        let sign = match text.get(self.end) {
            Some(sign) if start - self.end == 1 => *sign,
            _ => b' ',
        };
        let is_dot = sign == b'.';
        if JOINS[usize::from(sign)] {
            let (is_key, key) = pair(self.word, sign, word);
            add(is_key, key);
            if is_dot & self.is_dotted {
                let (is_key, key) = triple([self.before, self.word, word]);
                add(is_key, key);
            }
        }
        *self = Self {
            word,
            end,
            before: self.word,
            is_dotted: is_dot,
        };
        count
    }
}

/// Which bytes may be parts of words: letters, digits, `_`, and all bytes beyond ASCII.
#[cfg(not(target_arch = "x86_64"))]
use parts_of_words_anywhere as parts_of_words;

/// The same with instructions that every x86_64 processor has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn parts_of_words(block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::*;
    let mut parts = 0;
    for (at, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: SSE2 belongs to the architecture, and the load reads these 16 bytes.
        let tops = unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            // Shifts the wanted range to the smallest values, so that one comparison suffices.
            let among = |bytes, first: u8, count: i8| {
                let moved = _mm_add_epi8(bytes, _mm_set1_epi8((0x80 - first) as i8));
                _mm_cmplt_epi8(moved, _mm_set1_epi8(i8::MIN + count))
            };
            let letter = among(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), b'a', 26);
            let digit = among(bytes, b'0', 10);
            let line = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'_' as i8));
            _mm_movemask_epi8(_mm_or_si128(
                _mm_or_si128(letter, digit),
                _mm_or_si128(line, bytes),
            ))
        };
        parts |= (tops as u64) << (16 * at);
    }
    parts
}

/// Works on any processor, eight bytes at a time.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn parts_of_words_anywhere(block: &[u8; BLOCK]) -> u64 {
    let mut parts = 0;
    for (at, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(*bytes);
        let low = bytes & (0x7F * EACH);
        // Sets the top bit of bytes from `least` on. The sums don't carry into other bytes.
        let from = |bytes: u64, least: u8| bytes + u64::from(0x80 - least) * EACH;
        let letter = low | (0x20 * EACH);
        let is_letter = from(letter, b'a') & !from(letter, b'z' + 1);
        let is_digit = from(low, b'0') & !from(low, b'9' + 1);
        let is_line = !from(low ^ (u64::from(b'_') * EACH), 1);
        let tops = (is_letter | is_digit | is_line | bytes) >> 7 & EACH;
        // The product gathers them in its top byte.
        parts |= (tops.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    parts
}

/// Collects every three consecutive bytes.
struct Trigrams {
    /// ASCII trigrams, by 6 bits of each byte: bit 5 is set in all.
    ascii: Vec<u64>,
    others: Distinct,
    form: Vec<u8>,
}

impl Trigrams {
    fn new() -> Self {
        Self {
            ascii: vec![0; 1 << 12],
            others: Distinct::new(),
            form: Vec::new(),
        }
    }

    fn add(&mut self, lines: &[u8]) {
        let mut rest = lines;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind.get(1..).unwrap_or(&[]);
            if line.is_ascii() {
                self.add_ascii(line);
            } else {
                self.add_form(line);
            }
        }
    }

    fn add_ascii(&mut self, line: &[u8]) {
        let Some((first, rest)) = line.split_first_chunk::<2>() else {
            return;
        };
        let mut three = six_bits(first[0]) << 6 | six_bits(first[1]);
        for byte in rest {
            three = (three << 6 | six_bits(*byte)) & 0x3_FFFF;
            self.ascii[(three >> 6) as usize] |= 1 << (three & 63);
        }
    }

    #[cold]
    fn add_form(&mut self, line: &[u8]) {
        self.form.clear();
        for chunk in line.utf8_chunks() {
            let folding = chunk.valid().chars().map(|character| folded(character).0);
            folding.for_each(|character| append_form(character, &mut self.form));
            self.form.extend_from_slice(chunk.invalid());
        }
        for_each_trigram(&self.form, |key| self.others.add_all(&[key]));
    }

    fn take(&mut self) -> Vec<Hash> {
        for (number, bits) in self.ascii.iter_mut().enumerate() {
            let mut bits = std::mem::take(bits);
            while bits != 0 {
                let six = (number as u32) << 6 | bits.trailing_zeros();
                bits &= bits - 1;
                let byte = |six: u32| (six & 0x1F | (six & 0x20) << 1 | 0x20) as u8;
                let key = trigram(byte(six >> 12), byte(six >> 6), byte(six));
                self.others.add_all(&[key]);
            }
        }
        self.others.take()
    }
}

#[inline(always)]
fn six_bits(byte: u8) -> u32 {
    u32::from(byte & 0x1F | byte >> 1 & 0x20)
}

/// Calls `each` with the keys of a form, one for every three bytes.
pub(crate) fn for_each_trigram(form: &[u8], mut each: impl FnMut(u64)) {
    for three in form.windows(3) {
        each(trigram(three[0], three[1], three[2]));
    }
}

fn trigram(first: u8, second: u8, third: u8) -> u64 {
    u64::from(first) | u64::from(second) << 8 | u64::from(third) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Optimised code paths find the same as the portable one.
    #[test]
    fn every_path_finds_the_same_words() {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        for first in 0..=255u8 {
            for step in [0, 1, 3, 17, 101] {
                let byte = |at: usize| first.wrapping_add((step * at) as u8);
                let block: [u8; BLOCK] = std::array::from_fn(byte);
                let naive = (0..BLOCK).map(|at| u64::from(is_part(block[at])) << at);
                let expected = naive.fold(0, |all, bit| all | bit);
                assert_eq!(parts_of_words_anywhere(&block), expected, "{block:?}");
                assert_eq!(parts_of_words(&block), expected, "{block:?}");
            }
        }
    }
}
