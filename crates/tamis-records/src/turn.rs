//! Order among threads: a value that block 0 uses first, then block 1, and so on, whichever thread carries the block.

// Of the standard library, or of the model that compiles this file, too.
use super::sync::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// Threads that wait, at most, before two of them share a condition.
const SEATS: u64 = 32;

/// A value that threads use one after the other, in the order of what they carry.
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
    /// Whoever waits for a block's turn waits for one of these, by the block's number: only the next one is woken.
    seats: Box<[Condvar]>,
}

struct Queue<T> {
    next: u64,
    waiting: usize,
    value: T,
}

impl<T> Turn<T> {
    /// The value, which block 0 uses first.
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

    /// The value now, whoever's turn it is. Nobody else gets it meanwhile.
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

/// The value, for as long as it is this block's turn.
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
