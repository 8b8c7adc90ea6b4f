//! The keys of text, fast.

use super::distinct::Distinct;
use super::folding::folded;
use super::words::{EACH, JOINS, Word, append_form, for_each_word, pair, triple};
use tamis::Hash;

/// Which keys of text an index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKeys {
    /// Words, and phrases of two or three.
    Words,
    /// Every three bytes in a row.
    Trigrams,
}

/// Finds the keys of text, in buffers that one thread keeps.
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

    /// Adds the keys of whole lines; the last may lack its end.
    pub fn add(&mut self, lines: &[u8]) {
        match &mut self.0 {
            Finder::Words { keys, form } => Words::new(lines, keys, form).add(),
            Finder::Trigrams(trigrams) => trigrams.add(lines),
        }
    }

    /// The distinct keys of what was added since the last call, ascending.
    pub fn take(&mut self) -> Vec<Hash> {
        match &mut self.0 {
            Finder::Words { keys, .. } => keys.take(),
            Finder::Trigrams(trigrams) => trigrams.take(),
        }
    }
}

/// Bytes looked at together.
const BLOCK: usize = 64;

/// The words of a text, on the way through it.
struct Words<'a> {
    text: &'a [u8],
    keys: &'a mut Distinct,
    form: &'a mut Vec<u8>,
    /// The last word, and where it ended.
    last: Word,
    end: usize,
    /// The word before the last, if there is a dot between them.
    dotted: Option<Word>,
}

impl<'a> Words<'a> {
    fn new(text: &'a [u8], keys: &'a mut Distinct, form: &'a mut Vec<u8>) -> Self {
        Self {
            text,
            keys,
            form,
            last: Word::new(b""),
            end: NOWHERE,
            dotted: None,
        }
    }

    fn add(&mut self) {
        let (blocks, rest) = self.text.as_chunks::<BLOCK>();
        let mut padded = [0; BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
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
            while ends != 0 {
                self.add_run(start, at(ends));
                ends &= ends - 1;
                if starts != 0 {
                    start = at(starts);
                    starts &= starts - 1;
                }
            }
        }
        if before != 0 {
            self.add_run(start, self.text.len());
        }
    }

    /// A run of ASCII's letters and digits, and of what is beyond ASCII.
    #[inline(always)]
    fn add_run(&mut self, start: usize, end: usize) {
        let length = end - start;
        if length <= 16
            && let Some(bytes) = self.text[start..].first_chunk::<16>()
        {
            let bytes = u128::from_le_bytes(*bytes);
            let mask = u128::MAX >> (128 - 8 * length);
            let bytes = bytes & mask;
            let both = (bytes >> 64) as u64 | bytes as u64;
            if both & (0x80 * EACH) == 0 {
                let form = bytes | (mask & (0x20 * (u128::MAX / 255)));
                let word = Word::short(form as u64, (form >> 64) as u64, length);
                return self.add_word(word, start, end);
            }
        }
        self.add_slowly(start, end);
    }

    #[cold]
    fn add_slowly(&mut self, start: usize, end: usize) {
        let run = &self.text[start..end];
        if run.is_ascii() {
            self.form.clear();
            self.form.extend(run.iter().map(|byte| byte | 0x20));
            let word = Word::new(self.form);
            return self.add_word(word, start, end);
        }
        for_each_word(run, |from, to, form| {
            self.add_word(Word::new(form), start + from, start + to);
        });
    }

    #[inline(always)]
    fn add_word(&mut self, word: Word, start: usize, end: usize) {
        self.keys.add(word.key);
        let mut dotted = None;
        if start == self.end + 1 {
            let sign = self.text[self.end];
            if JOINS[usize::from(sign)] {
                let (is_key, key) = pair(self.last, sign, word);
                self.keys.add_if(is_key, key);
                if sign == b'.' {
                    dotted = Some(self.last);
                    if let Some(before) = self.dotted {
                        let (is_key, key) = triple([before, self.last, word]);
                        self.keys.add_if(is_key, key);
                    }
                }
            }
        }
        (self.last, self.end, self.dotted) = (word, end, dotted);
    }
}

/// Where no word ends.
const NOWHERE: usize = usize::MAX / 2;

/// Which bytes may be parts of words: letters and digits and `_`, and all beyond ASCII.
#[inline(always)]
fn parts_of_words(block: &[u8; BLOCK]) -> u64 {
    let mut parts = 0;
    for (at, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(*bytes);
        let low = bytes & (0x7F * EACH);
        // Sets the top bit of bytes from this one on. None of the sums is carried.
        let from = |bytes: u64, least: u8| bytes + u64::from(0x80 - least) * EACH;
        let letter = low | (0x20 * EACH);
        let is_letter = from(letter, b'a') & !from(letter, b'z' + 1);
        let is_digit = from(low, b'0') & !from(low, b'9' + 1);
        let is_line = !from(low ^ (u64::from(b'_') * EACH), 1);
        let tops = (is_letter | is_digit | is_line | bytes) >> 7 & EACH;
        // The product's top byte has them in a row.
        parts |= (tops.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    parts
}

/// Every three bytes in a row.
struct Trigrams {
    /// Those of ASCII, by 6 bits of each byte: bit 5 is set in all.
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
        for_each_trigram(&self.form, |key| self.others.add(key));
    }

    fn take(&mut self) -> Vec<Hash> {
        for (number, bits) in self.ascii.iter_mut().enumerate() {
            let mut bits = std::mem::take(bits);
            while bits != 0 {
                let six = (number as u32) << 6 | bits.trailing_zeros();
                bits &= bits - 1;
                let byte = |six: u32| (six & 0x1F | (six & 0x20) << 1 | 0x20) as u8;
                self.others
                    .add(trigram(byte(six >> 12), byte(six >> 6), byte(six)));
            }
        }
        self.others.take()
    }
}

#[inline(always)]
fn six_bits(byte: u8) -> u32 {
    u32::from(byte & 0x1F | byte >> 1 & 0x20)
}

/// Calls `each` with the keys of a form, each of three bytes.
pub(crate) fn for_each_trigram(form: &[u8], mut each: impl FnMut(u64)) {
    for three in form.windows(3) {
        each(trigram(three[0], three[1], three[2]));
    }
}

fn trigram(first: u8, second: u8, third: u8) -> u64 {
    u64::from(first) | u64::from(second) << 8 | u64::from(third) << 16
}
