//! Filters that forget: slots that hold a fingerprint and the generation in which it was seen.
//!
//! Room belongs to the window, not to its generations: a slot whose generation has left the
//! window is empty. So only how many keys are remembered matters, however they came. A key has two
//! bins of neighbouring words ([`Table`]), and where more keys live than there is room for, the
//! window gets a further table. `lanes.rs` knows the slots of a word, `table.rs` how a table is
//! asked and changed, by one or by many at once, `head.rs` the words before the bins.

pub(crate) mod cells;
mod head;
mod lanes;
#[cfg(test)]
mod model;
pub(crate) mod shape;
mod table;
#[cfg(test)]
mod tests;

pub use shape::{Renewal, Span, WindowOptions, WindowShape};

use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::raw::explain::{self, Explanation, Joined, Look};
use crate::raw::isa::prefetch;
use crate::raw::layout::{Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use cells::{Alone, Beside, Cells, Read};
use shape::{Entry, Table};
use std::sync::atomic::AtomicU64;
use table::{Asked, Clock, Told};

/// The moments of many keys: one for all, or one for each.
///
/// ```
/// use tamis::{Moment, Window};
/// use std::time::Duration;
/// let mut seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
/// let hashes = [1u64, 2].map(tamis::Hash::from);
/// let mut new = [false; 2];
/// seen.insert_hashes_at(&hashes, Moment::from_secs(5), &mut new); // one for all
/// let times = [Moment::from_secs(6), Moment::from_secs(90)];
/// seen.insert_hashes_at(&hashes, &times[..], &mut new); // one for each
/// assert_eq!(new, [false, true]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait At: Copy {
    /// The moment of the key of this number.
    fn of(self, number: usize) -> Moment;
    /// Panics unless there is one for each of so many keys.
    #[doc(hidden)]
    fn check(self, keys: usize);
}

impl At for Moment {
    #[inline(always)]
    fn of(self, _: usize) -> Moment {
        self
    }

    #[inline(always)]
    fn check(self, _: usize) {}
}

impl At for &[Moment] {
    #[inline(always)]
    fn of(self, number: usize) -> Moment {
        self[number]
    }

    #[inline(always)]
    fn check(self, keys: usize) {
        assert_eq!(self.len(), keys, "one moment for each key");
    }
}

/// Keys whose bins are fetched before the first of them is looked at.
const AHEAD: usize = 16;

impl Table {
    /// Asks the memory for the key's bins; a hint.
    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        let entry = self.entry(hash);
        prefetch(words.as_ptr().wrapping_add(self.bin(entry.home)));
        prefetch(words.as_ptr().wrapping_add(self.bin(self.second(entry))));
    }
}

/// What adding keeps from key to key: most have the same generation.
struct Adding {
    table: Table,
    /// Tables before it that may have the key.
    older: Vec<Table>,
    clock: Clock,
    /// The moments of the clock's generation: a comparison is less than a division.
    begins: i64,
    ends: i64,
    /// Keys of the clock's generation that the table's counts do not have yet.
    uncounted: u64,
    /// Keys for which there is room.
    left: u64,
}

impl WindowShape {
    /// Begins to add keys at a moment, or a count of keys.
    fn adding<C: Cells>(&self, cells: &mut C, moment: i64, room: u64) -> Adding {
        let step = self.step() as i64;
        let now = moment.div_euclid(step);
        let newest = self.newest(cells).unwrap_or(now).max(now);
        let clock = Clock::new(self, now, newest, self.has_full_bins(cells));
        let table = *self.newest_table();
        table.use_generation(cells, now);
        let older = match self.table_count() {
            1 => Vec::new(),
            _ => self.live_tables(cells, clock.oldest.min(clock.kept), table.ring),
        };
        Adding {
            left: room.saturating_sub(self.kept_in(cells, &table, newest)),
            table,
            older,
            clock,
            begins: now * step,
            ends: (now + 1) * step,
            uncounted: 0,
        }
    }

    /// The tables that have keys of this generation or later ones, other than the one whose counts
    /// begin there.
    fn live_tables<C: Cells>(&self, cells: &C, oldest: i64, but: usize) -> Vec<Table> {
        let newest = self.newest(cells).unwrap_or(oldest);
        let is_live = |table: &Table| table.ring != but && table.is_live(cells, oldest, newest);
        self.tables().filter(is_live).collect()
    }

