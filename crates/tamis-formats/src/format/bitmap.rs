//! A bit string written with SETBIT. Only the program that set the bits knows
//! how a key becomes positions: this module has the methods of classes that
//! many programs have copied.

use super::{MOST_HASHES, with_zeros};
use crate::about::{About, OtherKeys};
use crate::bits::{Bits, Modulus, Order};
use crate::filter::Opened;
use crate::plain::Plain;
use crate::plain_file::PlainFile;
use crate::probe::{JavaKey, Probe};
use crate::{Error, Format, Keys};
use std::str::FromStr;

pub(crate) const ABOUT: About = About {
    // Java's hashes apply to text and integers.
    other_keys: OtherKeys::Only(&[]),
    is_guessed: false,
    read_only: Some("the program that made it adds keys"),
    ..About::new(
        &[Keys::Utf8, Keys::Utf16, Keys::Int32, Keys::Int64],
        |_, _| {
            Err(Error::corrupt(
                Format::Bitmap,
                "string",
                "its hash and number of bits, which only its program knows",
                "the string alone",
            ))
        },
    )
};

/// Limits: a Redis string has at most 512 MiB, and Java's ints can't number
/// more bits.
const MOST_BITS: u64 = 1 << 32;
const MOST_OF_JAVA: u64 = i32::MAX as u64 + 1;

/// How the program that set the bits hashes keys.
///
/// ```
/// use tamis_formats::BitmapHash;
/// assert_eq!("java-seeds:5,7".parse(), Ok(BitmapHash::Seeds(vec![5, 7])));
/// assert!("md5".parse::<BitmapHash>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitmapHash {
    /// Guava's murmur3_128 with `MURMUR128_MITZ_64`.
    Guava,
    /// The same with `MURMUR128_MITZ_32`: `hash1 + i * hash2` from 1 on, `~` if
    /// it is negative.
    Guava32,
    /// `hash = seed * hash + char`, and `(size - 1) & hash`, for each seed.
    Seeds(Vec<i32>),
    /// `i * (size - 1) & (h ^ h >>> 16)` of `hashCode`, for each i.
    Spread(Vec<i32>),
}

impl FromStr for BitmapHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "expected guava, guava32, java-seeds:5,7,11 or java-spread:1,6,16, got {text:?}"
            )
        };
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers = || -> Result<Vec<i32>, String> {
            let numbers = numbers.split(',').map(|n| n.trim().parse());
            numbers.collect::<Result<_, _>>().map_err(|_| refuse())
        };
        match name {
            "guava" | "guava32" if text.contains(':') => Err(refuse()),
            "guava" => Ok(Self::Guava),
            "guava32" => Ok(Self::Guava32),
            "java-seeds" => numbers().map(Self::Seeds),
            "java-spread" => numbers().map(Self::Spread),
            _ => Err(refuse()),
        }
    }
}

/// Computes a key's bits in a string, for strings that live in Redis.
///
/// ```
/// use tamis_formats::{BitmapHash, BitmapShape, Keys};
/// let shape = BitmapShape::new(BitmapHash::Spread(vec![1, 6]), None, 1 << 29)?;
/// let key = Keys::Utf16.encode(b"key")?;
/// assert_eq!(shape.bits(&key).map(|bits| bits.len()), Some(2));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BitmapShape {
    probe: Probe,
    /// The size that the program uses.
    modulus: Modulus,
    /// The number of bits that keys may have, which may be larger.
    len: u64,
    order: Order,
}

