//! Writes chunks to the output. A chunk's position depends on all chunks before it. So a thread whose chunk isn't the
//! next one leaves it here and goes on; a thread with the next chunk writes it and all chunks left here that follow it.

// From the standard library, or from the model that also compiles this file.
use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;

pub(crate) struct InOrder<T> {
    queue: Mutex<Queue<T>>,
    moved: Condvar,
    /// How many chunks may be left here.
    most: usize,
    /// Whether chunks are written one after the other, or several at once.
    one_by_one: bool,
}

struct Queue<T> {
    next: u64,
    /// Where the next chunk begins.
    at: u64,
    left: BTreeMap<u64, (T, u64)>,
    /// A thread is writing, and will continue with the chunks left here.
    busy: bool,
    waiting: usize,
}

const NO_PANIC: &str = "no thread panics while it holds the output";

impl<T> InOrder<T> {
    pub(crate) fn new(most: usize, one_by_one: bool) -> Self {
        Self {
            queue: Mutex::new(Queue {
                next: 0,
                at: 0,
                left: BTreeMap::new(),
                busy: false,
                waiting: 0,
            }),
            moved: Condvar::new(),
            most,
            one_by_one,
        }
    }

    /// Calls `write` with this item and all others and their positions: now on this thread, or later. A chunk's
    /// position is known once all chunks before it have arrived.
    pub(crate) fn write(&self, number: u64, item: T, length: u64, mut write: impl FnMut(T, u64)) {
        let mut queue = self.lock();
        // The next chunk is always accepted.
        while queue.left.len() >= self.most && queue.next != number {
            queue.waiting += 1;
            queue = self.moved.wait(queue).expect(NO_PANIC);
            queue.waiting -= 1;
        }
        queue.left.insert(number, (item, length));
        if queue.busy {
            return;
        }
        while let Some((item, at)) = queue.take_next() {
            queue.busy = self.one_by_one;
            if queue.waiting > 0 {
                self.moved.notify_all();
            }
            drop(queue);
            write(item, at);
            queue = self.lock();
        }
        queue.busy = false;
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().expect(NO_PANIC)
    }
}

impl<T> Queue<T> {
    fn take_next(&mut self) -> Option<(T, u64)> {
        let (item, length) = self.left.remove(&self.next)?;
        self.next += 1;
        let at = self.at;
        self.at += length;
        Some((item, at))
    }
}
