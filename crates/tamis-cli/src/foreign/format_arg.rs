//! `--format NAME[,PARAMETER=VALUE...]`: another system's format, and parameters that its bytes don't record.

use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{BitmapHash, Format};

/// A format and its parameters, as the user gives them.
#[derive(Clone, Debug)]
pub(crate) struct FormatArg {
    pub(crate) format: Format,
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
        let (name, rest) = text.split_once(',').unwrap_or((text, ""));
        let format: Format = name.parse()?;
        let mut this = Self {
            format,
            hash: None,
            hashes: None,
            bits: None,
            is_low_first: false,
        };
        for parameter in parameters(rest) {
            this.set(&parameter)?;
        }
        Ok(this)
    }

    fn set(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let is_bitmap = self.format == Format::Bitmap;
        match name {
            "hash" if is_bitmap => {
                let hash = value
                    .parse()
                    .map_err(|error: String| format!("hash={value}: {error}"))?;
                self.hash = Some(HashArg::Bitmap(hash));
            }
            "hash" if self.format == Format::Pybloomfilter => {
                let hash = value
                    .parse()
                    .map_err(|error: String| format!("hash={value}: {error}"))?;
                self.hash = Some(HashArg::File(hash));
            }
            "hashes" if is_bitmap => {
                let hashes = value.parse();
                self.hashes =
                    Some(hashes.map_err(|_| format!("hashes: expected a number, got '{value}'"))?);
            }
            "bits" if is_bitmap => {
                let bits = crate::human::parse_count(value);
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
                let known = match self.format {
                    Format::Bitmap => "hash=, hashes=, bits= and order=",
                    Format::Pybloomfilter => "hash=",
                    _ => {
                        return Err(format!(
                            "{} has no parameters, got '{parameter}'",
                            self.format
                        ));
                    }
                };
                return Err(format!(
                    "{} has the parameters {known}, got '{parameter}'",
                    self.format
                ));
            }
        }
        Ok(())
    }
}

/// The parameters, each with its value. A value may contain commas.
fn parameters(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in text.split(',').filter(|piece| !piece.is_empty()) {
        match all.last_mut() {
            Some(last) if !piece.contains('=') => {
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
        assert_eq!((bitmap.format, bitmap.bits), (Format::Bitmap, Some(1000)));
        assert!(bitmap.is_low_first && bitmap.hashes.is_none());
        assert!(matches!(bitmap.hash, Some(HashArg::Bitmap(_))));
        let file = FormatArg::parse("pybloomfilter,hash=sha512").unwrap();
        assert!(matches!(file.hash, Some(HashArg::File(_))));
        assert!(FormatArg::parse("guava").unwrap().hash.is_none());
        for (text, said) in [
            ("guava,hash=djb", "no parameters"),
            ("bitmap,hash=djb", "hash=djb"),
            ("bitmap,bits=many", "bits"),
            ("bitmap,hashes=-1", "hashes"),
            ("bitmap,order=up", "low-first"),
            ("bitmap,size=9", "hash=, hashes=, bits= and order="),
            ("pybloomfilter,bits=9", "hash="),
            ("nothing", "nothing"),
        ] {
            let error = FormatArg::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
