//! Where reading can begin in a compressed file.

use super::inflate::WINDOW;
use std::io;

/// A place of a compressed file at which unpacking can begin: the beginning of a gzip member, a zstd frame, a bzip2 or xz
/// stream or an xz block, or a block inside a gzip member.
///
/// ```
/// # use std::io::{Read, Write};
/// use tamis_records::input::{Entrance, TextReader, text_from};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("log.gz");
/// # let mut packed = Vec::new();
/// # for part in 0..3 {
/// #     let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
/// #     encoder.write_all(format!("part {part}\n").repeat(200_000).as_bytes())?;
/// #     packed.extend(encoder.finish()?);
/// # }
/// # std::fs::write(&path, packed)?;
/// let mut reader = TextReader::open(&path, &Default::default())?;
/// let mut text = Vec::new();
/// reader.read_to_end(&mut text)?;
///
/// let (kind, entrances) = (reader.kind(), reader.take_entrances());
/// let offset = 3_000_000;
/// let entrance = entrances.iter().rfind(|entrance| entrance.text <= offset);
/// let mut rest = Vec::new();
/// text_from(std::fs::File::open(&path)?, kind, entrance, offset)?.read_to_end(&mut rest)?;
/// assert_eq!(rest, text[offset as usize..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// The byte of the file.
    pub at: u64,
    /// The offset of the text that begins there.
    pub text: u64,
    /// What else is needed, where it is in the middle of deflated data.
    pub(super) inside: Option<Inside>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inside {
    /// The bit of the byte, from the least significant one.
    bit: u8,
    /// The text before, as zstd packs it.
    window: Vec<u8>,
}

impl Inside {
    pub(super) fn new(bit: u8, window: &[u8]) -> io::Result<Self> {
        let window = zstd::bulk::compress(window, 6)?;
        Ok(Self { bit, window })
    }

    /// The bit, and the text before.
    pub(super) fn unpack(&self) -> io::Result<(u8, Vec<u8>)> {
        let window = zstd::bulk::decompress(&self.window, WINDOW)?;
        Ok((self.bit, window))
    }
}

impl Entrance {
    pub(super) fn new(at: u64, text: u64) -> Self {
        let inside = None;
        Self { at, text, inside }
    }

    /// Memory that it takes, roughly the length of its bytes.
    pub fn size(&self) -> usize {
        16 + self
            .inside
            .as_ref()
            .map_or(0, |inside| 1 + inside.window.len())
    }

    /// As bytes to store: 16, or a few thousand for a place in the middle of deflated data.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        bytes.extend(self.at.to_le_bytes());
        bytes.extend(self.text.to_le_bytes());
        if let Some(inside) = &self.inside {
            bytes.push(inside.bit);
            bytes.extend(&inside.window);
        }
        bytes
    }

    /// From bytes that [`to_bytes`](Self::to_bytes) gave; nothing from others.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_first_chunk()?;
        let inside = match rest {
            [] => None,
            [bit @ 0..8, window @ ..] => Some(Inside {
                bit: *bit,
                window: window.to_vec(),
            }),
            _ => return None,
        };
        Some(Self {
            at: u64::from_le_bytes(*at),
            text: u64::from_le_bytes(*text),
            inside,
        })
    }
}
