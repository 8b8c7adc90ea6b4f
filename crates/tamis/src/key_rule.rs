//! How a filter's keys are made: which differences between texts to ignore, and how to join several
//! values into one key.
//!
//! A filter built with case ignored but queried with case kept would give a false "no". So the
//! header records the rule, next to the hash, and every hash applies it.

mod text;
#[cfg(feature = "url")]
mod web;

pub use text::{TextRule, TextUnit};

use std::borrow::Cow;
use std::fmt;

/// How the keys of a filter are made. [`Hasher::with_rule`](crate::Hasher::with_rule) puts it into
/// a filter, which then applies it to every key.
///
/// ```
/// use tamis::{Blocked, Hasher, KeyRule};
/// let hasher = Hasher::default().with_rule(KeyRule::EXACT.ignore_case());
/// let seen = Blocked::with_hasher(1_000, 0.01, hasher)?;
/// seen.insert("Example");
/// assert!(seen.contains("EXAMPLE"));
/// // The file carries the rule.
/// assert!(Blocked::from_bytes(&seen.to_bytes())?.contains("example"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRule {
    ignore_case: bool,
    url: bool,
    values: u8,
    text: Option<TextRule>,
}

impl Default for KeyRule {
    fn default() -> Self {
        Self::EXACT
    }
}

impl KeyRule {
    /// A key is its bytes.
    pub const EXACT: Self = Self {
        ignore_case: false,
        url: false,
        values: 1,
        text: None,
    };

    /// Ignores case: of Unicode letters if the key is UTF-8, otherwise of ASCII letters.
    pub const fn ignore_case(self) -> Self {
        Self {
            ignore_case: true,
            ..self
        }
    }

    /// Normalises a key that is a URL by the WHATWG rules and drops its fragment. Other keys, and
    /// URLs that those rules reject, stay unchanged. A `^` in a path also stays where the rules
    /// would encode it. (With the feature `url-by-caller`, the caller normalises keys first.)
    #[cfg(any(feature = "url", feature = "url-by-caller"))]
    pub const fn url(self) -> Self {
        Self { url: true, ..self }
    }

    /// A key is this many values, joined by [`join`](Self::join). `None` unless it is 1 to 255.
    ///
    /// ```
    /// use tamis::KeyRule;
    /// assert_eq!(KeyRule::EXACT.of_values(2).unwrap().values(), 2);
    /// assert!(KeyRule::EXACT.of_values(0).is_none());
    /// ```
    pub const fn of_values(self, values: usize) -> Option<Self> {
        match values {
            1..=255 => Some(Self {
                values: values as u8,
                ..self
            }),
            _ => None,
        }
    }

    /// A key is a unit of text, which the caller makes; [`apply`](Self::apply) leaves it unchanged. `None`
    /// if the rule is for URLs or several values, or its numbers make no sense.
    ///
    /// ```
    /// use tamis::KeyRule;
    /// use tamis::internals::{TextRule, TextUnit};
    /// let lines = TextRule::of(TextUnit::Line);
    /// let rule = KeyRule::EXACT.ignore_case().of_text(lines).unwrap();
    /// assert_eq!(rule.text(), Some(lines));
    /// assert_eq!(&*rule.apply(b"A line"), b"A line");
    /// assert!(KeyRule::EXACT.of_text(TextRule::of(TextUnit::Words(0))).is_none());
    /// ```
    #[doc(hidden)]
    pub const fn of_text(self, text: TextRule) -> Option<Self> {
        if self.url || self.values != 1 || !text.is_sound() {
            return None;
        }
        Some(Self {
            text: Some(text),
            ..self
        })
    }

    /// The text rule, if keys are units of text.
    #[doc(hidden)]
    #[inline]
    pub const fn text(&self) -> Option<TextRule> {
        self.text
    }

    /// Whether case is ignored.
    #[inline]
    pub const fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Whether URLs are normalised.
    #[inline]
    pub const fn normalises_urls(&self) -> bool {
        self.url
    }

    /// How many values a key is made of.
    #[inline]
    pub const fn values(&self) -> usize {
        self.values as usize
    }

