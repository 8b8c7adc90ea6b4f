//! Which parts of a file's records are its keys in an index: `-k KEY`, in the [notation](super::notation) of all
//! commands.
//!
//! | spec | a record's keys | a query finds |
//! | --- | --- | --- |
//! | `line` | the line | lines that equal it |
//! | `word` | its words and some phrases, see [`words`] | lines that contain it, with word borders at both ends |
//! | `trigram` | every three consecutive bytes, ignoring case | lines that contain it |
//! | `csv:A,B` `csv(;):` `tsv:` `field:1` `jsonl:/a,/b` `parquet:` | the values' text; of several, all together | rows with these values |
//! | `prefix:N:SPEC` | the first N bytes | values that start with it; a query needs at least N bytes |
//!
//! Values are text, so one query suits all formats: 42 finds the number and the string.

use super::notation::{FORMS, Pieces};
use super::text::{KeysOfText, TextKeys};
use super::{
    Columns, KeyMaker, Part, Pointer, RecordRule, Separator, append_value, columns, join, json,
    words,
};
use memchr::memmem::Finder;
use std::fmt;
use std::str::FromStr;
use tamis::{Hash, Hasher};

/// Which parts of a file's records are its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// As written by the user; its name in an index.
    text: String,
    /// Keep only this many bytes of each key.
    prefix: Option<usize>,
    source: Source,
}

/// The source of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Words of lines.
    Words,
    /// Every three consecutive bytes of lines.
    Trigrams,
    /// One key per record.
    Record(RecordRule),
    /// The names of columns.
    Parquet(Vec<String>),
}

impl FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prefix, rest) = match text.strip_prefix("prefix:") {
            None => (None, text),
            Some(rest) => {
                let (length, rest) = rest.split_once(':').unwrap_or((rest, ""));
                match length.parse() {
                    Ok(length @ 1..) => (Some(length), rest),
                    _ => {
                        return Err(format!(
                            "'{text}': expected prefix:N:SPEC with a number of bytes N, \
                             for example prefix:8:csv:id"
                        ));
                    }
                }
            }
        };
        let spec = Self {
            text: text.to_owned(),
            prefix,
            source: Source::parse(rest)?,
        };
        if prefix.is_some() && spec.parts() > 1 {
            return Err(format!("'{text}': a prefix needs a single column"));
        }
        if prefix.is_some() && spec.source == Source::Trigrams {
            return Err(format!("'{text}': trigrams have no prefixes; see trigram"));
        }
        Ok(spec)
    }
}

