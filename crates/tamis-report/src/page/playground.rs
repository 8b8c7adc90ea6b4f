//! A tiny filter, made from the keys in a request and dropped after the answer. The page draws
//! exactly what the library has set.

use crate::explain::Explained;
use crate::human;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use tamis::internals::raw::{
    BlockedShape, BloomShape, Cell, CountingShape, CuckooEntry, CuckooShape, Look, Shape, Word as _,
};
use tamis::{AnyFilter, Hasher, Plan};

/// Limits of a request.
const MAX_BODY: usize = 256 << 10;
const MAX_KEYS: usize = 1000;
const MAX_KEY_BYTES: usize = 1000;
const MAX_BITS: u64 = 4096;
const MAX_LINES: u64 = 8;
const MAX_SLOTS: u64 = 512;
/// Bits or counters per line.
const LINE_CELLS: u64 = 512;
/// The most keys without a free slot, because each of them takes a long search.
const MAX_REFUSED: usize = 32;
/// Keys to try when looking for a false "yes".
const MAX_TRIES: u32 = 100_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    shape: Asked,
    /// The keys of the first filter; `b` has those of the second.
    a: Vec<String>,
    #[serde(default)]
    b: Vec<String>,
    /// Keys to remove from the first filter.
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    /// Whether to look for a key that isn't in the first filter and gets "yes".
    #[serde(default)]
    find: bool,
    /// The index of a key of the first filter; shows the filter before that key was added.
    trace: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Asked {
    Bloom { bits: u64, hashes: u32 },
    Blocked(InLines),
    Counting(InLines),
    Cuckoo { slots: u64, window: u32, width: u32 },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct InLines {
    lines: u64,
    hashes_per_line: u32,
    lines_per_key: u32,
}

/// The answer of `POST /v1/playground` to a request, which is a JSON object.
///
/// ```
/// let asked = br#"{"shape": {"kind": "bloom", "bits": 16, "hashes": 3}, "a": ["apple"], "ask": ["pear"]}"#;
/// let told = tamis_report::page::playground(asked)?;
/// assert_eq!(told["asked"][0]["a"], "no");
/// # Ok::<(), String>(())
/// ```
pub fn playground(request: &[u8]) -> Result<Value, String> {
    if request.len() > MAX_BODY {
        return Err(format!(
            "body: expected at most {MAX_BODY} bytes, got {}",
            request.len()
        ));
    }
    let request = serde_json::from_slice(request);
    play(&request.map_err(|error| format!("expected a JSON object: {error}"))?)
}

impl Asked {
    fn shape(self) -> Result<Shape, String> {
        let in_lines = |it: InLines| (it.lines, it.hashes_per_line, it.lines_per_key);
        let (what, size, most, shape) = match self {
            Self::Bloom { bits, hashes } => {
                let shape = BloomShape::new(bits, hashes).map(Shape::from);
                ("bits", bits, MAX_BITS, shape)
            }
            Self::Blocked(it) => {
                let (lines, hashes, per_key) = in_lines(it);
                let shape = BlockedShape::new(lines, hashes, per_key).map(Shape::from);
                ("lines", lines, MAX_LINES, shape)
            }
            Self::Counting(it) => {
                let (lines, hashes, per_key) = in_lines(it);
                let shape = CountingShape::new(lines, hashes, per_key).map(Shape::from);
                ("lines", lines, MAX_LINES, shape)
            }
            Self::Cuckoo {
                slots,
                window,
                width,
            } => {
                let shape = CuckooShape::new(slots, window, width).map(Shape::from);
                ("slots", slots, MAX_SLOTS, shape)
            }
        };
        if size > most {
            return Err(format!("{what}: expected at most {most}, got {size}"));
        }
        shape.map_err(|error| error.to_string())
    }
}

fn play(request: &Request) -> Result<Value, String> {
    let shape = request.shape.shape()?;
    for (name, keys) in [
        ("a", &request.a),
        ("b", &request.b),
        ("removed", &request.removed),
        ("ask", &request.ask),
    ] {
        if keys.len() > MAX_KEYS {
            return Err(format!(
                "{name}: expected at most {MAX_KEYS} keys, got {}",
                keys.len()
            ));
        }
        if let Some(key) = keys.iter().find(|key| key.len() > MAX_KEY_BYTES) {
            let got = key.len();
            return Err(format!(
                "{name}: expected keys of at most {MAX_KEY_BYTES} bytes, got {got}"
            ));
        }
    }
    let mut a = Toy::of(shape, &request.a, request.trace)?;
    let removed = a.remove(&request.removed)?;
    let b = Toy::of(shape, &request.b, None)?;
    let union = a.combined(&b, AnyFilter::union_with);
    let intersection = a.combined(&b, AnyFilter::intersect_with);
    let asked: Vec<Value> = request
        .ask
        .iter()
        .map(|key| {
            let (in_a, in_b) = (a.holds(key), b.holds(key));
            let of = |filter: &Result<AnyFilter, String>, truth| match filter {
                Ok(filter) => verdict(filter.contains(key), truth),
                Err(_) => "unknown",
            };
            let mut told = about(&a.filter, key);
            told["explained"] = json!(explained(&a.filter, key));
            told["a"] = json!(verdict(a.filter.contains(key), in_a));
            told["b"] = json!(verdict(b.filter.contains(key), in_b));
            told["union"] = json!(of(&union, in_a || in_b));
            told["intersection"] = json!(of(&intersection, in_a && in_b));
            told
        })
        .collect();
    let combined = |filter: &Result<AnyFilter, String>| match filter {
        Ok(filter) => json!({ "cells": cells(filter) }),
        Err(why) => json!({ "error": why }),
    };
    Ok(json!({
        "kind": shape.kind().name(),
        "bytes": shape.body_len(),
        "a": a.tell(),
        "b": b.tell(),
        "removed": removed,
        "union": combined(&union),
        "intersection": combined(&intersection),
        "asked": asked,
        "found": request.find.then(|| a.find_false_yes()),
        "before": a.before,
    }))
}

/// A filter, and the keys that were really added.
struct Toy {
    shape: Shape,
    filter: AnyFilter,
    copies: HashMap<String, u64>,
    keys: Vec<Value>,
    /// The cells before the traced key was added.
    before: Option<Value>,
}

impl Toy {
    fn of(shape: Shape, keys: &[String], trace: Option<usize>) -> Result<Self, String> {
        let plan = Plan::of(shape, keys.len().max(1) as u64);
        let filter = AnyFilter::from_plan(&plan, Hasher::default()).map_err(|e| e.to_string())?;
        let mut toy = Self {
            shape,
            filter,
            copies: HashMap::new(),
            keys: Vec::new(),
            before: None,
        };
        let mut refused = 0;
        for (n, key) in keys.iter().enumerate() {
            if trace == Some(n) {
                toy.before = Some(cells(&toy.filter));
            }
            let before = toy.slots();
            let mut told = about(&toy.filter, key);
            match toy.filter.insert(key) {
                Ok(new) => {
                    let was_there = toy.holds(key);
                    *toy.copies.entry(key.clone()).or_default() += 1;
                    told["answer"] = json!(verdict(!new, was_there));
                    if let (Shape::Cuckoo(shape), Some(before)) = (shape, before) {
                        let after = toy.slots().unwrap_or_default();
                        let key = shape.entry(Hasher::default().hash(key.as_bytes()));
                        told["moves"] = json!(moves(key, &before, &after));
                    }
                }
                Err(refusal) => {
                    told["refused"] = json!(refusal.to_string());
                    refused += 1;
                }
            }
            if refused > MAX_REFUSED {
                return Err(format!(
                    "keys: expected at most {MAX_REFUSED} that find no slot, got more\n\
                     hint: make the filter larger, or take fewer keys"
                ));
            }
            toy.keys.push(told);
        }
        Ok(toy)
    }

    fn holds(&self, key: &str) -> bool {
        self.copies.get(key).is_some_and(|copies| *copies > 0)
    }

    /// Removes keys unconditionally; returns the results.
    fn remove(&mut self, keys: &[String]) -> Result<Vec<Value>, String> {
        let mut told = Vec::new();
        for key in keys {
            let held = self.holds(key);
            let found = self.filter.remove(key).map_err(|e| e.to_string())?;
            if let Some(copies) = self.copies.get_mut(key) {
                *copies = copies.saturating_sub(1);
            }
            let mut about = about(&self.filter, key);
            about["answer"] = json!(verdict(found, held));
            told.push(about);
        }
        Ok(told)
    }

    fn combined(
        &self,
        other: &Self,
        combine: impl Fn(&mut AnyFilter, &AnyFilter) -> Result<(), tamis::Error>,
    ) -> Result<AnyFilter, String> {
        let mut filter = self.filter.duplicate().map_err(|e| e.to_string())?;
        combine(&mut filter, &other.filter).map_err(|e| e.to_string())?;
        Ok(filter)
    }

    /// The entries of a cuckoo filter's slots.
    fn slots(&self) -> Option<Vec<Option<CuckooEntry>>> {
        let Shape::Cuckoo(shape) = self.shape else {
            return None;
        };
        let body = self.filter.body();
        let words = body.first()?;
        Some(
            (0..shape.slots())
                .map(|slot| shape.entry_in(words, slot))
                .collect(),
        )
    }

    fn tell(&self) -> Value {
        let present = self.keys.iter().filter_map(|told| told["key"].as_str());
        let wrong = present.filter(|key| self.holds(key) && !self.filter.contains(key));
        json!({
            "cells": cells(&self.filter),
            "keys": self.keys,
            "rate": self.filter.rate_now(),
            "rate_text": human::rate(self.filter.rate_now()),
            // Only keys that were removed without having been added can cause these.
            "false_no": wrong.collect::<Vec<_>>(),
        })
    }

    fn find_false_yes(&self) -> Value {
        let is_wrong = |key: &String| self.filter.contains(key) && !self.holds(key);
        let found = (1..=MAX_TRIES)
            .map(|n| (n, format!("stranger {n}")))
            .find(|(_, key)| is_wrong(key));
        match found {
            Some((tried, key)) => json!({ "key": key, "tried": tried }),
            None => json!({ "key": null, "tried": MAX_TRIES }),
        }
    }
}

const fn verdict(answer: bool, truth: bool) -> &'static str {
    match (answer, truth) {
        (true, true) => "yes",
        (false, false) => "no",
        (true, false) => "false yes",
        (false, true) => "false no",
    }
}

