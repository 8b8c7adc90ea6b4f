//! Filters that forget: slots with a fingerprint and the generation in which it was seen.
//!
//! All generations share the room: a slot whose generation has left the window is empty. So only
//! the number of remembered keys matters, not when they came. A key has two bins of neighbouring
//! words ([`Table`]); if there are more keys than room, the window gets another table. `lanes.rs`
//! handles the slots of a word, `table.rs` look-ups and changes in a table, `writers.rs` concurrent
//! changes, `head.rs` the words before the bins.

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
mod writers;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use shape::{Renewal, Span, WindowOptions, WindowShape};

use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::raw::explain::{self, Explanation, Joined, Look};
use crate::raw::isa::{Batch, Isa};
use crate::raw::layout::{Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use cells::{Alone, Beside, Cells, Read};
use head::has_full_bins;
use shape::{Entry, Spot, Table};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use table::{Asked, Clock, Told};

/// The moments of a batch of keys for a [`Window`](crate::Window): one for all,
/// or one for each.
///
/// ```
/// use tamis::{Id, Moment, Window};
/// use std::time::Duration;
/// let mut seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
/// let keys = Id::all(&[1, 2]);
/// let mut new = [false; 2];
/// seen.insert_many_mut(keys, Moment::from_secs(5), &mut new); // one for all
/// let times = [Moment::from_secs(6), Moment::from_secs(90)];
/// seen.insert_many_mut(keys, &times[..], &mut new); // one for each
/// assert_eq!(new, [false, true]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum When<'t> {
    /// One for all keys.
    All(Moment),
    /// `moments[i]` for `keys[i]`.
    Each(&'t [Moment]),
}

impl When<'_> {
    /// The moment of this key.
    #[doc(hidden)]
    #[inline(always)]
    pub fn of(&self, number: usize) -> Moment {
        match self {
            Self::All(moment) => *moment,
            Self::Each(moments) => moments[number],
        }
    }

    /// Panics unless there is a moment for all keys or one for each.
    #[doc(hidden)]
    #[inline(always)]
    pub fn check(&self, keys: usize) {
        if let Self::Each(moments) = self {
            assert_eq!(moments.len(), keys, "one moment for each key");
        }
    }

    /// All of them: a single one if it is for all keys.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn all(&self) -> &[Moment] {
        match self {
            Self::All(moment) => std::slice::from_ref(moment),
            Self::Each(moments) => moments,
        }
    }
}

impl From<Moment> for When<'_> {
    #[inline(always)]
    fn from(moment: Moment) -> Self {
        Self::All(moment)
    }
}

impl<'t> From<&'t [Moment]> for When<'t> {
    #[inline(always)]
    fn from(moments: &'t [Moment]) -> Self {
        Self::Each(moments)
    }
}

/// How many keys ahead bins are prefetched.
const AHEAD: usize = 16;

/// The spots of a batch's next keys, whose bins are being prefetched.
struct Ahead<'a> {
    table: Table,
    spots: [Spot; AHEAD],
    /// The keys after those.
    later: std::slice::Iter<'a, Hash>,
}

impl<'a> Ahead<'a> {
    /// Prefetches the bins of the first keys.
    #[inline(always)]
    fn new<C: Cells>(table: Table, cells: &C, hashes: &'a [Hash]) -> Self {
        let mut ahead = Self {
            table,
            spots: [Spot::default(); AHEAD],
            later: hashes.iter(),
        };
        for number in 0..AHEAD {
            ahead.next(cells, number);
        }
        ahead
    }

    /// The spot of this key; call [`next`](Self::next) afterwards.
    #[inline(always)]
    fn spot(&self, number: usize) -> &Spot {
        &self.spots[number % AHEAD]
    }

    /// Prefetches the bins of a later key.
    #[inline(always)]
    fn next<C: Cells>(&mut self, cells: &C, number: usize) {
        if let Some(hash) = self.later.next() {
            let spot = self.table.spot_of(*hash);
            cells.prefetch(&spot);
            self.spots[number % AHEAD] = spot;
        }
    }
}

