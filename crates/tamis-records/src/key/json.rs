//! Values in a line of JSON, by JSON pointer (RFC 6901), in a form in which equal values are equal bytes.
//!
//! A string becomes its decoded text. Any other value becomes a mark that no text starts with, followed by its
//! canonical form: members sorted by name, only the last of equal names, no blanks, numbers as exact decimals (`1`,
//! `1.0` and `10e-1` are equal, and long integers keep all digits).

use super::{NoKey, columns};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Precedes values that aren't strings.
const NOT_TEXT: u8 = 0xFF;
/// The limit of the JSON parser.
const DEEPEST: usize = 128;

/// A parsed JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses `/a/b,/c`. Quote pointers that contain a comma: `"/a,b",/c`.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, String> {
        let pointers = columns::names(list)?.into_iter();
        let pointers = pointers.map(|(pointer, _)| Self::parse(&pointer));
        Self::not_too_many(pointers.collect::<Result<_, _>>()?)
    }

    /// Appends a pointer to a list.
    pub(super) fn join(some: &[Self], last: Self) -> Result<Vec<Self>, String> {
        let mut all = some.to_vec();
        all.push(last);
        Self::not_too_many(all)
    }

    fn not_too_many(pointers: Vec<Self>) -> Result<Vec<Self>, String> {
        if pointers.len() > u64::BITS as usize {
            return Err(format!(
                "{} JSON pointers: expected at most {}",
                pointers.len(),
                u64::BITS
            ));
        }
        Ok(pointers)
    }

    fn parse(pointer: &str) -> Result<Self, String> {
        let steps = pointer
            .strip_prefix('/')
            .ok_or_else(|| format!("'{pointer}': a JSON pointer starts with '/'"))?;
        Ok(Self(
            steps
                .split('/')
                .map(|step| step.replace("~1", "/").replace("~0", "~"))
                .collect(),
        ))
    }
}

/// The raw values of the pointers, if `line` is JSON and has at least one of them.
pub(crate) fn find<'j>(
    line: &'j [u8],
    pointers: &[Pointer],
) -> Result<Vec<Option<&'j RawValue>>, NoKey> {
    any(search(line, pointers).map_err(|_| NoKey::Absent)?)
}

/// The values, if at least one was found.
pub(crate) fn any(found: Vec<Option<&RawValue>>) -> Result<Vec<Option<&RawValue>>, NoKey> {
    if found.iter().all(Option::is_none) {
        Err(NoKey::Absent)
    } else {
        Ok(found)
    }
}

pub(crate) fn search<'j>(
    line: &'j [u8],
    pointers: &[Pointer],
) -> serde_json::Result<Vec<Option<&'j RawValue>>> {
    let mut found = vec![None; pointers.len()];
    let all = u64::MAX >> (u64::BITS as usize - pointers.len());
    let mut parser = serde_json::Deserializer::from_slice(line);
    let search = Search {
        pointers,
        depth: 0,
        wanted: all,
        found: &mut found,
    };
    search.deserialize(&mut parser)?;
    parser.end()?;
    Ok(found)
}

/// Whether a line begins like an object or a list but isn't strict JSON, such as `{"id": NaN}`: a more lenient reader
/// may find anything in it.
pub(crate) fn is_malformed(line: &[u8], pointers: &[Pointer]) -> bool {
    let first = line.iter().find(|byte| **byte > b' ');
    let no_text =
        |value: &RawValue| value.get().starts_with('"') && append(value, &mut Vec::new()).is_err();
    matches!(first, Some(b'{' | b'['))
        && search(line, pointers).map_or(true, |found| found.into_iter().flatten().any(no_text))
}

/// A search for pointers in one value.
struct Search<'s, 'j> {
    pointers: &'s [Pointer],
    depth: usize,
    /// The pointers that lead to or through this value, one bit each.
    wanted: u64,
    found: &'s mut [Option<&'j RawValue>],
}

impl Search<'_, '_> {
    fn wanted(&self) -> impl Iterator<Item = usize> + use<> {
        let wanted = self.wanted;
        (0..self.pointers.len()).filter(move |i| wanted >> i & 1 == 1)
    }

    /// The pointers that continue with this step.
    fn through(&self, step: &str) -> u64 {
        let goes_on = |i: &usize| {
            self.pointers[*i]
                .0
                .get(self.depth)
                .is_some_and(|s| s == step)
        };
        self.wanted()
            .filter(goes_on)
            .fold(0, |bits, i| bits | 1 << i)
    }
}