    /// The key made from a value. A key of several values is returned unchanged: it contains their
    /// lengths, so [`join`](Self::join) must already have applied the rule.
    ///
    /// ```
    /// use tamis::KeyRule;
    /// assert_eq!(&*KeyRule::EXACT.apply(b"Key"), b"Key");
    /// assert_eq!(&*KeyRule::EXACT.ignore_case().apply(b"Key"), b"key");
    /// ```
    #[inline]
    pub fn apply<'k>(&self, value: &'k [u8]) -> Cow<'k, [u8]> {
        if *self == Self::EXACT || self.values > 1 || self.text.is_some() {
            return Cow::Borrowed(value);
        }
        let mut key = Vec::with_capacity(value.len());
        self.append(value, &mut key);
        Cow::Owned(key)
    }

    /// Appends the key made from a value, or its part of a key. Returns whether the value is what
    /// the rule expects: `false` for one that should be a URL but isn't, which is appended
    /// unchanged.
    ///
    /// ```
    /// use tamis::KeyRule;
    /// let mut key = b"a ".to_vec();
    /// assert!(KeyRule::EXACT.ignore_case().append(b"KEY", &mut key));
    /// assert_eq!(key, b"a key");
    /// ```
    #[inline]
    #[doc(hidden)]
    pub fn append(&self, value: &[u8], key: &mut Vec<u8>) -> bool {
        let start = key.len();
        // Outer: whether the rule expects a URL. Inner: whether the value is one.
        #[cfg(feature = "url")]
        let url = self.url.then(|| web::normal(value));
        #[cfg(not(feature = "url"))]
        let url: Option<Option<String>> = None;
        if let Some(Some(url)) = &url {
            key.extend_from_slice(url.as_bytes());
        }
        if key.len() == start {
            key.extend_from_slice(value);
        }
        // Units of text are already folded.
        if self.ignore_case && self.text.is_none() {
            lower_case(key, start);
        }
        url != Some(None)
    }

    /// The key of several values, each preceded by its length (8 bytes, little-endian), so that
    /// `ab, c` and `a, bc` differ. The key of one value is that value.
    ///
    /// ```
    /// use tamis::{Blocked, Hasher, KeyRule};
    /// let rule = KeyRule::EXACT.ignore_case().of_values(2).unwrap();
    /// let seen = Blocked::with_hasher(1_000, 0.01, Hasher::default().with_rule(rule))?;
    /// seen.insert(rule.join(&["Ada", "2026-11-15"]));
    /// assert!(seen.contains(rule.join(&["ADA", "2026-11-15"])));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn join<V: AsRef<[u8]>>(&self, values: &[V]) -> Vec<u8> {
        let mut key = Vec::new();
        for value in values {
            match values.len() {
                1 => self.append(value.as_ref(), &mut key),
                _ => self.append_part(value.as_ref(), &mut key),
            };
        }
        key
    }

    /// Appends one of several values, preceded by its length; returns the same as
    /// [`append`](Self::append).
    #[inline]
    #[doc(hidden)]
    pub fn append_part(&self, value: &[u8], key: &mut Vec<u8>) -> bool {
        let length_at = key.len();
        key.extend_from_slice(&[0; 8]);
        let expected = self.append(value, key);
        let length = (key.len() - length_at - 8) as u64;
        key[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
        expected
    }

    /// Bits 1 and 2 and the second byte of the header's flags; for text, bit 1 and the bits of [`TextRule`].
    pub(crate) const fn encode(&self) -> u32 {
        if let Some(text) = self.text {
            return (self.ignore_case as u32) << 1 | text.encode();
        }
        let values = match self.values {
            1 => 0,
            values => values as u32,
        };
        (self.ignore_case as u32) << 1 | (self.url as u32) << 2 | values << 8
    }

    /// The rule in these flags; `None` if other bits are set.
    pub(crate) const fn decode(flags: u32) -> Option<Self> {
        if TextRule::is_in(flags) {
            return match TextRule::decode(flags & !0b010) {
                Some(text) => Some(Self {
                    ignore_case: flags & 0b010 != 0,
                    text: Some(text),
                    ..Self::EXACT
                }),
                None => None,
            };
        }
        let values = match flags >> 8 {
            0 => 1,
            values @ 2..=255 => values as u8,
            _ => return None,
        };
        match flags & 0xFF & !0b110 {
            0 => Some(Self {
                ignore_case: flags & 0b010 != 0,
                url: flags & 0b100 != 0,
                values,
                text: None,
            }),
            _ => None,
        }
    }
}

