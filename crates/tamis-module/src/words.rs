//! Parses the arguments after a command's key. Every word is either understood or refused.

use crate::error::Error;
use std::time::Duration;
use tamis::{
    Moment,
    window::{Renewal, Span, WindowOptions},
};

/// The most keys that a filter can be reserved for.
pub const MOST_KEYS: u64 = 1 << 30;
/// The longest time to live, in seconds: 30,000 years.
const MOST_SECONDS: u64 = 1_000_000_000_000;
/// The largest factor between the sizes of consecutive layers.
pub const MOST_EXPANSION: u64 = 32768;

/// The format of a new filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterLayout {
    /// Tamis's.
    Tamis,
    /// RedisBloom's.
    RedisBloom,
    /// valkey-bloom's, only for Bloom filters.
    Valkey,
}

/// The requested parameters of a filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    pub rate: Option<f64>,
    pub capacity: Option<u64>,
    /// With 0, the filter can't grow.
    pub expansion: Option<u32>,
    /// NONSCALING, which overrides the expansion.
    pub fixed: bool,
    pub bucket_size: Option<u16>,
    pub most_kicks: Option<u16>,
    pub layout: Option<FilterLayout>,
    /// How keys are hashed: with a secret, or without.
    pub secret: Option<Option<[u8; 16]>>,
    /// The seed of valkey-bloom's hash.
    pub seed: Option<[u8; 32]>,
    /// valkey-bloom's factor from each layer's rate to the next one's.
    pub tightening: Option<f64>,
    /// The number of items that the filter must be able to hold.
    pub scale_to: Option<u64>,
    /// Items can be counted and removed.
    pub counting: bool,
    /// It forgets.
    pub window: Option<WindowOptions>,
    /// The time at which the items were seen.
    pub at: Option<Moment>,
    /// The time to live of the key, in seconds.
    pub expire: Option<u64>,
    pub no_create: bool,
    pub if_missing: bool,
}

/// Parses an integer like the server does: refuses `+5`, `05` and ` 5`.
pub fn integer(word: &[u8], error: &'static str) -> Result<i64, Error> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let text = std::str::from_utf8(word).ok();
    let plain = digits.first().is_some_and(|first| first.is_ascii_digit())
        && (digits[0] != b'0' || word == b"0");
    text.filter(|_| plain)
        .and_then(|text| text.parse().ok())
        .ok_or(Error::new(error))
}

/// Parses a number like the server does: refuses NaN and numbers too large for a double.
fn real(word: &[u8], error: &'static str) -> Result<f64, Error> {
    let text = std::str::from_utf8(word).ok();
    let number: Option<f64> = text.and_then(|text| text.parse().ok());
    let mantissa = || word.split(|byte| matches!(byte, b'e' | b'E')).next();
    let is_held = |number: &f64| {
        let digits = mantissa().unwrap_or_default().iter();
        let mut digits = digits.filter(|byte| byte.is_ascii_digit());
        match number.abs() {
            0.0 => digits.all(|digit| *digit == b'0'),
            f64::INFINITY => digits.next().is_none(),
            number => !number.is_nan(),
        }
    };
    number.filter(is_held).ok_or(Error::new(error))
}

/// A rate between 0 and 1.
pub fn rate(word: &[u8], bad: &'static str, range: &'static str) -> Result<f64, Error> {
    let rate = real(word, bad)?;
    let is_rate = rate > 0.0 && rate < 1.0;
    is_rate.then_some(rate).ok_or(Error::new(range))
}

/// The error of RESERVE for a rate out of range.
pub const RATES: &str = "ERR error rate must be in the range (0.000000, 1.000000)";

fn within(
    word: &[u8],
    bad: &'static str,
    range: std::ops::RangeInclusive<u64>,
    text: &'static str,
) -> Result<u64, Error> {
    // A negative number is a number, but out of range.
    let value = u64::try_from(integer(word, bad)?).map_err(|_| Error::new(text))?;
    range
        .contains(&value)
        .then_some(value)
        .ok_or(Error::new(text))
}

fn bloom_expansion(word: &[u8], bad: &'static str, text: &'static str) -> Result<u32, Error> {
    within(word, bad, 0..=MOST_EXPANSION, text).map(|value| value as u32)
}

fn arity(command: &str) -> Error {
    Error(format!("ERR wrong number of arguments for '{command}' command").into())
}

