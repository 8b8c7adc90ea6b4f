//! Finds the blocks of xz, which are listed in an index after each stream.
//!
//! ```text
//! stream: header (12 bytes), blocks, index, footer (12 bytes), padding
//! index:  0, number of blocks, for each its packed and unpacked length, padding, checksum
//! footer: checksum, length of the index, flags, "YZ"
//! ```
//!
//! To enter a block, the decoder gets the stream's header first. It must not see the index, because it would compare it
//! with the blocks it has read.

use super::compression::WINDOW_LOG;
use super::entrance::{Entrance, Inside, XzBlock};
use liblzma::bufread::XzDecoder;
use liblzma::stream::Stream as Decoder;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

const MAGIC: &[u8; 6] = b"\xFD7zXZ\0";
/// The length of the header and of the footer.
const FRAME: u64 = 12;
/// A longer index has millions of blocks.
const LONGEST_INDEX: u64 = 16 << 20;

/// The header of the stream that a block is in.
pub(super) fn header(block: &XzBlock) -> Vec<u8> {
    [MAGIC, &block.flags[..]].concat()
}

/// The beginnings of all blocks; none if the file doesn't end like an xz file. Leaves the file at its beginning.
pub(super) fn blocks(file: &mut (impl Read + Seek)) -> io::Result<Vec<Entrance>> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut streams = Vec::new();
    while end > 0 {
        match Stream::before(file, end)? {
            Found::Padding => end -= 4,
            Found::Stream(stream) => {
                end = stream.start;
                streams.push(stream);
            }
            Found::Other => {
                streams.clear();
                break;
            }
        }
    }
    file.rewind()?;
    let mut entrances = Vec::new();
    let mut text: u64 = 0;
    for stream in streams.iter().rev() {
        stream.add(text, &mut entrances);
        text = text.saturating_add(stream.text());
    }
    Ok(entrances)
}

struct Stream {
    start: u64,
    index: u64,
    end: u64,
    flags: [u8; 6],
    /// The compressed and uncompressed length of each block.
    blocks: Vec<(u64, u64)>,
}

enum Found {
    Stream(Stream),
    /// Four zeros.
    Padding,
    Other,
}

impl Stream {
    /// Finds what ends here.
    fn before(file: &mut (impl Read + Seek), end: u64) -> io::Result<Found> {
        let mut tail = [0; 4];
        if end < 4 {
            return Ok(Found::Other);
        }
        read_at(file, end - 4, &mut tail)?;
        if tail == [0; 4] {
            return Ok(Found::Padding);
        }
        let mut footer = [0; FRAME as usize];
        if end < 2 * FRAME {
            return Ok(Found::Other);
        }
        read_at(file, end - FRAME, &mut footer)?;
        let [_, _, _, _, l0, l1, l2, l3, f0, f1, b'Y', b'Z'] = footer else {
            return Ok(Found::Other);
        };
        let index_len = (u64::from(u32::from_le_bytes([l0, l1, l2, l3])) + 1) * 4;
        let Some(index_start) = (end - FRAME).checked_sub(index_len) else {
            return Ok(Found::Other);
        };
        if index_len > LONGEST_INDEX {
            return Ok(Found::Other);
        }
        let mut index = vec![0; index_len as usize];
        read_at(file, index_start, &mut index)?;
        let Some(blocks) = lengths(&index) else {
            return Ok(Found::Other);
        };
        let packed = blocks
            .iter()
            .try_fold(FRAME, |sum, block| sum.checked_add(block.0));
        let Some(start) = packed.and_then(|packed| index_start.checked_sub(packed)) else {
            return Ok(Found::Other);
        };
        let mut header = [0; FRAME as usize];
        read_at(file, start, &mut header)?;
        let [magic @ .., a, b, c, d, e, f] = header;
        let is_same = magic == *MAGIC && [a, b] == [f0, f1];
        Ok(if is_same {
            Found::Stream(Self {
                start,
                index: index_start,
                end,
                flags: [a, b, c, d, e, f],
                blocks,
            })
        } else {
            Found::Other
        })
    }

    fn text(&self) -> u64 {
        let texts = self.blocks.iter().map(|block| block.1);
        texts.fold(0, u64::saturating_add)
    }

    /// Adds its blocks; their text begins at `text`.
    fn add(&self, text: u64, entrances: &mut Vec<Entrance>) {
        let whole = self.text();
        let (mut at, mut passed) = (self.start + FRAME, 0);
        for (packed, unpacked) in &self.blocks {
            let block = XzBlock {
                flags: self.flags,
                text: whole - passed,
                packed: self.index - at,
                index: self.end - self.index,
            };
            let inside = Some(Inside::Xz(block));
            let text = text.saturating_add(passed);
            entrances.push(Entrance { at, text, inside });
            (at, passed) = (at + packed, passed.saturating_add(*unpacked));
        }
    }
}

fn read_at(file: &mut (impl Read + Seek), at: u64, into: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(into)
}

/// The lengths of the blocks in an index: compressed with padding, and uncompressed.
fn lengths(index: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut rest = index.strip_prefix(&[0])?;
    let count = number(&mut rest)?;
    // Each takes at least two bytes.
    if count > index.len() as u64 / 2 {
        return None;
    }
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let packed = number(&mut rest)?.checked_next_multiple_of(4)?;
        lengths.push((packed, number(&mut rest)?));
    }
    Some(lengths)
}

/// Reads seven bits per byte, the lowest first; the eighth bit says that more follow.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

pub(super) fn decoder<R: BufRead>(source: R) -> io::Result<XzDecoder<R>> {
    let stream = Decoder::new_stream_decoder(1 << WINDOW_LOG, 0)?;
    Ok(XzDecoder::new_stream(source, stream))
}

/// The last blocks of a stream.
pub(super) struct XzBlocks<R> {
    decoder: XzDecoder<io::Take<R>>,
    /// Bytes of text left in them.
    text: u64,
    /// Bytes after them that belong to the stream.
    index: u64,
}

impl<R: BufRead> XzBlocks<R> {
    /// For a source with the stream's header before the block.
    pub(super) fn new(source: R, block: &XzBlock) -> io::Result<Self> {
        let packed = block.packed.saturating_add(FRAME);
        Ok(Self {
            decoder: decoder(source.take(packed))?,
            text: block.text,
            index: block.index,
        })
    }

    /// The source, positioned after the stream.
    pub(super) fn into_source(self) -> io::Result<R> {
        let mut packed = self.decoder.into_inner();
        io::copy(&mut packed, &mut io::sink())?;
        let mut index = packed.into_inner().take(self.index);
        match io::copy(&mut index, &mut io::sink())? {
            read if read < self.index => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(index.into_inner()),
        }
    }
}

impl<R: BufRead> Read for XzBlocks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let limit = self.text.min(into.len() as u64) as usize;
        if limit == 0 {
            return Ok(0);
        }
        let count = self.decoder.read(&mut into[..limit])?;
        self.text -= count as u64;
        match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}
