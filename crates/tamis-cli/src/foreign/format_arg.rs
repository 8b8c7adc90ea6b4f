//! `--format NAME[,PARAMETER=VALUE...]`: another system's format, and parameters that its bytes don't record.

use crate::human;
use std::fmt::Display;
use std::str::FromStr;
use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{BitmapHash, Format, Keys};

/// A format and its parameters, as the user gives them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormatArg {
    /// `None` if it is to be recognised.
    pub(crate) format: Option<Format>,
    /// How its keys became bytes.
    pub(crate) keys: Option<Keys>,
    /// Which filter of a file that has several.
    pub(crate) name: Option<String>,
    /// The most bytes that a gzipped filter may unpack to.
    pub(crate) most_unpacked: Option<u64>,
    pub(crate) hash: Option<HashArg>,
    /// Bits per key in a bitmap.
    pub(crate) hashes: Option<u32>,
    /// The number of bits that a bitmap was made for.
    pub(crate) bits: Option<u64>,
    pub(crate) is_low_first: bool,
}

/// A hash that the user names.
#[derive(Clone, Debug)]
pub(crate) enum HashArg {
    /// The hash of a pybloomfilter file.
    File(Hash),
    Bitmap(BitmapHash),
}

impl FormatArg {
    /// Parses the argument; errors are for people.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut this = Self::default();
        let mut rest = text;
        let (first, others) = text.split_once(',').unwrap_or((text, ""));
        if !first.contains('=') {
            this.format = Some(first.parse()?);
            rest = others;
        }
        for parameter in parameters(rest) {
            this.set(&parameter)?;
        }
        Ok(this)
    }

    /// The same for a filter that is to be built, whose only parameter is `keys=`.
    pub(crate) fn parse_new(text: &str) -> Result<Self, String> {
        let this = Self::parse(text)?;
        match &this {
            Self { format: None, .. } => Err(format!("expected FORMAT[,keys=HOW], got '{text}'")),
            Self {
                name: None,
                most_unpacked: None,
                hash: None,
                hashes: None,
                bits: None,
                is_low_first: false,
                ..
            } => Ok(this),
            _ => Err(format!(
                "a new filter has the parameter keys=, got '{text}'"
            )),
        }
    }

    fn set(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let is_bitmap = self.format == Some(Format::Bitmap);
        match name {
            "keys" => self.keys = Some(of(name, value)?),
            "name" => self.name = Some(value.to_owned()),
            "unpacked" => {
                self.most_unpacked =
                    Some(human::parse_size(value).map_err(|why| format!("unpacked: {why}"))?)
            }
            "hash" if is_bitmap => self.hash = Some(HashArg::Bitmap(of(name, value)?)),
            "hash" if self.format == Some(Format::Pybloomfilter) => {
                self.hash = Some(HashArg::File(of(name, value)?))
            }
            "hashes" if is_bitmap => {
                let hashes = value.parse();
                self.hashes =
                    Some(hashes.map_err(|_| format!("hashes: expected a number, got '{value}'"))?);
            }
            "bits" if is_bitmap => {
                let bits = human::parse_count(value);
                self.bits = Some(bits.map_err(|why| format!("bits: {why}"))?);
            }
            "order" if is_bitmap => {
                self.is_low_first = match value {
                    "low-first" => true,
                    "high-first" => false,
                    _ => {
                        return Err(format!(
                            "order: expected low-first or high-first, got '{value}'"
                        ));
                    }
                };
            }
            _ => {
                let (format, more) = match self.format {
                    Some(Format::Bitmap) => ("bitmap", "hash=, hashes=, bits=, order=, "),
                    Some(Format::Pybloomfilter) => ("pybloomfilter", "hash=, "),
                    _ => ("--format", ""),
                };
                return Err(format!(
                    "{format} has the parameters {more}keys=, unpacked= and, as the last one, name=; got '{parameter}'"
                ));
            }
        }
        Ok(())
    }
}

/// A value by its name.
fn of<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|error: T::Err| format!("{name}={value}: {error}"))
}

/// The parameters, each with its value, which may contain commas. A name comes last and may contain anything.
fn parameters(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in text.split(',').filter(|piece| !piece.is_empty()) {
        match all.last_mut() {
            Some(last) if !piece.contains('=') || last.starts_with("name=") => {
                last.push(',');
                last.push_str(piece);
            }
            _ => all.push(piece.to_owned()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_the_format() {
        let bitmap =
            FormatArg::parse("bitmap,hash=java-seeds:5,7,11,bits=1k,order=low-first").unwrap();
        assert_eq!(
            (bitmap.format, bitmap.bits),
            (Some(Format::Bitmap), Some(1000))
        );
        assert!(bitmap.is_low_first && bitmap.hashes.is_none());
        assert!(matches!(bitmap.hash, Some(HashArg::Bitmap(_))));
        let file = FormatArg::parse("pybloomfilter,hash=sha512").unwrap();
        assert!(matches!(file.hash, Some(HashArg::File(_))));
        assert!(FormatArg::parse("guava").unwrap().hash.is_none());
        let told = FormatArg::parse("keys=upper,unpacked=2kB,name=a,b=c,d").unwrap();
        assert!(told.format.is_none());
        assert_eq!(
            (told.keys, told.most_unpacked),
            (Some(Keys::Upper), Some(2000))
        );
        assert_eq!(told.name.as_deref(), Some("a,b=c,d"));
        for (text, said) in [
            ("guava,hash=djb", "keys=, unpacked= and"),
            ("keys=utf9", "keys=utf9"),
            ("unpacked=much", "unpacked"),
            ("bitmap,hash=djb", "hash=djb"),
            ("bitmap,bits=many", "bits"),
            ("bitmap,hashes=-1", "hashes"),
            ("bitmap,order=up", "low-first"),
            ("bitmap,size=9", "hash=, hashes=, bits=, order="),
            ("pybloomfilter,bits=9", "hash="),
            ("nothing", "nothing"),
        ] {
            let error = FormatArg::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn new_filters_have_keys_alone() {
        let new = FormatArg::parse_new("guava,keys=utf8").unwrap();
        assert_eq!(
            (new.format, new.keys),
            (Some(Format::Guava), Some(Keys::Utf8))
        );
        for text in [
            "keys=utf8",
            "guava,name=a",
            "pybloomfilter,hash=djb",
            "parquet,unpacked=1",
        ] {
            FormatArg::parse_new(text).unwrap_err();
        }
    }
}