impl<'j> Search<'_, 'j> {
    fn inside(&mut self, wanted: u64) -> Search<'_, 'j> {
        Search {
            pointers: self.pointers,
            depth: self.depth + 1,
            wanted,
            found: self.found,
        }
    }
}

impl<'j> DeserializeSeed<'j> for Search<'_, 'j> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(mut self, value: D) -> Result<(), D::Error> {
        if self.wanted().all(|i| self.pointers[i].0.len() > self.depth) {
            // The last of equal names counts, so drop what an earlier one led to.
            self.wanted().for_each(|i| self.found[i] = None);
            return value.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(value)?;
        let mut deeper = 0;
        for i in self.wanted() {
            let arrived = self.pointers[i].0.len() == self.depth;
            self.found[i] = arrived.then_some(raw);
            deeper |= u64::from(!arrived) << i;
        }
        self.wanted = deeper;
        if deeper != 0 {
            let mut parser = serde_json::Deserializer::from_str(raw.get());
            parser
                .deserialize_any(self)
                .map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

impl<'j> Visitor<'j> for Search<'_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'j>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = members.next_key()? {
            match self.through(&name) {
                0 => drop(members.next_value::<IgnoredAny>()?),
                wanted => members.next_value_seed(self.inside(wanted))?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(mut self, mut elements: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let more = match self.through(&at.to_string()) {
                0 => elements.next_element::<IgnoredAny>()?.is_some(),
                wanted => elements.next_element_seed(self.inside(wanted))?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A member's name or a string value, copied only if it has escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'j>(#[serde(borrow)] Cow<'j, str>);

/// Appends a value; returns whether it is a string.
pub(crate) fn append(value: &RawValue, key: &mut Vec<u8>) -> Result<bool, NoKey> {
    if value.get().starts_with('"') {
        let Name(text) = serde_json::from_str(value.get()).map_err(|_| NoKey::Absent)?;
        key.extend_from_slice(text.as_bytes());
        return Ok(true);
    }
    key.push(NOT_TEXT);
    canonical(value, DEEPEST, key)?;
    Ok(false)
}

/// Appends a string's text, or another value as written. `null` counts as missing.
pub(crate) fn append_as_written(value: &RawValue, key: &mut Vec<u8>) -> Result<(), NoKey> {
    match value.get() {
        "null" => Err(NoKey::Absent),
        text if text.starts_with('"') => append(value, key).map(drop),
        other => {
            key.extend_from_slice(other.as_bytes());
            Ok(())
        }
    }
}

fn canonical(value: &RawValue, levels: usize, key: &mut Vec<u8>) -> Result<(), NoKey> {
    let levels = levels.checked_sub(1).ok_or(NoKey::Absent)?;
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<Name, &RawValue> =
                serde_json::from_str(json).map_err(|_| NoKey::Absent)?;
            key.push(b'{');
            for (Name(name), value) in &members {
                append_text(name, key)?;
                canonical(value, levels, key)?;
            }
            key.push(b'}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| NoKey::Absent)?;
            key.push(b'[');
            for element in &elements {
                canonical(element, levels, key)?;
                key.push(b',');
            }
            key.push(b']');
        }
        Some(b'"') => {
            let Name(text) = serde_json::from_str(json).map_err(|_| NoKey::Absent)?;
            append_text(&text, key)?;
        }
        Some(b'-' | b'0'..=b'9') => append_number(json, key),
        _ => key.extend_from_slice(json.as_bytes()), // true, false, null
    }
    Ok(())
}

fn append_text(text: &str, key: &mut Vec<u8>) -> Result<(), NoKey> {
    serde_json::to_writer(key, text).map_err(|_| NoKey::Absent)
}

/// Appends a number as a sign, digits without leading and trailing zeros, and a power of ten.
fn append_number(number: &str, key: &mut Vec<u8>) {
    let (sign, size) = number
        .strip_prefix('-')
        .map_or(("", number), |size| ("-", size));
    let (decimals, power) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
    let (whole, fraction) = decimals.split_once('.').unwrap_or((decimals, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = digits.len() - significant.len();
    let power = power
        .parse::<i64>()
        .ok()
        .and_then(|p| p.checked_add(zeros as i64 - fraction.len() as i64));
    let canonical = match (significant.trim_start_matches('0'), power) {
        ("", _) => "0".to_owned(),
        (_, None) => number.to_owned(), // a power beyond 64 bits
        (significant, Some(0)) => format!("{sign}{significant}"),
        (significant, Some(power)) => format!("{sign}{significant}e{power}"),
    };
    key.extend_from_slice(canonical.as_bytes());
}