impl Source {
    fn parse(text: &str) -> Result<Self, String> {
        let record = |part| {
            Self::Record(RecordRule {
                part,
                ..RecordRule::LINE
            })
        };
        let columns = |list: &str, separator| {
            // Names are in a header row. Numbers need none, so with numbers no row is treated as a header.
            let columns = Columns::parse_any(list)?;
            Ok(record(Part::Columns { separator, columns }))
        };
        let pieces = Pieces::of(text)?;
        match (pieces.name, pieces.byte, pieces.list) {
            ("line", None, None) => Ok(Self::Record(RecordRule::LINE)),
            ("word", None, None) => Ok(Self::Words),
            ("trigram", None, None) => Ok(Self::Trigrams),
            ("csv", _, Some(list)) => columns(list, pieces.separator()?),
            ("tsv", None, Some(list)) => columns(list, Separator::Tab),
            ("field", None, Some(list)) => {
                let (separator, columns) = (Separator::Blanks, Columns::parse(list, false)?);
                Ok(record(Part::Columns { separator, columns }))
            }
            ("jsonl", None, Some(list)) => Ok(record(Part::JsonText(Pointer::parse_list(list)?))),
            ("line", Some(_), None) => Err(format!(
                "'{text}': an index has lines, which end with a line feed: expected line"
            )),
            ("parquet", None, Some(_)) if cfg!(not(feature = "parquet")) => {
                Err("this build has no Parquet: it lacks the feature `parquet`".into())
            }
            ("parquet", None, Some(list)) => {
                let names = columns::names(list)?.into_iter().map(|(name, _)| name);
                let names: Vec<String> = names.collect();
                if names.iter().any(String::is_empty) {
                    Err(format!("'{list}': a column name is empty"))
                } else {
                    Ok(Self::Parquet(names))
                }
            }
            _ => Err(format!(
                "unknown key '{text}': expected word, trigram, {FORMS}, parquet:COLUMN,... or \
                 prefix:BYTES: before one of them"
            )),
        }
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KeySpec {
    /// Whether only the beginnings of keys are kept.
    pub const fn is_prefix(&self) -> bool {
        self.prefix.is_some()
    }

    /// The values of a key, as many as the spec has columns.
    pub fn values(&self, asked: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let parts = self.parts();
        if parts == 1 {
            return Ok(vec![asked.to_vec()]);
        }
        let values = columns::values(asked, Separator::COMMA);
        if values.len() == parts {
            Ok(values)
        } else {
            Err(format!(
                "'{}': {} has {parts} values, got {}; write them as a row of CSV",
                String::from_utf8_lossy(asked),
                self.text,
                values.len()
            ))
        }
    }

    /// The source of its keys.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// If keys are found in text as a whole, which ones; then [`KeysOfText`] finds them.
    pub const fn text_keys(&self) -> Option<TextKeys> {
        match (&self.source, self.prefix) {
            (Source::Words, None) => Some(TextKeys::Words),
            (Source::Trigrams, None) => Some(TextKeys::Trigrams),
            _ => None,
        }
    }

    /// How to find records in a file that isn't Parquet.
    pub fn rule(&self) -> &RecordRule {
        match &self.source {
            Source::Record(rule) => rule,
            Source::Words | Source::Trigrams | Source::Parquet(_) => &RecordRule::LINE,
        }
    }

    /// The number of values in a key.
    fn parts(&self) -> usize {
        match &self.source {
            Source::Words | Source::Trigrams => 1,
            Source::Parquet(columns) => columns.len(),
            Source::Record(rule) => rule.part.values(),
        }
    }

    /// The part of a key that an index keeps; `None` if no query could ask for the key.
    fn kept<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        match self.prefix {
            None => Some(key),
            Some(length) => key.get(..length),
        }
    }

    /// Makes a query from the user's text. The values of several columns are written as a row of CSV.
    pub fn query(&self, asked: &[u8]) -> Result<Query<'_>, String> {
        let shown = || String::from_utf8_lossy(asked).into_owned();
        let values = self.values(asked)?;
        let mut whole = Vec::new();
        join(&values, &mut whole);
        let Some(kept) = self.kept(&whole) else {
            return Err(format!(
                "'{}': {} needs at least {} bytes, got {}",
                shown(),
                self.text,
                self.prefix.unwrap_or(0),
                whole.len()
            ));
        };
        let needed = match self.text_keys() {
            Some(keys) => {
                let mut of_text = KeysOfText::new(keys);
                of_text.add(asked);
                Needed::OfText(of_text.take())
            }
            None if self.source == Source::Words && !words::is_word(asked) => {
                return Err(format!("'{}': {} asks for one word", shown(), self.text));
            }
            None => Needed::Key(kept.to_vec()),
        };
        if matches!(&needed, Needed::OfText(keys) if keys.is_empty()) {
            let what = match self.source {
                Source::Trigrams => "is too short for trigrams: expected 3 bytes or more",
                _ => "has no word in it to look for",
            };
            return Err(format!("'{}' {what}", shown()));
        }
        let longest = values.iter().max_by_key(|value| value.len());
        let finder = longest.map(|value| Finder::new(value).into_owned());
        Ok(Query {
            spec: self,
            finder,
            whole,
            needed,
        })
    }
}

/// Why a record has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It lacks the columns, or the values of the pointers.
    Value,
    /// It isn't valid in its format, so its key is unknown; says what it is instead.
    Malformed(&'static str),
}

/// Finds the keys of records.
pub struct Keys<'s> {
    spec: &'s KeySpec,
    maker: KeyMaker<'s>,
    joined: Vec<u8>,
}

impl<'s> Keys<'s> {
    /// Finds keys of this spec.
    pub fn new(spec: &'s KeySpec) -> Self {
        Self {
            spec,
            maker: KeyMaker::new(spec.rule()),
            joined: Vec::new(),
        }
    }