/// Adds a key to a window in any state. Returns whether it is new, or `None` if there is no room.
#[cold]
#[inline(never)]
fn add_any<C: Cells>(
    isa: Isa,
    cells: &mut C,
    adding: &mut Adding,
    hash: Hash,
    spot: &Spot,
) -> Option<bool> {
    let clock = &adding.clock;
    if adding.is_too_old {
        return Some(true);
    }
    let has = |oldest| {
        let full_bins = clock.full_bins;
        let asked = Asked { oldest, full_bins };
        !adding.older.is_empty() && any_has(isa, cells, &adding.older, hash, &asked)
    };
    let was_known = has(clock.oldest);
    if was_known && (!clock.renews || has(clock.now)) {
        return Some(false);
    }
    let told = match adding.is_rare {
        true => adding.table.insert(isa, cells, spot, clock),
        false => adding.table.insert_any(cells, *spot, *clock),
    };
    match told {
        Told::Full => return None,
        Told::Seen => return Some(false),
        Told::Marked => return Some(!was_known),
        Told::New(None) | Told::Renewed(None) => {}
        Told::New(Some(was)) | Told::Renewed(Some(was)) => adding.table.count(cells, was, -1),
    }
    adding.uncounted += 1;
    Some(!was_known && matches!(told, Told::New(_)))
}

/// The moment of this key: there is one for each, or one for all.
#[inline(always)]
fn moment_of(times: &[Moment], number: usize) -> Moment {
    times[if times.len() == 1 { 0 } else { number }]
}

/// The end of the keys from `first` on whose moments are in a range.
fn end_of(times: &[Moment], first: usize, keys: usize, range: &Range<i64>) -> usize {
    if times.len() == 1 {
        return keys;
    }
    let is_other = |at: &Moment| !range.contains(&at.micros());
    let others = times[first..].iter().position(is_other);
    others.map_or(keys, |more| first + more)
}

/// Adds many keys and counts them.
struct Insert<'a, C> {
    shape: &'a WindowShape,
    cells: C,
    hashes: &'a [Hash],
    times: &'a [Moment],
    new: &'a mut [bool],
    /// The most keys that the newest table may have.
    room: u64,
    done: &'a mut usize,
}

impl<C: Cells> Batch for Insert<'_, C> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let (shape, hashes, times, new) = (self.shape, self.hashes, self.times, self.new);
        let mut cells = self.cells;
        let cells = &mut cells;
        let table = *shape.newest_table();
        let mut ahead = Ahead::new(table, cells, hashes);
        let mut done = 0;
        'keys: while done < hashes.len() {
            let at = moment_of(times, done);
            shape.pass(cells, at);
            let now = shape.time(cells, at);
            let mut adding = shape.adding(cells, now, self.room);
            if adding.left == 0 {
                break;
            }
            // Keys of the same generation.
            let end = match shape.is_by_keys() {
                true if C::SHARED => done + 1, // others add and count too
                true => hashes.len().min(done + (adding.times.end - now) as usize),
                false => end_of(times, done, hashes.len(), &adding.times),
            };
            let end = end.min(done.saturating_add(adding.left));
            for at in times.get(done..end).unwrap_or_default() {
                shape.pass(cells, *at);
            }
            for (number, new) in (done..end).zip(&mut new[done..end]) {
                let spot = ahead.spot(number);
                let mut told = match adding.is_rare {
                    true => None,
                    false => table.insert_simply(isa, cells, spot, &adding.clock),
                };
                match told {
                    Some(is_new) => adding.uncounted += u64::from(is_new),
                    None => told = add_any(isa, cells, &mut adding, hashes[number], spot),
                }
                *new = match told {
                    Some(is_new) => is_new,
                    None => {
                        done = number;
                        shape.settle(cells, &mut adding);
                        break 'keys;
                    }
                };
                ahead.next(cells, number);
            }
            done = end;
            shape.settle(cells, &mut adding);
        }
        *self.done = done;
    }
}

