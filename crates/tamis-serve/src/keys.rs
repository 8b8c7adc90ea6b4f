//! Extracts keys from request bodies.

use crate::media::Form;
use crate::problem::Problem;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use tamis::KeyRule;

/// A key, borrowed from the body if possible.
pub(crate) type Key<'a> = Cow<'a, [u8]>;

/// How many keys are passed on together: enough to make batches efficient, and no more, because a key takes more memory
/// than a line end in the body.
const BLOCK: usize = 4096;
/// More values than any filter's keys have.
const MOST_VALUES: usize = 256;

impl Form {
    /// Passes on the keys of a body in blocks, until an error. If a filter's keys have several values, each key is an
    /// array.
    pub(crate) fn for_each_block<'b>(
        self,
        body: &'b [u8],
        rule: &KeyRule,
        each: &mut dyn FnMut(&[Key<'b>]) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut blocks = Blocks {
            keys: Vec::new(),
            each,
        };
        match (self, rule.values()) {
            (Self::Lines, 1) => {
                let mut start = 0;
                for end in memchr::memchr_iter(b'\n', body) {
                    blocks.push(line(&body[start..end]))?;
                    start = end + 1;
                }
                if start < body.len() {
                    blocks.push(line(&body[start..]))?;
                }
            }
            (Self::Lines, values) => {
                return Err(Problem::bad_request(format!(
                    "a key of this filter is {values} values: send JSON, an array of arrays of \
                     strings"
                )));
            }
            (Self::Json, _) => read_json(body, rule, &mut blocks)?,
        }
        blocks.flush()
    }

    /// Refuses a malformed body before any of its keys is used.
    pub(crate) fn check(self, body: &[u8], rule: &KeyRule) -> Result<(), Problem> {
        let looked_at = match self {
            // Any bytes are valid lines.
            Self::Lines => &[],
            Self::Json => body,
        };
        self.for_each_block(looked_at, rule, &mut |_| Ok(()))
    }
}

/// The key of a line, without its carriage return.
fn line(line: &[u8]) -> Key<'_> {
    Cow::Borrowed(line.strip_suffix(b"\r").unwrap_or(line))
}

/// Collects keys until there are enough.
struct Blocks<'b, 'f> {
    keys: Vec<Key<'b>>,
    each: &'f mut dyn FnMut(&[Key<'b>]) -> Result<(), Problem>,
}

impl<'b> Blocks<'b, '_> {
    fn push(&mut self, key: Key<'b>) -> Result<(), Problem> {
        self.keys.push(key);
        match self.keys.len() {
            BLOCK => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Problem> {
        if !self.keys.is_empty() {
            (self.each)(&self.keys)?;
            self.keys.clear();
        }
        Ok(())
    }
}

fn read_json<'b>(
    body: &'b [u8],
    rule: &KeyRule,
    blocks: &mut Blocks<'b, '_>,
) -> Result<(), Problem> {
    let mut refused = None;
    let array = Array {
        rule,
        blocks,
        refused: &mut refused,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = array.deserialize(&mut json).and_then(|()| json.end());
    match (refused, read) {
        (Some(problem), _) => Err(problem),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(Problem::bad_request(format!(
            "expected a JSON array of strings: {error}"
        ))),
    }
}

/// A JSON array of keys, passed on as they are read. Strings without escapes are borrowed.
struct Array<'a, 'b, 'f> {
    rule: &'a KeyRule,
    blocks: &'a mut Blocks<'b, 'f>,
    /// Why reading stopped, if not due to invalid JSON.
    refused: &'a mut Option<Problem>,
}

impl<'b> DeserializeSeed<'b> for Array<'_, 'b, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'b>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'b> Visitor<'b> for Array<'_, 'b, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings")
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut array: A) -> Result<(), A::Error> {
        let mut at = 0;
        while let Some(item) = array.next_element()? {
            let key = key_of(item, self.rule, at);
            if let Err(problem) = key.and_then(|key| self.blocks.push(key)) {
                *self.refused = Some(problem);
                return Err(A::Error::custom("refused"));
            }
            at += 1;
        }
        Ok(())
    }
}

fn key_of<'b>(item: Item<'b>, rule: &KeyRule, at: usize) -> Result<Key<'b>, Problem> {
    match (item, rule.values()) {
        (Item::Text(Cow::Borrowed(text)), 1) => Ok(Cow::Borrowed(text.as_bytes())),
        (Item::Text(Cow::Owned(text)), 1) => Ok(Cow::Owned(text.into_bytes())),
        (Item::Texts(texts), values) if values > 1 && texts.len() == values => {
            let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            Ok(Cow::Owned(rule.join(&texts)))
        }
        (_, 1) => Err(Problem::bad_request(format!(
            "key {at}: a key of this filter is one string, got an array"
        ))),
        (_, values) => Err(Problem::bad_request(format!(
            "key {at}: a key of this filter is an array of {values} strings"
        ))),
    }
}

/// The possible items of the array.
enum Item<'a> {
    Text(Cow<'a, str>),
    Texts(Vec<Cow<'a, str>>),
}

impl<'de> Deserialize<'de> for Item<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Item<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string (the number 1 and the text \"1\" are different keys)")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Item<'de>, E> {
                Ok(Item::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Item<'de>, E> {
                Ok(Item::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Item<'de>, A::Error> {
                let mut texts = Vec::new();
                while let Some(Text(text)) = array.next_element()? {
                    if texts.len() == MOST_VALUES {
                        let most = format_args!("a key of more than {MOST_VALUES} values");
                        return Err(A::Error::custom(most));
                    }
                    texts.push(text);
                }
                Ok(Item::Texts(texts))
            }
        }
        from.deserialize_any(One)
    }
}

/// A string and nothing else.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Item::deserialize(from)? {
            Item::Text(text) => Ok(Self(text)),
            Item::Texts(_) => Err(D::Error::custom("an array within an array within an array")),
        }
    }
}
