//! Answers to the keys of a request. A body of line ends has as many keys as bytes, so an answer takes one bit until it
//! is written.

/// One answer per key, in order.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    bits: Vec<u64>,
    len: usize,
    yes: usize,
    lateness: Lateness,
}

/// How much of the window at a request's time is still remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// Everything, or the filter never forgets.
    #[default]
    InTime,
    /// Not everything: "no" and "new" aren't certain.
    Late,
    /// So little that keys of that time aren't kept.
    TooOld,
}

impl Replies {
    pub(crate) fn new(lateness: Lateness) -> Self {
        Self {
            lateness,
            ..Self::default()
        }
    }

    pub(crate) const fn set_lateness(&mut self, lateness: Lateness) {
        self.lateness = lateness;
    }

    pub(crate) const fn lateness(&self) -> Lateness {
        self.lateness
    }

    pub(crate) fn extend(&mut self, answers: &[bool]) {
        for &answer in answers {
            if self.len.is_multiple_of(64) {
                self.bits.push(0);
            }
            if let Some(last) = self.bits.last_mut() {
                *last |= u64::from(answer) << (self.len % 64);
            }
            self.len += 1;
            self.yes += usize::from(answer);
        }
    }

    pub(crate) fn get(&self, nth: usize) -> bool {
        self.bits[nth / 64] >> (nth % 64) & 1 == 1
    }

    /// The bytes that the answers take.
    pub(crate) fn memory(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }

    pub(crate) const fn yes(&self) -> u64 {
        self.yes as u64
    }

    pub(crate) const fn no(&self) -> u64 {
        (self.len - self.yes) as u64
    }

    pub(crate) const fn keys(&self) -> u64 {
        self.len as u64
    }
}

/// Answers to an addition.
pub(crate) struct Added {
    pub(crate) new: Replies,
    /// Whether the keys are on disk, or confirmed by Redis.
    pub(crate) saved: bool,
}
