//! The contenders, and what each can do.

use serde::Serialize;
use tamis::Kind;

/// A structure that holds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    HashSet,
    Digests,
    Bitmap,
    /// A bit for each key, by one hash.
    OneHash,
    Sqlite,
    Redb,
    Filter(Kind),
}

/// What may be asked of it besides "is this key in it?".
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Need {
    /// Keys are added later
    Add,
    /// Keys are removed
    Delete,
    /// Nobody knows how many keys there will be
    Grow,
    /// No answer may be wrong
    Exact,
    /// The keys must be listed, or come with values
    List,
}

impl Need {
    pub(crate) const ALL: [Self; 5] =
        [Self::Add, Self::Delete, Self::Grow, Self::Exact, Self::List];

    /// Completes "If you need to …".
    pub(crate) const fn to_do(self) -> &'static str {
        match self {
            Self::Add => "add keys later",
            Self::Delete => "remove keys",
            Self::Grow => "add any number of keys",
            Self::Exact => "be certain of every answer",
            Self::List => "list the keys",
        }
    }
}

impl Contender {
    pub(crate) const ALL: [Self; 14] = [
        Self::HashSet,
        Self::Digests,
        Self::Bitmap,
        Self::OneHash,
        Self::Sqlite,
        Self::Redb,
        Self::Filter(Kind::Bloom),
        Self::Filter(Kind::Blocked),
        Self::Filter(Kind::Counting),
        Self::Filter(Kind::Cuckoo),
        Self::Filter(Kind::Growing),
        Self::Filter(Kind::Fuse),
        Self::Filter(Kind::Ribbon),
        Self::Filter(Kind::Cascade),
    ];

    /// The name, for people and programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HashSet => "hash-set",
            Self::Digests => "digests",
            Self::Bitmap => "bitmap",
            Self::OneHash => "one-hash",
            Self::Sqlite => "sqlite",
            Self::Redb => "redb",
            Self::Filter(kind) => kind.name(),
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
            format!("no contender '{name}'; there are {}", names.join(", "))
        })
    }

    /// Whether one process writes a file and another queries it. Others are built in the process that queries them.
    pub(crate) const fn is_file(self) -> bool {
        matches!(self, Self::Sqlite | Self::Redb | Self::Filter(_))
    }

    pub(crate) const fn is_filter(self) -> bool {
        matches!(self, Self::Filter(_))
    }

    /// Whether it is queried on disk, so that its size isn't memory.
    pub(crate) const fn is_database(self) -> bool {
        matches!(self, Self::Sqlite | Self::Redb)
    }

    /// Whether its size depends on the number of keys.
    pub(crate) const fn is_sized_by_keys(self) -> bool {
        !matches!(self, Self::Bitmap)
    }

    pub(crate) fn serves(self, need: Need) -> bool {
        use Need::{Add, Delete, Exact, Grow, List};
        let served: &[Need] = match self {
            Self::HashSet | Self::Sqlite | Self::Redb => &Need::ALL,
            // Within its range, which must be known in advance.
            Self::Bitmap => &[Add, Delete, Exact, List],
            // An array: each new key would move half of the others.
            Self::Digests => &[Exact],
            Self::OneHash | Self::Filter(Kind::Bloom | Kind::Blocked) => &[Add],
            Self::Filter(Kind::Counting | Kind::Cuckoo) => &[Add, Delete],
            Self::Filter(Kind::Growing) => &[Add, Grow],
            Self::Filter(_) => &[],
        };
        served.contains(&need)
    }
}

/// The bytes of a bitmap with one hash for this many keys: with `n` keys in `m` bits, a bit is set with probability
/// `1 - (1 - 1/m)^n`, which must be the rate.
pub(super) fn one_hash_bytes(keys: f64, rate: f64) -> f64 {
    let bits = keys / -(-rate).ln_1p();
    (bits / 64.0).ceil() * 8.0
}
