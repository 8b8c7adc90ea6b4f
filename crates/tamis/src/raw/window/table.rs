//! Asking and changing one table: the slots of a key's two bins.
//!
//! A key lies in its home bin, or where that is full in its second one. Keys move once at the
//! most, from home to second bin, and are copied before they are removed; whoever looks into the
//! home bin first therefore misses none. Whoever adds takes the first empty slot, so that two
//! who add the same key exchange the same word, and one of them sees the other's.
//!
//! A slot's stamp is the low part of its generation's number, so it comes round. The epoch of a
//! page tells which round is meant: nothing on a page is newer than its epoch, and before an
//! epoch becomes newer, the slots of all generations that are forgotten by then are emptied. A key
//! of a generation that is newer than the epoch is added after that alone. A pause of any length
//! therefore costs nothing and brings nothing back.

// Functions that are inlined for speed are not in WebAssembly, where size counts for more.

use super::cells::Cells;
use super::head::{epoch_of, word_of};
use super::lanes::Slot;
use super::shape::{Entry, Table, WindowShape};

/// Bins that are looked into to make room, before a table is called full.
const BINS_TRIED: u32 = 500;
/// How many keys move one another on to make room for one.
const LONGEST_CHAIN: u32 = 4;

/// When a key is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The generation of the key.
    pub(crate) now: i64,
    /// The newest of all.
    pub(crate) newest: i64,
    /// A key of this generation or a later one is in the window.
    pub(crate) oldest: i64,
    /// Slots of generations before this one are empty.
    pub(crate) kept: i64,
    /// Whether seeing a key again renews it.
    pub(crate) renews: bool,
    /// Whether there are slots that stand for all keys of their bins.
    pub(crate) full_bins: bool,
}

impl Clock {
    pub(crate) fn new(shape: &WindowShape, now: i64, newest: i64, full_bins: bool) -> Self {
        Self {
            now,
            newest,
            oldest: shape.oldest_for(now),
            kept: newest - i64::from(shape.kept()) + 1,
            renews: shape.is_renewed(),
            full_bins,
        }
    }
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was not in the window. Its slot had this generation before, if it had one.
    New(Option<i64>),
    /// It was.
    Seen,
    /// It was, in this generation, and is now in that of the clock.
    Renewed(i64),
    /// There is no room for it.
    Full,
}

/// What a question is about: keys of this generation or later ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) oldest: i64,
    pub(crate) full_bins: bool,
}

/// What was found in a bin.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The slot with the value, the newest of several.
    slot: Option<(Slot, i64)>,
    /// The first empty slot.
    empty: Option<Slot>,
    /// The newest slot that stands for all keys.
    full: Option<i64>,
}

impl Table {
    #[inline(always)]
    fn words_of(&self, bin: u64) -> std::ops::Range<usize> {
        let first = self.bin(bin);
        first..first + self.bin_words
    }

