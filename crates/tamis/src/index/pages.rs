//! Checksums of the filters, page by page, so that an answer costs no more than
//! the pages it is read from.
//!
//! A "no" that a damaged page gave would be false for some key. So whoever says
//! "no" first compares the pages that the answer came from with their sums, each
//! once while an index is open.

use super::format::Layout;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes from one multiple of this to the next are a page. A quarter of those
/// that systems read at once: a sum costs 0.4 % of the space, and comparing it
/// about as much as the cache misses of the answer.
pub(super) const PAGE: usize = 1024;

const UNKNOWN: u8 = 0;
const SOUND: u8 = 1;
const DAMAGED: u8 = 2;

/// What is known of every page.
pub(super) struct Pages(Box<[AtomicU8]>);

impl Pages {
    pub(super) fn new(layout: &Layout) -> Self {
        Self(
            (0..layout.pages())
                .map(|_| AtomicU8::new(UNKNOWN))
                .collect(),
        )
    }

    /// Whether all pages with bytes of this range are as they were written.
    #[inline(always)]
    pub(super) fn are_sound(&self, layout: &Layout, bytes: &[u8], range: Range<usize>) -> bool {
        let pages = match range.is_empty() {
            true => 0..0,
            false => range.start / PAGE..range.end.div_ceil(PAGE),
        };
        pages
            .into_iter()
            .all(|page| match self.0[page].load(Relaxed) {
                UNKNOWN => self.compare(layout, bytes, page),
                state => state == SOUND,
            })
    }

    #[inline(never)]
    fn compare(&self, layout: &Layout, bytes: &[u8], page: usize) -> bool {
        let sound = sum(xxh3_64(&bytes[layout.page(page)]), page) == layout.page_sum(bytes, page);
        self.0[page].store(if sound { SOUND } else { DAMAGED }, Relaxed);
        sound
    }
}

/// With the number of the page, so that one in another's place is damage, too.
fn sum(digest: u64, page: usize) -> [u8; 4] {
    (digest as u32 ^ page as u32).to_le_bytes()
}

/// Sums up pages as they are written.
pub(super) struct Summing {
    /// Where the next byte goes.
    at: usize,
    /// Whether the page has any yet.
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
    /// `at` is where the filters begin, in the first page.
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

    /// All sums, one behind the other.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.begun {
            self.end_page(self.at / PAGE);
        }
        self.sums
    }
}
