//! The results of a run: counts per source, the most repeated units, and odd lines.

use crate::batch::{Batch, Content, Document, Unit};
use crate::chunks::Chunk;
use crate::settings::Settings;
use std::collections::HashMap;
use std::ops::AddAssign;
use tamis::Hash;

/// The most odd lines that are named.
const NAMED: usize = 10;
/// Units counted at the same time to find the most repeated.
const COUNTED: usize = 4096;
/// The most repeated units that are reported.
const REPORTED: usize = 10;
/// The most characters shown of a unit.
const SHOWN: usize = 80;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records, or stretches of plain text.
    pub records: u64,
    /// Records that were dropped.
    pub dropped: u64,
    /// Dropped records of which nothing was left.
    pub emptied: u64,
    /// Records that lost a part of their text.
    pub changed: u64,
    /// Units that were judged.
    pub units: u64,
    /// Judged units that were repetitions.
    pub repeats: u64,
    /// Units too short to be judged.
    pub short: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// Bytes cut out, as written in the input.
    pub cut: u64,
    /// Lines that aren't records: not JSON, or in plain text not UTF-8. They are kept.
    pub broken: u64,
    /// Records without text. They are kept.
    pub missing: u64,
    /// Records whose text isn't a string. They are kept.
    pub not_text: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, document: &Document, units: &[Unit]) {
        match document.content {
            Content::Text => self.records += 1,
            Content::Nothing => {}
            Content::Broken => self.broken += 1,
            Content::Missing => self.missing += 1,
            Content::NotText => self.not_text += 1,
        }
        for unit in units {
            if unit.hashes.is_empty() {
                self.short += 1;
            } else {
                self.units += 1;
                self.repeats += u64::from(unit.is_repeat);
            }
        }
    }

    /// Lines that were kept because they have no text to judge.
    pub const fn odd(&self) -> u64 {
        self.broken + self.missing + self.not_text
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.dropped += other.dropped;
        self.emptied += other.emptied;
        self.changed += other.changed;
        self.units += other.units;
        self.repeats += other.repeats;
        self.short += other.short;
        self.bytes += other.bytes;
        self.cut += other.cut;
        self.broken += other.broken;
        self.missing += other.missing;
        self.not_text += other.not_text;
    }
}

/// A line that was kept unchanged because it has no text to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// The number of its input.
    pub input: usize,
    /// Its line number, from 1.
    pub line: u64,
    /// What is odd about it.
    pub what: &'static str,
}

/// A unit that occurs often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Its beginning.
    pub text: String,
    /// How often it was found as a repetition, at least.
    pub times: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// For each input that was read completely.
    pub sources: Vec<(usize, Counts)>,
    /// The first odd lines.
    pub odd: Vec<Odd>,
    /// The most repeated units, if asked for.
    pub most_repeated: Vec<Repeated>,
}

impl Summary {
    /// The totals over all inputs.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.sources.iter().for_each(|(_, counts)| total += *counts);
        total
    }
}

/// Collects the results of chunks, in order.
#[derive(Default)]
pub(crate) struct Collector {
    pub(crate) summary: Summary,
    current: Counts,
    lines: u64,
    repeated: HashMap<Hash, Repeated>,
}

impl Collector {
    pub(crate) fn add(
        &mut self,
        settings: &Settings,
        chunk: &Chunk,
        batch: &Batch,
        counts: Counts,
    ) {
        if chunk.is_first {
            (self.current, self.lines) = (Counts::default(), 0);
        }
        if counts.odd() > 0 {
            self.name_odd(chunk, batch);
        }
        self.lines += memchr::memchr_iter(b'\n', &chunk.bytes).count() as u64;
        if settings.finds_most_repeated {
            self.count_repeats(chunk, batch);
        }
        self.current += counts;
        if chunk.is_last {
            self.summary.sources.push((chunk.input, self.current));
        }
    }

    fn name_odd(&mut self, chunk: &Chunk, batch: &Batch) {
        for document in &batch.documents {
            let what = match document.content {
                Content::Text | Content::Nothing => continue,
                Content::Broken if chunk.kind == crate::chunks::Kind::Text => "no UTF-8",
                Content::Broken => "no JSON",
                Content::Missing => "no text",
                Content::NotText => "a text that is no string",
            };
            if self.summary.odd.len() == NAMED {
                return;
            }
            let before = &chunk.bytes[..document.line.start];
            let before = memchr::memchr_iter(b'\n', before).count() as u64;
            self.summary.odd.push(Odd {
                input: chunk.input,
                line: self.lines + before + 1,
                what,
            });
        }
    }

    /// Misra and Gries's algorithm keeps the frequent ones: if there is no room, all counts drop by one.
    fn count_repeats(&mut self, chunk: &Chunk, batch: &Batch) {
        for document in &batch.documents {
            let units = &batch.units[document.units.clone()];
            for unit in units.iter().filter(|unit| unit.is_repeat) {
                let hash = batch.hashes[unit.hashes.start];
                if let Some(known) = self.repeated.get_mut(&hash) {
                    known.times += 1;
                } else if self.repeated.len() < COUNTED {
                    let text = shown(chunk, batch, document, unit);
                    self.repeated.insert(hash, Repeated { text, times: 1 });
                } else {
                    self.repeated.retain(|_, known| {
                        known.times -= 1;
                        known.times > 0
                    });
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> Summary {
        let mut repeated: Vec<Repeated> = self.repeated.into_values().collect();
        repeated.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.text.cmp(&b.text)));
        repeated.truncate(REPORTED);
        self.summary.most_repeated = repeated;
        self.summary
    }
}

/// The beginning of a unit.
fn shown(chunk: &Chunk, batch: &Batch, document: &Document, unit: &Unit) -> String {
    let escapes = &batch.escapes[document.escapes.clone()];
    let mut next = 0;
    let mut place = |at| document.raw.start + crate::json::raw_place(escapes, &mut next, at);
    let (start, end) = (place(unit.span.start), place(unit.span.end));
    let end = end.min(start + 12 * SHOWN);
    let text = String::from_utf8_lossy(&chunk.bytes[start..end]);
    // Escapes stay as written, so that a unit is one line.
    let shown = text.chars().take(SHOWN);
    let shown: String = shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    shown.trim_end().to_owned()
}
