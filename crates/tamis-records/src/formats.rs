//! Recognises files whose words and lines can't be read from their bytes.

/// The kind of a file whose text can't be read from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// The name with its article: `a Parquet file`.
    pub name: &'static str,
    /// What the user can do about it.
    pub class: FileClass,
}

/// Classes of files, by what the user can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileClass {
    /// A Tamis filter.
    Filter,
    /// A Tamis index.
    Index,
    /// A table with readable columns.
    Parquet,
    /// A table whose columns are not readable.
    EncryptedParquet,
    /// Text in UTF-16.
    Utf16,
    /// Text in UTF-32.
    Utf32,
    /// Compressed data that we can't unpack.
    Unread,
    /// Compressed data that we can unpack.
    Packed,
    /// Something to unpack or convert.
    Other,
}

const fn kind(name: &'static str, class: FileClass) -> FileKind {
    FileKind { name, class }
}

const fn other(name: &'static str) -> FileKind {
    kind(name, FileClass::Other)
}

const fn unread(name: &'static str) -> FileKind {
    kind(name, FileClass::Unread)
}

const UTF_16: FileKind = kind("text in UTF-16", FileClass::Utf16);
const UTF_32: FileKind = kind("text in UTF-32", FileClass::Utf32);

/// Signatures, and the kinds of files that begin with them.
const SIGNATURES: &[(&[u8], FileKind)] = &[
    (b"PAR1", kind("a Parquet file", FileClass::Parquet)),
    (
        b"PARE",
        kind("an encrypted Parquet file", FileClass::EncryptedParquet),
    ),
    (b"ORC", other("an ORC file")),
    (b"ARROW1\0\0", other("an Arrow file")),
    (b"Obj\x01", other("an Avro file")),
    (b"PK\x03\x04", other("a zip archive")),
    (b"PK\x05\x06", other("a zip archive")),
    (b"7z\xBC\xAF\x27\x1C", other("a 7z archive")),
    (b"Rar!\x1A\x07", other("a rar archive")),
    (b"\x04\x22\x4D\x18", unread("lz4 data")),
    (b"\x02\x21\x4C\x18", unread("lz4 data")),
    (b"LZIP", unread("lzip data")),
    (b"\x89LZO\0\r\n\x1A\n", unread("lzop data")),
    (b"\x1F\x9D", unread("compress data")),
    (b"\x5D\0\0", unread("LZMA data")),
    (b"\xFF\x06\0\0sNaPpY", unread("snappy data")),
    (b"%PDF-", other("a PDF file")),
    // Compressed data inside compressed data.
    (b"\x1F\x8B\x08", kind("gzip data inside", FileClass::Packed)),
    (
        b"\x28\xB5\x2F\xFD",
        kind("zstd data inside", FileClass::Packed),
    ),
    (b"\xFD7zXZ\0", kind("xz data inside", FileClass::Packed)),
    // UTF-32 first, because its mark begins with that of UTF-16.
    (b"\xFF\xFE\0\0", UTF_32),
    (b"\0\0\xFE\xFF", UTF_32),
    (b"\xFF\xFE", UTF_16),
    (b"\xFE\xFF", UTF_16),
];

/// Kinds of files without lines, in which an index still looks for words.
const NO_LINES: &[(&[u8], FileKind)] = &[
    (b"TAMIS\r\n\x1A", kind("a Tamis filter", FileClass::Filter)),
    (
        b"TAMIX\r\n\x1A",
        kind("an index of Tamis", FileClass::Index),
    ),
    (b"\x89PNG\r\n\x1A\n", other("a PNG image")),
    (b"\xFF\xD8\xFF", other("a JPEG image")),
    (b"GIF8", other("a GIF image")),
    (b"\x7FELF", other("a program")),
    (b"SQLite format 3\0", other("an SQLite database")),
];
/// The position of the mark in a tar archive.
const TAR: (std::ops::Range<usize>, &[u8]) = (257..262, b"ustar");

/// Bytes at the start of a file that are enough to recognise it.
pub(crate) const HEAD: usize = 512;

