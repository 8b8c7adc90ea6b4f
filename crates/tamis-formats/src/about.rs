//! What is to be known of a format besides the code that reads it.

use crate::bytes::View;
use crate::filter::Opened;
use crate::{Error, Keys};

/// A format.
pub(crate) struct About {
    /// How its users make bytes of keys.
    pub(crate) keys: &'static [Keys],
    /// What else may be asked for.
    pub(crate) other_keys: OtherKeys,
    /// How its files begin, if that settles the format.
    pub(crate) start: &'static [u8],
    /// How its files end, if that settles the format.
    pub(crate) end: &'static [u8],
    /// Words near the beginning of its JSON, if it has one.
    pub(crate) json: &'static [&'static str],
    /// Whether it is recognised by numbers that agree with the length.
    pub(crate) is_guessed: bool,
    /// Why its files can't be written here.
    pub(crate) read_only: Option<&'static str>,
    pub(crate) read: Read,
}

/// Reads a file, or the filter of that name in it.
pub(crate) type Read = fn(View<'_>, Option<&[u8]>) -> Result<Opened, Error>;

/// Encodings of keys that can be asked for besides those that are usual.
pub(crate) enum OtherKeys {
    /// All that make text or numbers into their bytes.
    Bytes,
    /// Other forms of text.
    Text,
    /// These.
    Only(&'static [Keys]),
    /// All, unless the type of the keys is known.
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

    /// Whether keys of a filter with these choices may have been made so.
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

    /// Whether text begins as its JSON does: a document of other people's is not
    /// read as a whole to be refused.
    pub(crate) fn is_like_json(&self, text: View<'_>) -> bool {
        let start = text.read(0..text.len().min(512));
        let has = |word: &&str| start.windows(word.len()).any(|at| at == word.as_bytes());
        !self.json.is_empty() && start.first() == Some(&b'{') && self.json.iter().all(has)
    }
}
