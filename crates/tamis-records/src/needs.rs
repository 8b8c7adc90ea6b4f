//! What a text must contain to match a pattern, as keys of an index.
//!
//! A pattern is split into sequences of known characters and gaps, one sequence per alternative. A word of a sequence
//! is needed if it is known to begin and end there: because of the characters next to it, or because the pattern asks
//! for a border (`\b`, `^`, `$`, `-w`, `-x`). Anything that isn't understood is a gap, and a pattern of gaps needs
//! nothing.

use crate::key::TextKeys;
use crate::key::folding::folded;
use crate::key::text::for_each_trigram;
use crate::key::words::{JOINS, Word, append_form, pair, triple};
use crate::patterns::{Patterns, Syntax};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tamis::Hash;

/// Most sequences of a pattern. With one more alternative, it becomes a gap.
const MOST_SEQUENCES: usize = 4096;
/// Most sequences that result from classes of characters and from optional parts.
const MOST_GUESSED: usize = 64;
/// Most items in all sequences of a pattern.
const MOST_ITEMS: usize = 1 << 16;
/// Largest class of characters, ignoring case, that is treated as alternatives.
const SMALL_CLASS: usize = 8;
/// Most times that a repetition is written out.
const MOST_TIMES: u32 = 3;

/// What a text must contain to match a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing known: any text may match.
    Anything,
    /// This key.
    Key(Hash),
    /// All of these. If empty, any text may match.
    All(Vec<Need>),
    /// At least one of these. If empty, no text matches.
    One(Vec<Need>),
}

impl Need {
    /// Whether a text may match, given an answer for each key.
    ///
    /// ```
    /// use tamis_records::key::{KeysOfText, TextKeys};
    /// use tamis_records::needs::needs;
    /// use tamis_records::patterns::Patterns;
    /// let mut keys = KeysOfText::new(TextKeys::Words);
    /// keys.add(b"GET /cart from 10.0.3.7\n");
    /// let keys = keys.take();
    /// let may = |regex: &str| {
    ///     let patterns = Patterns { texts: vec![regex.into()], ..Patterns::default() };
    ///     needs(&patterns, TextKeys::Words)[0].is_met(&mut |key| keys.contains(&key))
    /// };
    /// assert!(may(r"(GET|PUT) /cart from \d+"));
    /// assert!(!may(r"(GET|PUT) /search from \d+"));
    /// assert!(may(r"sea?r?c?h?")); // of which no word is known
    /// ```
    pub fn is_met(&self, has: &mut impl FnMut(Hash) -> bool) -> bool {
        match self {
            Self::Anything => true,
            Self::Key(key) => has(*key),
            Self::All(needs) => needs.iter().all(|need| need.is_met(has)),
            Self::One(needs) => needs.iter().any(|need| need.is_met(has)),
        }
    }

    /// All of these, simplified.
    fn all(needs: impl IntoIterator<Item = Self>) -> Self {
        let mut all = BTreeSet::new();
        for need in needs {
            match need {
                Self::Anything => {}
                Self::All(needs) => all.extend(needs),
                Self::One(needs) if needs.is_empty() => return Self::One(needs),
                need => drop(all.insert(need)),
            }
        }
        match (all.len(), all.pop_first()) {
            (1, Some(only)) => only,
            (_, None) => Self::Anything,
            (_, Some(first)) => Self::All([first].into_iter().chain(all).collect()),
        }
    }

    /// One of these, simplified.
    fn one(needs: impl IntoIterator<Item = Self>) -> Self {
        let mut one = BTreeSet::new();
        for need in needs {
            match need {
                Self::Anything => return Self::Anything,
                Self::All(needs) if needs.is_empty() => return Self::Anything,
                Self::One(needs) => one.extend(needs),
                need => drop(one.insert(need)),
            }
        }
        match (one.len(), one.pop_first()) {
            (1, Some(only)) => only,
            (_, first) => Self::One(first.into_iter().chain(one).collect()),
        }
    }
}

/// The need of each pattern. Patterns are alternatives: a text may match if it meets the need of one of them.
pub fn needs(patterns: &Patterns, keys: TextKeys) -> Vec<Need> {
    let needs: Option<Vec<Need>> = patterns
        .texts
        .iter()
        .map(|text| need(text, patterns, keys))
        .collect();
    // A pattern that is invalid alone may be valid when joined with its neighbours: `x[` and `]y`.
    needs.unwrap_or_else(|| vec![Need::Anything; patterns.texts.len()])
}

