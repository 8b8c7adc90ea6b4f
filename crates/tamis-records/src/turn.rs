//! Order among threads: block 0 uses a value first, then block 1, and so on,
//! whichever threads carry the blocks.

// From the standard library, or from the model that also compiles this file.
use super::sync::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// With more waiting threads than this, two of them share a condition variable.
const SEATS: u64 = 32;

/// A value that threads use one after the other, in the order of their blocks.
///
/// ```
/// use tamis_records::turn::Turn;
/// let text = Turn::new(String::new());
/// std::thread::scope(|scope| {
///     for (number, part) in ["a", "b", "c"].into_iter().enumerate().rev() {
///         let text = &text;
///         scope.spawn(move || {
///             let mut text = text.wait(number as u64);
///             text.push_str(part);
///             text.pass();
///         });
///     }
/// });
/// assert_eq!(*text.as_it_is(), "abc");
/// ```
pub struct Turn<T> {
    queue: Mutex<Queue<T>>,
    /// Threads wait for a block's turn on one of these, chosen by the block's
    /// number, so that only the next one is woken.
    seats: Box<[Condvar]>,
}

struct Queue<T> {
    next: u64,
    waiting: usize,
    value: T,
}

impl<T> Turn<T> {
    /// Block 0 uses the value first.
    pub fn new(value: T) -> Self {
        Self {
            queue: Mutex::new(Queue {
                next: 0,
                waiting: 0,
                value,
            }),
            seats: (0..SEATS).map(|_| Condvar::new()).collect(),
        }
    }

    /// Waits until every block before `number` has passed.
    ///
    /// # Panics
    /// If a thread panicked while it held the value.
    pub fn wait(&self, number: u64) -> Access<'_, T> {
        let mut queue = self
            .queue
            .lock()
            .expect("no thread panics while it holds a turn");
        while queue.next != number {
            queue.waiting += 1;
            queue = seat(&self.seats, number)
                .wait(queue)
                .expect("no thread panics while it holds a turn");
            queue.waiting -= 1;
        }
        Access {
            queue,
            seats: &self.seats,
        }
    }

    /// The value as it is now, whoever's turn it is. Others can't access it
    /// meanwhile.
    ///
    /// # Panics
    /// If a thread panicked while it held the value.
    pub fn as_it_is(&self) -> Access<'_, T> {
        Access {
            queue: self
                .queue
                .lock()
                .expect("no thread panics while it holds a turn"),
            seats: &self.seats,
        }
    }
}

fn seat(seats: &[Condvar], number: u64) -> &Condvar {
    &seats[(number % SEATS) as usize]
}

/// Access to the value during a block's turn.
pub struct Access<'a, T> {
    queue: MutexGuard<'a, Queue<T>>,
    seats: &'a [Condvar],
}

impl<T> Access<'_, T> {
    /// Lets the next block in. Merely dropping the access keeps the turn.
    pub fn pass(mut self) {
        self.queue.next += 1;
        let (next, someone_waits) = (self.queue.next, self.queue.waiting > 0);
        drop(self.queue);
        if someone_waits {
            seat(self.seats, next).notify_all();
        }
    }
}

impl<T> Deref for Access<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.queue.value
    }
}

impl<T> DerefMut for Access<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.queue.value
    }
}
