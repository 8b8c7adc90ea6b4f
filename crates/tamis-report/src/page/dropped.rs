//! A filter file dropped on the page. Its bytes aren't sent anywhere.

use crate::about::{self, About};
use crate::explain::Explained;
use crate::page::generations::bring_up_to_date;
use crate::page::lines::lines;
use serde::Deserialize;
use serde_json::{Value, json};
use tamis::{AnyFilter, Error, Moment, Open, SecretKey};

/// A filter in the bytes of a file.
pub struct Dropped<'a> {
    filter: AnyFilter<&'a [u8]>,
    /// Computed once, because it requires reading the whole file.
    about: About,
}

/// Why a file was not opened.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It can only be queried with its secret key.
    KeyNeeded(String),
    /// It isn't a complete filter, or the key is wrong.
    Wrong(String),
}

/// Keys to look up. A key with several values is an array.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    keys: Vec<Key>,
    /// Keys are in hexadecimal, two digits per byte.
    #[serde(default)]
    hex: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Key {
    One(String),
    Several(Vec<String>),
}

impl<'a> Dropped<'a> {
    /// Opens a file, with the text of a key file if the secret is kept separately. Verifies all bytes that have a
    /// checksum.
    ///
    /// ```
    /// use tamis_report::page::Dropped;
    /// let seen = tamis::Blocked::new(1_000, 0.01)?;
    /// seen.insert("apple");
    /// let file = seen.to_bytes();
    /// let dropped = Dropped::open(&file, None).unwrap();
    /// assert_eq!(dropped.info()["kind"], "blocked");
    /// let told = dropped.ask(br#"{"keys": ["apple", "pear"]}"#).unwrap();
    /// assert_eq!(told["found"].to_string(), "[true,false]");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn open(file: &'a [u8], secret: Option<&str>) -> Result<Self, Refused> {
        let mut open = Open::new();
        if let Some(text) = secret {
            open = open.key(secret_key(text).map_err(Refused::Wrong)?);
        }
        let filter = open.view(file).map_err(|error| match error {
            Error::KeyNeeded => Refused::KeyNeeded(error.to_string()),
            error => Refused::Wrong(error.to_string()),
        })?;
        let about = About::in_bytes(file, &filter);
        Ok(Self { filter, about })
    }

    /// The service's description of a filter, and as `text` the output of `tamis info`. A window is described as of its
    /// latest key.
    pub fn info(&self) -> Value {
        let mut told = about::to_json(&self.about);
        told["lines"] = lines(&self.filter);
        if let AnyFilter::Window(window) = &self.filter {
            let is_empty = window.latest().is_none() && window.added() == 0;
            match is_empty {
                true => told["window"]["generations"] = json!([]),
                false => bring_up_to_date(&mut told["window"], window, Moment::MIN),
            }
        }
        told["keys_are"] = self.filter.hasher().rule().to_string().into();
        told["text"] = about::describe(&self.about).into();
        told["warning"] = self.about.overfull().into();
        told
    }

    /// Which keys may be in the filter: the answer to `{"keys": ["apple", "pear"]}` is `{"found": [true, false]}`. A
    /// window is queried as of its latest key.
    pub fn ask(&self, request: &[u8]) -> Result<Value, String> {
        let (_, keys) = self.keys(request)?;
        let mut found = vec![false; keys.len()];
        self.filter.contains_many(&keys, &mut found);
        Ok(json!({ "found": found }))
    }

    /// The output of `tamis explain` for each key.
    pub fn explain(&self, request: &[u8]) -> Result<Value, String> {
        let (shown, keys) = self.keys(request)?;
        let hasher = self.filter.hasher();
        let explained = shown.iter().zip(&keys).map(|(shown, key)| {
            let hash = hasher.hash(key);
            Explained::of(&self.filter, shown.as_bytes(), hash, self.about.rate_now).describe()
        });
        Ok(json!({ "explained": explained.collect::<Vec<_>>() }))
    }

    /// The keys of a request, as written and as bytes.
    fn keys(&self, request: &[u8]) -> Result<(Vec<String>, Vec<Vec<u8>>), String> {
        let asked: Asked = serde_json::from_slice(request)
            .map_err(|error| format!("expected a JSON object with keys: {error}"))?;
        let rule = self.filter.hasher().rule();
        let bytes = |text: &str| match asked.hex {
            true => from_hex(text)
                .ok_or_else(|| format!("'{text}': expected hexadecimal, two digits a byte")),
            false => Ok(text.as_bytes().to_vec()),
        };
        let (mut shown, mut keys) = (Vec::new(), Vec::new());
        for key in asked.keys {
            let text = match &key {
                Key::One(text) => text.clone(),
                Key::Several(values) => values.join("\t"),
            };
            keys.push(match (&key, rule.values()) {
                (Key::One(text), 1) => bytes(text)?,
                (Key::Several(values), count) if count > 1 && values.len() == count => {
                    let values: Result<Vec<_>, _> = values.iter().map(|v| bytes(v)).collect();
                    rule.join(&values?)
                }
                (_, 1) => return Err(format!("'{text}': expected one value, got several")),
                (_, count) => {
                    return Err(format!(
                        "'{text}': expected {count} values, with a tab between two: the filter's keys have as many"
                    ));
                }
            });
            shown.push(text);
        }
        Ok((shown, keys))
    }
}

