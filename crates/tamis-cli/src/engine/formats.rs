//! Files whose words and lines do not stand in their bytes.

/// What such a file begins with, and what it is.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"PAR1", PARQUET),
    (b"PARE", "an encrypted Parquet file"),
    (b"ORC", "an ORC file"),
    (b"ARROW1\0\0", "an Arrow file"),
    (b"Obj\x01", "an Avro file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
    (b"Rar!\x1A\x07", "a rar archive"),
    (b"\x04\x22\x4D\x18", "lz4 data"),
    (b"\x02\x21\x4C\x18", "lz4 data"),
    (b"LZIP", "lzip data"),
    (b"\x89LZO\0\r\n\x1A\n", "lzop data"),
    (b"\x1F\x9D", "compress data"),
    (b"\x5D\0\0", "LZMA data"),
    (b"\xFF\x06\0\0sNaPpY", "snappy data"),
    (b"%PDF-", "a PDF file"),
    // As compressed data inside compressed data.
    (b"\x1F\x8B\x08", "gzip data inside"),
    (b"\x28\xB5\x2F\xFD", "zstd data inside"),
    (b"\xFD7zXZ\0", "xz data inside"),
    // UTF-32 first, whose mark begins as that of UTF-16 does.
    (b"\xFF\xFE\0\0", "text in UTF-32"),
    (b"\0\0\xFE\xFF", "text in UTF-32"),
    (b"\xFF\xFE", "text in UTF-16"),
    (b"\xFE\xFF", "text in UTF-16"),
];

pub(crate) const PARQUET: &str = "a Parquet file";

/// Bytes of a file that tell.
pub(crate) const HEAD: usize = 512;

/// What a file that begins so is, if its text is not to be read from its bytes.
pub(crate) fn not_text(head: &[u8]) -> Option<&'static str> {
    // Texts of PDF look like text; and a text may begin with what some formats do.
    if is_plain(head) && !head.starts_with(b"%PDF-") {
        return None;
    }
    let signed = SIGNATURES.iter().find(|(start, _)| head.starts_with(start));
    signed.map(|(_, name)| *name).or_else(|| wide_text(head))
}

/// Kinds of files that an index looks into for words, but that have no lines.
const NO_LINES: &[(&[u8], &str)] = &[
    (b"TAMIS\r\n\x1A", "a Tamis filter"),
    (b"TAMIX\r\n\x1A", "an index of Tamis"),
    (b"\x89PNG\r\n\x1A\n", "a PNG image"),
    (b"\xFF\xD8\xFF", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x7FELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
];
/// Where the mark of a tar archive is.
const TAR: (std::ops::Range<usize>, &[u8]) = (257..262, b"ustar");

/// What a file that begins so is, if its lines are not to be read from its bytes, and what to do.
pub(crate) fn not_lines(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if is_plain(head) && !head.starts_with(b"%PDF-") {
        return None;
    }
    let (range, mark) = TAR;
    let is_tar = head.get(range) == Some(mark);
    let kind = NO_LINES.iter().find(|(start, _)| head.starts_with(start));
    let kind = kind.map(|(_, name)| *name);
    let kind = kind.or(is_tar.then_some("a tar archive"));
    let kind = kind.or_else(|| not_text(head))?;
    let advice = match kind {
        "a Tamis filter" => "`tamis merge` combines filters, `tamis info` describes one",
        "an index of Tamis" => "`tamis which` and `tamis grep` ask an index",
        PARQUET => {
            "`tamis index --key parquet:COLUMN` reads its columns, and DuckDB writes them as CSV"
        }
        "text in UTF-16" => "convert it: iconv -f UTF-16 -t UTF-8",
        "text in UTF-32" => "convert it: iconv -f UTF-32 -t UTF-8",
        _ => "unpack or convert it first",
    };
    Some((kind, advice))
}

/// Whether all of it is UTF-8, without the control characters that no text has.
fn is_plain(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character was cut.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.contains(|c: char| c.is_control() && !"\t\n\r\x0C\x1B".contains(c))
}

/// Text in UTF-16 need not begin with a mark. Most of it has every other byte zero, which no other text has.
fn wide_text(head: &[u8]) -> Option<&'static str> {
    let pairs = head.as_chunks::<2>().0;
    let share = |zero: usize, other: usize| {
        let alike = pairs
            .iter()
            .filter(|pair| pair[zero] == 0 && pair[other] != 0);
        alike.count() * 10 >= pairs.len() * 9
    };
    (pairs.len() >= 2 && (share(0, 1) || share(1, 0))).then_some("text in UTF-16")
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
        assert_eq!(not_text(&wide("one word")), Some("text in UTF-16"));
        assert_eq!(not_text(&swapped("one wörd")), Some("text in UTF-16"));
        assert_eq!(not_text(b"one word"), None);
        assert_eq!(not_text(b"PAR1 and ORC are words\n"), None);
        assert_eq!(not_text(b"PAR1\x15\x04"), Some("a Parquet file"));
        assert_eq!(not_text(b""), None);
        assert_eq!(not_text(&[0; HEAD]), None);
        let counting: Vec<u8> = (0..=255).cycle().take(HEAD).collect();
        assert_eq!(not_text(&counting), None);
    }

    #[test]
    fn what_has_no_lines_is_named() {
        let kind = |head: &[u8]| not_lines(head).map(|(kind, _)| kind);
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
