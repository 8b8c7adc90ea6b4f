//! What detection and key handling need to know about a format.

use crate::bytes::View;
use crate::filter::Opened;
use crate::{Error, Keys};

/// A format.
pub(crate) struct About {
    /// How its users turn keys into bytes.
    pub(crate) keys: &'static [Keys],
    /// Which other encodings may be requested.
    pub(crate) other_keys: OtherKeys,
    /// The start of its files, if that identifies the format.
    pub(crate) start: &'static [u8],
    /// The end of its files, if that identifies the format.
    pub(crate) end: &'static [u8],
    /// Words near the beginning of its JSON form, if it has one.
    pub(crate) json: &'static [&'static str],
    /// Whether it is recognised by numbers that agree with the file's length.
    pub(crate) is_guessed: bool,
    /// Why we can't write its files.
    pub(crate) read_only: Option<&'static str>,
    pub(crate) read: Read,
}

/// Reads a file, or the filter with this name in it.
pub(crate) type Read = fn(View<'_>, Option<&[u8]>) -> Result<Opened, Error>;

/// Encodings of keys that may be requested besides the usual ones.
pub(crate) enum OtherKeys {
    /// All that encode text or numbers as they are.
    Bytes,
    /// Other encodings of text.
    Text,
    /// Only these.
    Only(&'static [Keys]),
    /// Any, unless the type of the keys is known.
    Untyped,
}

impl About {
    /// A format that is recognised by its length.
    pub(crate) const fn new(keys: &'static [Keys], read: Read) -> Self {
        Self {
            keys,
            other_keys: OtherKeys::Bytes,
            start: &[],
            end: &[],
            json: &[],
            is_guessed: true,
            read_only: None,
            read,
        }
    }

    /// Whether keys of a filter with these choices may have been encoded this
    /// way.
    pub(crate) fn fits(&self, choices: &[Keys], asked: Keys) -> bool {
        use Keys::{Json, Kryo5, Lower, PythonNumber, PythonPickle, RustStr, Upper, Utf16};
        choices.contains(&asked)
            || match self.other_keys {
                OtherKeys::Bytes => {
                    !matches!(asked, PythonNumber | PythonPickle | RustStr | Kryo5 | Json)
                }
                OtherKeys::Text => matches!(asked, Utf16 | Upper | Lower),
                OtherKeys::Only(keys) => keys.contains(&asked),
                OtherKeys::Untyped => choices.len() > 1,
            }
    }

    /// Whether text begins like its JSON form. Avoids parsing whole foreign
    /// documents just to refuse them.
    pub(crate) fn is_like_json(&self, text: View<'_>) -> bool {
        let start = text.read(0..text.len().min(512));
        let has = |word: &&str| start.windows(word.len()).any(|at| at == word.as_bytes());
        !self.json.is_empty() && start.first() == Some(&b'{') && self.json.iter().all(has)
    }
}
