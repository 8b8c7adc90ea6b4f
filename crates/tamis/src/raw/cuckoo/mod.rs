//! The cuckoo filter: fingerprints in overlapping windows, so that keys can be removed, at little
//! more than the size of a Bloom filter.
//!
//! The table is a row of slots of `width` bits. Any `window` neighbouring slots are a *place*,
//! named by its first slot, and a key may be in any slot of its two places. A slot holds the
//! fingerprint and the position of the slot in the entry's place, so an entry identifies its place
//! and so the other one: the two always add up, modulo the number of places, to a number that
//! depends only on the fingerprint. That mirror is its own inverse for any table size, where the
//! usual exclusive-or needs a power of two.
//!
//! Overlapping windows of 2 fill to 96 %, where aligned buckets of 2 stop at 89 %, without more
//! errors: the position must also match, so it excludes as many false positives as its bits would
//! have in the fingerprint.

pub(crate) mod table;
#[cfg(test)]
mod tests;

use crate::error::Error;

/// Slots, window and slot width of a [`Cuckoo`](crate::Cuckoo) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooShape {
    slots: u64,
    window: u64,
    width: u64,
    // The rest follows from these three.
    /// Every slot with `window - 1` slots after it starts a place.
    places: u64,
    /// Fingerprints are 1..=fingerprints; slot value 0 means empty.
    fingerprints: u64,
    /// A place seen as lanes of `width` bits in one word: all bits, each lane's lowest bit, each
    /// lane's highest …
    lanes: u64,
    ones: u64,
    tops: u64,
    /// … and what the position adds to the slot value in each lane.
    positions: u64,
    /// Lanes per bit in 16-bit fixed point, because a division would take longer than the rest of
    /// an insert.
    lanes_per_bit: u64,
}

impl CuckooShape {
    /// A shape of exactly these numbers.
    pub fn new(slots: u64, window: u32, width: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| Err(Error::parameter(what, expected, got));
        let (window, width) = (u64::from(window), u64::from(width));
        if !(2..=4).contains(&window) {
            return refuse("window", "2 to 4 slots", window);
        }
        if !(4..=32).contains(&width) || window * width > 64 {
            return refuse("slot width", "4 to 32 bits, a window's at most 64", width);
        }
        if !(window..(1 << 56) / width).contains(&slots) {
            return refuse("slots", "a window's at least and below 2^56 bits", slots);
        }
        let fingerprints = ((1 << width) - 1) / window;
        let lanes = |value: &dyn Fn(u64) -> u64| (0..window).map(|i| value(i) << (i * width)).sum();
        Ok(Self {
            slots,
            window,
            width,
            places: slots - window + 1,
            fingerprints,
            lanes: lanes(&|_| (1 << width) - 1),
            ones: lanes(&|_| 1),
            tops: lanes(&|_| 1 << (width - 1)),
            positions: lanes(&|i| i * fingerprints),
            lanes_per_bit: (1 << 16) / width + 1,
        })
    }

    /// The number of slots, each for one entry.
    #[inline]
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// The slots of a place.
    #[inline]
    pub const fn window(&self) -> u32 {
        self.window as u32
    }

    /// The bits of a slot.
    #[inline]
    pub const fn width(&self) -> u32 {
        self.width as u32
    }

    /// How many copies of one key fit: the slots of its two places. Fewer if these overlap; other
    /// keys with the same fingerprint and places count as copies.
    pub const fn max_copies(&self) -> u64 {
        2 * self.window
    }

    /// The slots, plus a word so that a place can always be read as two words, in whole lines.
    pub(crate) const fn body_len(&self) -> u64 {
        (self.slots * self.width + 64).div_ceil(512) * 64
    }

    /// Every possible window and slot width.
    pub(crate) fn all_sorts() -> impl Iterator<Item = (u32, u32)> {
        (2..=4).flat_map(|window| (4..=32.min(64 / window)).map(move |width| (window, width)))
    }

    /// How many places there are.
    pub(crate) const fn places(&self) -> u64 {
        self.places
    }

    /// How many fingerprints there are.
    pub(crate) const fn fingerprints(&self) -> u64 {
        self.fingerprints
    }
}