    /// Keeps tables asked, from this one on and but for the last, as long as any of their keys may
    /// be remembered: neither slots that stand for all keys nor keys of whoever was killed before
    /// counting them are counted.
    pub(crate) fn keep_live(&self, words: &mut [u64], from: u32) {
        let mut cells = Alone(words);
        let Some(newest) = self.newest(&cells) else {
            return;
        };
        let last = self.table_count() - 1;
        for table in self.tables().take(last as usize).skip(from as usize) {
            if table.keys_of(&cells, newest) == 0 {
                table.count(&mut cells, newest, 1);
            }
        }
    }

    /// Adds a key: whether it is new, or `None` if there is no room.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn add<C: Cells>(&self, cells: &mut C, adding: &mut Adding, hash: Hash) -> Option<bool> {
        let clock = &adding.clock;
        if clock.now < self.oldest_for(clock.newest) {
            return Some(true); // too old to be remembered
        }
        let was_known =
            !adding.older.is_empty() && self.older_has(cells, adding, hash, clock.oldest);
        if was_known && (!clock.renews || self.older_has(cells, adding, hash, clock.now)) {
            return Some(false);
        }
        match adding.table.insert(cells, adding.table.entry(hash), clock) {
            Told::Full => None,
            Told::Seen => Some(false),
            Told::New(None) => {
                adding.uncounted += 1;
                adding.left = adding.left.saturating_sub(1);
                Some(!was_known)
            }
            told @ (Told::New(Some(was)) | Told::Renewed(was)) => {
                adding.table.count(cells, was, -1);
                adding.uncounted += 1;
                Some(!was_known && told == Told::New(Some(was)))
            }
        }
    }

    /// Whether a table that is no longer added to has the key in this generation or a later one.
    #[cold]
    fn older_has<C: Cells>(&self, cells: &C, adding: &Adding, hash: Hash, oldest: i64) -> bool {
        let asked = Asked {
            oldest,
            full_bins: adding.clock.full_bins,
        };
        let mut tables = adding.older.iter();
        tables.any(|table| table.contains(cells, table.entry(hash), &asked))
    }

    /// Writes what was counted.
    fn settle<C: Cells>(&self, cells: &mut C, adding: &mut Adding) {
        if adding.uncounted > 0 {
            let keys = std::mem::take(&mut adding.uncounted);
            adding.table.count(cells, adding.clock.now, keys as i64);
            self.count_added(cells, keys);
        }
    }

    /// Adds keys with the words to itself, as many as there is `room` for; how many.
    pub(crate) fn insert_many(
        &self,
        words: &mut [u64],
        hashes: &[Hash],
        at: impl Fn(usize) -> Moment,
        new: &mut [bool],
        room: u64,
    ) -> usize {
        let mut cells = Alone(words);
        self.insert_each(&mut cells, hashes, at, new, room, |_, _, _, _| None)
    }

    /// Adds keys next to other threads and processes. Keys without room make their bins stand for
    /// all keys.
    pub(crate) fn insert_many_shared(
        &self,
        words: &[AtomicU64],
        hashes: &[Hash],
        at: impl Fn(usize) -> Moment,
        new: &mut [bool],
    ) {
        let mut cells = Beside(words);
        self.insert_each(&mut cells, hashes, at, new, u64::MAX, Self::add_to_full);
    }

    #[cold]
    fn add_to_full<C: Cells>(
        &self,
        cells: &mut C,
        adding: &mut Adding,
        hash: Hash,
    ) -> Option<bool> {
        // Known before the slot is there, so that nobody who asks looks for the key alone.
        self.count_full_bin(cells);
        adding.clock.full_bins = true;
        adding
            .table
            .fill(cells, adding.table.entry(hash), &adding.clock);
        Some(true)
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn insert_each<C: Cells>(
        &self,
        cells: &mut C,
        hashes: &[Hash],
        at: impl Fn(usize) -> Moment,
        new: &mut [bool],
        room: u64,
        full: impl Fn(&Self, &mut C, &mut Adding, Hash) -> Option<bool>,
    ) -> usize {
        let mut adding: Option<Adding> = None;
        let mut done = hashes.len();
        for (i, hash) in hashes.iter().enumerate() {
            let moment = match self.is_by_keys() {
                true => {
                    let uncounted = adding.as_ref().map_or(0, |adding| adding.uncounted);
                    self.added(cells).saturating_add(uncounted).min(1 << 57) as i64
                }
                false => {
                    self.pass(cells, at(i));
                    at(i).micros()
                }
            };
            let state = match &mut adding {
                Some(state) if (state.begins..state.ends).contains(&moment) => state,
                _ => {
                    if let Some(state) = &mut adding {
                        self.settle(cells, state);
                    }
                    let state = self.adding(cells, moment, room);
                    adding.insert(state)
                }
            };
            if let Some(next) = hashes.get(i + AHEAD) {
                cells.prefetch(&state.table, *next);
            }
            if state.left == 0 && !C::SHARED {
                done = i;
                break;
            }
            let told = self.add(cells, state, *hash);
            match told.or_else(|| full(self, cells, state, *hash)) {
                Some(told) => new[i] = told,
                None => {
                    done = i;
                    break;
                }
            }
            if C::SHARED && self.is_by_keys() {
                self.settle(cells, state);
            }
        }
        if let Some(state) = &mut adding {
            self.settle(cells, state);
        }
        done
    }

    /// What a question at a moment is about.
    fn asked<C: Cells>(&self, cells: &C, at: Moment) -> Asked {
        let now = match self.is_by_keys() {
            true => self.counted_generation(self.added(cells)),
            false => self.generation_of(at),
        };
        Asked {
            oldest: self.oldest_for(now),
            full_bins: self.has_full_bins(cells),
        }
    }

    #[inline]
    pub(crate) fn contains_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> bool {
        let cells = Read(words);
        let asked = self.asked(&cells, at);
        self.has(&cells, hash, &asked)
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn has<C: Cells>(&self, cells: &C, hash: Hash, asked: &Asked) -> bool {
        let table = self.newest_table();
        table.contains(cells, table.entry(hash), asked)
            || self.table_count() > 1 && self.older_tables_have(cells, hash, asked)
    }

    #[cold]
    fn older_tables_have<C: Cells>(&self, cells: &C, hash: Hash, asked: &Asked) -> bool {
        let newest = self.newest(cells).unwrap_or(asked.oldest);
        let mut tables = self.tables().rev().skip(1);
        tables.any(|table| {
            table.is_live(cells, asked.oldest, newest)
                && table.contains(cells, table.entry(hash), asked)
        })
    }

    pub(crate) fn contains_many_at<W: Word>(
        &self,
        words: &[W],
        hashes: &[Hash],
        at: impl Fn(usize) -> Moment,
        out: &mut [bool],
    ) {
        let cells = Read(words);
        let mut last: Option<(Moment, Asked, Vec<Table>)> = None;
        for (i, hash) in hashes.iter().enumerate() {
            let moment = at(i);
            let (_, asked, tables) = match &mut last {
                Some(same) if same.0 == moment => same,
                last => {
                    let asked = self.asked(&cells, moment);
                    let mut tables = vec![*self.newest_table()];
                    if self.table_count() > 1 {
                        tables.extend(self.live_tables(&cells, asked.oldest, tables[0].ring));
                    }
                    last.insert((moment, asked, tables))
                }
            };
            if let Some(next) = hashes.get(i + AHEAD) {
                tables[0].prefetch(words, *next);
            }
            out[i] = tables
                .iter()
                .any(|table| table.contains(&cells, table.entry(*hash), asked));
        }
    }

    /// Calls `each` with what every slot of a table holds that is kept, by its generation; `None`
    /// for a slot that stands for all keys of a bin.
    pub(crate) fn for_each<W: Word>(
        &self,
        words: &[W],
        table: &Table,
        mut each: impl FnMut(Option<Entry>, u64, i64),
    ) {
        let cells = Read(words);
        let Some(newest) = self.newest(&cells) else {
            return;
        };
        let kept = newest - i64::from(self.kept()) + 1;
        for bin in 0..table.bins {
            let first = table.bin(bin);
            let Some(epoch) = table.epoch(&cells, table.epoch_of(first)) else {
                continue;
            };
            for word in &words[first..first + table.bin_words] {
                let word = word.get();
                for shift in table.lanes.shifts().filter(|_| word != 0) {
                    let value = table.lanes.value_at(word, shift);
                    let generation = table.lanes.generation(word, shift, epoch);
                    if value == 0 || generation < kept {
                        continue;
                    }
                    let entry = match table.lanes.parts(value) {
                        (true, 0) => None,
                        (true, print) => Some(Entry {
                            home: table.home_of(bin, print),
                            print,
                        }),
                        (false, print) => Some(Entry { home: bin, print }),
                    };
                    each(entry, bin, generation);
                }
            }
        }
    }

    /// Adds what another window with the same tables remembers. False if there is no room for
    /// all of it.
    pub(crate) fn unite<W: Word>(&self, words: &mut [u64], theirs: &[W]) -> bool {
        if let Some(latest) = self.latest(&Read(theirs)) {
            self.pass(&mut Alone(words), latest);
        }
        let mut fits = true;
        let mut added = 0;
        for table in self.tables() {
            self.use_as(words, &table, theirs);
            self.for_each(theirs, &table, |entry, bin, generation| {
                let mut cells = Alone(words);
                let Some(newest) = self.newest(&cells) else {
                    return;
                };
                let mut clock = Clock::new(self, generation, newest, self.has_full_bins(&cells));
                if generation < clock.kept {
                    return;
                }
                // The newer sighting counts.
                clock.renews = true;
                let Some(entry) = entry else {
                    self.count_full_bin(&mut cells);
                    let entry = Entry {
                        home: bin,
                        print: 1,
                    };
                    table.fill(&mut cells, entry, &clock);
                    return;
                };
                match table.insert(&mut cells, entry, &clock) {
                    Told::New(was) => {
                        if let Some(was) = was {
                            table.count(&mut cells, was, -1);
                        }
                        table.count(&mut cells, generation, 1);
                        added += 1;
                    }
                    Told::Renewed(was) => {
                        table.count(&mut cells, was, -1);
                        table.count(&mut cells, generation, 1);
                    }
                    Told::Seen => {}
                    Told::Full => fits = false,
                }
            });
        }
        self.keep_live(words, 0);
        self.count_added(&mut Alone(words), added);
        fits
    }

    /// Notes the generations that keys were added in to the same table of another window.
    fn use_as<W: Word>(&self, words: &mut [u64], table: &Table, theirs: &[W]) {
        let theirs = Read(theirs);
        let newest = self.newest(&theirs).unwrap_or_default();
        for generation in self.with_counts(newest) {
            if table.is_used(&theirs, generation) {
                table.use_generation(&mut Alone(words), generation);
            }
        }
    }

    /// The share of all keys that are taken for present, as of the newest generation.
    pub(crate) fn share<W: Word>(&self, words: &[W]) -> f64 {
        let Some(newest) = self.newest(&Read(words)) else {
            return 0.0;
        };
        let oldest = self.oldest_for(newest);
        let absent = self.tables().map(|table| {
            let cells = Read(words);
            let each = (oldest..=newest).map(|generation| table.keys_of(&cells, generation));
            let (mut entries, mut full_bins) = (each.sum::<u64>(), 0u64);
            if self.has_full_bins(&cells) {
                entries = 0;
                self.for_each(words, &table, |entry, _, generation| {
                    if generation >= oldest {
                        entries += u64::from(entry.is_some());
                        full_bins += u64::from(entry.is_none());
                    }
                });
            }
            let open = (1.0 - full_bins as f64 / table.bins as f64).max(0.0);
            open * open * table.absent(entries as f64)
        });
        1.0 - absent.product::<f64>()
    }
}

impl Table {
    /// The share of foreign keys that differ from all of so many.
    pub(crate) fn absent(&self, keys: f64) -> f64 {
        (keys * (-1.0 / self.different()).ln_1p()).exp()
    }

    /// How many keys it may have at a rate.
    pub(crate) fn slots_at(&self, rate: f64) -> u64 {
        ((-rate).ln_1p() / (-1.0 / self.different()).ln_1p()) as u64
    }
}

impl Sealed for WindowShape {}

impl Creatable for WindowShape {
    fn emptied(self) -> Self {
        self.first_table_only()
    }
}

impl Layout for WindowShape {
    const KIND: Kind = Kind::Window;

    fn complete<W: Word>(self, words: &[W]) -> Result<Self, Error> {
        let cells = Read(words);
        let pages = self.tables().flat_map(|table| table.epochs..table.words);
        let epochs: Option<i64> = pages.filter_map(|at| head::epoch_of(cells.load(at))).max();
        // Read after them: writers let time pass before they write.
        cells.then();
        let newest = self.newest(&cells);
        match epochs {
            Some(epoch) if newest.is_none_or(|newest| epoch > newest) => Err(Error::corrupt(
                "epoch of a window's page",
                format_args!("at most {}", newest.unwrap_or_default()),
                epoch,
            )),
            _ => Ok(self),
        }
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        let options = |shape: &Self| format!("{:?}", shape.options());
        let first = |shape: &Self| shape.encode().0;
        let slots = |shape: &Self| format!("{:#x}", shape.encode().1 & 0xFF_FF00);
        Difference::between("bins", first(self), first(other))
            .or_else(|| Difference::between("window", options(self), options(other)))
            .or_else(|| Difference::between("slots", slots(self), slots(other)))
    }

    /// As of the latest moment that was added.
    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        let latest = self.latest(&Read(words)).unwrap_or_default();
        self.contains_at(words, hash, latest)
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let latest = self.latest(&Read(words)).unwrap_or_default();
        self.explain_at(words, hash, latest)
    }

    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        self.newest_table().prefetch(words, hash);
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        let latest = self.latest(&Read(words)).unwrap_or_default();
        self.contains_many_at(words, hashes, |_| latest, out);
    }

    /// Those counted in the generations that are remembered now.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.counted(words).unwrap_or(0) as f64
    }

    fn counted<W: Word>(&self, words: &[W]) -> Option<u64> {
        let cells = Read(words);
        let newest = self.newest(&cells)?;
        let each = self.oldest_for(newest)..=newest;
        Some(
            each.map(|generation| self.keys_of(&cells, generation))
                .sum(),
        )
    }
}

