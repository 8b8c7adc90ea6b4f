//! A word of slots. A slot is, from its top: the stamp of the generation in which its key was
//! seen, a bit that says whether it lies in its second bin, and the key's fingerprint. Empty
//! slots have neither bit nor fingerprint. Those with the bit alone stand for every key of their
//! bin; see [`FULL`](Lanes::full).

/// How words are divided, as masks over all slots of a word at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    width: u32,
    /// Bits of a slot below its stamp.
    low: u32,
    /// The lowest bit of each slot.
    ones: u64,
    /// What is below the stamp, of each slot.
    pub(super) lows: u64,
    /// The bit above that, of each slot.
    pub(super) flags: u64,
    /// The bit of keys that lie in their second bin, of each slot.
    pub(super) seconds: u64,
    /// How many fingerprints there are.
    pub(super) prints: u64,
    /// The bits of the first slot.
    slot: u64,
    /// What stamps are taken modulo, less one.
    stamps: u64,
}

/// A slot: its word, what that word holds, and how far it lies from its right.
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

    /// What a slot holds below its stamp.
    #[inline(always)]
    pub(crate) const fn value(&self, print: u64, is_second: bool) -> u64 {
        print | (is_second as u64) << (self.low - 1)
    }

    /// The value of a slot that stands for every key of its bin: a key found no room there while
    /// others were adding.
    #[inline(always)]
    pub(crate) const fn full(&self) -> u64 {
        self.value(0, true)
    }

    /// Which slots have this value: one bit for each, see [`shift`](Self::shift).
    #[inline(always)]
    pub(crate) const fn having(&self, word: u64, value: u64) -> u64 {
        self.like(word, self.all(value))
    }

    /// A word all of whose slots have this value.
    #[inline(always)]
    pub(crate) const fn all(&self, value: u64) -> u64 {
        value.wrapping_mul(self.ones)
    }

    /// A word all of whose slots have a fingerprint, in its home bin (0) or in its second one (1).
    #[inline(always)]
    pub(crate) const fn all_in(&self, prints: u64, nth: usize) -> u64 {
        // Not a branch, which nobody could predict.
        prints | self.seconds & (nth as u64).wrapping_neg()
    }

    /// Which slots have the value that the other word has there.
    #[inline(always)]
    pub(crate) const fn like(&self, word: u64, other: u64) -> u64 {
        // The bit above a value stays unless something is taken from it.
        let difference = (word ^ other) & self.lows;
        (self.flags - difference) & self.flags
    }

    /// How far the first of these slots lies from the right of the word.
    #[inline(always)]
    pub(crate) const fn shift(&self, slots: u64) -> u32 {
        slots.trailing_zeros() - self.low
    }

    /// All slots of a word, by how far they lie from its right.
    pub(crate) fn shifts(&self) -> impl Iterator<Item = u32> + use<> {
        (0..64 / self.width * self.width).step_by(self.width as usize)
    }

    /// A word whose slot there is replaced.
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

    /// Whether the value lies in its second bin, and its fingerprint.
    pub(crate) const fn parts(&self, value: u64) -> (bool, u64) {
        (
            value >> (self.low - 1) == 1,
            value & ((1 << (self.low - 1)) - 1),
        )
    }

    /// A slot's generation. On a page of this epoch, all of them are at most that old.
    #[inline(always)]
    pub(crate) const fn generation(&self, word: u64, shift: u32, epoch: i64) -> i64 {
        epoch - self.age(word >> shift >> self.low, epoch)
    }

    /// How many generations before this epoch the stamp is from that ends a word.
    #[inline(always)]
    pub(super) const fn age(&self, stamp: u64, epoch: i64) -> i64 {
        (epoch.cast_unsigned().wrapping_sub(stamp) & self.stamps).cast_signed()
    }

    /// The word without slots of generations before this one, on a page of this epoch.
    #[inline(always)]
    pub(crate) const fn without(&self, word: u64, before: i64, epoch: i64) -> u64 {
        let bits = self.width - self.low;
        // The generations that are kept are at most this old.
        if epoch < before {
            return 0;
        }
        let oldest = (epoch - before).cast_unsigned();
        let oldest = if oldest > self.stamps {
            self.stamps
        } else {
            oldest
        };
        // How old each slot is, and a bit above that for those which are older.
        let stamps = word >> self.low & self.all(self.stamps);
        let now = epoch.cast_unsigned() & self.stamps;
        let ages = (self.all(now + self.stamps + 1) - stamps) & self.all(self.stamps);
        let older = (ages + self.all(self.stamps - oldest)) >> bits & self.ones;
        // All bits of these slots, without a product, which vectors don't have.
        word & !(older << (self.width - 1) << 1).wrapping_sub(older)
    }
}
