//! Which entrances are worth keeping.

use super::entrance::{Entrance, Inside};
use std::collections::VecDeque;

/// How many entrances are noted.
#[derive(Clone, Copy)]
pub(crate) struct Spacing {
    /// Text between two entrances, at least.
    pub(crate) text: u64,
    /// The same for an entrance in the middle of a member, which comes with a window.
    pub(crate) text_inside: u64,
    /// The share of the file's size that windows may take: one in so many.
    pub(crate) windows: u64,
}

impl Default for Spacing {
    /// Unpacking what lies between two entrances takes some milliseconds.
    fn default() -> Self {
        Self {
            text: 1 << 20,
            text_inside: 8 << 20,
            windows: 100,
        }
    }
}

/// The entrances that were passed.
pub(super) struct Notes {
    spacing: Spacing,
    /// Text that was given.
    text: u64,
    /// The text at which the last entrance is.
    last: u64,
    /// Bytes of all windows.
    windows: u64,
    /// Entrances that are still to be passed.
    known: VecDeque<Entrance>,
    found: Vec<Entrance>,
}

impl Notes {
    pub(super) fn new(spacing: Spacing, known: Vec<Entrance>) -> Self {
        Self {
            spacing,
            known: known.into(),
            text: 0,
            last: 0,
            windows: 0,
            found: Vec::new(),
        }
    }

    /// More text was given.
    pub(super) fn pass(&mut self, count: usize) {
        self.text += count as u64;
        let text = self.text;
        let is_passed = |known: &Entrance| known.text <= text;
        while self.known.front().is_some_and(is_passed)
            && let Some(entrance) = self.known.pop_front()
        {
            self.note(entrance);
        }
    }

    /// A member begins at this byte.
    pub(super) fn note_member(&mut self, at: u64) {
        self.note(Entrance::new(at, self.text));
    }

    /// The entrances that were kept since the last call.
    pub(super) fn take(&mut self) -> Vec<Entrance> {
        std::mem::take(&mut self.found)
    }

    /// Keeps an entrance, if it is far enough from the last one.
    fn note(&mut self, entrance: Entrance) {
        if entrance.text >= self.last + self.spacing.text {
            self.last = entrance.text;
            self.found.push(entrance);
        }
    }

    /// Whether the beginning of a block would be kept, at about this byte.
    pub(super) fn wants_inside(&self, at: u64) -> bool {
        self.text - self.last >= self.spacing.text_inside
            && self.windows <= at / self.spacing.windows
    }

    /// A block begins at this bit, counted from the file's beginning.
    pub(super) fn note_inside(&mut self, at: u64, window: &[u8]) {
        let inside = Inside::gzip((at % 8) as u8, window).ok();
        // Only without memory for it.
        if inside.is_none() {
            return;
        }
        let entrance = Entrance {
            inside,
            ..Entrance::new(at / 8, self.text)
        };
        self.last = self.text;
        self.windows += entrance.to_bytes().len() as u64;
        self.found.push(entrance);
    }
}