impl WindowShape {
    /// What a question at a moment looks at.
    pub(crate) fn explain_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> Explanation {
        let cells = Read(words);
        let asked = self.asked(&cells, at);
        let newest = self.newest(&cells).unwrap_or(asked.oldest);
        let looks = self.tables().map(|table| {
            let entry = table.entry(hash);
            let is_table_asked = table.ring == self.newest_table().ring
                || table.is_live(&cells, asked.oldest, newest);
            let place = |(bin, is_second): (u64, bool)| {
                let own = table.lanes.value(entry.print, is_second);
                let first = table.bin(bin);
                let epoch = table.epoch(&cells, table.epoch_of(first));
                let each = (first..first + table.bin_words).flat_map(|at| {
                    let word = words[at].get();
                    table.lanes.shifts().map(move |shift| (word, shift))
                });
                let slot = |(nth, (word, shift)): (usize, (u64, u32))| {
                    let value = table.lanes.value_at(word, shift);
                    let is_asked = is_table_asked
                        && epoch.is_some_and(|epoch| {
                            table.lanes.generation(word, shift, epoch) >= asked.oldest
                        });
                    let stands_for_all = value == table.lanes.full();
                    explain::Slot {
                        at: bin * u64::from(table.slots_of_bin()) + nth as u64,
                        holds: (value != 0 && is_asked).then(|| table.lanes.parts(value).1),
                        is_it: is_asked && (value == own || stands_for_all),
                    }
                };
                each.enumerate().map(slot).collect()
            };
            let places = [(entry.home, false), (table.second(entry), true)];
            Look::Slots {
                fingerprint: entry.print,
                places: places.into_iter().map(place).collect(),
            }
        });
        Explanation {
            joined: Joined::Layers,
            looks: looks.collect(),
        }
    }
}
