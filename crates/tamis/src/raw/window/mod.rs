//! Filters that forget: slots with a fingerprint and the generation in which it was seen.
//!
//! All generations share the room: a slot whose generation has left the window is empty. So only
//! the number of remembered keys matters, not when they came. A key has two bins of neighbouring
//! words ([`Table`]); if there are more keys than room, the window gets another table. `adding.rs`
//! and `asking.rs` handle batches of keys, `lanes.rs` the slots of a word, `table.rs` look-ups and
//! changes in a table, `writers.rs` concurrent changes, `head.rs` the words before the bins.

mod adding;
mod ahead;
mod asking;
pub(crate) mod cells;
mod head;
mod lanes;
mod look;
#[cfg(test)]
mod model;
mod room;
pub(crate) mod shape;
mod table;
#[cfg(test)]
mod tests;
mod when;
mod writers;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use shape::{Renewal, Span, WindowOptions, WindowShape};
pub use when::When;

use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::raw::explain::{self, Explanation, Joined, Look};
use crate::raw::layout::{Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use cells::{Alone, Cells as _, Read};
use head::has_full_bins;
use shape::{Entry, Table};
use table::{Clock, Told};

impl WindowShape {
    /// Ensures that queries still read tables from this one on, except the last, as long as any of
    /// their keys may be remembered. Counts alone don't show that: they lack slots that stand for
    /// all keys, and keys of a process that was killed before counting them.
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

    /// Calls `each` with the entry, bin and generation of every kept slot of a table; the entry is
    /// `None` if the slot stands for all keys of the bin.
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

    /// Adds the keys that another window with the same tables remembers. False if there isn't room
    /// for all of them.
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
                let mut clock = Clock::new(self, generation, newest, has_full_bins(&cells));
                if generation < clock.kept {
                    return;
                }
                // The newer sighting wins.
                clock.renews = true;
                let Some(entry) = entry else {
                    table.mark_alone(&mut cells, bin, &clock);
                    return;
                };
                match table.insert(self.isa, &mut cells, &table.spot(entry), &clock) {
                    Told::New(was) => {
                        if let Some(was) = was {
                            table.count(&mut cells, was, -1);
                        }
                        table.count(&mut cells, generation, 1);
                        added += 1;
                    }
                    Told::Renewed(was) => {
                        if let Some(was) = was {
                            table.count(&mut cells, was, -1);
                        }
                        table.count(&mut cells, generation, 1);
                    }
                    Told::Seen | Told::Marked => {}
                    Told::Full => fits = false,
                }
            });
        }
        self.keep_live(words, 0);
        self.count_added(&mut Alone(words), added);
        fits
    }

    /// Marks the generations used in the same table of another window as used.
    fn use_as<W: Word>(&self, words: &mut [u64], table: &Table, theirs: &[W]) {
        let theirs = Read(theirs);
        let newest = self.newest(&theirs).unwrap_or_default();
        for generation in self.with_counts(newest) {
            if table.is_used(&theirs, generation) {
                table.use_generation(&mut Alone(words), generation);
            }
        }
    }

    /// The share of all keys that seem present, as of the newest generation.
    pub(crate) fn share<W: Word>(&self, words: &[W]) -> f64 {
        let Some(newest) = self.newest(&Read(words)) else {
            return 0.0;
        };
        let oldest = self.oldest_for(newest);
        let absent = self.tables().map(|table| {
            let cells = Read(words);
            let each = (oldest..=newest).map(|generation| table.keys_of(&cells, generation));
            let (mut entries, mut full_bins) = (each.sum::<u64>(), 0u64);
            if has_full_bins(&cells) {
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
    /// The share of foreign keys that differ from all of this many keys.
    pub(crate) fn absent(&self, keys: f64) -> f64 {
        libm::exp(keys * libm::log1p(-1.0 / self.different()))
    }

    /// How many keys it may have at a rate.
    pub(crate) fn slots_at(&self, rate: f64) -> u64 {
        (libm::log1p(-rate) / libm::log1p(-1.0 / self.different())) as u64
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

    #[inline]
    fn body_len(&self) -> u64 {
        WindowShape::body_len(self)
    }

    fn complete<W: Word>(self, words: &[W]) -> Result<Self, Error> {
        let cells = Read(words);
        let pages = self.tables().flat_map(|table| table.epochs..table.words);
        let epochs: Option<i64> = pages.filter_map(|at| head::epoch_of(cells.load(at))).max();
        // Read after the epochs, because writers advance the time before they write.
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

    /// As of the latest moment added.
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
        cells::fetch(words, &self.newest_table().spot_of(hash));
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        let latest = self.latest(&Read(words)).unwrap_or_default();
        self.contains_many_at(words, hashes, &[latest], out);
    }

    /// The counts of the generations that are remembered now.
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
    /// What a look-up at a moment reads.
    pub(crate) fn explain_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> Explanation {
        let cells = Read(words);
        let (asked, _) = self.asked(&cells, at);
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
