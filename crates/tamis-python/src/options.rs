//! Arguments shared by several calls: kind, hash and secret.

use crate::error::{Failure, Result};
use crate::lock::lock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use tamis::internals::raw::BloomShape;
use tamis::{
    Error, Hasher, KeyRule, Kind, Open, Plan, SecretKey,
    window::{Span, WindowOptions},
};

/// The plan of a filter of this kind, by rate or size. Planning takes longer than creating a small filter, so the
/// latest few plans are cached.
pub(crate) fn plan(kind: Kind, keys: u64, size: Result<f64, u64>) -> Result<Plan> {
    type Asked = (Kind, u64, bool, u64);
    const FEW: usize = 8;
    static LATEST: Mutex<VecDeque<(Asked, Plan)>> = Mutex::new(VecDeque::new());
    let asked = match size {
        Ok(rate) => (kind, keys, true, rate.to_bits()),
        Err(bytes) => (kind, keys, false, bytes),
    };
    if let Some((_, plan)) = lock(&LATEST).iter().find(|(other, _)| *other == asked) {
        return Ok(*plan);
    }
    let plan = match size {
        Ok(rate) => Plan::for_rate(kind, keys, rate)?,
        Err(bytes) => Plan::for_size(kind, keys, bytes)?,
    };
    let mut latest = lock(&LATEST);
    latest.truncate(FEW - 1);
    latest.push_front((asked, plan));
    Ok(plan)
}

/// The plan of a window. A window of the last keys is made for that many.
pub(crate) fn plan_window(window: &WindowOptions, n: Option<u64>, rate: f64) -> Result<Plan> {
    let keys = match (window.span(), n) {
        (Span::Keys(last), None) => last,
        (Span::Keys(last), Some(n)) if n == last => last,
        (Span::Keys(_), Some(_)) => {
            return Err(Failure::parameter(
                "n: expected none beside last, got another number; a window of the last keys \
                 has that many",
            ));
        }
        (Span::Time(_), Some(n)) => n,
        (Span::Time(_), None) => {
            return Err(Failure::parameter(
                "n: expected how many keys the window has at most, got nothing",
            ));
        }
    };
    Ok(Plan::window(window, keys, rate)?)
}

/// The parameters of a textbook filter, if set.
#[derive(Clone, Copy)]
pub(crate) struct Textbook {
    pub(crate) bits: Option<Count>,
    pub(crate) hashes: Option<u32>,
}

impl Textbook {
    /// A filter of exactly the given numbers, if there are any.
    pub(crate) fn plan(
        self,
        kind: Kind,
        n: Option<u64>,
        p: Option<f64>,
        size: Option<Count>,
    ) -> Result<Option<Plan>> {
        if self.bits.is_none() && self.hashes.is_none() {
            return Ok(None);
        }
        let refuse = |text: &str| Err(Failure::parameter(text));
        if kind != Kind::Bloom {
            return refuse("bits, hashes: expected kind=\"bloom\" beside them, got another kind");
        }
        if p.is_some() {
            return refuse(
                "p: expected none beside bits and hashes, got one; it follows from them",
            );
        }
        let bits = match (self.bits, size) {
            (Some(_), Some(_)) => return refuse("bits, size: expected one of them, got both"),
            (None, None) => return refuse("hashes: expected bits or size beside it, got neither"),
            (Some(bits), None) => bits.0,
            (None, Some(size)) => BloomShape::bits_within(size.0),
        };
        Ok(Some(Plan::of_bits(bits, self.hashes, n)?))
    }
}

/// The number of threads to use; 0 means one per core.
pub(crate) fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    }
}

/// Requirements that decide the kind of a filter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Need {
    pub(crate) delete: bool,
    pub(crate) grow: bool,
    pub(crate) finished: bool,
    /// Whether several processes write the file at the same time.
    pub(crate) shared: bool,
    /// The window to remember, if it should forget.
    pub(crate) window: Option<WindowOptions>,
}

impl Need {
    pub(crate) fn of(delete: bool, grow: bool) -> Self {
        Self {
            delete,
            grow,
            ..Self::default()
        }
    }

    /// The same for a file or server with several writers.
    pub(crate) fn in_file(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }

