//! Reads inputs in order, as chunks that end between records or units.

use crate::rule::TextUnit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis_records::input::{Input, InputError, Packing};
use tamis_records::progress::Progress;

/// The usual size of a chunk.
const CHUNK: usize = 512 << 10;
/// Longer records, or longer text that can't be divided, are an error. Positions have 32 bits.
const LONGEST: usize = 1 << 30;

/// The type of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One JSON record per line.
    #[default]
    Json,
    /// Plain text: one document.
    Text,
}

/// An input of a run.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// What it holds.
    pub kind: Kind,
}

impl Source {
    /// Treats `.txt`, `.text` and `.md` as plain text, also with a compression suffix, and other files as records.
    ///
    /// ```
    /// use tamis_corpus::chunks::{Kind, Source};
    /// assert_eq!(Source::by_name("a/b.txt.gz".into()).kind, Kind::Text);
    /// assert_eq!(Source::by_name("a/b.jsonl".into()).kind, Kind::Json);
    /// ```
    pub fn by_name(path: PathBuf) -> Self {
        let inner = match path.extension().and_then(|end| end.to_str()) {
            Some("gz" | "zst" | "bz2" | "xz") => path.file_stem().map(Path::new),
            _ => Some(path.as_path()),
        };
        let end = inner.and_then(|name| name.extension()?.to_str());
        let kind = match end {
            Some("txt" | "text" | "md") => Kind::Text,
            _ => Kind::Json,
        };
        Self { path, kind }
    }
}

/// Whole records of one input, or whole units of plain text.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) input: usize,
    pub(crate) kind: Kind,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// Whether to save outputs after this chunk, before reading more.
    pub(crate) saves: bool,
    /// Why neither this input nor any other has more chunks.
    pub(crate) failed: Option<InputError>,
}

/// Reads chunks.
pub(crate) struct Chunks<'a> {
    sources: &'a [Source],
    next: usize,
    /// The judged unit, which decides where plain text can be divided.
    judged: TextUnit,
    open: Option<Input>,
    /// Bytes read after the last border.
    rest: Vec<u8>,
    progress: Arc<Progress>,
    has_failed: bool,
}

impl<'a> Chunks<'a> {
    /// Starts reading at the source with this number.
    pub(crate) fn new(
        sources: &'a [Source],
        first: usize,
        judged: TextUnit,
        progress: &Arc<Progress>,
    ) -> Self {
        Self {
            sources,
            next: first,
            judged,
            open: None,
            rest: Vec::new(),
            progress: Arc::clone(progress),
            has_failed: false,
        }
    }

    /// Reads the next chunk; `false` at the end.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) -> bool {
        let Some(source) = self.sources.get(self.next).filter(|_| !self.has_failed) else {
            return false;
        };
        chunk.bytes.clear();
        chunk.input = self.next;
        chunk.kind = source.kind;
        chunk.is_first = self.open.is_none();
        chunk.is_last = false;
        chunk.saves = false;
        chunk.failed = self.fill(source, chunk).err();
        if chunk.failed.is_some() {
            self.has_failed = true;
            chunk.bytes.clear();
        } else if chunk.is_last {
            self.open = None;
            self.next += 1;
        }
        true
    }

    fn fill(&mut self, source: &Source, chunk: &mut Chunk) -> Result<(), InputError> {
        let input = match &mut self.open {
            Some(input) => input,
            None => {
                let input = Input::open(&source.path, Packing::Recognised, &self.progress)?;
                self.open.insert(input)
            }
        };
        let bytes = &mut chunk.bytes;
        bytes.append(&mut self.rest);
        let mut wanted = CHUNK;
        loop {
            let mut filled = bytes.len();
            bytes.resize(wanted.max(filled), 0);
            while filled < bytes.len() {
                match input.read(&mut bytes[filled..]) {
                    Ok(0) => {
                        bytes.truncate(filled);
                        chunk.is_last = true;
                        return Ok(());
                    }
                    Ok(count) => filled += count,
                    Err(error) => return Err(error),
                }
            }
            if let Some(border) = border(bytes, source.kind, self.judged) {
                self.rest.extend_from_slice(&bytes[border..]);
                bytes.truncate(border);
                return Ok(());
            }
            if bytes.len() >= LONGEST {
                return Err(too_long(input.name(), source.kind, self.judged));
            }
            // Grows by half, so that even a long record is scanned only a few times.
            wanted = (bytes.len() + bytes.len() / 2).min(LONGEST);
        }
    }
}

fn too_long(name: &str, kind: Kind, judged: TextUnit) -> InputError {
    let what = match (kind, judged) {
        (Kind::Json, _) => "a record",
        (Kind::Text, TextUnit::Document) => "a plain text that is judged as one document",
        (Kind::Text, _) => "a paragraph",
    };
    InputError {
        name: name.to_owned(),
        cause: std::io::Error::other(format!("{what} of more than 1 GiB: expected less")),
    }
}

/// The end of the last unit that is surely complete.
fn border(bytes: &[u8], kind: Kind, judged: TextUnit) -> Option<usize> {
    let line_end = |bytes: &[u8]| memchr::memrchr(b'\n', bytes).map(|at| at + 1);
    match (kind, judged) {
        (Kind::Json, _) | (Kind::Text, TextUnit::Line) => line_end(bytes),
        (Kind::Text, TextUnit::Document) => None,
        // After an empty line and before a line that surely isn't empty: further empty lines belong to the same border.
        (Kind::Text, _) => {
            let mut end = bytes.len();
            while let Some(start) = line_end(&bytes[..end]) {
                let next = &bytes[start..];
                let begins_text = next
                    .first()
                    .is_some_and(|byte| (b'!'..=b'~').contains(byte));
                if begins_text && ends_with_empty_line(&bytes[..start]) {
                    return Some(start);
                }
                end = start - 1;
            }
            None
        }
    }
}

fn ends_with_empty_line(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len() - 1];
    let start = memchr::memrchr(b'\n', bytes).map(|at| at + 1);
    start.is_some_and(|start| bytes[start..].iter().all(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_divided_between_its_units() {
        let text = b"a\nb\n \n\nc\nd\n\n\xE3\x80\x80\ne\n";
        let at = |judged| border(text, Kind::Text, judged);
        assert_eq!(at(TextUnit::Line), Some(text.len()));
        // "d" may be followed by a longer border than ASCII shows.
        assert_eq!(at(TextUnit::Paragraph), Some(7));
        assert_eq!(at(TextUnit::Document), None);
        assert_eq!(border(b"a\n\n", Kind::Text, TextUnit::Paragraph), None);
        assert_eq!(border(b"a", Kind::Json, TextUnit::Paragraph), None);
    }
}
