//! A model of batches passing through units, in every order of threads: the real code, compiled with the model's
//! primitives.

#[path = "order.rs"]
#[allow(clippy::duplicate_mod, reason = "with other locks")]
mod order;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex};

    pub(crate) const SPINS: u32 = 1;

    pub(crate) fn pause() {}
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use order::Order;

const BATCHES: u64 = 3;

struct Units {
    order: Order,
    /// The batches that each unit has seen.
    seen: Vec<UnsafeCell<Vec<u64>>>,
    next: AtomicU64,
}

// SAFETY: that the order lets one thread at a time use each is what the model checks.
unsafe impl Sync for Units {}

impl Units {
    fn new(units: usize) -> Arc<Self> {
        Arc::new(Self {
            order: Order::new(units),
            seen: (0..units).map(|_| UnsafeCell::new(Vec::new())).collect(),
            next: AtomicU64::new(0),
        })
    }

    fn see(&self, unit: usize, number: u64) {
        // SAFETY: as above; the model objects to two at a time.
        self.seen[unit].with_mut(|seen| unsafe { (*seen).push(number) });
    }

    /// Carries batches like `InOrder`, one of them alone.
    fn carry(&self, alone: Option<u64>) {
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= BATCHES {
                return;
            }
            self.order.wait_to_begin(number);
            if alone == Some(number) {
                self.order.wait_for_others(number);
                (0..self.seen.len()).for_each(|unit| self.see(unit, number));
                self.order.pass_alone(number);
            } else {
                self.order.begin(number);
                self.order.pass_units(number, |unit| self.see(unit, number));
                self.order.end();
            }
        }
    }
}

fn check(units: usize, threads: usize, alone: Option<u64>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let all = Units::new(units);
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let all = all.clone();
                loom::thread::spawn(move || all.carry(alone))
            })
            .collect();
        all.carry(alone);
        others.into_iter().for_each(|other| other.join().unwrap());
        let batches: Vec<u64> = (0..BATCHES).collect();
        for seen in &all.seen {
            // SAFETY: all threads have ended.
            seen.with(|seen| assert_eq!(unsafe { &*seen }, &batches));
        }
    });
}

#[test]
fn each_unit_sees_the_batches_in_their_order() {
    check(2, 2, None);
    check(1, 3, None);
}

#[test]
fn a_batch_that_is_alone_meets_no_other() {
    check(2, 2, Some(1));
    check(1, 3, Some(1));
}