/// Looks up many keys.
struct Ask<'a, W> {
    shape: &'a WindowShape,
    cells: Read<'a, W>,
    hashes: &'a [Hash],
    times: &'a [Moment],
    out: &'a mut [bool],
}

impl<W: Word> Batch for Ask<'_, W> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let (shape, hashes, times, out) = (self.shape, self.hashes, self.times, self.out);
        let cells = &Read(self.cells.0);
        let table = *shape.newest_table();
        let mut ahead = Ahead::new(table, cells, hashes);
        let mut first = 0;
        while first < hashes.len() {
            let (asked, range) = shape.asked(cells, moment_of(times, first));
            let older = match shape.table_count() {
                1 => Vec::new(),
                _ => shape.live_tables(cells, asked.oldest, table.ring),
            };
            let end = end_of(times, first, hashes.len(), &range);
            for (number, found) in (first..end).zip(&mut out[first..end]) {
                *found = table.contains(isa, cells, ahead.spot(number), &asked)
                    || !older.is_empty() && any_has(isa, cells, &older, hashes[number], &asked);
                ahead.next(cells, number);
            }
            if !asked.full_bins && has_full_bins(cells) {
                // Slots that stand for all may have replaced some of the keys in the meantime.
                for (hash, found) in hashes[first..end].iter().zip(&mut out[first..end]) {
                    *found = *found || table.is_marked(cells, &table.spot_of(*hash), &asked);
                }
            }
            first = end;
        }
    }
}

/// Looks up one key.
struct AskOne<'a, W> {
    shape: &'a WindowShape,
    cells: Read<'a, W>,
    hash: Hash,
    at: Moment,
    found: &'a mut bool,
}

impl<W: Word> Batch for AskOne<'_, W> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let (asked, _) = self.shape.asked(&self.cells, self.at);
        let newest = self.shape.newest_table();
        *self.found = newest.holds(isa, &self.cells, &newest.spot_of(self.hash), &asked);
        if self.shape.table_count() > 1 && !*self.found {
            let older = (self.shape).live_tables(&self.cells, asked.oldest, newest.ring);
            *self.found = any_has(isa, &self.cells, &older, self.hash, &asked);
        }
    }
}

/// Looks up one key in several tables.
struct AskTables<'a, C> {
    cells: &'a C,
    tables: &'a [Table],
    hash: Hash,
    asked: &'a Asked,
    found: &'a mut bool,
}

impl<C: Cells> Batch for AskTables<'_, C> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let mut tables = self.tables.iter();
        *self.found = tables
            .any(|table| table.contains(isa, self.cells, &table.spot_of(self.hash), self.asked));
    }
}

/// Whether one of these tables has the key. Rare, so it isn't inlined into the loops.
#[inline(never)]
fn any_has<C: Cells>(isa: Isa, cells: &C, tables: &[Table], hash: Hash, asked: &Asked) -> bool {
    let mut found = false;
    isa.run(AskTables {
        cells,
        tables,
        hash,
        asked,
        found: &mut found,
    });
    found
}

/// State that adding keeps from key to key, because most have the same generation.
struct Adding {
    table: Table,
    /// Older tables that may have the key.
    older: Vec<Table>,
    clock: Clock,
    /// Whether its keys are too old to be remembered.
    is_too_old: bool,
    /// Whether the keys are too old or there are older tables.
    is_rare: bool,
    /// The moments of the clock's generation: comparing is cheaper than dividing.
    times: Range<i64>,
    /// Keys of the clock's generation not yet in the table's counts.
    uncounted: u64,
    /// How many more keys there is room for.
    left: usize,
}

impl WindowShape {
    /// The time of adding a key: its moment, or the number of keys before it.
    fn time<C: Cells>(&self, cells: &C, at: Moment) -> i64 {
        match self.is_by_keys() {
            true => self.added(cells).min(1 << 57) as i64,
            false => at.micros(),
        }
    }

