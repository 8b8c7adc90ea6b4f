//! Order among threads: a value that block 0 uses first, then block 1, and so on, whichever thread carries the block.

// Of the standard library, or of the model that compiles this file, too.
use super::sync::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

pub(crate) struct Turn<T> {
    queue: Mutex<Queue<T>>,
    moved: Condvar,
}

struct Queue<T> {
    next: u64,
    waiting: usize,
    value: T,
}

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            queue: Mutex::new(Queue {
                next: 0,
                waiting: 0,
                value,
            }),
            moved: Condvar::new(),
        }
    }

    /// Waits until every block before `number` has passed.
    pub(crate) fn wait(&self, number: u64) -> Access<'_, T> {
        let mut queue = self
            .queue
            .lock()
            .expect("no thread panics while it holds a turn");
        while queue.next != number {
            queue.waiting += 1;
            queue = self
                .moved
                .wait(queue)
                .expect("no thread panics while it holds a turn");
            queue.waiting -= 1;
        }
        Access {
            queue,
            moved: &self.moved,
        }
    }

    /// The value now, whoever's turn it is. Nobody else gets it meanwhile.
    pub(crate) fn as_it_is(&self) -> Access<'_, T> {
        Access {
            queue: self
                .queue
                .lock()
                .expect("no thread panics while it holds a turn"),
            moved: &self.moved,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.queue
            .into_inner()
            .expect("no thread panics while it holds a turn")
            .value
    }
}

/// The value, for as long as it is this block's turn.
pub(crate) struct Access<'a, T> {
    queue: MutexGuard<'a, Queue<T>>,
    moved: &'a Condvar,
}

impl<T> Access<'_, T> {
    /// How many blocks have passed.
    pub(crate) fn number(&self) -> u64 {
        self.queue.next
    }

    /// Lets the next block in. Merely dropping the access keeps the turn.
    pub(crate) fn pass(mut self) {
        self.queue.next += 1;
        let someone_waits = self.queue.waiting > 0;
        drop(self.queue);
        if someone_waits {
            self.moved.notify_all();
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