/// The need of a pattern; `None` if it isn't a valid regular expression.
fn need(text: &str, patterns: &Patterns, keys: TextKeys) -> Option<Need> {
    let is_whole = patterns.whole_words || patterns.whole_lines || patterns.syntax == Syntax::Words;
    let edge = is_whole.then_some(Item::Edge);
    let need_of_one = |sequences: Vec<Sequence>| {
        Need::one(sequences.into_iter().map(|items| {
            let items = edge.iter().cloned().chain(items).chain(edge.clone());
            need_of(&items.collect::<Vec<_>>(), keys)
        }))
    };
    if patterns.syntax != Syntax::Regex {
        return Some(need_of_one(vec![literal(text.as_bytes())]));
    }
    // Keys ignore case, but classes may depend on it: `[A--[^a]]`.
    let cases: &[bool] = match (patterns.ignore_case, patterns.smart_case) {
        (true, _) => &[true],
        (false, false) => &[false],
        (false, true) => &[false, true],
    };
    let mut needs = Vec::new();
    for ignore_case in cases {
        let mut parser = ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            .case_insensitive(*ignore_case)
            .build();
        let hir = parser.parse(&format!("(?:{text})")).ok()?;
        needs.push(need_of_one(sequences(&hir, keys)));
    }
    Some(Need::one(needs))
}

/// The known parts of a match, from its beginning to its end.
type Sequence = Vec<Item>;

#[derive(Clone, Debug)]
enum Item {
    /// A character, folded.
    Character(char),
    /// A place that no word crosses.
    Edge,
    Gap(Gap),
}

/// Text of which little is known.
#[derive(Clone, Debug)]
struct Gap {
    /// Whether it may begin with a part of a word.
    begins_in_word: bool,
    ends_in_word: bool,
    may_be_empty: bool,
    need: Need,
}

impl Gap {
    const EMPTY: Self = Self {
        begins_in_word: false,
        ends_in_word: false,
        may_be_empty: true,
        need: Need::Anything,
    };

    fn of_one(may_be_word: bool) -> Self {
        Self {
            begins_in_word: may_be_word,
            ends_in_word: may_be_word,
            may_be_empty: false,
            need: Need::Anything,
        }
    }

    fn then(self, next: Self) -> Self {
        Self {
            begins_in_word: self.begins_in_word || self.may_be_empty && next.begins_in_word,
            ends_in_word: next.ends_in_word || next.may_be_empty && self.ends_in_word,
            may_be_empty: self.may_be_empty && next.may_be_empty,
            need: Need::all([self.need, next.need]),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            begins_in_word: self.begins_in_word || other.begins_in_word,
            ends_in_word: self.ends_in_word || other.ends_in_word,
            may_be_empty: self.may_be_empty || other.may_be_empty,
            need: Need::Anything,
        }
    }

    fn or_nothing(self) -> Self {
        Self {
            may_be_empty: true,
            need: Need::Anything,
            ..self
        }
    }

    /// A gap that stands for any match.
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::EMPTY,
            HirKind::Literal(text) => literal(&text.0)
                .into_iter()
                .map(Self::of_item)
                .fold(Self::EMPTY, Self::then),
            HirKind::Class(class) => Self::of_one(may_be_word(class)),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(Repetition { min: 0, sub, .. }) => Self::of(sub).or_nothing(),
            HirKind::Repetition(repetition) => Self::of(&repetition.sub),
            HirKind::Concat(parts) => parts.iter().map(Self::of).fold(Self::EMPTY, Self::then),
            HirKind::Alternation(parts) => {
                let all = parts.iter().map(Self::of).reduce(Self::or);
                all.unwrap_or(Self::EMPTY)
            }
        }
    }

    fn of_item(item: Item) -> Self {
        match item {
            Item::Character(character) => Self::of_one(folded(character).1),
            Item::Edge => Self::EMPTY,
            Item::Gap(gap) => gap,
        }
    }
}

/// Whether a class contains a part of a word. A byte beyond ASCII may belong to one.
fn may_be_word(class: &Class) -> bool {
    static WORD: LazyLock<Option<ClassUnicode>> = LazyLock::new(|| {
        let word = regex_syntax::parse(r"\w").ok()?;
        match word.into_kind() {
            HirKind::Class(Class::Unicode(class)) => Some(class),
            _ => None,
        }
    });
    match (class, &*WORD) {
        (Class::Unicode(class), Some(word)) => {
            let mut both = class.clone();
            both.intersect(word);
            !both.ranges().is_empty()
        }
        (Class::Unicode(_), None) => true,
        (Class::Bytes(class), _) => class
            .iter()
            .flat_map(|range| range.start()..=range.end())
            .any(|byte| !byte.is_ascii() || folded(char::from(byte)).1),
    }
}

/// The characters of a literal. Bytes that are invalid UTF-8 alone may be valid together with others.
fn literal(bytes: &[u8]) -> Sequence {
    let mut items = Vec::new();
    for chunk in bytes.utf8_chunks() {
        let characters = chunk.valid().chars().map(|character| folded(character).0);
        items.extend(characters.map(Item::Character));
        if !chunk.invalid().is_empty() {
            items.push(Item::Gap(Gap::of_one(true)));
        }
    }
    items
}