    /// The suitable kinds; the first one is preferred if sizes are equal.
    fn kinds(self) -> Result<&'static [Kind]> {
        let Self {
            delete,
            grow,
            finished,
            shared,
            ..
        } = self;
        if [delete, grow, finished]
            .into_iter()
            .filter(|need| *need)
            .count()
            > 1
        {
            return Err(Failure::parameter(
                "delete, grow, finished: expected one of them at most, got several; \
                 no kind of filter does both",
            ));
        }
        Ok(match (delete, grow, finished, shared) {
            (true, _, _, true) => &[Kind::Counting],
            (true, ..) => &[Kind::Cuckoo, Kind::Counting],
            (_, true, ..) => &[Kind::Growing],
            (_, _, true, _) => &[Kind::Fuse],
            _ => &[Kind::Blocked],
        })
    }

    /// The plan of the named kind, or else of the smallest suitable one.
    pub(crate) fn plan(
        self,
        kind: Option<&str>,
        make: impl Fn(Kind) -> Result<Plan>,
    ) -> Result<Plan> {
        let kinds = self.kinds()?;
        if let Some(name) = kind {
            let kind = parse_kind(name)?;
            let serves = kinds.contains(&kind)
                || kinds == [Kind::Blocked]
                || (self.finished && kind.is_static());
            return if serves {
                make(kind)
            } else {
                Err(Failure::parameter(format!(
                    "kind: expected one that serves what else was asked ({}), got {name:?}",
                    kinds
                        .iter()
                        .map(|kind| kind.name())
                        .collect::<Vec<_>>()
                        .join(", ")
                )))
            };
        }
        let mut best: Result<Plan> = make(kinds[0]);
        for kind in &kinds[1..] {
            let other = make(*kind);
            if match (&best, &other) {
                (Ok(best), Ok(other)) => other.bytes() < best.bytes(),
                (Err(_), Ok(_)) => true,
                _ => false,
            } {
                best = other;
            }
        }
        best
    }
}

pub(crate) fn parse_kind(name: &str) -> Result<Kind> {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| {
            Failure::parameter(format!(
                "kind: expected one of {}, got {name:?}",
                Kind::ALL.map(Kind::name).join(", ")
            ))
        })
}

/// How keys are hashed: with a seed, a random secret in the filter, or a secret kept outside it; and by which rule.
pub(crate) fn hasher(
    seed: Option<Count>,
    keyed: bool,
    key: Option<&Bound<'_, PyAny>>,
    key_file: Option<PathBuf>,
    rule: KeyRule,
) -> Result<Hasher> {
    let secret = given_secret(key, key_file, SecretKey::load_or_create)?;
    let hasher = match (seed, keyed, secret) {
        (Some(_), true, _) | (Some(_), _, Some(_)) => {
            return Err(Failure::parameter(
                "seed: expected none beside a secret key, got one; the key takes its place",
            ));
        }
        (_, _, Some(secret)) => Hasher::keyed_apart(secret),
        (_, true, None) => Hasher::keyed(SecretKey::random()?),
        (seed, ..) => Hasher::seeded(seed.map_or(0, |seed| seed.0)),
    };
    Ok(hasher.with_rule(rule))
}

/// The secret, from either of the two arguments.
fn given_secret(
    key: Option<&Bound<'_, PyAny>>,
    key_file: Option<PathBuf>,
    load: fn(PathBuf) -> Result<SecretKey, Error>,
) -> Result<Option<SecretKey>> {
    match (key, key_file) {
        (Some(_), Some(_)) => Err(Failure::parameter(
            "key, key_file: expected one of them, got both",
        )),
        (Some(key), None) => secret(key).map(Some),
        (None, Some(path)) => Ok(Some(load(path)?)),
        (None, None) => Ok(None),
    }
}

/// Which differences between text keys don't count: [`rule`] for keys that are tuples of this many values.
pub(crate) fn rule_of(ignore_case: bool, url: bool, values: usize) -> Result<KeyRule> {
    rule(ignore_case, url).of_values(values).ok_or_else(|| {
        Failure::parameter(format!(
            "values: expected 1, or 2 to 255 for keys that are tuples of so many, got {values}"
        ))
    })
}

pub(crate) fn rule(ignore_case: bool, url: bool) -> KeyRule {
    let mut rule = KeyRule::EXACT;
    if ignore_case {
        rule = rule.ignore_case();
    }
    if url {
        rule = rule.url();
    }
    rule
}

/// Options for opening a filter, with the secret if there is one.
pub(crate) fn open(key: Option<&Bound<'_, PyAny>>, key_file: Option<PathBuf>) -> Result<Open> {
    let secret = given_secret(key, key_file, SecretKey::load)?;
    Ok(secret.map_or(Open::new(), |secret| Open::new().key(secret)))
}

fn secret(key: &Bound<'_, PyAny>) -> Result<SecretKey> {
    let bytes = key.cast::<PyBytes>().map(|key| key.as_bytes());
    match bytes.map(<[u8; 16]>::try_from) {
        Ok(Ok(key)) => Ok(SecretKey::new(key)),
        Ok(Err(_)) | Err(_) => Err(Failure::parameter(
            "key: expected 16 bytes, e.g. secrets.token_bytes(16), got something else",
        )),
    }
}

/// A count: a non-negative integer.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) u64);
