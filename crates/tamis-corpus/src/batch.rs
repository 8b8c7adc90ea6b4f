//! A chunk's documents, their units and the units' hashes.

use crate::chunks::{Chunk, Kind};
use crate::json::{Escape, Line, unescape};
use crate::near::{Bands, MinHash};
use crate::rule::TextUnit;
use crate::settings::Settings;
use crate::units::{Span, split};
use crate::words::Words;
use std::ops::Range;
use tamis::{Hash, Hasher};

/// The documents of a chunk and what was found in them.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) documents: Vec<Document>,
    pub(crate) units: Vec<Unit>,
    pub(crate) hashes: Vec<Hash>,
    /// Which hashes were seen before.
    pub(crate) found: Vec<bool>,
    pub(crate) escapes: Vec<Escape>,
}

/// A JSON record, or a stretch of plain text.
pub(crate) struct Document {
    /// Its bytes in the chunk, including the line end.
    pub(crate) line: Range<usize>,
    pub(crate) content: Content,
    /// The bytes of its text in the chunk, before unescaping.
    pub(crate) raw: Range<usize>,
    pub(crate) units: Range<usize>,
    pub(crate) escapes: Range<usize>,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    /// An empty line between records.
    Nothing,
    Broken,
    Missing,
    NotText,
}

/// A part of a text that is judged as a whole.
pub(crate) struct Unit {
    pub(crate) span: Span,
    /// The span in characters of the text, if needed.
    pub(crate) chars: Range<u64>,
    /// Its hashes in the batch; empty if it is too short.
    pub(crate) hashes: Range<usize>,
    /// The share of its hashes seen before.
    pub(crate) share: f64,
    pub(crate) is_repeat: bool,
}

/// Finds units; one per thread.
pub(crate) struct Maker<'s> {
    settings: &'s Settings,
    hasher: Hasher,
    words: Words,
    folded: String,
    spans: Vec<Span>,
    minhash: Option<MinHash>,
}

impl<'s> Maker<'s> {
    pub(crate) fn new(settings: &'s Settings, hasher: &Hasher) -> Self {
        let minhash = match settings.rule.unit() {
            TextUnit::Alike(percent) => {
                let bands = Bands::for_threshold(f64::from(percent) / 100.0);
                Some(MinHash::new(bands))
            }
            _ => None,
        };
        Self {
            settings,
            hasher: *hasher,
            words: Words::default(),
            folded: String::new(),
            spans: Vec::new(),
            minhash,
        }
    }

    pub(crate) fn make(&mut self, chunk: &Chunk, batch: &mut Batch) {
        batch.documents.clear();
        batch.units.clear();
        batch.hashes.clear();
        batch.escapes.clear();
        match chunk.kind {
            Kind::Json => self.records(&chunk.bytes, batch),
            Kind::Text => self.plain(&chunk.bytes, batch),
        }
        batch.found.clear();
        batch.found.resize(batch.hashes.len(), false);
    }

    fn records(&mut self, bytes: &[u8], batch: &mut Batch) {
        let mut start = 0;
        while start < bytes.len() {
            let end =
                memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
            self.record(bytes, start..end, batch);
            start = end;
        }
    }

    fn record(&mut self, bytes: &[u8], line: Range<usize>, batch: &mut Batch) {
        let content = &bytes[line.clone()];
        let mut document = Document {
            line: line.clone(),
            content: Content::Text,
            raw: line.start..line.start,
            units: batch.units.len()..batch.units.len(),
            escapes: batch.escapes.len()..batch.escapes.len(),
        };
        document.content = match self.settings.fields.find(content) {
            Line::Text(raw) => {
                let text = unescape(&content[raw.clone()], &mut batch.escapes);
                document.raw = line.start + raw.start..line.start + raw.end;
                document.escapes.end = batch.escapes.len();
                match text {
                    Some(text) => {
                        self.text(&text, batch);
                        Content::Text
                    }
                    None => Content::NotText,
                }
            }
            Line::NotText(_) => Content::NotText,
            Line::Missing => Content::Missing,
            Line::Broken if content.iter().all(u8::is_ascii_whitespace) => Content::Nothing,
            Line::Broken => Content::Broken,
        };
        document.units.end = batch.units.len();
        batch.documents.push(document);
    }

