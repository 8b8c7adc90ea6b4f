//! Order among threads: a value that block 0 uses first, then block 1, and so on, whichever thread carries the block.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard};

pub(crate) struct Turn<T> {
    state: Mutex<State<T>>,
    moved: Condvar,
}

struct State<T> {
    next: u64,
    waiting: usize,
    value: T,
}

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                waiting: 0,
                value,
            }),
            moved: Condvar::new(),
        }
    }

    /// Waits until every block before `number` has passed.
    pub(crate) fn wait(&self, number: u64) -> Access<'_, T> {
        let mut state = self
            .state
            .lock()
            .expect("no thread panics while it holds a turn");
        while state.next != number {
            state.waiting += 1;
            state = self
                .moved
                .wait(state)
                .expect("no thread panics while it holds a turn");
            state.waiting -= 1;
        }
        Access {
            state,
            moved: &self.moved,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.state
            .into_inner()
            .expect("no thread panics while it holds a turn")
            .value
    }
}

/// The value, for as long as it is this block's turn.
pub(crate) struct Access<'a, T> {
    state: MutexGuard<'a, State<T>>,
    moved: &'a Condvar,
}

impl<T> Access<'_, T> {
    /// Lets the next block in. Merely dropping the access keeps the turn.
    pub(crate) fn pass(mut self) {
        self.state.next += 1;
        let someone_waits = self.state.waiting > 0;
        drop(self.state);
        if someone_waits {
            self.moved.notify_all();
        }
    }
}

impl<T> Deref for Access<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.state.value
    }
}

impl<T> DerefMut for Access<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state.value
    }
}
