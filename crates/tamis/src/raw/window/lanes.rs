//! A word of slots. A slot has, from the top: the stamp of the generation in which its key was
//! seen, a bit that is set if the slot is in the key's second bin, and the key's fingerprint. Empty
//! slots have neither bit nor fingerprint. Slots with only the bit stand for every key of their
//! bin; see [`FULL`](Lanes::full).

/// How words are divided, as masks for all slots of a word at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    width: u32,
    /// Bits of a slot below its stamp.
    low: u32,
    /// The lowest bit of each slot.
    ones: u64,
    /// The bits below the stamp, of each slot.
    pub(super) lows: u64,
    /// The bit above those, of each slot.
    pub(super) flags: u64,
    /// The bit of keys in their second bin, of each slot.
    pub(super) seconds: u64,
    /// The number of fingerprints.
    pub(super) prints: u64,
    /// The bits of the first slot.
    slot: u64,
    /// The modulus of stamps, minus one.
    stamps: u64,
}

/// A slot: the word's index, its content, and the slot's bit offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) at: usize,
    pub(crate) word: u64,
    pub(crate) shift: u32,
}

impl Lanes {
    #[inline(always)]
    pub(crate) const fn new(width: u32, stamp_bits: u32) -> Self {
        let ones = match width {
            16 => 0x0001_0001_0001_0001,
            21 => 1 | 1 << 21 | 1 << 42,
            32 => 1 | 1 << 32,
            _ => 1,
        };
        let low = width - stamp_bits;
        Self {
            width,
            low,
            ones,
            lows: ones * ((1 << low) - 1),
            flags: ones << low,
            seconds: ones << (low - 1),
            prints: (1 << (low - 1)) - 1,
            slot: !0 >> (64 - width),
            stamps: (1 << stamp_bits) - 1,
        }
    }

    pub(crate) const fn stamp_bits(&self) -> u32 {
        self.width - self.low
    }

    pub(crate) const fn per_word(&self) -> u32 {
        64 / self.width
    }

    /// The bits of a slot below its stamp.
    #[inline(always)]
    pub(crate) const fn value(&self, print: u64, is_second: bool) -> u64 {
        print | (is_second as u64) << (self.low - 1)
    }

    /// The value of a slot that stands for every key of its bin, made when a concurrently added key
    /// found no room there.
    #[inline(always)]
    pub(crate) const fn full(&self) -> u64 {
        self.value(0, true)
    }

    /// Which slots have this value: one bit for each, see [`shift`](Self::shift).
    #[inline(always)]
    pub(crate) const fn having(&self, word: u64, value: u64) -> u64 {
        self.like(word, self.all(value))
    }

    /// A word with this value in all slots.
    #[inline(always)]
    pub(crate) const fn all(&self, value: u64) -> u64 {
        value.wrapping_mul(self.ones)
    }

    /// A word with a fingerprint in all slots, for the home bin (0) or the second one (1).
    #[inline(always)]
    pub(crate) const fn all_in(&self, prints: u64, nth: usize) -> u64 {
        // Branchless, because a branch would be unpredictable.
        prints | self.seconds & (nth as u64).wrapping_neg()
    }

    /// Which slots have the same value as in the other word.
    #[inline(always)]
    pub(crate) const fn like(&self, word: u64, other: u64) -> u64 {
        // The bit above a value stays unless the values differ.
        let difference = (word ^ other) & self.lows;
        (self.flags - difference) & self.flags
    }

    /// The bit offset of the first of these slots.
    #[inline(always)]
    pub(crate) const fn shift(&self, slots: u64) -> u32 {
        slots.trailing_zeros() - self.low
    }

    /// The bit offsets of all slots of a word.
    pub(crate) fn shifts(&self) -> impl Iterator<Item = u32> + use<> {
        (0..64 / self.width * self.width).step_by(self.width as usize)
    }

    /// A word with the slot at this offset replaced.
    #[inline(always)]
    pub(crate) const fn with(&self, word: u64, shift: u32, value: u64, generation: i64) -> u64 {
        let slot = (generation.cast_unsigned() << self.low | value) << shift;
        let mask = self.slot << shift;
        word & !mask | slot & mask
    }

    /// A slot's value.
    #[inline(always)]
    pub(crate) const fn value_at(&self, word: u64, shift: u32) -> u64 {
        word >> shift & ((1 << self.low) - 1)
    }

    /// Whether the value is for its key's second bin, and its fingerprint.
    pub(crate) const fn parts(&self, value: u64) -> (bool, u64) {
        (
            value >> (self.low - 1) == 1,
            value & ((1 << (self.low - 1)) - 1),
        )
    }

    /// A slot's generation. On a page of this epoch, no slot is newer than the epoch.
    #[inline(always)]
    pub(crate) const fn generation(&self, word: u64, shift: u32, epoch: i64) -> i64 {
        epoch - self.age(word >> shift >> self.low, epoch)
    }

    /// How many generations before this epoch a stamp is. Ignores the bits above the stamp.
    #[inline(always)]
    pub(super) const fn age(&self, stamp: u64, epoch: i64) -> i64 {
        (epoch.cast_unsigned().wrapping_sub(stamp) & self.stamps).cast_signed()
    }

    /// The word without slots from before generation `before`, on a page of this epoch.
    #[inline(always)]
    pub(crate) const fn without(&self, word: u64, before: i64, epoch: i64) -> u64 {
        let bits = self.width - self.low;
        // All slots of the page are older.
        if epoch < before {
            return 0;
        }
        let oldest = (epoch - before).cast_unsigned();
        let oldest = if oldest > self.stamps {
            self.stamps
        } else {
            oldest
        };
        // The age of each slot, and a bit above it for those that are older.
        let stamps = word >> self.low & self.all(self.stamps);
        let now = epoch.cast_unsigned() & self.stamps;
        let ages = (self.all(now + self.stamps + 1) - stamps) & self.all(self.stamps);
        let older = (ages + self.all(self.stamps - oldest)) >> bits & self.ones;
        // All bits of these slots, without a product, which vectors lack.
        word & !(older << (self.width - 1) << 1).wrapping_sub(older)
    }
}
