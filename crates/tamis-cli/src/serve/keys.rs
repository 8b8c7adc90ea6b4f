//! Keys out of a request's body, and answers into a response's.

use super::problem::Problem;
use crate::engine::records::Layout;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A key, in the body where it stands there as it is.
pub(super) type Key<'a> = Cow<'a, [u8]>;

/// How keys come and answers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One key a line.
    Lines,
    /// An array of strings.
    Json,
}

impl Form {
    /// The form of a request's body, as its Content-Type says.
    pub(super) fn of_request(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(value) = headers.get(header::CONTENT_TYPE) else {
            return Ok(Self::Lines);
        };
        let bytes = value.as_bytes();
        let name = bytes.split(|&b| b == b';').next().unwrap_or_default();
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"application/json" => Ok(Self::Json),
            // The third is what curl says of `--data-binary @keys.txt`.
            b"text/plain" | b"application/octet-stream" | b"application/x-www-form-urlencoded" => {
                Ok(Self::Lines)
            }
            other => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "Content-Type: expected application/json (an array of strings) or text/plain \
                     (one key a line), got {}",
                    String::from_utf8_lossy(other)
                ),
            )),
        }
    }

    /// The form of the answers: as Accept says, and as the request's if it leaves it open.
    pub(super) fn of_response(headers: &HeaderMap, request: Self) -> Self {
        let accept = headers.get_all(header::ACCEPT).iter();
        let names = accept.flat_map(|value| value.as_bytes().split(|&b| b == b','));
        for name in names {
            let name = name.split(|&b| b == b';').next().unwrap_or_default();
            match name.trim_ascii().to_ascii_lowercase().as_slice() {
                b"application/json" => return Self::Json,
                b"text/plain" => return Self::Lines,
                _ => {}
            }
        }
        request
    }

    /// The keys of a body. A key of a filter whose keys are several values is an array of them.
    pub(super) fn read<'b>(
        self,
        body: &'b [u8],
        rule: &tamis::KeyRule,
    ) -> Result<Vec<Key<'b>>, Problem> {
        match (self, rule.values()) {
            (Self::Lines, 1) => Ok(read_lines(body)),
            (Self::Lines, values) => Err(Problem::bad_request(format!(
                "a key of this filter is {values} values: send JSON, an array of arrays of strings"
            ))),
            (Self::Json, values) => {
                let items = serde_json::from_slice::<Items>(body).map_err(|error| {
                    Problem::bad_request(format!("expected a JSON array of strings: {error}"))
                })?;
                let key = |(at, item)| key_of(item, values, rule, at);
                items.0.into_iter().enumerate().map(key).collect()
            }
        }
    }
}

fn read_lines(body: &[u8]) -> Vec<Key<'_>> {
    let mut keys = Vec::with_capacity(body.len() / 16);
    Layout::LINES.for_each(body, |start, end| {
        keys.push(Cow::Borrowed(Layout::LINES.content(&body[start..end])));
    });
    keys
}

fn key_of<'b>(
    item: Item<'b>,
    values: usize,
    rule: &tamis::KeyRule,
    at: usize,
) -> Result<Key<'b>, Problem> {
    match (item, values) {
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

/// A JSON array, whose strings are borrowed where nothing in them is escaped.
struct Items<'a>(Vec<Item<'a>>);

enum Item<'a> {
    Text(Cow<'a, str>),
    Texts(Vec<Cow<'a, str>>),
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = array.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        from.deserialize_seq(Array)
    }
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
            Item::Texts(_) => Err(serde::de::Error::custom(
                "an array within an array within an array",
            )),
        }
    }
}