/// Seconds with a fraction, exact to the microsecond.
fn seconds(word: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(word).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let micros: u32 = format!("{fraction:0<6}").parse().ok()?;
    let span = Duration::new(whole.parse().ok()?, micros * 1_000);
    (!span.is_zero()).then_some(span)
}

/// Microseconds since 1970.
pub fn moment(word: &[u8]) -> Result<Moment, Error> {
    let bad = "ERR AT must be a time in microseconds since 1970";
    integer(word, bad).map(Moment::from_micros)
}

/// The words about windows.
#[derive(Default)]
struct WindowWords {
    span: Option<Duration>,
    generations: Option<u32>,
    quiet: bool,
}

impl WindowWords {
    /// Parses one of WINDOW, GENERATIONS and QUIET.
    fn take(&mut self, word: &str, words: &mut Words<'_, '_>) -> Result<(), Error> {
        let bad = match word {
            "QUIET" => {
                self.quiet = true;
                return Ok(());
            }
            "WINDOW" => "ERR WINDOW must be a number of seconds above 0, such as 86400 or 0.5",
            _ => "ERR bad generations",
        };
        let value = words.value().map_err(|_| Error::new(bad))?;
        if word == "WINDOW" {
            self.span = Some(seconds(value).ok_or(Error::new(bad))?);
        } else {
            let number = u32::try_from(integer(value, bad)?);
            self.generations = Some(number.map_err(|_| Error::new(bad))?);
        }
        Ok(())
    }

    /// The resulting options, checked against the other words.
    fn options(self, wish: &Wish) -> Result<Option<WindowOptions>, Error> {
        let refuse = |text| Err(Error::new(text));
        let Some(span) = self.span else {
            if self.quiet || self.generations.is_some() {
                return refuse("ERR GENERATIONS and QUIET need a WINDOW");
            }
            return Ok(None);
        };
        if wish.fixed || wish.expansion.is_some() {
            return refuse(
                "ERR WINDOW goes with neither EXPANSION nor NONSCALING: a window forgets and doesn't grow",
            );
        }
        if wish.counting || wish.layout == Some(FilterLayout::RedisBloom) {
            return refuse("ERR WINDOW goes with neither COUNTING nor RedisBloom's layout");
        }
        if wish.seed.is_some() || wish.tightening.is_some() || wish.scale_to.is_some() {
            return refuse("ERR WINDOW goes with none of SEED, TIGHTENING and VALIDATESCALETO");
        }
        let mut options = WindowOptions::new(Span::Time(span));
        if let Some(generations) = self.generations {
            options = options.generations(generations);
        }
        if self.quiet {
            options = options.renewal(Renewal::Quiet);
        }
        Ok(Some(options))
    }
}

/// Reads words in order; each may occur once.
struct Words<'w, 'a> {
    command: &'static str,
    rest: &'w [&'a [u8]],
    seen: Vec<&'static str>,
}

