//! The moments of a batch of keys.

use crate::moment::Moment;
use std::ops::Range;

/// The moments of a batch of keys for a [`Window`](crate::Window): one for all,
/// or one for each.
///
/// ```
/// use tamis::{Id, Moment, Window};
/// use std::time::Duration;
/// let mut seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
/// let keys = Id::all(&[1, 2]);
/// let mut new = [false; 2];
/// seen.insert_many_mut(keys, Moment::from_secs(5), &mut new); // one for all
/// let times = [Moment::from_secs(6), Moment::from_secs(90)];
/// seen.insert_many_mut(keys, &times[..], &mut new); // one for each
/// assert_eq!(new, [false, true]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum When<'t> {
    /// One for all keys.
    All(Moment),
    /// `moments[i]` for `keys[i]`.
    Each(&'t [Moment]),
}

impl When<'_> {
    /// The moment of this key.
    #[doc(hidden)]
    #[inline(always)]
    pub fn of(&self, number: usize) -> Moment {
        match self {
            Self::All(moment) => *moment,
            Self::Each(moments) => moments[number],
        }
    }

    /// Panics unless there is a moment for all keys or one for each.
    #[doc(hidden)]
    #[inline(always)]
    pub fn check(&self, keys: usize) {
        if let Self::Each(moments) = self {
            assert_eq!(moments.len(), keys, "one moment for each key");
        }
    }

    /// All of them: a single one if it is for all keys.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn all(&self) -> &[Moment] {
        match self {
            Self::All(moment) => std::slice::from_ref(moment),
            Self::Each(moments) => moments,
        }
    }
}

impl From<Moment> for When<'_> {
    #[inline(always)]
    fn from(moment: Moment) -> Self {
        Self::All(moment)
    }
}

impl<'t> From<&'t [Moment]> for When<'t> {
    #[inline(always)]
    fn from(moments: &'t [Moment]) -> Self {
        Self::Each(moments)
    }
}

/// The moment of this key: there is one for each, or one for all.
#[inline(always)]
pub(super) fn moment_of(times: &[Moment], number: usize) -> Moment {
    times[if times.len() == 1 { 0 } else { number }]
}

/// The end of the keys from `first` on whose moments are in a range.
pub(super) fn end_of(times: &[Moment], first: usize, keys: usize, range: &Range<i64>) -> usize {
    if times.len() == 1 {
        return keys;
    }
    let is_other = |at: &Moment| !range.contains(&at.micros());
    let others = times[first..].iter().position(is_other);
    others.map_or(keys, |more| first + more)
}
