//! Adds batches of keys and counts them.

use super::ahead::Ahead;
use super::asking::any_has;
use super::cells::{Alone, Beside, Cells};
use super::head::has_full_bins;
use super::shape::{Spot, Table, WindowShape};
use super::table::{Asked, Clock, Told};
use super::when::{end_of, moment_of};
use crate::hash::Hash;
use crate::moment::Moment;
use crate::raw::isa::{Batch, Isa};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

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
}