/// The output of `tamis explain`.
fn explained(filter: &AnyFilter, key: &str) -> String {
    let key = key.as_bytes();
    let hash = filter.hasher().hash(key);
    Explained::of(filter, key, hash, filter.rate_now()).describe()
}

/// A key and the positions of its bits or counters, numbered through all lines; for a cuckoo
/// filter, its fingerprint, and the slots of its first and its second place.
fn about(filter: &AnyFilter, key: &str) -> Value {
    let hash = filter.hasher().hash(key.as_bytes());
    let mut told = json!({ "key": key, "hash": format!("{:032x}", hash.as_u128()) });
    let number = |cell: &Cell| cell.line.unwrap_or(0) * LINE_CELLS + cell.at;
    told["at"] = match filter.explain(hash).looks.first() {
        Some(Look::Cells { cells, .. }) => cells.iter().map(number).collect(),
        Some(Look::Slots {
            fingerprint,
            places,
        }) => {
            told["fingerprint"] = json!(fingerprint);
            places.iter().flatten().map(|slot| slot.at).collect()
        }
        _ => Value::Null,
    };
    told
}

/// The contents of the filter: bits, counters, or the slots of a cuckoo filter as fingerprint and
/// place.
fn cells(filter: &AnyFilter) -> Value {
    let body = filter.body();
    let words = body.first().copied().unwrap_or_default();
    let bit = |n: u64| words[(n / 64) as usize].get() >> (n % 64) & 1;
    let counter = |n: u64| words[(n / 16) as usize].get() >> (n % 16 * 4) & 15;
    match filter.shape() {
        Shape::Bloom(shape) => json!((0..shape.bits()).map(bit).collect::<Vec<_>>()),
        Shape::Blocked(shape) => json!((0..shape.lines() * 512).map(bit).collect::<Vec<_>>()),
        Shape::Counting(shape) => json!((0..shape.lines() * 512).map(counter).collect::<Vec<_>>()),
        Shape::Cuckoo(shape) => json!(
            (0..shape.slots())
                .map(|slot| shape.entry_in(words, slot).map(|entry| {
                    json!({ "fingerprint": entry.fingerprint(), "places": entry.places() })
                }))
                .collect::<Vec<_>>()
        ),
        _ => Value::Null,
    }
}

