//! The kinds of filter.

use std::fmt;

/// The kinds of filter a file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The textbook Bloom filter.
    Bloom = 1,
    /// Bloom bits of a key within one or two 64-byte lines: the default.
    Blocked = 2,
    /// Blocked with 4-bit counters instead of bits: keys can be removed.
    Counting = 3,
    /// Fingerprints in two places: keys can be removed, and it is small.
    Cuckoo = 4,
    /// Layers of blocked filters, for an unknown number of keys.
    Growing = 5,
    /// A finished list: fast to build and query, smaller than Bloom.
    Fuse = 6,
    /// A finished list: the smallest.
    Ribbon = 7,
    /// A finished block list with an allow list, never wrong about a key on
    /// either.
    Cascade = 8,
    /// Fingerprints with the time at which they were seen, forgotten after a while: for streams.
    Window = 9,
}

impl Kind {
    /// Every kind, in the order of their numbers in the file.
    pub const ALL: [Self; 9] = [
        Self::Bloom,
        Self::Blocked,
        Self::Counting,
        Self::Cuckoo,
        Self::Growing,
        Self::Fuse,
        Self::Ribbon,
        Self::Cascade,
        Self::Window,
    ];

    /// The name used on the command line.
    ///
    /// ```
    /// assert_eq!(tamis::Kind::Blocked.name(), "blocked");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Blocked => "blocked",
            Self::Counting => "counting",
            Self::Cuckoo => "cuckoo",
            Self::Growing => "growing",
            Self::Fuse => "fuse",
            Self::Ribbon => "ribbon",
            Self::Cascade => "cascade",
            Self::Window => "window",
        }
    }

    /// Whether it is built from all its keys at once and accepts no more; see
    /// [`ListBuilder`](crate::ListBuilder).
    ///
    /// ```
    /// use tamis::Kind;
    /// assert!(Kind::Fuse.is_static() && !Kind::Blocked.is_static());
    /// ```
    pub const fn is_static(self) -> bool {
        matches!(self, Self::Fuse | Self::Ribbon | Self::Cascade)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