/// The key in the text of a key file.
fn secret_key(text: &str) -> Result<SecretKey, String> {
    let digits = text.trim();
    let key = from_hex(digits).and_then(|bytes| bytes.try_into().ok());
    key.map(SecretKey::new).ok_or_else(|| {
        // Don't show the text: it may be a secret.
        let got = digits.chars().count();
        format!("key file: expected 32 hexadecimal digits, got {got} other characters")
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::{
        Blocked, Hasher, KeyRule, Window,
        window::{Span, WindowOptions},
    };

    const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

    fn of_rule(rule: KeyRule) -> Vec<u8> {
        let seen = Blocked::with_hasher(100, 1e-6, Hasher::default().with_rule(rule)).unwrap();
        seen.insert(rule.join(&["Ada", "2026"][..rule.values()]));
        seen.to_bytes()
    }

    #[test]
    fn a_secret_kept_apart_is_asked_for_and_checked() {
        let key = secret_key(SECRET).unwrap();
        let seen = Blocked::with_hasher(100, 0.01, Hasher::keyed_apart(key)).unwrap();
        seen.insert("key");
        let file = seen.to_bytes();
        let refused = |secret| Dropped::open(&file, secret).map(|_| ()).unwrap_err();
        assert!(matches!(refused(None), Refused::KeyNeeded(_)));
        for (secret, text) in [
            ("000102030405060708090a0b0c0d0e0e", "not the secret key"),
            ("", "expected 32 hexadecimal digits, got 0"),
            ("+00102030405060708090a0b0c0d0e0f", "32 hexadecimal"),
            ("00 0102030405060708090a0b0c0d0e0f", "32 hexadecimal"),
        ] {
            let Refused::Wrong(got) = refused(Some(secret)) else {
                panic!("{secret}");
            };
            assert!(got.contains(text), "{got}");
        }
        let opened =
            Dropped::open(&file, Some(&format!("{SECRET}\n"))).unwrap_or_else(|_| panic!());
        let told = opened.ask(br#"{"keys": ["6b6579"], "hex": true}"#).unwrap();
        assert_eq!(told["found"], json!([true]));
    }

    #[test]
    fn keys_are_made_by_the_filter_s_rule() {
        let file = of_rule(KeyRule::EXACT.ignore_case().of_values(2).unwrap());
        let opened = Dropped::open(&file, None).unwrap_or_else(|_| panic!());
        let told = opened.ask(br#"{"keys": [["ADA", "2026"], ["AD", "A2026"]]}"#);
        assert_eq!(told.unwrap()["found"], json!([true, false]));
        let told = opened.explain(br#"{"keys": [["ADA", "2026"]]}"#).unwrap();
        assert!(
            told["explained"][0].as_str().unwrap().contains("maybe: "),
            "{told}"
        );
        for keys in [r#"["ADA"]"#, r#"[["ADA"]]"#, r#"[["a", "b", "c"]]"#] {
            let error = opened
                .ask(format!("{{\"keys\": {keys}}}").as_bytes())
                .unwrap_err();
            assert!(error.contains("expected 2 values"), "{error}");
        }
        let file = of_rule(KeyRule::EXACT.ignore_case());
        let opened = Dropped::open(&file, None).unwrap_or_else(|_| panic!());
        assert_eq!(
            opened.ask(br#"{"keys": ["ADA", ""]}"#).unwrap()["found"],
            json!([true, false])
        );
        let told = opened.explain(br#"{"keys": ["ADA"]}"#).unwrap();
        assert!(
            told["explained"][0]
                .as_str()
                .unwrap()
                .contains("asked as       ada"),
            "{told}"
        );
        for request in [
            r#"{"keys": [["a", "b"]]}"#,
            r#"{"keys": ["a"], "hex": true}"#,
            r#"{"keys": [1]}"#,
            "",
            "[]",
        ] {
            assert!(opened.ask(request.as_bytes()).is_err(), "{request}");
        }
    }

    #[test]
    fn windows_of_all_times_are_described() {
        let day = std::time::Duration::from_secs(86_400);
        let times = [
            None,
            Some(Moment::MIN),
            Some(Moment::from_secs(0)),
            Some(Moment::MAX),
        ];
        for at in times {
            let seen = Window::within(day, 100, 0.01).unwrap();
            if let Some(at) = at {
                seen.insert("key", at);
            }
            let file = seen.to_bytes();
            let opened = Dropped::open(&file, None).unwrap_or_else(|_| panic!());
            let told = opened.info();
            let generations = told["window"]["generations"].as_array().unwrap();
            assert_eq!(
                generations.len(),
                if at.is_some() { 9 } else { 0 },
                "{at:?}"
            );
            assert!(
                generations
                    .iter()
                    .all(|one| one["age"].as_f64().unwrap() >= 0.0),
                "{told}"
            );
            let found = opened.ask(br#"{"keys": ["key"]}"#).unwrap();
            assert_eq!(found["found"], json!([at.is_some()]), "{at:?}");
        }
        let last = WindowOptions::new(Span::Keys(100));
        let last = Window::with_options(&last, 100, 0.01, Hasher::default()).unwrap();
        let file = last.to_bytes();
        let opened = Dropped::open(&file, None).unwrap_or_else(|_| panic!());
        assert_eq!(opened.info()["window"]["generations"], json!([]));
    }

    #[test]
    fn what_is_cut_or_changed_is_refused() {
        let file = of_rule(KeyRule::EXACT);
        for end in [0, 1, 127, 128, file.len() - 1] {
            assert!(Dropped::open(&file[..end], None).is_err(), "{end}");
        }
        for at in 0..file.len() {
            let mut wrong = file.clone();
            wrong[at] ^= 0x40;
            assert!(Dropped::open(&wrong, None).is_err(), "{at}");
        }
    }
}
