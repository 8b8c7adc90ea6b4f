//! Compressed data: one member after the other, and what follows the last one.
//!
//! Zeros between and after members are padding, as tapes and block devices leave it. Anything else that doesn't begin
//! like a member is an error, but a trailing one: the members before it are complete.

use super::compression::{Compression, SIGNATURE, WINDOW_LOG};
use super::entrance::{Entrance, Inside, unpack_window};
use super::first_bytes;
use super::inflate::GzipDecoder;
use super::notes::{Notes, Spacing};
use super::xz::{self, XzBlocks};
use liblzma::bufread::XzDecoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// Compressed bytes asked of the system at once.
const COMPRESSED_READ: usize = 128 << 10;

/// The error that something other than compressed data follows.
#[derive(Debug)]
pub(super) struct Trailing(Compression);

impl fmt::Display for Trailing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = self.0.name();
        write!(
            f,
            "what follows the {name} data is not {name} data and was not read"
        )
    }
}

impl std::error::Error for Trailing {}

/// Decodes member after member.
pub(super) struct Members<R> {
    compression: Compression,
    state: Stage<R>,
    /// Notes about entrances, if wanted.
    notes: Option<Notes>,
}

enum Stage<R> {
    Inside(Box<Member<R>>),
    Between(Source<R>),
    Ended,
}

impl<R: Read> Members<R> {
    /// `first` has been read from the source, and begins like a member.
    pub(super) fn new(compression: Compression, first: Vec<u8>, source: R) -> io::Result<Self> {
        let member = Member::begin(compression, Source::new(first, source))?;
        Ok(Self::inside(compression, member))
    }

    /// The source is positioned at this entrance.
    pub(super) fn enter(
        compression: Compression,
        entrance: &Entrance,
        source: R,
    ) -> io::Result<Self> {
        let mut source = Source::new(Vec::new(), source);
        let member = match &entrance.inside {
            None => Member::begin(compression, source)?,
            Some(Inside::Gzip { bit, window }) => {
                let window = unpack_window(window)?;
                Member::Gzip(GzipDecoder::enter(source, *bit, &window)?)
            }
            Some(Inside::Xz(block)) => {
                source.ahead = xz::header(block);
                Member::XzBlocks(XzBlocks::new(source, block)?)
            }
        };
        Ok(Self::inside(compression, member))
    }

    fn inside(compression: Compression, member: Member<R>) -> Self {
        Self {
            compression,
            state: Stage::Inside(Box::new(member)),
            notes: None,
        }
    }

    /// Notes entrances from now on. `known` are entrances that can only be found from the file's end.
    pub(super) fn noting(mut self, spacing: Spacing, known: Vec<Entrance>) -> Self {
        self.notes = Some(Notes::new(spacing, known));
        self
    }

    /// The entrances passed since the last call.
    pub(super) fn take_entrances(&mut self) -> Vec<Entrance> {
        let notes = self.notes.as_mut();
        notes.map_or_else(Vec::new, Notes::take)
    }

    /// The next member; `None` at the end.
    fn next(&mut self, mut source: Source<R>) -> io::Result<Option<Member<R>>> {
        if !source.skip_zeros()? {
            return Ok(None);
        }
        let undecided = |bytes: &[u8]| bytes.len() < SIGNATURE && self.compression.may_begin(bytes);
        let first = first_bytes(&mut source, undecided)?;
        if Compression::of(&first) == self.compression {
            source.put_back(first);
            if let Some(notes) = &mut self.notes {
                notes.note_member(source.position);
            }
            return Member::begin(self.compression, source).map(Some);
        }
        Err(if self.compression.may_begin(&first) {
            // The data ends within the beginning of a member.
            io::ErrorKind::UnexpectedEof.into()
        } else {
            io::Error::new(io::ErrorKind::InvalidData, Trailing(self.compression))
        })
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Stage::Inside(member) = &mut self.state {
                let count = match &mut self.notes {
                    None => member.read(into)?,
                    Some(notes) => member.read_noting(into, notes)?,
                };
                if count > 0 {
                    return Ok(count);
                }
            }
            match std::mem::replace(&mut self.state, Stage::Ended) {
                Stage::Inside(member) => self.state = Stage::Between(member.into_source()?),
                Stage::Between(source) => match self.next(source)? {
                    Some(member) => self.state = Stage::Inside(Box::new(member)),
                    None => return Ok(0),
                },
                Stage::Ended => return Ok(0),
            }
        }
    }
}

