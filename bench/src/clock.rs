//! Times and their comparison on a machine that others use, too.

use std::time::Duration;

/// The processor time that this thread has used: unlike the wall clock, it
/// stands still while another process has the core.
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "the system has no clock of thread time");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time of `work`, all of it in this thread.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = thread_time();
    work();
    thread_time() - start
}

/// What the peers needed for the same task, round after round. Within a round
/// they take turns, so a busy moment meets all of them.
pub struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// One round: the first value is the baseline's.
    pub fn add(&mut self, values: impl Iterator<Item = f64>) {
        self.0.push(values.collect());
    }

    /// Of each peer, the median.
    pub fn medians(&self) -> Vec<f64> {
        self.each_peer(|round, peer| round[peer])
    }

    /// Of each peer, the median of how many times the baseline's it was.
    pub fn ratios(&self) -> Vec<f64> {
        self.each_peer(|round, peer| round[peer] / round[0])
    }

    fn each_peer(&self, value: impl Fn(&[f64], usize) -> f64) -> Vec<f64> {
        let peers = self.0.first().map_or(0, Vec::len);
        let of_peer = |peer| self.0.iter().map(|round| value(round, peer)).collect();
        (0..peers).map(|peer| median(of_peer(peer))).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