impl<'w, 'a> Words<'w, 'a> {
    fn new(command: &'static str, rest: &'w [&'a [u8]]) -> Self {
        let seen = Vec::new();
        Self {
            command,
            rest,
            seen,
        }
    }

    /// The next word, as one of `known`.
    fn next(&mut self, known: &[&'static str]) -> Result<Option<&'static str>, Error> {
        let Some((word, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        let known = known
            .iter()
            .find(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        let unknown = || {
            // RedisBloom's RESERVE ignores unknown words; its INSERT replies with this.
            if self.command.contains("insert") {
                return Error::new("Unknown argument received");
            }
            let word = word[..word.len().min(64)].escape_ascii();
            Error(format!("ERR Unknown argument received: '{word}'").into())
        };
        let known = *known.ok_or_else(unknown)?;
        if self.seen.contains(&known) {
            return Err(Error(format!("ERR {known} was given twice").into()));
        }
        self.seen.push(known);
        self.rest = rest;
        Ok(Some(known))
    }

    /// The value of a word; reports a missing one as a missing argument.
    fn value(&mut self) -> Result<&'a [u8], Error> {
        let missing = || arity(self.command);
        let (value, rest) = self.rest.split_first().ok_or_else(missing)?;
        self.rest = rest;
        Ok(value)
    }
}

impl Wish {
    /// Words with a value that both RESERVE commands accept: the time to live, and those that a server sends to its
    /// replicas so that they create the same filter, whatever their own options.
    fn made(&mut self, word: &str, words: &mut Words<'_, '_>) -> Result<(), Error> {
        let value = words.value()?;
        match word {
            "LAYOUT" if value.eq_ignore_ascii_case(b"tamis") => {
                self.layout = Some(FilterLayout::Tamis)
            }
            "LAYOUT" if value.eq_ignore_ascii_case(b"redisbloom") => {
                self.layout = Some(FilterLayout::RedisBloom);
            }
            "LAYOUT" => return Err(Error::new("ERR LAYOUT must be tamis or redisbloom")),
            "EX" => {
                let bad = "ERR invalid expire time";
                self.expire = Some(within(value, bad, 1..=MOST_SECONDS, bad)?);
            }
            _ if value.eq_ignore_ascii_case(b"none") => self.secret = Some(None),
            _ => {
                let secret = value.try_into();
                let secret =
                    secret.map_err(|_| Error::new("ERR SECRET must be NONE or 16 bytes"))?;
                self.secret = Some(Some(secret));
            }
        }
        Ok(())
    }

    /// Parses the words of BF.RESERVE after the key.
    pub fn bloom_reserve(words: &[&[u8]]) -> Result<Self, Error> {
        let [rate_word, capacity, rest @ ..] = words else {
            return Err(arity("bf.reserve"));
        };
        let rate = rate(rate_word, "ERR bad error rate", RATES)?;
        let range = "ERR capacity must be in the range [1, 1073741824]";
        let capacity = within(capacity, "ERR bad capacity", 1..=MOST_KEYS, range)?;
        let mut wish = Self {
            rate: Some(rate),
            capacity: Some(capacity),
            ..Self::default()
        };
        let mut window = WindowWords::default();
        let mut words = Words::new("bf.reserve", rest);
        let known = [
            "EXPANSION",
            "NONSCALING",
            "COUNTING",
            "WINDOW",
            "GENERATIONS",
            "QUIET",
            "NX",
            "IFNOTEXISTS",
            "EX",
            "LAYOUT",
            "SECRET",
        ];
        while let Some(word) = words.next(&known)? {
            match word {
                "COUNTING" => wish.counting = true,
                "EXPANSION" => {
                    let value = words.value().map_err(|_| Error::new("ERR no expansion"))?;
                    let range = "ERR expansion must be in the range [0, 32768]";
                    wish.expansion = Some(bloom_expansion(value, "ERR bad expansion", range)?);
                }
                "NONSCALING" => wish.fixed = true,
                "NX" | "IFNOTEXISTS" => wish.if_missing = true,
                "WINDOW" | "GENERATIONS" | "QUIET" => window.take(word, &mut words)?,
                made => wish.made(made, &mut words)?,
            }
        }
        wish.window = window.options(&wish)?;
        let growing = matches!(wish.expansion, Some(1..));
        if wish.counting && (growing || wish.layout == Some(FilterLayout::RedisBloom)) {
            return Err(Error::new(
                "ERR COUNTING goes with neither EXPANSION nor RedisBloom's layout",
            ));
        }
        if wish.fixed && growing {
            return Err(Error::new("Nonscaling filters cannot expand"));
        }
        Ok(wish)
    }

    /// Parses the words of BF.INSERT after the key; also returns where the items begin.
    pub fn bloom_insert(all: &[&[u8]]) -> Result<(Self, usize), Error> {
        let mut wish = Self::default();
        let mut window = WindowWords::default();
        let mut words = Words::new("bf.insert", all);
        let known = [
            "CAPACITY",
            "ERROR",
            "EXPANSION",
            "NOCREATE",
            "NONSCALING",
            "WINDOW",
            "GENERATIONS",
            "QUIET",
            "AT",
            "SEED",
            "TIGHTENING",
            "VALIDATESCALETO",
            "ITEMS",
        ];
        loop {
            match words.next(&known)? {
                // Here RedisBloom has the same text for numbers out of range and for words that aren't numbers.
                Some("CAPACITY") => {
                    let bad = "Bad capacity";
                    wish.capacity = Some(within(words.value()?, bad, 1..=MOST_KEYS, bad)?);
                }
                Some("ERROR") => {
                    let bad = "Bad error rate";
                    wish.rate = Some(rate(words.value()?, bad, bad)?);
                }
                Some("EXPANSION") => {
                    let bad = "Bad expansion";
                    wish.expansion = Some(bloom_expansion(words.value()?, bad, bad)?);
                }
                Some("NOCREATE") => wish.no_create = true,
                Some("NONSCALING") => wish.fixed = true,
                Some("SEED") => {
                    let seed = words.value()?.try_into();
                    wish.seed = Some(seed.map_err(|_| Error::new("ERR invalid seed"))?);
                }
                Some("TIGHTENING") => {
                    let bad = "ERR bad tightening ratio";
                    let ratio = real(words.value()?, bad)?;
                    let range = "ERR (0 < tightening ratio range < 1)";
                    let ratio = Some(ratio).filter(|ratio| *ratio > 0.0 && *ratio < 1.0);
                    wish.tightening = Some(ratio.ok_or(Error::new(range))?);
                }
                Some("VALIDATESCALETO") => {
                    let bad = "ERR bad capacity";
                    wish.scale_to = Some(within(words.value()?, bad, 1..=i64::MAX as u64, bad)?);
                }
                Some("AT") => wish.at = Some(moment(words.value()?)?),
                Some(word @ ("WINDOW" | "GENERATIONS" | "QUIET")) => {
                    window.take(word, &mut words)?;
                }
                // valkey-bloom announces a filter to its replicas without items.
                Some(_) if !words.rest.is_empty() || wish.seed.is_some() => break,
                None if wish.seed.is_some() => break,
                Some(_) | None => return Err(arity("bf.insert")),
            }
        }
        wish.window = window.options(&wish)?;
        if wish.fixed && wish.scale_to.is_some() {
            return Err(Error::new(
                "ERR cannot use NONSCALING and VALIDATESCALETO options together",
            ));
        }
        Ok((wish, all.len() - words.rest.len()))
    }

    /// Parses the words of CF.RESERVE after the key.
    pub fn cuckoo_reserve(words: &[&[u8]]) -> Result<Self, Error> {
        let [capacity, rest @ ..] = words else {
            return Err(arity("cf.reserve"));
        };
        // Its range depends on later words.
        integer(capacity, "Bad capacity")?;
        let mut wish = Self::default();
        let mut words = Words::new("cf.reserve", rest);
        let known = [
            "BUCKETSIZE",
            "MAXITERATIONS",
            "EXPANSION",
            "ERROR",
            "NX",
            "IFNOTEXISTS",
            "EX",
            "LAYOUT",
            "SECRET",
        ];
        while let Some(word) = words.next(&known)? {
            match word {
                "BUCKETSIZE" => {
                    let bad = "Couldn't parse BUCKETSIZE";
                    let range = "BUCKETSIZE: value must be in the range [1, 255]";
                    wish.bucket_size = Some(within(words.value()?, bad, 1..=255, range)? as u16);
                }
                "MAXITERATIONS" => {
                    let bad = "Couldn't parse MAXITERATIONS";
                    let range = "MAXITERATIONS: value must be in the range [1, 65535]";
                    wish.most_kicks = Some(within(words.value()?, bad, 1..=65535, range)? as u16);
                }
                "EXPANSION" => {
                    let bad = "Couldn't parse EXPANSION";
                    let range = "EXPANSION: value must be in the range [0, 32768]";
                    let value = within(words.value()?, bad, 0..=MOST_EXPANSION, range)?;
                    wish.expansion = Some(value as u32);
                }
                "ERROR" => {
                    wish.rate = Some(rate(words.value()?, "ERR bad error rate", RATES)?);
                }
                "NX" | "IFNOTEXISTS" => wish.if_missing = true,
                made => wish.made(made, &mut words)?,
            }
        }
        let least = wish.bucket_size.map_or(1, |size| 2 * u64::from(size));
        let range = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
        wish.capacity = Some(within(capacity, range, least..=MOST_KEYS, range)?);
        if wish.layout == Some(FilterLayout::RedisBloom) && wish.rate.is_some() {
            return Err(Error::new(
                "ERR the redisbloom layout has fingerprints of one byte: no ERROR can be asked for",
            ));
        }
        Ok(wish)
    }

    /// Parses the words of CF.INSERT and CF.INSERTNX after the key; also returns where the items begin.
    pub fn cuckoo_insert(command: &'static str, all: &[&[u8]]) -> Result<(Self, usize), Error> {
        let mut wish = Self::default();
        let mut words = Words::new(command, all);
        loop {
            match words.next(&["CAPACITY", "NOCREATE", "ITEMS"])? {
                Some("CAPACITY") => {
                    let value = words.value()?;
                    let range = "Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
                    wish.capacity = Some(within(value, "Bad capacity", 1..=MOST_KEYS, range)?);
                }
                Some("NOCREATE") => wish.no_create = true,
                Some(_) if !words.rest.is_empty() => {
                    return Ok((wish, all.len() - words.rest.len()));
                }
                Some(_) | None => return Err(arity(command)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ')
            .filter(|word| !word.is_empty())
            .map(str::as_bytes)
            .collect()
    }

    #[test]
    fn every_word_is_read_or_refused() {
        let wish = Wish::bloom_reserve(&words("0.01 1000 expansion 4 nx")).unwrap();
        assert_eq!(
            (wish.rate, wish.capacity, wish.expansion),
            (Some(0.01), Some(1000), Some(4))
        );
        assert!(wish.if_missing);
        for (line, text) in [
            ("x 1", "ERR bad error rate"),
            (
                "1 1",
                "ERR error rate must be in the range (0.000000, 1.000000)",
            ),
            ("nan 1", "ERR bad error rate"),
            ("1e-400 1", "ERR bad error rate"),
            ("0.1 x", "ERR bad capacity"),
            (
                "0.1 -1",
                "ERR capacity must be in the range [1, 1073741824]",
            ),
            (
                "0.1 4294967296",
                "ERR capacity must be in the range [1, 1073741824]",
            ),
            ("0.1 99999999999999999999999", "ERR bad capacity"),
            ("0.1 +5", "ERR bad capacity"),
            ("0.1 05", "ERR bad capacity"),
            ("0.1 5 EXPANSION 02", "ERR bad expansion"),
            ("0.1 5 EX 0", "ERR invalid expire time"),
            (
                "0.1 5 COUNTING EXPANSION 2",
                "ERR COUNTING goes with neither EXPANSION nor RedisBloom's layout",
            ),
            ("0.1 1 EXPANSION", "ERR no expansion"),
            ("0.1 1 EXPANSION x", "ERR bad expansion"),
            (
                "0.1 1 EXPANSION 2 NONSCALING",
                "Nonscaling filters cannot expand",
            ),
            ("0.1 1 FOO", "ERR Unknown argument received: 'FOO'"),
            ("0.1 1 NX NX", "ERR NX was given twice"),
        ] {
            assert_eq!(
                Wish::bloom_reserve(&words(line)).unwrap_err().0,
                text,
                "{line}"
            );
        }
        let wish = Wish::bloom_reserve(&words("0.1 5 window 0.5 Quiet generations 4")).unwrap();
        let half = Span::Time(Duration::from_millis(500));
        let options = WindowOptions::new(half).generations(4);
        assert_eq!(wish.window, Some(options.renewal(Renewal::Quiet)));
        let (wish, _) = Wish::bloom_insert(&words("WINDOW 86400.000001 AT -7 ITEMS AT")).unwrap();
        let day = Span::Time(Duration::from_micros(86_400_000_001));
        assert_eq!(wish.window, Some(WindowOptions::new(day)));
        assert_eq!(wish.at, Some(Moment::from_micros(-7)));
        let (wish, at) =
            Wish::bloom_insert(&words("ERROR 0.1 CAPACITY 5 NOCREATE ITEMS a items")).unwrap();
        assert!(wish.no_create && at == 6);
        for line in [
            "ITEMS",
            "",
            "a b",
            "CAPACITY 5",
            "ERROR 2 ITEMS a",
            "NONSCALING VALIDATESCALETO 100 ITEMS a",
            "SEED short ITEMS a",
            "TIGHTENING 1 ITEMS a",
        ] {
            assert!(Wish::bloom_insert(&words(line)).is_err(), "{line}");
        }
        let (wish, _) = Wish::bloom_insert(&words("NONSCALING EXPANSION 2 ITEMS a")).unwrap();
        assert!(wish.fixed && wish.expansion == Some(2));
        for line in [
            "10 BUCKETSIZE 6",
            "10 ERROR 0.1 LAYOUT redisbloom",
            "10 EXPANSION -1",
            "0",
            "4 SECRET 3",
        ] {
            assert!(Wish::cuckoo_reserve(&words(line)).is_err(), "{line}");
        }
        assert!(
            Wish::cuckoo_reserve(&words("10 BUCKETSIZE 5 MAXITERATIONS 3 EXPANSION 0")).is_ok()
        );
        assert_eq!(
            Wish::cuckoo_insert("cf.insert", &words("CAPACITY 5 ITEMS a"))
                .unwrap()
                .1,
            3
        );
    }
}