/// Reads compressed bytes, some of which may have been peeked at.
struct Source<R> {
    ahead: Vec<u8>,
    source: BufReader<R>,
    /// Bytes taken so far.
    position: u64,
}

impl<R: Read> Source<R> {
    fn new(ahead: Vec<u8>, source: R) -> Self {
        Self {
            ahead,
            source: BufReader::with_capacity(COMPRESSED_READ, source),
            position: 0,
        }
    }

    /// Puts back the bytes taken last.
    fn put_back(&mut self, bytes: Vec<u8>) {
        self.position -= bytes.len() as u64;
        self.ahead.splice(0..0, bytes);
    }

    /// Returns whether anything but zeros follows.
    fn skip_zeros(&mut self) -> io::Result<bool> {
        loop {
            let bytes = match self.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let (is_end, is_other) = (bytes.is_empty(), zeros < bytes.len());
            self.consume(zeros);
            if is_end || is_other {
                return Ok(is_other);
            }
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let count = bytes.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ahead.is_empty() {
            self.source.fill_buf()
        } else {
            Ok(&self.ahead)
        }
    }

    fn consume(&mut self, count: usize) {
        self.position += count as u64;
        if self.ahead.is_empty() {
            self.source.consume(count)
        } else {
            drop(self.ahead.drain(..count))
        }
    }
}

enum Member<R> {
    Gzip(GzipDecoder<Source<R>>),
    Zstd(zstd::Decoder<'static, Source<R>>),
    Bzip2(bzip2::bufread::BzDecoder<Source<R>>),
    Xz(XzDecoder<Source<R>>),
    XzBlocks(XzBlocks<Source<R>>),
}

impl<R: Read> Member<R> {
    fn begin(compression: Compression, source: Source<R>) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => return Err(io::ErrorKind::InvalidInput.into()),
            Compression::Gzip => Self::Gzip(GzipDecoder::new(source)?),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(source)?.single_frame();
                decoder.window_log_max(WINDOW_LOG)?;
                Self::Zstd(decoder)
            }
            Compression::Bzip2 => Self::Bzip2(bzip2::bufread::BzDecoder::new(source)),
            Compression::Xz => Self::Xz(xz::decoder(source)?),
        })
    }

    /// Reads some bytes, and notes an entrance inside the member if one is wanted and passed.
    fn read_noting(&mut self, into: &mut [u8], notes: &mut Notes) -> io::Result<usize> {
        let count = match self {
            Self::Gzip(decoder) if notes.wants_inside(decoder.source().position) => {
                let (count, block) = decoder.read_to_block(into)?;
                notes.pass(count);
                if let Some(block) = block {
                    let at = decoder.source().position * 8 - block.bits_ahead;
                    notes.note_inside(at, &block.window);
                }
                return Ok(count);
            }
            _ => self.read(into)?,
        };
        notes.pass(count);
        Ok(count)
    }

    fn into_source(self) -> io::Result<Source<R>> {
        Ok(match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
            Self::Bzip2(decoder) => decoder.into_inner(),
            Self::Xz(decoder) => decoder.into_inner(),
            Self::XzBlocks(blocks) => blocks.into_source()?,
        })
    }
}

impl<R: Read> Read for Member<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(into),
            Self::Zstd(decoder) => decoder.read(into),
            Self::Bzip2(decoder) => decoder.read(into),
            Self::Xz(decoder) => decoder.read(into),
            Self::XzBlocks(blocks) => blocks.read(into),
        }
    }
}