impl BitmapShape {
    /// From the hash, the number of bits per key unless the hash determines it,
    /// and the size that positions are computed for.
    pub fn new(hash: BitmapHash, hashes: Option<u32>, size: u64) -> Result<Self, Error> {
        let refuse = |what, expected, got: String| {
            Err(Error::Parameter {
                what,
                expected,
                got,
            })
        };
        let is_java = matches!(hash, BitmapHash::Seeds(_) | BitmapHash::Spread(_));
        if is_java && !(1..=MOST_OF_JAVA).contains(&size) {
            return refuse("bits", "1 to 2^31, which Java's int has", size.to_string());
        }
        if !(1..=MOST_BITS).contains(&size) {
            return refuse(
                "bits",
                "1 to 2^32, which a Redis string has",
                size.to_string(),
            );
        }
        let hashes = match (&hash, hashes) {
            (BitmapHash::Guava | BitmapHash::Guava32, Some(hashes)) => u64::from(hashes),
            (BitmapHash::Guava | BitmapHash::Guava32, None) => {
                return refuse("hashes", "how many bits a key has", "none".into());
            }
            (BitmapHash::Seeds(numbers) | BitmapHash::Spread(numbers), None) => {
                numbers.len() as u64
            }
            (_, Some(hashes)) => {
                return refuse("hashes", "none: there is one a number", hashes.to_string());
            }
        };
        if !(1..=MOST_HASHES).contains(&hashes) {
            return refuse("hashes", "1 to 1024", hashes.to_string());
        }
        let mask = (size - 1) as i32;
        let mut len = size;
        let probe = match hash {
            BitmapHash::Guava => Probe::Guava64 { hashes },
            BitmapHash::Guava32 => Probe::Guava32 { hashes },
            BitmapHash::Seeds(seeds) => Probe::JavaSeeds {
                seeds: seeds.into(),
                mask,
            },
            BitmapHash::Spread(factors) => {
                let masks: Box<[i32]> = factors.iter().map(|i| i.wrapping_mul(mask)).collect();
                let most = masks.iter().map(|mask| (mask & i32::MAX) as u64).max();
                len = most.unwrap_or(0) + 1;
                let of = JavaKey::Text;
                Probe::JavaSpread { masks, of }
            }
        };
        Ok(Self {
            probe,
            modulus: Modulus::new(size),
            len,
            order: Order::High,
        })
    }

    /// The same with bits counted from the low end of each byte, as in C's arrays and Java's
    /// `BitSet.toByteArray`; SETBIT counts from the high end.
    ///
    /// ```
    /// use tamis_formats::{BitmapHash, BitmapShape};
    /// let shape = BitmapShape::new(BitmapHash::Guava, Some(1), 64)?;
    /// let high = shape.bits(b"key").unwrap()[0];
    /// assert_eq!(shape.low_first().bits(b"key"), Some(vec![high ^ 7]));
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    #[must_use]
    pub const fn low_first(mut self) -> Self {
        self.order = Order::Low;
        self
    }

    /// The same for keys of this type, one of [`keys`](Self::keys): Java's `hashCode` of a number
    /// isn't that of its digits.
    ///
    /// ```
    /// use tamis_formats::{BitmapHash, BitmapShape, Keys};
    /// let shape = BitmapShape::new(BitmapHash::Spread(vec![1]), None, 1 << 16)?;
    /// let seven = Keys::Int32.encode(b"7")?;
    /// assert_eq!(shape.of_keys(Keys::Int32).bits(&seven), Some(vec![7]));
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    #[must_use]
    pub fn of_keys(mut self, keys: Keys) -> Self {
        if let Probe::JavaSpread { of, .. } = &mut self.probe {
            *of = match keys {
                Keys::Int32 => JavaKey::Int,
                Keys::Int64 => JavaKey::Long,
                _ => JavaKey::Text,
            };
        }
        self
    }

    /// How the program turns keys into bytes, as far as the hash determines it.
    pub const fn keys(&self) -> &'static [Keys] {
        match self.probe {
            Probe::JavaSeeds { .. } => &[Keys::Utf16],
            Probe::JavaSpread { .. } => &[Keys::Utf16, Keys::Int32, Keys::Int64],
            _ => ABOUT.keys,
        }
    }

    /// The key's bits, as SETBIT counts them; `None` if one is negative, which
    /// SETBIT refuses, so the key can't have been added.
    pub fn bits(&self, key: &[u8]) -> Option<Vec<u64>> {
        let mut bits = Vec::new();
        let all = self.probe.all(key, &self.modulus, |bit| {
            bits.push(match self.order {
                Order::Low => bit ^ 7,
                _ => bit,
            });
            true
        });
        all.then_some(bits)
    }

    /// The string ends at its last set bit; zeros are added.
    pub(crate) fn read(&self, string: &[u8]) -> Result<Opened, Error> {
        let bits = Bits::new(0, self.len, self.order);
        let (most, got) = (bits.bytes(), string.len() as u64);
        if got > most {
            let expected = format_args!("{most} bytes at most, by its number of bits");
            return Err(Error::corrupt(Format::Bitmap, "string", expected, got));
        }
        let file = with_zeros(string, most - got)?;
        let mut filter = PlainFile::of(Plain::with_modulus(bits, self.probe.clone(), self.modulus));
        filter.keys = Some(self.keys());
        Ok(Opened::new(filter, file))
    }
}
