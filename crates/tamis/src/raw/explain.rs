//! Explains a filter's answer for a key: what it reads, and what it finds there.

use crate::raw::word::Word;

/// Why a filter gives its answer for a key; see [`AnyFilter::explain`](crate::AnyFilter::explain).
///
/// ```
/// use tamis::internals::raw::Look;
/// use tamis::{AnyFilter, Hasher, Plan};
/// let mut toy = AnyFilter::from_plan(&Plan::of_bits(16, Some(3), None)?, Hasher::default())?;
/// toy.insert("apple")?;
/// let why = toy.explain(toy.hasher().hash(b"apple"));
/// let Look::Cells { cells, .. } = &why.looks[0] else { panic!("a Bloom filter has bits") };
/// assert!(cells.len() == 3 && cells.iter().all(|bit| bit.value == 1));
/// assert!(why.is_maybe() && toy.contains("apple"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// How the answers of several looks combine.
    pub joined: Joined,
    /// The looks: one for each layer of a growing filter, oldest first, or for each level of a
    /// cascade, and a single one for every other kind.
    pub looks: Vec<Look>,
}

/// How the answers of several looks combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// One "maybe" is enough: a key is in one of the layers.
    Layers,
    /// All must say "maybe": a key has to pass every level.
    Levels,
}

/// One look at a filter, or at a layer or level of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Look {
    /// Bits or counters, none of which may be zero.
    Cells {
        /// The key's cells, in the order of the look-up.
        cells: Vec<Cell>,
        /// All cells, if there are at most 512; otherwise empty.
        all: Vec<u64>,
    },
    /// Slots, one of which must hold the key's fingerprint.
    Slots {
        /// The stored part of the key.
        fingerprint: u64,
        /// The slots of each place that it may be in.
        places: Vec<Vec<Slot>>,
    },
    /// Slots or rows of a table, whose exclusive or must be the key's fingerprint.
    Sum {
        /// The stored part of the key.
        fingerprint: u64,
        /// The key's cells, in the order of the table.
        cells: Vec<Cell>,
    },
    /// A part of the file without a filter, which may hold any key. Only files of other systems
    /// have such parts.
    Unknown,
}

/// A bit, a counter, a slot or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The line, block or shard that it is in, if there are any.
    pub line: Option<u64>,
    /// Its number there.
    pub at: u64,
    /// Its value.
    pub value: u64,
}

/// A slot that may hold the fingerprint of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its number.
    pub at: u64,
    /// The fingerprint in it; `None` if it is empty.
    pub holds: Option<u64>,
    /// Whether this is the key's. Otherwise an equal fingerprint may be here for another place.
    pub is_it: bool,
}

/// The most cells of which [`Look::Cells`] lists all.
const FEW: u64 = 512;

/// All cells, if there are few enough to list.
pub(crate) fn all_of(len: u64, cell: impl Fn(u64) -> u64) -> Vec<u64> {
    match len {
        ..=FEW => (0..len).map(cell).collect(),
        _ => Vec::new(),
    }
}

/// A bit in a slice of words.
pub(crate) fn bit<W: Word>(words: &[W], at: u64) -> u64 {
    words[(at / 64) as usize].get() >> (at % 64) & 1
}

impl Look {
    /// The look at a filter of the empty set: no cells, and a fingerprint of 1, which they don't
    /// give.
    pub const NOTHING: Self = Self::Sum {
        fingerprint: 1,
        cells: Vec::new(),
    };

    /// Whether the key may be there.
    #[must_use]
    pub fn is_maybe(&self) -> bool {
        match self {
            Self::Cells { cells, .. } => cells.iter().all(|cell| cell.value > 0),
            Self::Slots { places, .. } => places.iter().flatten().any(|slot| slot.is_it),
            Self::Sum { fingerprint, cells } => sum(cells) == *fingerprint,
            Self::Unknown => true,
        }
    }
}

/// The exclusive or of the cells of a [`Look::Sum`].
///
/// ```
/// use tamis::internals::raw::{Cell, sum};
/// let cell = |value| Cell { line: None, at: 0, value };
/// assert_eq!(sum(&[cell(0b110), cell(0b011)]), 0b101);
/// ```
#[must_use]
pub fn sum(cells: &[Cell]) -> u64 {
    cells.iter().fold(0, |sum, cell| sum ^ cell.value)
}

impl Explanation {
    /// For a filter with a single look.
    #[must_use]
    pub fn of(look: Look) -> Self {
        Self {
            joined: Joined::Layers,
            looks: vec![look],
        }
    }

    /// The filter's answer. "No" is certain.
    #[must_use]
    pub fn is_maybe(&self) -> bool {
        match self.joined {
            Joined::Layers => self.looks.iter().any(Look::is_maybe),
            Joined::Levels => self.looks.iter().all(Look::is_maybe),
        }
    }
}
