//! Places in a compressed file where reading can start.

use super::inflate::WINDOW;
use std::io;

/// A place in a compressed file where unpacking can start: the beginning of a gzip member, a zstd frame, a bzip2 or xz
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
    /// The position in the file, in bytes.
    pub at: u64,
    /// The offset of the text that begins there.
    pub text: u64,
    /// What else is needed to start inside a member.
    pub(super) inside: Option<Inside>,
}

/// The state needed to start inside a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Gzip {
        /// The bit in that byte, from the least significant one.
        bit: u8,
        /// The text before, compressed with zstd.
        window: Vec<u8>,
    },
    Xz(XzBlock),
}

/// A block in a stream of xz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct XzBlock {
    /// The stream's flags and their checksum, from its header.
    pub(super) flags: [u8; 6],
    /// Bytes of text from here to the end of the stream.
    pub(super) text: u64,
    /// Bytes from here to the stream's index.
    pub(super) packed: u64,
    /// Bytes of the index and the footer.
    pub(super) index: u64,
}

impl Inside {
    pub(super) fn gzip(bit: u8, window: &[u8]) -> io::Result<Self> {
        let window = zstd::bulk::compress(window, 3)?;
        Ok(Self::Gzip { bit, window })
    }

    /// The bytes to store; the first one identifies the kind.
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Gzip { bit, window } => [&[*bit], &window[..]].concat(),
            Self::Xz(block) => {
                let lengths = [block.text, block.packed, block.index];
                let lengths = lengths.map(u64::to_le_bytes);
                [&[XZ], &block.flags[..], lengths.as_flattened()].concat()
            }
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        Some(match *tag {
            bit @ 0..8 => Self::Gzip {
                bit,
                window: rest.to_vec(),
            },
            XZ => {
                let (flags, rest) = rest.split_first_chunk()?;
                let ([text, packed, index], []) = rest.as_chunks() else {
                    return None;
                };
                Self::Xz(XzBlock {
                    flags: *flags,
                    text: u64::from_le_bytes(*text),
                    packed: u64::from_le_bytes(*packed),
                    index: u64::from_le_bytes(*index),
                })
            }
            _ => return None,
        })
    }
}

/// The first byte of a stored xz block.
const XZ: u8 = 8;

/// Unpacks the text before a place in deflated data.
pub(super) fn unpack_window(window: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(window, WINDOW)
}

impl Entrance {
    pub(super) fn new(at: u64, text: u64) -> Self {
        let inside = None;
        Self { at, text, inside }
    }

    /// The bytes to store: 16, some more for a block of xz, or a few thousand for a place inside deflated data.
    pub fn to_bytes(&self) -> Vec<u8> {
        let inside = self.inside.as_ref().map_or_else(Vec::new, Inside::to_bytes);
        let (at, text) = (self.at.to_le_bytes(), self.text.to_le_bytes());
        [&at[..], &text, &inside].concat()
    }

    /// Decodes bytes from [`to_bytes`](Self::to_bytes); `None` for others.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_first_chunk()?;
        let inside = match rest {
            [] => None,
            rest => Some(Inside::from_bytes(rest)?),
        };
        Some(Self {
            at: u64::from_le_bytes(*at),
            text: u64::from_le_bytes(*text),
            inside,
        })
    }
}