/// The kind of a file with this beginning, if its text can't be read from its
/// bytes.
pub(crate) fn not_text(head: &[u8]) -> Option<FileKind> {
    if is_text(head) {
        return None;
    }
    signed(SIGNATURES, head).or_else(|| wide_text(head))
}

/// The kind of a file with this beginning, if its lines can't be read from its
/// bytes.
pub(crate) fn not_lines(head: &[u8]) -> Option<FileKind> {
    if is_text(head) {
        return None;
    }
    let (range, mark) = TAR;
    let is_tar = head.get(range) == Some(mark);
    signed(NO_LINES, head)
        .or(is_tar.then_some(other("a tar archive")))
        .or_else(|| not_text(head))
}

/// The kind of a file with this beginning, if it is known and not text.
///
/// ```
/// use tamis_records::formats::{is_text, kind_of};
/// assert_eq!(kind_of(b"%PDF-1.7\n").map(|kind| kind.name), Some("a PDF file"));
/// assert!(kind_of(b"a line\n").is_none() && is_text(b"a line\n"));
/// ```
pub fn kind_of(head: &[u8]) -> Option<FileKind> {
    not_lines(head)
}

fn signed(signatures: &[(&[u8], FileKind)], head: &[u8]) -> Option<FileKind> {
    let mut found = signatures
        .iter()
        .filter(|(start, _)| head.starts_with(start));
    found.next().map(|(_, kind)| *kind)
}

/// Whether a file with this beginning is text in UTF-8. PDF looks like text but
/// isn't, and a text may begin like some other formats.
pub fn is_text(head: &[u8]) -> bool {
    is_plain(head) && !head.starts_with(b"%PDF-")
}

/// Whether all bytes are UTF-8, without control characters that never occur in
/// text.
fn is_plain(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The last character was cut off.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.contains(|c: char| c.is_control() && !"\t\n\r\x0C\x1B".contains(c))
}

/// Recognises UTF-16 without a mark: in most of it, every other byte is zero,
/// as in no other text.
fn wide_text(head: &[u8]) -> Option<FileKind> {
    let pairs = head.as_chunks::<2>().0;
    let share = |zero: usize, other: usize| {
        let alike = pairs
            .iter()
            .filter(|pair| pair[zero] == 0 && pair[other] != 0);
        alike.count() * 10 >= pairs.len() * 9
    };
    (pairs.len() >= 2 && (share(0, 1) || share(1, 0))).then_some(UTF_16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_text_is_told_from_bytes() {
        let wide = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
        };
        let swapped = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect::<Vec<_>>()
        };
        let name = |head: &[u8]| not_text(head).map(|kind| kind.name);
        assert_eq!(name(&wide("one word")), Some("text in UTF-16"));
        assert_eq!(name(&swapped("one wörd")), Some("text in UTF-16"));
        assert_eq!(name(b"one word"), None);
        assert_eq!(name(b"PAR1 and ORC are words\n"), None);
        assert_eq!(name(b"PAR1\x15\x04"), Some("a Parquet file"));
        assert_eq!(name(b""), None);
        assert_eq!(name(&[0; HEAD]), None);
        let counting: Vec<u8> = (0..=255).cycle().take(HEAD).collect();
        assert_eq!(name(&counting), None);
    }

    #[test]
    fn what_has_no_lines_is_named() {
        let kind = |head: &[u8]| not_lines(head).map(|kind| kind.name);
        assert_eq!(kind(b"TAMIS\r\n\x1A\x01"), Some("a Tamis filter"));
        assert_eq!(kind(b"\x89PNG\r\n\x1A\n\0"), Some("a PNG image"));
        assert_eq!(kind(b"%PDF-1.7\n"), Some("a PDF file"));
        assert_eq!(kind(b"\xFF\xFEa\0"), Some("text in UTF-16"));
        let mut tar = [0; HEAD];
        tar[..4].copy_from_slice(b"name");
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(kind(&tar), Some("a tar archive"));
        for text in [
            &b"TAMIS is a word\n"[..],
            b"GIF8\n",
            b"",
            b"\xEF\xBB\xBFid\n",
        ] {
            assert_eq!(kind(text), None);
        }
    }
}