    /// Whether the table has the key.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn contains<C: Cells>(&self, cells: &C, entry: Entry, asked: &Asked) -> bool {
        let bins = [entry.home, self.second(entry)];
        let values = [false, true].map(|second| self.lanes.value(entry.print, second));
        let seems = match self.bin_words {
            2 => self.first_like::<C, 2>(cells, bins, values),
            4 => self.first_like::<C, 4>(cells, bins, values),
            _ => self.first_like::<C, 8>(cells, bins, values),
        };
        match seems {
            // Most keys that are absent need no more than this.
            None => asked.full_bins && self.is_there(cells, bins, values, asked),
            Some(at) => {
                // Most that are present no more than this.
                let value = values[usize::from(!self.words_of(bins[0]).contains(&at))];
                self.has_recent(cells, at, value, asked)
                    || self.is_there(cells, bins, values, asked)
            }
        }
    }

    /// A word one of whose slots has the key, of whatever generation.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn first_like<C: Cells, const WORDS: usize>(
        &self,
        cells: &C,
        bins: [u64; 2],
        values: [u64; 2],
    ) -> Option<usize> {
        let firsts = bins.map(|bin| self.bin(bin));
        let home = cells.load_bin::<WORDS>(firsts[0]);
        cells.then();
        let second = cells.load_bin::<WORDS>(firsts[1]);
        let values = values.map(|value| self.lanes.all(value));
        let home: [u64; WORDS] = std::array::from_fn(|i| self.lanes.like(home[i], values[0]));
        let second: [u64; WORDS] = std::array::from_fn(|i| self.lanes.like(second[i], values[1]));
        let any = (0..WORDS).fold(0, |any, i| any | home[i] | second[i]);
        if any == 0 {
            return None;
        }
        let mut at = 0;
        for i in (0..WORDS).rev() {
            at = if second[i] != 0 { firsts[1] + i } else { at };
        }
        for i in (0..WORDS).rev() {
            at = if home[i] != 0 { firsts[0] + i } else { at };
        }
        Some(at)
    }

    /// Whether the first slot of a word that has the value is of a generation that counts. If
    /// not, others may be.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn has_recent<C: Cells>(&self, cells: &C, at: usize, value: u64, asked: &Asked) -> bool {
        cells.then();
        let epoch = cells.load(self.epoch_of(at));
        cells.then();
        let word = cells.load(at);
        cells.then();
        let like = self.lanes.having(word, value);
        let is_same = !C::SHARED || epoch == cells.load(self.epoch_of(at));
        like != 0
            && is_same
            && epoch_of(epoch).is_some_and(|epoch| {
                self.lanes.generation(word, self.lanes.shift(like), epoch) >= asked.oldest
            })
    }

    #[cold]
    fn is_there<C: Cells>(
        &self,
        cells: &C,
        bins: [u64; 2],
        values: [u64; 2],
        asked: &Asked,
    ) -> bool {
        let mut both = bins.into_iter().zip(values);
        both.any(|(bin, value)| {
            let at = self.epoch_of(self.bin(bin));
            loop {
                cells.then();
                let Some(epoch) = self.epoch(cells, at) else {
                    return false;
                };
                cells.then();
                let found = self.find(cells, bin, value, epoch, asked.full_bins);
                let newest = found.slot.map(|(_, generation)| generation).max(found.full);
                cells.then();
                if !C::SHARED || self.epoch(cells, at) == Some(epoch) {
                    return newest >= Some(asked.oldest);
                }
            }
        })
    }

    fn find<C: Cells>(
        &self,
        cells: &C,
        bin: u64,
        value: u64,
        epoch: i64,
        full_bins: bool,
    ) -> Found {
        let mut found = Found::default();
        for at in self.words_of(bin) {
            let word = cells.load(at);
            let mut having = self.lanes.having(word, value);
            while having != 0 {
                let shift = self.lanes.shift(having);
                let generation = self.lanes.generation(word, shift, epoch);
                if found.slot.is_none_or(|(_, newest)| newest < generation) {
                    found.slot = Some((Slot { at, word, shift }, generation));
                }
                having &= having - 1;
            }
            let empty = self.lanes.having(word, 0);
            if empty != 0 && found.empty.is_none() {
                let shift = self.lanes.shift(empty);
                found.empty = Some(Slot { at, word, shift });
            }
            if full_bins {
                let mut full = self.lanes.having(word, self.lanes.full());
                while full != 0 {
                    let shift = self.lanes.shift(full);
                    found.full = found
                        .full
                        .max(Some(self.lanes.generation(word, shift, epoch)));
                    full &= full - 1;
                }
            }
        }
        found
    }

    /// Empties the slots of a page that are forgotten, so that keys of the newest generation can
    /// be added there; its epoch.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn renew<C: Cells>(&self, cells: &mut C, at: usize, until: i64, clock: &Clock) -> i64 {
        match self.epoch(cells, at) {
            Some(epoch) if epoch >= until => epoch,
            _ => self.sweep(cells, at, clock),
        }
    }

    #[cold]
    #[inline(never)]
    fn sweep<C: Cells>(&self, cells: &mut C, at: usize, clock: &Clock) -> i64 {
        loop {
            let old = cells.load(at);
            match epoch_of(old) {
                Some(epoch) if epoch >= clock.newest => return epoch,
                Some(epoch) if !self.empty_page(cells, at, epoch, clock.kept) => continue,
                _ => {}
            }
            if cells.exchange(at, old, word_of(clock.newest)) {
                return clock.newest;
            }
        }
    }

    /// Empties the slots of a page from before a generation. False if the page got another
    /// epoch meanwhile, by which stamps have to be read.
    fn empty_page<C: Cells>(&self, cells: &mut C, at: usize, epoch: i64, before: i64) -> bool {
        for word in self.page_of(at) {
            loop {
                let old = cells.load(word);
                let kept = self.lanes.without(old, before, epoch);
                if kept == old {
                    break;
                }
                // A slot newer than the epoch that we know was added after the epoch had changed:
                // if we read one, we read the new epoch here.
                cells.then();
                if C::SHARED && self.epoch(cells, at) != Some(epoch) {
                    return false;
                }
                if cells.exchange(word, old, kept) {
                    break;
                }
            }
        }
        true
    }

    /// Adds a key, unless it is in the window.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn insert<C: Cells>(&self, cells: &mut C, entry: Entry, clock: &Clock) -> Told {
        let bins = [entry.home, self.second(entry)];
        let values = [false, true].map(|second| self.lanes.value(entry.print, second));
        let quick = match self.bin_words {
            2 => self.insert_absent::<C, 2>(cells, bins, values, clock),
            4 => self.insert_absent::<C, 4>(cells, bins, values, clock),
            _ => self.insert_absent::<C, 8>(cells, bins, values, clock),
        };
        match quick {
            Some(told) => told,
            None => self.insert_any(cells, bins, values, clock),
        }
    }

    /// Adds a key that no slot has to a bin with an empty slot, the usual case. `None` in any other.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn insert_absent<C: Cells, const WORDS: usize>(
        &self,
        cells: &mut C,
        bins: [u64; 2],
        values: [u64; 2],
        clock: &Clock,
    ) -> Option<Told> {
        let firsts = bins.map(|bin| self.bin(bin));
        let epochs = firsts.map(|first| cells.load(self.epoch_of(first)));
        let is_ready = epochs.iter().all(|word| epoch_of(*word) >= Some(clock.now));
        cells.then();
        let home = cells.load_bin::<WORDS>(firsts[0]);
        cells.then();
        let second = cells.load_bin::<WORDS>(firsts[1]);
        let all = values.map(|value| self.lanes.all(value));
        let (mut any, mut at, mut word) = (0, 0, 0);
        for i in (0..WORDS).rev() {
            any |= self.lanes.like(second[i], all[1]);
            let is_empty = self.lanes.like(second[i], 0) != 0;
            (at, word) = if is_empty {
                (firsts[1] + i, second[i])
            } else {
                (at, word)
            };
        }
        for i in (0..WORDS).rev() {
            any |= self.lanes.like(home[i], all[0]);
            let is_empty = self.lanes.like(home[i], 0) != 0;
            (at, word) = if is_empty {
                (firsts[0] + i, home[i])
            } else {
                (at, word)
            };
        }
        cells.then();
        if at == 0
            || any != 0
            || !is_ready
            || clock.full_bins
            || C::SHARED && epochs != firsts.map(|first| cells.load(self.epoch_of(first)))
        {
            return None;
        }
        let slot = Slot {
            at,
            word,
            shift: self.lanes.shift(self.lanes.like(word, 0)),
        };
        let value = values[usize::from(!(firsts[0]..firsts[0] + WORDS).contains(&at))];
        if !self.put(cells, slot, value, clock.now, clock) {
            return None;
        }
        let is_second = C::SHARED && self.is_before(cells, bins, values, clock, slot);
        Some(if is_second {
            Told::Seen
        } else {
            Told::New(None)
        })
    }

    #[inline(never)]
    fn insert_any<C: Cells>(
        &self,
        cells: &mut C,
        bins: [u64; 2],
        values: [u64; 2],
        clock: &Clock,
    ) -> Told {
        let epochs = bins.map(|bin| self.epoch_of(self.bin(bin)));
        loop {
            let known = epochs.map(|at| self.renew(cells, at, clock.now, clock));
            let mut found = [Found::default(); 2];
            for nth in 0..2 {
                cells.then();
                found[nth] = self.find(cells, bins[nth], values[nth], known[nth], clock.full_bins);
            }
            cells.then();
            if C::SHARED && (0..2).any(|nth| self.epoch(cells, epochs[nth]) != Some(known[nth])) {
                continue;
            }
            if clock.full_bins && found.iter().any(|f| f.full >= Some(clock.oldest)) {
                return Told::Seen;
            }
            let newest = match (found[0].slot, found[1].slot) {
                (Some(a), Some(b)) => Some(if b.1 > a.1 { (b, 1) } else { (a, 0) }),
                (a, b) => a.map(|a| (a, 0)).or(b.map(|b| (b, 1))),
            };
            if let Some(((slot, generation), nth)) = newest {
                if generation >= clock.oldest && (!clock.renews || generation >= clock.now) {
                    return Told::Seen;
                }
                if !self.put(cells, slot, values[nth], clock.now, clock) {
                    continue;
                }
                return match generation >= clock.oldest {
                    true => Told::Renewed(generation),
                    false => Told::New(Some(generation)),
                };
            }
            let (slot, nth) = match (found[0].empty, found[1].empty) {
                (Some(slot), _) => (slot, 0),
                (None, Some(slot)) => (slot, 1),
                (None, None) => {
                    // What is forgotten by now makes room, too.
                    if known.iter().any(|epoch| *epoch < clock.newest) {
                        for at in epochs {
                            self.renew(cells, at, clock.newest, clock);
                        }
                        continue;
                    }
                    match self.make_room(cells, bins, clock) {
                        Some(spot) => spot,
                        None => return Told::Full,
                    }
                }
            };
            if !self.put(cells, slot, values[nth], clock.now, clock) {
                continue;
            }
            // Somebody who added the same key before a slot was emptied may have it further
            // left: that one is told "new".
            if C::SHARED && self.is_before(cells, bins, values, clock, slot) {
                return Told::Seen;
            }
            return Told::New(None);
        }
    }

    /// Whether the key is in the window by a slot before this one.
    fn is_before<C: Cells>(
        &self,
        cells: &C,
        bins: [u64; 2],
        values: [u64; 2],
        clock: &Clock,
        slot: Slot,
    ) -> bool {
        for (bin, value) in bins.into_iter().zip(values) {
            for at in self.words_of(bin) {
                let Some(epoch) = self.epoch(cells, self.epoch_of(at)) else {
                    continue;
                };
                cells.then();
                let word = cells.load(at);
                let mut having = self.lanes.having(word, value);
                while having != 0 {
                    let shift = self.lanes.shift(having);
                    if (at, shift) == (slot.at, slot.shift) {
                        return false;
                    }
                    if self.lanes.generation(word, shift, epoch) >= clock.oldest {
                        return true;
                    }
                    having &= having - 1;
                }
                if at == slot.at {
                    return false; // it was moved on already
                }
            }
        }
        false
    }

    /// Puts a value of a generation into a slot, unless its word has changed. A writer that was
    /// stopped so long that the generation is forgotten takes its slot back.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn put<C: Cells>(
        &self,
        cells: &mut C,
        slot: Slot,
        value: u64,
        generation: i64,
        clock: &Clock,
    ) -> bool {
        let Slot { at, word, shift } = slot;
        let new = self.lanes.with(word, shift, value, generation);
        if !cells.exchange(at, word, new) {
            return false;
        }
        if C::SHARED
            && let Some(epoch) = self.epoch(cells, self.epoch_of(at))
            && epoch - (clock.newest - clock.kept) > generation
        {
            self.take_back(cells, at, shift, value, generation);
        }
        true
    }

    #[cold]
    fn take_back<C: Cells>(
        &self,
        cells: &mut C,
        at: usize,
        shift: u32,
        value: u64,
        generation: i64,
    ) {
        loop {
            let word = cells.load(at);
            if self.lanes.with(word, shift, value, generation) != word {
                return; // somebody else's by now
            }
            if cells.exchange(at, word, self.lanes.with(word, shift, 0, 0)) {
                return;
            }
        }
    }

    /// A slot in one of the bins whose key was copied to its second bin.
    #[cold]
    #[inline(never)]
    fn make_room<C: Cells>(
        &self,
        cells: &mut C,
        bins: [u64; 2],
        clock: &Clock,
    ) -> Option<(Slot, usize)> {
        let mut tries = BINS_TRIED;
        for chain in 1..=LONGEST_CHAIN {
            for (nth, bin) in bins.into_iter().enumerate() {
                if let Some(slot) = self.move_on(cells, bin, chain, clock, &mut tries) {
                    return Some((slot, nth));
                }
            }
        }
        None
    }

    /// Copies one key of a full bin to its second bin, where others move on if need be; its slot.
    fn move_on<C: Cells>(
        &self,
        cells: &mut C,
        bin: u64,
        chain: u32,
        clock: &Clock,
        tries: &mut u32,
    ) -> Option<Slot> {
        for at in self.words_of(bin) {
            let epoch = self.epoch(cells, self.epoch_of(at))?;
            cells.then();
            let word = cells.load(at);
            for shift in self.lanes.shifts() {
                let (is_second, print) = self.lanes.parts(self.lanes.value_at(word, shift));
                if is_second || print == 0 {
                    continue;
                }
                *tries = tries.checked_sub(1)?;
                let generation = self.lanes.generation(word, shift, epoch);
                let second = self.second(Entry { home: bin, print });
                let value = self.lanes.value(print, true);
                let known = self.epoch_of(self.bin(second));
                let known = self.renew(cells, known, clock.newest, clock);
                let found = self.find(cells, second, value, known, false);
                let is_there = match (found.slot, found.empty) {
                    // Left by somebody who was interrupted here.
                    (Some((_, there)), _) if there >= generation => true,
                    (Some((slot, _)), _) | (None, Some(slot)) => {
                        self.put(cells, slot, value, generation, clock)
                    }
                    (None, None) if chain > 1 => self
                        .move_on(cells, second, chain - 1, clock, tries)
                        .is_some_and(|slot| self.put(cells, slot, value, generation, clock)),
                    _ => false,
                };
                if is_there {
                    return Some(Slot { at, word, shift });
                }
            }
        }
        None
    }

    /// Lets a slot of the key's home bin stand for all keys there: the key found no room, and
    /// others may be adding, so the table can't be replaced by a larger one.
    #[cold]
    pub(crate) fn fill<C: Cells>(&self, cells: &mut C, entry: Entry, clock: &Clock) {
        let at = self.bin(entry.home);
        loop {
            let epoch = self.renew(cells, self.epoch_of(at), clock.newest, clock);
            cells.then();
            let word = cells.load(at);
            // The key that lies there is remembered as long as the newer of the two.
            let generation = self.lanes.generation(word, 0, epoch).max(clock.now);
            let slot = Slot { at, word, shift: 0 };
            if self.put(cells, slot, self.lanes.full(), generation, clock) {
                return;
            }
        }
    }
}