    /// Starts adding keys at a moment, or a count of keys.
    fn adding<C: Cells>(&self, cells: &mut C, moment: i64, room: u64) -> Adding {
        let step = self.step() as i64;
        let now = moment.div_euclid(step);
        let newest = self.newest(cells).unwrap_or(now).max(now);
        let clock = Clock::new(self, now, newest, has_full_bins(cells));
        let table = *self.newest_table();
        table.use_generation(cells, now);
        let older = match self.table_count() {
            1 => Vec::new(),
            _ => self.live_tables(cells, clock.oldest.min(clock.kept), table.ring),
        };
        let is_too_old = now < self.oldest_for(newest);
        let left = room.saturating_sub(self.kept_in(cells, &table, newest));
        Adding {
            left: usize::try_from(left).unwrap_or(usize::MAX),
            table,
            is_rare: is_too_old || !older.is_empty(),
            older,
            is_too_old,
            clock,
            times: now * step..(now + 1) * step,
            uncounted: 0,
        }
    }

    /// The tables that have keys of this generation or later ones, except the one whose ring starts
    /// at `but`.
    fn live_tables<C: Cells>(&self, cells: &C, oldest: i64, but: usize) -> Vec<Table> {
        let newest = self.newest(cells).unwrap_or(oldest);
        let is_live = |table: &Table| table.ring != but && table.is_live(cells, oldest, newest);
        self.tables().filter(is_live).collect()
    }

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

    /// Writes the pending counts.
    fn settle<C: Cells>(&self, cells: &mut C, adding: &mut Adding) {
        if adding.uncounted > 0 {
            let keys = std::mem::take(&mut adding.uncounted);
            adding.table.count(cells, adding.clock.now, keys as i64);
            self.count_added(cells, keys);
        }
    }

    /// Adds as many keys as there is `room` for, with exclusive access, and returns how many.
    pub(crate) fn insert_many(
        &self,
        words: &mut [u64],
        hashes: &[Hash],
        times: &[Moment],
        new: &mut [bool],
        room: u64,
    ) -> usize {
        self.insert_each(Alone(words), hashes, times, new, room)
    }

    /// Adds keys while other threads and processes may add. If a key finds no room, its bin stands
    /// for all keys.
    pub(crate) fn insert_many_shared(
        &self,
        words: &[AtomicU64],
        hashes: &[Hash],
        times: &[Moment],
        new: &mut [bool],
    ) {
        self.insert_each(Beside(words), hashes, times, new, u64::MAX);
    }

    fn insert_each<C: Cells>(
        &self,
        cells: C,
        hashes: &[Hash],
        times: &[Moment],
        new: &mut [bool],
        room: u64,
    ) -> usize {
        let mut done = 0;
        self.isa.run(Insert {
            shape: self,
            cells,
            hashes,
            times,
            new,
            room,
            done: &mut done,
        });
        done
    }

    /// What to look for at a moment, and the moments for which that stays the same.
    fn asked<C: Cells>(&self, cells: &C, at: Moment) -> (Asked, Range<i64>) {
        let (now, times) = match self.is_by_keys() {
            true => (
                self.counted_generation(self.added(cells)),
                i64::MIN..i64::MAX,
            ),
            false => {
                let now = self.generation_of(at);
                let step = self.step() as i64;
                (now, now * step..(now + 1) * step)
            }
        };
        let asked = Asked {
            oldest: self.oldest_for(now),
            full_bins: has_full_bins(cells),
        };
        (asked, times)
    }

    #[inline]
    pub(crate) fn contains_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> bool {
        let mut found = false;
        self.isa.run(AskOne {
            shape: self,
            cells: Read(words),
            hash,
            at,
            found: &mut found,
        });
        found
    }

    pub(crate) fn contains_many_at<W: Word>(
        &self,
        words: &[W],
        hashes: &[Hash],
        times: &[Moment],
        out: &mut [bool],
    ) {
        self.isa.run(Ask {
            shape: self,
            cells: Read(words),
            hashes,
            times,
            out,
        });
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
