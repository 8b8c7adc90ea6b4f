//! Order among threads: numbered batches pass through the same units, each unit in the order of the numbers, while
//! different threads carry different batches through different units.

// From the standard library, or from the model, which also compiles this file.
use super::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, SPINS, fence, pause};

/// Threads that wait for a batch's turn share a seat by the batch's number, so that passing a turn on wakes only the
/// next batch's thread. With more threads than seats, two may share one.
const SEATS: usize = 64;

pub(crate) struct Order {
    /// The number of the batch that may begin.
    begin: Counter,
    /// How many batches have passed all units.
    done: Counter,
    /// For each unit, the number of the batch whose turn it is.
    units: Box<[Counter]>,
    seats: Box<[Seat]>,
}

/// On a separate cache line, because other threads write to the neighbours.
#[repr(align(128))]
struct Counter(AtomicU64);

struct Seat {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    moved: Condvar,
}

const NO_PANIC: &str = "nothing panics while it is locked";

impl Order {
    pub(crate) fn new(units: usize) -> Self {
        let counter = |_| Counter(AtomicU64::new(0));
        let seat = |_| Seat {
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            moved: Condvar::new(),
        };
        Self {
            begin: counter(0),
            done: counter(0),
            units: (0..units).map(counter).collect(),
            seats: (0..SEATS.min(units.max(2))).map(seat).collect(),
        }
    }

    /// Waits until every batch before this one has begun.
    pub(crate) fn wait_to_begin(&self, number: u64) {
        self.wait(number, || self.begin.0.load(Ordering::Acquire) >= number);
    }

    /// Between [`wait_to_begin`](Self::wait_to_begin) and [`begin`](Self::begin): waits until every batch before this
    /// one has passed all units.
    pub(crate) fn wait_for_others(&self, number: u64) {
        self.wait(number, || self.done.0.load(Ordering::Acquire) == number);
    }

    /// Lets the next batch begin.
    pub(crate) fn begin(&self, number: u64) {
        self.begin.0.store(number + 1, Ordering::Release);
        self.wake(number + 1);
    }

    /// After [`begin`](Self::begin): visits all units, each one after all earlier batches have.
    pub(crate) fn pass_units(&self, number: u64, mut visit: impl FnMut(usize)) {
        let is_ready = |unit: usize| self.units[unit].0.load(Ordering::Acquire) == number;
        let mut left: Vec<usize> = (0..self.units.len()).collect();
        while !left.is_empty() {
            self.wait(number, || left.iter().any(|unit| is_ready(*unit)));
            left.retain(|&unit| {
                let ready = is_ready(unit);
                if ready {
                    visit(unit);
                    self.units[unit].0.store(number + 1, Ordering::Release);
                    self.wake(number + 1);
                }
                !ready
            });
        }
    }

    /// After [`pass_units`](Self::pass_units): publishes the batch's changes to those that
    /// [`wait_for_others`](Self::wait_for_others).
    pub(crate) fn end(&self) {
        self.done.0.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        // Only the batch that may begin next can be waiting for it.
        self.wake(self.begin.0.load(Ordering::Acquire));
    }

    /// After [`wait_for_others`](Self::wait_for_others), instead of `begin`, `pass_units` and `end`.
    pub(crate) fn pass_alone(&self, number: u64) {
        for unit in &self.units {
            unit.0.store(number + 1, Ordering::Relaxed);
        }
        self.done.0.store(number + 1, Ordering::Relaxed);
        self.begin(number);
    }

    /// Spins first: a wait is usually shorter than a system call.
    fn wait(&self, number: u64, mut is_over: impl FnMut() -> bool) {
        for _ in 0..SPINS {
            if is_over() {
                return;
            }
            pause();
        }
        let seat = self.seat(number);
        seat.sleepers.fetch_add(1, Ordering::Relaxed);
        // Either the thread that ends the wait sees a sleeper, or the sleeper sees that the wait is
        // over.
        fence(Ordering::SeqCst);
        let mut lock = seat.lock.lock().expect(NO_PANIC);
        while !is_over() {
            lock = seat.moved.wait(lock).expect(NO_PANIC);
        }
        drop(lock);
        seat.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    fn wake(&self, number: u64) {
        fence(Ordering::SeqCst);
        let seat = self.seat(number);
        if seat.sleepers.load(Ordering::Relaxed) > 0 {
            // A sleeper that checked before this is now waiting.
            drop(seat.lock.lock().expect(NO_PANIC));
            seat.moved.notify_all();
        }
    }

    fn seat(&self, number: u64) -> &Seat {
        &self.seats[number as usize % self.seats.len()]
    }
}
