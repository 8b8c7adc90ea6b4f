//! Prints a chunk: records unchanged, changed or dropped.

use crate::batch::{Batch, Content, Document, Unit};
use crate::chunks::{Chunk, Kind};
use crate::json::{ATTRIBUTE, raw_place};
use crate::settings::{Output, Settings};
use crate::summary::Counts;
use std::io::Write;

/// Appends the output for the chunk, and counts.
pub(crate) fn print(settings: &Settings, chunk: &Chunk, batch: &Batch, to: &mut Vec<u8>) -> Counts {
    let mut counts = Counts::default();
    let mut printer = Printer {
        settings,
        bytes: &chunk.bytes,
        to,
        waiting: 0..0,
    };
    for document in &batch.documents {
        let units = &batch.units[document.units.clone()];
        counts.add(document, units);
        match settings.output {
            Output::Cleaned => printer.clean(document, units, batch, chunk.kind, &mut counts),
            Output::Annotated => printer.annotate(document, units),
            Output::Attributes => printer.attribute(document, units),
            Output::Nothing => {}
        }
    }
    printer.flush();
    counts.bytes = chunk.bytes.len() as u64;
    counts
}

struct Printer<'a> {
    settings: &'a Settings,
    bytes: &'a [u8],
    to: &'a mut Vec<u8>,
    /// Bytes of the chunk to print unchanged, joined with their neighbours.
    waiting: std::ops::Range<usize>,
}

impl Printer<'_> {
    fn keep(&mut self, range: std::ops::Range<usize>) {
        if self.waiting.end != range.start {
            self.flush();
            self.waiting.start = range.start;
        }
        self.waiting.end = range.end;
    }

    fn flush(&mut self) {
        self.to.extend_from_slice(&self.bytes[self.waiting.clone()]);
        self.waiting = self.waiting.end..self.waiting.end;
    }

    fn clean(
        &mut self,
        document: &Document,
        units: &[Unit],
        batch: &Batch,
        kind: Kind,
        counts: &mut Counts,
    ) {
        let repeats = units.iter().filter(|unit| unit.is_repeat).count();
        let is_empty = repeats == units.len() && document.content == Content::Text;
        let drops_empty = self.settings.drop_empty && kind == Kind::Json;
        if is_empty && (drops_empty || repeats > 0 && self.settings.judges_documents()) {
            counts.dropped += 1;
            counts.emptied += u64::from(!self.settings.judges_documents());
            counts.cut += document.line.len() as u64;
            return;
        }
        if repeats == 0 {
            return self.keep(document.line.clone());
        }
        counts.changed += 1;
        let escapes = &batch.escapes[document.escapes.clone()];
        let mut next = 0;
        let mut place = |at| document.raw.start + raw_place(escapes, &mut next, at);
        let mut done = document.line.start;
        for unit in units.iter().filter(|unit| unit.is_repeat) {
            let (start, end) = (place(unit.span.start), place(unit.span.cut));
            self.keep(done..start);
            counts.cut += (end - start) as u64;
            done = end;
        }
        self.keep(done..document.line.end);
    }

    fn annotate(&mut self, document: &Document, units: &[Unit]) {
        let line = &self.bytes[document.line.clone()];
        let end = line.iter().rposition(|byte| !byte.is_ascii_whitespace());
        let Some(end) = end.filter(|end| document.content == Content::Text && line[*end] == b'}')
        else {
            return self.keep(document.line.clone());
        };
        // Left by an earlier run: two members with one name would contradict each other.
        if let Some(old) = self.settings.fields.attribute(line) {
            let start = document.line.start;
            self.keep(start..start + old.start);
            self.flush();
            self.spans(units);
            return self.keep(start + old.end..document.line.end);
        }
        let end = document.line.start + end;
        self.keep(document.line.start..end);
        self.flush();
        self.to.extend_from_slice(b", \"");
        self.to.extend_from_slice(ATTRIBUTE.as_bytes());
        self.to.extend_from_slice(b"\": ");
        self.spans(units);
        self.keep(end..document.line.end);
    }

    fn attribute(&mut self, document: &Document, units: &[Unit]) {
        if document.content == Content::Nothing {
            return;
        }
        let line = &self.bytes[document.line.clone()];
        let id = self.settings.fields.id(line).unwrap_or("null");
        self.to.extend_from_slice(b"{\"id\": ");
        self.to.extend_from_slice(id.as_bytes());
        self.to.extend_from_slice(b", \"attributes\": {\"");
        self.to.extend_from_slice(ATTRIBUTE.as_bytes());
        self.to.extend_from_slice(b"\": ");
        self.spans(units);
        self.to.extend_from_slice(b"}}\n");
    }

    /// `[[start, end, score], …]`, in characters.
    fn spans(&mut self, units: &[Unit]) {
        let mut comma = "";
        self.to.push(b'[');
        for unit in units.iter().filter(|unit| unit.is_repeat) {
            let (start, end) = (unit.chars.start, unit.chars.end);
            let score = (unit.share * 1e4).round() / 1e4;
            // Writing to memory can't fail.
            let _ = write!(self.to, "{comma}[{start}, {end}, {score:?}]");
            comma = ", ";
        }
        self.to.push(b']');
    }
}
