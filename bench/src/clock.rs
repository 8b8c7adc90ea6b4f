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

    /// Of each peer, where the middle half of those ratios lies.
    pub fn spreads(&self) -> Vec<[f64; 2]> {
        let ratio = |round: &[f64], peer: usize| round[peer] / round[0];
        let (low, high) = (self.quantiles(1, ratio), self.quantiles(3, ratio));
        low.into_iter().zip(high).map(<[f64; 2]>::from).collect()
    }

    fn each_peer(&self, value: impl Fn(&[f64], usize) -> f64) -> Vec<f64> {
        self.quantiles(2, value)
    }

    /// Of each peer, the value that so many quarters of the rounds are below.
    fn quantiles(&self, quarters: usize, value: impl Fn(&[f64], usize) -> f64) -> Vec<f64> {
        let peers = self.0.first().map_or(0, Vec::len);
        let of_peer = |peer| {
            let mut values: Vec<f64> = self.0.iter().map(|round| value(round, peer)).collect();
            values.sort_by(f64::total_cmp);
            values[(values.len() - 1) * quarters / 4]
        };
        (0..peers).map(of_peer).collect()
    }
}
