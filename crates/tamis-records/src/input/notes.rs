//! Chooses the entrances to keep.

use super::entrance::{Entrance, Inside};
use std::collections::VecDeque;

/// How densely entrances are kept.
#[derive(Clone, Copy)]
pub(crate) struct Spacing {
    /// Least text between two entrances.
    pub(crate) text: u64,
    /// The same for entrances inside a member, which need a window.
    pub(crate) text_inside: u64,
    /// Windows may take one part in this many of the file's size.
    pub(crate) windows: u64,
}

impl Default for Spacing {
    /// Unpacking the text between two entrances takes some milliseconds.
    fn default() -> Self {
        Self {
            text: 1 << 20,
            text_inside: 8 << 20,
            windows: 100,
        }
    }
}

/// Collects the entrances that are passed.
pub(super) struct Notes {
    spacing: Spacing,
    /// Bytes of text so far.
    text: u64,
    /// Where in the text the last entrance is.
    last: u64,
    /// Bytes of all windows.
    windows: u64,
    /// Known entrances that haven't been passed yet.
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

    /// Counts more text.
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

    /// Records that a member begins at this byte.
    pub(super) fn note_member(&mut self, at: u64) {
        self.note(Entrance::new(at, self.text));
    }

    /// The entrances kept since the last call.
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

    /// Whether an entrance inside a member, at about this byte, would be kept.
    pub(super) fn wants_inside(&self, at: u64) -> bool {
        self.text - self.last >= self.spacing.text_inside
            && self.windows <= at / self.spacing.windows
    }

    /// Records that a block begins at this bit of the file.
    pub(super) fn note_inside(&mut self, at: u64, window: &[u8]) {
        let inside = Inside::gzip((at % 8) as u8, window).ok();
        // Fails only if memory runs out.
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
