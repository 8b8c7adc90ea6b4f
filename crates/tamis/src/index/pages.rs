//! Checksums of the filters, page by page, so that an answer costs no more than the pages it is
//! read from.
//!
//! A "no" from a damaged page would be false for some key. So before a "no", the pages that it
//! depends on are compared with their sums, each only once while an index is open.

use crate::index::format::{Directory, PAGE};
use crate::raw::header::HEADER_LEN;
use crate::raw::word::Word;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const UNKNOWN: u8 = 0;
const SOUND: u8 = 1;
const DAMAGED: u8 = 2;

/// The check result of every page.
pub(super) struct Pages(Box<[AtomicU8]>);

impl Pages {
    pub(super) fn new(directory: &Directory) -> Self {
        let pages = 0..directory.pages();
        Self(pages.map(|_| AtomicU8::new(UNKNOWN)).collect())
    }

    /// Whether all pages with these words of the bodies are undamaged.
    #[inline(always)]
    pub(super) fn are_sound<W: Word>(
        &self,
        directory: &Directory,
        bodies: &[W],
        range: Range<usize>,
    ) -> bool {
        if range.is_empty() {
            return true;
        }
        let at = |word: usize| HEADER_LEN + word * 8;
        let mut pages = at(range.start) / PAGE..at(range.end).div_ceil(PAGE);
        pages.all(|page| match self.0[page].load(Relaxed) {
            UNKNOWN => self.compare(directory, bodies, page),
            known => known == SOUND,
        })
    }

    #[inline(never)]
    fn compare<W: Word>(&self, directory: &Directory, bodies: &[W], page: usize) -> bool {
        let at = directory.page(page);
        let words = &bodies[(at.start - HEADER_LEN) / 8..(at.end - HEADER_LEN) / 8];
        let mut bytes = [0; PAGE];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.get().to_le_bytes();
        }
        let digest = xxh3_64(&bytes[..words.len() * 8]);
        let sound = sum(digest, page) == directory.page_sum(page);
        self.0[page].store(if sound { SOUND } else { DAMAGED }, Relaxed);
        sound
    }
}

/// Includes the page's number, to detect swapped pages.
fn sum(digest: u64, page: usize) -> [u8; 4] {
    (digest as u32 ^ page as u32).to_le_bytes()
}

/// Computes the sums of pages as they are written.
pub(super) struct Summing {
    /// Where the next byte goes.
    at: usize,
    /// Whether the page has any bytes yet.
    begun: bool,
    page: Xxh3,
    sums: Vec<u8>,
}

impl std::fmt::Debug for Summing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Summing({} bytes)", self.at)
    }
}

impl Summing {
    /// `at` is the offset of the filters in the first page.
    pub(super) fn new(at: usize) -> Self {
        Self {
            at,
            begun: false,
            page: Xxh3::new(),
            sums: Vec::new(),
        }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - self.at % PAGE));
            self.page.update(now);
            self.at += now.len();
            self.begun = true;
            bytes = later;
            if self.at.is_multiple_of(PAGE) {
                self.end_page(self.at / PAGE - 1);
            }
        }
    }

    fn end_page(&mut self, page: usize) {
        self.sums.extend_from_slice(&sum(self.page.digest(), page));
        self.page.reset();
        self.begun = false;
    }

    /// All sums, concatenated.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.begun {
            self.end_page(self.at / PAGE);
        }
        self.sums
    }
}
