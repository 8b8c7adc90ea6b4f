//! Adds keys to windows by the clock, which may have been set back.

use super::backing::{Backing, ask};
use crate::error::Result;
use crate::lock::{Access, Shared};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::time::Duration;
use tamis::{AnyFilter, Hash, Moment, Window, body::Body, window::Span};

/// How far ahead of the clock a time may be, beyond one generation.
pub(crate) const AHEAD: Duration = Duration::from_secs(60);

/// The latest key's time, if well ahead of the clock.
fn ahead_of<B: Body>(window: &Window<B>, clock: Moment) -> Option<Moment> {
    match (window.options().band(), window.latest()) {
        (Span::Time(band), Some(latest)) if latest > clock + band + AHEAD => Some(latest),
        _ => None,
    }
}

/// Adds a key by the clock; `None` if the caller must first warn about it.
#[inline(never)] // otherwise it would slow down filters that need no clock
pub(crate) fn add_now(window: &mut Window, hash: Hash) -> Option<bool> {
    let clock = Moment::now();
    if ahead_of(window, clock).is_some() {
        return None;
    }
    let now = clock.max(window.latest().unwrap_or(clock));
    Some(window.insert_mut(hash, now))
}

/// Warns if a window's latest key is well ahead of the clock: keys are then added as of that time.
pub(crate) fn warn(py: Python<'_>, state: &Shared<Backing>) -> Result<()> {
    state.wait(py, Access::Ask)?;
    let ahead = state.ask(py, |state| {
        ask!(state, filter => match filter {
            AnyFilter::Window(window) => ahead_of(window, Moment::now()),
            _ => None,
        })
    })?;
    let Some(latest) = ahead else {
        return Ok(());
    };
    let text = format!(
        "the window's latest key is of {latest}, and the clock says {}: it was set back, or the \
         key's time was wrong; keys are added as of the later one",
        Moment::now()
    );
    let text = std::ffi::CString::new(text).map_err(PyErr::from)?;
    Ok(PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?)
}