/// As in "keys: case ignored, URLs normalised".
impl fmt::Display for KeyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::EXACT {
            return f.write_str("exact");
        }
        let mut comma = "";
        if let Some(text) = self.text {
            write!(f, "{text}")?;
            comma = ", ";
        }
        for (holds, text) in [
            (self.ignore_case, "case ignored"),
            (self.url, "URLs normalised"),
        ] {
            if holds {
                write!(f, "{comma}{text}")?;
                comma = ", ";
            }
        }
        match self.values {
            1 => Ok(()),
            values => write!(f, "{comma}{values} values joined"),
        }
    }
}

/// Lower-cases the bytes from `start` on.
fn lower_case(key: &mut Vec<u8>, start: usize) {
    let text = &key[start..];
    if let Ok(text) = std::str::from_utf8(text)
        && !text.is_ascii()
    {
        let lower: String = text.chars().flat_map(char::to_lowercase).collect();
        key.truncate(start);
        key.extend_from_slice(lower.as_bytes());
    } else {
        key[start..].make_ascii_lowercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_round_trip_and_others_are_refused() {
        let mut known = 0;
        for flags in 0..=0x3F_FFFFu32 {
            if let Some(rule) = KeyRule::decode(flags) {
                assert_eq!(rule.encode(), flags);
                known += 1;
            }
        }
        // For text: four units without a number, words, and percentages; each with case and three other
        // folds.
        let of_text = (4 + 255 + 99) * 16;
        assert_eq!(known, 4 * 255 + of_text);
        assert_eq!(KeyRule::decode(0), Some(KeyRule::EXACT));
        assert_eq!(KeyRule::decode(1 << 31), None);
    }

    #[test]
    fn borders_between_values_count() {
        let rule = KeyRule::EXACT.of_values(2).unwrap();
        assert_ne!(rule.join(&["ab", "c"]), rule.join(&["a", "bc"]));
        assert_eq!(rule.join(&["ab"]), b"ab");
        assert_eq!(rule.join(&["a", ""])[..9], *b"\x01\0\0\0\0\0\0\0a");
        // The lengths are those after folding.
        let folded = rule.ignore_case().join(&["\u{130}", "X"]);
        assert_eq!(folded[..8], 3u64.to_le_bytes());
        assert_eq!(folded, rule.join(&["i\u{307}", "x"]));
    }

    #[test]
    fn case_is_that_of_unicode_where_it_is_text() {
        let rule = KeyRule::EXACT.ignore_case();
        assert_eq!(&*rule.apply("STRASSE Ä".as_bytes()), "strasse ä".as_bytes());
        assert_eq!(&*rule.apply(b"\xFFA\xC4"), b"\xFFa\xC4");
        assert_eq!(&*rule.apply(b""), b"");
    }

    #[test]
    fn a_rule_is_told() {
        let rule = KeyRule::EXACT.ignore_case().of_values(3).unwrap();
        assert_eq!(rule.to_string(), "case ignored, 3 values joined");
        assert_eq!(KeyRule::EXACT.to_string(), "exact");
    }

    #[cfg(feature = "url")]
    #[test]
    fn urls_are_normalised() {
        let rule = KeyRule::EXACT.url();
        let same = "http://example.org/a";
        for url in ["HTTP://EXAMPLE.org:80/a#b", "http://example.org/x/../a"] {
            assert_eq!(&*rule.apply(url.as_bytes()), same.as_bytes());
        }
        assert_eq!(&*rule.apply(b"no url"), b"no url");
        assert_eq!(&*rule.apply(b"#"), b"#");
    }

    /// What ada makes of odd URLs; see tests/peers/odd_urls.py of tamis-formats.
    #[cfg(feature = "url")]
    #[test]
    fn urls_are_those_of_the_standard() {
        let rule = KeyRule::EXACT.url();
        let mut refused = 0;
        for line in include_str!("../tests/urls.tsv").lines() {
            let (escaped, expected) = line.split_once('\t').unwrap();
            let mut url = String::new();
            let mut chars = escaped.chars();
            while let Some(c) = chars.next() {
                url.push(match c {
                    '\\' => match chars.next().unwrap() {
                        't' => '\t',
                        'n' => '\n',
                        'r' => '\r',
                        c => c,
                    },
                    c => c,
                });
            }
            let expected = match expected {
                "!" => {
                    refused += 1;
                    &*url
                }
                expected => expected,
            };
            let got = rule.apply(url.as_bytes());
            assert_eq!(String::from_utf8_lossy(&got), expected, "{url:?}");
        }
        assert!(refused > 100);
    }
}