/// The entries that an insertion into a cuckoo filter moved, the new key first: from which slot
/// (none for the new one) to which. An entry that was moved twice appears with its final slot.
fn moves(
    new: CuckooEntry,
    before: &[Option<CuckooEntry>],
    after: &[Option<CuckooEntry>],
) -> Vec<Value> {
    let same = |a: CuckooEntry, b: CuckooEntry| {
        let sorted = |entry: CuckooEntry| {
            let [a, b] = entry.places();
            (entry.fingerprint(), a.min(b), a.max(b))
        };
        sorted(a) == sorted(b)
    };
    let mut changed: Vec<usize> = (0..after.len())
        .filter(|&slot| before[slot] != after[slot])
        .collect();
    let mut told = Vec::new();
    let mut start = Some((new, None));
    while let Some(mut homeless) = start.take() {
        loop {
            let (entry, from) = homeless;
            let is_its = |&slot: &usize| after[slot].is_some_and(|there| same(there, entry));
            let Some(nth) = changed.iter().position(is_its) else {
                break;
            };
            let to = changed.remove(nth);
            told.push(json!({ "fingerprint": entry.fingerprint(), "from": from, "to": to }));
            match before[to] {
                Some(entry) => homeless = (entry, Some(to)),
                None => break,
            }
        }
        // The remaining ones have swapped places among themselves.
        start = changed
            .first()
            .and_then(|&slot| before[slot].map(|entry| (entry, Some(slot))));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(shape: Value, keys: usize) -> Request {
        let keys = |name| (0..keys).map(|n| format!("{name} {n}")).collect::<Vec<_>>();
        serde_json::from_value(json!({
            "shape": shape, "a": keys("a"), "b": keys("b"), "ask": keys("a"), "find": true,
        }))
        .unwrap()
    }

    /// Repeating the moves by hand turns the table before into the table after.
    #[test]
    fn moves_explain_every_change_of_a_cuckoo_filter() {
        let (mut kicks, mut refused) = (0, 0);
        for (slots, window, width) in [(32, 2, 8), (64, 3, 6), (40, 4, 4), (300, 2, 12)] {
            let shape = CuckooShape::new(slots, window, width).unwrap();
            let mut toy = Toy::of(shape.into(), &[], None).unwrap();
            for n in 0..slots + 20 {
                let key = format!("key {n}");
                let before = toy.slots().unwrap();
                if toy.filter.insert(&key).is_err() {
                    assert_eq!(before, toy.slots().unwrap());
                    refused += 1;
                    continue;
                }
                let after = toy.slots().unwrap();
                let entry = shape.entry(Hasher::default().hash(key.as_bytes()));
                let moves = moves(entry, &before, &after);
                let mut by_hand = before.clone();
                for step in &moves {
                    if let Some(from) = step["from"].as_u64() {
                        by_hand[from as usize] = None;
                        kicks += 1;
                    }
                }
                for step in &moves {
                    let to = step["to"].as_u64().unwrap() as usize;
                    assert!(by_hand[to].is_none() || before[to] != after[to]);
                    by_hand[to] = after[to];
                    let there = after[to].unwrap().fingerprint();
                    assert_eq!(Some(there), step["fingerprint"].as_u64());
                }
                assert_eq!(by_hand, after, "{slots} slots, key {n}");
                assert!(moves[0]["from"].is_null());
            }
        }
        assert!(
            kicks > 50 && refused > 50,
            "{kicks} moved, {refused} refused"
        );
    }

    /// Added keys are never denied, and false "yes" answers are marked.
    #[test]
    fn answers_are_told_from_the_truth() {
        for shape in [
            json!({ "kind": "bloom", "bits": 64, "hashes": 3 }),
            json!({ "kind": "blocked", "lines": 2, "hashes_per_line": 2, "lines_per_key": 1 }),
            json!({ "kind": "counting", "lines": 2, "hashes_per_line": 1, "lines_per_key": 2 }),
            json!({ "kind": "cuckoo", "slots": 80, "window": 2, "width": 6 }),
        ] {
            let told = play(&request(shape.clone(), 20)).unwrap();
            for asked in told["asked"].as_array().unwrap() {
                assert_eq!(
                    (&asked["a"], &asked["union"]),
                    (&json!("yes"), &json!("yes")),
                    "{shape}"
                );
            }
            let found = &told["found"]["key"];
            let mut again = request(shape.clone(), 20);
            again.ask = vec![found.as_str().unwrap().into()];
            assert_eq!(
                play(&again).unwrap()["asked"][0]["a"],
                "false yes",
                "{shape}"
            );
        }
    }

    /// The classic mistake: removing a key that was never added removes another one.
    #[test]
    fn a_false_no_needs_the_removal_of_a_stranger() {
        let shape =
            json!({ "kind": "counting", "lines": 1, "hashes_per_line": 2, "lines_per_key": 1 });
        let mut request = request(shape, 60);
        let told = play(&request).unwrap();
        assert_eq!(told["a"]["false_no"], json!([]));
        request.removed = vec![told["found"]["key"].as_str().unwrap().into()];
        let told = play(&request).unwrap();
        assert_eq!(told["removed"][0]["answer"], "false yes");
        assert_ne!(told["a"]["false_no"], json!([]));
        // Removing keys that were added causes no false "no".
        request.removed = request.a[..30].to_vec();
        assert_eq!(play(&request).unwrap()["a"]["false_no"], json!([]));
    }

    /// What the filter held before a key, plus what that key set, is what it holds after.
    #[test]
    fn a_key_can_be_traced() {
        let mut request = request(json!({ "kind": "bloom", "bits": 16, "hashes": 3 }), 4);
        assert!(play(&request).unwrap()["before"].is_null());
        request.trace = Some(3);
        let told = play(&request).unwrap();
        let mut cells = told["before"].clone();
        assert_ne!(cells, told["a"]["cells"]);
        for at in told["a"]["keys"][3]["at"].as_array().unwrap() {
            cells[at.as_u64().unwrap() as usize] = json!(1);
        }
        assert_eq!(cells, told["a"]["cells"]);
        request.trace = Some(4);
        assert!(play(&request).unwrap()["before"].is_null());
    }

    #[test]
    fn too_much_is_refused() {
        let bloom = |bits: u64| json!({ "kind": "bloom", "bits": bits, "hashes": 3 });
        for (shape, keys, expected) in [
            (bloom(4097), 1, "bits: expected at most 4096, got 4097"),
            (bloom(0), 1, "bits"),
            (bloom(64), 1001, "a: expected at most 1000 keys, got 1001"),
            (
                json!({ "kind": "cuckoo", "slots": 1, "window": 2, "width": 8 }),
                1,
                "slots",
            ),
            (
                json!({ "kind": "blocked", "lines": 9, "hashes_per_line": 1, "lines_per_key": 1 }),
                1,
                "at most 8",
            ),
        ] {
            let error = play(&request(shape, keys)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let small = json!({ "kind": "cuckoo", "slots": 16, "window": 2, "width": 8 });
        assert!(play(&request(small.clone(), 40)).is_ok());
        let error = play(&request(small, 100)).unwrap_err();
        assert!(error.contains("find no slot"), "{error}");
        let mut long = request(bloom(64), 1);
        long.ask = vec!["x".repeat(1001)];
        assert!(play(&long).unwrap_err().contains("1000 bytes"));
        let mut unable = request(bloom(64), 1);
        unable.removed = vec!["a 0".into()];
        assert!(play(&unable).is_err());
    }
}