    /// Calls `each` with every key of a record with this content; not for [keys of text](KeySpec::text_keys).
    #[inline]
    pub fn each(
        &mut self,
        content: &[u8],
        columns: &[usize],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Missing> {
        let spec = self.spec;
        match (&spec.source, spec.prefix) {
            (Source::Words | Source::Trigrams, None) => {}
            (Source::Words, Some(_)) => words::for_each_word(content, |start, end, _| {
                let word = &content[start..end];
                spec.kept(word).into_iter().for_each(&mut each);
            }),
            _ => {
                let (key, made) = self.maker.key(content, columns);
                if made.is_ok() {
                    spec.kept(key).into_iter().for_each(each);
                }
                if self.maker.ends_in_quotes() {
                    return Err(Missing::Malformed("a quote is never closed"));
                }
                if made.is_err() {
                    return Err(match &spec.rule().part {
                        Part::JsonText(pointers) if json::is_malformed(content, pointers) => {
                            Missing::Malformed("not strict JSON")
                        }
                        _ => Missing::Value,
                    });
                }
            }
        }
        Ok(())
    }

    /// The key of a row of Parquet with these values, if there are enough of them.
    pub(crate) fn of_values<'v>(
        &mut self,
        values: impl Iterator<Item = &'v [u8]>,
        of: usize,
    ) -> Option<&[u8]> {
        self.joined.clear();
        let mut joined = 0;
        for value in values {
            append_value(value, of, tamis::KeyRule::EXACT, &mut self.joined);
            joined += 1;
        }
        if joined < of {
            return None;
        }
        self.spec.kept(&self.joined)
    }
}

/// A query to an index.
#[derive(Debug)]
pub struct Query<'s> {
    spec: &'s KeySpec,
    /// Finds the longest of its values. Built once, because that takes longer than searching a line.
    finder: Option<Finder<'static>>,
    /// The values as one key.
    whole: Vec<u8>,
    needed: Needed,
}

/// The keys that a file must have, all of them, to match.
#[derive(Debug)]
enum Needed {
    Key(Vec<u8>),
    OfText(Vec<Hash>),
}

impl Query<'_> {
    /// The keys that a file must have, all of them, to match.
    pub fn hashes(&self, hasher: &Hasher) -> Vec<Hash> {
        match &self.needed {
            Needed::Key(key) => vec![hasher.hash(key)],
            Needed::OfText(keys) => keys.clone(),
        }
    }

    /// Whether records may contain a match: a quick check for bytes that every match contains.
    pub fn can_be_in(&self, records: &[u8]) -> bool {
        let Some(finder) = &self.finder else {
            return true;
        };
        let rule = self.spec.rule();
        let written_otherwise = match &rule.part {
            // Quotes may be anywhere in a value, and JSON can spell any character in other ways.
            Part::Columns {
                separator: Separator::Quoted(_),
                ..
            } => memchr::memchr(b'"', records).is_some(),
            Part::JsonText(_) => memchr::memchr(b'\\', records).is_some(),
            _ => false,
        };
        written_otherwise || finder.find(records).is_some()
    }

    /// Whether a record with this content matches.
    pub fn matches(&self, keys: &mut Keys, content: &[u8], columns: &[usize]) -> bool {
        match (&self.spec.source, self.spec.prefix) {
            (Source::Words, None) => words::has_whole(content, &self.whole),
            (Source::Trigrams, _) => self
                .finder
                .as_ref()
                .is_some_and(|f| f.find(content).is_some()),
            (Source::Words, Some(_)) => {
                let mut found = false;
                words::for_each_word(content, |start, end, _| {
                    found |= content[start..end].starts_with(&self.whole);
                });
                found
            }
            _ => {
                let (key, made) = keys.maker.key(content, columns);
                made.is_ok() && self.is(key)
            }
        }
    }

    /// Whether a row of Parquet matches.
    pub fn matches_values<V: AsRef<[u8]>>(&self, keys: &mut Keys, values: &[V]) -> bool {
        keys.joined.clear();
        join(values, &mut keys.joined);
        self.is(&keys.joined)
    }

    fn is(&self, key: &[u8]) -> bool {
        match self.spec.prefix {
            None => key == self.whole,
            Some(_) => key.starts_with(&self.whole),
        }
    }
}