    /// Plain text. Lines that aren't UTF-8 are kept unchanged, and the text between them is judged.
    fn plain(&mut self, bytes: &[u8], batch: &mut Batch) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.stretch(text, 0, batch);
            return;
        }
        let mut start = 0;
        let mut done = 0;
        while start < bytes.len() {
            let end =
                memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
            if std::str::from_utf8(&bytes[start..end]).is_err() {
                // All lines since `done` are valid UTF-8, so together they are, too.
                let before = std::str::from_utf8(&bytes[done..start]).unwrap_or_default();
                self.stretch(before, done, batch);
                batch.documents.push(Document {
                    line: start..end,
                    content: Content::Broken,
                    raw: start..start,
                    units: batch.units.len()..batch.units.len(),
                    escapes: 0..0,
                });
                done = end;
            }
            start = end;
        }
        let rest = std::str::from_utf8(&bytes[done..]).unwrap_or_default();
        self.stretch(rest, done, batch);
    }

    fn stretch(&mut self, text: &str, at: usize, batch: &mut Batch) {
        if text.is_empty() {
            return;
        }
        let first = batch.units.len();
        self.text(text, batch);
        batch.documents.push(Document {
            line: at..at + text.len(),
            content: Content::Text,
            raw: at..at + text.len(),
            units: first..batch.units.len(),
            escapes: 0..0,
        });
    }

    fn text(&mut self, text: &str, batch: &mut Batch) {
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        split(text, self.settings.judged(), &mut spans);
        let (mut chars, mut counted) = (0, 0);
        for span in &spans {
            let first = batch.hashes.len();
            self.hashes(&text[span.key()], &mut batch.hashes);
            let mut unit = Unit {
                span: *span,
                chars: 0..0,
                hashes: first..batch.hashes.len(),
                share: 0.0,
                is_repeat: false,
            };
            if self.settings.wants_chars() {
                unit.chars.start = chars + count_chars(&text[counted..span.start]);
                unit.chars.end = unit.chars.start + count_chars(&text[span.start..span.cut]);
                (chars, counted) = (unit.chars.end, span.cut);
            }
            batch.units.push(unit);
        }
        self.spans = spans;
    }

    fn hashes(&mut self, key: &str, hashes: &mut Vec<Hash>) {
        let settings = self.settings;
        let fold = settings.rule.fold();
        if key.len() < settings.min_bytes {
            return;
        }
        let counts_words = settings.min_words > 0;
        let takes_words = counts_words || settings.rule.takes_words();
        if takes_words {
            self.words.take(key, fold);
            if self.words.len() < settings.min_words {
                return;
            }
        }
        match (settings.rule.unit(), &mut self.minhash) {
            (TextUnit::Words(n), _) => {
                let n = usize::from(n);
                if self.words.len() >= n {
                    let places = (0..=self.words.len() - n).step_by(settings.stride);
                    let keys = places.map(|at| self.words.ngram(at, n).as_bytes());
                    hashes.extend(keys.map(|key| self.hasher.hash_exact(key)));
                }
            }
            (_, Some(minhash)) => minhash.keys(&self.words, &self.hasher, hashes),
            _ => {
                let key = fold.apply(key, &mut self.folded);
                hashes.push(self.hasher.hash_exact(key.as_bytes()));
            }
        }
    }
}

/// Counts Unicode characters, like Python.
fn count_chars(text: &str) -> u64 {
    let begins = |byte: &u8| (*byte as i8) >= -0x40;
    text.as_bytes().iter().filter(|byte| begins(byte)).count() as u64
}
