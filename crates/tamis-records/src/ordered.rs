//! Processes many files at once, and takes the results in the order of the files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

/// How many finished results may wait for an earlier one: enough that a large file doesn't keep other threads from
/// working.
const AHEAD: usize = 64;

/// Calls `work` for every number below `count` on several threads, and `take` with the results, in order. Ends early
/// when `stop` becomes true.
pub fn for_each_in_order<R: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> R + Sync,
    take: impl FnMut(usize, R) + Send,
) {
    struct Results<R, T> {
        next: usize,
        finished: BTreeMap<usize, R>,
        take: T,
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results {
        next: 0,
        finished: BTreeMap::new(),
        take,
    });
    let moved = Condvar::new();
    let run = || {
        while !stop.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            let Ok(mut results) = results.lock() else {
                return; // another thread panicked, which the scope reports
            };
            results.finished.insert(number, result);
            while let Some(result) = {
                let at = results.next;
                results.finished.remove(&at)
            } {
                let at = results.next;
                (results.take)(at, result);
                results.next += 1;
            }
            moved.notify_all();
            // A waiting thread has finished all its work, so the result that all wait for is still being computed.
            while results.finished.len() > AHEAD {
                match moved.wait(results) {
                    Ok(again) => results = again,
                    Err(_) => return,
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_come_in_order_however_long_each_takes() {
        for threads in [1, 2, 7] {
            let mut taken = Vec::new();
            let never = AtomicBool::new(false);
            let work = |n: usize| {
                if n.is_multiple_of(97) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                n * n
            };
            for_each_in_order(500, threads, &never, work, |n, square| {
                taken.push((n, square));
            });
            assert!(taken.iter().copied().eq((0..500).map(|n| (n, n * n))));
        }
    }

    #[test]
    fn a_stop_ends_it_with_what_was_taken_in_order() {
        let stop = AtomicBool::new(false);
        let mut taken = Vec::new();
        let work = |n: usize| {
            if n == 50 {
                stop.store(true, Relaxed);
            }
            n
        };
        for_each_in_order(10_000, 3, &stop, work, |n, _| taken.push(n));
        assert!(taken.len() < 10_000);
        assert!(taken.iter().copied().eq(0..taken.len()));
    }
}