/// Sequences such that every match contains one of them.
fn sequences(hir: &Hir, keys: TextKeys) -> Vec<Sequence> {
    match hir.kind() {
        HirKind::Empty => vec![Vec::new()],
        HirKind::Literal(text) => vec![literal(&text.0)],
        HirKind::Look(look) if ends_words(*look) => vec![vec![Item::Edge]],
        HirKind::Look(_) => vec![Vec::new()],
        HirKind::Class(class) => match few_characters(class) {
            Some(few) => few.into_iter().map(|c| vec![Item::Character(c)]).collect(),
            None => vec![vec![Item::Gap(Gap::of(hir))]],
        },
        HirKind::Capture(capture) => sequences(&capture.sub, keys),
        HirKind::Repetition(repetition) => repeated(repetition, keys),
        HirKind::Concat(parts) => parts.iter().fold(vec![Vec::new()], |before, part| {
            followed_by(before, part, &sequences(part, keys), keys)
        }),
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(sequences(part, keys));
                if all.len() > MOST_SEQUENCES || items(&all) > MOST_ITEMS {
                    return vec![vec![Item::Gap(Gap::of(hir))]];
                }
            }
            all
        }
    }
}

fn items(sequences: &[Sequence]) -> usize {
    sequences.iter().map(Vec::len).sum()
}

/// Each sequence, followed by each of a part's; a gap instead if there are too many.
fn followed_by(
    mut before: Vec<Sequence>,
    part: &Hir,
    next: &[Sequence],
    keys: TextKeys,
) -> Vec<Sequence> {
    let most = match part.kind() {
        HirKind::Class(_) | HirKind::Repetition(_) if next.len() > 1 => MOST_GUESSED,
        _ => MOST_SEQUENCES,
    };
    let count = before.len() * next.len();
    if count > most || items(&before) * next.len() + items(next) * before.len() > MOST_ITEMS {
        let gap = Item::Gap(Gap {
            need: Need::one(next.iter().map(|items| need_of(items, keys))),
            ..Gap::of(part)
        });
        before
            .iter_mut()
            .for_each(|sequence| append(sequence, std::slice::from_ref(&gap)));
        return before;
    }
    if let [only] = next {
        before
            .iter_mut()
            .for_each(|sequence| append(sequence, only));
        return before;
    }
    let mut all = Vec::with_capacity(count);
    for first in &before {
        for next in next {
            let mut both = first.clone();
            append(&mut both, next);
            all.push(both);
        }
    }
    all
}

/// Appends items; merges adjacent gaps.
fn append(sequence: &mut Sequence, next: &[Item]) {
    for item in next {
        match (sequence.last_mut(), item) {
            (Some(Item::Gap(gap)), Item::Gap(next)) => *gap = gap.clone().then(next.clone()),
            _ => sequence.push(item.clone()),
        }
    }
}

fn repeated(repetition: &Repetition, keys: TextKeys) -> Vec<Sequence> {
    let Repetition { min, max, sub, .. } = repetition;
    let more = vec![Item::Gap(Gap::of(sub).or_nothing())];
    let one = match sub.kind() {
        HirKind::Class(class) if few_characters(class).is_none_or(|few| few.len() > 1) => {
            return vec![vec![Item::Gap(Gap {
                may_be_empty: *min == 0,
                ..Gap::of(sub)
            })]];
        }
        _ => sequences(sub, keys),
    };
    if *min == 0 {
        let is_exact = |sequence: &Sequence| {
            let gap = |item: &Item| matches!(item, Item::Gap(_));
            !sequence.iter().any(gap)
        };
        if *max == Some(1) && one.iter().all(is_exact) {
            return [Vec::new()].into_iter().chain(one).collect();
        }
        return vec![more];
    }
    let times = (*min).min(MOST_TIMES);
    let mut all = vec![Vec::new()];
    for _ in 0..times {
        all = followed_by(all, sub, &one, keys);
    }
    if *max != Some(times) {
        all.iter_mut().for_each(|sequence| append(sequence, &more));
    }
    all
}

/// Whether a place asserted by this is never inside a word. Borders of ASCII words may be inside other words.
fn ends_words(look: Look) -> bool {
    use Look::*;
    match look {
        Start | End | StartLF | EndLF | StartCRLF | EndCRLF => true,
        WordUnicode | WordStartUnicode | WordEndUnicode => true,
        WordStartHalfUnicode | WordEndHalfUnicode => true,
        WordUnicodeNegate | WordAscii | WordAsciiNegate | WordStartAscii | WordEndAscii => false,
        WordStartHalfAscii | WordEndHalfAscii => false,
    }
}

/// The folded characters of a small class. Bytes beyond ASCII aren't characters.
fn few_characters(class: &Class) -> Option<BTreeSet<char>> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|r| (r.start(), r.end())).collect(),
        Class::Bytes(class) if class.is_ascii() => class
            .iter()
            .map(|r| (char::from(r.start()), char::from(r.end())))
            .collect(),
        Class::Bytes(_) => return None,
    };
    let mut few = BTreeSet::new();
    for (first, last) in ranges {
        for character in first..=last {
            few.insert(folded(character).0);
            if few.len() > SMALL_CLASS {
                return None;
            }
        }
    }
    Some(few)
}

/// The need of a sequence.
fn need_of(items: &[Item], keys: TextKeys) -> Need {
    let of_gaps = items.iter().filter_map(|item| match item {
        Item::Gap(gap) => Some(gap.need.clone()),
        _ => None,
    });
    let of_text = match keys {
        TextKeys::Words => keys_of_words(&words(items)),
        TextKeys::Trigrams => trigrams(items),
    };
    let of_text = of_text
        .into_iter()
        .map(|key| Need::Key(Hash::from_u64(key)));
    Need::all(of_gaps.chain(of_text))
}

fn trigrams(items: &[Item]) -> Vec<u64> {
    let mut keys = Vec::new();
    for run in items.split(|item| matches!(item, Item::Gap(_))) {
        let mut form = Vec::new();
        for item in run {
            if let Item::Character(character) = item {
                append_form(*character, &mut form);
            }
        }
        for_each_trigram(&form, |key| keys.push(key));
    }
    keys
}

/// A word of a sequence, or the known part of it.
struct Known {
    word: Word,
    /// Whether it begins there.
    begins: bool,
    ends: bool,
    /// The only character between it and the known word before it.
    sign: Option<char>,
}

fn words(items: &[Item]) -> Vec<Known> {
    let mut known: Vec<Known> = Vec::new();
    let mut form = Vec::new();
    // Whether the character before isn't part of a word, and whether that was so before the current word.
    let (mut clean, mut begins) = (false, false);
    // The text since the last word, if it is known.
    let mut between: Option<String> = None;
    for (at, item) in items.iter().enumerate() {
        if let Item::Character(character) = item
            && folded(*character).1
        {
            if form.is_empty() {
                begins = clean;
            }
            append_form(*character, &mut form);
            clean = false;
            continue;
        }
        if !form.is_empty() {
            known.push(Known {
                word: Word::new(&form),
                begins,
                ends: no_word_goes_on(&items[at..]),
                sign: only_one(between.as_deref()),
            });
            form.clear();
            between = Some(String::new());
        }
        match item {
            Item::Character(character) => {
                if let Some(between) = &mut between {
                    between.push(*character);
                }
                clean = true;
            }
            Item::Edge => clean = true,
            Item::Gap(gap) => {
                between = None;
                clean = !gap.ends_in_word && (!gap.may_be_empty || clean);
            }
        }
    }
    if !form.is_empty() {
        known.push(Known {
            word: Word::new(&form),
            begins,
            ends: false,
            sign: only_one(between.as_deref()),
        });
    }
    known
}

fn only_one(text: Option<&str>) -> Option<char> {
    let mut characters = text?.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// Whether a word before these items certainly ends there.
fn no_word_goes_on(items: &[Item]) -> bool {
    for item in items {
        match item {
            Item::Character(character) => return !folded(*character).1,
            Item::Edge => return true,
            Item::Gap(gap) if gap.begins_in_word => return false,
            Item::Gap(gap) if !gap.may_be_empty => return true,
            Item::Gap(_) => {}
        }
    }
    false
}

/// The keys of known words and of the phrases that they form.
fn keys_of_words(known: &[Known]) -> Vec<u64> {
    let sign_of = |word: &Known| {
        let sign = u8::try_from(word.sign?).ok()?;
        JOINS[usize::from(sign)].then_some(sign)
    };
    let mut keys = Vec::new();
    for (at, last) in known.iter().enumerate().filter(|(_, word)| word.ends) {
        if last.begins {
            keys.push(last.word.key);
        }
        let Some(sign) = sign_of(last) else { continue };
        let Some(before) = at.checked_sub(1).map(|at| &known[at]) else {
            continue;
        };
        if before.begins {
            let (is_key, key) = pair(before.word, sign, last.word);
            keys.extend(is_key.then_some(key));
        }
        if sign == b'.'
            && sign_of(before) == Some(b'.')
            && let Some(first) = at.checked_sub(2).map(|at| &known[at])
            && first.begins
        {
            let (is_key, key) = triple([first.word, before.word, last.word]);
            keys.extend(is_key.then_some(key));
        }
    }
    keys
}
